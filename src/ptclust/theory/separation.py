"""The trade-off theorem: homogeneous separation of a cluster survives Laplace noise.

Noise turns the weights of the n edges of a cluster's subtree, shifted and scaled into
[theta_min, theta_max], and that of the cut edge, theta_out, into Laplace variables of scale d. The
separation H survives if max^2 < min * X_out and min > 0. The paper bounds its probability by
Cantelli's inequality for

    phi = (max Y)^2 - (min Z) X_out, Y_j ~ Lap(theta_max, d), Z_j ~ Lap(theta_min, d), independent,

and its analytic form is wrong in three places. docs/proofs/bounds.md says what is true and why.

It takes moments of the order statistics of Laplace noise. The textbook's alternating sums lose all
digits in floats; what is evaluated here has positive terms only. The number M of positive values
among n is binomial. Given M = m, the r-th smallest of all, where it is positive, has q = n - r of
the m above it and is a sum of independent exponentials of rates m, m - 1, ..., q + 1 (Renyi), whose
j-th cumulant is (j - 1)! times the sum of i^-j over i = q + 1, ..., m. Where it is negative, the
same holds with signs reversed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ptclust._traces import guard_functions
from ptclust._types import Floats
from ptclust.theory.partition import require

# P(|M - n/2| > 20 sqrt(n)) is below 2 exp(-800): nothing that a float could show.
_WIDTH = 20.0


@dataclass(frozen=True)
class TradeOff:
    """Three lower bounds on the probability that noise leaves H intact, and their parts."""

    n_edges: int
    theta_min: float
    theta_max: float
    theta_out: float
    noise_scale: float  # d
    mean: float  # E[phi]
    variance: float  # V[phi]
    printed: float  # the supplement's form. Wrong: it may say 0.97 where the truth is 0.02
    corrected: float  # E[phi]^2 / (V[phi] + E[phi]^2), rightly; 0 if E[phi] is above 0
    sound: float  # what is proved of the release, whose extremes share their noise, or 0

    @property
    def applies(self) -> bool:
        """Whether E[phi] <= 0, as the theorem needs; so theta_max^2 < theta_min theta_out."""
        return self.mean <= 0


def trade_off(
    n_edges: int, *, theta_min: float, theta_max: float, theta_out: float, noise_scale: float
) -> TradeOff:
    """Return moments and bounds of the trade-off theorem.

    The cluster's subtree has ``n_edges``. Its least and largest weight and that of the cut edge,
    theta_min, theta_max and theta_out, are shifted and scaled: (w + tau) / p. ``noise_scale`` is
    the scale s / p of the Laplace noise on them.

    >>> result = trade_off(12, theta_min=0.30, theta_max=0.45, theta_out=0.95, noise_scale=0.05)
    >>> result.applies, result.corrected, round(result.printed, 2)
    (False, 0.0, 0.97)
    >>> result = trade_off(12, theta_min=0.30, theta_max=0.35, theta_out=0.95, noise_scale=0.005)
    >>> result.applies, round(result.corrected, 3), round(result.sound, 3)
    (True, 0.997, 0.997)
    """
    n, d, thetas = n_edges, noise_scale, (theta_min, theta_max, theta_out)
    require(n >= 1, f"a subtree that noise can spoil has at least 1 edge, not {n}")
    require(0 < d < math.inf, f"noise_scale must be positive and finite, not {d!r}")
    ordered = 0 < theta_min <= theta_max < math.inf and 0 < theta_out < math.inf
    asked = "theta must be positive and finite, theta_min no larger than theta_max"
    require(ordered, f"{asked}; raise the shift")
    raw = laplace_order_moments(n, n, 4).tolist()  # of the maximum; of the minimum with signs
    _, _, c2, c3, c4 = laplace_order_moments(n, n, 4, about=raw[1]).tolist()
    max_mean = theta_max + d * raw[1]
    min_mean = theta_min - d * raw[1]
    square = max_mean**2 + d**2 * c2  # E[(max Y)^2]
    # V[(e + D)^2] = 4 e^2 V[D] + 4 e E[D^3] + E[D^4] - V[D]^2: no difference of large numbers
    square_variance = d**2 * (4 * max_mean**2 * c2 + 4 * max_mean * d * c3 + d**2 * (c4 - c2**2))
    product_variance = d**2 * (c2 * (theta_out**2 + 2 * d**2) + 2 * min_mean**2)
    mean = square - min_mean * theta_out
    variance = square_variance + product_variance
    # Where max Y < 0, -max Y is exponential of scale d / n: without it max(max Y, 0) is left.
    negative = _below_zero(theta_max / d) ** n
    lost = 2.0 * negative * (d / n) ** 2
    positive_mean = mean - lost
    positive_variance = variance - 24.0 * negative * (d / n) ** 4 + 2.0 * square * lost - lost**2
    some_negative = -math.expm1(n * math.log1p(-_below_zero(theta_min / d)))
    both_negative = some_negative * _below_zero(theta_out / d)
    sound = _cantelli(positive_mean, positive_variance) - both_negative
    printed, corrected = _printed(raw, *thetas, d), _cantelli(mean, variance)
    return TradeOff(n, *thetas, d, mean, variance, printed, corrected, sound=max(0.0, sound))


def _below_zero(distance: float) -> float:
    """Return P[X < 0] for a Laplace variable whose mean is that many scales above 0."""
    return 0.5 * math.exp(-distance)


def _cantelli(mean: float, variance: float) -> float:
    """Return a lower bound on P[phi < 0]."""
    return mean**2 / (variance + mean**2) if mean < 0 else 0.0


def _printed(
    raw: list[float], theta_min: float, theta_max: float, theta_out: float, d: float
) -> float:
    """Return the bound as the supplement prints it; n alpha(n, k) k! is a moment of the maximum."""
    _, m1, m2, m3, m4 = raw
    lambda_1 = (
        d**4 * m4
        + 12 * theta_max * d**3 * m3 / 6  # should be 24: the binomial 4 times 3!
        + 6 * theta_max**2 * d**2 * m2
        + 4 * theta_max**3 * d * m1
        + theta_max**4
    )
    lambda_2 = d**2 * m2 - 2 * theta_min * d * m1 + theta_min**2
    lambda_3 = d**2 * m2 + 2 * theta_max * d * m1 + theta_max**2
    lambda_4 = theta_min - d * m1
    common = lambda_1 + (theta_out**2 + d) * lambda_2  # should be theta^2 + 2 d^2
    numerator = common - (lambda_3**2 + theta_out**2 * lambda_4**2)
    return 1.0 - numerator / (common + 2 * lambda_3 * lambda_4)  # should be - 2 theta_out


def laplace_order_moments(
    n_values: int, rank: int, largest_order: int, *, about: float = 0.0
) -> Floats:
    """Return E[(X - about)^k], k = 0, ..., largest_order, of an order statistic X of Laplace noise.

    There are ``n_values`` independent values of density exp(-|x|) / 2; ``rank`` is 1 for the
    smallest of them. The error is about 1e-13 of E[abs(X - about)^k]: central moments do not suffer
    from cancellation. Time and memory grow with the square root of n.

    >>> laplace_order_moments(1, 1, 4).round(12).tolist()  # of a single value
    [1.0, 0.0, 2.0, 0.0, 24.0]
    >>> float(laplace_order_moments(10**6, 10**6, 1)[1])  # the maximum, about log(n / 2) + 0.5772
    13.699579...
    """
    n, r, k = n_values, rank, largest_order
    require(n >= 1, f"order statistics need at least 1 value, not {n}")
    ranks = f"a rank among {n} values is 1 (smallest) to {n} (largest)"
    require(1 <= r <= n, f"{ranks}, not {r}")
    require(k >= 0, f"the order of a moment is 0 or more, not {k}")
    above = _positive_part(n, n - r, k, about)
    below = _positive_part(n, r - 1, k, -about)
    below[1::2] *= -1.0
    return above + below


def _positive_part(n: int, q: int, largest_order: int, about: float) -> Floats:
    """Return E[(X - about)^k; X > 0] where q of n values are above X."""
    least, masses = _binomial(n)
    first = max(q + 1, least)  # X is positive if more than q values are
    masses = masses[first - least :]
    moments = np.zeros((largest_order + 1, len(masses)))
    cumulants = _exponential_cumulants(q, first, len(masses), largest_order)
    cumulants[:1] -= about
    moments[0] = 1.0
    for k in range(1, largest_order + 1):
        for j in range(1, k + 1):
            moments[k] += math.comb(k - 1, j - 1) * cumulants[j - 1] * moments[k - j]
    total: Floats = (moments * masses).sum(axis=1)
    return total


def _binomial(n: int) -> tuple[int, Floats]:
    """Return the least m that matters, and P(M = m) from there on, M ~ Binomial(n, 1/2)."""
    centre, width = n // 2, math.ceil(_WIDTH * math.sqrt(n))
    least, largest = max(0, centre - width), min(n, centre + width)
    up = np.arange(centre, largest, dtype=np.float64)
    down = np.arange(centre, least, -1, dtype=np.float64)
    below, above = np.cumprod(down / (n - down + 1.0))[::-1], np.cumprod((n - up) / (up + 1.0))
    masses = np.concatenate([below, np.ones(1), above])
    return least, masses / masses.sum()


def _exponential_cumulants(q: int, first: int, count: int, largest: int) -> Floats:
    """Return the cumulants, one row per order, of exponentials of rates q + 1, ..., m summed."""
    from scipy.special import digamma, zeta

    rates = np.arange(first, first + count, dtype=np.float64)
    cumulants = np.empty((largest, count))
    for j in range(1, largest + 1):
        start = digamma(first) - digamma(q + 1) if j == 1 else zeta(j, q + 1) - zeta(j, first)
        cumulants[j - 1] = math.factorial(j - 1) * (float(start) + np.cumsum(rates**-j))
    return cumulants


guard_functions(__name__)
