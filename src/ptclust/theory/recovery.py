"""When DBMSTClu finds given clusters for certain: the corollary of section 3.2.2, with conditions.

The paper promises recovery of homogeneous clusters by Theorems A, B, C and their corollary. All
four are false, of weakly and of strongly homogeneous clusters; here they are checked on a given
tree by running DBMSTClu. docs/proofs/recovery.md has a small counterexample to each and the step at
which its printed proof breaks.

Here are conditions on a tree and its clusters, each of them in one piece, that do suffice. Let c
and d be the lightest and the heaviest edge across, v what V_C of a cluster of s nodes is in the
end, and let cutting an edge within it leave sides of q and s - q nodes, whose V_C is then x and y.

order
    Every edge within a cluster is lighter than c.
stability
    No cut within a cluster pays once the clusters are found: q x + (s - q) y < s v for every edge.
    Necessary, too.
preference
    While three or more clusters hang together, some cut between them beats every cut within one.
progress
    While two or more clusters hang together, some cut between them does not lower DBCVI.

Two clusters need only the first two. docs/proofs/recovery.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ptclust._components import label_components
from ptclust._kernel import kernel
from ptclust._traces import guard_functions
from ptclust._types import Array, Bools, Floats, Ints
from ptclust.clustering import WeightedTree, dbcvi, dbmstclu
from ptclust.clustering.dbcvi import cluster_validity, positive_weights, validity
from ptclust.clustering.dbmstclu import rooted
from ptclust.clustering.dbmstclu._kernel import RootedForest
from ptclust.clustering.dbmstclu._search_kernel import GAIN_STEP
from ptclust.errors import GraphError
from ptclust.theory.partition import Partition, as_partition, has_partitioning_topology, is_cut
from ptclust.trees.tree import fill_linkage

# By how much, in units of N * DBCVI, a condition has to hold: DBMSTClu compares on a grid of
# 2**-24 = 6e-8, and rounding errors stay below that up to 1e8 nodes.
MARGIN = 1e-6
_WORK_PER_NODE = 16  # sweeps over parts are given up beyond this: a certificate less, none wrong
_MEANING = {
    "partition": "every cluster is one piece of the tree, and there are at least two",
    "order": "edges within clusters are lighter than all edges across",
    "stability": "no cut within a cluster pays once the clusters are found",
    "preference": "a cut between clusters beats every cut within one",
    "progress": "some cut between clusters pays until all are made",
}
_NECESSARY = ("partition", "stability")


@dataclass(frozen=True)
class TheoremCheck:
    """Whether a statement holds on a tree; if not, where it fails."""

    holds: bool
    step: int | None = None  # the number of cuts made before it fails
    edge: int | None = None  # the id, in the graph, of the edge concerned


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
    cut; it is None if the clusters are not pieces of the tree, so that no cuts could find them.

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

    made: Ints
    across: Bools

    @classmethod
    def of(cls, tree: WeightedTree, labels: ArrayLike) -> _Run:
        cuts = dbmstclu(tree).cuts
        made = np.searchsorted(tree.edge_ids, cuts.edge_ids if cuts else [])
        return cls(made.astype(np.int64), is_cut(tree, labels))

    @property
    def n_cuts(self) -> int:
        """K - 1, if the clusters are pieces of a connected tree."""
        return int(np.count_nonzero(self.across))


def _index_after_each_cut(tree: WeightedTree, made: Ints) -> Floats:
    """Return N * DBCVI after the cuts ``made`` and each other edge; -inf for those made."""
    edges = np.arange(len(tree.weights))
    values = np.full(len(edges), -np.inf)
    for edge in np.setdiff1d(edges, made):
        kept = np.delete(edges, np.append(made, edge))
        pieces = np.arange(tree.n_nodes)
        label_components(tree.sources[kept], tree.targets[kept], pieces)
        values[edge] = tree.n_nodes * dbcvi(tree, pieces)
    return values


@dataclass(frozen=True)
class Condition:
    """One condition, and where it is closest to failing."""

    name: str
    margin: float  # what is left, in N * DBCVI (for order, 1 - b / c; for partition, infinite)
    cluster: int | None = None  # the label of the one where the margin is smallest; None: of all
    edge: int | None = None  # the id, in the graph, of the edge where the margin is smallest

    @property
    def holds(self) -> bool:
        """Whether the margin is above ``MARGIN``."""
        return self.margin > MARGIN


@dataclass(frozen=True)
class RecoveryCertificate:
    """Whether recovery by DBMSTClu is certain, and why or why not. Not to be published."""

    n_nodes: int
    n_clusters: int
    conditions: tuple[Condition, ...]  # in order; without those that need an earlier one that fails

    @property
    def holds(self) -> bool:
        """Whether DBMSTClu returns exactly the clusters for certain."""
        return all(condition.holds for condition in self.conditions)

    @property
    def failed(self) -> tuple[Condition, ...]:
        """The conditions that do not hold."""
        return tuple(condition for condition in self.conditions if not condition.holds)

    def describe(self) -> str:
        """Return a verdict and a line for every condition."""
        verdict = "is certified" if self.holds else "is not certified"
        lines = [f"Recovery of {self.n_clusters:,} clusters in {self.n_nodes:,} nodes {verdict}."]
        for condition in self.conditions:
            sign = "holds" if condition.holds else "FAILS"
            where = "" if condition.edge is None else f", edge {condition.edge}"
            where += "" if condition.cluster is None else f", cluster {condition.cluster}"
            finite = math.isfinite(condition.margin)
            margin = f" (margin {condition.margin:.4g}{where})" if finite else ""
            lines.append(f"  {condition.name} {sign}: {_MEANING[condition.name]}{margin}")
        if any(one.name in _NECESSARY and one.margin < -MARGIN for one in self.failed):
            lines.append("  DBMSTClu does not return these clusters: what fails is necessary, too.")
        elif not self.holds:
            same = "DBMSTClu may return these clusters all the same"
            lines.append(f"  {same}: what fails suffices, no more.")
        return "\n".join(lines)


def certify_recovery(tree: WeightedTree, labels: ArrayLike) -> RecoveryCertificate:
    """Certify that DBMSTClu, run on this tree, returns exactly these clusters.

    The tree is connected, with positive weights; every node labelled -1 is a cluster of its own.
    Time is linear in the nodes, but for sorts of the clusters.

    Notes
    -----
    *Privacy.* None: for the curator's own eyes.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology(range(7), range(1, 8)), [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
    >>> print(certify_recovery(tree, [0, 0, 0, 0, 1, 1, 1, 1]).describe())
    Recovery of 2 clusters in 8 nodes is certified.
      partition holds: every cluster is one piece of the tree, and there are at least two
      order holds: edges within clusters are lighter than all edges across (margin 0.8889, edge 0)
      stability holds: no cut within a cluster pays once the clusters are found (margin 2.556, ...
    """
    if (n_components := tree.n_nodes - len(tree.weights)) != 1:
        forest = f"a forest of {n_components} components"
        raise GraphError(f"a certificate needs one tree, not {forest}; certify each component")
    positive_weights(tree, "DBMSTClu")
    partition = as_partition(labels, tree.n_nodes)
    across = is_cut(tree, labels)
    n_clusters = partition.n_clusters
    if n_clusters < 2 or np.count_nonzero(across) != n_clusters - 1:
        torn = (Condition("partition", -math.inf),)
        return RecoveryCertificate(tree.n_nodes, n_clusters, torn)
    found = [Condition("partition", math.inf), _order(tree, across)]
    if found[-1].holds:
        known = _Known.of(tree, partition, across)
        found += _conditions_within(tree, partition, known)
        if n_clusters > 2:
            found.append(_progress(tree, known))
    return RecoveryCertificate(tree.n_nodes, n_clusters, tuple(found))


class _Sides(NamedTuple):
    """Both sides, within its cluster, of the edge above every node in preorder."""

    n_below: Ints  # nodes at and below the node
    cuts_below: Ints  # edges that leave the cluster at or below it
    within: Bools  # whether the edge above it is within a cluster
    heaviest_below: Floats  # heaviest edge below it
    heaviest_above: Floats  # heaviest edge of the cluster on the other side


@dataclass(frozen=True)
class _Known:
    """What the conditions know: clusters by number, and the rooted tree by preorder numbers."""

    lightest: float  # c
    heaviest: float  # d
    size: Ints
    worth: Floats  # s v: what every cluster adds to N * DBCVI in the end
    forest: RootedForest
    cluster: Ints  # of every node
    sides: _Sides

    @classmethod
    def of(cls, tree: WeightedTree, partition: Partition, across: Bools) -> _Known:
        forest, n = rooted(tree), tree.n_nodes
        counts = np.ones(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
        sides = _Sides(*counts, *np.zeros((2, n)))
        cluster = partition.cluster[forest.node]
        _sweep_clusters(forest.parent, forest.weight, cluster, np.zeros(n), sides)
        ends = float(tree.weights[across].min()), float(tree.weights[across].max())
        worth = partition.sizes * cluster_validity(tree, partition.cluster)
        return cls(*ends, partition.sizes, worth, forest, cluster, sides)

    @property
    def tops(self) -> Ints:
        """Return the topmost node of every cluster: the clusters in preorder."""
        return np.flatnonzero(~self.sides.within)


def _order(tree: WeightedTree, across: Bools) -> Condition:
    within = np.where(across, 0.0, tree.weights)
    edge = int(within.argmax())
    lightest = float(tree.weights[across].min())
    return Condition("order", 1 - float(within[edge]) / lightest, edge=int(tree.edge_ids[edge]))


def _conditions_within(tree: WeightedTree, partition: Partition, known: _Known) -> list[Condition]:
    """Return stability and, if there are three clusters or more, preference."""
    forest, sides = known.forest, known.sides
    inner = np.flatnonzero(sides.within)
    home, weight = known.cluster[inner], forest.weight[inner]
    below, above = sides.n_below[inner], known.size[home] - sides.n_below[inner]
    cut = [
        (below, _validity(weight, sides.heaviest_below[inner])),
        (above, _validity(weight, sides.heaviest_above[inner])),
    ]

    def worst(name: str, margin: Floats) -> Condition:
        if not len(margin):
            return Condition(name, math.inf)
        i = int(margin.argmin())
        edge = int(tree.edge_ids[forest.edge[inner[i]]])
        return Condition(name, float(margin[i]), int(partition.labels[home[i]]), edge)

    found = [worst("stability", known.worth[home] - sum(q * x for q, x in cut))]
    if len(known.size) > 2:
        n_cuts = np.empty(len(known.size), np.int64)
        n_cuts[known.cluster[known.tops]] = sides.cuts_below[known.tops]
        cuts = sides.cuts_below[inner]
        both = (cuts > 0) & (cuts < n_cuts[home])
        found.append(worst("preference", _preference(known, home, weight, cut, both)))
    return found


def _preference(
    known: _Known, home: Ints, weight: Floats, cut: list[tuple[Ints, Floats]], both: Bools
) -> Floats:
    """Return by how much a cut between clusters beats the cut of every edge within one.

    ``both`` says of which edges both sides may have other clusters attached.
    """
    c, d = known.lightest, known.heaviest
    worth = _smallest_others(known.worth)[0][home]
    s1, s2 = (s[home] for s in _smallest_others(known.size))
    n_least = known.size[home] + s1 + s2
    margin = np.full(len(home), np.inf)
    for heaviest in (c, d):
        right = worth + s1 * (1 - c / heaviest) + n_least * (c - weight) / heaviest
        for n_side, v in cut:
            margin = np.minimum(margin, right - n_side * (v + 1 - weight / heaviest))
    n_nodes = known.size.sum()
    # V_C of clusters that hang together is between -(1 - c / d) and 1 - c / d.
    apart = worth + s1 * (1 - c / d) - n_nodes * np.maximum(0.0, weight / c - c / d)
    return np.where(both, np.minimum(margin, apart), margin)


def _smallest_others(values: Floats | Ints) -> tuple[Floats, Floats]:
    """Return, for each of three clusters or more, the smallest two values among the others."""
    order = np.argsort(values, kind="stable")[:3]
    first, second, third = values[order].astype(np.float64)
    is_first, is_second = (np.arange(len(values)) == place for place in order[:2])
    return np.where(is_first, second, first), np.where(is_first | is_second, third, second)


def _progress(tree: WeightedTree, known: _Known) -> Condition:
    """Return by how much the best cut of a part raises N * DBCVI, at least.

    Only parts whose edges are all lighter than those that leave them are in question: the parts
    that single linkage makes of the clusters, but the last, for the first cut is always made. An
    edge between clusters goes by the cluster below it, and clusters are numbered in preorder.
    """
    tops, forest = known.tops, known.forest
    n, rank = len(tops), np.empty(len(tops), np.int64)
    rank[known.cluster[tops]] = np.arange(n)
    parent, above = rank[known.cluster[forest.parent[tops]]], forest.weight[tops]
    size, dispersion = known.sides.n_below[tops], known.sides.heaviest_below[tops]
    edges = 1 + np.argsort(above[1:], kind="stable")
    linkage = np.empty((n - 1, 4))
    fill_linkage(np.arange(1, n), parent[1:], above[1:], edges - 1, linkage)
    # Parts are the clusters, then the merges; the clusters of every part are a slice of ``order``.
    sides = linkage[:, :2].astype(np.int64)
    heaviest, count = np.append(dispersion, linkage[:, 2]), np.ones(2 * n - 1, np.int64)
    count[n:] = linkage[:, 3]
    begin = np.zeros(2 * n - 1, np.int64)
    for part in range(n - 2, -1, -1):
        left, right = sides[part]
        begin[left], begin[right] = begin[n + part], begin[n + part] + count[left]
    order = np.argsort(begin[:n])
    up_to = np.append(0, np.cumsum(size[order]))
    n_nodes = up_to[begin + count] - up_to[begin]
    leaving = np.full(2 * n - 1, np.inf)
    leaving[sides] = linkage[:, 2:3]

    asks = np.flatnonzero((heaviest[n:] < leaving[n:]) & np.isfinite(leaving[n:]))
    if not len(asks):
        return Condition("progress", math.inf)
    inner, all_nodes = heaviest[n + asks], n_nodes[n + asks]
    before = all_nodes * _validity(leaving[n + asks], inner)
    pieces = sides[asks]
    after = (n_nodes[pieces] * _validity(inner[:, None], heaviest[pieces])).sum(axis=1)
    # A cut that takes off one cluster, whichever of two it is, leaves this at least.
    by_leaf = np.sort(known.worth)[1] - all_nodes * (1 - known.lightest / inner)
    after = np.maximum(after, by_leaf)
    work = _WORK_PER_NODE * tree.n_nodes
    for i in np.flatnonzero(after - before <= MARGIN):
        part = n + asks[i]
        work -= count[part]
        if work < 0:
            break
        members = np.sort(order[begin[part] : begin[part] + count[part]])
        place = np.searchsorted(members, parent[members])
        best = _best_cut(place, above[members], size[members], dispersion[members])
        after[i] = max(after[i], best)
    least = int((after - before).argmin())
    edge = int(tree.edge_ids[forest.edge[tops[edges[asks[least]]]]])
    return Condition("progress", float(after[least] - before[least]), edge=edge)


def _validity(separation: Floats, dispersion: Floats) -> Floats:
    v: Floats = (separation - dispersion) / np.maximum(separation, dispersion)
    return v


@kernel
def _sweep_clusters(
    parent: Array, weight: Floats, cluster: Ints, runner_up: Floats, sides: _Sides
) -> None:
    """Fill ``sides`` in two sweeps; all arrays are indexed by preorder number.

    On entry ``n_below`` is 1 and all else is 0. ``runner_up`` is a buffer for the second heaviest
    branch below a node: what is heaviest beside the heaviest branch.
    """
    heaviest = sides.heaviest_below
    for p in range(len(parent) - 1, 0, -1):
        up = parent[p]
        if cluster[p] != cluster[up]:
            sides.cuts_below[p] += 1
            sides.cuts_below[up] += 1
            continue
        sides.within[p] = True
        sides.n_below[up] += sides.n_below[p]
        sides.cuts_below[up] += sides.cuts_below[p]
        branch = max(weight[p], heaviest[p])
        runner_up[up] = max(runner_up[up], min(branch, heaviest[up]))
        heaviest[up] = max(heaviest[up], branch)
    for p in range(1, len(parent)):
        if sides.within[p]:
            up = parent[p]
            is_heaviest = max(weight[p], heaviest[p]) == heaviest[up]
            beside = runner_up[up] if is_heaviest else heaviest[up]
            if sides.within[up]:
                beside = max(beside, sides.heaviest_above[up], weight[up])
            sides.heaviest_above[p] = beside


@kernel
def _best_cut(parent: Ints, weight: Floats, size: Ints, heaviest: Floats) -> float:
    """Return the largest N * DBCVI that a cut between the clusters of a part, in preorder, leaves.

    ``heaviest`` is within each. All edges that leave the part are heavier than those within it, so
    the edge that is cut separates both pieces.
    """
    n = len(parent)
    n_below, count, below, after = (
        size.copy(),
        np.ones(n, np.int64),
        heaviest.copy(),
        np.zeros(n + 1),
    )
    for p in range(n - 1, 0, -1):
        up = parent[p]
        n_below[up] += n_below[p]
        count[up] += count[p]
        below[up] = max(below[up], below[p], weight[p])
        after[p] = max(after[p + 1], weight[p], heaviest[p])
    before, best = heaviest[0], -np.inf
    for p in range(1, n):
        rest = max(before, after[p + count[p]])
        whole = n_below[p] * validity(weight[p], below[p])
        best = max(best, whole + (n_below[0] - n_below[p]) * validity(weight[p], rest))
        before = max(before, weight[p], heaviest[p])
    return float(best)


guard_functions(__name__)
