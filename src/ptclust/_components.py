"""Kernels about labels and components: union-find, numbering by first appearance, adjacency."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ptclust._kernel import inlined, kernel
from ptclust._types import Array, Ints


@inlined
def find(parent: Array, node: int) -> int:
    """Return the root of ``node``, halving the path on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@inlined
def union(parent: Array, a: int, b: int) -> None:
    """Join the components of the roots ``a`` and ``b``: the larger index below the smaller.

    That is random enough for shallow trees, needs no rank array, and leaves every parent at most
    its child, so that one ascending sweep flattens all paths.
    """
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


@inlined
def join(parent: Array, a: int, b: int) -> bool:
    """Join the components of two nodes; return whether they were two.

    Most edges join what is connected below one parent, or hang up a node that has been its own root
    so far. No root need be found for them: the root of a node is never above it.
    """
    joins: bool = parent[np.uint64(a)] != parent[np.uint64(b)]
    if joins:
        if a < b and parent[b] == b:
            parent[b] = parent[a]
        else:
            root, other = find(parent, a), find(parent, b)
            joins = root != other
            if joins:
                union(parent, root, other)
    return joins


@inlined
def number_roots(parent: Array) -> int:
    """Number the components of a union-find in place, by first appearance; return how many."""
    count = 0
    for node in range(len(parent)):
        if parent[node] == node:
            parent[node] = count
            count += 1
        else:
            parent[node] = parent[parent[node]]
    return count


@inlined
def number_by_first_appearance(codes: Array, first: Any, count: Any, new_code: Ints) -> int:
    """Renumber so many codes in place as 0, 1, 2, ... in order of first appearance.

    They are below ``count``, and negative ones stay. ``new_code`` has a place for every code, and
    on return maps old codes to new ones. Returns how many distinct codes there are.
    """
    for code in range(count):
        new_code[code] = -1
    n_codes = 0
    for i in range(first, first + count):
        code = codes[i]
        if code >= 0:
            if new_code[code] < 0:
                new_code[code] = n_codes
                n_codes += 1
            codes[i] = new_code[code]
    return n_codes


@kernel
def _join_within(sources: Array, targets: Array, labels: Ints, parent: Array) -> int:
    """Turn ``parent``, an ``arange``, into the connected pieces of clusters; return how many."""
    n_components = len(parent)
    for edge in range(len(sources)):
        a, b = sources[edge], targets[edge]
        if labels[a] == labels[b] and join(parent, a, b):
            n_components -= 1
            if n_components == 1:
                break
    return number_roots(parent)


def label_components(sources: Array, targets: Array, parent: Array) -> int:
    """Turn ``parent``, an ``arange``, into components by first appearance; return how many."""
    return _join_within(sources, targets, np.zeros(len(parent), np.int64), parent)


def connected_pieces(sources: Array, targets: Array, labels: Ints) -> Ints:
    """Return the connected pieces of all clusters, numbered by first appearance."""
    parent = np.arange(len(labels), dtype=sources.dtype)
    _join_within(sources, targets, labels, parent)
    return parent.astype(np.int64)


class Adjacency(NamedTuple):
    """The edges at every node; those at node v have the places indptr[v] to indptr[v + 1]."""

    indptr: Ints
    neighbours: Array
    edges: Array


def unsigned(indices: Array) -> Array:
    """Return the same indices, none of them negative, in a type by which kernels know that.

    They need not ask then, for every one, whether it counts from the end.
    """
    return indices.view(f"u{indices.dtype.itemsize}")


def adjacency(sources: Array, targets: Array, n_nodes: int) -> Adjacency:
    """Return the neighbours of every node and the edges to them, in the order of the edges."""
    size = 2 * len(sources)
    near = Adjacency(
        np.zeros(n_nodes + 1, np.int64),
        np.empty(size, sources.dtype),
        np.empty(size, np.int32 if size <= np.iinfo(np.int32).max else np.int64),
    )
    fill_adjacency(sources, targets, *near)
    return near


@kernel
def fill_adjacency(
    sources: Array, targets: Array, indptr: Ints, neighbours: Array, edges: Array
) -> None:
    """Write an adjacency into its arrays; ``indptr`` is zero on entry."""
    for edge in range(len(sources)):
        indptr[sources[edge]] += 1
        indptr[targets[edge]] += 1
    for node in range(1, len(indptr)):
        indptr[node] += indptr[node - 1]
    # From the ends of all lists to their beginnings.
    for edge in range(len(sources) - 1, -1, -1):
        a, b = sources[edge], targets[edge]
        indptr[b] -= 1
        neighbours[indptr[b]], edges[indptr[b]] = a, edge
        indptr[a] -= 1
        neighbours[indptr[a]], edges[indptr[a]] = b, edge
