"""Pictures as PNG, SVG and PDF files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ptclust._files import written_at_once
from ptclust._types import Floats
from ptclust.drawing.layout import along_tree
from ptclust.drawing.plots import height_of, plot_clusters
from ptclust.drawing.style import PLAIN
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from ptclust.clustering.dbcvi import WeightedTree

_NO_EDGES = np.empty(0, np.int64), np.empty(0, np.int64)


def check_format(path: Path) -> None:
    """Raise UsageError if no picture can be written to a file of this name."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"a picture is written as .png, .svg or .pdf, not as {path.name!r}")


def save_plot(
    draw: Callable[..., Any], path: Path, *, size: tuple[float, float] = (8.0, 6.0), dpi: int = 150
) -> None:
    """Write what ``draw(axes=)`` draws to a file."""
    check_format(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    draw(axes=figure.add_subplot())
    save(figure, path, dpi=dpi)


def save(figure: Any, path: Path, dpi: int) -> None:
    """Write a picture at once; of the same picture, the same bytes."""
    from matplotlib import rc_context

    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
    with rc_context({"svg.hashsalt": "ptclust"}), written_at_once(path) as temporary:
        figure.savefig(temporary, dpi=dpi, metadata=metadata)


def draw_tree(tree: WeightedTree, labels: ArrayLike, *, path: Path, title: str = "") -> None:
    """Draw a clustered tree: clusters in colour, cut edges long and grey. Weights are not shown."""
    check_format(path)
    found, edges = np.asarray(labels), (tree.sources, tree.targets)
    places = along_tree(tree.n_nodes, *edges, found)
    draw = partial(plot_clusters, found, edges=edges, places=places, title=title)
    save_plot(draw, path, size=(8.5, 7 * height_of(places)))


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

    ``places`` are names to write on the map, each at a longitude and latitude, as of cities.

    Raises
    ------
    UsageError
        Coordinates are not degrees, or not as many as labels.
    """
    found = np.asarray(labels)
    points = _degrees(longitudes, latitudes, len(found))

    def draw(axes: Any) -> None:
        plot_clusters(found, edges=_NO_EDGES, places=points, axes=axes, title=title, tags=False)
        axes.set_axis_on()
        shrink = np.cos(np.radians(points[:, 1].mean())) if len(points) else 1.0
        axes.set_aspect(1.0 / max(shrink, 0.1), adjustable="datalim")
        axes.set(xlabel="longitude", ylabel="latitude")
        axes.grid(color=PLAIN, alpha=0.15)
        axes.set_axisbelow(True)
        axes.margins(0.12)
        offset: dict[str, Any] = {"xytext": (12, 8), "textcoords": "offset points", "fontsize": 9}
        for name, place in (places or {}).items():
            axes.annotate(name, place, color=PLAIN, **offset)

    save_plot(draw, path, size=(9.0, 6.5))


def _degrees(longitudes: ArrayLike, latitudes: ArrayLike, count: int) -> Floats:
    columns = [np.asarray(each, dtype=np.float64).ravel() for each in (longitudes, latitudes)]
    for name, values, most in zip(("longitude", "latitude"), columns, (360, 90), strict=True):
        if len(values) != count:
            raise UsageError(f"{len(values):,} {name}s for {count:,} labels; give one per node")
        if not np.all(np.abs(values) <= most):
            wrong = values[~(np.abs(values) <= most)][0]
            raise UsageError(f"a {name} is a number of degrees up to {most}, not {wrong:g}")
    return np.stack(columns, axis=1)
