"""A topology and its private weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from ptclust.errors import GraphError, UsageError, WeightError
from ptclust.graph.topology import Topology, _frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Graph", "Merge"]

Merge = Literal["min", "max", "sum"]


class Graph:
    """An undirected simple graph whose topology is public and whose edge weights are private.

    Weights are dissimilarities: small means close. They may be zero or negative here; what cannot use such weights says so.

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
        How to make one weight of several when two nodes are joined more than once; without it that is an error. The merged
        edge keeps the place of the first.
    similarity_cap : float, optional
        The weights are similarities of at most this public value C; they become the dissimilarities C - s.

    Notes
    -----
    *Privacy.* The weights are in the clear inside this object and nowhere else: ``repr`` shows counts only, pickling is
    refused, and errors name edges, never values.

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
        values = _as_weights(weights)
        if similarity_cap is not None:
            values = _dissimilarities(values, similarity_cap)
        if merge is not None:
            sources, targets, values = _merged(sources, targets, values, merge)
        self.topology = Topology(sources, targets, n_nodes, names)
        if len(values) != self.n_edges:
            raise GraphError(f"{len(values)} weights were given for {self.n_edges} edges")
        self.weights = _frozen(values)
        bad = ~np.isfinite(values)
        if bad.any():
            raise WeightError(
                f"the weight of {self.topology.describe_edge(int(bad.argmax()))} is not a finite number "
                f"({int(bad.sum())} such weights in all); remove those edges or give them a weight"
            )

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
            "a Graph holds private weights and refuses to be pickled; pass the file it came from instead, "
            "or its topology, which is public"
        )


def _as_weights(weights: ArrayLike) -> NDArray[np.float64]:
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        # The cause is left out on purpose: numpy quotes the value, and a weight must not reach a log.
        raise WeightError("the weights must be numbers, one per edge") from None
    if values.ndim != 1:
        raise WeightError(f"the weights must be one-dimensional, not {values.ndim}-dimensional")
    return values


def _dissimilarities(similarities: NDArray[np.float64], cap: float) -> NDArray[np.float64]:
    if not np.isfinite(cap):
        raise UsageError(f"similarity_cap must be a finite number, not {cap}")
    over = similarities > cap
    if over.any():
        raise WeightError(
            f"the similarity of edge {int(over.argmax())} is above similarity_cap={cap} ({int(over.sum())} such "
            "edges in all); give a cap that is known to hold for any data, not one read off these"
        )
    return cap - similarities


def _merged(
    sources: ArrayLike, targets: ArrayLike, weights: NDArray[np.float64], how: Merge
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Give every pair of nodes one edge, in the place of its first, with the minimum, maximum or sum of the weights."""
    ufuncs = {"min": np.minimum, "max": np.maximum, "sum": np.add}
    if how not in ufuncs:
        raise UsageError(f"merge must be 'min', 'max' or 'sum', not {how!r}")
    a, b = np.asarray(sources), np.asarray(targets)
    if not len(a) == len(b) == len(weights):
        return a, b, weights  # the constructor says what is wrong
    order = np.lexsort((np.maximum(a, b), np.minimum(a, b)))
    low, high = np.minimum(a, b)[order], np.maximum(a, b)[order]
    new_pair = np.ones(len(order), dtype=bool)
    new_pair[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    starts = np.flatnonzero(new_pair)
    if len(starts) == len(order):
        return a, b, weights
    merged = ufuncs[how].reduceat(weights[order], starts)
    first = order[starts]  # lexsort is stable: the first of a run is the first of the input
    place = np.argsort(first)
    return a[first[place]], b[first[place]], merged[place]
