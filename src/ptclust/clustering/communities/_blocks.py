"""Blocks of patches: clusters of which every pair may have weights of its own.

Two levels, within clusters and across, do not describe nested scales: edges across two light
clusters are as light as those within a heavy one. In a stochastic block model every pair of
clusters has a distribution of weights, here over bins. Its units are patches, groups of nodes that
the topology joins, as single nodes have too few edges to tell where they belong in much noise.

All patches are one cluster at first. Then, as long as the likelihood, with all distributions
integrated out, gains more than it costs to name the cluster of every patch (the criterion of
Daudin, Picard and Robin 2008),

1.  every cluster is divided in two by the leading eigenvector of its weights beyond their mean, and
    patches change sides until none gains;
2.  patches move to the clusters in which their edges are likeliest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering.communities._judge import BINS, log_evidence

if TYPE_CHECKING:
    from ptclust._types import Floats, Ints

# Rounds in which patches change sides or clusters, at most, and of the power method.
_ROUNDS, _POWERS = 20, 60
# More clusters than these are not divided: most pairs of them have few edges or none.
_MOST = 256
# Pseudo-edges that draw what is learned of a pair towards all within, or all across.
_SMOOTHING = 4.0


class Blocks:
    """Patches 0, 1, ... and the edges between and within them, in bins of like weight."""

    def __init__(self, sources: Ints, targets: Ints, weights: Floats, bins: Ints) -> None:
        from scipy.sparse import csr_array

        self._ends, self._bins, self._n = (sources, targets), bins, int(sources.max()) + 1
        self._n = max(self._n, int(targets.max()) + 1)
        within = sources == targets
        self._inner = np.zeros((self._n, BINS))
        np.add.at(self._inner, (sources[within], bins[within]), 1.0)
        a, b, of_bin, self._weights = (
            each[~within] for each in (sources, targets, bins, weights)
        )
        self._joins = a, b
        self._near = [
            csr_array((np.ones(len(x)), (x, y)), shape=(self._n, self._n))
            for x, y in (
                (np.concatenate([a[each], b[each]]), np.concatenate([b[each], a[each]]))
                for each in (of_bin == number for number in range(BINS))
            )
        ]

    def search(self) -> Ints:
        """Return the cluster of every patch: one, if no more are worth their naming."""
        labels = np.zeros(self._n, np.int64)
        value = self._value(labels)
        while labels.max() < _MOST:
            found, better = self._moved(self._divided(labels))
            if better <= value:
                break
            labels, value = found, better
        return labels

    def _divided(self, labels: Ints) -> Ints:
        """Return the partition in which every cluster is two that gains by it."""
        from scipy.special import xlogy

        each, n_halves = np.arange(self._n), 2 * int(labels.max()) + 2
        halves = 2 * labels + self._sides(labels)
        for _ in range(_ROUNDS):
            likely = self._likelihoods(halves, n_halves)
            is_second = likely[each, 2 * labels + 1] > likely[each, 2 * labels]
            before, halves = halves, 2 * labels + is_second
            if np.array_equal(before, halves):
                break
        sizes = np.bincount(halves, minlength=n_halves).reshape(-1, 2)
        costs = xlogy(sizes.sum(1), sizes.sum(1)) - xlogy(sizes, sizes).sum(1)
        is_divided = (_gains(self._table(halves, n_halves)) > costs) & sizes.all(1)
        return _numbered(np.where(is_divided[labels], halves, 2 * labels))

    def _sides(self, labels: Ints) -> Ints:
        """Return for every patch the side of its cluster on which the eigenvector has it."""
        from scipy.sparse import csr_array

        a, b = self._joins
        inside = labels[a] == labels[b]
        a, b, weights = a[inside], b[inside], self._weights[inside]
        own, n_clusters = labels[a], int(labels.max()) + 1
        count = np.maximum(np.bincount(own, minlength=n_clusters), 1)
        weights = weights - (np.bincount(own, weights, n_clusters) / count)[own]
        ends = np.concatenate([a, b]), np.concatenate([b, a])
        excess = csr_array((np.concatenate([weights, weights]), ends), shape=(self._n, self._n))
        # Of weights that are noise all eigenvalues are within this; beyond it they are positive.
        squares = np.bincount(labels, (excess * excess).sum(1)) / np.bincount(labels)
        shift = 2.0 * np.sqrt(squares)[labels]
        vector = np.random.default_rng(0).standard_normal(self._n)
        for _ in range(_POWERS):
            vector = excess @ vector + shift * vector
            norm = np.sqrt(np.bincount(labels, vector**2))
            vector /= np.maximum(norm, 1e-300)[labels]
        return (vector > 0).astype(np.int64)

    def _moved(self, labels: Ints) -> tuple[Ints, float]:
        """Move patches to where they are likeliest as long as all gain; return the value too."""
        value = self._value(labels)
        for _ in range(_ROUNDS):
            n_clusters = int(labels.max()) + 1
            likely = self._likelihoods(labels, n_clusters) + np.log(np.bincount(labels) / self._n)
            found = _numbered(likely.argmax(1))
            better = self._value(found)
            if better <= value:
                break
            labels, value = found, better
        return labels, value

    def _likelihoods(self, labels: Ints, n_clusters: int) -> Floats:
        """Return the log-likelihood of the edges of every patch in every cluster."""
        shares = _log_shares(self._table(labels, n_clusters))
        own = np.einsum("kkb->bk", shares)
        clusters = np.eye(n_clusters)[labels]
        likely = self._inner @ own
        for number, near in enumerate(self._near):
            likely += near @ clusters @ shares[:, :, number]
        return likely

    def _value(self, labels: Ints) -> float:
        """Return the integrated log-likelihood of all edges, less the naming of clusters."""
        from scipy.special import xlogy

        n_clusters = int(labels.max()) + 1
        evidence = np.logaddexp.reduce(_evidences(self._table(labels, n_clusters)))
        sizes = np.bincount(labels)
        return float(evidence + xlogy(sizes, sizes / self._n).sum())

    def _table(self, labels: Ints, n_clusters: int) -> Floats:
        """Return how many edges join two clusters, by bin; those within count once."""
        a, b = (labels[each] for each in self._ends)
        cell = (np.minimum(a, b) * n_clusters + np.maximum(a, b)) * BINS + self._bins
        counts = np.bincount(cell, minlength=n_clusters**2 * BINS).astype(np.float64)
        upper = counts.reshape(n_clusters, n_clusters, BINS)
        both: Floats = upper + upper.transpose(1, 0, 2)
        both[np.diag_indices(n_clusters)] /= 2
        return both


def _evidences(table: Floats) -> Floats:
    """Return the integrated log-likelihoods if pairs of clusters have distributions of their own.

    Of edges within and across; of those within every cluster, and across; of every pair.
    """
    n_clusters = len(table)
    within, pairs = np.einsum("kkb->kb", table), table[np.triu_indices(n_clusters, 1)]
    all_within, across = within.sum(0, keepdims=True), pairs.sum(0, keepdims=True)
    kinds = (all_within, across), (within, across), (within, pairs)
    return np.array([sum(log_evidence(each).sum() for each in kind) for kind in kinds])


def _gains(table: Floats) -> Floats:
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
    # What the edges of a cluster gain if each half has its own distribution; to other clusters; and
    # if those between the halves count as across, and no longer as within.
    of_halves = log_evidence(first) + log_evidence(second) - log_evidence(within)
    to_others = log_evidence(to_clusters).sum(1) - log_evidence(whole)
    to_others[each, each] = log_evidence(cut)
    joining = log_evidence(across + cut) - log_evidence(across)
    leaving = log_evidence(within.sum(0) - cut) - log_evidence(within.sum(0))
    gains = np.stack([leaving + joining, of_halves + joining, of_halves + to_others.sum(1)])
    before = _evidences(whole)[:, None]
    divided: Floats = np.logaddexp.reduce(before + gains) - np.logaddexp.reduce(before)
    return divided


def _log_shares(table: Floats) -> Floats:
    """Return the log-shares of bins for every pair of clusters.

    They are smoothed towards those of all edges within, or of all across.
    """
    is_within = np.eye(len(table), dtype=bool)
    smoothed = table.copy()
    for pairs in (is_within, ~is_within):
        counts = table[pairs].sum(0) + 0.5
        smoothed[pairs] += _SMOOTHING * counts / counts.sum()
    shares: Floats = np.log(smoothed / smoothed.sum(2, keepdims=True))
    return shares


def _numbered(labels: Ints) -> Ints:
    """Return labels without gaps."""
    return np.unique(labels, return_inverse=True)[1]
