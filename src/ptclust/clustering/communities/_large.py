"""What is tried on graphs of very many edges: every search once, judged by a sample of the edges.

Of a million edges fifty thousand judge as well as all of them. So a part of that size is left
out, once, and nothing but the searches looks at all others: each kind of candidate is sought once,
at the finest resolution, and coarser ones begin with what was found. Where weights and topology,
at every resolution, give one and the same partition, no other is sought. Only the winner is sought
again with all edges, from where it is. What nodes make of weights is learned from the edges that
are not left out. Levels are those that the candidates show.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._components import Adjacency, adjacency, unsigned
from ptclust._kernel import kernel
from ptclust._statistics import agreement
from ptclust.clustering.communities._judge import BINS, Judge, limits_of
from ptclust.clustering.communities._trial import (
    CLEAR,
    NOISY,
    SMALLEST,
    STABLE,
    TIMES,
    Found,
    Trial,
    View,
)
from ptclust.clustering.communities._weights import (
    Edges,
    expected_by_size,
    quick_sizes,
    ratios_of_two_levels,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ptclust._types import Array, Bools, Floats, Ints

#: With more edges than these a graph is large.
MANY = 200_000
# Edges that judge: a fifth, and at most so many.
_JUDGES = 50_000
# Resolutions, finest first.
_GAMMAS = 4.0, 1.0
# Agreement (ARI) of partitions that are one and the same.
_SAME = 0.99
# If the edges that judge are this part of all, a search with them says nothing new.
_NOTHING_NEW = 0.01
# Nodes are looked at in random order, but so many neighbouring ones in a row: memory is read so.
_ROW = 64
# Sweeps over all nodes that fit two terms to each, and then over those that are asked for.
_SWEEPS = 1, 2
#: Pseudo-edges that draw the terms of a node towards none.
PSEUDO = 1.0
ONE = np.uint64(1)


class LargeTrial(Trial):
    """All that is tried on one large graph; ``edges`` are those that judge."""

    contracts_nodes = False

    def __init__(self, edges: Edges) -> None:
        n_edges, n_nodes = len(edges.sources), edges.n_nodes
        random = np.random.default_rng(0)  # the same release gives the same labels
        is_kept = np.ones(n_edges, bool)
        is_kept[random.choice(n_edges, min(n_edges // 5, _JUDGES), replace=False)] = False
        self.edges = edges.at(~is_kept)
        self.held = np.arange(len(self.edges.sources))
        self.folds = [self.held]
        self.within = np.zeros(n_nodes, np.int64)
        self._all, self._random = edges, random
        self.views = [_view(1, edges.at(is_kept), random)]
        self._placed: dict[tuple[int, float], Array] = {}
        size = self.views[0].size(TIMES[0])
        self._expected = expected_by_size(self.edges, size)
        self.compressed = {TIMES[0]: self.edges.compressed(TIMES[0])}
        self._kept = Seen.of(self.views[0], self._at_places(self.views[0], TIMES[0]), size)
        self.judge: Judge = self._judge(self.held, self._kept)
        n_groups = self.judge.learned.n_groups
        self._limits = limits_of(self._expected, self.edges.similarity, n_groups)
        self.known: list[Found] = []
        self._ratios: dict[int, Floats] = {}

    @property
    def n_edges(self) -> int:
        """Number of edges, those that judge included."""
        return len(self._all.sources)

    @cached_property
    def whole(self) -> View:  # type: ignore[override]
        """All edges, for the few searches that see them."""
        return _view(0, self._all, self._random)

    def _judge(self, edges: Ints, seen: Seen) -> Judge:
        weights = self.compressed[TIMES[0]]
        return SampleJudge(self.edges.at(edges), weights[edges], self._expected[edges], seen)

    def candidates(self) -> list[Found]:
        """Return partitions of high modularity at every resolution."""
        view = self.views[0]
        by_weights = self._chain(self._times, view)
        if self.edges.is_complete:
            self.known = by_weights
            return by_weights
        by_topology = self._confirmed(by_weights) or self._chain(None, view)
        # Weights looked at nodes in another order: what they agree with is no accident of it.
        pairs = list(zip(by_weights, by_topology, strict=True))
        alone = [self.credited(*pair[::-1]) for pair in pairs]
        if not all(each.is_stable for each in alone):
            again = self._chain(None, self.whole)
            alone = [self.credited(t, w, o) for (w, t), o in zip(pairs, again, strict=True)]
        self.known = [self.credited(*pair) for pair in pairs] + alone
        return self.known

    def _confirmed(self, by_weights: list[Found]) -> list[Found]:
        """Return the partitions of weights, as the topology has them; none if it changes them.

        Of clusters that weights show clearly the topology is asked whether it would move a node.
        """
        confirmed: list[Found] = []
        for gamma, found in zip(_GAMMAS, by_weights, strict=True):
            if found.weights <= 0 or found.deviations() < CLEAR:
                return []
            start = self.views[0]._replace(start=found.labels, turns=1)
            moved = self.tried(self.by_modularity(None, gamma), start, by_weights + confirmed)
            if moved.agreement(found) < _SAME:
                return []
            confirmed.append(moved._replace(of_topology=True))
        return confirmed

    def _chain(self, times: float | None, view: View) -> list[Found]:
        """Return a partition at every resolution; on sparse graphs each begins with the finer."""
        chain: list[Found] = []
        if times is None:
            view = view._replace(order=_order(self.edges.n_nodes, self._random))
        for gamma in _GAMMAS:
            start = chain[-1].labels if chain and not self.edges.is_complete else None
            found = self.tried(self.by_modularity(times, gamma), _begun(view, start), chain)
            chain.append(found._replace(of_topology=times is None))
        return chain

    @property
    def _times(self) -> float:
        """The units beyond which weights are compressed: many if they are noise for the most part.

        Noise averages out if weights count as they are.
        """
        return TIMES[self.edges.noise_share > NOISY]

    def tried(
        self,
        search: Callable[[View], Ints],
        view: View | None = None,
        known: Sequence[Found] = (),
    ) -> Found:
        """Search without the edges that judge, and ask these about weights.

        Nothing is asked again about a partition that is known.
        """
        labels = search(_begun(self.views[0]) if view is None else view)
        same = (each for each in known if np.array_equal(each.labels, labels))
        found = next(same, None) or self.found(labels, (labels,))
        return found._replace(search=search)

    def beyond_chance(self, found: Found) -> float:
        """Return standard errors, less what weights that know nothing give.

        What nodes make of edges is learned from those that the search has seen. If noise makes a
        node heavy there, it is joined to more of its neighbours there, and neither is so among the
        edges that judge: chance has standard errors as well, as many as the search makes of the
        same weights, exchanged. What the topology agrees with is not made by chance.
        """
        seen = found.deviations()
        if seen > 0 >= found.weights:
            return 0.0  # nor is it more than chance where weights themselves say nothing
        if abs(seen) < CLEAR or found.of_topology or self._is_same(found):
            return seen
        by_chance, n_exchanges = self._by_chance
        beyond = max(abs(seen) - by_chance, 0.0) / np.sqrt(1 + 1 / n_exchanges)
        return float(np.sign(seen) * beyond)

    @cached_property
    def _by_chance(self) -> tuple[float, int]:
        """Standard errors of what is found in weights exchanged, once, among like edges."""
        size, (ends, _) = self.views[0].size(TIMES[0]), self._limits
        group = np.searchsorted(ends, expected_by_size(self._all, size)).astype(np.uint8)
        trial = LargeTrial(self._all.exchanged(group, np.random.default_rng(1)))
        search = trial.by_modularity(self._times, _GAMMAS[0])
        return abs(trial.tried(search).deviations()), 1

    def over_pairs(self, view: View, *, times: float | None, gamma: float) -> Ints:
        """Return the partition of highest modularity; weights are put at their places once.

        The first turn, which begins with single nodes and takes longest, looks at heavy edges only.
        """
        data = self._at_places(view, times)
        if times == TIMES[0] and view.start is None and view.number == 1:
            near, heavy = self._kept.heavier(data)
            begun = view._replace(near=near, turns=1)
            view = view._replace(start=_by_pairs(begun, heavy, gamma), turns=1)
        return _by_pairs(view, data, gamma)

    def _at_places(self, view: View, times: float | None) -> Array:
        """Return compressed weights at the places of a view, or ones."""
        if times is None:
            return np.ones(len(view.near.edges), view.precision)
        if (view.number, times) not in self._placed:
            self._placed[view.number, times] = view.at_places(view.compressed(times))
        return self._placed[view.number, times]

    def two_levels(self, view: View) -> Floats:
        """Return the log-likelihood ratios of two levels of weights."""
        if view.number not in self._ratios:
            self._ratios[view.number] = ratios_of_two_levels(view.edges)
        return self._ratios[view.number]

    def cells(self, view: View) -> Array:
        """Return the cell of every edge in the table by which ratios are learned."""
        some, size = view.edges, self.views[0].size(TIMES[0])
        ends, bins = self._limits
        return cells_of(some.sources, some.targets, size, some.similarity, np.sinh(ends), bins)

    def explained(self, found: Found, within: Found | None = None) -> float:  # noqa: ARG002
        """Return what weights say that have not been seen: there are enough of them."""
        return found.weights

    def improved(self, found: Found) -> Found:
        """Search anew with what was learned, once; weights have to agree as well."""
        if found.weights <= 0 or self._is_same(found):
            return found
        better = self.credited(self.tried(partial(self.by_ratios, of=found, anew=True)), found)
        agrees = better.weights >= found.weights and better.nats > found.nats
        return better if agrees and self.is_clear(better) else found

    def joined(self, search: Callable[[View], Ints], start: Found) -> Found:
        """Return the partition that a search makes of the clusters of another one."""
        found = self.tried(search, _begun(self.views[0], start.labels))
        return found._replace(search=None)

    @property
    def is_settled(self) -> bool:
        """Whether the best partition is so clear that a smaller graph need not be tried further.

        All candidates are one and the same. Or weights, which are not noise for the most part, find
        the best of them again, with all edges, in another order and from single nodes. Where
        clusters are arcs of a geometry, or chance, no two searches agree so far.
        """
        best = self.best_of(self.known)
        if best is None or self._is_same(best):
            return best is not None
        if self.edges.noise_share > NOISY:
            return False
        again = (self.by_modularity(self._times, gamma)(self.whole) for gamma in _GAMMAS)
        return any(agreement(best.labels, labels) >= _SAME for labels in again)

    def _is_same(self, found: Found) -> bool:
        """Return whether all candidates are much like a partition, and at two resolutions."""
        return bool(self.known) and all(found.agreement(e) >= _SAME for e in self.known)

    def asks_no_more(self, best: Found | None) -> bool:
        """Return whether all candidates are one and the same partition."""
        return best is not None and self._is_same(best)

    def with_all_edges(self, found: Found | None) -> Found | None:
        """Return the partition, found again from where it is, unless few edges judge."""
        if found is None or found.search is None or len(self.held) < _NOTHING_NEW * self.n_edges:
            return found
        return found._replace(labels=found.search(self.whole._replace(start=found.labels, turns=1)))

    def is_stable(self, found: Found) -> bool:
        """Return whether a search with all edges, in another order, finds the partition again."""
        if found.is_stable or found.search is None:
            return found.is_stable
        anew = self.whole._replace(start=np.arange(self.edges.n_nodes), turns=1)
        return agreement(found.search(anew), found.labels) >= STABLE

    def judge_across(self, found: Found, edges: Ints) -> Judge:
        """Return a judge that compares edges across clusters of a partition among each other."""
        return self._judge(edges, self._kept.some(found.by_fold[0], is_within=False))

    def divided(self, labels: Ints) -> tuple[Trial, list[Found]] | None:
        """Return what was found already, to be compared within each cluster of a partition."""
        a, b = self.edges.sources, self.edges.targets
        within = np.flatnonzero(labels[a] == labels[b])
        inside = (each._replace(together=each.together[within]) for each in self.known)
        dividing = [each for each in inside if not each.together.all()]
        if len(within) < SMALLEST or not dividing:
            return None
        trial = copy(self)
        trial.edges, trial.held = self.edges.at(within), np.arange(len(within))
        trial.judge = self._judge(within, self._kept.some(labels, is_within=True))
        return trial, dividing


def _view(number: int, edges: Edges, random: np.random.Generator) -> View:
    near = Adjacency(*map(unsigned, adjacency(edges.sources, edges.targets, edges.n_nodes)))
    order, kept = _order(edges.n_nodes, random), np.empty(0, np.int64)
    view = View(number, edges, kept, near, order, weights={}, sizes={})
    return view._replace(fit=quick_sizes, precision=np.float32)


def _order(n_nodes: int, random: np.random.Generator) -> Ints:
    """Return all nodes, in rows of neighbouring ones that come in random order."""
    rows = random.permutation(-(-n_nodes // _ROW))
    order = (rows[:, None] * _ROW + np.arange(_ROW)).ravel()
    return order[order < n_nodes]


def _by_pairs(view: View, data: Array, gamma: float) -> Ints:
    """Return the partition of highest modularity, by weights at places."""
    strength = np.maximum(sums_at_nodes(view.near.indptr, data), 0.0)
    total = max(float(strength.sum()), 1e-300)
    return view.search_at(data, strength * np.sqrt(gamma / total))


def _begun(view: View, start: Ints | None = None) -> View:
    """Return a view in which searches move nodes, twice, or only clusters of a start."""
    return view._replace(start=start, turns=2 if start is None else 0)


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
    def of(cls, view: View, weights: Array, size: Floats) -> Seen:
        """Return all edges of a view with their weights, which are at its places."""
        expected = view.at_places(expected_by_size(view.edges, size))
        return cls(view.near, expected, weights - expected, np.ones(len(weights), bool))

    def some(self, labels: Ints, *, is_within: bool) -> Seen:
        """Return the edges within clusters, or those across."""
        return self._replace(counts=self.together(labels) == is_within)

    def heavier(self, weights: Array) -> tuple[Adjacency, Array]:
        """Return the edges that are heavier than their nodes make them, and their weights."""
        near = self.near
        kept = heavier_places(near.indptr, near.neighbours, weights, self.excess)
        return Adjacency(kept[0], kept[1], near.edges[:0]), kept[2]

    def together(self, labels: Ints) -> Bools:
        """Return for every place whether both ends are in one cluster."""
        return together_at_places(self.near.indptr, self.near.neighbours, labels)

    def beyond_nodes(self, seen: Array, values: Array, expected: Floats, some: Edges) -> Floats:
        """Return values of some edges less what their two nodes make of them.

        That is one term a node, constant, and one in proportion to the expectation, as they fit the
        ``seen`` values.
        """
        near = self.near
        a, b = some.sources, some.targets
        is_asked = np.zeros(some.n_nodes, bool)
        is_asked[a] = is_asked[b] = True
        swept = np.arange(some.n_nodes), np.flatnonzero(is_asked)
        order = np.concatenate([np.tile(*each) for each in zip(swept, _SWEEPS, strict=True)])
        mean, constant, slope = fit_node_terms(
            near.indptr, near.neighbours, seen, self.expected, self.counts, unsigned(order)
        )
        of_nodes = constant[a] + constant[b] + expected * (slope[a] + slope[b])
        beyond: Floats = values - mean - of_nodes
        return beyond


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
def sums_at_nodes(indptr: Ints, data: Array) -> Floats:
    """Return the sums of the values at the places of every node."""
    sums = np.zeros(len(indptr) - 1)
    for node in range(len(sums)):
        for place in range(indptr[node], indptr[node + 1]):
            sums[node] += data[place]
    return sums


@kernel
def heavier_places(
    indptr: Ints, indices: Array, data: Array, excess: Array
) -> tuple[Ints, Array, Array]:
    """Return the adjacency of the edges with an excess, and their values."""
    n_kept = 0
    for place in range(len(indices)):
        n_kept += excess[place] > 0
    new_indptr = np.zeros_like(indptr)
    new_indices, new_data = np.empty(n_kept, indices.dtype), np.empty(n_kept, data.dtype)
    count = 0
    for node in range(len(indptr) - 1):
        for place in range(indptr[node], indptr[node + 1]):
            if excess[place] > 0:
                new_indices[count], new_data[count] = indices[place], data[place]
                count += 1
        new_indptr[node + 1] = count
    return new_indptr, new_indices, new_data


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
    indptr: Ints, indices: Array, values: Array, expected: Array, counts: Bools, order: Ints
) -> tuple[float, Array, Array]:
    """Return the mean of the values that count, and two terms a node that explain the rest.

    The value of an edge is the mean, plus the constants of its nodes, plus its expectation times
    the sum of their slopes. Nodes are fitted as they come in ``order``, given the others, each
    several times.
    """
    n_nodes = len(indptr) - 1
    # The constant and the slope of a node are read together.
    terms = np.zeros((n_nodes, 2), np.float32)
    n_counted, mean, square = 0, 0.0, 0.0
    for place in range(len(indices)):
        if counts[place]:
            n_counted += 1
            mean += values[place]
            square += expected[place] ** 2
    if n_counted == 0:
        return 0.0, terms[:, 0], terms[:, 1]
    mean, square = mean / n_counted, square / n_counted + 1e-12
    for node in order:
        ones, by_expected, squares = PSEUDO, 0.0, PSEUDO * square
        total, slanted = 0.0, 0.0
        for place in range(indptr[node], indptr[np.uint64(node) + ONE]):
            if counts[place]:
                other, by = indices[place], expected[place]
                rest = values[place] - mean - terms[other, 0] - by * terms[other, 1]
                ones += 1.0
                by_expected += by
                squares += by * by
                total += rest
                slanted += by * rest
        determinant = ones * squares - by_expected * by_expected
        terms[node, 0] = (total * squares - slanted * by_expected) / determinant
        terms[node, 1] = (slanted * ones - total * by_expected) / determinant
    return mean, terms[:, 0], terms[:, 1]
