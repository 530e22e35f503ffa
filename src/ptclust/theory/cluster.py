"""The paper's minimum path distance, Definition of a Cluster and theorem on subtrees (section 3.1).

The distance of two nodes is the least total weight of a path. Weights are positive there and must
be here: with a zero the distance is not a metric, and scipy would take it for no edge at all.

C, a subset of D, is a cluster if |C| > 2 and for every split of C into non-empty C1 and C2 the
nodes of D outside C1 that are nearest to C1 all lie in C2: d(C1, C2) < d(C1, D - C), unless D - C
is empty. There are 2^|C| - 2 such splits, but C is a cluster if and only if its *link*, the
heaviest edge of a minimum spanning tree of its distances, is below its *separation* d(C, D - C)
(docs/proofs/clusters.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ptclust._components import label_components
from ptclust._traces import guard_functions
from ptclust._types import Array, Floats, Ints
from ptclust.clustering import WeightedTree
from ptclust.clustering.dbcvi import positive_weights
from ptclust.graph import Graph
from ptclust.theory.partition import (
    Partition,
    VerdictByCluster,
    as_partition,
    edges_among,
    extremes,
    node_numbers,
    require,
)
from ptclust.trees.mst import minimum_spanning_edges

SMALLEST = 3  # the least number of nodes of a cluster, by the paper's Definition


def minimum_path_distance(graph: Graph, u: int, v: int) -> float:
    """Return d(u, v), the least total weight of a path from u to v; infinite if there is none."""
    for what, node in (("u", u), ("v", v)):
        dimension = np.ndim(node)
        require(not dimension, f"{what} must be one node number, not {dimension}-dimensional")
        node_numbers([node], graph.n_nodes, what)
    return float(distances_from(graph, [u])[v])


def distances_from(graph: Graph, nodes: ArrayLike) -> Floats:
    """Return the distance of every node to the nearest of ``nodes``, infinite without a path."""
    return _voronoi_cells(graph, nodes)[0]


def _voronoi_cells(graph: Graph, nodes: ArrayLike) -> tuple[Floats, Array]:
    """Return how far every node is from the nearest of ``nodes``, and which that is, if any."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    weights = positive_weights(graph, "the minimum path distance")
    origins = node_numbers(nodes, graph.n_nodes)
    require(len(origins), "a distance from no node at all is not defined; give at least one node")
    matrix = csr_array((weights, (graph.sources, graph.targets)), shape=(graph.n_nodes,) * 2)
    distances, _, nearest = dijkstra(
        matrix, directed=False, indices=origins, min_only=True, return_predecessors=True
    )
    return distances, nearest


@dataclass(frozen=True, eq=False)
class ClusterWitness:
    """A split of C that violates the Definition: an intruder is as near to C1 as C2 is."""

    part: Ints  # C1, ascending
    intruder: int  # a node of D outside C
    to_rest: float  # d(C1, C2)
    to_intruder: float  # d(C1, intruder), no larger


@dataclass(frozen=True, eq=False)
class ClusterVerdict:
    """Whether a set of nodes is a cluster, and why not."""

    holds: bool
    size: int
    # Both are NaN if C is too small. With D = V the link is measured along edges within C only.
    link: float  # infinite if C is in pieces
    separation: float  # d(C, D - C): infinite if nothing of D is outside C, or within reach
    witness: ClusterWitness | None = None  # None if C is a cluster, or too small for one

    def describe(self) -> str:
        """Return the verdict in a sentence, with its numbers."""
        if self.size < SMALLEST:
            least = f"a cluster has at least {SMALLEST}"
            return f"not a cluster: it has {self.size} node(s), and {least}"
        if (split := self.witness) is None:
            numbers = f"held together at {self.link:.6g}, separated by {self.separation:.6g}"
            return f"a cluster: {self.size} nodes, {numbers}"
        return (
            f"not a cluster: {len(split.part)} of its {self.size} nodes are {split.to_rest:.6g} "
            f"from the others, and {split.to_intruder:.6g} from node {split.intruder} outside"
        )


