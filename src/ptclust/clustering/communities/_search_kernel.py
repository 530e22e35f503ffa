"""Search for the partition with the most affinity within clusters, beyond what masses make of it.

The value of a partition is the sum of the affinities of all edges within clusters, less the
product of the masses of every *pair* of nodes within, joined or not: modularity, if masses are the
weights at the nodes (Newman 2006). Without masses only edges count. Nodes move to the cluster in
which they gain most, then clusters do, as nodes of a smaller graph, and so on (Blondel et al.
2008); only nodes whose neighbours have moved are looked at again (Traag et al. 2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust._components import Adjacency, number_by_first_appearance, unsigned
from ptclust._kernel import kernel

if TYPE_CHECKING:
    from ptclust._types import Array, Floats, Ints

#: A gain below this part of all affinities is rounding.
ROUNDING = 1e-12
#: The sum of affinities to a cluster that has not been met.
NONE = -np.inf
ONE = np.uint64(1)
#: How often a node is looked at, at most, on average over all nodes.
LOOKS = 60
#: Turns from nodes to clusters of clusters; each starts where the last ended.
TURNS = 3
#: Clusters of fewer nodes are none: one busy node is not.
SMALLEST = 3


@kernel
def at_places(values: Array, edges: Array) -> Array:
    """Do what ``values[edges]`` does, which makes wide copies of narrow indices."""
    placed = np.empty(len(edges), values.dtype)
    for place in range(len(edges)):
        placed[place] = values[edges[place]]
    return placed


@kernel
def move(
    indptr: Ints,
    indices: Array,
    data: Array,
    mass: Floats,
    labels: Ints,
    order: Array,
    price: float,
) -> int:
    """Move nodes to the cluster in which they gain most until none gains; return how many moved.

    ``labels``, below the number of nodes, are changed in place. Nodes are looked at in ``order``
    at first, and then as their neighbours move.
    """
    n_nodes = len(labels)
    heavy, size = np.zeros(n_nodes), np.zeros(n_nodes, np.int64)
    for member in range(n_nodes):
        heavy[labels[member]] += mass[member]
        size[labels[member]] += 1
    total = 0.0
    for affinity in data:
        total += abs(affinity)
    empty, n_empty = np.empty(n_nodes, labels.dtype), 0
    for label in range(n_nodes):
        if size[label] == 0:
            empty[n_empty] = label
            n_empty += 1
    least = ROUNDING * total
    sums, gathered = np.full(n_nodes, NONE), np.empty(n_nodes, labels.dtype)
    is_due = np.ones(n_nodes, np.bool_)
    queue, first, waiting = order.copy(), 0, n_nodes
    n_moved, n_looks = 0, 0
    while waiting > 0 and n_looks < LOOKS * n_nodes:
        node = np.uint64(queue[first])
        first = first + 1 if first + 1 < n_nodes else 0
        waiting -= 1
        n_looks += 1
        is_due[node] = False
        # Gather the clusters at the node, its own first, and the affinities to each.
        own = labels[node]
        gathered[0], sums[own], n_gathered = own, 0.0, 1
        for place in range(indptr[node], indptr[node + ONE]):
            label = labels[indices[place]]
            so_far = sums[label]
            if so_far == NONE:
                gathered[n_gathered], so_far = label, 0.0
                n_gathered += 1
            sums[label] = so_far + data[place]
        # Choose the best: it has to gain. A cluster of its own costs the price.
        best_label = own
        best = least - price
        if size[own] > 1:
            best = sums[own] - mass[node] * (heavy[own] - mass[node]) + least
        for i in range(1, n_gathered):
            label = gathered[i]
            value = sums[label]
            sums[label] = NONE
            if value > best:  # masses only take off
                value -= mass[node] * heavy[label]
                if value > best:
                    best, best_label = value, label
        sums[own] = NONE
        if best < -price and size[own] > 1:
            n_empty -= 1
            best_label = empty[n_empty]
        if best_label == own:
            continue
        # Move, and look at the neighbours that are not with it again.
        heavy[own] -= mass[node]
        size[own] -= 1
        if size[own] == 0:
            heavy[own], empty[n_empty] = 0.0, own
            n_empty += 1
        heavy[best_label] += mass[node]
        size[best_label] += 1
        labels[node] = best_label
        n_moved += 1
        for place in range(indptr[node], indptr[node + ONE]):
            other = indices[place]
            if not is_due[other] and labels[other] != best_label:
                is_due[other] = True
                last = first + waiting
                queue[last - n_nodes if last >= n_nodes else last] = other
                waiting += 1
    return n_moved


@kernel
def aggregate(
    indptr: Ints, indices: Array, data: Array, mass: Floats, labels: Ints, n_clusters: int
) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the graph whose nodes are the clusters 0, 1, ..., without what lies within them."""
    n_nodes = len(labels)
    starts, members = np.zeros(n_clusters + 1, np.int64), np.empty(n_nodes, np.int64)
    heavy = np.zeros(n_clusters)
    for node in range(n_nodes):
        starts[labels[node] + 1] += 1
        heavy[labels[node]] += mass[node]
    for label in range(n_clusters):
        starts[label + 1] += starts[label]
    place_of = starts[:-1].copy()
    for node in range(n_nodes):
        members[place_of[labels[node]]] = node
        place_of[labels[node]] += 1
    sums = np.full(n_clusters, NONE)
    new_indptr = np.zeros(n_clusters + 1, indptr.dtype)
    new_indices = np.empty(len(indices), indices.dtype)
    new_data = np.empty(len(indices), data.dtype)
    count = 0
    for label in range(n_clusters):
        begin = count
        for i in range(starts[label], starts[label + 1]):
            node = members[i]
            for place in range(indptr[node], indptr[node + 1]):
                other = labels[indices[place]]
                if other == label:
                    continue
                so_far = sums[other]
                if so_far == NONE:
                    new_indices[count], so_far = other, 0.0
                    count += 1
                sums[other] = so_far + data[place]
        for i in range(begin, count):
            new_data[i], sums[new_indices[i]] = sums[new_indices[i]], NONE
        new_indptr[label + 1] = count
    return new_indptr, new_indices[:count].copy(), new_data[:count].copy(), heavy


