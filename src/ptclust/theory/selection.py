"""How good the Exponential mechanism's choice is: a step selects r with probability proportional to exp(-c w(r)).

The *excess* of a step is w(r) less the least weight among the candidates. Proofs are in docs/proofs/bounds.md.
"""

from __future__ import annotations

import math

from ptclust.errors import UsageError

__all__ = [
    "excess_probability",
    "expected_excess",
    "paper_exponent",
    "paper_utility_threshold",
]


def excess_probability(exponent: float, n_candidates: int, excess: float) -> float:
    """Return the largest probability with which a step among ``n_candidates`` is off by ``excess`` or more.

    It is N exp(-c x) / (1 + N exp(-c x)) with N = n_candidates - 1, and is reached where all candidates but the best
    are off by exactly x.

    Examples
    --------
    >>> excess_probability(exponent=1.0, n_candidates=2, excess=0.0)
    1.0
    >>> round(excess_probability(exponent=10.0, n_candidates=101, excess=1.0), 4)
    0.0045
    """
    check_exponent(exponent)
    check_candidates(n_candidates)
    if excess <= 0:
        return 1.0
    if n_candidates == 1:
        return 0.0
    odds = math.log(n_candidates - 1) - exponent * excess
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else math.exp(odds)


def expected_excess(exponent: float, n_candidates: int) -> float:
    """Return a bound on the mean excess of a step: log(n_candidates) / c.

    Examples
    --------
    >>> round(expected_excess(exponent=10.0, n_candidates=100), 3)
    0.461
    """
    check_exponent(exponent)
    check_candidates(n_candidates)
    return math.log(n_candidates) / exponent


def paper_exponent(epsilon: float, utility_sensitivity: float, n_steps: int = 1) -> float:
    """Return the exponent c = epsilon / (2 Delta_u k) of k steps that share epsilon as the paper has it.

    Its utility -abs(w(r) - min w) has Delta_u = 2 mu; ``ptclust.privacy`` knows the exponent that a budget
    truly affords.

    Examples
    --------
    >>> paper_exponent(epsilon=1.0, utility_sensitivity=0.2, n_steps=10)
    0.25
    """
    for name, value in (("epsilon", epsilon), ("utility_sensitivity", utility_sensitivity)):
        if not 0 < value < math.inf:
            raise UsageError(f"{name} must be positive and finite, not {value!r}")
    if n_steps < 1:
        raise UsageError(f"at least 1 step is needed, not {n_steps}")
    return epsilon / (2.0 * utility_sensitivity * n_steps)


def paper_utility_threshold(
    epsilon: float, utility_sensitivity: float, n_candidates: int, t: float
) -> float:
    """Return how far below the best utility a choice falls with probability exp(-t) at most: a Theorem of section 2.

    It is 2 Delta_u (t + log R) / epsilon for R candidates. The theorem is correct as printed.

    Examples
    --------
    >>> round(paper_utility_threshold(1.0, 0.2, 100, t=3.0), 3)
    3.042
    """
    check_candidates(n_candidates)
    return (t + math.log(n_candidates)) / paper_exponent(epsilon, utility_sensitivity)


def check_exponent(exponent: float) -> None:
    """Raise UsageError unless an exponent is positive and finite."""
    if not 0 < exponent < math.inf:
        raise UsageError(f"an exponent must be positive and finite, not {exponent!r}")


def check_candidates(n_candidates: int) -> None:
    """Raise UsageError unless there is something to choose from."""
    if n_candidates < 1:
        raise UsageError(f"a choice needs at least 1 candidate, not {n_candidates}")
