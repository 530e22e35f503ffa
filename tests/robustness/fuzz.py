"""Read thousands of spoiled files of every format, each call watched: `make fuzz`.

A worker process a format reads the files under a limit of memory, and tells its parent of each.
Only an error of ptclust, or success, may come out: no other exception, no warning, no word on
stderr, no digits of a weight in the text of an error. A worker that dies or falls silent is
replaced, and the file it was at counts as unhandled.

    python -m tests.robustness.fuzz --count 12000 --seed 0
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import resource
import select
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO, Any

from tests.robustness.attacks import attacks, bombs
from tests.robustness.corpus import ENDINGS, MARKERS, seeds
from tests.robustness.mutations import mutated

#: Address space that a worker may take beyond what it has once everything is imported.
MEMORY = 2 << 30
#: Seconds of processor time that one file may take; the bombs take a few, the others milliseconds.
PATIENCE = 60.0
#: So many files are made to do harm, the rest are spoiled at random.
HARMFUL = 25

_TICK = 2.0

#: Without its point, a weight that a spoiled file misplaces is told from no other whole number.
_DIGITS = [marker[1:6] for marker in MARKERS]


@dataclass
class Tally:
    """What came of the files of one format."""

    kind: str
    files: int = 0
    refused: int = 0
    accepted: int = 0
    unhandled: list[str] = field(default_factory=list)
    peak_mib: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, report: dict[str, Any]) -> None:
        self.files += 1
        self.peak_mib = max(self.peak_mib, report.get("peak_mib", 0.0))
        if report["problem"]:
            self.unhandled.append(f"{self.kind} #{report['number']}: {report['problem']}")
        elif report["errors"]:
            self.refused += 1
            self.errors.update(report["errors"])
        else:
            self.accepted += 1


def calls(kind: str) -> list[Any]:
    """Return the functions that read a file of this kind."""
    from ptclust import Release, read_graph
    from ptclust.graph import read_topology

    return [Release.load] if kind == "release" else [read_graph, read_topology]


def attempt(kind: str, path: Path) -> tuple[list[str], str]:
    """Read a file in every way; return the names of intended errors, and other failures."""
    from ptclust.errors import PtclustError

    refused: list[str] = []
    for call in calls(kind):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                call(path)
        except PtclustError as error:
            refused.append(type(error).__name__)
            said = everything_said(error)
            found = [digits for digits in _DIGITS if digits in said]
            if found and kind != "release":  # whose weights are published
                return refused, f"{call.__name__} says the weight ..{found[0]}..: {error}"
        except BaseException as error:
            trace = "".join(traceback.format_exception(error)[-3:])
            return refused, f"{call.__name__} raises {type(error).__name__}: {error}\n{trace}"
    return refused, ""


def everything_said(error: BaseException | None) -> str:
    """Return the texts of an error and of all that it came from, hidden or not."""
    said, seen = [], set()
    todo = [error]
    while todo:
        one = todo.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            said += [str(one), repr(one), repr(vars(one)), str(getattr(one, "__notes__", ""))]
            todo += [one.__cause__, one.__context__]
    return "\n".join(said)


def content_of(kind: str, seed: int, number: int) -> bytes:
    """Return the file of this number, the same whoever asks; the first ones are made to do harm."""
    if number < HARMFUL:
        harmful = [*bombs(kind).values(), *attacks(kind).values()]
        return harmful[number % len(harmful)]
    return mutated(kind, Random(f"{kind} {seed} {number}"))


def fuzz(kind: str, count: int, seed: int = 0, first: int = 0) -> Tally:
    """Read ``count`` spoiled files in worker processes."""
    tally, number, end = Tally(kind), first, first + count
    while number < end:
        with _Worker(kind, seed, number, end) as worker:
            for report in worker.reports():
                tally.add(report)
                number = report["number"] + 1
            if number < end:
                tally.add({"number": number, "problem": worker.obituary()})
                number += 1
    return tally


class _Worker:
    """A process that reads files, from one number to another."""

    def __init__(self, kind: str, seed: int, first: int, end: int) -> None:
        command = [sys.executable, "-m", __name__ if __name__ != "__main__" else _NAME, "--worker"]
        arguments = [kind, str(seed), str(first), str(end)]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._process = subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "POLARS_MAX_THREADS": "2", "MALLOC_ARENA_MAX": "2"},
        )
        self._silent = False

    def reports(self) -> Any:
        stream: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        used, waited = 0.0, 0.0
        while True:
            ready, _, _ = select.select([stream], [], [], _TICK)
            if not ready:
                waited += _TICK
                # By the clock of the process: on a busy machine it may wait for its turn.
                if cpu_seconds(self._process.pid) - used > PATIENCE or waited > 10 * PATIENCE:
                    self._silent = True
                    self._process.kill()
                    return
                continue
            line = stream.readline()
            if not line:
                return
            used, waited = cpu_seconds(self._process.pid), 0.0
            if line.strip():
                yield json.loads(line)

    def obituary(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace")[-2000:]
        if self._silent:
            return f"no answer within {PATIENCE:g} s"
        return f"the process died with {self._process.returncode}: {said}"

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._errors.close()


_NAME = "tests.robustness.fuzz"


def work(kind: str, seed: int, first: int, end: int) -> None:
    """Read files and tell of each in a line of JSON."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as native:
        path = Path(folder) / f"file{ENDINGS[kind]}"
        content_of(
            kind, seed, first
        )  # what is made once is made before memory is limited and measured
        for content in seeds(kind):  # compiles and imports all there is
            path.write_bytes(content)
            errors, problem = attempt(kind, path)
            if errors or problem:
                raise SystemExit(f"a valid {kind} file is refused: {errors} {problem}")
        os.dup2(native.fileno(), 2)
        limit_memory(MEMORY)
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak
        start = peak_mib()
        sys.stdout.write("\n")  # ready
        sys.stdout.flush()
        for number in range(first, end):
            path.write_bytes(content_of(kind, seed, number))
            errors, problem = attempt(kind, path)
            if native.seek(0, os.SEEK_END):
                native.seek(0)
                problem = problem or f"on stderr: {native.read().decode('utf-8', 'replace')}"
                native.seek(0)
                native.truncate()
            report = {
                "number": number,
                "errors": errors,
                "problem": problem[:3000],
                "peak_mib": peak_mib() - start,
            }
            sys.stdout.write(json.dumps(report) + "\n")
            sys.stdout.flush()
            gc.collect(0)


