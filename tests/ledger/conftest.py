"""Fixtures of ledgers."""

from __future__ import annotations

import pytest

from ptclust import Ledger
from ptclust.ledger import _file as file
from tests.ledger.books import PURE


@pytest.fixture
def unsynced(monkeypatch):
    """Do not wait for the disk, where a test is about sums."""
    monkeypatch.setattr(file, "_SETTINGS", ("synchronous = OFF", "trusted_schema = OFF"))


@pytest.fixture
def ledger(tmp_path, unsynced) -> Ledger:
    made = Ledger.create(tmp_path / "spent.ledger")
    made.add_dataset("survey", PURE)
    return made
