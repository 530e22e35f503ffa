"""A summary of a release: its clusters, how probable they are, and the noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._markup import counted, facts, listed, macros, number, rendered
from ptclust._tables import right_aligned
from ptclust._types import Array, Floats, Ints
from ptclust.clustering import CLUSTERERS
from ptclust.clustering.certainty import SURE
from ptclust.clustering.clusterer import Support
from ptclust.errors import UsageError
from ptclust.mechanisms import MECHANISMS
from ptclust.mechanisms.mechanism import Calibration
from ptclust.privacy.budget import Budget
from ptclust.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from ptclust.release.release import Release

_MEMBERS_SHOWN, _ROWS_IN_TEXT, _ROWS_IN_HTML = 6, 20, 10
_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the epsilon of the release
_MARKS = {"topology": " (from the public topology alone)", "none": " (nothing supports clusters)"}


@dataclass(frozen=True)
class ClusterSummary:
    """One cluster: its nodes, and the mean released weight of edges within it and to others."""

    label: int
    members: Array
    within: float | None
    across: float | None
    evidence: Support | None  # what supports it; None if that is not known
    probability: float | None  # that another release shows it, too; None if not computed

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.members)


@dataclass(frozen=True)
class Visibility:
    """At one epsilon: the noise on a weight, and the separation needed to find clusters."""

    epsilon: float
    noise: float
    visible_gap: float


@dataclass(frozen=True)
class Separation:
    """How far clusters are separated in the released weights, compared with the noise."""

    within: float | None  # mean released weight within clusters; None without such an edge
    across: float | None  # likewise between clusters
    n_within: int
    n_across: int
    gap: float | None  # how much closer nodes are within clusters than across
    at_epsilon: Visibility  # of the release
    visibilities: tuple[Visibility, ...]  # also at multiples that the mechanism is calibrated to
    evidence: Support | None  # what supports the clusters, if the clusterer tells
    certainty: str  # how many clusters and nodes are sure, in words; empty if not computed

    @property
    def lines(self) -> list[str]:
        """What other epsilons would have shown, as lines of a table."""
        rows = [
            (f"{each.epsilon:g}", f"{each.noise:.3g}", f"{each.visible_gap:.3g}")
            for each in self.visibilities
        ]
        return right_aligned([("epsilon", "noise", "separation needed"), *rows])

    @property
    def evidence_words(self) -> str:
        """What supports the clusters, in a sentence; empty if that is not known."""
        return _say("evidence", self.evidence)

    @property
    def caveat(self) -> str:
        """What to keep in mind about the verdict; empty if there is none."""
        return _say("caveat", self)

    @property
    def verdict(self) -> str:
        """How sure the clusters are and what supports them, or how the gap compares with noise."""
        return _say("verdict", self)


@dataclass(frozen=True)
class Summary:
    """The clusters of a release, and how probable they are; post-processing."""

    release: Release
    of_level: Ints | None = None
    """Labels of another level, if the clusters of that are meant."""

    @property
    def _labels(self) -> Ints:
        """The clusters as they were found, numbered 0, 1, 2, ..."""
        if self.of_level is not None:
            return self.of_level
        found = self.release.clustering
        return self.release.labels if found is None else found.labels

    @cached_property
    def _edges(self) -> tuple[Ints, Ints, Floats]:
        topology, labels = self.release.topology, self._labels
        return labels[topology.sources], labels[topology.targets], self.release.noisy_weights

    @cached_property
    def elsewhere(self) -> tuple[tuple[Any, int, int], ...]:
        """Nodes that may equally well belong elsewhere: name, cluster and the other cluster.

        The least probable come first; empty if that was not computed.
        """
        if (found := self.release.certainty) is None:
            return ()
        nodes = np.flatnonzero(found.elsewhere >= 0)
        nodes = nodes[np.argsort(found.nodes[nodes], kind="stable")]
        other, follows = found.elsewhere[nodes], self.release.follows
        other = other if follows is None else follows.rename(other)
        columns = self.release.names[nodes], self.release.labels[nodes], other
        return tuple(zip(*(each.tolist() for each in columns), strict=True))

    @property
    def certainty_words(self) -> str:
        """How many clusters and nodes are sure, in words; empty if that was not computed."""
        found, release = self.release.certainty, self.release
        if found is None or not release.n_nodes:
            return ""
        if not found.nodes.any():
            return "With one cluster there are no probabilities of nodes."
        clustered = release.labels >= 0
        counts = found.clusters >= SURE, found.nodes[clustered] < SURE, clustered
        sums = (int(each.sum()) for each in counts)
        return _say("certainty", release, *sums, len(self.elsewhere), SURE)

    @cached_property
    def clusters(self) -> tuple[ClusterSummary, ...]:
        """All clusters, the largest first."""
        release, labels, count = self.release, self._labels, int(self._labels.max(initial=-1)) + 1
        a, b, weights = self._edges
        inside, between = (a == b) & (a >= 0), a != b
        within = _means(a[inside], weights[inside], count)
        ends = np.concatenate([a[between], b[between]])
        across = _means(ends, np.tile(weights[between], 2), count)
        order = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
        parts = np.split(order, np.cumsum(np.bincount(labels[order], minlength=count)))[:count]
        numbers: Sequence[int] = range(count)
        evidence: Sequence[Support | None] = ()
        probable: Sequence[float | None] = ()
        if self.of_level is None:  # of other levels it is not known
            numbers = numbers if release.follows is None else release.follows.numbers
            evidence = () if release.evidence is None else release.evidence.clusters
            probable = () if release.certainty is None else release.certainty.clusters.tolist()
        members = [release.names[part] for part in parts]
        unknown = [None] * count
        columns = numbers, members, within, across, evidence or unknown, probable or unknown
        found = [ClusterSummary(*each) for each in zip(*columns, strict=True)]
        shown = (each for each in found if each.size)  # numbers of a level may have gaps
        return tuple(sorted(shown, key=lambda cluster: -cluster.size))

    @cached_property
    def separation(self) -> Separation:
        """Noise against separation, and what other epsilons would have shown."""
        release, (a, b, weights) = self.release, self._edges
        both = (a >= 0) & (b >= 0)
        inside, between = both & (a == b), both & (a != b)
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge weights overflow
            within, across = (
                float(weights[part].mean()) if part.any() else None for part in (inside, between)
            )
        gap = None
        if within is not None and across is not None:
            gap = across - within if release.kind == "distance" else within - across
        visibilities = _visibilities(release)
        return Separation(
            within=within,
            across=across,
            n_within=int(inside.sum()),
            n_across=int(between.sum()),
            gap=gap,
            at_epsilon=visibilities[1.0],
            visibilities=tuple(visibilities.values()),
            evidence=None if release.evidence is None else release.evidence.partition,
            certainty=self.certainty_words,
        )

    @cached_property
    def topology_agreement(self) -> float | None:
        """Adjusted Rand index of the clusters and those of the topology alone, if these are known.

        At 1 the clusters reveal nothing about the weights.
        """
        found = self.release.clustering
        if found is None or found.topology_labels is None:
            return None
        from sklearn.metrics import adjusted_rand_score

        return float(adjusted_rand_score(found.topology_labels, found.labels))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain objects, ready for JSON."""
        release, separation = self.release, self.separation
        shown = ("n_nodes", "n_clusters", "n_unclustered", "clusterer", "dbcvi", "kind")
        return {
            **{name: getattr(release, name) for name in shown},
            "n_edges": release.topology.n_edges,
            "mechanism": release.published.mechanism,
            "noise": release.weight_noise.to_dict(),
            "separation": {
                **{name: getattr(separation, name) for name in ("within", "across", "gap")},
                "verdict": separation.verdict,
                "at_epsilons": [vars(each) for each in separation.visibilities],
            },
            "evidence": separation.evidence,
            "topology_agreement": self.topology_agreement,
            "levels": [
                {"n_clusters": level.n_clusters, "support": level.support}
                for level in release.levels
            ],
            "clusters": [
                {**vars(each), "size": each.size, "members": each.members.tolist()}
                for each in self.clusters
            ],
            "nodes_elsewhere": [
                dict(zip(("node", "cluster", "elsewhere"), each, strict=True))
                for each in self.elsewhere
            ],
            "advice": list(release.advice),
            "statement": release.statement.to_dict(),
        }

    @property
    def topology_words(self) -> str:
        """What the topology alone gives, in a sentence; empty if that is not known."""
        found, evidence = self.topology_agreement, self.release.evidence
        if found is None or (evidence is not None and evidence.partition == "topology"):
            return ""
        return _say("topology", found)

    @property
    def heading(self) -> str:
        """How many clusters, and by what."""
        release = self.release
        if release.clustering is None:
            return f"No clusters yet of {counted(release.n_nodes, 'node')}; `recluster` finds them"
        left = f", {release.n_unclustered:,} unclustered" * (release.n_unclustered > 0)
        return f"{self.found}{left}, found by {release.clusterer}"

    @property
    def found(self) -> str:
        """How many clusters of how many nodes; marked if weights do not support them."""
        release = self.release
        clusters, nodes = counted(release.n_clusters, "cluster"), counted(release.n_nodes, "node")
        evidence = release.evidence
        mark = "" if evidence is None else _MARKS.get(evidence.partition, "")
        return f"{clusters} of {nodes}{mark}"

    @property
    def guarantee(self) -> str:
        """Epsilon, delta and unit in a line."""
        statement = self.release.statement
        delta = f", delta = {statement.delta:g}" * (statement.delta > 0)
        private = "" if statement.private else "NOT PRIVATE; "
        return f"{private}epsilon = {statement.epsilon:g}{delta}"

    def to_text(self, phrase: Callable[[str], str] = str) -> str:
        """Return guarantee, clusters and how sure they are as text for a terminal.

        ``phrase`` makes the advice, which is about Python, one about something else.
        """
        release = self.release
        return rendered(
            "summary.txt",
            summary=self,
            release=release,
            chosen=None if release.clustering is None else release.clustering.level,
            advice=map(phrase, release.advice),
        )

    def table(self, most: int) -> tuple[list[str], list[list[str]]]:
        """Return the head and the first rows of a table of the clusters."""
        shown = self.clusters[:most]
        columns = {
            "cluster": [str(each.label) for each in shown],
            "nodes": [f"{each.size:,}" for each in shown],
            "within": [number(each.within) for each in shown],
            "across": [number(each.across) for each in shown],
            "probability": [
                f"{each.probability:.2f}" for each in shown if each.probability is not None
            ],
            "evidence": [each.evidence for each in shown if each.evidence is not None],
            "members": [listed(each.members.tolist(), _MEMBERS_SHOWN) for each in shown],
        }
        known = {name: column for name, column in columns.items() if column}
        return list(known), [list(row) for row in zip(*known.values(), strict=True)]

    @property
    def lines(self) -> list[str]:
        """The table of the largest clusters, as lines; members are not aligned."""
        head, rows = self.table(_ROWS_IN_TEXT)
        lines = right_aligned([head[:-1], *(row[:-1] for row in rows)])
        members = (row[-1] for row in rows)
        more = (f"{line}  {each}" for line, each in zip(lines[1:], members, strict=True))
        left = len(self.clusters) - len(rows)
        last = f"  and {counted(left, 'more cluster')}, each of at most "
        rest = [last + counted(self.clusters[len(rows)].size, "node")] if left else []
        return [lines[0], *more, *rest]

    def to_html(self) -> str:
        """Return guarantee, clusters and how sure they are for a notebook."""
        left = len(self.clusters) - _ROWS_IN_HTML
        return facts(
            self.heading,
            [
                ("guarantee", self.guarantee),
                ("privacy unit", self.release.statement.privacy_unit),
                ("how sure", self.separation.verdict),
            ],
            self.table(_ROWS_IN_HTML) if self.clusters else None,
            f"and {counted(left, 'more cluster')}" if left > 0 else "",
        )


