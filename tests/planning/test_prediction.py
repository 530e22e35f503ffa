"""Predicting what a budget shows: planted clusters, honest curves, and no private weight."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from ptclust import Graph, Sensitivity, Topology, graph_from_flows
from ptclust._statistics import agreement, margin_of
from ptclust.clustering.clusterer import by_size
from ptclust.errors import FileError, InputError, PrivacyWarning, UsageError
from ptclust.mechanisms import MECHANISMS
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import Curve, Point, Prediction, effort, predict
from ptclust.planning.effort import default_sizes
from ptclust.planning.planting import (
    Counts,
    TwoLevels,
    connected_pieces,
    typical_size,
)
from ptclust.planning.simulation import Simulation
from ptclust.privacy import RandomStream
from ptclust.report import draw_curve
from tests.lazy import lazy

nx = lazy("networkx")

LINF = {"sensitivity": Sensitivity(linf=1e-3), "delta": 1e-6}
#: A clusterer that answers in milliseconds; which one it is plays no part in most tests.
QUICK = {"clusterer": "dbmstclu", "mechanism": "kruskal"}


def topology_of(graph) -> Topology:
    graph = nx.convert_node_labels_to_integers(graph)
    ends = np.array(graph.edges(), dtype=np.int64).reshape(-1, 2)
    return Topology(ends[:, 0], ends[:, 1], n_nodes=graph.number_of_nodes())


def king_graph(width: int) -> Topology:
    return topology_of(nx.strong_product(nx.path_graph(width), nx.path_graph(width)))


def spider(n_legs: int, length: int) -> Any:
    graph = nx.Graph()
    for leg in range(n_legs):
        nx.add_path(graph, ["hub", *((leg, i) for i in range(length))])
    return graph


def caterpillar(length: int, n_legs: int) -> Any:
    graph = nx.path_graph(length)
    graph.add_edges_from((i, (i, leg)) for i in range(length) for leg in range(n_legs))
    return graph


def dumbbell(n_leaves: int) -> Any:
    graph = nx.disjoint_union(nx.star_graph(n_leaves), nx.star_graph(n_leaves))
    nx.add_path(graph, [0, "a", "b", n_leaves + 1])
    return graph


DIVISIBLE = {
    "path": nx.path_graph(200),
    "cycle": nx.cycle_graph(200),
    "grid": nx.grid_2d_graph(14, 14),
    "complete": nx.complete_graph(60),
    "bipartite": nx.complete_bipartite_graph(30, 30),
    "wheel": nx.wheel_graph(200),
    "binary tree": nx.balanced_tree(2, 7),
    "random graph": nx.gnm_random_graph(200, 1500, seed=1),
    "hubs": nx.barabasi_albert_graph(200, 3, seed=1),
    "small world": nx.watts_strogatz_graph(200, 6, 0.1, seed=1),
    "caterpillar": caterpillar(40, 3),
    "cliques on a ring": nx.ring_of_cliques(12, 15),
    "three grids": nx.disjoint_union_all([nx.grid_2d_graph(8, 8)] * 3),
}


def are_connected(topology: Topology, pieces) -> bool:
    """Whether the edges within pieces join each of them, and none is missing a number."""
    assert set(pieces.tolist()) == set(range(pieces.max() + 1))
    within = np.flatnonzero(pieces[topology.sources] == pieces[topology.targets])
    return topology.restricted_to(within).n_components == pieces.max() + 1


class TestPieces:
    @pytest.mark.parametrize("name", DIVISIBLE)
    @pytest.mark.parametrize("share", [2, 5, 12])
    def test_connected_and_near_the_size(self, name, share):
        topology = topology_of(DIVISIBLE[name])
        size = max(2, int(np.bincount(topology.components).max()) // share)
        for seed in range(3):
            pieces = connected_pieces(topology, size, np.random.default_rng(seed))
            sizes = np.bincount(pieces)
            assert are_connected(topology, pieces)
            assert size <= 2 * typical_size(pieces) <= 3 * size
            assert 2 * sizes.min() >= size
            # of all nodes, most are in pieces of the promised size
            assert sizes[2 * sizes < 3 * size + 2].sum() >= 0.8 * len(pieces)

    @settings(max_examples=150)
    @given(
        n_nodes=st.integers(1, 40),
        density=st.floats(0, 0.3),
        size=st.integers(2, 20),
        seed=st.integers(0, 2**20),
    )
    def test_connected_on_any_topology(self, n_nodes, density, size, seed):
        topology = topology_of(nx.gnp_random_graph(n_nodes, density, seed=seed))
        pieces = connected_pieces(topology, size, np.random.default_rng(seed))
        assert are_connected(topology, pieces)
        assert np.array_equal(pieces, connected_pieces(topology, size, np.random.default_rng(seed)))
        component = np.bincount(topology.components)[topology.components]
        small = np.bincount(pieces)[pieces] * 2 < size
        assert np.array_equal(small, component * 2 < size)  # only small components are small pieces

    @settings(max_examples=60)
    @given(n_nodes=st.integers(2, 60), size=st.integers(2, 30), seed=st.integers(0, 2**20))
    def test_connected_on_any_tree(self, n_nodes, size, seed):
        random = np.random.default_rng(seed)
        later = np.arange(1, n_nodes)
        topology = Topology(later, random.integers(0, later))
        assert are_connected(topology, connected_pieces(topology, size, random))

    def test_a_path_is_divided_evenly(self):
        path = topology_of(nx.path_graph(96))
        for size in (48, 24, 12, 8):
            pieces = connected_pieces(path, size, np.random.default_rng(0))
            assert (np.bincount(pieces) == size).all()

    def test_a_star_cannot_be_divided(self):
        star = topology_of(nx.star_graph(99))
        assert typical_size(connected_pieces(star, 10, np.random.default_rng(0))) == 100

    def test_branches_are_cut_off_a_hub(self):
        """What grows around a hub takes in all that is near; going deep is better."""
        binary = topology_of(nx.balanced_tree(2, 8))
        assert sorted(np.bincount(connected_pieces(binary, 255, np.random.default_rng(0)))) == [
            255,
            256,
        ]
        two_stars = topology_of(dumbbell(50))
        assert len(np.bincount(connected_pieces(two_stars, 52, np.random.default_rng(0)))) == 2

    def test_two_sides(self):
        """Nearest nodes first: all people come before any second thing, and stars are left."""
        market = topology_of(nx.complete_bipartite_graph(50, 150))
        largest = [
            np.bincount(connected_pieces(market, 20, np.random.default_rng(seed))).max()
            for seed in range(20)
        ]
        assert np.mean(largest) < 40

    def test_components_are_never_joined(self):
        cliques = topology_of(nx.caveman_graph(10, 6))
        assert (np.bincount(connected_pieces(cliques, 30, np.random.default_rng(0))) == 6).all()

    def test_another_seed_plants_elsewhere(self):
        grid = king_graph(10)
        first, second = (connected_pieces(grid, 50, np.random.default_rng(seed)) for seed in (0, 1))
        assert agreement(first, second) < 1

    def test_thousands_of_branches(self):
        """One by one they could not be cut off within the work allowed; many at once they are."""
        topology = topology_of(spider(1000, 10))
        pieces = connected_pieces(topology, 20, np.random.default_rng(0))
        assert are_connected(topology, pieces)
        assert np.bincount(pieces).max() < 60

    def test_typical_size_counts_nodes(self):
        assert typical_size(np.array([0] * 10 + [1] * 10 + list(range(2, 8)))) == 10


class TestWeights:
    def test_light_within_and_heavy_across(self):
        grid = king_graph(8)
        random = np.random.default_rng(0)
        pieces = connected_pieces(grid, 16, random)
        weights = TwoLevels((2.0, 4.0)).weights(grid, pieces, random)
        within = pieces[grid.sources] == pieces[grid.targets]
        assert 2.2 <= weights[within].min() < weights[within].max() <= 2.6
        assert 3.8 <= weights[~within].min() < weights[~within].max() <= 4.0
        assert np.ptp(weights[within]) > 0.35  # all of the interval is used
        assert np.ptp(weights[~within]) > 0.15

    @given(
        low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), contrast=st.floats(0.001, 1)
    )  # fmt: skip
    def test_never_outside_the_range(self, low, width, contrast):
        within, across = TwoLevels((low, low + width), contrast).intervals
        for bounds in (within, across):
            assert low <= bounds[0] <= bounds[1] <= low + width
        assert across[0] >= within[0]
        assert across[1] >= within[1]

    def test_less_contrast_brings_them_closer(self):
        gaps = []
        for contrast in (1.0, 0.5, 0.25):
            within, across = TwoLevels((0.0, 1.0), contrast).intervals
            assert within == pytest.approx((0.1, 0.3))
            gaps.append(across[0] - within[1])
        assert gaps == pytest.approx([0.6, 0.2, 0.0])


def all_pairs(n_nodes: int) -> Topology:
    return Topology(*np.triu_indices(n_nodes, 1))


def strengths(topology: Topology, counts) -> Any:
    ends = np.concatenate([topology.sources, topology.targets])
    return np.bincount(ends, np.concatenate([counts, counts]), topology.n_nodes)


class TestCounts:
    topology = all_pairs(200)
    pieces = np.arange(200) // 50

    def drawn(self, seed=0, **options):
        planting = Counts(**{"total": 1e6, **options})
        return planting.weights(self.topology, self.pieces, np.random.default_rng(seed))

    def test_are_whole_and_as_many_as_were_said(self):
        counts = self.drawn()
        assert np.array_equal(counts, np.round(counts))
        assert counts.min() >= 0
        assert counts.sum() == pytest.approx(1e6, rel=6e-3)  # six deviations

    def test_nodes_differ_in_size_and_counts_have_heavy_tails(self):
        counts = self.drawn()
        assert 0.65 < np.log(strengths(self.topology, counts)).std() < 1.2
        assert counts.max() > 30 * counts.mean()
        assert counts.mean() > 2.5 * np.median(counts)

    @pytest.mark.parametrize(("contrast", "share"), [(1.0, 0.05), (0.5, 0.525)])
    def test_across_there_is_a_share(self, contrast, share):
        """Of a pair that is alike otherwise: with the same seed, the same nodes and factors."""
        one = np.zeros(200, dtype=np.int64)
        planting = Counts(1e9, contrast)
        same = planting.weights(self.topology, one, np.random.default_rng(1))
        planted = planting.weights(self.topology, self.pieces, np.random.default_rng(1))
        within = self.pieces[self.topology.sources] == self.pieces[self.topology.targets]
        rate = [planted[part].sum() / same[part].sum() for part in (within, ~within)]
        assert rate[1] / rate[0] == pytest.approx(share, rel=0.01)

    def test_without_clusters_nothing_tells_them(self):
        null = Counts(1e9).without_clusters(self.topology, np.random.default_rng(2))
        same = Counts(1e9).weights(self.topology, 0 * self.pieces, np.random.default_rng(2))
        assert np.array_equal(null, same)

    def test_are_clipped_as_the_weights_will_be(self):
        assert self.drawn(clip=(2.0, 30.0)).min() == 2.0
        assert self.drawn(clip=(2.0, 30.0)).max() == 30.0

    def test_are_published_as_similarities(self, monkeypatch):
        kinds = []
        draw = MECHANISMS["laplace"].draw

        def spy(graph, *rest, **options):
            kinds.append(graph.kind)
            return draw(graph, *rest, **options)

        monkeypatch.setattr(MECHANISMS["laplace"], "draw", spy)
        asked = {"sizes": [10], "epsilons": [1], "repetitions": 1, "mechanism": "laplace"}
        unit = {"sensitivity": Sensitivity(l1=1), "delta": 0}
        predict(all_pairs(20), kind="similarity", total=1e4, **asked, **unit)
        assert set(kinds) == {"similarity"}
        predict(all_pairs(20), **asked, **unit)
        assert kinds[-1] == "distance"

    def test_more_records_show_more(self):
        asked = {"sizes": [20], "epsilons": [0.5], "repetitions": 6, **QUICK}
        unit = {"sensitivity": Sensitivity(l1=1), "delta": 0}
        prediction = predict(all_pairs(40), kind="similarity", **unit, **asked)
        assert [curve.total for curve in prediction.curves] == [780e3, 780e2, 7800, 780]
        text = prediction.to_text()
        assert "How many records there are was not said" in text
        assert "780,000" in text
        said = predict(all_pairs(40), kind="similarity", total=7800, **unit, **asked)
        assert said.curves[0].points == prediction.curves[2].points
        assert "was not said" not in said.to_text()
        found = said.to_dict()
        assert (found["kind"], found["total"], found["share_across"]) == ("similarity", 7800, 0.05)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"total": 5}, "total is that of counts: say kind='similarity'"),
            ({"kind": "similarity", "total": 0}, "total must lie above 0"),
            ({"kind": "similarity", "total": float("nan")}, "total must lie above 0"),
            ({"kind": "similarity", "total": 1e16}, "at most 1e"),
            ({"kind": "similarity", "total": "many"}, "total must be a number, not 'many'"),
            ({"kind": "count"}, "kind must be 'distance' or 'similarity', not 'count'"),
        ],
    )
    def test_what_is_wrong_is_said(self, options, words):
        with pytest.raises(UsageError, match=words):
            predict(king_graph(6), **LINF, **options)


class TestAgreement:
    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
    def test_is_the_adjusted_rand_index(self, pairs):
        truth, labels = np.array(pairs).T
        assert agreement(truth, labels) == pytest.approx(adjusted_rand_score(truth, labels))

    def test_needs_no_room_for_all_pairs_of_clusters(self):
        singletons = np.arange(300_000)
        assert agreement(singletons, singletons[::-1]) == 1.0

    def test_margin(self):
        assert margin_of([0.5]) is None
        # t(0.975, 3) = 3.182446; the standard deviation is 1.290994
        assert margin_of([1, 2, 3, 4]) == pytest.approx(3.182446 * 1.290994 / 2, rel=1e-5)


class TestSizes:
    @pytest.mark.parametrize(
        ("n_nodes", "sizes"),
        [
            (4, (2,)),
            (15, (7,)),
            (70, (35, 8)),
            (1000, (500, 125, 31)),
            (10**5, (50000, 3125, 195, 12)),
        ],
    )
    def test_default(self, n_nodes, sizes):
        assert default_sizes(topology_of(nx.path_graph(n_nodes))) == sizes

    def test_of_several_components_the_largest_counts(self):
        assert default_sizes(topology_of(nx.disjoint_union_all([nx.path_graph(40)] * 9))) == (20,)

    @pytest.mark.parametrize("sizes", [None, [1], [2], ["x"]])
    @pytest.mark.parametrize("n_nodes", [0, 1, 2, 3])
    def test_too_small_to_predict(self, n_nodes, sizes):
        """No size fits, so none is requested: it is the graph that is too small."""
        most = f"at most {n_nodes} node{'' if n_nodes == 1 else 's'}; .* of at least 4"
        with pytest.raises(InputError, match=most):
            predict(topology_of(nx.path_graph(n_nodes)), sizes=sizes, **LINF)

    @pytest.mark.parametrize("n_nodes", [4, 5])
    def test_where_one_size_fits(self, n_nodes):
        with pytest.raises(UsageError, match=r"must be 2, half of the largest .*, not 3"):
            predict(topology_of(nx.path_graph(n_nodes)), sizes=[2, 3], **LINF)

    @pytest.mark.parametrize("sizes", [[1], [51], [10, 5.5], [True], [-3], ["10"]])
    def test_out_of_range(self, sizes):
        with pytest.raises(UsageError, match=r"from 2 to 50.*not " + repr(sizes[-1])):
            predict(topology_of(nx.path_graph(100)), sizes=sizes, **LINF)

    def test_none_at_all(self):
        with pytest.raises(UsageError, match="at least one size"):
            predict(topology_of(nx.path_graph(100)), sizes=[], **LINF)


@pytest.fixture(scope="module")
def clear() -> Prediction:
    """Return the curves of clear clusters on a grid, from hopeless to plenty."""
    return predict(
        king_graph(12),
        sizes=[18, 72],
        epsilons=[1e-3, 1e3, 0.3],
        planned=2.0,
        repetitions=6,
        **LINF,
    )


class TestPredict:
    def test_from_nothing_to_all(self, clear):
        assert [curve.size for curve in clear.curves] == [72, 18]
        for curve in clear.curves:
            assert [point.epsilon for point in curve.points] == [1e-3, 0.3, 2.0, 1e3]
            least, *_, most = curve.points
            assert most.ari > (0.99 if curve.size == 72 else 0.8)
            # where noise is all there is, planted weights look like equal ones
            assert least.ari == pytest.approx(least.control, abs=0.1)
            assert curve.control < 0.4  # what the topology gives alone
        assert clear.curves[0].visible_from in (0.3, 2.0)

    def test_large_clusters_are_seen_first(self, clear):
        large, small = clear.curves
        assert large.at(0.3).ari > small.at(0.3).ari
        assert (large.n_clusters, small.n_clusters) == (2, 8)
        assert 72 <= large.typical_size < 90
        assert 15 <= small.typical_size < 22

    @pytest.mark.parametrize("options", [QUICK, {"clusterer": "levels"}])
    def test_less_contrast_needs_more(self, options):
        runs = [
            predict(
                king_graph(8), sizes=[32], epsilons=[5.0], repetitions=6, contrast=contrast,
                **LINF, **options,
            ).curves[0].points[0].ari
            for contrast in (1.0, 0.1)
        ]  # fmt: skip
        assert runs[0] > runs[1] + 0.3

    def test_clusters_of_the_topology_are_told_from_those_of_noise(self):
        def shown(topology, clusterer):
            options = {"sizes": [10], "epsilons": [1e-3], "repetitions": 4, **LINF}
            return predict(topology, clusterer=clusterer, **options)

        cliques = topology_of(nx.disjoint_union_all([nx.complete_graph(20)] * 3))
        three = shown(cliques, "communities")
        assert three.topology_clusters == 3
        noise = shown(topology_of(nx.complete_graph(60)), "dbmstclu")
        assert noise.topology_clusters == 1
        assert "The topology alone shows" not in noise.to_text()
        assert (
            f"The topology alone shows {three.topology_clusters} other clusters" in three.to_text()
        )

    def test_the_same_seed_gives_the_same(self):
        def run(seed):
            options = {"sizes": [16], "epsilons": [0.5, 1.0], "repetitions": 3, **LINF, **QUICK}
            return predict(king_graph(6), random_state=seed, **options)

        assert run(3).to_dict() == run(np.int64(3)).to_dict()
        assert run(3).to_dict() != run(4).to_dict()

    def test_what_is_measured_is_the_pipeline(self, monkeypatch):
        """Every run follows the plan for its epsilon, with all that was asked, on its own seed."""
        seeds, seen = [], []
        labels, seeded = Simulation.labels, RandomStream.seeded

        def watched(seed):
            seeds.append(seed)
            return seeded(seed)

        def spy(simulation, weights, epsilon, *key):
            found, plan = labels(simulation, weights, epsilon, *key), simulation.plan(epsilon)
            assert simulation.topology == topology
            assert -1.0 <= weights.min() <= weights.max() <= 3.0
            assert plan.chosen.mechanism == "pamst"
            assert plan.request.calibration == "published"
            assert plan.request.clip == (-1.0, 3.0)
            seen.append((float(plan.budget.epsilon), len(set(weights)), seeds[-1]))
            real = Graph(topology.sources, topology.targets, weights)
            request = ReleaseRequest(plan=plan.request, random_state=seeds[-1])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)
                release = publish(real, request)
            assert release.clusterer == "levels"
            assert release.labels.tolist() == by_size(found).tolist()
            return found

        monkeypatch.setattr(Simulation, "labels", spy)
        monkeypatch.setattr(RandomStream, "seeded", watched)
        topology = king_graph(6)
        predict(
            topology,
            sensitivity=Sensitivity(linf=1e-3),
            delta=0,
            sizes=[9, 18],
            epsilons=[1, 10],
            mechanism="pamst",
            clusterer="levels",
            calibration="published",
            clip=(-1, 3),
            repetitions=2,
        )
        assert len(seen) == 2 * 2 * 2 + 2 * 2  # sizes, epsilons, repetitions; and equal weights
        assert len({seed for *_, seed in seen}) == len(seen)
        assert sorted(distinct == 1 for _, distinct, _ in seen) == [False] * 8 + [True] * 4
        assert sorted(epsilon for epsilon, *_ in seen) == [1.0] * 6 + [10.0] * 6

    def test_refines_where_clusters_come_into_sight(self):
        said = []
        prediction = predict(
            king_graph(8),
            sizes=[32],
            repetitions=4,
            progress=lambda text: said.append(float(text.split()[-1])),
            **LINF,
            **QUICK,
        )
        curve = prediction.curves[0]
        tried = [point.epsilon for point in curve.points]
        assert tried == sorted(tried)
        decades = {0.01, 0.1, 1.0, 10.0, 100.0}
        assert decades < set(tried)
        assert 2 <= len(set(tried) - decades) <= 3
        first = next(epsilon for epsilon in said if epsilon not in decades)
        assert first / 10.0 ** np.floor(np.log10(first)) == pytest.approx(
            3
        )  # the middle of its decade
        assert set(tried) <= {*effort.FINE, 100.0}
        # nothing of the grid lies between the last that fails and the first that does not
        last = tried[tried.index(curve.visible_from) - 1]
        grid = [*effort.FINE, 100.0]
        assert grid.index(curve.visible_from) == grid.index(last) + 1
        assert all(point.ari >= 0.9 for point in curve.points if point.epsilon > last)
        assert curve.at(last).ari < 0.9

    def test_topology_that_shows_the_clusters(self):
        """Cliques that no edge joins are seen at any epsilon; this says nothing about weights."""
        cliques = topology_of(nx.disjoint_union(nx.caveman_graph(30, 10), nx.complete_graph(20)))
        prediction = predict(cliques, sizes=[10], epsilons=[1e-4], repetitions=3, **LINF)
        assert prediction.curves[0].control > 0.9
        assert "say nothing about weights" in prediction.to_text()

    def test_a_star_has_no_clusters_to_plant(self):
        prediction = predict(topology_of(nx.star_graph(99)), **LINF)
        assert prediction.curves == ()
        assert len(prediction.left_out) == 2
        assert "pieces of about 100" in prediction.left_out[0]
        assert "Left out: clusters of 50 nodes" in prediction.to_text()
        json.dumps(prediction.to_dict())


class TestWorkIsBounded:
    def run(self, monkeypatch, work, **options):
        monkeypatch.setattr(effort, "WORK", work)
        return predict(king_graph(12), **LINF, **QUICK, **options)

    def test_fewer_repetitions_then_epsilons_then_sizes(self, monkeypatch):
        shapes = []
        for work in (1e7, 3e6, 2e6, 1e6, 7e5, 4e5, 1e5, 1):
            prediction = self.run(monkeypatch, work)
            epsilons = {point.epsilon for curve in prediction.curves for point in curve.points}
            shapes.append((len(prediction.curves), len(epsilons), prediction.repetitions))
            assert bool(prediction.left_out) == (prediction.repetitions < 8)
        assert shapes == sorted(shapes, reverse=True)
        assert shapes[-1] == (1, 1, 1)
        assert len(set(shapes)) >= 5

    def test_what_is_left_out_is_said(self, monkeypatch):
        prediction = self.run(monkeypatch, 1, planned=0.7)
        assert [point.epsilon for point in prediction.curves[0].points] == [0.7]
        text = " ".join(prediction.to_text().split())
        assert "Left out: clusters of 18 nodes" in text
        assert "Left out: all epsilons but 0.7" in text
        assert "Left out: all but one repetition" in text
        assert prediction.curves[0].points[0].margin is None

    def test_what_is_asked_for_is_done(self, monkeypatch):
        prediction = self.run(monkeypatch, 1, sizes=[18, 40], epsilons=[1, 2, 3], repetitions=2)
        assert [curve.size for curve in prediction.curves] == [40, 18]
        assert [len(curve.points) for curve in prediction.curves] == [3, 3]
        assert prediction.repetitions == 2
        assert prediction.left_out == ()

    def test_a_slow_clusterer_is_replaced_unless_asked_for(self, monkeypatch):
        monkeypatch.setattr(effort, "WORK", 1e3)
        options = {"sizes": [18], "epsilons": [1.0], "repetitions": 1, **LINF}
        for clusterer, used in (("auto", "levels"), ("communities", "communities")):
            prediction = predict(king_graph(6), clusterer=clusterer, **options)
            assert prediction.curves[0].points[0].clusterer == used
            assert ("holds for clusterer='levels'" in str(prediction.left_out)) == (
                used == "levels"
            )

    def test_progress_is_told_and_an_interruption_gets_through(self):
        said = []

        def progress(text):
            said.append(text)
            if len(said) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            predict(king_graph(6), progress=progress, **LINF, **QUICK)
        assert said[0] == "Predicting: clusters of 18 nodes, repetition 1 of 16, epsilon = 0.01"


class TestNothingPrivate:
    def test_a_graph_is_refused(self):
        graph = Graph([0, 1, 2, 3], [1, 2, 3, 4], [0.123456789] * 4)
        with pytest.raises(InputError, match=r"looks at no weight.*graph\.topology") as error:
            predict(graph, **LINF)
        assert "0.123" not in str(error.value)

    def test_the_range_is_taken_to_be_0_to_1_and_that_is_said(self, clear):
        assert "taken to lie in 0 to 1" in clear.to_text()
        assert clear.to_dict()["weight_range_assumed"] is True
        declared = predict(
            king_graph(6), sizes=[18], epsilons=[1.0], repetitions=1, clip=(0, 50), **LINF
        )
        assert "taken to lie" not in declared.to_text()
        assert "5 to 15 within clusters and 45 to 50 across" in declared.to_text()
        assert declared.to_dict()["weight_range"] == [0.0, 50.0]


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"contrast": 0}, "above 0 and be at most 1, not 0"),
            ({"contrast": 1.5}, "at most 1, not 1.5"),
            ({"contrast": "high"}, "not 'high'"),
            ({"repetitions": 0}, "repetitions must be a whole number of at least 1, not 0"),
            ({"random_state": -1}, "random_state must be a whole number of at least 0, not -1"),
            ({"random_state": None}, "no secret randomness"),
            ({"epsilons": []}, "positive numbers"),
            ({"epsilons": [1.0, 0.0]}, "positive numbers"),
            ({"epsilons": [float("nan")]}, "positive numbers"),
            ({"planned": -1.0}, "epsilon must be greater than 0, but is -1.0"),
            ({"clip": (1, 0)}, "the smaller first"),
            ({"mechanism": "prim"}, "'prim'"),
            ({"clusterer": "k-means"}, "'k-means'"),
            ({"sensitivity": 0.1}, "must be a Sensitivity"),
            ({"delta": 2}, "delta"),
        ],
    )
    def test_what_is_wrong_is_said(self, options, words):
        with pytest.raises(UsageError, match=words):
            predict(king_graph(6), **{**LINF, **options})


def made_up(*ari: float, planned: float | None = 1.0) -> Prediction:
    points = tuple(
        Point(10.0**i, "gaussian", "levels", value, 0.05, 0.1 if i else None)
        for i, value in enumerate(ari)
    )
    curve = Curve(50, 48, 4, points)
    return Prediction(
        n_nodes=200,
        n_edges=900,
        sensitivity=Sensitivity(linf=0.1),
        delta=1e-6,
        kind="distance",
        total=None,
        weight_range=(0.0, 1.0),
        contrast=1.0,
        repetitions=8,
        planned=planned,
        curves=(curve,),
        topology_clusters=1,
        left_out=("the rest",),
    )


class TestResult:
    @pytest.mark.parametrize(
        ("ari", "visible", "words"),
        [
            ((0.1, 0.95, 1.0), 10.0, "10  "),
            ((0.9, 0.9, 0.9), 1.0, "at most 1"),
            ((0.1, 0.95, 0.89), None, "none up to 100"),
            ((0.95, 0.2, 0.95), 100.0, "100"),  # from there on: a lucky one before does not count
        ],
    )
    def test_visible_from(self, ari, visible, words):
        prediction = made_up(*ari)
        assert prediction.curves[0].visible_from == visible
        assert words in prediction.to_text()

    def test_text(self):
        text = made_up(0.52, 0.95, 1.0).to_text()
        for words in ("Nothing is spent", "0.52 ± 0.05", "0.10", "yours may be less clear"):
            assert words in text
        assert text.endswith("Left out: the rest.")
        assert "ARI at epsilon" not in made_up(0.5, 1.0, planned=None).to_text()

    def test_json(self, clear):
        document = json.loads(json.dumps(clear.to_dict()))
        assert document["goal"] == 0.9
        assert [curve["size"] for curve in document["curves"]] == [72, 18]
        assert set(document["curves"][0]["points"][0]) == {
            "epsilon", "mechanism", "clusterer", "ari", "margin", "control",
        }  # fmt: skip

    @pytest.mark.parametrize("suffix", [".png", ".svg"])
    def test_picture(self, clear, tmp_path, suffix):
        path = tmp_path / f"curve{suffix}"
        draw_curve(clear, path=path)
        magic = {".png": b"\x89PNG", ".svg": b"<?xml"}[suffix]
        first = path.read_bytes()
        assert first.startswith(magic)
        draw_curve(clear, path=path)
        assert path.read_bytes() == first

    def test_picture_of_nothing_and_of_parts(self, tmp_path):
        nothing = predict(topology_of(nx.star_graph(9)), **LINF)
        draw_curve(nothing, path=tmp_path / "nothing.png")
        draw_curve(made_up(0.5, 1.0, planned=None), path=tmp_path / "parts.svg")
        with pytest.raises(UsageError, match="png"):
            draw_curve(nothing, path=tmp_path / "curve.txt")

    def test_what_the_picture_shows(self, tmp_path, monkeypatch):
        from matplotlib.figure import Figure

        shown = []
        save = Figure.savefig

        def keep(self, *arguments, **options):
            shown.append(self)
            save(self, *arguments, **options)

        monkeypatch.setattr(Figure, "savefig", keep)
        draw_curve(made_up(0.5, 0.7, 1.0), path=tmp_path / "curve.png")
        axes = shown[0].axes[0]
        assert axes.get_xscale() == "log"
        styles = {line.get_linestyle(): line for line in axes.lines}
        dashed = next(line for line in axes.lines if line.get_linestyle() == "--")
        assert list(dashed.get_xdata()) == [10.0, 100.0]
        assert list(styles[":"].get_xdata()) == [1.0, 1.0]
        assert [text.get_text() for text in axes.get_legend().get_texts()] == [
            "4 clusters of 48 nodes", "topology alone", "planned: epsilon = 1",
        ]  # fmt: skip
        assert len(axes.collections) == 1  # the interval


@pytest.fixture
def edges(run):
    grid = king_graph(6)
    lines = (f"n{a},n{b}" for a, b in zip(grid.sources.tolist(), grid.targets.tolist()))
    Path("edges.csv").write_text("\n".join(["source,target", *lines]) + "\n")


BUDGET = ["--epsilon", "1/2", "--delta", "1e-6", "--linf", "1e-3"]
SHORT = ["--repetitions", "2", "--clusterer", "dbmstclu"]


@pytest.mark.usefixtures("edges")
class TestCommandLine:
    def test_without_predict_it_is_the_plan(self, run):
        code, out, _ = run("plan", "edges.csv", *BUDGET)
        assert code == 0
        assert "36 nodes" in out
        assert "Prediction" not in out
        assert "prediction" not in json.loads(run("plan", "edges.csv", *BUDGET, "--json")[1])

    def test_plan_then_prediction_then_picture(self, run):
        options = ["--predict", "--plot", "curve.png", "--sizes", "9,18"]
        code, out, err = run("plan", "edges.csv", *BUDGET, *SHORT, *options)
        assert (code, err.count("\n"), err.partition(":")[0]) == (0, 1, "Predicting")
        assert out.startswith(run("plan", "edges.csv", *BUDGET, "--clusterer", "dbmstclu")[1])
        assert "ARI at epsilon = 0.5" in out
        assert out.index("36 nodes") < out.index("Prediction") < out.index("nodes each")
        assert Path("curve.png").read_bytes().startswith(b"\x89PNG")

    def test_json(self, run):
        options = ["--predict", "--json", "--contrast", "0.5", "--clip", "0", "2"]
        out = run("plan", "edges.csv", *BUDGET, *SHORT, *options)[1]
        document = json.loads(out)
        assert document["n_nodes"] == 36
        prediction = document["prediction"]
        assert prediction["planned"] == 0.5
        assert prediction["contrast"] == 0.5
        assert prediction["weight_range"] == [0.0, 2.0]
        assert prediction["repetitions"] == 2
        assert {point["clusterer"] for point in prediction["curves"][0]["points"]} == {"dbmstclu"}

    def test_a_graph_that_was_built_is_one_of_counts(self, run):
        rides = pl.DataFrame({"origin": [0, 1, 2], "destination": [1, 2, 3]})
        graph_from_flows(rides, nodes=range(12)).save("graph.parquet")
        options = ["--epsilon", "1", "--predict", "--sizes", "6", *SHORT]
        prediction = json.loads(run("plan", "graph.parquet", *options, "--json")[1])["prediction"]
        assert prediction["kind"] == "similarity"
        assert [curve["total"] for curve in prediction["curves"]] == [66e3, 6600, 660, 66]
        code, out, _ = run("plan", "graph.parquet", *options, "--total", "5000")
        assert code == 0
        assert "Weights are counts as of flows" in out
        assert "5,000" in out
        assert "or say it (--total)" not in out
        found = run("plan", "edges.csv", *BUDGET, *SHORT, "--predict", "--kind", "similarity")[1]
        assert "or say it\n(--total)" in found

    def test_a_tiny_graph(self, run):
        Path("tiny.csv").write_text("source,target\na,b\nb,c\n")
        code, out, err = run("plan", "tiny.csv", *BUDGET, "--predict", "--sizes", "2")
        assert (code, out) == (InputError.exit_code, "")
        assert "nothing to predict where connected parts have at most 3 nodes" in err

    @pytest.mark.parametrize(
        ("options", "code", "words"),
        [
            (["--plot", "curve.png"], 2, "--plot is about the prediction: say --predict"),
            (["--sizes", "9"], 2, "--sizes is about the prediction"),
            (["--total", "9"], 2, "--total is about the prediction"),
            (["--predict", "--total", "9"], 2, "say --kind similarity, or leave it out"),
            (["--predict", "--sizes", "19"], 2, "from 2 to 18"),
            (["--predict", "--sizes", "9,x"], 2, "9,x"),
            (["--predict", "--contrast", "7"], 2, "contrast"),
            (["--predict", "--plot", "curve.txt"], 2, "png"),
            (["--predict", "--plot", "none/curve.png"], FileError.exit_code, "does not exist"),
        ],
    )
    def test_errors(self, run, options, code, words):
        found, out, err = run("plan", "edges.csv", *BUDGET, *options)
        assert (found, out) == (code, "")
        assert words in err
