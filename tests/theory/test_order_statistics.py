from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import zeta

from ptclust.errors import UsageError
from ptclust.theory import laplace_order_moments
from tests.theory.literal import laplace_order_moment


def by_quadrature(n, r, largest_order, about=0.0):
    """The Beta(r, n - r + 1) law of a uniform order statistic, integrated over x = F^-1(u).

    It shares nothing with the binomial mixture. Around the bulk the log density is taken relative
    to its mode and the result divided by its own mass, so that the rounding of log n! does not
    matter.
    """
    t, v = np.polynomial.legendre.leggauss(60)

    def log_density(x):
        log_tail = -np.abs(x) - math.log(2.0)  # log F(x) below 0, log(1 - F(x)) above
        log_rest = np.log1p(-np.exp(log_tail))
        log_f = np.where(x < 0, log_tail, log_rest)
        log_g = np.where(x < 0, log_rest, log_tail)
        return (r - 1) * log_f + (n - r) * log_g + log_tail

    grid = np.linspace(-100.0, 100.0, 20_001)
    value = log_density(grid)
    if np.count_nonzero(value > value.max() - 80.0) < 50:  # a narrow bulk: look closer
        grid = grid[value.argmax()] + np.linspace(-0.1, 0.1, 20_001)
        value = log_density(grid)
    kept = grid[value > value.max() - 80.0]
    ends = np.unique(np.concatenate([np.linspace(kept[0] - 1e-4, kept[-1] + 1e-4, 400), [0.0]]))
    ends = ends[(ends >= kept[0] - 1e-4) & (ends <= kept[-1] + 1e-4)]
    half, middle = np.diff(ends)[:, None] / 2, ((ends[1:] + ends[:-1]) / 2)[:, None]
    x, weight = middle + half * t, half * v
    mass = weight * np.exp(log_density(x) - value.max())
    return np.array(
        [math.fsum((mass * (x - about) ** k).ravel()) for k in range(largest_order + 1)]
    ) / math.fsum(mass.ravel())


@given(st.integers(1, 80), st.data())
def test_agrees_with_the_alternating_sums_in_exact_arithmetic(n, data):
    r = data.draw(st.integers(1, n))
    absolute = laplace_order_moments(n, r, 6)
    for k in range(7):
        exact = float(laplace_order_moment(n, r, k))
        scale = max(
            abs(exact), absolute[k] if k % 2 == 0 else absolute[k - 1] ** (k / max(k - 1, 1))
        )
        assert absolute[k] == pytest.approx(exact, rel=1e-12, abs=1e-13 * scale)


@pytest.mark.parametrize("rank", [1, 40, 200, 361, 400])
def test_hundreds_of_values(rank):
    found = laplace_order_moments(400, rank, 4)
    for k in range(5):
        assert found[k] == pytest.approx(float(laplace_order_moment(400, rank, k)), rel=1e-11)


def test_the_alternating_sums_are_useless_in_floats():
    n = 100
    terms = [(-1) ** j * math.comb(n - 1, j) / (2.0 ** (1 + j) * (1 + j) ** 2) for j in range(n)]
    in_floats = n * math.fsum(terms)
    exact = float(laplace_order_moment(n, n, 1))
    assert abs(in_floats - exact) > 1e-3 * exact
    assert laplace_order_moments(n, n, 1)[1] == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("n", [1000, 10**6])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.501, 1.0])
def test_large_numbers_against_quadrature(n, share):
    r = max(1, round(share * n))
    found, expected = laplace_order_moments(n, r, 4), by_quadrature(n, r, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("n", [1000, 10**6])
def test_central_moments_against_quadrature(n):
    mean = laplace_order_moments(n, n, 1)[1]
    found, expected = (
        laplace_order_moments(n, n, 4, about=mean),
        by_quadrature(n, n, 4, about=mean),
    )
    assert abs(found[1]) < 1e-12
    np.testing.assert_allclose(found[2:], expected[2:], rtol=1e-10)


@pytest.mark.parametrize("n", [10**4, 10**6, 10**8])
def test_the_maximum_is_a_gumbel_variable_in_the_limit(n):
    # E[H_M] for M ~ Binomial(n, 1/2): log(n/2) + gamma + 1/(2n) + O(n^-2). The variance is
    # zeta(2) - E[1/M] + V[H_M] + ... = zeta(2) - 2/n + 1/n + O(n^-2).
    mean = laplace_order_moments(n, n, 1)[1]
    assert mean == pytest.approx(math.log(n / 2) + np.euler_gamma + 0.5 / n, abs=4 / n**2 + 4e-14)
    _, _, variance, third, fourth = laplace_order_moments(n, n, 4, about=mean)
    assert variance == pytest.approx(zeta(2, 1) - 1 / n, abs=10 / n**2 + 1e-11)
    assert third == pytest.approx(2 * zeta(3, 1), abs=10 / n + 1e-11)
    assert fourth == pytest.approx(6 * zeta(4, 1) + 3 * variance**2, abs=30 / n + 1e-10)


@pytest.mark.parametrize(("n", "rank"), [(3, 2), (12, 12), (50, 5), (61, 40)])
def test_agrees_with_drawn_values(n, rank):
    random, draws = np.random.default_rng([n, rank]), 200_000 // 10
    drawn = np.concatenate(
        [np.sort(random.laplace(size=(draws, n)), axis=1)[:, rank - 1] for _ in range(10)]
    )
    moments = laplace_order_moments(n, rank, 8)
    for k in range(1, 5):
        error = math.sqrt((moments[2 * k] - moments[k] ** 2) / len(drawn))
        assert abs((drawn**k).mean() - moments[k]) < 5 * error


@given(st.integers(1, 500), st.data())
@settings(max_examples=50)
def test_symmetry(n, data):
    r = data.draw(st.integers(1, n))
    signs = (-1.0) ** np.arange(6)
    np.testing.assert_array_equal(
        laplace_order_moments(n, r, 5), signs * laplace_order_moments(n, n + 1 - r, 5) + 0.0
    )


def test_moments_of_a_single_value_are_factorials():
    expected = [1.0, 0.0, 2.0, 0.0, 24.0, 0.0, 720.0]
    np.testing.assert_allclose(laplace_order_moments(1, 1, 6), expected, rtol=1e-14)
    assert [laplace_order_moment(1, 1, k) for k in range(7)] == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 1, 1), "at least 1 value, not 0"),
        ((5, 0, 1), r"1 \(smallest\) to 5 \(largest\), not 0"),
        ((5, 6, 1), r"not 6"),
        ((5, 5, -1), "0 or more, not -1"),
    ],
)
def test_errors(arguments, words):
    with pytest.raises(UsageError, match=words):
        laplace_order_moments(*arguments)
