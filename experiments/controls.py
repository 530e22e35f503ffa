"""What private methods are compared with: no privacy, and no weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering import dbmstclu
from ptclust.graph import Graph
from ptclust.trees import minimum_spanning_tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CONTROLS",
    "EQUAL",
    "Control",
    "first_eigenvectors",
    "hdbscan_labels",
    "spectral_labels",
    "with_equal_weights",
]

EQUAL = 0.5
"""The weight of every edge where methods see the topology alone."""
_DENSE = 500


@dataclass(frozen=True)
class Control:
    """Something to compare with that has no epsilon."""

    name: str
    title: str
    labels: Callable[[Graph, NDArray[np.int64]], NDArray[np.int64]]
    """From a graph and the truth, of which only a control that says so may use anything."""
    topology_only: bool = False


def with_equal_weights(graph: Graph) -> Graph:
    """Return the topology of a graph, all weights the same; of similarities, their mean."""
    equal = EQUAL if graph.kind == "distance" else float(graph.weights.mean())
    weights = np.full(graph.n_edges, equal)
    return Graph(graph.sources, graph.targets, weights, n_nodes=graph.n_nodes, kind=graph.kind)


def _plain(graph: Graph, _: NDArray[np.int64]) -> NDArray[np.int64]:
    return dbmstclu(minimum_spanning_tree(graph)).labels


def _equal_weights(graph: Graph, _: NDArray[np.int64]) -> NDArray[np.int64]:
    return dbmstclu(minimum_spanning_tree(with_equal_weights(graph))).labels


def _hdbscan(graph: Graph, _: NDArray[np.int64]) -> NDArray[np.int64]:
    return hdbscan_labels(graph, graph.weights)


def hdbscan_labels(graph: Graph, distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the clusters of scikit-learn's HDBSCAN on a distance for every edge.

    A core distance is that to the nearest neighbour, since nodes of sparse graphs have few;
    clusters have at least 5 nodes and 1 % of all. Unclustered nodes are a group of their own,
    label -1.
    """
    from scipy.sparse import csr_matrix
    from sklearn.cluster import HDBSCAN

    n = graph.n_nodes
    ends = np.concatenate([graph.sources, graph.targets])
    others = np.concatenate([graph.targets, graph.sources])
    matrix = csr_matrix((np.tile(distances, 2), (ends, others)), shape=(n, n))
    model = HDBSCAN(
        metric="precomputed", min_samples=1, min_cluster_size=max(5, n // 100), copy=True
    )
    return np.asarray(model.fit_predict(matrix), dtype=np.int64)


def _spectral(graph: Graph, truth: NDArray[np.int64]) -> NDArray[np.int64]:
    return spectral_labels(graph, len(np.unique(truth)), np.ones(graph.n_edges))


def spectral_labels(
    graph: Graph, n_clusters: int, similarities: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return k-means of the first eigenvectors of the normalised matrix of similarities."""
    from scipy.sparse import coo_array, diags_array
    from sklearn.cluster import KMeans

    n = graph.n_nodes
    half = coo_array((similarities, (graph.sources, graph.targets)), shape=(n, n))
    adjacency = (half + half.T).tocsr()
    root = diags_array(1.0 / np.sqrt(np.maximum(adjacency.sum(axis=0), 1e-300)))
    vectors = first_eigenvectors(root @ adjacency @ root, n_clusters)
    if n_clusters == 2:
        return np.asarray(vectors[:, 0] > 0, dtype=np.int64)
    rows = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters: no matter
        found = KMeans(n_clusters, n_init=4, random_state=0).fit_predict(rows)
    return np.asarray(found, dtype=np.int64)


def first_eigenvectors(matrix: object, wanted: int) -> NDArray[np.float64]:
    """Return the eigenvectors of the largest eigenvalues, the very largest last."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    n: int = matrix.shape[0]  # type: ignore[attr-defined]
    if n <= _DENSE:
        dense = matrix.toarray()  # type: ignore[attr-defined]
        return np.asarray(eigh(dense, subset_by_index=(n - wanted, n - 1))[1])
    start = np.random.default_rng(n).random(n)
    values, vectors = eigsh(matrix, k=wanted, which="LA", v0=start, tol=1e-6)
    return np.asarray(vectors[:, np.argsort(values)])


CONTROLS = (
    Control("dbmstclu", "DBMSTClu, not private", _plain),
    Control("hdbscan", "HDBSCAN, not private", _hdbscan),
    Control(
        "topology", "topology only: DBMSTClu, equal weights", _equal_weights, topology_only=True
    ),
    Control("spectral", "topology only: spectral, K given", _spectral, topology_only=True),
)
