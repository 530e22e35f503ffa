"""From whatever holds a graph to its clusters: the rooms in a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.clustering import Clustering, dbmstclu
from ptclust.errors import InputError
from ptclust.graph import Graph, Merge, Topology, read_graph
from ptclust.trees import Tree, euclidean_spanning_tree, minimum_spanning_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["TreeClustering", "as_tree", "cluster_file", "is_graph_like", "tree_of_points"]


@dataclass(frozen=True)
class TreeClustering:
    """A tree and the clustering that its cuts make."""

    tree: Tree
    clustering: Clustering
    n_edges: int
    """Number of edges of the graph the tree spans."""


def as_tree(data: Any) -> tuple[Tree, int]:
    """Return the minimum spanning tree of a graph of any kind and its number of edges; a Tree is returned as it is."""
    if isinstance(data, Tree):
        return data, data.n_edges
    if is_graph_like(data):
        graph = _as_graph(data)
        return minimum_spanning_tree(graph), graph.n_edges
    raise InputError(
        f"cannot cluster an object of type {type(data).__name__}; give a Graph, a Tree, a scipy sparse matrix, a "
        "networkx or igraph graph, or an array of points of shape (n, d)"
    )


def tree_of_points(points: NDArray[np.float64]) -> tuple[Tree, NDArray[np.int64]]:
    """Return the Euclidean minimum spanning tree of the distinct points, and the node of every point.

    DBMSTClu has no use for a distance of zero, and identical points belong together: they share a node, which is named
    by the row of the first of them.
    """
    tree = euclidean_spanning_tree(points)
    if tree.weights.all():
        return tree, np.arange(len(points))
    _, first, group = np.unique(points, axis=0, return_index=True, return_inverse=True)
    rows = np.sort(first)
    tree = euclidean_spanning_tree(points[rows])
    named = Topology(tree.sources, tree.targets, n_nodes=len(rows), names=rows)
    return Tree(named, tree.weights, tree.edge_ids), np.searchsorted(rows, first[group])


def is_graph_like(data: Any) -> bool:
    """Whether ``data`` is a tree or graph of some kind rather than points."""
    return isinstance(data, (Tree, Graph)) or _library(data) is not None


def _library(data: Any) -> str | None:
    """Return the name of the graph library that the class of ``data`` comes from; told without importing any."""
    modules = {base.__module__.partition(".")[0] for base in type(data).__mro__}
    return next((name for name in ("networkx", "igraph", "scipy") if name in modules), None)


def _as_graph(data: Any) -> Graph:
    if isinstance(data, Graph):
        return data
    convert: dict[str, Callable[[Any], Graph]] = {
        "networkx": Graph.from_networkx,
        "igraph": Graph.from_igraph,
        "scipy": Graph.from_scipy,
    }
    return convert[str(_library(data))](data)


def cluster_file(
    path: Path,
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    merge: Merge | None = None,
    similarity_cap: float | None = None,
    max_clusters: int | None = None,
    min_cluster_size: int = 1,
    stage: Callable[[str], None] = lambda _: None,
) -> TreeClustering:
    """Read a graph from a file and cluster it by DBMSTClu, without privacy; ``stage`` hears what is being done."""
    stage(f"Reading {path.name}")
    graph = read_graph(
        path,
        source=source,
        target=target,
        weight=weight,
        merge=merge,
        similarity_cap=similarity_cap,
    )
    stage(f"Minimum spanning tree of {graph.n_nodes:,} nodes and {graph.n_edges:,} edges")
    tree, n_edges = as_tree(graph)
    stage("DBMSTClu")
    clustering = dbmstclu(
        tree,
        max_clusters=max_clusters,
        min_cluster_size=min_cluster_size,
        progress=lambda cuts: stage(f"DBMSTClu: {cuts:,} cuts"),
    )
    return TreeClustering(tree, clustering, n_edges)
