"""Clusters of a noisy graph: many edges together say what no single one does.

Noise on one edge may be as large as the difference between edges within clusters and edges across.
A minimum spanning tree is made of single edges, those whose noise was smallest, and clusters cut
from it inherit that. The noise of the sum over all edges between two groups of nodes only grows
with the root of their number.

The method, for a graph or a cluster found in it:

1.  Fit two levels of weights, within and across, knowing the noise (``levels``).
2.  An edge then supports a common cluster of its ends, or not, by a log-likelihood ratio, its
    affinity. The partition with the largest sum of affinities within clusters is the likeliest.
    Which nodes found a cluster costs log binom(n, K) nats to say, which is taken off: its slope,
    log(n / K), is the price of a cluster.
3.  Search for that partition (``_partition_kernel``).
4.  Keep it only if the same weights permuted over the edges give no partition nearly as good: that
    is what they would be if they were independent of clusters. Join pairs of clusters for which
    the same cannot be said (``_evidence``).
5.  Look for clusters in every cluster: there may be more levels than two. In the end, join those
    found in one cluster that are but its light and heavy parts (``merge_unseparated``).
"""

from __future__ import annotations

from math import inf, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust.clustering.clusterer import Clusterer, Clustering, Cost
from ptclust.clustering.contraction._evidence import (
    Edges,
    Evidence,
    best_partition,
    is_clear,
    merge_unclear,
    merge_unseparated,
    select_penalty,
    sure_deviations,
)
from ptclust.clustering.contraction._partition_kernel import connected_pieces
from ptclust.clustering.levels import NoisyWeights, affinities, two_levels
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from ptclust._types import Ints
    from ptclust.mechanisms.mechanism import Publishes
    from ptclust.privacy.noise import Noise
    from ptclust.published import Published

__all__ = ["ContractionClusterer", "contract", "enough_edges_to_average"]

# Fewer nodes or edges hold no clusters that noise could not have made.
_SMALLEST = 4
# d (gap / deviation)^2 with d edges at a node: twice the 4 that two equal clusters with known
# levels need for any method to do better than chance (Deshpande, Abbe, Montanari 2017 for dense
# graphs), as levels are not known.
_DETECTABLE = 8.0
# At that limit a fifth of all edges is expected to be n / 5 squared deviations from chance. Of so
# many times as many nodes, what does not show there is none.
_LARGE = 20
# Deviations from chance, in such a graph, of a partition that has nothing to do with clusters.
_NOTHING = 2.0
# With this many times the edges of a tree, averages over edges say more than single ones.
_REDUNDANCY = 2


class ContractionClusterer(Clusterer):
    """Clusters of the whole published graph, by all edges between two groups of nodes."""

    name = "contraction"
    description = (
        "groups of nodes were joined by the summed evidence of all released weights between them, "
        "given the public noise"
    )
    needs = "graph"
    cost = Cost(500_000, 25, 1.25)

    def cluster(self, published: Published) -> Clustering:
        """Cluster the published graph."""
        graph, weights = published.topology, published.distances
        labels = contract(graph.sources, graph.targets, weights, graph.n_nodes, published.noise)
        return Clustering(labels)

    def visible_gap(self, n_nodes: int, n_edges: int, n_tree_edges: int | None = None) -> float:
        """Return the gap that averages see, if there are enough edges, and else that of one edge.

        An average sees about d edges of every node, d being the mean degree, and the two levels of
        m weights; the constants are measured
        (docs/decisions/0009-averaging-beats-single-edges.md).
        """
        n_tree_edges = n_nodes - 1 if n_tree_edges is None else n_tree_edges
        if not n_edges or not enough_edges_to_average(n_edges, n_tree_edges):
            return super().visible_gap(n_nodes, n_edges, n_tree_edges)
        return max(7.0 / sqrt(2.0 * n_edges / n_nodes), 8.0 / float(n_edges**0.25))

    def suits(self, publishes: Publishes, n_edges: int, n_tree_edges: int) -> bool:
        """Return whether all weights are released, and enough of them to average."""
        return publishes == "graph" and enough_edges_to_average(n_edges, n_tree_edges)


def enough_edges_to_average(n_edges: int, n_tree_edges: int) -> bool:
    """Return whether a release of all weights has enough of them to average the noise out."""
    return n_edges >= _REDUNDANCY * n_tree_edges


