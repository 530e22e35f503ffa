"""Partitions of a graph by the affinities of its edges, and whether they are more than chance."""

from __future__ import annotations

from functools import cache
from math import inf, log, sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._components import Adjacency, adjacency
from ptclust.clustering.contraction import _chance_kernel as kernel
from ptclust.clustering.contraction._partition_kernel import connected_pieces, move_nodes
from ptclust.clustering.levels import APART

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptclust._types import Floats, Ints
    from ptclust.clustering.levels import NoisyWeights

# Times the affinities are permuted over the edges, at most; and the fewest for a clear answer.
_PERMUTATIONS, _FEWEST = 16, 3
# How many times the nats that name the clusters are taken off: once, or so often that few are left.
_PENALTIES = 1.0, 30.0
# One in so many edges is held back to choose between these.
_HELD_BACK = 5
# Rounds of joining what is not clearly separated and moving nodes; one or two suffice.
_ROUNDS = 5
# Part of its nodes by which a cluster is the same in another partition.
_SAME = 0.9
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


class Evidence(NamedTuple):
    """A graph, how far every edge supports a common cluster of its ends, and what clusters cost."""

    graph: Edges
    affinity: Floats
    penalty: float = _PENALTIES[0]
    """How many times log binom(n, K) is taken off."""

    def value_of(self, labels: Ints) -> float:
        """Return the sum of the affinities within clusters, less what it costs to name these."""
        (sources, targets, _), affinity, penalty = self
        return kernel.value_of(sources, targets, affinity, labels, labels.max() + 1, penalty)

    def price(self, n_clusters: float) -> float:
        """Return what one more cluster costs, the slope of the penalty."""
        return self.penalty * log(self.graph.n_nodes / n_clusters)

    def at(self, edges: Ints, graph: Edges) -> Evidence:
        """Return the evidence of some of the edges, which make this graph."""
        return self._replace(graph=graph, affinity=self.affinity[edges])


def best_partition(
    evidence: Evidence, enough: float = inf, start: Ints | None = None
) -> tuple[Ints, float]:
    """Return the best connected clusters found, or the first good enough, and their value."""
    (sources, targets, near), affinity, penalty = evidence
    first = np.empty(0, np.int64) if start is None else start
    return kernel.best_partition(sources, targets, *near, affinity, penalty, enough, first)


class Trial(NamedTuple):
    """What a partition by some edges says about the others, which were held back.

    The noise of edges held back had no part in the partition. If weights are independent of
    clusters, which of them lie within is chance.
    """

    penalty: float
    labels: Ints
    held: Ints
    within: float
    """Sum of the affinities of edges held back that lie within."""
    deviations: float
    """How far that is above the sum of as many edges held back at random, in its deviations."""

    @classmethod
    def of(cls, evidence: Evidence, labels: Ints, held: Ints) -> Trial:
        """Return what a partition says about edges that had no part in it."""
        affinity = evidence.affinity[held]
        inside = labels[evidence.graph.sources[held]] == labels[evidence.graph.targets[held]]
        n, k, total = len(held), int(inside.sum()), float(affinity[inside].sum())
        excess = deviation = 0.0
        if 0 < k < n:
            excess = total - k * float(affinity.mean())
            deviation = sqrt(k * (n - k) * float(affinity.var()) / (n - 1))
        deviations = excess / deviation if deviation else 0.0
        return cls(evidence.penalty, labels, held, total, deviations)


