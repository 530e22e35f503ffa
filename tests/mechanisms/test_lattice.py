"""Noise: as much as the proof asks for, no more, and without a trace of the input."""

from __future__ import annotations

import math
import traceback
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest, kstest

from ptclust.errors import PtclustError, UsageError, WeightError
from ptclust.mechanisms.lattice import add_noise
from ptclust.privacy import Budget, Noise, RandomStream, Sensitivity
from ptclust.privacy.noise import gaussian_noise, laplace_noise, noise_of_scale, spent_by

ALPHA = 1e-6
N_DRAWS = 20_000
#: The names that add_noise sees. (With doctests, pytest may import a module twice: this is the one
#: in use.)
INSIDE = add_noise.__globals__
CALIBRATE: dict[str, Any] = {"laplace": laplace_noise, "gaussian": gaussian_noise}


def is_distributed(draws: NDArray[np.float64], distribution: str, scale: float) -> bool:
    """Whether a Kolmogorov-Smirnov test accepts the claimed distribution."""
    name = {"laplace": "laplace", "gaussian": "norm"}[distribution]
    return bool(kstest(draws, name, args=(0.0, scale)).pvalue > ALPHA)


@pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
@pytest.mark.parametrize("stream", [None, RandomStream.seeded(1)], ids=["opendp", "numpy"])
def test_the_noise_has_the_claimed_distribution(
    distribution: str, stream: RandomStream | None
) -> None:
    noise = CALIBRATE[distribution](Sensitivity(linf=1e-3), N_DRAWS, Fraction(1, 3))
    values = np.linspace(-5, 5, N_DRAWS)
    draws = add_noise(values, noise, stream=stream) - values
    assert is_distributed(draws, distribution, noise.scale)
    assert abs(draws.std() / noise.standard_deviation - 1) < 0.05
    for factor in (0.7, 1.3):
        mutant = Noise(noise.distribution, factor * noise.scale, noise.granularity, N_DRAWS)
        draws = add_noise(values, mutant, stream=stream) - values
        assert is_distributed(draws, distribution, mutant.scale)
        assert not is_distributed(draws, distribution, noise.scale)


@pytest.mark.parametrize("n", [1, 99, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 3), Fraction(50)])
def test_the_paper_s_relation_costs_n_times_mu(n: int, epsilon: Fraction) -> None:
    scale = laplace_noise(Sensitivity(linf=1e-3), n, epsilon).scale
    assert 0 <= scale / (n * 1e-3 / epsilon) - 1 < 1e-6
    scale = gaussian_noise(Sensitivity(linf=1e-3), n, epsilon).scale
    assert 0 <= scale / (math.sqrt(n) * 1e-3 / math.sqrt(2 * epsilon)) - 1 < 1e-6


sensitivities = st.sampled_from(["l1", "l2", "linf"]).flatmap(
    lambda norm: st.floats(1e-9, 1e9).map(lambda bound: Sensitivity(**{norm: bound}))
)


@given(sensitivities, st.integers(1, 10**7), st.floats(1e-6, 1e3))
@settings(max_examples=60)
def test_calibration_is_sound_and_tight(sensitivity: Sensitivity, n: int, amount: float) -> None:
    for noise, budget, least in (
        (
            laplace_noise(sensitivity, n, amount),
            Budget.pure(amount),
            sensitivity.l1_of(n) / amount,
        ),
        (
            gaussian_noise(sensitivity, n, amount),
            Budget.zcdp(amount),
            sensitivity.l2_of(n) / math.sqrt(2 * amount),
        ),
    ):
        spent = spent_by(noise, sensitivity)
        assert spent is not None
        assert spent.fits_in(budget)
        # Scales are below 2^56 steps: where a budget is tiny, rounding n values costs more.
        assert -1e-15 < noise.scale / least - 1 < 1e-6 + n / amount * 2.0**-53


