"""Point sets of the clustering literature, scaled so that the largest distance is 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["circles", "moons"]


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


def _scaled(
    points: NDArray[np.float64], truth: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Divide by the largest distance, which two corners of the convex hull have."""
    from scipy.spatial import ConvexHull
    from scipy.spatial.distance import pdist

    corners = points[ConvexHull(points).vertices]
    return points / pdist(corners).max(), truth
