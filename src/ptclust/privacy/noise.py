"""The noise on published weights, as public numbers: its scale for a budget, and what it spends.

Noise lives on the lattice of multiples of 2^k (``mechanisms.lattice`` adds it there). The rounding
of the input to the lattice may add up to 2^k to the change of every value, so the scale grows by
that little: below one in a million, by choice of k.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from ptclust._markup import quoted
from ptclust._traces import shown_half_built
from ptclust._types import Floats
from ptclust.errors import UsageError
from ptclust.privacy._numbers import (
    Number,
    exact_positive,
    exponent_below,
    float_down,
    float_up,
    root_up,
)
from ptclust.privacy._opendp import opendp_features
from ptclust.privacy.budget import Budget
from ptclust.privacy.gaussian_curve import (
    NO_STEPS,
    Steps,
    largest_mu,
    lattice_delta,
    square_after,
)
from ptclust.privacy.sensitivity import Sensitivity

FloatArray = Floats

Distribution = Literal["laplace", "gaussian", "cube"]
Sampler = Literal["auto", "opendp"]  # of the noise: OpenDP's always, or only where ours is not

_ENLARGEMENT_BITS = 21  # rounding to the lattice enlarges the scale by at most 2^-21
_FINENESS_BITS = 40  # the lattice is this much finer than the scale: noise looks continuous
_MOST_VALUES = 2**63  # what an index holds
_FINEST, _COARSEST = -1074, 1023  # the exponents of the smallest and the largest floats
_WIDEST = 2**56  # steps of the lattice: cube noise of this half-width leaves space to add weights


@shown_half_built
@dataclass(frozen=True)
class Noise:
    """Noise for ``n_values`` numbers, on the lattice of multiples of 2^granularity.

    Laplace and Gaussian noise is independent; its scale is b and sigma. Cube noise z has a density
    proportional to exp(-(largest |z|) / scale): given the largest, about n_values times the scale,
    all values are uniform. The calibration depends on how many values get noise together.

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
            known = "'laplace', 'gaussian' or 'cube'"
            raise UsageError(f"noise must be {known}, not {self.distribution!r}")
        if not _FINEST <= self.granularity <= _COARSEST:
            raise UsageError(
                f"granularity must lie between {_FINEST} and {_COARSEST}, the exponents of floats, "
                f"but is {self.granularity!r}"
            )
        if not 0 <= self.n_values < _MOST_VALUES:
            raise UsageError(
                f"the number of values must be 0 or more and below {_MOST_VALUES}, but is "
                f"{quoted(self.n_values)}"
            )
        if not 0 <= self.scale < math.inf or (self.n_values > 0 and self.scale == 0):
            raise UsageError(
                f"the scale of the noise must be positive and finite, but is {self.scale!r}: "
                "rescale the weights with their sensitivity, or choose another budget"
            )

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise on one value."""
        n = self.n_values
        in_scales = {"laplace": math.sqrt(2.0), "gaussian": 1.0}
        # A uniform value whose half-width is Gamma(n + 1).
        return self.scale * in_scales.get(self.distribution, math.sqrt((n + 1) * (n + 2) / 3.0))

    def log_ratio(
        self, noisy: FloatArray, weights: FloatArray, neighbour: FloatArray
    ) -> FloatArray:
        """Return the log-ratio of the densities of every row of noisy values under two inputs.

        What was not released of a row is NaN.
        """
        here, there = np.abs(noisy - weights), np.abs(noisy - neighbour)
        ratio: FloatArray
        if self.distribution == "cube":
            ratio = (np.nanmax(there, axis=-1) - np.nanmax(here, axis=-1)) / self.scale
        elif self.distribution == "laplace":
            ratio = np.nansum(there - here, axis=-1) / self.scale
        else:
            ratio = np.nansum(there**2 - here**2, axis=-1) / (2.0 * self.scale**2)
        return ratio

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Noise:
        """Read what ``to_dict`` wrote; UsageError if a field is of the wrong type."""
        for name, kinds in (("scale", (int, float)), ("granularity", (int,)), ("n_values", (int,))):
            if type(fields[name]) not in kinds:
                raise UsageError(
                    f"{name} of the noise must be a number, not {quoted(fields[name])}"
                )
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


def gaussian_noise_alone(sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
    """Return the least Gaussian noise under which ``n_values`` values are (epsilon, delta)-DP.

    It is for a release that is nothing else: composed with others, what counts is its rho.

    Notes
    -----
    *Privacy.* Sigma follows from the curve of the Gaussian itself, not by way of zCDP, and is less
    by 6 to 9 %; docs/proofs/gaussian-curve.md has the bound for noise on a lattice, and
    `curve_delta` confirms it.

    >>> from ptclust.privacy import Sensitivity
    >>> round(gaussian_noise_alone(Sensitivity(l2=1.0), 10, Budget.approximate(1, 1e-6)).scale, 3)
    4.225
    """
    by_zcdp = gaussian_noise(sensitivity, n_values, budget.to_zcdp().amount)
    if not n_values:
        return by_zcdp
    mu = largest_mu(float_down(budget.epsilon), float_down(budget.delta))
    for spare in (2.0**-20, 2.0**-14):
        scale = float(_moved(sensitivity, by_zcdp)) / mu * (1.0 + spare)
        noise = replace(by_zcdp, scale=scale)
        if scale < by_zcdp.scale and curve_delta(noise, sensitivity, budget) <= budget.delta:
            return noise
    return by_zcdp


def curve_delta(
    noise: Noise, sensitivity: Sensitivity, budget: Budget, steps: Steps = NO_STEPS
) -> Fraction:
    """Return an upper bound on the delta, at the epsilon of a budget, of steps and Gaussian noise.

    Nothing else is released with them; without steps it is noise alone.
    """
    if noise.distribution != "gaussian" or not noise.n_values:
        return Fraction(1)
    step = Fraction(2) ** noise.granularity
    change, t = _moved(sensitivity, noise) / step, Fraction(noise.scale) / step
    return lattice_delta(change, t, noise.n_values, budget.epsilon, steps)


def rho_within(
    budget: Budget, noise: Noise, sensitivity: Sensitivity, steps: Steps
) -> Fraction | None:
    """Return about the largest rho of steps and noise that (epsilon, delta) affords by their curve.

    They share it in the proportions of these. It is computed in floats: `curve_delta` has to
    confirm what is made of it. None if steps show through the noise.
    """
    square = (_moved(sensitivity, noise) / Fraction(noise.scale)) ** 2
    widened = square_after(square, steps)
    if widened is None:
        return None
    mu = Fraction(largest_mu(float_down(budget.epsilon), float_down(budget.delta)))
    rho = square / 2 + steps.count * steps.loss_range**2 / 8
    return Fraction(float_down(rho * mu**2 / widened * (1 - Fraction(1, 2**18))))


def _moved(sensitivity: Sensitivity, noise: Noise) -> Fraction:
    """Return the l2 bound on the change of values that are rounded to the lattice of the noise."""
    distance = _distance("gaussian", sensitivity, noise.n_values)
    roundings = Fraction(root_up(Fraction(noise.n_values)))
    return Fraction(distance) + roundings * Fraction(2) ** noise.granularity


def cube_noise(sensitivity: Sensitivity, n_values: int, epsilon: Number) -> Noise:
    """Return the least cube noise under which ``n_values`` values are epsilon-DP.

    Notes
    -----
    *Privacy.* The scale is linf/epsilon, where linf bounds the change of every value, enlarged for
    the rounding to the lattice: the K-norm mechanism of the linf ball (Hardt and Talwar 2010;
    docs/proofs/cube.md).

    >>> from ptclust.privacy import Sensitivity
    >>> noise = cube_noise(Sensitivity(linf=0.001), 100, 0.5)
    >>> round(noise.scale, 6), round(noise.standard_deviation, 3)  # sqrt(2) 100 times b of Laplace
    (0.002, 0.117)
    """
    noise = _calibrated("cube", sensitivity, n_values, epsilon)
    if n_values * Fraction(noise.scale) >= _WIDEST * Fraction(2) ** noise.granularity:
        raise UsageError(
            f"cube noise on {n_values} values at epsilon = {float(epsilon):g} is too wide for its "
            "lattice; choose a larger epsilon, or Laplace noise"
        )
    return noise


def least_noise(sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
    """Return the least noise that a budget affords: Gaussian for zCDP, Laplace or cube if pure.

    >>> from ptclust.privacy import Sensitivity
    >>> least_noise(Sensitivity(linf=0.001), 100, Budget.pure(1)).distribution
    'cube'
    >>> least_noise(Sensitivity(linf=0.001, l1=0.01), 100, Budget.pure(1)).distribution
    'laplace'
    """
    if budget.rho is not None:
        return gaussian_noise(sensitivity, n_values, budget.rho)
    found = [laplace_noise(sensitivity, n_values, budget.epsilon)]
    with suppress(UsageError):
        found.append(cube_noise(sensitivity, n_values, budget.epsilon))
    return min(found, key=lambda noise: noise.standard_deviation)


def noise_of_scale(scale: float, n_values: int) -> Noise:
    """Return Laplace noise of a given scale, whatever it protects; ``spent_by`` says how much.

    >>> noise_of_scale(0.5, 10).scale
    0.5
    """
    checked = exact_positive("scale", scale, "It is the b of the Laplace distribution.")
    granularity = exponent_below(checked) - _FINENESS_BITS - max(n_values, 1).bit_length()
    return Noise("laplace", float(checked), max(granularity, _FINEST), n_values)


def spent_by(noise: Noise, sensitivity: Sensitivity) -> Budget | None:
    """Return what noise spends under ``sensitivity``: None without values.

    Of Laplace and Gaussian noise by OpenDP's privacy map, of cube noise by its formula.

    >>> from ptclust.privacy import Sensitivity
    >>> print(spent_by(noise_of_scale(2.0, 100), Sensitivity(linf=1.0)))
    epsilon = 50
    """
    if noise.n_values == 0:
        return None
    loss = _privacy_loss(noise, _distance(noise.distribution, sensitivity, noise.n_values))
    return Budget.zcdp(loss) if noise.distribution == "gaussian" else Budget.pure(loss)


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
    parameter = "rho" if distribution == "gaussian" else "epsilon"
    budget = exact_positive(parameter, amount, "Smaller means more private.")
    try:
        n_values = operator.index(n_values)
    except TypeError:
        raise UsageError(f"the number of values must be an integer, not {n_values!r}") from None
    if n_values == 0:
        return Noise(distribution, 0.0, _FINEST, 0)
    distance = _distance(distribution, sensitivity, n_values)
    change = Fraction(distance)
    if distribution == "gaussian":
        roundings = Fraction(root_up(Fraction(n_values)))
        per_change = Fraction(root_up(1 / (2 * budget)))
    else:
        roundings, per_change = Fraction(n_values), 1 / budget
    width = change * per_change
    if distribution == "cube":
        roundings, width = Fraction(1), n_values * width
    no_larger = exponent_below(change / roundings) - _ENLARGEMENT_BITS
    as_fine = exponent_below(width) - _FINENESS_BITS
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
    distance = sensitivity.largest_change
    if distribution != "cube":
        of_all = sensitivity.l1_of if distribution == "laplace" else sensitivity.l2_of
        distance = of_all(n_values)
    if not math.isfinite(distance):
        raise UsageError(
            f"under the sensitivity {sensitivity} the change of {n_values} values together exceeds "
            "the largest float; rescale the weights and it"
        )
    return distance


def _privacy_loss(noise: Noise, distance: float) -> float:
    """Return epsilon of Laplace and cube noise, rho of Gaussian noise, rounded up.

    Cube noise: two values that differ by d are rounded to at most d + 2^k apart.
    """
    if noise.distribution == "cube":
        moved = Fraction(distance) + Fraction(2) ** noise.granularity
        return float_up(moved / Fraction(noise.scale))
    return float(lattice_measurement(noise, noise.n_values).map(distance))
