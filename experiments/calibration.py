"""What the calibration of noise is worth: the epsilon of the same clusters, now and by way of zCDP.

Clusters see of the budget no more than the scale of the noise. So the epsilon that a family needs
is searched once, by bisection, and what a release with the very same noise would have cost by way
of zCDP follows from the rho of that noise. Graphs and noise are those of the utility benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments._code import code_digest
from experiments._records import Records
from experiments._summary import as_csv, margin_of, page, save_files, save_report
from experiments.intersections import gains_table
from experiments.means import GOAL
from experiments.methods import METHODS, Plans, release_of
from experiments.settings import BENCHMARK, DELTA, HETEROGENEOUS
from experiments.utility import SEED, Case
from ptclust._statistics import agreement, seed_of
from ptclust.privacy import Budget, Sensitivity
from ptclust.privacy.noise import gaussian_noise_alone, spent_by

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.settings import Setting
    from ptclust.planning import Plan

__all__ = ["CalibrationReport", "run_calibration"]

LEAST_FALL = 0.06
"""The goal: epsilon falls by at least so much wherever noise is Gaussian."""
_SMALLEST, _LARGEST = 0.02, 20.0
_FINE = 1.03  # the factor within which the epsilon that is needed is found
_EXAMPLES = (0.01, 0.1, 1.0, 5.0, 10.0)  # epsilons of which the fall is said
_AUTO = METHODS[0]


class Promise(NamedTuple):
    """An epsilon at which the goal should be reached."""

    setting: str
    epsilon: float
    delta: float
    exempt: tuple[str, ...]


PROMISES = (
    Promise("linf-10000", 1.2, 1e-6, ("chains",)),
    Promise("linf-1000", 6.0, 0.0, ("chains", "multiscale")),
)
SEARCHED = ("linf-1000", "linf-100", "sparse-1000", "dense-1000", "l1-100", "co-visits")
_ALL = {setting.name: setting for setting in (*BENCHMARK, *HETEROGENEOUS)}


def run_calibration(
    directory: Path,
    repetitions: int,
    *,
    only: Sequence[str] | None = None,
    promises_only: bool = False,
    seed: int = SEED,
    resume: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Search the epsilon of every family, and measure every promise; return a record for each.

    ``only`` some settings are searched, and no promise measured, if they are given; or none is
    searched, and promises only are measured.
    Records are kept in ``results.jsonl`` of ``directory``, as those of the utility benchmark are.
    """
    found = []
    made_with = {"seed": seed, "code": code_digest(), "repetitions": repetitions}
    key = "setting", "family", "asked", "epsilon"
    with Records.of(directory, "calibration", key, resume=resume, **made_with) as records:
        for name in () if promises_only else only or SEARCHED:
            for family in _ALL[name].shapes:
                trial = Trial(_ALL[name], family, repetitions, seed)
                progress(f"{family}, {trial.setting.title}: epsilon for an ARI of {GOAL}")
                found.append(records.made((name, family, _AUTO.name, None), trial.search))
                records.flush()
        for promise in () if only else PROMISES:
            setting = replace(_ALL[promise.setting], delta=promise.delta)
            for family in setting.shapes:
                progress(f"{family}, {setting.title}: epsilon = {promise.epsilon:g}")
                at = partial(Trial(setting, family, repetitions, seed).measured, promise.epsilon)
                made = promise.setting, family, _AUTO.name, promise.epsilon
                found.append(records.made(made, at))
                records.flush()
    return found


