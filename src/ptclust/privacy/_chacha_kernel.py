"""ChaCha20 (RFC 8439) as a keystream that a kernel reads word by word inside its loops.

The block function is the standard's: 20 rounds over 16 words of 32 bits. Words 12 and 13 of the
input block form a block counter of 64 bits, as in Bernstein's original layout, so that a stream
holds 2^70 bytes; words 14 and 15 are the nonce. Eight blocks are computed side by side, one per
vector lane, and come out in the order of their counters: the keystream is the concatenation of the
standard's blocks, read as little-endian words of 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptclust._kernel import kernel, merged

_LANES = 8
#: Words of 64 bits between two refills: 32 blocks.
BUFFER_WORDS = 256

_LOW_32 = np.uint64(0xFFFFFFFF)
_BITS_32 = np.uint64(32)
_BITS_11 = np.uint64(11)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)

# A state is one array of 32-bit words, so that a kernel passes it on at no cost: the reference
# counts of a tuple of arrays would be touched at every draw, at several times its price.
# It begins with the next input block (constants, key, counter, nonce); the other parts begin at:
_POSITION = 16  # where in this array the next unused word is; its end when a refill is due
_WORKING = 24  # the lanes of the block function, word i of lane j at 8 i + j
_BUFFER = 152  # keystream
_END = _BUFFER + 2 * BUFFER_WORDS


def new_state(key: bytes) -> NDArray[np.uint32]:
    """Return the state at the start of the keystream of a 256-bit key; counter and nonce are 0."""
    state = np.zeros(_END, dtype=np.uint32)
    state[:4] = np.frombuffer(b"expand 32-byte k", dtype="<u4")
    state[4:12] = np.frombuffer(key, dtype="<u4")
    state[_POSITION] = _END
    return state


@kernel
def _quarter_round(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Mix four words (RFC 8439, section 2.1)."""
    a = np.uint32(a + b)
    d = np.uint32(d ^ a)
    d = np.uint32((d << np.uint32(16)) | (d >> np.uint32(16)))
    c = np.uint32(c + d)
    b = np.uint32(b ^ c)
    b = np.uint32((b << np.uint32(12)) | (b >> np.uint32(20)))
    a = np.uint32(a + b)
    d = np.uint32(d ^ a)
    d = np.uint32((d << np.uint32(8)) | (d >> np.uint32(24)))
    c = np.uint32(c + d)
    b = np.uint32(b ^ c)
    b = np.uint32((b << np.uint32(7)) | (b >> np.uint32(25)))
    return a, b, c, d


@kernel
def _double_round(state: NDArray[np.uint32]) -> None:
    """One column and one diagonal round on all lanes; the loop becomes vector code."""
    for j in range(np.uint64(_WORKING), np.uint64(_WORKING + _LANES)):
        x00, x01 = state[j + np.uint64(0)], state[j + np.uint64(8)]
        x02, x03 = state[j + np.uint64(16)], state[j + np.uint64(24)]
        x04, x05 = state[j + np.uint64(32)], state[j + np.uint64(40)]
        x06, x07 = state[j + np.uint64(48)], state[j + np.uint64(56)]
        x08, x09 = state[j + np.uint64(64)], state[j + np.uint64(72)]
        x10, x11 = state[j + np.uint64(80)], state[j + np.uint64(88)]
        x12, x13 = state[j + np.uint64(96)], state[j + np.uint64(104)]
        x14, x15 = state[j + np.uint64(112)], state[j + np.uint64(120)]
        x00, x04, x08, x12 = _quarter_round(x00, x04, x08, x12)
        x01, x05, x09, x13 = _quarter_round(x01, x05, x09, x13)
        x02, x06, x10, x14 = _quarter_round(x02, x06, x10, x14)
        x03, x07, x11, x15 = _quarter_round(x03, x07, x11, x15)
        x00, x05, x10, x15 = _quarter_round(x00, x05, x10, x15)
        x01, x06, x11, x12 = _quarter_round(x01, x06, x11, x12)
        x02, x07, x08, x13 = _quarter_round(x02, x07, x08, x13)
        x03, x04, x09, x14 = _quarter_round(x03, x04, x09, x14)
        state[j + np.uint64(0)], state[j + np.uint64(8)] = x00, x01
        state[j + np.uint64(16)], state[j + np.uint64(24)] = x02, x03
        state[j + np.uint64(32)], state[j + np.uint64(40)] = x04, x05
        state[j + np.uint64(48)], state[j + np.uint64(56)] = x06, x07
        state[j + np.uint64(64)], state[j + np.uint64(72)] = x08, x09
        state[j + np.uint64(80)], state[j + np.uint64(88)] = x10, x11
        state[j + np.uint64(96)], state[j + np.uint64(104)] = x12, x13
        state[j + np.uint64(112)], state[j + np.uint64(120)] = x14, x15


