"""The paper's Definition of a Cluster and its theorem that clusters are subtrees (section 3.1).

C, a subset of D, is a cluster if |C| > 2 and for every split of C into non-empty C1 and C2 the nodes of D outside C1
that are nearest to C1 all lie in C2: d(C1, C2) < d(C1, D - C), unless D - C is empty.

There are 2^|C| - 2 such splits, but one number decides. Let t = d(C, D - C), and join two nodes of C if they are nearer
to each other than t. If that connects C, every split has a pair nearer than t. If not, let u in C attain t and let C1
be the part of u: C2 is at least t away, and D - C is at distance t. So C is a cluster if and only if its *link*, the
heaviest edge of a minimum spanning tree of its distances, is below its *separation* t. docs/proofs/clusters.md has the
details.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptclust._components import label_components
from ptclust.errors import UsageError
from ptclust.theory._arguments import node_numbers, positive_weights
from ptclust.theory._bridges import Bridges, bridges_between_cells, edges_within
from ptclust.theory.distance import distances_from
from ptclust.theory.partition import as_partition
from ptclust.trees.mst import minimum_spanning_edges

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ptclust.clustering import WeightedTree
    from ptclust.graph import Graph

__all__ = [
    "ClusterVerdict",
    "ClusterWitness",
    "ClustersVerdict",
    "cluster_verdict",
    "clusters_verdict",
    "connected_in",
]

SMALLEST = 3
"""The least number of nodes of a cluster, by the paper's Definition."""
_LISTED = 10


@dataclass(frozen=True, eq=False)
class ClusterWitness:
    """A split of C that violates the Definition: an intruder is as near to the part as the rest of C is."""

    part: NDArray[np.int64]
    """C1, ascending."""
    intruder: int
    """A node of D outside C."""
    to_rest: float
    """d(C1, C2)."""
    to_intruder: float
    """d(C1, intruder), no larger."""


@dataclass(frozen=True, eq=False)
class ClusterVerdict:
    """Whether a set of nodes is a cluster, and why not."""

    holds: bool
    size: int
    """Number of nodes of C."""
    link: float
    """What holds C together: every split of it is bridged at this or less. Infinite if C is in pieces,
    not a number, as the separation, if it is too small for a cluster.

    Measured along paths of the graph, but where D is all of V, along edges within C: the verdict is the same.
    """
    separation: float
    """d(C, D - C): infinite if nothing of D is outside C, or within reach."""
    witness: ClusterWitness | None
    """A violating split; None if C is a cluster, or too small for one."""

    def describe(self) -> str:
        """Return the verdict in a sentence, with its numbers."""
        if self.size < SMALLEST:
            return (
                f"not a cluster: it has {self.size} node(s), and a cluster has at least {SMALLEST}"
            )
        if self.witness is None:
            return (
                f"a cluster: {self.size} nodes, held together at {self.link:.6g}, "
                f"separated by {self.separation:.6g}"
            )
        return (
            f"not a cluster: {len(self.witness.part)} of its {self.size} nodes are {self.witness.to_rest:.6g} from the "
            f"others, and {self.witness.to_intruder:.6g} from node {self.witness.intruder} outside"
        )


@dataclass(frozen=True, eq=False)
class ClustersVerdict:
    """Which clusters of a partition are clusters by the Definition, within all nodes. Noise is not asked to be one."""

    labels: NDArray[np.int64]
    """The label of every cluster, as it was given."""
    sizes: NDArray[np.int64]
    links: NDArray[np.float64]
    """The heaviest edge that each cluster needs to hang together; infinite if its own edges do not connect it."""
    separations: NDArray[np.float64]
    """The lightest edge that leaves each cluster; infinite if none does."""
    cluster_holds: NDArray[np.bool_]

    @property
    def holds(self) -> bool:
        """Whether all of them are."""
        return bool(self.cluster_holds.all())

    @property
    def offenders(self) -> NDArray[np.int64]:
        """The labels of those that are not; ``cluster_verdict`` finds a violating split of one."""
        return self.labels[~self.cluster_holds]

    def describe(self) -> str:
        """Return the verdict in a few lines, with the numbers of the first offenders."""
        bad = np.flatnonzero(~self.cluster_holds)
        if not len(bad):
            return f"all {len(self.labels)} cluster(s) are clusters by the Definition"
        lines = [f"{len(bad)} of {len(self.labels)} cluster(s) are no clusters by the Definition:"]
        for k in bad[:_LISTED]:
            why = (
                f"held together at {self.links[k]:.6g}, but separated by {self.separations[k]:.6g}"
            )
            if self.sizes[k] < SMALLEST:
                why = f"a cluster has at least {SMALLEST} nodes"
            lines.append(f"  cluster {self.labels[k]}, {self.sizes[k]} node(s): {why}")
        if len(bad) > _LISTED:
            lines.append(f"  and {len(bad) - _LISTED} more")
        return "\n".join(lines)


