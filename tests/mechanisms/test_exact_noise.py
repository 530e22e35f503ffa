"""The exact sampler: all words in a small setting, every decision replayed, distributions."""

from __future__ import annotations

import math
import os
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest, chisquare, ks_2samp, kstest

from ptclust.errors import UsageError
from ptclust.mechanisms.lattice import add_noise, added_on_lattice, sampler_of
from ptclust.privacy import Noise, RandomStream, Sensitivity
from ptclust.privacy.noise import DISTRIBUTIONS as DISTRIBUTIONS_OF_NOISE
from ptclust.privacy.noise import GAUSSIAN, LAPLACE, gaussian_noise, laplace_noise, noise_of_scale
from ptclust.privacy.noise import _lattice_kernel as kernel
from ptclust.privacy.noise.exact import (
    BEYOND_T,
    SMALLEST_T,
    Bits,
    CubeSampler,
    LatticeSampler,
    alias_table,
    lattice_sampler,
)
from ptclust.privacy.noise.opendp import lattice_measurement
from tests.mechanisms.exactness import (
    Fed,
    decision_faults,
    half_width_faults,
    lattice_faults,
    loop_faults,
    overflow_faults,
    settling_faults,
    table_faults,
    uniform_faults,
    wrong_yields,
)

ALPHA = 1e-6
POWERS = {"laplace": 1, "gaussian": 2}
DISTRIBUTIONS = tuple(POWERS)
INSIDE = add_noise.__globals__
# Small and large, dyadic and not, and the largest that there is.
SCALES = [Fraction(t) for t in (1, "3.7", 20, 31, 32, 33, 100, 2**22, 2**45 + 1)]
SCALES.append(BEYOND_T - Fraction(1, 4))


# Tables


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("t", [SCALES[1], SCALES[6], SCALES[-1]], ids=float)
def test_the_tables_dominate_what_they_propose_for(distribution: str, t: Fraction) -> None:
    sampler = LatticeSampler(POWERS[distribution], t)
    assert table_faults(sampler) == []
    width = Fraction(2) ** sampler.low_bits / t
    assert sampler.low_bits == 0 or Fraction(1, 64) < width <= Fraction(1, 32)
    assert sampler.weights[-1] < 2**64 / 10**6


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40))
def test_an_alias_table_has_its_weights(weights: list[int]) -> None:
    weights[0] += -sum(weights) % len(weights)
    thresholds, aliases = alias_table(weights)
    size = sum(weights) // len(weights)
    counts = Counter(
        column if part < thresholds[column] else aliases[column]
        for column in range(len(weights))
        for part in range(size)
    )
    assert [counts[i] for i in range(len(weights))] == weights


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_nothing_overflows_at_the_largest_scale(distribution: str) -> None:
    assert overflow_faults(LatticeSampler(POWERS[distribution], SCALES[-1])) == []
    assert overflow_faults(LatticeSampler(POWERS[distribution], 4 * BEYOND_T)) != []


def test_out_of_its_range_there_is_no_sampler() -> None:
    for power, t in ((1, BEYOND_T), (2, Fraction(99, 100))):
        with pytest.raises(UsageError, match="steps of the lattice"):
            lattice_sampler(power, t)
    assert lattice_sampler(2, Fraction(1)).t == 1


# All words there are


SMALL = [("laplace", 100, 3), ("gaussian", 70, 4)]
ALL_SMALL = [*SMALL, ("laplace", 5, 4), ("gaussian", 150, 2)]


@pytest.mark.parametrize(("distribution", "t", "column_bits"), SMALL)
def test_all_strings_of_three_words_yield_the_distribution(
    distribution: str, t: int, column_bits: int
) -> None:
    sampler = LatticeSampler(
        POWERS[distribution], Fraction(t), word_bits=9, column_bits=column_bits
    )
    assert wrong_yields(sampler) == 0
    sampler.table = sampler.table._replace(margin=-(2.0**-9))
    assert wrong_yields(sampler) > 0


