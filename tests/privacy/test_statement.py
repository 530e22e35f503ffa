from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ptclust.errors import InputError
from ptclust.privacy._numbers import at_most
from ptclust.privacy.statement import MechanismUse, PrivacyStatement

TREE = MechanismUse(
    name="PAMST",
    purpose="the tree",
    share=0.25,
    share_of="epsilon",
    noise="exponential clocks",
    scale=None,
    parameters={"n_steps": 999, "exponent": 0.5005},
    reference="Pinot et al. 2018",
)
WEIGHTS = MechanismUse(
    name="Laplace mechanism",
    purpose="the weights of the tree",
    share=0.75,
    share_of="epsilon",
    noise="Laplace",
    scale=0.666,
    parameters={"n_weights": 999},
)
UNIT = "One patient among the 2,000 whose average each weight is."


def pure(**changes):
    given = {
        "variant": "pure",
        "epsilon": 1.0,
        "sensitivity": {"linf": 5e-4},
        "mechanisms": [TREE, WEIGHTS],
        "randomness": "secure",
        "privacy_unit": UNIT,
        "post_processing": ["Shift 0.5, chosen from the released weights.", "DBMSTClu."],
        "caveats": ["The bounds are declared by the curator."],
    }
    return PrivacyStatement(**given | changes)


def approximate(**changes):
    uses = [replace(use, share_of="rho", share=0.008) for use in (TREE, WEIGHTS)]
    given = {"variant": "approximate", "delta": 1e-6, "rho": 0.016, "mechanisms": uses}
    return pure(**given | changes)


def published(**changes):
    large = replace(WEIGHTS, share=499.5)
    given = {"calibration": "published", "requested_epsilon": 1.0, "epsilon": 499.75}
    return pure(**given | {"mechanisms": [TREE, large]} | changes)


KINDS = {
    "pure": pure,
    "approximate": approximate,
    "published": published,
    "reproducible": lambda: pure(randomness="reproducible"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_roundtrip_through_json_pickle_and_copy(kind):
    statement = KINDS[kind]()
    assert PrivacyStatement.from_dict(json.loads(json.dumps(statement.to_dict()))) == statement
    assert pickle.loads(pickle.dumps(statement)) == statement
    assert copy.deepcopy(statement) == statement


def test_immutable():
    statement = pure()
    with pytest.raises(FrozenInstanceError):
        statement.epsilon = 0.1
    with pytest.raises(TypeError):
        statement.sensitivity["linf"] = 1.0
    with pytest.raises(TypeError):
        statement.mechanisms[0].parameters["n_steps"] = 1


def test_each_statement_is_its_own():
    first, second = pure(), pure()
    assert first.id != second.id
    assert first.created.endswith("+00:00")


def test_sentences():
    assert pure().sentence == (
        "Whatever else somebody knows, what one privacy unit contributes to the edge weights "
        "changes the probability of any outcome of this release by a factor of at most "
        "e^1 = 2.719 (pure differential privacy of the weights, epsilon = 1)."
    )
    assert "an additional probability of at most 1e-06" in approximate().sentence
    wide = published().sentence
    assert "epsilon = 499.75" in wide
    assert "requested epsilon of 1, which give only the weaker guarantee" in wide
    assert "next to nothing" in wide
    seeded = pure(randomness="reproducible")
    assert not seeded.private
    assert seeded.sentence.startswith("This release is NOT private")


@pytest.mark.parametrize("kind", KINDS)
def test_every_sentence_is_one_sentence_of_its_own(kind):
    sentences = [make().sentence for make in KINDS.values()]
    assert len(set(sentences)) == len(KINDS)
    sentence = KINDS[kind]().sentence
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert ". " not in sentence


@given(st.floats(1e-300, 1e300), st.integers(1, 8))
def test_shown_numbers_are_rounded_up(value, digits):
    shown = float(at_most(value, digits))
    assert value <= shown <= value * (1 + 10.0 ** (1 - digits) * 1.0001)


@pytest.mark.parametrize("kind", KINDS)
def test_page_fits_on_a_screen_and_says_what_matters(kind):
    statement = KINDS[kind]()
    page = statement.to_text()
    assert len(page.splitlines()) <= 60
    assert max(map(len, page.splitlines())) <= 88
    for part in ("PAMST", "Laplace", "linf <= 0.0005", "names of the nodes", statement.id):
        assert part in page
    assert ("NOT PRIVATE" in page) is not statement.private


def test_page_of_a_talkative_statement_stays_short():
    page = pure(caveats=["This is a caveat of some length, told again and again. " * 5] * 40)
    lines = page.to_text().splitlines()
    assert len(lines) == 60
    assert "more lines" in lines[-1]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", 0),
        ("epsilon", -1.0),
        ("epsilon", math.nan),
        ("epsilon", math.inf),
        ("epsilon", 10**400),
        ("epsilon", "1"),
        ("epsilon", True),
        ("delta", -1e-9),
        ("delta", math.nan),
        ("variant", "zcdp"),
        ("calibration", "loose"),
        ("randomness", 42),
        ("sensitivity", {}),
        ("sensitivity", {"linf": 0}),
        ("sensitivity", {"l3": 1.0}),
        ("sensitivity", 0.1),
        ("mechanisms", "Laplace"),
        ("mechanisms", [{"name": "Laplace"}]),
        ("privacy_unit", "a person\x1b[2J"),
        ("privacy_unit", "two\nlines"),
        ("privacy_unit", None),
        ("caveats", "only one"),
        ("caveats", [""]),
        ("not_protected", [3]),
        ("numerical_slack", -1e-12),
        ("numerical_slack", 2.0),
        ("requested_epsilon", 1.0),
        ("schema_version", 4),
        ("schema_version", 2),
        ("schema_version", True),
        ("id", "release-7"),
        ("created", "yesterday"),
        ("created", "2026-01-31T12:00:00"),
        ("created", "2026-01-31T12:00:00+02:00"),
        ("library_version", ""),
    ],
)
def test_wrong_fields_are_named(field, value):
    with pytest.raises(InputError, match=field):
        pure(**{field: value})


