"""When DBMSTClu finds given clusters for certain: the corollary of section 3.2.2 with conditions under which it holds.

The paper promises recovery of homogeneous clusters. That is not so (``ptclust.theory.theorems``). Here are conditions
on a tree and its clusters, each of them in one piece, that do suffice. Let c and d be the lightest and the heaviest
edge across, v what V_C of a cluster of s nodes is in the end, and let cutting an edge within it leave sides of q and
s - q nodes, whose V_C is then x and y.

order
    Every edge within a cluster is lighter than c.
stability
    No cut within a cluster pays once the clusters are found: q x + (s - q) y < s v for every edge. Necessary, too.
preference
    While three or more clusters hang together, some cut between them beats every cut within one of them.
progress
    While two or more clusters hang together, some cut between them does not lower DBCVI.

Two clusters need only the first two. docs/proofs/recovery.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering.dbcvi import dispersion, separation
from ptclust.clustering.dbmstclu import check_weights, rooted
from ptclust.errors import GraphError
from ptclust.theory import _recovery_kernel as kernel
from ptclust.theory._progress import least_progress
from ptclust.theory._progress_kernel import ClusterTree
from ptclust.theory.certificate import Condition, RecoveryCertificate
from ptclust.theory.partition import as_partition, is_cut

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ptclust.clustering import WeightedTree
    from ptclust.clustering.dbmstclu._kernel import RootedForest
    from ptclust.theory.partition import Partition

__all__ = ["certify_recovery"]


def certify_recovery(tree: WeightedTree, labels: ArrayLike) -> RecoveryCertificate:
    """Certify that DBMSTClu, run on this tree, returns exactly these clusters.

    Parameters
    ----------
    tree : Tree
        A connected tree with positive weights.
    labels : array_like of int
        The cluster of every node, numbered anyhow. Every node labelled -1, noise, is a cluster of its own.

    Returns
    -------
    RecoveryCertificate
        If it holds, ``dbmstclu(tree)`` makes exactly the cuts between clusters. If not, it may still do so.

    Notes
    -----
    Time is linear in the nodes, but for sorts of the clusters.

    *Privacy.* Reads the weights and tells about them: for the curator alone.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology(range(7), range(1, 8)), [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
    >>> print(certify_recovery(tree, [0, 0, 0, 0, 1, 1, 1, 1]).describe())
    Recovery of 2 clusters in 8 nodes is certified.
      partition holds: every cluster is one piece of the tree, and there are at least two
      order holds: edges within clusters are lighter than all edges across (margin 0.8889, edge 0)
      stability holds: no cut within a cluster pays once the clusters are found (margin 2.556, edge 0, cluster 0)
    """
    if tree.n_nodes - len(tree.weights) != 1:
        raise GraphError(
            f"a certificate is about one connected tree, not a forest of {tree.n_nodes - len(tree.weights)} "
            "components; certify each component by itself"
        )
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
        clusters = _Clusters.of(tree, partition, across)
        sweep = _Sweep.of(tree, partition)
        found += _conditions_within(tree, partition, clusters, sweep)
        if n_clusters > 2:
            found.append(_progress(tree, sweep))
    return RecoveryCertificate(tree.n_nodes, n_clusters, tuple(found))


@dataclass(frozen=True)
class _Clusters:
    """What the conditions know about clusters, besides their edges."""

    lightest: float  # c
    heaviest: float  # d
    size: NDArray[np.int64]
    validity: NDArray[np.float64]  # v_i

    @classmethod
    def of(cls, tree: WeightedTree, partition: Partition, across: NDArray[np.bool_]) -> _Clusters:
        weights = tree.weights[across]
        disp, sep = dispersion(tree, partition.cluster), separation(tree, partition.cluster)
        return cls(float(weights.min()), float(weights.max()), partition.sizes, 1 - disp / sep)

    @property
    def spread(self) -> float:
        """Return eta = 1 - c / d: V_C of clusters that hang together is between -eta and eta."""
        return 1 - self.lightest / self.heaviest


@dataclass(frozen=True)
class _Sweep:
    """The rooted tree, by preorder numbers, and what cuts within its clusters would leave of them."""

    forest: RootedForest
    cluster: NDArray[np.int64]
    sides: kernel.Sides

    @classmethod
    def of(cls, tree: WeightedTree, partition: Partition) -> _Sweep:
        forest, n = rooted(tree), tree.n_nodes
        sides = kernel.Sides(
            n_below=np.ones(n, np.int64),
            heaviest_below=np.zeros(n),
            heaviest_above=np.zeros(n),
            cuts_below=np.zeros(n, np.int64),
            within=np.zeros(n, np.bool_),
        )
        cluster = partition.cluster[forest.node]
        kernel.sweep_clusters(forest.parent, forest.weight, cluster, np.zeros(n), sides)
        return cls(forest, cluster, sides)

    @property
    def tops(self) -> NDArray[np.int64]:
        """Return the topmost node of every cluster: the clusters in preorder."""
        return np.flatnonzero(~self.sides.within)


def _order(tree: WeightedTree, across: NDArray[np.bool_]) -> Condition:
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
    q = sides.n_below[inner], size - sides.n_below[inner]
    x = (
        _validity(weight, sides.heaviest_below[inner]),
        _validity(weight, sides.heaviest_above[inner]),
    )

    def worst(name: str, margin: NDArray[np.float64]) -> Condition:
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


def _validity(
    separation: NDArray[np.float64], dispersion: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return V_C."""
    return (separation - dispersion) / np.maximum(separation, dispersion)


def _preference(
    clusters: _Clusters,
    home: NDArray[np.int64],
    weight: NDArray[np.float64],
    q: tuple[NDArray[np.int64], NDArray[np.int64]],
    x: tuple[NDArray[np.float64], NDArray[np.float64]],
    both: NDArray[np.bool_],
) -> NDArray[np.float64]:
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
    apart = worth + s1 * clusters.spread - n_nodes * np.maximum(0.0, weight / c - c / d)
    return np.where(both, np.minimum(margin, apart), margin)


def _smallest_others(
    values: NDArray[np.float64] | NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, for each of three clusters or more, the smallest and the second smallest value among the others."""
    order = np.argsort(values, kind="stable")[:3]
    first, second, third = values[order].astype(np.float64)
    is_first = np.arange(len(values)) == order[0]
    is_second = np.arange(len(values)) == order[1]
    return np.where(is_first, second, first), np.where(is_first | is_second, third, second)


def _progress(tree: WeightedTree, sweep: _Sweep) -> Condition:
    tops, forest, sides = sweep.tops, sweep.forest, sweep.sides
    rank = np.empty(len(tops), np.int64)
    rank[sweep.cluster[tops]] = np.arange(len(tops))
    clusters = ClusterTree(
        parent=rank[sweep.cluster[forest.parent[tops]]],
        weight=forest.weight[tops],
        size=sides.n_below[tops],
        heaviest=sides.heaviest_below[tops],
    )
    margin, below = least_progress(clusters)
    if math.isinf(margin):
        return Condition("progress", math.inf)
    return Condition("progress", margin, edge=int(tree.edge_ids[forest.edge[tops[below]]]))
