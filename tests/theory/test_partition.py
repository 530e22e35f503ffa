from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.errors import UsageError
from ptclust.graph import Topology
from ptclust.theory import as_partition, cuts, has_partitioning_topology, is_cut
from ptclust.trees import Tree


@st.composite
def forests_with_labels(draw):
    n = draw(st.integers(1, 8))
    parents = [draw(st.integers(-1 if draw(st.booleans()) else 0, v - 1)) for v in range(1, n)]
    ends = [(v, p) for v, p in enumerate(parents, 1) if p >= 0]
    labels = [draw(st.integers(-1, 3)) for _ in range(n)]
    return Tree(Topology([a for a, _ in ends], [b for _, b in ends], n_nodes=n)), labels


def clusters_of(labels):
    """Sets of nodes; every unclustered node by itself."""
    names = [label if label >= 0 else ("alone", v) for v, label in enumerate(labels)]
    return [{v for v, own in enumerate(names) if own == name} for name in dict.fromkeys(names)]


def edges_between(tree, a, b):
    ends = zip(tree.sources.tolist(), tree.targets.tolist())
    return sum((u in a and v in b) or (u in b and v in a) for u, v in ends)


def is_one_piece(tree, nodes):
    reached, before = {min(nodes)}, None
    while reached != before:
        before = set(reached)
        for u, v in zip(tree.sources.tolist(), tree.targets.tolist()):
            if {u, v} <= nodes and {u, v} & reached:
                reached |= {u, v}
    return reached == nodes


@settings(max_examples=500)
@given(forests_with_labels())
def test_equals_the_definitions(example):
    tree, labels = example
    clusters = clusters_of(labels)
    pairs = list(combinations(clusters, 2))
    expected = [
        edge
        for edge, (u, v) in enumerate(zip(tree.sources.tolist(), tree.targets.tolist()))
        if not any({u, v} <= c for c in clusters)
    ]
    assert cuts(tree, labels).tolist() == expected
    meant = has_partitioning_topology(tree, labels)
    printed = has_partitioning_topology(tree, labels, form="printed")
    assert meant is all(is_one_piece(tree, c) for c in clusters)
    assert printed is all(edges_between(tree, a, b) == 1 for a, b in pairs)
    if tree.n_edges == tree.n_nodes - 1:
        assert meant is (len(expected) == len(clusters) - 1)
        if len(clusters) <= 2:
            assert meant is printed
    if len(clusters) >= 3:
        assert not (meant and printed)


def test_printed_form_fails_where_the_cuts_recover_three_clusters():
    path = Tree(Topology(range(8), range(1, 9)))
    labels = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert cuts(path, labels).tolist() == [2, 5]
    assert has_partitioning_topology(path, labels)
    assert not has_partitioning_topology(path, labels, form="printed")


def test_printed_form_holds_where_the_cuts_do_not_recover_the_clusters():
    """Each pair of clusters is joined by exactly one edge, and cluster 0 is in two pieces."""
    path = Tree(Topology([0, 1, 2], [1, 2, 3]))
    assert has_partitioning_topology(path, [0, 1, 2, 0], form="printed")
    assert not has_partitioning_topology(path, [0, 1, 2, 0])


def test_a_tree_without_weights_and_with_its_own_edge_ids():
    tree = Tree(Topology([0, 1, 2], [1, 2, 3]), edge_ids=[4, 7, 9])
    assert cuts(tree, [5, 5, 5, 100]).tolist() == [9]
    assert is_cut(tree, [-1, -1, 0, 0]).tolist() == [True, True, False]


class TestLabels:
    def test_unclustered_nodes_come_last_a_cluster_a_node(self):
        partition = as_partition(np.array([-1, 9, 9, -1, 4], dtype=np.int8), 5)
        assert partition.cluster.tolist() == [2, 1, 1, 3, 0]
        assert partition.labels.tolist() == [4, 9, -1, -1]
        assert partition.sizes.tolist() == [1, 2, 1, 1]
        assert (partition.n_clusters, partition.n_labelled) == (4, 2)

    def test_of_no_nodes(self):
        assert as_partition([], 0).n_clusters == 0

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ([0, 0], "2 labels were given for 3 nodes"),
            ([0.0, 1.0, 1.0], "labels must be whole numbers, not float64"),
            (["a", "b", "b"], "return_inverse=True"),
            ([0, -2, 1], "or -1 for an unclustered node, but -2 is among them"),
        ],
    )
    def test_says_what_is_wrong(self, labels, message):
        with pytest.raises(UsageError, match=message):
            as_partition(labels, 3)

    def test_form_is_one_of_two(self):
        with pytest.raises(UsageError, match="form must be 'meant' or 'printed', not 'exact'"):
            has_partitioning_topology(Tree(Topology([0], [1])), [0, 1], form="exact")
