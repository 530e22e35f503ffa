"""Gaussian noise: independent values of density proportional to exp(-z^2 / (2 sigma^2)).

Discrete: Canonne, Kamath and Steinke 2020. Alone its own curve counts (Balle and Wang 2018).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ptclust._types import Floats
from ptclust.errors import UsageError
from ptclust.privacy._numbers import float_down
from ptclust.privacy.budget import Budget
from ptclust.privacy.gaussian_curve import NO_STEPS, Steps, largest_mu, lattice_delta, square_after
from ptclust.privacy.noise.distribution import Independent, Noise
from ptclust.privacy.sensitivity import Sensitivity


class Gaussian(Independent):
    """Never pure; the scale is sigma = l2 / sqrt(2 rho), or less if nothing else is released."""

    name = "gaussian"
    title = "Gaussian"
    mechanism = "Gaussian mechanism"
    reference = "Balle and Wang 2018; discrete: Canonne, Kamath and Steinke 2020"
    proof = "docs/proofs/gaussian-curve.md"
    norm = "l2"
    unit = "rho"
    power = 2
    opendp = ("make_gaussian", "l2_distance")

    def calibrate_alone(self, sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
        """Return the least noise under which ``n_values`` values are (epsilon, delta)-DP.

        It is for a release that is nothing else: composed with others, what counts is its rho.

        *Privacy.* Sigma follows from the curve of the Gaussian itself, not by way of zCDP, and is
        less by 6 to 9 %; docs/proofs/gaussian-curve.md has the bound for noise on a lattice, and
        `curve_delta` confirms it.
        """
        if budget.delta == 0:
            raise UsageError(
                "Gaussian noise is never pure: give a positive delta=, or mechanism='laplace'"
            )
        by_zcdp = self.calibrate(sensitivity, n_values, budget.to_zcdp().amount)
        if not n_values:
            return by_zcdp
        mu = largest_mu(float_down(budget.epsilon), float_down(budget.delta))
        for spare in (2.0**-20, 2.0**-14):
            scale = float(self.moved(sensitivity, by_zcdp)) / mu * (1.0 + spare)
            noise = replace(by_zcdp, scale=scale)
            fits = self.curve_delta(noise, sensitivity, budget) <= budget.delta
            if scale < by_zcdp.scale and fits:
                return noise
        return by_zcdp

    def curve_delta(
        self, noise: Noise, sensitivity: Sensitivity, budget: Budget, steps: Steps = NO_STEPS
    ) -> Fraction:
        """Return the bound for the discrete Gaussian, after steps of bounded range."""
        if not noise.n_values:
            return Fraction(1)
        change = self.moved(sensitivity, noise) / Fraction(2) ** noise.granularity
        return lattice_delta(change, noise.steps, noise.n_values, budget.epsilon, steps)

    def rho_within(
        self, budget: Budget, noise: Noise, sensitivity: Sensitivity, steps: Steps
    ) -> Fraction | None:
        """Return it, computed in floats; None if steps show through the noise."""
        square = (self.moved(sensitivity, noise) / Fraction(noise.scale)) ** 2
        widened = square_after(square, steps)
        if widened is None:
            return None
        mu = Fraction(largest_mu(float_down(budget.epsilon), float_down(budget.delta)))
        rho = square / 2 + steps.count * steps.loss_range**2 / 8
        return Fraction(float_down(rho * mu**2 / widened * (1 - Fraction(1, 2**18))))

    def deviation(self, n_values: int) -> float:
        """Return 1."""
        return 1.0

    def beyond(self, size: float) -> float:
        """Return erfc(size / sqrt(2))."""
        return math.erfc(size / math.sqrt(2))

    def largest(self, n_values: int, gamma: float) -> float:
        """Return sqrt(2 log(n / gamma)), by the union bound."""
        return math.sqrt(2.0 * math.log(n_values / gamma)) if n_values else 0.0

    def mean_largest(self, n_values: int) -> float:
        """Return sqrt(2 log(2 n)), which it is at most."""
        return math.sqrt(2.0 * math.log(2.0 * n_values)) if n_values else 0.0

    def simulate(self, generator: np.random.Generator, n_values: int) -> Floats:
        """Return numpy's values."""
        return generator.normal(0.0, 1.0, n_values)
