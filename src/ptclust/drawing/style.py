"""The look of clusters: a colour and a marker each, the same in every picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ptclust._markup import counted
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


class Group(NamedTuple):
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
    """Labels as a picture shows them: the groups that have nodes, clusters first, by label.

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
    all: tuple[Group, ...]
    of_node: Ints
    """The place in ``all`` of the group of every node."""

    @classmethod
    def of(cls, given: ArrayLike) -> Groups:
        """Return the groups of labels, -1 for unclustered nodes."""
        labels = np.asarray(given, dtype=np.int64)
        sizes = np.bincount(labels[labels >= 0], minlength=1)
        large = np.flatnonzero(sizes > 1)
        shown = np.sort(large[np.argsort(-sizes[large], kind="stable")][:_MOST_GROUPS])
        others = np.setdiff1d(large, shown)
        n_alone, n_unclustered = int((sizes == 1).sum()), int((labels < 0).sum())
        n_others = int(sizes[others].sum())
        every = [
            *(
                Group(
                    label,
                    f"cluster {label}: {size:,} nodes",
                    size,
                    COLOURS[label % len(COLOURS)],
                    MARKERS[label % len(MARKERS)],
                )
                for label, size in zip(shown.tolist(), sizes[shown].tolist(), strict=True)
            ),
            Group(None, f"{len(others):,} smaller clusters", n_others, OTHERS, "."),
            Group(None, f"{counted(n_alone, 'node')} alone", n_alone, ALONE, "x"),
            Group(
                None,
                f"{counted(n_unclustered, 'node')} unclustered",
                n_unclustered,
                UNCLUSTERED,
                ".",
            ),
        ]
        number = len(shown) + np.append(sizes == 1, 2)  # the last is that of label -1
        number[shown] = np.arange(len(shown))
        of_node = np.unique(number[labels], return_inverse=True)[1].reshape(-1)
        return cls(labels, tuple(group for group in every if group.size), of_node)

    @property
    def colours(self) -> list[str]:
        """The colour of every node."""
        return [self.all[group].colour for group in self.of_node.tolist()]
