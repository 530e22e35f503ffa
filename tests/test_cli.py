from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

from ptclust import Budget, Ledger, Release
from ptclust.datasets import bike_rides
from ptclust.errors import FileError

HEADER = "source,target,distance\n"
EDGES = HEADER + "a,b,0.1\nb,c,0.1\nc,d,0.9\nd,e,0.1\ne,f,0.1\n"
LABELS = "node,cluster\na,0\nb,0\nc,0\nd,1\ne,1\nf,1\n"
SECRET = "0.123456789"


class TestDbmstclu:
    def test_writes_node_and_label(self, run, tmp_path):
        Path("edges.csv").write_text(EDGES)
        code, out, err = run("dbmstclu", "edges.csv", "-o", "labels.csv")
        assert (code, out) == (0, "")
        assert Path("labels.csv").read_text() == LABELS
        assert "2 clusters in 6 nodes and 5 edges" in err
        assert "Not private" in err
        assert sorted(p.name for p in tmp_path.iterdir()) == ["edges.csv", "labels.csv"]

    def test_without_output_labels_go_to_stdout(self, run):
        Path("edges.csv").write_text(EDGES)
        assert run("dbmstclu", "edges.csv")[:2] == (0, LABELS)

    def test_json_has_the_labels_unless_a_file_has_them(self, run):
        Path("edges.csv").write_text(EDGES)
        document = json.loads(run("dbmstclu", "edges.csv", "--json")[1])
        assert document["labels"] == [0, 0, 0, 1, 1, 1]
        assert document["nodes"] == list("abcdef")
        assert document["cuts"] == [{"edge": 2, "dbcvi": pytest.approx(8 / 9)}]
        assert document["n_clusters"] == 2
        assert document["private"] is False
        document = json.loads(run("dbmstclu", "edges.csv", "--json", "-o", "labels.csv")[1])
        assert "labels" not in document
        assert Path("labels.csv").read_text() == LABELS

    @pytest.mark.parametrize("suffix", [".png", ".svg"])
    def test_plot(self, run, suffix):
        Path("edges.csv").write_text(EDGES)
        assert run("dbmstclu", "edges.csv", "--plot", f"tree{suffix}")[0] == 0
        magic = {".png": b"\x89PNG", ".svg": b"<?xml"}[suffix]
        assert Path(f"tree{suffix}").read_bytes().startswith(magic)

    def test_columns_merge_and_similarities(self, run):
        Path("edges.tsv").write_text("from\tto\tsimilarity\n1\t2\t9\n2\t1\t8\n2\t3\t1\n3\t4\t9\n")
        options = ["--source", "from", "--target", "to", "--weight", "similarity"]
        options += ["--merge", "max", "--max-clusters", "2"]
        code, out, _ = run("dbmstclu", "edges.tsv", *options)
        assert (code, out) == (0, "node,cluster\n1,0\n2,0\n3,1\n4,1\n")

    def test_counts_are_similarities(self, run, trips):
        code, out, err = run("dbmstclu", "trips.csv", "--merge", "sum", "--kind", "similarity")
        assert (code, out) == (0, TOWNS)
        assert "2 clusters in 12 nodes and 66 edges" in err

    def test_a_disconnected_graph_is_clustered_component_by_component(self, run):
        Path("edges.csv").write_text(EDGES + "x,y,0.2\ny,z,0.2\n")
        assert run("dbmstclu", "edges.csv")[1].splitlines()[7:] == ["x,2", "y,3", "z,4"]

    def test_small_clusters_become_noise(self, run):
        Path("edges.csv").write_text(HEADER + "a,b,0.9\nb,c,0.1\nc,d,0.1\nd,e,0.1\n")
        out = run("dbmstclu", "edges.csv", "--min-cluster-size", "2")[1]
        assert out == "node,cluster\na,-1\nb,0\nc,0\nd,0\ne,0\n"


def parquet(**columns):
    return lambda path: pl.DataFrame(columns).write_parquet(path)


def truncated_parquet(path):
    parquet(source=list(range(99)), target=list(range(1, 100)), distance=[0.5] * 99)(path)
    path.write_bytes(path.read_bytes()[:-60])


def text(content):
    return lambda path: path.write_text(content)


def table(rows):
    return text(HEADER + rows)


