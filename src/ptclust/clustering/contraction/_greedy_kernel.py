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

from typing import TYPE_CHECKING

import numpy as np

from ptclust._components import find, number_by_first_appearance
from ptclust._kernel import inlined, kernel

if TYPE_CHECKING:
    from ptclust._types import Array, Floats, Ints

#: An odd multiplier with well mixed bits (2^64 over the golden ratio, as signed).
MULTIPLIER = -7046029254386353131
EMPTY = -1
#: The floor sinks until one in so many of the sums that wait are above it; in the end, all.
PORTIONS = (64, 16, 4, 1)


@inlined
def home(key: int, mask: int) -> int:
    """Return where the search for a key begins: high bits of its product with the multiplier."""
    return ((key * MULTIPLIER) >> 20) & mask


@inlined
def pair(a: int, b: int, n_nodes: int) -> int:
    """Return the key of an unordered pair."""
    return a * n_nodes + b if a < b else b * n_nodes + a


@kernel
def slot_of(keys: Ints, key: int) -> int:
    """Return where the key is, or where it would go."""
    mask = len(keys) - 1
    slot = home(key, mask)
    while keys[slot] != EMPTY and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def take_out(keys: Ints, values: Floats, slot: int) -> None:
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


@inlined
def kth_smallest(values: Floats, n_values: int, k: int) -> float:
    """Return the value that sorting would put at k, by Hoare's selection; ``values`` is permuted.

    ``np.partition`` does the same, but takes 5 s to compile.
    """
    low, high = 0, n_values - 1
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
    value: float = values[k]
    return value


@inlined
def precedes(sum_a: float, key_a: int, sum_b: float, key_b: int) -> bool:
    """Return whether the first pair is joined before the second."""
    return sum_a > sum_b or (sum_a == sum_b and key_a < key_b)


@inlined
def rise(sums: Floats, pairs: Ints, i: int, total: float, key: int) -> None:
    """Put an entry at the end of the heap, i, and move it up to where it belongs."""
    while i > 0:
        above = (i - 1) >> 1
        if not precedes(total, key, sums[above], pairs[above]):
            break
        sums[i], pairs[i] = sums[above], pairs[above]
        i = above
    sums[i], pairs[i] = total, key


@inlined
def sink(sums: Floats, pairs: Ints, n_heap: int) -> None:
    """Put the entry behind the end of the heap first, and move it down to where it belongs."""
    total, key = sums[n_heap], pairs[n_heap]
    i, child = 0, 1
    while child < n_heap:
        other = child + 1
        if other < n_heap and precedes(sums[other], pairs[other], sums[child], pairs[child]):
            child = other
        if precedes(total, key, sums[child], pairs[child]):
            break
        sums[i], pairs[i] = sums[child], pairs[child]
        i, child = child, 2 * child + 1
    sums[i], pairs[i] = total, key


@kernel
def fill(sums: Floats, pairs: Ints, keys: Ints, values: Floats, floor: float, price: float) -> int:
    """Make a heap of all sums down to the floor that are worth a joint cluster; return its size."""
    n_heap = 0
    for slot in range(len(keys)):
        if keys[slot] != EMPTY and values[slot] >= floor and values[slot] + price > 0:
            rise(sums, pairs, n_heap, values[slot], keys[slot])
            n_heap += 1
    return n_heap


@inlined
def next_floor(keys: Ints, values: Floats, price: float, portion: int, waiting: Floats) -> float:
    """Return the least of the largest sums: of one in so many of those worth a joint cluster."""
    n_waiting = 0
    for slot in range(len(keys)):
        if keys[slot] != EMPTY and values[slot] + price > 0:
            waiting[n_waiting] = values[slot]
            n_waiting += 1
    n_below = n_waiting - n_waiting // portion
    if n_below == 0:
        return -np.inf
    if n_below == n_waiting:
        return np.inf
    return kth_smallest(waiting, n_waiting, n_below)


