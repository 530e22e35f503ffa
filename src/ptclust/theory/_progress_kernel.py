"""Single linkage of the clusters of a tree, and the best cut between clusters of every part that it makes.

The tree of clusters is rooted, and clusters are numbered in preorder. An edge goes by the cluster below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._components import find, union
from ptclust._kernel import inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ClusterTree(NamedTuple):
    """The clusters in preorder; the first is the root."""

    parent: NDArray[np.int64]
    weight: NDArray[np.float64]  # of the edge to the parent
    size: NDArray[np.int64]  # nodes of the cluster
    heaviest: NDArray[np.float64]  # heaviest edge within


class Merges(NamedTuple):
    """The parts that single linkage makes, in order."""

    sides: NDArray[np.int64]  # the two parts joined: an earlier merge, or -1 - k for the cluster k
    n_nodes: NDArray[np.int64]  # nodes of both
    heaviest: NDArray[np.float64]  # heaviest edge of either
    n_clusters: NDArray[np.int64]  # clusters of the whole part
    leaving: NDArray[np.float64]  # lightest edge that leaves it, inf for the last
    begin: NDArray[np.int64]  # where its clusters begin in ``order``
    order: NDArray[np.int64]  # the clusters, those of every part side by side


@kernel
def merge_clusters(edges: NDArray[np.int64], tree: ClusterTree, merges: Merges) -> None:
    """Fill ``merges``; ``edges`` are the clusters but the root, by ascending weight of the edge to their parent.

    On entry ``leaving`` is infinite and ``begin`` is 0.
    """
    n = len(tree.parent)
    root_of = np.arange(n)
    made_by = -1 - np.arange(n)
    for i in range(len(edges)):
        weight = tree.weight[edges[i]]
        ends = find(root_of, edges[i]), find(root_of, tree.parent[edges[i]])
        for side in range(2):
            part = made_by[ends[side]]
            merges.sides[i, side] = part
            if part < 0:
                merges.n_nodes[i, side] = tree.size[-1 - part]
                merges.heaviest[i, side] = tree.heaviest[-1 - part]
                merges.n_clusters[i] += 1
            else:
                merges.n_nodes[i, side] = merges.n_nodes[part].sum()
                merges.heaviest[i, side] = tree.weight[edges[part]]
                merges.n_clusters[i] += merges.n_clusters[part]
                merges.leaving[part] = weight
        union(root_of, ends[0], ends[1])
        made_by[min(ends[0], ends[1])] = i
    for i in range(len(edges) - 1, -1, -1):
        at = merges.begin[i]
        for side in range(2):
            part = merges.sides[i, side]
            if part < 0:
                merges.order[at] = -1 - part
                at += 1
            else:
                merges.begin[part] = at
                at += merges.n_clusters[part]


@inlined
def validity(separation: float, dispersion: float) -> float:
    """Return V_C."""
    return (separation - dispersion) / max(separation, dispersion)


@kernel
def best_cut_between(
    members: NDArray[np.int64],
    tree: ClusterTree,
    n_below: NDArray[np.int64],
    clusters_below: NDArray[np.int64],
    heaviest_below: NDArray[np.float64],
) -> float:
    """Return the largest N * DBCVI that a cut between the clusters ``members``, in preorder, leaves of this part.

    All edges that leave the part are heavier than those within it, so the edge that is cut separates both pieces. The
    last three arrays are room for what is below every cluster.
    """
    count = len(members)
    after = np.zeros(count + 1)
    for p in members:
        n_below[p], clusters_below[p] = tree.size[p], 1
        heaviest_below[p] = tree.heaviest[p]
    for i in range(count - 1, 0, -1):
        p = members[i]
        up = tree.parent[p]
        n_below[up] += n_below[p]
        clusters_below[up] += clusters_below[p]
        heaviest_below[up] = max(heaviest_below[up], heaviest_below[p], tree.weight[p])
        after[i] = max(after[i + 1], tree.weight[p], tree.heaviest[p])
    before, best = tree.heaviest[members[0]], -np.inf
    n_nodes = n_below[members[0]]
    for i in range(1, count):
        p = members[i]
        weight = tree.weight[p]
        rest = max(before, after[i + clusters_below[p]])
        below = n_below[p] * validity(weight, heaviest_below[p])
        best = max(best, below + (n_nodes - n_below[p]) * validity(weight, rest))
        before = max(before, weight, tree.heaviest[p])
    return float(best)


@kernel
def best_cuts(
    parts: NDArray[np.int64],
    tree: ClusterTree,
    merges: Merges,
    work: int,
    best: NDArray[np.float64],
) -> None:
    """Write the best cut of each of ``parts`` into ``best``, until about ``work`` clusters were looked at."""
    n = len(tree.parent)
    n_below, clusters_below, heaviest_below = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n),
    )
    for part in parts:
        work -= merges.n_clusters[part]
        if work < 0:
            return
        begin = merges.begin[part]
        members = np.sort(merges.order[begin : begin + merges.n_clusters[part]])
        best[part] = best_cut_between(members, tree, n_below, clusters_below, heaviest_below)