BAD_FILES = {
    # what: (file name, how it is made, words of the message)
    "NaN weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,nan\n"), ["line 3", "finite"]),
    "infinite weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,-inf\n"), ["line 3", "finite"]),
    "empty weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,\n"), ["line 3", "weight"]),
    "NaN in Parquet": (
        "e.parquet",
        parquet(source=[1, 2], target=[2, 3], distance=[0.5, float("nan")]),
        ["row", "finite"],
    ),
    "non-numeric weight": (
        "e.csv",
        table(f"a,b,{SECRET}\nb,c,{SECRET}x\n"),
        ["line 3", "number"],
    ),
    "self-loop": ("e.csv", table(f"a,b,{SECRET}\nb,b,0.5\n"), ["line 3", "'b'", "itself"]),
    "duplicate edge": (
        "e.csv",
        table(f"a,b,{SECRET}\nb,c,0.5\nb,a,0.5\n"),
        ["lines 2 and 4", "'a'", "'b'", "merge"],
    ),
    "missing column": (
        "e.csv",
        text(f"source,target,w\na,b,{SECRET}\n"),
        ["'cost'", "'source', 'target', 'w'"],
    ),
    "no header": (
        "e.csv",
        text(f"a,b,{SECRET}\nb,c,0.5\n"),
        ["which column is the source and which the target", "--no-header", "'a', 'b', '<number>'"],
    ),
    "similarities far apart": (
        "e.csv",
        text("source,target,similarity\na,b,1e308\nb,c,-1e308\n"),
        ["too far apart"],
    ),
    "visits": (
        "e.csv",
        text("person,place,day\nada,park,3\n"),
        [
            "--source, --target, --weight",
            "`ptclust build visits e.csv --person person --item place",
        ],
    ),
    "two columns": ("e.csv", text("a,b\nb,c\n"), ["column"]),
    "empty file": ("e.csv", text(""), ["empty"]),
    "header only": ("e.csv", table(""), ["no edges"]),
    "truncated Parquet": ("e.parquet", truncated_parquet, ["e.parquet", "Parquet"]),
    "text called Parquet": ("e.parquet", text("a,b,0.5\n"), ["e.parquet", "Parquet"]),
    "binary called CSV": ("e.csv", lambda p: p.write_bytes(bytes(range(256)) * 9), ["e.csv"]),
    "broken gzip": (
        "e.csv.gz",
        lambda p: p.write_bytes(gzip.compress(b"a,b,1\n")[:-9]),
        ["e.csv.gz"],
    ),
    "a directory": ("e.csv", lambda p: p.mkdir(), ["directory"]),
    "no such file": ("e.csv", lambda p: None, ["e.csv", "no"]),
    "unknown format": ("e.xlsx", text("x"), ["parquet", "csv"]),
    "zero weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,0\n"), ["edge 1", "'b' - 'c'", "constant"]),
    "negative weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,-2\n"), ["edge 1", "constant"]),
    "GraphML that is not XML": ("e.graphml", text("<graphml><node"), ["e.graphml"]),
    "GraphML with entities": (
        "e.graphml",
        text('<!DOCTYPE g [<!ENTITY a "aaaa">]><graphml>&a;</graphml>'),
        ["e.graphml"],
    ),
    "MatrixMarket without numbers": ("e.mtx", text("%%MatrixMarket nonsense\n"), ["e.mtx"]),
    "npz that is none": ("e.npz", text("PK nothing"), ["e.npz"]),
}
EXTRA = {
    "missing column": ["--weight", "cost"],
    "MatrixMarket without numbers": ["--kind", "distance"],
    "npz that is none": ["--kind", "distance"],
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_bad_input(run, tmp_path, what):
    name, make, words = BAD_FILES[what]
    make(Path(name))
    code, out, err = run("dbmstclu", name, "-o", "labels.csv", *EXTRA.get(what, []))
    assert code == 3, err
    assert out == ""
    assert err.startswith("ptclust: ")
    assert err.count("\n") == 1, "one line, no traceback"
    for word in words:
        assert word in err
    assert SECRET not in err
    assert not Path("labels.csv").exists()


def test_a_file_without_read_permission(run, monkeypatch):
    Path("edges.csv").write_text(EDGES)
    Path("edges.csv").chmod(0)
    if os.geteuid() == 0:  # root reads everything, so the refusal has to be played

        def refuse(*_args, **_kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        monkeypatch.setattr(os, "access", lambda *_args, **_kwargs: False)
    code, _, err = run("dbmstclu", "edges.csv")
    assert code == 3
    assert "permission" in err


GOOD_FILES = {
    "one node": (
        "e.graphml",
        text("<graphml><graph edgedefault='undirected'><node id='a'/></graph></graphml>"),
        "node,cluster\na,0\n",
    ),
    "isolated nodes": (
        "e.mtx",
        text("%%MatrixMarket matrix coordinate real symmetric\n5 5 1\n2 1 0.5\n"),
        "node,cluster\n0,0\n1,1\n2,2\n3,3\n4,4\n",
    ),
    "only isolated nodes": (
        "e.npz",
        lambda p: np.savez(p, sources=[], targets=[], weights=[], n_nodes=2),
        "node,cluster\n0,0\n1,1\n",
    ),
}


@pytest.mark.parametrize("what", GOOD_FILES)
def test_small_graphs(run, what):
    name, make, labels = GOOD_FILES[what]
    make(Path(name))
    assert run("dbmstclu", name, "--kind", "distance")[:2] == (0, labels)


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["dbmstclu"],
            ["dbmstclu", "e.csv", "--max-clusters", "0"],
            ["dbmstclu", "e.csv", "--merge", "mean"],
            ["dbmstclu", "e.csv", "--kind", "counts"],
            ["cluster-me"],
        ],
    )
    def test_wrong_usage_is_2(self, run, arguments):
        assert run(*arguments)[0] == 2

    def test_a_picture_of_unknown_format_is_refused_before_any_work(self, run):
        code, _, err = run("dbmstclu", "missing.csv", "--plot", "tree.docx")
        assert code == 2
        assert ".png" in err

    @pytest.mark.parametrize("output", ["missing/labels.csv", "."])
    def test_an_output_that_cannot_be_written_is_said_before_any_work(self, run, output):
        code, _, err = run("dbmstclu", "missing.csv", "-o", output)
        assert code == 3
        assert "directory" in err

    def test_version_and_help(self, run):
        assert run("--version")[:2] == (0, "ptclust 0.1.0\n")
        code, out, _ = run("--help")
        assert code == 0
        assert "dbmstclu" in out

    def test_as_a_module(self):
        done = subprocess.run(
            [sys.executable, "-m", "ptclust", "--version"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "ptclust 0.1.0\n"


class TestInterruption:
    def test_ctrl_c_while_writing_keeps_the_old_file_and_leaves_no_other(
        self, run, monkeypatch, tmp_path
    ):
        Path("edges.csv").write_text(EDGES)
        Path("labels.csv").write_text("precious")

        def half_written(path, text):
            assert text.startswith(b"node,cluster")
            path.write_text("node,cl")
            raise KeyboardInterrupt

        monkeypatch.setattr(Path, "write_bytes", half_written)
        options = ["-o", "labels.csv", "--overwrite", "labels.csv"]
        code, _, err = run("dbmstclu", "edges.csv", *options)
        assert code == 130
        assert "interrupted" in err
        assert Path("labels.csv").read_text() == "precious"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["edges.csv", "labels.csv"]

    def test_a_full_disk_is_said_and_leaves_nothing(self, run, monkeypatch, tmp_path):
        Path("edges.csv").write_text(EDGES)

        def no_space(_path, _text):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", no_space)
        code, _, err = run("dbmstclu", "edges.csv", "-o", "labels.csv")
        assert code == 3
        assert "No space left" in err
        assert [p.name for p in tmp_path.iterdir()] == ["edges.csv"]


def test_demo_goes_from_rides_to_a_map(run):
    code, out, _ = run("demo", "-o", "made/here")
    assert code == 0
    assert "326,339 BIKE RIDES of a year between 70 stations" in out
    assert "> laplace" in out
    assert "70 nodes, found by communities" in out
    (file,) = Path("made/here").glob("release-*.json")
    release = Release.load(file)
    assert release.statement.private
    bikes = bike_rides()
    agreement = adjusted_rand_score(bikes.truth, release.labels)
    assert f"an adjusted Rand index of {agreement:.2f}" in out
    picture = Path("made/here", f"map-{release.statement.id[:8]}.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    page = Path("made/here", f"report-{release.statement.id[:8]}.html")
    assert out.rstrip().endswith(str(page))
    assert "San Jose Diridon Caltrain Station" in page.read_text()
    assert pl.read_parquet("made/here/rides.parquet").equals(bikes.rides)
    assert pl.read_csv("made/here/stations.csv").equals(bikes.stations)


#: Many trips are within towns 0 to 5, and within towns 6 to 11; few are across.
TOWNS = "node,cluster\n" + "".join(f"{town},{town // 6}\n" for town in range(12))


@pytest.fixture
def trips(run):
    """Counts of trips in both directions, one row a direction, in the current directory."""
    rows = [
        f"{a},{b},{900 + a + b if a // 6 == b // 6 else 1 + a}\n"
        for a in range(12)
        for b in range(12)
        if a != b
    ]
    Path("trips.csv").write_text("source,target,weight\n" + "".join(rows))


@pytest.fixture
def edges():
    """A graph of two clusters whose weights lie far apart, in the current directory."""
    random = np.random.default_rng(0)
    a, b = np.triu_indices(40, 1)
    within = a // 20 == b // 20
    weights = np.where(within, random.uniform(0.1, 0.3, len(a)), random.uniform(0.9, 1, len(a)))
    pl.DataFrame({"source": a, "target": b, "distance": weights}).write_parquet("edges.parquet")
    pl.DataFrame({"source": a, "target": b}).write_csv("topology.csv")
    return weights


BUDGET = ["--epsilon", "1", "--delta", "1e-6", "--linf", "1e-5"]
UNIT = ["--privacy-unit", "one patient"]


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


SPARSE = ["--privacy-unit", "one patient", "--topology", "public"]
PAID = [*BUDGET, "--ledger", "l", "--dataset", "survey", "-o", "release.json"]


@pytest.fixture
def unspent(run, tmp_path):
    """A ledger in the current directory; call to see that nothing was charged nor written."""
    ledger = Ledger.create("l")
    ledger.add_dataset("survey", Budget.approximate(9, 1e-5))
    before = ledger.path.read_bytes()

    def check() -> None:
        assert ledger.path.read_bytes() == before
        assert not (tmp_path / "release.json").exists()

    return check


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
            patch.setattr("ptclust.cli._terminal.say", closed)
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


@pytest.fixture
def piped(run, monkeypatch):
    """Run the command line with standard input."""

    def call(content: bytes, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run(*arguments)

    return call


class TestTables:
    def test_standard_input(self, piped):
        assert piped(EDGES.encode(), "dbmstclu", "-")[:2] == (0, LABELS)
        tsv = EDGES.replace(",", "\t").encode()
        assert piped(tsv, "dbmstclu", "-", "--format", "tsv")[:2] == (0, LABELS)
        assert piped(gzip.compress(tsv), "dbmstclu", "-", "--format", "tsv")[:2] == (0, LABELS)
        parquet = io.BytesIO()
        pl.read_csv(EDGES.encode()).write_parquet(parquet)
        content = parquet.getvalue()
        assert piped(content, "dbmstclu", "-", "--format", "parquet")[:2] == (0, LABELS)
        code, out, err = piped(b"", "dbmstclu", "-")
        assert (code, out) == (3, "")
        assert "standard input is empty" in err
        code, _, err = piped(EDGES.encode(), "dbmstclu", "-", "--format", "xlsx")
        assert code == 2
        assert "format must be one of csv, tsv" in err

    def test_standard_input_is_published(self, piped):
        options = [*BUDGET, *SPARSE, "-o", "release.json"]
        code, out, err = piped(EDGES.encode(), "cluster", "-", *options)
        assert (code, out) == (0, "")
        assert err.startswith("standard input was read as a graph of the columns 'source'")
        assert Release.load("release.json").n_nodes == 6
        assert piped(EDGES.encode(), "plan", "-", *BUDGET)[0] == 0

    @pytest.mark.parametrize(
        ("name", "separator", "options"),
        [
            ("e.csv", ";", []),
            ("e.csv", "\t", []),
            ("e.txt", "\t", []),
            ("e.txt", ";", []),
            ("e.txt", "   ", []),
            ("e.txt", "|", ["--separator", "|"]),
            ("e.data", ";", ["--format", "csv"]),
            ("e.txt", " ", ["--separator", "space"]),
        ],
    )
    def test_separators(self, run, name, separator, options):
        Path(name).write_text(EDGES.replace(",", separator))
        assert run("dbmstclu", name, *options)[:2] == (0, LABELS)
        made = [*BUDGET, *SPARSE, *options]
        assert run("cluster", name, *made, "-o", "release.json")[0] == 0
        assert Release.load("release.json").names.tolist() == list("abcdef")

    @pytest.mark.parametrize(
        ("name", "separator", "options"),
        [("e.csv", ",", []), ("e.txt", " ", ["--separator", "space"])],
    )
    def test_no_header(self, run, name, separator, options):
        Path(name).write_text(EDGES.removeprefix(HEADER).replace(",", separator))
        given = ["--no-header", "--kind", "distance", *options]
        assert run("dbmstclu", name, *given)[:2] == (0, LABELS)
        assert run("dbmstclu", name, *given[:1], *options)[0] == 2, "a number is no name of a kind"
        made = [*BUDGET, *SPARSE, *given, "-o", "release.json"]
        code, _, err = run("cluster", name, *made)
        assert code == 0, err
        assert "of the columns '1', '2' and '3'" in err

    def test_a_table_of_visits_is_no_graph(self, run, unspent):
        Path("visits.csv").write_text("person,place,day\nada,park,3\nada,zoo,4\nbob,zoo,4\n")
        for command in (["cluster", *PAID, *UNIT], ["dbmstclu"], ["plan", *BUDGET]):
            code, out, err = run(command[0], "visits.csv", *command[1:])
            assert (code, out, err.count("\n")) == (3, "", 1)
            assert "visits.csv is a table of records, not of edges" in err
        unspent()

    def test_options_of_tables_are_refused_for_others(self, run, edges):
        for option in (["--no-header"], ["--separator", ";"]):
            code, _, err = run("dbmstclu", "edges.parquet", *option)
            assert code == 2
            assert f"{option[0]} is for text tables" in err


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


#: Runs a command and says what was compiled for it; a cached kernel is loaded instead.
COMPILED = """
import sys
from numba import njit
from numba.core.event import install_recorder
from ptclust.cli import main

with install_recorder("numba:compile") as compiled:
    njit(lambda x: x)(1)
    assert len(compiled.buffer) == 2, "the recorder sees the begin and the end of a compilation"
    compiled.buffer.clear()
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, stop.code
print({str(event.data["dispatcher"]) for _, event in compiled.buffer}, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "command",
    [
        ["dbmstclu", "edges.csv", "--plot", "tree.png", "--overwrite", "tree.png"],
        ["demo", "-o", "demo"],
    ],
)
def test_a_second_run_compiles_nothing(tmp_path, command):
    """Every kernel a command uses comes from the cache, once it is there."""
    (tmp_path / "edges.csv").write_text(EDGES)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", COMPILED, *command],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        compiled = done.stderr.splitlines()[-1]
        if compiled == "set()":
            break
    assert compiled == "set()"


class TestHelp:
    def test_of_cluster_fits_a_screen(self, run, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        code, out, _ = run("cluster", "--help")
        lines = out.splitlines()
        assert code == 0
        assert len(lines) <= 80
        assert max(map(len, lines)) <= 80
        for option in ("--epsilon", "--output", "--report", "--l1", "--separator", "--help-all"):
            assert f"{option} " in out
        assert "--sampler" not in out

    @pytest.mark.parametrize(
        "command", [["cluster"], ["plan"], ["show"], ["build", "flows"], ["recluster"]]
    )
    def test_the_rest_is_in_another(self, run, command):
        short, full = (run(*command, option)[1] for option in ("--help", "--help-all"))
        words = {word.strip(",") for word in full.split() if word.startswith("--")}
        assert set(short.split()) < set(full.split())
        assert {"--help", "--help-all"} < words
        hidden = {"cluster": "--sampler", "plan": "--split", "build": "--engine"}
        assert hidden.get(command[0], "--escape-formulas") in words - set(short.split())


def test_a_prediction_is_announced_without_a_terminal(run):
    Path("edges.csv").write_text(
        HEADER + "".join(f"{a},{b},0.5\n" for a in range(12) for b in range(a))
    )
    budget = ("--epsilon", "1", "--l1", "1", "--kind", "distance")
    code, _, err = run("plan", "edges.csv", *budget, "--predict", "--repetitions", "1")
    assert code == 0
    assert err.count("Predicting: planted graphs are published many times") == 1
    assert "Predicting" not in run("plan", "edges.csv", *budget)[2]
