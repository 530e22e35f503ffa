"""Edge tables as text: comma- or tab-separated, with or without a header, plain or gzip.

polars reads the file. Python's csv module reads the first line, to tell a header, and on the way to an error message
finds the line of the file that is to blame; both agree on what a record is, blank lines included.
"""

from __future__ import annotations

import csv
import gzip
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from ptclust.errors import FileError, GraphError, WeightError
from ptclust.graph._edges import Edges, numbered
from ptclust.graph._ids import number_texts
from ptclust.graph._tables import Columns, choose_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

__all__ = ["read_csv"]

_MISSING_WORDS = {"", "na", "n/a", "null", "none", "-"}


class _Layout(NamedTuple):
    """What the first line that is not blank tells of the file."""

    path: Path
    separator: str
    n_blank: int
    """Blank lines before it."""
    first: list[str]
    has_header: bool

    @property
    def n_before(self) -> int:
        """Records before the first edge."""
        return self.n_blank + self.has_header


def read_csv(path: Path, separator: str, asked: Columns) -> Edges:
    """Return the edges of a text table. Fields are separated by ``separator``, ids are read as text."""
    layout = _layout(path, separator, asked)
    chosen = _choose(layout, asked)
    frame, rows = _frame(layout, chosen)
    if not len(frame):
        raise FileError(f"{path} has no edges")
    sources, targets, weights = frame.get_columns()
    for what, ids in (("source", sources), ("target", targets)):
        if ids.null_count():
            _raise_missing_id(layout, int(rows[int(np.argmax(ids.is_null().to_numpy()))]), what)
    if weights.null_count():
        edge = int(np.argmax(weights.is_null().to_numpy()))
        _raise_bad_weight(layout, int(rows[edge]), chosen[2], weights.null_count())
    found = number_texts(sources, targets)
    if "" in found.names[:1] or (found.names.dtype == object and "" in found.names.tolist()):
        node = found.names.tolist().index("")
        nowhere = (found.sources == node) | (found.targets == node)
        edge = int(nowhere.argmax())
        what = "source" if found.sources[edge] == node else "target"
        _raise_missing_id(layout, int(rows[edge]), what)

    def say(edges: Iterable[int]) -> str:
        return numbered("line", f" of {path}")(_lines(layout, [int(rows[e]) for e in edges]))

    return Edges(found.sources, found.targets, weights.to_numpy(), None, found.names, say)
