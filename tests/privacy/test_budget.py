"""Budgets: exact sums, honest conversions, and refusals that say what to do."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.errors import UsageError
from ptclust.privacy import Budget
from ptclust.privacy._numbers import shown

amounts = st.floats(1e-9, 1e9) | st.fractions(Fraction(1, 10**9), 10**9)


@pytest.mark.parametrize("k", [3, 7, 10, 11, 49, 1000])
@given(amount=amounts)
@settings(max_examples=20)
def test_equal_parts_add_up_to_exactly_the_whole(k: int, amount: Fraction) -> None:
    for budget in (Budget.pure(amount), Budget.zcdp(amount)):
        parts = budget.split(*[1] * k)
        assert len(parts) == k
        assert reduce(add, parts) == budget


@given(amount=amounts, shares=st.lists(amounts, min_size=1, max_size=9))
def test_any_parts_add_up_to_exactly_the_whole(amount: Fraction, shares: list[Fraction]) -> None:
    budget = Budget.pure(amount)
    parts = budget.split(*shares)
    assert reduce(add, parts) == budget
    assert reduce(add, parts).fits_in(budget)
    for share, part in zip(shares, parts):
        assert part.epsilon * Fraction(shares[0]) == parts[0].epsilon * Fraction(share)


@given(amount=amounts, fraction=st.floats(1e-6, 1, exclude_max=True))
def test_a_share_and_the_rest_are_the_whole(amount: Fraction, fraction: float) -> None:
    part, rest = Budget.zcdp(amount).share(fraction)
    assert part.rho == Fraction(amount) * Fraction(fraction)
    assert part + rest == Budget.zcdp(amount)


@pytest.mark.parametrize("value", [0, 1, -0.5, 1.5, math.nan, True, "half", None])
def test_a_share_lies_between_0_and_1(value: Any) -> None:
    with pytest.raises(UsageError, match="share") as refused:
        Budget.pure(1).share(value)
    assert repr(value) in str(refused.value)


def test_numbers_are_taken_exactly() -> None:
    assert Budget.pure(0.1).epsilon == Fraction(0.1) != Fraction(1, 10)
    for tenth in ("0.1", "1/10", Decimal("0.1"), Fraction(1, 10), "1e-1"):
        assert Budget.pure(tenth).epsilon == Fraction(1, 10)
    assert Budget.pure(np.float64(0.1)) == Budget.pure(0.1)
    assert Budget.pure(np.float32(0.5)) == Budget.pure(np.int64(1)).share(0.5)[0]


NO_NUMBERS = [
    0, 0.0, -1, -0.5, math.nan, math.inf, -math.inf, 5e-324, 1e-310, True, None, "much", "1/0",
    "nan", "1e999999999", Decimal("inf"), Decimal("1e-999999999"), 1j, [1], 10**400,
    Fraction(1, 10**400),
]  # fmt: skip


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:20])
def test_what_is_no_budget_is_refused_with_the_value(value: Any) -> None:
    for make, name in ((Budget.pure, "epsilon"), (Budget.zcdp, "rho")):
        with pytest.raises(UsageError, match=name) as refused:
            make(value)
        assert shown(value) in str(refused.value)
        assert "Smaller means more private" in str(refused.value)
    with pytest.raises(UsageError, match="epsilon"):
        Budget.approximate(value, 1e-6)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.0, 2, math.nan, math.inf, True, None, "x", 1e-310])
def test_a_delta_is_a_small_probability(delta: Any) -> None:
    with pytest.raises(UsageError, match="delta") as refused:
        Budget.approximate(1, delta)
    assert repr(delta) in str(refused.value)
    with pytest.raises(UsageError, match="delta"):
        Budget.zcdp(1).epsilon_at(delta)


def test_delta_0_is_pure() -> None:
    assert Budget.approximate(1, 0) == Budget.approximate(1, 0.0) == Budget.pure(1)
    assert Budget.pure(1).delta == 0


def test_an_approximate_budget_is_converted_before_it_is_split() -> None:
    budget = Budget.approximate(1, 1e-6)
    for attempt in (lambda: budget.split(1, 1), lambda: budget.share(0.5)):
        with pytest.raises(UsageError, match=r"to_zcdp\(\)"):
            attempt()
    with pytest.raises(UsageError, match="at least one share"):
        Budget.pure(1).split()
    with pytest.raises(UsageError, match="share"):
        Budget.pure(1).split(1, 0)


def test_only_like_budgets_add() -> None:
    assert Budget.approximate(1, "0.25") + Budget.approximate(2, "0.5") == Budget.approximate(
        3, "0.75"
    )
    with pytest.raises(UsageError, match="different kinds"):
        Budget.pure(1) + Budget.zcdp(1)
    with pytest.raises(TypeError):
        Budget.pure(1) + 1


def test_what_fits_in_what() -> None:
    third = Budget.pure("1/3")
    assert (third + third + third).fits_in(Budget.pure(1))
    assert not Budget.pure("1.0000000000000000001").fits_in(Budget.pure(1))
    assert Budget.pure(1).fits_in(Budget.approximate(1, 1e-9))
    assert not Budget.approximate(1, 1e-9).fits_in(Budget.pure(2))
    assert not Budget.approximate(1, 1e-6).fits_in(Budget.approximate(1, 1e-9))
    assert Budget.pure(1).fits_in(Budget.zcdp(0.5))
    assert not Budget.pure(1).fits_in(Budget.zcdp(0.49))
    assert not Budget.approximate(1e-3, 1e-9).fits_in(Budget.zcdp(100))
    assert Budget.zcdp(0.024).fits_in(Budget.approximate(1, 1e-6))
    assert not Budget.zcdp(0.025).fits_in(Budget.approximate(1, 1e-6))
    assert not Budget.zcdp(1e9).fits_in(Budget.approximate(1, 1e-6))  # the conversion overflows
    assert not Budget.zcdp(0.1).fits_in(Budget.pure(100))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1.0, 1e-6), ("1/3", "1/1000000"), (0.01, 1e-12), (10, 1e-5), (1e-4, 0.01), (2, 0.5)],
)
def test_conversion_to_zcdp_is_sound_and_tight(epsilon: Any, delta: Any) -> None:
    budget = Budget.approximate(epsilon, delta)
    converted = budget.to_zcdp()
    assert converted.rho is not None
    assert Fraction(_opendp_epsilon(converted.rho, budget.delta)) <= budget.epsilon
    assert converted.fits_in(budget)
    slightly_more = converted.rho * (1 + Fraction(1, 10**9))
    assert Fraction(_opendp_epsilon(slightly_more, budget.delta)) > budget.epsilon
    assert not Budget.zcdp(slightly_more).fits_in(budget)


def _opendp_epsilon(rho: Fraction, delta: Fraction) -> float:
    """OpenDP's conversion once more: a Gaussian of scale 1 at a distance that costs ``rho``."""
    import opendp.prelude as dp

    from ptclust.privacy.noise.opendp import opendp_features

    with opendp_features("contrib"):
        gaussian = dp.m.make_gaussian(
            dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0, k=-1074
        )
        curve = dp.c.make_zCDP_to_approxDP(gaussian).map(math.sqrt(2 * rho) * (1 - 1e-15))
    return float(curve.epsilon(float(delta)))


