"""The best cut of a component without a look at all of its edges.

A component that loses a few nodes at a time, as a hub loses one leaf after the other, must not be
swept anew after every cut. Its nodes become the leaves of a balanced binary tree, in preorder; what
hangs below a node is then a range, and every branch summarizes the leaves below it.

*   ``split`` takes a range out of the tree, as a cut does to a component, in logarithmic time.
*   ``pieces`` finds size, dispersion and separation of both pieces a cut would leave by one query
    for a range. The gain follows by the same expression as in a sweep, to the last bit.
*   ``best_cut`` is branch and bound: it evaluates an edge only if the bounds of the branches above
    it let it win.

**The bound.** Let a component have S nodes and validity V. Cutting an edge of weight w leaves b
nodes of validity v below and S - b nodes of validity u above it, and gains

    b (v - V) + (S - b) (u - V)  =  b (v - u) + S (u - V).

This grows with u, as b <= S, so an upper bound U may stand for u. Some nodes stay above every edge
of a branch: those before the branch, and those behind all that its edges cut off. U is the validity
that their heaviest edge, their lightest cut and w give; mostly these are the heaviest edge and the
lightest cut of the component. For the other term a branch summarizes its edges by the sign of v.

*Tight* edges, v >= 0, lie mostly beside the heaviest edge, where U is small. As

    b (v - U)  =  (1 + U) b v - U b (v + 1)   if U <= 0,
    b (v - U) <=  (1 - U) b v                 if 0 < U <= v,

a branch knows their largest b v and largest b (v + 1), for the heaviest of them apart from the
others, because U depends on w. Thousands of edges may have the same gain, of which the last is cut:
hence a branch also knows the last of its *finest* edges, the heaviest tight ones with the largest
b v, and the next largest b v, which bounds the gain of the others.

*Loose* edges, v < 0, are found in deep trees: they cut off a lot, above a heavy edge, and leave a
large u. They have

    b (v - U)  <=  (S - a) (v - U)   if v < U,

where a is the most nodes that an edge had above it when it was noted: it can only lose some. Their
U is at most the largest validity that one of them and the heaviest edge before it give, of which a
branch knows the largest but for its first leaf (``REST``).

**What is kept up to date.** Cuts further down change v and lower b. An outdated b is too large,
which is harmless: if v >= U then b (v - U) is overestimated, and if v < U it is negative and 0 or
the bound of loose edges holds. An outdated v may be too small where the heaviest edge below has
been cut. In a tree with the heavy edges deep down that changes v of all edges above, cut after cut.
Hence a negative v is noted as if dispersion were less, such that it is larger by the part SLACK of
it: that is an upper bound until dispersion has fallen so far. ``renew_loosened`` finds the edges
where it has. Edges that cut off much have a v far below U, hence much time; those that have little
are few. If separation below grows, ``renew_above`` walks up as far as anything has changed.

**Rounding.** Bounds must hold for gains as computed. If the heaviest edge of the component stays
above, U is computed like u from the same dispersion and a separation no smaller, by operations that
are monotone even when rounded: U >= u. Otherwise MARGIN is added to U, and always to the bound for
the few operations of bound and gain. As it is relative to b and not to S, edges of equal gain have
a bound equal to that gain on the grid on which gains are compared.

**Work.** Building is linear, a cut logarithmic but for the edges that are renewed and evaluated.
On sorted paths, brooms and caterpillars that is a logarithm of them. How many depends on the tree;
a search that looks at too many is given up for a sweep, so that the worst case is that of sweeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptclust._kernel import kernel
from ptclust.clustering.dbcvi import validity

if TYPE_CHECKING:
    from ptclust._types import Array, Floats, Ints

#: Gains (N times the change of DBCVI) are compared on a grid of this step; equal there is equal.
GAIN_STEP = 2.0**-24

#: More than the rounding errors of a few operations on numbers of size 1.
MARGIN = 32 * 2.0**-53

#: A bound that excludes nothing.
NO_LIMIT = 2**62

#: Below a branch of few leaves, one that claims to cut off more than this many times all nodes is
#: renewed.
OUTDATED, FEW = 17 / 16, 16

#: A negative v is noted as larger by this part of it: so long it need not be renewed.
SLACK = 0.5

#: Work is counted in branches looked at; to evaluate or renew an edge is the work of this many.
EVALUATION = 32

#: Columns of ``SearchTrees.whole``: children, first and last leaf, number of leaves; the last of
#: the finest edges; the farthest end, in preorder, of the nodes below an edge, and below a tight
#: one; the most nodes an edge cuts off, and the most above a loose edge; the last edge.
LEFT, RIGHT, FIRST, LAST, COUNT, FINEST, REACH, TIGHT_REACH, SIZE, ABOVE, EDGE = range(11)

#: Columns of ``SearchTrees.real``: lightest cut incident to a node; of loose edges the weight of
#: the first leaf, if it is one, and the largest u of the others; weight of the heaviest tight
#: edges, their largest b v and b (v + 1), and the next largest b v; weight, largest b v and largest
#: b (v + 1) of the lighter tight edges; ...
CUT, HEAD, REST = range(3)
TIGHT, PRODUCT, SHIFTED, NEXT_PRODUCT, LIGHTER, LIGHTER_PRODUCT, LIGHTER_SHIFTED = range(3, 10)
#: ... weight of the heaviest edge; largest dispersion that v relies on; weight and largest v of
#: loose edges.
WEIGHT, DISPERSION, LOOSE, LOOSE_VALIDITY = range(10, 14)


class SearchTrees(NamedTuple):
    """Binary trees over disjoint sets of nodes.

    A leaf is a preorder number p and stands for the node p and the edge above it; a branch has a
    number from n_nodes on and stands for all leaves below it. The topmost node of a component has
    no edge, so weight and size 0 and edge -1.
    """

    whole: Array  # what is known of a leaf or branch in whole numbers
    real: Floats  # and in others
    free: Array  # branches not in use
    root: Array  # search tree of the component with this topmost node, -1 if it has none
    offset: Array  # of that component: nodes that left it from above since the search began
    counts: Ints  # number of free branches, work done so far
    todo: Ints  # a stack: ``best_cut`` begins in the middle, all others at 0
    ahead: Floats  # lightest cut and heaviest edge before a branch on the stack


@kernel
def index(number: Any) -> int:
    """Return a number as int64, so that kernels are not compiled for every type of index."""
    return int(np.int64(number))


@kernel
def renew(x: int, trees: SearchTrees) -> None:
    """Summarize the children of the branch x."""
    whole, real = trees.whole, trees.real
    left, right = whole[x, LEFT], whole[x, RIGHT]
    whole[x, FIRST], whole[x, LAST] = whole[left, FIRST], whole[right, LAST]
    whole[x, COUNT] = whole[left, COUNT] + whole[right, COUNT]
    for column in range(REACH, EDGE + 1):
        whole[x, column] = max(whole[left, column], whole[right, column])
    for column in range(WEIGHT, LOOSE_VALIDITY + 1):
        real[x, column] = max(real[left, column], real[right, column])
    real[x, CUT] = min(real[left, CUT], real[right, CUT])
    ahead = real[left, WEIGHT]
    rest = min(real[right, REST], largest_validity(real[right, LOOSE], ahead))
    rest = max(rest, largest_validity(real[right, HEAD], ahead))
    real[x, HEAD], real[x, REST] = real[left, HEAD], max(real[left, REST], rest)
    a, b = (left, right) if real[left, TIGHT] >= real[right, TIGHT] else (right, left)
    for column in range(TIGHT, LIGHTER_SHIFTED + 1):
        real[x, column] = real[a, column]
    for column in range(LIGHTER, LIGHTER_SHIFTED + 1):
        real[x, column] = max(real[a, column], real[b, column])
    whole[x, FINEST] = whole[a, FINEST]
    if real[b, TIGHT] < real[a, TIGHT]:
        real[x, LIGHTER] = max(real[x, LIGHTER], real[b, TIGHT])
        real[x, LIGHTER_PRODUCT] = max(real[x, LIGHTER_PRODUCT], real[b, PRODUCT])
        real[x, LIGHTER_SHIFTED] = max(real[x, LIGHTER_SHIFTED], real[b, SHIFTED])
        return
    real[x, SHIFTED] = max(real[a, SHIFTED], real[b, SHIFTED])
    if real[b, PRODUCT] > real[a, PRODUCT]:
        a, b = b, a
    real[x, PRODUCT], whole[x, FINEST] = real[a, PRODUCT], whole[a, FINEST]
    real[x, NEXT_PRODUCT] = max(real[a, NEXT_PRODUCT], real[b, PRODUCT])
    if real[b, PRODUCT] == real[a, PRODUCT]:
        whole[x, FINEST] = max(whole[a, FINEST], whole[b, FINEST])
        real[x, NEXT_PRODUCT] = max(real[a, NEXT_PRODUCT], real[b, NEXT_PRODUCT])


@kernel
def largest_validity(weight: float, dispersion: float) -> float:
    """Return what is left validity at most if an edge of this weight, 0 for none, is cut."""
    return validity(weight, dispersion) if weight > 0 else -np.inf


@kernel
def renew_to(x: int, p: int, trees: SearchTrees) -> None:
    """Renew all branches from the leaf p up to the branch x."""
    whole, todo = trees.whole, trees.todo
    n_todo = 0
    while x != p:
        todo[n_todo, 0] = x
        n_todo += 1
        right = whole[x, RIGHT]
        x = index(right if p >= whole[right, FIRST] else whole[x, LEFT])
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
    return index(trees.free[trees.counts[0]])


@kernel
def release(x: int, trees: SearchTrees) -> None:
    """Return the branch x to the free ones."""
    trees.free[trees.counts[0]] = x
    trees.counts[0] += 1


@kernel
def set_leaf(p: int, reach: int, edge: int, weight: float, cut: float, trees: SearchTrees) -> None:
    """Make p a leaf: its lightest cut, the edge above it, and where the nodes below it end."""
    whole, real = trees.whole[p], trees.real[p]
    whole[FIRST], whole[LAST], whole[COUNT], whole[FINEST] = p, p, 1, edge
    whole[REACH], whole[TIGHT_REACH], whole[SIZE], whole[ABOVE], whole[EDGE] = reach, 0, 0, 0, edge
    real[:] = -np.inf
    real[CUT], real[WEIGHT] = cut, weight
    real[HEAD], real[TIGHT], real[LIGHTER], real[DISPERSION], real[LOOSE] = 0.0, 0.0, 0.0, 0.0, 0.0


@kernel
def set_below(
    p: int,
    size: int,
    separation: float,
    dispersion: float,
    slack: float,
    total: int,
    trees: SearchTrees,
) -> None:
    """Note what the edge above p cuts off; its separation is given but for that edge.

    If v is negative, it is noted as larger by the part ``slack`` of it. ``total`` is the number of
    nodes by which the component counts (see ``SearchTrees.offset``).
    """
    whole, real = trees.whole[p], trees.real[p]
    edge, weight = whole[EDGE], real[WEIGHT]
    set_leaf(p, index(whole[REACH]), index(edge), weight, real[CUT], trees)
    separation = min(separation, weight)
    v = validity(separation, dispersion)
    if v < 0.0 and slack > 0.0:
        dispersion = min(dispersion, separation / (1.0 + (1.0 - slack) * v))
        loose, v = True, validity(separation, dispersion)
    else:
        loose = v < 0.0
    whole[SIZE], real[DISPERSION] = size, dispersion
    if loose:
        whole[ABOVE] = total - size
        real[LOOSE], real[LOOSE_VALIDITY], real[HEAD] = weight, v, weight
    else:
        whole[TIGHT_REACH] = whole[REACH]
        real[TIGHT], real[PRODUCT], real[SHIFTED] = weight, size * v, size * v + size


@kernel
def build(members: Array, buffer: Array, trees: SearchTrees) -> int:
    """Return a balanced tree over the leaves ``members``."""
    n = len(members)
    buffer[:n] = members
    while n > 1:
        for i in range(n // 2):
            left, right = index(buffer[2 * i]), index(buffer[2 * i + 1])
            buffer[i] = join(new_branch(trees), left, right, trees)
        if n % 2 == 1:
            buffer[n // 2] = buffer[n - 1]
        n = (n + 1) // 2
    return index(buffer[0])


@kernel
def dissolve(x: int, members: Array, trees: SearchTrees) -> None:
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
    """Split the tree x into that of the leaves outside ``begin`` to ``end`` and those inside.

    Both must exist. A branch with leaves of either kind is divided into a branch of each kind, or
    gives way to its only child of a kind; so no tree becomes higher.
    """
    whole, todo = trees.whole, trees.todo
    # rows: mixed branch; left and right child outside; left and right child inside; twice the row
    # of the parent + side
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
    """Return size, SEP and DISP of what the edge above p cuts off, and SEP and DISP of the rest.

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
def last_with(x: int, column: Floats, value: float, trees: SearchTrees) -> int:
    """Return the last leaf of the tree x that has this value in the column."""
    while trees.whole[x, COUNT] > 1:
        right = index(trees.whole[x, RIGHT])
        x = right if column[right] == value else index(trees.whole[x, LEFT])
    return x


