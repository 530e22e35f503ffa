"""Small releases to save, read and forge."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np

import ptclust
from ptclust.clustering import Clustering, Cuts, dbmstclu
from ptclust.graph import Topology
from ptclust.privacy import Sensitivity
from ptclust.published import Published
from ptclust.release import Release, release_schema
from ptclust.trees import Tree
from tests.lazy import lazy

jsonschema = lazy("jsonschema")


def claim(topology, mechanism="kruskal", **options):
    """Return the noise and the statement of a release that keeps its promise."""
    asked = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": Sensitivity(linf=5e-4), **options}
    plan = ptclust.plan(topology, mechanism=mechanism, **asked)
    return plan.chosen.weights, plan.statement(reproducible=False)


NOISE, STATEMENT = claim(Topology([0, 1, 2, 3], [1, 2, 3, 4]))


def released(tree, min_cluster_size=1, whole=()):
    """The release of a tree with noisy weights, clustered after the usual shift and scale."""
    shift = 0.1 - float(tree.weights.min(initial=0.0))
    scale = float((tree.weights + shift).max(initial=0.1))
    clustered = Tree(tree.topology, (tree.weights + shift) / scale, tree.edge_ids)
    found = dbmstclu(clustered, min_cluster_size=min_cluster_size)
    mechanism = "gaussian" if whole else "kruskal"
    noise, statement = claim(whole[0] if whole else tree.topology, mechanism)
    return Release(
        published=Published(mechanism, noise, tree, *whole),
        statement=statement,
        clustering=replace(found, shift=shift, scale=scale),
    )


def path_release(names=None):
    topology = Topology([0, 1, 2, 3], [1, 2, 3, 4], names=names)
    tree = Tree(topology, [-0.1, 0.02, 0.9, 0.0], [1, 4, 5, 9])
    noise, statement = claim(topology)
    return Release(
        published=Published("kruskal", noise, tree),
        statement=statement,
        clustering=Clustering(
            labels=np.array([0, 0, 0, 1, 1]),
            dbcvi=0.8,
            shift=0.2,
            scale=1.1,
            cuts=Cuts(np.array([5])),
        ),
    )


def graph_release():
    topology = Topology([0, 0, 1, 2], [1, 2, 2, 3])
    weights = np.array([0.2, 0.9, -0.1, 0.5])
    ids = [0, 2, 3]
    tree = Tree(topology.restricted_to(np.array(ids)), weights[ids], ids)
    return released(tree, whole=(topology, weights))


def unclustered():
    return replace(path_release(), clustering=None)


def with_clustering(release, **changes):
    return replace(release, clustering=replace(release.clustering, **changes))


def assert_same(a, b):
    assert a.tree.topology == b.tree.topology
    assert a.statement == b.statement
    assert a.published.mechanism == b.published.mechanism
    assert a.weight_noise == b.weight_noise
    for of in (a, b):
        assert not of.tree.private
    for name in ("weights", "edge_ids"):
        np.testing.assert_array_equal(getattr(a.tree, name), getattr(b.tree, name))
    np.testing.assert_array_equal(a.labels, b.labels)
    for name in ("dbcvi", "n_clusters", "n_unclustered", "clusterer"):
        assert getattr(a, name) == getattr(b, name)
    assert (a.clustering is None) == (b.clustering is None)
    if a.clustering is not None:
        assert (a.clustering.cuts is None) == (b.clustering.cuts is None)
        if a.clustering.cuts is not None:
            np.testing.assert_array_equal(a.clustering.cuts.edge_ids, b.clustering.cuts.edge_ids)
        for name in ("shift", "scale", "min_cluster_size"):
            assert getattr(a.clustering, name) == getattr(b.clustering, name)
    assert a.published.whole_graph == b.published.whole_graph
    assert a.topology == b.topology
    np.testing.assert_array_equal(a.noisy_weights, b.noisy_weights)


@cache
def validator():
    return jsonschema.Draft202012Validator(release_schema())


def roundtrip(release, folder):
    path = folder / "release.json"
    release.save(path, overwrite=True)
    validator().validate(json.loads(path.read_text()))
    return Release.load(path)