@pytest.mark.long
@pytest.mark.parametrize(("distribution", "t", "column_bits"), ALL_SMALL)
def test_all_strings_of_three_10_bit_words_do(distribution: str, t: int, column_bits: int) -> None:
    sampler = LatticeSampler(
        POWERS[distribution], Fraction(t), word_bits=10, column_bits=column_bits
    )
    assert wrong_yields(sampler) == 0


# Decisions


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("t", SCALES, ids=float)
def test_every_decision_is_the_exact_one(distribution: str, t: Fraction) -> None:
    assert decision_faults(LatticeSampler(POWERS[distribution], t), kernel.attempt) == []


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("t", [SCALES[1], 2**22 + Fraction(1, 3), SCALES[-1]], ids=float)
def test_what_floats_leave_open_is_decided_exactly(distribution: str, t: Fraction) -> None:
    assert settling_faults(LatticeSampler(POWERS[distribution], t), Bits) == []


@pytest.mark.parametrize(("n", "t"), [(1, "1/3"), (3, "0.4"), (17, "100/7"), (400, "3")])
def test_half_widths_of_cubes_are_decided_exactly(n: int, t: str) -> None:
    assert half_width_faults(CubeSampler(n, Fraction(t))) == []


def test_many_values_are_attempts_one_after_the_other() -> None:
    assert loop_faults(kernel) == []
    assert uniform_faults(kernel) == []


# Distributions


def looks_right(draws: NDArray[np.int64], distribution: str, t: float) -> bool:
    """A chi-square test over all values that are expected often enough, and all others together."""
    reach = math.ceil(t * math.log(len(draws)))
    sizes = np.abs(np.arange(-reach, reach + 1)) / t
    masses = np.exp(-sizes if distribution == "laplace" else -(sizes**2) / 2)
    expected = masses / masses.sum() * len(draws)
    often = expected >= 20
    inside = np.abs(draws) <= reach
    counts = np.bincount(draws[inside] + reach, minlength=len(expected))
    seen = [*counts[often], len(draws) - counts[often].sum()]
    wanted = [*expected[often], expected[~often].sum()]
    return bool(chisquare(seen, wanted, sum_check=False).pvalue > ALPHA)


def drawn(distribution: str, t: Fraction, count: int, seed: int) -> NDArray[np.int64]:
    noise = np.empty(count, dtype=np.int64)
    assert LatticeSampler(POWERS[distribution], t).draw(RandomStream.seeded(seed), noise) == {}
    return noise


def chi_square(distribution: str, t: Fraction, count: int) -> None:
    draws = drawn(distribution, t, count, 1)
    assert looks_right(draws, distribution, float(t))
    assert not looks_right(draws, distribution, float(t) * 1.03)
    assert not looks_right(draws + math.ceil(t / 10), distribution, float(t))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("t", [1, "3.7", 20, 100])
def test_small_scales_by_chi_square(distribution: str, t: Any) -> None:
    chi_square(distribution, Fraction(t), 1_000_000)


@pytest.mark.long
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("t", [1, "3.7", 20, 100])
def test_small_scales_by_chi_square_of_many(distribution: str, t: Any) -> None:
    chi_square(distribution, Fraction(t), 100_000_000)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("exponent", [22, 45, 55])
