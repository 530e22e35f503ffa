"""A ledger under stress: many processes at once, and processes killed at random instants.

``make ledger-stress`` runs everything in full and prints what docs/ledger.md reports; anything that
must not happen raises.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from ptclust.errors import BudgetError, UsageError
from ptclust.ledger import Ledger
from ptclust.privacy import Budget
from ptclust.release import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "PARTS",
    "BrokenPromiseError",
    "Kills",
    "Numbers",
    "kill_chargers",
    "kill_releases",
    "race",
    "run_stress",
    "shares_fit",
]

_DATASET = "stress"
_MODULE = "experiments.ledger_stress"
_ROOT = Path(__file__).parents[1]  # where `python -m` finds this module
_RUN = "import ptclust.cli; ptclust.cli.main()"


class BrokenPromiseError(AssertionError):
    """The ledger did not keep a promise."""


class Numbers(NamedTuple):
    """How hard to try."""

    processes: int = 8
    attempts: int = 2000
    admitted: int = 5000
    kills: int = 200
    seed: int = 0


class Kills(NamedTuple):
    """What processes had done when they were killed."""

    outcomes: Counter[str]
    journals: int
    """How often SQLite's journal was left behind, in the middle of a transaction."""

    def __str__(self) -> str:
        found = ", ".join(f"{count} {what}" for what, count in sorted(self.outcomes.items()))
        kills = f"{self.outcomes.total()} kills: {found}"
        return f"{kills}; {self.journals} within a transaction of the ledger"


def shares_fit(path: Path, parts: int) -> None:
    """Charge a budget in equal parts: all of them fit, and not one more."""
    ledger = Ledger.create(path)
    ledger.add_dataset(_DATASET, Budget.pure("0.7"))
    part = Budget.pure(Fraction("0.7") / parts)
    for _ in range(parts):
        ledger.charge(_DATASET, part, statement_id=str(uuid4()))
    for one_more in (part, Budget.pure(1e-300)):
        try:
            ledger.charge(_DATASET, one_more, statement_id=str(uuid4()))
        except BudgetError:
            continue
        raise BrokenPromiseError(f"after {parts} parts of a budget, {one_more} was charged")
    (account,) = ledger.status()
    if account.left.amount != 0 or account.n_charges != parts:
        raise BrokenPromiseError(f"{parts} parts of a budget leave {account.left}")


def race(path: Path, *, processes: int, attempts: int, admitted: int) -> list[int]:
    """Let processes charge at once, ``admitted`` times at most; return how often each did."""
    ledger = Ledger.create(path)
    ledger.add_dataset(_DATASET, Budget.pure(1))
    runners = [_child("charge", path, attempts, admitted) for _ in range(processes)]
    for runner in runners:
        _line(runner)  # ready
    for runner in runners:
        _go(runner)
    got = [int(_line(runner)) for runner in runners]
    for runner in runners:
        runner.communicate()
    ledger.verify()
    (account,) = ledger.status()
    expected = min(admitted, processes * attempts)
    charged = len({charge.statement_id for charge in ledger.history()})
    if {sum(got), account.n_charges, charged} != {expected} or account.left.amount < 0:
        raise BrokenPromiseError(
            f"{expected} charges fit, {sum(got)} succeeded and {charged} are in the file"
        )
    return got


def kill_chargers(
    path: Path, kills: int, *, seed: int, progress: Callable[[str], None] = lambda _: None
) -> Kills:
    """Kill processes that do nothing but charge; every charge they reported must be in the file."""
    ledger = Ledger.create(path)
    ledger.add_dataset(_DATASET, Budget.pure(1))
    chance = random.Random(seed)  # noqa: S311  # instants, not noise
    reported: set[str] = set()
    result = Kills(Counter(), 0)
    for number in range(kills):
        progress(f"Kill {number + 1} of {kills}")
        runner = _child("report", path)
        _line(runner)
        _go(runner)
        reported.add(_line(runner))
        time.sleep(chance.uniform(0, 0.03))
        runner.kill()
        rest = _rest(runner)
        reported |= {line for line in rest.split("\n") if len(line) == len(str(uuid4()))}
        result = Kills(result.outcomes, result.journals + _journal(path))
        ledger.verify()
        charged = {charge.statement_id for charge in ledger.history()}
        if not reported <= charged:
            raise BrokenPromiseError("a charge that had returned was lost")
        result.outcomes["with all its charges in the file"] += 1
        if len(charged - reported) > number + 1:
            raise BrokenPromiseError("a process left more than one charge that it did not report")
    return result


