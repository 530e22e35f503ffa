"""Profiles: how far apart the values of two nodes are, on average over people."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats, Ints
from ptclust.building._build import Build, at_least
from ptclust.building._pairs import Pairs, is_private
from ptclust.building._records import Records
from ptclust.engines.spark import is_frame
from ptclust.errors import UsageError
from ptclust.graph.graph import Graph
from ptclust.graph.readers.csv import with_points
from ptclust.privacy._numbers import float_up
from ptclust.privacy.provenance import Neighbours
from ptclust.privacy.sensitivity import Sensitivity

Dissimilarity = Literal["absolute", "squared"]

_BITS = 20  # a value is one of 2^20 + 1 between the bounds
_STEPS = 1 << _BITS
_MISSING = -1
_LARGEST_EXACT = 2**53  # up to here sums of whole numbers are exact as floats
_CHUNK = 1 << 22  # differences at a time
_N_PERSONS = (
    "it is a public number, about the number of persons, that sums are divided by; with "
    "neighbours='replace' it may be left out"
)


@leaves_no_trace
def graph_from_profiles(
    records: Any,
    *,
    low: float,
    high: float,
    nodes: Iterable[Any] | None = None,
    edges: Any = None,
    person: str | None = None,
    n_persons: int | None = None,
    dissimilarity: Dissimilarity = "absolute",
    neighbours: Neighbours = "add-remove",
) -> Graph:
    """Make a graph of a table of scores, doses or ratings: one row per person, one column per node.

    The weight of a pair of nodes is the mean over persons of how far apart the person's values on
    both are. The graph is of kind distance and carries ``sensitivity``, ``unit``, ``provenance``.

    Parameters
    ----------
    records : polars DataFrame or LazyFrame, pandas DataFrame, or path
        As in `ptclust.graph_from_flows`. A table with one row per value becomes such a one by
        ``frame.pivot("node", index="person", values="value")``.
    low, high : float
        Public bounds of the values; values outside are moved to the nearer one.
    nodes : iterable of int or str
        The public list of nodes, each the name of a column; all pairs of them get a weight.
    edges : Topology, data frame, path, or iterable of pairs
        In place of ``nodes``: the public list of pairs that get a weight.
    person : str, optional
        The column that says whose row it is; several rows of a person count as their mean. Without
        it, every row is a person.
    n_persons : int
        What sums are divided by: a public number, about the number of persons. It may be left out
        with ``neighbours="replace"``, for then the number of persons is public.
    dissimilarity : {"absolute", "squared"}
        |x - y|, or (x - y)^2.
    neighbours : {"add-remove", "replace"}
        As in `ptclust.graph_from_flows`.

    Notes
    -----
    *Privacy.* A weight is a sum over persons of a number between 0 and the range (high - low, or
    its square), divided by a number N that is the same for neighbours. One person more or less, or
    in place of another, changes every such sum by at most the range: linf = range / N, and l1 and
    l2 follow from the number of pairs.

    This holds in floating-point arithmetic. Values are rounded to one of 2^20 + 1 steps, and a
    person's number is a whole one between 0 and 2^20: its sum over persons is exact in any order.
    It is cut at N times 2^20, which moves no two sums further apart, and multiplied by c, the
    nearest float to range / (2^20 N), in one rounding, which is off by at most a share 2^-53 of at
    most 2^20 N c. So a weight changes by at most 2^20 c (1 + 2 N / 2^53), which is what is stated.

    A value that is missing or not a number counts half of the range for this person in every pair.
    A row whose person is missing is dropped.

    Examples
    --------
    >>> import polars
    >>> scores = polars.DataFrame({"a": [0.0, 1.0], "b": [0.0, 0.5], "c": [1.0, 0.0]})
    >>> graph = graph_from_profiles(
    ...     scores, nodes=["a", "b", "c"], low=0, high=1, neighbours="replace"
    ... )
    >>> graph.weights.tolist(), round(graph.sensitivity.linf, 9)
    ([0.25, 1.0, 0.75], 0.5)
    """
    if is_private(edges):
        raise UsageError("edges='private' is for counts; give a public list of nodes or pairs")
    build = Build("graph_from_profiles", records, nodes, edges, neighbours=neighbours)
    bounds = _as_bounds(low, high)
    if dissimilarity not in get_args(Dissimilarity):
        raise UsageError(f"dissimilarity must be 'absolute' or 'squared', not {dissimilarity!r}")
    if n_persons is not None or neighbours == "add-remove":
        n_persons = at_least("n_persons", n_persons, 1, _N_PERSONS)
    if is_frame(records):
        raise UsageError(
            "profiles are not built by Spark: they are one row per person, so few that one machine "
            "does; give their Parquet file, or frame.toPandas() (on the command line: leave "
            "--engine spark out)"
        )
    columns = {f"node {i}": str(name) for i, name in enumerate(build.pairs.names.tolist())}
    table = Records(records, columns if person is None else {**columns, "person": person})
    steps = _steps(table, list(columns), bounds, of_persons=person is not None)
    share = max(len(steps), 1) if n_persons is None else n_persons
    if share * _STEPS > _LARGEST_EXACT:
        raise UsageError(f"n_persons must be at most {_LARGEST_EXACT // _STEPS:,}, not {share:,}")
    factor = _factor(bounds, dissimilarity, share)

    def weights() -> Floats:
        sums = _sums(steps, build.pairs, dissimilarity)
        return np.minimum(sums, share * _STEPS).astype(np.float64) * factor

    unit = "one row" if person is None else "one person"
    low, high = bounds
    return build.graph(
        weights,
        Sensitivity(linf=float_up(_change(factor, share))),
        f"{unit}, one value between {low:g} and {high:g} a node",
        kind="distance",
        details={"n_persons": share, "dissimilarity": dissimilarity, "low": low, "high": high},
    )


def _as_bounds(low: Any, high: Any) -> tuple[float, float]:
    try:
        bounds = float(low), float(high)
    except (TypeError, ValueError):
        bounds = 0.0, 0.0
    if not (bounds[0] < bounds[1] and math.isfinite(bounds[1] - bounds[0])):
        raise UsageError(
            f"low={low!r} and high={high!r} are not public bounds of the values, the smaller first"
        )
    return bounds


def _factor(bounds: tuple[float, float], dissimilarity: Dissimilarity, share: int) -> float:
    """Return what a step weighs: range / (2^20 N), a normal float."""
    width = Fraction(bounds[1]) - Fraction(bounds[0])
    step = (width if dissimilarity == "absolute" else width**2) / (_STEPS * share)
    if not sys.float_info.min <= step <= sys.float_info.max / (_STEPS * share):
        raise UsageError(
            "low and high are too close together, or too far apart; rescale the values"
        )
    return float(step)


def _change(factor: float, share: int) -> Fraction:
    """Return the most that one person changes a weight, both its roundings included."""
    return _STEPS * Fraction(factor) * (1 + Fraction(2 * share, _LARGEST_EXACT))


def _steps(
    table: Records, roles: list[str], bounds: tuple[float, float], *, of_persons: bool
) -> Ints:
    """Return the values of every person as whole numbers from 0 to 2^20, -1 where there is none."""
    table.check_numbers(roles)
    lazy = table.with_persons(table.lazy) if of_persons else table.lazy
    if table.decimal == ",":
        lazy = lazy.with_columns(with_points(pl.col(roles)))
    lazy = lazy.with_columns(_step(role, bounds) for role in roles)
    if of_persons:
        mean = (pl.col(role).sum() // pl.col(role).count() for role in roles)  # of whole numbers
        lazy = lazy.group_by("person").agg(mean)
    whole = pl.col(roles).fill_null(_MISSING).cast(pl.Int32)
    return np.ascontiguousarray(table.collect(lazy.select(whole)).to_numpy())


def _step(role: str, bounds: tuple[float, float]) -> pl.Expr:
    low, high = bounds
    value = pl.col(role).cast(pl.Float64, strict=False).fill_nan(None).clip(low, high)
    return ((value - low) / (high - low) * _STEPS + 0.5).floor().cast(pl.Int64)


def _sums(steps: Ints, pairs: Pairs, dissimilarity: Dissimilarity) -> Ints:
    """Return the sum over persons, for every pair, of a number between 0 and 2^20."""
    keys = pairs.keys()
    sums = np.zeros(len(keys), dtype=np.int64)
    width = max(1, _CHUNK // max(1, len(steps)))
    for start in range(0, len(keys), width):
        some = slice(start, start + width)
        a = steps[:, keys[some] // pairs.n_nodes].astype(np.int64)
        b = steps[:, keys[some] % pairs.n_nodes].astype(np.int64)
        apart: Array = np.abs(a - b) if dissimilarity == "absolute" else (a - b) ** 2 >> _BITS
        apart[(a == _MISSING) | (b == _MISSING)] = _STEPS // 2
        sums[some] = apart.sum(axis=0)
    return sums
