"""What is audited: the functions that see private weights, drawn many times, and what an attacker sees of a release."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ptclust.audit.exact import SmallGraph, TreeLaw
from ptclust.audit.search import farthest, sampler_energies
from ptclust.audit.statistical import LIKELIHOOD
from ptclust.errors import PrivacyWarning
from ptclust.graph import Graph
from ptclust.pipeline import publish
from ptclust.privacy import RandomStream
from ptclust.privacy.noise import add_noise
from ptclust.release.weights import release_tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptclust.audit.statistical import Outcomes
    from ptclust.privacy import Sensitivity
    from ptclust.privacy.noise import Noise
    from ptclust.privacy.plan import Candidate, Plan
    from ptclust.release import Release
    from ptclust.trees import Tree

__all__ = [
    "NoiseAlone",
    "Pair",
    "PublishedClusters",
    "TreeRelease",
    "coarse",
    "digits",
    "make_graph",
    "neighbours",
    "noise_log_ratio",
]


@dataclass(frozen=True)
class Pair:
    """Two neighbouring weight vectors."""

    weights: NDArray[np.float64]
    neighbour: NDArray[np.float64]


def neighbours(n_edges: int, sensitivity: Sensitivity, spread: float) -> Pair:
    """Return weights about 1/2 that differ by up to ``spread``, and the neighbour at an extreme point of the ball."""
    places = np.arange(n_edges)
    # Heavier edges fall and lighter ones rise, so that trees and weights both tell; edge 0 is moved first.
    sign = np.where(places % 2 == 0, -1.0, 1.0)
    weights = 0.5 - 0.5 * spread * sign
    first_most = 1.0 - 2.0**-20 * places
    return Pair(weights, weights + farthest(sensitivity, sign * first_most))


def make_graph(graph: SmallGraph, weights: NDArray[np.float64]) -> Graph:
    """Return a small graph with its weights."""
    sources, targets = zip(*graph.edges, strict=True)
    return Graph(sources, targets, weights, n_nodes=graph.n_nodes)


def noise_log_ratio(
    noise: Noise,
    noisy: NDArray[np.float64],
    weights: NDArray[np.float64],
    neighbour: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the log-ratio of the densities of noisy values under two neighbours, value by value."""
    if noise.distribution == "laplace":
        return (np.abs(noisy - neighbour) - np.abs(noisy - weights)) / noise.scale
    return ((noisy - neighbour) ** 2 - (noisy - weights) ** 2) / (2.0 * noise.scale**2)


