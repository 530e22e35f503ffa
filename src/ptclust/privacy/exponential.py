"""The Exponential mechanism, step by step: which exponent a budget affords.

A step selects r among candidates with probability proportional to exp(-c w(r)). Between neighbours the exponents of two
candidates differ by at most c times ``Sensitivity.spread``, and so does the range of the privacy loss: the step is
beta-DP and beta^2/8-zCDP (bounded range; Cesar and Rogers 2021). A tree takes k adaptive steps, and as they choose k
different edges, together they are k c ``Sensitivity.mean_spread(k)``-DP, which may be less than k beta
(docs/proofs/private-trees.md, lemma of the mean).
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ptclust.errors import UsageError
from ptclust.privacy.budget import Budget

if TYPE_CHECKING:
    from ptclust.privacy.sensitivity import Sensitivity

__all__ = [
    "GRID",
    "LARGEST_EXPONENT",
    "STEP_SLACK",
    "TreeCalibration",
    "calibrate_tree",
    "published_tree",
]

#: The sampler rounds exponents, in units of log 2, to multiples of 2^-GRID.
GRID = 40

#: By how much the rounding of the sampler can widen the range of the privacy loss of one step, in nats.
#:
#: The exponents of two neighbours are each rounded by at most half a grid step of log 2, so a difference of them
#: moves by at most one step, and the range over all candidates by at most two; so does the distance of one from a mean
#: of others. The acceptance probability is off by less than 2^-51 relative, for each of two candidates under each of
#: two neighbours. All else is drawn without error.
STEP_SLACK = 2.0 * math.log(2.0) * 2.0**-GRID * (1.0 + 2.0**-20) + 4.0 * 2.0**-51

#: The sampler clamps exponents at this many nats: it keeps them in 62 bits.
LARGEST_EXPONENT = 2.0 ** (62 - GRID) * math.log(2.0)

_DOWN = 1.0 - 2.0**-48  # swallows the rounding of the few operations below
_LARGEST = 2.0**900  # beyond, products in the sampler overflow; a smaller exponent spends no more


@dataclass(frozen=True)
class TreeCalibration:
    """An exponent, and what a tree drawn with it spends."""

    exponent: float
    n_steps: int
    spent: Budget | None
    """None if there is nothing to draw."""
    slack: float
    """How much of the epsilon spent pays for the rounding of the sampler."""

    @property
    def noise(self) -> float:
        """Standard deviation of the Gumbel noise that the draw amounts to: how blurred the weights look to it."""
        return math.pi / math.sqrt(6.0) / self.exponent if self.exponent > 0 else 0.0

    @property
    def largest_weight(self) -> float:
        """Weights beyond this, positive or negative, look to the draw as if they were just this."""
        return LARGEST_EXPONENT / self.exponent if self.exponent > 0 else math.inf


def calibrate_tree(
    sensitivity: Sensitivity, n_steps: int, budget: Budget, largest_weight: float = 0.0
) -> TreeCalibration:
    """Return the largest exponent with which ``n_steps`` steps fit in a pure or zCDP budget.

    Where the sensitivity is tiny, weights up to the public bound ``largest_weight`` would reach the end of the
    sampler's range and become equal to each other; the exponent is then the one at which they just do not.

    >>> from ptclust.privacy.sensitivity import Sensitivity
    >>> tree = calibrate_tree(Sensitivity(linf=0.001), 99, Budget.pure(0.5))
    >>> round(tree.exponent, 4)  # epsilon / (2 mu k)
    2.5253
    """
    if n_steps == 0:
        return TreeCalibration(0.0, 0, None, 0.0)
    if budget.rho is not None:
        step_range = math.sqrt(8.0 * float(budget.rho) / n_steps) * _DOWN
        spread = sensitivity.spread
    else:
        step_range = float(budget.epsilon) / n_steps * _DOWN
        spread = sensitivity.mean_spread(n_steps)
    if not step_range > STEP_SLACK:
        raise UsageError(
            f"a budget of {budget} over {n_steps} steps leaves each less than the rounding of the sampler, "
            f"{STEP_SLACK:.1e}; raise the budget"
        )
    exponent = _usable((step_range - STEP_SLACK) / spread * _DOWN)
    if exponent * largest_weight > LARGEST_EXPONENT:
        exponent = LARGEST_EXPONENT / largest_weight * _DOWN
    return TreeCalibration(exponent, n_steps, budget, n_steps * STEP_SLACK)


def published_tree(sensitivity: Sensitivity, n_steps: int, epsilon: Fraction) -> TreeCalibration:
    """Return the paper's exponent, from Delta u = 2 mu, and what it truly spends.

    It is sound and wastes a factor of 2 under linf neighbours: (n - 1) steps of epsilon / (4 mu (n - 1)) spend
    epsilon / 2.
    """
    if n_steps == 0:
        return TreeCalibration(0.0, 0, None, 0.0)
    exponent = _usable(float(epsilon) / (4.0 * sensitivity.largest_change * n_steps) * _DOWN)
    spent = n_steps * (exponent * sensitivity.mean_spread(n_steps) + STEP_SLACK) / _DOWN
    return TreeCalibration(exponent, n_steps, Budget.pure(spent), n_steps * STEP_SLACK)


def _usable(exponent: float) -> float:
    """Return an exponent that the sampler can work with, no larger than this one."""
    if exponent < sys.float_info.min:  # its digits are lost, and so is the bound on what it spends
        raise UsageError(
            "the sensitivity is too large for arithmetic in floats; divide the weights and their sensitivity by one "
            "public constant"
        )
    return min(exponent, _LARGEST)
