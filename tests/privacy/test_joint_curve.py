"""A tree and the weights of it share (epsilon, delta) by their joint curve: it holds, and helps."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from ptclust import PTClust, Release, Sensitivity, Topology, plan
from ptclust.audit.noise import gaussian_delta, worst_after_steps, worst_gaussian
from ptclust.datasets import planted_graph
from ptclust.errors import BudgetError, FileError, UsageError
from ptclust.ledger import Ledger, Payment
from ptclust.mechanisms import MECHANISMS
from ptclust.mechanisms.exponential import ALONE
from ptclust.mechanisms.laws import GRAPHS
from ptclust.privacy import Budget, Noise, gaussian_curve
from ptclust.privacy.gaussian_curve import Steps, lattice_delta, square_after
from ptclust.privacy.provenance import Spending
from ptclust.privacy.statement import PrivacyStatement

LINF = Sensitivity(linf=5e-4)


def two_outcomes(loss_range: float, place: float) -> list[tuple[float, float]]:
    """Losses and probabilities of a step that has ``place`` of its range above 0."""
    up = place * loss_range
    rises = (math.exp(loss_range) - math.exp(up)) / math.expm1(loss_range)
    return [(up, rises), (up - loss_range, 1 - rises)]


# The lemma


@given(st.floats(0.02, 2), st.floats(0.01, 0.99), st.floats(0.02, 0.98), st.floats(-6, 8))
def test_a_step_and_noise_are_within_more_noise(
    mu: float, of_mu: float, place: float, deviations: float
) -> None:
    """At every epsilon, as far as doubles tell."""
    loss_range = 2 * mu * of_mu
    square = mu**2 * mu**2 / (mu**2 - loss_range**2 / 4)
    epsilon = square / 2 + deviations * math.sqrt(square)
    outcomes = two_outcomes(loss_range, place)
    assert sum(p * math.exp(-loss) for loss, p in outcomes) == pytest.approx(1)
    both = sum(p * gaussian_delta(mu, np.array(epsilon - loss)) for loss, p in outcomes)
    assert both <= gaussian_delta(math.sqrt(square), np.array(epsilon)) * (1 + 1e-7) + 1e-15


def test_less_than_the_variance_of_a_step_would_not_do() -> None:
    """The lemma adds v = range^2/4 and a little; 0.97 v is refuted."""
    mu, loss_range, epsilon = 0.2, 0.02, 1.0
    both = sum(
        p * gaussian_delta(mu, np.array(epsilon - loss))
        for loss, p in two_outcomes(loss_range, 0.5)
    )
    for share, holds in ((1.0, True), (0.97, False)):
        added = mu**2 + share * loss_range**2 / 4
        assert (both <= gaussian_delta(math.sqrt(added), np.array(epsilon))) == holds


@given(st.integers(1, 300), st.floats(1e-4, 0.3), st.floats(1.01, 50))
def test_the_sum_of_all_steps_is_above_the_recursion(k: int, loss_range: float, m: float) -> None:
    v = loss_range**2 / 4
    tau = m * v
    bound = square_after(Fraction(tau), Steps(k, Fraction(loss_range)))
    for _ in range(k):
        tau += v + v**2 / (tau - v)
    assert bound is not None
    assert tau <= float(bound) * (1 + 1e-12)
    if m > 10:
        assert float(bound) < tau + v * (0.2 + 0.05 * math.log(k))


def test_steps_that_lose_more_than_the_noise_have_no_bound() -> None:
    steps = Steps(3, Fraction("0.2"))
    assert square_after(Fraction("0.01"), steps) is None
    assert lattice_delta(Fraction(2**39), Fraction(2**40) * 5, 3, Fraction(1), steps) == 1
    assert square_after(Fraction("0.01"), Steps()) == Fraction("0.01")


# The theorem, against exact sums


@pytest.mark.parametrize(("v", "t", "ranges"), [(40, 200, (0.1, 0.15)), (60, 300, (0.2,))])
def test_steps_and_lattice_noise_by_exact_sums(
    monkeypatch: Any, v: int, t: int, ranges: tuple[float, ...]
) -> None:
    """Discrete noise on a coarse lattice after steps of every place, added up."""
    monkeypatch.setattr(gaussian_curve, "FINEST_T", Fraction(2))
    sizes = np.arange(-12 * t, 12 * t + 1)
    here, there = (-((sizes + by) ** 2) / (2.0 * t**2) for by in (0, v))
    norm = np.log(np.exp(here).sum())
    steps = Steps(len(ranges), Fraction(max(ranges)))
    for epsilon in (0.5, 1.0, 1.5):
        bound = lattice_delta(Fraction(v), Fraction(t), 1, Fraction(epsilon), steps)
        for place in (0.1, 0.5, 0.8):
            exact, paths = 0.0, [(0.0, 1.0)]
            for one in ranges:
                paths = [
                    (s + loss, p * q) for s, p in paths for loss, q in two_outcomes(one, place)
                ]
            for loss, p in paths:
                difference = np.exp(here - norm) - np.exp(epsilon - loss + there - norm)
                exact += p * float(np.maximum(difference, 0.0).sum())
            assert exact <= float(bound)


@pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
@pytest.mark.parametrize("name", ["K3", "K4"])
def test_trees_and_weights_of_small_graphs(mechanism: str, name: str) -> None:
    """The exact delta of tree and weights over random neighbours is within delta."""
    graph, delta, epsilon = GRAPHS[name], 1e-3, 1.0
    topology = Topology(*zip(*graph.edges, strict=True))
    made = MECHANISMS[mechanism].calibrate(
        topology, Sensitivity(linf=1.0), Budget.approximate(epsilon, delta)
    )
    assert made.tree is not None
    law, random = MECHANISMS[mechanism].laws(graph)[-1], np.random.default_rng(1)
    mu, worst = math.sqrt(law.n_steps) / made.weights.scale, 0.0
    for i in range(600):
        energies = random.normal(0.0, (0.5, 2.0, 8.0)[i % 3], len(graph.edges))
        change = random.choice([-1.0, 1.0], len(graph.edges))
        here = law.log_probabilities(energies)
        there = law.log_probabilities(energies + made.tree.exponent * change)
        found = np.exp(here) @ gaussian_delta(mu, epsilon - (here - there))
        worst = max(worst, float(found))
    assert delta / 100 < worst <= delta


def test_an_adversary_who_adapts_gets_close_and_no_further() -> None:
    for n_steps, close in ((3, 0.85), (30, 0.97), (100, 0.99)):
        assert close < worst_after_steps("kruskal", n_steps).loss <= 1.0
    assert worst_after_steps("pamst", 100, more=0.02).loss > 1.0
    assert 0.9999 < worst_gaussian().loss <= 1.0
    assert worst_gaussian(more=0.001).loss > 1.0


def test_the_curve_that_adversaries_are_measured_by() -> None:
    """The delta of Balle and Wang, by an integral."""
    for mu, epsilon in ((0.3, 0.2), (1.0, 1.5), (0.5, -0.4)):

        def part(x: float, mu: float = mu, epsilon: float = epsilon) -> float:
            one, two = (math.exp(-((x - by) ** 2) / 2) for by in (mu, 0.0))
            return max(one - math.exp(epsilon) * two, 0.0) / math.sqrt(2 * math.pi)

        at = epsilon / mu + mu / 2
        integral = quad(part, at, 12 + at)[0]
        assert float(gaussian_delta(mu, np.array(epsilon))) == pytest.approx(integral, rel=1e-6)


# What is made of it


@pytest.mark.parametrize("n", [100, 1000, 10**5])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_six_per_cent_less_noise_than_by_zcdp(n: int, epsilon: float) -> None:
    path, budget = Topology(range(n), range(1, n + 1)), Budget.approximate(epsilon, 1e-6)
    for name in ("kruskal", "pamst"):
        mechanism = MECHANISMS[name]
        made = mechanism.calibrate(path, LINF, budget)
        before = mechanism.calibrate(path, LINF, budget.to_zcdp())
        assert made.tree is not None
        assert before.tree is not None
        assert made.weights.scale < 0.94 * before.weights.scale
        assert made.tree.exponent > before.tree.exponent / 0.94
        assert mechanism.keeps(made, LINF, budget)
        loses = replace(made, weights=replace(made.weights, scale=made.weights.scale * 0.995))
        assert not mechanism.keeps(loses, LINF, budget)
        steeper = replace(made, tree=replace(made.tree, exponent=made.tree.exponent * 1.005))
        assert not mechanism.keeps(steeper, LINF, budget)


@pytest.mark.parametrize("epsilon", [1e-3, 1, 50, 1e4, 1e6])
@pytest.mark.parametrize("split", [None, Fraction(1, 50), Fraction(49, 50), ALONE])
def test_never_more_noise_than_by_zcdp(epsilon: float, split: Fraction | None) -> None:
    for n in (1, 2, 50):
        path, budget = Topology(range(n), range(1, n + 1)), Budget.approximate(epsilon, 1e-6)
        made, before = (
            MECHANISMS["kruskal"].calibrate(path, LINF, each, split=split)
            for each in (budget, budget.to_zcdp())
        )
        assert made.weights.scale <= before.weights.scale
        assert made.tree.exponent >= before.tree.exponent
        rho = made.spent.implied_zcdp
        assert rho is not None
        by_zcdp = rho.fits_in(budget)
        assert by_zcdp or MECHANISMS["kruskal"].keeps(made, LINF, budget)


def test_an_epsilon_beyond_all_curves_is_planned_by_zcdp() -> None:
    path = Topology(range(9), range(1, 10))
    made = plan(path, epsilon=1e6, delta=1e-6, sensitivity=LINF)
    assert {each.mechanism for each in made.calibrations} >= {"gaussian", "kruskal"}
    budget = Budget.approximate(1e6, 1e-6)
    assert (
        made.calibrations[0].weights.law.curve_delta(made.calibrations[0].weights, LINF, budget)
        == 1
    )


def released(**options: Any) -> Release:
    graph = planted_graph("moons", 100, seed=2).graph
    model = PTClust(
        epsilon=1,
        delta=1e-6,
        sensitivity=Sensitivity(linf=1e-4),
        mechanism="kruskal",
        privacy_unit="one",
        clusterer="levels",
        **options,
    )
    release: Release = model.fit(graph).release_
    return release


def test_ledgers_add_the_rho_of_both(tmp_path: Any) -> None:
    ledger = Ledger.create(tmp_path / "spent.ledger")
    ledger.add_dataset("rho", Budget.zcdp(1))
    statement = released(ledger=ledger, dataset="rho").statement
    shares = sum(use.share for use in statement.mechanisms)
    charged = float(ledger.account("rho").spent.amount)
    assert charged == pytest.approx(shares, rel=1e-12)
    assert charged == pytest.approx(statement.rho, rel=1e-12)
    assert charged > 1.1 * float(Budget.approximate(1, 1e-6).to_zcdp().amount)


def test_a_file_must_keep_what_it_claims(tmp_path: Any) -> None:
    release = released()
    release.save(tmp_path / "release.json")
    assert Release.load(tmp_path / "release.json").statement == release.statement
    assert "curve of all mechanisms" in release.statement.composition
    lower = replace(release.statement, epsilon=0.99)
    Release(published=release.published, statement=lower).save(tmp_path / "lower.json")
    with pytest.raises(FileError, match="allow a rho of"):
        Release.load(tmp_path / "lower.json")
    # A larger exponent that goes with a larger rho is not within epsilon.
    tree, weights = release.statement.mechanisms
    parameters = {**tree.parameters, "exponent": tree.parameters["exponent"] * 1.05}
    steeper = replace(
        tree,
        parameters=parameters,
        scale=1 / parameters["exponent"],
        share=tree.share * 1.05**2,
    )
    rho = steeper.share + weights.share
    claim = replace(release.statement, mechanisms=(steeper, weights), rho=rho)
    Release(published=release.published, statement=claim).save(tmp_path / "steeper.json")
    with pytest.raises(FileError, match="allow a rho of"):
        Release.load(tmp_path / "steeper.json")
    assert json.loads((tmp_path / "steeper.json").read_text())["statement"]["epsilon"] == 1.0


@pytest.mark.parametrize("exponent", [1e300, 1e-320, -1.0, 0.0])
def test_an_exponent_that_none_draws_with_is_refused(tmp_path: Any, exponent: float) -> None:
    """It is squared when the claim is computed anew, and would overflow."""
    release = released()
    tree, weights = release.statement.mechanisms
    parameters = {**tree.parameters, "exponent": exponent}
    claim = replace(release.statement, mechanisms=(replace(tree, parameters=parameters), weights))
    Release(published=release.published, statement=claim).save(tmp_path / "forged.json")
    with pytest.raises(FileError, match="is not a valid release"):
        Release.load(tmp_path / "forged.json")


@pytest.mark.parametrize("granularity", [-5000, -1075, 1024])
def test_a_lattice_beyond_all_floats_is_refused(granularity: int) -> None:
    with pytest.raises(UsageError, match="granularity must lie between"):
        Noise("gaussian", scale=1.0, granularity=granularity, n_values=3)


def test_the_summary_takes_the_noise_that_there_is() -> None:
    release = released()
    noise = {round(each.epsilon, 6): each.noise for each in release.summary.separation.visibilities}
    assert noise[1.0] == pytest.approx(release.weight_noise.standard_deviation, rel=1e-12)


# (epsilon, delta) implies no rho


def test_what_is_known_by_epsilon_and_delta_alone_is_not_charged_as_rho(tmp_path: Any) -> None:
    """The rho of `to_zcdp` implies (epsilon, delta); the reverse does not hold."""
    ledger = Ledger.create(tmp_path / "spent.ledger")
    ledger.add_dataset("rho", Budget.zcdp(1))
    ledger.add_dataset("epsilon", Budget.approximate(3, 1e-5))
    look = Spending(
        purpose="a look", budget=Budget.approximate(1, 1e-6), noise="truncated", scale=1.0
    )
    with pytest.raises(BudgetError, match="implies no zCDP guarantee"):
        Payment.by(ledger, "rho").settle([look])
    Payment.by(ledger, "epsilon").settle([look])
    assert ledger.account("epsilon").spent.amount == 1
    assert ledger.account("rho").spent.amount == 0


def test_a_statement_needs_the_rho() -> None:
    bounds: Any = {"mechanisms": (), "randomness": "secure"}
    with pytest.raises(UsageError, match="has to say the rho"):
        PrivacyStatement.of(Budget.approximate(1, 1e-6), LINF, **bounds)
    known = Budget.approximate(1, 1e-6, zcdp="1/40")
    assert PrivacyStatement.of(known, LINF, **bounds).rho == 0.025
