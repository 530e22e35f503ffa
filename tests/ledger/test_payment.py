"""Paying: a refused charge draws nothing; after a charge nothing is withheld."""

from __future__ import annotations

import warnings
from uuid import uuid4

import numpy as np
import pytest

from ptclust import Budget, Graph, Ledger, PTClust, Sensitivity, private_spanning_tree
from ptclust.errors import BudgetError, FileError, PrivacyWarning, UsageError
from ptclust.ledger import Payment
from ptclust.mechanisms import MECHANISMS
from ptclust.pipeline import ReleaseRequest, publish

OPTIONS = {"epsilon": 1, "delta": 1e-6, "sensitivity": Sensitivity(linf=1e-5)}
GRAPH = Graph(range(11), range(1, 12), np.random.default_rng(0).uniform(0.1, 1, 11))


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    made = Ledger.create(tmp_path / "ledger")
    made.add_dataset("survey", Budget.approximate(2, 1e-3))
    return made


def fit(ledger, mechanism):
    model = PTClust(
        **OPTIONS, mechanism=mechanism, privacy_unit="one", ledger=ledger, dataset="survey"
    ).fit(GRAPH)
    assert len(model.labels_) == 12
    assert model.release_.clustering is not None
    return model.release_.tree


def tree_alone(ledger, mechanism):
    return private_spanning_tree(
        GRAPH, **OPTIONS, mechanism=mechanism, ledger=ledger, dataset="survey"
    )


def published(ledger, mechanism):
    request = ReleaseRequest(
        **OPTIONS,
        mechanism=mechanism,
        privacy_unit="one",
        payment=Payment.by(ledger, "survey"),
    )
    return publish(GRAPH, request).tree


WAYS_TO_PAY = pytest.mark.parametrize("pay", [fit, tree_alone, published])
EACH = pytest.mark.parametrize("mechanism", MECHANISMS.names)


def unwritable(ledger, monkeypatch):
    def fail(*_args):
        raise FileError("disk full")

    monkeypatch.setattr(Ledger, "confirm", fail)
    return "disk full"


def removed(ledger, monkeypatch):
    """The file is gone once the charge was made."""
    charge = Ledger.charge

    def then_remove(self, *args, **options):
        charge(self, *args, **options)
        ledger.path.unlink()

    monkeypatch.setattr(Ledger, "charge", then_remove)
    return "there is no ledger"


def replaced(ledger, monkeypatch):
    """An older copy of the ledger takes its place once the charge was made."""
    charge, before = Ledger.charge, ledger.path.read_bytes()

    def then_replace(self, *args, **options):
        charge(self, *args, **options)
        ledger.path.write_bytes(before)

    monkeypatch.setattr(Ledger, "charge", then_replace)
    return "never charged to this ledger"


class TestConfirming:
    @WAYS_TO_PAY
    @pytest.mark.parametrize("trouble", [unwritable, removed, replaced])
    def test_a_note_that_fails_is_a_warning_and_what_was_paid_for_is_kept(
        self, ledger, monkeypatch, pay, trouble
    ):
        words = trouble(ledger, monkeypatch)
        expected = rf"charged and is handed over, but confirming that failed: .*{words}"
        with pytest.warns(PrivacyWarning, match=expected) as caught:
            tree = pay(ledger, "kruskal")
        assert tree.n_edges == 11
        assert [warning.filename for warning in caught] == [__file__]

    def test_the_charge_stands(self, ledger, monkeypatch):
        unwritable(ledger, monkeypatch)
        with pytest.warns(PrivacyWarning, match="disk full"):
            fit(ledger, "kruskal")
        assert [charge.released for charge in ledger.history()] == [False]
        assert ledger.status()[0].spent.amount == 1

    @WAYS_TO_PAY
    @EACH
    def test_without_trouble_it_is_noted_and_nothing_is_said(self, ledger, pay, mechanism):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pay(ledger, mechanism)
        assert [charge.released for charge in ledger.history()] == [True]


class TestRefusing:
    @WAYS_TO_PAY
    @EACH
    def test_a_refused_charge_draws_nothing(self, ledger, monkeypatch, pay, mechanism):
        ledger.charge("survey", Budget.pure("3/2"), statement_id=str(uuid4()))
        before = ledger.path.read_bytes()

        def drawn(*_args, **_options):
            raise AssertionError("something was drawn")

        for each in MECHANISMS:
            for name in ("draw", "draw_tree"):
                monkeypatch.setattr(type(each), name, drawn)
        monkeypatch.setattr("ptclust.privacy.randomness.RandomStream.of", drawn)
        with pytest.raises(BudgetError, match=r"epsilon = 0\.5"):
            pay(ledger, mechanism)
        assert ledger.path.read_bytes() == before

    def test_what_can_never_be_charged(self, ledger):
        for arguments in ((ledger, None), (None, "survey")):
            with pytest.raises(UsageError, match="both ledger= and dataset="):
                Payment.by(*arguments)
        with pytest.raises(UsageError, match="not private"):
            Payment.by(ledger, "survey", 7)
        with pytest.raises(FileError, match="there is no ledger"):
            Payment.by(ledger.path.with_name("none"), "survey")


def test_nobody_pays_for_a_release_without_a_ledger():
    nobody = Payment.by(None, None, 7)
    nobody.charge(Budget.pure(1), statement_id="", description="")
    nobody.confirm("")
    assert nobody.preview(Budget.pure(1)) is None
    assert nobody.account is None


def test_a_preview_charges_nothing_and_the_account_is_that_of_the_dataset(ledger):
    ledger.add_dataset("other", Budget.pure(9))
    payment, before = Payment.by(str(ledger.path), "survey"), ledger.path.read_bytes()
    assert payment.preview(Budget.approximate(1, 1e-6)).left.amount == 1
    with pytest.raises(BudgetError):
        payment.preview(Budget.pure(3))
    assert payment.account == ledger.status()[0]
    assert ledger.path.read_bytes() == before
