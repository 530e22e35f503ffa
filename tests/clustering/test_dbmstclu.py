from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.clustering import cluster_validity, dbcvi, dbmstclu, dispersion, separation
from ptclust.errors import UsageError, WeightError
from ptclust.graph import Topology
from ptclust.trees import Tree
from tests.clustering import paper

#: Weights with many ties, with exact ratios and others, and of several orders of magnitude.
WEIGHTS = st.one_of(
    st.sampled_from([0.125, 0.25, 0.5, 1.0]),
    st.integers(1, 6).map(float),
    st.sampled_from([0.1, 0.2, 0.3, 0.6, 0.9]),
    st.integers(1, 200).map(lambda i: i / 200),
    st.sampled_from([1e-6, 3e-6, 1e-3, 7e-3, 1.0, 40.0]),
)


@st.composite
def trees(draw, min_nodes=2, max_nodes=14):
    """Random attachment, edges in random order: paths, stars and all between."""
    n = draw(st.integers(min_nodes, max_nodes))
    reach = draw(st.integers(1, n))
    parents = [draw(st.integers(max(0, v - reach), v - 1)) for v in range(1, n)]
    name = draw(st.permutations(range(n)))
    order = draw(st.permutations(range(n - 1)))
    source = WEIGHTS if draw(st.booleans()) else st.sampled_from([0.25, 0.5])
    weights = [draw(source) for _ in range(n - 1)]
    ends = [(name[v + 1], name[parents[v]]) for v in order]
    return Tree(Topology([a for a, _ in ends], [b for _, b in ends], n_nodes=n), weights)


def as_paper(tree):
    return list(zip(tree.sources.tolist(), tree.targets.tolist(), paper.exact(tree.weights)))


@settings(max_examples=1500)
@given(trees())
def test_equals_the_paper_line_by_line(tree):
    cuts, trace, labels = paper.dbmstclu(tree.n_nodes, as_paper(tree))
    result = dbmstclu(tree)
    assert result.cuts.edge_ids.tolist() == cuts
    assert result.cuts.dbcvi == pytest.approx([float(x) for x in trace], abs=1e-12)
    assert result.labels.tolist() == labels
    assert result.dbcvi == pytest.approx(float(trace[-1]), abs=1e-12)


@settings(max_examples=300)
@given(trees(max_nodes=9), st.data())
def test_index_functions_equal_the_definitions(tree, data):
    edges = as_paper(tree)
    cut = set(data.draw(st.lists(st.sampled_from(range(len(edges))), min_size=1)))
    clusters = paper.pieces(tree.n_nodes, edges, cut)
    labels = np.empty(tree.n_nodes, int)
    for i, cluster in enumerate(clusters):
        labels[list(cluster)] = i
    for function, definition in (
        (dispersion, paper.disp),
        (separation, paper.sep),
        (cluster_validity, paper.v_c),
    ):
        expected = [float(definition(c, edges, cut)) for c in clusters]
        assert function(tree, labels) == pytest.approx(expected, rel=1e-14)
    assert dbcvi(tree, labels) == pytest.approx(float(paper.dbcvi(tree.n_nodes, edges, cut)))


def path(*weights):
    n = len(weights)
    return Tree(Topology(range(n), range(1, n + 1)), weights)


class TestCounterexamplesToTheTheorems:
    """Theorems A to C promise recovery of strongly homogeneous clusters; here they fail."""

    def test_multi_scale_clusters_dissolve_and_merge(self):
        tree = path(0.5, 0.5, 0.5, 0.6, 0.01, 0.01, 0.01, 0.02, 0.01, 0.01, 0.01)
        result = dbmstclu(tree)
        assert result.labels.tolist() == [0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4]
        assert paper.dbmstclu(12, as_paper(tree))[2] == result.labels.tolist()

    def test_single_scale_clusters_of_three_to_five_nodes_fail_now_and_then(self):
        random = np.random.default_rng(0)
        failures = 0
        for _ in range(400):
            tree, truth = planted_tree(random)
            labels = dbmstclu(tree).labels
            same = labels[:, None] == labels
            failures += not np.array_equal(same, truth[:, None] == truth)
        # about 16 of 400 are expected; a binomial is outside 3 to 36 once in a thousand times
        assert 3 <= failures <= 36

    def test_all_singletons_have_the_largest_index(self):
        tree = path(0.3, 0.1, 0.7)
        assert dbcvi(tree, range(4)) == 1.0


def planted_tree(random):
    """Three clusters of 3 to 5 nodes, trees of weights in [.1, .3], joined by some in (.9, 1]."""
    sources, targets, weights, truth = [], [], [], []
    for cluster in range(3):
        first, size = len(truth), int(random.integers(3, 6))
        if cluster:
            sources.append(int(random.integers(0, first)))
            targets.append(first + int(random.integers(0, size)))
            weights.append(random.uniform(0.9, 1.0))
        for v in range(1, size):
            sources.append(first + int(random.integers(0, v)))
            targets.append(first + v)
            weights.append(random.uniform(0.1, 0.3))
        truth += [cluster] * size
    return Tree(Topology(sources, targets), weights), np.array(truth)


