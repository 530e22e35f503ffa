"""How much epsilon the clusters cost: agreement with planted clusters, method by method, control by control.

Planted graphs, sensitivities and budgets are those of section 5 of the mathematics. Every repetition draws a new
graph and new noise, both from the seed, so that a run can be repeated and resumed.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ptclust._version import __version__
from ptclust.errors import FileError, PrivacyWarning
from ptclust.experiments._records import Records
from ptclust.experiments.controls import CONTROLS, Control
from ptclust.experiments.planted import PAPER, Family, PlantedGraph, planted_graph
from ptclust.pipeline import publish
from ptclust.privacy import Sensitivity
from ptclust.privacy.plan import Plan, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ptclust.graph import Graph

__all__ = [
    "SETTINGS",
    "Case",
    "Effort",
    "Method",
    "Plans",
    "Setting",
    "agreement",
    "number_of",
    "run_utility",
]

_KEY = "setting", "family", "method", "epsilon", "repetition"
_Outcome = tuple["NDArray[np.int64]", float | None]  # labels, and the epsilon truly spent


@dataclass(frozen=True)
class Method:
    """A private way to clusters: a mechanism, its budget and its calibration."""

    name: str
    title: str
    tree: Literal["kruskal", "pamst", "gaussian", "laplace"]
    pure: bool
    """Whether it is run with delta = 0, whatever delta the setting allows."""
    calibration: Literal["sound", "published"] = "sound"


@dataclass(frozen=True)
class Setting:
    """A size of graph, a notion of neighbours, a delta, and the methods that fit them."""

    name: str
    title: str
    n_nodes: int
    sensitivity: Sensitivity
    delta: float
    methods: tuple[Method, ...]
    complete: bool = False


_PAPER = (
    Method("published", "PTClust as published", "pamst", pure=True, calibration="published"),
    Method("sound", "PTClust, sound", "pamst", pure=True),
)
_ZCDP = (
    *_PAPER,
    Method("pamst", "PAMST zCDP + Gaussian", "pamst", pure=False),
    Method("kruskal", "Kruskal zCDP + Gaussian", "kruskal", pure=False),
    Method("perturbation", "graph perturbation, Gaussian", "gaussian", pure=False),
)
_PURE = (
    *_PAPER,
    Method("kruskal", "Kruskal + Laplace, pure", "kruskal", pure=True),
    Method("perturbation", "graph perturbation, Laplace", "laplace", pure=True),
)
SETTINGS = (
    Setting(
        "linf-100", "n = 100, linf = 0.001, delta = 1e-6", 100, Sensitivity(linf=1e-3), 1e-6, _ZCDP
    ),
    Setting(
        "linf-1000",
        "n = 1000, linf = 0.0005, delta = 1e-6",
        1000,
        Sensitivity(linf=5e-4),
        1e-6,
        _ZCDP,
    ),
    Setting(
        "l1-100",
        "n = 100, complete graph, l1 = 0.1, delta = 0",
        100,
        Sensitivity(l1=0.1),
        0.0,
        _PURE,
        complete=True,
    ),
)


@dataclass(frozen=True)
class Effort:
    """How long to work on it."""

    epsilons: tuple[float, ...]
    repetitions: dict[int, int]
    """Number of repetitions for a number of nodes."""

    @classmethod
    def quick(cls) -> Effort:
        """Return about a minute of work."""
        decade = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
        return cls((*decade, 10.0, 15.0, 20.0, 30.0, 50.0, 70.0, 100.0), {100: 16, 1000: 16})

    @classmethod
    def full(cls) -> Effort:
        """Return a finer grid and narrower intervals."""
        grid = {*np.geomspace(0.1, 100.0, 31).tolist(), *cls.quick().epsilons}
        return cls(tuple(sorted({float(f"{value:.2g}") for value in grid})), {100: 100, 1000: 40})

    def with_repetitions(self, repetitions: int) -> Effort:
        """Return the same grid with as many repetitions for every size."""
        return Effort(self.epsilons, dict.fromkeys(self.repetitions, repetitions))


def run_utility(
    directory: Path,
    effort: Effort,
    *,
    seed: int = 0,
    resume: bool = True,
    settings: Sequence[Setting] = SETTINGS,
    stage: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Measure every method and control on every planted graph; return one record for each run.

    Records are appended to ``results.jsonl`` in ``directory`` as they are made, and those found there are not made
    again unless ``resume`` is false. A record holds setting, family, method, epsilon (None for controls),
    repetition, ari, n_clusters and the epsilon that was truly spent.

    Parameters
    ----------
    directory : Path
        Created if need be.
    effort : Effort
    seed : int, default 0
    resume : bool, default True
    settings : sequence of Setting
    stage : callable
        Hears what is being done.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the directory {directory} cannot be made: {error.strerror}") from None
    header = {"experiment": "utility", "version": __version__, "seed": seed}
    path = directory / "results.jsonl"
    wanted = []
    with Records(path, header, _KEY, resume=resume) as records, warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the published calibration is on show here
        for setting in settings:
            plans = Plans(setting)
            for family in PAPER:
                n_repetitions = effort.repetitions[setting.n_nodes]
                for repetition in range(n_repetitions):
                    stage(f"{family}, {setting.title}: {repetition + 1} of {n_repetitions}")
                    case = Case(setting, family, repetition, seed)
                    wanted += list(_records(case, effort.epsilons, records, plans))
                    records.flush()
    return wanted


@dataclass(frozen=True)
class Case:
    """One repetition on one family in one setting."""

    setting: Setting
    family: Family
    repetition: int
    seed: int

    def planted(self) -> PlantedGraph:
        """Return the graph of this repetition."""
        return planted_graph(
            self.family,
            self.setting.n_nodes,
            complete=self.setting.complete,
            seed=number_of(self.seed, self.family, self.repetition) % 2**32,
        )


def _records(
    case: Case, epsilons: Sequence[float], records: Records, plans: Plans
) -> Iterator[dict[str, Any]]:
    """Yield the records of a case; the graph is made only if one of them is missing."""
    planted: PlantedGraph | None = None

    def record(
        name: str, epsilon: float | None, run: Callable[[PlantedGraph, int], _Outcome]
    ) -> dict[str, Any]:
        nonlocal planted
        key = case.setting.name, case.family, name, epsilon, case.repetition
        found = records.get(*key)
        if found is not None:
            return found
        planted = planted or case.planted()
        labels, spent = run(planted, number_of(case.seed, *key))
        made = {
            **dict(zip(_KEY, key, strict=True)),
            "ari": agreement(planted.truth, labels),
            "n_clusters": len(np.unique(labels)),
            "true_epsilon": spent,
        }
        records.add(made)
        return made

    for control in CONTROLS:
        yield record(control.name, None, partial(_compare, control))
    for method in case.setting.methods:
        for epsilon in epsilons:
            yield record(method.name, epsilon, partial(_publish, plans, method, epsilon))


def _compare(control: Control, planted: PlantedGraph, _: int) -> _Outcome:
    return control.labels(planted), None


def _publish(
    plans: Plans, method: Method, epsilon: float, planted: PlantedGraph, random_state: int
) -> _Outcome:
    planned = plans.get(planted.graph, method, epsilon)
    release = publish(planted.graph, planned, random_state=random_state)
    return release.labels, float(planned.chosen.spent.epsilon)


class Plans:
    """The plans of a setting; drawing a tree takes the same calibration whatever the number of edges."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._plans: dict[tuple[str, float], Plan] = {}

    def get(self, graph: Graph, method: Method, epsilon: float) -> Plan:
        """Return the plan for a graph of this setting."""
        known = self._plans.get((method.name, epsilon))
        if known is not None and (known.chosen.tree or known.n_edges == graph.n_edges):
            return replace(known, n_edges=graph.n_edges)
        made = self._plans[method.name, epsilon] = plan(
            graph.topology,
            epsilon=epsilon,
            delta=0 if method.pure else self._setting.delta,
            sensitivity=self._setting.sensitivity,
            tree=method.tree,
            calibration=method.calibration,
        )
        return made


def number_of(*parts: object) -> int:
    """Return a random-looking number that belongs to these parts."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=7).digest())


def agreement(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Return the adjusted Rand index: 1 for the same partition, about 0 for an unrelated one.

    (The value of scikit-learn's ``adjusted_rand_score``, which takes far longer for small graphs.)
    """
    ours = np.unique(truth, return_inverse=True)[1]
    theirs = np.unique(labels, return_inverse=True)[1]
    both = ours * (theirs.max(initial=0) + 1) + theirs

    def ordered_pairs(groups: NDArray[np.int64]) -> int:
        sizes = np.bincount(groups)
        return int(sizes @ sizes) - len(groups)

    together = ordered_pairs(both)
    only_ours, only_theirs = ordered_pairs(ours) - together, ordered_pairs(theirs) - together
    if only_ours == only_theirs == 0:
        return 1.0
    n = len(both)
    apart = n * (n - 1) - together - only_ours - only_theirs
    above = 2 * (together * apart - only_ours * only_theirs)
    below = (together + only_ours) * (only_ours + apart)
    return above / (below + (together + only_theirs) * (only_theirs + apart))
