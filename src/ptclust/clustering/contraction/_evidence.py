"""Partitions of a graph by the affinities of its edges, and whether they are more than chance."""

from __future__ import annotations

from math import inf, lgamma, log, sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust.clustering.contraction._partition_kernel import (
    Neighbours,
    agreement_within,
    connected_pieces,
    contract_further,
    induced_edges,
    move_nodes,
    neighbours_of,
    search_partition,
)
from ptclust.clustering.levels import APART

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ptclust.clustering.levels import NoisyWeights

# Times the affinities are put on the edges at random, at most; and from how many on the answer may be clear.
_PERMUTATIONS, _FEWEST = 8, 3
# Chance, about, that weights which know of no clusters pass for such that do.
_ERROR = 1e-4
# How many times the nats that name the clusters are charged: once, or so often that a few of them are left.
_CHARGES = 1.0, 30.0
# One in so many edges is held back to choose between these.
_HELD_BACK = 5
# Rounds of joining what is not clearly apart and moving nodes; one or two suffice.
_ROUNDS = 5
# Standard errors by which a variance must exceed that of the noise to be one of true weights.
_SURE = 2.0


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


class Evidence(NamedTuple):
    """A graph, what every edge says for a common cluster of its ends, and what clusters cost."""

    graph: Edges
    affinity: NDArray[np.float64]
    charge: float = _CHARGES[0]
    """How many times log binom(n, K) is taken off."""

    def value_of(self, labels: NDArray[np.int64]) -> float:
        """Return the sum of the affinities within clusters, less what it costs to name these."""
        n, k = self.graph.n_nodes, int(labels.max()) + 1
        agreement = agreement_within(self.graph.sources, self.graph.targets, self.affinity, labels)
        return agreement - self.charge * log_binomial(n, k)

    def price(self, n_clusters: float) -> float:
        """Return what one more cluster costs, the slope of the charge."""
        return self.charge * log(self.graph.n_nodes / n_clusters)

    def at(self, edges: NDArray[np.int64], graph: Edges) -> Evidence:
        """Return the evidence of some of the edges, which make this graph."""
        return self._replace(graph=graph, affinity=self.affinity[edges])


