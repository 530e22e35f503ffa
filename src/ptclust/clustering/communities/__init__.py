"""Clusters of real graphs: candidates, judged by edges they have not seen.

Counts between real places have heavy tails, and a busy node has large weights to everyone. So

1.  weights are compressed, and compared with what the sizes of their two nodes make of them
    (``_weights``);
2.  partitions are sought by modularity at several resolutions, of the compressed weights and of the
    topology alone (``_search_kernel``), each without a part of the edges;
3.  that part is the judge (``_judge``): how many nats does "together or apart" say about weights,
    given what nodes alone make of them? How many it says about which edges exist counts as well,
    if the partition does not depend on the part left out, or weights know of it: geometry makes
    edges predictable without there being clusters. The best is improved by searching with what was
    learned (``_trial``);
4.  the winner is shown if it is more than chance. Where two levels of weights explain more
    (``_two_levels``), it is the partition of ``contraction``, or in many edges of ``_blocks``, if
    the judge agrees;
5.  every cluster is searched in the same way, and clusters are joined where another candidate says
    so and the judge agrees: the levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering.clusterer import Clusterer, Clustering, Cost, Level
from ptclust.clustering.communities._large import MANY, LargeTrial
from ptclust.clustering.communities._levels import coarser_levels, finer_levels
from ptclust.clustering.communities._trial import CLEAR, NOISY, Found, Trial
from ptclust.clustering.communities._two_levels import TwoLevels
from ptclust.clustering.communities._weights import Edges
from ptclust.clustering.contraction import ContractionClusterer
from ptclust.clustering.contraction._partition_kernel import connected_pieces

if TYPE_CHECKING:
    from ptclust.mechanisms.mechanism import Publishes
    from ptclust.published import Published

__all__ = ["CommunitiesClusterer"]

# Fewer edges hold no clusters that noise could not have made.
_SMALLEST = 12
# With more edges than these, a part of them may show already that all searches find the same.
_MAY_BE_CLEAR = 20_000
# With this many times the edges of a tree, some can be held back.
_ENOUGH = 1.5
# Partitions that are asked how far from clear they are, and standard errors that hint at something.
_ASKED, _HINT = 5, 1.0


_TWO_LEVELS = ContractionClusterer()


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
        """Return the gap that averages see: of two levels of weights, that of contraction."""
        return _TWO_LEVELS.visible_gap(n_nodes, n_edges, n_tree_edges)

    def suits(self, publishes: Publishes, n_edges: int, n_tree_edges: int) -> bool:
        """Return whether all weights are released, and enough of them to hold some back."""
        return publishes == "graph" and n_edges >= _SMALLEST and n_edges >= _ENOUGH * n_tree_edges

    def cluster(self, published: Published) -> Clustering:
        """Cluster the published graph."""
        edges = Edges.of(published)
        a, b = edges.sources, edges.targets
        components = published.topology.components.astype(np.int64)
        if len(a) < _SMALLEST:
            return Clustering(components)
        trial, candidates = _tried(edges)
        best = trial.best_of(candidates)
        best = best if trial.asks_no_more(best) else TwoLevels(trial).instead_of(best)
        found = trial.with_all_edges(best)
        if found is None:
            return Clustering(
                components, description=(self.description, _nothing(trial, candidates))
            )
        chain = (*coarser_levels(trial, found, candidates), found)
        parts = [
            (each.labels, trial.support(each, coarser))
            for coarser, each in zip((None, *chain), chain, strict=False)
        ]
        parts += finer_levels(trial, found.labels)
        levels = tuple(Level(connected_pieces(a, b, part)[0], nats) for part, nats in parts)
        alone = trial.best_by_topology(candidates)
        return Clustering(
            levels[len(chain) - 1].labels,
            levels=levels,
            topology_labels=None if alone is None else connected_pieces(a, b, alone)[0],
        )


def _tried(edges: Edges) -> tuple[Trial, list[Found]]:
    """Return what is tried on a graph: little, where that is clear, or all there is time for."""
    if len(edges.sources) > _MAY_BE_CLEAR:
        large = LargeTrial(edges)
        candidates = large.candidates()
        if len(edges.sources) > MANY or large.is_settled:
            return large, candidates
    trial = Trial(edges)
    return trial, trial.candidates()


def _nothing(trial: Trial, candidates: list[Found]) -> str:
    """Say that nothing was found, by how much, and at which epsilon it might have been.

    Where weights differ by noise mostly, standard errors shrink as epsilon grows, in proportion.
    """
    most = sorted(candidates, key=lambda each: -each.nats)[:_ASKED]
    seen = max(trial.deviations(each) for each in most)
    found = (
        "one cluster is the answer: no partition says more about weights that it has not seen than "
        f"chance would (the best {seen:.1f} standard errors, {CLEAR:g} are asked)"
    )
    if trial.edges.noise_share < NOISY:
        return f"{found}; as noise is a small part of the weights, a larger epsilon may not help"
    if seen < _HINT:
        return f"{found}, and nothing hints at what a larger epsilon would show"
    return f"{found}; if what it shows is real, {CLEAR / seen:.2g} times the epsilon would show it"
