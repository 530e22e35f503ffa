"""Privacy budgets, in exact arithmetic: three thirds of a budget are the budget.

For every alpha > 1, rho-zCDP implies (epsilon, delta)-DP with

    epsilon = alpha rho + (log(1/delta) - log(alpha)) / (alpha - 1) + log(1 - 1/alpha)

(Canonne, Kamath and Steinke 2020, Corollary 13). The best alpha is sought in floats; what it gives
is computed with certified bounds, and rounded to the safe side: a bad alpha would cost tightness,
never soundness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

from ptclust._traces import shown_half_built
from ptclust.errors import UsageError
from ptclust.privacy._numbers import (
    Number,
    exact,
    exact_positive,
    float_down,
    float_up,
    log_bounds,
    shown,
    words,
)

Kind = Literal["pure", "approximate", "zcdp"]
Unit = Literal["epsilon", "rho"]

_DIGITS = 40
_LARGEST_ORDER = 2.0**100  # of alpha - 1; the smallest is its inverse
_DELTA = "The bound may fail with this probability: choose far less than 1 / (number of people)."
_REMEDY: dict[Unit, str] = {
    "epsilon": "Smaller means more private: 1 is a common choice, 0.1 is strong.",
    "rho": "Smaller means more private: 0.02 is about epsilon = 0.9 at delta = 1e-6.",
}


@shown_half_built
@dataclass(frozen=True, repr=False)
class Budget:
    """An amount of privacy loss, exactly: pure epsilon, (epsilon, delta), or rho of zCDP.

    Make one with :meth:`pure`, :meth:`approximate` or :meth:`zcdp`. A float counts at its exact
    binary value; write ``"0.1"``, ``"1/3"``, a Decimal or a Fraction for other numbers.

    Notes
    -----
    *Privacy.* A budget is public. Sums are sequential composition: mechanisms on the same weights
    spend the sum of what each spends. Conversions between the kinds round towards more privacy.

    Examples
    --------
    >>> tree, weights = Budget.pure(1).split(1, 2)
    >>> tree, weights
    (Budget.pure('1/3'), Budget.pure('2/3'))
    >>> tree + weights == Budget.pure(1)
    True
    >>> print(Budget.approximate(1.0, 1e-6).to_zcdp())
    rho = 0.024356 (zCDP)
    """

    kind: Kind
    amount: Fraction  # epsilon of a pure or approximate budget, rho of zCDP
    _delta: Fraction = Fraction(0)
    # Of what was spent as (epsilon, delta) and is known to be rho-zCDP as well.
    _zcdp: Fraction | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UsageError(
                f"The kind of a budget must be 'pure', 'approximate' or 'zcdp', not {self.kind!r}; "
                "use Budget.pure, Budget.approximate or Budget.zcdp."
            )
        amount = exact_positive(self.unit, self.amount, _REMEDY[self.unit])
        delta, zcdp = _checked_delta(self._delta), self._zcdp
        if (delta > 0) != (self.kind == "approximate"):
            raise UsageError(
                f"A budget of kind {self.kind!r} cannot have delta = {shown(self._delta)}; use "
                "Budget.approximate(epsilon, delta)."
            )
        if zcdp is not None:
            zcdp = exact_positive("rho", zcdp, _REMEDY["rho"])
        for name, number in (("amount", amount), ("_delta", delta), ("_zcdp", zcdp)):
            object.__setattr__(self, name, number)

    @classmethod
    def pure(cls, epsilon: Number) -> Budget:
        """Return a budget of epsilon-differential privacy."""
        return cls("pure", epsilon)  # type: ignore[arg-type]  # made exact on the way in

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number, zcdp: Number | None = None) -> Budget:
        """Return a budget of (epsilon, delta)-differential privacy; with delta = 0 it is pure.

        What is spent may be known to be rho-zCDP as well: ``zcdp``, for `implied_zcdp`.
        """
        if exact("delta", delta, _DELTA) == 0:
            return cls.pure(epsilon)
        return cls("approximate", epsilon, delta, zcdp)  # type: ignore[arg-type]

    @classmethod
    def zcdp(cls, rho: Number) -> Budget:
        """Return a budget of rho-zero-concentrated differential privacy (Bun and Steinke 2016)."""
        return cls("zcdp", rho)  # type: ignore[arg-type]

    @property
    def unit(self) -> Unit:
        """What its amount counts: epsilon, or rho of zCDP."""
        return "rho" if self.kind == "zcdp" else "epsilon"

    @property
    def epsilon(self) -> Fraction:
        """Epsilon of a pure or approximate budget."""
        if self.kind == "zcdp":
            raise UsageError(f"{self} has an epsilon only for a delta: use epsilon_at(delta).")
        return self.amount

    @property
    def delta(self) -> Fraction:
        """Delta of a pure (then 0) or approximate budget."""
        if self.kind == "zcdp":
            raise UsageError(f"{self} holds for every delta: choose one for epsilon_at(delta).")
        return self._delta

    @property
    def rho(self) -> Fraction | None:
        """Rho of a zCDP budget, None for the others."""
        return self.amount if self.kind == "zcdp" else None

    def split(self, *shares: Number) -> tuple[Budget, ...]:
        """Return one part for every share; the parts add up to exactly this budget.

        >>> Budget.zcdp(1).split(1, 1, 2)
        (Budget.zcdp(0.25), Budget.zcdp(0.25), Budget.zcdp(0.5))
        """
        if self.kind == "approximate":
            raise UsageError(
                f"An (epsilon, delta) budget ({self}) is not split: that would waste most of it. "
                "Convert it first, budget.to_zcdp().split(...), or split a pure budget."
            )
        if not shares:
            raise UsageError("split() needs at least one share, such as budget.split(1, 1).")
        remedy = "Shares are relative sizes, such as 1, 2."
        sizes = [exact_positive("A share", share, remedy) for share in shares]
        whole = sum(sizes)
        return tuple(Budget(self.kind, self.amount * size / whole) for size in sizes)

    def share(self, fraction: Number) -> tuple[Budget, Budget]:
        """Return the part of size ``fraction``, between 0 and 1, and the rest."""
        remedy = "It is the part of the budget spent first, such as 0.5; the rest remains."
        size = exact("The share", fraction, remedy)
        if not 0 < size < 1:
            raise UsageError(
                f"The share must lie between 0 and 1, but is {shown(fraction)}. {remedy}"
            )
        part, rest = self.split(size, 1 - size)
        return part, rest

    def __add__(self, other: Budget) -> Budget:
        if not isinstance(other, Budget):
            return NotImplemented
        if self.kind == other.kind:
            zcdp = None
            if self._zcdp is not None and other._zcdp is not None:
                zcdp = self._zcdp + other._zcdp
            return Budget(self.kind, self.amount + other.amount, self._delta + other._delta, zcdp)
        raise UsageError(
            f"Budgets of different kinds do not add: {self}, {other}. Convert them with to_zcdp()."
        )

    def fits_in(self, other: Budget) -> bool:
        """Whether all that spends this budget also spends no more than ``other``.

        >>> Budget.pure(0.5).fits_in(Budget.approximate(0.5, 1e-9))
        True
        >>> Budget.zcdp(0.03).fits_in(Budget.approximate(1, 1e-6))
        False
        """
        kinds = self.kind, other.kind
        if kinds == ("zcdp", "approximate"):
            return self.epsilon_at(other._delta) <= other.amount
        if kinds == ("pure", "zcdp"):
            return self.to_zcdp().fits_in(other)
        comparable = self.kind == other.kind or kinds == ("pure", "approximate")
        return comparable and self.amount <= other.amount and self._delta <= other._delta

    def to_zcdp(self) -> Budget:
        """Return the largest zCDP budget that fits in this one, or what a pure one implies.

        An (epsilon, delta) budget becomes the largest rho that the tight conversion takes to
        at most epsilon at delta: what may be spent. What was spent is `implied_zcdp`. Epsilon-DP
        implies epsilon^2/2-zCDP (Bun and Steinke 2016, Proposition 1.4).
        """
        if self.kind == "zcdp":
            return self
        if self.kind == "pure":
            return Budget("zcdp", self.amount**2 / 2)
        rho = _largest_rho(self.amount, float_down(self._delta))
        if rho == 0:
            raise UsageError(f"No zCDP budget fits in {self}. Choose a larger epsilon.")
        return Budget("zcdp", Fraction(rho))

    @property
    def implied_zcdp(self) -> Budget | None:
        """The zCDP that all that spends this budget keeps; None if that is not known.

        (epsilon, delta) alone implies none: the rho of `to_zcdp` implies it, and not the reverse.
        """
        if self.kind == "approximate":
            return None if self._zcdp is None else Budget("zcdp", self._zcdp)
        return self.to_zcdp()

    def epsilon_at(self, delta: Number) -> float:
        """Return the epsilon of this zCDP budget at ``delta``, tightly converted, rounded up.

        >>> round(Budget.zcdp(0.02).epsilon_at(1e-6), 3)
        0.9
        """
        if self.kind != "zcdp":
            raise UsageError(f"epsilon_at() is for zCDP; {self} has .epsilon and .delta.")
        at = exact_positive("delta", _checked_delta(delta), _DELTA)
        return _epsilon_of_zcdp(float_up(self.amount), float_down(at))

    def __repr__(self) -> str:
        delta = f", {words(self._delta)}" if self._delta else ""
        return f"Budget.{self.kind}({words(self.amount)}{delta})"

    def __str__(self) -> str:
        numbers = loss_numbers(self.kind, self.amount, self._delta).items()
        listed = ", ".join(f"{name} = {float(number):.6g}" for name, number in numbers)
        return f"{listed} (zCDP)" if self.kind == "zcdp" else listed

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the numbers, each exactly, as text, and as a float for reading."""
        return loss_dict(self.kind, loss_numbers(self.kind, self.amount, self._delta))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Budget:
        """Read what :meth:`to_dict` wrote; only the exact numbers count."""
        try:
            kind = content["kind"]
            amount = content["rho" if kind == "zcdp" else "epsilon"]
        except KeyError as missing:
            raise UsageError(f"A budget needs the key {missing}: use Budget.to_dict().") from None
        return cls(kind, amount, content.get("delta", Fraction(0)))


