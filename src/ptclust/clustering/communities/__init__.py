"""Clusters of real graphs: candidates, judged by edges they have not seen.

Counts between real places have heavy tails, and a busy node has large weights to everyone. So

1.  weights are compressed, and compared with what the sizes of their two nodes make of them
    (``_weights``);
2.  partitions are sought by modularity at several resolutions, of the compressed weights and of the
    topology alone (``_search_kernel``), each without a part of the edges;
3.  that part is the judge (``_judge``): how many nats does "together or apart" say about weights,
    given what nodes alone make of them? How many it says about which edges exist counts as well,
    if the partition does not depend on the part left out: geometry makes edges predictable without
    there being clusters. The best is improved by searching with what was learned (``_trial``);
4.  the winner is shown if it is more than chance. Where two levels of weights explain more, it is
    the partition of ``contraction``;
5.  every cluster is searched in the same way, and clusters are joined where another candidate says
    so and the judge agrees: the levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering.clusterer import Clusterer, Clustering, Cost, Level
from ptclust.clustering.communities._levels import coarser_levels, finer_levels
from ptclust.clustering.communities._trial import Trial
from ptclust.clustering.communities._weights import Edges
from ptclust.clustering.contraction._partition_kernel import connected_pieces

if TYPE_CHECKING:
    from ptclust.published import Published

__all__ = ["CommunitiesClusterer"]

# Fewer edges hold no clusters that noise could not have made.
_SMALLEST = 12


class CommunitiesClusterer(Clusterer):
    """Clusters of graphs whose weights have heavy tails and whose nodes differ in size."""

    name = "communities"
    description = (
        "partitions were found without a part of the released weights, and the one was chosen that "
        "says most about that part, beyond what the sizes of the nodes say"
    )
    needs = "graph"
    cost = Cost(2_000_000, 500, 1.1)

    def cluster(self, published: Published) -> Clustering:
        """Cluster the published graph."""
        edges = Edges.of(published)
        a, b = edges.sources, edges.targets
        components, _ = connected_pieces(a, b, np.zeros(edges.n_nodes, np.int64))
        if len(a) < _SMALLEST:
            return Clustering(components)
        trial = Trial(edges)
        candidates = trial.candidates()
        topology = trial.best_of([each for each in candidates if each.of_topology])
        found = trial.best_of(candidates)
        found = trial.contracted(found)
        if found is None:
            return Clustering(components)

        chain = (*coarser_levels(trial, found, candidates), found)
        parts = [
            (each.labels, trial.support(each, coarser))
            for coarser, each in zip((None, *chain), chain, strict=False)
        ]
        parts += finer_levels(edges, found.labels)
        levels = tuple(Level(connected_pieces(a, b, part)[0], nats) for part, nats in parts)
        return Clustering(
            levels[len(chain) - 1].labels,
            levels=levels,
            topology_labels=None
            if topology is None
            else connected_pieces(a, b, topology.labels)[0],
        )