@kernel
def cut_off(
    p: int, topmost: int, parent: Array, budget: int, trees: SearchTrees
) -> tuple[int, int, int]:
    """Cut the edge above p in the component with this topmost node.

    Returns the search trees of the rest and of what is below p, and what is left of ``budget``; if
    that is negative, the search tree of the rest is not up to date.
    """
    total = index(trees.whole[trees.root[topmost], COUNT] + trees.offset[topmost])
    rest, below = split(trees.root[topmost], p, trees.whole[p, REACH], trees)
    trees.offset[p] = total - trees.whole[below, COUNT]
    weight = trees.real[p, WEIGHT]
    if weight <= trees.real[below, CUT]:
        budget = renew_loosened(rest, below, topmost, p, budget, trees)
    else:
        budget = renew_above(rest, below, topmost, p, parent, budget, trees)
    up = index(parent[p])
    trees.real[up, CUT] = min(trees.real[up, CUT], weight)
    renew_to(rest, up, trees)
    set_leaf(p, index(0), index(-1), 0.0, min(trees.real[p, CUT], weight), trees)
    renew_to(below, p, trees)
    return rest, below, budget


@kernel
def renew_above(
    rest: int, below: int, topmost: int, p: int, parent: Array, budget: int, trees: SearchTrees
) -> int:
    """Renew what the edges above p cut off, now without p; return what is left of ``budget``.

    What an edge cuts off had DISP max(d, heaviest) and SEP min(s, lightest), and now has d and
    min(s, weight). On the way up d grows and s falls; so where nothing has changed, nothing
    changes further up.
    """
    weight, lightest = trees.real[p, WEIGHT], trees.real[below, CUT]
    heaviest = trees.real[below, WEIGHT]
    total = index(trees.whole[rest, COUNT] + trees.offset[topmost])
    q = index(parent[p])
    while q != topmost:
        size, sep, disp, _, _ = pieces(rest, q, trees)
        if disp >= heaviest and min(sep, lightest) == min(sep, weight):
            break
        budget -= EVALUATION
        if budget < 0:
            break
        set_below(q, size, min(sep, weight), disp, SLACK, total, trees)
        renew_to(rest, q, trees)
        q = index(parent[q])
    return budget


