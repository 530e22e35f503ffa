"""When DBMSTClu finds given clusters for certain: the corollary of section 3.2.2, with conditions.

The paper promises recovery of homogeneous clusters by Theorems A, B, C and their corollary. All
four are false; here they are checked on a given tree by running DBMSTClu. docs/proofs/recovery.md
has counterexamples, and the proof that the following conditions on a tree and its clusters, each of
them in one piece, do suffice. Two clusters need only the first two.

Let c and d be the lightest and the heaviest edge across, v what V_C of a cluster of s nodes is in
the end, and let cutting an edge within it leave sides of q and s - q nodes, whose V_C is then x, y.

order
    Every edge within a cluster is lighter than c.
stability
    No cut within a cluster pays once the clusters are found: q x + (s - q) y < s v for every edge.
    Necessary, too.
preference
    While three or more clusters hang together, some cut between them beats every cut within one.
progress
    While two or more clusters hang together, some cut between them does not lower DBCVI.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ptclust._kernel import kernel
from ptclust._traces import guard_functions
from ptclust._types import Array, Bools, Floats, Ints
from ptclust.clustering import WeightedTree, dbcvi, dbmstclu
from ptclust.clustering.dbcvi import cluster_validity, positive_weights
from ptclust.clustering.dbmstclu import label_pieces, rooted
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


def theorem_a(tree: WeightedTree, labels: ArrayLike) -> TheoremCheck:
    """Check Theorem A: as long as edges of Cut_G(T) are left, before step K - 1, DBMSTClu goes on.

    If it does not, ``edge`` is the heaviest edge left in Cut_G(T), which by the paper's proof ought
    to raise DBCVI.
    """
    made, across = _cuts_made(tree), is_cut(tree, labels)
    if len(made) >= np.count_nonzero(across):
        return TheoremCheck(True)
    across[made] = False
    return _failure(tree, len(made), np.where(across, tree.weights, -np.inf).argmax())


def theorem_b(tree: WeightedTree, labels: ArrayLike) -> TheoremCheck:
    """Check Theorem B: before step K - 1, all edges whose cut is best for DBCVI are in Cut_G(T).

    If not, ``edge`` is the last of the others among them. Evaluates every cut from scratch at every
    step: for small trees.
    """
    made, across = _cuts_made(tree), is_cut(tree, labels)
    edges = np.arange(len(across))
    for step in range(min(len(made) + 1, int(np.count_nonzero(across)))):
        values = np.full(len(edges), -np.inf)
        for edge in np.setdiff1d(edges, made[:step]):
            pieces = label_pieces(tree, np.isin(edges, [*made[:step], edge]))
            values[edge] = tree.n_nodes * dbcvi(tree, pieces)
        wrong = np.flatnonzero((values >= values.max() - GAIN_STEP) & ~across)
        if len(wrong):
            return _failure(tree, step, wrong[-1])
    return TheoremCheck(True)


def theorem_c(tree: WeightedTree, labels: ArrayLike) -> TheoremCheck:
    """Check Theorem C: after K - 1 cuts nothing more is cut. If not, ``edge`` is cut next."""
    made, n_cuts = _cuts_made(tree), int(np.count_nonzero(is_cut(tree, labels)))
    return _failure(tree, n_cuts, made[n_cuts]) if len(made) > n_cuts else TheoremCheck(True)


def recovered(tree: WeightedTree, labels: ArrayLike) -> TheoremCheck:
    """Check the corollary: DBMSTClu makes exactly the cuts of Cut_G(T); they leave the clusters.

    If not, ``edge`` is the first wrong cut, or else the heaviest edge of Cut_G(T) that is never
    cut; it is None if the clusters are not pieces of the tree, so that no cuts could find them.
    """
    if not has_partitioning_topology(tree, labels):
        return TheoremCheck(False)
    made = _cuts_made(tree)
    wrong = np.flatnonzero(~is_cut(tree, labels)[made])
    return _failure(tree, wrong[0], made[wrong[0]]) if len(wrong) else theorem_a(tree, labels)


def _cuts_made(tree: WeightedTree) -> Ints:
    """Return the positions in the tree of the edges that DBMSTClu cuts, in order."""
    cuts = dbmstclu(tree).cuts
    return np.searchsorted(tree.edge_ids, cuts.edge_ids if cuts else []).astype(np.int64)


def _failure(tree: WeightedTree, step: Any, edge: Any) -> TheoremCheck:
    return TheoremCheck(False, int(step), int(tree.edge_ids[edge]))


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
        return not self.failed

    @property
    def failed(self) -> tuple[Condition, ...]:
        """The conditions that do not hold."""
        return tuple(condition for condition in self.conditions if not condition.holds)

    def describe(self) -> str:
        """Return a verdict and a line for every condition."""
        verdict = "is certified" if self.holds else "is not certified"
        lines = [f"Recovery of {self.n_clusters:,} clusters in {self.n_nodes:,} nodes {verdict}."]
        for one in self.conditions:
            where = "" if one.edge is None else f", edge {one.edge}"
            where += "" if one.cluster is None else f", cluster {one.cluster}"
            margin = f" (margin {one.margin:.4g}{where})" if math.isfinite(one.margin) else ""
            sign = "holds" if one.holds else "FAILS"
            lines.append(f"  {one.name} {sign}: {_MEANING[one.name]}{margin}")
        if any(one.name in _NECESSARY and one.margin < -MARGIN for one in self.failed):
            lines.append("  DBMSTClu does not return these clusters: what fails is necessary, too.")
        elif not self.holds:
            same = "DBMSTClu may return these clusters all the same"
            lines.append(f"  {same}: what fails suffices, no more.")
        return "\n".join(lines)


def certify_recovery(tree: WeightedTree, labels: ArrayLike) -> RecoveryCertificate:
    """Certify that DBMSTClu, run on this tree, returns exactly these clusters.

    The tree is connected, with positive weights; every node labelled -1 is a cluster of its own.
    Time is linear in the nodes, but for sorts of nodes and clusters.

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
    partition, across = as_partition(labels, tree.n_nodes), is_cut(tree, labels)
    n_clusters = partition.n_clusters
    whole = n_clusters > 1 and np.count_nonzero(across) == n_clusters - 1
    found = [Condition("partition", math.inf if whole else -math.inf)]
    if whole:
        within = np.where(across, 0.0, tree.weights)
        edge = int(within.argmax())
        margin = 1 - float(within[edge] / tree.weights[across].min())
        found.append(Condition("order", margin, edge=int(tree.edge_ids[edge])))
    if found[-1].holds:
        known = _Known.of(tree, partition)
        pieces = sum(q * x for q, x in known.cut)
        found.append(known.worst_within("stability", known.worth[known.home] - pieces))
        if n_clusters > 2:
            found += [_preference(known), _progress(known)]
    return RecoveryCertificate(tree.n_nodes, n_clusters, tuple(found))


