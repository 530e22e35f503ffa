"""A privacy statement in words: its defaults, its one sentence, a page, an entry of the registry.

The entry follows the data entry template of the public Differential Privacy Deployments Registry:
repository ``opendp/deployments-registry-data``, files ``schemas/deployments-schema.yaml`` and
``tests/good_deployments/template.yaml``, commit 057e5d81cf60150dd3307e0cf4504b957802fb3b. It is
by E. Ghazi, P. Nanayakkara and S. Vadhan (Practitioners' Perspectives on a Differential Privacy
Deployment Registry, arXiv 2509.13509).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ptclust.errors import InputError
from ptclust.privacy._numbers import at_most
from ptclust.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from ptclust.privacy.statement import MechanismUse, PrivacyStatement

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
_MERGED = {
    "min": "their minimum",
    "max": "their maximum",
    "sum": "their sum",
    "mean": "their mean",
}
_RANDOMNESS = {
    "secure": "secure: ChaCha20 streams keyed by the operating system, OpenDP's where it samples.",
    "reproducible": "reproducible: from a seed given as random_state, for experiments only; the "
    "noise is numpy's.",
}
_COMPOSITION = {
    "pure": (
        "basic composition",
        "The epsilons of the mechanisms add up, also where one builds on another.",
    ),
    "approximate": (
        "joint curve",
        "Epsilon and delta are a point of the curve of all mechanisms together, also where one "
        "builds on another. Beside other releases about the same weights add the rhos.",
    ),
}

_ALONE = (
    "no composition",
    "One mechanism; epsilon and delta are a point of its own curve. Beside other releases about "
    "the same weights add its rho to theirs.",
)

_WEAK_EPSILON = 10.0
_MAX_LINES = 60
_WIDTH = 88
_LABEL = 16


def defaults(statement: PrivacyStatement) -> dict[str, str]:
    """Return the default texts of the statement."""
    rule, composition = _COMPOSITION[statement.variant]
    if statement.variant == "approximate" and len(statement.mechanisms) == 1:
        rule, composition = _ALONE
    slack = "The samplers used are exact; nothing is set aside for rounding."
    if statement.numerical_slack:
        slack = "Covers rounding in the sampler of the tree; it is included in epsilon."
    return {
        "privacy_unit": PRIVACY_UNIT,
        "neighbours": Sensitivity(**statement.sensitivity).describe()
        + _of_merged(statement)
        + _of_tables(statement),
        "composition_rule": rule,
        "composition": composition,
        "numerical_slack_words": slack,
    }


def altered(statement: PrivacyStatement) -> list[str]:
    """Return the text fields, but for the curator's own, that differ from ptclust's texts."""
    usual: dict[str, object] = {
        **defaults(statement),
        "protected": PROTECTED,
        "not_protected": NOT_PROTECTED,
    }
    del usual["privacy_unit"]
    return [name for name, said in usual.items() if getattr(statement, name) != said]


def _of_merged(statement: PrivacyStatement) -> str:
    if statement.merge is None:
        return ""
    return f"; a weight is that of all rows between two nodes together, {_MERGED[statement.merge]}"


def _of_tables(statement: PrivacyStatement) -> str:
    if statement.provenance is None:
        return ""
    differ = {
        "add-remove": "that have one unit more or less",
        "replace": "of which one has another unit in place of one (replace-one)",
    }
    return f"; they are built from tables of records {differ[statement.provenance.neighbours]}"


def _weights(statement: PrivacyStatement) -> str:
    kinds = {
        "distance": "distances: small means close",
        "similarity": "similarities: large means close",
    }
    merged = statement.merge
    parts = [kinds[statement.kind]]
    if merged is not None:
        parts.append(f"rows between the same two nodes were merged to {_MERGED[merged]}")
    if statement.clip is not None:
        parts.append("clipped to the public bounds {:g} and {:g}".format(*statement.clip))
    return "; ".join(parts)


def sentence(statement: PrivacyStatement, *, plain: bool = False) -> str:
    """Return the guarantee as one sentence that needs no mathematics.

    A ``plain`` one has the privacy unit for a subject, and no powers: for a page.
    """
    epsilon, delta = at_most(statement.total_epsilon), at_most(statement.total_delta)
    bound, who = f"by a factor of at most e^{epsilon}", "one privacy unit"
    if statement.total_epsilon <= _WEAK_EPSILON:
        bound += f" = {at_most(math.exp(statement.total_epsilon), 4)}"
    if plain:
        who = _unit(statement)
        delta = delta if "e" not in delta else f"1 in {int(1 / statement.total_delta):,}"
        bound = "by any factor"
        if statement.total_epsilon <= _WEAK_EPSILON:
            bound = f"by a factor of at most {at_most(math.exp(statement.total_epsilon), 3)}"
    variant = "approximate" if statement.total_delta else "pure"
    guarantee = f"{variant} differential privacy of the weights, epsilon = {epsilon}"
    if statement.total_delta:
        bound += f" and an additional probability of at most {delta}"
        guarantee += f", delta = {delta}"
    promise = (
        f"whatever else somebody knows, what {who} contributes to the edge weights "
        f"changes the probability of any outcome of this release {bound} "
        f"({guarantee}{_of_building(statement)}){_remarks(statement)}."
    )
    if statement.private:
        return promise[0].upper() + promise[1:]
    return (
        "This release is NOT private, because its noise can be made again from a seed; with secure "
        f"randomness it would hold that {promise}"
    )


def _unit(statement: PrivacyStatement) -> str:
    """Return what one unit is, as the subject of a sentence."""
    unit, _, bounds = statement.privacy_unit.partition(", ")
    if not unit.startswith(("one ", "a ", "an ")):
        return "one privacy unit"
    return f"{unit} ({bounds})" if bounds else unit


def _of_building(statement: PrivacyStatement) -> str:
    if statement.provenance is None or not statement.provenance.spent:
        return ""
    before = sum((each.budget.epsilon for each in statement.provenance.spent), Fraction(0))
    return f", of which {at_most(before)} was spent when the graph was built"


def _before(statement: PrivacyStatement) -> list[str]:
    """Return what was spent before the release, one line each, and the total."""
    if statement.provenance is None or not statement.provenance.spent:
        return []
    lines = [each.words for each in statement.provenance.spent]
    total = f"in total, this release included: epsilon = {at_most(statement.total_epsilon)}"
    return [
        *lines,
        total + f", delta = {at_most(statement.total_delta)}" * bool(statement.total_delta),
    ]


def _remarks(statement: PrivacyStatement) -> str:
    remarks, requested = "", statement.requested_epsilon
    if requested is not None:
        remarks = "; its noise has the scales printed in the paper for a requested epsilon of "
        remarks += f"{requested:g}"
        if requested < statement.epsilon:
            remarks += ", which give only the weaker guarantee stated here"
    if statement.total_epsilon > _WEAK_EPSILON:
        remarks += "; an epsilon this large promises next to nothing"
    return remarks


def entries(statement: PrivacyStatement) -> dict[str, Sequence[str]]:
    """Return everything that a statement says, by heading."""
    guarantee = f"{statement.variant}, epsilon = {at_most(statement.epsilon)}"
    if statement.rho is not None:
        guarantee += f", delta = {at_most(statement.delta)} (rho = {at_most(statement.rho)} zCDP)"
    if statement.requested_epsilon is not None:
        guarantee += f"; requested: {statement.requested_epsilon:.6g}"
    slack = at_most(statement.numerical_slack, 3)
    return {
        "Guarantee": [guarantee],
        "Spent before": _before(statement),
        "Calibration": [statement.calibration],
        "Privacy unit": [statement.privacy_unit],
        "Built": _built(statement),
        "Weights": [_weights(statement)],
        "Sensitivity": [str(Sensitivity(**statement.sensitivity))],
        "Neighbours": [statement.neighbours],
        "Protected": statement.protected,
        "Not protected": statement.not_protected,
        "Mechanisms": [_mechanism(use, at_most(use.share), 6) for use in statement.mechanisms],
        "Composition": [f"{statement.composition_rule}. {statement.composition}"],
        "Afterwards": statement.post_processing,
        "Randomness": [_RANDOMNESS[statement.randomness]],
        "Rounding": [f"{slack} of epsilon. {statement.numerical_slack_words}"],
        "Caveats": statement.caveats,
        "Not checkable": statement.taken_on_trust,
        "Made": [f"{statement.created} by {statement.library} {statement.library_version}"],
        "Id": [f"{statement.id} (statement schema {statement.schema_version})"],
    }


def page(statement: PrivacyStatement) -> str:
    """Return the statement as a page of at most 60 lines."""
    title = "PRIVACY STATEMENT" + ": THIS RELEASE IS NOT PRIVATE" * (not statement.private)
    lines = [title, *textwrap.wrap(statement.sentence, _WIDTH), ""]
    for label, items in entries(statement).items():
        dash = "- " if len(items) > 1 else ""
        start, indent = f"{label}:".ljust(_LABEL), " " * (_LABEL + len(dash))
        for item in items:
            lines += textwrap.wrap(start + dash + item, _WIDTH, subsequent_indent=indent)
            start = " " * _LABEL
    if len(lines) > _MAX_LINES:
        left = len(lines) - _MAX_LINES + 1
        lines = [*lines[: _MAX_LINES - 1], f"({left} more lines; to_dict() has everything)"]
    return "\n".join(lines) + "\n"


def _built(statement: PrivacyStatement) -> list[str]:
    """Return how the weights were built from records."""
    if (built := statement.provenance) is None:
        return []
    details = ", ".join(f"{name} = {value}" for name, value in built.details.items())
    return [f"from records, the unit being {built.unit}" + f" ({details})" * bool(details)]


def _mechanism(use: MechanismUse, share: str, digits: int) -> str:
    scale = "" if use.scale is None else f" of scale {use.scale:.{digits}g}"
    extra = "".join(f", {key} = {value:.{digits}g}" for key, value in use.parameters.items())
    return f"{use.name} for {use.purpose}: {use.share_of} {share}, {use.noise} noise{scale}{extra}"


_PLACEHOLDER = "TO BE FILLED BY THE CURATOR"
# All fields of the registry, in its order; what a statement does not know is the placeholder.
_REGISTRY_FIELDS = {
    "basic": "name data_curators description intended_use data_product_type data_product_region "
    "data_product_sector publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type "
    "release_type_details data_source_type data_source_type_details access_type "
    "access_type_details",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition "
    "post_processing justification utility additional_information",
    "administrative": "status registry_authors tier",
}
# What holds for every release of this library.
_REGISTRY_CONSTANTS: dict[str, Any] = {
    "data_curators": [{"data_curator_name": _PLACEHOLDER, "data_curator_type": _PLACEHOLDER}],
    "data_product_type": "Dataset",
    "data_domain": "All weightings of one public topology: a real number for each of its edges.",
    "model_name": "Central",
    "model_name_details": "The curator holds the raw edge weights and runs the mechanisms.",
    "trust_assumptions": (
        "The curator is trusted with the raw weights, with the declared sensitivity, and to "
        "publish no more than the release. Nobody who sees the release needs to be trusted."
    ),
    "release_type": "One release",
    "access_type": "Non-interactive",
    "access_type_details": "The release is a file; nobody queries the weights.",
    "status": "Draft",
    "registry_authors": [_PLACEHOLDER],
    "tier": 3,
}


def registry_yaml(statement: PrivacyStatement) -> str:
    """Return the entry as YAML, which reads the same in YAML 1.1 and 1.2."""
    if not statement.private:
        raise InputError(
            "a reproducible release is not private, so there is no deployment to register; make it "
            "without random_state"
        )
    known = _REGISTRY_CONSTANTS | _registry_values(statement)
    sections = {
        section: {name: known.get(name, _PLACEHOLDER) for name in names.split()}
        for section, names in _REGISTRY_FIELDS.items()
    }
    entry = {"url_slug": _PLACEHOLDER, "deployment": sections}
    return "\n".join(_yaml_lines(entry, 0)) + "\n"


def _registry_values(statement: PrivacyStatement) -> dict[str, Any]:
    made_by = f"{statement.library} {statement.library_version}."
    parameters, unit = {"epsilon": statement.total_epsilon}, statement.privacy_unit
    if statement.total_delta:
        parameters |= {"delta": statement.total_delta}
    if statement.rho is not None:
        parameters |= {"rho": statement.rho}
    mechanisms = []
    for use in statement.mechanisms:
        reference = f" ({use.reference})" if use.reference else ""
        mechanisms.append(_mechanism(use, f"{use.share:.10g}", 10) + reference)
    mechanisms += [f"Before the release, {line}" for line in _before(statement)]
    mechanisms += [
        f"Randomness: {_RANDOMNESS[statement.randomness]}",
        f"Rounding: {statement.numerical_slack:.6g} of epsilon. {statement.numerical_slack_words}",
        f"Library: {made_by}",
    ]
    made = f"Statement {statement.id} of {statement.created}, {statement.calibration} calibration."
    return {
        "description": (
            "Clusters of the nodes of a graph, with the spanning tree and the noisy edge weights "
            "they were made from. The topology of the graph is public, its edge weights are "
            f"protected. Made by {made_by}"
        ),
        "publication_date": statement.created[:10],
        "variant_name": "Pure DP" if statement.variant == "pure" else "Approximate DP",
        "unprotected_quantities": _bullets(statement.not_protected),
        "privacy_unit": _PLACEHOLDER if unit == PRIVACY_UNIT else unit,
        "privacy_unit_details": statement.neighbours,
        "privacy_parameters": parameters,
        "privacy_parameters_details": statement.sentence,
        "mechanisms": _bullets(mechanisms),
        "composition": f"{statement.composition_rule}. {statement.composition}",
        "post_processing": _bullets(statement.post_processing) or "None.",
        "additional_information": _bullets([made, *statement.caveats]),
        "preprocessing_and_hyperparameter_tuning": ". ".join(
            [
                f"Weights are {_weights(statement)}",
                *(f"Built {how}" for how in _built(statement)),
                "",
            ]
        ).strip(),
    }


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _yaml_lines(value: Any, depth: int) -> list[str]:
    """Return a dict or a list as lines of block YAML."""
    pad, lines = "  " * depth, list[str]()
    for key, item in value.items() if isinstance(value, dict) else ((None, item) for item in value):
        start = f"{pad}-" if key is None else f"{pad}{key}:"
        if isinstance(item, (dict, list)):
            lines += [start, *_yaml_lines(item, depth + 1)]
        elif isinstance(item, str) and "\n" in item and _is_plain(item):
            lines += [f"{start} |-", *(f"{pad}  {line}" for line in item.split("\n"))]
        else:
            lines.append(f"{start} {_yaml_scalar(item)}")
    return lines


def _is_plain(text: str) -> bool:
    """Whether a text can stand as a literal block."""
    return all(line.isprintable() and line == line.strip() and line for line in text.split("\n"))


def _yaml_scalar(value: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        shown = (char if char.isprintable() else f"\\U{ord(char):08X}" for char in escaped)
        return f'"{"".join(shown)}"'
    if isinstance(value, float):
        mantissa, exponent, power = repr(value).partition("e")
        # YAML 1.1 takes 1e-06 for a text
        return (mantissa if "." in mantissa else f"{mantissa}.0") + exponent + power
    return str(value)
