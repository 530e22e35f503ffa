"""What commands write: no file is destroyed, and what they print is for the shell."""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptclust
from ptclust import Budget, Graph, Ledger, PTClust, Release, Sensitivity, Topology
from ptclust._files import reserved, same_file, written_at_once
from ptclust.cli import app, main
from ptclust.cli._terminal import in_options, options_of
from ptclust.clustering import CLUSTERERS, Clustering
from ptclust.errors import FileError, PrivacyWarning, UsageError, warn_of_privacy
from ptclust.graph.labels import read_labels, write_labels
from tests.test_paid_for import Failing

EDGES = "source,target,distance\na,b,0.1\nb,c,0.1\nc,d,0.9\nd,e,0.1\ne,f,0.1\n"
BUDGET = ["--epsilon", "1", "--linf", "1e-5"]
UNIT = ["--privacy-unit", "one patient", "--topology", "public"]
PAID = [*BUDGET, *UNIT, "--ledger", "l", "--dataset", "survey"]


@pytest.fixture
def here(run, tmp_path):
    """A graph, a ledger and a release in the current directory, and what lies in it."""
    (tmp_path / "edges.csv").write_text(EDGES)
    Ledger.create(tmp_path / "l").add_dataset("survey", Budget.pure(3))
    made = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-5)).fit(path_graph(list("abcdef")))
    made.release_.save(tmp_path / "old.json")
    return lambda: {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def path_graph(names=None) -> Graph:
    return Graph(range(5), range(1, 6), [0.1, 0.1, 0.9, 0.1, 0.1], names=names)


COMMANDS = {
    "cluster": (["cluster", "edges.csv", *PAID], "edges.csv"),
    "recluster": (["recluster", "old.json"], "old.json"),
    "dbmstclu": (["dbmstclu", "edges.csv"], "edges.csv"),
}


class TestDifferentFiles:
    @pytest.mark.parametrize("command", COMMANDS)
    @pytest.mark.parametrize("link", [None, os.symlink, os.link, "case", "dots"])
    def test_no_output_is_the_input(self, run, here, command, link):
        arguments, read = COMMANDS[command]
        name = read
        if link == "case":
            name = read.upper()
        elif link == "dots":
            Path("sub").mkdir()
            name = f"sub/../{read}"
        elif link is not None:
            link(read, name := "other.png")
        before = here() if link != "dots" else None
        outputs = [["-o", name, "--overwrite", name]]
        if link in (os.symlink, os.link):
            outputs.append(["-o", "new.json", "--plot", name, "--overwrite", name])
        for output in outputs:
            code, out, err = run(*arguments, *output)
            assert (code, out) == (2, ""), err
            assert "are one file" in err
            assert err.count("\n") == 1
        assert before is None or here() == before

    @pytest.mark.parametrize("name", ["l", "l-journal"])
    @pytest.mark.parametrize("option", ["-o", "--labels"])
    def test_no_output_is_the_ledger(self, run, here, name, option):
        before = here()
        more = [] if option == "-o" else ["-o", "new.json"]
        code, _, err = run(*COMMANDS["cluster"][0], *more, option, name, "--overwrite", name)
        assert code == 2, err
        assert "--ledger l" in err or "l-journal are one file" in err
        assert here() == before

    def test_nothing_is_read_before(self, run):
        code, _, err = run("cluster", "none.csv", *PAID, "-o", "none.csv")
        assert code == 2
        assert "--output none.csv and the graph none.csv are one file" in err

    @pytest.mark.parametrize("command", COMMANDS)
    def test_two_outputs_are_two_files(self, run, here, command):
        before = here()
        options = ["-o", "new.png", "--plot", "./NEW.png"]
        code, _, err = run(*COMMANDS[command][0], *options)
        assert code == 2
        assert "--output new.png and --plot NEW.png are one file" in err
        assert here() == before

    def test_plan(self, run, here):
        os.link("edges.csv", "edges.png")
        before = here()
        options = ["--predict", "--plot", "edges.png", "--overwrite", "edges.png"]
        code, _, err = run("plan", "edges.csv", *BUDGET, *options)
        assert code == 2
        assert "are one file" in err
        assert here() == before

    def test_loops_and_missing_files_are_no_trouble(self, tmp_path):
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        assert not same_file(tmp_path / "loop", tmp_path / "other")
        assert same_file(tmp_path / "caf\u00e9", tmp_path / "cafe\u0301")


class TestExistingFiles:
    @pytest.mark.parametrize(
        ("command", "option"),
        [
            (command, option)
            for command in COMMANDS
            for option in ("-o", "--labels", "--plot")
            if (command, option) != ("dbmstclu", "--labels")  # its output are the labels
        ],
    )
    def test_are_kept_and_named_with_the_option(self, run, here, command, option):
        Path("my own.png").write_text("precious")
        before = here()
        more = [] if option == "-o" else ["-o", "new.json"]
        code, out, err = run(*COMMANDS[command][0], *more, option, "my own.png")
        assert (code, out) == (3, ""), err
        assert "my own.png exists already" in err
        assert "--overwrite 'my own.png'" in err
        assert here() == before, "no name is left that was held, and nothing was charged"

    @pytest.mark.parametrize("command", COMMANDS)
    def test_are_replaced_if_they_are_named(self, run, here, command):
        for name in ("a.json", "b.png", "c.csv"):
            Path(name).write_text("not wanted")
        options = ["-o", "a.json", "--plot", "./b.png", "--overwrite", "b.png"]
        arguments = [*COMMANDS[command][0], *options, *(() if command == "dbmstclu" else LABELS)]
        code, _, err = run(*arguments)
        assert code == 3
        assert "a.json exists" in err
        more = ["--overwrite", Path("a.json").resolve()]
        assert run(*arguments, *more, *(["--overwrite", "c.csv"] * (command != "dbmstclu")))[0] == 0
        made = here()
        assert made["b.png"].startswith(b"\x89PNG")
        assert made["a.json"] != b"not wanted"
        assert (made["c.csv"] == b"not wanted") == (command == "dbmstclu")

    def test_a_file_that_is_no_output_is_not_overwritten(self, run, here):
        before = here()
        for name in ("edges.csv", "elsewhere.csv", "NEW.csv"):
            code, _, err = run("dbmstclu", "edges.csv", "-o", "new.csv", "--overwrite", name)
            assert code == 2
            assert f"--overwrite {name} names no output" in err
        assert here() == before

    def test_a_dangling_link_is_a_file_that_exists(self, run, here):
        Path("link.csv").symlink_to("elsewhere.csv")
        assert run("dbmstclu", "edges.csv", "-o", "link.csv")[0] == 3
        assert not Path("elsewhere.csv").exists()

    def test_what_is_no_file_is_never_replaced(self, run, here):
        os.mkfifo("pipe.csv")
        options = ["-o", "pipe.csv", "--overwrite", "pipe.csv"]
        code, _, err = run("dbmstclu", "edges.csv", *options)
        assert code == 3
        assert "not a regular file" in err
        assert Path("pipe.csv").is_fifo()
        Path("pipe.csv").unlink()

    def test_the_old_file_is_there_until_the_new_one_is(self, run, here, monkeypatch):
        def fail(*_args: object, **_options: object) -> None:
            raise FileError("no")

        monkeypatch.setattr("ptclust.pipeline.read_graph", fail)
        before = here()
        options = ["-o", "old.json", "--overwrite", "old.json"]
        assert run("cluster", "edges.csv", *BUDGET, *UNIT, *options)[0] == 3
        assert here() == before

    def test_save_is_exclusive(self, tmp_path, monkeypatch):
        """Somebody takes the name after it was seen to be free."""
        release = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-5)).fit(path_graph()).release_
        file = tmp_path / "r.json"
        monkeypatch.setattr(os.path, "lexists", lambda _: file.write_text("precious") < 0)
        with pytest.raises(FileError, match=r"exists already; .*paid for.*overwrite=True"):
            release.save(file)
        assert file.read_text() == "precious"
        release.save(file, overwrite=True)
        assert Release.load(file).statement.id == release.statement.id


