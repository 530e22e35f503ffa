"""Several clusterings of one set of points side by side, as the paper's figures are arranged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ptclust._types import Array, Floats, Ints
from ptclust.drawing.plots import check_format, height_of, save
from ptclust.drawing.style import COLOURS, PLAIN

_LIGHT_TO_HEAVY = "#c9c9c9", "#8f8f8f", "#b00020"
_EDGES_AS_PATHS = 500  # an SVG with more edges in a panel holds them as an image, to be smaller


@dataclass(frozen=True)
class Panel:
    """One picture of several: edges between the points, and the cluster of every point."""

    title: str
    sources: Array
    targets: Array
    weights: Floats  # from 0 to 1; shown as the colour of an edge
    labels: Ints | None = None


def draw_panels(points: Floats, panels: Sequence[Panel], *, path: Path, title: str) -> None:
    """Draw all panels in one row, as the paper's figures are arranged; singletons are crosses."""
    check_format(path)
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    size = 3.2 * len(panels) + 0.6, 3.2 * height_of(points) + 0.9
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=11)
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    shades = ScalarMappable(cmap=LinearSegmentedColormap.from_list("weights", _LIGHT_TO_HEAVY))
    shades.set_clim(0.0, 1.0)
    for letter, axes, panel in zip("abcdefghij", row, panels, strict=False):
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_title(f"({letter}) {panel.title}", fontsize=8.5)
        _draw_panel(axes, points, panel, shades)
    bar = figure.colorbar(shades, ax=row, fraction=0.012, pad=0.005, ticks=[0, 0.5, 1])
    bar.ax.tick_params(labelsize=7)
    bar.set_label("weight in the graph", fontsize=7)
    save(figure, path, dpi=100)


def _draw_panel(axes: Any, points: Floats, panel: Panel, shades: Any) -> None:
    from matplotlib.collections import LineCollection

    order = np.argsort(panel.weights)  # heavy edges are few, and on top
    a, b = panel.sources[order], panel.targets[order]
    weights = panel.weights[order]
    edges = LineCollection(
        list(np.stack([points[a], points[b]], axis=1)),
        colors=shades.to_rgba(weights),
        linewidths=np.where(weights > 0.5, 1.3, 0.3 if panel.labels is None else 0.8),
        rasterized=len(a) > _EDGES_AS_PATHS,
        zorder=1,
    )
    axes.add_collection(edges)
    if panel.labels is None:
        axes.scatter(*points.T, s=10, c=PLAIN, linewidths=0, zorder=2)
        return
    colours = np.array(COLOURS)[panel.labels % len(COLOURS)]
    alone = np.bincount(panel.labels)[panel.labels] == 1
    axes.scatter(*points[~alone].T, s=22, c=colours[~alone], linewidths=0, zorder=2)
    axes.scatter(*points[alone].T, s=30, c=PLAIN, marker="x", linewidths=1.2, zorder=3)