def _checked_delta(value: Any) -> Fraction:
    delta = exact("delta", value, _DELTA)
    if not 0 <= delta < 1:
        raise UsageError(f"delta must be in 0 <= delta < 1, but is {shown(value)}. {_DELTA}")
    return exact_positive("delta", value, _DELTA) if delta else delta


def loss_numbers(kind: Kind, amount: Fraction, delta: Fraction) -> dict[str, Fraction]:
    """Return the numbers of a privacy loss by their names."""
    if kind == "approximate":
        return {"epsilon": amount, "delta": delta}
    return {"rho" if kind == "zcdp" else "epsilon": amount}


def loss_dict(kind: Kind, numbers: Mapping[str, Fraction]) -> dict[str, Any]:
    """Return a privacy loss for JSON: each number exactly, as text, and as a float."""
    content: dict[str, Any] = {"kind": kind}
    for name, number in numbers.items():
        content |= {name: str(number), f"{name}_float": float(number)}
    return content


def _epsilon_of_zcdp(rho: float, delta: float) -> float:
    """Return the least epsilon such that rho-zCDP implies (epsilon, delta)-DP, rounded up."""
    # The derivative by alpha is rho - log(1 / (alpha delta)) / (alpha - 1)^2, which rises.
    log_delta = math.log(delta)
    order = _first_not(lambda order: _slope(order, log_delta) > rho)
    return float_up(max(Fraction(0), (order + 1) * Fraction(rho) + _rest(order, delta)))


