"""The paper's Definitions of Cut and of a partitioning topology (section 3.2): a tree against given clusters.

Noise, label -1, counts as the paper has it: every such node is a cluster of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ptclust.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ptclust.clustering import WeightedTree

__all__ = ["Partition", "as_partition", "cuts", "has_partitioning_topology", "is_cut"]


@dataclass(frozen=True, eq=False)
class Partition:
    """Labels in order: clusters numbered 0 to K - 1 by ascending label, then the noise, a cluster a node."""

    cluster: NDArray[np.int64]
    """The cluster of every node."""
    labels: NDArray[np.int64]
    """The label of every cluster, as it was given; -1 where the cluster is a node of noise."""
    sizes: NDArray[np.int64]
    """Number of nodes of every cluster."""

    @property
    def n_clusters(self) -> int:
        """K, the nodes of noise included."""
        return len(self.labels)

    @property
    def n_labelled(self) -> int:
        """Number of clusters that are not noise; they come first."""
        return int(np.count_nonzero(self.labels >= 0))


def as_partition(labels: ArrayLike, n_nodes: int) -> Partition:
    """Return the partition that ``labels`` describe: one whole number a node, numbered anyhow, -1 for noise.

    >>> partition = as_partition([7, 7, -1, 3, -1], 5)
    >>> partition.cluster
    array([1, 1, 2, 0, 3])
    >>> partition.labels
    array([ 3,  7, -1, -1])
    """
    array = np.asarray(labels)
    if array.shape != (n_nodes,):
        raise UsageError(f"{array.size} labels were given for {n_nodes} nodes; give one a node")
    if array.size == 0:
        return Partition(*np.empty((3, 0), dtype=np.int64))
    if not np.issubdtype(array.dtype, np.integer):
        raise UsageError(
            f"labels must be whole numbers, not {array.dtype}; np.unique(labels, return_inverse=True)[1] numbers them"
        )
    if array.min() < -1:
        raise UsageError(
            f"labels must be whole numbers from 0, or -1 for noise, but {array.min()} is among them"
        )
    found, cluster = np.unique(array, return_inverse=True)
    cluster = cluster.astype(np.int64)
    if found[0] == -1:
        found, cluster = found[1:], cluster - 1
        noise = cluster < 0
        cluster[noise] = np.arange(len(found), len(found) + np.count_nonzero(noise))
        found = np.concatenate([found, np.full(np.count_nonzero(noise), -1)])
    return Partition(cluster, found.astype(np.int64), np.bincount(cluster))


def is_cut(tree: WeightedTree, labels: ArrayLike) -> NDArray[np.bool_]:
    """Return, for every edge of the tree in its order, whether it joins two clusters.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> is_cut(Tree(Topology([0, 1, 2], [1, 2, 3])), [0, 0, 1, 1])
    array([False,  True, False])
    """
    cluster = as_partition(labels, tree.n_nodes).cluster
    joins_two: NDArray[np.bool_] = cluster[tree.sources] != cluster[tree.targets]
    return joins_two


def cuts(tree: WeightedTree, labels: ArrayLike) -> NDArray[Any]:
    """Return Cut_G(T): the ids, in the graph, of the edges of the tree that join two clusters.

    Parameters
    ----------
    tree : Tree
        A spanning tree, or forest; it needs no weights.
    labels : array_like of int
        The cluster of every node, numbered anyhow. Every node labelled -1, noise, is a cluster of its own.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> cuts(Tree(Topology([0, 1, 2], [1, 2, 3]), edge_ids=[3, 5, 8]), [0, 0, 1, 1])
    array([5])
    """
    return tree.edge_ids[is_cut(tree, labels)]


def has_partitioning_topology(
    tree: WeightedTree, labels: ArrayLike, form: Literal["meant", "printed"] = "meant"
) -> bool:
    """Whether cutting Cut_G(T) leaves exactly the clusters.

    Parameters
    ----------
    tree : Tree
        A spanning tree, or forest; it needs no weights.
    labels : array_like of int
        The cluster of every node, numbered anyhow. Every node labelled -1, noise, is a cluster of its own.
    form : {"meant", "printed"}
        As meant, every cluster induces a connected subtree; of a connected tree that is to say that there are K - 1
        cuts. As printed, exactly one edge of the tree joins each pair of clusters.

    Notes
    -----
    For K <= 2 clusters of a connected tree the two forms agree. For K >= 3 they exclude each other: K connected
    clusters, joined each to each, would close a cycle. So no tree whose cuts recover three clusters or more has the
    printed form; what has it, such as a path through clusters 0, 1, 2 and 0 again, falls into more than K pieces.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> path = Tree(Topology([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]))
    >>> has_partitioning_topology(path, [0, 0, 1, 1, 2, 2])
    True
    >>> has_partitioning_topology(path, [0, 0, 1, 1, 2, 2], form="printed")
    False
    """
    if form not in ("meant", "printed"):
        raise UsageError(f"form must be 'meant' or 'printed', not {form!r}")
    partition = as_partition(labels, tree.n_nodes)
    a, b = partition.cluster[tree.sources], partition.cluster[tree.targets]
    cut = a != b
    if form == "meant":
        # A cluster of s nodes spans at most s - 1 edges, and that many if and only if it is connected.
        return bool(np.count_nonzero(~cut) == tree.n_nodes - partition.n_clusters)
    k = partition.n_clusters
    if np.count_nonzero(cut) != k * (k - 1) // 2:
        return False
    pairs = np.minimum(a[cut], b[cut]) * k + np.maximum(a[cut], b[cut])
    return len(np.unique(pairs)) == len(pairs)
