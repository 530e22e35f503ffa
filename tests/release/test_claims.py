"""A loaded release spends what its statement claims, or it is refused."""

from __future__ import annotations

import json
import warnings
from typing import Any, ClassVar

import numpy as np
import pytest

from ptclust import Graph, PTClust, Release, Sensitivity
from ptclust.errors import FileError, InputError, PrivacyWarning
from ptclust.mechanisms import MECHANISMS, Kruskal
from ptclust.privacy.statement import PrivacyStatement
from ptclust.release import format as file_format
from ptclust.release.release import Release as AnyRelease

SENSITIVITIES = {
    "l1": Sensitivity(l1=1.0),
    "linf": Sensitivity(linf=0.01),
    "l2 and linf": Sensitivity(l2=0.5, linf=0.1),
}


def graph(n=9):
    first, second = np.triu_indices(n, 1)
    weights = np.random.default_rng(0).uniform(0, 5, len(first))
    return Graph(first, second, weights, kind="similarity")


def release(mechanism, delta=0.0, norm="l1", **options):
    settings = {"epsilon": 1.5, "delta": delta, "sensitivity": SENSITIVITIES[norm], **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return PTClust(mechanism=mechanism, **settings).fit(graph()).release_


@pytest.mark.parametrize("norm", SENSITIVITIES)
@pytest.mark.parametrize(
    ("mechanism", "delta", "options"),
    [
        *((name, 1e-6, {}) for name in MECHANISMS.names),
        *((name, 0.0, {}) for name in MECHANISMS.names if name != "gaussian"),
        ("kruskal", 0.0, {"split": 0.2}),
        ("pamst", 1e-6, {"split": 0.9}),
        ("pamst", 0.0, {"calibration": "published"}),
    ],
)
def test_what_is_true_is_loaded(mechanism, delta, options, norm, tmp_path):
    made = release(mechanism, delta, norm, **options)
    made.save(tmp_path / "release.json")
    assert Release.load(tmp_path / "release.json").statement == made.statement


@pytest.mark.parametrize("n_nodes", [0, 1, 2])
@pytest.mark.parametrize("mechanism", MECHANISMS.names)
def test_the_smallest_graphs(mechanism, n_nodes, tmp_path):
    pairs = np.triu_indices(n_nodes, 1)
    small = Graph(*pairs, np.ones(len(pairs[0])), n_nodes=n_nodes)
    options = {"epsilon": 1, "delta": 1e-6, "sensitivity": Sensitivity(l1=0.1)}
    PTClust(**options, mechanism=mechanism).fit(small).release_.save(tmp_path / "release.json")
    assert Release.load(tmp_path / "release.json").n_nodes == n_nodes


def words_after(statement, before):
    """Return the words that follow from the fields, except for those that were changed."""
    said = ("neighbours", "composition_rule", "composition", "numerical_slack_words")
    silent = {name: "" for name in said if statement[name] == before[name]}
    try:
        totals = {"total_epsilon": statement["epsilon"], "total_delta": statement["delta"]}
        given = statement | silent | totals
        given |= {"library_version": "0.0.0"}  # whose words are not checked
        right = PrivacyStatement.from_dict(given).to_dict()
    except InputError:  # it will be refused anyway
        return {}
    again = [*silent, *totals, *["sentence"] * (statement["sentence"] == before["sentence"])]
    return {name: right[name] for name in again if name in statement}


def loaded_after(made, change, tmp_path):
    """Change a file as somebody would who computes words and digest anew, and load it."""
    path = tmp_path / "changed.json"
    document = json.loads(file_format.encode(made))
    before = dict(document["statement"])
    change(document)
    document["statement"] |= words_after(document["statement"], before)
    document["digest"] = file_format._digest(document)
    path.write_text(json.dumps(document))
    return Release.load(path)


def in_statement(**fields):
    return lambda document: document["statement"].update(fields)


def in_use(number, **fields):
    return lambda document: document["statement"]["mechanisms"][number].update(fields)


def half_the_epsilon(document):
    statement = document["statement"]
    statement["epsilon"] /= 2
    for use in statement["mechanisms"]:
        use["share"] /= 2


def half_the_noise(document):
    document["noise"]["scale"] /= 2
    document["statement"]["mechanisms"][-1]["scale"] /= 2


def without_the_tree(document):
    statement = document["statement"]
    del statement["mechanisms"][0]
    statement["mechanisms"][0]["share"] = statement["epsilon"]


def stronger_draw(document):
    tree = document["statement"]["mechanisms"][0]
    tree["parameters"]["exponent"] *= 2
    tree["scale"] /= 2


def smaller_sensitivity(document):
    document["statement"]["sensitivity"]["l1"] *= 2  # what moves more needs more noise


def one_use_less_of_the_budget(document):
    document["statement"]["mechanisms"][0]["share"] /= 2


def called_laplace(document):
    """Hide the draw of the tree: its weights alone look like a whole graph's."""
    statement = document["statement"]
    del statement["mechanisms"][0]
    document["mechanism"] = "laplace"
    statement["mechanisms"][0]["purpose"] = "weights of the whole graph"
    statement["epsilon"] = statement["mechanisms"][0]["share"]


def called_kruskal(document):
    document["mechanism"] = "kruskal"


def another_tree(document):
    """Span the nodes by a star, as raw weights might have been spanned."""
    arrays = {
        name: file_format._array(name, part, part["dtype"])
        for name, part in document["graph"].items()
    }
    edges = np.flatnonzero(arrays["sources"] == 0)
    star = {name: values[edges] for name, values in arrays.items()} | {"edge_ids": edges}
    document["tree"] = json.loads(b"".join(file_format._json(star)))
    document["clustering"] = None


def slightly_less(document):
    """Lower epsilon below the shares, and the shares below the noise, each by little."""
    statement = document["statement"]
    statement["epsilon"] *= 1 - 1.8e-9
    for use in statement["mechanisms"]:
        use["share"] *= 1 - 0.9e-9


def less_twice(document):
    statement = document["statement"]
    statement["epsilon"] *= 1 - 1.8e-12
    for use in statement["mechanisms"]:
        use["share"] *= 1 - 0.9e-12


def called_published(document):
    document["statement"].update(calibration="published", requested_epsilon=0.1)


class TestWhatIsFalseIsRefused:
    CHANGES: ClassVar[dict[str, tuple[str, float, Any, str]]] = {
        "epsilon": ("laplace", 0.0, half_the_epsilon, "its noise spends 1.5"),
        "noise": ("laplace", 0.0, half_the_noise, "its noise spends 3"),
        "noise of a tree": ("kruskal", 0.0, half_the_noise, "its noise spends"),
        "gaussian noise": ("gaussian", 1e-6, half_the_noise, "allow a rho of"),
        "noise, not stated": (
            "laplace",
            0.0,
            lambda document: document["noise"].update(scale=document["noise"]["scale"] / 2),
            r"scale is .*, and the release shows",
        ),
        "sensitivity": ("laplace", 0.0, smaller_sensitivity, "its noise spends 3"),
        "sensitivity of a tree": ("kruskal", 1e-6, smaller_sensitivity, "its noise spends"),
        "no mechanism": ("laplace", 0.0, in_statement(mechanisms=[]), "has no mechanism that did"),
        "no tree": ("kruskal", 0.0, without_the_tree, "lacks the exponent"),
        "exponent": ("kruskal", 0.0, stronger_draw, "its noise spends"),
        "exponent, zCDP": ("pamst", 1e-6, stronger_draw, "its noise spends"),
        "steps": (
            "kruskal",
            0.0,
            lambda document: document["statement"]["mechanisms"][0]["parameters"].update(n_steps=1),
            "parameters is",
        ),
        "shares": ("kruskal", 0.0, one_use_less_of_the_budget, "some are missing"),
        "name": ("laplace", 0.0, in_use(0, name="Magic"), "name is 'Magic'"),
        "purpose": ("laplace", 0.0, in_use(0, purpose="nothing"), "purpose is 'nothing'"),
        "epsilon of rho": ("gaussian", 1e-6, in_statement(epsilon=0.5), "allow a rho of"),
        "delta of rho": ("gaussian", 1e-6, in_statement(delta=1e-9), "allow a rho of"),
        "mechanism": ("kruskal", 0.0, called_laplace, "weights of all edges, and those of a tree"),
        "a tree's": ("laplace", 0.0, called_kruskal, "weights of a tree, and those of all edges"),
        "tree": ("gaussian", 1e-6, another_tree, "not the minimum spanning tree of the noisy"),
        "epsilon, a little": ("laplace", 0.0, slightly_less, "more than the"),
        "epsilon, by two roundings": ("laplace", 0.0, less_twice, "its noise spends"),
        "rho, by two roundings": ("pamst", 1e-6, less_twice, "allow a rho of"),
        "slack": ("kruskal", 0.0, in_statement(numerical_slack=0.0), "the draw of the tree needs"),
        "published": ("kruskal", 0.0, called_published, "the paper's Algorithm 3"),
        "requested epsilon": ("pamst", 0.0, called_published, "requested_epsilon of 0.1"),
        "sentence": (
            "laplace",
            0.0,
            in_statement(sentence="Perfectly anonymous."),
            "sentence is not what follows",
        ),
        "kind": ("laplace", 0.0, in_statement(kind="distance"), "about a distance"),
    }

    @pytest.mark.parametrize("what", CHANGES)
    def test_refused(self, what, tmp_path):
        mechanism, delta, change, message = self.CHANGES[what]
        made = release(mechanism, delta)
        with pytest.raises(FileError, match=message):
            loaded_after(made, change, tmp_path)

    def test_unchanged(self, tmp_path):
        made = release("kruskal")
        assert isinstance(loaded_after(made, lambda _: None, tmp_path), AnyRelease)

    def test_claiming_more_than_is_spent_is_allowed(self, tmp_path):
        def twice(document):
            half = document["statement"]["mechanisms"][0]["share"]
            document["statement"]["mechanisms"][0]["share"] = 2 * half
            document["statement"]["epsilon"] += half

        loaded = loaded_after(release("kruskal"), twice, tmp_path)
        assert loaded.statement.epsilon > 1.5


class Silent(Kruskal):
    """A mechanism from outside that does not tell what its values show."""

    name = "silent"

    def recalibrate(self, *_):
        return None


def test_what_cannot_be_checked_is_said(tmp_path):
    MECHANISMS.register(Silent())
    try:
        made = release("silent")
        with pytest.warns(PrivacyWarning, match="'silent' spends cannot be computed"):
            loaded_after(made, lambda _: None, tmp_path)
    finally:
        MECHANISMS.unregister("silent")
    assert "sensitivity" in " ".join(made.statement.taken_on_trust)
    assert "Not checkable" in made.statement.to_text()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("neighbours", "anything"),
        ("composition_rule", "magic"),
        ("composition", "Nothing adds up."),
        ("protected", ["all there is"]),
        ("not_protected", []),
        ("numerical_slack_words", "None of it."),
    ],
)
def test_words_of_others_are_named(field, value, tmp_path):
    made = release("laplace")
    with pytest.warns(PrivacyWarning, match=f"the words of {field} are not those of ptclust"):
        loaded_after(made, in_statement(**{field: value}), tmp_path)


def test_what_nobody_can_check_is_listed():
    listed = " ".join(release("laplace").statement.taken_on_trust)
    for part in ("whole one", "labels", "kind", "merge", "clip", "exponent", "secret"):
        assert part in listed
