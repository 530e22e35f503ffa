"""What `plan` predicts beside what is reached, and which cap `auto` chooses beside the best one.

A prediction knows what a user may know without a look at the weights: the public pairs, sensitivity
and budget, and about how many records and persons there are, with one digit. The distributions that
it draws from were set by hand on most of these graphs, reported and generated ones among them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from experiments._records import Records
from experiments._summary import wrapped
from experiments.heterogeneous import (
    KnownGraph,
    co_visits,
    degree_corrected_blocks,
    roads,
    visit_records,
    weighted_lfr,
)
from experiments.real import FILES, REAL, available, real_graph
from ptclust._statistics import agreement, seed_of
from ptclust._tables import aligned
from ptclust.building import graph_from_visits
from ptclust.building.caps import caps_of, counted
from ptclust.estimators import PTClust
from ptclust.planning import predict

if TYPE_CHECKING:
    from pathlib import Path

    from ptclust._types import Ints

__all__ = ["EXAMPLES", "PredictionReport", "run_prediction"]

HOPEFUL = 0.15  # a prediction that is this much above what is reached promised too much
CLOSE = 0.03  # what "auto" may be below the best cap
EPSILONS = (0.3, 1.0, 10.0)
CAPS = (2, 3, 4, 5, 7, 10, 15)
_DELTA = 1e-6
_PERSONS, _VISITS, _CLINICS, _DISTRICTS = 30_000, 200_000, 120, 10
Group = Literal["development", "reported", "generated"]


@dataclass(frozen=True)
class Example:
    """A graph whose clusters are known."""

    group: Group
    make: Callable[[], KnownGraph]
    persons: float | None = None  # of visits; of other graphs the number of records is said
    records: float | None = None


@cache
def hospital(seed: int) -> tuple[Any, Ints]:
    """Return visits of patients to clinics, and the district of every clinic."""
    random = np.random.default_rng([seed, _CLINICS])
    visits = _VISITS / _PERSONS
    rest = {"at_home": 0.6 + 0.1 * (seed % 3), "popularity": 0.5, "spread": 1.0}
    return visit_records(_PERSONS, _CLINICS, _DISTRICTS, random, visits=visits, **rest)


def clinics(seed: int, max_items: int | Literal["auto"]) -> KnownGraph:
    """Return how many patients two clinics have in common."""
    table, truth = hospital(seed)
    rest: dict[str, Any] = {"max_items": max_items, "_key": (seed, 2, 3)}
    if max_items == "auto":
        rest["caps_epsilon"] = 0.1
    graph = graph_from_visits(table, items=range(_CLINICS), **rest)
    assert graph.sensitivity is not None  # noqa: S101 - it was built
    return KnownGraph(graph, truth, graph.sensitivity)


_REPORTED = (
    "karate",
    "les-miserables",
    "southern-women",
    "hospital",
    "high-school",
    "iris",
    "wine",
)
EXAMPLES: dict[str, Example] = {
    **{name: Example("development", partial(real_graph, name)) for name in ("bike", *FILES)},
    **{name: Example("reported", partial(real_graph, name)) for name in _REPORTED},
    "co-visits, 10 places": Example(
        "generated", partial(co_visits, 20_000, 150, 6, seed=2), 20_000, 160_000
    ),
    **{
        f"clinics, {cap} of each": Example(
            "generated", partial(clinics, 11, cap), _PERSONS, _VISITS
        )
        for cap in (2, 10)
    },
    "blocks": Example("generated", partial(degree_corrected_blocks, 150, 5, seed=2)),
    "LFR": Example("generated", partial(weighted_lfr, 500, mu_t=0.4, mu_w=0.2, seed=2)),
    "roads": Example("generated", partial(roads, 300, 5, seed=2)),
}


def rounded(number: float) -> float:
    """Return the number with one digit.

    >>> rounded(314_634), rounded(0.4712)
    (300000.0, 0.5)
    """
    return float(round(number, -math.floor(math.log10(number))))


def run_prediction(
    output: Path,
    *,
    examples: list[str] | None = None,
    repetitions: int = 2,
    seed: int = 0,
    resume: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Predict and reach agreement on all examples, or on some, and compare caps of visits."""
    wanted = examples or [name for name in EXAMPLES if name not in REAL or available(name)]
    rows: list[dict[str, Any]] = []
    settings = {"repetitions": repetitions, "seed": seed}
    with Records.of(
        output, "prediction", ("example", "epsilon"), resume=resume, **settings
    ) as records:
        for name in wanted:
            run = _Run(EXAMPLES[name], repetitions, seed_of(seed, name))
            for epsilon in EPSILONS:
                progress(f"{name} at epsilon = {epsilon:g}")
                rows.append(records.made((name, epsilon), partial(run.compare, epsilon)))
                records.flush()
        for hospital_seed in () if examples else (11, 12, 13):
            for epsilon in EPSILONS[:-1]:
                name = f"caps of visits, seed {hospital_seed}"
                progress(f"{name} at epsilon = {epsilon:g}")
                compare = partial(_compare_caps, hospital_seed, epsilon, repetitions, seed)
                rows.append(records.made((name, epsilon), compare))
                records.flush()
    return rows