def kill_releases(
    folder: Path, kills: int, *, seed: int, progress: Callable[[str], None] = lambda _: None
) -> Kills:
    """Kill ``ptclust cluster --ledger`` at many instants; every release left must be charged.

    Half of the instants lie anywhere in the run, half between its charge and its end.
    """
    ledger = Ledger.create(folder / "ledger")
    ledger.add_dataset(_DATASET, Budget.pure(10**6))
    _write_graph(folder / "edges.csv")
    _Run(folder, "warm-up.json").until_ended()  # compiles the kernels once
    run = _Run(folder, "timed.json")
    charged_at, ended_at = run.until_charged(), run.until_ended()
    chance = random.Random(seed)  # noqa: S311  # instants, not noise
    early, late = (kills + 1) // 2, kills // 2
    instants = [(False, ended_at * (i + chance.random()) / early) for i in range(early)]
    tail = ended_at - charged_at
    instants += [(True, tail * (i + chance.random()) / late) for i in range(late)]
    chance.shuffle(instants)
    result, n_charges = Kills(Counter(), 0), 2
    number = 0
    while instants:
        after_charge, delay = instants.pop()
        number += 1
        progress(f"Kill {kills - len(instants)} of {kills}")
        run = _Run(folder, f"release-{number}.json")
        if after_charge:
            run.until_charged()
        code = run.killed_after(delay)
        if code > 0:
            raise BrokenPromiseError(f"a run that was not killed ended with exit code {code}")
        journal = _journal(ledger.path)  # before the check below, which undoes what it holds
        output = folder / f"release-{number}.json"
        before, n_charges = n_charges, _checked(ledger, folder, output.name)
        if code == 0:  # it was faster than the timed one, and is no kill: once more, earlier
            instants.append((after_charge, delay * 0.8))
            continue
        result = Kills(result.outcomes, result.journals + journal)
        if output.exists() and output.stat().st_size:  # an empty file holds the name only
            outcome = "after the release was written"
        else:
            outcome = "between charge and release" if n_charges > before else "before the charge"
        result.outcomes[outcome] += 1
    _checked(ledger, folder, "*.json")
    return result


def _checked(ledger: Ledger, folder: Path, pattern: str) -> int:
    """Check the ledger and the releases that a run may have left; return the number of charges."""
    ledger.verify()
    charged = {charge.statement_id for charge in ledger.history()}
    for file in folder.glob(pattern):
        if file.stat().st_size and Release.load(file).statement.id not in charged:
            raise BrokenPromiseError(f"{file.name} was never charged")
    for file in folder.glob(".*.json"):  # what a killed process was writing when it died
        if _statement_id(file) not in {None, *charged}:
            raise BrokenPromiseError(f"{file.name} was never charged")
        file.unlink()
    return len(charged)


def _statement_id(file: Path) -> str | None:
    try:
        return str(json.loads(file.read_text())["statement"]["id"])
    except (ValueError, KeyError):
        return None


