"""Clusterers and their registry. Clustering published values costs no privacy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

import numpy as np

from ptclust._registry import AUTO, Registry
from ptclust._traces import shown_half_built
from ptclust.clustering.dbcvi import dbcvi
from ptclust.clustering.normalise import Reweighted, check_constants, normalisation
from ptclust.errors import UsageError
from ptclust.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from ptclust._types import Array, Floats, Ints
    from ptclust.clustering.certainty import Certainty
    from ptclust.mechanisms import Mechanism
    from ptclust.mechanisms.mechanism import Publishes
    from ptclust.published import Published


@shown_half_built
@dataclass(frozen=True)
class Cuts:
    """The cuts of a tree, in the order in which they were made."""

    edge_ids: Array
    """Ids, in the graph, of the edges that were cut."""
    dbcvi: Floats | None = None
    """DBCVI right after each cut, if the clusterer computes it."""

    def __len__(self) -> int:
        return len(self.edge_ids)


@shown_half_built
@dataclass(frozen=True)
class Level:
    """One of several nested partitions that the same published values support."""

    labels: Ints
    """The cluster of every node, the largest first; a clusterer numbers by first appearance."""
    support: float
    """By how many nats held-out weights support it over the next coarser level."""

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max(initial=-1)) + 1


Support = Literal["weights", "topology", "both", "none"]


@shown_half_built
@dataclass(frozen=True)
class Evidence:
    """What supports clusters: released weights held out from them, or the public topology.

    Clusters of the topology alone do not depend on the weights.
    """

    partition: Support
    clusters: tuple[Support, ...] = ()
    """The same for every cluster, by number; empty if that is not known, as of another level."""

    @property
    def has_weights(self) -> bool:
        """Whether weights support the partition."""
        return self.partition in ("weights", "both")

    def renumbered(self, before: Ints, after: Ints) -> Evidence:
        """Return it for clusters that were given other numbers, or dropped.

        >>> found = Evidence("weights", ("none", "both", "weights"))
        >>> found.renumbered(np.array([0, 1, 1, 2, 2, 2]), np.array([-1, 1, 1, 0, 0, 0])).clusters
        ('weights', 'both')
        """
        number, first = np.unique(after, return_index=True)
        kept = before[first[number >= 0]].tolist()
        known = self.clusters
        if self.partition == "none" and not known:  # which needs no saying for every cluster
            known = (self.partition,) * (int(before.max()) + 1)
        return replace(self, clusters=tuple(known[i] for i in kept if known))


@shown_half_built
@dataclass(frozen=True)
class Clustering:
    """A partition of the nodes, and how it was found."""

    labels: Ints
    """The cluster of every node, the largest first, -1 for unclustered nodes; a clusterer numbers
    by first appearance, and ``finish`` by size."""
    clusterer: str = "dbmstclu"
    cuts: Cuts | None = None
    """The cuts of the tree whose pieces the clusters are, if they are such."""
    dbcvi: float = math.nan
    """DBCVI, on the tree, of the clusters before small ones were dropped; NaN if not computed."""
    shift: float = 0.0
    """(noisy distance + shift) / scale is in (0, 1] on the tree: tau and p of the paper."""
    scale: float = 1.0
    min_cluster_size: int = 1
    levels: tuple[Level, ...] = ()
    """Nested partitions, coarse to fine, of which ``labels`` is one; empty if none were sought."""
    topology_labels: Ints | None = None
    """What the public topology gives alone: clusters of the same graph with equal weights."""
    evidence: Evidence | None = None
    """What supports the clusters; None if the clusterer gives no evidence."""
    certainty: Certainty | None = None
    """How probable nodes and clusters are; None if that was not computed."""
    description: tuple[str, ...] = ()
    """What was done, for the statement."""

    @property
    def level(self) -> int | None:
        """Which of ``levels`` the labels are, small clusters dropped; None if there are none."""
        for number, level in enumerate(self.levels):
            if np.array_equal(without_small(level.labels, self.min_cluster_size), self.labels):
                return number
        return None

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max(initial=-1)) + 1

    @property
    def n_unclustered(self) -> int:
        """Number of nodes in no cluster."""
        return int((self.labels < 0).sum())

    def plot(self, coordinates: Any = None, *, axes: Any = None) -> Any:
        """Draw the clusters with matplotlib, and return the axes; see ``Release.plot``.

        Without ``coordinates``, one pair per node, only the sizes of clusters show.
        """
        from ptclust.drawing.layout import as_places
        from ptclust.drawing.plots import plot_clusters

        nodes, none = np.arange(len(self.labels)), np.empty(0, np.int64)
        places = None if coordinates is None else as_places(coordinates, nodes)
        title = f"{self.n_clusters:,} clusters of {len(nodes):,} nodes, found by {self.clusterer}"
        return plot_clusters(self.labels, edges=(none, none), places=places, axes=axes, title=title)


class Cost(NamedTuple):
    """About how many steps a run takes, as measured: fixed + per_item * (nodes + edges)**power."""

    fixed: float
    per_item: float
    power: float

    def steps(self, n_items: float) -> float:
        """Return the steps of a run with so many nodes and edges together."""
        return self.fixed + self.per_item * math.pow(n_items, self.power)


class Clusterer(ABC):
    """Clusters of what a mechanism published.

    To add one, write a class with these attributes and ``cluster``, and ``register`` an object of
    it. Options are fields of a frozen dataclass, which are checked when it is made, before anything
    is spent.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    """What it does, in one line of the statement."""
    needs: ClassVar[Publishes]
    cost: ClassVar[Cost]

    @abstractmethod
    def cluster(self, published: Published) -> Clustering:
        """Return labels, numbered by first appearance, and what else is known."""

    def apply(self, published: Published, *, min_cluster_size: int = 1) -> Clustering:
        """Cluster, drop small clusters, and return the result with every field filled in."""
        check_sizes(None, min_cluster_size)
        return self.finish(self.cluster(published), published, min_cluster_size)

    def finish(self, found: Clustering, published: Published, min_cluster_size: int) -> Clustering:
        """Number by size, drop small clusters, and fill in what ``cluster`` leaves open."""
        if math.isnan(found.dbcvi):
            tree = published.tree
            normal = normalisation(tree.distances, published.noise.standard_deviation)
            index = dbcvi(Reweighted(tree, normal.apply(tree.distances)), found.labels)
            found = replace(found, dbcvi=index, shift=normal.shift, scale=normal.scale)
        lines = list(found.description or (self.description,))
        if published.whole_graph:
            least = "minimum" if published.kind == "distance" else "maximum"
            lines.insert(0, f"the tree is the {least} spanning tree of the released weights")
        if min_cluster_size > 1:
            lines.append(
                f"clusters of fewer than {min_cluster_size} nodes were dropped: their nodes are "
                "unclustered"
            )
        levels = (replace(level, labels=by_size(level.labels)) for level in found.levels)
        labels, evidence = without_small(by_size(found.labels), min_cluster_size), found.evidence
        return replace(
            found,
            labels=labels,
            evidence=None if evidence is None else evidence.renumbered(found.labels, labels),
            levels=tuple(levels),
            clusterer=self.name,
            min_cluster_size=min_cluster_size,
            description=tuple(lines),
        )

    def visible_gap(
        self,
        n_nodes: int,
        n_edges: int,  # noqa: ARG002 - for clusterers that average over edges
        n_tree_edges: int | None = None,  # noqa: ARG002
    ) -> float:
        """Return how far apart weights within and across must be, in deviations of the noise.

        Clusterers that decide by single edges fail once the largest of n noises bridges the gap
        from either side: 2 sqrt(2 log n). Without ``n_tree_edges`` the graph is taken to be
        connected.
        """
        return 2.0 * math.sqrt(2.0 * math.log(max(n_nodes, 2)))

    def suits(self, publishes: Publishes, n_edges: int, n_tree_edges: int) -> bool:  # noqa: ARG002
        """Return whether ``auto`` may take this clusterer, from public numbers."""
        return self.needs in ("tree", publishes)


