"""Thin scikit-learn faces over the rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from ptclust.clustering import Cuts, dbmstclu
from ptclust.pipeline import as_tree, is_graph_like, tree_of_points

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from ptclust.trees import Tree

__all__ = ["DBMSTClu"]


class DBMSTClu(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters of any shape and unknown number, by cutting a minimum spanning tree where the density index DBCVI says.

    Not private: for data that may be seen, or for the curator's own eyes. ``PTClust`` is its private sibling.

    Parameters
    ----------
    max_clusters : int, optional
        Stop at this many clusters.
    min_cluster_size : int, default 1
        Clusters of fewer nodes become noise, label -1. With 1, the paper's algorithm, there is no noise.

    Attributes
    ----------
    labels_ : array of int
        The cluster of every node, numbered by first appearance.
    n_clusters_ : int
        How many there are.
    dbcvi_ : float
        DBCVI of the partition.
    cuts_ : Cuts
        The edges cut, in order, with the DBCVI after each.
    tree_ : Tree
        The tree that was cut; of points, the Euclidean minimum spanning tree of the distinct ones. A tree of private
        weights is not pickled with the estimator.

    References
    ----------
    A. Morvan, K. Choromanski, C. Gouy-Pailler, J. Atif. Graph sketching-based massive data clustering. 2017.

    Examples
    --------
    >>> from ptclust import DBMSTClu, Graph
    >>> graph = Graph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0.1, 0.1, 0.9, 0.1, 0.1])
    >>> DBMSTClu().fit_predict(graph)
    array([0, 0, 0, 1, 1, 1])
    """

    labels_: NDArray[np.int64]
    n_clusters_: int
    dbcvi_: float
    cuts_: Cuts
    tree_: Tree

    def __init__(self, *, max_clusters: int | None = None, min_cluster_size: int = 1) -> None:
        self.max_clusters = max_clusters
        self.min_cluster_size = min_cluster_size

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002
        """Cluster a graph, a tree, or the complete graph of Euclidean distances between points.

        Identical points count as one node.

        Parameters
        ----------
        X : Graph, Tree, scipy sparse matrix, networkx or igraph graph, or array of shape (n_points, n_dimensions)
        y : ignored
        """
        if is_graph_like(X):
            self.tree_, _ = as_tree(X)
            node_of = np.arange(self.tree_.n_nodes)
        else:
            points = validate_data(self, X, dtype=np.float64)
            self.tree_, node_of = tree_of_points(points)
        result = dbmstclu(
            self.tree_, max_clusters=self.max_clusters, min_cluster_size=self.min_cluster_size
        )
        self.labels_, self.n_clusters_ = result.labels[node_of], result.n_clusters
        self.dbcvi_, self.cuts_ = result.dbcvi, result.cuts
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "tree_" in state and state["tree_"].private:
            state = {key: value for key, value in state.items() if key != "tree_"}
        return state
