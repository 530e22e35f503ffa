"""The pictures that a person looks at: draws what it is given and computes nothing from weights."""

from ptclust.report.maps import draw_map
from ptclust.report.pictures import (
    Panel,
    check_format,
    draw_curve,
    draw_panels,
    draw_points,
    draw_tree,
)

__all__ = [
    "Panel",
    "check_format",
    "draw_curve",
    "draw_map",
    "draw_panels",
    "draw_points",
    "draw_tree",
]
