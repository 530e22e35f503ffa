"""PNG and SVG of a prediction: agreement with planted clusters against epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._files import written_at_once
from ptclust.prediction.result import GOAL
from ptclust.report.picture import check_format, cluster_colours

if TYPE_CHECKING:
    from pathlib import Path

    from ptclust.prediction import Curve, Prediction

__all__ = ["draw_curve"]


def draw_curve(prediction: Prediction, *, path: Path) -> None:
    """Draw a line with its interval for every size; dashed is the topology alone, dotted the planned epsilon."""
    check_format(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_ylim(-0.05, 1.05)
    axes.set_xlabel("epsilon")
    axes.set_ylabel("agreement with planted clusters (ARI)")
    axes.set_title(
        f"{prediction.n_nodes:,} nodes, {prediction.n_edges:,} edges; weights made up, nothing spent",
        fontsize=10,
    )
    axes.axhline(GOAL, color="#dddddd", linewidth=0.8, zorder=0)
    colours = cluster_colours(np.arange(len(prediction.curves)))
    for colour, curve in zip(colours.tolist(), prediction.curves, strict=True):
        _draw_size(axes, curve, colour)
    if prediction.curves:
        axes.plot([], [], "--", color="#777777", linewidth=0.9, label="topology alone")
    if prediction.planned is not None:
        label = f"planned: epsilon = {prediction.planned:g}"
        axes.axvline(prediction.planned, color="#777777", linestyle=":", linewidth=1.0, label=label)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    svg = path.suffix.lower() == ".svg"
    with rc_context({"svg.hashsalt": "ptclust"}), written_at_once(path) as temporary:
        figure.savefig(temporary, dpi=150, metadata={"Date": None} if svg else {})


def _draw_size(axes: Any, curve: Curve, colour: str) -> None:
    epsilons = np.array([point.epsilon for point in curve.points])
    ari = np.array([point.ari for point in curve.points])
    margin = np.array([point.margin or 0.0 for point in curve.points])
    label = f"{curve.n_clusters:,} clusters of {curve.typical_size:,} nodes"
    axes.plot(epsilons, ari, "o-", color=colour, markersize=3, linewidth=1.4, label=label)
    axes.fill_between(epsilons, ari - margin, ari + margin, color=colour, alpha=0.15, linewidth=0)
    controls = [(p.epsilon, p.control) for p in curve.points if p.control is not None]
    axes.plot(*zip(*controls, strict=True), "--", color=colour, linewidth=0.9)
