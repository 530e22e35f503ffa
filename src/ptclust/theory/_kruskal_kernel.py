"""Kruskal's algorithm by classes of equal weight: the edges of all minimum spanning trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptclust._components import find, union
from ptclust._kernel import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@kernel
def find_usable(
    order: NDArray[Any],
    sources: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    parent: NDArray[Any],
    usable: NDArray[np.bool_],
) -> None:
    """Tell of every edge whether some minimum spanning tree holds it: whether no strictly lighter edges join its ends.

    ``order`` sorts the edges by weight, ties anyhow; ``parent`` is ``arange`` on entry.
    """
    begin = 0
    while begin < len(order):
        end = begin
        weight = weights[order[begin]]
        while end < len(order) and weights[order[end]] == weight:
            edge = order[end]
            usable[edge] = find(parent, sources[edge]) != find(parent, targets[edge])
            end += 1
        for i in range(begin, end):
            a = find(parent, sources[order[i]])
            b = find(parent, targets[order[i]])
            if a != b:
                union(parent, a, b)
        begin = end
