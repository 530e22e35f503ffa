from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.datasets import planted_graph
from ptclust.errors import UsageError, WeightError
from ptclust.graph import Graph, Topology
from ptclust.theory.homogeneity import (
    _is_separable,
    homogeneously_separable,
    strong_homogeneity,
    weak_homogeneity,
)
from ptclust.trees import Tree, minimum_spanning_tree
from tests.theory import literal


@st.composite
def graphs_with_labels(draw, weight=None, **sizes):
    """Clusters in one piece or many, singletons, a single cluster, unclustered nodes."""
    graph = draw(literal.graphs(weight=weight, **sizes))
    n_labels = draw(st.integers(1, 3))
    label = st.integers(-1 if draw(st.booleans()) else 0, n_labels - 1)
    return graph, [draw(label) for _ in range(graph.n_nodes)]


def clusters_of(labels):
    """The nodes of each cluster in the order of the result: by label, then unclustered nodes."""
    named = [
        {v for v, own in enumerate(labels) if own == label} for label in sorted(set(labels) - {-1})
    ]
    return named + [{v} for v, own in enumerate(labels) if own == -1]


def check_against(forests_of, decide, graph, labels):
    edges = literal.edges_of(graph)
    forests = list(forests_of(graph.n_nodes, edges))
    result = decide(graph, labels)
    clusters = clusters_of(labels)
    assert len(result.records) == len(clusters)
    for record, cluster in zip(result.records, clusters):
        expected_alpha, expected = literal.alpha_and_verdict(forests, edges, cluster)
        assert record.holds is expected
        if expected_alpha < 2**1000:
            assert record.alpha == pytest.approx(float(expected_alpha), rel=1e-15)
        if np.isfinite(record.lightest) and np.isfinite(record.crossing):
            a, b, e = map(Fraction, (record.heaviest, record.lightest, record.crossing))
            assert record.holds is (a * a < e * b)
    assert result.holds is all(record.holds for record in result.records)
    assert [r.label for r in result.offenders] == [r.label for r in result.records if not r.holds]


@settings(max_examples=1500)
@given(graphs_with_labels())
def test_weak_equals_the_definition_over_all_minimum_spanning_trees(example):
    check_against(literal.minimum_spanning_forests, weak_homogeneity, *example)


@settings(max_examples=300)
@given(graphs_with_labels(max_edges=8))
def test_strong_equals_the_definition_over_all_spanning_trees(example):
    check_against(literal.spanning_forests, strong_homogeneity, *example)


@settings(max_examples=300)
@given(graphs_with_labels(weight=st.sampled_from([0.1, 0.2, 0.3, 0.6, 0.9, 1e-200, 1e200, 5e-324])))
def test_rounding_never_decides(example):
    check_against(literal.minimum_spanning_forests, weak_homogeneity, *example)


@settings(max_examples=300)
@given(graphs_with_labels(max_nodes=8, max_edges=20))
def test_strong_implies_weak(example):
    strong, weak = strong_homogeneity(*example), weak_homogeneity(*example)
    assert np.all(weak.cluster_holds | ~strong.cluster_holds)
    assert np.all(weak.alpha <= strong.alpha)


def test_weak_does_not_imply_strong():
    """The heavy edge of a triangle is in no minimum spanning tree."""
    graph = Graph([0, 1, 2, 2], [1, 2, 0, 3], [1.0, 1.0, 2.0, 3.0])
    labels = [0, 0, 0, 1]
    assert weak_homogeneity(graph, labels).holds
    (offender,) = strong_homogeneity(graph, labels).offenders
    assert (offender.label, offender.alpha, offender.crossing) == (0, 2.0, 3.0)


def test_the_multi_scale_path_is_strongly_homogeneous():
    """DBMSTClu does not recover these clusters, whatever the theorems say (tests/clustering)."""
    weights = [0.5, 0.5, 0.5, 0.6, 0.01, 0.01, 0.01, 0.02, 0.01, 0.01, 0.01]
    graph = Graph(range(11), range(1, 12), weights)
    result = strong_homogeneity(graph, [0] * 4 + [1] * 4 + [2] * 4)
    assert result.holds
    assert result.alpha.tolist() == [1.0, 1.0, 1.0]
    assert result.crossing.tolist() == [0.6, 0.02, 0.02]
    assert result.describe() == "all 3 cluster(s) are strongly homogeneous"


