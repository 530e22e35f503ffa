"""The worst loss of noise under combined bounds: the farthest change, found by climbing."""

from __future__ import annotations

import numpy as np

from ptclust._types import Floats
from ptclust.audit.search import Worst, farthest
from ptclust.privacy import Noise, Sensitivity

_ROUNDS = 20
_FAR = 1e6  # scales away from the weights, where the loss is the largest
_WITHIN = 1.0 - 2.0**-40


def worst_noise(noise: Noise, sensitivity: Sensitivity, seed: int) -> Worst:
    """Return the largest log-ratio of densities between neighbours, or rho.

    The loss is convex in the change, so what reaches farthest in the direction of a change is
    farther than it.

    >>> from ptclust.privacy import Sensitivity
    >>> unit = Sensitivity(l1=1.5, linf=1.0)
    >>> worst = worst_noise(Noise("gaussian", scale=1.0, granularity=-40, n_values=3), unit, 0)
    >>> sorted(worst.neighbour), round(worst.loss, 6)  # half of 1 + 1/4
    ([0.0, 0.499..., 0.999...], 0.625)
    """
    n = noise.n_values
    slight = 1e-3 * np.random.default_rng(seed).normal(size=(n, n))
    found = []
    for direction in (np.ones(n), *(np.eye(n) + slight)):
        change = direction
        for _ in range(_ROUNDS):
            change = farthest(sensitivity, change)
        found.append(change * _WITHIN)
    losses = [_loss(noise, change) for change in found]
    worst = int(np.argmax(losses))
    changed = int(np.count_nonzero(found[worst]))
    outcome = f"a change of {changed} value{'s' * (changed != 1)}"
    return Worst(losses[worst], (0.0,) * n, tuple(found[worst].tolist()), outcome)


def _loss(noise: Noise, change: Floats) -> float:
    """Return the largest log-ratio under a change, or Renyi divergence over its order."""
    nothing = np.zeros(len(change))
    if noise.law.unit == "rho":  # as the log-ratio where there is no noise
        return float(noise.log_ratio(nothing, nothing, change))
    outcome = -_FAR * noise.scale * np.sign(change)
    return float(noise.log_ratio(outcome, nothing, change))
