"""Noise and trees as functions of a secret key and the edges: drawn again, they are the same.

Where edges are spread over many machines, work that is lost is done again. Were the noise drawn
afresh, one edge could be published with two noises, whose mean has less noise than was calibrated.
So every edge has a stream of words of its own, ChaCha20 (RFC 8439) with the edge as its nonce, and
the samplers of ``privacy.noise`` read that: any machine that holds the key draws the same noise, in
any order of the edges, and no words are ever used for two edges.

Trees are drawn by clocks (docs/proofs/samplers.md). Every edge has one, T = E exp(c w), E
exponential: the tree of ``kruskal`` is the minimum spanning tree of the clocks, that of ``pamst``
the tree of their shortest paths. Here E is a function of a key and the edge, a real number of which
any number of digits is known. Floats compare clocks and sums of them where they can, intervals of
rational numbers otherwise. So the tree is that of the clocks, whatever the order of edges, and its
distribution is that of the mechanism without any error but the grid of the exponents
(docs/proofs/keyed-trees.md). What a part of the edges can be reduced to, without a change of the
tree, is here as well.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, cmp_to_key

import numpy as np
from numpy.typing import NDArray

from ptclust._components import label_components
from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats, Ints
from ptclust.errors import UsageError
from ptclust.graph.topology import index_dtype
from ptclust.mechanisms import _clock_kernel as kernel
from ptclust.mechanisms._urn_kernel import GRID, fill_exponents
from ptclust.mechanisms.exponential import grid_factor
from ptclust.mechanisms.lattice import added_on_lattice
from ptclust.privacy._chacha_kernel import BLOCK_WORDS, fill_blocks, new_state
from ptclust.privacy._numbers import Bounds, exp_bounds, log_bounds
from ptclust.privacy.noise import Noise
from ptclust.privacy.noise import _lattice_kernel as lattice_kernel
from ptclust.privacy.noise.exact import Bits, LatticeNoise
from ptclust.trees.mst import minimum_spanning_edges

KEY_BYTES = 32
_CHUNK = 1 << 14  # edges at a time: their words stay in the processor's cache
_NO_EDGE = 2**64 - 1  # the nonce of what is drawn once for all edges
_FIRST_BLOCK = 1 << 63  # of the clock of an edge: the blocks below are those of its noise
_FIRST_NODE = 1 << 63  # the nonces from here on are of nodes, those below of edges
_DIGITS = 40
_LIGHTEST = 2  # edges at every node that bound how long shortest paths are
_SIGN = np.int64(-(2**63))

Numbers = NDArray[np.uint64]


def draw_noise_key() -> bytes:
    """Return a fresh secret key from the operating system, for one release."""
    return os.urandom(KEY_BYTES)


def key_state(key: bytes) -> NDArray[np.uint32]:
    """Return the state of ChaCha20 under a key."""
    if len(key) != KEY_BYTES:
        raise UsageError(f"a key of noise has {KEY_BYTES} bytes, not {len(key)}")
    return new_state(key)


def edge_numbers(sources: Array, targets: Array, n_nodes: int) -> Numbers:
    """Return a number for every edge, the same for both orders of its ends.

    >>> edge_numbers(np.array([0, 3]), np.array([2, 1]), 5).tolist()
    [2, 8]
    """
    if n_nodes > 2**31:
        raise UsageError(f"noise by key is for at most 2^31 nodes, not {n_nodes:,}")
    low, high = (
        end.astype(np.uint64)
        for end in (np.minimum(sources, targets), np.maximum(sources, targets))
    )
    return np.asarray(low * np.uint64(n_nodes) + high)


@leaves_no_trace
def add_keyed_noise(values: Floats, edges: Numbers, noise: Noise, key: bytes) -> Floats:
    """Return the values of some edges plus their noise under a key; see `edge_numbers`.

    The noise is calibrated for all ``noise.n_values`` edges; these may be any part of them.

    Notes
    -----
    *Privacy.* As calibrated, against anyone who cannot tell ChaCha20 under a secret key from random
    words: the guarantee is computational, as that of every release is whose words come from a
    generator. It takes that every edge is drawn with one weight only: the same edge with two
    weights would show their difference without noise. So a key is for one release, of one graph
    without parallel edges, and nobody but who draws may hold it.

    >>> from ptclust.privacy.noise import noise_of_scale
    >>> noise, edges = noise_of_scale(1.0, 3), np.array([1, 2, 5], dtype=np.uint64)
    >>> all_three = add_keyed_noise(np.zeros(3), edges, noise, bytes(32))
    >>> bool(all_three[2] == add_keyed_noise(np.zeros(1), edges[2:], noise, bytes(32))[0])
    True
    """
    state, noisy = key_state(key), np.empty(len(values))
    sampler = noise.law.sampler(noise, EdgeWords(state, _NO_EDGE, 0))
    for start in range(0, len(edges), _CHUNK):
        some = slice(start, start + _CHUNK)
        steps, giants = _keyed_steps(sampler, state, edges[some])
        noisy[some] = added_on_lattice(values[some], steps, noise.granularity, giants)
    return noisy


def _keyed_steps(
    sampler: LatticeNoise, state: Array, edges: Numbers
) -> tuple[Ints, dict[int, int]]:
    """Return the noise of edges in steps, and by place that which no int64 holds."""
    steps, giants = np.empty(len(edges), dtype=np.int64), dict[int, int]()
    left, block = np.arange(len(edges)), 0
    while len(left):  # a round takes one block of every edge that has no value yet
        words = np.empty((len(left), BLOCK_WORDS), dtype=np.uint64)
        fill_blocks(state, edges[left], np.uint64(block), words)
        found, outcome = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
        block += 1
        sampler.draw_each(words, found, outcome)
        steps[left] = found
        for i in np.flatnonzero(outcome >= lattice_kernel.OPEN):
            at, place = int(outcome[i]) - lattice_kernel.OPEN, int(left[i])
            more = EdgeWords(state, int(edges[place]), block)
            given = words[i, at : at + lattice_kernel.WORDS].tolist()
            value = sampler.settle(given, more)
            steps[place] = value if abs(value) < lattice_kernel.NEAR else 0
            if abs(value) >= lattice_kernel.NEAR:
                giants[place] = value
        left = left[outcome == lattice_kernel.REJECTED]
    return steps, giants


class EdgeWords:
    """The words of one nonce, from a block on."""

    def __init__(self, state: Array, nonce: int, block: int) -> None:
        self._state, self._nonce, self._block = state, np.array([nonce], dtype=np.uint64), block
        self._left = np.empty(0, dtype=np.uint64)

    def fill(self, words: NDArray[np.uint64]) -> None:
        """Fill an array with the next words."""
        for i in range(len(words)):
            if not len(self._left):
                row = np.empty((1, BLOCK_WORDS), dtype=np.uint64)
                fill_blocks(self._state, self._nonce, np.uint64(self._block), row)
                self._left, self._block = row[0], self._block + 1
            words[i], self._left = self._left[0], self._left[1:]


@leaves_no_trace
@dataclass(frozen=True, eq=False, repr=False)
class Clocks:
    """The clocks of some edges under a key; ``numbers`` are those of `edge_numbers`.

    Notes
    -----
    *Privacy.* A clock is as private as the weight that it is made of.
    """

    numbers: Numbers
    exponents: Ints  # c w / log 2 in steps of 2^-GRID
    key: bytes

    @classmethod
    def of(cls, distances: Floats, numbers: Numbers, exponent: float, key: bytes) -> Clocks:
        """Return the clocks of edges with these weights, as distances."""
        steps = np.empty(len(distances), dtype=np.int64)
        fill_exponents(distances, grid_factor(exponent), steps)
        return cls(numbers, steps, key)

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"Clocks(<private>, of {len(self)} edges)"

    def part(self, places: Array) -> Clocks:
        """Return the clocks of some of the edges."""
        return Clocks(self.numbers[places], self.exponents[places], self.key)

    @cached_property
    def logs(self) -> Ints:
        """The logarithms of the clocks, in steps of the exponents, to within 2 of them."""
        state, logs = key_state(self.key), np.empty(len(self), dtype=np.int64)
        for start in range(0, len(self), _CHUNK):
            some = slice(start, start + _CHUNK)
            words = np.empty((len(logs[some]), BLOCK_WORDS), dtype=np.uint64)
            fill_blocks(state, self.numbers[some], np.uint64(_FIRST_BLOCK), words)
            far = np.empty(len(words), dtype=np.bool_)
            kernel.log_clocks(words, self.exponents[some], logs[some], far)
            for place in np.flatnonzero(far) + start:
                low, _ = self._log_bounds(int(place), _DIGITS)
                logs[place] = round(low * 2**GRID)
        return logs

    def compare(self, shorter: list[int], longer: list[int]) -> int:
        """Return -1 or 1, the order of two sums of clocks, by exact arithmetic."""
        digits = _DIGITS
        while True:
            of_all = [self._sum_bounds(places, digits) for places in (shorter, longer)]
            top = max(power for _, power in of_all)
            (low, high), (other_low, other_high) = (
                [bound * Fraction(2) ** max(power - top, -4 * digits) for bound in bounds]
                for bounds, power in of_all
            )
            if high < other_low:
                return -1
            if low > other_high:
                return 1
            digits *= 2

    def _sum_bounds(self, places: list[int], digits: int) -> tuple[Bounds, int]:
        """Return bounds of a sum of clocks, and the power of two that they are multiples of."""
        if not places:
            return (Fraction(0), Fraction(0)), -(1 << 50)
        power = max(int(self.logs[place]) >> GRID for place in places)
        least, half = Fraction(1, 2 ** (4 * digits)), log_bounds(Fraction(2), digits)
        low, high = Fraction(0), Fraction(0)
        for place in places:
            of_log = [bound - power for bound in self._log_bounds(place, digits)]
            if of_log[1] < -4 * digits:  # far less than what the digits show of the others
                high += least
                continue
            low += exp_bounds(of_log[0] * half[of_log[0] < 0], digits)[0]
            high += exp_bounds(of_log[1] * half[of_log[1] > 0], digits)[1]
        return (low, high), power

    def _log_bounds(self, place: int, digits: int) -> Bounds:
        """Return bounds of log2 T of an edge."""
        state = key_state(self.key)
        bits = Bits(EdgeWords(state, int(self.numbers[place]), _FIRST_BLOCK), 64)
        n_bits = 64 * (2 + digits // 16)
        first = bits.take(n_bits)
        while first in (0, 2**n_bits - 1):  # U may be 0 or 1 yet
            first, n_bits = first << 64 | bits.take(64), n_bits + 64
        enough = digits + n_bits // 3  # of U, which may be as close to 0 or 1 as its last bit
        of_u = [log_bounds(Fraction(first + one, 2**n_bits), enough) for one in (1, 0)]
        of_e = log_bounds(-of_u[0][1], digits)[0], log_bounds(-of_u[1][0], digits)[1]
        two = log_bounds(Fraction(2), digits)
        low, high = of_e[0] / two[of_e[0] > 0], of_e[1] / two[of_e[1] < 0]
        shift = Fraction(int(self.exponents[place]), 2**GRID)
        return low + shift, high + shift

    def ranks(self) -> Ints:
        """Return the places of the clocks in their order; what is too close to call is compared."""

        def compare(a: int, b: int) -> int:
            return self.compare([a], [b])

        order, by_clock = np.argsort(self.logs, kind="stable"), cmp_to_key(compare)
        near = np.diff(self.logs[order]) <= kernel.NEAR
        ends = np.flatnonzero(np.diff(near, prepend=False, append=False)).reshape(-1, 2)
        for first, last in ends.tolist():  # of a run of near ones
            order[first : last + 1] = sorted(order[first : last + 1].tolist(), key=by_clock)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return ranks


@leaves_no_trace
def kruskal_edges(sources: Array, targets: Array, clocks: Clocks, n_nodes: int) -> Array:
    """Return the places, ascending, of the spanning forest of least clocks: that of ``kruskal``.

    An edge of the forest of all edges is in that of every part of them that it is in.

    Notes
    -----
    *Privacy.* With a key from `draw_noise_key` that is used for one graph, as
    `SpanningTreeMechanism.draw_edges`: docs/proofs/keyed-trees.md.
    """
    return minimum_spanning_edges(sources, targets, _as_floats(clocks.ranks()), n_nodes)


@leaves_no_trace
def pamst_edges(sources: Array, targets: Array, clocks: Clocks, n_nodes: int) -> Array:
    """Return the places, ascending, of the shortest paths from the roots: the tree of ``pamst``.

    Notes
    -----
    *Privacy.* As `kruskal_edges`.
    """

    def among(places: Array) -> tuple[Array, Array, Clocks, int]:
        return sources[places], targets[places], clocks.part(places), n_nodes

    few = bounding_edges(sources, targets, clocks, n_nodes)
    kept = Pruning.of(*among(few)).verdicts(sources, targets, clocks) != kernel.DROPPED
    kept[few] = True  # a path is no longer than itself, but floats may say so
    places = np.flatnonzero(kept)
    return places[ShortestPaths(*among(places)).edges]


@leaves_no_trace
class ShortestPaths:
    """The shortest paths by the clocks of some edges, from a random root of every component.

    They are guessed in floats, and then made shorter for as long as an edge does that. Two paths to
    a node are compared from where they part: so no clock is lost beside a longer one before it.
    """

    def __init__(self, sources: Array, targets: Array, clocks: Clocks, n_nodes: int) -> None:
        self._ends, self._clocks, self.n_nodes = (sources, targets), clocks, n_nodes
        by, parent = self._guess()
        logs = np.append(clocks.logs, 0)  # the last one is that of a root, which no edge leads to
        while True:
            self.paths = _hung(parent, logs[by])
            better = self._find_shorter(by)
            if not len(better):
                break
            nodes = np.flatnonzero(better >= 0)
            by[nodes] = better[nodes]
            parent[nodes] = sources[by[nodes]] + targets[by[nodes]] - nodes
        self.by, self.logs = by, logs[by]

    @property
    def edges(self) -> Array:
        """The places of their edges, ascending."""
        return np.sort(self.by[self.by >= 0])

    def _guess(self) -> tuple[Ints, Ints]:
        """Return the edge by which every node is reached, and from where, by floats."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        sources, targets = self._ends
        n, logs = self.n_nodes, self._clocks.logs
        middle = np.median(logs) if len(logs) else 0.0
        lengths = np.exp2(np.clip((logs - middle) / 2.0**GRID, -900.0, 900.0))
        matrix = csr_array((lengths, (sources, targets)), shape=(n, n))
        roots = _roots(sources, targets, n, self._clocks.key)
        _, before, _ = dijkstra(
            matrix, directed=False, indices=roots, return_predecessors=True, min_only=True
        )
        parent, by = np.arange(n), np.full(n, -1)
        nodes = np.flatnonzero(before >= 0)
        parent[nodes] = before[nodes]
        numbered = np.minimum(sources, targets).astype(np.int64) * n + np.maximum(sources, targets)
        order = np.argsort(numbered)
        wanted = np.minimum(nodes, parent[nodes]) * n + np.maximum(nodes, parent[nodes])
        by[nodes] = order[np.searchsorted(numbered[order], wanted)]
        return by, parent

    def _find_shorter(self, by: Ints) -> Ints:
        """Return the edge by which a node is better reached, or -1; nothing if there is none."""
        sources, targets = self._ends
        best, close = np.empty(self.n_nodes, np.int64), np.empty(len(sources), np.int64)
        logs = self._clocks.logs
        n_close = kernel.find_shorter(self.paths, sources, targets, logs, best, close)
        for edge in close[:n_close].tolist():
            ends = int(sources[edge]), int(targets[edge])
            for node, other in (ends, ends[::-1]):
                old, new = _parting(self.paths.parent, self.paths.depth, by, node, other)
                if best[node] < 0 and self._clocks.compare([*new, edge], old) < 0:
                    best[node] = edge
        return best if (best >= 0).any() else best[:0]


