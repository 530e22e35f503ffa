"""Figures 1 and 2 of the paper: circles and moons, DBMSTClu, and PTClust at three epsilons.

The paper shows one run of each. A single run depends on chance, so behind every panel are many runs
on the same graph: the one of median agreement is drawn, and the best in a figure of its own.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.figures_report import FiguresReport
from experiments.methods import release_of
from experiments.panels import Panel, draw_panels
from experiments.tables import METHODS, MU, Grid, paper_setting, run_tables, score
from experiments.tables_report import Mean, TablesReport, mean_of
from experiments.utility import Plans
from ptclust._files import make_directory
from ptclust._statistics import seed_of
from ptclust.clustering import dbmstclu
from ptclust.datasets.planted import CROSS_EDGES, PAPER, homogeneous_graph
from ptclust.errors import PrivacyWarning
from ptclust.trees import Tree, minimum_spanning_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ptclust.datasets import Family, PlantedGraph

__all__ = ["DENSITIES", "EPSILONS", "Figure", "Run", "run_figures"]

EPSILONS = (1.0, 0.7, 0.5)
"""Those of the paper, in the order of its panels."""
DENSITIES = (1, 2, 5, 20, 100, 400, 2500)
"""Numbers of cross edges to compare; 2500 are all pairs of two clusters of 50."""
_PUBLISHED = next(method for method in METHODS if method.calibration == "published")


@dataclass(frozen=True)
class Run:
    """A clustered tree, and how it scores."""

    tree: Tree
    labels: NDArray[np.int64]
    score: dict[str, Any]
    """ARI, clusters, singletons and, if private, the epsilon truly spent."""


@dataclass(frozen=True)
class Figure:
    """What one figure of the paper shows, many times over."""

    planted: PlantedGraph
    cross_edges: int
    plain: Run
    """DBMSTClu on the exact minimum spanning tree."""
    runs: dict[float, list[Run]]
    """PTClust with the published scales, by epsilon, from good to bad."""

    @cached_property
    def means(self) -> dict[float, Mean]:
        """What the runs of every epsilon come to."""
        return {
            epsilon: mean_of([run.score for run in runs]) for epsilon, runs in self.runs.items()
        }

    def median(self, epsilon: float) -> Run:
        """Return the run in the middle."""
        return self.runs[epsilon][len(self.runs[epsilon]) // 2]

    def best(self, epsilon: float) -> Run:
        """Return the first of the runs of largest ARI."""
        return self.runs[epsilon][0]

    def draw(self, path: Path, shown: Callable[[float], Run], words: str) -> None:
        """Draw the graph, DBMSTClu, and for every epsilon the run that is to be shown."""
        graph, name = self.planted.graph, self.planted.name
        panels = [
            Panel(
                f"homogeneous graph\n{graph.n_edges:,} edges, {self.cross_edges:,} across",
                graph.sources,
                graph.targets,
                graph.weights,
            ),
            self._panel("DBMSTClu, not private\n{ari}", self.plain),
        ]
        for epsilon in self.runs:
            run, mean = shown(epsilon), self.means[epsilon].ari.mean
            title = f"PTClust, $\\epsilon$ = {epsilon:g}, truly {run.score['true_epsilon']:.1f}\n"
            panels.append(self._panel(f"{title}{{ari}} (mean {mean:.2f})", run))
        number = 1 + PAPER.index(self.planted.name)
        title = (
            f"Figure {number} of the paper: {name}, n = {graph.n_nodes}, $\\mu$ = {MU:g}, "
            f"published scales; {words} of {len(next(iter(self.runs.values())))} runs"
        )
        draw_panels(np.asarray(self.planted.points), panels, path=path, title=title)

    def _panel(self, title: str, run: Run) -> Panel:
        """Return a clustered tree with the graph's weights, not the released ones."""
        ari = f"ARI {run.score['ari']:.2f}".replace("-0.00", "0.00")
        weights = self.planted.graph.weights[run.tree.edge_ids]
        labels = recoloured(run.labels, self.planted.truth)
        return Panel(title.format(ari=ari), run.tree.sources, run.tree.targets, weights, labels)


def run_figures(
    directory: Path,
    *,
    cross_edges: int = CROSS_EDGES,
    repetitions: int = 100,
    seed: int = 0,
    densities: Sequence[int] = DENSITIES,
    command: str = "make figures",
    progress: Callable[[str], None] = lambda _: None,
) -> FiguresReport:
    """Draw both figures as PNG and SVG, with a report, README.md, and its numbers, figures.json.

    Parameters
    ----------
    directory : Path
        Created if need be.
    cross_edges : int, default 2
        Edges between the clusters in the figures.
    repetitions : int, default 100
        Runs behind every panel, and behind every number of the report.
    seed : int, default 0
        Of graphs and noise.
    densities : sequence of int
        Numbers of cross edges that the report compares.
    command : str
        What to type to get the same again.
    progress : callable
        Progress callback.
    """
    make_directory(directory)
    figures = {}
    for family in PAPER:
        progress(f"Clustering {family}")
        figure = make_figure(family, cross_edges=cross_edges, repetitions=repetitions, seed=seed)
        progress(f"Drawing {family}")
        for suffix in (".png", ".svg"):
            figure.draw(directory / f"{family}{suffix}", figure.median, "the median")
            figure.draw(directory / f"{family}-best{suffix}", figure.best, "the best")
        figures[family] = figure
    grid = Grid(tuple(densities), (MU,), EPSILONS, repetitions, methods=(_PUBLISHED,))
    records = run_tables(directory, grid, seed=seed, resume=False, progress=progress)
    report = FiguresReport(figures, TablesReport(records, grid, command), grid, command)
    report.save(directory)
    return report


def make_figure(family: Family, *, cross_edges: int, repetitions: int, seed: int) -> Figure:
    """Cluster one graph without privacy, and many times with the published scales."""
    planted = homogeneous_graph(family, cross_edges=cross_edges, seed=seed)
    tree = minimum_spanning_tree(planted.graph)
    labels = dbmstclu(tree).labels
    plain = Run(tree, labels, score(planted.truth, labels))
    plans = Plans(paper_setting(MU))
    runs = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the published calibration is on show here
        for epsilon in EPSILONS:
            planned = plans.get(planted.graph, _PUBLISHED, epsilon)
            made = []
            for repetition in range(repetitions):
                state = seed_of(seed, "figure", family, cross_edges, epsilon, repetition)
                release = release_of(planted.graph, planned, random_state=state)
                spent = {"true_epsilon": release.statement.epsilon}
                scored = {**score(planted.truth, release.labels), **spent}
                made.append(Run(release.tree, release.labels, scored))
            runs[epsilon] = sorted(made, key=lambda run: -run.score["ari"])
    return Figure(planted, cross_edges, plain, runs)


def recoloured(labels: NDArray[np.int64], truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number clusters by size, the largest within each planted one the same in all panels."""
    sizes = np.bincount(labels)
    new = np.full(len(sizes), -1)
    for cluster in np.argsort(-sizes, kind="stable"):
        planted = np.bincount(truth[labels == cluster]).argmax()
        taken = new[new >= 0]
        new[cluster] = planted if planted not in taken else max(1, taken.max(initial=0)) + 1
    return new[labels]
