"""What a prediction found: agreement with planted clusters against epsilon, a curve a size."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from ptclust._markup import facts, table
from ptclust._tables import right_aligned
from ptclust.graph.topology import Kind
from ptclust.planning.planting import Counts, TwoLevels
from ptclust.privacy import Sensitivity

GOAL = 0.9  # mean agreement from which on clusters count as visible


@dataclass(frozen=True)
class Point:
    """Agreement with planted clusters at one epsilon."""

    epsilon: float
    mechanism: str  # the mechanism that the plan chooses at this epsilon
    clusterer: str  # how what it releases is clustered
    ari: float  # mean adjusted Rand index: 1 for the planted clusters, 0 for chance
    margin: float | None  # half of the 95 % t interval of the mean; None for a single repetition
    control: float | None  # the mean where all weights are equal; None if not measured

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers."""
        return dict(vars(self))


@dataclass(frozen=True)
class Curve:
    """Agreement against epsilon for planted clusters of about one size."""

    size: int  # what was requested
    typical_size: int  # what there is: half of all nodes are in planted clusters of at most so many
    n_clusters: int  # how many were planted; the median over the repetitions
    points: tuple[Point, ...]  # by epsilon
    total: float | None = None  # of counts: about the sum of all of them

    @property
    def visible_from(self) -> float | None:
        """The least epsilon tried from which on all means reach 0.9, or None."""
        found = None
        for point in reversed(self.points):
            if point.ari < GOAL:
                break
            found = point.epsilon
        return found

    @property
    def control(self) -> float:
        """The largest mean over all epsilons with all weights equal."""
        return max(point.control for point in self.points if point.control is not None)

    def at(self, epsilon: float) -> Point | None:
        """Return the point at this epsilon, if it was tried."""
        return next((point for point in self.points if point.epsilon == epsilon), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers."""
        names = ("size", "typical_size", "n_clusters", "total", "visible_from", "control")
        points = [point.to_dict() for point in self.points]
        return {name: getattr(self, name) for name in names} | {"points": points}


@dataclass(frozen=True)
class Prediction:
    """What planted clusters of several sizes say about the budget that clusters need here.

    It holds nothing private: the topology is public, the weights were made up.
    """

    n_nodes: int
    n_edges: int
    sensitivity: Sensitivity
    delta: float
    kind: Kind  # distances of two levels, or similarities that are counts
    total: float | None  # of counts, as declared; if None, several orders of magnitude were tried
    weight_range: tuple[float, float] | None  # as declared; distances are else taken to be 0 to 1
    contrast: float
    repetitions: int
    planned: float | None  # the epsilon that is to be spent
    curves: tuple[Curve, ...]  # from the largest clusters to the smallest
    topology_clusters: int  # so many the topology shows by itself; 1 if it shows none
    left_out: tuple[str, ...]  # what was not tried, and why

    @property
    def goal(self) -> float:
        """Mean agreement from which on clusters count as visible."""
        return GOAL

    @property
    def weights(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Where planted distances lie within clusters and across."""
        return TwoLevels(self.weight_range or (0.0, 1.0), self.contrast).intervals

    @property
    def share_across(self) -> float:
        """What planted counts across clusters are of those within."""
        return Counts(1.0, self.contrast).share_across

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers."""
        within, across = self.weights
        planted: dict[str, Any] = {
            "weight_range": list(self.weight_range or (0.0, 1.0)),
            "weight_range_assumed": self.weight_range is None,
            "contrast": self.contrast,
            "weights_within": list(within),
            "weights_across": list(across),
        }
        if self.kind == "similarity":
            clip = None if self.weight_range is None else list(self.weight_range)
            planted = {
                "total": self.total,
                "total_assumed": self.total is None,
                "weight_range": clip,
                "contrast": self.contrast,
                "share_across": self.share_across,
            }
        return {
            "n_nodes": self.n_nodes,
            "n_edges": self.n_edges,
            "sensitivity": self.sensitivity.to_dict(),
            "delta": self.delta,
            "kind": self.kind,
            **planted,
            "goal": GOAL,
            "repetitions": self.repetitions,
            "planned": self.planned,
            "curves": [curve.to_dict() for curve in self.curves],
            "topology_clusters": self.topology_clusters,
            "left_out": list(self.left_out),
        }

    def to_text(self) -> str:
        """Return the prediction as a page to read."""
        lines = [
            "Prediction: clusters planted on this topology, published with made-up weights.",
            "Nothing is spent.",
            *(self._distances() if self.kind == "distance" else self._counts()),
        ]
        lines.append("")
        if self.curves:
            lines += [*right_aligned(self._rows()), "", *self._legend()]
        for reason in self.left_out:
            lines += textwrap.wrap(f"Left out: {reason}.", 100, subsequent_indent="  ")
        return "\n".join(lines)

    def _distances(self) -> list[str]:
        within, across = ("{:.3g} to {:.3g}".format(*bounds) for bounds in self.weights)
        lines = [f"Weights are {within} within clusters and {across} across."]
        if self.weight_range is None:
            lines += [
                "No range of the weights was declared: they are taken to lie in 0 to 1, and if",
                "yours do not, all epsilons are wrong. Declare it (clip=).",
            ]
        return lines

    def _counts(self) -> list[str]:
        lines = [
            "Weights are counts as of flows: nodes differ widely in size, and pairs of large ones",
            f"have most. Across clusters there is {self.share_across:.3g} of what there is within.",
        ]
        if self.total is None:
            lines += [
                "How many records there are was not said: find yours below, about, or say it",
                "(total=), as far as you know it without a look at the weights.",
            ]
        return lines

    def plot(self, *, axes: Any = None) -> Any:
        """Draw agreement against epsilon with matplotlib, and return the axes."""
        from ptclust.drawing.plots import plot_prediction

        return plot_prediction(self, axes)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        planted = self._distances() if self.kind == "distance" else self._counts()
        known: list[tuple[str, object]] = [
            ("graph", f"{self.n_nodes:,} nodes, {self.n_edges:,} edges"),
            ("made-up weights", " ".join(planted)),
            *(("left out", reason) for reason in self.left_out),
        ]
        return facts("Prediction: nothing is spent", known, table(head, rows))

    def _rows(self) -> list[list[str]]:
        planned = [] if self.planned is None else [f"ARI at epsilon = {self.planned:g}"]
        counted = ["records"] if self.kind == "similarity" else []
        first = [*counted, "nodes each", "clusters", "visible from epsilon"]
        rows = [[*first, *planned, "topology alone"]]
        for curve in self.curves:
            records = [] if curve.total is None else [f"{curve.total:,.0f}"]
            size, count = f"{curve.typical_size:,}", f"{curve.n_clusters:,}"
            mean = [] if self.planned is None else [_mean(curve.at(self.planned))]
            rows.append([*records, size, count, _visible(curve), *mean, _two_digits(curve.control)])
        return rows

    def _legend(self) -> list[str]:
        times = "1 repetition" if self.repetitions == 1 else f"{self.repetitions} repetitions"
        lines = [
            f"Visible: a mean adjusted Rand index (ARI; 1 is all, 0 is chance) of at least {GOAL}",
            f"in {times}, at this epsilon and at all larger ones tried. Topology alone: the most",
            "that is found if the weights hold no clusters; so much of those is public anyway.",
            "Clusters as clear as these are visible there; yours may be less clear, and need more.",
        ]
        if any(curve.control >= GOAL for curve in self.curves):
            lines.append("Where the topology alone shows clusters, they say nothing about weights.")
        elif self.topology_clusters > 1:
            lines += [
                f"The topology alone shows {self.topology_clusters:,} other clusters, whatever the",
                "weights: expect those, and of others what the table says.",
            ]
        return lines


def _visible(curve: Curve) -> str:
    tried = [point.epsilon for point in curve.points]
    if curve.visible_from is None:
        return f"none up to {tried[-1]:g}"
    return f"{'at most ' * (curve.visible_from == tried[0])}{curve.visible_from:g}"


def _mean(point: Point | None) -> str:
    if point is None:
        return "-"
    value = _two_digits(point.ari)
    return value if point.margin is None else f"{value} ± {point.margin:.2f}"


def _two_digits(number: float) -> str:
    return f"{number:.2f}".replace("-0.00", "0.00")