class TestSemantics:
    def test_the_first_cut_is_always_made(self):
        assert dbmstclu(path(1.0)).labels.tolist() == [0, 1]

    def test_equal_weights_are_cut_from_the_last_edge_to_singletons(self):
        result = dbmstclu(path(0.5, 0.5, 0.5))
        assert result.cuts.edge_ids.tolist() == [2, 1, 0]
        assert result.dbcvi == 1.0

    def test_scaling_the_weights_changes_nothing(self):
        tree = path(0.1, 0.12, 0.8, 0.1, 0.11, 0.7, 0.2)
        scaled = path(*(1000 * tree.weights))
        assert dbmstclu(tree).labels.tolist() == dbmstclu(scaled).labels.tolist()

    def test_trees_of_a_forest_are_clustered_each_by_itself(self):
        one, other = (0.1, 0.1, 0.9, 0.1, 0.1), (0.3, 0.9, 0.2)
        forest = Tree(
            Topology([0, 1, 2, 3, 4, 6, 7, 8], [1, 2, 3, 4, 5, 7, 8, 9], n_nodes=11), one + other
        )
        labels = dbmstclu(forest).labels.tolist()
        first, second = dbmstclu(path(*one)).labels, dbmstclu(path(*other)).labels
        assert labels == [*first, *(second + first.max() + 1), first.max() + second.max() + 2]

    def test_dbcvi_of_a_forest_is_the_mean_over_its_nodes(self):
        forest = Tree(
            Topology([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], n_nodes=7), [0.1, 0.1, 0.8, 0.2, 0.2]
        )
        result = dbmstclu(forest)
        assert result.labels.tolist() == [0, 0, 0, 1, 1, 1, 2]
        assert result.dbcvi == pytest.approx((3 * 0.875 + 3 * 0.75 + 1) / 7)
        assert result.cuts.dbcvi[-1] == pytest.approx(result.dbcvi)  # type: ignore[index]

    @pytest.mark.parametrize("n_nodes", [0, 1, 3])
    def test_nodes_without_edges(self, n_nodes):
        result = dbmstclu(Tree(Topology([], [], n_nodes=n_nodes), []))
        assert result.labels.tolist() == list(range(n_nodes))
        assert result.dbcvi == (1.0 if n_nodes else 0.0)
        assert len(result.cuts) == 0

    def test_max_clusters_stops_early(self):
        tree = path(0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.8, 0.1, 0.1, 0.1)
        assert dbmstclu(tree).n_clusters == 3
        limited = dbmstclu(tree, max_clusters=2)
        assert limited.n_clusters == 2
        assert limited.cuts.edge_ids.tolist() == dbmstclu(tree).cuts.edge_ids[:1].tolist()

    def test_max_clusters_of_one_leaves_the_tree_whole(self):
        result = dbmstclu(path(0.5, 0.25), max_clusters=1)
        assert result.labels.tolist() == [0, 0, 0]
        assert result.dbcvi == 0.5  # K = 1: SEP is 1

    def test_small_clusters_become_noise(self):
        tree = path(0.9, 0.1, 0.1, 0.1)
        assert dbmstclu(tree).labels.tolist() == [0, 1, 1, 1, 1]
        result = dbmstclu(tree, min_cluster_size=2)
        assert result.labels.tolist() == [-1, 0, 0, 0, 0]
        assert (result.n_clusters, result.n_unclustered) == (1, 1)

    def test_an_interrupted_run_ends_as_an_uninterrupted_one(self, monkeypatch):
        random = np.random.default_rng(3)
        tree = path(*random.integers(1, 4, size=200).astype(float))
        whole, calls = dbmstclu(tree), []
        monkeypatch.setattr(sys.modules["ptclust.clustering.dbmstclu"], "_WORK_PER_CALL", 100)
        parts = dbmstclu(tree, progress=calls.append)
        assert len(calls) > 3
        assert parts.cuts.edge_ids.tolist() == whole.cuts.edge_ids.tolist()

    def test_weights_far_apart(self):
        result = dbmstclu(path(1e-300, 1e300, 1e-300))
        assert result.labels.tolist() in ([0, 0, 1, 1], [0, 1, 2, 3])


class TestErrors:
    @pytest.mark.parametrize("weight", [0.0, -0.25])
    def test_zero_and_negative_weights_name_edge_and_remedy(self, weight):
        with pytest.raises(WeightError, match=r"edge 1 - 2 has a weight.*add one public constant"):
            dbmstclu(path(0.5, weight))

    @pytest.mark.parametrize("value", [0, -1, 1.5, "2"])
    @pytest.mark.parametrize("name", ["max_clusters", "min_cluster_size"])
    def test_counts_must_be_positive_whole_numbers(self, name, value):
        with pytest.raises(UsageError, match=name):
            dbmstclu(path(0.5), **{name: value})

    @pytest.mark.parametrize("labels", [[0, 0], [0, 2, 2], [0.0, 0.0, 1.0], [-2, 0, 0], [9, 9, 9]])
    def test_labels_that_are_no_partition(self, labels):
        with pytest.raises(UsageError, match=r"label|numbered"):
            dbcvi(path(0.5, 0.5), labels)


def test_noise_counts_as_zero_and_separates():
    tree = path(0.2, 0.8, 0.4)
    assert separation(tree, [0, 0, -1, 1]) == pytest.approx([0.8, 0.4])
    assert dbcvi(tree, [0, 0, -1, 1]) == pytest.approx((2 * 0.75 + 1) / 4)


def test_reference_agrees_with_a_hand_computed_example():
    edges = [(0, 1, Fraction(1, 5)), (1, 2, Fraction(4, 5)), (2, 3, Fraction(2, 5))]
    assert paper.dbcvi(4, edges, {1}) == Fraction(5, 8)