class _Run:
    """A run of ``ptclust cluster --ledger``."""

    def __init__(self, folder: Path, output: str) -> None:
        options = ["--epsilon", "1", "--linf", "1e-6", "--mechanism", "kruskal", "--output", output]
        options += ["--ledger", "ledger", "--dataset", _DATASET]
        options += ["--privacy-unit", "one trip", "--topology", "public"]
        command = [sys.executable, "-c", _RUN, "cluster", "edges.csv", *options]
        self._ledger = folder / "ledger"
        self._before = self._ledger.stat().st_mtime_ns
        self._start = time.monotonic()
        self._process = subprocess.Popen(  # noqa: S603
            command, cwd=folder, stderr=subprocess.DEVNULL
        )

    def until_charged(self) -> float:
        """Wait until the ledger changes, or the run ends; return the seconds since the start."""
        while self._process.poll() is None and self._ledger.stat().st_mtime_ns == self._before:
            time.sleep(0.0005)
        return time.monotonic() - self._start

    def until_ended(self) -> float:
        """Wait until the run ends; return the seconds since the start."""
        if self._process.wait() != 0:
            raise BrokenPromiseError("ptclust cluster --ledger failed without being killed")
        return time.monotonic() - self._start

    def killed_after(self, seconds: float) -> int:
        """Kill the run after some more seconds; return its exit code, negative if it was killed."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
        return self._process.wait()


def _write_graph(path: Path, n_nodes: int = 5000) -> None:
    """Write a ring with chords: large enough that drawing its noise takes a while."""
    chance = random.Random(0)  # noqa: S311
    lines = [
        f"{i},{(i + step) % n_nodes},{chance.random()}" for i in range(n_nodes) for step in (1, 7)
    ]
    path.write_text("source,target,distance\n" + "\n".join(lines) + "\n")


def _journal(path: Path) -> bool:
    journal = path.with_name(path.name + "-journal")
    return journal.exists() and journal.stat().st_size > 0


def _child(job: str, path: Path, *numbers: int) -> subprocess.Popen[str]:
    """Start this module as a process that waits for a line before it works on the ledger."""
    command = [sys.executable, "-m", _MODULE, job, str(path.resolve()), *map(str, numbers)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, text=True)  # noqa: S603


def _line(runner: subprocess.Popen[str]) -> str:
    if runner.stdout is None:
        raise BrokenPromiseError("a process without output")
    return runner.stdout.readline().strip()


def _rest(runner: subprocess.Popen[str]) -> str:
    """Return what is left of the output: `communicate` would lose lines that are in the buffer."""
    rest = "" if runner.stdout is None else runner.stdout.read()
    runner.communicate()
    return rest


def _go(runner: subprocess.Popen[str]) -> None:
    if runner.stdin is not None:
        runner.stdin.write("go\n")
        runner.stdin.flush()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _charge(path: Path, attempts: int, admitted: int) -> None:
    """Charge as often as it goes (child of `race`)."""
    ledger, part, got = Ledger.open(path), Budget.pure(Fraction(1, admitted)), 0
    _say("ready")
    sys.stdin.readline()
    for _ in range(attempts):
        try:
            ledger.charge(_DATASET, part, statement_id=str(uuid4()))
        except BudgetError:
            continue
        got += 1
    _say(str(got))


def _report(path: Path) -> None:
    """Charge until killed, and report every charge that has returned (child of `kill_chargers`)."""
    ledger, part = Ledger.open(path), Budget.pure(Fraction(1, 10**9))
    _say("ready")
    sys.stdin.readline()
    while True:
        statement_id = str(uuid4())
        ledger.charge(_DATASET, part, statement_id=statement_id)
        _say(statement_id)


def _shares(folder: Path, _: Numbers) -> str:
    parts = (3, 7, 10, 11, 49, 1000)
    for count in parts:
        shares_fit(folder / f"shares-{count}", count)
    return f"a budget in {', '.join(map(str, parts))} parts: all of them fit, and no more"


def _race(folder: Path, numbers: Numbers) -> str:
    processes, attempts, admitted, *_ = numbers
    start = time.monotonic()
    got = race(folder / "race", processes=processes, attempts=attempts, admitted=admitted)
    return (
        f"{processes} processes, {attempts:,} attempts each, a budget for {admitted:,}: "
        f"{sum(got):,} charged ({min(got):,} to {max(got):,} a process) "
        f"in {time.monotonic() - start:.0f} s"
    )


def _chargers(folder: Path, numbers: Numbers) -> str:
    return f"charging, {kill_chargers(folder / 'chargers', numbers.kills, seed=numbers.seed)}"


def _releases(folder: Path, numbers: Numbers) -> str:
    (folder / "releases").mkdir()
    return f"releasing, {kill_releases(folder / 'releases', numbers.kills, seed=numbers.seed)}"


PARTS = {"shares": _shares, "race": _race, "chargers": _chargers, "releases": _releases}


def run_stress(parts: Sequence[str], numbers: Numbers) -> Iterator[str]:
    """Run the named parts, or all of them, and yield a sentence for each."""
    if unknown := set(parts) - set(PARTS):
        raise UsageError(f"no part is called {min(unknown)}; there are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in parts or PARTS:
            yield PARTS[name](Path(folder), numbers)


if __name__ == "__main__":
    if sys.argv[1] == "charge":
        _charge(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        _report(Path(sys.argv[2]))
