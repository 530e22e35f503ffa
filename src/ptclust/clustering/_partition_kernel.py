"""Search for the partition into connected clusters that maximises the affinities within, less a price per cluster.

To find the best is NP-hard (correlation clustering). Greedy contraction and moves of nodes and clusters climb to a
local maximum. From there clusters are joined one after the other, even where that loses: with fewer clusters there is
more evidence for each, and nodes that were stuck find their place. The best partition on the way is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._kernel import kernel
from ptclust.clustering._contraction_kernel import contract_greedily
from ptclust.clustering._moves_kernel import (
    GAIN,
    Neighbours,
    agreement_within,
    connected_pieces,
    join_down,
    move_nodes,
    neighbours_of,
    numbered,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Turns of moving nodes and clusters; each gains, and few suffice.
TURNS = 10
#: Clusters are joined down from at most so many, as the table of pairs grows with the square.
MOST_CLUSTERS = 128
#: Of more clusters than this, a fifth is joined at a time; below, one pair.
FEW_CLUSTERS = 16
#: A price that no gain outweighs.
UNAFFORDABLE = 1e300


@kernel
def climb(
    sources: NDArray[Any],
    targets: NDArray[Any],
    neighbours: Neighbours,
    affinity: NDArray[np.float64],
    price: float,
    labels: NDArray[np.int64],
) -> tuple[NDArray[np.int64], float]:
    """Let nodes and clusters move and join until nothing gains; return the partition and its value."""
    best, best_value = labels, -np.inf
    for _ in range(TURNS):
        labels = labels.copy()
        move_nodes(neighbours, affinity, labels, price)
        labels, n_clusters = connected_pieces(sources, targets, labels)
        across = np.flatnonzero(labels[sources] != labels[targets])
        a, b, between = labels[sources[across]], labels[targets[across]], affinity[across]
        top, _ = numbered(contract_greedily(a, b, between, n_clusters, price))
        move_nodes(neighbours_of(a, b, n_clusters), between, top, price)
        labels, n_clusters = connected_pieces(sources, targets, top[labels])
        value = agreement_within(sources, targets, affinity, labels) - price * n_clusters
        if value <= best_value + GAIN:
            break
        best, best_value = labels, value
    return best, best_value


@kernel
def walk_down(
    sources: NDArray[Any],
    targets: NDArray[Any],
    neighbours: Neighbours,
    affinity: NDArray[np.float64],
    price: float,
    best: NDArray[np.int64],
    best_value: float,
) -> tuple[NDArray[np.int64], float]:
    """Join clusters one after the other; return the best partition on the way, if better, and its value."""
    labels, n_clusters = best.copy(), best.max() + 1
    while 2 < n_clusters <= MOST_CLUSTERS:
        target = n_clusters - 1 if n_clusters <= FEW_CLUSTERS else n_clusters * 4 // 5
        labels = join_down(sources, targets, affinity, labels, n_clusters, target)
        move_nodes(neighbours, affinity, labels, UNAFFORDABLE)
        labels, fewer = numbered(labels)
        if fewer >= n_clusters:
            break
        n_clusters = fewer
        tried = labels.copy()
        move_nodes(neighbours, affinity, tried, price)
        tried, n_tried = connected_pieces(sources, targets, tried)
        value = agreement_within(sources, targets, affinity, tried) - price * n_tried
        if value > best_value + GAIN:
            best, best_value = tried, value
    return best, best_value


@kernel
def search_partition(
    sources: NDArray[Any],
    targets: NDArray[Any],
    neighbours: Neighbours,
    affinity: NDArray[np.float64],
    price: float,
) -> tuple[NDArray[np.int64], float]:
    """Return a partition into connected clusters, numbered by first appearance, and its value.

    One climb starts from greedy contraction, another from single nodes: they end in different places.
    """
    n_nodes = len(neighbours.start) - 1
    contracted = contract_greedily(sources, targets, affinity, n_nodes, price)
    best, best_value = contracted, -np.inf
    for start in (numbered(contracted)[0], np.arange(n_nodes)):
        labels, value = climb(sources, targets, neighbours, affinity, price, start)
        labels, value = walk_down(sources, targets, neighbours, affinity, price, labels, value)
        if value > best_value:
            best, best_value = labels, value
    return best, best_value
