"""The keystream against the standard, and draws against the distributions they claim."""

from __future__ import annotations

import copy
import os
import pickle
import warnings
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest, chisquare

from ptclust.errors import UsageError
from ptclust.privacy import RandomStream
from ptclust.privacy._chacha_kernel import (
    _BUFFER,
    _END,
    _POSITION,
    BUFFER_WORDS,
    coin_flips_all_zero,
    fill_words,
    new_state,
    next_word,
    uniform53,
    uniform_below,
)

ALPHA = 1e-6


def keystream(state: NDArray[np.uint32], n_bytes: int) -> bytes:
    words = np.empty(n_bytes // 8, dtype=np.uint64)
    fill_words(state, words)
    return words.astype("<u8").tobytes()


def reference_block(block: list[int]) -> bytes:
    """RFC 8439, section 2.3, word by word."""
    x = list(block)

    def quarter_round(a: int, b: int, c: int, d: int) -> None:
        for i, j, k, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[i] = (x[i] + x[j]) & 0xFFFFFFFF
            x[k] ^= x[i]
            x[k] = ((x[k] << bits) | (x[k] >> (32 - bits))) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter_round(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter_round(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return b"".join(((a + b) & 0xFFFFFFFF).to_bytes(4, "little") for a, b in zip(x, block))


RFC_2_3_2 = """
10 f1 e7 e4 d1 3b 59 15 50 0f dd 1f a3 20 71 c4 c7 d1 f4 c7 33 c0 68 03 04 22 aa 9a c3 d4 6c 4e
d2 82 64 46 07 9f aa 09 14 c2 d7 05 d9 8b 02 a2 b5 12 9c d1 de 16 4e b9 cb d0 83 e8 a2 50 3c 4e
"""
RFC_A_1_1 = """
76 b8 e0 ad a0 f1 3d 90 40 5d 6a e5 53 86 bd 28 bd d2 19 b8 a0 8d ed 1a a8 36 ef cc 8b 77 0d c7
da 41 59 7c 51 57 48 8d 77 24 e0 3f b8 d8 4a 37 6a 43 b8 f4 15 18 a1 1c c3 87 b6 69 b2 ee 65 86
"""
RFC_A_1_2 = """
9f 07 e7 be 55 51 38 7a 98 ba 97 7c 73 2d 08 0d cb 0f 29 a0 48 e3 65 69 12 c6 53 3e 32 ee 7a ed
29 b7 21 76 9c e6 4e 43 d5 71 33 b0 74 d8 39 d5 31 ed 1f 28 51 0a fb 45 ac e1 0a 1f 4b 79 4d 6f
"""


def test_block_function_of_rfc_8439_section_2_3_2() -> None:
    state = new_state(bytes(range(32)))
    # Counter 1 and nonce 00:00:00:09:00:00:00:4a:00:00:00:00.
    state[12:16] = 0x00000001, 0x09000000, 0x4A000000, 0x00000000
    assert keystream(state, 64) == bytes.fromhex(RFC_2_3_2)


def test_keystream_of_rfc_8439_appendix_a_1() -> None:
    assert keystream(new_state(bytes(32)), 128) == bytes.fromhex(RFC_A_1_1 + RFC_A_1_2)


def test_the_counter_has_64_bits() -> None:
    state = new_state(bytes(range(32)))
    state[12] = 2**32 - 3
    block = state[:16].tolist()
    blocks = []
    for counter in range(2**32 - 3, 2**32 + 100):
        block[12:14] = counter % 2**32, counter >> 32
        blocks.append(reference_block(block))
    assert keystream(state, 64 * len(blocks)) == b"".join(blocks)


def test_words_across_refills_are_one_stream() -> None:
    whole = RandomStream.seeded(3).words(5 * BUFFER_WORDS + 7)
    stream = RandomStream.seeded(3)
    pieces = [stream.words(count) for count in (1, 0, BUFFER_WORDS, 255, 2, 3 * BUFFER_WORDS + 5)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    one_by_one = RandomStream.seeded(3)
    assert [next_word(one_by_one.state) for _ in range(300)] == whole[:300].tolist()
    assert len(set(whole.tolist())) == len(whole)


def test_a_seed_names_a_stream() -> None:
    assert RandomStream.seeded(5).words(9).tolist() == RandomStream.seeded(5).words(9).tolist()
    assert RandomStream.seeded(5).words(9).tolist() != RandomStream.seeded(6).words(9).tolist()
    assert RandomStream.seeded(np.int64(5)).words(1) == RandomStream.seeded(5).words(1)
    assert RandomStream.seeded(10**30).reproducible


@pytest.mark.parametrize("seed", [-1, 1.5, None, "7", True])
def test_a_seed_is_a_natural_number(seed: Any) -> None:
    with pytest.raises(UsageError, match="seed must be an integer") as refused:
        RandomStream.seeded(seed)
    assert repr(seed) in str(refused.value)


def test_secure_streams_differ() -> None:
    first, second = RandomStream.secure(), RandomStream.secure()
    assert not first.reproducible
    assert first.words(9).tolist() != second.words(9).tolist()


def test_a_forked_secure_stream_takes_a_new_key() -> None:
    stream = RandomStream.secure()
    key = stream.state[4:12].tolist()
    stream._process = -1
    assert stream.state[4:12].tolist() != key
    seeded = RandomStream.seeded(1)
    key = seeded.state[4:12].tolist()
    seeded._process = -1
    assert seeded.state[4:12].tolist() == key


def test_parent_and_child_of_a_fork_draw_other_words() -> None:
    stream = RandomStream.secure()
    stream.words(3)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads of the runner
        child = os.fork()
    if child == 0:
        os.write(write, stream.words(8).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 64), dtype=np.uint64)
    assert len(theirs) == 8
    assert not set(theirs.tolist()) & set(stream.words(300).tolist())


def test_neither_key_nor_words_leave_the_stream() -> None:
    stream = RandomStream.secure()
    assert repr(stream) == "<RandomStream: secure>"
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="refuses to be copied or pickled"):
            attempt(stream)


def test_closing_overwrites_the_key() -> None:
    with RandomStream.secure() as stream:
        state = stream.state
        stream.words(3)
    assert not state.any()
    stream.close()
    assert repr(stream) == "<RandomStream: secure, closed>"
    with pytest.raises(UsageError, match="closed"):
        stream.words(1)


def test_only_a_reproducible_stream_makes_numpy_generators() -> None:
    first = RandomStream.seeded(2)
    again = RandomStream.seeded(2)
    draws = first.numpy_generator().random(4).tolist()
    assert draws == again.numpy_generator().random(4).tolist()
    assert draws != first.numpy_generator().random(4).tolist()
    with pytest.raises(UsageError, match="not private"):
        RandomStream.secure().numpy_generator()


@numba.njit
def _draw_below(state: Any, n: Any, draws: Any) -> None:
    for i in range(len(draws)):
        draws[i] = uniform_below(state, n)


@numba.njit
def _draw_flips(state: Any, d: Any, n_draws: Any) -> Any:
    count = 0
    for _ in range(n_draws):
        count += coin_flips_all_zero(state, d)
    return count


def below(n: int, count: int, seed: int = 0) -> NDArray[np.int64]:
    draws = np.empty(count, dtype=np.int64)
    _draw_below(RandomStream.seeded(seed).state, np.uint64(n), draws)
    return draws


def looks_uniform(counts: NDArray[np.int64]) -> bool:
    return bool(chisquare(counts).pvalue > ALPHA)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000])
