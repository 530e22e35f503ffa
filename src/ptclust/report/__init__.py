"""Pictures and the HTML page of a release. Reads published values alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptclust._lazy import lazy
from ptclust.drawing.pictures import check_format, draw_map, draw_tree

if TYPE_CHECKING:
    from ptclust.report.coordinates import flattened, read_coordinates, read_names
    from ptclust.report.page import report_page, write_report

__all__ = [
    "check_format",
    "draw_map",
    "draw_tree",
    "flattened",
    "read_coordinates",
    "read_names",
    "report_page",
    "write_report",
]

__getattr__ = lazy(
    __name__,
    coordinates=("flattened", "read_coordinates", "read_names"),
    page=("report_page", "write_report"),
)
