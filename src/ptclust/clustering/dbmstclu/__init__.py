"""DBMSTClu (Algorithm 1): cut a spanning tree greedily by the density index DBCVI."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ptclust._components import adjacency, label_components
from ptclust._traces import leaves_no_trace
from ptclust.clustering.clusterer import (
    Clusterer,
    Clustering,
    Cost,
    Cuts,
    check_sizes,
    without_small,
)
from ptclust.clustering.dbcvi import WeightedTree, dbcvi, positive_weights
from ptclust.clustering.dbmstclu import _kernel as kernel
from ptclust.clustering.dbmstclu._search_kernel import SearchTrees
from ptclust.clustering.normalise import Reweighted, check_constants, normalisation
from ptclust.graph.topology import index_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptclust._types import Bools, Ints
    from ptclust.mechanisms.mechanism import Publishes
    from ptclust.published import Published

__all__ = ["DBMSTCluClusterer", "dbmstclu", "label_pieces", "rooted"]

_WORK_PER_CALL = 1 << 25
_POLICY = kernel.Policy()


@dataclass(frozen=True)
class DBMSTCluClusterer(Clusterer):
    """The paper's Algorithm 1 on the published tree: one edge decides a cut."""

    name: ClassVar[str] = "dbmstclu"
    description: ClassVar[str] = "DBMSTClu cut the released tree"
    needs: ClassVar[Publishes] = "tree"
    cost: ClassVar[Cost] = Cost(60_000, 10, 1.0)

    shift: float | None = None
    """tau of the paper; by default from the noisy weights and the noise."""
    scale: float | None = None
    """p of the paper; by default the largest shifted weight."""

    def __post_init__(self) -> None:
        check_constants(self.shift, self.scale)

    def cluster(self, published: Published) -> Clustering:
        """Cut the published tree."""
        tree, deviation = published.tree, published.noise.standard_deviation
        normal = normalisation(tree.distances, deviation, self.shift, self.scale)
        origin = "from the released weights and the public noise" if self.shift is None else "given"
        what = (
            "weights" if published.kind == "distance" else "similarities, with their sign changed,"
        )
        line = (
            f"released {what} were shifted by {normal.shift:.6g} ({origin}) and divided by "
            f"{normal.scale:.6g}"
        )
        return replace(
            dbmstclu(Reweighted(tree, normal.apply(tree.distances))),
            shift=normal.shift,
            scale=normal.scale,
            description=(line, self.description),
        )


@leaves_no_trace
def dbmstclu(
    tree: WeightedTree,
    *,
    max_clusters: int | None = None,
    min_cluster_size: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Clustering:
    """Cluster the nodes of a weighted tree by DBMSTClu.

    Starting from DBCVI = -1, the edge whose cut gives the largest DBCVI is cut as long as DBCVI
    does not fall. Among cuts of equal DBCVI the last in edge order is made, as the paper's loop
    does. Values of N * DBCVI are compared on a grid of 2**-24, so that neither the order of
    summation nor the last bits of a weight decide. Trees of a forest are clustered one by one.

    Parameters
    ----------
    tree : Tree
        A tree, or forest, with positive weights. Only ratios of weights matter.
    max_clusters : int, optional
        Stop at this many clusters. The components of a forest are clusters from the start.
    min_cluster_size : int, default 1
        Nodes of smaller clusters are unclustered, label -1; with 1, as in the paper, none are.
    progress : callable, optional
        Called from time to time with the number of cuts made so far.

    Notes
    -----
    All cuts of a component are evaluated in time proportional to its size, and a cut requires a new
    evaluation of the two pieces it makes. That is a few sweeps over the tree where cuts are
    balanced. Where they are not, as at a hub that loses its leaves one by one or on a path of
    sorted weights, a search tree finds the next cut without a sweep.

    References
    ----------
    A. Morvan, K. Choromanski, C. Gouy-Pailler, J. Atif. Graph sketching-based massive data
    clustering. 2017.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]), [0.1, 0.1, 0.9, 0.1, 0.1])
    >>> dbmstclu(tree).labels.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    check_sizes(max_clusters, min_cluster_size)
    positive_weights(tree, "DBMSTClu")
    forest = rooted(tree)
    state = _initial_state(tree.n_nodes)
    total = kernel.start(forest, state)
    most_cuts = tree.n_nodes
    if max_clusters is not None:
        most_cuts = max(max_clusters - (tree.n_nodes - len(tree.weights)), 0)
    trees = _search_trees(tree.n_nodes)
    while not kernel.make_cuts(forest, state, trees, most_cuts, _WORK_PER_CALL):
        if progress is not None:
            progress(int(state.counts[1]))
    n_cuts = int(state.counts[1])
    cut, sums = state.cuts[:n_cuts], np.empty(n_cuts)
    kernel.running_sum(total, state.gains[:n_cuts], sums)
    is_cut = np.zeros(len(tree.weights), np.bool_)
    is_cut[cut] = True
    labels = label_pieces(tree, is_cut)
    return Clustering(
        labels=without_small(labels, min_cluster_size),
        cuts=Cuts(tree.edge_ids[cut], sums / max(tree.n_nodes, 1)),
        dbcvi=dbcvi(tree, labels),
        min_cluster_size=min_cluster_size,
    )


def rooted(tree: WeightedTree) -> kernel.RootedForest:
    """Number the nodes of the tree in preorder."""
    n_nodes = tree.n_nodes
    near = adjacency(tree.sources.astype(np.int64), tree.targets.astype(np.int64), n_nodes)
    node, parent, edge = np.empty((3, n_nodes), index_dtype(2 * n_nodes))
    kernel.root_forest(near, node, parent, edge)
    weight, has_edge = np.zeros(n_nodes), edge >= 0
    weight[has_edge] = tree.weights[edge[has_edge]]
    return kernel.RootedForest(node, parent, edge, weight)


def _initial_state(n_nodes: int) -> kernel.State:
    index = index_dtype(2 * n_nodes)  # nodes and branches of search trees
    return kernel.State(
        members=np.arange(n_nodes, dtype=index),
        cut_at=np.full(n_nodes, np.inf),
        size=np.empty(n_nodes, index),
        dispersion=np.empty(n_nodes),
        separation=np.empty(n_nodes),
        heaviest_after=np.empty(n_nodes + 1),
        lightest_after=np.empty(n_nodes + 1),
        validity=np.empty(n_nodes),
        heap=np.empty((n_nodes, 5), np.int64),
        cuts=np.empty(n_nodes, index),
        gains=np.empty(n_nodes),
        counts=np.zeros(2, np.int64),
        buffer=np.empty(n_nodes, index),
        policy=_POLICY,
        peels=np.zeros(n_nodes, index),
    )


def _search_trees(n_nodes: int) -> SearchTrees:
    """Return empty search trees; the system provides the memory only where it is used."""
    index = index_dtype(2 * n_nodes)
    return SearchTrees(
        whole=np.empty((2 * n_nodes, 11), index),
        real=np.empty((2 * n_nodes, 14)),
        free=np.arange(2 * n_nodes - 1, n_nodes - 1, -1, dtype=index),
        root=np.full(n_nodes, -1, index),
        offset=np.zeros(n_nodes, index),
        counts=np.array([n_nodes, 0]),
        todo=np.empty((128, 6), np.int64),
        ahead=np.empty((128, 2)),
    )


def label_pieces(tree: WeightedTree, is_cut: Bools) -> Ints:
    """Number the pieces that cuts leave by first appearance."""
    labels = np.arange(tree.n_nodes)
    label_components(tree.sources[~is_cut], tree.targets[~is_cut], labels)
    return labels
