"""PNG, SVG and PDF of clustered points and trees, of several such pictures, and of a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ptclust._files import written_at_once
from ptclust._kernel import kernel
from ptclust._types import Array, Floats, Ints
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from ptclust.clustering.dbcvi import WeightedTree
    from ptclust.planning.result import Curve, Prediction

_Array = Array
_Floats = Floats

#: Okabe and Ito's colours, which all kinds of colour vision can distinguish.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
_UNCLUSTERED, _CUT, _PLAIN, _AUXILIARY = "#9a9a9a", "#bdbdbd", "#333333", "#777777"
_LIGHT_TO_HEAVY = "#c9c9c9", "#8f8f8f", "#b00020"
_BETWEEN_TREES = 6.0
_EDGES_AS_PATHS = 500  # an SVG with more edges in a panel holds them as an image, to be smaller


def check_format(path: Path) -> None:
    """Raise UsageError if no picture can be written to a file of this name."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"a picture is written as .png, .svg or .pdf, and {path.name!r} is none")


def draw_tree(tree: WeightedTree, labels: ArrayLike, *, path: Path, title: str = "") -> None:
    """Draw a clustered tree: clusters in colour, cut edges long and grey. Weights are not shown."""
    labels = np.asarray(labels)
    cut = (labels[tree.sources] != labels[tree.targets]) | (labels[tree.sources] < 0)
    places = _fan_layout(tree.n_nodes, tree.sources, tree.targets, np.where(cut, 3.0, 1.0))
    draw_points(places, labels, tree=tree, path=path, title=title)


def draw_points(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    path: Path,
    tree: WeightedTree | None = None,
    title: str = "",
) -> None:
    """Draw points in the colours of their clusters, over the edges of a tree if one is given."""
    check_format(path)
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    points, labels = np.asarray(points, dtype=np.float64), np.asarray(labels)
    figure = Figure(figsize=(7, 7 * _height_of(points)), layout="constrained")
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
        lines = list(np.stack([points[a], points[b]], axis=1))
        widths = np.where(cut, 0.5, 1.0) * min(1.2, size)
        inks = np.where(cut, _CUT, colours[a])
        axes.add_collection(LineCollection(lines, colors=inks, linewidths=widths, zorder=1))
    axes.scatter(points[:, 0], points[:, 1], s=size, c=colours, linewidths=0, zorder=2)
    _save(figure, path, dpi=150)


def _save(figure: Any, path: Path, dpi: int) -> None:
    """Write a picture at once; of the same picture, the same bytes."""
    from matplotlib import rc_context

    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
    with rc_context({"svg.hashsalt": "ptclust"}), written_at_once(path) as temporary:
        figure.savefig(temporary, dpi=dpi, metadata=metadata)


def _height_of(points: _Floats) -> float:
    """Return the height of the picture for a width of one."""
    if len(points) < 2:
        return 1.0
    width, height = np.ptp(points, axis=0)
    return float(np.clip(height / width if width > 0 else 2.0, 0.4, 1.4))


def cluster_colours(labels: _Array) -> _Array:
    """Return the colour of every label."""
    palette = np.array(_COLOURS)
    return np.where(labels < 0, _UNCLUSTERED, palette[labels % len(palette)])


@dataclass(frozen=True)
class Panel:
    """One picture of several: edges between the points, and the cluster of every point."""

    title: str
    sources: _Array
    targets: _Array
    weights: _Floats  # from 0 to 1; shown as the colour of an edge
    labels: Ints | None = None


def draw_panels(points: _Floats, panels: Sequence[Panel], *, path: Path, title: str) -> None:
    """Draw all panels in one row, as the paper's figures are arranged; singletons are crosses."""
    check_format(path)
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    size = 3.2 * len(panels) + 0.6, 3.2 * _height_of(points) + 0.9
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
    _save(figure, path, dpi=100)


def _draw_panel(axes: Any, points: _Floats, panel: Panel, shades: Any) -> None:
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
        axes.scatter(*points.T, s=10, c=_PLAIN, linewidths=0, zorder=2)
        return
    colours = cluster_colours(panel.labels)
    alone = np.bincount(panel.labels)[panel.labels] == 1
    axes.scatter(*points[~alone].T, s=22, c=colours[~alone], linewidths=0, zorder=2)
    axes.scatter(*points[alone].T, s=30, c=_PLAIN, marker="x", linewidths=1.2, zorder=3)


