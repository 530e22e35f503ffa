"""What ``run_tables`` measured: a page to read, all means as CSV and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._summary import as_csv, margin_of, page, save_report
from ptclust.datasets import PAPER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from experiments.tables import Grid

__all__ = ["GOOD", "Estimate", "Mean", "TablesReport", "mean_of"]

GOOD = 0.9
"""An ARI that both shapes and a few stray nodes have: a singleton costs about 0.02."""
_PAGE = """\
# The paper's PTClust in numbers

Made by `{{ command }}`.

Homogeneous circles and moons as in section 4 of the paper ($n = {{ n_nodes }}$, weights of 0.1 to
0.3 within and above 0.9 across), PAMST and Laplace noise, $\\delta = 0$, every weight private up
to $\\mu$. Means over {{ repetitions }} repetitions, each with a new graph and new noise, of the
ARI with the two planted clusters (1 is the same partition, about 0 an unrelated one). All means,
with 95 % intervals, are in [tables.csv](tables.csv).

*As published* uses the scales that the paper prints. They spend $\\varepsilon/4$ for the tree and
${{ n_nodes - 1 }}\\,\\varepsilon/2$ for the weights, since one person may move all of the
{{ n_nodes - 1 }} weights. *Sound* spends epsilon and no more.

{% for line in results %}
- {{ line }}
{% endfor %}

Only $\\mu/\\varepsilon$ matters. The fewer cross edges, the more the public topology reveals: with
one, no spanning tree can cross twice, whatever the weights are. Clusters are too many where noise
makes an edge heavy, or where the tree crosses too often; often a single node is cut off, since
singletons have the highest validity.
"""
_QUANTITIES = "ari", "n_clusters", "n_singletons"


@dataclass(frozen=True)
class Estimate:
    """A mean, and how well it is known."""

    mean: float
    margin: float | None
    """Half the width of the 95 % t interval of the mean; None for a single repetition."""

    def __str__(self) -> str:
        value, margin = self.cells
        return f"{value} ± {margin}" if margin else value

    @property
    def cells(self) -> tuple[str, str]:
        """Mean and margin as text with the digits that are worth showing."""
        digits = 2 if abs(self.mean) < 10 else 1
        value = f"{self.mean:.{digits}f}".replace("-0.00", "0.00")
        return value, "" if self.margin is None else f"{self.margin:.{digits}f}"


@dataclass(frozen=True)
class Mean:
    """The repetitions of one cell, summed up."""

    repetitions: int
    true_epsilon: float
    """What was spent in truth: more than epsilon, where the paper's scales were used."""
    ari: Estimate
    n_clusters: Estimate
    n_singletons: Estimate
    good: float
    """Share of the repetitions whose ARI is at least 0.9."""


def mean_of(records: Sequence[dict[str, Any]]) -> Mean:
    """Return the mean of records of the same kind."""

    def estimate(name: str) -> Estimate:
        values = [float(record[name]) for record in records]
        return Estimate(float(np.mean(values)), margin_of(values))

    return Mean(
        repetitions=len(records),
        true_epsilon=records[0]["true_epsilon"],
        ari=estimate("ari"),
        n_clusters=estimate("n_clusters"),
        n_singletons=estimate("n_singletons"),
        good=float(np.mean([record["ari"] >= GOOD for record in records])),
    )


class TablesReport:
    """Means over repetitions, and what they mean.

    Parameters
    ----------
    records : sequence of dict
        From ``run_tables``.
    grid : Grid
        That of the run.
    command : str
        What to type to get the same again.
    """

    def __init__(self, records: Sequence[dict[str, Any]], grid: Grid, command: str) -> None:
        self._grid, self._command = grid, command
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for record in records:
            names = "family", "cross_edges", "mu", "method", "epsilon"
            groups.setdefault(tuple(record[name] for name in names), []).append(record)
        self._means = {key: mean_of(group) for key, group in groups.items()}

    def mean(self, family: str, cross_edges: int, mu: float, method: str, epsilon: float) -> Mean:
        """Return the mean of one cell."""
        return self._means[family, cross_edges, mu, method, epsilon]

    def to_json(self) -> str:
        """Return all means as JSON."""
        names = "family", "cross_edges", "mu", "method", "epsilon"
        means = [
            {**dict(zip(names, key, strict=True)), **asdict(mean)}
            for key, mean in self._means.items()
        ]
        return json.dumps({"command": self._command, "good": GOOD, "means": means}, indent=2)

    def to_markdown(self) -> str:
        """Return the results in words; the numbers are in the CSV file."""
        return page(
            _PAGE,
            command=self._command,
            n_nodes=self._grid.n_nodes,
            repetitions=self._grid.repetitions,
            results=list(self._results()),
        )

    def to_csv(self) -> str:
        """Return all means with half the widths of their 95 % intervals."""
        margins = [part for name in _QUANTITIES for part in (name, f"{name}_margin")]
        names = "family", "mu", "calibration", "cross_edges", "epsilon", "true_epsilon"
        rows = [[*names, *margins]]
        grid = self._grid
        for mu, family, method in product(grid.mus, PAPER, grid.methods):
            for cross_edges, epsilon in product(grid.cross_edges, grid.epsilons):
                mean = self.mean(family, cross_edges, mu, method.name, epsilon)
                cells = [cell for name in _QUANTITIES for cell in getattr(mean, name).cells]
                spent = _rounded(mean.true_epsilon).replace(",", "")
                case = [family, f"{mu:g}", method.calibration, str(cross_edges), f"{epsilon:g}"]
                rows.append([*case, spent, *cells])
        return as_csv(rows)

    def _results(self) -> Iterator[str]:
        """Yield from which epsilon on clusters are found, with few cross edges and with many."""
        few, many = self._grid.cross_edges[0], self._grid.cross_edges[-1]
        for mu, method in product(self._grid.mus, self._grid.methods):
            name = "as published" if method.calibration == "published" else "sound"
            for cross_edges in dict.fromkeys((few, many)):
                reached = self._least(cross_edges, mu, method.name)
                edges = "1 cross edge" if cross_edges == 1 else f"{cross_edges:,} cross edges"
                yield f"$\\mu = {mu:g}$, {name}, {edges}: {reached}."

    def _least(self, cross_edges: int, mu: float, method: str) -> str:
        """Return in words from which epsilon on the mean ARI of both families is good."""
        least = None
        for epsilon in sorted(self._grid.epsilons, reverse=True):
            means = [self.mean(family, cross_edges, mu, method, epsilon) for family in PAPER]
            if min(mean.ari.mean for mean in means) < GOOD:
                break
            least = epsilon, means[0].true_epsilon
        if least is None:
            largest = max(self._grid.epsilons)
            best = max(
                self.mean(family, cross_edges, mu, method, largest).ari.mean for family in PAPER
            )
            return (
                f"the mean ARI stays below {GOOD:g} up to epsilon = {largest:g}, "
                f"where it is {best:.2f} at best"
            )
        truly = "" if math.isclose(*least, rel_tol=1e-6) else f" (truly {_rounded(least[1])})"
        return f"a mean ARI of {GOOD:g} from epsilon = {least[0]:g}{truly} on"

    def save(self, directory: Path) -> None:
        """Write ``tables.md``, ``.csv`` and ``.json`` to a directory."""
        save_report(self, directory, "tables")


def _rounded(epsilon: float) -> str:
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.3g}"
