"""The Laplace mechanism on the weights of the whole graph (Dwork et al. 2006, Sealfon 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptclust.mechanisms.lattice import laplace_noise
from ptclust.mechanisms.mechanism import Calibration
from ptclust.mechanisms.perturbation import PerturbationMechanism
from ptclust.privacy.budget import Budget

if TYPE_CHECKING:
    from fractions import Fraction

    from ptclust.graph.topology import Topology
    from ptclust.privacy.sensitivity import Sensitivity

__all__ = ["Laplace"]


class Laplace(PerturbationMechanism):
    """Laplace noise on all weights: pure, and best where one person moves few of them."""

    name = "laplace"
    title = "Laplace mechanism"
    reference = "Dwork et al. 2006; sampler: OpenDP"
    variants = ("pure",)
    norm = "l1"

    def calibrate(
        self,
        topology: Topology,
        sensitivity: Sensitivity,
        budget: Budget,
        *,
        split: Fraction | None = None,  # noqa: ARG002
        largest_weight: float = 0.0,  # noqa: ARG002
    ) -> Calibration:
        """Spend all of epsilon and none of delta: epsilon-DP is (epsilon, delta)-DP."""
        pure = Budget.pure(budget.epsilon)
        noise = laplace_noise(sensitivity, topology.n_edges, pure.epsilon)
        return Calibration(self.name, None, noise, pure, pure)
