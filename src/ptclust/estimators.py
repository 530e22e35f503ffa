"""Thin scikit-learn faces over the pipeline."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from ptclust._registry import AUTO
from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats, Ints
from ptclust.clustering import dbmstclu
from ptclust.inputs import as_private_graph, as_tree, is_graph_like, nodes_of, tree_of_points
from ptclust.pipeline import ReleaseRequest, publish, sensitivity_of
from ptclust.planning.plan import Plan, engine_of, make_plan

if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Self

    from ptclust._options import CalibrationRule, Sampler
    from ptclust.ledger import Ledger
    from ptclust.privacy import Sensitivity
    from ptclust.release import Release

__all__ = ["DBMSTClu", "PTClust"]


class _Estimator(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """What both have of scikit-learn, safe for tracebacks."""

    labels_: Ints
    n_clusters_: int
    dbcvi_: float

    fit_predict = leaves_no_trace(ClusterMixin.fit_predict)  # it holds X, as fit does

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters; of a half-built object, shown by a traceback, those it has."""
        here = vars(self)
        return {name: here[name] for name in self._get_param_names() if name in here}


@dataclass(kw_only=True, repr=False, eq=False)
class DBMSTClu(_Estimator):
    """Clusters of any shape and unknown number: a minimum spanning tree, cut greedily by DBCVI.

    Not private: for data that may be seen, or for the curator. ``PTClust`` is its private sibling.

    Parameters
    ----------
    max_clusters : int, optional
        Stop at this many clusters.
    min_cluster_size : int, default 1
        Clusters of fewer nodes are dropped: their nodes are unclustered, label -1.

    Attributes
    ----------
    labels_ : array of int
        The cluster of every node, in the order of a Graph's or Tree's names, else of the points or
        nodes of ``X``.
    n_clusters_ : int
    dbcvi_ : float
        DBCVI of the partition.
    cuts_ : Cuts
        The edges cut, in order, with the DBCVI after each.
    tree_ : Tree
        The tree that was cut. A tree of private weights is not pickled with the estimator.

    References
    ----------
    A. Morvan, K. Choromanski, C. Gouy-Pailler, J. Atif. Graph sketching-based massive data
    clustering. 2017.

    Examples
    --------
    >>> from ptclust import DBMSTClu, Graph
    >>> graph = Graph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0.1, 0.1, 0.9, 0.1, 0.1])
    >>> DBMSTClu().fit_predict(graph)
    array([0, 0, 0, 1, 1, 1])
    """

    max_clusters: int | None = None
    min_cluster_size: int = 1

    @leaves_no_trace
    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002
        """Cluster a graph, a tree, or the complete graph of Euclidean distances between points.

        ``X`` is a Graph, a Tree, a scipy sparse matrix, a networkx or igraph graph, or an array of
        points of shape (n, d), of which identical ones count as one node. Of similarities, the
        largest is the smallest distance, as in ``Graph.to_distances``.
        """
        if is_graph_like(X):
            self.tree_, node_of = as_tree(X)
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


