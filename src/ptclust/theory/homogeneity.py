"""The paper's homogeneous separability, weak and strong homogeneity (section 3.2), decided over all trees at once.

A tree T is homogeneously separable by an edge s, H_T(s), if alpha_T max w < w(s), alpha_T = max w / min w over the
edges of T. A cluster C is strongly homogeneous if T restricted to C is so by every cut edge of C, for all spanning
trees T; weakly, for all minimum spanning trees. So C fails if one such tree holds edges a, b within C and e leaving C
with w(a)^2 / w(b) >= w(e). No tree need be enumerated to know which edges share one: the heaviest a, the lightest b and
the lightest e that occur in any tree decide, in both conditions (docs/proofs/clusters.md).

Every comparison is exact for the weights as they are stored: products in floating point decide unless they are equal,
and then rational arithmetic does. (Stored, 0.3^2 / 0.1 is below 0.9.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ptclust.errors import UsageError, WeightError
from ptclust.theory._arguments import node_numbers, positive_weights
from ptclust.theory._extremes import Ends, heaviest_of, lightest_of
from ptclust.theory._kruskal_kernel import find_usable
from ptclust.theory.partition import Partition, as_partition

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ptclust.clustering import WeightedTree
    from ptclust.graph import Graph

__all__ = [
    "ClusterHomogeneity",
    "Homogeneity",
    "alpha",
    "homogeneously_separable",
    "strong_homogeneity",
    "weak_homogeneity",
]

_LISTED = 10


@dataclass(frozen=True)
class ClusterHomogeneity:
    """What decided for one cluster: it is homogeneous if and only if heaviest^2 / lightest < crossing."""

    label: int
    """The cluster's label, as it was given; -1 for a node of noise."""
    alpha: float
    """The largest alpha of the cluster in any of the trees; 1 if it has no edge."""
    heaviest: float
    """Weight of the heaviest edge within the cluster in any of the trees; 0 if it has no edge."""
    lightest: float
    """Weight of the lightest edge within the cluster in any of the trees; infinite if it has no edge."""
    crossing: float
    """Weight of the lightest edge leaving the cluster in any of the trees; infinite if none does."""
    holds: bool

    def describe(self) -> str:
        """Return the numbers in a sentence."""
        needed = self.heaviest * _ratio(self.heaviest, self.lightest)
        return (
            f"cluster {self.label}: heaviest {self.heaviest:.6g} and lightest {self.lightest:.6g} within, so "
            f"{needed:.6g}, against a crossing edge of {self.crossing:.6g}"
        )


@dataclass(frozen=True, eq=False)
class Homogeneity:
    """Which clusters of a partition are homogeneous, weakly or strongly, and by which numbers; an entry a cluster."""

    kind: Literal["weak", "strong"]
    labels: NDArray[np.int64]
    """The clusters by ascending label; then the noise, a cluster a node, labelled -1."""
    alpha: NDArray[np.float64]
    heaviest: NDArray[np.float64]
    lightest: NDArray[np.float64]
    crossing: NDArray[np.float64]
    cluster_holds: NDArray[np.bool_]

    @property
    def holds(self) -> bool:
        """Whether all clusters are homogeneous."""
        return bool(self.cluster_holds.all())

    @property
    def offenders(self) -> tuple[ClusterHomogeneity, ...]:
        """The clusters that are not."""
        return tuple(self._record(k) for k in np.flatnonzero(~self.cluster_holds))

    @property
    def records(self) -> tuple[ClusterHomogeneity, ...]:
        """All clusters."""
        return tuple(self._record(k) for k in range(len(self.labels)))

    def describe(self) -> str:
        """Return the verdict in a few lines, with the numbers of the first offenders."""
        bad = np.flatnonzero(~self.cluster_holds)
        if not len(bad):
            return f"all {len(self.labels)} cluster(s) are {self.kind}ly homogeneous"
        lines = [f"{len(bad)} of {len(self.labels)} cluster(s) are not {self.kind}ly homogeneous:"]
        lines += [f"  {self._record(k).describe()}" for k in bad[:_LISTED]]
        if len(bad) > _LISTED:
            lines.append(f"  and {len(bad) - _LISTED} more")
        return "\n".join(lines)

    def _record(self, k: Any) -> ClusterHomogeneity:
        return ClusterHomogeneity(
            int(self.labels[k]),
            float(self.alpha[k]),
            float(self.heaviest[k]),
            float(self.lightest[k]),
            float(self.crossing[k]),
            bool(self.cluster_holds[k]),
        )


def alpha(weights: ArrayLike) -> float:
    """Return alpha_T, the heaviest over the lightest of a tree's weights: at least 1, and 1 if there is no edge.

    >>> alpha([0.25, 0.5, 0.125])
    4.0
    """
    values = np.asarray(weights, dtype=np.float64)
    if not ((values > 0) & np.isfinite(values)).all():
        raise WeightError("alpha is a ratio of weights: all must be positive and finite")
    return float(_ratio(values.max(initial=0.0), values.min(initial=np.inf)))


