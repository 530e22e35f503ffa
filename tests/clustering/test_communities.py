"""Clusters of released graphs: the model, the search, the judge, the test, and the whole."""

from __future__ import annotations

from functools import cache, partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import KDTree
from scipy.special import gammaln

from experiments.heterogeneous import null_graph
from experiments.planted import planted_graph
from experiments.real import real_graph
from ptclust._components import adjacency
from ptclust._statistics import agreement
from ptclust.clustering import CLUSTERERS
from ptclust.clustering.communities import _finer, _search, _trial
from ptclust.clustering.communities._blocks import MOST, join_pairs, pair_counts, priors_of
from ptclust.clustering.communities._judge import nats_of, nats_of_pairs, nats_of_topology
from ptclust.clustering.communities._model import (
    BINS,
    CUTS,
    Edges,
    Table,
    expected_weights,
    groups_of,
    tables_of,
)
from ptclust.clustering.communities._search import (
    Description,
    Recipe,
    View,
    description_length,
    log_ratios,
)
from ptclust.clustering.communities._search_kernel import search_communities
from ptclust.clustering.communities._test import WeightTest
from ptclust.estimators import PTClust
from ptclust.graph import Graph
from ptclust.privacy import Sensitivity
from ptclust.privacy.noise import Noise
from ptclust.published import Published
from ptclust.trees import Tree, minimum_spanning_tree

COMMUNITIES = CLUSTERERS["communities"]
WEIGHTS, NOT_WEIGHTS = ("weights", "both"), ("topology", "none")


def released(a, b, weights, n, *, seed=0, scale=1.0, kind="similarity", unit=1.0):
    """Return weights with Laplace noise, in a unit, as a mechanism publishes them."""
    noise = np.random.default_rng([seed, 1]).laplace(0, scale, len(a))
    graph = Graph(a, b, (weights + noise) * unit, n_nodes=n, kind=kind)
    noisy = graph.weights.copy()
    tree = minimum_spanning_tree(graph)
    tree = Tree(tree.topology, noisy[tree.edge_ids], tree.edge_ids, kind=kind)
    known = Noise("laplace", scale * abs(unit), -80, len(a))
    return Published("laplace", known, tree, graph.topology, noisy)


def clustered(*args, **options):
    return COMMUNITIES.cluster(released(*args, **options))


def counts(truth, *, ratios=(1.0, 6.0), seed=0, tail=1.0, mean=8.0):
    """Return Poisson counts of all pairs, of log-normal sizes, by how many labels they share."""
    random = np.random.default_rng(seed)
    truth = np.atleast_2d(truth)
    a, b = np.triu_indices(truth.shape[1], 1)
    size = random.lognormal(0, tail, truth.shape[1])
    shared = (truth[:, a] == truth[:, b]).sum(0)
    expected = size[a] * size[b] * np.array(ratios)[shared] * random.gamma(3, 1 / 3, len(a))
    weights = random.poisson(mean * expected / expected.mean()).astype(float)
    return a, b, weights, truth.shape[1]


@cache
def city():
    """Eighty nodes of very different size in four clusters."""
    truth = np.random.default_rng(5).permutation(np.arange(80) % 4)
    return truth, counts(truth, seed=2)


def cliques(n_cliques, size, weights=10.0):
    """Return a ring of cliques: clusters of the topology; all weights are the same."""
    graph = nx.connected_caveman_graph(n_cliques, size)
    a, b = np.array([sorted(edge) for edge in graph.edges]).T
    return a, b, np.full(len(a), weights), n_cliques * size


