"""Point sets with known clusters, of the clustering literature and beyond, scaled so that the largest distance is 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["blobs", "chains", "circles", "moons"]


def moons(
    n_points: int = 100, *, noise: float = 0.09, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return two interleaved half moons and which of them each point belongs to.

    >>> points, truth = moons(seed=2)
    >>> points.shape, truth.sum().item()
    ((100, 2), 50)
    """
    from sklearn.datasets import make_moons

    return _scaled(*make_moons(n_points, noise=noise, random_state=seed))


def circles(
    n_points: int = 100, *, noise: float = 0.05, factor: float = 0.5, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return two concentric circles and which of them each point belongs to.

    >>> points, truth = circles(seed=0)
    >>> points.shape, truth.sum().item()
    ((100, 2), 50)
    """
    from sklearn.datasets import make_circles

    return _scaled(*make_circles(n_points, noise=noise, factor=factor, random_state=seed))


def blobs(
    n_points: int = 100,
    n_clusters: int = 3,
    *,
    spread: float = 1.0,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return round clusters on a grid and which of them each point belongs to.

    The widest cluster is ``spread`` times as wide as the narrowest, and, in an order of its own, the largest
    beyond its first four points ``spread`` times as large as the smallest. Clusters are numbered from wide to narrow.

    >>> points, truth = blobs(100, 10, seed=0)
    >>> points.shape, np.bincount(truth).tolist()
    ((100, 2), [10, 10, 10, 10, 10, 10, 10, 10, 10, 10])
    """
    random = np.random.default_rng(seed)
    widths = np.geomspace(1.0, 1.0 / spread, n_clusters)
    truth = random.permutation(np.repeat(np.arange(n_clusters), _sizes(n_points, widths, random)))
    side = int(np.ceil(np.sqrt(n_clusters)))
    centres = np.stack(np.divmod(random.permutation(side**2)[:n_clusters], side), axis=1)
    scatter = 0.15 * random.standard_normal((n_points, 2))
    return _scaled(centres[truth] + widths[truth, None] * scatter, truth)


def chains(
    n_points: int = 100, n_clusters: int = 4, *, noise: float = 0.002, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return waves above each other, long and thin, and which of them each point belongs to.

    >>> points, truth = chains(100, 4, seed=0)
    >>> points.shape, np.bincount(truth).tolist()
    ((100, 2), [25, 25, 25, 25])
    """
    random = np.random.default_rng(seed)
    truth = random.permutation(np.arange(n_points) % n_clusters)
    along = random.random(n_points)
    height = truth / n_clusters + 0.06 * np.sin(2.0 * np.pi * (3.0 * along + truth / n_clusters))
    points = np.stack([2.0 * along, height], axis=1)
    return _scaled(points + noise * random.standard_normal(points.shape), truth)


def _sizes(
    n_points: int, shares: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Return sizes that add up: four for every cluster, the rest by the shares in a random order."""
    shares = random.permutation(shares)
    ends = np.rint((n_points - 4 * len(shares)) * np.cumsum(shares) / shares.sum())
    sizes: NDArray[np.int64] = 4 + np.diff(ends, prepend=0.0).astype(np.int64)
    return sizes


def _scaled(
    points: NDArray[np.float64], truth: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Divide by the largest distance, which two corners of the convex hull have."""
    from scipy.spatial import ConvexHull
    from scipy.spatial.distance import pdist

    corners = points[ConvexHull(points).vertices]
    return points / pdist(corners).max(), truth
