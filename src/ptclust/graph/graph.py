"""A topology and its private weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np

from ptclust._lazy import package
from ptclust._tables import data_frame
from ptclust.errors import GraphError, UsageError, WeightError
from ptclust.graph._checks import Say, as_weights, edge_number
from ptclust.graph.topology import Topology, WeightedGraph, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Edges", "Graph", "Merge"]

Merge = Literal["min", "max", "sum"]

_UFUNCS: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum, "sum": np.add}


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

    def __repr__(self) -> str:
        return "Edges(weights=<private>)"


class Graph(WeightedGraph):
    """An undirected simple graph whose topology is public and whose edge weights are private.

    Weights are dissimilarities: small means close. They may be zero or negative.

    Parameters
    ----------
    sources, targets : array_like of int
        The two endpoints of every edge, as node numbers from 0.
    weights : array_like of float
        One finite weight per edge.
    n_nodes : int, optional
        Number of nodes, when the last ones have no edge.
    names : iterable, optional
        One distinct hashable name per node.
    merge : {"min", "max", "sum"}, optional
        How to merge the weights of parallel edges, which are an error otherwise. The merged edge
        keeps the place of the first.
    similarity_cap : float, optional
        The weights are similarities s of at most this public value C; they become the
        dissimilarities C - s, before any merging.

    Notes
    -----
    *Privacy.* The weights are in the clear inside this object and nowhere else: ``repr`` shows
    counts only, pickling is refused, and errors name edges, never values. The topology, the names
    and ``similarity_cap`` are public.

    Examples
    --------
    >>> graph = Graph([0, 1, 2], [1, 2, 0], [0.1, 0.2, 0.3], names=["a", "b", "c"])
    >>> graph
    Graph(n_nodes=3, n_edges=3, weights=<private>)
    >>> graph.topology.names.tolist()
    ['a', 'b', 'c']
    """

    weights: NDArray[np.float64]

    def __init__(
        self,
        sources: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike,
        n_nodes: int | None = None,
        names: Iterable[Any] | None = None,
        *,
        merge: Merge | None = None,
        similarity_cap: float | None = None,
    ) -> None:
        self._build(Edges(sources, targets, weights, n_nodes, names), merge, similarity_cap)

    @classmethod
    def _of(cls, edges: Edges, merge: Merge | None, similarity_cap: float | None) -> Graph:
        """Return the graph of what a reader or converter found; errors use its words."""
        graph = cls.__new__(cls)
        graph._build(edges, merge, similarity_cap)
        return graph

    def _build(self, edges: Edges, merge: Merge | None, similarity_cap: float | None) -> None:
        say = edges.say
        values = as_weights(edges.weights, say)
        topology = object.__new__(Topology)
        topology._build(edges.sources, edges.targets, edges.n_nodes, edges.names, say)
        if len(values) != topology.n_edges:
            raise GraphError(f"{len(values)} weights were given for {topology.n_edges} edges")
        if similarity_cap is not None:
            values = _dissimilarities(values, similarity_cap, say)
        bad = ~np.isfinite(values)
        if bad.any():
            raise WeightError(
                f"the weight of {topology.describe_edge(int(bad.argmax()), say)} is not a finite "
                f"number ({int(bad.sum())} such weights in all); remove those edges or give them a "
                "weight"
            )
        if merge is None:
            topology._check_single(say)
        else:
            topology, values = _merge(topology, values, merge)
        self.topology = topology
        self.weights = frozen(values)

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        weight: str = "weight",
        *,
        merge: Merge | None = None,
        similarity_cap: float | None = None,
    ) -> Graph:
        """Make a graph of a networkx graph; direction is forgotten, parallel edges need ``merge``.

        >>> import networkx
        >>> Graph.from_networkx(networkx.Graph([("a", "b", {"weight": 0.5})])).names.tolist()
        ['a', 'b']
        """
        return cls._of(_convert().edges_of_networkx(graph, weight), merge, similarity_cap)

    @classmethod
    def from_igraph(
        cls,
        graph: Any,
        weight: str = "weight",
        *,
        merge: Merge | None = None,
        similarity_cap: float | None = None,
    ) -> Graph:
        """Make a graph of an igraph graph; the vertex attribute ``name``, if any, names the nodes.

        >>> import igraph
        >>> Graph.from_igraph(igraph.Graph(n=2, edges=[(0, 1)], edge_attrs={"weight": [0.5]}))
        Graph(n_nodes=2, n_edges=1, weights=<private>)
        """
        return cls._of(_convert().edges_of_igraph(graph, weight), merge, similarity_cap)

    @classmethod
    def from_scipy(
        cls, matrix: Any, *, merge: Merge | None = None, similarity_cap: float | None = None
    ) -> Graph:
        """Make a graph of a square sparse matrix, symmetric or with each edge stored once.

        What is stored is an edge, a stored zero included.

        >>> from scipy.sparse import coo_array
        >>> Graph.from_scipy(coo_array(([0.5, 0.0], ([0, 1], [1, 2])), shape=(4, 4)))
        Graph(n_nodes=4, n_edges=2, weights=<private>)
        """
        from ptclust.graph.readers.npz import edges_of_matrix

        return cls._of(edges_of_matrix(matrix), merge, similarity_cap)

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        source: str = "source",
        target: str = "target",
        weight: str = "weight",
        *,
        merge: Merge | None = None,
        similarity_cap: float | None = None,
    ) -> Graph:
        """Make a graph of a pandas or polars data frame with one row an edge and any hashable ids.

        >>> import polars
        >>> frame = polars.DataFrame({"source": ["a"], "target": ["b"], "weight": [0.5]})
        >>> Graph.from_dataframe(frame).names.tolist()
        ['a', 'b']
        """
        edges = _convert().edges_of_dataframe(frame, source, target, weight)
        return cls._of(edges, merge, similarity_cap)

    @classmethod
    def from_points(
        cls, X: ArrayLike, metric: str = "euclidean", n_neighbors: int | None = None
    ) -> Graph:
        """Make the graph of all distances between points, or of those to the nearest neighbours.

        Parameters
        ----------
        X : array_like of shape (n_points, n_features)
            The points.
        metric : str
            A metric of ``scipy.spatial.distance.pdist``.
        n_neighbors : int, optional
            Join each point only to this many nearest ones, and to those it is among the nearest of.
            Otherwise all pairs are joined, in the order of ``pdist``.

        Notes
        -----
        *Privacy.* The topology counts as public. That of all pairs says nothing, but which points
        are nearest neighbours is computed from the points: do not publish a clustering of such a
        graph as private unless its topology may be known.

        Examples
        --------
        >>> Graph.from_points([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
        Graph(n_nodes=3, n_edges=3, weights=<private>)
        """
        # Two points may be neighbours both ways, with distances that differ by rounding.
        merge: Merge | None = None if n_neighbors is None else "min"
        return cls._of(_convert().edges_of_points(X, metric, n_neighbors), merge, None)

    def to_networkx(self) -> Any:
        """Return a ``networkx.Graph``. *Privacy*: it holds the private weights in the clear."""
        graph = package("networkx", "Graph.to_networkx").Graph()
        names = self.names.tolist()
        graph.add_nodes_from(names)
        edges = zip(
            self.sources.tolist(), self.targets.tolist(), self.weights.tolist(), strict=True
        )
        graph.add_weighted_edges_from((names[a], names[b], value) for a, b, value in edges)
        return graph

    def to_igraph(self) -> Any:
        """Return an ``igraph.Graph``. *Privacy*: it holds the private weights in the clear."""
        ends = np.stack([self.sources, self.targets], axis=1)
        graph = package("igraph", "Graph.to_igraph").Graph(n=self.n_nodes, edges=ends.tolist())
        graph.es["weight"] = self.weights.tolist()
        if self.topology._names is not None:
            graph.vs["name"] = self.names.tolist()
        return graph

    def to_scipy(self) -> Any:
        """Return a symmetric ``csr_array``. *Privacy*: it holds the private weights in the clear.

        An edge of weight zero is a stored zero.
        """
        from scipy.sparse import coo_array

        rows = np.concatenate([self.sources, self.targets])
        columns = np.concatenate([self.targets, self.sources])
        values = np.tile(self.weights, 2)
        return coo_array((values, (rows, columns)), shape=(self.n_nodes,) * 2).tocsr()

    def to_dataframe(self, backend: Literal["polars", "pandas"] = "polars") -> Any:
        """Return a data frame of the edges. *Privacy*: it holds the private weights in the clear.

        Nodes without an edge are not in it.
        """
        ends = {"source": self.names[self.sources], "target": self.names[self.targets]}
        return data_frame({**ends, "weight": self.weights.copy()}, backend)

    def clipped(self, low: float, high: float) -> Graph:
        """Return the same topology with every weight moved into public bounds."""
        clipped = object.__new__(Graph)
        clipped.topology = self.topology
        clipped.weights = frozen(np.clip(self.weights, low, high))
        return clipped

    def is_within(self, low: float, high: float) -> bool:
        """Whether all weights lie within the bounds. The answer is private."""
        return bool(np.all((self.weights >= low) & (self.weights <= high)))

    def __repr__(self) -> str:
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, weights=<private>)"

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: object) -> Graph:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Graph holds private weights and refuses to be pickled; pass the file it came from "
            "instead, or its topology, which is public"
        )


def _dissimilarities(
    similarities: NDArray[np.float64], cap: float, say: Say
) -> NDArray[np.float64]:
    """Return ``cap - similarities``."""
    if not np.isfinite(cap):
        raise UsageError(f"similarity_cap must be a finite number, not {cap}")
    over = similarities > cap
    if over.any():
        raise WeightError(
            f"the similarity of {say([int(over.argmax())])} is above similarity_cap={cap} "
            f"({int(over.sum())} such edges in all); give a cap that is known to hold for any "
            "data, not one read off these"
        )
    return cap - similarities


def _merge(
    topology: Topology, weights: NDArray[np.float64], how: Merge
) -> tuple[Topology, NDArray[np.float64]]:
    """Give every pair of nodes one weight, the minimum, maximum or sum of its edges."""
    if how not in _UFUNCS:
        raise UsageError(f"merge must be 'min', 'max' or 'sum', not {how!r}")
    low = np.minimum(topology.sources, topology.targets)
    high = np.maximum(topology.sources, topology.targets)
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    new_pair = np.ones(len(order), dtype=bool)
    new_pair[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    starts = np.flatnonzero(new_pair)
    if len(starts) == len(order):
        return topology, weights
    with np.errstate(over="ignore"):  # a sum beyond all floats is infinite, and refused below
        values = _UFUNCS[how].reduceat(weights[order], starts)
    first = order[starts]  # lexsort is stable: the first of a run is the first of the input
    place = np.argsort(first)
    topology, values = topology.restricted_to(first[place]), values[place]
    bad = ~np.isfinite(values)
    if bad.any():
        raise WeightError(
            f"the merged weight of {topology.describe_edge(int(bad.argmax()))} is too large to be "
            "a number; use another way to merge, or rescale the weights"
        )
    return topology, values


def _convert() -> ModuleType:
    from ptclust.graph import convert  # late: only those who convert pay for it

    return convert
