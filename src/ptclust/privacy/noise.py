"""The noise on published weights, as public numbers: its scale for a budget, and what it spends.

Noise lives on the lattice of multiples of 2^k (``mechanisms.lattice`` adds it there). The rounding
of the input to the lattice may add up to 2^k to the change of every value, so the scale grows by
that little: below one in a million, by choice of k.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from ptclust._traces import shown_half_built
from ptclust._types import Floats
from ptclust.errors import UsageError
from ptclust.privacy._numbers import Number, exact_positive, exponent_below, float_up, root_up
from ptclust.privacy._opendp import opendp_features
from ptclust.privacy.budget import Budget
from ptclust.privacy.sensitivity import Sensitivity

FloatArray = Floats

Distribution = Literal["laplace", "gaussian"]
Sampler = Literal["auto", "opendp"]  # of the noise: OpenDP's always, or only where ours is not

_ENLARGEMENT_BITS = 21  # rounding to the lattice enlarges the scale by at most 2^-21
_FINENESS_BITS = 40  # the lattice is this much finer than the scale: noise looks continuous
_FINEST = -1074  # the exponent of the smallest float


@shown_half_built
@dataclass(frozen=True)
class Noise:
    """Independent noise for ``n_values`` numbers, on the lattice of multiples of 2^granularity.

    Its scale is b of the Laplace, sigma of the Gaussian distribution. The calibration depends on
    how many values get noise together.

    Examples
    --------
    >>> Noise("gaussian", scale=2.0, granularity=-40, n_values=3).standard_deviation
    2.0
    """

    distribution: Distribution
    scale: float
    granularity: int
    n_values: int

    def __post_init__(self) -> None:
        if self.distribution not in get_args(Distribution):
            raise UsageError(f"noise must be 'laplace' or 'gaussian', not {self.distribution!r}")
        if self.n_values < 0:
            raise UsageError(f"the number of values must be 0 or more, but is {self.n_values!r}")
        if not 0 <= self.scale < math.inf or (self.n_values > 0 and self.scale == 0):
            raise UsageError(
                f"the scale of the noise must be positive and finite, but is {self.scale!r}: "
                "rescale the weights with their sensitivity, or choose another budget"
            )

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise on one value."""
        return math.sqrt(2.0) * self.scale if self.distribution == "laplace" else self.scale

    def log_ratio(
        self, noisy: FloatArray, weights: FloatArray, neighbour: FloatArray
    ) -> FloatArray:
        """Return the log-ratio of the densities of each noisy value under two inputs."""
        if self.distribution == "laplace":
            return (np.abs(noisy - neighbour) - np.abs(noisy - weights)) / self.scale
        return ((noisy - neighbour) ** 2 - (noisy - weights) ** 2) / (2.0 * self.scale**2)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Noise:
        """Read what ``to_dict`` wrote; UsageError if a field is of the wrong type."""
        for name, kinds in (("scale", (int, float)), ("granularity", (int,)), ("n_values", (int,))):
            if type(fields[name]) not in kinds:
                raise UsageError(f"{name} of the noise must be a number, not {fields[name]!r}")
        try:
            scale = float(fields["scale"])
        except OverflowError:
            scale = math.inf
        return cls(**{**fields, "scale": scale})


NO_NOISE = Noise("laplace", scale=0.0, granularity=0, n_values=0)  # no weights released


def laplace_noise(sensitivity: Sensitivity, n_values: int, epsilon: Number) -> Noise:
    """Return the least Laplace noise under which ``n_values`` values are epsilon-DP.

    Notes
    -----
    *Privacy.* The scale is l1/epsilon, where l1 bounds the change of these values together,
    enlarged for the rounding to the lattice. OpenDP's privacy map confirms it.

    >>> from ptclust.privacy import Sensitivity
    >>> round(laplace_noise(Sensitivity(linf=0.001), 100, 0.5).scale, 6)
    0.2
    """
    return _calibrated("laplace", sensitivity, n_values, epsilon)


def gaussian_noise(sensitivity: Sensitivity, n_values: int, rho: Number) -> Noise:
    """Return the least Gaussian noise under which ``n_values`` values are rho-zCDP.

    Notes
    -----
    *Privacy.* Sigma is l2/sqrt(2 rho), where l2 bounds the change of these values together,
    enlarged for the rounding to the lattice. OpenDP's privacy map confirms it.

    >>> from ptclust.privacy import Sensitivity
    >>> round(gaussian_noise(Sensitivity(linf=0.001), 100, 0.5).scale, 6)
    0.01
    """
    return _calibrated("gaussian", sensitivity, n_values, rho)


