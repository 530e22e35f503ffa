"""Laplace noise (Dwork et al. 2006): independent values of density exp(-|z| / b) / (2 b)."""

from __future__ import annotations

import math

import numpy as np

from ptclust._types import Floats
from ptclust.privacy.noise.distribution import Independent


class Laplace(Independent):
    """Pure, and the least where one person moves few values; the scale is b = l1 / epsilon."""

    name = "laplace"
    title = "Laplace"
    mechanism = "Laplace mechanism"
    reference = "Dwork et al. 2006"
    norm = "l1"
    unit = "epsilon"
    power = 1
    has_exponential_tails = True
    opendp = ("make_laplace", "l1_distance")

    def deviation(self, n_values: int) -> float:
        """Return sqrt(2)."""
        return math.sqrt(2.0)

    def beyond(self, size: float) -> float:
        """Return exp(-size)."""
        return math.exp(-size)

    def largest(self, n_values: int, gamma: float) -> float:
        """Return log(n / gamma), by the union bound (Sealfon 2016)."""
        return math.log(n_values / gamma) if n_values else 0.0

    def mean_largest(self, n_values: int) -> float:
        """Return 1 + 1/2 + ... + 1/n, which it is."""
        from scipy.special import digamma

        return float(digamma(n_values + 1)) + np.euler_gamma

    def simulate(self, generator: np.random.Generator, n_values: int) -> Floats:
        """Return numpy's values."""
        return generator.laplace(0.0, 1.0, n_values)
