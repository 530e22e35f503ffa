"""Clusterers of a release, chosen or asked for: post-processing of published values alone."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ptclust
from ptclust._statistics import agreement
from ptclust.clustering import ClusteringRequest, choose_clusterer
from ptclust.clustering.levels import cut_levels
from ptclust.datasets import planted_graph
from ptclust.errors import InputError, UsageError
from ptclust.mechanisms import MECHANISMS
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.release import Release
from ptclust.trees import Tree

SENSITIVITY = ptclust.Sensitivity(linf=2e-5)
CLUSTERERS = {
    "gaussian": ("dbmstclu", "levels", "communities"),
    "laplace": ("dbmstclu", "levels", "communities"),
    "cube": ("dbmstclu", "levels", "communities"),
    "kruskal": ("dbmstclu", "levels"),
    "pamst": ("dbmstclu", "levels"),
}


@cache
def planted():
    return planted_graph("moons", 120, seed=7)


def plan_of(mechanism, clusterer="auto", graph=None):
    graph = planted().graph if graph is None else graph
    return ptclust.plan(
        graph.topology,
        epsilon=1.0,
        delta=1e-6,
        sensitivity=SENSITIVITY,
        mechanism=mechanism,
        clusterer=clusterer,
    )


@cache
def release_of(mechanism, clusterer="auto", graph=None):
    """The release of the planted graph, or of another; frozen, so that tests may share it."""
    plan = plan_of(mechanism, clusterer, graph)
    graph = planted().graph if graph is None else graph
    return publish(graph, ReleaseRequest.of(plan.request, random_state=3), plan=plan)


@pytest.mark.parametrize("mechanism", CLUSTERERS)
def test_every_clusterer_finds_clear_clusters(mechanism):
    release = release_of(mechanism)
    for clusterer in CLUSTERERS[mechanism]:
        again = release.recluster(clusterer)
        assert again.clusterer == clusterer
        assert agreement(planted().truth, again.labels) == 1.0
        assert again.statement.id == release.statement.id
        assert again.tree is release.tree
        assert (again.clustering.cuts is None) == (clusterer == "communities")


@pytest.mark.parametrize(
    ("mechanism", "clusterer"),
    [
        ("gaussian", "communities"),
        ("laplace", "communities"),
        ("kruskal", "levels"),
        ("pamst", "dbmstclu"),
    ],
)
def test_auto(mechanism, clusterer):
    assert release_of(mechanism).clusterer == clusterer
    assert release_of(mechanism).recluster().clusterer == clusterer


def test_auto_does_not_average_where_there_is_nothing_to_average():
    path = ptclust.Graph(range(7), range(1, 8), [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
    release = release_of("gaussian", graph=path)
    assert release.clusterer == "levels"
    assert release.labels.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_the_default_of_the_estimator_averages():
    model = ptclust.PTClust(epsilon=1.0, delta=1e-6, sensitivity=SENSITIVITY, random_state=1)
    model.fit(planted().graph)
    assert model.plan_.chosen.mechanism == "gaussian"
    assert model.release_.clusterer == "communities"
    assert agreement(planted().truth, model.labels_) == 1.0


def test_the_papers_pipeline_keeps_its_clusterer():
    model = ptclust.PTClust(
        epsilon=50.0, sensitivity=SENSITIVITY, mechanism="pamst", random_state=1
    )
    assert model.fit(planted().graph).release_.clusterer == "dbmstclu"


@pytest.mark.parametrize("mechanism", ["gaussian", "kruskal"])
def test_clustering_anew_is_clustering_at_once(mechanism):
    first = release_of(mechanism)
    for clusterer in CLUSTERERS[mechanism]:
        at_once = release_of(mechanism, clusterer)
        anew = first.recluster(clusterer)
        np.testing.assert_array_equal(at_once.labels, anew.labels)
        assert at_once.dbcvi == anew.dbcvi
        assert at_once.statement.post_processing == anew.statement.post_processing


def test_what_each_clusterer_is_given():
    """The noise is the plan's, and the weights are those released."""
    release = release_of("gaussian")
    assert release.weight_noise == plan_of("gaussian").chosen.weights
    topology = release.topology
    assert topology == planted().graph.topology
    np.testing.assert_array_equal(
        release.recluster("levels").labels, cut_levels(release.tree, release.weight_noise).labels
    )


def test_nothing_private_is_read(monkeypatch):
    """Once published, private weights may as well be gone."""
    releases = {mechanism: release_of(mechanism) for mechanism in CLUSTERERS}

    def refuse(*_):
        raise AssertionError("private weights were read")

    monkeypatch.setattr(ptclust.Graph, "weights", property(refuse), raising=False)
    with pytest.raises(AssertionError, match="private"):
        _ = planted().graph.weights
    for mechanism, release in releases.items():
        for clusterer in CLUSTERERS[mechanism]:
            release.recluster(clusterer)


