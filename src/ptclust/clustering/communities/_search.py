"""The search: candidates for a partition, from the edges that a part of the graph leaves to see.

A candidate is a recipe. It is carried out without each part of the edges, and that part is its
judge; the best is carried out with all edges.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ptclust._components import Adjacency, adjacency
from ptclust.clustering.communities._blocks import MOST, join_blocks
from ptclust.clustering.communities._model import BINS, Edges, Table
from ptclust.clustering.communities._search_kernel import (
    TURNS,
    at_places,
    search_communities,
)

if TYPE_CHECKING:
    from ptclust._types import Array, Floats, Ints

Source = Literal["log weights", "weights", "topology"]
#: Resolutions of modularity: the usual one and its neighbours first.
RESOLUTIONS = 1.0, 2.0, 0.5, 5.0, 3.0, 1.4, 0.7, 0.35
# Rounds of learning, and pseudo-edges that smooth what is learned of a bin.
_ROUNDS, _SMOOTHING = 2, 4.0


class View:
    """Edges that a search sees: all, or those that are not held back."""

    def __init__(
        self, edges: Edges, kept: Ints | slice, order: Array, within: Ints | None = None
    ) -> None:
        self.edges = edges if isinstance(kept, slice) else edges.at(kept)
        self.kept, self.order, self._within = kept, order, within

    @cached_property
    def near(self) -> Adjacency:
        """The edges at every node."""
        return adjacency(self.edges.sources, self.edges.targets, self.edges.n_nodes)

    @cached_property
    def degree(self) -> Floats:
        """Number of edges at every node."""
        return np.diff(self.near.indptr).astype(np.float64)

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


#: What modularity is searched in: compressed weights, weights as they are, the topology alone.
SOURCES: tuple[Source, ...] = "log weights", "weights", "topology"


class Recipe(NamedTuple):
    """How a candidate is found: by modularity, and maybe joined by what its own weights show."""

    source: Source
    gamma: float
    table: Table | None = None
    """By which clusters are joined, if they are."""
    moves: Table | None = None
    """By which nodes move afterwards, if they do."""

    def search(self, view: View, start: Ints | None = None) -> Ints:
        """Return the partition in a view: from single nodes, or from one that was found before."""
        if self.table is None or start is None:
            start = view.modularity(view.weights(self.source), self.gamma, start)
        return self.learn(view, start)

    def learn(self, view: View, labels: Ints) -> Ints:
        """Return what becomes of a partition by what its own weights show, if that is learned."""
        if self.table is not None:
            labels = view.joined(labels, self.table)
        if self.moves is not None:
            labels = view.moved(labels, self.moves)
        return labels