def _means(of: Ints, values: Floats, count: int) -> list[float | None]:
    """Return the mean of the values of every number below ``count``, None where there is none."""
    kept = of >= 0
    counts = np.bincount(of[kept], minlength=count)
    with np.errstate(all="ignore"):
        means = np.bincount(of[kept], values[kept], minlength=count) / counts
    return [mean if np.isfinite(mean) else None for mean in means.tolist()]


def _visibilities(release: Release) -> dict[float, Visibility]:
    """Calibrate the mechanism of a release to multiples of its epsilon, all else as it was."""
    statement, published, topology = release.statement, release.published, release.topology
    mechanism = MECHANISMS[published.mechanism]
    sensitivity = Sensitivity(**statement.sensitivity)
    shares = [use.share for use in statement.mechanisms]
    split = Fraction(shares[0]) / Fraction(sum(shares)) if len(shares) > 1 else None
    largest = max(map(abs, statement.clip or (0.0,)))
    counts = release.n_nodes, topology.n_edges, release.tree.n_edges
    gaps = {each.name: each.visible_gap(*counts) for each in CLUSTERERS}
    gap = gaps.get(release.clusterer or "", max(gaps.values()))

    def calibrated(multiple: float) -> Calibration:
        if multiple == 1.0:  # what the published values show
            uses, shown = statement.mechanisms, None
            if uses:
                shown = mechanism.recalibrate(published, sensitivity, uses)
            spent = Budget.approximate(statement.epsilon, statement.delta)
            return shown or Calibration(mechanism.name, None, published.noise, spent, None)
        if statement.requested_epsilon is not None:
            requested = Budget.pure(multiple * statement.requested_epsilon)
            return mechanism.calibrate_published(topology, sensitivity, requested)
        budget = Budget.approximate(multiple * statement.epsilon, statement.delta)
        return mechanism.calibrate(
            topology, sensitivity, budget, split=split, largest_weight=largest
        )

    found = {}
    for multiple in _MULTIPLES:
        with suppress(UsageError):  # none of this noise is affordable
            made = calibrated(multiple)
            seen = made.weights.standard_deviation, made.noise * gap
            found[multiple] = Visibility(multiple * statement.epsilon, *seen)
    return found


