"""DISP, SEP, V_C and DBCVI (Definitions 3.3 to 3.6) of any partition of the nodes of a tree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ptclust._kernel import kernel
from ptclust._markup import quoted
from ptclust._traces import leaves_no_trace
from ptclust.errors import UsageError, WeightError
from ptclust.graph.topology import check_distances

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ptclust._types import Array, Floats, Ints
    from ptclust.graph.topology import WeightedGraph

__all__ = ["WeightedTree", "cluster_validity", "dbcvi", "dispersion", "separation", "validity"]


class WeightedTree(Protocol):
    """What clustering sees of a tree, whether its weights are raw or published."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""

    @property
    def sources(self) -> Array:
        """First endpoint of every edge."""

    @property
    def targets(self) -> Array:
        """Second endpoint of every edge."""

    @property
    def weights(self) -> Floats:
        """Weight of every edge."""

    @property
    def edge_ids(self) -> Array:
        """Id of every edge in the graph."""

    @property
    def names(self) -> Array:
        """Names of the nodes."""


@leaves_no_trace
def positive_weights(tree: WeightedGraph | WeightedTree, what: str) -> Floats:
    """Return the weights; raise WeightError, naming ``what``, unless all are positive distances."""
    check_distances(tree, what)
    bad = np.flatnonzero(~(tree.weights > 0))
    if len(bad):
        ends = tree.names[[tree.sources[bad[0]], tree.targets[bad[0]]]].tolist()
        raise WeightError(
            f"{what} needs positive weights, and the edge {' - '.join(map(quoted, ends))} has a "
            f"weight of zero or less ({len(bad):,} such edges in all); add one public constant to "
            "all weights so that they become positive, or merge nodes (drop duplicate points) at "
            "distance zero"
        )
    return tree.weights


@leaves_no_trace
def dispersion(tree: WeightedTree, labels: ArrayLike) -> Floats:
    """Return DISP of every cluster: its heaviest edge, 0 if it has none.

    Clusters are numbered 0, 1, 2, ...; nodes labelled -1 belong to none.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology([0, 1, 2], [1, 2, 3]), [0.2, 0.8, 0.4])
    >>> dispersion(tree, [0, 0, 1, 1])
    array([0.2, 0.4])
    """
    labels, n_clusters = _checked(tree, labels)
    a, b = labels[tree.sources], labels[tree.targets]
    within = (a == b) & (a >= 0)
    heaviest = np.zeros(n_clusters)
    np.maximum.at(heaviest, a[within], tree.weights[within])
    return heaviest


@leaves_no_trace
def separation(tree: WeightedTree, labels: ArrayLike) -> Floats:
    """Return SEP of every cluster: the lightest edge that leaves it, 1 if none does.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology([0, 1, 2], [1, 2, 3]), [0.2, 0.8, 0.4])
    >>> separation(tree, [0, 0, 1, 2])
    array([0.8, 0.4, 0.4])
    """
    labels, n_clusters = _checked(tree, labels)
    lightest = np.full(n_clusters, np.inf)
    a, b = labels[tree.sources], labels[tree.targets]
    for end in (a, b):
        leaving = (a != b) & (end >= 0)
        np.minimum.at(lightest, end[leaving], tree.weights[leaving])
    return np.where(np.isinf(lightest), 1.0, lightest)


@leaves_no_trace
def cluster_validity(tree: WeightedTree, labels: ArrayLike) -> Floats:
    """Return V_C of every cluster: (SEP - DISP) / max(SEP, DISP), between -1 and 1.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology([0, 1, 2], [1, 2, 3]), [0.2, 0.8, 0.4])
    >>> cluster_validity(tree, [0, 0, 1, 1])
    array([0.75, 0.5 ])
    """
    sep, disp = separation(tree, labels), dispersion(tree, labels)
    return (sep - disp) / np.maximum(sep, disp)


@kernel
def validity(separation: float, dispersion: float) -> float:
    """Return V_C of one cluster, for kernels."""
    return (separation - dispersion) / max(separation, dispersion)


@leaves_no_trace
def dbcvi(tree: WeightedTree, labels: ArrayLike) -> float:
    """Return DBCVI of a partition: the mean of V_C weighted by cluster size.

    Unclustered nodes, label -1, count as 0. The sum is correctly rounded, so it does not depend on
    the order of the clusters.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology([0, 1, 2], [1, 2, 3]), [0.2, 0.8, 0.4])
    >>> dbcvi(tree, [0, 0, 1, 1])
    0.625
    """
    labels, n_clusters = _checked(tree, labels)
    if tree.n_nodes == 0:
        return 0.0
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
    return math.fsum(sizes * cluster_validity(tree, labels)) / tree.n_nodes


def _checked(tree: WeightedTree, labels: ArrayLike) -> tuple[Ints, int]:
    check_distances(tree, "DBCVI")
    array = np.asarray(labels)
    if array.shape != (tree.n_nodes,):
        raise UsageError(f"{array.size} labels were given for {tree.n_nodes} nodes")
    if array.size == 0:
        return np.empty(0, dtype=np.int64), 0
    if not np.issubdtype(array.dtype, np.integer) or array.min() < -1:
        raise UsageError("labels must be whole numbers from 0, or -1 for unclustered nodes")
    array = array.astype(np.int64, copy=False)
    n_clusters = int(array.max()) + 1
    if n_clusters > tree.n_nodes or np.any(
        np.bincount(array[array >= 0], minlength=n_clusters) == 0
    ):
        raise UsageError("clusters must be numbered 0, 1, 2, ... without gaps")
    return array, n_clusters
