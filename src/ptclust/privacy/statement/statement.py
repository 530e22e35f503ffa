"""What a release guarantees, in numbers for an expert and in words for everybody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Literal
from uuid import uuid4

from ptclust._version import __version__
from ptclust.errors import InputError, UsageError
from ptclust.privacy.sensitivity import Sensitivity
from ptclust.privacy.statement import _checks as check
from ptclust.privacy.statement import _words as words

__all__ = ["SCHEMA_VERSION", "MechanismUse", "PrivacyStatement"]

SCHEMA_VERSION = 1

_ROUNDING = 1e-9
"""By how much the shares may exceed the total, relatively, because they were rounded to doubles."""


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
        _write(self, "share", check.not_negative("share", self.share))
        if self.scale is not None:
            _write(self, "scale", check.not_negative("scale", self.scale))
        _write(self, "parameters", check.numbers("parameters", self.parameters))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain objects, ready for JSON."""
        return _plain(self)

    @classmethod
    def from_dict(cls, data: object) -> MechanismUse:
        """Return the use that ``to_dict`` described; InputError if a field is missing, unknown or wrong."""
        return cls(**check.exactly("a mechanism", data, _field_names(cls)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)


@dataclass(frozen=True, kw_only=True)
class PrivacyStatement:
    """The guarantee of one release: parameters, mechanisms, assumptions and limits.

    Fields left out are filled with what is true of every release of this library; a statement that contradicts itself
    (mechanisms that spend more than is claimed, an approximate guarantee without rho) is refused.

    Parameters
    ----------
    variant : {"pure", "approximate"}
        Pure epsilon-differential privacy, or (epsilon, delta) by way of zero-concentrated differential privacy.
    epsilon : float
        The guarantee. With ``calibration="published"`` this is the true epsilon, not the one that was asked for.
    sensitivity : mapping
        The declared bounds ``l1``, ``l2``, ``linf`` on what one privacy unit does to the weights; at least one.
    mechanisms : sequence of MechanismUse
        Everything that looked at the private weights.
    randomness : {"secure", "reproducible"}
        Where the noise came from. A seed is never part of a statement.
    delta, rho : float, optional
        Of an approximate guarantee: its delta, and the zCDP parameter that was spent. Pure: 0 and None.
    calibration : {"sound", "published"}, default "sound"
        Whether the noise scales are those of the proofs, or those printed in the paper.
    requested_epsilon : float, optional
        The epsilon asked for under ``calibration="published"``.
    privacy_unit, neighbours : str, optional
        What a privacy unit is, and which weights are neighbours.
    protected, not_protected : sequence of str, optional
        What the guarantee covers, and what the release reveals as it is.
    composition_rule, composition : str, optional
        Name of the rule by which the shares add up, and the rule in words.
    post_processing : sequence of str, optional
        What was done with released values only.
    numerical_slack : float, default 0
        The part of epsilon that pays for rounding in the samplers; it is included in ``epsilon``.
    numerical_slack_words : str, optional
        What that slack covers.
    caveats : sequence of str, optional
        What a reader has to know besides.
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
    ...         name="Laplace mechanism", purpose="weights of the tree", share=1.0, share_of="epsilon",
    ...         noise="Laplace", scale=0.4995,
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
        self._check_origin()
        _write(self, "sensitivity", _as_sensitivity(self.sensitivity))
        _write(self, "mechanisms", _as_mechanisms(self.mechanisms))
        self._check_shares()
        for name in ("protected", "not_protected", "post_processing", "caveats"):
            _write(self, name, check.texts(name, getattr(self, name)))
        for name, default in words.defaults(self).items():
            check.text(name, getattr(self, name), empty=True)
            _write(self, name, getattr(self, name) or default)

    @property
    def private(self) -> bool:
        """Whether the release is private at all: noise that can be made again can be taken off again."""
        return self.randomness == "secure"

    @property
    def sentence(self) -> str:
        """The guarantee in plain language."""
        return words.sentence(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, and ``private`` and ``sentence``, as plain objects ready for JSON."""
        return _plain(self) | {"private": self.private, "sentence": self.sentence}

    @classmethod
    def from_dict(cls, data: object) -> PrivacyStatement:
        """Return the statement that ``to_dict`` described.

        The sentence is made anew from the fields, whatever ``data`` say.

        Raises
        ------
        InputError
            If a field is missing, unknown, of the wrong type or out of range; the error names it.
        """
        given = check.exactly("the statement", data, [*_field_names(cls), "private", "sentence"])
        check.text("sentence", given.pop("sentence"))
        private = given.pop("private")
        given["mechanisms"] = _read_mechanisms(given["mechanisms"])
        check.exactly("sensitivity", given["sensitivity"], ("l1", "l2", "linf"))
        statement = cls(**given)
        if private is not statement.private:
            raise InputError(
                f"private must be {statement.private} for {statement.randomness} randomness, not {private!r}"
            )
        return statement

    def to_text(self) -> str:
        """Return the statement as a page of at most 60 lines for a terminal."""
        return words.page(self)

    def to_registry_yaml(self) -> str:
        """Return a draft entry for the public Differential Privacy Deployments Registry.

        Field names and enumerations are those of ``schemas/deployments-schema.yaml`` in the repository
        ``opendp/deployments-registry-data`` at commit 057e5d8 (the schema behind arXiv 2509.13509, proposed to NIST).
        What only the curator knows reads ``TO BE FILLED BY THE CURATOR``.

        Raises
        ------
        InputError
            If the release is not private: there is no deployment to register.
        """
        from ptclust.privacy.statement._registry import registry_yaml

        return registry_yaml(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)

    def _check_guarantee(self) -> None:
        check.choice("variant", self.variant, ("pure", "approximate"))
        check.choice("calibration", self.calibration, ("sound", "published"))
        check.choice("randomness", self.randomness, ("secure", "reproducible"))
        _write(self, "epsilon", check.positive("epsilon", self.epsilon))
        _write(self, "delta", check.not_negative("delta", self.delta))
        if self.variant == "pure":
            if self.delta or self.rho is not None:
                raise InputError(
                    "a pure guarantee has delta = 0 and no rho; say variant='approximate'"
                )
        elif not 0 < self.delta < 1:
            raise InputError(f"delta must lie between 0 and 1, not at {self.delta:g}")
        else:
            _write(self, "rho", check.positive("rho", self.rho))
        if self.calibration == "published":
            requested = check.positive("requested_epsilon", self.requested_epsilon)
            _write(self, "requested_epsilon", requested)
        elif self.requested_epsilon is not None:
            raise InputError("requested_epsilon belongs to calibration='published' only")
        slack = check.not_negative("numerical_slack", self.numerical_slack)
        _write(self, "numerical_slack", slack)
        if slack > self.epsilon:
            raise InputError("numerical_slack is part of epsilon and cannot exceed it")

    def _check_origin(self) -> None:
        if type(self.schema_version) is not int or self.schema_version != SCHEMA_VERSION:
            raise InputError(
                f"schema_version must be {SCHEMA_VERSION}, the one this ptclust knows, not {self.schema_version!r}"
            )
        check.uuid4("id", self.id)
        check.utc_time("created", self.created)
        for name in ("library", "library_version"):
            check.text(name, getattr(self, name))

    def _check_shares(self) -> None:
        unit, total = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        for i, use in enumerate(self.mechanisms):
            if use.share_of != unit:
                raise InputError(
                    f"mechanisms[{i}] spends {use.share_of}, but a guarantee that is {self.variant} counts {unit}"
                )
        spent = sum(use.share for use in self.mechanisms)
        if spent > total * (1 + _ROUNDING):
            raise InputError(
                f"the mechanisms spend {unit} {spent:.10g} together, more than the {total:.10g} that is claimed"
            )


def _as_sensitivity(value: object) -> Mapping[str, float | None]:
    norms = ("l1", "l2", "linf")
    given = dict.fromkeys(norms) | dict(check.mapping("sensitivity", value))
    check.exactly("sensitivity", given, norms)
    try:
        declared = Sensitivity(**given).to_dict()
    except UsageError as error:
        raise InputError(f"sensitivity: {error}") from None
    return MappingProxyType({norm: declared.get(norm) for norm in norms})


def _read_mechanisms(value: object) -> tuple[MechanismUse, ...]:
    if not isinstance(value, list):
        raise InputError(f"mechanisms must be a list, not {type(value).__name__}")
    uses = []
    for i, described in enumerate(value):
        try:
            uses.append(MechanismUse.from_dict(described))
        except InputError as error:
            raise InputError(f"mechanisms[{i}]: {error}") from None
    return tuple(uses)


def _as_mechanisms(value: object) -> tuple[MechanismUse, ...]:
    uses = tuple(value) if isinstance(value, (list, tuple)) else (None,)
    if not all(isinstance(use, MechanismUse) for use in uses):
        raise InputError("mechanisms must be a list of MechanismUse")
    return uses


def _field_names(cls: type) -> list[str]:
    """Return the names of the fields of a dataclass."""
    return [entry.name for entry in fields(cls)]


def _plain(instance: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as plain objects."""
    return {name: _plain_value(getattr(instance, name)) for name in _field_names(type(instance))}


def _plain_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain_value(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value.to_dict() if isinstance(value, MechanismUse) else value


def _write(instance: object, name: str, value: object) -> None:
    """Write a field of a frozen dataclass while it is made."""
    object.__setattr__(instance, name, value)