def digits(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Name every float by the places of its first and of its last binary digit: where a precision attack looks.

    Examples
    --------
    >>> first, last = divmod(digits(np.array([0.75])) - 2**30, 4096)  # 0.11 in binary
    >>> first.item(), last.item() - 2048
    (0, -2)
    """
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.round(np.log2(np.maximum(whole & -whole, 1))).astype(np.int64)
    last = exponent.astype(np.int64) - 53 + trailing
    names: NDArray[np.int64] = (
        2**30 + np.maximum(exponent, -64).astype(np.int64) * 4096 + last + 2048
    )
    return names


def coarse(noisy: NDArray[np.float64], noise: Noise) -> NDArray[np.float64]:
    """Round seeded noisy values to about a millionth of the noise.

    Seeded noise is numpy's, whose last digits leak: without this, the testers find that, and nothing else.
    """
    step = 2.0 ** (math.floor(math.log2(noise.scale)) - 20)
    return np.round(noisy / step) * step


@dataclass(frozen=True)
class NoiseAlone:
    """One value with noise: secure, from OpenDP, or seeded, from numpy, where many draws are wanted."""

    noise: Noise
    pair: Pair
    secure: bool = True

    def draw(self, weights: NDArray[np.float64], count: int, seed: int) -> Outcomes:
        """Return the features of ``count`` releases; secure noise follows from no seed."""
        return self.features(self._noisy(weights[0], self.noise, count, seed))

    def _noisy(self, value: float, noise: Noise, count: int, seed: int) -> NDArray[np.float64]:
        with RandomStream.of(None if self.secure else seed) as stream:
            values = np.full(count, value)
            noisy = add_noise(values, replace(noise, n_values=count), stream=stream)
        return noisy if self.secure else coarse(noisy, noise)

    def features(self, noisy: NDArray[np.float64]) -> Outcomes:
        """Return the value, its digits, and the likelihood ratio."""
        ratio = noise_log_ratio(self.noise, noisy, self.pair.weights, self.pair.neighbour)
        return {"value": noisy, "digits": digits(noisy), LIKELIHOOD: ratio}


class TreeRelease:
    """Tree and noisy weights, by ``release_tree``: all of a release that sees private weights.

    A seeded stream draws the tree by the very kernel of a release, but the noise by numpy.
    """

    secure = False

    def __init__(self, graph: SmallGraph, plan: Plan, pair: Pair) -> None:
        self.graph, self.plan, self.pair = graph, plan, pair
        self._tree_ratio = _tree_log_ratios(graph, plan.chosen, pair)

    def draw(self, weights: NDArray[np.float64], count: int, seed: int) -> Outcomes:
        """Return the features of ``count`` releases under a seeded stream."""
        graph = make_graph(self.graph, weights)
        with RandomStream.seeded(seed) as stream:
            drawn = [release_tree(graph, self.plan.chosen, stream) for _ in range(count)]
        return self.features([tree for tree, _ in drawn], [everything for _, everything in drawn])

    def features(
        self, trees: list[Tree], graph_weights: list[NDArray[np.float64] | None]
    ) -> Outcomes:
        """Return the tree, the noisy weight of every edge (NaN if not released), and the likelihood ratio."""
        shape = len(trees), len(self.graph.edges)
        noisy, in_tree = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        for row, (tree, everything) in enumerate(zip(trees, graph_weights, strict=True)):
            in_tree[row, tree.edge_ids] = True
            if everything is None:
                noisy[row, tree.edge_ids] = tree.weights
            else:
                noisy[row] = everything
        if not self.secure:
            noisy = coarse(noisy, self.plan.chosen.weights)
        code = in_tree @ (1 << np.arange(shape[1]))
        ratios = noise_log_ratio(
            self.plan.chosen.weights, noisy, self.pair.weights, self.pair.neighbour
        )
        ratio = np.nansum(ratios, axis=1)
        if self._tree_ratio is not None:
            ratio += np.array([self._tree_ratio[c] for c in code.tolist()])
        by_edge = {f"weight of edge {edge}": noisy[:, edge] for edge in range(shape[1])}
        return {"tree": code, **by_edge, "sum of weights": np.nansum(noisy, axis=1), LIKELIHOOD: ratio}  # fmt: skip


class PublishedClusters(TreeRelease):
    """The whole release, by ``publish`` with secure randomness: tree, weights, shift, scale and labels."""

    secure = True

    def draw(self, weights: NDArray[np.float64], count: int, seed: int) -> Outcomes:  # noqa: ARG002
        """Return the features of ``count`` releases; they follow from no seed."""
        graph = make_graph(self.graph, weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            releases = [publish(graph, self.plan) for _ in range(count)]
        return self.features_of(releases)

    def features_of(self, releases: list[Release]) -> Outcomes:
        """Return what can be seen in a release, the digits of its first weight included."""
        outcomes = self.features(
            [release.tree for release in releases], [release.graph_weights for release in releases]
        )
        base = self.graph.n_nodes + 1
        places = base ** np.arange(self.graph.n_nodes)
        first = np.array([release.tree.weights[0] for release in releases])
        return {
            **outcomes,
            "labels": np.array([int((release.labels + 1) @ places) for release in releases]),
            "shift": np.array([release.shift for release in releases]),
            "scale": np.array([release.scale for release in releases]),
            "DBCVI": np.array([release.dbcvi for release in releases]),
            "digits of the first weight": digits(first),
        }


def _tree_log_ratios(graph: SmallGraph, chosen: Candidate, pair: Pair) -> dict[int, float] | None:
    """Return the log-ratio of every tree, by its edges as a bit mask; None where the tree costs nothing itself."""
    if chosen.tree is None:
        return None
    law = TreeLaw(graph, "pamst" if chosen.method == "pamst" else "kruskal")
    here, there = (
        law.log_probabilities(sampler_energies(weights, chosen.tree.exponent))
        for weights in (pair.weights, pair.neighbour)
    )
    codes = (sum(1 << edge for edge in tree) for tree in law.trees)
    return dict(zip(codes, (here - there).tolist(), strict=True))
