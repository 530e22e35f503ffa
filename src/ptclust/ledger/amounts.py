"""What a ledger adds up: amounts of one currency, exact, and how a release is paid in each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ptclust.errors import BudgetError, FileError, UsageError
from ptclust.privacy._numbers import rounded
from ptclust.privacy.budget import Budget, Kind, loss_dict, loss_numbers

_MOST_BITS = 13_000  # some 3,900 digits: Python reads integers of at most 4,300
_WRITTEN = re.compile(r"[0-9]{1,4000}(/[1-9][0-9]{0,4000})?")


@dataclass(frozen=True)
class Amount:
    """An amount of privacy loss that may be zero: what was spent, or what is left.

    >>> left = Amount.of(Budget.pure(1)) - Amount.of(Budget.pure("1/3"))
    >>> print(left)
    epsilon = 0.666666
    >>> left.amount
    Fraction(2, 3)
    """

    kind: Kind
    amount: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, budget: Budget) -> Amount:
        """Return a budget as an amount of its own currency."""
        return cls(budget.kind, budget.amount, budget._delta)

    @classmethod
    def read(cls, kind: Kind, amount: object, delta: object) -> Amount:
        """Return what `written` wrote."""
        return cls(kind, exactly_read(amount), exactly_read(delta))

    def written(self) -> tuple[str, str]:
        """Return both numbers exactly, as the ledger keeps them."""
        return exactly_written(self.amount), exactly_written(self.delta)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.kind, self.amount + other.amount, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.kind, self.amount - other.amount, self.delta - other.delta)

    def fits_in(self, other: Amount) -> bool:
        """Whether none of the numbers exceeds the other's."""
        return self.amount <= other.amount and self.delta <= other.delta

    def __str__(self) -> str:
        return self.shown(up=False)  # what is left: never more than there is

    def shown(self, *, up: bool) -> str:
        """Return the numbers in a few digits, rounded up for what was spent, down for the rest."""
        listed = ", ".join(
            f"{name} = {rounded(number, up=up)}" for name, number in self._numbers().items()
        )
        return listed + " (zCDP)" * (self.kind == "zcdp")

    def in_full(self, *, up: bool) -> str:
        """Return the numbers in a few digits, and exactly where that is something else."""
        numbers = self._numbers()
        if all(Fraction(rounded(number, up=up)) == number for number in numbers.values()):
            return self.shown(up=up)
        listed = ", ".join(f"{name} = {number}" for name, number in numbers.items())
        return f"{self.shown(up=up)}; exactly {listed}"

    def _numbers(self) -> dict[str, Fraction]:
        return loss_numbers(self.kind, self.amount, self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, each exactly, as text, and as a float for reading."""
        return loss_dict(self.kind, self._numbers())


@dataclass(frozen=True)
class Account:
    """The budget of a dataset: its total, what was spent of it, and what is left."""

    dataset: str
    total: Amount
    spent: Amount
    n_charges: int
    #: If not empty, releases are charged under these terms alone: those of a series.
    terms: str = field(default="", compare=False)

    @property
    def left(self) -> Amount:
        """What may still be spent."""
        return self.total - self.spent

    def after(self, amount: Amount) -> Account:
        """Return the account after one more charge, which may be more than is left."""
        return replace(self, spent=self.spent + amount, n_charges=self.n_charges + 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, each exactly, as text, and as a float for reading."""
        amounts = {"total": self.total, "spent": self.spent, "left": self.left}
        content = {name: amount.to_dict() for name, amount in amounts.items()}
        return {"dataset": self.dataset, **content, "n_charges": self.n_charges}


def price(currency: Kind, guarantee: Budget, zcdp: Budget | None = None) -> Amount:
    """Return what a release costs in the currency of a total.

    Of zCDP it is ``zcdp``, a second guarantee of the same release, or what the first one implies.
    Pure epsilon is (epsilon, 0), and nothing else implies pure epsilon. A rho implies an epsilon
    for every delta, and the ledger does not choose one.

    >>> price("zcdp", Budget.pure("1/2"))
    Amount(kind='zcdp', amount=Fraction(1, 8), delta=Fraction(0, 1))
    """
    if currency == "zcdp" and (rho := zcdp or guarantee.implied_zcdp) is not None:
        return Amount.of(rho)
    if currency == guarantee.kind:
        return Amount.of(guarantee)
    if (currency, guarantee.kind) == ("approximate", "pure"):
        return Amount("approximate", guarantee.epsilon)
    raise BudgetError(f"{_NO_PRICE[currency, guarantee.kind]} Nothing was charged.")


_NO_PRICE: dict[tuple[Kind, Kind], str] = {
    ("pure", "approximate"): "A release with delta > 0 has no pure guarantee, and the total of "
    "this dataset is a pure epsilon: ask for delta = 0, or charge a dataset with delta or rho.",
    ("pure", "zcdp"): "A zCDP release has no pure guarantee, and the total of this dataset is a "
    "pure epsilon: charge a dataset whose total is a rho.",
    ("approximate", "zcdp"): "What a zCDP release costs in epsilon depends on the delta it is "
    "given: charge Budget.approximate(spent.epsilon_at(delta), delta) for a delta of your choice.",
    ("zcdp", "approximate"): "An (epsilon, delta) guarantee alone implies no zCDP guarantee, and "
    "the total of this dataset is a rho: give the rho too (zcdp=), or charge pure epsilon.",
}


def exactly_written(number: Fraction) -> str:
    """Return a rational as text; UsageError if it is too long to keep."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise UsageError(
            "the exact sum of what was spent would have thousands of digits, for want of a common "
            "denominator; round the new charge up to a number such as 0.125 or 1/10"
        )
    return str(number)


def exactly_read(text: object) -> Fraction:
    """Return the rational that `exactly_written` wrote; FileError for any other text."""
    if isinstance(text, str) and _WRITTEN.fullmatch(text) and str(Fraction(text)) == text:
        return Fraction(text)
    raise FileError("the ledger holds a number that no ledger writes: it was changed or is damaged")
