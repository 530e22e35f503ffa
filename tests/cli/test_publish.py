"""``ptclust plan`` and ``cluster``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from ptclust import Release
from ptclust.errors import FileError
from tests.cli.tables import BUDGET, EDGES, HEADER, PAID, SPARSE, TOWNS, UNIT


class TestPlan:
    def test_needs_no_weights(self, run, edges):
        code, out, _ = run("plan", "topology.csv", *BUDGET)
        assert code == 0
        assert "40 nodes, 780 edges" in out
        assert out == run("plan", "edges.parquet", *BUDGET)[1]

    def test_json(self, run, edges):
        document = json.loads(run("plan", "topology.csv", *BUDGET, "--json")[1])
        assert {each["mechanism"] for each in document["mechanisms"]} == {
            "kruskal",
            "pamst",
            "gaussian",
            "laplace",
            "cube",
        }
        assert document["chosen"] == "gaussian"

    def test_says_what_the_published_scales_truly_spend(self, run, edges):
        options = ["--epsilon", "1", "--linf", "0.1", "--calibration", "published"]
        out = run("plan", "topology.csv", *options)[1]
        assert "truly spends epsilon = 19.75" in out  # 1/4 + 39/2

    def test_warns_of_noise_beyond_the_range_of_the_weights(self, run, edges):
        options = ["--epsilon", "0.01", "--linf", "0.1", "--clip", "0", "1"]
        assert "larger than the whole range" in run("plan", "topology.csv", *options)[1]


class TestCluster:
    def test_publishes_a_release_and_says_what_it_promises(self, run, edges):
        options = ["-o", "release.json", "--labels", "labels.csv", "--plot", "tree.png"]
        code, out, err = run("cluster", "edges.parquet", *BUDGET, *UNIT, *options)
        assert (code, out) == (0, "")
        assert "epsilon = 1, delta = 1e-06" in err
        assert "Running again spends the budget again" in err
        release = Release.load("release.json")
        assert release.n_clusters == 2
        assert release.statement.privacy_unit == "one patient"
        assert release.statement.private
        assert pl.read_csv("labels.csv")["cluster"].to_list() == release.labels.tolist()
        assert Path("tree.png").read_bytes().startswith(b"\x89PNG")

    def test_never_overwrites_a_release(self, run, edges):
        assert run("cluster", "edges.parquet", *BUDGET, *UNIT, "-o", "release.json")[0] == 0
        before = Path("release.json").read_bytes()
        code, _, err = run("cluster", "edges.parquet", *BUDGET, *UNIT, "-o", "release.json")
        assert code == 3
        assert "spends the budget again" in err
        assert Path("release.json").read_bytes() == before

    def test_dry_run_is_the_plan(self, run, edges, tmp_path):
        dry = run("cluster", "edges.parquet", *BUDGET, *UNIT, "--dry-run")
        assert dry[:2] == run("plan", "topology.csv", *BUDGET)[:2]
        assert {p.name for p in tmp_path.iterdir()} == {"edges.parquet", "topology.csv"}

    def test_json_is_the_statement(self, run, edges):
        out = run("cluster", "edges.parquet", *BUDGET, *UNIT, "-o", "r.json", "--json")[1]
        assert json.loads(out) == Release.load("r.json").statement.to_dict()

    def test_a_seed_makes_it_not_private(self, run, edges):
        options = ["-o", "release.json", "--random-state", "1"]
        code, _, err = run("cluster", "edges.parquet", *BUDGET, *options)
        assert code == 0
        assert "not private" in err.lower()
        assert not Release.load("release.json").statement.private

    BAD: ClassVar = {
        "epsilon 0": (["--epsilon", "0", "--linf", "1"], 2, "epsilon"),
        "epsilon negative": (["--epsilon", "-1", "--linf", "1"], 2, "epsilon"),
        "epsilon NaN": (["--epsilon", "nan", "--linf", "1"], 2, "epsilon"),
        "epsilon infinite": (["--epsilon", "inf", "--linf", "1"], 2, "epsilon"),
        "epsilon subnormal": (["--epsilon", "1e-320", "--linf", "1"], 2, "epsilon"),
        "delta 1": (["--epsilon", "1", "--delta", "1", "--linf", "1"], 2, "delta"),
        "delta negative": (["--epsilon", "1", "--delta", "-1e-9", "--linf", "1"], 2, "delta"),
        "no sensitivity": (["--epsilon", "1"], 2, "linf"),
        "sensitivity 0": (["--epsilon", "1", "--linf", "0"], 2, "linf"),
        "split 1": (
            ["--epsilon", "1", "--linf", "1", "--split", "1", "--mechanism", "pamst"],
            2,
            "1",
        ),
        "gaussian, pure": (
            ["--epsilon", "1", "--linf", "1", "--mechanism", "gaussian"],
            2,
            "delta",
        ),
        "published kruskal": (
            [
                "--epsilon",
                "1",
                "--linf",
                "1",
                "--mechanism",
                "kruskal",
                "--calibration",
                "published",
            ],
            2,
            "pamst",
        ),
        "range reversed": (["--epsilon", "1", "--linf", "1", "--clip", "1", "0"], 2, "smaller"),
    }

    @pytest.mark.parametrize("what", BAD)
    def test_bad_parameters_spend_and_write_nothing(self, run, edges, what, monkeypatch):
        def no_noise(*_args, **_kwargs):
            raise AssertionError("noise was drawn")

        monkeypatch.setattr("ptclust.privacy.randomness.RandomStream.of", no_noise)
        options, expected, word = self.BAD[what]
        code, out, err = run("cluster", "edges.parquet", *options, *UNIT, "-o", "release.json")
        assert (code, out) == (expected, ""), err
        assert word in err
        assert not any(str(weight) in err for weight in edges.tolist())
        assert not Path("release.json").exists()

    def test_without_output_nothing_is_read(self, run):
        code, _, err = run("cluster", "missing.csv", *BUDGET)
        assert code == 2
        assert "--output" in err


class TestQuestions:
    """What is not known is asked, not guessed, before anything is spent."""

    @pytest.mark.parametrize("name", ["counts.csv", "counts.parquet", "counts.mtx"])
    def test_the_kind(self, run, unspent, name):
        if name.endswith("mtx"):
            head = "%%MatrixMarket matrix coordinate integer symmetric\n"
            Path(name).write_text(f"{head}3 3 3\n2 1 7\n3 1 8\n3 2 900719\n")
        else:
            counts = {"source": [0, 0, 1], "target": [1, 2, 2], "weight": [7, 8, 900719]}
            frame = pl.DataFrame(counts)
            frame.write_csv(name) if name.endswith("csv") else frame.write_parquet(name)
        code, out, err = run("cluster", name, *PAID, *UNIT)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"what the weights of {name} mean is not known" in err
        assert "--kind distance if small weights mean close" in err
        assert "--kind similarity if large weights mean close, as counts do" in err
        assert "900719" not in err
        unspent()
        assert run("dbmstclu", name)[::2] == (2, err)
        for kind in ("distance", "similarity"):
            release = f"{kind}.json"
            options = [*BUDGET, *UNIT, "--kind", kind, "-o", release]
            assert run("cluster", name, *options)[0] == 0
            assert Release.load(release).kind == kind

    def test_the_kind_is_not_asked_of_a_plan(self, run, trips):
        assert run("plan", "trips.csv", "--merge", "sum", *BUDGET)[0] == 0

    @pytest.mark.parametrize("dry", [[], ["--dry-run"]])
    @pytest.mark.parametrize("unit", [[], ["--privacy-unit", ""], ["--privacy-unit", " "]])
    def test_the_privacy_unit(self, run, edges, unspent, unit, dry):
        code, out, err = run("cluster", "edges.parquet", *PAID, *unit, *dry)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "name the privacy unit" in err
        assert "--privacy-unit 'one patient'" in err
        unspent()

    @pytest.mark.parametrize("dry", [[], ["--dry-run"]])
    def test_a_sparse_topology(self, run, unspent, dry):
        Path("edges.csv").write_text(EDGES)
        code, out, err = run("cluster", "edges.csv", *PAID, *UNIT, *dry)
        assert (code, out) == (2, "")
        asked = err.splitlines()[-1]
        assert asked.startswith("ptclust: the topology of edges.csv may come from the data")
        assert "5 of the 15 pairs of its 6 nodes are joined" in asked
        assert "say --topology public" in asked
        unspent()
        assert run("cluster", "edges.csv", *PAID, *SPARSE, *dry)[0] == 0
        assert Path("release.json").exists() == (not dry)

    def test_a_topology_is_public_or_not_said(self, run, edges, unspent):
        assert run("cluster", "edges.parquet", *PAID, *UNIT, "--topology", "private")[0] == 2
        unspent()


class TestAnnouncement:
    """What is taken from a file, and what becomes public, is said before anything is spent."""

    def test_columns_and_numbers(self, run):
        Path("edges.csv").write_text("day,From,to,Cost\n1,a,b,1\n1,b,c,2\n2,b,a,30717\n")
        options = [*BUDGET, *SPARSE, "-o", "release.json", "--merge", "min"]
        code, out, err = run("cluster", "edges.csv", *options)
        assert (code, out) == (0, "")
        said = err.splitlines()[0]
        assert said.startswith("edges.csv was read as a graph of the columns 'From', 'to' and 'Co")
        assert "of kind distance (small means close)" in said
        assert "merged by min" in said
        assert "3 node names and 2 edges" in said
        assert "30717" not in err

    def test_of_a_matrix(self, run, edges):
        head = "%%MatrixMarket matrix coordinate integer symmetric\n"
        Path("e.mtx").write_text(f"{head}3 3 3\n2 1 7\n3 1 8\n3 2 9\n")
        options = [*BUDGET, *UNIT, "-o", "release.json", "--kind", "similarity"]
        said = run("cluster", "e.mtx", *options)[2].splitlines()[0]
        assert said.startswith("e.mtx was read as a graph; weights are of kind similarity (large m")

    def test_comes_before_the_charge(self, run, edges, unspent, monkeypatch):
        def closed(text: str) -> None:
            assert "780 edges" in text
            raise FileError("nobody listens")

        with monkeypatch.context() as patch:
            patch.setattr("ptclust.cli.publish.say", closed)
            assert run("cluster", "edges.parquet", *PAID, *UNIT)[0] == FileError.exit_code
        unspent()
        code, _, err = run("cluster", "edges.parquet", *PAID, *UNIT)
        assert code == 0
        assert "780 edges" in err.splitlines()[0]
        assert "Dataset 'survey' has epsilon = 8" in err


class TestWeakPromises:
    CASES: ClassVar = {
        # options: the warning
        ("--epsilon", "10.5"): "epsilon = 10.5 guarantees almost nothing",
        ("--epsilon", "1", "--delta", "1.1e-4"): "delta = 0.00011 is large",
        ("--epsilon", "1", "--delta", "0.03"): "delta = 0.03 is large",
    }
    FINE: ClassVar = [("--epsilon", "10"), ("--epsilon", "1", "--delta", "1e-4")]

    @pytest.mark.parametrize("options", CASES)
    def test_are_warned_of(self, run, edges, options):
        words = self.CASES[options]
        code, out, err = run("plan", "topology.csv", *options, "--linf", "1e-5")
        assert code == 0
        assert f"Warning: {words}" in out
        document = json.loads(run("plan", "topology.csv", *options, "--linf", "1", "--json")[1])
        assert document["warnings"][0].startswith(words)
        more = ["--linf", "1e-5", *UNIT, "-o", "release.json"]
        code, out, err = run("cluster", "edges.parquet", *options, *more)
        assert (code, out) == (0, "")
        (warning,) = [line for line in err.splitlines() if line.startswith("ptclust: warning: ")]
        assert words in warning
        assert any(words in caveat for caveat in Release.load("release.json").statement.caveats)

    @pytest.mark.parametrize("options", FINE)
    def test_others_are_not(self, run, edges, options):
        assert "arning" not in run("plan", "topology.csv", *options, "--linf", "1e-5")[1]
        more = ["--linf", "1e-5", *UNIT, "-o", "release.json"]
        code, _, err = run("cluster", "edges.parquet", *options, *more)
        assert code == 0
        assert "warning" not in err

    def test_delta_above_one_over_the_number_of_nodes(self, run):
        rows = "".join(f"{i},{i + 1}\n" for i in range(20_000))
        Path("edges.csv").write_text("source,target\n" + rows)
        for delta, warned in (("6e-5", True), ("4e-5", False)):
            options = ["--epsilon", "1", "--delta", delta, "--linf", "1e-9"]
            assert ("is large" in run("plan", "edges.csv", *options)[1]) == warned


class TestSimilarities:
    FLOW = ("trips.csv", "--merge", "sum", "--kind", "similarity")
    ONE_TRIP = ("--epsilon", "1", "--l1", "1")
    OF_TRIPS = (*ONE_TRIP, "--privacy-unit", "one trip")

    @pytest.mark.parametrize("clusterer", ["auto", "dbmstclu", "levels", "communities"])
    def test_strong_ties_are_together_and_counts_stay_counts(self, run, trips, clusterer):
        options = [*self.OF_TRIPS, "--clusterer", clusterer, "--labels", "labels.csv"]
        code, _, err = run("cluster", *self.FLOW, *options, "-o", "release.json")
        assert code == 0, err
        said = err.splitlines()[0]
        assert "(large means close); rows that join the same two nodes are merged by sum" in said
        assert pl.read_csv("labels.csv").select("node", "cluster").write_csv() == TOWNS
        release = Release.load("release.json")
        assert release.kind == release.statement.kind == "similarity"
        assert release.statement.merge == "sum"
        tree = release.tree
        within = tree.sources // 6 == tree.targets // 6
        assert within.sum() == 10, "a heaviest tree"
        ends = tree.sources + tree.targets
        counts = np.where(within, 1800 + 2 * ends, 2 + ends)
        assert tree.weights == pytest.approx(counts, abs=50)
        assert run("recluster", "release.json", "-o", "again.json", "--clusterer", "levels")[0] == 0
        again = Release.load("again.json")
        assert (again.kind, again.n_clusters) == ("similarity", 2)

    def test_as_distances_they_would_not_be(self, run, trips):
        options = [*self.OF_TRIPS, "-o", "release.json", "--labels", "labels.csv"]
        assert run("cluster", *self.FLOW[:-1], "distance", *options)[0] == 0
        assert Path("labels.csv").read_text() != TOWNS

    def test_the_plan_is_that_of_distances(self, run, trips):
        similar = run("plan", *self.FLOW, *self.ONE_TRIP)
        assert similar[0] == 0
        assert "12 nodes, 66 edges" in similar[1]
        assert run("plan", *self.FLOW[:-1], "distance", *self.ONE_TRIP) == similar
        assert run("cluster", *self.FLOW, *self.OF_TRIPS, "--dry-run")[:2] == similar[:2]

    def test_check(self, run, trips):
        Path("truth.csv").write_text(TOWNS)
        options = ["--clusters", "truth.csv", *self.ONE_TRIP, "--json"]
        found = json.loads(run("check", *self.FLOW, *options)[1])
        assert found["definition"]["holds"]
        assert found["recovered"]
        found = json.loads(run("check", *self.FLOW[:-1], "distance", *options)[1])
        assert not found["definition"]["holds"]
        assert not found["recovered"]

    def test_both_directions_must_be_merged(self, run, trips):
        code, _, err = run("dbmstclu", "trips.csv", "--kind", "similarity")
        assert code == 3
        assert "--merge min, max or sum" in err


class TestClip:
    def test_moves_weights_and_never_fails(self, run, edges):
        options = [*BUDGET, *UNIT, "--clip", "0.2", "0.5", "-o", "release.json"]
        code, _, err = run("cluster", "edges.parquet", *options)
        assert code == 0, err
        release = Release.load("release.json")
        assert release.n_clusters == 2
        assert release.statement.clip == (0.2, 0.5)
        assert 0.18 < release.noisy_weights.min() < release.noisy_weights.max() < 0.52

    @pytest.mark.parametrize("option", ["--weight-range", "--similarity-cap"])
    def test_what_failed_is_gone(self, run, edges, option):
        options = [*BUDGET, *UNIT, option, "0", "1", "-o", "release.json"]
        code, _, err = run("cluster", "edges.parquet", *options)
        assert code == 2
        assert "No such option" in err


def test_a_prediction_is_announced_without_a_terminal(run):
    Path("edges.csv").write_text(
        HEADER + "".join(f"{a},{b},0.5\n" for a in range(12) for b in range(a))
    )
    budget = ("--epsilon", "1", "--l1", "1", "--kind", "distance")
    code, _, err = run("plan", "edges.csv", *budget, "--predict", "--repetitions", "1")
    assert code == 0
    assert err.count("Predicting: planted graphs are published many times") == 1
    assert "Predicting" not in run("plan", "edges.csv", *budget)[2]
