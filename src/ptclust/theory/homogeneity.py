"""The paper's homogeneous separability and homogeneity (section 3.2), over all trees at once.

A tree T is homogeneously separable by an edge s, H_T(s), if alpha_T max w < w(s), where alpha_T is
max w / min w over the edges of T. A cluster C is strongly homogeneous if T restricted to C is so by
every cut edge of C, for all spanning trees T; weakly, for all minimum spanning trees. So C fails if
one such tree holds edges a, b within C and e leaving C with w(a)^2 / w(b) >= w(e). The heaviest a,
the lightest b and the lightest e that occur in any tree decide, in both conditions
(docs/proofs/clusters.md). Comparisons are exact for the weights as they are stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ptclust._components import find, union
from ptclust._kernel import kernel
from ptclust._traces import guard_functions
from ptclust._types import Array, Bools, Floats
from ptclust.clustering import WeightedTree
from ptclust.clustering.dbcvi import positive_weights
from ptclust.graph import Graph
from ptclust.theory.partition import (
    VerdictByCluster,
    as_partition,
    edges_among,
    extremes,
    require,
)

Kind = Literal["weak", "strong"]


class ClusterHomogeneity(NamedTuple):
    """What decided for one cluster: it is homogeneous if heaviest^2 / lightest < crossing."""

    label: int  # as it was given; -1 for an unclustered node
    alpha: float  # the largest in any of the trees; 1 if the cluster has no edge
    heaviest: float  # edge within the cluster in any of the trees; 0 if it has none
    lightest: float  # edge within the cluster in any of the trees; infinite if it has none
    crossing: float  # lightest edge leaving the cluster in any of the trees; infinite if none does
    holds: bool


@dataclass(frozen=True, eq=False)
class Homogeneity(VerdictByCluster):
    """Which clusters are homogeneous, weakly or strongly; unclustered nodes come last."""

    kind: Kind
    alpha: Floats
    heaviest: Floats
    lightest: Floats
    crossing: Floats

    @property
    def records(self) -> tuple[ClusterHomogeneity, ...]:
        """All clusters."""
        numbers = self.alpha, self.heaviest, self.lightest, self.crossing
        columns = (each.tolist() for each in (self.labels, *numbers, self.cluster_holds))
        return tuple(map(ClusterHomogeneity._make, zip(*columns, strict=True)))

    @property
    def offenders(self) -> tuple[ClusterHomogeneity, ...]:
        """The clusters that are not."""
        return tuple(record for record in self.records if not record.holds)

    def describe(self) -> str:
        """Return the verdict in a few lines, with the numbers of the first offenders."""
        records = self.records

        def reason(k: int) -> str:
            _, ratio, heaviest, lightest, crossing, _ = records[k]
            within = f"heaviest {heaviest:.6g} and lightest {lightest:.6g} within"
            needed = f"{heaviest * ratio:.6g}, against a crossing edge of {crossing:.6g}"
            return f": {within}, so {needed}"

        return self._described(f"{self.kind}ly homogeneous", reason)


def homogeneously_separable(tree: WeightedTree, nodes: ArrayLike | None, s: float) -> bool:
    """Whether H_T(s) holds of the tree restricted to some nodes: alpha_T max w < w(s).

    ``nodes`` are node numbers, or None for all; without an edge there the condition holds. ``s`` is
    the weight w(s) of the separating edge. All weights are positive.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology([0, 1, 2], [1, 2, 3]), [0.25, 0.5, 1.5])
    >>> homogeneously_separable(tree, [0, 1, 2], 1.5), homogeneously_separable(tree, [0, 1, 2], 1.0)
    (True, False)
    """
    weights = positive_weights(tree, "homogeneous separability")
    require(0 < s < np.inf, "s must be the weight of an edge, a positive finite number")
    if nodes is not None:
        weights = weights[edges_among(nodes, tree)]
    ends = weights.max(initial=0.0), weights.min(initial=np.inf), s
    return bool(_is_separable(*map(np.atleast_1d, ends))[0])


def strong_homogeneity(graph: Graph, labels: ArrayLike) -> Homogeneity:
    """Decide for every cluster whether it is strongly homogeneous: H holds in all spanning trees.

    C is strongly homogeneous if and only if max^2 / min over all its edges is below every edge that
    leaves it. Weights are positive; of a disconnected graph, trees are spanning forests. Every node
    labelled -1 is a cluster of its own.

    >>> graph = Graph([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 2], [0.25, 0.5, 0.75, 0.25, 0.25, 0.5])
    >>> print(strong_homogeneity(graph, [0, 0, 0, 1, 1, 1]).describe())
    1 of 2 cluster(s) are not strongly homogeneous:
      cluster 0: heaviest 0.5 and lightest 0.25 within, so 1, against a crossing edge of 0.75
    """
    return _homogeneity("strong", graph, labels)


def weak_homogeneity(graph: Graph, labels: ArrayLike) -> Homogeneity:
    """Decide for every cluster whether it is weakly homogeneous: H in all minimum spanning trees.

    An edge is in some minimum spanning tree, or usable, if strictly lighter edges do not join its
    ends. C is weakly homogeneous if and only if max^2 / min over its usable edges is below every
    usable edge that leaves it. Parameters are those of ``strong_homogeneity``.

    >>> graph = Graph([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 2], [0.25, 0.25, 0.75, 0.25, 0.25, 0.5])
    >>> weak_homogeneity(graph, [0, 0, 0, 1, 1, 1]).holds
    True
    >>> strong_homogeneity(graph, [0, 0, 0, 1, 1, 1]).holds
    False
    """
    return _homogeneity("weak", graph, labels)


def _homogeneity(kind: Kind, graph: Graph, labels: ArrayLike) -> Homogeneity:
    weights = positive_weights(graph, "homogeneity")
    partition = as_partition(labels, graph.n_nodes)
    usable = np.ones(graph.n_edges, dtype=bool)
    if kind == "weak":
        parent = np.arange(graph.n_nodes, dtype=graph.sources.dtype)
        _find_usable(np.argsort(weights), graph.sources, graph.targets, weights, parent, usable)
    found = extremes(graph, partition, usable)
    with np.errstate(over="ignore"):
        alpha = np.where(found.heaviest > 0, found.heaviest / found.lightest, 1.0)
    return Homogeneity(partition.labels, _is_separable(*found), kind, alpha, *found)


def _is_separable(heaviest: Floats, lightest: Floats, s: Floats) -> Bools:
    """Whether heaviest^2 < s * lightest, in rationals; without an edge, 0 or infinity, it holds."""
    rows = zip(heaviest.tolist(), lightest.tolist(), s.tolist(), strict=True)
    holds = [
        math.isinf(b) or math.isinf(e) or Fraction(a) ** 2 < Fraction(e) * Fraction(b)
        for a, b, e in rows
    ]
    return np.array(holds, dtype=bool)


@kernel
def _find_usable(
    order: Array, sources: Array, targets: Array, weights: Floats, parent: Array, usable: Bools
) -> None:
    """Find the usable edges by Kruskal's algorithm, a class of equal weight at a time."""
    begin = 0
    while begin < len(order):
        end = begin
        weight = weights[order[begin]]
        while end < len(order) and weights[order[end]] == weight:
            edge = order[end]
            usable[edge] = find(parent, sources[edge]) != find(parent, targets[edge])
            end += 1
        for edge in order[begin:end]:
            a, b = find(parent, sources[edge]), find(parent, targets[edge])
            if a != b:
                union(parent, a, b)
        begin = end


guard_functions(__name__)