def draw_curve(prediction: Prediction, *, path: Path) -> None:
    """Draw agreement against epsilon, with its interval, for every size of planted clusters.

    Dashed is the topology alone, dotted the planned epsilon.
    """
    check_format(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    ylabel = "agreement with planted clusters (ARI)"
    axes.set(ylim=(-0.05, 1.05), xlabel="epsilon", ylabel=ylabel)
    graph = f"{prediction.n_nodes:,} nodes, {prediction.n_edges:,} edges"
    axes.set_title(f"{graph}; weights made up, nothing spent", fontsize=10)
    axes.axhline(prediction.goal, color="#dddddd", linewidth=0.8, zorder=0)
    colours = cluster_colours(np.arange(len(prediction.curves)))
    for colour, curve in zip(colours.tolist(), prediction.curves, strict=True):
        _draw_size(axes, curve, colour)
    if prediction.curves:
        axes.plot([], [], "--", color=_AUXILIARY, linewidth=0.9, label="topology alone")
    if (planned := prediction.planned) is not None:
        label = f"planned: epsilon = {planned:g}"
        axes.axvline(planned, color=_AUXILIARY, linestyle=":", linewidth=1.0, label=label)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    _save(figure, path, dpi=150)


def _draw_size(axes: Any, curve: Curve, colour: str) -> None:
    epsilons = np.array([point.epsilon for point in curve.points])
    ari = np.array([point.ari for point in curve.points])
    margin = np.array([point.margin or 0.0 for point in curve.points])
    label = f"{curve.n_clusters:,} clusters of {curve.typical_size:,} nodes"
    axes.plot(epsilons, ari, "o-", color=colour, markersize=3, linewidth=1.4, label=label)
    axes.fill_between(epsilons, ari - margin, ari + margin, color=colour, alpha=0.15, linewidth=0)
    controls = [(p.epsilon, p.control) for p in curve.points if p.control is not None]
    axes.plot(*zip(*controls, strict=True), "--", color=colour, linewidth=0.9)


def _fan_layout(n_nodes: int, sources: _Array, targets: _Array, lengths: _Floats) -> _Floats:
    """Return places such that no two edges of a tree cross, in linear time.

    Every subtree gets a fan as wide as its share of leaves (Felsenstein's equal-angle layout). The
    trees of a forest hang on one invisible root, node ``n_nodes``.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    def adjacency(a: _Array, b: _Array) -> Any:
        ends = a.astype(np.int32), b.astype(np.int32)  # scipy before 1.15 wants these
        return coo_array((np.ones(len(a), np.int8), ends), shape=(n_nodes + 1,) * 2)

    _, tree = connected_components(adjacency(sources, targets), directed=False)
    firsts = np.unique(tree[:-1], return_index=True)[1]
    a = np.concatenate([sources, np.full(len(firsts), n_nodes)])
    b = np.concatenate([targets, firsts])
    order, parent = breadth_first_order(adjacency(a, b), n_nodes, directed=False)
    length = np.empty(n_nodes + 1)
    child = np.where(parent[b] == a, b, a)
    length[child] = np.concatenate([lengths, np.full(len(firsts), _BETWEEN_TREES)])
    places = np.zeros((n_nodes + 1, 2))
    _place(order, parent, length, places)
    return places[:n_nodes]


@kernel
def _place(order: _Array, parent: _Array, length: _Floats, places: _Floats) -> None:
    """Fill ``places``; ``order`` lists the root first and every other node after its parent."""
    n_nodes = len(order)
    leaves = np.zeros(n_nodes)
    for i in range(n_nodes - 1, 0, -1):
        v = order[i]
        leaves[v] = max(leaves[v], 1.0)
        leaves[parent[v]] += leaves[v]
    begin, width = np.zeros(n_nodes), np.zeros(n_nodes)
    width[order[0]] = 2.0 * np.pi
    for i in range(1, n_nodes):
        v = order[i]
        up = parent[v]
        width[v] = width[up] * leaves[v] / leaves[up]
        angle = begin[up] + width[v] / 2.0
        places[v, 0] = places[up, 0] + length[v] * np.cos(angle)
        places[v, 1] = places[up, 1] + length[v] * np.sin(angle)
        begin[v] = begin[up]
        begin[up] += width[v]