def contract(
    sources: ArrayLike, targets: ArrayLike, weights: ArrayLike, n_nodes: int, noise: Noise
) -> Ints:
    """Cluster the nodes of a graph whose weights were released with noise.

    Parameters
    ----------
    sources, targets : arrays of int
        The ends of every edge, from 0.
    weights : array of float
        Released weights, of any sign: small means close. Only differences matter.
    n_nodes : int
        Number of nodes.
    noise : Noise
        What was added to the weights. Its scale and shape are public.

    Returns
    -------
    array of int
        The cluster of every node, numbered by first appearance. Every cluster is connected; where
        weights show no clusters, these are the connected components. The same release gives the
        same labels. The work is near-linear in the number of edges, times a few searches.

    Examples
    --------
    >>> from ptclust.privacy.noise import Noise
    >>> random = np.random.default_rng(0)
    >>> a, b = np.triu_indices(40, 1)
    >>> true = np.where(a % 2 == b % 2, 0.2, 0.9)
    >>> noise = Noise("gaussian", scale=0.3, granularity=-40, n_values=len(a))
    >>> contract(a, b, true + random.normal(0, 0.3, len(a)), 40, noise)[:6]
    array([0, 1, 0, 1, 0, 1])
    """
    a, b, noisy = _checked(sources, targets, weights, n_nodes, noise)
    labels, outer = np.zeros((2, n_nodes), np.int64)
    todo, used = [_Part(np.arange(n_nodes), np.arange(len(a)), a, b)], 1
    while todo:
        part = todo.pop()
        found = _clusters_of(part, noisy, n_nodes)
        if found is None:
            continue
        labels[part.nodes] = used + found
        used += int(found.max()) + 1
        todo.extend(_parts(part, found))
        if len(part.nodes) == n_nodes:
            outer = labels.copy()
    pieces, _ = connected_pieces(a, b, labels)
    inner = np.flatnonzero(outer[a] == outer[b])
    return connected_pieces(a, b, merge_unseparated(a[inner], b[inner], noisy.at(inner), pieces))[0]


def _checked(
    sources: ArrayLike, targets: ArrayLike, weights: ArrayLike, n_nodes: int, noise: Noise
) -> tuple[Ints, Ints, NoisyWeights]:
    """Return the edges, without those that join a node to itself, which say nothing."""
    a, b = np.asarray(sources), np.asarray(targets)
    noisy = NoisyWeights.of(weights, noise)
    if not a.shape == b.shape == noisy.values.shape or a.ndim != 1:
        raise UsageError(
            "sources, targets and weights must be rows of one length, but have the shapes "
            f"{a.shape}, {b.shape} and {noisy.values.shape}"
        )
    a, b = a.astype(np.int64), b.astype(np.int64)
    for ends in (a, b):
        if len(ends) and not (ends.min() >= 0 and ends.max() < n_nodes):
            raise UsageError(
                f"nodes must be numbered 0 to {n_nodes - 1}, but the ends of edges are numbered "
                f"{ends.min()} to {ends.max()}"
            )
    joining = np.flatnonzero(a != b)
    return a[joining], b[joining], noisy.at(joining).without_outliers()


class _Part(NamedTuple):
    """Some of the nodes and all edges between them, which have numbers of their own here."""

    nodes: Ints  # of the graph
    edges: Ints  # of the graph
    sources: Ints  # by numbers of the part, as targets
    targets: Ints


def _parts(part: _Part, labels: Ints) -> Iterator[_Part]:
    """Yield the clusters of a part that are large enough to hold others."""
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    number = np.empty(len(labels), np.int64)
    starts = np.cumsum(sizes) - sizes
    number[order] = np.arange(len(labels)) - np.repeat(starts, sizes)
    own = labels[part.sources]
    within = np.flatnonzero(own == labels[part.targets])
    within = within[np.argsort(own[within], kind="stable")]
    n_edges = np.bincount(own[within], minlength=len(sizes))
    for members, edges in zip(
        np.split(order, starts[1:]), np.split(within, np.cumsum(n_edges)[:-1]), strict=True
    ):
        if len(members) >= _SMALLEST and len(edges) >= _SMALLEST:
            a, b = number[part.sources[edges]], number[part.targets[edges]]
            yield _Part(part.nodes[members], part.edges[edges], a, b)


def _clusters_of(part: _Part, noisy: NoisyWeights, n_all: int) -> Ints | None:
    """Return the clusters of a part, or None if it has none that are more than chance."""
    n_nodes, n_edges = len(part.nodes), len(part.edges)
    if n_nodes < _SMALLEST or n_edges < _SMALLEST:
        return None
    weights = noisy.at(part.edges)
    levels = two_levels(weights)
    if 2 * n_edges * levels.gap**2 <= _DETECTABLE * n_nodes * levels.variance:
        return None
    graph = Edges.of(part.sources, part.targets, n_nodes)
    evidence = Evidence(graph, affinities(weights, levels))
    sure = sure_deviations(n_all)
    is_large = n_nodes >= _LARGE * sure**2
    trial = select_penalty(evidence, _NOTHING if is_large else -inf)
    if is_large and trial.deviations < sure:
        return None
    evidence = evidence._replace(penalty=trial.penalty)
    labels, value = best_partition(evidence, start=trial.labels)
    _, n_components = connected_pieces(*graph[:2], np.zeros(n_nodes, np.int64))
    if labels.max() + 1 <= n_components:
        return None
    if trial.deviations >= sure or is_clear(value - log(n_all), evidence):
        return merge_unclear(evidence, labels, trial)
    return None
