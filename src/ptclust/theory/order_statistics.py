r"""Moments of the order statistics of Laplace noise (Kotz, Kozubowski, Podgorski 2001), for any number of values.

The textbook's alternating sums are here in exact rationals; in floats they lose all digits from some 50 values on.
What is evaluated instead has positive terms only. The number M of positive values among n is binomial, and given
M = m these are m independent exponentials. So the r-th smallest of all, where it is positive, is the one with
q = n - r of the m above it: a sum of independent exponentials of the rates m, m - 1, ..., q + 1 (Renyi), with cumulants

.. math:: \kappa_j = (j-1)! \sum_{i=q+1}^{m} i^{-j}.

Where it is negative, the same holds with signs reversed.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["exact_laplace_order_moment", "laplace_order_moments"]

# P(|M - n/2| > 20 sqrt(n)) is below 2 exp(-800): nothing that a float could show.
_WIDTH = 20.0


def laplace_order_moments(
    n_values: int, rank: int, largest_order: int, *, about: float = 0.0
) -> NDArray[np.float64]:
    """Return E[(X - about)^k] for k = 0, ..., largest_order, X the rank-th smallest of n standard Laplace values.

    Parameters
    ----------
    n_values : int
        How many independent values of density exp(-|x|) / 2 there are.
    rank : int
        1 for the smallest, ``n_values`` for the largest.
    largest_order : int
    about : float, default 0
        Where moments are taken. About the mean they are central moments, without the cancellation of computing them
        from moments about 0.

    Notes
    -----
    The error is about 1e-13 of E[abs(X - about)^k]. Time and memory grow with the square root of n.

    Examples
    --------
    >>> laplace_order_moments(1, 1, 4).round(12).tolist()  # of a single value
    [1.0, 0.0, 2.0, 0.0, 24.0]
    >>> float(laplace_order_moments(10**6, 10**6, 1)[1])  # the maximum, about log(n / 2) + 0.5772
    13.699579...
    """
    n, r, k = _checked(n_values, rank, largest_order)
    above = _positive_part(n, n - r, k, about)
    below = _positive_part(n, r - 1, k, -about)
    below[1::2] *= -1.0
    return above + below


def _positive_part(n: int, q: int, largest_order: int, about: float) -> NDArray[np.float64]:
    """Return E[(X - about)^k; X > 0] where q of n values are above X."""
    least, masses = _binomial(n)
    first = max(q + 1, least)  # X is positive if more than q values are
    masses = masses[first - least :]
    moments = np.zeros((largest_order + 1, len(masses)))
    if not len(masses):
        return np.zeros(largest_order + 1)
    cumulants = _exponential_cumulants(q, first, len(masses), largest_order)
    cumulants[:1] -= about
    moments[0] = 1.0
    for k in range(1, largest_order + 1):
        for j in range(1, k + 1):
            moments[k] += math.comb(k - 1, j - 1) * cumulants[j - 1] * moments[k - j]
    moments *= masses
    total: NDArray[np.float64] = moments.sum(axis=1)
    return total


def _binomial(n: int) -> tuple[int, NDArray[np.float64]]:
    """Return the least m, and P(M = m) from there on, for M ~ Binomial(n, 1/2) as far as it matters."""
    centre, width = n // 2, math.ceil(_WIDTH * math.sqrt(n))
    least, largest = max(0, centre - width), min(n, centre + width)
    up = np.arange(centre, largest, dtype=np.float64)
    down = np.arange(centre, least, -1, dtype=np.float64)
    masses = np.concatenate(
        [
            np.cumprod(down / (n - down + 1.0))[::-1],
            np.ones(1),
            np.cumprod((n - up) / (up + 1.0)),
        ]
    )
    return least, masses / masses.sum()


def _exponential_cumulants(q: int, first: int, count: int, largest: int) -> NDArray[np.float64]:
    """Return the cumulants of a sum of exponentials of rates q + 1, ..., m: row j - 1 of order j, m from first on."""
    from scipy.special import digamma, zeta

    rates = np.arange(first, first + count, dtype=np.float64)
    cumulants = np.empty((largest, count))
    for j in range(1, largest + 1):
        start = digamma(first) - digamma(q + 1) if j == 1 else zeta(j, q + 1) - zeta(j, first)
        cumulants[j - 1] = math.factorial(j - 1) * (float(start) + np.cumsum(rates**-j))
    return cumulants


def exact_laplace_order_moment(n_values: int, rank: int, order: int) -> Fraction:
    """Return E[X^order], X the rank-th smallest of n standard Laplace values, by the alternating sums of Kotz et al.

    The paper cites them without their coefficients. The numbers of digits grow with n: for checks, to some hundreds.

    Examples
    --------
    >>> exact_laplace_order_moment(2, 2, 1)  # the larger of two
    Fraction(3, 4)
    """
    n, r, k = _checked(n_values, rank, order)
    a = (
        Fraction((-1) ** j * math.comb(n - r, j), 2 ** (r + j) * (r + j) ** (k + 1))
        for j in range(n - r + 1)
    )
    b = (
        Fraction((-1) ** j * math.comb(r - 1, j), 2 ** (n - r + 1 + j) * (n - r + 1 + j) ** (k + 1))
        for j in range(r)
    )
    sign = -1 if k % 2 else 1
    factor = math.factorial(k) * r * math.comb(n, r)  # n! k! / ((r - 1)! (n - r)!)
    return factor * (sign * sum(a, Fraction(0)) + sum(b, Fraction(0)))


def _checked(n_values: Any, rank: Any, order: Any) -> tuple[int, int, int]:
    n, r, k = operator.index(n_values), operator.index(rank), operator.index(order)
    if n < 1:
        raise UsageError(f"order statistics need at least 1 value, not {n}")
    if not 1 <= r <= n:
        raise UsageError(f"a rank among {n} values is 1 (smallest) to {n} (largest), not {r}")
    if k < 0:
        raise UsageError(f"the order of a moment is 0 or more, not {k}")
    return n, r, k
