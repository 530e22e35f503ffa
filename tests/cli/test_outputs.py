"""What commands write: no file is destroyed, and nothing that is paid for is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ptclust import Ledger, PTClust, Release, Sensitivity
from ptclust._files import reserved, same_file, written_at_once
from ptclust.clustering import CLUSTERERS
from ptclust.errors import FileError, UsageError
from tests.cli.outputs import BUDGET, COMMANDS, PAID, UNIT, path_graph
from tests.test_paid_for import Failing


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

        monkeypatch.setattr("ptclust.inputs.read_graph", fail)
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
        arguments, prepare = [*COMMANDS["cluster"][0], *options], pipeline.prepare
        seen: list[Any] = []

        def meanwhile(*args, **named):
            monkeypatch.setattr(pipeline, "prepare", prepare)
            seen.append({name: here()[name] for name in ("r.json", "r.csv", "r.png")})
            others = options, ["-o", "x.json", "--plot", "r.png"]
            seen.extend(run(*COMMANDS["cluster"][0], *names) for names in others)
            seen.append(Ledger.open("l").history())
            return prepare(*args, **named)

        monkeypatch.setattr(pipeline, "prepare", meanwhile)
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
        compiling = "Compiling for this machine, once: this takes up to a minute.\n"
        assert (done.returncode, done.stderr.removeprefix(compiling)) == (3, said)

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
