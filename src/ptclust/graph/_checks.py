"""Words for edges in messages, and weights as numbers; nothing here ever quotes a weight."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptclust.errors import WeightError

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
    """Return a node's name for a message; not one that may be a weight, strayed in a damaged file.

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


def as_weights(weights: ArrayLike, say: Say) -> NDArray[np.float64]:
    """Return the weights as a fresh one-dimensional array of floats, NaN and all."""
    if isinstance(weights, np.ndarray) and np.iscomplexobj(weights):
        raise WeightError("the weights must be real numbers, not complex ones")
    values = None
    with suppress(TypeError, ValueError):
        values = np.array(weights, dtype=np.float64)
    # Raised out here, without a context: the messages of numpy quote values.
    if values is None:
        raise WeightError(
            f"{_first_not_a_number(weights, say)}; weights must be numbers, one per edge"
        )
    if values.ndim != 1:
        raise WeightError(f"the weights must be one-dimensional, not {values.ndim}-dimensional")
    return values


def _first_not_a_number(weights: Any, say: Say) -> str:
    items: Iterable[Any] = weights if np.ndim(weights) == 1 else ()
    for edge, value in enumerate(items):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"the weight of {say([edge])} is not a number"
    return "the weights are not an array of real numbers"
