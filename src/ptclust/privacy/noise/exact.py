"""An exact sampler of lattice noise, a thousand times faster than one that works in integers alone.

The discrete Laplace and Gaussian distributions on the integers, P(x) proportional to
exp(-phi(|x|)) with phi(m) = m/t or m^2/(2 t^2), are drawn by one rejection step. Its proposal has
probabilities that are integers over 2^64, so that a single comparison is irrational, V < p. Floats
decide it where they are precise enough, intervals of rational numbers otherwise: about once in ten
million draws.
Method and proof: docs/proofs/exact-noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ptclust._types import Array, Ints
from ptclust.errors import UsageError
from ptclust.privacy._numbers import Bounds, exp_bounds, exponent_below, log_bounds
from ptclust.privacy.noise import _lattice_kernel as kernel

#: Floats decide where they are this far from the boundary, far more than their rounding.
MARGIN = 2.0**-24
#: From the first up to below the second, a scale in steps of the lattice lets nothing overflow.
SMALLEST_T, BEYOND_T = Fraction(1), Fraction(2**56)

_DIGITS, _TABLE_BITS = 60, 192  # of the tables
_BUFFER = 1 << 15  # words at a time: they stay in the processor's cache
_OPEN_AT_ONCE = 64


class WordSource(Protocol):
    """Where words of random bits come from: a stream, or a keyed function of what they are for."""

    def fill(self, words: NDArray[np.uint64]) -> None:
        """Fill an array with words that were never given out before."""


class LatticeNoise(Protocol):
    """Draws noise in steps of the lattice."""

    def draw(self, source: WordSource, noise: Ints) -> dict[int, int]:
        """Fill ``noise`` with values; returns those, by place, that no int64 holds."""

    def draw_each(self, words: Array, noise: Ints, outcome: Ints) -> None:
        """Draw a value of every row of words, and of no other, with an outcome as kernels have."""

    def settle(self, given: list[int], source: WordSource) -> int:
        """Return the value of words that `draw_each` leaves open; ``source`` has more words."""


@lru_cache(maxsize=32)
def lattice_sampler(power: int, t: Fraction) -> LatticeSampler:
    """Return the sampler of a scale in steps of the lattice; calibrated noise has one."""
    if not SMALLEST_T <= t < BEYOND_T:
        raise UsageError(
            f"noise is drawn at scales from 1 to below 2^56 steps of the lattice, and {float(t):g} "
            "is not; choose another granularity"
        )
    return LatticeSampler(power, t)


class LatticeSampler:
    """Draws integers x with probability proportional to exp(-phi(|x|)), exactly.

    phi(m) is (m / t)^power / power: Laplace noise has the power 1, Gaussian noise 2. ``t`` is the
    scale in steps of the lattice. Words of fewer than 64 bits and tables of fewer columns are for
    tests, which can then try all words there are.
    """

    def __init__(
        self, power: int, t: Fraction, *, word_bits: int = 64, column_bits: int = 10
    ) -> None:
        self.power, self.t, self.word_bits = power, t, word_bits
        # The widest blocks with 2^low_bits <= t/32.
        self.low_bits = max(0, exponent_below(t) - 5)
        if Fraction(2) ** (self.low_bits + 6) <= t:
            self.low_bits += 1
        self._weigh(2**column_bits - 1)
        self.table = self._make_table(column_bits)

    def phi(self, size: int) -> Fraction:
        """Return the exponent of values of this size."""
        return (size / self.t) ** self.power / self.power

    def _weigh(self, most_blocks: int) -> None:
        """Choose c, the weights of all blocks and, last, of the tail, and the tail's groups.

        The weights add up to 2^word_bits, and dominate c exp(-phi) (docs/proofs/exact-noise.md,
        "Proposal"). Blocks end where their weight would be less than 1.
        """
        tops, total = self._tops(most_blocks + 1), 2**self.word_bits
        lightest = sum(tops) >> self.word_bits
        n_blocks = sum(top > lightest for top in tops[:-1])
        self.tail_start = n_blocks << self.low_bits
        self.tail_shift = max(self.low_bits, exponent_below(self.t) + 3)  # at least 2 t
        beyond = tops[n_blocks] << (self.tail_shift - self.low_bits + 1)
        self.constant = ((total - n_blocks - 1) << _TABLE_BITS) // (sum(tops[:n_blocks]) + beyond)
        weights = [_product_up(self.constant, top) for top in tops[:n_blocks]]
        tail = total - sum(weights)
        if self.constant < 1 or tail << _TABLE_BITS < self.constant * beyond:
            raise AssertionError("the proposal of the lattice sampler does not dominate its target")
        self.tops, self.weights = tops[:n_blocks], [*weights, tail]

    def _tops(self, count: int) -> list[int]:
        """Return integers at or above 2^_TABLE_BITS exp(-phi) at the first values of blocks.

        From one block to the next it falls by a factor that itself falls by a fixed one.
        """
        one, two = (self.phi(block << self.low_bits) for block in (1, 2))
        falls, bends = (
            math.ceil(exp_bounds(-rise, _DIGITS)[1] * 2**_TABLE_BITS)
            for rise in (one, two - 2 * one)
        )
        tops = [1 << _TABLE_BITS]
        while len(tops) < count:
            tops.append(_product_up(tops[-1], falls))
            falls = _product_up(falls, bends)
        return tops

    def _make_table(self, column_bits: int) -> kernel.Table:
        n_columns, n_blocks = 2**column_bits, len(self.tops)
        by_column = [*self.weights[:-1], *[0] * (n_columns - n_blocks - 1), self.weights[-1]]
        thresholds, aliases = alias_table(by_column)
        ratios = np.zeros(n_columns)
        for block, top in enumerate(self.tops):
            ratios[block] = float(self._factor(block) * top / 2**_TABLE_BITS)
        step, part_bits = float(2**self.low_bits / self.t), self.word_bits - column_bits
        return kernel.Table(
            thresholds=np.array(thresholds, dtype=np.uint64),
            aliases=np.array(aliases, dtype=np.uint64),
            ratios=ratios,
            column_shift=np.uint64(part_bits),
            column_mask=np.uint64(2**part_bits - 1),
            tail=np.uint64(n_columns - 1),
            low_bits=np.uint64(self.low_bits),
            low_mask=np.uint64(2**self.low_bits - 1),
            low_unit=2.0**-self.low_bits,
            slope=step if self.power == 1 else 0.0,
            curvature=step**2 if self.power == 2 else 0.0,
            v_unit=2.0 ** -(self.word_bits - 1 - self.low_bits),
            v_fine=2.0**-self.word_bits,
            margin=MARGIN,
        )

    def _factor(self, block: int) -> Fraction:
        return Fraction(self.constant, self.weights[block])

    def draw(self, source: WordSource, noise: Ints) -> dict[int, int]:
        """Fill ``noise`` with independent values; returns those, by place, that no int64 holds."""
        words = np.empty(_BUFFER, dtype=np.uint64)
        opened = np.empty((_OPEN_AT_ONCE, 1 + kernel.WORDS), dtype=np.uint64)
        giants, done = dict[int, int](), 0
        while done < len(noise):
            # Two words a value, and few are rejected; what is left over is never used again.
            wanted = min(_BUFFER, 2 * (len(noise) - done) + 64)
            source.fill(words[:wanted])
            drawn, n_open = kernel.draw(words[:wanted], self.table, noise[done:], opened)
            for place, *given in opened[:n_open].tolist():
                value = self.settle(given, source)
                noise[done + place] = value if abs(value) < kernel.NEAR else 0
                if abs(value) >= kernel.NEAR:
                    giants[done + place] = value
            done += int(drawn)
        return giants

    def draw_each(self, words: Array, noise: Ints, outcome: Ints) -> None:
        """Draw a value of every row of words, and of no other."""
        kernel.draw_each(words, self.table, noise, outcome)

    def settle(self, given: list[int], source: WordSource) -> int:
        """Return the value of an open attempt: its own if that is accepted, else that of others."""
        bits = Bits(source, self.word_bits)
        value = self.settled(given, bits)
        while value is None:
            value = self.settled([bits.take(self.word_bits) for _ in range(3)], bits)
        return value

    def settled(self, given: list[int], bits: Bits) -> int | None:
        """Return what three words come to, in exact arithmetic: None if that is rejected."""
        first, second, third = given
        shift = int(self.table.column_shift)
        column, part = first >> shift, first & (2**shift - 1)
        block = column
        if part >= int(self.table.thresholds[column]):
            block = int(self.table.aliases[column])
        if block == int(self.table.tail):
            return self._tail(bits)
        rest, low = divmod(second, 2**self.low_bits)
        v, negative = divmod(rest, 2)
        size: int = (block << self.low_bits) + low
        if negative and size == 0:
            return None
        v_bits = self.word_bits - 1 - self.low_bits + self.word_bits
        v = v << self.word_bits | third
        if not self._accepts(size, self._factor(block), v, v_bits, bits):
            return None
        return -size if negative else size

    def _tail(self, bits: Bits) -> int | None:
        """Attempt a value beyond all blocks: group j of 2^shift values has the weight 2^-(j+1)."""
        group = 0
        while not bits.take(1):
            group += 1
        size: int = self.tail_start + (group << self.tail_shift) + bits.take(self.tail_shift)
        negative = bits.take(1)
        halvings = group + 1 + self.tail_shift - self.low_bits
        factor = Fraction(self.constant << halvings, self.weights[-1])
        if not self._accepts(size, factor, 0, 0, bits):
            return None
        return -size if negative else size

    def _accepts(self, size: int, factor: Fraction, v: int, v_bits: int, bits: Bits) -> bool:
        """Return whether V < factor exp(-phi(size)); v are the first ``v_bits`` bits of V."""
        exponent = -self.phi(size)
        return bits.are_below(
            lambda digits: _times(factor, exp_bounds(exponent, digits)), v, v_bits
        )


class Bits:
    """Random bits, any number at a time, from a source of words."""

    def __init__(self, source: WordSource, word_bits: int) -> None:
        self._source, self._word_bits = source, word_bits
        self._left, self._n_left = 0, 0

    def take(self, count: int) -> int:
        """Return an integer of so many bits, none of them used before."""
        word = np.empty(1, dtype=np.uint64)
        while self._n_left < count:
            self._source.fill(word)
            self._left = self._left << self._word_bits | int(word[0])
            self._n_left += self._word_bits
        self._n_left -= count
        taken = self._left >> self._n_left
        self._left &= (1 << self._n_left) - 1
        return taken

    def are_below(self, bounds: Callable[[int], Bounds], v: int = 0, v_bits: int = 0) -> bool:
        """Return whether a uniform number V, whose first bits are v, is below a number p.

        ``bounds`` takes a number of digits to bounds of p that are as close. It ends with
        probability 1: p is one number, and V is another.
        """
        digits = _DIGITS
        while True:
            low, high = _times(Fraction(2**v_bits), bounds(digits))
            if v + 1 <= low:
                return True
            if v >= high:
                return False
            v = v << self._word_bits | self.take(self._word_bits)
            v_bits += self._word_bits
            digits = max(digits, v_bits // 3 + _DIGITS)


class CubeSampler:
    """Draws z in Z^n with probability proportional to exp(-(largest |z_i|) / t), exactly.

    That is a half-width g with probability proportional to (2 g + 1)^n exp(-g / t), then n uniform
    integers from -g to g (docs/proofs/cube.md). The half-width must not be published.
    """

    def __init__(self, n_values: int, t: Fraction) -> None:
        self.n_values, self.t = n_values, t
        mode = max(0, math.floor(n_values * t - Fraction(1, 2)))
        while self.log_ratio_is_above(mode + 1, mode, Fraction(0)):
            mode += 1
        while mode > 0 and self.log_ratio_is_above(mode - 1, mode, Fraction(0)):
            mode -= 1
        self.mode, self.group_bits = mode, 0
        while not self._halves(1 << self.group_bits):
            self.group_bits += 1

    def _halves(self, step: int) -> bool:
        """Return whether a step away from the mode, on both sides, at least halves the weight."""
        halved = -log_bounds(Fraction(2), _DIGITS)[1]
        sides = [self.mode + step, *([self.mode - step] if step <= self.mode else [])]
        return not any(self.log_ratio_is_above(side, self.mode, halved) for side in sides)

    def log_ratio_bounds(self, g: int, other: int, digits: int) -> Bounds:
        """Return bounds of the log-ratio of the weights of two half-widths."""
        logs = log_bounds(Fraction(2 * g + 1, 2 * other + 1), digits)
        low, high = (self.n_values * bound - (g - other) / self.t for bound in logs)
        return low, high

    def log_ratio_is_above(self, g: int, other: int, threshold: Fraction) -> bool:
        """Return whether the log-ratio of the weights of two half-widths exceeds a rational."""
        digits = _DIGITS
        while True:
            low, high = self.log_ratio_bounds(g, other, digits)
            if low > threshold:
                return True
            if high <= threshold:
                return False
            digits *= 2

    def draw_half_width(self, source: WordSource) -> int:
        """Draw g, by rejection: groups of 2^group_bits numbers halve in weight from the mode on."""
        bits = Bits(source, 64)
        while True:
            is_left, group = bits.take(1), 0
            while not bits.take(1):
                group += 1
            away = (group << self.group_bits) + bits.take(self.group_bits)
            g = self.mode - 1 - away if is_left else self.mode + away
            if g >= 0 and bits.are_below(partial(self._acceptance, g, group)):
                return g

    def _acceptance(self, g: int, group: int, digits: int) -> Bounds:
        low, high = self.log_ratio_bounds(g, self.mode, digits)
        bounds = exp_bounds(low, digits)[0], exp_bounds(high, digits)[1]
        return _times(Fraction(2**group), bounds)


class UniformSampler:
    """Draws integers from -half_width to half_width, each with the same probability."""

    def __init__(self, half_width: int) -> None:
        self.half_width = half_width
        self._is_giant = half_width >= kernel.NEAR // 2

    def draw(self, source: WordSource, noise: Ints) -> dict[int, int]:
        """Fill ``noise`` with values; returns those, by place, that no int64 holds."""
        if self._is_giant:
            return {place: self.settle([], source) for place in range(len(noise))}
        words, done = np.empty(_BUFFER, dtype=np.uint64), 0
        while done < len(noise):
            wanted = min(_BUFFER, 2 * (len(noise) - done) + 64)
            source.fill(words[:wanted])
            done += int(kernel.draw_uniform(words[:wanted], self.half_width, noise[done:]))
        return {}

    def draw_each(self, words: Array, noise: Ints, outcome: Ints) -> None:
        """Draw a value of every row of words, and of no other."""
        if self._is_giant:
            outcome[:] = kernel.OPEN
        else:
            kernel.draw_uniform_each(words, self.half_width, noise, outcome)

    def settle(self, given: list[int], source: WordSource) -> int:
        """Return a value in Python integers, of words of its own."""
        bits, n_bits = Bits(source, 64), (2 * self.half_width).bit_length()
        while (number := bits.take(n_bits)) > 2 * self.half_width:
            pass
        return number - self.half_width


def alias_table(weights: list[int]) -> tuple[list[int], list[int]]:
    """Return thresholds and aliases of columns of equal size (Walker 1977, Vose 1991), in integers.

    Their number divides the sum of the weights. A column gives its own number below its threshold,
    else its alias; that every number has exactly its weight is checked.
    """
    size = sum(weights) // len(weights)
    thresholds, aliases = [size] * len(weights), list(range(len(weights)))
    left = list(weights)
    small = [i for i, weight in enumerate(weights) if weight < size]
    large = [i for i, weight in enumerate(weights) if weight > size]
    while small:
        i, j = small.pop(), large[-1]
        thresholds[i], aliases[i] = left[i], j
        left[j] -= size - left[i]
        if left[j] <= size:
            large.pop()
            if left[j] < size:
                small.append(j)
    counts = list(thresholds)
    for i, alias in enumerate(aliases):
        counts[alias] += size - thresholds[i]
    if counts != weights:
        raise AssertionError("the alias table does not have the weights that were requested")
    return thresholds, aliases


def _times(factor: Fraction, bounds: Bounds) -> Bounds:
    return factor * bounds[0], factor * bounds[1]


def _product_up(a: int, b: int) -> int:
    """Return a b / 2^_TABLE_BITS, rounded up."""
    return -(-a * b >> _TABLE_BITS)
