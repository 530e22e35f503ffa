"""Clusters of a released tree by excess of mass, as HDBSCAN takes them from its hierarchy.

The noise enters only through the shift that makes weights positive. It is here to compare with.

Edges come light ones first, as in single linkage. What edges so far have joined is a component; one
of at least ``least`` nodes is a cluster. It begins when components that are none become one.
Components that are none get lost in it as they join. It ends when it meets another cluster, and
both become children of a new one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._components import find, number_by_first_appearance, union
from ptclust._kernel import kernel
from ptclust.clustering import check_sizes
from ptclust.clustering.normalise import shifted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptclust.clustering import WeightedTree
    from ptclust.privacy.noise import Noise

__all__ = ["default_cluster_size", "excess_of_mass"]

# What HDBSCAN takes for the least size of a cluster, whatever the number of nodes.
_LEAST = 5


def default_cluster_size(n_nodes: int) -> int:
    """Return half the root of the number of nodes, at least 5.

    The more nodes, the larger the groups chance makes.

    >>> default_cluster_size(100), default_cluster_size(1000)
    (5, 16)
    """
    return max(_LEAST, round(math.sqrt(n_nodes) / 2))


def excess_of_mass(
    tree: WeightedTree, noise: Noise, *, min_cluster_size: int | None = None
) -> NDArray[np.int64]:
    """Cluster the nodes of a released tree by the excess of mass of its single-linkage hierarchy.

    Parameters
    ----------
    tree : Tree
        A tree, or forest, with released weights of any sign.
    noise : Noise
        What was added to the weights.
    min_cluster_size : int, optional
        Fewer nodes are no cluster; by default ``default_cluster_size``.

    Returns
    -------
    array of int
        The cluster of every node, numbered by first appearance; -1 for nodes in none. A tree that
        never falls into two clusters is one.

    References
    ----------
    R. Campello, D. Moulavi, J. Sander. Density-based clustering based on hierarchical density
    estimates. 2013.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.privacy.noise import Noise
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology(range(6), range(1, 7)), [0.1, 0.12, 0.9, 0.11, 0.1, 0.95])
    >>> noise = Noise("laplace", scale=1e-3, granularity=-40, n_values=6)
    >>> excess_of_mass(tree, noise, min_cluster_size=2)
    array([ 0,  0,  0,  1,  1,  1, -1])
    """
    least = default_cluster_size(tree.n_nodes) if min_cluster_size is None else min_cluster_size
    check_sizes(None, least)
    weights = shifted(tree.weights, noise)
    order = np.argsort(weights, kind="stable")
    hierarchy = condense(
        tree.sources[order], tree.targets[order], 1.0 / weights[order], tree.n_nodes, max(least, 2)
    )
    labels = choose(*hierarchy)
    number_by_first_appearance(labels, np.full(len(labels), -1))
    return labels


@kernel
def condense(
    sources: NDArray[Any],
    targets: NDArray[Any],
    density: NDArray[np.float64],
    n_nodes: int,
    least: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the first cluster of every node, the parent of every cluster, and its excess of mass.

    ``density``, one over the weight, falls from edge to edge. The excess of mass of a cluster is
    the sum over its nodes of the density at which they leave it, seen from above, less the density
    at which it appears. Parents come after their children; -1 stands for none.
    """
    component = np.arange(n_nodes)
    size, last = np.ones(n_nodes, np.int64), np.arange(n_nodes)
    following = np.full(n_nodes, -1, np.int64)
    cluster = np.full(n_nodes, -1, np.int64)
    home = np.full(n_nodes, -1, np.int64)
    parent, excess = np.full(n_nodes, -1, np.int64), np.zeros(n_nodes)
    count = 0
    for edge in range(len(sources)):
        a, b = find(component, sources[edge]), find(component, targets[edge])
        if a > b:
            a, b = b, a
        first, second = cluster[a], cluster[b]
        both = size[a] + size[b]
        joint = max(first, second)
        joining = both
        if first >= 0 and second >= 0:
            for child, members in ((first, size[a]), (second, size[b])):
                parent[child] = count
                excess[child] -= members * density[edge]
            joint, count = count, count + 1
        elif first >= 0:
            joining = size[b]
        elif second >= 0:
            joining = size[a]
        elif both >= least:
            joint, count = count, count + 1
        if joint >= 0:
            excess[joint] += joining * density[edge]
            for root in (a, b):
                node = root if cluster[root] < 0 else -1
                while node >= 0:
                    home[node] = joint
                    node = following[node]
        union(component, a, b)
        size[a], cluster[a] = both, joint
        following[last[a]], last[a] = b, last[b]
    return home, parent[:count], excess[:count]


@kernel
def choose(
    home: NDArray[np.int64], parent: NDArray[np.int64], excess: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return for every node the chosen cluster it is in, or -1.

    A cluster is chosen if it has no less excess of mass than the best choice among those within it.
    The topmost one is not, unless it is all there is: it says nothing.
    """
    n_clusters = len(parent)
    within, is_leaf = np.zeros(n_clusters), np.ones(n_clusters, np.bool_)
    chosen = np.full(n_clusters, -1, np.int64)
    for c in range(n_clusters):
        is_top = parent[c] < 0
        if is_leaf[c] or (excess[c] >= within[c] and not is_top):
            chosen[c], within[c] = c, excess[c]
        if not is_top:
            within[parent[c]] += within[c]
            is_leaf[parent[c]] = False
    for c in range(n_clusters - 1, -1, -1):
        if parent[c] >= 0 and chosen[parent[c]] >= 0:
            chosen[c] = chosen[parent[c]]
    labels = np.full(len(home), -1, np.int64)
    for node in range(len(home)):
        if home[node] >= 0:
            labels[node] = chosen[home[node]]
    return labels
