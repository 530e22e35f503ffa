"""The exact minimum spanning tree: what the private trees are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptclust.trees._mst_kernel import minimum_spanning_edges
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    from ptclust.graph import Graph

__all__ = ["minimum_spanning_tree"]


def minimum_spanning_tree(graph: Graph) -> Tree:
    """Return the minimum spanning tree of a graph; of a disconnected graph, the minimum spanning forest.

    Weights may be zero or negative. Edges of equal weight are taken in the order of the graph's edges, so the tree is
    unique. It lists its edges by ascending edge id.

    Notes
    -----
    *Privacy.* None: the tree reveals the order of the weights and carries their values. For the curator's own eyes.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> tree = minimum_spanning_tree(Graph([0, 1, 2], [1, 2, 0], [0.1, 0.2, 0.3]))
    >>> tree.edge_ids
    array([0, 1], dtype=int32)
    """
    edge_ids = minimum_spanning_edges(graph.sources, graph.targets, graph.weights, graph.n_nodes)
    return Tree(
        graph.topology.restricted_to(edge_ids), graph.weights[edge_ids], edge_ids, private=True
    )
