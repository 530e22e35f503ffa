"""Where nodes are drawn: at coordinates that are given, along a tree, or packed by cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ptclust._markup import quoted
from ptclust._types import Array, Floats, Ints
from ptclust.drawing.style import Groups
from ptclust.errors import InputError

_CUT, _BETWEEN_TREES = 3.0, 6.0  # times as long as other edges
_GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))
_GAP, _TO_ALL = 0.6, 0.02  # between discs; pull of all others, which keeps them together


def as_places(coordinates: Any, names: Array) -> Floats:
    """Return the place of every node; InputError says which has none.

    ``coordinates`` has a pair of numbers for every node, in node order or by name.

    >>> as_places({"b": (1, 2), "a": (3, 4)}, np.array(["a", "b"])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    if isinstance(coordinates, Mapping):
        lacking = next((name for name in names.tolist() if name not in coordinates), None)
        if lacking is not None:
            raise InputError(
                f"coordinates has no place for node {quoted(str(lacking))}; give it one"
            )
        coordinates = [coordinates[name] for name in names.tolist()]
    try:
        places = np.array(coordinates, dtype=np.float64).reshape(len(coordinates), -1)
    except (TypeError, ValueError):
        raise InputError("coordinates must be pairs of numbers, one per node") from None
    if places.shape != (len(names), 2) and (len(names) or places.size):
        raise InputError(
            f"coordinates must be {len(names)} pairs of numbers, one per node, not an array of "
            f"shape {places.shape}"
        )
    bad = ~np.isfinite(places).all(axis=1)
    if bad.any():
        raise InputError(
            f"the coordinates of node {quoted(str(names[bad.argmax()]))} are not finite"
        )
    return places.reshape(-1, 2)


class Packing(NamedTuple):
    """A disc for every group of nodes, and the place of every node within its disc."""

    places: Floats
    centres: Floats
    radii: Floats


def packed(partitions: Sequence[Ints], sources: Array, targets: Array) -> Packing:
    """Return discs that do not overlap, as large as their groups; linked groups are drawn together.

    Partitions are nested, coarse to fine. The finest in which most nodes are not alone is packed
    into discs, these into discs of the next coarser one, and so on: every cluster is in one piece.
    The places show who is with whom and nothing else.
    """
    useful = [
        place
        for place, labels in enumerate(partitions)
        if 2 * np.count_nonzero(np.bincount(labels + 1)[1:] == 1) <= len(labels)
    ]
    nested = [np.zeros(len(partitions[0]), np.int64)]
    for labels in partitions[: useful[-1] + 1 if useful else 1]:
        both = np.stack([nested[-1], Groups.of(labels).of_node])  # groups of many clusters, too
        nested.append(np.unique(both, axis=1, return_inverse=True)[1].reshape(-1))
    finest, offsets = _discs(nested[-1])
    places, radii = offsets, finest
    for outer, inner in reversed(list(pairwise(nested))):
        links = _links(inner, sources, targets).tocsr()
        outer_of = outer[np.unique(inner, return_index=True)[1]]
        centres, around = np.zeros((len(radii), 2)), np.zeros(int(outer.max(initial=-1)) + 1)
        for disc in range(len(around)):
            parts = np.flatnonzero(outer_of == disc)
            found, reach = _spread(links[parts][:, parts].toarray(), radii[parts]), radii[parts]
            low, high = (found - reach[:, None]).min(axis=0), (found + reach[:, None]).max(axis=0)
            centres[parts] = found - (low + high) / 2
            around[disc] = np.max(np.linalg.norm(centres[parts], axis=1) + reach)
        places, radii = places + centres[inner], around
    firsts = np.unique(nested[-1], return_index=True)[1]
    return Packing(places, (places - offsets)[firsts], finest)


def _discs(of_node: Ints) -> tuple[Floats, Floats]:
    """Return the radius of the disc of every group, and where nodes are from its centre."""
    sizes = np.bincount(of_node)
    radii = np.sqrt(sizes) + 0.7
    order = np.argsort(of_node, kind="stable")
    rank = np.empty(len(of_node), np.int64)
    rank[order] = np.arange(len(of_node)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    share = np.sqrt((rank + 0.5) / np.maximum(sizes[of_node], 1))
    return radii, (share * (radii[of_node] - 0.7))[:, None] * _sunflower(rank)


def _links(of_node: Ints, sources: Array, targets: Array) -> Any:
    """Return how many edges join two groups, as a share of the most, as a sparse matrix."""
    from scipy.sparse import coo_array

    a, b = of_node[sources], of_node[targets]
    count, apart = int(of_node.max(initial=-1)) + 1, a != b
    ends = np.concatenate([a[apart], b[apart]]), np.concatenate([b[apart], a[apart]])
    links = coo_array((np.ones(len(ends[0])), ends), shape=(count, count))
    links.sum_duplicates()
    links.data /= links.data.max(initial=1.0)
    return links


def spacing(places: Floats) -> float:
    """Return how far most nodes are from the next one, infinite for a node alone.

    >>> spacing(np.array([[0.0, 0.0], [0.0, 2.0], [5.0, 0.0]]))
    2.0
    """
    from scipy.spatial import KDTree

    if len(places) < 2:
        return np.inf
    return float(np.median(KDTree(places).query(places, k=2)[0][:, 1]))


def _spread(links: Floats, radii: Floats) -> Floats:
    """Return the centres of discs: the largest first, each free of overlap and near its links."""
    centres, placed = np.zeros((len(radii), 2)), np.empty(0, np.int64)
    for disc in np.argsort(-radii, kind="stable").tolist():
        wanted = radii[placed] + radii[disc] + _GAP
        pull = radii[placed] * (links[disc, placed] + _TO_ALL)
        aim = pull @ centres[placed] / max(pull.sum(), _TO_ALL)
        first, count, free = 0, 32, np.zeros(1, bool)
        while not free.any():
            steps = np.arange(first, first + count)
            tried = aim + 0.8 * radii[disc] * np.sqrt(steps)[:, None] * _sunflower(steps)
            gaps = np.linalg.norm(tried[:, None, :] - centres[placed][None, :, :], axis=2)
            free = np.all(gaps >= wanted, axis=1)
            first, count = first + count, min(2 * count, 4096)
        centres[disc] = tried[int(free.argmax())]
        placed = np.append(placed, disc)
    return centres


def _sunflower(steps: Ints) -> Floats:
    """Return directions that leave no gap: each a golden angle further."""
    angle = steps * _GOLDEN_ANGLE
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def along_tree(n_nodes: int, sources: Array, targets: Array, labels: Ints) -> Floats:
    """Return places such that no two edges of a tree cross; edges between clusters are long.

    Every subtree gets a fan as wide as its share of leaves (Felsenstein's equal-angle layout), in
    linear time. The trees of a forest hang on one invisible root, node ``n_nodes``.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    def adjacency(a: Array, b: Array) -> Any:
        ends = a.astype(np.int32), b.astype(np.int32)  # scipy before 1.15 wants these
        return coo_array((np.ones(len(a), np.int8), ends), shape=(n_nodes + 1,) * 2)

    _, tree = connected_components(adjacency(sources, targets), directed=False)
    firsts = np.unique(tree[:-1], return_index=True)[1]
    a = np.concatenate([sources, np.full(len(firsts), n_nodes)])
    b = np.concatenate([targets, firsts])
    is_cut = (labels[sources] != labels[targets]) | (labels[sources] < 0)
    order, parent = breadth_first_order(adjacency(a, b), n_nodes, directed=False)
    length = np.empty(n_nodes + 1)  # of the edge above every node
    lengths = np.where(is_cut, _CUT, 1.0), np.full(len(firsts), _BETWEEN_TREES)
    length[np.where(parent[b] == a, b, a)] = np.concatenate(lengths)
    leaves = [0.0] * (n_nodes + 1)
    below, up = order[1:].tolist(), parent.tolist()
    for node in reversed(below):
        leaves[node] = max(leaves[node], 1.0)
        leaves[up[node]] += leaves[node]
    places, begin = np.zeros((n_nodes + 1, 2)), [0.0] * (n_nodes + 1)
    for node in below:
        width = 2.0 * np.pi * leaves[node] / leaves[n_nodes]
        angle = begin[up[node]] + width / 2.0
        places[node] = places[up[node]] + length[node] * np.array([np.cos(angle), np.sin(angle)])
        begin[node] = begin[up[node]]
        begin[up[node]] += width
    return places[:n_nodes]
