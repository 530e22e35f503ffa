"""A topology and its private weights."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ptclust._lazy import package
from ptclust._markup import facts, listed
from ptclust._options import Merge as Merge
from ptclust._tables import data_frame
from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats, Ints
from ptclust.errors import GraphError, UsageError, WeightError
from ptclust.graph.topology import (
    Kind,
    Say,
    Topology,
    WeightedGraph,
    as_weights,
    check_finite,
    check_kind,
    edge_number,
    frozen,
)

if TYPE_CHECKING:
    from ptclust.graph.metadata import Metadata
    from ptclust.privacy.provenance import Provenance
    from ptclust.privacy.sensitivity import Sensitivity

How = Merge | None  # to merge parallel edges; None refuses them

_LARGEST_EXACT = 2.0**53  # up to here sums of whole numbers are exact
_LARGEST_FLOAT = Fraction(sys.float_info.max)


class Edges(NamedTuple):
    """What every reader and converter hands to ``Graph``: edges as they came in, nothing checked.

    It holds private weights in the clear: build a ``Graph`` of it and let it go.
    """

    sources: ArrayLike
    targets: ArrayLike
    weights: ArrayLike
    n_nodes: int | None = None
    names: Iterable[Any] | None = None
    say: Say = edge_number
    kind: Kind | None = None  # if the source itself says it
    columns: tuple[str, ...] | None = None  # of a table: source, target and weight
    merged: Literal["mean"] | None = None  # how entries of a matrix became one edge already
    metadata: Metadata | None = None  # what a file that ptclust wrote says of its graph

    def __repr__(self) -> str:
        return "Edges(weights=<private>)"


@leaves_no_trace
class Graph(WeightedGraph):
    """An undirected simple graph whose topology is public and whose edge weights are private.

    Weights may be zero or negative. Nodes and edges are put in canonical order: nodes by name,
    edges by their nodes. So nothing of the order in which they came, which may follow the weights,
    is published.

    Parameters
    ----------
    sources, targets, n_nodes, names
        As in `Topology`.
    weights : array_like of float
        One finite weight per edge.
    merge : {"min", "max", "sum"}, optional
        How to merge the weights of parallel edges, which are an error otherwise. A declared
        sensitivity is that of the merged weights: a person in k of the rows that are summed moves
        the sum by k times what one row can. Sums are exact, and rounded once.
    kind : {"distance", "similarity"}
        What the weights are: a small distance means close, a large similarity. Spanning trees of
        similarities are maximum ones.

    Attributes
    ----------
    columns : tuple of str, optional
        The columns of a table that were taken for source, target and weight.
    topology_of_data : bool
        Whether which nodes are joined was computed from the data: nearest neighbours.
    provenance : Provenance, optional
        Of a graph that ptclust built from records: how, and by how much one unit can change it.
        `clipped` keeps it, as it moves no two weights further apart; every other change drops it.

    Notes
    -----
    *Privacy.* Only this object holds the weights in the clear: ``repr`` shows
    counts only, pickling is refused, and errors name edges, never values. The topology and the
    names are public.

    Examples
    --------
    >>> graph = Graph([0, 1, 2], [1, 2, 0], [0.1, 0.2, 0.3], names=["a", "b", "c"])
    >>> graph
    Graph(n_nodes=3, n_edges=3, weights=<private>)
    >>> graph.topology.names.tolist()
    ['a', 'b', 'c']
    """

    weights: Floats
    kind: Kind
    _number: Array | None  # here of every node as it was given, if it is another
    merge: How | Literal["mean"]
    columns: tuple[str, ...] | None = None
    topology_of_data: bool = False
    provenance: Provenance | None = None

    def __init__(
        self,
        sources: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike,
        n_nodes: int | None = None,
        names: Iterable[Any] | None = None,
        *,
        merge: How = None,
        kind: Kind = "distance",
    ) -> None:
        self._build(Edges(sources, targets, weights, n_nodes, names), merge, kind)

    @classmethod
    def _of(cls, edges: Edges, merge: How, kind: Kind | None = None) -> Graph:
        """Return the graph of what a reader or converter found; errors use its words."""
        graph = cls.__new__(cls)
        graph._build(edges, merge, kind or edges.kind or "distance")
        return graph

    def _build(self, edges: Edges, merge: How, kind: Kind) -> None:
        check_kind(kind)
        if merge is not None and merge not in MERGES:
            raise UsageError(f"merge must be 'min', 'max' or 'sum', not {merge!r}")
        say = edges.say
        values = as_weights(edges.weights, say)
        given = object.__new__(Topology)
        given._build(edges.sources, edges.targets, edges.n_nodes, edges.names, say)
        if len(values) != given.n_edges:
            raise GraphError(f"{len(values)} weights were given for {given.n_edges} edges")
        check_finite(values, given, say)
        topology, self._number, order = given.in_canonical_order()
        values = values[order]
        if merge is None:
            topology.check_single(order, say)
        elif (repeated := topology.repeated()).any():
            starts = np.flatnonzero(~repeated)
            topology, values = topology.restricted_to(starts), MERGES[merge](values, starts)
        WeightedGraph.__init__(self, topology)
        self.weights, self.kind = frozen(values.astype(np.float64, copy=False)), kind
        self.merge = merge or edges.merged
        self.columns = edges.columns

    @classmethod
    def from_networkx(
        cls, graph: Any, weight: str = "weight", *, merge: How = None, kind: Kind | None = None
    ) -> Graph:
        """Make a graph of a networkx graph; one that is directed, or parallel, needs ``merge``.

        Weights are distances unless ``kind``, the attribute ``kind`` of the graph or the name of
        ``weight`` says otherwise.

        >>> import networkx
        >>> Graph.from_networkx(networkx.Graph([("a", "b", {"weight": 0.5})])).names.tolist()
        ['a', 'b']
        """
        from ptclust.graph.converters import edges_of_networkx

        return cls._of(edges_of_networkx(graph, weight, merge), merge, kind)

    @classmethod
    def from_igraph(
        cls, graph: Any, weight: str = "weight", *, merge: How = None, kind: Kind | None = None
    ) -> Graph:
        """Make a graph of an igraph graph; the vertex attribute ``name``, if any, names the nodes.

        ``weight``, ``merge`` and ``kind`` are as in `from_networkx`.
        """
        from ptclust.graph.converters import edges_of_igraph

        return cls._of(edges_of_igraph(graph, weight, merge), merge, kind)

    @classmethod
    def from_scipy(cls, matrix: Any, *, merge: How = None, kind: Kind = "distance") -> Graph:
        """Make a graph of a square sparse matrix, symmetric or with each edge stored once.

        What is stored is an edge, a stored zero included. If all entries have a mirror, an entry
        and its mirror are one edge, whose weight is their mean; with ``merge`` all entries are
        merged, so that ``sum`` adds up both directions of a flow.
        """
        from ptclust.graph.readers.matrices import edges_of_matrix

        return cls._of(edges_of_matrix(matrix, merging=merge is not None), merge, kind)

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        source: str = "source",
        target: str = "target",
        weight: str = "weight",
        *,
        merge: How = None,
        kind: Kind | None = None,
    ) -> Graph:
        """Make a graph of a pandas or polars data frame with one row per edge and any hashable ids.

        The kind must be said unless the column of the weights is called by it.

        >>> import polars
        >>> frame = polars.DataFrame({"source": ["a"], "target": ["b"], "trips": [5]})
        >>> Graph.from_dataframe(frame, weight="trips", kind="similarity").names.tolist()
        ['a', 'b']
        """
        from ptclust.graph.converters import edges_of_dataframe
        from ptclust.graph.readers.columns import settled_kind

        edges = edges_of_dataframe(frame, {"source": source, "target": target, "weight": weight})
        return cls._of(edges, merge, settled_kind(kind, weight, "the data frame"))

    @classmethod
    def from_points(
        cls, X: ArrayLike, metric: str = "euclidean", n_neighbors: int | None = None
    ) -> Graph:
        """Make the graph of all distances between points, the rows of ``X``.

        ``metric`` is one of ``scipy.spatial.distance.pdist``.

        With ``n_neighbors`` each point is joined only to this many nearest ones, and to those it is
        among the nearest of.

        *Privacy.* The topology counts as public. That of all pairs says nothing, but nearest
        neighbours are computed from the points: PTClust refuses such a graph unless
        ``topology="public"`` says that its topology may be known.

        >>> Graph.from_points([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
        Graph(n_nodes=3, n_edges=3, weights=<private>)
        """
        from ptclust.graph.converters import edges_of_points

        edges = edges_of_points(X, metric, n_neighbors)
        if n_neighbors is None:
            return cls._of(edges, None)
        # Two points may be neighbours both ways, with distances that differ by rounding.
        graph = cls._of(edges, "min")
        graph.topology_of_data, graph.merge = True, None
        return graph

    def to_networkx(self) -> Any:
        """Return a ``networkx.Graph``. *Privacy*: it holds the private weights in the clear."""
        graph = package("networkx", "Graph.to_networkx").Graph(kind=self.kind)
        graph.add_nodes_from(self.names.tolist())
        ends = (self.names[ends].tolist() for ends in (self.sources, self.targets))
        graph.add_weighted_edges_from(zip(*ends, self.weights.tolist(), strict=True))
        return graph

    def to_igraph(self) -> Any:
        """Return an ``igraph.Graph``. *Privacy*: it holds the private weights in the clear."""
        ends = np.stack([self.sources, self.targets], axis=1)
        graph = package("igraph", "Graph.to_igraph").Graph(n=self.n_nodes, edges=ends.tolist())
        graph["kind"], graph.es["weight"] = self.kind, self.weights.tolist()
        if self.topology._names is not None:
            graph.vs["name"] = self.names.tolist()
        return graph

    def to_scipy(self) -> Any:
        """Return a symmetric csr_array. *Privacy*: it holds the private weights in the clear."""
        from scipy.sparse import coo_array

        places = np.hstack([(self.sources, self.targets), (self.targets, self.sources)])
        values = np.tile(self.weights, 2)  # an edge of weight zero is a stored zero
        return coo_array((values, tuple(places)), shape=(self.n_nodes,) * 2).tocsr()

    def to_dataframe(self, backend: Literal["polars", "pandas"] = "polars") -> Any:
        """Return a data frame of the edges. *Privacy*: it holds the private weights in the clear.

        Nodes without an edge are not in it.
        """
        ends = {"source": self.names[self.sources], "target": self.names[self.targets]}
        return data_frame({**ends, "weight": self.weights.copy()}, backend)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the graph to a Parquet file; `ptclust.read_graph` gives back the same.

        One row per edge in canonical order, zeros included, in the columns source, target and
        weight; kind, provenance and the names of nodes without an edge are in the metadata of the
        file. FileError if it cannot be written, or exists and ``overwrite`` is not set.

        Notes
        -----
        *Privacy.* The file holds the private weights in the clear, and its size depends on them: it
        is the curator's. Only its owner may read it (mode 600, where there are such modes). A file
        that is changed afterwards is refused by `ptclust.read_graph`: the sensitivity that it
        carries was that of other weights.
        """
        from ptclust._files import held, written_at_once
        from ptclust.graph.metadata import KEY, Metadata, edge_table

        file, metadata = Path(path), {KEY: Metadata.of(self).encode()}
        if not file.name.lower().endswith(".parquet"):
            raise UsageError(f"{file} must be called .parquet, by which the file is read again")
        table = edge_table(self)
        with held(file, overwrite), written_at_once(file, 0o600) as temporary:
            table.write_parquet(temporary, metadata=metadata)

    @property
    def node_of(self) -> Array:
        """The number here of every node as it was given."""
        return np.arange(self.n_nodes) if self._number is None else self._number

    @property
    def sensitivity(self) -> Sensitivity | None:
        """By how much one unit can move the weights, if the graph was built from records."""
        return None if self.provenance is None else self.provenance.sensitivity

    @property
    def unit(self) -> str | None:
        """What one unit is, in words, if the graph was built from records."""
        return None if self.provenance is None else self.provenance.unit

    def clipped(self, low: float, high: float) -> Graph:
        """Return the same topology with every weight moved into public bounds.

        A sensitivity that the graph carries stays: clipping moves no two weights further apart.
        """
        if not self.n_edges or (low <= self.weights.min() and self.weights.max() <= high):
            return self
        graph = self._with(np.clip(self.weights, low, high), self.kind)
        graph.provenance = self.provenance
        return graph

    def to_distances(self) -> Graph:
        """Return the graph with distances in place of similarities, all of them positive.

        A similarity s becomes max - s + (max - min) / m, with the largest and the smallest of the
        m similarities. *Privacy*: they are private, so this is for DBMSTClu without privacy only,
        and a sensitivity that the graph carries is dropped.
        """
        if self.kind == "distance" or not self.n_edges:
            return self
        largest, smallest = float(self.weights.max()), float(self.weights.min())
        if not math.isfinite(2 * (largest - smallest)):
            raise WeightError("similarities lie too far apart to be subtracted; divide all by 10")
        least = (largest - smallest) / self.n_edges or 1.0
        return self._with(largest - self.weights + least, "distance")

    def _with(self, weights: Floats, kind: Kind) -> Graph:
        """Return the same topology with other weights, of which no sensitivity is known."""
        graph = object.__new__(Graph)
        WeightedGraph.__init__(graph, self.topology)
        graph.weights, graph.kind, graph.merge = frozen(weights), kind, self.merge
        graph._number, graph.columns = self._number, self.columns
        graph.topology_of_data = self.topology_of_data
        return graph

    def __repr__(self) -> str:
        kind = "" if self.kind == "distance" else f", kind={self.kind!r}"
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, weights=<private>{kind})"

    def _facts(self) -> list[tuple[str, object]]:
        close = "small" if self.kind == "distance" else "large"
        known: list[tuple[str, object]] = [
            ("nodes", f"{self.n_nodes:,}: " + listed(self.names[:8].tolist(), 8)),
            ("edges", f"{self.n_edges:,} in {self.topology.n_components:,} component(s)"),
            ("weights", f"private; {self.kind}: {close} means close"),
        ]
        if self.sensitivity is not None:
            known += [("sensitivity", self.sensitivity), ("privacy unit", self.unit)]
        return known

    def __str__(self) -> str:
        return "\n".join(["Graph", *(f"  {name:13}{value}" for name, value in self._facts())])

    def _repr_html_(self) -> str:
        return facts("Graph", self._facts())

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: object) -> Graph:
        return self

    def __reduce__(self) -> NoReturn:
        refused = "a Graph holds private weights and refuses to be pickled"
        raise TypeError(f"{refused}; pass the file it came from, or its topology, which is public")


