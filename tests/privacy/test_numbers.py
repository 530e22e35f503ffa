"""Numbers are bounded from the side that is safe."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptclust.privacy._numbers import (
    exp_bounds,
    exponent_below,
    float_down,
    float_up,
    log_bounds,
    root_up,
    rounded,
    shown,
)

positive = st.fractions(min_value=Fraction(1, 10**30), max_value=10**30)


def test_numbers_in_messages():
    assert (shown(Fraction(-1, 3)), shown(math.nan), shown("abc"), shown(True)) == (
        "-1/3",
        "nan",
        "'abc'",
        "True",
    )


@given(positive)
def test_floats_and_roots_are_next_to_the_number(number):
    assert Fraction(float_down(number)) <= number <= Fraction(float_up(number))
    assert math.nextafter(float_up(number), 0) <= float_down(number)
    root = root_up(number)
    assert Fraction(math.nextafter(root, 0)) ** 2 < number <= Fraction(root) ** 2
    assert root_up(number**2) == float_up(number)


@given(positive)
def test_the_exponent_is_the_largest_or_one_less(number):
    assert Fraction(2) ** exponent_below(number) <= number
    assert Fraction(2) ** (exponent_below(number) + 2) > number


def test_exponents():
    assert (exponent_below(Fraction(5)), exponent_below(Fraction(1, 5))) == (1, -3)


@pytest.mark.parametrize(
    ("bounds", "number", "value"),
    [(exp_bounds, 1, math.e), (exp_bounds, -30, math.exp(-30)), (log_bounds, 2, math.log(2))],
)
def test_bounds_of_exponentials_and_logarithms(bounds, number, value):
    low, high = bounds(Fraction(number), 20)
    assert low < high < low * (1 + Fraction(1, 10**17))
    assert float(low) == pytest.approx(value, rel=1e-15)
    closer = bounds(Fraction(number), 40)
    assert low <= closer[0] < closer[1] <= high


def test_the_ends_are_exact():
    assert exp_bounds(Fraction(0), 20) == (Fraction(1), Fraction(1))
    assert log_bounds(Fraction(1), 20) == (Fraction(0), Fraction(0))
    assert root_up(Fraction(0)) == 0


def test_few_digits():
    third = Fraction(1, 3)
    assert (rounded(third, up=True), rounded(third, up=False)) == ("0.333334", "0.333333")
    assert (rounded(1.0, up=True), rounded(1e-6, up=True)) == ("1", "1e-06")
    assert rounded(1.00000001, up=True) == "1.00001"
