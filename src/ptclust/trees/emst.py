"""The exact minimum spanning tree of points under the Euclidean distance, without the n^2 graph.

Boruvka's algorithm, each component finding its nearest neighbour through a kd-tree (Bentley and
Friedman 1978; March, Ram and Gray 2010).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.errors import InputError
from ptclust.graph import Topology
from ptclust.trees import _emst_kernel as kernels
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["euclidean_spanning_edges", "euclidean_spanning_tree"]

#: Leaves that search in one call of a kernel, after which an interrupt is heard.
_LEAVES_A_CALL = 1 << 11


def euclidean_spanning_tree(points: NDArray[np.float64]) -> Tree:
    """Return the minimum spanning tree of ``points`` under the Euclidean distance.

    It equals the minimum spanning tree of ``Graph.from_points(points)``, edge ids included, but needs only memory in
    proportion to the points.

    Examples
    --------
    >>> tree = euclidean_spanning_tree(np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 1.0]]))
    >>> tree.weights
    array([5., 1.])
    """
    sources, targets, weights, pair_ids = euclidean_spanning_edges(points)
    return Tree(Topology(sources, targets, n_nodes=len(points)), weights, pair_ids)


def euclidean_spanning_edges(
    points: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the edges of the Euclidean minimum spanning tree of ``points``.

    Pairs of points are compared by squared distance (added up over the dimensions from first to
    last), then by smaller index, then by larger index. That order is strict, so the tree is unique:
    it is the one Kruskal's algorithm finds on the complete graph with its edges in condensed order.

    Parameters
    ----------
    points : array of shape (n_points, n_dimensions)
        Finite coordinates.

    Returns
    -------
    sources, targets : arrays of n_points - 1 indices
        The ends of each edge, ``sources < targets``.
    weights : array of n_points - 1 distances
    pair_ids : array of n_points - 1 integers, ascending
        The index of each pair in the condensed distance matrix of ``scipy.spatial.distance.pdist``.

    Raises
    ------
    InputError
        If ``points`` is not a table with at least one column, or a coordinate is not finite, or the
        points lie so far apart that squared distances overflow.

    Notes
    -----
    Memory is linear in the number of coordinates. Time is near n log n in few dimensions; in many,
    as for every kd-tree, it approaches n^2, though never the memory. Squared distances that
    underflow (points closer than about 1e-160) count as equal.

    References
    ----------
    .. [1] J. L. Bentley and J. H. Friedman. Fast algorithms for constructing minimal spanning trees
       in coordinate spaces. IEEE Transactions on Computers, 1978.
    .. [2] W. B. March, P. Ram and A. G. Gray. Fast Euclidean minimum spanning tree: algorithm,
       analysis, and applications. KDD 2010.

    Examples
    --------
    >>> import numpy as np
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


def _check_points(points: NDArray[np.float64]) -> None:
    if points.ndim != 2 or points.shape[1] == 0:
        raise InputError(
            f"points must be a table with one row a point and at least one column, "
            f"but its shape is {points.shape}; reshape it to (n_points, n_dimensions)"
        )
    finite = np.isfinite(points).all(axis=1)
    if not finite.all():
        raise InputError(
            f"{np.count_nonzero(~finite)} of {len(points)} points have a coordinate that is not a "
            f"finite number, the first in row {np.argmin(finite)}; remove or impute them"
        )
    if len(points):
        with np.errstate(over="ignore"):
            diagonal = np.square(points.max(axis=0) - points.min(axis=0)).sum()
        if not np.isfinite(diagonal):
            raise InputError(
                "points lie so far apart that their squared distances overflow; "
                "divide all coordinates by a common factor"
            )


def _boruvka(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return squared length and key (smaller index * n + larger index) of the tree's edges."""
    n_points, n_dimensions = points.shape
    n_leaves = 1
    while n_leaves * kernels.LEAF_SIZE < n_points:
        n_leaves *= 2
    n_nodes = 2 * n_leaves - 1

    ids = np.arange(n_points)
    starts, ends, smallest_id = np.empty((3, n_nodes), dtype=np.int64)
    boxes = np.empty((n_nodes, 2, n_dimensions))
    blocks = np.empty(points.size)
    rows = np.array(points, order="C")
    kernels.build_tree(rows, ids, starts, ends, boxes, smallest_id, blocks)
    del rows
    positions = np.empty_like(ids)
    positions[ids] = np.arange(n_points)

    component = np.arange(n_points)
    parent = np.arange(n_points)
    node_component = np.empty(n_nodes, dtype=np.int64)
    floor_square, floor_key = np.full(n_points, -1.0), np.full(n_points, -1)
    best_square, best_key = np.empty(n_points), np.empty(n_points, dtype=np.int64)
    tree_square, tree_key = np.empty(n_points - 1), np.empty(n_points - 1, dtype=np.int64)
    n_tree = 0
    while n_tree < n_points - 1:
        kernels.seed_components(
            component, positions, floor_square, floor_key, best_square, best_key
        )
        kernels.label_nodes(starts, ends, component, node_component)
        for home in range(n_leaves - 1, n_nodes, _LEAVES_A_CALL):
            kernels.find_best_pairs(
                home,
                min(home + _LEAVES_A_CALL, n_nodes),
                starts,
                ends,
                boxes,
                smallest_id,
                blocks,
                ids,
                component,
                node_component,
                floor_square,
                floor_key,
                best_square,
                best_key,
            )
        n_tree = kernels.merge_components(
            component, positions, best_square, best_key, parent, tree_square, tree_key, n_tree
        )
    return tree_square, tree_key
