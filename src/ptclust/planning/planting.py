"""Clusters planted on a topology: connected pieces of similar size, and weights that show them.

Weights are distances of two levels, or counts like those of real flows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ptclust._components import adjacency
from ptclust._kernel import kernel
from ptclust._types import Array, Floats, Ints
from ptclust.graph.topology import Kind, Topology, WeightedGraph

Bounds = tuple[float, float]
Random = np.random.Generator

WITHIN = (0.1, 0.3)  # shares of the weight range within clusters: the paper's w_min and w_max
ACROSS = (0.9, 1.0)  # the same across clusters, at full contrast
# Of counts: what a pair across has of one within, at full contrast, and deviations of logarithms.
ACROSS_SHARE, SPREAD_OF_NODES, SPREAD_OF_PAIRS = 0.05, 0.9, 0.5
_GROWTH, _DEPTH, _BRANCH = 0, 1, 2
_SWEEPS = 64  # after as much work as this many sweeps of the whole graph, pieces stay as they are


def connected_pieces(topology: Topology, size: int, random: Random) -> Ints:
    """Return the piece of every node: connected pieces of 1/2 to 3/2 of ``size``, where possible.

    A component of fewer nodes is one piece. A hub with small branches cannot be divided, and stays
    whole: see `typical_size`.

    >>> from ptclust import Topology
    >>> path = Topology(range(11), range(1, 12))
    >>> np.bincount(connected_pieces(path, 4, np.random.default_rng(0))).tolist()
    [4, 4, 4]
    """
    n_nodes, n_edges = topology.n_nodes, topology.n_edges
    order = random.permutation(n_edges)
    indptr, neighbours, _ = adjacency(topology.sources[order], topology.targets[order], n_nodes)
    mixed = random.permutation(n_nodes)
    roots = mixed[np.unique(topology.components[mixed], return_index=True)[1]]
    piece = np.full(n_nodes, -1, dtype=np.int64)
    most_work = _SWEEPS * (n_nodes + 2 * n_edges)
    chance = random.random(n_nodes) ** 2  # squared: rather the nodes met early, for compact pieces
    _halve_pieces(indptr, neighbours, roots, size, most_work, chance, piece)
    return piece


@kernel
def _grow(
    start: Ints, near: Array, root: int, piece: Ints, mark: int, found: Ints, chance: Floats
) -> int:
    """Move what is connected to ``root`` within its piece to the piece ``mark``; return how much.

    It goes on from any node found so far, by ``chance``: compact, and fair to both sides of a
    bipartite graph. With chances of zero it goes nearest first: one side after the other.
    """
    old = piece[root]
    piece[root] = mark
    found[0] = root
    count, head = 1, 0
    while head < count:
        drawn = head + int(chance[head] * (count - head))
        found[head], found[drawn] = found[drawn], found[head]
        node = found[head]
        head += 1
        for i in range(start[node], start[node + 1]):
            other = near[i]
            if piece[other] == old:
                piece[other] = mark
                found[count] = other
                count += 1
    return count


@kernel
def _walk(
    start: Ints,
    near: Array,
    root: int,
    piece: Ints,
    mark: int,
    found: Ints,
    below: Ints,
    seen: Ints,
    stack: Ints,
) -> None:
    """Move the same as `_grow`, deep first: the branch at a node is a run of ``below`` nodes."""
    old = piece[root]
    piece[root] = mark
    found[0], stack[0], seen[root], below[root] = root, root, start[root], 1
    count, height = 1, 1
    while height:
        node = stack[height - 1]
        if seen[node] == start[node + 1]:
            height -= 1
            if height:
                below[stack[height - 1]] += below[node]
            continue
        other = near[seen[node]]
        seen[node] += 1
        if piece[other] == old:
            piece[other] = mark
            found[count], stack[height] = other, other
            seen[other], below[other] = start[other], 1
            count += 1
            height += 1


@kernel
def _halve_pieces(
    start: Ints, near: Any, roots: Any, size: int, most_work: int, chance: Floats, piece: Ints
) -> None:
    """Number the nodes in ``piece`` by connected pieces of 1/2 to 3/2 of ``size``, where possible.

    ``roots`` holds one node of every component, ``chance`` a random number below 1 for every node,
    and ``piece`` is filled with -1 on entry.

    In a piece too large, a part grows from a far end; what it reaches first is connected. What is
    left may lie in fragments that touch the first part: small ones join it, the others are parts of
    their own. Where this hardly divides the piece, because a hub holds all together, the next try
    goes deep first, which leaves branches whole; if that does not help, the branch nearest to half
    is cut off. What even this leaves undivided stays so, as does all after ``most_work`` steps.
    """
    n_nodes = len(piece)
    found, rest = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    below, seen = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    stack, todo = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    todo_size, todo_kind = np.empty(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    nearest_first = np.zeros(n_nodes)
    count = waiting = len(roots)
    work = 0
    for i in range(len(roots)):
        todo[i] = roots[i]
        todo_size[i] = _grow(start, near, roots[i], piece, i, found, nearest_first)
    while waiting:
        waiting -= 1
        root, total, kind = todo[waiting], todo_size[waiting], todo_kind[waiting]
        wanted = (2 * total + size) // (2 * size)  # total / size, rounded
        if wanted < 2 or work > most_work:
            continue
        whole = piece[root]
        # n_nodes marks nodes for the moment; a part takes a number of its own only when it is one.
        _grow(start, near, root, piece, n_nodes, found, nearest_first)
        far = found[total - 1]
        begin, end = total * (wanted // 2) // wanted, total
        if kind == _GROWTH:
            _grow(start, near, far, piece, whole, found, chance)
        else:
            _walk(start, near, far, piece, whole, found, below, seen, stack)
            if kind == _BRANCH:
                begin = np.argmin(np.abs(2 * below[found[:total]] - total))
                end = begin + below[found[begin]]
                if 2 * (total - end + begin) < size:
                    begin = end  # too little would stay behind
        for i in range(total):
            work += start[found[i] + 1] - start[found[i]] + 1
        for i in range(begin, end):
            piece[found[i]] = n_nodes
        first = total - (end - begin)
        for i in range(begin, end):
            node = found[i]
            if piece[node] == n_nodes:
                part = _grow(start, near, node, piece, count, rest, nearest_first)
                if 2 * part < size:
                    for j in range(part):
                        piece[rest[j]] = whole
                    first += part
                else:
                    todo[waiting], todo_size[waiting], todo_kind[waiting] = node, part, _GROWTH
                    waiting += 1
                    count += 1
        if first < total or kind != _BRANCH:
            todo[waiting], todo_size[waiting] = far, first
            todo_kind[waiting] = min(kind + 1, _BRANCH) if 4 * first > 3 * total else _GROWTH
            waiting += 1


def typical_size(pieces: Ints) -> int:
    """Return the size such that half of all nodes are in pieces of at most so many nodes.

    >>> typical_size(np.array([0, 0, 0, 0, 0, 1, 2, 3]))
    5
    """
    sizes = np.sort(np.bincount(pieces))
    return int(sizes[np.searchsorted(np.cumsum(sizes), len(pieces) / 2)])


@dataclass(frozen=True)
class TwoLevels:
    """Distances that lie in one interval within clusters, and in another across.

    >>> TwoLevels((0.0, 10.0)).intervals
    ((1.0, 3.0), (9.0, 10.0))
    """

    weight_range: Bounds = (0.0, 1.0)
    contrast: float = 1.0
    kind: ClassVar[Kind] = "distance"
    total: ClassVar[None] = None

    @property
    def intervals(self) -> tuple[Bounds, Bounds]:
        """Where weights lie within clusters and across them.

        A contrast below 1 moves the interval across towards the other in proportion. Below 1/4 they
        overlap, at 0 they would be one.
        """
        low, high = self.weight_range

        def at(share: float) -> float:
            # Rounding must not lead out of the range, or the pipeline refuses the weights.
            return min(max(low + (high - low) * share, low), high)

        least, most = (w + self.contrast * (a - w) for w, a in zip(WITHIN, ACROSS, strict=True))
        return (at(WITHIN[0]), at(WITHIN[1])), (at(least), at(most))

    def weights(self, topology: Topology, pieces: Ints, random: Random) -> Floats:
        """Return weights of all edges, uniform in the interval of edges within or across."""
        within, across = self.intervals
        same = pieces[topology.sources] == pieces[topology.targets]
        low, high = (np.where(same, *bounds) for bounds in zip(within, across, strict=True))
        drawn = low + (high - low) * random.random(topology.n_edges)
        return np.clip(drawn, *self.weight_range)

    def without_clusters(self, topology: Topology, random: Random) -> Floats:  # noqa: ARG002
        """Return weights that are all equal."""
        return np.full(topology.n_edges, sum(self.weight_range) / 2)


@dataclass(frozen=True)
class Counts:
    """Counts of records as flows have them, in total about so many.

    The expected count of a pair is the product of the sizes of its nodes, as a law of gravity has
    it, times a factor of its own, both log-normal: some nodes have a hundred times the records of
    others, and counts have heavy tails. Across clusters it is a share of that. Counts are Poisson.
    """

    total: float
    contrast: float = 1.0
    clip: Bounds | None = None
    kind: ClassVar[Kind] = "similarity"

    @property
    def share_across(self) -> float:
        """What a pair across clusters has of a pair within that is alike otherwise.

        >>> Counts(1e5).share_across, Counts(1e5, contrast=0.5).share_across
        (0.05, 0.525)
        """
        return round(1.0 - self.contrast * (1.0 - ACROSS_SHARE), 12)

    def weights(self, topology: Topology, pieces: Ints, random: Random) -> Floats:
        """Return the counts of all edges."""
        same = pieces[topology.sources] == pieces[topology.targets]
        return self._drawn(topology, np.where(same, 1.0, self.share_across), random)

    def without_clusters(self, topology: Topology, random: Random) -> Floats:
        """Return counts without clusters."""
        return self._drawn(topology, np.ones(topology.n_edges), random)

    def _drawn(self, topology: Topology, affinity: Floats, random: Random) -> Floats:
        size = random.lognormal(0.0, SPREAD_OF_NODES, topology.n_nodes)
        own = random.lognormal(0.0, SPREAD_OF_PAIRS, topology.n_edges)
        expected = size[topology.sources] * size[topology.targets] * own * affinity
        counts: Floats = random.poisson(expected * (self.total / expected.sum())).astype(np.float64)
        if self.clip is not None:
            np.clip(counts, *self.clip, out=counts)
        return counts


Planting = TwoLevels | Counts


class MadeUpGraph(WeightedGraph):
    """A public topology with made-up weights: nobody's, so mechanisms may be tried on it freely."""

    def __init__(self, topology: Topology, weights: Floats, kind: Kind) -> None:
        super().__init__(topology)
        self.weights, self.kind = weights, kind
