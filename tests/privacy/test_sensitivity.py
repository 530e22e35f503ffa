"""The neighbouring relation: declared bounds, and what follows from them."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptclust.audit.search import farthest
from ptclust.errors import UsageError
from ptclust.privacy import Sensitivity

bounds = st.none() | st.floats(1e-12, 1e12)
declared = (
    st.tuples(bounds, bounds, bounds)
    .filter(any)
    .map(lambda three: Sensitivity(l1=three[0], l2=three[1], linf=three[2]))
)


def exactly_above(value: float, square: Fraction) -> bool:
    """Whether ``value`` is the smallest float whose square is at least ``square``."""
    return Fraction(value) ** 2 >= square > Fraction(math.nextafter(value, 0)) ** 2


@given(declared, st.integers(1, 10**9))
def test_bounds_are_the_formulas_rounded_up(sensitivity: Sensitivity, k: int) -> None:
    d1, d2, d_inf = (
        None if bound is None else Fraction(bound)
        for bound in (sensitivity.l1, sensitivity.l2, sensitivity.linf)
    )
    l1_squares, l2_squares, spread_squares = [], [], []
    if d1 is not None:
        l1_squares.append(d1**2)
        l2_squares.append(d1**2)
        spread_squares.append(d1**2)
    if d2 is not None:
        l1_squares.append(k * d2**2)
        l2_squares.append(d2**2)
        spread_squares.append(2 * d2**2)
    if d_inf is not None:
        l1_squares.append(k**2 * d_inf**2)
        l2_squares.append(k * d_inf**2)
        spread_squares.append(4 * d_inf**2)
    if d1 is not None and d_inf is not None:
        whole = min(k, d1 // d_inf)
        l2_squares.append(
            whole * d_inf**2 + (min(k, whole + 1) - whole) * (d1 - whole * d_inf) ** 2
        )
        assert l2_squares[-1] <= d1 * d_inf
    assert exactly_above(sensitivity.l1_of(k), min(l1_squares))
    assert exactly_above(sensitivity.l2_of(k), min(l2_squares))
    assert exactly_above(sensitivity.spread, min(spread_squares))
    assert sensitivity.largest_change == min(b for b in (d1, d2, d_inf) if b is not None)


@given(declared, st.lists(st.floats(-1, 1), min_size=1, max_size=8).filter(any))
def test_no_change_within_the_declaration_exceeds_a_bound(
    sensitivity: Sensitivity, direction: list[float]
) -> None:
    change = [Fraction(x) for x in direction]
    shrink = [
        Fraction(bound) / norm
        for bound, norm in (
            (sensitivity.l1, sum(map(abs, change))),
            (sensitivity.linf, max(map(abs, change))),
        )
        if bound is not None
    ]
    if sensitivity.l2 is not None:
        # A rational at or above the norm keeps the scaled change within the declared l2.
        square = sum(x**2 for x in change)
        shrink.append(Fraction(sensitivity.l2) / _rational_root_above(square))
    x = [min(shrink) * value for value in change]
    k = len(x)
    assert sum(map(abs, x)) <= sensitivity.l1_of(k)
    assert sum(value**2 for value in x) <= Fraction(sensitivity.l2_of(k)) ** 2
    assert max(map(abs, x)) <= sensitivity.largest_change
    assert max([*x, 0]) - min([*x, 0]) <= sensitivity.spread
    for n in range(1, k + 1):
        lowest = sorted(x)[:n]  # no n edges have a lower mean
        assert max([*x, 0]) - sum(lowest) / n <= sensitivity.mean_spread(n)
        if n < k:
            lowest = sorted([*x, Fraction()])[:n]  # beside edges that do not change
            assert max(x) - sum(lowest) / n <= sensitivity.mean_spread(n)


small = st.floats(0.05, 20)


@given(
    st.dictionaries(st.sampled_from(["l1", "l2", "linf"]), small, min_size=1, max_size=2),
    st.integers(1, 7),
    st.integers(0, 2**32 - 1),
)  # under all three bounds the search may stop short of a corner
def test_a_change_that_the_audit_finds_reaches_every_norm(
    norms: dict[str, float], k: int, seed: int
) -> None:
    """Of all changes within combined bounds, the farthest in each norm: no bound can be less."""
    sensitivity, random = Sensitivity(**norms), np.random.default_rng(seed)
    sizes = [
        (sensitivity.l1_of(k), lambda x: np.abs(x).sum()),
        (sensitivity.l2_of(k), np.linalg.norm),
        (sensitivity.largest_change, lambda x: np.abs(x).max()),
    ]
    first = [np.eye(k)[0], np.ones(k), *(np.diag(np.ones(k)) + 1e-3 * random.normal(size=(k, k)))]
    for bound, size in sizes:
        found = []
        for direction in first:
            change = direction
            for _ in range(20):  # a norm is convex: the farthest point in its direction is farther
                change = farthest(sensitivity, change)
            found.append(size(change))
        assert max(found) == pytest.approx(bound, rel=1e-9)


two_with_linf = st.sampled_from([("l1",), ("l2",), ("linf",), ("l1", "linf"), ("l2", "linf")])


@given(two_with_linf, st.floats(1e-12, 1e12), st.floats(0.01, 100), st.integers(1, 10**6))
def test_a_change_reaches_the_spread_from_a_mean(
    norms: tuple[str, ...], bound: float, share: float, k: int
) -> None:
    """One edge rises by the first, k edges fall by the second: no bound can be less."""
    sensitivity = Sensitivity(**dict(zip(norms, (bound, share * bound))))
    d1 = math.inf if sensitivity.l1 is None else sensitivity.l1
    d2 = math.inf if sensitivity.l2 is None else sensitivity.l2
    rise = min(sensitivity.largest_change, d2 * math.sqrt(k / (k + 1)))
    falls = [sensitivity.largest_change, (d1 - rise) / k]
    falls.append(math.sqrt((d2 - rise) / k * (d2 + rise)) if d2 < math.inf else math.inf)
    fall = min(falls)
    assert rise + k * fall <= d1 * (1 + 1e-12)
    assert math.sqrt(rise**2 + k * fall**2) <= d2 * (1 + 1e-12)
    assert rise + fall == pytest.approx(sensitivity.mean_spread(k), rel=1e-12)


@given(declared, st.integers(1, 10**9))
def test_the_spread_from_a_mean_is_the_formula_rounded_up(sensitivity: Sensitivity, k: int) -> None:
    d = Fraction(sensitivity.largest_change)
    found = Fraction(sensitivity.mean_spread(k))
    slightly_less = found * (1 - Fraction(1, 2**51))

    def reaches(value: Fraction) -> bool:
        """Whether a value is no less than the least of the bounds of the lemma."""
        at_least = [value >= 2 * d]
        if sensitivity.l1 is not None:
            at_least.append(k * (value - d) >= Fraction(sensitivity.l1) - d)
        if sensitivity.l2 is not None:
            square = Fraction(sensitivity.l2) ** 2
            if d**2 * (k + 1) <= square * k:
                at_least.append(value >= d and k * (value - d) ** 2 >= square - d**2)
            else:
                at_least.append(k * value**2 >= (k + 1) * square)
        return any(at_least)

    assert reaches(found)
    assert not reaches(slightly_less)


@given(declared, st.integers(1, 10**9))
def test_the_mean_of_more_edges_is_no_farther(sensitivity: Sensitivity, k: int) -> None:
    assert sensitivity.mean_spread(1) == sensitivity.spread
    assert sensitivity.largest_change <= sensitivity.mean_spread(k + 1)
    assert sensitivity.mean_spread(k + 1) <= sensitivity.mean_spread(k) * (1 + 1e-15)


def _rational_root_above(square: Fraction) -> Fraction:
    scale = 1 << 1200
    return Fraction(math.isqrt(math.ceil(square * scale * scale)) + 1, scale)


def test_no_edges_no_change() -> None:
    sensitivity = Sensitivity(l1=1, l2=1, linf=1)
    assert sensitivity.l1_of(0) == sensitivity.l2_of(0) == sensitivity.mean_spread(0) == 0.0


@pytest.mark.parametrize("k", [-1, 1.5, "3"])
def test_a_number_of_edges_is_a_count(k: object) -> None:
    with pytest.raises(UsageError, match="number of edges"):
        Sensitivity(l1=1).l1_of(k)


@pytest.mark.parametrize(
    "value", [0, 0.0, -1, math.nan, math.inf, 1e-310, True, "0.1", 1j, [0.1], 10**400]
)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_what_is_no_bound_is_refused_with_the_value(norm: str, value: object) -> None:
    with pytest.raises(UsageError) as refused:
        Sensitivity(**{norm: value})
    assert norm in str(refused.value)
    assert repr(value) in str(refused.value)


def test_an_empty_declaration_teaches_the_norms() -> None:
    with pytest.raises(UsageError, match=r"population average.*linf=d.*one edge only.*l1=d"):
        Sensitivity()


def test_keyword_only_frozen_hashable() -> None:
    with pytest.raises(TypeError):
        Sensitivity(0.1)  # type: ignore[call-arg]
    sensitivity = Sensitivity(linf=np.float32(0.5))
    with pytest.raises(AttributeError):
        sensitivity.linf = 1.0  # type: ignore[misc]
    assert {sensitivity: 1}[Sensitivity(linf=0.5)] == 1
    assert sensitivity.l1 is None
    assert sensitivity.l2 is None
    assert type(sensitivity.linf) is float


def test_a_fraction_is_rounded_up() -> None:
    third = Sensitivity(l1=Fraction(1, 3)).l1
    assert third is not None
    assert Fraction(third) >= Fraction(1, 3)


def test_words_and_dictionary() -> None:
    sensitivity = Sensitivity(l1=2.0, linf=5e-4)
    assert "0.0005 on every edge (linf)" in sensitivity.describe()
    assert "at most 2 in total over all edges (l1)" in sensitivity.describe()
    assert "root of the sum of squares (l2)" in Sensitivity(l2=1).describe()
    assert Sensitivity.from_dict(sensitivity.to_dict()) == sensitivity
    with pytest.raises(UsageError, match="'l3'"):
        Sensitivity.from_dict({"l3": 1.0})


def test_beyond_the_largest_float_a_bound_is_infinite_not_wrong() -> None:
    assert Sensitivity(linf=1e308).l1_of(100) == math.inf


@given(st.floats(1e-300, 1e300))
def test_words_are_short_and_never_say_less_than_the_bound(bound: float) -> None:
    said = Sensitivity(linf=bound).describe()
    number = re.search(r"at most ([0-9.e+-]+)( \(rounded up\))? on", said)
    assert number is not None
    assert bound <= float(number[1]) <= bound * (1 + 2e-5)
    assert (float(number[1]) > bound) == (number[2] is not None)
    assert len(number[1]) <= 15


def test_examples() -> None:
    assert Sensitivity(l1=1.0, linf=0.25).l1_of(3) == 0.75
    assert Sensitivity(linf=0.25).l2_of(4) == 0.5
    assert Sensitivity(l1=1.0).largest_weight == 2.0**45
    assert Sensitivity(l2=1.0).mean_spread(3) ** 2 == pytest.approx(4 / 3)  # 2 if all lost the most
    assert not Sensitivity(linf=1.0).covers(Sensitivity(l1=2.0), 10)
    described = Sensitivity(l1=6.0, l2=6**0.5).describe()
    assert described == (
        "weights of neighbouring graphs differ by at most 6 in total over all edges (l1) and by at "
        "most 2.44949 (rounded up) in the root of the sum of squares (l2)"
    )
