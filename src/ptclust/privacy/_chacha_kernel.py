"""ChaCha20 (RFC 8439) as a keystream that a kernel reads word by word inside its loops.

The block function is the standard's: 20 rounds over 16 words of 32 bits. Words 12 and 13 of the
input block form a block counter of 64 bits, as in Bernstein's original layout, so that a stream
holds 2^70 bytes; words 14 and 15 are the nonce. 16 blocks are computed side by side, one per
vector lane, and come out in the order of their counters: the keystream is the concatenation of the
standard's blocks, read as little-endian words of 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptclust._kernel import kernel, merged

_LANES = 16
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
_WORKING = 32  # the lanes of the block function: word i of lane j at 16 i + j, then what is given
_BUFFER = _WORKING + 20 * _LANES  # keystream
_END = _BUFFER + 2 * BUFFER_WORDS


def new_state(key: bytes) -> NDArray[np.uint32]:
    """Return the state at the start of the keystream of a 256-bit key; counter and nonce are 0."""
    state = np.zeros(_END, dtype=np.uint32)
    state[:4] = np.frombuffer(b"expand 32-byte k", dtype="<u4")
    state[4:12] = np.frombuffer(key, dtype="<u4")
    state[_POSITION] = _END
    return state


@merged
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


@merged
def _double_round(x: Any) -> Any:
    """One column and one diagonal round (RFC 8439, section 2.3)."""
    x00, x01, x02, x03, x04, x05, x06, x07, x08, x09, x10, x11, x12, x13, x14, x15 = x
    x00, x04, x08, x12 = _quarter_round(x00, x04, x08, x12)
    x01, x05, x09, x13 = _quarter_round(x01, x05, x09, x13)
    x02, x06, x10, x14 = _quarter_round(x02, x06, x10, x14)
    x03, x07, x11, x15 = _quarter_round(x03, x07, x11, x15)
    x00, x05, x10, x15 = _quarter_round(x00, x05, x10, x15)
    x01, x06, x11, x12 = _quarter_round(x01, x06, x11, x12)
    x02, x07, x08, x13 = _quarter_round(x02, x07, x08, x13)
    x03, x04, x09, x14 = _quarter_round(x03, x04, x09, x14)
    return x00, x01, x02, x03, x04, x05, x06, x07, x08, x09, x10, x11, x12, x13, x14, x15


@merged
def _mixed(x: Any) -> Any:
    """Return a block after its 20 rounds, written out: loops in loops become no vector code."""
    x = _double_round(_double_round(_double_round(_double_round(_double_round(x)))))
    return _double_round(_double_round(_double_round(_double_round(_double_round(x)))))


@kernel
def _compute_blocks(key: NDArray[np.uint32], lanes: NDArray[np.uint32], first: Any) -> None:
    """Compute 16 blocks under one key, one a lane; the loop becomes vector code.

    From ``first`` on are the words of all lanes: those of the blocks, then counters and nonces.
    """
    a00, a01, a02, a03 = key[0], key[1], key[2], key[3]
    a04, a05, a06, a07 = key[4], key[5], key[6], key[7]
    a08, a09, a10, a11 = key[8], key[9], key[10], key[11]
    for j in range(np.uint64(_LANES)):
        lane = np.uint64(first) + j
        a12, a13 = lanes[lane + np.uint64(256)], lanes[lane + np.uint64(272)]
        a14, a15 = lanes[lane + np.uint64(288)], lanes[lane + np.uint64(304)]
        x = _mixed((a00, a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, a14, a15))
        lanes[lane] = x[0] + a00
        lanes[lane + np.uint64(16)] = x[1] + a01
        lanes[lane + np.uint64(32)] = x[2] + a02
        lanes[lane + np.uint64(48)] = x[3] + a03
        lanes[lane + np.uint64(64)] = x[4] + a04
        lanes[lane + np.uint64(80)] = x[5] + a05
        lanes[lane + np.uint64(96)] = x[6] + a06
        lanes[lane + np.uint64(112)] = x[7] + a07
        lanes[lane + np.uint64(128)] = x[8] + a08
        lanes[lane + np.uint64(144)] = x[9] + a09
        lanes[lane + np.uint64(160)] = x[10] + a10
        lanes[lane + np.uint64(176)] = x[11] + a11
        lanes[lane + np.uint64(192)] = x[12] + a12
        lanes[lane + np.uint64(208)] = x[13] + a13
        lanes[lane + np.uint64(224)] = x[14] + a14
        lanes[lane + np.uint64(240)] = x[15] + a15


@merged  # a call might raise, and counts references then
def _refill(state: NDArray[np.uint32]) -> None:
    """Fill the buffer with the next blocks of the keystream and advance the counter."""
    lanes = np.uint64(_LANES)
    first, given = np.uint64(_WORKING), np.uint64(_WORKING + 16 * _LANES)
    counter = np.uint64(state[12]) | (np.uint64(state[13]) << _BITS_32)
    for begin in range(np.uint64(_BUFFER), np.uint64(_END), np.uint64(16 * _LANES)):
        for j in range(lanes):
            state[given + j] = np.uint32((counter + j) & _LOW_32)
            state[given + lanes + j] = np.uint32((counter + j) >> _BITS_32)
            state[given + np.uint64(2) * lanes + j] = state[14]
            state[given + np.uint64(3) * lanes + j] = state[15]
        _compute_blocks(state, state, first)
        for j in range(lanes):
            for i in range(np.uint64(16)):
                state[begin + np.uint64(16) * j + i] = state[first + i * lanes + j]
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


#: Words of 64 bits in one block.
BLOCK_WORDS = 8


@kernel
def fill_blocks(
    key: NDArray[np.uint32], nonces: NDArray[np.uint64], block: Any, words: NDArray[np.uint64]
) -> None:
    """Fill row i of ``words`` with one block of the keystream of nonce i; ``block`` counts from 0.

    ``key`` begins as a state does.
    """
    low = np.uint32(np.uint64(block) & _LOW_32)
    high = np.uint32(np.uint64(block) >> _BITS_32)
    lanes = np.empty(20 * _LANES, dtype=np.uint32)
    count, given = np.uint64(len(nonces)), np.uint64(16 * _LANES)
    for begin in range(np.uint64(0), count, np.uint64(_LANES)):
        for j in range(np.uint64(_LANES)):
            at: Any = min(begin + j, count - _ONE)  # lanes beyond the last nonce repeat it
            lanes[given + j] = low
            lanes[given + np.uint64(_LANES) + j] = high
            lanes[given + np.uint64(2 * _LANES) + j] = np.uint32(nonces[at] & _LOW_32)
            lanes[given + np.uint64(3 * _LANES) + j] = np.uint32(nonces[at] >> _BITS_32)
        _compute_blocks(key, lanes, np.uint64(0))
        for j in range(min(np.uint64(_LANES), count - begin)):
            for i in range(np.uint64(BLOCK_WORDS)):
                at = np.uint64(32) * i + j
                words[begin + j, i] = np.uint64(lanes[at]) | (
                    np.uint64(lanes[at + np.uint64(16)]) << _BITS_32
                )


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