@kernel
def renew_loosened(
    rest: int, below: int, topmost: int, p: int, budget: int, trees: SearchTrees
) -> int:
    """Do what ``renew_above`` does where no separation has grown, but only to edges that need it.

    These are the ones whose v relies on a dispersion between the d that they have now and the one
    that was cut off with p. Of an edge further up, d is no smaller.
    """
    whole, real = trees.whole, trees.real
    weight, heaviest = real[p, WEIGHT], real[below, WEIGHT]
    total = index(whole[rest, COUNT] + trees.offset[topmost])
    known, q = 0.0, p
    while known < heaviest and budget >= 0:
        q, budget = nearest_above(rest, p, q, known, budget, trees)
        if q < 0 or real[q, DISPERSION] > heaviest:
            break
        budget -= EVALUATION
        size, sep, disp, _, _ = pieces(rest, q, trees)
        if real[q, DISPERSION] > disp:
            set_below(q, size, min(sep, weight), disp, SLACK, total, trees)
            renew_to(rest, q, trees)
        known = max(known, disp)
    return budget


@kernel
def nearest_above(
    x: int, p: int, last: int, dispersion: float, budget: int, trees: SearchTrees
) -> tuple[int, int]:
    """Return the last leaf of x before ``last`` that is above p and relies on more dispersion.

    It is -1 if there is none. Also returned is what is left of ``budget``.
    """
    whole, todo = trees.whole, trees.todo
    todo[0, 0] = x
    n_todo = 1
    while n_todo > 0:
        n_todo -= 1
        x = todo[n_todo, 0]
        budget -= 1
        if whole[x, FIRST] >= last or whole[x, REACH] <= p:
            continue
        if trees.real[x, DISPERSION] <= dispersion:
            continue
        if whole[x, COUNT] == 1:
            return x, budget
        todo[n_todo, 0], todo[n_todo + 1, 0] = whole[x, LEFT], whole[x, RIGHT]
        n_todo += 2
    return index(-1), budget


