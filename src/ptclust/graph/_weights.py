"""Private weights on their way in: to numbers, from similarities, merged where edges are parallel.

Nothing here may quote a value, not even through the chain of exceptions. The messages of numpy do, so
its exceptions are suppressed and ours raised afterwards, without a context.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ptclust.errors import UsageError, WeightError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from ptclust.graph._edges import Say

__all__ = ["Merge", "as_weights", "dissimilarities", "merged"]

Merge = Literal["min", "max", "sum"]

_UFUNCS: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum, "sum": np.add}


def as_weights(weights: ArrayLike, say: Say) -> NDArray[np.float64]:
    """Return the weights as a fresh one-dimensional array of floats, NaN and all."""
    if isinstance(weights, np.ndarray) and np.iscomplexobj(weights):
        raise WeightError("the weights must be real numbers, not complex ones")
    values = None
    with suppress(TypeError, ValueError):
        values = np.array(weights, dtype=np.float64)
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


def dissimilarities(similarities: NDArray[np.float64], cap: float, say: Say) -> NDArray[np.float64]:
    """Return ``cap - similarities``."""
    if not np.isfinite(cap):
        raise UsageError(f"similarity_cap must be a finite number, not {cap}")
    over = similarities > cap
    if over.any():
        raise WeightError(
            f"the similarity of {say([int(over.argmax())])} is above similarity_cap={cap} "
            f"({int(over.sum())} such edges in all); give a cap that is known to hold for any "
            "data, not one read off these"
        )
    return cap - similarities


def merged(
    sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[np.float64], how: Merge
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Give every pair of nodes one weight, the minimum, maximum or sum of its edges.

    Returns the first edge of every pair, in ascending order, and the merged weights in that order.
    """
    if how not in _UFUNCS:
        raise UsageError(f"merge must be 'min', 'max' or 'sum', not {how!r}")
    low, high = np.minimum(sources, targets), np.maximum(sources, targets)
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    new_pair = np.ones(len(order), dtype=bool)
    new_pair[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    starts = np.flatnonzero(new_pair)
    if len(starts) == len(order):
        return np.arange(len(order)), weights
    with np.errstate(over="ignore"):  # a sum beyond all floats is infinite, and the caller says so
        values = _UFUNCS[how].reduceat(weights[order], starts)
    first = order[starts]  # lexsort is stable: the first of a run is the first of the input
    place = np.argsort(first)
    return first[place], values[place]
