from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import rivals
from experiments.heterogeneous import degree_corrected_blocks, null_graph, weighted_lfr
from experiments.methods import release_of
from experiments.real import real_graph
from experiments.rivals import (
    HETEROGENEOUS_CONTROLS,
    HETEROGENEOUS_METHODS,
    NON_PRIVATE,
    TOPOLOGY_ONLY,
    leiden,
    recursive_sparsest_cuts,
)
from ptclust import plan
from ptclust._statistics import agreement
from ptclust.datasets import planted_graph
from ptclust.graph import Graph, Topology

SEARCHES = [method for method in HETEROGENEOUS_METHODS if method.search is not None]


@pytest.fixture(scope="module")
def lfr():
    return weighted_lfr(300, mu_t=0.4, mu_w=0.2, mean_degree=15, sizes=(20, 60), seed=5)


@pytest.fixture(scope="module")
def release(lfr):
    planned = plan(
        lfr.graph.topology, epsilon=1.0, sensitivity=lfr.sensitivity, mechanism="laplace"
    )
    return release_of(lfr.graph, planned, clusterer="dbmstclu", random_state=1)


class TestControls:
    @pytest.mark.parametrize("control", NON_PRIVATE, ids=lambda control: control.name)
    def test_without_privacy_clusters_are_found(self, control, lfr):
        graph, truth = lfr.graph, lfr.truth
        if control.name == "hdbscan":  # which clusters of one density suit better
            planted = planted_graph("blobs", 100, seed=1)
            given, truth = planted.graph, planted.truth
            counts = np.rint(10.0 * (1.0 - given.weights))
            graph = Graph(given.sources, given.targets, counts, n_nodes=100, kind="similarity")
        assert agreement(truth, control.labels(graph, truth)) > 0.9

    @pytest.mark.parametrize("control", HETEROGENEOUS_CONTROLS, ids=lambda control: control.name)
    def test_topology_only_sees_no_weight(self, control, lfr):
        graph = lfr.graph
        weights = np.random.default_rng(1).permutation(graph.weights)
        changed = Graph(
            graph.sources, graph.targets, weights, n_nodes=graph.n_nodes, kind="similarity"
        )
        first, second = (control.labels(each, lfr.truth) for each in (graph, changed))
        assert np.array_equal(first, second) == control.topology_only

    @pytest.mark.parametrize("name", ["leiden", "louvain"])
    def test_an_oracle_is_at_least_as_good(self, name):
        known = real_graph("karate")
        named = {control.name: control for control in NON_PRIVATE}
        usual, best = (
            agreement(known.truth, named[each].labels(known.graph, known.truth))
            for each in (name, f"{name}-best")
        )
        assert best > usual

    def test_draws_are_seeded(self):
        """Where there are no clusters, every search finds others."""
        graph = null_graph("random", 200).graph
        first, second = (leiden(graph.topology, graph.weights) for _ in range(2))
        assert np.array_equal(first, second)

    def test_distances_become_similarities(self):
        iris = real_graph("iris")
        for control in NON_PRIVATE:
            assert agreement(iris.truth, control.labels(iris.graph, iris.truth)) > 0.4

    def test_a_complete_topology_gives_nothing_away(self):
        known = degree_corrected_blocks(60, 3)
        assert len(np.unique(TOPOLOGY_ONLY.labels(known.graph, known.truth))) == 1


class TestOnOurRelease:
    @pytest.mark.parametrize("method", SEARCHES, ids=lambda method: method.name)
    def test_no_private_weight_is_read(self, method, lfr, release, monkeypatch):
        before = method.search(release, lfr.truth)

        def refuse(self):
            raise AssertionError("a private weight was read")

        monkeypatch.setattr(Graph, "weights", property(refuse), raising=False)
        assert np.array_equal(method.search(release, lfr.truth), before)

    @pytest.mark.parametrize("method", SEARCHES[:2], ids=lambda method: method.name)
    def test_clusters_are_found_at_epsilon_1(self, method, lfr, release):
        assert agreement(lfr.truth, method.search(release, lfr.truth)) > 0.9

    def test_negative_weights_count_as_zero(self):
        triangle = Topology([0, 1, 0, 2], [1, 2, 2, 3])
        with_edge = leiden(triangle, rivals._similarities(np.array([5.0, 5, 5, -9]), "similarity"))
        assert with_edge[3] not in with_edge[:3]

    def test_weights_are_shifted_as_in_the_paper(self, lfr, release, monkeypatch):
        """By 10 log(n) / epsilon, with Laplace noise of scale 1 / epsilon on them."""
        seen = []
        monkeypatch.setattr(
            rivals, "recursive_sparsest_cuts", lambda topology, w, k: seen.append((w, k))
        )
        rivals._hierarchy_of_release(release, lfr.truth)
        ((weights, k),) = seen
        shift = 10 * math.log(300)
        assert weights - np.maximum(release.noisy_weights, 0) == pytest.approx(shift, rel=1e-3)
        assert k == len(np.unique(lfr.truth))


def sparsity(weights, side):
    """Return w(S, T) / (|S| |T|) by the definition."""
    n = len(side)
    across = sum(weights[a][b] for a, b in product(range(n), repeat=2) if side[a] > side[b])
    return across / (sum(side) * (n - sum(side)))


class TestRecursiveSparsestCuts:
    @given(st.lists(st.integers(1, 9), min_size=15, max_size=15))
    def test_a_cut_is_as_sparse_as_it_says_and_within_cheeger_of_the_best(self, counts):
        """On the complete graph of 6 nodes, against all cuts."""
        from scipy.sparse import csr_array

        weights = np.zeros((6, 6))
        weights[np.triu_indices(6, 1)] = counts
        weights += weights.T
        found, first, second = rivals._sparsest_cut(csr_array(weights), np.arange(6))
        side = [int(node in first) for node in range(6)]
        assert sorted([*first, *second]) == list(range(6))
        assert found == pytest.approx(sparsity(weights, side))
        cuts = [cut for cut in product((0, 1), repeat=6) if 0 < sum(cut) < 6]
        assert found >= min(sparsity(weights, cut) for cut in cuts) - 1e-9
        assert found <= np.median([sparsity(weights, cut) for cut in cuts]) + 1e-9

    def test_pieces_come_apart_first(self):
        pieces = Topology([0, 2, 3], [1, 3, 4])
        labels = recursive_sparsest_cuts(pieces, np.array([1.0, 5, 5]), 2)
        assert labels[0] == labels[1] != labels[2] == labels[3] == labels[4]

    @pytest.mark.parametrize("wanted", [1, 2, 3, 5, 9])
    def test_the_number_of_clusters_is_kept(self, wanted):
        path = Topology(list(range(4)), list(range(1, 5)))
        labels = recursive_sparsest_cuts(path, np.ones(4), wanted)
        assert np.unique(labels).tolist() == list(range(min(wanted, 5)))

    def test_planted_clusters_are_found_without_noise(self):
        known = degree_corrected_blocks(90, 3, ratio=30.0, tail=0.2, mean_weight=50, seed=2)
        labels = recursive_sparsest_cuts(known.graph.topology, known.graph.weights, 3)
        assert agreement(known.truth, labels) > 0.95
