from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.datasets import planted_graph
from ptclust.errors import UsageError, WeightError
from ptclust.graph import Graph
from ptclust.theory import cluster_verdict, clusters_verdict, connected_in
from ptclust.trees import Tree, minimum_spanning_tree
from tests.lazy import lazy
from tests.theory import literal

nx = lazy("networkx")


def subset(nodes, min_size=0):
    return st.sets(st.sampled_from(sorted(nodes)), min_size=min_size) if nodes else st.just(set())


def check_witness(d, c, within, verdict):
    """The split is one of C, and the argmin of the Definition holds the intruder."""
    witness = verdict.witness
    part = set(witness.part.tolist())
    assert part
    assert part < c
    assert witness.intruder in within - c
    assert witness.intruder in literal.nearest(d, within - part, part)
    assert witness.to_rest == min(d[a][b] for a in part for b in c - part)
    assert witness.to_intruder == min(d[a][witness.intruder] for a in part) <= witness.to_rest


@settings(max_examples=700)
@given(literal.graphs(min_nodes=3, max_nodes=7, max_edges=12), st.data())
def test_equals_the_definition_over_all_splits(graph, data):
    d = literal.distances(graph.n_nodes, literal.edges_of(graph))
    everyone = set(range(graph.n_nodes))
    c = data.draw(subset(everyone, min_size=3))
    within = data.draw(st.sampled_from([None, "some"]))
    if within is not None:
        within = c | data.draw(subset(everyone - c))
    verdict = cluster_verdict(graph, sorted(c), None if within is None else sorted(within))
    within = everyone if within is None else within
    assert verdict.holds is literal.is_cluster(d, c, within)
    if within != c:
        assert verdict.separation == min(d[a][z] for a in c for z in within - c)
    if not verdict.holds:
        check_witness(d, c, within, verdict)


@settings(max_examples=300)
@given(literal.graphs(max_nodes=9, max_edges=20), st.data())
def test_all_clusters_at_once_equal_one_by_one(graph, data):
    labels = np.array([data.draw(st.integers(-1, 2)) * 7 for _ in range(graph.n_nodes)])
    labels[labels < 0] = -1
    verdict = clusters_verdict(graph, labels)
    assert verdict.labels.tolist() == sorted(set(labels.tolist()) - {-1})
    for k, label in enumerate(verdict.labels):
        one = cluster_verdict(graph, np.flatnonzero(labels == label))
        assert bool(verdict.cluster_holds[k]) is one.holds
        if one.size >= 3:
            assert (verdict.links[k], verdict.separations[k]) == (one.link, one.separation)
    assert verdict.holds is all(verdict.cluster_holds)


@settings(max_examples=300)
@given(literal.graphs(min_nodes=3, max_nodes=6), st.data())
def test_link_is_the_bottleneck_of_the_distances(graph, data):
    d = literal.distances(graph.n_nodes, literal.edges_of(graph))
    c = sorted(data.draw(subset(set(range(graph.n_nodes)), min_size=3)))
    complete = nx.Graph()
    complete.add_weighted_edges_from((a, b, d[a][b]) for a in c for b in c if a < b)
    mst = nx.minimum_spanning_tree(complete)
    bottleneck = max(w for _, _, w in mst.edges(data="weight"))
    if len(c) < graph.n_nodes:
        assert cluster_verdict(graph, c, c).link == bottleneck
    verdict = cluster_verdict(graph, c)
    if verdict.holds and len(c) < graph.n_nodes:
        assert verdict.link == bottleneck


class TestTheoremOfSubtrees:
    @settings(max_examples=500)
    @given(literal.graphs(min_nodes=4, max_nodes=6, max_edges=9), st.data())
    def test_a_cluster_is_connected_in_every_minimum_spanning_tree(self, graph, data):
        edges = literal.edges_of(graph)
        everyone = set(range(graph.n_nodes))
        # An arbitrary set is hardly ever a cluster: take one that light edges connect.
        level = data.draw(st.integers(1, 9))
        component = graph.topology.restricted_to(np.flatnonzero(graph.weights <= level)).components
        c = set(np.flatnonzero(component == component[0]).tolist())
        if c == everyone or not cluster_verdict(graph, sorted(c)).holds:
            c = data.draw(subset(everyone, min_size=3))
        if c == everyone or not cluster_verdict(graph, sorted(c)).holds:
            return
        for forest in literal.minimum_spanning_forests(graph.n_nodes, edges):
            tree = Tree(graph.topology.restricted_to(np.array(forest, dtype=int)))
            assert connected_in(tree, sorted(c))

    def test_fails_for_clusters_within_less_than_all_nodes(self):
        """Three leaves are a cluster within them and node 4, but the hub is between them."""
        star = Graph([3, 3, 3, 3], [0, 1, 2, 4], [1.0, 1.0, 1.0, 5.0])
        assert cluster_verdict(star, [0, 1, 2], [0, 1, 2, 4]).holds
        assert not connected_in(minimum_spanning_tree(star), [0, 1, 2])
        assert not cluster_verdict(star, [0, 1, 2]).holds

    def test_fails_for_paths_in_the_graph(self):
        """As printed, any path in G between nodes of a cluster stays in it; 0 - 3 - 1 does not."""
        graph = Graph([0, 1, 0, 1], [1, 2, 3, 3], [1.0, 1.0, 5.0, 5.0])
        assert cluster_verdict(graph, [0, 1, 2]).holds
        assert connected_in(minimum_spanning_tree(graph), [0, 1, 2])
        paths = nx.all_simple_paths(graph.to_networkx(), 0, 1)
        assert any(not set(path) <= {0, 1, 2} for path in paths)

    def test_all_nodes_are_a_cluster_even_of_a_disconnected_graph(self):
        """The theorem is about connected graphs: here D - C is empty, the size alone decides."""
        graph = Graph([0, 2], [1, 3], [1.0, 1.0])
        assert cluster_verdict(graph, range(4)).holds
        assert clusters_verdict(graph, [0] * 4).holds
        assert not connected_in(minimum_spanning_tree(graph), range(4))

    def test_nothing_and_a_single_node_are_connected(self):
        tree = minimum_spanning_tree(Graph([0, 1], [1, 2], [1.0, 1.0]))
        assert connected_in(tree, [])
        assert connected_in(tree, [2])
        assert not connected_in(tree, [0, 2])


