"""The file of a ledger: a SQLite database of one append-only log, and the sums of that log.

The log is the truth. Every entry holds a SHA-256 digest over itself and the entry before it;
``head`` counts the entries and holds the last digest, ``account`` the running sums. Every
transaction begins by reading the log from the start, and refuses a file in which anything of this
does not agree.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple, NoReturn
from uuid import uuid4

from ptclust._files import check_writable, temporary_name
from ptclust.errors import FileError
from ptclust.ledger.amounts import Account, Amount
from ptclust.privacy.budget import Kind

APPLICATION_ID = 0x50544C47  # "PTLG": what file(1) and we know the file by
VERSION = 1
_PATIENCE_SECONDS = 120.0  # how long to wait for other processes; a charge takes milliseconds
_NAP_SECONDS = 0.5  # SQLite waits this long at a time; between two waits Python can hear Ctrl-C
# EXTRA also syncs the directory after the journal is deleted: else a power cut could bring the
# journal back, and with it undo a charge whose release is out.
_SETTINGS = ("synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF")

_REPAIR = "it is not repaired here: take it from a backup and add what was charged since"

# Types are checked by hand: STRICT tables need a newer SQLite than some Python 3.11 come with.
_TABLES = (
    """CREATE TABLE entry (
    number INTEGER PRIMARY KEY,
    event TEXT NOT NULL CHECK (event IN ('dataset', 'charge', 'released')),
    dataset TEXT NOT NULL CHECK (typeof(dataset) = 'text'),
    statement TEXT NOT NULL CHECK (typeof(statement) = 'text'),
    kind TEXT NOT NULL CHECK (kind IN ('pure', 'approximate', 'zcdp')),
    amount TEXT NOT NULL CHECK (typeof(amount) = 'text'),
    delta TEXT NOT NULL CHECK (typeof(delta) = 'text'),
    description TEXT NOT NULL CHECK (typeof(description) = 'text'),
    time TEXT NOT NULL CHECK (typeof(time) = 'text'),
    digest TEXT NOT NULL CHECK (typeof(digest) = 'text')
)""",
    """CREATE TABLE account (
    dataset TEXT PRIMARY KEY NOT NULL,
    opened INTEGER NOT NULL,
    kind TEXT NOT NULL,
    total TEXT NOT NULL,
    total_delta TEXT NOT NULL,
    spent TEXT NOT NULL,
    spent_delta TEXT NOT NULL,
    n_charges INTEGER NOT NULL
) WITHOUT ROWID""",
    """CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    ledger TEXT NOT NULL,
    n_entries INTEGER NOT NULL,
    digest TEXT NOT NULL
)""",
    "CREATE UNIQUE INDEX one_event_a_statement ON entry (statement, event) "
    "WHERE event <> 'dataset'",
    """CREATE TRIGGER entry_is_never_changed BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    """CREATE TRIGGER entry_is_never_deleted BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    """CREATE TRIGGER entry_comes_last BEFORE INSERT ON entry
WHEN NEW.number IS NOT (SELECT n_entries + 1 FROM head)
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    "CREATE TRIGGER total_is_never_changed BEFORE UPDATE OF dataset, opened, kind, total, "
    """total_delta ON account
BEGIN SELECT RAISE(ABORT, 'the total of a dataset is never changed'); END""",
    """CREATE TRIGGER account_is_never_deleted BEFORE DELETE ON account
BEGIN SELECT RAISE(ABORT, 'the account of a dataset is never deleted'); END""",
)