CLUSTERERS: Registry[Clusterer] = Registry("clusterer")
"""All clusterers, in the order in which ``auto`` prefers them."""


def choose_clusterer(
    name: str,
    mechanism: Mechanism,
    n_edges: int,
    n_tree_edges: int,
    publishes: Publishes | None = None,
) -> Clusterer:
    """Return the clusterer that a name means for what a mechanism publishes; known in advance.

    ``auto`` is the one that the mechanism prefers, if it does, and else the first that suits. Of a
    graph whose tree alone is at hand, ``publishes`` is "tree".
    """
    publishes = publishes or mechanism.publishes
    if name == AUTO:
        if mechanism.clusterer is not None:
            return CLUSTERERS[mechanism.clusterer]
        shape = publishes, n_edges, n_tree_edges
        return next(each for each in CLUSTERERS if each.suits(*shape))
    chosen = CLUSTERERS[name]
    if chosen.needs == "graph" and publishes == "tree":
        others = (each.name for each in MECHANISMS if each.publishes == "graph")
        use = " or ".join(f"mechanism={other!r}" for other in others)
        raise UsageError(
            f"clusterer={name!r} averages over all edges of a graph, and only a tree's weights are "
            f"released; use {use}, or another clusterer"
        )
    return chosen


def with_options(
    clusterer: Clusterer, *, shift: float | None = None, scale: float | None = None
) -> Clusterer:
    """Return the clusterer with these options; raise UsageError if it has no such options."""
    check_constants(shift, scale)
    if shift is None and scale is None:
        return clusterer
    if not _takes_constants(clusterer):
        names = " or ".join(
            f"clusterer={one.name!r}" for one in CLUSTERERS if _takes_constants(one)
        )
        raise UsageError(
            f"shift= and scale= are for {names}, and this release is clustered by "
            f"{clusterer.name!r}; leave them out, or ask for that clusterer"
        )
    return cast("Clusterer", replace(cast("Any", clusterer), shift=shift, scale=scale))


