"""Binary trees over the nodes of components, from which ``_cut_search_kernel`` finds the best cut.

The leaves are in preorder, so that what hangs below a node is a range of leaves. Every branch summarizes the leaves
below it. In what follows the edge above a node cuts off b nodes of validity v.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptclust._kernel import inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Columns of ``SearchTrees.whole``: children, first and last leaf, number of leaves; where the nodes below them end in
#: preorder; the most nodes an edge cuts off; the last edge; the last of the heaviest edges with the largest b v.
LEFT, RIGHT, FIRST, LAST, COUNT, REACH, SIZE, EDGE, FINEST = range(9)

#: Columns of ``SearchTrees.real``: lightest cut incident to a node; weight of the heaviest edges, their largest b v and
#: b (v + 1), and the next largest b v; weight, largest b v and largest b (v + 1) of the lighter edges.
CUT, WEIGHT, PRODUCT, SHIFTED, NEXT_PRODUCT, LIGHTER, LIGHTER_PRODUCT, LIGHTER_SHIFTED = range(8)


class SearchTrees(NamedTuple):
    """Binary trees over disjoint sets of nodes.

    A leaf is a preorder number p and stands for the node p and the edge above it; a branch has a number from n_nodes on
    and stands for all leaves below it. The topmost node of a component has no edge, so weight and size 0 and edge -1.
    """

    whole: NDArray[Any]  # what is known of a leaf or branch in whole numbers
    real: NDArray[np.float64]  # and in others
    free: NDArray[Any]  # branches not in use
    root: NDArray[Any]  # search tree of the component whose topmost node this is, -1 if it has none
    counts: NDArray[np.int64]  # number of free branches, work done so far
    todo: NDArray[np.int64]  # room for a stack: ``best_cut`` begins in the middle, all others at 0
    ahead: NDArray[np.float64]  # the lightest cut and heaviest edge before a branch on the stack


@inlined
def validity(separation: float, dispersion: float) -> float:
    """Return V_C, the validity index of a cluster (Definition 3.5)."""
    return (separation - dispersion) / max(separation, dispersion)


@kernel
def renew(x: int, trees: SearchTrees) -> None:
    """Summarize the children of the branch x."""
    whole, real = trees.whole, trees.real
    left, right = whole[x, LEFT], whole[x, RIGHT]
    whole[x, FIRST], whole[x, LAST] = whole[left, FIRST], whole[right, LAST]
    whole[x, COUNT] = whole[left, COUNT] + whole[right, COUNT]
    whole[x, REACH] = max(whole[left, REACH], whole[right, REACH])
    whole[x, SIZE] = max(whole[left, SIZE], whole[right, SIZE])
    whole[x, EDGE] = max(whole[left, EDGE], whole[right, EDGE])
    real[x, CUT] = min(real[left, CUT], real[right, CUT])
    a, b = (left, right) if real[left, WEIGHT] >= real[right, WEIGHT] else (right, left)
    for column in range(WEIGHT, LIGHTER_SHIFTED + 1):
        real[x, column] = real[a, column]
    whole[x, FINEST] = whole[a, FINEST]
    real[x, LIGHTER_PRODUCT] = max(real[x, LIGHTER_PRODUCT], real[b, LIGHTER_PRODUCT])
    real[x, LIGHTER_SHIFTED] = max(real[x, LIGHTER_SHIFTED], real[b, LIGHTER_SHIFTED])
    if real[b, WEIGHT] < real[x, WEIGHT]:
        real[x, LIGHTER] = max(real[x, LIGHTER], real[b, WEIGHT])
        real[x, LIGHTER_PRODUCT] = max(real[x, LIGHTER_PRODUCT], real[b, PRODUCT])
        real[x, LIGHTER_SHIFTED] = max(real[x, LIGHTER_SHIFTED], real[b, SHIFTED])
        return
    real[x, LIGHTER] = max(real[x, LIGHTER], real[b, LIGHTER])
    real[x, SHIFTED] = max(real[x, SHIFTED], real[b, SHIFTED])
    c, d = (a, b) if real[a, PRODUCT] >= real[b, PRODUCT] else (b, a)
    real[x, PRODUCT] = real[c, PRODUCT]
    whole[x, FINEST] = whole[c, FINEST]
    if real[d, PRODUCT] == real[c, PRODUCT]:
        whole[x, FINEST] = max(whole[c, FINEST], whole[d, FINEST])
        real[x, NEXT_PRODUCT] = max(real[c, NEXT_PRODUCT], real[d, NEXT_PRODUCT])
    else:
        real[x, NEXT_PRODUCT] = max(real[c, NEXT_PRODUCT], real[d, PRODUCT])


@kernel
def renew_to(x: int, p: int, trees: SearchTrees) -> None:
    """Renew all branches from the leaf p up to the branch x."""
    whole, todo = trees.whole, trees.todo
    n_todo = 0
    while x != p:
        todo[n_todo, 0] = x
        n_todo += 1
        right = whole[x, RIGHT]
        x = int(right if p >= whole[right, FIRST] else whole[x, LEFT])
    for i in range(n_todo - 1, -1, -1):
        renew(todo[i, 0], trees)


@kernel
def join(x: int, left: int, right: int, trees: SearchTrees) -> int:
    """Make x the branch with these children."""
    trees.whole[x, LEFT], trees.whole[x, RIGHT] = left, right
    renew(x, trees)
    return x


@kernel
def new_branch(trees: SearchTrees) -> int:
    """Return a branch not in use."""
    trees.counts[0] -= 1
    return int(trees.free[trees.counts[0]])


@kernel
def release(x: int, trees: SearchTrees) -> None:
    """Return the branch x to the free ones."""
    trees.free[trees.counts[0]] = x
    trees.counts[0] += 1


@kernel
def set_leaf(p: int, reach: int, edge: int, weight: float, cut: float, trees: SearchTrees) -> None:
    """Make p a leaf: a node with this lightest cut, the edge above it, and where the nodes below it end."""
    whole, real = trees.whole[p], trees.real[p]
    whole[FIRST], whole[LAST], whole[COUNT], whole[SIZE] = p, p, 1, 0
    whole[REACH], whole[EDGE], whole[FINEST] = reach, edge, edge
    real[CUT], real[WEIGHT], real[PRODUCT], real[SHIFTED] = cut, weight, 0.0, 0.0
    real[LIGHTER] = 0.0
    real[NEXT_PRODUCT], real[LIGHTER_PRODUCT], real[LIGHTER_SHIFTED] = -np.inf, -np.inf, -np.inf


@kernel
def set_below(p: int, size: int, separation: float, dispersion: float, trees: SearchTrees) -> None:
    """Note what the edge above p cuts off; its separation is given but for that edge."""
    v = validity(min(separation, trees.real[p, WEIGHT]), dispersion)
    trees.whole[p, SIZE] = size
    trees.real[p, PRODUCT] = size * v
    trees.real[p, SHIFTED] = size * v + size


@kernel
def build(members: NDArray[Any], room: NDArray[Any], trees: SearchTrees) -> int:
    """Return a balanced tree over the leaves ``members``."""
    n = len(members)
    room[:n] = members
    while n > 1:
        for i in range(n // 2):
            room[i] = join(new_branch(trees), room[2 * i], room[2 * i + 1], trees)
        if n % 2 == 1:
            room[n // 2] = room[n - 1]
        n = (n + 1) // 2
    return int(room[0])


@kernel
def dissolve(x: int, members: NDArray[Any], trees: SearchTrees) -> None:
    """Write the leaves of the tree x into ``members``, in order, and return its branches."""
    whole, todo = trees.whole, trees.todo
    todo[0, 0] = x
    n_todo, count = 1, 0
    while n_todo > 0:
        n_todo -= 1
        x = todo[n_todo, 0]
        if whole[x, COUNT] == 1:
            members[count] = x
            count += 1
        else:
            todo[n_todo, 0], todo[n_todo + 1, 0] = whole[x, RIGHT], whole[x, LEFT]
            n_todo += 2
            release(x, trees)


@kernel
def split(x: int, begin: int, end: int, trees: SearchTrees) -> tuple[int, int]:
    """Split the tree x into that of the leaves outside ``begin`` to ``end`` and that of the leaves inside.

    Both must exist. A branch with leaves of either kind is divided into a branch of each kind, or gives way to its only
    child of a kind; so no tree becomes higher.
    """
    whole, todo = trees.whole, trees.todo
    # rows: mixed branch; left and right child outside; left and right child inside; twice the row of the parent + side
    todo[0, 0], todo[0, 5] = x, -1
    n_todo, i = 1, 0
    while i < n_todo:
        for side in range(2):
            child = whole[todo[i, 0], side]
            todo[i, 1 + side], todo[i, 3 + side] = -1, -1
            if whole[child, LAST] < begin or whole[child, FIRST] >= end:
                todo[i, 1 + side] = child
            elif whole[child, FIRST] >= begin and whole[child, LAST] < end:
                todo[i, 3 + side] = child
            else:
                todo[n_todo, 0], todo[n_todo, 5] = child, 2 * i + side
                n_todo += 1
        i += 1
    outside, inside = -1, -1
    for i in range(n_todo - 1, -1, -1):
        x = todo[i, 0]
        outside, inside = max(todo[i, 1], todo[i, 2]), max(todo[i, 3], todo[i, 4])
        two_outside, two_inside = min(todo[i, 1], todo[i, 2]) >= 0, min(todo[i, 3], todo[i, 4]) >= 0
        if two_inside:
            inside = join(new_branch(trees) if two_outside else x, todo[i, 3], todo[i, 4], trees)
        if two_outside:
            outside = join(x, todo[i, 1], todo[i, 2], trees)
        if not (two_outside or two_inside):
            release(x, trees)
        if i > 0:
            row, side = todo[i, 5] // 2, todo[i, 5] % 2
            todo[row, 1 + side], todo[row, 3 + side] = outside, inside
    return outside, inside


@kernel
def pieces(x: int, p: int, trees: SearchTrees) -> tuple[int, float, float, float, float]:
    """Return size, separation, dispersion of what the edge above p cuts off, and separation, dispersion of the rest.

    Both separations leave out the edge itself.
    """
    whole, real, todo = trees.whole, trees.real, trees.todo
    end = whole[p, REACH]
    size, lightest_in, heaviest_in = 1, real[p, CUT], 0.0
    lightest_out, heaviest_out = np.inf, 0.0
    todo[0, 0] = x
    n_todo = 1
    while n_todo > 0:
        n_todo -= 1
        x = todo[n_todo, 0]
        if whole[x, FIRST] >= end or whole[x, LAST] < p:
            lightest_out = min(lightest_out, real[x, CUT])
            heaviest_out = max(heaviest_out, real[x, WEIGHT])
        elif whole[x, FIRST] > p and whole[x, LAST] < end:
            size += whole[x, COUNT]
            lightest_in = min(lightest_in, real[x, CUT])
            heaviest_in = max(heaviest_in, real[x, WEIGHT])
        elif x != p:
            todo[n_todo, 0], todo[n_todo + 1, 0] = whole[x, LEFT], whole[x, RIGHT]
            n_todo += 2
    return size, lightest_in, heaviest_in, lightest_out, heaviest_out


@kernel
def last_with(x: int, column: int, value: float, trees: SearchTrees) -> int:
    """Return the last leaf of the tree x that has this value."""
    while trees.whole[x, COUNT] > 1:
        right = trees.whole[x, RIGHT]
        x = right if trees.real[right, column] == value else int(trees.whole[x, LEFT])
    return x
