"""Partitions of a graph by the affinities of its edges, and whether they are more than chance."""

from __future__ import annotations

from math import inf, lgamma, log, sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._components import Adjacency, adjacency
from ptclust.clustering.contraction._partition_kernel import (
    agreement_within,
    connected_pieces,
    contract_further,
    induced_edges,
    move_nodes,
    search_partition,
)
from ptclust.clustering.levels import APART

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptclust._types import Floats, Ints
    from ptclust.clustering.levels import NoisyWeights

# Times the affinities are permuted over the edges, at most; and the fewest for a clear answer.
_PERMUTATIONS, _FEWEST = 8, 3
# Chance, about, that weights which are independent of clusters pass for such that are not.
_ERROR = 1e-4
# How many times the nats that name the clusters are taken off: once, or so often that few are left.
_PENALTIES = 1.0, 30.0
# One in so many edges is held back to choose between these.
_HELD_BACK = 5
# Rounds of joining what is not clearly separated and moving nodes; one or two suffice.
_ROUNDS = 5
# Standard errors by which a variance must exceed that of the noise to be one of true weights.
_SURE = 2.0


class Edges(NamedTuple):
    """The edges of a graph, and those at every node."""

    sources: Ints
    targets: Ints
    near: Adjacency

    @classmethod
    def of(cls, sources: Ints, targets: Ints, n_nodes: int) -> Edges:
        """Return the edges with these ends."""
        return cls(sources, targets, adjacency(sources, targets, n_nodes))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.near.indptr) - 1

    def within(self, members: Ints, buffer: Ints) -> tuple[Ints, Edges]:
        """Return which edges join two members, and their graph; ``buffer`` is -1 for every node."""
        edges, sources, targets = induced_edges(self.near, members, buffer)
        return edges, Edges.of(sources, targets, len(members))


class Evidence(NamedTuple):
    """A graph, how far every edge supports a common cluster of its ends, and what clusters cost."""

    graph: Edges
    affinity: Floats
    penalty: float = _PENALTIES[0]
    """How many times log binom(n, K) is taken off."""

    def value_of(self, labels: Ints) -> float:
        """Return the sum of the affinities within clusters, less what it costs to name these."""
        n, k = self.graph.n_nodes, int(labels.max()) + 1
        agreement = agreement_within(self.graph.sources, self.graph.targets, self.affinity, labels)
        return agreement - self.penalty * log_binomial(n, k)

    def price(self, n_clusters: float) -> float:
        """Return what one more cluster costs, the slope of the penalty."""
        return self.penalty * log(self.graph.n_nodes / n_clusters)

    def at(self, edges: Ints, graph: Edges) -> Evidence:
        """Return the evidence of some of the edges, which make this graph."""
        return self._replace(graph=graph, affinity=self.affinity[edges])


def log_binomial(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def best_partition(evidence: Evidence, enough: float = inf) -> tuple[Ints, float]:
    """Return the best connected clusters found, or the first good enough, and their value."""
    best, best_value = np.zeros(evidence.graph.n_nodes, np.int64), -inf
    for labels in _local_maxima(evidence):
        value = evidence.value_of(labels)
        if value > best_value:
            best, best_value = labels, value
        if value >= enough:
            break
    return best, best_value


def _local_maxima(evidence: Evidence) -> Iterator[Ints]:
    """Yield where searches end from single nodes and from greedy contraction; they differ.

    The price of a cluster depends on the answer; the first guess is a K of about the root of n,
    the second that of the better partition.
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
    """Return the evidence with the penalty whose partition best predicts edges it has not seen.

    To name the clusters costs log binom(n, K) nats; which of them the other nodes join is not
    counted, as the edges of a sparse graph hold most nodes in place. Not all: of the many cuts of
    a cluster along few edges, one has a large sum by chance. Whether there are many small clusters
    or few large ones that chance would cut, edges held back decide: their noise had no part in the
    partition.
    """
    graph, affinity, _ = evidence
    random = np.random.default_rng(0)  # the same release gives the same labels
    held, kept = np.split(random.permutation(len(affinity)), [len(affinity) // _HELD_BACK])
    a, b = graph.sources[held], graph.targets[held]
    without = evidence.at(kept, Edges.of(graph.sources[kept], graph.targets[kept], graph.n_nodes))

    def predicted(penalty: float) -> float:
        labels, _ = best_partition(without._replace(penalty=penalty))
        return agreement_within(a, b, affinity[held], labels)

    return evidence._replace(penalty=max(_PENALTIES, key=predicted))


def is_clear(value: float, evidence: Evidence) -> bool:
    """Return whether affinities permuted over the edges give no partition of such a value.

    Their values are about normal, so that Student's distribution says how likely a further one is
    to reach ``value``. If one of them does reach it, more of them will not make it clear.
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


def merge_unclear(evidence: Evidence, labels: Ints) -> Ints:
    """Join clusters that chance alone may have separated, let nodes move again, and so on.

    A partition can be far better than chance and yet have a cluster too many: of all the ways to
    cut a cluster in two, one has large weights by chance.
    """
    graph, affinity, _ = evidence
    for _ in range(_ROUNDS):
        joined = _join_unclear(evidence, labels)
        if joined.max() == labels.max():
            break
        move_nodes(graph.near, affinity, joined, evidence.price(joined.max() + 1))
        labels, _ = connected_pieces(graph.sources, graph.targets, joined)
    return labels


def _join_unclear(evidence: Evidence, labels: Ints) -> Ints:
    """Return a partition in which every cluster is clearly separated from its closest neighbour.

    Clusters that become one wait for the next pass, in which it is tried with its own neighbours.
    """
    clear: set[frozenset[int]] = set()
    buffer = np.full(len(labels), -1)
    labels, count = labels.copy(), int(labels.max()) + 1
    while True:
        pairs = list(_closest_pairs(evidence, labels, count))
        if len(pairs) <= 1:  # a pair that is all there is has been tried as a whole
            break
        order = np.argsort(labels, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(labels, minlength=count))[:-1])
        touched: set[int] = set()
        for a, b, between in pairs:
            if frozenset((a, b)) in clear or a in touched or b in touched:
                continue
            if _is_pair_clear(evidence, (members[a], members[b]), between, buffer):
                clear.add(frozenset((a, b)))
            else:
                touched |= {a, b}
                labels[members[b]] = a
        if not touched:
            break
        clear = {pair for pair in clear if not pair & touched}
    return np.unique(labels, return_inverse=True)[1]


