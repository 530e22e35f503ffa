"""The exact sampler: all words in a small setting, every decision replayed, mutants noticed."""

from __future__ import annotations

import inspect
import math
import os
from collections import Counter
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest, chisquare, ks_2samp, kstest

from ptclust.mechanisms import _lattice_kernel as kernel
from ptclust.mechanisms.exact_noise import (
    BEYOND_T,
    Bits,
    LatticeSampler,
    alias_table,
    lattice_sampler,
)
from ptclust.mechanisms.lattice import add_noise, added_on_lattice, sampler_of
from ptclust.privacy import Noise, RandomStream, Sensitivity
from ptclust.privacy.noise import gaussian_noise, laplace_noise, lattice_measurement, noise_of_scale

ALPHA = 1e-6
DISTRIBUTIONS = ("laplace", "gaussian")
INSIDE = add_noise.__globals__
# Small and large, dyadic and not, and the largest that there is.
SCALES = [Fraction(t) for t in (1, "3.7", 20, 31, 32, 33, 100, 2**22, 2**45 + 1)]
SCALES.append(BEYOND_T - Fraction(1, 4))


@cache
def reference_exp(x: Fraction, bits: int = 700) -> Fraction:
    """e^-x by its series in integers, x halved until it is small: to about ``bits`` bits."""
    scale, halvings = bits + 64, math.ceil(x).bit_length() + 8
    y = (x.numerator << scale) // (x.denominator << halvings)
    term, total, i = 1 << scale, 0, 0
    while term:
        total += term if i % 2 == 0 else -term
        i += 1
        term = (term * y >> scale) // i
    for _ in range(halvings):
        total = total * total >> scale
    return Fraction(total, 1 << scale)


class Fed:
    """A source of given words, then of seeded ones."""

    def __init__(self, words: list[int], word_bits: int = 64, seed: int = 0) -> None:
        self.words, self.stream = list(words), RandomStream.seeded(seed)
        self.shift = np.uint64(64 - word_bits)

    def fill(self, words: NDArray[np.uint64]) -> None:
        self.stream.fill(words)
        words >>= self.shift
        for i in range(min(len(words), len(self.words))):
            words[i] = self.words.pop(0)


# Tables


def table_faults(sampler: LatticeSampler) -> list[str]:
    """What is wrong with the tables, against an exponential that shares no code with them."""
    faults, table = [], sampler.table
    total, slack = 2**sampler.word_bits, 1 + Fraction(1, 2**100)
    if sum(sampler.weights) != total:
        faults.append("weights do not add up")
    n_columns = len(table.thresholds)
    size, counts = total // n_columns, Counter[int]()
    for column in range(n_columns):
        counts[column] += int(table.thresholds[column])
        counts[int(table.aliases[column])] += size - int(table.thresholds[column])
    wanted = [*sampler.weights[:-1], *[0] * (n_columns - len(sampler.weights)), sampler.weights[-1]]
    if [counts[column] for column in range(n_columns)] != wanted:
        faults.append("alias table")
    for block, weight in enumerate(sampler.weights[:-1]):
        target = sampler.constant * reference_exp(sampler.phi(block << sampler.low_bits))
        if not target <= weight * slack or weight >= target * slack + 1:
            faults.append("a block is not dominated, or wasteful")
        if abs(float(target / weight) - table.ratios[block]) > 2.0**-50:
            faults.append("ratio")
    for group in range(40):
        size_at = sampler.tail_start + (group << sampler.tail_shift)
        target = sampler.constant * reference_exp(sampler.phi(size_at)) / 2**sampler.low_bits
        if sampler.weights[-1] < target * 2 ** (group + 1 + sampler.tail_shift) / slack:
            faults.append("the tail is not dominated")
    return faults


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("t", [SCALES[1], SCALES[6], SCALES[-1]], ids=float)
def test_the_tables_dominate_what_they_propose_for(distribution: str, t: Fraction) -> None:
    sampler = LatticeSampler(distribution, t)
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


def test_out_of_its_range_there_is_no_sampler() -> None:
    assert lattice_sampler("laplace", BEYOND_T) is None
    assert lattice_sampler("gaussian", Fraction(99, 100)) is None
    assert lattice_sampler("gaussian", Fraction(1)) is not None


# All words there are


