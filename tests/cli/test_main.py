"""The command line as a whole: usage, help, interruption, and what a first run compiles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

from ptclust import Release
from ptclust.datasets import bike_rides
from tests.cli.tables import EDGES


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
