"""Point sets and graphs whose clusters are known, drawn from a seed.

Point sets (`moons`, `circles`, `blobs`) are scaled so that the largest distance is 1.
`planted_graph` makes graphs that meet the paper's homogeneity condition on topologies that do not
give the clusters away; `homogeneous_graph` those of the paper's experiments (section 4), whose
topologies do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

_Points = tuple[Floats, Ints]
_Layout = tuple[Floats | None, Ints]  # points, truth


def moons(n_points: int = 100, *, noise: float = 0.09, seed: int = 0) -> _Points:
    """Return two interleaved half moons and which of them each point belongs to.

    >>> points, truth = moons(seed=2)
    >>> points.shape, truth.sum().item()
    ((100, 2), 50)
    """
    from sklearn.datasets import make_moons

    return scaled(*make_moons(n_points, noise=noise, random_state=seed))


def circles(
    n_points: int = 100, *, noise: float = 0.05, factor: float = 0.5, seed: int = 0
) -> _Points:
    """Return two concentric circles and which of them each point belongs to.

    >>> points, truth = circles(seed=0)
    >>> points.shape, truth.sum().item()
    ((100, 2), 50)
    """
    from sklearn.datasets import make_circles

    return scaled(*make_circles(n_points, noise=noise, factor=factor, random_state=seed))


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


def near_pairs(
    points: Floats | None, truth: Ints, neighbours: int, _: Generator | None = None
) -> Ints:
    """Return the pairs of nearest neighbours within clusters, and of their spanning trees."""
    from scipy.spatial import KDTree

    from ptclust.trees import euclidean_spanning_tree

    found = []
    for cluster in range(truth.max() + 1):
        members = np.flatnonzero(truth == cluster)
        here = np.asarray(points)[members]
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


@dataclass(frozen=True)
class Recipe:
    """What distinguishes a family of planted graphs."""

    layout: Callable[..., _Layout]  # of numbers of nodes and clusters, and a seed
    n_clusters: int  # by default
    neighbours: int = 8
    spread: float = 1.0  # the largest scale of the clusters' weights over the smallest
    within: Callable[..., Ints] = near_pairs  # the pairs that hold every cluster together


RECIPES: Mapping[str, Recipe] = {
    "circles": Recipe(lambda n, _, seed: circles(n, seed=seed), 2),
    "moons": Recipe(lambda n, _, seed: moons(n, seed=seed), 2),
    "blobs": Recipe(blobs, 3),
}


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
    >>> planted_graph("moons", 100, complete=True).graph.n_edges
    4950
    >>> planted_graph("blobs", 1000, n_clusters=10).truth.max().item()
    9
    """
    recipe, k = recipe_of(RECIPES, family, n_nodes, n_clusters, cross_edges)

    def join(within: Ints, truth: Ints, random: Generator) -> Ints:
        wanted = 4 * n_nodes if cross_edges is None else cross_edges
        return np.concatenate([within, cross_pairs(truth, wanted, random)])

    return plant(family, recipe, n_nodes, k, neighbours, None if complete else join, seed)


def recipe_of(
    recipes: Mapping[str, Recipe],
    family: str,
    n_nodes: int,
    n_clusters: int | None,
    cross_edges: int | None,
) -> tuple[Recipe, int]:
    """Return the recipe and the number of clusters, if such a graph can be made."""
    if family not in recipes:
        raise UsageError(f"a family is one of {', '.join(recipes)}, not {family!r}")
    recipe = recipes[family]
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


def plant(
    family: str,
    recipe: Recipe,
    n_nodes: int,
    n_clusters: int,
    neighbours: int | None,
    join: Callable[[Ints, Ints, Generator], Ints] | None,
    seed: int,
) -> PlantedGraph:
    """Return a graph by a recipe; ``join`` makes all pairs of those within, None a complete graph.

    Every cluster has a scale, by which its weights are multiplied, and those to another cluster by
    the larger of the two scales.
    """
    points, truth = recipe.layout(n_nodes, n_clusters, seed=seed)
    random = np.random.default_rng([seed, n_nodes])
    if join is None:
        a, b = np.triu_indices(n_nodes, 1)
    else:
        near = recipe.neighbours if neighbours is None else neighbours
        a, b = join(recipe.within(points, truth, near, random), truth, random).T
    order = random.permutation(len(a))
    a, b = a[order], b[order]
    scales = np.geomspace(1.0, 1.0 / recipe.spread, n_clusters)
    weights = draw_weights(truth[a], truth[b], scales, random)
    return PlantedGraph(Graph(a, b, weights, n_nodes=n_nodes), truth, points, family)


def draw_weights(first: Ints, second: Ints, scales: Floats, random: Generator) -> Floats:
    """Return the weights of edges from these clusters to those."""
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
