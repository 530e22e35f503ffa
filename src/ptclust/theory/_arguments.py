"""What the theory asks of its arguments: positive weights, and nodes by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.errors import UsageError, WeightError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ptclust.clustering import WeightedTree
    from ptclust.graph import Graph

__all__ = ["node_numbers", "one_node", "positive_weights"]


def positive_weights(graph: Graph | WeightedTree, what: str) -> NDArray[np.float64]:
    """Return the weights; raise WeightError, naming ``what`` needs them, unless all are positive."""
    bad = ~(graph.weights > 0)
    if bad.any():
        edge = int(bad.argmax())
        a, b = graph.names[[graph.sources[edge], graph.targets[edge]]].tolist()
        raise WeightError(
            f"{what} needs positive weights, and the edge {a!r} - {b!r} has a weight of zero or less "
            f"({np.count_nonzero(bad)} such weights in all); shift the weights so that they become positive, or merge "
            "nodes at distance zero"
        )
    return graph.weights


def node_numbers(nodes: ArrayLike, n_nodes: int, what: str = "nodes") -> NDArray[np.int64]:
    """Return a set of nodes as ascending distinct numbers; raise UsageError if they are no such thing."""
    array = np.asarray(nodes)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise UsageError(
            f"{what} must be a one-dimensional array of node numbers, not {array.ndim}-dimensional of "
            f"{array.dtype}; np.flatnonzero makes numbers of a mask, graph.names holds the names in node order"
        )
    numbers = np.unique(array).astype(np.int64)
    outside = numbers[(numbers < 0) | (numbers >= n_nodes)]
    if len(outside):
        raise UsageError(
            f"{what} must be numbers from 0 to {n_nodes - 1}, but {outside[0]} is among them"
        )
    return numbers


def one_node(node: Any, n_nodes: int, what: str) -> int:
    """Return the number of one node; raise UsageError if it is none."""
    if np.ndim(node) != 0:
        raise UsageError(f"{what} must be one node number, not {np.ndim(node)}-dimensional")
    return int(node_numbers([node], n_nodes, what)[0])