@dataclass(frozen=True)
class _Known:
    """What the conditions know: nodes and clusters, both in preorder of the rooted tree."""

    # Of every cluster, and of the edge to its parent, the cluster above it
    label: Ints
    size: Ints
    worth: Floats  # s v: what it adds to N * DBCVI in the end
    dispersion: Floats
    parent: Ints
    above: Floats
    edge: Ints
    # Of every edge within a cluster
    home: Ints  # its cluster
    weight: Floats
    edge_within: Ints
    cut: tuple[tuple[Ints, Floats], ...]  # of both sides, number of nodes and V_C if it is cut
    both: Bools  # whether both sides may have other clusters attached

    @classmethod
    def of(cls, tree: WeightedTree, partition: Partition) -> _Known:
        forest, n = rooted(tree), tree.n_nodes
        cluster = partition.cluster[forest.node]
        enters = cluster != cluster[forest.parent]
        enters[0] = True
        tops = np.flatnonzero(enters)  # the topmost node of every cluster
        number = cluster[tops]
        home, size = np.argsort(number)[cluster], partition.sizes[number]
        # One cluster after the other, each in preorder: what is below a node is a slice
        order = np.argsort(home, kind="stable")
        place = np.argsort(order)
        parent = np.where(enters, -1, place[forest.parent])[order]
        found = _sides(parent, forest.weight[order], np.zeros(n))
        n_below, below, rest = (each[place] for each in found)
        across = np.append(tops[1:], forest.parent[tops[1:]])
        attached = np.append(0, np.cumsum(np.bincount(across, minlength=n)[order]))
        n_attached = attached[place + n_below] - attached[place]
        inner = np.flatnonzero(~enters)
        at, weight, n_below = home[inner], forest.weight[inner], n_below[inner]
        ids = tree.edge_ids[forest.edge]
        return cls(
            label=partition.labels[number],
            size=size,
            worth=(partition.sizes * cluster_validity(tree, partition.cluster))[number],
            dispersion=below[tops],
            parent=home[forest.parent[tops]],
            above=forest.weight[tops],
            edge=ids[tops],
            home=at,
            weight=weight,
            edge_within=ids[inner],
            cut=(
                (n_below, _validity(weight, below[inner])),
                (size[at] - n_below, _validity(weight, rest[inner])),
            ),
            both=(n_attached[inner] > 0) & (n_attached[inner] < n_attached[tops][at]),
        )

    def worst_within(self, name: str, margin: Floats) -> Condition:
        """Return a condition on edges within clusters, with its smallest margin."""
        if not len(margin):
            return Condition(name, math.inf)
        i = int(margin.argmin())
        label, edge = self.label[self.home[i]], self.edge_within[i]
        return Condition(name, float(margin[i]), int(label), int(edge))


