from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptclust.errors import UsageError
from ptclust.theory import (
    excess_probability,
    expected_excess,
    paper_exponent,
    paper_utility_threshold,
)
from tests.mechanisms.paper import softmax

WEIGHTS = st.lists(st.floats(0, 10), min_size=1, max_size=30)
EXPONENTS = st.floats(0.01, 100)


def probability_of(weights, exponent, excess):
    """The exact probability that the choice is off by ``excess`` or more."""
    chosen = zip(softmax(weights, exponent), weights)
    return math.fsum(p for p, weight in chosen if weight - min(weights) >= excess)


@given(WEIGHTS, EXPONENTS, st.floats(-1, 12))
def test_no_choice_is_off_more_often(weights, exponent, excess):
    bound = excess_probability(exponent, len(weights), excess)
    assert probability_of(weights, exponent, excess) <= bound * (1 + 1e-9) + 1e-300


@given(st.integers(2, 50), EXPONENTS, st.floats(0.25, 2))
def test_the_bound_is_reached(n, exponent, excess):
    exact = probability_of([0.0] + [excess] * (n - 1), exponent, excess)
    found = excess_probability(exponent, n, excess)
    assert found == pytest.approx(exact, rel=1e-9) or found < 1e-16


@given(WEIGHTS, EXPONENTS)
def test_mean_excess(weights, exponent):
    mean = math.fsum(p * w for p, w in zip(softmax(weights, exponent), weights))
    assert mean - min(weights) <= expected_excess(exponent, len(weights)) + 1e-12


def test_the_mean_excess_is_of_that_order():
    n, exponent = 100_001, 2.0
    excess = (math.log(n) - math.log(math.log(n))) / exponent
    weights = [0.0] + [excess] * (n - 1)
    mean = math.fsum(p * w for p, w in zip(softmax(weights, exponent), weights))
    bound = expected_excess(exponent, n)
    assert 0.7 * bound < mean <= bound


@given(WEIGHTS, st.floats(0.01, 10), st.floats(0.01, 1), st.floats(-3, 20))
def test_the_theorem_of_the_paper(weights, epsilon, utility_sensitivity, t):
    exponent = paper_exponent(epsilon, utility_sensitivity)
    below = paper_utility_threshold(epsilon, utility_sensitivity, len(weights), t)
    assert probability_of(weights, exponent, below) <= math.exp(-t) * (1 + 1e-9)


def test_the_theorem_of_the_paper_is_sharp_to_a_constant():
    # All others are off by exactly the threshold: P = N e^-t / (R + N e^-t) with N = R - 1.
    epsilon, utility_sensitivity, n, t = 1.0, 0.1, 1000, 2.0
    below = paper_utility_threshold(epsilon, utility_sensitivity, n, t)
    exact = probability_of([0.0] + [below] * (n - 1), paper_exponent(epsilon, 0.1), below * 0.999)
    assert 0.85 * math.exp(-t) < exact < math.exp(-t)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: excess_probability(0.0, 2, 1.0), "exponent must be positive and finite, not 0.0"),
        (lambda: excess_probability(math.inf, 2, 1.0), "not inf"),
        (lambda: expected_excess(1.0, 0), "at least 1 candidate, not 0"),
        (lambda: paper_exponent(-1.0, 1.0), "epsilon must be positive"),
        (lambda: paper_exponent(1.0, 0.0), "utility_sensitivity must be positive"),
        (lambda: paper_exponent(1.0, 1.0, 0), "at least 1 step"),
    ],
)
def test_errors(call, words):
    with pytest.raises(UsageError, match=words):
        call()
