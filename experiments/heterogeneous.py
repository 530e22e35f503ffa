"""Graphs whose nodes differ in size by orders of magnitude, with counts as weights.

What real graphs have and planted ones of two levels lack: heavy tails, and large weights between
large nodes whatever their cluster. All are similarities, and counts of records: who protects one
record has l1 = 1. The same seed gives the same graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numba
import numpy as np

from ptclust.graph import Graph
from ptclust.privacy import Sensitivity

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = [
    "KnownGraph",
    "NullTopology",
    "co_visits",
    "degree_corrected_blocks",
    "null_graph",
    "roads",
    "visit_records",
    "weighted_lfr",
]

NullTopology = Literal["complete", "random", "preferential", "geometric"]
_ATTEMPTS = 2000  # to find a partner for a pair that may not be an edge


@dataclass(frozen=True)
class KnownGraph:
    """A graph, what is known of its clusters, and what one record can do to its weights."""

    graph: Graph
    truth: Ints
    """The cluster of every node."""
    sensitivity: Sensitivity


def weighted_lfr(
    n_nodes: int = 1000,
    *,
    mu_t: float,
    mu_w: float,
    mean_degree: float = 20.0,
    max_degree: int = 50,
    degree_exponent: float = 2.0,
    sizes: tuple[int, int] = (20, 100),
    size_exponent: float = 1.0,
    strength_exponent: float = 1.5,
    mean_weight: float = 10.0,
    seed: int = 0,
) -> KnownGraph:
    """Return a weighted benchmark graph of Lancichinetti and Fortunato (2009).

    Degrees and sizes of clusters follow power laws. Every node has a share ``mu_t`` of its edges,
    and ``mu_w`` of its strength, with other clusters; its strength is its degree to the power of
    ``strength_exponent``. Edges are drawn by the configuration model, within every cluster and
    across; pairs that come twice, or in the wrong place, are drawn again.

    Here weights become counts: expected ones are scaled to ``mean_weight`` and every count is a
    Poisson variable, so that a weight is a number of records. Where a node has no edge across, its
    strength is all within.

    Examples
    --------
    >>> known = weighted_lfr(300, mu_t=0.4, mu_w=0.2, seed=1)
    >>> known.graph.kind, known.graph.n_nodes, known.sensitivity.l1
    ('similarity', 300, 1.0)

    References
    ----------
    A. Lancichinetti and S. Fortunato, Benchmarks for testing community detection algorithms on
    directed and weighted graphs with overlapping communities, Physical Review E 80, 016118, 2009.
    """
    random = np.random.default_rng([seed, n_nodes])
    degrees = _degrees(n_nodes, mean_degree, max_degree, degree_exponent, random)
    inner = np.floor((1.0 - mu_t) * degrees + random.random(n_nodes)).astype(np.int64)
    truth, inner = _memberships(
        inner, _community_sizes(n_nodes, sizes, size_exponent, random), random
    )
    within = _configuration(inner, truth, random, across=False)
    across = _configuration(degrees - inner, truth, random, across=True)
    strengths = degrees.astype(np.float64) ** strength_exponent
    expected = np.concatenate(
        [
            _scaled_to_strengths(within, (1.0 - mu_w) * strengths),
            _scaled_to_strengths(across, mu_w * strengths),
        ]
    )
    pairs = np.concatenate([within, across])
    return _counted(pairs, expected, mean_weight, n_nodes, truth, random)


def _power_law(low: float, high: float, exponent: float, share: Floats) -> Floats:
    """Return the quantiles of a continuous power law between two bounds."""
    if exponent == 1.0:
        return np.asarray(low * (high / low) ** share)
    power = 1.0 - exponent
    return np.asarray((low**power + share * (high**power - low**power)) ** (1.0 / power))


def _degrees(n_nodes: int, mean: float, largest: int, exponent: float, random: Generator) -> Ints:
    """Return degrees by a power law whose lower end is chosen for the mean."""
    grid = (np.arange(2000) + 0.5) / 2000
    low, high = 1.0, mean
    for _ in range(40):
        middle = (low + high) / 2
        too_low = _power_law(middle, largest + 1, exponent, grid).mean() < mean + 0.5
        low, high = (middle, high) if too_low else (low, middle)
    drawn = _power_law(low, largest + 1, exponent, random.random(n_nodes))
    return np.minimum(drawn.astype(np.int64), min(largest, n_nodes - 1))


def _community_sizes(
    n_nodes: int, bounds: tuple[int, int], exponent: float, random: Generator
) -> Ints:
    """Return sizes by a power law that add up; what is too small to be one more is spread."""
    least, most = bounds
    drawn = _power_law(least, most + 1, exponent, random.random(n_nodes // least + 1))
    sizes = drawn.astype(np.int64)
    n_whole = int(np.searchsorted(np.cumsum(sizes), n_nodes, side="right"))
    rest = n_nodes - int(sizes[:n_whole].sum())
    kept = sizes[: max(n_whole, 1)]
    if rest >= least:
        return np.append(kept, rest)
    np.add.at(kept, random.integers(len(kept), size=rest), 1)
    return kept


def _memberships(inner: Ints, sizes: Ints, random: Generator) -> tuple[Ints, Ints]:
    """Put every node at random into a cluster that is larger than its inner degree.

    Nodes of large degree choose first. Who finds no place in a cluster large enough takes one in
    the largest that has, and a smaller inner degree; inner degrees of a cluster add up to an even
    number.
    """
    sizes = -np.sort(-sizes)
    places = np.repeat(np.arange(len(sizes)), sizes)  # by size of cluster, falling
    truth = np.empty(len(inner), dtype=np.int64)
    free: list[int] = []
    opened = 0
    order = random.permutation(len(inner))
    order = order[np.argsort(-inner[order], kind="stable")]
    for node, share in zip(order.tolist(), random.random(len(order)).tolist(), strict=True):
        while opened < len(places) and (not free or sizes[places[opened]] > inner[node]):
            free.append(int(places[opened]))
            opened += 1
        chosen = int(share * len(free))
        free[chosen], free[-1] = free[-1], free[chosen]
        truth[node] = free.pop()
    inner = np.minimum(inner, sizes[truth] - 1)
    odd = np.flatnonzero(np.bincount(truth, weights=inner).astype(np.int64) % 2)
    for cluster in odd.tolist():
        members = np.flatnonzero(truth == cluster)
        inner[members[np.argmax(inner[members])]] -= 1
    return truth, inner


def _configuration(degrees: Ints, truth: Ints, random: Generator, *, across: bool) -> Ints:
    """Return pairs of nodes with these degrees, within clusters or across.

    Half-edges are joined at random. Then pairs that may not be edges exchange ends with others. The
    few that find no partner are left out.
    """
    stubs = random.permutation(np.repeat(np.arange(len(degrees)), degrees))
    group = np.zeros_like(truth) if across else truth
    stubs = stubs[np.argsort(group[stubs], kind="stable")]
    pairs = stubs[: len(stubs) // 2 * 2].reshape(-1, 2)
    groups = group[pairs[:, 0]]
    ends = np.cumsum(np.bincount(groups))
    starts = np.concatenate([[0], ends[:-1]])
    wrong = _exchange_ends(pairs, truth, starts[groups], ends[groups], across, random)
    return np.asarray(pairs[~wrong])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _exchange_ends(
    pairs: Ints, truth: Ints, starts: Ints, ends: Ints, across: bool, random: Generator
) -> NDArray[np.bool_]:
    """Make pairs edges of a simple graph by exchanging ends; return which could not become one.

    A loop, a pair that came before, and, of edges across, one within a cluster, exchange ends with
    random pairs of the same group (from ``starts`` to ``ends``) until both new pairs may be edges.
    """
    n, m = len(truth), len(pairs)
    edges = {np.int64(-1)}
    wrong = np.zeros(m, dtype=np.bool_)
    for i in range(m):
        u, v = pairs[i]
        key = min(u, v) * n + max(u, v)
        wrong[i] = u == v or (across and truth[u] == truth[v]) or key in edges
        if not wrong[i]:
            edges.add(key)
    for i in range(m):
        for _ in range(_ATTEMPTS):
            if not wrong[i]:
                break
            j = random.integers(starts[i], ends[i])
            u, v = pairs[i]
            x, y = pairs[j] if random.random() < 0.5 else pairs[j][::-1]
            if u == x or v == y or (across and (truth[u] == truth[x] or truth[v] == truth[y])):
                continue
            first, second = min(u, x) * n + max(u, x), min(v, y) * n + max(v, y)
            if i == j or first == second or first in edges or second in edges:
                continue
            if not wrong[j]:
                edges.remove(min(x, y) * n + max(x, y))
            edges.add(first)
            edges.add(second)
            pairs[i, 0], pairs[i, 1], pairs[j, 0], pairs[j, 1] = u, x, v, y
            wrong[i] = wrong[j] = False
    return wrong


def _scaled_to_strengths(pairs: Ints, strengths: Floats) -> Floats:
    """Return weights x_u x_v of pairs that add up to given strengths, as far as they can."""
    wanted = np.sqrt(strengths)
    factors = np.sqrt(strengths.mean()) * np.ones_like(strengths)
    a, b = pairs.T
    for _ in range(60):
        weights = factors[a] * factors[b]
        found = np.bincount(a, weights, len(wanted)) + np.bincount(b, weights, len(wanted))
        factors *= wanted / np.sqrt(np.where(found > 0, found, strengths))
    return np.asarray(factors[a] * factors[b])


def _counted(
    pairs: Ints,
    expected: Floats,
    mean_weight: float,
    n_nodes: int,
    truth: Ints,
    random: Generator,
) -> KnownGraph:
    """Return the graph of Poisson counts whose expectations are scaled to a mean.

    Nodes are numbered at random: their order is public, and must not give the clusters away.
    """
    counts = random.poisson(expected * (mean_weight / expected.mean()))
    number = random.permutation(n_nodes)
    a, b = number[pairs.T]
    renumbered = np.empty_like(truth)
    renumbered[number] = truth
    graph = Graph(a, b, counts.astype(np.float64), n_nodes=n_nodes, kind="similarity")
    return KnownGraph(graph, renumbered, Sensitivity(l1=1.0))


def degree_corrected_blocks(
    n_nodes: int = 300,
    n_clusters: int = 8,
    *,
    ratio: float = 4.0,
    tail: float = 1.2,
    mean_weight: float = 5.0,
    seed: int = 0,
) -> KnownGraph:
    """Return counts between all pairs of a degree-corrected block model.

    The expected count of a pair is the product of its nodes' sizes, ``ratio`` times as much within
    a cluster. Sizes of nodes are log-normal with deviation ``tail`` of the logarithm, clusters have
    from one to four shares of the nodes.

    Examples
    --------
    >>> degree_corrected_blocks(60, 3).graph.n_edges
    1770
    """
    random = np.random.default_rng([seed, n_nodes])
    shares = random.uniform(1.0, 4.0, n_clusters)
    truth = random.choice(n_clusters, n_nodes, p=shares / shares.sum()).astype(np.int64)
    size = random.lognormal(0.0, tail, n_nodes)
    a, b = np.triu_indices(n_nodes, 1)
    expected = size[a] * size[b] * np.where(truth[a] == truth[b], ratio, 1.0)
    return _counted(np.stack([a, b], axis=1), expected, mean_weight, n_nodes, truth, random)


def visit_records(
    n_people: int,
    n_places: int,
    n_regions: int,
    random: np.random.Generator,
    *,
    visits: float,
    at_home: float = 0.8,
    popularity: float = 1.0,
    spread: float = 0.0,
) -> tuple[Any, Ints]:
    """Return a table of persons and places, and the region of every place.

    Everybody has a home region, in proportion to its number of places (from one to three shares),
    and a Poisson number of visits, whose mean differs between persons by a gamma factor of variance
    ``spread``. A visit is to a place of the home region with probability ``at_home``, to any place
    otherwise. Places are chosen by popularity: rank to the power of ``-popularity`` in their region
    (Zipf).
    """
    import polars as pl

    shares = random.uniform(1.0, 3.0, n_regions)
    ends = np.rint(n_places * np.cumsum(shares) / shares.sum()).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]])
    region = np.repeat(np.arange(n_regions), ends - starts)
    rank = np.arange(n_places) - starts[region] + 1
    appeal = np.cumsum(rank.astype(np.float64) ** -popularity)
    home = random.choice(n_regions, n_people, p=(ends - starts) / n_places)
    rate = visits * random.gamma(1 / spread, spread, n_people) if spread else visits
    person = np.repeat(np.arange(n_people), random.poisson(rate, n_people))
    stays = random.random(len(person)) < at_home
    low = np.where(stays, np.concatenate([[0.0], appeal])[starts[home[person]]], 0.0)
    high = np.where(stays, appeal[ends[home[person]] - 1], appeal[-1])
    place = np.searchsorted(appeal, low + (high - low) * random.random(len(person)), side="right")
    number = random.permutation(n_places)
    table = pl.DataFrame({"person": person, "item": number[np.minimum(place, n_places - 1)]})
    truth = np.empty(n_places, dtype=np.int64)
    truth[number] = region
    return table, truth


def co_visits(
    n_people: int = 50_000,
    n_places: int = 500,
    n_regions: int = 10,
    *,
    visits: float = 8.0,
    max_items: int = 10,
    seed: int = 0,
    **options: float,
) -> KnownGraph:
    """Return how many people were at both of two places, for all pairs of places.

    The ``options`` are those of `visit_records`. Built by `ptclust.graph_from_visits`, so one
    person is protected: l1 = 45 for ten places.

    Examples
    --------
    >>> known = co_visits(200, 20, 2)
    >>> known.graph.n_edges, known.sensitivity.l1
    (190, 45.0)
    """
    from ptclust.building import graph_from_visits

    random = np.random.default_rng([seed, n_people])
    table, truth = visit_records(n_people, n_places, n_regions, random, visits=visits, **options)
    first, second, third = random.integers(2**63, size=3).tolist()
    graph = graph_from_visits(
        table, items=range(n_places), max_items=max_items, _key=(first, second, third)
    )
    assert graph.provenance is not None  # noqa: S101 - it was built from records
    return KnownGraph(graph, truth, graph.provenance.sensitivity)


def roads(
    n_nodes: int = 600,
    n_cities: int = 8,
    *,
    leaving: float = 0.1,
    mean_weight: float = 100.0,
    seed: int = 0,
) -> KnownGraph:
    """Return the crossings and roads of a region, with the traffic on every road.

    Crossings lie densely around the centres of cities, which differ in size fourfold, and thinly
    between; roads join those that no third lies between (the Gabriel graph: planar, connected).
    Trips take the shortest path; a share ``leaving`` goes to another city, by size and distance,
    the others to near crossings of the same city. A crossing belongs to the city whose centre is
    nearest. A weight is a number of vehicles seen on a road; one of them on one road is protected.

    Examples
    --------
    >>> known = roads(100, 3)
    >>> known.graph.n_nodes, known.graph.topology.n_components
    (100, 1)
    """
    random = np.random.default_rng([seed, n_nodes])
    centres = _spread_out(n_cities, random)
    shares = random.uniform(1.0, 4.0, n_cities)
    n_rural = n_nodes // 8
    city = random.choice(n_cities, n_nodes - n_rural, p=shares / shares.sum())
    width = 0.25 / np.sqrt(n_cities) * np.sqrt(shares / shares.mean())
    urban = centres[city] + width[city, None] * random.standard_normal((len(city), 2))
    points = np.concatenate([urban, random.random((n_rural, 2))])
    apart = np.linalg.norm(points[:, None] - centres[None], axis=2)
    truth = apart.argmin(axis=1).astype(np.int64)
    pairs = _gabriel(points)
    expected = _traffic(points, pairs, truth, leaving, random)
    return _counted(pairs, expected, mean_weight, n_nodes, truth, random)


def _spread_out(n_points: int, random: Generator) -> Floats:
    """Return points of the unit square, each the farthest of ten drawn from those before it."""
    points = random.random((1, 2))
    while len(points) < n_points:
        drawn = random.random((10, 2))
        nearest = np.linalg.norm(drawn[:, None] - points[None], axis=2).min(axis=1)
        points = np.concatenate([points, drawn[[nearest.argmax()]]])
    return points


def _triangulation(points: Floats) -> Ints:
    """Return the edges of the Delaunay triangulation of points."""
    from scipy.spatial import Delaunay

    corners = Delaunay(points).simplices
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    return np.unique(np.sort(sides.astype(np.int64), axis=1), axis=0)


def _gabriel(points: Floats) -> Ints:
    """Return the pairs of points whose smallest circle holds no third point."""
    from scipy.spatial import cKDTree

    pairs = _triangulation(points)
    a, b = points[pairs.T]
    nearest = cKDTree(points).query((a + b) / 2)[0]
    empty = nearest >= np.linalg.norm(a - b, axis=1) / 2 * (1.0 - 1e-9)
    return np.asarray(pairs[empty])


def _traffic(points: Floats, pairs: Ints, truth: Ints, leaving: float, random: Generator) -> Floats:
    """Return the expected number of trips along every pair, all on shortest paths."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    n = len(points)
    a, b = pairs.T
    lengths = np.linalg.norm(points[a] - points[b], axis=1)
    distances, before = dijkstra(
        coo_array((lengths, (a, b)), shape=(n, n)).tocsr(), directed=False, return_predecessors=True
    )
    size = random.lognormal(0.0, 1.0, n)
    near = size * np.exp(-distances / np.median(distances) * 4.0)
    np.fill_diagonal(near, 0.0)
    same = truth[:, None] == truth[None]

    def shared_out(demand: Floats) -> Floats:
        total = demand.sum(axis=1, keepdims=True)
        return np.asarray(demand / np.where(total > 0, total, 1.0))

    trips = (1.0 - leaving) * shared_out(near * same) + leaving * shared_out(near * ~same)
    trips *= size[:, None]
    carried = np.zeros((n, n))
    for origin in range(n):
        load = trips[origin].copy()
        for node in np.argsort(-distances[origin])[:-1].tolist():  # far ones first, not the origin
            previous = before[origin, node]
            carried[previous, node] += load[node]
            load[previous] += load[node]
    return np.asarray(carried[a, b] + carried[b, a] + 1e-9)