LABELS = ["--labels", "c.csv"]


class TestWords:
    @pytest.mark.parametrize(("count", "words"), [(0, "0 clusters"), (1, "1 cluster")])
    def test_one_cluster(self, run, here, monkeypatch, count, words):
        monkeypatch.setattr(Release, "n_clusters", count)
        err = run(*COMMANDS["cluster"][0], "-o", "one.json")[2]
        assert f"{words} of 6 nodes in one.json" in err
        err = run("recluster", "one.json", "-o", "again.json")[2]
        assert f"{words} of 6 nodes by " in err

    def test_what_is_not_private_spends_nothing(self, run, here):
        options = [*BUDGET, "--topology", "public", "--random-state", "1", "-o", "r.json"]
        code, _, err = run("cluster", "edges.csv", *options)
        assert code == 0, err
        assert "spends the budget" not in err

    @pytest.mark.parametrize(("kind", "said"), [("distance", False), ("similarity", True)])
    def test_a_kind_that_the_column_contradicts_is_said(self, run, here, kind, said):
        err = run(*COMMANDS["cluster"][0], "--kind", kind, "-o", "r.json")[2]
        assert ("means close), although the column is called 'distance'" in err) == said


CLUSTER = ["cluster", "edges.csv", *UNIT, "-o", "r.json"]
LINF = [*CLUSTER, "--linf", "1e-5"]
IN_SHELL = [
    ([*CLUSTER, "--epsilon", "1"], "A sensitivity needs at least one bound. Declare what"),
    (["ledger", "init", "n", "--dataset", "d", "--rho", "0"], "0.02 is about epsilon = 0.9 at"),
    (["ledger", "init", "n", "--dataset", "d", "--epsilon", "abc"], "finite number, not 'abc'. "),
    (["ledger", "status", "none"], "create one first, as by `ptclust ledger init`"),
    ([*LINF, "--epsilon", "-1/3"], "epsilon must be greater than 0, but is -1/3. "),
    ([*LINF, "--epsilon", "nan"], "epsilon must be a finite number, not nan. "),
    ([*LINF, "--epsilon", "1", "--delta", "3/2"], "in 0 <= delta < 1, but is 3/2. "),
    (
        [*LINF, "--epsilon", "1", "--clip", "1", "0"],
        "--clip 1.0 0.0 is not a pair of finite bounds",
    ),
    (
        [*LINF, "--epsilon", "1", "--calibration", "published", "--split", "0.3"],
        "leave --split out",
    ),
    ([*LINF, "--epsilon", "1", "--ledger", "l"], "give both --ledger and --dataset (one in"),
    (
        [*LINF, "--epsilon", "1", "--clusterer", "levels", "--shift", "1"],
        "--shift and --scale are for --clusterer dbmstclu",
    ),
    (
        [*LINF, "--epsilon", "1", "--mechanism", "gaussian"],
        "give a positive --delta, or --mechanism laplace",
    ),
]


