"""The Gaussian mechanism on the weights of the whole graph (Bun and Steinke 2016)."""

from __future__ import annotations

from ptclust.errors import UsageError
from ptclust.mechanisms.mechanism import Calibration
from ptclust.mechanisms.perturbation import PerturbationMechanism
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import Noise, curve_delta, gaussian_noise_alone, spent_by
from ptclust.privacy.sensitivity import Sensitivity


class Gaussian(PerturbationMechanism):
    """Gaussian noise on all weights, calibrated by its own curve: needs delta > 0."""

    name = "gaussian"
    title = "Gaussian mechanism"
    reference = "Balle and Wang 2018; discrete: Canonne, Kamath and Steinke 2020"
    proof = "docs/proofs/gaussian-curve.md"
    variants = ("approximate",)
    norm = "l2"

    def make_noise(self, sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
        """Return the least noise of (epsilon, delta)."""
        if budget.delta == 0:
            raise UsageError(
                "Gaussian noise is never pure: give a positive delta=, or mechanism='laplace'"
            )
        return gaussian_noise_alone(sensitivity, n_values, budget)

    def spend(
        self, noise: Noise, sensitivity: Sensitivity, budget: Budget
    ) -> tuple[Budget, Budget]:
        """Spend all of (epsilon, delta); beside other releases the rho of the noise counts."""
        on_noise = spent_by(noise, sensitivity) or budget.to_zcdp()
        return Budget.approximate(budget.epsilon, budget.delta, on_noise.amount), on_noise

    def keeps(self, calibration: Calibration, sensitivity: Sensitivity, budget: Budget) -> bool:
        """Return whether the curve of the noise says that it keeps (epsilon, delta)."""
        return curve_delta(calibration.weights, sensitivity, budget) <= budget.delta
