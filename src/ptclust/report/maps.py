"""Clusters on a map: nodes where they are on Earth, in the colours of their clusters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ptclust._types import Floats, Ints
from ptclust.drawing.pictures import check_format, save
from ptclust.drawing.plots import draw_legend, mark_size
from ptclust.drawing.style import Groups
from ptclust.errors import UsageError

__all__ = ["draw_map"]

_TEXT, _GRID = "#333333", "#e4e4e4"


def draw_map(
    longitudes: ArrayLike,
    latitudes: ArrayLike,
    labels: ArrayLike,
    *,
    path: Path,
    title: str = "",
    places: Mapping[str, tuple[float, float]] | None = None,
) -> None:
    """Draw nodes at their longitudes and latitudes, in degrees, with a legend of the clusters.

    Clusters are numbered as in ``labels``; each has a colour and a marker. ``places`` are names to
    write on the map, each at a longitude and latitude, as of cities.

    Raises
    ------
    UsageError
        Coordinates are not degrees, or not as many as labels.
    """
    check_format(path)
    from matplotlib.figure import Figure

    labels = np.asarray(labels)
    points = _degrees(longitudes, latitudes, len(labels))
    shrink = np.cos(np.radians(points[:, 1].mean())) if len(points) else 1.0
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_aspect(1.0 / max(shrink, 0.1), adjustable="datalim")
    axes.set(title=title, xlabel="longitude", ylabel="latitude")
    axes.grid(color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    _draw_clusters(axes, points, labels)
    for name, (longitude, latitude) in (places or {}).items():
        axes.annotate(
            name,
            (longitude, latitude),
            xytext=(12, 8),
            textcoords="offset points",
            fontsize=9,
            color=_TEXT,
        )
    axes.margins(0.12)
    save(figure, path, dpi=150)


def _degrees(longitudes: ArrayLike, latitudes: ArrayLike, count: int) -> Floats:
    columns = [np.asarray(each, dtype=np.float64).ravel() for each in (longitudes, latitudes)]
    for name, values, most in zip(("longitude", "latitude"), columns, (360, 90), strict=True):
        if len(values) != count:
            raise UsageError(f"{len(values):,} {name}s for {count:,} labels; give one per node")
        if not np.all(np.abs(values) <= most):
            wrong = values[~(np.abs(values) <= most)][0]
            raise UsageError(f"a {name} is a number of degrees up to {most}, not {wrong:g}")
    return np.stack(columns, axis=1)


def _draw_clusters(axes: Any, points: Floats, labels: Ints) -> None:
    """Draw every cluster as all pictures do, with its line in the legend."""
    groups, size = Groups.of(labels), mark_size(points)
    for i, group in enumerate(groups.all):
        outline = {} if group.marker == "x" else {"edgecolors": "white", "linewidths": 0.4}
        here = points[groups.of_node == i]
        axes.scatter(*here.T, s=size, c=group.colour, marker=group.marker, **outline)
    draw_legend(axes, groups, loc="best", framealpha=0.9)
