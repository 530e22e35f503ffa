"""The paper's Definitions of Cut and of a partitioning topology (section 3.2): a tree and clusters.

An unclustered node, label -1, counts as a cluster of its own. What all functions of the theory
require of nodes, labels and parameters is here, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ptclust._options import check_choice
from ptclust._traces import guard_functions
from ptclust._types import Array, Bools, Floats, Ints
from ptclust.clustering import WeightedTree
from ptclust.errors import GraphError, UsageError
from ptclust.graph import Graph

Form = Literal["meant", "printed"]

_LISTED = 10


@dataclass(frozen=True, eq=False)
class Partition:
    """Clusters numbered 0 to K - 1: by ascending label, then the unclustered nodes, one by one."""

    cluster: Ints  # the cluster of every node
    labels: Ints  # the label of every cluster, as it was given; -1 for an unclustered node
    sizes: Ints  # number of nodes of every cluster

    @property
    def n_clusters(self) -> int:
        """K, the unclustered nodes included."""
        return len(self.labels)

    @property
    def n_labelled(self) -> int:
        """Number of clusters, without unclustered nodes; they come first."""
        return int(np.count_nonzero(self.labels >= 0))


def as_partition(labels: ArrayLike, n_nodes: int) -> Partition:
    """Return the partition of ``labels``: a whole number per node, -1 for none.

    >>> partition = as_partition([7, 7, -1, 3, -1], 5)
    >>> partition.cluster
    array([1, 1, 2, 0, 3])
    >>> partition.labels
    array([ 3,  7, -1, -1])
    """
    given = np.asarray(labels)
    count = f"{given.size} labels were given for {n_nodes} nodes"
    require(given.shape == (n_nodes,), f"{count}; give one per node")
    number = "np.unique(labels, return_inverse=True)[1] numbers them"
    whole = np.issubdtype(given.dtype, np.integer) or not given.size
    require(whole, f"labels must be whole numbers, not {given.dtype}; {number}")
    least = given.min(initial=0)
    wrong = f"labels must be from 0, or -1 for an unclustered node, but {least} is among them"
    require(least >= -1, wrong)
    alone = given == -1
    found, numbers = np.unique(given[~alone], return_inverse=True)
    cluster = len(found) + np.cumsum(alone) - 1
    cluster[~alone] = numbers
    every = np.concatenate([found.astype(np.int64), np.full(np.count_nonzero(alone), -1)])
    return Partition(cluster, every, np.bincount(cluster))


def is_cut(tree: WeightedTree, labels: ArrayLike) -> Bools:
    """Return, for every edge of the tree in its order, whether it joins two clusters."""
    cluster = as_partition(labels, tree.n_nodes).cluster
    joins_two: Bools = cluster[tree.sources] != cluster[tree.targets]
    return joins_two


def cuts(tree: WeightedTree, labels: ArrayLike) -> Array:
    """Return Cut_G(T): the ids, in the graph, of the edges of the tree that join two clusters."""
    return tree.edge_ids[is_cut(tree, labels)]


def has_partitioning_topology(tree: WeightedTree, labels: ArrayLike, form: Form = "meant") -> bool:
    """Whether cutting Cut_G(T) leaves exactly the clusters; every node labelled -1 is one.

    As *meant*, every cluster induces a connected subtree; of a connected tree that is to say that
    there are K - 1 cuts. As *printed*, exactly one edge of the tree joins each pair of clusters.

    For K <= 2 clusters of a connected tree the two forms agree, for K >= 3 they exclude each other
    (docs/proofs/clusters.md).

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> path = Tree(Topology([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]))
    >>> has_partitioning_topology(path, [0, 0, 1, 1, 2, 2])
    True
    >>> has_partitioning_topology(path, [0, 0, 1, 1, 2, 2], form="printed")
    False
    """
    check_choice("form", form, Form)
    partition = as_partition(labels, tree.n_nodes)
    k, ends = partition.n_clusters, partition.cluster[np.array([tree.sources, tree.targets])]
    joined = ends[:, ends[0] != ends[1]]
    if form == "meant":
        # A cluster of s nodes spans at most s - 1 edges, and that many only if it is connected.
        return bool(ends.shape[1] - joined.shape[1] == tree.n_nodes - k)
    n_pairs = np.unique(np.sort(joined, axis=0), axis=1).shape[1]
    return bool(n_pairs == joined.shape[1] == k * (k - 1) // 2)


class Extremes(NamedTuple):
    """The weights of the heaviest and lightest edges of every cluster."""

    heaviest: Floats  # within; 0 if it has no edge
    lightest: Floats  # within; infinite if it has no edge
    crossing: Floats  # the lightest edge that leaves it; infinite if none does


def extremes(graph: Graph, partition: Partition, edges: Any = slice(None)) -> Extremes:
    """Return the extremes of every cluster over the edges of these numbers."""
    n, weights = partition.n_clusters, graph.weights[edges]
    a, b = (partition.cluster[ends[edges]] for ends in (graph.sources, graph.targets))
    within = a == b
    found = Extremes(np.zeros(n), np.full(n, np.inf), np.full(n, np.inf))
    np.maximum.at(found.heaviest, a[within], weights[within])
    np.minimum.at(found.lightest, a[within], weights[within])
    for end in (a, b):
        np.minimum.at(found.crossing, end[~within], weights[~within])
    return found


@dataclass(frozen=True, eq=False)
class VerdictByCluster:
    """Of which clusters of a partition a condition holds; every array has one entry per cluster."""

    labels: Ints  # as they were given, ascending; -1 for an unclustered node
    cluster_holds: Bools

    @property
    def holds(self) -> bool:
        """Whether it holds of all of them."""
        return bool(self.cluster_holds.all())

    def _described(self, condition: str, reason: Callable[[int], str]) -> str:
        """Return a line, and one more for each of the first clusters of which it does not hold."""
        n, bad = len(self.labels), np.flatnonzero(~self.cluster_holds).tolist()
        if not bad:
            return f"all {n} cluster(s) are {condition}"
        lines = [f"{len(bad)} of {n} cluster(s) are not {condition}:"]
        lines += [f"  cluster {self.labels[k]}{reason(k)}" for k in bad[:_LISTED]]
        if len(bad) > _LISTED:
            lines.append(f"  and {len(bad) - _LISTED} more")
        return "\n".join(lines)


def require(fulfilled: object, message: str) -> None:
    """Raise UsageError with a message, which must not quote weights, if a condition fails."""
    if not fulfilled:
        raise UsageError(message)


def check_connected(graph: Graph, what: str) -> None:
    """Raise GraphError, naming ``what``, unless the graph is connected."""
    if (n := graph.topology.n_components) != 1:
        raise GraphError(f"{what} needs a connected graph, not {n:,} components; take them singly")


def node_numbers(nodes: ArrayLike, n_nodes: int, what: str = "nodes") -> Ints:
    """Return a set of nodes as ascending distinct numbers; raise UsageError if they are none."""
    given = np.asarray(nodes)
    kind = f"one-dimensional node numbers, not {given.ndim}-dimensional {given.dtype}"
    use = "np.flatnonzero makes numbers of a mask, graph.names holds the names"
    whole = given.ndim == 1 and np.issubdtype(given.dtype, np.integer)
    require(whole or not given.size, f"{what} must be {kind}; {use}")
    numbers = np.unique(given).astype(np.int64)
    for wrong in numbers[(numbers < 0) | (numbers >= n_nodes)][:1]:
        raise UsageError(
            f"{what} must be numbers from 0 to {n_nodes - 1}, but {wrong} is among them"
        )
    return numbers


def edges_among(nodes: ArrayLike, tree: WeightedTree) -> Bools:
    """Return which edges of the tree have both ends among ``nodes``."""
    chosen = np.zeros(tree.n_nodes, dtype=bool)
    chosen[node_numbers(nodes, tree.n_nodes)] = True
    among: Bools = chosen[tree.sources] & chosen[tree.targets]
    return among


guard_functions(__name__)
