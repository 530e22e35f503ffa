"""Which columns of a table are source, target and weight, and what a weight means: by name only.

Nothing is decided by looking at values, nor by the order of columns that have names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ptclust._markup import quoted, quoted_list
from ptclust.errors import FileError, UsageError
from ptclust.graph.topology import Kind, check_kind

if TYPE_CHECKING:
    from ptclust.graph.readers.csv import Dialect

_KINDS: dict[Kind, tuple[str, ...]] = {
    "distance": ("distance", "dist", "dissimilarity", "length", "cost"),
    "similarity": ("similarity", "affinity", "strength", "count", "trips", "flow"),
}
#: What columns are called, in upper or lower case; the first name of a role wins over the others.
KNOWN: dict[str, tuple[str, ...]] = {
    "source": ("source", "src", "from", "origin", "node1", "u"),
    "target": ("target", "dst", "to", "destination", "node2", "v"),
    "weight": ("weight", *_KINDS["distance"], *_KINDS["similarity"]),
}
#: The same of tables of records, also with _id at the end.
COLUMNS_OF_RECORDS: dict[str, tuple[str, ...]] = {
    "origin": ("origin", "source", "from", "start"),
    "destination": ("destination", "target", "to", "end"),
    "person": ("person", "user", "customer", "patient"),
    "node_column": ("node", "item", "id", "name", "terminal", "zone", "stop"),
    "item": ("item", "place", "location", "shop", "product"),
}
#: What to do with a table that is none of edges.
BUILD = (
    "a graph of records of people is built first: ptclust build, or graph_from_visits and "
    "graph_from_flows in Python"
)


class Columns(NamedTuple):
    """Names of the columns that the caller requested, None where well-known names are to do."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None


class Request(NamedTuple):
    """What is to be read of a file."""

    columns: Columns
    kind: Kind | None
    dialect: Dialect
    merging: bool  # whether edges between the same two nodes will be merged
    ends_only: bool  # all weights are then zero, and not looked at: there may be none


ROLES = Columns._fields
ENDS = ROLES[:2]


def choose_columns(
    there: Sequence[str],
    asked: Columns,
    where: object,
    roles: Sequence[str] = ROLES,
    *,
    shown: Sequence[str] | None = None,
    hint: str = "",
    has_header: bool = True,
) -> tuple[int, ...]:
    """Return the positions of the columns in these roles; an error lists the names ``shown``.

    Three columns without a header, of which two may do, are in the order of the roles.

    >>> choose_columns(["weight", "note", "From", "To"], Columns(), "the file")
    (2, 3, 0)
    """
    listed = f"its columns are: {quoted_list(there if shown is None else shown)}{hint}"
    in_order = not has_header and len(there) in (len(ROLES), len(roles))
    chosen, missing = [], []
    for position, role in enumerate(roles):
        name = getattr(asked, role)
        if name is None:
            found = [position] if in_order else known_columns(role, there, asked)
        elif not (found := [i for i, column in enumerate(there) if column == name]):
            raise FileError(f"{where} has no column {quoted(name)} for {role}; {listed}")
        if len(found) > 1:
            several = quoted_list([there[i] for i in found])
            choose = f"name one, {role}=, or rename all but one"
            raise FileError(f"{where} has several columns for {role} ({several}); {choose}")
        chosen += found
        missing += [] if found else [role]
    if missing:
        say = ", ".join(f"{role}=" for role in missing)
        which = f"it is not plain which column is the {' and which the '.join(missing)}"
        of_records = f"; {BUILD}" if missing == list(ROLES) else ""
        raise FileError(f"of {where} {which}; say so: {say}; {listed}{of_records}")
    if len(set(chosen)) < len(chosen):
        raise UsageError(f"one column of {where} would serve twice; name {'=, '.join(roles)}=")
    return tuple(chosen)


def known_columns(role: str, there: Sequence[str], asked: Columns) -> list[int]:
    """Return the positions of columns that have a name of this role, and no other role by request.

    >>> known_columns("weight", ["Cost", "weight", "count"], Columns())
    [1]
    """
    names = {i: name.strip().lower() for i, name in enumerate(there) if name not in asked}
    exact = [i for i, name in names.items() if name == role]
    return exact or [i for i, name in names.items() if name in KNOWN[role]]


def columns_of_records(there: Sequence[Any], role: str) -> list[Any]:
    """Return the columns that are called as this role is; its own name wins over the others.

    >>> columns_of_records(["to", "Origin", "from"], "origin")
    ['Origin']
    """
    names = {column: str(column).strip().lower() for column in there}
    known = COLUMNS_OF_RECORDS[role]
    exact = [column for column, name in names.items() if name == role]
    return exact or [column for column in there if names[column].removesuffix("_id") in known]


def kind_of(weight: object) -> Kind | None:
    """Return what weights in a column of this name are, or None if the name does not say it.

    >>> kind_of("Distance"), kind_of("trips"), kind_of("weight")
    ('distance', 'similarity', None)
    """
    name = str(weight).strip().lower()
    return next((kind for kind, names in _KINDS.items() if name in names), None)


def settled_kind(given: Kind | None, weight: object, where: object) -> Kind:
    """Return the kind that was given, or the one that the name of the weights says; or ask."""
    kind = given or kind_of(weight)
    if kind is None:
        close = "kind='distance' if small weights mean close"
        large = "kind='similarity' if large weights mean close, as counts do"
        raise UsageError(f"what the weights of {where} mean is not known; give {close}, {large}")
    check_kind(kind)
    return kind
