"""Exact counts of records before anything is spent: for the curator, never to be published."""

from __future__ import annotations

import difflib
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ptclust._tables import right_aligned
from ptclust._traces import leaves_no_trace
from ptclust._types import Array
from ptclust.building._pairs import Pairs, is_private, public_pairs
from ptclust.building._records import Records
from ptclust.building.counts import items_of_persons, on_pairs, pairs_of_persons
from ptclust.engines.spark import is_frame
from ptclust.errors import UsageError

CAPS = (1, 2, 4, 8, 16, 32)

_MARK = "PRIVATE: do not publish. These are counts of the records themselves, without noise."
_LISTED = 10
_CANDIDATES = 20_000  # beyond, names are not compared letter by letter


@dataclass(frozen=True, repr=False)
class RecordsCheck:
    """What `check_records` found; ``print`` shows it, and nothing else does."""

    counts: dict[str, int]
    """Numbers of records and persons, by what they are."""
    unlisted: list[tuple[Any, int, Any]]
    """Names in most records that are not listed, their records, the listed one most alike."""
    n_unlisted: int
    contributions: dict[str, Array]
    """By cap, the sorted numbers of what it bounds: one per person, or per person and pair."""

    def __repr__(self) -> str:
        return "RecordsCheck(<private>)"

    def __str__(self) -> str:
        width = max(len(f"{number:,}") for number in self.counts.values())
        lines = [_MARK, ""]
        lines += [f"  {number:>{width},} {what}" for what, number in self.counts.items()]
        if self.unlisted:
            rows = [["name", "records", "nearest on the list"]]
            for name, number, near in self.unlisted:
                rows.append([repr(name), f"{number:,}", "-" if near is None else repr(near)])
            lines += [
                "",
                f"Names that are not on the list: {self.n_unlisted:,}. Their records do not",
                "count; write them as the list does, or complete the list.",
                "",
                *right_aligned(rows),
            ]
        for name, numbers in self.contributions.items():
            rows = [[name, "have more", "kept"]]
            for cap in CAPS:
                kept = 100 * int(np.minimum(numbers, cap).sum()) / max(int(numbers.sum()), 1)
                rows.append([f"{cap}", f"{np.count_nonzero(numbers > cap):,}", f"{kept:.0f} %"])
            lines += ["", *right_aligned(rows)]
        return "\n".join(lines)


@leaves_no_trace
def check_records(
    records: Any,
    *,
    items: Iterable[Any] | None = None,
    nodes: Iterable[Any] | None = None,
    edges: Any = None,
    person: str | None = None,
    item: str | None = None,
    origin: str | None = None,
    destination: str | None = None,
) -> RecordsCheck:
    """Count the records that a graph would be built from, before anything is spent.

    Print the answer: records, persons, missing ids, names that are not on the list with the nearest
    ones that are, and how much is kept at several caps.

    Parameters
    ----------
    records, person, item, origin, destination
        As in `ptclust.graph_from_visits` and `ptclust.graph_from_flows`. Of flows without
        ``person`` single records are protected, and no persons are counted.
    items, nodes : iterable of int or str
        The public list: items of visits, or nodes of flows.
    edges
        In place of either: the public list of pairs, of visits if ``item`` is given.

    Notes
    -----
    *Privacy.* None: the counts are exact. They are for anyone who may see the records, on a screen;
    what is chosen by looking at them is not covered by any statement. Nothing is written.

    Examples
    --------
    >>> import polars
    >>> events = polars.DataFrame({"person": [1, 1, 2], "place": ["a", "B ", None]})
    >>> check = check_records(events, items=["a", "b"])
    >>> check, check.unlisted
    (RecordsCheck(<private>), [('B ', 1, 'b')])
    """
    if is_frame(records):
        raise UsageError("records are checked on this machine: give a path or a sample of them")
    of_visits = items is not None or (item is not None and nodes is None)
    word, given = ("items", nodes if items is None else items) if of_visits else ("nodes", nodes)
    pairs = public_pairs(given, None if is_private(edges) else edges, records, word=word)
    roles = {"item": item} if of_visits else {"origin": origin, "destination": destination}
    persons = {"person": person} if of_visits or person is not None else {}
    table = Records(records, {**roles, **persons})
    counts = {"records": _number(table, table.lazy)}
    unlisted: Counter[Any] = Counter()
    for role in roles:
        missing, others = _unlisted(table, role, pairs)
        counts[f"without {'an' if role[0] in 'aeiou' else 'a'} {role}"] = missing
        unlisted.update(others)
    known = table.with_persons(table.lazy) if persons else table.lazy
    if persons:
        counts["without a person"] = counts["records"] - _number(table, known)
    contributions: dict[str, Array] = {}
    if of_visits:
        things = items_of_persons(table, pairs)
        counts["with a person, on listed items"] = _number(table, things.of_records(table.lazy))
        found = table.collect(things.of_all(table.lazy))
        counts["of them, each item of a person once"] = len(found)
        contributions["max_items"] = _per_person(found)
    else:
        counts["between two listed nodes"] = _number(table, on_pairs(table, pairs, known))
        if persons:
            found = table.collect(pairs_of_persons(table, pairs).of_all(table.lazy))
            contributions["max_pairs"] = _per_person(found)
            contributions["max_per_pair"] = found["count"].sort().to_numpy()
    if persons:
        counts["persons"] = _number(table, known.select("person").unique())
        counts["persons who count"] = found["person"].n_unique()
    most = sorted(unlisted.items(), key=lambda each: (-each[1], str(each[0])))[:_LISTED]
    by_bare = {_bare(name): name for name in reversed(pairs.names.tolist())}
    shown = [(name, number, _nearest(name, by_bare)) for name, number in most]
    return RecordsCheck(counts, shown, len(unlisted), contributions)


def _number(table: Records, lazy: pl.LazyFrame) -> int:
    return int(table.collect(lazy.select(pl.len())).item())


def _unlisted(table: Records, role: str, pairs: Pairs) -> tuple[int, dict[Any, int]]:
    """Return how many records have no name there, and the names that are not listed."""
    by_name = table.collect(table.lazy.group_by(role).agg(records=pl.len()))
    names = by_name.lazy().with_columns(name=pl.col(role))
    listed = table.number(names, role, pairs).select("name")
    others = table.collect(names.join(listed, on="name", how="anti", nulls_equal=True))
    found = dict(others.select("name", "records").iter_rows())
    missing = [name for name in found if name is None or not str(name).strip()]
    return sum(found.pop(name) for name in missing), found


def _per_person(found: pl.DataFrame) -> Array:
    """Return of how many things every person has rows, ascending."""
    return found.group_by("person").len()["len"].sort().to_numpy()


def _nearest(name: Any, by_bare: dict[str, Any]) -> Any:
    """Return the listed name that is this one but for case, blanks, accents or a few letters."""
    bare = _bare(name)
    few = by_bare if len(by_bare) <= _CANDIDATES else ()
    alike = [bare] if bare in by_bare else difflib.get_close_matches(bare, few, 1, 0.8)
    return by_bare[alike[0]] if alike else None


def _bare(name: Any) -> str:
    """Return a name without case, accents and superfluous blanks.

    >>> _bare("  Súd  STATION")
    'sud station'
    """
    letters = unicodedata.normalize("NFKD", str(name))
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(bare.casefold().split())
