"""Which nodes moved between two releases beyond noise; post-processing.

A node has moved if its label changed and its weights did by more than the noise of both releases.
The mean weight of its edges to the cluster it came to has risen over that to the cluster it left
(of distances: fallen). Each edge is compared with itself, so whatever a model of weights misses
cancels. The noise of both releases is known. How much weights usually change from one period to the
next is estimated from all nodes: the median of their scores, each towards the cluster it has most
other edges to. Nodes are named by the rule of Benjamini and Hochberg (1995): if none moved, one
release in twenty names any; of the nodes named, one in twenty did not move.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._markup import counted
from ptclust._types import Array, Floats, Ints
from ptclust.privacy.noise import GAUSSIAN

if TYPE_CHECKING:
    from ptclust.release.comparison import Comparison

LEVEL = 0.05  # of false names among the names, and of naming any where none moved
_MEDIAN_OF_NORMAL = 0.6744897501960817  # of its size


@dataclass(frozen=True, eq=False)
class Changes:
    """Nodes whose cluster changed from an earlier release to a later one.

    ``nodes`` are numbers of nodes in the later release whose label differs, ``p_values`` say how
    often noise alone shows as much, and ``moved`` which of them moved beyond noise.
    """

    comparison: Comparison
    nodes: Ints
    before: Ints
    now: Ints
    p_values: Floats
    moved: Array
    reason: str  # why nothing can be told of single nodes; empty if it can
    fluctuation: float  # of weights between both periods, beside noise: 1 if noise is all

    @property
    def names(self) -> list[Any]:
        """The names of the nodes that moved beyond noise."""
        return [name for name, _, _ in self.moves]

    @property
    def moves(self) -> list[tuple[Any, int, int]]:
        """The nodes that moved beyond noise: name, cluster before and cluster now."""
        columns = self.comparison.release.names[self.nodes], self.before, self.now
        return list(zip(*(each[self.moved].tolist() for each in columns), strict=True))

    @cached_property
    def clusters(self) -> dict[int, tuple[int, int]]:
        """How many nodes came to a cluster and how many left it, by number, beyond noise."""
        came = Counter(new for _, _, new in self.moves)
        left = Counter(old for _, old, _ in self.moves)
        return {each: (came[each], left[each]) for each in sorted(came | left)}

    @property
    def sentence(self) -> str:
        """What changed, in a sentence or two."""
        if self.reason:
            return f"{len(self.nodes):,} nodes have another cluster; {self.reason}."
        n_moved = int(self.moved.sum())
        if not n_moved:
            return f"No change beyond noise; {len(self.nodes):,} changes of cluster are within it."
        rest = f"{len(self.nodes) - n_moved:,} other changes of cluster are within noise"
        return f"{counted(n_moved, 'node')} moved beyond noise; {rest}."

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain objects, ready for JSON."""
        names = self.comparison.release.names[self.nodes]
        columns = names, self.before, self.now, self.p_values, self.moved
        rows = zip(*(column.tolist() for column in columns), strict=True)
        fields = ("node", "before", "now", "p_value", "beyond_noise")
        return {
            "sentence": self.sentence,
            "nodes": [dict(zip(fields, row, strict=True)) for row in rows],
            "clusters": [
                {"cluster": cluster, "came": came, "left": left}
                for cluster, (came, left) in self.clusters.items()
            ],
            "fluctuation": self.fluctuation,
        }


def find_changes(comparison: Comparison) -> Changes:
    """Return which nodes of two releases moved, from published values alone."""
    release, earlier = comparison.release, comparison.earlier
    here, there = comparison.common
    before = np.full(release.n_nodes, -1)
    before[here] = earlier.labels[there]
    now = release.follow(earlier).labels
    nodes = np.flatnonzero((before >= 0) & (now >= 0) & (before != now))
    p_values, reason, fluctuation = np.ones(len(nodes)), "", 1.0
    if comparison.same_draw:
        reason = "both are one release, clustered twice"
    elif not (release.published.whole_graph and earlier.published.whole_graph):
        reason = "weights of a tree alone do not tell which of them moved"
    else:
        p_values, fluctuation = _Scores.of(comparison, before, now).p_values(nodes, now[nodes])
    moved = _named(p_values, comparison.n_common)
    return Changes(
        comparison, nodes, before[nodes], now[nodes], p_values, moved, reason, fluctuation
    )


def _named(p_values: Floats, n_tests: int) -> Array:
    """Return what Benjamini and Hochberg's rule rejects of so many tests, others being 1."""
    order = np.argsort(p_values)
    passes = p_values[order] <= LEVEL * np.arange(1, len(order) + 1) / n_tests
    count = int(np.flatnonzero(passes)[-1]) + 1 if passes.any() else 0
    named = np.zeros(len(p_values), dtype=bool)
    named[order[:count]] = True
    return named