def _takes_constants(clusterer: Clusterer) -> bool:
    return {"shift", "scale"} <= getattr(clusterer, "__dataclass_fields__", {}).keys()


@dataclass(frozen=True, kw_only=True)
class ClusteringRequest:
    """How published values are to be clustered; checked when made, before anything is spent."""

    clusterer: str = AUTO
    min_cluster_size: int = 1
    """Clusters of fewer nodes are dropped: their nodes are unclustered, label -1."""
    shift: float | None = None
    """tau of the paper, for clusterers that take it."""
    scale: float | None = None
    """p of the paper."""
    level: int | None = None
    """Which level of the hierarchy, from 0, the coarsest, for clusterers that find several."""
    n_clusters: int | None = None
    """The level with this number of clusters."""
    min_probability: float = 0.0
    """Nodes of a smaller probability are unclustered, label -1."""

    def __post_init__(self) -> None:
        CLUSTERERS.check(self.clusterer)
        check_sizes(None, self.min_cluster_size)
        check_constants(self.shift, self.scale)
        check_probability(self.min_probability)
        if self.level is not None and self.n_clusters is not None:
            raise UsageError("level= and n_clusters= both choose a level; leave one out")
        for name, value, least in (("level", self.level, 0), ("n_clusters", self.n_clusters, 1)):
            if value is not None:
                _check_whole(name, value, least)

    @property
    def chooses_level(self) -> bool:
        """Whether a level is requested, not the one that the clusterer prefers."""
        return self.level is not None or self.n_clusters is not None

    def cluster(
        self, published: Published, mechanism: Mechanism, before: Clustering | None = None
    ) -> Clustering:
        """Cluster published values; of what was found ``before``, another level is taken as it is.

        >>> ClusteringRequest(level=0, n_clusters=2)
        Traceback (most recent call last):
        ...
        ptclust.errors.UsageError: level= and n_clusters= both choose a level; leave one out
        """
        publishes: Publishes = "graph" if published.whole_graph else "tree"
        sizes = published.topology.n_edges, published.tree.n_edges
        clusterer = self.choose(mechanism, *sizes, publishes)
        if not self.chooses_level:
            return clusterer.apply(published, min_cluster_size=self.min_cluster_size)
        if before is not None and before.levels and self.clusterer in (AUTO, before.clusterer):
            clusterer, found = CLUSTERERS[before.clusterer], replace(before, description=())
        else:
            found = clusterer.cluster(published)
        number = self._number_of_level(found, clusterer)
        words = f"level {number} of {len(found.levels)}, counted from 0, the coarsest, was chosen"
        labels, evidence = found.levels[number].labels, found.evidence
        if evidence is not None and not np.array_equal(labels, found.labels):
            evidence = replace(evidence, clusters=())
        chosen = replace(
            found,
            labels=labels,
            evidence=evidence,
            certainty=None,
            cuts=None,
            dbcvi=math.nan,
            description=(*(found.description or (clusterer.description,)), words),
        )
        return clusterer.finish(chosen, published, self.min_cluster_size)

    def _number_of_level(self, found: Clustering, clusterer: Clusterer) -> int:
        """Return which level is requested; UsageError lists those that there are."""
        counts = [level.n_clusters for level in found.levels]
        if not counts:
            raise UsageError(
                f"clusterer={clusterer.name!r} found one partition and no levels to choose from; "
                "leave level= and n_clusters= out, or ask for a clusterer that finds several"
            )
        listed = ", ".join(f"{number}: {count:,}" for number, count in enumerate(counts))
        there = f"the levels and their numbers of clusters are {listed}"
        if self.level is None:
            if self.n_clusters not in counts:
                raise UsageError(f"no level has {self.n_clusters:,} clusters; {there}")
            return counts.index(self.n_clusters)
        if self.level >= len(counts):
            raise UsageError(f"there is no level {self.level}; {there}")
        return int(self.level)

    def choose(
        self,
        mechanism: Mechanism,
        n_edges: int,
        n_tree_edges: int,
        publishes: Publishes | None = None,
    ) -> Clusterer:
        """Return the clusterer, with its options, for what a mechanism publishes."""
        chosen = choose_clusterer(self.clusterer, mechanism, n_edges, n_tree_edges, publishes)
        return with_options(chosen, shift=self.shift, scale=self.scale)


