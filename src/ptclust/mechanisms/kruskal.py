"""Kruskal's algorithm with the Exponential mechanism in place of the minimum."""

from __future__ import annotations

import numpy as np

from ptclust._types import Array
from ptclust.graph.topology import WeightedGraph, index_dtype
from ptclust.mechanisms import _urn_kernel as kernel
from ptclust.mechanisms.exponential import SpanningTreeMechanism, make_urn
from ptclust.mechanisms.laws import SmallGraph, TreeLaw
from ptclust.privacy.randomness import RandomStream as Stream


class Kruskal(SpanningTreeMechanism):
    """PAMST's sibling with less error: each step chooses among all edges that join two components.

    In distribution this is the minimum spanning forest of the weights plus Gumbel noise of scale
    1 / exponent (Pagh, Retschmeier, Wu and Zhang 2024 show its error to be optimal).
    """

    name = "kruskal"
    title = "Exponential mechanism in Kruskal's order"
    reference = "Pagh, Retschmeier, Wu and Zhang 2024; bounded range: Cesar and Rogers 2021"
    keyed = "spanning tree"

    def draw_edges(self, graph: WeightedGraph, exponent: float, stream: Stream) -> Array:
        """Return the ids, ascending, of a spanning forest drawn in Kruskal's order."""
        distances, node, edge = graph.distances, graph.sources.dtype, index_dtype(graph.n_edges)
        item = np.dtype([("edge", edge), ("source", node), ("target", node)])
        urn, factor = make_urn(distances, exponent, item)
        forest = np.empty(graph.topology.n_tree_edges, dtype=edge)
        parent = np.arange(graph.n_nodes, dtype=graph.sources.dtype)
        kernel.draw_kruskal(
            urn, distances, factor, graph.sources, graph.targets, parent, stream.state, forest
        )
        return np.sort(forest)

    def laws(self, graph: SmallGraph) -> tuple[TreeLaw, ...]:
        """Return the law of the tree."""
        return (TreeLaw("Kruskal", graph, (None,)),)
