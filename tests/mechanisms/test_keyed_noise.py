"""Noise by key: a function of key and edge alone, and of the right distribution."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from ptclust.errors import UsageError
from ptclust.mechanisms.keyed import add_keyed_noise, draw_noise_key, edge_numbers
from ptclust.privacy import Noise, Sensitivity
from ptclust.privacy._chacha_kernel import BLOCK_WORDS, fill_blocks, fill_words, new_state
from ptclust.privacy.noise import _lattice_kernel as kernel
from ptclust.privacy.noise import (
    cube_noise,
    distribution,
    gaussian_noise,
    laplace_noise,
    noise_of_scale,
)
from ptclust.privacy.noise.exact import CubeSampler, LatticeSampler

ALPHA = 1e-6
KEY = bytes(range(32))
NOISES = [
    laplace_noise(Sensitivity(l1=1), 5000, 1),
    gaussian_noise(Sensitivity(l2=1), 5000, 0.5),
    cube_noise(Sensitivity(linf=1), 5000, 1),
    Noise("laplace", 1.0, 0, 5000),  # blocks of one value: many are rejected
    Noise("cube", 1.0, -50, 5000),
    Noise("cube", 1.0, -56, 5000),  # beyond what an int64 holds
]


def some_edges(count: int) -> np.ndarray:
    return np.random.default_rng(3).choice(2**62, count, replace=False).astype(np.uint64)


def test_blocks_are_those_of_the_stream_with_this_nonce():
    nonces = np.array([0, 1, 2**32, 2**64 - 1, *range(30)], dtype=np.uint64)
    for block in (0, 1, 2**32):
        words = np.empty((len(nonces), BLOCK_WORDS), dtype=np.uint64)
        fill_blocks(new_state(KEY), nonces, np.uint64(block), words)
        for nonce, row in zip(nonces.tolist(), words):
            state, expected = new_state(KEY), np.empty(BLOCK_WORDS, dtype=np.uint64)
            state[12:16] = block & 0xFFFFFFFF, block >> 32, nonce & 0xFFFFFFFF, nonce >> 32
            fill_words(state, expected)
            assert row.tolist() == expected.tolist()


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: f"{noise.distribution}")
def test_the_noise_of_an_edge_depends_on_key_and_edge_alone(noise):
    edges, values = some_edges(5000), np.random.default_rng(1).normal(size=5000) * 100
    together = add_keyed_noise(values, edges, noise, KEY)
    order = np.random.default_rng(2).permutation(5000)
    assert (add_keyed_noise(values[order], edges[order], noise, KEY) == together[order]).all()
    parts = [add_keyed_noise(values[i::7], edges[i::7], noise, KEY) for i in range(7)]
    assert all((part == together[i::7]).all() for i, part in enumerate(parts))
    other = add_keyed_noise(values, edges, noise, bytes(32))
    assert (other != together).mean() > 0.5  # noise of few steps may be the same twice


def test_both_directions_are_one_edge():
    a, b = np.array([0, 5, 9]), np.array([3, 2, 1])
    assert edge_numbers(a, b, 10).tolist() == edge_numbers(b, a, 10).tolist() == [3, 25, 19]
    everything = np.triu_indices(50, 1)
    assert len(np.unique(edge_numbers(*everything, 50))) == 1225
    with pytest.raises(UsageError, match="nodes"):
        edge_numbers(a, b, 2**31 + 1)


@pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
@pytest.mark.parametrize("t", [1.0, 3.7, 20.0])
def test_the_distribution_is_exact(distribution, t):
    count = 1_000_000
    edges = np.arange(count, dtype=np.uint64)  # neighbours, as edges are
    noise = Noise(distribution, t, 0, count)
    drawn = add_keyed_noise(np.zeros(count), edges, noise, draw_noise_key())
    assert judge(drawn, distribution, t) > ALPHA
    assert judge(drawn * 2, distribution, t) < ALPHA
    # Streams of neighbours are unrelated.
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 5e-3


def judge(drawn: np.ndarray, distribution: str, t: float) -> float:
    """Return the p-value of integers against the discrete distribution, tails put together."""
    width = int(np.ceil(8 * t if distribution == "laplace" else 4 * t))
    x = np.arange(-width, width + 1)
    exponent = np.abs(np.arange(-60 * width, 60 * width + 1)) / t
    if distribution == "gaussian":
        exponent = exponent**2 / 2
    law = np.exp(-exponent) / np.exp(-exponent).sum()
    middle = law[59 * width : 61 * width + 1]
    counts = [int((drawn == value).sum()) for value in x]
    counts.append(len(drawn) - sum(counts))
    return float(chisquare(counts, len(drawn) * np.array([*middle, 1 - middle.sum()])).pvalue)


def test_a_cube_has_one_half_width_of_its_law():
    n, t = 3, Fraction(50)
    noise, edges = Noise("cube", float(t), 0, n), np.arange(n, dtype=np.uint64)
    # The largest of three uniform values, over keys: its law is that of the half-width.
    sizes = [
        np.abs(add_keyed_noise(np.zeros(n), edges, noise, i.to_bytes(32, "big"))).max()
        for i in range(4000)
    ]
    # Of density r^(n-1) exp(-r / t), but for the lattice: Gamma(n) t.
    assert kstest(np.array(sizes) + np.random.default_rng(0).uniform(-0.5, 0.5, 4000), "gamma",
                  args=(n, 0, float(t))).pvalue > ALPHA  # fmt: skip
    many = add_keyed_noise(np.zeros(20000), np.arange(20000, dtype=np.uint64),
                           Noise("cube", 1.0, 0, 20000), KEY)  # fmt: skip
    assert kstest(many, "uniform", args=(-many.max(), 2 * many.max())).pvalue > ALPHA


def test_what_floats_leave_open_is_settled_by_words_of_the_edge(monkeypatch):
    noise, edges = noise_of_scale(1.0, 3000), some_edges(3000)
    plain = add_keyed_noise(np.zeros(3000), edges, noise, KEY)
    opened = []

    class Counting(LatticeSampler):
        def settle(self, given, source):
            opened.append(given)
            return super().settle(given, source)

    def wide(power, t):
        sampler = Counting(power, t)
        sampler.table = sampler.table._replace(margin=0.05)  # leaves far more open
        return sampler

    monkeypatch.setattr(distribution, "lattice_sampler", wide)
    settled = add_keyed_noise(np.zeros(3000), edges, noise, KEY)
    assert len(opened) > 50
    # An open attempt that is accepted gives what the kernel gives; one that is rejected goes on.
    assert (settled == plain).mean() > 0.97
    order = np.random.default_rng(2).permutation(3000)
    assert (add_keyed_noise(np.zeros(3000), edges[order], noise, KEY) == settled[order]).all()


def test_what_no_key_can_draw_is_refused():
    with pytest.raises(UsageError, match="32 bytes"):
        add_keyed_noise(np.zeros(1), some_edges(1), noise_of_scale(1.0, 1), b"short")
    with pytest.raises(UsageError, match="steps of the lattice"):
        add_keyed_noise(np.zeros(1), some_edges(1), Noise("laplace", 0.5, 0, 1), KEY)
    assert CubeSampler(5000, Fraction(2**56)).mode > kernel.NEAR // 2
