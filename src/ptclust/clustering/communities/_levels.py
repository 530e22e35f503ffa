"""Finer and coarser partitions than the best, as far as unseen weights support them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust._statistics import distinct, majority
from ptclust.clustering.communities._trial import CLEAR, SMALLEST, Found, Trial

if TYPE_CHECKING:
    from ptclust._types import Ints

# Nats by which a cluster that is divided, or clusters that are joined, must be supported.
_ENOUGH = 5.0
# Levels on either side, at most.
_MOST = 4
# Clusters of which some may be one, at least.
_FEWEST = 4


def finer_levels(trial: Trial, labels: Ints) -> list[tuple[Ints, float]]:
    """Return ever finer partitions, and by how many nats each is supported over the one before."""
    levels: list[tuple[Ints, float]] = []
    while len(levels) < _MOST:
        divided, nats = _divided(trial, labels)
        if divided is None:
            break
        levels.append((divided, nats))
        labels = divided
    return levels


def _divided(whole: Trial, labels: Ints) -> tuple[Ints | None, float]:
    """Return the partition in which every cluster is divided that holds others, and its nats."""
    inside = whole.divided(labels)
    if inside is None:
        return None, 0.0
    trial, candidates = inside
    own, n_clusters = labels[trial.edges.sources], int(labels.max()) + 1
    best, part = np.full(n_clusters, _ENOUGH), np.zeros(len(labels), np.int64)
    for found in candidates:
        together = found.together[trial.held]
        nats = trial.judge.weights_tell_by(together, trial.held, own, n_clusters)
        better = nats > best
        if not better.any():
            continue
        deviations = trial.judge.deviations_by(found.together, found.by_fold, own, n_clusters)
        better &= deviations >= CLEAR
        part = np.where(better[labels], found.labels, part)
        best = np.where(better, nats, best)
    if not part.any():
        return None, 0.0
    # Parts of different clusters are different, also if two candidates gave them one number.
    numbers, divided = np.unique(labels * len(labels) + part, return_inverse=True)
    if len(numbers) == n_clusters:
        return None, 0.0
    return divided, float(best[best > _ENOUGH].sum())


def coarser_levels(trial: Trial, found: Found, candidates: list[Found]) -> list[Found]:
    """Return ever coarser partitions, coarsest first: what candidates make of these clusters."""
    levels: list[Found] = []
    while found.by_fold and len(levels) < _MOST:
        joined = _joined(trial, found, candidates)
        if joined is None:
            break
        levels.insert(0, joined)
        found = joined
    return levels


def _joined(trial: Trial, found: Found, candidates: list[Found]) -> Found | None:
    """Return the partition in which those clusters are one that weights between them join best.

    Every cluster goes where a candidate has most of its nodes. Only edges between clusters are
    asked, which have not been seen, and compared among each other.
    """
    across = trial.held[~found.together[trial.held]]
    n_clusters = len(distinct(found.labels)[0])
    if len(across) < SMALLEST or n_clusters < _FEWEST:
        return None
    coarser = [
        (labels, by_fold)
        for labels, *by_fold in (_followed(found, candidate) for candidate in candidates)
        if 1 < len(distinct(labels)[0]) < n_clusters
    ]
    if not coarser:
        return None
    judge = trial.judge_across(found, across)
    best, most = None, _ENOUGH
    for labels, by_fold in coarser:
        together = trial.together(by_fold)
        nats = judge.weights_tell(together[across], np.arange(len(across)))
        within = trial.held[together[trial.held]]
        if trial.judge.weights_tell(found.together[within], within) < _ENOUGH:
            continue  # of two levels, each has to say something
        if nats > most and judge.deviations(together[across], by_fold) >= CLEAR:
            best, most = trial.found(labels, tuple(by_fold)), nats
    return best


def _followed(found: Found, candidate: Found) -> list[Ints]:
    """Return the partitions of one in which every cluster goes where the other has most of it."""
    ours, theirs = (found.labels, *found.by_fold), (candidate.labels, *candidate.by_fold)
    return [majority(one, other) for one, other in zip(ours, theirs, strict=True)]