@merged  # a draw costs 7 ns instead of 9
def _refill(state: NDArray[np.uint32]) -> None:
    """Fill the buffer with the next blocks of the keystream and advance the counter."""
    lanes = np.uint64(_LANES)
    first = np.uint64(_WORKING)
    counter = np.uint64(state[12]) | (np.uint64(state[13]) << _BITS_32)
    for begin in range(np.uint64(_BUFFER), np.uint64(_END), np.uint64(16 * _LANES)):
        for i in range(np.uint64(16)):
            for j in range(lanes):
                state[first + i * lanes + j] = state[i]
        for j in range(lanes):
            state[first + np.uint64(12) * lanes + j] = np.uint32((counter + j) & _LOW_32)
            state[first + np.uint64(13) * lanes + j] = np.uint32((counter + j) >> _BITS_32)
        for _ in range(10):
            _double_round(state)
        for j in range(lanes):
            for i in range(np.uint64(16)):
                state[begin + np.uint64(16) * j + i] = np.uint32(
                    state[first + i * lanes + j] + state[i]
                )
            # Each lane began with a counter of its own.
            low = np.uint32((counter + j) & _LOW_32)
            high = np.uint32((counter + j) >> _BITS_32)
            at = begin + np.uint64(16) * j + np.uint64(12)
            state[at] = np.uint32(state[first + np.uint64(12) * lanes + j] + low)
            state[at + _ONE] = np.uint32(state[first + np.uint64(13) * lanes + j] + high)
        counter += lanes
    state[12] = np.uint32(counter & _LOW_32)
    state[13] = np.uint32(counter >> _BITS_32)
    state[_POSITION] = _BUFFER


@kernel
def next_word(state: NDArray[np.uint32]) -> Any:
    """Return the next 64 random bits as a uint64."""
    if state[_POSITION] >= np.uint64(_END):
        _refill(state)
    position = np.uint64(state[_POSITION])
    state[_POSITION] = position + np.uint64(2)
    return np.uint64(state[position]) | (np.uint64(state[position + _ONE]) << _BITS_32)


@kernel
def fill_words(state: NDArray[np.uint32], words: NDArray[np.uint64]) -> None:
    """Fill ``words`` with the next words of the stream."""
    for i in range(len(words)):
        words[i] = next_word(state)


@kernel
def uniform_below(state: NDArray[np.uint32], n: Any) -> Any:
    """Return an int64 in [0, n), each with probability exactly 1/n, for 1 <= n <= 2^63.

    Up to 2^32 by Lemire's multiplication (2019), beyond by rejection under the least mask of ones.
    """
    bound = np.uint64(n)
    if bound <= _LOW_32:
        product = (next_word(state) >> _BITS_32) * bound
        if (product & _LOW_32) < bound:
            threshold = ((_LOW_32 ^ bound) + _ONE) % bound  # (2^32 - n) mod n
            while (product & _LOW_32) < threshold:
                product = (next_word(state) >> _BITS_32) * bound
        return np.int64(product >> _BITS_32)
    mask = bound - _ONE
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    word = next_word(state) & mask
    while word >= bound:
        word = next_word(state) & mask
    return np.int64(word)


@kernel
def coin_flips_all_zero(state: NDArray[np.uint32], d: Any) -> bool:
    """Return whether ``d`` >= 0 fair coins all show zero: True with probability exactly 2^-d."""
    remaining = np.int64(d)
    while remaining >= 64:
        if next_word(state) != _ZERO:
            return False
        remaining -= 64
    if remaining <= 0:
        return True
    return bool(next_word(state) >> np.uint64(64 - remaining) == _ZERO)


@kernel
def uniform53(state: NDArray[np.uint32]) -> Any:
    """Return 53 random bits as a uint64: times 2^-53, a uniform multiple of 2^-53 in [0, 1)."""
    return next_word(state) >> _BITS_11
