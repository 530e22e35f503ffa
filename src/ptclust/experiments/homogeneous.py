"""The homogeneous graphs of the paper's experiments (section 4): a complete graph, trimmed to strong homogeneity."""

from __future__ import annotations

import numpy as np

from ptclust.errors import UsageError
from ptclust.experiments.planted import (
    PAPER,
    WITHIN,
    Family,
    PlantedGraph,
    cross_pairs,
    draw_weights,
)
from ptclust.experiments.points import circles, moons
from ptclust.graph import Graph

__all__ = ["CROSS_EDGES", "homogeneous_graph"]

CROSS_EDGES = 2
"""The paper says that the edge between the clusters differs from run to run: two is the least there can be."""


def homogeneous_graph(
    family: Family, n_nodes: int = 100, *, cross_edges: int = CROSS_EDGES, seed: int = 0
) -> PlantedGraph:
    """Return two circles or two moons as the paper describes its graphs.

    The largest distance is 1. Of the complete graph, those pairs of a cluster stay whose distance lies between
    w_min = 0.1 and w_max = 0.3, and the distance is their weight. Closer pairs are trimmed as well as farther ones,
    which is why, in the words of the paper, close nodes may not be connected. Across, weights must be above
    w_max^2 / w_min = 0.9; few distances between the two moons are, and none between the two circles, so distances
    cannot have been all there was to the paper's weights. Here ``cross_edges`` random pairs stay, of
    weights uniform in (0.9, 1]. Edges come in random order.

    Parameters
    ----------
    family : {"circles", "moons"}
    n_nodes : int, default 100
    cross_edges : int, default 2
        How many edges between the clusters were left by the trimming. The paper does not say, and all depends on it.
    seed : int, default 0

    Examples
    --------
    >>> planted = homogeneous_graph("moons", cross_edges=5)
    >>> across = planted.truth[planted.graph.sources] != planted.truth[planted.graph.targets]
    >>> across.sum().item()
    5
    """
    from scipy.spatial.distance import pdist, squareform

    if family not in PAPER:
        raise UsageError(
            f"the paper's graphs are {' and '.join(PAPER)}, not {family!r}; planted_graph has more"
        )
    if cross_edges < 1:
        raise UsageError(f"at least one edge must join the clusters, not {cross_edges}")
    points, truth = (circles if family == "circles" else moons)(n_nodes, seed=seed)
    random = np.random.default_rng([seed, n_nodes])
    distance = squareform(pdist(points))
    kept = (distance >= WITHIN[0]) & (distance <= WITHIN[1]) & (truth[:, None] == truth)
    pairs = np.concatenate([np.argwhere(np.triu(kept)), cross_pairs(truth, cross_edges, random)])
    a, b = random.permutation(pairs).T
    drawn = draw_weights(truth[a], truth[b], np.ones(2), random)
    weights = np.where(truth[a] == truth[b], distance[a, b], drawn)
    graph = Graph(a, b, weights, n_nodes=n_nodes)
    if graph.topology.n_components > 1:
        raise UsageError(
            f"trimmed, {family} of {n_nodes} nodes fall into {graph.topology.n_components} pieces; "
            "use more nodes, 100 say, or another seed"
        )
    return PlantedGraph(graph, truth, points, family)
