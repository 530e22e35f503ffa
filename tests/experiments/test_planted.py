from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from experiments.controls import CONTROLS
from experiments.planted import FAMILIES as RECIPES
from experiments.planted import Family, planted_graph, with_decoys
from experiments.utility import agreement
from ptclust.datasets import planted_graph as own_planted_graph
from ptclust.datasets.planted import PAPER, cross_pairs, draw_weights, near_pairs
from ptclust.errors import UsageError
from ptclust.graph import Graph

FAMILIES = get_args(Family)
OTHERS = [family for family in FAMILIES if family not in PAPER]
CONTROL = {control.name: control for control in CONTROLS}


def labels_of(name, planted):
    return CONTROL[name].labels(planted.graph, planted.truth)


def pieces(graph, keep):
    a, b = graph.sources[keep], graph.targets[keep]
    matrix = coo_array((np.ones(len(a)), (a, b)), shape=(graph.n_nodes, graph.n_nodes))
    return connected_components(matrix, directed=False)[0]


def across(planted):
    return planted.truth[planted.graph.sources] != planted.truth[planted.graph.targets]


def second_planting(planted, family, n, k, seed):
    """Return the clusters of the decoys and the pairs that both layouts join, by the recipe."""
    random = np.random.default_rng([seed, n])
    recipe = RECIPES[family]
    pairs = recipe.within(planted.points, planted.truth, recipe.neighbours, random)
    points, truth = recipe.layout(n, k, seed=int(random.integers(2**32)))
    decoys = recipe.within(points, truth, recipe.neighbours, random)
    return truth, {*ordered(pairs), *ordered(decoys)}


def ordered(pairs):
    return map(tuple, np.sort(pairs, axis=1).tolist())


def edges(graph):
    return set(ordered(np.stack([graph.sources, graph.targets], axis=1)))


CASES: list[tuple] = [(family, n, None) for family in FAMILIES for n in (100, 1000)]
CASES += [(family, n, k) for family in OTHERS for n, k in ((100, 10), (1000, 30))]


