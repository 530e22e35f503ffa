"""Machine code on disk: never outdated, never in the way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptclust import _kernel

CALLEE = """
from tiny._kernel import kernel
from tiny.constants import STEP

@kernel
def step(x):
    return x + STEP
"""
CALLER = """
from typing import NamedTuple
import numpy as np
from tiny._kernel import kernel
from tiny.inner import step

class Pair(NamedTuple):
    a: int
    b: int

@kernel
def twice(x):
    return step(step(x))

@kernel
def both(pair):
    return pair.a + pair.b
"""
RUN = """
import sys
from tiny import _kernel, outer
print(outer.twice(1), outer.both(outer.Pair(1, 2)), sum(outer.twice.stats.cache_hits.values()))
print(_kernel.cache_directory())
"""


@pytest.fixture
def package(tmp_path):
    """A package with two kernels, one calling the other across files, and a constant in a third."""
    root = tmp_path / "site" / "tiny"
    root.mkdir(parents=True)
    shutil.copy(_kernel.__file__, root / "_kernel.py")
    (root / "__init__.py").write_text("")
    (root / "constants.py").write_text("STEP = 1\n")
    (root / "inner.py").write_text(CALLEE)
    (root / "outer.py").write_text(CALLER)
    (root / "unrelated.py").write_text("# no kernel\n")
    return root


def start(package, script=RUN, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
    clean |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    clean |= {"HOME": str(package.parent.parent / "home")}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script],
        env=clean | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    assert error == ""
    values, directory = out.splitlines()
    return values.split(), directory


def run(package, **environment):
    return finish(start(package, **environment))


def test_a_second_run_loads_what_the_first_compiled(package):
    first, directory = run(package)
    assert first == ["3", "3", "0"]
    assert Path(directory).parent == package / "__pycache__"
    files = {path: path.stat().st_mtime_ns for path in Path(directory).iterdir()}
    assert len(files) == 3
    assert run(package) == (["3", "3", "1"], directory)
    assert {path: path.stat().st_mtime_ns for path in Path(directory).iterdir()} == files


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("inner.py", "x + STEP", "x - STEP", "-1"),  # same length: only the content tells
        ("constants.py", "STEP = 1", "STEP = 5", "11"),
    ],
)
def test_an_edit_in_another_file_is_seen(package, name, old, new, expected):
    _, before = run(package)
    path = package / name
    times = path.stat()
    path.write_text(path.read_text().replace(old, new))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    values, after = run(package)
    assert values[0] == expected
    assert after != before


@pytest.mark.long
def test_a_renamed_tuple_is_no_error(package):
    _, before = run(package)
    path = package / "outer.py"
    path.write_text(path.read_text().replace("Pair(", "Two(") + "\nPair = Two\n")
    values, after = run(package)
    assert values[1] == "3"
    assert after != before


@pytest.mark.long
def test_other_files_leave_the_cache_alone(package):
    before = run(package)[1]
    (package / "unrelated.py").write_text("x = 1\n")
    assert run(package) == (["3", "3", "1"], before)


@pytest.mark.long
def test_an_edit_while_running_is_not_stored(package):
    edit = "import pathlib, tiny.outer as o; p = pathlib.Path(o.__file__)\n"
    edit += "p.write_text(p.read_text() + '#')\n"
    values, directory = finish(start(package, edit + RUN))
    assert values[0] == "3"
    assert list(Path(directory).iterdir()) == []


@pytest.mark.long
def test_the_users_directory_is_respected(package, tmp_path):
    directory = run(package, NUMBA_CACHE_DIR=str(tmp_path / "mine"))[1]
    assert Path(directory).parent == tmp_path / "mine"
    assert not (package / "__pycache__").exists()


@pytest.mark.long
def test_where_the_package_cannot_be_written(package, tmp_path):
    (package / "__pycache__").write_text("")  # not a directory: works for root, too
    directory = run(package)[1]
    assert tmp_path / "home" in Path(directory).parents
    assert run(package) == (["3", "3", "1"], directory)


def test_nowhere_to_write_is_no_error(package, tmp_path):
    (package / "__pycache__").write_text("")
    (tmp_path / "home").write_text("")
    assert run(package) == (["3", "3", "0"], "None")


@pytest.mark.long
def test_processes_at_once_do_not_disturb_each_other(package):
    found = [finish(process) for process in [start(package) for _ in range(4)]]
    assert {tuple(values[:2]) for values, _ in found} == {("3", "3")}
    directory = Path(found[0][1])
    assert run(package) == (["3", "3", "1"], str(directory))
    assert {path.suffix for path in directory.iterdir()} == {".nbc"}


@pytest.mark.long
@pytest.mark.parametrize("content", [b"", b"no pickle", None])
def test_a_damaged_file_is_compiled_again(package, content):
    directory = Path(run(package)[1])
    for path in directory.iterdir():
        path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    assert run(package)[0] == ["3", "3", "0"]
    assert run(package)[0] == ["3", "3", "1"]


def test_old_directories_are_removed_and_nothing_else(tmp_path):
    def make(name, age, file="a.nbc"):
        path = tmp_path / name
        path.mkdir()
        (path / file).write_text("")
        os.utime(path, (1e9 - age, 1e9 - age))
        return path

    mine = make("ptclust-kernels-" + "f" * 16, 0)
    kept = [make(f"ptclust-kernels-{i:016x}", i) for i in range(1, 5)]
    gone = [make(f"ptclust-kernels-{i:016x}", i) for i in range(5, 8)]
    foreign = [
        make("ptclust-kernels-notes", 50),
        make("other-kernels-" + "0" * 16, 50),
        make("ptclust-kernels-" + "e" * 16, 50, file="letter.txt"),
    ]
    (tmp_path / ("ptclust-kernels-" + "d" * 16)).symlink_to(foreign[0])
    _kernel.remove_old(mine)
    assert all(path.is_dir() for path in (mine, *kept, *foreign))
    assert all(any(path.iterdir()) for path in (mine, *kept, *foreign))
    assert not any(path.exists() for path in gone)


def test_every_module_with_a_kernel_is_a_source():
    package = Path(_kernel.__file__).parent
    files = set(_kernel.Sources(package).files)
    users = {
        path for path in package.rglob("*.py") if "@kernel" in path.read_text(encoding="utf-8")
    }
    assert users <= files
    assert package / "cli" / "cluster.py" not in files


def test_the_announcement_comes_once():
    announcement, said = _kernel.Announcement(), []
    announcement.compiling()
    announcement.say = said.append
    announcement.compiling()
    announcement.compiling()
    assert len(said) == 1
    assert "once" in said[0]


def test_a_first_run_says_that_it_compiles_and_a_second_does_not(package):
    script = "from tiny import _kernel\n_kernel.announcement.say = print\nfrom tiny import outer\n"
    script += "print(outer.twice(1))"
    outputs = [start(package, script).communicate(timeout=120)[0] for _ in range(2)]
    assert [len(out.splitlines()) for out in outputs] == [2, 1]


class TestSilence:
    def test_compiling_is_announced_without_a_terminal(self, capsys, monkeypatch):
        from ptclust._kernel import announcement
        from ptclust.cli._terminal import progress_display

        monkeypatch.setattr(announcement, "say", None, raising=False)
        with progress_display():
            announcement.compiling()
            announcement.compiling()
        said = "Compiling for this machine, once: this takes up to a minute.\n"
        assert capsys.readouterr() == ("", said)
