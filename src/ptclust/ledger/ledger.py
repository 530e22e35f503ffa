"""How much privacy was spent on each dataset, by whom it cannot be spent twice, and what is left.

A ledger is one file. Every release of the same private weights adds to what can be learnt about them; the ledger adds
up what the releases cost, and refuses a release that the total no longer covers, before any noise is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptclust.errors import BudgetError, InputError, UsageError
from ptclust.ledger import _file as file
from ptclust.ledger.amounts import Amount, price
from ptclust.privacy.budget import Budget
from ptclust.privacy.statement import _checks as check

if TYPE_CHECKING:
    import os
    import sqlite3
    from typing import Self

__all__ = ["Account", "Charge", "Ledger"]

_LONGEST_NAME = 200
_LONGEST_DESCRIPTION = 1000


@dataclass(frozen=True)
class Account:
    """The budget of a dataset: its total, what was spent of it, and what is left."""

    dataset: str
    total: Amount
    spent: Amount
    n_charges: int

    @property
    def left(self) -> Amount:
        """What may still be spent."""
        return self.total - self.spent

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, each exactly, as text, and as a float for reading."""
        return {
            "dataset": self.dataset,
            "total": self.total.to_dict(),
            "spent": self.spent.to_dict(),
            "left": self.left.to_dict(),
            "n_charges": self.n_charges,
        }


@dataclass(frozen=True)
class Charge:
    """What one release cost its dataset."""

    dataset: str
    statement_id: str
    """The id of the privacy statement in the release."""
    amount: Amount
    """In the currency of the dataset's total."""
    description: str
    time: str
    released: bool
    """Whether the release was handed over; if not, it was interrupted or failed, and its budget is lost."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain objects, ready for JSON."""
        return {
            "dataset": self.dataset,
            "statement_id": self.statement_id,
            "amount": self.amount.to_dict(),
            "description": self.description,
            "time": self.time,
            "released": self.released,
        }


