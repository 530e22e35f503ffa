"""Search for connected clusters with the largest sum of affinities within, less a price for each.

To find the best is NP-hard (correlation clustering). Greedy contraction and moves of nodes and
clusters climb to a local maximum. From there clusters are joined one after the other, even where
that loses: with fewer clusters there is more evidence for each, and nodes that were stuck find
their place. The best partition on the way is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._components import (
    Adjacency,
    fill_adjacency,
    find,
    join,
    number_by_first_appearance,
    number_roots,
)
from ptclust._kernel import inlined, kernel
from ptclust.clustering.contraction._greedy_kernel import contract_greedily

if TYPE_CHECKING:
    from ptclust._types import Array, Bools, Floats, Ints

#: A gain below this, in units of log-likelihood, is rounding.
GAIN = 1e-9
#: Sweeps over the nodes; the search for a partition calls again if that was not enough.
SWEEPS = 50
#: Turns of moving nodes and clusters; each gains, and few suffice.
TURNS = 10
#: Clusters are joined down from at most so many, as the table of pairs grows with the square.
MOST_CLUSTERS = 128
#: Of more clusters than this, a fifth is joined at a time; below, one pair.
FEW_CLUSTERS = 16
#: Joining ends where moves regain less than this part of what it loses.
REGAINED = 0.05
#: A price that no gain outweighs.
UNAFFORDABLE = 1e300


class Search(NamedTuple):
    """What a search looks at: edges, neighbours of every node, affinities, and the price."""

    sources: Ints
    targets: Ints
    indptr: Ints
    indices: Ints  # neighbours
    data: Floats  # affinities to them
    affinity: Floats  # of the edges
    price: float
    is_due: Bools  # a buffer with a place for every node, as shared
    shared: Floats


@kernel
def numbered(labels: Ints) -> tuple[Ints, int]:
    """Return labels 0, 1, 2, ... by first appearance, and how many there are."""
    new, number = np.empty(len(labels), np.int64), np.empty(len(labels), np.int64)
    for node in range(len(labels)):
        new[node], number[node] = labels[node], -1
    return new, number_by_first_appearance(new, number)


@kernel
def connected_pieces(sources: Array, targets: Array, labels: Ints) -> tuple[Ints, int]:
    """Return the connected pieces of all clusters, numbered, and how many there are."""
    parent = np.empty(len(labels), np.int64)
    for node in range(len(labels)):
        parent[node] = node
    for edge in range(len(sources)):
        if labels[sources[edge]] == labels[targets[edge]]:
            join(parent, sources[edge], targets[edge])
    return parent, number_roots(parent)


@kernel
def breadth_first(indptr: Ints, neighbours: Array, start: Ints, found: Ints, number: Ints) -> int:
    """Write the start and the nodes with number 0 nearest to it, till ``found`` is full."""
    for i in range(len(start)):
        found[i] = start[i]
    n_found, next_one = len(start), 0
    while next_one < n_found:
        node = found[next_one]
        next_one += 1
        for place in range(indptr[node], indptr[node + 1]):
            other = neighbours[place]
            if number[other] == 0:
                if n_found == len(found):
                    return n_found
                number[other] = 1
                found[n_found] = other
                n_found += 1
    return n_found


@kernel
def nodes_around(
    indptr: Ints, indices: Array, small: Ints, large: Ints, most: int, number: Ints
) -> Ints:
    """Return the nodes of one cluster that are nearest to another, at most so many.

    ``number`` has a place for every node and is -1 throughout, before and after.
    """
    number[large] = 0
    found = np.empty(most + len(small), np.int64)
    n_found = breadth_first(indptr, indices, small, found, number)
    number[large] = -1
    return found[len(small) : n_found]


@kernel
def agreement_within(sources: Array, targets: Array, affinity: Floats, labels: Ints) -> float:
    """Return the sum of the affinities of all edges within clusters."""
    total = 0.0
    for edge in range(len(sources)):
        if labels[sources[edge]] == labels[targets[edge]]:
            total += affinity[edge]
    return total


def move_nodes(near: Adjacency, affinity: Floats, labels: Ints, price: float) -> int:
    """Move nodes to a neighbour's cluster, or to one of their own, while that gains.

    ``labels``, below the number of nodes, are changed in place. Returns how many moves were made.
    """
    indptr, indices, edges = near
    is_due, shared = np.ones(len(labels), np.bool_), np.empty(len(labels))
    return move_due_nodes(indptr, indices, affinity[edges], labels, price, is_due, shared)


@inlined
def choose(candidates: Ints, n_candidates: int, sums: Floats, is_alone: bool, price: float) -> int:
    """Return the best cluster of those gathered: the first, where the node is, unless it gains.

    -1 is a new cluster, which costs the price; a node that is alone saves it by leaving.
    """
    own: int = candidates[0]
    best, best_label = sums[own] - (price if is_alone else 0.0) + GAIN, own
    if not is_alone and -price > best:
        best, best_label = -price, -1
    for i in range(1, n_candidates):
        if sums[candidates[i]] > best:
            best, best_label = sums[candidates[i]], candidates[i]
    return best_label


@kernel
def move_due_nodes(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    labels: Ints,
    price: float,
    is_due: Bools,
    shared: Floats,
) -> int:
    """Let nodes move that are due; return how many times one did.

    ``indices`` and ``data`` are the neighbours of every node, and the affinities to them. What a
    node shares with its own cluster is kept in ``shared``. A node is due again when a neighbour has
    moved, or, once the others have settled, when it was left alone: nothing else changes what it
    may gain.
    """
    n_nodes = len(labels)
    size, members = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    unused, n_unused = np.empty(n_nodes, np.int64), 0
    candidates, gathered_for = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    sums, left_alone = np.empty(n_nodes, np.float64), np.empty(n_nodes, np.bool_)
    for label in range(n_nodes):
        size[label], members[label], gathered_for[label] = 0, 0, -1
        left_alone[label] = False
    for node in range(n_nodes):
        size[labels[node]] += 1
        members[labels[node]] += node  # their sum: if there is but one, which it is
    for label in range(n_nodes - 1, -1, -1):
        if size[label] == 0:
            unused[n_unused] = label
            n_unused += 1
    is_any_left, n_moved, n_looked_at = False, 0, 0
    for _ in range(SWEEPS):
        before = n_moved
        for node in range(n_nodes):
            if not is_due[node]:
                continue
            is_due[node] = False
            # Gather the clusters at the node, its own first, and the affinities to each.
            own = labels[node]
            candidates[0], gathered_for[own], sums[own] = own, n_looked_at, 0.0
            n_candidates = 1
            for place in range(indptr[node], indptr[node + 1]):
                label = labels[indices[place]]
                if gathered_for[label] != n_looked_at:
                    gathered_for[label], sums[label] = n_looked_at, 0.0
                    candidates[n_candidates] = label
                    n_candidates += 1
                sums[label] += data[place]
            n_looked_at += 1
            is_alone = size[own] == 1
            label = choose(candidates, n_candidates, sums, is_alone, price)
            shared[node] = 0.0 if label < 0 else sums[label]
            if label == own:
                continue
            if label < 0:
                n_unused -= 1
                label = unused[n_unused]
            # The node leaves its cluster.
            size[own] -= 1
            members[own] -= node
            if is_alone:
                unused[n_unused] = own
                n_unused += 1
            elif size[own] == 1:
                left_alone[members[own]] = is_any_left = True
            # The node enters the other.
            size[label] += 1
            members[label] += node
            labels[node] = label
            n_moved += 1
            for place in range(indptr[node], indptr[node + 1]):
                is_due[indices[place]] = True
        if n_moved == before:
            if not is_any_left:
                break
            is_any_left = False
            for node in range(n_nodes):
                is_due[node], left_alone[node] = left_alone[node], False
    for node in range(n_nodes):
        if left_alone[node]:
            is_due[node] = True
    return n_moved


@inlined
def join_down(
    sources: Array, targets: Array, affinity: Floats, labels: Ints, n_clusters: int, target: int
) -> Ints:
    """Join the least clearly separated adjacent clusters until ``target`` or none such are left.

    How clearly is the sum of affinities between, over the root of their number: in units of its
    standard deviation.
    """
    total = np.zeros((n_clusters, n_clusters))
    count = np.zeros((n_clusters, n_clusters))
    for edge in range(len(sources)):
        a, b = labels[sources[edge]], labels[targets[edge]]
        if a != b:
            total[a, b] += affinity[edge]
            total[b, a] += affinity[edge]
            count[a, b] += 1
            count[b, a] += 1
    parent = np.empty(n_clusters, np.int64)
    for a in range(n_clusters):
        parent[a] = a
    for _ in range(n_clusters - target):
        best, keep, gone = -np.inf, -1, -1
        for a in range(n_clusters):
            if parent[a] == a:
                for b in range(a + 1, n_clusters):
                    if parent[b] == b and count[a, b] > 0:
                        clear = total[a, b] / np.sqrt(count[a, b])
                        if clear > best:
                            best, keep, gone = clear, a, b
        if gone < 0:
            break
        parent[gone] = keep
        for other in range(n_clusters):
            total[keep, other] += total[gone, other]
            total[other, keep] = total[keep, other]
            count[keep, other] += count[gone, other]
            count[other, keep] = count[keep, other]
    joined = np.empty(len(labels), np.int64)
    for node in range(len(labels)):
        joined[node] = find(parent, labels[node])
    return joined


@kernel
def between_clusters(
    sources: Array, targets: Array, affinity: Floats, labels: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return the clusters that edges across join, and the affinities of these edges."""
    count = 0
    for edge in range(len(sources)):
        if labels[sources[edge]] != labels[targets[edge]]:
            count += 1
    a, b = np.empty(count, np.int64), np.empty(count, np.int64)
    between, count = np.empty(count, np.float64), 0
    for edge in range(len(sources)):
        if labels[sources[edge]] != labels[targets[edge]]:
            a[count], b[count] = labels[sources[edge]], labels[targets[edge]]
            between[count] = affinity[edge]
            count += 1
    return a, b, between


