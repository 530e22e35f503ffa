"""The edges at every node of a graph, in compressed rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptclust._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Adjacency(NamedTuple):
    """The edges at every node; those at node v have the places indptr[v] to indptr[v + 1]."""

    indptr: NDArray[np.int64]
    neighbours: NDArray[Any]
    edges: NDArray[np.int64]


@kernel
def adjacency(sources: NDArray[Any], targets: NDArray[Any], n_nodes: int) -> Adjacency:
    """Return the neighbours of every node and the edges to them, in the order of the edges."""
    n_edges = len(sources)
    indptr = np.zeros(n_nodes + 1, np.int64)
    for edge in range(n_edges):
        indptr[sources[edge] + 1] += 1
        indptr[targets[edge] + 1] += 1
    indptr = np.cumsum(indptr)
    place = indptr[:-1].copy()
    neighbours, edges = np.empty(2 * n_edges, sources.dtype), np.empty(2 * n_edges, np.int64)
    for edge in range(n_edges):
        a, b = sources[edge], targets[edge]
        neighbours[place[a]], edges[place[a]] = b, edge
        place[a] += 1
        neighbours[place[b]], edges[place[b]] = a, edge
        place[b] += 1
    return Adjacency(indptr, neighbours, edges)