@pytest.mark.parametrize(("family", "n", "k"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_strongly_homogeneous_and_in_one_piece(family, n, k, seed):
    planted = planted_graph(family, n, n_clusters=k, seed=seed)
    graph, truth, between = planted.graph, planted.truth, across(planted)
    sizes = np.bincount(truth)
    assert len(sizes) == k or k is None
    assert sizes.min() >= 4
    assert sizes.sum() == n
    assert np.count_nonzero(between) == 4 * n
    assert graph.weights.min() > 0
    assert graph.weights.max() <= 1
    assert pieces(graph, ~between) == len(sizes)
    assert pieces(graph, slice(None)) == 1
    for cluster in range(len(sizes)):
        here, there = truth[graph.sources] == cluster, truth[graph.targets] == cluster
        inside, outgoing = graph.weights[here & there], graph.weights[here != there]
        assert inside.max() ** 2 / inside.min() < outgoing.min()
        if family != "multiscale":
            assert 0.1 <= inside.min() <= inside.max() <= 0.3
            assert 0.9 < outgoing.min() <= outgoing.max() <= 1
            assert sizes.max() - sizes.min() <= 1
    assert planted.points is None if family == "blocks" else planted.points.shape == (n, 2)


@pytest.mark.parametrize("family", [*PAPER, "blobs"])
def test_every_node_has_its_neighbours(family):
    for neighbours in (8, 3):
        planted = planted_graph(family, 100, neighbours=neighbours)
        within = ~across(planted)
        ends = np.concatenate([planted.graph.sources[within], planted.graph.targets[within]])
        assert np.bincount(ends).min() >= neighbours


def test_weights_and_sizes_of_many_scales():
    planted = planted_graph("multiscale", 1000)
    graph, truth, between = planted.graph, planted.truth, across(planted)
    sizes = np.bincount(truth)
    assert sizes.max() > 4 * sizes.min()
    means = [
        graph.weights[~between & (truth[graph.sources] == cluster)].mean() for cluster in range(4)
    ]
    np.testing.assert_allclose(means, 0.2 * np.geomspace(1, 1 / 6, 4), rtol=0.06)
    # No threshold finds the clusters: some weights across are lighter than others within.
    assert graph.weights[between].min() < graph.weights[~between].max()


def test_chains_are_long_and_blocks_have_hubs():
    from scipy.sparse.csgraph import shortest_path

    def hops(family):
        planted = planted_graph(family, 400, n_clusters=4)
        keep = ~across(planted)
        a, b = planted.graph.sources[keep], planted.graph.targets[keep]
        matrix = coo_array((np.ones(len(a)), (a, b)), shape=(400, 400))
        distance = shortest_path(matrix, directed=False, unweighted=True)
        return distance[np.isfinite(distance)].max(), np.bincount(np.concatenate([a, b]))

    longest, _ = hops("chains")
    assert longest > 50  # a chain has 100 nodes
    longest, degrees = hops("blocks")
    assert longest < 10
    assert degrees.max() > 4 * degrees.mean()
    assert 6 < degrees.mean() <= 8


@pytest.mark.parametrize("family", [*PAPER, "blobs"])
def test_the_families_of_the_package_are_the_same_here(family):
    for options in ({}, {"neighbours": 3, "cross_edges": 11}, {"complete": True}):
        ours, theirs = (make(family, 60, **options) for make in (own_planted_graph, planted_graph))
        assert ours.graph.topology == theirs.graph.topology
        assert np.array_equal(ours.graph.weights, theirs.graph.weights)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_seed_decides(family):
    first, again, other = (planted_graph(family, 60, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(first.graph.sources, again.graph.sources)
    assert np.array_equal(first.graph.weights, again.graph.weights)
    assert np.array_equal(first.truth, again.truth)
    assert not np.array_equal(first.truth, other.truth)
    assert not np.array_equal(first.graph.weights[:50], other.graph.weights[:50])


@pytest.mark.parametrize("family", FAMILIES)
def test_edges_come_in_random_order(family):
    planted = planted_graph(family, 1000)
    between = across(planted)
    share = between[: len(between) // 2].mean() / between.mean()
    assert 0.9 < share < 1.1
    # Nodes do, too: no cluster comes first.
    later = planted.truth[500:]
    largest = np.bincount(planted.truth).argmax()
    assert 0.85 < 2 * np.sum(later == largest) / np.sum(planted.truth == largest) < 1.15


@pytest.mark.parametrize("family", FAMILIES)
def test_complete_and_trimmed_graphs(family):
    complete = planted_graph(family, 40, complete=True)
    assert complete.graph.n_edges == 40 * 39 // 2
    k = complete.truth.max() + 1
    for seed in range(10):
        trimmed = planted_graph(family, 40, cross_edges=k - 1, seed=seed)
        assert np.count_nonzero(across(trimmed)) == k - 1
        assert pieces(trimmed.graph, slice(None)) == 1
    full = planted_graph(family, 40, cross_edges=10**6)
    assert np.count_nonzero(across(full)) == np.count_nonzero(across(complete))


def test_all_pairs_across_are_equally_likely():
    counts = np.zeros((12, 12), np.int64)
    clusters = np.zeros((12, 12), np.int64)
    for seed in range(400):
        planted = planted_graph("blocks", 12, cross_edges=20, seed=seed)
        between = across(planted)
        ends = np.sort([planted.graph.sources[between], planted.graph.targets[between]], axis=0)
        np.add.at(counts, tuple(ends), 1)
        clusters += planted.truth[:, None] != planted.truth
    a, b = np.triu_indices(12, 1)
    expected = 20 / 48 * clusters[a, b]
    deviation = np.abs(counts[a, b] - expected) / np.sqrt(expected * 28 / 48)
    assert deviation.max() < 5.5  # 66 pairs, a few in a million for any of them


@pytest.mark.parametrize("family", PAPER)
def test_the_topology_gives_the_clusters_away_only_when_trimmed(family):
    planted = [planted_graph(family, 100, seed=seed) for seed in range(5)]
    for name, low, high in (("dbmstclu", 1, 1), ("topology", 0, 0.02), ("spectral", -0.05, 0.1)):
        ari = np.mean([agreement(p.truth, labels_of(name, p)) for p in planted])
        assert low <= ari <= high, name
    trimmed = planted_graph(family, 100, cross_edges=2)
    assert agreement(trimmed.truth, labels_of("spectral", trimmed)) > 0.5


@pytest.mark.parametrize("family", OTHERS)
@pytest.mark.parametrize(("n", "k"), [(100, None), (200, 10), (1000, 30)])
def test_dbmstclu_finds_them_without_privacy(family, n, k):
    for seed in range(3):
        planted = planted_graph(family, n, n_clusters=k, seed=seed)
        assert agreement(planted.truth, labels_of("dbmstclu", planted)) == 1


class TestDecoys:
    @pytest.mark.parametrize("family", FAMILIES)
    @pytest.mark.parametrize("seed", range(3))
    def test_the_topology_is_that_of_two_plantings(self, family, seed):
        planted = planted_graph(family, 200, decoys=True, seed=seed)
        graph, truth, between = planted.graph, planted.truth, across(planted)
        k = truth.max() + 1
        other, pairs = second_planting(planted, family, 200, k, seed)
        assert edges(graph) == pairs
        assert graph.n_edges == len(pairs)
        assert abs(agreement(truth, other)) < 0.05
        assert pieces(graph, ~between) == k
        assert pieces(graph, other[graph.sources] == other[graph.targets]) == k
        assert pieces(graph, slice(None)) == 1

    @pytest.mark.parametrize("family", FAMILIES)
    def test_weights_follow_the_first(self, family):
        planted = planted_graph(family, 200, decoys=True)
        truth, graph, between = planted.truth, planted.graph, across(planted)
        assert np.array_equal(truth, planted_graph(family, 200).truth)
        for cluster in range(truth.max() + 1):
            here, there = truth[graph.sources] == cluster, truth[graph.targets] == cluster
            inside, outgoing = graph.weights[here & there], graph.weights[here != there]
            assert inside.max() ** 2 / inside.min() < outgoing.min()
        assert 0.9 < between[: len(between) // 2].mean() / between.mean() < 1.1
        assert agreement(truth, labels_of("dbmstclu", planted)) == 1

    @pytest.mark.parametrize(("n", "k"), [(100, 10), (1000, 30)])
    def test_neither_planting_is_the_likelier(self, n, k):
        """Edges within either are as many, but for chance, and so are their degrees."""
        found = []
        for seed in range(20 if n == 100 else 6):
            planted = planted_graph("blobs", n, n_clusters=k, decoys=True, seed=seed)
            other, _ = second_planting(planted, "blobs", n, k, seed)
            a, b = planted.graph.sources, planted.graph.targets
            counts = [np.count_nonzero(truth[a] == truth[b]) for truth in (planted.truth, other)]
            found.append(counts[0] - counts[1])
        differences = np.array(found)
        assert abs(differences.mean()) < 5 * differences.std(ddof=1) / np.sqrt(len(differences))
        assert np.abs(differences).max() < 0.05 * planted.graph.n_edges

    @pytest.mark.parametrize(("n", "k", "seeds"), [(100, 10, 8), (1000, 30, 1)])
    def test_small_clusters_are_no_longer_given_away(self, n, k, seeds):
        found = {}
        for decoys in (False, True):
            planted = [
                planted_graph("blobs", n, n_clusters=k, decoys=decoys, seed=seed)
                for seed in range(seeds)
            ]
            found[decoys] = np.mean([agreement(p.truth, labels_of("spectral", p)) for p in planted])
        assert found[False] > 0.9
        assert found[True] < 0.6

    @pytest.mark.parametrize("family", FAMILIES)
    def test_as_many_edges_across_as_wanted(self, family):
        k = planted_graph(family, 40).truth.max() + 1
        for seed in range(10):
            complete = planted_graph(family, 40, complete=True, seed=seed)
            full = np.count_nonzero(across(complete))
            for wanted in (k - 1, 40, 300, 10**6):
                planted = planted_graph(family, 40, cross_edges=wanted, decoys=True, seed=seed)
                assert np.count_nonzero(across(planted)) == min(wanted, full)
                assert len(edges(planted.graph)) == planted.graph.n_edges
                assert pieces(planted.graph, slice(None)) == 1

    def test_decoys_come_before_random_pairs(self):
        for seed in range(5):
            planted = planted_graph(
                "blobs", 200, n_clusters=5, cross_edges=400, decoys=True, seed=seed
            )
            _, pairs = second_planting(planted, "blobs", 200, 5, seed)
            assert edges(planted.graph) <= pairs
            more = planted_graph(
                "blobs", 200, n_clusters=5, cross_edges=2000, decoys=True, seed=seed
            )
            assert pairs < edges(more.graph)

    def test_clusters_that_decoys_leave_apart_are_joined(self):
        """The second planting repeats the first here: it has no edge across."""
        planted = planted_graph("blobs", 60, n_clusters=5)
        pairs = near_pairs(planted.points, planted.truth, 8)
        for wanted in (None, 4, 100):
            found = with_decoys(pairs, pairs, planted.truth, wanted, np.random.default_rng(1))
            clusters = planted.truth[found]
            assert np.count_nonzero(clusters[:, 0] != clusters[:, 1]) == (wanted or 4)
            assert len(set(ordered(found))) == len(found) == len(pairs) + (wanted or 4)
            matrix = coo_array((np.ones(len(found)), tuple(found.T)), shape=(60, 60))
            assert connected_components(matrix, directed=False)[0] == 1

    def test_complete_graphs_have_none(self):
        plain, decoys = (
            planted_graph("blobs", 40, complete=True, decoys=decoys) for decoys in (False, True)
        )
        assert np.array_equal(plain.graph.weights, decoys.graph.weights)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "multiscale"])
def test_graphs_without_decoys_draw_nothing_for_them(family):
    """Published numbers hang on the order of draws: within, across, the order of edges, weights."""
    planted = planted_graph(family, 120, seed=3)
    random, truth = np.random.default_rng([3, 120]), planted.truth
    within = RECIPES[family].within(planted.points, truth, RECIPES[family].neighbours, random)
    pairs = np.concatenate([within, cross_pairs(truth, 480, random)])
    a, b = pairs[random.permutation(len(pairs))].T
    weights = draw_weights(truth[a], truth[b], np.ones(truth.max() + 1), random)
    expected = Graph(a, b, weights, n_nodes=120)
    assert np.array_equal(planted.graph.sources, expected.sources)
    assert np.array_equal(planted.graph.targets, expected.targets)
    assert np.array_equal(planted.graph.weights, expected.weights)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("stars",), {}, "one of circles.*not 'stars'"),
        (("moons", 3), {}, "at least 8 nodes, not 3"),
        (("moons", 20), {"cross_edges": 0}, "at least one edge .* not 0"),
        (("moons", 20), {"n_clusters": 3}, "moons are two clusters, not 3"),
        (("blobs", 20), {"n_clusters": 1}, "at least two clusters, not 1"),
        (("blobs", 100), {"n_clusters": 30}, "at least 120 nodes, not 100"),
        (("blocks", 100), {"n_clusters": 10, "cross_edges": 8}, "at least 9 edges"),
    ],
)
def test_bad_arguments(arguments, options, words):
    with pytest.raises(UsageError, match=words):
        planted_graph(*arguments, **options)