@leaves_no_trace
@dataclass(frozen=True, eq=False, repr=False)
class Pruning:
    """What some shortest paths say of all other edges: which of them can be on a shortest path."""

    parent: Ints
    logs: Ints  # of the clock from the parent
    least: Ints  # of the lightest clock at every node, at most

    @classmethod
    def of(cls, sources: Array, targets: Array, clocks: Clocks, n_nodes: int) -> Pruning:
        """Return what the paths of some edges say; the lightest of every node is among these."""
        found = ShortestPaths(sources, targets, clocks, n_nodes)
        least = np.full(n_nodes, np.iinfo(np.int64).max >> 1)
        for ends in (sources, targets):
            np.minimum.at(least, ends, clocks.logs)
        return cls(found.paths.parent, found.logs, least - kernel.NEAR)

    @cached_property
    def _paths(self) -> tuple[kernel.Paths, Floats, Ints]:
        paths = _hung(self.parent, self.logs)
        reach, power = np.empty(len(self.parent)), np.empty(len(self.parent), dtype=np.int64)
        kernel.measure(paths, reach, power)
        return paths, reach, power

    def __getstate__(self) -> dict[str, Ints]:
        return {name: getattr(self, name) for name in ("parent", "logs", "least")}

    def verdicts(self, sources: Array, targets: Array, clocks: Clocks) -> Array:
        """Return, of every edge, whether it is DROPPED, POSSIBLE, or makes a path SHORTER."""
        verdicts = np.empty(len(sources), dtype=np.int8)
        kernel.judge(*self._paths, self.least, sources, targets, clocks.logs, verdicts)
        return verdicts


