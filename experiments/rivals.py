"""What others do with the true weights, and with ours once they are noisy.

Leiden and Louvain are igraph's, which draw from Python's generator: it is seeded here. All take
similarities; distances, which are at most 1, become 1 - d. Noise can make a weight negative, which
none of these methods knows: such weights count as zero.
"""

from __future__ import annotations

import math
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.controls import (
    Control,
    first_eigenvectors,
    hdbscan_labels,
    spectral_labels,
)
from experiments.methods import METHODS, WHOLE, Method
from ptclust._statistics import agreement

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ptclust.graph import Graph, Topology
    from ptclust.release import Release

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Search = Callable[[Topology, Floats, float], Ints]

__all__ = [
    "HETEROGENEOUS_CONTROLS",
    "HETEROGENEOUS_METHODS",
    "LEIDEN_RELEASE",
    "NON_PRIVATE",
    "PLANTED_METHODS",
    "RESOLUTIONS",
    "TOPOLOGY_ONLY",
    "leiden",
    "louvain",
    "recursive_sparsest_cuts",
]

RESOLUTIONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Among these an oracle takes the one that agrees most with the truth."""
_ITERATIONS = 5
_SHIFT = 10.0  # of every weight, in log(n) times the scale of the noise: Deng et al., step 1


def leiden(topology: Topology, similarities: Floats, resolution: float = 1.0) -> Ints:
    """Return the clusters of igraph's Leiden for modularity."""
    graph, weights = _igraph(topology, similarities)
    found = graph.community_leiden(
        objective_function="modularity",
        weights=weights,
        resolution=resolution,
        n_iterations=_ITERATIONS,
    )
    return np.array(found.membership, dtype=np.int64)


def louvain(topology: Topology, similarities: Floats, resolution: float = 1.0) -> Ints:
    """Return the clusters of igraph's Louvain."""
    graph, weights = _igraph(topology, similarities)
    found = graph.community_multilevel(weights=weights, resolution=resolution)
    return np.array(found.membership, dtype=np.int64)


def _igraph(topology: Topology, similarities: Floats) -> tuple[Any, list[float]]:
    """Return the edges of positive weight as igraph has them; the next draws are seeded."""
    import igraph

    random.seed(0)
    there = similarities > 0
    ends = np.stack([topology.sources[there], topology.targets[there]], axis=1)
    return igraph.Graph(n=topology.n_nodes, edges=ends), similarities[there].tolist()


def _similarities(weights: Floats, kind: str) -> Floats:
    return np.maximum(weights if kind == "similarity" else 1.0 - weights, 0.0)


def _of_graph(search: Search, graph: Graph, _: Ints) -> Ints:
    return search(graph.topology, _similarities(graph.weights, graph.kind), 1.0)


def _best_of_graph(search: Search, graph: Graph, truth: Ints) -> Ints:
    similarities = _similarities(graph.weights, graph.kind)
    found = (search(graph.topology, similarities, each) for each in RESOLUTIONS)
    return max(found, key=lambda labels: agreement(truth, labels))


def _of_topology(graph: Graph, _: Ints) -> Ints:
    return leiden(graph.topology, np.ones(graph.n_edges))


def _hdbscan(graph: Graph, _: Ints) -> Ints:
    if graph.kind == "distance":
        return hdbscan_labels(graph, graph.weights)
    return hdbscan_labels(graph, 1.0 / (1.0 + np.maximum(graph.weights, 0.0)))


def _spectral(graph: Graph, truth: Ints) -> Ints:
    similarities = _similarities(graph.weights, graph.kind)
    return spectral_labels(graph, len(np.unique(truth)), similarities)


NON_PRIVATE = (
    Control("leiden", "Leiden, not private", partial(_of_graph, leiden)),
    Control("leiden-best", "Leiden, best resolution (oracle)", partial(_best_of_graph, leiden)),
    Control("louvain", "Louvain, not private", partial(_of_graph, louvain)),
    Control("louvain-best", "Louvain, best resolution (oracle)", partial(_best_of_graph, louvain)),
    Control("hdbscan", "HDBSCAN, not private", _hdbscan),
    Control("spectral", "spectral, not private, K given", _spectral),
)
TOPOLOGY_ONLY = Control(
    "topology-leiden", "topology only: Leiden, no weights", _of_topology, topology_only=True
)
HETEROGENEOUS_CONTROLS = (*NON_PRIVATE, TOPOLOGY_ONLY)


