"""Boruvka's algorithm on a kd-tree: the kernels behind the Euclidean minimum spanning tree.

The kd-tree is a complete binary tree in heap order (the children of ``node`` are ``2 * node + 1``
and ``2 * node + 2``) over points permuted so that every node owns a contiguous range of positions.
Within a leaf the coordinates are stored one dimension after the other, which lets the compiler
compute several distances at once without reordering any sum.

Everything below speaks of positions, except that a pair of points is named by its *key*,
``smaller id * n + larger id`` with the ids of the caller: pairs are compared by (squared distance,
key), a strict order, so each component has exactly one best outgoing pair.

Pruning and rounding. The bound of a box is the squared distance from the query to its own clipped
image, added up in the same order as the distance to a point. Inside the box no coordinate is
closer than the clipped one, and floating-point subtraction, squaring and addition of nonnegative
numbers are monotone, so term by term and sum by sum the computed bound never exceeds the computed
distance to a point of the box. A box is skipped only if (bound, key with the smallest id in the
box) is not below the best pair known; the key grows with the other point's id, so no pair that the
order prefers is ever lost, and a heap of equal points is settled by one descent per point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust._kernel import inlined, kernel
from ptclust._union_find import find, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: No leaf holds more points than this. Affects speed, never the result.
LEAF_SIZE = 32
#: The component of a node whose points belong to several.
MIXED = -1
#: Larger than every key.
NO_KEY = np.iinfo(np.int64).max


@inlined
def _key(a: int, b: int, n_points: int) -> int:
    """Name the pair of ids so that names compare as (smaller id, larger id)."""
    return a * n_points + b if a < b else b * n_points + a


# --- kd-tree ---------------------------------------------------------------------------------


@kernel
def build_tree(
    rows: NDArray[np.float64],
    ids: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    boxes: NDArray[np.float64],
    smallest_id: NDArray[np.int64],
    blocks: NDArray[np.float64],
) -> None:
    """Permute ``rows`` and ``ids`` in place into kd order and fill the arrays of the nodes.

    ``boxes`` has shape (nodes, 2, dimensions): lower and upper corner. ``blocks`` receives the
    points leaf by leaf, transposed within each leaf.
    """
    n_dimensions = rows.shape[1]
    n_nodes = len(starts)
    first_leaf = n_nodes // 2
    starts[0], ends[0] = 0, len(rows)
    for node in range(n_nodes):
        start, end = starts[node], ends[node]
        _bound_rows(rows, start, end, boxes[node])
        if node < first_leaf:
            widest = 0
            for d in range(1, n_dimensions):
                extent = boxes[node, 1, d] - boxes[node, 0, d]
                if extent > boxes[node, 1, widest] - boxes[node, 0, widest]:
                    widest = d
            middle = (start + end) // 2
            _select(rows, ids, start, end, middle, widest)
            starts[2 * node + 1], ends[2 * node + 1] = start, middle
            starts[2 * node + 2], ends[2 * node + 2] = middle, end
        else:
            cell = start * n_dimensions
            for d in range(n_dimensions):
                for i in range(start, end):
                    blocks[cell] = rows[i, d]
                    cell += 1
    for node in range(n_nodes - 1, -1, -1):
        if node < first_leaf:
            smallest_id[node] = min(smallest_id[2 * node + 1], smallest_id[2 * node + 2])
        else:
            smallest_id[node] = ids[starts[node] : ends[node]].min()


@kernel
def _bound_rows(rows: NDArray[np.float64], start: int, end: int, box: NDArray[np.float64]) -> None:
    for d in range(rows.shape[1]):
        low = high = rows[start, d]
        for i in range(start + 1, end):
            low = min(low, rows[i, d])
            high = max(high, rows[i, d])
        box[0, d], box[1, d] = low, high


@kernel
def _select(
    rows: NDArray[np.float64], ids: NDArray[np.int64], start: int, end: int, rank: int, d: int
) -> None:
    """Reorder positions ``start`` to ``end`` so that none before ``rank`` exceeds one after it.

    Hoare's quickselect. Pivots are pseudo-random, so no order of the input makes it quadratic;
    swapping equal values too keeps it linear when most values are equal.
    """
    state = 1
    low, high = start, end - 1
    while low < high:
        state = (state * 1103515245 + 12345) % 2147483648
        pivot = rows[low + state % (high - low + 1), d]
        i, j = low, high
        while i <= j:
            while rows[i, d] < pivot:
                i += 1
            while rows[j, d] > pivot:
                j -= 1
            if i <= j:
                for k in range(rows.shape[1]):
                    rows[i, k], rows[j, k] = rows[j, k], rows[i, k]
                ids[i], ids[j] = ids[j], ids[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            return


# --- Boruvka ---------------------------------------------------------------------------------


@kernel
def seed_components(
    component: NDArray[np.int64],
    positions: NDArray[np.int64],
    floor_square: NDArray[np.float64],
    floor_key: NDArray[np.int64],
    best_square: NDArray[np.float64],
    best_key: NDArray[np.int64],
) -> None:
    """Start every component from the best of the pairs seen so far that leave it."""
    n_points = len(component)
    best_square[:] = np.inf
    best_key[:] = NO_KEY
    for i in range(n_points):
        key = floor_key[i]
        if key >= 0:
            a = component[positions[key // n_points]]
            b = component[positions[key % n_points]]
            if a != b:
                _improve(best_square, best_key, a, floor_square[i], key)
                _improve(best_square, best_key, b, floor_square[i], key)


@inlined
def _improve(
    best_square: NDArray[np.float64],
    best_key: NDArray[np.int64],
    component: int,
    square: float,
    key: int,
) -> None:
    if square < best_square[component] or (
        square == best_square[component] and key < best_key[component]
    ):
        best_square[component] = square
        best_key[component] = key


@kernel
def label_nodes(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    component: NDArray[np.int64],
    node_component: NDArray[np.int64],
) -> None:
    """Write for every node the component that owns all its points, or ``MIXED``."""
    n_nodes = len(starts)
    first_leaf = n_nodes // 2
    for node in range(n_nodes - 1, -1, -1):
        if node < first_leaf:
            owner = node_component[2 * node + 1]
            if owner != node_component[2 * node + 2]:
                owner = MIXED
        else:
            owner = component[starts[node]]
            for i in range(starts[node] + 1, ends[node]):
                if component[i] != owner:
                    owner = MIXED
                    break
        node_component[node] = owner


@inlined
def _box_bound(boxes: NDArray[np.float64], node: int, query: NDArray[np.float64]) -> float:
    """Return the squared distance from ``query`` to its clipped image in the box of ``node``."""
    total = 0.0
    for d in range(len(query)):
        gap = max(max(boxes[node, 0, d] - query[d], query[d] - boxes[node, 1, d]), 0.0)
        total += gap * gap
    return total


@kernel
def find_best_pairs(
    first_home: int,
    last_home: int,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    boxes: NDArray[np.float64],
    smallest_id: NDArray[np.int64],
    blocks: NDArray[np.float64],
    ids: NDArray[np.int64],
    component: NDArray[np.int64],
    node_component: NDArray[np.int64],
    floor_square: NDArray[np.float64],
    floor_key: NDArray[np.int64],
    best_square: NDArray[np.float64],
    best_key: NDArray[np.int64],
) -> None:
    """Let the points of the leaves from ``first_home`` up to ``last_home`` (excluded) search.

    Once all leaves have had their turn, ``best_*`` hold the best pair that leaves each component.
    ``floor_*`` hold for every point a pair such that no pair from this point out of its component
    comes before it. The floor stays true as components grow, so a point whose floor is not below
    its component's best need not search. A search that ends moves the floor to that best.
    """
    n_points, n_dimensions = len(ids), boxes.shape[2]
    first_leaf = len(starts) // 2
    query = np.empty(n_dimensions)
    squares = np.empty(LEAF_SIZE)
    stack_node = np.empty(64, dtype=np.int64)
    stack_bound = np.empty(64)
    for home in range(first_home, last_home):
        size = ends[home] - starts[home]
        for i in range(starts[home], ends[home]):
            own, own_id = component[i], ids[i]
            square, key = best_square[own], best_key[own]
            if floor_square[i] > square or (floor_square[i] == square and floor_key[i] >= key):
                continue
            for d in range(n_dimensions):
                query[d] = blocks[starts[home] * n_dimensions + d * size + i - starts[home]]
            partner = -1
            depth = 1
            stack_node[0], stack_bound[0] = 0, 0.0
            while depth > 0:
                depth -= 1
                node, bound = stack_node[depth], stack_bound[depth]
                while node_component[node] != own and (
                    bound < square
                    or (bound == square and _key(own_id, smallest_id[node], n_points) < key)
                ):
                    if node >= first_leaf:
                        start, end = starts[node], ends[node]
                        _leaf_squares(blocks, start, end, query, squares)
                        for j in range(start, end):
                            found = squares[j - start]
                            if found <= square and component[j] != own:
                                found_key = _key(own_id, ids[j], n_points)
                                if found < square or found_key < key:
                                    square, key, partner = found, found_key, j
                        break
                    near, far = 2 * node + 1, 2 * node + 2
                    bound = _box_bound(boxes, near, query)
                    far_bound = _box_bound(boxes, far, query)
                    if far_bound < bound or (
                        far_bound == bound and smallest_id[far] < smallest_id[near]
                    ):
                        near, far, bound, far_bound = far, near, far_bound, bound
                    if far_bound <= square and node_component[far] != own:
                        stack_node[depth], stack_bound[depth] = far, far_bound
                        depth += 1
                    node = near
            floor_square[i], floor_key[i] = square, key
            if partner >= 0:
                best_square[own], best_key[own] = square, key
                _improve(best_square, best_key, component[partner], square, key)


@kernel
def _leaf_squares(
    blocks: NDArray[np.float64],
    start: int,
    end: int,
    query: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Write the squared distances from ``query`` to the points of a leaf."""
    size = end - start
    squares = squares[:size]
    squares[:] = 0.0
    for d in range(len(query)):
        strip = blocks[start * len(query) + d * size :][:size]
        coordinate = query[d]
        for j in range(size):
            difference = coordinate - strip[j]
            squares[j] += difference * difference


@kernel
def merge_components(
    component: NDArray[np.int64],
    positions: NDArray[np.int64],
    best_square: NDArray[np.float64],
    best_key: NDArray[np.int64],
    parent: NDArray[np.int64],
    tree_square: NDArray[np.float64],
    tree_key: NDArray[np.int64],
    n_tree: int,
) -> int:
    """Take the best pair of every component into the tree and return the tree's new size.

    The order of pairs being strict, the pairs taken form no cycle, except that two components may
    have chosen the same pair: it is taken once.
    """
    n_points = len(component)
    for root in range(n_points):
        if component[root] != root:
            continue
        key = best_key[root]
        a = find(parent, positions[key // n_points])
        b = find(parent, positions[key % n_points])
        if a != b:
            union(parent, a, b)
            tree_square[n_tree], tree_key[n_tree] = best_square[root], key
            n_tree += 1
    for i in range(n_points):  # a parent never lies behind its child, so one sweep flattens all
        parent[i] = parent[parent[i]]
        component[i] = parent[i]
    return n_tree
