"""Looks at the records whose answer is released at once: private caps, and which pairs are joined.

Each is charged before it is made, and is part of what the graph says of itself from then on.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Bools, Floats
from ptclust.building._neighbours import sensitivity_of_sum
from ptclust.building.caps import CANDIDATES
from ptclust.errors import UsageError
from ptclust.ledger import Payment
from ptclust.privacy._numbers import exact_positive
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import laplace_noise
from ptclust.privacy.provenance import Neighbours, Spending

if TYPE_CHECKING:
    from fractions import Fraction

    from ptclust.ledger import Ledger
    from ptclust.privacy._numbers import Number
    from ptclust.privacy.sensitivity import Sensitivity

AUTO = "auto"

_CERTAIN = 3.0  # scales of the noise, above which a count is more than noise
_EMPTY = 1.0  # pairs that nobody is counted on and that pass the threshold, on average, at most

_EPSILON = "It is spent on this look alone, in addition to what a release spends: 0.1, for example."


class Looks:
    """All looks of one build, and who pays for them."""

    spent: list[Spending]

    def __init__(self, ledger: Ledger | str | os.PathLike[str] | None, dataset: str | None) -> None:
        self.spent, self._payment = [], Payment.by(ledger, dataset)

    @leaves_no_trace
    def noisy(
        self,
        count: Callable[[], Array],
        n_values: int,
        sensitivity: Sensitivity,
        epsilon: Number,
        purpose: str,
    ) -> Floats:
        """Charge a look, make it, and return what it counts with Laplace noise.

        Notes
        -----
        *Privacy.* epsilon-differentially private if one unit changes what is counted by no more
        than ``sensitivity``.
        """
        from ptclust.mechanisms.lattice import add_noise

        noise = laplace_noise(sensitivity, n_values, epsilon)
        look = Spending(
            purpose=purpose, budget=Budget.pure(epsilon), noise="Laplace", scale=noise.scale
        )
        words = {"statement_id": look.id, "description": look.words}
        self._payment.charge(look.budget, **words)
        noisy = add_noise(count(), noise)
        self.spent.append(look)
        self._payment.confirm(look.id)
        return noisy


def check_epsilon(name: str, epsilon: Any, needed: bool, why: str) -> Fraction | None:
    """Return the epsilon of a look; it must be given if, and only if, the look is requested."""
    if needed and epsilon is None:
        raise UsageError(f"{why} looks at the records, and has to be paid for: give {name}=")
    if epsilon is None:
        return None
    if not needed:
        raise UsageError(f"{name}= is for {why}, which was not requested; leave it out")
    return exact_positive(name, epsilon, _EPSILON)


@leaves_no_trace
def private_histogram(
    looks: Looks,
    purpose: str,
    histogram: Callable[[Sequence[int]], Array],
    *,
    epsilon: Fraction,
    neighbours: Neighbours,
) -> dict[int, float]:
    """Return about how many persons stay within each candidate cap, and within none before it.

    ``histogram`` counts them; the last also has those who stay within none.

    Notes
    -----
    *Privacy.* Every person is in one bin, so one more or less changes one count by 1. The counts
    get Laplace noise; what is made of them is post-processing.
    """
    one_bin = sensitivity_of_sum(linf=1, l1=1, squares=1, neighbours=neighbours)
    noisy = looks.noisy(lambda: histogram(CANDIDATES), len(CANDIDATES), one_bin, epsilon, purpose)
    # Few persons in a bin may be none: with many things each, they would look like much.
    certain = np.where(noisy > _CERTAIN * looks.spent[-1].scale, noisy, 0.0)
    return dict(zip(CANDIDATES, certain.tolist(), strict=True))


@leaves_no_trace
def private_pairs(
    looks: Looks, weights: Floats, sensitivity: Sensitivity, epsilon: Fraction
) -> Bools:
    """Return which pairs are joined: those whose weight, with Laplace noise, is above a threshold.

    Notes
    -----
    *Privacy.* All pairs of a public list get noise, the empty ones included: Laplace noise of scale
    b = l1 / epsilon on the whole vector of weights is epsilon-differentially private, without a
    delta, and what passes a public threshold is post-processing. The threshold b ln(m / 2) follows
    from the number m of pairs: noise on an empty pair exceeds it with probability
    exp(-ln(m / 2)) / 2 = 1 / m, so one of all empty pairs passes on average.
    """
    n_pairs = len(weights)
    noisy = looks.noisy(lambda: weights, n_pairs, sensitivity, epsilon, "which pairs are joined")
    scale = looks.spent[-1].scale
    return np.asarray(noisy > scale * max(0.0, math.log(max(n_pairs, 1) / (2 * _EMPTY))))
