"""Clusters join as long as a distribution of weights for every pair of them becomes likelier.

The model is a block model with bins of weights (Peixoto 2018): every pair of clusters, and every
cluster, has a distribution of its own, drawn towards that of all edges within, or all across. Its
evidence is known in closed form, and a join changes only what the two clusters have to do with
others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._kernel import kernel
from ptclust.clustering.communities._model import BINS

if TYPE_CHECKING:
    from ptclust._types import Array, Bools, Floats, Ints

# Pseudo-edges that draw the distribution of a pair towards that of all within, or all across.
_SMOOTHING = 10.0
#: Among more clusters, pairs have too few edges.
MOST = 64


def join_blocks(labels: Ints, a: Ints, b: Ints, bins: Ints) -> Ints:
    """Return the clusters joined.

    ``a`` and ``b`` are the clusters at the two ends of edges, ``bins`` those of their weights.
    Clusters with an edge between them can join, and gain log n by it, n being the number of nodes.
    """
    n_clusters = int(labels.max()) + 1
    counts = pair_counts(a, b, bins, n_clusters)
    root = join_pairs(counts, *_within_and_across(counts), math.log(len(labels)))
    return np.unique(root[labels], return_inverse=True)[1]


def pair_counts(a: Ints, b: Ints, bins: Array, n_clusters: int) -> Floats:
    """Return how many edges every pair of clusters has in every bin."""
    cell = (np.minimum(a, b) * n_clusters + np.maximum(a, b)) * BINS + bins
    upper = np.bincount(cell, minlength=n_clusters**2 * BINS).astype(np.float64)
    upper = upper.reshape(n_clusters, n_clusters, BINS)
    own = np.diag_indices(n_clusters)
    counts: Floats = upper + upper.transpose(1, 0, 2)
    counts[own] = upper[own]
    return counts


def _within_and_across(counts: Floats) -> tuple[Floats, Floats]:
    """Return the pseudo-edges of a cluster, and those of a pair of clusters."""
    within = counts[np.diag_indices(len(counts))].sum(0)
    across = (counts.sum((0, 1)) - within) / 2
    return _SMOOTHING * shares_of(within), _SMOOTHING * shares_of(across)


def priors_of(counts: Floats) -> Floats:
    """Return the pseudo-edges of every pair of clusters."""
    is_within = np.eye(len(counts), dtype=bool)[:, :, None]
    return np.where(is_within, *_within_and_across(counts))


def log_evidence_of(counts: Floats) -> float:
    """Return the log-probability of the bins of all edges, given their clusters."""
    from scipy.special import gammaln

    pairs = np.triu_indices(len(counts))
    prior, drawn = priors_of(counts)[pairs], counts[pairs]
    alone = gammaln(drawn + prior) - gammaln(prior)
    total = gammaln(prior.sum(1)) - gammaln((drawn + prior).sum(1))
    return float(alone.sum() + total.sum())


def shares_of(counts: Floats) -> Floats:
    """Return the shares of bins, with Jeffreys' prior."""
    smoothed = counts + 0.5
    shares: Floats = smoothed / smoothed.sum()
    return shares


@kernel
def log_evidence(first: Floats, second: Floats, prior: Floats) -> float:
    """Return the log-probability of draws with the sums of two counts, shares being Dirichlet."""
    total, smoothing, value = 0.0, 0.0, 0.0
    for i in range(len(prior)):
        count = first[i] + second[i]
        smoothing += prior[i]
        if count > 0:
            total += count
            value += math.lgamma(count + prior[i]) - math.lgamma(prior[i])
    return value + math.lgamma(smoothing) - math.lgamma(smoothing + total)


class Blocks(NamedTuple):
    """What is known of every pair of clusters, and of every cluster on the diagonal."""

    counts: Floats
    total: Floats
    evidence: Floats
    is_root: Bools


@kernel
def gain_at(blocks: Blocks, across: Floats, a: int, b: int, other: int) -> float:
    """Return what a join of two clusters gains at their edges to another one."""
    counts, total, evidence, _ = blocks
    if total[a, other] == 0.0 or total[b, other] == 0.0:
        return 0.0
    both: float = log_evidence(counts[a, other], counts[b, other], across)
    both -= evidence[a, other] + evidence[b, other]
    return both


@kernel
def gain_of(blocks: Blocks, within: Floats, across: Floats, price: float, a: int, b: int) -> float:
    """Return what a join of two clusters gains."""
    counts, _, evidence, is_root = blocks
    value: float = price + log_evidence(counts[a, a] + counts[a, b], counts[b, b], within)
    value -= evidence[a, a] + evidence[b, b] + evidence[a, b]
    for other in range(len(counts)):
        if is_root[other] and other != a and other != b:
            value += gain_at(blocks, across, a, b, other)
    return value


@kernel
def join(blocks: Blocks, within: Floats, across: Floats, first: int, second: int) -> None:
    """Make two clusters one: the first."""
    counts, total, evidence, is_root = blocks
    nothing = np.zeros(len(within))
    is_root[second] = False
    own = counts[first, first] + counts[second, second] + counts[first, second]
    for other in range(len(counts)):
        counts[first, other] += counts[second, other]
        counts[other, first] = counts[first, other]
        total[first, other] = counts[first, other].sum()
        total[other, first] = total[first, other]
        evidence[first, other] = log_evidence(counts[first, other], nothing, across)
        evidence[other, first] = evidence[first, other]
    counts[first, first], total[first, first] = own, own.sum()
    evidence[first, first] = log_evidence(own, nothing, within)


@kernel
def join_pairs(counts: Floats, within: Floats, across: Floats, price: float) -> Ints:
    """Join the two clusters that gain most until none gain; return the root of every cluster."""
    n_clusters, nothing = len(counts), np.zeros(len(within))
    shape = n_clusters, n_clusters
    blocks = Blocks(counts, np.zeros(shape), np.zeros(shape), np.ones(n_clusters, np.bool_))
    _, total, evidence, is_root = blocks
    for a in range(n_clusters):
        for b in range(n_clusters):
            total[a, b] = counts[a, b].sum()
            evidence[a, b] = log_evidence(counts[a, b], nothing, within if a == b else across)
    gain = np.zeros(shape)  # of a join, where the first is the larger number
    for a in range(n_clusters):
        for b in range(a):
            gain[a, b] = gain_of(blocks, within, across, price, a, b)
    root = np.arange(n_clusters)
    while True:
        best, first, second = 0.0, -1, -1
        for a in range(n_clusters):
            for b in range(a):
                if is_root[a] and is_root[b] and total[a, b] > 0 and gain[a, b] > best:
                    best, first, second = gain[a, b], b, a
        if first < 0:
            return root
        # Others lose what they gained at the two, and get what they gain at the one of both.
        for is_joined in (False, True):
            if is_joined:
                join(blocks, within, across, first, second)
                root[root == second] = first
            for a in range(n_clusters):
                for b in range(a):
                    if is_root[a] and is_root[b] and first not in (a, b) and second not in (a, b):
                        value = gain_at(blocks, across, a, b, first)
                        if is_joined:
                            gain[a, b] += value
                        else:
                            gain[a, b] -= value + gain_at(blocks, across, a, b, second)
        for other in range(n_clusters):
            if is_root[other] and other != first:
                a, b = max(first, other), min(first, other)
                gain[a, b] = gain_of(blocks, within, across, price, a, b)
