"""The budget of a series: tight, sound, unequal if wanted, and never more than its total."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ptclust import Sensitivity, Topology
from ptclust.errors import UsageError
from ptclust.planning.plan import PlanRequest
from ptclust.planning.series import SeriesBudget, SeriesPlan, joint_epsilon, plan_series
from ptclust.privacy.gaussian_curve import joint_delta, largest_mu, lattice_delta

LINE = Topology(range(99), range(1, 100))


def planned(budget: SeriesBudget, mechanism: str = "gaussian", **bounds: float) -> SeriesPlan:
    request = PlanRequest(
        epsilon=budget.epsilon,
        delta=budget.delta,
        sensitivity=Sensitivity(**(bounds or {"l1": 1.0})),
        mechanism=mechanism,
    )
    return plan_series(LINE, request, budget)


def test_twelve_releases_need_less_than_two_fifths_of_the_noise_of_splitting() -> None:
    plan = planned(SeriesBudget(3, 1e-6, releases=12))
    assert plan.rule == "gaussian"
    assert plan.less_noise <= 0.4
    assert plan.plans[0].chosen.noise == pytest.approx(plan.alone.chosen.noise * 12**0.5, rel=1e-3)


@pytest.mark.parametrize("shares", [(1, 1), (1, 2, 3), (1,) * 12])
def test_parts_are_the_whole(shares: tuple[int, ...]) -> None:
    plan = planned(SeriesBudget(2, 1e-6, shares=shares))
    rhos = [each.chosen.spent.implied_zcdp.amount for each in plan.plans]
    assert sum(rhos) <= plan.account.amount
    epsilon = joint_epsilon(rhos, Fraction(2**39), 99 * len(shares), Fraction(1e-6))
    assert 1.999 < epsilon <= 2
    for rho, part in zip(rhos, plan.budget.parts, strict=True):
        assert float(rho / plan.account.amount) == pytest.approx(float(part), rel=1e-3)


def test_joint_curve_is_that_of_one_release_with_all() -> None:
    mu = Fraction(largest_mu(1.0, 1e-6)) * (1 - Fraction(1, 2**18))
    t = Fraction(2**40)
    one = lattice_delta(mu * t, t, 10, Fraction(1))
    several = joint_delta([mu**2 / 2 * Fraction(i, 6) for i in (1, 2, 3)], t, 10, Fraction(1))
    assert float(several) == pytest.approx(float(one), rel=1e-9)
    more = joint_delta([mu**2 / 2] * 2, t, 10, Fraction(1))
    assert more > 100 * one


def test_other_mechanisms_add_up_as_rho_or_epsilon() -> None:
    tree = planned(SeriesBudget(3, 1e-6, releases=4), "kruskal", linf=0.01)
    assert tree.rule == "zcdp"
    assert sum(each.chosen.spent.implied_zcdp.amount for each in tree.plans) <= tree.account.amount  # type: ignore[misc]
    few, many = (
        planned(SeriesBudget(1, 1e-6, releases=count), "laplace").rule for count in (2, 500)
    )
    assert (few, many) == ("pure", "zcdp")
    assert planned(SeriesBudget(3, 0, releases=4), "laplace").account.amount == 3


def test_per_period_says_what_the_year_costs() -> None:
    plan = planned(SeriesBudget(1, 1e-6, releases=12, per="period"))
    assert float(plan.plans[0].request.epsilon) == pytest.approx(1, rel=1e-3)
    assert 3.8 < float(plan.whole.epsilon) < 4.2
    assert "all periods together is protected by" in plan.to_text()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "releases=, or shares="),
        ({"releases": 2, "shares": (1, 1)}, "releases=, or shares="),
        ({"releases": 0}, "1 to 10,000 releases"),
        ({"shares": (1, -1)}, "greater than 0"),
        ({"shares": (1, 1), "per": "period"}, "leave shares out"),
        ({"releases": 2, "per": "day"}, "'series' or 'period'"),
    ],
)
def test_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SeriesBudget(1, 1e-6, **wrong)