def _closest_pairs(
    evidence: Evidence, labels: Ints, count: int
) -> Iterator[tuple[int, int, float]]:
    """Yield every cluster with its least clearly separated neighbour, and the sum between them.

    How clearly is that sum in units of its standard deviation, the root of the number of edges.
    Least clear first.
    """
    graph, affinity, _ = evidence
    a, b = labels[graph.sources], labels[graph.targets]
    across = a != b
    first, second, place = pairs_of_clusters(a[across], b[across], count)
    total = np.bincount(place, affinity[across], minlength=len(first))
    closeness = total / np.sqrt(np.bincount(place))
    closest = np.full(count, -np.inf)
    np.maximum.at(closest, first, closeness)
    np.maximum.at(closest, second, closeness)
    chosen = np.flatnonzero((closeness == closest[first]) | (closeness == closest[second]))
    for i in chosen[np.argsort(-closeness[chosen], kind="stable")]:
        yield int(first[i]), int(second[i]), float(total[i])


def pairs_of_clusters(a: Ints, b: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """Return the unordered pairs there are, smaller and larger, and the place of each edge's."""
    pairs, place = np.unique(np.minimum(a, b) * count + np.maximum(a, b), return_inverse=True)
    first, second = np.divmod(pairs, count)
    return first, second, place


def _is_pair_clear(
    evidence: Evidence, pair: tuple[Ints, Ints], between: float, buffer: Ints
) -> bool:
    """Return whether more than chance separates two clusters.

    If both were one cluster, a given cut would have likelihood ratio exp(-between) of mean 1, so
    it exceeds r with a chance of at most 1 / r (Markov). Of n nodes there are binom(n, s) cuts
    that part s from the rest, and n sizes s: beyond n binom(n, s) / error no search is needed.
    """
    members = np.concatenate(pair)
    n_nodes = len(members)
    if -between > log(n_nodes) + log_binomial(n_nodes, len(pair[0])) - log(_ERROR):
        return True
    both = evidence.at(*evidence.graph.within(members, buffer))
    labels = (np.arange(n_nodes) >= len(pair[0])).astype(np.int64)
    return is_clear(both.value_of(labels), both)


def merge_unseparated(sources: Ints, targets: Ints, weights: NoisyWeights, labels: Ints) -> Ints:
    """Join clusters that are no separate level of weights, the least separated first.

    Where weights are distances, light edges lie near each other: a cluster can always be divided
    such that the edges across are heavier than the others, by more than chance. They are then the
    upper end of a spread, not a level. Pairs of which each is the other's least separated
    neighbour become one, until all are separated.
    """
    while True:
        blocks = _Blocks.of(sources, targets, weights, labels)
        separation = blocks.separation(weights)
        least = np.full(blocks.n_clusters, np.inf)
        np.minimum.at(least, blocks.first, separation)
        np.minimum.at(least, blocks.second, separation)
        is_least = (separation == least[blocks.first]) & (separation == least[blocks.second])
        joined = np.flatnonzero(is_least & (separation <= APART))
        if not len(joined):
            return labels
        # Of equal ones the first: a cluster is joined with one other at a time.
        into = np.arange(blocks.n_clusters)
        _, once = np.unique(blocks.second[joined], return_index=True)
        into[blocks.second[joined[once]]] = blocks.first[joined[once]]
        labels = np.unique(into[labels], return_inverse=True)[1]


class _Blocks(NamedTuple):
    """Weights between pairs of clusters and within single ones, in three rows of numbers.

    The rows are how many there are, their mean, and the sum of squares about it.
    """

    n_clusters: int
    first: Ints
    second: Ints
    across: Floats
    within: Floats

    @classmethod
    def of(cls, sources: Ints, targets: Ints, weights: NoisyWeights, labels: Ints) -> _Blocks:
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

    def separation(self, weights: NoisyWeights) -> Floats:
        """Return by how many deviations of true weights edges across exceed those within, by pair.

        Those within are of the cluster with the heavier ones. The deviation is the least that the
        noise does not explain; two single nodes have no edges within, and count as separated.
        """
        number, mean, squares = self.across
        numbers, means, all_squares = self.within[:, np.stack([self.first, self.second])]
        gap = mean - means.max(axis=0)
        freedom = np.maximum(number - 1 + np.maximum(numbers - 1, 0).sum(axis=0), 1)
        noise, kurtosis = weights.deviation**2, 6.0 if weights.is_laplace else 3.0
        explained = noise * (1 + _SURE * np.sqrt((kurtosis - 1) / freedom))
        variance = (squares + all_squares.sum(axis=0)) / freedom - explained
        with np.errstate(divide="ignore", invalid="ignore"):
            deviations: Floats = gap / np.sqrt(np.maximum(variance, 0.0))
        return np.where(gap > 0, deviations, 0.0)
