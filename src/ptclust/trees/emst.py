"""The exact minimum spanning tree of points under the Euclidean distance, without the n^2 graph.

Boruvka's algorithm, each component finding its nearest neighbour through scikit-learn's kd-tree
(Bentley and Friedman 1978; March, Ram and Gray 2010): a complete binary tree in heap order (the
children of ``node`` are ``2 * node + 1`` and ``2 * node + 2``) over points permuted so that every
node owns a contiguous range of positions.

The kernels use positions, except that a pair of points is named by its *key*, ``smaller id * n +
larger id`` with the ids of the caller: pairs are compared by (squared distance, key), a strict
order, so each component has exactly one best outgoing pair.

Pruning and rounding. The bound of a box is the squared distance from the query to its own clipped
image, added up in the same order as the distance to a point. Inside the box no coordinate is closer
than the clipped one, and floating-point subtraction, squaring and addition of nonnegative numbers
are monotone, so term by term and sum by sum the computed bound never exceeds the computed distance
to a point of the box. A box is skipped only if (bound, key with the smallest id in the box) is not
below the best pair known; the key grows with the other point's id, so no pair that the order
prefers is ever lost, and a heap of equal points is settled by one descent per point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptclust._components import find, union
from ptclust._kernel import inlined, kernel
from ptclust._traces import leaves_no_trace
from ptclust._types import Floats, Ints
from ptclust.errors import InputError
from ptclust.graph.topology import Topology
from ptclust.trees.tree import Tree

LEAF_SIZE = 32  # no leaf holds more points than this; affects speed, never the result
_LEAVES_A_CALL = 1 << 11  # leaves that search in one kernel call, before an interrupt is handled
_MIXED = -1  # the component of a node whose points belong to several
_NO_KEY = np.iinfo(np.int64).max  # larger than every key


class _KdTree(NamedTuple):
    starts: Ints  # a node owns the points at the positions from its start to its end
    ends: Ints
    boxes: Floats  # of shape (nodes, 2, dimensions): lower and upper corner
    smallest_id: Ints
    columns: Floats  # the coordinates of the points, one row per dimension, by position
    ids: Ints  # which point is at a position


class _Pairs(NamedTuple):
    """One pair of points for every component, point or edge of the tree."""

    squares: Floats
    keys: Ints


@leaves_no_trace
def euclidean_spanning_tree(points: Floats) -> Tree:
    """Return the minimum spanning tree of ``points`` under the Euclidean distance.

    It equals the minimum spanning tree of ``Graph.from_points(points)``, edge ids included, but
    needs only memory in proportion to the points.

    >>> tree = euclidean_spanning_tree(np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 1.0]]))
    >>> tree.weights
    array([5., 1.])
    """
    sources, targets, weights, pair_ids = euclidean_spanning_edges(points)
    return Tree(Topology(sources, targets, n_nodes=len(points)), weights, pair_ids)


@leaves_no_trace
def euclidean_spanning_edges(points: Floats) -> tuple[Ints, Ints, Floats, Ints]:
    """Return sources, targets, weights and pair ids of the Euclidean minimum spanning tree.

    Pairs of points are compared by squared distance (added up over the dimensions from first to
    last), then by smaller index, then by larger index. That order is strict, so the tree is unique:
    it is the one Kruskal's algorithm finds on the complete graph with its edges in condensed order.
    Each source is below its target. Pair ids, ascending, are places in the condensed distance
    matrix of ``scipy.spatial.distance.pdist``.

    Memory is linear in the number of coordinates. Time is near n log n in few dimensions; in many,
    as for every kd-tree, it approaches n^2, though never the memory. Squared distances that
    underflow (points closer than about 1e-160) count as equal.

    References
    ----------
    J. L. Bentley and J. H. Friedman. Fast algorithms for constructing minimal spanning trees in
    coordinate spaces. IEEE Transactions on Computers, 1978.
    W. B. March, P. Ram and A. G. Gray. Fast Euclidean minimum spanning tree. KDD 2010.

    Examples
    --------
    >>> points = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 1.0], [5.0, 2.0]])
    >>> sources, targets, weights, pair_ids = euclidean_spanning_edges(points)
    >>> list(zip(sources.tolist(), targets.tolist(), weights.tolist(), pair_ids.tolist()))
    [(0, 1, 5.0, 0), (0, 2, 1.0, 1), (1, 3, 2.0, 4)]
    """
    points = np.asarray(points, dtype=np.float64)
    _check_points(points)
    n_points = len(points)
    squares, keys = _boruvka(points) if n_points > 1 else (np.empty(0), np.empty(0, np.int64))
    order = np.argsort(keys)
    sources, targets = np.divmod(keys[order], max(n_points, 1))
    pair_ids = n_points * sources - sources * (sources + 1) // 2 + targets - sources - 1
    return sources, targets, np.sqrt(squares[order]), pair_ids


def _check_points(points: Floats) -> None:
    if points.ndim != 2 or points.shape[1] == 0:
        table = "points must be a table with one row a point and at least one column"
        shape = f"its shape is {points.shape}; reshape it to (n_points, n_dimensions)"
        raise InputError(f"{table}, but {shape}")
    finite = np.isfinite(points).all(axis=1)
    if not finite.all():
        bad = f"{np.count_nonzero(~finite)} of {len(points)} points"
        first = f"the first in row {np.argmin(finite)}; remove or impute them"
        raise InputError(f"{bad} have a coordinate that is not a finite number, {first}")
    if len(points):
        with np.errstate(over="ignore"):
            diagonal = np.square(points.max(axis=0) - points.min(axis=0)).sum()
        if not np.isfinite(diagonal):
            raise InputError("points lie so far apart that squared distances overflow; divide them")


def _boruvka(points: Floats) -> _Pairs:
    """Return the pairs that are the tree's edges."""
    n_points = len(points)
    tree = _kd_tree(points)
    n_nodes = len(tree.starts)
    positions = np.empty_like(tree.ids)
    positions[tree.ids] = np.arange(n_points)
    component, parent = np.arange(n_points), np.arange(n_points)
    node_component = np.empty(n_nodes, dtype=np.int64)
    floor = _Pairs(np.full(n_points, -1.0), np.full(n_points, -1))
    best = _Pairs(np.empty(n_points), np.empty(n_points, dtype=np.int64))
    edges = _Pairs(np.empty(n_points - 1), np.empty(n_points - 1, dtype=np.int64))
    n_edges = 0
    while n_edges < n_points - 1:
        _seed_components(component, positions, floor, best)
        _label_nodes(tree, component, node_component)
        for home in range(n_nodes // 2, n_nodes, _LEAVES_A_CALL):
            last = min(home + _LEAVES_A_CALL, n_nodes)
            _find_best_pairs(home, last, tree, component, node_component, floor, best)
        n_edges = _merge_components(component, positions, best, parent, edges, n_edges)
    return edges


def _kd_tree(points: Floats) -> _KdTree:
    from sklearn.neighbors import KDTree

    _, ids, nodes, corners = KDTree(points, leaf_size=LEAF_SIZE // 2).get_arrays()
    ids, starts, ends = (np.array(each) for each in (ids, nodes["idx_start"], nodes["idx_end"]))
    smallest_id = np.empty_like(starts)
    first = len(starts) // 2
    smallest_id[first:] = np.minimum.reduceat(ids, starts[first:])
    while first > 0:  # from level to level, up to the root
        children = smallest_id[first : 2 * first + 1].reshape(-1, 2)
        first //= 2
        smallest_id[first : 2 * first + 1] = children.min(axis=1)
    boxes = np.ascontiguousarray(np.swapaxes(corners, 0, 1))
    return _KdTree(starts, ends, boxes, smallest_id, np.ascontiguousarray(points[ids].T), ids)


@inlined
def _key(a: int, b: int, n_points: int) -> int:
    """Name the pair of ids so that names compare as (smaller id, larger id)."""
    return a * n_points + b if a < b else b * n_points + a


@inlined
def _improve(best: _Pairs, component: int, square: float, key: int) -> None:
    known = best.squares[component]
    if square < known or (square == known and key < best.keys[component]):
        best.squares[component] = square
        best.keys[component] = key


@kernel
def _seed_components(component: Ints, positions: Ints, floor: _Pairs, best: _Pairs) -> None:
    """Start every component from the best of the pairs seen so far that leave it."""
    n_points = len(component)
    best.squares[:] = np.inf
    best.keys[:] = _NO_KEY
    for i in range(n_points):
        key = floor.keys[i]
        if key >= 0:
            a, b = component[positions[key // n_points]], component[positions[key % n_points]]
            if a != b:
                _improve(best, a, floor.squares[i], key)
                _improve(best, b, floor.squares[i], key)


@kernel
def _label_nodes(tree: _KdTree, component: Ints, node_component: Ints) -> None:
    """Write for every node the component that owns all its points, or ``_MIXED``."""
    n_nodes = len(tree.starts)
    first_leaf = n_nodes // 2
    for node in range(n_nodes - 1, -1, -1):
        if node < first_leaf:
            owner = node_component[2 * node + 1]
            if owner != node_component[2 * node + 2]:
                owner = _MIXED
        else:
            owner = component[tree.starts[node]]
            for i in range(tree.starts[node] + 1, tree.ends[node]):
                if component[i] != owner:
                    owner = _MIXED
                    break
        node_component[node] = owner


@inlined
def _box_bound(boxes: Floats, node: int, query: Floats) -> float:
    """Return the squared distance from ``query`` to its clipped image in the box of ``node``."""
    total = 0.0
    for d in range(len(query)):
        gap = max(max(boxes[node, 0, d] - query[d], query[d] - boxes[node, 1, d]), 0.0)
        total += gap * gap
    return total


@kernel
def _find_best_pairs(
    first_home: int,
    last_home: int,
    tree: _KdTree,
    component: Ints,
    node_component: Ints,
    floor: _Pairs,
    best: _Pairs,
) -> None:
    """Let the points of the leaves from ``first_home`` up to ``last_home`` (excluded) search.

    Once all leaves have had their turn, ``best`` holds the best pair that leaves each component.
    ``floor`` holds for every point a pair such that no pair from this point out of its component
    comes before it. The floor stays true as components grow, so a point whose floor is not below
    its component's best need not search. A search that ends moves the floor to that best.
    """
    starts, ends, boxes, smallest_id, columns, ids = tree
    n_points, n_dimensions = len(ids), boxes.shape[2]
    first_leaf = len(starts) // 2
    query, squares = np.empty(n_dimensions), np.empty(LEAF_SIZE)
    stack_node, stack_bound = np.empty(64, dtype=np.int64), np.empty(64)
    for home in range(first_home, last_home):
        for i in range(starts[home], ends[home]):
            own, own_id = component[i], ids[i]
            square, key = best.squares[own], best.keys[own]
            lowest = floor.squares[i]
            if lowest > square or (lowest == square and floor.keys[i] >= key):
                continue
            query[:] = columns[:, i]
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
                        _leaf_squares(columns, start, end, query, squares)
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
            floor.squares[i], floor.keys[i] = square, key
            if partner >= 0:
                best.squares[own], best.keys[own] = square, key
                _improve(best, component[partner], square, key)


@kernel
def _leaf_squares(columns: Floats, start: int, end: int, query: Floats, squares: Floats) -> None:
    """Write the squared distances from ``query`` to the points of a leaf."""
    squares = squares[: end - start]
    squares[:] = 0.0
    for d in range(len(query)):
        column = columns[d, start:end]
        coordinate = query[d]
        for j in range(len(squares)):
            difference = coordinate - column[j]
            squares[j] += difference * difference


@kernel
def _merge_components(
    component: Ints, positions: Ints, best: _Pairs, parent: Ints, edges: _Pairs, n_edges: int
) -> int:
    """Take the best pair of every component into the tree and return its new number of edges.

    The order of pairs being strict, the pairs taken form no cycle, except that two components may
    have chosen the same pair: it is taken once.
    """
    n_points = len(component)
    for root in range(n_points):
        if component[root] != root:
            continue
        key = best.keys[root]
        a, b = find(parent, positions[key // n_points]), find(parent, positions[key % n_points])
        if a != b:
            union(parent, a, b)
            edges.squares[n_edges], edges.keys[n_edges] = best.squares[root], key
            n_edges += 1
    for i in range(n_points):  # a parent never lies behind its child, so one sweep flattens all
        parent[i] = parent[parent[i]]
        component[i] = parent[i]
    return n_edges