@dataclass(frozen=True, eq=False)
class _Scores:
    """Changes of the weights from every node to the core of every cluster.

    The core of a cluster are the nodes that are in it both times, or at all if there are none.
    """

    before: Ints
    sums: Any  # nodes by clusters, sparse: the change of weight, its sign that of a similarity
    counts: Any  # likewise: of how many edges
    deviation: float  # of the change of a weight by noise
    gaussian: bool

    @classmethod
    def of(cls, comparison: Comparison, before: Ints, now: Ints) -> _Scores:
        from scipy.sparse import csr_matrix

        release, earlier = comparison.release, comparison.earlier
        sources, targets, new, old = _common_edges(comparison)
        scale, sign = 1.0, 1.0 if release.kind == "similarity" else -1.0
        if release.kind == "similarity" and old.sum() > 0 < new.sum():
            scale = float(new.sum() / old.sum())  # more or fewer records in all are not a move
        change, nodes = sign * (new - scale * old), release.n_nodes
        both = np.concatenate([sources, targets]), np.concatenate([targets, sources])
        core = _core(before, now)
        n_clusters = int(max(before.max(), now.max())) + 1
        of_cluster = csr_matrix((np.ones(len(core[0])), core), shape=(nodes, n_clusters))
        counts, sums = (
            csr_matrix((np.tile(values, 2), both), shape=(nodes, nodes)) @ of_cluster
            for values in (np.ones(len(change)), change)
        )
        noise = release.weight_noise, earlier.weight_noise
        deviation = np.hypot(noise[0].standard_deviation, scale * noise[1].standard_deviation)
        gaussian = all(each.law is GAUSSIAN for each in noise)
        return cls(before, sums, counts, float(deviation), gaussian)

    def p_values(self, nodes: Ints, now: Ints) -> tuple[Floats, float]:
        """Return how often noise alone shows moves as clear as those of nodes, and the rest."""
        everywhere = np.flatnonzero(self.before >= 0)
        others = self.counts[everywhere].tolil()
        others[np.arange(len(everywhere)), self.before[everywhere]] = 0
        next_best = np.asarray(others.tocsr().argmax(axis=1)).reshape(-1)
        usual, _ = self._scores(everywhere, next_best)
        fluctuation = 1.0
        if len(usual):
            fluctuation = max(1.0, float(np.median(np.abs(usual))) / _MEDIAN_OF_NORMAL)
        scores, largest = self._scores(nodes, now)
        n_others = np.maximum(np.diff(self.counts.tocsr().indptr)[nodes] - 1, 1)
        return np.minimum(1.0, n_others * self._tail(scores / fluctuation, largest)), fluctuation

    def _scores(self, nodes: Ints, towards: Ints) -> tuple[Floats, Floats]:
        """Return by how many deviations nodes moved towards clusters, and the share of one edge."""
        left = self.before[nodes]
        n_to, n_from = (_at(self.counts, nodes, each) for each in (towards, left))
        gained, lost = (_at(self.sums, nodes, each) for each in (towards, left))
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.where(n_to > 0, gained / n_to, 0.0) - np.where(n_from > 0, lost / n_from, 0.0)
            variance = np.where(n_to > 0, 1 / n_to, 0.0) + np.where(n_from > 0, 1 / n_from, 0.0)
            scores = np.where(variance > 0, rise / (self.deviation * np.sqrt(variance)), 0.0)
        largest = np.maximum(*(np.where(n > 0, 1 / np.maximum(n, 1), 0.0) for n in (n_to, n_from)))
        return scores, largest / np.sqrt(np.maximum(variance, 1e-300))

    def _tail(self, scores: Floats, largest: Floats) -> Floats:
        """Return a bound on the probability that noise has such a score.

        Of noise that is not Gaussian, Bernstein's: ``largest`` is the share of one edge.
        """
        from scipy.special import ndtr

        if self.gaussian:
            return np.asarray(ndtr(-scores))
        rising = np.maximum(scores, 0.0)
        return np.asarray(np.exp(-(rising**2) / (2.0 * (1.0 + rising * largest / np.sqrt(2.0)))))


def _at(matrix: Any, rows: Ints, columns: Ints) -> Floats:
    """Return entries of a sparse matrix."""
    if not len(rows):
        return np.zeros(0)
    return np.asarray(matrix[rows, columns], dtype=np.float64).reshape(-1)


def _core(before: Ints, now: Ints) -> tuple[Ints, Ints]:
    """Return nodes and the clusters of whose cores they are."""
    stay = np.flatnonzero((before == now) & (now >= 0))
    has_core = np.zeros(int(max(before.max(), now.max())) + 1, dtype=bool)
    has_core[now[stay]] = True
    parts = [(stay, now[stay])]
    for labels in (before, now):
        members = np.flatnonzero((labels >= 0) & ~has_core[labels])
        parts.append((members, labels[members]))
    nodes, clusters = (np.concatenate(each) for each in zip(*parts, strict=True))
    return nodes, clusters


def _common_edges(comparison: Comparison) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the edges of both releases, as nodes of the later one, with both noisy weights."""
    release, earlier = comparison.release, comparison.earlier
    here, there = comparison.common
    node_of = np.full(earlier.n_nodes, -1)
    node_of[there] = here
    ends = node_of[earlier.topology.sources], node_of[earlier.topology.targets]
    known = np.flatnonzero((ends[0] >= 0) & (ends[1] >= 0))

    def keys(a: Ints, b: Ints) -> Ints:
        return np.minimum(a, b).astype(np.int64) * release.n_nodes + np.maximum(a, b)

    mine = keys(release.topology.sources, release.topology.targets)
    theirs = keys(ends[0][known], ends[1][known])
    _, at, other = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    weights = release.noisy_weights[at], earlier.noisy_weights[known[other]]
    return release.topology.sources[at], release.topology.targets[at], *weights