@dataclass(frozen=True)
class Ledger:
    """A file that adds up what releases cost; make one with :meth:`create`, or :meth:`open` one.

    A ledger object holds the path alone and each method opens and closes the file: it may be shared between
    threads, processes and copies of an estimator, and there is nothing to close. ``with`` is allowed all the same.

    Privacy
    -------
    A charge is on the disk before ``charge`` returns, and what has to be checked before it is checked while no other
    process can charge: no budget is spent twice, and a process that dies at any instant loses budget at worst. The
    file holds public numbers and words only: nothing in it depends on a private weight.

    Examples
    --------
    >>> import tempfile, uuid
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/spent.ledger")
    >>> ledger.add_dataset("survey", Budget.pure(1))
    >>> account = ledger.charge("survey", Budget.pure("1/3"), statement_id=str(uuid.uuid4()))
    >>> account.left.amount
    Fraction(2, 3)
    >>> ledger.charge("survey", Budget.pure("3/4"), statement_id=str(uuid.uuid4()))
    Traceback (most recent call last):
    ...
    ptclust.errors.BudgetError: dataset 'survey' has epsilon = 0.666666 left ...
    >>> ledger.verify()
    2
    >>> folder.cleanup()
    """

    path: Path

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Ledger:
        """Make a ledger without datasets; FileError if there is a file of this name."""
        ledger = cls(Path(path).absolute())
        file.create(ledger.path)
        return ledger

    @classmethod
    def open(cls, path: str | os.PathLike[str] | Ledger) -> Ledger:
        """Return the ledger in a file after verifying all of it; FileError says what is wrong with it."""
        ledger = path if isinstance(path, Ledger) else cls(Path(path).absolute())
        ledger.verify()
        return ledger

    def add_dataset(self, dataset: str, total: Budget) -> None:
        """Open the account of a dataset with a total that is never changed.

        The kind of the total is the currency of all charges: pure epsilon, (epsilon, delta), or rho of zCDP.

        Raises
        ------
        UsageError
            If the name is taken, empty, longer than 200 characters, or more than a line.
        """
        name = _as_name(dataset)
        amount = Amount.of(_as_budget("total", total))
        with file.transaction(self.path, write=True) as connection:
            if name in file.sums_of(connection):
                raise UsageError(
                    f"the ledger has a dataset {name!r} already, and its total is never changed; choose another name"
                )
            entry = file.Entry("dataset", name, "", amount.kind, *amount.written(), "", _now())
            file.open_account(connection, name, file.append(connection, entry), amount)

    def charge(
        self,
        dataset: str,
        guarantee: Budget,
        *,
        statement_id: str,
        zcdp: Budget | None = None,
        description: str = "",
    ) -> Account:
        """Charge a release to a dataset before it is made; return the account after it.

        Parameters
        ----------
        dataset : str
        guarantee : Budget
            What the release guarantees; of ``calibration="published"``, what it truly spends.
        statement_id : str
            The id of its privacy statement, a random UUID, by which charge and release are matched.
        zcdp : Budget, optional
            The zCDP guarantee of the same release: what it costs where the total is a rho.
        description : str, optional
            A line for the history. It is public: write nothing into it that is not.

        Raises
        ------
        BudgetError
            If what is left does not cover it, or it has no price in the currency of the total. Nothing is charged.
        UsageError
            If there is no such dataset, or the statement was charged already.
        """
        _check_statement(statement_id)
        _check_description(description)
        with file.transaction(self.path, write=True) as connection:
            account, amount = _priced(connection, dataset, guarantee, zcdp)
            if _event(connection, statement_id, "charge"):
                raise UsageError(
                    f"statement {statement_id} was charged already; every release has a statement of its own"
                )
            file.append(
                connection,
                file.Entry(
                    "charge",
                    account.dataset,
                    statement_id,
                    amount.kind,
                    *amount.written(),
                    description,
                    _now(),
                ),
            )
            file.set_spent(connection, account.dataset, account.spent)
        return account

    def preview(self, dataset: str, guarantee: Budget, *, zcdp: Budget | None = None) -> Account:
        """Return the account as it would be after a charge, or raise what it would raise; charges nothing."""
        with file.transaction(self.path) as connection:
            return _priced(connection, dataset, guarantee, zcdp)[0]

    def confirm(self, statement_id: str) -> None:
        """Note that the release of a charge was handed over; a charge without this note is budget lost.

        UsageError if the statement was never charged, or was confirmed before.
        """
        _check_statement(statement_id)
        with file.transaction(self.path, write=True) as connection:
            found = _event(connection, statement_id, "charge")
            if found is None or _event(connection, statement_id, "released"):
                raise UsageError(
                    f"statement {statement_id} was {'confirmed before' if found else 'never charged to this ledger'}"
                )
            dataset, kind = found
            entry = file.Entry("released", dataset, statement_id, kind, "0", "0", "", _now())
            file.append(connection, entry)

    def status(self) -> tuple[Account, ...]:
        """Return the account of every dataset, in the order in which they were added."""
        with file.transaction(self.path) as connection:
            return tuple(Account(name, *sums) for name, sums in file.sums_of(connection).items())

    def history(self, dataset: str | None = None) -> tuple[Charge, ...]:
        """Return all charges, or those of one dataset, in their order."""
        with file.transaction(self.path) as connection:
            if dataset is not None:
                _account(connection, dataset)
            rows = connection.execute("SELECT * FROM entry ORDER BY number").fetchall()
        entries = [file.Entry(*fields) for _, *fields, _ in rows]
        released = {entry.statement for entry in entries if entry.event == "released"}
        return tuple(
            Charge(
                dataset=entry.dataset,
                statement_id=entry.statement,
                amount=Amount.read(entry.kind, entry.amount, entry.delta),
                description=entry.description,
                time=entry.time,
                released=entry.statement in released,
            )
            for entry in entries
            if entry.event == "charge" and dataset in (None, entry.dataset)
        )

    def verify(self) -> int:
        """Read the file from its first entry and return their number; FileError says what does not agree.

        Changed, deleted and reordered entries are found, and accounts that are not the sums of the entries. A file that
        was replaced as a whole by an earlier copy of itself is not: keep the ledger where only the curator writes.
        """
        with file.transaction(self.path) as connection:
            return file.replay(connection, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is held between two calls, so there is nothing to close."""


def _priced(
    connection: sqlite3.Connection, dataset: str, guarantee: Budget, zcdp: Budget | None
) -> tuple[Account, Amount]:
    """Return the account as it is after a release, and the price of that; BudgetError if it cannot be paid."""
    spends = _as_budget("guarantee", guarantee)
    rho = None if zcdp is None else _as_budget("zcdp", zcdp)
    if rho is not None and rho.kind != "zcdp":
        raise UsageError(f"zcdp must be a Budget.zcdp, not {rho!r}")
    before = _account(connection, dataset)
    amount = price(before.total.kind, spends, rho)
    after = Account(before.dataset, before.total, before.spent + amount, before.n_charges + 1)
    if not after.spent.fits_in(after.total):
        raise BudgetError(
            f"dataset {before.dataset!r} has {before.left} left of {before.total}, and this release asks for "
            f"{amount.shown(up=True)}: nothing was charged and nothing was drawn.{_remedy(before.left, amount)}"
        )
    return after, amount


def _remedy(left: Amount, asked: Amount) -> str:
    """Return what to do; where a float was a hair too large, say so, since no rounded number shows it."""
    if (asked.amount - left.amount) * 10**9 <= asked.amount and (
        asked.delta - left.delta
    ) * 10**9 <= asked.delta:
        return (
            " It misses by a rounding error: the float 0.1 is a little more than 1/10; give exact numbers, such as "
            "Fraction('0.1')."
        )
    return " Ask for no more than is left." if left.amount > 0 else " Its budget is used up."


def _account(connection: sqlite3.Connection, dataset: str) -> Account:
    accounts = file.sums_of(connection)
    if not isinstance(dataset, str) or dataset not in accounts:
        names = ", ".join(map(repr, accounts)) or "none yet"
        raise UsageError(f"the ledger has no dataset {dataset!r}; it has: {names}")
    return Account(dataset, *accounts[dataset])


def _event(connection: sqlite3.Connection, statement_id: str, event: str) -> tuple[Any, ...] | None:
    found: tuple[Any, ...] | None = connection.execute(
        "SELECT dataset, kind FROM entry WHERE statement = ? AND event = ? AND event <> 'dataset'",
        (statement_id, event),
    ).fetchone()
    return found


def _as_budget(name: str, value: object) -> Budget:
    """Return a Budget whose numbers have been checked now, however it came about."""
    if not isinstance(value, Budget):
        raise UsageError(
            f"{name} must be a Budget, such as Budget.pure(1), not {value!r} of type {type(value).__name__}"
        )
    return Budget(value.kind, value.amount, value._delta)


def _as_name(value: object) -> str:
    try:
        name = check.text("the name of a dataset", value)
    except InputError as error:
        raise UsageError(str(error)) from None
    if len(name) > _LONGEST_NAME:
        raise UsageError(
            f"the name of a dataset has at most {_LONGEST_NAME} characters, not {len(name):,}"
        )
    return name


def _check_description(value: object) -> None:
    try:
        written = check.text("description", value, empty=True)
    except InputError as error:
        raise UsageError(str(error)) from None
    if len(written) > _LONGEST_DESCRIPTION:
        raise UsageError(
            f"description has at most {_LONGEST_DESCRIPTION:,} characters, not {len(written):,}"
        )


def _check_statement(value: object) -> None:
    try:
        check.uuid4("statement_id", value)
    except InputError as error:
        raise UsageError(f"{error}; it is release.statement.id") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
