"""Compare two releases: which clusters match, keep their numbers, and what both cost together."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ptclust._markup import facts
from ptclust._tables import data_frame, right_aligned
from ptclust._types import Ints
from ptclust.errors import InputError
from ptclust.privacy import _checks as check
from ptclust.privacy.budget import Budget

if TYPE_CHECKING:
    from ptclust.release.changes import Changes
    from ptclust.release.release import Release

_ROWS_SHOWN = 30
_MOST_NUMBERS = 2**26  # arrays of as many are made on the word of a file
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Match:
    """A cluster and the earlier one that it is matched with; None on one side if there is none."""

    label: int | None
    earlier: int | None
    size: int
    earlier_size: int
    shared: int

    @property
    def overlap(self) -> float:
        """Shared nodes as a share of all nodes of both: the Jaccard index."""
        return self.shared / max(self.size + self.earlier_size - self.shared, 1)


@dataclass(frozen=True, eq=False)
class Comparison:
    """How the clusters of a release match those of an earlier one.

    Nodes are the same if their names are. Clusters are matched one to one so that matched clusters
    share as many nodes as possible (an assignment problem). Nodes that only one of the releases has
    count for the sizes.

    Notes
    -----
    *Privacy.* Post-processing of two releases. What both cost together is in ``cost``.
    """

    release: Release
    earlier: Release

    @cached_property
    def common(self) -> tuple[Ints, Ints]:
        """The nodes of both releases, as numbers in each."""
        node_of = {name: node for node, name in enumerate(self.earlier.names.tolist())}
        pairs = [
            (node, node_of[name])
            for node, name in enumerate(self.release.names.tolist())
            if name in node_of
        ]
        if not pairs:
            raise InputError("the releases have no node name in common: they are not of one graph")
        both = np.array(pairs, dtype=np.int64)
        return both[:, 0], both[:, 1]

    @cached_property
    def changes(self) -> Changes:
        """Which nodes moved beyond noise, and which changes of cluster are within it."""
        from ptclust.release.changes import find_changes

        return find_changes(self)

    @property
    def n_common(self) -> int:
        """Number of nodes that both releases have."""
        return len(self.common[0])

    @cached_property
    def matches(self) -> tuple[Match, ...]:
        """All clusters of both, by earlier label; new ones, with no earlier one, come last."""
        here, there = self.common
        now, before = self.release.labels, self.earlier.labels
        sizes: Counter[int | None]  # of None: 0
        earlier_sizes: Counter[int | None]
        sizes, earlier_sizes = (Counter(each[each >= 0].tolist()) for each in (now, before))
        shared = _matched(now[here], before[there], int(now.max(initial=-1)) + 1)
        kept = sorted((old, label, count) for label, (old, count) in shared.items())
        gone = sorted(set(np.unique(before[before >= 0]).tolist()) - {old for old, *_ in kept})
        new = sorted(set(np.unique(now[now >= 0]).tolist()) - set(shared))
        rows: list[tuple[int | None, int | None, int]]
        rows = [*kept, *((old, None, 0) for old in gone), *((None, label, 0) for label in new)]
        return tuple(
            Match(label, old, sizes[label], earlier_sizes[old], count) for old, label, count in rows
        )

    @cached_property
    def labels(self) -> Ints:
        """The labels of the later release, renamed: a matched cluster has its earlier label.

        Clusters without an earlier one have the numbers after those of the earlier release.
        """
        renamed = np.full(int(self.release.labels.max(initial=-1)) + 2, -1)  # the last is for none
        unused = numbers_used(self.earlier)
        for match in self.matches:
            if match.label is not None:
                renamed[match.label] = unused if match.earlier is None else match.earlier
                unused += match.earlier is None
        return renamed[self.release.labels]

    @cached_property
    def agreement(self) -> float:
        """The adjusted Rand index over the common nodes: 1 if the clusters are the same.

        An unclustered node counts as a cluster of its own.
        """
        from sklearn.metrics import adjusted_rand_score

        here, there = self.common
        alone = -1 - np.arange(len(here))
        both = (self.earlier.labels[there], self.release.labels[here])
        return float(adjusted_rand_score(*(np.where(each < 0, alone, each) for each in both)))

    @property
    def same_draw(self) -> bool:
        """Whether both are one release, clustered twice: then nothing is paid twice."""
        return self.release.statement.id == self.earlier.statement.id

    @cached_property
    def cost(self) -> Budget | None:
        """What both spend together on the same people; None if one of them is not private.

        Pure guarantees add up as epsilon, others as rho of zCDP, as in a ledger; what is known by
        no rho, as (epsilon, delta). What the building of a graph spent is part of it, and of one
        graph counts once.
        """
        parts: dict[str, Budget] = {}  # by id: what both share is paid once
        for each in (self.earlier.statement, self.release.statement):
            if not each.private:
                return None
            parts[each.id] = Budget.approximate(each.epsilon, each.delta, each.rho)
            if each.provenance is not None:
                parts |= {spent.id: spent.budget for spent in each.provenance.spent}
        first, *others = parts.values()
        if not others or all(each.kind == "pure" for each in parts.values()):
            return sum(others, first)
        rhos = [each.implied_zcdp for each in parts.values()]
        known = [each for each in rhos if each is not None]
        if len(known) == len(rhos):
            return sum(known[1:], known[0])
        return Budget.approximate(
            sum(each.epsilon for each in parts.values()), sum(each.delta for each in parts.values())
        )

    def _cost_words(self) -> str:
        cost = self.cost
        if cost is None:
            return "one of the releases is not private, so both together are not"
        if self.same_draw:
            return f"{cost}: one release, clustered twice"
        words = str(cost)
        if cost.kind == "zcdp":
            delta = max(self.release.statement.delta, self.earlier.statement.delta)
            words += f", that is epsilon = {cost.epsilon_at(delta):.6g} at delta = {delta:g}"
        return f"{words}, if they are about the same people"

    def to_dataframe(self, backend: Literal["polars", "pandas"] = "polars") -> Any:
        """Return a table of ``node`` and ``cluster``, numbered as in the earlier release."""
        return data_frame({"node": self.release.names, "cluster": self.labels}, backend)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain objects, ready for JSON."""
        return {
            "n_common": self.n_common,
            "agreement": self.agreement,
            "same_draw": self.same_draw,
            "cost": None if self.cost is None else self.cost.to_dict(),
            "matches": [{**vars(match), "overlap": match.overlap} for match in self.matches],
            "nodes": self.release.names.tolist(),
            "labels": self.labels.tolist(),
            "changes": self.changes.to_dict(),
        }

    def _rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        head = ("cluster", "earlier", "nodes", "earlier nodes", "shared", "overlap")
        rows: list[tuple[str, ...]] = [
            (
                "gone" if each.label is None else str(each.label),
                "new" if each.earlier is None else str(each.earlier),
                *(f"{count:,}" for count in (each.size, each.earlier_size, each.shared)),
                f"{each.overlap:.2f}",
            )
            for each in self.matches[:_ROWS_SHOWN]
        ]
        return head, rows

    def _facts(self) -> list[tuple[str, object]]:
        return [
            ("common nodes", f"{self.n_common:,}"),
            ("agreement", f"{self.agreement:.3f} (adjusted Rand index)"),
            ("changes", self.changes.sentence),
            ("cost together", self._cost_words()),
        ]

    def to_text(self) -> str:
        """Return the comparison as text for a terminal."""
        head, rows = self._rows()
        lines = [f"{name:15}{value}" for name, value in self._facts()]
        left = len(self.matches) - len(rows)
        more = [f"  and {left:,} more"] if left else []
        return "\n".join([*lines, "", *right_aligned([head, *rows]), *more])

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"Comparison(n_common={self.n_common}, agreement={self.agreement:.3f})"

    def _repr_html_(self) -> str:
        return facts("Comparison of two releases", self._facts(), self._rows())


