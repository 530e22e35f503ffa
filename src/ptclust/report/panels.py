"""Several pictures of the same points in a row, as the figures of the paper are arranged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._files import written_at_once
from ptclust.report.picture import check_format, cluster_colours, height_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["Panel", "draw_panels"]

_EDGES_AS_PATHS = 500
"""An SVG with more edges in a panel holds them as an image, or it would be far larger."""
_PLAIN = "#333333"
_LIGHT_TO_HEAVY = "#c9c9c9", "#8f8f8f", "#b00020"


@dataclass(frozen=True)
class Panel:
    """One picture: edges between the points, and the cluster of every point."""

    title: str
    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[np.float64]
    """From 0 to 1; shown as the colour of an edge."""
    labels: NDArray[np.int64] | None = None


def draw_panels(
    points: NDArray[np.float64], panels: Sequence[Panel], *, path: Path, title: str
) -> None:
    """Draw points and edges of all panels in one row, with a scale for the weights; singletons are crosses."""
    check_format(path)
    from matplotlib import rc_context
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
    svg = path.suffix.lower() == ".svg"
    with rc_context({"svg.hashsalt": "ptclust"}), written_at_once(path) as temporary:
        figure.savefig(temporary, dpi=100, metadata={"Date": None} if svg else {})


def _draw_panel(axes: Any, points: NDArray[np.float64], panel: Panel, shades: Any) -> None:
    from matplotlib.collections import LineCollection

    order = np.argsort(panel.weights)  # heavy edges are few, and on top
    a, b = panel.sources[order], panel.targets[order]
    edges = LineCollection(
        list(np.stack([points[a], points[b]], axis=1)),
        colors=shades.to_rgba(panel.weights[order]),
        linewidths=np.where(panel.weights[order] > 0.5, 1.3, 0.3 if panel.labels is None else 0.8),
        rasterized=len(a) > _EDGES_AS_PATHS,
        zorder=1,
    )
    axes.add_collection(edges)
    if panel.labels is None:
        axes.scatter(*points.T, s=10, c=_PLAIN, linewidths=0, zorder=2)
        return
    colours = cluster_colours(panel.labels)
    alone = np.bincount(panel.labels)[panel.labels] == 1
    axes.scatter(*points[~alone].T, s=22, c=colours[~alone], linewidths=0, zorder=2)
    axes.scatter(*points[alone].T, s=30, c=_PLAIN, marker="x", linewidths=1.2, zorder=3)