def homogeneously_separable(tree: WeightedTree, nodes: ArrayLike | None, s: float) -> bool:
    """Whether H_T(s) holds of the tree restricted to some nodes: alpha_T max w < w(s).

    Parameters
    ----------
    tree : Tree
        A tree, or forest, with positive weights.
    nodes : array_like of int or None
        The nodes, by number, to which the tree is restricted; None for all. Without an edge there the condition is
        about nothing, and holds.
    s : float
        The weight w(s) of the separating edge.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology([0, 1, 2], [1, 2, 3]), [0.25, 0.5, 1.5])
    >>> homogeneously_separable(tree, [0, 1, 2], 1.5), homogeneously_separable(tree, [0, 1, 2], 1.0)
    (True, False)
    """
    weights = positive_weights(tree, "homogeneous separability")
    if not 0 < s < np.inf:
        raise UsageError("s must be the weight of an edge, a positive finite number")
    if nodes is not None:
        chosen = np.zeros(tree.n_nodes, dtype=bool)
        chosen[node_numbers(nodes, tree.n_nodes)] = True
        weights = weights[chosen[tree.sources] & chosen[tree.targets]]
    heaviest, lightest = weights.max(initial=0.0), weights.min(initial=np.inf)
    return bool(_is_separable(np.array([heaviest]), np.array([lightest]), np.array([s]))[0])


def strong_homogeneity(graph: Graph, labels: ArrayLike) -> Homogeneity:
    """Decide for every cluster whether it is strongly homogeneous: H holds in all spanning trees, by their cuts.

    In a simple graph two edges within C and one that leaves it close no cycle, so some spanning tree holds all three: C
    is strongly homogeneous if and only if max^2 / min over all its edges is below every edge that leaves it. One pass
    over the edges.

    Parameters
    ----------
    graph : Graph
        A graph with positive weights; of a disconnected one, trees are spanning forests.
    labels : array_like of int
        The cluster of every node, numbered anyhow. Every node labelled -1, noise, is a cluster of its own.

    Notes
    -----
    *Privacy.* None: for the curator's own eyes.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> graph = Graph([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 2], [0.25, 0.5, 0.75, 0.25, 0.25, 0.5])
    >>> print(strong_homogeneity(graph, [0, 0, 0, 1, 1, 1]).describe())
    1 of 2 cluster(s) are not strongly homogeneous:
      cluster 0: heaviest 0.5 and lightest 0.25 within, so 1, against a crossing edge of 0.75
    """
    weights = positive_weights(graph, "homogeneity")
    partition = as_partition(labels, graph.n_nodes)
    ends = Ends.of(graph.sources, graph.targets, weights, partition)
    return _decided("strong", partition, ends)


def weak_homogeneity(graph: Graph, labels: ArrayLike) -> Homogeneity:
    """Decide for every cluster whether it is weakly homogeneous: H holds in all minimum spanning trees, by their cuts.

    An edge is in some minimum spanning tree, or usable, if strictly lighter edges do not join its ends. C is weakly
    homogeneous if and only if max^2 / min over its usable edges is below every usable edge that leaves it. That takes a
    lemma, for usable edges of one weight need not share a tree: those that would matter do. One pass of Kruskal's
    algorithm, O(m log m), however many minimum spanning trees there are.

    Parameters
    ----------
    graph : Graph
        A graph with positive weights; of a disconnected one, trees are spanning forests.
    labels : array_like of int
        The cluster of every node, numbered anyhow. Every node labelled -1, noise, is a cluster of its own.

    Notes
    -----
    *Privacy.* None: for the curator's own eyes.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> graph = Graph([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 2], [0.25, 0.25, 0.75, 0.25, 0.25, 0.5])
    >>> weak_homogeneity(graph, [0, 0, 0, 1, 1, 1]).holds
    True
    >>> strong_homogeneity(graph, [0, 0, 0, 1, 1, 1]).holds
    False
    """
    weights = positive_weights(graph, "homogeneity")
    partition = as_partition(labels, graph.n_nodes)
    usable = np.empty(graph.n_edges, dtype=bool)
    parent = np.arange(graph.n_nodes, dtype=graph.sources.dtype)
    find_usable(np.argsort(weights), graph.sources, graph.targets, weights, parent, usable)
    edges = np.flatnonzero(usable)
    ends = Ends.of(graph.sources[edges], graph.targets[edges], weights[edges], partition)
    return _decided("weak", partition, ends)


def _decided(kind: Literal["weak", "strong"], partition: Partition, ends: Ends) -> Homogeneity:
    n = partition.n_clusters
    heaviest, lightest = heaviest_of(n, *ends.within), lightest_of(n, *ends.within)
    crossing = lightest_of(n, *ends.leaving)
    return Homogeneity(
        kind=kind,
        labels=partition.labels,
        alpha=_ratio(heaviest, lightest),
        heaviest=heaviest,
        lightest=lightest,
        crossing=crossing,
        cluster_holds=_is_separable(heaviest, lightest, crossing),
    )


def _ratio(heaviest: Any, lightest: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.where(np.asarray(heaviest) > 0, np.divide(heaviest, lightest), 1.0)


def _is_separable(
    heaviest: NDArray[np.float64], lightest: NDArray[np.float64], s: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether heaviest^2 < s * lightest, exactly; 0 and infinity stand for no edge, of which it holds."""
    with np.errstate(over="ignore"):
        left, right = heaviest * heaviest, s * lightest
    # Rounding keeps order: what differs after it differed before, and the same way.
    holds: NDArray[np.bool_] = left < right
    missing = np.isinf(right) & (np.isinf(lightest) | np.isinf(s))
    same = heaviest == lightest
    holds = np.where(same, heaviest < s, holds | missing)
    for k in np.flatnonzero((left == right) & ~missing & ~same & (heaviest != s)):
        exact = [Fraction(float(x[k])) for x in (heaviest, lightest, s)]
        holds[k] = exact[0] ** 2 < exact[1] * exact[2]
    return holds
