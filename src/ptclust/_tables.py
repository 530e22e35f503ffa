"""Tables as lines of text whose columns line up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["aligned", "right_aligned"]


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
