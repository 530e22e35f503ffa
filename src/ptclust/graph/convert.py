"""The edges of objects of other libraries: what is behind ``Graph.from_*``.

A package is imported only by the function that needs it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptclust.errors import InputError, UsageError, WeightError
from ptclust.graph._checks import Say, numbered
from ptclust.graph.graph import Edges
from ptclust.graph.readers.ids import number_hashables, number_integers
from ptclust.graph.readers.tables import check_ids, check_weights, edges_of_frame

_BYTES_PER_EDGE = 48
"""Of a complete graph while it is made: distances, endpoints, and a copy of each to check."""

_ABSENT = object()


def edges_of_networkx(graph: Any, weight: str) -> Edges:
    """Return the edges of a networkx graph of any kind, their direction forgotten."""
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    triples = list(graph.edges(data=weight, default=_ABSENT))
    for edge, (a, b, value) in enumerate(triples):
        if value is _ABSENT or value is None:
            raise _no_weight(edge, a, b, weight)
    ends = np.array([(number[a], number[b]) for a, b, _ in triples], dtype=np.int64).reshape(-1, 2)
    return Edges(ends[:, 0], ends[:, 1], [value for _, _, value in triples], len(nodes), nodes)


def edges_of_igraph(graph: Any, weight: str) -> Edges:
    """Return the edges of an igraph graph; the vertex attribute ``name``, if any, is used."""
    ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    names = graph.vs["name"] if "name" in graph.vs.attributes() else None
    values: Any = graph.es[weight] if weight in graph.es.attributes() else [None] * len(ends)
    for edge, value in enumerate(values):
        if value is None:
            a, b = (int(node) if names is None else names[node] for node in ends[edge])
            raise _no_weight(edge, a, b, weight)
    return Edges(ends[:, 0], ends[:, 1], values, graph.vcount(), names)


def _no_weight(edge: int, a: object, b: object, weight: str) -> WeightError:
    return WeightError(
        f"edge {edge} ({a!r} - {b!r}) has no attribute {weight!r}; give every edge one, "
        "or name another: weight="
    )


def edges_of_dataframe(frame: Any, source: str, target: str, weight: str) -> Edges:
    """Return the edges of a pandas or polars data frame."""
    library = _library_of(frame)
    if library not in ("pandas", "polars"):
        raise UsageError(
            f"the data frame must be of pandas or polars, not {type(frame).__name__}"
            + ("; collect it first" if type(frame).__name__ == "LazyFrame" else "")
        )
    there = list(frame.columns)
    for role, name in (("source", source), ("target", target), ("weight", weight)):
        if there.count(name) != 1:
            how_many = "several columns" if name in there else "no column"
            listed = ", ".join(repr(column) for column in there)
            raise InputError(
                f"the data frame has {how_many} {name!r} for {role}; its columns are: {listed}"
            )
    if len({source, target, weight}) < 3:
        raise UsageError("source, target and weight must be three different columns")
    say = numbered("row", " (counted from 0)")
    if library == "polars":
        columns = frame.select(source, target, weight)
        return edges_of_frame(columns, "the data frame", say, loose=True)
    return _edges_of_pandas(frame[source], frame[target], frame[weight], say)


def _library_of(frame: Any) -> str:
    """Return where the class DataFrame behind this one comes from, without importing it."""
    families = [kind for kind in type(frame).__mro__ if kind.__name__ == "DataFrame"]
    return families[0].__module__.partition(".")[0] if families else ""


def _edges_of_pandas(sources: Any, targets: Any, weights: Any, say: Say) -> Edges:
    for ids in (sources, targets):
        check_ids(ids.name, ids.isna().to_numpy(), say)
    check_weights(weights.isna().to_numpy(), say)
    a, b = sources.to_numpy(), targets.to_numpy()
    if {a.dtype.kind, b.dtype.kind} <= set("iu") and np.result_type(a, b).kind != "f":
        wide = np.result_type(a, b)
        found = number_integers(a.astype(wide), b.astype(wide))
    else:
        found = number_hashables(sources.tolist(), targets.tolist())
    return Edges(found.sources, found.targets, weights.to_numpy(), None, found.names, say)


def edges_of_points(X: ArrayLike, metric: str, n_neighbors: int | None) -> Edges:
    """Return all distances in the order of ``pdist``, or those to the nearest neighbours."""
    points = _as_points(X)
    if n_neighbors is None:
        return _complete(points, metric)
    return _nearest(points, metric, n_neighbors)


def _as_points(X: ArrayLike) -> NDArray[np.float64]:
    try:
        points = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        points = None
    if points is None or points.ndim != 2:
        raise InputError("the points must be a two-dimensional array of numbers, one point a row")
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise InputError(
            f"point {int(bad.argmax())} (rows count from 0) has a coordinate that is not a finite "
            f"number ({int(bad.sum())} such points in all); remove or complete those points"
        )
    return points


def _complete(points: NDArray[np.float64], metric: str) -> Edges:
    from scipy.spatial.distance import pdist

    n = len(points)
    needed = n * (n - 1) // 2 * _BYTES_PER_EDGE
    if needed > _memory():
        raise InputError(
            f"the complete graph of {n:,} points has {n * (n - 1) // 2:,} edges and would take "
            f"about {needed / 1e9:,.0f} GB, more than this machine has; give n_neighbors=, or call "
            "DBMSTClu().fit(points), which needs no graph of all pairs"
        )
    weights = None
    try:
        weights = pdist(points, metric) if n > 1 else np.empty(0)
    except (ValueError, TypeError) as error:
        problem = str(error)
    if weights is None:
        raise UsageError(f"the metric {metric!r} cannot be used on these points: {problem}")
    first, second = np.triu_indices(n, 1)
    return Edges(first, second, weights, n)


def _nearest(points: NDArray[np.float64], metric: str, n_neighbors: int) -> Edges:
    from sklearn.neighbors import kneighbors_graph

    n = len(points)
    if not 1 <= n_neighbors < n:
        raise UsageError(
            f"n_neighbors must be at least 1 and below the number of points, {n}, not {n_neighbors}"
        )
    matrix = None
    with suppress(ValueError, TypeError):
        matrix = kneighbors_graph(points, n_neighbors, mode="distance", metric=metric)
    if matrix is None:
        raise UsageError(f"the metric {metric!r} cannot be used to find nearest neighbours")
    found = matrix.tocoo()
    return Edges(found.row, found.col, found.data, n)


def _memory() -> int:
    """Return the memory of this machine in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return 64 * 10**9
