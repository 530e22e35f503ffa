"""Algorithm 1 of the paper on plain arrays.

The forest is rooted once and its nodes are numbered in preorder. A component of the forest with
some edges cut is then a slice of ``members``, its nodes in preorder, and what hangs below a node is
a contiguous part of that slice:

    slice      [ root ..... | node, all below it | ..... ]
                  before            below           after

So cutting the edge above ``node`` leaves two pieces: ``below``, and ``before`` with ``after``. DISP
and SEP of ``below`` come from one sweep from the leaves to the root, those of the rest from running
maxima and minima over ``before`` and ``after``: all cuts of a component are evaluated in two sweeps
over its slice, and a cut only asks for a new evaluation of the two pieces it makes.

That is a few sweeps in all if cuts are balanced. A component that is cut again and again into a
large and a small piece gets a search tree instead, see ``_search_kernel``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._kernel import kernel
from ptclust.clustering.dbcvi import validity
from ptclust.clustering.dbmstclu._search_kernel import (
    COUNT,
    SLACK,
    SearchTrees,
    best_cut,
    build,
    cut_off,
    dissolve,
    index,
    on_grid,
    set_below,
    set_leaf,
)

if TYPE_CHECKING:
    from ptclust._components import Adjacency
    from ptclust._types import Array, Floats, Ints


class Policy(NamedTuple):
    """When a component is searched and when it is swept; the cuts are the same."""

    #: Search a component of this many nodes, or more, ...
    search_size: int = 256
    #: ... after so many cuts in a row ...
    peels: int = 8
    #: ... of which the smaller piece had less than this part of its nodes.
    small_part: float = 1 / 16
    #: Sweep it again when it has fewer nodes than this, ...
    sweep_size: int = 64
    #: ... or when a search looks at more than this part of them.
    budget: float = 1 / 4


class RootedForest(NamedTuple):
    """A forest in preorder: everything but ``node`` is indexed by preorder number."""

    node: Array  # which node of the tree this is
    parent: Array  # preorder number of the parent, -1 for a root
    edge: Array  # position in the tree of the edge to the parent, -1 for a root
    weight: Floats  # weight of that edge


class State(NamedTuple):
    """Where the algorithm stands, kept between calls: a long run can report and be interrupted."""

    members: Array  # nodes, every component a slice of it in preorder
    cut_at: Floats  # lightest cut edge incident to a node
    size: Array  # nodes at and below a node, within its component
    dispersion: Floats  # heaviest edge below a node
    separation: Floats  # lightest cut edge incident to a node at or below it
    heaviest_after: Floats  # heaviest edge above a member from here to the end
    lightest_after: Floats  # lightest cut edge incident to a member from here on
    validity: Floats  # V_C of the component whose topmost node this is
    heap: Ints  # rows: gain, edge, begin of slice, end of slice, node to cut off
    cuts: Array  # edges cut so far, in order
    gains: Floats  # what each of them added to N * DBCVI
    counts: Ints  # length of the heap, number of cuts
    buffer: Array  # for whatever needs it for a moment
    policy: Policy
    peels: Array  # small pieces cut in a row off the component with this topmost node


@kernel
def root_forest(near: Adjacency, node: Array, parent: Array, edge: Array) -> None:
    """Number all nodes in preorder by depth-first search from the first node of every component."""
    n_nodes = len(node)
    number = np.full(n_nodes, -1, dtype=np.int64)
    next_arc = near.indptr.copy()
    count = 0
    for root in range(n_nodes):
        if number[root] >= 0:
            continue
        number[root] = count
        node[count], parent[count], edge[count] = root, -1, -1
        count += 1
        v = root
        while True:
            arc = next_arc[v]
            if arc == near.indptr[v + 1]:
                above = parent[number[v]]
                if above < 0:
                    break
                v = node[above]
                continue
            next_arc[v] += 1
            child = near.neighbours[arc]
            if number[child] >= 0:
                continue
            number[child] = count
            node[count], parent[count], edge[count] = child, number[v], near.edges[arc]
            count += 1
            v = child


@kernel
def evaluate(begin: int, end: int, forest: RootedForest, state: State) -> None:
    """Put the best cut of the component ``members[begin:end]`` on the heap, if it is worth making.

    A gain is what a cut adds to N * DBCVI. A whole tree counts as -1 until it is cut, so that its
    first cut is made.
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
    current = -1.0 if lightest == np.inf else validity(lightest, heaviest)
    state.validity[members[begin]] = current
    best_gain, best_edge, best = index(0), index(-1), index(-1)
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
        rounded = on_grid(gain)
        if rounded > best_gain or (rounded == best_gain and forest.edge[p] > best_edge):
            best_gain, best_edge, best = rounded, index(forest.edge[p]), index(p)
        heaviest = max(heaviest, weight)
        lightest = min(lightest, state.cut_at[p])
    if best_edge >= 0:
        push(state.heap, state.counts, best_gain, best_edge, begin, end, best)


