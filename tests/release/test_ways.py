"""Ways of clustering a release: post-processing of published values, of nothing else."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import ptclust
from ptclust.clustering.contraction import contract
from ptclust.clustering.level_cuts import cut_levels
from ptclust.datasets import planted_graph
from ptclust.errors import InputError, UsageError
from ptclust.pipeline import publish
from ptclust.release import Release
from ptclust.trees import Tree

PLANTED = planted_graph("moons", 120, seed=7)
SENSITIVITY = ptclust.Sensitivity(linf=2e-5)
WAYS = {
    "gaussian": ("dbmstclu", "levels", "contraction"),
    "laplace": ("dbmstclu", "levels", "contraction"),
    "kruskal": ("dbmstclu", "levels"),
    "pamst": ("dbmstclu", "levels"),
}


def release_of(method, clusterer="auto", graph=PLANTED.graph, **more):
    planned = ptclust.plan(
        graph.topology, epsilon=1.0, delta=1e-6, sensitivity=SENSITIVITY, tree=method
    )
    return publish(graph, planned, clusterer=clusterer, random_state=3, **more)


@pytest.mark.parametrize("method", WAYS)
def test_every_way_finds_clear_clusters(method):
    release = release_of(method)
    for way in WAYS[method]:
        again = release.recluster(way)
        assert again.clusterer == way
        assert adjusted_rand_score(PLANTED.truth, again.labels) == 1.0
        assert again.statement.id == release.statement.id
        assert again.tree is release.tree
        assert (again.cuts is None) == (way == "contraction")


@pytest.mark.parametrize(
    ("method", "way"),
    [("gaussian", "contraction"), ("laplace", "contraction"), ("kruskal", "levels"), ("pamst", "dbmstclu")],
)  # fmt: skip
def test_auto(method, way):
    assert release_of(method).clusterer == way
    assert release_of(method).recluster().clusterer == way


def test_auto_does_not_average_where_there_is_nothing_to_average():
    path = ptclust.Graph(range(7), range(1, 8), [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
    release = release_of("gaussian", graph=path)
    assert release.clusterer == "levels"
    assert release.labels.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_the_default_of_the_estimator_averages():
    model = ptclust.PTClust(epsilon=1.0, delta=1e-6, sensitivity=SENSITIVITY, random_state=1)
    model.fit(PLANTED.graph)
    assert model.plan_.chosen.method == "gaussian"
    assert model.release_.clusterer == "contraction"
    assert adjusted_rand_score(PLANTED.truth, model.labels_) == 1.0


def test_the_papers_pipeline_keeps_its_clusterer():
    model = ptclust.PTClust(epsilon=50.0, sensitivity=SENSITIVITY, tree="pamst", random_state=1)
    assert model.fit(PLANTED.graph).release_.clusterer == "dbmstclu"


@pytest.mark.parametrize("method", ["gaussian", "kruskal"])
def test_clustering_anew_is_clustering_at_once(method):
    first = release_of(method)
    for way in WAYS[method]:
        at_once = release_of(method, way)
        anew = first.recluster(way)
        np.testing.assert_array_equal(at_once.labels, anew.labels)
        assert at_once.dbcvi == anew.dbcvi
        assert at_once.statement.post_processing == anew.statement.post_processing


def test_what_each_way_is_told():
    """The noise is the statement's, and the weights are those released."""
    release = release_of("gaussian")
    planned = ptclust.plan(
        PLANTED.graph.topology, epsilon=1.0, delta=1e-6, sensitivity=SENSITIVITY, tree="gaussian"
    )
    assert release.noise == planned.chosen.weights
    topology = release.graph_topology
    np.testing.assert_array_equal(
        release.labels,
        contract(topology.sources, topology.targets, release.graph_weights, 120, release.noise),
    )
    np.testing.assert_array_equal(
        release.recluster("levels").labels, cut_levels(release.tree, release.noise).labels
    )


def test_nothing_private_is_read(monkeypatch):
    """Once published, private weights may as well be gone."""
    releases = {method: release_of(method) for method in WAYS}

    def refuse(*_):
        raise AssertionError("private weights were read")

    monkeypatch.setattr(ptclust.Graph, "weights", property(refuse), raising=False)
    with pytest.raises(AssertionError, match="private"):
        _ = PLANTED.graph.weights
    for method, release in releases.items():
        for way in WAYS[method]:
            release.recluster(way)


