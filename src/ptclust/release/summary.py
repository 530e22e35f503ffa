"""A summary of a release: its clusters, how probable they are, and the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._markup import counted, facts, listed, number, rendered
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

_MEMBERS_SHOWN, _ROWS_IN_HTML = 6, 10
_MULTIPLES = (0.25, 0.5, 2.0, 4.0)  # of the epsilon of the release

_MOSTLY_NOISE = 0.7
"""From this share of the standard deviation of released weights on, they differ by noise mostly."""

OPTIMISTIC = (
    "The clusters were chosen by these noisy weights, so the difference is biased upwards; the "
    "one that is needed is a rule of thumb."
)

_EVIDENCE: dict[Support, str] = {
    "weights": (
        "Supported by weights: clusters that are found without a part of the released weights "
        "predict that part."
    ),
    "topology": (
        "From the public topology alone: the released weights support no clusters, and these do "
        "not depend on any record."
    ),
    "both": (
        "Supported by weights and by the public topology: clusters that are found without a part "
        "of the edges predict that part."
    ),
    "none": (
        "Nothing supports clusters: neither the released weights nor the public topology show more "
        "than chance would."
    ),
}
_MARKS = {"topology": " (from the public topology alone)", "none": " (nothing supports clusters)"}


@dataclass(frozen=True)
class ClusterSummary:
    """One cluster: its nodes, and the mean released weight of edges within it and to others."""

    label: int
    members: Array
    within: float | None
    across: float | None
    evidence: Support | None = None
    """What supports it; None if that is not known."""
    probability: float | None = None
    """That another release shows it, too; None if not computed."""

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

    within: float | None
    """Mean released weight within clusters; None without such an edge."""
    across: float | None
    """Mean released weight between clusters."""
    n_within: int
    n_across: int
    gap: float | None
    """How much closer nodes are within clusters than across, in the unit of the weights."""
    at_epsilon: Visibility
    """At the epsilon of the release."""
    visibilities: tuple[Visibility, ...]
    """The same, and at parts and multiples of it that the mechanism can be calibrated to."""
    evidence: Support | None = None
    """What supports the clusters, if the clusterer tells."""
    certainty: str = ""
    """How many clusters and nodes are sure, in words; empty if not computed."""

    @property
    def lines(self) -> list[str]:
        """What other epsilons would have shown, as lines of a table."""
        rows = [
            (f"{each.epsilon:g}", f"{each.noise:.3g}", f"{each.visible_gap:.3g}")
            for each in self.visibilities
        ]
        return right_aligned([("epsilon", "noise", "separation needed"), *rows])

    @property
    def caveat(self) -> str:
        """What to keep in mind about the verdict; empty if there is none."""
        if self.certainty:
            return ""
        by_weights = self.evidence in (None, "weights", "both")
        return OPTIMISTIC if by_weights and self.gap is not None else ""

    @property
    def evidence_words(self) -> str:
        """What supports the clusters, in a sentence; empty if that is not known."""
        return "" if self.evidence is None else _EVIDENCE[self.evidence]

    @property
    def verdict(self) -> str:
        """How sure the clusters are and what supports them, or how the gap compares with noise."""
        if self.certainty:
            return f"{self.certainty} {self.evidence_words}".strip()
        if self.gap is None:
            none = "There are no released edges both within and across clusters to compare."
            return self.evidence_words or none
        differ = f"the mean weights within and across differ by {number(self.gap)}"
        if self.evidence is not None:
            return f"{self.evidence_words} {differ.capitalize()}."
        needed = self.at_epsilon.visible_gap
        numbers = f"{differ}, and about {number(needed)} is needed to find clusters"
        if self.gap >= needed:
            return f"More than noise: {numbers}."
        return f"Possibly noise: {numbers}."


@dataclass(frozen=True)
class Summary:
    """The clusters of a release, and how probable they are; post-processing."""

    release: Release
    of_level: Ints | None = None
    """Labels of another level, if the clusters of that are meant."""

    n_listed = 20

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
        sure, shown = int((found.clusters >= SURE).sum()), release.labels >= 0
        clusters = f"{sure:,} of {counted(release.n_clusters, 'cluster')}"
        unsure, nodes = int((found.nodes[shown] < SURE).sum()), int(shown.sum())
        words = (
            f"{clusters} {'is' if sure == 1 else 'are'} certain (probability of at least {SURE:g} "
            f"that another release shows them, too); {unsure:,} of {counted(nodes, 'node')} "
            f"{'is' if unsure == 1 else 'are'} not."
        )
        if self.elsewhere:
            words += f" {counted(len(self.elsewhere), 'node')} may equally well belong elsewhere."
        return words

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
        a, b, weights = self._edges
        both = (a >= 0) & (b >= 0)
        inside, between = both & (a == b), both & (a != b)
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge weights overflow
            within, across = (
                float(weights[part].mean()) if part.any() else None for part in (inside, between)
            )
        gap = None
        if within is not None and across is not None:
            gap = across - within if self.release.kind == "distance" else within - across
        at_epsilon = self._visibility(self.release.statement.epsilon, self._calibration)
        every = (at_epsilon, *self._at_other_epsilons())
        return Separation(
            within=within,
            across=across,
            n_within=int(inside.sum()),
            n_across=int(between.sum()),
            gap=gap,
            at_epsilon=at_epsilon,
            visibilities=tuple(sorted(every, key=lambda each: each.epsilon)),
            evidence=None if self.release.evidence is None else self.release.evidence.partition,
            certainty=self.certainty_words,
        )

    @cached_property
    def _calibration(self) -> Calibration:
        """The calibration that the published values show."""
        statement, published = self.release.statement, self.release.published
        mechanism, shown = MECHANISMS[published.mechanism], None
        if statement.mechanisms:
            shown = mechanism.recalibrate(published, self._sensitivity, statement.mechanisms)
        spent = Budget.approximate(statement.epsilon, statement.delta)
        return shown or Calibration(mechanism.name, None, published.noise, spent, None)

    @cached_property
    def _sensitivity(self) -> Sensitivity:
        return Sensitivity(**self.release.statement.sensitivity)

    def _at_other_epsilons(self) -> Iterator[Visibility]:
        """Calibrate the mechanism of the release to other epsilons, all else as it was."""
        statement, topology = self.release.statement, self.release.topology
        mechanism = MECHANISMS[self.release.published.mechanism]
        shares = [use.share for use in statement.mechanisms]
        split = Fraction(shares[0]) / Fraction(sum(shares)) if len(shares) > 1 else None
        for multiple in _MULTIPLES:
            epsilon = multiple * statement.epsilon
            with suppress(UsageError):  # none of this noise is affordable
                if statement.requested_epsilon is not None:
                    requested = Budget.pure(multiple * statement.requested_epsilon)
                    found = mechanism.calibrate_published(topology, self._sensitivity, requested)
                else:
                    found = mechanism.calibrate(
                        topology,
                        self._sensitivity,
                        Budget.approximate(epsilon, statement.delta),
                        split=split,
                        largest_weight=max(map(abs, statement.clip or (0.0,))),
                    )
                yield self._visibility(epsilon, found)

    def _visibility(self, epsilon: float, calibration: Calibration) -> Visibility:
        release = self.release
        counts = release.n_nodes, release.topology.n_edges, release.tree.n_edges
        gaps = {each.name: each.visible_gap(*counts) for each in CLUSTERERS}
        gap = gaps.get(release.clusterer or "", max(gaps.values()))
        noise = calibration.weights.standard_deviation
        return Visibility(epsilon, noise, calibration.noise * gap)

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
        return (
            f"Clusters of the public topology alone, all weights equal, agree with these to "
            f"{found:.2f} (adjusted Rand index; 1 is the same, 0 is chance), which is public."
        )

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
        """The table of the largest clusters, as lines."""
        head, rows = self.table(self.n_listed)
        lines = right_aligned([head[:-1], *(row[:-1] for row in rows)])
        return [
            lines[0],
            *(f"{line}  {row[-1]}" for line, row in zip(lines[1:], rows, strict=True)),
        ]

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
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.bincount(of[kept], values[kept], minlength=count) / np.maximum(counts, 1)
    return [
        float(mean) if n and np.isfinite(mean) else None
        for n, mean in zip(counts.tolist(), means.tolist(), strict=True)
    ]


def advise(release: Release) -> tuple[str, ...]:
    """Return what happened and why that may be, what costs nothing, and what would cost."""
    tree, labels = release.tree, release.labels
    if release.clustering is None or not tree.n_edges:
        return ()
    ends = labels[tree.sources], labels[tree.targets]
    has_edge = np.zeros(tree.n_nodes, bool)
    has_edge[tree.sources] = has_edge[tree.targets] = True
    inner = np.flatnonzero(has_edge)
    sizes = np.bincount(labels + 1)[labels[inner] + 1]
    alone = np.count_nonzero((sizes == 1) | (labels[inner] < 0))
    if np.array_equal(*ends) and not alone:
        seen = "All nodes that are connected are in one cluster"
        sizing = ""
    elif 2 * alone > len(inner):
        seen = f"{alone:,} of {len(inner):,} connected nodes are alone or unclustered"
        size = 2 if release.clustering.min_cluster_size == 1 else 1
        sizing = f", or min_cluster_size={size}"
    else:
        return ()
    return (
        f"{seen}: {_reason(release)}.",
        f"At no cost: recluster this release by {_others(release)}{sizing}.",
        "At the cost of a new release: a larger epsilon, or a smaller sensitivity if one privacy "
        "unit truly moves the weights by less; the noise shrinks with either.",
    )


def _reason(release: Release) -> str:
    """Compare the noise with what there is to see."""
    noise = release.weight_noise.standard_deviation
    with np.errstate(over="ignore", invalid="ignore"):  # the squares of huge weights overflow
        spread = float(np.std(release.noisy_weights))
    if not np.isfinite(spread):
        return (
            f"the noise on a weight has a standard deviation of {noise:.3g}, and the released "
            "weights differ by more than can be compared with it; count in larger units"
        )
    numbers = (
        f"the noise on a weight has a standard deviation of {noise:.3g}, and the released weights "
        f"have one of {spread:.3g}"
    )
    if noise >= _MOSTLY_NOISE * spread:
        return f"{numbers}, so what they differ by is mostly noise"
    return f"{numbers}, so noise alone does not explain it; another clusterer may see more"


def _others(release: Release) -> str:
    publishes = MECHANISMS[release.published.mechanism].publishes
    counts = release.topology.n_edges, release.tree.n_edges
    names = (
        f"clusterer={each.name!r}"
        for each in CLUSTERERS
        if each.name != release.clusterer and each.suits(publishes, *counts)
    )
    return " or ".join(names) or "another clusterer"