@kernel
def precedes(heap: Ints, i: int, j: int) -> bool:
    """Whether row i is cut before row j: the larger gain first, of equal ones the last edge."""
    larger = heap[i, 0] > heap[j, 0]
    return bool(larger or (heap[i, 0] == heap[j, 0] and heap[i, 1] > heap[j, 1]))


@kernel
def swap(heap: Ints, i: int, j: int) -> None:
    """Exchange two rows."""
    for column in range(heap.shape[1]):
        heap[i, column], heap[j, column] = heap[j, column], heap[i, column]


@kernel
def push(heap: Ints, counts: Ints, gain: int, edge: int, begin: int, end: int, p: int) -> None:
    """Add a row to the heap."""
    i = counts[0]
    counts[0] += 1
    heap[i, 0], heap[i, 1], heap[i, 2], heap[i, 3], heap[i, 4] = gain, edge, begin, end, p
    while i > 0 and precedes(heap, i, (i - 1) // 2):
        swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2


@kernel
def pop(heap: Ints, counts: Ints) -> None:
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

    DBCVI starts at -1, so that every tree is cut at least once; a lone node has nothing to cut and
    counts as it is, 1.
    """
    total = 0.0
    begin = index(0)
    n_nodes = len(forest.parent)
    for end in range(1, n_nodes + 1):
        if end == n_nodes or forest.parent[end] < 0:
            evaluate(begin, end, forest, state)
            total += 1.0 if end - begin == 1 else float(begin - end)
            begin = end
    return total


@kernel
def move_below_to_end(members: Array, member: int, n_below: int, end: int, buffer: Array) -> int:
    """Put ``n_below`` members from ``member`` on to the end of the slice; return their begin."""
    for i in range(n_below):
        buffer[i] = members[member + i]
    for i in range(member + n_below, end):
        members[i - n_below] = members[i]
    for i in range(n_below):
        members[end - n_below + i] = buffer[i]
    return end - n_below


@kernel
def begin_search(
    begin: int, end: int, forest: RootedForest, state: State, trees: SearchTrees
) -> None:
    """Make a search tree of the component ``members[begin:end]``, which has just been evaluated."""
    members = state.members[begin:end]
    for i in range(len(members)):
        p = index(members[i])
        if i == 0:
            set_leaf(p, index(0), index(-1), 0.0, state.cut_at[p], trees)
            continue
        size = index(state.size[p])
        reach, edge = index(members[i + size - 1] + 1), index(forest.edge[p])
        set_leaf(p, reach, edge, forest.weight[p], state.cut_at[p], trees)
        separation, dispersion = state.separation[p], state.dispersion[p]
        set_below(p, size, separation, dispersion, SLACK, index(len(members)), trees)
    trees.root[members[0]] = build(members, state.buffer, trees)
    trees.offset[members[0]] = 0
    state.peels[members[0]] = 0


@kernel
def search(
    begin: int, end: int, budget: int, forest: RootedForest, state: State, trees: SearchTrees
) -> None:
    """Do what ``evaluate`` does for a component that has a search tree."""
    topmost = state.members[begin]
    if end - begin >= state.policy.sweep_size and budget >= 0:
        current, gain, edge, p, left = best_cut(index(trees.root[topmost]), budget, trees)
        trees.counts[1] += budget - left
        if left >= 0:
            state.validity[topmost] = current
            if edge >= 0:
                push(state.heap, state.counts, gain, edge, begin, end, p)
            return
    dissolve(trees.root[topmost], state.members[begin:end], trees)
    trees.root[topmost] = -1
    if state.peels[topmost] < state.policy.peels:  # it did not pay: wait longer for the next
        state.peels[topmost] = -8 * state.policy.peels
    trees.counts[1] += end - begin
    evaluate(begin, end, forest, state)


@kernel
def cut_searched(
    p: int, begin: int, end: int, forest: RootedForest, state: State, trees: SearchTrees
) -> int:
    """Cut the edge above p of a searched component; return where the slice below p begins.

    Of the slices of such components only the first entry is in use.
    """
    topmost = state.members[begin]
    budget = int((end - begin) * state.policy.budget)
    rest, below, left = cut_off(p, topmost, forest.parent, budget, trees)
    trees.counts[1] += budget - left
    middle = end - int(trees.whole[below, COUNT])
    state.members[middle] = p
    trees.root[topmost], trees.root[p] = rest, below
    state.peels[topmost] += 1
    state.peels[p] = state.peels[topmost]
    search(begin, middle, left, forest, state, trees)
    search(middle, end, budget, forest, state, trees)
    return middle


@kernel
def cut_swept(
    p: int, begin: int, end: int, forest: RootedForest, state: State, trees: SearchTrees
) -> int:
    """Cut the edge above p of a swept component; return where the slice below p begins."""
    n_below = int(state.size[p])
    peels = state.peels[state.members[begin]] + 1
    if min(n_below, end - begin - n_below) >= (end - begin) * state.policy.small_part:
        peels = 0
    member = begin + int(np.searchsorted(state.members[begin:end], p))
    middle = move_below_to_end(state.members, member, n_below, end, state.buffer)
    trees.counts[1] += end - begin
    for first, last in ((begin, middle), (middle, end)):
        evaluate(first, last, forest, state)
        state.peels[state.members[first]] = peels
        if peels >= state.policy.peels and last - first >= state.policy.search_size:
            begin_search(first, last, forest, state, trees)
    return middle


@kernel
def make_cuts(
    forest: RootedForest, state: State, trees: SearchTrees, most_cuts: int, work: int
) -> bool:
    """Cut greedily until DBCVI would fall or ``most_cuts`` are made; return whether that is so.

    Returns False after about ``work`` members were looked at, to be called again.
    """
    work += trees.counts[1]
    while state.counts[0] > 0 and state.counts[1] < most_cuts:
        if trees.counts[1] > work:
            return False
        pop(state.heap, state.counts)
        row = state.heap[state.counts[0]]
        edge, begin, end, p = row[1], row[2], row[3], row[4]
        up = forest.parent[p]
        state.cut_at[p] = min(state.cut_at[p], forest.weight[p])
        state.cut_at[up] = min(state.cut_at[up], forest.weight[p])
        root = state.members[begin]
        before = (end - begin) * state.validity[root]
        if trees.root[root] >= 0:
            middle = cut_searched(p, begin, end, forest, state, trees)
        else:
            middle = cut_swept(p, begin, end, forest, state, trees)
        after = (middle - begin) * state.validity[root] + (end - middle) * state.validity[p]
        state.cuts[state.counts[1]] = edge
        state.gains[state.counts[1]] = after - before
        state.counts[1] += 1
    return True


@kernel
def running_sum(first: float, terms: Floats, sums: Floats) -> None:
    """Write ``first`` plus the first i + 1 terms into ``sums[i]``, by Neumaier's summation."""
    total, lost = first, 0.0
    for i in range(len(terms)):
        new = total + terms[i]
        if abs(total) >= abs(terms[i]):
            lost += (total - new) + terms[i]
        else:
            lost += (terms[i] - new) + total
        total = new
        sums[i] = total + lost
