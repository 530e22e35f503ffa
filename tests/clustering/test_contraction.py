from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from ptclust._components import adjacency
from ptclust._statistics import agreement
from ptclust.clustering import contract
from ptclust.clustering.contraction import _evidence
from ptclust.clustering.contraction._chance_kernel import (
    ERROR,
    induced_graph,
    log_binomial,
    mixture,
)
from ptclust.clustering.contraction._evidence import (
    Edges,
    Evidence,
    Trial,
    best_partition,
    clear_value,
    is_clear,
    merge_unclear,
    select_penalty,
)
from ptclust.clustering.contraction._greedy_kernel import contract_greedily, kth_smallest
from ptclust.clustering.contraction._partition_kernel import (
    UNAFFORDABLE,
    Search,
    agreement_within,
    climb,
    climb_and_walk_down,
    connected_pieces,
    join_down,
    move_due_nodes,
    move_nodes,
    nodes_around,
    numbered,
    walk_down,
)
from ptclust.datasets import planted_graph
from ptclust.errors import UsageError, WeightError
from ptclust.privacy import Noise
from tests.clustering import partitions

RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]
STAR = [(0, 1), (0, 2), (0, 3), (0, 4), (4, 5)]


def gaussian(scale):
    return Noise("gaussian", scale, -40, 1)


NO_NOISE = Noise("gaussian", 0.0, -40, 0)


@st.composite
def small_graphs(draw, max_nodes=6):
    """Graphs with affinities that are halves: sums are exact, and ties are common."""
    n = draw(st.integers(2, max_nodes))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    affinity = [draw(st.integers(-8, 8)) / 2 for _ in edges]
    return n, edges, affinity, draw(st.integers(0, 4)) / 2


def arrays(edges, affinity):
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return ends[:, 0].copy(), ends[:, 1].copy(), np.array(affinity, dtype=np.float64)


def as_sets(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def random_graph(seed, n=300, m=1500):
    random = np.random.default_rng(seed)
    ends = random.integers(0, n, (m, 2))
    a, b = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0).T
    return a.copy(), b.copy(), random


def search_on(sources, targets, near, affinity, price) -> Search:
    """Return what a search looks at."""
    n_nodes, data = len(near.indptr) - 1, affinity[near.edges]
    is_due, shared = np.empty(n_nodes, np.bool_), np.empty(n_nodes)
    return Search(
        sources, targets, near.indptr, near.neighbours, data, affinity, price, is_due, shared
    )


def search_partition(sources, targets, near, affinity, price, start):
    return climb_and_walk_down(*search_on(sources, targets, near, affinity, price), start)


def search_from_both(a, b, n, affinity, price):
    """Return the better of the searches from single nodes and from greedy contraction."""
    neighbours, single = adjacency(a, b, n), np.arange(n)
    starts = single, contract_greedily(a, b, affinity, n, price)[0]
    found = [search_partition(a, b, neighbours, affinity, price, start) for start in starts]
    return max(found, key=lambda one: one[1])


def local_maxima(evidence, start=None):
    """Yield where searches end: from a start, single nodes, greedy contraction."""
    (a, b, near), affinity, _ = evidence
    n_nodes = evidence.graph.n_nodes

    def search(start, price):
        return search_partition(a, b, near, affinity, price, start)[0]

    def searched(start):
        return search(start, evidence.price(start.max() + 1))

    if start is not None:
        yield searched(start)
    found = searched(search(np.arange(n_nodes), evidence.price(math.sqrt(n_nodes))))
    yield found
    price = evidence.price(found.max() + 1)
    yield search(contract_greedily(a, b, affinity, n_nodes, price)[0], price)


def is_clear_by_permutations(value, evidence):
    """Do what ``is_clear`` does where no bound decides, one permutation after the other."""
    random, seen = np.random.default_rng(0), []
    deviation = math.sqrt(len(evidence.affinity) * np.var(evidence.affinity) / 2)
    while len(seen) < 16:
        permuted = evidence._replace(affinity=random.permutation(evidence.affinity))
        seen.append(max(map(permuted.value_of, local_maxima(permuted))))
        if seen[-1] >= value:
            return False
        reach = norm.isf(1e-4) * deviation
        if len(seen) >= 3:
            reach = min(reach, student.isf(1e-4, len(seen) - 1) * np.std(seen, ddof=1))
        if value > np.mean(seen) + reach * math.sqrt(1 + 1 / len(seen)):
            return True
    return False


@pytest.fixture
def no_permutations(monkeypatch):
    """What no bound decides is not clear."""
    monkeypatch.setattr(_evidence, "_reaches", lambda: np.ones(1))


