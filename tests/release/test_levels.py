"""A hierarchy of clusters from one release: levels, and choosing one at no cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest
from typer.testing import CliRunner

from ptclust import Graph, Sensitivity
from ptclust.cli import app
from ptclust.clustering import CLUSTERERS, Clusterer, Clustering, Cost, Level
from ptclust.errors import FileError, InputError, UsageError
from ptclust.estimators import PTClust
from ptclust.release import Release, release_schema

COARSE = np.repeat([0, 1], 4)
FINE = np.repeat([0, 1, 2, 3], 2)
ALONE = np.arange(8)


@dataclass(frozen=True)
class ThreeLevels(Clusterer):
    """Says what it is told to say, at three levels."""

    name = "three-levels"
    description = "eight nodes were halved again and again"
    needs = "tree"
    cost = Cost(0, 1, 1.0)

    def cluster(self, published):
        levels = tuple(Level(labels, 2.5) for labels in (COARSE, FINE, ALONE))
        return Clustering(FINE, levels=levels, topology_labels=COARSE)


@pytest.fixture
def release():
    CLUSTERERS.register(ThreeLevels())
    weights = np.linspace(0.1, 0.9, 28)
    graph = Graph(*np.triu_indices(8, 1), weights)
    model = PTClust(
        epsilon=1,
        sensitivity=Sensitivity(linf=1e-6),
        clusterer="three-levels",
        privacy_unit="one person",
    )
    yield model.fit(graph).release_
    CLUSTERERS.unregister("three-levels")


def test_levels_are_kept_with_their_support(release):
    assert [level.n_clusters for level in release.levels] == [2, 4, 8]
    assert release.clustering.level == 1
    np.testing.assert_array_equal(release.labels, FINE)


def test_another_level_costs_nothing_and_is_stated(release):
    coarse = release.recluster(level=0)
    np.testing.assert_array_equal(coarse.labels, COARSE)
    assert coarse.published is release.published
    assert coarse.statement.id == release.statement.id
    assert coarse.clusterer == "three-levels"
    assert "level 0 of 3" in coarse.statement.post_processing[-1]
    again = coarse.recluster(n_clusters=8, min_cluster_size=2)
    assert again.n_unclustered == 8
    assert again.clustering.level == 2
    assert sum("level" in line for line in again.statement.post_processing) == 1
    assert "fewer than 2" in again.statement.post_processing[-1]


def test_a_level_is_taken_from_what_is_known(release, monkeypatch):
    monkeypatch.setattr(ThreeLevels, "cluster", lambda *_: pytest.fail("clustered again"))
    assert release.recluster(level=2).n_clusters == 8


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"level": 3}, "there is no level 3; the levels .* 0: 2, 1: 4, 2: 8"),
        ({"n_clusters": 3}, "no level has 3 clusters; the levels .* 0: 2, 1: 4, 2: 8"),
        ({"level": -1}, "level must be a whole number of at least 0"),
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1"),
        ({"level": True}, "level must be a whole number"),
        ({"level": 0, "n_clusters": 2}, "leave one out"),
        ({"clusterer": "dbmstclu", "level": 0}, "'dbmstclu' found one partition and no levels"),
    ],
)
def test_wrong_choices_say_what_there_is(release, choice, words):
    with pytest.raises(UsageError, match=words):
        release.recluster(**choice)


def test_files_keep_levels(release, tmp_path):
    path = tmp_path / "release.json"
    release.save(path)
    jsonschema.validate(json.loads(path.read_text()), release_schema())
    loaded = Release.load(path)
    for level, kept in zip(release.levels, loaded.levels, strict=True):
        np.testing.assert_array_equal(level.labels, kept.labels)
        assert level.support == kept.support
    np.testing.assert_array_equal(loaded.clustering.topology_labels, COARSE)
    assert (
        loaded.recluster(level=0).statement.post_processing
        == release.recluster(level=0).statement.post_processing
    )


def test_the_command_takes_a_level(release, tmp_path):
    path, labels = tmp_path / "release.json", tmp_path / "labels.csv"
    release.save(path)
    again = tmp_path / "again.json"
    call = ["recluster", str(path), "-o", str(again), "--labels", str(labels)]
    result = CliRunner().invoke(app, [*call, "--n-clusters", "2"])
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(Release.load(again).labels, COARSE)
    result = CliRunner().invoke(app, [*call, "--level", "7", "--overwrite", str(again)])
    assert result.exit_code != 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"levels": (Level(FINE, 1.0), Level(COARSE, 1.0))}, "part of one of the level before"),
        ({"levels": (Level(COARSE, 1.0),)}, "one of the levels"),
        ({"levels": (Level(FINE[:3], 1.0),)}, "3 labels"),
        ({"levels": (Level(FINE - 1, 1.0),)}, "every node"),
        ({"levels": (Level(FINE, float("nan")),)}, "support"),
        ({"topology_labels": FINE[::-1].copy()}, "first appearance"),
    ],
)
def test_parts_that_do_not_fit_are_refused(release, change, words):
    with pytest.raises(InputError, match=words):
        replace(release, clustering=replace(release.clustering, **change))


@pytest.mark.parametrize("levels", [None, 3, [3], [{"labels": 3}], [{"support": 1}], {}])
def test_files_with_broken_levels_are_refused(release, tmp_path, levels):
    from ptclust.release import format as file_format

    path = tmp_path / "release.json"
    release.save(path)
    document = json.loads(path.read_text())
    document["clustering"]["levels"] = levels
    document["digest"] = file_format._digest(document)
    path.write_text(json.dumps(document))
    with pytest.raises(FileError, match="level"):
        Release.load(path)
