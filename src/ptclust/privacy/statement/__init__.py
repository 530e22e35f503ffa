"""The privacy statement: what a release guarantees, in numbers for experts and in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal
from uuid import uuid4

from ptclust._markup import facts
from ptclust._traces import shown_half_built
from ptclust._version import __version__
from ptclust.errors import InputError, UsageError
from ptclust.privacy import _checks as check
from ptclust.privacy._numbers import float_up
from ptclust.privacy.budget import Budget
from ptclust.privacy.provenance import Provenance, Spending
from ptclust.privacy.sensitivity import Sensitivity
from ptclust.privacy.statement import _words as words

__all__ = ["ROUNDING", "SCHEMA_VERSION", "MechanismUse", "PrivacyStatement"]

SCHEMA_VERSION = 3

_TOTALS = ("total_epsilon", "total_delta")

#: By how much sums of shares may miss the total, relatively: they are doubles.
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class MechanismUse:
    """One mechanism that read the private weights, and what it spent.

    Examples
    --------
    >>> use = MechanismUse(
    ...     name="Laplace mechanism", purpose="weights of the tree", share=0.5, share_of="epsilon",
    ...     noise="Laplace", scale=0.998, parameters={"n_weights": 999},
    ... )
    >>> use.parameters["n_weights"]
    999
    """

    name: str
    purpose: str  # what it released
    share: float  # how much of the budget it spent
    share_of: Literal["epsilon", "rho"]  # epsilon under pure differential privacy, rho under zCDP
    noise: str  # its distribution
    scale: float | None  # b of Laplace and Gumbel noise, sigma of Gaussian noise
    parameters: Mapping[str, int | float] = field(default_factory=dict)  # such as number of steps
    reference: str = ""  # where the mechanism and its guarantee are proved

    def __post_init__(self) -> None:
        _convert(self, check.text, "name", "purpose", "noise")
        check.text("reference", self.reference, empty=True)
        check.choice("share_of", self.share_of, ("epsilon", "rho"))
        _convert(self, check.not_negative, "share", *["scale"] * (self.scale is not None))
        _convert(self, check.numbers, "parameters")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain objects, ready for JSON."""
        return {name: _plain(getattr(self, name)) for name in _field_names(type(self))}

    @classmethod
    def from_dict(cls, data: object) -> MechanismUse:
        """Read what ``to_dict`` wrote; InputError if a field is missing, unknown or wrong."""
        return cls(**check.exactly("a mechanism", data, _field_names(cls)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)


@shown_half_built
@dataclass(frozen=True, kw_only=True)
class PrivacyStatement:
    """The guarantee of one release: parameters, mechanisms, assumptions and limits.

    Fields left out are filled with what is true of every release of this library; a statement that
    contradicts itself (mechanisms that spend more than is claimed, an approximate guarantee without
    rho) is refused with an InputError that names the field.

    Parameters
    ----------
    variant, epsilon, delta, rho
        Pure epsilon-differential privacy, or (epsilon, delta) by way of rho-zCDP. Epsilon is the
        true one, also with ``calibration="published"``.
    sensitivity : mapping
        The declared bounds ``l1``, ``l2``, ``linf`` on what one privacy unit does to the weights.
    mechanisms : sequence of MechanismUse
        Every mechanism that read the private weights.
    randomness : {"secure", "reproducible"}
        Where the noise came from. A seed is never part of a statement.
    calibration, requested_epsilon
        The noise scales of the proofs, or of the paper for the epsilon that was requested.
    kind : {"distance", "similarity"}
        What the weights are: of distances a small one means close, of similarities a large.
    merge : {"min", "max", "sum", "mean"}, optional
        How rows between the same two nodes became one weight; the sensitivity is that of the
        merged weights.
    clip : (low, high), optional
        Public bounds that the weights were moved into.
    provenance : Provenance, optional
        Of weights that were built from records: how, and what that spent before this release. It
        is part of ``total_epsilon`` and ``total_delta``, and not of ``epsilon`` and ``delta``:
        several releases of one graph spend it once.
    privacy_unit, neighbours, protected, not_protected, composition_rule, composition, caveats
        What the guarantee is about, in words; the defaults follow from the other fields.
    post_processing : sequence of str, optional
        What was done with released values only.
    numerical_slack, numerical_slack_words
        The part of ``epsilon`` that pays for rounding in the samplers, and what it covers.
    schema_version, id, created, library, library_version
        Which statement this is, when and by what it was made. Given only when a statement is read.

    Notes
    -----
    *Privacy.* A statement is made of public numbers only.

    Examples
    --------
    >>> statement = PrivacyStatement(
    ...     variant="pure", epsilon=1.0, sensitivity={"linf": 5e-4}, randomness="secure",
    ...     mechanisms=[MechanismUse(
    ...         name="Laplace mechanism", purpose="weights of the tree", share=1.0,
    ...         share_of="epsilon", noise="Laplace", scale=0.4995,
    ...     )],
    ... )
    >>> statement.private
    True
    >>> PrivacyStatement.from_dict(statement.to_dict()) == statement
    True
    """

    variant: Literal["pure", "approximate"]
    epsilon: float
    sensitivity: Mapping[str, float | None]
    mechanisms: tuple[MechanismUse, ...]
    randomness: Literal["secure", "reproducible"]
    delta: float = 0.0
    rho: float | None = None
    calibration: Literal["sound", "published"] = "sound"
    requested_epsilon: float | None = None
    kind: Literal["distance", "similarity"] = "distance"
    merge: Literal["min", "max", "sum", "mean"] | None = None
    clip: tuple[float, float] | None = None
    provenance: Provenance | None = None
    privacy_unit: str = words.PRIVACY_UNIT
    neighbours: str = ""
    protected: tuple[str, ...] = words.PROTECTED
    not_protected: tuple[str, ...] = words.NOT_PROTECTED
    composition_rule: str = ""
    composition: str = ""
    post_processing: tuple[str, ...] = ()
    numerical_slack: float = 0.0
    numerical_slack_words: str = ""
    caveats: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION
    id: str = field(default_factory=lambda: str(uuid4()))
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    library: str = "ptclust"
    library_version: str = __version__

    def __post_init__(self) -> None:
        self._check_guarantee()
        if type(self.schema_version) is not int or self.schema_version != SCHEMA_VERSION:
            raise InputError(
                f"schema_version must be {SCHEMA_VERSION}, the one this ptclust knows, not "
                f"{self.schema_version!r}"
            )
        check.uuid4("id", self.id)
        check.utc_time("created", self.created)
        _convert(self, check.text, "library", "library_version")
        _convert(self, _as_sensitivity, "sensitivity")
        if self.provenance is not None and not isinstance(self.provenance, Provenance):
            raise InputError(f"provenance must be a Provenance, not {self.provenance!r}")
        _convert(self, _as_mechanisms, "mechanisms")
        self._check_shares()
        _convert(self, check.texts, "protected", "not_protected", "post_processing", "caveats")
        for name, default in words.defaults(self).items():
            written = check.text(name, getattr(self, name), empty=True)
            object.__setattr__(self, name, written or default)

    def _check_guarantee(self) -> None:
        check.choice("variant", self.variant, ("pure", "approximate"))
        check.choice("calibration", self.calibration, ("sound", "published"))
        check.choice("randomness", self.randomness, ("secure", "reproducible"))
        _convert(self, check.positive, "epsilon")
        _convert(self, check.not_negative, "delta", "numerical_slack")
        if self.variant == "pure":
            if self.delta or self.rho is not None:
                raise InputError(
                    "a pure guarantee has delta = 0 and no rho; say variant='approximate'"
                )
        elif not 0 < self.delta < 1:
            raise InputError(f"delta must lie between 0 and 1, not at {self.delta:g}")
        else:
            _convert(self, check.positive, "rho")
        if self.calibration == "published":
            _convert(self, check.positive, "requested_epsilon")
        elif self.requested_epsilon is not None:
            raise InputError("requested_epsilon belongs to calibration='published' only")
        check.choice("kind", self.kind, ("distance", "similarity"))
        if self.merge is not None:
            check.choice("merge", self.merge, ("min", "max", "sum", "mean"))
        if self.clip is not None:
            _convert(self, check.interval, "clip")
        if self.numerical_slack > self.epsilon:
            raise InputError("numerical_slack is part of epsilon and cannot exceed it")

    def _check_shares(self) -> None:
        unit, total = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        for i, use in enumerate(self.mechanisms):
            if use.share_of != unit:
                raise InputError(
                    f"mechanisms[{i}] spends {use.share_of}, but a guarantee that is "
                    f"{self.variant} counts {unit}"
                )
        spent = sum(use.share for use in self.mechanisms)
        if spent > total * (1 + ROUNDING):
            raise InputError(
                f"the mechanisms spend {unit} {spent:.10g} together, more than the {total:.10g} "
                "that is claimed"
            )

    @classmethod
    def of(
        cls, spent: Budget, bounds: Sensitivity, *, requested: Budget | None = None, **fields: Any
    ) -> PrivacyStatement:
        """Return the statement of a release that spends a budget, its numbers rounded up.

        What spends (epsilon, delta) is shared out as zCDP. ``requested`` is what was requested when
        the noise has the scales printed in the paper.
        """
        zcdp = None if spent.kind == "pure" else spent.implied_zcdp
        if zcdp is None and spent.kind != "pure":
            raise UsageError(
                f"a release that spends {spent} has to say the rho that it keeps, for composition "
                "with others: Budget.approximate(epsilon, delta, zcdp=rho)"
            )
        return cls(
            variant="pure" if zcdp is None else "approximate",
            epsilon=float_up(spent.epsilon),
            delta=float_up(spent.delta),
            rho=None if zcdp is None else float_up(zcdp.amount),
            sensitivity=bounds.to_dict(),
            calibration="sound" if requested is None else "published",
            requested_epsilon=None if requested is None else float(requested.epsilon),
            **fields,
        )

    @property
    def total_epsilon(self) -> float:
        """What this release and the building of its graph spend together, rounded up."""
        return float_up(Fraction(self.epsilon) + sum(each.budget.epsilon for each in self._before))

    @property
    def total_delta(self) -> float:
        """The delta of ``total_epsilon``, by basic composition, rounded up."""
        return float_up(Fraction(self.delta) + sum(each.budget.delta for each in self._before))

    @property
    def _before(self) -> tuple[Spending, ...]:
        return () if self.provenance is None else self.provenance.spent

    @property
    def private(self) -> bool:
        """Whether the release is private at all: reproducible noise can be subtracted."""
        return self.randomness == "secure"

    @property
    def sentence(self) -> str:
        """The guarantee in plain language."""
        return words.sentence(self)

    @property
    def taken_on_trust(self) -> tuple[str, ...]:
        """What cannot be checked from the release."""
        return words.TAKEN_ON_TRUST

    @property
    def by_this_version(self) -> bool:
        """Whether it was made by the ptclust that is running, and so in its words."""
        return (self.library, self.library_version) == ("ptclust", __version__)

    @property
    def altered_words(self) -> list[str]:
        """The fields whose words are neither those of this version nor the curator's to choose."""
        return words.altered(self) if self.by_this_version else []

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and what follows from them as plain objects ready for JSON."""
        content = {name: _plain(getattr(self, name)) for name in _field_names(type(self))}
        totals = {name: getattr(self, name) for name in _TOTALS}
        derived = {"private": self.private, "sentence": self.sentence}
        return content | totals | derived | {"taken_on_trust": list(self.taken_on_trust)}

    @classmethod
    def from_dict(cls, data: object) -> PrivacyStatement:
        """Read what ``to_dict`` wrote; InputError names a wrong field.

        Derived words are made anew. Those of this version must be what follows from the fields.
        """
        derived = (*_TOTALS, "private", "sentence", "taken_on_trust")
        given = check.exactly("the statement", data, [*_field_names(cls), *derived])
        said = {
            "sentence": check.text("sentence", given.pop("sentence")),
            "taken_on_trust": check.texts("taken_on_trust", given.pop("taken_on_trust")),
        }
        private = given.pop("private")
        totals = {name: given.pop(name) for name in _TOTALS}
        if given["provenance"] is not None:
            given["provenance"] = Provenance.from_dict(given["provenance"])
        given["mechanisms"] = _read_mechanisms(given["mechanisms"])
        check.exactly("sensitivity", given["sensitivity"], ("l1", "l2", "linf"))
        statement = cls(**given)
        if private is not statement.private:
            raise InputError(
                f"private must be {statement.private} for {statement.randomness} randomness, not "
                f"{private!r}"
            )
        for name, total in totals.items():
            if total != getattr(statement, name):
                raise InputError(f"{name} is not what follows from the other fields")
        for name, words_given in said.items():
            if statement.by_this_version and words_given != getattr(statement, name):
                raise InputError(f"{name} is not what follows from the other fields")
        return statement

    def to_text(self) -> str:
        """Return the statement as a page of at most 60 lines for a terminal."""
        return words.page(self)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        title = "Privacy statement" + ": this release is NOT private" * (not self.private)
        rows = [("In a sentence", (self.sentence,)), *words.entries(self).items()]
        return facts(title, rows)

    def to_registry_yaml(self) -> str:
        """Return a draft entry for the public Differential Privacy Deployments Registry.

        What only the curator knows reads ``TO BE FILLED BY THE CURATOR``. InputError if the
        release is not private: there is no deployment to register.
        """
        return words.registry_yaml(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)


def _as_sensitivity(field: str, value: object) -> Mapping[str, float | None]:
    norms = ("l1", "l2", "linf")
    given = dict.fromkeys(norms) | dict(check.mapping(field, value))
    check.exactly(field, given, norms)
    try:
        declared = Sensitivity(**given).to_dict()
    except UsageError as error:
        raise InputError(f"{field}: {error}") from None
    return MappingProxyType({norm: declared.get(norm) for norm in norms})


def _as_mechanisms(field: str, value: object) -> tuple[MechanismUse, ...]:
    uses = tuple(value) if isinstance(value, (list, tuple)) else (None,)
    if not all(isinstance(use, MechanismUse) for use in uses):
        raise InputError(f"{field} must be a list of MechanismUse")
    return uses


def _read_mechanisms(value: object) -> list[MechanismUse]:
    if not isinstance(value, list):
        raise InputError(f"mechanisms must be a list, not {type(value).__name__}")
    uses = []
    for i, described in enumerate(value):
        try:
            uses.append(MechanismUse.from_dict(described))
        except InputError as error:
            raise InputError(f"mechanisms[{i}]: {error}") from None
    return uses


def _field_names(cls: type) -> list[str]:
    return [entry.name for entry in fields(cls)]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value.to_dict() if isinstance(value, MechanismUse | Provenance) else value


def _convert(instance: object, checked: Callable[[str, Any], object], *names: str) -> None:
    """Replace fields of a frozen dataclass, while it is made, by what their check returns."""
    for name in names:
        object.__setattr__(instance, name, checked(name, getattr(instance, name)))
