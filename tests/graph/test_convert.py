"""Graph.from_* and Graph.to_*: round trips, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from scipy.spatial.distance import pdist, squareform

from ptclust.errors import (
    GraphError,
    InputError,
    MissingDependencyError,
    PtclustError,
    UsageError,
    WeightError,
)
from ptclust.graph import Graph, converters
from tests.graph.reading import weights
from tests.lazy import lazy
from tests.leaks import everything_said

igraph = lazy("igraph")
nx = lazy("networkx")
pd = lazy("pandas")


SECRET = 0.123456789


def assert_refused(call: Any, error: type[PtclustError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        call()
    assert "123456789" not in everything_said(caught.value)


NAMES: dict[str, Callable[[int], Any]] = {
    "none": lambda n: None,
    "str": lambda n: [f"node {i}" for i in reversed(range(n))],
    "int": lambda n: [10 * i for i in reversed(range(n))],
    "tuple": lambda n: [(i, "x") for i in range(n)],
    "mixed": lambda n: [i if i % 2 else f"{i}" for i in range(n)],
}


@st.composite
def graphs(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(NAMES), min_edges: int = 0) -> Graph:
    """A simple graph in any order of edges and endpoints, zero and negative weights included."""
    n = draw(st.integers(2, 8))
    pairs = [(a, b) for a in range(n) for b in range(a)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=min_edges))
    ends = [(a, b) if draw(st.booleans()) else (b, a) for a, b in chosen]
    finite = st.just(0.0) | st.floats(-1e9, 1e9)
    weights = draw(st.lists(finite, min_size=len(ends), max_size=len(ends)))
    names = NAMES[draw(st.sampled_from(kinds))](n)
    return Graph([a for a, _ in ends], [b for _, b in ends], weights, n_nodes=n, names=names)


class TestRoundTrips:
    @given(graphs())
    def test_networkx(self, graph):
        again = Graph.from_networkx(graph.to_networkx())
        assert again.names.tolist() == graph.names.tolist()
        assert weights(again) == weights(graph)

    @given(graphs())
    def test_igraph(self, graph):
        again = Graph.from_igraph(graph.to_igraph())
        assert again.names.tolist() == graph.names.tolist()
        assert again.weights.tolist() == graph.weights.tolist()
        assert weights(again) == weights(graph)

    @given(graphs(("none",)))
    def test_scipy(self, graph):
        matrix = graph.to_scipy()
        assert (matrix != matrix.T).nnz == 0
        assert matrix.nnz == 2 * graph.n_edges
        again = Graph.from_scipy(matrix)
        assert again.n_nodes == graph.n_nodes
        assert weights(again) == weights(graph)

    @given(graphs(), st.sampled_from(["polars", "pandas"]))
    def test_dataframe(self, graph, backend):
        frame = graph.to_dataframe(backend)
        assert list(frame.columns) == ["source", "target", "weight"]
        if not graph.n_edges:
            return
        again = Graph.from_dataframe(frame, kind=graph.kind)
        assert weights(again) == weights(graph)
        assert again.weights.tolist() == graph.weights.tolist()
        joined = set(graph.sources.tolist()) | set(graph.targets.tolist())
        assert again.names.tolist() == [graph.names.tolist()[node] for node in sorted(joined)]

    def test_results_are_copies(self):
        graph = Graph([0], [1], [0.5])
        graph.to_scipy().data[:] = 9
        frame = graph.to_dataframe("pandas")
        frame.loc[0, "weight"] = 9
        assert graph.weights.tolist() == [0.5]


DIRECTED = "the graph is directed, and clusters are of undirected ones"


class TestNetworkx:
    def test_isolated_nodes_and_order(self):
        source = nx.Graph()
        source.add_nodes_from([(1, 2), "lone", 3])
        source.add_edge(3, (1, 2), weight=0.5)
        graph = Graph.from_networkx(source)
        assert graph.names.tolist() == [3, "lone", (1, 2)]
        assert [graph.names.tolist()[node] for node in graph.node_of] == list(source.nodes)

    def test_directions_and_parallels_merge(self):
        directed = nx.DiGraph([("a", "b", {"w": 1}), ("b", "a", {"w": 2})])
        multi = nx.MultiGraph([("a", "b", {"w": 1}), ("a", "b", {"w": 2})])
        parallel = "edges 0 and 1 both join 'a' and 'b'"
        for source, message in {directed: DIRECTED, multi: parallel}.items():
            assert_refused(
                lambda source=source: Graph.from_networkx(source, "w"), GraphError, message
            )
            assert Graph.from_networkx(source, "w", merge="sum").weights.tolist() == [3.0]

    def test_empty(self):
        assert Graph.from_networkx(nx.Graph()).n_nodes == 0
        assert Graph.from_networkx(nx.empty_graph(3)).n_nodes == 3

    @pytest.mark.parametrize(
        ("attributes", "error", "message"),
        [
            ({}, WeightError, r"edge 1 \('b' - 'c'\) has no attribute 'weight'"),
            ({"weight": None}, WeightError, r"edge 1 \('b' - 'c'\) has no attribute 'weight'"),
            ({"weight": "x0.123456789"}, WeightError, "edge 1 is not a number"),
            ({"weight": float("nan")}, WeightError, r"edge 1 \('b' - 'c'\) is not a finite"),
        ],
    )
    def test_bad_weights(self, attributes, error, message):
        source = nx.Graph([("a", "b", {"weight": SECRET}), ("b", "c", attributes)])
        assert_refused(lambda: Graph.from_networkx(source), error, message)

    def test_self_loop(self):
        source = nx.Graph([("a", "a", {"weight": SECRET})])
        assert_refused(lambda: Graph.from_networkx(source), GraphError, "'a' to itself")

    def test_similarities(self):
        source = nx.Graph([("a", "b", {"weight": 0.75})])
        graph = Graph.from_networkx(source, kind="similarity")
        assert graph.weights.tolist() == [0.75]
        assert graph.distances.tolist() == [-0.75]

    @pytest.mark.parametrize("kind", ["distance", "similarity"])
    def test_kinds_come_back(self, kind):
        graph = Graph([0], [1], [0.5], kind=kind)
        assert Graph.from_networkx(graph.to_networkx()).kind == kind
        assert Graph.from_igraph(graph.to_igraph()).kind == kind
        for other in ("distance", "similarity"):
            assert Graph.from_networkx(graph.to_networkx(), kind=other).kind == other
        counted = nx.Graph([("a", "b", {"count": 3})], kind="roads")
        assert Graph.from_networkx(counted, "count").kind == "similarity"


class TestIgraph:
    def test_names(self):
        source = igraph.Graph(n=3, edges=[(2, 1)], edge_attrs={"w": [0.5]})
        assert Graph.from_igraph(source, "w").names.tolist() == [0, 1, 2]
        source.vs["name"] = ["a", "b", "c"]
        assert weights(Graph.from_igraph(source, "w")) == {frozenset("bc"): 0.5}

    def test_bad(self):
        source = igraph.Graph(n=3, edges=[(0, 1), (1, 2)])
        for names, said in ((None, r"\(0 - 1\)"), (list("abc"), r"\('a' - 'b'\)")):
            if names:
                source.vs["name"] = names
            assert_refused(
                lambda: Graph.from_igraph(source), WeightError, f"edge 0 {said} has no attribute"
            )
        source.es[0]["weight"] = SECRET
        assert_refused(
            lambda: Graph.from_igraph(source), WeightError, r"edge 1 \('b' - 'c'\) has no attribute"
        )

    def test_parallel_and_directed(self):
        source = igraph.Graph(
            n=2, edges=[(0, 1), (1, 0)], directed=True, edge_attrs={"weight": [1, 2]}
        )
        assert_refused(lambda: Graph.from_igraph(source), GraphError, DIRECTED)
        assert Graph.from_igraph(source, merge="max").weights.tolist() == [2.0]


class TestScipy:
    @pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dok"])
    @pytest.mark.parametrize("kind", [scipy.sparse.coo_array, scipy.sparse.coo_matrix])
    def test_formats(self, form, kind):
        upper = kind(([0.5, 2.0], ([0, 1], [1, 2])), shape=(4, 4))
        for matrix in (upper, upper.T, upper + upper.T):
            graph = Graph.from_scipy(matrix.asformat(form))
            assert graph.n_nodes == 4
            assert weights(graph) == {frozenset({0, 1}): 0.5, frozenset({1, 2}): 2.0}

    @pytest.mark.parametrize("change", [0.0, 1e-9, 5.0])
    def test_where_entries_are_decides_and_not_what_they_are(self, change):
        """A change of 1e-9 in one of two mirrored entries doubled all weights, or was refused."""
        entries = [2.0, 2.0 + change, 3.0, 3.0]
        matrix = scipy.sparse.coo_array((entries, ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
        assert Graph.from_scipy(matrix).weights.tolist() == [2.0 + change / 2, 3.0]
        summed = Graph.from_scipy(matrix, merge="sum")
        assert summed.weights.tolist() == [4.0 + change, 6.0]

    def test_integers_are_exact(self):
        """Beyond 2^53 a float would be off by more than one unit can move a weight."""
        for more in (0, 1, 2):
            ends = ([0, 1], [1, 0])
            entries = np.array([2**60 + more, -(2**60)])
            matrix = scipy.sparse.coo_array((entries, ends), shape=(2, 2))
            assert Graph.from_scipy(matrix).weights.tolist() == [more / 2]
            assert Graph.from_scipy(matrix, merge="sum").weights.tolist() == [more]
            for same in (entries, entries.tolist(), entries.astype(object)):
                assert Graph([0, 0], [1, 1], same, merge="sum").weights.tolist() == [more]
        large = np.array([2**64 - 1, 2**64 - 1], dtype=np.uint64)
        assert Graph([0, 0], [1, 1], large, merge="sum").weights.tolist() == [2.0**65]

    def test_the_mean_of_mirrored_entries_is_stated(self):
        matrix = scipy.sparse.coo_array(([1.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
        assert Graph.from_scipy(matrix).merge == "mean"
        assert Graph.from_scipy(matrix, merge="max").merge == "max"
        once = scipy.sparse.coo_array(([1.0], ([0], [1])), shape=(2, 2))
        assert Graph.from_scipy(once).merge is None

    def test_stored_zeros_are_edges(self):
        matrix = scipy.sparse.coo_array(([0.0, 0.0, 1.0], ([0, 1, 2], [1, 0, 1])), shape=(3, 3))
        assert_refused(lambda: Graph.from_scipy(matrix), GraphError, "both join 0 and 1")
        one = scipy.sparse.csr_array(([0.0], ([0], [1])), shape=(3, 3))
        assert Graph.from_scipy(one).weights.tolist() == [0.0]
        assert Graph.from_scipy(Graph.from_scipy(one).to_scipy()).weights.tolist() == [0.0]

    def test_integers_and_similarities(self):
        matrix = scipy.sparse.coo_array(([3], ([0], [1])), shape=(2, 2))
        assert Graph.from_scipy(matrix, kind="similarity").weights.tolist() == [3.0]

    def test_entries_given_twice_merge(self):
        matrix = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
        assert Graph.from_scipy(matrix, merge="sum").weights.tolist() == [3.0]

    @pytest.mark.parametrize(
        ("matrix", "error", "message"),
        [
            (np.eye(2), UsageError, "sparse array or matrix, not ndarray"),
            (scipy.sparse.coo_array((2, 3)), GraphError, "2 x 3, but .* square"),
            (scipy.sparse.coo_array(np.diag([SECRET, 0])), GraphError, "node 0 to itself"),
            (scipy.sparse.coo_array([[0, 1j], [1j, 0]]), WeightError, "complex"),
            (scipy.sparse.dia_array([[0, SECRET], [0, 0]]), GraphError, r"dia format.*tocoo\(\)"),
            (
                scipy.sparse.coo_array([[0, np.nan], [np.nan, 0]]),
                WeightError,
                "edge 0 .0 - 1. is not",
            ),
        ],
    )
    def test_bad(self, matrix, error, message):
        assert_refused(lambda: Graph.from_scipy(matrix), error, message)


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame], ids=["polars", "pandas"])
class TestDataframe:
    @pytest.mark.parametrize(
        ("ids", "kind"),
        [
            ([7, 3, 3, 0], int),
            (["b", "a", "a", "c"], str),
            ([1.5, 0.5, 0.5, 2.5], float),
            ([True, False], int),
            ([2.0, 1.0, 1.0, 3.0], int),
        ],
    )
    def test_ids(self, make, ids, kind):
        frame = make({"source": ids[0::2], "target": ids[1::2], "weight": [0.5] * (len(ids) // 2)})
        graph = Graph.from_dataframe(frame, kind="distance")
        assert graph.names.tolist() == sorted(set(ids))
        assert all(type(name) is kind for name in graph.names.tolist())

    def test_columns_merge_and_kind(self, make):
        frame = make({"w": [0.5, 0.25], "a": [1, 2], "b": [2, 1]})
        graph = Graph.from_dataframe(frame, "a", "b", "w", merge="max", kind="similarity")
        assert graph.weights.tolist() == [0.5]
        assert graph.kind == "similarity"

    def test_a_kind_that_nobody_said_is_asked_for(self, make):
        frame = make({"source": [1], "target": [2], "weight": [5]})
        assert_refused(lambda: Graph.from_dataframe(frame), UsageError, "kind='similarity'")

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            (
                {"source": ["a", None]},
                GraphError,
                "'source' has no node id in row 1 .counted from 0",
            ),
            ({"weight": [SECRET, None]}, WeightError, "row 1 .counted from 0. is missing"),
            ({"weight": [SECRET, np.inf]}, WeightError, "row 1 .counted from 0. .* not a finite"),
            ({"weight": ["x0.123456789", "y"]}, WeightError, "row 0|type String"),
            ({"target": ["a", "b"]}, GraphError, "row 0 .counted from 0. joins node 'a' to itself"),
            ({"target": ["b", "a"]}, GraphError, "rows 0 and 1 .* both join 'a' and 'b'"),
        ],
    )
    def test_bad(self, make, changes, error, message):
        good: dict[str, Any] = {
            "source": ["a", "b"],
            "target": ["b", "c"],
            "weight": [SECRET, 0.5],
        }
        frame = make({**good, **changes})
        assert_refused(lambda: Graph.from_dataframe(frame, kind="distance"), error, message)

    def test_missing_column(self, make):
        frame = make({"source": [1], "target": [2], "cost": [SECRET]})
        assert_refused(
            lambda: Graph.from_dataframe(frame),
            InputError,
            "no column 'weight' for weight; .*: 'source', 'target', 'cost'",
        )

    def test_same_column_twice(self, make):
        frame = make({"source": [1], "target": [2], "weight": [SECRET]})
        assert_refused(
            lambda: Graph.from_dataframe(frame, target="source"), UsageError, "three different"
        )


def test_other_things_than_data_frames():
    for thing, said in (({"source": [1]}, "dict"), (pl.LazyFrame(), "LazyFrame; collect it first")):
        assert_refused(lambda thing=thing: Graph.from_dataframe(thing), UsageError, f"not {said}")


def test_pandas_integers_of_different_types():
    frame = pd.DataFrame({"source": [1], "target": [2], "weight": [0.5]})
    for a, b in (("int64", "int8"), ("Int64", "int64"), ("uint64", "int64"), ("uint64", "uint64")):
        graph = Graph.from_dataframe(frame.astype({"source": a, "target": b}), kind="distance")
        assert graph.names.tolist() == [1, 2]


class TestPoints:
    @pytest.mark.parametrize("metric", ["euclidean", "cityblock", "cosine", "chebyshev"])
    def test_complete(self, metric):
        points = np.random.default_rng(1).normal(size=(12, 3))
        graph = Graph.from_points(points, metric)
        np.testing.assert_array_equal(graph.weights, pdist(points, metric))
        np.testing.assert_allclose(graph.to_scipy().toarray(), squareform(pdist(points, metric)))

    @pytest.mark.parametrize("n", [0, 1, 2])
    def test_few(self, n):
        graph = Graph.from_points(np.zeros((n, 2)))
        assert (graph.n_nodes, graph.n_edges) == (n, n * (n - 1) // 2)

    @pytest.mark.parametrize("n_neighbors", [1, 3, 11])
    def test_nearest_neighbours_either_way(self, n_neighbors):
        points = np.random.default_rng(2).normal(size=(12, 2))
        distances = squareform(pdist(points))
        nearest = np.argsort(distances + np.diag([np.inf] * 12), axis=1)[:, :n_neighbors]
        expected = {frozenset({a, int(b)}) for a in range(12) for b in nearest[a]}
        graph = Graph.from_points(points, n_neighbors=n_neighbors)
        assert set(weights(graph)) == expected
        np.testing.assert_allclose(graph.weights, distances[graph.sources, graph.targets])

    def test_points_in_one_place(self):
        graph = Graph.from_points(np.zeros((5, 2)), n_neighbors=4)
        assert graph.n_edges == 10

    @pytest.mark.parametrize(
        ("points", "options", "error", "message"),
        [
            ([SECRET, 1.0], {}, InputError, "two-dimensional"),
            ([["x0.123456789"]], {}, InputError, "two-dimensional array of numbers"),
            ([[SECRET], [np.nan], [1]], {}, InputError, "point 1 .rows count from 0. has"),
            ([[SECRET], [np.inf], [1]], {"n_neighbors": 1}, InputError, "point 1 "),
            ([[SECRET], [1]], {"metric": "best"}, UsageError, "metric 'best' cannot be used"),
            ([[SECRET], [1]], {"metric": "best", "n_neighbors": 1}, UsageError, "metric 'best'"),
            ([[SECRET], [1]], {"n_neighbors": 0}, UsageError, "at least 1 and below .*, 2, not 0"),
            ([[SECRET], [1]], {"n_neighbors": 2}, UsageError, "at least 1 and below .*, 2, not 2"),
            ([[SECRET], [0]], {"metric": "cosine"}, WeightError, r"edge 0 \(0 - 1\) is not a fin"),
        ],
    )
    def test_bad(self, points, options, error, message):
        assert_refused(lambda: Graph.from_points(points, **options), error, message)

    def test_too_many(self, monkeypatch):
        monkeypatch.setattr(converters, "_memory", lambda: 10**9)
        assert_refused(
            lambda: Graph.from_points(np.zeros((10**6, 1))),
            InputError,
            r"1,000,000 points has 499,999,500,000 edges .* GB.*n_neighbors=.*DBMSTClu\(\)\.fit",
        )

    def test_memory_of_this_machine(self):
        assert converters._memory() > 10**8


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("networkx", lambda graph: graph.to_networkx()),
        ("igraph", lambda graph: graph.to_igraph()),
        ("pandas", lambda graph: graph.to_dataframe("pandas")),
    ],
)
def test_missing_package(monkeypatch, package, call):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'ptclust\[{package}\]'"):
        call(Graph([0], [1], [0.5]))


def test_unknown_backend():
    with pytest.raises(UsageError, match="'polars' or 'pandas', not 'excel'"):
        Graph([0], [1], [0.5]).to_dataframe("excel")
