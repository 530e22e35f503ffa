"""Union-find on a parent array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptclust._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def find(parent: NDArray[Any], node: int) -> int:
    """Return the root of ``node``, halving the path on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def union(parent: NDArray[Any], a: int, b: int) -> None:
    """Join the components of the roots ``a`` and ``b``: the larger index below the smaller.

    That is random enough for shallow trees, needs no rank array, and leaves every parent at most its child, so that one
    ascending sweep flattens all paths.
    """
    parent[max(a, b)] = min(a, b)


@kernel
def label_components(sources: NDArray[Any], targets: NDArray[Any], parent: NDArray[Any]) -> int:
    """Turn ``parent``, an ``arange`` on entry, into component numbers by first appearance; return how many."""
    for edge in range(len(sources)):
        a = find(parent, sources[edge])
        b = find(parent, targets[edge])
        if a != b:
            union(parent, a, b)
    count = 0
    for node in range(len(parent)):
        if parent[node] == node:
            parent[node] = count
            count += 1
        else:
            parent[node] = parent[parent[node]]
    return count
