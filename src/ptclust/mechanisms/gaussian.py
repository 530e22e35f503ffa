"""The Gaussian mechanism on the weights of the whole graph (Bun and Steinke 2016)."""

from __future__ import annotations

from ptclust.errors import UsageError
from ptclust.mechanisms.perturbation import PerturbationMechanism
from ptclust.privacy.budget import Budget


class Gaussian(PerturbationMechanism):
    """Gaussian noise on all weights, by way of zCDP: needs delta > 0."""

    name = "gaussian"
    title = "Gaussian mechanism"
    reference = "Bun and Steinke 2016; discrete: Canonne, Kamath and Steinke 2020"
    variants = ("approximate",)
    norm = "l2"

    def spend(self, budget: Budget) -> tuple[Budget, Budget]:
        """Spend the largest rho that fits in (epsilon, delta)."""
        if budget.delta == 0:
            raise UsageError(
                "Gaussian noise is never pure: give a positive delta=, or mechanism='laplace'"
            )
        return budget, budget.to_zcdp()
