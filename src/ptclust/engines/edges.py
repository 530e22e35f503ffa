"""Graphs whose edges stay in Spark; this machine sees only their number.

Names of nodes fit on this machine, edges need not. Noise and clocks are drawn where the edges are,
and once: as a function of a key and the edge (``mechanisms.keyed``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import polars as pl

from ptclust._traces import leaves_no_trace
from ptclust._types import Array
from ptclust.engines import spark
from ptclust.engines.key_service import Ticket, serve_key
from ptclust.errors import GraphError, UsageError, WeightError
from ptclust.graph.graph import MERGES, How
from ptclust.graph.readers import read_graph, read_metadata
from ptclust.graph.readers.columns import ENDS, ROLES, Columns, choose_columns, settled_kind
from ptclust.graph.readers.tables import check_types
from ptclust.graph.topology import (
    Counts,
    Kind,
    Topology,
    as_distances,
    as_objects,
    index_dtype,
)
from ptclust.mechanisms._clock_kernel import DROPPED, SHORTER
from ptclust.mechanisms.keyed import (
    Clocks,
    Pruning,
    ShortestPaths,
    add_keyed_noise,
    bounding_edges,
    draw_noise_key,
    edge_numbers,
    kruskal_edges,
)
from ptclust.published import Published
from ptclust.trees.mst import minimum_spanning_edges
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    from ptclust.mechanisms import Calibration, Mechanism
    from ptclust.privacy.noise import Noise
    from ptclust.privacy.provenance import Provenance

Bounds = tuple[float, float]

_PER_NODE = 8  # edges that a task reduces to a forest at a time, per node
_MERGED = 8  # forests that one task merges
_KEPT = 4  # times as many edges may be left of those that it merges
_WRITTEN = "low bigint, high bigint, weight double"
_MERGED_ROWS = "source bigint, target bigint, weight double"
_EDGES = "edge bigint, weight double"
_TOO_MANY = -1  # in place of an edge: there are more like these


def spark_edges(
    frame: Any,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    *,
    merge: How = None,
    kind: Kind | None = None,
) -> SparkEdges:
    """Return the graph of a DataFrame of Spark, one row per edge; its weights stay where they are.

    What it returns goes where a Graph goes in `ptclust.PTClust` and
    `ptclust.private_spanning_tree`, and its ``topology`` in `ptclust.plan`.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame, or the path of a Parquet file or folder
        A path is read by the session that is active, or a new one on this machine.
    source, target, weight : str, optional
        Columns, by default those that are called so, or have another name that `ptclust.read_graph`
        knows. Ids are integers or texts.
    merge : {"min", "max", "sum"}, optional
        How to merge the weights of rows of the same two nodes, which are an error otherwise.
    kind : {"distance", "similarity"}, optional
        It must be said unless the column of the weights is called by it.

    Notes
    -----
    *Privacy.* No row is read by this function.
    """
    asked = Columns(source, target, weight)
    if isinstance(frame, (str, os.PathLike)):
        return SparkEdges.read(Path(frame), asked, kind, merge=merge)
    if not spark.is_frame(frame):
        raise UsageError(f"a DataFrame of Spark is needed, not {type(frame).__name__}")
    return SparkEdges.of(frame, asked, kind, "the data frame", merge=merge)


@leaves_no_trace
class SparkEdges:
    """An undirected simple graph in a DataFrame of Spark: one row per edge.

    Nodes are numbered by their names, as in every graph. Loops, missing ids, weights that are no
    finite numbers and, unless they are merged, parallel edges are refused, as soon as `topology` is
    asked for.

    Notes
    -----
    *Privacy.* The weights are read by tasks of Spark. They leave them with noise, or as those of
    the few edges that a tree can have, to get their noise on this machine. Every file that is
    written has its rows in an order that follows from the topology.
    """

    def __init__(
        self,
        frame: Any,
        columns: dict[str, str],
        kind: Kind,
        where: str,
        merge: How = None,
    ) -> None:
        if merge is not None and merge not in MERGES:
            raise UsageError(f"merge must be 'min', 'max' or 'sum', not {merge!r}")
        self.kind, self.where, self._merging = kind, where, merge
        self.merge: How | Literal["mean"] = merge
        self.columns = tuple(columns.values())
        self.provenance: Provenance | None = None  # unless ptclust built it
        self.topology_of_data = False
        self._has_weights = "weight" in columns
        self._table = spark.SparkTable(frame, columns)

    @property
    def unit(self) -> str | None:
        """The privacy unit, if ptclust built the graph from records."""
        return None if self.provenance is None else self.provenance.unit

    @cached_property
    def names(self) -> Array:
        """The names of all nodes, in their order."""
        ids = self._table.distinct(("source", "target"))
        if ids.null_count():
            raise GraphError(f"some rows of {self.where} lack the id of a node; remove them")
        if not (ids.dtype.is_integer() or ids.dtype == pl.String):
            raise GraphError(f"node ids of {self.where} must be integers or texts, not {ids.dtype}")
        names = ids.sort()
        return names.to_numpy() if ids.dtype.is_integer() else as_objects(names.to_list())

    @cached_property
    def _coded(self) -> spark.SparkTable:
        """The table with numbers of nodes, ``source`` and ``target``, and one row per edge."""
        n, coded = len(self.names), self._table
        if not np.array_equal(self.names, np.arange(n)):
            coded = coded.coded(("source", "target"), self.names)
        if self._merging is None:
            return coded
        merged = partial(_merged, n, self._merging)
        first = partial(_edges, n, "weight" if self._has_weights else None)
        return coded.exchanged(first, "edge", merged, _MERGED_ROWS)

    @cached_property
    def topology(self) -> Topology:
        """The numbers of the topology; all that is wrong with the edges is found here."""
        n = len(self.names)
        count = partial(_edges, n, "bad" if self._has_weights else None)
        found = self._coded.exchanged_sums(count, "edge", partial(_counts, n))
        n_edges, n_twice, n_loops, n_bad = found.row(0)
        if n_loops:
            raise GraphError(f"{self.where} joins nodes to themselves; remove such rows")
        if n_twice:
            raise GraphError(
                f"{self.where} has two rows for some pairs of nodes: say how to merge them, "
                "merge='sum', and let the sensitivity bound the merged weights"
            )
        if n_bad:
            raise WeightError(f"weights of {self.where} are missing or not finite numbers")
        forest = _forest(self._coded, partial(_edges, n, "zero"), n, 1.0)
        return cast("Topology", Counts(self.names, n_edges, n - len(forest)))

    @classmethod
    def of(
        cls,
        frame: Any,
        asked: Columns,
        kind: Kind | None,
        where: str,
        *,
        merge: How = None,
        ends_only: bool = False,
    ) -> SparkEdges:
        """Return the graph of a DataFrame, its columns found by name; no row is read.

        With ``ends_only`` there are no weights.
        """
        roles = ENDS if ends_only else ROLES
        there = list(frame.columns)
        chosen = [there[i] for i in choose_columns(there, asked, where, roles)]
        named = dict(zip(roles, chosen, strict=True))
        if not ends_only:
            kind = settled_kind(kind, named["weight"], where)
        edges = cls(frame, named, kind or "distance", where, merge)
        check_types(dict(edges._table.empty.schema), where)
        return edges

    @classmethod
    def read(
        cls,
        path: Path,
        asked: Columns,
        kind: Kind | None,
        master: str | None = None,
        *,
        merge: How = None,
        ends_only: bool = False,
    ) -> SparkEdges:
        """Return the graph of a Parquet file, or of a folder of them.

        No row is read, but of a file that `Graph.save` wrote: what that says of its graph holds for
        these rows alone, so this machine reads all of them, as it did when it wrote them.
        """
        if not (path.is_file() and read_metadata(path) is not None):
            frame = spark.read_parquet(path, master)
            return cls.of(frame, asked, kind, str(path), merge=merge, ends_only=ends_only)
        graph = read_graph(path, **asked._asdict(), merge=merge, kind=kind)
        edges = cls.of(spark.read_parquet(path, master), asked, graph.kind, str(path))
        edges.merge, edges.provenance = graph.merge, graph.provenance
        edges.topology_of_data = graph.topology_of_data
        counts = Counts(graph.names, graph.n_edges, graph.topology.n_components)
        edges.__dict__ |= {"names": graph.names, "topology": counts}
        return edges

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.topology.n_nodes

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.topology.n_edges

    def check_driver(self) -> None:
        """Refuse a session whose workers cannot ask this machine for a key."""
        self._table.driver_addresses()

    @property
    def node_of(self) -> Array:
        """The numbers of the nodes: those of their names."""
        return np.arange(self.n_nodes)

    def publish(
        self,
        mechanism: Mechanism,
        calibration: Calibration,
        bounds: Bounds,
        place: str | None = None,
        *,
        whole: bool = False,
        key: bytes | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Published:
        """Draw what a mechanism publishes.

        Where that is noise on the weights of all edges, they may be written to a new folder of
        Parquet. With ``whole`` all of them are returned, and else those of their spanning tree.
        ``key`` is for tests.

        Notes
        -----
        *Privacy.* As `add_keyed_noise` and `kruskal_edges`: every edge is there once, has one
        weight, and its noise and its clock are the same however often a task runs.
        """
        noise = calibration.weights
        n_values = self.n_edges if calibration.tree is None else self.topology.n_tree_edges
        if noise.n_values != n_values:
            raise UsageError(f"this noise is for {noise.n_values} values, not {n_values}")
        with self._serve(key) as ticket:
            add = partial(_noisy, self.n_nodes, noise, bounds, ticket)
            if calibration.tree is None:
                progress(f"Noise on {self.n_edges:,} weights, by Spark")
                return self._publish_graph(mechanism, noise, add, place, whole=whole)
            progress(f"Private spanning tree of {self.n_edges:,} edges, by Spark")
            rows = self._draw(mechanism, calibration.tree.exponent, bounds, ticket)
            return Published(mechanism.name, noise, self._tree(add(rows)))

    def draw_tree(
        self,
        mechanism: Mechanism,
        calibration: Calibration,
        bounds: Bounds,
        key: bytes | None = None,
    ) -> Tree:
        """Draw the topology of a tree alone; see `publish`."""
        if calibration.tree is None:
            tree = self.publish(mechanism, calibration, bounds, key=key).tree
            return Tree(tree.topology, edge_ids=tree.edge_ids, kind=tree.kind)
        with self._serve(key) as ticket:
            rows = self._draw(mechanism, calibration.tree.exponent, bounds, ticket)
        return Tree(self._topology_of(rows), kind=self.kind)

    def _serve(self, key: bytes | None) -> AbstractContextManager[Ticket]:
        return serve_key(draw_noise_key() if key is None else key, *self._table.driver_addresses())

    def _publish_graph(
        self, mechanism: Mechanism, noise: Noise, add: spark.Rows, place: str | None, *, whole: bool
    ) -> Published:
        """Put noise on all weights: in one pass, or in the order of edges if they are written."""
        n, sign = self.n_nodes, 1.0 if self.kind == "distance" else -1.0
        edges = partial(_edges, n, "weight")
        table, rows = self._coded, partial(_noisy_edges, edges, add)
        if place is not None:
            last = partial(_noisy_in_order, n, add)
            table.exchanged(edges, "edge", last, _WRITTEN, self.n_edges).write(place)
            written = {"source": "low", "target": "high", "weight": "weight"}
            table, rows = self._table.beside(place, written), edges
        if not whole:
            return Published(mechanism.name, noise, self._tree(_forest(table, rows, n, sign)))
        found = table.mapped(rows, _EDGES).all_rows().sort("edge")
        topology, weights = self._topology_of(found), found["weight"].to_numpy()
        ids = minimum_spanning_edges(topology.sources, topology.targets, sign * weights, n)
        tree = Tree(topology.restricted_to(ids), weights[ids], ids, kind=self.kind)
        return Published(mechanism.name, noise, tree, topology, weights)

    def _draw(
        self, mechanism: Mechanism, exponent: float, bounds: Bounds, ticket: Ticket
    ) -> pl.DataFrame:
        """Return the edges of the tree that a mechanism draws, ascending, with private weights."""
        draw = {"spanning tree": _spanning_tree, "shortest paths": _shortest_paths}
        if mechanism.keyed not in draw:
            raise UsageError(f"{mechanism.name!r} has no draw by key, which Spark needs")
        n = self.n_nodes
        clocked = _Clocked(n, self.kind, exponent, bounds, ticket, _PER_NODE * n)
        return draw[mechanism.keyed](self._coded, clocked).sort("edge")

    def _topology_of(self, rows: pl.DataFrame) -> Topology:
        """Return the topology of these edges."""
        n = self.n_nodes
        return Topology(*np.divmod(rows["edge"].to_numpy(), n), n, self.names)

    def _tree(self, rows: pl.DataFrame) -> Tree:
        """Return the tree of these edges and weights, which are published."""
        return Tree(self._topology_of(rows), rows["weight"].to_numpy(), kind=self.kind)


@leaves_no_trace
@dataclass(frozen=True)
class _Clocked:
    """How the clocks of edges follow from their weights; a task has one."""

    n_nodes: int
    kind: Kind
    exponent: float
    bounds: Bounds
    ticket: Ticket
    size: int  # how many edges a task reduces at a time

    def __call__(self, rows: pl.DataFrame) -> tuple[Array, Array, Clocks]:
        """Return sources and targets of rows, and their clocks."""
        low, high = np.divmod(rows["edge"].to_numpy(), self.n_nodes)
        dtype = index_dtype(self.n_nodes)
        weights = np.clip(rows["weight"].to_numpy(), *self.bounds)
        distances, numbers = as_distances(weights, self.kind), edge_numbers(low, high, self.n_nodes)
        clocks = Clocks.of(distances, numbers, self.exponent, self.ticket.key())
        return low.astype(dtype), high.astype(dtype), clocks

    def reduced(self, reduce: Callable[..., Array], rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that a function of ends, clocks and number of nodes keeps."""
        return rows[reduce(*self(rows), self.n_nodes)]


