"""How much noise the K-norm mechanism of two balls has, beside Laplace and cube noise.

One unit moves k of m weights by at most 1: |x|_1 <= k and |x|_inf <= 1. The K-norm mechanism of
the intersection K of both balls (Hardt and Talwar 2010) is R U with R ~ Gamma(m + 1) / epsilon and
U uniform on K; Laplace and cube noise are those of the two balls.
"""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.optimize import brentq

__all__ = ["gain", "gains_table", "square_of_uniform", "square_of_uniform_limit"]

_SHARES = ("1/1000", "1/100", "1/20", "1/10", "1/5", "3/10", "2/5", "1/2", "7/10", "1")
_SIZES = (10, 100)


def square_of_uniform(n_values: int, bound: Fraction) -> Fraction:
    """Return the mean square of a coordinate of a uniform point of K; l1 <= ``bound``, linf <= 1.

    Of a coordinate u the others have the volume of a cube below a plane, which is a sum of powers
    (k - u - j)^(m-1), cut off at 0, with alternating signs and binomials.

    >>> square_of_uniform(1, Fraction(1)), square_of_uniform(2, Fraction(1))
    (Fraction(1, 3), Fraction(1, 6))
    """
    m, whole, squares = n_values, Fraction(0), Fraction(0)
    for j in range(m):
        end = bound - j
        if end <= 0:
            break
        begin = max(end - 1, Fraction(0))
        # Of v = k - u - j from ``begin`` to ``end``: v^(m-1), and (end - v)^2 v^(m-1).
        powers = [(end ** (m + i) - begin ** (m + i)) / (m + i) for i in range(3)]
        sign = (-1) ** j * math.comb(m - 1, j)
        whole += sign * powers[0]
        squares += sign * (end**2 * powers[0] - 2 * end * powers[1] + powers[2])
    return squares / whole


def square_of_uniform_limit(share: float) -> float:
    """Return the same for m without bound and l1 <= share * m.

    Coordinates are then independent, with a density that falls exponentially up to 1, such that
    their mean is the share; from a half on, the bound on l1 is idle.

    >>> round(square_of_uniform_limit(0.5), 6), round(square_of_uniform_limit(0.01), 6)
    (0.333333, 0.0002)
    """
    if share >= 0.5:
        return 1 / 3

    def beyond(rate: float) -> float:
        return math.exp(-rate) / -math.expm1(-rate)

    rate = float(brentq(lambda rate: 1.0 / rate - beyond(rate) - share, 1e-6, 2.0 / share))
    return 2.0 / rate * share - beyond(rate)


def deviations(share: Fraction, n_values: int | None) -> tuple[float, float, float]:
    """Return the deviations of Laplace noise, cube noise and that of K, in units of m / epsilon."""
    if n_values is None:
        own = square_of_uniform_limit(float(share))
        return math.sqrt(2.0) * float(share), math.sqrt(1 / 3), math.sqrt(own)
    m = n_values
    radius = (m + 1) * (m + 2) / m**2
    own = radius * float(square_of_uniform(m, share * m))
    return math.sqrt(2.0) * float(share), math.sqrt(radius / 3), math.sqrt(own)


def gain(share: Fraction, n_values: int | None) -> float:
    """Return by what part the noise of K is less than the smaller of Laplace and cube noise."""
    laplace, cube, own = deviations(share, n_values)
    return 1.0 - own / min(laplace, cube)


def gains_table() -> list[list[str]]:
    """Return the rows of a table over shares k / m, for many weights and for few."""
    rows = [["k / m", "Laplace", "cube", "both", "less", *(f"less, m = {m}" for m in _SIZES)]]
    for text in _SHARES:
        share = Fraction(text)
        numbers = [f"{deviation:.4f}" for deviation in deviations(share, None)]
        few = [f"{gain(share, m):.1%}" if share * m >= 1 else "" for m in _SIZES]
        rows.append([f"{float(share):g}", *numbers, f"{gain(share, None):.1%}", *few])
    return rows