def test_a_tree_is_not_enough_for_averages():
    with pytest.raises(UsageError, match="mechanism='gaussian'"):
        release_of("kruskal").recluster("communities")


def test_an_unknown_clusterer():
    with pytest.raises(UsageError, match="clusterer must be one of"):
        release_of("kruskal").recluster("hdbscan")
    with pytest.raises(UsageError, match="clusterer must be one of"):
        ptclust.PTClust(epsilon=1, sensitivity=SENSITIVITY, clusterer="hdbscan").fit(
            planted().graph
        )


def test_constants_are_for_dbmstclu():
    release = release_of("gaussian")
    with pytest.raises(UsageError, match="shift= and scale= are for clusterer='dbmstclu'"):
        release.recluster("communities", shift=0.5)
    assert release.recluster("dbmstclu", shift=0.5).clustering.shift == 0.5


def test_small_clusters_are_unclustered_by_every_clusterer():
    weights = [0.1] * 20 + [0.9] + [0.1] * 3
    path = ptclust.Graph(range(24), range(1, 25), weights)
    release = release_of("gaussian", graph=path)
    for clusterer in ("dbmstclu", "levels"):
        found = release.recluster(clusterer, min_cluster_size=5)
        assert found.labels.tolist() == [0] * 21 + [-1] * 4
        assert found.n_unclustered == 4


def test_save_load_pickle_and_words(tmp_path):
    release = release_of("gaussian")
    release.save(tmp_path / "release.json")
    loaded = Release.load(tmp_path / "release.json")
    assert loaded.clusterer == "communities"
    assert pickle.loads(pickle.dumps(release)).clusterer == "communities"
    np.testing.assert_array_equal(
        loaded.recluster("levels").labels, release.recluster("levels").labels
    )
    words = " ".join(release.statement.post_processing)
    assert "without a part of the released weights" in words
    assert "shifted" not in words


def test_clusters_have_the_name_of_their_clusterer():
    release = release_of("kruskal", "dbmstclu")
    for name in ("", None):
        with pytest.raises(InputError, match=r"clusterer must (not be empty|be text)"):
            replace(release, clustering=replace(release.clustering, clusterer=name))


def test_published_values_without_clusters_are_clustered_later():
    release = release_of("gaussian")
    bare = replace(release, clustering=None)
    again = bare.recluster()
    assert again.clusterer == release.clusterer
    np.testing.assert_array_equal(again.labels, release.labels)


@pytest.mark.parametrize("mechanism", CLUSTERERS)
def test_the_choice_is_known_before_anything_is_spent(mechanism):
    plan = plan_of(mechanism)
    planned = plan.choose_clusterer().name
    assert planned == release_of(mechanism).clusterer == plan.to_dict()["clusterer"]
    chosen = choose_clusterer("auto", MECHANISMS[mechanism], plan.n_edges, plan.n_nodes - 1)
    assert chosen.name == planned
    for name in CLUSTERERS[mechanism]:
        assert plan.choose_clusterer(ClusteringRequest(clusterer=name)).name == name


def test_a_clusterer_of_all_weights_is_refused_for_a_tree_when_planning():
    with pytest.raises(UsageError, match="mechanism='gaussian'"):
        plan_of("kruskal", "communities")
    plan = ptclust.plan(
        planted().graph.topology, epsilon=1, sensitivity=SENSITIVITY, clusterer="communities"
    )
    assert [each.mechanism for each in plan.calibrations] == ["laplace", "cube"]


def test_release_is_pure_post_processing_of_the_tree_weights():
    """Labels are a function of the published weights: other true weights give the same clusters."""
    release = release_of("kruskal")
    copy = Tree(release.tree.topology, release.tree.weights.copy(), release.tree.edge_ids)
    np.testing.assert_array_equal(cut_levels(copy, release.weight_noise).labels, release.labels)


class TestCommand:
    def test_recluster(self, run):
        release_of("gaussian").save("release.json")
        code, _, err = run(
            "recluster", "release.json", "-o", "other.json", "--clusterer", "dbmstclu", "--labels",
            "l.csv",
        )  # fmt: skip
        assert code == 0
        assert "by dbmstclu" in err
        assert "Nothing was spent" in err
        assert Release.load("other.json").clusterer == "dbmstclu"
        assert Path("l.csv").read_text().startswith("node,cluster,probability\n")

    def test_a_release_is_not_overwritten(self, run):
        release_of("kruskal").save("release.json")
        code, _, err = run("recluster", "release.json", "-o", "release.json")
        assert code == 2
        assert "are one file" in err
        run("recluster", "release.json", "-o", "other.json")
        code, _, err = run("recluster", "release.json", "-o", "other.json")
        assert code == 3
        assert "other.json exists already; give another name" in err

    def test_what_is_not_enough_for_averages(self, run):
        release_of("kruskal").save("release.json")
        code, _, err = run(
            "recluster", "release.json", "-o", "x.json", "--clusterer", "communities"
        )
        assert code == 2
        assert "gaussian" in err
