"""Edges with private weights on their way into a ``Graph``: as read, from similarities, merged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ptclust.errors import UsageError, WeightError
from ptclust.graph._checks import Say, edge_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Edges", "Merge", "dissimilarities", "merged"]

Merge = Literal["min", "max", "sum"]

_UFUNCS: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum, "sum": np.add}


class Edges(NamedTuple):
    """What every reader and converter hands to ``Graph``: edges as they came in, nothing checked.

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
