"""Gaussian noise by its own curve: the bound holds, is close, and is charged and checked."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr

from ptclust import PTClust, Release, Sensitivity
from ptclust.datasets import planted_graph
from ptclust.errors import FileError
from ptclust.ledger import Ledger
from ptclust.privacy import Budget, gaussian_curve
from ptclust.privacy.gaussian_curve import (
    continuous_delta,
    largest_mu,
    lattice_delta,
    tail_bounds,
)
from ptclust.privacy.noise import gaussian_noise, gaussian_noise_alone, spent_by


def in_floats(mu: float, epsilon: float) -> float:
    first, second = log_ndtr(mu / 2 - epsilon / mu), log_ndtr(-mu / 2 - epsilon / mu)
    return float(np.exp(first) - np.exp(epsilon + second))


@given(st.floats(1.5, 36))
def test_tails_are_those_of_the_normal_distribution(x: float) -> None:
    low, high = tail_bounds(Fraction(x))
    assert 0 < low < high < low * (1 + Fraction(1, 10**24))
    assert float(low) == pytest.approx(math.erfc(x / math.sqrt(2)) / 2, rel=1e-12)


def test_tails_have_the_digits_of_the_tables() -> None:
    low, high = tail_bounds(Fraction(2))
    assert low < Fraction("0.02275013194817920720028263716653343747178") < high
    with pytest.raises(ValueError, match="3/2"):
        tail_bounds(Fraction(1))


@given(st.floats(0.05, 20), st.floats(-14, -2))
def test_the_continuous_curve_is_that_of_balle_and_wang(epsilon: float, log_delta: float) -> None:
    delta = 10.0**log_delta
    mu = largest_mu(epsilon, delta)
    bound = continuous_delta(Fraction(mu), Fraction(epsilon))
    if bound < 1:
        assert float(bound) == pytest.approx(in_floats(mu, epsilon), rel=1e-7)
        assert float(bound) == pytest.approx(delta, rel=1e-6)
        assert continuous_delta(Fraction(mu) * 2 / 3, Fraction(epsilon)) < bound
    else:
        assert epsilon / mu - mu / 2 < 1.5


def exact_delta(v: tuple[int, ...], t: float, epsilon: float) -> float:
    """Of discrete Gaussian noise on one or two values, added up over the lattice."""
    sizes = np.arange(-int(9 * t), int(9 * t) + 1)
    log_mass = -(sizes**2) / (2 * t**2)
    log_mass -= np.log(np.exp(log_mass).sum())
    moved = [-((sizes + step) ** 2) / (2 * t**2) for step in v]
    norm = np.log(np.exp(-(sizes**2) / (2 * t**2)).sum())
    moved = [each - norm for each in moved]
    here, there = log_mass, moved[0]
    if len(v) == 2:
        here = log_mass[:, None] + log_mass[None, :]
        there = moved[0][:, None] + moved[1][None, :]
    return float(np.maximum(np.exp(here) - np.exp(epsilon + there), 0.0).sum())


CASES: list[tuple[tuple[int, ...], int, float]] = [
    ((400,), 1000, 2.0),
    ((150,), 1000, 0.4),
    ((75, 75), 300, 2.0),
    ((120, 9), 300, 1.5),
]


@pytest.mark.parametrize(("v", "t", "epsilon"), CASES)
def test_the_theorem_bounds_exact_sums(monkeypatch: Any, v: Any, t: int, epsilon: float) -> None:
    monkeypatch.setattr(gaussian_curve, "FINEST_T", Fraction(2))  # where the proof holds, too
    norm = math.hypot(*v)
    exact = exact_delta(v, t, epsilon)
    bound = lattice_delta(Fraction(norm), Fraction(t), len(v), Fraction(epsilon))
    assert exact <= float(bound) < 1
    assert exact == pytest.approx(in_floats(norm / t, epsilon), rel=1e-3)
    # On a lattice as fine as those that are used, the bound is the continuous curve.
    fine = lattice_delta(Fraction(norm) * 2**40, Fraction(t) * 2**40, len(v), Fraction(epsilon))
    assert float(fine) == pytest.approx(in_floats(norm / t, epsilon), rel=1e-8)


def test_a_coarse_lattice_has_no_curve() -> None:
    assert lattice_delta(Fraction(1), Fraction(2**19), 1, Fraction(1)) == 1


BUDGETS = [(0.01, 1e-6), (0.1, 1e-6), (1, 1e-6), (5, 1e-6), (1, 1e-12), (20, 1e-3)]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("n", [1, 10**7])
def test_noise_is_less_than_by_zcdp(epsilon: float, delta: float, n: int) -> None:
    budget, sensitivity = Budget.approximate(epsilon, delta), Sensitivity(linf=5e-4)
    noise = gaussian_noise_alone(sensitivity, n, budget)
    by_zcdp = gaussian_noise(sensitivity, n, budget.to_zcdp().amount)
    assert 0.035 < 1 - noise.scale / by_zcdp.scale < 0.1
    kept = noise.law.curve_delta(noise, sensitivity, budget)
    assert kept <= budget.delta
    assert float(kept) == pytest.approx(delta, rel=1e-3)
    less = replace(noise, scale=noise.scale * 0.9995)
    assert less.law.curve_delta(less, sensitivity, budget) > budget.delta


def test_noise_is_never_more_than_by_zcdp() -> None:
    budget, sensitivity = Budget.approximate(0.5, 0.3), Sensitivity(linf=5e-4)
    noise = gaussian_noise_alone(sensitivity, 10, budget)
    assert noise == gaussian_noise(sensitivity, 10, budget.to_zcdp().amount)
    assert gaussian_noise_alone(sensitivity, 0, budget).n_values == 0


def test_what_is_spent_carries_its_rho() -> None:
    spent = Budget.approximate(1, 1e-6, "1/30")
    assert spent == Budget.approximate(1, 1e-6)
    assert spent.implied_zcdp == Budget.zcdp("1/30")
    assert (spent + spent).implied_zcdp == Budget.zcdp("1/15")
    assert Budget.approximate(1, 1e-6).implied_zcdp is None
    assert (spent + Budget.approximate(1, 1e-6)).implied_zcdp is None
    assert spent.to_zcdp() == Budget.approximate(1, 1e-6).to_zcdp() != Budget.zcdp("1/30")
    assert Budget.pure(1).implied_zcdp == Budget.zcdp("1/2")


def release(**options: Any) -> Release:
    graph = planted_graph("moons", 100, seed=2).graph
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "sensitivity": Sensitivity(linf=1e-4)}
    model = PTClust(**asked, mechanism="gaussian", privacy_unit="one", **options)
    released: Release = model.fit(graph).release_
    return released


def test_ledgers_are_charged_what_adds_up(tmp_path: Any) -> None:
    ledger = Ledger.create(tmp_path / "spent.ledger")
    ledger.add_dataset("rho", Budget.zcdp(1))
    ledger.add_dataset("epsilon", Budget.approximate(3, 1e-5))
    for dataset in ("rho", "epsilon"):
        statement = release(ledger=ledger, dataset=dataset).statement
        spent = spent_by(release().weight_noise, Sensitivity(linf=1e-4))
        assert spent is not None
        assert (
            statement.rho
            == float(spent.amount)
            > float(Budget.approximate(1, 1e-6).to_zcdp().amount)
        )
    assert ledger.account("rho").spent.amount == spent.amount
    assert ledger.account("epsilon").spent.amount == 1
    assert float(ledger.account("epsilon").spent.delta) == 1e-6


def test_a_file_must_keep_what_it_claims(tmp_path: Any) -> None:
    released = release()
    released.save(tmp_path / "release.json")
    assert Release.load(tmp_path / "release.json").statement == released.statement
    assert "own curve" in released.statement.composition
    lower = replace(released.statement, epsilon=0.99, composition="", composition_rule="")
    Release(published=released.published, statement=lower).save(tmp_path / "lower.json")
    with pytest.raises(FileError, match="allow a rho of"):
        Release.load(tmp_path / "lower.json")
