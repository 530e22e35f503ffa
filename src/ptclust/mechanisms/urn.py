"""The urn of the Exponential mechanism, made from weights and an exponent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ptclust._types import Floats
from ptclust.mechanisms import _urn_kernel as kernel
from ptclust.mechanisms._urn_kernel import GRID


def grid_factor(exponent: float) -> float:
    """Return the factor that takes weights to exponents in steps of the grid.

    It is rounded down: never above what was calibrated.
    """
    return exponent / math.log(2.0) * 2.0**GRID * (1.0 - 2.0**-50)


def make_urn(
    weights: Floats, exponent: float, item_dtype: Any, window: int = 32
) -> tuple[kernel.Urn, float]:
    """Return an empty urn for all edges, and the factor that takes weights to rounded exponents.

    ``window``, how many buckets are compared at once, is a matter of speed; up to 32 no sum of
    masses can overflow.
    """
    factor = grid_factor(exponent)
    ends = (float(weights.min()), float(weights.max())) if len(weights) else (0.0, 0.0)
    smallest, largest = (kernel.exponent_of(weight, factor) >> GRID for weight in ends)
    n_buckets = largest - smallest + 1
    urn = kernel.Urn(
        start=np.zeros(n_buckets + 1, dtype=np.int64),
        filled=np.zeros(n_buckets, dtype=np.int64),
        items=np.empty(len(weights), dtype=item_dtype),
        block_count=np.zeros(n_buckets // kernel.BLOCK + 2, dtype=np.int64),
        totals=np.array([0, n_buckets, 0, smallest, window, 0, 0], dtype=np.int64),
    )
    kernel.lay_out(urn, weights, factor)
    return urn, factor


def sampler_energies(weights: Floats, exponent: float) -> Floats:
    """Return exponent * weights as the sampler has them, rounded to its grid: for the audit."""
    factor = grid_factor(exponent)
    steps = [kernel.exponent_of(weight, factor) for weight in weights.tolist()]
    return np.array(steps, dtype=np.float64) * (math.log(2.0) * 2.0**-GRID)
