"""Partitions found without a part of the edges, and the best of them by that part."""

from __future__ import annotations

from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._components import Adjacency, adjacency
from ptclust._statistics import agreement
from ptclust._threads import in_threads
from ptclust.clustering.communities._judge import Judge, counts_of, topology_tells
from ptclust.clustering.communities._search_kernel import (
    TURNS,
    at_places,
    join_small_clusters,
    search_communities,
)
from ptclust.clustering.communities._weights import (
    Edges,
    expected_by_size,
    node_sizes,
    ratios_of_two_levels,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ptclust._types import Array, Bools, Floats, Ints

# Edges are held back in ten parts up to so many edges, and in five beyond.
_FEW = 5_000
# Weights are exchanged so many times up to that number of edges, and so many beyond.
_EXCHANGES = 4, 1
# Units beyond which weights count by their logarithm, and resolutions.
TIMES = 1.0, 8.0
GAMMAS = 0.5, 0.7, 1.0, 1.4, 2.0, 3.0
# Agreement (ARI) between partitions that were found without different parts of the edges, and at
# neighbouring resolutions, from which on they do not depend on these; and beyond which more of it
# is no gain.
STABLE, _STABLER = 0.85, 0.9
# A partition with less than this part of the standard errors of another follows sizes of nodes.
_HALF = 0.5
# Standard errors, and nats of the topology, that are more than chance.
CLEAR, _CLEAR_NATS = 4.0, 10.0
# From this share of noise in the variance of weights on, less noise would show more.
NOISY = 0.3
# Edges within a cluster that may hold others, at least.
SMALLEST = 12
# Pseudo-edges that smooth what is learned of a bin.
_SMOOTHING = 4.0


class View(NamedTuple):
    """What a search sees: all edges, or those that are not in one of the folds."""

    number: int
    edges: Edges
    kept: Ints
    """Their numbers among all edges."""
    near: Adjacency
    order: Array
    """In which nodes are looked at first: another one in every view."""
    weights: dict[float, Floats]
    """Compressed, by the units beyond which they are."""
    sizes: dict[float, Floats]
    """Of the nodes that are known so far, by the same units."""
    start: Ints | None = None
    """The partition that every search begins with, if there is one."""
    turns: int = TURNS
    fit: Callable[[Edges, Floats], Floats] = node_sizes
    precision: type[np.floating] = np.float64
    """Of affinities; their sums are double."""

    @property
    def degree(self) -> Floats:
        """Number of edges at every node."""
        return np.diff(self.near.indptr).astype(np.float64)

    def compressed(self, times: float) -> Floats:
        """Return the weights that are compressed beyond so many units."""
        if times not in self.weights:
            self.weights[times] = self.edges.compressed(times)
        return self.weights[times]

    def size(self, times: float) -> Floats:
        """Return the sizes of the nodes that explain these weights."""
        if times not in self.sizes:
            self.sizes[times] = self.fit(self.edges, self.compressed(times))
        return self.sizes[times]

    def search(self, affinity: Floats, mass: Floats, start: Ints | None, price: float) -> Ints:
        """Return the partition found, its tiny clusters joined to others."""
        return self.search_at(self.at_places(affinity), mass, start, price)

    def at_places(self, values: Floats) -> Array:
        """Return values of edges at the places of the adjacency."""
        return at_places(values.astype(self.precision, copy=False), self.near.edges)

    def search_at(
        self, data: Array, mass: Floats, start: Ints | None = None, price: float = 0.0
    ) -> Ints:
        """Do what ``search`` does with affinities at places."""
        first = start if self.start is None else self.start
        found = search_communities(self.near, data, mass, self.order, first, price, self.turns)
        return join_small_clusters(self.near, data, mass, found)


class Found(NamedTuple):
    """A partition, found on all edges and without each fold, and what the folds say of it."""

    labels: Ints
    by_fold: tuple[Ints, ...]
    together: Bools
    """Whether an edge is within a cluster of the partition that has not seen it."""
    weights: float
    """Nats that weights say which it has not seen."""
    deviations: Callable[[], float]
    """By how many standard errors these exceed chance; found when asked for the first time."""
    topology: float = 0.0
    """Nats; 0 where the topology may not count."""
    stability: float = 0.0
    """How little it depends on the edges left out and on the resolution, in a sparse graph."""
    of_topology: bool = False
    """Whether no weight had a part in it."""
    search: Callable[[View], Ints] | None = None
    """What found it, where it is to be found again with all edges."""

    @property
    def is_stable(self) -> bool:
        """Whether it depends on neither."""
        return self.stability >= STABLE

    @property
    def nats(self) -> float:
        """What supports it."""
        return self.weights + self.topology

    def agreement(self, other: Found) -> float:
        """Return the mean ARI of this partition and another one, each without other edges."""
        shifted = (*other.by_fold[1:], other.by_fold[0])
        return float(
            np.mean([agreement(*pair) for pair in zip(self.by_fold, shifted, strict=True)])
        )


class Trial:
    """What is tried on one graph, or within each cluster of a partition of it."""

    contracts_nodes = True
    """Whether there is time for contraction of single nodes."""

    def __init__(self, edges: Edges, within: Ints | None = None) -> None:
        self.edges, n_edges = edges, len(edges.sources)
        self.within = np.zeros(edges.n_nodes, np.int64) if within is None else within
        self.compressed = {times: edges.compressed(times) for times in TIMES}
        random = np.random.default_rng(0)  # the same release gives the same labels
        n_folds = 10 if n_edges <= _FEW else 5
        fold = random.permutation(np.arange(n_edges) % n_folds)
        self.folds = [np.flatnonzero(fold == each) for each in range(n_folds)]
        self.held = np.sort(np.concatenate(self.folds))
        self.whole, *self.views = (
            self._view(k, np.flatnonzero(fold != k - 1), random) for k in range(n_folds + 1)
        )
        # What is expected of an edge, it has not seen.
        expected = np.empty(n_edges)
        for held, view in zip(self.folds, self.views, strict=True):
            expected[held] = expected_by_size(edges.at(held), view.size(TIMES[0]))
        self.judge = Judge(edges, self.compressed[TIMES[0]], expected)
        self.known: list[Found] = []

    @property
    def n_edges(self) -> int:
        """Number of edges, those that judge included."""
        return len(self.edges.sources)

    def _view(self, number: int, kept: Ints, random: np.random.Generator) -> View:
        some = self.edges.at(kept)
        near = adjacency(some.sources, some.targets, some.n_nodes)
        weights = {times: self.compressed[times][kept] for times in TIMES}
        return View(number, some, kept, near, random.permutation(some.n_nodes), weights, {})

    def candidates(self) -> list[Found]:
        """Return partitions of high modularity at every resolution."""
        for times in self.kinds:
            chain = [
                self.tried(self.by_modularity(times, gamma))._replace(of_topology=times is None)
                for gamma in GAMMAS
            ]
            near = (None, *chain), (*chain[1:], None)
            self.known += [
                self.credited(each, *others) for each, *others in zip(chain, *near, strict=False)
            ]
        return self.known

    @property
    def kinds(self) -> tuple[float | None, ...]:
        """The units beyond which weights are compressed; None for the topology alone."""
        return TIMES if self.edges.is_complete else (*TIMES, None)

    def by_modularity(self, times: float | None, gamma: float) -> Callable[[View], Ints]:
        """Return the search for high modularity, over edges or over pairs of nodes."""
        if self.edges.is_complete and times is not None:
            return partial(self.over_edges, times=times, gamma=gamma)
        return partial(self.over_pairs, times=times, gamma=gamma)

    def over_edges(self, view: View, *, times: float, gamma: float) -> Ints:
        """Return the partition with the most weight beyond what is expected of its edges."""
        expected = expected_by_size(view.edges, view.size(times))
        excess = view.compressed(times) - gamma * expected
        return view.search(excess, np.zeros(self.edges.n_nodes), None, 0.0)

    def over_pairs(self, view: View, *, times: float | None, gamma: float) -> Ints:
        """Return the partition of highest modularity, which counts missing edges as well."""
        weights = np.ones(len(view.edges.sources)) if times is None else view.compressed(times)
        strength = np.maximum(view.edges.at_nodes(weights), 0.0)
        total = np.maximum(np.bincount(self.within, strength), 1e-300)[self.within]
        return view.search(weights, strength * np.sqrt(gamma / total), None, 0.0)

    def two_levels(self, view: View) -> Floats:
        """Return the log-likelihood ratios of two levels of weights."""
        return self._two_levels[view.kept]

    @cached_property
    def _two_levels(self) -> Floats:
        return ratios_of_two_levels(self.edges)

    def by_ratios(self, view: View, *, of: Found, anew: bool) -> Ints:
        """Return the likeliest partition, by the log-likelihood ratios that another one shows.

        The search begins there, or anew.
        """
        a, b = view.edges.sources, view.edges.targets
        labels = (of.labels, *of.by_fold)[view.number]
        together = labels[a] == labels[b]
        cell = self.cells(view)
        inside, outside = counts_of(cell, together, self.judge.learned.n_groups)
        ratio = _log_shares(inside, inside + outside) - _log_shares(outside, inside + outside)
        affinity = ratio.ravel()[cell]
        mass = np.zeros(self.edges.n_nodes)
        if not self.edges.is_complete:
            # Edges within and across are so many times as frequent as by chance.
            share, chance = (
                np.clip(part, 1e-6, 1 - 1e-6)
                for part in (together.mean(), self.chance(view, labels).mean())
            )
            within, across = share / chance, (1 - share) / (1 - chance)
            affinity = affinity + np.log(within / across)
            mass = view.degree * np.sqrt(max(within - across, 0.0) / (2 * len(a)))
        price = float(np.log(self.edges.n_nodes))
        return view.search(affinity, mass, None if anew else labels, price)

    def cells(self, view: View) -> Array:
        """Return the cell of every edge in the table by which ratios are learned."""
        return self.judge.learned.cell[view.kept]

    def chance(self, view: View, labels: Ints) -> Floats:
        """Return how likely two ends of edges, drawn by degree, share a cluster of ``labels``.

        They are drawn from a cluster of the partition within which the search is, by its number.
        """
        degree, within = view.degree, self.within
        total = np.bincount(within, degree)
        alone = np.bincount(within, degree**2)
        sums = np.bincount(labels, degree)
        first = np.zeros(len(sums), np.int64)
        first[labels] = within
        shared = np.bincount(first, sums**2, len(total))
        pairs: Floats = (shared - alone) / np.maximum(total**2 - alone, 1.0)
        return pairs

    def tried(self, search: Callable[[View], Ints]) -> Found:
        """Search on all edges and without each fold, and ask the folds about weights."""
        labels, *by_fold = self._searched(search, [self.whole, *self.views])
        return self.found(labels, tuple(by_fold))

    def _searched(self, search: Callable[[View], Ints], views: list[View]) -> list[Ints]:
        """Return what a search finds in every view; in many edges, in several at once."""
        return [*(in_threads if self.n_edges > _FEW else map)(search, views)]

    def found(self, labels: Ints, by_fold: tuple[Ints, ...]) -> Found:
        """Return a partition with what weights say of it."""
        together = self.together(by_fold)
        weights = self.judge.weights_tell(together[self.held], self.held)
        deviations = cache(partial(self.judge.deviations, together, by_fold))
        return Found(labels, by_fold, together, weights, deviations)

    def credited(self, found: Found, *others: Found | None) -> Found:
        """Return a partition with what the existence of edges says of it, if that may count.

        Arcs of a ring predict its edges; but where they begin is chance. So it counts if the
        ``others``, found at neighbouring resolutions, are much the same without other edges, or if
        weights made the partition and those that it has not seen know of it.
        """
        if self.edges.is_complete:
            return found
        nats = self.topology_tells(found)
        if nats < _CLEAR_NATS:
            return found
        near = [each for each in others if each is not None]
        found = found._replace(stability=max(map(found.agreement, near), default=0.0))
        if found.is_stable or self._is_known_to_weights(found, near):
            return found._replace(topology=nats)
        return found

    def _is_known_to_weights(self, found: Found, near: list[Found]) -> bool:
        """Return whether weights made a partition, and those that it has not seen know of it.

        With either sign; and of it or of one like it more than by chance.
        """
        if found.of_topology or abs(found.deviations()) < CLEAR:
            return False
        alike = (each for each in (found, *near) if not each.of_topology)
        return any(abs(self.beyond_chance(each)) >= CLEAR for each in alike)

    def topology_tells(self, found: Found) -> float:
        """Return by how many nats edges left out support a partition by being there."""
        chance = np.zeros(len(self.edges.sources))
        for held, view, labels in zip(self.folds, self.views, found.by_fold, strict=True):
            chance[held] = self.chance(view, labels)[self.within[self.edges.sources[held]]]
        return topology_tells(found.together[self.held], chance[self.held])

    def divided(self, labels: Ints) -> tuple[Trial, list[Found]] | None:
        """Return what is tried within each cluster of a partition, and what is found there."""
        a, b = self.edges.sources, self.edges.targets
        within = np.flatnonzero(labels[a] == labels[b])
        if len(within) < SMALLEST:
            return None
        trial = Trial(self.edges.at(within), labels)
        return trial, trial.candidates()

    def together(self, by_fold: Iterable[Ints]) -> Bools:
        """Return for every edge whether a partition that has not seen it has both ends together."""
        together = np.zeros(len(self.edges.sources), bool)
        for held, labels in zip(self.folds, by_fold, strict=False):
            some = self.edges.at(held)
            together[held] = labels[some.sources] == labels[some.targets]
        return together

    def judge_across(self, found: Found, edges: Ints) -> Judge:  # noqa: ARG002
        """Return a judge that compares edges across clusters of a partition among each other."""
        some, weights = self.edges.at(edges), self.compressed[TIMES[0]][edges]
        return Judge(some, weights, expected_by_size(some, node_sizes(some, weights)))

    def support(self, found: Found, coarser: Found | None) -> float:
        """Return what supports a partition over a coarser one, or over one cluster."""
        if coarser is None:
            return found.nats
        within = self.held[coarser.together[self.held]]
        return self.judge.weights_tell(found.together[within], within)

    def explained(self, found: Found, within: Found | None = None) -> float:
        """Return what weights would say if none had been seen, less the naming of clusters.

        With another partition: what those within its clusters say, less the naming of more.
        """
        together, n_clusters = self._inside(found)
        some, n_before = np.arange(len(together)), 1
        if within is not None:
            inside, n_before = self._inside(within)
            some = np.flatnonzero(inside)
        seen = self.judge.weights_tell(together[some], some)
        return seen - (n_clusters - n_before) * float(np.log(self.edges.n_nodes))

    def _inside(self, found: Found) -> tuple[Bools, int]:
        """Return which edges lie within clusters, and the number of clusters."""
        a, b, labels = self.edges.sources, self.edges.targets, found.labels
        return labels[a] == labels[b], int(labels.max()) + 1

    def best_of(self, candidates: Iterable[Found]) -> Found | None:
        """Return the best partition that is more than chance, improved."""
        ranked = sorted(self._beyond_sizes(list(candidates)), key=lambda each: -each.nats)
        for i, found in enumerate(ranked):
            if found.nats <= 0:
                return None
            if self.is_clear(found):
                # Of those about as good the most stable, or else the one best with all edges.
                least = found.nats - np.sqrt(found.nats)
                close = [each for each in ranked[i:] if each.nats >= least]
                chosen = max(close, key=self._preference)
                return self.improved(chosen if self.is_clear(chosen) else found)
        return None

    def _beyond_sizes(self, candidates: list[Found]) -> list[Found]:
        """Return the partitions that do not follow the sizes of nodes.

        Nats follow these as well where noise bends what is expected of them; deviations do not.
        """
        if all(each.topology > 0 for each in candidates):
            return candidates
        least = _HALF * max(self.deviations(each) for each in candidates)
        return [e for e in candidates if e.topology > 0 or self.deviations(e) >= least]

    def _preference(self, found: Found) -> tuple[float, float]:
        """Return what decides between partitions about as good."""
        return min(found.stability, _STABLER), self.explained(found) + found.topology

    def best_by_topology(self, candidates: Iterable[Found]) -> Ints | None:
        """Return the partition that the topology gives alone, if one is more than chance."""
        alone = (each for each in candidates if each.of_topology and each.is_stable)
        best = max(alone, key=lambda each: each.topology, default=None)
        return best.labels if best is not None and best.topology > 0 else None

    def is_clear(self, found: Found) -> bool:
        """Return whether a partition is more than chance."""
        return found.topology > 0 or self.deviations(found) >= CLEAR

    def deviations(self, found: Found) -> float:
        """Return by how many standard errors weights support a partition."""
        return self.beyond_chance(found) if found.weights > 0 else 0.0

    def beyond_chance(self, found: Found) -> float:
        """Return the same with its sign, beyond what weights that know nothing give.

        A heavy edge draws its ends to one cluster, in all searches that have seen it, and some of
        their other edges with them. What these nodes make of "together" follows, and the edge is
        together less than that: chance has negative standard errors, the more the more neighbours
        have neighbours in common, as in a geometry.
        """
        seen = found.deviations()
        if seen > -CLEAR:
            return seen
        by_chance, n_exchanges = self._by_chance
        return min(seen - by_chance, 0.0) / float(np.sqrt(1 + 1 / n_exchanges))

    @cached_property
    def _by_chance(self) -> tuple[float, int]:
        """Standard errors, below 0, of what is found in weights exchanged among like edges.

        On average over resolutions, and over so many exchanges.
        """
        group, random = self.judge.learned.group, np.random.default_rng(1)
        n_exchanges = _EXCHANGES[len(group) > _FEW]
        made = []
        for _ in range(n_exchanges):
            trial = Trial(self.edges.exchanged(group, random), self.within)
            searches = (trial.by_modularity(TIMES[0], gamma) for gamma in GAMMAS)
            made += [trial.tried(search).deviations() for search in searches]
        return min(float(np.mean(made)), 0.0), n_exchanges

    def improved(self, found: Found) -> Found:
        """Search again with what was learned, as long as the judge agrees."""
        if found.weights <= 0:
            return found
        while True:
            searches = (partial(self.by_ratios, of=found, anew=anew) for anew in (False, True))
            tries = (self.credited(self.tried(each), found) for each in searches)
            better = max(tries, key=lambda each: each.nats)
            gain = better.nats - found.nats
            if better.stability < min(found.stability, _STABLER):
                gain -= np.sqrt(found.nats)
            if gain <= 0 or not self.is_clear(better):
                return found
            found = better

    def joined(self, search: Callable[[View], Ints], start: Found) -> Found:
        """Return the partition that a search makes of the clusters of another one."""
        views, starts = (self.whole, *self.views), (start.labels, *start.by_fold)
        begun = [v._replace(start=each, turns=0) for v, each in zip(views, starts, strict=True)]
        labels, *by_fold = self._searched(search, begun)
        return self.found(labels, tuple(by_fold))

    def asks_no_more(self, best: Found | None) -> bool:  # noqa: ARG002
        """Return whether the best partition is so clear that no other kind is tried."""
        return False

    def with_all_edges(self, found: Found | None) -> Found | None:
        """Return the partition as all edges show it: here they had a part in it already."""
        return found

    def is_stable(self, found: Found) -> bool:
        """Return whether a partition depends neither on the edges left out nor on the search."""
        return found.is_stable


def _log_shares(counts: Floats, both: Floats) -> Floats:
    """Return log-shares of bins in every group, smoothed towards those of all edges there."""
    prior = both / np.maximum(both.sum(1, keepdims=True), 1)
    total = counts.sum(1, keepdims=True) + _SMOOTHING
    shares: Floats = np.log(np.maximum(counts + _SMOOTHING * prior, 1e-12) / total)
    return shares
