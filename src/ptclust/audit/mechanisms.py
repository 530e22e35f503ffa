"""What is audited: code that reads private weights, and what an attacker sees of its draws."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from ptclust._types import Floats, Ints
from ptclust.audit.search import farthest
from ptclust.audit.statistical import LIKELIHOOD, Outcomes
from ptclust.errors import PrivacyWarning, PtclustError
from ptclust.graph import Graph
from ptclust.mechanisms.exponential import sampler_energies
from ptclust.mechanisms.lattice import add_noise
from ptclust.mechanisms.laws import SmallGraph
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import Plan
from ptclust.privacy import Noise, RandomStream, Sensitivity
from ptclust.published import Published


class Pair(NamedTuple):
    """Two neighbouring weight vectors."""

    weights: Floats
    neighbour: Floats


def neighbours(n_edges: int, sensitivity: Sensitivity, spread: float) -> Pair:
    """Return weights about 1/2 that differ by up to ``spread``, and an extreme neighbour."""
    places = np.arange(n_edges)
    # Heavier edges fall, lighter ones rise: trees and weights both differ; edge 0 is moved first.
    sign = np.where(places % 2 == 0, -1.0, 1.0)
    weights = 0.5 - 0.5 * spread * sign
    return Pair(weights, weights + farthest(sensitivity, sign * (1.0 - 2.0**-20 * places)))


def make_graph(graph: SmallGraph, weights: Floats) -> Graph:
    """Return a small graph with its weights."""
    sources, targets = zip(*graph.edges, strict=True)
    return Graph(sources, targets, weights, n_nodes=graph.n_nodes)


def digits(values: Floats) -> Ints:
    """Name every float by the places of its first and last binary digit: where attacks look.

    >>> first, last = divmod(digits(np.array([0.75])) - 2**30, 4096)  # 0.11 in binary
    >>> first.item(), last.item() - 2048
    (0, -2)
    """
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.round(np.log2(np.maximum(whole & -whole, 1))).astype(np.int64)
    last = exponent.astype(np.int64) - 53 + trailing
    first = np.maximum(exponent, -64).astype(np.int64)
    names: Ints = 2**30 + first * 4096 + last + 2048
    return names


def coarse(noisy: Floats, noise: Noise) -> Floats:
    """Round seeded noise to about a millionth: numpy's last digits leak, and would be all found."""
    step = 2.0 ** (math.floor(math.log2(noise.standard_deviation)) - 20)
    return np.round(noisy / step) * step


@dataclass(frozen=True)
class NoiseAlone:
    """One value with noise: secure, on the lattice, or seeded, from numpy, for many draws."""

    noise: Noise
    pair: Pair
    secure: bool = True
    added: Noise | None = None  # by a control, instead of the noise that is claimed

    def draw(self, weights: Floats, count: int, seed: int) -> Outcomes:
        """Return the features of ``count`` releases; secure noise follows from no seed."""
        added = replace(self.added or self.noise, n_values=count)
        with RandomStream.of(None if self.secure else seed) as stream:
            noisy = add_noise(np.full(count, weights[0]), added, stream=stream)
        return self.features(noisy if self.secure else coarse(noisy, added))

    def features(self, noisy: Floats) -> Outcomes:
        """Return the value, its digits, and the likelihood ratio."""
        ratio = self.noise.log_ratio(noisy[:, None], *self.pair)
        return {"value": noisy, "digits": digits(noisy), LIKELIHOOD: ratio}


