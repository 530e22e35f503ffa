"""Graphs from and to the objects of other libraries.

The functions here stand behind ``Graph.from_*`` and ``Graph.to_*``; a package is imported only by the
function that needs it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.errors import (
    GraphError,
    InputError,
    MissingDependencyError,
    UsageError,
    WeightError,
)
from ptclust.graph._edges import Edges, numbered
from ptclust.graph._ids import number_hashables, number_integers
from ptclust.graph._matrix import edges_of_matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ptclust.graph.topology import Topology

__all__ = [
    "edges_of_dataframe",
    "edges_of_igraph",
    "edges_of_matrix",
    "edges_of_networkx",
    "edges_of_points",
    "to_dataframe",
    "to_igraph",
    "to_networkx",
    "to_scipy",
]

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
            raise WeightError(_no_weight(f"edge {edge} ({a!r} - {b!r})", weight))
    ends = np.array([(number[a], number[b]) for a, b, _ in triples], dtype=np.int64).reshape(-1, 2)
    return Edges(ends[:, 0], ends[:, 1], [value for _, _, value in triples], len(nodes), nodes)


def edges_of_igraph(graph: Any, weight: str) -> Edges:
    """Return the edges of an igraph graph; the vertex attribute ``name``, if any, names the nodes."""
    ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    names = graph.vs["name"] if "name" in graph.vs.attributes() else None
    values: list[Any] = [None] * len(ends)
    if weight in graph.es.attributes():
        values = graph.es[weight]
    for edge, value in enumerate(values):
        if value is None:
            a, b = (int(node) if names is None else names[node] for node in ends[edge])
            raise WeightError(_no_weight(f"edge {edge} ({a!r} - {b!r})", weight))
    return Edges(ends[:, 0], ends[:, 1], values, graph.vcount(), names)


def _no_weight(edge: str, weight: str) -> str:
    return f"{edge} has no attribute {weight!r}; give every edge one, or name another: weight="


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
    if library == "polars":
        from ptclust.graph._tables import edges_of_frame

        say = numbered("row", " (counted from 0)")
        return edges_of_frame(
            frame.select(source, target, weight), "the data frame", say, loose=True
        )
    return _edges_of_pandas(frame[source], frame[target], frame[weight])


def _library_of(frame: Any) -> str:
    """Return where the class DataFrame behind this one comes from, without importing it."""
    families = [kind for kind in type(frame).__mro__ if kind.__name__ == "DataFrame"]
    return families[0].__module__.partition(".")[0] if families else ""


def _edges_of_pandas(sources: Any, targets: Any, weights: Any) -> Edges:
    say = numbered("row", " (counted from 0)")
    for ids in (sources, targets):
        missing = ids.isna().to_numpy()
        if missing.any():
            raise GraphError(
                f"column {ids.name!r} has no node id in {say([int(missing.argmax())])}; every edge "
                "needs two of them: complete the row or remove it"
            )
    missing = weights.isna().to_numpy()
    if missing.any():
        raise WeightError(
            f"the weight of {say([int(missing.argmax())])} is missing ({int(missing.sum())} such "
            "weights in all); remove those edges or give them a weight"
        )
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
    return (
        _complete(points, metric) if n_neighbors is None else _nearest(points, metric, n_neighbors)
    )


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
            f"the complete graph of {n:,} points has {n * (n - 1) // 2:,} edges and would take about "
            f"{needed / 1e9:,.0f} GB, more than this machine has; give n_neighbors=, or call "
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


def to_networkx(topology: Topology, weights: NDArray[np.float64]) -> Any:
    """Return a ``networkx.Graph`` with the edge attribute ``weight``."""
    graph = package("networkx", "Graph.to_networkx").Graph()
    names = topology.names.tolist()
    graph.add_nodes_from(names)
    ends = zip(topology.sources.tolist(), topology.targets.tolist(), weights.tolist(), strict=True)
    graph.add_weighted_edges_from((names[a], names[b], value) for a, b, value in ends)
    return graph


def to_igraph(topology: Topology, weights: NDArray[np.float64]) -> Any:
    """Return an ``igraph.Graph`` with the edge attribute ``weight``."""
    ends = np.stack([topology.sources, topology.targets], axis=1)
    graph = package("igraph", "Graph.to_igraph").Graph(n=topology.n_nodes, edges=ends.tolist())
    graph.es["weight"] = weights.tolist()
    if topology._names is not None:
        graph.vs["name"] = topology.names.tolist()
    return graph


def to_scipy(topology: Topology, weights: NDArray[np.float64]) -> Any:
    """Return a symmetric ``scipy.sparse.csr_array``; an edge of weight zero is a stored zero."""
    from scipy.sparse import coo_array

    rows = np.concatenate([topology.sources, topology.targets])
    columns = np.concatenate([topology.targets, topology.sources])
    values = np.concatenate([weights, weights])
    return coo_array((values, (rows, columns)), shape=(topology.n_nodes,) * 2).tocsr()


def to_dataframe(topology: Topology, weights: NDArray[np.float64], backend: str) -> Any:
    """Return a data frame with the columns source, target and weight, one row an edge."""
    columns = {
        "source": topology.names[topology.sources],
        "target": topology.names[topology.targets],
        "weight": weights.copy(),
    }
    return data_frame(columns, backend)


def data_frame(columns: dict[str, NDArray[Any]], backend: str) -> Any:
    """Return the columns as a polars or pandas frame. Names that are not all strings stay the objects they are."""
    if backend == "pandas":
        return package("pandas", "to_dataframe(backend='pandas')").DataFrame(columns)
    if backend != "polars":
        raise UsageError(f"backend must be 'polars' or 'pandas', not {backend!r}")
    import polars as pl

    def series(name: str, values: NDArray[Any]) -> pl.Series:
        if values.dtype != object:
            return pl.Series(name, values)
        listed = values.tolist()
        plain = all(isinstance(value, str) for value in listed)
        return pl.Series(name, listed, dtype=pl.String if plain else pl.Object)

    return pl.DataFrame([series(name, values) for name, values in columns.items()])


def package(name: str, purpose: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingDependencyError(name, purpose) from None
