"""Release files that somebody wrote: a clear FileError, or a release that can be used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ptclust.errors import FileError, PtclustError
from ptclust.release import Release
from ptclust.release.format import _digest
from ptclust.report import report_page
from tests.robustness.corpus import seeds

ODD = [
    *(None, True, {}, [], "", "\x1b[2J", "\ud800", "a" * 10**5, [None], {"a": 1}),
    *(-1, 0, 2, 2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 2**2000, 0.5, 1e308, -0.0),
]


def leaves(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values of a document, and of all lists and objects in it."""
    found = [path] if path else []
    parts: Any = document if isinstance(document, dict) else {}
    if isinstance(document, list):
        parts = dict(enumerate(document))
    return found + [place for key, part in parts.items() for place in leaves(part, (*path, key))]


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    again = json.loads(json.dumps(document))
    part = again
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    if path != ("digest",):
        again["digest"] = _digest(again)
    return again


def load(document: Any, folder: Any) -> Release:
    (folder / "forged.json").write_text(json.dumps(document))
    return Release.load(folder / "forged.json")


def documents() -> list[Any]:
    return [json.loads(content) for content in seeds("release") if content[:1] == b"{"]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("noise", "n_values"), 2**63, "the number of values must be"),
        (("nodes", "names", 0), "\ud800", "lone surrogate"),
        (("statement", "protected"), {}, "protected must be a list of texts"),
        (("statement", "schema_version"), True, "schema_version must be"),
        (("clustering", "clusterer"), "\x1b[2J", "clusterer holds a control character"),
    ],
)
def test_what_was_found(path, value, said, tmp_path):
    document = next(each for each in documents() if each["nodes"]["names"] and each["clustering"])
    with pytest.raises(FileError, match=said):
        load(changed(document, path, value), tmp_path)


@pytest.mark.filterwarnings("ignore::ptclust.errors.PrivacyWarning")
@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.long)])
def test_any_value_in_any_place(number, tmp_path):
    document = documents()[number]
    accepted, said = 0, []
    for path in leaves(document):
        for value in ODD:
            try:
                release = load(changed(document, path, value), tmp_path)
            except FileError as error:
                said.append(str(error))
                continue
            accepted += 1
            try:
                texts = [repr(release), release.statement.to_text()]
                texts += [report_page(release)] if isinstance(value, str) else []
                release.to_csv(tmp_path / "labels.csv", overwrite=True)
                release.save(tmp_path / "again.json", overwrite=True)
            except PtclustError:
                continue
            assert all("\x1b" not in text and text.encode() for text in texts), path
    assert accepted
    assert max(map(len, said)) < 1000
    assert "\x1b" not in "".join(said)
