"""PNG and SVG of clustered points and of clustered trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._files import written_at_once
from ptclust.errors import UsageError
from ptclust.report.layout import fan_layout

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from ptclust.clustering import WeightedTree

__all__ = ["check_format", "cluster_colours", "draw_points", "draw_tree", "height_of"]

#: Okabe and Ito's colours, told apart by all kinds of colour vision; then matplotlib's larger palette.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
_NOISE, _CUT = "#9a9a9a", "#bdbdbd"


def check_format(path: Path) -> None:
    """Raise UsageError if no picture can be written to a file of this name."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"a picture is written as .png, .svg or .pdf, and {path.name!r} is none")


def draw_tree(tree: WeightedTree, labels: ArrayLike, *, path: Path, title: str = "") -> None:
    """Draw a clustered tree: clusters in colour, cut edges long and grey. Weights play no part in the picture."""
    labels = np.asarray(labels)
    cut = (labels[tree.sources] != labels[tree.targets]) | (labels[tree.sources] < 0)
    places = fan_layout(tree.n_nodes, tree.sources, tree.targets, np.where(cut, 3.0, 1.0))
    draw_points(places, labels, tree=tree, path=path, title=title)


def draw_points(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    path: Path,
    tree: WeightedTree | None = None,
    title: str = "",
) -> None:
    """Draw points in the plane in the colours of their clusters, over the edges of a tree if one is given."""
    check_format(path)
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    points, labels = np.asarray(points, dtype=np.float64), np.asarray(labels)
    figure = Figure(figsize=(7, 7 * height_of(points)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    if title:
        axes.set_title(title)
    colours = cluster_colours(labels)
    size = float(np.clip(2000.0 / max(len(points), 1), 0.2, 40.0))
    if tree is not None and len(tree.sources):
        a, b = tree.sources, tree.targets
        cut = labels[a] != labels[b]
        axes.add_collection(
            LineCollection(
                list(np.stack([points[a], points[b]], axis=1)),
                colors=np.where(cut, _CUT, colours[a]),
                linewidths=np.where(cut, 0.5, 1.0) * min(1.2, size),
                zorder=1,
            )
        )
    axes.scatter(points[:, 0], points[:, 1], s=size, c=colours, linewidths=0, zorder=2)
    with written_at_once(path) as temporary:
        figure.savefig(temporary, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else {})


def height_of(points: NDArray[np.float64]) -> float:
    """Return the height of the picture for a width of one."""
    if len(points) < 2:
        return 1.0
    width, height = np.ptp(points, axis=0)
    return float(np.clip(height / width if width > 0 else 2.0, 0.4, 1.4))


def cluster_colours(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the colour of every label."""
    palette = np.array(_COLOURS)
    return np.where(labels < 0, _NOISE, palette[labels % len(palette)])
