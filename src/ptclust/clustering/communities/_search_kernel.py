"""Search for the partition with the most affinity within clusters, beyond what masses make of it.

The value of a partition is the sum of the affinities of all edges within clusters, less the
product of the masses of every *pair* of nodes within, joined or not: modularity, if masses are the
weights at the nodes (Newman 2006). Without masses only edges count. Nodes move to the cluster in
which they gain most, then clusters do, as nodes of a smaller graph, and so on (Blondel et al.
2008); only nodes whose neighbours have moved are looked at again (Traag et al. 2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptclust._components import Adjacency, number_by_first_appearance, unsigned
from ptclust._kernel import inlined, kernel

if TYPE_CHECKING:
    from ptclust._types import Array, Floats, Ints

#: A gain below this part of all affinities is rounding.
ROUNDING = 1e-12
#: The sum of affinities to a cluster that has not been met.
NONE = -np.inf
ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
#: How often a node is looked at, at most, on average over all nodes.
LOOKS = np.uint64(60)
#: Turns from nodes to clusters of clusters; each starts where the last ended.
TURNS = 3
#: Clusters of fewer nodes are none: one busy node is not.
SMALLEST = 3


@kernel
def at_places(values: Array, edges: Array, placed: Array) -> None:
    """Do what ``placed[:] = values[edges]`` does, which makes wide copies of narrow indices."""
    for place in range(len(edges)):
        placed[place] = values[edges[place]]


class Graphs(NamedTuple):
    """The nodes, the affinities at them in CSR order, their masses and their labels.

    Behind them is space for two graphs of the same size, whose nodes are clusters. Nodes are
    counted from the first one of their graph.
    """

    indptr: Array
    indices: Array
    data: Floats
    mass: Floats
    labels: Array


class Work(NamedTuple):
    """Space for what a search computes of every node or cluster."""

    heavy: Floats
    sums: Floats
    """NONE whenever it is not in use."""
    size: Ints
    codes: Ints
    empty: Array
    gathered: Array
    queue: Array
    is_due: Array


@inlined
def move(
    graphs: Graphs, first_node: Any, n_nodes: Any, order: Array, price: float, work: Work
) -> int:
    """Move nodes to the cluster in which they gain most until none gains; return how many moved.

    Nodes are looked at in ``order`` at first, clusters in their own, and then as their neighbours
    move.
    """
    indptr, indices, data, mass, labels = graphs
    heavy, sums, size, _, empty, gathered, queue, is_due = work
    for node in range(n_nodes):
        heavy[node], size[node], is_due[node] = 0.0, 0, True
        queue[node] = order[node] if first_node == ZERO else node
    for node in range(first_node, first_node + n_nodes):
        heavy[labels[node]] += mass[node]
        size[labels[node]] += 1
    total = 0.0
    for place in range(indptr[first_node], indptr[first_node + n_nodes]):
        total += abs(data[place])
    n_empty = 0
    for label in range(n_nodes):
        if size[label] == 0:
            empty[n_empty] = label
            n_empty += 1
    least = ROUNDING * total
    first, waiting = ZERO, n_nodes
    n_moved = 0
    n_looks: Any = ZERO
    while waiting > ZERO and n_looks < LOOKS * n_nodes:
        node = first_node + queue[first]
        is_due[queue[first]] = False
        first = first + ONE if first + ONE < n_nodes else ZERO
        waiting -= ONE
        n_looks += ONE
        # Gather the clusters at the node, its own first, and the affinities to each.
        own = labels[node]
        gathered[0], sums[own], n_gathered = own, 0.0, ONE
        for place in range(indptr[node], indptr[node + ONE]):
            label = labels[first_node + indices[place]]
            so_far = sums[label]
            if so_far == NONE:
                gathered[n_gathered], so_far = label, 0.0
                n_gathered += ONE
            sums[label] = so_far + data[place]
        # Choose the best: it has to gain. A cluster of its own costs the price.
        best_label = own
        best = least - price
        if size[own] > 1:
            best = sums[own] - mass[node] * (heavy[own] - mass[node]) + least
        for i in range(ONE, n_gathered):
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
            if not is_due[other] and labels[first_node + other] != best_label:
                is_due[other] = True
                last = first + waiting
                queue[last - n_nodes if last >= n_nodes else last] = other
                waiting += ONE
    return n_moved


@inlined
def aggregate(
    graphs: Graphs,
    first_node: Any,
    n_nodes: Any,
    upper: Any,
    place: Any,
    n_clusters: Any,
    work: Work,
) -> None:
    """Make clusters 0, 1, ... the nodes from ``upper`` on, without what lies within them.

    Each is in a cluster of its own. Affinities are written from ``place`` on.
    """
    indptr, indices, data, mass, labels = graphs
    _, sums, ends, members, _, _, _, _ = work
    for cluster in range(n_clusters):
        ends[cluster], mass[upper + cluster], labels[upper + cluster] = 0, 0.0, cluster
    for node in range(first_node, first_node + n_nodes):
        ends[labels[node]] += 1
        mass[upper + labels[node]] += mass[node]
    start = 0
    for cluster in range(n_clusters):
        start, ends[cluster] = start + ends[cluster], start
    for node in range(first_node, first_node + n_nodes):
        members[ends[labels[node]]] = node
        ends[labels[node]] += 1
    start = 0
    for cluster in range(n_clusters):
        indptr[upper + cluster] = place
        begin = place
        for i in range(start, ends[cluster]):
            member = np.uint64(members[i])
            for near in range(indptr[member], indptr[member + ONE]):
                other = labels[first_node + indices[near]]
                if other == cluster:
                    continue
                so_far = sums[other]
                if so_far == NONE:
                    indices[place], so_far = other, 0.0
                    place += ONE
                sums[other] = so_far + data[near]
        for new in range(begin, place):
            data[new], sums[indices[new]] = sums[indices[new]], NONE
        start = ends[cluster]
    indptr[upper + n_clusters] = place


@kernel
def search(
    graphs: Graphs, n_nodes: Any, n_places: Any, order: Array, price: float, turns: int, work: Work
) -> Any:
    """Move nodes, then clusters as nodes of a smaller graph, and so on, until nothing gains.

    Every turn begins with the nodes. Their labels are numbered in the end; returns how many there
    are. Without turns nothing moves: clusters only become nodes, of the first of the two graphs.
    """
    labels = graphs.labels
    on, n_on, space = ZERO, n_nodes, TWO
    turn = 0
    n_clusters: Any = n_nodes
    while True:
        n_moved = 0
        if turns > 0:
            n_moved = move(graphs, on, n_on, order, price, work)
        if n_moved == 0 and (on > ZERO or turn > 0):
            if on == ZERO or turn + 1 == turns:
                break
            turn, on, n_on = turn + 1, ZERO, n_nodes
            continue
        n_clusters = np.uint64(number_by_first_appearance(labels, on, n_on, work.codes))
        if on > ZERO:
            for node in range(n_nodes):
                labels[node] = labels[on + labels[node]]
        space = TWO if space == ONE else ONE
        upper = space * (n_nodes + ONE)
        aggregate(graphs, on, n_on, upper, space * n_places, n_clusters, work)
        if turns == 0:
            break
        on, n_on = upper, n_clusters
    return n_clusters


@kernel
def join_small(graphs: Graphs, n_nodes: Any, joined: Array, work: Work) -> None:
    """Write into ``joined`` the partition in which nodes of tiny clusters are in one next to them.

    That is the larger one in which they gain most, or lose least; who has none stays.
    """
    indptr, indices, data, mass, labels = graphs
    heavy, sums, size, codes, _, _, _, _ = work
    for node in range(n_nodes):
        heavy[node], size[node], joined[node] = 0.0, 0, labels[node]
    for node in range(n_nodes):
        heavy[labels[node]] += mass[node]
        size[labels[node]] += 1
    for node in range(n_nodes):
        if size[labels[node]] >= SMALLEST:
            continue
        begin, end = indptr[node], indptr[node + ONE]
        for place in range(begin, end):
            sums[labels[indices[place]]] = 0.0
        for place in range(begin, end):
            sums[labels[indices[place]]] += data[place]
        best = -np.inf
        for place in range(begin, end):
            label = labels[indices[place]]
            if size[label] >= SMALLEST:
                value = sums[label] - mass[node] * heavy[label]
                if value > best:
                    best, joined[node] = value, label
    number_by_first_appearance(joined, ZERO, n_nodes, codes)


def _graphs(indptr: Array, indices: Array, data: Array, mass: Floats, labels: Array) -> Graphs:
    """Return a graph with space behind it."""
    n_nodes, n_places = len(mass), len(data)
    indptr, indices = unsigned(indptr), unsigned(indices)
    graphs = Graphs(  # only pages that are written cost memory
        np.empty(3 * (n_nodes + 1), indptr.dtype),
        np.empty(3 * n_places, indices.dtype),
        np.empty(3 * n_places),
        np.empty(3 * (n_nodes + 1)),
        np.empty(3 * (n_nodes + 1), indices.dtype),
    )
    for space, values in zip(graphs, (indptr, indices, data, mass, labels), strict=True):
        space[: len(values)] = values
    return graphs


def search_communities(
    near: Adjacency,
    data: Array,
    mass: Floats,
    order: Array,
    start: Ints | None = None,
    price: float = 0.0,
    turns: int = TURNS,
    *,
    join: bool = False,
) -> Ints:
    """Search from single nodes, or from a partition; every cluster costs the price.

    ``data`` are the affinities at the places of the adjacency. Without turns the clusters of the
    start move as if they were nodes, and nodes do not. With ``join`` tiny clusters join others.
    """
    n_nodes, n_places = len(mass), len(data)
    sizes = np.uint64(n_nodes), np.uint64(n_places)
    start = np.arange(n_nodes) if start is None else start
    graphs = _graphs(*near[:2], data, mass, start)
    labels, dtype = graphs.labels[:n_nodes], graphs.labels.dtype
    order = order.astype(dtype)  # small indices are nearer
    work = Work(
        heavy=np.empty(n_nodes),
        sums=np.full(n_nodes, NONE),
        size=np.empty(n_nodes, np.int64),
        codes=np.empty(n_nodes, np.int64),
        empty=np.empty(n_nodes, dtype),
        gathered=np.empty(n_nodes, dtype),
        queue=np.empty(n_nodes, dtype),
        is_due=np.empty(n_nodes, np.bool_),
    )
    n_clusters = int(search(graphs, *sizes, order, price, turns, work))
    if turns == 0:
        first = n_nodes + 1
        indptr = graphs.indptr[first : first + n_clusters + 1] - sizes[1]
        places = slice(n_places, n_places + int(indptr[-1]))
        upper = _graphs(
            indptr,
            graphs.indices[places],
            graphs.data[places],
            graphs.mass[first : first + n_clusters],
            each := np.arange(n_clusters, dtype=dtype),
        )
        sizes = np.uint64(n_clusters), indptr[-1]
        search(upper, *sizes, each, price, TURNS, work)
        labels[:] = upper.labels[labels]
    if not join:
        return labels.astype(np.int64)
    joined = np.empty(n_nodes, dtype)
    join_small(graphs, np.uint64(n_nodes), joined, work)
    return joined.astype(np.int64)
