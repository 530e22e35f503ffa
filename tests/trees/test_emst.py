"""The Euclidean spanning tree equals Kruskal's on the complete graph, edge by edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from ptclust.errors import InputError
from ptclust.trees import emst
from ptclust.trees.emst import euclidean_spanning_edges
from ptclust.trees.mst import minimum_spanning_edges

if TYPE_CHECKING:
    from numpy.typing import NDArray


def assert_is_the_tree(points: NDArray[np.float64]) -> None:
    """Compare with Kruskal on all pairs, whose distances are added up in the kernel's order."""
    all_sources, all_targets = np.triu_indices(len(points), 1)
    squares = np.zeros(len(all_sources))
    for column in points.T:
        squares += (column[all_sources] - column[all_targets]) ** 2
    expected = minimum_spanning_edges(all_sources, all_targets, squares, len(points))

    edges = euclidean_spanning_edges(points)

    assert [array.dtype.name for array in edges] == ["int64", "int64", "float64", "int64"]
    sources, targets, weights, pair_ids = edges
    np.testing.assert_array_equal(pair_ids, expected)
    np.testing.assert_array_equal(sources, all_sources[expected])
    np.testing.assert_array_equal(targets, all_targets[expected])
    np.testing.assert_array_equal(weights, np.sqrt(squares[expected]))


def assert_is_as_short_as_with_pdist(points: NDArray[np.float64]) -> None:
    distances = pdist(points)
    shortest = minimum_spanning_edges(
        *np.triu_indices(len(points), 1), distances, n_nodes=len(points)
    )
    _, _, weights, pair_ids = euclidean_spanning_edges(points)
    np.testing.assert_allclose(weights, distances[pair_ids], rtol=1e-12)
    np.testing.assert_allclose(weights.sum(), distances[shortest].sum(), rtol=1e-12)


@st.composite
def point_sets(draw: st.DrawFn) -> NDArray[np.float64]:
    """Points in one of several positions, from generic to full of ties and duplicates."""
    n_points = draw(st.integers(1, 300))
    n_dimensions = draw(st.sampled_from([1, 2, 3, 5, 10, 50]))
    shape = (n_points, n_dimensions)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["uniform", "grid", "tenths", "copies", "line", "blobs", "scales"]))
    if kind == "uniform":
        return random.random(shape)
    if kind == "grid":  # squared distances are exact, most of them tied
        return random.integers(0, draw(st.integers(1, 12)), shape).astype(float)
    if kind == "tenths":  # nearly tied: distances equal on paper differ by a rounding, or do not
        steps = random.integers(0, draw(st.integers(2, 12)), shape).astype(float)
        return 0.1 * steps + draw(st.sampled_from([0.0, 0.7, 1e6]))
    if kind == "copies":
        originals = random.random((draw(st.integers(1, 10)), n_dimensions))
        return originals[random.integers(0, len(originals), n_points)]
    if kind == "line":
        direction = random.integers(-2, 3, n_dimensions)
        steps = np.outer(random.integers(0, 400, n_points), direction).astype(np.float64)
        return steps * float(draw(st.sampled_from([1.0, 0.1])))
    if kind == "blobs":
        centres = 1000 * random.random((draw(st.integers(2, 6)), n_dimensions))
        return centres[random.integers(0, len(centres), n_points)] + random.normal(size=shape)
    return np.exp(10 * random.normal(size=shape))


@given(point_sets())
@settings(max_examples=200)
def test_equals_kruskal_on_the_complete_graph(points: NDArray[np.float64]) -> None:
    assert_is_the_tree(points)
    if len(points) > 1:
        assert_is_as_short_as_with_pdist(points)


coordinates = st.integers(-2, 2).map(float) | st.floats(-1e100, 1e100)


