"""Public input: which pairs of nodes have a weight, given by the caller, never by the records."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ptclust._files import same_file
from ptclust._markup import quoted
from ptclust._types import Array, Floats, Ints
from ptclust.building._records import Records, TextFile
from ptclust.engines import spark
from ptclust.errors import FileError, UsageError
from ptclust.graph.converters import check_complete
from ptclust.graph.readers import read_topology
from ptclust.graph.readers.columns import ENDS, Columns, choose_columns
from ptclust.graph.readers.file import File
from ptclust.graph.readers.ids import normal_texts
from ptclust.graph.topology import Topology, as_objects, shown

PRIVATE = "private"

_NEVER = (
    "never take it from the records: which nodes and pairs occur there is private, and a pair that "
    "nobody is counted on must be there with a weight of 0"
)


@dataclass(frozen=True)
class Pairs:
    """Public nodes and the pairs of them that are counted; no array has them if all are.

    It goes wherever the records are.
    """

    names: Array  # of the nodes: all integers, or all texts
    listed: Ints | None  # keys of the pairs, ascending: source * n_nodes + target; None if all are
    chosen_by: str  # who said so, in words
    private: bool = False  # whether they are to be thinned out by a private threshold

    @classmethod
    def of_keys(cls, names: Array, keys: Ints, chosen_by: str) -> Pairs:
        """Return the pairs with these keys, ascending."""
        is_complete = len(keys) == math.comb(len(names), 2)
        return cls(names, None if is_complete else keys, chosen_by)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @property
    def n_pairs(self) -> int:
        """Number of pairs that are counted."""
        return math.comb(self.n_nodes, 2) if self.listed is None else len(self.listed)

    @property
    def of_text(self) -> bool:
        """Whether the nodes are called by texts, not integers."""
        return self.names.dtype == object

    def keys(self) -> Ints:
        """Return the keys of all pairs that are counted."""
        if self.listed is not None:
            return self.listed
        sources, targets = np.triu_indices(self.n_nodes, 1)
        return sources * self.n_nodes + targets

    def numbers(self, dtype: Any) -> pl.DataFrame:
        """Return the number of every node by its name, which becomes an id of this type."""
        ids = pl.Series("id", self.names.tolist(), pl.String if self.of_text else pl.Int64)
        node = pl.Series("node", np.arange(self.n_nodes, dtype=np.int32))
        return pl.DataFrame([ids.cast(dtype), node])

    def weights(self, found: pl.DataFrame) -> Floats:
        """Return the weight of every pair: its count, or 0. Keys that are not counted drop out."""
        keys, counted = self.keys(), found["pair"].to_numpy()
        weights = np.zeros(len(keys))
        if len(keys):
            place = np.minimum(np.searchsorted(keys, counted), len(keys) - 1)
            here = keys[place] == counted
            weights[place[here]] = found["count"].to_numpy()[here]
        return weights


def public_pairs(nodes: Any, edges: Any, records: Any, *, word: str) -> Pairs:
    """Return the pairs of a public list of nodes, or the public list of pairs; one must be given.

    ``word`` is what the list of nodes is called: "nodes" or "items". With "private" for edges the
    pairs are those of the list of nodes, from which a private threshold will choose.
    """
    private = is_private(edges)
    if private and nodes is None:
        raise UsageError(
            f"edges='private' chooses among all pairs of a public list, {word}=: give it, and "
            f"{_NEVER}"
        )
    if not private and (nodes is None) == (edges is None):
        given = "neither" if nodes is None else "both"
        raise UsageError(
            f"give either {word}=, a public list of all {word}, or edges=, a public list of pairs "
            f"such as roads, not {given}; {_NEVER}"
        )
    if nodes is not None:
        names = _as_names(nodes, word)
        if len(names) < 2:
            raise UsageError(
                f"the list of {word} has only {shown(names[0])}, and clusters are of two {word} or "
                f"more: list all of them, and {_NEVER}"
            )
        every = f"the graph of all pairs of {len(names):,} nodes"
        check_complete(len(names), every, "give a public list of pairs: edges=")
        above = " above a private threshold" if private else ""
        return Pairs(names, None, f"all pairs of a public list of nodes{above}", private)
    if edges is records or _same_path(edges, records):
        raise UsageError(f"edges= is the table of the records; give a public list, and {_NEVER}")
    topology = edges if isinstance(edges, Topology) else _read_pairs(edges)
    names = _as_names(topology.names, "nodes of edges")
    a, b = topology.sources.astype(np.int64), topology.targets.astype(np.int64)
    keys = np.unique(np.minimum(a, b) * len(names) + np.maximum(a, b))
    return Pairs.of_keys(names, keys, "a public list of pairs")


def is_private(edges: Any) -> bool:
    """Whether pairs are to be chosen by a private threshold, not listed."""
    return isinstance(edges, str) and edges == PRIVATE


def _same_path(one: Any, other: Any) -> bool:
    paths = isinstance(one, str | os.PathLike) and isinstance(other, str | os.PathLike)
    return paths and same_file(Path(one), Path(other))


def _read_pairs(edges: Any) -> Topology:
    """Return the topology of a file, a data frame or an iterable of pairs."""
    if spark.is_frame(edges):
        edges = spark.collected(edges)
    if isinstance(edges, str | os.PathLike):
        return read_topology(edges, merge="max")  # a road there and a road back are one pair
    if isinstance(edges, pl.LazyFrame):
        edges = edges.collect()
    if hasattr(edges, "columns"):
        there = [str(column) for column in edges.columns]
        two = (0, 1) if len(there) == 2 else None
        places = two or choose_columns(there, Columns(), "the frame of edges", ENDS)
        edges = zip(*(edges[edges.columns[place]].to_list() for place in places), strict=True)
    pairs = [tuple(pair) for pair in edges]
    if wrong := next((pair for pair in pairs if len(pair) != 2), None):
        raise UsageError(f"edges must be pairs of nodes, and {quoted(wrong)} is not one")
    number = {node: i for i, node in enumerate(dict.fromkeys(chain.from_iterable(pairs)))}
    ends = np.array([[number[a], number[b]] for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    names = _as_names(number, "nodes of edges")
    once = np.unique(np.sort(ends, axis=1), axis=0)
    return Topology(once[:, 0], once[:, 1], len(names), names)


def read_list(
    path: str | os.PathLike[str],
    column: str | None = None,
    *,
    records: Any = None,
    encoding: str | None = None,
) -> list[Any]:
    r"""Read a public list of nodes: lines of a text file, or a column of a CSV or Parquet file.

    ``column`` may be left out if there is only one, or one with a well-known name, as node or id.
    Ids from text files are integers if every one is, as Python writes it, and texts otherwise. The
    ``encoding`` is that of a text file that is not UTF-8. The file of the ``records`` is refused.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "stations.csv"
    ...     _ = path.write_text("terminal,city\n7,Here\n9,There\n")
    ...     read_list(path, "terminal")
    [7, 9]
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if _same_path(path, records):
        raise UsageError(f"{path} is the table of the records; give a public list, and {_NEVER}")
    if encoding is not None and (suffix not in (".csv", ".tsv", ".txt") or _is_utf8(path)):
        encoding = None  # it is that of the records, and the list may be written in another way
    if suffix == ".txt":
        if column is not None:
            raise UsageError(f"{path} is a list of lines and has no column {column!r}")
        with File.at(path).in_utf8(encoding).open() as file:
            listed = [line for line in file.read().decode("utf-8-sig").splitlines() if line.strip()]
        if not listed:
            raise FileError(f"{path} is empty: list one node per line")
    else:
        table = TextFile(path, encoding=encoding)
        there = Records(table, {}).there
        only = there[0] if len(there) == 1 else None
        found = Records(table, {"node_column": column or only})
        listed = found.collect(found.lazy)["node_column"].to_list()
        if found.typed:
            return listed
    texts = normal_texts(pl.Series(listed, dtype=pl.String))
    integers = texts.cast(pl.Int64, strict=False)
    return (integers if integers.cast(pl.String).equals(texts) else texts).to_list()


