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
from ptclust._kernel import inlined, kernel, merged
from ptclust._types import Array, Floats, Ints
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
def place_for(start: Ints, filled: Ints, block_count: Ints, totals: Ints, exponent: int) -> int:
    """Return the place of one more item of this rate, which is to be put there."""
    j = (exponent >> GRID) - totals[SMALLEST]
    place = start[j] + filled[j]
    filled[j] += 1
    block_count[j // BLOCK] += 1
    totals[N_ITEMS] += 1
    depth = j - totals[FIRST]
    if depth < 0:
        look_from(filled, block_count, totals, j)
    elif depth < totals[WIDTH]:
        totals[MASS] += np.int64(1) << (totals[WIDTH] - 1 - depth)
        totals[NUMBER] += 1
    return int(place)


@merged
def take(
    start: Ints,
    filled: Ints,
    items: Array,
    block_count: Ints,
    totals: Ints,
    place: int,
    exponent: int,
) -> None:
    """Take the item at a place out of the urn; the last of its bucket moves there."""
    j = (exponent >> GRID) - totals[SMALLEST]
    filled[j] -= 1
    items[place] = items[start[j] + filled[j]]
    block_count[j // BLOCK] -= 1
    totals[N_ITEMS] -= 1
    depth = j - totals[FIRST]
    if depth == 0 and filled[j] == 0:
        look_from(filled, block_count, totals, j)
    elif depth < totals[WIDTH]:
        totals[MASS] -= np.int64(1) << (totals[WIDTH] - 1 - depth)
        totals[NUMBER] -= 1


@kernel
def look_from(filled: Ints, block_count: Ints, totals: Ints, j: int) -> None:
    """Let the window begin with the first bucket from ``j`` on that holds an item, if any."""
    if totals[N_ITEMS] > 0:
        totals[FIRST] = next_filled(filled, block_count, j)
        totals[MASS], totals[NUMBER] = window_mass(filled, totals, totals[FIRST])
    else:
        totals[FIRST] = len(filled)


@kernel
def next_filled(filled: Ints, block_count: Ints, j: int) -> int:
    """Return the first bucket from ``j`` on that holds an item, or one beyond the last."""
    while j < len(filled) and filled[j] == 0:
        j += 1
        while j % BLOCK == 0 and j < len(filled) and block_count[j // BLOCK] == 0:
            j += BLOCK
    return j


@kernel
def window_mass(filled: Ints, totals: Ints, first: int) -> tuple[int, int]:
    """Return mass and number of the items in the window from ``first``; its least rate counts 1."""
    mass, number = np.int64(0), np.int64(0)
    width = totals[WIDTH]
    for i in range(min(width, len(filled) - first)):
        mass += filled[first + i] << (width - 1 - i)
        number += filled[first + i]
    return int(mass), int(number)


@merged
def draw(start: Ints, filled: Ints, block_count: Ints, totals: Ints, stream: Stream) -> int:
    """Return the place of an item, drawn with probability proportional to 2^-bucket.

    Of what lies beyond the window every item counts 1 there, at least twice what it should. If that
    part is hit, the next window takes its place with just the probability that its own mass
    deserves; else the draw starts anew.
    """
    width = totals[WIDTH]
    while True:
        first, mass = totals[FIRST], totals[MASS]
        beyond = totals[N_ITEMS] - totals[NUMBER]
        y = uniform_below(stream, mass + beyond)
        while 0 <= y < beyond:
            later = next_filled(filled, block_count, first + width)
            mass, number = window_mass(filled, totals, later)
            y = uniform_below(stream, beyond << (width - 1))
            beyond -= number
            if y >= mass + beyond or not coin_flips_all_zero(stream, later - first - width + 1):
                y = np.int64(-1)
            first = later
        if y >= 0:
            break
    y -= beyond
    shift = width - 1
    while y >= filled[first] << shift:
        y -= filled[first] << shift
        first += 1
        shift -= 1
    return int(start[first] + (y >> shift))


@inlined
def is_accepted(exponent: int, stream: Stream) -> bool:
    """Return True with probability 2^(-fraction of the exponent)."""
    fraction = float(exponent & ((np.int64(1) << GRID) - 1)) * 2.0**-GRID
    return bool(float(uniform53(stream)) < np.exp2(53.0 - fraction))


@inlined
def is_time_to_sweep(totals: Ints) -> bool:
    """Return whether the draws wasted have cost about as much as sweeping the urn will."""
    return bool(_PATIENCE * totals[WASTED] > totals[N_ITEMS])


@inlined
def keep_first(filled: Ints, block_count: Ints, totals: Ints, j: int, kept: int) -> None:
    """Keep only the first items of a bucket, after a sweep has moved them there."""
    block_count[j // BLOCK] += kept - filled[j]
    totals[N_ITEMS] += kept - filled[j]
    filled[j] = kept


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
    start, filled, items, block_count, totals = urn
    put_joining(urn, weights, factor, sources, targets, parent[:0])
    places, edges, a, b, exponent = np.empty((5, _BATCH), dtype=np.int64)
    n_forest, n_batch = 0, 1
    while n_forest < len(forest):
        for i in range(n_batch):
            places[i] = draw(start, filled, block_count, totals, stream)
        # No branch waits for memory here, so that all of the batch is read at once.
        for i in range(n_batch):
            edges[i] = items[places[i]]
        for i in range(n_batch):
            exponent[i] = exponent_of(weights[edges[i]], factor)
            a[i], b[i] = parent[sources[edges[i]]], parent[targets[edges[i]]]
        n_accepted = 0
        for i in range(n_batch):
            is_taken = is_accepted(exponent[i], stream)
            places[n_accepted], edges[n_accepted] = places[i], edges[i]
            a[n_accepted], b[n_accepted] = a[i], b[i]
            n_accepted += is_taken
        n_before = n_forest
        for i in range(n_accepted):
            root, other = find(parent, a[i]), find(parent, b[i])
            if root != other and n_forest < len(forest):
                union(parent, root, other)
                forest[n_forest] = edges[i]
                n_forest += 1
        totals[WASTED] += n_accepted - (n_forest - n_before)
        n_repeated = take_all(
            start, filled, items, block_count, totals, places[:n_accepted], weights, factor
        )
        n_batch = max(n_batch // 2, 1) if 4 * n_repeated > n_batch else min(2 * n_batch, _BATCH)
        if is_time_to_sweep(totals):
            for node in range(len(parent)):
                parent[node] = parent[parent[node]]
            if 4 * totals[N_ITEMS] > len(weights):  # reading all edges in order is faster
                put_joining(urn, weights, factor, sources, targets, parent)
            else:
                sweep_connected(urn, sources, targets, parent)


@kernel
def put_joining(
    urn: Urn, weights: Floats, factor: float, sources: Array, targets: Array, component: Array
) -> None:
    """Fill the urn anew with the edges that join two components; without components, with all."""
    start, filled, items, block_count, totals = urn
    smallest = totals[SMALLEST]
    filled[:] = 0
    count = 0
    for edge in range(len(weights)):
        if len(component) == 0 or component[sources[edge]] != component[targets[edge]]:
            j = (exponent_of(weights[edge], factor) >> GRID) - smallest
            items[start[j] + filled[j]] = edge
            filled[j] += 1
            count += 1
    block_count[:] = 0
    for j in range(len(filled)):
        block_count[j // BLOCK] += filled[j]
    totals[N_ITEMS] = count
    totals[WASTED] = 0
    look_from(filled, block_count, totals, 0)


@merged
def take_all(
    start: Ints,
    filled: Ints,
    items: Array,
    block_count: Ints,
    totals: Ints,
    places: Ints,
    weights: Floats,
    factor: float,
) -> int:
    """Take the edges at these places out of the urn; return how many places were repetitions."""
    places.sort()
    n_repeated = 0
    for i in range(len(places) - 1, -1, -1):  # from the end: no place still to be emptied moves
        if i < len(places) - 1 and places[i] == places[i + 1]:
            n_repeated += 1
        else:
            take(
                start,
                filled,
                items,
                block_count,
                totals,
                places[i],
                exponent_of(weights[items[places[i]]], factor),
            )
    return n_repeated


@kernel
def sweep_connected(urn: Urn, sources: Array, targets: Array, parent: Array) -> None:
    """Take all edges out of the urn whose ends have one parent."""
    start, filled, items, block_count, totals = urn
    j = next_filled(filled, block_count, 0)
    while j < len(filled):
        first, kept = start[j], 0
        for slot in range(filled[j]):
            edge = items[first + slot]
            items[first + kept] = edge
            kept += parent[sources[edge]] != parent[targets[edge]]
        keep_first(filled, block_count, totals, j, kept)
        j = next_filled(filled, block_count, j + 1)
    totals[WASTED] = 0
    look_from(filled, block_count, totals, 0)


@kernel
def group_arcs(sources: Array, targets: Array, starts: Array, backward: Array) -> None:
    """List every edge at both of its nodes; edges are in the order of their sources.

    Those from v to their targets are the edges from ``starts[v].forward`` up to that of v + 1. Of
    those from v to their sources, edge and node are in ``backward``, from ``starts[v].backward`` up
    to that of v + 1. ``starts`` is zero on entry.
    """
    for edge in range(len(sources)):
        starts[sources[edge] + 1].forward += 1
        starts[targets[edge] + 1].backward += 1
    for node in range(1, len(starts)):
        starts[node].forward += starts[node - 1].forward
        starts[node].backward += starts[node - 1].backward
    for edge in range(len(sources)):
        here = starts[targets[edge]]
        backward[here.backward].node, backward[here.backward].edge = sources[edge], edge
        here.backward += 1
    for node in range(len(starts) - 1, 0, -1):
        starts[node].backward = starts[node - 1].backward
    starts[0].backward = 0


@inlined
def is_reached(reached: Array, node: int) -> bool:
    """Return the bit of a node."""
    return bool((reached[node >> 6] >> np.uint64(node & 63)) & np.uint64(1))


@kernel
def draw_pamst(
    urn: Urn,
    weights: Floats,
    factor: float,
    targets: Array,
    starts: Array,
    backward: Array,
    roots: Array,
    stream: Stream,
    forest: Array,
) -> None:
    """Fill ``forest`` with edges drawn among those that leave the nodes reached (Algorithm 2).

    ``roots`` are all nodes; shuffled, the first of them in a component is uniform among its nodes,
    and starts its tree.
    """
    start, filled, items, block_count, totals = urn
    for i in range(len(roots) - 1, 0, -1):
        other = uniform_below(stream, i + 1)
        roots[i], roots[other] = roots[other], roots[i]
    reached = np.zeros(len(roots) // 64 + 1, dtype=np.uint64)  # bits: the caches hold them all
    leaving, leaving_to = np.empty((2, _BATCH), dtype=np.int64)
    weight = np.empty(_BATCH)
    n_forest = 0
    for root in roots:
        node = root
        while not is_reached(reached, node) and n_forest < len(forest):
            reached[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
            here, after = starts[node], starts[node + 1]
            n_backward = after.backward - here.backward
            n_arcs = n_backward + after.forward - here.forward
            for first in range(0, n_arcs, _BATCH):
                n_leaving = 0
                for i in range(first, min(first + _BATCH, n_arcs)):
                    if i < n_backward:
                        arc = backward[here.backward + i]
                        leaving[n_leaving], leaving_to[n_leaving] = arc.edge, arc.node
                    else:
                        edge = here.forward + i - n_backward
                        leaving[n_leaving], leaving_to[n_leaving] = edge, targets[edge]
                    n_leaving += not is_reached(reached, leaving_to[n_leaving])
                for i in range(n_leaving):  # apart from what follows, so that memory is read ahead
                    weight[i] = weights[leaving[i]]
                for i in range(n_leaving):
                    exponent = exponent_of(weight[i], factor)
                    item = items[place_for(start, filled, block_count, totals, exponent)]
                    item.node, item.edge, item.exponent = leaving_to[i], leaving[i], exponent
            while totals[N_ITEMS] > 0:
                place = draw(start, filled, block_count, totals, stream)
                item = items[place]
                if is_reached(reached, item.node):
                    take(start, filled, items, block_count, totals, place, item.exponent)
                    totals[WASTED] += 1
                    if is_time_to_sweep(totals):
                        sweep_reached(urn, reached)
                elif is_accepted(item.exponent, stream):
                    forest[n_forest] = item.edge
                    n_forest += 1
                    node = item.node
                    break


@kernel
def sweep_reached(urn: Urn, reached: Array) -> None:
    """Take all arcs out of the urn that lead to a node already reached."""
    start, filled, items, block_count, totals = urn
    j = next_filled(filled, block_count, 0)
    while j < len(filled):
        first, kept = start[j], 0
        for slot in range(filled[j]):
            node, edge = items[first + slot].node, items[first + slot].edge
            exponent = items[first + slot].exponent
            items[first + kept].node, items[first + kept].edge = node, edge
            items[first + kept].exponent = exponent
            kept += not is_reached(reached, node)
        keep_first(filled, block_count, totals, j, kept)
        j = next_filled(filled, block_count, j + 1)
    totals[WASTED] = 0
    look_from(filled, block_count, totals, 0)
