from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ptclust.errors import GraphError, UsageError, WeightError
from ptclust.graph import Graph
from ptclust.mechanisms import Kruskal, Pamst
from ptclust.mechanisms.exponential import calibrate_published_tree, calibrate_tree
from ptclust.privacy import Budget, RandomStream, Sensitivity
from ptclust.theory import partitioning_probability, strong_homogeneity, theorem_d
from tests.mechanisms.paper import kruskal_distribution, pamst_distribution

kruskal_edges, pamst_edges = Kruskal().draw_edges, Pamst().draw_edges


def graph_of(n_nodes, edges):
    sources, targets, weights = zip(*edges)
    return Graph(sources, targets, weights, n_nodes=n_nodes)


def is_partitioning(tree, edges, labels):
    n_cross = sum(labels[edges[i][0]] != labels[edges[i][1]] for i in tree)
    return n_cross == len(set(labels)) - 1


def by_enumeration(distribution, edges, labels):
    """The exact probability of a partitioning topology, from that of every tree."""
    return math.fsum(p for tree, p in distribution.items() if is_partitioning(tree, edges, labels))


def pamst_partitions(n_nodes, edges, labels, exponent):
    """The exact probability for PAMST: no cross edge enters a cluster that S_V has touched."""
    rates = [math.exp(-exponent * (w - edges[0][2])) for *_, w in edges]
    states = {1 << root: 1.0 / n_nodes for root in range(n_nodes)}
    for _ in range(n_nodes - 1):
        following = {}
        for reached, probability in states.items():
            touched = {labels[v] for v in range(n_nodes) if reached >> v & 1}
            frontier = [
                (rate, b if reached >> a & 1 else a, labels[a] != labels[b])
                for (a, b, _), rate in zip(edges, rates)
                if (reached >> a & 1) != (reached >> b & 1)
            ]
            total = math.fsum(rate for rate, *_ in frontier)
            for rate, new, crosses in frontier:
                if not (crosses and labels[new] in touched):
                    key = reached | 1 << new
                    following[key] = following.get(key, 0.0) + probability * rate / total
        states = following
    return math.fsum(states.values())


