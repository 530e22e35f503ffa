"""Tables as lines of text whose columns line up, and as data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptclust._lazy import package
from ptclust._types import Array
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table; the first row is its head.

    >>> aligned([["a", "bc"], ["def", "g"]])
    ['| a   | bc |', '| --- | -- |', '| def | g  |']
    """
    widths = _widths(rows)

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return [line(rows[0]), line(["-" * width for width in widths]), *map(line, rows[1:])]


def right_aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table without rules for a terminal, cells at the right of their columns."""
    widths = _widths(rows)
    return [
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def library_of(frame: object) -> str:
    """Return the library of a data frame, without importing it; empty if it is not a data frame."""
    of_frames = (kind for kind in type(frame).__mro__ if kind.__name__ == "DataFrame")
    return next((kind.__module__.partition(".")[0] for kind in of_frames), "")


def data_frame(columns: dict[str, Array], backend: str) -> Any:
    """Return a polars or pandas frame. Names that are not all strings stay the objects they are."""
    if backend == "pandas":
        return package("pandas", "to_dataframe(backend='pandas')").DataFrame(columns)
    if backend != "polars":
        raise UsageError(f"backend must be 'polars' or 'pandas', not {backend!r}")
    import polars as pl

    def series(name: str, values: Array) -> pl.Series:
        if values.dtype != object:
            return pl.Series(name, values)
        listed = values.tolist()
        plain = all(isinstance(value, str) for value in listed)
        return pl.Series(name, listed, dtype=pl.String if plain else pl.Object)

    return pl.DataFrame([series(name, values) for name, values in columns.items()])
