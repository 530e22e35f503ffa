"""Two levels of weights, within clusters and across, in place of the sizes of nodes.

Short searches say whether weights that they have not seen support two levels as much as the best
partition by modularity. If so, few edges are contracted; of many, blocks are sought, in which every
pair of clusters may have a level of its own. Where noise is large single nodes cannot tell where
they belong: then patches, clusters of the topology, are joined by the many edges between them.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from ptclust._statistics import agreement, majority
from ptclust.clustering.communities._blocks import Blocks
from ptclust.clustering.communities._judge import CUTS
from ptclust.clustering.communities._trial import CLEAR, GAMMAS, STABLE, Found, Trial, View
from ptclust.clustering.contraction import contract

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptclust._types import Floats, Ints

#: Up to so many edges contraction sees all of them: without some, long thin clusters fall apart. In
#: more, blocks of patches are sought and judged by edges not seen.
FEW_TO_CONTRACT = 20_000
# At a resolution of one in so many edges, patches of the topology have some thousand ends of edges,
# or five hundred: enough to tell where they belong in much noise, and few enough to lie in one
# cluster. Blocks are sought of so many partitions into patches at most.
_PATCHES, _SIZES = (14_000, 5_600), 4
# Two levels of weights are taken if they say this part of what the best partition says; it may stay
# if it says this part of what they say.
_NEARLY = 0.8
# Patches, or nodes, that are joined to what says less than this part of the best know too little.
_KNOWING = 0.5


class TwoLevels:
    """Partitions by two levels of weights, of the graph of a trial, which judges them."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def instead_of(self, best: Found | None) -> Found | None:
        """Return the partition of two levels of weights if these say as much as the best one.

        Nearly as much, of weights that neither has seen: long thin clusters fall apart without some
        of their edges. A stable one stays if topology says more about it than weights about two
        levels, and more than about these, and weights nearly as much: arcs of two moons are stable
        in a dense topology, but weights support the moons.
        """
        trial, short = self._trial, self.short_search()
        if trial.deviations(short) < CLEAR:
            return best
        if best is not None:
            least = short.weights + trial.topology_tells(short)
            is_of_topology = best.topology > short.weights and best.nats >= least
            is_known = best.weights >= _NEARLY * short.weights
            if is_of_topology and is_known and trial.is_stable(best):
                return best
            if short.weights < _NEARLY * best.weights:
                return best
        return self._best_blocks(short) if self._has_many else self._contracted(short)

    def short_search(self) -> Found:
        """Return the best partition by two levels of weights that short searches find.

        In one, nodes move; in others, patches are joined.
        """
        found = max([self._by_nodes, *self._joined_patches], key=lambda each: each.weights)
        return self._moved(found) if self._has_many else found

    @property
    def _has_many(self) -> bool:
        """Whether there are so many edges that some can be held back from every search."""
        return self._trial.n_edges > FEW_TO_CONTRACT

    def search(self, view: View) -> Ints:
        """Return the likeliest partition if weights have two levels, within and across."""
        n_nodes = view.edges.n_nodes
        ratios = self._trial.two_levels(view)
        return view.search(ratios, np.zeros(n_nodes), None, float(np.log(n_nodes)) / 2)

    @cached_property
    def _by_nodes(self) -> Found:
        return self._trial.tried(self.search)

    @cached_property
    def _joined_patches(self) -> list[Found]:
        return [self._trial.joined(self.search, each) for each in self.patches]

    @cached_property
    def patches(self) -> list[Found]:
        """Partitions of the topology whose clusters may be joined by weights, coarsest first."""
        trial = self._trial
        found = [each for each in trial.known if each.of_topology]
        n_edges = len(trial.views[0].edges.sources) if found else 0
        finer = [n_edges / each for each in _PATCHES]
        searches = (trial.by_modularity(None, each) for each in finer if each > GAMMAS[-1])
        return [*found, *map(trial.tried, searches)]

    def _contracted(self, short: Found) -> Found:
        """Return what contraction makes of two levels, if it explains more than the short search.

        It is sought on all edges alone, and has seen them: so has the short search, if its nodes
        are moved until none gains.
        """
        trial = self._trial
        found = short._replace(labels=_contract(trial.whole), by_fold=())
        is_finer = found.labels.max() > short.labels.max()
        if is_finer and trial.explained(found, within=short) > 0:
            return found
        moved = self.search(trial.whole._replace(start=short.labels))
        others = short, short._replace(labels=moved)
        return found if trial.explained(found) >= max(map(trial.explained, others)) else short

    def _best_blocks(self, short: Found) -> Found:
        """Return the best of the short search, blocks of patches and contraction of nodes, moved.

        Patches that weights join to nothing that is worth half the short search lie across
        clusters; nodes of which that is true know too little.
        """
        least = _KNOWING * short.weights
        pairs = zip(self.patches, self._joined_patches, strict=True)
        asked = [each for each, joined in pairs if joined.weights >= least]
        searches: list[Callable[[View], Ints]] = [
            partial(self.blocks, of=each) for each in asked[-_SIZES:]
        ]
        if self._trial.contracts_nodes and self._by_nodes.weights >= least:
            searches.append(_contract)
        found = map(self._trial.tried, searches)
        return self._moved(_central(max([short, *found], key=self.blocks_tell)))

    def _moved(self, found: Found) -> Found:
        """Move nodes by weights and topology together, as long as unseen weights agree."""
        told = self.blocks_tell(found)
        while True:
            better = self._trial.tried(partial(self._trial.by_ratios, of=found, anew=False))
            before, told = told, self.blocks_tell(better)
            if told <= before:
                return found
            found = better

    def blocks_tell(self, found: Found) -> float:
        """Return by how many nats unseen weights support clusters that may differ in their levels.

        Edges within and across are told apart, or clusters as well, or all pairs of clusters: of
        nested levels, those across some are as large as those within others. Clusters that were
        found without different parts are the same if most of their nodes are together with all.
        """
        trial = self._trial
        ends = np.zeros((2, len(trial.edges.sources)), np.int64)
        for held, labels in zip(trial.folds, found.by_fold, strict=True):
            some, same = trial.edges.at(held), majority(labels, found.labels)
            ends[:, held] = same[some.sources], same[some.targets]
        a, b = ends[:, trial.held]
        nats = trial.judge.blocks_tell(a, b, trial.held)
        return float(np.logaddexp.reduce(nats) - np.log(len(nats)))

    def blocks(self, view: View, *, of: Found) -> Ints:
        """Return the blocks whose patches are the clusters of another partition."""
        patch = (of.labels, *of.by_fold)[view.number]
        bins = np.searchsorted(self._cuts, view.edges.similarity)
        labels: Ints = Blocks(view.edges, patch, bins).search()[patch]
        return labels

    @cached_property
    def _cuts(self) -> Floats:
        """Where bins of weights end, but for the last."""
        cuts: Floats = np.quantile(self._trial.edges.similarity, CUTS)
        return cuts


def _central(found: Found) -> Found:
    """Return what was found, as the parts of the edges have it if they agree, and all edges do not.

    Then these led the search elsewhere, and the partition is the one of a part that agrees most
    with the others.
    """
    parts = found.by_fold
    alike = np.array([[agreement(one, other) for other in parts] for one in parts])
    alone = np.mean([agreement(found.labels, each) for each in parts])
    if alone >= STABLE or alike.mean() < STABLE:
        return found
    return found._replace(labels=parts[int(np.argmax(alike.sum(0)))])


def _contract(view: View) -> Ints:
    """Return what contraction of single nodes finds."""
    some = view.edges
    a, b = (ends.astype(np.int64) for ends in (some.sources, some.targets))
    return contract(a, b, some.distance, some.n_nodes, some.noise)
