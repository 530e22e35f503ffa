"""Shift and scale of the Weight-Release mechanism: how noisy weights come into (0, 1], where DBMSTClu wants them."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust.clustering.levels import least_shift
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Normalisation", "check_constants", "normalisation"]


class Normalisation(NamedTuple):
    """What is clustered is (noisy weight + shift) / scale: tau and p of the paper."""

    shift: float
    scale: float

    def apply(self, noisy_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights to cluster."""
        return (noisy_weights + self.shift) / self.scale


def check_constants(shift: float | None, scale: float | None) -> None:
    """Raise UsageError unless both are finite numbers or left out."""
    for name, value in (("shift", shift), ("scale", scale)):
        if value is not None and (not _is_number(value) or not math.isfinite(value)):
            raise UsageError(f"{name} must be a finite number, not {value!r}")
    if scale is not None and scale <= 0:
        raise UsageError(f"scale must be above 0, not {scale!r}")


def normalisation(
    noisy_weights: NDArray[np.float64],
    noise: float,
    shift: float | None = None,
    scale: float | None = None,
) -> Normalisation:
    """Return shift and scale that bring released weights into (0, 1]; what is not given follows from them.

    By default the shift is the least that leaves the smallest weight at one standard deviation of the noise: below
    that a weight cannot be told from zero, and DBMSTClu looks at ratios, which such a weight would blow up at random.
    A shift by many deviations draws all ratios towards 1 and hides the clusters; from a tenth of one to two, the
    choice makes no difference that could be measured (docs/decisions/0006-shift.md). The scale is then the largest
    weight; it changes no cluster.

    Parameters
    ----------
    noisy_weights : array
        Released weights. Nothing else is looked at, so this is post-processing.
    noise : float
        Standard deviation of their noise, which is public.
    shift, scale : float, optional
        Constants to use instead.
    """
    check_constants(shift, scale)
    if not len(noisy_weights):
        return Normalisation(0.0 if shift is None else shift, 1.0 if scale is None else scale)
    smallest, largest = float(noisy_weights.min()), float(noisy_weights.max())
    if shift is None:
        shift = least_shift(smallest, noise)
    if smallest + shift <= 0:
        raise UsageError(
            f"with a shift of {shift:g} the smallest released weight is not positive, and the budget "
            "of this run is spent; next time leave shift "
            "out, or give at least "
            f"{-smallest:g} and a little more"
        )
    if scale is None:
        scale = largest + shift
    if not (scale > 0 and (largest + shift) / scale <= 1):
        raise UsageError(
            f"with a scale of {scale:g} the released weights do not end in (0, 1]; leave scale out, or give at least "
            f"{largest + shift:g}"
        )
    return Normalisation(shift, scale)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
