from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.audit.exact import GRAPHS, SmallGraph, TreeLaw
from ptclust.audit.search import (
    farthest,
    sampler_energies,
    worst_divergence,
    worst_loss,
)
from ptclust.errors import UsageError
from ptclust.privacy import Budget, Sensitivity
from ptclust.privacy.exponential import calibrate_tree
from tests.trees import paper

SMALL = ["K3", "K4", "square with a diagonal", "triangle with a tail"]
REFERENCE = {"pamst": paper.pamst_distribution, "kruskal": paper.kruskal_distribution}
MU = 1 / 64


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(SMALL),
    st.sampled_from(sorted(REFERENCE)),
    st.integers(0, 2**32),
    st.sampled_from([0.1, 1.0, 5.0]),
)
def test_distributions_are_those_of_the_textbook(name, method, seed, spread):
    graph = GRAPHS[name]
    energies = np.random.default_rng(seed).normal(0, spread, len(graph.edges))
    law = TreeLaw(graph, method)
    edges = [(a, b, w) for (a, b), w in zip(graph.edges, energies)]
    expected = REFERENCE[method](graph.n_nodes, edges, 1.0)
    assert set(expected) == set(law.trees)
    found = dict(zip(law.trees, np.exp(law.log_probabilities(energies))))
    for tree, probability in expected.items():
        assert found[tree] == pytest.approx(probability, rel=1e-10)


def test_a_known_root_is_one_of_the_roots():
    """PAMST is the mean of PAMST from every root; node 0 stands for any after the nodes are renamed."""
    n, edges = 4, GRAPHS["square with a diagonal"].edges
    energies = np.array([0.3, -1.0, 0.7, 2.0, -0.2])
    law = TreeLaw(GRAPHS["square with a diagonal"], "pamst")
    mean = np.zeros(len(law.trees))
    for root in range(n):
        renamed = tuple(((a - root) % n, (b - root) % n) for a, b in edges)
        rooted = TreeLaw(SmallGraph("renamed", n, renamed), "pamst-rooted")
        assert rooted.trees == law.trees
        mean += np.exp(rooted.log_probabilities(energies)) / n
    np.testing.assert_allclose(np.exp(law.log_probabilities(energies)), mean, rtol=1e-12)


@pytest.mark.parametrize("method", ["pamst", "pamst-rooted", "kruskal"])
def test_gradients_are_differences(method):
    law = TreeLaw(GRAPHS["K4"], method)
    energies = np.random.default_rng(3).normal(0, 2, 6)
    logs, slopes = law.gradients(energies)
    np.testing.assert_array_equal(logs, law.log_probabilities(energies))
    for edge, step in enumerate(np.eye(6) * 1e-6):
        change = law.log_probabilities(energies + step) - law.log_probabilities(energies - step)
        np.testing.assert_allclose(slopes[:, edge], change / 2e-6, atol=1e-7)


def test_any_spread_is_exact():
    """Beyond 700 nats plain exponentials are 0 or infinite."""
    law = TreeLaw(GRAPHS["K3"], "kruskal")
    logs = law.log_probabilities(np.array([2000.0, 2000.0, 0.0]))
    np.testing.assert_allclose(logs, [math.log(2) - 4000, -math.log(2), -math.log(2)], rtol=1e-12)


def test_one_tree_of_every_class_of_symmetry():
    assert len(TreeLaw(GRAPHS["K4"], "kruskal").representatives()) == 2  # paths and stars
    assert len(TreeLaw(GRAPHS["K5"], "kruskal").representatives()) == 3
    law = TreeLaw(GRAPHS["K4"], "pamst-rooted")
    logs = law.log_probabilities(np.zeros(6))
    assert len(law.representatives()) == 4  # star or path, by where the root lies in it
    assert {round(x, 9) for x in logs} == {round(logs[i], 9) for i in law.representatives()}


def test_an_unknown_method_is_refused():
    with pytest.raises(UsageError, match="'prim'"):
        TreeLaw(GRAPHS["K3"], "prim")


SENSITIVITIES = [
    Sensitivity(linf=MU),
    Sensitivity(l1=MU),
    Sensitivity(l2=MU),
    Sensitivity(l1=1.5 * MU, linf=MU),
    Sensitivity(l2=1.2 * MU, linf=MU),
]


