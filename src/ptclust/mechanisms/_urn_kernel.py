"""Spanning trees drawn edge by edge with the Exponential mechanism, each draw in constant time.

A step of PAMST or of its Kruskal sibling selects an edge r among the candidates with probability
proportional to exp(-c w(r)). An *urn* holds the candidates and answers that draw exactly:

- The exponent c w / log 2 of an edge is rounded once to the grid 2^-GRID: an integer x. The rate
  2^(-x / 2^GRID) lies in (2^-(j+1), 2^-j] for j = x >> GRID, so edges are kept in buckets by j.
- A draw picks an edge as if all rates of a bucket were 2^-j, in integer arithmetic without any
  error, and accepts it with probability 2^(-fraction), at least one half; else it starts anew. So
  every edge has exactly its rate.
- An edge both ends of which are already connected is no longer a candidate. If it is drawn, the
  draw starts anew, which leaves the probabilities of the others as they should be. When that has
  happened often enough, all such edges are thrown out of the urn in one sweep.

Buckets are compared over windows of 32 (``WIDTH``), a factor of 2^32 in rate. What lies beyond is
treated as one more bucket with a generous rate, and corrected by rejection if it is hit. So there
is no spread of weights at which a sum of exponentials loses its small terms, overflows or
underflows: rates are never added as floating-point numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
_WORD_BITS, _BIT, _ONE = np.uint64(6), np.uint64(63), np.uint64(1)


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
def fill_exponents(weights: Floats, factor: float, exponents: Ints) -> None:
    """Fill ``exponents`` with those of all weights."""
    for i in range(len(weights)):
        exponents[i] = exponent_of(weights[i], factor)


@kernel
def lay_out(urn: Urn, weights: Floats, factor: float) -> None:
    """Give every bucket space for all edges of its rate; ``start`` is zero on entry."""
    for weight in weights:
        urn.start[(exponent_of(weight, factor) >> GRID) - urn.totals[SMALLEST] + 1] += 1
    for j in range(1, len(urn.start)):
        urn.start[j] += urn.start[j - 1]


@merged
def take(
    start: Ints, filled: Ints, items: Array, block_count: Ints, totals: Ints, place: int, j: int
) -> None:
    """Take the item at a place out of the bucket j; the last of its bucket moves there."""
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
def draw(
    start: Ints, filled: Ints, block_count: Ints, totals: Ints, stream: Stream, others: int
) -> tuple[int, int]:
    """Return place and bucket of an item, drawn with probability proportional to 2^-bucket.

    Of what lies beyond the window every item counts 1 there, at least twice what it should. If that
    part is hit, the next window takes its place with just the probability that its own mass
    deserves; else the draw starts anew. ``others`` is a mass that is not in the urn: if it is hit,
    where is returned, and -1 as the bucket.
    """
    width = totals[WIDTH]
    while True:
        first, mass = totals[FIRST], totals[MASS]
        beyond = totals[N_ITEMS] - totals[NUMBER]
        y = uniform_below(stream, mass + beyond + others)
        if y >= mass + beyond:
            return y - mass - beyond, -1
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
    return start[first] + (y >> shift), first


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
def keep_first(filled: Ints, block_count: Ints, totals: Ints, j: int, kept: Any) -> None:
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

    An edge that was chosen is no longer a candidate, like all whose ends are connected, so an urn
    that still holds it draws as well. Hence draws need not wait for each other: they are made a
    batch at a time, which hides the latency of memory, and what turns out to be no candidate is
    taken out after the batch. Items carry the ends of their edge, so that neither a draw nor a
    sweep has to look for them elsewhere in memory.
    """
    start, filled, items, block_count, totals = urn
    put_joining(urn, weights, factor, sources, targets, parent[:0])
    places, edges, a, b, exponent = np.empty((5, _BATCH), dtype=np.int64)
    n_forest, n_batch = 0, 1
    while n_forest < len(forest):
        for i in range(n_batch):
            places[i] = draw(start, filled, block_count, totals, stream, 0)[0]
        # No branch waits for memory here, so that all of the batch is read at once.
        for i in range(n_batch):
            item = items[places[i]]
            edges[i], a[i], b[i] = item.edge, item.source, item.target
        for i in range(n_batch):
            exponent[i] = exponent_of(weights[edges[i]], factor)
            a[i], b[i] = parent[a[i]], parent[b[i]]
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
                sweep_connected(urn, parent)


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
            item = items[start[j] + filled[j]]
            item.edge, item.source, item.target = edge, sources[edge], targets[edge]
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
                (exponent_of(weights[items[places[i]].edge], factor) >> GRID) - totals[SMALLEST],
            )
    return n_repeated