@lru_cache(maxsize=1024)
def _largest_rho(epsilon: Fraction, delta: float) -> float:
    """Return the largest rho that affords no more than epsilon at delta, rounded down, or 0."""
    log_delta, most = math.log(delta), float(epsilon)

    def rises(order: Fraction) -> bool:
        x = float(order)
        rest = (-log_delta - math.log1p(x)) / x + math.log(x) - math.log1p(x)
        return _slope(order, log_delta) > (most - rest) / (x + 1.0)

    order = _first_not(rises)
    rho = max(0.0, float_down((epsilon - _rest(order, delta)) / (order + 1)))
    while rho and _epsilon_of_zcdp(rho, delta) > epsilon:  # which is rounded up
        rho = math.nextafter(rho, 0.0)
    return rho


def _slope(order: Fraction, log_delta: float) -> float:
    x = float(order)
    return (-log_delta - math.log1p(x)) / x**2


def _rest(order: Fraction, delta: float) -> Fraction:
    """Return an upper bound of epsilon - alpha rho, where alpha is 1 + order."""
    alpha = 1 + order
    by_delta = log_bounds(1 / (alpha * Fraction(delta)), _DIGITS)[1]
    return by_delta / order + log_bounds(order / alpha, _DIGITS)[1]


def _first_not(holds: Callable[[Fraction], bool]) -> Fraction:
    """Return about the least order where something that holds for small ones does not."""
    low, high = -math.log(_LARGEST_ORDER), math.log(_LARGEST_ORDER)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(Fraction(math.exp(middle))) else (low, middle)
    return Fraction(math.exp(high))
