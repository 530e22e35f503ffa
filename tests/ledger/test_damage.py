"""Damaged, foreign and interrupted ledger files are refused or whole."""

from __future__ import annotations

import copy
import os
import pickle
import random
import signal
import sqlite3
import threading
import warnings
from fractions import Fraction
from pathlib import Path

import pytest

from ptclust import Budget, Ledger
from ptclust.errors import BudgetError, FileError
from ptclust.ledger import _file as file
from ptclust.ledger.amounts import exactly_read
from tests.ledger.books import PURE, charged, new_id


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
        with file.transaction(ledger.path) as (connection, _):
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
        with file.transaction(ledger.path) as (connection, _):
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
