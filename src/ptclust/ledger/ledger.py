"""The ledger: what was spent on each dataset, and what is left.

Every release of the same private weights adds to what can be learnt about them. A ledger, one file,
adds up what they cost, and refuses what the total does not cover before any noise is drawn.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ptclust._traces import shown_half_built
from ptclust.errors import BudgetError, InputError, PtclustError, UsageError, warn_of_privacy
from ptclust.ledger import _file as file
from ptclust.ledger.amounts import Account, Amount, price
from ptclust.privacy import _checks as check
from ptclust.privacy.budget import Budget
from ptclust.privacy.provenance import Spending
from ptclust.privacy.statement import PrivacyStatement

_LONGEST_NAME, _LONGEST_DESCRIPTION, _LONGEST_TERMS = 200, 1000, 100_000
#: Letters and marks that show nothing: fillers, the blank of Braille, variation selectors.
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


@dataclass(frozen=True)
class Charge:
    """What one release cost its dataset."""

    dataset: str
    statement_id: str  # the id of the privacy statement in the release
    amount: Amount  # in the currency of the dataset's total
    description: str
    time: str
    released: bool  # whether the release was handed over; if not, it failed, and its budget is lost

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain objects, ready for JSON."""
        return vars(self) | {"amount": self.amount.to_dict()}


