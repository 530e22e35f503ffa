"""The cube mechanism on the weights of the whole graph (Hardt and Talwar 2010)."""

from __future__ import annotations

from ptclust.mechanisms.perturbation import PerturbationMechanism
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import Noise, cube_noise
from ptclust.privacy.sensitivity import Sensitivity


class Cube(PerturbationMechanism):
    """Noise whose density falls with its largest value: pure, for one who moves all weights.

    It is the K-norm mechanism of the linf ball. Under linf it is 2.4 times less than Laplace noise,
    and its largest value is not log(m) times the typical one but 1.7 times.
    """

    name = "cube"
    title = "Cube mechanism"
    reference = "Hardt and Talwar 2010: K-norm mechanism of the linf ball"
    proof = "docs/proofs/cube.md"
    variants = ("pure",)
    norm = "linf"

    def make_noise(self, sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
        """Return the least noise of epsilon."""
        return cube_noise(sensitivity, n_values, budget.epsilon)
