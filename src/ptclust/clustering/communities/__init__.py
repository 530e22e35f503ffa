"""Clusters of released graphs: candidates, judged by weights they have not seen.

1.  *Model* (``_model``): given the sizes of its nodes, a weight has one distribution within
    clusters and another across.
2.  *Search* (``_search``): candidates have high modularity, in weights, compressed weights or the
    topology alone, at several resolutions; some are joined by what their own weights show.
3.  *Judge* (``_judge``): each is found without a part of the edges. How many nats does it say about
    the weights of that part?
4.  *Test* (``_test``): the best is shown if weights support it beyond what the public topology
    gives alone, by three standard errors. Else that is shown, marked as such.

docs/methods/communities.md has all formulas.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ptclust._components import connected_pieces
from ptclust.clustering.clusterer import Clusterer, Clustering, Cost, Evidence, Level
from ptclust.clustering.communities._model import Edges
from ptclust.clustering.communities._trial import Found, Trial

if TYPE_CHECKING:
    from ptclust._types import Ints
    from ptclust.mechanisms.mechanism import Publishes
    from ptclust.published import Published

__all__ = ["CommunitiesClusterer"]

# Fewer edges hold no clusters that noise could not have made.
_SMALLEST = 12
# With this many times the edges of a tree, some can be held back.
_ENOUGH = 1.5
# With this many times the edges of a tree, averages over edges say more than single ones.
_REDUNDANCY = 2
# Levels below the default one, at most.
_FINER = 2


class CommunitiesClusterer(Clusterer):
    """Clusters of graphs whose weights have heavy tails and whose nodes differ in size."""

    name = "communities"
    description = (
        "partitions were found without a part of the released weights, and the one was chosen that "
        "says most about that part, beyond what the sizes of the nodes say"
    )
    needs = "graph"
    cost = Cost(4_000_000, 600, 1.05)

    def visible_gap(self, n_nodes: int, n_edges: int, n_tree_edges: int | None = None) -> float:
        """Return the gap that averages see, if there are enough edges, and else that of one edge.

        An average sees about d edges of every node, d being the mean degree, and the distribution
        of m weights; the constants are measured on planted graphs of two levels.
        """
        tree = n_nodes - 1 if n_tree_edges is None else n_tree_edges
        if not n_edges or n_edges < _REDUNDANCY * tree:
            return super().visible_gap(n_nodes, n_edges, n_tree_edges)
        return max(7.0 / math.sqrt(2.0 * n_edges / n_nodes), 8.0 / float(n_edges**0.25))

    def suits(self, publishes: Publishes, n_edges: int, n_tree_edges: int) -> bool:
        """Return whether all weights are released, and enough of them to hold some back."""
        return publishes == "graph" and n_edges >= _SMALLEST and n_edges >= _ENOUGH * n_tree_edges

    def cluster(self, published: Published) -> Clustering:
        """Cluster the published graph."""
        edges = Edges.of(published)
        components = published.topology.components.astype(np.int64)
        if edges.n_edges < _SMALLEST:
            return Clustering(components)
        trial, found, is_settled = _found(edges)
        if found is None:
            return Clustering(
                components, evidence=Evidence("none"), description=(self.description, _NOTHING)
            )
        labels = trial.with_all_edges(found)
        shown = _pieces(edges, labels)
        evidence = trial.evidence(found, shown)
        if not evidence.has_weights:
            return Clustering(
                shown,
                topology_labels=shown,
                evidence=evidence,
                description=(self.description, _TOPOLOGY_ALONE),
            )
        parts = [(labels, found.nats), *([] if is_settled else _finer(edges, labels))]
        levels = tuple(Level(_pieces(edges, part), nats) for part, nats in parts)
        alone = trial.topology
        return Clustering(
            shown,
            levels=levels,
            topology_labels=None if alone is None else _pieces(edges, trial.with_all_edges(alone)),
            evidence=evidence,
        )


_NOTHING = (
    "one cluster is the answer: no partition says more about weights that it has not seen than "
    "chance would, and the topology has no clusters either"
)
_TOPOLOGY_ALONE = (
    "weights that no partition has seen support none beyond chance: the clusters are those of the "
    "public topology alone, and no record has a part in them"
)


def _pieces(edges: Edges, labels: Ints) -> Ints:
    """Return the connected pieces of clusters, numbered by first appearance."""
    return connected_pieces(edges.sources, edges.targets, labels)


def _found(edges: Edges) -> tuple[Trial, Found | None, bool]:
    """Return the best partition, what it was tried on, and whether all searches found the same."""
    first = Trial(edges, one_part=True)
    settled = first.settled()
    if settled is not None:
        return first, settled, True
    trial = first if first.is_large else Trial(edges)
    return trial, trial.best(), False


def _finer(edges: Edges, labels: Ints) -> list[tuple[Ints, float]]:
    """Return ever finer partitions, and by how many nats each is supported over the one before.

    Every cluster is searched as the graph was, all at once, without the edges across.
    """
    levels: list[tuple[Ints, float]] = []
    while len(levels) < _FINER:
        inside = edges.at(np.flatnonzero(labels[edges.sources] == labels[edges.targets]))
        if inside.n_edges < _SMALLEST:
            break
        trial = Trial(inside, within=labels)
        found = trial.best()
        if found is None or found is trial.topology:
            break
        part = trial.with_all_edges(found)
        _, divided = np.unique(labels * (part.max() + 1) + part, return_inverse=True)
        if divided.max() == labels.max():
            break
        levels.append((divided, found.nats))
        labels = divided
    return levels
