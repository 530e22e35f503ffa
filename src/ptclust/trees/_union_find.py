"""Union-find on a parent array, for the kernels of this room."""

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
