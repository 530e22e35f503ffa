"""The package gives what it gave: trees, noise, labels, plans, statements, charges by seeds."""

from __future__ import annotations

import gzip
import json
import math

import pytest

from tests.golden.graphs import GRAPHS
from tests.golden.record import FILE, record

_LAST_DIGITS = 1e-12
"""Relative difference that another processor's logarithms may make; whole numbers never differ."""


@pytest.fixture(scope="module")
def golden():
    return json.loads(gzip.decompress(FILE.read_bytes()))


@pytest.mark.parametrize("name", GRAPHS)
def test_nothing_has_changed(name, golden):
    now = json.loads(json.dumps(record([name])[name]))
    assert list(differences(golden[name], now, name)) == []


def differences(before, now, where):
    """Yield where two records differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before.keys() | now.keys():
            yield from differences(before.get(key), now.get(key), f"{where} / {key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{where} [{i}]")
    elif isinstance(before, float) and isinstance(now, float):
        if not math.isclose(before, now, rel_tol=_LAST_DIGITS, abs_tol=0.0):
            yield f"{where}: {before!r} became {now!r}"
    elif before != now:
        yield f"{where}: {before!r} became {now!r}"


def test_a_difference_is_found():
    before = {"a": [1, 2.0], "b": "x"}
    assert not list(differences(before, {"a": [1, 2.0], "b": "x"}, ""))
    for now in ({"a": [2, 2.0], "b": "x"}, {"a": [1, 2.0 + 1e-9], "b": "x"}, {"a": [1, 2.0]}):
        assert list(differences(before, now, ""))