@dataclass(frozen=True)
class Trial:
    """Graphs of one family, the same at every epsilon, each with noise from a seed of its own."""

    setting: Setting
    family: str
    repetitions: int
    seed: int

    def search(self) -> dict[str, Any]:
        """Return the least epsilon of a mean ARI of the goal, by bisection, and what it was."""
        low, high = _SMALLEST, _LARGEST
        best = self.measured(high)
        if best["ari"] < GOAL:
            return {**best, "needed": None}
        while high / low > _FINE:
            middle = float(np.sqrt(low * high))
            found = self.measured(middle)
            if found["ari"] >= GOAL:
                high, best = middle, found
            else:
                low = middle
        return {**best, "needed": high}

    def measured(self, epsilon: float) -> dict[str, Any]:
        """Return the mean ARI at an epsilon, and the epsilon of the same noise by way of zCDP."""
        plans, scores = Plans(self.setting), []
        for repetition in range(self.repetitions):
            graph, truth = Case(self.setting, self.family, repetition, self.seed).known()
            planned = plans.get(graph, _AUTO, epsilon)
            # The same noise at every epsilon, but for its scale: the ARI grows smoothly.
            state = seed_of(self.seed, self.setting.name, self.family, repetition)
            release = release_of(graph, planned, clusterer=_AUTO.name, random_state=state)
            scores.append(agreement(truth, release.labels))
        return {
            "ari": float(np.mean(scores)),
            "margin": margin_of(scores),
            "by_zcdp": epsilon_by_zcdp(planned, self.setting.delta),
            "deviation": planned.chosen.weights.standard_deviation,
            "mechanism": planned.chosen.mechanism,
            "clusterer": release.clusterer,
        }


def epsilon_by_zcdp(planned: Plan, delta: float) -> float | None:
    """Return what the noise of a plan costs by way of zCDP at a delta; None if it is pure."""
    spent = planned.chosen.spent
    if spent.kind == "pure" or spent.implied_zcdp is None:
        return None
    return spent.implied_zcdp.epsilon_at(delta)


_PAGE = """\
# What the calibration of noise is worth

Made by `{{ command }}`. Graphs and noise are those of the [benchmark of utility](utility.md), with
ptclust's defaults; means of {{ repetitions }} graphs. Every family is in
[calibration.csv](calibration.csv).

## Gaussian noise by its own curve

*needed* is the epsilon of a mean ARI of {{ goal }}, by bisection to {{ fine }}, at delta = 1e-6;
*by_zcdp* is the epsilon of the same noise by way of zCDP with OpenDP's tight conversion, as it was
before [the exact curve](proofs/gaussian-curve.md). Epsilon falls by at least {{ least }}, the goal,
in {{ fallen }} of {{ total }} families with Gaussian noise. The fall depends on epsilon and delta
alone: {{ falls }}. Where one unit changes few weights (l1), the default is Laplace noise, for which
pure privacy is exact already.

## At a given epsilon

The goal is a mean ARI of {{ goal }} with the defaults. {{ kept }}

## The K-norm mechanism of two bounds

Under pure privacy let one unit move k of m weights by at most 1 (linf = 1, l1 = k). The best noise
of this kind has a density that falls with the norm whose ball is the intersection of both balls.
[calibration-k-norm.csv](calibration-k-norm.csv) has its standard deviation on one weight, in units
of m / epsilon, beside those of Laplace and cube noise, of which the plan takes the smaller. It is
less than the smaller by at most {{ gain }}, at k / m = {{ share }}, and by {{ gain_at_tenth }} at
k / m = 0.1.
"""


