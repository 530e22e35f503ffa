"""What other libraries call graphs, and points, as edges: each becomes a `Graph` by one path."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from ptclust._markup import quoted, quoted_list
from ptclust._tables import library_of
from ptclust.errors import GraphError, InputError, UsageError, WeightError
from ptclust.graph.graph import Edges, How
from ptclust.graph.readers.columns import BUILD, kind_of
from ptclust.graph.readers.ids import number_hashables, number_integers
from ptclust.graph.readers.tables import check_ids, check_weights, edges_of_frame
from ptclust.graph.topology import Kind, numbered, shown

_BYTES_PER_EDGE = 48  # of a complete graph: distances, endpoints, and a copy of each to check


def edges_of_networkx(graph: Any, weight: str, merge: How) -> Edges:
    """Return the edges of a networkx graph; the direction of edges is forgotten."""
    _check_directed(graph, merge)
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    triples = list(graph.edges(data=weight))
    ends = [(number[a], number[b]) for a, b, _ in triples]
    values = [value for _, _, value in triples]
    return _edges(ends, values, len(nodes), nodes, weight, graph.graph.get("kind"))


def edges_of_igraph(graph: Any, weight: str, merge: How) -> Edges:
    """Return the edges of an igraph graph; the direction of edges is forgotten."""
    _check_directed(graph, merge)
    ends = graph.get_edgelist()
    names = graph.vs["name"] if "name" in graph.vs.attributes() else None
    values = graph.es[weight] if weight in graph.es.attributes() else [None] * len(ends)
    kind = graph["kind"] if "kind" in graph.attributes() else None
    return _edges(ends, values, graph.vcount(), names, weight, kind)


def _check_directed(graph: Any, merge: How) -> None:
    """Refuse a directed graph unless it is said what becomes of an edge there and an edge back."""
    if graph.is_directed() and merge is None:
        raise GraphError(
            "the graph is directed, and clusters are of undirected ones: an edge there and an edge "
            "back become one. Say how their weights are merged, Graph.from_networkx(graph, "
            "merge='sum') (or from_igraph; 'min', 'max'): the sensitivity is then of merged weights"
        )


def _edges(
    ends: list[tuple[int, int]],
    values: list[Any],
    n_nodes: int,
    names: list[Any] | None,
    weight: str,
    stated: object,
) -> Edges:
    """Return edges whose weights are of the kind that the graph states, or the attribute's name."""
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    for edge, value in enumerate(values):
        if value is None:
            a, b = (int(node) if names is None else names[node] for node in pairs[edge])
            lacks = f"edge {edge} ({shown(a)} - {shown(b)}) has no attribute {quoted(weight)}"
            raise WeightError(f"{lacks}; give every edge one, or name another: weight=")
    kind = next((kind for kind in get_args(Kind) if kind == stated), None) or kind_of(weight)
    return Edges(pairs[:, 0], pairs[:, 1], values, n_nodes, names, kind=kind)


def edges_of_dataframe(frame: Any, columns: dict[str, str]) -> Edges:
    """Return the edges of a pandas or polars data frame, of columns by their roles."""
    library = library_of(frame)
    if library not in ("pandas", "polars"):
        given = type(frame).__name__
        collect = "; collect it first" if given == "LazyFrame" else ""
        raise UsageError(f"the data frame must be of pandas or polars, not {given}{collect}")
    there = list(frame.columns)
    for role, name in columns.items():
        if there.count(name) != 1:
            wrong = f"{'several columns' if name in there else 'no column'} {quoted(name)}"
            listed = f"name the right one, {role}=; its columns are: {quoted_list(there)}"
            raise InputError(f"the data frame has {wrong} for {role}; {listed}; {BUILD}")
    if len(set(columns.values())) < 3:
        raise UsageError("source, target and weight must be three different columns")
    say = numbered("row", " (counted from 0)")
    if library == "polars":
        return edges_of_frame(frame.select(*columns.values()), "the data frame", say, loose=True)
    sources, targets, weights = (frame[name] for name in columns.values())
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
    """Return the distances between all points, or from each to its nearest neighbours."""
    points = None
    with suppress(TypeError, ValueError):
        points = np.asarray(X, dtype=np.float64)
    if points is None or points.ndim != 2:
        raise InputError("the points must be a two-dimensional array of numbers, one point per row")
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        wrong = "has a coordinate that is not a finite number"
        raise InputError(f"point {int(bad.argmax())} (rows count from 0) {wrong}; complete it")
    n = len(points)
    if n_neighbors is None:
        use = "give n_neighbors= or use DBMSTClu().fit"
        check_complete(n, f"the complete graph of {n:,} points", use)
    elif not 1 <= n_neighbors < n:
        allowed = f"at least 1 and below the number of points, {n}"
        raise UsageError(f"n_neighbors must be {allowed}, not {n_neighbors}")
    # Raised out here: what scipy and scikit-learn say may quote coordinates.
    with suppress(TypeError, ValueError):
        if n_neighbors is None:
            from scipy.spatial.distance import pdist

            weights = pdist(points, metric) if n > 1 else np.empty(0)
            return Edges(*np.triu_indices(n, 1), weights, n)
        from sklearn.neighbors import kneighbors_graph

        near = kneighbors_graph(points, n_neighbors, mode="distance", metric=metric).tocoo()
        return Edges(near.row, near.col, near.data, n)
    raise UsageError(f"the metric {metric!r} cannot be used on these points")


def check_complete(n_nodes: int, graph: str, remedy: str) -> None:
    """Refuse a complete graph that this machine cannot hold."""
    n_edges = n_nodes * (n_nodes - 1) // 2
    if (needed := n_edges * _BYTES_PER_EDGE) > _memory():
        takes = f"has {n_edges:,} edges and takes {needed / 1e9:,.0f} GB, beyond this machine"
        raise InputError(f"{graph} {takes}; {remedy}")


def _memory() -> int:
    """Return the memory of this machine in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return 64 * 10**9
