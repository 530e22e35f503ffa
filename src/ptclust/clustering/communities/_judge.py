"""What edges that a partition has not seen say about it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptclust._types import Array, Bools, Floats, Ints
    from ptclust.clustering.communities._weights import Edges

# Edges are compared with those of like expectation, in so many groups of so many edges at least.
_GROUPS, _IN_GROUP = (1, 4, 16, 64), 30
# What is learned of a group needs more, and is learned in this many groups at most.
_LEARNED, _TO_LEARN = 16, 200
# Shares of a group at which weights are divided into bins: clusters are made of the upper ones.
CUTS = np.array([0.125, 0.25, 0.5, 0.75, 0.875, 0.9375])
BINS = len(CUTS) + 1
# Bins are also tried as two, divided at one of these places.
_HALVES = 3, 4, 5
# Jeffreys' prior of a share.
_PRIOR = 0.5
# Rounds of taking out what nodes make of a weight.
_ROUNDS = 10
# Sums of squares below are rounding.
_ROUNDING = 1e-18


def limits_of(expected: Floats, weights: Floats, n_groups: int) -> tuple[Floats, Floats]:
    """Return where groups of like expectation end, but for the last, and bins in every group."""
    parts = np.array_split(np.argsort(expected, kind="stable"), n_groups)
    ends = np.array([expected[part[-1]] for part in parts[:-1]])
    return ends, np.array([np.quantile(weights[part], CUTS) for part in parts])


class Table(NamedTuple):
    """Edges in groups of like expectation, and in bins of like weight among these."""

    cell: Ints
    """Number of the group times that of the bins, plus the bin."""
    n_groups: int

    @classmethod
    def of(cls, expected: Floats, weights: Floats, n_groups: int) -> Table:
        """Return so many groups of the same size, and the bin of every edge in its group."""
        rank = _ranks(expected, np.zeros(len(weights), np.int64), 1)
        group = np.minimum((rank * n_groups).astype(np.int64), n_groups - 1)
        in_group = np.searchsorted(CUTS, _ranks(weights, group, n_groups))
        return cls(group * BINS + in_group, n_groups)

    @property
    def group(self) -> Ints:
        """The group of every edge."""
        return self.cell // BINS

    def of_clusters(self, cluster: Ints, n_clusters: int) -> Table:
        """Return the table in which the edges of every cluster are a group."""
        return Table(cluster * BINS + self.cell % BINS, n_clusters)

    def counts(self, together: Bools, edges: Ints) -> tuple[Floats, Floats]:
        """Return how many of the edges are together and apart, by group and bin."""
        return counts_of(self.cell[edges], together, self.n_groups)


def counts_of(cells: Array, together: Bools, n_groups: int) -> tuple[Floats, Floats]:
    """Return how many edges of these cells are together and apart, by group and bin."""
    inside, both = (
        np.bincount(some, minlength=n_groups * BINS).reshape(-1, BINS).astype(np.float64)
        for some in (cells[together], cells)
    )
    return inside, both - inside


class Judge:
    """Asks edges whether "together or apart" has to do with their weights."""

    def __init__(self, edges: Edges, weights: Floats, expected: Floats) -> None:
        self._edges, self._expected = edges, expected
        self._tables = [
            Table.of(expected, edges.similarity, n_groups)
            for n_groups in _GROUPS
            if n_groups == 1 or len(weights) >= n_groups * _IN_GROUP
        ]
        able = (t for t in self._tables if len(weights) >= t.n_groups * _TO_LEARN)
        self.learned = max(
            (t for t in able if t.n_groups <= _LEARNED),
            key=lambda table: table.n_groups,
            default=self._tables[0],
        )
        self._weights = weights

    @cached_property
    def residual(self) -> Floats:
        """Weights beyond what nodes make of them."""
        return self._excess(self._weights)

    def weights_tell(self, together: Bools, held: Ints) -> float:
        """Return by how many nats the weights of these edges support that they are told apart.

        That is the logarithm of the Bayes factor of two distributions over bins, for edges together
        and apart, against one; on average over coarser and finer tables. Where clusters have
        nothing to do with weights it exceeds x with a chance of at most exp(-x). Nothing if edges
        within clusters have the smaller weights.
        """
        if np.sum(self.residual[held] * (together - together.mean())) <= 0:
            return 0.0
        tables = (
            each for table in self._tables for each in _with_halves(*table.counts(together, held))
        )
        values = np.array([_log_factors(*each).sum() for each in tables])
        return float(np.logaddexp.reduce(values) - np.log(len(values)))

    def deviations(self, together: Bools, by_fold: Sequence[Ints] = ()) -> float:
        """Return by how many standard errors weights within clusters exceed those across.

        Compared are weights beyond what the nodes make of them, and so is "together": whatever
        nodes differ by, in size or in the number of companions, has no part in it. ``by_fold`` are
        the partitions that ``together`` is of.
        """
        everywhere = np.zeros(len(together), np.int64)
        return float(self.deviations_by(together, by_fold, everywhere, 1)[0])

    def deviations_by(
        self, together: Bools, by_fold: Sequence[Ints], cluster: Ints, n_clusters: int
    ) -> Floats:
        """Return the same for the edges of every cluster, which ``together`` divides."""
        products = self._companions(together, by_fold) * self.residual
        total, squares, fourths = (
            np.bincount(cluster, values, n_clusters)
            for values in (products, products**2, products**4)
        )
        # If few edges make up the sum, as many as these, it has tails of Student's distribution.
        n_edges = squares**2 / np.maximum(fourths, 1e-300)
        student = total / np.sqrt(np.maximum(squares, 1e-300))
        normal = np.sqrt(n_edges * np.log1p(student**2 / np.maximum(n_edges, 1.0)))
        return np.where(squares > _ROUNDING, np.sign(total) * normal, 0.0)

    def weights_tell_by(
        self, together: Bools, held: Ints, cluster: Ints, n_clusters: int
    ) -> Floats:
        """Return nats for every cluster; its edges share one distribution over bins."""
        values = [
            _log_factors(*each)
            for table in self._tables
            for each in _with_halves(*table.of_clusters(cluster, n_clusters).counts(together, held))
        ]
        nats: Floats = np.logaddexp.reduce(values) - np.log(len(values))
        return nats

    def blocks_tell(self, a: Ints, b: Ints, held: Ints) -> Floats:
        """Return by how many nats the weights of these edges support distributions of their own.

        Those are of edges within clusters and across, of every cluster and across, and of every
        pair of clusters; each against one for all, among edges of like expectation: blocks of busy
        and of quiet nodes say nothing. ``a`` and ``b`` are the clusters that the edges join.
        """
        low, high, n_clusters = np.minimum(a, b), np.maximum(a, b), int(max(a.max(), b.max())) + 1
        pair = low * n_clusters + high
        own = np.where(low == high, low, n_clusters)
        one = np.zeros(len(held), np.int64)
        bins = self._tables[-1].cell[held] % BINS
        kinds = low == high, own, pair
        return np.array([_evidence_of(each, bins) for each in kinds]) - _evidence_of(one, bins)

    def _excess(self, weights: Floats) -> Floats:
        """Return weights beyond what nodes make of them."""
        return self._beyond_nodes(weights - self._expected)

    def _companions(self, together: Bools, by_fold: Sequence[Ints]) -> Floats:  # noqa: ARG002
        """Return "together" beyond what the numbers of companions of nodes make of it."""
        return self._beyond_nodes(together.astype(np.float64))

    def _beyond_nodes(self, values: Floats) -> Floats:
        """Return values less the best sum of one term for each end, constant or by expectation."""
        edges = self._edges
        a, b = edges.sources, edges.targets
        scales = np.ones(len(a)), self._expected
        squares = [np.maximum(edges.at_nodes(scale**2), 1e-12) for scale in scales]
        for _ in range(_ROUNDS):
            for scale, square in zip(scales, squares, strict=True):
                term = edges.at_nodes(scale * values) / square / 2
                values = values - scale * (term[a] + term[b])
        return values


def topology_tells(together: Bools, by_chance: Floats) -> float:
    """Return by how many nats the existence of edges supports the clusters at their ends.

    ``by_chance`` is how likely each would be within a cluster if only the degrees mattered.
    """
    from scipy.special import betaln

    inside = int(together.sum())
    chance = np.clip(by_chance, 1e-9, 1 - 1e-9)
    alone = np.log(chance[together]).sum() + np.log1p(-chance[~together]).sum()
    prior = betaln(_PRIOR, _PRIOR)
    return float(betaln(inside + _PRIOR, len(together) - inside + _PRIOR) - prior - alone)


def _ranks(values: Floats, group: Ints, n_groups: int) -> Floats:
    """Return the rank of every value in its group, from 0 to 1."""
    order = np.lexsort((values, group))
    size = np.bincount(group, minlength=n_groups)
    first = np.cumsum(size) - size
    ranks = np.empty(len(values))
    own = group[order]
    ranks[order] = (np.arange(len(values)) - first[own] + 0.5) / size[own]
    return ranks


def _with_halves(inside: Floats, outside: Floats) -> list[tuple[Floats, Floats]]:
    """Return the tables as they are, and with two bins."""

    def halves(table: Floats, cut: int) -> Floats:
        return np.stack([table[:, :cut].sum(1), table[:, cut:].sum(1)], 1)

    return [(inside, outside), *((halves(inside, cut), halves(outside, cut)) for cut in _HALVES)]


def _log_factors(inside: Floats, outside: Floats) -> Floats:
    """Return the log Bayes factors of two distributions a row against one."""
    return log_evidence(inside) + log_evidence(outside) - log_evidence(inside + outside)


def _evidence_of(kinds: Array, bins: Ints) -> float:
    """Return the log-probability of bins if every kind of edge has a distribution over them."""
    numbers, kind = np.unique(kinds, return_inverse=True)
    counts = np.bincount(kind * BINS + bins, minlength=len(numbers) * BINS)
    return float(log_evidence(counts.reshape(-1, BINS).astype(np.float64)).sum())


def log_evidence(counts: Floats) -> Floats:
    """Return the log-probabilities of draws with these counts; bins are the last axis."""
    from scipy.special import gammaln

    n_bins = counts.shape[-1]
    total = gammaln(n_bins * _PRIOR) - gammaln(counts.sum(-1) + n_bins * _PRIOR)
    evidence: Floats = total + (gammaln(counts + _PRIOR) - gammaln(_PRIOR)).sum(-1)
    return evidence