@kernel
def _sides(parent: Ints, weight: Floats, inside: Floats) -> tuple[Array, Array, Array]:
    """Return, of a forest in preorder, what the edges above its nodes have on either side.

    That is the number of nodes at and below each, the heaviest edge there, and the heaviest of the
    rest of its tree; ``inside`` is the heaviest edge within the node itself.
    """
    n = len(parent)
    count, below, rest = np.ones(n, np.int64), inside.copy(), np.zeros(n)
    after = np.zeros(n + 1)
    for p in range(n - 1, -1, -1):
        up = parent[p]
        if up >= 0:
            count[up] += count[p]
            below[up] = max(below[up], below[p], weight[p])
            after[p] = max(after[p + 1], weight[p], inside[p])
    before = 0.0
    for p in range(n):
        if parent[p] < 0:
            before = inside[p]
        else:
            rest[p] = max(before, after[p + count[p]])
            before = max(before, weight[p], inside[p])
    return count, below, rest


def _validity(separation: Floats, dispersion: Floats) -> Floats:
    v: Floats = (separation - dispersion) / np.maximum(separation, dispersion)
    return v


def _preference(known: _Known) -> Condition:
    """Return by how much a cut between clusters beats the cut of every edge within one."""
    home, weight, (c, d) = known.home, known.weight, (known.above[1:].min(), known.above[1:].max())
    worth = _smallest_others(known.worth)[0][home]
    s1, s2 = (s[home] for s in _smallest_others(known.size))
    n_least = known.size[home] + s1 + s2
    margin = np.full(len(home), np.inf)
    for heaviest in (c, d):
        right = worth + s1 * (1 - c / heaviest) + n_least * (c - weight) / heaviest
        for n_side, v in known.cut:
            margin = np.minimum(margin, right - n_side * (v + 1 - weight / heaviest))
    # V_C of clusters that hang together is between -(1 - c / d) and 1 - c / d.
    apart = worth + s1 * (1 - c / d) - known.size.sum() * np.maximum(0.0, weight / c - c / d)
    margin = np.where(known.both, np.minimum(margin, apart), margin)
    return known.worst_within("preference", margin)


