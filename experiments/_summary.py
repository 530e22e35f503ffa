"""What the reports of all experiments have in common."""

from __future__ import annotations

import textwrap

__all__ = ["wrapped"]


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
