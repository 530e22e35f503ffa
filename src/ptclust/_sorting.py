"""A stable radix sort of pairs of words: a key, and a value that moves with it.

It takes a few passes over memory, whatever the keys are and however they come. numpy's sorts
compare keys, which takes several times as long where they have no vector code for a processor,
and leave the values to be gathered afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptclust._kernel import inlined, kernel
from ptclust._types import Array, Ints

PAIR = np.dtype([("key", np.uint64), ("value", np.uint64)])

_MOST_DIGIT_BITS = 11  # a pass writes to that many places of memory, in turn: caches hold them
_SIGN = np.uint64(1) << np.uint64(63)


def sorted_by_key(pairs: Array) -> Array:
    """Return the pairs by ascending key, equal keys in the order given; overwrites ``pairs``.

    >>> pairs = np.array([(7, 0), (3, 1), (7, 2)], dtype=PAIR)
    >>> sorted_by_key(pairs)["value"].tolist()
    [1, 0, 2]
    """
    buffer = np.empty_like(pairs)
    return buffer if sort_pairs(pairs, buffer, digit_counts(64)) else pairs


def digit_counts(key_bits: int) -> Ints:
    """Return what `sort_pairs` counts in, for keys that use their lowest ``key_bits`` bits alone.

    It has a row for every digit of a key, and a column for every value of a digit.
    """
    n_digits = max(1, -(-key_bits // _MOST_DIGIT_BITS))
    return np.empty((n_digits, 1 << -(-key_bits // n_digits)), dtype=np.int64)


def words_of(values: Array) -> NDArray[np.uint64]:
    """Return numbers as words of 64 bits; `numbers_of` makes numbers of them again.

    >>> numbers_of(words_of(np.array([-1, 2], dtype=np.int8)), np.dtype(np.int8)).tolist()
    [-1, 2]
    """
    return np.ascontiguousarray(values, dtype=_wide(values.dtype)).view(np.uint64)


def numbers_of(words: NDArray[np.uint64], dtype: np.dtype[Any]) -> Array:
    """Return the numbers, in 64 bits, whose words these are; they were of this type."""
    return words.view(_wide(dtype))


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of 64 bits for integers and floats of this type."""
    return np.dtype(f"{dtype.kind}8")


@inlined
def ascending(word: Any) -> Any:
    """Return the word of a float, not NaN, turned into one that is ordered as floats are.

    The two zeros become one.
    """
    if word == _SIGN:
        return _SIGN
    return ~word if word & _SIGN else word | _SIGN


@kernel
def sort_pairs(pairs: Array, buffer: Array, counts: Ints) -> bool:
    """Sort by one digit after the other, from the lowest; return whether they end in ``buffer``.

    Each moves all pairs from one array to the other, unless it is the same in all keys.
    """
    n_digits, size = counts.shape
    bits, mask = np.uint64(np.log2(size)), np.uint64(size - 1)
    counts[:] = 0
    for i in range(len(pairs)):
        key = pairs[i].key
        for digit in range(n_digits):
            counts[digit, (key >> np.uint64(digit) * bits) & mask] += 1
    moved = False
    for digit in range(n_digits):
        shift, places = np.uint64(digit) * bits, counts[digit]
        if len(pairs) == 0 or places[(pairs[0].key >> shift) & mask] == len(pairs):
            continue
        place = 0
        for j in range(size):
            place, places[j] = place + places[j], place
        for i in range(len(pairs)):
            key = pairs[i].key
            j = (key >> shift) & mask
            buffer[places[j]].key = key
            buffer[places[j]].value = pairs[i].value
            places[j] += 1
        pairs, buffer = buffer, pairs
        moved = not moved
    return moved
