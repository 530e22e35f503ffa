"""What `plan` predicts beside what is reached, on examples whose clusters are known.

The prediction knows what a user may know without a look at the weights: the public pairs, the
sensitivity, the budget, and three numbers that are said, two of them with one digit: how many
records there are, how many clusters, and what share of the records of a pair within a cluster a
pair across has. It is right if it differs from what is reached by no more than 0.15.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from experiments._records import Records
from experiments._summary import wrapped
from experiments.heterogeneous import (
    co_visits,
    degree_corrected_blocks,
    roads,
    weighted_lfr,
)
from experiments.trips import districts
from ptclust._statistics import agreement, seed_of
from ptclust._tables import aligned
from ptclust.building import graph_from_flows
from ptclust.datasets import bike_rides
from ptclust.estimators import PTClust
from ptclust.graph import Graph
from ptclust.planning import predict
from ptclust.planning.planting import ACROSS_SHARE
from ptclust.privacy import Sensitivity

if TYPE_CHECKING:
    from pathlib import Path

    from ptclust._types import Ints

__all__ = ["EXAMPLES", "PredictionReport", "Said", "run_prediction"]

MOST = 0.15
_ALMOST_EXACT = 1e6  # an epsilon without noise to speak of
_KEY = (1, 2, 3)


class Known(Protocol):
    """A graph, its clusters if they are known, and what one unit can do to its weights."""

    @property
    def graph(self) -> Graph:
        """Counts of records."""

    @property
    def truth(self) -> Ints | None:
        """The cluster of every node; None if nobody knows."""

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the unit that is protected."""


class _Known(NamedTuple):
    graph: Graph
    truth: Ints | None  # None if nobody knows
    sensitivity: Sensitivity


def bikes() -> Known:
    """Return the bike rides and the cities of their stations; one ride is protected."""
    data = bike_rides()
    graph = graph_from_flows(data.rides, nodes=data.nodes)
    return _Known(graph, data.truth, Sensitivity(l1=1.0))


def trips(max_pairs: int, max_per_pair: int, width: int = 1) -> Known:
    """Return the trips of persons between districts; what their clusters are is unknown."""
    table, nodes = districts(width)
    graph = graph_from_flows(
        table,
        nodes=nodes,
        person="person",
        max_pairs=max_pairs,
        max_per_pair=max_per_pair,
        _key=_KEY,
    )
    assert graph.sensitivity is not None  # noqa: S101 - it was built
    return _Known(graph, None, graph.sensitivity)


def karate() -> Known:
    """Return the karate club, its factions, and how often members met; one time is protected."""
    import networkx as nx

    club = nx.karate_club_graph()
    graph = Graph.from_networkx(club, kind="similarity")
    faction = [club.nodes[node]["club"] for node in graph.names.tolist()]
    truth = np.unique(faction, return_inverse=True)[1].astype(np.int64)
    return _Known(graph, truth, Sensitivity(l1=1.0))


@dataclass(frozen=True)
class Example:
    """A graph whose clusters are known, or are taken to be those that are found without noise."""

    title: str
    make: Callable[[], Known]
    epsilons: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)


EXAMPLES = {
    "bikes": Example("bike rides, one ride", bikes, (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)),
    "trips": Example("trips, one person (5 pairs, 2 trips each)", partial(trips, 5, 2)),
    "districts": Example("trips between 19 districts (1 pair, 1 trip)", partial(trips, 1, 1, 10)),
    "covisits": Example(
        "co-visits, one person (10 places)", partial(co_visits, 20_000, 150, 6, seed=2)
    ),
    "karate": Example("karate club, one meeting", karate),
    "blocks": Example("blocks, one record", partial(degree_corrected_blocks, 150, 5, seed=2)),
    "lfr": Example("LFR, one record", partial(weighted_lfr, 500, mu_t=0.4, mu_w=0.2, seed=2)),
    "roads": Example("roads, one vehicle on one road", partial(roads, 300, 5, seed=2)),
}


@dataclass(frozen=True)
class Said:
    """What a user says about an example, numbers with one digit."""

    total: float
    n_clusters: int
    across: float
    """What share of the records of a pair within a cluster a pair across has."""

    @property
    def contrast(self) -> float:
        """The same as an option of the prediction."""
        return min(1.0, (1.0 - self.across) / (1.0 - ACROSS_SHARE))

    @classmethod
    def of(cls, graph: Graph, truth: Ints) -> Said:
        """Return what is true, rounded. A user would know it from elsewhere."""
        same = truth[graph.sources] == truth[graph.targets]
        across = graph.weights[~same].mean() / graph.weights[same].mean()
        return cls(_rounded(graph.weights.sum()), int(truth.max()) + 1, _rounded(across))


def _rounded(number: float) -> float:
    """Return the number with one digit.

    >>> _rounded(314_634), _rounded(0.4712)
    (300000.0, 0.5)
    """
    digits = -math.floor(math.log10(number))
    return float(round(number, digits))


