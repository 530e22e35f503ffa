"""The worst loss of noise, exactly, in the settings in which its calibration is tight.

No bound of the proofs is used: outcomes are enumerated, the laws of samplers are added up over the
lattice, and adversaries play against calibrations (docs/audit.md, "Noise, exactly").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np

from ptclust._types import Floats, Ints
from ptclust.audit.search import WITHIN, Worst, farthest
from ptclust.graph import Topology
from ptclust.mechanisms import MECHANISMS
from ptclust.mechanisms.exponential import STEP_SLACK
from ptclust.mechanisms.lattice import added_on_lattice
from ptclust.planning.plan import PlanRequest
from ptclust.planning.series import SeriesBudget, plan_series
from ptclust.privacy import Budget, Noise, Sensitivity
from ptclust.privacy._numbers import float_up
from ptclust.privacy.gaussian_curve import lattice_delta
from ptclust.privacy.noise import CUBE
from ptclust.privacy.noise.exact import CubeSampler, lattice_sampler

Rounding = Callable[[Floats], Ints]

# Combined bounds: rounds of climbing, and scales away from the weights, where the loss is largest.
_ROUNDS, _FAR = 20, 1e6

# The cube, on a lattice of step 1. The change is the least fraction above three steps: neighbours
# round to four steps apart.
_CHANGE = 3.0 + 2.0**-20
CUBE_CHANGE = Sensitivity(linf=_CHANGE)
_WEIGHTS = (0.5 - 2.0**-21, 2.0**-21)  # just below a tie, and just above zero: it reaches farthest
_REACH = 24  # steps of the lattice around the weights; the loss is constant beyond
_FARTHEST = 800  # steps: a half-width beyond has a probability below e^-100

# Gaussian noise that was calibrated by a curve.
EPSILON, DELTA = 1.0, 1e-6
LATTICE = 2**20  # steps of the lattice: the coarsest of which anything is claimed
_TAIL = (3, 9)  # deviations: thresholds lie within, and beyond is a probability below 1e-18
_PLACES = 16  # of the two outcomes of a step, relative to no loss


def worst_corner(noise: Noise, sensitivity: Sensitivity, seed: int) -> Worst:
    """Return the largest log-ratio of densities between neighbours, or rho, of combined bounds.

    The loss is convex in the change, so what reaches farthest in the direction of a change is
    farther than it.

    >>> unit = Sensitivity(l1=1.5, linf=1.0)
    >>> worst = worst_corner(Noise("gaussian", scale=1.0, granularity=-40, n_values=3), unit, 0)
    >>> round(worst.loss, 6)  # half of 1 + 1/4
    0.625
    """
    n = noise.n_values
    nothing, slight = np.zeros(n), 1e-3 * np.random.default_rng(seed).normal(size=(n, n))
    found = []
    for direction in (np.ones(n), *(np.eye(n) + slight)):
        change = direction
        for _ in range(_ROUNDS):
            change = farthest(sensitivity, change)
        change = change * WITHIN
        # rho is the log-ratio where there is no noise
        outcome = nothing if noise.law.unit == "rho" else -_FAR * noise.scale * np.sign(change)
        loss = float(noise.log_ratio(outcome, nothing, change))
        changed = int(np.count_nonzero(change))
        found.append(Worst(loss, f"a change of {changed} value{'s' * (changed != 1)}"))
    return max(found, key=lambda worst: worst.loss)


def cube_noise_of(n_values: int, *, rounding: int = 1) -> Noise:
    """Return cube noise for ``CUBE_CHANGE`` at epsilon = 1, with a step or none for rounding."""
    scale = float_up(Fraction(_CHANGE) + rounding)
    return Noise(CUBE.name, scale, 0, n_values)


def rounded_to_lattice(weights: Floats) -> Ints:
    """Return the steps of the lattice of step 1 to which a release rounds weights."""
    return added_on_lattice(weights, np.zeros(len(weights), np.int64), 0, {}).astype(np.int64)


def worst_cube(noise: Noise, rounded: Rounding = rounded_to_lattice) -> Worst:
    """Return the largest log-ratio of cube noise over corners of the ball and outcomes.

    The sampler draws a half-width g and then uniform values from -g to g. Its own weights of g are
    added up to the probability of every outcome, and its own rounding takes neighbours to the
    lattice; that their ratio is what the proof says (docs/proofs/cube.md) is not used.
    """
    n = noise.n_values
    sampler = CubeSampler(n, Fraction(noise.scale))
    sizes = np.arange(_FARTHEST)
    logs = [float(sampler.log_ratio_bounds(int(g), sampler.mode, 40)[0]) for g in sizes]
    of_each = np.array(logs) - n * np.log(2.0 * sizes + 1.0)
    log_probability = np.logaddexp.accumulate(of_each[::-1])[::-1]  # by the largest noise
    outcomes = np.array(list(product(range(-_REACH, _REACH + 1), repeat=n)))
    found = []
    for start, signs in product(_WEIGHTS, product((-1.0, 0.0, 1.0), repeat=n)):
        weights = np.full(n, start)
        here, there = (
            log_probability[np.abs(outcomes - rounded(each)).max(axis=1)]
            for each in (weights, weights + _CHANGE * np.array(signs))
        )
        losses = np.abs(here - there)
        worst = int(losses.argmax())
        found.append(Worst(float(losses[worst]), f"values {tuple(outcomes[worst].tolist())}"))
    return max(found, key=lambda worst: worst.loss)


def worst_gaussian(more: float = 0.0) -> Worst:
    """Return the epsilon at DELTA that Gaussian noise on one value keeps, on the coarsest lattice.

    Its change is the largest that the bound confirms, or ``more`` of it.
    """
    low, high = 0, LATTICE
    while high - low > 1:
        middle = (low + high) // 2
        fits = lattice_delta(Fraction(middle), Fraction(LATTICE), 1, Fraction(EPSILON))
        low, high = (middle, high) if fits <= Fraction(DELTA) else (low, middle)
    change = round(low * (1.0 + more))
    first, last = (end * LATTICE for end in _TAIL)
    unit = float(lattice_sampler(2, Fraction(LATTICE)).phi(1))  # phi grows by squares
    sizes = np.arange(first, last, dtype=np.float64)
    masses = np.exp(-unit * sizes**2) / (LATTICE * math.sqrt(2.0 * math.pi))
    tails = np.cumsum(masses[::-1])[::-1]

    def delta(epsilon: float) -> float:
        # Of x and x - change the log-ratio grows with x, and is epsilon there:
        at = math.ceil(epsilon / (2.0 * unit * change) - change / 2.0)
        return float(tails[at - first] - math.exp(epsilon) * tails[at + change - first])

    return Worst(_epsilon_at_delta(delta), "the upper tail")


def worst_after_steps(mechanism: str, n_steps: int, more: float = 0.0) -> Worst:
    """Return the epsilon at DELTA of a tree of ``n_steps`` edges and the noise on its weights.

    An adversary plays against their calibration, or ``more`` than it affords: in every step two
    outcomes whose log-ratios are as far apart as a step allows, placed anew after every outcome.
    The best play is found backwards from the noise (docs/proofs/gaussian-curve.md, "Steps before
    the noise").
    """
    topology = Topology(range(n_steps), range(1, n_steps + 1))
    sensitivity, budget = Sensitivity(linf=1.0), Budget.approximate(EPSILON, DELTA)
    made = MECHANISMS[mechanism].calibrate(topology, sensitivity, budget)
    assert made.tree is not None  # noqa: S101 - for mechanisms that draw one
    loss_range = (made.tree.exponent * sensitivity.spread + STEP_SLACK) * (1.0 + more)
    mu = sensitivity.l2_of(n_steps) / made.weights.scale * (1.0 + more)
    far = n_steps * _PLACES
    losses: Floats = np.arange(-far, far + 1.0) * (loss_range / _PLACES)

    def delta(epsilon: float) -> float:
        value = gaussian_delta(mu, epsilon - losses)  # by what was lost before the noise
        for _ in range(n_steps):
            best = value.copy()  # a step that tells nothing
            for place in range(1, _PLACES):
                up = place * loss_range / _PLACES
                # With this probability the loss rises by ``up``, else it falls by the rest.
                rises = math.expm1(loss_range - up) / math.expm1(loss_range) * math.exp(up)
                gains = np.concatenate([value[place:], np.full(place, value[-1])])
                rest = _PLACES - place
                falls = np.concatenate([np.full(rest, value[0]), value[:-rest]])
                np.maximum(best, rises * gains + (1.0 - rises) * falls, out=best)
            value = best
        return float(value[far])

    return Worst(_epsilon_at_delta(delta), "adaptive steps of two outcomes")


def worst_series(shares: tuple[int, int], more: float = 0.0) -> Worst:
    """Return the epsilon at DELTA of two Gaussian releases, by what the first leaves to the second.

    They share (epsilon, delta) as a series calibrates them, or lose ``more`` than that.
    """
    request = PlanRequest(
        epsilon=EPSILON, delta=DELTA, sensitivity=Sensitivity(l2=1.0), mechanism="gaussian"
    )
    total = SeriesBudget(EPSILON, DELTA, shares=shares)
    made = plan_series(Topology(range(9), range(1, 10)), request, total)
    first, second = ((1.0 + more) / plan.chosen.weights.scale for plan in made.plans)
    losses = first * (first / 2.0 + np.linspace(-12.0, 12.0, 40_001))
    density = np.exp(-((losses / first - first / 2.0) ** 2) / 2.0)
    density /= density.sum()

    def delta(epsilon: float) -> float:
        return float(density @ gaussian_delta(second, epsilon - losses))

    return Worst(_epsilon_at_delta(delta), "both upper tails")


def gaussian_delta(mu: float, epsilon: Floats) -> Floats:
    """Return the delta of Gaussian noise under a change of mu deviations (Balle and Wang 2018)."""
    from scipy.special import log_ndtr

    near, far = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    delta: Floats = np.exp(log_ndtr(near)) - np.exp(epsilon + log_ndtr(far))
    return delta


def _epsilon_at_delta(delta: Callable[[float], float]) -> float:
    """Return the epsilon, rounded down, at which a falling curve is at DELTA."""
    low, high = EPSILON / 2.0, 1.5 * EPSILON
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if delta(middle) > DELTA else (low, middle)
    return low
