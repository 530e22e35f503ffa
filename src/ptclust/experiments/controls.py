"""What private methods are compared with: no privacy, and no weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering import dbmstclu
from ptclust.graph import Graph
from ptclust.trees import minimum_spanning_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ptclust.experiments.planted import PlantedGraph

__all__ = ["CONTROLS", "Control"]


@dataclass(frozen=True)
class Control:
    """Something to compare with that has no epsilon."""

    name: str
    title: str
    labels: Callable[[PlantedGraph], NDArray[np.int64]]


def _plain(planted: PlantedGraph) -> NDArray[np.int64]:
    return dbmstclu(minimum_spanning_tree(planted.graph)).labels


def _equal_weights(planted: PlantedGraph) -> NDArray[np.int64]:
    graph = planted.graph
    equal = Graph(graph.sources, graph.targets, np.ones(graph.n_edges), n_nodes=graph.n_nodes)
    return dbmstclu(minimum_spanning_tree(equal)).labels


def _spectral_halves(planted: PlantedGraph) -> NDArray[np.int64]:
    """Split by the sign of the second eigenvector of the normalised adjacency matrix, which sees no weight."""
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.linalg import eigsh

    graph, n = planted.graph, planted.graph.n_nodes
    half = coo_array((np.ones(graph.n_edges), (graph.sources, graph.targets)), shape=(n, n))
    adjacency = (half + half.T).tocsr()
    root = diags_array(1.0 / np.sqrt(adjacency.sum(axis=0)))
    start = np.random.default_rng(n).random(n)
    _, vectors = eigsh(root @ adjacency @ root, k=2, which="LA", v0=start)
    return np.asarray(vectors[:, 0] > 0, dtype=np.int64)


CONTROLS = (
    Control("dbmstclu", "DBMSTClu, not private", _plain),
    Control("topology", "topology only: all weights equal", _equal_weights),
    Control("spectral", "topology only: spectral halves, K = 2 told", _spectral_halves),
)