def _spanning_tree(table: spark.SparkTable, clocked: _Clocked) -> pl.DataFrame:
    """Return the edges of the spanning forest of least clocks: forests of parts are merged."""
    first = partial(_edges, clocked.n_nodes, "weight")
    reduce = partial(clocked.reduced, kruskal_edges)
    return reduce(table.reduced(first, reduce, clocked.size, _MERGED))


def _shortest_paths(table: spark.SparkTable, clocked: _Clocked) -> pl.DataFrame:
    """Return the edges of the shortest paths by the clocks.

    Forests and lightest edges bound how long these are; a second pass finds all edges that are
    short enough. Where these are too many, it finds those alone that make a path shorter (a round
    of Bellman and Ford), and passes follow until there are none.
    """
    n = clocked.n_nodes
    first, reduce = partial(_edges, n, "weight"), partial(clocked.reduced, bounding_edges)
    held = reduce(table.reduced(first, reduce, clocked.size, _MERGED))
    while True:
        pruning = Pruning.of(*clocked(held), n)
        some, limit = partial(_possible, clocked, pruning), partial(_limited, clocked, pruning)
        found = table.reduced(some, limit, clocked.size, _MERGED)
        is_complete = not (found["edge"] == _TOO_MANY).any()
        n_before = len(held)
        held = pl.concat([held, found.filter(pl.col("edge") != _TOO_MANY)]).unique("edge")
        if is_complete or len(held) == n_before:
            return held[ShortestPaths(*clocked(held), n).edges]


