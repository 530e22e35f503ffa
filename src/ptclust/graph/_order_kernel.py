"""Kernels that put edges in canonical order: by their lower node, then by their higher one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptclust._kernel import inlined, kernel
from ptclust._sorting import sort_pairs
from ptclust._types import Array, Ints

#: How edges may come: in canonical order, by their higher node alone, or otherwise.
BY_LOWER, BY_HIGHER, OTHERWISE = range(3)


@kernel
def order_of(sources: Array, targets: Array) -> int:
    """Return how the edges come; in canonical order they begin with their lower node, too."""
    by_lower, by_higher = True, True
    low, high = -1, -1
    for i in range(len(sources)):
        a, b = int(sources[i]), int(targets[i])
        by_higher &= max(a, b) >= high
        by_lower &= a < b and (a > low or (a == low and b >= high))
        if not (by_lower or by_higher):
            return OTHERWISE
        low, high = min(a, b), max(a, b)
    return BY_LOWER if by_lower else BY_HIGHER


@kernel
def any_repeated(sources: Array, targets: Array) -> bool:
    """Whether two edges in canonical order join the same two nodes."""
    found = False
    for i in range(np.uint64(1), np.uint64(len(sources))):
        before = i - np.uint64(1)
        found |= (sources[i] == sources[before]) & (targets[i] == targets[before])
    return found


@kernel
def sort_by_lower(
    sources: Array,
    targets: Array,
    words: Array,
    places: Array,
    low: Array,
    high: Array,
    ordered: Array,
) -> None:
    """Sort edges that come by their higher node, and their words, by one count of the lower nodes.

    ``places``, one for every node, are zero on entry.
    """
    for i in range(len(sources)):
        places[min(sources[i], targets[i])] += 1
    place = 0
    for node in range(len(places)):
        place, places[node] = place + places[node], place
    for i in range(len(sources)):
        a, b = min(sources[i], targets[i]), max(sources[i], targets[i])
        place = places[a]
        low[place], high[place], ordered[place] = a, b, words[i]
        places[a] = place + 1


@inlined
def _key(a: int, b: int, node_bits: int) -> Any:
    """Return the number that orders edges: its lower node, then its higher one."""
    return np.uint64(min(a, b)) << np.uint64(node_bits) | np.uint64(max(a, b))


@kernel
def split(
    sources: Array, targets: Array, words: Array, node_bits: int, ends: Ints, pairs: Array
) -> None:
    """Pair the keys of edges with their words, part by part; ``ends``, of the parts, is zero."""
    shift = np.uint64(2 * node_bits) - np.uint64(np.log2(len(ends)))
    for i in range(len(sources)):
        ends[_key(sources[i], targets[i], node_bits) >> shift] += 1
    place = 0
    for part in range(len(ends)):
        place, ends[part] = place + ends[part], place
    for i in range(len(sources)):
        key = _key(sources[i], targets[i], node_bits)
        place = ends[key >> shift]
        pairs[place].key, pairs[place].value = key, words[i]
        ends[key >> shift] = place + 1


@kernel
def sort_parts(
    pairs: Array,
    ends: Ints,
    buffer: Array,
    counts: Ints,
    node_bits: int,
    low: Array,
    high: Array,
    words: Array,
) -> None:
    """Sort every part, and take its pairs apart again."""
    shift, mask = np.uint64(node_bits), (np.uint64(1) << np.uint64(node_bits)) - np.uint64(1)
    first = 0
    for end in ends:
        part = pairs[first:end]
        if sort_pairs(part, buffer[: end - first], counts):
            part = buffer[: end - first]
        for i in range(end - first):
            low[first + i], high[first + i] = part[i].key >> shift, part[i].key & mask
            words[first + i] = part[i].value
        first = end
