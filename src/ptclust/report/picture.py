"""The picture on the page of a release: a shape for every cluster, as paths of an inline SVG.

Places are in a box 1,000 wide, in whole numbers where there are many, so that 10,000 nodes take
some 200 kB and no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._types import Floats, Ints
from ptclust.clustering.certainty import SURE
from ptclust.drawing import style
from ptclust.drawing.layout import packed, spacing
from ptclust.drawing.plots import centres_of, height_of, is_aggregated
from ptclust.drawing.style import MARKERS, Group, Groups

if TYPE_CHECKING:
    from ptclust.release import Release

WIDTH, _MARGIN = 1000, 25
MOST_TAGS = 120
_HALO = 2.8  # in the unit of the layout, where a node has an area of pi
_MOST_FINE = 3_000  # nodes whose places have a decimal, for zooming

Shape = tuple[tuple[float, float], str]  # where a path begins, beside its point, and the path
_CROSS, _DOT = len(MARKERS), len(MARKERS) + 1  # of nodes alone, and without a look of their own

Look = tuple[str, int]  # a colour, and the number of a shape
ALONE, OTHERS = (style.ALONE, _CROSS), (style.OTHERS, _DOT)
SHARED_LOOKS = {"alone": ALONE, "others": OTHERS, "unclustered": (style.UNCLUSTERED, _DOT)}


def looks(labels: Ints) -> dict[int, Look]:
    """Return how the clusters look that have a look of their own; the others share one."""
    return {
        group.label: (group.colour, _shape_of(group))
        for group in Groups.of(labels).all
        if group.label is not None
    }


def _shape_of(group: Group) -> int:
    if group.label is not None:
        return group.label % len(MARKERS)
    return _CROSS if group.marker == "x" else _DOT


def shapes_of(radius: float) -> list[Shape]:
    """Return all markers of a size, as relative paths: matplotlib's, a cross and a dot."""
    from matplotlib.markers import MarkerStyle

    def polygon(marker: str) -> Shape:
        kind = MarkerStyle(marker)
        (outline,) = kind.get_path().transformed(kind.get_transform()).to_polygons()
        corners = (np.array(outline) * [2.2 * radius, -2.2 * radius]).round(1)  # y is downwards
        steps = np.diff(corners[:-1], axis=0).round(1).tolist()
        x, y = corners[0].tolist()
        return (x, y), "".join(f"l{right:g} {down:g}" for right, down in steps) + "z"

    across = f"{2 * radius:g}"
    cross = (-radius, -radius), f"l{across} {across}m0-{across}l-{across} {across}"
    return [_circle(radius), *map(polygon, MARKERS[1:]), cross, _circle(0.6 * radius)]


def _circle(radius: float) -> Shape:
    arc, across = f"a{radius:g} {radius:g} 0 1 0", f"{2 * radius:g}"
    return (-radius, 0.0), f"{arc} {across} 0{arc}-{across} 0z"


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
        on_map = coordinates is not None
        if coordinates is not None:
            drawn = coordinates
        else:
            partitions = [level.labels for level in release.levels] or [release.labels]
            drawn = packed(partitions, release.tree.sources, release.tree.targets).places
        height = round(WIDTH * min(height_of(drawn), 0.8)) if len(drawn) else 100
        low, high = (drawn.min(axis=0), drawn.max(axis=0)) if len(drawn) else np.zeros((2, 2))
        around = 0.0 if on_map else _HALO
        with np.errstate(divide="ignore", over="ignore"):
            free = np.array([WIDTH, height]) - 2 * _MARGIN
            scale = float(np.min(free / (high - low + around)))
        scale = scale if np.isfinite(scale) else 1.0  # all nodes are at one place
        centred = (drawn - (low + high) / 2) * scale
        places = centred * [1, -1] + [WIDTH / 2, height / 2]  # pages count downwards
        root = np.sqrt(max(len(places), 1))
        least = np.clip(60 / root, 2.0, 4.0)
        aggregated = is_aggregated(release.n_nodes, on_map=on_map)
        return cls(
            places=places.round(0 if len(drawn) > _MOST_FINE else 1).reshape(-1, 2),
            height=height,
            radius=round(float(np.clip(0.7 * spacing(places), least, 8.0)), 1),
            aggregated=aggregated,
            on_map=on_map,
            scale=scale,
            unit=0.3 * height / root if on_map else scale,
            halo=0 if aggregated or on_map else round(_HALO * scale),
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
        groups = Groups.of(labels)
        sure = np.ones(len(labels), bool) if probabilities is None else probabilities >= SURE
        centres = np.rint(centres_of(groups, self.places)).astype(int).tolist()
        largest = sorted(groups.all, key=lambda group: -group.size)[:MOST_TAGS]
        drawn = []
        for i, (group, (x, y)) in enumerate(zip(groups.all, centres, strict=True)):
            own, ground, pale = groups.of_node == i, "", ""
            if self.aggregated:
                disc = _circle(max(2, round(self.unit * float(np.sqrt(group.size)))))
                path = _marks(np.array([[x, y]]), disc)
            else:
                shape = self.shapes[_shape_of(group)]
                path, pale = (_marks(self.places[own & part], shape) for part in (sure, ~sure))
                if self.halo and group.label is not None:  # a dot is a line of no length
                    ground = _marks(self.places[own], ((0, 0), "h0"))
            drawn.append(
                {
                    **group._asdict(),
                    "line": group.marker == "x" and not self.aggregated,
                    "ground": ground,
                    "path": path,
                    "pale": pale,
                    "tag": group.tag if group in largest else "",
                    "x": x,
                    "y": y - (0 if self.aggregated else self.tag_above),
                }
            )
        return drawn


def _marks(places: Floats, shape: Shape) -> str:
    """Return the path of a shape at every place."""
    (dx, dy), path = shape
    return "".join(f"M{round(x + dx, 1):g} {round(y + dy, 1):g}{path}" for x, y in places.tolist())
