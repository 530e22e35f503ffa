"""Algorithm 1 of the paper on plain arrays.

The forest is rooted once and its nodes are numbered in preorder. A component of the forest with some edges cut is
then a slice of ``members``, its nodes in preorder, and what hangs below a node is a contiguous part of that slice:

    slice      [ root ..... | node, all below it | ..... ]
                  before            below           after

So cutting the edge above ``node`` leaves two pieces: ``below``, and ``before`` with ``after``. Dispersion and
separation of ``below`` come from one sweep from the leaves to the root, those of the rest from running maxima and
minima over ``before`` and ``after``: all cuts of a component are evaluated in two sweeps over its slice, and a cut
only asks for a new evaluation of the two pieces it makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptclust._kernel import inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Gains (N times the change of DBCVI) are compared on a grid of this step; equal there is equal.
GAIN_STEP = 2.0**-24


class RootedForest(NamedTuple):
    """A forest in preorder: everything but ``node`` is indexed by preorder number."""

    node: NDArray[Any]  # which node of the tree this is
    parent: NDArray[Any]  # preorder number of the parent, -1 for a root
    edge: NDArray[Any]  # position in the tree of the edge to the parent, -1 for a root
    weight: NDArray[np.float64]  # weight of that edge


class State(NamedTuple):
    """Where the algorithm stands; kept between calls so that a long run can report and be interrupted."""

    members: NDArray[Any]  # nodes, every component a slice of it in preorder
    cut_at: NDArray[np.float64]  # lightest cut edge incident to a node
    size: NDArray[Any]  # nodes at and below a node, within its component
    dispersion: NDArray[np.float64]  # heaviest edge below a node
    separation: NDArray[np.float64]  # lightest cut edge incident to a node at or below it
    heaviest_after: NDArray[
        np.float64
    ]  # heaviest edge above a member from here to the end of the slice
    lightest_after: NDArray[
        np.float64
    ]  # lightest cut edge incident to a member from here to the end
    validity: NDArray[np.float64]  # V_C of the component whose topmost node this is
    heap: NDArray[np.int64]  # rows: gain, edge, begin of slice, end of slice, member to cut off
    cuts: NDArray[Any]  # edges cut so far, in order
    gains: NDArray[np.float64]  # what each of them added to N * DBCVI
    counts: NDArray[np.int64]  # length of the heap, number of cuts


@kernel
def root_forest(
    start: NDArray[Any],
    neighbour: NDArray[Any],
    incident: NDArray[Any],
    weights: NDArray[np.float64],
    forest: RootedForest,
    next_arc: NDArray[Any],
) -> None:
    """Number all nodes in preorder by depth-first search from the first node of every component.

    ``neighbour[start[v]:start[v + 1]]`` are the neighbours of ``v`` and ``incident`` the edges to them; ``next_arc`` is
    a copy of ``start``.
    """
    n_nodes = len(start) - 1
    number = np.full(n_nodes, -1, dtype=np.int64)
    count = 0
    for root in range(n_nodes):
        if number[root] >= 0:
            continue
        number[root] = count
        forest.node[count], forest.parent[count], forest.edge[count] = root, -1, -1
        forest.weight[count] = 0.0
        count += 1
        v = root
        while True:
            arc = next_arc[v]
            if arc == start[v + 1]:
                above = forest.parent[number[v]]
                if above < 0:
                    break
                v = forest.node[above]
                continue
            next_arc[v] += 1
            child = neighbour[arc]
            if number[child] >= 0:
                continue
            number[child] = count
            forest.node[count], forest.parent[count] = child, number[v]
            forest.edge[count], forest.weight[count] = incident[arc], weights[incident[arc]]
            count += 1
            v = child


@inlined
def validity(separation: float, dispersion: float) -> float:
    """Return V_C, the validity index of a cluster (Definition 3.7)."""
    return (separation - dispersion) / max(separation, dispersion)


@kernel
def evaluate(begin: int, end: int, is_whole: bool, forest: RootedForest, state: State) -> None:
    """Find the best cut of the component ``members[begin:end]`` and put it on the heap, if it is worth making.

    A gain is what a cut adds to N * DBCVI. A whole tree counts as -1 until it is cut, so that its first cut is made.
    """
    members, size = state.members, state.size
    dispersion, separation = state.dispersion, state.separation
    for i in range(begin, end):
        p = members[i]
        size[p] = 1
        dispersion[p] = 0.0
        separation[p] = state.cut_at[p]
    heaviest, lightest = 0.0, np.inf
    state.heaviest_after[end], state.lightest_after[end] = heaviest, lightest
    for i in range(end - 1, begin, -1):
        p = members[i]
        up = forest.parent[p]
        weight = forest.weight[p]
        size[up] += size[p]
        dispersion[up] = max(dispersion[up], dispersion[p], weight)
        separation[up] = min(separation[up], separation[p])
        heaviest = max(heaviest, weight)
        lightest = min(lightest, state.cut_at[p])
        state.heaviest_after[i], state.lightest_after[i] = heaviest, lightest
    lightest = min(lightest, state.cut_at[members[begin]])
    current = -1.0 if is_whole else validity(lightest, heaviest)
    state.validity[members[begin]] = current
    best_gain, best_edge, best = np.int64(0), np.int64(-1), 0
    heaviest, lightest = 0.0, state.cut_at[members[begin]]
    n_nodes = end - begin
    for i in range(begin + 1, end):
        p = members[i]
        weight = forest.weight[p]
        n_below = size[p]
        after = i + n_below
        below = validity(min(separation[p], weight), dispersion[p])
        above = validity(
            min(lightest, state.lightest_after[after], weight),
            max(heaviest, state.heaviest_after[after]),
        )
        gain = n_below * (below - current) + (n_nodes - n_below) * (above - current)
        rounded = np.int64(np.floor(gain / GAIN_STEP + 0.5))
        if rounded > best_gain or (rounded == best_gain and forest.edge[p] > best_edge):
            best_gain, best_edge, best = rounded, np.int64(forest.edge[p]), i
        heaviest = max(heaviest, weight)
        lightest = min(lightest, state.cut_at[p])
    if best_edge >= 0:
        push(state.heap, state.counts, int(best_gain), int(best_edge), begin, end, best)


@inlined
def precedes(heap: NDArray[np.int64], i: int, j: int) -> bool:
    """Whether row i is cut before row j: the larger gain first, among equal gains the last edge of the tree."""
    larger = heap[i, 0] > heap[j, 0]
    return bool(larger or (heap[i, 0] == heap[j, 0] and heap[i, 1] > heap[j, 1]))


@inlined
def swap(heap: NDArray[np.int64], i: int, j: int) -> None:
    """Exchange two rows."""
    for column in range(heap.shape[1]):
        heap[i, column], heap[j, column] = heap[j, column], heap[i, column]


@kernel
def push(
    heap: NDArray[np.int64],
    counts: NDArray[np.int64],
    gain: int,
    edge: int,
    begin: int,
    end: int,
    member: int,
) -> None:
    """Add a row to the heap."""
    i = counts[0]
    counts[0] += 1
    heap[i, 0], heap[i, 1], heap[i, 2], heap[i, 3], heap[i, 4] = gain, edge, begin, end, member
    while i > 0 and precedes(heap, i, (i - 1) // 2):
        swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2


@kernel
def pop(heap: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Move the first row of the heap behind its end."""
    counts[0] -= 1
    n = counts[0]
    swap(heap, 0, n)
    i = 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and precedes(heap, child + 1, child):
            child += 1
        if precedes(heap, i, child):
            break
        swap(heap, i, child)
        i = child


