"""A topology and its private weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ptclust.errors import GraphError, WeightError
from ptclust.graph._edges import Edges
from ptclust.graph._weights import Merge, as_weights, dissimilarities, merged
from ptclust.graph.topology import Topology, _frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Graph", "Merge"]


class Graph:
    """An undirected simple graph whose topology is public and whose edge weights are private.

    Weights are dissimilarities: small means close. They may be zero or negative here; what cannot
    use such weights says so.

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
        How to make one weight of several when two nodes are joined more than once; without it that
        is an error. The merged edge keeps the place of the first.
    similarity_cap : float, optional
        The weights are similarities s of at most this public value C; they become the
        dissimilarities C - s, before any merging.

    Notes
    -----
    *Privacy.* The weights are in the clear inside this object and nowhere else: ``repr`` shows
    counts only, pickling is refused, and errors name edges, never values. The topology, the names and
    ``similarity_cap`` are public.

    Examples
    --------
    >>> graph = Graph([0, 1, 2], [1, 2, 0], [0.1, 0.2, 0.3], names=["a", "b", "c"])
    >>> graph
    Graph(n_nodes=3, n_edges=3, weights=<private>)
    >>> graph.topology.names.tolist()
    ['a', 'b', 'c']
    """

    topology: Topology
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
        """Return the graph of what a reader or converter found; errors speak its words."""
        graph = cls.__new__(cls)
        graph._build(edges, merge, similarity_cap)
        return graph

    def _build(self, edges: Edges, merge: Merge | None, similarity_cap: float | None) -> None:
        say = edges.say
        values = as_weights(edges.weights, say)
        topology = Topology._multi(edges.sources, edges.targets, edges.n_nodes, edges.names, say)
        if len(values) != topology.n_edges:
            raise GraphError(f"{len(values)} weights were given for {topology.n_edges} edges")
        if similarity_cap is not None:
            values = dissimilarities(values, similarity_cap, say)
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
        self.weights = _frozen(values)

    @property
    def sources(self) -> NDArray[Any]:
        """First endpoint of every edge."""
        return self.topology.sources

    @property
    def targets(self) -> NDArray[Any]:
        """Second endpoint of every edge."""
        return self.topology.targets

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.topology.n_nodes

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.topology.n_edges

    @property
    def names(self) -> NDArray[Any]:
        """The names of the nodes, in node order."""
        return self.topology.names

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


def _merge(
    topology: Topology, values: NDArray[np.float64], how: Merge
) -> tuple[Topology, NDArray[np.float64]]:
    kept, values = merged(topology.sources, topology.targets, values, how)
    if len(kept) == topology.n_edges:
        return topology, values
    topology = topology.restricted_to(kept)
    bad = ~np.isfinite(values)
    if bad.any():
        raise WeightError(
            f"the merged weight of {topology.describe_edge(int(bad.argmax()))} is too large to be "
            "a number; use another way to merge, or rescale the weights"
        )
    return topology, values
