"""Point sets and graphs whose clusters are known, drawn from a seed.

Point sets (`moons`, `circles`, `blobs`, `chains`) are scaled so that the largest distance is 1.
`planted_graph` makes graphs that meet the paper's homogeneity condition on topologies that do not
give the clusters away; `homogeneous_graph` those of the paper's experiments (section 4), whose
topologies do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.random import Generator

from ptclust._types import Floats, Ints
from ptclust.errors import UsageError
from ptclust.graph import Graph

Family = Literal["circles", "moons", "blobs", "chains", "multiscale", "blocks"]
PAPER: tuple[Family, ...] = ("circles", "moons")  # the families of the paper's experiments

WITHIN = (0.1, 0.3)  # weights within clusters: w_min and w_max of the paper's experiments
ACROSS = (0.9, 1.0)  # weights across: above w_max^2 / w_min, so clusters are strongly homogeneous
SPREAD = 6.0  # the range of scales in ``multiscale``: of the clusters' weights, and of their sizes
CROSS_EDGES = 2  # of the paper's graphs: the edge across that it shows differs from run to run

_Points = tuple[Floats, Ints]
_Layout = tuple[Floats | None, Ints]  # points, truth


def moons(n_points: int = 100, *, noise: float = 0.09, seed: int = 0) -> _Points:
    """Return two interleaved half moons and which of them each point belongs to.

    >>> points, truth = moons(seed=2)
    >>> points.shape, truth.sum().item()
    ((100, 2), 50)
    """
    from sklearn.datasets import make_moons

    return _scaled(*make_moons(n_points, noise=noise, random_state=seed))


def circles(
    n_points: int = 100, *, noise: float = 0.05, factor: float = 0.5, seed: int = 0
) -> _Points:
    """Return two concentric circles and which of them each point belongs to.

    >>> points, truth = circles(seed=0)
    >>> points.shape, truth.sum().item()
    ((100, 2), 50)
    """
    from sklearn.datasets import make_circles

    return _scaled(*make_circles(n_points, noise=noise, factor=factor, random_state=seed))


def blobs(
    n_points: int = 100, n_clusters: int = 3, *, spread: float = 1.0, seed: int = 0
) -> _Points:
    """Return round clusters on a grid and which of them each point belongs to.

    The widest cluster is ``spread`` times as wide as the narrowest; independently, the largest
    beyond its first four points is ``spread`` times as large as the smallest. Clusters are numbered
    from wide to narrow.

    >>> points, truth = blobs(100, 10, seed=0)
    >>> points.shape, np.bincount(truth).tolist()
    ((100, 2), [10, 10, 10, 10, 10, 10, 10, 10, 10, 10])
    """
    random = np.random.default_rng(seed)
    widths = np.geomspace(1.0, 1.0 / spread, n_clusters)
    truth = random.permutation(np.repeat(np.arange(n_clusters), _sizes(n_points, widths, random)))
    side = int(np.ceil(np.sqrt(n_clusters)))
    centres = np.stack(np.divmod(random.permutation(side**2)[:n_clusters], side), axis=1)
    scatter = 0.15 * random.standard_normal((n_points, 2))
    return _scaled(centres[truth] + widths[truth, None] * scatter, truth)


def chains(
    n_points: int = 100, n_clusters: int = 4, *, noise: float = 0.002, seed: int = 0
) -> _Points:
    """Return waves above each other, long and thin, and which of them each point belongs to.

    >>> points, truth = chains(100, 4, seed=0)
    >>> points.shape, np.bincount(truth).tolist()
    ((100, 2), [25, 25, 25, 25])
    """
    random = np.random.default_rng(seed)
    truth = random.permutation(np.arange(n_points) % n_clusters)
    along = random.random(n_points)
    height = truth / n_clusters + 0.06 * np.sin(2.0 * np.pi * (3.0 * along + truth / n_clusters))
    points = np.stack([2.0 * along, height], axis=1)
    return _scaled(points + noise * random.standard_normal(points.shape), truth)


def _sizes(n_points: int, shares: Floats, random: Generator) -> Ints:
    """Return sizes that add up: four for every cluster, the rest by randomly ordered shares."""
    shares = random.permutation(shares)
    ends = np.rint((n_points - 4 * len(shares)) * np.cumsum(shares) / shares.sum())
    sizes: Ints = 4 + np.diff(ends, prepend=0.0).astype(np.int64)
    return sizes


def _scaled(points: Floats, truth: Ints) -> _Points:
    """Divide by the largest distance, which two corners of the convex hull have."""
    from scipy.spatial import ConvexHull
    from scipy.spatial.distance import pdist

    corners = points[ConvexHull(points).vertices]
    return points / pdist(corners).max(), truth


def _blocks(n_nodes: int, n_clusters: int, *, seed: int) -> _Layout:
    return None, np.random.default_rng(seed).permutation(np.arange(n_nodes) % n_clusters)


@dataclass(frozen=True)
class _Recipe:
    """What distinguishes a family."""

    layout: Callable[..., _Layout]
    n_clusters: int  # by default; the shapes of the paper have no other
    neighbours: int = 8
    spread: float = 1.0


_RECIPES: dict[Family, _Recipe] = {
    "circles": _Recipe(lambda n, _, seed: circles(n, seed=seed), 2),
    "moons": _Recipe(lambda n, _, seed: moons(n, seed=seed), 2),
    "blobs": _Recipe(blobs, 3),
    "chains": _Recipe(chains, 4, neighbours=2),
    "multiscale": _Recipe(partial(blobs, spread=SPREAD), 4, spread=SPREAD),
    "blocks": _Recipe(_blocks, 3),
}


@dataclass(frozen=True)
class PlantedGraph:
    """A graph whose clusters are known."""

    graph: Graph
    truth: Ints  # the planted cluster of every node
    points: Floats | None  # where the nodes lie in the plane, if anywhere
    name: str


def planted_graph(
    family: Family,
    n_nodes: int = 100,
    *,
    n_clusters: int | None = None,
    neighbours: int | None = None,
    cross_edges: int | None = None,
    complete: bool = False,
    decoys: bool = False,
    seed: int = 0,
) -> PlantedGraph:
    """Return a connected graph whose clusters are known, with weights that separate them by far.

    Within a cluster every node is joined to its nearest neighbours there, and the edges of the
    cluster's Euclidean minimum spanning tree keep it in one piece. Edges across join random pairs.
    Weights within are uniform in 0.1 to 0.3, across uniform in (0.9, 1]. Edges come in random
    order, so that no rule of ties finds the clusters.

    Where clusters are many and small, nearest neighbours stand out among random pairs, and the
    topology alone gives the clusters away. With ``decoys`` the graph holds a second planting of the
    same family, drawn independently and joined likewise. Only the weights tell which of the two is
    real: the topology is as likely with their roles exchanged.

    - ``circles`` and ``moons`` are the two shapes of the paper, ``blobs`` are round, ``chains``
      long and thin.
    - ``multiscale``: blobs of different sizes. Every cluster has a scale from 1 down to 1/6, by
      which its weights are multiplied, and those to another cluster by the larger of the two
      scales. Every cluster is strongly homogeneous, but what separates two light clusters is
      lighter than what holds a heavy one together, so that no threshold finds all.
    - ``blocks``: no geometry. The edges within are a random tree and random pairs, hubs among them.

    Parameters
    ----------
    family, n_nodes, seed
        The same seed gives the same graph.
    n_clusters : int, optional
        Two circles, two moons; by default three blobs or blocks, and four of the other families.
    neighbours : int, optional
        Nearest neighbours, of the same cluster, of every node; in ``blocks`` about the mean degree
        within. By default 8, and 2 in ``chains``.
    cross_edges : int, optional
        Edges between clusters, 4 n by default. A handful makes the paper's trimmed graphs, whose
        topology alone all but gives the clusters away. With decoys, all that the second planting
        has by default; if a number is given, as many of these, and random pairs if they are too
        few, and then the two plantings are no longer alike.
    complete : bool, default False
        Join every pair of nodes instead.
    decoys : bool, default False
        Take the edges across from a second planting. Its pairs that lie in one cluster are edges
        within. Makes no difference to complete graphs.

    Examples
    --------
    >>> planted = planted_graph("moons", 100, seed=1)
    >>> planted.name, planted.graph.n_nodes, planted.truth.sum().item()
    ('moons', 100, 50)
    >>> planted_graph("moons", 100, complete=True).graph.n_edges
    4950
    >>> planted_graph("blobs", 1000, n_clusters=10).truth.max().item()
    9
    >>> planted_graph("blobs", 1000, n_clusters=30, decoys=True).graph.topology.n_components
    1
    """
    recipe, k = _checked(family, n_nodes, n_clusters, cross_edges)
    points, truth = recipe.layout(n_nodes, k, seed=seed)
    random = np.random.default_rng([seed, n_nodes])
    if complete:
        a, b = np.triu_indices(n_nodes, 1)
    else:
        near = recipe.neighbours if neighbours is None else neighbours
        within = _pairs_within(points, truth, near, random)
        if decoys:
            second = recipe.layout(n_nodes, k, seed=int(random.integers(2**32)))
            decoy = _pairs_within(*second, near, random)
            a, b = _with_decoys(within, decoy, truth, cross_edges, random).T
        else:
            wanted = 4 * n_nodes if cross_edges is None else cross_edges
            a, b = np.concatenate([within, cross_pairs(truth, wanted, random)]).T
    order = random.permutation(len(a))
    a, b = a[order], b[order]
    scales = np.geomspace(1.0, 1.0 / recipe.spread, k)
    weights = draw_weights(truth[a], truth[b], scales, random)
    return PlantedGraph(Graph(a, b, weights, n_nodes=n_nodes), truth, points, family)


def _checked(
    family: Family, n_nodes: int, n_clusters: int | None, cross_edges: int | None
) -> tuple[_Recipe, int]:
    """Return the recipe and the number of clusters, if such a graph can be made."""
    if family not in _RECIPES:
        raise UsageError(f"a family is one of {', '.join(_RECIPES)}, not {family!r}")
    recipe = _RECIPES[family]
    k = recipe.n_clusters if n_clusters is None else n_clusters
    if k < 2 or (family in PAPER and k != recipe.n_clusters):
        number = "two clusters" if family in PAPER else "at least two clusters"
        raise UsageError(f"{family} are {number}, not {k}")
    if n_nodes < 4 * k:
        raise UsageError(f"graphs of {k} clusters have at least {4 * k} nodes, not {n_nodes}")
    if cross_edges is not None and cross_edges < k - 1:
        least = "one edge" if k == 2 else f"{k - 1} edges"
        raise UsageError(f"at least {least} must join {k} clusters, not {cross_edges}")
    return recipe, k


def draw_weights(first: Ints, second: Ints, scales: Floats, random: Generator) -> Floats:
    """Return the weights of edges from these clusters to those."""
    share = random.random(len(first))
    within = WITHIN[0] + (WITHIN[1] - WITHIN[0]) * share
    across = ACROSS[1] - (ACROSS[1] - ACROSS[0]) * share
    return np.where(first == second, within, across) * np.maximum(scales[first], scales[second])


def _pairs_within(points: Floats | None, truth: Ints, neighbours: int, random: Generator) -> Ints:
    """Return the pairs that hold every cluster together, cluster by cluster."""
    members = [np.flatnonzero(truth == cluster) for cluster in range(truth.max() + 1)]
    if points is None:
        return np.concatenate([_random_pairs(those, neighbours, random) for those in members])
    return np.concatenate([_near_pairs(points, those, neighbours) for those in members])


def _near_pairs(points: Floats, members: Ints, neighbours: int) -> Ints:
    """Return the pairs of nearest neighbours among the members, and of their spanning tree."""
    from scipy.spatial import KDTree

    from ptclust.trees import euclidean_spanning_tree

    here = points[members]
    n_near = min(neighbours, len(members) - 1)
    _, near = KDTree(here).query(here, k=n_near + 1)
    sources = np.repeat(np.arange(len(members)), n_near)
    nearest = np.stack([sources, near[:, 1:].ravel()], axis=1)
    tree = euclidean_spanning_tree(here)
    spanning = np.stack([tree.sources, tree.targets], axis=1)
    return members[_distinct(np.concatenate([nearest, spanning]))]


def _random_pairs(members: Ints, degree: int, random: Generator) -> Ints:
    """Return the pairs of a random tree of the members, and random pairs up to a mean degree.

    By a Pareto law some members are far more likely to be in a pair than others: the hubs.
    """
    size = len(members)
    later = np.arange(1, size)
    tree = np.stack([random.integers(0, later), later], axis=1)
    attraction = 1.0 + random.pareto(2.0, size)
    wanted = max(0, size * degree // 2 - len(tree))
    more = random.choice(size, size=(wanted, 2), p=attraction / attraction.sum())
    return random.permutation(members)[_distinct(np.concatenate([tree, more]))]


def _distinct(pairs: Ints) -> Ints:
    """Return every pair of two nodes once, the smaller first."""
    ordered = np.sort(pairs.astype(np.int64), axis=1)
    return np.unique(ordered[ordered[:, 0] != ordered[:, 1]], axis=0)


def cross_pairs(truth: Ints, wanted: int, random: Generator) -> Ints:
    """Return ``wanted`` distinct random pairs of nodes of different clusters, or all there are.

    Nodes are sorted by cluster, and all pairs across numbered: those of the first node with the
    nodes of later clusters, those of the second, and so on.
    """
    sizes = np.bincount(truth)
    ends = np.cumsum(sizes)
    by_cluster = np.argsort(truth, kind="stable")
    own_end = np.repeat(ends, sizes)
    last = np.cumsum(len(truth) - own_end)
    n_pairs = int(last[-1])
    pairs = random.choice(n_pairs, size=min(wanted, n_pairs), replace=False)
    if len(sizes) > 2:  # two clusters are joined by any pair; more get a tree of pairs first
        i, j = random.integers(0, ends[:-1]), random.integers(ends[:-1], ends[1:])
        joining = last[i] - (len(truth) - j)
        pairs = np.concatenate([joining, pairs[~np.isin(pairs, joining)]])[: len(pairs)]
    i = np.searchsorted(last, pairs, side="right")
    j = len(truth) - (last[i] - pairs)
    return np.stack([by_cluster[i], by_cluster[j]], axis=1)


def _with_decoys(
    within: Ints, decoy: Ints, truth: Ints, wanted: int | None, random: Generator
) -> Ints:
    """Return the pairs of both plantings, ``wanted`` across, filled up with random pairs."""
    pairs = np.unique(np.sort(np.concatenate([within, decoy]), axis=1), axis=0)
    apart = truth[pairs[:, 0]] != truth[pairs[:, 1]]
    across = random.permutation(pairs[apart])
    number = max(len(across), int(truth.max())) if wanted is None else wanted
    more = np.sort(cross_pairs(truth, number, random), axis=1)
    across = np.concatenate([across, more])
    _, first = np.unique(across, axis=0, return_index=True)
    across = across[np.sort(first)]
    joining = _joining(truth[across])  # first, so that the graph stays connected
    across = np.concatenate([across[joining], np.delete(across, joining, axis=0)])
    return np.concatenate([pairs[~apart], across[:number]])


def _joining(clusters: Ints) -> Ints:
    """Return which of these pairs of clusters join all of them, early ones rather than late."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    distinct, first = np.unique(np.sort(clusters, axis=1), axis=0, return_index=True)
    n_clusters = int(clusters.max()) + 1
    ends = tuple(distinct.T.astype(np.int32))  # scipy before 1.15 wants these
    rank = coo_array((first + 1.0, ends), shape=(n_clusters, n_clusters))
    joining: Ints = minimum_spanning_tree(rank.tocsr()).data.astype(np.int64) - 1
    return joining


def homogeneous_graph(
    family: Family, n_nodes: int = 100, *, cross_edges: int = CROSS_EDGES, seed: int = 0
) -> PlantedGraph:
    """Return two circles or two moons as the paper describes its graphs.

    The largest distance is 1. Of the complete graph, those pairs of a cluster stay whose distance
    lies between w_min = 0.1 and w_max = 0.3, and the distance is their weight. Closer pairs are
    trimmed as well as farther ones, which is why, in the words of the paper, close nodes may not be
    connected. Across, weights must be above w_max^2 / w_min = 0.9; few distances between the two
    moons are, and none between the two circles, so distances cannot have been all there was to the
    paper's weights. Here ``cross_edges`` random pairs stay, of weights uniform in (0.9, 1]. Edges
    come in random order.

    How many edges between the clusters the trimming left, the paper does not say, and all depends
    on it: ``cross_edges``.

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
    points, truth = (circles if family == "circles" else moons)(n_nodes, seed=seed)
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
