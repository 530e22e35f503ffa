"""Pictures by matplotlib: clusters, levels of clusters, trees, maps, plans, predictions.

All input is plain numbers: this package imports no graph, release or weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ptclust._files import written_at_once
from ptclust._markup import shortened
from ptclust._types import Array, Floats, Ints
from ptclust.drawing.layout import along_tree, packed, spacing
from ptclust.drawing.style import AUXILIARY, COLOURS, CUT, PLAIN, Groups
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from ptclust.clustering.dbcvi import WeightedTree
    from ptclust.planning.plan import Plan
    from ptclust.planning.prediction import Prediction

_MOST_NODES, _MOST_ON_MAP = 2_000, 20_000
_MOST_EDGES = 4_000
_MOST_NAMES = 150
_MOST_TAGS = 60
_IN_LEGEND = 14
_PALEST = 0.2  # opacity of a node of probability 0
_POINTS_ACROSS = 400.0  # about how wide axes are
_PACKED = "Positions show which nodes are together, nothing else."

Edges = tuple[Array, Array]
_NO_EDGES = np.empty(0, np.int64), np.empty(0, np.int64)


def plot_clusters(
    labels: Ints,
    *,
    edges: Edges,
    names: Array | None = None,
    places: Floats | None = None,
    axes: Any = None,
    probabilities: Floats | None = None,
    title: str = "",
    legend: bool = True,
    tags: bool = True,
) -> Any:
    """Draw nodes in the colours and markers of their clusters, and return the axes.

    Without ``places`` the nodes of a cluster are packed into a disc. Large graphs are aggregated: a
    disc is a cluster, and the picture says so. Less probable nodes are paler.
    """
    groups, on_map = Groups.of(labels), places is not None
    if axes is None:
        axes = new_axes((8.0, 6.0 * (1.0 if places is None else height_of(places))))
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=10, wrap=True)
    if places is None:
        places, centres, radii = packed([labels], *edges)
        across = labels[edges[0]] != labels[edges[1]]  # edges within a disc say nothing
        edges, note = (edges[0][across], edges[1][across]), _PACKED
    else:
        sizes = np.array([group.size for group in groups.all])
        extent = float(np.ptp(places, axis=0).max()) if len(places) else 1.0
        centres, radii = centres_of(groups, places), 0.25 * extent * np.sqrt(sizes / len(places))
        note = ""
    if aggregated := is_aggregated(len(labels), on_map=on_map):
        note = f"Aggregated: {len(labels):,} nodes; a disc is a cluster, its area their number."
    if aggregated or not on_map:
        _draw_discs(axes, groups, centres, radii, alpha=0.75 if aggregated else 0.12)
    if not aggregated:
        _draw_nodes(axes, groups, places, edges, probabilities)
    if tags:
        _draw_tags(axes, groups, centres, above=3 if on_map and not aggregated else 0)
    if note:
        below = {"ha": "center", "va": "top", "fontsize": 7, "color": AUXILIARY}
        axes.text(0.5, -0.02, note, transform=axes.transAxes, **below)
    if legend:
        _draw_legend(axes, groups)
    if names is not None and len(labels) <= _MOST_NAMES and not aggregated:
        _write_names(axes, places, names)
    return axes


def plot_levels(
    levels: Sequence[tuple[str, Ints]],
    *,
    edges: Edges,
    places: Floats | None = None,
    title: str = "",
) -> Array:
    """Draw every level beside the others, nodes at the same places; return the array of axes."""
    from matplotlib import pyplot as plt

    columns = min(len(levels), 3)
    rows = -(-len(levels) // columns)
    size = 4.2 * columns, 4.2 * rows
    figure, grid = plt.subplots(rows, columns, squeeze=False, figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=11)
    every = grid.ravel()
    if places is None:
        places = packed([labels for _, labels in levels], *edges).places
        edges = edges[0][:0], edges[1][:0]  # between packed places they say nothing
    for axes, (name, labels) in zip(every, levels, strict=False):
        plot_clusters(labels, edges=edges, places=places, axes=axes, title=name, legend=False)
    for axes in every[len(levels) :]:
        axes.set_axis_off()
    return np.asarray(every[: len(levels)])


def plot_plan(plan: Plan, axes: Any = None) -> Any:
    """Draw how far apart clusters must be to be seen, for every mechanism; return the axes."""
    axes = new_axes((7.0, 1.4 + 0.45 * len(plan.calibrations))) if axes is None else axes
    for i, each in enumerate(reversed(plan.calibrations)):
        chosen = each is plan.chosen
        axes.barh(i, each.visible_gap, color=COLOURS[0] if chosen else CUT, height=0.6)
        word = f" {each.visible_gap:.3g}" + "  chosen" * chosen
        axes.text(each.visible_gap, i, word, va="center", fontsize=8)
        axes.plot([each.noise] * 2, [i - 0.3, i + 0.3], color=PLAIN, linewidth=1.5)
    axes.plot([], [], color=PLAIN, linewidth=1.5, label="standard deviation of the noise")
    axes.set_yticks(range(len(plan.calibrations)))
    axes.set_yticklabels([each.mechanism for each in reversed(plan.calibrations)])
    if plan.request.clip is not None:
        width = plan.request.clip[1] - plan.request.clip[0]
        axes.axvline(width, color=COLOURS[1], linestyle="--", label=f"range of weights: {width:g}")
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("visible gap: how far apart weights within and across clusters must be")
    axes.set_title(f"{plan.n_nodes:,} nodes, {plan.n_edges:,} edges; {plan.budget}", fontsize=10)
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.08), ncols=2, frameon=False)
    return axes


def plot_prediction(prediction: Prediction, axes: Any = None) -> Any:
    """Draw the interval of agreement against epsilon; dotted is the planned epsilon."""
    axes = new_axes((7, 4.2)) if axes is None else axes
    axes.set_xscale("log")
    ylabel = "agreement with planted clusters (ARI)"
    axes.set(ylim=(-0.05, 1.05), xlabel="epsilon", ylabel=ylabel)
    graph = f"{prediction.n_nodes:,} nodes, {prediction.n_edges:,} edges"
    axes.set_title(f"{graph}; weights made up, nothing spent", fontsize=10)
    points, colour = prediction.points, COLOURS[0]
    epsilons = [point.epsilon for point in points]
    low, high = [point.low for point in points], [point.high for point in points]
    axes.fill_between(
        epsilons, low, high, color=colour, alpha=0.2, linewidth=0, label="nine of ten"
    )
    likely = [point.likely for point in points]
    axes.plot(epsilons, likely, "o-", color=colour, markersize=3, label="three of four reach")
    if prediction.topology_clusters > 1:
        alone = prediction.topology_alone
        axes.axhline(alone, color=AUXILIARY, linestyle="--", linewidth=0.9, label="topology alone")
    if (planned := prediction.planned) is not None:
        label = f"planned: epsilon = {planned:g}"
        axes.axvline(planned, color=AUXILIARY, linestyle=":", linewidth=1.0, label=label)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return axes


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


def new_axes(size: tuple[float, float]) -> Any:
    """Return axes in a new figure of pyplot, which notebooks show."""
    from matplotlib import pyplot as plt

    return plt.figure(figsize=size, layout="constrained").add_subplot()


def is_aggregated(n_nodes: int, *, on_map: bool) -> bool:
    """Return whether a disc stands for a cluster, because there are too many nodes to draw."""
    return n_nodes > (_MOST_ON_MAP if on_map else _MOST_NODES)


def height_of(places: Floats) -> float:
    """Return the height of a picture of these places for a width of one."""
    if len(places) < 2:
        return 1.0
    width, height = np.ptp(places, axis=0)
    return float(np.clip(height / width if width > 0 else 2.0, 0.4, 1.4))


def centres_of(groups: Groups, places: Floats) -> Floats:
    """Return the place of the node of every group that is nearest to the middle of the group."""
    of_node, sizes = groups.of_node, np.array([group.size for group in groups.all], np.int64)
    sums = [np.bincount(of_node, column, minlength=len(sizes)) for column in places.T]
    away = ((places - (np.stack(sums, axis=1) / sizes[:, None])[of_node]) ** 2).sum(axis=1)
    nearest: Ints = np.lexsort((away, of_node))[np.cumsum(sizes) - sizes]
    return places[nearest]


def _mark_size(places: Floats) -> float:
    """Return the area of a mark in square points: no larger than most nodes have space for."""
    count, extent = max(len(places), 1), float(np.ptp(places, axis=0).max()) if len(places) else 0.0
    if not extent:
        return 60.0
    width = 1.4 * spacing(places) / extent * _POINTS_ACROSS
    return float(np.clip(width**2, np.clip(1200 / count, 1.0, 16.0), 60.0))


def _draw_nodes(
    axes: Any, groups: Groups, places: Floats, edges: Edges, probabilities: Floats | None = None
) -> None:
    from matplotlib.collections import LineCollection

    a, b = edges
    if 0 < len(a) <= _MOST_EDGES:
        within = groups.labels[a] == groups.labels[b]
        colours = np.array([group.colour for group in groups.all])
        inks = np.where(within & (groups.labels[a] >= 0), colours[groups.of_node[a]], CUT)
        lines = list(np.stack([places[a], places[b]], axis=1))
        widths = np.where(within, 0.8, 0.4) * min(1.0, 600 / len(a) + 0.3)
        axes.add_collection(LineCollection(lines, colors=inks, linewidths=widths, zorder=1))
    size = _mark_size(places)
    for i, group in enumerate(groups.all):
        own = groups.of_node == i
        alpha = None if probabilities is None else _PALEST + (1 - _PALEST) * probabilities[own]
        edge = {} if group.marker == "x" else {"edgecolors": PLAIN}
        width = 0.25 if edge else 0.8
        axes.scatter(
            *places[own].T, s=size * (0.6 if group.label is None else 1.0), c=group.colour,
            marker=group.marker, linewidths=width if size > 8 else 0.0 if edge else 0.4, zorder=2,
            rasterized=len(places) > _MOST_NODES, alpha=alpha, **edge,
        )  # fmt: skip


def _draw_discs(axes: Any, groups: Groups, centres: Floats, radii: Floats, alpha: float) -> None:
    from matplotlib.patches import Circle

    for group, centre, radius in zip(groups.all, centres, radii, strict=True):
        style = {"facecolor": group.colour, "alpha": alpha, "edgecolor": PLAIN, "linewidth": 0.5}
        axes.add_patch(Circle(tuple(centre), float(radius), **style))
    axes.autoscale_view()


def _draw_tags(axes: Any, groups: Groups, centres: Floats, above: int) -> None:
    """Write the number of a cluster on it, or so many points above, unless there are too many."""
    from matplotlib.patheffects import withStroke

    tagged = sorted(zip(groups.all, centres, strict=True), key=lambda each: -each[0].size)
    for group, centre in tagged[:_MOST_TAGS]:
        if group.tag:
            halo = [withStroke(linewidth=2.5, foreground="white")]
            axes.annotate(
                group.tag, centre, xytext=(0, above), textcoords="offset points", ha="center",
                va="bottom" if above else "center", fontsize=9, fontweight="bold", color="black",
                path_effects=halo, zorder=5,
            )  # fmt: skip


def _draw_legend(axes: Any, groups: Groups) -> None:
    """Draw a legend of the largest clusters, and say how many more there are."""
    from matplotlib.lines import Line2D

    clusters = sorted((g for g in groups.all if g.label is not None), key=lambda g: -g.size)
    rest = [group for group in groups.all if group.label is None]
    handles = []
    for group in (*clusters[:_IN_LEGEND], *rest):
        style: dict[str, Any] = {"marker": group.marker, "color": group.colour, "markersize": 6}
        if group.marker != "x":
            style |= {"markeredgecolor": PLAIN, "markeredgewidth": 0.3}
        handles.append(Line2D([], [], linestyle="none", label=group.title, **style))
    if (left := len(clusters) - _IN_LEGEND) > 0:
        more = Line2D([], [], linestyle="none", label=f"and {left:,} more clusters")
        handles.insert(_IN_LEGEND, more)
    if handles:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
        axes.legend(handles=handles, fontsize=8, **place)


def _write_names(axes: Any, places: Floats, names: Array) -> None:
    """Write the names of nodes right or left of them, as long as they cover nothing."""
    figure = axes.get_figure()
    figure.draw_without_rendering()  # or nothing is where it will be
    unit = figure.dpi / 72.0
    pixels, half = axes.transData.transform(places), 0.5 * np.sqrt(_mark_size(places)) * unit
    tags = (text.get_window_extent().extents for text in axes.texts if text.get_text())
    taken = np.concatenate([np.hstack([pixels - half, pixels + half]), *([tag] for tag in tags)])
    for (x, y), place, name in zip(pixels.tolist(), places, names.tolist(), strict=True):
        text, away = shortened(str(name)), half + unit
        width, low, high = 3.6 * unit * len(text), y - 3.5 * unit, y + 3.5 * unit
        for side, left in (("left", x + away), ("right", x - away - width)):
            box = left, low, left + width, high
            covered = (box[0] < taken[:, 2]) & (taken[:, 0] < box[2])
            if not np.any(covered & (box[1] < taken[:, 3]) & (taken[:, 1] < box[3])):
                taken = np.vstack([taken, box])
                beside = away / unit if side == "left" else -away / unit
                axes.annotate(
                    text, place, xytext=(beside, 0), textcoords="offset points", ha=side,
                    va="center", fontsize=6, color=PLAIN, parse_math=False, zorder=4,
                )  # fmt: skip
                break