@inlined
def list_neighbours(
    keys: Ints, n_nodes: int, first: Ints, length: Ints, following: Ints, neighbour: Ints
) -> None:
    """Write first cell and length of every node's list; of every cell, the next and whom it names.

    The cells of a list lie side by side, which makes it faster to walk.
    """
    for node in range(n_nodes):
        length[node] = 0
    for slot in range(len(keys)):
        if keys[slot] != EMPTY:
            length[keys[slot] // n_nodes] += 1
            length[keys[slot] % n_nodes] += 1
    end = 0
    for node in range(n_nodes):
        end += length[node]
        first[node] = end
    for slot in range(len(keys)):
        if keys[slot] != EMPTY:
            a, b = keys[slot] // n_nodes, keys[slot] % n_nodes
            first[a] -= 1
            neighbour[first[a]] = b
            first[b] -= 1
            neighbour[first[b]] = a
    for node in range(n_nodes):
        end = first[node] + length[node]
        for cell in range(first[node], end):
            following[cell] = cell + 1
        if length[node] > 0:
            following[end - 1] = -1
        else:
            first[node] = -1


@kernel
def contract_greedily(
    sources: Array, targets: Array, affinity: Floats, n_nodes: int, price: float
) -> tuple[Ints, int]:
    """Join the pair of clusters with the largest sum until none exceeds minus the price.

    Of equal sums the pair with the smaller nodes comes first. Returns the cluster of every node,
    numbered by first appearance, and how many there are.
    """
    capacity = 16
    while capacity < 2 * len(sources):
        capacity *= 2
    keys, values = np.empty(capacity, np.int64), np.empty(capacity, np.float64)
    for slot in range(capacity):
        keys[slot], values[slot] = EMPTY, 0.0
    for edge in range(len(sources)):
        key = pair(sources[edge], targets[edge], n_nodes)
        slot = slot_of(keys, key)
        keys[slot] = key
        values[slot] += affinity[edge]
    first, length = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    following, neighbour = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    list_neighbours(keys, n_nodes, first, length, following, neighbour)
    parent = np.empty(n_nodes, np.int64)
    for node in range(n_nodes):
        parent[node] = node
    sums, pairs = np.empty(capacity, np.float64), np.empty(capacity, np.int64)
    for portion in PORTIONS:
        floor = next_floor(keys, values, price, portion, sums)
        n_heap = fill(sums, pairs, keys, values, floor, price)
        while n_heap > 0:
            total, key = sums[0], pairs[0]
            n_heap -= 1
            sink(sums, pairs, n_heap)
            slot = slot_of(keys, key)
            if keys[slot] == EMPTY or values[slot] != total:
                continue
            take_out(keys, values, slot)
            keep, gone = key // n_nodes, key % n_nodes
            if length[keep] < length[gone]:
                keep, gone = gone, keep
            parent[gone] = keep
            cell = first[gone]
            while cell >= 0:
                after = following[cell]
                other = find(parent, neighbour[cell])
                slot = slot_of(keys, pair(gone, other, n_nodes))
                if keys[slot] != EMPTY and other != keep:
                    total = values[slot]
                    take_out(keys, values, slot)
                    key = pair(keep, other, n_nodes)
                    slot = slot_of(keys, key)
                    if keys[slot] == EMPTY:
                        keys[slot], values[slot] = key, 0.0
                        following[cell] = first[keep]
                        first[keep] = cell
                        length[keep] += 1
                    values[slot] += total
                    total = values[slot]
                    if total >= floor and total + price > 0:
                        if n_heap == capacity:  # of outdated sums, as there are fewer pairs
                            n_heap = fill(sums, pairs, keys, values, floor, price)
                        else:
                            rise(sums, pairs, n_heap, total, key)
                            n_heap += 1
                cell = after
    for node in range(n_nodes):
        parent[node] = find(parent, node)
        first[node] = -1
    return parent, number_by_first_appearance(parent, first)
