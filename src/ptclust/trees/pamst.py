"""PAMST (Algorithm 2 of the paper): Prim's algorithm with the Exponential mechanism in place of the minimum."""

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

__all__ = ["pamst_edges"]


def pamst_edges(graph: Graph, exponent: float, stream: RandomStream) -> NDArray[Any]:
    """Return the ids, ascending, of the edges of a spanning forest drawn by PAMST.

    From a uniform root of every component, each step adds an edge r among those that leave the nodes reached so far,
    with probability proportional to exp(-exponent * w(r)).

    Notes
    -----
    *Privacy.* A step has a privacy loss of range exponent * sensitivity.spread + STEP_SLACK at most; there are
    k = ``n_tree_edges`` steps, whose losses sum to k (exponent * sensitivity.mean_spread(k) + STEP_SLACK) at most.
    """
    n_nodes, n_arcs = graph.n_nodes, 2 * graph.n_edges
    edge_dtype = index_dtype(graph.n_edges)
    arc_dtype = np.dtype([("node", graph.sources.dtype), ("edge", edge_dtype)])
    start, arcs = np.zeros(n_nodes + 1, dtype=index_dtype(n_arcs)), np.empty(n_arcs, arc_dtype)
    kernel.group_arcs(graph.sources, graph.targets, start, arcs)
    urn, factor = make_urn(graph.weights, exponent, arc_dtype)
    forest = np.empty(graph.topology.n_tree_edges, dtype=edge_dtype)
    roots = np.arange(n_nodes, dtype=graph.sources.dtype)
    kernel.draw_pamst(urn, graph.weights, factor, start, arcs, roots, stream.state, forest)
    return np.sort(forest)