@numba.njit
def _all_words(word_bits, table, smallest, accepted, opened):
    n, n_open, n_tail = np.uint64(1) << np.uint64(word_bits), 0, 0
    words = np.empty(3, np.uint64)
    for first in range(n):
        for second in range(n):
            for third in range(n):
                words[0], words[1], words[2] = first, second, third
                outcome, value, _ = kernel.attempt(words, np.uint64(0), table)
                if outcome == 0:
                    accepted[value - smallest] += 1
                elif outcome == 2:
                    column = first >> table.column_shift
                    own = (first & table.column_mask) < table.thresholds[column]
                    if (column if own else table.aliases[column]) == table.tail:
                        n_tail += 1
                        continue
                    if n_open < len(opened):
                        opened[n_open] = words
                    n_open += 1
    return n_open, n_tail


def wrong_yields(sampler: LatticeSampler) -> int:
    """In how many values the yield of all strings of three words differs from the exact one."""
    bits, table = sampler.word_bits, sampler.table
    largest = len(table.thresholds) << sampler.low_bits
    accepted = np.zeros(2 * largest + 1, dtype=np.int64)
    opened = np.empty((2**23, 3), dtype=np.uint64)
    n_open, n_tail = _all_words(bits, table, -largest, accepted, opened)
    assert n_open <= len(opened)
    yields: dict[int, Fraction] = {
        value: Fraction(int(count), 2 ** (3 * bits))
        for value, count in enumerate(accepted.tolist(), -largest)
    }
    v_bits, acceptance = 2 * bits - 1 - sampler.low_bits, dict[int, Fraction]()
    for first, second, third in opened[:n_open].tolist():
        column, part = divmod(first, 2**bits // len(table.thresholds))
        own = part < int(table.thresholds[column])
        block = column if own else int(table.aliases[column])
        rest, low = divmod(second, 2**sampler.low_bits)
        v, negative = divmod(rest, 2)
        size = (block << sampler.low_bits) + low
        if size not in acceptance:
            acceptance[size] = _acceptance(sampler, block, size) * 2**v_bits
        p = acceptance[size]
        share = min(max(p - (v << bits | third), Fraction(0)), Fraction(1))
        yields[-size if negative else size] += share / 2 ** (3 * bits)
    wrong = int(n_tail != sampler.weights[-1] * 4**bits)
    for value, found in yields.items():
        exact = Fraction(0)
        if abs(value) < sampler.tail_start:
            exact = sampler.constant * reference_exp(sampler.phi(abs(value)), 200)
            exact /= 2 ** (bits + 1 + sampler.low_bits)
        wrong += abs(found - exact) > Fraction(1, 2**150)
    return wrong


def _acceptance(sampler: LatticeSampler, block: int, size: int) -> Fraction:
    return sampler.constant * reference_exp(sampler.phi(size), 200) / sampler.weights[block]


SMALL = [("laplace", 100, 3), ("gaussian", 70, 4)]
ALL_SMALL = [*SMALL, ("laplace", 5, 4), ("gaussian", 150, 2)]


@pytest.mark.parametrize(("distribution", "t", "column_bits"), SMALL)
def test_all_strings_of_three_words_yield_the_distribution(
    distribution: str, t: int, column_bits: int
) -> None:
    sampler = LatticeSampler(distribution, Fraction(t), word_bits=9, column_bits=column_bits)
    assert wrong_yields(sampler) == 0
    sampler.table = sampler.table._replace(margin=-(2.0**-9))
    assert wrong_yields(sampler) > 0


@pytest.mark.long
@pytest.mark.parametrize(("distribution", "t", "column_bits"), ALL_SMALL)
def test_all_strings_of_three_10_bit_words_do(distribution: str, t: int, column_bits: int) -> None:
    sampler = LatticeSampler(distribution, Fraction(t), word_bits=10, column_bits=column_bits)
    assert wrong_yields(sampler) == 0


# Decisions


def boundary_words(sampler: LatticeSampler, count: int, seed: int) -> list[list[int]]:
    """Words at the thresholds of columns, with V at the boundary, or near, or a margin away."""
    table, v_bits, low_bits = sampler.table, 127 - sampler.low_bits, sampler.low_bits
    rows = RandomStream.seeded(seed).words(3 * count).reshape(-1, 3).tolist()
    columns = [0, 1, 1023, *np.random.default_rng(seed).integers(1023, size=count).tolist()]
    for i, row in enumerate(rows[: 3 * count // 4]):
        column = columns[i]
        threshold = int(table.thresholds[column])
        part = min(max((threshold, threshold - 1, 0, row[0] % 2**54)[i % 4], 0), 2**54 - 1)
        block = column if part < threshold else int(table.aliases[column])
        row[0] = column << 54 | part
        if block == 1023:
            continue
        low = (0, 2**low_bits - 1, row[1] % 2**low_bits)[i % 3]
        p = _acceptance(sampler, block, (block << low_bits) + low)
        off = (0, 0, 1, -1, 2, 1.1 * 2.0**-24, -1.1 * 2.0**-24, 2.0**-26, -(2.0**-26))[i % 9]
        steps = off if abs(off) >= 1 else int(off * 2.0**v_bits)
        v = min(max(math.floor(p * 2**v_bits) + int(steps), 0), 2**v_bits - 1)
        row[1:] = ((v >> 64) << 1 | row[1] >> 63) << low_bits | low, v % 2**64
    return rows


def decision_faults(sampler: LatticeSampler, attempt: Any, count: int = 360) -> list[str]:
    """Replay attempts in exact arithmetic: what a kernel got wrong, or left open needlessly."""
    faults = []
    truth = LatticeSampler(sampler.distribution, sampler.t)
    for row in boundary_words(truth, count, 5):
        words = np.array(row, dtype=np.uint64)
        outcome, value, used = attempt(words, np.uint64(0), sampler.table)
        first, second, third = row
        column, part = divmod(first, 2**54)
        own = part < int(truth.table.thresholds[column])
        block = column if own else int(truth.table.aliases[column])
        rest, low = divmod(second, 2**truth.low_bits)
        v, negative = divmod(rest, 2)
        size = (block << truth.low_bits) + low
        if block == 1023:
            faults += [] if outcome == kernel.OPEN else ["tail"]
            continue
        if size == 0 and negative:
            faults += [] if outcome == kernel.REJECTED else ["minus zero"]
            continue
        if value != (-size if negative else size):
            faults.append("value")
        p = _acceptance(truth, block, size)
        v_bits = 63 - truth.low_bits + 64
        least = Fraction(v << 64 | third, 2**v_bits)
        if used == 2:  # the third word was not looked at
            least = Fraction(v, 2 ** (v_bits - 64))
            most = least + Fraction(1, 2 ** (v_bits - 64))
        else:
            most = least + Fraction(1, 2**v_bits)
        if outcome == kernel.ACCEPTED and most > p:
            faults.append("accepted")
        if outcome == kernel.REJECTED and least < p:
            faults.append("rejected")
        if outcome == kernel.OPEN and abs(least - p) > 1.01 * 2.0**-24:
            faults.append("open")
        if outcome != kernel.OPEN and abs(least - p) < 0.9 * 2.0**-24 and used == 3:
            faults.append("decided within the margin")
    return faults


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("t", SCALES, ids=float)
def test_every_decision_is_the_exact_one(distribution: str, t: Fraction) -> None:
    assert decision_faults(LatticeSampler(distribution, t), kernel.attempt) == []


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_what_floats_leave_open_is_decided_exactly(distribution: str) -> None:
    sampler = LatticeSampler(distribution, Fraction(2**22 + 1))
    v_bits = 127 - sampler.low_bits
    for first, second, third in boundary_words(sampler, 200, 8)[:150]:
        block = first >> 54
        if block == 1023 or first % 2**54 >= int(sampler.table.thresholds[block]):
            continue
        rest, low = divmod(second, 2**sampler.low_bits)
        size = (block << sampler.low_bits) + low
        if not size:
            continue
        left = _acceptance(sampler, block, size) * 2**v_bits - ((rest >> 1) << 64 | third)
        # If p is in the last step of V, further words decide: all zeros, or all ones.
        zeros = sampler.settled([first, second, third], Bits(Fed([0] * 9), 64))
        ones = sampler.settled([first, second, third], Bits(Fed([2**64 - 1] * 9), 64))
        value = -size if rest & 1 else size
        assert zeros == (value if left > 0 else None)
        assert ones == (value if left >= 1 else None)


# Mutants


def faulty(sampler: LatticeSampler, attempt: Any = kernel.attempt) -> bool:
    with np.errstate(all="ignore"):
        return bool(table_faults(sampler) or decision_faults(sampler, attempt))


def _array(change: Any) -> Any:
    return lambda array: change(array.copy())


def _put(place: int, by: int) -> Any:
    def change(array: Any) -> Any:
        array[place] += np.uint64(by)
        return array

    return _array(change)


FIELDS = {
    "thresholds": _put(7, 1),
    "aliases": _put(3, 1),
    "ratios": lambda ratios: ratios * (1 - 2.0**-20),
    "column_shift": lambda shift: shift + np.uint64(1),
    "column_mask": lambda mask: mask >> np.uint64(1),
    "tail": lambda tail: tail - np.uint64(1),
    "low_bits": lambda bits: bits + np.uint64(1),
    "low_mask": lambda mask: mask >> np.uint64(1),
    "low_unit": lambda unit: unit * (1 + 2.0**-14),
    "slope": lambda slope: slope * (1 + 2.0**-14) + 2.0**-20,
    "curvature": lambda curvature: curvature * (1 + 2.0**-14) + 2.0**-20,
    "v_unit": lambda unit: unit * (1 - 2.0**-20),
    "v_fine": lambda fine: fine * 2,
    "margin": lambda margin: margin / 8,
}


def test_every_field_of_the_table_has_a_mutant() -> None:
    assert set(FIELDS) == set(kernel.Table._fields)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_mutants_of_the_table_are_noticed(field: str, distribution: str) -> None:
    sampler = LatticeSampler(distribution, SCALES[-1])
    assert not faulty(sampler)
    changed = FIELDS[field](getattr(sampler.table, field))
    sampler.table = sampler.table._replace(**{field: changed})
    assert faulty(sampler)


ATTRIBUTES = {
    "constant": lambda constant: constant + 2**40,
    "weights": lambda weights: [weights[0] - 1, *weights[1:-1], weights[-1] + 1],
    "tail_start": lambda start: start // 2,
    "tail_shift": lambda shift: shift + 1,
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_mutants_of_the_exact_numbers_are_noticed(name: str) -> None:
    sampler = LatticeSampler("laplace", Fraction(2**22 + 1))
    setattr(sampler, name, ATTRIBUTES[name](getattr(sampler, name)))
    assert table_faults(sampler)


LINES = {
    "if (first & table.column_mask) >= table.thresholds": "if (first & table.column_mask) > table"
    ".thresholds",
    "-size if is_negative": "size if is_negative",
    "if is_negative and size == 0": "if is_negative and size < 0",
    "np.float64(v + _ONE)": "np.float64(v) * (1 - 2.0**-12)",
    "0.5 * within": "within",
    "ratio * (1.0 - y)": "ratio * (1.0 - 0.99 * y)",
    "(1.0 - y) - table.margin": "(1.0 - y) + table.margin + y * y / 2",
    "np.float64(v) + third": "np.float64(v)",
    "range(8, 0, -1)": "range(2, 0, -1)",
    "series * y / i": "series * y",
    "series - table.margin": "series + table.margin",
    "series + table.margin": "series - table.margin",
    "if block == table.tail": "if block == table.tail + _ONE",
}


@pytest.mark.parametrize("line", LINES)
def test_mutants_of_the_kernel_are_noticed(line: str) -> None:
    source = inspect.getsource(inspect.unwrap(kernel.attempt)).replace("@kernel\n", "")
    assert source.count(line) == 1
    names = dict(vars(kernel))
    exec(source, names)
    samplers = [LatticeSampler(each, SCALES[-1]) for each in DISTRIBUTIONS]
    assert not any(faulty(sampler, names["attempt"]) for sampler in samplers)
    exec(source.replace(line, LINES[line]), names)
    assert any(faulty(sampler, names["attempt"]) for sampler in samplers)


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
    assert LatticeSampler(distribution, t).draw(RandomStream.seeded(seed), noise) == {}
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
    sampler = LatticeSampler(distribution, Fraction(t), column_bits=column_bits)
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
    sampler = LatticeSampler("laplace", t)
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
        SimpleNamespace(distribution="laplace", scale=0.0, granularity=k), len(values)
    )
    np.testing.assert_array_equal(rounded, without(values))


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


def test_few_values_and_large_scales_are_left_to_opendp() -> None:
    ours, theirs = "ptclust, exact on the lattice", "OpenDP"
    assert sampler_of(laplace_noise(Sensitivity(linf=1), 999, 1)) == theirs
    many = laplace_noise(Sensitivity(linf=1), 1000, 1)
    assert sampler_of(many) == ours
    assert sampler_of(many, "opendp") == theirs
    assert sampler_of(noise_of_scale(1.0, 10**7)) == theirs  # 2^64 steps
    for sensitivity in (Sensitivity(linf=1), Sensitivity(l1=1), Sensitivity(l2=1)):
        for n in (1000, 10**7):
            assert sampler_of(laplace_noise(sensitivity, n, 0.1)) == ours
            assert sampler_of(gaussian_noise(sensitivity, n, 0.001)) == ours


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
    assert len(keys) == 10 == len(set(keys))
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
