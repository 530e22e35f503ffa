"""How well two partitions agree: scikit-learn's values, in far less time for small graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust._statistics import agreement

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["agreement", "information"]


def information(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Return the normalised mutual information (NMI): shared information over the mean entropy.

    It is not corrected for chance: many small clusters have some with any partition, and singletons
    a lot.

    Examples
    --------
    >>> information(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    0.0
    """
    ours, theirs, both = map(_entropy, _groups(truth, labels))
    if ours == theirs == 0.0:
        return 1.0
    shared = ours + theirs - both
    return 0.0 if shared <= 1e-12 else min(1.0, 2.0 * shared / (ours + theirs))


def _groups(
    truth: NDArray[np.int64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Number the groups of the one, of the other, and their intersections."""
    ours = np.unique(truth, return_inverse=True)[1]
    theirs = np.unique(labels, return_inverse=True)[1]
    return ours, theirs, ours * (theirs.max(initial=0) + 1) + theirs


def _entropy(groups: NDArray[np.int64]) -> float:
    shares = np.unique(groups, return_counts=True)[1] / len(groups)
    return max(0.0, -float(shares @ np.log(shares)))