def _possible(clocked: _Clocked, pruning: Pruning, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the edges that can be on a shortest path."""
    edges = _edges(clocked.n_nodes, "weight", rows).collect()
    return edges.filter(pruning.verdicts(*clocked(edges)) != DROPPED).lazy()


def _limited(clocked: _Clocked, pruning: Pruning, rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `_possible`; if they are too many, those alone that make a path shorter."""
    edges = rows.filter(pl.col("edge") != _TOO_MANY)
    if len(edges) == len(rows) <= _KEPT * clocked.size:
        return rows
    shorter = pruning.verdicts(*clocked(edges)) == SHORTER
    mark = pl.DataFrame({"edge": [_TOO_MANY], "weight": [0.0]}, rows.schema)
    return pl.concat([edges.filter(shorter), mark])


def _edges(n_nodes: int, what: str | None, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the number of every edge, and its weight, or whether that is not a finite number."""
    low, high = pl.min_horizontal("source", "target"), pl.max_horizontal("source", "target")
    edge = (low.cast(pl.Int64) * n_nodes + high.cast(pl.Int64)).alias("edge")
    if what in (None, "zero"):
        return rows.select(edge, weight=pl.lit(0.0))
    weight = pl.col("weight").cast(pl.Float64, strict=False)
    if what == "bad":
        weight = weight.is_finite().fill_null(value=False).not_().cast(pl.Float64)
    return rows.select(edge, weight=weight)


def _counts(n_nodes: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Return, of some edges with a 1 for a weight that is wrong, how many of what there are."""
    edge = pl.col("edge")
    found = rows.select(
        n_edges=pl.len(),
        n_twice=pl.len() - edge.n_unique(),
        n_loops=(edge // n_nodes == edge % n_nodes).sum(),
        n_bad=pl.col("weight").sum(),
    )
    return found.select(pl.all().cast(pl.Int64))


def _noisy(
    n_nodes: int, noise: Noise, bounds: Bounds, ticket: Ticket, rows: pl.DataFrame
) -> pl.DataFrame:
    """Return edges with noisy weights."""
    weights = np.clip(rows["weight"].to_numpy(), *bounds)
    if len(rows):  # of none there may be no noise at all
        numbers = edge_numbers(*np.divmod(rows["edge"].to_numpy(), n_nodes), n_nodes)
        weights = add_keyed_noise(weights, numbers, noise, ticket.key())
    return rows.select("edge", weight=pl.Series(weights))


def _noisy_in_order(n_nodes: int, add: spark.Rows, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the ends of edges and noisy weights, in the order of edges."""
    rows = rows.sort("edge")
    if rows["edge"].n_unique() < len(rows):  # refused before; two noises must not be written
        raise GraphError("an edge is there twice")
    edge = pl.col("edge")
    return add(rows).select(low=edge // n_nodes, high=edge % n_nodes, weight="weight")


def _noisy_edges(edges: spark.Step, add: spark.Rows, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the number of every edge, and its noisy weight."""
    return add(edges(rows).collect()).lazy()


def _merged(n_nodes: int, merge: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Return edges with the weights of all their rows merged; a loop stays one."""
    rows = rows.sort("edge")
    edge, weight = rows["edge"].to_numpy(), rows["weight"].fill_null(np.nan).to_numpy()
    starts = np.flatnonzero(np.diff(edge, prepend=-1))  # edges are numbered from 0
    if len(edge):
        is_bad = ~np.isfinite(weight)
        merged = MERGES[merge](np.where(is_bad, 0.0, weight), starts)
        weight = np.where(np.logical_or.reduceat(is_bad, starts), np.nan, merged)
    source, target = np.divmod(edge[starts], n_nodes)
    return pl.DataFrame({"source": source, "target": target, "weight": weight})


def _forest(table: spark.SparkTable, first: spark.Step, n_nodes: int, sign: float) -> pl.DataFrame:
    """Return the edges of the minimum spanning forest, or the maximum one of sign -1.

    An edge that is in the forest of all edges is in that of every part of them that it is in: what
    a part drops, closes a cycle of edges before it. So forests of parts are merged to one. Edges
    are compared by weight, then by number: the forest is the one that one machine finds.
    """
    reduced = partial(_reduced, n_nodes, sign)
    return reduced(table.reduced(first, reduced, _PER_NODE * n_nodes, _MERGED))


def _reduced(n_nodes: int, sign: float, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the spanning forest."""
    rows = rows.sort("edge")
    low, high = np.divmod(rows["edge"].to_numpy(), n_nodes)
    dtype = index_dtype(n_nodes)
    weights = sign * rows["weight"].to_numpy()
    return rows[minimum_spanning_edges(low.astype(dtype), high.astype(dtype), weights, n_nodes)]
