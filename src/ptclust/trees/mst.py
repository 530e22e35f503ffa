"""The exact minimum spanning tree, by Filter-Kruskal (Osipov, Sanders and Singler 2009).

Only the edges that may still matter are sorted.
"""

from __future__ import annotations

import numpy as np

from ptclust._components import find, union
from ptclust._kernel import kernel
from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats
from ptclust.graph.topology import WeightedGraph, index_dtype
from ptclust.trees.tree import Tree

CHUNK_PER_NODE = 1.25  # edges sorted at a time, per node; most others are never sorted
_SMALLEST_CHUNK = 1 << 14
_SAMPLE = 1 << 10
_BATCH = 256


@leaves_no_trace
def minimum_spanning_tree(graph: WeightedGraph) -> Tree:
    """Return the minimum spanning tree of a graph; of a disconnected graph, the spanning forest.

    Of similarities it is the maximum spanning tree: its edges join what is closest. Weights may be
    zero or negative. Edges of equal weight are taken in the order of the graph's edges, so the tree
    is unique. It lists its edges by ascending edge id.

    Notes
    -----
    *Privacy.* None: the tree carries the weights and reveals their order; for the curator only.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> tree = minimum_spanning_tree(Graph([0, 1, 2], [1, 2, 0], [0.1, 0.2, 0.3]))
    >>> tree.edge_ids
    array([0, 2], dtype=int32)
    """
    edges = minimum_spanning_edges(graph.sources, graph.targets, graph.distances, graph.n_nodes)
    weights = graph.weights if len(edges) == graph.n_edges else graph.weights[edges]
    part = graph.topology.restricted_to(edges)
    return Tree.of_checked(part, weights, edges, private=True, kind=graph.kind)


@leaves_no_trace
def minimum_spanning_edges(sources: Array, targets: Array, weights: Floats, n_nodes: int) -> Array:
    """Return the ids, ascending, of the edges of the minimum spanning forest.

    Edges are compared by weight and then by id, a strict order, so the forest is unique. Kruskal
    takes them in that order, one chunk of light edges at a time; what a chunk has connected filters
    the heavier edges before they are ever sorted. Where the edges are in that order, or are a
    forest already, nothing is sorted.
    """
    n_edges = len(weights)
    parent = np.arange(n_nodes, dtype=sources.dtype)
    forest = np.empty(min(max(n_nodes - 1, 0), n_edges), dtype=index_dtype(n_edges))
    remaining, ends = np.arange(n_edges, dtype=forest.dtype), np.empty((2, _BATCH), parent.dtype)
    in_order = bool((weights[:-1] <= weights[1:]).all())
    if in_order or n_edges < n_nodes:
        n_forest = _kruskal(remaining, sources, targets, parent, forest, 0, ends)
        if in_order or n_forest == n_edges:
            return forest[:n_forest]
        parent = np.arange(n_nodes, dtype=sources.dtype)
    n_forest = 0
    chunk = max(int(CHUNK_PER_NODE * n_nodes), _SMALLEST_CHUNK)
    random = np.random.default_rng(0)  # where to sample the pivot: affects speed, never the result
    while len(remaining) and n_forest < len(forest):
        light, heavy = remaining, remaining[:0]
        if len(remaining) > 2 * chunk:
            sample = np.sort(weights[remaining[random.integers(len(remaining), size=_SAMPLE)]])
            is_light = weights[remaining] <= sample[_SAMPLE * chunk // len(remaining)]
            light, heavy = remaining[is_light], remaining[~is_light]
        by_weight = light[np.argsort(weights[light], kind="stable")]
        n_forest = _kruskal(by_weight, sources, targets, parent, forest, n_forest, ends)
        if len(heavy):
            heavy = heavy[: _filter(heavy, sources, targets, parent)]
        remaining = heavy
    return np.sort(forest[:n_forest])


@kernel
def _kruskal(
    edges: Array,
    sources: Array,
    targets: Array,
    parent: Array,
    forest: Array,
    n_forest: int,
    ends: Array,
) -> int:
    """Append the sorted ``edges`` that join two components to ``forest``; return its new length.

    The ends of a batch are looked up before they are used: memory is read ahead.
    """
    for first in range(0, len(edges), _BATCH):
        n_batch = min(_BATCH, len(edges) - first)
        for i in range(n_batch):
            edge = edges[first + i]
            ends[0, i], ends[1, i] = parent[sources[edge]], parent[targets[edge]]
        for i in range(n_batch):
            root, other = find(parent, ends[0, i]), find(parent, ends[1, i])
            if root != other:
                union(parent, root, other)
                forest[n_forest] = edges[first + i]
                n_forest += 1
                if n_forest == len(forest):
                    return n_forest
    return n_forest


@kernel
def _filter(edges: Array, sources: Array, targets: Array, parent: Array) -> int:
    """Move the edges that still join two components to the front; return how many."""
    # Roots have the smallest index, so one ascending sweep flattens every path.
    for node in range(len(parent)):
        parent[node] = parent[parent[node]]
    kept = 0
    for edge in edges:
        edges[kept] = edge
        kept += parent[sources[edge]] != parent[targets[edge]]
    return kept
