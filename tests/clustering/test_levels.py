from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.clustering.levels import Levels, NoisyWeights, affinities, two_levels
from ptclust.errors import WeightError
from ptclust.privacy import Noise


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