class CalibrationReport:
    """What ``run_calibration`` found, as a page to read, as CSV and as JSON."""

    def __init__(self, rows: list[dict[str, Any]], repetitions: int, command: str) -> None:
        self._repetitions, self._command = repetitions, command
        self._searched = [row for row in rows if row["epsilon"] is None]
        self._promised = [row for row in rows if row["epsilon"] is not None]

    @property
    def short(self) -> list[dict[str, Any]]:
        """Families with Gaussian noise whose epsilon fell by less than the goal."""
        falls = [(row, _fall(row)) for row in self._searched]
        return [row for row, fall in falls if fall is not None and fall < LEAST_FALL]

    def to_json(self) -> str:
        """Return all rows as JSON."""
        rows = {"searched": self._searched, "promised": self._promised}
        return json.dumps({"command": self._command, **rows}, indent=2)

    def to_markdown(self) -> str:
        """Return the page."""
        gaussian = [row for row in self._searched if _fall(row) is not None]
        fallen = len(gaussian) - len(self.short)
        gains = gains_table()[1:]
        most = max(gains, key=lambda row: float(row[4].rstrip("%")))
        return page(
            _PAGE,
            command=self._command,
            repetitions=self._repetitions,
            goal=GOAL,
            fine=f"{_FINE - 1:.0%}",
            least=f"{LEAST_FALL:.0%}",
            fallen=fallen,
            total=len(gaussian),
            falls=", ".join(_falls_at(epsilon) for epsilon in _EXAMPLES),
            kept=self._kept(),
            gain=most[4],
            share=most[0],
            gain_at_tenth=next(row[4] for row in gains if row[0] == "0.1"),
        )

    def to_csv(self) -> str:
        """Return one row per family: the epsilon that it needs, or the ARI at a given epsilon."""
        names = "setting", "family", "noise", "epsilon", "delta", "ari", "margin", "verdict"
        rows = [[*names, "deviation", "by_zcdp", "needed", "fall"]]
        for row in self._searched:
            start = [_ALL[row["setting"]].title, row["family"], row["mechanism"]]
            fall, before = _fall(row), row["by_zcdp"]
            if row["needed"] is None:
                reached = [f"{_LARGEST:g}", f"{DELTA:g}", *_score(row), "not reached"]
                rows.append([*start, *reached, *[""] * 4])
                continue
            found = [
                f"{row['deviation']:.3g}",
                "" if before is None else f"{before:.3f}",
                f"{row['needed']:.3f}",
                "" if fall is None else f"{fall:.1%}",
            ]
            rows.append([*start, *[""] * 5, *found])
        for promise, row in self._promises():
            start = [_ALL[row["setting"]].title, row["family"], row["mechanism"]]
            at = [f"{promise.epsilon:g}", f"{promise.delta:g}", *_score(row)]
            rows.append([*start, *at, _verdict(promise, row), *[""] * 4])
        return as_csv(rows)

    def save(self, directory: Path) -> None:
        """Write ``calibration.md``, ``.csv``, ``.json`` and the table of the K-norm mechanism."""
        save_report(self, directory, "calibration")
        save_files({"calibration-k-norm.csv": as_csv(gains_table())}, directory)

    def _promises(self) -> Iterator[tuple[Promise, dict[str, Any]]]:
        for promise in PROMISES:
            for row in self._promised:
                if (row["setting"], row["epsilon"]) == (promise.setting, promise.epsilon):
                    yield promise, row

    def _kept(self) -> str:
        """Return how many families reach the goal, and which do not."""
        sentences = []
        for promise in PROMISES:
            rows = [row for each, row in self._promises() if each is promise]
            where = f"{_ALL[promise.setting].title}, epsilon = {promise.epsilon:g}"
            kinds = [_verdict(promise, row) for row in rows]
            others = [
                f"{row['family']} {kind} ({_score(row)[0]})"
                for row, kind in zip(rows, kinds, strict=True)
                if kind != "reached"
            ]
            rest = f"; {', '.join(others)}" if others else ""
            reached = f"{kinds.count('reached')} of {len(rows)} families reach it"
            sentences.append(f"{where}, delta = {promise.delta:g}: {reached}{rest}.")
        return " ".join(sentences)


def _verdict(promise: Promise, row: dict[str, Any]) -> str:
    if row["family"] in promise.exempt:
        return "not requested"
    return "reached" if row["ari"] >= GOAL else "missed"


def _score(row: dict[str, Any]) -> tuple[str, str]:
    return f"{row['ari']:.2f}", "" if row["margin"] is None else f"{row['margin']:.2f}"


def _falls_at(epsilon: float) -> str:
    """Return by what part Gaussian noise of this epsilon is cheaper than by way of zCDP."""
    one, budget = Sensitivity(l2=1.0), Budget.approximate(epsilon, DELTA)
    on_noise = spent_by(gaussian_noise_alone(one, 1000, budget), one)
    fall = 0.0 if on_noise is None else 1.0 - epsilon / on_noise.epsilon_at(DELTA)
    return f"{fall:.1%} at {epsilon:g}"


def _fall(row: dict[str, Any]) -> float | None:
    """Return by what part epsilon fell; None if it is not needed, or of pure noise."""
    if row["needed"] is None or row["by_zcdp"] is None:
        return None
    return float(1.0 - row["needed"] / row["by_zcdp"])
