from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.excess_of_mass import default_cluster_size, excess_of_mass
from ptclust._statistics import agreement
from ptclust.errors import UsageError
from ptclust.graph import Topology
from ptclust.privacy import Noise
from ptclust.trees import Tree
from tests.clustering.test_level_cuts import planted_tree, random_tree

TINY = Noise("gaussian", 1e-9, -40, 1)


def heaviest_on_paths(tree):
    """The distance at which single linkage joins two nodes, for all pairs."""
    n = tree.n_nodes
    distance, part = np.zeros((n, n)), np.arange(n)
    for edge in np.argsort(tree.weights, kind="stable"):
        a, b = part == part[tree.sources[edge]], part == part[tree.targets[edge]]
        distance[np.ix_(a, b)] = distance[np.ix_(b, a)] = tree.weights[edge]
        part[b] = part[tree.sources[edge]]
    return distance


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.integers(10, 80), st.integers(2, 6))
def test_equals_scikit_learn(seed, n, least):
    from sklearn.cluster import HDBSCAN

    random = np.random.default_rng(seed)
    tree = random_tree(random, random.permutation(np.linspace(0.1, 1.0, n - 1)) ** 2)
    model = HDBSCAN(min_cluster_size=least, min_samples=1, metric="precomputed", copy=True)
    expected = model.fit_predict(heaviest_on_paths(tree))
    found = excess_of_mass(tree, TINY, min_cluster_size=least)
    if expected.max() < 0:  # it never chooses the whole, we do if there is nothing else
        assert set(found.tolist()) <= {0}
    else:
        assert ((found < 0) == (expected < 0)).all()
        assert agreement(expected, found) == 1.0


def test_planted_clusters_are_found():
    tree, noise, _, truth = planted_tree(0, 0.01)
    assert agreement(truth, excess_of_mass(tree, noise)) > 0.9


def test_numbering_and_noise():
    weights = [0.9, 0.1, 0.12, 0.8, 0.11, 0.1]
    tree = Tree(Topology(range(6), range(1, 7)), weights)
    assert excess_of_mass(tree, TINY, min_cluster_size=2).tolist() == [-1, 0, 0, 0, 1, 1, 1]


def test_negative_weights_and_other_units():
    tree, noise, _, _ = planted_tree(1, 0.1)
    moved = Tree(tree.topology, tree.weights - 7.0)
    labels = excess_of_mass(moved, noise)
    low = tree.weights - tree.weights.min() + noise.scale
    assert labels.tolist() == excess_of_mass(Tree(tree.topology, low), noise).tolist()


@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_edges(n):
    tree = Tree(Topology([], [], n_nodes=n), [])
    assert excess_of_mass(tree, TINY).tolist() == [-1] * n


def test_equal_weights_are_one_cluster():
    tree = Tree(Topology(range(20), range(1, 21)), np.full(20, 0.5))
    assert set(excess_of_mass(tree, TINY, min_cluster_size=12).tolist()) == {0}


def test_trees_of_a_forest_are_clusters():
    ends = np.arange(9)
    forest = Tree(
        Topology(np.r_[ends, ends + 10], np.r_[ends + 1, ends + 11], n_nodes=21), np.full(18, 0.5)
    )
    labels = excess_of_mass(forest, TINY, min_cluster_size=6)
    assert labels.tolist() == [0] * 10 + [1] * 10 + [-1]


def test_default_size_grows_with_the_root():
    assert [default_cluster_size(n) for n in (0, 100, 10_000)] == [5, 5, 50]


def test_size_is_checked():
    tree, noise, *_ = planted_tree(0, 0.01)
    with pytest.raises(UsageError, match="min_cluster_size must be a whole number"):
        excess_of_mass(tree, noise, min_cluster_size=0)
