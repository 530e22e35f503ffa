"""What the reports of all experiments have in common."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["aligned", "wrapped"]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a markdown table whose columns line up as plain text, too."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return [line(rows[0]), line(["-" * width for width in widths]), *map(line, rows[1:])]


def wrapped(*sentences: str, bullet: bool = False) -> list[str]:
    """Return the lines of a paragraph."""
    text = " ".join(sentences)
    return textwrap.wrap(
        f"- {text}" if bullet else text,
        width=100,
        subsequent_indent="  " * bullet,
        break_long_words=False,
        break_on_hyphens=False,
    )
