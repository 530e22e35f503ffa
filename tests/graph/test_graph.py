"""Topology and Graph: what they accept, refuse, keep and hide."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from importlib import import_module
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ptclust._components import adjacency, label_components
from ptclust.errors import GraphError, PtclustError, UsageError, WeightError
from ptclust.graph import Graph, Topology, index_dtype, topology
from tests.leaks import everything_said

SECRET = 0.123456789


def ends_below(n_nodes):
    node = st.integers(0, n_nodes - 1)
    return st.lists(st.tuples(node, node), max_size=60)


@pytest.fixture
def triangle() -> Graph:
    return Graph([0, 1, 2], [1, 2, 0], [SECRET, 0.2, 0.3], names=["a", "b", "c"])


class TestState:
    def test_arrays_are_read_only(self, triangle):
        for array in (triangle.weights, triangle.sources, triangle.targets, triangle.names):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[1]

    def test_arrays_given_are_not_frozen_and_not_shared(self):
        sources, targets, weights = np.array([0]), np.array([1]), np.array([0.5])
        names = np.array(["a", "b"])
        graph = Graph(sources, targets, weights, names=names)
        sources[0], targets[0], weights[0], names[0] = 1, 0, 9.0, "z"
        assert graph.sources.tolist() == [0]
        assert graph.targets.tolist() == [1]
        assert graph.weights.tolist() == [0.5]
        assert graph.names.tolist() == ["a", "b"]

    def test_repr_hides_weights(self, triangle):
        for text in (repr(triangle), str(triangle), f"{triangle}", repr(triangle.topology)):
            assert "1234" not in text
        assert repr(triangle) == "Graph(n_nodes=3, n_edges=3, weights=<private>)"

    def test_pickle_is_refused_but_not_for_the_topology(self, triangle):
        with pytest.raises(TypeError, match="refuses to be pickled"):
            pickle.dumps(triangle)
        assert pickle.loads(pickle.dumps(triangle.topology)) == triangle.topology

    def test_copies_are_the_same_object(self, triangle):
        assert copy.copy(triangle) is triangle
        assert copy.deepcopy(triangle) is triangle

    def test_describe_edge_speaks_plain_names(self):
        graph = Graph([0], [1], [0.5], names=np.array([7, 9]))
        assert graph.topology.describe_edge(0) == "edge 0 (7 - 9)"

    def test_components(self):
        topology = Topology([1, 3], [2, 4], n_nodes=6)
        assert topology.n_components == 4
        assert topology.components.tolist() == [0, 1, 1, 2, 2, 3]
        assert topology.is_forest

    @hypothesis.settings(max_examples=300)
    @hypothesis.given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), ends_below(n))))
    def test_components_are_those_of_scipy_in_any_order_of_the_edges(self, drawn):
        n_nodes, ends = drawn
        a, b = np.array(ends, dtype=np.int32).reshape(-1, 2).T.copy()
        component = np.arange(n_nodes, dtype=np.int32)
        count = label_components(a, b, component)
        matrix = coo_array((np.ones(len(a)), (a, b)), shape=(n_nodes, n_nodes))
        n_expected, expected = connected_components(matrix, directed=False)
        assert count == n_expected
        assert component.tolist() == expected.tolist()  # both number them by first appearance

    def test_a_topology_of_all_edges_is_equal_and_another(self):
        """Published tells by the object whether only a tree was published."""
        topology = Topology([0, 1], [1, 2])
        assert topology.restricted_to(np.arange(2)) == topology
        assert topology.restricted_to(np.arange(2)) is not topology
        assert topology.restricted_to(np.arange(1)) == Topology([0], [1], n_nodes=3)


class TestSizes:
    @pytest.mark.parametrize("n_nodes", [0, 1, 5])
    def test_no_edges(self, n_nodes):
        graph = Graph([], [], [], n_nodes=n_nodes)
        assert (graph.n_nodes, graph.n_edges) == (n_nodes, 0)
        assert graph.topology.n_components == n_nodes
        assert Graph([], [], [], n_nodes=n_nodes, merge="sum").n_edges == 0

    def test_isolated_nodes(self):
        graph = Graph([0], [1], [0.5], n_nodes=4)
        assert graph.n_nodes == 4
        assert graph.names.tolist() == [0, 1, 2, 3]

    def test_nodes_default_to_the_largest_endpoint(self):
        assert Graph([0, 5], [1, 2], [0.5, 0.5]).n_nodes == 6

    def test_index_dtype_changes_where_int32_ends(self):
        assert index_dtype(2**31 - 1) is np.int32
        assert index_dtype(2**31) is np.int64

    def test_all_agree_on_int32_and_int64(self):
        rng = np.random.default_rng(3)
        ends = rng.integers(0, 40, size=(2, 200))
        results = []
        for dtype in (np.int32, np.int64):
            sources, targets = ends.astype(dtype)
            said = []
            for n_nodes in (39, 40):  # an end outside, and then a loop
                with pytest.raises(GraphError, match="edge") as refused:
                    Topology(sources, targets, n_nodes)
                said.append(str(refused.value))
            results.append(
                (
                    *said,
                    topology._in_order(sources, targets, np.arange(200), 40)[2].tolist(),
                )
            )
        assert results[0] == results[1]
        assert results[0][2] == np.lexsort((ends.max(axis=0), ends.min(axis=0))).tolist()

    @pytest.mark.parametrize("n_nodes", [40, 2**31, 2**33])
    @pytest.mark.parametrize("dtype", [np.float64, np.int8, np.uint64])
    def test_the_order_of_edges_does_not_depend_on_how_it_is_found(self, n_nodes, dtype):
        """With many nodes, edges are sorted; with few, counted."""
        random = np.random.default_rng(4)
        ends = random.integers(0, 40, size=(2, 300))
        ends[0] += (ends[0] == 39) * (n_nodes - 40)
        low, high = ends.min(axis=0), ends.max(axis=0)
        values = random.integers(0, 100, 300).astype(dtype)
        order = np.lexsort((high, low))
        found = topology._in_order(ends[0], ends[1], values, n_nodes)
        for array, given in zip(found, (low, high, values)):
            assert array.tolist() == given[order].tolist()
            assert array.dtype.kind == given.dtype.kind

    @pytest.mark.parametrize("n_nodes", [40, 2**31])
    @pytest.mark.parametrize("come", ["by lower node", "by higher node", "otherwise"])
    def test_the_order_in_which_edges_come_makes_no_difference(self, come, n_nodes):
        random = np.random.default_rng(len(come))
        low, high = np.sort(random.integers(0, 40, size=(2, 300)), axis=0)
        low, high = low[low < high], high[low < high]
        orders = {
            "by lower node": np.lexsort((high, low)),
            "by higher node": np.lexsort((random.random(len(low)), high)),
            "otherwise": random.permutation(len(low)),
        }
        mixed = orders[come]
        a, b = low[mixed], high[mixed]
        if come != "by lower node":
            swapped = random.random(len(a)) < 0.5
            a, b = np.where(swapped, b, a), np.where(swapped, a, b)
        values = random.random(len(a))
        order = np.lexsort((np.maximum(a, b), np.minimum(a, b)))
        found = topology._in_order(a, b, values, n_nodes)
        for array, wanted in zip(found, (np.minimum(a, b), np.maximum(a, b), values)):
            assert array.tolist() == wanted[order].tolist()

    @pytest.mark.parametrize("ordered", [True, False])
    def test_what_was_given_stays_as_it_is_and_apart(self, ordered):
        given = [np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([0.5, 0.25, 0.125])]
        given = given if ordered else [array[::-1].copy() for array in given]
        copies = [array.copy() for array in given]
        graph = Graph(*given)
        for array, before in zip(given, copies):
            assert array.flags.writeable
            assert array.tolist() == before.tolist()
            array[:] = 0
        assert graph.sources.tolist() == [0, 1, 2]
        assert graph.weights.tolist() == [0.5, 0.25, 0.125]

    @pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
    def test_any_integer_type_of_endpoints(self, dtype):
        graph = Graph(np.array([0, 1], dtype), np.array([1, 2], dtype), [0.1, 0.2])
        assert graph.sources.dtype == np.int32
        assert graph.targets.tolist() == [1, 2]


class TestNames:
    @pytest.mark.parametrize(
        "names",
        [
            ["a", "b", "c"],
            [10, 20, 30],
            [(0, 1), (0, 2), (1, 2)],
            ["a", 1, (2, 3)],
            [1.5, None, frozenset({1})],
            np.array(["a", "b", "c"]),
            np.array([5, 6, 7]),
            range(3),
        ],
    )
    def test_names_of_any_hashable_kind(self, names):
        topology = Topology([0, 1], [1, 2], names=names)
        assert topology.names.tolist() == list(names)
        assert [topology.name(i) for i in range(3)] == list(names)

    def test_names_make_nodes(self):
        assert Topology([0], [1], names="abcd").n_nodes == 4

    @pytest.mark.parametrize(
        ("names", "n_nodes", "message"),
        [
            (["a", "b", "b"], None, "the node name 'b' is given twice"),
            (["a", "b"], 3, "2 names were given for 3 nodes"),
            (["a"], None, "the nodes are numbered 0 to 0"),
            ([[1], [2]], None, "hashable"),
        ],
    )
    def test_names_that_do_not_fit(self, names, n_nodes, message):
        with pytest.raises(GraphError, match=message):
            Topology([0], [1], n_nodes, names)


BAD: list[tuple[str, dict[str, Any], type[PtclustError], str]] = [
    ("self-loop", {"targets": [1, 1, 0]}, GraphError, "edge 1 joins node 1 to itself"),
    (
        "parallel",
        {"targets": [1, 0, 0]},
        GraphError,
        "edges 0 and 1 both join 0 and 1; remove one, or say how to merge",
    ),
    ("negative", {"sources": [0, -1, 2]}, GraphError, "edge 1 joins nodes -1 and 2"),
    ("too large", {"n_nodes": 2}, GraphError, "edge 1 joins nodes 1 and 2, .* 0 to 1"),
    ("negative count", {"n_nodes": -1}, GraphError, "n_nodes must not be negative"),
    ("float ends", {"sources": [0.0, 1.0, 2.0]}, GraphError, "sources must be .* integers"),
    ("lengths", {"sources": [0, 1]}, GraphError, "one length, not 2 and 3"),
    ("few weights", {"weights": [SECRET]}, GraphError, "1 weights were given for 3 edges"),
    ("nan", {"weights": [SECRET, np.nan, 1]}, WeightError, r"edge 1 \(1 - 2\) is not a finite"),
    ("inf", {"weights": [SECRET, 1, -np.inf]}, WeightError, r"edge 2 \(2 - 0\) is not a finite"),
    ("none", {"weights": [SECRET, None, 1]}, WeightError, r"edge 1 \(1 - 2\) is not a finite"),
    ("text", {"weights": [1, "x0.123456789", 1]}, WeightError, "edge 1 is not a number"),
    ("objects", {"weights": [SECRET, {}, 1]}, WeightError, "edge 1 is not a number"),
    ("complex", {"weights": np.array([SECRET, 1j, 1])}, WeightError, "must be real numbers"),
    ("matrix", {"weights": [[SECRET], [1], [1]]}, WeightError, "one-dimensional"),
    ("merge", {"merge": "mean"}, UsageError, "merge must be 'min', 'max' or 'sum', not 'mean'"),
    ("kind", {"kind": "weight"}, UsageError, "kind must be 'distance' .* or 'similarity'"),
    ("merge", {"merge": "mean"}, UsageError, "merge must be 'min', 'max' or 'sum', not 'mean'"),
    (
        "nan merged",
        {"targets": [1, 0, 0], "weights": [SECRET, np.inf, 1], "merge": "min"},
        WeightError,
        "edge 1 .* is not a finite",
    ),
    (
        "loop merged",
        {"sources": [0, 1, 2], "targets": [1, 0, 2], "merge": "min"},
        GraphError,
        "edge 2 joins node 2 to itself",
    ),
]


@pytest.mark.parametrize(
    ("changes", "error", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_input(changes, error, message):
    good: dict[str, Any] = {"sources": [0, 1, 2], "targets": [1, 2, 0], "weights": [SECRET, 0.2, 3]}
    with pytest.raises(error, match=message) as caught:
        Graph(**{**good, **changes})
    assert "123456789" not in everything_said(caught.value)


class TestMerge:
    @pytest.mark.parametrize(
        ("how", "weights"), [("min", [1.0, 5.0, 2.0]), ("max", [4.0, 5.0, 6.0]), ("sum", [5, 5, 8])]
    )
    def test_one_weight_a_pair(self, how, weights):
        graph = Graph([3, 0, 2, 1, 1], [2, 1, 3, 3, 0], [1, 2, 4, 5, 6], merge=how)
        order = [2, 1, 0]  # of the expected weights above
        assert graph.sources.tolist() == [0, 1, 2]
        assert graph.targets.tolist() == [1, 3, 3]
        assert graph.weights.tolist() == [weights[i] for i in order]
        assert graph.merge == how

    @pytest.mark.parametrize(
        ("weights", "expected"),
        [
            ([1e308, 1e308, 5.0], sys.float_info.max),  # an error would depend on the weights
            ([-1e308, -1e308, 5.0], -sys.float_info.max),
            ([1e308, 1e308, -1e308], 1e308),
            ([1e16, 1.0, -1e16], 1.0),
            ([0.1] * 10, 1.0),  # 0.1 + 0.1 + ... is 0.9999999999999999
            ([2**53 - 2, 1, 1], 2.0**53),
        ],
    )
    def test_sums_are_exact_in_any_order(self, weights, expected):
        for given in (weights, weights[::-1], sorted(weights)):
            n = len(given)
            assert Graph([0] * n, [1] * n, given, merge="sum").weights.tolist() == [expected]

    def test_nothing_to_merge(self, triangle):
        again = Graph([0, 0, 1], [1, 2, 2], triangle.weights, names="abc", merge="sum")
        assert again.topology == triangle.topology
        assert again.weights.tolist() == triangle.weights.tolist()

    def test_result_is_read_only_and_keeps_nodes(self):
        graph = Graph([0, 1], [1, 0], [1, 2], n_nodes=5, names="abcde", merge="max")
        assert not graph.weights.flags.writeable
        assert not graph.sources.flags.writeable
        assert graph.names.tolist() == list("abcde")


@pytest.mark.parametrize(
    "weights",
    [
        [10**400, 1],
        ["0.5", "1"],
        np.array(["0.5", "1"]),
        np.array(["0.5", 1], dtype=object),
        np.array([1, 2], dtype="m8[s]"),
        np.ma.array([0.5, 99.0], mask=[False, True]),
    ],
)
def test_weights_that_are_no_numbers(weights):
    with pytest.raises(WeightError, match=r"not an?"):
        Graph([0, 1], [1, 2], weights)


def test_similarities_stay_as_given():
    graph = Graph([0, 1, 1], [1, 0, 2], [9, 5, 10], kind="similarity", merge="sum")
    assert graph.weights.tolist() == [14.0, 10.0]
    assert graph.distances.tolist() == [-14.0, -10.0]
    assert graph.to_distances().weights.tolist() == [2.0, 6.0]  # max - s + (max - min) / 2
    assert graph.clipped(0, 12).weights.tolist() == [12.0, 10.0]
    assert graph.clipped(0, 12).kind == "similarity"


@pytest.mark.parametrize("module", ["ptclust.graph.topology", "ptclust.trees.tree"])
def test_the_public_half_imports_nothing_that_sees_weights(module):
    code = f"import sys, {module}; print(*(name for name in sys.modules if 'ptclust' in name))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    private = ("ptclust.graph.graph", "ptclust.graph.readers")
    assert module in ran.stdout.split()
    assert not [name for name in ran.stdout.split() if name.startswith(private)]


@pytest.mark.parametrize("package", ["ptclust.graph", "ptclust.trees"])
def test_public_names_are_found_when_used(package):
    module = import_module(package)
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_adjacency_lists_the_edges_of_every_node_in_their_order(dtype):
    random = np.random.default_rng(0)
    sources, targets = random.integers(0, 40, (2, 200)).astype(dtype)
    sources, targets = sources[sources != targets], targets[sources != targets]
    indptr, neighbours, edges = adjacency(sources, targets, 41)
    assert neighbours.dtype == dtype
    assert indptr[0] == 0
    for node in range(41):
        at = slice(indptr[node], indptr[node + 1])
        expected = np.flatnonzero((sources == node) | (targets == node))
        assert edges[at].tolist() == expected.tolist()
        assert neighbours[at].tolist() == (sources + targets - node)[expected].tolist()
