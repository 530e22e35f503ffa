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
    part, weights = graph.topology.restricted_to(edges), graph.weights[edges]
    return Tree(part, weights, edges, private=True, kind=graph.kind)


@leaves_no_trace
def minimum_spanning_edges(sources: Array, targets: Array, weights: Floats, n_nodes: int) -> Array:
    """Return the ids, ascending, of the edges of the minimum spanning forest.

    Edges are compared by weight and then by id, a strict order, so the forest is unique. Kruskal
    takes them in that order, one chunk of light edges at a time; what a chunk has connected filters
    the heavier edges before they are ever sorted.
    """
    remaining = np.arange(len(weights), dtype=index_dtype(len(weights)))
    parent = np.arange(n_nodes, dtype=sources.dtype)
    forest = np.empty(max(n_nodes - 1, 0), dtype=remaining.dtype)
    n_forest = 0
    chunk = max(int(CHUNK_PER_NODE * n_nodes), _SMALLEST_CHUNK)
    random = np.random.default_rng(0)  # where to sample the pivot: affects speed, never the result
    while len(remaining) and n_forest < len(forest):
        if len(remaining) <= 2 * chunk:
            light, pivot = remaining, remaining[-1]
        else:
            sample = np.sort(remaining[random.integers(len(remaining), size=_SAMPLE)])
            by_weight = np.argsort(weights[sample], kind="stable")
            pivot = sample[by_weight[_SAMPLE * chunk // len(remaining)]]
            buffer = np.empty_like(remaining)  # only the pages that are written cost memory
            light = buffer[: _collect_light(remaining, weights, pivot, buffer)]
        light = _sorted_by_weight(light, weights)
        n_forest = _kruskal(light, sources, targets, parent, forest, n_forest)
        if len(light) == len(remaining):
            break
        remaining = remaining[: _filter(remaining, sources, targets, weights, parent, pivot)]
    return np.sort(forest[:n_forest])


def _sorted_by_weight(edges: Array, weights: Floats) -> Array:
    """Return the edges in the order of weight and then id.

    numpy's fastest sort leaves equal weights in any order. Where there are some, the ids are sorted
    once more, as integers that begin with the rank of the weight: together that is faster than a
    stable sort.
    """
    values = weights[edges]
    order = np.argsort(values)
    edges, values = edges[order], values[order]
    rises = values[1:] > values[:-1]
    if not rises.all():
        n_ids = np.int64(len(weights))
        keys = edges.astype(np.int64)
        keys[1:] += np.cumsum(rises) * n_ids
        keys.sort()
        edges = (keys % n_ids).astype(edges.dtype)
    return edges


@kernel
def _is_light(edge: int, weights: Floats, pivot: int) -> bool:
    difference = weights[edge] - weights[pivot]
    return difference < 0.0 or (difference == 0.0 and edge <= pivot)


@kernel
def _collect_light(remaining: Array, weights: Floats, pivot: int, light: Array) -> int:
    """Write the edges up to ``pivot`` into ``light`` and return how many there are."""
    count = 0
    for edge in remaining:
        light[count] = edge
        count += _is_light(edge, weights, pivot)
    return count


@kernel
def _kruskal(
    edges: Array, sources: Array, targets: Array, parent: Array, forest: Array, n_forest: int
) -> int:
    """Append the sorted ``edges`` that join two components to ``forest``; return its new length."""
    for edge in edges:
        a, b = find(parent, sources[edge]), find(parent, targets[edge])
        if a != b:
            union(parent, a, b)
            forest[n_forest] = edge
            n_forest += 1
            if n_forest == len(forest):
                break
    return n_forest


@kernel
def _filter(
    remaining: Array, sources: Array, targets: Array, weights: Floats, parent: Array, pivot: int
) -> int:
    """Move the heavy edges that still join two components to the front; return how many."""
    # Roots have the smallest index, so one ascending sweep flattens every path.
    for node in range(len(parent)):
        parent[node] = parent[parent[node]]
    kept = 0
    for edge in remaining:
        if not _is_light(edge, weights, pivot) and parent[sources[edge]] != parent[targets[edge]]:
            remaining[kept] = edge
            kept += 1
    return kept
