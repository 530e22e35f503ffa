"""Provenance: how weights were built from records, and the sensitivity that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args
from uuid import uuid4

from ptclust._markup import quoted
from ptclust._traces import shown_half_built
from ptclust.errors import InputError, UsageError
from ptclust.privacy import _checks as check
from ptclust.privacy.budget import Budget
from ptclust.privacy.sensitivity import Sensitivity, check_sensitivity

Neighbours = Literal["add-remove", "replace"]


@dataclass(frozen=True, kw_only=True)
class Spending(check.Record, called="a spending"):
    """What one look at the records spent, before any weight was released.

    A ledger is charged for it once, by its ``id``, whatever is made of the graph afterwards.
    """

    purpose: str
    """What it released: "max_pairs", "which pairs are joined"."""
    budget: Budget
    noise: str
    """The distribution of its noise."""
    scale: float
    id: str = field(default_factory=lambda: str(uuid4()))

    def __post_init__(self) -> None:
        check.text("purpose", self.purpose)
        check.text("noise", self.noise)
        check.uuid4("id", self.id)
        check.convert(self, check.not_negative, "scale")
        if not isinstance(self.budget, Budget) or self.budget.kind == "zcdp":
            raise InputError("a spending has a budget of epsilon, or of epsilon and delta")

    @property
    def words(self) -> str:
        """What it released, and at what price."""
        return f"{self.purpose}: {self.budget}, {self.noise} noise of scale {self.scale:.6g}"

    @classmethod
    def from_dict(cls, data: object) -> Spending:
        """Read what ``to_dict`` wrote; InputError if a field is missing, unknown or wrong."""
        given = cls.given(data)
        budget = check.mapping("budget", given["budget"])
        try:
            given["budget"] = Budget.from_dict(budget)
        except UsageError as error:
            raise InputError(str(error)) from None
        return cls(**given)


@shown_half_built
@dataclass(frozen=True, kw_only=True)
class Provenance(check.Record, called="the provenance"):
    """How a graph was built from records, and what one unit can do to its weights.

    Parameters
    ----------
    sensitivity : Sensitivity
        By how much one unit can move the weights, as it follows from how they were built.
    unit : str
        What one unit is, in words: "one person, at most 5 pairs with at most 2 trips each".
    neighbours : {"add-remove", "replace"}
        Whether neighbouring tables differ by one unit more or less, or by one unit replaced.
    details : mapping
        How it was built, in public numbers and words: the builder, bounds, the topology.
    spent : sequence of Spending
        The cost of answers that building released, such as private caps.

    Notes
    -----
    *Privacy.* Public numbers only.
    """

    sensitivity: Sensitivity
    unit: str
    neighbours: Neighbours = "add-remove"
    details: Mapping[str, int | float | str] = field(default_factory=dict)
    spent: tuple[Spending, ...] = ()

    def __post_init__(self) -> None:
        check_sensitivity(self.sensitivity)
        check.text("unit", self.unit)
        check.choice("neighbours", self.neighbours, get_args(Neighbours))
        check.convert(self, _as_details, "details")
        object.__setattr__(self, "spent", tuple(self.spent))

    @property
    def words(self) -> str:
        """What is protected, and what was spent already."""
        before = "".join(f" Spent before, on {each.words}." for each in self.spent)
        return f"Built from records. Protected: {self.unit}.{before}"

    @classmethod
    def from_dict(cls, data: object) -> Provenance:
        """Read what ``to_dict`` wrote; InputError if a field is missing, unknown or wrong."""
        given = cls.given(data)
        norms = check.mapping("sensitivity", given["sensitivity"])
        spent = given["spent"]
        if not isinstance(spent, list):
            raise InputError(f"spent must be a list, not {type(spent).__name__}")
        try:
            given["sensitivity"] = Sensitivity.from_dict(norms)
        except UsageError as error:
            raise InputError(f"sensitivity: {error}") from None
        given["spent"] = [Spending.from_dict(each) for each in spent]
        return cls(**given)


def _as_details(field: str, details: object) -> Mapping[str, int | float | str]:
    """Return public numbers and words by their names, read-only."""
    given = dict(check.mapping(field, details))
    for name, value in given.items():
        where = f"{field}[{quoted(name)}]"
        if isinstance(value, str):
            check.text(where, value)
        else:
            check.number(where, value)
    return MappingProxyType(given)