def _smallest_others(values: Array) -> tuple[Array, Array]:
    """Return, for each of three clusters or more, the smallest two values among the others."""
    first, second, third = np.sort(values)[:3]
    return np.where(values == first, second, first), np.where(values <= second, third, second)


def _progress(known: _Known) -> Condition:
    """Return by how much the best cut of a part raises N * DBCVI, at least.

    Only parts whose edges are all lighter than those that leave them are in question: the parts
    that single linkage makes of the clusters, but the last, for the first cut is always made. An
    edge between clusters goes by the cluster below it.
    """
    n, above = len(known.size), known.above
    edges = 1 + np.argsort(above[1:], kind="stable")
    linkage = np.empty((n - 1, 4))
    fill_linkage(np.arange(1, n), known.parent[1:], above[1:], edges - 1, linkage)
    # Parts are the clusters, then the merges; the clusters of every part are a slice of ``order``.
    sides = linkage[:, :2].astype(np.int64)
    heaviest, count = np.append(known.dispersion, linkage[:, 2]), np.ones(2 * n - 1, np.int64)
    count[n:] = linkage[:, 3]
    begin = np.zeros(2 * n - 1, np.int64)
    for part in range(n - 2, -1, -1):
        left, right = sides[part]
        begin[left], begin[right] = begin[n + part], begin[n + part] + count[left]
    order = np.argsort(begin[:n])
    up_to = np.append(0, np.cumsum(known.size[order]))
    n_nodes = up_to[begin + count] - up_to[begin]
    leaving = np.full(2 * n - 1, np.inf)
    leaving[sides] = linkage[:, 2:3]

    asks = np.flatnonzero((heaviest[n:] < leaving[n:]) & np.isfinite(leaving[n:]))
    if not len(asks):
        return Condition("progress", math.inf)
    inner, all_nodes, pieces = heaviest[n + asks], n_nodes[n + asks], sides[asks]
    before = all_nodes * _validity(leaving[n + asks], inner)
    last_merge = (n_nodes[pieces] * _validity(inner[:, None], heaviest[pieces])).sum(axis=1)
    # A cut that takes off one cluster, whichever of two it is, leaves this at least.
    by_leaf = np.sort(known.worth)[1] - all_nodes * (1 - above[1:].min() / inner)
    after = np.maximum(last_merge, by_leaf)
    work = _WORK_PER_NODE * int(known.size.sum())
    for i in np.flatnonzero(after - before <= MARGIN):
        part = n + asks[i]
        work -= count[part]
        if work < 0:
            break
        members = np.sort(order[begin[part] : begin[part] + count[part]])
        after[i] = max(after[i], _best_cut(known, members))
    least = int((after - before).argmin())
    edge = int(known.edge[edges[asks[least]]])
    return Condition("progress", float(after[least] - before[least]), edge=edge)


def _best_cut(known: _Known, members: Ints) -> float:
    """Return the largest N * DBCVI that a cut between the clusters of a part, in preorder, leaves.

    All edges that leave the part are heavier than those within it, so the edge that is cut
    separates both pieces.
    """
    parent = np.searchsorted(members, known.parent[members])
    parent[0] = -1
    found = _sides(parent, known.above[members], known.dispersion[members])
    count, below, rest = (each[1:] for each in found)
    weight, up_to = known.above[members[1:]], np.append(0, np.cumsum(known.size[members]))
    n_below = up_to[np.arange(1, len(members)) + count] - up_to[1:-1]
    cut = n_below * _validity(weight, below) + (up_to[-1] - n_below) * _validity(weight, rest)
    return float(cut.max())


guard_functions(__name__)
