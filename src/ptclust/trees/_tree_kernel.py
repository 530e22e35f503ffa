"""What a tree needs of union-find: whether it is one, and how its edges merge it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._kernel import kernel
from ptclust._union_find import find, union

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def first_edge_closing_cycle(
    sources: NDArray[Any], targets: NDArray[Any], parent: NDArray[Any]
) -> int:
    """Return the first edge whose endpoints earlier edges connect already, or -1. ``parent`` is ``arange`` on entry."""
    for edge in range(len(sources)):
        a = find(parent, sources[edge])
        b = find(parent, targets[edge])
        if a == b:
            return edge
        union(parent, a, b)
    return -1


@kernel
def fill_linkage(
    sources: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    order: NDArray[Any],
    linkage: NDArray[np.float64],
) -> None:
    """Merge along the edges of a tree in ``order``; row i of ``linkage`` describes the i-th merge as scipy does."""
    n_nodes = len(sources) + 1
    parent = np.arange(n_nodes)
    cluster = np.arange(n_nodes)
    size = np.ones(n_nodes)
    for step in range(len(order)):
        edge = order[step]
        a = find(parent, sources[edge])
        b = find(parent, targets[edge])
        low, high = min(a, b), max(a, b)
        linkage[step, 0] = min(cluster[a], cluster[b])
        linkage[step, 1] = max(cluster[a], cluster[b])
        linkage[step, 2] = weights[edge]
        size[low] += size[high]
        linkage[step, 3] = size[low]
        parent[high] = low
        cluster[low] = n_nodes + step