@inlined
def move_clusters(
    a: Ints, b: Ints, affinity: Floats, labels: Ints, price: float, is_due: Bools, shared: Floats
) -> int:
    """Do what ``move_nodes`` does, for nodes that have no adjacency yet."""
    indptr = np.empty(len(labels) + 1, np.int64)
    for node in range(len(labels)):
        indptr[node], is_due[node] = 0, True
    indptr[len(labels)] = 0
    indices, edges = np.empty(2 * len(a), np.int64), np.empty(2 * len(a), np.int64)
    fill_adjacency(a, b, indptr, indices, edges)
    data = np.empty(2 * len(a), np.float64)
    for place in range(len(data)):
        data[place] = affinity[edges[place]]
    return move_due_nodes(indptr, indices, data, labels, price, is_due, shared)


@inlined
def climb(on: Search, labels: Ints) -> tuple[Ints, float]:
    """Let nodes and clusters move and join until nothing gains; return partition and value."""
    sources, targets, indptr, indices, data, affinity, price, is_due, shared = on
    best, best_value = labels, -np.inf
    for _ in range(TURNS):
        moved = np.empty(len(labels), np.int64)
        for node in range(len(labels)):
            moved[node], is_due[node] = labels[node], True
        move_due_nodes(indptr, indices, data, moved, price, is_due, shared)
        pieces, n_pieces = connected_pieces(sources, targets, moved)
        a, b, between = between_clusters(sources, targets, affinity, pieces)
        top, n_top = contract_greedily(a, b, between, n_pieces, price)
        n_moved = move_clusters(a, b, between, top, price, is_due, shared)
        is_same = n_top == n_pieces == numbered(moved)[1] and n_moved == 0
        for node in range(len(moved)):
            moved[node] = top[pieces[node]]
        labels, n_clusters = connected_pieces(sources, targets, moved)
        value = agreement_within(sources, targets, affinity, labels) - price * n_clusters
        if value <= best_value + GAIN:
            break
        best, best_value = labels, value
        if is_same:
            break  # nothing has changed since the nodes came to rest
    return best, best_value


