"""From whatever holds a graph to its clusters: the rooms in a row."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.clustering import Clustering, dbmstclu
from ptclust.errors import InputError, PrivacyWarning, WeightError
from ptclust.graph import Graph, Merge, Topology, read_graph, read_topology
from ptclust.privacy import RandomStream
from ptclust.privacy._ledger_plan import charge_plan, check_ledger
from ptclust.privacy.plan import Clusterer, Plan, check_range, plan
from ptclust.release import Release
from ptclust.release.account import statement_of
from ptclust.release.ways import Published, Way, check_options, choose_way
from ptclust.release.weights import release_tree
from ptclust.trees import Tree, euclidean_spanning_tree, minimum_spanning_tree

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from ptclust.privacy.ledger import Ledger

__all__ = [
    "TreeClustering",
    "as_graph",
    "as_tree",
    "cluster_file",
    "is_graph_like",
    "publish",
    "tree_of_points",
    "way_of",
]


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
        graph = as_graph(data)
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


def as_graph(data: Any) -> Graph:
    """Return a graph of any kind as a Graph."""
    if isinstance(data, Graph):
        return data
    convert: dict[str, Callable[[Any], Graph]] = {
        "networkx": Graph.from_networkx,
        "igraph": Graph.from_igraph,
        "scipy": Graph.from_scipy,
    }
    library = _library(data)
    if library is None:
        raise InputError(
            f"an object of type {type(data).__name__} is no graph; give a Graph, a scipy sparse "
            "matrix, or a networkx or "
            "igraph graph (Graph.from_points makes one of points)"
        )
    return convert[library](data)


@dataclass(frozen=True)
class GraphFile:
    """A file with a graph, and how to read it."""

    path: Path
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    merge: Merge | None = None
    similarity_cap: float | None = None

    def read(self) -> Graph:
        """Read topology and weights."""
        return read_graph(
            self.path,
            source=self.source,
            target=self.target,
            weight=self.weight,
            merge=self.merge,
            similarity_cap=self.similarity_cap,
        )

    def read_topology(self) -> Topology:
        """Read the topology alone; of a table only the two columns of the nodes."""
        return read_topology(
            self.path,
            source=self.source,
            target=self.target,
            weight=self.weight,
            merge=self.merge,
        )


def cluster_file(
    file: GraphFile,
    *,
    max_clusters: int | None = None,
    min_cluster_size: int = 1,
    stage: Callable[[str], None] = lambda _: None,
) -> TreeClustering:
    """Read a graph from a file and cluster it by DBMSTClu, without privacy; ``stage`` hears what is being done."""
    stage(f"Reading {file.path.name}")
    graph = file.read()
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


def plan_file(file: GraphFile, **choices: Any) -> Plan:
    """Plan the release of a graph in a file, without reading a weight; ``choices`` as for `plan`."""
    return plan(file.read_topology(), **choices)


def publish_file(
    file: GraphFile,
    choices: dict[str, Any],
    *,
    stage: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> tuple[Plan, Release]:
    """Read a graph from a file, plan by ``choices`` and publish its clusters; ``options`` as for `publish`."""
    stage(f"Reading {file.path.name}")
    graph = file.read()
    stage("Planning")
    chosen = plan(graph.topology, **choices)
    return chosen, publish(graph, chosen, stage=stage, **options)


def publish(
    graph: Graph,
    plan: Plan,
    *,
    clip: tuple[float, float] | None = None,
    clusterer: Clusterer = "auto",
    shift: float | None = None,
    scale: float | None = None,
    min_cluster_size: int = 1,
    privacy_unit: str | None = None,
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    stage: Callable[[str], None] = lambda _: None,
) -> Release:
    """Carry out a plan: draw a tree, release its weights, cluster what was released (the paper's Algorithm 3).

    ``clusterer`` is one of the ways of clustering in ``ptclust.release.ways``. With a ``ledger``, what the plan truly
    spends is charged to its ``dataset`` before any noise is drawn; whoever hands the release over calls
    ``ledger.confirm(release.statement.id)``.

    Notes
    -----
    *Privacy.* Only the tree and the weight release see the private weights; everything after them works on what they
    published. ``plan`` must have been made for the topology of this graph.
    """
    clip = check_range(clip)
    # All that can be wrong with what was asked for is found before anything is spent.
    _check_plan(graph, plan, clipped=clip is not None)
    way = way_of(plan, clusterer)
    check_options(way, min_cluster_size, shift, scale)
    book = check_ledger(ledger, dataset, random_state)
    for warning in plan.warnings:
        warnings.warn(warning, PrivacyWarning, stacklevel=2)
    if plan.calibration == "published":
        warnings.warn(
            f"the paper's printed scales were asked for at epsilon = {float(plan.budget.epsilon):g}; "
            "under these neighbours "
            f"they truly spend epsilon = {float(plan.chosen.spent.epsilon):.6g}, and the statement says so",
            PrivacyWarning,
            stacklevel=2,
        )
    # The statement comes first: what it refuses is refused before anything is spent.
    statement = statement_of(
        plan,
        reproducible=random_state is not None,
        post_processing=(),
        privacy_unit=privacy_unit,
        clip=clip,
    )
    if book is not None:
        stage(f"Charging {book.path.name}")
        charge_plan(book, dataset, plan, statement.id)
    with RandomStream.of(random_state) as stream:
        tree, graph_weights = release_tree(graph, plan.chosen, stream, clip=clip, stage=stage)
    stage("Clustering what was released")
    published = Published(
        tree, statement, None if graph_weights is None else graph.topology, graph_weights
    )
    return published.cluster(way, min_cluster_size=min_cluster_size, shift=shift, scale=scale)


def way_of(plan: Plan, clusterer: Clusterer) -> Way:
    """Return how a release made by ``plan`` will be clustered."""
    return choose_way(
        clusterer,
        whole_graph=plan.chosen.tree is None,
        pamst=plan.chosen.method == "pamst",
        n_edges=plan.n_edges,
        n_tree_edges=plan.n_nodes - plan.n_components,
    )


def _check_plan(graph: Graph, plan: Plan, *, clipped: bool) -> None:
    """Refuse a plan made for another topology, and weights outside the range that was declared."""
    counts = graph.n_nodes, graph.n_edges, graph.topology.n_components
    if counts != (plan.n_nodes, plan.n_edges, plan.n_components):
        raise InputError(
            f"the plan was made for {plan.n_nodes:,} nodes, {plan.n_edges:,} edges and "
            f"{plan.n_components:,} components, "
            f"and this graph has {counts[0]:,}, {counts[1]:,} and {counts[2]:,}; plan again for its topology"
        )
    if plan.weight_range is not None and not clipped and not graph.is_within(*plan.weight_range):
        low, high = plan.weight_range
        raise WeightError(
            f"not all weights lie within the declared range of {low:g} to {high:g}; give "
            f"clip=({low:g}, {high:g}) to move "
            "those outside to the nearer bound, or declare a range that holds for any data"
        )
