"""Clusters of graphs with heavy tails: found, levelled, and not found where there are none."""

from __future__ import annotations

from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import KDTree

from ptclust._components import adjacency
from ptclust._statistics import agreement
from ptclust.clustering import CLUSTERERS
from ptclust.clustering.communities import _levels
from ptclust.clustering.communities._judge import Judge, topology_tells
from ptclust.clustering.communities._large import LargeTrial, fit_node_terms, sums_at_nodes
from ptclust.clustering.communities._search_kernel import search_communities
from ptclust.clustering.communities._trial import CLEAR, Trial, View
from ptclust.clustering.communities._two_levels import TwoLevels, _central
from ptclust.clustering.communities._weights import (
    Edges,
    background,
    expected_by_size,
    node_sizes,
    quick_sizes,
    standard_quantiles,
    sums_at,
)
from ptclust.datasets import planted_graph
from ptclust.graph import Graph
from ptclust.privacy.noise import Noise
from ptclust.published import Published
from ptclust.trees import Tree, minimum_spanning_tree

COMMUNITIES = CLUSTERERS["communities"]


def released(a, b, weights, n, *, seed=0, scale=1.0, distribution="laplace", kind="similarity"):
    """Return the weights with noise, as a mechanism publishes them."""
    random = np.random.default_rng([seed, 1])
    draw = random.laplace if distribution == "laplace" else random.normal
    graph = Graph(a, b, weights + draw(0, scale, len(a)), n_nodes=n, kind=kind)
    noisy = graph.weights.copy()
    tree = minimum_spanning_tree(graph)
    tree = Tree(tree.topology, noisy[tree.edge_ids], tree.edge_ids, kind=kind)
    return Published(
        distribution, Noise(distribution, scale, -40, len(a)), tree, graph.topology, noisy
    )


def counts(truth, *, ratios=(1.0, 6.0), share=1.0, seed=0, tail=1.0, mean=8.0):
    """Return Poisson counts between nodes of log-normal sizes, by how many labels they share."""
    random = np.random.default_rng(seed)
    truth = np.atleast_2d(truth)
    n = truth.shape[1]
    a, b = np.triu_indices(n, 1)
    kept = random.random(len(a)) < share
    a, b = a[kept], b[kept]
    size = random.lognormal(0, tail, n)
    shared = (truth[:, a] == truth[:, b]).sum(0)
    expected = size[a] * size[b] * np.array(ratios)[shared] * random.gamma(3, 1 / 3, len(a))
    return a, b, random.poisson(mean * expected / expected.mean()).astype(float), n


@cache
def city():
    """Eighty nodes of very different size in four clusters."""
    truth = np.random.default_rng(5).permutation(np.arange(80) % 4)
    return truth, counts(truth, seed=2)


class TestSearch:
    @given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 0.5]))
    @settings(max_examples=40, deadline=None)
    def test_no_move_of_a_node_improves(self, seed, with_mass, price):
        random = np.random.default_rng(seed)
        n = int(random.integers(2, 9))
        a, b = np.triu_indices(n, 1)
        kept = random.random(len(a)) < 0.7
        a, b = a[kept], b[kept]
        affinity = random.normal(0, 1, len(a))
        mass = random.random(n) * with_mass
        around = adjacency(a, b, n)
        labels = search_communities(
            around, affinity[around.edges], mass, random.permutation(n), None, price
        )
        value = value_of(a, b, affinity, mass, price, labels)
        near = {(u, v) for u, v in zip(a.tolist(), b.tolist())}
        for node, label in product(range(n), range(n + 1)):
            there = np.flatnonzero(labels == label)
            joined = any((min(node, o), max(node, o)) in near for o in there.tolist())
            if len(there) and not joined:
                continue  # nodes only join clusters that they have an edge to
            moved = labels.copy()
            moved[node] = label
            assert value_of(a, b, affinity, mass, price, moved) <= value + 1e-9

    def test_masses_of_degrees_are_modularity(self):
        nx = pytest.importorskip("networkx")
        graph = nx.karate_club_graph()
        a, b = np.array([sorted(edge) for edge in graph.edges]).T
        degree = np.array([graph.degree(node) for node in range(34)], dtype=float)
        mass = degree / np.sqrt(2 * len(a))
        labels = search_communities(adjacency(a, b, 34), np.ones(2 * len(a)), mass, np.arange(34))
        clusters = [set(np.flatnonzero(labels == each).tolist()) for each in np.unique(labels)]
        assert nx.community.modularity(graph, clusters, weight=None) > 0.41


