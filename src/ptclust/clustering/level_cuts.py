"""Cuts of a noisy tree: edges that are significantly heavy, given the size of the noise.

DBMSTClu cuts outliers among single edges, and noise makes outliers. Here the size of the noise is
known. Where many edges are heavy they form a level of their own: two levels are fitted
(``levels``), and an edge is cut if its log-likelihood ratio for the heavy level exceeds the log of
how rare heavy edges are. Where few are, each has to be an outlier by itself: an edge is cut if one
level with a tail, plus noise, has such a weight with small probability. Even cuts are few and most
edges are leaf edges, so heavy leaf edges are far more often due to chance; both rules require less
of an even cut. For a graph that was released whole, prefer ``communities``, which averages over
edges.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ptclust._kernel import kernel
from ptclust.clustering.clusterer import Clusterer, Clustering, Cost, Cuts
from ptclust.clustering.dbmstclu import dbmstclu, label_pieces, rooted
from ptclust.clustering.levels import APART, Levels, NoisyWeights, affinities, two_levels
from ptclust.clustering.normalise import Reweighted, shifted

if TYPE_CHECKING:
    from ptclust._types import Bools, Floats, Ints
    from ptclust.clustering.dbcvi import WeightedTree
    from ptclust.clustering.dbmstclu._kernel import RootedForest
    from ptclust.privacy.noise import Noise
    from ptclust.published import Published

# Fewer edges show no levels.
_FEWEST_EDGES = 8
# Levels this many deviations of the noisy weights apart show as humps, not only as a spread.
_HUMPS = 3.0
# Of a hundred trees without clusters, about one may be cut because an edge stands out by chance.
_FALSE = 0.01
# Noise below this part of the variance is negligible: DBMSTClu decides where no levels show, ...
_NEGLIGIBLE = 0.2
# ... and below this part every single edge can be trusted, which is what DBMSTClu was made for.
_NO_MATTER = 1e-4
# Bins, and trials of tail and place, for one level with a tail: finer ones change little.
_BINS, _TAILS, _PLACES = 256, np.linspace(0.02, 0.999, 40), np.linspace(-0.3, 0.3, 13)
# The least standard deviation, as part of that of the weights: one exact level would have none.
_LEAST_PART = 1e-6


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
        and levels.gap > APART * levels.spread(weights)
        and levels.log_likelihood > _one_level_with_tail(weights)
    ):
        return levels
    return None


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