def _is_utf8(path: Path) -> bool:
    with suppress(FileError):
        File.at(path).in_utf8()
        return True
    return False


def _as_names(given: Any, word: str) -> Array:
    """Return names that are all integers or all texts, each there once."""
    if isinstance(given, str | bytes | os.PathLike) or not isinstance(given, Iterable):
        kind = type(given).__name__
        raise UsageError(f"{word} must be a list of ids, as [1, 2, 3] or ['a', 'b'], not a {kind}")
    if hasattr(given, "columns"):
        raise UsageError(f"{word} must be a list of ids, not a data frame; give one of its columns")
    listed = [name.item() if isinstance(name, np.generic) else name for name in given]
    if not listed:
        raise UsageError(f"{word} is empty; list all of them, and {_NEVER}")
    texts = isinstance(listed[0], str)
    for name in listed:
        if isinstance(name, bool) or not isinstance(name, str if texts else int):
            both = "" if name is listed[0] else f"{shown(listed[0])} and "
            raise UsageError(
                f"the {word} must be all integers or all texts, not {both}{shown(name)}"
            )
    if texts:  # as ids of records are compared
        listed = normal_texts(pl.Series(listed, dtype=pl.String)).to_list()
    counts = Counter(listed)
    if len(counts) < len(listed):
        twice = shown(next(name for name in listed if counts[name] > 1))
        raise UsageError(f"{twice} is twice in the list of {word}; list each once")
    if texts:
        return as_objects(listed)
    if not all(-(2**63) <= name < 2**63 for name in listed):
        raise UsageError(f"one of the {word} is beyond 64 bits with a sign; use texts for ids")
    return np.array(listed, dtype=np.int64)
