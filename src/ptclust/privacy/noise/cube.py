"""Cube noise (Hardt and Talwar 2010): the K-norm mechanism of the linf ball.

The vector z of all noises has a density proportional to exp(-(largest |z|) / scale). Given a
half-width of Gamma(n + 1) scales, all values are uniform within it.
"""

from __future__ import annotations

import math

import numpy as np

from ptclust._types import Floats
from ptclust.privacy.noise.distribution import Distribution, Noise
from ptclust.privacy.noise.exact import CubeSampler, LatticeNoise, UniformSampler, WordSource


class Cube(Distribution):
    """Pure, and the least where one person moves all values; the scale is linf / epsilon.

    Under linf it is 2.4 times less than Laplace noise, and its largest value is not log(m) times
    the typical one but 1.7 times.
    """

    name = "cube"
    title = "Cube"
    mechanism = "Cube mechanism"
    reference = "Hardt and Talwar 2010: K-norm mechanism of the linf ball"
    proof = "docs/proofs/cube.md"
    norm = "linf"
    unit = "epsilon"

    def width(self, n_values: int) -> int:
        """Return n."""
        return n_values

    def deviation(self, n_values: int) -> float:
        """Return that of a uniform value whose half-width is Gamma(n + 1)."""
        return math.sqrt((n_values + 1) * (n_values + 2) / 3.0)

    def probability_within(self, n_values: int, size: float) -> float:
        """Return the probability that Gamma(n) is, which is the largest value."""
        from scipy.special import gammainc

        return float(gammainc(n_values, size)) if n_values else 1.0

    def largest(self, n_values: int, gamma: float) -> float:
        """Return the quantile of Gamma(n)."""
        from scipy.special import gammainccinv

        return float(gammainccinv(n_values, gamma)) if n_values else 0.0

    def mean_largest(self, n_values: int) -> float:
        """Return n, which it is."""
        return float(n_values)

    def log_ratio(self, here: Floats, there: Floats) -> Floats:
        """Return the difference of the largest."""
        ratio: Floats = np.nanmax(np.abs(there), axis=-1) - np.nanmax(np.abs(here), axis=-1)
        return ratio

    def sampler(self, noise: Noise, shared: WordSource) -> LatticeNoise:
        """Return the sampler of uniform values, its half-width drawn from ``shared``.

        *Privacy.* Nobody may learn the half-width: it stays in what is returned.
        """
        return UniformSampler(CubeSampler(noise.n_values, noise.steps).draw_half_width(shared))

    def simulate(self, generator: np.random.Generator, n_values: int) -> Floats:
        """Return numpy's values."""
        return generator.gamma(n_values + 1) * generator.uniform(-1.0, 1.0, n_values)
