"""The few distances that decide whether a set C of nodes hangs together more tightly than it hangs on D - C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.theory.distance import voronoi_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptclust.graph import Graph


@dataclass(frozen=True, eq=False)
class Bridges:
    """Edges between nodes of C that decide its link, and how far D - C is from C."""

    sources: NDArray[Any]
    """One end of each, as a place in C."""
    targets: NDArray[Any]
    lengths: NDArray[np.float64]
    separation: float
    nearest: int
    """Where in C the separation is attained."""
    intruder: int
    """Where in D - C; -1 if that is empty."""


def edges_within(graph: Graph, c: NDArray[np.int64]) -> Bridges:
    """D = V: the edges of G restricted to C, and the lightest edge that leaves it."""
    place = np.full(graph.n_nodes, -1)
    place[c] = np.arange(len(c))
    a, b = place[graph.sources], place[graph.targets]
    inside, leaving = (a >= 0) & (b >= 0), np.flatnonzero((a < 0) != (b < 0))
    bridges = (a[inside], b[inside], graph.weights[inside])
    if not len(leaving):
        outside = np.flatnonzero(place < 0)
        return Bridges(*bridges, np.inf, 0, int(outside[0]) if len(outside) else -1)
    edge = leaving[graph.weights[leaving].argmin()]
    ends = (graph.sources[edge], graph.targets[edge])
    intruder = ends[0] if a[edge] < 0 else ends[1]
    return Bridges(*bridges, graph.weights[edge], max(a[edge], b[edge]), int(intruder))


def bridges_between_cells(graph: Graph, c: NDArray[np.int64], rest: NDArray[np.int64]) -> Bridges:
    """Mehlhorn's construction: each edge between two Voronoi cells of C, with the length of the path that it closes."""
    distance, nearest = voronoi_cells(graph, c)
    place = np.full(graph.n_nodes, -1)
    place[c] = np.arange(len(c))
    cell = np.full(graph.n_nodes, -1)
    cell[nearest >= 0] = place[nearest[nearest >= 0]]
    a, b = cell[graph.sources], cell[graph.targets]
    between = a != b
    lengths = (distance[graph.sources] + distance[graph.targets] + graph.weights)[between]
    bridges = (a[between], b[between], lengths)
    if not len(rest):
        return Bridges(*bridges, np.inf, 0, -1)
    intruder = rest[distance[rest].argmin()]
    return Bridges(*bridges, distance[intruder], max(cell[intruder], 0), int(intruder))
