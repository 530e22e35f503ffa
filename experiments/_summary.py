"""What the reports of all experiments have in common."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jinja2 import Environment, StrictUndefined

from ptclust._files import written_at_once

__all__ = ["Report", "as_csv", "margin_of", "page", "save_files", "save_report", "wrapped"]


class Report(Protocol):
    """The results of an experiment."""

    def to_json(self) -> str:
        """Return all numbers as JSON."""

    def to_markdown(self) -> str:
        """Return a page to read."""


def save_report(report: Report, directory: Path, name: str) -> None:
    """Write ``name.md``, ``name.json`` and, if the report has tables as CSV, ``name.csv``."""
    texts = {f"{name}.md": report.to_markdown(), f"{name}.json": report.to_json()}
    if (to_csv := getattr(report, "to_csv", None)) is not None:
        texts[f"{name}.csv"] = to_csv()
    save_files(texts, directory)


def save_files(texts: Mapping[str, str], directory: Path) -> None:
    """Write texts to files of these names."""
    for name, text in texts.items():
        with written_at_once(directory / name) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")


def as_csv(rows: Iterable[Sequence[str]]) -> str:
    r"""Return rows of cells as CSV; the first row is the header.

    >>> as_csv([["epsilon", "ARI"], ["0.5", "0.91"]])
    'epsilon,ARI\n0.5,0.91'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().rstrip("\n")


_PAGES = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True)  # noqa: S701
_UNWRAPPED = ("#", "|", "!", "```")  # headings, tables, pictures, code


def page(template: str, **values: Any) -> str:
    r"""Return a page in Markdown: a template of Jinja with its values, its paragraphs wrapped.

    >>> page("# {{ name }}\n\nOne\nline.\n\n- a\n- b", name="Title")
    '# Title\n\nOne line.\n\n- a\n- b'
    """
    filled = _PAGES.from_string(template).render(values)
    return "\n\n".join(_laid_out(block) for block in filled.split("\n\n") if block.strip())


def _laid_out(block: str) -> str:
    block = block.strip("\n")
    if block.startswith(_UNWRAPPED):
        return block
    items = [item.replace("\n", " ") for item in block.split("\n- ")]
    lines = wrapped(items[0].removeprefix("- "), bullet=block.startswith("- "))
    for item in items[1:]:
        lines += wrapped(item, bullet=True)
    return "\n".join(lines)


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


def margin_of(values: Sequence[float]) -> float | None:
    """Return half the width of the 95 % t interval of the mean; None for a single value."""
    from scipy.stats import t

    if len(values) < 2:
        return None
    quantile = float(t.ppf(0.975, len(values) - 1))
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))
