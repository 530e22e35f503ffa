"""Clusters of a released tree by excess of mass, as HDBSCAN takes them from its hierarchy.

The noise enters only through the shift that makes weights positive. It is here to compare with.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ptclust._components import number_by_first_appearance
from ptclust.clustering._excess_of_mass_kernel import choose, condense
from ptclust.clustering.dbmstclu import check_sizes
from ptclust.clustering.levels import shifted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptclust.clustering.dbcvi import WeightedTree
    from ptclust.privacy import Noise

__all__ = ["default_cluster_size", "excess_of_mass"]

# What HDBSCAN takes for the least size of a cluster, whatever the number of nodes.
_LEAST = 5


def default_cluster_size(n_nodes: int) -> int:
    """Return half the root of the number of nodes, at least 5: the more nodes, the larger the groups chance makes.

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
        The cluster of every node, numbered by first appearance; -1 for nodes in none. A tree that never falls into
        two clusters is one.

    References
    ----------
    R. Campello, D. Moulavi, J. Sander. Density-based clustering based on hierarchical density estimates. 2013.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.privacy import Noise
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
