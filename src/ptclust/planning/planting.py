"""Clusters planted on a given topology: connected pieces of about equal size, light within and heavy across."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust._components import adjacency
from ptclust.graph.topology import Topology, WeightedGraph
from ptclust.planning import _planting_kernel as kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MadeUpGraph", "connected_pieces", "planted_weights", "typical_size", "weight_intervals"]

WITHIN = (0.1, 0.3)
"""Shares of the weight range within clusters: w_min and w_max of the paper's experiments."""
ACROSS = (0.9, 1.0)
"""The same across clusters, at full contrast."""
_SWEEPS = 64
"""After as much work as this many sweeps of the whole graph, pieces stay as they are."""


def connected_pieces(
    topology: Topology, size: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Return the piece of every node: connected pieces of 1/2 to 3/2 of ``size`` nodes, where there are such.

    A component of fewer nodes is one piece. A hub whose branches are small cannot be divided into connected pieces of
    any size but one, and stays whole: see `typical_size`.

    Examples
    --------
    >>> from ptclust import Topology
    >>> path = Topology(range(11), range(1, 12))
    >>> np.bincount(connected_pieces(path, 4, np.random.default_rng(0))).tolist()
    [4, 4, 4]
    """
    n_nodes, n_edges = topology.n_nodes, topology.n_edges
    order = random.permutation(n_edges)
    indptr, neighbours, _ = adjacency(topology.sources[order], topology.targets[order], n_nodes)
    mixed = random.permutation(n_nodes)
    roots = mixed[np.unique(topology.components[mixed], return_index=True)[1]]
    piece = np.full(n_nodes, -1, dtype=np.int64)
    most_work = _SWEEPS * (n_nodes + 2 * n_edges)
    chance = random.random(n_nodes) ** 2  # squared: rather the nodes met early, for compact pieces
    kernel.halve_pieces(indptr, neighbours, roots, size, most_work, chance, piece)
    return piece


def typical_size(pieces: NDArray[np.int64]) -> int:
    """Return the size such that half of all nodes are in pieces of at most so many nodes.

    >>> typical_size(np.array([0, 0, 0, 0, 0, 1, 2, 3]))
    5
    """
    sizes = np.sort(np.bincount(pieces))
    return int(sizes[np.searchsorted(np.cumsum(sizes), len(pieces) / 2)])


def weight_intervals(
    weight_range: tuple[float, float], contrast: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where weights lie within clusters and across them.

    Within, from 10 to 30 % of the range. Across, at contrast 1, from 90 to 100 %, as in the paper's experiments; a
    smaller contrast moves this interval towards the other in proportion. Below 1/4 they overlap, at 0 they would be
    one.

    >>> weight_intervals((0.0, 10.0), 1.0)
    ((1.0, 3.0), (9.0, 10.0))
    """
    low, high = weight_range

    def at(share: float) -> float:
        # Rounding must not lead out of the range, or the pipeline refuses the weights.
        return min(max(low + (high - low) * share, low), high)

    across = (w + contrast * (a - w) for w, a in zip(WITHIN, ACROSS, strict=True))
    first, second = across
    return (at(WITHIN[0]), at(WITHIN[1])), (at(first), at(second))


def planted_weights(
    topology: Topology,
    pieces: NDArray[np.int64],
    weight_range: tuple[float, float],
    contrast: float,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """Return weights of all edges, uniform in the interval for edges within pieces and in that for edges across."""
    within, across = weight_intervals(weight_range, contrast)
    same = pieces[topology.sources] == pieces[topology.targets]
    low, high = (np.where(same, *bounds) for bounds in zip(within, across, strict=True))
    return np.clip(low + (high - low) * random.random(topology.n_edges), *weight_range)


class MadeUpGraph(WeightedGraph):
    """A public topology with made-up weights: nobody's, so mechanisms may be tried on it freely."""

    def __init__(self, topology: Topology, weights: NDArray[np.float64]) -> None:
        self.topology, self.weights = topology, weights