@leaves_no_trace
def bounding_edges(sources: Array, targets: Array, clocks: Clocks, n_nodes: int) -> Array:
    """Return the places, ascending, of a forest of light edges and of the lightest at every node.

    Those of all edges are among those of every part of them that they are in.
    """
    logs = clocks.logs
    kept = np.zeros(len(logs), dtype=np.bool_)
    kept[minimum_spanning_edges(sources, targets, _as_floats(logs), n_nodes)] = True
    kernel.keep_lightest(sources, targets, logs, kept, np.full((n_nodes, _LIGHTEST), -1))
    return np.flatnonzero(kept)


def _as_floats(logs: Ints) -> Floats:
    """Return floats in the order of integers: their bits are a number and its sign."""
    return np.where(logs < 0, -logs | _SIGN, logs).view(np.float64)


def _hung(parent: Ints, logs: Ints) -> kernel.Paths:
    depth, jump, step_power, total_power = np.empty((4, len(parent)), dtype=np.int64)
    step, total = np.empty((2, len(parent)))
    up = parent.astype(np.int64)
    paths = kernel.Paths(up, depth, jump, step, step_power, total, total_power, kernel.MARGIN)
    kernel.hang(paths, logs)
    return paths


def _roots(sources: Array, targets: Array, n_nodes: int, key: bytes) -> Ints:
    """Return a node of every component: the one whose first word under the key is least."""
    words = np.empty((n_nodes, BLOCK_WORDS), dtype=np.uint64)
    nonces = np.arange(n_nodes, dtype=np.uint64) + np.uint64(_FIRST_NODE)
    fill_blocks(key_state(key), nonces, np.uint64(_FIRST_BLOCK), words)
    component = np.arange(n_nodes, dtype=index_dtype(n_nodes))
    label_components(sources, targets, component)
    order = np.lexsort((words[:, 1], words[:, 0], component))
    return order[np.r_[True, np.diff(component[order]) > 0]] if n_nodes else order


def _parting(
    parent: Ints, depth: Ints, by: Ints, node: int, other: int
) -> tuple[list[int], list[int]]:
    """Return the edges to two nodes from where their paths part."""
    to_node, to_other = list[int](), list[int]()
    while node != other:
        if depth[node] >= depth[other]:
            to_node.append(int(by[node]))
            node = int(parent[node])
        else:
            to_other.append(int(by[other]))
            other = int(parent[other])
    return to_node, to_other
