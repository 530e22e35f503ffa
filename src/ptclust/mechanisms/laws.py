"""The exact distribution of private trees on small graphs, and its gradient.

A tree is drawn edge by edge. A step selects r among candidates with probability
exp(-E(r)) / sum_s exp(-E(s)), where E = c w is called the energy of an edge. So an order in which a
tree T may come about has the log-probability

    -E(T) - sum over its steps of A(candidates),    A(S) = log sum_{s in S} exp(-E(s)),

and the tree itself the log of the sum over all orders (and roots, for PAMST). Both are enumerated
here once per graph; what remains is arithmetic on a few hundred numbers, in the log domain, so that
any spread of the weights is exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ptclust._types import Floats

Order = tuple[int, ...]


@dataclass(frozen=True)
class SmallGraph:
    """A connected graph of a few nodes; its edges are put in order, as those of a Graph are."""

    name: str
    n_nodes: int
    edges: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        ordered = tuple(sorted(tuple(sorted(edge)) for edge in self.edges))
        object.__setattr__(self, "edges", ordered)


GRAPHS = {
    graph.name: graph
    for graph in (
        SmallGraph("K3", 3, ((0, 1), (0, 2), (1, 2))),
        SmallGraph("K4", 4, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))),
        SmallGraph("square with a diagonal", 4, ((0, 1), (0, 2), (0, 3), (1, 2), (2, 3))),
        SmallGraph("triangle with a tail", 4, ((0, 1), (0, 2), (1, 2), (2, 3))),
        SmallGraph("K5", 5, tuple((a, b) for a in range(5) for b in range(a + 1, 5))),
    )
}


class TreeLaw:
    """The distribution of the tree that a mechanism draws from a small graph, given the energies.

    The ``roots`` are equally likely. From a root, candidates are the edges that leave the piece of
    the root (Prim's order); from None, all edges that join two pieces (Kruskal's order).

    >>> law = TreeLaw("Kruskal", GRAPHS["K3"], (None,))
    >>> law.trees
    ((0, 1), (0, 2), (1, 2))
    >>> np.exp(law.log_probabilities(np.zeros(3))).round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    def __init__(self, title: str, graph: SmallGraph, roots: tuple[int | None, ...]) -> None:
        orders: dict[Order, list[Order]] = defaultdict(list)
        for root in roots:
            for chosen, masks in _grown(graph, tuple(range(graph.n_nodes)), root, (), ()):
                orders[tuple(sorted(chosen))].append(masks)
        self.title, self.graph, self.roots = title, graph, roots
        self.trees = tuple(sorted(orders))
        steps = [masks for tree in self.trees for masks in orders[tree]]
        distinct = sorted({mask for order in steps for mask in order})
        column = {mask: i for i, mask in enumerate(distinct)}
        edges = np.arange(len(graph.edges))
        self._candidates = (np.array(distinct)[:, None] >> edges & 1).astype(bool)
        self._uses = np.zeros((len(steps), len(distinct)))
        for row, order in enumerate(steps):
            for mask in order:
                self._uses[row, column[mask]] += 1.0
        counts = [len(orders[tree]) for tree in self.trees]
        self._first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self._tree_of = np.repeat(np.arange(len(counts)), counts)
        self._chosen = np.array([np.isin(edges, tree) for tree in self.trees], dtype=float)
        self._log_roots = np.log(len(roots))

    @property
    def n_steps(self) -> int:
        """Number of steps, as many as a tree has edges."""
        return self.graph.n_nodes - 1

    def log_probabilities(self, energies: Floats) -> Floats:
        """Return the log-probability of every tree."""
        return self._orders_and_trees(energies)[2]

    def gradients(self, energies: Floats) -> tuple[Floats, Floats]:
        """Return the log-probabilities of all trees, and their derivatives by energy as rows."""
        softmax, orders, trees = self._orders_and_trees(energies)
        # Given the tree, an order has the probability ``share``.
        share = np.exp(orders - (trees + self._chosen @ energies + self._log_roots)[self._tree_of])
        expected = np.add.reduceat(share[:, None] * self._uses, self._first, axis=0) @ softmax
        return trees, expected - self._chosen

    def _orders_and_trees(self, energies: Floats) -> tuple[Floats, Floats, Floats]:
        """Return softmax of sets of candidates, and logs of orders (without -E(T)) and trees."""
        signed = np.where(self._candidates, -energies, -np.inf)
        largest = signed.max(axis=1, keepdims=True)
        rates = np.exp(signed - largest)
        total = rates.sum(axis=1, keepdims=True)
        orders = -self._uses @ (largest + np.log(total))[:, 0]
        trees = np.logaddexp.reduceat(orders, self._first)
        return rates / total, orders, trees - self._chosen @ energies - self._log_roots

    def representatives(self) -> tuple[int, ...]:
        """Return one tree, by its index, of every class that the symmetries of the graph make."""
        number = {frozenset(edge): i for i, edge in enumerate(self.graph.edges)}
        index = {tree: i for i, tree in enumerate(self.trees)}
        smallest = list(range(len(self.trees)))
        for image in permutations(range(self.graph.n_nodes)):
            moved = [frozenset((image[a], image[b])) for a, b in self.graph.edges]
            roots = {root if root is None else image[root] for root in self.roots}
            if not number.keys() >= set(moved) or roots != set(self.roots):
                continue
            for i, tree in enumerate(self.trees):
                to = index[tuple(sorted(number[moved[edge]] for edge in tree))]
                smallest[to] = min(smallest[to], i)
        return tuple(i for i, least in enumerate(smallest) if least == i)


def _grown(
    graph: SmallGraph, piece: Order, root: int | None, chosen: Order, masks: Order
) -> Iterator[tuple[Order, Order]]:
    """Yield the orders that go on from here: edges chosen, and candidates of steps as bit masks.

    A candidate joins two pieces; with a root, its piece and another.
    """
    if len(chosen) == graph.n_nodes - 1:
        yield chosen, masks
        return
    candidates = [
        i
        for i, (a, b) in enumerate(graph.edges)
        if piece[a] != piece[b] and (root is None or piece[root] in (piece[a], piece[b]))
    ]
    mask = sum(1 << i for i in candidates)
    for i in candidates:
        a, b = (piece[node] for node in graph.edges[i])
        joined = tuple(a if p == b else p for p in piece)
        yield from _grown(graph, joined, root, (*chosen, i), (*masks, mask))
