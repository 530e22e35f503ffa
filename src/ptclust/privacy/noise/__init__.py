"""The noise on published weights: one class per distribution, in one file each, and a registry.

Samplers see no weights: they draw integers, which ``mechanisms.lattice`` adds to weights.
"""

from __future__ import annotations

from ptclust.privacy.noise.cube import Cube
from ptclust.privacy.noise.distribution import (
    DISTRIBUTIONS,
    Distribution,
    Noise,
    least_noise,
    spent_by,
)
from ptclust.privacy.noise.gaussian import Gaussian
from ptclust.privacy.noise.laplace import Laplace

__all__ = [
    "CUBE",
    "DISTRIBUTIONS",
    "GAUSSIAN",
    "LAPLACE",
    "NO_NOISE",
    "Distribution",
    "Noise",
    "cube_noise",
    "gaussian_noise",
    "gaussian_noise_alone",
    "laplace_noise",
    "least_noise",
    "noise_of_scale",
    "spent_by",
]

GAUSSIAN, LAPLACE, CUBE = Gaussian(), Laplace(), Cube()
for _distribution in (GAUSSIAN, LAPLACE, CUBE):
    DISTRIBUTIONS.register(_distribution)

laplace_noise, gaussian_noise, cube_noise = (each.calibrate for each in (LAPLACE, GAUSSIAN, CUBE))
gaussian_noise_alone = GAUSSIAN.calibrate_alone
noise_of_scale = LAPLACE.of_scale

NO_NOISE = Noise(LAPLACE.name, scale=0.0, granularity=0, n_values=0)  # no weights released
