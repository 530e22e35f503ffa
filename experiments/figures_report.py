"""What is to be seen in the figures of the paper, in words and numbers."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._summary import as_csv, page, save_files
from experiments.tables_report import GOOD
from ptclust._tables import aligned

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.figures import Figure, Run
    from experiments.tables import Grid
    from experiments.tables_report import Mean, TablesReport

__all__ = ["FiguresReport"]


_PAGE = """\
# Figures 1 and 2 of the paper

Made by `{{ command }}`.

Two circles and two moons of 100 nodes. Of the complete graph those pairs of a cluster are kept
whose distance, which is their weight, is between $w_{min}=0.1$ and $w_{max}=0.3$ (the largest
distance is 1), and {{ cross_edges }} random edges across, with weights above
$w_{max}^2/w_{min}=0.9$. The paper does not give their number, only that PTClust took not always the
same: so there were at least two.

(a) is the graph, (b) DBMSTClu with the minimum spanning tree, (c) to (e) PTClust with $\\mu=0.1$
and the scales the paper prints: of {{ repetitions }} runs on the same graph that of median ARI
(adjusted Rand index: 1 for the right clusters, about 0 for unrelated ones), and in a second figure
the best.
As in the paper, edges have the colours of the original weights. A cross is a cluster of one node.
*Good* runs have an ARI of {{ good }} or more; what is [truly
spent](../proofs/private-trees.md#weights-of-the-tree) is far more than epsilon.

{% for family, table in tables.items() %}
## Figure {{ loop.index }}: {{ family }}

![{{ family }}, median runs]({{ family }}.png)

{{ table }}

![{{ family }}, best runs]({{ family }}-best.png)

{% endfor %}
## The number of cross edges

[cross-edges.csv](cross-edges.csv) has the mean ARI over {{ repetitions }} repetitions, with a new
graph each, half the width of its 95 % interval, and the share of good runs.

{{ verdict }}
"""


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
        return page(
            _PAGE,
            command=self._command,
            cross_edges=f"{next(iter(self.figures.values())).cross_edges:,}",
            repetitions=self._grid.repetitions,
            good=f"{GOOD:g}",
            tables={
                family: "\n".join(aligned(_panel_rows(figure)))
                for family, figure in self.figures.items()
            },
            verdict=self._verdict(),
        )

    def to_csv(self) -> str:
        """Return the mean ARI and the share of good runs by the number of cross edges."""
        rows = [["family", "cross_edges", "epsilon", "ari", "margin", "good"]]
        for family, cross_edges in product(self.figures, self._grid.cross_edges):
            for epsilon in self._grid.epsilons:
                mean = self.mean(family, cross_edges, epsilon)
                case = [str(family), str(cross_edges), f"{epsilon:g}"]
                rows.append([*case, *mean.ari.cells, f"{mean.good:.0%}"])
        return as_csv(rows)

    def _verdict(self) -> str:
        """Return which numbers of cross edges make figures such as the paper's."""
        first, second = self._grid.epsilons[:2]

        def share(cross_edges: int, epsilon: float) -> float:
            return float(np.mean([self.mean(f, cross_edges, epsilon).good for f in self.figures]))

        both = {c: share(c, first) * share(c, second) for c in self._grid.cross_edges}
        most = max(both, key=lambda cross_edges: both[cross_edges])
        never = [c for c in both if share(c, first) < 0.05]
        words = (
            f"The paper's panels for epsilon = {first:g} and {second:g} show both shapes and at "
            f"most one singleton. That is likeliest with {_edges(most)}, where "
            f"{share(most, first):.0%} and {share(most, second):.0%} of the runs are good, and "
            f"both of two runs in {both[most]:.0%} of all cases."
        )
        if never:
            words += (
                f" With {never[0]:,} cross edges or more, fewer than 5 % of the runs are good even "
                f"at epsilon = {first:g}: PAMST then draws almost uniformly among its candidates."
            )
        return words

    def save(self, directory: Path) -> None:
        """Write ``README.md``, ``cross-edges.csv`` and ``figures.json`` to a directory."""
        texts = {
            "README.md": self.to_markdown(),
            "cross-edges.csv": self.to_csv(),
            "figures.json": self.to_json(),
        }
        save_files(texts, directory)


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
