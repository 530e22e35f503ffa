"""What one unit adds to the weights: bounded, and the sensitivity that follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import polars as pl

from ptclust.privacy._numbers import float_up, root_up
from ptclust.privacy.provenance import Neighbours
from ptclust.privacy.sensitivity import Sensitivity

Caps = Mapping[str, int]
Key = tuple[int, int, int]
Ties = Literal["min", "max"]

ITEMS, PAIRS, PER_PAIR = "max_items", "max_pairs", "max_per_pair"  # the caps, by name


def sensitivity_of(caps: Caps, n_pairs: int, neighbours: Neighbours) -> Sensitivity:
    """Return what one unit can change: a person under these caps, or one record without any.

    >>> sensitivity_of({"max_items": 4}, 100, "add-remove").l1
    6.0
    """
    n_changed = math.comb(caps[ITEMS], 2) if ITEMS in caps else caps.get(PAIRS, 1)
    return sensitivity_of_sum(caps.get(PER_PAIR, 1), max(1, min(n_changed, n_pairs)), neighbours)


def sensitivity_of_sum(largest: int, n_changed: int, neighbours: Neighbours) -> Sensitivity:
    """Return the sensitivity of weights that are a sum of one vector per unit.

    At most ``n_changed`` entries of every vector are not 0; all are between 0 and ``largest``.

    Notes
    -----
    *Privacy.* One unit more or less adds or removes one vector x, of which ||x||_inf <= largest,
    ||x||_1 <= n_changed largest and ||x||_2^2 <= n_changed largest^2. A unit in place of another
    changes the weights by x - y. Every entry of it lies between -largest and largest, as both are
    within [0, largest]: linf stays. ||x - y||_1 <= ||x||_1 + ||y||_1: l1 doubles.
    ||x - y||_2^2 = ||x||_2^2 + ||y||_2^2 - 2 x.y, and x.y >= 0: l2 grows by sqrt(2).

    >>> sensitivity_of_sum(2, 5, "replace").to_dict()
    {'l1': 20.0, 'l2': 6.324555320336759, 'linf': 2.0}
    """
    n_entries = n_changed * (1 if neighbours == "add-remove" else 2)
    return Sensitivity(
        l1=float_up(n_entries * largest),
        l2=root_up(Fraction(n_entries * largest**2)),
        linf=float_up(largest),
    )


@dataclass(frozen=True)
class Things:
    """The things (pairs of nodes, or items) of persons: rows of a person, a thing, maybe a count.

    Every couple of person and thing has one row, in which counts are added up.
    """

    of_records: Callable[[pl.LazyFrame], pl.LazyFrame]  # rows of the records, of each by itself
    bound: tuple[int, Key] | None = None  # the most things a person keeps, and which (`keep_some`)

    def bounded(self, most: int, key: Key) -> Things:
        """Return the same with at most ``most`` things per person."""
        return replace(self, bound=(most, key))

    def of_all(self, records: pl.LazyFrame) -> pl.LazyFrame:
        """Return the rows of all records."""
        rows = _merged(self.of_records(records))
        return rows if self.bound is None else keep_some(rows, *self.bound)

    def of_part(self, records: pl.LazyFrame) -> pl.LazyFrame:
        """Return rows of a part of the records, of which `of_parts` makes those of all.

        Persons with few records in this part, as most are, keep them as they are: merging them here
        as well would cost more than sending them.
        """
        rows = self.of_records(records)
        if self.bound is None:
            return _merged(rows)
        few, many = _by_number(rows, self.bound[0])
        return pl.concat([few, self.merged(many)])

    def merged(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return fewer rows of which `of_parts` makes the same.

        What is dropped here, with the things that tie, `of_parts` would drop: ``most`` things of
        the person are before it, and they stay.
        """
        return self._kept(_merged(rows), ties="min")

    def of_parts(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return the rows of some persons, of whom all parts are there."""
        return self._kept(_merged(rows), ties="max")

    def _kept(self, rows: pl.LazyFrame, ties: Ties) -> pl.LazyFrame:
        if self.bound is None:
            return rows
        few, many = _by_number(rows, self.bound[0])  # only the many are ranked
        return pl.concat([few, keep_some(many, *self.bound, ties)])


def _merged(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.group_by("person", "thing").sum()


def _by_number(lazy: pl.LazyFrame, most: int) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Return the rows of persons who have at most ``most`` of them, and those of the others."""
    number = pl.len().over("person").alias("number")
    rows = lazy.with_columns(number).collect(engine="streaming").lazy()
    few = pl.col("number") <= most
    return rows.filter(few).drop("number"), rows.filter(~few).drop("number")


def keep_some(rows: pl.LazyFrame, most: int, key: Key, ties: Ties = "max") -> pl.LazyFrame:
    """Keep at most ``most`` things per person, chosen by a keyed hash of the person and the thing.

    With "min" for ``ties`` those that have the hash of the last one stay, too.

    Notes
    -----
    *Privacy.* Thing t of person p is kept if at most ``most`` things of p have a hash up to its own
    (itself included): that depends on the key and on the things of p alone. So, for every key and
    every hash function, what is kept is the union over persons of a function of the records of
    each, and one person more or less adds or removes at most ``most`` rows, all of that person.
    Things with the same hash are kept or dropped together, so row order never decides. The key is
    drawn anew for every build so that nobody can write records that are sure to be kept: for that,
    polars' hash with secret seeds will do, at the speed of the table.
    """
    return rows.filter(_hash(key).rank(ties).over("person") <= most)


def _hash(key: Key) -> pl.Expr:
    of_person, of_thing, of_both = key
    return (pl.col("person").hash(of_person) ^ pl.col("thing").hash(of_thing)).hash(of_both)
