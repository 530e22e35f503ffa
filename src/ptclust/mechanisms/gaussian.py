"""The Gaussian mechanism on the weights of the whole graph (Bun and Steinke 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptclust.errors import UsageError
from ptclust.mechanisms.lattice import least_noise
from ptclust.mechanisms.mechanism import Calibration
from ptclust.mechanisms.perturbation import PerturbationMechanism

if TYPE_CHECKING:
    from fractions import Fraction

    from ptclust.graph.topology import Topology
    from ptclust.privacy.budget import Budget
    from ptclust.privacy.sensitivity import Sensitivity

__all__ = ["Gaussian"]


class Gaussian(PerturbationMechanism):
    """Gaussian noise on all weights, by way of zCDP: needs delta > 0."""

    name = "gaussian"
    title = "Gaussian mechanism"
    reference = "Bun and Steinke 2016; sampler: OpenDP"
    variants = ("approximate",)
    norm = "l2"

    def calibrate(
        self,
        topology: Topology,
        sensitivity: Sensitivity,
        budget: Budget,
        *,
        split: Fraction | None = None,  # noqa: ARG002
        largest_weight: float = 0.0,  # noqa: ARG002
    ) -> Calibration:
        """Spend the largest rho that fits in (epsilon, delta)."""
        if budget.delta == 0:
            raise UsageError("Gaussian noise is never pure: give delta > 0, or use 'laplace'")
        shared = budget.to_zcdp()
        noise = least_noise(sensitivity, topology.n_edges, shared)
        return Calibration(self.name, None, noise, budget, shared)