@pytest.mark.parametrize(("arguments", "said"), IN_SHELL)
def test_messages_are_for_the_shell(run, here, arguments, said):
    before = here()
    code, _, err = run(*arguments)
    assert code in (2, 3)
    assert said in err
    assert not re.search(r"\w\(\)|Fraction|of type|Budget|Ledger\.", err)
    assert here() == before


class TestNamesAsGiven:
    """Only what was named is replaced."""

    def test_a_link_is_not_what_it_leads_to(self, run, here):
        Path("precious.txt").write_text("precious")
        Path("link.json").symlink_to("precious.txt")
        options = ["-o", "link.json", "--overwrite", "precious.txt"]
        code, _, err = run(*COMMANDS["cluster"][0], *options)
        assert code == 2
        assert "--overwrite precious.txt names no output of this command" in err
        assert Path("link.json").is_symlink()
        assert Ledger.open("l").history() == ()
        code, _, err = run(*COMMANDS["recluster"][0], "-o", "link.json", "--overwrite", "link.json")
        assert code == 0, err
        assert not Path("link.json").is_symlink()
        assert Path("precious.txt").read_text() == "precious"

    def test_the_folder_may_be_a_link(self, run, here):
        Path("folder").mkdir()
        Path("also").symlink_to("folder")
        Path("folder/a.json").write_text("old")
        options = ["-o", "also/a.json", "--overwrite", "folder/a.json"]
        assert run(*COMMANDS["recluster"][0], *options)[0] == 0

    @pytest.mark.parametrize("command", ["cluster", "dbmstclu"])
    def test_no_output_is_standard_input(self, here, tmp_path, command):
        before = here()
        more = PAID if command == "cluster" else []
        options = ["-", *more, "-o", "edges.csv", "--overwrite", "edges.csv"]
        with (tmp_path / "edges.csv").open() as edges:
            done = subprocess.run(
                [sys.executable, "-m", "ptclust", command, *options],
                stdin=edges, capture_output=True, text=True, cwd=tmp_path,
            )  # fmt: skip
        assert done.returncode == 2
        assert "--output edges.csv and the graph - are one file" in done.stderr
        assert here() == before