@pytest.mark.parametrize(
    "changes",
    [
        {"delta": 1e-6},
        {"rho": 0.1},
        {"variant": "approximate", "delta": 1e-6},
        {"variant": "approximate", "rho": 0.1, "delta": 0.0},
        {"variant": "approximate", "rho": 0.1, "delta": 1.0},
        {"calibration": "published"},
        {"epsilon": 0.99},
        {"variant": "approximate", "delta": 1e-6, "rho": 1.0},
    ],
)
def test_contradictions_are_refused(changes):
    with pytest.raises(InputError):
        pure(**changes)


def test_shares_may_add_up_to_the_budget_but_for_rounding():
    thirds = [replace(TREE, share=1 / 3)] * 3
    assert pure(mechanisms=thirds)
    with pytest.raises(InputError, match="spend epsilon"):
        pure(mechanisms=[*thirds, replace(TREE, share=1e-6)])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("share", -0.1),
        ("share", math.inf),
        ("share_of", "delta"),
        ("scale", -1.0),
        ("scale", math.nan),
        ("parameters", {"n_steps": "many"}),
        ("parameters", {"n_steps": math.inf}),
        ("parameters", {3: 1}),
        ("reference", None),
    ],
)
def test_wrong_fields_of_a_mechanism_are_named(field, value):
    with pytest.raises(InputError, match=field):
        replace(TREE, **{field: value})
    described = pure().to_dict()
    described["mechanisms"][1][field] = value
    with pytest.raises(InputError, match=r"mechanisms\[1\].*" + field):
        PrivacyStatement.from_dict(described)


@pytest.mark.parametrize("field", sorted(pure().to_dict()))
def test_from_dict_wants_every_field_and_its_type(field):
    described = pure().to_dict()
    lacking = {key: value for key, value in described.items() if key != field}
    with pytest.raises(InputError, match=f"lacks the field '{field}'"):
        PrivacyStatement.from_dict(lacking)
    with pytest.raises(InputError, match=field):
        PrivacyStatement.from_dict(described | {field: object()})


def test_from_dict_wants_nothing_else():
    with pytest.raises(InputError, match="unknown field 'seed'"):
        PrivacyStatement.from_dict(pure().to_dict() | {"seed": 1})
    with pytest.raises(InputError, match="statement must be a mapping"):
        PrivacyStatement.from_dict([])


def test_a_reproducible_release_cannot_be_called_private():
    described = pure(randomness="reproducible").to_dict()
    assert described["private"] is False
    with pytest.raises(InputError, match="private must be False"):
        PrivacyStatement.from_dict(described | {"private": True})


@pytest.mark.parametrize(
    "words", [{"sentence": "Perfectly anonymous."}, {"taken_on_trust": ["nothing"]}]
)
def test_derived_words_follow_from_the_fields(words):
    with pytest.raises(InputError, match="is not what follows from the other fields"):
        PrivacyStatement.from_dict(pure().to_dict() | words)
    older = pure(library_version="0.0.1").to_dict() | words  # it had other words: they are replaced
    read = PrivacyStatement.from_dict(older)
    assert (read.sentence, read.taken_on_trust) == (pure().sentence, pure().taken_on_trust)


def test_altered_words():
    assert not pure(merge="mean").altered_words
    assert pure(composition="It vanishes.", protected=["all"]).altered_words == [
        "composition",
        "protected",
    ]
    assert not pure(composition="It vanishes.", library_version="0.0.1").altered_words


def test_merged_by_the_mean():
    assert "their mean" in pure(merge="mean").neighbours
    assert "merged to their mean" in " ".join(pure(merge="mean").to_text().split())
    with pytest.raises(InputError, match="merge"):
        pure(merge="median")


