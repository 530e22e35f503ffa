"""Cutting a graph into connected pieces of about equal size, by halving them again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GROWTH, _DEPTH, _BRANCH = 0, 1, 2


@kernel
def _meet(
    start: NDArray[np.int64],
    near: NDArray[Any],
    node: int,
    piece: NDArray[np.int64],
    old: int,
    mark: int,
    found: NDArray[np.int64],
    count: int,
) -> int:
    """Move neighbours of ``node`` in the piece ``old`` to ``mark``; append them to the ``count`` found so far."""
    for i in range(start[node], start[node + 1]):
        other = near[i]
        if piece[other] == old:
            piece[other] = mark
            found[count] = other
            count += 1
    return count


@kernel
def _visit(
    start: NDArray[np.int64],
    near: NDArray[Any],
    root: int,
    piece: NDArray[np.int64],
    mark: int,
    found: NDArray[np.int64],
) -> int:
    """Move what is connected to ``root`` within its piece to the piece ``mark``, nearest first; return how much."""
    old = piece[root]
    piece[root] = mark
    found[0] = root
    count, head = 1, 0
    while head < count:
        node = found[head]
        head += 1
        count = _meet(start, near, node, piece, old, mark, found, count)
    return count


@kernel
def _grow(
    start: NDArray[np.int64],
    near: NDArray[Any],
    root: int,
    piece: NDArray[np.int64],
    mark: int,
    found: NDArray[np.int64],
    chance: NDArray[np.float64],
) -> int:
    """Do as `_visit`, but go on from any node met so far, by chance: compact, and fair to both sides of a graph.

    (Nearest first, a graph of two sides, such as people and things, is met one side after the other.)
    """
    old = piece[root]
    piece[root] = mark
    found[0] = root
    count, head = 1, 0
    while head < count:
        drawn = head + int(chance[head] * (count - head))
        found[head], found[drawn] = found[drawn], found[head]
        node = found[head]
        head += 1
        count = _meet(start, near, node, piece, old, mark, found, count)
    return count


@kernel
def _walk(
    start: NDArray[np.int64],
    near: NDArray[Any],
    root: int,
    piece: NDArray[np.int64],
    mark: int,
    found: NDArray[np.int64],
    below: NDArray[np.int64],
    seen: NDArray[np.int64],
    stack: NDArray[np.int64],
) -> int:
    """Do as `_visit`, but go deep first; ``below`` is then the number of nodes of the branch that begins at a node.

    The branch is ``found`` from that node on.
    """
    old = piece[root]
    piece[root] = mark
    found[0], stack[0], seen[root], below[root] = root, root, start[root], 1
    count, height = 1, 1
    while height:
        node = stack[height - 1]
        if seen[node] == start[node + 1]:
            height -= 1
            if height:
                below[stack[height - 1]] += below[node]
            continue
        other = near[seen[node]]
        seen[node] += 1
        if piece[other] == old:
            piece[other] = mark
            found[count], stack[height] = other, other
            seen[other], below[other] = start[other], 1
            count += 1
            height += 1
    return count


@kernel
def _best_branch(found: NDArray[np.int64], below: NDArray[np.int64], total: int) -> int:
    """Return the place in ``found`` where the branch begins whose size is nearest to half."""
    best = 0
    for i in range(1, total):
        if abs(2 * below[found[i]] - total) < abs(2 * below[found[best]] - total):
            best = i
    return best


@kernel
def halve_pieces(
    start: NDArray[np.int64],
    near: NDArray[Any],
    roots: NDArray[Any],
    size: int,
    most_work: int,
    chance: NDArray[np.float64],
    piece: NDArray[np.int64],
) -> int:
    """Number the nodes by connected pieces of 1/2 to 3/2 of ``size``, where there are such; return how many.

    ``roots`` holds one node of every component, ``chance`` a random number below 1 for every node, and ``piece`` is
    filled with -1 on entry.

    In a piece too large, a part grows from a far end; what it reaches first is connected. What is left may lie in
    fragments. Each touches the first part; the small ones join it, the others are parts of their own. Where this hardly
    divides the piece, for a hub holds all together, the next goes deep first, which leaves branches whole; and if that
    does not help, the branch nearest to half is cut off. What even this leaves undivided stays so. After ``most_work``
    steps no more is divided.
    """
    n_nodes = len(piece)
    found, rest, below = (
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
    )
    seen, stack = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    todo, todo_size = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    todo_kind = np.zeros(n_nodes, np.int64)
    count = waiting = work = 0
    for i in range(len(roots)):
        todo[waiting] = roots[i]
        todo_size[waiting] = _visit(start, near, roots[i], piece, count, found)
        waiting += 1
        count += 1
    while waiting:
        waiting -= 1
        root, total, kind = todo[waiting], todo_size[waiting], todo_kind[waiting]
        wanted = (2 * total + size) // (2 * size)  # total / size, rounded
        if wanted < 2 or work > most_work:
            continue
        whole = piece[root]
        # n_nodes marks nodes for the moment; a part takes a number of its own only when it is one.
        _visit(start, near, root, piece, n_nodes, found)
        far = found[total - 1]
        begin, end = total * (wanted // 2) // wanted, total
        if kind == _GROWTH:
            _grow(start, near, far, piece, whole, found, chance)
        else:
            _walk(start, near, far, piece, whole, found, below, seen, stack)
            if kind == _BRANCH:
                begin = _best_branch(found, below, total)
                end = begin + below[found[begin]]
                if 2 * (total - end + begin) < size:
                    begin = end  # too little would stay behind
        for i in range(total):
            work += start[found[i] + 1] - start[found[i]] + 1
        for i in range(begin, end):
            piece[found[i]] = n_nodes
        first = total - (end - begin)
        for i in range(begin, end):
            node = found[i]
            if piece[node] == n_nodes:
                part = _visit(start, near, node, piece, count, rest)
                if 2 * part < size:
                    for j in range(part):
                        piece[rest[j]] = whole
                    first += part
                else:
                    todo[waiting], todo_size[waiting], todo_kind[waiting] = node, part, _GROWTH
                    waiting += 1
                    count += 1
        if first < total or kind != _BRANCH:
            todo[waiting], todo_size[waiting] = far, first
            todo_kind[waiting] = min(kind + 1, _BRANCH) if 4 * first > 3 * total else _GROWTH
            waiting += 1
    return count