class TestModel:
    """No unit, hub, number of a node or node without edges changes what is found."""

    def test_the_unit_of_weights_does_not_matter(self):
        truth, edges = city()
        found = [clustered(*edges, unit=unit).labels for unit in (1.0, 1e-6, 1e6)]
        assert agreement(truth, found[0]) > 0.85
        assert min(agreement(found[0], other) for other in found[1:]) > 0.97

    @pytest.mark.parametrize("factor", [10, 1000])
    def test_one_heavy_hub_does_not_matter(self, factor):
        truth, (a, b, weights, n) = city()
        weights = np.where((a == 7) | (b == 7), factor * weights, weights)
        assert agreement(truth, clustered(a, b, weights, n).labels) > 0.85

    def test_numbers_of_nodes_do_not_matter(self):
        truth, (a, b, weights, n) = city()
        number = np.random.default_rng(3).permutation(n)
        again = clustered(number[a], number[b], weights, n)
        assert agreement(truth, again.labels[number]) > 0.85

    def test_nodes_without_edges_do_not_matter(self):
        truth, (a, b, weights, n) = city()
        found = clustered(a, b, weights, n + 50)
        assert agreement(truth, found.labels[:n]) > 0.85
        assert len(np.unique(found.labels[n:])) == 50  # each is a component of its own
        assert found.evidence.partition in WEIGHTS

    def test_distances_are_clustered_as_similarities_are(self):
        _, edges = city()
        turned = clustered(*edges, unit=-1.0, kind="distance")
        assert turned.labels.tolist() == clustered(*edges).labels.tolist()

    def test_the_background_is_the_least_true_weight(self):
        random = np.random.default_rng(3)
        a, b = np.triu_indices(150, 1)
        true = 10 + np.where(random.random(len(a)) < 0.6, 0.0, random.pareto(1.0, len(a)) * 30)
        values = released(a, b, true, 150, scale=2.0)
        similarity = Edges.of(values).similarity
        unit = np.ptp(values.noisy_weights) / np.ptp(similarity)
        least = np.median(values.noisy_weights - similarity * unit)
        assert abs(least - 10) < values.noise.standard_deviation

    def test_expected_weights_are_products_of_sizes(self):
        _, edges = city()
        seen = Edges.of(released(*edges, scale=0.1))
        expected = expected_weights(seen, seen)
        at_nodes = seen.at_nodes(expected) / seen.at_nodes(seen.log_weights)
        large = seen.at_nodes(seen.log_weights) > np.median(seen.at_nodes(seen.log_weights))
        np.testing.assert_allclose(at_nodes[large], 1.0, rtol=0.15)
        place = {pair: i for i, pair in enumerate(zip(*map(np.ndarray.tolist, edges[:2])))}
        first, second, third, last = (expected[place[p]] for p in ((0, 1), (2, 3), (0, 3), (1, 2)))
        assert first * second == pytest.approx(third * last)

    def test_bins_are_ranks_in_groups(self):
        random = np.random.default_rng(0)
        expected = random.lognormal(0, 1, 3200)
        weights = expected * random.lognormal(0, 1, 3200)
        tables = tables_of(expected, weights)
        assert [table.n_groups for table in tables] == [1, 4, 16]
        monotone = tables_of(expected**2, np.exp(weights / weights.max()))
        for table, other in zip(tables, monotone, strict=True):
            sizes = np.bincount(table.cell, minlength=table.n_groups * BINS).reshape(-1, BINS)
            shares = np.diff(CUTS, prepend=0.0, append=1.0)
            assert np.abs(sizes / sizes.sum(1, keepdims=True) - shares).max() < 0.01
            assert other.cell.tolist() == table.cell.tolist()  # nothing but the order counts
        assert [table.n_groups for table in tables_of(expected[:399], weights[:399])] == [1]


def view_of(a, b, n, weights):
    """Return a view of all edges whose weights have next to no noise."""
    edges = Edges.of(released(a, b, weights, n, scale=1e-9))
    return View(edges, slice(None), np.arange(n))


def value_of(a, b, affinity, mass, price, labels):
    """Return what the search maximises, naively."""
    total = affinity[labels[a] == labels[b]].sum()
    for label in np.unique(labels):
        own = mass[labels == label]
        total -= (own.sum() ** 2 - (own**2).sum()) / 2 + price
    return total


