"""Agreement of two partitions, intervals of probabilities, seeds of simulations."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from ptclust._types import Floats, Ints

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def agreement(truth: Ints, labels: Ints) -> float:
    """Return the adjusted Rand index (ARI): 1 for the same partition, about 0 for an unrelated one.

    The value of scikit-learn's ``adjusted_rand_score``, which takes far longer for small graphs.

    >>> agreement(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    n = len(truth)
    ours, theirs = (each - each.min(initial=0) for each in (truth, labels))

    def ordered_pairs(groups: Ints) -> int:
        sizes = np.unique(groups, return_counts=True)[1]
        return int(sizes @ sizes) - n

    together = ordered_pairs(ours * (theirs.max(initial=0) + 1) + theirs)
    only_ours, only_theirs = ordered_pairs(ours) - together, ordered_pairs(theirs) - together
    if only_ours == only_theirs == 0:
        return 1.0
    apart = n * (n - 1) - together - only_ours - only_theirs
    above = 2 * (together * apart - only_ours * only_theirs)
    below = (together + only_ours) * (only_ours + apart)
    return above / (below + (together + only_theirs) * (only_theirs + apart))


def clopper_pearson(successes: ArrayLike, trials: int, error: float) -> tuple[Floats, Floats]:
    """Return bounds on a probability, low and high; each errs with probability ``error`` at most.

    >>> low, high = clopper_pearson([0, 5, 10], 10, 0.025)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187, 0.692], [0.308, 0.813, 1.0])
    """
    from scipy.special import betaincinv

    seen = np.asarray(successes, dtype=np.float64)
    some, not_all = np.maximum(seen, 1.0), np.minimum(seen, trials - 1.0)
    low = np.where(seen > 0, betaincinv(some, trials - some + 1.0, error), 0.0)
    # Successes are bounded above by failures below: both tails keep their relative precision.
    fewest = betaincinv(trials - not_all, not_all + 1.0, error)
    return low, np.where(seen < trials, 1.0 - fewest, 1.0)


def seed_of(*parts: object) -> int:
    """Return a seed that belongs to these parts, and looks random.

    >>> seed_of(0, "noise") == seed_of(0, "noise") != seed_of(1, "noise")
    True
    """
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=7).digest())