def _reached(known: KnownGraph, epsilon: float, delta: float, seed: int) -> float:
    model = PTClust(
        epsilon=epsilon,
        delta=delta,
        sensitivity=known.sensitivity,
        topology="public",
        random_state=seed,
    )
    return agreement(known.truth, model.fit(known.graph).labels_)


class _Run:
    """One example, made when it is first needed."""

    def __init__(self, example: Example, repetitions: int, seed: int) -> None:
        self.example, self.repetitions, self.seed = example, repetitions, seed
        self._known: KnownGraph | None = None

    def compare(self, epsilon: float) -> dict[str, Any]:
        """Return what is predicted and what is reached at one epsilon."""
        self._known = known = self._known or self.example.make()
        seeds = (seed_of(self.seed, epsilon, i) for i in range(self.repetitions))
        point = predict(
            known.graph.topology,
            sensitivity=known.sensitivity,
            delta=_DELTA,
            kind=known.graph.kind,
            total=self._total(known),
            epsilons=[epsilon],
            random_state=self.seed % 2**32,
        ).points[0]
        reached = [_reached(known, epsilon, _DELTA, seed) for seed in seeds]
        return {**point.to_dict(), "group": self.example.group, "reached": reached}

    def _total(self, known: KnownGraph) -> tuple[float, float] | None:
        built = known.graph.provenance
        if known.graph.kind == "distance":
            return None
        if self.example.persons is None or built is None:
            said = rounded(float(known.graph.weights.sum()))
            return said, said
        return counted(built.details, persons=self.example.persons, records=self.example.records)


def _compare_caps(
    hospital_seed: int, epsilon: float, repetitions: int, seed: int
) -> dict[str, Any]:
    """Return the ARI with every cap, pure, and which "auto" chooses."""
    built = clinics(hospital_seed, "auto").graph.provenance
    assert built is not None  # noqa: S101 - it was built
    chosen = caps_of(built.details)["max_items"]
    reached = {
        str(cap): float(
            np.mean(
                [
                    _reached(clinics(hospital_seed, cap), epsilon, 0.0, seed_of(seed, cap, i))
                    for i in range(repetitions)
                ]
            )
        )
        for cap in sorted({*CAPS, chosen})
    }
    return {"group": "caps", "chosen": chosen, "caps": reached}


