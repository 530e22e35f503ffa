from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.heterogeneous import (
    co_visits,
    degree_corrected_blocks,
    null_graph,
    roads,
    weighted_lfr,
)
from ptclust import PTClust
from ptclust._statistics import agreement

SMALL = {
    "lfr": partial(weighted_lfr, 200, mu_t=0.4, mu_w=0.2, mean_degree=10, sizes=(10, 40)),
    "blocks": partial(degree_corrected_blocks, 60, 3),
    "co-visits": partial(co_visits, 500, 30, 3),
    "roads": partial(roads, 120, 4),
    "null-complete": partial(null_graph, "complete", 50),
    "null-random": partial(null_graph, "random", 100),
    "null-preferential": partial(null_graph, "preferential", 100),
    "null-geometric": partial(null_graph, "geometric", 100),
}


def is_across(known):
    return known.truth[known.graph.sources] != known.truth[known.graph.targets]


def mixing(known):
    """Return the share of edges, and of weight, across clusters."""
    graph, across = known.graph, is_across(known)
    return across.mean(), graph.weights[across].sum() / graph.weights.sum()


def strengths(known):
    graph = known.graph
    ends = np.concatenate([graph.sources, graph.targets])
    return np.bincount(ends, np.tile(graph.weights, 2), graph.n_nodes)


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
class TestEveryGraph:
    def test_counts_as_similarities_on_a_connected_simple_graph(self, make):
        known = make(seed=3)
        graph = known.graph
        assert graph.kind == "similarity"
        assert np.array_equal(graph.weights, np.rint(graph.weights))
        assert graph.weights.min() >= 0
        assert graph.topology.n_components == 1
        assert len(known.truth) == graph.n_nodes
        assert known.sensitivity.l1 >= 1

    def test_the_seed_decides(self, make):
        first, again, other = make(seed=3), make(seed=3), make(seed=4)
        assert np.array_equal(first.graph.weights, again.graph.weights)
        assert np.array_equal(first.graph.sources, again.graph.sources)
        assert np.array_equal(first.truth, again.truth)
        assert not np.array_equal(strengths(first), strengths(other))

    def test_the_order_of_nodes_says_nothing(self, make):
        """Neighbours in it are together no more often than others, and it tells no sizes."""
        together = chance = trend = 0.0
        for seed in range(20):
            known = make(seed=seed)
            truth, ranks = known.truth, strengths(known).argsort().argsort()
            trend += np.corrcoef(np.arange(len(ranks)), ranks)[0, 1] / 20
            sizes = np.bincount(truth)
            together += float(np.mean(truth[1:] == truth[:-1]))
            chance += int(sizes @ sizes - len(truth)) / (len(truth) * (len(truth) - 1))
        assert together == pytest.approx(chance, abs=0.1 * 20)
        assert trend == pytest.approx(0, abs=0.2)

    def test_weights_are_heavy_tailed(self, make):
        found = strengths(make(seed=3))
        assert found.max() > 2.5 * np.median(found)