def select_penalty(evidence: Evidence, least: float = -inf) -> Trial:
    """Return the partition of some edges, by either penalty, that best predicts the others.

    If that by the lower one is fewer deviations above chance than ``least``, it is not compared.

    To name the clusters costs log binom(n, K) nats; which of them the other nodes join is not
    counted, as the edges of a sparse graph hold most nodes in place. Not all: of the many cuts of
    a cluster along few edges, one has a large sum by chance. Whether there are many small clusters
    or few large ones that chance would cut, edges held back decide.
    """
    graph, affinity, _ = evidence
    random = np.random.default_rng(0)  # the same release gives the same labels
    is_held = np.zeros(len(affinity), np.bool_)
    is_held[random.permutation(len(affinity))[: len(affinity) // _HELD_BACK]] = True
    held, kept = np.flatnonzero(is_held), np.flatnonzero(~is_held)
    without = evidence.at(kept, Edges.of(graph.sources[kept], graph.targets[kept], graph.n_nodes))
    many, few = (without._replace(penalty=penalty) for penalty in _PENALTIES)
    labels, value = best_partition(many, clear_value(many))
    trial = Trial.of(evidence._replace(penalty=many.penalty), labels, held)
    if trial.deviations < least:
        return trial
    # Where the first one is clear, only the clusters that it has may be too many.
    enough = -inf if value >= clear_value(many) else inf
    labels, _ = best_partition(few, enough, labels)
    other = Trial.of(evidence._replace(penalty=few.penalty), labels, held)
    return max(trial, other, key=attrgetter("within"))


def sure_deviations(n_nodes: int) -> float:
    """Return how far normal values lie from their mean with a chance below ``ERROR`` over n."""
    return sqrt(2 * log(n_nodes / kernel.ERROR))


def clear_value(evidence: Evidence) -> float:
    """Return a value that permuted affinities reach with a chance of at most ``ERROR``."""
    return kernel.clear_value(evidence.graph.near.indptr, evidence.affinity)


def is_clear(value: float, evidence: Evidence) -> bool:
    """Return whether affinities permuted over the edges give no partition of such a value."""
    (sources, targets, near), affinity, penalty = evidence
    random = np.random.default_rng(0)  # the same release gives the same labels
    return kernel.is_clear(value, sources, targets, *near, affinity, penalty, _reaches(), random)


@cache
def _reaches() -> Floats:
    """Return beyond how many deviations a value lies with a chance of ``ERROR``.

    First of a normal one; then of one more after 1, 2, ... others, by Student's distribution: after
    few, that is unknown.
    """
    from scipy.special import ndtri, stdtrit

    reaches = np.full(_PERMUTATIONS + 1, inf)
    reaches[0] = ndtri(1 - kernel.ERROR)
    others = np.arange(_FEWEST, _PERMUTATIONS + 1)
    reaches[others] = stdtrit(others - 1, 1 - kernel.ERROR)
    return reaches


def merge_unclear(evidence: Evidence, labels: Ints, trial: Trial | None = None) -> Ints:
    """Join clusters that chance alone may have separated, let nodes move again, and so on.

    A partition can be far better than chance and yet have a cluster too many: of all the ways to
    cut a cluster in two, one has large weights by chance.
    """
    graph, affinity, _ = evidence
    for _ in range(_ROUNDS):
        joined = _join_unclear(evidence, labels, _predicted_pairs(evidence, labels, trial))
        if joined.max() == labels.max():
            break
        move_nodes(graph.near, affinity, joined, evidence.price(joined.max() + 1))
        labels, _ = connected_pieces(graph.sources, graph.targets, joined)
    return labels


def _predicted_pairs(evidence: Evidence, labels: Ints, trial: Trial | None) -> set[tuple[int, int]]:
    """Return the pairs of clusters, smaller first, that a trial has shown to be separate.

    If two clusters of the trial were one, the edges held back between them would have likelihood
    ratio exp(-sum) of mean 1. They had no part in the partition: there are no other cuts to count,
    but other pairs. Clusters are those of the trial if they have nearly all of their nodes.
    """
    if trial is None:
        return set()
    count, n_trial = int(labels.max()) + 1, int(trial.labels.max()) + 1
    both, size = np.unique(labels * n_trial + trial.labels, return_counts=True)
    first, second = np.divmod(both, n_trial)
    is_same = size >= _SAME * np.maximum(
        np.bincount(labels)[first], np.bincount(trial.labels)[second]
    )
    cluster = np.full(n_trial, -1)
    cluster[second[is_same]] = first[is_same]
    a = cluster[trial.labels[evidence.graph.sources[trial.held]]]
    b = cluster[trial.labels[evidence.graph.targets[trial.held]]]
    across = (a != b) & (a >= 0) & (b >= 0)
    first, second, place = pairs_of_clusters(a[across], b[across], count)
    total = np.bincount(place, evidence.affinity[trial.held][across], minlength=len(first))
    clear = -total > 2 * log(n_trial) - log(kernel.ERROR)
    return set(zip(first[clear].tolist(), second[clear].tolist(), strict=True))


def _join_unclear(evidence: Evidence, labels: Ints, clear: set[tuple[int, int]]) -> Ints:
    """Return a partition in which every cluster is clearly separated from its closest neighbour.

    Clusters that become one wait for the next pass, in which it is tried with its own neighbours.
    """
    buffer = np.full(len(labels), -1)
    labels, count = labels.copy(), int(labels.max()) + 1
    while True:
        pairs = list(_closest_pairs(evidence, labels, count))
        if len(pairs) <= 1:  # a pair that is all there is has been tried as a whole
            break
        order = np.argsort(labels, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(labels, minlength=count)))
        touched: set[int] = set()
        for a, b, between in pairs:
            if (a, b) in clear or a in touched or b in touched:
                continue
            one, other = (order[starts[each] : starts[each + 1]] for each in (a, b))
            if is_pair_clear(evidence, one, other, between, buffer):
                clear.add((a, b))
            else:
                touched |= {a, b}
                labels[other] = a
        if not touched:
            break
        clear = {pair for pair in clear if touched.isdisjoint(pair)}
    return np.unique(labels, return_inverse=True)[1]


def is_pair_clear(evidence: Evidence, one: Ints, other: Ints, between: float, buffer: Ints) -> bool:
    """Return whether more than chance separates two clusters, of these members."""
    random = np.random.default_rng(0)  # the same release gives the same labels
    near, affinity, penalty = evidence.graph.near, evidence.affinity, evidence.penalty
    return kernel.is_pair_clear(
        *near, affinity, penalty, one, other, between, buffer, _reaches(), random
    )


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


def merge_unseparated(sources: Ints, targets: Ints, weights: NoisyWeights, labels: Ints) -> Ints:
    """Join clusters that are no separate level of weights, the least separated first.

    Where weights are distances, light edges lie near each other: a cluster can always be divided
    such that the edges across are heavier than the others, by more than chance. They are then the
    upper end of a spread, not a level. Pairs of which each is the other's least separated
    neighbour become one, until all are separated.
    """
    blocks = _Blocks.of(sources, targets, weights, labels)
    while True:
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
        number = np.unique(into, return_inverse=True)[1]
        labels, blocks = number[labels], blocks.joined(number)


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
        """Return the blocks of a partition."""
        sums = np.zeros((3, len(sources)))
        sums[0], sums[1] = 1.0, weights.values
        return cls._pooled(labels[sources], labels[targets], sums, int(labels.max(initial=-1)) + 1)

    def joined(self, number: Ints) -> _Blocks:
        """Return the blocks of clusters that are joined if they have the same number."""
        inside = np.flatnonzero(self.within[0])
        first, second = np.append(self.first, inside), np.append(self.second, inside)
        sums = np.concatenate([self.across, self.within[:, inside]], axis=1)
        return self._pooled(number[first], number[second], sums, int(number.max()) + 1)

    @classmethod
    def _pooled(cls, a: Ints, b: Ints, sums: Floats, n_clusters: int) -> _Blocks:
        """Return the blocks that several groups of weights make, between these clusters."""
        first, second, place = pairs_of_clusters(a, b, n_clusters)
        number = np.bincount(place, sums[0])
        mean = np.bincount(place, sums[0] * sums[1]) / number
        squares = np.bincount(place, sums[2] + sums[0] * (sums[1] - mean[place]) ** 2)
        is_within = first == second
        pooled = np.stack([number, mean, squares])
        within = np.zeros((3, n_clusters))
        within[1] = -np.inf
        within[:, first[is_within]] = pooled[:, is_within]
        return cls(n_clusters, first[~is_within], second[~is_within], pooled[:, ~is_within], within)

    def separation(self, weights: NoisyWeights) -> Floats:
        """Return by how many deviations of true weights edges across exceed those within, by pair.

        Those within are of the cluster with the heavier ones. The deviation is the least that the
        noise does not explain; two single nodes have no edges within, and count as separated.
        """
        number, mean, squares = self.across
        numbers, means, all_squares = self.within[:, np.stack([self.first, self.second])]
        gap = mean - means.max(axis=0)
        freedom = np.maximum(number - 1 + np.maximum(numbers - 1, 0).sum(axis=0), 1)
        noise = weights.deviation**2
        explained = noise * (1 + _SURE * np.sqrt((weights.kurtosis - 1) / freedom))
        variance = (squares + all_squares.sum(axis=0)) / freedom - explained
        with np.errstate(divide="ignore", invalid="ignore"):
            deviations: Floats = gap / np.sqrt(np.maximum(variance, 0.0))
        return np.where(gap > 0, deviations, 0.0)