@kernel
def sweep_connected(urn: Urn, parent: Array) -> None:
    """Take all edges out of the urn whose ends have one parent."""
    start, filled, items, block_count, totals = urn
    j = next_filled(filled, block_count, 0)
    while j < len(filled):
        first, kept = start[j], 0
        for slot in range(filled[j]):
            item = items[first + slot]
            joins = parent[item.source] != parent[item.target]
            items[first + kept] = item
            kept += joins
        keep_first(filled, block_count, totals, j, kept)
        j = next_filled(filled, block_count, j + 1)
    totals[WASTED] = 0
    look_from(filled, block_count, totals, 0)


class Arcs(NamedTuple):
    """Edges at both of their nodes: those at v are ``arcs[starts[v]:starts[v + 1]]``."""

    starts: Array
    arcs: Array  # the other node, the edge, and its bucket


class Edges(NamedTuple):
    """The edges of a graph, their weights, and what takes weights to rounded exponents."""

    sources: Array
    targets: Array
    weights: Floats
    factor: float


@inlined
def is_reached(reached: Array, node: Any) -> bool:
    """Return the bit of a node."""
    word = reached[np.uint64(node) >> _WORD_BITS]
    return bool((word >> (np.uint64(node) & _BIT)) & _ONE)


@kernel
def count_arcs(edges: Edges, heaviest: float, reached: Array, starts: Array) -> None:
    """Turn ``starts``, zero on entry, into where the arcs of every node begin.

    Listed are edges up to the weight ``heaviest`` of which no end is reached.
    """
    sources, targets, weights, _ = edges
    for edge in range(np.uint64(len(weights))):
        a, b = np.uint64(sources[edge]), np.uint64(targets[edge])
        if weights[edge] <= heaviest and not (is_reached(reached, a) or is_reached(reached, b)):
            starts[a] += 1
            starts[b] += 1
    count = 0
    for node in range(len(starts)):
        count, starts[node] = count + starts[node], count


@kernel
def list_arcs(edges: Edges, heaviest: float, reached: Array, totals: Ints, near: Arcs) -> None:
    """Write the arcs in the order of their edges; ``near.starts`` has been counted."""
    sources, targets, weights, factor = edges
    starts, arcs = near
    for edge in range(np.uint64(len(weights))):
        a, b = np.uint64(sources[edge]), np.uint64(targets[edge])
        if weights[edge] <= heaviest and not (is_reached(reached, a) or is_reached(reached, b)):
            place, other_place = np.uint64(starts[a]), np.uint64(starts[b])
            j = (exponent_of(weights[edge], factor) >> GRID) - totals[SMALLEST]
            arcs[place].node, arcs[place].edge, arcs[place].bucket = b, edge, j
            arcs[other_place].node, arcs[other_place].edge = a, edge
            arcs[other_place].bucket = j
            starts[a] += 1
            starts[b] += 1
    for node in range(len(starts) - 1, 0, -1):
        starts[node] = starts[node - 1]
    starts[0] = 0


