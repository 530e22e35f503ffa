"""Cuts of a noisy tree: edges that are significantly heavy, given the size of the noise.

DBMSTClu cuts outliers among single edges, and noise makes outliers. Here the size and shape of the
noise are known. Where many edges are heavy they form a level of their own: released weights are a
mixture of two modes, edges within and across clusters, which the noise may have merged into one,
and an edge is cut if its log-likelihood ratio for the heavy level exceeds the log of how rare heavy
edges are. Where few are, each has to be an outlier by itself: an edge is cut if one level with a
tail, plus noise, has such a weight with small probability. Even cuts are few and most edges are
leaf edges, so heavy leaf edges are far more often due to chance; both rules require less of an even
cut. For a graph that was released whole, prefer ``communities``, which averages over edges.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._kernel import kernel
from ptclust.clustering.clusterer import Clusterer, Clustering, Cost, Cuts
from ptclust.clustering.dbmstclu import dbmstclu, label_pieces, rooted
from ptclust.clustering.normalise import Reweighted, shifted
from ptclust.errors import WeightError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ptclust._types import Bools, Floats, Ints
    from ptclust.clustering.dbcvi import WeightedTree
    from ptclust.clustering.dbmstclu._kernel import RootedForest
    from ptclust.privacy.noise import Noise
    from ptclust.published import Published

# Fewer edges show no levels.
_FEWEST_EDGES = 8
# Levels closer than this many standard deviations of the true weights are but a spread: a uniform
# stretch of weights that is cut in two gives 12^(1/2) = 3.5, a normal hump 2.7.
_APART = 4.0
# Levels this many deviations of the noisy weights apart show as humps, not only as a spread.
_HUMPS = 3.0
# Of a hundred trees without clusters, about one may be cut because an edge stands out by chance.
_FALSE = 0.01
# Noise below this part of the variance is negligible: DBMSTClu decides where no levels show, ...
_NEGLIGIBLE = 0.2
# ... and below this part every single edge can be trusted, which is what DBMSTClu was made for.
_NO_MATTER = 1e-4
# Noise so many times larger than all differences of weights drowns them; its square is a float.
_DROWNED = 1e100
# The least variance, as part of that of the weights: exact levels would have none.
_LEAST_PART = 1e-6

# Two levels: bins are far narrower than noise that matters. Climbs start from these shares of the
# low level, few or many edges within; after the first rounds only the likeliest go on, until a
# round adds less than ``_ENOUGH`` to the log-likelihood per weight. A level that explains less than
# ``_NOTHING`` of the weights explains none.
_LEVEL_BINS, _STARTS = 512, (0.02, 0.15, 0.3, 0.5, 0.7, 0.85, 0.98)
_FIRST_ROUNDS, _FINALISTS, _LAST_ROUNDS = 40, 2, 260
_ENOUGH, _NOTHING = 1e-7, 1e-9
# One level with a tail: bins, and trials of tail and place; finer ones change little.
_BINS, _TAILS, _PLACES = 256, np.linspace(0.02, 0.999, 40), np.linspace(-0.3, 0.3, 13)


class NoisyWeights(NamedTuple):
    """Released weights and what is known of their noise."""

    values: Floats
    deviation: float
    """Standard deviation of the noise."""
    is_laplace: bool
    """Whether the noise is Laplace; it is taken to be Gaussian otherwise."""

    @classmethod
    def of(cls, weights: ArrayLike, noise: Noise) -> NoisyWeights:
        """Return the weights from 0 to about 1, so that no square overflows and none vanishes.

        No cluster depends on shift or unit. The unit is a power of two, so that it rounds nothing.
        """
        values = np.array(weights, dtype=np.float64)
        if not np.isfinite(values).all():
            raise WeightError(
                "some released weights are NaN or infinite, which noise does not make of a weight: "
                "read the release again, or make another"
            )
        deviation = noise.standard_deviation
        for _ in range(2):  # what is large at first may be a common shift
            largest = max(-values.min(initial=0.0), values.max(initial=0.0))
            _, exponent = np.frexp(largest)
            np.ldexp(values, -exponent, out=values)
            deviation = np.ldexp(deviation, -exponent)
            values -= values.min(initial=np.inf if len(values) else 0.0)
        deviation = min(float(deviation), _DROWNED)
        return cls(values, deviation, noise.law.has_exponential_tails)

    def at(self, edges: Ints) -> NoisyWeights:
        """Return those of some edges."""
        return self._replace(values=self.values[edges])


class Levels(NamedTuple):
    """Two levels that explain weights."""

    log_likelihood: float
    share: float
    """Part of the weights on the low level."""
    low: float
    high: float
    variance: float
    """Of weights about their level: that of the noise plus that of the true weights."""

    @property
    def gap(self) -> float:
        """How far the levels are apart."""
        return self.high - self.low

    def spread(self, weights: NoisyWeights) -> float:
        """Return the standard deviation of the true weights about their level."""
        return float(np.sqrt(max(self.variance - weights.deviation**2, 0.0)))


class LevelsClusterer(Clusterer):
    """Cuts of the published tree that account for the noise on its weights."""

    name = "levels"
    description = (
        "the released tree was cut at weights of the upper of two levels, or that stand out, "
        "given the public noise"
    )
    needs = "tree"
    cost = Cost(800_000, 40, 1.0)

    def cluster(self, published: Published) -> Clustering:
        """Cut the published tree."""
        tree = Reweighted(published.tree, published.tree.distances)
        return cut_levels(tree, published.noise)


def cut_levels(tree: WeightedTree, noise: Noise) -> Clustering:
    """Cluster the nodes of a tree whose weights were released with noise.

    The whole tree is cut by its two levels, or, if they do not fit, at outlying edges. The pieces
    that cuts leave are searched again for outliers. If there are none in the whole tree, it stays
    whole unless noise is negligible; then DBMSTClu cuts it. DBMSTClu also cuts where there is next
    to no noise at all.

    Parameters
    ----------
    tree : Tree
        A tree, or forest, with released weights of any sign.
    noise : Noise
        What was added to the weights. Its scale and shape are public.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.privacy.noise import Noise
    >>> from ptclust.trees import Tree
    >>> random = np.random.default_rng(0)
    >>> true = np.full(99, 0.1)
    >>> true[[32, 65]] = 0.9
    >>> tree = Tree(Topology(range(99), range(1, 100)), true + random.normal(0, 0.05, 99))
    >>> cut_levels(tree, Noise("gaussian", scale=0.05, granularity=-40, n_values=99)).cuts.edge_ids
    array([32, 65])
    """
    weights = NoisyWeights.of(tree.weights, noise)
    if _noise_is_below(_NO_MATTER, weights):
        return _by_dbmstclu(tree, noise)
    forest = rooted(tree)
    is_cut = np.zeros(len(weights.values), dtype=bool)
    sides = smaller_sides(forest, is_cut)
    levels = _levels_of(weights)
    if levels is not None:
        is_cut = affinities(weights, levels) < -_price(sides, levels)
    else:
        is_cut = _stands_out(weights, sides, tree.n_nodes)
        if not is_cut.any() and _noise_is_below(_NEGLIGIBLE, weights):
            return _by_dbmstclu(tree, noise)
    changed = [np.flatnonzero(~is_cut)] if is_cut.any() else []
    while changed:
        cluster_of_edge = label_pieces(tree, is_cut)[tree.sources]
        pieces = [piece for edges in changed for piece in _by_cluster(edges, cluster_of_edge)]
        sides = smaller_sides(forest, is_cut)
        changed = []
        for edges in pieces:
            heavy = _stands_out(weights.at(edges), sides[edges], tree.n_nodes)
            if heavy.any():
                is_cut[edges[heavy]] = True
                changed.append(edges[~heavy])
    return Clustering(label_pieces(tree, is_cut), cuts=Cuts(tree.edge_ids[is_cut]))


def _by_cluster(edges: Ints, cluster_of_edge: Ints) -> list[Ints]:
    """Return the edges of every cluster apart."""
    clusters = cluster_of_edge[edges]
    order = np.argsort(clusters, kind="stable")
    ends = np.flatnonzero(np.diff(clusters[order])) + 1
    return np.split(edges[order], ends)


def _at_least_as_even(sides: Ints) -> Ints:
    """Return for every edge how many part at least as many nodes."""
    n_as_even: Ints = len(sides) - np.searchsorted(np.sort(sides), sides, side="left")
    return n_as_even


def _price(sides: Ints, levels: Levels) -> Floats:
    """Return the logarithm of how rare heavy edges are among cuts at least as even.

    The levels say how many edges are heavy. If all of those are even cuts, one in so many of r
    edges is. Without it the many light edges of a tree with one or two heavy ones would give as
    many cuts by chance.
    """
    n_heavy = max((1 - levels.share) * len(sides), 1.0)
    price: Floats = np.maximum(np.log(_at_least_as_even(sides) / n_heavy), 0.0)
    return price


def _levels_of(weights: NoisyWeights) -> Levels | None:
    """Return two levels if the weights support them.

    Two modes, or one with a tail? Two levels fit any tail better than one level does; so they must
    fit better than one level with an exponential tail. At most half of the edges are on the upper
    level: clusters have two nodes and more on average.
    """
    if len(weights.values) < _FEWEST_EDGES:
        return None
    levels = two_levels(weights)
    if (
        levels.share >= 0.5
        and levels.gap > _HUMPS * math.sqrt(levels.variance)
        and levels.gap > _APART * levels.spread(weights)
        and levels.log_likelihood > _one_level_with_tail(weights)
    ):
        return levels
    return None


def two_levels(weights: NoisyWeights) -> Levels:
    """Fit two levels with a common variance, that of the noise or more, by EM.

    >>> random = np.random.default_rng(0)
    >>> true = np.where(random.random(8000) < 0.5, 0.2, 0.9)
    >>> levels = two_levels(NoisyWeights(true + random.normal(0, 0.4, 8000), 0.4, is_laplace=False))
    >>> round(levels.low, 1), round(levels.high, 1)
    (0.2, 0.9)
    """
    counts, edges = np.histogram(weights.values, bins=_LEVEL_BINS)
    seen = counts > 0
    values, counts = ((edges[1:] + edges[:-1]) / 2)[seen], counts[seen].astype(np.float64)
    total, noise = counts.sum(), weights.deviation**2
    mean = counts @ values / total
    spread = counts @ (values - mean) ** 2 / total
    floor = max(noise, _LEAST_PART * spread)
    if spread == 0:
        return Levels(-math.inf, 0.5, float(mean), float(mean), float(floor))

    def climb(fit: Levels, rounds: int) -> Levels:
        before = fit.log_likelihood
        for _ in range(rounds):
            fit = _one_round(fit, values, counts, floor, weights.is_laplace)
            if abs(fit.log_likelihood - before) < _ENOUGH * total:
                break
            before = fit.log_likelihood
        return fit

    apart = math.sqrt(max(spread - noise, 0.05 * spread))  # explains what noise does not
    fits = []
    for share in _STARTS:
        low = mean - apart * math.sqrt((1 - share) / share)
        high = mean + apart * math.sqrt(share / (1 - share))
        start = Levels(-math.inf, share, low, high, max(floor, 0.1 * spread))
        fits.append(climb(start, _FIRST_ROUNDS))
    fits.sort(key=lambda fit: fit.log_likelihood, reverse=True)
    last = [climb(fit, _LAST_ROUNDS) for fit in fits[:_FINALISTS]]
    best = max(last, key=lambda fit: fit.log_likelihood)
    if best.low > best.high:
        best = best._replace(low=best.high, high=best.low, share=1 - best.share)
    return best


def _one_round(
    fit: Levels, values: Floats, counts: Floats, floor: float, is_laplace: bool
) -> Levels:
    """Return the fit after one round of EM, with the log-likelihood before it.

    Mean and variance by responsibility are the maximum for Gaussian noise. For Laplace noise the
    median would be; the mean is consistent as well, for any noise, and moves smoothly.
    """
    from scipy.special import expit

    total = counts.sum()
    if is_laplace:
        scale = math.sqrt(fit.variance / 2)
        densities = [-np.abs(values - level) / scale for level in (fit.low, fit.high)]
    else:
        densities = [-((values - level) ** 2) / (2 * fit.variance) for level in (fit.low, fit.high)]
    of_low, of_high = math.log(fit.share) + densities[0], math.log1p(-fit.share) + densities[1]
    constant = 0.5 * math.log((2 if is_laplace else 2 * math.pi) * fit.variance)
    likelihood = float(counts @ np.logaddexp(of_low, of_high) - total * constant)
    low_part = counts * expit(of_low - of_high)
    high_part = counts - low_part
    n_low = low_part.sum()
    n_high = total - n_low
    if min(n_low, n_high) < _NOTHING * total:
        return fit._replace(log_likelihood=likelihood)
    low, high = low_part @ values / n_low, high_part @ values / n_high
    within = low_part @ (values - low) ** 2 + high_part @ (values - high) ** 2
    updated = n_low / total, low, high, max(within / total, floor)
    return Levels(likelihood, *map(float, updated))


def affinities(weights: NoisyWeights, levels: Levels) -> Floats:
    """Return the log-likelihood ratio of every weight for the low level against the high one."""
    values = weights.values
    if weights.is_laplace:
        scale = math.sqrt(levels.variance / 2)
        return (np.abs(values - levels.high) - np.abs(values - levels.low)) / scale
    return levels.gap / levels.variance * ((levels.low + levels.high) / 2 - values)


def _stands_out(weights: NoisyWeights, sides: Ints, n_nodes: int) -> Bools:
    """Return which edges of a piece are heavier than expected by chance.

    Every edge may be cut by chance with a probability of its own, in proportion to 1 / r if r edges
    part at least as many nodes; those of a piece sum to its part of ``_FALSE``.
    """
    n_edges = len(sides)
    if n_edges < _FEWEST_EDGES:
        return np.zeros(n_edges, dtype=bool)
    part = 1.0 / _at_least_as_even(sides)
    allowed = _FALSE * (n_edges + 1) / n_nodes * part / part.sum()
    heavy: Bools = _surprise(weights) > -np.log(allowed)
    return heavy


def _surprise(weights: NoisyWeights) -> Floats:
    """Return minus the log-probability of a weight as large as each, given all smaller ones.

    The smaller ones are taken for one level with an exponential tail, seen through the noise; level
    and tail have their mean and variance, and the tail has at least the standard error of the
    variance of m draws of noise: a shorter one may be there unseen. A weight with less than half of
    the others below is no surprise. The tail is only known from m weights: then an exponential
    variable exceeds x times its mean with probability (1 + x / m)^-m, not exp(-x).
    """
    order = np.argsort(weights.values, kind="stable")
    values = weights.values[order] - np.median(weights.values)
    n_below = np.arange(len(values) // 2, len(values))
    mean = np.cumsum(values)[n_below - 1] / n_below
    variance = np.cumsum(values**2)[n_below - 1] / n_below - mean**2
    variance *= n_below / (n_below - 1)
    width = max(weights.deviation, _LEAST_PART)
    unseen = width**2 * np.sqrt(2 / (n_below - 1))
    tail = np.sqrt(np.maximum(variance - width**2, unseen))
    exceeds = _laplace_exceeds if weights.is_laplace else _gaussian_exceeds
    nats = -exceeds(values[n_below] - (mean - tail), width, tail)
    surprise = np.zeros(len(values))
    surprise[order[n_below]] = (n_below - 1) * np.log1p(nats / (n_below - 1))
    return surprise


def _one_level_with_tail(weights: NoisyWeights) -> float:
    """Return the largest log-likelihood of one level with an exponential tail, and noise."""
    counts, edges = np.histogram(weights.values, bins=_BINS)
    seen = counts > 0
    values, counts = ((edges[1:] + edges[:-1]) / 2)[seen], counts[seen]
    mean, deviation = weights.values.mean(), weights.values.std()
    if deviation == 0:
        return math.inf
    log_density = _laplace_with_tail if weights.is_laplace else _gaussian_with_tail
    least = max(weights.deviation, _LEAST_PART * deviation)
    best = -math.inf
    for tail in deviation * np.sqrt(_TAILS):
        rest = math.sqrt(max(deviation**2 - tail**2, 0.0))
        for width in {least, max(least, rest)}:
            place = (mean - tail + deviation * _PLACES)[:, None]
            likelihood = log_density(values - place, width, tail) @ counts
            best = max(best, float(likelihood.max()))
    return best


def _gaussian_with_tail(x: Floats, width: float, tail: float) -> Floats:
    """Return the log-density of Gaussian noise plus an exponential variable of mean ``tail``."""
    from scipy.special import log_ndtr

    ratio = width / tail
    density: Floats = ratio**2 / 2 - x / tail + log_ndtr(x / width - ratio) - math.log(tail)
    return density


def _laplace_with_tail(x: Floats, width: float, tail: float) -> Floats:
    """Return the log-density of Laplace noise plus an exponential variable of mean ``tail``.

    By convolution: exp(x / b) / (2 (b + t)) below 0, and above
    exp(-x / t) / (2 (t + b)) + (exp(-x / t) - exp(-x / b)) / (2 (t - b)).
    """
    b = width / math.sqrt(2)
    # Next to the pole at t = b the limit is taken a little beside it.
    t = tail if abs(tail - b) > 1e-6 * b else tail * (1 + 1e-5)
    up = np.maximum(x, 0.0)
    above = np.exp(-up / t) / (2 * (t + b)) + (np.exp(-up / t) - np.exp(-up / b)) / (2 * (t - b))
    below = np.minimum(x, 0.0) / b - math.log(2 * (b + t))
    return np.where(x < 0, below, np.log(np.maximum(above, 1e-300)))


def _gaussian_exceeds(x: Floats, width: float, tail: Floats) -> Floats:
    """Return the log-probability that Gaussian noise plus an exponential variable exceeds x."""
    from scipy.special import log_ndtr

    ratio = width / tail
    by_tail = ratio**2 / 2 - x / tail + log_ndtr(x / width - ratio)
    exceeds: Floats = np.logaddexp(log_ndtr(-x / width), by_tail)
    return np.minimum(exceeds, 0.0)


def _laplace_exceeds(x: Floats, width: float, tail: Floats) -> Floats:
    """Return the log-probability that Laplace noise plus an exponential variable exceeds x.

    The integral of the density of ``_laplace_with_tail``, and one minus it below 0.
    """
    b = width / math.sqrt(2)
    t = np.where(np.abs(tail - b) > 1e-6 * b, tail, tail * (1 + 1e-5))
    up, down = np.maximum(x, 0.0), np.minimum(x, 0.0)
    by_tail, by_noise = t * np.exp(-up / t), b * np.exp(-up / b)
    above = by_tail / (2 * (t + b)) + (by_tail - by_noise) / (2 * (t - b))
    below = 1 - b * np.exp(down / b) / (2 * (b + t))
    return np.log(np.where(x < 0, below, np.maximum(above, 1e-300)))


def _noise_is_below(part: float, weights: NoisyWeights) -> bool:
    """Return whether noise makes up less than this part of the variance of the weights."""
    variance = float(weights.values.var()) if len(weights.values) else 0.0
    return weights.deviation**2 < part * variance


def _by_dbmstclu(tree: WeightedTree, noise: Noise) -> Clustering:
    """Cut by DBMSTClu, which needs positive weights."""
    found = dbmstclu(Reweighted(tree, shifted(tree.weights, noise)))
    return Clustering(found.labels, cuts=found.cuts)


@kernel
def smaller_sides(forest: RootedForest, is_cut: Bools) -> Ints:
    """Return the nodes on the smaller side of every edge, within its piece; 0 for a cut edge.

    Parents come before their children, so two sweeps suffice: up for what is below, down for the
    topmost node.
    """
    parent, edge = forest.parent, forest.edge
    n_nodes = len(parent)
    below, topmost = np.ones(n_nodes, np.int64), np.arange(n_nodes)
    for node in range(n_nodes - 1, -1, -1):
        if edge[node] >= 0 and not is_cut[edge[node]]:
            below[parent[node]] += below[node]
    smaller = np.zeros(len(is_cut), np.int64)
    for node in range(n_nodes):
        if edge[node] >= 0 and not is_cut[edge[node]]:
            topmost[node] = topmost[parent[node]]
            smaller[edge[node]] = min(below[node], below[topmost[node]] - below[node])
    return smaller
