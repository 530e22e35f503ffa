"""The picture on the page of a release: a shape for every cluster, as paths of an inline SVG.

Places are in a box 1,000 wide, in whole numbers where there are many, so that 10,000 nodes take
some 200 kB and no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._types import Floats, Ints
from ptclust.clustering.certainty import SURE
from ptclust.drawing import style
from ptclust.drawing.layout import packed_by_levels, spacing
from ptclust.drawing.plots import centres_of, height_of, is_aggregated
from ptclust.drawing.style import Group, Groups

if TYPE_CHECKING:
    from ptclust.release import Release

WIDTH, _MARGIN = 1000, 25
MOST_TAGS = 120
_HALO = 2.8  # in the unit of the layout, where a node has an area of pi
_MOST_FINE = 3_000  # nodes whose places have a decimal, for zooming

#: Corners of the markers after the round one, in the order of ``drawing.style.MARKERS``.
_POLYGONS: tuple[tuple[tuple[float, float], ...], ...] = (
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
    (
        (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4), (0.4, 1.2),
        (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
    ),
    (
        (0, -0.5), (0.7, -1.2), (1.2, -0.7), (0.5, 0), (1.2, 0.7), (0.7, 1.2), (0, 0.5),
        (-0.7, 1.2), (-1.2, 0.7), (-0.5, 0), (-1.2, -0.7), (-0.7, -1.2),
    ),
    (
        (0, -1.4), (0.4, -0.4), (1.4, -0.4), (0.6, 0.2), (0.9, 1.2), (0, 0.6), (-0.9, 1.2),
        (-0.6, 0.2), (-1.4, -0.4), (-0.4, -0.4),
    ),
)  # fmt: skip
_CROSS = len(_POLYGONS) + 1  # nodes alone
_DOT = _CROSS + 1  # nodes without a look of their own

Shape = tuple[tuple[float, float], str]  # where a path begins, beside its point, and the path


def shapes_of(radius: float) -> list[Shape]:
    """Return all markers of a size, as relative paths."""
    return [
        _circle(radius),
        *(_polygon([(x * radius, y * radius) for x, y in corners]) for corners in _POLYGONS),
        (
            (-radius, -radius),
            f"l{2 * radius:g} {2 * radius:g}m0-{2 * radius:g}l-{2 * radius:g} {2 * radius:g}",
        ),
        _circle(0.6 * radius),
    ]


def _circle(radius: float) -> Shape:
    arc, across = f"a{radius:g} {radius:g} 0 1 0", f"{2 * radius:g}"
    return (-radius, 0.0), f"{arc} {across} 0{arc}-{across} 0z"


def _polygon(corners: list[tuple[float, float]]) -> Shape:
    steps = (
        f"l{round(x - before_x, 1):g} {round(y - before_y, 1):g}"
        for (before_x, before_y), (x, y) in pairwise(corners)
    )
    return corners[0], "".join(steps) + "z"


@dataclass(frozen=True)
class Picture:
    """Where every node is on the page, and how large it is drawn."""

    places: Floats
    """One row per node; of many nodes, whole numbers."""
    height: int
    radius: float
    aggregated: bool
    """Whether a disc stands for a cluster, because there are too many nodes to draw."""
    on_map: bool
    scale: float
    """Pixels in a unit of the coordinates."""
    unit: float
    """The radius of a disc that stands for one node; areas add up."""
    halo: int
    """How wide the ground around packed nodes is that shows their cluster; 0 on a map."""

    @classmethod
    def of(cls, release: Release, coordinates: Floats | None) -> Picture:
        """Return the picture of a release at coordinates, or packed by cluster."""
        if coordinates is None:
            partitions = [level.labels for level in release.levels] or [release.labels]
            drawn = packed_by_levels(partitions, release.tree.sources, release.tree.targets)
        else:
            drawn = coordinates
        height = round(WIDTH * min(height_of(drawn), 0.8)) if len(drawn) else 100
        low, high = (drawn.min(axis=0), drawn.max(axis=0)) if len(drawn) else np.zeros((2, 2))
        if coordinates is None:
            low, high = low - _HALO / 2, high + _HALO / 2
        room = np.array([WIDTH, height]) - 2 * _MARGIN
        with np.errstate(divide="ignore", over="ignore"):
            scale = float(np.min(room / (high - low)))
        scale = scale if np.isfinite(scale) else 1.0  # all nodes are at one place
        centred = (drawn - (low + high) / 2) * scale
        places = centred * [1, -1] + [WIDTH / 2, height / 2]  # pages count downwards
        aggregated = is_aggregated(release.n_nodes, on_map=coordinates is not None)
        return cls(
            places=places.round(0 if len(drawn) > _MOST_FINE else 1).reshape(-1, 2),
            height=height,
            radius=_radius(places),
            aggregated=aggregated,
            on_map=coordinates is not None,
            scale=scale,
            unit=scale if coordinates is None else 0.3 * height / np.sqrt(max(len(drawn), 1)),
            halo=0 if aggregated or coordinates is not None else round(_HALO * scale),
        )

    @cached_property
    def shapes(self) -> list[Shape]:
        """The markers at the size of this picture."""
        return shapes_of(self.radius)

    @property
    def tag_above(self) -> int:
        """How far above its node a number is written."""
        return round(self.radius) + 10

    def draw(self, labels: Ints, probabilities: Floats | None = None) -> list[dict[str, Any]]:
        """Return what is drawn of every group of a partition, ready for the template.

        Nodes that are not sure are drawn as a path of their own, paler.
        """
        sure = np.ones(len(labels), bool) if probabilities is None else probabilities >= SURE
        groups = Groups.of(labels)
        centres = np.rint(centres_of(groups, self.places))
        tagged = sorted(range(len(groups.all)), key=lambda i: -groups.all[i].size)[:MOST_TAGS]
        drawn = []
        for i, group in enumerate(groups.all):
            own = groups.of_node == i
            here = self.places[own]
            x, y = (int(each) for each in centres[i])
            path, pale = self._disc(x, y, group.size) if self.aggregated else "", ""
            if not self.aggregated:
                path, pale = (self._marks(self.places[own & some], group) for some in (sure, ~sure))
            drawn.append(
                {
                    "label": group.label,
                    "title": group.title,
                    "colour": group.colour,
                    "line": group.marker == "x" and not self.aggregated,
                    "ground": _dots(here) if self.halo and group.label is not None else "",
                    "path": path,
                    "pale": pale,
                    "tag": group.tag if i in tagged else "",
                    "x": x,
                    "y": y - (0 if self.aggregated else self.tag_above),
                }
            )
        return drawn

    def _marks(self, places: Floats, group: Group) -> str:
        (dx, dy), path = self.shapes[look_of(group)]
        return "".join(
            f"M{round(x + dx, 1):g} {round(y + dy, 1):g}{path}" for x, y in places.tolist()
        )

    def _disc(self, x: int, y: int, size: int) -> str:
        (dx, dy), path = _circle(max(2, round(self.unit * float(np.sqrt(size)))))
        return f"M{x + dx:g} {y + dy:g}{path}"


def _radius(places: Floats) -> float:
    """Return how large marks are drawn: no larger than most nodes have space for."""
    least = np.clip(60 / np.sqrt(max(len(places), 1)), 2.0, 4.0)
    return round(float(np.clip(0.7 * spacing(places), least, 8.0)), 1)


def _dots(places: Floats) -> str:
    """Return a line of no length at every place: with round ends, a dot as wide as the line."""
    return "".join(f"M{x:g} {y:g}h0" for x, y in places.tolist())


Look = tuple[str, int]  # a colour, and the number of a shape

ALONE, OTHERS = (style.ALONE, _CROSS), (style.OTHERS, _DOT)
SHARED_LOOKS = {"alone": ALONE, "others": OTHERS, "unclustered": (style.UNCLUSTERED, _DOT)}


def look_of(group: Group) -> int:
    """Return which of the shapes a group has."""
    if group.label is not None:
        return group.label % _CROSS
    return _CROSS if group.marker == "x" else _DOT


def looks(labels: Ints) -> dict[int, Look]:
    """Return how the clusters look that have a look of their own; the others share one."""
    return {
        group.label: (group.colour, look_of(group))
        for group in Groups.of(labels).all
        if group.label is not None
    }