def test_a_way_around_outside_is_measured():
    """Edge 1-2 weighs 9, but by node 3 it is 2 from {0, 1} to {2, 4}, and 1 to node 3."""
    graph = Graph([0, 1, 1, 2, 2], [1, 2, 3, 3, 4], [0.5, 9.0, 1.0, 1.0, 0.5])
    verdict = cluster_verdict(graph, [0, 1, 2, 4])
    assert not verdict.holds
    assert (verdict.witness.to_rest, verdict.witness.to_intruder) == (2.0, 1.0)
    assert verdict.witness.intruder == 3


def test_ties_are_no_clusters():
    graph = Graph([0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0])
    verdict = cluster_verdict(graph, [0, 1, 2])
    assert not verdict.holds
    assert verdict.describe() == (
        "not a cluster: 1 of its 3 nodes are 1 from the others, and 1 from node 3 outside"
    )


def test_with_all_nodes_rounding_does_not_decide():
    """0.1 + 0.2 is no edge: only the weights themselves are compared."""
    weights = [0.1, 0.2, np.nextafter(0.2, 1.0)]
    assert cluster_verdict(Graph([0, 1, 2], [1, 2, 3], weights), [0, 1, 2]).holds
    assert not cluster_verdict(Graph([0, 1, 2], [1, 2, 3], weights[::-1]), [0, 1, 2]).holds


@pytest.mark.parametrize("size", [0, 1, 2])
def test_needs_three_nodes(size):
    graph = Graph([0, 1, 2], [1, 2, 3], [0.1, 0.1, 0.9])
    verdict = cluster_verdict(graph, range(size))
    assert not verdict.holds
    assert verdict.witness is None
    assert verdict.describe() == (
        f"not a cluster: it has {size} node(s), and a cluster has at least 3"
    )
    assert cluster_verdict(graph, range(3)).describe() == (
        "a cluster: 3 nodes, held together at 0.1, separated by 0.9"
    )


def test_describes_a_partition():
    graph = Graph(range(8), range(1, 9), [0.1, 0.1, 0.9, 0.1, 0.1, 0.9, 0.1, 0.95])
    verdict = clusters_verdict(graph, [5, 5, 5, 2, 2, -1, 8, 8, 8])
    assert verdict.offenders.tolist() == [2, 8]
    assert verdict.describe().splitlines() == [
        "2 of 3 cluster(s) are not clusters by the Definition:",
        "  cluster 2, 2 node(s): a cluster has at least 3 nodes",
        "  cluster 8, 3 node(s): held together at 0.95, but separated by 0.9",
    ]
    assert clusters_verdict(graph, [0] * 3 + [-1] * 6).describe() == (
        "all 1 cluster(s) are clusters by the Definition"
    )
    many = clusters_verdict(graph, range(9))
    assert many.describe().count("\n") == 9
    assert "more" not in many.describe()


def test_many_planted_clusters():
    planted = planted_graph("blobs", 3000, n_clusters=100, seed=2)
    verdict = clusters_verdict(planted.graph, planted.truth)
    assert verdict.holds
    tree = minimum_spanning_tree(planted.graph)
    assert all(connected_in(tree, np.flatnonzero(planted.truth == k)) for k in range(100))
    wrong = planted.truth.copy()
    wrong[0] = (wrong[0] + 1) % 100
    assert set(clusters_verdict(planted.graph, wrong).offenders) == {planted.truth[0], wrong[0]}


def test_errors_say_what_is_wrong():
    graph = Graph([0, 1, 2], [1, 2, 3], [0.1, 0.1, 0.9])
    with pytest.raises(UsageError, match="a subset of within, but node 2 is not in it"):
        cluster_verdict(graph, [0, 1, 2], [0, 1, 3])
    with pytest.raises(UsageError, match="within must be numbers from 0 to 3, but 7 is among them"):
        cluster_verdict(graph, [0, 1, 2], [0, 1, 2, 7])
    bad = Graph([0, 1], [1, 2], [0.25, 0.0])
    for decide in (cluster_verdict, clusters_verdict):
        with pytest.raises(WeightError, match="the Definition of a cluster needs positive weights"):
            decide(bad, [0, 0, 0])
