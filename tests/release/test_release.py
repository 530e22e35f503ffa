"""A release: what it shows, that it is immutable, and parts that do not fit together."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from ptclust import PTClust
from ptclust.clustering import Cuts
from ptclust.errors import InputError, WeightError
from ptclust.graph import Graph, Topology
from ptclust.privacy import Sensitivity
from ptclust.published import Published
from ptclust.trees import Tree
from tests.release.releases import (
    NOISE,
    STATEMENT,
    graph_release,
    path_release,
    with_clustering,
)


def test_properties():
    release = path_release(list("abcde"))
    assert repr(release) == "Release(n_nodes=5, n_clusters=2, epsilon=1, delta=1e-06)"
    assert release.labels.tolist() == [0, 0, 0, 1, 1]
    assert release.names.tolist() == list("abcde")
    assert release.topology is release.tree.topology
    assert release.noisy_weights is release.tree.weights
    clustered = (release.tree.weights + release.clustering.shift) / release.clustering.scale
    assert clustered.max() == 1
    assert clustered.min() > 0
    seeded = replace(STATEMENT, randomness="reproducible")
    assert "NOT PRIVATE" in repr(replace(release, statement=seeded))


def test_immutable():
    release = pickle.loads(pickle.dumps(graph_release()))
    with pytest.raises(FrozenInstanceError):
        release.clustering = None
    with pytest.raises(FrozenInstanceError):
        release.clustering.labels = []
    for array in (release.labels, release.clustering.cuts.edge_ids, release.noisy_weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


PATH = Topology([0, 1, 2, 3], [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [0, 0, 0, 1]}, "4 labels were given for 5 nodes"),
        ({"labels": [1, 1, 1, 0, 0]}, "first appearance"),
        ({"labels": [0, 0, 0, 2, 2]}, "first appearance"),
        ({"labels": [0, 0, 0, -2, -2]}, "first appearance"),
        ({"labels": [0.0, 0.0, 0.0, 1.0, 1.0]}, "labels must be"),
        ({"labels": [[0, 0, 0, 1, 1]]}, "labels must be"),
        ({"labels": [0, 0, 1, 1, 1]}, "pieces"),
        ({"labels": [0, 0, 0, 0, 0]}, "pieces"),
        ({"labels": [0, 0, 0, -1, -1]}, "pieces"),
        ({"min_cluster_size": 3}, "pieces"),
        ({"min_cluster_size": 0}, "min_cluster_size"),
        ({"min_cluster_size": True}, "min_cluster_size"),
        ({"cuts": Cuts(np.array([6]))}, "edge ids of the tree"),
        ({"cuts": Cuts(np.array([5, 5]))}, "edge ids of the tree"),
        ({"cuts": Cuts(np.array([], dtype=int))}, "pieces"),
        ({"dbcvi": 1.5}, "dbcvi"),
        ({"dbcvi": float("nan")}, "dbcvi"),
        ({"dbcvi": "high"}, "dbcvi"),
        ({"dbcvi": None}, "dbcvi"),
        ({"shift": float("inf")}, "shift"),
        ({"shift": 0.05}, r"\(0, 1\]"),
        ({"scale": 0.5}, r"\(0, 1\]"),
        ({"scale": 0}, "scale"),
        ({"scale": 10**400}, "scale"),
        ({"clusterer": ""}, "clusterer must not be empty"),
        ({"clusterer": None}, "clusterer must be text"),
    ],
)
def test_clusters_that_do_not_fit(changes, message):
    with pytest.raises(InputError, match=message):
        with_clustering(path_release(), **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"statement": None}, "statement must be a PrivacyStatement"),
        ({"published": None}, "published must be a Published"),
    ],
)
def test_parts_that_do_not_fit(changes, message):
    with pytest.raises(InputError, match=message):
        replace(path_release(), **changes)


IDS = [1, 4, 5, 9]
TREE = Tree(PATH, [-0.1, 0.02, 0.9, 0.0], IDS)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((NOISE, None), "tree must be a Tree"),
        ((None, TREE), "noise must be a Noise"),
        ((NOISE, Tree(PATH, [0.1] * 4, IDS, private=True)), "private weights"),
        ((NOISE, Tree(PATH, [0.1] * 4, [-1, 4, 5, 9])), "edge_ids"),
        ((NOISE, TREE, None, [0.1]), "together"),
        ((NOISE, TREE, PATH, [0.1]), "1 noisy_weights"),
        ((NOISE, TREE, PATH, [np.nan] * 4), "finite"),
        ((NOISE, TREE, PATH, [0.1] * 4), "edges and weights of the tree"),
        ((NOISE, TREE, Topology([0], [1]), [0.1]), "same nodes"),
    ],
)
def test_published_values_that_do_not_fit(parts, message):
    with pytest.raises(InputError, match=message):
        Published("kruskal", *parts)


def test_a_tree_without_weights_is_no_release():
    with pytest.raises(WeightError):
        Published("kruskal", NOISE, Tree(PATH, None, IDS))


def test_advice_on_weights_whose_squares_overflow():
    model = PTClust(epsilon=1, sensitivity=Sensitivity(l1=1e200), privacy_unit="one")
    release = model.fit(Graph(range(5), range(1, 6), np.ones(5))).release_
    labelled = replace(
        release, clustering=replace(release.clustering, labels=np.zeros(6, dtype=int), cuts=None)
    )
    assert "differ by more than can be compared" in labelled.advice[0]
    assert "inf" not in " ".join(labelled.advice)
