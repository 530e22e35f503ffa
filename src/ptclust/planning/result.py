"""What a prediction found: an interval of agreement with planted clusters at every epsilon."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptclust._markup import facts
from ptclust._tables import right_aligned
from ptclust.planning.planting import Planting
from ptclust.privacy import Sensitivity

COVERAGE, LIKELY = 0.9, 0.75
GOAL = 0.5  # agreement from which on clusters count as seen


@dataclass(frozen=True)
class Point:
    """Agreement with planted clusters at one epsilon: adjusted Rand indices (ARI)."""

    epsilon: float
    mechanism: str  # the mechanism that the plan chooses at this epsilon
    clusterer: str  # how what it releases is clustered
    reached: tuple[float, ...]  # the ARI of every planted graph
    contrasts: tuple[float, ...]  # how many times more a pair within has, of the same graphs

    def _ranked(self, share: int) -> tuple[float, float]:
        """Return the least and the largest but for one in so many at each end."""
        ordered = sorted(self.reached)
        rank = max(1, (len(ordered) + 1) // share)
        return ordered[rank - 1], ordered[-rank]

    @property
    def low(self) -> float:
        """Nine of ten real graphs lie between this and ``high``: the ends of 39 planted ones.

        A 40th that is like these would do so with probability 0.95; real ones are not quite.
        """
        return self._ranked(40)[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self._ranked(40)[1]

    @property
    def likely(self) -> float:
        """Three of four graphs reach at least this."""
        return self._ranked(4)[0]

    @property
    def contrast(self) -> float | None:
        """The least contrast from which on three of four graphs reach 0.5, or None."""
        order = np.argsort(self.contrasts)[::-1]  # from the clearest graph on
        seen = np.array(self.reached)[order] >= GOAL
        share = np.cumsum(seen) / np.arange(1, len(seen) + 1)
        enough = np.flatnonzero(share >= LIKELY)
        if not len(enough) or enough[-1] < 2:
            return None
        return float(np.array(self.contrasts)[order][enough[-1]])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers."""
        names = ("epsilon", "mechanism", "clusterer", "low", "likely", "high", "contrast")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Prediction:
    """How well clusters of graphs like real ones, planted on a topology, are found at a budget.

    It holds nothing private: the topology is public, the weights were made up.
    """

    n_nodes: int
    n_edges: int
    sensitivity: Sensitivity
    delta: float
    planting: Planting  # what was known or said of the graphs
    repetitions: int
    planned: float | None  # the epsilon that is to be spent
    points: tuple[Point, ...]  # by epsilon
    topology_clusters: int  # so many the topology shows by itself; 1 if it shows none
    topology_alone: float  # the mean agreement of these with the planted clusters
    left_out: str = ""  # what was not tried, and why

    def at(self, epsilon: float) -> Point:
        """Return the point at this epsilon; KeyError if it was not tried."""
        found = {point.epsilon: point for point in self.points}
        return found[epsilon]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers."""
        said = self.planting
        return {
            "n_nodes": self.n_nodes,
            "n_edges": self.n_edges,
            "sensitivity": self.sensitivity.to_dict(),
            "delta": self.delta,
            "kind": said.kind,
            "total": None if said.total is None else list(said.total),
            "weight_range": None if said.clip is None else list(said.clip),
            "n_clusters": said.n_clusters,
            "contrast": said.contrast,
            "coverage": COVERAGE,
            "repetitions": self.repetitions,
            "planned": self.planned,
            "points": [point.to_dict() for point in self.points],
            "topology_clusters": self.topology_clusters,
            "topology_alone": self.topology_alone,
            "left_out": self.left_out,
        }

    def to_text(self) -> str:
        """Return the prediction as a page to read."""
        words = (
            f"Prediction: {self.repetitions} graphs like real ones, planted on this topology and "
            f"published. Nothing is spent. {self._said} All else is drawn for each."
        )
        rows = right_aligned(self._rows())
        marked = [" "] + [">" if p.epsilon == self.planned else " " for p in self.points]
        lines = [f"{mark} {row}" for mark, row in zip(marked, rows, strict=True)]
        return "\n".join([*_wrapped(words), "", *lines, "", *_wrapped(self._legend)])

    @property
    def _said(self) -> str:
        said, known = self.planting, []
        if said.kind == "distance":
            low, high = said.clip or (0.0, 1.0)
            taken = "" if said.clip else ", as they are taken to (clip=)"
            known.append(f"Distances lie in {low:g} to {high:g}{taken}.")
        elif said.total is None:
            known.append("The total of the counts is unknown: give the number of records.")
        else:
            least, most = (f"{each:,.0f}" for each in said.total)
            known.append(f"Counts add up to {least if least == most else f'{least} to {most}'}.")
        if said.n_clusters is not None:
            known.append(f"There are {said.n_clusters:,} clusters.")
        if said.contrast is not None:
            known.append(f"The contrast is {said.contrast:g}.")
        return " ".join(known)

    @property
    def _legend(self) -> str:
        more = "closer" if self.planting.kind == "distance" else "heavier"
        lines = (
            "ARI: adjusted Rand index; 1 is the same, 0 is chance. Nine of ten such graphs lie in "
            "the interval, and three of four reach the number after it. Contrast: how many times "
            f"{more} pairs within clusters have to be for three of four to reach {GOAL:g}."
        )
        if self.topology_clusters > 1:
            lines += (
                f" The topology alone shows {self.topology_clusters:,} clusters, whatever the "
                f"weights (mean ARI {_two_digits(self.topology_alone)}), which are public."
            )
        return lines + (f" Left out: {self.left_out}." if self.left_out else "")

    def plot(self, *, axes: Any = None) -> Any:
        """Draw agreement against epsilon with matplotlib, and return the axes."""
        from ptclust.drawing.plots import plot_prediction

        return plot_prediction(self, axes)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        known: list[tuple[str, object]] = [
            ("graph", f"{self.n_nodes:,} nodes, {self.n_edges:,} edges"),
            ("planted", f"{self.repetitions} graphs. {self._said}"),
            ("to read it", self._legend),
        ]
        return facts("Prediction: nothing is spent", known, (head, rows))

    def _rows(self) -> list[list[str]]:
        rows = [["epsilon", "ARI, nine of ten", "three of four", "contrast seen from"]]
        for point in self.points:
            interval = f"{_two_digits(point.low)} to {_two_digits(point.high)}"
            seen = "none" if point.contrast is None else f"{point.contrast:.2g}"
            rows.append([f"{point.epsilon:g}", interval, _two_digits(point.likely), seen])
        return rows


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 88, break_on_hyphens=False)


def _two_digits(number: float) -> str:
    return f"{number:.2f}".replace("-0.00", "0.00")
