"""How much every edge of a forest parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptclust.clustering._dbmstclu_kernel import RootedForest


@kernel
def smaller_sides(forest: RootedForest, is_cut: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for every edge the nodes on the smaller side, within the piece that cuts leave around it; 0 for a cut.

    Parents come before their children, so two sweeps suffice: up for what is below, down for the topmost node.
    """
    parent, edge = forest.parent, forest.edge
    n_nodes = len(parent)
    below, topmost = np.ones(n_nodes, np.int64), np.arange(n_nodes)
    for node in range(n_nodes - 1, -1, -1):
        if edge[node] >= 0 and not is_cut[edge[node]]:
            below[parent[node]] += below[node]
    smaller = np.zeros(len(is_cut), np.int64)
    for node in range(n_nodes):
        if edge[node] >= 0 and not is_cut[edge[node]]:
            topmost[node] = topmost[parent[node]]
            smaller[edge[node]] = min(below[node], below[topmost[node]] - below[node])
    return smaller
