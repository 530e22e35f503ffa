from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2

from ptclust.graph import Graph
from ptclust.mechanisms import Kruskal, Pamst, _urn_kernel, exponential
from ptclust.mechanisms.pamst import heaviest_listed
from ptclust.privacy import RandomStream
from tests.mechanisms import paper

ALPHA = 1e-6

#: Edges (a, b, weight) and an exponent; weights such that 5 % more exponent shows.
GRAPHS = {
    "triangle": (3, [(0, 1, 0.1), (1, 2, 0.5), (2, 0, 1.0)], 3.0),
    "square with a diagonal": (
        4,
        [(0, 1, 0.2), (1, 2, 0.9), (2, 3, 0.1), (3, 0, 0.7), (0, 2, 0.5)],
        4.0,
    ),
    "K4": (
        4,
        [(a, b, w) for (a, b), w in zip(
            [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], [0.3, -0.4, 0.6, 0.0, 0.9, 0.2]
        )],
        3.0,
    ),
    "K5 less two edges": (
        5,
        [(0, 1, 0.1), (0, 2, 0.8), (0, 3, 0.4), (1, 2, 0.3), (1, 4, 0.9), (2, 3, 0.2), (2, 4, 0.6),
         (3, 4, 0.5)],
        3.0,
    ),
    "wheel of five": (
        5,
        [(0, 1, 0.5), (0, 2, 0.1), (0, 3, 0.9), (0, 4, 0.3), (1, 2, 0.2), (2, 3, 0.7), (3, 4, 0.4),
         (4, 1, 0.8)],
        4.0,
    ),
    "equal weights": (4, [(a, b, 7.0) for a in range(4) for b in range(a)], 5.0),
    "two scales": (
        5,
        [(0, 1, 0.0), (1, 2, 0.1), (2, 0, 0.2), (2, 3, 60.0), (1, 3, 60.5), (3, 4, 0.3),
         (1, 4, 61.0)],
        2.0,
    ),
}  # fmt: skip
GRAPHS = {  # in canonical order
    name: (n_nodes, sorted((min(a, b), max(a, b), w) for a, b, w in edges), exponent)
    for name, (n_nodes, edges, exponent) in GRAPHS.items()
}
kruskal_edges, pamst_edges = Kruskal().draw_edges, Pamst().draw_edges
SAMPLERS = {
    "pamst": (pamst_edges, paper.pamst_distribution),
    "kruskal": (kruskal_edges, paper.kruskal_distribution),
}
COPIES = 1000


