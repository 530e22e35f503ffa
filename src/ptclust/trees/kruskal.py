"""Kruskal's algorithm with the Exponential mechanism in place of the minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.graph import index_dtype
from ptclust.trees import _urn_kernel as kernel
from ptclust.trees._urn import make_urn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptclust.graph import Graph
    from ptclust.privacy import RandomStream

__all__ = ["kruskal_edges"]


def kruskal_edges(graph: Graph, exponent: float, stream: RandomStream) -> NDArray[Any]:
    """Return the ids, ascending, of the edges of a spanning forest drawn in Kruskal's order.

    Each step adds an edge r among all that join two components of what was chosen so far, with probability
    proportional to exp(-exponent * w(r)). In distribution this is the minimum spanning forest of the weights plus
    Gumbel noise of scale 1 / exponent (Pagh, Retschmeier, Wu and Zhang 2024 show its error to be optimal).

    Notes
    -----
    *Privacy.* A step has a privacy loss of range exponent * sensitivity.spread + STEP_SLACK at most; there are
    k = ``n_tree_edges`` steps, whose losses sum to k (exponent * sensitivity.mean_spread(k) + STEP_SLACK) at most.
    """
    urn, factor = make_urn(graph.weights, exponent, index_dtype(graph.n_edges))
    forest = np.empty(graph.topology.n_tree_edges, dtype=urn.items.dtype)
    parent = np.arange(graph.n_nodes, dtype=graph.sources.dtype)
    kernel.draw_kruskal(
        urn, graph.weights, factor, graph.sources, graph.targets, parent, stream.state, forest
    )
    return np.sort(forest)
