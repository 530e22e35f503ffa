"""Ctrl-C and a full disk: a file is there whole or not at all, and nothing else is left behind."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from ptclust import Budget, Ledger, Release

ROOT = Path(__file__).parents[2]
#: Runs a command and, the moment a named function is called, lets the process be interrupted before
#: or after it.
RUNNER = """
import importlib, os, signal, sys
when, module, name, *arguments = sys.argv[1:]
holder = importlib.import_module(module)
*path, last = name.split(".")
for part in path:
    holder = getattr(holder, part)
function = getattr(holder, last)

def interrupted(*given, **named):
    if when == "before":
        os.kill(os.getpid(), signal.SIGINT)
    result = function(*given, **named)
    if when == "after":
        os.kill(os.getpid(), signal.SIGINT)
    return result

setattr(holder, last, interrupted)
sys.argv = ["ptclust", *arguments]
from ptclust.cli import main
main()
"""
MOMENTS = {
    "while reading": ("before", "ptclust.graph.readers.csv", "number_texts"),
    "before the file is made": ("before", "secrets", "token_hex"),
    "once the file is named": ("after", "secrets", "token_hex"),
    "once the file is made": ("after", "pathlib", "Path.touch"),
    "before all is on the disk": ("before", "os", "fsync"),
    "when all is on the disk": ("after", "os", "fsync"),
    "before it takes its place": ("before", "pathlib", "Path.replace"),
    "when it has taken its place": ("after", "pathlib", "Path.replace"),
}
CLUSTER = ("--epsilon", "1", "--linf", "1e-6", "--privacy-unit", "one", "--topology", "public")


@pytest.fixture
def folder(tmp_path):
    rows = [f"n{i},n{i + 1},{0.1 + i % 7 / 10}" for i in range(300)]
    (tmp_path / "edges.csv").write_text("source,target,distance\n" + "\n".join(rows) + "\n")
    (tmp_path / "out").mkdir()
    return tmp_path


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        env={**os.environ, "POLARS_MAX_THREADS": "1"},
        check=False,
    )


def check_whole(file: Path) -> None:
    if file.suffix == ".json":
        assert Release.load(file).n_nodes == 301
    else:
        assert len(pl.read_csv(file)) == 301


@pytest.mark.parametrize(
    ("moment", "command"),
    [
        ("while reading", "cluster"),
        ("once the file is made", "cluster"),
        ("before it takes its place", "dbmstclu"),
        ("when it has taken its place", "cluster"),
    ],
)
def test_ctrl_c(folder, moment, command):
    check_interrupted(folder, MOMENTS[moment], command)


@pytest.mark.long
@pytest.mark.parametrize("command", ["cluster", "dbmstclu"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_anywhere(folder, moment, command):
    check_interrupted(folder, MOMENTS[moment], command)


def check_interrupted(folder: Path, when: tuple[str, str, str], command: str) -> None:
    output = Path("out") / ("release.json" if command == "cluster" else "labels.csv")
    more = CLUSTER if command == "cluster" else ()
    arguments = [command, "edges.csv", "-o", str(output), *more]
    done = run(["-c", RUNNER, *when, *arguments], folder)
    assert done.returncode == 130, done.stderr
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == "ptclust: interrupted; no file was left half-written"
    left = [file.name for file in (folder / "out").iterdir()]
    assert left in ([], [output.name])
    if left:
        check_whole(folder / output)


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.2, 0.6, 1.0, 1.5, 2.0, 3.0])
def test_ctrl_c_at_any_time(folder, seconds):
    """By the clock, wherever the process may be: while importing, reading, drawing or writing."""
    arguments = ["-m", "ptclust.cli", "cluster", "edges.csv", *CLUSTER, "-o", "out/release.json"]
    program = "import sys; from ptclust.cli import main; sys.argv[1:2] = []; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments[1:]],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(2)
        process.communicate(timeout=60)
    left = [file.name for file in (folder / "out").iterdir()]
    assert left in ([], ["release.json"])
    if left:
        check_whole(folder / "out" / "release.json")


#: Writes everything a release can be written as, under limits on the size of a file, and tells what
#: happened.
WRITERS = """
import json, resource, signal, sys
from pathlib import Path
from ptclust import Budget, Ledger, Release
from ptclust.errors import PtclustError
from ptclust.drawing.plots import draw_tree
release = Release.load("release.json")
picture = lambda path: draw_tree(release.tree, release.labels, path=path)
writers = {
    "a.json": release.save, "a.csv": release.to_csv, "a.parquet": release.to_parquet,
    "a.graphml": release.to_graphml, "a.png": picture, "a.svg": picture,
}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
unlimited = resource.RLIM_INFINITY
told = []
for name, write in writers.items():
    path = Path("out") / name
    write(path)
    size = path.stat().st_size
    path.unlink()
    for limit in (0, size // 2, size - 1, size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited))
        try:
            write(path)
            said = "written"
        except PtclustError as error:
            said = f"{type(error).__name__} {error.exit_code}: {error}"
        resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
        left = {file.name: file.stat().st_size for file in Path("out").iterdir()}
        told.append([name, limit == size, size, said, left])
        path.unlink(missing_ok=True)
print(json.dumps(told))
"""


def test_a_full_disk_whatever_is_written(folder):
    assert run(["-c", "from ptclust.cli import main; main()", "cluster", "edges.csv", *CLUSTER,
                "-o", "release.json"], folder).returncode == 0  # fmt: skip
    done = run(["-c", WRITERS], folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told) == 24
    for name, fits, size, said, left in told:
        assert left == ({name: size} if fits else {}), name
        expected = (
            "written" if fits else f"FileError 3: out/{name} could not be written: File too large"
        )
        assert said.startswith(expected), name


@pytest.mark.parametrize("command", ["cluster", "dbmstclu"])
def test_a_full_disk_on_the_command_line(folder, command):
    limited = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY)); "
        "from ptclust.cli import main; main()"
    )
    more = CLUSTER if command == "cluster" else ()
    done = run(["-c", limited, command, "edges.csv", "-o", "out/result.json", *more], folder)
    assert done.returncode == 3, done.stderr
    *announced, problem = done.stderr.splitlines()
    assert len(announced) == (command == "cluster")  # what will be public; nothing is lost
    assert problem.startswith("ptclust: out/result.json could not be written: ")
    assert problem.endswith("File too large")
    assert list((folder / "out").iterdir()) == []


def test_a_full_disk_costs_nothing(folder):
    """The ledger is elsewhere, and has space: what a release needs is set aside before."""
    rows = "".join(f"n{i},n{i + 1},0.5\n" for i in range(5000))
    (folder / "edges.csv").write_text("source,target,distance\n" + rows)
    ledger = Ledger.create(folder / "ledger.db")
    ledger.add_dataset("survey", Budget.pure(5))
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), -1)); "
        "from ptclust.cli import main; main()"
    )
    paid = ["--ledger", "ledger.db", "--dataset", "survey", "-o", "out/release.json"]
    for mechanism in ("kruskal", "laplace"):
        asked = ["cluster", "edges.csv", *CLUSTER, *paid, "--mechanism", mechanism]
        done = run(["-c", limited, "100000", *asked], folder)
        assert done.returncode == 3, done.stderr
        assert "out/release.json could not be written: it needs " in done.stderr
        assert ledger.history() == ()
        assert list((folder / "out").iterdir()) == []
    done = run(["-c", limited, "10000000", *asked], folder)
    assert done.returncode == 0, done.stderr
    assert [charge.released for charge in ledger.history()] == [True]
    assert [file.name for file in (folder / "out").iterdir()] == ["release.json"]


@pytest.mark.parametrize("limit", [0, 400])
def test_a_full_disk_while_results_are_recorded(tmp_path, limit):
    """Experiments append records; what was written before the disk was full is read again."""
    program = f"""
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from experiments._records import Records
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
with Records(Path("r.jsonl"), {{"seed": 0}}, ["i"], resume=True) as records:
    for i in range(1000):
        records.add({{"i": i}})
        records.flush()
"""
    assert "File too large" in run(["-c", program], tmp_path).stderr
    again = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path; from experiments._records import Records\n"
        "with Records(Path('r.jsonl'), {'seed': 0}, ['i'], resume=True) as records:\n"
        "    print(sum(records.get(i) is not None for i in range(1000)))"
    )
    done = run(["-c", again], tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.dumps(line) for line in ({"seed": 0}, *({"i": i} for i in range(1000)))]
    ends = itertools.accumulate(len(line) + 1 for line in lines)
    assert int(done.stdout) == max(sum(end <= limit for end in ends) - 1, 0)
