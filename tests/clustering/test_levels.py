"""Levels of weights, and the cuts of noisy trees that they and outliers make."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.clustering import cut_levels, dbmstclu, levels
from ptclust.clustering.dbmstclu import rooted
from ptclust.clustering.levels import (
    Levels,
    NoisyWeights,
    _gaussian_exceeds,
    _gaussian_with_tail,
    _laplace_exceeds,
    _laplace_with_tail,
    _price,
    _stands_out,
    _surprise,
    affinities,
    smaller_sides,
    two_levels,
)
from ptclust.errors import WeightError
from ptclust.graph import Topology
from ptclust.privacy.noise import Noise
from ptclust.trees import Tree
from tests.clustering.test_dbmstclu import trees


def gaussian(scale):
    return Noise("gaussian", scale, -40, 1)


NO_NOISE = Noise("gaussian", 0.0, -40, 0)


def random_tree(random, weights):
    """Every node hangs from one of the ten before it: neither a path nor a star."""
    n = len(weights) + 1
    parents = [int(random.integers(max(0, v - 10), v)) for v in range(1, n)]
    return Tree(Topology(parents, range(1, n)), weights)


def planted_tree(seed, deviation, *, size=40, n_clusters=5, distribution="gaussian"):
    """Random trees of weights in 0.1 to 0.3, joined in a row by edges in 0.9 to 1."""
    random = np.random.default_rng(seed)
    n = size * n_clusters
    truth = np.arange(n) // size
    parents = [
        int(random.integers((v // size) * size, v))
        if v % size
        else int(random.integers(v - size, v))
        for v in range(1, n)
    ]
    across = truth[parents] != truth[1:]
    weights = np.where(across, random.uniform(0.9, 1, n - 1), random.uniform(0.1, 0.3, n - 1))
    laplace = distribution == "laplace"
    scale = deviation / math.sqrt(2) if laplace else deviation
    draw = random.laplace if laplace else random.normal
    weights += draw(0, scale, n - 1)
    noise = Noise(distribution, scale, -40, n - 1) if deviation else NO_NOISE
    return Tree(Topology(parents, range(1, n)), weights), noise, np.flatnonzero(across), truth


def pieces(tree, cut):
    """Labels by first appearance of what is left without the edges in ``cut``."""
    labels = list(range(tree.n_nodes))
    for _ in range(tree.n_nodes):
        for edge, (a, b) in enumerate(zip(tree.sources, tree.targets)):
            if edge not in cut:
                labels[a] = labels[b] = min(labels[a], labels[b])
    return [sorted(set(labels)).index(label) for label in labels]


class TestPlanted:
    @pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
    @pytest.mark.parametrize("seed", range(4))
    def test_the_heavy_edges_are_cut(self, seed, distribution):
        tree, noise, across, truth = planted_tree(seed, 0.08, distribution=distribution)
        found = cut_levels(tree, noise)
        assert found.cuts.edge_ids.tolist() == across.tolist()
        assert found.labels.tolist() == truth.tolist()
        assert found.n_clusters == 5

    def test_one_heavy_edge_among_many(self):
        tree, noise, across, _ = planted_tree(9, 0.06, size=300, n_clusters=2)
        assert cut_levels(tree, noise).cuts.edge_ids.tolist() == across.tolist()

    def test_levels_within_levels(self):
        weights = np.tile([1.0] * 12 + [20.0], 9)[:-1]
        weights[38::39] = 400.0
        weights += np.random.default_rng(0).normal(0, 2.0, len(weights))
        tree = Tree(Topology(range(len(weights)), range(1, len(weights) + 1)), weights)
        assert cut_levels(tree, gaussian(2.0)).cuts.edge_ids.tolist() == list(range(12, 116, 13))

    @pytest.mark.parametrize("deviation", [0.3, 0.6])
    def test_no_levels_no_cuts(self, deviation):
        n_cut = 0
        for seed in range(10):
            random = np.random.default_rng(seed)
            weights = 0.5 + random.normal(0, deviation, 300)
            n_cut += len(
                cut_levels(random_tree(random, weights), gaussian(deviation)).cuts.edge_ids
            )
        assert n_cut == 0

    def test_a_tail_is_seldom_taken_for_a_level(self):
        n_wrong = 0
        for seed in range(20):
            random = np.random.default_rng(seed)
            weights = random.exponential(0.2, 300) + random.normal(0, 0.3, 300)
            n_wrong += cut_levels(random_tree(random, weights), gaussian(0.3)).n_clusters > 1
        assert n_wrong <= 3

    def test_dbmstclu_decides_where_noise_is_negligible(self):
        random = np.random.default_rng(3)
        tree = random_tree(random, random.uniform(0.1, 1, 200))
        found, expected = cut_levels(tree, gaussian(1e-3)), dbmstclu(tree)
        assert found.labels.tolist() == expected.labels.tolist()
        assert found.cuts.edge_ids.tolist() == expected.cuts.edge_ids.tolist()
        assert cut_levels(tree, gaussian(0.3)).n_clusters == 1

    def test_dbmstclu_gets_weights_of_at_least_one_deviation(self, monkeypatch):
        seen = []

        def record(tree):
            seen.append(tree.weights.min())
            return dbmstclu(tree)

        random = np.random.default_rng(3)
        monkeypatch.setattr(levels, "dbmstclu", record)
        cut_levels(random_tree(random, random.uniform(-1, 1, 200)), gaussian(0.01))
        assert seen == pytest.approx([0.01])

    def test_what_stands_out_needs_no_humps(self):
        """Weights spread too evenly for a level, but for two far above."""
        random = np.random.default_rng(5)
        weights = random.uniform(0, 1, 200)
        weights[[50, 120]] = 9.0, 14.0
        tree = random_tree(random, weights)
        assert cut_levels(tree, gaussian(0.02)).cuts.edge_ids.tolist() == [50, 120]
        sides = np.ones(200, np.int64)
        weights[[50, 120]] = 1.9, 2.1
        assert not _stands_out(NoisyWeights(weights, 0.01, is_laplace=False), sides, 201).any()

    def test_few_heavy_edges_bring_no_others_along(self):
        """One heavy edge among a thousand; the noise is a sixth of the gap."""
        n_cut = []
        for seed in range(12):
            random = np.random.default_rng(seed)
            weights = random.uniform(0.1, 0.3, 999) + random.normal(0, 0.12, 999)
            weights[499] = 0.92
            path = Tree(Topology(range(999), range(1, 1000)), weights)
            found = cut_levels(path, gaussian(0.12))
            assert 499 in found.cuts.edge_ids
            n_cut.append(len(found.cuts.edge_ids))
        assert sum(n_cut) <= 14

    @pytest.mark.parametrize("n_low", [1, 3])
    def test_few_light_edges_are_no_level(self, n_low):
        """Else all others would be cut."""
        random = np.random.default_rng(2)
        weights = 0.5 + random.normal(0, 0.1, 300)
        weights[:n_low] = -0.1
        assert cut_levels(random_tree(random, weights), gaussian(0.1)).n_clusters == 1

    def test_three_scales(self):
        """Heavy edges that are on no level, each cut of them clear in what others leave."""
        random = np.random.default_rng(4)
        weights = random.uniform(0, 0.1, 400) + random.normal(0, 0.05, 400)
        weights[[100, 200, 300]] = 0.6, 1.2, 2.4
        path = Tree(Topology(range(400), range(1, 401)), weights)
        assert cut_levels(path, gaussian(0.05)).cuts.edge_ids.tolist() == [100, 200, 300]


class TestInvariance:
    def test_shift_and_unit(self):
        tree, noise, across, _ = planted_tree(0, 0.08)
        for shift, unit in ((-5.0, 1.0), (0.0, 2.0**900), (0.0, 3e-200)):
            moved = Tree(tree.topology, tree.weights * unit + shift)
            found = cut_levels(moved, gaussian(noise.scale * unit))
            assert found.cuts.edge_ids.tolist() == across.tolist()

    def test_order_of_edges(self):
        tree, noise, across, _ = planted_tree(1, 0.08)
        order = np.random.default_rng(0).permutation(len(tree.weights))
        topology = Topology(tree.targets[order], tree.sources[order], n_nodes=tree.n_nodes)
        found = cut_levels(Tree(topology, tree.weights[order]), noise)
        assert sorted(order[found.cuts.edge_ids].tolist()) == across.tolist()

    @settings(max_examples=60)
    @given(trees(max_nodes=30), st.sampled_from([0.0, 0.01, 0.5]))
    def test_labels_are_what_the_cuts_leave(self, tree, deviation):
        found = cut_levels(tree, gaussian(deviation) if deviation else NO_NOISE)
        assert found.labels.tolist() == pieces(tree, set(found.cuts.edge_ids.tolist()))
        assert found.n_clusters == len(found.cuts.edge_ids) + 1

    def test_trees_of_a_forest_share_their_levels(self):
        """A tree of a few edges shows no levels by itself."""
        tree, noise, across, truth = planted_tree(2, 0.05)
        n = tree.n_nodes
        sources = np.append(tree.sources, [n, n + 1])
        targets = np.append(tree.targets, [n + 1, n + 2])
        forest = Tree(
            Topology(sources, targets, n_nodes=n + 4), np.append(tree.weights, [0.2, 0.95])
        )
        found = cut_levels(forest, noise)
        assert found.cuts.edge_ids.tolist() == [*across.tolist(), n]
        assert found.labels.tolist() == [*truth.tolist(), 5, 5, 6, 7]


class TestParts:
    @settings(max_examples=150)
    @given(trees(max_nodes=12), st.data())
    def test_smaller_sides(self, tree, data):
        n_edges = tree.n_nodes - 1
        cut = np.array([data.draw(st.booleans()) for _ in range(n_edges)])
        sides = smaller_sides(rooted(tree), cut)
        gone = set(np.flatnonzero(cut).tolist())
        for edge in range(n_edges):
            before, after = pieces(tree, gone), pieces(tree, gone | {edge})
            a, b = after[tree.sources[edge]], after[tree.targets[edge]]
            expected = 0 if cut[edge] else min(after.count(a), after.count(b))
            assert sides[edge] == expected
            if not cut[edge]:
                assert after.count(a) + after.count(b) == before.count(before[tree.sources[edge]])

    def test_price_is_how_rare_heavy_edges_are(self):
        sides = np.array([1, 5, 1, 3])
        one = Levels(math.nan, share=0.9, low=0.0, high=1.0, variance=1.0)
        assert _price(sides, one) == pytest.approx(np.log([4, 1, 4, 2]))
        two = one._replace(share=0.5)
        assert _price(sides, two) == pytest.approx(np.log([2, 1, 2, 1]))

    @pytest.mark.parametrize("is_laplace", [False, True])
    @pytest.mark.parametrize("tail", [0.0, 1.0])
    def test_chance_seldom_stands_out(self, monkeypatch, is_laplace, tail):
        """If a tenth of the trees may be cut, at most twice as many are: the fit is not exact."""
        monkeypatch.setattr(levels, "_FALSE", 0.1)
        random = np.random.default_rng(7)
        n_wrong = 0
        for _ in range(300):
            noise = (
                random.laplace(0, math.sqrt(0.5), 300) if is_laplace else random.normal(size=300)
            )
            seen = NoisyWeights(noise + random.exponential(tail, 300), 1.0, is_laplace=is_laplace)
            n_wrong += int(_stands_out(seen, random.integers(1, 150, 300), 301).any())
        assert 5 < n_wrong < 60

    def test_the_parts_of_pieces_sum_to_the_whole(self):
        """A piece of a tenth of the nodes may be wrong a tenth as often."""
        weights = np.append(np.random.default_rng(0).exponential(1.0, 99), 0.0)
        sides = np.ones(100, np.int64)
        steps = np.linspace(1, 40, 400)

        def least(n_nodes):
            for weights[99] in steps:
                if _stands_out(NoisyWeights(weights, 0.1, is_laplace=False), sides, n_nodes)[99]:
                    return _surprise(NoisyWeights(weights, 0.1, is_laplace=False))[99]
            return math.nan

        assert least(1010) - least(101) == pytest.approx(math.log(10), abs=0.1)

    def test_surprise_of_few_weights_is_that_of_an_uncertain_mean(self):
        """Almost without noise, one more exponential exceeds x means of m + 1: (1 + x / m)^-m."""
        below = np.array([0.0, 0.1, 0.3, 0.4, 0.8, 0.9, 1.7, 2.0, 2.4])
        weights = NoisyWeights(np.append(5.0, below), 1e-4, is_laplace=False)
        spread = below.std(ddof=1)
        x = (5.0 - below.mean() + spread) / spread
        assert _surprise(weights)[0] == pytest.approx(8 * math.log1p(x / 8), rel=1e-3)

    def test_a_tail_may_be_there_unseen(self):
        """Weights that vary less than the noise get a tail of the error of its variance."""
        below = np.linspace(-0.5, 0.5, 9)
        tail = (2 / 8) ** 0.25
        nats = -_gaussian_exceeds(np.array([4.0 + tail]), 1.0, np.array([tail]))[0]
        weights = NoisyWeights(np.append(below, 4.0), 1.0, is_laplace=False)
        assert _surprise(weights)[9] == pytest.approx(8 * math.log1p(nats / 8))

    @pytest.mark.parametrize("tail", [0.1, 0.7, 0.7 / math.sqrt(2), 3.0])
    @pytest.mark.parametrize(
        ("exceeds", "density"),
        [(_gaussian_exceeds, _gaussian_with_tail), (_laplace_exceeds, _laplace_with_tail)],
    )
    def test_probabilities_are_integrals_of_densities(self, exceeds, density, tail):
        x = np.linspace(-20, 60, 400_001)
        f = np.exp(density(x, 0.7, tail)) * (x[1] - x[0])
        upwards = np.cumsum(f[::-1])[::-1]
        at = np.searchsorted(x, [-3.0, -0.5, 0.0, 0.4, 2.0, 4.0])
        probabilities = np.exp(exceeds(x[at], 0.7, np.full(len(at), tail)))
        assert probabilities == pytest.approx(upwards[at], rel=2e-3)

    @pytest.mark.parametrize("tail", [0.1, 0.7, 0.7 / math.sqrt(2), 3.0])
    @pytest.mark.parametrize("density", [_gaussian_with_tail, _laplace_with_tail])
    def test_densities_with_a_tail(self, density, tail):
        """They integrate to one, and mean and variance are those of the sum."""
        x = np.linspace(-20, 60, 400_001)
        f = np.exp(density(x, 0.7, tail))
        step = x[1] - x[0]
        mean = (x * f).sum() * step
        assert f.sum() * step == pytest.approx(1, abs=1e-4)
        assert mean == pytest.approx(tail, rel=1e-3)
        assert ((x - mean) ** 2 * f).sum() * step == pytest.approx(0.49 + tail**2, rel=1e-3)


class TestDegenerate:
    @pytest.mark.parametrize("n", [0, 1, 3])
    @pytest.mark.parametrize("noise", [NO_NOISE, gaussian(0.1)])
    def test_no_edges(self, n, noise):
        found = cut_levels(Tree(Topology([], [], n_nodes=n), []), noise)
        assert found.labels.tolist() == list(range(n))
        assert found.cuts.edge_ids.tolist() == []

    @pytest.mark.parametrize("noise", [NO_NOISE, gaussian(0.1), gaussian(1e300)])
    @pytest.mark.parametrize("weight", [0.5, -3.0, 0.0])
    def test_equal_weights_are_one_cluster(self, noise, weight):
        tree = Tree(Topology(range(20), range(1, 21)), np.full(20, weight))
        assert cut_levels(tree, noise).n_clusters == 1

    def test_exact_levels_without_noise(self):
        weights = np.tile([0.1] * 9 + [0.9], 4)[:-1]
        tree = Tree(Topology(range(39), range(1, 40)), weights)
        assert sorted(cut_levels(tree, NO_NOISE).cuts.edge_ids.tolist()) == [9, 19, 29]

    def test_without_noise_the_answer_is_dbmstclus(self):
        """Few edges on each level do not show a level, or a spread; single edges do."""
        random = np.random.default_rng(1)
        for _ in range(20):
            weights = random.uniform(0.1, 0.3, 39)
            weights[[9, 19, 29]] = random.uniform(0.9, 1.0, 3)
            tree = Tree(Topology(range(39), range(1, 40)), weights)
            assert sorted(cut_levels(tree, gaussian(1e-6)).cuts.edge_ids.tolist()) == [9, 19, 29]

    def test_weights_that_are_not_finite(self):
        class Broken:
            n_nodes, weights = 3, np.array([1.0, math.nan])

        with pytest.raises(WeightError, match="NaN or infinite"):
            cut_levels(Broken(), NO_NOISE)

    def test_same_tree_same_cuts(self):
        tree, noise, *_ = planted_tree(4, 0.2)
        assert cut_levels(tree, noise).labels.tolist() == cut_levels(tree, noise).labels.tolist()


def mixture(seed, *, n=8000, low=0.2, high=0.95, share=0.6, deviation=0.4, laplace=False):
    random = np.random.default_rng(seed)
    true = np.where(random.random(n) < share, low, high)
    draw = random.laplace if laplace else random.normal
    noisy = true + draw(0, deviation / math.sqrt(2) if laplace else deviation, n)
    return NoisyWeights(noisy, deviation, is_laplace=laplace)


def log_likelihood(values, levels, laplace):
    """By the densities themselves, value by value."""
    total = 0.0
    for x in values:
        density = 0.0
        for part, level in ((levels.share, levels.low), (1 - levels.share, levels.high)):
            if laplace:
                b = math.sqrt(levels.variance / 2)
                density += part * math.exp(-abs(x - level) / b) / (2 * b)
            else:
                density += part * math.exp(-((x - level) ** 2) / (2 * levels.variance))
        if not laplace:
            density /= math.sqrt(2 * math.pi * levels.variance)
        total += math.log(density)
    return total


def expectation_maximisation(values, noise_variance, share, low, high, variance):
    """The textbook, value by value, without a histogram; Gaussian."""
    for _ in range(3000):
        a = share * np.exp(-((values - low) ** 2) / (2 * variance))
        b = (1 - share) * np.exp(-((values - high) ** 2) / (2 * variance))
        r = a / (a + b)
        share, low, high = (
            r.mean(),
            np.average(values, weights=r),
            np.average(values, weights=1 - r),
        )
        within = np.mean(r * (values - low) ** 2 + (1 - r) * (values - high) ** 2)
        variance = max(within, noise_variance)
    return Levels(0.0, share, low, high, variance)


class TestTwoLevels:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("laplace", [False, True])
    def test_finds_levels_that_noise_has_run_into_one(self, seed, laplace):
        found = two_levels(mixture(seed, n=40000, laplace=laplace))
        assert found.low == pytest.approx(0.2, abs=0.06)
        assert found.high == pytest.approx(0.95, abs=0.06)
        assert found.share == pytest.approx(0.6, abs=0.06)
        assert found.variance == pytest.approx(0.16, rel=0.05)

    @pytest.mark.parametrize("seed", range(3))
    def test_equals_the_textbook(self, seed):
        weights = mixture(seed, n=2000, deviation=0.2)
        expected = expectation_maximisation(weights.values, 0.04, 0.5, 0.0, 1.0, 0.1)
        found = two_levels(weights)
        for field in ("share", "low", "high", "variance"):
            assert getattr(found, field) == pytest.approx(getattr(expected, field), abs=0.01), field

    @pytest.mark.parametrize("laplace", [False, True])
    def test_log_likelihood_is_that_of_the_densities(self, laplace):
        weights = mixture(5, n=1000, deviation=0.2, laplace=laplace)
        found = two_levels(weights)
        direct = log_likelihood(weights.values, found, laplace)
        assert found.log_likelihood == pytest.approx(direct, abs=2.0)  # of about 700; bins round

    def test_no_start_is_better(self):
        """The levels found are at least as likely as the true ones."""
        for seed in range(5):
            weights = mixture(seed)
            truth = Levels(0.0, 0.6, 0.2, 0.95, 0.16)
            assert (
                two_levels(weights).log_likelihood
                > log_likelihood(weights.values, truth, False) - 2
            )

    def test_variance_is_never_below_that_of_the_noise(self):
        values = np.random.default_rng(0).normal(0, 0.1, 500)
        assert two_levels(NoisyWeights(values, 0.5, is_laplace=False)).variance == 0.25

    def test_spread_is_what_noise_does_not_explain(self):
        random = np.random.default_rng(0)
        true = np.where(random.random(20000) < 0.5, 0, 3) + random.normal(0, 0.3, 20000)
        weights = NoisyWeights(true + random.normal(0, 0.4, 20000), 0.4, is_laplace=False)
        assert two_levels(weights).spread(weights) == pytest.approx(0.3, abs=0.03)

    @pytest.mark.parametrize("values", [[0.5], [0.5] * 9, [0.0, 1e-200]])
    @pytest.mark.parametrize("deviation", [0.0, 0.1])
    def test_equal_weights_have_no_gap(self, values, deviation):
        found = two_levels(NoisyWeights(np.array(values), deviation, is_laplace=False))
        assert found.gap == pytest.approx(0.0, abs=1e-150)


class TestAffinities:
    @pytest.mark.parametrize("laplace", [False, True])
    def test_is_the_logarithm_of_the_ratio_of_densities(self, laplace):
        weights = mixture(0, n=50, laplace=laplace)
        levels = Levels(0.0, 0.5, 0.2, 0.9, 0.16)
        for x, affinity in zip(weights.values, affinities(weights, levels)):
            low = log_likelihood([x], levels._replace(share=1.0), laplace)
            high = log_likelihood([x], levels._replace(share=0.0), laplace)
            assert affinity == pytest.approx(low - high)

    def test_laplace_is_bounded(self):
        levels = Levels(0.0, 0.5, 0.0, 1.0, 2.0)
        weights = NoisyWeights(np.array([-1e9, 1e9]), 1.0, is_laplace=True)
        assert affinities(weights, levels).tolist() == [1.0, -1.0]


class TestNoisyWeights:
    @settings(max_examples=200)
    @given(
        st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=20, unique=True),
        st.integers(-900, 900),
        st.floats(0.01, 10.0),
    )
    def test_unit_makes_no_difference(self, values, exponent, scale):
        unit = 2.0**exponent
        noise = Noise("gaussian", scale, -40, len(values))
        scaled = Noise("gaussian", scale * unit, -40, len(values))
        small = np.array(values) / 1000
        one, other = NoisyWeights.of(small, noise), NoisyWeights.of(small * unit, scaled)
        assert one.values.tolist() == other.values.tolist()
        assert one.deviation == other.deviation

    def test_begins_at_zero_and_ends_about_one(self):
        noise = Noise("laplace", 1.0, -40, 3)
        weights = NoisyWeights.of([-1.7e308, 0.0, 1.7e308], noise)
        assert weights.values.min() == 0
        assert 0.5 <= weights.values.max() <= 1
        assert weights.is_laplace

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_refuses_what_is_not_finite(self, bad):
        with pytest.raises(WeightError, match=r"NaN or infinite.*read the release again"):
            NoisyWeights.of([1.0, bad], Noise("laplace", 1.0, -40, 2))

    def test_does_not_change_what_it_is_given(self):
        given_weights = np.array([3.0, 5.0])
        NoisyWeights.of(given_weights, Noise("laplace", 1.0, -40, 2))
        assert given_weights.tolist() == [3.0, 5.0]