def test_only_a_release_of_all_weights_can_be_contracted():
    with pytest.raises(UsageError, match="mechanism='gaussian'"):
        release_of("kruskal").recluster("contraction")


def test_an_unknown_way():
    with pytest.raises(UsageError, match="clusterer must be one of"):
        release_of("kruskal").recluster("hdbscan")
    with pytest.raises(UsageError, match="clusterer must be one of"):
        ptclust.PTClust(epsilon=1, sensitivity=SENSITIVITY, clusterer="hdbscan").fit(PLANTED.graph)


def test_constants_are_for_dbmstclu():
    release = release_of("gaussian")
    with pytest.raises(UsageError, match="shift and scale are for clusterer='dbmstclu'"):
        release.recluster("contraction", shift=0.5)
    assert release.recluster("dbmstclu", shift=0.5).shift == 0.5


def test_small_clusters_become_noise_in_every_way():
    weights = [0.1] * 20 + [0.9] + [0.1] * 3
    path = ptclust.Graph(range(24), range(1, 25), weights)
    release = release_of("gaussian", graph=path)
    for way in ("dbmstclu", "levels"):
        labels = release.recluster(way, min_cluster_size=5).labels
        assert labels.tolist() == [0] * 21 + [-1] * 4


def test_save_load_pickle_and_words(tmp_path):
    release = release_of("gaussian")
    release.save(tmp_path / "release.json")
    loaded = Release.load(tmp_path / "release.json")
    assert loaded.clusterer == "contraction"
    assert pickle.loads(pickle.dumps(release)).clusterer == "contraction"
    np.testing.assert_array_equal(
        loaded.recluster("levels").labels, release.recluster("levels").labels
    )
    words = " ".join(release.statement.post_processing)
    assert "summed evidence" in words
    assert "shifted" not in words


def test_files_of_before_there_was_a_choice_load(tmp_path):
    from ptclust.release.format import _digest

    release = release_of("kruskal", "dbmstclu")
    release.save(tmp_path / "release.json")
    document = json.loads((tmp_path / "release.json").read_text())
    del document["clustering"]["clusterer"], document["digest"]
    document["digest"] = _digest(document)
    (tmp_path / "old.json").write_text(json.dumps(document))
    assert Release.load(tmp_path / "old.json").clusterer == "dbmstclu"


def test_a_clusterer_that_does_not_exist_is_no_part_of_a_release():
    release = release_of("kruskal", "dbmstclu")
    parts = {
        name: getattr(release, name)
        for name in ("tree", "labels", "dbcvi", "statement", "shift", "scale")
    }
    with pytest.raises(InputError, match="clusterer must be one of"):
        Release(**parts, clusterer="magic")


def test_release_is_pure_post_processing_of_the_tree_weights():
    """Other true weights with the same published ones would give the same clusters: labels are a function of these."""
    release = release_of("kruskal")
    copy = Tree(release.tree.topology, release.tree.weights.copy(), release.tree.edge_ids)
    np.testing.assert_array_equal(cut_levels(copy, release.noise).labels, release.labels)


class TestCommand:
    def test_recluster(self, run):
        release_of("gaussian").save("release.json")
        code, _, err = run(
            "recluster", "release.json", "-o", "other.json", "--clusterer", "dbmstclu", "--labels", "l.csv"
        )  # fmt: skip
        assert code == 0
        assert "by dbmstclu" in err
        assert "Nothing was spent" in err
        assert Release.load("other.json").clusterer == "dbmstclu"
        assert Path("l.csv").read_text().startswith("node,label\n")

    def test_a_release_is_not_overwritten(self, run):
        release_of("kruskal").save("release.json")
        code, _, err = run("recluster", "release.json", "-o", "release.json")
        assert code == 3
        assert "exists" in err

    def test_what_cannot_be_contracted(self, run):
        release_of("kruskal").save("release.json")
        code, _, err = run(
            "recluster", "release.json", "-o", "x.json", "--clusterer", "contraction"
        )
        assert code == 2
        assert "gaussian" in err
