"""One use of a mechanism, and what the dataclasses of a statement share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from ptclust.privacy import _statement_fields as check


@dataclass(frozen=True, kw_only=True)
class MechanismUse:
    """One mechanism that looked at the private weights, and what it spent.

    Parameters
    ----------
    name : str
        Of the mechanism, for instance ``"PAMST"`` or ``"Gaussian mechanism"``.
    purpose : str
        What it released.
    share : float
        How much of the budget it spent, in the unit ``share_of``.
    share_of : {"epsilon", "rho"}
        The unit of ``share``: epsilon under pure differential privacy, rho under zCDP.
    noise : str
        Distribution of its noise.
    scale : float, optional
        Scale of that noise: b of Laplace and Gumbel noise, sigma of Gaussian noise.
    parameters : mapping from str to number
        Further numbers, such as the number of steps or the granularity of the lattice.
    reference : str
        Where the mechanism and its guarantee are proved.

    Examples
    --------
    >>> use = MechanismUse(
    ...     name="Laplace mechanism", purpose="weights of the tree", share=0.5, share_of="epsilon",
    ...     noise="Laplace", scale=0.998, parameters={"n_weights": 999}, reference="Dwork et al. 2006",
    ... )
    >>> use.parameters["n_weights"]
    999
    """

    name: str
    purpose: str
    share: float
    share_of: Literal["epsilon", "rho"]
    noise: str
    scale: float | None
    parameters: Mapping[str, int | float] = field(default_factory=dict)
    reference: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "purpose", "noise"):
            check.text(name, getattr(self, name))
        check.text("reference", self.reference, empty=True)
        check.choice("share_of", self.share_of, ("epsilon", "rho"))
        write(self, "share", check.not_negative("share", self.share))
        if self.scale is not None:
            write(self, "scale", check.not_negative("scale", self.scale))
        write(self, "parameters", check.numbers("parameters", self.parameters))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain objects, ready for JSON."""
        return plain(self)

    @classmethod
    def from_dict(cls, data: object) -> MechanismUse:
        """Return the use that ``to_dict`` described; InputError if a field is missing, unknown or wrong."""
        return cls(**check.exactly("a mechanism", data, field_names(cls)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)


def field_names(cls: type) -> list[str]:
    """Return the names of the fields of a dataclass."""
    return [entry.name for entry in fields(cls)]


def plain(instance: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as plain objects."""
    return {name: _plain_value(getattr(instance, name)) for name in field_names(type(instance))}


def _plain_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain_value(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value.to_dict() if isinstance(value, MechanismUse) else value


def write(instance: object, name: str, value: object) -> None:
    """Write a field of a frozen dataclass while it is made."""
    object.__setattr__(instance, name, value)