def value_of(a, b, affinity, mass, price, labels):
    """Return what the search maximises, naively."""
    total = affinity[labels[a] == labels[b]].sum()
    for label in np.unique(labels):
        own = mass[labels == label]
        total -= (own.sum() ** 2 - (own**2).sum()) / 2 + price
    return total


class TestWeights:
    @pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
    def test_background_is_the_least_true_weight(self, distribution):
        random = np.random.default_rng(3)
        draw = random.laplace if distribution == "laplace" else random.normal
        noise = Noise(distribution, 2.0, -40, 20_000)
        true = np.where(random.random(20_000) < 0.6, 10.0, 10 + random.pareto(1.0, 20_000) * 30)
        found = background(true + draw(0, 2.0, 20_000), noise.standard_deviation, noise)
        assert abs(found - 10) < noise.standard_deviation

    @pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
    def test_quantiles_are_those_of_the_noise(self, distribution):
        noise = Noise(distribution, 3.0, -40, 1)
        random = np.random.default_rng(1)
        draw = random.laplace if distribution == "laplace" else random.normal
        sample = draw(0, 3.0, 400_000) / noise.standard_deviation
        shares = np.array([0.01, 0.2, 0.5, 0.9])
        np.testing.assert_allclose(
            standard_quantiles(noise, shares), np.quantile(sample, shares), atol=0.03
        )

    def test_sizes_agree_with_the_weights_at_every_node(self):
        _, (a, b, weights, n) = city()
        edges = Edges.of(released(a, b, weights, n))
        compressed = edges.compressed(1.0)
        expected = expected_by_size(edges, node_sizes(edges, compressed))
        seen = edges.at_nodes(compressed)
        large = seen > np.median(seen)  # small ones are drawn towards the mean
        np.testing.assert_allclose(edges.at_nodes(expected)[large], seen[large], rtol=0.1)


class TestJudge:
    def judged(self, true_ratio, seed):
        truth = np.random.default_rng(seed).integers(0, 4, 60)
        a, b, weights, n = counts(truth, ratios=(1.0, true_ratio), seed=seed)
        edges = Edges.of(released(a, b, weights, n, seed=seed))
        compressed = edges.compressed(1.0)
        judge = Judge(edges, compressed, expected_by_size(edges, node_sizes(edges, compressed)))
        together = truth[a] == truth[b]
        return judge.weights_tell(together, np.arange(len(a))), judge.deviations(together)

    def test_what_weights_tell_of_clusters_that_are_none(self):
        found = [self.judged(1.0, seed) for seed in range(30)]
        assert max(nats for nats, _ in found) < 7
        deviations = np.array([each for _, each in found])
        assert abs(deviations.mean()) < 1
        assert 0.5 < deviations.std() < 1.6

    def test_what_weights_tell_of_true_clusters(self):
        for seed in range(5):
            nats, deviations = self.judged(4.0, seed)
            assert nats > 50
            assert deviations > 8

    def test_the_topology_tells_nothing_of_chance(self):
        random = np.random.default_rng(0)
        chance = np.full(2000, 0.3)
        by_chance = [topology_tells(random.random(2000) < 0.3, chance) for _ in range(50)]
        assert max(by_chance) < 5
        assert topology_tells(random.random(2000) < 0.6, chance) > 200