class TestReservation:
    """A name is taken before anything is charged."""

    def test_a_run_that_comes_second_is_refused_before_the_charge(self, run, here, monkeypatch):
        from ptclust import pipeline

        options = ["-o", "r.json", "--labels", "r.csv", "--plot", "r.png"]
        arguments, publish = [*COMMANDS["cluster"][0], *options], pipeline.publish_file
        seen: list[Any] = []

        def meanwhile(*args, **named):
            monkeypatch.setattr(pipeline, "publish_file", publish)
            seen.append({name: here()[name] for name in ("r.json", "r.csv", "r.png")})
            others = options, ["-o", "x.json", "--plot", "r.png"]
            seen.extend(run(*COMMANDS["cluster"][0], *names) for names in others)
            seen.append(Ledger.open("l").history())
            return publish(*args, **named)

        monkeypatch.setattr(pipeline, "publish_file", meanwhile)
        code, _, err = run(*arguments)
        assert code == 0, err
        names, first, second, charges = seen
        assert names == {"r.json": b"", "r.csv": b"", "r.png": b""}
        for code, _, err in (first, second):
            assert code == 3
            assert "empty: another run holds the name, or was killed" in err
        assert charges == ()
        assert Release.load("r.json").statement.id == Ledger.open("l").history()[0].statement_id
        assert not Path("x.json").exists()

    @pytest.mark.parametrize("length", [245, 256])
    @pytest.mark.parametrize("option", ["-o", "--labels", "--plot"])
    def test_long_names_are_written_or_refused_before_the_charge(self, run, here, option, length):
        suffix = {"-o": ".json", "--labels": ".csv", "--plot": ".png"}[option]
        name = "x" * (length - len(suffix)) + suffix
        before = here()
        more = [] if option == "-o" else ["-o", "r.json"]
        code, _, err = run(*COMMANDS["cluster"][0], *more, option, name)
        if length <= 255:
            assert code == 0, err
            assert here()[name]
            assert all(charge.released for charge in Ledger.open("l").history())
        else:
            assert (code, err.count("\n")) == (3, 1), err
            assert "cannot be written: File name too long; give another name" in err
            assert here() == before

    def test_a_long_suffix_is_no_format(self, tmp_path):
        path = tmp_path / f"a.{'b' * 250}"
        with written_at_once(path) as temporary:
            temporary.write_text("done")
        assert path.read_text() == "done"

    def test_an_error_is_not_hidden_by_another(self, tmp_path):
        folder = tmp_path / "gone"
        folder.mkdir()

        def fail(temporary: Path) -> None:
            temporary.unlink()
            (folder / "a").unlink()
            folder.rmdir()
            folder.write_text("no directory")
            raise OSError("first")

        names = reserved(folder / "a", "no"), written_at_once(folder / "b")
        with pytest.raises(FileError, match="first"), names[0], names[1] as temporary:
            fail(temporary)

    @pytest.mark.parametrize("problem", [FileError("no"), KeyboardInterrupt(), MemoryError()])
    def test_names_go_again_if_nothing_is_written(self, tmp_path, problem):
        def fail() -> None:
            assert (tmp_path / "a").exists()
            raise problem

        with pytest.raises(type(problem)), reserved(tmp_path / "a", ""):
            fail()
        assert list(tmp_path.iterdir()) == []

    def test_the_name_of_another_stays(self, tmp_path, monkeypatch):
        """Also if it was taken between the look and the attempt, and is as empty as ours."""

        def again() -> None:
            with reserved(tmp_path / "a", "remedy"):
                pass

        with reserved(tmp_path / "a", ""):
            for look in (os.path.lexists, lambda _: False):
                monkeypatch.setattr(os.path, "lexists", look)
                with pytest.raises(FileError, match=r"a exists already, empty.*; remedy"):
                    again()
            assert (tmp_path / "a").exists()
            (tmp_path / "a").write_text("made")
        assert (tmp_path / "a").read_text() == "made"

    def test_interrupted_as_soon_as_the_name_is_taken(self, tmp_path, monkeypatch):
        touch = Path.touch

        def interrupted(self, **options):
            touch(self, **options)
            raise KeyboardInterrupt

        monkeypatch.setattr(Path, "touch", interrupted)
        with pytest.raises(KeyboardInterrupt), reserved(tmp_path / "a", ""):
            pass
        assert list(tmp_path.iterdir()) == []


class TestStandardOutput:
    @pytest.mark.parametrize("command", ["cluster", "recluster"])
    def test_the_release_alone(self, run, here, command):
        before = here().keys()
        code, out, err = run(*COMMANDS[command][0], "-o", "-")
        assert code == 0
        assert "in standard output" in err
        assert here().keys() == before
        Path("r.json").write_text(out)
        assert Release.load("r.json").n_clusters == 2

    def test_labels(self, run, here):
        assert run("dbmstclu", "edges.csv", "-o", "-")[:2] == run("dbmstclu", "edges.csv")[:2]
        assert not Path("-").exists()

    @pytest.mark.parametrize("command", ["cluster", "dbmstclu"])
    def test_not_with_json(self, run, here, command):
        before = here()
        code, out, err = run(*COMMANDS[command][0], "-o", "-", "--json")
        assert (code, out) == (2, "")
        assert "--json" in err
        assert here() == before

    @pytest.mark.parametrize("option", ["--labels", "--plot"])
    def test_of_one_output_only(self, run, here, option):
        code, out, err = run(*COMMANDS["recluster"][0], "-o", "-", option, "-")
        assert (code, out) == (2, "")
        assert "only --output" in err

    @pytest.mark.parametrize(
        ("problem", "expected"), [(UsageError("not for me"), 2), (KeyboardInterrupt(), 130)]
    )
    def test_what_was_paid_for_comes_out_if_clustering_fails(self, run, here, problem, expected):
        CLUSTERERS.register(Failing(problem))
        try:
            code, out, err = run(*COMMANDS["cluster"][0], "--clusterer", "failing", "-o", "-")
        finally:
            CLUSTERERS.unregister("failing")
        assert code == expected
        assert "paid for and in standard output, not clustered" in err
        Path("kept.json").write_text(out)
        kept = Release.load("kept.json")
        assert kept.clustering is None
        (charge,) = Ledger.open("l").history()
        assert (charge.statement_id, charge.released) == (kept.statement.id, True)
        assert run("recluster", "kept.json", "-o", "clustered.json")[0] == 0

    def test_nothing_comes_out_before_the_charge(self, run, here):
        code, out, _ = run("cluster", "edges.csv", *PAID, "--epsilon", "9", "-o", "-")
        assert (code, out) == (4, "")

    def test_a_full_disk_is_said(self, here, tmp_path):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "ptclust", "recluster", "old.json", "-o", "-"],
                stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            )  # fmt: skip
        said = "ptclust: standard output could not be written: No space left on device\n"
        assert (done.returncode, done.stderr) == (3, said)

    @pytest.mark.parametrize("ledger", [True, False])
    def test_a_release_that_is_lost_is_said(self, here, tmp_path, ledger):
        arguments = ["edges.csv", *(PAID if ledger else BUDGET + UNIT), "-o", "-"]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "ptclust", "cluster", *arguments],
                stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            )  # fmt: skip
        assert done.returncode == 3
        assert "The release is lost and its budget is spent" in done.stderr
        assert ("dataset 'survey' was charged" in done.stderr) == ledger
        assert "Traceback" not in done.stderr
        assert [charge.released for charge in Ledger.open("l").history()] == [False] * ledger

    def test_what_was_streamed_is_confirmed(self, run, here):
        assert run(*COMMANDS["cluster"][0], "-o", "-")[0] == 0
        assert [charge.released for charge in Ledger.open("l").history()] == [True]

    def test_a_release_that_no_file_takes_is_lost(self, run, here, monkeypatch):
        def full(*_: object, **__: object) -> None:
            raise FileError("no space")

        monkeypatch.setattr(Release, "save", full)
        code, _, err = run(*COMMANDS["cluster"][0], "-o", "r.json")
        assert code == 3
        assert "The release is lost and its budget is spent: dataset 'survey' was charged" in err
        assert [charge.released for charge in Ledger.open("l").history()] == [False]


