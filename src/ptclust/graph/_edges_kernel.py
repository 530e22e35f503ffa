"""One pass over edge arrays each: what is wrong with them, and in which order nodes appear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def first_outside(sources: NDArray[Any], targets: NDArray[Any], n_nodes: int) -> int:
    """Return the first edge with an endpoint outside ``range(n_nodes)``, or -1."""
    for edge in range(len(sources)):
        if not (0 <= sources[edge] < n_nodes and 0 <= targets[edge] < n_nodes):
            return edge
    return -1


@kernel
def first_self_loop(sources: NDArray[Any], targets: NDArray[Any]) -> int:
    """Return the first edge that joins a node to itself, or -1."""
    for edge in range(len(sources)):
        if sources[edge] == targets[edge]:
            return edge
    return -1


@kernel
def group_by_smaller_endpoint(
    sources: NDArray[Any], targets: NDArray[Any], start: NDArray[np.int64], larger: NDArray[Any]
) -> None:
    """Write the larger endpoints of all edges into ``larger``, grouped by the smaller one.

    ``start`` has ``n_nodes + 1`` entries, all zero on entry; on return the group of node ``v`` is
    ``larger[start[v - 1]:start[v]]`` (from 0 for node 0).
    """
    for edge in range(len(sources)):
        start[min(sources[edge], targets[edge]) + 1] += 1
    for node in range(1, len(start)):
        start[node] += start[node - 1]
    for edge in range(len(sources)):
        a, b = sources[edge], targets[edge]
        node = min(a, b)
        larger[start[node]] = max(a, b)
        start[node] += 1


@kernel
def first_repeated_pair(
    start: NDArray[np.int64], larger: NDArray[Any], seen_from: NDArray[Any]
) -> tuple[int, int]:
    """Return a pair of nodes joined by two edges, or (-1, -1). ``seen_from`` is filled with -1 on entry."""
    begin = 0
    for node in range(len(seen_from)):
        end = start[node]
        for position in range(begin, end):
            other = larger[position]
            if seen_from[other] == node:
                return node, other
            seen_from[other] = node
        begin = end
    return -1, -1
