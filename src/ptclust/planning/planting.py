"""Graphs like real ones, planted on a public topology: clusters and weights that were made up.

What real graphs are like was measured on nine graphs with known groups (docs/prediction.md). They
differ from one another by far more than two draws of one model do, so every planted graph draws its
own number of clusters, contrast, tails and share of nodes whose group the weights do not show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptclust._types import Floats, Ints
from ptclust.graph.topology import Kind, Topology, WeightedGraph

Bounds = tuple[float, float]
Random = np.random.Generator

# The number of clusters beside the root of that of nodes: median, and deviation of the logarithm.
_CLUSTERS, _SPREAD_OF_CLUSTERS = 0.5, 0.8
_STRANGERS = 0.12  # deviation of the share of nodes that weights place in another group
_CLEAN = 0.3  # share of graphs where there are none; and of those whose groups are the topology's
_HEED = 3.0  # deviation of the logarithm: how much longer edges across communities are
_AT_ONCE = 1e-9  # an edge of no length to speak of
_DENSE = 0.5  # with this share of all pairs, the topology says little about clusters


@dataclass(frozen=True)
class Traits:
    """What weights of one kind of graph are like: logarithms of factors."""

    contrast: tuple[float, float]  # shape and scale of a gamma distribution: within over across
    nodes: tuple[float, float]  # of the deviation between nodes: mean and deviation
    pairs: tuple[float, float]  # of the deviation between pairs
    blocks: tuple[float, float]  # of the deviation between pairs of clusters


#: By the kind of the weights, and whether most pairs are joined.
_TRAITS: dict[tuple[Kind, bool], Traits] = {
    ("similarity", True): Traits((2.0, 1.4), (0.9, 0.25), (0.7, 0.4), (0.6, 0.35)),
    ("similarity", False): Traits((1.0, 0.35), (0.4, 0.3), (0.2, 0.2), (0.2, 0.2)),
    ("distance", True): Traits((3.0, 0.22), (0.14, 0.04), (0.29, 0.15), (0.2, 0.1)),
    ("distance", False): Traits((3.0, 0.04), (0.18, 0.05), (0.2, 0.1), (0.05, 0.05)),
}


@dataclass(frozen=True)
class Planted:
    """One planted graph."""

    truth: Ints
    weights: Floats
    contrast: float  # how many times heavier, or closer, a pair within clusters is


@dataclass(frozen=True)
class Planting:
    """What is public or was said about the graphs to plant."""

    topology: Topology
    kind: Kind
    total: Bounds | None = None  # of counts: between which sums of all weights; None if unknown
    clip: Bounds | None = None
    n_clusters: int | None = None
    contrast: float | None = None

    @property
    def traits(self) -> Traits:
        """What weights on such a topology are like."""
        n = self.topology.n_nodes
        return _TRAITS[self.kind, self.topology.n_edges >= _DENSE * n * (n - 1) / 2]

    def plant(self, communities: Ints, random: Random) -> Planted:
        """Return a graph; ``communities`` are those that the topology shows by itself."""
        truth = self._clusters(communities, random)
        given = np.log(self.contrast) if self.contrast else random.gamma(*self.traits.contrast)
        n_clusters = int(truth.max()) + 1
        blocks = random.normal(0.0, _positive(self.traits.blocks, random), (n_clusters, n_clusters))
        np.fill_diagonal(blocks, given)
        # The groups that people know are not in all places those of the weights.
        is_clean = random.random() < _CLEAN
        strangers = 0.0 if is_clean else min(0.5, abs(random.normal(0.0, _STRANGERS)))
        strange = random.random(len(truth)) < strangers
        shown = np.where(strange, random.permutation(truth), truth)
        a, b = shown[self.topology.sources], shown[self.topology.targets]
        weights = self._weights(blocks[np.minimum(a, b), np.maximum(a, b)], random)
        return Planted(truth, weights, float(np.exp(given)))

    def without_clusters(self, random: Random) -> Floats:
        """Return weights that are independent of clusters."""
        return self._weights(np.zeros(self.topology.n_edges), random)

    def _clusters(self, communities: Ints, random: Random) -> Ints:
        """Return connected clusters of very different sizes, that heed the topology's more or less.

        They grow from random nodes along edges of random length, all at once; who comes first to a
        node has it. On all pairs every partition into such sizes is as likely (Polya's urn).
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        topology, n_nodes = self.topology, self.topology.n_nodes
        if random.random() < _CLEAN and communities.max() > 0 and self.n_clusters is None:
            return communities
        drawn = _CLUSTERS * np.sqrt(n_nodes) * np.exp(random.normal(0.0, _SPREAD_OF_CLUSTERS))
        wanted = self.n_clusters or int(np.clip(np.rint(drawn), 2, max(2, n_nodes // 3)))
        across = communities[topology.sources] != communities[topology.targets]
        longer = np.exp(abs(random.normal(0.0, _HEED)))
        length = random.exponential(size=topology.n_edges) * np.where(across, longer, 1.0)
        length += _AT_ONCE
        seeds = random.choice(n_nodes, min(wanted, n_nodes), replace=False)
        length[_first_steps(topology, seeds, length)] = _AT_ONCE
        ends = topology.sources, topology.targets
        near = csr_array((length, ends), shape=(n_nodes, n_nodes))
        source = dijkstra(
            near, directed=False, indices=seeds, min_only=True, return_predecessors=True
        )[2]
        # Components without a seed are clusters of their own.
        own = n_nodes + topology.components.astype(np.int64)
        found = np.where(source >= 0, source.astype(np.int64), own)
        truth: Ints = np.unique(found, return_inverse=True)[1].astype(np.int64)
        return truth

    def _weights(self, affinity: Floats, random: Random) -> Floats:
        topology, traits = self.topology, self.traits
        size = random.normal(0.0, _positive(traits.nodes, random), topology.n_nodes)
        own = random.normal(0.0, _positive(traits.pairs, random), topology.n_edges)
        logarithm = size[topology.sources] + size[topology.targets] + own + affinity
        weights: Floats
        if self.kind == "distance":
            low, high = self.clip or (0.0, 1.0)
            apart = np.exp(-logarithm)
            weights = low + (high - low) * apart / max(apart.max(initial=0.0), 1e-300)
        else:
            expected = np.exp(logarithm)
            if self.total is None:  # as different as those of real graphs
                total = np.exp(random.normal(1.5, 2.5)) * topology.n_edges
            else:
                total = np.exp(random.uniform(*np.log(self.total)))
            scale = total / max(expected.sum(), 1e-300)
            weights = random.poisson(expected * scale).astype(np.float64)
        return weights if self.clip is None else np.clip(weights, *self.clip)


def _first_steps(topology: Topology, seeds: Ints, length: Floats) -> Ints:
    """Return the two shortest edges of every seed: clusters start with three nodes."""
    first = []
    for ends in (topology.sources, topology.targets):
        edges = np.flatnonzero(np.isin(ends, seeds))
        edges = edges[np.lexsort((length[edges], ends[edges]))]
        _, start = np.unique(ends[edges], return_index=True)
        first.append(edges[start])
    return np.concatenate(first)


def _positive(law: tuple[float, float], random: Random) -> float:
    return max(0.0, random.normal(*law))


class MadeUpGraph(WeightedGraph):
    """A public topology with made-up weights: nobody's, so mechanisms may be tried on it freely."""

    def __init__(self, topology: Topology, weights: Floats, kind: Kind) -> None:
        super().__init__(topology)
        self.weights, self.kind = weights, kind
