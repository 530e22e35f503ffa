"""The privacy statement: what a release guarantees, in numbers for experts and in words.

The words are in ``templates/statement.txt``: the fields that follow from others, the guarantee
in one sentence, the entries of a page, an entry for the public registry of deployments.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal
from uuid import uuid4

from ptclust._markup import facts, macros
from ptclust._traces import shown_half_built
from ptclust._version import __version__
from ptclust.errors import InputError, UsageError
from ptclust.privacy import _checks as check
from ptclust.privacy._numbers import at_most, float_up
from ptclust.privacy.budget import Budget
from ptclust.privacy.provenance import Provenance, Spending
from ptclust.privacy.sensitivity import NORMS, Sensitivity

SCHEMA_VERSION = 3

#: By how much sums of shares may miss the total, relatively: they are doubles.
ROUNDING = 1e-12

PRIVACY_UNIT = (
    "A privacy unit is whatever moves the edge weights by no more than the declared bounds; the "
    "curator has not said what that is (a person, a household, one event)."
)
PROTECTED = ("the edge weights",)
NOT_PROTECTED = (
    "the topology: which nodes and edges there are, how many of them, and their connected "
    "components",
    "the names of the nodes",
    "the parameters given to ptclust: epsilon, delta, sensitivity and all other options, also if "
    "they were chosen by looking at the weights",
    "that there was a release, when, and how long it took, for whoever could watch",
    "what holds whether or not any one unit is in the data, such as the clusters themselves",
)
TAKEN_ON_TRUST = (
    "that one privacy unit moves the weights by no more than the declared sensitivity",
    "that the topology is the whole one and may be known, like the names",
    "kind, merge and clip of the weights, and that no option was chosen by looking at them",
    "that noise, and the tree by the exponent stated, were drawn as stated, in secret",
    "the labels, which anybody may have written, and what else was published of the same people",
)

#: What follows from the other fields, if the maker of a statement leaves it empty.
_WRITTEN = ("neighbours", "composition_rule", "composition", "numerical_slack_words")
_DERIVED = ("total_epsilon", "total_delta", "private", "sentence", "taken_on_trust")
_MAX_LINES, _WIDTH, _LABEL = 60, 88, 16  # of the page


@dataclass(frozen=True, kw_only=True)
class MechanismUse(check.Record, called="a mechanism"):
    """One mechanism that read the private weights, and what it spent."""

    name: check.Text
    purpose: check.Text  # what it released
    share: check.NotNegative  # how much of the budget it spent
    share_of: Literal["epsilon", "rho"]  # epsilon under pure differential privacy, rho under zCDP
    noise: check.Text  # its distribution
    scale: check.NotNegative | None  # b of Laplace and Gumbel noise, sigma of Gaussian noise
    #: Such as the number of steps.
    parameters: Annotated[Mapping[str, int | float], check.numbers] = field(default_factory=dict)
    reference: check.AnyText = ""  # where the mechanism and its guarantee are proved


def _norms(field: str, value: object) -> Mapping[str, float | None]:
    declared = check.as_type(field, value, Sensitivity).to_dict()
    return MappingProxyType({norm: declared.get(norm) for norm in NORMS})


def _known_schema(field: str, value: object) -> int:
    if type(value) is not int or value != SCHEMA_VERSION:
        raise InputError(
            f"{field} must be {SCHEMA_VERSION}, the one this ptclust knows, not {value!r}"
        )
    return value


@shown_half_built
@dataclass(frozen=True, kw_only=True)
class PrivacyStatement(check.Record, called="the statement"):
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
    epsilon: check.Positive
    sensitivity: Annotated[Mapping[str, float | None], _norms]
    mechanisms: tuple[MechanismUse, ...]
    randomness: Literal["secure", "reproducible"]
    delta: check.NotNegative = 0.0
    rho: check.Positive | None = None
    calibration: Literal["sound", "published"] = "sound"
    requested_epsilon: check.Positive | None = None
    kind: Literal["distance", "similarity"] = "distance"
    merge: Literal["min", "max", "sum", "mean"] | None = None
    clip: Annotated[tuple[float, float], check.interval] | None = None
    provenance: Provenance | None = None
    privacy_unit: check.AnyText = PRIVACY_UNIT
    neighbours: check.AnyText = ""
    protected: check.Texts = PROTECTED
    not_protected: check.Texts = NOT_PROTECTED
    composition_rule: check.AnyText = ""
    composition: check.AnyText = ""
    post_processing: check.Texts = ()
    numerical_slack: check.NotNegative = 0.0
    numerical_slack_words: check.AnyText = ""
    caveats: check.Texts = ()
    schema_version: Annotated[int, _known_schema] = SCHEMA_VERSION
    id: check.RandomId = field(default_factory=lambda: str(uuid4()))
    created: Annotated[str, check.utc_time] = field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds")
    )
    library: check.Text = "ptclust"
    library_version: check.Text = __version__
    taken_on_trust: ClassVar[tuple[str, ...]] = TAKEN_ON_TRUST

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant == "pure":
            if self.delta or self.rho is not None:
                raise InputError(
                    "a pure guarantee has delta = 0 and no rho; say variant='approximate'"
                )
        elif not 0 < self.delta < 1:
            raise InputError(f"delta must lie between 0 and 1, not at {self.delta:g}")
        else:
            check.number("rho", self.rho)
        if self.calibration == "published":
            check.number("requested_epsilon", self.requested_epsilon)
        elif self.requested_epsilon is not None:
            raise InputError("requested_epsilon belongs to calibration='published' only")
        if self.numerical_slack > self.epsilon:
            raise InputError("numerical_slack is part of epsilon and cannot exceed it")
        self._check_shares()
        for name, usual in {"privacy_unit": PRIVACY_UNIT, **self._usual_words}.items():
            object.__setattr__(self, name, getattr(self, name) or usual)

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
    def spent_before(self) -> tuple[Spending, ...]:
        """What was spent when the graph was built."""
        return () if self.provenance is None else self.provenance.spent

    @property
    def total_epsilon(self) -> float:
        """What this release and the building of its graph spend together, rounded up."""
        before = sum(each.budget.epsilon for each in self.spent_before)
        return float_up(Fraction(self.epsilon) + before)

    @property
    def total_delta(self) -> float:
        """The delta of ``total_epsilon``, by basic composition, rounded up."""
        before = sum(each.budget.delta for each in self.spent_before)
        return float_up(Fraction(self.delta) + before)

    @property
    def private(self) -> bool:
        """Whether the release is private at all: reproducible noise can be subtracted."""
        return self.randomness == "secure"

    @property
    def sentence(self) -> str:
        """The guarantee in plain language."""
        return sentence(self)

    @property
    def by_this_version(self) -> bool:
        """Whether it was made by the ptclust that is running, and so in its words."""
        return (self.library, self.library_version) == ("ptclust", __version__)

    @property
    def _usual_words(self) -> dict[str, str]:
        return {name: _one_line(getattr(_words(), name)(self)) for name in _WRITTEN}

    @property
    def altered_words(self) -> list[str]:
        """The text fields, but for the curator's own, that are not those of this version."""
        if not self.by_this_version:
            return []
        usual = {**self._usual_words, "protected": PROTECTED, "not_protected": NOT_PROTECTED}
        return [name for name, said in usual.items() if getattr(self, name) != said]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and what follows from them as plain objects ready for JSON."""
        return super().to_dict() | {name: check.plain(getattr(self, name)) for name in _DERIVED}

    @classmethod
    def from_dict(cls, data: object) -> PrivacyStatement:
        """Read what ``to_dict`` wrote; InputError names a wrong field.

        Derived words are made anew. Those of this version must be what follows from the fields.
        """
        given = cls.given(data, *_DERIVED)
        derived = {name: given.pop(name) for name in _DERIVED}
        check.text("sentence", derived["sentence"])
        check.texts("taken_on_trust", derived["taken_on_trust"])
        check.exactly("sensitivity", given["sensitivity"], NORMS)
        statement = cls(**given)
        if derived["private"] is not statement.private:
            raise InputError(
                f"private must be {statement.private} for {statement.randomness} randomness, not "
                f"{derived['private']!r}"
            )
        for name, stated in derived.items():
            is_remade = name in ("sentence", "taken_on_trust") and not statement.by_this_version
            if not is_remade and stated != check.plain(getattr(statement, name)):
                raise InputError(f"{name} is not what follows from the other fields")
        return statement

    def to_text(self) -> str:
        """Return the statement as a page of at most 60 lines for a terminal."""
        title = "PRIVACY STATEMENT" + ": THIS RELEASE IS NOT PRIVATE" * (not self.private)
        lines = [title, *textwrap.wrap(self.sentence, _WIDTH), ""]
        for label, items in entries(self).items():
            dash = "- " if len(items) > 1 else ""
            start, indent = f"{label}:".ljust(_LABEL), " " * (_LABEL + len(dash))
            for item in items:
                lines += textwrap.wrap(start + dash + item, _WIDTH, subsequent_indent=indent)
                start = " " * _LABEL
        if len(lines) > _MAX_LINES:
            left = len(lines) - _MAX_LINES + 1
            lines = [*lines[: _MAX_LINES - 1], f"({left} more lines; to_dict() has everything)"]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        title = "Privacy statement" + ": this release is NOT private" * (not self.private)
        return facts(title, [("In a sentence", self.sentence), *entries(self).items()])

    def to_registry_yaml(self) -> str:
        """Return a draft entry for the public Differential Privacy Deployments Registry.

        What only the curator knows reads ``TO BE FILLED BY THE CURATOR``. InputError if the
        release is not private: there is no deployment to register.
        """
        if not self.private:
            raise InputError(
                "a reproducible release is not private, so there is no deployment to register; "
                "make it without random_state"
            )
        return "".join(f"{line}\n" for line in _lines(_words().registry(self)))


def sentence(statement: PrivacyStatement, *, plain: bool = False) -> str:
    """Return the guarantee as one sentence that needs no mathematics.

    A ``plain`` one has the privacy unit for a subject, and no powers: for a page.
    """
    return _one_line(_words().sentence(statement, plain))


def entries(statement: PrivacyStatement) -> dict[str, list[str]]:
    """Return everything that a statement says, by heading."""
    found: dict[str, list[str]] = {}
    for line in _lines(_words().entries(statement)):
        heading, _, said = line.partition(": ")
        found.setdefault(heading, []).append(said)
    return found


@cache
def _words() -> Any:
    """Return what says all words: functions of a statement."""
    used = {"Sensitivity": Sensitivity, "PRIVACY_UNIT": PRIVACY_UNIT, "at_most": at_most}
    return macros("statement.txt", exp=math.exp, yaml=_yaml, **used)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _yaml(value: str | float | list[str] | tuple[str, ...]) -> str:
    """Return a number, a text or a list of texts as YAML, which 1.1 and 1.2 read the same."""
    if isinstance(value, float):
        mantissa, exponent, power = repr(value).partition("e")
        # YAML 1.1 takes 1e-06 for a text
        return (mantissa if "." in mantissa else f"{mantissa}.0") + exponent + power
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        shown = (char if char.isprintable() else f"\\U{ord(char):08X}" for char in escaped)
        return f'"{"".join(shown)}"'
    lines = [f"- {item}" for item in value]
    if len(lines) > 1 and all(line.isprintable() and line == line.rstrip() for line in lines):
        return "|-" + "".join(f"\n      {line}" for line in lines)
    return _yaml("\n".join(lines))
