"""Graph perturbation (Sealfon 2016): noise on every weight, then the minimum spanning tree of what is noisy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptclust.privacy.noise import add_noise
from ptclust.trees.mst import minimum_spanning_edges

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from ptclust.graph import Graph
    from ptclust.privacy import RandomStream
    from ptclust.privacy.noise import Noise

__all__ = ["perturbed_edges"]


def perturbed_edges(
    graph: Graph,
    noise: Noise,
    stream: RandomStream,
    progress: Callable[[int], None] | None = None,
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the ids, ascending, of the minimum spanning forest of the noisy weights, and all noisy weights.

    Notes
    -----
    *Privacy.* The noisy weights are the release, with all that ``noise`` was calibrated for; the tree is
    post-processing.
    """
    noisy_weights = add_noise(graph.weights, noise, stream=stream, progress=progress)
    edges = minimum_spanning_edges(graph.sources, graph.targets, noisy_weights, graph.n_nodes)
    return edges, noisy_weights
