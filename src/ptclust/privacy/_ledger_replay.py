"""Reading a ledger again from its first entry, to see whether everything in the file agrees."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ptclust.privacy._ledger_amounts import Amount
from ptclust.privacy._ledger_file import VERSION, Entry, Sums, refuse, sums_of

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path


def replay(connection: sqlite3.Connection, path: Path) -> int:
    """Return the number of entries of a ledger that agrees with itself; FileError says what does not."""
    problems = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if problems != [("ok",)]:
        refuse(path, f"SQLite finds it damaged ({problems[0][0]})")
    heads = connection.execute("SELECT ledger, n_entries, digest FROM head").fetchall()
    if len(heads) != 1:
        refuse(path, "its head is missing")
    ledger, n_entries, last = heads[0]
    digest = hashlib.sha256(f"ptclust ledger {VERSION} {ledger}".encode()).hexdigest()
    books = _Books(path)
    number = 0
    for found, *fields, stated in connection.execute("SELECT * FROM entry ORDER BY number"):
        number += 1
        entry = Entry(*fields)
        digest = entry.digest(number, digest)
        if found != number or stated != digest:
            refuse(path, f"entry {number} was changed, or an entry before it was deleted or moved")
        books.take(number, entry)
    if (number, digest) != (n_entries, last):
        refuse(path, f"its head counts {n_entries} entries and there are {number} that fit it")
    if sums_of(connection) != books.sums:
        refuse(path, "its accounts are not the sums of its entries")
    return number


class _Books:
    """The accounts as the entries read so far make them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sums: dict[str, Sums] = {}
        self._dataset_of: dict[str, str] = {}
        self._released: set[str] = set()

    def take(self, number: int, entry: Entry) -> None:
        """Enter the next entry; refuse one that a ledger would not have written."""
        amount = Amount.read(entry.kind, entry.amount, entry.delta)
        fits = {"dataset": self._open, "charge": self._charge, "released": self._release}
        if not fits[entry.event](entry, amount):
            refuse(path=self.path, reason=f"entry {number} does not follow from those before it")

    def _open(self, entry: Entry, total: Amount) -> bool:
        if entry.dataset in self.sums or total.amount <= 0:
            return False
        self.sums[entry.dataset] = Sums(total, Amount(total.kind), 0)
        return True

    def _charge(self, entry: Entry, amount: Amount) -> bool:
        if entry.dataset not in self.sums or entry.statement in self._dataset_of:
            return False
        total, spent, n_charges = self.sums[entry.dataset]
        spent += amount
        if amount.kind != total.kind or amount.amount <= 0 or not spent.fits_in(total):
            return False
        self.sums[entry.dataset] = Sums(total, spent, n_charges + 1)
        self._dataset_of[entry.statement] = entry.dataset
        return True

    def _release(self, entry: Entry, _: Amount) -> bool:
        known = self._dataset_of.get(entry.statement) == entry.dataset
        if not known or entry.statement in self._released:
            return False
        self._released.add(entry.statement)
        return True
