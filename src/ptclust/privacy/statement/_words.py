"""The words of a privacy statement: what it says by default, its one sentence, and the page for a terminal."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from ptclust.privacy._numbers import at_most
from ptclust.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from ptclust.privacy.statement import PrivacyStatement

PRIVACY_UNIT = (
    "A privacy unit is whatever moves the edge weights by no more than the declared bounds; the curator has not said "
    "what that is (a person, a household, one event)."
)
PROTECTED = ("the edge weights",)
NOT_PROTECTED = (
    "the topology: which nodes and edges there are, how many of them, and their connected components",
    "the names of the nodes",
    "the parameters given to ptclust: epsilon, delta, sensitivity and all other options",
)
RANDOMNESS = {
    "secure": "secure: a ChaCha20 stream keyed by the operating system, and OpenDP's samplers.",
    "reproducible": "reproducible: from a seed given as random_state, for experiments only.",
}

_WEAK_EPSILON = 10.0
_MAX_LINES = 60
_WIDTH = 88
_LABEL = 16


def defaults(statement: PrivacyStatement) -> dict[str, str]:
    """Return what the fields of words say when the maker of the statement is silent."""
    if statement.variant == "pure":
        rule = "basic composition"
        composition = "The epsilons of the mechanisms add up, also where one builds on another."
    else:
        rule = "zCDP composition"
        composition = (
            "The rhos of the mechanisms add up, also where one builds on another; their sum is converted to epsilon "
            "at the given delta."
        )
    slack = "The samplers used are exact; nothing is set aside for rounding."
    if statement.numerical_slack:
        slack = "Covers rounding in the sampler of the tree; it is included in epsilon."
    return {
        "privacy_unit": PRIVACY_UNIT,
        "neighbours": _sensitivity(statement).describe(),
        "composition_rule": rule,
        "composition": composition,
        "numerical_slack_words": slack,
    }


def _sensitivity(statement: PrivacyStatement) -> Sensitivity:
    return Sensitivity(**statement.sensitivity)


def sentence(statement: PrivacyStatement) -> str:
    """Return the guarantee as one sentence that needs no mathematics."""
    epsilon = statement.epsilon
    factor = f"e^{at_most(epsilon)}"
    if epsilon <= _WEAK_EPSILON:
        factor += f" = {at_most(math.exp(epsilon), 4)}"
    bound = f"by a factor of at most {factor}"
    guarantee = f"pure differential privacy of the weights, epsilon = {at_most(epsilon)}"
    if statement.variant == "approximate":
        delta = at_most(statement.delta)
        bound += f" and an additional probability of at most {delta}"
        guarantee = f"approximate differential privacy of the weights, epsilon = {at_most(epsilon)}, delta = {delta}"
    promise = (
        "whatever else somebody knows, what one privacy unit contributes to the edge weights changes the probability "
        f"of any outcome of this release {bound} ({guarantee}){_remarks(statement)}."
    )
    if statement.private:
        return promise[0].upper() + promise[1:]
    return (
        "This release is NOT private, because its noise can be made again from a seed; with secure randomness it would "
        f"hold that {promise}"
    )


def _remarks(statement: PrivacyStatement) -> str:
    remarks = ""
    requested = statement.requested_epsilon
    if requested is not None:
        remarks += f"; its noise has the scales printed in the paper for a requested epsilon of {requested:g}"
        if requested < statement.epsilon:
            remarks += ", which give only the weaker guarantee stated here"
    if statement.epsilon > _WEAK_EPSILON:
        remarks += "; an epsilon this large promises next to nothing"
    return remarks


def page(statement: PrivacyStatement) -> str:
    """Return the statement as a page of at most 60 lines."""
    numbers = f"epsilon = {at_most(statement.epsilon)}"
    if statement.rho is not None:
        numbers += f", delta = {at_most(statement.delta)} (rho = {at_most(statement.rho)} zCDP)"
    if statement.requested_epsilon is not None:
        numbers += f"; requested: {statement.requested_epsilon:.6g}"
    title = (
        "PRIVACY STATEMENT"
        if statement.private
        else "PRIVACY STATEMENT: THIS RELEASE IS NOT PRIVATE"
    )
    lines = [title, *textwrap.wrap(statement.sentence, _WIDTH), ""]
    lines += _entry("Guarantee", [f"{statement.variant}, {numbers}"])
    lines += _entry("Calibration", [statement.calibration])
    lines += _entry("Privacy unit", [statement.privacy_unit])
    lines += _entry("Sensitivity", [str(_sensitivity(statement))])
    lines += _entry("Neighbours", [statement.neighbours])
    lines += _entry("Protected", statement.protected)
    lines += _entry("Not protected", statement.not_protected)
    lines += _entry("Mechanisms", _mechanisms(statement))
    lines += _entry("Composition", [f"{statement.composition_rule}. {statement.composition}"])
    lines += _entry("Afterwards", statement.post_processing)
    lines += _entry("Randomness", [RANDOMNESS[statement.randomness]])
    slack = f"{at_most(statement.numerical_slack, 3)} of epsilon. {statement.numerical_slack_words}"
    lines += _entry("Rounding", [slack])
    lines += _entry("Caveats", statement.caveats)
    made = f"{statement.created} by {statement.library} {statement.library_version}"
    lines += _entry("Made", [made])
    lines += _entry("Id", [f"{statement.id} (statement schema {statement.schema_version})"])
    if len(lines) > _MAX_LINES:
        left = len(lines) - _MAX_LINES + 1
        lines = [*lines[: _MAX_LINES - 1], f"({left} more lines; to_dict() has everything)"]
    return "\n".join(lines) + "\n"


def _mechanisms(statement: PrivacyStatement) -> list[str]:
    listed = []
    for use in statement.mechanisms:
        scale = "" if use.scale is None else f" of scale {use.scale:.6g}"
        extra = "".join(f", {key} = {value:.6g}" for key, value in use.parameters.items())
        listed.append(
            f"{use.name} for {use.purpose}: {use.share_of} {at_most(use.share)}, {use.noise} noise{scale}{extra}"
        )
    return listed


def _entry(label: str, items: list[str] | tuple[str, ...]) -> list[str]:
    """Return a label and its items; several items get a dash each."""
    dash = "- " if len(items) > 1 else ""
    lines: list[str] = []
    for item in items:
        start = f"{label}:".ljust(_LABEL) if not lines else " " * _LABEL
        indent = " " * (_LABEL + len(dash))
        lines += textwrap.wrap(start + dash + item, _WIDTH, subsequent_indent=indent)
    return lines