class Entry(NamedTuple):
    """One line of the log: a dataset with its total, a charge, or that its release is out."""

    event: str
    dataset: str
    statement: str
    kind: Kind
    amount: str
    delta: str
    description: str
    time: str

    def digest(self, number: int, before: str) -> str:
        """Return the digest that ties this entry to the one before."""
        content = json.dumps([before, number, *self], separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()


def create(path: Path) -> None:
    """Make an empty ledger; it appears complete or not at all, and never replaces a file."""
    check_writable(path)
    check_writable(Path(f"{path}-journal"))  # SQLite's, beside it
    temporary = temporary_name(path)
    ledger = str(uuid4())
    try:
        with closing(_connect(temporary, "rwc")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _TABLES:
                connection.execute(statement)
            head = (ledger, _first_digest(ledger))
            connection.execute("INSERT INTO head VALUES (1, ?, 0, ?)", head)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        os.link(temporary, path)  # unlike a rename, this never takes the place of a file
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:
        raise FileError(
            f"{path} exists, and a ledger is never overwritten; give another name, or add a dataset"
        ) from None
    except (sqlite3.Error, OSError) as error:
        raise FileError(f"the ledger {path} could not be made: {error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _first_digest(ledger: str) -> str:
    return hashlib.sha256(f"ptclust ledger {VERSION} {ledger}".encode()).hexdigest()


@contextmanager
def transaction(path: Path, *, write: bool = False) -> Iterator[tuple[Connection, Log]]:
    """Yield a connection, and what it reads: committed at the end, undone after any error.

    A writing transaction is alone from its first line to its last, across processes. When it has
    been committed it is on the disk: killing the process, or the machine, does not undo it.
    """
    # Only SQLite opens the file: closing a second descriptor would drop the locks of this process.
    if not path.is_file():
        raise FileError(f"there is no ledger {path}; create one first, as by `ptclust ledger init`")
    try:
        with closing(_connect(path, "rw")) as connection:
            _patiently(connection, "BEGIN IMMEDIATE" if write else "BEGIN")
            _patiently(connection, "PRAGMA schema_version")  # takes the lock of a reader
            _check_kind_of_file(connection, path)
            yield connection, _replay(connection, path)
            _patiently(connection, "COMMIT")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise FileError(_in_words(path, error)) from error


def _connect(path: Path, mode: str) -> Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=_NAP_SECONDS, isolation_level=None)
    try:
        for setting in _SETTINGS:
            _patiently(connection, f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(connection: Connection, command: str) -> None:
    """Carry out a command that has to wait for other processes."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            connection.execute(command).fetchall()
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
        else:
            return


def _in_words(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_BUSY:
        return (
            f"the ledger {path} is in use: another process kept it for {_PATIENCE_SECONDS:.0f} "
            "seconds. Nothing was charged; try again"
        )
    damaged = code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
    if damaged or isinstance(error, UnicodeDecodeError):
        return f"{path} is damaged or no ledger ({error}); {_REPAIR}"
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return f"the ledger {path} could not be written ({error}); make space if the disk is full"
    return f"the ledger {path} could not be used: {error}"


def _check_kind_of_file(connection: Connection, path: Path) -> None:
    """Refuse a database that is not a ledger, of another version, or with other tables."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise FileError(f"{path} is not a ledger of ptclust")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        raise FileError(f"the ledger {path} has version {version}, ptclust knows {VERSION} only")
    tables = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    if sorted(sql for (sql,) in tables) != sorted(_TABLES) or journal != "delete":
        refuse(path, "its tables or settings were changed by another program")


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise FileError for a ledger that does not agree with itself."""
    raise FileError(f"the ledger {path} is refused, for {reason}; {_REPAIR}")


class Log(NamedTuple):
    """The entries of a ledger that agrees with itself, and what follows from them."""

    rows: list[tuple[Any, ...]]
    digest: str
    accounts: dict[str, Account]  # by dataset, in the order in which they were opened
    waiting: dict[str, str | None]  # dataset of each charged statement, None once it was released


#: What this process verified last of each ledger, by its first digest: entries that are the same
#: as then are not chained and added up again, which is most of the work.
_verified: dict[str, Log] = {}


def _replay(connection: Connection, path: Path) -> Log:
    """Return what follows from a ledger that agrees with itself; FileError otherwise."""
    heads = connection.execute("SELECT ledger, n_entries, digest FROM head").fetchall()
    if len(heads) != 1:
        refuse(path, "its head is missing")
    ledger, n_entries, last = heads[0]
    first = _first_digest(ledger)
    rows = connection.execute("SELECT * FROM entry ORDER BY number").fetchall()
    nothing = Log([], first, {}, {})
    known = _verified.get(first, nothing)
    if rows[: len(known.rows)] != known.rows:
        known = nothing
    digest, accounts, waiting = known.digest, dict(known.accounts), dict(known.waiting)
    done = len(known.rows)
    for number, (found, *fields, stated) in enumerate(rows[done:], done + 1):
        entry = Entry(*fields)
        digest = entry.digest(number, digest)
        if found != number or stated != digest:
            refuse(path, f"entry {number} was changed, or an entry before it was deleted or moved")
        if not _enter(entry, accounts, waiting):
            refuse(path, f"entry {number} does not follow from those before it")
    if (len(rows), digest) != (n_entries, last):
        refuse(path, f"its head counts {n_entries} entries and there are {len(rows)} that fit it")
    if _sums(connection) != accounts:
        refuse(path, "its accounts are not the sums of its entries")
    _verified[first] = log = Log(rows, digest, accounts, waiting)
    return log


def append(
    connection: Connection,
    log: Log,
    event: str,
    dataset: str,
    amount: Amount,
    statement: str = "",
    text: str = "",
) -> None:
    """Write an entry at the end of the log, and the account that follows from it.

    The time is rounded down to the hour: how long a run takes from its charge to its confirmation
    depends on the private weights.
    """
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0).isoformat()
    entry = Entry(event, dataset, statement, amount.kind, *amount.written(), text, hour)
    number, accounts = len(log.rows) + 1, dict(log.accounts)
    if not _enter(entry, accounts, dict(log.waiting)):
        raise AssertionError("the ledger would be refused with this entry")
    account, digest = accounts[dataset], entry.digest(number, log.digest)
    values = (number, *entry, digest)
    connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    connection.execute("UPDATE head SET n_entries = ?, digest = ?", (number, digest))
    numbers = (*account.total.written(), *account.spent.written(), account.n_charges)
    connection.execute(
        "INSERT INTO account VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (dataset) DO UPDATE "
        "SET spent = excluded.spent, spent_delta = excluded.spent_delta, "
        "n_charges = excluded.n_charges",
        (dataset, number, account.total.kind, *numbers),
    )


def check_pages(connection: Connection, path: Path) -> None:
    """Let SQLite look for damage in all of the file, also where nothing is read from."""
    problems = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if problems != [("ok",)]:
        refuse(path, f"SQLite finds it damaged ({problems[0][0]})")


def _sums(connection: Connection) -> dict[str, Account]:
    rows = connection.execute(
        "SELECT dataset, kind, total, total_delta, spent, spent_delta, n_charges FROM account "
        "ORDER BY opened"
    )
    return {
        name: Account(name, Amount.read(kind, *numbers[:2]), Amount.read(kind, *numbers[2:]), count)
        for name, kind, *numbers, count in rows
    }


def _enter(entry: Entry, accounts: dict[str, Account], waiting: dict[str, str | None]) -> bool:
    """Add an entry to what follows; False for one that a ledger would not have written."""
    amount = Amount.read(entry.kind, entry.amount, entry.delta)
    account = accounts.get(entry.dataset)
    if entry.event == "dataset":
        if account is not None or amount.amount <= 0:
            return False
        nothing = Amount(amount.kind)
        accounts[entry.dataset] = Account(entry.dataset, amount, nothing, 0, entry.description)
    elif entry.event == "charge":
        if account is None or entry.statement in waiting:
            return False
        after = account.after(amount)
        is_priced = amount.kind == after.total.kind and amount.amount > 0
        if not is_priced or not after.spent.fits_in(after.total):
            return False
        accounts[entry.dataset], waiting[entry.statement] = after, entry.dataset
    else:
        if waiting.get(entry.statement) != entry.dataset:
            return False
        waiting[entry.statement] = None
    return True