def cluster_verdict(
    graph: Graph, nodes: ArrayLike, within: ArrayLike | None = None
) -> ClusterVerdict:
    """Decide whether ``nodes`` are a cluster by the paper's Definition; if not, show a split that violates it.

    Parameters
    ----------
    graph : Graph
        A graph with positive weights.
    nodes : array_like of int
        C, by node number.
    within : array_like of int, optional
        D, of which ``nodes`` are a part; by default all nodes. Paths may leave it.

    Returns
    -------
    ClusterVerdict

    Notes
    -----
    With D = V no distance is ever summed up: the separation is the lightest edge that leaves C, and the link is the
    heaviest edge of a minimum spanning tree of G restricted to C, so the verdict is exact. Otherwise the distances are
    sums in floating point, exact for whole numbers and else good to rounding: a tie may be decided either way.
    Those of all pairs of C are never needed: Dijkstra from all of C at once divides the nodes into cells, and the
    edges between two cells contain a minimum spanning tree of the distances (Mehlhorn 1988). O(m log n).

    Where D - C is empty the Definition asks nothing but the size. Where D - C cannot be reached, nor C2 from C1, all
    distances are infinite, the nearest nodes are all nodes, and C is no cluster.

    *Privacy.* None: for the curator's own eyes.

    References
    ----------
    K. Mehlhorn. A faster approximation algorithm for the Steiner problem in graphs. Information Processing Letters,
    1988.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> graph = Graph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0.25, 0.5, 0.75, 0.25, 1.0])
    >>> cluster_verdict(graph, [0, 1, 2]).holds
    True
    >>> print(cluster_verdict(graph, [3, 4, 5]).describe())
    not a cluster: 2 of its 3 nodes are 1 from the others, and 0.75 from node 2 outside
    """
    positive_weights(graph, "the Definition of a cluster")
    c = node_numbers(nodes, graph.n_nodes)
    d = (
        np.arange(graph.n_nodes)
        if within is None
        else node_numbers(within, graph.n_nodes, "within")
    )
    if not np.isin(c, d).all():
        stray = c[~np.isin(c, d)][0]
        raise UsageError(f"nodes must be a subset of within, but node {stray} is not in it; add it")
    rest = np.setdiff1d(d, c, assume_unique=True)
    if len(c) < SMALLEST:
        return ClusterVerdict(False, len(c), np.nan, np.nan, None)
    whole = len(d) == graph.n_nodes
    bridges = edges_within(graph, c) if whole else bridges_between_cells(graph, c, rest)
    return _verdict(graph, c, rest, bridges, summed=not whole)


def clusters_verdict(graph: Graph, labels: ArrayLike) -> ClustersVerdict:
    """Decide for every cluster of a partition at once whether it is one by the Definition, with D = V.

    One minimum spanning forest of the edges within clusters serves all of them: O(m log n), however many there are.

    Parameters
    ----------
    graph : Graph
        A graph with positive weights.
    labels : array_like of int
        The cluster of every node, numbered anyhow; -1 for noise, which belongs to V but to no cluster.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> graph = Graph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0.25, 0.5, 0.75, 0.25, 1.0])
    >>> print(clusters_verdict(graph, [0, 0, 0, 1, 1, 1]).describe())
    1 of 2 cluster(s) are no clusters by the Definition:
      cluster 1, 3 node(s): held together at 1, but separated by 0.75
    """
    weights = positive_weights(graph, "the Definition of a cluster")
    partition = as_partition(labels, graph.n_nodes)
    a, b = partition.cluster[graph.sources], partition.cluster[graph.targets]
    inside = a == b
    separations = np.full(partition.n_clusters, np.inf)
    for end in (a, b):
        np.minimum.at(separations, end[~inside], weights[~inside])
    edges = np.flatnonzero(inside)
    edges = edges[
        minimum_spanning_edges(
            graph.sources[edges], graph.targets[edges], weights[edges], graph.n_nodes
        )
    ]
    links = np.zeros(partition.n_clusters)
    np.maximum.at(links, a[edges], weights[edges])
    links[np.bincount(a[edges], minlength=len(links)) < partition.sizes - 1] = np.inf
    k = partition.n_labelled
    holds = (links < separations) | (partition.n_clusters == 1)
    holds &= partition.sizes >= SMALLEST
    return ClustersVerdict(
        partition.labels[:k], partition.sizes[:k], links[:k], separations[:k], holds[:k]
    )


def connected_in(tree: WeightedTree, nodes: ArrayLike) -> bool:
    """Whether the tree's path between any two of ``nodes`` stays among them.

    The paper's theorem promises it of every cluster in every minimum spanning tree. It is true of clusters within D = V
    and of paths in the tree; the statement says "a path in G", and its proof takes D = V silently.

    >>> from ptclust.graph import Topology
    >>> from ptclust.trees import Tree
    >>> path = Tree(Topology([0, 1, 2], [1, 2, 3]))
    >>> connected_in(path, [1, 2, 3]), connected_in(path, [0, 1, 3])
    (True, False)
    """
    chosen = np.zeros(tree.n_nodes, dtype=bool)
    chosen[node_numbers(nodes, tree.n_nodes)] = True
    n_inside = np.count_nonzero(chosen[tree.sources] & chosen[tree.targets])
    return bool(n_inside >= np.count_nonzero(chosen) - 1)


def _verdict(
    graph: Graph, c: NDArray[np.int64], rest: NDArray[np.int64], bridges: Bridges, *, summed: bool
) -> ClusterVerdict:
    tree = minimum_spanning_edges(bridges.sources, bridges.targets, bridges.lengths, len(c))
    lengths = bridges.lengths[tree]
    link = float(lengths.max()) if len(tree) == len(c) - 1 else np.inf
    separation = float(bridges.separation)
    if not len(rest) or link < separation:
        return ClusterVerdict(True, len(c), link, separation, None)
    a, b = bridges.sources[tree], bridges.targets[tree]
    component = np.arange(len(c))
    label_components(a[lengths < separation], b[lengths < separation], component)
    part = component == component[bridges.nearest]
    if summed:
        to_rest = lengths[part[a] != part[b]].min(initial=np.inf)
    else:  # edges within C decide, but the way from C1 to C2 may be shorter outside of it
        to_rest = distances_from(graph, c[part])[c[~part]].min()
    witness = ClusterWitness(c[part], bridges.intruder, float(to_rest), separation)
    return ClusterVerdict(False, len(c), link, separation, witness)
