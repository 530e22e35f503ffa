from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust._statistics import clopper_pearson
from ptclust.audit.mechanisms import digits
from ptclust.audit.statistical import LIKELIHOOD, Event, epsilon_bound, rho_bound


def tail(at_least, n, p):
    """Probability of ``at_least`` successes or more, in exact rationals."""
    q = Fraction(p)
    return sum(math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(at_least, n + 1))


@settings(max_examples=80)
@given(st.integers(1, 60), st.data(), st.sampled_from([0.3, 0.025, 1e-3, 1e-6]))
def test_clopper_pearson_solves_its_equations(n, data, error):
    k = data.draw(st.integers(0, n))
    low, high = (float(bound) for bound in clopper_pearson(k, n, error))
    if k == 0:
        assert low == 0
    else:
        assert float(tail(k, n, low)) == pytest.approx(error, rel=1e-6)
    if k == n:
        assert high == 1
    else:
        assert float(1 - tail(k + 1, n, high)) == pytest.approx(error, rel=1e-6)
    assert 0 <= low <= k / n <= high <= 1


def laplace(random, n, epsilon) -> tuple[Any, Any]:
    """Draws of a Laplace mechanism that spends just epsilon, under either neighbour."""

    def draw(value):
        noisy = value + random.laplace(0, 1 / epsilon, n)
        ratio = epsilon * (np.abs(noisy - 1) - np.abs(noisy))
        return {"value": noisy, LIKELIHOOD: ratio, "side": (noisy > 0.5).astype(int)}

    return draw(0.0), draw(1.0)


def test_bounds_on_epsilon_hold_and_come_close():
    random = np.random.default_rng(0)
    bounds = [epsilon_bound(*laplace(random, 600, 1.0), 0.2).value for _ in range(200)]
    assert max(bounds) > 0.8
    assert np.mean(np.array(bounds) > 1) < 0.2  # wrong with probability 0.2 at most
    assert epsilon_bound(*laplace(random, 300_000, 1.0), 1e-6).value > 0.94
    assert epsilon_bound(*laplace(random, 300_000, 1.1), 1e-6).value > 1.0


def test_learning_and_measuring_on_the_same_draws_would_deceive():
    """Of many features that mean nothing, one looks as if it did: the tester is not fooled."""
    random = np.random.default_rng(1)
    deceived = 0
    for _ in range(20):
        first, second = ({f"f{i}": random.normal(size=300) for i in range(60)} for _ in range(2))
        deceived += epsilon_bound(first, second, 0.2).value > 0
    assert deceived <= 8


def test_many_names_do_not_hide_an_honest_event():
    """Unions of rare names look typical by chance; counted where they were found they would win."""
    random = np.random.default_rng(7)
    first, second = laplace(random, 60_000, 2.0)
    for outcomes in (first, second):
        outcomes["digits"] = random.integers(0, 3000, 60_000)
    found = epsilon_bound(first, second, 1e-4)
    assert found.value > 1.8
    assert not found.witness.startswith("digits")


def test_delta_is_taken_off():
    """An event of probability delta under one neighbour only is no contradiction; twice that is."""
    n, delta = 60_000, 0.05
    for share, leaks in ((0.05, False), (0.1, True)):
        random = np.random.default_rng(2)
        first = {"seen": (random.random(n) < share).astype(int)}
        second = {"seen": np.zeros(n, dtype=int)}
        assert (epsilon_bound(first, second, 1e-4, delta).value > 3) == leaks
        assert epsilon_bound(first, second, 1e-4).value > 3


def test_the_order_of_neighbours_does_not_matter():
    n, random = 3000, np.random.default_rng(3)
    first = {"seen": np.zeros(n, dtype=int)}
    second = {"seen": (random.random(n) < 0.5).astype(int)}  # 1 is seen under one neighbour only
    for one, other in ((first, second), (second, first)):
        assert epsilon_bound(one, other, 1e-4).value > 3


def test_what_is_not_there_is_in_no_cut():
    values = {"weight": np.array([np.nan, 1.0, 2.0])}
    assert Event("weight", 1.5, above=True).happened(values).tolist() == [False, False, True]
    assert Event("weight", 1.5, above=False).happened(values).tolist() == [False, True, False]
    assert str(Event("weight", 1.5)) == "weight > 1.5"
    nothing = {"weight": np.full(30, np.nan)}
    assert epsilon_bound(nothing, nothing, 0.1).value == 0


def gaussian(random, n, rho) -> tuple[Any, Any]:
    mu = math.sqrt(2 * rho)
    first, second = (random.normal(v, 1, n) for v in (0.0, mu))
    return {LIKELIHOOD: -mu * (first - mu / 2)}, {LIKELIHOOD: -mu * (second - mu / 2)}


def test_bounds_on_rho_hold_and_come_close():
    random = np.random.default_rng(4)
    bounds = [rho_bound(*gaussian(random, 4000, 0.5), 0.2).value for _ in range(200)]
    assert np.mean(np.array(bounds) > 0.5) < 0.2
    assert np.mean(bounds) > 0.3
    assert 0.93 < rho_bound(*gaussian(random, 500_000, 1.0), 1e-6).value < 1
    assert rho_bound(*gaussian(random, 500_000, 1.1), 1e-6).value > 1


def test_digits_name_the_first_and_the_last():
    names = digits(np.array([1.0, -1.0, 1.5, 3.0, 0.5 + 2.0**-53, 0.0]))
    first, last = np.divmod(names - 2**30, 4096)
    assert first.tolist()[:5] == [1, 1, 1, 2, 0]
    assert (last - 2048).tolist()[:5] == [0, 0, -1, 0, -53]
