"""Theorems A, B, C and the corollary of section 3.2.2, checked on a given tree by running DBMSTClu.

All four are false: homogeneous clusters, weakly or strongly, do not make them hold.
docs/proofs/recovery.md has a small counterexample to each and the step at which its printed proof
breaks; ``certify_recovery`` has conditions that suffice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptclust._components import label_components
from ptclust.clustering import dbcvi, dbmstclu
from ptclust.clustering.dbmstclu._search_kernel import GAIN_STEP
from ptclust.theory.partition import has_partitioning_topology, is_cut

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ptclust.clustering import WeightedTree


@dataclass(frozen=True)
class TheoremCheck:
    """Whether a statement holds on a tree; if not, where it fails."""

    holds: bool
    step: int | None = None
    """The number of cuts made before it fails."""
    edge: int | None = None
    """The id, in the graph, of the edge concerned."""


_HOLDS = TheoremCheck(True)


def theorem_a(tree: WeightedTree, labels: ArrayLike) -> TheoremCheck:
    """Check Theorem A: as long as edges of Cut_G(T) are left, before step K - 1, DBMSTClu goes on.

    If it does not, ``edge`` is the heaviest edge left in Cut_G(T), which by the paper's proof ought
    to raise DBCVI.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> path = Tree(Topology(range(8), range(1, 9)), [0.5, 0.5, 1.0, 0.5, 0.5, 0.6, 0.5, 0.5])
    >>> theorem_a(path, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    TheoremCheck(holds=False, step=1, edge=5)
    """
    run = _Run.of(tree, labels)
    if len(run.made) >= run.n_cuts:
        return _HOLDS
    left = run.across.copy()
    left[run.made] = False
    edge = int(np.where(left, tree.weights, -np.inf).argmax())
    return TheoremCheck(False, len(run.made), int(tree.edge_ids[edge]))


def theorem_b(tree: WeightedTree, labels: ArrayLike) -> TheoremCheck:
    """Check Theorem B: before step K - 1, all edges whose cut is best for DBCVI are in Cut_G(T).

    If not, ``edge`` is the last of the others among them. Evaluates every cut from scratch at every
    step: for small trees.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> path = Tree(Topology(range(5), range(1, 6)), [0.95, 0.95, 1.0, 0.95, 0.95])
    >>> theorem_b(path, [0, 0, 0, 1, 1, 1])
    TheoremCheck(holds=False, step=0, edge=4)
    """
    run = _Run.of(tree, labels)
    for step in range(min(len(run.made) + 1, run.n_cuts)):
        values = _index_after_each_cut(tree, run.made[:step])
        best = values >= values.max() - GAIN_STEP
        wrong = np.flatnonzero(best & ~run.across)
        if len(wrong):
            return TheoremCheck(False, step, int(tree.edge_ids[wrong[-1]]))
    return _HOLDS


def theorem_c(tree: WeightedTree, labels: ArrayLike) -> TheoremCheck:
    """Check Theorem C: after K - 1 cuts nothing more is cut. If not, ``edge`` is cut next.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> path = Tree(Topology(range(5), range(1, 6)), [0.1, 0.2, 0.5, 0.1, 0.1])
    >>> theorem_c(path, [0, 0, 0, 1, 1, 1])
    TheoremCheck(holds=False, step=1, edge=1)
    """
    run = _Run.of(tree, labels)
    if len(run.made) <= run.n_cuts:
        return _HOLDS
    return TheoremCheck(False, run.n_cuts, int(tree.edge_ids[run.made[run.n_cuts]]))


def recovered(tree: WeightedTree, labels: ArrayLike) -> TheoremCheck:
    """Check the corollary: DBMSTClu makes exactly the cuts of Cut_G(T); they leave the clusters.

    If not, ``edge`` is the first wrong cut, or else the heaviest edge of Cut_G(T) that is never
    cut; it is None if the clusters are no pieces of the tree, so that no cuts could find them.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> path = Tree(Topology(range(5), range(1, 6)), [0.1, 0.1, 0.9, 0.1, 0.1])
    >>> recovered(path, [0, 0, 0, 1, 1, 1])
    TheoremCheck(holds=True, step=None, edge=None)
    """
    if not has_partitioning_topology(tree, labels):
        return TheoremCheck(False)
    run = _Run.of(tree, labels)
    wrong = np.flatnonzero(~run.across[run.made])
    if len(wrong):
        return TheoremCheck(False, int(wrong[0]), int(tree.edge_ids[run.made[wrong[0]]]))
    return theorem_a(tree, labels)


@dataclass(frozen=True)
class _Run:
    """What DBMSTClu did, by positions of edges in the tree."""

    made: NDArray[np.int64]
    across: NDArray[np.bool_]

    @classmethod
    def of(cls, tree: WeightedTree, labels: ArrayLike) -> _Run:
        cuts = dbmstclu(tree).cuts
        made = np.searchsorted(tree.edge_ids, cuts.edge_ids if cuts else [])
        return cls(made.astype(np.int64), is_cut(tree, labels))

    @property
    def n_cuts(self) -> int:
        """K - 1, if the clusters are pieces of a connected tree."""
        return int(np.count_nonzero(self.across))


def _index_after_each_cut(tree: WeightedTree, made: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return N * DBCVI after the cuts ``made`` and each other edge; -inf for those made."""
    edges = np.arange(len(tree.weights))
    values = np.full(len(edges), -np.inf)
    for edge in np.setdiff1d(edges, made):
        kept = np.delete(edges, np.append(made, edge))
        pieces = np.arange(tree.n_nodes)
        label_components(tree.sources[kept], tree.targets[kept], pieces)
        values[edge] = tree.n_nodes * dbcvi(tree, pieces)
    return values