@kernel
def on_grid(gain: float) -> int:
    """Return the gain in steps of GAIN_STEP."""
    return int(np.floor(gain / GAIN_STEP + 0.5))


@kernel
def bound(
    n_nodes: int, current: float, above: float, size: int, product: float, shifted: float
) -> int:
    """Bound, on the grid, the gain of edges that leave a validity of at most ``above``.

    They cut off at most ``size`` nodes; b v is at most ``product`` and b (v + 1) at most
    ``shifted`` for all of them.
    """
    first = (1 + above) * product - above * shifted if above <= 0 else (1 - above) * product
    second = n_nodes * (above - current)
    return on_grid(max(first, 0.0) + second + MARGIN * (size + abs(second)))


@kernel
def limits(
    x: int,
    n_nodes: int,
    total: int,
    current: float,
    tight: tuple[float, float, float],
    loose: tuple[float, float, float],
    trees: SearchTrees,
) -> tuple[int, int]:
    """Return a bound for all edges of x, and one for all but its finest.

    What a tight edge of x leaves has a SEP of at most and a DISP of at least the first two numbers
    of ``tight``, and the third is added to its validity; loose ones likewise.
    """
    size, real = trees.whole[x, SIZE], trees.real[x]
    limit, limit_of_others = index(-1), index(-1)
    sep, disp, slack = tight
    if real[TIGHT] > 0:
        above = validity(min(sep, real[TIGHT]), disp) + slack
        shifted = real[SHIFTED]
        limit = bound(n_nodes, current, above, size, real[PRODUCT], shifted)
        if real[NEXT_PRODUCT] > -np.inf:
            product = real[NEXT_PRODUCT]
            limit_of_others = bound(n_nodes, current, above, size, product, shifted)
    if real[LIGHTER] > 0:
        above = validity(min(sep, real[LIGHTER]), disp) + slack
        product, shifted = real[LIGHTER_PRODUCT], real[LIGHTER_SHIFTED]
        limit_lighter = bound(n_nodes, current, above, size, product, shifted)
        limit_of_others = max(limit_of_others, limit_lighter)
    if real[LOOSE] > 0:
        sep, disp, slack = loose
        above = validity(min(sep, real[LOOSE]), disp) + slack
        above = min(above, max(largest_validity(real[HEAD], disp), real[REST]))
        loss = real[LOOSE_VALIDITY] - above
        n_below = max(total - trees.whole[x, ABOVE], 0) if loss < 0 else size
        second = n_nodes * (above - current)
        margin = MARGIN * (size + abs(second))
        limit_of_others = max(limit_of_others, on_grid(n_below * loss + second + margin))
    return max(limit, limit_of_others), limit_of_others


