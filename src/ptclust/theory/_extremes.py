"""The edges of a graph as the clusters of a partition see them, and the heaviest and lightest of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptclust.theory.partition import Partition


@dataclass(frozen=True, eq=False)
class Ends:
    """Edges as their clusters see them: one within a cluster once, one between two clusters from both sides."""

    within: tuple[NDArray[np.int64], NDArray[np.float64]]
    """Cluster and weight."""
    leaving: tuple[NDArray[np.int64], NDArray[np.float64]]
    """Cluster and weight."""

    @classmethod
    def of(
        cls,
        sources: NDArray[Any],
        targets: NDArray[Any],
        weights: NDArray[np.float64],
        partition: Partition,
    ) -> Ends:
        """Sort edges into those within and those between the clusters of a partition."""
        a, b = partition.cluster[sources], partition.cluster[targets]
        within, between = np.flatnonzero(a == b), np.flatnonzero(a != b)
        left = np.concatenate([a[between], b[between]])
        return cls((a[within], weights[within]), (left, np.tile(weights[between], 2)))


def heaviest_of(
    n_clusters: int, clusters: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the heaviest weight of every cluster; 0 if it has none."""
    result = np.zeros(n_clusters)
    np.maximum.at(result, clusters, weights)
    return result


def lightest_of(
    n_clusters: int, clusters: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the lightest weight of every cluster; infinite if it has none."""
    result = np.full(n_clusters, np.inf)
    np.minimum.at(result, clusters, weights)
    return result
