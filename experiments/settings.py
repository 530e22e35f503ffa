"""Where utility is measured: graphs, neighbours, budgets, and how long to work on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from experiments import heterogeneous
from experiments.controls import CONTROLS, Control
from experiments.heterogeneous import KnownGraph
from experiments.methods import PAPER_METHODS, Method
from experiments.planted import Family, planted_graph
from experiments.real import (
    BIKE,
    CONTACTS,
    COUNTS,
    FILES,
    ONE_COUNT,
    TABLES,
    TRIPS,
    Real,
    real_graph,
)
from experiments.rivals import HETEROGENEOUS_CONTROLS, HETEROGENEOUS_METHODS, PLANTED_METHODS
from ptclust.datasets import PlantedGraph
from ptclust.errors import UsageError
from ptclust.privacy import Sensitivity

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "BENCHMARK",
    "CONTROLLED",
    "EQUAL_AT",
    "HETEROGENEOUS",
    "MIXING",
    "NULLS",
    "SECTIONS",
    "SETTINGS",
    "SHAPES",
    "Effort",
    "Setting",
    "Shape",
    "drawn",
]

DELTA = 1e-6
CONTROLLED = ("auto", "levels")
"""Methods that are also run where all weights are equal, at these epsilons:"""
EQUAL_AT = (0.5, 1.0, 2.0, 10.0)


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
    make: Callable[[str, int], KnownGraph] | None = None
    """Makes a graph of a shape from a seed, if it is not planted."""
    controls: tuple[Control, ...] = CONTROLS
    controlled: tuple[str, ...] = CONTROLLED

    @property
    def planted(self) -> bool:
        """Whether its graphs are planted ones."""
        return self.make is None

    @property
    def size(self) -> int | str:
        """What the effort depends on."""
        return self.n_nodes if self.planted else self.name


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
    blank = Setting(name, title, n_nodes, linf, DELTA, PLANTED_METHODS)
    return replace(blank, **choices)  # type: ignore[arg-type]


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
"""Planted graphs; delta = 1e-6 everywhere. Those of the quick mode come first."""

MIXING = {f"{t:g}, {w:g}": (t, w) for t in (0.2, 0.4, 0.5, 0.6, 0.8) for w in (0.1, 0.2, 0.3, 0.4)}
"""Mixing parameters of weighted LFR graphs: by edges, by weight."""
NULLS: dict[str, tuple[heterogeneous.NullTopology, int]] = {
    "complete": ("complete", 80),
    "random": ("random", 400),
    "preferential": ("preferential", 400),
    "geometric": ("geometric", 2000),
}
"""Graphs without clusters: topologies and numbers of nodes."""


def _lfr(n_nodes: int, shape: str, seed: int) -> KnownGraph:
    mu_t, mu_w = MIXING[shape]
    return heterogeneous.weighted_lfr(n_nodes, mu_t=mu_t, mu_w=mu_w, seed=seed)


def _null(shape: str, seed: int) -> KnownGraph:
    topology, n_nodes = NULLS[shape]
    return heterogeneous.null_graph(topology, n_nodes, seed=seed)


def _heterogeneous(
    name: str,
    title: str,
    make: Callable[[str, int], KnownGraph],
    shapes: Collection[str],
    **choices: object,
) -> Setting:
    setting = Setting(
        name,
        title,
        0,
        ONE_COUNT,
        DELTA,
        HETEROGENEOUS_METHODS,
        shapes=tuple(shapes),
        make=make,
        controls=HETEROGENEOUS_CONTROLS,
        controlled=("auto",),
    )
    return replace(setting, **choices)  # type: ignore[arg-type]


def _real(name: str, title: str, graphs: dict[str, Real], **choices: object) -> Setting:
    choices["sensitivity"] = next(iter(graphs.values())).sensitivity
    return _heterogeneous(name, title, lambda shape, _: real_graph(shape), graphs, **choices)


_LEIDEN = ("leiden", "leiden-best", "topology-leiden")
_ONE_RIVAL: dict[str, object] = {
    "methods": tuple(m for m in HETEROGENEOUS_METHODS if m.name in ("auto", "leiden-release")),
    "controls": tuple(c for c in HETEROGENEOUS_CONTROLS if c.name in _LEIDEN),
    "controlled": (),
}
HETEROGENEOUS = (
    _real("bike", "bike rides, l1 = 1 (one ride)", BIKE),
    _heterogeneous("lfr-1000", "weighted LFR, n = 1,000, l1 = 1", partial(_lfr, 1000), MIXING),
    _heterogeneous(
        "co-visits",
        "co-visits of 50,000 people at 500 places in 10 regions, l1 = 45 (one person)",
        lambda _, seed: heterogeneous.co_visits(seed=seed),
        ("co-visits",),
        sensitivity=Sensitivity(l1=45, l2=45**0.5, linf=1),
    ),
    _real("counts", "small social networks, l1 = 1", COUNTS),
    _real("contacts", "contacts of 20 seconds, l1 = 1 (one contact), all pairs", CONTACTS),
    _real("tables", "tables, linf = 0.0005", TABLES),
    _real("real", "real graphs of development, l1 = 1 (one count)", FILES, **_ONE_RIVAL),
    _real("trips", "person trips, l1 = 1 (one trip), all pairs", TRIPS),
    _heterogeneous(
        "blocks",
        "degree-corrected blocks, 300 nodes, 8 clusters, all pairs, l1 = 1",
        lambda _, seed: heterogeneous.degree_corrected_blocks(seed=seed),
        ("degree-corrected",),
    ),
    _heterogeneous(
        "roads",
        "roads and traffic, 600 crossings, 8 cities, l1 = 1",
        lambda _, seed: heterogeneous.roads(seed=seed),
        ("roads",),
    ),
    _heterogeneous(
        "null",
        "no clusters, l1 = 1",
        _null,
        NULLS,
        methods=HETEROGENEOUS_METHODS[:1],
        controls=(),
        controlled=(),
    ),
    _heterogeneous(
        "lfr-10000",
        "weighted LFR, n = 10,000, l1 = 1",
        partial(_lfr, 10_000),
        ("0.5, 0.2", "0.6, 0.4"),
        **_ONE_RIVAL,
    ),
    _heterogeneous(
        "lfr-100000",
        "weighted LFR, n = 100,000, l1 = 1",
        partial(_lfr, 100_000),
        ("0.5, 0.2",),
        **{**_ONE_RIVAL, "controls": ()},
    ),
)
"""Graphs that nobody planted with two levels of weights, real ones among them; delta = 1e-6."""
SECTIONS = {
    "planted": BENCHMARK,
    "heterogeneous": HETEROGENEOUS,
    "real": tuple(setting for setting in HETEROGENEOUS if setting.name == "real"),
}
_QUICK = ("linf-1000", "linf-100", "l1-100")
_OF_TARGETS = ("auto", "leiden-release", "sound")
_QUICK_SHAPES = {
    "bike": ("bike", "bike-500"),
    "lfr-1000": ("0.2, 0.2", "0.5, 0.2", "0.6, 0.4"),
}
_LEFT_OUT_IF_QUICK = ("lfr-10000", "lfr-100000", "trips")


@dataclass(frozen=True)
class Effort:
    """How long to work on what."""

    epsilons: dict[int | str, tuple[float, ...]]
    """Grid of epsilon for a number of nodes, or for a setting that is not planted."""
    repetitions: dict[int | str, int]
    settings: tuple[Setting, ...] = (*BENCHMARK, *HETEROGENEOUS)

    @classmethod
    def quick(cls) -> Effort:
        """Return some minutes of work."""
        grid = (0.5, 1.0, 2.0, 10.0, 50.0)
        shorter = tuple(
            replace(setting, shapes=_QUICK_SHAPES.get(setting.name, setting.shapes))
            for setting in HETEROGENEOUS
            if setting.name not in _LEFT_OUT_IF_QUICK
        )
        names = [setting.name for setting in shorter]
        return cls(
            {**dict.fromkeys((100, 1000), grid), **dict.fromkeys(names, (1.0,))},
            {100: 4, 1000: 3, **dict.fromkeys(names, 1), "null": 5},
            (*(setting for setting in BENCHMARK if setting.name in _QUICK), *shorter),
        )

    @classmethod
    def targets(cls) -> Effort:
        """Return, of planted graphs, no more than what the targets ask for."""
        full = cls.full()
        planted = (
            replace(
                setting,
                methods=tuple(m for m in PLANTED_METHODS if m.name in _OF_TARGETS),
                controlled=("auto",),
            )
            for setting in BENCHMARK
            if setting.name in _QUICK
        )
        return cls(
            {**full.epsilons, 100: (0.5, 1.0), 1000: (0.5, 1.0)},
            full.repetitions,
            (*planted, *HETEROGENEOUS),
        )

    @classmethod
    def full(cls) -> Effort:
        """Return finer grids, more repetitions, more settings, and graphs of 10,000 nodes."""
        grid = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
        coarse = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)
        names = [setting.name for setting in HETEROGENEOUS]
        return cls(
            {
                100: grid,
                1000: grid,
                10_000: coarse,
                **dict.fromkeys(names, (0.1, 1.0, 10.0)),
                **dict.fromkeys(("null", "lfr-10000", "lfr-100000"), (1.0,)),
                "lfr-1000": (0.1, 1.0),
                "co-visits": (1.0, 10.0),
                "real": (0.3, 1.0, 10.0),
                "contacts": (0.1, 0.3, 1.0, 10.0),
            },
            {
                100: 20,
                1000: 10,
                10_000: 3,
                **dict.fromkeys(names, 5),
                **dict.fromkeys(("lfr-10000", "lfr-100000"), 1),
                **dict.fromkeys(("lfr-1000", "co-visits"), 2),
                "null": 100,
            },
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

    def only(self, section: str) -> Effort:
        """Return the same for one section: planted, heterogeneous or real graphs."""
        if section not in SECTIONS:
            raise UsageError(f"there is no section {section!r}; sections are {', '.join(SECTIONS)}")
        names = {setting.name for setting in SECTIONS[section]}
        return self.without({setting.name for setting in self.settings} - names)

    def with_nodes(self, nodes: Collection[int]) -> Effort:
        """Return the same for planted graphs of these sizes alone."""
        return replace(
            self, settings=tuple(setting for setting in self.settings if setting.size in nodes)
        )