def cluster_verdict(
    graph: Graph, nodes: ArrayLike, within: ArrayLike | None = None
) -> ClusterVerdict:
    """Decide whether ``nodes`` are a cluster by the paper's Definition; if not, show why.

    ``nodes`` are C, by number, and ``within`` is D, by default all nodes. Paths may leave D.

    Where D - C is empty the Definition asks nothing but the size. Where D - C cannot be reached,
    nor C2 from C1, all distances are infinite, all nodes are nearest, and C is not a cluster.

    Dijkstra from all of C at once divides the nodes into cells, and the edges between two cells
    contain a minimum spanning tree of the distances (Mehlhorn 1988): O(m log n). Distances are sums
    in floating point, exact for whole numbers, else good to rounding: a tie may be decided wrongly.
    With D = V the verdict is exact, for edges within C and the lightest that leaves it decide.

    >>> graph = Graph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0.25, 0.5, 0.75, 0.25, 1.0])
    >>> cluster_verdict(graph, [0, 1, 2]).holds
    True
    >>> print(cluster_verdict(graph, [3, 4, 5]).describe())
    not a cluster: 2 of its 3 nodes are 1 from the others, and 0.75 from node 2 outside
    """
    positive_weights(graph, "the Definition of a cluster")
    c, d = node_numbers(nodes, graph.n_nodes), np.arange(graph.n_nodes)
    if within is not None:
        d = node_numbers(within, graph.n_nodes, "within")
    for stray in np.setdiff1d(c, d)[:1]:
        require(False, f"nodes must be a subset of within, but node {stray} is not in it")
    if len(c) < SMALLEST:
        return ClusterVerdict(False, len(c), np.nan, np.nan)
    rest = np.setdiff1d(d, c, assume_unique=True)
    distance, nearest = _voronoi_cells(graph, c)
    cell = np.where(nearest >= 0, np.searchsorted(c, nearest), -1)
    a, b = cell[graph.sources], cell[graph.targets]
    outside = distance[graph.sources] + distance[graph.targets]
    bridges = a != b if len(d) < graph.n_nodes else outside == 0
    a, b, lengths = a[bridges], b[bridges], (outside + graph.weights)[bridges]
    tree = minimum_spanning_edges(a, b, lengths, len(c))
    link = float(lengths[tree].max()) if len(tree) == len(c) - 1 else np.inf
    separation = float(distance[rest].min(initial=np.inf))
    if not len(rest) or link < separation:
        return ClusterVerdict(True, len(c), link, separation)
    intruder = int(rest[distance[rest].argmin()])
    near = tree[lengths[tree] < separation]
    component = np.arange(len(c))
    label_components(a[near], b[near], component)
    part = component == component[max(cell[intruder], 0)]
    to_rest = float(distances_from(graph, c[part])[c[~part]].min())
    witness = ClusterWitness(c[part], intruder, to_rest, separation)
    return ClusterVerdict(False, len(c), link, separation, witness)


@dataclass(frozen=True, eq=False)
class ClustersVerdict(VerdictByCluster):
    """Which clusters of a partition are clusters by the Definition, in V; of those with a label."""

    sizes: Ints
    links: Floats  # heaviest edge that each cluster needs to hang together; infinite if in pieces
    separations: Floats  # the lightest edge that leaves each cluster; infinite if none does

    @property
    def offenders(self) -> Ints:
        """The labels of those that are not; ``cluster_verdict`` finds a violating split of one."""
        return self.labels[~self.cluster_holds]

    def describe(self) -> str:
        """Return the verdict in a few lines, with the numbers of the first offenders."""

        def reason(k: int) -> str:
            link, apart = self.links[k], self.separations[k]
            why = f"held together at {link:.6g}, but separated by {apart:.6g}"
            if self.sizes[k] < SMALLEST:
                why = f"a cluster has at least {SMALLEST} nodes"
            return f", {self.sizes[k]} node(s): {why}"

        return self._described("clusters by the Definition", reason)


def clusters_verdict(graph: Graph, labels: ArrayLike) -> ClustersVerdict:
    """Decide for all clusters of a partition at once whether they are so by the Definition, D = V.

    Nodes labelled -1 belong to V but to no cluster. O(m log n), however many clusters there are.

    >>> graph = Graph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0.25, 0.5, 0.75, 0.25, 1.0])
    >>> print(clusters_verdict(graph, [0, 0, 0, 1, 1, 1]).describe())
    1 of 2 cluster(s) are not clusters by the Definition:
      cluster 1, 3 node(s): held together at 1, but separated by 0.75
    """
    positive_weights(graph, "the Definition of a cluster")
    partition = as_partition(labels, graph.n_nodes)
    links, _ = links_of_clusters(graph, partition)
    separations = extremes(graph, partition).crossing
    holds = (links < separations) | (partition.n_clusters == 1)
    holds &= partition.sizes >= SMALLEST
    k = partition.n_labelled
    sizes = partition.sizes[:k]
    return ClustersVerdict(partition.labels[:k], holds[:k], sizes, links[:k], separations[:k])


def links_of_clusters(graph: Graph, partition: Partition) -> tuple[Floats, int]:
    """Return the link of every cluster, and in how many pieces all clusters are by their own edges.

    The link is infinite if these edges do not connect the cluster, and 0 of a single node.
    """
    cluster = partition.cluster[graph.sources]
    inside = np.flatnonzero(cluster == partition.cluster[graph.targets])
    sources, targets, weights = graph.sources[inside], graph.targets[inside], graph.weights[inside]
    edges = inside[minimum_spanning_edges(sources, targets, weights, graph.n_nodes)]
    links = np.where(partition.sizes > 1, -np.inf, 0.0)
    np.maximum.at(links, cluster[edges], graph.weights[edges])
    links[np.bincount(cluster[edges], minlength=len(links)) < partition.sizes - 1] = np.inf
    return links, graph.n_nodes - len(edges)


def connected_in(tree: WeightedTree, nodes: ArrayLike) -> bool:
    """Whether the tree's path between any two of ``nodes`` stays among them.

    The paper's theorem promises it of every cluster in every minimum spanning tree. It is true of
    clusters within D = V and of paths in the tree, not of any "path in G".

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> path = Tree(Topology([0, 1, 2], [1, 2, 3]))
    >>> connected_in(path, [1, 2, 3]), connected_in(path, [0, 1, 3])
    (True, False)
    """
    n_nodes = len(node_numbers(nodes, tree.n_nodes))
    return bool(np.count_nonzero(edges_among(nodes, tree)) >= n_nodes - 1)


guard_functions(__name__)