@shown_half_built
@dataclass(frozen=True)
class Ledger:
    """A file that adds up what releases cost; make one with :meth:`create`, or :meth:`open` one.

    A ledger object holds the path alone and each method opens and closes the file: it may be shared
    between threads, processes and copies of an estimator. ``with`` is allowed, and closes nothing.

    Notes
    -----
    *Privacy.* A charge is on the disk before ``charge`` returns, and what has to be checked before
    it, all entries included, is checked while no other process can charge: no budget is spent
    twice, and a process that dies at any instant loses budget at worst. The file holds public
    numbers and words only: nothing in it depends on a private weight, but for how many hours lie
    between a charge and its confirmation.

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
        """Return the ledger in a file after verifying all of it; FileError says what is wrong."""
        ledger = path if isinstance(path, Ledger) else cls(Path(path).absolute())
        ledger.verify()
        return ledger

    def add_dataset(self, dataset: str, total: Budget, *, terms: str = "") -> None:
        """Open the account of a dataset with a total that is never changed.

        With ``terms``, as those of a series, only what is charged under the same terms is accepted.

        The kind of the total is the currency of all charges: pure epsilon, (epsilon, delta), or rho
        of zCDP. UsageError if the name is taken, empty, too long, more than a line, holds what
        cannot be seen, or looks like a name that is there. It is kept in Unicode's form NFC.
        """
        name, amount = checked_account(dataset, total)
        _line("terms", terms, _LONGEST_TERMS, empty=True)
        with file.transaction(self.path, write=True) as (connection, log):
            for other in log.accounts:
                if _look(other) == _look(name):
                    alike = "" if other == name else f", which looks like {name!r},"
                    raise UsageError(
                        f"dataset {other!r}{alike} is there already, and its total is never "
                        "changed; choose another name"
                    )
            file.append(connection, log, "dataset", name, amount, text=terms)

    def charge(
        self,
        dataset: str,
        guarantee: Budget,
        *,
        statement_id: str,
        zcdp: Budget | None = None,
        description: str = "",
        terms: str = "",
    ) -> Account:
        """Charge a release to a dataset before it is made; return the account after it.

        On an error nothing is charged: BudgetError if what is left does not cover it, or it has no
        price in the currency of the total; UsageError for an unknown dataset or a known statement.

        Parameters
        ----------
        guarantee : Budget
            What the release guarantees; of ``calibration="published"``, what it truly spends.
        statement_id : str
            The id of its privacy statement, a random UUID, which matches charge and release.
        zcdp : Budget, optional
            The zCDP guarantee of the same release: what it costs where the total is a rho. By
            default what ``guarantee`` is known to imply.
        description : str, optional
            A line for the history. It is public: write nothing into it that is not.
        terms : str, optional
            Those of the account, if it has any.
        """
        _check_statement(statement_id)
        _line("description", description, _LONGEST_DESCRIPTION, empty=True)
        with file.transaction(self.path, write=True) as (connection, log):
            after, amount = _priced(log, dataset, guarantee, zcdp, terms)
            if statement_id in log.waiting:
                raise UsageError(f"statement {statement_id} was charged already; use a new one")
            file.append(connection, log, "charge", after.dataset, amount, statement_id, description)
        return after

    def preview(
        self,
        dataset: str,
        guarantee: Budget,
        *,
        zcdp: Budget | None = None,
        due: Iterable[Budget] = (),
    ) -> Account:
        """Return the account after a charge, or raise what it would raise; charge nothing.

        ``due`` is what has to be charged before, and was not yet.
        """
        return _priced(self._log(), dataset, guarantee, zcdp, due=due)[0]

    def confirm(self, statement_id: str) -> None:
        """Note that the release of a charge was handed over; UsageError unless it was due."""
        _check_statement(statement_id)
        with file.transaction(self.path, write=True) as (connection, log):
            if statement_id not in log.waiting:
                raise UsageError(f"statement {statement_id} was never charged to this ledger")
            dataset = log.waiting[statement_id]
            if dataset is None:
                raise UsageError(f"statement {statement_id} was confirmed before")
            nothing = Amount(log.accounts[dataset].total.kind)
            file.append(connection, log, "released", dataset, nothing, statement_id)

    def account(self, dataset: str) -> Account:
        """Return the account of a dataset; UsageError if there is none of this name."""
        return _account(self._log(), dataset)

    def status(self) -> tuple[Account, ...]:
        """Return the account of every dataset, in the order in which they were added."""
        return tuple(self._log().accounts.values())

    def _log(self) -> file.Log:
        with file.transaction(self.path) as (_, log):
            return log

    def history(self, dataset: str | None = None) -> tuple[Charge, ...]:
        """Return all charges, or those of one dataset, in their order."""
        log = self._log()
        name = None if dataset is None else _account(log, dataset).dataset
        entries = (file.Entry(*fields) for _, *fields, _ in log.rows)
        return tuple(
            Charge(
                entry.dataset,
                entry.statement,
                Amount.read(entry.kind, entry.amount, entry.delta),
                entry.description,
                entry.time,
                released=log.waiting[entry.statement] is None,
            )
            for entry in entries
            if entry.event == "charge" and name in (None, entry.dataset)
        )

    def verify(self) -> int:
        """Read the file from its first entry and return their number; FileError if it is wrong.

        Changed, deleted and reordered entries are found, and accounts that are not the sums of the
        entries. An earlier copy in place of the whole file is not: keep the ledger where only the
        curator writes.
        """
        with file.transaction(self.path) as (connection, log):
            file.check_pages(connection, self.path)
            return len(log.rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


@shown_half_built
@dataclass(frozen=True)
class Payment:
    """How releases are paid for: from a dataset of a ledger, or not at all.

    There is one rule for the command line, the estimator and ``private_spanning_tree``. A release
    is charged before anything is drawn; a charge that fails stops it. After the charge nothing that
    was drawn is withheld: if it cannot be confirmed, that is a warning, and the charge stands.
    """

    ledger: Ledger | None
    dataset: str

    @classmethod
    def by(
        cls,
        ledger: Ledger | str | os.PathLike[str] | None,
        dataset: str | None,
        random_state: int | None = None,
    ) -> Payment:
        """Return the payment after verifying the ledger; refuse what can never be charged."""
        if (ledger is None) != (dataset is None):
            raise UsageError("give both ledger= and dataset= (one in the ledger), or neither")
        if ledger is not None and random_state is not None:
            raise UsageError(
                "with random_state a release can be made again and is not private, so no budget "
                "covers it: leave out random_state, or the ledger"
            )
        return cls(None if ledger is None else Ledger.open(ledger), dataset or "")

    def charge(self, spent: Budget, *, statement_id: str, description: str) -> None:
        """Charge what a release truly spends; when this returns, the charge is on the disk."""
        if self.ledger is not None:
            self.ledger.charge(
                self.dataset, spent, statement_id=statement_id, description=description
            )

    def stated(self, statement: PrivacyStatement) -> PrivacyStatement:
        """Return the statement of a release that is paid for so; here as it is."""
        return statement

    def settle(self, spendings: Iterable[Spending]) -> None:
        """Charge what was spent when a graph was built, once by its id, whatever comes of it."""
        for each in self.unsettled(spendings):
            self.charge(each.budget, statement_id=each.id, description=each.words)
            self.confirm(each.id)

    def unsettled(self, spendings: Iterable[Spending]) -> tuple[Spending, ...]:
        """Return what was not charged yet; UsageError if another dataset was charged for it."""
        listed = tuple(spendings)
        if self.ledger is None or not listed:
            return ()
        charged = {past.statement_id: past.dataset for past in self.ledger.history()}
        mine = self.ledger.account(self.dataset).dataset
        if other := next((each for each in listed if charged.get(each.id, mine) != mine), None):
            raise UsageError(
                f"what building this graph spent was charged to dataset {charged[other.id]!r}: its "
                "releases are of the same people, so charge them there, too"
            )
        return tuple(each for each in listed if each.id not in charged)

    def confirm(self, statement_id: str) -> None:
        """Confirm that a release was handed over; a failure is a warning, and the charge stands."""
        if self.ledger is None:
            return
        try:
            self.ledger.confirm(statement_id)
        except PtclustError as error:
            warn_of_privacy(
                f"the release was charged and is handed over, but confirming that failed: {error}"
            )

    def preview(self, spent: Budget, due: Iterable[Spending] = ()) -> Account | None:
        """Return the account as it would be after what is due and a release; charges nothing."""
        if self.ledger is None:
            return None
        return self.ledger.preview(self.dataset, spent, due=[each.budget for each in due])

    @property
    def account(self) -> Account | None:
        """The account as it is now."""
        return None if self.ledger is None else self.ledger.account(self.dataset)


def _priced(
    log: file.Log,
    dataset: str,
    guarantee: Budget,
    zcdp: Budget | None,
    terms: str = "",
    due: Iterable[Budget] = (),
) -> tuple[Account, Amount]:
    """Return the account after a release, and its price; BudgetError if it cannot be paid."""
    spends = _as_budget("guarantee", guarantee)
    rho = None if zcdp is None else _as_budget("zcdp", zcdp)
    if rho is not None and rho.kind != "zcdp":
        raise UsageError(f"zcdp must be a Budget.zcdp, not {rho!r}")
    before = _account(log, dataset)
    if before.terms != terms:
        raise BudgetError(
            f"dataset {dataset!r} pays for a series of releases, which add up by their own rule: "
            "publish through the series (`ptclust series`), or charge another dataset"
        )
    for earlier in due:
        before = before.after(price(before.total.kind, earlier))
    amount = price(before.total.kind, spends, rho)
    after = before.after(amount)
    if not after.spent.fits_in(after.total):
        raise BudgetError(
            f"dataset {dataset!r} has {before.left} left of {before.total}, and this release needs "
            f"{amount.shown(up=True)}: nothing was charged and nothing was drawn."
            f"{_remedy(before.left, amount)}"
        )
    return after, amount


def _remedy(left: Amount, asked: Amount) -> str:
    """Return what to do; say so if a float was a hair too large: no rounded number shows it."""
    missing = asked - left
    if missing.amount * 10**9 <= asked.amount and missing.delta * 10**9 <= asked.delta:
        return " It misses by a rounding error, as 0.1 > 1/10: give exact numbers, Fraction('0.1')."
    return " Ask for no more than is left." if left.amount > 0 else " Its budget is used up."


def _account(log: file.Log, dataset: str) -> Account:
    """Return the account of this very name, or of its form NFC."""
    if isinstance(dataset, str):
        for name in (dataset, unicodedata.normalize("NFC", dataset)):
            if name in log.accounts:
                return log.accounts[name]
    names = ", ".join(map(repr, log.accounts)) or "none yet"
    raise UsageError(f"the ledger has no dataset {dataset!r}; it has: {names}")


def checked_account(dataset: object, total: object) -> tuple[str, Amount]:
    """Return the name of a dataset and its total as stored; UsageError if they are not valid."""
    name, amount = _dataset_name(dataset), Amount.of(_as_budget("total", total))
    amount.written()
    return name, amount


def _dataset_name(value: object) -> str:
    """Return a name in the form NFC; UsageError if not all of it can be seen."""
    what = "the name of a dataset"
    name = unicodedata.normalize("NFC", _line(what, value, _LONGEST_NAME))
    if char := next(filter(_is_unseen, name), ""):
        called = f"U+{ord(char):04X} {unicodedata.name(char, '')}".rstrip()
        raise UsageError(f"{what} holds {called}, which cannot be seen; leave it out")
    if name != " ".join(name.split()):
        raise UsageError(f"{what} begins or ends with a space, or has two in a row; leave them out")
    return name


def _is_unseen(char: str) -> bool:
    """Return whether a character shows nothing of its own; the usual space does."""
    kind = unicodedata.category(char)
    return (kind[0] in "CZ" and char != " ") or _IGNORED.match(char) is not None


def _look(name: str) -> str:
    """Return what two names that look the same have in common."""
    compatible = unicodedata.normalize("NFKC", name)
    seen = (char for char in compatible if char.isspace() or not _is_unseen(char))
    return " ".join("".join(seen).split())


def _as_budget(name: str, value: object) -> Budget:
    """Return a Budget whose numbers have been checked now, however it came about."""
    if not isinstance(value, Budget):
        raise UsageError(f"{name} must be a Budget, such as Budget.pure(1), not {value!r}")
    return Budget(value.kind, value.amount, value._delta, value._zcdp)


def _line(name: str, value: object, longest: int, *, empty: bool = False) -> str:
    try:
        written = check.text(name, value, empty=empty)
    except InputError as error:
        raise UsageError(str(error)) from None
    if len(written) > longest:
        raise UsageError(f"{name} has at most {longest:,} characters, not {len(written):,}")
    return written


def _check_statement(value: object) -> None:
    try:
        check.uuid4("statement_id", value)
    except InputError as error:
        raise UsageError(f"{error}; it is release.statement.id") from None
