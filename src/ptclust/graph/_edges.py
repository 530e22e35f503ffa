"""What every reader and converter hands to ``Graph``: edge arrays, and words for an edge."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Edges", "Say", "edge_number", "numbered", "shown"]

_FRACTION = re.compile(r"\.\d{3}")

Say = Callable[[Iterable[int]], str]
"""Turns edge numbers into words: ``[3]`` into "edge 3", or into "line 5 of edges.csv"."""


def numbered(word: str, ending: str = "") -> Say:
    """Return the words for edges that are known by their number.

    >>> say = numbered("row", " of edges.parquet")
    >>> say([3]), say([3, 7])
    ('row 3 of edges.parquet', 'rows 3 and 7 of edges.parquet')
    """

    def say(edges: Iterable[int]) -> str:
        numbers = [str(int(edge)) for edge in edges]
        return f"{word}{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}{ending}"

    return say


edge_number: Say = numbered("edge")


def shown(name: object) -> str:
    """Return a node's name as messages write it; not one that may be a weight, strayed there in a damaged file.

    >>> shown("ada"), shown(7), shown("10.1.0.2"), shown("0.25"), shown("ada;0.12345")
    ("'ada'", '7', "'10.1.0.2'", '<number>', '<number>')
    """
    text = str(name)
    return "<number>" if _FRACTION.search(text) or _is_fraction(text) else repr(name)


def _is_fraction(text: str) -> bool:
    try:
        return not text.strip().removeprefix("-").isdecimal() and float(text) is not None
    except ValueError:
        return False


class Edges(NamedTuple):
    """Edges as they came in, nothing checked yet.

    It holds private weights in the clear: build a ``Graph`` of it and let it go.
    """

    sources: ArrayLike
    targets: ArrayLike
    weights: ArrayLike
    n_nodes: int | None = None
    names: Iterable[Any] | None = None
    say: Say = edge_number

    def __repr__(self) -> str:
        return "Edges(weights=<private>)"
