"""Pictures as PNG, SVG and PDF files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ptclust._files import written_at_once
from ptclust._types import Array, Floats, Ints
from ptclust.drawing.layout import fan
from ptclust.drawing.plots import height_of, plot_clusters, plot_prediction
from ptclust.drawing.style import PLAIN, cluster_colours
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from ptclust.clustering.dbcvi import WeightedTree
    from ptclust.planning.prediction import Prediction

_LIGHT_TO_HEAVY = "#c9c9c9", "#8f8f8f", "#b00020"
_EDGES_AS_PATHS = 500  # an SVG with more edges in a panel holds them as an image, to be smaller


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


def tree_places(tree: WeightedTree, labels: Ints) -> Floats:
    """Return places along a tree, from its edges alone: those between clusters are long."""
    cut = (labels[tree.sources] != labels[tree.targets]) | (labels[tree.sources] < 0)
    return fan(tree.n_nodes, tree.sources, tree.targets, np.where(cut, 3.0, 1.0))


def draw_tree(tree: WeightedTree, labels: ArrayLike, *, path: Path, title: str = "") -> None:
    """Draw a clustered tree: clusters in colour, cut edges long and grey. Weights are not shown."""
    check_format(path)
    labels = np.asarray(labels)
    draw_points(tree_places(tree, labels), labels, tree=tree, path=path, title=title)


def draw_points(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    path: Path,
    tree: WeightedTree | None = None,
    title: str = "",
) -> None:
    """Draw points in the colours of their clusters, over the edges of a tree if one is given."""
    places, labels = np.asarray(points, dtype=np.float64), np.asarray(labels)
    none = np.empty(0, np.int64)
    edges = (none, none) if tree is None else (tree.sources, tree.targets)

    def draw(axes: Any) -> None:
        plot_clusters(labels, edges=edges, places=places, axes=axes, title=title)

    save_plot(draw, path, size=(8.5, 7 * height_of(places)))


def draw_curve(prediction: Prediction, *, path: Path) -> None:
    """Draw a prediction to a file."""

    def draw(axes: Any) -> None:
        plot_prediction(prediction, axes)

    save_plot(draw, path, size=(7, 4.2))


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
    colours = cluster_colours(panel.labels)
    alone = np.bincount(panel.labels)[panel.labels] == 1
    axes.scatter(*points[~alone].T, s=22, c=colours[~alone], linewidths=0, zorder=2)
    axes.scatter(*points[alone].T, s=30, c=PLAIN, marker="x", linewidths=1.2, zorder=3)