class TestDemo:
    def test_every_run_adds_its_files_and_replaces_none(self, run, tmp_path):
        for name in ("map.png", "stations.csv", "release.json"):
            (tmp_path / name).write_text("precious")
        names: set[Path] = set()
        for count in (1, 2):
            assert run("demo", "-o", ".")[0] == 0
            assert all((tmp_path / name).exists() for name in names)
            names = {path.name for path in tmp_path.iterdir() if path.stat().st_size > 99}
            assert len(names) == 1 + 3 * count  # the rides; a release, a map and a report each
        assert (tmp_path / "stations.csv").read_text() == "precious"


def test_an_audit_keeps_the_one_before(run, monkeypatch):
    def started(*_args: object, **_options: object) -> None:
        raise AssertionError("the audit began")

    monkeypatch.setattr("ptclust.audit.run_audit", started)
    Path("there").mkdir()
    Path("there/audit-quick.json").write_text("precious")
    code, _, err = run("audit", "--quick", "-o", "there")
    assert code == 3
    assert "--overwrite there/audit-quick.json" in err
    assert [path.name for path in Path("there").iterdir()] == ["audit-quick.json"]


HARMFUL = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\x1b[2J", "\u200b=1", " =1", "\uff1d1"]
FORMULAS = [*HARMFUL, "plain", "'quoted", "a=b", "5"]
ESCAPED = [f"'{name}" for name in HARMFUL] + FORMULAS[len(HARMFUL) :]


class TestFormulas:
    def nodes(self, file):
        with Path(file).open(newline="") as stream:
            return [row[0] for row in csv.reader(stream)][1:]

    def release(self, names) -> Release:
        graph = Graph(range(len(names) - 1), range(1, len(names)), names=names,
                      weights=[0.1] * (len(names) - 1))  # fmt: skip
        return PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-9)).fit(graph).release_

    def test_names_that_cannot_be_written_cost_nothing(self, run, here):
        Path("same.csv").write_text("source,target,distance\n=a,'=a,0.1\n'=a,c,0.1\n")
        arguments = ["cluster", "same.csv", *PAID, "-o", "r.json", "--labels", "r.csv"]
        before = here()
        code, _, err = run(*arguments)
        assert code == 3
        assert "the same once formulas are escaped" in err
        assert here() == before
        assert run(*arguments, "--no-escape-formulas")[0] == 0

    def test_names_of_any_type_are_escaped_but_for_numbers(self, tmp_path):
        class Name:
            def __str__(self) -> str:
                return "=cmd()"

        names = np.array([Name(), -1, -2.5, np.int64(-3), "-4"], dtype=object)
        write_labels(names, np.arange(5), tmp_path / "l.csv")
        assert self.nodes(tmp_path / "l.csv") == ["'=cmd()", "-1", "-2.5", "-3", "'-4"]

    def test_names_are_escaped_by_default_and_read_back(self, tmp_path):
        release, file = self.release(FORMULAS), tmp_path / "labels.csv"
        escaped = dict(zip(FORMULAS, ESCAPED, strict=True))
        release.to_csv(file)
        assert self.nodes(file) == [escaped[name] for name in release.names.tolist()]
        assert read_labels(file, release.topology).tolist() == release.labels.tolist()
        release.to_csv(file, escape_formulas=False, overwrite=True)
        assert self.nodes(file) == sorted(FORMULAS)

    def test_numbers_stay_numbers(self, tmp_path):
        release, file = self.release(np.array([-3, -2, 1])), tmp_path / "labels.csv"
        release.to_csv(file)
        assert self.nodes(file) == ["-3", "-2", "1"]

    def test_a_node_of_that_very_name_is_meant(self, tmp_path):
        topology = Topology([0], [1], names=["'=a", "b"])
        (tmp_path / "l.csv").write_text("node,cluster\n'=a,7\nb,8\n")
        assert read_labels(tmp_path / "l.csv", topology).tolist() == [7, 8]

    def test_names_that_would_become_one_are_refused(self, tmp_path):
        names = np.array(["'=a", "=a"], dtype=object)
        with pytest.raises(FileError, match="escape_formulas=False"):
            write_labels(names, np.arange(2), tmp_path / "l.csv")
        write_labels(names, np.arange(2), tmp_path / "l.csv", escape_formulas=False)
        assert self.nodes(tmp_path / "l.csv") == ["'=a", "=a"]

    def test_commands(self, run, here):
        Path("odd.csv").write_text('source,target,distance\n=1+1,b,0.1\nb,"-2+cmd|x",0.2\n')
        wanted = {True: ["'-2+cmd|x", "'=1+1", "b"], False: ["-2+cmd|x", "=1+1", "b"]}
        for escaped in (True, False):
            option = [] if escaped else ["--no-escape-formulas"]
            number = f"{escaped:d}"
            outputs = ["-o", f"{number}.json", "--labels", f"a{number}.csv"]
            assert run("cluster", "odd.csv", *BUDGET, *UNIT, *outputs, *option)[0] == 0
            outputs = ["-o", f"x{number}.json", "--labels", f"b{number}.csv"]
            assert run("recluster", f"{number}.json", *outputs, *option)[0] == 0
            assert run("dbmstclu", "odd.csv", "-o", f"c{number}.csv", *option)[0] == 0
            for letter in "abc":
                assert self.nodes(f"{letter}{number}.csv") == wanted[escaped]
        assert run("check", "odd.csv", "--clusters", "a1.csv")[0] == 0