@inlined
def half_sum(shared: Floats) -> float:
    """Return the sum of all affinities within, from what every node shares with its cluster."""
    total = 0.0
    for node in range(len(shared)):
        total += shared[node]
    return total / 2


@inlined
def walk_down(on: Search, best: Ints, best_value: float) -> tuple[Ints, float]:
    """Join clusters one after the other; return the best partition on the way and its value.

    Nodes that have settled at no price settle elsewhere at this one only if they share less than
    minus the price with their cluster, or a neighbour moves.
    """
    sources, targets, indptr, indices, data, affinity, price, is_due, shared = on
    labels, n_clusters = numbered(best)
    if n_clusters > MOST_CLUSTERS:
        return best, best_value
    agreement = best_value + price * n_clusters
    while n_clusters > 2:
        target = n_clusters - 1 if n_clusters <= FEW_CLUSTERS else n_clusters * 4 // 5
        labels = join_down(sources, targets, affinity, labels, n_clusters, target)
        joined = agreement_within(sources, targets, affinity, labels)
        lost = agreement - joined
        for node in range(len(labels)):
            is_due[node] = True
        move_due_nodes(indptr, indices, data, labels, UNAFFORDABLE, is_due, shared)
        agreement = half_sum(shared)
        tried, n_tried = numbered(labels)
        if n_tried >= n_clusters:
            break
        if lost > price * (n_clusters - n_tried) and agreement - joined < REGAINED * lost:
            break
        n_clusters = n_tried
        for node in range(len(labels)):
            labels[node] = tried[node]
            if shared[node] + GAIN < -price:
                is_due[node] = True
        move_due_nodes(indptr, indices, data, tried, price, is_due, shared)
        tried, n_tried = numbered(tried)
        if half_sum(shared) - price * n_tried <= best_value:
            continue  # its connected pieces are as many clusters, or more
        tried, n_tried = connected_pieces(sources, targets, tried)
        value = agreement_within(sources, targets, affinity, tried) - price * n_tried
        if value > best_value + GAIN:
            best, best_value = tried, value
    return best, best_value


@kernel
def climb_and_walk_down(
    sources: Ints,
    targets: Ints,
    indptr: Ints,
    indices: Ints,
    data: Floats,
    affinity: Floats,
    price: float,
    is_due: Bools,
    shared: Floats,
    start: Ints,
) -> tuple[Ints, float]:
    """Return a partition into connected clusters, numbered by first appearance, and its value.

    To pass a ``Search`` from Python would take much longer.
    """
    on = Search(sources, targets, indptr, indices, data, affinity, price, is_due, shared)
    labels, value = climb(on, start)
    return walk_down(on, labels, value)
