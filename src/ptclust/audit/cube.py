"""The worst loss of the cube mechanism, by enumeration of a small lattice.

The sampler draws a half-width g and then uniform values from -g to g. Here its own weights of g are
added up to the probability of every outcome, and its own rounding takes neighbours to the lattice;
that their ratio is what the proof says (docs/proofs/cube.md) is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from ptclust._types import Floats, Ints
from ptclust.audit.search import Worst
from ptclust.mechanisms.lattice import added_on_lattice
from ptclust.privacy import Noise, Sensitivity
from ptclust.privacy._numbers import float_up
from ptclust.privacy.noise import CUBE, spent_by
from ptclust.privacy.noise.exact import CubeSampler

_REACH = 24  # steps of the lattice around the weights; the loss is constant beyond
_FARTHEST = 800  # steps: a half-width beyond has a probability below e^-100
# The least fraction above three steps: neighbours round to four steps apart.
_CHANGE = 3.0 + 2.0**-20
# Weights from which a change reaches farthest: just below a tie, and just above zero.
_WEIGHTS = (0.5 - 2.0**-21, 2.0**-21)


def rounded_to_lattice(weights: Floats) -> Ints:
    """Return the steps of the lattice to which a release rounds weights; its step is 1."""
    return added_on_lattice(weights, np.zeros(len(weights), np.int64), 0, {}).astype(np.int64)


@dataclass(frozen=True)
class CubeCase:
    """Cube noise on a few values, on a lattice of step 1 that is as coarse as the change."""

    noise: Noise
    sensitivity: Sensitivity
    rounded: Callable[[Floats], Ints] = rounded_to_lattice

    @classmethod
    def of(
        cls,
        n_values: int,
        *,
        rounding: int = 1,
        rounded: Callable[[Floats], Ints] = rounded_to_lattice,
    ) -> CubeCase:
        """Return the case that is calibrated to epsilon = 1, with a step or none for rounding."""
        scale = float_up(Fraction(_CHANGE) + rounding)
        return cls(Noise(CUBE.name, scale, 0, n_values), Sensitivity(linf=_CHANGE), rounded)

    @property
    def claim(self) -> float:
        """The epsilon that the noise spends, as a release would state it."""
        spent = spent_by(self.noise, self.sensitivity)
        return 0.0 if spent is None else float(spent.epsilon)

    def worst_loss(self) -> Worst:
        """Return the largest log-ratio over neighbours at corners of the ball and outcomes."""
        n = self.noise.n_values
        by_size = self._log_probabilities()
        outcomes = np.array(list(product(range(-_REACH, _REACH + 1), repeat=n)))
        found = []
        for start, signs in product(_WEIGHTS, product((-1.0, 0.0, 1.0), repeat=n)):
            weights = np.full(n, start)
            neighbour = weights + _CHANGE * np.array(signs)
            ratios = by_size[self._sizes(outcomes, weights)]
            ratios = ratios - by_size[self._sizes(outcomes, neighbour)]
            worst = int(np.argmax(np.abs(ratios)))
            outcome = f"values {tuple(outcomes[worst].tolist())}"
            pair = tuple(weights.tolist()), tuple(neighbour.tolist())
            found.append(Worst(float(abs(ratios[worst])), *pair, outcome))
        return max(found, key=lambda worst: worst.loss)

    def _sizes(self, outcomes: Ints, weights: Floats) -> Ints:
        """Return the largest noise that takes weights to every outcome."""
        sizes: Ints = np.abs(outcomes - self.rounded(weights)).max(axis=1)
        return sizes

    def _log_probabilities(self) -> Floats:
        """Return the log-probability of any one noise vector, by its largest value, up to a sum."""
        sampler = CubeSampler(self.noise.n_values, Fraction(self.noise.scale))
        sizes = np.arange(_FARTHEST)
        logs = [float(sampler.log_ratio_bounds(int(g), sampler.mode, 40)[0]) for g in sizes]
        of_each = np.array(logs) - self.noise.n_values * np.log(2.0 * sizes + 1.0)
        return np.logaddexp.accumulate(of_each[::-1])[::-1]
