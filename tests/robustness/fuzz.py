"""Read thousands of spoiled files of every format, each call watched: `make fuzz`.

A worker process a format reads the files under a limit of memory, and tells its parent of each,
with the time and the memory that it took. Only an error of ptclust, or success, may come out: no
other exception, no warning but of privacy, no word on stderr, no digits of a weight in the text of
an error, and neither more than a minute nor more than 1 GiB. A worker that dies or falls silent is
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
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO, Any

from tests.robustness.attacks import attacks, bombs
from tests.robustness.corpus import KINDS, MARKERS, seeds
from tests.robustness.mutations import mutated

#: Address space that a worker may take beyond what it has once everything is imported.
MEMORY = 2 << 30
#: Resident memory that one file may take, in MiB, with all that is imported.
MOST_MIB = 1024
#: Seconds that one file may take; the bombs take a few, the others milliseconds.
PATIENCE = 60.0
#: So many files are made to do harm, the rest are spoiled at random.
HARMFUL = 40

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
    seconds: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, report: dict[str, Any]) -> None:
        self.files += 1
        peak, seconds = report.get("peak_mib", 0.0), report.get("seconds", 0.0)
        self.peak_mib, self.seconds = max(self.peak_mib, peak), max(self.seconds, seconds)
        problem = report["problem"]
        if not problem and (peak > MOST_MIB or seconds > PATIENCE):
            problem = f"took {peak:.0f} MiB and {seconds:.1f} s"
        if problem:
            self.unhandled.append(f"{self.kind} #{report['number']}: {problem}")
        elif report["errors"]:
            self.refused += 1
            self.errors.update(report["errors"])
        else:
            self.accepted += 1


def calls(kind: str) -> list[Any]:
    """Return the functions that read a file of this kind."""
    from ptclust import Release, read_graph
    from ptclust.graph import read_topology

    if kind == "release":
        return [Release.load]
    ending, options, from_input = KINDS[kind]
    without_kind = {name: option for name, option in options.items() if name != "kind"}

    def reading(read: Any, options: dict[str, Any]) -> Any:
        def call(path: Path) -> None:
            if not from_input:
                read(path, **options)
                return
            before = sys.stdin
            with path.open() as sys.stdin:
                try:
                    read("-", format=ending[1:], **options)
                finally:
                    sys.stdin = before

        call.__name__ = read.__name__
        return call

    return [reading(read_graph, options), reading(read_topology, without_kind)]


def attempt(kind: str, path: Path) -> tuple[list[str], str]:
    """Read a file in every way; return the names of intended errors, and other failures."""
    from ptclust.errors import PrivacyWarning, PtclustError

    refused: list[str] = []
    for call in calls(kind):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", PrivacyWarning)  # of words that are not ptclust's
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
    """Return the spoiled file of this number, the same whoever asks."""
    return mutated(kind, Random(f"{kind} {seed} {number}"))


def fuzz(kind: str, count: int, seed: int = 0, first: int = 0) -> Tally:
    """Read ``count`` files in worker processes; the first ones are made to do harm."""
    tally, number, end = Tally(kind), first, first + count
    with tempfile.TemporaryDirectory() as folder:
        harmful = [*bombs(kind).values(), *attacks(kind).values()] if first < HARMFUL else []
        for i in range(first, min(end, HARMFUL)):
            (Path(folder) / str(i)).write_bytes(harmful[i % len(harmful)])
        while number < end:
            with _Worker(kind, seed, number, end, folder) as worker:
                for report in worker.reports():
                    tally.add(report)
                    number = report["number"] + 1
                if number < end:
                    tally.add({"number": number, "problem": worker.obituary()})
                    number += 1
    return tally


class _Worker:
    """A process that reads files, from one number to another."""

    def __init__(self, kind: str, seed: int, first: int, end: int, harmful: str) -> None:
        command = [sys.executable, "-m", __name__ if __name__ != "__main__" else _NAME, "--worker"]
        arguments = [kind, harmful, str(seed), str(first), str(end)]
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


def work(kind: str, harmful: Path, seed: int, first: int, end: int) -> None:
    """Read files, those of low numbers from a folder, and tell of each in a line of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{KINDS[kind].ending}"
        for other in KINDS:  # made before memory and time are measured
            seeds(other)
        for content in seeds(kind):  # compiles and imports all there is
            path.write_bytes(content)
            errors, problem = attempt(kind, path)
            if errors or problem:
                raise SystemExit(f"a valid {kind} file is refused: {errors} {problem}")
        limit_memory(MEMORY)
        sys.stdout.write("\n")  # ready
        sys.stdout.flush()
        for number in range(first, end):
            file = harmful / str(number)
            path.write_bytes(file.read_bytes() if file.exists() else content_of(kind, seed, number))
            Path("/proc/self/clear_refs").write_text("5")  # forget the peak
            start, said = time.perf_counter(), os.fstat(2).st_size  # stderr is a file, see _Worker
            errors, problem = attempt(kind, path)
            seconds = time.perf_counter() - start
            if (now := os.fstat(2).st_size) > said:
                text = os.pread(2, now - said, said).decode("utf-8", "replace")
                problem = problem or f"on stderr: {text}"
            report = {
                "number": number,
                "errors": errors,
                "problem": problem[:3000],
                "peak_mib": peak_mib(),
                "seconds": seconds,
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
    rows = [("format", "files", "refused", "accepted", "unhandled", "memory, MiB", "longest, s")]
    for t in tallies:
        counts = t.files, t.refused, t.accepted, len(t.unhandled)
        rows.append((t.kind, *(f"{n:,}" for n in counts), f"{t.peak_mib:.0f}", f"{t.seconds:.1f}"))
    files, refused, accepted = (
        sum(getattr(t, name) for t in tallies) for name in ("files", "refused", "accepted")
    )
    counts = files, refused, accepted, sum(len(t.unhandled) for t in tallies)
    peak, seconds = max(t.peak_mib for t in tallies), max(t.seconds for t in tallies)
    rows.append(("all", *(f"{n:,}" for n in counts), f"{peak:.0f}", f"{seconds:.1f}"))
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
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this format")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        kind, harmful, *numbers = asked.worker
        work(kind, Path(harmful), *map(int, numbers))
        return
    kinds = asked.kind or list(KINDS)
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
