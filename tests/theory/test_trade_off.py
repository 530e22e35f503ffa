from __future__ import annotations

import math
import pkgutil
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import ptclust.theory
from ptclust.errors import UsageError
from ptclust.theory.separation import laplace_order_moments, trade_off
from tests.theory import literal

# n, theta_min, theta_max, theta_out, noise_scale
TEN = [
    (12, 0.30, 0.45, 0.95, 0.050),
    (12, 0.30, 0.35, 0.95, 0.005),
    (1, 0.20, 0.20, 0.40, 0.100),
    (1, 0.20, 0.20, 0.90, 0.300),
    (2, 0.30, 0.30, 0.50, 0.020),
    (3, 0.30, 0.35, 0.95, 0.080),
    (5, 0.30, 0.35, 0.95, 0.050),
    (20, 0.50, 0.55, 1.00, 0.010),
    (40, 0.10, 0.30, 0.95, 0.010),
    (100, 0.60, 0.60, 0.80, 0.004),
]


def test_no_module_has_the_name_of_a_function():
    """Or ``import ptclust.theory.trade_off`` and ``ptclust.theory.trade_off`` are two things."""
    modules = {module.name for module in pkgutil.iter_modules(ptclust.theory.__path__)}
    assert "separation" in modules
    assert not modules & {name for name, value in vars(ptclust.theory).items() if callable(value)}


def theorem(n, low, high, out, scale):
    return trade_off(n, theta_min=low, theta_max=high, theta_out=out, noise_scale=scale)