@given(st.integers(1, 4).flatmap(lambda d: st.lists(st.tuples(*[coordinates] * d), min_size=1)))
@example([(0.0,)])
@example([(0.0,), (0.0,)])
@example([(1e-300,), (0.0,), (-1e-300,)])  # different points whose squared distance is 0
@example([(1.0, 0.0), (0.0, 0.0), (0.0, 1.0)])
def test_equals_kruskal_on_any_coordinates(rows: list[tuple[float, ...]]) -> None:
    assert_is_the_tree(np.array(rows))


@pytest.mark.parametrize("n_dimensions", [1, 2, 10])
@pytest.mark.parametrize("kind", ["uniform", "blobs", "grid"])
def test_equals_kruskal_on_a_deep_tree(kind: str, n_dimensions: int) -> None:
    random = np.random.default_rng(7)
    points = random.random((2000, n_dimensions))
    if kind == "blobs":
        points += 100 * random.integers(0, 3, (2000, 1))
    if kind == "grid":
        points = np.floor(points * 40)
    assert_is_the_tree(points)


@pytest.mark.parametrize("beyond", [-1, 0, 1])
@pytest.mark.parametrize("n_leaves", [1, 2, 4])
def test_sizes_around_full_leaves(n_leaves: int, beyond: int) -> None:
    n_points = n_leaves * emst.LEAF_SIZE + beyond
    assert_is_the_tree(np.random.default_rng(n_points).random((n_points, 2)))


@pytest.mark.parametrize("n_points", [0, 1])
def test_fewer_than_two_points_have_no_edge(n_points: int) -> None:
    edges = euclidean_spanning_edges(np.zeros((n_points, 2)))
    assert [len(array) for array in edges] == [0, 0, 0, 0]


def test_equal_points_hang_on_the_first_and_are_not_compared_pairwise() -> None:
    n_points = 200_000  # 2e10 pairs: minutes if they were
    sources, targets, weights, pair_ids = euclidean_spanning_edges(np.ones((n_points, 2)))
    assert not sources.any()
    np.testing.assert_array_equal(targets, np.arange(1, n_points))
    np.testing.assert_array_equal(pair_ids, np.arange(n_points - 1))
    assert not weights.any()


def test_pair_ids_exceed_32_bits() -> None:
    n_points = 200_000
    points = np.arange(n_points, dtype=np.float64)[:, None]
    sources, targets, weights, pair_ids = euclidean_spanning_edges(points)
    np.testing.assert_array_equal(sources, np.arange(n_points - 1))
    np.testing.assert_array_equal(targets, np.arange(1, n_points))
    assert (weights == 1.0).all()
    assert pair_ids[-1] == n_points * (n_points - 1) // 2 - 1


def test_far_clusters_are_joined_once() -> None:
    random = np.random.default_rng(3)
    near = random.normal(size=(20_000, 2))
    sources, targets, weights, _ = euclidean_spanning_edges(np.concatenate([near, near + 1000]))
    crossing = (sources < 20_000) != (targets < 20_000)
    assert np.count_nonzero(crossing) == 1
    assert weights[crossing] == weights.max()


def test_input_is_left_alone_and_any_layout_is_read() -> None:
    points = np.random.default_rng(5).random((100, 3))
    before = points.copy()
    ids = euclidean_spanning_edges(points)[3]
    np.testing.assert_array_equal(points, before)
    np.testing.assert_array_equal(euclidean_spanning_edges(np.asfortranarray(points))[3], ids)
    points.flags.writeable = False
    np.testing.assert_array_equal(euclidean_spanning_edges(points)[3], ids)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros(3), r"shape is \(3,\); reshape"),
        (np.zeros((3, 0)), r"at least one column.*\(3, 0\)"),
        (np.array([[0.0, 1.0], [np.nan, 0.0], [np.inf, 0.0]]), "2 of 3 points.*first in row 1"),
        (np.array([[0.0], [1e200]]), "overflow; divide"),
        (np.array([[-1e308], [1e308]]), "overflow; divide"),
    ],
)
def test_unusable_points_are_refused_with_a_remedy(
    points: NDArray[np.float64], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        euclidean_spanning_edges(points)
