"""A privacy statement as a draft entry of the public Differential Privacy Deployments Registry.

The entry has the layout of the registry's own schema and data entry template: repository
``opendp/deployments-registry-data``, files ``schemas/deployments-schema.yaml`` and
``tests/good_deployments/template.yaml``, commit 057e5d81cf60150dd3307e0cf4504b957802fb3b. The schema is the work of
E. Ghazi, P. Nanayakkara and S. Vadhan (Practitioners' Perspectives on a Differential Privacy Deployment Registry,
arXiv 2509.13509).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptclust.errors import InputError
from ptclust.privacy.statement._words import PRIVACY_UNIT, RANDOMNESS

if TYPE_CHECKING:
    from ptclust.privacy.statement import MechanismUse, PrivacyStatement

PLACEHOLDER = "TO BE FILLED BY THE CURATOR"


def registry_yaml(statement: PrivacyStatement) -> str:
    """Return the entry as YAML, which reads the same in YAML 1.1 and 1.2."""
    return "\n".join(_lines(registry_entry(statement), 0)) + "\n"


def registry_entry(statement: PrivacyStatement) -> dict[str, Any]:
    """Return the entry with the registry's field names."""
    if not statement.private:
        raise InputError(
            "a reproducible release is not private, so there is no deployment to register; make it without random_state"
        )
    return {
        "url_slug": PLACEHOLDER,
        "deployment": {
            "basic": _basic(statement),
            "dp_variant": {
                "variant_name": "Pure DP" if statement.variant == "pure" else "Approximate DP",
                "data_domain": "All weightings of one public topology: a real number for each of its edges.",
                "unprotected_quantities": _bullets(statement.not_protected),
            },
            "privacy_loss": _privacy_loss(statement),
            "deployment_model": _deployment_model(),
            "implementation": _implementation(statement),
            "administrative": {"status": "Draft", "registry_authors": [PLACEHOLDER], "tier": 3},
        },
    }


def _basic(statement: PrivacyStatement) -> dict[str, Any]:
    return {
        "name": PLACEHOLDER,
        "data_curators": [{"data_curator_name": PLACEHOLDER, "data_curator_type": PLACEHOLDER}],
        "description": (
            "Clusters of the nodes of a graph, with the spanning tree and the noisy edge weights they were made from. "
            "The topology of the graph is public, its edge weights are protected. "
            f"Made by {statement.library} {statement.library_version}."
        ),
        "intended_use": PLACEHOLDER,
        "data_product_type": "Dataset",
        "data_product_region": PLACEHOLDER,
        "data_product_sector": PLACEHOLDER,
        "publication_date": statement.created[:10],
    }


def _privacy_loss(statement: PrivacyStatement) -> dict[str, Any]:
    parameters = {"epsilon": statement.epsilon}
    if statement.rho is not None:
        parameters |= {"delta": statement.delta, "rho": statement.rho}
    unit = statement.privacy_unit
    return {
        "privacy_unit": PLACEHOLDER if unit == PRIVACY_UNIT else unit,
        "privacy_unit_details": statement.neighbours,
        "number_of_privacy_units": PLACEHOLDER,
        "privacy_parameters": parameters,
        "privacy_parameters_details": statement.sentence,
    }


def _deployment_model() -> dict[str, Any]:
    return {
        "model_name": "Central",
        "model_name_details": "The curator holds the raw edge weights and runs the mechanisms.",
        "trust_assumptions": (
            "The curator is trusted with the raw weights, with the declared sensitivity, and to publish no more than "
            "the release. Nobody who sees the release needs to be trusted."
        ),
        "actors": PLACEHOLDER,
        "release_type": "One release",
        "release_type_details": PLACEHOLDER,
        "data_source_type": PLACEHOLDER,
        "data_source_type_details": PLACEHOLDER,
        "access_type": "Non-interactive",
        "access_type_details": "The release is a file; nobody queries the weights.",
    }


def _implementation(statement: PrivacyStatement) -> dict[str, Any]:
    slack = (
        f"Rounding: {statement.numerical_slack:.6g} of epsilon. {statement.numerical_slack_words}"
    )
    mechanisms = [_mechanism(use) for use in statement.mechanisms]
    origin = (
        f"Statement {statement.id} of {statement.created}, {statement.calibration} calibration."
    )
    return {
        "preprocessing_and_hyperparameter_tuning": PLACEHOLDER,
        "mechanisms": _bullets(
            [
                *mechanisms,
                f"Randomness: {RANDOMNESS[statement.randomness]}",
                slack,
                f"Library: {statement.library} {statement.library_version}.",
            ]
        ),
        "composition": f"{statement.composition_rule}. {statement.composition}",
        "post_processing": _bullets(statement.post_processing) or "None.",
        "justification": PLACEHOLDER,
        "utility": PLACEHOLDER,
        "additional_information": _bullets([origin, *statement.caveats]),
    }


def _mechanism(use: MechanismUse) -> str:
    scale = "" if use.scale is None else f" of scale {use.scale:.10g}"
    extra = "".join(f", {key} = {value:.10g}" for key, value in use.parameters.items())
    reference = f" ({use.reference})" if use.reference else ""
    return f"{use.name} for {use.purpose}: {use.share_of} {use.share:.10g}, {use.noise} noise{scale}{extra}{reference}"


def _bullets(items: list[str] | tuple[str, ...]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _lines(value: Any, depth: int) -> list[str]:
    """Return a dict or a list as lines of block YAML."""
    pad = "  " * depth
    lines: list[str] = []
    for key, item in value.items() if isinstance(value, dict) else ((None, item) for item in value):
        start = f"{pad}-" if key is None else f"{pad}{key}:"
        if isinstance(item, (dict, list)):
            lines += [start, *_lines(item, depth + 1)]
        elif isinstance(item, str) and "\n" in item and _is_plain(item):
            lines += [f"{start} |-", *(f"{pad}  {line}" for line in item.split("\n"))]
        else:
            lines.append(f"{start} {_scalar(item)}")
    return lines


def _is_plain(text: str) -> bool:
    """Whether a text can stand as a literal block."""
    return all(line.isprintable() and line == line.strip() and line for line in text.split("\n"))


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return '"' + "".join(_escaped(char) for char in value) + '"'
    if isinstance(value, float):
        mantissa, exponent, power = repr(value).partition("e")
        # YAML 1.1 takes 1e-06 for a text
        return (mantissa if "." in mantissa else f"{mantissa}.0") + exponent + power
    return str(value)


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if char.isprintable() else f"\\U{ord(char):08X}"
