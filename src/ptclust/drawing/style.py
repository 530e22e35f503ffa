"""The look of clusters: a colour and a marker each, the same in every picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ptclust._types import Ints

#: Okabe and Ito's seven, which all kinds of colour vision can distinguish, and eight more, each as
#: far from all before it as can be, also for eyes that lack green.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442"),
    *("#2233BB", "#881122", "#00DD66", "#880077", "#8888FF", "#777722", "#AACC99", "#CCBBEE"),
)
#: Coprime to the colours: pairs of both repeat after 120 clusters.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
UNCLUSTERED, ALONE, OTHERS = "#9a9a9a", "#444444", "#6f6f6f"
CUT, PLAIN, AUXILIARY = "#bdbdbd", "#333333", "#777777"

_MOST_GROUPS = 200


@dataclass(frozen=True)
class Group:
    """Nodes that are drawn alike: a cluster, or all nodes without one."""

    label: int | None  # of a cluster of its own look
    title: str
    size: int
    colour: str
    marker: str

    @property
    def tag(self) -> str:
        """What is written on the cluster."""
        return "" if self.label is None else str(self.label)


@dataclass(frozen=True)
class Groups:
    """Labels as a picture shows them.

    A cluster of at least two nodes has a colour and a marker. Single nodes are crosses, unclustered
    nodes grey; beyond 200 clusters the smallest share one look, and the legend says so.

    Examples
    --------
    >>> groups = Groups.of([0, 0, 1, 2, 2, -1])
    >>> [group.title for group in groups.all]
    ['cluster 0: 2 nodes', 'cluster 2: 2 nodes', '1 node alone', '1 node unclustered']
    >>> groups.of_node.tolist()
    [0, 0, 2, 1, 1, 3]
    """

    labels: Ints

    @classmethod
    def of(cls, labels: ArrayLike) -> Groups:
        """Return the groups of labels, -1 for unclustered nodes."""
        return cls(np.asarray(labels, dtype=np.int64))

    @cached_property
    def sizes(self) -> Ints:
        """The number of nodes of every label."""
        return np.bincount(self.labels[self.labels >= 0], minlength=1)

    @cached_property
    def shown(self) -> Ints:
        """The labels of the clusters that have a look of their own, ascending."""
        large = np.flatnonzero(self.sizes > 1)
        by_size = large[np.argsort(-self.sizes[large], kind="stable")]
        return np.sort(by_size[:_MOST_GROUPS])

    @cached_property
    def of_node(self) -> Ints:
        """The place in ``all`` of the group of every node."""
        kind_of = np.where(self.sizes == 1, 1, 0) + len(self.shown)
        kind_of[self.shown] = np.arange(len(self.shown))
        of_node = np.where(self.labels < 0, len(self.shown) + 2, kind_of[self.labels])
        return np.unique(of_node, return_inverse=True)[1].reshape(-1)

    @cached_property
    def all(self) -> tuple[Group, ...]:
        """All groups that have nodes: clusters by label, then the others."""
        found = [
            Group(
                int(label),
                f"cluster {label}: {self.sizes[label]:,} nodes",
                int(self.sizes[label]),
                COLOURS[label % len(COLOURS)],
                MARKERS[label % len(MARKERS)],
            )
            for label in self.shown.tolist()
        ]
        others = np.setdiff1d(np.flatnonzero(self.sizes > 1), self.shown)
        n_alone, n_unclustered = int((self.sizes == 1).sum()), int((self.labels < 0).sum())
        rest = (
            (f"{len(others):,} smaller clusters", int(self.sizes[others].sum()), OTHERS, "."),
            (_nodes(n_alone, "alone"), n_alone, ALONE, "x"),
            (_nodes(n_unclustered, "unclustered"), n_unclustered, UNCLUSTERED, "."),
        )
        return (*found, *(Group(None, *each) for each in rest if each[1]))


def _nodes(count: int, how: str) -> str:
    return f"1 node {how}" if count == 1 else f"{count:,} nodes {how}"
