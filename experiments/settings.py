"""Where utility is measured: graphs, neighbours, budgets, and how long to work on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from experiments.methods import METHODS, PAPER_METHODS, Method
from experiments.real import REAL
from ptclust.datasets import Family, PlantedGraph, planted_graph
from ptclust.errors import UsageError
from ptclust.privacy import Sensitivity

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["BENCHMARK", "SETTINGS", "SHAPES", "Effort", "Setting", "Shape", "drawn"]

DELTA = 1e-6


class Shape(NamedTuple):
    """A planted family as the benchmark draws it."""

    family: Family
    n_clusters: int | None = None
    """By default the family's own number."""
    decoys: bool = False
    """Whether the topology holds a second planting; without, it would give the clusters away."""


SHAPES = {
    "circles": Shape("circles"),
    "moons": Shape("moons"),
    "blobs-3": Shape("blobs", 3),
    "blobs-10": Shape("blobs", 10, decoys=True),
    "blobs-30": Shape("blobs", 30, decoys=True),
    "chains": Shape("chains"),
    "multiscale": Shape("multiscale"),
    "blocks": Shape("blocks"),
}
"""The planted graphs of the benchmark by name."""
_SMALL = tuple(shape for shape in SHAPES if shape != "blobs-30")  # too many clusters for 100 nodes


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
    shapes: tuple[str, ...] = tuple(SHAPES)
    neighbours: int | None = None
    """Of every node within its cluster; by default the family's own number."""
    crossing: int = 4
    """Edges across clusters, for every node; with decoys, as many as these have instead."""
    real: bool = False
    """Whether ``shapes`` are names of real graphs."""

    @property
    def size(self) -> int | Literal["real"]:
        """What the effort depends on."""
        return "real" if self.real else self.n_nodes


def drawn(setting: Setting, shape: str, seed: int) -> PlantedGraph:
    """Return a planted graph of a setting."""
    family, n_clusters, decoys = SHAPES[shape]
    return planted_graph(
        family,
        setting.n_nodes,
        n_clusters=n_clusters,
        neighbours=setting.neighbours,
        cross_edges=None if decoys else setting.crossing * setting.n_nodes,
        complete=setting.complete,
        decoys=decoys,
        seed=seed,
    )


_ZCDP = (
    *PAPER_METHODS,
    Method("pamst", "PAMST zCDP + Gaussian", "pamst", pure=False),
    Method("kruskal", "Kruskal zCDP + Gaussian", "kruskal", pure=False),
    Method("perturbation", "graph perturbation, Gaussian", "gaussian", pure=False),
)
_PURE = (
    *PAPER_METHODS,
    Method("kruskal", "Kruskal + Laplace, pure", "kruskal", pure=True),
    Method("perturbation", "graph perturbation, Laplace", "laplace", pure=True),
)
SETTINGS = (
    Setting(
        "linf-100", "n = 100, linf = 0.001, delta = 1e-6", 100, Sensitivity(linf=1e-3), DELTA, _ZCDP
    ),
    Setting(
        "linf-1000",
        "n = 1000, linf = 0.0005, delta = 1e-6",
        1000,
        Sensitivity(linf=5e-4),
        DELTA,
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
"""DBMSTClu after every mechanism, for decision 0006 and the paper's tables."""


def _planted(name: str, title: str, n_nodes: int, **choices: object) -> Setting:
    linf = Sensitivity(linf=1e-3 if n_nodes == 100 else 5e-4)
    blank = Setting(name, title, n_nodes, linf, DELTA, METHODS)
    return replace(blank, **choices)  # type: ignore[arg-type]


_REAL = tuple(
    Setting(
        f"real-{name}",
        f"{real.title}, {real.neighbours}",
        0,
        real.sensitivity,
        DELTA,
        METHODS,
        shapes=(name,),
        real=True,
    )
    for name, real in REAL.items()
)
BENCHMARK = (
    _planted("linf-1000", "n = 1,000, linf = 0.0005", 1000),
    _planted("linf-100", "n = 100, linf = 0.001", 100, shapes=_SMALL),
    _planted(
        "l1-100",
        "n = 100, complete graph, l1 = 0.1",
        100,
        sensitivity=Sensitivity(l1=0.1),
        complete=True,
        shapes=_SMALL,
    ),
    *_REAL,
    _planted("linf-10000", "n = 10,000, linf = 0.0005", 10_000),
    _planted(
        "sparse-1000",
        "n = 1,000, sparse (half the edges), linf = 0.0005",
        1000,
        neighbours=4,
        crossing=2,
        shapes=tuple(shape for shape in SHAPES if shape != "chains"),
    ),
    _planted(
        "dense-1000",
        "n = 1,000, dense (three times the edges), linf = 0.0005",
        1000,
        neighbours=24,
        crossing=12,
        shapes=tuple(shape for shape in SHAPES if shape != "chains"),
    ),
    _planted("l1-1000", "n = 1,000, l1 = 0.1", 1000, sensitivity=Sensitivity(l1=0.1)),
)
"""Of the utility benchmark; delta = 1e-6 everywhere. Those of the quick mode come first."""
_QUICK = ("linf-1000", "linf-100", "l1-100", *(setting.name for setting in _REAL))


@dataclass(frozen=True)
class Effort:
    """How long to work on what."""

    epsilons: dict[int | str, tuple[float, ...]]
    """Grid of epsilon for a number of nodes, or for real graphs."""
    repetitions: dict[int | str, int]
    settings: tuple[Setting, ...] = BENCHMARK

    @classmethod
    def quick(cls) -> Effort:
        """Return a minute or two of work."""
        grid = (0.5, 1.0, 2.0, 10.0, 50.0)
        return cls(
            dict.fromkeys((100, 1000, "real"), grid),
            {100: 4, 1000: 3, "real": 3},
            tuple(setting for setting in BENCHMARK if setting.name in _QUICK),
        )

    @classmethod
    def full(cls) -> Effort:
        """Return finer grids, more repetitions, more settings, and graphs of 10,000 nodes."""
        grid = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
        coarse = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)
        return cls(
            {100: grid, 1000: grid, "real": grid, 10_000: coarse},
            {100: 20, 1000: 10, "real": 10, 10_000: 3},
        )

    def with_repetitions(self, repetitions: int) -> Effort:
        """Return the same with as many repetitions everywhere."""
        return replace(self, repetitions=dict.fromkeys(self.repetitions, repetitions))

    def without(self, names: Collection[str]) -> Effort:
        """Return the same without the settings of these names."""
        known = {setting.name for setting in self.settings}
        unknown = sorted(set(names) - known)
        if unknown:
            raise UsageError(
                f"there is no setting {unknown[0]!r}; settings are {', '.join(sorted(known))}"
            )
        return replace(
            self, settings=tuple(setting for setting in self.settings if setting.name not in names)
        )

    def with_nodes(self, nodes: Collection[int]) -> Effort:
        """Return the same for planted graphs of these sizes alone."""
        return replace(
            self, settings=tuple(setting for setting in self.settings if setting.size in nodes)
        )
