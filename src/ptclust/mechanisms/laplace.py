"""The Laplace mechanism on the weights of the whole graph (Dwork et al. 2006, Sealfon 2016)."""

from __future__ import annotations

from ptclust.mechanisms.perturbation import PerturbationMechanism
from ptclust.privacy.budget import Budget


class Laplace(PerturbationMechanism):
    """Laplace noise on all weights: pure, and best where one person moves few of them."""

    name = "laplace"
    title = "Laplace mechanism"
    reference = "Dwork et al. 2006"
    variants = ("pure",)
    norm = "l1"

    def spend(self, budget: Budget) -> tuple[Budget, Budget]:
        """Spend all of epsilon and none of delta: epsilon-DP is (epsilon, delta)-DP."""
        pure = Budget.pure(budget.epsilon)
        return pure, pure
