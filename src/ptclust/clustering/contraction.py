"""Clusters of a noisy graph: many edges together say what no single one does.

Noise on a single edge may be as large as the difference between edges within clusters and edges across. A minimum
spanning tree is made of single edges, those whose noise was smallest, and clusters cut from it inherit that. The sum
over all edges between two groups of nodes is another matter: its noise grows with the root of their number only.

The method, for a graph or a cluster found in it:

1.  Fit two levels of weights, within and across, knowing the noise (``levels``).
2.  An edge then speaks for, or against, a common cluster of its ends by a log-likelihood ratio, its affinity. The
    partition with the largest sum of affinities within clusters is the likeliest. Which nodes found a cluster costs
    log binom(n, K) nats to say, which is taken off: its slope, log(n / K), is the price of a cluster.
3.  Search for that partition (``_partition_kernel``).
4.  Keep it only if the same weights put on the edges at random give no partition nearly as good: that is what they
    would be if they did not know of clusters.
5.  Look for clusters in every cluster: there may be more levels than two.
"""

from __future__ import annotations

from math import lgamma, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptclust._union_find import label_components
from ptclust.clustering._moves_kernel import (
    Neighbours,
    agreement_within,
    connected_pieces,
    move_nodes,
    neighbours_of,
)
from ptclust.clustering._partition_kernel import UNAFFORDABLE, search_partition
from ptclust.clustering.levels import NoisyWeights, affinities, two_levels
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from ptclust.privacy import Noise

__all__ = ["contract"]

# Fewer nodes or edges hold no clusters that noise could not have made.
_SMALLEST = 4
# d (gap / deviation)^2 with d edges at a node. Of two equal clusters and known levels it must exceed 4 for any method
# to tell where a node belongs better than by chance (Deshpande et al. 2017); twice that, as levels are not known.
_DETECTABLE = 8.0
# Within a cluster, levels closer than this many deviations of the true weights are no levels but a spread.
_APART = 4.0
# Times the weights are put on the edges at random, at most; and from how many on the answer may be clear.
_PERMUTATIONS, _FEWEST = 8, 3
# Chance, about, that weights which know of no clusters pass for such that do.
_ERROR = 1e-4


def contract(
    sources: ArrayLike, targets: ArrayLike, weights: ArrayLike, n_nodes: int, noise: Noise
) -> NDArray[np.int64]:
    """Cluster the nodes of a graph whose weights were released with noise.

    Parameters
    ----------
    sources, targets : arrays of int
        The ends of every edge, from 0.
    weights : array of float
        Released weights, of any sign: small means close. Only differences matter, in units of the noise.
    n_nodes : int
        Number of nodes.
    noise : Noise
        What was added to the weights. Its scale and shape are public.

    Returns
    -------
    array of int
        The cluster of every node, numbered by first appearance. Every cluster is connected; where weights show no
        clusters, these are the connected components. The same release gives the same labels.

    Notes
    -----
    Post-processing: nothing is looked at but the release. The work is near-linear in the number of edges, times the
    few searches that it takes to tell clusters from chance.

    Examples
    --------
    >>> from ptclust.privacy import Noise
    >>> random = np.random.default_rng(0)
    >>> a, b = np.triu_indices(40, 1)
    >>> true = np.where(a % 2 == b % 2, 0.2, 0.9)
    >>> noise = Noise("gaussian", scale=0.5, granularity=-40, n_values=len(a))
    >>> contract(a, b, true + random.normal(0, 0.5, len(a)), 40, noise)[:6]
    array([0, 1, 0, 1, 0, 1])
    """
    a, b = np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64)
    noisy = NoisyWeights.of(weights, noise)
    if not a.shape == b.shape == noisy.values.shape or a.ndim != 1:
        raise UsageError(
            f"sources, targets and weights must be rows of one length, but have the shapes {a.shape}, {b.shape} and "
            f"{noisy.values.shape}"
        )
    whole = _Part(np.arange(n_nodes), np.arange(len(a)), a, b, 0)
    labels = np.arange(n_nodes)
    label_components(a, b, labels)
    todo = [whole]
    while todo:
        part = todo.pop()
        found = _clusters_of(part, noisy, n_nodes)
        if found is not None:
            labels[part.nodes] = n_nodes + part.nodes[np.unique(found, return_index=True)[1]][found]
            todo.extend(_parts(part, found))
    return (
        connected_pieces(a, b, np.unique(labels, return_inverse=True)[1])[0] if n_nodes else labels
    )


class _Part(NamedTuple):
    """Some of the nodes and all edges between them, which have numbers of their own here."""

    nodes: NDArray[np.int64]  # of the graph
    edges: NDArray[np.int64]  # of the graph
    sources: NDArray[np.int64]  # by numbers of the part, as targets
    targets: NDArray[np.int64]
    depth: int


def _parts(part: _Part, labels: NDArray[np.int64]) -> Iterator[_Part]:
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
            yield _Part(part.nodes[members], part.edges[edges], a, b, part.depth + 1)


