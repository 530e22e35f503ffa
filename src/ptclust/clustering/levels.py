"""Two levels of weights, light and heavy, plus noise of a known size.

A released weight is a true one plus noise. Where clusters exist, edges within are light and edges
across heavy: a mixture of two modes, which the noise may have merged into one. Its scale and shape
are public, so the two levels can still be estimated from many weights.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._kernel import inlined, kernel
from ptclust.errors import WeightError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ptclust._types import Array, Floats, Ints
    from ptclust.privacy.noise import Noise

APART = 4.0
"""Levels closer than this many standard deviations of the true weights are but a spread.

A uniform stretch of weights that is cut in two gives 12^(1/2) = 3.5, a normal hump 2.7.
"""

# Bins are far narrower than noise that matters; the work does not depend on how many weights.
_BINS = 512
# Shares of the low level to start from: few or many edges within, and all between.
_STARTS = np.array([0.02, 0.15, 0.3, 0.5, 0.7, 0.85, 0.98])
# Noise so many times larger than all differences of weights drowns them; its square is a float.
_DROWNED = 1e100


class NoisyWeights(NamedTuple):
    """Released weights and what is known of their noise."""

    values: Floats
    deviation: float
    """Standard deviation of the noise."""
    is_laplace: bool
    """Whether the noise is Laplace; it is taken to be Gaussian otherwise."""

    @classmethod
    def of(cls, weights: ArrayLike, noise: Noise) -> NoisyWeights:
        """Return the weights from 0 to about 1, so that no square overflows and none vanishes.

        No cluster depends on shift or unit. The unit is a power of two, so that it rounds nothing.
        """
        values = np.array(weights, dtype=np.float64)
        if not np.isfinite(values).all():
            raise WeightError(
                "some released weights are NaN or infinite, which noise does not make of a weight: "
                "read the release again, or make another"
            )
        deviation = noise.standard_deviation
        for _ in range(2):  # what is large at first may be a common shift
            largest = max(-values.min(initial=0.0), values.max(initial=0.0))
            _, exponent = np.frexp(largest)
            np.ldexp(values, -exponent, out=values)
            deviation = np.ldexp(deviation, -exponent)
            values -= values.min(initial=np.inf if len(values) else 0.0)
        deviation = min(float(deviation), _DROWNED)
        return cls(values, deviation, noise.law.has_exponential_tails)

    def at(self, edges: Ints) -> NoisyWeights:
        """Return those of some edges."""
        return self._replace(values=self.values[edges])


class Levels(NamedTuple):
    """Two levels that explain weights."""

    log_likelihood: float
    share: float
    """Part of the weights on the low level."""
    low: float
    high: float
    variance: float
    """Of weights about their level: that of the noise plus that of the true weights."""

    @property
    def gap(self) -> float:
        """How far the levels are apart."""
        return self.high - self.low

    def spread(self, weights: NoisyWeights) -> float:
        """Return the standard deviation of the true weights about their level."""
        return float(np.sqrt(max(self.variance - weights.deviation**2, 0.0)))


def two_levels(weights: NoisyWeights) -> Levels:
    """Fit two levels with a common variance, that of the noise or more, by EM.

    >>> random = np.random.default_rng(0)
    >>> true = np.where(random.random(8000) < 0.5, 0.2, 0.9)
    >>> levels = two_levels(NoisyWeights(true + random.normal(0, 0.4, 8000), 0.4, is_laplace=False))
    >>> round(levels.low, 1), round(levels.high, 1)
    (0.2, 0.9)
    """
    counts, edges = np.histogram(weights.values, bins=_BINS)
    seen = counts > 0
    centres = ((edges[1:] + edges[:-1]) / 2)[seen]
    found = fit_two_levels(
        centres, counts[seen].astype(np.float64), weights.deviation**2, weights.is_laplace, _STARTS
    )
    return Levels(*found)


def affinities(weights: NoisyWeights, levels: Levels) -> Floats:
    """Return the log-likelihood ratio of every weight for the low level against the high one."""
    values = weights.values
    if weights.is_laplace:
        scale = math.sqrt(levels.variance / 2)
        return (np.abs(values - levels.high) - np.abs(values - levels.low)) / scale
    return levels.gap / levels.variance * ((levels.low + levels.high) / 2 - values)


# Expectation-maximisation (EM), on a histogram of the weights.

#: The variance is at least this part of that of the weights: two exact levels would have none.
LEAST_PART = 1e-6
#: Rounds from one start, at most ...
ROUNDS = 300
#: ... after the first of which only so many, the likeliest, go on; most end far earlier, ...
FIRST_ROUNDS, FINALISTS = 40, 2
#: ... when a round adds less than this to the log-likelihood per weight.
ENOUGH = 1e-7
#: A level that explains less than this part of the weights explains none.
NOTHING = 1e-9


@inlined
def log_kernel(distance: float, variance: float, is_laplace: bool) -> float:
    """Return the log-density at this distance from the mean, less that at the mean."""
    if is_laplace:
        return -abs(distance) / math.sqrt(variance / 2)
    return -distance * distance / (2 * variance)


@inlined
def one_round(
    values: Floats,
    counts: Floats,
    total: float,
    share: float,
    low: float,
    high: float,
    variance: float,
    is_laplace: bool,
) -> tuple[float, float, float, float, float]:
    """Return the log-likelihood, and share, levels and variance after one round.

    Mean and variance by responsibility are the maximum for Gaussian noise. For Laplace noise the
    median would be; the mean is consistent as well, for any noise, and moves smoothly.
    """
    likelihood = -0.5 * total * math.log((2 if is_laplace else 2 * math.pi) * variance)
    n_low = sum_low = sum_high = square_low = square_high = 0.0
    log_low, log_high = np.log(share), np.log1p(-share)
    for i in range(len(values)):
        x, count = values[i], counts[i]
        a = log_low + log_kernel(x - low, variance, is_laplace)
        b = log_high + log_kernel(x - high, variance, is_laplace)
        smaller = np.exp(-abs(a - b))  # likelihood of one level, that of the other being 1
        likelihood += count * (max(a, b) + np.log1p(smaller))
        of_low = count * (1.0 if a > b else smaller) / (1.0 + smaller)
        of_high = count - of_low
        n_low += of_low
        sum_low += of_low * x
        sum_high += of_high * x
        square_low += of_low * x * x
        square_high += of_high * x * x
    n_high = total - n_low
    if n_low < NOTHING * total or n_high < NOTHING * total:
        return likelihood, -1.0, low, high, variance
    low, high = sum_low / n_low, sum_high / n_high
    within = square_low - n_low * low * low + square_high - n_high * high * high
    return likelihood, n_low / total, low, high, within / total


@inlined
def climb(
    values: Floats,
    counts: Floats,
    total: float,
    floor: float,
    is_laplace: bool,
    fit: Floats,
    rounds: int,
) -> None:
    """Improve a fit, which is log-likelihood, share, levels and variance, in so many rounds."""
    before, share, low, high, variance = fit
    likelihood = before
    for _ in range(rounds):
        likelihood, new_share, low, high, new_variance = one_round(
            values, counts, total, share, low, high, variance, is_laplace
        )
        if new_share < 0:
            break
        share, variance = new_share, max(new_variance, floor)
        if abs(likelihood - before) < ENOUGH * total:
            break
        before = likelihood
    fit[0], fit[1], fit[2], fit[3], fit[4] = likelihood, share, low, high, variance


@kernel
def fit_two_levels(
    values: Floats, counts: Floats, noise_variance: float, is_laplace: bool, starts: Array
) -> tuple[float, float, float, float, float]:
    """Return the largest log-likelihood from all starts, share of the low level, levels, variance.

    Every start is a share of the low level; levels that far apart explain what noise does not.
    """
    total = mean = spread = 0.0
    for i in range(len(values)):
        total += counts[i]
        mean += counts[i] * values[i]
    mean /= total
    for i in range(len(values)):
        spread += counts[i] * (values[i] - mean) ** 2
    spread /= total
    floor = max(noise_variance, LEAST_PART * spread)
    best = (-np.inf, 0.5, mean, mean, max(spread, floor))
    if spread == 0:
        return best
    apart = np.sqrt(max(spread - noise_variance, 0.05 * spread))
    fits = np.empty((len(starts), 5))
    for i in range(len(starts)):
        share = starts[i]
        fits[i, 0], fits[i, 1] = -np.inf, share
        fits[i, 2] = mean - apart * np.sqrt((1 - share) / share)
        fits[i, 3] = mean + apart * np.sqrt(share / (1 - share))
        fits[i, 4] = max(floor, 0.1 * spread)
        climb(values, counts, total, floor, is_laplace, fits[i], FIRST_ROUNDS)
    for _ in range(FINALISTS):
        i = int(np.argmax(fits[:, 0]))
        climb(values, counts, total, floor, is_laplace, fits[i], ROUNDS - FIRST_ROUNDS)
        likelihood, share, low, high, variance = fits[i]
        fits[i, 0] = -np.inf
        if low > high:
            low, high, share = high, low, 1 - share
        if likelihood > best[0]:
            best = (likelihood, share, low, high, variance)
    return best
