"""Cuts of a noisy tree: those edges that are heavy beyond doubt, given how large the noise is.

DBMSTClu looks for single edges that stand out, and noise makes edges stand out. Here two levels of weights are fitted
with the noise known (``levels``), and an edge is cut if its weight tells for the heavy level by more than it costs to
say where the cut is. On a tree the affinities of ``contraction`` separate edge by edge, so that these cuts are the
best partition. What single edges cannot tell, a tree cannot tell either: where the whole graph was released, prefer
``contract``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._union_find import label_components
from ptclust.clustering._level_cuts_kernel import smaller_sides
from ptclust.clustering.dbmstclu import dbmstclu, rooted
from ptclust.clustering.levels import Levels, NoisyWeights, affinities, shifted, two_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptclust.clustering.dbcvi import WeightedTree
    from ptclust.privacy import Noise

__all__ = ["LevelCuts", "cut_levels"]

# Fewer edges show no levels.
_FEWEST_EDGES = 8
# Two levels are such if they are this many deviations of the noisy weights apart, so that humps show, ...
_HUMPS = 3.0
# ... and this many deviations of the true weights: levels that are closer are but a spread.
_APART = 4.0
# A gap between two weights next to each other is a clear break if it is this many deviations of all weights below.
_BREAK = 5.0
# Noise is negligible below this part of the variance of the weights: DBMSTClu decides where they show no levels, ...
_NEGLIGIBLE = 0.2
# ... and below this part every single edge can be trusted, which is what DBMSTClu was made for.
_NO_MATTER = 1e-4
# Bins, and trials of tail and place, of the likelihood of one level with a tail: finer ones change it by little.
_BINS, _TAILS, _PLACES = 256, np.linspace(0.02, 0.999, 40), np.linspace(-0.3, 0.3, 13)
# The least standard deviation, as part of that of the weights: without noise, one exact level would have none.
_LEAST_PART = 1e-6


@dataclass(frozen=True)
class LevelCuts:
    """A partition of the nodes of a tree, and the edges whose cuts make it."""

    labels: NDArray[np.int64]
    """The cluster of every node, numbered by first appearance."""
    edge_ids: NDArray[Any]
    """Ids, in the graph, of the edges that were cut."""

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max(initial=-1)) + 1


def cut_levels(tree: WeightedTree, noise: Noise) -> LevelCuts:
    """Cluster the nodes of a tree whose weights were released with noise.

    The pieces that cuts leave are looked at again, as there may be more levels than two. If the weights of the whole
    tree show no levels, the tree stays whole where noise may have hidden them, and is cut by DBMSTClu where noise is
    negligible. DBMSTClu also cuts where there is next to no noise at all.

    Parameters
    ----------
    tree : Tree
        A tree, or forest, with released weights of any sign.
    noise : Noise
        What was added to the weights. Its scale and shape are public.

    Notes
    -----
    Post-processing: nothing is looked at but the release.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.privacy import Noise
    >>> from ptclust.trees import Tree
    >>> random = np.random.default_rng(0)
    >>> true = np.full(99, 0.1)
    >>> true[[32, 65]] = 0.9
    >>> tree = Tree(Topology(range(99), range(1, 100)), true + random.normal(0, 0.05, 99))
    >>> cut_levels(tree, Noise("gaussian", scale=0.05, granularity=-40, n_values=99)).edge_ids
    array([32, 65])
    """
    weights = NoisyWeights.of(tree.weights, noise)
    if _noise_is_below(_NO_MATTER, weights) or (
        _levels_of(weights, tree.n_nodes, 0) is None and _noise_is_below(_NEGLIGIBLE, weights)
    ):
        return _by_dbmstclu(tree, noise)
    forest = rooted(tree)
    is_cut = np.zeros(len(weights.values), dtype=bool)
    pieces, depth = [np.arange(len(is_cut))], 0
    while pieces:
        sides = smaller_sides(forest, is_cut)
        kept = []
        for edges in pieces:
            here = weights.at(edges)
            levels = _levels_of(here, tree.n_nodes, depth)
            if levels is not None:
                heavy = affinities(here, levels) < -_price(sides[edges])
                is_cut[edges[heavy]] = True
                kept.append(edges[~heavy] if heavy.any() else edges[:0])
        labels = _labels(tree, is_cut)
        pieces = [piece for edges in kept for piece in _by_cluster(edges, labels[tree.sources])]
        depth += 1
    return LevelCuts(_labels(tree, is_cut), tree.edge_ids[is_cut])


def _labels(tree: WeightedTree, is_cut: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the pieces that cuts leave by first appearance."""
    labels = np.arange(tree.n_nodes)
    label_components(tree.sources[~is_cut], tree.targets[~is_cut], labels)
    return labels


