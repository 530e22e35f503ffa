"""The model: released weights as similarities, and the weight expected from its two nodes.

Given the sizes of its nodes, a weight has one distribution within clusters and another across.
Distributions are over ranks among edges with similar expected weight, so that no unit, hub or tail
has a part in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust.clustering.levels import NoisyWeights
from ptclust.graph.topology import frozen

if TYPE_CHECKING:
    from ptclust._types import Bools, Floats, Ints
    from ptclust.published import Published

# The share of edges that is taken to have the least true weight, the background.
_BACKGROUND = 0.05
# Deviations of the noise above which a weight counts for the unit, and the share that must be.
_ABOVE_NOISE, _ENOUGH = 3.0, 0.01
# With this share of all pairs, the topology says nothing.
_COMPLETE = 0.9
# A node has at least this part of the mean weight: noise makes some weights negative.
_SMALLEST = 0.02
#: Numbers of groups of edges with similar expected weight; a group has at least so many edges.
GROUPS, IN_GROUP = (1, 4, 16), 100
#: Shares of a group at which weights are divided into bins: clusters are made of the upper ones.
CUTS = np.array([0.125, 0.25, 0.5, 0.75, 0.875, 0.9375])
BINS = len(CUTS) + 1


class Edges(NamedTuple):
    """The edges of a graph and their released weights, as similarities above the background."""

    sources: Ints
    targets: Ints
    n_nodes: int
    similarity: Floats
    log_weights: Floats
    """arcsinh(similarity / unit): linear below the unit, and logarithmic above."""
    is_complete: bool
    """Whether nearly all pairs are joined, so that the topology says nothing."""

    @classmethod
    def of(cls, published: Published) -> Edges:
        """Return the edges of a published graph, which has no self-loops."""
        graph = published.topology
        a, b = graph.sources, graph.targets
        noisy = NoisyWeights.of(published.distances, published.noise)
        similarity, unit = -noisy.values, noisy.deviation
        if len(similarity):
            similarity -= _background(similarity, noisy.deviation)
            above = similarity[similarity > _ABOVE_NOISE * noisy.deviation]
            if len(above) > _ENOUGH * len(similarity):
                unit = max(unit, float(np.median(above)))
        log_weights = similarity / max(unit, 1e-300)
        np.arcsinh(log_weights, out=log_weights)
        n_pairs = graph.n_nodes * (graph.n_nodes - 1) // 2
        is_complete = len(a) > _COMPLETE * n_pairs
        return cls(a, b, graph.n_nodes, similarity, log_weights, is_complete)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.sources)

    def at(self, edges: Ints | Bools) -> Edges:
        """Return some of the edges, by number, or by whether each is one of them."""
        return self._replace(
            sources=frozen(self.sources[edges]),
            targets=frozen(self.targets[edges]),
            similarity=self.similarity[edges],
            log_weights=self.log_weights[edges],
        )

    def at_nodes(self, values: Floats) -> Floats:
        """Return the sum of the values of the edges at every node."""
        at_sources, at_targets = (
            np.bincount(ends, values, self.n_nodes) for ends in (self.sources, self.targets)
        )
        return np.asarray(at_sources + at_targets, dtype=np.float64)


def _background(similarity: Floats, deviation: float) -> float:
    """Return the least true similarity: what a few percent would have if noise alone differed."""
    from scipy.special import ndtri

    low, middle = np.quantile(similarity, [_BACKGROUND, 0.5])
    return float(min(low - deviation * ndtri(_BACKGROUND), middle))


def expected_weights(seen: Edges, others: Edges) -> Floats:
    """Return the weight expected of other edges: the product of the mean weights at their nodes.

    Means are of edges that were seen, over the root of the mean of all. Nodes with few edges are
    drawn towards the mean of all, by as many edges as empirical Bayes asks for.
    """
    weights = seen.log_weights
    degree, total = seen.at_nodes(np.ones(seen.n_edges)), seen.at_nodes(weights)
    mean, variance = max(float(weights.mean()), 1e-9), float(weights.var()) + 1e-12
    spread = np.sum(degree * (total / np.maximum(degree, 1) - mean) ** 2 - variance * (degree > 0))
    prior = variance / max(spread / degree.sum(), 1e-6 * variance)
    size = np.maximum((total + prior * mean) / (degree + prior), _SMALLEST * mean) / np.sqrt(mean)
    expected: Floats = size[others.sources] * size[others.targets]
    return expected


class Table(NamedTuple):
    """Edges in groups with similar expected weight, and in bins of like weight among these."""

    cell: Ints
    """Number of the group times that of the bins, plus the bin."""
    n_groups: int

    @property
    def bins(self) -> Ints:
        """The bin of every edge in its group."""
        return self.cell % BINS

    @property
    def group(self) -> Ints:
        """The group of every edge."""
        return self.cell // BINS


def tables_of(expected: Floats, weights: Floats) -> list[Table]:
    """Return the tables of all numbers of groups for which there are edges enough."""
    tables = []
    for n_groups in GROUPS:
        if n_groups == 1 or len(weights) >= n_groups * IN_GROUP:
            group = groups_of(expected, n_groups)
            in_group = np.searchsorted(CUTS, _ranks(weights, group, n_groups))
            tables.append(Table(group * BINS + in_group, n_groups))
    return tables


def groups_of(expected: Floats, n_groups: int) -> Ints:
    """Return the group of every edge: groups of the same size, by expected weight."""
    rank = _ranks(expected, np.zeros(len(expected), np.int64), 1)
    return np.minimum((rank * n_groups).astype(np.int64), n_groups - 1)


def _ranks(values: Floats, group: Ints, n_groups: int) -> Floats:
    """Return the rank of every value in its group, from 0 to 1."""
    order = np.lexsort((values, group))
    size = np.bincount(group, minlength=n_groups)
    first = np.cumsum(size) - size
    ranks = np.empty(len(values))
    own = group[order]
    ranks[order] = (np.arange(len(values)) - first[own] + 0.5) / size[own]
    return ranks
