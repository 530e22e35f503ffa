"""Search for the partition into connected clusters that maximises the affinities within, less a price per cluster.

To find the best is NP-hard (correlation clustering). Greedy contraction and moves of nodes and clusters climb to a
local maximum. From there clusters are joined one after the other, even where that loses: with fewer clusters there is
more evidence for each, and nodes that were stuck find their place. The best partition on the way is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptclust._components import find, number_by_first_appearance, union
from ptclust._kernel import kernel
from ptclust.clustering.contraction._greedy_kernel import contract_greedily

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A gain below this, in units of log-likelihood, is rounding.
GAIN = 1e-9
#: Sweeps over the nodes; the search for a partition calls again if that was not enough.
SWEEPS = 50
#: Turns of moving nodes and clusters; each gains, and few suffice.
TURNS = 10
#: Clusters are joined down from at most so many, as the table of pairs grows with the square.
MOST_CLUSTERS = 128
#: Of more clusters than this, a fifth is joined at a time; below, one pair.
FEW_CLUSTERS = 16
#: A price that no gain outweighs.
UNAFFORDABLE = 1e300


class Neighbours(NamedTuple):
    """The edges at every node."""

    start: NDArray[
        np.int64
    ]  # those at node v have the places start[v] to start[v + 1] of the others
    node: NDArray[np.int64]  # the other end
    edge: NDArray[np.int64]


@kernel
def neighbours_of(sources: NDArray[Any], targets: NDArray[Any], n_nodes: int) -> Neighbours:
    """Return the edges at every node."""
    n_edges = len(sources)
    start = np.zeros(n_nodes + 1, np.int64)
    for edge in range(n_edges):
        start[sources[edge] + 1] += 1
        start[targets[edge] + 1] += 1
    start = np.cumsum(start)
    place = start[:-1].copy()
    node, edge_at = np.empty(2 * n_edges, np.int64), np.empty(2 * n_edges, np.int64)
    for edge in range(n_edges):
        a, b = sources[edge], targets[edge]
        node[place[a]], edge_at[place[a]] = b, edge
        place[a] += 1
        node[place[b]], edge_at[place[b]] = a, edge
        place[b] += 1
    return Neighbours(start, node, edge_at)


@kernel
def numbered(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return labels 0, 1, 2, ... by first appearance, and how many there are."""
    new = labels.copy()
    count = number_by_first_appearance(new, np.full(len(labels), -1, np.int64))
    return new, count