def least_noise(sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
    """Return the noise that a budget affords: Laplace for a pure one, Gaussian for zCDP."""
    if budget.rho is None:
        return laplace_noise(sensitivity, n_values, budget.epsilon)
    return gaussian_noise(sensitivity, n_values, budget.rho)


def noise_of_scale(scale: float, n_values: int) -> Noise:
    """Return Laplace noise of a given scale, whatever it protects; ``spent_by`` says how much.

    >>> noise_of_scale(0.5, 10).scale
    0.5
    """
    checked = exact_positive("scale", scale, "It is the b of the Laplace distribution.")
    granularity = exponent_below(checked) - _FINENESS_BITS - max(n_values, 1).bit_length()
    return Noise("laplace", float(checked), max(granularity, _FINEST), n_values)


def spent_by(noise: Noise, sensitivity: Sensitivity) -> Budget | None:
    """Return what noise spends under ``sensitivity``, by OpenDP's privacy map: None without values.

    >>> from ptclust.privacy import Sensitivity
    >>> print(spent_by(noise_of_scale(2.0, 100), Sensitivity(linf=1.0)))
    epsilon = 50
    """
    if noise.n_values == 0:
        return None
    loss = _privacy_loss(noise, _distance(noise.distribution, sensitivity, noise.n_values))
    return Budget.pure(loss) if noise.distribution == "laplace" else Budget.zcdp(loss)


def lattice_measurement(noise: Noise, n_values: int) -> Any:
    """Return the OpenDP measurement that adds this noise to ``n_values`` floats."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance

    values = vector_domain(atom_domain(T=float, nan=False), size=n_values)
    with opendp_features("contrib"):
        if noise.distribution == "laplace":
            return make_laplace(values, l1_distance(T=float), noise.scale, k=noise.granularity)
        return make_gaussian(values, l2_distance(T=float), noise.scale, k=noise.granularity)


def _calibrated(
    distribution: Distribution, sensitivity: Sensitivity, n_values: int, amount: Number
) -> Noise:
    parameter = "epsilon" if distribution == "laplace" else "rho"
    budget = exact_positive(parameter, amount, "Smaller means more private.")
    try:
        n_values = operator.index(n_values)
    except TypeError:
        raise UsageError(f"the number of values must be an integer, not {n_values!r}") from None
    if n_values == 0:
        return Noise(distribution, 0.0, _FINEST, 0)
    distance = _distance(distribution, sensitivity, n_values)
    change = Fraction(distance)
    if distribution == "laplace":
        roundings, per_change = Fraction(n_values), 1 / budget
    else:
        roundings = Fraction(root_up(Fraction(n_values)))
        per_change = Fraction(root_up(1 / (2 * budget)))
    no_larger = exponent_below(change / roundings) - _ENLARGEMENT_BITS
    as_fine = exponent_below(change * per_change) - _FINENESS_BITS
    granularity = max(min(no_larger, as_fine), _FINEST)
    exact_scale = (change + roundings * Fraction(2) ** granularity) * per_change
    step = Fraction(1, 2**52)
    while True:
        noise = Noise(distribution, float_up(exact_scale), granularity, n_values)
        if _privacy_loss(noise, distance) <= budget:
            return noise
        exact_scale *= 1 + step  # OpenDP rounds its map up; a few steps of the last digit suffice
        step *= 2


def _distance(distribution: Distribution, sensitivity: Sensitivity, n_values: int) -> float:
    distance = (sensitivity.l1_of if distribution == "laplace" else sensitivity.l2_of)(n_values)
    if not math.isfinite(distance):
        raise UsageError(
            f"under the sensitivity {sensitivity} the change of {n_values} values together exceeds "
            "the largest float; rescale the weights and it"
        )
    return distance


def _privacy_loss(noise: Noise, distance: float) -> float:
    """Return OpenDP's privacy map: epsilon of Laplace, rho of Gaussian noise, rounded up."""
    return float(lattice_measurement(noise, noise.n_values).map(distance))
