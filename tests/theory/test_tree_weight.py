from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ptclust.datasets import planted_graph
from ptclust.errors import UsageError
from ptclust.graph import Graph
from ptclust.mechanisms import Kruskal, Pamst
from ptclust.mechanisms.exponential import calibrate_tree
from ptclust.privacy import Budget, Noise, RandomStream, Sensitivity
from ptclust.theory import (
    drawn_tree_excess,
    expected_drawn_tree_excess,
    expected_perturbed_tree_excess,
    perturbed_tree_excess,
)
from ptclust.trees import minimum_spanning_tree
from ptclust.trees.mst import minimum_spanning_edges
from tests.mechanisms.paper import kruskal_distribution, pamst_distribution

kruskal_edges, pamst_edges = Kruskal().draw_edges, Pamst().draw_edges


def graph_of(n_nodes, edges):
    sources, targets, weights = zip(*edges)
    return Graph(sources, targets, weights, n_nodes=n_nodes)


@st.composite
def small_graphs(draw):
    n_nodes = draw(st.integers(2, 5))
    edges = [
        (a, b, draw(st.floats(0, 2)))
        for a in range(n_nodes)
        for b in range(a + 1, n_nodes)
        if draw(st.integers(0, 3)) > 0
    ]
    assume(edges)
    assume(graph_of(n_nodes, edges).topology.n_components == 1)
    return n_nodes, edges


@settings(max_examples=150)
@given(small_graphs(), st.floats(0.1, 20), st.floats(0.01, 0.99))
def test_both_bounds_hold_for_exact_distributions(drawn, exponent, gamma):
    n_nodes, edges = drawn
    least = minimum_spanning_tree(graph_of(n_nodes, edges)).total_weight
    mean_bound = expected_drawn_tree_excess(exponent, n_nodes - 1, len(edges))
    bound = drawn_tree_excess(exponent, n_nodes - 1, len(edges), gamma)
    for distribution in (pamst_distribution, kruskal_distribution):
        excess = [
            (sum(edges[i][2] for i in tree) - least, p)
            for tree, p in distribution(n_nodes, edges, exponent).items()
        ]
        assert math.fsum(x * p for x, p in excess) <= mean_bound + 1e-9
        assert math.fsum(p for x, p in excess if x > bound) <= gamma


def test_sharper_than_a_union_bound():
    for k, m in ((1, 10), (99, 800), (999, 9000)):
        for gamma in (0.3, 0.01):
            union = k * (math.log(m) + math.log(k / gamma)) / 7.0
            assert drawn_tree_excess(7.0, k, m, gamma) <= union
            assert expected_drawn_tree_excess(7.0, k, m) <= k * math.log(m) / 7.0
    assert drawn_tree_excess(7.0, 1, 10, 0.05) == pytest.approx(math.log(10 / 0.05) / 7.0)


@pytest.fixture(scope="module")
def planted():
    return planted_graph("moons", 60, seed=2).graph


@pytest.mark.parametrize("draw", [pamst_edges, kruskal_edges])
@pytest.mark.parametrize("exponent", [5.0, 50.0])
def test_drawn_trees_stay_below_the_bounds(planted, draw, exponent):
    least = minimum_spanning_tree(planted).total_weight
    stream = RandomStream.seeded(5)
    excess = np.array(
        [planted.weights[draw(planted, exponent, stream)].sum() - least for _ in range(1000)]
    )
    assert excess.min() >= -1e-9
    mean = expected_drawn_tree_excess(exponent, 59, planted.n_edges)
    assert 0 < excess.mean() < mean
    assert np.quantile(excess, 0.95) < drawn_tree_excess(exponent, 59, planted.n_edges, 0.05)


@pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.02, 0.3])
def test_perturbed_trees_stay_below_the_bounds(planted, distribution, scale):
    least = minimum_spanning_tree(planted).total_weight
    random = np.random.default_rng(6)
    noise = Noise(distribution, scale, -40, planted.n_edges)
    sample = random.laplace if distribution == "laplace" else random.normal
    excess, largest = [], []
    for _ in range(1000):
        drawn = sample(scale=scale, size=planted.n_edges)
        edges = minimum_spanning_edges(
            planted.sources, planted.targets, planted.weights + drawn, planted.n_nodes
        )
        excess.append(planted.weights[edges].sum() - least)
        largest.append(np.abs(drawn).max())
    assert 0 < np.mean(excess) < expected_perturbed_tree_excess(noise, 59)
    assert np.quantile(excess, 0.95) < perturbed_tree_excess(noise, 59, 0.05)
    # The bound on the largest noise, on which both rest, is met and is not idle.
    ceiling = perturbed_tree_excess(noise, 59, 0.05) / (2 * 59)
    share = np.mean(np.array(largest) > ceiling)
    assert 0.005 < share < 0.08
    mean = expected_perturbed_tree_excess(noise, 59) / (2 * 59)
    assert 0.85 * mean < np.mean(largest) < 1.02 * mean


def test_formulas_of_sealfon():
    noise = Noise("laplace", 0.5, -40, 1000)
    assert perturbed_tree_excess(noise, 99, 0.1) == pytest.approx(2 * 99 * 0.5 * math.log(1e4))
    harmonic = sum(1 / i for i in range(1, 1001))
    assert expected_perturbed_tree_excess(noise, 99) == pytest.approx(99 * harmonic)
    assert (
        perturbed_tree_excess(Noise("laplace", 0.5, -40, 99), 99, 0.1) == 0
    )  # a tree has no choice
    one_more = Noise("gaussian", 0.5, -40, 100)
    expected = 2 * 1 * 0.5 * math.sqrt(2 * math.log(1000))
    assert perturbed_tree_excess(one_more, 99, 0.1) == pytest.approx(expected)


@pytest.mark.parametrize("n_nodes", [20, 60])
def test_the_error_quoted_for_pamst_is_not_reached_on_complete_graphs(n_nodes):
    # A path of weight 0 in a complete graph of weight 1. With epsilon = mu = 1 the error quoted
    # from Pinot (2017), O(n^2 / m log n), is O(log n); on average the tree has at least
    # n - 1 - 2 e^c H_(n-1) edges of weight 1.
    a, b = np.triu_indices(n_nodes, 1)
    graph = Graph(a, b, np.where(b == a + 1, 0.0, 1.0), n_nodes=n_nodes)
    exponent = 1.0 / (4.0 * (n_nodes - 1))
    stream, draws = RandomStream.seeded(8), 400
    weights = [graph.weights[pamst_edges(graph, exponent, stream)].sum() for _ in range(draws)]
    harmonic = sum(1 / i for i in range(1, n_nodes))
    floor = n_nodes - 1 - 2 * math.exp(exponent) * harmonic
    error = np.std(weights) / math.sqrt(draws)
    assert np.mean(weights) > floor - 5 * error
    assert np.mean(weights) > 0.8 * n_nodes
    assert np.mean(weights) < expected_drawn_tree_excess(exponent, n_nodes - 1, graph.n_edges)


def test_calibrations_and_degenerate_trees():
    calibration = calibrate_tree(Sensitivity(linf=0.01), 9, Budget.pure(1.0))
    for gamma in (0.1, 0.5):
        assert drawn_tree_excess(calibration, 9, 20, gamma) == drawn_tree_excess(
            calibration.exponent, 9, 20, gamma
        )
    assert drawn_tree_excess(1.0, 0, 0, 0.5) == 0
    assert expected_drawn_tree_excess(1.0, 0, 0) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: drawn_tree_excess(1.0, 5, 3, 0.1), "has 0 to 3 edges, not 5"),
        (lambda: drawn_tree_excess(1.0, 2, 3, 1.0), "between 0 and 1, not 1.0"),
        (lambda: drawn_tree_excess(0.0, 2, 3, 0.1), "exponent must be positive"),
        (lambda: perturbed_tree_excess(Noise("laplace", 1.0, -40, 3), 4, 0.1), "not 4"),
        (lambda: perturbed_tree_excess(Noise("laplace", 1.0, -40, 3), 2, 0.0), "not 0.0"),
    ],
)
def test_errors(call, words):
    with pytest.raises(UsageError, match=words):
        call()
