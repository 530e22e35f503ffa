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

from ptclust._components import find, label_components, union
from ptclust._kernel import kernel
from ptclust._traces import guard_functions
from ptclust._types import Array, Bools, Floats, Ints
from ptclust.clustering import WeightedTree, dbcvi, dbmstclu
from ptclust.clustering.dbcvi import cluster_validity, validity
from ptclust.clustering.dbmstclu import check_weights, rooted
from ptclust.clustering.dbmstclu._kernel import RootedForest
from ptclust.clustering.dbmstclu._search_kernel import GAIN_STEP
from ptclust.errors import GraphError
from ptclust.theory.partition import Partition, as_partition, has_partitioning_topology, is_cut

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
    check_weights(tree)
    partition = as_partition(labels, tree.n_nodes)
    across = is_cut(tree, labels)
    n_clusters = partition.n_clusters
    found = [Condition("partition", math.inf)]
    if n_clusters < 2 or np.count_nonzero(across) != n_clusters - 1:
        found = [Condition("partition", -math.inf)]
    else:
        found.append(_order(tree, across))
    if found[-1].holds:
        c, d = float(tree.weights[across].min()), float(tree.weights[across].max())
        clusters = _Clusters(c, d, partition.sizes, cluster_validity(tree, partition.cluster))
        sweep = _Sweep.of(tree, partition)
        found += _conditions_within(tree, partition, clusters, sweep)
        if n_clusters > 2:
            found.append(_progress(tree, clusters, sweep))
    return RecoveryCertificate(tree.n_nodes, n_clusters, tuple(found))


@dataclass(frozen=True)
class _Clusters:
    """What the conditions know about clusters, besides their edges."""

    lightest: float  # c
    heaviest: float  # d
    size: Ints
    validity: Floats  # v_i


