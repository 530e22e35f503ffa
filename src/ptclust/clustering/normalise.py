"""Shift and scale (tau and p) that bring noisy weights into (0, 1], as DBMSTClu needs them."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

from ptclust.errors import UsageError

if TYPE_CHECKING:
    from ptclust._types import Floats
    from ptclust.clustering.dbcvi import WeightedTree
    from ptclust.privacy.noise import Noise


class Normalisation(NamedTuple):
    """What is clustered is (noisy weight + shift) / scale: tau and p of the paper."""

    shift: float
    scale: float

    def apply(self, noisy_weights: Floats) -> Floats:
        """Return the weights to cluster."""
        return (noisy_weights + self.shift) / self.scale


class Reweighted:
    """A tree with other weights."""

    def __init__(self, tree: WeightedTree, weights: Floats) -> None:
        self.n_nodes = tree.n_nodes
        self.sources, self.targets = tree.sources, tree.targets
        self.weights = weights
        self.edge_ids, self.names = tree.edge_ids, tree.names


def check_constants(shift: float | None, scale: float | None) -> None:
    """Raise UsageError unless both are finite numbers or left out."""
    for name, value in (("shift", shift), ("scale", scale)):
        if value is not None and not _is_finite(value):
            raise UsageError(f"{name} must be a finite number, not {value!r}")
    if scale is not None and scale <= 0:
        raise UsageError(f"scale must be above 0, not {scale!r}")


def _is_finite(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def normalisation(
    noisy_weights: Floats, noise: float, shift: float | None = None, scale: float | None = None
) -> Normalisation:
    """Return shift and scale that bring released weights into (0, 1], or those given.

    By default the shift is the least that leaves the smallest weight at one standard deviation of
    the noise: below that a weight is indistinguishable from zero, and DBMSTClu uses ratios, which
    such a weight would make arbitrarily large. A shift by many deviations draws all ratios towards
    1 and hides the clusters; between 0.1 and 2 deviations no difference was measured
    (docs/decisions/0006-shift.md). The scale is the largest weight; it changes no cluster.

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
            f"with a shift of {shift:g} the smallest released weight is not positive; leave shift "
            f"out, or give at least {-smallest:g} and a little more"
        )
    if scale is None:
        scale = largest + shift
    if not (scale > 0 and (largest + shift) / scale <= 1):
        raise UsageError(
            f"with a scale of {scale:g} the released weights do not end in (0, 1]; leave scale "
            f"out, or give at least {largest + shift:g}"
        )
    return Normalisation(shift, scale)


def shifted(weights: Floats, noise: Noise) -> Floats:
    """Return weights shifted so that the smallest is at least one deviation of the noise."""
    if not len(weights):
        return weights
    return weights + least_shift(float(weights.min()), noise.standard_deviation)


def least_shift(smallest: float, deviation: float) -> float:
    """Return the least shift that leaves the smallest weight positive, at one deviation or more.

    >>> least_shift(-1.0, 0.5), least_shift(0.75, 0.5)
    (1.5, 0.0)
    """
    return max(0.0, deviation - smallest, math.nextafter(-smallest, math.inf))
