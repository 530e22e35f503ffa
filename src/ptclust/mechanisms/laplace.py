"""The Laplace mechanism on the weights of the whole graph (Dwork et al. 2006, Sealfon 2016)."""

from __future__ import annotations

from ptclust.mechanisms.perturbation import PerturbationMechanism
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import Noise, laplace_noise
from ptclust.privacy.sensitivity import Sensitivity


class Laplace(PerturbationMechanism):
    """Laplace noise on all weights: pure, and best where one person moves few of them."""

    name = "laplace"
    title = "Laplace mechanism"
    reference = "Dwork et al. 2006"
    variants = ("pure",)
    norm = "l1"

    def make_noise(self, sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
        """Return the least noise of epsilon."""
        return laplace_noise(sensitivity, n_values, budget.epsilon)
