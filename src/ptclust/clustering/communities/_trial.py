"""What is tried on one graph: candidates without each part of the edges, and the best of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptclust._statistics import agreement
from ptclust._threads import in_threads
from ptclust.clustering.clusterer import Evidence, Support
from ptclust.clustering.communities._judge import (
    nats_of,
    nats_of_pairs,
    nats_of_topology,
)
from ptclust.clustering.communities._model import Table, expected_weights, tables_of
from ptclust.clustering.communities._search import (
    NAMINGS,
    RESOLUTIONS,
    SOURCES,
    Description,
    Recipe,
    View,
)
from ptclust.clustering.communities._test import CLEAR, WeightTest

if TYPE_CHECKING:
    from ptclust._types import Bools, Floats, Ints
    from ptclust.clustering.communities._model import Edges

# Edges are held back in ten parts up to so many edges, in five beyond, and in one beyond these.
_FEW, _MANY = 20_000, 200_000
# Graphs of more edges are searched on all processors.
_THREADED = 5_000
# Agreement (ARI) of partitions that are one and the same, but for single nodes.
_SAME = 0.99
# The share of log(clusters) that it costs to name the cluster of a node, against the topology's.
_NAMING = 0.06
# Nats beyond the topology's that are more than chance, which makes so many once in 400 times.
_BEYOND = 6.0
# The share of the most standard errors of any candidate that the shown one has at least.
_AGREED = 0.6
# Nats of the topology that are more than chance: as rare as so many standard errors are.
_CLEAR_NATS = CLEAR**2


class Found(NamedTuple):
    """A candidate, found without each part of the edges, and what these parts say of it."""

    recipe: Recipe | Description
    by_part: tuple[Ints, ...]
    together: Bools
    """Whether an edge that is held back is within a cluster of the partition that misses it."""
    nats: float
    """What unseen weights say of it."""
    score: float
    """What they say by the table of most groups, which sizes of nodes explain least of."""
    topology: float
    """What the existence of unseen edges says of it, in nats."""
    n_clusters: float
    """On average over the parts."""


class Trial:
    """What is tried on one graph, or within each cluster of a partition of it."""

    def __init__(self, edges: Edges, *, within: Ints | None = None, one_part: bool = False) -> None:
        self.edges, self._within = edges, within
        self._random = np.random.default_rng(0)  # the same release gives the same labels
        n_parts = 10 if edges.n_edges <= _FEW and not one_part else 5
        part = self._random.permutation(np.arange(edges.n_edges, dtype=np.int32) % n_parts)
        n_held = 1 if one_part or self.is_large else n_parts
        self._held = [np.flatnonzero(part == each) for each in range(n_held)]
        self._views = [self._view(np.flatnonzero(part != each)) for each in range(n_held)]
        self._judges = np.concatenate(self._held)
        self._unseen = edges.at(self._judges)
        self._expected = np.concatenate(
            [
                expected_weights(view.edges, edges.at(held))
                for view, held in zip(self._views, self._held, strict=True)
            ]
        )
        self._tables = tables_of(self._expected, self._unseen.similarity)
        self.topology: Found | None = None
        """The partition of the topology alone, if it has clusters."""

    @property
    def is_large(self) -> bool:
        """Whether one part is enough to judge by."""
        return self.edges.n_edges > _MANY

    def _view(self, kept: Ints | slice) -> View:
        n_nodes = self.edges.n_nodes
        return View(self.edges, kept, self._random.permutation(n_nodes), self._within)

    @cached_property
    def _test(self) -> WeightTest:
        return WeightTest(self._unseen, self._expected, self._tables[-1].group)

    @cached_property
    def _whole(self) -> View:
        return self._view(slice(None))

    def settled(self) -> Found | None:
        """Return the partition that is the same whatever is searched, if weights support it."""
        gamma, *others = RESOLUTIONS[:3]
        first, second, *_ = SOURCES
        found = self._judged(Recipe(first, gamma), pairs=False)
        if found.n_clusters < 2:
            return None
        for recipe in (*(Recipe(first, other) for other in others), Recipe(second, gamma)):
            if agreement(recipe.search(self._views[0]), found.by_part[0]) < _SAME:
                return None
        return found if self._errors(found) >= CLEAR and found.nats > _BEYOND else None

    def best(self) -> Found | None:
        """Return the partition that unseen weights support most, or that of the topology."""
        by_source = {
            source: [self._judged(Recipe(source, gamma)) for gamma in RESOLUTIONS]
            for source in self._views[0].sources
        }
        candidates = [each for some in by_source.values() for each in some]
        self.topology = max(
            (each for each in by_source.get("topology", ()) if each.topology > _CLEAR_NATS),
            key=lambda each: each.topology - self._naming(each),
            default=None,
        )
        if self._within is None:  # within clusters modularity is enough
            candidates += [self._judged(Description(self._all_tables, share)) for share in NAMINGS]
        least_nats, given, naming = _BEYOND, None, 0.0
        if self.topology is not None:
            least_nats, naming = max(self.topology.nats, 0.0) + _BEYOND, _NAMING
            given = self._test.companions(self.topology.together)
        price = np.log(self.edges.n_nodes)
        candidates = [
            each for each in candidates if each.n_clusters >= 2 and each.nats > least_nats
        ]
        errors = [self._errors(each, given) for each in candidates]
        least = max(CLEAR, _AGREED * max(errors, default=0.0))
        clear = [
            found
            for found, error in zip(candidates, errors, strict=True)
            if error >= least and error**2 / 2 > naming * self._naming(found)
        ]
        if clear:
            return min(clear, key=lambda each: each.n_clusters * price - each.score)
        return self.topology

    def _naming(self, found: Found) -> float:
        """Return what it costs to name the cluster of every node, in nats."""
        return self.edges.n_nodes * float(np.log(found.n_clusters))

    @cached_property
    def _all_tables(self) -> list[Table]:
        """The tables of all edges, by which is learned; those that judge are some of them."""
        if len(self._judges) == self.edges.n_edges:
            expected = np.empty(self.edges.n_edges)
            expected[self._judges] = self._expected
        else:
            expected = expected_weights(self._views[0].edges, self.edges)
        return tables_of(expected, self.edges.similarity)[: len(self._tables)]

    def _judged(self, recipe: Recipe | Description, *, pairs: bool = True) -> Found:
        """Search without each part, and let that part judge; ``pairs`` of clusters do as well."""
        each = in_threads if self.edges.n_edges > _THREADED and len(self._views) > 1 else map
        by_part = tuple(each(recipe.search, self._views))
        together = np.concatenate(
            [
                labels[self.edges.sources[held]] == labels[self.edges.targets[held]]
                for labels, held in zip(by_part, self._held, strict=True)
            ]
        )
        n_clusters = float(np.mean([labels.max() + 1 for labels in by_part]))
        nats = nats_of(together, self._tables)
        score = nats_of(together, self._tables[-1:])
        if nats > 0 and pairs:
            of_pairs = self._nats_of_pairs(by_part)
            nats, score = max(nats, of_pairs), max(score, of_pairs)
        topology = 0.0
        if not self.edges.is_complete:
            topology = nats_of_topology(together, self._by_chance(by_part))
        return Found(recipe, by_part, together, nats, score, topology, n_clusters)

    def _nats_of_pairs(self, by_part: tuple[Ints, ...]) -> float:
        """Return what pairs of clusters say, by ranks among edges with similar expected weight."""
        bins = self._all_tables[-1].bins
        total = 0.0
        for labels, view, held in zip(by_part, self._views, self._held, strict=True):
            some = self.edges.at(held)
            seen = labels[view.edges.sources], labels[view.edges.targets], bins[view.kept]
            unseen = labels[some.sources], labels[some.targets], bins[held]
            total += nats_of_pairs(seen, unseen)
        return total

    def _by_chance(self, by_part: tuple[Ints, ...]) -> Floats:
        """Return how likely unseen edges would be within clusters if only degrees mattered."""
        chance = []
        for labels, view, held in zip(by_part, self._views, self._held, strict=True):
            degree = view.degree
            alone, total = float(degree @ degree), float(degree.sum())
            shared = np.bincount(labels, degree)
            pairs = (float(shared @ shared) - alone) / max(total**2 - alone, 1.0)
            chance.append(np.full(len(held), pairs))
        return np.concatenate(chance)

    def _errors(self, found: Found, given: Floats | None = None) -> float:
        """Return by how many standard errors weights support it, beyond given companions."""
        return self._test.standard_errors(self._test.companions(found.together), given)

    def with_all_edges(self, found: Found) -> Ints:
        """Return the partition as all edges show it."""
        return found.recipe.with_all_edges(self._whole, found.by_part)

    def evidence(self, found: Found, labels: Ints) -> Evidence:
        """Return what supports the partition, and each cluster of its final form."""
        some, n_clusters = self._unseen, int(labels.max()) + 1
        a, b = labels[some.sources], labels[some.targets]
        companions = self._test.companions(found.together)
        by_weights = self._test.of_clusters(companions, a, b, n_clusters) >= CLEAR
        by_topology = np.zeros(n_clusters, bool)
        if not self.edges.is_complete:
            by_topology = _denser(a, b, found.together, n_clusters) >= CLEAR
        of_weights = found is not self.topology or (
            found.nats > _BEYOND and self._test.standard_errors(companions) >= CLEAR
        )
        whole = _support(of_weights, found.topology > _CLEAR_NATS)
        each = map(_support, by_weights & of_weights, by_topology)
        return Evidence(whole, tuple(each))


def _denser(a: Ints, b: Ints, together: Bools, n_clusters: int) -> Floats:
    """Return by how many standard errors unseen edges within every cluster exceed chance.

    ``a`` and ``b`` are the clusters at their ends. Counted are those that are also together in the
    partition that was found without them.
    """
    ends = np.bincount(np.concatenate([a, b]), minlength=n_clusters).astype(np.float64)
    inside = np.bincount(a[(a == b) & together], minlength=n_clusters)
    expected = ends**2 / (4.0 * max(len(a), 1))
    errors: Floats = (inside - expected) / np.sqrt(np.maximum(expected, 1.0))
    return errors


def _support(weights: bool, topology: bool) -> Support:
    if weights:
        return "both" if topology else "weights"
    return "topology" if topology else "none"
