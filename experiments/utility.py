"""How much epsilon the clusters cost: agreement with known clusters, for methods and controls.

Every repetition draws a new graph (unless it is a real one) and new noise, both from the seed, so
that a run can be repeated and resumed. Methods that cluster the output of the same mechanism get
the same release: they differ in the clustering alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._code import code_digest
from experiments._records import Records
from experiments.controls import CONTROLS, Control, with_equal_weights
from experiments.methods import Method, Plans, release_of
from experiments.real import available, real_graph
from experiments.scores import agreement, information
from experiments.settings import BENCHMARK, SETTINGS, Effort, Setting, drawn
from ptclust._statistics import seed_of
from ptclust.clustering import ClusteringRequest, dbmstclu
from ptclust.errors import PrivacyWarning
from ptclust.trees import minimum_spanning_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from ptclust.datasets import PlantedGraph
    from ptclust.graph import Graph
    from ptclust.planning import Plan
    from ptclust.release import Release

__all__ = [
    "BENCHMARK",
    "CONTROLLED",
    "EQUAL_AT",
    "SEED",
    "SETTINGS",
    "Case",
    "Effort",
    "Method",
    "Plans",
    "Setting",
    "agreement",
    "equal_name",
    "run_utility",
]

SEED = 1000
"""Of the benchmark. Methods were designed on graphs of other seeds."""
CONTROLLED = ("auto", "contraction", "levels")
"""Methods that are also run where all weights are equal, at these epsilons:"""
EQUAL_AT = (0.5, 1.0, 2.0, 10.0)
_LARGEST = {"published": 100.0, "sound": 100.0}
_ELSE = 20.0  # the other methods need no larger epsilon to show what they can do
_KEY = "setting", "family", "method", "epsilon", "repetition"


def run_utility(
    directory: Path,
    effort: Effort,
    *,
    seed: int = SEED,
    resume: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Measure every method and control on every graph; return one record for each run.

    Records are appended to ``results.jsonl`` in ``directory`` as they are made, and those found
    there are not made again unless ``resume`` is false; those of other code or another seed are
    refused. A record holds setting, family, method, epsilon (None for controls without),
    repetition, ari, nmi, n_clusters, the epsilon that was truly spent, the mechanism and the
    clusterer. Real graphs whose package is not installed are left out.

    Parameters
    ----------
    directory : Path
        Created if need be.
    effort : Effort
    seed : int, default 1000
    resume : bool, default True
    progress : callable
        Progress callback.
    """
    settings = {"seed": seed, "code": code_digest()}
    wanted = []
    with (
        Records.of(directory, "utility", _KEY, resume=resume, **settings) as records,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", PrivacyWarning)  # the published calibration is on show here
        for setting in effort.settings:
            plans = Plans(setting)
            for family in setting.shapes:
                if setting.real and not available(family):
                    continue
                n_repetitions = effort.repetitions[setting.size]
                for repetition in range(n_repetitions):
                    progress(f"{family}, {setting.title}: {repetition + 1} of {n_repetitions}")
                    trial = _Trial(Case(setting, family, repetition, seed), plans)
                    epsilons = effort.epsilons[setting.size]
                    wanted += list(_records(trial, epsilons, records))
                    records.flush()
    return wanted


def _records(
    trial: _Trial, epsilons: tuple[float, ...], records: Records
) -> Iterator[dict[str, Any]]:
    """Yield the records of a trial; the graph is made only if one of them is missing."""
    case = trial.case

    def key(name: str, epsilon: float | None) -> tuple[Any, ...]:
        return case.setting.name, case.family, name, epsilon, case.repetition

    for control in CONTROLS:
        yield records.made(key(control.name, None), partial(trial.compare, control))
    for epsilon in epsilons:
        for method in case.setting.methods:
            if epsilon > _LARGEST.get(method.name, _ELSE):
                continue
            for equal in (False, True):
                if not equal:
                    name = method.name
                elif method.name in CONTROLLED and epsilon in EQUAL_AT:
                    name = equal_name(method.name)
                else:
                    continue
                run = partial(trial.measure, method, epsilon, equal=equal)
                yield records.made(key(name, epsilon), run)
        trial.forget()


def equal_name(method: str) -> str:
    """Return the name under which records of a method have that saw equal weights."""
    return f"{method}-equal"


@dataclass(frozen=True)
class Case:
    """One repetition on one family, or real graph, in one setting."""

    setting: Setting
    family: str
    repetition: int
    seed: int

    def planted(self) -> PlantedGraph:
        """Return the planted graph of this repetition."""
        seed = seed_of(self.seed, self.family, self.repetition) % 2**32
        return drawn(self.setting, self.family, seed)

    def known(self) -> tuple[Graph, NDArray[np.int64] | None]:
        """Return the graph, planted or real, and its clusters, if they are known."""
        known = real_graph(self.family) if self.setting.real else self.planted()
        return known.graph, known.truth


class _Trial:
    """All that is measured on one graph."""

    def __init__(self, case: Case, plans: Plans) -> None:
        self.case = case
        self._plans = plans
        self._releases: dict[object, Release] = {}

    @cached_property
    def _known(self) -> tuple[Graph, NDArray[np.int64] | None]:
        return self.case.known()

    @cached_property
    def _equal(self) -> Graph:
        return with_equal_weights(self._known[0])

    def compare(self, control: Control) -> dict[str, Any]:
        """Return the record of a control."""
        labels = control.labels(self._known[0], len(np.unique(self._truth)))
        return {
            **_scores(self._truth, labels),
            "true_epsilon": None,
            "mechanism": None,
            "clusterer": None,
        }

    def measure(self, method: Method, epsilon: float, *, equal: bool) -> dict[str, Any]:
        """Return the record of a method."""
        release, planned = self._release(method, epsilon, equal=equal)
        return {
            **_scores(self._truth, release.labels),
            "true_epsilon": float(planned.chosen.spent.epsilon),
            "mechanism": planned.chosen.mechanism,
            "clusterer": release.clusterer,
        }

    @cached_property
    def _truth(self) -> NDArray[np.int64]:
        """The clusters to find; where nobody knows them, those of DBMSTClu without privacy."""
        graph, truth = self._known
        return dbmstclu(minimum_spanning_tree(graph)).labels if truth is None else truth

    def _release(self, method: Method, epsilon: float, *, equal: bool) -> tuple[Release, Plan]:
        """Return the clusters of a release; what methods have in common is done once."""
        graph = self._equal if equal else self._known[0]
        planned = self._plans.get(graph, method, epsilon)
        case = self.case
        begins = planned.chosen.mechanism, method.pure, method.calibration, epsilon, equal
        request = ClusteringRequest(clusterer=method.clusterer)
        clusterer = planned.choose_clusterer(request).name
        if (begins, "dbmstclu") not in self._releases:
            state = seed_of(case.seed, case.setting.name, case.family, case.repetition, *begins)
            self._releases[begins, "dbmstclu"] = release_of(
                graph, planned, clusterer="dbmstclu", random_state=state
            )
        if (begins, clusterer) not in self._releases:
            drawn_once = self._releases[begins, "dbmstclu"]
            self._releases[begins, clusterer] = drawn_once.recluster(clusterer)
        return self._releases[begins, clusterer], planned

    def forget(self) -> None:
        """Drop the releases, of which no further method will make use."""
        self._releases.clear()


def _scores(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "ari": agreement(truth, labels),
        "nmi": information(truth, labels),
        "n_clusters": len(np.unique(labels)),
    }
