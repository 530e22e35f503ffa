"""Provenance: how weights were built from records, and the sensitivity that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal
from uuid import uuid4

from ptclust._traces import shown_half_built
from ptclust.errors import InputError
from ptclust.privacy import _checks as check
from ptclust.privacy.budget import Budget
from ptclust.privacy.sensitivity import Sensitivity

Neighbours = Literal["add-remove", "replace"]


@dataclass(frozen=True, kw_only=True)
class Spending(check.Record, called="a spending"):
    """What one look at the records spent, before any weight was released.

    A ledger is charged for it once, by its ``id``, whatever is made of the graph afterwards.
    """

    purpose: check.Text  # what it released: "max_pairs", "which pairs are joined"
    budget: Budget
    noise: check.Text  # its distribution
    scale: check.NotNegative
    id: check.RandomId = field(default_factory=lambda: str(uuid4()))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget.kind == "zcdp":
            raise InputError("a spending has a budget of epsilon, or of epsilon and delta")

    @property
    def words(self) -> str:
        """What it released, and at what price."""
        return f"{self.purpose}: {self.budget}, {self.noise} noise of scale {self.scale:.6g}"


@shown_half_built
@dataclass(frozen=True, kw_only=True)
class Provenance(check.Record, called="the provenance"):
    """How a graph was built from records, and what one unit can do to its weights; all public."""

    sensitivity: Sensitivity  # as it follows from how the weights were built
    unit: check.Text  # "one person, at most 5 pairs with at most 2 trips each"
    neighbours: Neighbours = "add-remove"  # tables with one unit more or less, or one replaced
    #: The builder, its bounds, where the topology came from.
    details: Annotated[Mapping[str, int | float | str], partial(check.numbers, words=True)] = field(
        default_factory=dict
    )
    spent: tuple[Spending, ...] = ()  # on what building released, such as private caps

    @property
    def words(self) -> str:
        """What is protected, and what was spent already."""
        before = "".join(f" Spent before, on {each.words}." for each in self.spent)
        return f"Built from records. Protected: {self.unit}.{before}"