def test_the_lattice_is_accounted_for() -> None:
    # By hand: (d + n 2^k) / b and (d + sqrt(n) 2^k)^2 / (2 sigma^2).
    laplace = spent_by(Noise("laplace", 2.0, -2, 16), Sensitivity(l1=1.0))
    gaussian = spent_by(Noise("gaussian", 2.0, -2, 16), Sensitivity(l2=1.0))
    assert laplace is not None
    assert gaussian is not None
    assert float(laplace.epsilon) == pytest.approx((1 + 16 / 4) / 2)
    assert float(gaussian.rho or 0) == pytest.approx((1 + 4 / 4) ** 2 / (2 * 4))


def test_a_published_scale_is_kept_and_its_price_told() -> None:
    noise = noise_of_scale(0.1, 99)
    assert noise.scale == 0.1
    spent = spent_by(noise, Sensitivity(linf=0.1))
    assert spent is not None
    assert float(spent.epsilon) == pytest.approx(99.0)
    for scale in (0, -1, math.nan, math.inf):
        with pytest.raises(UsageError, match="scale"):
            noise_of_scale(scale, 3)


def fine_grained_near_zero(outputs: NDArray[np.float64]) -> int:
    """Count outputs near 0 that are no multiple of 2^-53: none from 1 in doubles, many from 0.

    If 1 + noise is within 1/2 of 0, the noise lies in (-1.5, -0.5), so it is a multiple of 2^-53
    and the sum is exact. From 0 the output is the noise itself, with all its digits (after Mironov
    2012).
    """
    near = outputs[np.abs(outputs) < 0.5]
    steps = near * 2.0**53
    return int((steps != np.round(steps)).sum())


def test_the_precision_attack_breaks_numpy_and_not_this() -> None:
    generator = np.random.default_rng(0)
    from_zero = 0.0 + generator.laplace(0.0, 1.0, N_DRAWS)
    from_one = 1.0 + generator.laplace(0.0, 1.0, N_DRAWS)
    assert fine_grained_near_zero(from_zero) > 3000
    assert fine_grained_near_zero(from_one) == 0

    noise = laplace_noise(Sensitivity(l1=1.0), N_DRAWS, 1)
    for value in (0.0, 1.0, 1 / 3, math.pi):
        outputs = add_noise(np.full(N_DRAWS, value), noise)
        assert fine_grained_near_zero(outputs) == 0
        steps = outputs * 2.0**-noise.granularity
        assert (steps == np.round(steps)).all()  # on the lattice, whatever the input
        odd = int((steps % 2).sum())
        assert binomtest(odd, N_DRAWS).pvalue > ALPHA  # and on all of it


def test_order_progress_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INSIDE, "_CHUNK", 10)
    values = np.arange(47.0)
    done: list[int] = []
    noisy = add_noise(values, noise_of_scale(1e-9, 47), sampler="opendp", progress=done.append)
    np.testing.assert_allclose(noisy, values, atol=1e-6)
    assert (noisy != values).any()
    assert done == [10, 20, 30, 40, 47]
    done.clear()
    add_noise(values, noise_of_scale(1, 47), stream=RandomStream.seeded(0), progress=done.append)
    assert done == [47]


def test_ctrl_c_cancels_the_chunks_that_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    original = INSIDE["_noisy_chunk"]

    def counted(chunk: NDArray[np.float64], noise: Noise) -> NDArray[np.float64]:
        started.append(1)
        return original(chunk, noise)

    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(INSIDE, "_CHUNK", 500)
    monkeypatch.setitem(INSIDE, "_noisy_chunk", counted)
    with pytest.raises(KeyboardInterrupt):
        add_noise(np.zeros(50_000), noise_of_scale(1.0, 50_000), progress=interrupt)
    assert len(started) < 100


def test_a_seed_repeats_the_noise_and_a_secure_stream_never_does() -> None:
    noise = gaussian_noise(Sensitivity(l2=1), 5, 1)
    seeded = [add_noise(np.zeros(5), noise, stream=RandomStream.seeded(4)) for _ in range(2)]
    np.testing.assert_array_equal(*seeded)
    secure = [add_noise(np.zeros(5), noise, stream=RandomStream.secure()) for _ in range(2)]
    assert (secure[0] != secure[1]).all()
    steps = secure[0] * 2.0**-noise.granularity
    assert (steps == np.round(steps)).all()


@pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
def test_no_values_no_noise(distribution: str) -> None:
    noise = CALIBRATE[distribution](Sensitivity(linf=1), 0, 1)
    assert noise.standard_deviation == 0.0
    assert spent_by(noise, Sensitivity(linf=1)) is None
    assert add_noise([], noise).shape == (0,)


@pytest.mark.parametrize("value", [1e17, 1e300, -1.7e308, np.finfo(float).max, 5e-324])
def test_magnitudes_far_from_the_lattice_are_rounded_not_refused(value: float) -> None:
    # An error here would depend on the private value. The noise is added exactly and only the sum
    # is rounded.
    noisy = add_noise(np.full(9, value), noise_of_scale(1.0, 9))
    assert np.isfinite(noisy).all()
    np.testing.assert_allclose(noisy, value, rtol=1e-15, atol=60)


SECRET = 123.456789


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_refused_unseen(broken: float) -> None:
    with pytest.raises(WeightError, match="not finite") as refused:
        add_noise([SECRET, broken], noise_of_scale(1.0, 2))
    assert "123.4" not in "".join(traceback.format_exception(refused.value))


def test_values_that_are_no_numbers_are_refused_unseen() -> None:
    with pytest.raises(WeightError, match="not all numbers") as refused:
        add_noise([f"{SECRET} EUR"], noise_of_scale(1.0, 1))
    assert "123.4" not in "".join(traceback.format_exception(refused.value))
    assert refused.value.__context__ is None


def test_a_failure_of_opendp_shows_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> Any:
        def measurement(values: NDArray[np.float64]) -> Any:
            raise RuntimeError(f"cannot use {values}")

        return measurement

    monkeypatch.setitem(INSIDE, "lattice_measurement", fail)
    with pytest.raises(PtclustError, match="Nothing was released") as refused:
        add_noise([SECRET], noise_of_scale(1.0, 1), sampler="opendp")
    assert "123.4" not in "".join(traceback.format_exception(refused.value))


def test_noise_for_another_number_of_values_is_refused() -> None:
    for values in (np.zeros(3), np.zeros((2, 1)), np.zeros(())):
        with pytest.raises(UsageError, match="calibrated for 2 values"):
            add_noise(values, noise_of_scale(1.0, 2))


def test_impossible_noise_is_refused() -> None:
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(UsageError, match="scale"):
            Noise("laplace", scale, -40, 1)
    with pytest.raises(UsageError, match="cauchy"):
        Noise("cauchy", 1.0, -40, 1)
    with pytest.raises(UsageError, match="number of values"):
        laplace_noise(Sensitivity(linf=1), 1.5, 1)
    with pytest.raises(UsageError, match="0 or more"):
        laplace_noise(Sensitivity(linf=1), -1, 1)
    with pytest.raises(UsageError, match="epsilon"):
        laplace_noise(Sensitivity(linf=1), 1, 0)
    with pytest.raises(UsageError, match="rho"):
        gaussian_noise(Sensitivity(linf=1), 1, math.nan)
    with pytest.raises(UsageError, match="rescale"):
        laplace_noise(Sensitivity(linf=1e308), 100, 1)
    with pytest.raises(UsageError, match="rescale"):
        laplace_noise(Sensitivity(linf=1e300), 1, 1e-20)


def test_noise_is_plain_data() -> None:
    noise = Noise("gaussian", 2.0, -40, 3)
    assert noise.to_dict() == {
        "distribution": "gaussian",
        "scale": 2.0,
        "granularity": -40,
        "n_values": 3,
    }
    assert Noise("laplace", 2.0, -40, 3).standard_deviation == pytest.approx(math.sqrt(8))


def test_read_only_values_are_taken():
    values = np.zeros(5)
    values.setflags(write=False)
    assert len(add_noise(values, laplace_noise(Sensitivity(l1=1.0), 5, 1))) == 5
