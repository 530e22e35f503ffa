"""The (epsilon, delta) curve of Gaussian noise on a lattice, from above.

Continuous Gaussian noise of deviation sigma under a change of l2 norm d is (epsilon, delta)-DP iff

    delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu),    mu = d / sigma

(Balle and Wang 2018). The discrete Gaussian on a lattice far finer than sigma differs from it by
next to nothing; docs/proofs/gaussian-curve.md says by how much, and that is paid for here. All
bounds are of rational numbers: no float has to be right.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from ptclust.privacy._certified import Bounds, exp_bounds

#: The lattice is at least this much finer than sigma where the bound is used.
FINEST_T = Fraction(2**20)

_DIGITS = 40
_BITS = 160  # of numbers in fixed point
_TERMS = 400  # of the continued fraction; from _LEAST on they give more digits than are kept
_LEAST = Fraction(3, 2)
_PI = "3.14159265358979323846264338327950288419716939937510"  # and more digits


def tail_bounds(x: Fraction) -> Bounds:
    """Return bounds of Phi(-x), the upper tail of the standard normal, for x of 3/2 or more.

    Mills' ratio is 1/(x + 1/(x + 2/(x + 3/(x + ...)))), each tail of which is x or more.

    >>> low, high = tail_bounds(Fraction(3))
    >>> f"{float(low):.12e}", high - low < low / 10**30
    ('1.349898031630e-03', True)
    """
    if x < _LEAST:
        raise ValueError(f"the bound is for {_LEAST} or more, not for {float(x):g}")
    unit = 1 << _BITS
    below, above = math.floor(x * unit), math.ceil(x * unit)
    low, high = below, above + _TERMS * unit * unit // below + 1
    for k in range(_TERMS - 1, 0, -1):
        low, high = below + k * unit * unit // high, above + k * unit * unit // low + 1
    root = math.isqrt(math.floor(2 * Fraction(_PI) * unit**2))  # of 2 pi, a step or two too small
    density = exp_bounds(-(x**2) / 2, _DIGITS)
    return density[0] * unit**2 / ((root + 2) * high), density[1] * unit**2 / (root * low)


def continuous_delta(mu: Fraction, epsilon: Fraction) -> Fraction:
    """Return an upper bound on the delta of continuous Gaussian noise; 1 where there is none."""
    middle = epsilon / mu
    if middle - mu / 2 < _LEAST:
        return Fraction(1)
    first, second = tail_bounds(middle - mu / 2)[1], tail_bounds(middle + mu / 2)[0]
    return first - exp_bounds(epsilon, _DIGITS)[0] * second


def lattice_delta(change: Fraction, t: Fraction, n_values: int, epsilon: Fraction) -> Fraction:
    """Return an upper bound on the delta of discrete Gaussian noise on ``n_values`` values.

    ``change`` bounds the l2 norm of a change, and t is sigma, both in steps of the lattice
    (docs/proofs/gaussian-curve.md, "Theorem").

    >>> delta = lattice_delta(Fraction(2**40), Fraction("4.23") * 2**40, 1000, Fraction(1))
    >>> f"{float(delta):.2e}"
    '9.74e-07'
    """
    if t < FINEST_T:
        return Fraction(1)
    # Any kappa gives a bound; this one leaves next to nothing to the exceptions.
    exceptions = 40.0 * math.log(2.0) + float(epsilon) + 800.0
    kappa = Fraction(math.sqrt(n_values * exceptions)) / t
    slack = kappa + Fraction(n_values) / (8 * t**2) + Fraction(n_values, 2**100)
    if 4 * kappa * t**2 < n_values or not 2 * slack < epsilon:
        return Fraction(1)
    seldom = exp_bounds(-2 * kappa**2 * t**2 / n_values, _DIGITS)[1]
    delta = exp_bounds(slack, _DIGITS)[1] * continuous_delta(change / t, epsilon - 2 * slack)
    return delta + seldom * (1 + exp_bounds(epsilon + 2 * slack, _DIGITS)[1])


@lru_cache(maxsize=1024)
def largest_mu(epsilon: float, delta: float) -> float:
    """Return about the largest change over sigma under which continuous noise keeps its promise.

    It is computed in floats: `lattice_delta` has to confirm what is made of it.

    >>> round(1 / largest_mu(1.0, 1e-6), 3)
    4.225
    """
    from scipy.special import log_ndtr, ndtr

    def excess(mu: float) -> float:
        near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return float(ndtr(near) - math.exp(min(epsilon + log_ndtr(far), 0.0))) - delta

    low, high = 0.0, 1.0
    while excess(high) < 0:
        low, high = high, 2 * high
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return low
