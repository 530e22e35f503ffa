"""Theorem D: the private tree has a partitioning topology, every cluster in one piece, with high probability.

Three forms. The paper prints one in its text and another in its supplement; both are false, and docs/proofs/bounds.md
says where their proof breaks and proves the third, *corrected* one, for PAMST and Kruskal alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptclust.errors import GraphError
from ptclust.theory._arguments import positive_weights
from ptclust.theory.partition import as_partition
from ptclust.theory.selection import check_exponent, paper_exponent

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ptclust.graph import Graph
    from ptclust.privacy.exponential import TreeCalibration

__all__ = ["TheoremD", "partitioning_probability", "theorem_d"]


@dataclass(frozen=True)
class TheoremD:
    """What the three forms of Theorem D say of the probability of a partitioning topology: each "at least".

    The printed forms are reported as they come out; below 0 they say nothing.
    """

    exponent: float
    """c of the mechanism, epsilon / (2 Delta_u (n - 1))."""
    printed: float
    """The form of the text, with log|E| inside A. False."""
    supplement: float
    """The form of the supplement, with log|E| outside. False, too."""
    corrected: float
    """What holds; see ``partitioning_probability``."""


def partitioning_probability(
    graph: Graph, labels: ArrayLike, exponent: float | TreeCalibration
) -> float:
    """Return a lower bound on the probability that a tree drawn by PAMST or Kruskal keeps every cluster in one piece.

    It is the product over clusters i of (1 + x_i)^-(n_i - 1), where n_i is the size of the cluster and
    x_i = sum over its boundary edges e of exp(-c (w(e) - b_i)), b_i being the heaviest edge of the minimum
    spanning tree of the cluster. It is at least 1 - sum_i (n_i - 1) m_i exp(-c gap_i), with m_i boundary edges that
    are heavier than b_i by gap_i or more.

    Parameters
    ----------
    graph : Graph
    labels : array_like of int
        The cluster of every node. Every cluster must be connected in the graph.
    exponent : float or TreeCalibration
        c, where an edge is selected with probability proportional to exp(-c w).

    Notes
    -----
    *Privacy.* None: the bound is computed from raw weights. For the curator's own eyes.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> graph = Graph([0, 1, 2, 3], [1, 2, 3, 0], [0.1, 0.8, 0.2, 0.9])
    >>> round(partitioning_probability(graph, [0, 0, 1, 1], exponent=10.0), 4)
    0.9954
    """
    c = exponent if isinstance(exponent, int | float) else exponent.exponent
    check_exponent(c)
    clusters = _Clusters(graph, labels)
    log_x = np.full(clusters.n_clusters, -np.inf)
    for ends in (graph.sources, graph.targets):
        cluster = clusters.labels[ends[clusters.cross]]
        gaps = graph.weights[clusters.cross] - clusters.bottleneck[cluster]
        with np.errstate(under="ignore"):
            np.logaddexp.at(log_x, cluster, -c * gaps)
    # A cluster of a single node is never torn, and its bottleneck is no number.
    several = clusters.sizes > 1
    log_terms = np.logaddexp(0.0, log_x[several]) * (clusters.sizes[several] - 1)
    return float(np.exp(-log_terms.sum()))


def theorem_d(
    graph: Graph, labels: ArrayLike, *, epsilon: float, utility_sensitivity: float
) -> TheoremD:
    """Return all three forms of Theorem D for the paper's PAMST.

    Parameters
    ----------
    graph : Graph
        Connected, with positive weights.
    labels : array_like of int
        The cluster of every node, each connected in the graph.
    epsilon, utility_sensitivity : float
        The paper's epsilon, and its Delta_u: 2 mu.

    Notes
    -----
    *Privacy.* None: the bounds are computed from raw weights. For the curator's own eyes.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> graph = Graph([0, 1, 2, 3], [1, 2, 3, 0], [0.1, 0.8, 0.2, 0.9])
    >>> theorem_d(graph, [0, 0, 1, 1], epsilon=6.0, utility_sensitivity=0.25).exponent
    4.0
    """
    if graph.topology.n_components != 1:
        raise GraphError(
            f"Theorem D is about a connected graph, and this one has {graph.topology.n_components} components; look "
            "at each by itself"
        )
    positive_weights(graph, "Theorem D")
    steps = graph.n_nodes - 1
    c = paper_exponent(epsilon, utility_sensitivity, steps)
    clusters = _Clusters(graph, labels)
    several = clusters.sizes > 1
    # Any two edges of a simple graph lie in one spanning tree, so alpha_i is a ratio over all edges of the cluster.
    largest, smallest = clusters.heaviest[several], clusters.lightest[several]
    gap = largest**2 / smallest - smallest
    n_steps = clusters.sizes[several] - 1
    log_m = np.log(graph.n_edges)
    inside = np.exp(-(epsilon * gap + log_m) / (2.0 * utility_sensitivity * steps))
    outside = np.exp(-c * gap + log_m)
    return TheoremD(
        exponent=c,
        printed=1.0 - float(n_steps @ inside),
        supplement=1.0 - float(n_steps @ outside),
        corrected=partitioning_probability(graph, labels, c),
    )


class _Clusters:
    """What the bounds need to know of the clusters of a graph."""

    def __init__(self, graph: Graph, labels: ArrayLike) -> None:
        from ptclust.graph import Graph
        from ptclust.trees import minimum_spanning_tree

        partition = as_partition(labels, graph.n_nodes)
        self.labels, self.sizes = partition.cluster, partition.sizes
        self.n_clusters = partition.n_clusters
        a, b = self.labels[graph.sources], self.labels[graph.targets]
        self.cross = a != b
        within = np.flatnonzero(~self.cross)
        inner = Graph(
            graph.sources[within],
            graph.targets[within],
            graph.weights[within],
            n_nodes=graph.n_nodes,
        )
        forest = minimum_spanning_tree(inner)
        if forest.n_edges != graph.n_nodes - self.n_clusters:
            torn = inner.topology.n_components - self.n_clusters
            raise GraphError(
                f"the clusters fall into {torn} pieces more than there are clusters; every cluster must be connected "
                "by edges of its own"
            )
        self.bottleneck = np.full(self.n_clusters, -np.inf)
        np.maximum.at(self.bottleneck, self.labels[forest.sources], forest.weights)
        self.bottleneck[self.sizes == 1] = 0.0
        self.heaviest = np.full(self.n_clusters, -np.inf)
        self.lightest = np.full(self.n_clusters, np.inf)
        np.maximum.at(self.heaviest, a[within], inner.weights)
        np.minimum.at(self.lightest, a[within], inner.weights)