@kernel
def put_better_last(row: int, trees: SearchTrees) -> None:
    """Sort this and the next row of the stack: the branch with the better bound comes first."""
    whole, todo, ahead = trees.whole, trees.todo, trees.ahead
    a, b = row, row + 1
    if todo[a, 1] > todo[b, 1] or (
        todo[a, 1] == todo[b, 1] and whole[todo[a, 0], FINEST] > whole[todo[b, 0], FINEST]
    ):
        for column in range(3):
            todo[a, column], todo[b, column] = todo[b, column], todo[a, column]
        for column in range(2):
            ahead[a, column], ahead[b, column] = ahead[b, column], ahead[a, column]


@kernel
def best_cut(x: int, budget: int, trees: SearchTrees) -> tuple[float, int, int, int, int]:
    """Return V_C of the component with the search tree x, and gain, edge and node of its best cut.

    The gain is in steps of GAIN_STEP, and the edge -1 if no cut is worth making. The last number
    returned is what is left of ``budget``; if it is negative, the search was given up.
    """
    whole, real, todo, ahead = trees.whole, trees.real, trees.todo, trees.ahead
    n_nodes = int(whole[x, COUNT])
    total = index(n_nodes + trees.offset[whole[x, FIRST]])
    lightest, heaviest = real[x, CUT], real[x, WEIGHT]
    current = validity(lightest, heaviest)
    last_cut = last_with(x, real[:, CUT], lightest, trees)
    last_heavy = last_with(x, real[:, WEIGHT], heaviest, trees)
    topmost = whole[x, FIRST]
    best_gain, best_edge, best = index(0), index(-1), index(-1)
    bottom = len(todo) // 2
    todo[bottom, 0], todo[bottom, 1], todo[bottom, 2] = x, NO_LIMIT, NO_LIMIT
    ahead[bottom, 0], ahead[bottom, 1] = np.inf, 0.0
    n_todo = bottom + 1
    while n_todo > bottom and budget >= 0:
        n_todo -= 1
        y, limit, limit_of_others = todo[n_todo, 0], todo[n_todo, 1], todo[n_todo, 2]
        last_edge = whole[y, FINEST] if limit_of_others < best_gain else whole[y, EDGE]
        if limit < best_gain or (limit == best_gain and last_edge < best_edge):
            continue
        if whole[y, COUNT] == 1:
            budget -= EVALUATION
            n_below, sep, disp, sep_above, disp_above = pieces(x, y, trees)
            weight = real[y, WEIGHT]
            below = validity(min(sep, weight), disp)
            above = validity(min(sep_above, weight), disp_above)
            gain = on_grid(n_below * (below - current) + (n_nodes - n_below) * (above - current))
            if gain > best_gain or (gain == best_gain and whole[y, EDGE] > best_edge):
                best_gain, best_edge, best = gain, index(whole[y, EDGE]), index(y)
            if n_below != whole[y, SIZE] or disp != real[y, DISPERSION]:
                slack = 0.0
                if below < 0:
                    slack = min(SLACK, (best_gain - gain) * GAIN_STEP / (2 * n_below * -below))
                set_below(y, n_below, sep, disp, slack, total, trees)
                renew_to(x, y, trees)
            continue
        budget -= 1
        left = whole[y, LEFT]
        ahead[n_todo + 1, 0] = min(ahead[n_todo, 0], real[left, CUT])
        ahead[n_todo + 1, 1] = max(ahead[n_todo, 1], real[left, WEIGHT])
        for side in range(2):
            child, row = whole[y, side], n_todo + side
            todo[row, 0], todo[row, 1], todo[row, 2] = child, -1, -1
            if whole[y, COUNT] <= FEW and whole[child, SIZE] > OUTDATED * n_nodes:
                todo[row, 1], todo[row, 2] = NO_LIMIT, NO_LIMIT
            elif child != topmost:
                reach, tight_reach = whole[child, REACH], whole[child, TIGHT_REACH]
                sep = lightest if last_cut >= reach else ahead[row, 0]
                disp = heaviest if last_heavy >= reach else ahead[row, 1]
                loose = sep, disp, 0.0 if disp == heaviest else MARGIN
                sep = lightest if last_cut >= tight_reach else ahead[row, 0]
                disp = heaviest if last_heavy >= tight_reach else ahead[row, 1]
                tight = sep, disp, 0.0 if disp == heaviest else MARGIN
                todo[row, 1], todo[row, 2] = limits(
                    child, n_nodes, total, current, tight, loose, trees
                )
        put_better_last(n_todo, trees)
        n_todo += 2
    return current, best_gain, best_edge, best, budget
