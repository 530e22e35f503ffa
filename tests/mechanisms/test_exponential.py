"""The exponent of a private tree: as large as the budget affords, never larger."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.errors import UsageError
from ptclust.graph import Graph
from ptclust.mechanisms import Kruskal, Pamst
from ptclust.mechanisms._urn_kernel import GRID, exponent_of
from ptclust.mechanisms.exponential import (
    STEP_SLACK,
    TreeCalibration,
    calibrate_published_tree,
    calibrate_tree,
)
from ptclust.privacy import Budget, RandomStream, Sensitivity

BOUNDS = st.floats(1e-250, 1e250)
SENSITIVITIES = st.builds(
    lambda bounds, norms: Sensitivity(**dict(zip(norms, bounds))),
    st.lists(BOUNDS, min_size=3, max_size=3),
    st.lists(st.sampled_from(["l1", "l2", "linf"]), min_size=1, max_size=3, unique=True),
)


def step_range(tree: TreeCalibration, sensitivity: Sensitivity) -> Fraction:
    """Range of the privacy loss of a step, exactly: section 2, and the rounding of the sampler."""
    return Fraction(tree.exponent) * Fraction(sensitivity.spread) + Fraction(STEP_SLACK)


def tree_loss(tree: TreeCalibration, sensitivity: Sensitivity) -> Fraction:
    """Privacy loss of all steps: the lemma of the mean, and the rounding of the sampler."""
    spread = Fraction(sensitivity.mean_spread(tree.n_steps))
    return tree.n_steps * (Fraction(tree.exponent) * spread + Fraction(STEP_SLACK))


@settings(max_examples=300)
@given(SENSITIVITIES, st.integers(1, 10**9), st.floats(1e-6, 1e6))
def test_pure_steps_add_up_to_no_more_than_epsilon_and_no_less(sensitivity, n_steps, epsilon):
    if epsilon / n_steps < 2 * STEP_SLACK:
        return
    tree = calibrate_tree(sensitivity, n_steps, Budget.pure(epsilon))
    spent = tree_loss(tree, sensitivity)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) < spent <= Fraction(epsilon)
    assert tree.spent == Budget.pure(epsilon)
    assert tree.n_steps == n_steps
    assert tree.slack == pytest.approx(n_steps * STEP_SLACK)


@settings(max_examples=300)
@given(SENSITIVITIES, st.integers(1, 10**9), st.floats(1e-6, 1e6))
def test_zcdp_steps_add_up_to_no_more_than_rho_and_no_less(sensitivity, n_steps, rho):
    if math.sqrt(8 * rho / n_steps) < 2 * STEP_SLACK:
        return
    tree = calibrate_tree(sensitivity, n_steps, Budget.zcdp(rho))
    spent = n_steps * step_range(tree, sensitivity) ** 2 / 8  # Cesar and Rogers 2021
    assert Fraction(rho) * (1 - Fraction(1, 10**9)) < spent <= Fraction(rho)
    assert tree.spent == Budget.zcdp(rho)


@pytest.mark.parametrize(
    ("sensitivity", "spread", "mean_spread"),
    [
        (Sensitivity(linf=0.01), 0.02, 0.02),
        (Sensitivity(l1=0.01), 0.01, 0.01),
        (Sensitivity(l2=0.01), 0.01 * math.sqrt(2), 0.01 * math.sqrt(100 / 99)),
        (Sensitivity(linf=0.01, l1=0.015), 0.015, 0.01 + 0.005 / 99),
        (Sensitivity(linf=0.01, l2=0.05), 0.02, 0.01 + math.sqrt(0.0024 / 99)),
        (Sensitivity(linf=0.01, l2=1), 0.02, 0.02),
    ],
)
def test_exponents_are_the_formulas(sensitivity, spread, mean_spread):
    pure = calibrate_tree(sensitivity, 99, Budget.pure(0.5))
    assert pure.exponent == pytest.approx(0.5 / (99 * mean_spread), rel=1e-9)
    zcdp = calibrate_tree(sensitivity, 99, Budget.zcdp(0.5))
    assert zcdp.exponent == pytest.approx(math.sqrt(8 * 0.5 / 99) / spread, rel=1e-9)
    assert zcdp.noise == pytest.approx(math.pi / math.sqrt(6) / zcdp.exponent)


@settings(max_examples=300)
@given(
    st.sampled_from([("l1", 1), ("linf", 2)]),
    BOUNDS,
    st.integers(1, 10**9),
    st.floats(1e-6, 1e6),
)
def test_under_l1_or_linf_alone_every_step_loses_the_most(norm, bound, n_steps, epsilon):
    """To the bit: the exponent is that of one step with an even share of epsilon."""
    (name, times), down = norm, 1 - 2.0**-48
    if epsilon / n_steps < 2 * STEP_SLACK:
        return
    sensitivity = Sensitivity(**{name: bound})
    assert sensitivity.mean_spread(n_steps) == sensitivity.spread == times * bound
    tree = calibrate_tree(sensitivity, n_steps, Budget.pure(epsilon))
    expected = (epsilon / n_steps * down - STEP_SLACK) / (times * bound) * down
    assert tree.exponent == min(expected, 2.0**900)
    published = calibrate_published_tree(sensitivity, n_steps, Fraction(epsilon))
    assert published.exponent == min(epsilon / (4.0 * bound * n_steps) * down, 2.0**900)
    spent = n_steps * (published.exponent * (times * bound) + STEP_SLACK) / down
    assert published.spent == Budget.pure(spent)


@settings(max_examples=200)
@given(SENSITIVITIES, st.integers(1, 10**9), st.floats(1e-6, 1e6))
def test_what_the_published_exponent_spends_is_covered_and_not_far(sensitivity, n_steps, epsilon):
    tree = calibrate_published_tree(sensitivity, n_steps, Fraction(epsilon))
    true = tree_loss(tree, sensitivity)
    assert true <= tree.spent.epsilon <= true * (1 + Fraction(1, 10**9))


def test_the_published_exponent_is_sound_and_half_of_what_could_be():
    mu, half, k = 0.01, Fraction(1, 2), 99
    for sensitivity, share in ((Sensitivity(linf=mu), 2), (Sensitivity(l1=mu), 4)):
        tree = calibrate_published_tree(sensitivity, k, half)
        assert tree.exponent == pytest.approx(float(half) / (4 * mu * k), rel=1e-9)
        assert tree.spent is not None
        assert k * step_range(tree, sensitivity) <= tree.spent.epsilon
        assert float(tree.spent.epsilon) == pytest.approx(float(half) / share, rel=1e-6)


def test_nothing_to_draw_costs_nothing():
    for tree in (
        calibrate_tree(Sensitivity(linf=1), 0, Budget.pure(1)),
        calibrate_tree(Sensitivity(linf=1), 0, Budget.zcdp(1)),
        calibrate_published_tree(Sensitivity(linf=1), 0, Fraction(1)),
    ):
        assert (tree.exponent, tree.n_steps, tree.spent, tree.slack, tree.noise) == (
            0.0, 0, None, 0.0, 0.0,
        )  # fmt: skip


def test_a_budget_below_the_rounding_of_the_sampler_is_refused():
    with pytest.raises(UsageError, match="raise the budget"):
        calibrate_tree(Sensitivity(linf=1), 10**6, Budget.pure(1e-6))
    with pytest.raises(UsageError, match="raise the budget"):
        calibrate_tree(Sensitivity(linf=1), 10**6, Budget.zcdp(1e-20))


@pytest.mark.parametrize("bound", [1e307, 1.7e308])
def test_a_sensitivity_beyond_the_digits_of_floats_is_refused(bound):
    for norm in ("l1", "l2", "linf"):
        sensitivity = Sensitivity(**{norm: bound})
        with pytest.raises(UsageError, match="divide the weights"):
            calibrate_tree(sensitivity, 10**4, Budget.pure(1e-3))
        with pytest.raises(UsageError, match="divide the weights"):
            calibrate_published_tree(sensitivity, 10**4, Fraction(1, 1000))


def test_an_exponent_beyond_all_use_is_lowered_and_the_sampler_still_works():
    """At an exponent of 1e300 products in the sampler overflow, and a weight of 0 becomes NaN."""
    tiny = Sensitivity(linf=1e-305)
    graph = Graph([0, 1, 2], [1, 2, 0], [0.0, -1e-260, -1e-260])
    for tree in (
        calibrate_tree(tiny, 2, Budget.pure(1)),
        calibrate_published_tree(tiny, 2, Fraction(1)),
    ):
        assert tree.spent is not None
        assert 0 < 2 * step_range(tree, tiny) <= 1
        assert math.isfinite(tree.exponent * 2.0 ** (GRID + 28)), "as the sampler multiplies it"
        assert tree.exponent > 1e200
        for mechanism in (Kruskal(), Pamst()):
            edges = mechanism.draw_edges(graph, tree.exponent, RandomStream.secure())
            assert edges.tolist() == [1, 2]


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.floats(1e-6, 1e6), st.floats(1e-6, 1e3))
def test_rounded_exponents_of_neighbours_stay_within_the_slack(seed, exponent, mu):
    """The range of the privacy loss of the sampler, which works on rounded exponents."""
    random = np.random.default_rng(seed)
    weights = random.normal(0, 30 / exponent, 200)
    others = weights + random.choice([-mu, mu], 200)
    factor = exponent / math.log(2.0) * 2.0**GRID
    pairs = list(zip(weights.tolist(), others.tolist()))
    change = [Fraction(exponent_of(b, factor) - exponent_of(a, factor), 2**GRID) for a, b in pairs]
    true = [Fraction(b) - Fraction(a) for a, b in pairs]
    for other in (min, lambda changes: sum(changes[:50]) / 50):  # one step; all steps of a tree
        allowed = Fraction(exponent) * (max(true) - other(true)) + Fraction(STEP_SLACK)
        assert (max(change) - other(change)) * Fraction(math.log(2.0)) <= allowed * (
            1 + Fraction(1, 2**45)
        )
