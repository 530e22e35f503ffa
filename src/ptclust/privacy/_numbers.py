"""Exact numbers: privacy parameters as rationals, what is close to them as floats and in words.

Exponentials and logarithms come with bounds, as close as wanted. Python's decimal arithmetic has
``exp`` and ``ln`` correctly rounded, at any precision: the true value lies between the two
neighbours of what they return. The argument is rounded outwards first.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from typing import Any

from ptclust.errors import UsageError

Number = int | float | Fraction | Decimal | str
Bounds = tuple[Fraction, Fraction]

# Beyond these decimal exponents there is no float, and an exact power of ten would take minutes.
_LARGEST_EXPONENT = 400
_EXPONENTS = 100_000  # powers of ten of decimals; what is smaller lies between 0 and the smallest


def exact(name: str, value: Any, remedy: str) -> Fraction:
    """Return ``value`` as the rational it stands for, a float at its exact binary value."""
    try:
        if not isinstance(value, bool):
            if isinstance(value, Rational):
                return Fraction(int(value.numerator), int(value.denominator))
            if isinstance(value, Real):
                return Fraction(float(value))
            if isinstance(value, str) and "/" in value:
                return Fraction(value)
            if isinstance(value, str | Decimal):
                number = Decimal(value)
                if abs(number.adjusted()) <= _LARGEST_EXPONENT:
                    return Fraction(number)
    except (ValueError, OverflowError, ZeroDivisionError, InvalidOperation):
        pass  # not a number, infinite, or NaN: the sentence below says so
    raise UsageError(f"{name} must be a finite number, not {shown(value)}. {remedy}")


def exact_positive(name: str, value: Any, remedy: str) -> Fraction:
    """Return ``value`` as a positive rational that a float can approximate."""
    number, normal = exact(name, value, remedy), sys.float_info
    if number <= 0:
        raise UsageError(f"{name} must be greater than 0, but is {shown(value)}. {remedy}")
    if not normal.min <= number <= normal.max:
        raise UsageError(
            f"{name} must lie between {normal.min:.3g} and {normal.max:.3g}, the range of normal "
            f"floating-point numbers, but is {shown(value)}. {remedy}"
        )
    return number


def count(name: str, value: Any, remedy: str = "") -> int:
    """Return ``value`` if it is an integer of 0 or more."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise UsageError(f"{name} must be an integer of 0 or more, not {value!r}.{remedy}")
    return number


def shown(value: object) -> str:
    """Return a value for a message: a number as one writes it, anything else as Python does."""
    try:
        return str(value) if isinstance(value, Real | Decimal) else repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a number of thousands of digits"


def float_up(number: Fraction | int) -> float:
    """Return the smallest float at or above a rational: infinity if there is no finite one."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def float_down(number: Fraction | int) -> float:
    """Return the largest float at or below a rational."""
    return -float_up(-number)


def root_up(number: Fraction) -> float:
    """Return the smallest float at or above the square root of a rational that is 0 or more."""
    if number == 0:
        return 0.0
    # Scaled to about 120 bits, the integer root has some 60: more than a float holds.
    shift = (120 - number.numerator.bit_length() + number.denominator.bit_length()) // 2
    scaled = number * Fraction(4) ** shift
    root = math.isqrt(math.floor(scaled))
    if root * root != scaled:
        root += 1
    return float_up(root / Fraction(2) ** shift)


def exponent_below(number: Fraction) -> int:
    """Return an integer e with 2^e <= number, the largest or one less."""
    return number.numerator.bit_length() - number.denominator.bit_length() - 1


@lru_cache(maxsize=64)
def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emin=-_EXPONENTS, Emax=_EXPONENTS)


def _bounds(
    function: Callable[[Context, Decimal], Decimal], number: Fraction, digits: int
) -> Bounds:
    """Return bounds of a rising function that a context rounds correctly."""
    down, up = _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)
    numerator, denominator = Decimal(number.numerator), Decimal(number.denominator)
    low = function(down, down.divide(numerator, denominator))
    high = function(up, up.divide(numerator, denominator))
    return Fraction(down.next_minus(low)), Fraction(up.next_plus(high))


def exp_bounds(number: Fraction, digits: int) -> Bounds:
    """Return a lower and an upper bound of e to a rational power, close to so many digits."""
    return _bounds(Context.exp, number, digits) if number else (Fraction(1), Fraction(1))


def log_bounds(number: Fraction, digits: int) -> Bounds:
    """Return a lower and an upper bound of the logarithm of a positive rational."""
    return _bounds(Context.ln, number, digits) if number != 1 else (Fraction(0), Fraction(0))


def words(number: Fraction) -> str:
    """Return the shortest text that gives ``number`` back: a decimal if a float is exact.

    >>> words(Fraction(1, 2)), words(Fraction(3)), words(Fraction(1, 3))
    ('0.5', '3', "'1/3'")
    """
    if number.denominator == 1 and number < 10**15:
        return str(number)
    nearest = float(number)
    return repr(nearest) if Fraction(nearest) == number else repr(str(number))


def rounded(number: Fraction | float, *, up: bool, digits: int = 6) -> str:
    """Return a number in few digits, rounded to the safe side; a float is its shortest decimal.

    >>> rounded(Fraction(1, 3), up=True), rounded(1.0, up=True), rounded(1.00000001, up=True)
    ('0.333334', '1', '1.00001')
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    if isinstance(number, float):
        shown = context.plus(Decimal(repr(number)))
    else:
        shown = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{float(shown):.{digits}g}"


def at_most(number: Fraction | float, digits: int = 6) -> str:
    """Return a number in a few digits, rounded up."""
    return rounded(number, up=True, digits=digits)