def _say(macro: str, *given: Any) -> str:
    """Return what a macro of the template of sentences says."""
    return " ".join(getattr(macros("summary_words.txt"), macro)(*given).split())


def advise(release: Release) -> tuple[str, ...]:
    """Return what happened and why that may be, what costs nothing, and what would cost."""
    tree, labels = release.tree, release.labels
    if release.clustering is None or not tree.n_edges:
        return ()
    ends = labels[tree.sources], labels[tree.targets]
    inner = np.union1d(tree.sources, tree.targets)
    sizes = np.bincount(labels + 1)[labels[inner] + 1]
    alone = np.count_nonzero((sizes == 1) | (labels[inner] < 0))
    together = not alone and np.array_equal(*ends)
    if not together and 2 * alone <= len(inner):
        return ()
    with np.errstate(over="ignore", invalid="ignore"):  # the squares of huge weights overflow
        spread = float(np.std(release.noisy_weights))
    publishes = MECHANISMS[release.published.mechanism].publishes
    sizes_of_graph = release.topology.n_edges, tree.n_edges
    others = [
        f"clusterer={each.name!r}"
        for each in CLUSTERERS
        if each.name != release.clusterer and each.suits(publishes, *sizes_of_graph)
    ]
    words = macros("summary_words.txt").advice(
        alone,
        len(inner),
        release.weight_noise.standard_deviation,
        spread if np.isfinite(spread) else None,
        others,
        2 if release.clustering.min_cluster_size == 1 else 1,
    )
    return tuple(words.strip().split("\n"))
