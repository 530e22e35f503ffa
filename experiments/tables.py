"""The paper's PTClust in numbers: its graphs, many repetitions, published and sound noise.

The paper shows two figures and no numbers. Here every repetition draws a new homogeneous graph and
new noise, both from the seed, so that a run can be repeated and resumed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._records import Records
from experiments.methods import release_of
from experiments.utility import SETTINGS, Method, Plans, Setting, agreement
from ptclust._statistics import seed_of
from ptclust.datasets import PAPER, Family, PlantedGraph, homogeneous_graph
from ptclust.errors import PrivacyWarning
from ptclust.privacy import Sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["METHODS", "MU", "Grid", "paper_setting", "run_tables", "score"]

MU = 0.1
"""The paper's bound on the change of a weight."""
METHODS = tuple(method for method in SETTINGS[0].methods if method.pure)
"""The paper's pipeline, PAMST and Laplace noise, delta = 0: as published, and sound."""
_KEY = "family", "cross_edges", "mu", "method", "epsilon", "repetition"


@dataclass(frozen=True)
class Grid:
    """What to measure."""

    cross_edges: tuple[int, ...]
    """More than there are pairs of nodes of different circles or moons means all of them."""
    mus: tuple[float, ...]
    epsilons: tuple[float, ...]
    repetitions: int
    n_nodes: int = 100
    methods: tuple[Method, ...] = METHODS

    @classmethod
    def quick(cls) -> Grid:
        """Return a minute or two of work."""
        return cls((1, 2, 20, 400, 2500), (MU, 0.001), (0.5, 0.7, 1.0, 5.0, 10.0, 50.0), 100)

    @classmethod
    def full(cls) -> Grid:
        """Return more densities, more epsilons, and intervals a third as wide."""
        epsilons = (0.1, 0.2, 0.5, 0.7, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0)
        return cls((1, 2, 5, 20, 100, 400, 2500), (MU, 0.001), epsilons, 1000)

    def with_repetitions(self, repetitions: int) -> Grid:
        """Return the same grid with as many repetitions."""
        return replace(self, repetitions=repetitions)


def run_tables(
    directory: Path,
    grid: Grid,
    *,
    seed: int = 0,
    resume: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Publish the clusters of homogeneous graphs all over the grid; return one record per release.

    Records are appended to ``results.jsonl`` in ``directory`` as they are made, and those found
    there are not made again unless ``resume`` is false. A record holds family, cross_edges, mu,
    method, epsilon, repetition, ari, n_clusters, n_singletons and the epsilon that was truly spent.

    Parameters
    ----------
    directory : Path
        Created if need be.
    grid : Grid
    seed : int, default 0
    resume : bool, default True
    progress : callable
        Progress callback.
    """
    settings = {"seed": seed, "n_nodes": grid.n_nodes}
    plans = {mu: Plans(paper_setting(mu, grid.n_nodes)) for mu in grid.mus}
    wanted = []
    with (
        Records.of(directory, "tables", _KEY, resume=resume, **settings) as records,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", PrivacyWarning)  # the published calibration is on show here
        for family in PAPER:
            for cross_edges in grid.cross_edges:
                for repetition in range(grid.repetitions):
                    where = f"{family}, {cross_edges} cross edges"
                    progress(f"{where}: {repetition + 1} of {grid.repetitions}")
                    case = family, cross_edges, repetition
                    wanted += list(_records(case, grid, seed, records, plans))
                    records.flush()
    return wanted


def _records(
    case: tuple[Family, int, int],
    grid: Grid,
    seed: int,
    records: Records,
    plans: dict[float, Plans],
) -> Iterator[dict[str, Any]]:
    """Yield the records of one graph; it is made only if one of them is missing."""
    family, cross_edges, repetition = case

    @cache
    def planted() -> PlantedGraph:
        return homogeneous_graph(
            family, grid.n_nodes, cross_edges=cross_edges, seed=seed_of(seed, *case) % 2**32
        )

    def measure(mu: float, method: Method, epsilon: float, state: int) -> dict[str, Any]:
        graph = planted().graph
        planned = plans[mu].get(graph, method, epsilon)
        release = release_of(graph, planned, random_state=state)
        return {
            **score(planted().truth, release.labels),
            "true_epsilon": float(planned.chosen.spent.epsilon),
        }

    for mu, method, epsilon in product(grid.mus, grid.methods, grid.epsilons):
        key = family, cross_edges, mu, method.name, epsilon, repetition
        state = seed_of(seed, "tables", *key)
        yield records.made(key, partial(measure, mu, method, epsilon, state))


def paper_setting(mu: float, n_nodes: int = 100) -> Setting:
    """Return the paper's neighbours, every weight of which may change by mu; delta = 0."""
    return Setting(
        f"mu-{mu:g}", f"mu = {mu:g}", n_nodes, Sensitivity(linf=mu), delta=0.0, methods=METHODS
    )


def score(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float]:
    """Return the ARI of the labels, and the numbers of clusters and singletons."""
    sizes = np.unique(labels, return_counts=True)[1]
    return {
        "ari": agreement(truth, labels),
        "n_clusters": len(sizes),
        "n_singletons": int(np.count_nonzero(sizes == 1)),
    }