def _matched(now: Ints, before: Ints, count: int) -> dict[int, tuple[int, int]]:
    """Return the earlier cluster of every cluster that has one, and how many nodes they share.

    Every row of the matrix may take a column of its own that stands for "none"; all entries are
    one larger than the shared nodes, because sparse matchings know no zeros.
    """
    from scipy.sparse import coo_array, csr_array, eye_array, hstack
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    both = (now >= 0) & (before >= 0)
    a, b = now[both], before[both]
    if not len(a):
        return {}
    width = int(b.max()) + 1
    counts = csr_array(coo_array((np.ones(len(a)), (a, b)), shape=(count, width)))
    counts.sum_duplicates()
    rows, columns = counts.nonzero()
    only = (np.diff(counts.indptr)[rows] == 1) & (np.bincount(columns)[columns] == 1)
    pairs = list(zip(rows[only].tolist(), columns[only].tolist(), strict=True))
    left = np.unique(rows[~only])
    if len(left):  # these compete for earlier clusters
        shared = counts[left]
        shared.data = shared.data + 1.0
        whole = csr_array(hstack([shared, eye_array(len(left))], format="csr"))
        taken, columns = min_weight_full_bipartite_matching(whole, maximize=True)
        matched = zip(left[taken].tolist(), columns.tolist(), strict=True)
        pairs += [(row, column) for row, column in matched if column < width]
    return {row: (column, int(counts[row, column])) for row, column in pairs}


