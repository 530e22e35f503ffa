"""Certified bounds on exponentials and logarithms, of any precision.

Python's decimal arithmetic has ``exp`` and ``ln`` correctly rounded, at any precision: the true
value lies between the two neighbours of what they return. The argument is rounded outwards first.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

Bounds = tuple[Fraction, Fraction]

_EXPONENTS = 100_000  # powers of ten of decimals; what is smaller lies between 0 and the smallest


@lru_cache(maxsize=64)
def _contexts(digits: int) -> tuple[Context, Context]:
    """Return contexts that round down and up."""
    down, up = (
        Context(prec=digits, rounding=rounding, Emin=-_EXPONENTS, Emax=_EXPONENTS)
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    return down, up


def decimal_bounds(number: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """Return the decimals of so many digits below and above a rational."""
    down, up = _contexts(digits)
    numerator, denominator = Decimal(number.numerator), Decimal(number.denominator)
    return down.divide(numerator, denominator), up.divide(numerator, denominator)


def exp_bounds(number: Fraction, digits: int) -> Bounds:
    """Return a lower and an upper bound of e to a rational power, close to so many digits.

    >>> low, high = exp_bounds(Fraction(1), 20)
    >>> float(low), low < high, high - low < Fraction(1, 10**17)
    (2.718281828459045, True, True)
    """
    if number == 0:
        return Fraction(1), Fraction(1)
    down, up = _contexts(digits)
    low, high = decimal_bounds(number, digits)
    return Fraction(down.next_minus(down.exp(low))), Fraction(up.next_plus(up.exp(high)))


def log_bounds(number: Fraction, digits: int) -> Bounds:
    """Return a lower and an upper bound of the logarithm of a positive rational.

    >>> low, high = log_bounds(Fraction(2), 20)
    >>> float(low), low < high
    (0.6931471805599453, True)
    """
    if number == 1:
        return Fraction(0), Fraction(0)
    down, up = _contexts(digits)
    low, high = decimal_bounds(number, digits)
    return Fraction(down.next_minus(down.ln(low))), Fraction(up.next_plus(up.ln(high)))