class TestSearch:
    @given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 0.5]))
    @settings(max_examples=40)
    def test_no_move_of_a_node_improves(self, seed, with_mass, price):
        random = np.random.default_rng(seed)
        n = int(random.integers(2, 9))
        a, b = np.triu_indices(n, 1)
        kept = random.random(len(a)) < 0.7
        a, b = a[kept], b[kept]
        affinity = random.normal(0, 1, len(a))
        mass = random.random(n) * with_mass
        near = adjacency(a, b, n)
        labels = search_communities(
            near, affinity[near.edges], mass, random.permutation(n), None, price
        )
        value = value_of(a, b, affinity, mass, price, labels)
        for node in range(n):
            others = {*b[a == node].tolist(), *a[b == node].tolist()}
            for label in {n, *labels[sorted(others)].tolist()}:  # a new one, or one it is joined to
                moved = labels.copy()
                moved[node] = label
                assert value_of(a, b, affinity, mass, price, moved) <= value + 1e-9

    @pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
    @pytest.mark.parametrize("make", [nx.karate_club_graph, nx.les_miserables_graph])
    def test_modularity_is_as_high_as_networkx_finds(self, make, gamma):
        graph = nx.convert_node_labels_to_integers(make())
        edges = sorted((*sorted(e[:2]), e[2]) for e in graph.edges.data("weight"))
        a, b, weights = np.array(edges).T
        a, b, n = a.astype(int), b.astype(int), len(graph)
        strength = np.bincount(a, weights, n) + np.bincount(b, weights, n)
        mass = strength * np.sqrt(gamma / strength.sum())
        near = adjacency(a, b, n)
        labels = search_communities(near, weights[near.edges], mass, np.arange(n))

        def modularity(parts):
            return nx.community.modularity(graph, parts, weight="weight", resolution=gamma)

        parts = [set(np.flatnonzero(labels == each).tolist()) for each in np.unique(labels)]
        found = nx.community.louvain_communities(graph, resolution=gamma, seed=0)
        assert modularity(parts) > modularity(found) - 0.01
        in_view = view_of(a, b, n, weights).modularity(weights, gamma)  # tiny ones are joined there
        assert agreement(labels, in_view) > 0.8
        # What is maximised is modularity, but for a constant: that of single nodes.
        value = value_of(a, b, weights, mass, 0.0, labels)
        alone = modularity([{node} for node in range(n)])
        assert value / weights.sum() == pytest.approx(modularity(parts) - alone)

    def test_a_null_model_stays_within_given_clusters(self):
        """Halves that are searched apart are divided as if each was the whole graph."""
        a, b, weights, n = cliques(4, 6)
        both_a, both_b = np.append(a, a + n), np.append(b, b + n)
        within = np.repeat([0, 1], n)
        edges = Edges.of(released(both_a, both_b, np.tile(weights, 2), 2 * n, scale=1e-9))
        one = view_of(a, b, n, weights).modularity(weights, 1.0)
        both = View(edges, slice(None), np.arange(2 * n), within).modularity(
            np.tile(weights, 2), 1.0
        )
        for half in (both[:n], both[n:]):
            assert agreement(one, half) == 1.0

    def test_tiny_clusters_join_others(self):
        a, b, weights, n = cliques(4, 6)
        a, b = np.append(a, 3), np.append(b, n)  # a node that hangs on a clique, and would not
        view, mass = view_of(a, b, n + 1, np.append(weights, 1.0)), np.zeros(n + 1)
        affinity = np.where(np.maximum(view.edges.sources, view.edges.targets) == n, -1.0, 1.0)
        alone = search_communities(view.near, affinity[view.near.edges], mass, view.order)
        assert (alone == alone[n]).sum() == 1
        joined = view.search(affinity, mass)
        assert joined[n] == joined[3]

    def view_of_planted(self, family, scale):
        """Return the truth, a view of all edges, and their tables."""
        planted = planted_graph(family, 600, seed=2)
        graph, kind = planted.graph, "distance"
        noisy = released(graph.sources, graph.targets, graph.weights, 600, scale=scale, kind=kind)
        edges = Edges.of(noisy)
        tables = tables_of(expected_weights(edges, edges), edges.similarity)
        return planted.truth, View(edges, slice(None), np.arange(600)), tables

    def test_pairs_of_clusters_join_the_arcs_of_a_ring(self):
        """Modularity cuts two rings into arcs, and what the weights of these show joins them."""
        truth, view, (table, *_) = self.view_of_planted("circles", 0.05)
        arcs = view.modularity(view.weights("log weights"), 5.0)
        assert agreement(truth, arcs) < 0.5
        joined = view.joined(arcs, table)
        assert agreement(truth, joined) > 0.9
        assert agreement(truth, view.moved(joined, table)) > 0.9

    @pytest.mark.parametrize("family", ["chains", "multiscale"])
    def test_the_shortest_description_is_nearly_the_truth(self, family):
        """No partition of high modularity is, and none of them is described as shortly."""
        truth, view, tables = self.view_of_planted(family, 0.03)
        length = partial(description_length, view, tables[-1], 0.5)
        usual = Recipe("log weights", 1.0).search(view)
        found = Description(tables, 0.5).search(view)
        assert length(found) < length(usual) - 100
        assert agreement(truth, usual) < 0.6 < 0.8 < agreement(truth, found)

    def test_a_description_is_as_long_as_edges_told_one_by_one(self):
        """Every edge costs what those of its pair of clusters before it say; names cost, too."""
        truth, view, (table, *_) = self.view_of_planted("blobs", 0.05)
        a, b = (np.sort([truth[view.edges.sources], truth[view.edges.targets]], axis=0)).tolist()
        bins = table.bins.tolist()
        known = priors_of(pair_counts(np.array(a), np.array(b), table.bins, truth.max() + 1))
        told = 0.0
        for first, second, chosen in zip(a, b, bins, strict=True):
            told -= np.log(known[first, second, chosen] / known[first, second].sum())
            known[first, second, chosen] += 1
        names = -np.log(np.bincount(truth) / len(truth))[truth].sum()
        for share in (0.0, 0.5, 1.0):
            length = description_length(view, table, share, truth)
            assert length == pytest.approx(told + share * names)

    def test_too_many_clusters_are_not_described(self, monkeypatch):
        """If there are no others they are found as they are; equal weights need one cluster."""
        a, b, weights, n = cliques(MOST + 1, 3)
        view = view_of(a, b, n, weights)
        tables = tables_of(expected_weights(view.edges, view.edges), view.edges.similarity)
        assert description_length(view, tables[-1], 1.0, np.arange(n) // 3) == np.inf
        assert Description(tables, 1.0).search(view).max() == 0
        monkeypatch.setattr(_search, "MOST", 0)
        assert len(Description(tables, 1.0).search(view_of(a, b, n, weights))) == n

    @given(st.integers(0, 10**6), st.sampled_from([0.0, 3.0]))
    @settings(max_examples=25)
    def test_joins_are_the_greedy_ones_of_the_evidence(self, seed, price):
        """Against all of the evidence, computed anew for every possible join."""
        random = np.random.default_rng(seed)
        n_clusters, n_edges = int(random.integers(2, 7)), 60
        a, b = random.integers(0, n_clusters, (2, n_edges))
        bins = random.integers(0, BINS, n_edges) * (random.random(n_edges) < 0.5)
        within, across = random.random((2, BINS)) + 0.1

        def evidence(labels):
            total = 0.0
            for x in np.unique(labels):
                for y in np.unique(labels[labels >= x]):
                    ends = np.sort([labels[a], labels[b]], axis=0)
                    chosen = bins[(ends[0] == x) & (ends[1] == y)]
                    prior = within if x == y else across
                    n = np.bincount(chosen, minlength=BINS)
                    total += gammaln(prior.sum()) - gammaln(prior.sum() + n.sum())
                    total += (gammaln(n + prior) - gammaln(prior)).sum()
            return total - price * len(np.unique(labels))

        naive = np.arange(n_clusters)
        while True:
            joins = [
                np.where(naive == y, x, naive)
                for x in np.unique(naive)
                for y in np.unique(naive)
                if x < y and {(x, y), (y, x)} & set(zip(naive[a], naive[b]))
            ]
            best = max(joins, key=evidence, default=naive)
            if evidence(best) <= evidence(naive) + 1e-9:
                break
            naive = best
        counts = pair_counts(a, b, bins, n_clusters)
        assert join_pairs(counts, within, across, price).tolist() == naive.tolist()

    def test_log_ratios_are_those_of_shares(self):
        random = np.random.default_rng(1)
        together = random.random(200_000) < 0.3
        cell = np.where(together, random.integers(0, BINS, 200_000), 0)
        cell = np.where(random.random(200_000) < 0.5, cell, random.integers(0, BINS, 200_000))
        ratios = log_ratios(cell, together, 1)
        shares = [np.bincount(cell[some], minlength=BINS) for some in (together, ~together)]
        expected = np.log(shares[0] / shares[0].sum()) - np.log(shares[1] / shares[1].sum())
        np.testing.assert_allclose(ratios, expected, atol=0.01)


class TestJudge:
    def tables(self, seed, n_edges=400):
        random = np.random.default_rng(seed)
        return tables_of(random.lognormal(0, 1, n_edges), random.lognormal(0, 1, n_edges))

    def test_random_labels_reach_x_nats_with_a_chance_below_exp_minus_x(self):
        random = np.random.default_rng(0)
        tables = self.tables(0)
        nats = np.array([nats_of(random.random(400) < 0.3, tables) for _ in range(2000)])
        for x in (0.0, 1.0, 2.0, 4.0):
            allowed = 2000 * np.exp(-x)
            assert (nats > x).sum() <= allowed + 4.8 * np.sqrt(allowed)

    def test_nats_grow_with_what_weights_tell(self):
        random = np.random.default_rng(1)
        tables = self.tables(1)
        high = tables[0].bins >= BINS // 2
        found = [nats_of(high ^ (random.random(400) < error), tables) for error in (0.4, 0.2, 0)]
        assert 0 < found[0] < found[1] < found[2]
        assert found[2] > 150

    def test_a_bayes_factor_of_counts(self):
        """Of one table, by the sum over all ways to divide its bins, from the definition."""
        random = np.random.default_rng(2)
        table = Table(random.integers(0, 2 * BINS, 60), 2)
        together = random.random(60) < 0.5

        def evidence(cells):
            """The chance of draws in their order, one after the other (Jeffreys' prior)."""
            seen, log = np.full(cells.max(initial=0) + 1, 0.5), 0.0
            for i, cell in enumerate(cells):
                log += np.log(seen[cell] / (i + 0.5 * self.size))
                seen[cell] += 1
            return log

        factors = []
        for cuts in (None, 4, 5, 6):  # at shares of .5, .75 and .875: see CUTS
            bins = table.bins if cuts is None else (table.bins >= cuts - 1).astype(int)
            self.size = BINS if cuts is None else 2
            total = 0.0
            for group in range(2):
                own = table.cell // BINS == group
                for some, sign in ((together, 1), (~together, 1), (together | ~together, -1)):
                    total += sign * evidence(bins[own & some])
            factors.append(total)
        expected = np.logaddexp.reduce(factors) - np.log(4)
        assert nats_of(together, [table]) == pytest.approx(expected)

    def test_pairs_of_clusters_tell_what_together_does_not(self):
        """Weights across are high or low by the pair of clusters, and on average as within."""
        random = np.random.default_rng(3)
        a, b = random.integers(0, 3, (2, 6000))
        high = random.random(6000) < np.where(a == b, 0.5, np.where(a + b == 1, 0.8, 0.3))
        bins = np.where(high, random.integers(4, BINS, 6000), random.integers(0, 4, 6000))
        seen, unseen = ((a[i], b[i], bins[i]) for i in (slice(0, 5000), slice(5000, None)))
        assert nats_of_pairs(seen, unseen) > 30
        shuffled = random.permutation(1000)
        assert nats_of_pairs(seen, (*unseen[:2], unseen[2][shuffled])) < 0
        assert nats_of_pairs((a * 70, b, bins), unseen) == -np.inf  # too many to learn

    def test_the_topology_tells_nothing_of_chance(self):
        random = np.random.default_rng(0)
        chance = np.full(2000, 0.3)
        by_chance = [nats_of_topology(random.random(2000) < 0.3, chance) for _ in range(200)]
        assert np.mean(np.array(by_chance) > 0) < 0.1
        assert nats_of_topology(random.random(2000) < 0.6, chance) > 200


def null_edges(name, seed):
    """Return a graph without clusters: its nodes alone, or their places, explain its weights."""
    random = np.random.default_rng([seed, 7])
    if name in ("random", "preferential") or name.startswith("complete"):
        topology, _, size = name.partition("-")
        graph = null_graph(topology, int(size or 200), seed=seed).graph
        return graph.sources, graph.targets, graph.weights, graph.n_nodes
    if name == "ring":
        a = np.repeat(np.arange(200), 4)
        b = (a + np.tile(np.arange(1, 5), 200)) % 200
    elif name == "grid":
        graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(15, 15))
        a, b = np.array(graph.edges).T
    else:
        near = KDTree(random.random((200, 2))).query_pairs(0.13, output_type="ndarray")
        a, b = near.T
    n = int(max(a.max(), b.max())) + 1
    size = random.lognormal(0, 1, n)
    weights = random.poisson(5 * size[a] * size[b] * random.gamma(2, 0.5, len(a))).astype(float)
    return a, b, weights, n