def run_prediction(
    output: Path,
    *,
    examples: list[str] | None = None,
    clusterer: str = "auto",
    repetitions: int = 5,
    seed: int = 0,
    resume: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Predict and reach agreement on all examples, or on some; return a record for each epsilon."""
    settings = {"clusterer": clusterer, "repetitions": repetitions, "seed": seed}
    rows: list[dict[str, Any]] = []
    with Records.of(
        output, "prediction", ("example", "epsilon"), resume=resume, **settings
    ) as records:
        for name in examples or EXAMPLES:
            progress(f"Making {name}")
            run = _Run(EXAMPLES[name], clusterer, repetitions, seed_of(seed, name))
            for epsilon in EXAMPLES[name].epsilons:
                progress(f"{name} at epsilon = {epsilon:g}")
                key = name, epsilon
                rows.append(records.made(key, partial(run.compare, epsilon)))
                records.flush()
    return rows


class _Run:
    """One example, made when it is first needed."""

    def __init__(self, example: Example, clusterer: str, repetitions: int, seed: int) -> None:
        self.example, self.clusterer = example, clusterer
        self.repetitions, self.seed = repetitions, seed
        self._made: tuple[Known, Ints] | None = None

    @property
    def made(self) -> tuple[Known, Ints]:
        """The graph and its clusters."""
        if self._made is None:
            known = self.example.make()
            truth = known.truth
            self._made = known, self._labels(known, _ALMOST_EXACT, 0) if truth is None else truth
        return self._made

    def _labels(self, known: Known, epsilon: float, repetition: int) -> Ints:
        model = PTClust(
            epsilon=epsilon,
            sensitivity=known.sensitivity,
            clusterer=self.clusterer,
            topology="public",
            random_state=seed_of(self.seed, epsilon, repetition),
        )
        return model.fit(known.graph).labels_

    def compare(self, epsilon: float) -> dict[str, Any]:
        """Return what is predicted and what is reached at one epsilon."""
        known, truth = self.made
        reached = [
            agreement(truth, self._labels(known, epsilon, i)) for i in range(self.repetitions)
        ]
        n_clusters = int(truth.max()) + 1
        result = {"reached": float(np.mean(reached)), "n_clusters": n_clusters}
        if n_clusters == 1:
            return {**result, "predicted": None, "said": None, "topology": 1}
        said = Said.of(known.graph, truth)
        prediction = predict(
            known.graph.topology,
            sensitivity=known.sensitivity,
            delta=0,
            kind="similarity",
            sizes=[max(2, round(known.graph.n_nodes / said.n_clusters))],
            total=said.total,
            contrast=said.contrast,
            epsilons=[epsilon],
            repetitions=self.repetitions,
            clusterer=self.clusterer,
            random_state=self.seed % 2**32,
        )
        (point,) = prediction.curves[0].points
        shown = prediction.topology_clusters
        return {**result, "predicted": point.ari, "said": asdict(said), "topology": shown}


class PredictionReport:
    """What ``run_prediction`` found, as a table to read and as JSON."""

    def __init__(self, rows: list[dict[str, Any]], command: str) -> None:
        self._rows, self._command = rows, command

    @property
    def misses(self) -> list[dict[str, Any]]:
        """Where predicted and reached differ by more than 0.15."""
        return [row for row in self._compared if abs(row["predicted"] - row["reached"]) > MOST]

    @property
    def _compared(self) -> list[dict[str, Any]]:
        """Where there is something to predict, and the topology alone does not show clusters."""
        return [row for row in self._rows if row["predicted"] is not None and row["topology"] == 1]

    def to_json(self) -> str:
        """Return all rows as JSON."""
        return json.dumps({"command": self._command, "rows": self._rows}, indent=2)

    def to_markdown(self) -> str:
        """Return what was said of every example, and both numbers at every epsilon."""
        right = len(self._compared) - len(self.misses)
        lines = [
            "# What `plan --predict` says, and what is reached",
            "",
            *wrapped(
                f"Made by `{self._command}`. On {right} of {len(self._compared)} rows the",
                f"predicted and the reached ARI differ by at most {MOST}. The prediction knows the",
                "public pairs, sensitivity and budget, and what a user has to say: about how many",
                "records there are, how many clusters, and what share of a pair within a cluster a",
                "pair across has; no weight. What is reached is the mean over draws, against the",
                "known clusters, or, where nobody knows them, those found without noise. Where the",
                "topology alone shows clusters, whatever the weights, the prediction says so, and",
                "is about others; these rows do not count.",
            ),
            "",
            *aligned(list(self._table())),
        ]
        return "\n".join(lines)

    def _table(self) -> Iterator[list[str]]:
        yield ["example", "said", "epsilon", "predicted", "reached", "differ"]
        for row in self._rows:
            title, epsilon = EXAMPLES[row["example"]].title, f"{row['epsilon']:g}"
            reached = f"{row['reached']:.2f}"
            if row["predicted"] is None:
                yield [title, "one cluster without noise", epsilon, "-", reached, "-"]
                continue
            said = row["said"]
            words = f"{said['total']:,.0f} records, {said['n_clusters']} clusters, "
            words += f"across {said['across']:g}"
            differ = f"{abs(row['predicted'] - row['reached']):.2f}"
            if row["topology"] > 1:
                differ = f"topology shows {row['topology']}"
            elif row in self.misses:
                differ = f"**{differ}**"
            yield [title, words, epsilon, f"{row['predicted']:.2f}", reached, differ]
