"""The ledger by itself: exact sums, what it refuses, and that no damage goes unseen."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
import signal
import sqlite3
import threading
import warnings
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptclust import Budget, Ledger
from ptclust.errors import BudgetError, FileError, UsageError
from ptclust.ledger import Payment
from ptclust.ledger import _file as file
from ptclust.ledger.amounts import Amount, exactly_read, price
from ptclust.ledger.ledger import _look
from ptclust.privacy._numbers import rounded

PURE = Budget.pure(1)


def new_id() -> str:
    return str(uuid4())


@pytest.fixture
def unsynced(monkeypatch):
    """Do not wait for the disk, where a test is about sums."""
    monkeypatch.setattr(file, "_SETTINGS", ("synchronous = OFF", "trusted_schema = OFF"))


@pytest.fixture
def ledger(tmp_path, unsynced) -> Ledger:
    made = Ledger.create(tmp_path / "spent.ledger")
    made.add_dataset("survey", PURE)
    return made


def charged(ledger: Ledger, count: int, part: Budget, dataset: str = "survey") -> Ledger:
    for _ in range(count):
        ledger.charge(dataset, part, statement_id=new_id())
    return ledger


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
object.__setattr__(FORGED, "_amount", Fraction(-5))


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
        with file.transaction(ledger.path, write=True) as connection:
            amount = Amount.of(PURE)
            number = file.append(connection, "dataset", name, "", amount)
            file.open_account(connection, name, number, amount)
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
        with file.transaction(ledger.path) as connection:
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


def foreign(statements: str):
    def make(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.executescript(statements)
        connection.close()

    return make


def charged_ledger(path: Path) -> Ledger:
    ledger = Ledger.create(path)
    ledger.add_dataset("survey", PURE)
    return charged(ledger, 4, Budget.pure("1/10"))


def tampered(statements: str):
    """Change a good ledger behind its back: without its triggers, which are put back afterwards."""

    def make(path: Path) -> None:
        if not path.exists():
            charged_ledger(path)
        connection = sqlite3.connect(path)
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.executescript(statements)
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()
        connection.close()

    return make


def truncated(path: Path) -> None:
    tampered("")(path)
    path.write_bytes(path.read_bytes()[:-4096])


def unreadable(path: Path) -> None:
    """SQLite quotes the damage in its message, and the message is no text any more."""
    tampered("")(path)
    content = path.read_bytes()
    assert b"CREATE TABLE head" in content
    path.write_bytes(content.replace(b"CREATE TABLE head", b"CREATE TABL\xc5 head"))


REFUSED = {
    "a letter that is none": (unreadable, "damaged"),
    "nothing there": (lambda path: None, "there is no ledger"),
    "a directory": (lambda path: path.mkdir(), "there is no ledger"),
    "an empty file": (lambda path: path.touch(), "not a ledger"),
    "text": (lambda path: path.write_text("epsilon = 1\n" * 99), "no ledger"),
    "another database": (foreign("CREATE TABLE t (a)"), "not a ledger"),
    "another version": (tampered("PRAGMA user_version = 2"), "version 2"),
    "another program's": (tampered("PRAGMA application_id = 7"), "not a ledger"),
    "a table more": (tampered("CREATE TABLE t (a)"), "changed by another program"),
    "a trigger less": (tampered("DROP INDEX one_event_a_statement"), "changed by another program"),
    "in WAL mode": (tampered("PRAGMA journal_mode = WAL"), "changed by another program"),
    "truncated": (truncated, "damaged"),
    "an amount": (tampered("UPDATE entry SET amount = '1/20' WHERE number = 3"), "entry 3"),
    "a total": (
        tampered("UPDATE entry SET amount = '9' WHERE number = 1; UPDATE account SET total = '9'"),
        "entry 1",
    ),
    "a dataset": (tampered("UPDATE entry SET dataset = 'x' WHERE number = 3"), "entry 3"),
    "a description": (tampered("UPDATE entry SET description = 'x' WHERE number = 3"), "entry 3"),
    "a time": (tampered("UPDATE entry SET time = '' WHERE number = 3"), "entry 3"),
    "deleted in the middle": (tampered("DELETE FROM entry WHERE number = 3"), "entry 3"),
    "deleted and renumbered": (
        tampered(
            "DELETE FROM entry WHERE number = 3;"
            "UPDATE entry SET number = number - 1 WHERE number > 3"
        ),
        "entry 3",
    ),
    "deleted at the end": (tampered("DELETE FROM entry WHERE number = 5"), "head counts 5"),
    "deleted at the end, head too": (
        tampered(
            "DELETE FROM entry WHERE number = 5;"
            "UPDATE head SET n_entries = 4, digest = (SELECT digest FROM entry WHERE number = 4)"
        ),
        "not the sums",
    ),
    "reordered": (
        tampered(
            "UPDATE entry SET number = 99 WHERE number = 3;"
            "UPDATE entry SET number = 3 WHERE number = 4;"
            "UPDATE entry SET number = 4 WHERE number = 99"
        ),
        "entry 3",
    ),
    "spent": (tampered("UPDATE account SET spent = '0'"), "not the sums"),
    "the total of the account": (tampered("UPDATE account SET total = '7'"), "not the sums"),
    "the number of charges": (tampered("UPDATE account SET n_charges = 0"), "not the sums"),
    "an account": (tampered("DELETE FROM account"), "not the sums"),
    "no head": (tampered("DELETE FROM head"), "head is missing"),
    "a number that is none": (tampered("UPDATE account SET spent = '-1'"), "number"),
    "a number by zero": (tampered("UPDATE account SET spent = '1/0'"), "number"),
}


#: What is changed in a good ledger, and its tables are as before.
TAMPERED = [
    what for what, (_, why) in REFUSED.items() if why[:5] in ("entry", "head ", "not t", "numbe")
]


class TestDamage:
    def test_an_entry_with_a_new_digest_of_its_own_does_not_fit_the_next(self, ledger):
        charged(ledger, 4, Budget.pure("1/10"))
        with file.transaction(ledger.path) as connection:
            rows = connection.execute("SELECT * FROM entry ORDER BY number").fetchall()
        changed = file.Entry(*rows[2][1:-1])._replace(description="somebody else's")
        digest = changed.digest(3, rows[1][-1])
        rewritten = f"UPDATE entry SET description = ?, digest = '{digest}' WHERE number = 3"
        connection = sqlite3.connect(ledger.path)
        trigger = "entry_is_never_changed"
        (sql,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = ?", (trigger,)
        ).fetchone()
        connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(rewritten, (changed.description,))
        connection.execute(sql)
        connection.commit()
        connection.close()
        with pytest.raises(FileError, match="entry 4"):
            ledger.verify()

    @pytest.mark.parametrize("what", REFUSED)
    def test_foreign_and_changed_files_are_refused_and_left_as_they_are(
        self, tmp_path, unsynced, what
    ):
        make, why = REFUSED[what]
        path = tmp_path / "l"
        make(path)
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(FileError, match=why):
            Ledger.open(path)
        assert (path.read_bytes() if path.is_file() else None) == before

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("what", TAMPERED)
    def test_an_open_ledger_sees_what_is_changed_behind_its_back(
        self, tmp_path, unsynced, what, known
    ):
        """Whether this process has verified the file before, or another one has."""
        make, why = REFUSED[what]
        ledger = charged_ledger(tmp_path / "l")
        one = ledger.history()[-1].statement_id
        make(ledger.path)
        if not known:
            file._verified.clear()
        before = ledger.path.read_bytes()
        for call in (
            lambda: charged(ledger, 1, Budget.pure("1/99")),
            lambda: ledger.confirm(one),
            lambda: ledger.add_dataset("other", PURE),
            lambda: ledger.preview("survey", PURE),
            ledger.status,
            ledger.history,
        ):
            with pytest.raises(FileError, match=why):
                call()
        assert ledger.path.read_bytes() == before

    def test_the_tampering_above_is_what_is_refused(self, tmp_path, unsynced):
        tampered("")(tmp_path / "l")
        assert Ledger.open(tmp_path / "l").verify() == 5

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE entry SET amount = '0'",
            "DELETE FROM entry",
            "INSERT INTO entry SELECT number + 7, event, dataset, '', kind, amount, delta, "
            "'', '', '' FROM entry",
            "UPDATE account SET total = '9'",
            "DELETE FROM account",
        ],
    )
    def test_what_was_written_stays_written(self, ledger, statement):
        with sqlite3.connect(ledger.path) as connection, pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        connection.close()

    def test_every_flipped_byte_is_refused_or_means_nothing(self, ledger, tmp_path):
        charged(ledger, 12, Budget.pure("1/99"))
        good, path = ledger.path.read_bytes(), tmp_path / "flipped"
        told = ledger.status(), ledger.history()
        chance, refused = random.Random(5), 0
        for _ in range(250):
            place = chance.randrange(len(good))
            flipped = bytearray(good)
            flipped[place] ^= 1 << chance.randrange(8)
            path.write_bytes(flipped)
            try:
                opened = Ledger.open(path)
            except FileError:
                refused += 1
            else:
                assert (opened.status(), opened.history()) == told, place
        assert refused > 25

    @pytest.mark.parametrize(
        "text", ["", "-1", "1/0", "2/4", "01", "1.5", "1/1", "x", "1" * 5000, 3, None, "٣"]
    )
    def test_only_numbers_as_written_are_read(self, text):
        with pytest.raises(FileError, match="number"):
            exactly_read(text)


class TestFiles:
    def test_a_ledger_is_one_file(self, ledger, tmp_path):
        charged(ledger, 3, Budget.pure("1/9"))
        assert [p.name for p in tmp_path.iterdir()] == ["spent.ledger"]

    def test_a_ledger_never_takes_the_place_of_a_file(self, ledger, tmp_path):
        before = ledger.path.read_bytes()
        with pytest.raises(FileError, match="never overwritten"):
            Ledger.create(ledger.path)
        assert ledger.path.read_bytes() == before
        assert len(list(tmp_path.iterdir())) == 1
        with pytest.raises(FileError, match="does not exist"):
            Ledger.create(tmp_path / "missing" / "l")

    def test_copies_pickles_and_with_lead_to_the_same_file(self, ledger, tmp_path, monkeypatch):
        with Ledger.open(ledger.path) as opened:
            for other in (opened, copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
                charged(other, 1, Budget.pure("1/9"))
                assert other == ledger
        monkeypatch.chdir(tmp_path)
        relative = Ledger.open("spent.ledger")
        monkeypatch.chdir("/")
        assert relative.status()[0].n_charges == 3

    def test_a_full_disk_is_told_and_nothing_is_charged(self, ledger, monkeypatch):
        pages = ledger.path.stat().st_size // 4096
        monkeypatch.setattr(file, "_SETTINGS", (f"max_page_count = {pages}",))
        with pytest.raises(FileError, match="disk is full"):
            charged(ledger, 1000, Budget.pure("1/9999"))
        monkeypatch.undo()
        assert 0 < len(ledger.history()) == ledger.status()[0].n_charges < 1000
        charged(ledger, 1, Budget.pure("1/9999"))
        ledger.verify()

    def test_a_ledger_in_use_is_told_after_a_while(self, ledger, monkeypatch):
        monkeypatch.setattr(file, "_PATIENCE_SECONDS", 0.01)
        monkeypatch.setattr(file, "_NAP_SECONDS", 0.01)
        other = sqlite3.connect(ledger.path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(FileError, match="in use"):
            charged(ledger, 1, Budget.pure("1/9"))
        other.execute("ROLLBACK")
        other.execute("BEGIN")
        other.execute("SELECT * FROM head").fetchall()  # a reader holds up the commit
        with pytest.raises(FileError, match="in use"):
            charged(ledger, 1, Budget.pure("1/9"))
        other.close()
        assert ledger.history() == ()
        charged(ledger, 1, Budget.pure("1/9"))

    def test_a_charge_waits_for_the_disk(self, tmp_path, monkeypatch):
        """Without EXTRA a power cut may undo a charge whose release is out."""
        ledger = Ledger.create(tmp_path / "l")
        with file.transaction(ledger.path) as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)

    def test_a_backup_that_was_put_back_is_read_from_the_start(self, ledger):
        """What this process has verified before does not count for another content."""
        before = ledger.path.read_bytes()
        charged(ledger, 2, Budget.pure("1/9"))
        ledger.path.write_bytes(before)
        charged(ledger, 1, Budget.pure("1/2"))
        assert ledger.status()[0].spent.amount == Fraction(1, 2)
        assert ledger.verify() == 2

    def test_threads_share_a_ledger(self, ledger):
        got: list[int] = []

        def spend() -> None:
            for _ in range(20):
                try:
                    charged(ledger, 1, Budget.pure("1/30"))
                except BudgetError:
                    continue
                got.append(1)

        threads = [threading.Thread(target=spend) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == ledger.status()[0].n_charges == 30
        ledger.verify()


def killed_before(statement: int, ledger: Ledger) -> bool:
    """Charge in a process that is killed at its n-th SQL statement; return whether it was."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # fork beside the threads of the test runner
        child = os.fork()
    if child == 0:
        connect, seen = file._connect, [0]

        def count(_sql: str) -> None:
            seen[0] += 1
            if seen[0] == statement:
                os.kill(os.getpid(), signal.SIGKILL)

        def traced(path, mode):
            connection = connect(path, mode)
            connection.set_trace_callback(count)
            return connection

        file._connect = traced
        try:
            ledger.charge("survey", Budget.pure("1/99"), statement_id=new_id())
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def test_killed_before_any_statement_of_a_charge_the_ledger_is_as_before(ledger):
    statement, n_entries = 1, ledger.verify()
    while killed_before(statement, ledger):
        assert ledger.verify() == n_entries
        statement += 1
    assert statement > 8
    assert ledger.verify() == n_entries + 1


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
