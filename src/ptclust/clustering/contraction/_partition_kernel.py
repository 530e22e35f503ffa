"""Search for connected clusters with the largest sum of affinities within, less a price for each.

To find the best is NP-hard (correlation clustering). Greedy contraction and moves of nodes and
clusters climb to a local maximum. From there clusters are joined one after the other, even where
that loses: with fewer clusters there is more evidence for each, and nodes that were stuck find
their place. The best partition on the way is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._components import Adjacency, adjacency, find, number_by_first_appearance, union
from ptclust._kernel import kernel
from ptclust.clustering.contraction._greedy_kernel import contract_greedily

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
#: A price that no gain outweighs.
UNAFFORDABLE = 1e300


@kernel
def numbered(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return labels 0, 1, 2, ... by first appearance, and how many there are."""
    new = labels.copy()
    count = number_by_first_appearance(new, np.full(len(labels), -1, np.int64))
    return new, count


@kernel
def connected_pieces(
    sources: NDArray[Any], targets: NDArray[Any], labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Return the connected pieces of all clusters, numbered, and how many there are."""
    parent = np.arange(len(labels))
    for edge in range(len(sources)):
        if labels[sources[edge]] == labels[targets[edge]]:
            a, b = find(parent, sources[edge]), find(parent, targets[edge])
            if a != b:
                union(parent, a, b)
    for node in range(len(parent)):
        parent[node] = find(parent, node)
    return numbered(parent)


@kernel
def induced_edges(
    near: Adjacency, members: NDArray[np.int64], number: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges between members, and their ends by place in ``members``.

    ``number`` has a place for every node and is -1 throughout, before and after.
    """
    size = 0
    for i in range(len(members)):
        number[members[i]] = i
        size += near.indptr[members[i] + 1] - near.indptr[members[i]]
    edges, a, b = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for i in range(len(members)):
        for place in range(near.indptr[members[i]], near.indptr[members[i] + 1]):
            other = number[near.neighbours[place]]
            if other > i:
                edges[count], a[count], b[count] = near.edges[place], i, other
                count += 1
    for node in members:
        number[node] = -1
    return edges[:count].copy(), a[:count].copy(), b[:count].copy()


@kernel
def agreement_within(
    sources: NDArray[Any],
    targets: NDArray[Any],
    affinity: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> float:
    """Return the sum of the affinities of all edges within clusters."""
    total = 0.0
    for edge in range(len(sources)):
        if labels[sources[edge]] == labels[targets[edge]]:
            total += affinity[edge]
    return total


@kernel
def move_nodes(
    near: Adjacency, affinity: NDArray[np.float64], labels: NDArray[np.int64], price: float
) -> int:
    """Move nodes to a neighbour's cluster, or to one of their own, while that gains.

    ``labels``, below the number of nodes, are changed in place. Returns how many moves were made.
    """
    is_due, shared = np.ones(len(labels), np.bool_), np.zeros(len(labels))
    return move_due_nodes(near, affinity[near.edges], labels, price, is_due, shared)


@kernel
def gather(
    node: int,
    near: Adjacency,
    data: NDArray[np.float64],
    labels: NDArray[np.int64],
    sums: NDArray[np.float64],
    candidates: NDArray[np.int64],
    is_candidate: NDArray[np.bool_],
) -> int:
    """List the clusters at a node, its own first, and the affinities to each; return how many."""
    indptr, indices = near.indptr, near.neighbours
    own = labels[node]
    candidates[0], is_candidate[own], sums[own] = own, True, 0.0
    n_candidates = 1
    for place in range(indptr[node], indptr[node + 1]):
        label = labels[indices[place]]
        if not is_candidate[label]:
            candidates[n_candidates], is_candidate[label], sums[label] = label, True, 0.0
            n_candidates += 1
        sums[label] += data[place]
    for i in range(n_candidates):
        is_candidate[candidates[i]] = False
    return n_candidates


@kernel
def choose(
    candidates: NDArray[np.int64], sums: NDArray[np.float64], is_alone: bool, price: float
) -> int:
    """Return the best cluster of those gathered: the first, where the node is, unless it gains.

    -1 is a new cluster, which costs the price; a node that is alone saves it by leaving.
    """
    own = candidates[0]
    best, best_label = sums[own] - (price if is_alone else 0.0) + GAIN, own
    if not is_alone and -price > best:
        best, best_label = -price, -1
    for label in candidates[1:]:
        if sums[label] > best:
            best, best_label = sums[label], label
    return int(best_label)


@kernel
def move_due_nodes(
    near: Adjacency,
    data: NDArray[np.float64],
    labels: NDArray[np.int64],
    price: float,
    is_due: NDArray[np.bool_],
    shared: NDArray[np.float64],
) -> int:
    """Let nodes move that are due; return how many times one did.

    ``data`` has the affinities in the order of ``near``. What a node shares with its own cluster
    is kept in ``shared``. A node is due again when a neighbour has moved, or, once the others have
    settled, when it was left alone: nothing else changes what it may gain.
    """
    n_nodes = len(labels)
    size, members = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    for node in range(n_nodes):
        size[labels[node]] += 1
        members[labels[node]] += node  # their sum: if there is but one, which it is
    unused, n_unused = np.empty(n_nodes, np.int64), 0
    for label in range(n_nodes - 1, -1, -1):
        if size[label] == 0:
            unused[n_unused] = label
            n_unused += 1
    sums, candidates = np.zeros(n_nodes), np.empty(n_nodes, np.int64)
    is_candidate, left_alone = np.zeros(n_nodes, np.bool_), np.zeros(n_nodes, np.bool_)
    is_any_left, n_moved = False, 0
    for _ in range(SWEEPS):
        before = n_moved
        for node in range(n_nodes):
            if not is_due[node]:
                continue
            is_due[node] = False
            own = labels[node]
            n_candidates = gather(node, near, data, labels, sums, candidates, is_candidate)
            shared[node] = sums[own]
            is_alone = size[own] == 1
            label = choose(candidates[:n_candidates], sums, is_alone, price)
            if label == own:
                continue
            shared[node] = 0.0 if label < 0 else sums[label]
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
            for place in range(near.indptr[node], near.indptr[node + 1]):
                is_due[near.neighbours[place]] = True
        if n_moved == before:
            if not is_any_left:
                break
            is_due[:], left_alone[:], is_any_left = left_alone, False, False
    is_due |= left_alone
    return n_moved


@kernel
def join_down(
    sources: NDArray[Any],
    targets: NDArray[Any],
    affinity: NDArray[np.float64],
    labels: NDArray[np.int64],
    n_clusters: int,
    target: int,
) -> NDArray[np.int64]:
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
    parent = np.arange(n_clusters)
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
    joined = np.empty_like(labels)
    for node in range(len(labels)):
        joined[node] = find(parent, labels[node])
    return joined


@kernel
def between_clusters(
    sources: NDArray[Any],
    targets: NDArray[Any],
    affinity: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the clusters that edges across join, and the affinities of these edges."""
    n_across = 0
    for edge in range(len(sources)):
        n_across += labels[sources[edge]] != labels[targets[edge]]
    a, b = np.empty(n_across, np.int64), np.empty(n_across, np.int64)
    between, count = np.empty(n_across), 0
    for edge in range(len(sources)):
        if labels[sources[edge]] != labels[targets[edge]]:
            a[count], b[count] = labels[sources[edge]], labels[targets[edge]]
            between[count] = affinity[edge]
            count += 1
    return a, b, between


def contract_further(
    sources: NDArray[Any],
    targets: NDArray[Any],
    affinity: NDArray[np.float64],
    price: float,
    labels: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the partition in which greedy contraction ends that has come as far as ``labels``.

    The price only says when to stop: what was contracted at a lower one stays so.
    """
    a, b, between = between_clusters(sources, targets, affinity, labels)
    return numbered(contract_greedily(a, b, between, labels.max() + 1, price)[labels])[0]


@kernel
def climb(
    sources: NDArray[Any],
    targets: NDArray[Any],
    near: Adjacency,
    affinity: NDArray[np.float64],
    price: float,
    labels: NDArray[np.int64],
) -> tuple[NDArray[np.int64], float]:
    """Let nodes and clusters move and join until nothing gains; return partition and value."""
    best, best_value = labels, -np.inf
    for _ in range(TURNS):
        moved = labels.copy()
        move_nodes(near, affinity, moved, price)
        pieces, n_pieces = connected_pieces(sources, targets, moved)
        a, b, between = between_clusters(sources, targets, affinity, pieces)
        top, n_top = numbered(contract_greedily(a, b, between, n_pieces, price))
        n_moved = move_nodes(adjacency(a, b, n_pieces), between, top, price)
        labels, n_clusters = connected_pieces(sources, targets, top[pieces])
        value = agreement_within(sources, targets, affinity, labels) - price * n_clusters
        if value <= best_value + GAIN:
            break
        best, best_value = labels, value
        if n_top == n_pieces == numbered(moved)[1] and n_moved == 0:
            break  # nothing has changed since the nodes came to rest
    return best, best_value


@kernel
def walk_down(
    sources: NDArray[Any],
    targets: NDArray[Any],
    near: Adjacency,
    affinity: NDArray[np.float64],
    price: float,
    best: NDArray[np.int64],
    best_value: float,
) -> tuple[NDArray[np.int64], float]:
    """Join clusters one after the other; return the best partition on the way and its value.

    Nodes that have settled at no price settle elsewhere at this one only if they share less than
    minus the price with their cluster, or a neighbour moves.
    """
    data, shared = affinity[near.edges], np.empty(len(best))
    labels, n_clusters = best.copy(), best.max() + 1
    while 2 < n_clusters <= MOST_CLUSTERS:
        target = n_clusters - 1 if n_clusters <= FEW_CLUSTERS else n_clusters * 4 // 5
        labels = join_down(sources, targets, affinity, labels, n_clusters, target)
        is_due = np.ones(len(labels), np.bool_)
        move_due_nodes(near, data, labels, UNAFFORDABLE, is_due, shared)
        labels, fewer = numbered(labels)
        if fewer >= n_clusters:
            break
        n_clusters = fewer
        tried = labels.copy()
        is_due |= shared + GAIN < -price
        move_due_nodes(near, data, tried, price, is_due, shared)
        tried, n_tried = numbered(tried)
        if shared.sum() / 2 - price * n_tried <= best_value:
            continue  # its connected pieces are as many clusters, or more
        tried, n_tried = connected_pieces(sources, targets, tried)
        value = agreement_within(sources, targets, affinity, tried) - price * n_tried
        if value > best_value + GAIN:
            best, best_value = tried, value
    return best, best_value


def search_partition(
    sources: NDArray[Any],
    targets: NDArray[Any],
    near: Adjacency,
    affinity: NDArray[np.float64],
    price: float,
    start: NDArray[np.int64],
) -> tuple[NDArray[np.int64], float]:
    """Return a partition into connected clusters, numbered by first appearance, and its value."""
    labels, value = climb(sources, targets, near, affinity, price, start)
    return walk_down(sources, targets, near, affinity, price, labels, value)
