"""Partitions of a graph by the affinities of its edges, and whether they are more than chance."""

from __future__ import annotations

from math import inf, lgamma, log, sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust.clustering._moves_kernel import (
    Neighbours,
    agreement_within,
    connected_pieces,
    induced_edges,
    move_nodes,
    neighbours_of,
)
from ptclust.clustering._partition_kernel import contract_further, search_partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# Times the affinities are put on the edges at random, at most; and from how many on the answer may be clear.
_PERMUTATIONS, _FEWEST = 8, 3
# Chance, about, that weights which know of no clusters pass for such that do.
_ERROR = 1e-4
# Rounds of joining what is not clearly apart and moving nodes; one or two suffice.
_ROUNDS = 5


class Edges(NamedTuple):
    """The edges of a graph, and those at every node."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    neighbours: Neighbours

    @classmethod
    def of(cls, sources: NDArray[np.int64], targets: NDArray[np.int64], n_nodes: int) -> Edges:
        """Return the edges with these ends."""
        return cls(sources, targets, neighbours_of(sources, targets, n_nodes))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.neighbours.start) - 1

    def within(
        self, members: NDArray[np.int64], room: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Edges]:
        """Return which edges join two members, and the graph that they make; ``room`` is -1 for every node."""
        edges, sources, targets = induced_edges(self.neighbours, members, room)
        return edges, Edges.of(sources, targets, len(members))


def best_partition(
    graph: Edges, affinity: NDArray[np.float64], enough: float = inf
) -> tuple[NDArray[np.int64], float]:
    """Return the best partition into connected clusters that was found, or the first good enough, and its value.

    The value is the sum of the affinities within, less log binom(n, K), the nats it takes to say which nodes found a
    cluster.
    """
    best, best_value = np.zeros(graph.n_nodes, np.int64), -inf
    for labels in _local_maxima(graph, affinity):
        value = value_of(graph, affinity, labels)
        if value > best_value:
            best, best_value = labels, value
        if value >= enough:
            break
    return best, best_value


def _local_maxima(graph: Edges, affinity: NDArray[np.float64]) -> Iterator[NDArray[np.int64]]:
    """Yield where searches end, from single nodes and from greedy contraction, which are different places.

    The slope of log binom(n, K), log(n / K), is the price of a cluster. It depends on the answer; the first guess is a
    K of about the root of n, the second that of the better partition.
    """
    single = contracted = np.arange(graph.n_nodes)
    price = log(graph.n_nodes) / 2
    for _ in range(2):
        from_single = search_partition(*graph, affinity, price, single)
        yield from_single[0]
        contracted = contract_further(graph.sources, graph.targets, affinity, price, contracted)
        from_contracted = search_partition(*graph, affinity, price, contracted)
        yield from_contracted[0]
        better, _ = max(from_contracted, from_single, key=itemgetter(1))
        before, price = price, log(graph.n_nodes / (better.max() + 1))
        if price < before:
            contracted = single


def value_of(graph: Edges, affinity: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return the sum of the affinities within clusters, less log binom(n, K)."""
    n, k = graph.n_nodes, int(labels.max()) + 1
    agreement = agreement_within(graph.sources, graph.targets, affinity, labels)
    return agreement - (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1))


def is_clear(value: float, graph: Edges, affinity: NDArray[np.float64]) -> bool:
    """Return whether the same affinities put on the edges at random give no partition of such a value.

    Values of random ones are about normal, so that Student's distribution tells how likely a further one is to reach
    ``value``. If one of them does reach it, more of them will not make it clear.
    """
    from scipy.special import stdtrit

    random = np.random.default_rng(0)  # the same release gives the same labels
    seen: list[float] = []
    while len(seen) < _PERMUTATIONS:
        seen.append(best_partition(graph, random.permutation(affinity), value)[1])
        if seen[-1] >= value:
            return False
        n_seen = len(seen)
        if n_seen >= _FEWEST:
            deviations = float(stdtrit(n_seen - 1, 1 - _ERROR)) * sqrt(1 + 1 / n_seen)
            if value > np.mean(seen) + deviations * np.std(seen, ddof=1):
                return True
    return False