def check_sizes(max_clusters: int | None, min_cluster_size: int) -> None:
    """Raise UsageError unless both are whole numbers of at least 1, or the first is left out."""
    _check_whole("min_cluster_size", min_cluster_size, 1)
    if max_clusters is not None:
        _check_whole("max_clusters", max_clusters, 1)


def check_probability(least: Any) -> None:
    """Raise UsageError unless it is a number from 0 to 1."""
    is_number = isinstance(least, (int, float, np.number)) and not isinstance(least, bool)
    if not is_number or not 0 <= least <= 1:
        raise UsageError(f"min_probability must be a number from 0 to 1, not {least!r}")


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}")


def without_small(labels: Ints, min_cluster_size: int) -> Ints:
    """Give nodes of clusters below ``min_cluster_size`` the label -1; the others stay in order.

    >>> without_small(np.array([0, 1, 1, 2, 3, 3]), 2).tolist()
    [-1, 0, 0, -1, 1, 1]
    """
    if min_cluster_size == 1 or not len(labels):
        return labels
    large = np.bincount(labels[labels >= 0], minlength=1) >= min_cluster_size
    number = np.where(large, np.cumsum(large) - 1, -1)
    return np.where(labels < 0, -1, number[labels])


def by_size(labels: Ints) -> Ints:
    """Number clusters by size, the largest first, and of equal ones by first appearance.

    >>> by_size(np.array([0, 1, 1, -1, 2, 3, 3])).tolist()
    [2, 0, 0, -1, 3, 1, 1]
    """
    nodes = np.flatnonzero(labels >= 0)
    sizes = np.bincount(labels[nodes], minlength=1)
    first = np.zeros(len(sizes), dtype=np.int64)
    first[labels[nodes[::-1]]] = nodes[::-1]  # the last one written stays: the first to appear
    number = np.empty(len(sizes), dtype=labels.dtype)
    number[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return np.where(labels < 0, labels, number[labels])
