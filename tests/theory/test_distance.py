from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.errors import UsageError, WeightError
from ptclust.graph import Graph
from ptclust.theory import distances_from, minimum_path_distance
from tests.theory import literal


@settings(max_examples=200)
@given(literal.graphs(max_nodes=7, max_edges=14), st.data())
def test_equals_floyd_and_warshall(graph, data):
    d = literal.distances(graph.n_nodes, literal.edges_of(graph))
    node = st.integers(0, graph.n_nodes - 1)
    u, v = data.draw(node), data.draw(node)
    assert minimum_path_distance(graph, u, v) == d[u][v]
    origins = data.draw(st.lists(node, min_size=1))
    expected = [min(d[o][z] for o in origins) for z in range(graph.n_nodes)]
    assert distances_from(graph, origins).tolist() == expected


def test_sums_edges_not_nodes():
    """A path of k edges has k + 1 nodes: the sum is over its edges."""
    graph = Graph([0, 1, 2], [1, 2, 3], [1.0, 2.0, 4.0])
    assert minimum_path_distance(graph, 0, 3) == 7.0
    assert minimum_path_distance(graph, 2, 2) == 0.0


def test_tiny_weights_are_edges():
    graph = Graph([0, 1], [1, 2], [5e-324, 1e-300])
    assert minimum_path_distance(graph, 0, 1) == 5e-324
    assert minimum_path_distance(graph, 2, 0) == 1e-300


def test_without_a_path_it_is_infinite():
    assert math.isinf(minimum_path_distance(Graph([0], [1], [1.0], n_nodes=3), 0, 2))


@pytest.mark.parametrize("weight", [0.0, -0.5])
def test_refuses_weights_that_are_not_positive_without_naming_them(weight):
    graph = Graph([0, 1], [1, 2], [0.25, weight])
    with pytest.raises(WeightError, match="the edge 1 - 2 has a weight of zero or less") as error:
        minimum_path_distance(graph, 0, 1)
    assert "-0.5" not in str(error.value)


def test_refuses_what_is_no_node():
    graph = Graph([0, 1], [1, 2], [0.25, 0.5], names=["a", "b", "c"])
    with pytest.raises(UsageError, match="u must be numbers from 0 to 2, but 3 is among them"):
        minimum_path_distance(graph, 3, 0)
    with pytest.raises(UsageError, match=r"node numbers, .*graph\.names holds the names"):
        distances_from(graph, ["a"])
    with pytest.raises(UsageError, match="v must be one node number"):
        minimum_path_distance(graph, 0, [1, 2])
    with pytest.raises(UsageError, match="give at least one node"):
        distances_from(graph, [])
    with pytest.raises(UsageError, match="flatnonzero makes numbers of a mask"):
        distances_from(graph, np.array([True, False, False]))
