"""Progress: while clusters hang together, some cut between them does not lower DBCVI (docs/proofs/recovery.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.theory import _progress_kernel as kernel
from ptclust.theory.certificate import MARGIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["least_progress"]

_WORK_PER_NODE = (
    16  # sweeps over parts are given up beyond this: a certificate less, and never a wrong one
)


def least_progress(tree: kernel.ClusterTree) -> tuple[float, int]:
    """Return by how much the best cut of a part raises N * DBCVI, at least, and the heaviest edge of that part.

    The edge is given by the cluster below it. Only parts whose edges are all lighter than those that leave them are in
    question: the parts that single linkage makes of the clusters, but the last, for the first cut is always made.
    """
    edges = 1 + np.argsort(tree.weight[1:], kind="stable")
    merges = _merged(tree, edges)
    heaviest = tree.weight[edges]
    n_part = merges.n_nodes.sum(axis=1)
    before = n_part * (1 - heaviest / merges.leaving)
    after = np.maximum(_by_heaviest(merges, heaviest), _by_leaf(tree, n_part, heaviest))
    asks = (heaviest < merges.leaving) & np.isfinite(merges.leaving)
    unclear = np.flatnonzero(asks & (after - before <= MARGIN))
    best = np.full(len(edges), -np.inf)
    work = _WORK_PER_NODE * int(tree.size.sum())
    kernel.best_cuts(unclear, tree, merges, work, best)
    margin = np.where(asks, np.maximum(after, best) - before, np.inf)
    least = int(margin.argmin())
    return float(margin[least]), int(edges[least])


def _by_heaviest(merges: kernel.Merges, heaviest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the cut of the heaviest edge leaves."""
    left: NDArray[np.float64] = (merges.n_nodes * (1 - merges.heaviest / heaviest[:, None])).sum(
        axis=1
    )
    return left


def _by_leaf(
    tree: kernel.ClusterTree, n_part: NDArray[np.int64], heaviest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what a cut that takes off one cluster leaves at least, whichever of two it is."""
    lightest = np.full(len(tree.size), np.inf)
    np.minimum.at(lightest, tree.parent[1:], tree.weight[1:])
    lightest[1:] = np.minimum(lightest[1:], tree.weight[1:])
    worth = np.sort(tree.size * (1 - tree.heaviest / lightest))[1]
    return np.asarray(worth - n_part * (1 - tree.weight[1:].min() / heaviest))


def _merged(tree: kernel.ClusterTree, edges: NDArray[np.int64]) -> kernel.Merges:
    n = len(edges)
    merges = kernel.Merges(
        sides=np.empty((n, 2), np.int64),
        n_nodes=np.empty((n, 2), np.int64),
        heaviest=np.empty((n, 2)),
        n_clusters=np.zeros(n, np.int64),
        leaving=np.full(n, np.inf),
        begin=np.zeros(n, np.int64),
        order=np.empty(n + 1, np.int64),
    )
    kernel.merge_clusters(edges, tree, merges)
    return merges
