from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.clustering.contraction._evidence import _Blocks, merge_unseparated
from ptclust.clustering.levels import NoisyWeights


def weighed(values, deviation=0.0, is_laplace=False):
    return NoisyWeights(np.array(values, dtype=np.float64), deviation, is_laplace)


def complete(n):
    return np.triu_indices(n, 1)


def obvious(edges, values, labels, one, other, deviation, kurtosis):
    """Deviations between two clusters, weight by weight."""
    groups = {}
    for (a, b), x in zip(edges, values):
        groups.setdefault(frozenset({labels[a], labels[b]}), []).append(x)
    pair = groups[frozenset({one, other})]
    within = [groups[key] for key in (frozenset({one}), frozenset({other})) if key in groups]
    gap = np.mean(pair) - max((np.mean(x) for x in within), default=-math.inf)
    if gap <= 0:
        return 0.0
    squares = sum(((x - np.mean(x)) ** 2).sum() for x in map(np.array, [pair, *within]))
    freedom = max(sum(len(x) - 1 for x in [pair, *within]), 1)
    variance = squares / freedom - deviation**2 * (1 + 2 * math.sqrt((kurtosis - 1) / freedom))
    return gap / math.sqrt(variance) if variance > 0 else math.inf


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.3]), st.booleans())
def test_separation_is_that_of_the_obvious_way(seed, deviation, is_laplace):
    random = np.random.default_rng(seed)
    a, b = complete(7)
    labels = np.unique(random.integers(0, 4, 7), return_inverse=True)[1]
    values = random.random(len(a)) + 1.5 * (labels[a] != labels[b]) * random.random()
    blocks = _Blocks.of(a, b, weighed(values, deviation, is_laplace), labels)
    found = blocks.separation(weighed(values, deviation, is_laplace))
    for one, other, apart in zip(blocks.first, blocks.second, found):
        expected = obvious(
            list(zip(a, b)), values, labels, one, other, deviation, 6 if is_laplace else 3
        )
        assert apart == pytest.approx(expected, rel=1e-6)


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1))
def test_joined_blocks_are_those_of_the_joined_clusters(seed):
    random = np.random.default_rng(seed)
    a, b = complete(9)
    keep = random.random(len(a)) < 0.6
    a, b = a[keep], b[keep]
    noisy = weighed(random.normal(5, 1, len(a)))
    labels = np.unique(random.integers(0, 6, 9), return_inverse=True)[1]
    number = np.unique(random.integers(0, 3, labels.max() + 1), return_inverse=True)[1]
    joined = _Blocks.of(a, b, noisy, labels).joined(number)
    for one, other in zip(joined[1:], _Blocks.of(a, b, noisy, number[labels])[1:]):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_levels_stay_and_a_spread_is_joined():
    random = np.random.default_rng(0)
    a, b = complete(40)
    labels = np.arange(40) // 10
    place = np.arange(40) % 20  # 0 and 1 are halves of one cluster, 2 and 3 those of another
    values = np.maximum(place[a], place[b]) / 20 + 9.0 * (labels[a] // 2 != labels[b] // 2)
    noisy = weighed(values + random.normal(0, 0.01, len(a)), 0.01)
    assert merge_unseparated(a, b, noisy, labels).tolist() == (labels // 2).tolist()


@pytest.mark.parametrize(("gap", "n_left"), [(3.5, 1), (4.5, 2)])
def test_four_deviations_are_needed(gap, n_left):
    random = np.random.default_rng(1)
    a, b = complete(60)
    labels = np.arange(60) % 2
    values = random.normal(0, 1, len(a)) + gap * (labels[a] != labels[b])
    assert merge_unseparated(a, b, weighed(values), labels).max() + 1 == n_left


@pytest.mark.parametrize("is_laplace", [False, True])
def test_noise_is_not_taken_for_a_spread(is_laplace):
    """Levels two deviations of the noise apart; all of the spread may be noise."""
    for seed in range(50):
        random = np.random.default_rng(seed)
        a, b = complete(12)
        labels = np.arange(12) % 2
        noise = (
            random.laplace(0, math.sqrt(0.5), len(a)) if is_laplace else random.normal(0, 1, len(a))
        )
        values = noise + 2.0 * (labels[a] != labels[b])
        assert merge_unseparated(a, b, weighed(values, 1.0, is_laplace), labels).max() == 1


def test_a_cluster_in_which_weights_are_as_heavy_is_no_other():
    """A dense cluster amid a sparse one, whose edges are as heavy as those across."""
    a, b = complete(20)
    labels = (np.arange(20) < 5).astype(np.int64)
    values = np.where(labels[a] + labels[b] == 2, 0.1, 0.9)
    assert merge_unseparated(a, b, weighed(values), labels).tolist() == [0] * 20


def test_single_nodes():
    """One is measured by the cluster beside it; two alone have no measure and stay."""
    a, b = np.array([0, 0, 1, 0, 1, 2]), np.array([1, 2, 2, 3, 3, 3])
    labels = np.array([0, 0, 0, 1])
    near = weighed([0.1, 0.2, 0.3, 0.2, 0.3, 0.4])
    far = weighed([0.1, 0.2, 0.3, 5.1, 5.2, 5.3])
    assert merge_unseparated(a, b, near, labels).max() == 0
    assert merge_unseparated(a, b, far, labels).max() == 1
    assert merge_unseparated(a[:1], b[:1], weighed([7.0]), np.array([0, 1])).tolist() == [0, 1]


def test_no_edges_and_one_cluster():
    none = np.empty(0, np.int64)
    assert merge_unseparated(none, none, weighed([]), np.array([0, 1, 2])).tolist() == [0, 1, 2]
    assert (
        merge_unseparated(*complete(3), weighed([1.0, 2.0, 3.0]), np.zeros(3, np.int64)).max() == 0  # type: ignore[call-arg]
    )


def test_equal_pairs_are_joined_all_the_same():
    """A ring of equal clusters: every pair is least apart, and all end as one."""
    n = 12
    a, b = np.arange(n), (np.arange(n) + 1) % n
    labels = np.arange(n) // 2
    assert merge_unseparated(a, b, weighed(np.full(n, 0.5)), labels).max() == 0
