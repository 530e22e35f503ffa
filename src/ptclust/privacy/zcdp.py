"""Conversions between zCDP and (epsilon, delta) (Canonne, Kamath and Steinke 2020, Corollary 13).

For every alpha > 1, rho-zCDP implies (epsilon, delta)-DP with

    epsilon = alpha rho + (log(1/delta) - log(alpha)) / (alpha - 1) + log(1 - 1/alpha).

The best alpha is sought in floats; what it gives is computed with certified bounds, and rounded to
the safe side: a bad alpha would cost tightness, never soundness.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from ptclust.privacy._certified import log_bounds
from ptclust.privacy._numbers import float_down, float_up

_DIGITS = 40
_LARGEST_ORDER = 2.0**100  # of alpha - 1; the smallest is its inverse


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """Return the least epsilon such that rho-zCDP implies (epsilon, delta)-DP, rounded up.

    >>> round(epsilon_of_zcdp(0.02, 1e-6), 3)
    0.9
    """
    # The derivative by alpha is rho - log(1 / (alpha delta)) / (alpha - 1)^2, which rises.
    log_delta = math.log(delta)
    order = _first_not(lambda order: _slope(order, log_delta) > rho)
    return float_up(max(Fraction(0), (order + 1) * Fraction(rho) + _rest(order, delta)))


@lru_cache(maxsize=1024)
def largest_rho(epsilon: Fraction, delta: float) -> float:
    """Return the largest rho whose epsilon at ``delta`` is at most ``epsilon``, rounded down, or 0.

    >>> round(largest_rho(Fraction(1), 1e-6), 4)
    0.0244
    """
    log_delta, most = math.log(delta), float(epsilon)

    def rises(order: Fraction) -> bool:
        x = float(order)
        rest = (-log_delta - math.log1p(x)) / x + math.log(x) - math.log1p(x)
        return _slope(order, log_delta) > (most - rest) / (x + 1.0)

    order = _first_not(rises)
    rho = max(0.0, float_down((epsilon - _rest(order, delta)) / (order + 1)))
    while rho and epsilon_of_zcdp(rho, delta) > epsilon:  # which is rounded up
        rho = math.nextafter(rho, 0.0)
    return rho


def _slope(order: Fraction, log_delta: float) -> float:
    x = float(order)
    return (-log_delta - math.log1p(x)) / x**2


def _rest(order: Fraction, delta: float) -> Fraction:
    """Return an upper bound of epsilon - alpha rho, where alpha is 1 + order."""
    alpha = 1 + order
    by_delta = log_bounds(1 / (alpha * Fraction(delta)), _DIGITS)[1]
    return by_delta / order + log_bounds(order / alpha, _DIGITS)[1]


def _first_not(holds: Callable[[Fraction], bool]) -> Fraction:
    """Return about the least order where something that holds for small ones does not."""
    low, high = -math.log(_LARGEST_ORDER), math.log(_LARGEST_ORDER)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(Fraction(math.exp(middle))) else (low, middle)
    return Fraction(math.exp(high))