@kernel
def connected_pieces(
    sources: NDArray[Any], targets: NDArray[Any], labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Return the connected pieces of all clusters, numbered, and how many there are."""
    parent = np.arange(len(labels))
    for edge in range(len(sources)):
        if labels[sources[edge]] == labels[targets[edge]]:
            a, b = find(parent, sources[edge]), find(parent, targets[edge])
            if a != b:
                union(parent, a, b)
    for node in range(len(parent)):
        parent[node] = find(parent, node)
    return numbered(parent)


@kernel
def induced_edges(
    neighbours: Neighbours, members: NDArray[np.int64], number: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges between members, and their ends by place in ``members``.

    ``number`` has a place for every node and is -1 throughout, before and after.
    """
    for i in range(len(members)):
        number[members[i]] = i
    room = 0
    for node in members:
        room += neighbours.start[node + 1] - neighbours.start[node]
    edges, a, b = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    count = 0
    for i in range(len(members)):
        for place in range(neighbours.start[members[i]], neighbours.start[members[i] + 1]):
            other = number[neighbours.node[place]]
            if other > i:
                edges[count], a[count], b[count] = neighbours.edge[place], i, other
                count += 1
    for node in members:
        number[node] = -1
    return edges[:count].copy(), a[:count].copy(), b[:count].copy()


@kernel
def agreement_within(
    sources: NDArray[Any],
    targets: NDArray[Any],
    affinity: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> float:
    """Return the sum of the affinities of all edges within clusters."""
    total = 0.0
    for edge in range(len(sources)):
        if labels[sources[edge]] == labels[targets[edge]]:
            total += affinity[edge]
    return total


@kernel
def move_nodes(
    neighbours: Neighbours,
    affinity: NDArray[np.float64],
    labels: NDArray[np.int64],
    price: float,
) -> int:
    """Move single nodes to the cluster of a neighbour, or to one of their own, while that gains; return how many moved.

    ``labels``, below the number of nodes, are changed in place.
    """
    is_due, inside = np.ones(len(labels), np.bool_), np.zeros(len(labels))
    return move_due_nodes(neighbours, affinity[neighbours.edge], labels, price, is_due, inside)


@kernel
def move_due_nodes(
    neighbours: Neighbours,
    pull: NDArray[np.float64],
    labels: NDArray[np.int64],
    price: float,
    is_due: NDArray[np.bool_],
    inside: NDArray[np.float64],
) -> int:
    """Let nodes move that are due; return how many times one did.

    ``pull`` has the affinities in the order of ``neighbours``. What a node shares with its own cluster is kept in
    ``inside``. A node is due again when a neighbour has moved, or, once the others have settled, when it was left
    alone: nothing else changes what it may gain.
    """
    n_nodes = len(labels)
    size, members = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    for node in range(n_nodes):
        size[labels[node]] += 1
        members[labels[node]] += node  # their sum: if there is but one, which it is
    free, n_free = np.empty(n_nodes, np.int64), 0
    for label in range(n_nodes - 1, -1, -1):
        if size[label] == 0:
            free[n_free] = label
            n_free += 1
    total, near, is_near = (
        np.zeros(n_nodes),
        np.empty(n_nodes, np.int64),
        np.zeros(n_nodes, np.bool_),
    )
    is_left, is_any_left = np.zeros(n_nodes, np.bool_), False
    n_moved = 0
    for _ in range(SWEEPS):
        before = n_moved
        for node in range(n_nodes):
            if not is_due[node]:
                continue
            is_due[node] = False
            own = labels[node]
            near[0], n_near = own, 1
            is_near[own], total[own] = True, 0.0
            for place in range(neighbours.start[node], neighbours.start[node + 1]):
                label = labels[neighbours.node[place]]
                if not is_near[label]:
                    is_near[label], total[label] = True, 0.0
                    near[n_near] = label
                    n_near += 1
                total[label] += pull[place]
            inside[node] = total[own]
            is_alone = size[own] == 1
            best, best_label = total[own] - (price if is_alone else 0.0) + GAIN, own
            if not is_alone and -price > best:
                best, best_label = -price, -1
            for i in range(n_near):
                label = near[i]
                is_near[label] = False
                if label != own and total[label] > best:
                    best, best_label = total[label], label
            if best_label == own:
                continue
            inside[node] = 0.0 if best_label < 0 else best
            if best_label < 0:
                n_free -= 1
                best_label = free[n_free]
            if is_alone:
                free[n_free] = own
                n_free += 1
            size[own] -= 1
            members[own] -= node
            if size[own] == 1:
                is_left[members[own]] = is_any_left = True
            size[best_label] += 1
            members[best_label] += node
            labels[node] = best_label
            n_moved += 1
            for place in range(neighbours.start[node], neighbours.start[node + 1]):
                is_due[neighbours.node[place]] = True
        if n_moved == before:
            if not is_any_left:
                break
            is_due[:], is_left[:], is_any_left = is_left, False, False
    is_due |= is_left
    return n_moved


@kernel
def join_down(
    sources: NDArray[Any],
    targets: NDArray[Any],
    affinity: NDArray[np.float64],
    labels: NDArray[np.int64],
    n_clusters: int,
    target: int,
) -> NDArray[np.int64]:
    """Join the adjacent clusters that are least clearly apart until ``target`` are left, or none are adjacent.

    How clearly is the sum of affinities between, over the root of their number: in units of its standard deviation.
    """
    total = np.zeros((n_clusters, n_clusters))
    count = np.zeros((n_clusters, n_clusters))
    for edge in range(len(sources)):
        a, b = labels[sources[edge]], labels[targets[edge]]
        if a != b:
            total[a, b] += affinity[edge]
            total[b, a] += affinity[edge]
            count[a, b] += 1
            count[b, a] += 1
    parent = np.arange(n_clusters)
    for _ in range(n_clusters - target):
        best, keep, gone = -np.inf, -1, -1
        for a in range(n_clusters):
            if parent[a] == a:
                for b in range(a + 1, n_clusters):
                    if parent[b] == b and count[a, b] > 0:
                        clear = total[a, b] / np.sqrt(count[a, b])
                        if clear > best:
                            best, keep, gone = clear, a, b
        if gone < 0:
            break
        parent[gone] = keep
        for other in range(n_clusters):
            total[keep, other] += total[gone, other]
            total[other, keep] = total[keep, other]
            count[keep, other] += count[gone, other]
            count[other, keep] = count[keep, other]
    joined = np.empty_like(labels)
    for node in range(len(labels)):
        joined[node] = find(parent, labels[node])
    return joined


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