def clearly_apart(
    graph: Edges, affinity: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Join clusters that may be apart by chance alone, let nodes find their place again, and so on.

    A partition can be far better than chance and yet have a cluster too many: of all the ways to cut a cluster in
    two, one has heavy edges by luck.
    """
    for _ in range(_ROUNDS):
        joined = _join_unclear(graph, affinity, labels)
        if joined.max() == labels.max():
            break
        price = log(graph.n_nodes / (joined.max() + 1))
        move_nodes(graph.neighbours, affinity, joined, price)
        labels, _ = connected_pieces(graph.sources, graph.targets, joined)
    return labels


def _join_unclear(
    graph: Edges, affinity: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the partition in which every cluster is clearly apart from the neighbour it is least clearly apart from.

    Clusters that become one wait for the next pass, in which it is tried with its own neighbours.
    """
    clear: set[frozenset[int]] = set()
    room = np.full(graph.n_nodes, -1)
    labels, count = labels.copy(), int(labels.max()) + 1
    while True:
        pairs = list(_least_apart(graph, affinity, labels, count))
        if len(pairs) <= 1:  # a pair that is all there is has been tried as a whole
            break
        order = np.argsort(labels, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(labels, minlength=count))[:-1])
        touched: set[int] = set()
        for a, b, between in pairs:
            if frozenset((a, b)) in clear or a in touched or b in touched:
                continue
            if _is_pair_clear(graph, affinity, (members[a], members[b]), between, room):
                clear.add(frozenset((a, b)))
            else:
                touched |= {a, b}
                labels[members[b]] = a
        if not touched:
            break
        clear = {pair for pair in clear if not pair & touched}
    return np.unique(labels, return_inverse=True)[1]


def _least_apart(
    graph: Edges, affinity: NDArray[np.float64], labels: NDArray[np.int64], count: int
) -> Iterator[tuple[int, int, float]]:
    """Yield every cluster with the neighbour it is least clearly apart from, and the sum of the affinities between.

    How clearly is that sum in units of its standard deviation, the root of the number of edges. Least clear first.
    """
    a, b = labels[graph.sources], labels[graph.targets]
    across = a != b
    keys = np.minimum(a, b)[across] * count + np.maximum(a, b)[across]
    pairs, place, n_edges = np.unique(keys, return_inverse=True, return_counts=True)
    total = np.bincount(place, affinity[across], minlength=len(pairs))
    first, second = np.divmod(pairs, count)
    apart = total / np.sqrt(n_edges)
    least = np.full(count, -np.inf)
    np.maximum.at(least, first, apart)
    np.maximum.at(least, second, apart)
    chosen = np.flatnonzero((apart == least[first]) | (apart == least[second]))
    for i in chosen[np.argsort(-apart[chosen], kind="stable")]:
        yield int(first[i]), int(second[i]), float(total[i])


def _is_pair_clear(
    graph: Edges,
    affinity: NDArray[np.float64],
    pair: tuple[NDArray[np.int64], NDArray[np.int64]],
    between: float,
    room: NDArray[np.int64],
) -> bool:
    """Return whether two clusters are apart by more than chance.

    If both were one cluster, a given cut would have likelihood ratio exp(-between) of mean 1, so it exceeds r with a
    chance of at most 1 / r (Markov). There are fewer than 2^n cuts: beyond 2^n / error the answer needs no search.
    """
    members = np.concatenate(pair)
    if -between > len(members) * log(2) - log(_ERROR):
        return True
    edges, both = graph.within(members, room)
    labels = (np.arange(len(members)) >= len(pair[0])).astype(np.int64)
    here = affinity[edges]
    return is_clear(value_of(both, here, labels), both, here)
