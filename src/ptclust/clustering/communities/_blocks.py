"""Blocks of patches: clusters of which every pair may have weights of its own.

Two levels of weights, within clusters and across, do not describe clusters of several scales: edges
across two light clusters are as light as those within a heavy one. In a stochastic block model
every pair of clusters has a distribution of weights, here over bins. What is clustered are patches,
groups of nodes that the topology joins: in much noise a node has too few edges to tell where it
belongs.

All patches are one cluster at first. Then, as long as the likelihood, with all distributions
integrated out, gains more than it costs to name the cluster of every patch (Daudin, Picard and
Robin, A mixture model for random graphs, 2008),

1.  clusters are divided in two, by the leading eigenvector of their weights beyond the mean; what
    gains nothing by it stays one;
2.  patches move to the cluster in which their edges are likeliest;
3.  clusters become one where that gains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering.communities._judge import BINS, CUTS, log_evidence

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ptclust._types import Floats, Ints
    from ptclust.clustering.communities._weights import Edges

# The middle of every bin among all edges, from 0 to 1: for the eigenvector tails do not matter.
_RANKS = (np.append(0.0, CUTS) + np.append(CUTS, 1.0)) / 2
# Rounds of the power method.
_POWERS = 60
# Log-likelihoods are divided by these, round by round: at first no patch is certain of its cluster.
_WARMTH = 4.0, 4.0, 4.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0
# Pseudo-edges that draw what is learned of a pair towards all edges within, or all across.
_SMOOTHING, _PRIOR = 4.0, 0.5
# With more clusters than these, pairs have few edges; none is divided.
_MOST = 32


class Blocks:
    """Patches 0, 1, ... and the edges between and within them, in bins of like weight."""

    def __init__(self, edges: Edges, patch: Ints, bins: Ints) -> None:
        self._n, self._bins = int(patch.max()) + 1, bins
        self._a, self._b = a, b = patch[edges.sources], patch[edges.targets]
        inner = np.flatnonzero(a == b)
        counts = np.bincount(a[inner] * BINS + bins[inner], minlength=self._n * BINS)
        self._inner = counts.reshape(-1, BINS).astype(np.float64)
        by_bin = (np.flatnonzero((a != b) & (bins == each)) for each in range(BINS))
        self._near = [self._sums(some, np.ones(len(some))) for some in by_bin]

    def search(self) -> Ints:
        """Return the cluster of every patch: one, if no more are worth their naming."""
        labels = np.zeros(self._n, np.int64)
        while labels.max() < _MOST:
            divided = self._divided(labels)
            moved = _numbered(self._settled(_memberships(divided)))
            found = self._merged(max((divided, moved), key=self.value))
            if self.value(found) <= self.value(labels):
                break
            labels = found
        return labels

    def value(self, labels: Ints) -> float:
        """Return the integrated log-likelihood of all edges, less the naming of clusters."""
        from scipy.special import xlogy

        sizes = np.bincount(labels)
        evidence = np.logaddexp.reduce(evidences(self.table(_memberships(labels))))
        return float(evidence + xlogy(sizes, sizes / self._n).sum())

    def table(self, share: Floats) -> Floats:
        """Return how many edges join two clusters, by bin; those within count once.

        ``share`` is how much of every patch is in every cluster.
        """
        table = np.stack([share.T @ (near @ share) for near in self._near], axis=2)
        each = np.arange(len(table))
        table[each, each] = table[each, each] / 2 + share.T @ self._inner
        return table

    def _divided(self, labels: Ints) -> Ints:
        """Return the partition in which every cluster is two that gains by it."""
        from scipy.special import xlogy

        halves = np.arange(2 * int(labels.max()) + 2)
        start = (2 * labels + self._sides(labels))[:, None] == halves
        within = np.where(labels[:, None] == halves // 2, 0.0, -np.inf)
        found = self._settled(start.astype(np.float64), within)
        sizes = np.bincount(found, minlength=len(halves)).reshape(-1, 2)
        costs = xlogy(sizes.sum(1), sizes.sum(1)) - xlogy(sizes, sizes).sum(1)
        share = (found[:, None] == halves).astype(np.float64)
        is_divided = (gains_of_halves(self.table(share)) > costs) & sizes.all(1)
        return _numbered(np.where(is_divided[labels], found, 2 * labels))

    def _merged(self, labels: Ints) -> Ints:
        """Return the partition in which pairs of clusters are one that gain by it, best first."""
        from scipy.special import xlogy

        while labels.max() > 0:
            sizes = np.bincount(labels)
            both = sizes[:, None] + sizes
            alone = xlogy(sizes, sizes)
            gains = gains_of_merging(self.table(_memberships(labels)))
            gains += xlogy(both, both) - alone[:, None] - alone
            one, other = np.unravel_index(np.argmax(np.triu(gains, 1)), gains.shape)
            if one == other or gains[one, other] <= 0:
                break
            labels = _numbered(np.where(labels == other, one, labels))
        return labels

    def _sides(self, labels: Ints) -> Ints:
        """Return the side of its cluster, 0 or 1, on which an eigenvector has every patch."""
        own, n_clusters = labels[self._a], int(labels.max()) + 1
        inside = np.flatnonzero((own == labels[self._b]) & (self._a != self._b))
        own, rank = own[inside], _RANKS[self._bins[inside]]
        count = np.maximum(np.bincount(own, minlength=n_clusters), 1)
        excess = self._sums(inside, rank - (np.bincount(own, rank, n_clusters) / count)[own])
        # Noise has no eigenvalues beyond this; with it, none that is negative is the largest.
        squares = np.bincount(labels, (excess * excess).sum(1)) / np.bincount(labels)
        shift = 2.0 * np.sqrt(squares)[labels]
        vector = np.random.default_rng(0).standard_normal(self._n)
        for _ in range(_POWERS):
            vector = excess @ vector + shift * vector
            norm = np.sqrt(np.bincount(labels, vector**2))
            vector /= np.maximum(norm, 1e-300)[labels]
        return (vector > 0).astype(np.int64)

    def _sums(self, edges: Ints, values: Floats) -> csr_array:
        """Return the sums of the values of these edges between patches, in both directions."""
        from scipy.sparse import csr_array

        ends = self._a[edges], self._b[edges]
        one_way = csr_array((values, ends), shape=(self._n, self._n))
        return one_way + one_way.T

    def _settled(self, share: Floats, log_chance: Floats | float = 0.0) -> Ints:
        """Return the cluster in which every patch is likeliest, given where the others are.

        Before the last round it is in all clusters, in proportion to likelihood times chance.
        """
        from scipy.special import softmax

        for warmth in _WARMTH:
            share = softmax(self._log_likelihoods(share) / warmth + log_chance, axis=1)
        likeliest: Ints = share.argmax(1)
        return likeliest

    def _log_likelihoods(self, share: Floats) -> Floats:
        """Return those of every patch and its edges in every cluster."""
        log_shares = _log_shares(self.table(share))
        likelihoods = self._inner @ np.einsum("kkb->bk", log_shares)
        for number, near in enumerate(self._near):
            likelihoods += near @ share @ log_shares[:, :, number]
        of_patch: Floats = likelihoods + np.log(np.maximum(share.mean(0), 1e-9))
        return of_patch


def evidences(table: Floats) -> Floats:
    """Return the integrated log-likelihoods of edges that join these clusters, in these bins.

    There are distributions of edges within and across; of every cluster and across; or of every
    pair. Which of these is so, is as unknown as the distributions are.
    """
    within, pairs = np.einsum("kkb->kb", table), table[np.triu_indices(len(table), 1)]
    one, across = within.sum(0, keepdims=True), pairs.sum(0, keepdims=True)
    kinds = (one, across), (within, across), (within, pairs)
    return np.array([sum(log_evidence(each).sum() for each in kind) for kind in kinds])


def gains_of_halves(table: Floats) -> Floats:
    """Return what every cluster gains in log-likelihood if it alone is divided.

    The table is of the two halves of every cluster.
    """
    n_clusters = len(table) // 2
    each = np.arange(n_clusters)
    halves = table.reshape(n_clusters, 2, n_clusters, 2, BINS)
    inside = halves[each, :, each]
    first, second, cut = inside[:, 0, 0], inside[:, 1, 1], inside[:, 0, 1]
    to_clusters = halves.sum(3)
    whole = to_clusters.sum(1)
    whole[each, each] = within = first + second + cut
    across = whole[np.triu_indices(n_clusters, 1)].sum(0)
    # If each half has its own distribution, for edges within it and to others; and if edges between
    # the halves are no longer some of those within, but of those across.
    of_halves = log_evidence(first) + log_evidence(second) - log_evidence(within)
    to_others = log_evidence(to_clusters).sum(1) - log_evidence(whole)
    to_others[each, each] = log_evidence(cut)
    leaving = log_evidence(within.sum(0) - cut) - log_evidence(within.sum(0))
    joining = log_evidence(across + cut) - log_evidence(across)
    gains = np.stack([leaving + joining, of_halves + joining, of_halves + to_others.sum(1)])
    before = evidences(whole)[:, None]
    divided: Floats = np.logaddexp.reduce(before + gains) - np.logaddexp.reduce(before)
    return divided


def gains_of_merging(table: Floats) -> Floats:
    """Return what every pair of clusters gains in log-likelihood if it alone becomes one."""
    each = np.arange(len(table))
    within, alone = table[each, each], log_evidence(table)
    inside, across = within.sum(0), table[np.triu_indices(len(table), 1)].sum(0)
    joining = log_evidence(inside + table) - log_evidence(inside)
    leaving = log_evidence(np.maximum(across - table, 0.0)) - log_evidence(across)
    own = alone[each, each]
    of_pair = log_evidence(within[:, None] + within + table) - own[:, None] - own
    to_others = log_evidence(table[:, None] + table) - alone[:, None] - alone
    to_others[each, :, each] = to_others[:, each, each] = 0.0
    gains = np.stack([joining + leaving, of_pair + leaving, of_pair - alone + to_others.sum(2)])
    before = evidences(table)[:, None, None]
    merged: Floats = np.logaddexp.reduce(before + gains) - np.logaddexp.reduce(before)
    return merged


def _log_shares(table: Floats) -> Floats:
    """Return the log-shares of bins for every pair of clusters, smoothed towards its kind."""
    is_within = np.eye(len(table), dtype=bool)
    smoothed = table.copy()
    for pairs in (is_within, ~is_within):
        counts = table[pairs].sum(0) + _PRIOR
        smoothed[pairs] += _SMOOTHING * counts / counts.sum()
    log_shares: Floats = np.log(smoothed / smoothed.sum(2, keepdims=True))
    return log_shares


def _memberships(labels: Ints) -> Floats:
    """Return a row for every patch: 1 at its cluster, 0 at others."""
    return np.eye(int(labels.max()) + 1)[labels]


def _numbered(labels: Ints) -> Ints:
    """Return labels without gaps."""
    return np.unique(labels, return_inverse=True)[1]