def light_and_heavy_paths(size, n_clusters, alpha):
    """Paths of weight 1 with one edge of 1 / alpha; all pairs across joined, just above alpha."""
    n_nodes = size * n_clusters
    labels = [v // size for v in range(n_nodes)]
    edges = [
        (v, v + 1, 1.0 / alpha if v % size == 0 else 1.0)
        for v in range(n_nodes - 1)
        if labels[v] == labels[v + 1]
    ]
    edges += [
        (a, b, alpha * 1.001)
        for a in range(n_nodes)
        for b in range(a + 1, n_nodes)
        if labels[a] != labels[b]
    ]
    return n_nodes, edges, labels


@st.composite
def clustered_graphs(draw):
    """Up to five nodes in clusters that are connected, any weights."""
    n_nodes = draw(st.integers(2, 5))
    labels = draw(st.lists(st.integers(0, 2), min_size=n_nodes, max_size=n_nodes))
    weight = st.floats(0.05, 2.0)
    edges = [
        (a, b, draw(weight))
        for a in range(n_nodes)
        for b in range(a + 1, n_nodes)
        if labels[a] == labels[b] or draw(st.integers(0, 3)) > 0
    ]
    assume(edges and graph_of(n_nodes, edges).topology.n_components == 1)
    return n_nodes, edges, labels


@settings(max_examples=150)
@given(clustered_graphs(), st.floats(0.1, 20.0))
def test_the_corrected_bound_holds_for_both_mechanisms(drawn, exponent):
    n_nodes, edges, labels = drawn
    bound = partitioning_probability(graph_of(n_nodes, edges), labels, exponent)
    assert 0 <= bound <= 1 + 1e-12
    for distribution in (pamst_distribution, kruskal_distribution):
        trees = distribution(n_nodes, edges, exponent)
        assert bound <= by_enumeration(trees, edges, labels) + 1e-12


@settings(max_examples=50)
@given(clustered_graphs(), st.floats(0.1, 20.0))
def test_node_sets_are_enough_for_the_exact_probability(drawn, exponent):
    n_nodes, edges, labels = drawn
    trees = pamst_distribution(n_nodes, edges, exponent)
    exact = pamst_partitions(n_nodes, edges, labels, exponent)
    assert exact == pytest.approx(by_enumeration(trees, edges, labels), abs=1e-12)


@settings(max_examples=100)
@given(clustered_graphs(), st.floats(0.1, 20.0))
def test_the_simple_form_follows(drawn, exponent):
    n_nodes, edges, labels = drawn
    graph = graph_of(n_nodes, edges)
    failure = 0.0
    for label in set(labels):
        inside = [w for a, b, w in edges if labels[a] == labels[b] == label]
        boundary = [w for a, b, w in edges if (labels[a] == label) != (labels[b] == label)]
        if inside and boundary:
            gap = min(boundary) - max(inside)
            failure += (labels.count(label) - 1) * len(boundary) * math.exp(-exponent * gap)
    assert partitioning_probability(graph, labels, exponent) >= 1 - failure - 1e-12


def test_one_pair_of_nodes_reaches_the_bound():
    # A triangle, clusters {0, 1} and {2}: Kruskal fails iff a cross edge comes first, as x counts.
    edges = [(0, 1, 0.1), (1, 2, 0.5), (0, 2, 0.7)]
    graph, labels = graph_of(3, edges), [0, 0, 1]
    x = math.exp(-3.0 * 0.4) + math.exp(-3.0 * 0.6)
    assert partitioning_probability(graph, labels, 3.0) == pytest.approx(1 / (1 + x))
    exact = by_enumeration(kruskal_distribution(3, edges, 3.0), edges, labels)
    assert exact >= 1 / (1 + x) - 1e-12


class TestTheSupplementIsWrong:
    """Where clusters have heavy edges beside a light one, the lightest candidate may be heavy."""

    MU = 0.01

    def forms(self, n_nodes, edges, labels, exponent):
        epsilon = exponent * 4 * self.MU * (n_nodes - 1)
        graph = graph_of(n_nodes, edges)
        found = theorem_d(graph, labels, epsilon=epsilon, utility_sensitivity=2 * self.MU)
        assert found.exponent == pytest.approx(exponent)
        return found

    @pytest.mark.parametrize(
        ("size", "truth", "claimed", "proved"),
        [(3, 0.9336, 0.9789, 0.5687), (4, 0.7932, 0.9464, 0.2390)],
    )
    def test_exact_counterexample(self, size, truth, claimed, proved):
        n_nodes, edges, labels = light_and_heavy_paths(size, 2, alpha=1.05)
        assert strong_homogeneity(graph_of(n_nodes, edges), labels).holds
        exponent = 4 / 0.05
        exact = pamst_partitions(n_nodes, edges, labels, exponent)
        forms = self.forms(n_nodes, edges, labels, exponent)
        assert exact == pytest.approx(truth, abs=1e-4)
        assert forms.supplement == pytest.approx(claimed, abs=1e-4)
        assert forms.corrected == pytest.approx(proved, abs=1e-4)
        assert forms.printed > 0.99995
        assert forms.corrected <= exact < forms.supplement < forms.printed

    def test_drawn_trees_agree(self):
        n_nodes, edges, labels = light_and_heavy_paths(4, 2, alpha=1.05)
        graph, labels = graph_of(n_nodes, edges), np.array(labels)
        crosses = labels[graph.sources] != labels[graph.targets]
        stream, draws = RandomStream.seeded(3), 10_000
        hits = sum(
            np.count_nonzero(crosses[pamst_edges(graph, 80.0, stream)]) == 1 for _ in range(draws)
        )
        truth = pamst_partitions(n_nodes, edges, labels.tolist(), 80.0)
        assert abs(hits / draws - truth) < 5 * math.sqrt(truth * (1 - truth) / draws)

    def test_more_steps_than_nodes_of_the_cluster(self):
        # A cluster of two nodes is half reached while PAMST walks through a large one: the union
        # over steps that the supplement bounds by the size of the cluster has more members. The
        # corrected bound counts additions instead.
        edges = [(v, v + 1, 0.1) for v in range(6)] + [(7, 8, 0.1)]
        edges += [(v, 7, 1.0) for v in range(7)] + [(v, 8, 1.0) for v in range(7)]
        labels = [0] * 7 + [1] * 2
        for exponent in (1.0, 4.0, 8.0):
            exact = pamst_partitions(9, edges, labels, exponent)
            assert partitioning_probability(graph_of(9, edges), labels, exponent) <= exact


def test_the_bottleneck_counts_and_not_the_heaviest_edge():
    # The heavy edge of a triangle is never needed.
    light = [(0, 1, 0.1), (1, 2, 0.1), (2, 3, 1.0)]
    with_heavy = [*light, (0, 2, 0.9)]
    labels = [0, 0, 0, 1]
    bounds = [
        partitioning_probability(graph_of(4, edges), labels, 5.0) for edges in (light, with_heavy)
    ]
    assert bounds[0] == bounds[1]


def test_forms_on_a_graph_by_hand():
    graph = graph_of(4, [(0, 1, 0.1), (1, 2, 0.2), (2, 3, 0.9), (0, 2, 0.2)])
    found = theorem_d(graph, [0, 0, 0, 1], epsilon=3.0, utility_sensitivity=0.5)
    gap = 0.2**2 / 0.1 - 0.1
    assert found.exponent == 1.0
    assert found.supplement == pytest.approx(1 - 2 * 4 * math.exp(-gap))
    assert found.printed == pytest.approx(1 - 2 * math.exp(-(3.0 * gap + math.log(4)) / 3.0))
    assert found.corrected == pytest.approx((1 + math.exp(-0.7)) ** -2)


def test_singletons_components_and_calibrations():
    graph = graph_of(4, [(0, 1, 0.1), (2, 3, 0.5)])
    assert partitioning_probability(graph, [0, 1, 2, 3], 1.0) == 1.0
    assert partitioning_probability(graph, [0, 0, 1, 1], 1.0) == 1.0
    assert partitioning_probability(graph, [-1, -1, 1, 1], 1.0) == 1.0
    joined = graph_of(3, [(0, 1, 0.1), (1, 2, 0.5), (0, 2, 0.5)])
    calibration = calibrate_tree(Sensitivity(linf=0.1), 2, Budget.pure(1.0))
    bounds = [
        partitioning_probability(joined, [0, 0, 1], c) for c in (calibration, calibration.exponent)
    ]
    assert bounds[0] == bounds[1]
    published = calibrate_published_tree(Sensitivity(linf=0.1), 2, Budget.pure(1.0).epsilon)
    paper = theorem_d(joined, [0, 0, 1], epsilon=1.0, utility_sensitivity=0.2)
    assert paper.exponent == pytest.approx(published.exponent)


def test_huge_exponents_do_not_overflow():
    graph = graph_of(3, [(0, 1, 0.9), (1, 2, 0.1), (0, 2, 0.1)])
    assert partitioning_probability(graph, [0, 0, 1], 1e6) == 0.0
    assert partitioning_probability(graph, [0, 1, 0], 1e6) == 0.5


def test_drawn_kruskal_trees_stay_above_the_bound():
    n_nodes, edges, labels = light_and_heavy_paths(6, 3, alpha=1.5)
    graph, labels = graph_of(n_nodes, edges), np.array(labels)
    crosses = labels[graph.sources] != labels[graph.targets]
    bound = partitioning_probability(graph, labels, 16.0)
    assert 0.3 < bound < 0.9
    stream, draws = RandomStream.seeded(4), 3000
    for draw in (pamst_edges, kruskal_edges):
        hits = sum(np.count_nonzero(crosses[draw(graph, 16.0, stream)]) == 2 for _ in range(draws))
        assert hits / draws > bound - 5 * math.sqrt(0.25 / draws)


def test_errors():
    graph = graph_of(4, [(0, 1, 0.1), (1, 2, 0.5), (2, 3, 0.1)])
    with pytest.raises(GraphError, match="1 pieces more than there are clusters"):
        partitioning_probability(graph, [0, 1, 1, 0], 1.0)
    with pytest.raises(UsageError, match="3 labels were given for 4 nodes"):
        partitioning_probability(graph, [0, 1, 1], 1.0)
    with pytest.raises(UsageError, match="exponent must be positive"):
        partitioning_probability(graph, [0, 0, 1, 1], -1.0)
    torn = graph_of(4, [(0, 1, 0.1), (2, 3, 0.1)])
    with pytest.raises(GraphError, match="2 components"):
        theorem_d(torn, [0, 0, 1, 1], epsilon=1.0, utility_sensitivity=1.0)
    with pytest.raises(WeightError, match="Theorem D needs positive weights"):
        theorem_d(graph_of(2, [(0, 1, 0.0)]), [0, 0], epsilon=1.0, utility_sensitivity=1.0)