class TestGreedyContraction:
    @settings(max_examples=300)
    @given(small_graphs(max_nodes=9))
    def test_equals_the_obvious_way(self, graph):
        n, edges, affinity, price = graph
        affinity = [x + 2.0 ** -(i + 4) for i, x in enumerate(affinity)]  # no two sums are equal
        labels, _ = contract_greedily(*arrays(edges, affinity), n, price)  # type: ignore[call-arg]
        expected = partitions.greedy_contraction(n, edges, affinity, price)
        assert as_sets(labels) == {frozenset(part) for part in expected}

    @pytest.mark.parametrize("seed", range(3))
    def test_equals_the_obvious_way_on_larger_graphs(self, seed):
        a, b, random = random_graph(seed, n=40, m=120)
        affinity = random.normal(0, 1, len(a))
        labels, _ = contract_greedily(a, b, affinity, 40, 0.5)
        edges = list(zip(a.tolist(), b.tolist()))
        expected = partitions.greedy_contraction(40, edges, affinity.tolist(), 0.5)
        assert as_sets(labels) == {frozenset(part) for part in expected}

    @pytest.mark.parametrize("price", [-1.0, 0.0, 1.5, 40.0])
    @pytest.mark.parametrize("seed", range(4))
    def test_steps_in_which_the_floor_sinks_make_no_difference(self, seed, price, monkeypatch):
        a, b, random = random_graph(seed, n=200, m=1200)
        halves = np.round(random.normal(-0.3, 2, len(a)) * 2) / 2  # most sums are equal to others
        for affinity in (halves, halves + random.normal(0, 1, len(a))):
            with monkeypatch.context() as patch:
                patch.setattr("ptclust.clustering.contraction._greedy_kernel.PORTIONS", (1,))
                at_once, _ = contract_greedily.py_func(a, b, affinity, 200, price)  # type: ignore[attr-defined]
            assert contract_greedily(a, b, affinity, 200, price)[0].tolist() == at_once.tolist()
            assert 1 < len(as_sets(at_once)) < 200

    @settings(max_examples=200)
    @given(st.lists(st.integers(-9, 9) | st.floats(-10, 10), min_size=1), st.data())
    def test_selection_is_that_of_sorting(self, values, data):
        k = data.draw(st.integers(0, len(values) - 1))
        permuted = np.array(values, dtype=np.float64)
        assert kth_smallest(permuted, len(values), k) == sorted(values)[k]
        assert sorted(permuted) == sorted(values)

    def test_parallel_edges_add_up(self):
        a, b, affinity = arrays([(0, 1), (1, 0), (1, 2)], [-1.0, 1.5, -0.25])
        assert as_sets(contract_greedily(a, b, affinity, 3, 0.0)[0]) == {
            frozenset({0, 1}),
            frozenset({2}),
        }

    def test_of_equal_sums_the_smaller_nodes_come_first(self):
        a, b, affinity = arrays([(2, 3), (1, 2), (0, 1)], [1.0, 1.0, 1.0])
        blocked = arrays([(2, 3), (1, 2), (0, 1), (0, 2), (1, 3)], [1.0, 1.0, 1.0, -9.0, -9.0])
        assert len(as_sets(contract_greedily(a, b, affinity, 4, 0.0)[0])) == 1
        assert as_sets(contract_greedily(*blocked, 4, 0.0)[0]) == {  # type: ignore[call-arg]
            frozenset({0, 1}),
            frozenset({2, 3}),
        }

    @pytest.mark.parametrize("seed", range(3))
    def test_order_of_edges_makes_no_difference(self, seed):
        a, b, random = random_graph(seed)
        affinity = random.normal(0.1, 1, len(a))
        order = random.permutation(len(a))
        one, _ = contract_greedily(a, b, affinity, 300, 1.0)
        other, _ = contract_greedily(b[order], a[order], affinity[order], 300, 1.0)
        assert as_sets(one) == as_sets(other)