def test_conversion_is_consistent_with_the_simple_bound() -> None:
    # Bun and Steinke 2016, Proposition 1.3; the tight conversion is never worse.
    for rho in (1e-3, 0.1, 3.0):
        for delta in (1e-9, 1e-3):
            simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
            assert 0.5 * simple < Budget.zcdp(rho).epsilon_at(delta) <= simple


def test_a_pure_budget_implies_zcdp() -> None:
    assert Budget.pure("1/3").to_zcdp() == Budget.zcdp("1/18")
    assert Budget.zcdp(1).to_zcdp() == Budget.zcdp(1)


def test_a_vast_epsilon_still_converts_soundly() -> None:
    budget = Budget.approximate(1e5, 1e-6)
    assert budget.to_zcdp().fits_in(budget)


def test_a_zcdp_budget_has_no_epsilon_of_its_own() -> None:
    budget = Budget.zcdp(0.5)
    for attempt in (lambda: budget.epsilon, lambda: budget.delta):
        with pytest.raises(UsageError, match=r"epsilon_at\(delta\)"):
            attempt()
    assert Budget.pure(1).rho is None
    with pytest.raises(UsageError, match=r"has \.epsilon"):
        Budget.pure(1).epsilon_at(1e-6)


BUDGETS = [Budget.pure("1/3"), Budget.pure(2), Budget.approximate(0.1, 1e-6), Budget.zcdp("1/7")]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_texts_and_dictionary(budget: Budget) -> None:
    assert eval(repr(budget)) == budget
    assert Budget.from_dict(budget.to_dict()) == budget
    assert {budget: 1}[Budget.from_dict(budget.to_dict())] == 1


def test_words_for_people() -> None:
    assert str(Budget.approximate(1, 1e-6)) == "epsilon = 1, delta = 1e-06"
    assert str(Budget.zcdp("1/3")) == "rho = 0.333333 (zCDP)"


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"kind": "pure"},
        {"kind": "other", "epsilon": 1},
        {"kind": "zcdp", "rho": 1, "delta": 0.1},
        {"kind": "approximate", "epsilon": 1},
    ],
)
def test_a_broken_dictionary_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Budget.from_dict(content)


def test_opendp_features_stay_as_they_were() -> None:
    from opendp.mod import GLOBAL_FEATURES

    from ptclust.privacy.noise.opendp import opendp_features

    before = set(GLOBAL_FEATURES)
    with opendp_features("contrib", "honest-but-curious"):
        assert {"contrib", "honest-but-curious"} <= GLOBAL_FEATURES
    assert before == GLOBAL_FEATURES
