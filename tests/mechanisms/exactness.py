"""Checks of the exact sampler against arithmetic that shares no code with it.

Each takes what it checks, as it is or changed on purpose, and returns what is wrong with it.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numba
import numpy as np
from numpy.typing import NDArray

from ptclust.mechanisms.lattice import lattice_powers
from ptclust.privacy import RandomStream
from ptclust.privacy.noise import _lattice_kernel as kernel
from ptclust.privacy.noise.exact import MARGIN, CubeSampler, LatticeSampler

ONE = np.uint64(1)


@cache
def reference_exp(x: Fraction, bits: int = 700) -> Fraction:
    """e^-x to about ``bits`` bits, by mpmath."""
    with mpmath.workprec(bits + 64):
        mantissa, exponent = mpmath.exp(mpmath.mpf(-x.numerator) / x.denominator).man_exp
    return int(mantissa) * Fraction(2) ** int(exponent)


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


class ExhaustedError(Exception):
    """More words were requested than there are."""


class Given:
    """A source of these bits, then of some zeros, and of nothing else."""

    def __init__(self, bits: str) -> None:
        whole = bits + "0" * (640 - len(bits) % 64)
        self.words = [int(whole[i : i + 64], 2) for i in range(0, len(whole), 64)]

    def fill(self, words: NDArray[np.uint64]) -> None:
        for i in range(len(words)):
            if not self.words:
                raise ExhaustedError
            words[i] = self.words.pop(0)


class Replay(NamedTuple):
    """What the three words of an attempt mean."""

    block: int
    size: int
    negative: int
    v: int
    v_bits: int

    @classmethod
    def of(cls, sampler: LatticeSampler, row: list[int]) -> Replay:
        first, second, third = row
        bits, table = sampler.word_bits, sampler.table
        column, part = divmod(first, 2**bits // len(table.thresholds))
        own = part < int(table.thresholds[column])
        block = column if own else int(table.aliases[column])
        rest, low = divmod(second, 2**sampler.low_bits)
        v, negative = divmod(rest, 2)
        size = (block << sampler.low_bits) + low
        return cls(block, size, negative, v << bits | third, 2 * bits - 1 - sampler.low_bits)

    @property
    def value(self) -> int:
        return -self.size if self.negative else self.size


def acceptance(sampler: LatticeSampler, block: int, size: int) -> Fraction:
    """The probability with which a proposed value is accepted."""
    return sampler.constant * reference_exp(sampler.phi(size), 200) / sampler.weights[block]


# Tables


def table_faults(sampler: LatticeSampler) -> list[str]:
    """What is wrong with the tables."""
    faults, table = [], sampler.table
    total = 2**sampler.word_bits
    least, slack = 1 - Fraction(1, 2**600), 1 + Fraction(1, 2**100)  # of what is above a bound
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
        exact = reference_exp(sampler.phi(block << sampler.low_bits))
        if not exact * least <= Fraction(sampler.tops[block], 2**192) <= exact * slack:
            faults.append("a bound of an exponential")
        target = sampler.constant * exact
        if not target * least <= weight < target * slack + 1:
            faults.append("a block is not dominated, or wasteful")
        if abs(float(target / weight) - table.ratios[block]) > 2.0**-50:
            faults.append("ratio")
    for group in range(40):
        size_at = sampler.tail_start + (group << sampler.tail_shift)
        target = sampler.constant * reference_exp(sampler.phi(size_at)) / 2**sampler.low_bits
        if sampler.weights[-1] < least * target * 2 ** (group + 1 + sampler.tail_shift):
            faults.append("the tail is not dominated")
    if sampler.tail_start != (len(sampler.weights) - 1) << sampler.low_bits:
        faults.append("the tail does not begin where blocks end")
    return faults


def overflow_faults(sampler: LatticeSampler) -> list[str]:
    """What does not fit into words: the largest value, its float, and the first bits of V."""
    faults = []
    largest = len(sampler.table.thresholds) << sampler.low_bits
    if largest >= kernel.NEAR:
        faults.append("a value")
    if sampler.word_bits - 1 - sampler.low_bits < 10:
        faults.append("too few bits of V: most attempts would need the third word")
    return faults


# All words there are


def all_words(attempt: Any) -> Callable[..., tuple[int, int]]:
    """Compile what runs all strings of three words through an attempt."""

    @numba.njit
    def run(word_bits, table, smallest, accepted, opened):
        n, n_open, n_tail = np.uint64(1) << np.uint64(word_bits), 0, 0
        words = np.empty(3, np.uint64)
        for first in range(n):
            for second in range(n):
                for third in range(n):
                    words[0], words[1], words[2] = first, second, third
                    outcome, value, _ = attempt(words, np.uint64(0), table)
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

    return run


ALL_WORDS = all_words(kernel.attempt)


def wrong_yields(sampler: LatticeSampler, run: Any = ALL_WORDS) -> int:
    """In how many values the yield of all strings of three words differs from the exact one."""
    bits, table = sampler.word_bits, sampler.table
    largest = len(table.thresholds) << sampler.low_bits
    accepted = np.zeros(2 * largest + 1, dtype=np.int64)
    opened = np.empty((2**23, 3), dtype=np.uint64)
    n_open, n_tail = run(bits, table, -largest, accepted, opened)
    if n_open > len(opened):
        return largest  # floats decide next to nothing
    yields: dict[int, Fraction] = {
        value: Fraction(int(count), 2 ** (3 * bits))
        for value, count in enumerate(accepted.tolist(), -largest)
    }
    accepts = dict[tuple[int, int], Fraction]()
    for row in opened[:n_open].tolist():
        meant = Replay.of(sampler, row)
        key = meant.block, meant.size
        if key not in accepts:
            accepts[key] = acceptance(sampler, *key) * 2**meant.v_bits
        share = min(max(accepts[key] - meant.v, Fraction(0)), Fraction(1))
        yields[meant.value] += share / 2 ** (3 * bits)
    wrong = int(n_tail != sampler.weights[-1] * 4**bits)
    for value, found in yields.items():
        exact = Fraction(0)
        if abs(value) < sampler.tail_start:
            exact = sampler.constant * reference_exp(sampler.phi(abs(value)), 200)
            exact /= 2 ** (bits + 1 + sampler.low_bits)
        wrong += abs(found - exact) > Fraction(1, 2**150)
    return wrong


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
        p = acceptance(sampler, block, (block << low_bits) + low)
        off = (0, 0, 1, -1, 2, 1.1 * MARGIN, -1.1 * MARGIN, MARGIN / 4, -MARGIN / 4)[i % 9]
        steps = off if abs(off) >= 1 else int(off * 2.0**v_bits)
        v = min(max(math.floor(p * 2**v_bits) + int(steps), 0), 2**v_bits - 1)
        row[1:] = ((v >> 64) << 1 | row[1] >> 63) << low_bits | low, v % 2**64
    return rows


def decision_faults(
    sampler: LatticeSampler, attempt: Any = kernel.attempt, count: int = 360
) -> list[str]:
    """Replay attempts in exact arithmetic: what a kernel got wrong, or left open needlessly."""
    faults = []
    truth = LatticeSampler(sampler.power, sampler.t)
    for row in boundary_words(truth, count, 5):
        words = np.array(row, dtype=np.uint64)
        outcome, value, used = attempt(words, np.uint64(0), sampler.table)
        meant = Replay.of(truth, row)
        if meant.block == 1023:
            faults += [] if outcome == kernel.OPEN else ["tail"]
            continue
        if meant.size == 0 and meant.negative:
            faults += [] if outcome == kernel.REJECTED else ["minus zero"]
            continue
        if value != meant.value:
            faults.append("value")
        p = acceptance(truth, meant.block, meant.size)
        unknown = 64 if used == 2 else 0  # bits of the third word, which was not looked at
        unit = Fraction(1, 2 ** (meant.v_bits - unknown))
        least = (meant.v >> unknown) * unit
        if outcome == kernel.ACCEPTED and least + unit > p:
            faults.append("accepted")
        if outcome == kernel.REJECTED and least < p:
            faults.append("rejected")
        if outcome == kernel.OPEN and abs(least - p) > 1.01 * MARGIN:
            faults.append("open")
        if outcome != kernel.OPEN and abs(least - p) < 0.9 * MARGIN and used == 3:
            faults.append("decided within the margin")
    return faults


def settling_faults(sampler: LatticeSampler, bits_type: Any) -> list[str]:
    """Settle attempts whose V is at the boundary, or its last step apart, in blocks and tail."""
    faults = []
    for row in boundary_words(LatticeSampler(sampler.power, sampler.t), 120, 8)[:90]:
        meant = Replay.of(sampler, row)
        if meant.block == 1023:
            continue
        left = acceptance(sampler, meant.block, meant.size) * 2**meant.v_bits - meant.v
        minus_zero = meant.negative and not meant.size
        # If p is in the last step of V, further words decide: all zeros, or all ones.
        for word, accepted in ((0, left > 0), (2**64 - 1, left >= 1)):
            found = sampler.settled(row, bits_type(Fed([word] * 9), 64))
            if found != (meant.value if accepted and not minus_zero else None):
                faults.append(f"settled with further words {word}")
    for group in (0, 1, 3):
        for low in (0, 1, 2**sampler.tail_shift - 1, 2**sampler.tail_shift // 3):
            size = sampler.tail_start + (group << sampler.tail_shift) + low
            p = sampler.constant * reference_exp(sampler.phi(size), 700) / sampler.weights[-1]
            p *= 2 ** (group + 1 + sampler.tail_shift - sampler.low_bits)
            if p > 1:
                faults.append("the tail is accepted more than always")
            n_bits = 200 + p.denominator.bit_length() - p.numerator.bit_length()
            below = math.floor(p * 2**n_bits)
            for v, negative in ((below - 1, 0), (below - 1, 1), (below + 1, 0)):
                given = f"{'0' * group}1{low:0{sampler.tail_shift}b}{negative}{v:0{n_bits}b}"
                bits = bits_type(Given(given), 64)
                value = (-size if negative else size) if v < below else None
                tail = [int(sampler.table.tail) << int(sampler.table.column_shift), 0, 0]
                if (found := sampler.settled(tail, bits)) != value:
                    faults.append(f"tail: {found} instead of {value}")
    return faults


# Loops


def loop_faults(functions: Any, seed: int = 3) -> list[str]:
    """What kernels that draw many values get wrong, against attempts one by one."""
    faults = []
    sampler = LatticeSampler(1, Fraction(5), word_bits=9, column_bits=4)
    table = sampler.table._replace(margin=0.02)  # much is rejected, and much left open
    words = RandomStream.seeded(seed).words(4000) >> np.uint64(55)
    for n_words, n_values, n_rows in ((400, 500, 90), (400, 20, 90), (400, 500, 3), (2, 5, 5)):
        noise, opened = np.full(n_values, 99), np.zeros((n_rows, 4), dtype=np.uint64)
        drawn, n_open = functions.draw(words[:n_words], table, noise, opened)
        values, rows, at = list[int](), list[list[int]](), 0
        while len(values) < n_values and at + 3 <= n_words and len(rows) < n_rows:
            outcome, value, used = kernel.attempt(words, np.uint64(at), table)
            if outcome == kernel.OPEN:
                rows.append([len(values), *words[at : at + 3].tolist()])
            if outcome != kernel.REJECTED:
                values.append(int(value))
            at += int(used)
        if (int(drawn), int(n_open)) != (len(values), len(rows)):
            faults.append("how many were drawn")
        if noise.tolist() != values + [99] * (n_values - len(values)):
            faults.append("values")
        if opened[: len(rows)].tolist() != rows:
            faults.append("what is open")
    rows_of_words = words.reshape(-1, 8)
    noise, outcome = np.empty(500, dtype=np.int64), np.empty(500, dtype=np.int64)
    functions.draw_each(rows_of_words, table, noise, outcome)
    for row, value, found in zip(rows_of_words, noise.tolist(), outcome.tolist(), strict=True):
        at, state = 0, kernel.REJECTED
        while state == kernel.REJECTED and at + 3 <= 8:
            state, meant, used = kernel.attempt(row, np.uint64(at), table)
            here, at = at, at + int(used)
        wanted = state + (here if state == kernel.OPEN else 0)
        if found != wanted or (state == kernel.ACCEPTED and value != meant):
            faults.append("a value of each row")
    return faults


def uniform_faults(functions: Any) -> list[str]:
    """Whether all words of 13 bits give every value as often, in their order, and no other.

    Large half-widths have random words.
    """
    faults = []
    for half_width in (0, 1, 3, 60, 1000, 2**40 + 1, 2**61 - 1):
        words = np.arange(2**13, dtype=np.uint64)
        if half_width > 2**12:
            words = RandomStream.seeded(7).words(2**13)
        mask = 2 ** (2 * half_width).bit_length() - 1
        wanted = [w & mask for w in words.tolist() if w & mask <= 2 * half_width]
        noise = np.full(len(words) + 5, 10**6)
        drawn = int(functions.draw_uniform(words, half_width, noise))
        if noise[:drawn].tolist() != [number - half_width for number in wanted]:
            faults.append("values")
        if drawn != len(wanted) or set(noise[drawn:].tolist()) != {10**6}:
            faults.append("how many")
        few = np.full(7, 10**6)
        if functions.draw_uniform(words, half_width, few[:5]) != 5 or (few[5:] != 10**6).any():
            faults.append("more than were requested")
        rows = words[-64:].reshape(-1, 2)
        each, outcome = np.full(len(rows), 10**6), np.empty(len(rows), dtype=np.int64)
        functions.draw_uniform_each(rows, half_width, each, outcome)
        for row, value, found in zip(rows.tolist(), each.tolist(), outcome.tolist(), strict=True):
            fits = [w & mask for w in row if w & mask <= 2 * half_width]
            if found != (kernel.ACCEPTED if fits else kernel.REJECTED):
                faults.append("outcome of a row")
            elif fits and value != fits[0] - half_width:
                faults.append("value of a row")
    return faults


# The lattice


def lattice_faults(functions: Any) -> list[str]:
    """Round and add in exact arithmetic what a kernel rounds and adds."""
    faults, largest = [], sys.float_info.max
    values = [0.5, 1.5, -0.5, -1.5, 0.5 - 2.0**-54, 0.25, -0.25, 2.0**52 + 0.5, 3.7, -3.7]
    values += [
        2.0**61,
        -(2.0**61),
        math.nextafter(2.0**62, 0.0),
        2.0**62,
        -(2.0**62),
        1e300,
        5e-324,
    ]
    noise = np.array([3, -7, 0, 2**40 + 1, -(2**61), 11, 2**60] * 3)[: len(values)]
    for k in (-1074, -60, -1, 0, 5, 963):
        scaled = [v * 2.0**k if k > -1000 else v for v in values]
        scaled = [v if math.isfinite(v) else largest for v in scaled]
        noisy, far = np.zeros(len(values)), np.full(len(values), -1)
        n_far = functions.add_on_lattice(np.array(scaled), noise, lattice_powers(k), noisy, far)
        listed = far[:n_far].tolist()
        for i, value in enumerate(scaled):
            steps = Fraction(value) / Fraction(2) ** k
            if (abs(steps) >= 2**62) != (i in listed):
                faults.append("what is too far")
            if abs(steps) >= 2**62:
                continue
            total = math.floor(steps + Fraction(1, 2)) + int(noise[i])
            try:
                wanted = float(total) * 2.0 ** (k // 2) * 2.0 ** (k - k // 2)
            except OverflowError:
                wanted = math.inf
            if noisy[i] != min(max(wanted, -largest), largest):
                faults.append(f"sum at {k}")
    return faults


# The cube


def half_width_faults(sampler: CubeSampler) -> list[str]:
    """Draw half-widths whose V is just below or above what decides, on both sides of the mode."""
    faults = []

    def weight(g: int) -> Fraction:
        power = Fraction(2 * g + 1, 2 * sampler.mode + 1) ** sampler.n_values
        away = abs(g - sampler.mode) / sampler.t
        return power * reference_exp(away) if g >= sampler.mode else power / reference_exp(away)

    around = range(max(0, sampler.mode - 30), sampler.mode + 30)
    if any(weight(g) > 1 for g in around):
        faults.append("not the mode")
    size = 1 << sampler.group_bits
    for is_left in (0, 1):
        for group in (0, 1, 4):
            for low in {0, size - 1, size // 3}:
                away = group * size + low
                g = sampler.mode - 1 - away if is_left else sampler.mode + away
                if g < 0:
                    continue
                p = 2**group * weight(g)
                if p > 1:
                    faults.append("accepted more than always")
                at = math.floor(p * 2**300)
                lows = f"{low:0{sampler.group_bits}b}" if sampler.group_bits else ""
                for v in (at - 1, at + 1):
                    if not 0 <= v < 2**300:
                        continue
                    try:  # after a rejection there are zeros, which begin no other attempt
                        given = Given(f"{is_left}{'0' * group}1{lows}{v:0300b}")
                        found = sampler.draw_half_width(given)
                    except ExhaustedError:
                        found = None
                    if found != (g if v < at else None):
                        faults.append(f"half-width {found} where {g} was proposed")
    return faults