def cpu_seconds(process: int) -> float:
    """Return the processor time that a process has used, 0 if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib() -> float:
    """Return the largest resident memory since it was last reset."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def limit_memory(beyond: int) -> None:
    """Limit the address space to what is in use and this much more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + beyond
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def table(tallies: list[Tally]) -> str:
    """Return the results as a table of Markdown."""
    rows = [("format", "files", "refused", "accepted", "unhandled", "memory, MiB")]
    rows += [
        (
            t.kind,
            f"{t.files:,}",
            f"{t.refused:,}",
            f"{t.accepted:,}",
            f"{len(t.unhandled):,}",
            f"{t.peak_mib:.0f}",
        )
        for t in tallies
    ]
    sums = [
        sum(numbers)
        for numbers in zip(*((t.files, t.refused, t.accepted, len(t.unhandled)) for t in tallies))
    ]
    rows.append(
        ("all", *(f"{number:,}" for number in sums), f"{max(t.peak_mib for t in tallies):.0f}")
    )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
        for row in rows
    ]
    lines.insert(1, re.sub("[^|]", "-", lines[0]).replace("|-", "| ").replace("-|", " |"))
    return "\n".join(lines)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=12_000, help="files in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=ENDINGS, action="append", help="only this format")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        kind, *numbers = asked.worker
        work(kind, *map(int, numbers))
        return
    kinds = asked.kind or list(ENDINGS)
    tallies = []
    for kind in kinds:
        tallies.append(fuzz(kind, -(-asked.count // len(kinds)), asked.seed))
        sys.stderr.write(f"{kind}: {dict(tallies[-1].errors.most_common())}\n")
        for problem in tallies[-1].unhandled[:20]:
            sys.stderr.write(problem + "\n")
    sys.stdout.write(table(tallies) + "\n")
    raise SystemExit(any(tally.unhandled for tally in tallies))


if __name__ == "__main__":
    main()