@dataclass(frozen=True)
class Follows(check.Record, called="follows"):
    """The release that came before, and the numbers that clusters have from it.

    Cluster i of the clustering has the number ``numbers[i]``. Numbers below ``used`` were given to
    some cluster of this release or of one before, and are not given to a new cluster.
    """

    digest: str  # of the file of the earlier release
    numbers: tuple[int, ...]
    used: int

    def __post_init__(self) -> None:
        if not isinstance(self.digest, str) or not _DIGEST.fullmatch(self.digest):
            raise InputError(f"follows.digest is no SHA-256 of a release: {self.digest!r}")
        numbers = list(self.numbers) if isinstance(self.numbers, (tuple, list)) else [None]
        if not all(type(each) is int for each in (*numbers, self.used)):
            raise InputError("follows.numbers and follows.used must be whole numbers")
        if len(set(numbers)) < len(numbers) or min(numbers, default=0) < 0:
            raise InputError("follows.numbers must be different, and 0 or more")
        if not max(numbers, default=-1) < self.used <= _MOST_NUMBERS:
            raise InputError(f"follows.used must be above all numbers, to {_MOST_NUMBERS:,}")
        object.__setattr__(self, "numbers", tuple(numbers))

    def rename(self, labels: Ints) -> Ints:
        """Return labels of the clustering under the numbers of their clusters."""
        return np.array([*self.numbers, -1], dtype=np.int64)[labels]


def follow(release: Release, earlier: Release) -> Follows:
    """Return the numbers of the clusters of ``release`` after those of ``earlier``.

    A cluster keeps the number of the one it is matched with if that has most of its nodes in it;
    else its number is new.
    """
    from ptclust.release.format import digest

    kept = {
        match.label: match.earlier
        for match in Comparison(release, earlier).matches
        if match.earlier is not None and 2 * match.shared > match.earlier_size
    }
    used, numbers = numbers_used(earlier), []
    for label in range(release.n_clusters):
        if (number := kept.get(label)) is None:
            number, used = used, used + 1
        numbers.append(number)
    return Follows(digest(earlier), tuple(numbers), used)


def numbers_used(release: Release) -> int:
    """Return the number from which on no cluster of a release, or before it, has been numbered."""
    if release.follows is not None:
        return release.follows.used
    return int(release.labels.max(initial=-1)) + 1
