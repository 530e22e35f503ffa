"""The paper's Definition of the minimum path distance (section 3.1).

The paper sums over "e in V_P", the vertices of a path; it means the edges between consecutive vertices. Weights are
positive there and must be here: with a zero the distance is no metric, and scipy would take it for no edge at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.errors import UsageError
from ptclust.theory._arguments import node_numbers, one_node, positive_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ptclust.graph import Graph

__all__ = ["distances_from", "minimum_path_distance"]


def minimum_path_distance(graph: Graph, u: int, v: int) -> float:
    """Return d(u, v), the least total weight of a path from ``u`` to ``v``; infinite if there is none.

    Parameters
    ----------
    graph : Graph
        A graph with positive weights.
    u, v : int
        Two nodes, by number.

    Raises
    ------
    WeightError
        If a weight is zero or negative.
    UsageError
        If there is no such node.

    Notes
    -----
    *Privacy.* None: for the curator's own eyes.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> minimum_path_distance(Graph([0, 1, 2], [1, 2, 0], [0.25, 0.5, 1.0]), 0, 2)
    0.75
    """
    u, v = one_node(u, graph.n_nodes, "u"), one_node(v, graph.n_nodes, "v")
    return float(distances_from(graph, [u])[v])


def distances_from(graph: Graph, nodes: ArrayLike) -> NDArray[np.float64]:
    """Return, for every node, the minimum path distance to the nearest of ``nodes``; infinite if there is none.

    Takes O(m log n). *Privacy*: none, for the curator's own eyes.

    >>> from ptclust.graph import Graph
    >>> distances_from(Graph([0, 1, 2], [1, 2, 3], [0.25, 0.5, 1.0], n_nodes=5), [0, 3])
    array([0.  , 0.25, 0.75, 0.  ,  inf])
    """
    return voronoi_cells(graph, nodes)[0]


def voronoi_cells(graph: Graph, nodes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the distance of every node to the nearest of ``nodes``, and which that is (negative if none)."""
    from scipy.sparse import csr_array  # late: only those who measure pay for it
    from scipy.sparse.csgraph import dijkstra

    weights = positive_weights(graph, "the minimum path distance")
    origins = node_numbers(nodes, graph.n_nodes)
    if not len(origins):
        raise UsageError("a distance from no node at all is not defined; give at least one node")
    shape = (graph.n_nodes, graph.n_nodes)
    matrix = csr_array((weights, (graph.sources, graph.targets)), shape=shape)
    distances, _, nearest = dijkstra(
        matrix, directed=False, indices=origins, min_only=True, return_predecessors=True
    )
    return distances, nearest