@dataclass(frozen=True)
class _Sweep:
    """The rooted tree, by preorder numbers, and what cuts within its clusters would leave."""

    forest: RootedForest
    cluster: Ints
    sides: _Sides

    @classmethod
    def of(cls, tree: WeightedTree, partition: Partition) -> _Sweep:
        forest, n = rooted(tree), tree.n_nodes
        counts = np.ones(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
        sides = _Sides(*counts, *np.zeros((4, n)))
        cluster = partition.cluster[forest.node]
        _sweep_clusters(forest.parent, forest.weight, cluster, np.zeros(n), sides)
        return cls(forest, cluster, sides)

    @property
    def tops(self) -> Ints:
        """Return the topmost node of every cluster: the clusters in preorder."""
        return np.flatnonzero(~self.sides.within)


def _order(tree: WeightedTree, across: Bools) -> Condition:
    within = np.where(across, 0.0, tree.weights)
    edge = int(within.argmax())
    lightest = float(tree.weights[across].min())
    return Condition("order", 1 - float(within[edge]) / lightest, edge=int(tree.edge_ids[edge]))


def _conditions_within(
    tree: WeightedTree, partition: Partition, clusters: _Clusters, sweep: _Sweep
) -> list[Condition]:
    """Return stability and, if there are three clusters or more, preference."""
    forest, cluster, sides = sweep.forest, sweep.cluster, sweep.sides
    inner = np.flatnonzero(sides.within)
    home, weight = cluster[inner], forest.weight[inner]
    size = clusters.size[home]
    q = [sides.n_below[inner], size - sides.n_below[inner]]
    x = [sides.validity_below[inner], sides.validity_above[inner]]

    def worst(name: str, margin: Floats) -> Condition:
        if not len(margin):
            return Condition(name, math.inf)
        i = int(margin.argmin())
        edge = int(tree.edge_ids[forest.edge[inner[i]]])
        return Condition(name, float(margin[i]), int(partition.labels[home[i]]), edge)

    stability = size * clusters.validity[home] - (q[0] * x[0] + q[1] * x[1])
    found = [worst("stability", stability)]
    if len(clusters.size) > 2:
        n_cuts = np.empty(len(clusters.size), np.int64)
        n_cuts[cluster[sweep.tops]] = sides.cuts_below[sweep.tops]
        below = sides.cuts_below[inner]
        both = (below > 0) & (below < n_cuts[home])
        found.append(worst("preference", _preference(clusters, home, weight, q, x, both)))
    return found


def _preference(
    clusters: _Clusters, home: Ints, weight: Floats, q: list[Ints], x: list[Floats], both: Bools
) -> Floats:
    """Return by how much a cut between clusters beats the cut of every edge within one.

    ``both`` says of which edges both sides may have other clusters attached.
    """
    c, d = clusters.lightest, clusters.heaviest
    worth = _smallest_others(clusters.size * clusters.validity)[0][home]
    s1, s2 = (s[home] for s in _smallest_others(clusters.size))
    n_least = clusters.size[home] + s1 + s2
    margin = np.full(len(home), np.inf)
    for heaviest in (c, d):
        right = worth + s1 * (1 - c / heaviest) + n_least * (c - weight) / heaviest
        for n_side, v in zip(q, x, strict=True):
            margin = np.minimum(margin, right - n_side * (v + 1 - weight / heaviest))
    n_nodes = clusters.size.sum()
    # V_C of clusters that hang together is between -(1 - c / d) and 1 - c / d.
    apart = worth + s1 * (1 - c / d) - n_nodes * np.maximum(0.0, weight / c - c / d)
    return np.where(both, np.minimum(margin, apart), margin)


def _smallest_others(values: Floats | Ints) -> tuple[Floats, Floats]:
    """Return, for each of three clusters or more, the smallest two values among the others."""
    order = np.argsort(values, kind="stable")[:3]
    first, second, third = values[order].astype(np.float64)
    is_first, is_second = (np.arange(len(values)) == place for place in order[:2])
    return np.where(is_first, second, first), np.where(is_first | is_second, third, second)


def _progress(tree: WeightedTree, clusters: _Clusters, sweep: _Sweep) -> Condition:
    """Return by how much the best cut of a part raises N * DBCVI, at least.

    Only parts whose edges are all lighter than those that leave them are in question: the parts
    that single linkage makes of the clusters, but the last, for the first cut is always made.
    """
    tops, forest, sides = sweep.tops, sweep.forest, sweep.sides
    rank = np.empty(len(tops), np.int64)
    rank[sweep.cluster[tops]] = np.arange(len(tops))
    parent, weight = rank[sweep.cluster[forest.parent[tops]]], forest.weight[tops]
    inner = _ClusterTree(parent, weight, sides.n_below[tops], sides.heaviest_below[tops])
    edges = 1 + np.argsort(inner.weight[1:], kind="stable")
    heaviest = inner.weight[edges]
    merges = _merged(inner, edges)
    # A cut that takes off one cluster, whichever of two it is, leaves this at least.
    worth = np.sort(clusters.size * clusters.validity)[1]
    by_leaf = worth - merges.n_nodes.sum(axis=1) * (1 - clusters.lightest / heaviest)
    after = np.maximum(merges.after, by_leaf)
    asks = (heaviest < merges.leaving) & np.isfinite(merges.leaving)
    unclear = np.flatnonzero(asks & (after - merges.before <= MARGIN))
    best = np.full(len(edges), -np.inf)
    _best_cuts(unclear, inner, merges, _WORK_PER_NODE * tree.n_nodes, best)
    margin = np.where(asks, np.maximum(after, best) - merges.before, np.inf)
    least = int(margin.argmin())
    if math.isinf(margin[least]):
        return Condition("progress", math.inf)
    edge = int(tree.edge_ids[forest.edge[tops[edges[least]]]])
    return Condition("progress", float(margin[least]), edge=edge)


def _merged(tree: _ClusterTree, edges: Ints) -> _Merges:
    n = len(edges)
    merges = _Merges(
        sides=np.empty((n, 2), np.int64),
        n_nodes=np.empty((n, 2), np.int64),
        heaviest=np.empty((n, 2)),
        n_clusters=np.zeros(n, np.int64),
        leaving=np.full(n, np.inf),
        before=np.zeros(n),
        after=np.zeros(n),
        begin=np.zeros(n, np.int64),
        order=np.empty(n + 1, np.int64),
    )
    _merge_clusters(edges, tree, merges)
    return merges


class _Sides(NamedTuple):
    """Both sides, within its cluster, of the edge above every node in preorder."""

    n_below: Ints  # nodes at and below the node
    cuts_below: Ints  # edges that leave the cluster at or below it
    within: Bools  # whether the edge above it is within a cluster
    heaviest_below: Floats  # heaviest edge below it
    heaviest_above: Floats  # heaviest edge of the cluster on the other side
    validity_below: Floats  # V_C of what a cut of the edge would leave below
    validity_above: Floats  # and of the rest of the cluster


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
        if not sides.within[p]:
            continue
        up = parent[p]
        is_heaviest = max(weight[p], heaviest[p]) == heaviest[up]
        beside = runner_up[up] if is_heaviest else heaviest[up]
        if sides.within[up]:
            beside = max(beside, sides.heaviest_above[up], weight[up])
        sides.heaviest_above[p] = beside
        sides.validity_below[p] = validity(weight[p], heaviest[p])
        sides.validity_above[p] = validity(weight[p], beside)


class _ClusterTree(NamedTuple):
    """The clusters in preorder, the root first. An edge goes by the cluster below it."""

    parent: Ints
    weight: Floats  # of the edge to the parent
    size: Ints  # nodes of the cluster
    heaviest: Floats  # heaviest edge within


class _Merges(NamedTuple):
    """The parts that single linkage makes, in order."""

    sides: Ints  # the two parts joined: an earlier merge, or -1 - k for the cluster k
    n_nodes: Ints  # nodes of both
    heaviest: Floats  # heaviest edge of either
    n_clusters: Ints  # clusters of the whole part
    leaving: Floats  # lightest edge that leaves it, inf for the last
    before: Floats  # its share of N * DBCVI, 0 for the last
    after: Floats  # and what the cut of its heaviest edge leaves
    begin: Ints  # where its clusters begin in ``order``
    order: Ints  # the clusters, those of every part side by side


@kernel
def _merge_clusters(edges: Ints, tree: _ClusterTree, merges: _Merges) -> None:
    """Link the clusters into ``merges``; ``edges`` are all but the root, by weight to their parent.

    On entry ``leaving`` is infinite, and ``n_clusters``, ``before``, ``after`` and ``begin`` are 0.
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
        at, heaviest = merges.begin[i], tree.weight[edges[i]]
        if merges.leaving[i] < np.inf:
            merges.before[i] = merges.n_nodes[i].sum() * validity(merges.leaving[i], heaviest)
        for side in range(2):
            v = validity(heaviest, merges.heaviest[i, side])
            merges.after[i] += merges.n_nodes[i, side] * v
            part = merges.sides[i, side]
            if part < 0:
                merges.order[at] = -1 - part
                at += 1
            else:
                merges.begin[part] = at
                at += merges.n_clusters[part]


@kernel
def _best_cut_between(
    members: Ints, tree: _ClusterTree, n_below: Ints, clusters_below: Ints, heaviest_below: Floats
) -> float:
    """Return the largest N * DBCVI that a cut between ``members``, in preorder, leaves.

    All edges that leave the part are heavier than those within it, so the edge that is cut
    separates both pieces. The last three arrays are buffers for what is below every cluster.
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
def _best_cuts(parts: Ints, tree: _ClusterTree, merges: _Merges, work: int, best: Floats) -> None:
    """Write the best cut of each of ``parts`` into ``best``, for about ``work`` clusters."""
    n = len(tree.parent)
    n_below, clusters_below = np.empty(n, np.int64), np.empty(n, np.int64)
    heaviest_below = np.empty(n)
    for part in parts:
        work -= merges.n_clusters[part]
        if work < 0:
            return
        begin = merges.begin[part]
        members = np.sort(merges.order[begin : begin + merges.n_clusters[part]])
        best[part] = _best_cut_between(members, tree, n_below, clusters_below, heaviest_below)


guard_functions(__name__)
