"""The tree and the Weight-Release mechanism: the last function that sees private weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.privacy.noise import add_noise
from ptclust.trees import Tree
from ptclust.trees.perturbed import perturbed_edges
from ptclust.trees.private import DRAW

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ptclust.graph import Graph
    from ptclust.privacy import RandomStream
    from ptclust.privacy.plan import Candidate

__all__ = ["release_tree"]


def release_tree(
    graph: Graph,
    chosen: Candidate,
    stream: RandomStream,
    *,
    clip: tuple[float, float] | None = None,
    stage: Callable[[str], None] = lambda _: None,
) -> tuple[Tree, NDArray[np.float64] | None]:
    """Return a spanning tree with noisy weights, and the noisy weights of the whole graph if that was perturbed.

    Notes
    -----
    *Privacy.* What is returned is published under the guarantee of ``chosen``. Clipping to public bounds moves no two
    weights further apart, so it keeps every sensitivity.
    """
    if clip is not None:
        graph = graph.clipped(*clip)

    def report(done: int) -> None:
        stage(f"Noise on {chosen.weights.n_values:,} weights: {done:,} done")

    if chosen.tree is None:
        stage(f"Noise on {graph.n_edges:,} weights")
        edges, graph_weights = perturbed_edges(graph, chosen.weights, stream, report)
        return Tree(graph.topology.restricted_to(edges), graph_weights[edges], edges), graph_weights
    stage(f"Private spanning tree of {graph.n_nodes:,} nodes and {graph.n_edges:,} edges")
    edges = DRAW[chosen.method](graph, chosen.tree.exponent, stream)
    stage(f"Noise on {len(edges):,} weights")
    noisy_weights = add_noise(graph.weights[edges], chosen.weights, stream=stream, progress=report)
    return Tree(graph.topology.restricted_to(edges), noisy_weights, edges), None
