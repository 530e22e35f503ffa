"""What the reports of all experiments have in common."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Protocol

from ptclust._files import written_at_once

__all__ = ["Report", "save_report", "wrapped"]


class Report(Protocol):
    """What an experiment found."""

    def to_json(self) -> str:
        """Return all numbers as JSON."""

    def to_markdown(self) -> str:
        """Return a page to read."""


def save_report(report: Report, directory: Path, name: str) -> None:
    """Write ``name.md`` and ``name.json``."""
    for suffix, text in (("md", report.to_markdown()), ("json", report.to_json())):
        with written_at_once(directory / f"{name}.{suffix}") as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")


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
