from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cophenet, is_valid_linkage, linkage
from scipy.spatial.distance import pdist

from experiments.benchmark import GRAPHS
from ptclust.errors import GraphError, UsageError, WeightError
from ptclust.graph import Graph, Topology
from ptclust.trees import Tree, minimum_spanning_tree
from ptclust.trees import mst as kernel
from tests.lazy import lazy

nx = lazy("networkx")


@st.composite
def graphs(draw, max_nodes=24):
    """Any simple graph: isolated nodes, components, zero, negative, equal, distant weights."""
    n = draw(st.integers(1, max_nodes))
    pairs = [(a, b) for a in range(n) for b in range(a)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    weight = draw(
        st.sampled_from(
            [
                st.integers(-2, 2).map(float),
                st.floats(-1e6, 1e6),
                st.sampled_from([0.0, -0.0, 1e-300, 5e-324, 1e300]),
            ]
        )
    )
    weights = [draw(weight) for _ in chosen]
    return Graph([a for a, _ in chosen], [b for _, b in chosen], weights, n_nodes=n)


def textbook_kruskal(graph):
    """The edge ids of the minimum spanning forest, by weight and then by edge order."""
    component = list(range(graph.n_nodes))
    chosen = []
    for edge in sorted(range(graph.n_edges), key=lambda e: (graph.weights[e], e)):
        a, b = component[graph.sources[edge]], component[graph.targets[edge]]
        if a != b:
            component = [a if c == b else c for c in component]
            chosen.append(edge)
    return sorted(chosen)


@settings(max_examples=500)
@given(graphs())
def test_weight_equals_networkx(graph):
    reference = nx.Graph()
    reference.add_nodes_from(range(graph.n_nodes))
    reference.add_weighted_edges_from(
        zip(graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist())
    )
    forest = nx.minimum_spanning_tree(reference)
    tree = minimum_spanning_tree(graph)
    assert tree.n_edges == forest.number_of_edges()
    assert sorted(tree.weights) == sorted(w for _, _, w in forest.edges(data="weight"))


@settings(max_examples=500)
@given(graphs(), st.sampled_from([1, 3, 1 << 14]))
def test_edges_equal_textbook_kruskal_at_any_chunk_size(graph, smallest_chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_SMALLEST_CHUNK", smallest_chunk)
        patch.setattr(kernel, "CHUNK_PER_NODE", 0.1)
        patch.setattr(kernel, "_SAMPLE", 4)
        assert minimum_spanning_tree(graph).edge_ids.tolist() == textbook_kruskal(graph)


@pytest.mark.parametrize("name", sorted(GRAPHS.keys() - {"points"}))
@pytest.mark.parametrize("mixed", [False, True])
def test_edges_equal_textbook_kruskal_on_every_graph_of_the_benchmark(name, mixed):
    """In order of weights or of nodes, forests, equal weights: each has its own short way."""
    data = GRAPHS[name](400)
    order = np.arange(len(data["weights"]))
    if mixed:
        order = np.random.default_rng(0).permutation(order)
    graph = Graph(*(data[column][order] for column in ("sources", "targets", "weights")))
    assert minimum_spanning_tree(graph).edge_ids.tolist() == textbook_kruskal(graph)


def test_a_dense_graph_is_filtered_and_still_right():
    random = np.random.default_rng(1)
    a, b = np.triu_indices(400, 1)
    graph = Graph(a, b, random.integers(0, 50, len(a)))
    reference = nx.Graph()
    reference.add_weighted_edges_from(zip(a.tolist(), b.tolist(), graph.weights.tolist()))
    expected = nx.minimum_spanning_tree(reference).size(weight="weight")
    assert minimum_spanning_tree(graph).total_weight == expected
    ids = minimum_spanning_tree(graph).edge_ids
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_SMALLEST_CHUNK", 100)
        assert minimum_spanning_tree(graph).edge_ids.tolist() == ids.tolist()


def test_equal_weights_keep_the_first_edges():
    graph = Graph([2, 1, 0], [0, 2, 1], [0.5, 0.5, 0.5])
    assert minimum_spanning_tree(graph).edge_ids.tolist() == [0, 1]


def test_int64_indices_give_the_same_tree():
    random = np.random.default_rng(0)
    a, b = np.triu_indices(60, 1)
    weights = random.random(len(a))
    small, large = (
        kernel.minimum_spanning_edges(a.astype(t), b.astype(t), weights, 60)
        for t in (np.int32, np.int64)
    )
    assert small.tolist() == large.tolist()


class TestTree:
    def test_keeps_names_and_ids(self):
        graph = Graph([0, 1, 2], [1, 2, 0], [0.3, 0.1, 0.2], names=["x", ("y", 1), 3.5])
        tree = minimum_spanning_tree(graph)
        assert tree.edge_ids.tolist() == [0, 1]
        assert tree.to_dataframe().rows() == [(0, 3.5, "x", 0.2), (1, 3.5, ("y", 1), 0.1)]
        assert set(tree.to_networkx().nodes) == {"x", ("y", 1), 3.5}
        assert tree.to_networkx().edges[3.5, "x"] == {"edge_id": 0, "weight": 0.2}
        assert list(tree.to_dataframe("pandas").columns) == [
            "edge_id",
            "source",
            "target",
            "weight",
        ]

    def test_linkage_is_single_linkage(self):
        points = np.random.default_rng(0).random((40, 2))
        a, b = np.triu_indices(40, 1)
        ours = minimum_spanning_tree(Graph(a, b, pdist(points))).to_linkage()
        assert is_valid_linkage(ours)
        assert cophenet(ours) == pytest.approx(cophenet(linkage(points, "single")))

    def test_linkage_of_a_forest_or_of_negative_weights_is_refused(self):
        with pytest.raises(GraphError, match="2 components"):
            Tree(Topology([0], [1], n_nodes=3), [0.5]).to_linkage()
        with pytest.raises(WeightError, match="negative"):
            Tree(Topology([0], [1]), [-0.5]).to_linkage()

    def test_a_cycle_is_refused(self):
        with pytest.raises(GraphError, match=r"edge 2 \(2 - 0\) closes a cycle"):
            Tree(Topology([0, 1, 2], [1, 2, 0]), [1, 1, 1])

    @pytest.mark.parametrize(
        ("arguments", "error", "text"),
        [
            (([0.5],), WeightError, "1 weights were given for 2 edges"),
            (([0.5, np.nan],), WeightError, r"edge 1 \(1 - 2\) is not a finite"),
            (([0.5, 0.5], [1]), GraphError, "1 edge ids"),
            (([0.5, 0.5], [1, 1]), GraphError, "ascend"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, arguments, error, text):
        with pytest.raises(error, match=text):
            Tree(Topology([0, 1], [1, 2]), *arguments)

    def test_without_weights(self):
        tree = Tree(Topology([0], [1]))
        assert tree.to_dataframe().columns == ["edge_id", "source", "target"]
        with pytest.raises(WeightError, match="no weights"):
            _ = tree.weights

    def test_is_immutable_and_silent(self):
        tree = minimum_spanning_tree(Graph([0], [1], [0.123456789]))
        assert "0.123" not in repr(tree)
        with pytest.raises(ValueError, match="read-only"):
            tree.weights[0] = 1.0

    def test_unknown_backend(self):
        with pytest.raises(UsageError, match="polars"):
            Tree(Topology([0], [1])).to_dataframe("excel")
