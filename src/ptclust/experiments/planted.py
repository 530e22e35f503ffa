"""Graphs with planted clusters: the paper's homogeneity condition, on topologies that do not give the clusters away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ptclust.errors import UsageError
from ptclust.experiments.points import circles, moons
from ptclust.graph import Graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Family", "PlantedGraph", "planted_graph"]

Family = Literal["circles", "moons"]
_POINTS = {"circles": circles, "moons": moons}

WITHIN = (0.1, 0.3)
"""Weights within clusters: w_min and w_max of the paper's experiments."""
ACROSS = (0.9, 1.0)
"""Weights across clusters lie above w_max^2 / w_min, so the clusters are strongly homogeneous."""


@dataclass(frozen=True)
class PlantedGraph:
    """A graph whose clusters are known."""

    graph: Graph
    truth: NDArray[np.int64]
    """The planted cluster of every node."""
    points: NDArray[np.float64] | None
    """Where the nodes lie in the plane, if anywhere."""
    name: str


def planted_graph(
    family: Family,
    n_nodes: int = 100,
    *,
    neighbours: int = 8,
    cross_edges: int | None = None,
    complete: bool = False,
    seed: int = 0,
) -> PlantedGraph:
    """Return a connected graph over two circles or two moons, with weights that separate them by far.

    Within a cluster every node is joined to its nearest neighbours there, and the edges of the cluster's Euclidean
    minimum spanning tree keep it in one piece. Edges across join random pairs. Weights within are uniform in 0.1 to
    0.3, across uniform in (0.9, 1]. Edges come in random order, so that no rule of ties finds the clusters.

    Parameters
    ----------
    family : {"circles", "moons"}
    n_nodes : int, default 100
    neighbours : int, default 8
        Nearest neighbours, of the same cluster, of every node.
    cross_edges : int, optional
        Edges between clusters, 4 n by default. A handful makes the paper's trimmed graphs, whose topology alone all
        but gives the clusters away.
    complete : bool, default False
        Join every pair of nodes instead.
    seed : int, default 0
        The same seed gives the same graph.

    Examples
    --------
    >>> planted = planted_graph("moons", 100, seed=1)
    >>> planted.name, planted.graph.n_nodes, planted.truth.sum().item()
    ('moons', 100, 50)
    >>> planted_graph("moons", 100, complete=True).graph.n_edges
    4950
    """
    if family not in get_args(Family):
        raise UsageError(f"a family is one of {', '.join(get_args(Family))}, not {family!r}")
    if n_nodes < 8:
        raise UsageError(f"planted graphs have at least 8 nodes, not {n_nodes}")
    if cross_edges is not None and cross_edges < 1:
        raise UsageError(f"at least one edge must join the clusters, not {cross_edges}")
    points, truth = _POINTS[family](n_nodes, seed=seed)
    random = np.random.default_rng([seed, n_nodes])
    if complete:
        a, b = np.triu_indices(n_nodes, 1)
    else:
        within = [_near_pairs(points, np.flatnonzero(truth == c), neighbours) for c in (0, 1)]
        wanted = 4 * n_nodes if cross_edges is None else cross_edges
        pairs = np.concatenate([*within, _cross_pairs(truth, wanted, random)])
        a, b = pairs.T
    order = random.permutation(len(a))
    a, b = a[order], b[order]
    share = random.random(len(a))
    low, high = WITHIN
    weights = np.where(
        truth[a] == truth[b],
        low + (high - low) * share,
        ACROSS[1] - (ACROSS[1] - ACROSS[0]) * share,
    )
    return PlantedGraph(Graph(a, b, weights, n_nodes=n_nodes), truth, points, family)


def _near_pairs(
    points: NDArray[np.float64], members: NDArray[np.int64], neighbours: int
) -> NDArray[np.int64]:
    """Return the pairs of nearest neighbours among the members, and those of their minimum spanning tree."""
    from scipy.spatial import KDTree

    from ptclust.trees import euclidean_spanning_tree

    here = points[members]
    n_near = min(neighbours, len(members) - 1)
    _, near = KDTree(here).query(here, k=n_near + 1)
    sources = np.repeat(np.arange(len(members)), n_near)
    nearest = np.stack([sources, near[:, 1:].ravel()], axis=1)
    tree = euclidean_spanning_tree(here)
    spanning = np.stack([tree.sources, tree.targets], axis=1)
    pairs = np.sort(np.concatenate([nearest, spanning]).astype(np.int64), axis=1)
    distinct: NDArray[np.int64] = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return members[distinct]


def _cross_pairs(
    truth: NDArray[np.int64], wanted: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Return ``wanted`` distinct random pairs of nodes of different clusters, or all if there are fewer."""
    first, second = np.flatnonzero(truth == 0), np.flatnonzero(truth == 1)
    n_pairs = len(first) * len(second)
    i, j = np.divmod(random.choice(n_pairs, size=min(wanted, n_pairs), replace=False), len(second))
    return np.stack([first[i], second[j]], axis=1)