def _of_release(search: Search, release: Release, _: Ints) -> Ints:
    published = release.published
    return search(published.topology, _similarities(published.noisy_weights, published.kind), 1.0)


def _hierarchy_of_release(release: Release, truth: Ints) -> Ints:
    """Return the clusters of Deng et al. on a release, the hierarchy cut at the true number.

    Their weights are w + 10 log(n) / epsilon + Lap(1 / epsilon): those of a release, shifted by 10
    log(n) times the scale of its noise.
    """
    published = release.published
    scale = float(published.noise.standard_deviation) / math.sqrt(2.0)
    similarities = _similarities(published.noisy_weights, published.kind)
    shifted = similarities + _SHIFT * math.log(published.topology.n_nodes) * scale
    return recursive_sparsest_cuts(published.topology, shifted, len(np.unique(truth)))


def recursive_sparsest_cuts(topology: Topology, similarities: Floats, n_clusters: int) -> Ints:
    """Return so many clusters, cut apart one after the other, the sparsest cut first.

    The hierarchy of Deng et al. (2025) splits every set of nodes by its sparsest cut, as found by a
    sweep over the second eigenvector of the normalised Laplacian (Cheeger), and goes on in both
    parts. To get a partition of it, here the split of least sparsity is taken first.

    References
    ----------
    C. Deng, J. Gao, J. Upadhyay, C. Wang, S. Zhou, On the price of differential privacy for
    hierarchical clustering, ICLR 2025.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> path = Topology([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    >>> labels = recursive_sparsest_cuts(path, np.array([9.0, 9.0, 1.0, 9.0, 9.0]), 2)
    >>> (labels == labels[0]).tolist()
    [True, True, True, False, False, False]
    """
    from scipy.sparse import coo_array

    n = topology.n_nodes
    half = coo_array((similarities, (topology.sources, topology.targets)), shape=(n, n))
    matrix = (half + half.T).tocsr()
    labels = np.zeros(n, dtype=np.int64)
    splits = {0: _sparsest_cut(matrix, np.arange(n))}
    for new in range(1, min(n_clusters, n)):
        chosen = min(splits, key=lambda label: splits[label][0])
        first, second = splits[chosen][1:]
        labels[second] = new
        splits[chosen], splits[new] = (_sparsest_cut(matrix, part) for part in (first, second))
    return labels


def _sparsest_cut(matrix: Any, nodes: Ints) -> tuple[float, Ints, Ints]:
    """Return the sparsity w(S, T) / (|S| |T|) of the best cut of a sweep, and its two sides."""
    from scipy.sparse import diags_array
    from scipy.sparse.csgraph import connected_components

    if len(nodes) < 2:
        return math.inf, nodes, nodes[:0]
    inner = matrix[nodes][:, nodes]
    n_parts, part = connected_components(inner, directed=False)
    if n_parts > 1:  # apart already
        return 0.0, nodes[part == 0], nodes[part != 0]
    degrees = inner.sum(axis=0)
    root = diags_array(1.0 / np.sqrt(degrees))
    order = np.argsort(first_eigenvectors(root @ inner @ root, 2)[:, 0] / np.sqrt(degrees))
    sizes = np.arange(1, len(nodes))
    ordered = inner[order][:, order].tocoo()
    earlier = ordered.row < ordered.col
    rows, columns, weights = ordered.row[earlier], ordered.col[earlier], ordered.data[earlier]
    n = len(nodes)
    opened, closed = np.bincount(rows, weights, n), np.bincount(columns, weights, n)
    sparsity = np.cumsum(opened - closed)[:-1] / (sizes * (n - sizes))
    best = int(np.argmin(sparsity))
    return float(sparsity[best]), nodes[order[: best + 1]], nodes[order[best + 1 :]]


_NAMED = {method.name: method for method in METHODS}
LEIDEN_RELEASE = Method(
    "leiden-release",
    "Leiden on our release",
    WHOLE,
    pure=False,
    search=partial(_of_release, leiden),
)
PLANTED_METHODS = (METHODS[0], LEIDEN_RELEASE, *METHODS[1:])
HETEROGENEOUS_METHODS = (
    _NAMED["auto"],
    LEIDEN_RELEASE,
    _NAMED["communities"],
    Method(
        "louvain-release",
        "Louvain on our release",
        WHOLE,
        pure=False,
        search=partial(_of_release, louvain),
    ),
    Method(
        "hierarchical",
        "noise + recursive sparsest cut, K given",
        WHOLE,
        pure=False,
        search=_hierarchy_of_release,
    ),
    _NAMED["sound"],
)
