"""ChaCha20 (RFC 8439) as a keystream that a kernel reads word by word inside its loops.

The block function is the standard's: 20 rounds over 16 words of 32 bits. Words 12 and 13 of the
input block form a block counter of 64 bits, as in Bernstein's original layout, so that a stream
holds 2^70 bytes; words 14 and 15 are the nonce. 32 blocks are computed side by side, one per
lane, and come out in the order of their counters: the keystream is the concatenation of the
standard's blocks, read as little-endian words of 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptclust._kernel import inlined, kernel

_LANES = 32
#: Words of 64 bits in one block, and between two refills.
BLOCK_WORDS = 8
BUFFER_WORDS = BLOCK_WORDS * _LANES

_LOW_32 = np.uint64(0xFFFFFFFF)
_BITS_32 = np.uint64(32)
_BITS_11 = np.uint64(11)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)

# A state is one array of 32-bit words, so that a kernel passes it on at no cost: the reference
# counts of a tuple of arrays would be touched at every draw, at several times its price.
# It begins with the next input block (constants, key, counter, nonce); the other parts begin at:
_POSITION = 16  # where in this array the next unused word is; its end when a refill is due
_WORKING = 32  # the lanes of the block function, word i of lane j at 32 i + j
_BUFFER = _WORKING + 16 * _LANES  # keystream
_END = _BUFFER + 2 * BUFFER_WORDS


def new_state(key: bytes) -> NDArray[np.uint32]:
    """Return the state at the start of the keystream of a 256-bit key; counter and nonce are 0."""
    space = np.zeros(_END + 16, dtype=np.uint32)
    aligned = -space.ctypes.data % 64 // space.itemsize  # a vector lies in one line of the cache
    state = space[aligned : aligned + _END]
    state[:4] = np.frombuffer(b"expand 32-byte k", dtype="<u4")
    state[4:12] = np.frombuffer(key, dtype="<u4")
    state[_POSITION] = _END
    return state


@inlined
def _mix(words: NDArray[np.uint32], first: Any) -> None:
    """Do the 20 rounds of all lanes, whose words begin at ``first`` (RFC 8439, section 2.3).

    Every second four of the 80 quarter rounds are along diagonals: they take the words of the
    second, third and fourth row one, two and three places further. The inner loop, a quarter round
    of all lanes (section 2.1), becomes vector code.
    """
    lanes = np.uint64(_LANES)
    for step in range(np.uint64(80)):
        column, shift = step & np.uint64(3), (step >> np.uint64(2)) & _ONE
        first_row = first + lanes * column
        second_row = first + lanes * (np.uint64(4) + ((column + shift) & np.uint64(3)))
        third_row = first + lanes * (np.uint64(8) + ((column + shift + shift) & np.uint64(3)))
        fourth_row = first + lanes * (np.uint64(12) + ((column - shift) & np.uint64(3)))
        for j in range(lanes):
            a, b = words[first_row + j], words[second_row + j]
            c, d = words[third_row + j], words[fourth_row + j]
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
            words[first_row + j], words[second_row + j] = a, b
            words[third_row + j], words[fourth_row + j] = c, d


@inlined
def _refill(state: NDArray[np.uint32]) -> None:
    """Fill the buffer with the next blocks of the keystream and advance the counter."""
    lanes, first, buffer = np.uint64(_LANES), np.uint64(_WORKING), np.uint64(_BUFFER)
    counter = np.uint64(state[12]) | (np.uint64(state[13]) << _BITS_32)
    for j in range(lanes):  # the input blocks: the counter is the lane's
        for i in range(np.uint64(16)):
            state[buffer + np.uint64(16) * j + i] = state[i]
        state[buffer + np.uint64(16) * j + np.uint64(12)] = np.uint32((counter + j) & _LOW_32)
        state[buffer + np.uint64(16) * j + np.uint64(13)] = np.uint32((counter + j) >> _BITS_32)
        for i in range(np.uint64(16)):
            state[first + lanes * i + j] = state[buffer + np.uint64(16) * j + i]
    _mix(state, first)
    for j in range(lanes):
        for i in range(np.uint64(16)):
            state[buffer + np.uint64(16) * j + i] += state[first + lanes * i + j]
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
    """Fill ``words`` with the next words of the stream, in runs: twice as fast as one by one."""
    done, count = _ZERO, np.uint64(len(words))
    while done < count:
        if state[_POSITION] >= np.uint64(_END):
            _refill(state)
        position = np.uint64(state[_POSITION])
        run = min(count - done, (np.uint64(_END) - position) >> _ONE)
        for i in range(run):
            at = position + i + i
            words[done + i] = np.uint64(state[at]) | (np.uint64(state[at + _ONE]) << _BITS_32)
        state[_POSITION] = position + run + run
        done += run


@kernel
def fill_blocks(
    key: NDArray[np.uint32], nonces: NDArray[np.uint64], block: Any, words: NDArray[np.uint64]
) -> None:
    """Fill row i of ``words`` with one block of the keystream of nonce i; ``block`` counts from 0.

    ``key`` begins as a state does. Lanes differ in their nonce; those beyond the last repeat it.
    """
    lanes, count = np.uint64(_LANES), np.uint64(len(nonces))
    given = np.empty(16, dtype=np.uint32)
    for i in range(np.uint64(12)):
        given[i] = key[i]
    given[12], given[13] = np.uint64(block) & _LOW_32, np.uint64(block) >> _BITS_32
    mixed = np.empty(16 * _LANES, dtype=np.uint32)
    for begin in range(_ZERO, count, lanes):
        for j in range(lanes):
            at: Any = min(begin + j, count - _ONE)
            nonce = nonces[at]
            for i in range(np.uint64(14)):
                mixed[lanes * i + j] = given[i]
            mixed[lanes * np.uint64(14) + j] = np.uint32(nonce & _LOW_32)
            mixed[lanes * np.uint64(15) + j] = np.uint32(nonce >> _BITS_32)
        _mix(mixed, _ZERO)
        for j in range(min(lanes, count - begin)):
            given[14] = nonces[begin + j] & _LOW_32
            given[15] = nonces[begin + j] >> _BITS_32
            for i in range(np.uint64(BLOCK_WORDS)):
                low_at, high_at = i + i, i + i + _ONE
                low = np.uint32(mixed[lanes * low_at + j] + given[low_at])
                high = np.uint32(mixed[lanes * high_at + j] + given[high_at])
                words[begin + j, i] = np.uint64(low) | (np.uint64(high) << _BITS_32)


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