@dataclass(kw_only=True, repr=False, eq=False)
class PTClust(_Estimator):
    """Clusters of a graph, published under weight differential privacy (the paper's Algorithm 3).

    A spanning tree is drawn privately and its weights are released with noise, or all weights of
    the graph are; what was released is clustered. After ``fit`` nothing on this object holds or
    reveals private weights: it can be pickled and printed, and its ``release_`` published.

    Parameters
    ----------
    epsilon : float
        The privacy budget. There is no default.
    delta : float, default 0
        With 0 the guarantee is pure. A small positive value, far below one over the number of
        people, allows far less noise.
    sensitivity : Sensitivity, optional
        By how much one privacy unit, a person say, can move the weights. By default what the graph
        carries, if it was built from records (`ptclust.graph_from_flows`, `graph_from_visits`); for
        any other graph it must be given. One smaller than what the graph carries is refused.
    mechanism : str, default "auto"
        "kruskal", "pamst", "gaussian", "laplace", "cube" or another that is registered; ``auto``
        picks the one with the smallest visible gap, from public numbers alone. ``pamst`` with delta
        = 0 is the paper's pipeline, with the least noise on the weights.
    clusterer : str, default "auto"
        "dbmstclu", "levels", "communities" or another that is registered; ``auto`` is
        ``communities`` of a released graph, ``dbmstclu`` on the paper's tree, PAMST, and ``levels``
        on others. ``release_.recluster`` tries another, at no cost.
    split : float, optional
        Share of the budget for the tree, where tree and weights are released apart; by default both
        get the same noise.
    calibration : {"sound", "published"}
        ``published`` uses the paper's printed scales, warns, and states what they truly spend.
    clip : (low, high), optional
        Public bounds; weights outside are moved to the nearer one, silently.
    sampler : {"auto", "opendp"}
        The sampler of the noise. ``auto`` is ptclust's own exact sampler, ``opendp`` needs the
        extra ``ptclust[opendp]``; the statement names it.
    shift, scale : float, optional
        tau and p of the paper, for DBMSTClu; by default they follow from the released weights.
    min_cluster_size : int, default 1
        Clusters of fewer nodes are dropped: their nodes are unclustered, label -1.
    min_probability : float, default 0
        Nodes less likely to belong to their cluster are unclustered, label -1.
    certainty : bool, default False
        Whether ``fit`` computes how probable nodes and clusters are, so that files and pictures of
        ``release_`` show it; ``probabilities_`` computes it when first asked for.
    privacy_unit : str, optional
        What one unit is, in words, for the statement: "one patient", "one visitor and day"; by
        default the unit that the graph carries, if it was built from records.
    topology : "public", optional
        Declares that a topology computed from the data, as by
        ``Graph.from_points(n_neighbors=...)``, may be published.
    random_state : int, optional
        For experiments that can be repeated. Such a release is **not private**, and says so.
    ledger : Ledger or path, optional
        A ledger that every ``fit`` is charged to before anything is drawn; BudgetError if it does
        not cover it.
    dataset : str, optional
        The dataset of that ledger to charge.
    noisy : str or path, optional
        Of edges in Spark: a new folder, to which the noisy weights of all of them are written, for
        beyond 50 million edges the release has those of their spanning tree alone.

    Attributes
    ----------
    labels_ : array of int
        The cluster of every node, in the order of a Graph's names, else of the nodes of ``X``. That
        order is the caller's: publish ``release_``, whose nodes are in the order of their names.
    n_clusters_ : int
    dbcvi_ : float
        DBCVI on the released tree.
    probabilities_ : array of float
        For every node, the probability that it belongs to its cluster, in the order of
        ``labels_``; computed when first asked for.
    release_ : Release
        What is published; set as soon as it is paid for and drawn.
    plan_ : Plan
        All mechanisms, calibrated, and the one that was used.

    Notes
    -----
    *Privacy.* (epsilon, delta)-differentially private for neighbours within ``sensitivity``: see
    ``release_.statement``. Fitting again spends again.

    References
    ----------
    R. Pinot, A. Morvan, F. Yger, C. Gouy-Pailler, J. Atif. Graph-based clustering under
    differential privacy. UAI 2018.

    Examples
    --------
    >>> from ptclust import Graph, PTClust, Sensitivity
    >>> graph = Graph([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], [0.1, 0.1, 0.1, 0.9, 0.1, 0.1])
    >>> model = PTClust(epsilon=1.0, delta=1e-6, sensitivity=Sensitivity(linf=1e-6)).fit(graph)
    >>> model.labels_
    array([0, 0, 0, 0, 1, 1, 1])
    >>> model.release_.statement.epsilon
    1.0
    """

    epsilon: float | Fraction
    delta: float | Fraction = 0
    sensitivity: Sensitivity | None = None
    mechanism: str = AUTO
    clusterer: str = AUTO
    split: float | Fraction | None = None
    calibration: CalibrationRule = "sound"
    clip: tuple[float, float] | None = None
    sampler: Sampler = "auto"
    shift: float | None = None
    scale: float | None = None
    min_cluster_size: int = 1
    min_probability: float = 0.0
    certainty: bool = False
    privacy_unit: str | None = None
    topology: Literal["public"] | None = None
    random_state: int | None = None
    ledger: Ledger | str | os.PathLike[str] | None = None
    dataset: str | None = None
    noisy: str | os.PathLike[str] | None = None

    @leaves_no_trace
    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002
        """Publish the clusters of a Graph, sparse matrix, networkx or igraph graph; spends.

        A DataFrame of Spark, one row per edge, or the result of `ptclust.spark_edges` stays where
        it is (docs/howto/spark.md).
        """
        graph = as_private_graph(X)
        of_graph = {
            "sensitivity": sensitivity_of(graph, self.sensitivity),
            "engine": engine_of(graph.topology),
        }
        request = ReleaseRequest(**self.get_params() | of_graph)
        plan = make_plan(graph.topology, request)
        # At once: it is paid for, whatever becomes of the clustering.
        keep = partial(self._keep, plan, nodes_of(X, graph))
        try:
            keep(publish(graph, request, plan=plan, keep=keep))
        except BaseException as problem:
            if self.__dict__.get("plan_") is plan:
                problem.add_note(
                    "The published values are paid for and kept in release_, not clustered; "
                    "release_.recluster() clusters them at no cost."
                )
            raise
        return self

    def _keep(self, plan: Plan, node_of: Array, release: Release) -> None:
        self.plan_, self.release_ = plan, release
        self.labels_, self.n_clusters_ = release.labels[node_of], release.n_clusters
        self.dbcvi_, self._node_of = release.dbcvi, node_of

    @property
    def probabilities_(self) -> Floats:
        """For every node, the probability that it belongs to its cluster."""
        return self.release_.probabilities[self._node_of]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.two_d_array = False
        return tags
