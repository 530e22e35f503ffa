"""Room of the pictures: what a person looks at. Draws what it is given and computes nothing from weights."""

from ptclust.report.curve import draw_curve
from ptclust.report.panels import Panel, draw_panels
from ptclust.report.picture import check_format, draw_points, draw_tree

__all__ = ["Panel", "check_format", "draw_curve", "draw_panels", "draw_points", "draw_tree"]