class TestWeightedLFR:
    @settings(max_examples=12, deadline=None)
    @given(
        st.sampled_from([0.2, 0.4, 0.5, 0.6]), st.sampled_from([0.1, 0.3, 0.4]), st.integers(0, 99)
    )
    def test_mixing_is_as_asked(self, mu_t, mu_w, seed):
        by_edges, by_weight = mixing(weighted_lfr(1000, mu_t=mu_t, mu_w=mu_w, seed=seed))
        assert by_edges == pytest.approx(mu_t, abs=0.015)
        assert by_weight == pytest.approx(mu_w, abs=0.015)

    def test_of_every_node_too(self):
        """Weights across a node are as asked, not only those of the whole graph."""
        known = weighted_lfr(1000, mu_t=0.5, mu_w=0.2, mean_weight=1000, seed=1)
        graph = known.graph
        across = is_across(known)
        ends = np.concatenate([graph.sources, graph.targets])
        outside = np.bincount(ends, np.tile(graph.weights * across, 2), graph.n_nodes)
        assert np.quantile(np.abs(outside / strengths(known) - 0.2), 0.95) < 0.02

    def test_strength_grows_with_degree_to_the_power(self):
        known = weighted_lfr(2000, mu_t=0.4, mu_w=0.2, strength_exponent=1.5, seed=2)
        graph = known.graph
        degrees = np.bincount(np.concatenate([graph.sources, graph.targets]))
        slope = np.polyfit(np.log(degrees), np.log(strengths(known)), 1)[0]
        assert slope == pytest.approx(1.5, abs=0.1)

    def test_degrees_follow_a_power_law(self):
        """The distribution function between the ends is that of exponent 2, and the mean is met."""
        known = weighted_lfr(5000, mu_t=0.4, mu_w=0.2, seed=3)
        graph = known.graph
        degrees = np.bincount(np.concatenate([graph.sources, graph.targets]))
        assert degrees.mean() == pytest.approx(20, rel=0.03)
        assert degrees.max() <= 50
        low = np.quantile(degrees, 0.01)
        for degree in (15, 20, 30, 40):
            wanted = (1 / low - 1 / degree) / (1 / low - 1 / 51)
            assert np.mean(degrees < degree) == pytest.approx(wanted, abs=0.06)

    @pytest.mark.parametrize("bounds", [(20, 100), (10, 50)])
    def test_sizes_of_clusters(self, bounds):
        known = weighted_lfr(5000, mu_t=0.5, mu_w=0.2, sizes=bounds, seed=4)
        sizes = np.bincount(known.truth)
        assert sizes.sum() == 5000
        assert sizes.min() >= bounds[0]
        assert sizes.max() <= bounds[1] * 1.2  # the rest is spread
        middle = np.sqrt(bounds[0] * bounds[1])  # the median of a power law of exponent 1
        assert np.mean(sizes < middle) == pytest.approx(0.5, abs=0.12)

    def test_mean_weight(self):
        known = weighted_lfr(1000, mu_t=0.4, mu_w=0.2, mean_weight=25, seed=1)
        assert known.graph.weights.mean() == pytest.approx(25, rel=0.02)

    def test_dense_clusters_lose_few_edges(self):
        """Configuration models leave loops and double edges; these are drawn again."""
        known = weighted_lfr(1000, mu_t=0.2, mu_w=0.2, seed=1)
        looser = weighted_lfr(1000, mu_t=0.6, mu_w=0.2, seed=1)
        assert known.graph.n_edges == pytest.approx(looser.graph.n_edges, rel=0.02)


class TestOthers:
    def test_blocks_are_denser_within(self):
        known = degree_corrected_blocks(200, 4, ratio=6.0, tail=0.3, seed=1)
        graph = known.graph
        across = is_across(known)
        ratio = graph.weights[~across].mean() / graph.weights[across].mean()
        assert ratio == pytest.approx(6.0, rel=0.1)

    def test_co_visits_protect_a_person(self):
        known = co_visits(2000, 100, 5, seed=1)
        assert known.sensitivity.l1 == 45
        assert known.graph.n_edges == 100 * 99 // 2
        assert len(np.unique(known.truth)) == 5
        assert mixing(known)[1] < 0.5 < mixing(known)[0]

    def test_most_traffic_stays_in_its_city(self):
        known = roads(400, 6, seed=1)
        by_edges, by_weight = mixing(known)
        assert by_weight < 0.2
        assert by_edges < 0.2
        assert known.graph.n_edges < 3 * 400  # planar

    @pytest.mark.parametrize("topology", ["complete", "random", "preferential", "geometric"])
    def test_nulls_are_explained_by_the_sizes_of_nodes(self, topology):
        """Rest of a rank-one fit of the logarithms is the same for any two halves of the nodes."""
        known = null_graph(topology, 200, mean_weight=1000, seed=1)
        graph = known.graph
        assert not known.truth.any()
        design = np.zeros((graph.n_edges, 200))
        design[np.arange(graph.n_edges), graph.sources] = 1
        design[np.arange(graph.n_edges), graph.targets] = 1
        heights = np.log(graph.weights + 1)
        rest = heights - design @ np.linalg.lstsq(design, heights, rcond=None)[0]
        halves = np.random.default_rng(0).integers(2, size=200)
        within = halves[graph.sources] == halves[graph.targets]
        assert rest[within].mean() == pytest.approx(rest[~within].mean(), abs=0.15)


def test_clusters_that_topology_and_weights_show_are_not_divided():
    """Two levels say nearly as much about it, and fit large weights of large nodes within."""
    known = weighted_lfr(1000, mu_t=0.4, mu_w=0.1, seed=38)
    options = {"delta": 1e-6, "privacy_unit": "one record", "random_state": 38}
    model = PTClust(epsilon=1, sensitivity=known.sensitivity, **options)
    assert agreement(known.truth, model.fit(known.graph).labels_) > 0.99
