"""What supports the clusters of a release, told wherever somebody looks at them."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest

from ptclust import Graph, PTClust, Sensitivity
from ptclust.clustering import CLUSTERERS, Clusterer, Clustering, Cost, Evidence, Level
from ptclust.errors import FileError, InputError, UsageError
from ptclust.graph.labels import read_labels
from ptclust.release import Release
from ptclust.release.format import _digest
from ptclust.report import report_page

LABELS = np.array([0, 1, 1, 1, 2, 2, 2, 2])  # by first appearance: the smallest first
HALVES = np.repeat([0, 1], 4)


@dataclass(frozen=True)
class Witness(Clusterer):
    """Finds three clusters, each of them supported otherwise."""

    name = "witness"
    description = "clusters were made up"
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

    @pytest.mark.parametrize(
        ("evidence", "words"),
        [
            ("both", "clustering.evidence must be an object"),
            ({"partition": "both"}, "lacks the field 'clusters'"),
            ({"partition": "both", "clusters": [], "why": 1}, "unknown field 'why'"),
            ({"partition": "all", "clusters": []}, "one of weights, topology, both, none$"),
            ({"partition": "both", "clusters": ["all"] * 3}, "one of weights, topology"),
            ({"partition": None, "clusters": []}, "evidence.partition must be text"),
            (
                {"partition": "both", "clusters": "both"},
                "evidence.clusters must be a list of texts",
            ),
            ({"partition": "both", "clusters": [[]] * 3}, r"evidence.clusters\[0\] must be text"),
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


WORDS = {
    "weights": "Supported by weights: clusters that are found without a part of the released "
    "weights predict that part.",
    "topology": "From the public topology alone: the released weights support no clusters, and "
    "these do not depend on any record.",
    "both": "Supported by weights and by the public topology: clusters that are found without a "
    "part of the edges predict that part.",
    "none": "Nothing supports clusters: neither the released weights nor the public topology show "
    "more than chance would.",
}
MARKS = {"topology": "(from the public topology alone)", "none": "(nothing supports clusters)"}


def joined(text: str) -> str:
    return " ".join(text.split())


class TestWords:
    @pytest.mark.parametrize("partition", list(WORDS))
    def test_are_those_of_the_partition(self, release, partition):
        made = with_evidence(release, partition, "weights", "topology", "none")
        shown, page = joined(str(made)), report_page(made)
        for text in (
            shown,
            made._repr_html_(),
            page,
            made.summary.to_dict()["separation"]["verdict"],
        ):
            assert WORDS[partition] in text
            assert "noise:" not in text
        mark = MARKS.get(partition, "")
        found = f"3 clusters of 8 nodes {mark}".strip()
        assert f"{found}, found by witness" in shown
        assert f"{found}, found by witness" in page
        assert made.plot().get_title().startswith(f"{found}, found by witness; epsilon = 1")
        assert repr(made).endswith(f"delta=0, evidence='{partition}')" if mark else "delta=0)")
        caption = page[page.index("<figcaption>") : page.index("</figcaption>")]
        assert (WORDS[partition] in caption) == bool(mark)
        for text in (shown, page):
            assert ("The clusters were chosen by these noisy weights" in text) == (not mark)

    def test_are_as_before_if_nothing_is_known(self, release):
        made = replace(release, clustering=replace(release.clustering, evidence=None))
        for text in (str(made), made._repr_html_(), report_page(made)):
            assert "noise:" in text
            assert "vidence" not in text.partition('<section id="download"')[0]
        assert made.to_pandas().columns.tolist() == ["node", "cluster"]

    def test_of_the_topology_alone_no_agreement_is_told(self, release):
        found = replace(release.clustering, topology_labels=release.labels)
        made = replace(release, clustering=found)
        assert "agree with these to 1.00" in joined(str(made))
        assert "agree with these" not in joined(str(with_evidence(made, "topology")))


class TestTables:
    def test_show(self, release):
        lines = [line.split() for line in str(release).splitlines()]
        place = lines.index(["cluster", "nodes", "within", "across", "evidence"])
        words = [line[4] for line in lines[place + 1 : place + 4]]
        assert words == ["weights", "topology", "none"]
        assert ">evidence</th>" in release._repr_html_()
        assert "evidence" not in str(release.recluster(level=0))

    def test_for_programs(self, release):
        shown = release.summary.to_dict()
        assert shown["evidence"] == "both"
        assert [each["evidence"] for each in shown["clusters"]] == ["weights", "topology", "none"]
        coarse = release.recluster(level=0).summary.to_dict()
        assert coarse["evidence"] == "both"
        assert [each["evidence"] for each in coarse["clusters"]] == [None, None]

    def test_of_labels(self, release, run, tmp_path):
        made = release.recluster("witness", min_cluster_size=2)
        words = ["", *["topology"] * 3, *["weights"] * 4]
        assert made.further_columns["evidence"].tolist() == words
        assert made.to_pandas()["evidence"].tolist() == words
        assert made.labels_frame("town").columns.tolist() == ["town", "cluster", "evidence"]
        assert made.to_dataframe()["evidence"].to_list() == words
        for name in ("cluster", "evidence"):
            with pytest.raises(UsageError, match=f"another one is called {name}"):
                made.labels_frame(name)
        made.save(tmp_path / "release.json")
        made.to_csv(tmp_path / "labels.csv")
        made.to_parquet(tmp_path / "labels.parquet")
        text = (tmp_path / "labels.csv").read_text()
        assert text.startswith('node,cluster,evidence\na,-1,""\nb,1,topology\n')
        assert run("show", tmp_path / "release.json", "--labels")[1] == text
        links = re.findall(r'id="labels" href="[^,]*,([^"]*)"', report_page(made))
        assert [unquote(each) for each in links] == [text]
        assert pl.read_parquet(tmp_path / "labels.parquet")["evidence"].to_list() == words
        assert read_labels(tmp_path / "labels.csv", made.topology).tolist() == made.labels.tolist()

    def test_of_another_level_have_no_such_column(self, release, tmp_path):
        coarse = release.recluster(level=0)
        assert "evidence" not in coarse.further_columns
        coarse.to_csv(tmp_path / "labels.csv")
        assert (tmp_path / "labels.csv").read_text().startswith("node,cluster\na,0\n")

    def test_on_the_page(self, release):
        made = release.recluster("witness", min_cluster_size=2)
        page = report_page(made)
        assert '<th scope="col">Evidence</th>' in page
        assert re.findall(r'<td class="evidence">(\w+)</td>', page) == ["weights", "topology"]
        rows = re.findall(r"<tr data-cluster.*?</tr>", page, re.DOTALL)
        assert [row.count("<td") for row in rows] == [5, 5, 5]


def sparse_communities() -> Graph:
    """Four communities that the topology alone shows; all weights are equal."""
    random = np.random.default_rng(0)
    a, b = np.triu_indices(80, 1)
    joined = random.random(len(a)) < np.where(a // 20 == b // 20, 0.5, 0.01)
    return Graph(a[joined], b[joined], np.full(joined.sum(), 5.0), kind="similarity", n_nodes=80)


def complete() -> Graph:
    a, b = np.triu_indices(30, 1)
    return Graph(a, b, np.full(len(a), 5.0), kind="similarity")


@pytest.mark.parametrize(
    ("graph", "evidence", "statement"),
    [
        (
            sparse_communities(),
            Evidence("topology", ("topology",) * 4),
            "the clusters are those of the public topology alone, and no record has a part in them",
        ),
        (complete(), Evidence("none", ("none",)), "one cluster is the answer"),
    ],
)
class TestWeightsThatAreNoiseAlone:
    """From a graph to what is shown of it."""

    def test_in_python(self, graph, evidence, statement):
        given = {"sensitivity": Sensitivity(l1=1), "privacy_unit": "one person"}
        made = PTClust(epsilon=1, delta=1e-6, random_state=1, **given).fit(graph).release_
        assert made.evidence == evidence
        assert set(made.to_pandas()["evidence"]) == {evidence.partition}
        assert WORDS[evidence.partition] in joined(str(made))
        assert statement in joined(made.statement.to_text())
        assert statement in report_page(made)

    def test_on_the_command_line(self, graph, evidence, statement, run):
        frame = pl.DataFrame(
            {"source": graph.sources, "target": graph.targets, "count": np.full(graph.n_edges, 5)}
        )
        frame.write_csv("edges.csv")
        budget = ["--epsilon", "1", "--delta", "1e-6", "--l1", "1", "--privacy-unit", "one person"]
        seed = ["--random-state", "1", "--topology", "public", "--kind", "similarity"]
        outputs = ["-o", "r.json", "--labels", "l.csv", "--report", "r.html"]
        code, _, err = run("cluster", "edges.csv", *budget, *seed, *outputs)
        assert code == 0, err
        assert MARKS[evidence.partition] in err
        assert set(pl.read_csv("l.csv")["evidence"]) == {evidence.partition}
        assert WORDS[evidence.partition] in Path("r.html").read_text()
        out = run("show", "r.json")[1]
        assert MARKS[evidence.partition] in out
        assert WORDS[evidence.partition] in joined(out)
        assert statement in joined(out)
        shown = json.loads(run("show", "r.json", "--json")[1])
        assert shown["evidence"] == evidence.partition
        assert {each["evidence"] for each in shown["clusters"]} == {evidence.partition}
