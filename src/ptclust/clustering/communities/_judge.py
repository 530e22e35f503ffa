"""What edges that a partition has not seen say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ptclust._types import Bools, Floats, Ints
    from ptclust.clustering.communities._weights import Edges

# Edges of like expectation are compared in so many groups at most, of so many edges at least.
_GROUPS, _IN_GROUP = 64, 30
# Shares of a group at which weights are divided into bins: clusters are made of the upper ones.
_CUTS = np.array([0.125, 0.25, 0.5, 0.75, 0.875, 0.9375])
# Bins are also tried as two, divided at one of these places.
_HALVES = 3, 4, 5
# Jeffreys' prior of a share.
_PRIOR = 0.5
# Rounds of taking out what nodes make of a weight.
_ROUNDS = 15


class Judge:
    """Edges in groups of like expectation, and in bins of like weight among these.

    If "together or apart" has nothing to do with weights, it has the same distribution in every
    bin of a group.
    """

    def __init__(self, edges: Edges, weights: Floats, expected: Floats) -> None:
        self._edges, self._expected = edges, expected
        n_groups = 1
        while 4 * n_groups <= _GROUPS and len(weights) >= 4 * n_groups * _IN_GROUP:
            n_groups *= 4
        rank = _ranks(expected, np.zeros(len(weights), np.int64), 1)
        self.group = np.minimum((rank * n_groups).astype(np.int64), n_groups - 1)
        rank = _ranks(edges.similarity, self.group, n_groups)
        self.bin = np.searchsorted(_CUTS, rank)
        self._shape = n_groups, len(_CUTS) + 1
        self._code = self.group * self._shape[1] + self.bin
        self.residual = self._beyond_nodes(weights - expected)

    def weights_tell(self, together: Bools, held: Ints) -> float:
        """Return by how many nats the weights of these edges support that they are told apart.

        That is the logarithm of the Bayes factor of two distributions over bins, for edges together
        and apart, against one; on average over coarser and finer tables. Where clusters have
        nothing to do with weights it exceeds x with a chance of at most exp(-x). Nothing if edges
        within clusters have the smaller weights.
        """
        if self.residual[held] @ (together - together.mean()) <= 0:
            return 0.0
        tables = self.counts(together, held)
        values = np.array([_log_factor(*table) for table in _coarsened(*tables)])
        return float(np.logaddexp.reduce(values) - np.log(len(values)))

    def counts(self, together: Bools, edges: Ints) -> tuple[Floats, Floats]:
        """Return how many edges there are together and apart, by group and bin."""
        code, size = self._code[edges], self._shape[0] * self._shape[1]
        inside, both = (
            np.bincount(codes, minlength=size).reshape(self._shape).astype(np.float64)
            for codes in (code[together], code)
        )
        return inside, both - inside

    def deviations(self, together: Bools) -> float:
        """Return by how many standard errors weights within clusters exceed those across.

        Compared are weights beyond what the nodes make of them, and so is "together": whatever
        nodes differ by, in size or in the number of companions, has no part in it.
        """
        products = self._beyond_nodes(together.astype(np.float64)) * self.residual
        error = np.sqrt(np.sum(products**2))
        return float(products.sum() / error) if error > 1e-9 else 0.0

    def _beyond_nodes(self, values: Floats) -> Floats:
        """Return values less the best sum of one term for each end, constant or by expectation."""
        edges = self._edges
        a, b = edges.sources, edges.targets
        for _ in range(_ROUNDS):
            for scale in (np.ones(len(a)), self._expected):
                squares = np.maximum(edges.at_nodes(scale**2), 1e-12)
                term = edges.at_nodes(scale * values) / squares / 2
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


def _coarsened(inside: Floats, outside: Floats) -> list[tuple[Floats, Floats]]:
    """Return tables of fewer groups, and of two bins."""
    tables = []
    n_groups = len(inside)
    while n_groups:
        joined = [table.reshape(n_groups, -1, table.shape[1]).sum(1) for table in (inside, outside)]
        tables.append((joined[0], joined[1]))
        for cut in _HALVES:
            halves = [
                np.stack([table[:, :cut].sum(1), table[:, cut:].sum(1)], 1) for table in joined
            ]
            tables.append((halves[0], halves[1]))
        n_groups //= 4
    return tables


def _log_factor(inside: Floats, outside: Floats) -> float:
    """Return the log Bayes factor of two distributions a group against one."""
    both = _log_evidence(inside) + _log_evidence(outside)
    return both - _log_evidence(inside + outside)


def _log_evidence(counts: Floats) -> float:
    """Return the log-probability of draws with these counts, a row a distribution."""
    from scipy.special import gammaln

    n_bins = counts.shape[1]
    total = gammaln(n_bins * _PRIOR) - gammaln(counts.sum(1) + n_bins * _PRIOR)
    return float(total.sum() + (gammaln(counts + _PRIOR) - gammaln(_PRIOR)).sum())
