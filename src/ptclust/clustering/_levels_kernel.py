"""Expectation-maximisation for two levels seen through noise, on a histogram of the weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._kernel import inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The variance is at least this part of that of the weights: without noise, two exact levels would have none at all.
LEAST_PART = 1e-6
#: Rounds from one start; most end far earlier, ...
ROUNDS = 300
#: ... when a round adds less than this to the log-likelihood per weight.
ENOUGH = 1e-7
#: A level that explains less than this part of the weights explains none.
NOTHING = 1e-9


@inlined
def log_kernel(distance: float, variance: float, is_laplace: bool) -> float:
    """Return the log-density at this distance from the mean, up to the constant that both levels share."""
    if is_laplace:
        return -abs(distance) / math.sqrt(variance / 2)
    return -distance * distance / (2 * variance)


@inlined
def log_constant(variance: float, is_laplace: bool) -> float:
    """Return the log-density at the mean."""
    return -0.5 * math.log((2 if is_laplace else 2 * math.pi) * variance)


@kernel
def one_round(
    values: NDArray[np.float64],
    counts: NDArray[np.float64],
    share: float,
    low: float,
    high: float,
    variance: float,
    is_laplace: bool,
) -> tuple[float, float, float, float, float]:
    """Return the log-likelihood, and share, levels and variance after one round.

    Mean and variance by responsibility are the maximum for Gaussian noise. For Laplace noise the median would be;
    the mean is consistent as well, and moves smoothly.
    """
    total = counts.sum()
    likelihood = total * log_constant(variance, is_laplace)
    n_low = sum_low = sum_high = square_low = square_high = 0.0
    log_low, log_high = np.log(share), np.log1p(-share)
    for i in range(len(values)):
        x, count = values[i], counts[i]
        a = log_low + log_kernel(x - low, variance, is_laplace)
        b = log_high + log_kernel(x - high, variance, is_laplace)
        top = max(a, b)
        both = top + np.log(np.exp(a - top) + np.exp(b - top))
        likelihood += count * both
        of_low = count * np.exp(a - both)
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


@kernel
def fit_two_levels(
    values: NDArray[np.float64],
    counts: NDArray[np.float64],
    noise_variance: float,
    is_laplace: bool,
    starts: NDArray[Any],
) -> tuple[float, float, float, float, float]:
    """Return the largest log-likelihood found from all starts, the share of the low level, both levels, the variance.

    Every start is a share of the low level; levels that far apart explain what noise does not.
    """
    total = counts.sum()
    mean = (counts * values).sum() / total
    spread = (counts * (values - mean) ** 2).sum() / total
    floor = max(noise_variance, LEAST_PART * spread)
    best = (-np.inf, 0.5, mean, mean, max(spread, floor))
    if spread == 0:
        return best
    apart = np.sqrt(max(spread - noise_variance, 0.05 * spread))
    for start in starts:
        share = start
        low = mean - apart * np.sqrt((1 - share) / share)
        high = mean + apart * np.sqrt(share / (1 - share))
        variance = max(floor, 0.1 * spread)
        before = likelihood = -np.inf
        for _ in range(ROUNDS):
            likelihood, new_share, low, high, new_variance = one_round(
                values, counts, share, low, high, variance, is_laplace
            )
            if new_share < 0:
                break
            share, variance = new_share, max(new_variance, floor)
            if abs(likelihood - before) < ENOUGH * total:
                break
            before = likelihood
        if low > high:
            low, high, share = high, low, 1 - share
        if likelihood > best[0]:
            best = (likelihood, share, low, high, variance)
    return best
