"""Fixtures for all tests."""

from __future__ import annotations

import sys

import pytest
from hypothesis import settings

from ptclust import cli

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