def _clusters_of(part: _Part, noisy: NoisyWeights, n_all: int) -> NDArray[np.int64] | None:
    """Return the clusters of a part, or None if it has none that are more than chance."""
    n_nodes, n_edges = len(part.nodes), len(part.edges)
    if n_nodes < _SMALLEST or n_edges < _SMALLEST:
        return None
    weights = noisy.at(part.edges)
    levels = two_levels(weights)
    if 2 * n_edges * levels.gap**2 <= _DETECTABLE * n_nodes * levels.variance:
        return None
    if part.depth > 0 and levels.gap <= _APART * levels.spread(weights):
        return None
    graph = _Graph(part.sources, part.targets, neighbours_of(part.sources, part.targets, n_nodes))
    affinity = affinities(weights, levels)
    labels, value = _best_partition(graph, affinity)
    whole = connected_pieces(graph.sources, graph.targets, np.zeros(n_nodes, np.int64))[1]
    if labels.max() + 1 > whole and _is_clear(value - log(n_all), graph, affinity):
        return _clearly_apart(part, graph, affinity, labels)
    return None


def _clearly_apart(part, graph, affinity, labels):
    for _ in range(5):
        joined = _join_unclear(part, affinity, labels)
        if joined is labels:
            break
        labels = joined
        move_nodes(graph.neighbours, affinity, labels, UNAFFORDABLE)
        labels, _ = connected_pieces(graph.sources, graph.targets, labels)
    return labels


def _join_unclear(part, affinity, labels):
    clear = set()
    k = int(labels.max()) + 1
    while True:
        a, b = labels[part.sources], labels[part.targets]
        across = a != b
        key = np.minimum(a, b)[across] * k + np.maximum(a, b)[across]
        pairs, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
        if len(np.unique(labels)) <= 2: return labels
        total = np.bincount(inverse, affinity[across])
        z = total / np.sqrt(count)
        first, second = pairs // k, pairs % k
        best = np.full(k, -np.inf)
        np.maximum.at(best, first, z); np.maximum.at(best, second, z)
        cand = np.flatnonzero((z == best[first]) | (z == best[second]))
        for i in cand[np.argsort(-z[cand], kind="stable")]:
            if int(pairs[i]) in clear: continue
            members = np.flatnonzero((labels == first[i]) | (labels == second[i]))
            if -total[i] > len(members) * log(2) - log(_ERROR):
                clear.add(int(pairs[i])); continue
            number = np.full(len(labels), -1); number[members] = np.arange(len(members))
            edges = np.flatnonzero((number[part.sources] >= 0) & (number[part.targets] >= 0))
            sa, sb = number[part.sources[edges]], number[part.targets[edges]]
            sub = _Graph(sa, sb, neighbours_of(sa, sb, len(members)))
            lab = (labels[members] == first[i]).astype(np.int64)
            value = agreement_within(sa, sb, affinity[edges], lab) - _log_binomial(len(members), 2)
            if _is_clear(value, sub, affinity[edges]):
                clear.add(int(pairs[i]))
            else:
                labels = np.where(labels == second[i], first[i], labels)
                clear = {c for c in clear if first[i] not in (c // k, c % k) and second[i] not in (c // k, c % k)}
                break
        else:
            return labels


class _Graph(NamedTuple):
    """Edges, and those at every node."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    neighbours: Neighbours


def _best_partition(
    graph: _Graph, affinity: NDArray[np.float64]
) -> tuple[NDArray[np.int64], float]:
    """Return the best partition found, and its value: the affinities within, less log binom(n, K).

    The price of a cluster, log(n / K), depends on the answer; the first guess is K about the root of n.
    """
    n_nodes = len(graph.neighbours.start) - 1
    best: tuple[Any, float] = None, -np.inf
    price = log(n_nodes) / 2
    for _ in range(2):
        labels, _ = search_partition(*graph, affinity, price)
        n_clusters = int(labels.max()) + 1
        value = agreement_within(graph.sources, graph.targets, affinity, labels)
        value -= _log_binomial(n_nodes, n_clusters)
        if value > best[1]:
            best = labels, value
        price = log(n_nodes / n_clusters)
    return best


def _log_binomial(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _is_clear(value: float, graph: _Graph, affinity: NDArray[np.float64]) -> bool:
    """Return whether weights put on the edges at random give no partition of such a value.

    Values of random weights are about normal, so a further one exceeds ``value`` with a chance that Student's
    distribution tells. If one of them does exceed it, then more of them will not make it clear either.
    """
    from scipy.special import stdtrit

    random = np.random.default_rng(0)  # the same release gives the same labels
    seen: list[float] = []
    while len(seen) < _PERMUTATIONS:
        seen.append(_best_partition(graph, random.permutation(affinity))[1])
        if seen[-1] >= value:
            return False
        n_seen = len(seen)
        if n_seen >= _FEWEST:
            deviations = float(stdtrit(n_seen - 1, 1 - _ERROR)) * sqrt(1 + 1 / n_seen)
            if value > np.mean(seen) + deviations * np.std(seen, ddof=1):
                return True
    return False
