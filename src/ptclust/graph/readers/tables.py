"""Edge tables with typed columns: which three columns to use, Parquet files, and polars frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._types import Bools
from ptclust.errors import FileError, GraphError, UsageError, WeightError
from ptclust.graph._bounds import check_rows
from ptclust.graph.graph import Edges
from ptclust.graph.readers.ids import Numbered, number_hashables, number_integers, number_strings
from ptclust.graph.topology import Say, numbered

if TYPE_CHECKING:
    import polars as pl

_LISTED = 20


class Columns(NamedTuple):
    """Names of the columns that the caller asked for, None where it is left to us."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None


ROLES = Columns._fields


def choose_columns(
    there: Sequence[str], asked: Columns, where: str, shown: Sequence[str] | None = None
) -> tuple[int, int, int]:
    """Return the positions of source, target and weight among the columns there are.

    Columns not asked for are those called source, target and weight, in upper or lower case, if all
    of them are there; otherwise the first three columns. Errors list the names ``shown``.

    >>> choose_columns(["weight", "source", "target"], Columns(), "the file")
    (1, 2, 0)
    >>> choose_columns(["from", "to", "length", "price"], Columns(weight="price"), "the file")
    (0, 1, 3)
    """
    shown = there if shown is None else shown
    listed = ", ".join(repr(name) for name in shown[:_LISTED])
    if len(shown) > _LISTED:
        listed += f" and {len(shown) - _LISTED} more"
    if len(there) < len(ROLES):
        columns = f"{len(there)} column{'s' * (len(there) != 1)} ({listed})"
        check = "check the file and its separator (csv: comma, tsv: tab)"
        raise FileError(f"{where} has {columns}, but an edge needs three; {check}")
    lowered = [name.lower() for name in there]
    by_name = all(role in lowered for role, name in zip(ROLES, asked, strict=True) if name is None)
    chosen = []
    for position, (role, name) in enumerate(zip(ROLES, asked, strict=True)):
        if name is None:
            chosen.append(lowered.index(role) if by_name else position)
        elif name in there:
            chosen.append(there.index(name))
        else:
            raise FileError(f"{where} has no column {name!r} for {role}; its columns are: {listed}")
        if there.count(there[chosen[-1]]) > 1:
            twice = shown[chosen[-1]]
            raise FileError(f"{where} has several columns named {twice!r}; rename all but one")
    if len(set(chosen)) < len(chosen):
        name = f"name source=, target= and weight= (its columns are: {listed})"
        raise UsageError(f"one column of {where} would serve twice; {name}")
    return chosen[0], chosen[1], chosen[2]


def ends_are_named(there: Sequence[str], asked: Columns) -> bool:
    """Whether two columns are called as asked, or source and target."""
    lowered = [name.lower() for name in there]
    ends = (("source", asked.source), ("target", asked.target))
    return all(name in there or role in lowered for role, name in ends)


def choose_ends(
    there: Sequence[str], asked: Columns, where: str, shown: Sequence[str] | None = None
) -> tuple[int, int]:
    """Return the positions of source and target, where a weight may be missing.

    >>> choose_ends(["from", "to"], Columns(), "the file")
    (0, 1)
    """
    padded = there if len(there) > 2 else [*there, "weight"]
    if asked.weight is None and "weight" not in [name.lower() for name in padded]:
        by_name = ends_are_named(there, asked)
        rest = [name for name in padded if not by_name or name.lower() not in ROLES]
        asked = asked._replace(weight=rest[-1] if rest else None)
    return choose_columns(padded, asked, where, [*(shown or there), *padded[len(there) :]])[:2]


def read_parquet(path: Path, asked: Columns, *, ends_only: bool = False) -> Edges:
    """Return the edges of a Parquet file; with ``ends_only`` all weights are zero, and not read."""
    choose = choose_ends if ends_only else choose_columns
    frame = _read_columns(path, lambda there: choose(there, asked, str(path)))
    say = numbered("row", f" (counted from 0) of {path}")
    return edges_of_frame(frame, str(path), say, loose=False)


def _read_columns(path: Path, choose: Callable[[list[str]], tuple[int, ...]]) -> pl.DataFrame:
    """Return the columns of a Parquet file that ``choose`` picks by position; no other is read."""
    import polars as pl

    frame, chosen, n_rows = None, None, 0
    problems = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
    try:
        there = list(pl.read_parquet_schema(path))
        n_rows = pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
    except problems:
        there = []
    if there:
        check_rows(n_rows, path)
        chosen = [there[i] for i in choose(there)]
        with suppress(*problems):
            frame = pl.read_parquet(path, columns=chosen, glob=False)
    # Raised out here so that it has no context: polars may quote what it could not read.
    if frame is None or chosen is None:
        raise FileError(f"{path} is damaged, cut short, or no Parquet file; write it again")
    return frame.select(chosen)


def edges_of_frame(frame: pl.DataFrame, where: str, say: Say, *, loose: bool) -> Edges:
    """Return the edges of a frame with the columns source, target and, if not all 0, weight.

    ``loose`` allows ids of any hashable type; otherwise they are integers or strings.
    """
    import polars as pl

    sources, targets, *given = frame.get_columns()
    for ids in (sources, targets):
        check_ids(ids.name, ids.is_null().to_numpy(), say)
    values = np.zeros(len(frame))
    for weights in given:
        if not weights.dtype.is_numeric():
            bad = f"column {weights.name!r} of {where} is of type {weights.dtype}"
            name = "name a column of numbers: weight="
            raise WeightError(f"{bad}, so it cannot be the weight; {name}")
        check_weights(weights.is_null().to_numpy(), say)
        values = weights.cast(pl.Float64).to_numpy()
    found = _number(sources, targets, where, loose=loose)
    return Edges(found.sources, found.targets, values, None, found.names, say)


def check_ids(column: object, missing: Bools, say: Say) -> None:
    """Refuse a column in which the id of a node is missing."""
    if missing.any():
        where = say([int(missing.argmax())])
        raise GraphError(f"column {column!r} has no node id in {where}; complete it or remove it")


def check_weights(missing: Bools, say: Say) -> None:
    """Refuse a column in which a weight is missing."""
    if missing.any():
        such = f"({int(missing.sum())} such weights in all); complete or remove those edges"
        raise WeightError(f"the weight of {say([int(missing.argmax())])} is missing {such}")


def _number(sources: pl.Series, targets: pl.Series, where: str, *, loose: bool) -> Numbered:
    """Give numbers to the ids, by their type."""
    import polars as pl

    if sources.dtype.is_integer() and targets.dtype.is_integer():
        if sources.dtype != targets.dtype or sources.dtype not in (pl.Int64, pl.UInt64):
            sources, targets = _as_int64(sources, where), _as_int64(targets, where)
        return number_integers(sources.to_numpy(), targets.to_numpy())
    texts = (pl.String, pl.Categorical, pl.Enum)
    if sources.dtype in texts and targets.dtype in texts:
        return number_strings(sources.cast(pl.String), targets.cast(pl.String))
    if loose:
        return number_hashables(sources.to_list(), targets.to_list())
    types = " and ".join(f"{ids.dtype} (column {ids.name!r})" for ids in (sources, targets))
    both = "both must be integers, or both strings"
    raise GraphError(f"the node ids of {where} are of type {types}; {both}")


def _as_int64(ids: pl.Series, where: str) -> pl.Series:
    import polars as pl

    cast = ids.cast(pl.Int64, strict=False)
    if cast.null_count():
        beyond = f"column {ids.name!r} of {where} has a node id beyond 64 bits with a sign"
        raise GraphError(f"{beyond}; store source and target as strings")
    return cast