def null_graph(
    topology: NullTopology,
    n_nodes: int,
    *,
    degree: int = 10,
    tail: float = 1.0,
    dispersion: float = 2.0,
    mean_weight: float = 10.0,
    seed: int = 0,
) -> KnownGraph:
    """Return a graph without clusters whose counts depend on the sizes of the nodes alone.

    The expected count of an edge is the product of its nodes' log-normal sizes (deviation ``tail``
    of the logarithm) and of a gamma variable of its own, of shape ``dispersion``. The topology is
    complete, random, or grown by preferential attachment (Barabasi and Albert), where the size of a
    node is also in proportion to its degree; ``degree`` is the mean one. Or it is geometric, the
    Delaunay triangulation of random points of a square, and all nodes are alike.

    Examples
    --------
    >>> known = null_graph("complete", 30)
    >>> known.graph.n_edges, known.truth.max().item()
    (435, 0)
    """
    random = np.random.default_rng([seed, n_nodes])
    size = random.lognormal(0.0, tail, n_nodes)
    if topology == "complete":
        pairs = np.stack(np.triu_indices(n_nodes, 1), axis=1)
    elif topology == "random":
        pairs = _random_pairs(n_nodes, n_nodes * degree // 2, random)
    elif topology == "geometric":
        pairs, size = _triangulation(random.random((n_nodes, 2))), np.ones(n_nodes)
    else:
        pairs = _attached(n_nodes, degree // 2, random)
        size *= np.bincount(pairs.ravel(), minlength=n_nodes) / degree
    a, b = pairs.T
    expected = size[a] * size[b] * random.gamma(dispersion, 1.0, len(pairs))
    truth = np.zeros(n_nodes, dtype=np.int64)
    return _counted(pairs, expected, mean_weight, n_nodes, truth, random)


def _random_pairs(n_nodes: int, n_pairs: int, random: Generator) -> Ints:
    """Return different pairs of nodes; a random tree among them joins all nodes."""
    tree = np.stack(
        [np.arange(1, n_nodes), (random.random(n_nodes - 1) * np.arange(1, n_nodes)).astype(int)],
        axis=1,
    )
    others = random.integers(n_nodes, size=(2 * n_pairs, 2))
    pairs: Ints = np.sort(np.concatenate([tree, others[others[:, 0] != others[:, 1]]]), axis=1)
    first = np.sort(np.unique(pairs, axis=0, return_index=True)[1])
    return np.asarray(pairs[first[:n_pairs]], dtype=np.int64)


def _attached(n_nodes: int, n_links: int, random: Generator) -> Ints:
    """Return the edges of a graph in which new nodes join old ones in proportion to degrees."""
    pairs = [(i, j) for j in range(n_links + 1) for i in range(j)]
    ends = [node for pair in pairs for node in pair]
    for node in range(n_links + 1, n_nodes):
        chosen: set[int] = set()
        while len(chosen) < n_links:
            chosen.add(ends[int(random.integers(len(ends)))])
        for other in sorted(chosen):
            pairs.append((other, node))
            ends += [other, node]
    return np.array(pairs, dtype=np.int64)