NULLS = ["complete-40", "complete-150", "random", "preferential", "ring", "grid", "neighbours"]


class TestTest:
    @pytest.mark.parametrize("epsilon", [0.3, 1.0])
    @pytest.mark.parametrize("name", NULLS)
    def test_weights_support_nothing_where_there_are_no_clusters(self, name, epsilon):
        for seed in range(3 if name != "complete-150" else 2):
            found = clustered(*null_edges(name, seed), seed=seed, scale=1 / epsilon)
            if found.evidence is not None:
                assert found.evidence.partition in NOT_WEIGHTS
                assert set(found.evidence.clusters) <= set(NOT_WEIGHTS)
            if name.startswith("complete"):
                assert found.labels.max() == 0

    def errors(self, ratio, seed, n=60):
        truth = np.random.default_rng(seed).integers(0, 4, n)
        edges = Edges.of(released(*counts(truth, ratios=(1.0, ratio), seed=seed), seed=seed))
        expected = expected_weights(edges, edges)
        test = WeightTest(edges, expected, groups_of(expected, 4))
        together = truth[edges.sources] == truth[edges.targets]
        return test, test.companions(together), truth

    def test_standard_errors_of_chance_are_about_one(self):
        found = []
        for seed in range(40):
            test, companions, _ = self.errors(1.0, seed)
            found.append(test.standard_errors(companions))
        assert abs(np.mean(found)) < 1
        assert 0.6 < np.std(found) < 1.5

    def test_true_clusters_are_clear(self):
        test, companions, truth = self.errors(4.0, 1)
        assert test.standard_errors(companions) > 10
        edges = test._edges
        each = test.of_clusters(companions, truth[edges.sources], truth[edges.targets], 4)
        assert (each > 3).all()
        assert test.standard_errors(companions, given=companions) == 0.0

    def test_what_nodes_differ_by_has_no_part(self):
        """Of groups of large and of small nodes weights say nothing, however sure they differ."""
        a, b, weights, n = counts(np.zeros(100, int), tail=1.5, seed=4)
        edges = Edges.of(released(a, b, weights, n))
        expected = expected_weights(edges, edges)
        test = WeightTest(edges, expected, groups_of(expected, 4))
        size = edges.at_nodes(edges.log_weights)
        large = size > np.median(size)
        for together in (large[a] & large[b], large[a] == large[b]):
            values = test.beyond_nodes(edges.log_weights)
            np.testing.assert_allclose(edges.at_nodes(values), 0.0, atol=0.02 * np.abs(size).max())
            assert test.standard_errors(test.companions(together)) < 3