class TestClusters:
    @pytest.mark.parametrize("cap", [20, 200, np.inf])
    @pytest.mark.parametrize("scale", [0.5, 3.0])
    def test_sizes_and_caps_do_not_matter(self, cap, scale):
        truth, (a, b, weights, n) = city()
        values = released(a, b, np.minimum(weights, cap), n, scale=scale)
        assert agreement(truth, COMMUNITIES.cluster(values).labels) > 0.85
        if scale == 0.5 and cap > 100:  # what two levels of weights make of it
            assert agreement(truth, CLUSTERERS["contraction"].cluster(values).labels) < 0.5

    def test_distances_are_clustered_as_similarities_are(self):
        _, (a, b, weights, n) = city()
        values = released(a, b, weights, n)
        turned = Published(
            "laplace",
            values.noise,
            *_as_distances(a, b, values.noisy_weights, n),
        )
        np.testing.assert_array_equal(
            COMMUNITIES.cluster(values).labels, COMMUNITIES.cluster(turned).labels
        )

    def test_unit_and_shift_do_not_matter(self):
        truth, (a, b, weights, n) = city()
        values = released(a, b, weights, n)
        noise = Noise("laplace", 2.0**-20, -80, len(a))
        scaled = values.noisy_weights * 2.0**-20 + 2.0**-10
        graph = Graph(a, b, scaled, n_nodes=n, kind="similarity")
        tree = minimum_spanning_tree(graph)
        tree = Tree(tree.topology, scaled[tree.edge_ids], tree.edge_ids, kind="similarity")
        again = Published("laplace", noise, tree, graph.topology, scaled)
        found = [COMMUNITIES.cluster(each).labels for each in (values, again)]
        assert agreement(*found) > 0.99
        assert agreement(truth, found[0]) > 0.85

    def test_two_levels_of_weights_are_those_of_contraction(self):
        """A path of nodes falls apart without some of its edges: only two levels hold it."""
        random = np.random.default_rng(0)
        n = 200
        truth = np.arange(n) // 100
        path = [
            (i, j) for i in range(n) for j in range(i + 1, min(i + 4, n)) if i // 100 == j // 100
        ]
        cross = {
            (int(i), int(j))
            for i, j in zip(random.integers(0, 100, 900), random.integers(100, n, 900))
        }
        a, b = np.array([*path, *sorted(cross)]).T
        weights = np.where(truth[a] == truth[b], 0.2, 0.9)
        values = released(a, b, weights, n, scale=0.05, distribution="gaussian", kind="distance")
        found = COMMUNITIES.cluster(values)
        assert agreement(truth, found.labels) == 1.0
        np.testing.assert_array_equal(
            found.labels, CLUSTERERS["contraction"].cluster(values).labels
        )


def _as_distances(a, b, noisy, n):
    graph = Graph(a, b, -noisy, n_nodes=n)
    tree = minimum_spanning_tree(graph)
    return Tree(tree.topology, -noisy[tree.edge_ids], tree.edge_ids), graph.topology, -noisy


