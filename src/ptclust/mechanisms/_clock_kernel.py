"""Kernels of clocks: their logarithms, and sums of them along paths of a tree.

A clock is T = E 2^(x / 2^GRID) with E exponential and x an integer. It spans too many powers of two
for a float, so kernels keep its logarithm, an integer on the same grid, and sums as a float times a
power of two. All of them are near the truth, and say when they are too near to call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptclust._kernel import inlined, kernel
from ptclust._types import Array, Bools, Floats, Ints
from ptclust.mechanisms._urn_kernel import GRID

#: Logarithms, in steps of 2^-GRID, that are farther apart are in the order of their clocks.
NEAR = 16
#: Sums whose ratio is farther than this from 1 are in the order of the sums of clocks.
MARGIN = 2.0**-32

_ONE, _BITS = 1 << GRID, np.uint64(63)
_FAR = np.uint64(1) << np.uint64(16)
_UNIT, _FINE = 2.0**-64, 2.0**-128
_NOTHING = -(1 << 50)  # the power of two of a sum of no clocks

DROPPED, POSSIBLE, SHORTER = range(3)


@kernel
def log_clocks(words: NDArray[np.uint64], exponents: Ints, logs: Ints, far: Bools) -> None:
    """Fill ``logs`` with 2^GRID log2(T), to within 2 steps, from two words of every clock.

    U is the number whose first bits are the words, and E = -log U. Where U is so close to 0 or 1
    that two words do not tell it well enough, ``far`` is set instead.
    """
    for i in range(len(exponents)):
        first, second = words[i, 0], words[i, 1]
        is_large = first >> _BITS
        if is_large:
            first, second = ~first, ~second
        part = np.float64(first) * _UNIT + np.float64(second) * _FINE
        far[i] = first < _FAR
        if first >= _FAR:
            clock = -np.log1p(-part) if is_large else -np.log(part)
            logs[i] = exponents[i] + np.int64(np.rint(np.log2(clock) * float(_ONE)))


class Paths(NamedTuple):
    """A rooted forest in which sums of clocks along paths are found in logarithmic time.

    Every node has a jump to an ancestor (Myers 1983), and the sum of the clocks on the way there.
    """

    parent: Ints  # itself of a root
    depth: Ints
    jump: Ints
    step: Floats  # clock of the edge to the parent: step * 2^step_power
    step_power: Ints
    total: Floats  # of the clocks up to the jump
    total_power: Ints
    margin: float  # MARGIN


@inlined
def of_log(log: int) -> Any:
    """Return the clock of a logarithm as a float and a power of two."""
    return np.exp2(float(log & (_ONE - 1)) / float(_ONE)), log >> GRID


@kernel
def plus(a: float, a_power: int, b: float, b_power: int) -> Any:
    """Return the sum of two numbers, each a float from 1 to 2 times a power of two, or nothing."""
    if a_power < b_power:
        a, a_power, b, b_power = b, b_power, a, a_power
    if a_power - b_power > 100:
        return a, a_power
    a += b * 2.0 ** (b_power - a_power)
    if a >= 2.0:
        return 0.5 * a, a_power + 1
    return a, a_power


@kernel
def order(a: float, a_power: int, b: float, b_power: int, margin: float) -> int:
    """Return -1 if the first of two numbers is less, 1 if it is larger, 0 if that is too close."""
    apart = a_power - b_power
    if abs(apart) > 3:
        return -1 if apart < 0 else 1
    ratio = a * 2.0**apart / b
    if abs(ratio - 1.0) <= margin:
        return 0
    return -1 if ratio < 1.0 else 1


@kernel
def hang(paths: Paths, logs: Ints) -> None:
    """Fill a forest, of which the parents are given, from the logarithms of the clocks to them."""
    parent, depth, jump, step, step_power, total, total_power, _ = paths
    depth[:] = -1
    waiting = np.empty(len(parent), dtype=np.int64)
    for node in range(len(parent)):
        n_waiting, at = 0, node
        while depth[at] < 0 and parent[at] != at:
            waiting[n_waiting] = at
            n_waiting += 1
            at = parent[at]
        if depth[at] < 0:
            depth[at], jump[at] = 0, at
            total[at], total_power[at] = 0.0, _NOTHING
            step[at], step_power[at] = 0.0, _NOTHING
        while n_waiting > 0:
            n_waiting -= 1
            at = waiting[n_waiting]
            up = parent[at]
            far = jump[up]
            depth[at] = depth[up] + 1
            step[at], step_power[at] = of_log(logs[at])
            jump[at], total[at], total_power[at] = up, step[at], step_power[at]
            if depth[up] - depth[far] == depth[far] - depth[jump[far]]:
                jump[at] = jump[far]
                a, power = plus(step[at], step_power[at], total[up], total_power[up])
                total[at], total_power[at] = plus(a, power, total[far], total_power[far])


@kernel
def climb(paths: Paths, node: int, to: int) -> Any:
    """Return the ancestor of a node at a depth, and the sum of the clocks from there to it."""
    parent, depth, jump, step, step_power, total, total_power, _ = paths
    a, power = 0.0, _NOTHING
    while depth[node] > to:
        if depth[jump[node]] >= to:
            a, power = plus(a, power, total[node], total_power[node])
            node = jump[node]
        else:
            a, power = plus(a, power, step[node], step_power[node])
            node = parent[node]
    return node, a, power


@kernel
def meet(paths: Paths, u: int, v: int) -> Any:
    """Return the sums of the clocks from the last common ancestor to two nodes of one tree."""
    parent, depth, jump, step, step_power, total, total_power, _ = paths
    u, a, a_power = climb(paths, u, depth[v])
    v, b, b_power = climb(paths, v, depth[u])
    while u != v:
        if jump[u] != jump[v]:
            a, a_power = plus(a, a_power, total[u], total_power[u])
            b, b_power = plus(b, b_power, total[v], total_power[v])
            u, v = jump[u], jump[v]
        else:
            a, a_power = plus(a, a_power, step[u], step_power[u])
            b, b_power = plus(b, b_power, step[v], step_power[v])
            u, v = parent[u], parent[v]
    return a, a_power, b, b_power


@kernel
def find_shorter(
    paths: Paths, sources: Array, targets: Array, logs: Ints, best: Ints, close: Array
) -> int:
    """Find, for every node, the edge by which its way from the root becomes shorter by most.

    ``best`` is that edge, or -1. Edges that are too close to call are listed in ``close``, and how
    many they are is returned.
    """
    margin = paths.margin
    gain, gain_power = np.zeros(len(best)), np.full(len(best), _NOTHING)
    n_close = 0
    best[:] = -1
    for edge in range(len(sources)):
        u, v = int(sources[edge]), int(targets[edge])
        if paths.parent[u] == v or paths.parent[v] == u:
            continue
        a, a_power, b, b_power = meet(paths, u, v)
        clock, power = of_log(logs[edge])
        by_u, by_u_power = plus(a, a_power, clock, power)
        by_v, by_v_power = plus(b, b_power, clock, power)
        to_v, to_u = (
            order(by_u, by_u_power, b, b_power, margin),
            order(by_v, by_v_power, a, a_power, margin),
        )
        if to_v == 0 or to_u == 0:
            close[n_close] = edge
            n_close += 1
        elif to_v < 0 or to_u < 0:
            # From the longer way, a whole number with its power, the shorter one is taken away.
            node = v if to_v < 0 else u
            old, old_power = (b, b_power) if to_v < 0 else (a, a_power)
            new, new_power = (by_u, by_u_power) if to_v < 0 else (by_v, by_v_power)
            saved, saved_power = old - new * 2.0 ** max(new_power - old_power, -100), old_power
            while saved < 1.0:
                saved, saved_power = 2.0 * saved, saved_power - 1
            if (
                best[node] < 0
                or order(saved, saved_power, gain[node], gain_power[node], margin) > 0
            ):
                best[node], gain[node], gain_power[node] = edge, saved, saved_power
    return n_close


@kernel
def judge(
    paths: Paths,
    reach: Floats,
    reach_power: Ints,
    least: Ints,
    sources: Array,
    targets: Array,
    logs: Ints,
    verdicts: Array,
) -> None:
    """Say of every edge whether it can be on a shortest path, given some paths from the root.

    ``reach`` are the lengths of these paths, ``least`` logarithms of the lightest clock at a node.
    An edge is DROPPED if it is longer than a path between its ends, or too long to be the last edge
    to either of them; it is SHORTER if it makes the path to one of them shorter, or nearly.
    """
    margin = paths.margin
    for edge in range(len(sources)):
        u, v = int(sources[edge]), int(targets[edge])
        clock, power = of_log(logs[edge])
        verdicts[edge] = DROPPED
        light, light_power = of_log(least[u])
        by_u, by_u_power = plus(light, light_power, clock, power)
        light, light_power = of_log(least[v])
        by_v, by_v_power = plus(light, light_power, clock, power)
        if paths.parent[u] == u:  # a root is reached at once
            by_u, by_u_power = clock, power
        if paths.parent[v] == v:
            by_v, by_v_power = clock, power
        if (
            order(by_u, by_u_power, reach[v], reach_power[v], margin) > 0
            and order(by_v, by_v_power, reach[u], reach_power[u], margin) > 0
        ):
            continue
        a, a_power, b, b_power = meet(paths, u, v)
        between, between_power = plus(a, a_power, b, b_power)
        if order(clock, power, between, between_power, margin) > 0:
            continue
        by_u, by_u_power = plus(a, a_power, clock, power)
        by_v, by_v_power = plus(b, b_power, clock, power)
        is_shorter = (
            order(by_u, by_u_power, b, b_power, margin) <= 0
            or order(by_v, by_v_power, a, a_power, margin) <= 0
        )
        verdicts[edge] = SHORTER if is_shorter else POSSIBLE


@kernel
def measure(paths: Paths, reach: Floats, reach_power: Ints) -> None:
    """Fill the lengths of the paths from the roots to all nodes."""
    for node in range(len(reach)):
        at, length, power = node, 0.0, _NOTHING
        while paths.parent[at] != at:
            length, power = plus(length, power, paths.total[at], paths.total_power[at])
            at = paths.jump[at]
        reach[node], reach_power[node] = length, power


@kernel
def keep_lightest(sources: Array, targets: Array, logs: Ints, kept: Bools, lightest: Array) -> None:
    """Mark the lightest edges of every node, as many as ``lightest`` has columns; it is all -1."""
    n_columns = lightest.shape[1]
    for edge in range(len(sources)):
        for node in (sources[edge], targets[edge]):
            at = n_columns
            while at > 0 and (
                lightest[node, at - 1] < 0 or logs[edge] < logs[lightest[node, at - 1]]
            ):
                if at < n_columns:
                    lightest[node, at] = lightest[node, at - 1]
                at -= 1
            if at < n_columns:
                lightest[node, at] = edge
    for node in range(len(lightest)):
        for at in range(n_columns):
            if lightest[node, at] >= 0:
                kept[lightest[node, at]] = True
