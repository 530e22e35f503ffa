"""Edge tables with typed columns: frames of polars, in memory and from Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from ptclust._markup import quoted
from ptclust._types import Array, Bools
from ptclust.errors import GraphError, WeightError
from ptclust.graph.graph import Edges
from ptclust.graph.readers.ids import (
    Numbered,
    number_hashables,
    number_integers,
    number_strings,
)
from ptclust.graph.topology import Say


def edges_of_frame(frame: pl.DataFrame, where: str, say: Say, *, loose: bool) -> Edges:
    """Return the edges of a frame with the columns source, target and, if not all 0, weight.

    ``loose`` allows ids of any hashable type; otherwise they are integers or strings.
    """
    check_types(dict(frame.schema), where, loose=loose)
    sources, targets, *given = frame.get_columns()
    for ids in (sources, targets):
        check_ids(ids.name, ids.is_null().to_numpy(), say)
    values: Array = np.zeros(len(frame))
    for weights in given:
        check_weights(weights.is_null().to_numpy(), say)
        values = as_numbers(weights).to_numpy()
    found = _number(sources, targets, where)
    columns = tuple(frame.columns) if given else None
    return Edges(found.sources, found.targets, values, None, found.names, say, columns=columns)


def text_types() -> tuple[Any, ...]:
    """Return the types of columns of texts."""
    return pl.String, pl.Categorical, pl.Enum


def text_size(table: pl.LazyFrame, types: Mapping[str, Any]) -> int:
    """Return how many bytes the texts of these columns are, each as often as it occurs.

    A text that many rows share takes its space once, and the time to read it for every row.
    """
    lengths = [
        pl.col(name).str.len_bytes() if dtype == pl.String else pl.col(name).cat.len_bytes()
        for name, dtype in types.items()
        if dtype in text_types()
    ]
    if not lengths:
        return 0
    sums = (each.cast(pl.UInt64).sum() for each in lengths)  # not of 32 bits, which end at 4 GiB
    return sum(table.select(sums).collect(engine="streaming").row(0))


def check_types(types: dict[str, Any], where: str, *, loose: bool = False) -> None:
    """Refuse columns, source, target and perhaps weight, whose types are not those of an edge."""
    texts = text_types()
    (source, of_source), (target, of_target), *given = types.items()
    integers = of_source.is_integer() and of_target.is_integer()
    strings = of_source in texts and of_target in texts
    if not (loose or integers or strings):
        named = f"{of_source} (column {quoted(source)}) and {of_target} (column {quoted(target)})"
        both = "both must be integers, or both strings"
        raise GraphError(f"the node ids of {where} are of type {named}; {both}")
    for name, dtype in given:
        if not dtype.is_numeric():
            bad = f"column {quoted(name)} of {where} is of type {dtype}, so it cannot be the weight"
            raise WeightError(f"{bad}; name a column of numbers: weight=")


def as_numbers(weights: pl.Series) -> pl.Series:
    """Return integers, to be summed exactly, if 64 bits hold all, floats otherwise.

    A text that is not a number becomes null.
    """
    if weights.dtype.is_integer() or weights.dtype == pl.String:
        whole = weights.cast(pl.Int64, strict=False)
        if not whole.null_count():
            return whole
    return weights.cast(pl.Float64, strict=False)


def check_ids(column: object, missing: Bools, say: Say) -> None:
    """Refuse a column in which the id of a node is missing."""
    if missing.any():
        where = say([int(missing.argmax())])
        bad = f"column {quoted(column)} has no node id in {where}"
        raise GraphError(f"{bad}; complete it or remove it")


def check_weights(missing: Bools, say: Say) -> None:
    """Refuse a column in which a weight is missing."""
    if missing.any():
        where = say([int(missing.argmax())])
        raise WeightError(f"the weight of {where} is missing; complete or remove the edge")


def _number(sources: pl.Series, targets: pl.Series, where: str) -> Numbered:
    """Give numbers to the ids, by their type."""
    if sources.dtype.is_integer() and targets.dtype.is_integer():
        as_they_are = (pl.Int32, pl.UInt32, pl.Int64, pl.UInt64)
        if sources.dtype != targets.dtype or sources.dtype not in as_they_are:
            sources, targets = _as_int64(sources, where), _as_int64(targets, where)
        return number_integers(sources.to_numpy(), targets.to_numpy())
    if sources.dtype in text_types() and targets.dtype in text_types():
        return number_strings(sources.cast(pl.String), targets.cast(pl.String))
    return number_hashables(sources.to_list(), targets.to_list())


def _as_int64(ids: pl.Series, where: str) -> pl.Series:
    cast = ids.cast(pl.Int64, strict=False)
    if cast.null_count():
        beyond = f"column {quoted(ids.name)} of {where} has a node id beyond 64 bits with a sign"
        raise GraphError(f"{beyond}; store source and target as strings")
    return cast
