"""The public half of a graph: its nodes, what they are called, and which of them are joined."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from math import isinf, isnan
from numbers import Real
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from ptclust._components import label_components
from ptclust._markup import quoted
from ptclust._options import Kind as Kind
from ptclust._traces import shown_half_built
from ptclust._types import Array, Bools, Floats
from ptclust.errors import GraphError, UsageError, WeightError

# Turns edge numbers into words: [3] into "edge 3", or into "line 5 of edges.csv".
Say = Callable[[Iterable[int]], str]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_FRACTION = re.compile(r"\.\d{3}")

_FEW_EDGES = 4  # times as many nodes are too many to be counted


def numbered(word: str, ending: str = "") -> Say:
    """Return the words for edges that are known by their number: rows 3 and 7 of edges.parquet."""

    def say(edges: Iterable[int]) -> str:
        numbers = [str(int(edge)) for edge in edges]
        return f"{word}{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}{ending}"

    return say


edge_number: Say = numbered("edge")


def shown(name: object) -> str:
    """Return a node's name for a message; not one that may be a weight, strayed in a damaged file.

    >>> shown("ada"), shown(7), shown("10.1.0.2"), shown("0.25"), shown("ada;0.12345")
    ("'ada'", '7', "'10.1.0.2'", '<number>', '<number>')
    """
    text = str(name)
    fraction = not text.strip().removeprefix("-").isdecimal() and is_number(text)
    return "<number>" if fraction or _FRACTION.search(text) else quoted(name)


def is_number(text: str) -> bool:
    """Whether the text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_distances(weights: Floats, kind: Kind) -> Floats:
    """Return weights of which a small one means close: similarities change their sign.

    Only what does not depend on where zero is may use them: spanning trees, and the Exponential
    mechanism, which a shift of all weights leaves as it is.
    """
    return weights if kind == "distance" else -weights


def check_distances(weighted: object, what: str) -> None:
    """Refuse similarities where distances are needed."""
    if getattr(weighted, "kind", "distance") != "distance":
        given = "and these are similarities; make distances of them: graph.to_distances()"
        raise WeightError(f"{what} needs distances, {given}")


def check_kind(kind: object) -> None:
    """Refuse anything but the two kinds of weights."""
    if kind not in get_args(Kind):
        kinds = "'distance' (small means close) or 'similarity' (large means close)"
        raise UsageError(f"kind must be {kinds}, not {kind!r}")


def index_dtype(count: int) -> type[np.int32] | type[np.int64]:
    """Return the integer type that indexes ``count`` things: int32 while it can, int64 beyond."""
    return np.int32 if count <= np.iinfo(np.int32).max else np.int64


