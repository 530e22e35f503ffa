"""What a person looks at: pictures and the page of a release. Reads published values alone."""

from ptclust.drawing.pictures import (
    Panel,
    check_format,
    draw_curve,
    draw_panels,
    draw_points,
    draw_tree,
)
from ptclust.report.maps import draw_map

__all__ = [
    "Panel",
    "check_format",
    "draw_curve",
    "draw_map",
    "draw_panels",
    "draw_points",
    "draw_tree",
]
