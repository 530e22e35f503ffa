"""Greedy additive contraction: join the two clusters that agree most, add up their sums, repeat.

Clusters are the roots of a union-find. The sum of the affinities of the edges between two of them
is in a hash table by pair. Every cluster has a list of cells that name its neighbours, or a node
in them.

A heap holds the largest sums, down to a floor; those that have changed since are skipped when they
come up. When none is left the floor sinks, in a few steps. Most pairs become part of others before
that, and never see the heap.

When a cluster goes into another, its list is walked, and it is the shorter of the two. A cell
either moves on to the other list, or is dropped because the neighbour is there already, or because
its pair has been dealt with. So a cell moves a logarithmic number of times, pairs never get more,
and all arrays keep the size they start with.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._components import find
from ptclust._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: An odd multiplier with well mixed bits (2^64 over the golden ratio, as signed).
MULTIPLIER = -7046029254386353131
EMPTY = -1
#: The floor sinks until one in so many of the sums that wait are above it; in the end, all.
PORTIONS = (64, 16, 4, 1)


@kernel
def home(key: int, mask: int) -> Any:
    """Return where the search for a key begins: high bits of its product with the multiplier."""
    return ((np.int64(key) * np.int64(MULTIPLIER)) >> np.int64(20)) & np.int64(mask)


@kernel
def pair(a: int, b: int, n_nodes: int) -> int:
    """Return the key of an unordered pair."""
    return min(a, b) * n_nodes + max(a, b)


@kernel
def slot_of(keys: NDArray[np.int64], key: int) -> int:
    """Return where the key is, or where it would go."""
    mask = len(keys) - 1
    slot = int(home(key, mask))
    while keys[slot] != EMPTY and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def take_out(keys: NDArray[np.int64], values: NDArray[np.float64], slot: int) -> None:
    """Empty a slot and close the gap: what follows moves up unless that is before its home."""
    mask = len(keys) - 1
    gap = slot
    keys[gap] = EMPTY
    while True:
        slot = (slot + 1) & mask
        if keys[slot] == EMPTY:
            return
        if ((slot - home(keys[slot], mask)) & mask) >= ((slot - gap) & mask):
            keys[gap], values[gap] = keys[slot], values[slot]
            keys[slot] = EMPTY
            gap = slot


@kernel
def sums_of_pairs(
    sources: NDArray[Any], targets: NDArray[Any], affinity: NDArray[np.float64], n_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a hash table of all pairs of nodes that edges join: keys, and sums of affinities."""
    capacity = 16
    while capacity < 2 * len(sources):
        capacity *= 2
    keys, values = np.full(capacity, EMPTY, np.int64), np.zeros(capacity)
    for edge in range(len(sources)):
        key = pair(sources[edge], targets[edge], n_nodes)
        slot = slot_of(keys, key)
        keys[slot] = key
        values[slot] += affinity[edge]
    return keys, values


@kernel
def lists_of_neighbours(
    keys: NDArray[np.int64], n_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return first cell and length of every node's list; of every cell, the next and whom it names.

    The cells of a list lie side by side, which makes it faster to walk.
    """
    pairs = keys[keys != EMPTY]
    first, length = np.full(n_nodes, -1, np.int64), np.zeros(n_nodes, np.int64)
    following, neighbour = np.empty(2 * len(pairs), np.int64), np.empty(2 * len(pairs), np.int64)
    for key in pairs:
        length[key // n_nodes] += 1
        length[key % n_nodes] += 1
    cells = np.cumsum(length)
    for key in pairs:
        a, b = key // n_nodes, key % n_nodes
        for here, there in ((a, b), (b, a)):
            cells[here] -= 1
            neighbour[cells[here]], following[cells[here]] = there, first[here]
            first[here] = cells[here]
    return first, length, following, neighbour


@kernel
def kth_smallest(values: NDArray[np.float64], k: int) -> float:
    """Return the value that sorting would put at k, by Hoare's selection; ``values`` is permuted.

    ``np.partition`` does the same, but takes 5 s to compile.
    """
    low, high = 0, len(values) - 1
    while low < high:
        pivot, i, j = values[k], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        if j < k:
            low = i
        if i > k:
            high = j
    return float(values[k])


@kernel
def next_floor(
    keys: NDArray[np.int64], values: NDArray[np.float64], price: float, portion: int
) -> float:
    """Return the least of the largest sums: of one in so many of those worth a joint cluster."""
    waiting = values[(keys != EMPTY) & (values + price > 0)]
    n_below = len(waiting) - len(waiting) // portion
    if n_below == 0:
        return -np.inf
    if n_below == len(waiting):
        return np.inf
    return kth_smallest(waiting, n_below)


@kernel
def contract_greedily(
    sources: NDArray[Any],
    targets: NDArray[Any],
    affinity: NDArray[np.float64],
    n_nodes: int,
    price: float,
) -> NDArray[np.int64]:
    """Join the pair of clusters with the largest sum until none exceeds minus the price.

    Of equal sums the pair with the smaller nodes comes first. Returns for every node one of its
    cluster, the same for all of a cluster.
    """
    keys, values = sums_of_pairs(sources, targets, affinity, n_nodes)
    first, length, following, neighbour = lists_of_neighbours(keys, n_nodes)
    parent = np.arange(n_nodes)
    for portion in PORTIONS:
        floor = next_floor(keys, values, price, portion)
        heap = [
            (-values[slot], keys[slot] // n_nodes, keys[slot] % n_nodes)
            for slot in range(len(keys))
            if keys[slot] != EMPTY and values[slot] >= floor and values[slot] + price > 0
        ]
        heapify(heap)
        while len(heap) > 0:
            negative, a, b = heappop(heap)
            slot = slot_of(keys, pair(a, b, n_nodes))
            if keys[slot] == EMPTY or values[slot] != -negative:
                continue
            take_out(keys, values, slot)
            keep, gone = (a, b) if length[a] >= length[b] else (b, a)
            parent[gone] = keep
            cell = first[gone]
            while cell >= 0:
                after = following[cell]
                other = find(parent, neighbour[cell])
                slot = slot_of(keys, pair(gone, other, n_nodes))
                if keys[slot] != EMPTY and other != keep:
                    value = values[slot]
                    take_out(keys, values, slot)
                    key = pair(keep, other, n_nodes)
                    slot = slot_of(keys, key)
                    if keys[slot] == EMPTY:
                        keys[slot], values[slot] = key, 0.0
                        following[cell] = first[keep]
                        first[keep] = cell
                        length[keep] += 1
                    values[slot] += value
                    if values[slot] >= floor and values[slot] + price > 0:
                        heappush(heap, (-values[slot], min(keep, other), max(keep, other)))
                cell = after
    for node in range(n_nodes):
        parent[node] = find(parent, node)
    return parent