def _by_cluster(
    edges: NDArray[np.int64], cluster_of_edge: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return the edges of every cluster apart."""
    clusters = cluster_of_edge[edges]
    order = np.argsort(clusters, kind="stable")
    ends = np.flatnonzero(np.diff(clusters[order])) + 1
    return np.split(edges[order], ends)


def _price(sides: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return half the logarithm of how many edges part at least as many nodes: leaves are many, even cuts are few."""
    at_least = len(sides) - np.searchsorted(np.sort(sides), sides, side="left")
    price: NDArray[np.float64] = 0.5 * np.log(at_least)
    return price


def _levels_of(weights: NoisyWeights, n_nodes: int, depth: int) -> Levels | None:
    """Return two levels if the weights show them.

    Two humps, or one with a tail? Many a weight of one level has a tail, and two levels fit any tail better than one
    level does; so they must fit better than one level with an exponential tail. In pieces, of which there are many,
    they must do so by log n nats.
    """
    n_edges = len(weights.values)
    if n_edges < _FEWEST_EDGES:
        return None
    levels = two_levels(weights)
    needed = _one_level_with_tail(weights) + (math.log(n_nodes) if depth > 0 else 0.0)
    if (
        levels.gap > _HUMPS * math.sqrt(levels.variance)
        and levels.gap > _APART * levels.spread(weights)
        and levels.log_likelihood > needed
    ):
        return levels
    return _clear_break(weights)


def _one_level_with_tail(weights: NoisyWeights) -> float:
    """Return the largest log-likelihood of one level with an exponential tail upwards, seen through the noise."""
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


def _gaussian_with_tail(x: NDArray[np.float64], width: float, tail: float) -> NDArray[np.float64]:
    """Return the log-density of the sum of Gaussian noise and an exponential variable of mean ``tail``."""
    from scipy.special import log_ndtr

    ratio = width / tail
    density: NDArray[np.float64] = (
        ratio**2 / 2 - x / tail + log_ndtr(x / width - ratio) - math.log(tail)
    )
    return density


def _laplace_with_tail(x: NDArray[np.float64], width: float, tail: float) -> NDArray[np.float64]:
    """Return the log-density of the sum of Laplace noise and an exponential variable of mean ``tail``.

    By convolution: exp(x / b) / (2 (b + t)) below 0, and above
    exp(-x / t) / (2 (t + b)) + (exp(-x / t) - exp(-x / b)) / (2 (t - b)).
    """
    b = width / math.sqrt(2)
    t = (
        tail if abs(tail - b) > 1e-6 * b else tail * (1 + 1e-5)
    )  # the limit, without a case of its own
    up = np.maximum(x, 0.0)
    above = np.exp(-up / t) / (2 * (t + b)) + (np.exp(-up / t) - np.exp(-up / b)) / (2 * (t - b))
    below = np.minimum(x, 0.0) / b - math.log(2 * (b + t))
    return np.where(x < 0, below, np.log(np.maximum(above, 1e-300)))


def _clear_break(weights: NoisyWeights) -> Levels | None:
    """Return levels below and above the clearest gap between weights next to each other, if it is clear.

    Only gaps with at least half of the weights below count: that is how many are needed to judge a gap by.
    """
    values = np.sort(weights.values)
    n_values = len(values)
    n_below = np.arange(1, n_values)
    mean = np.cumsum(values)[:-1] / n_below
    variance = np.cumsum(values**2)[:-1] / n_below - mean**2
    deviation = np.sqrt(np.maximum(variance, max(weights.deviation**2, _LEAST_PART**2)))
    clearness = np.where(n_below >= n_values // 2, np.diff(values) / deviation, 0.0)
    if clearness.max() < _BREAK:
        return None
    low, high = np.split(values, [int(clearness.argmax()) + 1])
    within = float(low.var() * len(low) + high.var() * len(high)) / n_values
    common = max(within, weights.deviation**2, _LEAST_PART**2)
    return Levels(math.nan, len(low) / n_values, float(low.mean()), float(high.mean()), common)


def _noise_is_below(part: float, weights: NoisyWeights) -> bool:
    """Return whether noise makes up less than this part of the variance of the weights."""
    variance = float(weights.values.var()) if len(weights.values) else 0.0
    return weights.deviation**2 < part * variance


def _by_dbmstclu(tree: WeightedTree, noise: Noise) -> LevelCuts:
    """Cut by DBMSTClu, which needs positive weights."""
    clustering = dbmstclu(_Shifted(tree, shifted(tree.weights, noise)))
    return LevelCuts(clustering.labels, clustering.cuts.edge_ids)


class _Shifted:
    """A tree with other weights."""

    def __init__(self, tree: WeightedTree, weights: NDArray[np.float64]) -> None:
        self.n_nodes = tree.n_nodes
        self.sources, self.targets = tree.sources, tree.targets
        self.weights = weights
        self.edge_ids, self.names = tree.edge_ids, tree.names
