"""The ledger by itself: exact sums, what it refuses, and that no damage goes unseen."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptclust import Budget, Ledger
from ptclust.errors import BudgetError, FileError, UsageError
from ptclust.ledger import Payment
from ptclust.ledger import _file as file
from ptclust.ledger.amounts import Amount, price
from ptclust.ledger.ledger import _look
from ptclust.privacy._numbers import rounded
from tests.ledger.books import PURE, charged, new_id


class TestSums:
    @pytest.mark.parametrize("parts", [3, 7, 10, 11, 49, 250])
    def test_equal_parts_fit_exactly_and_no_more(self, tmp_path, unsynced, parts):
        ledger = Ledger.create(tmp_path / "l")
        ledger.add_dataset("survey", Budget.pure("0.7"))
        part = Budget.pure(Fraction("0.7") / parts)
        charged(ledger, parts, part)
        for one_more in (part, Budget.pure(1e-307)):
            with pytest.raises(BudgetError, match="used up"):
                ledger.charge("survey", one_more, statement_id=new_id())
        (account,) = ledger.status()
        assert (account.spent, account.n_charges) == (account.total, parts)
        assert account.left.amount == 0
        assert ledger.verify() == parts + 1

    @given(
        st.lists(
            st.tuples(st.fractions(0, 1).filter(bool), st.fractions(0, Fraction(1, 100))),
            max_size=12,
        )
    )
    @settings(
        max_examples=25,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    def test_a_charge_is_taken_if_and_only_if_the_exact_sum_fits(self, tmp_path, unsynced, asked):
        ledger = Ledger.create(tmp_path / new_id())
        total = Budget.approximate("5/2", "1/50")
        ledger.add_dataset("survey", total)
        epsilon = delta = Fraction(0)
        for one in asked:
            fits = epsilon + one[0] <= total.epsilon and delta + one[1] <= total.delta
            try:
                account = ledger.charge("survey", Budget.approximate(*one), statement_id=new_id())
            except BudgetError:
                assert not fits
                continue
            assert fits
            epsilon, delta = epsilon + one[0], delta + one[1]
            assert account.spent == Amount("approximate", epsilon, delta)
        assert ledger.status()[0].spent == Amount("approximate", epsilon, delta)
        ledger.verify()

    def test_delta_alone_can_be_used_up(self, tmp_path, unsynced):
        ledger = Ledger.create(tmp_path / "l")
        ledger.add_dataset("survey", Budget.approximate(10, "1e-6"))
        charged(ledger, 1, Budget.approximate(1, "1e-6"))
        with pytest.raises(BudgetError, match="delta = 0 left"):
            charged(ledger, 1, Budget.approximate(1, "1e-12"))
        charged(ledger, 9, Budget.pure(1))

    def test_floats_that_miss_by_a_hair_are_told_why(self, ledger):
        charged(ledger, 9, Budget.pure(0.1))
        with pytest.raises(BudgetError, match=r"rounding error.*Fraction\('0.1'\)"):
            charged(ledger, 1, Budget.pure(0.1))

    def test_datasets_do_not_share(self, ledger):
        ledger.add_dataset("census", Budget.zcdp("1/2"))
        charged(ledger, 1, Budget.pure(1), "census")
        charged(ledger, 1, Budget.pure(1), "survey")
        assert [account.left.amount for account in ledger.status()] == [0, 0]
        assert [account.dataset for account in ledger.status()] == ["survey", "census"]
        assert len(ledger.history()) == 2
        assert [c.dataset for c in ledger.history("census")] == ["census"]

    def test_a_sum_too_long_to_write_is_refused(self, ledger):
        charged(ledger, 1, Budget.pure(Fraction(1, 10**3000 + 1) + Fraction(1, 4)))
        with pytest.raises(UsageError, match="thousands of digits"):
            charged(ledger, 1, Budget.pure(Fraction(1, 10**2000 + 3) + Fraction(1, 4)))
        charged(ledger, 1, Budget.pure("1/4"))
        ledger.verify()


APPROXIMATE, RHO = Budget.approximate(1, 1e-6), Budget.zcdp("1/50")


class TestPrices:
    @pytest.mark.parametrize(
        ("currency", "guarantee", "zcdp", "amount", "delta"),
        [
            ("pure", Budget.pure("1/3"), None, Fraction(1, 3), 0),
            ("approximate", Budget.pure("1/3"), None, Fraction(1, 3), 0),
            ("approximate", APPROXIMATE, None, 1, Fraction(1e-6)),
            ("approximate", APPROXIMATE, RHO, 1, Fraction(1e-6)),
            ("zcdp", Budget.pure("1/3"), None, Fraction(1, 18), 0),
            ("zcdp", APPROXIMATE, RHO, Fraction(1, 50), 0),
            ("zcdp", Budget.approximate(1, 1e-6, zcdp="1/50"), None, Fraction(1, 50), 0),
            ("zcdp", RHO, None, Fraction(1, 50), 0),
        ],
    )
    def test_what_has_a_price(self, currency, guarantee, zcdp, amount, delta):
        assert price(currency, guarantee, zcdp) == Amount(currency, amount, delta)

    @pytest.mark.parametrize(
        ("total", "guarantee", "why"),
        [
            (Budget.pure(9), APPROXIMATE, "no pure guarantee"),
            (Budget.pure(9), RHO, "no pure guarantee"),
            (Budget.approximate(9, 0.1), RHO, "depends on the delta"),
            (Budget.zcdp(9), APPROXIMATE, "implies no zCDP"),
        ],
    )
    def test_what_has_none_is_refused_and_told_why(self, tmp_path, unsynced, total, guarantee, why):
        ledger = Ledger.create(tmp_path / "l")
        ledger.add_dataset("survey", total)
        with pytest.raises(BudgetError, match=why) as caught:
            ledger.charge("survey", guarantee, statement_id=new_id())
        assert caught.value.exit_code == 4
        assert ledger.history() == ()

    @given(st.fractions(0, 10**9).filter(bool))
    def test_shown_numbers_are_never_better_than_the_truth(self, number):
        assert Fraction(rounded(number, up=False)) <= number <= Fraction(rounded(number, up=True))


def test_what_is_left_is_rounded_down_and_what_was_spent_up():
    two_thirds = Amount.of(Budget.pure("2/3"))
    assert str(two_thirds) == "epsilon = 0.666666"
    assert two_thirds.shown(up=True) == "epsilon = 0.666667"


FORGED = Budget.pure(1)

object.__setattr__(FORGED, "amount", Fraction(-5))


class TestRefused:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: Budget.pure(0),
            lambda: Budget.pure(-1),
            lambda: Budget.pure(math.nan),
            lambda: Budget.pure(math.inf),
            lambda: Budget.pure(5e-324),
            lambda: Budget.pure("-1/3"),
            lambda: Budget.approximate(1, -1e-9),
            lambda: Budget.approximate(1, math.nan),
            lambda: Budget.approximate(1, 5e-324),
            lambda: Budget.zcdp(-0.0),
            lambda: 0.5,
            lambda: -1.0,
            lambda: math.nan,
            lambda: "1/2",
            lambda: None,
            lambda: FORGED,
            lambda: pickle.loads(pickle.dumps(FORGED)),
        ],
    )
    def test_spends_and_totals_that_are_none(self, ledger, make):
        before = ledger.path.read_bytes()
        with pytest.raises(UsageError):
            ledger.charge("survey", make(), statement_id=new_id())
        with pytest.raises(UsageError):
            ledger.add_dataset("other", make())
        with pytest.raises(UsageError):
            ledger.preview("survey", make())
        assert ledger.path.read_bytes() == before

    @pytest.mark.parametrize("zcdp", [Budget.pure(1), 0.1, "1"])
    def test_a_rho_that_is_none(self, ledger, zcdp):
        with pytest.raises(UsageError, match="zcdp"):
            ledger.charge("survey", Budget.pure("1/2"), statement_id=new_id(), zcdp=zcdp)

    @pytest.mark.parametrize("name", ["", " ", "two\nlines", "\x1b[2J", "x" * 201, None, 3, b"a"])
    def test_names(self, ledger, name):
        with pytest.raises(UsageError, match="name of a dataset"):
            ledger.add_dataset(name, PURE)
        with pytest.raises(UsageError, match="no dataset"):
            ledger.charge(name, PURE, statement_id=new_id())

    def test_a_taken_name_and_its_total_stay(self, ledger):
        with pytest.raises(UsageError, match="never changed"):
            ledger.add_dataset("survey", Budget.pure(100))
        assert ledger.status()[0].total.amount == 1

    def test_unknown_dataset_lists_those_there_are(self, ledger):
        with pytest.raises(UsageError, match="'survey'"):
            ledger.charge("Survey", PURE, statement_id=new_id())
        with pytest.raises(UsageError, match="no dataset"):
            ledger.history("Survey")

    @pytest.mark.parametrize(
        "statement_id", ["", "release-7", None, 7, "5A91EEDA-AB30-406A-B598-294CA9E4D770"]
    )
    def test_statement_ids(self, ledger, statement_id):
        for call in (ledger.confirm, lambda i: ledger.charge("survey", PURE, statement_id=i)):
            with pytest.raises(UsageError, match="statement_id"):
                call(statement_id)

    def test_a_statement_is_charged_once_and_confirmed_once(self, ledger):
        one = new_id()
        with pytest.raises(UsageError, match="never charged"):
            ledger.confirm(one)
        ledger.charge("survey", Budget.pure("1/4"), statement_id=one)
        with pytest.raises(UsageError, match="charged already"):
            ledger.charge("survey", Budget.pure("1/4"), statement_id=one)
        assert not ledger.history()[0].released
        ledger.confirm(one)
        assert ledger.history()[0].released
        with pytest.raises(UsageError, match="confirmed before"):
            ledger.confirm(one)
        assert ledger.status()[0].n_charges == 1
        ledger.verify()

    @pytest.mark.parametrize("description", ["two\nlines", "x" * 1001, None])
    def test_descriptions(self, ledger, description):
        with pytest.raises(UsageError, match="description"):
            ledger.charge("survey", PURE, statement_id=new_id(), description=description)

    def test_a_refusal_says_what_is_left_and_what_was_asked_and_changes_nothing(self, ledger):
        charged(ledger, 1, Budget.pure("3/4"))
        before = ledger.path.read_bytes()
        with pytest.raises(BudgetError) as caught:
            charged(ledger, 1, Budget.pure("1/2"))
        for words in ("'survey'", "0.25 left of epsilon = 1", "needs epsilon = 0.5"):
            assert words in str(caught.value)
        assert ledger.path.read_bytes() == before


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


class TestNames:
    """Names that look the same are one dataset."""

    @pytest.mark.parametrize(
        ("name", "what"),
        [
            ("sur\u200bvey", "U\\+200B ZERO WIDTH SPACE"),
            ("survey\ufeff", "U\\+FEFF"),
            ("\u202esurvey", "RIGHT-TO-LEFT"),
            ("sur\u00advey", "SOFT HYPHEN"),
            ("my\u00a0survey", "NO-BREAK SPACE"),
            ("my\u3000survey", "IDEOGRAPHIC SPACE"),
            ("my\u2028survey", "LINE SEPARATOR"),
            ("my\u2029survey", "PARAGRAPH SEPARATOR"),
            ("survey\u3164", "HANGUL FILLER"),
            ("survey\ufe0f", "VARIATION SELECTOR"),
            ("survey\ue000", "U\\+E000"),
            ("survey\x00", "control character"),
            (" survey", "begins or ends"),
            ("survey ", "begins or ends"),
            ("my  survey", "two in a row"),
        ],
    )
    def test_what_cannot_be_seen_is_refused(self, ledger, name, what):
        before = ledger.path.read_bytes()
        with pytest.raises(UsageError, match=f"name of a dataset .*{what}"):
            ledger.add_dataset(name, PURE)
        assert ledger.path.read_bytes() == before

    def test_either_form_of_a_letter_is_the_same(self, ledger):
        ledger.add_dataset(DECOMPOSED, PURE)
        assert [account.dataset for account in ledger.status()] == ["survey", COMPOSED]
        for name in (COMPOSED, DECOMPOSED):
            charged(ledger, 1, Budget.pure("1/4"), name)
            assert ledger.preview(name, Budget.pure("1/4")).dataset == COMPOSED
            with pytest.raises(UsageError, match="is there already"):
                ledger.add_dataset(name, PURE)
            assert len(ledger.history(name)) == ledger.account(name).n_charges
        assert Payment.by(ledger, DECOMPOSED).account == ledger.account(COMPOSED)
        assert ledger.account(COMPOSED).left.amount == Fraction(1, 2)
        ledger.verify()

    @pytest.mark.parametrize("name", ["\uff53urvey", "s\u1d58rvey"])
    def test_a_name_in_other_clothes_is_taken(self, ledger, name):
        with pytest.raises(UsageError, match=r"'survey', which looks like .*is there already"):
            ledger.add_dataset(name, PURE)

    def test_names_that_differ_are_free(self, ledger):
        for name in (
            "Survey",
            "survey 2",
            "\u8abf\u67fb",
            "\u0627\u0633\u062a\u0628\u064a\u0627\u0646",
        ):
            ledger.add_dataset(name, PURE)
            charged(ledger, 1, Budget.pure("1/4"), name)

    @pytest.mark.parametrize("name", [DECOMPOSED, " survey", "sur\u200bvey", "my\u00a0survey"])
    def test_odd_names_of_old_ledgers_stay_usable(self, tmp_path, unsynced, name):
        ledger = Ledger.create(tmp_path / "old")
        with file.transaction(ledger.path, write=True) as (connection, log):
            file.append(connection, log, "dataset", name, Amount.of(PURE))
        charged(Ledger.open(ledger.path), 1, Budget.pure("1/4"), name)
        assert [charge.dataset for charge in ledger.history(name)] == [name]
        with pytest.raises(UsageError, match="looks like"):
            ledger.add_dataset(_look(name), PURE)
        assert ledger.verify() == 2


class TestTimes:
    def test_are_hours(self, ledger):
        """The time from charge to confirmation would tell how long the weights kept a run busy."""
        one = new_id()
        ledger.charge("survey", Budget.pure("1/4"), statement_id=one)
        ledger.confirm(one)
        with file.transaction(ledger.path) as (connection, _):
            times = connection.execute("SELECT time FROM entry").fetchall()
        assert len(times) == 3
        for (time,) in times:
            hour = datetime.fromisoformat(time)
            assert hour == hour.replace(minute=0, second=0, microsecond=0)
            assert timedelta(0) <= datetime.now(UTC) - hour < timedelta(hours=1, minutes=1)

    def test_with_seconds_stay_readable(self, ledger, monkeypatch):
        class Then:
            @staticmethod
            def now(_zone):
                return Then()

            def replace(self, **_):
                return self

            def isoformat(self):
                return "2025-01-31T12:34:56+00:00"

        monkeypatch.setattr(file, "datetime", Then)
        charged(ledger, 1, Budget.pure("1/4"))
        monkeypatch.undo()
        assert Ledger.open(ledger.path).history()[0].time == "2025-01-31T12:34:56+00:00"


@pytest.mark.parametrize("length", [230, 247, 248, 256])
def test_a_long_name(tmp_path, length):
    """SQLite's journal beside the ledger has a longer name."""
    path = tmp_path / ("x" * length)
    if length <= 247:
        Ledger.create(path).add_dataset("survey", Budget.pure(1))
        assert Ledger.open(path).status()[0].dataset == "survey"
    else:
        with pytest.raises(FileError, match="File name too long"):
            Ledger.create(path)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [["--dataset", " d"], ["--dataset", "d", "--rho", "0"]])
def test_nothing_is_left_behind_by_an_account_that_cannot_be(run, tmp_path, options):
    total = [] if "--rho" in options else ["--epsilon", "1"]
    assert run("ledger", "init", "new.ledger", *options, *total)[0] == 2
    assert not list(tmp_path.iterdir())


def test_init_says_how_to_charge(run):
    err = run("ledger", "init", "my ledger", "--dataset", "a survey", "--epsilon", "1")[2]
    assert "charge it by: cluster --ledger 'my ledger' --dataset 'a survey'" in err