@pytest.mark.parametrize("sensitivity", SENSITIVITIES, ids=str)
def test_the_farthest_change_is_within_the_ball_and_no_other_is_farther(sensitivity):
    random = np.random.default_rng(5)
    bounds = sensitivity.to_dict()
    norms = {"l1": 1, "l2": 2, "linf": np.inf}
    for _ in range(30):
        direction = random.normal(size=5)
        change = farthest(sensitivity, direction)
        excess = [np.linalg.norm(change, norms[n]) / bound for n, bound in bounds.items()]
        assert max(excess) == pytest.approx(1)
        if set(bounds) == {"l2", "linf"}:
            continue  # shortened to fit: within, but not always the farthest
        others = random.normal(size=(2000, 5)) * random.choice([0, 1], (2000, 5))
        others = others[np.abs(others).sum(axis=1) > 0]
        sizes = [np.linalg.norm(others, norms[n], axis=1) / bound for n, bound in bounds.items()]
        assert (others / np.max(sizes, axis=0)[:, None] @ direction).max() <= change @ direction * (
            1 + 1e-12
        )


def ratio(name, method, sensitivity, budget, factor=1.0, starts=2):
    law = TreeLaw(GRAPHS[name], method)
    exponent = calibrate_tree(sensitivity, law.n_steps, budget).exponent * factor
    search = worst_loss if budget.rho is None else worst_divergence
    worst = search(law, sensitivity, exponent, starts=starts, seed=1)
    change = np.array(worst.neighbour) - np.array(worst.weights)
    for norm, order in (("l1", 1), ("l2", 2), ("linf", np.inf)):
        if getattr(sensitivity, norm) is not None:
            assert np.linalg.norm(change, order) <= getattr(sensitivity, norm) * (1 + 1e-13)
    energies = [sampler_energies(np.array(w), exponent) for w in (worst.weights, worst.neighbour)]
    if budget.rho is None:
        logs = [law.log_probabilities(e) for e in energies]
        assert (logs[0] - logs[1]).max() == pytest.approx(worst.loss)
        return worst.loss / float(budget.epsilon)
    return worst.loss / float(budget.rho)


@pytest.mark.parametrize("name", ["K3", "K4"])
@pytest.mark.parametrize("method", ["pamst-rooted", "kruskal"])
@pytest.mark.parametrize("epsilon", ["1/16", "1", "8"])
def test_pure_claims_are_tight_and_never_exceeded(name, method, epsilon):
    found = ratio(name, method, Sensitivity(linf=MU), Budget.pure(epsilon))
    assert 0.99 < found <= 1


def test_without_the_root_k4_is_tight_and_k3_reaches_three_less_the_root_of_six():
    assert 0.99 < ratio("K4", "pamst", Sensitivity(linf=MU), Budget.pure(1)) <= 1
    found = ratio("K3", "pamst", Sensitivity(linf=MU), Budget.pure("1/64"))
    assert found == pytest.approx(3 - math.sqrt(6), abs=1e-4)


@pytest.mark.parametrize(("name", "k"), [("K3", 2), ("K4", 3)])
def test_under_l2_steps_cannot_all_lose_the_most(name, k):
    found = ratio(name, "kruskal", Sensitivity(l2=MU), Budget.pure(1))
    assert found == pytest.approx(math.sqrt((k + 1) / (2 * k)), abs=1e-4)


@pytest.mark.parametrize("method", ["pamst", "pamst-rooted", "kruskal"])
def test_zcdp_claims_are_not_exceeded_and_not_far(method):
    assert 0.5 < ratio("K3", method, Sensitivity(linf=MU), Budget.zcdp("1/8"), starts=3) <= 1


@pytest.mark.parametrize("method", ["pamst-rooted", "kruskal"])
def test_a_larger_exponent_is_found_out(method):
    pure = ratio("K3", method, Sensitivity(linf=MU), Budget.pure(1), 1.05)
    assert pure == pytest.approx(1.05, rel=1e-3)
    assert ratio("K3", method, Sensitivity(linf=MU), Budget.zcdp("1/8"), 1.2, starts=3) > 1
