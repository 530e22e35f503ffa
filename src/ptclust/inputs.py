"""What holds a graph: files, objects of graph libraries, points, tables of Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._options import GraphOptions, Kind, ReleaseOptions
from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats, Ints
from ptclust.errors import InputError, UsageError
from ptclust.graph import Graph, Topology, read_graph, read_topology
from ptclust.graph.readers import read_metadata
from ptclust.graph.readers.columns import Columns, kind_of
from ptclust.graph.readers.file import File
from ptclust.privacy import Provenance
from ptclust.trees import Tree, minimum_spanning_tree

if TYPE_CHECKING:
    from ptclust.engines.edges import SparkEdges
    from ptclust.graph.metadata import Metadata


@leaves_no_trace
@dataclass(frozen=True)
class GraphFile(GraphOptions):
    """A file with a graph, and how to read it."""

    path: Path

    @property
    def name(self) -> str:
        """What messages call it."""
        return "standard input" if str(self.path) == "-" else self.path.name

    def check_is_graph(self, *, weighted: bool = True) -> None:
        """Refuse a release, or a table of records, with the command that is for it."""
        from ptclust.building._doors import refuse_records, refuse_release

        if self.engine == "spark" or not (self.path == Path("-") or self.path.is_file()):
            return  # what is wrong with it is said where it is read
        refuse_release(self._opened)
        file = self._opened if self.encoding is None else self._opened.in_utf8(self.encoding)
        if self.header:
            asked = Columns(self.source, self.target, self.weight)
            refuse_records(file, self.format, self.separator, asked, weighted=weighted)

    def read(self) -> Graph | SparkEdges:
        """Read topology and weights; Spark leaves them where they are."""
        return self._by_spark(ends_only=False) if self.engine == "spark" else self.read_here()

    def read_here(self) -> Graph:
        """Read topology and weights on this machine."""
        return read_graph(self._opened, **self._options(), kind=self.kind)

    def read_topology(self) -> Topology:
        """Read the topology alone, and no weight; of a graph in Spark, its numbers."""
        if self.engine == "spark" and self._said is None:
            return self._by_spark(ends_only=True).topology
        return read_topology(self._opened, **self._options())

    def _by_spark(self, *, ends_only: bool) -> SparkEdges:
        """Return the graph as Spark has it; it reads Parquet alone."""
        from ptclust.engines.edges import SparkEdges

        of_text = self.format, self.separator, self.encoding, self.decimal
        if any(option is not None for option in of_text):
            raise UsageError(
                "Spark reads Parquet, one row per edge: leave out format, separator, encoding and "
                "decimal"
            )
        asked = Columns(self.source, self.target, self.weight)
        return SparkEdges.read(
            self.path, asked, self.kind, self.master, merge=self.merge, ends_only=ends_only
        )

    @property
    def provenance(self) -> Provenance | None:
        """How the graph was built, if ptclust built it and wrote the file; no row is read."""
        return None if self._said is None else self._said.provenance

    @property
    def known_kind(self) -> Kind | None:
        """The kind of the weights, as said, or as written in the file; no row is read."""
        return self.kind or (None if self._said is None else self._said.kind)

    @cached_property
    def _said(self) -> Metadata | None:
        """What the file says of its graph, if ptclust wrote it: then this machine has read it."""
        if self.engine == "spark" and not self.path.is_file():
            return None
        return read_metadata(self._opened, self.format)

    @cached_property
    def _opened(self) -> File:
        return File.at(self.path)  # once: standard input is gone after that

    def check_topology(self, topology: Topology, request: ReleaseOptions) -> None:
        """Refuse a topology that may come from the data: few files tell where it is from."""
        if self.provenance is None:
            check_topology(topology, request, f"the topology of {self.name} may come from the data")

    def _options(self) -> dict[str, Any]:
        others = ("path", "kind", "engine", "master")
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in others
        }


@leaves_no_trace
def disclosure(file: GraphFile, graph: Graph | SparkEdges) -> str:
    """Return what was taken from a file, and what of it will be public."""
    columns = although = merged = origin = ""
    if graph.columns is not None:
        source, target, weight = (repr(name) for name in graph.columns)
        columns = f" of the columns {source}, {target} and {weight}"
        if kind_of(graph.columns[-1]) not in (None, graph.kind):
            although = f", although the column is called {weight}"
    close = "small" if graph.kind == "distance" else "large"
    if graph.merge is not None:
        merged = f"; rows that join the same two nodes are merged by {graph.merge}, and the "
        merged += "sensitivity must be that of the merged weights"
    if (built := graph.provenance) is not None:
        origin = f" It was built from records, with the sensitivity {built.sensitivity} for one "
        origin += f"unit ({built.unit})."
    return (
        f"{file.name} was read as a graph{columns}; weights are of kind {graph.kind} ({close} "
        f"means close){although}{merged}. Published without noise: {graph.n_nodes:,} node names "
        f"and {graph.n_edges:,} edges. Private: the weights.{origin}"
    )


def check_topology(topology: Topology, request: ReleaseOptions, why: str) -> None:
    """Refuse a topology that may come from the data, unless it may be known."""
    if request.topology == "public" or topology.is_complete:
        return
    n_nodes, n_edges = topology.n_nodes, topology.n_edges
    raise UsageError(
        f"{why}: {n_edges:,} of the {n_nodes * (n_nodes - 1) // 2:,} pairs of its {n_nodes:,} "
        "nodes are joined, and which ones would be published without noise. If that may be known, "
        "as of roads or borders, say topology='public'; if a pair is missing because nobody was "
        "counted there, add it with a weight of 0"
    )


def is_graph_like(data: Any) -> bool:
    """Whether ``data`` is a tree or graph of some kind rather than points."""
    return isinstance(data, (Tree, Graph)) or _library(data) is not None


@leaves_no_trace
def as_tree(data: Any) -> tuple[Tree, Ints]:
    """Return the minimum spanning tree of a graph of any kind, and the node of every node in it.

    A Tree is returned as it is. Similarities become distances, as in ``Graph.to_distances``.
    """
    if isinstance(data, Tree):
        return data, np.arange(data.n_nodes)
    graph = as_graph(data)
    return minimum_spanning_tree(graph.to_distances()), nodes_of(data, graph)


@leaves_no_trace
def as_graph(data: Any) -> Graph:
    """Return a graph of any kind as a Graph."""
    if isinstance(data, Graph):
        return data
    library = _library(data)
    if library is None:
        raise InputError(
            f"an object of type {type(data).__name__} is not a graph; give a Graph, a scipy "
            "sparse matrix, or a networkx or igraph graph (Graph.from_points makes one of points, "
            "Graph.from_dataframe of a table of edges, graph_from_visits and graph_from_flows of "
            "records of people)"
        )
    convert: Callable[[Any], Graph] = getattr(Graph, f"from_{library}")
    return convert(data)


@leaves_no_trace
def as_private_graph(data: Any) -> Graph | SparkEdges:
    """Return a graph of any kind as one that can be published; edges of Spark stay there."""
    if isinstance(data, Graph):
        return data
    from ptclust.engines.edges import SparkEdges, spark_edges
    from ptclust.engines.spark import is_frame

    if isinstance(data, SparkEdges):
        return data
    return spark_edges(data) if is_frame(data) else as_graph(data)


@leaves_no_trace
def nodes_of(data: Any, graph: Graph | SparkEdges) -> Array:
    """Return the number in ``graph`` of every node of ``data``, which it was made of."""
    return np.arange(graph.n_nodes) if data is graph else graph.node_of


def _library(data: Any) -> str | None:
    """Return the graph library that the class of ``data`` comes from, without importing any."""
    modules = {base.__module__.partition(".")[0] for base in type(data).__mro__}
    return next((name for name in ("networkx", "igraph", "scipy") if name in modules), None)


@leaves_no_trace
def tree_of_points(points: Floats) -> tuple[Tree, Ints]:
    """Return the Euclidean spanning tree of the distinct points, and the node of every point.

    DBMSTClu has no use for a distance of zero: identical points share a node, named by the row of
    the first of them.
    """
    from ptclust.trees.emst import euclidean_spanning_tree

    tree = euclidean_spanning_tree(points)
    if tree.weights.all():
        return tree, np.arange(len(points))
    _, first, group = np.unique(points, axis=0, return_index=True, return_inverse=True)
    rows = np.sort(first)
    tree = euclidean_spanning_tree(points[rows])
    named = Topology(tree.sources, tree.targets, n_nodes=len(rows), names=rows)
    return Tree(named, tree.weights, tree.edge_ids), np.searchsorted(rows, first[group])