@merged
def put(
    start: Ints, filled: Ints, items: Array, block_count: Ints, totals: Ints, arcs: Array
) -> None:
    """Put arcs into the urn."""
    first, width = totals[FIRST], totals[WIDTH]
    mass, number, lowest = np.int64(0), np.int64(0), first
    for i in range(np.uint64(len(arcs))):
        j = np.uint64(arcs[i].bucket)
        place = np.uint64(start[j] + filled[j])
        items[place].node, items[place].edge = arcs[i].node, arcs[i].edge
        filled[j] += 1
        block_count[j // np.uint64(BLOCK)] += 1
        depth = np.int64(j) - first
        lowest = min(lowest, np.int64(j))
        if 0 <= depth < width:
            mass += np.int64(1) << (width - 1 - depth)
            number += 1
    totals[N_ITEMS] += len(arcs)
    if lowest < first:
        look_from(filled, block_count, totals, lowest)
    else:
        totals[MASS] += mass
        totals[NUMBER] += number


@kernel
def shuffle(values: Array, stream: Stream) -> None:
    """Put the values in a uniformly random order."""
    for i in range(len(values) - 1, 0, -1):
        other = uniform_below(stream, i + 1)
        values[i], values[other] = values[other], values[i]


@kernel
def draw_pamst(
    urn: Urn,
    edges: Edges,
    heaviest: float,
    edges_per_waste: int,
    near: Arcs,
    reached: Array,
    roots: Array,
    stream: Stream,
    forest: Array,
    counts: Ints,
) -> None:
    """Fill ``forest`` with edges drawn among those that leave the nodes reached (Algorithm 2).

    ``roots`` are all nodes in random order: the first of them in a component is uniform among its
    nodes, and starts its tree. ``counts`` has the edges chosen and the roots looked at so far.

    Edges heavier than ``heaviest`` are not listed at their nodes. Together they are one more bucket
    of the urn, with a rate no smaller than any of theirs: if it is hit, one of all edges of the
    graph is drawn, and chosen with the rate that it deserves if it is one of them and leaves the
    nodes reached; else the draw starts anew. When that was in vain for one in ``edges_per_waste``
    edges, or the urn is empty, the forest is left unfinished: these edges are to be put into it.
    """
    start, filled, items, block_count, totals = urn
    sources, targets, weights, factor = edges
    starts, arcs = near
    leaving = np.empty(_BATCH, dtype=arcs.dtype)
    n_forest, n_roots = counts
    n_heavy, heavy_bucket = 0, 0
    if heaviest < np.inf:
        n_heavy = len(weights)
        heavy_bucket = (exponent_of(heaviest, factor) >> GRID) - totals[SMALLEST]
    patience = n_heavy // edges_per_waste
    while n_forest < len(forest):
        if totals[N_ITEMS] == 0:
            if n_heavy > 0 and n_roots > 0:
                break
            node = np.int64(roots[n_roots])
            n_roots += 1
            if is_reached(reached, node):
                continue
        else:
            shift = totals[FIRST] + totals[WIDTH] - 1 - heavy_bucket
            heavy = n_heavy << max(shift, 0)
            place, j = draw(start, filled, block_count, totals, stream, heavy)
            if j >= 0:
                node, edge = np.int64(items[place].node), np.int64(items[place].edge)
                if is_reached(reached, node):
                    take(start, filled, items, block_count, totals, place, j)
                    totals[WASTED] += 1
                    if is_time_to_sweep(totals):
                        sweep_reached(urn, reached)
                    continue
                if not is_accepted(exponent_of(weights[edge], factor), stream):
                    continue
            else:
                edge = np.int64(place >> max(shift, 0))
                a, b = np.int64(sources[edge]), np.int64(targets[edge])
                node = b if is_reached(reached, a) else a
                chosen = is_reached(reached, a) != is_reached(reached, b)
                if chosen and weights[edge] > heaviest:
                    exponent = exponent_of(weights[edge], factor)
                    excess = (exponent >> GRID) - totals[SMALLEST] - heavy_bucket - min(shift, 0)
                    chosen = coin_flips_all_zero(stream, excess) and is_accepted(exponent, stream)
                else:
                    chosen = False
                if not chosen:
                    patience -= 1
                    if patience < 0:
                        break
                    continue
            forest[n_forest] = edge
            n_forest += 1
        reached[np.uint64(node) >> _WORD_BITS] |= _ONE << (np.uint64(node) & _BIT)
        here, after = np.uint64(starts[node]), np.uint64(starts[node + 1])
        while here < after:
            batch_end = min(after, here + np.uint64(_BATCH))
            n_leaving = np.uint64(0)
            for i in range(here, batch_end):
                leaving[n_leaving] = arcs[i]
                n_leaving += np.uint64(not is_reached(reached, arcs[i].node))
            put(start, filled, items, block_count, totals, leaving[:n_leaving])
            here = batch_end
    counts[0], counts[1] = n_forest, n_roots


@kernel
def put_heavy(urn: Urn, edges: Edges, heaviest: float, reached: Array, arc: Array) -> None:
    """Put the edges heavier than ``heaviest`` that leave the nodes reached into the urn.

    ``arc`` is a buffer for one of them.
    """
    start, filled, items, block_count, totals = urn
    sources, targets, weights, factor = edges
    for edge in range(np.uint64(len(weights))):
        a, b = is_reached(reached, sources[edge]), is_reached(reached, targets[edge])
        if a != b and weights[edge] > heaviest:
            j = (exponent_of(weights[edge], factor) >> GRID) - totals[SMALLEST]
            arc[0].node, arc[0].edge = targets[edge] if a else sources[edge], edge
            arc[0].bucket = j
            put(start, filled, items, block_count, totals, arc)


@kernel
def sweep_reached(urn: Urn, reached: Array) -> None:
    """Take all arcs out of the urn that lead to a node already reached."""
    start, filled, items, block_count, totals = urn
    j = next_filled(filled, block_count, 0)
    while j < len(filled):
        first, kept = np.uint64(start[j]), np.uint64(0)
        for slot in range(np.uint64(filled[j])):
            node, edge = items[first + slot].node, items[first + slot].edge
            items[first + kept].node, items[first + kept].edge = node, edge
            kept += np.uint64(not is_reached(reached, node))
        keep_first(filled, block_count, totals, j, np.int64(kept))
        j = next_filled(filled, block_count, j + 1)
    totals[WASTED] = 0
    look_from(filled, block_count, totals, 0)