@cache
def all_texts() -> dict[str, str]:
    """Return every text in the source of the package, without docstrings, and its file."""
    found: dict[str, str] = {}
    package = Path(ptclust.__file__).parent
    for file in sorted(package.rglob("*.py")):
        tree = ast.parse(file.read_text())
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        within = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
            if part is not node
        }
        for node in ast.walk(tree):
            if id(node) in alone | within:
                continue
            if isinstance(node, ast.JoinedStr):
                text = "".join(map(shown, node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            found[text] = file.relative_to(package).as_posix()
    return found


def texts_with_arguments() -> dict[str, str]:
    """Return those in which a name stands before a sign of equality."""
    return {text: file for text, file in all_texts().items() if re.search(r"\w=", text)}


def shown(part: ast.expr) -> str:
    """Return a part of an f-string with a plain value for what is filled in."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    return "'x'" if part.conversion == ord("r") else "1"


#: Parts of texts in the source, and what the command line makes of them.
IN_OPTIONS = {
    "clusterer='x' averages over": "--clusterer x averages over",
    "name another: weight=": "name another: --weight",
    "name another column: weight=": "name another column: --weight",
    "say header=False if the first line is an edge": "say --no-header if the first line is an edge",
    "check its separator, separator=": "check its separator, --separator",
    "rename it or give format=": "rename it or give --format",
    "kind='distance' if small weights": "--kind distance if small weights",
    "kind='similarity' if large weights": "--kind similarity if large weights",
    "say topology='public'; if a pair": "say --topology public; if a pair",
    "as in privacy_unit='one patient'": "as in --privacy-unit 'one patient'",
    "say how to merge their weights: merge='min', 'max' or 'sum'": (
        "say how to merge their weights: --merge min, max or sum"
    ),
    "use mechanism='pamst' and delta=0": "use --mechanism pamst and --delta 0",
    "give clip= within": "give --clip within",
    "as they are taken to (clip=)": "as they are taken to (--clip)",
    "in a population average, linf=d; one": "in a population average, --linf d; one",
    "or say escape_formulas=False": "or say --no-escape-formulas",
    "or say overwrite=True if": "or say --overwrite if",
    "leave out random_state, or the ledger": "leave out --random-state, or the ledger",
}
#: Names before a sign of equality that are no options, and where they are printed.
NO_OPTIONS = {
    "backend": "data frames",
    "evidence": "what a release is called",
    "mode": "an address",
    "n_neighbors": "graphs of points",
    "password": "an address",
    "return_inverse": "labels in Python",
    "variant": "a statement that is made by hand",
    "zcdp": "charges by hand",
}


class TestOptions:
    def test_every_text_about_arguments_becomes_one_about_options(self):
        options, left = options_of(app), {}
        for text, file in texts_with_arguments().items():
            if file in ("release/exports.py", "cli/_terminal.py", "_markup.py"):
                continue  # XML, this translation, and HTML
            if file.startswith("report/") or re.search(r"\((n_nodes|n_common)=", text):
                continue  # HTML, and what objects are called
            for name in re.findall(r"(?<![\w.])([a-z]\w*)=(?!<private>)", in_options(text)):
                left[name] = file
        assert set(left) == set(NO_OPTIONS), left
        assert not set(left) & set(options)

    @pytest.mark.parametrize("part", IN_OPTIONS)
    def test_texts_as_they_are_printed(self, part):
        text = next(text for text in all_texts() if part in text)
        assert IN_OPTIONS[part] in in_options(text)

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("kind='similarity'", "--kind similarity"),
            ("privacy_unit='one patient'", "--privacy-unit 'one patient'"),
            ("random_state=7, epsilon=1e-3.", "--random-state 7, --epsilon 1e-3."),
            ("clip=(-1.5, 2e+3)", "--clip -1.5 2e+3"),
            ("the node 'weight=3' is not there", "the node 'weight=3' is not there"),
            ("weight=x.csv cannot be read", "weight=x.csv cannot be read"),
            ("a/weight=.csv cannot be read", "a/weight=.csv cannot be read"),
            ("random_state.csv cannot be read", "random_state.csv cannot be read"),
            ("x-random_state cannot be read", "x-random_state cannot be read"),
            ("the paper's clip='a' isn't weight=", "the paper's --clip a isn't --weight"),
            (
                "epsilon = 1, weight 3, lines=, nothing=1",
                "epsilon = 1, weight 3, lines=, nothing=1",
            ),
            ("min_cluster_size must be 1", "--min-cluster-size must be 1"),
            ("a quote's 'it\\'s clip=1' clip=1", "a quote's 'it\\'s clip=1' --clip 1"),
        ],
    )
    def test_words(self, text, wanted):
        assert in_options(text) == wanted

    def test_commands_speak_of_options(self, run, here):
        Path("twice.csv").write_text("source,target,distance\na,b,0.1\nb,a,0.2\n")
        assert "--merge min, max or sum" in run("dbmstclu", "twice.csv")[2]
        Path("lacks.csv").write_text("source,target,distance\na,b,0.1\nb,c,\n")
        assert "name another column: --weight" in run("dbmstclu", "lacks.csv")[2]
        Path("visits.csv").write_text("who,place,day\nada,park,3\n")
        assert "say so: --source, --target, --weight; its" in run("dbmstclu", "visits.csv")[2]
        Path("counts.csv").write_text("source,target,weight\na,b,3\n")
        err = run("dbmstclu", "counts.csv")[2]
        assert "give --kind distance if small weights mean close, --kind similarity if" in err
        err = run("plan", "edges.csv", *BUDGET, "--clip", "0", "1e300")[2]
        assert "give --clip within" in err
        made = [*BUDGET, *UNIT[:2], "-o", "r.json"]
        assert "say --topology public" in run("cluster", "edges.csv", *made)[2]
        err = run("cluster", "edges.csv", "--epsilon", "1", *UNIT, "-o", "r.json")[2]
        assert "--linf d" in err
        err = run("cluster", "edges.csv", *PAID, "-o", "r.json", "--random-state", "1")[2]
        assert "leave out --random-state" in err
        assert not re.search(r"\w=", err)

    def test_warnings_are_one_line(self, run, here, monkeypatch, capsys):
        options = ["--mechanism", "pamst", "--calibration", "published", "-o", "r.json"]
        code, _, err = run("cluster", "edges.csv", *BUDGET, *UNIT, *options)
        assert code == 0
        (line,) = [line for line in err.splitlines() if line.startswith("ptclust: warning: ")]
        assert "they truly spend epsilon" in line

        def warn(*_args: object, **_options: object) -> None:
            warn_of_privacy("several\n  lines; say clip=(0, 1)")
            raise FileError("no")

        monkeypatch.setattr("ptclust.pipeline.read_graph", warn)
        code, _, err = run("dbmstclu", "edges.csv")
        assert err == "ptclust: warning: several lines; say --clip 0 1\nptclust: no\n"

    def test_another_command_line_has_its_own_options(self, monkeypatch, capsys):
        import typer

        other = typer.Typer()

        @other.command()
        def fail(far_away: int = 1) -> None:
            raise UsageError("give far_away=2, not clip=1")

        monkeypatch.setattr(sys, "argv", ["other"])
        with pytest.raises(SystemExit):
            main(other, "other")
        assert capsys.readouterr().err == "other: give --far-away 2, not clip=1\n"


def release_of(noise: str, names=None, n: int = 60) -> Release:
    """A release of a cycle of random weights whose noise is small or large."""
    weights = np.random.default_rng(0).uniform(0.1, 1, n)
    graph = Graph(range(n), [*range(1, n), 0], weights, names=names)
    linf = {"small": 1e-9, "large": 10.0}[noise]
    model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=linf), privacy_unit="one patient")
    return model.fit(graph).release_


def labelled(release: Release, labels: list[int], **fields: int) -> Release:
    clustering = Clustering(np.array(labels), "levels", scale=1e9, shift=5e8, dbcvi=0.0, **fields)
    return Release(published=release.published, statement=release.statement, clustering=clustering)


class TestAdvice:
    def test_one_cluster(self):
        for noise, why in (("large", "mostly noise"), ("small", "does not explain")):
            release = labelled(release_of(noise), [0] * 60)
            seen, free, paid = release.advice
            assert "All nodes that are connected are in one cluster" in seen
            assert why in seen
            assert f"{release.weight_noise.standard_deviation:.3g}" in seen
            assert f"{np.std(release.noisy_weights):.3g}" in seen
            assert "clusterer='dbmstclu'" in free
            assert "clusterer='levels'" not in free, "these clusters are by levels"
            assert "min_cluster_size" not in free
            assert "epsilon" in paid
            assert "sensitivity" in paid

    @pytest.mark.parametrize(
        ("labels", "size", "tried"),
        [
            ([*range(31), *[31] * 29], 1, "min_cluster_size=2"),
            ([-1] * 31 + [0] * 29, 5, "min_cluster_size=1"),
            ([-1] * 60, 5, "min_cluster_size=1"),
        ],
    )
    def test_most_nodes_alone(self, labels, size, tried):
        release = labelled(release_of("large"), labels, min_cluster_size=size)
        count = 60 if labels[-1] < 0 else 31
        assert f"{count} of 60 connected nodes are alone or unclustered" in release.advice[0]
        assert tried in release.advice[1]

    @pytest.mark.parametrize(
        "labels", [[0] * 30 + [1] * 30, [*range(30), *[30] * 30], [-1] * 30 + [0] * 30]
    )
    def test_none_where_there_are_clusters(self, labels):
        assert labelled(release_of("large"), labels).advice == ()

    def test_none_without_clusters_or_edges(self):
        release = release_of("large")
        bare = Release(published=release.published, statement=release.statement)
        assert bare.advice == ()
        isolated = Graph([], [], [], n_nodes=3)
        model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-9)).fit(isolated)
        assert model.release_.advice == ()

    def test_isolated_nodes_are_no_cause(self):
        graph = Graph([0, 1, 3, 4], [1, 2, 4, 5], [0.1] * 4, n_nodes=20)
        model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-9)).fit(graph)
        two = labelled(model.release_, [0, 0, 0, 1, 1, 1, *range(2, 16)])
        assert two.advice[0].startswith("All nodes that are connected are in one cluster")
        cut = labelled(model.release_, [0, 0, 1, 2, 2, 2, *range(3, 17)])
        assert cut.advice == ()
        alone = labelled(model.release_, [0, 1, 2, 3, 4, 4, *range(5, 19)])
        assert alone.advice[0].startswith("4 of 6 connected nodes are alone")

    def test_the_clusterers_that_suit(self):
        """Communities need the weights of all edges, and enough of them."""
        a, b = np.triu_indices(40, 1)
        graph = Graph(a, b, np.random.default_rng(0).uniform(0.1, 1, len(a)))
        for mechanism, suits in (("laplace", True), ("kruskal", False)):
            model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1), mechanism=mechanism)
            one = labelled(model.fit(graph).release_, [0] * 40)
            assert ("clusterer='communities'" in one.advice[1]) == suits

    def test_commands_print_it_in_options(self, run):
        labelled(release_of("large"), [0] * 60).save("one.json")
        rows = "".join(f"{i},{i + 1},{0.1 + i % 3 / 10}\n" for i in range(60))
        Path("edges.csv").write_text(f"source,target,distance\n{rows}")
        release_of("large").save("r.json")
        code, out, err = run("recluster", "r.json", "-o", "x.json", "--min-cluster-size", "61")
        assert (code, out) == (0, "")
        assert "At no cost: recluster this release by --clusterer" in err
        assert "--min-cluster-size 1" in err
        options = ["--epsilon", "1", "--linf", "10", "--min-cluster-size", "62", *UNIT]
        code, out, err = run("cluster", "edges.csv", *options, "-o", "-")
        assert code == 0
        assert "61 of 61 connected nodes are alone or unclustered" in err
        assert json.loads(out)["format"]

    def test_fit_does_not_warn(self, recwarn):
        release_of("large")
        assert not recwarn.list

    @pytest.mark.parametrize("unit", [None, "", " "])
    def test_fit_warns_if_nobody_is_protected(self, unit):
        model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-5), privacy_unit=unit)
        with pytest.warns(PrivacyWarning, match="cannot say whom it protects"):
            model.fit(path_graph())
