"""Released weights as similarities on a compressed scale, and what the nodes alone make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._kernel import kernel
from ptclust.clustering.levels import NoisyWeights, affinities, two_levels

if TYPE_CHECKING:
    from ptclust._types import Array, Bools, Floats, Ints
    from ptclust.privacy.noise import Noise
    from ptclust.published import Published

# Shares of the smallest weights by which the background is sought, and how many.
_LEAST, _MOST, _SHARES = 3.0, 0.9, 40
# Standard errors by which a share of weights may be off.
_SURE = 2.0
# Rounds of fitting sizes to nodes, and how far each goes; the rest is far below the noise.
_ROUNDS, _QUICK_ROUNDS, _STEP = 25, 8, 0.6
#: The part of all weights by which expectations may be off.
CLOSE = 1e-3
# A node has at least this part of the mean weight: noise makes some weights negative.
_SMALLEST = 0.02


class Edges(NamedTuple):
    """The edges of a graph and their released weights, as similarities above the background."""

    sources: Ints
    targets: Ints
    n_nodes: int
    similarity: Floats
    unit: float
    """The mean similarity, or the deviation of the noise if that is larger."""
    distance: Floats
    """The released weights as distances, in their own unit, as the noise is."""
    noise: Noise
    is_complete: bool
    """Whether nearly all pairs are joined, so that the topology says nothing."""

    @classmethod
    def of(cls, published: Published) -> Edges:
        """Return the edges without those that join a node to itself, which say nothing."""
        graph = published.topology
        a, b, distance = graph.sources, graph.targets, published.distances
        joins = a != b
        if not joins.all():
            a, b, distance = a[joins], b[joins], distance[joins]
        noisy = NoisyWeights.of(distance, published.noise)
        similarity = -noisy.values
        similarity -= background(similarity, noisy.deviation, published.noise)
        unit = max(float(similarity.mean()), noisy.deviation) if len(a) else 0.0
        n_pairs = graph.n_nodes * (graph.n_nodes - 1) // 2
        is_complete = 10 * len(a) > 9 * n_pairs
        return cls(a, b, graph.n_nodes, similarity, unit, distance, published.noise, is_complete)

    @property
    def noise_share(self) -> float:
        """The part of noise in the variance of the weights."""
        variance = float(np.var(self.distance / max(self.noise.standard_deviation, 1e-300)))
        return min(1.0 / max(variance, 1e-300), 1.0)

    def compressed(self, times: float) -> Floats:
        """Return similarities that grow by their logarithm beyond so many units."""
        if not self.unit > 0:
            return np.zeros(len(self.similarity))
        scaled = self.similarity / (times * self.unit)
        return np.arcsinh(scaled, out=scaled)

    def at_nodes(self, values: Floats) -> Floats:
        """Return the sum of the values of the edges at every node."""
        return sums_at(self.sources, values, self.n_nodes) + sums_at(
            self.targets, values, self.n_nodes
        )

    def exchanged(self, group: Array, random: np.random.Generator) -> Edges:
        """Return the edges with the weights of others of the same group, in random order."""
        to, mixed = np.argsort(group, kind="stable"), random.permutation(len(group))
        of = mixed[np.argsort(group[mixed], kind="stable")]
        similarity, distance = np.empty_like(self.similarity), np.empty_like(self.distance)
        similarity[to], distance[to] = self.similarity[of], self.distance[of]
        return self._replace(similarity=similarity, distance=distance)

    def at(self, edges: Ints | Bools) -> Edges:
        """Return some of the edges, by number, or by whether each is one of them."""
        a, b = self.sources[edges], self.targets[edges]
        return self._replace(
            sources=a,
            targets=b,
            similarity=self.similarity[edges],
            distance=self.distance[edges],
        )


@kernel
def sums_at(nodes: Array, values: Array, n_nodes: int) -> Floats:
    """Do what ``np.bincount`` does with values, which makes wide copies of narrow nodes."""
    sums = np.zeros(n_nodes)
    for edge in range(len(nodes)):
        sums[nodes[edge]] += values[edge]
    return sums


def background(values: Floats, deviation: float, noise: Noise) -> float:
    """Return the largest level that no true value need be below.

    If all true values are at least b, then at most a share q of the noisy ones is below b plus the
    q-quantile of the noise, for every q.

    >>> from ptclust.privacy.noise import Noise
    >>> noise = Noise("gaussian", scale=1.0, granularity=-40, n_values=10_000)
    >>> random = np.random.default_rng(0)
    >>> values = np.repeat([5.0, 100.0], 5000) + random.normal(0, 1, 10_000)
    >>> round(background(values, 1.0, noise))
    5
    """
    if not len(values):
        return 0.0
    shares = np.geomspace(min(_LEAST / len(values), _MOST), _MOST, _SHARES)
    error = _SURE * np.sqrt(shares * (1 - shares) / len(values))
    below = standard_quantiles(noise, np.maximum(shares - error, shares / 4))
    ranks = np.minimum((shares * len(values)).astype(np.int64), len(values) - 1)
    return float(np.min(np.partition(values, ranks)[ranks] - deviation * below))


def standard_quantiles(noise: Noise, shares: Floats) -> Floats:
    """Return quantiles of the noise in units of its standard deviation."""
    from scipy.special import ndtri

    quantiles: Floats
    if noise.distribution == "laplace":
        tail = np.log(2 * np.minimum(shares, 1 - shares)) / np.sqrt(2)
        quantiles = np.where(shares < 0.5, tail, -tail)
    else:
        quantiles = ndtri(shares)
    return quantiles


def node_sizes(edges: Edges, weights: Floats) -> Floats:
    """Return the sizes of the nodes that explain compressed weights best if nothing else does.

    They are such that the expectation, arcsinh(size u * size v), agrees with the weights in the
    mean over the edges at every node. Sizes of nodes with few edges are drawn towards the common
    one, by as many edges of mean weight as empirical Bayes asks for.
    """
    a, b = edges.sources, edges.targets
    wanted, prior, common = _wanted(edges, weights)
    size = np.full(edges.n_nodes, common)
    for _ in range(_ROUNDS):
        fitted = edges.at_nodes(np.arcsinh(size[a] * size[b])) + prior * np.arcsinh(size * common)
        size = np.clip(size * (wanted / fitted) ** _STEP, 1e-6, 1e6)
    return size


def quick_sizes(edges: Edges, weights: Floats) -> Floats:
    """Return about the same in fewer rounds, each of them one sweep over the edges."""
    wanted, prior, common = _wanted(edges, weights)
    return fit_sizes(edges.sources, edges.targets, wanted, prior, common, _QUICK_ROUNDS)


@kernel
def fit_sizes(
    sources: Array, targets: Array, wanted: Floats, prior: float, common: float, rounds: int
) -> Floats:
    """Do what ``node_sizes`` does, for so many rounds, or until expectations agree with weights."""
    size = np.full(len(wanted), common)
    close = CLOSE * np.abs(wanted).sum()
    for _ in range(rounds):
        fitted = prior * np.arcsinh(size * common)
        for edge in range(len(sources)):
            a, b = sources[edge], targets[edge]
            product = size[a] * size[b]
            expected = np.log(product + np.sqrt(product * product + 1.0))  # arcsinh, if positive
            fitted[a] += expected
            fitted[b] += expected
        if np.abs(fitted - wanted).sum() <= close:
            break
        size = np.minimum(np.maximum(size * (wanted / fitted) ** _STEP, 1e-6), 1e6)
    return size


def _wanted(edges: Edges, weights: Floats) -> tuple[Floats, float, float]:
    """Return what the expectations at every node are to sum to, with pseudo-edges to a common size.

    And how many of these, and that size.
    """
    a = edges.sources
    degree, total = edges.at_nodes(np.ones(len(a))), edges.at_nodes(weights)
    mean, variance = max(float(weights.mean()), 1e-9), float(weights.var()) + 1e-12
    spread = np.sum(degree * (total / np.maximum(degree, 1) - mean) ** 2 - variance * (degree > 0))
    prior = variance / max(spread / degree.sum(), 1e-6 * variance)
    wanted = np.maximum(total + prior * mean, _SMALLEST * (degree + prior) * mean)
    return wanted, prior, float(np.sqrt(np.sinh(mean)))


def expected_by_size(edges: Edges, size: Floats) -> Floats:
    """Return the compressed weights that are expected of nodes of these sizes."""
    expected: Floats = np.arcsinh(size[edges.sources] * size[edges.targets])
    return expected


def ratios_of_two_levels(edges: Edges) -> Floats:
    """Return the log-likelihood ratio of every edge for the level of edges within clusters."""
    noisy = NoisyWeights.of(edges.distance, edges.noise).without_outliers()
    return affinities(noisy, two_levels(noisy))
