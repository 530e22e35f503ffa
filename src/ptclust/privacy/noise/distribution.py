"""Noise distributions, and the noise that a budget affords.

Noise lives on the lattice of multiples of 2^k (``mechanisms.lattice`` adds it there). The rounding
of the input to the lattice may add up to 2^k to the change of every value, so the scale grows by
that little: below one in a million, by choice of k, unless the budget is tiny.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from ptclust._markup import quoted
from ptclust._registry import Registry
from ptclust._traces import shown_half_built
from ptclust._types import Floats
from ptclust.errors import UsageError
from ptclust.privacy._numbers import (
    Number,
    count,
    exact_positive,
    exponent_below,
    float_up,
    root_up,
)
from ptclust.privacy.budget import Budget
from ptclust.privacy.gaussian_curve import NO_STEPS, Steps
from ptclust.privacy.noise.exact import BEYOND_T, LatticeNoise, WordSource, lattice_sampler
from ptclust.privacy.sensitivity import Sensitivity

Norm = Literal["l1", "l2", "linf"]

_ENLARGEMENT_BITS = 21  # rounding to the lattice enlarges the scale by at most 2^-21
_FINENESS_BITS = 40  # the lattice is this much finer than the scale: noise looks continuous
_WIDEST_BITS = BEYOND_T.numerator.bit_length() - 1  # of steps: nothing wider is drawn
_MOST_VALUES = 2**63  # what an index holds
_FINEST, _COARSEST = -1074, 1023  # the exponents of the smallest and the largest floats


class Distribution(ABC):
    """A distribution of noise: all of its properties, in one class, with sizes in scales.

    Nothing else compares names of distributions. CONTRIBUTING.md has an example of adding one.
    """

    name: str  # what files and options call it
    title: str  # what statements call the noise,
    mechanism: str  # and the mechanism that adds it
    reference: str
    proof: str = "docs/proofs/private-trees.md"
    norm: Norm  # in which the change of all values together counts
    unit: Literal["epsilon", "rho"]  # what the ratio of change and scale is a bound on
    has_exponential_tails: bool = False  # of one value: rather like Laplace than like Gaussian
    opendp: tuple[str, str] | None = None  # OpenDP's constructor and metric, if it draws this

    def change(self, sensitivity: Sensitivity, n_values: int) -> float:
        """Return the bound on the change of so many values, in the norm that counts."""
        changes = {"l1": sensitivity.l1_of, "l2": sensitivity.l2_of}
        of_all = changes.get(self.norm, lambda _: sensitivity.largest_change)
        if not math.isfinite(distance := of_all(n_values)):
            raise UsageError(
                f"under the sensitivity {sensitivity} the change of {n_values} values together "
                "exceeds the largest float; rescale the weights and it"
            )
        return distance

    def roundings(self, n_values: int) -> Fraction:
        """Return how many steps rounding to the lattice may add to the change, one a value."""
        return Fraction(self.change(Sensitivity(linf=1.0), n_values))

    def moved(self, sensitivity: Sensitivity, noise: Noise) -> Fraction:
        """Return the bound on the change of values that are rounded to the lattice of the noise."""
        step = Fraction(2) ** noise.granularity
        distance = Fraction(self.change(sensitivity, noise.n_values))
        return distance + self.roundings(noise.n_values) * step

    def loss(self, ratio: Fraction) -> Fraction:
        """Return epsilon or rho where the change is ``ratio`` scales."""
        return ratio if self.unit == "epsilon" else ratio**2 / 2

    def calibrate(self, sensitivity: Sensitivity, n_values: int, amount: Number) -> Noise:
        """Return the least noise under which ``n_values`` values are epsilon-DP, or rho-zCDP.

        *Privacy.* The scale is the change of these values together over epsilon, or over
        sqrt(2 rho), enlarged for the rounding to the lattice; in rational arithmetic, rounded up.
        """
        budget = exact_positive(self.unit, amount, "Smaller means more private.")
        n_values = count("the number of values", n_values)
        if n_values == 0:
            return Noise(self.name, 0.0, _FINEST, 0)
        change = Fraction(self.change(sensitivity, n_values))
        roundings = self.roundings(n_values)
        per_change = 1 / budget if self.unit == "epsilon" else Fraction(root_up(1 / (2 * budget)))
        width = change * per_change * self.width(n_values)
        no_larger = exponent_below(change / roundings) - _ENLARGEMENT_BITS
        as_fine = exponent_below(width) - _FINENESS_BITS
        can_be_drawn = exponent_below(width) + 2 - (_WIDEST_BITS - 1)
        granularity = max(min(no_larger, as_fine), can_be_drawn, _FINEST)
        scale = float_up((change + roundings * Fraction(2) ** granularity) * per_change)
        noise = Noise(self.name, scale, granularity, n_values)
        while self.spent(noise, sensitivity) > budget:  # its float is rounded up
            noise = Noise(self.name, math.nextafter(noise.scale, math.inf), granularity, n_values)
        if noise.steps * self.width(n_values) >= BEYOND_T:
            raise UsageError(
                f"{self.title} noise on {n_values} values at {self.unit} = {float(budget):g} is "
                f"too wide for its lattice; choose a larger {self.unit}"
            )
        return noise

    def of_scale(self, scale: float, n_values: int) -> Noise:
        """Return noise of a given scale, whatever it protects; `spent_by` says how much."""
        checked = exact_positive("scale", scale, f"It is the scale of {self.title} noise.")
        bits = _FINENESS_BITS + max(n_values, 1).bit_length()
        granularity = exponent_below(checked) - min(bits, _WIDEST_BITS - 3)
        return Noise(self.name, float(checked), max(granularity, _FINEST), n_values)

    def calibrate_alone(self, sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
        """Return the least noise for a release that is nothing else, of (epsilon, delta)."""
        return self.calibrate(sensitivity, n_values, budget.epsilon)

    def spent(self, noise: Noise, sensitivity: Sensitivity) -> float:
        """Return epsilon or rho of the noise, rounded up."""
        return float_up(self.loss(self.moved(sensitivity, noise) / Fraction(noise.scale)))

    def curve_delta(
        self, noise: Noise, sensitivity: Sensitivity, budget: Budget, steps: Steps = NO_STEPS
    ) -> Fraction:
        """Return an upper bound on the delta, at the epsilon of a budget, of steps and noise.

        Nothing else is released with them; without steps it is noise alone. 1 if none is known.
        """
        return Fraction(1)

    def rho_within(
        self, budget: Budget, noise: Noise, sensitivity: Sensitivity, steps: Steps
    ) -> Fraction | None:
        """Return about the largest rho of steps and noise that (epsilon, delta) affords, if known.

        They share it in the proportions of these. `curve_delta` has to confirm what is made of it.
        """
        return None

    def width(self, n_values: int) -> int:
        """Return about how large the largest of so many values is."""
        return 1

    @abstractmethod
    def deviation(self, n_values: int) -> float:
        """Return the standard deviation of one value."""

    @abstractmethod
    def probability_within(self, n_values: int, size: float) -> float:
        """Return the probability that no value is larger than ``size``."""

    @abstractmethod
    def largest(self, n_values: int, gamma: float) -> float:
        """Return what the largest value exceeds with probability at most ``gamma``."""

    @abstractmethod
    def mean_largest(self, n_values: int) -> float:
        """Return a bound on the mean of the largest value."""

    @abstractmethod
    def log_ratio(self, here: Floats, there: Floats) -> Floats:
        """Return log-ratios of densities at distances from two inputs, one row each, or NaN."""

    @abstractmethod
    def sampler(self, noise: Noise, shared: WordSource) -> LatticeNoise:
        """Return what draws the noise, exactly; what all values share, it draws from ``shared``."""

    @abstractmethod
    def simulate(self, generator: np.random.Generator, n_values: int) -> Floats:
        """Return so many values in floating-point numbers, for experiments."""


class Independent(Distribution):
    """Independent values, each with a density proportional to exp(-|z|^power / power)."""

    power: int

    @abstractmethod
    def beyond(self, size: float) -> float:
        """Return the probability that one value is larger than ``size``, of either sign."""

    def probability_within(self, n_values: int, size: float) -> float:
        """Return the probability that none of the values is beyond."""
        beyond = self.beyond(size)
        if beyond == 1 or n_values == 0:
            return float(n_values == 0)
        return math.exp(n_values * math.log1p(-beyond))

    def log_ratio(self, here: Floats, there: Floats) -> Floats:
        """Return the sum of differences of powers, over the power."""
        differences = np.abs(there) ** self.power - np.abs(here) ** self.power
        ratio: Floats = np.nansum(differences, axis=-1) / self.power
        return ratio

    def sampler(self, noise: Noise, shared: WordSource) -> LatticeNoise:
        """Return the sampler of independent values."""
        return lattice_sampler(self.power, noise.steps)


#: Of two distributions whose noise is as large, the first is taken.
DISTRIBUTIONS: Registry[Distribution] = Registry("noise")


@shown_half_built
@dataclass(frozen=True)
class Noise:
    """Noise for ``n_values`` numbers together, on the lattice of multiples of 2^granularity."""

    distribution: str  # its name
    scale: float
    granularity: int
    n_values: int

    def __post_init__(self) -> None:
        DISTRIBUTIONS[self.distribution]  # refuses a name that it does not know
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
    def law(self) -> Distribution:
        """The distribution that this is noise of."""
        return DISTRIBUTIONS[self.distribution]

    @property
    def steps(self) -> Fraction:
        """The scale in steps of the lattice."""
        return Fraction(self.scale) / Fraction(2) ** self.granularity

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise on one value."""
        return self.scale * self.law.deviation(self.n_values)

    def log_ratio(self, noisy: Floats, weights: Floats, neighbour: Floats) -> Floats:
        """Return the log-ratio of the densities of every row of noisy values under two inputs."""
        return self.law.log_ratio((noisy - weights) / self.scale, (noisy - neighbour) / self.scale)

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


def least_noise(sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
    """Return the least noise, of all distributions, that a pure or zCDP budget affords.

    >>> least_noise(Sensitivity(linf=0.001), 100, Budget.pure(1)).distribution
    'cube'
    """
    found, refusals = list[Noise](), list[UsageError]()
    for law in DISTRIBUTIONS:
        if law.unit == budget.unit:
            try:
                found.append(law.calibrate(sensitivity, n_values, budget.amount))
            except UsageError as refusal:
                refusals.append(refusal)
    if not found:
        raise refusals[0]
    return min(found, key=lambda noise: noise.standard_deviation)


def spent_by(noise: Noise, sensitivity: Sensitivity) -> Budget | None:
    """Return what noise spends under ``sensitivity``: None without values."""
    if noise.n_values == 0:
        return None
    loss = noise.law.spent(noise, sensitivity)
    return Budget.zcdp(loss) if noise.law.unit == "rho" else Budget.pure(loss)
