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

from ptclust._numbering import number_by_first_appearance
from ptclust._union_find import label_components
from ptclust.clustering._level_cuts_kernel import smaller_sides
from ptclust.clustering.dbmstclu import dbmstclu, rooted
from ptclust.clustering.levels import Levels, NoisyWeights, affinities, two_levels

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
# Noise is negligible below this part of the variance of the weights: DBMSTClu then sees what it was made for.
_NEGLIGIBLE = 0.2
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
    negligible.

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
    forest = rooted(tree)
    n_edges = len(weights.values)
    is_cut = np.zeros(n_edges, dtype=bool)
    pieces, depth = [np.arange(n_edges)], 0
    while pieces:
        sides = smaller_sides(forest, is_cut)
        was_cut = False
        for edges in pieces:
            levels = _levels_of(weights.at(edges), tree.n_nodes, depth)
            if levels is not None:
                affinity = affinities(weights.at(edges), levels)
                is_cut[edges] = affinity < -_price(sides[edges])
                was_cut |= bool(is_cut[edges].any())
        if depth == 0 and not was_cut and _is_noise_negligible(weights):
            return _by_dbmstclu(tree, noise)
        labels = _labels(tree, is_cut)
        pieces = _pieces(tree, is_cut, labels, pieces) if was_cut else []
        depth += 1
    return LevelCuts(_labels(tree, is_cut), tree.edge_ids[is_cut])