def draw_trees(sampler, graph, n_draws, exponent=None, seed=0):
    """Draw trees; one call draws a forest of many copies of the graph, to test forests, too."""
    n_nodes, edges, usual = graph
    a, b, w = (np.array(column) for column in zip(*edges))
    offset = np.repeat(np.arange(COPIES), len(edges)) * n_nodes
    copies = Graph(np.tile(a, COPIES) + offset, np.tile(b, COPIES) + offset, np.tile(w, COPIES))
    stream = RandomStream.seeded(seed)
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(n_draws // COPIES):
        ids = sampler(copies, usual if exponent is None else exponent, stream)
        copy, edge = np.divmod(ids.reshape(COPIES, n_nodes - 1), len(edges))
        assert (copy == np.arange(COPIES)[:, None]).all(), "every copy gets a spanning tree"
        found.update(map(tuple, edge.tolist()))
    return found


def p_value(found, distribution):
    """Chi-square test; trees expected fewer than five times are counted together."""
    n = sum(found.values())
    assert all(distribution.get(tree, 0.0) > 0.0 for tree in found), "an impossible tree was drawn"
    common = [t for t, p in distribution.items() if n * p >= 5]
    observed = [found[t] for t in common] + [n - sum(found[t] for t in common)]
    expected = [n * distribution[t] for t in common]
    rest = max(n - math.fsum(expected), 0.0)
    expected.append(rest)
    cells = [(o, e) for o, e in zip(observed, expected) if e > 1e-9 * n]
    if len(cells) < 2:
        return 1.0
    statistic = math.fsum((o - e) ** 2 / e for o, e in cells)
    return float(chi2.sf(statistic, len(cells) - 1))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("mechanism", SAMPLERS)
def test_trees_follow_the_exact_distribution(mechanism, name):
    sampler, exact = SAMPLERS[mechanism]
    n_nodes, edges, exponent = GRAPHS[name]
    distribution = exact(n_nodes, edges, exponent)
    assert math.fsum(distribution.values()) == pytest.approx(1.0)
    assert p_value(draw_trees(sampler, GRAPHS[name], 60_000), distribution) > ALPHA


def textbook(graph, n_draws, exponent=None):
    n_nodes, edges, usual = graph
    source = random.Random(1)
    draws = (paper.pamst(n_nodes, edges, exponent or usual, source) for _ in range(n_draws))
    return Counter(draws)


def test_the_textbook_algorithm_follows_the_enumerated_distribution():
    n_nodes, edges, exponent = graph = GRAPHS["K4"]
    distribution = paper.pamst_distribution(n_nodes, edges, exponent)
    assert p_value(textbook(graph, 20_000), distribution) > ALPHA


class TestMutantsAreRejected:
    """The same test must reject samplers that are a little wrong."""

    @pytest.mark.parametrize("mechanism", SAMPLERS)
    def test_five_percent_too_little_noise(self, mechanism):
        sampler, exact = SAMPLERS[mechanism]
        n_nodes, edges, exponent = graph = GRAPHS["wheel of five"]
        found = draw_trees(sampler, graph, 200_000, exponent=1.05 * exponent)
        assert p_value(found, exact(n_nodes, edges, exponent)) < ALPHA

    def test_a_fixed_root(self, monkeypatch):
        n_nodes, edges, exponent = GRAPHS["wheel of five"]
        distribution = paper.pamst_distribution(n_nodes, edges, exponent)
        source = random.Random(1)
        monkeypatch.setattr(source, "randrange", lambda _: 0)
        found = Counter(paper.pamst(n_nodes, edges, exponent, source) for _ in range(50_000))
        assert p_value(found, distribution) < ALPHA

    def test_all_clocks_started_at_time_zero(self):
        """Prim on fixed keys is the minimum spanning tree of those keys: the other mechanism."""
        n_nodes, edges, exponent = graph = GRAPHS["wheel of five"]
        found = draw_trees(kruskal_edges, graph, 100_000)
        assert p_value(found, paper.pamst_distribution(n_nodes, edges, exponent)) < ALPHA
        gumbel = np.random.default_rng(0)
        keys = Counter()
        for _ in range(50_000):
            noisy = [(a, b, exponent * w + math.log(gumbel.exponential())) for a, b, w in edges]
            keys[prim(n_nodes, noisy)] += 1
        assert p_value(keys, paper.pamst_distribution(n_nodes, edges, exponent)) < ALPHA
        assert p_value(keys, paper.kruskal_distribution(n_nodes, edges, exponent)) > ALPHA


def prim(n_nodes, edges):
    nodes, tree = {0}, set()
    while len(nodes) < n_nodes:
        leaving = [i for i, (a, b, _) in enumerate(edges) if (a in nodes) != (b in nodes)]
        best = min(leaving, key=lambda i: edges[i][2])
        tree.add(best)
        nodes |= {edges[best][0], edges[best][1]}
    return tuple(sorted(tree))


@pytest.mark.parametrize("spread", [1e-6, 1e-2, 1.0, 20.0, 50.0, 800.0, 1e4, 1e6])
@pytest.mark.parametrize("mechanism", SAMPLERS)
def test_any_spread_of_exponents(mechanism, spread):
    sampler, exact = SAMPLERS[mechanism]
    n_nodes, edges, _ = graph = GRAPHS["K5 less two edges"]
    exponent = spread / (0.9 - 0.1)
    found = draw_trees(sampler, graph, 20_000, exponent=exponent)
    assert p_value(found, exact(n_nodes, edges, exponent)) > ALPHA


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("mechanism", SAMPLERS)
def test_what_lies_beyond_the_window_keeps_its_probability(mechanism, window, monkeypatch):
    """With the usual window the part beyond is hit once in 2^31 draws; with a narrow one, often."""
    for module in ("pamst", "kruskal"):
        monkeypatch.setattr(
            f"ptclust.mechanisms.{module}.make_urn", partial(exponential.make_urn, window=window)
        )
    sampler, exact = SAMPLERS[mechanism]
    n_nodes, edges, exponent = graph = GRAPHS["wheel of five"]
    for factor in (1.0, 3.0):
        found = draw_trees(sampler, graph, 40_000, exponent=factor * exponent, seed=window)
        assert p_value(found, exact(n_nodes, edges, factor * exponent)) > ALPHA


class TestEdgesNotListedAtFirst:
    """Heavy edges of large graphs are one bucket of the urn until few of them can be chosen."""

    @pytest.mark.parametrize("window", [1, 3, 32])
    @pytest.mark.parametrize(
        ("name", "heaviest"),
        [("wheel of five", 0.1), ("wheel of five", 0.4), ("K5 less two edges", 0.3),
         ("two scales", 0.25), ("K4", -1.0)],
    )  # fmt: skip
    def test_keep_their_probability(self, name, heaviest, window, monkeypatch):
        make_urn = partial(exponential.make_urn, window=window)
        monkeypatch.setattr("ptclust.mechanisms.pamst.make_urn", make_urn)
        monkeypatch.setattr("ptclust.mechanisms.pamst.heaviest_listed", lambda *_: heaviest)
        monkeypatch.setattr("ptclust.mechanisms.pamst.PATIENCE", 1)
        n_nodes, edges, exponent = GRAPHS[name]
        a, b, w = zip(*edges)
        graph, stream = Graph(a, b, w), RandomStream.seeded(window)
        found = Counter(tuple(pamst_edges(graph, exponent, stream).tolist()) for _ in range(20_000))
        assert p_value(found, paper.pamst_distribution(n_nodes, edges, exponent)) > ALPHA

    def test_are_those_beyond_most_of_a_large_graph(self):
        random = np.random.default_rng(0)
        ends = np.unique(np.sort(random.integers(3000, size=(40_000, 2)), axis=1), axis=0)
        ends = ends[ends[:, 0] != ends[:, 1]]
        graph = Graph(ends[:, 0], ends[:, 1], random.random(len(ends)))
        heaviest = heaviest_listed(graph.weights, graph.n_nodes, 200.0)
        assert 0.1 < np.mean(graph.weights <= heaviest) < 0.5
        assert heaviest_listed(graph.weights, graph.n_nodes, 2.0) == np.inf  # all rates are alike
        drawn = pamst_edges(graph, 200.0, RandomStream.seeded(0))
        assert len(drawn) == graph.topology.n_tree_edges
        assert graph.topology.restricted_to(drawn).n_components == graph.topology.n_components


class TestExponents:
    @pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e3, 1e9])
    def test_are_rounded_exactly_whatever_the_magnitude(self, scale):
        weights = np.random.default_rng(0).standard_normal(2000) * scale
        factor = 2.0**40 / math.log(2.0)
        for weight in weights.tolist():
            x = _urn_kernel.exponent_of(weight, factor)
            exact = Fraction(factor) * Fraction(weight)
            if abs(exact) < 2**61:
                assert abs(exact - x) <= Fraction(1, 2) + Fraction(1, 10**6)

    def test_are_exact_up_to_the_clamp(self):
        """Products just below 2^62 round to it as floats, by up to 256 steps of the grid."""
        random, near = np.random.default_rng(0), 0
        for factor in 2.0**40 * (1 + random.random(2000)):
            for end in (2.0**62, -(2.0**62)):
                for weight in (end / factor, np.nextafter(end / factor, 0.0)):
                    exact = Fraction(factor) * Fraction(weight)
                    near += factor * weight == end and abs(exact) < 2**62 - 1
                    wanted = min(max(math.floor(exact + Fraction(1, 2)), -(2**62)), 2**62)
                    assert _urn_kernel.exponent_of(weight, factor) == wanted
        assert near > 100

    def test_are_clamped_and_stay_in_order(self):
        weights = [-1.7e308, -1e300, -1e20, 0.0, 5e-324, 1e20, 1e300, 1.7e308]
        rounded = [_urn_kernel.exponent_of(weight, 2.0**40) for weight in weights]
        assert rounded == sorted(rounded)
        assert rounded[0] == -rounded[-1] == -(2**62)


def test_int64_indices_draw_the_same_tree():
    _, edges, exponent = GRAPHS["wheel of five"]
    a, b, w = (np.array(column) for column in zip(*edges))
    graph = Graph(a, b, w)
    wide = Graph(a, b, w)
    wide.topology.sources = graph.sources.astype(np.int64)
    wide.topology.targets = graph.targets.astype(np.int64)
    for sampler, _ in SAMPLERS.values():
        one = sampler(graph, exponent, RandomStream.seeded(5))
        assert one.tolist() == sampler(wide, exponent, RandomStream.seeded(5)).tolist()


@pytest.mark.parametrize("n_nodes", [0, 1, 3])
def test_nodes_without_edges_have_empty_trees(n_nodes):
    graph = Graph([], [], [], n_nodes=n_nodes)
    for sampler, _ in SAMPLERS.values():
        assert len(sampler(graph, 1.0, RandomStream.secure())) == 0
