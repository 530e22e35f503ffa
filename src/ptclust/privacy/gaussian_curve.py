"""The (epsilon, delta) curve of Gaussian noise on a lattice, from above.

Continuous Gaussian noise of deviation sigma under a change of l2 norm d is (epsilon, delta)-DP iff

    delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu),    mu = d / sigma

(Balle and Wang 2018). The discrete Gaussian on a lattice far finer than sigma differs from it by
next to nothing; docs/proofs/gaussian-curve.md says by how much, and that is paid for here. Steps of
bounded range that come before the noise, as the draw of a tree, widen mu a little more than if they
were Gaussian themselves. All bounds are of rational numbers: no float has to be right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ptclust.privacy._numbers import Bounds, exp_bounds, log_bounds, root_up

#: The lattice is at least this much finer than sigma where the bound is used.
FINEST_T = Fraction(2**20)

_DIGITS = 40
_BITS = 160  # of numbers in fixed point
_TERMS = 400  # of the continued fraction; from _LEAST on they give more digits than are kept
_LEAST = Fraction(3, 2)
_PI = "3.14159265358979323846264338327950288419716939937510"  # and more digits
_LARGEST = 20_000  # nats: no curve is requested beyond, where decimals would overflow


@dataclass(frozen=True)
class Steps:
    """Steps before the noise, each adaptive, with a privacy loss within an interval this wide."""

    count: int = 0
    loss_range: Fraction = Fraction(0)

    @property
    def total(self) -> Fraction:
        """Bound on the sum of their losses, of either sign."""
        return self.count * self.loss_range


NO_STEPS = Steps()


def tail_bounds(x: Fraction) -> Bounds:
    """Return bounds of Phi(-x), the upper tail of the standard normal, for x of 3/2 or more.

    Mills' ratio is 1/(x + 1/(x + 2/(x + 3/(x + ...)))), each tail of which is x or more.
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


def square_after(square: Fraction, steps: Steps) -> Fraction | None:
    """Return an upper bound on mu^2 of Gaussian noise with steps before it, from its own mu^2.

    A step of range r takes tau to tau^2 / (tau - v) = tau + v + v^2 / (tau - v), v = r^2 / 4; what
    is added to v is summed up as an integral (docs/proofs/gaussian-curve.md, "Steps before the
    noise"). None if a step may lose as much as the noise does.
    """
    v = steps.loss_range**2 / 4
    if not steps.count * v:
        return square
    first = square / v - 1
    if first <= 0:
        return None
    rises = 1 / first + log_bounds((first + steps.count - 1) / first, _DIGITS)[1]
    return square + v * (steps.count + rises)


def lattice_delta(
    change: Fraction, t: Fraction, n_values: int, epsilon: Fraction, steps: Steps = NO_STEPS
) -> Fraction:
    """Return an upper bound on the delta of discrete Gaussian noise on ``n_values`` values.

    ``change`` bounds the l2 norm of a change, and t is sigma, both in steps of the lattice
    (docs/proofs/gaussian-curve.md, "Theorem"); ``steps`` come before the noise.
    """
    square = square_after((change / t) ** 2, steps)
    if t < FINEST_T or square is None or epsilon + steps.total > _LARGEST:
        return Fraction(1)
    # Any kappa gives a bound; this one leaves next to nothing to the exceptions.
    exceptions = 40.0 * math.log(2.0) + float(epsilon + steps.total) + 800.0
    kappa = Fraction(math.sqrt(n_values * exceptions)) / t
    slack = kappa + Fraction(n_values) / (8 * t**2) + Fraction(n_values, 2**100)
    if 4 * kappa * t**2 < n_values or not 2 * slack < epsilon:
        return Fraction(1)
    seldom = exp_bounds(-2 * kappa**2 * t**2 / n_values, _DIGITS)[1]
    mu = Fraction(root_up(square)) if steps.count else change / t
    delta = exp_bounds(slack, _DIGITS)[1] * continuous_delta(mu, epsilon - 2 * slack)
    return delta + seldom * (1 + exp_bounds(epsilon + steps.total + 2 * slack, _DIGITS)[1])


def joint_delta(
    rhos: Iterable[Fraction], t: Fraction, n_values: int, epsilon: Fraction
) -> Fraction:
    """Return an upper bound on the delta of several releases with Gaussian noise together.

    ``rhos`` are mu^2 / 2 of each, fixed beforehand, ``t`` the least of their sigmas in steps of
    their lattices, ``n_values`` how many values they have in all (docs/proofs/gaussian-curve.md,
    "Several releases").
    """
    mu = Fraction(root_up(2 * sum(rhos, Fraction(0))))
    return lattice_delta(mu * t, t, n_values, epsilon)


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
