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
import polars as pl

from ptclust._markup import counted
from ptclust._types import Array, Floats, Ints
from ptclust.privacy.noise import GAUSSIAN

if TYPE_CHECKING:
    from ptclust.release.comparison import Comparison
    from ptclust.release.release import Release

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
        p_values, fluctuation = _p_values(comparison, before, now, nodes)
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


def _p_values(comparison: Comparison, before: Ints, now: Ints, nodes: Ints) -> tuple[Floats, float]:
    """Return how often noise alone shows moves as clear as those of nodes, and the fluctuation."""
    release, earlier = comparison.release, comparison.earlier
    edges = _common_edges(comparison)
    new, old = edges["new"].to_numpy(), edges["old"].to_numpy()
    scale, sign = 1.0, 1.0 if release.kind == "similarity" else -1.0
    if release.kind == "similarity" and old.sum() > 0 < new.sum():
        scale = float(new.sum() / old.sum())  # more or fewer records in all are not a move
    noise = release.weight_noise, earlier.weight_noise
    deviation = np.hypot(noise[0].standard_deviation, scale * noise[1].standard_deviation)
    edges = edges.select("node", "other", change=pl.Series(sign * (new - scale * old)))
    ends = pl.concat([edges, edges.select(node="other", other="node", change="change")])
    core, both = pl.DataFrame(_core(before, now), ["other", "cluster"]), ["node", "cluster"]
    to_core = ends.join(core, on="other", maintain_order="left_right")
    sums = to_core.group_by(both, maintain_order=True).agg(pl.sum("change"), n=pl.len())

    def looked_up(table: pl.DataFrame, of: Ints, *clusters: Ints) -> list[Array]:
        """Return what a table has for nodes, or for nodes and clusters; 0 if nothing."""
        keys = pl.DataFrame([of, *clusters], both[: 1 + len(clusters)])
        found = keys.join(table, on=keys.columns, how="left", maintain_order="left").fill_null(0)
        return [found[name].to_numpy() for name in found.columns[len(keys.columns) :]]

    def scores(of: Ints, towards: Ints) -> tuple[Floats, Floats]:
        """Return by how many deviations nodes moved, and the largest share of one edge in these."""
        (gained, n_to), (lost, n_from) = (
            looked_up(sums, of, each) for each in (towards, before[of])
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.where(n_to > 0, gained / n_to, 0.0) - np.where(n_from > 0, lost / n_from, 0.0)
            shares = [np.where(n > 0, 1 / n, 0.0) for n in (n_to, n_from)]
            variance = shares[0] + shares[1]
            score = np.where(variance > 0, rise / (deviation * np.sqrt(variance)), 0.0)
        return score, np.maximum(*shares) / np.sqrt(np.maximum(variance, 1e-300))

    everywhere = np.flatnonzero(before >= 0)
    own = pl.DataFrame([everywhere, before[everywhere]], both)
    others = sums.join(own, on=both, how="anti").sort("n", "cluster", descending=[True, False])
    nearest = others.unique("node", keep="first", maintain_order=True).select(both)
    usual, _ = scores(everywhere, *looked_up(nearest, everywhere))
    fluctuation = 1.0
    if len(usual):
        fluctuation = max(1.0, float(np.median(np.abs(usual))) / _MEDIAN_OF_NORMAL)
    score, largest = scores(nodes, now[nodes])
    (n_clusters,) = looked_up(sums.group_by("node").agg(n=pl.len()), nodes)
    n_others = np.maximum(n_clusters.astype(np.int64) - 1, 1)
    gaussian = all(each.law is GAUSSIAN for each in noise)
    return np.minimum(1.0, n_others * _tail(score / fluctuation, largest, gaussian)), fluctuation


def _tail(scores: Floats, largest: Floats, gaussian: bool) -> Floats:
    """Return a bound on the probability that noise has such a score.

    Of noise that is not Gaussian, Bernstein's: ``largest`` is the share of one edge.
    """
    from scipy.special import ndtr

    if gaussian:
        return np.asarray(ndtr(-scores))
    rising = np.maximum(scores, 0.0)
    return np.asarray(np.exp(-(rising**2) / (2.0 * (1.0 + rising * largest / np.sqrt(2.0)))))


def _core(before: Ints, now: Ints) -> tuple[Ints, Ints]:
    """Return nodes and the clusters of whose cores they are.

    These are the nodes that are in a cluster both times, or at all if there are none.
    """
    stay = np.flatnonzero((before == now) & (now >= 0))
    has_core = np.zeros(int(max(before.max(), now.max())) + 1, dtype=bool)
    has_core[now[stay]] = True
    parts = [(stay, now[stay])]
    for labels in (before, now):
        members = np.flatnonzero((labels >= 0) & ~has_core[labels])
        parts.append((members, labels[members]))
    nodes, clusters = (np.concatenate(each) for each in zip(*parts, strict=True))
    return nodes, clusters


def _common_edges(comparison: Comparison) -> pl.DataFrame:
    """Return the edges of both releases, as nodes of the later one, with both noisy weights."""
    here, there = comparison.common
    node_of = np.full(comparison.earlier.n_nodes, -1)
    node_of[there] = here

    def table(release: Release, node: Ints, name: str) -> pl.DataFrame:
        a, b = node[release.topology.sources], node[release.topology.targets]
        ends = {"node": np.minimum(a, b), "other": np.maximum(a, b)}
        return pl.DataFrame({**ends, name: release.noisy_weights})

    new = table(comparison.release, np.arange(comparison.release.n_nodes), "new")
    old = table(comparison.earlier, node_of, "old").filter(pl.col("node") >= 0)
    return new.join(old, on=["node", "other"], maintain_order="left")
