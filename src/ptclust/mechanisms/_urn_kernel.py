"""Spanning trees drawn edge by edge with the Exponential mechanism, each draw in constant time.

A step of PAMST or of its Kruskal sibling selects an edge r among the candidates with probability
proportional to exp(-c w(r)). An *urn* holds the candidates and answers that draw exactly:

- The exponent c w / log 2 of an edge is rounded once to the grid 2^-GRID: an integer x. The rate
  2^(-x / 2^GRID) lies in (2^-(j+1), 2^-j] for j = x >> GRID, so edges are kept in buckets by j.
- A draw picks an edge as if all rates of a bucket were 2^-j, in integer arithmetic without any
  error, and accepts it with probability 2^(-fraction), at least one half; else it starts anew. So
  every edge has exactly its rate.
- An edge both ends of which are already connected is no candidate any more. If it is drawn, the
  draw starts anew, which leaves the probabilities of the others as they should be. When that has
  happened often enough, all such edges are thrown out of the urn in one sweep.

Buckets are compared over windows of 32 (``WIDTH``), a factor of 2^32 in rate. What lies beyond is
treated as one more bucket with a generous rate, and corrected by rejection if it is hit. So there
is no spread of weights at which a sum of exponentials loses its small terms, overflows or
underflows: rates are never added as floating-point numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptclust._components import find, union
from ptclust._kernel import inlined, kernel
from ptclust._types import Array, Bools, Floats, Ints
from ptclust.privacy._chacha_kernel import coin_flips_all_zero, uniform53, uniform_below

Stream = NDArray[np.uint32]

#: The sampler rounds exponents, in units of log 2, to multiples of 2^-GRID.
GRID = 40
_LARGEST = np.int64(1) << 62
BLOCK = 1 << 10
_SPLITTER = float(2**27 + 1)
_BEYOND_FLOAT = 1e290
#: Wasted draws that cost as much as sweeping one edge out of the urn.
_PATIENCE = 32
_BATCH = 256


class Urn(NamedTuple):
    """Edges in buckets by rate: bucket j is ``items[start[j]:start[j] + filled[j]]``."""

    start: Ints
    filled: Ints
    items: Array
    block_count: Ints  # items in every BLOCK buckets, to skip empty ones
    totals: Ints  # as named below


#: Places in ``Urn.totals``: items, first bucket that holds one, draws wasted on items that are no
#: candidates any more, the j of bucket 0, width of the window, and mass and number of the items in
#: the window from the first bucket.
N_ITEMS, FIRST, WASTED, SMALLEST, WIDTH, MASS, NUMBER = range(7)


@kernel
def exponent_of(weight: float, factor: float) -> int:
    """Return ``factor * weight`` rounded to the nearest integer without error, and clamped.

    Neighbouring weights must give neighbouring integers, so the product is formed without rounding
    error (Dekker 1971).
    """
    weight = min(max(weight, -_BEYOND_FLOAT), _BEYOND_FLOAT)
    product = factor * weight
    if abs(product) > float(_LARGEST):
        return int(_LARGEST if product > 0 else -_LARGEST)
    factor_high = factor * _SPLITTER - (factor * _SPLITTER - factor)
    factor_low = factor - factor_high
    high = weight * _SPLITTER - (weight * _SPLITTER - weight)
    low = weight - high
    error = (
        (factor_high * high - product) + factor_high * low + factor_low * high
    ) + factor_low * low
    whole = np.floor(product)
    # The product may be rounded to the largest though it is below: clamp what is exact.
    exact = np.int64(whole) + np.int64(np.floor((product - whole) + error + 0.5))
    return int(min(max(exact, -_LARGEST), _LARGEST))


@kernel
def lay_out(urn: Urn, weights: Floats, factor: float) -> None:
    """Give every bucket space for all edges of its rate; ``start`` is zero on entry."""
    for weight in weights:
        urn.start[(exponent_of(weight, factor) >> GRID) - urn.totals[SMALLEST] + 1] += 1
    for j in range(1, len(urn.start)):
        urn.start[j] += urn.start[j - 1]


@inlined
def place_for(urn: Urn, exponent: int) -> int:
    """Return the place of one more item of this rate, which is to be put there."""
    j = (exponent >> GRID) - urn.totals[SMALLEST]
    place = urn.start[j] + urn.filled[j]
    urn.filled[j] += 1
    urn.block_count[j // BLOCK] += 1
    urn.totals[N_ITEMS] += 1
    depth = j - urn.totals[FIRST]
    if depth < 0:
        look_from(urn, j)
    elif depth < urn.totals[WIDTH]:
        urn.totals[MASS] += np.int64(1) << (urn.totals[WIDTH] - 1 - depth)
        urn.totals[NUMBER] += 1
    return int(place)


@kernel
def take(urn: Urn, place: int, exponent: int) -> None:
    """Take the item at a place out of the urn; the last of its bucket moves there."""
    j = (exponent >> GRID) - urn.totals[SMALLEST]
    urn.filled[j] -= 1
    urn.items[place] = urn.items[urn.start[j] + urn.filled[j]]
    urn.block_count[j // BLOCK] -= 1
    urn.totals[N_ITEMS] -= 1
    depth = j - urn.totals[FIRST]
    if depth == 0 and urn.filled[j] == 0:
        look_from(urn, j)
    elif depth < urn.totals[WIDTH]:
        urn.totals[MASS] -= np.int64(1) << (urn.totals[WIDTH] - 1 - depth)
        urn.totals[NUMBER] -= 1


@kernel
def look_from(urn: Urn, j: int) -> None:
    """Let the window begin with the first bucket from ``j`` on that holds an item, if any."""
    if urn.totals[N_ITEMS] > 0:
        urn.totals[FIRST] = next_filled(urn, j)
        urn.totals[MASS], urn.totals[NUMBER] = window_mass(urn, urn.totals[FIRST])
    else:
        urn.totals[FIRST] = len(urn.filled)


@kernel
def next_filled(urn: Urn, j: int) -> int:
    """Return the first bucket from ``j`` on that holds an item, or one beyond the last."""
    while j < len(urn.filled) and urn.filled[j] == 0:
        j += 1
        while j % BLOCK == 0 and j < len(urn.filled) and urn.block_count[j // BLOCK] == 0:
            j += BLOCK
    return j


@kernel
def window_mass(urn: Urn, first: int) -> tuple[int, int]:
    """Return mass and number of the items in the window from ``first``; its least rate counts 1."""
    mass, number = np.int64(0), np.int64(0)
    width = urn.totals[WIDTH]
    for i in range(min(width, len(urn.filled) - first)):
        mass += urn.filled[first + i] << (width - 1 - i)
        number += urn.filled[first + i]
    return int(mass), int(number)


@kernel
def draw(urn: Urn, stream: Stream) -> int:
    """Return the place of an item, drawn with probability proportional to 2^-bucket.

    Of what lies beyond the window every item counts 1 there, at least twice what it should. If that
    part is hit, the next window takes its place with just the probability that its own mass
    deserves; else the draw starts anew.
    """
    width = urn.totals[WIDTH]
    while True:
        first, mass = urn.totals[FIRST], urn.totals[MASS]
        beyond = urn.totals[N_ITEMS] - urn.totals[NUMBER]
        y = uniform_below(stream, mass + beyond)
        while 0 <= y < beyond:
            later = next_filled(urn, first + width)
            mass, number = window_mass(urn, later)
            y = uniform_below(stream, beyond << (width - 1))
            beyond -= number
            if y >= mass + beyond or not coin_flips_all_zero(stream, later - first - width + 1):
                y = np.int64(-1)
            first = later
        if y >= 0:
            break
    y -= beyond
    shift = width - 1
    while y >= urn.filled[first] << shift:
        y -= urn.filled[first] << shift
        first += 1
        shift -= 1
    return int(urn.start[first] + (y >> shift))


@inlined
def is_accepted(exponent: int, stream: Stream) -> bool:
    """Return True with probability 2^(-fraction of the exponent)."""
    fraction = float(exponent & ((np.int64(1) << GRID) - 1)) * 2.0**-GRID
    return bool(float(uniform53(stream)) < np.exp2(53.0 - fraction))


@inlined
def is_time_to_sweep(urn: Urn) -> bool:
    """Return whether the draws wasted have cost about as much as sweeping the urn will."""
    return bool(_PATIENCE * urn.totals[WASTED] > urn.totals[N_ITEMS])


@inlined
def keep_first(urn: Urn, j: int, kept: int) -> None:
    """Keep only the first items of a bucket, after a sweep has moved them there."""
    urn.block_count[j // BLOCK] += kept - urn.filled[j]
    urn.totals[N_ITEMS] += kept - urn.filled[j]
    urn.filled[j] = kept


@kernel
def draw_kruskal(
    urn: Urn,
    weights: Floats,
    factor: float,
    sources: Array,
    targets: Array,
    parent: Array,
    stream: Stream,
    forest: Array,
) -> None:
    """Fill ``forest`` with edges drawn among all that join two components.

    An edge that was chosen is no candidate any more, like all whose ends are connected, so an urn
    that still holds it draws as well. Hence draws need not wait for each other: they are made a
    batch at a time, which hides the latency of memory, and what turns out to be no candidate is
    taken out after the batch.
    """
    put_joining(urn, weights, factor, sources, targets, parent[:0])
    places = np.empty(_BATCH, dtype=np.int64)
    a, b = np.empty(_BATCH, dtype=np.int64), np.empty(_BATCH, dtype=np.int64)
    n_forest, n_batch = 0, 1
    while n_forest < len(forest):
        for i in range(n_batch):
            places[i] = draw(urn, stream)
        n_accepted = 0
        for i in range(n_batch):
            edge = urn.items[places[i]]
            if is_accepted(exponent_of(weights[edge], factor), stream):
                places[n_accepted] = places[i]
                a[n_accepted], b[n_accepted] = sources[edge], targets[edge]
                n_accepted += 1
        n_before = n_forest
        for i in range(n_accepted):
            root, other = find(parent, a[i]), find(parent, b[i])
            if root != other and n_forest < len(forest):
                union(parent, root, other)
                forest[n_forest] = urn.items[places[i]]
                n_forest += 1
        urn.totals[WASTED] += n_accepted - (n_forest - n_before)
        n_repeated = take_all(urn, places[:n_accepted], weights, factor)
        n_batch = max(n_batch // 2, 1) if 4 * n_repeated > n_batch else min(2 * n_batch, _BATCH)
        if is_time_to_sweep(urn):
            for node in range(len(parent)):
                parent[node] = parent[parent[node]]
            if 4 * urn.totals[N_ITEMS] > len(weights):  # reading all edges in order is faster
                put_joining(urn, weights, factor, sources, targets, parent)
            else:
                sweep_connected(urn, sources, targets, parent)


@kernel
def put_joining(
    urn: Urn, weights: Floats, factor: float, sources: Array, targets: Array, component: Array
) -> None:
    """Fill the urn anew with the edges that join two components; without components, with all."""
    start, filled, items = urn.start, urn.filled, urn.items
    smallest = urn.totals[SMALLEST]
    filled[:] = 0
    count = 0
    for edge in range(len(weights)):
        if len(component) == 0 or component[sources[edge]] != component[targets[edge]]:
            j = (exponent_of(weights[edge], factor) >> GRID) - smallest
            items[start[j] + filled[j]] = edge
            filled[j] += 1
            count += 1
    urn.block_count[:] = 0
    for j in range(len(filled)):
        urn.block_count[j // BLOCK] += filled[j]
    urn.totals[N_ITEMS] = count
    urn.totals[WASTED] = 0
    look_from(urn, 0)


@kernel
def take_all(urn: Urn, places: Ints, weights: Floats, factor: float) -> int:
    """Take the edges at these places out of the urn; return how many places were repetitions."""
    places.sort()
    n_repeated = 0
    for i in range(len(places) - 1, -1, -1):  # from the end: no place still to be emptied moves
        if i < len(places) - 1 and places[i] == places[i + 1]:
            n_repeated += 1
        else:
            take(urn, places[i], exponent_of(weights[urn.items[places[i]]], factor))
    return n_repeated


@kernel
def sweep_connected(urn: Urn, sources: Array, targets: Array, parent: Array) -> None:
    """Take all edges out of the urn whose ends have one parent."""
    j = next_filled(urn, 0)
    while j < len(urn.filled):
        start, kept = urn.start[j], 0
        for slot in range(urn.filled[j]):
            edge = urn.items[start + slot]
            urn.items[start + kept] = edge
            kept += parent[sources[edge]] != parent[targets[edge]]
        keep_first(urn, j, kept)
        j = next_filled(urn, j + 1)
    urn.totals[WASTED] = 0
    look_from(urn, 0)


@kernel
def group_arcs(sources: Array, targets: Array, start: Array, arcs: Array) -> None:
    """List every edge in both directions: the arcs from v are ``arcs[start[v]:start[v + 1]]``.

    ``start`` is zero on entry.
    """
    for edge in range(len(sources)):
        start[sources[edge] + 1] += 1
        start[targets[edge] + 1] += 1
    for node in range(1, len(start)):
        start[node] += start[node - 1]
    for edge in range(len(sources)):
        a, b = sources[edge], targets[edge]
        for here, there in ((a, b), (b, a)):
            arc = start[here]
            arcs[arc].node = there
            arcs[arc].edge = edge
            start[here] = arc + 1
    for node in range(len(start) - 1, 0, -1):
        start[node] = start[node - 1]
    start[0] = 0


@kernel
def draw_pamst(
    urn: Urn,
    weights: Floats,
    factor: float,
    start: Array,
    arcs: Array,
    roots: Array,
    stream: Stream,
    forest: Array,
) -> None:
    """Fill ``forest`` with edges drawn among those that leave the nodes reached (Algorithm 2).

    ``roots`` are all nodes; shuffled, the first of them in a component is uniform among its nodes,
    and starts its tree.
    """
    for i in range(len(roots) - 1, 0, -1):
        other = uniform_below(stream, i + 1)
        roots[i], roots[other] = roots[other], roots[i]
    reached = np.zeros(len(roots), dtype=np.bool_)
    leaving, exponent = np.empty(_BATCH, dtype=np.int64), np.empty(_BATCH, dtype=np.int64)
    n_forest = 0
    for root in roots:
        node = root
        while not reached[node] and n_forest < len(forest):
            reached[node] = True
            for first in range(start[node], start[node + 1], _BATCH):
                n_leaving = 0
                for i in range(first, min(first + _BATCH, start[node + 1])):
                    leaving[n_leaving] = i
                    n_leaving += not reached[arcs[i].node]
                for i in range(n_leaving):  # apart from what follows, so that memory is read ahead
                    exponent[i] = exponent_of(weights[arcs[leaving[i]].edge], factor)
                for i in range(n_leaving):
                    place = place_for(urn, exponent[i])
                    urn.items[place].node = arcs[leaving[i]].node
                    urn.items[place].edge = arcs[leaving[i]].edge
            while urn.totals[N_ITEMS] > 0:
                place = draw(urn, stream)
                arc = urn.items[place]
                if reached[arc.node]:
                    take(urn, place, exponent_of(weights[arc.edge], factor))
                    urn.totals[WASTED] += 1
                    if is_time_to_sweep(urn):
                        sweep_reached(urn, reached)
                elif is_accepted(exponent_of(weights[arc.edge], factor), stream):
                    forest[n_forest] = arc.edge
                    n_forest += 1
                    node = arc.node
                    break


@kernel
def sweep_reached(urn: Urn, reached: Bools) -> None:
    """Take all arcs out of the urn that lead to a node already reached."""
    j = next_filled(urn, 0)
    while j < len(urn.filled):
        start, kept = urn.start[j], 0
        for slot in range(urn.filled[j]):
            node, edge = urn.items[start + slot].node, urn.items[start + slot].edge
            urn.items[start + kept].node = node
            urn.items[start + kept].edge = edge
            kept += not reached[node]
        keep_first(urn, j, kept)
        j = next_filled(urn, j + 1)
    urn.totals[WASTED] = 0
    look_from(urn, 0)
