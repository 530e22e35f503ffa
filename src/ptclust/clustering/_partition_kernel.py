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
    move_due_nodes,
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
def between_clusters(
    sources: NDArray[Any],
    targets: NDArray[Any],
    affinity: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the clusters that edges across join, and the affinities of these edges."""
    across = np.flatnonzero(labels[sources] != labels[targets])
    return labels[sources[across]], labels[targets[across]], affinity[across]


@kernel
def contract_further(
    sources: NDArray[Any],
    targets: NDArray[Any],
    affinity: NDArray[np.float64],
    price: float,
    labels: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the partition in which greedy contraction ends that has come as far as ``labels``.

    The price only says when to stop: what was contracted at a lower one need not be contracted again.
    """
    a, b, between = between_clusters(sources, targets, affinity, labels)
    return numbered(contract_greedily(a, b, between, labels.max() + 1, price)[labels])[0]


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
        moved = labels.copy()
        move_nodes(neighbours, affinity, moved, price)
        pieces, n_pieces = connected_pieces(sources, targets, moved)
        a, b, between = between_clusters(sources, targets, affinity, pieces)
        top, n_top = numbered(contract_greedily(a, b, between, n_pieces, price))
        n_moved = move_nodes(neighbours_of(a, b, n_pieces), between, top, price)
        labels, n_clusters = connected_pieces(sources, targets, top[pieces])
        value = agreement_within(sources, targets, affinity, labels) - price * n_clusters
        if value <= best_value + GAIN:
            break
        best, best_value = labels, value
        if n_top == n_pieces == numbered(moved)[1] and n_moved == 0:
            break  # nothing has changed since the nodes came to rest
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
    """Join clusters one after the other; return the best partition on the way, if better, and its value.

    Nodes that have settled at no price settle elsewhere at this one only if they share less than minus the price with
    their cluster, or a neighbour moves.
    """
    pull, inside = affinity[neighbours.edge], np.empty(len(best))
    labels, n_clusters = best.copy(), best.max() + 1
    while 2 < n_clusters <= MOST_CLUSTERS:
        target = n_clusters - 1 if n_clusters <= FEW_CLUSTERS else n_clusters * 4 // 5
        labels = join_down(sources, targets, affinity, labels, n_clusters, target)
        is_due = np.ones(len(labels), np.bool_)
        move_due_nodes(neighbours, pull, labels, UNAFFORDABLE, is_due, inside)
        labels, fewer = numbered(labels)
        if fewer >= n_clusters:
            break
        n_clusters = fewer
        tried = labels.copy()
        is_due |= inside + GAIN < -price
        move_due_nodes(neighbours, pull, tried, price, is_due, inside)
        tried, n_tried = numbered(tried)
        if inside.sum() / 2 - price * n_tried <= best_value:
            continue  # its connected pieces are as many clusters, or more
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
    start: NDArray[np.int64],
) -> tuple[NDArray[np.int64], float]:
    """Return a partition into connected clusters, numbered by first appearance, and its value."""
    labels, value = climb(sources, targets, neighbours, affinity, price, start)
    return walk_down(sources, targets, neighbours, affinity, price, labels, value)