def test_integers_below_a_bound_are_uniform(n: int) -> None:
    counts = np.bincount(below(n, 200_000), minlength=n)
    assert len(counts) == n
    if n > 1:
        assert looks_uniform(counts)
        counts[0] += 0.03 * counts.sum()  # a mutant that favours 0 is caught
        assert not looks_uniform(counts)


# The second half of these ranges is where a draw without rejection would be biased by up to a half.
@pytest.mark.parametrize("n", [3 * 2**30, 2**32 - 1, 2**32, 3 * 2**61, 2**62 + 1, 2**63])
def test_integers_below_a_large_bound_are_uniform(n: int) -> None:
    draws = below(n, 60_000)
    assert draws.min() >= 0
    assert int(draws.max()) < n
    assert looks_uniform(np.bincount((draws.astype(object) * 6 // n).astype(np.int64)))
    assert looks_uniform(np.bincount((draws % 5).astype(np.int64)))


def test_bits_are_fair() -> None:
    words = RandomStream.seeded(11).words(50_000)
    for shift in range(64):
        ones = int(((words >> np.uint64(shift)) & np.uint64(1)).sum())
        assert binomtest(ones, len(words)).pvalue > ALPHA
    halves = np.array([uniform53(RandomStream.seeded(seed).state) for seed in range(200)])
    assert halves.max() < 2**53
    assert halves.max() > 2**52


@pytest.mark.parametrize("d", [0, 1, 3, 6])
def test_all_coins_show_zero_with_probability_2_to_the_minus_d(d: int) -> None:
    zeros = _draw_flips(RandomStream.seeded(d).state, d, 100_000)
    if d == 0:
        assert zeros == 100_000
    else:
        assert binomtest(zeros, 100_000, 2.0**-d).pvalue > ALPHA
        assert binomtest(zeros, 100_000, 1.3 * 2.0**-d).pvalue < ALPHA


@pytest.mark.parametrize("d", [64, 65, 70, 128, 200])
def test_many_coins_need_many_words(d: int) -> None:
    def flips(set_bit: int | None) -> bool:
        """Flip with a keystream of zeros, but for one bit: the ``set_bit``-th coin."""
        state = new_state(bytes(32))
        state[_BUFFER:_END] = 0
        state[_POSITION] = _BUFFER
        if set_bit is not None:
            word, bit = divmod(set_bit, 64)
            in_word = 63 - bit
            state[_BUFFER + 2 * word + in_word // 32] = 1 << (in_word % 32)
        return coin_flips_all_zero(state, d)

    assert flips(None)
    assert not any(flips(bit) for bit in range(d))
    assert flips(d)
