"""The search: candidates for a partition, from the edges that a part of the graph leaves to see.

A candidate is a recipe. It is carried out without each part of the edges, and that part is its
judge; the best is carried out with all edges.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ptclust._components import Adjacency, adjacency
from ptclust._statistics import agreement
from ptclust.clustering.communities._blocks import (
    MOST,
    join_blocks,
    log_evidence_of,
    pair_counts,
)
from ptclust.clustering.communities._model import BINS, Edges, Table
from ptclust.clustering.communities._search_kernel import (
    TURNS,
    at_places,
    search_communities,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ptclust._types import Array, Floats, Ints

Source = Literal["log weights", "weights", "topology"]
#: What modularity is searched in: compressed weights, weights as they are, the topology alone.
SOURCES: tuple[Source, ...] = "log weights", "weights", "topology"
#: Resolutions of modularity: the usual one and its neighbours first.
RESOLUTIONS = 1.0, 2.0, 0.5, 5.0, 3.0, 1.4, 0.7, 0.35
# Of starts for the shortest description: from the usual one to single nodes and their neighbours.
_SCALES = 1.0, 2.0, 5.0, 20.0, 60.0
# So many of the shortest descriptions are made shorter; gains below are rounding.
_BEST, _ROUNDING = 4, 1e-6
#: Shares of the nats to name the cluster of every node that count.
NAMINGS = 1.0, 0.5
# Partitions found without a part that are tried as starts with all edges.
_STARTS = 3
# Rounds of learning, and pseudo-edges that smooth what is learned of a bin.
_ROUNDS, _SMOOTHING = 2, 4.0


class View:
    """Edges that a search sees: all, or those that are not held back."""

    def __init__(
        self, edges: Edges, kept: Ints | slice, order: Array, within: Ints | None = None
    ) -> None:
        self.edges = edges if isinstance(kept, slice) else edges.at(kept)
        self.kept, self.order, self._within = kept, order, within
        self._variants: list[Ints] | None = None

    @cached_property
    def near(self) -> Adjacency:
        """The edges at every node."""
        return adjacency(self.edges.sources, self.edges.targets, self.edges.n_nodes)

    @cached_property
    def degree(self) -> Floats:
        """Number of edges at every node."""
        return np.diff(self.near.indptr).astype(np.float64)

    @property
    def sources(self) -> tuple[Source, ...]:
        """In what modularity is searched: a complete topology says nothing."""
        return SOURCES[:2] if self.edges.is_complete else SOURCES

    def weights(self, source: Source) -> Floats:
        """Return the weights whose modularity is searched."""
        if source == "topology":
            return np.ones(self.edges.n_edges)
        if source == "weights":
            return np.maximum(self.edges.similarity, 0.0)
        return self.edges.log_weights

    def modularity(self, weights: Floats, gamma: float, start: Ints | None = None) -> Ints:
        """Return a partition of high modularity; its null model stays within given clusters."""
        strength = np.maximum(self.edges.at_nodes(weights), 0.0)
        if self._within is None:
            total = max(float(strength.sum()), 1e-300)
            return self.search(weights, strength * np.sqrt(gamma / total), start)
        by_cluster = np.maximum(np.bincount(self._within, strength), 1e-300)
        return self.search(weights, strength * np.sqrt(gamma / by_cluster[self._within]), start)

    def joined(self, labels: Ints, table: Table) -> Ints:
        """Return clusters joined, by distributions of all pairs of them if these are not too many.

        More are joined as nodes are moved, by what all edges within and across have in common.
        """
        if labels.max() >= MOST:
            return self.moved(labels, table, turns=0)
        a, b = labels[self.edges.sources], labels[self.edges.targets]
        return join_blocks(labels, a, b, table.bins[self.kept])

    def moved(self, labels: Ints, table: Table, turns: int = TURNS) -> Ints:
        """Return where nodes move by the log-likelihood ratios that a partition shows.

        Without turns clusters move, and nodes do not.
        """
        a, b, cell = self.edges.sources, self.edges.targets, table.cell[self.kept]
        price, masses = float(np.log(self.edges.n_nodes)), np.zeros(self.edges.n_nodes)
        for _ in range(_ROUNDS):
            ratios = log_ratios(cell, labels[a] == labels[b], table.n_groups)
            labels = self.search(ratios[cell], masses, labels, price, turns)
        return labels

    def changed(self, labels: Ints, tables: list[Table]) -> list[Ints]:
        """Return what joins of clusters and moves of nodes make of a partition.

        That is by the table of one group, where groups say nothing, and by that of most groups.
        """
        changed = []
        for table in tables[:1] if len(tables) == 1 else (tables[0], tables[-1]):
            joined = self.joined(labels, table)
            changed += [joined, self.moved(joined, table), self.moved(labels, table)]
        return changed

    def variants(self, tables: list[Table]) -> list[Ints]:
        """Return partitions of many scales, and what joins and moves make of them.

        Those of too many clusters for a description are left out.
        """
        if self._variants is None:
            self._variants = []
            for source in self.sources:
                for gamma in _SCALES:
                    start = self.modularity(self.weights(source), gamma)
                    found = start, *self.changed(start, tables)
                    self._variants += [each for each in found if each.max() < MOST]
            self._variants = self._variants or [start]
        return self._variants

    def search(
        self,
        affinity: Floats,
        mass: Floats,
        start: Ints | None = None,
        price: float = 0.0,
        turns: int = TURNS,
    ) -> Ints:
        """Return the partition found, its tiny clusters joined to others."""
        data = np.empty(len(self.near.edges))
        at_places(affinity, self.near.edges, data)
        return search_communities(self.near, data, mass, self.order, start, price, turns, join=True)


def log_ratios(cell: Ints, together: Array, n_groups: int) -> Floats:
    """Return the log-ratio of every cell: how much likelier its weights are within clusters.

    Counts are smoothed towards the shares of bins among all edges of the group.
    """
    within, all_edges = (
        np.bincount(some, minlength=n_groups * BINS).reshape(-1, BINS).astype(np.float64)
        for some in (cell[together], cell)
    )
    prior = _SMOOTHING * all_edges / np.maximum(all_edges.sum(1, keepdims=True), 1)

    def log_shares(counts: Floats) -> Floats:
        total = counts.sum(1, keepdims=True) + _SMOOTHING
        shares: Floats = np.log(np.maximum(counts + prior, 1e-12) / total)
        return shares

    return (log_shares(within) - log_shares(all_edges - within)).ravel()


class Recipe(NamedTuple):
    """A candidate of high modularity."""

    source: Source
    gamma: float

    def search(self, view: View, start: Ints | None = None) -> Ints:
        """Return the partition in a view: from single nodes, or from one that was found before."""
        return view.modularity(view.weights(self.source), self.gamma, start)

    def with_all_edges(self, view: View, by_part: Sequence[Ints]) -> Ints:
        """Return the partition as all edges show it, given those that were found without a part.

        Of those that a search finds anew, or from what was found, the one that is most like all.
        """
        if len(by_part) == 1:
            return self.search(view, by_part[0])
        tries = [self.search(view, start) for start in (None, *by_part[:_STARTS])]
        return max(tries, key=lambda one: np.mean([agreement(one, other) for other in by_part]))


class Description(NamedTuple):
    """The candidate by which the weights in a view are described in the fewest nats."""

    tables: list[Table]
    """By the first, and by the last, clusters join and nodes move."""
    naming: float
    """The share of the nats to name the cluster of every node that counts."""

    def search(self, view: View) -> Ints:
        """Return the shortest of many; the best are changed as long as that shortens them."""
        length = partial(description_length, view, self.tables[-1], self.naming)
        best = sorted(view.variants(self.tables), key=length)[:_BEST]
        different = {each.tobytes(): each for each in best}.values()
        return min((self._shortened(view, each, length) for each in different), key=length)

    def _shortened(self, view: View, labels: Ints, length: Callable[[Ints], float]) -> Ints:
        while True:
            changed = min(view.changed(labels, self.tables), key=length)
            if length(changed) >= length(labels) - _ROUNDING:
                return labels
            labels = changed

    def with_all_edges(self, view: View, _: Sequence[Ints]) -> Ints:
        """Return the shortest description of all edges, whatever was found without a part."""
        return self.search(view)


def description_length(view: View, table: Table, share: float, labels: Ints) -> float:
    """Return the nats of the weights' bins, given clusters, and a share of those of the clusters.

    Nothing is known of the length if clusters are too many for a distribution of every pair.
    """
    n_clusters = int(labels.max()) + 1
    if n_clusters > MOST:
        return np.inf
    a, b = labels[view.edges.sources], labels[view.edges.targets]
    size = np.bincount(labels)
    naming = -float(size @ np.log(size / len(labels)))
    return share * naming - log_evidence_of(pair_counts(a, b, table.bins[view.kept], n_clusters))
