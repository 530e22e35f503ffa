"""The judge: how many nats weights that a partition has not seen say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering.communities._blocks import MOST, pair_counts, priors_of, shares_of
from ptclust.clustering.communities._model import BINS, CUTS, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptclust._types import Array, Bools, Floats, Ints

# Bins are also tried as two, divided at these shares.
_HALVES = np.searchsorted(CUTS, [0.5, 0.75, 0.875]) + 1
# Jeffreys' prior of a share.
_PRIOR = 0.5


def nats_of(together: Bools, tables: Sequence[Table]) -> float:
    """Return by how many nats unseen weights support two distributions, together and apart.

    That is the logarithm of the Bayes factor against one distribution in every group, on average
    over coarser and finer tables. Where a partition has nothing to do with weights it exceeds x
    with a chance of at most exp(-x).
    """
    factors = []
    for table in tables:
        within, across = counts_of(table, together)
        factors.append(_log_factor(within, across))
        factors += [_log_factor(_halves(within, cut), _halves(across, cut)) for cut in _HALVES]
    return float(np.logaddexp.reduce(factors) - np.log(len(factors)))


def counts_of(table: Table, together: Bools) -> tuple[Floats, Floats]:
    """Return how many edges are together and apart, by group and bin."""
    size = table.n_groups * BINS
    within, both = (
        np.bincount(cells, minlength=size).reshape(-1, BINS).astype(np.float64)
        for cells in (table.cell[together], table.cell)
    )
    return within, both - within


def _halves(counts: Floats, cut: int) -> Floats:
    return np.stack([counts[:, :cut].sum(1), counts[:, cut:].sum(1)], 1)


def _log_factor(within: Floats, across: Floats) -> float:
    """Return the log Bayes factor of two distributions a group against one."""
    each = _log_evidence(within) + _log_evidence(across) - _log_evidence(within + across)
    return float(each.sum())


def _log_evidence(counts: Floats) -> Floats:
    """Return the log-probabilities of draws with these counts; bins are the last axis."""
    from scipy.special import gammaln

    n_bins = counts.shape[-1]
    total = gammaln(n_bins * _PRIOR) - gammaln(counts.sum(-1) + n_bins * _PRIOR)
    evidence: Floats = total + (gammaln(counts + _PRIOR) - gammaln(_PRIOR)).sum(-1)
    return evidence


def nats_of_pairs(seen: tuple[Ints, Ints, Array], unseen: tuple[Ints, Ints, Array]) -> float:
    """Return by how many nats a distribution for every pair of clusters predicts unseen weights.

    Both are the clusters at the two ends of edges, and the bins of their weights. Distributions are
    learned from edges that were seen, and compared with one distribution for all.
    """
    n_clusters = int(max(each.max(initial=0) for each in (*seen[:2], *unseen[:2]))) + 1
    if n_clusters > MOST:
        return -np.inf
    counts = pair_counts(*seen, n_clusters)
    alone = counts.sum((0, 1)) + counts[np.diag_indices(n_clusters)].sum(0)  # every edge twice
    shares = counts + priors_of(counts)
    shares /= shares.sum(-1, keepdims=True)
    a, b, bins = unseen
    return float(np.log(shares[a, b, bins] / shares_of(alone / 2)[bins]).sum())


def nats_of_topology(together: Bools, by_chance: Floats) -> float:
    """Return by how many nats the existence of unseen edges supports the clusters at their ends.

    ``by_chance`` is how likely each would be within a cluster if only the degrees mattered.
    """
    from scipy.special import betaln

    inside = int(together.sum())
    chance = np.clip(by_chance, 1e-9, 1 - 1e-9)
    alone = np.log(chance[together]).sum() + np.log1p(-chance[~together]).sum()
    prior = betaln(_PRIOR, _PRIOR)
    return float(betaln(inside + _PRIOR, len(together) - inside + _PRIOR) - prior - alone)
