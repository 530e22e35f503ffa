"""Scales and bounds that can be computed by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ptclust.privacy import Budget, Noise, Sensitivity
from ptclust.privacy.gaussian_curve import Steps, joint_delta, lattice_delta, square_after
from ptclust.privacy.noise import CUBE, GAUSSIAN, LAPLACE, least_noise, noise_of_scale, spent_by

LINF = Sensitivity(linf=0.001)


def test_scales() -> None:
    cube = CUBE.calibrate(LINF, 100, 0.5)
    assert LAPLACE.calibrate(LINF, 100, 0.5).scale == pytest.approx(0.2, abs=1e-6)
    assert GAUSSIAN.calibrate(LINF, 100, 0.5).scale == pytest.approx(0.01, abs=1e-6)
    assert cube.scale == pytest.approx(0.002, abs=1e-6)
    assert cube.standard_deviation == pytest.approx(0.117, abs=5e-4)  # of Laplace noise 0.283
    alone = GAUSSIAN.calibrate_alone(Sensitivity(l2=1.0), 10, Budget.approximate(1, 1e-6))
    assert alone.scale == pytest.approx(4.225, abs=5e-4)
    assert Noise("gaussian", scale=2.0, granularity=-40, n_values=3).standard_deviation == 2.0


def test_the_least_noise_of_a_budget() -> None:
    few = Sensitivity(linf=0.001, l1=0.01)
    assert least_noise(LINF, 100, Budget.pure(1)).distribution == "cube"
    assert least_noise(few, 100, Budget.pure(1)).distribution == "laplace"
    assert str(spent_by(noise_of_scale(2.0, 100), Sensitivity(linf=1.0))) == "epsilon = 50"


def test_bounds_of_the_curve() -> None:
    widened = square_after(Fraction("0.03"), Steps(100, Fraction("0.03")))
    assert widened is not None
    assert round(float(widened), 5) == 0.05263  # 0.03 + 100 v is 0.0525
    delta = lattice_delta(Fraction(2**40), Fraction("4.23") * 2**40, 1000, Fraction(1))
    assert f"{float(delta):.2e}" == "9.74e-07"
    one = lattice_delta(Fraction(2**38), Fraction(2**40), 9, Fraction(1))
    assert joint_delta([Fraction(1, 128)] * 4, Fraction(2**40), 9, Fraction(1)) == one