@kernel
def start(forest: RootedForest, state: State) -> float:
    """Evaluate every tree of the forest; return N * DBCVI as it counts before the first cut.

    DBCVI starts at -1, so that every tree is cut at least once; a lone node has nothing to cut and counts as it is, 1.
    """
    total = 0.0
    begin = 0
    n_nodes = len(forest.parent)
    for end in range(1, n_nodes + 1):
        if end == n_nodes or forest.parent[end] < 0:
            evaluate(begin, end, True, forest, state)
            total += 1.0 if end - begin == 1 else float(begin - end)
            begin = end
    return total


@kernel
def move_below_to_end(
    members: NDArray[Any], member: int, n_below: int, end: int, room: NDArray[Any]
) -> int:
    """Put the ``n_below`` members from ``member`` on behind the rest of the slice; return where they begin."""
    for i in range(n_below):
        room[i] = members[member + i]
    for i in range(member + n_below, end):
        members[i - n_below] = members[i]
    for i in range(n_below):
        members[end - n_below + i] = room[i]
    return end - n_below


@kernel
def make_cuts(
    forest: RootedForest, state: State, most_cuts: int, work: int, room: NDArray[Any]
) -> bool:
    """Cut greedily until no cut keeps DBCVI from falling, or ``most_cuts`` are made; return whether that is so.

    Returns False after about ``work`` evaluated members, to be called again.
    """
    while state.counts[0] > 0 and state.counts[1] < most_cuts:
        if work < 0:
            return False
        pop(state.heap, state.counts)
        row = state.heap[state.counts[0]]
        edge, begin, end, member = row[1], row[2], row[3], row[4]
        p = state.members[member]
        up = forest.parent[p]
        state.cut_at[p] = min(state.cut_at[p], forest.weight[p])
        state.cut_at[up] = min(state.cut_at[up], forest.weight[p])
        root = state.members[begin]
        before = (end - begin) * state.validity[root]
        middle = move_below_to_end(state.members, member, state.size[p], end, room)
        evaluate(begin, middle, False, forest, state)
        evaluate(middle, end, False, forest, state)
        after = (middle - begin) * state.validity[root] + (end - middle) * state.validity[p]
        state.cuts[state.counts[1]] = edge
        state.gains[state.counts[1]] = after - before
        state.counts[1] += 1
        work -= end - begin
    return True


@kernel
def label_pieces(
    forest: RootedForest, is_cut: NDArray[np.bool_], labels: NDArray[np.int64]
) -> None:
    """Give every node of the tree the preorder number of the topmost node of its piece."""
    for p in range(len(forest.parent)):
        up = forest.parent[p]
        if up < 0 or is_cut[forest.edge[p]]:
            labels[forest.node[p]] = p
        else:
            labels[forest.node[p]] = labels[forest.node[up]]


@kernel
def running_sum(first: float, terms: NDArray[np.float64], sums: NDArray[np.float64]) -> None:
    """Write ``first`` plus the first i + 1 terms into ``sums[i]``, each nearly exact (Neumaier's summation)."""
    total, lost = first, 0.0
    for i in range(len(terms)):
        new = total + terms[i]
        if abs(total) >= abs(terms[i]):
            lost += (total - new) + terms[i]
        else:
            lost += (terms[i] - new) + total
        total = new
        sums[i] = total + lost
