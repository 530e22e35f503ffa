"""What is tried on graphs of very many edges: every search once, judged by a sample of the edges.

Of a million edges fifty thousand judge as well as all of them. So a part of that size is left
out, once, and nothing but the searches looks at all others: each kind of candidate is sought once,
at the finest resolution, and coarser ones begin with what was found. Only the winner is sought
again with all edges, from where it is. What nodes make of weights is learned from the edges that
are not left out. Levels are those that the candidates show.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._components import Adjacency, adjacency
from ptclust._kernel import kernel
from ptclust._statistics import agreement
from ptclust.clustering.communities._judge import BINS, Judge, limits_of
from ptclust.clustering.communities._trial import (
    NOISY,
    SMALLEST,
    STABLE,
    TIMES,
    Found,
    Trial,
    View,
    ratios_of_two_levels,
)
from ptclust.clustering.communities._weights import Edges, expected_by_size, quick_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ptclust._types import Array, Bools, Floats, Ints

#: With more edges than these a graph is large.
MANY = 200_000
# Edges that judge: a fifth, and at most so many.
_JUDGES = 50_000
# Resolutions, finest first.
_GAMMAS = 4.0, 1.0
# Sweeps over all nodes that fit two terms to each.
_SWEEPS = 4
#: Pseudo-edges that draw the terms of a node towards none.
PSEUDO = 1.0


class LargeTrial(Trial):
    """All that is tried on one large graph; ``edges`` are those that judge."""

    def __init__(self, edges: Edges) -> None:
        n_edges, n_nodes = len(edges.sources), edges.n_nodes
        random = np.random.default_rng(0)  # the same release gives the same labels
        is_kept = np.ones(n_edges, bool)
        is_kept[random.choice(n_edges, min(n_edges // 5, _JUDGES), replace=False)] = False
        self.edges = edges.at(np.flatnonzero(~is_kept))
        self.held = np.arange(len(self.edges.sources))
        self.folds = [self.held]
        self.within = np.zeros(n_nodes, np.int64)
        kept = edges.at(np.flatnonzero(is_kept))
        self.views = [_view(0, edges, random), _view(1, kept, random)]
        size = self.views[1].size(TIMES[0])
        self._expected = expected_by_size(self.edges, size)
        self.compressed = {TIMES[0]: self.edges.compressed(TIMES[0])}
        self._kept = Seen.of(self.views[1], size)
        self.judge: Judge = self._judge(self.held, self._kept)
        n_groups = self.judge.learned.n_groups
        self._limits = limits_of(self._expected, self.edges.similarity, n_groups)
        self._known: list[Found] = []

    def _judge(self, edges: Ints, seen: Seen) -> Judge:
        weights = self.compressed[TIMES[0]]
        return SampleJudge(self.edges.at(edges), weights[edges], self._expected[edges], seen)

    def candidates(self) -> list[Found]:
        """Return partitions of high modularity at every resolution."""
        for times in self.kinds:
            start: tuple[Ints | None, Ints | None] = None, None
            for gamma in _GAMMAS:
                search, others = self.by_modularity(times, gamma), []
                found = self.tried(search, start[1])._replace(of_topology=times is None)
                if found.of_topology:
                    again = search(self._begun(0, start[0]))
                    others = [found._replace(by_fold=(again,))]
                    start = again, found.labels
                elif not self.edges.is_complete:
                    start = None, found.labels
                self._known.append(self.credited(found, *others))
        return self._known

    def _begun(self, number: int, start: Ints | None) -> View:
        """Return a view in which searches move nodes in one turn, or only clusters of a start."""
        return self.views[number]._replace(start=start, turns=1 if start is None else 0)

    @property
    def kinds(self) -> tuple[float | None, ...]:
        """The units beyond which weights are compressed: many if they are noise for the most part.

        Noise averages out if weights count as they are.
        """
        times = TIMES[self.edges.noise_share > NOISY]
        return (times,) if self.edges.is_complete else (times, None)

    def tried(self, search: Callable[[View], Ints], start: Ints | None = None) -> Found:
        """Search without the edges that judge, and ask these about weights."""
        labels = search(self._begun(1, start))
        together = self.together([labels])
        weights = self.judge.weights_tell(together, self.held)
        return Found(labels, (labels,), together, weights, search=search)

    def two_levels(self, view: View) -> Floats:
        """Return the log-likelihood ratios of two levels of weights."""
        return ratios_of_two_levels(view.edges)

    def cells(self, view: View) -> Array:
        """Return the cell of every edge in the table by which ratios are learned."""
        some, size = view.edges, self.views[1].size(TIMES[0])
        ends, bins = self._limits
        return cells_of(some.sources, some.targets, size, some.similarity, np.sinh(ends), bins)

    def explained(self, found: Found, within: Found | None = None) -> float:  # noqa: ARG002
        """Return what weights say that have not been seen: there are enough of them."""
        return found.weights

    def improved(self, found: Found) -> Found:
        """Search anew with what was learned, once; weights have to agree as well."""
        if found.weights <= 0:
            return found
        better = self.credited(self.tried(partial(self.by_ratios, of=found, anew=True)), found)
        agrees = better.weights >= found.weights and better.nats > found.nats
        return better if agrees and self.is_clear(better) else found

    def short_search(self) -> Found:
        """Return the better of two partitions by two levels of weights.

        In one, only clusters of the topology are joined: where noise is large, single nodes cannot
        tell where they belong, and many edges between clusters can.
        """
        tries = [self.tried(self.by_two_levels)]
        starts = (each.labels for each in self._known if each.of_topology)
        tries += [self.tried(self.by_two_levels, start)._replace(search=None) for start in starts]
        return max(tries, key=lambda each: each.weights)

    def contracted(self, best: Found | None) -> Found | None:
        """Return the partition of two levels if weights support it more, found with all edges."""
        found = super().contracted(best)
        if found is None or found.search is None:
            return found
        return found._replace(labels=found.search(self.views[0]._replace(start=found.labels)))

    def is_stable(self, found: Found) -> bool:
        """Return whether a search with all edges, in another order, finds the partition again."""
        if found.is_stable or found.search is None:
            return found.is_stable
        anew = self.views[0]._replace(start=np.arange(self.edges.n_nodes), turns=1)
        return agreement(found.search(anew), found.labels) >= STABLE

    def _refined(self, short: Found) -> Found:
        return short

    def judge_across(self, found: Found, edges: Ints) -> Judge:
        """Return a judge that compares edges across clusters of a partition among each other."""
        return self._judge(edges, self._kept.some(found.by_fold[0], is_within=False))

    def divided(self, labels: Ints) -> tuple[Trial, list[Found]] | None:
        """Return what was found already, to be compared within each cluster of a partition."""
        a, b = self.edges.sources, self.edges.targets
        within = np.flatnonzero(labels[a] == labels[b])
        if len(within) < SMALLEST:
            return None
        trial = copy(self)
        trial.edges, trial.held = self.edges.at(within), np.arange(len(within))
        trial.judge = self._judge(within, self._kept.some(labels, is_within=True))
        return trial, [each._replace(together=each.together[within]) for each in self._known]


def _view(number: int, edges: Edges, random: np.random.Generator) -> View:
    near = adjacency(edges.sources, edges.targets, edges.n_nodes)
    order = random.permutation(edges.n_nodes)
    return View(number, edges, np.empty(0, np.int64), near, order, {}, {}, fit=quick_sizes)


class Seen(NamedTuple):
    """Edges that do not judge, from which it is learned what nodes make of those that do."""

    near: Adjacency
    expected: Array
    """What is expected of the edge at every place of the adjacency, ..."""
    excess: Array
    """... its weight beyond that, ..."""
    counts: Bools
    """... and whether it is one of those that are compared."""

    @classmethod
    def of(cls, view: View, size: Floats) -> Seen:
        """Return all edges of a view."""
        near, weights = view.near, view.compressed(TIMES[0]).astype(np.float32)
        expected = expected_by_size(view.edges, size).astype(np.float32)
        weights -= expected
        everywhere = np.ones(len(near.edges), bool)
        return cls(near, expected[near.edges], weights[near.edges], everywhere)

    def some(self, labels: Ints, *, is_within: bool) -> Seen:
        """Return the edges within clusters, or those across."""
        return self._replace(counts=self.together(labels) == is_within)

    def together(self, labels: Ints) -> Bools:
        """Return for every place whether both ends are in one cluster."""
        return together_at_places(self.near.indptr, self.near.neighbours, labels)

    def beyond_nodes(self, seen: Array, values: Array, expected: Floats, some: Edges) -> Floats:
        """Return values of some edges less what their two nodes make of them.

        That is one term a node, constant, and one in proportion to the expectation, as they fit the
        ``seen`` values.
        """
        near = self.near
        mean, constant, slope = fit_node_terms(
            near.indptr, near.neighbours, seen, self.expected, self.counts, _SWEEPS
        )
        a, b = some.sources, some.targets
        return values - mean - constant[a] - constant[b] - expected * (slope[a] + slope[b])


class SampleJudge(Judge):
    """Asks a sample of the edges, knowing all others."""

    def __init__(self, edges: Edges, weights: Floats, expected: Floats, seen: Seen) -> None:
        self._seen = seen
        super().__init__(edges, weights, expected)

    def _excess(self, weights: Floats) -> Floats:
        excess = weights - self._expected
        return self._seen.beyond_nodes(self._seen.excess, excess, self._expected, self._edges)

    def _companions(self, together: Bools, by_fold: Sequence[Ints]) -> Floats:
        seen = self._seen.together(by_fold[0])
        return self._seen.beyond_nodes(seen, together, self._expected, self._edges)


@kernel
def cells_of(
    sources: Array, targets: Array, size: Floats, weights: Floats, ends: Floats, bins: Floats
) -> Array:
    """Return the cell of every edge in a table.

    Groups ``ends`` at these products of sizes, and ``bins`` at these weights in every group.
    """
    cells = np.empty(len(sources), np.int16)
    for edge in range(len(sources)):
        product, group, place = size[sources[edge]] * size[targets[edge]], 0, 0
        while group < len(ends) and product > ends[group]:
            group += 1
        while place < BINS - 1 and weights[edge] > bins[group, place]:
            place += 1
        cells[edge] = group * BINS + place
    return cells


@kernel
def together_at_places(indptr: Ints, indices: Array, labels: Ints) -> Bools:
    """Return for every place of an adjacency whether both ends are in one cluster."""
    together = np.empty(len(indices), np.bool_)
    for node in range(len(indptr) - 1):
        for place in range(indptr[node], indptr[node + 1]):
            together[place] = labels[indices[place]] == labels[node]
    return together


@kernel
def fit_node_terms(
    indptr: Ints, indices: Array, values: Array, expected: Array, counts: Bools, sweeps: int
) -> tuple[float, Floats, Floats]:
    """Return the mean of the values that count, and two terms a node that explain the rest.

    The value of an edge is the mean, plus the constants of its nodes, plus its expectation times
    the sum of their slopes. Nodes are fitted one after the other, given the others.
    """
    n_nodes = len(indptr) - 1
    constant, slope = np.zeros(n_nodes), np.zeros(n_nodes)
    n_counted, mean, square = 0, 0.0, 0.0
    for place in range(len(indices)):
        if counts[place]:
            n_counted += 1
            mean += values[place]
            square += expected[place] ** 2
    if n_counted == 0:
        return 0.0, constant, slope
    mean, square = mean / n_counted, square / n_counted + 1e-12
    for _ in range(sweeps):
        for node in range(n_nodes):
            ones, by_expected, squares = PSEUDO, 0.0, PSEUDO * square
            total, slanted = 0.0, 0.0
            for place in range(indptr[node], indptr[node + 1]):
                if counts[place]:
                    other, by = indices[place], expected[place]
                    rest = values[place] - mean - constant[other] - by * slope[other]
                    ones += 1.0
                    by_expected += by
                    squares += by * by
                    total += rest
                    slanted += by * rest
            determinant = ones * squares - by_expected * by_expected
            constant[node] = (total * squares - slanted * by_expected) / determinant
            slope[node] = (slanted * ones - total * by_expected) / determinant
    return mean, constant, slope
