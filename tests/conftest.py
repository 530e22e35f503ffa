"""Fixtures for all tests."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import settings

from ptclust import PTClust, cli
from ptclust.mechanisms import MECHANISMS

settings.register_profile("ptclust", deadline=None)  # timing never decides a test
settings.load_profile("ptclust")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in this process; return exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["ptclust", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out = capsys.readouterr()
        return stop.value.code or 0, out.out, out.err

    return call


@pytest.fixture
def spending(monkeypatch):
    """What was released so far: nothing else looks at private weights."""
    found: list[str] = []
    # With doctests, pytest may import a module twice: the registry that the estimator sees counts.
    plan_of = PTClust.fit.__globals__["make_plan"].__globals__["MECHANISMS"]
    for mechanism in {*plan_of, *MECHANISMS}:

        def counted(*arguments: Any, drawn: Any = mechanism.draw, **options: Any) -> Any:
            found.append("spent")
            return drawn(*arguments, **options)

        monkeypatch.setattr(mechanism, "draw", counted)
    return found