def test_large_scales_look_continuous_and_have_fair_low_digits(
    distribution: str, exponent: int
) -> None:
    t = Fraction(2) ** exponent + Fraction(1, 3)
    draws = drawn(distribution, t, 100_000, exponent)
    name = {"laplace": "laplace", "gaussian": "norm"}[distribution]
    assert kstest(draws / float(t), name).pvalue > ALPHA
    assert kstest(draws / float(t) * 1.1, name).pvalue < ALPHA
    for divisor in (2, 3, 256):
        assert chisquare(np.bincount(draws % divisor)).pvalue > ALPHA
    assert abs(binomtest(int((draws > 0).sum()), len(draws)).statistic - 0.5) < 0.01


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(("t", "column_bits"), [(40, 5)])
def test_forced_tails(distribution: str, t: int, column_bits: int) -> None:
    # With few columns most values are in the tail, where integers alone decide.
    sampler = LatticeSampler(POWERS[distribution], Fraction(t), column_bits=column_bits)
    tail = 31 << 59
    bits, count = Bits(RandomStream.seeded(3), 64), 1500
    settled = [sampler.settled([tail, 0, 0], bits) for _ in range(count)]
    values = np.array([value for value in settled if value is not None])
    sizes = np.arange(sampler.tail_start, sampler.tail_start + 40 * t)
    masses = np.exp([-float(sampler.phi(int(size))) for size in sizes])
    accepted = sampler.constant * 2.0**-sampler.low_bits * masses.sum() / sampler.weights[-1]
    assert binomtest(len(values), count, accepted).pvalue > ALPHA
    assert np.abs(values).min() >= sampler.tail_start
    assert binomtest(int((values > 0).sum()), len(values)).pvalue > ALPHA
    edges = np.searchsorted(np.cumsum(masses) / masses.sum(), np.arange(1, 10) / 10)
    cells = np.searchsorted(edges, np.abs(values) - sampler.tail_start, side="left")
    wanted = np.add.reduceat(masses, np.r_[0, edges + 1]) / masses.sum() * len(values)
    assert chisquare(np.bincount(cells, minlength=10), wanted).pvalue > ALPHA


def test_noise_that_no_int64_holds_is_drawn_too() -> None:
    t = BEYOND_T - 1
    sampler = LatticeSampler(1, t)
    tail = [1023 << 54, 0, 0]
    # 300 groups further, then the bits of the group and a V of zero.
    beyond = Fed([*[0] * 4, 1 << 19, *[0] * 40])
    value = sampler.settle(tail, beyond)
    assert abs(value) > 2**62
    assert value == sampler.tail_start + (300 << sampler.tail_shift)
    source = Fed([*tail[:1], *[0] * 67, *[0] * 4, 1 << 19, *[0] * 40])
    noise = np.empty(2, dtype=np.int64)
    giants = sampler.draw(source, noise)
    assert giants == {0: value}
    noisy = added_on_lattice(np.array([1.0, 2.0]), noise, -40, giants)
    assert noisy[0] == float(value + 2**40) * 2.0**-40


# The lattice


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    st.integers(-1074, 900),
)
@settings(max_examples=200)
def test_values_are_rounded_to_the_lattice_as_opendp_does(values: list[float], k: int) -> None:
    rounded = added_on_lattice(np.array(values), np.zeros(len(values), np.int64), k, {})
    without = lattice_measurement(
        SimpleNamespace(law=LAPLACE, scale=0.0, granularity=k), len(values)
    )
    np.testing.assert_array_equal(rounded, without(values))


def test_sums_on_the_lattice_are_exact() -> None:
    assert lattice_faults(kernel) == []


def test_ties_are_rounded_up() -> None:
    values = np.array([0.5, 1.5, -0.5, -1.5, 0.5 - 2.0**-54, 2.0**52 + 0.5, -(2.0**51) - 0.5])
    wanted = [1.0, 2.0, 0.0, -1.0, 0.0, 2.0**52, -(2.0**51)]
    zeros = np.zeros(len(values), np.int64)
    assert added_on_lattice(values, zeros, 0, {}).tolist() == wanted