@dataclass
class ValuesRelease:
    """What a mechanism publishes: all of a release that sees private weights.

    A seeded stream draws the tree by the very kernel of a release, but the noise by numpy.
    """

    graph: SmallGraph
    plan: Plan
    pair: Pair
    secure: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._of_trees = self.tree_log_ratios()  # refuses at once what cannot be audited

    def draw(self, weights: Floats, count: int, seed: int) -> Outcomes:
        """Return the features of ``count`` releases under a seeded stream."""
        graph, mechanism = make_graph(self.graph, weights), self.plan.mechanism
        with RandomStream.seeded(seed) as stream:
            drawn = [mechanism.draw(graph, self.plan.chosen, stream) for _ in range(count)]
        return self.features(drawn)

    def features(self, drawn: list[Published]) -> Outcomes:
        """Return tree, noisy weight of every edge (NaN if not released), and likelihood ratio."""
        shape = len(drawn), len(self.graph.edges)
        noisy, in_tree = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        for row, published in enumerate(drawn):
            ids = published.tree.edge_ids
            in_tree[row, ids] = True
            noisy[row, slice(None) if published.whole_graph else ids] = published.noisy_weights
        noise = self.plan.chosen.weights
        if not self.secure:
            noisy = coarse(noisy, noise)
        code = in_tree @ (1 << np.arange(shape[1]))
        ratio = noise.log_ratio(noisy, *self.pair)
        if self._of_trees is not None:
            ratio += np.array([self._of_trees[each] for each in code.tolist()])
        return {
            "tree": code,
            **{f"weight of edge {edge}": noisy[:, edge] for edge in range(shape[1])},
            "sum of weights": np.nansum(noisy, axis=1),
            LIKELIHOOD: ratio,
        }

    def tree_log_ratios(self) -> dict[int, float] | None:
        """Return the log-ratio of every tree, by its edges as a bit mask; None if it is free."""
        mechanism, tree = self.plan.mechanism, self.plan.chosen.tree
        if tree is None:
            return None
        laws = mechanism.laws(self.graph)
        if not laws:
            lacks = f"the mechanism {mechanism.name!r} draws a tree and has no law to audit it by"
            raise PtclustError(f"{lacks}; define its laws()")
        here, there = (
            laws[0].log_probabilities(sampler_energies(weights, tree.exponent))
            for weights in self.pair
        )
        codes = (sum(1 << edge for edge in each) for each in laws[0].trees)
        return dict(zip(codes, (here - there).tolist(), strict=True))


class WholeRelease(ValuesRelease):
    """The whole release, by ``publish`` with secure randomness: values, shift, scale and labels."""

    secure = True

    def draw(self, weights: Floats, count: int, seed: int) -> Outcomes:  # noqa: ARG002
        """Return what can be seen in ``count`` releases; they follow from no seed."""
        graph, request = make_graph(self.graph, weights), self.request(weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            releases = [publish(graph, request, plan=self.plan) for _ in range(count)]
        found = [release.clustering for release in releases if release.clustering is not None]
        places = (self.graph.n_nodes + 1) ** np.arange(self.graph.n_nodes)
        first = np.array([release.tree.weights[0] for release in releases])
        return {
            **self.features([release.published for release in releases]),
            "labels": np.array([int((each.labels + 1) @ places) for each in found]),
            "shift": np.array([each.shift for each in found]),
            "scale": np.array([each.scale for each in found]),
            "DBCVI": np.array([each.dbcvi for each in found]),
            "digits of the first weight": digits(first),
        }

    def request(self, weights: Floats) -> ReleaseRequest:  # noqa: ARG002 - only a control reads it
        """Return what is asked for."""
        return ReleaseRequest.of(self.plan.request)


def series_of_two(each: ValuesRelease, weights: Floats, count: int, seed: int) -> Outcomes:
    """Draw two releases of the same people, each of whom may move the weights of both, as one."""
    drawn = [each.draw(weights, count, seed + number) for number in range(2)]
    ratio = sum(outcomes.pop(LIKELIHOOD).astype(np.float64) for outcomes in drawn)
    found = {
        f"release {number}, {name}": values
        for number, outcomes in enumerate(drawn, 1)
        for name, values in outcomes.items()
    }
    return {**found, LIKELIHOOD: np.asarray(ratio)}
