"""Laplace noise (Dwork et al. 2006): independent values of density exp(-|z| / b) / (2 b)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ptclust._types import Floats
from ptclust.privacy.noise.distribution import Distribution, Noise

if TYPE_CHECKING:
    from ptclust.privacy.noise.exact import Sampler, WordSource


class Laplace(Distribution):
    """Pure, and the least where one person moves few values; the scale is b = l1 / epsilon.

    >>> from ptclust.privacy import Sensitivity
    >>> round(Laplace().calibrate(Sensitivity(linf=0.001), 100, 0.5).scale, 6)
    0.2
    """

    name = "laplace"
    title = "Laplace"
    mechanism = "Laplace mechanism"
    reference = "Dwork et al. 2006"
    norm = "l1"
    unit = "epsilon"
    has_exponential_tails = True
    opendp = ("make_laplace", "l1_distance")

    def deviation(self, n_values: int) -> float:  # noqa: ARG002
        """Return sqrt(2)."""
        return math.sqrt(2.0)

    def quantile(self, n_values: int, probability: float) -> float:  # noqa: ARG002
        """Return the quantile of one value."""
        tail = math.log(2.0 * min(probability, 1.0 - probability))
        return tail if probability < 0.5 else -tail

    def probability_within(self, n_values: int, size: float) -> float:
        """Return (1 - exp(-size))^n."""
        return all_of(n_values, math.exp(-size))

    def largest(self, n_values: int, gamma: float) -> float:
        """Return log(n / gamma), by the union bound (Sealfon 2016)."""
        return math.log(n_values / gamma) if n_values else 0.0

    def mean_largest(self, n_values: int) -> float:
        """Return 1 + 1/2 + ... + 1/n, which it is."""
        from scipy.special import digamma

        return float(digamma(n_values + 1)) + np.euler_gamma

    def log_ratio(self, here: Floats, there: Floats) -> Floats:
        """Return the sum of differences."""
        ratio: Floats = np.nansum(np.abs(there) - np.abs(here), axis=-1)
        return ratio

    def sampler(self, noise: Noise, shared: WordSource) -> Sampler:  # noqa: ARG002
        """Return the sampler of exp(-m / t)."""
        from ptclust.privacy.noise.exact import lattice_sampler

        return lattice_sampler(1, noise.steps)

    def simulate(self, generator: np.random.Generator, n_values: int) -> Floats:
        """Return numpy's values."""
        return generator.laplace(0.0, 1.0, n_values)


def all_of(n_values: int, beyond: float) -> float:
    """Return the probability that none of so many independent values is beyond."""
    if beyond == 1 or n_values == 0:
        return float(n_values == 0)
    return math.exp(n_values * math.log1p(-beyond))
