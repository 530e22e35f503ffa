"""Checks of the single parts of a release."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def finite(name: str, value: Any) -> float:
    """Return a finite number."""
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)
    except (OverflowError, TypeError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number")
    return number


def integers(name: str, values: Any) -> NDArray[np.int64]:
    """Return a read-only array of whole numbers."""
    given = np.asarray(values)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a one-dimensional array of whole numbers")
    result = given.astype(np.int64)
    result.setflags(write=False)
    return result
