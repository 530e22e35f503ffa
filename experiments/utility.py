"""How much epsilon the clusters cost: agreement with known clusters, for methods and controls.

Every repetition draws a new graph (unless it is a real one) and new noise, both from the seed, so
that a run can be repeated and resumed. Methods that cluster the output of the same mechanism get
the same release: they differ in the clustering alone.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from experiments._code import code_digest
from experiments._records import Records
from experiments.controls import Control, with_equal_weights
from experiments.methods import Method, Plans, release_of
from experiments.real import REAL, available
from experiments.settings import BENCHMARK, EQUAL_AT, SETTINGS, Effort, Setting, drawn
from ptclust._statistics import agreement, seed_of
from ptclust.clustering import ClusteringRequest
from ptclust.errors import PrivacyWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from experiments.heterogeneous import KnownGraph
    from ptclust.datasets import PlantedGraph
    from ptclust.graph import Graph
    from ptclust.planning import Plan
    from ptclust.release import Release

__all__ = [
    "BENCHMARK",
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

T = TypeVar("T")
SEED = 1000
"""Of the benchmark. Methods were designed on graphs of other seeds."""
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
    repetition, ari, nmi, n_clusters, the epsilon that was truly spent, the mechanism, the
    clusterer, and whether weights support the clusters, if it says so; of graphs that are not
    planted, also the CPU time of clustering. Real graphs that are not there are left out.

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
            for family in setting.shapes:
                if family in REAL and not available(family):
                    continue
                plans = Plans(setting)
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

    for control in case.setting.controls:
        yield records.made(key(control.name, None), partial(trial.compare, control))
    for epsilon in epsilons:
        for method in case.setting.methods:
            if epsilon > _LARGEST.get(method.name, _ELSE):
                continue
            for equal in (False, True):
                if not equal:
                    name = method.name
                elif method.name in case.setting.controlled and epsilon in EQUAL_AT:
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

    def known(self) -> tuple[Graph, NDArray[np.int64]]:
        """Return the graph and its clusters; graphs that are not planted have seeds in a row."""
        known: PlantedGraph | KnownGraph
        if self.setting.make is None:
            known = self.planted()
        else:
            known = self.setting.make(self.family, self.seed + self.repetition)
        return known.graph, known.truth


class _Trial:
    """All that is measured on one graph."""

    def __init__(self, case: Case, plans: Plans) -> None:
        self.case = case
        self._plans = plans
        self._releases: dict[object, tuple[Release, float]] = {}

    @cached_property
    def _known(self) -> tuple[Graph, NDArray[np.int64]]:
        return self.case.known()

    @cached_property
    def _equal(self) -> Graph:
        return with_equal_weights(self._known[0])

    def compare(self, control: Control) -> dict[str, Any]:
        """Return the record of a control."""
        graph, truth = self._known
        return {
            **_scores(truth, control.labels(graph, truth)),
            "true_epsilon": None,
            "mechanism": None,
            "clusterer": None,
        }

    def measure(self, method: Method, epsilon: float, *, equal: bool) -> dict[str, Any]:
        """Return the record of a method."""
        truth = self._known[1]
        release, planned, cpu = self._release(method, epsilon, equal=equal)
        labels = release.labels
        if method.search is not None:
            labels, cpu = _timed(partial(method.search, release, truth))
        record = {
            **_scores(truth, labels),
            "true_epsilon": float(planned.chosen.spent.epsilon),
            "mechanism": planned.chosen.mechanism,
            "clusterer": release.clusterer if method.search is None else None,
        }
        evidence = None if release.clustering is None else release.clustering.evidence
        if method.search is None and evidence is not None:
            record["by_weights"] = evidence.has_weights
        return record if self.case.setting.planted else {**record, "cpu": cpu}

    def _release(
        self, method: Method, epsilon: float, *, equal: bool
    ) -> tuple[Release, Plan, float]:
        """Return the clusters of a release, its plan, and the CPU time of clustering.

        What methods have in common is done once.
        """
        graph = self._equal if equal else self._known[0]
        planned = self._plans.get(graph, method, epsilon)
        case = self.case
        begins = planned.chosen.mechanism, method.pure, method.calibration, epsilon, equal
        request = ClusteringRequest(clusterer=method.clusterer)
        clusterer = planned.choose_clusterer(request).name
        if (begins, "dbmstclu") not in self._releases:
            state = seed_of(case.seed, case.setting.name, case.family, case.repetition, *begins)
            draw = partial(release_of, graph, planned, clusterer="dbmstclu", random_state=state)
            self._releases[begins, "dbmstclu"] = _timed(draw)
        if (begins, clusterer) not in self._releases:
            drawn_once = self._releases[begins, "dbmstclu"][0]
            self._releases[begins, clusterer] = _timed(partial(drawn_once.recluster, clusterer))
        release, cpu = self._releases[begins, clusterer]
        return release, planned, cpu

    def forget(self) -> None:
        """Drop the releases, of which no further method will make use."""
        self._releases.clear()


def _timed(run: Callable[[], T]) -> tuple[T, float]:
    """Return what a function returns, and the CPU time that it took."""
    began = time.process_time()
    return run(), time.process_time() - began


def _scores(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "ari": agreement(truth, labels),
        "nmi": float(normalized_mutual_info_score(truth, labels)),
        "n_clusters": len(np.unique(labels)),
    }