@kernel
def search(
    indptr: Ints,
    indices: Array,
    data: Array,
    mass: Floats,
    order: Array,
    labels: Ints,
    price: float,
    turns: int,
) -> Ints:
    """Return a partition that no move of a node or a cluster improves, if there are turns enough.

    Its clusters are numbered.
    """
    labels = labels.copy()
    for turn in range(turns):
        n_moved = move(indptr, indices, data, mass, labels, order, price)
        if turn > 0 and n_moved == 0:
            break
        n_clusters = number_by_first_appearance(labels, np.full(len(labels), -1, np.int64))
        on = aggregate(indptr, indices, data, mass, labels, n_clusters)
        while True:
            upper = np.arange(n_clusters).astype(labels.dtype)
            n_upper = move(on[0], on[1], on[2], on[3], upper, upper.copy(), price)
            if n_upper == 0:
                break
            n_clusters = number_by_first_appearance(upper, np.full(len(upper), -1, np.int64))
            for node in range(len(labels)):
                labels[node] = upper[labels[node]]
            on = aggregate(on[0], on[1], on[2], on[3], upper, n_clusters)
    return labels


@kernel
def join_small(indptr: Ints, indices: Array, data: Array, mass: Floats, labels: Ints) -> Ints:
    """Return the partition in which nodes of tiny clusters are in a larger one next to them.

    That is the one in which they gain most, or lose least; who has none stays.
    """
    n_nodes = len(labels)
    size, heavy = np.zeros(n_nodes, np.int64), np.zeros(n_nodes)
    for node in range(n_nodes):
        size[labels[node]] += 1
        heavy[labels[node]] += mass[node]
    joined, sums = labels.copy(), np.zeros(n_nodes)
    for node in range(n_nodes):
        if size[labels[node]] >= SMALLEST:
            continue
        for place in range(indptr[node], indptr[node + 1]):
            sums[labels[indices[place]]] += data[place]
        best = -np.inf
        for place in range(indptr[node], indptr[node + 1]):
            label = labels[indices[place]]
            if size[label] >= SMALLEST:
                value = sums[label] - mass[node] * heavy[label]
                if value > best:
                    best, joined[node] = value, label
        for place in range(indptr[node], indptr[node + 1]):
            sums[labels[indices[place]]] = 0.0
    number_by_first_appearance(joined, np.full(n_nodes, -1, np.int64))
    return joined


def search_communities(
    near: Adjacency,
    data: Array,
    mass: Floats,
    order: Array,
    start: Ints | None = None,
    price: float = 0.0,
    turns: int = TURNS,
) -> Ints:
    """Search from single nodes, or from a partition; every cluster costs the price.

    ``data`` are the affinities at the places of the adjacency. Without turns the clusters of the
    start move as if they were nodes, and nodes do not.
    """
    first = np.arange(len(mass)) if start is None else start
    indptr, indices = map(unsigned, near[:2])
    labels, order = (each.astype(indices.dtype) for each in (first, order))  # small ones are nearer
    if turns > 0:
        return search(indptr, indices, data, mass, order, labels, price, turns).astype(np.int64)
    n_clusters = number_by_first_appearance(labels, np.full(len(labels), -1, np.int64))
    upper = aggregate(indptr, indices, data, mass, labels, n_clusters)
    each = np.arange(n_clusters, dtype=indices.dtype)
    joined: Ints = search(*upper, each, each, price, TURNS).astype(np.int64)[labels]
    return joined


def join_small_clusters(near: Adjacency, data: Array, mass: Floats, labels: Ints) -> Ints:
    """Do what ``join_small`` does; labels are numbered."""
    return join_small(near.indptr, near.neighbours, data, mass, labels)
