"""What the reports of all experiments have in common."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from ptclust._files import written_at_once

__all__ = ["Report", "as_csv", "save_report", "wrapped"]


class Report(Protocol):
    """The results of an experiment."""

    def to_json(self) -> str:
        """Return all numbers as JSON."""

    def to_markdown(self) -> str:
        """Return a page to read."""


def save_report(report: Report, directory: Path, name: str) -> None:
    """Write ``name.md``, ``name.json`` and, if the report has tables as CSV, ``name.csv``."""
    texts = {"md": report.to_markdown(), "json": report.to_json()}
    if (to_csv := getattr(report, "to_csv", None)) is not None:
        texts["csv"] = to_csv()
    for suffix, text in texts.items():
        with written_at_once(directory / f"{name}.{suffix}") as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")


def as_csv(rows: Iterable[Sequence[str]]) -> str:
    r"""Return rows of cells as CSV; the first row is the header.

    >>> as_csv([["epsilon", "ARI"], ["0.5", "0.91"]])
    'epsilon,ARI\n0.5,0.91'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().rstrip("\n")


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