def _sums(weights: Array, starts: Ints) -> Array:
    """Return the exact sum of every run, rounded once: in any order of its rows it is the same.

    A sum beyond all floats is the largest float, for an error would depend on the weights.
    """
    ends = np.append(starts[1:], len(weights))
    if weights.dtype.kind in "iu":
        largest = max(abs(int(weights.min())), abs(int(weights.max())))
        if largest * int((ends - starts).max()) < 2**63:
            return np.add.reduceat(weights.astype(np.int64), starts)
        listed, runs = weights.tolist(), zip(starts.tolist(), ends.tolist(), strict=True)
        return np.array([float(sum(listed[start:end])) for start, end in runs])
    with np.errstate(over="ignore", invalid="ignore"):  # a warning would depend on the weights
        sums = np.add.reduceat(weights, starts)
        whole = np.array_equal(weights, np.rint(weights))
        if whole and np.abs(weights).sum() <= _LARGEST_EXACT:  # no partial sum is rounded
            return sums
    for run in np.flatnonzero(ends - starts > 2):  # a sum of two is rounded once
        sums[run] = _sum(weights[starts[run] : ends[run]].tolist())
    return np.clip(sums, -sys.float_info.max, sys.float_info.max)


def _sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:  # in exact arithmetic; a mere step of the sum may have been too large
        exact = sum(map(Fraction, values))
        return float(max(min(exact, _LARGEST_FLOAT), -_LARGEST_FLOAT))


#: Ways to merge runs of weights, given with where the runs start.
MERGES: dict[str, Callable[[Array, Ints], Array]] = {
    "min": np.minimum.reduceat,
    "max": np.maximum.reduceat,
    "sum": _sums,
}
