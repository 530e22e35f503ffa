"""What supports the clusters of a release, told wherever somebody looks at them."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from ptclust import Graph, PTClust, Sensitivity
from ptclust.clustering import CLUSTERERS, Clusterer, Clustering, Cost, Evidence, Level
from ptclust.errors import FileError, InputError
from ptclust.release import Release
from ptclust.release.format import _digest

LABELS = np.array([0, 1, 1, 1, 2, 2, 2, 2])  # by first appearance: the smallest first
HALVES = np.repeat([0, 1], 4)


@dataclass(frozen=True)
class Witness(Clusterer):
    """Finds three clusters, each of them supported otherwise."""

    name = "witness"
    description = "clusters and their evidence were made up"
    needs = "tree"
    cost = Cost(0, 1, 1.0)

    def cluster(self, published):
        levels = (Level(HALVES, 3.0), Level(LABELS, 2.0))
        found = Evidence("both", ("none", "topology", "weights"))
        return Clustering(LABELS, levels=levels, evidence=found)


@pytest.fixture
def release():
    CLUSTERERS.register(Witness())
    graph = Graph(*np.triu_indices(8, 1), np.linspace(0.1, 0.9, 28), names=list("abcdefgh"))
    given = {"sensitivity": Sensitivity(linf=1e-6), "privacy_unit": "one person"}
    yield PTClust(epsilon=1, clusterer="witness", **given).fit(graph).release_
    CLUSTERERS.unregister("witness")


def with_evidence(release, partition, *clusters) -> Release:
    found = Evidence(partition, clusters)
    return replace(release, clustering=replace(release.clustering, evidence=found))


class TestNumbers:
    def test_are_those_of_the_clusters(self, release):
        assert release.labels.tolist() == [2, 1, 1, 1, 0, 0, 0, 0]
        assert release.evidence == Evidence("both", ("weights", "topology", "none"))
        assert pickle.loads(pickle.dumps(release)).evidence == release.evidence

    def test_dropped_clusters_have_none(self, release):
        assert release.recluster("witness", min_cluster_size=2).evidence.clusters == (
            "weights",
            "topology",
        )
        assert release.recluster("witness", min_cluster_size=9).evidence == Evidence("both")

    def test_of_another_level_the_clusters_are_unknown(self, release):
        assert release.recluster(level=0).evidence == Evidence("both")
        assert release.recluster(level=1).evidence == release.evidence
        assert release.recluster(level=0).recluster(level=1).evidence == Evidence("both")

    def test_others_do_not_tell(self, release):
        assert release.recluster("dbmstclu").evidence is None
        assert replace(release, clustering=None).evidence is None

    def test_without_any_no_cluster_has_some(self):
        found = Evidence("none").renumbered(LABELS, np.where(LABELS > 0, LABELS - 1, -1))
        assert found == Evidence("none", ("none", "none"))


class TestFiles:
    @pytest.mark.parametrize("suffix", ["json", "ptc"])
    def test_keep_it(self, release, tmp_path, suffix):
        for number, each in enumerate((release, release.recluster(level=0))):
            file = tmp_path / f"{number}.{suffix}"
            each.save(file)
            assert Release.load(file).evidence == each.evidence

    def forged(self, release, folder, change) -> Release:
        file = folder / "release.json"
        release.save(file)
        document = json.loads(file.read_text())
        change(document["clustering"])
        document["digest"] = _digest(document)
        file.write_text(json.dumps(document))
        return Release.load(file)

    def test_from_before_are_read(self, release, tmp_path):
        loaded = self.forged(release, tmp_path, lambda part: part.pop("evidence"))
        assert loaded.evidence is None
        assert loaded.labels.tolist() == release.labels.tolist()

    @pytest.mark.parametrize(
        ("evidence", "words"),
        [
            ("both", "clustering.evidence must be an object"),
            ({"partition": "both"}, "lacks the field 'clusters'"),
            ({"partition": "both", "clusters": [], "why": 1}, "unknown field 'why'"),
            ({"partition": "all", "clusters": []}, "one of weights, topology, both, none$"),
            ({"partition": "both", "clusters": ["all"] * 3}, "one of weights, topology"),
            ({"partition": None, "clusters": []}, "must hold a word, and a list of words"),
            ({"partition": "both", "clusters": "both"}, "must hold a word, and a list of words"),
            ({"partition": "both", "clusters": [[]] * 3}, "must hold a word, and a list"),
            ({"partition": "both", "clusters": ["both"] * 2}, "2 clusters was given for 3"),
        ],
    )
    def test_that_somebody_forged(self, release, tmp_path, evidence, words):
        with pytest.raises(FileError, match=words):
            self.forged(release, tmp_path, lambda part: part.update(evidence=evidence))

    def test_clusterings_are_checked_as_well(self, release):
        with pytest.raises(InputError, match="evidence must be one of"):
            with_evidence(release, "some")
        with pytest.raises(InputError, match="evidence of 1 clusters was given for 3"):
            with_evidence(release, "both", "both")