@cache
def school():
    """Eight classes in four years."""
    classes = np.random.default_rng(8).permutation(np.arange(120) % 8)
    years = classes // 2
    return (
        classes,
        years,
        counts(np.stack([classes, years]), ratios=(1.0, 3.0, 9.0), seed=1, tail=1.2, mean=4.0),
    )


class TestClusters:
    def test_bike_rides(self):
        known = real_graph("bike")
        model = PTClust(epsilon=1, delta=1e-6, sensitivity=known.sensitivity, random_state=1)
        release = model.fit(known.graph).release_
        assert agreement(known.truth, release.labels) >= 0.95
        assert release.clustering.evidence.has_weights

    @pytest.mark.parametrize("family", ["circles", "moons"])
    def test_planted_shapes(self, family):
        planted = planted_graph(family, 1000, seed=11)
        model = PTClust(
            epsilon=0.5, delta=1e-6, sensitivity=Sensitivity(linf=5e-4), random_state=1
        ).fit(planted.graph)
        assert agreement(planted.truth, model.labels_) > 0.9
        assert model.release_.clustering.evidence.has_weights

    @pytest.mark.parametrize("scale", [0.1, 3.0])
    def test_clusters_of_the_topology_are_marked_as_such(self, scale):
        a, b, weights, n = cliques(8, 12)
        found = clustered(a, b, weights, n, scale=scale)
        assert agreement(np.arange(n) // 12, found.labels) > 0.9
        assert found.evidence.partition == "topology"
        assert set(found.evidence.clusters) == {"topology"}
        assert len(found.evidence.clusters) == found.labels.max() + 1
        assert found.topology_labels.tolist() == found.labels.tolist()
        assert found.levels == ()

    def test_weights_and_topology_support_the_same_clusters(self):
        truth = np.arange(160) // 40
        a, b = np.triu_indices(160, 1)
        chance = np.where(truth[a] == truth[b], 0.6, 0.2)
        kept = np.random.default_rng(0).random(len(a)) < chance
        weights = np.where(truth[a] == truth[b], 10.0, 0.0)
        found = clustered(a[kept], b[kept], weights[kept], 160)
        assert agreement(truth, found.labels) > 0.95
        assert found.evidence.partition == "both"
        assert "both" in found.evidence.clusters

    def test_noise_alone_on_all_pairs_is_one_cluster(self):
        a, b = np.triu_indices(50, 1)
        for seed in range(3):
            found = clustered(a, b, np.zeros(len(a)), 50, seed=seed)
            assert found.labels.max() == 0
            assert found.evidence.partition == "none"

    def test_the_same_release_gives_the_same_clusters(self):
        _, edges = city()
        one, other = clustered(*edges), clustered(*edges)
        assert one.labels.tolist() == other.labels.tolist()
        assert one.evidence == other.evidence
        assert [each.support for each in one.levels] == [each.support for each in other.levels]

    @pytest.mark.parametrize("limits", [(0, 10**9), (0, 0)])
    def test_larger_graphs_hold_fewer_parts_back(self, monkeypatch, limits):
        truth, edges = city()
        monkeypatch.setattr(_trial, "_FEW", limits[0])
        monkeypatch.setattr(_trial, "_MANY", limits[1])
        monkeypatch.setattr(_trial, "_THREADED", 0)
        found = clustered(*edges)
        assert agreement(truth, found.labels) > 0.8
        assert found.evidence.partition == "weights"

    def test_levels_are_nested_and_supported(self):
        classes, years, edges = school()
        found = clustered(*edges)
        coarse, fine = found.levels
        assert coarse.labels.tolist() == found.labels.tolist()
        assert agreement(years, coarse.labels) > 0.9
        assert agreement(classes, fine.labels) > 0.9
        pairs = np.unique(coarse.labels * len(fine.labels) + fine.labels)
        assert len(pairs) == fine.n_clusters
        assert coarse.support > fine.support > 0

    def test_finer_levels_are_only_where_weights_support_them(self):
        classes, years, edges = school()
        ((labels, _),) = _finer(Edges.of(released(*edges)), years)
        assert agreement(classes, labels) > 0.95
        plain = counts(years, seed=3)
        assert _finer(Edges.of(released(*plain)), years) == []