@shown_half_built
class Topology:
    """An undirected simple graph without weights: public, immutable, its edges in the order given.

    Parameters
    ----------
    sources, targets : array_like of int
        The two endpoints of every edge, as node numbers from 0. No edge is a self-loop or twice
        there.
    n_nodes : int, optional
        Number of nodes; by default as many as the names, or as the largest endpoint needs.
    names : iterable, optional
        One distinct hashable name per node. Without names, nodes are called by their numbers.

    Examples
    --------
    >>> Topology([0, 1, 2], [1, 2, 0], names=["a", "b", "c"])
    Topology(n_nodes=3, n_edges=3)
    """

    sources: Array
    targets: Array
    n_nodes: int

    def __init__(
        self,
        sources: ArrayLike,
        targets: ArrayLike,
        n_nodes: int | None = None,
        names: Iterable[Any] | None = None,
    ) -> None:
        self._build(sources, targets, n_nodes, names, edge_number)
        self.sources, self.targets = frozen(self.sources.copy()), frozen(self.targets.copy())
        ordered, _, order = self.in_canonical_order()
        ordered.check_single(order, edge_number)

    @classmethod
    def _of(cls, sources: Array, targets: Array, n_nodes: int, names: Array | None) -> Topology:
        """Return the topology of what needs no check; it owns the arrays."""
        topology = object.__new__(cls)
        topology.sources, topology.targets = frozen(sources), frozen(targets)
        topology.n_nodes, topology._names = n_nodes, names
        return topology

    def _build(
        self,
        sources: ArrayLike,
        targets: ArrayLike,
        n_nodes: int | None,
        names: Iterable[Any] | None,
        say: Say,
    ) -> None:
        """Check all but that no two edges are parallel; ``say`` words the errors.

        What was given is not copied.
        """
        sources, targets = _as_endpoints(sources, "sources"), _as_endpoints(targets, "targets")
        if len(sources) != len(targets):
            given = f"{len(sources)} and {len(targets)}"
            raise GraphError(f"sources and targets must be of one length, not {given}")
        self._names = None if names is None else _as_names(names)
        self.n_nodes = _count_nodes(sources, targets, n_nodes, self._names)
        outside = np.minimum(sources, targets) < 0
        outside |= np.maximum(sources, targets) >= self.n_nodes
        if outside.any():
            edge = int(outside.argmax())
            joins = f"{say([edge])} joins nodes {sources[edge]} and {targets[edge]}"
            use = f"numbered 0 to {self.n_nodes - 1}; renumber them, or use Graph.from_dataframe"
            raise GraphError(f"{joins}, but the nodes are {use}")
        self.sources, self.targets = (
            frozen(np.ascontiguousarray(ends, index_dtype(self.n_nodes)).view())
            for ends in (sources, targets)
        )
        is_loop = self.sources == self.targets
        if is_loop.any():
            edge = int(is_loop.argmax())
            node = shown(self.name(self.sources[edge]))
            raise GraphError(f"{say([edge])} joins node {node} to itself; remove self-loops")

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.sources)

    @property
    def names(self) -> Array:
        """The names of the nodes, in node order."""
        return np.arange(self.n_nodes) if self._names is None else self._names

    @cached_property
    def components(self) -> Array:
        """The connected component of every node, numbered by first appearance."""
        component = np.arange(self.n_nodes, dtype=self.sources.dtype)
        label_components(self.sources, self.targets, component)
        return frozen(component)

    @cached_property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(self.components.max(initial=-1)) + 1

    @property
    def is_complete(self) -> bool:
        """Whether all pairs of nodes are joined: such a topology says nothing of the data."""
        return self.n_edges == self.n_nodes * (self.n_nodes - 1) // 2

    @property
    def n_tree_edges(self) -> int:
        """Number of edges of a spanning tree, or forest where there are several components."""
        return self.n_nodes - self.n_components

    @property
    def is_forest(self) -> bool:
        """Whether no edges close a cycle: it is its own spanning forest, and has no other."""
        return self.n_edges == self.n_tree_edges

    def name(self, node: int) -> Any:
        """Return the name of one node."""
        return int(node) if self._names is None else self._names.item(node)

    def describe_edge(self, edge: int, say: Say = edge_number) -> str:
        """Return ``edge 3 ('a' - 'b')``: an edge as messages name it."""
        ends = " - ".join(shown(self.name(end[edge])) for end in (self.sources, self.targets))
        return f"{say([edge])} ({ends})"

    def restricted_to(self, edges: Array) -> Topology:
        """Return the topology of the same nodes with only the edges of these ids, which ascend."""
        if len(edges) == self.n_edges:
            return copy(self)
        return Topology._of(self.sources[edges], self.targets[edges], self.n_nodes, self._names)

    def __repr__(self) -> str:
        return f"Topology(n_nodes={self.n_nodes}, n_edges={self.n_edges})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        arrays = ("sources", "targets", "names")
        same = (np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
        return self.n_nodes == other.n_nodes and all(same)

    __hash__ = None  # type: ignore[assignment]

    def in_canonical_order(self) -> tuple[Topology, Array | None, Array]:
        """Return the topology with nodes by name, and edges by their nodes, the smaller one first.

        Also returned are the number there of every node, None if it is the same, and the edges here
        in the order of those there. The order in which a graph came in may follow its weights, and
        what is published must not.
        """
        number, names = _number_by_name(self._names, self.n_nodes)
        a, b = self.sources, self.targets
        if number is not None:
            a, b = (number[ends].astype(ends.dtype, copy=False) for ends in (a, b))
        edges = np.arange(self.n_edges, dtype=index_dtype(self.n_edges))
        low, high, order = _in_order(a, b, edges, self.n_nodes)
        return Topology._of(low, high, self.n_nodes, names), number, order

    def repeated(self) -> Bools:
        """Return whether each edge, in canonical order, joins the same nodes as the one before."""
        found = np.zeros(self.n_edges, dtype=bool)
        a, b = self.sources, self.targets
        np.logical_and(a[1:] == a[:-1], b[1:] == b[:-1], out=found[1:])
        return found

    def check_single(self, order: Array, say: Say) -> None:
        """Refuse two edges between the same two nodes, which are neighbours in canonical order.

        ``order`` has the edges as they were given, for ``say``.
        """
        repeated = self.repeated()
        if repeated.any():
            edge = int(repeated.argmax())
            both = say(sorted(order[edge - 1 : edge + 1].tolist()))
            ends = (shown(self.name(end[edge])) for end in (self.sources, self.targets))
            merge = "remove one, or say how to merge their weights: merge='min', 'max' or 'sum'"
            raise GraphError(f"{both} both join {' and '.join(ends)}; {merge}")


class HasTopology:
    """A thing on a topology, with its nodes and edges: a Graph, a Tree."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.sources, self.targets = topology.sources, topology.targets
        self.n_nodes, self.n_edges = topology.n_nodes, topology.n_edges

    @property
    def names(self) -> Array:
        """The names of the nodes, in node order."""
        return self.topology.names


@dataclass(frozen=True)
class Counts:
    """The numbers of a topology that a plan takes; its edges are elsewhere."""

    names: Array
    n_edges: int
    n_components: int

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @property
    def n_tree_edges(self) -> int:
        """Number of edges of a spanning forest."""
        return self.n_nodes - self.n_components

    @property
    def is_complete(self) -> bool:
        """Whether all pairs of nodes are joined."""
        return self.n_edges == self.n_nodes * (self.n_nodes - 1) // 2


class WeightedGraph(HasTopology):
    """A topology with a weight on every edge: private in a Graph, made up in a simulation."""

    weights: Floats
    kind: Kind = "distance"

    @property
    def distances(self) -> Floats:
        """The weights if they are distances, else their negatives: small means close."""
        return as_distances(self.weights, self.kind)


def _as_endpoints(values: ArrayLike, what: str) -> Array:
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(0, dtype=np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        wrong = f"must be one-dimensional integers, not {array.ndim}-dimensional {array.dtype}"
        use = "for other node names use Graph.from_dataframe or read_graph"
        raise GraphError(f"{what} {wrong}; {use}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)  # kernels know no other


def _as_names(names: Iterable[Any]) -> Array:
    is_plain = isinstance(names, np.ndarray) and names.ndim == 1 and names.dtype.kind in "iuU"
    array = np.array(names) if is_plain else as_objects(map(plain_name, names))
    if _ascend(array):
        return frozen(array)
    try:
        distinct = len(set(array.tolist()))
    except TypeError as error:
        raise GraphError("node names must be hashable: numbers, strings, tuples") from error
    if distinct != len(array):
        twice = next(name for name, count in Counter(array.tolist()).items() if count > 1)
        raise GraphError(f"the node name {shown(twice)} is given twice; names must be distinct")
    return frozen(array)


def _ascend(names: Array) -> bool:
    """Whether these are integers, each larger than the one before: distinct, and in order."""
    return names.dtype.kind in "iu" and bool(np.all(names[1:] > names[:-1]))


def _number_by_name(names: Array | None, n_nodes: int) -> tuple[Array | None, Array | None]:
    """Return the place of every node in the order of names, None if that is theirs, and these."""
    if names is None or _ascend(names):
        return None, names
    order = np.argsort(names) if names.dtype.kind in "iu" else _order_of_objects(names.tolist())
    number = np.empty(n_nodes, dtype=np.int64)
    number[order] = np.arange(n_nodes)
    return number, frozen(names[order])


def _order_of_objects(names: list[Any]) -> Array:
    """Return the order of names of any kind: numbers, then texts, then all others by their text."""

    def key(name: Any) -> tuple[int, Any, str]:
        if isinstance(name, (int, float)):
            return 0, name, ""
        if isinstance(name, str):
            return 1, 0, name
        kind, text = type(name).__name__, str(name)
        if _ADDRESS.search(text):  # which follows the order in which things were made
            raise GraphError(
                f"node names of type {kind} have no text of their own, by which to order and "
                "publish them; use numbers, strings or tuples of them"
            )
        return 2, 0, f"{kind} {text}"

    keys = names if all(type(name) is str for name in names) else list(map(key, names))
    order = sorted(range(len(names)), key=keys.__getitem__)
    for one, other in pairwise(order):
        if keys[one] == keys[other]:
            raise GraphError(f"two nodes have names that read {shown(str(names[one]))}; rename one")
    return np.array(order, dtype=np.int64)


def plain_name(name: Any) -> Any:
    """Return the one spelling of a name: equal names of other types may stand in any order.

    >>> plain_name(np.int64(2)), plain_name(2.0), plain_name(True), plain_name((1.0, "a"))
    (2, 2, 1, (1, 'a'))
    """
    if type(name) is str:  # as most are
        return name
    if isinstance(name, np.generic):
        name = name.item()
    if type(name) is tuple:
        return tuple(map(plain_name, name))
    if isinstance(name, int):  # of any length
        return int(name)
    if not isinstance(name, (Real, Decimal)):
        return name
    if isnan(name):
        raise GraphError("a node is called NaN, which is not even equal to itself; rename it")
    number: Any = name
    if not isinf(number) and int(number) == number:
        return int(number)
    return float(number) if float(number) == number else name


def _in_order(a: Array, b: Array, values: Array, n_nodes: int) -> tuple[Array, Array, Array]:
    """Return the lower and the higher node of every edge and its value, by nodes, then as given."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    if n_nodes > _FEW_EDGES * len(low):  # more memory for the nodes than for the edges
        order = np.lexsort((high, low))
        return low[order], high[order], values[order]
    from scipy.sparse import coo_array

    # As entries of a matrix, by row and then by column: each conversion is a stable counting sort.
    matrix: Any = coo_array((values, (high, low)), shape=(n_nodes, n_nodes))
    matrix.has_canonical_format = True  # else it would add up parallel edges
    del low, high  # and what is not used any more: these are the largest arrays there are
    matrix = matrix.tocsr()
    matrix = matrix.tocsc()
    low = np.repeat(np.arange(n_nodes, dtype=a.dtype), np.diff(matrix.indptr))
    return low, matrix.indices.astype(a.dtype, copy=False), matrix.data


def as_objects(names: Iterable[Any]) -> Array:
    """Return an array of objects; np.array would unpack tuples."""
    listed = list(names)
    return np.fromiter(listed, dtype=object, count=len(listed))


def _count_nodes(sources: Array, targets: Array, n_nodes: int | None, names: Array | None) -> int:
    if n_nodes is None and names is not None:
        return len(names)
    if n_nodes is None:
        n_nodes = max((int(ends.max()) + 1 for ends in (sources, targets) if len(ends)), default=0)
    if n_nodes > np.iinfo(np.int64).max:
        raise GraphError(f"{n_nodes} nodes are too many; number them from 0, without gaps")
    if n_nodes < 0:
        raise GraphError(f"n_nodes must not be negative, not {n_nodes}")
    if names is not None and len(names) != n_nodes:
        raise GraphError(f"{len(names)} names were given for {n_nodes} nodes")
    return int(n_nodes)


def as_weights(weights: ArrayLike, say: Say) -> Array:
    """Return the weights as a one-dimensional array of floats, NaN and all, or of integers.

    Integers stay what they are, to be added up exactly. What is such an array is not copied.
    """
    if isinstance(weights, np.ndarray) and np.iscomplexobj(weights):
        raise WeightError("the weights must be real numbers, not complex ones")
    if np.ma.isMaskedArray(weights):
        weights = np.ma.filled(np.ma.asarray(weights, dtype=np.float64), np.nan)
    values: Array | None = None
    with suppress(TypeError, ValueError, OverflowError):
        values = _as_numbers(np.asarray(weights))
    # Raised out here, without a context: the messages of numpy quote values.
    if values is None:
        raise WeightError(f"{_first_not_a_number(weights, say)}; weights are numbers, one per edge")
    if values.ndim != 1:
        raise WeightError(f"the weights must be one-dimensional, not {values.ndim}-dimensional")
    return values


def check_finite(weights: Array, topology: Topology, say: Say) -> None:
    """Refuse weights of which one is infinite or NaN."""
    finite = np.isfinite(weights)
    if not finite.all():
        edge = topology.describe_edge(int(finite.argmin()), say)
        raise WeightError(f"the weight of {edge} is not a finite number; complete or remove it")


def _as_numbers(values: Array) -> Array:
    """Return integers or floats; texts, which numpy would read, and times are none."""
    if values.dtype == object:
        kinds = set(map(type, values.flat))
        if kinds == {int}:
            values = np.array(values.tolist())  # integers of 64 bits, if they are that
        elif any(issubclass(kind, (str, bytes)) for kind in kinds):
            raise TypeError
    if values.dtype.kind in "USmMc":
        raise TypeError
    return values if values.dtype.kind in "iu" else values.astype(np.float64, copy=False)


def _first_not_a_number(weights: Any, say: Say) -> str:
    # np.ndim would fail, and quote, where one of a list is a list itself.
    is_row = isinstance(weights, (list, tuple)) or getattr(weights, "ndim", 0) == 1
    items: Iterable[Any] = weights if is_row else ()
    for edge, value in enumerate(items):
        with suppress(TypeError, ValueError, OverflowError):
            if not isinstance(value, (str, bytes)) and isinstance(float(value), float):
                continue
        return f"the weight of {say([edge])} is not a number"
    return "the weights are not an array of real numbers"


def frozen(array: Array) -> Array:
    """Return the array, made read-only."""
    array.setflags(write=False)
    return array