def draw(parameters, draws, seed):
    """The maximum of Y, the minimum of Z from its own noise and from that of Y, and X_out."""
    n, low, high, out, scale = parameters
    random = np.random.default_rng([seed, n])
    parts = []
    for _ in range(10):
        shared = random.laplace(scale=scale, size=(draws // 10, n))
        own = random.laplace(scale=scale, size=(draws // 10, n))
        outer = out + random.laplace(scale=scale, size=draws // 10)
        extremes = high + shared.max(axis=1), low + own.min(axis=1), low + shared.min(axis=1)
        parts.append((*extremes, outer))
    return [np.concatenate(part) for part in zip(*parts)]


def deviations(values, mean, variance):
    """How many standard errors mean and variance of drawn values are from what they should be."""
    count = len(values)
    fourth = ((values - values.mean()) ** 4).mean()
    error = math.sqrt((fourth - values.var() ** 2) / count)
    return (values.mean() - mean) / math.sqrt(values.var() / count), (
        values.var() - variance
    ) / error


@pytest.mark.parametrize("parameters", TEN)
def test_drawn_values_agree_with_the_corrected_moments_and_not_with_the_printed(parameters):
    top, low, _, outer = draw(parameters, 200_000, seed=1)
    result = theorem(*parameters)
    phi = top**2 - low * outer
    of_mean, of_variance = deviations(phi, result.mean, result.variance)
    assert abs(of_mean) < 5
    assert abs(of_variance) < 5
    # As printed, the denominator is E[phi^2]; the numerator, V[phi], can be right by accident.
    variance, square = printed_moments(*parameters)
    assert result.printed == pytest.approx(1 - variance / square, rel=1e-9)
    second = phi**2
    assert abs(second.mean() - square) > 20 * second.std() / math.sqrt(len(second))


def printed_moments(n, low, high, out, d):
    """The formulas of the supplement, with alpha from the exact sums of Kotz et al. if feasible."""

    def n_alpha(rank, k):
        if n <= 40:
            moment = literal.laplace_order_moment(n, n if rank == "n" else 1, k)
        else:
            moment = Fraction(laplace_order_moments(n, n if rank == "n" else 1, k)[k])
        return float(moment / math.factorial(k))

    lambda_1 = (
        24 * d**4 * n_alpha("n", 4)
        + 12 * high * d**3 * n_alpha("n", 3)
        + 12 * high**2 * d**2 * n_alpha("n", 2)
        + 4 * high**3 * d * n_alpha("n", 1)
        + high**4
    )
    lambda_2 = 2 * d**2 * n_alpha("1", 2) + 2 * low * d * n_alpha("1", 1) + low**2
    lambda_3 = 2 * d**2 * n_alpha("n", 2) + 2 * high * d * n_alpha("n", 1) + high**2
    lambda_4 = d * n_alpha("1", 1) + low
    common = lambda_1 + (out**2 + d) * lambda_2
    return common - (lambda_3**2 + out**2 * lambda_4**2), common + 2 * lambda_3 * lambda_4


def test_the_printed_form_is_confident_where_the_truth_is_near_zero():
    parameters = TEN[0]
    result = theorem(*parameters)
    assert result.printed == pytest.approx(0.9694, abs=1e-4)
    assert not result.applies
    assert result.corrected == result.sound == 0
    top, low, _, outer = draw(parameters, 200_000, seed=2)
    assert np.mean((top**2 < low * outer) & (low > 0)) == pytest.approx(0.015, abs=0.0015)


@pytest.mark.parametrize("parameters", TEN)
def test_the_sound_bound_holds_for_the_release(parameters):
    top, _, low, outer = draw(parameters, 100_000, seed=3)
    survives = np.mean((top**2 < low * outer) & (low > 0))
    result = theorem(*parameters)
    margin = 5 * math.sqrt(0.25 / 100_000)
    assert result.sound <= survives + margin
    assert result.sound <= result.corrected + 0.02
    if result.applies and result.theta_min > 10 * result.noise_scale:
        assert result.sound == pytest.approx(result.corrected, rel=1e-3)


@pytest.mark.parametrize("parameters", TEN)
def test_shared_noise_keeps_the_mean_and_lowers_the_variance(parameters):
    top, _, shared, outer = draw(parameters, 200_000, seed=4)
    result = theorem(*parameters)
    coupled = top**2 - shared * outer
    assert abs(deviations(coupled, result.mean, 1.0)[0]) < 5
    covariance = np.cov(np.maximum(top, 0) ** 2, shared)[0, 1]
    assert covariance > 0
    expected = result.variance - 2 * result.theta_out * np.cov(top**2, shared)[0, 1]
    assert coupled.var() == pytest.approx(expected, rel=0.05)
    assert deviations(coupled, result.mean, result.variance)[1] < 5


def test_the_release_can_do_worse_than_the_independent_version():
    # All edges weigh the same, so Y and Z are the weights of the release, and H holds: 0.30 < 0.35.
    parameters = (3, 0.30, 0.30, 0.35, 0.05)
    top, independent, shared, outer = draw(parameters, 200_000, seed=5)
    truth = np.mean((top**2 < shared * outer) & (shared > 0))
    claimed = np.mean((top**2 < independent * outer) & (independent > 0))
    assert truth == pytest.approx(0.140, abs=0.005)
    assert claimed == pytest.approx(0.176, abs=0.005)
    assert not theorem(*parameters).applies


def test_where_everything_may_be_negative_the_sound_bound_pays_for_it():
    # min Z < 0 and X_out < 0 together make phi negative without H.
    result = theorem(30, 0.05, 0.05, 2.0, 0.5)
    top, _, low, outer = draw((30, 0.05, 0.05, 2.0, 0.5), 20_000, seed=6)
    assert np.mean((top**2 < low * outer) & (low <= 0)) > 0
    assert result.sound == 0


def test_truncated_moments_of_the_maximum():
    # E[(max Y)^k; max Y < 0] = P[max Y < 0] k! (-d / n)^k, on which the sound bound rests.
    n, theta, d = 2, 0.2, 0.2
    top = theta + np.random.default_rng(7).laplace(scale=d, size=(400_000, n)).max(axis=1)
    negative = (0.5 * math.exp(-theta / d)) ** n
    assert np.mean(top < 0) == pytest.approx(negative, abs=5 * math.sqrt(negative / 400_000))
    for k in (2, 4):
        drawn = np.where(top < 0, top, 0.0) ** k
        expected = negative * math.factorial(k) * (d / n) ** k
        assert abs(drawn.mean() - expected) < 5 * drawn.std() / math.sqrt(len(drawn))


def laplace(x):
    """Density and distribution function of the standard Laplace law."""
    tail = 0.5 * math.exp(-abs(x))
    return tail, tail if x < 0 else 1 - tail


@pytest.mark.parametrize(
    "parameters",
    [
        (1, 0.05, 0.05, 9.0, 0.2),  # max Y < 0 is common
        (3, 0.30, 0.30, 4.00, 0.12),
        (1, 0.28, 0.28, 0.80, 0.2),  # min Z < 0 and X < 0 together are not rare
        (2, 0.30, 0.30, 1.40, 0.15),
    ],
)
def test_the_sound_bound_by_quadrature(parameters):
    n, low, high, out, d = parameters

    def moment_of_max(k):
        def integrand(x):
            density, below = laplace(x)
            return max(high + d * x, 0.0) ** k * n * density * below ** (n - 1)

        breaks = sorted({-high / d, 0.0})
        return sum(quad(integrand, a, b, epsabs=0)[0] for a, b in zip(breaks, [*breaks[1:], 60.0]))

    def moment_of_min(k):
        def integrand(x):
            density, below = laplace(x)
            return (low + d * x) ** k * n * density * (1 - below) ** (n - 1)

        return quad(integrand, -60, 0, epsabs=1e-15)[0] + quad(integrand, 0, 60, epsabs=1e-15)[0]

    mean = moment_of_max(2) - moment_of_min(1) * out
    variance = moment_of_max(4) - moment_of_max(2) ** 2
    variance += moment_of_min(2) * (out**2 + 2 * d**2) - (moment_of_min(1) * out) ** 2
    all_positive = (1 - laplace(-low / d)[1]) ** n
    expected = mean**2 / (variance + mean**2) - (1 - all_positive) * laplace(-out / d)[1]
    assert mean < 0 < expected
    assert theorem(*parameters).sound == pytest.approx(expected, rel=1e-7)


def test_moments_to_a_million_edges():
    for n in (10**3, 10**6):
        result = trade_off(n, theta_min=0.5, theta_max=0.5, theta_out=1.0, noise_scale=1e-3)
        m = laplace_order_moments(n, n, 4)
        powers = [
            sum(math.comb(k, j) * 0.5 ** (k - j) * 1e-3**j * m[j] for j in range(k + 1))
            for k in range(5)
        ]
        low, square = 0.5 - 1e-3 * m[1], 0.25 - 1e-3 * m[1] + 1e-6 * m[2]
        mean = powers[2] - low
        second = powers[4] + (1 + 2e-6) * square - 2 * powers[2] * low
        assert result.mean == pytest.approx(mean, rel=1e-12)
        assert result.variance == pytest.approx(second - mean**2, rel=1e-7)
        assert result.sound > 0.98


@settings(max_examples=100)
@given(
    st.integers(1, 60),
    st.floats(0.01, 1.0),
    st.floats(1.0, 3.0),
    st.floats(0.1, 10.0),
    st.floats(1e-4, 1.0),
)
def test_bounds_are_probabilities_and_zero_without_the_precondition(n, low, ratio, out, scale):
    result = theorem(n, low, low * ratio, out, scale)
    assert 0 <= result.corrected < 1
    assert 0 <= result.sound < 1
    assert result.variance > 0
    if not result.applies:
        assert result.corrected == 0
    else:
        assert result.theta_max**2 < result.theta_min * result.theta_out * (1 + 1e-12)


def test_errors():
    good = {"theta_min": 0.1, "theta_max": 0.2, "theta_out": 0.5, "noise_scale": 0.01}
    for wrong, words in [
        ({"theta_min": 0.3}, "no larger than theta_max"),
        ({"theta_min": -0.1}, "raise the shift"),
        ({"noise_scale": 0.0}, "noise_scale must be positive"),
        ({"noise_scale": math.nan}, "noise_scale must be positive"),
    ]:
        with pytest.raises(UsageError, match=words):
            trade_off(3, **{**good, **wrong})
    with pytest.raises(UsageError, match="at least 1 edge, not 0"):
        trade_off(0, **good)


def test_no_weight_in_messages():
    with pytest.raises(UsageError) as error:
        trade_off(1, theta_min=-0.631, theta_max=-0.631, theta_out=0.6, noise_scale=0.01)
    assert "631" not in str(error.value)
