"""Many processes at once, kill -9 at random instants; `make ledger-stress` does it in full."""

from __future__ import annotations

import pytest

from experiments import ledger_stress as stress
from experiments.ledger_stress import BrokenPromiseError
from ptclust import Budget, Graph, Ledger, PTClust, Sensitivity


def test_processes_at_once_spend_no_more_than_there_is(tmp_path):
    got = stress.race(tmp_path / "l", processes=4, attempts=60, admitted=150)
    assert sum(got) == 150


def test_killed_while_charging(tmp_path):
    result = stress.kill_chargers(tmp_path / "l", 3, seed=1)
    assert result.outcomes.total() == 3


def test_killed_while_releasing(tmp_path):
    result = stress.kill_releases(tmp_path, 2, seed=1)
    assert result.outcomes.total() == 2


def test_the_stress_finds_a_ledger_that_overspends(tmp_path, monkeypatch):
    monkeypatch.setattr(Ledger, "charge", lambda self, *_args, **_options: self.status()[0])
    with pytest.raises(BrokenPromiseError):
        stress.shares_fit(tmp_path / "l", 3)


def test_the_stress_finds_a_release_that_was_never_charged(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.add_dataset("stress", Budget.pure(1))
    model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-5), ledger=ledger, dataset="stress")
    model.fit(Graph([0, 1], [1, 2], [0.1, 0.2])).release_.save(tmp_path / "a.json")
    assert stress._checked(ledger, tmp_path, "*.json") == 1
    model.set_params(ledger=None, dataset=None).fit(Graph([0, 1], [1, 2], [0.1, 0.2]))
    for name in ("b.json", ".b.json"):
        model.release_.save(tmp_path / name)
        with pytest.raises(BrokenPromiseError, match="never charged"):
            stress._checked(ledger, tmp_path, "a.json" if name.startswith(".") else name)
        (tmp_path / name).unlink()


@pytest.mark.long
def test_processes_at_once_in_full(tmp_path):
    assert sum(stress.race(tmp_path / "l", processes=8, attempts=2000, admitted=5000)) == 5000


@pytest.mark.long
def test_killed_while_charging_in_full(tmp_path):
    assert stress.kill_chargers(tmp_path / "l", 200, seed=0).journals > 0


@pytest.mark.long
def test_killed_while_releasing_in_full(tmp_path):
    outcomes = stress.kill_releases(tmp_path, 200, seed=0).outcomes
    assert {"before the charge", "between charge and release"} <= set(outcomes)
