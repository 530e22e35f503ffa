"""Places in the plane for the nodes of a tree, in linear time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._components import label_components
from ptclust._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fan_layout"]

_BETWEEN_TREES = 6.0


def fan_layout(
    n_nodes: int, sources: NDArray[Any], targets: NDArray[Any], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return places such that no two edges of a tree cross: every subtree gets a fan as wide as its share of leaves.

    (The equal-angle layout of Felsenstein.) The trees of a forest hang on one invisible root, node ``n_nodes``.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    tree = np.arange(n_nodes)
    label_components(sources, targets, tree)
    firsts = np.unique(tree, return_index=True)[1]
    a = np.concatenate([sources, np.full(len(firsts), n_nodes)])
    b = np.concatenate([targets, firsts])
    joined = coo_array((np.ones(len(a), np.int8), (a, b)), shape=(n_nodes + 1,) * 2)
    order, parent = breadth_first_order(joined, n_nodes, directed=False)
    length = np.empty(n_nodes + 1)
    child = np.where(parent[b] == a, b, a)
    length[child] = np.concatenate([lengths, np.full(len(firsts), _BETWEEN_TREES)])
    places = np.zeros((n_nodes + 1, 2))
    _place(order, parent, length, places)
    return places[:n_nodes]


@kernel
def _place(
    order: NDArray[Any],
    parent: NDArray[Any],
    length: NDArray[np.float64],
    places: NDArray[np.float64],
) -> None:
    """Fill ``places``; ``order`` lists the root first and every other node after its parent."""
    n_nodes = len(order)
    leaves = np.zeros(n_nodes)
    for i in range(n_nodes - 1, 0, -1):
        v = order[i]
        leaves[v] = max(leaves[v], 1.0)
        leaves[parent[v]] += leaves[v]
    begin, width = np.zeros(n_nodes), np.zeros(n_nodes)
    width[order[0]] = 2.0 * np.pi
    for i in range(1, n_nodes):
        v = order[i]
        up = parent[v]
        width[v] = width[up] * leaves[v] / leaves[up]
        angle = begin[up] + width[v] / 2.0
        places[v, 0] = places[up, 0] + length[v] * np.cos(angle)
        places[v, 1] = places[up, 1] + length[v] * np.sin(angle)
        begin[v] = begin[up]
        begin[up] += width[v]
