"""The best cut of a component without a look at all of its edges.

A component that loses a few nodes at a time, as a hub loses one leaf after the other, must not be swept anew after
every cut. Its nodes become the leaves of a balanced binary tree, in preorder; what hangs below a node is then a range.

*   ``split`` takes a range out of the tree, which is what a cut does to a component, in logarithmic time.
*   ``pieces`` finds size, dispersion and separation of both pieces a cut would leave by one query for a range. The gain
    follows from the same numbers by the same expression as in a sweep, so it is the same to the last bit.
*   ``best_cut`` is branch and bound: it evaluates an edge only if the bounds of the branches above it let it win.

**The bound.** Let a component have S nodes and validity V. Cutting an edge of weight w leaves b nodes of validity v
below and S - b nodes of validity u above it, and gains

    b (v - V) + (S - b) (u - V)  =  b (v - u) + S (u - V).

This grows with u, as b <= S, so an upper bound U may stand for u. Some nodes stay above every edge of a branch: those
before the branch, and those behind all that its edges cut off. U is the validity that their heaviest edge, their
lightest cut and w give; mostly these are the heaviest edge and the lightest cut of the component. The other term is

    b (v - U)  =  (1 + U) b v - U b (v + 1)   if U <= 0,        b (v - U)  <=  (1 - U) b v   if 0 < U <= v,

so a branch needs to know the largest b v and the largest b (v + 1). It knows them for its heaviest edges apart from
the others, because U depends on w, and mostly only the heaviest edges of a component can be cut with a gain. Thousands
of edges may have the same gain, of which the last is cut: hence a branch also knows the last of its heaviest edges with
the largest b v, and the next largest b v, which bounds the gain of the others.

**What is kept up to date.** Cuts further down change v and lower b. ``renew_above`` renews v, walking up only as far as
dispersion or separation have changed. An outdated b is too large, which is harmless: if v >= U then b (v - U) is
overestimated, and if v < U it is negative and 0 a bound.

**Rounding.** Bounds must hold for gains as computed. If the heaviest edge of the component stays above, U is computed
like u from the same dispersion and a separation no smaller, by operations that are monotone even when rounded: U >= u.
Otherwise MARGIN is added to U, and always to the bound for the few operations of bound and gain. As it is relative to
b and not to S, edges of equal gain have a bound equal to that gain on the grid on which gains are compared.

**Work.** Building is linear, a cut logarithmic but for the edges that are renewed and evaluated. How many these are
depends on the tree; a search that looks at too many is given up for a sweep, so that the worst case is that of sweeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._kernel import inlined, kernel
from ptclust.clustering._search_tree_kernel import (
    COUNT,
    CUT,
    EDGE,
    FINEST,
    FIRST,
    LEFT,
    LIGHTER,
    LIGHTER_PRODUCT,
    LIGHTER_SHIFTED,
    NEXT_PRODUCT,
    PRODUCT,
    REACH,
    SHIFTED,
    SIZE,
    WEIGHT,
    SearchTrees,
    last_with,
    pieces,
    renew_to,
    set_below,
    set_leaf,
    split,
    validity,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Gains (N times the change of DBCVI) are compared on a grid of this step; equal there is equal.
GAIN_STEP = 2.0**-24

#: More than the rounding errors of a few operations on numbers of size 1.
MARGIN = 32 * 2.0**-53

#: A bound that excludes nothing.
NO_LIMIT = 2**62

#: Below a branch of few leaves, one that claims to cut off more than this many times the nodes there are is renewed.
OUTDATED, FEW = 17 / 16, 16

#: Work is counted in branches looked at; to evaluate an edge, or to renew it, is about as much work as this many.
EVALUATION = 32


@kernel
def cut_off(
    p: int, topmost: int, parent: NDArray[Any], budget: int, trees: SearchTrees
) -> tuple[int, int, int]:
    """Cut the edge above p in the component with this topmost node.

    Returns the search trees of the rest and of what is below p, and what is left of ``budget``; if that is negative,
    the search tree of the rest is not up to date.
    """
    rest, below = split(trees.root[topmost], p, trees.whole[p, REACH], trees)
    weight = trees.real[p, WEIGHT]
    budget = renew_above(rest, below, topmost, p, parent, budget, trees)
    up = parent[p]
    trees.real[up, CUT] = min(trees.real[up, CUT], weight)
    renew_to(rest, up, trees)
    set_leaf(p, 0, -1, 0.0, min(trees.real[p, CUT], weight), trees)
    renew_to(below, p, trees)
    return rest, below, budget


@kernel
def renew_above(
    rest: int,
    below: int,
    topmost: int,
    p: int,
    parent: NDArray[Any],
    budget: int,
    trees: SearchTrees,
) -> int:
    """Renew what the edges above p cut off, now that p is no longer part of it; return what is left of ``budget``.

    What an edge cuts off had dispersion max(d, heaviest) and separation min(s, lightest), and now has d and
    min(s, weight). On the way up d grows and s falls; so where nothing has changed, nothing changes further up.
    """
    weight, heaviest, lightest = (
        trees.real[p, WEIGHT],
        trees.real[below, WEIGHT],
        trees.real[below, CUT],
    )
    q = parent[p]
    while q != topmost:
        size, sep, disp, _, _ = pieces(rest, q, trees)
        if disp >= heaviest and min(sep, lightest) == min(sep, weight):
            break
        budget -= EVALUATION
        if budget < 0:
            break
        set_below(q, size, min(sep, weight), disp, trees)
        renew_to(rest, q, trees)
        q = parent[q]
    return budget


@inlined
def on_grid(gain: float) -> int:
    """Return the gain in steps of GAIN_STEP."""
    return int(np.floor(gain / GAIN_STEP + 0.5))


@inlined
def bound(
    n_nodes: int, current: float, above: float, size: int, product: float, shifted: float
) -> int:
    """Return an upper bound, on the grid, of the gain of edges that leave a validity of at most ``above``.

    They cut off at most ``size`` nodes; b v is at most ``product`` and b (v + 1) at most ``shifted`` for all of them.
    """
    first = (1 + above) * product - above * shifted if above <= 0 else (1 - above) * product
    second = n_nodes * (above - current)
    return on_grid(max(first, 0.0) + second + MARGIN * (size + abs(second)))


@inlined
def limits(
    x: int, n_nodes: int, current: float, sep: float, disp: float, slack: float, trees: SearchTrees
) -> tuple[int, int]:
    """Return a bound for all edges of x, and one for all but its heaviest edges with the largest b v.

    What an edge of x leaves has a separation of at most ``sep`` and a dispersion of at least ``disp``.
    """
    size, weights = trees.whole[x, SIZE], trees.real[x]
    product, shifted = weights[PRODUCT], weights[SHIFTED]
    above = validity(min(sep, weights[WEIGHT]), disp) + slack
    limit = bound(n_nodes, current, above, size, product, shifted)
    limit_of_others = -1
    if weights[NEXT_PRODUCT] > -np.inf:
        product = weights[NEXT_PRODUCT]
        limit_of_others = bound(n_nodes, current, above, size, product, shifted)
    if weights[LIGHTER] > 0:
        product, shifted = weights[LIGHTER_PRODUCT], weights[LIGHTER_SHIFTED]
        above = validity(min(sep, weights[LIGHTER]), disp) + slack
        limit_lighter = bound(n_nodes, current, above, size, product, shifted)
        limit_of_others = max(limit_of_others, limit_lighter)
    return max(limit, limit_of_others), limit_of_others


@inlined
def put_better_last(row: int, trees: SearchTrees) -> None:
    """Sort this and the next row of the stack so that the branch with the better bound is taken first."""
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
    """Return V_C of the component with the search tree x, gain and edge of its best cut and the node it cuts off.

    The gain is in steps of GAIN_STEP, and the edge -1 if no cut is worth making. The last number returned is what is
    left of ``budget``; if it is negative, the search was given up.
    """
    whole, real, todo, ahead = trees.whole, trees.real, trees.todo, trees.ahead
    n_nodes = int(whole[x, COUNT])
    lightest, heaviest = real[x, CUT], real[x, WEIGHT]
    current = validity(lightest, heaviest)
    last_cut, last_heavy = last_with(x, CUT, lightest, trees), last_with(x, WEIGHT, heaviest, trees)
    topmost = whole[x, FIRST]
    best_gain, best_edge, best = 0, -1, -1
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
                best_gain, best_edge, best = gain, int(whole[y, EDGE]), int(y)
            if n_below != whole[y, SIZE]:
                set_below(y, n_below, sep, disp, trees)
                renew_to(x, y, trees)
            continue
        budget -= 1
        left = whole[y, LEFT]
        ahead[n_todo + 1, 0] = min(ahead[n_todo, 0], real[left, CUT])
        ahead[n_todo + 1, 1] = max(ahead[n_todo, 1], real[left, WEIGHT])
        for side in range(2):
            child, row = whole[y, side], n_todo + side
            reach = whole[child, REACH]
            sep = lightest if last_cut >= reach else ahead[row, 0]
            disp = heaviest if last_heavy >= reach else ahead[row, 1]
            slack = 0.0 if disp == heaviest else MARGIN
            todo[row, 0], todo[row, 1], todo[row, 2] = child, -1, -1
            if whole[y, COUNT] <= FEW and whole[child, SIZE] > OUTDATED * n_nodes:
                todo[row, 1], todo[row, 2] = NO_LIMIT, NO_LIMIT
            elif child != topmost:
                todo[row, 1], todo[row, 2] = limits(
                    child, n_nodes, current, sep, disp, slack, trees
                )
        put_better_last(n_todo, trees)
        n_todo += 2
    return current, best_gain, best_edge, best, budget