def log_binomial(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def best_partition(evidence: Evidence, enough: float = inf) -> tuple[NDArray[np.int64], float]:
    """Return the best partition into connected clusters that was found, or the first good enough, and its value."""
    best, best_value = np.zeros(evidence.graph.n_nodes, np.int64), -inf
    for labels in _local_maxima(evidence):
        value = evidence.value_of(labels)
        if value > best_value:
            best, best_value = labels, value
        if value >= enough:
            break
    return best, best_value


def _local_maxima(evidence: Evidence) -> Iterator[NDArray[np.int64]]:
    """Yield where searches end, from single nodes and from greedy contraction, which are different places.

    The price of a cluster depends on the answer; the first guess is a K of about the root of n, the second that of the
    better partition.
    """
    graph, affinity, _ = evidence
    single = contracted = np.arange(graph.n_nodes)
    price = evidence.price(sqrt(graph.n_nodes))
    for _ in range(2):
        from_single = search_partition(*graph, affinity, price, single)
        yield from_single[0]
        contracted = contract_further(graph.sources, graph.targets, affinity, price, contracted)
        from_contracted = search_partition(*graph, affinity, price, contracted)
        yield from_contracted[0]
        better, _ = max(from_contracted, from_single, key=itemgetter(1))
        before, price = price, evidence.price(better.max() + 1)
        if price < before:
            contracted = single


def select_penalty(evidence: Evidence) -> Evidence:
    """Return the evidence with the charge whose partition best foretells edges that it has not seen.

    To name the clusters costs log binom(n, K) nats; which of them the other nodes join is not charged, as the edges
    of a sparse graph hold most nodes in place. Not all: of the many ways to cut a cluster along few edges, one is heavy
    by luck. Whether there are many small clusters or few large ones that luck would cut, edges held back tell: their
    noise had no part in the partition.
    """
    graph, affinity, _ = evidence
    random = np.random.default_rng(0)  # the same release gives the same labels
    held, kept = np.split(random.permutation(len(affinity)), [len(affinity) // _HELD_BACK])
    a, b = graph.sources[held], graph.targets[held]
    without = evidence.at(kept, Edges.of(graph.sources[kept], graph.targets[kept], graph.n_nodes))

    def foretold(charge: float) -> float:
        labels, _ = best_partition(without._replace(charge=charge))
        return agreement_within(a, b, affinity[held], labels)

    return evidence._replace(charge=max(_CHARGES, key=foretold))


def is_clear(value: float, evidence: Evidence) -> bool:
    """Return whether the same affinities put on the edges at random give no partition of such a value.

    Values of random ones are about normal, so that Student's distribution tells how likely a further one is to reach
    ``value``. If one of them does reach it, more of them will not make it clear.
    """
    from scipy.special import stdtrit

    random = np.random.default_rng(0)  # the same release gives the same labels
    seen: list[float] = []
    while len(seen) < _PERMUTATIONS:
        permuted = evidence._replace(affinity=random.permutation(evidence.affinity))
        seen.append(best_partition(permuted, value)[1])
        if seen[-1] >= value:
            return False
        n_seen = len(seen)
        if n_seen >= _FEWEST:
            deviations = float(stdtrit(n_seen - 1, 1 - _ERROR)) * sqrt(1 + 1 / n_seen)
            if value > np.mean(seen) + deviations * np.std(seen, ddof=1):
                return True
    return False


def merge_unclear(evidence: Evidence, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join clusters that may be apart by chance alone, let nodes find their place again, and so on.

    A partition can be far better than chance and yet have a cluster too many: of all the ways to cut a cluster in
    two, one has heavy edges by luck.
    """
    graph, affinity, _ = evidence
    for _ in range(_ROUNDS):
        joined = _join_unclear(evidence, labels)
        if joined.max() == labels.max():
            break
        move_nodes(graph.neighbours, affinity, joined, evidence.price(joined.max() + 1))
        labels, _ = connected_pieces(graph.sources, graph.targets, joined)
    return labels


def _join_unclear(evidence: Evidence, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the partition in which every cluster is clearly apart from the neighbour it is least clearly apart from.

    Clusters that become one wait for the next pass, in which it is tried with its own neighbours.
    """
    clear: set[frozenset[int]] = set()
    room = np.full(len(labels), -1)
    labels, count = labels.copy(), int(labels.max()) + 1
    while True:
        pairs = list(_least_apart(evidence, labels, count))
        if len(pairs) <= 1:  # a pair that is all there is has been tried as a whole
            break
        order = np.argsort(labels, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(labels, minlength=count))[:-1])
        touched: set[int] = set()
        for a, b, between in pairs:
            if frozenset((a, b)) in clear or a in touched or b in touched:
                continue
            if _is_pair_clear(evidence, (members[a], members[b]), between, room):
                clear.add(frozenset((a, b)))
            else:
                touched |= {a, b}
                labels[members[b]] = a
        if not touched:
            break
        clear = {pair for pair in clear if not pair & touched}
    return np.unique(labels, return_inverse=True)[1]


def _least_apart(
    evidence: Evidence, labels: NDArray[np.int64], count: int
) -> Iterator[tuple[int, int, float]]:
    """Yield every cluster with the neighbour it is least clearly apart from, and the sum of the affinities between.

    How clearly is that sum in units of its standard deviation, the root of the number of edges. Least clear first.
    """
    graph, affinity, _ = evidence
    a, b = labels[graph.sources], labels[graph.targets]
    across = a != b
    first, second, place = pairs_of_clusters(a[across], b[across], count)
    total = np.bincount(place, affinity[across], minlength=len(first))
    apart = total / np.sqrt(np.bincount(place))
    least = np.full(count, -np.inf)
    np.maximum.at(least, first, apart)
    np.maximum.at(least, second, apart)
    chosen = np.flatnonzero((apart == least[first]) | (apart == least[second]))
    for i in chosen[np.argsort(-apart[chosen], kind="stable")]:
        yield int(first[i]), int(second[i]), float(total[i])


def pairs_of_clusters(
    a: NDArray[np.int64], b: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the unordered pairs that there are, smaller and larger, and the place of each among them."""
    pairs, place = np.unique(np.minimum(a, b) * count + np.maximum(a, b), return_inverse=True)
    first, second = np.divmod(pairs, count)
    return first, second, place


def _is_pair_clear(
    evidence: Evidence,
    pair: tuple[NDArray[np.int64], NDArray[np.int64]],
    between: float,
    room: NDArray[np.int64],
) -> bool:
    """Return whether two clusters are apart by more than chance.

    If both were one cluster, a given cut would have likelihood ratio exp(-between) of mean 1, so it exceeds r with a
    chance of at most 1 / r (Markov). Of n nodes there are binom(n, s) cuts that part s from the rest, and n sizes s:
    beyond n binom(n, s) / error the answer needs no search.
    """
    members = np.concatenate(pair)
    n_nodes = len(members)
    if -between > log(n_nodes) + log_binomial(n_nodes, len(pair[0])) - log(_ERROR):
        return True
    both = evidence.at(*evidence.graph.within(members, room))
    labels = (np.arange(n_nodes) >= len(pair[0])).astype(np.int64)
    return is_clear(both.value_of(labels), both)


def merge_unseparated(
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    weights: NoisyWeights,
    labels: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Join clusters that do not stand apart, those first that do so least.

    Pairs of which each is the other's least separate neighbour become one, until all stand apart.
    """
    while True:
        blocks = _Blocks.of(sources, targets, weights, labels)
        apart = blocks.apart(weights)
        least = np.full(blocks.n_clusters, np.inf)
        np.minimum.at(least, blocks.first, apart)
        np.minimum.at(least, blocks.second, apart)
        is_least = (apart == least[blocks.first]) & (apart == least[blocks.second])
        joined = np.flatnonzero(is_least & (apart <= APART))
        if not len(joined):
            return labels
        # Of equal ones the first: a cluster is joined with one other at a time.
        into = np.arange(blocks.n_clusters)
        _, once = np.unique(blocks.second[joined], return_index=True)
        into[blocks.second[joined[once]]] = blocks.first[joined[once]]
        labels = np.unique(into[labels], return_inverse=True)[1]


class _Blocks(NamedTuple):
    """Weights between pairs of clusters and within single ones: their number, mean, and squares about it."""

    n_clusters: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    across: NDArray[np.float64]  # a row each of number, mean and squares; so are those within
    within: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        sources: NDArray[np.int64],
        targets: NDArray[np.int64],
        weights: NoisyWeights,
        labels: NDArray[np.int64],
    ) -> _Blocks:
        n_clusters = int(labels.max(initial=-1)) + 1
        first, second, place = pairs_of_clusters(labels[sources], labels[targets], n_clusters)
        number = np.bincount(place)
        mean = np.bincount(place, weights.values) / number
        squares = np.bincount(place, (weights.values - mean[place]) ** 2)
        is_within = first == second
        sums = np.stack([number.astype(np.float64), mean, squares])
        within = np.zeros((3, n_clusters))
        within[1] = -np.inf
        within[:, first[is_within]] = sums[:, is_within]
        return cls(n_clusters, first[~is_within], second[~is_within], sums[:, ~is_within], within)

    def apart(self, weights: NoisyWeights) -> NDArray[np.float64]:
        """Return for every pair how many deviations of the true weights lie between edges across and edges within.

        Those within are of the cluster with the heavier ones. The deviation is the least that the noise does not
        explain; single nodes have no edges within, and two of them stand apart for lack of a measure.
        """
        number, mean, squares = self.across
        numbers, means, all_squares = self.within[:, np.stack([self.first, self.second])]
        gap = mean - means.max(axis=0)
        freedom = np.maximum(number - 1 + np.maximum(numbers - 1, 0).sum(axis=0), 1)
        noise, kurtosis = weights.deviation**2, 6.0 if weights.is_laplace else 3.0
        explained = noise * (1 + _SURE * np.sqrt((kurtosis - 1) / freedom))
        variance = (squares + all_squares.sum(axis=0)) / freedom - explained
        with np.errstate(divide="ignore", invalid="ignore"):
            deviations: NDArray[np.float64] = gap / np.sqrt(np.maximum(variance, 0.0))
        return np.where(gap > 0, deviations, 0.0)
