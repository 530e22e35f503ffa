"""The worst pair of neighbours for a private tree, by ascent on the exact distribution.

A worst case is a supremum, approached as the weights spread: an unlikely tree, whose edges compete
at every step with others that are far lighter. So the base weights are searched within a wide box,
and the neighbour among the extreme points of the ball that the sensitivity declares. The two take
turns: for a fixed change the energies climb by L-BFGS, for fixed energies the change jumps to the
point of the ball farthest along the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ptclust._types import Bools
from ptclust._types import Floats as Vector
from ptclust.mechanisms.exponential import sampler_energies
from ptclust.mechanisms.laws import TreeLaw
from ptclust.privacy import Sensitivity

# Takes the energies and those of the neighbour to a value and its derivatives by either.
Slopes = tuple[float, Vector, Vector]
Objective = Callable[[Vector, Vector], Slopes]
_Pair = tuple[Vector, Vector]  # energies, and the change of weights or a direction for it

# Orders of Renyi divergence that are looked at under zCDP.
ALPHAS = (1.01, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0, 200.0)
_SPREAD = 30.0  # energies lie within +- this many nats: ratios are within e^-60 of their limits
_ROUNDS = 12
_SAMPLES = 400
_PROGRESS = 1e-6  # in units of the claim
_LIMITS = {"maxiter": 100, "ftol": 1e-10}
WITHIN = 1.0 - 2.0**-40  # keeps neighbours within the ball when w + x is rounded to floats


class Worst(NamedTuple):
    """The largest loss that was found, what it is found by, and the pair of neighbours."""

    loss: float  # log-ratio of the probabilities of an outcome, or Renyi divergence over its order
    outcome: str  # the outcome, or the order of the divergence
    weights: Vector | None = None
    neighbour: Vector | None = None


def worst_loss(
    law: TreeLaw, sensitivity: Sensitivity, exponent: float, *, starts: int, seed: int
) -> Worst:
    """Return the largest log-ratio found between neighbours, over all trees; the claim is epsilon.

    >>> from ptclust.mechanisms.laws import GRAPHS
    >>> law = TreeLaw("Kruskal", GRAPHS["K3"], (None,))
    >>> worst = worst_loss(law, Sensitivity(linf=1.0), 0.25, starts=1, seed=0)
    >>> round(worst.loss, 6), worst.outcome  # two steps of 2 * 0.25
    (1.0, 'tree (0, 1)')
    """
    found = []
    unit = law.n_steps * exponent * sensitivity.spread
    for tree in law.representatives():

        def log_ratio(energies: Vector, moved: Vector, tree: int = tree) -> Slopes:
            here, slope = law.gradients(energies)
            there, slope_there = law.gradients(moved)
            return here[tree] - there[tree], slope[tree], -slope_there[tree]

        edges = np.isin(np.arange(len(law.graph.edges)), law.trees[tree])
        begin = _starts(edges, starts, np.random.default_rng([seed, tree]))
        pair = _ascend(log_ratio, begin, sensitivity, exponent, unit)
        weights, (here, there) = _as_sampled(law, pair, exponent)
        found.append(Worst(float(here[tree] - there[tree]), f"tree {law.trees[tree]}", *weights))
    return max(found, key=lambda worst: worst.loss)


def worst_divergence(
    law: TreeLaw, sensitivity: Sensitivity, exponent: float, *, starts: int, seed: int
) -> Worst:
    """Return the largest Renyi divergence found, divided by its order; the claim is rho.

    The best of many random pairs are climbed from, each at the order of ``ALPHAS`` that suits it.
    """
    random = np.random.default_rng(seed)
    unit = law.n_steps * (exponent * sensitivity.spread) ** 2 / 8.0
    n_edges = len(law.graph.edges)

    def at_best_order(pair: _Pair) -> tuple[float, float]:
        here = law.log_probabilities(pair[0])
        there = law.log_probabilities(pair[0] + exponent * pair[1])
        return max((_renyi(here, there, alpha)[0] / alpha, alpha) for alpha in ALPHAS)

    pairs = []
    for i in range(_SAMPLES):
        energies = random.normal(0.0, (0.5, 1.0, 2.0, 4.0, 8.0)[i % 5], n_edges)
        pairs.append((energies, farthest(sensitivity, random.normal(size=n_edges) ** 3)))
    ranked = sorted(((at_best_order(pair), i) for i, pair in enumerate(pairs)), reverse=True)
    found = []
    for (_, alpha), i in ranked[:starts]:
        pair = pairs[i]
        for _ in range(3):
            climbed = partial(_divergence, law, alpha)
            pair = _ascend(climbed, [pair], sensitivity, exponent, unit)
            alpha = at_best_order(pair)[1]
        weights, logs = _as_sampled(law, pair, exponent)
        found.append(Worst(_renyi(*logs, alpha)[0] / alpha, f"order {alpha:g}", *weights))
    return max(found, key=lambda worst: worst.loss)


def _as_sampled(law: TreeLaw, pair: _Pair, exponent: float) -> tuple[_Pair, _Pair]:
    """Return both weights, and both log-probabilities as the sampler has them."""
    weights = pair[0] / exponent, pair[0] / exponent + pair[1]
    here, there = (law.log_probabilities(sampler_energies(each, exponent)) for each in weights)
    return weights, (here, there)


def farthest(sensitivity: Sensitivity, direction: Vector) -> Vector:
    """Return the change that a privacy unit may make which reaches farthest in a direction.

    Under l1, linf or both it is a corner of the ball, under l2 the point of the sphere. Under l2
    with others it is the better of the two, shortened to fit.

    >>> farthest(Sensitivity(linf=2.0, l1=3.0), np.array([3.0, -1.0, 2.0])).tolist()
    [2.0, 0.0, 1.0]
    """
    options = []
    if sensitivity.l1 is not None or sensitivity.linf is not None:
        options.append(_corner(sensitivity, direction))
    if sensitivity.l2 is not None:
        options.append(direction * (sensitivity.l2 / max(math.sqrt(direction @ direction), 1e-300)))
    for option in options:
        size = np.abs(option)
        norms = {"l1": size.sum(), "l2": math.sqrt(option @ option), "linf": size.max()}
        option /= max(1.0, *(norms[name] / x for name, x in sensitivity.to_dict().items()))
    return max(options, key=lambda option: float(option @ direction))


def _corner(sensitivity: Sensitivity, direction: Vector) -> Vector:
    """Spend the l1 bound on the steepest edges first, on none more than the linf bound."""
    left = math.inf if sensitivity.l1 is None else sensitivity.l1
    most = math.inf if sensitivity.linf is None else sensitivity.linf
    change = np.zeros(len(direction))
    for edge in np.argsort(-np.abs(direction), kind="stable"):
        size = min(left, most)
        change[edge] = math.copysign(size, direction[edge])
        left -= size
        if left <= 0:
            break
    return change


def _starts(unlikely: Bools, count: int, random: np.random.Generator) -> Iterator[_Pair]:
    """Yield starts: some edges far heavier than all others, then far lighter; then anything."""
    apart = np.where(unlikely, 1.0, -1.0)
    yield 10.0 * apart, -apart
    yield -3.0 * apart, -apart
    for i in range(count):
        # Moving one edge, or all of them in any pattern: under l1 and linf these are the corners.
        alone = np.where(np.arange(len(unlikely)) == i // 2 % len(unlikely), 1.0, -1.0)
        direction = alone if i % 2 == 0 else random.normal(size=len(unlikely))
        yield random.normal(0.0, (0.5, 2.0, 8.0)[i % 3], len(unlikely)), direction


def _ascend(
    objective: Objective,
    starts: Iterable[_Pair],
    sensitivity: Sensitivity,
    exponent: float,
    unit: float,
) -> _Pair:
    """Return the energies and the change of weights with the highest objective, in ``unit``."""
    from scipy.optimize import minimize

    climbed = []
    for energies, direction in starts:
        value, change = -math.inf, np.zeros(len(energies))
        for _ in range(_ROUNDS):
            jumped = farthest(sensitivity, direction) * WITHIN

            def downhill(at: Vector, shift: Vector = exponent * jumped) -> tuple[float, Vector]:
                height, slope, slope_there = objective(at, at + shift)
                return -height / unit, -(slope + slope_there) / unit

            box = [(-_SPREAD, _SPREAD)] * len(energies)
            how = {"method": "L-BFGS-B", "bounds": box, "options": _LIMITS}
            result = minimize(downhill, energies, jac=True, **how)
            if not -result.fun > value + _PROGRESS:
                break
            value, energies, change = -float(result.fun), result.x, jumped
            direction = objective(energies, energies + exponent * change)[2]
        climbed.append((value, (energies, change)))
    return max(climbed, key=lambda each: each[0])[1]


def _divergence(law: TreeLaw, alpha: float, energies: Vector, moved: Vector) -> Slopes:
    """Return the Renyi divergence over its order, and its derivatives."""
    here, slope = law.gradients(energies)
    there, slope_there = law.gradients(moved)
    value, share = _renyi(here, there, alpha)
    return value / alpha, share @ slope / (alpha - 1.0), share @ slope_there / -alpha


def _renyi(logs: Vector, others: Vector, alpha: float) -> tuple[float, Vector]:
    """Return the Renyi divergence of two distributions, and how much every outcome contributes."""
    terms = alpha * logs + (1.0 - alpha) * others
    total = np.logaddexp.reduce(terms)
    return float(total) / (alpha - 1.0), np.exp(terms - total)