@given(
    st.integers(-(2**62) + 2**53, 2**62 - 2**53),
    st.integers(-(2**53), 2**53),
    st.integers(-(2**53), 2**53),
    st.sampled_from([-1074, -1070, -40, 0, 3, 960]),
)
def test_the_double_depends_on_the_exact_sum_alone(total: int, a: int, b: int, k: int) -> None:
    sums = [
        added_on_lattice(np.ldexp([float(value)], k), np.array([total - value]), k, {})[0]
        for value in (a, b)
        if math.frexp(float(value) or 1.0)[1] + k < 1024
    ]
    # The same sum from a value beyond 2^62 steps, in integers.
    far = 2**63
    sums.append(
        added_on_lattice(np.ldexp([float(far)], k), np.zeros(1, np.int64), k, {0: total - far})[0]
    )
    assert len(set(sums)) == 1


# What is used when


def test_the_sampler_serves_every_calibration() -> None:
    sensitivities = [Sensitivity(**{norm: 1}) for norm in ("linf", "l1", "l2")]
    noises = [
        law.calibrate(sensitivity, n, amount)
        for law in DISTRIBUTIONS_OF_NOISE
        for sensitivity in sensitivities
        for n in (1, 999, 10**7)
        for amount in (1e-7, 0.001, 1, 1e9)
    ]
    noises += [law.of_scale(scale, n) for law in (LAPLACE, GAUSSIAN)
               for scale in (5e-308, 1.0, 1e300) for n in (1, 10**7, 2**62)]  # fmt: skip
    for noise in noises:
        if noise.distribution != "cube":  # its half-width is drawn in integers of any size
            assert SMALLEST_T <= noise.steps < BEYOND_T
        assert sampler_of(noise) == "ptclust, exact on the lattice"
    assert sampler_of(laplace_noise(Sensitivity(l1=1), 5, 1), "opendp") == "OpenDP"
    with pytest.raises(UsageError, match="too wide for its lattice"):
        laplace_noise(Sensitivity(l1=1), 10**9, 1e-9)
    assert add_noise(np.zeros(3), laplace_noise(Sensitivity(l1=1), 3, 1e-15)).std() > 1e13


@pytest.mark.parametrize("calibrate", [laplace_noise, gaussian_noise])
def test_both_samplers_draw_the_same(calibrate: Any) -> None:
    noise = calibrate(Sensitivity(l2=1.0), 20_000, 1)
    values = np.linspace(-1, 1, 20_000)
    ours, theirs = (add_noise(values, noise, sampler=each) - values for each in ("auto", "opendp"))
    assert ks_2samp(ours, theirs).pvalue > ALPHA
    assert ks_2samp(ours * 1.3, theirs).pvalue < ALPHA


def test_every_chunk_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, urandom = list[bytes](), os.urandom

    def recorded(count: int) -> bytes:
        keys.append(urandom(count))
        return keys[-1]

    monkeypatch.setattr(os, "urandom", recorded)
    monkeypatch.setitem(INSIDE, "_EXACT_CHUNK", 500)
    done = list[int]()
    noisy = add_noise(np.zeros(4700), noise_of_scale(1.0, 4700), progress=done.append)
    assert done == [*range(500, 4501, 500), 4700]
    assert len(set(noisy.tolist())) == 4700
    assert len(keys) == 11 == len(set(keys))  # one of what all chunks share
    assert all(len(key) == 32 for key in keys)


def test_ctrl_c_cancels_what_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    started, original = list[int](), INSIDE["_exactly_noisy_chunk"]

    def counted(*arguments: Any) -> Any:
        started.append(1)
        return original(*arguments)

    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(INSIDE, "_EXACT_CHUNK", 1000)
    monkeypatch.setitem(INSIDE, "_exactly_noisy_chunk", counted)
    with pytest.raises(KeyboardInterrupt):
        add_noise(np.zeros(500_000), noise_of_scale(1.0, 500_000), progress=interrupt)
    assert len(started) < 400


def test_values_far_beyond_the_lattice_get_noise_too() -> None:
    values = np.full(2000, 2.0**80)
    noise = Noise("laplace", 2.0**62, 22, 2000)
    drawn_noise = add_noise(values, noise) - values
    assert kstest(drawn_noise, "laplace", args=(0, 2.0**62)).pvalue > ALPHA