class TestSearch:
    @settings(max_examples=200)
    @given(small_graphs())
    def test_never_above_the_optimum_and_what_it_says(self, graph):
        n, edges, affinity, price = graph
        a, b, x = arrays(edges, affinity)
        labels, value = search_from_both(a, b, n, x, price)
        assert value == partitions.value(labels.tolist(), edges, affinity, price)
        assert value <= partitions.best_value(n, edges, affinity, price)
        assert all(partitions.is_connected(c, edges) for c in partitions.clusters(labels.tolist()))

    def test_mostly_finds_the_optimum(self):
        random = np.random.default_rng(0)
        found = 0
        for _ in range(100):
            pairs = [(a, b) for a in range(6) for b in range(a + 1, 6) if random.random() < 0.7]
            affinity = random.normal(0, 1, len(pairs))
            a, b, x = arrays(pairs, affinity)
            _, value = search_from_both(a, b, 6, x, 0.5)
            found += value > partitions.best_value(6, pairs, affinity.tolist(), 0.5) - 1e-9
        assert found >= 90

    @settings(max_examples=150)
    @given(small_graphs(max_nodes=9), st.data())
    def test_moves_never_lose(self, graph, data):
        n, edges, affinity, price = graph
        a, b, x = arrays(edges, affinity)
        labels = np.array([data.draw(st.integers(0, n - 1)) for _ in range(n)])
        before = partitions.value(labels.tolist(), edges, affinity, price)
        moved = labels.copy()
        count = move_nodes(adjacency(a, b, n), x, moved, price)
        after = partitions.value(moved.tolist(), edges, affinity, price)
        assert after >= before
        assert (after > before) == (count > 0)
        assert move_nodes(adjacency(a, b, n), x, moved, price) == 0

    @settings(max_examples=200)
    @given(small_graphs(max_nodes=9), st.data())
    def test_after_moves_no_single_move_gains(self, graph, data):
        n, edges, affinity, price = graph
        a, b, x = arrays(edges, affinity)
        labels = np.array([data.draw(st.integers(0, n - 1)) for _ in range(n)])
        move_nodes(adjacency(a, b, n), x, labels, price)
        here = partitions.value(labels.tolist(), edges, affinity, price)
        for node in range(n):
            near = {labels[v] for e in edges if node in e for v in e}
            for label in near | {n}:
                other = labels.copy()
                other[node] = label
                assert partitions.value(other.tolist(), edges, affinity, price) <= here + 1e-9

    @settings(max_examples=200)
    @given(small_graphs(max_nodes=9), st.data())
    def test_moves_are_those_of_the_obvious_way(self, graph, data):
        n, edges, affinity, price = graph
        affinity = [x + 2.0 ** -(i + 4) for i, x in enumerate(affinity)]  # no two sums are equal
        a, b, x = arrays(edges, affinity)
        labels = np.array([data.draw(st.integers(0, n - 1)) for _ in range(n)])
        expected = partitions.moves(labels.tolist(), edges, affinity, price)
        move_nodes(adjacency(a, b, n), x, labels, price)
        assert as_sets(labels) == as_sets(np.array(expected))

    def test_one_left_alone_by_others_that_are_no_neighbours_may_move(self):
        """0 and 1 share a cluster without an edge. 1 leaves; alone, 0 would pay, and joins 2."""
        a, b, affinity = arrays([(0, 2), (1, 3)], [-0.5, 1.0])
        labels = np.array([0, 0, 1, 2])
        assert move_nodes(adjacency(a, b, 4), affinity, labels, 2.0) == 2
        assert as_sets(labels) == {frozenset({0, 2}), frozenset({1, 3})}

    @settings(max_examples=150)
    @given(small_graphs(max_nodes=9), st.data())
    def test_what_nodes_share_with_their_cluster_is_known(self, graph, data):
        n, edges, affinity, price = graph
        a, b, x = arrays(edges, affinity)
        near, is_due, inside = adjacency(a, b, n), np.ones(n, bool), np.full(n, np.nan)
        labels = np.array([data.draw(st.integers(0, n - 1)) for _ in range(n)])
        move_due_nodes(*near[:2], x[near.edges], labels, price, is_due, inside)
        assert not is_due.any()
        for node in range(n):
            shared = [
                y
                for e, y in zip(edges, affinity)
                if node in e and labels[sum(e) - node] == labels[node]
            ]
            assert inside[node] == sum(shared)

    @pytest.mark.parametrize("seed", range(3))
    def test_nodes_that_are_not_due_stay(self, seed):
        a, b, random = random_graph(seed)
        neighbours, affinity = adjacency(a, b, 300), random.normal(0, 1, len(a))
        labels = np.arange(300)
        args = (
            *neighbours[:2],
            affinity[neighbours.edges],
            labels,
            1.0,
            np.zeros(300, bool),
            np.zeros(300),
        )
        assert move_due_nodes(*args) == 0
        assert labels.tolist() == list(range(300))

    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("price", [0.1, 1.0, 3.0])
    def test_walking_down_is_that_of_the_obvious_way(self, seed, price):
        """Look at every node at every step, and at the value of every partition on the way."""
        a, b, random = random_graph(seed, n=100, m=500)
        neighbours, affinity = adjacency(a, b, 100), random.normal(-0.1, 1, len(a))
        start, n_clusters = connected_pieces(a, b, random.integers(0, 8, 100))
        first = agreement_within(a, b, affinity, start) - price * n_clusters
        found, value = walk_down(search_on(a, b, neighbours, affinity, price), start, first)
        labels, best, best_value, n_better = start, start, first, 0
        while n_clusters > 2:
            before = agreement_within(a, b, affinity, labels)
            target = n_clusters - 1 if n_clusters <= 16 else n_clusters * 4 // 5
            labels = join_down(a, b, affinity, labels, n_clusters, target)
            joined = agreement_within(a, b, affinity, labels)
            move_nodes(neighbours, affinity, labels, UNAFFORDABLE)
            n_before = n_clusters
            labels, n_clusters = numbered(labels)
            regained, lost = agreement_within(a, b, affinity, labels) - joined, before - joined
            if lost > price * (n_before - n_clusters) and regained < 0.05 * lost:
                break
            tried = labels.copy()
            move_nodes(neighbours, affinity, tried, price)
            tried, n_tried = connected_pieces(a, b, tried)
            here = agreement_within(a, b, affinity, tried) - price * n_tried
            if here > best_value:
                best, best_value, n_better = tried, here, n_better + 1
        assert found.tolist() == best.tolist()
        assert value == best_value
        assert n_better > 1

    @pytest.mark.parametrize("seed", range(5))
    def test_where_a_climb_ends_another_finds_nothing(self, seed):
        a, b, random = random_graph(seed)
        on = search_on(a, b, adjacency(a, b, 300), random.normal(-0.1, 1, len(a)), 2.0)
        labels, value = climb(on, np.arange(300))
        again, same = climb(on, labels)
        assert again.tolist() == labels.tolist()
        assert same == value

    @pytest.mark.parametrize("seed", range(3))
    def test_climbing_never_loses_against_connected_starts(self, seed):
        a, b, random = random_graph(seed)
        affinity = random.normal(0.1, 1, len(a))
        start, _ = connected_pieces(a, b, random.integers(0, 5, 300))
        before = agreement_within(a, b, affinity, start) - 2.0 * (start.max() + 1)
        labels, value = climb(search_on(a, b, adjacency(a, b, 300), affinity, 2.0), start)
        assert value >= before
        assert value == pytest.approx(
            agreement_within(a, b, affinity, labels) - 2.0 * (labels.max() + 1)
        )

    @pytest.mark.parametrize("start", [None, np.arange(300) // 10])
    def test_the_best_is_the_best_of_all_searches(self, start):
        a, b, random = random_graph(1)
        evidence = Evidence(Edges.of(a, b, 300), random.normal(0, 1, len(a)))
        ends = list(local_maxima(evidence, start))
        values = [evidence.value_of(labels) for labels in ends]
        labels, value = best_partition(evidence, start=start)
        assert len(set(values)) == len(values) == (2 if start is None else 3)
        assert value == max(values)
        assert labels.tolist() == ends[values.index(value)].tolist()

    def test_searches_end_with_the_first_that_is_good_enough(self):
        a, b, random = random_graph(1)
        evidence = Evidence(Edges.of(a, b, 300), random.normal(0, 1, len(a)))
        values = [evidence.value_of(labels) for labels in local_maxima(evidence)]
        for enough in (-math.inf, *values, math.inf):
            _, value = best_partition(evidence, enough)
            reached = [i for i, one in enumerate(values) if one >= enough]
            assert value == max(values[: reached[0] + 1] if reached else values)

    def test_value_counts_what_says_where_clusters_begin(self):
        a, b, affinity = arrays([(0, 1), (1, 2), (2, 3)], [1.0, -2.0, 3.0])
        evidence, labels = Evidence(Edges.of(a, b, 4), affinity), np.array([0, 0, 1, 1])
        assert evidence.value_of(labels) == pytest.approx(4.0 - math.log(6))
        assert evidence._replace(penalty=3.0).value_of(labels) == pytest.approx(
            4.0 - 3 * math.log(6)
        )

    def test_a_higher_penalty_leaves_fewer_clusters(self):
        a, b, random = random_graph(1)
        evidence = Evidence(Edges.of(a, b, 300), random.normal(0, 1, len(a)))
        counts = [
            best_partition(evidence._replace(penalty=x))[0].max() + 1 for x in (1.0, 10.0, 100.0)
        ]
        assert counts[0] > counts[1] > counts[2]


class TestPieces:
    @settings(max_examples=200)
    @given(small_graphs(max_nodes=9), st.data())
    def test_pieces_are_the_connected_ones(self, graph, data):
        n, edges, affinity, _ = graph
        a, b, _ = arrays(edges, affinity)
        labels = np.array([data.draw(st.integers(0, 2)) for _ in range(n)])
        pieces, count = connected_pieces(a, b, labels)
        assert count == len(set(pieces.tolist()))
        seen = partitions.clusters(pieces.tolist())
        assert all(partitions.is_connected(piece, edges) for piece in seen)
        for u, v in edges:
            assert (pieces[u] == pieces[v]) == (labels[u] == labels[v])
        firsts = [piece[0] for piece in seen]
        assert firsts == sorted(firsts)

    @settings(max_examples=100)
    @given(small_graphs(max_nodes=9), st.data())
    def test_induced_edges_are_those_between_members(self, graph, data):
        n, edges, affinity, _ = graph
        a, b, _ = arrays(edges, affinity)
        chosen = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
        members, buffer = np.array(chosen), np.full(n, -1)
        ids, first, second = induced_graph(*adjacency(a, b, n), members, buffer)
        assert sorted(ids.tolist()) == [i for i, e in enumerate(edges) if set(e) <= set(chosen)]
        for edge, u, v in zip(ids, first, second):
            assert {members[u], members[v]} == set(edges[edge])
        assert (buffer == -1).all()

    def test_clusters_least_clearly_apart_are_joined_first(self):
        edges = [(0, 1), (0, 2), (0, 2), (0, 2), (0, 2), (1, 3)]
        a, b, affinity = arrays(
            edges, [-1.5, -0.7, -0.7, -0.7, -0.7, -5.0]
        )  # -1.5 and -1.4 deviations
        joined = join_down(a, b, affinity, np.arange(4), 4, 3)
        assert as_sets(joined) == {frozenset({0, 2}), frozenset({1}), frozenset({3})}
        assert len(as_sets(join_down(a, b, affinity, np.arange(4), 4, 1))) == 1

    def test_clusters_that_are_not_adjacent_stay(self):
        a, b, affinity = arrays([(0, 1), (2, 3)], [1.0, 1.0])
        assert len(as_sets(join_down(a, b, affinity, np.arange(4), 4, 1))) == 2


def noisy_planted(family, seed, deviation, n=300, distribution="gaussian", **how):
    planted = planted_graph(family, n, seed=seed, **how)
    random = np.random.default_rng(seed + 1000)
    graph = planted.graph
    laplace = distribution == "laplace"
    scale = deviation / math.sqrt(2) if laplace else deviation
    draw = random.laplace if laplace else random.normal
    weights = graph.weights + draw(0, scale, graph.n_edges)
    noise = Noise(distribution, scale, -40, graph.n_edges) if scale else NO_NOISE
    return graph.sources, graph.targets, weights, n, noise, planted.truth


class TestPlanted:
    @pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
    @pytest.mark.parametrize("family", ["moons", "circles", "blobs", "blocks"])
    def test_is_found_through_noise_that_hides_single_edges(self, family, distribution):
        *release, truth = noisy_planted(family, 1, 0.25, distribution=distribution)
        assert agreement(truth, contract(*release)) > 0.97

    def test_is_exact_without_noise(self):
        for family in ("moons", "chains", "multiscale"):
            planted = planted_graph(family, 300, seed=2)
            graph = planted.graph
            labels = contract(graph.sources, graph.targets, graph.weights, 300, NO_NOISE)
            assert agreement(planted.truth, labels) == 1.0

    def test_many_clusters(self):
        *release, truth = noisy_planted("blobs", 3, 0.2, n=600, n_clusters=20)
        assert agreement(truth, contract(*release)) > 0.97

    @pytest.mark.long
    def test_ten_thousand_nodes(self):
        *release, truth = noisy_planted("blobs", 3, 0.35, n=10_000, n_clusters=30)
        assert agreement(truth, contract(*release)) > 0.97

    def test_levels_within_levels(self):
        """Two pairs of clusters; what separates a pair is light beside what separates pairs."""
        random = np.random.default_rng(0)
        a, b = np.triu_indices(80, 1)
        truth = np.arange(80) // 20
        top, same = truth[a] // 2 != truth[b] // 2, truth[a] == truth[b]
        weights = np.where(top, 10.0, np.where(same, 0.0, 1.0)) + random.normal(0, 0.3, len(a))
        assert agreement(truth, contract(a, b, weights, 80, gaussian(0.3))) == 1.0

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("deviation", [0.0, 0.002, 0.05])
    def test_more_levels_than_two_and_little_noise(self, seed, deviation):
        """A part that holds three levels or more is wide, and still the levels are some."""
        *release, truth = noisy_planted("multiscale", seed, deviation, n=200, complete=True)
        assert agreement(truth, contract(*release)) == 1.0

    def test_a_spread_within_clusters_is_no_level(self):
        """Weights that grow evenly along a cluster part it nowhere in particular."""
        random = np.random.default_rng(0)
        a, b = np.triu_indices(80, 1)
        truth, place = np.arange(80) % 2, np.arange(80) / 80
        within = np.maximum(place[a], place[b])
        weights = np.where(truth[a] == truth[b], within, 5.0) + random.normal(0, 0.02, len(a))
        assert agreement(truth, contract(a, b, weights, 80, gaussian(0.02))) == 1.0

    def test_the_first_division_need_not_stand_apart(self):
        """Weights of one level would lie on the edges by chance; these do not."""
        random = np.random.default_rng(0)
        a, b = np.triu_indices(60, 1)
        truth = np.arange(60) % 2
        weights = random.normal(0, 1, len(a)) + 2.0 * (truth[a] != truth[b])
        assert contract(a, b, weights, 60, gaussian(0.01)).tolist() == truth.tolist()

    @pytest.mark.parametrize("deviation", [0.0, 0.1, 0.4])
    @pytest.mark.parametrize("family", ["moons", "chains", "blobs"])
    def test_topology_alone_makes_no_clusters(self, family, deviation):
        planted = planted_graph(family, 300, seed=4).graph
        random = np.random.default_rng(4)
        weights = 0.5 + random.normal(0, deviation, planted.n_edges)
        noise = gaussian(deviation) if deviation else NO_NOISE
        assert contract(planted.sources, planted.targets, weights, 300, noise).max() == 0

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("levels", ["spread", "two"])
    def test_weights_that_know_of_no_clusters_make_none(self, seed, levels):
        a, b, random = random_graph(seed)
        first, _ = connected_pieces(a, b, np.zeros(300, np.int64))
        true = random.random(len(a))
        true = true if levels == "spread" else np.where(true < 0.5, 0.2, 0.95)
        labels = contract(a, b, true + random.normal(0, 0.2, len(a)), 300, gaussian(0.2))
        assert labels.tolist() == first.tolist()

    def test_a_cluster_too_many_is_joined(self):
        """Nothing separates halves of a cluster cut at random; the other cluster is separate."""
        random = np.random.default_rng(1)
        a, b = np.triu_indices(60, 1)
        truth = (np.arange(60) >= 40).astype(int)
        affinity = np.where(truth[a] == truth[b], 0.5, -0.5) + random.normal(0, 1, len(a))
        three = truth.copy()
        three[:20] = 2
        evidence = Evidence(Edges.of(a, b, 60), affinity)
        assert agreement(truth, merge_unclear(evidence, three)) == 1.0

    def test_a_clear_value_is_one_that_chance_does_not_reach(self):
        a, b, random = random_graph(0)
        evidence = Evidence(Edges.of(a, b, 300), random.normal(0, 1, len(a)))
        _, by_chance = best_partition(evidence)
        assert not is_clear(by_chance, evidence)
        assert not is_clear(by_chance * 1.02, evidence)
        assert is_clear(by_chance * 1.5, evidence)

    @pytest.mark.parametrize("seed", range(12))
    def test_chance_is_what_permutations_reach(self, seed):
        """The same as the obvious way, with the same permutations every time."""
        a, b, random = random_graph(seed, n=40, m=160)
        evidence = Evidence(Edges.of(a, b, 40), random.normal(0, 1, len(a)))
        _, by_chance = best_partition(evidence)
        for value in by_chance * np.array([0.8, 1.0, 1.05, 1.1, 1.2, 1.3, 1.6]):
            assert is_clear(value, evidence) == is_clear_by_permutations(value, evidence)

    def test_what_permutations_reach_but_for_rounding_is_not_clear(self):
        """All weights of a star are alike: to permute them changes the order of a sum alone."""
        a, b = np.zeros(9, np.int64), np.arange(1, 10)
        affinity = np.array([-4.55, 6.95, 6.95, 5.04, 1.16, 6.95, 3.19, 6.95, 3.11]) / 3
        evidence = Evidence(Edges.of(a, b, 10), affinity)
        _, value = best_partition(evidence)
        for wrong in (-1e-13, 0.0, 1e-13):
            assert not is_clear(value + wrong, evidence)

    def test_pairs_far_apart_need_no_permutation(self, no_permutations):
        a, b = np.triu_indices(9, 1)
        truth = np.arange(9) // 3
        affinity = np.where(truth[a] == truth[b], 5.0, -5.0)
        evidence = Evidence(Edges.of(a, b, 9), affinity)
        assert merge_unclear(evidence, truth).tolist() == truth.tolist()
        assert merge_unclear(evidence._replace(affinity=affinity / 8), truth).max() < 2

    def test_single_nodes_far_off_need_none_either(self, no_permutations):
        """There are n ways to part one node from the others, and 2^n to part any."""
        a, b = np.triu_indices(300, 1)
        labels = np.maximum(np.arange(300) - 297, 0)
        affinity = np.where(
            labels[a] == labels[b], 1.0, -0.1
        )  # -29.8 between two of three clusters
        evidence = Evidence(Edges.of(a, b, 300), affinity)
        affinity[(a == 298) & (b == 299)] = -40.0
        assert merge_unclear(evidence, labels).tolist() == labels.tolist()
        affinity[(b >= 298) & (a < 298)] = -0.06
        assert _evidence._join_unclear(evidence, labels, set()).max() < 2


class TestBounds:
    """Every permutation of small graphs, and every partition."""

    def best_by_permutation(self, n, edges, affinity):
        """Yield the largest value of a partition for every permutation."""
        every = [
            (sum(1 << i for i, (a, b) in enumerate(edges) if labels[a] == labels[b]), k)
            for labels in partitions.connected_partitions(n, edges)
            for k in [max(labels) + 1]
        ]
        within = np.array([[mask >> i & 1 for i in range(len(edges))] for mask, _ in every])
        cost = np.array([log_binomial(n, k) for _, k in every])
        for order in itertools.permutations(affinity):
            yield (within @ np.array(order) - cost).max()

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("edges", [RING, [*RING, (0, 2)], STAR])
    def test_few_permutations_reach_a_clear_value(self, edges, seed):
        random = np.random.default_rng(seed)
        affinity = random.normal(0.5, 3, len(edges))
        a, b, x = arrays(edges, affinity)
        best = np.array(list(self.best_by_permutation(6, edges, affinity.tolist())))
        evidence = Evidence(Edges.of(a, b, 6), x)
        for error in (1e-4, 0.01, 0.5, 20.0, 1e4):
            clear = clear_value(evidence) + math.log(ERROR / error)
            assert (best >= clear).mean() <= error

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("edges", [RING, [*RING, (0, 2)], STAR])
    def test_the_best_value_varies_no_more_than_half_the_sum(self, edges, seed):
        affinity = np.random.default_rng(seed).normal(0, 2, len(edges))
        best = list(self.best_by_permutation(6, edges, affinity.tolist()))
        assert np.var(best) <= len(edges) * np.var(affinity) / 2

    @settings(max_examples=100)
    @given(st.lists(st.floats(-60, 60), min_size=1, max_size=30))
    def test_a_mixture_is_at_least_the_likeliest(self, affinity):
        x, p = np.array(affinity), np.linspace(0, 1, 301)[:, None]
        with np.errstate(divide="ignore"):
            likelihood = np.logaddexp(np.log(1 - p), np.log(p) + x).sum(axis=1).max()
        width = np.ptp(x) / 1024
        assert likelihood - 1e-9 <= mixture(x) <= likelihood + (width + 0.05) * len(x)

    def test_a_strong_partition_needs_no_permutation(self, no_permutations):
        a, b, weights, n, _, truth = noisy_planted("blobs", 1, 0.2, n=600)
        evidence = Evidence(Edges.of(a, b, n), (0.575 - weights) * 0.75 / 0.04)
        assert is_clear(evidence.value_of(truth), evidence)
        assert not is_clear(evidence.value_of(truth) / 3, evidence)


class TestTrial:
    def test_deviations_are_those_of_chance_if_weights_know_no_clusters(self):
        a, b, random = random_graph(0, n=200, m=900)
        graph, held = Edges.of(a, b, 200), np.arange(0, len(a), 5)
        labels, affinity = random.integers(0, 3, 200), random.normal(1, 2, len(a)) ** 2
        seen = [
            Trial.of(Evidence(graph, random.permutation(affinity)), labels, held).deviations
            for _ in range(4000)
        ]
        assert abs(np.mean(seen)) < 5 / math.sqrt(4000)
        assert abs(np.std(seen) - 1) < 0.06
        assert np.std([0.8 * one for one in seen]) < 0.94  # what the last line would notice

    def test_pairs_that_edges_held_back_show_need_no_other_test(self, monkeypatch):
        def refuse(*_):
            raise AssertionError

        a, b, weights, n, _, truth = noisy_planted("blobs", 1, 0.4, n=600, n_clusters=4)
        evidence = Evidence(Edges.of(a, b, n), (0.575 - weights) * 0.75 / 0.16)
        held = np.arange(0, len(a), 5)
        monkeypatch.setattr(_evidence, "is_pair_clear", refuse)
        trial = Trial.of(evidence, truth, held)
        assert merge_unclear(evidence, truth, trial).tolist() == truth.tolist()
        halves = 2 * truth + np.random.default_rng(0).integers(0, 2, n)
        with pytest.raises(AssertionError):
            merge_unclear(evidence, halves, Trial.of(evidence, halves, held))
        with pytest.raises(AssertionError):  # clusters of another partition
            merge_unclear(evidence, truth, Trial.of(evidence, halves, held))

    def test_what_edges_held_back_do_not_know_is_not_compared(self, monkeypatch):
        a, b, random = random_graph(3)
        evidence = Evidence(Edges.of(a, b, 300), random.normal(0, 1, len(a)))
        seen, search = [], _evidence.best_partition

        def counted(*args):
            seen.append(1)
            return search(*args)

        monkeypatch.setattr(_evidence, "best_partition", counted)
        assert abs(select_penalty(evidence, 5.0).deviations) < 5
        assert len(seen) == 1


class TestNodesAround:
    @settings(max_examples=100)
    @given(small_graphs(max_nodes=9), st.data())
    def test_the_nearest_come_first(self, graph, data):
        n, edges, affinity, _ = graph
        a, b, _ = arrays(edges, affinity)
        labels = np.array([data.draw(st.integers(0, 2)) for _ in range(n)])
        small, large = np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)
        most, buffer = data.draw(st.integers(1, n)), np.full(n, -1)
        found = nodes_around(*adjacency(a, b, n)[:2], small, large, most, buffer).tolist()
        assert (buffer == -1).all()
        rings, seen = [], set(small.tolist())
        while True:
            near = {v for e in edges for u, v in (e, e[::-1]) if u in seen} - seen
            near &= set(large.tolist())
            if not near:
                break
            rings.append(near)
            seen |= near
        assert len(found) == len(set(found)) == min(most, sum(map(len, rings)))
        where = {v: i for i, ring in enumerate(rings) for v in ring}
        assert [where[v] for v in found] == sorted(where[v] for v in where)[: len(found)]


class TestPenalty:
    def evidence(self, family, deviation, **how):
        a, b, weights, n, _, truth = noisy_planted(family, 1, deviation, n=600, **how)
        affinity = (0.575 - weights) * 0.75 / deviation**2
        return Evidence(Edges.of(np.asarray(a), np.asarray(b), n), affinity), truth

    def test_few_large_clusters_in_much_noise_are_penalised_more(self):
        evidence, truth = self.evidence("moons", 0.6)
        chosen = select_penalty(evidence)
        assert chosen.penalty > 1
        assert best_partition(evidence)[0].max() > 1  # chance cuts the moons
        again, _ = best_partition(evidence._replace(penalty=chosen.penalty))
        assert agreement(truth, again) > 0.9

    def test_many_small_clusters_are_not(self):
        evidence, truth = self.evidence("blobs", 0.25, n_clusters=20)
        assert select_penalty(evidence).penalty == 1
        assert best_partition(evidence._replace(penalty=30.0))[0].max() < truth.max()

    def test_edges_held_back_are_not_searched(self, monkeypatch):
        evidence, _ = self.evidence("moons", 0.4)
        seen = []
        monkeypatch.setattr(
            _evidence,
            "best_partition",
            lambda one, *_: (seen.append(one), (np.zeros(600, np.int64), 0))[1],  # type: ignore[func-returns-value]
        )
        select_penalty(evidence)
        n_edges = len(evidence.affinity)
        assert [one.penalty for one in seen] == [1.0, 30.0]
        assert {len(one.affinity) for one in seen} == {n_edges - n_edges // 5}


@pytest.fixture(scope="module")
def release():
    return noisy_planted("moons", 5, 0.3)[:5]


class TestInvariance:
    def test_shift(self, release):
        a, b, weights, n, noise = release
        for shift in (-100.0, 2.0**20):
            assert contract(a, b, weights + shift, n, noise).tolist() == contract(*release).tolist()

    @pytest.mark.parametrize("unit", [2.0**-900, 3.0, 2.0**900])
    def test_unit(self, release, unit):
        a, b, weights, n, noise = release
        scaled = gaussian(noise.scale * unit)
        assert contract(a, b, weights * unit, n, scaled).tolist() == contract(*release).tolist()

    def test_order_of_edges(self, release):
        a, b, weights, n, noise = release
        order = np.random.default_rng(0).permutation(len(a))
        assert (
            contract(b[order], a[order], weights[order], n, noise).tolist()
            == contract(*release).tolist()
        )

    def test_numbers_of_nodes(self, release):
        a, b, weights, n, noise = release
        name = np.random.default_rng(0).permutation(n)
        assert (
            agreement(contract(name[a], name[b], weights, n, noise)[name], contract(*release))
            > 0.97
        )

    def test_edges_from_a_node_to_itself_tell_nothing(self, release):
        a, b, weights, n, noise = release
        loops = np.append(a, [0, 1]), np.append(b, [0, 1]), np.append(weights, [9.0, -9.0])
        assert contract(*loops, n, noise).tolist() == contract(*release).tolist()

    def test_outliers_do_not_hide_the_rest(self, release):
        a, b, weights, n, noise = release
        weights = weights.copy()
        weights[:3] = 1e12
        assert agreement(contract(a, b, weights, n, noise), contract(*release)) > 0.97

    def test_labels_are_numbered_by_first_appearance(self, release):
        labels = contract(*release)
        firsts = np.unique(labels, return_index=True)[1]
        assert labels.dtype == np.int64
        assert (np.diff(firsts) > 0).all()

    def test_same_release_same_labels_in_another_process(self, release):
        a, b, weights, n, noise = release
        code = (
            "import sys, numpy as np\n"
            "from ptclust.clustering import contract; from ptclust.privacy.noise import Noise\n"
            "a, b, w = np.frombuffer(sys.stdin.buffer.read()).reshape(3, -1)\n"
            f"noise = Noise('gaussian', {noise.scale!r}, -40, 1)\n"
            f"print(contract(a.astype(int), b.astype(int), w, {n}, noise).tolist())"
        )
        sent = np.stack([a, b, weights]).astype(float).tobytes()
        done = subprocess.run(
            [sys.executable, "-c", code], input=sent, capture_output=True, check=True
        )
        assert done.stdout.decode().strip() == str(contract(*release).tolist())


class TestDegenerate:
    @pytest.mark.parametrize("n", [0, 1, 2, 5])
    def test_no_edges(self, n):
        assert contract([], [], [], n, NO_NOISE).tolist() == list(range(n))

    @pytest.mark.parametrize("noise", [NO_NOISE, gaussian(0.1), gaussian(1e300), gaussian(1e-300)])
    @pytest.mark.parametrize("weight", [0.0, 0.5, -1e300])
    def test_equal_weights(self, noise, weight):
        a, b = np.triu_indices(12, 1)
        assert contract(a, b, np.full(len(a), weight), 12, noise).max() == 0

    def test_one_edge(self):
        assert contract([1], [0], [3.0], 2, gaussian(0.1)).tolist() == [0, 0]

    @pytest.mark.parametrize("weights", [(-1.7e308, 1.7e308), (5e-324, 1e-300), (1e300, 2e300)])
    def test_huge_and_tiny_weights(self, weights):
        a, b = np.triu_indices(30, 1)
        truth = np.arange(30) % 3
        values = np.where(truth[a] == truth[b], *weights)
        assert contract(a, b, values, 30, NO_NOISE).tolist() == truth.tolist()

    @settings(max_examples=60)
    @given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.floats(0, 0.5))
    def test_clusters_are_connected(self, seed, n, deviation):
        random = np.random.default_rng(seed)
        ends = random.integers(0, n, (2 * n, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        assume(len(ends) > 0)
        weights = random.choice([0.1, 0.9], len(ends)) + random.normal(0, deviation, len(ends))
        noise = gaussian(deviation) if deviation else NO_NOISE
        labels = contract(ends[:, 0], ends[:, 1], weights, n, noise)
        edges = [tuple(e) for e in ends.tolist()]
        assert all(partitions.is_connected(c, edges) for c in partitions.clusters(labels.tolist()))

    def test_components_are_clustered_each_by_itself(self):
        a, b, weights, n, noise, truth = noisy_planted("moons", 6, 0.25)
        twice = np.r_[a, np.asarray(a) + n], np.r_[b, np.asarray(b) + n], np.r_[weights, weights]
        labels = contract(*twice, 2 * n + 1, noise)
        assert agreement(np.r_[truth, truth + 2, 4], labels) > 0.97
        assert not set(labels[:n]) & set(labels[n:])
        assert labels[-1] == labels.max()

    def test_components_without_structure_stay_whole(self):
        a, b, random = random_graph(7, n=100, m=800)
        weights = random.normal(0, 1, len(a))
        labels = contract(
            np.r_[a, a + 100], np.r_[b, b + 100], np.r_[weights, weights], 200, gaussian(1.0)
        )
        assert labels.tolist() == [0] * 100 + [1] * 100


class TestErrors:
    def test_lengths(self):
        with pytest.raises(
            UsageError, match=r"rows of one length, but have the shapes \(2,\), \(2,\) and \(1,\)"
        ):
            contract([0, 1], [1, 2], [0.5], 3, NO_NOISE)

    @pytest.mark.parametrize("ends", [[0, 3], [-1, 0]])
    def test_numbers_of_nodes(self, ends):
        with pytest.raises(UsageError, match=r"numbered 0 to 2, but the ends of edges"):
            contract([0, 1], ends, [0.5, 0.5], 3, NO_NOISE)

    def test_weights(self):
        with pytest.raises(WeightError, match="NaN or infinite"):
            contract([0], [1], [math.nan], 2, NO_NOISE)
