"""Clusters of real graphs: candidates, judged by edges they have not seen.

Counts between real places have heavy tails, and a busy node has large weights to everyone. So

1.  weights are compressed, and compared with what the sizes of their two nodes make of them
    (``_weights``);
2.  partitions are sought by modularity at several resolutions, of the compressed weights and of the
    topology alone (``_search_kernel``), each without a part of the edges;
3.  that part is the judge (``_judge``): how many nats does "together or apart" say about weights,
    given what nodes alone make of them? The best is improved by using what was learned as
    affinities. How many nats it says about which edges exist counts as well, if the partition does
    not depend on the part left out: geometry makes edges predictable without there being clusters;
4.  the winner is shown if it is more than chance.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._components import Adjacency, adjacency
from ptclust._statistics import agreement
from ptclust.clustering.clusterer import Clusterer, Clustering, Cost
from ptclust.clustering.communities._judge import Judge, topology_tells
from ptclust.clustering.communities._search_kernel import search_communities
from ptclust.clustering.communities._weights import Edges, expected_by_size
from ptclust.clustering.contraction._partition_kernel import connected_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ptclust._types import Array, Bools, Floats, Ints
    from ptclust.published import Published

__all__ = ["CommunitiesClusterer"]

# Fewer edges hold no clusters that noise could not have made.
_SMALLEST = 12
# Edges are held back in so many parts; of large graphs only some of these are tried.
_FOLDS = 10, 5
_FEW, _MANY = 5_000, 300_000
# Units beyond which weights count by their logarithm, and resolutions.
_TIMES = 1.0, 8.0
_GAMMAS = 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0
# Agreement (ARI) between folds from which on a partition does not depend on the edges left out.
_STABLE = 0.9
# Standard errors, and nats of the topology, that are more than chance.
_CLEAR, _CLEAR_NATS = 4.0, 10.0
# Pseudo-edges that smooth what is learned of a bin.
_SMOOTHING = 4.0


class CommunitiesClusterer(Clusterer):
    """Clusters of graphs whose weights have heavy tails and whose nodes differ in size."""

    name = "communities"
    description = (
        "partitions of high modularity were found at several resolutions, without a part of the "
        "edges, and the one was chosen that says most about that part"
    )
    needs = "graph"
    cost = Cost(2_000_000, 500, 1.1)

    def cluster(self, published: Published) -> Clustering:
        """Cluster the published graph."""
        edges = Edges.of(published)
        components, _ = connected_pieces(
            edges.sources, edges.targets, np.zeros(edges.n_nodes, np.int64)
        )
        if len(edges.sources) < _SMALLEST:
            return Clustering(components)
        found = Trial(edges).best()
        if found is None:
            return Clustering(components)
        return Clustering(connected_pieces(edges.sources, edges.targets, found.labels)[0])


class View(NamedTuple):
    """What a search sees: all edges, or those that are not in one of the folds."""

    number: int
    edges: Edges
    kept: Ints
    near: Adjacency
    order: Array
    """In which nodes are looked at first: another one in every view."""

    @property
    def degree(self) -> Floats:
        """Number of edges at every node."""
        return np.diff(self.near.indptr).astype(np.float64)

    def search(self, affinity: Floats, mass: Floats, start: Ints | None = None) -> Ints:
        """Return the partition found."""
        return search_communities(self.near, affinity, mass, self.order, start)

    def chance(self, labels: Ints) -> float:
        """Return how likely two ends of edges, drawn by degree, are in one cluster."""
        degree = self.degree / max(self.degree.sum(), 1.0)
        return float(np.sum(np.bincount(labels, degree) ** 2) - np.sum(degree**2))


class Found(NamedTuple):
    """A partition, found on all edges and without each fold, and what the folds say of it."""

    labels: Ints
    by_fold: list[Ints]
    together: Bools
    """Whether an edge is within a cluster of the partition that has not seen it."""
    weights: float
    topology: float

    @property
    def nats(self) -> float:
        """What speaks for it."""
        return self.weights + self.topology


class Trial:
    """All that is tried on one graph."""

    def __init__(self, edges: Edges) -> None:
        self.edges, n_edges = edges, len(edges.sources)
        self.compressed = {times: edges.compressed(times) for times in _TIMES}
        self.expected = {
            times: expected_by_size(edges, weights) for times, weights in self.compressed.items()
        }
        self.judge = Judge(edges, self.compressed[_TIMES[0]], self.expected[_TIMES[0]])
        random = np.random.default_rng(0)  # the same release gives the same labels
        n_folds = _FOLDS[n_edges > _FEW]
        fold = random.permutation(np.arange(n_edges) % n_folds)
        n_tried = n_folds if n_edges <= _MANY else 2
        self.folds = [np.flatnonzero(fold == each) for each in range(n_tried)]
        self.held = np.sort(np.concatenate(self.folds))
        self.views = [
            self._view(k, np.flatnonzero(fold != k - 1), random) for k in range(n_tried + 1)
        ]

    def _view(self, number: int, kept: Ints, random: np.random.Generator) -> View:
        some = self.edges.at(kept)
        near = adjacency(some.sources, some.targets, some.n_nodes)
        return View(number, some, kept, near, random.permutation(some.n_nodes))

    def best(self) -> Found | None:
        """Return the best partition that is more than chance."""
        candidates = sorted(self.candidates(), key=lambda each: -each.nats)
        for found in candidates:
            if found.nats <= 0:
                break
            if self.is_clear(found):
                return self.improved(found)
        return None

    def is_clear(self, found: Found) -> bool:
        """Return whether a partition is more than chance."""
        if found.topology >= _CLEAR_NATS:
            return True
        return found.weights > 0 and self.judge.deviations(found.together) >= _CLEAR

    def candidates(self) -> Iterator[Found]:
        """Yield partitions of high modularity at every resolution."""
        for gamma in _GAMMAS:
            for times in _TIMES:
                over = self.over_edges if self.edges.is_complete else self.over_pairs
                yield self.tried(partial(over, times=times, gamma=gamma))
            if not self.edges.is_complete:
                yield self.tried(partial(self.over_pairs, times=None, gamma=gamma))

    def over_edges(self, view: View, *, times: float, gamma: float) -> Ints:
        """Return the partition with the most weight beyond what is expected of its edges."""
        excess = self.compressed[times] - gamma * self.expected[times]
        return view.search(excess[view.kept], np.zeros(self.edges.n_nodes))

    def over_pairs(self, view: View, *, times: float | None, gamma: float) -> Ints:
        """Return the partition of highest modularity, which counts missing edges as well."""
        weights = np.ones(len(view.kept)) if times is None else self.compressed[times][view.kept]
        strength = np.maximum(view.edges.at_nodes(weights), 0.0)
        total = max(float(strength.sum()), 1e-300)
        return view.search(weights, strength * np.sqrt(gamma / total))

    def tried(self, search: Callable[[View], Ints]) -> Found:
        """Search on all edges and without each fold, and ask the folds."""
        edges = self.edges
        labels, *by_fold = (search(view) for view in self.views)
        together, chance = np.zeros(len(edges.sources), bool), np.zeros(len(edges.sources))
        for held, view, found in zip(self.folds, self.views[1:], by_fold, strict=True):
            together[held] = found[edges.sources[held]] == found[edges.targets[held]]
            chance[held] = view.chance(found)
        weights = self.judge.weights_tell(together[self.held], self.held)
        topology = 0.0
        if not edges.is_complete and _stability(by_fold) >= _STABLE:
            topology = topology_tells(together[self.held], chance[self.held])
        return Found(labels, by_fold, together, weights, max(topology, 0.0))

    def improved(self, found: Found) -> Found:
        """Search again with what was learned, as long as the judge agrees."""
        while True:
            tries = (
                self.tried(partial(self.by_ratios, of=found, anew=anew)) for anew in (False, True)
            )
            better = max(tries, key=lambda each: each.nats)
            if better.nats <= found.nats or not self.is_clear(better):
                return found
            found = better

    def by_ratios(self, view: View, *, of: Found, anew: bool) -> Ints:
        """Return the likeliest partition, by the log-likelihood ratios that another one shows.

        The search begins there, or anew.
        """
        a, b = view.edges.sources, view.edges.targets
        labels = (of.labels, *of.by_fold)[view.number]
        together = labels[a] == labels[b]
        inside, outside = self.judge.counts(together, view.kept)
        ratio = _log_shares(inside, inside + outside) - _log_shares(outside, inside + outside)
        affinity = ratio[self.judge.group[view.kept], self.judge.bin[view.kept]]
        mass = np.zeros(self.edges.n_nodes)
        if not self.edges.is_complete:
            # Edges within and across are so many times as frequent as by chance.
            share, chance = (
                np.clip(part, 1e-6, 1 - 1e-6) for part in (together.mean(), view.chance(labels))
            )
            within, across = share / chance, (1 - share) / (1 - chance)
            affinity = affinity + np.log(within / across)
            mass = view.degree * np.sqrt(max(within - across, 0.0) / (2 * len(a)))
        return view.search(affinity, mass, None if anew else labels)


def _log_shares(counts: Floats, both: Floats) -> Floats:
    """Return log-shares of bins in every group, smoothed towards those of all edges there."""
    prior = both / np.maximum(both.sum(1, keepdims=True), 1)
    total = counts.sum(1, keepdims=True) + _SMOOTHING
    shares: Floats = np.log(np.maximum(counts + _SMOOTHING * prior, 1e-12) / total)
    return shares


def _stability(partitions: list[Ints]) -> float:
    """Return how far partitions agree that were found without different edges."""
    return float(np.mean([agreement(one, other) for one, other in pairwise(partitions)]))
