from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from ptclust import Release

HEADER = "source,target,distance\n"
EDGES = HEADER + "a,b,0.1\nb,c,0.1\nc,d,0.9\nd,e,0.1\ne,f,0.1\n"
LABELS = "node,label\na,0\nb,0\nc,0\nd,1\ne,1\nf,1\n"
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
        assert (code, out) == (0, "node,label\n1,0\n2,0\n3,1\n4,1\n")

    def test_a_disconnected_graph_is_clustered_component_by_component(self, run):
        Path("edges.csv").write_text(EDGES + "x,y,0.2\ny,z,0.2\n")
        assert run("dbmstclu", "edges.csv")[1].splitlines()[7:] == ["x,2", "y,3", "z,4"]

    def test_small_clusters_become_noise(self, run):
        Path("edges.csv").write_text(HEADER + "a,b,0.9\nb,c,0.1\nc,d,0.1\nd,e,0.1\n")
        out = run("dbmstclu", "edges.csv", "--min-cluster-size", "2")[1]
        assert out == "node,label\na,-1\nb,0\nc,0\nd,0\ne,0\n"


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
    "visits": (
        "e.csv",
        text("person,place,day\nada,park,3\n"),
        ["--source, --target, --weight", "its columns are: 'person', 'place', 'day'"],
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
        "node,label\na,0\n",
    ),
    "isolated nodes": (
        "e.mtx",
        text("%%MatrixMarket matrix coordinate real symmetric\n5 5 1\n2 1 0.5\n"),
        "node,label\n0,0\n1,1\n2,2\n3,3\n4,4\n",
    ),
    "only isolated nodes": (
        "e.npz",
        lambda p: np.savez(p, sources=[], targets=[], weights=[], n_nodes=2),
        "node,label\n0,0\n1,1\n",
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

        def half_written(_table, path):
            Path(path).write_text("node,la")
            raise KeyboardInterrupt

        monkeypatch.setattr(pl.DataFrame, "write_csv", half_written)
        options = ["-o", "labels.csv", "--overwrite", "labels.csv"]
        code, _, err = run("dbmstclu", "edges.csv", *options)
        assert code == 130
        assert "interrupted" in err
        assert Path("labels.csv").read_text() == "precious"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["edges.csv", "labels.csv"]

    def test_a_full_disk_is_said_and_leaves_nothing(self, run, monkeypatch, tmp_path):
        Path("edges.csv").write_text(EDGES)

        def no_space(_table, _path):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(pl.DataFrame, "write_csv", no_space)
        code, _, err = run("dbmstclu", "edges.csv", "-o", "labels.csv")
        assert code == 3
        assert "No space left" in err
        assert [p.name for p in tmp_path.iterdir()] == ["edges.csv"]


def test_demo_shows_plan_clusters_pictures_and_statement(run):
    code, out, _ = run("demo", "-o", "made/here")
    assert code == 0
    assert "DBMSTClu, not private    2 clusters, ARI 1.00" in out
    assert "PTClust, published" in out
    assert "> gaussian" in out
    assert "the same by DBMSTClu" in out
    assert "PRIVACY STATEMENT" in out
    (file,) = Path("made/here").glob("release-*.json")
    release = Release.load(file)
    assert release.statement.private
    for name in ("moons", "moons-private"):
        picture = Path("made/here", f"{name}-{release.statement.id[:8]}.png")
        assert picture.read_bytes().startswith(b"\x89PNG")


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
        assert pl.read_csv("labels.csv")["label"].to_list() == release.labels.tolist()
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
    "command", [["dbmstclu", "edges.csv", "--plot", "tree.png"], ["demo", "-o", "demo"]]
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
