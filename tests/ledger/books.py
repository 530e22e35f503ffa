"""Ledgers for tests."""

from __future__ import annotations

from uuid import uuid4

from ptclust import Budget, Ledger

PURE = Budget.pure(1)


def new_id() -> str:
    return str(uuid4())


def charged(ledger: Ledger, count: int, part: Budget, dataset: str = "survey") -> Ledger:
    for _ in range(count):
        ledger.charge(dataset, part, statement_id=new_id())
    return ledger
