"""The HTML page of a release. Reads published values alone."""

from ptclust.report.coordinates import flattened, read_coordinates, read_names
from ptclust.report.page import report_page, write_report

__all__ = ["flattened", "read_coordinates", "read_names", "report_page", "write_report"]
