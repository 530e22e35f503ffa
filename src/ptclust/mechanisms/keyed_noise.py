"""Noise as a function of a secret key and an edge: drawn again, it is the same.

Where edges are spread over many machines, work that is lost is done again. Were the noise drawn
afresh, one edge could be published with two noises, whose mean has less noise than was calibrated.
So every edge has a stream of words of its own, ChaCha20 (RFC 8439) with the edge as its nonce, and
the samplers of ``privacy.noise`` read that: any machine that holds the key draws the same noise, in
any order of the edges, and no words are ever used for two edges.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats, Ints
from ptclust.errors import UsageError
from ptclust.mechanisms.lattice import added_on_lattice
from ptclust.privacy._chacha_kernel import BLOCK_WORDS, fill_blocks, new_state
from ptclust.privacy.noise import Noise
from ptclust.privacy.noise import _lattice_kernel as kernel

KEY_BYTES = 32
_CHUNK = 1 << 14  # edges at a time: their words stay in the processor's cache
_NO_EDGE = 2**64 - 1  # the nonce of what is drawn once for all edges


def draw_noise_key() -> bytes:
    """Return a fresh secret key from the operating system, for one release."""
    return os.urandom(KEY_BYTES)


def key_state(key: bytes) -> NDArray[np.uint32]:
    """Return the state of ChaCha20 under a key."""
    if len(key) != KEY_BYTES:
        raise UsageError(f"a key of noise has {KEY_BYTES} bytes, not {len(key)}")
    return new_state(key)


def edge_numbers(sources: Array, targets: Array, n_nodes: int) -> NDArray[np.uint64]:
    """Return a number for every edge, the same for both orders of its ends.

    >>> edge_numbers(np.array([0, 3]), np.array([2, 1]), 5).tolist()
    [2, 8]
    """
    if n_nodes > 2**31:
        raise UsageError(f"noise by key is for at most 2^31 nodes, not {n_nodes:,}")
    low, high = (
        end.astype(np.uint64)
        for end in (np.minimum(sources, targets), np.maximum(sources, targets))
    )
    return np.asarray(low * np.uint64(n_nodes) + high)


@leaves_no_trace
def add_keyed_noise(values: Floats, edges: NDArray[np.uint64], noise: Noise, key: bytes) -> Floats:
    """Return the values of some edges plus their noise under a key; see `edge_numbers`.

    The noise is calibrated for all ``noise.n_values`` edges; these may be any part of them.

    Notes
    -----
    *Privacy.* As calibrated, against anyone who cannot tell ChaCha20 under a secret key from random
    words: the guarantee is computational, as that of every release is whose words come from a
    generator. It takes that every edge is drawn with one weight only: the same edge with two
    weights would show their difference without noise. So a key is for one release, of one graph
    without parallel edges, and nobody but who draws may hold it.

    >>> from ptclust.privacy.noise import noise_of_scale
    >>> noise, edges = noise_of_scale(1.0, 3), np.array([1, 2, 5], dtype=np.uint64)
    >>> all_three = add_keyed_noise(np.zeros(3), edges, noise, bytes(32))
    >>> bool(all_three[2] == add_keyed_noise(np.zeros(1), edges[2:], noise, bytes(32))[0])
    True
    """
    steps, giants = _Sampler(noise, key).draw(edges)
    return added_on_lattice(values, steps, noise.granularity, giants)


class EdgeWords:
    """The words of one nonce, from a block on."""

    def __init__(self, state: Array, nonce: int, block: int) -> None:
        self._state, self._nonce, self._block = state, np.array([nonce], dtype=np.uint64), block
        self._left = np.empty(0, dtype=np.uint64)

    def fill(self, words: NDArray[np.uint64]) -> None:
        """Fill an array with the next words."""
        for i in range(len(words)):
            if not len(self._left):
                row = np.empty((1, BLOCK_WORDS), dtype=np.uint64)
                fill_blocks(self._state, self._nonce, np.uint64(self._block), row)
                self._left, self._block = row[0], self._block + 1
            words[i], self._left = self._left[0], self._left[1:]


class _Sampler:
    """Draws the noise of edges from their words."""

    def __init__(self, noise: Noise, key: bytes) -> None:
        self._state = key_state(key)
        self._sampler = noise.law.sampler(noise, EdgeWords(self._state, _NO_EDGE, 0))

    def draw(self, edges: NDArray[np.uint64]) -> tuple[Ints, dict[int, int]]:
        """Return the noise in steps, and by place that which no int64 holds."""
        steps, giants = np.empty(len(edges), dtype=np.int64), dict[int, int]()
        for start in range(0, len(edges), _CHUNK):
            some = slice(start, start + _CHUNK)
            for place, value in self._draw_chunk(edges[some], steps[some]):
                giants[start + place] = value
        return steps, giants

    def _draw_chunk(self, edges: NDArray[np.uint64], steps: Ints) -> list[tuple[int, int]]:
        giants, left, block = [], np.arange(len(edges)), 0
        while len(left):  # a round takes one block of every edge that has no value yet
            words = np.empty((len(left), BLOCK_WORDS), dtype=np.uint64)
            fill_blocks(self._state, edges[left], np.uint64(block), words)
            found, outcome = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
            block += 1
            self._sampler.draw_each(words, found, outcome)
            steps[left] = found
            for i in np.flatnonzero(outcome >= kernel.OPEN):
                at, place = int(outcome[i]) - kernel.OPEN, int(left[i])
                more = EdgeWords(self._state, int(edges[place]), block)
                given = words[i, at : at + kernel.WORDS].tolist()
                value = self._sampler.settle(given, more)
                steps[place] = value if abs(value) < kernel.NEAR else 0
                if abs(value) >= kernel.NEAR:
                    giants.append((place, value))
            left = left[outcome == kernel.REJECTED]
        return giants