@pytest.mark.parametrize("family", ["circles", "moons", "blobs"])
def test_planted_clusters_are_homogeneous(family):
    planted = planted_graph(family, 60, seed=3)
    assert strong_homogeneity(planted.graph, planted.truth).holds
    assert weak_homogeneity(planted.graph, planted.truth).holds


def test_usable_edges_of_one_weight_that_share_no_tree():
    """Edges 0-1 (within) and 0-2 (leaving) weigh 2 and join {0} to {1, 2}: a tree has one of them.

    Where that happens a lighter edge leaves the cluster, here 1-2, so that it decides.
    """
    graph = Graph([0, 0, 1], [1, 2, 2], [2.0, 2.0, 1.0])
    (record, _) = weak_homogeneity(graph, [0, 0, 1]).records
    assert (record.heaviest, record.lightest, record.crossing) == (2.0, 2.0, 1.0)
    assert not record.holds


class TestSeparability:
    tree = Tree(Topology([0, 1, 2], [1, 2, 3]), [0.25, 0.5, 1.5])

    def test_is_strict(self):
        assert not homogeneously_separable(self.tree, [0, 1, 2], 1.0)
        assert homogeneously_separable(self.tree, [0, 1, 2], np.nextafter(1.0, 2.0))

    def test_of_the_whole_tree(self):
        assert not homogeneously_separable(self.tree, None, 9.0)
        assert homogeneously_separable(self.tree, None, 9.5)

    @pytest.mark.parametrize("nodes", [[], [2], [0, 2]])
    def test_of_nothing_holds(self, nodes):
        assert homogeneously_separable(self.tree, nodes, 1e-9)

    def test_refuses_what_is_no_weight(self):
        with pytest.raises(UsageError, match="s must be the weight of an edge"):
            homogeneously_separable(self.tree, None, 0.0)

    @settings(max_examples=500)
    @given(st.lists(st.floats(5e-324, 1e308), min_size=3, max_size=3), st.booleans())
    def test_comparison_is_that_of_rationals(self, values, tie):
        b, a = sorted(values[:2])
        s = values[2]
        if tie:  # land next to equality: a^2 = s b but for rounding
            s = float(min(max(Fraction(a) ** 2 / Fraction(b), Fraction(5e-324)), Fraction(1e308)))
        expected = Fraction(a) ** 2 < Fraction(s) * Fraction(b)
        assert _is_separable(np.array([a]), np.array([b]), np.array([s])).tolist() == [expected]


def test_offenders_are_described_with_their_numbers():
    graph = Graph(range(24), range(1, 25), [1.0, 2.0] * 12)
    labels = np.arange(25) // 2
    assert weak_homogeneity(graph, labels).holds
    text = weak_homogeneity(graph, (np.arange(25) + 1) // 2).describe().splitlines()
    assert text[0] == "12 of 13 cluster(s) are not weakly homogeneous:"
    assert text[1] == (
        "  cluster 1: heaviest 2 and lightest 2 within, so 2, against a crossing edge of 1"
    )
    assert text[-1] == "  and 2 more"


def test_refuses_weights_that_are_not_positive_without_naming_them():
    graph = Graph([0, 1], [1, 2], [0.7, -0.3], names=["a", "b", "c"])
    for decide in (weak_homogeneity, strong_homogeneity):
        with pytest.raises(
            WeightError, match="the edge 'b' - 'c' has a weight of zero or less"
        ) as e:
            decide(graph, [0, 0, 0])
        assert "0.3" not in str(e.value)


def test_of_no_nodes():
    empty = Graph([], [], [])
    assert weak_homogeneity(empty, []).holds
    assert strong_homogeneity(empty, []).holds


def test_agrees_with_the_one_tree_of_distinct_weights():
    random = np.random.default_rng(5)
    n, m = 2000, 10000
    pairs = np.unique(np.sort(random.integers(0, n, (m, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    graph = Graph(pairs[:, 0], pairs[:, 1], 1 + random.permutation(len(pairs)))
    labels = random.integers(0, 300, n)
    tree = minimum_spanning_tree(graph)
    weak = weak_homogeneity(graph, labels)
    of_tree = strong_homogeneity(Graph(tree.sources, tree.targets, tree.weights, n), labels)
    for field in ("alpha", "heaviest", "lightest", "crossing", "cluster_holds"):
        np.testing.assert_array_equal(getattr(weak, field), getattr(of_tree, field))
