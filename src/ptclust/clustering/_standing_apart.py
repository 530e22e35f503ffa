"""Clusters within clusters, or only the light and the heavy parts of one? The true weights tell, as far as noise lets.

Where weights are distances, light edges lie near each other: there is always a way to divide a cluster such that the
edges across are heavier than the others, by more than chance. They are then the upper end of a spread, not a level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust.clustering._evidence import pairs_of_clusters
from ptclust.clustering.levels import APART

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptclust.clustering.levels import NoisyWeights

# Standard errors by which a variance must exceed that of the noise to be one of true weights.
_SURE = 2.0


def join_spread(
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
