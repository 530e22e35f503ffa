"""What is to be seen in the figures of the paper, in words and numbers."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._summary import as_csv, wrapped
from experiments.tables_report import GOOD
from ptclust._files import written_at_once
from ptclust._tables import aligned

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.figures import Figure, Run
    from experiments.tables import Grid
    from experiments.tables_report import Mean, TablesReport

__all__ = ["FiguresReport"]


class FiguresReport:
    """The figures, and how they depend on the number of cross edges.

    Parameters
    ----------
    figures : dict of Figure
        By family.
    tables : TablesReport
        Published scales for several numbers of cross edges.
    grid : Grid
        That of the tables.
    command : str
        What to type to get the same again.
    """

    def __init__(
        self, figures: dict[Any, Figure], tables: TablesReport, grid: Grid, command: str
    ) -> None:
        self.figures, self._tables, self._grid, self._command = figures, tables, grid, command

    def mean(self, family: str, cross_edges: int, epsilon: float) -> Mean:
        """Return the mean over new graphs with this number of cross edges."""
        (mu,), (method,) = self._grid.mus, self._grid.methods
        return self._tables.mean(family, cross_edges, mu, method.name, epsilon)

    def to_json(self) -> str:
        """Return the numbers as JSON."""
        panels = [
            {
                "family": family,
                "cross_edges": figure.cross_edges,
                "dbmstclu": figure.plain.score,
                "epsilon": epsilon,
                "median": figure.median(epsilon).score,
                "best": figure.best(epsilon).score,
                **asdict(figure.means[epsilon]),
            }
            for family, figure in self.figures.items()
            for epsilon in figure.runs
        ]
        by_density = json.loads(self._tables.to_json())["means"]
        document = {"command": self._command, "panels": panels, "cross_edges": by_density}
        return json.dumps(document, indent=2)

    def to_markdown(self) -> str:
        """Return the report."""
        figure = next(iter(self.figures.values()))
        repetitions = self._grid.repetitions
        lines = [
            "# Figures 1 and 2 of the paper",
            "",
            f"Made by `{self._command}`.",
            "",
            *wrapped(
                "Two circles and two moons of 100 nodes. Of the complete graph those pairs of a",
                "cluster are kept whose distance is between $w_{min}=0.1$ and $w_{max}=0.3$ (the",
                "largest distance is 1), with the distance as weight; this is how close nodes come",
                "not to be connected, as the paper says they may. Of the edges across, with",
                f"weights above $w_{{max}}^2/w_{{min}}=0.9$, {figure.cross_edges:,} random ones",
                "were left. The paper does not say how many there were, only that PTClust took not",
                "always the same: so there were at least two.",
            ),
            "",
            *wrapped(
                "(a) is the graph, (b) DBMSTClu with the minimum spanning tree, (c) to (e) PTClust",
                "with $\\mu=0.1$ and the scales the paper prints. Behind each of these are",
                f"{repetitions} runs on the same graph. The figure shows the run of median ARI",
                "(the adjusted Rand index: 1 for the right clusters, about 0 for unrelated ones),",
                "a second figure the best. Edges have the colours of the original weights, not of",
                "the released ones, as in the paper; a cross is a node that is a cluster of its",
                "own.",
            ),
        ]
        for number, (family, each) in enumerate(self.figures.items(), 1):
            lines += [
                "",
                f"## Figure {number}: {family}",
                "",
                f"![{family}, median runs]({family}.png)",
                "",
                *aligned(_panel_rows(each)),
                "",
                f"The best of {repetitions} runs for every epsilon:",
                "",
                f"![{family}, best runs]({family}-best.png)",
            ]
        proof = "[the proof](../proofs/private-trees.md#weights-of-the-tree)"
        spent = f"What was truly spent is explained in {proof}."
        return "\n".join([*lines, "", *self._on_cross_edges(), "", spent])

    def _on_cross_edges(self) -> list[str]:
        return [
            "## How much depends on the number of cross edges",
            "",
            *wrapped(
                "[cross-edges.csv](cross-edges.csv) has the mean ARI over",
                f"{self._grid.repetitions} repetitions, with a new graph each, and half the width",
                "of its 95 % interval;",
                f"*good* is the share of runs with an ARI of {GOOD:g} or more, which look like the",
                "paper's panels: both shapes, and a stray node or two.",
            ),
            "",
            *self._verdict(),
        ]

    def to_csv(self) -> str:
        """Return the mean ARI and the share of good runs by the number of cross edges."""
        rows = [["family", "cross_edges", "epsilon", "ari", "margin", "good"]]
        for family, cross_edges in product(self.figures, self._grid.cross_edges):
            for epsilon in self._grid.epsilons:
                mean = self.mean(family, cross_edges, epsilon)
                case = [str(family), str(cross_edges), f"{epsilon:g}"]
                rows.append([*case, *mean.ari.cells, f"{mean.good:.0%}"])
        return as_csv(rows)

    def _verdict(self) -> list[str]:
        """Return which numbers of cross edges make figures such as the paper's."""
        first, second = self._grid.epsilons[:2]

        def share(cross_edges: int, epsilon: float) -> float:
            return float(np.mean([self.mean(f, cross_edges, epsilon).good for f in self.figures]))

        both = {c: share(c, first) * share(c, second) for c in self._grid.cross_edges}
        most = max(both, key=lambda cross_edges: both[cross_edges])
        never = [c for c in both if share(c, first) < 0.05]
        words = [
            f"The paper's panels for epsilon = {first:g} and {second:g} show both shapes and at",
            f"most one singleton. That is likeliest with {_edges(most)}, where",
            f"{share(most, first):.0%} and {share(most, second):.0%} of the runs are good, and so",
            f"are both of two runs in {both[most]:.0%} of all cases. The look of the paper's",
            "panels is that of a handful of cross edges, and of fortunate runs.",
        ]
        if never:
            words += [
                f"With {never[0]:,} cross edges or more, fewer than 5 % of the runs are good even",
                f"at epsilon = {first:g}: PAMST then draws almost uniformly among the edges at",
                "hand, and crosses too often whatever the weights are.",
            ]
        return wrapped(*words)

    def save(self, directory: Path) -> None:
        """Write ``README.md``, ``cross-edges.csv`` and ``figures.json`` to a directory."""
        texts = {
            "README.md": self.to_markdown(),
            "cross-edges.csv": self.to_csv(),
            "figures.json": self.to_json(),
        }
        for name, text in texts.items():
            with written_at_once(directory / name) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")


def _panel_rows(figure: Figure) -> list[list[str]]:
    rows = [["panel", "ARI", "clusters", "singletons", "mean ARI", "good runs", "truly spent"]]
    rows.append(["(b) DBMSTClu", *_scores(figure.plain), "", "", "no privacy"])
    for letter, (epsilon, mean) in zip("cde", figure.means.items(), strict=False):
        spent = f"epsilon = {mean.true_epsilon:.4g}"
        shown = _scores(figure.median(epsilon))
        title = f"({letter}) PTClust, epsilon = {epsilon:g}"
        rows.append([title, *shown, str(mean.ari), f"{mean.good:.0%}", spent])
    return rows


def _scores(run: Run) -> list[str]:
    ari = f"{run.score['ari']:.2f}".replace("-0.00", "0.00")
    return [ari, str(run.score["n_clusters"]), str(run.score["n_singletons"])]


def _edges(number: int) -> str:
    return "1 cross edge" if number == 1 else f"{number:,} cross edges"
