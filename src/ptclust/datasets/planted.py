"""Point sets and graphs whose clusters are known, drawn from a seed.

Point sets (`moons`, `circles`, `blobs`) are scaled so that the largest distance is 1.
`planted_graph` makes graphs that meet the paper's homogeneity condition on topologies that do not
give the clusters away; `homogeneous_graph` those of the paper's experiments (section 4), whose
topologies do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from ptclust._types import Floats, Ints
from ptclust.errors import UsageError
from ptclust.graph import Graph

Family = Literal["circles", "moons", "blobs"]
PAPER: tuple[Family, ...] = ("circles", "moons")  # the families of the paper's experiments

WITHIN = (0.1, 0.3)  # weights within clusters: w_min and w_max of the paper's experiments
ACROSS = (0.9, 1.0)  # weights across: above w_max^2 / w_min, so clusters are strongly homogeneous
CROSS_EDGES = 2  # of the paper's graphs: the edge across that it shows differs from run to run

_Points = tuple[Floats, Ints]  # and the cluster of each


def moons(n_points: int = 100, *, noise: float = 0.09, seed: int = 0) -> _Points:
    """Return two interleaved half moons and which of them each point belongs to."""
    from sklearn.datasets import make_moons

    return scaled(*make_moons(n_points, noise=noise, random_state=seed))


def circles(
    n_points: int = 100, *, noise: float = 0.05, factor: float = 0.5, seed: int = 0
) -> _Points:
    """Return two concentric circles and which of them each point belongs to."""
    from sklearn.datasets import make_circles

    return scaled(*make_circles(n_points, noise=noise, factor=factor, random_state=seed))


def blobs(
    n_points: int = 100, n_clusters: int = 3, *, spread: float = 1.0, seed: int = 0
) -> _Points:
    """Return round clusters on a grid and which of them each point belongs to.

    The widest cluster is ``spread`` times as wide as the narrowest; independently, the largest
    beyond its first four points is ``spread`` times as large as the smallest. Clusters are numbered
    from wide to narrow.
    """
    random = np.random.default_rng(seed)
    widths = np.geomspace(1.0, 1.0 / spread, n_clusters)
    shares = random.permutation(widths)  # of the points beyond four in every cluster
    ends = np.rint((n_points - 4 * n_clusters) * np.cumsum(shares) / shares.sum())
    sizes = 4 + np.diff(ends, prepend=0.0).astype(np.int64)
    truth = random.permutation(np.repeat(np.arange(n_clusters), sizes))
    side = int(np.ceil(np.sqrt(n_clusters)))
    centres = np.stack(np.divmod(random.permutation(side**2)[:n_clusters], side), axis=1)
    scatter = 0.15 * random.standard_normal((n_points, 2))
    return scaled(centres[truth] + widths[truth, None] * scatter, truth)


def scaled(points: Floats, truth: Ints) -> _Points:
    """Divide by the largest distance, which two corners of the convex hull have."""
    from scipy.spatial import ConvexHull
    from scipy.spatial.distance import pdist

    corners = points[ConvexHull(points).vertices]
    return points / pdist(corners).max(), truth


@dataclass(frozen=True)
class PlantedGraph:
    """A graph whose clusters are known."""

    graph: Graph
    truth: Ints  # the planted cluster of every node
    points: Floats | None  # where the nodes lie in the plane, if anywhere
    name: str


#: The families of `planted_graph` and how many clusters they have by default.
FAMILIES: Mapping[str, int] = {"circles": 2, "moons": 2, "blobs": 3}


def planted_graph(
    family: Family,
    n_nodes: int = 100,
    *,
    n_clusters: int | None = None,
    neighbours: int | None = None,
    cross_edges: int | None = None,
    complete: bool = False,
    seed: int = 0,
) -> PlantedGraph:
    """Return a connected graph whose clusters are known, with weights that separate them by far.

    ``circles`` and ``moons`` are the two shapes of the paper, ``blobs`` are round.

    Within a cluster every node is joined to its nearest neighbours there, and the edges of the
    cluster's Euclidean minimum spanning tree keep it in one piece. Edges across join random pairs.
    Weights within are uniform in 0.1 to 0.3, across uniform in (0.9, 1]. Edges come in random
    order, so that no rule of ties finds the clusters.

    Parameters
    ----------
    family, n_nodes, seed
        The same seed gives the same graph.
    n_clusters : int, optional
        Two circles, two moons, and by default three blobs. Where clusters are many and small,
        nearest neighbours stand out among random pairs, and the topology alone gives them away.
    neighbours : int, optional
        Nearest neighbours, of the same cluster, of every node; by default 8.
    cross_edges : int, optional
        Edges between clusters, 4 n by default. A handful makes the paper's trimmed graphs, whose
        topology alone all but gives the clusters away.
    complete : bool, default False
        Join every pair of nodes instead.

    Examples
    --------
    >>> planted = planted_graph("moons", 100, seed=1)
    >>> planted.name, planted.graph.n_nodes, planted.truth.sum().item()
    ('moons', 100, 50)
    """
    k = check_clusters(FAMILIES, family, n_nodes, n_clusters, cross_edges)
    points, truth = layout(family, n_nodes, k, seed)
    random = np.random.default_rng([seed, n_nodes])
    if complete:
        pairs = np.stack(np.triu_indices(n_nodes, 1), axis=1)
    else:
        within = near_pairs(points, truth, 8 if neighbours is None else neighbours)
        wanted = 4 * n_nodes if cross_edges is None else cross_edges
        pairs = np.concatenate([within, cross_pairs(truth, wanted, random)])
    a, b = random.permutation(pairs).T
    weights = draw_weights(truth[a], truth[b], np.ones(k), random)
    return PlantedGraph(Graph(a, b, weights, n_nodes=n_nodes), truth, points, family)


def check_clusters(
    families: Mapping[str, int],
    family: str,
    n_nodes: int,
    n_clusters: int | None,
    cross_edges: int | None,
) -> int:
    """Return the number of clusters of a family, if such a graph can be made."""
    if family not in families:
        raise UsageError(f"a family is one of {', '.join(families)}, not {family!r}")
    k = families[family] if n_clusters is None else n_clusters
    if k < 2 or (family in PAPER and k != 2):
        number = "two clusters" if family in PAPER else "at least two clusters"
        raise UsageError(f"{family} are {number}, not {k}")
    if n_nodes < 4 * k:
        raise UsageError(f"graphs of {k} clusters have at least {4 * k} nodes, not {n_nodes}")
    if cross_edges is not None and cross_edges < k - 1:
        least = "one edge" if k == 2 else f"{k - 1} edges"
        raise UsageError(f"at least {least} must join {k} clusters, not {cross_edges}")
    return k


def layout(family: str, n_nodes: int, n_clusters: int, seed: int) -> _Points:
    """Return the points of a family and the cluster of each."""
    if family == "blobs":
        return blobs(n_nodes, n_clusters, seed=seed)
    return (circles if family == "circles" else moons)(n_nodes, seed=seed)


def near_pairs(points: Floats, truth: Ints, neighbours: int) -> Ints:
    """Return the pairs of nearest neighbours within clusters, and of their spanning trees."""
    from scipy.spatial import KDTree

    from ptclust.trees import euclidean_spanning_tree

    found = []
    for cluster in range(truth.max() + 1):
        members = np.flatnonzero(truth == cluster)
        here = points[members]
        n_near = min(neighbours, len(members) - 1)
        _, near = KDTree(here).query(here, k=n_near + 1)
        sources = np.repeat(np.arange(len(members)), n_near)
        tree = euclidean_spanning_tree(here)
        nearest = np.stack([sources, near[:, 1:].ravel()], axis=1)
        spanning = np.stack([tree.sources, tree.targets], axis=1)
        found.append(members[distinct(np.concatenate([nearest, spanning]))])
    return np.concatenate(found)


def distinct(pairs: Ints) -> Ints:
    """Return every pair of two nodes once, the smaller first."""
    ordered = np.sort(pairs.astype(np.int64), axis=1)
    return np.unique(ordered[ordered[:, 0] != ordered[:, 1]], axis=0)


def draw_weights(first: Ints, second: Ints, scales: Floats, random: Generator) -> Floats:
    """Return the weights of edges between these clusters, times the larger of their scales."""
    share = random.random(len(first))
    within = WITHIN[0] + (WITHIN[1] - WITHIN[0]) * share
    across = ACROSS[1] - (ACROSS[1] - ACROSS[0]) * share
    return np.where(first == second, within, across) * np.maximum(scales[first], scales[second])


def cross_pairs(truth: Ints, wanted: int, random: Generator) -> Ints:
    """Return ``wanted`` distinct random pairs of nodes of different clusters, or all there are.

    Nodes are sorted by cluster, and all pairs across numbered: those of the first node with the
    nodes of later clusters, those of the second, and so on.
    """
    sizes = np.bincount(truth)
    ends = np.cumsum(sizes)
    by_cluster = np.argsort(truth, kind="stable")
    last = np.cumsum(len(truth) - np.repeat(ends, sizes))
    n_pairs = int(last[-1])
    pairs = random.choice(n_pairs, size=min(wanted, n_pairs), replace=False)
    if len(sizes) > 2:  # two clusters are joined by any pair; more get a tree of pairs first
        i, j = random.integers(0, ends[:-1]), random.integers(ends[:-1], ends[1:])
        joining = last[i] - (len(truth) - j)
        pairs = np.concatenate([joining, pairs[~np.isin(pairs, joining)]])[: len(pairs)]
    i = np.searchsorted(last, pairs, side="right")
    j = len(truth) - (last[i] - pairs)
    return np.stack([by_cluster[i], by_cluster[j]], axis=1)


def homogeneous_graph(
    family: Family, n_nodes: int = 100, *, cross_edges: int = CROSS_EDGES, seed: int = 0
) -> PlantedGraph:
    """Return two circles or two moons as the paper describes its graphs.

    The largest distance is 1. Pairs of one cluster stay if their distance, which is their weight,
    lies between w_min = 0.1 and w_max = 0.3. Across, weights must be above w_max^2 / w_min = 0.9;
    hardly any distance is, so distances cannot have been all there was to the paper's weights. Here
    ``cross_edges`` random pairs stay, of weights uniform in (0.9, 1]: how many the paper's trimming
    left it does not say, and all depends on it. Edges come in random order.

    >>> planted = homogeneous_graph("moons", cross_edges=5)
    >>> across = planted.truth[planted.graph.sources] != planted.truth[planted.graph.targets]
    >>> across.sum().item()
    5
    """
    from scipy.spatial.distance import pdist, squareform

    if family not in PAPER:
        raise UsageError(f"the paper's graphs are {' and '.join(PAPER)}, not {family!r}")
    if cross_edges < 1:
        raise UsageError(f"at least one edge must join the clusters, not {cross_edges}")
    points, truth = layout(family, n_nodes, 2, seed)
    random = np.random.default_rng([seed, n_nodes])
    distance = squareform(pdist(points))
    kept = (distance >= WITHIN[0]) & (distance <= WITHIN[1]) & (truth[:, None] == truth)
    pairs = np.concatenate([np.argwhere(np.triu(kept)), cross_pairs(truth, cross_edges, random)])
    a, b = random.permutation(pairs).T
    drawn = draw_weights(truth[a], truth[b], np.ones(2), random)
    weights = np.where(truth[a] == truth[b], distance[a, b], drawn)
    graph = Graph(a, b, weights, n_nodes=n_nodes)
    if graph.topology.n_components > 1:
        pieces = f"{n_nodes} nodes fall into {graph.topology.n_components} pieces"
        raise UsageError(f"trimmed, {family} of {pieces}; use more nodes, or another seed")
    return PlantedGraph(graph, truth, points, family)