class PredictionReport:
    """What ``run_prediction`` found, as a table to read and as JSON."""

    def __init__(self, rows: list[dict[str, Any]], command: str) -> None:
        self._command = command
        self._rows = [row for row in rows if row["group"] != "caps"]
        self._caps = [row for row in rows if row["group"] == "caps"]

    @property
    def misses(self) -> list[dict[str, Any]]:
        """Rows with a release outside the interval."""
        return [row for row in self._rows if _n_within(row) < len(row["reached"])]

    @property
    def hopeful(self) -> list[dict[str, Any]]:
        """Rows where three of four were to reach over 0.15 more than is reached in the mean."""
        return [row for row in self._rows if row["likely"] > np.mean(row["reached"]) + HOPEFUL]

    def to_json(self) -> str:
        """Return all rows as JSON."""
        return json.dumps({"command": self._command, "rows": [*self._rows, *self._caps]}, indent=2)

    def to_markdown(self) -> str:
        """Return the predicted interval beside what was reached, for every graph and epsilon."""
        shares = ", ".join(self._share(group) for group in ("development", "reported", "generated"))
        hopeful = ", ".join(f"{row['example']} at {row['epsilon']:g}" for row in self.hopeful)
        lines = [
            "# What `plan --predict` says, and what is reached",
            "",
            *wrapped(
                f"Made by `{self._command}`. A prediction is an interval in which the adjusted",
                "Rand index (ARI) of nine of ten graphs lies, and a number that three of four",
                "reach. It is made before anything is spent: graphs are planted on the public",
                "pairs and published as the real one would be. The number of clusters, their",
                "sizes and contrast, the tails of weights and the share of nodes whose group the",
                "weights do not show are drawn anew for each. Their distributions were set by hand",
                "after trials on most of these graphs: this is no held-out check. Said is",
                "about how many records there are, with one digit, and",
                "of visits how many persons; neither the number of clusters nor their contrast.",
            ),
            "",
            *wrapped(
                f"Releases within the interval: {shares}. Graphs and epsilons of which three of",
                f"four were to reach over {HOPEFUL} more than is reached: {hopeful or 'none'}.",
            ),
            "",
            *aligned(list(self._table())),
        ]
        if self._caps:
            lines += ["", *self._words_on_caps(), "", *aligned(list(self._table_of_caps()))]
        return "\n".join(lines)

    def _share(self, group: str) -> str:
        rows = [row for row in self._rows if row["group"] == group]
        n_within, n_all = sum(map(_n_within, rows)), sum(len(row["reached"]) for row in rows)
        return f"{n_within} of {n_all} on {group} graphs"

    def _table(self) -> Iterator[list[str]]:
        yield ["graph", *(f"epsilon {epsilon:g}: predicted, reached" for epsilon in EPSILONS)]
        for name in dict.fromkeys(row["example"] for row in self._rows):
            rows = {row["epsilon"]: row for row in self._rows if row["example"] == name}
            yield [name, *(_cell(rows[epsilon], row_misses=self.misses) for epsilon in rows)]

    def _words_on_caps(self) -> list[str]:
        close = sum(
            row["caps"][str(row["chosen"])] >= max(row["caps"].values()) - CLOSE
            for row in self._caps
        )
        return wrapped(
            f"Caps: {_VISITS:,} generated visits of {_PERSONS:,} patients to {_CLINICS} clinics in",
            f"{_DISTRICTS} districts; ARI with every cap, delta 0. The one that `auto` chooses,",
            f"with caps_epsilon 0.1, is within {CLOSE} of the best in {close} of",
            f"{len(self._caps)} rows.",
        )

    def _table_of_caps(self) -> Iterator[list[str]]:
        yield ["visits", "epsilon", *map(str, CAPS), "auto chooses"]
        for row in self._caps:
            values = (f"{row['caps'][str(cap)]:.2f}" for cap in CAPS)
            yield [row["example"], f"{row['epsilon']:g}", *values, str(row["chosen"])]


def _n_within(row: dict[str, Any]) -> int:
    """Return how many releases lie in the interval, to the two digits that are shown."""
    return sum(
        round(row["low"], 2) <= round(ari, 2) <= round(row["high"], 2) for ari in row["reached"]
    )


def _cell(row: dict[str, Any], *, row_misses: list[dict[str, Any]]) -> str:
    reached = ", ".join(f"{ari:.2f}" for ari in row["reached"])
    interval = f"{row['low']:.2f} to {row['high']:.2f} ({row['likely']:.2f})"
    return f"{interval}; {f'**{reached}**' if row in row_misses else reached}".replace(
        "-0.00", "0.00"
    )