# The field names of schemas/deployments-schema.yaml in opendp/deployments-registry-data, commit
# 057e5d8.
REGISTRY = {
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
FOR_THE_CURATOR = "TO BE FILLED BY THE CURATOR"
# What that schema asks of the fields, restated; all others are texts.
REGISTRY_REQUIRED = {
    "basic": "name data_curators description intended_use data_product_type data_product_region "
    "publication_date",
    "administrative": "status registry_authors tier",
}
REGISTRY_CHOICES = {
    "data_product_type": "Summary statistics|Machine learning model|Dataset|Synthetic data|"
    "Interactive API|SQL queries",
    "data_product_sector": "Technology|Healthcare|Education|Government|Energy|Finance",
    "variant_name": "Pure DP|Approximate DP|Zero-concentrated DP|Renyi DP|Custom",
    "model_name": "Local|Central|Shuffle|Federated|Varies",
    "release_type": "One release|Many releases",
    "data_source_type": "Static|Dynamic",
    "access_type": "Interactive|Non-interactive",
    "status": "Converted|Draft|Pending|Changes Required|Approved|Approved (Update Requested)|"
    "Approved (Pending)",
}
_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_NUMBER = {"type": "number"}
REGISTRY_OTHERS: dict[str, dict[str, Any]] = {
    "data_curators": {
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "required": ["data_curator_name", "data_curator_type"],
            "properties": {"data_curator_type": {"enum": ["Government", "Industry", "Nonprofit"]}},
        },
    },
    "publication_date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
    "number_of_privacy_units": {"type": "integer"},
    "privacy_parameters": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"epsilon": _NUMBER, "delta": _NUMBER, "rho": _NUMBER},
    },
    "registry_authors": _TEXTS,
    "tier": {"type": "integer"},
}


def registry_schema() -> dict[str, Any]:
    def field(name: str) -> dict[str, Any]:
        choices = REGISTRY_CHOICES.get(name)
        return REGISTRY_OTHERS.get(
            name, {"enum": choices.split("|")} if choices else {"type": "string"}
        )

    sections = {
        section: {
            "type": "object",
            "additionalProperties": False,
            "required": REGISTRY_REQUIRED.get(section, "").split(),
            "properties": {name: field(name) for name in names.split()},
        }
        for section, names in REGISTRY.items()
    }
    deployment = {
        "type": "object",
        "additionalProperties": False,
        "required": ["basic", "administrative"],
        "properties": sections,
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["url_slug", "deployment"],
        "properties": {"url_slug": {"type": "string"}, "deployment": deployment},
    }


@pytest.mark.parametrize(
    "make", [lambda: pure(), lambda: approximate()], ids=["pure", "approximate"]
)
def test_registry_entry_fits_the_schema_once_the_curator_has_filled_it(make):
    entry = yaml.safe_load(make().to_registry_yaml())
    deployment = entry["deployment"]
    with pytest.raises(jsonschema.ValidationError, match=FOR_THE_CURATOR):
        jsonschema.validate(entry, registry_schema())
    deployment["basic"]["data_curators"][0]["data_curator_type"] = "Government"
    deployment["basic"]["data_product_sector"] = "Healthcare"
    deployment["privacy_loss"]["number_of_privacy_units"] = 1000
    deployment["deployment_model"]["data_source_type"] = "Static"
    jsonschema.validate(entry, registry_schema())


def test_registry_entry_has_the_fields_of_the_registry():
    entry = yaml.safe_load(approximate().to_registry_yaml())
    assert set(entry) == {"url_slug", "deployment"}
    assert {k: set(v) for k, v in entry["deployment"].items()} == {
        section: set(names.split()) for section, names in REGISTRY.items()
    }


def test_registry_entry_says_what_is_known_and_leaves_the_rest_to_the_curator():
    statement = approximate()
    deployment = yaml.safe_load(statement.to_registry_yaml())["deployment"]
    loss = deployment["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6, "rho": 0.016}
    assert loss["privacy_unit"] == UNIT
    assert loss["privacy_parameters_details"] == statement.sentence
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    assert deployment["basic"]["publication_date"] == statement.created[:10]
    assert deployment["administrative"] == {
        "status": "Draft",
        "registry_authors": [FOR_THE_CURATOR],
        "tier": 3,
    }
    curators = [{"data_curator_name": FOR_THE_CURATOR, "data_curator_type": FOR_THE_CURATOR}]
    assert deployment["basic"]["data_curators"] == curators
    assert "Laplace noise of scale 0.666" in deployment["implementation"]["mechanisms"]
    plain = yaml.safe_load(
        PrivacyStatement.from_dict(pure(privacy_unit="").to_dict()).to_registry_yaml()
    )["deployment"]
    assert plain["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert plain["privacy_loss"]["privacy_unit"] == FOR_THE_CURATOR


def test_what_is_not_private_is_not_registered():
    with pytest.raises(InputError, match="not private"):
        pure(randomness="reproducible").to_registry_yaml()


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1).filter(str.strip),
    st.floats(1e-300, 1e300),
)
def test_registry_yaml_keeps_every_text_and_number(words, epsilon):
    statement = pure(privacy_unit=words, caveats=[words], epsilon=epsilon, mechanisms=[])
    deployment = yaml.safe_load(statement.to_registry_yaml())["deployment"]
    assert deployment["privacy_loss"]["privacy_unit"] == words
    assert deployment["privacy_loss"]["privacy_parameters"]["epsilon"] == epsilon
    assert deployment["implementation"]["additional_information"].endswith(f"\n- {words}")
