"""Ledgers from the command line, and in several processes."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from ptclust import Budget, Ledger, Release
from ptclust.errors import FileError
from tests.cli.tables import EDGES, HEADER, SPARSE
from tests.ledger.releases import break_draws


@pytest.fixture
def survey(run):
    """A graph and a ledger with a budget of 1 in the current directory."""
    Path("edges.csv").write_text(EDGES)
    assert run("ledger", "init", "l", "--dataset", "survey", "--epsilon", "1")[0] == 0
    paid = ["--ledger", "l", "--dataset", "survey"]
    return ["cluster", "edges.csv", "--linf", "1e-5", *SPARSE, *paid]


class TestCommandLine:
    def test_ten_tenths_fit_and_the_eleventh_is_refused(self, run, survey):
        for i in range(10):
            code, _, err = run(*survey, "--epsilon", "0.1", "-o", f"{i}.json")
            assert code == 0, err
        assert "has epsilon = 0 left of epsilon = 1" in err
        code, out, err = run(*survey, "--epsilon", "0.1", "-o", "10.json")
        assert (code, out) == (4, "")
        announced, refused = err.splitlines()
        assert announced.startswith("edges.csv was read as a graph")
        assert "used up" in refused
        assert not Path("10.json").exists()
        ids = [charge.statement_id for charge in Ledger.open("l").history()]
        assert ids == [Release.load(f"{i}.json").statement.id for i in range(10)]

    def test_status_and_history(self, run, survey):
        run("ledger", "init", "l", "--dataset", "census", "--rho", "1/3")
        run("ledger", "init", "l", "--dataset", "both", "--epsilon", "2", "--delta", "1e-5")
        run(*survey, "--epsilon", "1/3", "-o", "r.json")
        code, out, _ = run("ledger", "status", "l")
        assert code == 0
        assert out == (
            "survey\n  total  epsilon = 1\n"
            "  spent  epsilon = 0.333334; exactly epsilon = 1/3  in 1 charge\n"
            "  left   epsilon = 0.666666; exactly epsilon = 2/3\n"
            "census\n  total  rho = 0.333333 (zCDP); exactly rho = 1/3\n"
            "  spent  rho = 0 (zCDP)  in 0 charges\n"
            "  left   rho = 0.333333 (zCDP); exactly rho = 1/3\n"
            "both\n  total  epsilon = 2, delta = 1e-05\n"
            "  spent  epsilon = 0, delta = 0  in 0 charges\n"
            "  left   epsilon = 2, delta = 1e-05\n"
        )
        accounts = json.loads(run("ledger", "status", "l", "--json")[1])
        assert [a["dataset"] for a in accounts] == ["survey", "census", "both"]
        assert accounts[0]["left"] == {
            "kind": "pure",
            "epsilon": "2/3",
            "epsilon_float": float(Fraction(2, 3)),
        }
        statement = Release.load("r.json").statement
        out = run("ledger", "history", "l")[1]
        assert f"released  {statement.id}  survey: epsilon = 0.333334" in out
        assert run("ledger", "history", "l", "--dataset", "census")[1] == ""
        (charge,) = json.loads(run("ledger", "history", "l", "--json")[1])
        assert charge["statement_id"] == statement.id
        assert charge["amount"]["epsilon"] == "1/3"
        assert charge["released"] is True
        assert run("ledger", "verify", "l")[:2] == (0, "l: 5 entries, all in order\n")

    BAD: ClassVar = {
        "no total": ([], 2),
        "two totals": (["--epsilon", "1", "--rho", "1"], 2),
        "rho and delta": (["--rho", "1", "--delta", "1e-6"], 2),
        "zero": (["--epsilon", "0"], 2),
        "negative": (["--epsilon", "-1"], 2),
        "NaN": (["--epsilon", "nan"], 2),
        "infinite": (["--rho", "inf"], 2),
        "subnormal": (["--epsilon", "1e-320"], 2),
        "delta of 1": (["--epsilon", "1", "--delta", "1"], 2),
        "words": (["--epsilon", "much"], 2),
        "by zero": (["--epsilon", "1/0"], 2),
    }

    @pytest.mark.parametrize("what", BAD)
    def test_bad_totals_make_no_file(self, run, what, tmp_path):
        options, expected = self.BAD[what]
        code, out, err = run("ledger", "init", "new", "--dataset", "survey", *options)
        assert (code, out) == (expected, ""), err
        assert list(tmp_path.iterdir()) == []

    def test_init_never_changes_a_dataset(self, run, survey):
        code, _, err = run("ledger", "init", "l", "--dataset", "survey", "--epsilon", "9")
        assert code == 2
        assert "never changed" in err

    @pytest.mark.parametrize("command", ["status", "history", "verify"])
    def test_a_damaged_ledger_is_3(self, run, survey, command):
        Path("l").write_bytes(Path("l").read_bytes().replace(b"survey", b"surveY"))
        code, out, err = run("ledger", command, "l")
        assert (code, out) == (3, "")
        assert "refused" in err or "damaged" in err
        assert run("ledger", command, "missing")[0] == 3

    def test_dry_run_says_what_would_be_left(self, run, survey):
        before = Path("l").read_bytes()
        code, out, _ = run(*survey, "--epsilon", "1/4", "--dry-run")
        assert code == 0
        assert "It would leave epsilon = 0.75 of epsilon = 1 to dataset 'survey'." in out
        out = run(*survey, "--epsilon", "1/4", "--dry-run", "--json")[1]
        assert json.loads(out)["account_after"]["left"]["epsilon"] == "3/4"
        code, out, err = run(*survey, "--epsilon", "2", "--dry-run")
        assert code == 4
        assert "epsilon = 1 left" in err
        assert "mechanism" in out
        assert Path("l").read_bytes() == before

    def test_a_seed_is_refused(self, run, survey):
        before = Path("l").read_bytes()
        code, _, err = run(*survey, "--epsilon", "1", "-o", "r.json", "--random-state", "1")
        assert code == 2
        assert "not private" in err
        assert Path("l").read_bytes() == before

    @pytest.mark.parametrize(
        ("output", "expected"),
        [("missing/r.json", 3), (".", 3), ("edges.csv", 2), ("l", 2), ("l-journal", 2)],
    )
    def test_an_output_that_cannot_be_written_is_said_before_the_charge(
        self, run, survey, output, expected, tmp_path
    ):
        before = Path("l").read_bytes()
        assert run(*survey, "--epsilon", "1", "-o", output)[0] == expected
        assert Path("l").read_bytes() == before
        assert {p.name for p in tmp_path.iterdir()} == {"edges.csv", "l"}

    def test_ctrl_c_while_noise_is_drawn(self, run, survey, monkeypatch, tmp_path):
        def interrupted(*_args, **_options):
            raise KeyboardInterrupt

        break_draws(monkeypatch, interrupted)
        code, _, err = run(*survey, "--epsilon", "1", "-o", "r.json")
        assert code == 130
        assert "interrupted" in err
        assert {p.name for p in tmp_path.iterdir()} == {"edges.csv", "l"}
        assert "LOST" in run("ledger", "history", "l")[1]

    def test_a_note_that_fails_is_a_warning(self, run, survey, monkeypatch):
        def fail(*_args):
            raise FileError("no room")

        monkeypatch.setattr(Ledger, "confirm", fail)
        code, _, err = run(*survey, "--epsilon", "1", "-o", "r.json")
        assert code == 0
        assert "charged and is handed over" in err
        assert Release.load("r.json").statement.id == Ledger.open("l").history()[0].statement_id


class TestProcesses:
    """Runs of their own, with a disk that is full for them, and with Ctrl-C."""

    RUN = "import ptclust.cli; ptclust.cli.main()"
    OPTIONS: ClassVar = ["--epsilon", "1/9", "--linf", "1e-5", "--mechanism", "kruskal", *SPARSE]

    @pytest.fixture
    def start(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger")
        ledger.add_dataset("survey", Budget.pure(1))
        n = 3000
        weights = np.random.default_rng(0).uniform(0.1, 1, n)
        lines = [f"{i},{i + 1},{w}" for i, w in enumerate(weights.tolist())]
        (tmp_path / "edges.csv").write_text(HEADER + "\n".join(lines) + "\n")

        def started(output, limit=resource.RLIM_INFINITY):
            def prepare():
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

            command = [sys.executable, "-c", self.RUN, "cluster", "edges.csv", *self.OPTIONS]
            command += ["--ledger", "ledger", "--dataset", "survey", "-o", output]
            return subprocess.Popen(
                command, cwd=tmp_path, preexec_fn=prepare, stderr=subprocess.PIPE, text=True
            )

        return ledger, started

    def test_a_full_disk_and_ctrl_c(self, start, tmp_path):
        ledger, started = start
        good = started("good.json")
        assert good.wait() == 0, good.communicate()
        good.communicate()
        assert (tmp_path / "good.json").stat().st_size > 60_000

        # No room for the release, or not even for the ledger: nothing is charged, nothing released.
        for limit in (60_000, 1000):
            run = started("a.json", limit=limit)
            _, err = run.communicate()
            assert run.returncode == 3, err
            assert "a.json could not be written: it needs" in err
            assert [charge.released for charge in ledger.history()] == [True]

        # Ctrl-C as soon as the ledger was charged.
        before = ledger.path.stat().st_mtime_ns
        run = started("c.json")
        while ledger.path.stat().st_mtime_ns == before and run.poll() is None:
            time.sleep(0.001)
        os.kill(run.pid, signal.SIGINT)
        _, err = run.communicate()
        ledger.verify()
        made = {p.name for p in tmp_path.iterdir()} - {"ledger", "edges.csv", "good.json"}
        assert made <= {"c.json"}
        assert run.returncode == 130 or made, (run.returncode, err)
        assert ledger.status()[0].n_charges == 2
        for name in made:
            assert Release.load(tmp_path / name).statement.id == ledger.history()[1].statement_id
