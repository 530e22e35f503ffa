"""Readers and the loader of releases survive spoiled and harmful files: `make fuzz` in short."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptclust import Graph, read_graph
from ptclust.errors import FileError, GraphError, WeightError
from ptclust.graph import read_topology
from tests.robustness import fuzz as runner
from tests.robustness.attacks import attacks
from tests.robustness.corpus import KINDS, MARKERS, seeds

ROOT = Path(__file__).parents[2]
COUNT = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spoiled")


def put(folder: Path, kind: str, content: bytes) -> Path:
    path = folder / f"file{KINDS[kind].ending}"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_spoiled_files(kind, folder, capfd):
    refused = 0
    for number in range(1000, 1000 + COUNT):
        errors, problem = runner.attempt(
            kind, put(folder, kind, runner.content_of(kind, 1, number))
        )
        assert not problem, f"file {number}: {problem}"
        refused += bool(errors)
    assert refused > COUNT / 2
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", KINDS)
def test_harmful_files_are_refused(kind, folder, capfd):
    for name, content in attacks(kind).items():
        errors, problem = runner.attempt(kind, put(folder, kind, content))
        assert errors, name
        assert not problem, name
    assert capfd.readouterr() == ("", "")


@settings(max_examples=60, suppress_health_check=list(HealthCheck), database=None)
@given(kind=st.sampled_from(list(KINDS)), content=st.binary(max_size=200), start=st.integers(0, 60))
def test_any_bytes_behind_any_beginning(kind, content, start, folder):
    path = put(folder, kind, seeds(kind)[0][:start] + content)
    assert runner.attempt(kind, path)[1] == ""


@settings(max_examples=60, suppress_health_check=list(HealthCheck), database=None)
@given(text=st.text(st.sampled_from('ab,\t"\n\r 0.5e-;\x00\ufeffé'), max_size=60))
def test_any_table(text, folder):
    for kind in ("csv", "tsv", "txt", "txt by blanks", "csv without header", "standard input"):
        assert runner.attempt(kind, put(folder, kind, text.encode()))[1] == ""


class TestTheRunner:
    """It sees what it is there to see."""

    @pytest.fixture
    def told(self, monkeypatch, tmp_path):
        def attempt(call):
            monkeypatch.setattr(runner, "calls", lambda kind: [call])
            return runner.attempt("csv", tmp_path / "file.csv")

        return attempt

    def test_exceptions(self, told):
        def panic(path: Path) -> None:
            raise BaseException("panic")  # noqa: TRY002 - as native code does

        assert "panic raises BaseException" in told(panic)[1]

    def test_warnings(self, told):
        assert "UserWarning" in told(lambda path: warnings.warn("x", stacklevel=1))[1]

    def test_weights_in_hidden_causes(self, told):
        def leak(path: Path) -> None:
            try:
                float(MARKERS[2] + "x")
            except ValueError:
                raise FileError("cannot be read") from None

        assert "says the weight" in told(leak)[1]

    def test_a_run_of_a_worker(self):
        tally = runner.fuzz("release", 20)
        assert (tally.files, tally.refused, tally.unhandled) == (20, 20, [])
        assert 50 < tally.peak_mib < runner.MOST_MIB
        assert 0 < tally.seconds < runner.PATIENCE
        tally.add({"number": 3, "problem": "died"})
        assert "| 1         |" in runner.table([tally])

    @pytest.mark.parametrize("much", [{"peak_mib": 1025.0}, {"seconds": 61.0}])
    def test_too_much_memory_or_time(self, much):
        tally = runner.Tally("csv")
        tally.add({"number": 3, "problem": "", "errors": [], "peak_mib": 9.0, "seconds": 0.1})
        assert not tally.unhandled
        tally.add({"number": 4, "problem": "", "errors": ["FileError"], **much})
        assert "csv #4: took" in tally.unhandled[0]

    def test_words_on_stderr(self, tmp_path):
        stderr = tmp_path / "stderr"
        code = (
            "import os; from pathlib import Path; from tests.robustness import fuzz\n"
            "def attempt(kind, path):\n"
            "    said = attempt.calls = attempt.calls + 1\n"
            f"    os.write(2, b'panic' if said == {len(seeds('csv')) + 2} else b'')\n"
            "    return [], ''\n"
            "attempt.calls, fuzz.attempt = 0, attempt\n"
            "fuzz.work('csv', Path('none'), 1, 100, 103)\n"
        )
        with stderr.open("w+b") as errors:
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, cwd=ROOT, stderr=errors,
                                  stdout=subprocess.PIPE, text=True, check=True)  # fmt: skip
        reports = [json.loads(line) for line in done.stdout.split("\n") if line]
        assert [report["problem"] for report in reports] == ["", "on stderr: panic", ""]

    def test_the_folder_of_harmful_files(self, monkeypatch):
        monkeypatch.setattr(runner, "bombs", lambda kind: {"whole": seeds("csv")[0]})
        monkeypatch.setattr(runner, "attacks", lambda kind: {"empty": b""})
        tally = runner.fuzz("csv", 4)
        assert (tally.accepted, tally.refused) == (2, 2)


class TestWhatWasFound:
    """Defects that fuzzing has found."""

    def test_a_weight_that_strayed_into_a_name(self, tmp_path):
        path = tmp_path / "g.csv"
        for line in (
            "0.12345,0.12345,1",
            "a,b,1\n0.12345,b,1\nb,0.12345,2",
            "a;0.12345,a;0.12345,1",
        ):
            path.write_text(f"source,target,cost\n{line}\n")
            with pytest.raises(GraphError, match="<number>") as caught:
                read_graph(path)
            assert "12345" not in str(caught.value)

    def test_a_text_that_begins_like_a_zlib_stream(self, tmp_path):
        path = tmp_path / "g.csv"
        for head in ("", "\n", "\ufeff"):
            path.write_text(head + "x^2,b,0.5\nc,x^2,0.2\n", encoding="utf-8")
            graph = read_graph(path, header=False, kind="distance")
            assert set(graph.names) == {"x^2", "b", "c"}
            assert read_topology(path, header=False) == graph.topology

    def test_topology_of_a_damaged_gzip_file(self, tmp_path):
        path = tmp_path / "g.csv.gz"
        path.write_bytes(seeds("csv.gz")[0][:-12])
        with pytest.raises(FileError, match=r"damaged or cut short"):
            read_topology(path)

    def test_integers_of_another_byte_order(self):
        import numpy as np

        graph = Graph(np.array([0, 1], ">i8"), np.array([1, 2], ">i4"), [0.1, 0.2])
        assert graph.topology.sources.tolist() == [0, 1]

    @pytest.mark.parametrize("read", [read_graph, read_topology])
    def test_no_memory_is_an_error_like_any_other(self, tmp_path, monkeypatch, read):
        def exhausted(*_: object) -> None:
            raise MemoryError

        monkeypatch.setattr("ptclust.graph.readers.csv._scan", exhausted)
        path = put(tmp_path, "csv", seeds("csv")[0])
        with pytest.raises(FileError, match="more memory than there is"):
            read(path, **({"kind": "distance"} if read is read_graph else {}))

    def test_a_name_with_digits_is_still_shown(self, tmp_path):
        path = tmp_path / "g.csv"
        path.write_text("source,target,cost\n10.1.0.2,10.1.0.2,0.5\n")
        with pytest.raises(GraphError, match=r"joins node '10\.1\.0\.2' to itself"):
            read_graph(path)

    def test_of_a_long_name_the_beginning_is_shown(self, tmp_path):
        path, name = tmp_path / "g.csv", "n" * 20_000
        for row in (f"{name},{name},1", f"a,{name},1\n{name},a,1"):
            path.write_text(f"source,target,cost\n{row}\n")
            with pytest.raises(GraphError, match="'" + "n" * 80 + r"\.\.\.'"):
                read_graph(path)

    def test_a_wrong_type_of_matrix_is_named_only_if_known(self, tmp_path):
        path = tmp_path / "g.mtx"
        path.write_text("%%MatrixMarket matrix coordinate 0.12345 general\n2 2 1\n1 2 1\n")
        with pytest.raises(WeightError, match="of type unknown"):
            read_graph(path, kind="distance")

    def test_a_page_outside_of_a_parquet_file(self, tmp_path, capfd):
        path = put(tmp_path, "parquet", attacks("parquet")["pages outside of the file"])
        with pytest.raises(FileError, match="damaged"):
            read_topology(path)
        assert capfd.readouterr() == ("", "")  # polars panics, and says so


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
def test_guided_by_coverage(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.robustness.guided", "csv", "-runs=200"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
