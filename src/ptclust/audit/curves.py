"""The worst loss of Gaussian noise, alone and after steps of bounded range, at a delta.

Alone, the probabilities of the discrete Gaussian are added up over the lattice. With steps before
it, an adversary plays against their calibration: in every step two outcomes whose log-ratios are as
far apart as a step allows, placed anew after every outcome. The best play is found backwards from
the noise (docs/proofs/gaussian-curve.md, "Steps before the noise"). That the bounds of the proofs
hold is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ptclust._types import Floats
from ptclust.audit.search import Worst
from ptclust.graph import Topology
from ptclust.mechanisms import MECHANISMS
from ptclust.mechanisms.exponential import STEP_SLACK
from ptclust.planning.plan import PlanRequest
from ptclust.planning.series import SeriesBudget, plan_series
from ptclust.privacy import Budget, Sensitivity
from ptclust.privacy.gaussian_curve import lattice_delta
from ptclust.privacy.noise.exact import lattice_sampler

EPSILON, DELTA = 1.0, 1e-6
LATTICE = 2**20  # steps of the lattice: the coarsest of which anything is claimed
_TAIL = (3, 9)  # in t: thresholds lie within, and what is beyond has a probability below 1e-18
_PLACES = 16  # of the two outcomes of a step, relative to no loss


@dataclass(frozen=True)
class LatticeCase:
    """Gaussian noise on one value, on the coarsest lattice of which anything is claimed."""

    change: int  # in steps of the lattice

    @classmethod
    def of(cls, more: float = 0.0) -> LatticeCase:
        """Return the case of the largest change that the bound confirms, or of ``more`` of it."""
        low, high = 0, LATTICE
        while high - low > 1:
            middle = (low + high) // 2
            arguments = Fraction(middle), Fraction(LATTICE), 1, Fraction(EPSILON)
            fits = middle == 0 or lattice_delta(*arguments) <= Fraction(DELTA)
            low, high = (middle, high) if fits else (low, middle)
        return cls(round(low * (1.0 + more)))

    def worst_loss(self) -> Worst:
        """Return the epsilon that two values the change apart keep at delta."""
        first, last = (end * LATTICE for end in _TAIL)
        sampler = lattice_sampler(2, Fraction(LATTICE))
        unit = float(sampler.phi(1))  # phi grows by squares
        sizes = np.arange(first, last, dtype=np.float64)
        masses = np.exp(-unit * sizes**2) / (LATTICE * math.sqrt(2.0 * math.pi))
        tails = np.cumsum(masses[::-1])[::-1]

        def delta(epsilon: float) -> float:
            # Of x and x - change the log-ratio grows with x, and is epsilon there:
            at = math.ceil(epsilon / (2.0 * unit * self.change) - self.change / 2.0)
            return float(tails[at - first] - math.exp(epsilon) * tails[at + self.change - first])

        loss = _epsilon_at(delta, EPSILON / 2.0, 1.5 * EPSILON)
        return Worst(loss, (0.0,), (float(self.change),), "the upper tail")


@dataclass(frozen=True)
class StepsCase:
    """Steps of bounded range before Gaussian noise, as a mechanism calibrates them."""

    n_steps: int
    loss_range: float
    mu: float  # change over sigma of the noise

    @classmethod
    def of(cls, mechanism: str, n_steps: int, more: float = 0.0) -> StepsCase:
        """Return what a tree of ``n_steps`` edges and its weights lose, or ``more`` than that."""
        topology = Topology(range(n_steps), range(1, n_steps + 1))
        sensitivity, budget = Sensitivity(linf=1.0), Budget.approximate(EPSILON, DELTA)
        made = MECHANISMS[mechanism].calibrate(topology, sensitivity, budget)
        assert made.tree is not None  # noqa: S101 - for mechanisms that draw one
        loss_range = made.tree.exponent * sensitivity.spread + STEP_SLACK
        mu = sensitivity.l2_of(n_steps) / made.weights.scale
        return cls(n_steps, loss_range * (1.0 + more), mu * (1.0 + more))

    def worst_loss(self) -> Worst:
        """Return the epsilon at delta that the best adversary brings about."""
        loss = _epsilon_at(self._delta, EPSILON / 2.0, 1.5 * EPSILON)
        return Worst(loss, (), (), "adaptive steps of two outcomes")

    def _delta(self, epsilon: float) -> float:
        """Return the delta of the best play, by what remains to be lost after every step."""
        far = self.n_steps * _PLACES
        losses: Floats = np.arange(-far, far + 1.0) * (self.loss_range / _PLACES)
        value = gaussian_delta(self.mu, epsilon - losses)
        for _ in range(self.n_steps):
            best = value.copy()  # a step that tells nothing
            for place in range(1, _PLACES):
                up = place * self.loss_range / _PLACES
                # With this probability the loss rises by ``up``, else it falls by the rest.
                rises = math.expm1(self.loss_range - up) / math.expm1(self.loss_range)
                rises *= math.exp(up)
                gains = np.concatenate([value[place:], np.full(place, value[-1])])
                rest = _PLACES - place
                falls = np.concatenate([np.full(rest, value[0]), value[:-rest]])
                np.maximum(best, rises * gains + (1.0 - rises) * falls, out=best)
            value = best
        return float(value[far])


@dataclass(frozen=True)
class SeriesCase:
    """Two releases with Gaussian noise, the second after the first, as a series calibrates them."""

    first: float  # change over sigma
    second: float

    @classmethod
    def of(cls, shares: tuple[int, int], more: float = 0.0) -> SeriesCase:
        """Return what both releases lose that share (epsilon, delta), or ``more`` than that."""
        topology, sensitivity = Topology(range(9), range(1, 10)), Sensitivity(l2=1.0)
        request = PlanRequest(
            epsilon=EPSILON, delta=DELTA, sensitivity=sensitivity, mechanism="gaussian"
        )
        made = plan_series(topology, request, SeriesBudget(EPSILON, DELTA, shares=shares))
        first, second = (1.0 / plan.chosen.weights.scale for plan in made.plans)
        return cls(first * (1.0 + more), second * (1.0 + more))

    def worst_loss(self) -> Worst:
        """Return the epsilon at delta of both together, by what the first leaves to the second."""
        losses = self.first * (self.first / 2.0 + np.linspace(-12.0, 12.0, 40_001))
        density = np.exp(-((losses / self.first - self.first / 2.0) ** 2) / 2.0)
        density /= density.sum()

        def delta(epsilon: float) -> float:
            return float(density @ gaussian_delta(self.second, epsilon - losses))

        loss = _epsilon_at(delta, EPSILON / 2.0, 1.5 * EPSILON)
        return Worst(loss, (), (), "both upper tails")


def gaussian_delta(mu: float, epsilon: Floats) -> Floats:
    """Return the delta of Gaussian noise under a change of mu deviations (Balle and Wang 2018)."""
    from scipy.special import log_ndtr

    near, far = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    delta: Floats = np.exp(log_ndtr(near)) - np.exp(epsilon + log_ndtr(far))
    return delta


def _epsilon_at(delta: Callable[[float], float], low: float, high: float) -> float:
    """Return the epsilon at which a falling curve is at DELTA."""
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if delta(middle) > DELTA else (low, middle)
    return low
