"""A spanning tree, or forest, of a graph."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ptclust._components import find, join
from ptclust._kernel import kernel
from ptclust._lazy import package
from ptclust._tables import data_frame
from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats
from ptclust.errors import GraphError, WeightError
from ptclust.graph.topology import (
    HasTopology,
    Kind,
    Topology,
    as_distances,
    as_weights,
    check_finite,
    edge_number,
    frozen,
)


@leaves_no_trace
class Tree(HasTopology):
    """A spanning forest: edges without cycles, one tree for every component of its graph.

    Parameters
    ----------
    topology : Topology of all nodes and the edges of the forest
    weights : array_like of float, optional
        One finite weight per edge, in the same order. A privately chosen tree has none.
    edge_ids : array_like of int, optional
        The number of every edge in the graph the tree came from, ascending; by default 0, 1, 2, ...
        This order decides between equally good cuts in DBMSTClu.
    private : bool, default False
        Whether the weights are a curator's raw weights; such a tree refuses to be pickled.
    kind : {"distance", "similarity"}
        What the weights are: a small distance means close, a large similarity.

    Notes
    -----
    *Privacy.* A tree computed from raw weights is itself private, its shape as much as its weights.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> tree = Tree(Topology([0, 1], [1, 2]), [0.2, 0.5])
    >>> tree
    Tree(n_nodes=3, n_edges=2)
    >>> tree.to_linkage()
    array([[0. , 1. , 0.2, 2. ],
           [2. , 3. , 0.5, 3. ]])
    """

    def __init__(
        self,
        topology: Topology,
        weights: ArrayLike | None = None,
        edge_ids: ArrayLike | None = None,
        *,
        private: bool = False,
        kind: Kind = "distance",
    ) -> None:
        super().__init__(topology)
        self.private, self.kind = private, kind
        self._weights = None if weights is None else _as_weights(weights, topology)
        self.edge_ids = _as_edge_ids(edge_ids, topology)
        if not topology.is_forest:
            parent = np.arange(topology.n_nodes, dtype=topology.sources.dtype)
            edge = _first_edge_closing_cycle(topology.sources, topology.targets, parent)
            closes = "closes a cycle, which no tree has; use minimum_spanning_tree of a graph"
            raise GraphError(f"{topology.describe_edge(edge)} {closes}")

    @classmethod
    def of_checked(
        cls, topology: Topology, weights: Floats, edge_ids: Array, *, private: bool, kind: Kind
    ) -> Tree:
        """Return the tree of arrays known to be one, which become read-only and are not copied."""
        tree = cls.__new__(cls)
        HasTopology.__init__(tree, topology)
        tree.private, tree.kind = private, kind
        tree._weights, tree.edge_ids = frozen(weights), frozen(edge_ids)
        return tree

    @property
    def weights(self) -> Floats:
        """The weight of every edge."""
        if self._weights is None:
            raise WeightError("this tree has no weights: only its topology was chosen")
        return self._weights

    @property
    def distances(self) -> Floats:
        """The weights if they are distances, else their negatives: small means close."""
        return as_distances(self.weights, self.kind)

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(np.sum(self.weights))

    def to_linkage(self) -> Floats:
        """Return the single-linkage merges along the tree as scipy's linkage matrix.

        Edges merge in the order of their weights, ties in the order of the edges.
        """
        if self.n_edges != self.n_nodes - 1:
            several = f"not {self.n_nodes - self.n_edges} components"
            raise GraphError(f"a linkage needs one connected tree, {several}; take each")
        if self.kind == "similarity":
            raise WeightError("a linkage matrix is of distances, and these are similarities")
        if np.any(self.weights < 0):
            raise WeightError("a linkage matrix has no negative weights; add a constant to them")
        linkage, order = np.empty((self.n_edges, 4)), np.argsort(self.weights, kind="stable")
        fill_linkage(self.sources, self.targets, self.weights, order, linkage)
        return linkage

    def to_networkx(self) -> Any:
        """Return a networkx graph whose edges carry ``weight`` (if any) and ``edge_id``."""
        graph = package("networkx", "Tree.to_networkx").Graph()
        names = self.names.tolist()
        graph.add_nodes_from(names)
        for i, (a, b) in enumerate(zip(self.sources, self.targets, strict=True)):
            known = {} if self._weights is None else {"weight": float(self._weights[i])}
            graph.add_edge(names[a], names[b], edge_id=int(self.edge_ids[i]), **known)
        return graph

    def to_dataframe(self, backend: Literal["polars", "pandas"] = "polars") -> Any:
        """Return a table of ``edge_id``, ``source``, ``target`` and ``weight``, if there is any."""
        ends = {"source": self.names[self.sources], "target": self.names[self.targets]}
        weight = {} if self._weights is None else {"weight": self._weights}
        return data_frame({"edge_id": self.edge_ids, **ends, **weight}, backend)

    def plot(
        self, labels: ArrayLike | None = None, coordinates: Any = None, *, axes: Any = None
    ) -> Any:
        """Draw the tree with matplotlib, its nodes by cluster, and return the axes.

        ``labels`` has the cluster of every node, -1 if it is unclustered, and ``coordinates`` a
        pair for every node, or a mapping of names to pairs; by default no two edges cross. Weights
        are not shown.

        Notes
        -----
        *Privacy.* The picture shows the edges. Those of a tree of private weights are private; the
        title says so.
        """
        from ptclust.drawing.layout import along_tree, as_places
        from ptclust.drawing.plots import plot_clusters

        given = np.zeros(self.n_nodes, np.int64) if labels is None else np.asarray(labels)
        if given.shape != (self.n_nodes,) or given.dtype.kind not in "iu":
            raise GraphError(f"labels must be {self.n_nodes} whole numbers, one per node")
        warning = ", NOT PRIVATE: raw weights chose it" if self.private else ""
        return plot_clusters(
            given,
            edges=(self.sources, self.targets),
            names=self.names,
            places=along_tree(self.n_nodes, self.sources, self.targets, given)
            if coordinates is None
            else as_places(coordinates, self.names),
            axes=axes,
            title=f"Tree of {self.n_nodes:,} nodes{warning}",
            legend=labels is not None,
            tags=labels is not None,
        )

    def __repr__(self) -> str:
        return f"Tree(n_nodes={self.n_nodes}, n_edges={self.n_edges})"

    def __getstate__(self) -> dict[str, Any]:
        if self.private:
            raise TypeError("a Tree of private weights refuses to be pickled; publish a Release")
        return self.__dict__


def _as_weights(weights: ArrayLike, topology: Topology) -> Floats:
    values = as_weights(weights, edge_number).astype(np.float64)
    if values.shape != (topology.n_edges,):
        raise WeightError(f"{values.size} weights were given for {topology.n_edges} edges")
    check_finite(values, topology, edge_number)
    return frozen(values)


def _as_edge_ids(edge_ids: ArrayLike | None, topology: Topology) -> Array:
    ids = np.arange(topology.n_edges) if edge_ids is None else np.array(edge_ids)
    if ids.shape != (topology.n_edges,):
        raise GraphError(f"{ids.size} edge ids were given for {topology.n_edges} edges")
    if np.any(ids[1:] <= ids[:-1]):
        raise GraphError("edge_ids must ascend: a tree lists its edges in the order of its graph")
    return frozen(ids)


@kernel
def _first_edge_closing_cycle(sources: Array, targets: Array, parent: Array) -> int:
    """Return the first edge that joins what is connected, or -1; ``parent`` is an ``arange``."""
    for edge in range(len(sources)):
        if not join(parent, sources[edge], targets[edge]):
            return edge
    return -1


@kernel
def fill_linkage(
    sources: Array, targets: Array, weights: Floats, order: Array, linkage: Floats
) -> None:
    """Merge along the edges in ``order``; row i of ``linkage`` is the i-th merge."""
    n_nodes = len(sources) + 1
    parent, cluster, size = np.arange(n_nodes), np.arange(n_nodes), np.ones(n_nodes)
    for step in range(len(order)):
        edge = order[step]
        a, b = find(parent, sources[edge]), find(parent, targets[edge])
        low, high = min(a, b), max(a, b)
        linkage[step, 0] = min(cluster[a], cluster[b])
        linkage[step, 1] = max(cluster[a], cluster[b])
        linkage[step, 2] = weights[edge]
        linkage[step, 3] = size[a] + size[b]
        size[low] = linkage[step, 3]
        cluster[low] = n_nodes + step
        parent[high] = low
