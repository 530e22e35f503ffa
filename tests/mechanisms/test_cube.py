"""The cube mechanism: its one hard draw, its calibration, and its way through a release."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from ptclust import PTClust, Release, Sensitivity, Topology, plan
from ptclust.audit.controls import unsafe_rounding
from ptclust.audit.noise import CUBE_CHANGE, cube_noise_of, worst_cube
from ptclust.datasets import planted_graph
from ptclust.errors import FileError, UsageError
from ptclust.mechanisms import MECHANISMS
from ptclust.mechanisms.lattice import add_noise, sampler_of
from ptclust.privacy import Budget, Noise, RandomStream
from ptclust.privacy.noise import _lattice_kernel as kernel
from ptclust.privacy.noise import cube_noise, laplace_noise, least_noise, spent_by
from ptclust.privacy.noise.exact import CubeSampler, UniformSampler
from ptclust.theory import probability_of_no_larger_noise
from ptclust.theory.bounds import expected_perturbed_tree_excess, perturbed_tree_excess
from tests.mechanisms.exactness import Fed, reference_exp

ALPHA = 1e-6


# The half-width


def weight(n: int, t: Fraction, g: int, mode: int) -> Fraction:
    """(2 g + 1)^n e^(-g / t), relative to the mode."""
    power = Fraction(2 * g + 1, 2 * mode + 1) ** n
    if g >= mode:
        return power * reference_exp((g - mode) / t)
    return power / reference_exp((mode - g) / t)


@pytest.mark.parametrize(
    ("n", "t"), [(1, "1"), (1, "1/3"), (2, "5"), (3, "0.4"), (17, "100/7"), (400, "3")]
)
def test_every_half_width_comes_out_with_its_weight(n: int, t: str) -> None:
    sampler = CubeSampler(n, Fraction(t))
    mode, size = sampler.mode, 1 << sampler.group_bits
    assert all(weight(n, sampler.t, g, mode) <= 1 for g in range(max(0, mode - 50), mode + 50))
    for g in {0, 1, mode, mode + 1, max(0, mode - 1), mode // 2, mode + size, mode + 9 * size}:
        away = g - mode if g >= mode else mode - 1 - g
        group = away // size
        low, high = sampler._acceptance(g, group, 80)
        exact = 2**group * weight(n, sampler.t, g, mode)
        assert low * (1 - Fraction(1, 2**150)) <= exact <= high * (1 + Fraction(1, 2**150))
        assert high <= 1 + Fraction(1, 2**150)  # what is proposed dominates
        assert (high - low) <= high / 10**60


def log_weights(n: int, t: float, sizes: Any) -> Any:
    return n * np.log(2 * sizes + 1) - sizes / t


@pytest.mark.parametrize(("n", "t"), [(1, "1"), (2, "5"), (40, "3/2")])
def test_half_widths_by_chi_square(n: int, t: str) -> None:
    sampler, stream = CubeSampler(n, Fraction(t)), RandomStream.seeded(n)
    draws = np.array([sampler.draw_half_width(stream) for _ in range(800)])
    sizes = np.arange(2000)

    def fits(n: int, t: float) -> bool:
        logs = log_weights(n, t, sizes)
        expected = np.exp(logs - logs.max())
        expected *= len(draws) / expected.sum()
        often = expected >= 5
        counts = np.bincount(draws, minlength=len(sizes))
        seen = [*counts[often], len(draws) - counts[often].sum()]
        wanted = [*expected[often], expected[~often].sum()]
        return bool(chisquare(seen, wanted, sum_check=False).pvalue > ALPHA)

    assert fits(n, float(Fraction(t)))
    assert not fits(n, 1.5 * float(Fraction(t)))
    assert not fits(2 * n + 1, float(Fraction(t)))


def test_a_half_width_of_ten_million_values_is_a_gamma_variable() -> None:
    n, t = 10**7, Fraction(2**40 + 1, 2**15)
    sampler, stream = CubeSampler(n, t), RandomStream.seeded(4)
    draws = np.array([sampler.draw_half_width(stream) for _ in range(300)]) / float(t)
    assert kstest(draws, "gamma", args=(n + 1,)).pvalue > ALPHA
    assert kstest(draws + 3 * math.sqrt(n), "gamma", args=(n + 1,)).pvalue < ALPHA


# The values


@pytest.mark.parametrize("half_width", [0, 1, 2, 5, 127, 128])
def test_values_are_uniform_up_to_the_half_width(half_width: int) -> None:
    noise = np.empty(60_000, dtype=np.int64)
    assert UniformSampler(half_width).draw(RandomStream.seeded(1), noise) == {}
    counts = np.bincount(noise + half_width, minlength=2 * half_width + 1)
    assert len(counts) == 2 * half_width + 1
    if half_width:
        assert chisquare(counts).pvalue > ALPHA


def test_all_words_give_every_value_as_often() -> None:
    words = np.arange(2**13, dtype=np.uint64)
    for half_width in (1, 3, 60, 1000):
        noise = np.empty(len(words), dtype=np.int64)
        drawn = kernel.draw_uniform(words, half_width, noise)
        counts = np.bincount(noise[:drawn] + half_width)
        assert len(counts) == 2 * half_width + 1
        assert set(counts.tolist()) == {2**13 >> (2 * half_width).bit_length()}


def test_a_half_width_that_no_int64_holds() -> None:
    half_width = 2**70 + 5
    noise = np.zeros(4000, dtype=np.int64)
    giants = UniformSampler(half_width).draw(RandomStream.seeded(1), noise)
    assert sorted(giants) == list(range(4000))
    assert max(map(abs, giants.values())) <= half_width
    assert (
        kstest(
            np.array([value / half_width for value in giants.values()]), "uniform", args=(-1, 2)
        ).pvalue
        > ALPHA
    )
    # Zeros in the words of the groups take the half-width as far as one likes.
    sampler = CubeSampler(1, Fraction(2**40))
    far = Fed([0, 0, 1 << 8, *[0] * 30])
    assert sampler.draw_half_width(far) > sampler.mode + (120 << sampler.group_bits)


def test_the_joint_distribution_falls_with_the_largest_value() -> None:
    t, count = 2.5, 2500
    sampler, stream = CubeSampler(2, Fraction(t)), RandomStream.seeded(9)
    pairs = np.empty((count, 2), dtype=np.int64)
    for pair in pairs:
        UniformSampler(sampler.draw_half_width(stream)).draw(stream, pair)
    sizes = np.abs(pairs).max(axis=1)
    rings = np.arange(200)
    masses = np.where(rings == 0, 1, 8 * rings) * np.exp(-rings / t)
    wanted = masses / masses.sum() * count
    often = wanted >= 5
    seen = np.bincount(sizes, minlength=200)
    assert (
        chisquare(
            [*seen[often], count - seen[often].sum()],
            [*wanted[often], wanted[~often].sum()],
            sum_check=False,
        ).pvalue
        > ALPHA
    )
    # Within a ring all pairs are alike.
    ring = pairs[sizes == 2] + 2
    cells = np.bincount(5 * ring[:, 0] + ring[:, 1], minlength=25)
    assert chisquare(cells[cells > 0]).pvalue > ALPHA
    assert (cells > 0).sum() == 16


# Calibration


@given(st.floats(1e-9, 1e9), st.integers(1, 10**7), st.floats(1e-2, 1e3))  # wider: see below
@settings(max_examples=60)
def test_calibration_is_sound_and_tight(linf: float, n: int, epsilon: float) -> None:
    sensitivity = Sensitivity(linf=linf)
    noise = cube_noise(sensitivity, n, epsilon)
    spent = spent_by(noise, sensitivity)
    assert spent is not None
    assert spent.fits_in(Budget.pure(epsilon))
    step = Fraction(2) ** noise.granularity
    assert (Fraction(linf) + step) / Fraction(noise.scale) <= Fraction(epsilon)
    assert -1e-15 < noise.scale / (linf / epsilon) - 1 < 1e-6
    assert n * Fraction(noise.scale) / step >= 2**39  # as fine as if it were continuous
    laplace = laplace_noise(sensitivity, n, epsilon)
    ratio = laplace.standard_deviation / noise.standard_deviation
    assert ratio == pytest.approx(math.sqrt(6 * n**2 / ((n + 1) * (n + 2))), rel=1e-5)


def test_less_noise_is_caught_by_what_is_spent() -> None:
    sensitivity = Sensitivity(linf=1.0)
    noise = cube_noise(sensitivity, 50, 1)
    less = spent_by(replace(noise, scale=noise.scale * 0.999), sensitivity)
    assert less is not None
    assert not less.fits_in(Budget.pure(1))


def test_noise_too_wide_for_its_lattice_is_refused() -> None:
    with pytest.raises(UsageError, match="larger epsilon"):
        cube_noise(Sensitivity(linf=1.0), 10**7, 1e-12)
    # A coarser lattice costs little: a step is far below the change.
    few = least_noise(Sensitivity(linf=1.0), 10**7, Budget.pure(1e-6))
    assert few.distribution == "cube"
    assert few.scale == pytest.approx(1e6, rel=1e-3)


NORMS: list[tuple[dict[str, float], int, str]] = [
    ({"linf": 1.0}, 50, "cube"),
    ({"linf": 1.0}, 1, "laplace"),  # the same distribution
    ({"l1": 1.0}, 50, "laplace"),
    ({"l2": 1.0}, 50, "laplace"),
    ({"l1": 30.0, "linf": 1.0}, 50, "cube"),
    ({"l1": 10.0, "linf": 1.0}, 50, "laplace"),
    ({"l2": 6.0, "linf": 1.0}, 50, "cube"),
]


@pytest.mark.parametrize(("bounds", "n", "least"), NORMS)
def test_of_all_norms_the_least_noise_is_taken(bounds: Any, n: int, least: str) -> None:
    sensitivity = Sensitivity(**bounds)
    noise = least_noise(sensitivity, n, Budget.pure(1))
    assert noise.distribution == least
    path = Topology(range(n), range(1, n + 1))
    planned = plan(path, epsilon=1, sensitivity=sensitivity, clusterer="communities")
    assert planned.chosen.mechanism == least
    kruskal = plan(path, epsilon=1, sensitivity=sensitivity, mechanism="kruskal").chosen.weights
    assert kruskal.distribution == least


# Noise as it is added


def test_noise_is_uniform_within_a_gamma_variable() -> None:
    n = 20_000
    noise = cube_noise(Sensitivity(linf=1e-3), n, 1)
    values = np.linspace(-5, 5, n)
    for stream in (None, RandomStream.seeded(1)):
        drawn = add_noise(values, noise, stream=stream) - values
        half_width = np.abs(drawn).max()
        assert abs(half_width / (n * noise.scale) - 1) < 6 / math.sqrt(n)
        assert kstest(drawn / half_width, "uniform", args=(-1, 2)).pvalue > ALPHA
        assert abs(drawn.std() / noise.standard_deviation - 1) < 0.05
    steps = add_noise(values, noise) * 2.0**-noise.granularity
    assert (steps == np.round(steps)).all()


def test_half_widths_differ_from_call_to_call() -> None:
    noise = cube_noise(Sensitivity(linf=1.0), 2, 1)
    sizes = np.array([np.abs(add_noise(np.zeros(2), noise)).max() for _ in range(150)])
    assert kstest(sizes / noise.scale, "gamma", args=(2,)).pvalue > ALPHA
    assert kstest(sizes / noise.scale, "gamma", args=(4,)).pvalue < ALPHA
    assert add_noise([], cube_noise(Sensitivity(linf=1.0), 0, 1)).shape == (0,)


def test_the_log_ratio_is_that_of_the_joint_density() -> None:
    noise = Noise("cube", 2.0, -40, 3)
    noisy = np.array([[0.0, 5.0, -1.0], [9.0, np.nan, 0.0]])
    weights, neighbour = np.zeros(3), np.array([1.0, 1.0, 0.0])
    assert noise.log_ratio(noisy, weights, neighbour).tolist() == [(4 - 5) / 2, (8 - 9) / 2]


def test_opendp_has_no_cube_noise() -> None:
    noise = cube_noise(Sensitivity(linf=1.0), 5, 1)
    assert sampler_of(noise) == "ptclust, exact on the lattice"
    with pytest.raises(UsageError, match="OpenDP draws no cube noise"):
        add_noise(np.zeros(5), noise, sampler="opendp")
    asked: dict[str, Any] = {"epsilon": 1, "sensitivity": Sensitivity(linf=1.0)}
    path = Topology(range(50), range(1, 51))
    assert plan(path, **asked, sampler="opendp").chosen.mechanism == "laplace"
    with pytest.raises(UsageError, match="mechanism='laplace'"):
        plan(path, **asked, mechanism="cube", sampler="opendp")


# Releases


def test_a_release_says_what_it_spends_and_is_checked(tmp_path: Any) -> None:
    planted = planted_graph("moons", 100, seed=3)
    model = PTClust(epsilon=5, sensitivity=Sensitivity(linf=1e-4), privacy_unit="one").fit(
        planted.graph
    )
    release = model.release_
    assert release.published.mechanism == "cube"
    (use,) = release.statement.mechanisms
    assert (use.name, use.noise, use.share_of) == ("Cube mechanism", "Cube", "epsilon")
    assert "sampler: ptclust" in use.reference
    path = tmp_path / "release.json"
    release.save(path)
    again = Release.load(path)
    assert again.weight_noise == release.weight_noise
    quieter = replace(release.published, noise=replace(release.weight_noise, scale=1e-9))
    altered = tmp_path / "altered.json"
    Release(published=quieter, statement=release.statement).save(altered)
    with pytest.raises(FileError, match="scale"):
        Release.load(altered)


def test_trees_have_it_too() -> None:
    graph = planted_graph("moons", 100, seed=3).graph
    for mechanism in ("kruskal", "pamst"):
        asked: dict[str, Any] = {"epsilon": 5, "sensitivity": Sensitivity(linf=1e-4)}
        model = PTClust(**asked, mechanism=mechanism, random_state=1).fit(graph)
        assert model.release_.weight_noise.distribution == "cube"
        assert model.release_.weight_noise.n_values == 99
    assert MECHANISMS["cube"].proof == "docs/proofs/cube.md"


def test_half_of_the_laplace_noise_s_epsilon_shows_the_clusters() -> None:
    planted = planted_graph("circles", 300, seed=5)
    for mechanism, found in (("cube", True), ("laplace", False)):
        model = PTClust(
            epsilon=1,
            sensitivity=Sensitivity(linf=5e-4),
            mechanism=mechanism,
            clusterer="communities",
            random_state=3,
        ).fit(planted.graph)
        agree = (model.labels_ == model.labels_[0]) == (planted.truth == planted.truth[0])
        assert (agree.mean() > 0.97) == found


# Theory and audit


def test_the_largest_noise_is_a_gamma_variable() -> None:
    noise = Noise("cube", 0.5, -40, 6)
    random = np.random.default_rng(1)
    half_widths = 0.5 * random.gamma(7, size=40_000)
    largest = half_widths * random.uniform(0, 1, (6, 40_000)).max(axis=0)
    p = probability_of_no_larger_noise(3.0, 6, scale=0.5, noise="cube")
    assert abs((largest <= 3.0).mean() - p) < 0.01
    assert expected_perturbed_tree_excess(noise, 3) == pytest.approx(
        2 * 3 * largest.mean(), rel=0.02
    )
    beyond = perturbed_tree_excess(noise, 3, 0.05) / 6
    assert (largest > beyond).mean() == pytest.approx(0.05, abs=0.005)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_worst_case_is_the_claim_and_no_more(n: int) -> None:
    def claim(noise: Noise) -> float:
        spent = spent_by(noise, CUBE_CHANGE)
        assert spent is not None
        return float(spent.epsilon)

    noise = cube_noise_of(n)
    worst = worst_cube(noise).loss
    assert round(worst / claim(noise), 4) == 1.0
    assert worst <= claim(noise)
    away = worst_cube(noise, unsafe_rounding)  # three steps and a bit become five
    assert away.loss == pytest.approx(5 / 4, rel=1e-5)
    unpaid = cube_noise_of(n, rounding=0)
    assert worst_cube(unpaid).loss > 1.3
    assert claim(unpaid) > 1.3  # and a release would say so
