"""Exact discrete Laplace and Gaussian noise from random words, added to values on a lattice.

The method and its proof are in docs/proofs/exact-noise.md; ``privacy.noise.exact`` makes the
tables, and decides in integers what is left open here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ptclust._kernel import kernel
from ptclust._types import Array, Floats, Ints

#: What an attempt comes to; what is open is decided in exact arithmetic.
ACCEPTED, REJECTED, OPEN = 0, 1, 2
#: Words that one attempt reads at most.
WORDS = 3
#: Values and noise below this many steps of the lattice have a sum that an int64 holds.
NEAR = 2.0**62

_ONE = np.uint64(1)


class Table(NamedTuple):
    """The proposal as an alias table, and what its acceptance needs; made by `exact`.

    |X| = block * 2^low_bits + low. A word of ``word_bits`` bits chooses the block, another one is
    low (its last bits), then the sign, then the first bits of a uniform number V.
    """

    thresholds: Array  # by column: smaller parts of a word stay with the column, as a block
    aliases: Array  # by column: the block of all others
    ratios: Floats  # by block: the acceptance at its first value
    column_shift: np.uint64  # the bits of a word above these are the column
    column_mask: np.uint64
    tail: np.uint64  # the block that stands for all values beyond the others
    low_bits: np.uint64
    low_mask: np.uint64
    low_unit: float  # 2^-low_bits
    slope: float  # the exponent rises by this much in every block (Laplace),
    curvature: float  # or by this much more in each than in the one before (Gaussian)
    v_unit: float  # V is known up to this after the second word,
    v_fine: float  # and up to this times v_unit after the third
    margin: float  # far above all rounding of the floats here


@kernel
def attempt(words: Array, at: Any, table: Table) -> Any:
    """Return what the attempt at a word comes to, its value, and how many words it read.

    It is accepted iff V < ratio * exp(-y), where y is the exponent's rise within the block. Floats
    decide only where they are ``margin`` away from it (docs/proofs/exact-noise.md, "Decision").
    """
    first, second = words[at], words[at + _ONE]
    column = first >> table.column_shift
    block = column
    if (first & table.column_mask) >= table.thresholds[column]:
        block = table.aliases[column]
    low = second & table.low_mask
    rest = second >> table.low_bits
    is_negative = rest & _ONE
    v = rest >> _ONE
    size = np.int64((block << table.low_bits) | low)
    value = -size if is_negative else size
    if block == table.tail:
        return OPEN, value, np.uint64(2)
    if is_negative and size == 0:
        return REJECTED, value, np.uint64(2)
    within = np.float64(low) * table.low_unit
    y = within * (table.slope + table.curvature * (np.float64(block) + 0.5 * within))
    ratio = table.ratios[block]
    if np.float64(v + _ONE) * table.v_unit <= ratio * (1.0 - y) - table.margin:
        return ACCEPTED, value, np.uint64(2)
    third = np.float64(words[at + np.uint64(2)]) * table.v_fine
    least = (np.float64(v) + third) * table.v_unit
    most = least + table.v_fine * table.v_unit
    series = 1.0
    for i in range(8, 0, -1):
        series = 1.0 - series * y / i
    if most <= ratio * series - table.margin:
        return ACCEPTED, value, np.uint64(3)
    if least >= ratio * series + table.margin:
        return REJECTED, value, np.uint64(3)
    return OPEN, value, np.uint64(3)


@kernel
def draw(words: Array, table: Table, noise: Ints, opened: Array) -> Any:
    """Draw until there are no more words, values to draw, or rows for what is open.

    Returns how many values were drawn, and how many of them are open: a row of ``opened`` has the
    place and the words of each.
    """
    at, drawn, n_open = np.uint64(0), np.uint64(0), np.uint64(0)
    last = np.uint64(len(words))
    while (
        drawn < np.uint64(len(noise))
        and at + np.uint64(WORDS) <= last
        and n_open < np.uint64(len(opened))
    ):
        outcome, value, used = attempt(words, at, table)
        if outcome == OPEN:
            opened[n_open, np.uint64(0)] = drawn
            for i in range(np.uint64(WORDS)):
                opened[n_open, i + _ONE] = words[at + i]
            n_open += _ONE
        if outcome != REJECTED:
            noise[drawn] = value
            drawn += _ONE
        at += used
    return drawn, n_open


@kernel
def draw_each(words: Array, table: Table, noise: Ints, outcome: Ints) -> None:
    """Draw a value of every row of words, and of no other; the rows need not be related.

    ``outcome`` is ACCEPTED, or REJECTED if a row of words was used up, or OPEN plus the place of
    the words in their row that are left to exact arithmetic.
    """
    last = np.uint64(words.shape[1])
    for i in range(np.uint64(len(words))):
        at = np.uint64(0)
        outcome[i] = REJECTED
        while outcome[i] == REJECTED and at + np.uint64(WORDS) <= last:
            found, value, used = attempt(words[i], at, table)
            outcome[i] = found if found != OPEN else OPEN + np.int64(at)
            noise[i] = value
            at += used


@kernel
def draw_uniform_each(words: Array, half_width: Any, noise: Ints, outcome: Ints) -> None:
    """Draw a uniform integer, as `draw_uniform` does, of every row of words, and of no other."""
    for i in range(np.uint64(len(words))):
        drawn = draw_uniform(words[i], half_width, noise[i : i + _ONE])
        outcome[i] = ACCEPTED if drawn else REJECTED


@kernel
def draw_uniform(words: Array, half_width: Any, noise: Ints) -> Any:
    """Draw integers from -half_width to half_width, below 2^62, each with the same probability.

    The least mask of ones takes a word to a number that is rejected beyond twice the half-width.
    Returns how many were drawn before the words ran out.
    """
    largest = np.uint64(2 * half_width)
    mask = largest
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    drawn = np.uint64(0)
    for word in words:
        if drawn == np.uint64(len(noise)):
            break
        number = word & mask
        if number <= largest:
            noise[drawn] = np.int64(number) - half_width
            drawn += _ONE
    return drawn


@kernel
def add_on_lattice(values: Floats, noise: Ints, powers: Floats, noisy: Floats, far: Array) -> Any:
    """Round values to the lattice, to nearest and ties up, and add the noise; exact.

    ``powers`` are the four of `lattice_powers`. Places whose value is too many steps away for an
    int64 are listed in ``far``, and how many they are is returned.
    """
    n_far = 0
    for i in range(len(values)):
        steps = values[i] * powers[0] * powers[1]
        if not abs(steps) < NEAR:
            far[n_far] = i
            n_far += 1
            continue
        below = np.floor(steps)
        nearest = np.int64(below) + np.int64(steps - below >= 0.5)
        noisy[i] = as_float(nearest + noise[i], powers)
    return n_far


@kernel
def as_float(steps: Any, powers: Floats) -> Any:
    """Return a number of steps of the lattice as a float, a function of the integer alone."""
    value = np.float64(steps) * powers[2] * powers[3]
    largest = np.finfo(np.float64).max
    return min(max(value, -largest), largest)
