"""The command line of the experiments."""

from __future__ import annotations

import sys

import pytest

from experiments.__main__ import app
from ptclust import cli


@pytest.fixture
def run_experiment(monkeypatch, capsys, tmp_path):
    """Run ``python -m experiments`` in this process; return exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["experiments", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main(app, "experiments")
        out = capsys.readouterr()
        return stop.value.code or 0, out.out, out.err

    return call
