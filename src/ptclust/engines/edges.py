"""Graphs whose edges stay where they are: a table of Spark, of which this machine sees numbers.

Names of nodes fit on this machine, edges need not. Noise is drawn where the edges are, and once: as
a function of a key and the edge (``mechanisms.keyed_noise``). All that follows works on the noisy
weights, which are published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats, Ints
from ptclust.engines import spark
from ptclust.engines.key_service import KeyService, Ticket
from ptclust.errors import GraphError, UsageError, WeightError
from ptclust.graph.readers import read_kind
from ptclust.graph.readers.columns import ENDS, ROLES, Columns, choose_columns, settled_kind
from ptclust.graph.readers.tables import check_types
from ptclust.graph.topology import Kind, Topology, as_distances, index_dtype
from ptclust.mechanisms.keyed_noise import add_keyed_noise, draw_noise_key, edge_numbers
from ptclust.published import Published
from ptclust.trees.mst import minimum_spanning_edges
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    import polars as pl

    from ptclust.privacy.noise import Noise

_PER_NODE = 8  # edges that a task reduces to a forest at a time, per node
_MERGED = 8  # forests that one task merges
_NODES = ("low", "high")


@dataclass(frozen=True)
class Counts:
    """The numbers of a topology that a plan takes; its edges are elsewhere."""

    names: Array
    n_edges: int
    n_components: int

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @property
    def n_tree_edges(self) -> int:
        """Number of edges of a spanning forest."""
        return self.n_nodes - self.n_components

    @property
    def is_complete(self) -> bool:
        """Whether all pairs of nodes are joined."""
        return self.n_edges == self.n_nodes * (self.n_nodes - 1) // 2


@leaves_no_trace
class SparkEdges:
    """An undirected simple graph in a DataFrame of Spark: a row an edge.

    Nodes are numbered by their names, as in every graph. Parallel edges, loops, missing ids and
    weights that are no finite numbers are refused, as soon as `topology` is asked for.

    Notes
    -----
    *Privacy.* The weights are read by tasks of Spark, and leave them with noise alone. Every file
    that is written has its rows in an order that follows from the topology.
    """

    # It was not built by ptclust, and says nothing of itself.
    merge = provenance = unit = None
    topology_of_data = False

    def __init__(
        self,
        frame: Any,
        columns: dict[str, str],
        kind: Kind,
        where: str,
    ) -> None:
        self.kind, self.where = kind, where
        self.columns = tuple(columns.values())
        self._has_weights = "weight" in columns
        self._table = spark.SparkTable(frame, columns)

    @cached_property
    def names(self) -> Array:
        """The names of all nodes, in their order."""
        import polars as pl

        ids = self._table.distinct(("source", "target"))
        if ids.null_count():
            raise GraphError(f"some rows of {self.where} lack the id of a node; remove them")
        if not (ids.dtype.is_integer() or ids.dtype == pl.String):
            raise GraphError(f"node ids of {self.where} must be integers or texts, not {ids.dtype}")
        listed = ids.sort()
        return (
            listed.to_numpy() if listed.dtype.is_integer() else np.array(listed.to_list(), object)
        )

    @cached_property
    def _coded(self) -> spark.SparkTable:
        """The table with numbers of nodes, ``low`` and ``high``, in place of their ids."""
        if np.array_equal(self.names, np.arange(len(self.names))):
            return self._table
        return self._table.coded(("source", "target"), self.names)

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
                f"{self.where} has two rows for some pairs of nodes: merge them first, as by "
                "groupBy, and let the sensitivity bound the merged weights"
            )
        if n_bad:
            raise WeightError(f"weights of {self.where} are missing or no finite numbers")
        ends, _ = _forest(self._coded, partial(_edges, n, "zero"), n, 1.0)
        return cast("Topology", Counts(self.names, n_edges, n - len(ends)))

    @classmethod
    def read(
        cls, path: Path, asked: Columns, kind: Kind | None, master: str | None, *, ends_only: bool
    ) -> SparkEdges:
        """Return the graph of a Parquet file, or of a folder of them; no row is read.

        With ``ends_only`` there are no weights.
        """
        if path.is_file() and read_kind(path) is not None:
            # What such a file says of its graph holds for these rows alone: all must be read.
            raise UsageError(
                f"{path} is a graph that ptclust wrote on one machine, and fits there: leave "
                "--engine spark out"
            )
        frame = spark.read_parquet(path, master)
        roles = ENDS if ends_only else ROLES
        there = list(frame.columns)
        chosen = [there[i] for i in choose_columns(there, asked, path, roles)]
        named = dict(zip(roles, chosen, strict=True))
        if not ends_only:
            kind = settled_kind(kind, named["weight"], path)
        edges = cls(frame, named, kind or "distance", str(path))
        check_types(dict(edges._table.empty.schema), str(path))
        return edges

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.topology.n_nodes

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.topology.n_edges

    def publish(
        self,
        mechanism: str,
        noise: Noise,
        bounds: tuple[float, float],
        place: str,
        *,
        whole: bool,
        key: bytes | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Published:
        """Write the noisy weights of all edges to a folder of Parquet, and return what follows.

        With ``whole`` that is all of them, and else their spanning tree. ``key`` is for tests.

        Notes
        -----
        *Privacy.* As `add_keyed_noise`: every edge is there once, has one weight, and its noise is
        the same however often a task runs.
        """
        progress(f"Noise on {self.n_edges:,} weights, by Spark")
        self.write_noisy(noise, bounds, place, key)
        progress("Spanning tree of the noisy weights")
        if whole:
            return self._whole(mechanism, noise, self._table.beside(place).all_rows())
        return self.tree_of_noisy(mechanism, noise, place)

    def write_noisy(
        self, noise: Noise, bounds: tuple[float, float], place: str, key: bytes | None = None
    ) -> None:
        """Write the noisy weights of all edges to a folder of Parquet; see `publish`."""
        n = len(self.names)
        if noise.n_values != self.n_edges:
            raise UsageError(f"this noise is for {noise.n_values} values, not {self.n_edges}")
        host, bind = self._table.driver_addresses()
        with KeyService(draw_noise_key() if key is None else key, host, bind) as ticket:
            last = partial(_noisy, n, noise, bounds, ticket)
            first = partial(_edges, n, "weight")
            self._coded.exchange_to_parquet(first, "edge", last, place, self.n_edges)

    def tree_of_noisy(self, mechanism: str, noise: Noise, place: str) -> Published:
        """Return the spanning tree of the noisy weights in a folder."""
        n, sign = len(self.names), 1.0 if self.kind == "distance" else -1.0
        ends, weights = _forest(self._table.beside(place), partial(_of_noisy, n), n, sign)
        topology = Topology(ends // n, ends % n, n, self.names)
        return Published(mechanism, noise, Tree(topology, weights, kind=self.kind))

    def _whole(self, mechanism: str, noise: Noise, rows: pl.DataFrame) -> Published:
        rows = rows.sort(_NODES)
        low, high, weights = (rows[name].to_numpy() for name in (*_NODES, "weight"))
        topology = Topology(low, high, len(self.names), self.names)
        distances = as_distances(weights, self.kind)
        ids = minimum_spanning_edges(topology.sources, topology.targets, distances, len(self.names))
        tree = Tree(topology.restricted_to(ids), weights[ids], ids, kind=self.kind)
        return Published(mechanism, noise, tree, topology, weights)


def _edges(n_nodes: int, what: str | None, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the number of every edge, and its weight, or whether that is no finite number."""
    import polars as pl

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
    import polars as pl

    edge = pl.col("edge")
    found = rows.select(
        n_edges=pl.len(),
        n_twice=pl.len() - edge.n_unique(),
        n_loops=(edge // n_nodes == edge % n_nodes).sum(),
        n_bad=pl.col("weight").sum(),
    )
    return found.select(pl.all().cast(pl.Int64))


def _noisy(
    n_nodes: int, noise: Noise, bounds: tuple[float, float], ticket: Ticket, rows: pl.DataFrame
) -> pl.DataFrame:
    """Return edges with noisy weights, in the order of edges."""
    import polars as pl

    rows = rows.sort("edge")
    edge = rows["edge"].to_numpy()
    if (edge[1:] == edge[:-1]).any():  # was refused before; with two weights it must not go on
        raise GraphError("an edge is there twice")
    low, high = edge // n_nodes, edge % n_nodes
    clipped = np.clip(rows["weight"].to_numpy(), *bounds)
    noisy = add_keyed_noise(clipped, edge_numbers(low, high, n_nodes), noise, ticket.key())
    return pl.DataFrame({"low": low, "high": high, "weight": noisy})


def _of_noisy(n_nodes: int, rows: pl.LazyFrame) -> pl.LazyFrame:
    import polars as pl

    return rows.select(edge=pl.col("low") * n_nodes + pl.col("high"), weight=pl.col("weight"))


def _forest(
    table: spark.SparkTable, first: spark.Step, n_nodes: int, sign: float
) -> tuple[Ints, Floats]:
    """Return edges and weights of the minimum spanning forest, or the maximum one of sign -1.

    An edge that is in the forest of all edges is in that of every part of them that it is in: what
    a part drops, closes a cycle of edges before it. So forests of parts are merged to one. Edges
    are compared by weight, then by number: the forest is the one that one machine finds.
    """
    reduced = partial(_reduced, n_nodes, sign)
    found = reduced(table.reduced(first, reduced, _PER_NODE * n_nodes, _MERGED))
    return found["edge"].to_numpy(), found["weight"].to_numpy()


def _reduced(n_nodes: int, sign: float, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the spanning forest."""
    rows = rows.sort("edge")
    edge, dtype = rows["edge"].to_numpy(), index_dtype(n_nodes)
    ends = (edge // n_nodes).astype(dtype), (edge % n_nodes).astype(dtype)
    return rows[minimum_spanning_edges(*ends, sign * rows["weight"].to_numpy(), n_nodes)]