@cache
def school():
    """Eight classes in four years."""
    random = np.random.default_rng(8)
    classes = random.permutation(np.arange(120) % 8)
    a, b, weights, n = counts(
        np.stack([classes, classes // 2]), ratios=(1.0, 5.0, 40.0), seed=1, tail=0.5, mean=6.0
    )
    return classes, COMMUNITIES.cluster(released(a, b, weights, n))


class TestLevels:
    def test_classes_and_years_are_both_there(self):
        classes, found = school()
        scores = [
            (agreement(classes // 2, level.labels), agreement(classes, level.labels))
            for level in found.levels
        ]
        assert max(years for years, _ in scores) > 0.95
        assert max(one for _, one in scores) > 0.95

    def test_each_refines_the_one_before(self):
        _, found = school()
        assert len(found.levels) >= 2
        for coarse, fine in zip(found.levels, found.levels[1:]):
            assert coarse.n_clusters < fine.n_clusters
            pairs = np.unique(np.stack([fine.labels, coarse.labels]), axis=1)
            assert pairs.shape[1] == fine.n_clusters
        assert all(level.support > 0 for level in found.levels)
        assert any(np.array_equal(level.labels, found.labels) for level in found.levels)


class TestTopology:
    def test_what_the_topology_gives_away_is_said(self):
        random = np.random.default_rng(4)
        truth = random.permutation(np.arange(200) % 5)
        a, b = np.triu_indices(200, 1)
        kept = random.random(len(a)) < np.where(truth[a] == truth[b], 0.3, 0.02)
        a, b = a[kept], b[kept]
        values = released(a, b, random.poisson(5.0, len(a)).astype(float), 200)
        found = COMMUNITIES.cluster(values)
        assert agreement(truth, found.topology_labels) > 0.95
        assert agreement(truth, found.labels) > 0.95

    def test_geometry_is_not_taken_for_clusters(self):
        """Arcs of a ring predict its edges, and none of them is a cluster."""
        random = np.random.default_rng(2)
        n = 300
        ring = {(i, (i + k) % n) for i in range(n) for k in (1, 2, 3, 4)}
        more = {(int(i), int(j)) for i, j in random.integers(0, n, (600, 2)) if i != j}
        a, b = np.array(sorted({(min(e), max(e)) for e in ring | more})).T
        found = COMMUNITIES.cluster(released(a, b, np.full(len(a), 5.0), n))
        assert found.labels.max() == 0
        assert found.topology_labels is None

    def test_complete_graphs_have_no_topology(self):
        _, (a, b, weights, n) = city()
        assert COMMUNITIES.cluster(released(a, b, weights, n)).topology_labels is None


class TestNothing:
    @pytest.mark.parametrize("share", [1.0, 0.1])
    def test_sizes_alone_are_no_clusters(self, share):
        for seed in range(3):
            a, b, weights, n = counts(np.zeros(60), ratios=(1.0, 1.0), share=share, seed=seed)
            values = released(a, b, weights, n, seed=seed)
            found = COMMUNITIES.cluster(values)
            assert found.n_clusters == values.topology.n_components
            assert found.levels == ()
            assert "one cluster is the answer" in found.description[-1]

    @pytest.mark.long
    @pytest.mark.parametrize("share", [1.0, 0.1])
    def test_false_alarms_are_rare(self, share):
        alarms = 0
        for seed in range(100, 300):
            a, b, weights, n = counts(np.zeros(60), ratios=(1.0, 1.0), share=share, seed=seed)
            values = released(a, b, weights, n, seed=seed)
            alarms += COMMUNITIES.cluster(values).n_clusters > values.topology.n_components
        assert alarms <= 6  # of 200, at most 1 in 100: more than 6 come by chance once in 200

    def test_clusters_of_the_topology_are_joined(self):
        """Where noise is large single nodes cannot tell where they belong, and arcs can."""
        planted = planted_graph("moons", 2000, seed=5)
        graph = planted.graph
        a, b = graph.topology.sources, graph.topology.targets
        values = released(a, b, 2.0 - graph.weights, 2000, scale=0.5, seed=1)
        assert agreement(planted.truth, COMMUNITIES.cluster(values).labels) > 0.9

    def test_what_would_have_shown(self):
        truth, (a, b, weights, n) = city()
        drowned = COMMUNITIES.cluster(released(a, b, weights, n, scale=3000.0))
        assert drowned.n_clusters == 1
        assert "epsilon" in drowned.description[-1]
        assert agreement(truth, COMMUNITIES.cluster(released(a, b, weights, n)).labels) > 0.85


class TestManyEdges:
    """More than 20,000: patches are joined to blocks, judged by edges that these have not seen."""

    def planted(self, family, scale, seed=33, **choices):
        """Return the truth and a release of a graph with 3000 nodes."""
        known = planted_graph(family, 3000, seed=seed, **choices)
        graph = known.graph
        a, b = graph.topology.sources, graph.topology.targets
        values = released(a, b, 2.0 - graph.weights, 3000, scale=scale, distribution="gaussian")
        assert len(a) > 20_000
        return known.truth, values

    @pytest.mark.parametrize(
        ("family", "scale", "least", "choices"),
        [
            ("blobs", 0.75, 0.99, {}),
            ("multiscale", 0.35, 0.99, {}),
            ("multiscale", 0.42, 0.9, {"seed": 34}),
            ("blobs", 0.6, 0.8, {"n_clusters": 30, "decoys": True}),
        ],
    )
    def test_clusters_are_found_in_much_noise(self, family, scale, least, choices):
        """Contraction of single nodes fits the noise here: its ARI is 0.03, 0.87 and 0.47."""
        truth, values = self.planted(family, scale, **choices)
        assert agreement(truth, COMMUNITIES.cluster(values).labels) > least

    def test_weights_support_moons_where_arcs_are_stable(self):
        """A dense topology shows the same arcs without any edges, and weights do not."""
        known = planted_graph("moons", 1000, neighbours=24, cross_edges=12_000, seed=1)
        graph = known.graph
        a, b = graph.topology.sources, graph.topology.targets
        values = released(a, b, 2.0 - graph.weights, 1000, scale=0.35, distribution="gaussian")
        trial = Trial(Edges.of(values))
        best = trial.best_of(trial.candidates())
        assert best.is_stable
        assert best.weights > 1000
        assert agreement(known.truth, best.labels) < 0.5
        assert agreement(known.truth, TwoLevels(trial).instead_of(best).labels) > 0.99

    def test_patches_are_finer_where_there_are_more_edges(self):
        _, values = self.planted("blobs", 0.5)
        trial = Trial(Edges.of(values))
        trial.candidates()
        sizes = [3000 / (int(each.labels.max()) + 1) for each in TwoLevels(trial).patches]
        assert sizes == sorted(sizes, reverse=True)
        assert len(sizes) == 7  # six resolutions of candidates, and one in 5,600 edges
        assert 20 < sizes[-1] < 60

    def test_levels_within_levels_are_told_by_pairs_of_clusters(self):
        """By "together or apart" two clusters of two are as good as four."""
        random = np.random.default_rng(0)
        truth = np.arange(400) % 4
        a, b = np.triu_indices(400, 1)
        top = truth[a] % 2 == truth[b] % 2
        level = np.where(truth[a] == truth[b], 2.0, np.where(top, 1.2, 0.0))
        weights = level + random.normal(0, 0.5, len(a))
        judge = Judge(Edges.of(released(a, b, weights, 400)), weights, np.zeros(len(a)))
        held = np.arange(len(a))
        two, four = (judge.blocks_tell(each[a], each[b], held) for each in (truth % 2, truth))
        assert two[0] > four[0] + 1000
        assert four.max() == four[2] > two.max() + 100

    def test_blocks_of_busy_and_quiet_nodes_say_nothing(self):
        """Given what the sizes of nodes make of weights; without, they say much."""
        random = np.random.default_rng(0)
        size = random.lognormal(0, 1, 300)
        a, b = np.triu_indices(300, 1)
        expected = size[a] * size[b]
        weights = expected * random.lognormal(0, 0.5, len(a))
        held, is_busy = np.arange(len(a)), (size > np.median(size)).astype(np.int64)
        edges = Edges.of(released(a, b, weights, 300, scale=0.01))
        judge = Judge(edges, weights, expected)
        assert judge.blocks_tell(is_busy[a], is_busy[b], held).max() < 300
        judge._tables = judge._tables[:1]
        assert judge.blocks_tell(is_busy[a], is_busy[b], held).max() > 10_000

    def test_clusters_that_are_one_are_not_told_apart(self):
        random = np.random.default_rng(0)
        truth = np.arange(400) % 2
        a, b = np.triu_indices(400, 1)
        weights = np.where(truth[a] == truth[b], 2.0, 0.0) + random.normal(0, 0.5, len(a))
        judge = Judge(Edges.of(released(a, b, weights, 400)), weights, np.zeros(len(a)))
        held = np.arange(len(a))
        halves = truth + 2 * (np.arange(400) < 200)
        told, cut = (judge.blocks_tell(each[a], each[b], held) for each in (truth, halves))
        assert told.max() > cut.max() + 100

    def test_parts_that_agree_decide_where_all_edges_lead_elsewhere(self):
        truth, values = self.planted("multiscale", 0.5)
        trial = Trial(Edges.of(values))
        other = np.random.default_rng(0).integers(0, 4, len(truth))
        for labels, parts, wanted in (
            (other, (truth,) * 5, truth),
            (truth, (truth,) * 5, truth),
            (other, (truth, truth, other, truth, other), other),
        ):
            assert _central(trial.found(labels, parts)).labels is wanted

    def test_a_cluster_has_one_distribution_in_all_parts(self):
        """Whatever its number is there; the more parts, the more would it cost to have many."""
        truth, values = self.planted("multiscale", 0.5)
        trial = Trial(Edges.of(values))
        random = np.random.default_rng(0)
        by_fold = tuple(random.permutation(4)[truth] for _ in trial.folds)
        tell, same = TwoLevels(trial).blocks_tell, (truth,) * len(by_fold)
        told = tell(trial.found(truth, by_fold))
        assert told == pytest.approx(tell(trial.found(truth, same)))
        a, b = truth[trial.edges.sources], truth[trial.edges.targets]
        apart = sum(trial.judge.blocks_tell(a[e], b[e], e).max() for e in trial.folds)
        assert told > apart + 50

    @pytest.mark.parametrize(
        ("n_clusters", "ratio", "inside", "n_made"),
        [
            (20, 10.0, 0.6, 0),  # one partition at all resolutions
            (200, 10.0, 0.6, 0),  # at one of them, again and again
            (20, 1.5, 0.3, 1),
        ],
    )
    def test_what_is_found_again_and_again_needs_no_others(
        self, n_clusters, ratio, inside, n_made, monkeypatch
    ):
        """A part of the edges shows it."""
        made = []

        def counted(edges):
            made.append(edges)
            return Trial(edges)

        monkeypatch.setattr("ptclust.clustering.communities.Trial", counted)
        random = np.random.default_rng(0)
        truth = np.sort(random.integers(n_clusters, size=3000))
        first, last = (np.searchsorted(truth, truth, side) for side in ("left", "right"))
        a = np.repeat(np.arange(3000), 10)
        near = random.integers(first[a], last[a])
        b = np.where(random.random(len(a)) < inside, near, random.integers(3000, size=len(a)))
        a, b = np.unique(np.sort(np.stack([a, b])[:, a != b], axis=0), axis=1)
        weights = np.where(truth[a] == truth[b], ratio, 1.0)
        found = COMMUNITIES.cluster(released(a, b, weights, 3000, scale=0.3))
        assert len(made) == n_made
        assert agreement(truth, found.labels) > (0.9 if made else 0.99)

    def test_arcs_are_not_found_again(self):
        """However clear weights are: where modularity cuts a moon is chance."""
        _, values = self.planted("moons", 0.01)
        trial = LargeTrial(Edges.of(values))
        best = trial.best_of(trial.candidates())
        assert best.labels.max() > 5
        assert not trial.is_settled


def neighbours(seed, n_points=2000):
    """Return a release of noise on points that are joined to the eight nearest."""
    random = np.random.default_rng(seed)
    points = random.random((n_points, 2))
    _, near = KDTree(points).query(points, k=9)
    a, b = np.repeat(np.arange(n_points), 8), near[:, 1:].ravel()
    a, b = np.unique(np.sort(np.stack([a, b]), axis=0), axis=1)
    weights = random.poisson(10.0, len(a)).astype(float)
    return released(a, b, weights, n_points, seed=seed)


def test_geometry_alone_has_no_clusters():
    """Where neighbours have neighbours in common, chance has negative standard errors."""
    trials = [Trial(Edges.of(neighbours(seed))) for seed in range(3)]
    for trial in trials:
        found = [trial.tried(trial.by_modularity(1.0, gamma)) for gamma in (1.0, 3.0)]
        assert all(abs(trial.beyond_chance(each)) < CLEAR for each in found)
        assert trial.best_of(trial.candidates()) is None
    assert any(trial.known[2].deviations() < -CLEAR for trial in trials)


class TestLargeGraphs:
    @pytest.fixture(autouse=True)
    def _large(self, monkeypatch):
        """Make graphs of this size large."""
        for limit in ("MANY", "_MAY_BE_CLEAR"):
            monkeypatch.setattr(f"ptclust.clustering.communities.{limit}", 1000)

    def blocks(self, ratio=4.0, seed=0, n_blocks=6, inside=0.15, spread=0.7):
        """Return a release of sparse blocks whose topology and weights both show them."""
        random = np.random.default_rng(seed)
        truth = random.permutation(np.arange(600) % n_blocks)
        a, b = np.triu_indices(600, 1)
        kept = random.random(len(a)) < np.where(truth[a] == truth[b], inside, 0.02)
        a, b = a[kept], b[kept]
        size = random.lognormal(0, spread, 600)
        expected = size[a] * size[b] * np.where(truth[a] == truth[b], ratio, 1.0)
        weights = random.poisson(8 * expected / expected.mean()).astype(float)
        return truth, released(a, b, weights, 600)

    def test_clusters_are_found(self):
        truth, values = self.blocks()
        found = COMMUNITIES.cluster(values)
        assert agreement(truth, found.labels) > 0.95
        np.testing.assert_array_equal(found.labels, COMMUNITIES.cluster(values).labels)

    def test_all_pairs_joined(self):
        truth, (a, b, weights, n) = city()
        assert agreement(truth, COMMUNITIES.cluster(released(a, b, weights, n)).labels) > 0.85

    def test_sizes_alone_are_no_clusters(self):
        for seed in range(5):
            a, b, weights, n = counts(
                np.zeros(300), ratios=(1.0, 1.0), share=0.1, seed=seed, mean=20.0
            )
            found = COMMUNITIES.cluster(released(a, b, weights, n, seed=seed))
            assert found.n_clusters == 1
            assert found.topology_labels is None

    def ring(self, seed):
        """Return a release of noise on a ring, every node joined to the eight next."""
        nodes = np.arange(4000)
        a, b = np.tile(nodes, 8), np.concatenate([(nodes + i) % 4000 for i in range(1, 9)])
        random = np.random.default_rng(seed)
        weights = random.lognormal(2, 1, len(a))
        return released(np.minimum(a, b), np.maximum(a, b), weights, 4000, scale=50.0, seed=seed)

    def test_arcs_of_a_ring_are_no_clusters(self):
        for seed in range(4):
            assert COMMUNITIES.cluster(self.ring(seed)).n_clusters == 1

    def grid(self, seed, side=150):
        """Return a release of noise on a grid."""
        node = np.arange(side * side).reshape(side, side)
        a = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
        b = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
        weights = np.random.default_rng(seed).poisson(10.0, len(a)).astype(float)
        return released(a, b, weights, side * side, scale=10.0, seed=seed)

    def test_pieces_of_a_grid_are_no_clusters(self):
        """Weights that say nothing do not know of a partition that they made."""
        for seed in range(3):
            assert COMMUNITIES.cluster(self.grid(seed)).n_clusters == 1

    def test_searches_make_standard_errors_of_chance(self):
        """What they find in weights that know nothing looks clear, and is not."""
        for seed in range(4):
            random = np.random.default_rng(seed)
            pairs = np.sort(random.integers(0, 4000, (30_000, 2)), axis=1)
            a, b = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0).T
            trial = LargeTrial(Edges.of(released(a, b, random.lognormal(2, 1, len(a)), 4000)))
            found = trial.tried(trial.by_modularity(1.0, 4.0))
            assert found.deviations() > CLEAR
            assert abs(trial.beyond_chance(found)) < CLEAR

    def test_exchanged_weights_stay_in_their_group(self):
        edges = Edges.of(self.ring(0))
        group = np.arange(len(edges.sources)) % 3
        other = edges.exchanged(group, np.random.default_rng(0))
        for each in range(3):
            before, after = (np.sort(e.similarity[group == each]) for e in (edges, other))
            np.testing.assert_array_equal(before, after)
        assert (edges.similarity != other.similarity).mean() > 0.9
        order = np.argsort(other.similarity)
        assert (np.diff(other.distance[order]) <= 0).all()  # each weight moved as one

    @pytest.fixture
    def searches(self, monkeypatch):
        """Return the searches as they are made: whether from single nodes, with all edges."""
        made = []
        search = View.search_at

        def counted(view, data, mass, start=None, price=0.0):
            made.append((view.start is None and start is None, view.number == 0))
            return search(view, data, mass, start, price)

        monkeypatch.setattr(View, "search_at", counted)
        return made

    def test_every_search_is_made_once(self, searches):
        """From single nodes: weights, exchanged ones, topology twice, two levels, ratios.

        The first turns of weights, among heavy edges, are searches of their own.
        """
        COMMUNITIES.cluster(self.blocks()[1])
        assert sum(alone for alone, _ in searches) <= 6
        assert len(searches) <= 14 + 1

    def test_where_all_agree_nothing_else_is_sought(self, searches, monkeypatch):
        """Weights alone are sought from single nodes; with all edges only if some have judged."""
        truth, values = self.blocks(ratio=10.0, n_blocks=20, inside=0.8, spread=0.1)
        whole = []
        for part in (0.01, 1.0):
            monkeypatch.setattr("ptclust.clustering.communities._large._NOTHING_NEW", part)
            searches.clear()
            assert agreement(truth, COMMUNITIES.cluster(values).labels) == 1.0
            assert sum(alone for alone, _ in searches) == 1
            assert len(searches) <= 6
            whole.append(sum(with_all for _, with_all in searches))
        assert whole == [1, 0]

    def test_two_levels_are_not_asked_where_all_agree(self, monkeypatch):
        asked = []
        monkeypatch.setattr(TwoLevels, "search", lambda *_: asked.append(1))
        truth, values = self.blocks(ratio=10.0, n_blocks=20, inside=0.8, spread=0.1)
        assert agreement(truth, COMMUNITIES.cluster(values).labels) == 1.0
        assert not asked

    def test_the_first_turn_looks_at_heavy_edges(self, monkeypatch):
        """Of weights that are not noise for the most part, and with all edges in the next turn."""
        seen = []
        search = View.search_at

        def noted(view, data, mass, start=None, price=0.0):
            seen.append((len(data), view.turns))
            return search(view, data, mass, start, price)

        monkeypatch.setattr(View, "search_at", noted)
        truth, values = self.blocks()
        trial = LargeTrial(Edges.of(values))
        n_places = 2 * len(trial.views[0].edges.sources)
        found = trial.tried(trial.by_modularity(1.0, 4.0))
        (n_first, *_), second = seen
        assert 0.2 * n_places < n_first < 0.6 * n_places
        assert second == (n_places, 1)
        seen.clear()
        full = trial.tried(trial.by_modularity(8.0, 4.0))
        assert seen == [(n_places, 2)]
        assert agreement(truth, found.labels) > agreement(truth, full.labels) - 0.02

    def test_heavier_edges_are_those_beyond_expectation(self):
        _, values = self.blocks()
        trial = LargeTrial(Edges.of(values))
        view, seen = trial.views[0], trial._kept
        near, weights = seen.heavier(view.at_places(view.compressed(1.0)))
        kept = view.compressed(1.0) > expected_by_size(view.edges, view.size(1.0))
        some = view.edges.at(kept)
        wanted = adjacency(some.sources, some.targets, some.n_nodes)
        np.testing.assert_array_equal(near.indptr, wanted.indptr)
        np.testing.assert_array_equal(near.neighbours, wanted.neighbours)
        np.testing.assert_array_equal(
            weights, view.compressed(1.0)[kept].astype(np.float32)[wanted.edges]
        )

    def test_few_edges_judge(self, monkeypatch):
        monkeypatch.setattr("ptclust.clustering.communities._large._JUDGES", 700)
        _, values = self.blocks()
        trial = LargeTrial(Edges.of(values))
        assert len(trial.edges.sources) == 700
        assert len(trial.views[0].edges.sources) == values.topology.n_edges - 700

    def test_nodes_are_taken_out_of_what_edges_say(self):
        """Values that are two terms a node leave nothing, and chance leaves what it is."""
        random = np.random.default_rng(0)
        a, b = np.triu_indices(200, 1)
        near = adjacency(a, b, 200)
        term, expected = random.normal(0, 1, 200), random.random(len(a))
        everywhere = np.ones(len(near.edges), bool)
        for values, most in ((term[a] + term[b], 0.05), (random.normal(0, 1, len(a)), 1.1)):
            mean, constant, slope = fit_node_terms(
                near.indptr,
                near.neighbours,
                values[near.edges],
                expected[near.edges],
                everywhere,
                np.tile(np.arange(200), 10),
            )
            left = values - mean - constant[a] - constant[b] - expected * (slope[a] + slope[b])
            assert most / 2 * (most > 1) < left.std() < most

    def test_quick_sizes_are_about_the_same(self):
        _, values = self.blocks()
        edges = Edges.of(values)
        weights = edges.compressed(1.0)
        expected, quick = (
            expected_by_size(edges, sizes(edges, weights)) for sizes in (node_sizes, quick_sizes)
        )
        assert np.abs(quick - expected).mean() < 0.02 * expected.mean()


@pytest.mark.long
def test_three_hundred_thousand_edges():
    random = np.random.default_rng(0)
    n = 30_000
    truth = random.permutation(np.arange(n) % 300)
    members = np.argsort(truth, kind="stable").reshape(300, 100)
    inner = members[
        random.integers(0, 300, 180_000)[:, None], random.integers(0, 100, (180_000, 2))
    ]
    pairs = np.sort(np.concatenate([inner, random.integers(0, n, (150_000, 2))]), axis=1)
    a, b = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0).T
    weights = random.poisson(np.where(truth[a] == truth[b], 12.0, 4.0)).astype(float)
    assert len(a) > 250_000
    assert agreement(truth, COMMUNITIES.cluster(released(a, b, weights, n)).labels) > 0.99


def test_clusters_divided_by_different_candidates_stay_apart():
    """Two candidates may give parts of two clusters the same number."""
    labels = np.repeat([0, 1], 6)
    halves = np.tile(np.repeat([0, 1], 3), 2)
    found = SimpleNamespace(labels=halves, together=np.ones(1, bool), by_fold=())
    turn = iter((0, 1))

    def nats(*_):
        return np.where(np.arange(2) == next(turn), 50.0, 0.0)

    judge = SimpleNamespace(weights_tell_by=nats, deviations_by=lambda *_: np.full(2, 9.0))
    trial = SimpleNamespace(
        edges=SimpleNamespace(sources=np.zeros(1, np.int64)),
        held=np.zeros(1, np.int64),
        judge=judge,
    )
    whole = SimpleNamespace(divided=lambda _: (trial, [found] * 2))
    divided, _ = _levels._divided(whole, labels)
    assert len(np.unique(divided)) == 4


def test_sums_at_nodes_are_those_of_numpy():
    random = np.random.default_rng(0)
    a, b = random.integers(40, size=(2, 300)).astype(np.int32)
    values, n_nodes = random.normal(size=300), 50
    at_sources, at_targets = (np.bincount(ends, values, n_nodes) for ends in (a, b))
    np.testing.assert_array_equal(sums_at(a, values, n_nodes), at_sources)
    near = adjacency(a, b, n_nodes)
    at_nodes = sums_at_nodes(near.indptr, values[near.edges])
    np.testing.assert_allclose(at_nodes, at_sources + at_targets, atol=1e-12)
