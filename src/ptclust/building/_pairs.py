"""The public half: which pairs of nodes have a weight, said by the caller and never by records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._files import same_file
from ptclust._markup import quoted
from ptclust._types import Array, Bools, Floats, Ints
from ptclust.engines import spark
from ptclust.errors import FileError, InputError, UsageError
from ptclust.graph.graph import _BYTES_PER_EDGE, Graph, _memory
from ptclust.graph.readers import read_topology
from ptclust.graph.readers.columns import ENDS, Columns, choose_columns
from ptclust.graph.readers.file import File
from ptclust.graph.readers.ids import normal_texts
from ptclust.graph.topology import Kind, Topology, as_objects, shown

if TYPE_CHECKING:
    import polars as pl

PRIVATE = "private"

_NEVER = (
    "never take it from the records: which nodes and pairs occur there is private, and a pair that "
    "nobody is counted on must be there with a weight of 0"
)


@dataclass(frozen=True)
class Coding:
    """Numbers of nodes by their names, and the keys of the pairs that are counted.

    It goes wherever the records are: not an array of all pairs, where all of them are counted.
    """

    names: Array  # of the nodes: all integers, or all texts
    listed: Ints | None  # keys of pairs; None if all are counted

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @property
    def of_text(self) -> bool:
        """Whether the nodes are called by texts, not integers."""
        return self.names.dtype == object

    def numbers(self, dtype: Any) -> pl.DataFrame:
        """Return the number of every node by its name, which becomes an id of this type."""
        import polars as pl

        ids = pl.Series("id", self.names.tolist(), pl.String if self.of_text else pl.Int64)
        return pl.DataFrame(
            [ids.cast(dtype), pl.Series("node", np.arange(self.n_nodes, dtype=np.int32))]
        )


@dataclass(frozen=True)
class Pairs:
    """Public nodes and the pairs of them that are counted."""

    names: Array  # of the nodes: all integers, or all texts
    sources: Ints  # node numbers, the smaller of every pair
    targets: Ints
    keys: Ints  # of the pairs, ascending: source * n_nodes + target
    chosen_by: str  # who said so, in words
    private: bool = False  # whether they are to be thinned out by a private threshold

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @property
    def coding(self) -> Coding:
        """What it takes to say on which pair a record is."""
        all_counted = len(self.keys) == self.n_nodes * (self.n_nodes - 1) // 2
        return Coding(self.names, None if all_counted else self.keys)

    def weights(self, keys: Ints, counts: Ints) -> Floats:
        """Return the weight of every pair: its count, or 0. Keys that are not counted drop out."""
        weights = np.zeros(len(self.keys))
        if len(self.keys):
            place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            here = self.keys[place] == keys
            weights[place[here]] = counts[here]
        return weights

    def restricted_to(self, kept: Bools) -> Pairs:
        """Return some of the pairs of the same nodes."""
        ends = self.sources[kept], self.targets[kept]
        return Pairs(self.names, *ends, self.keys[kept], self.chosen_by)

    def graph(self, weights: Floats, kind: Kind = "similarity") -> Graph:
        """Return the graph of these weights."""
        ends = self.sources, self.targets
        return Graph(*ends, weights, self.n_nodes, self.names, kind=kind)


def public_pairs(nodes: Any, edges: Any, records: Any, *, word: str) -> Pairs:
    """Return the pairs of a public list of nodes, or the public list of pairs; one must be given.

    ``word`` is what the list of nodes is called: "nodes" or "items". With "private" for edges the
    pairs are those of the list of nodes, from which a private threshold will choose.
    """
    if isinstance(edges, str) and edges == PRIVATE:
        if nodes is None:
            raise UsageError(
                f"edges='private' chooses among all pairs of a public list, {word}=: give it, and "
                f"{_NEVER}"
            )
        pairs = _all_pairs(_as_names(nodes, word), word)
        return replace(
            pairs, private=True, chosen_by=f"{pairs.chosen_by} above a private threshold"
        )
    if (nodes is None) == (edges is None):
        given = "neither" if nodes is None else "both"
        raise UsageError(
            f"give either {word}=, a public list of all {word}, or edges=, a public list of pairs "
            f"such as roads, not {given}; {_NEVER}"
        )
    if edges is None:
        return _all_pairs(_as_names(nodes, word), word)
    if edges is records or _same_path(edges, records):
        raise UsageError(f"edges= is the table of the records; give a public list, and {_NEVER}")
    return _listed_pairs(edges)


def _same_path(one: Any, other: Any) -> bool:
    paths = isinstance(one, str | os.PathLike) and isinstance(other, str | os.PathLike)
    return paths and same_file(Path(one), Path(other))


def _all_pairs(names: Array, word: str) -> Pairs:
    n = len(names)
    if n < 2:
        raise UsageError(
            f"the list of {word} has only {shown(names[0])}, and clusters are of two {word} or "
            f"more: list all of them, and {_NEVER}"
        )
    n_edges = n * (n - 1) // 2
    if (needed := n_edges * _BYTES_PER_EDGE) > _memory():
        takes = f"are {n_edges:,} and take {needed / 1e9:,.0f} GB, beyond this machine"
        raise InputError(f"all pairs of {n:,} nodes {takes}; give a public list of pairs: edges=")
    sources, targets = np.triu_indices(n, 1)
    keys = sources * n + targets
    return Pairs(names, sources, targets, keys, "all pairs of a public list of nodes")


def _listed_pairs(edges: Any) -> Pairs:
    if not isinstance(edges, Topology):
        edges = _read_pairs(edges)
    names = _as_names(edges.names, "nodes of edges")
    a, b = edges.sources.astype(np.int64), edges.targets.astype(np.int64)
    keys = np.unique(np.minimum(a, b) * len(names) + np.maximum(a, b))
    return Pairs(names, keys // len(names), keys % len(names), keys, "a public list of pairs")


def _read_pairs(edges: Any) -> Topology:
    """Return the topology of a file, a data frame or an iterable of pairs."""
    if spark.is_frame(edges):
        edges = spark.collected(edges)
    if isinstance(edges, str | os.PathLike):
        return read_topology(edges, merge="max")  # a road there and a road back are one pair
    if type(edges).__name__ == "LazyFrame":
        edges = edges.collect()
    if hasattr(edges, "columns"):
        there = [str(column) for column in edges.columns]
        first, second = (0, 1) if len(there) == 2 else choose_columns(
            there, Columns(), "the frame of edges", ENDS
        )  # fmt: skip
        columns = [edges[edges.columns[place]].to_list() for place in (first, second)]
        pairs = list(zip(*columns, strict=True))
    else:
        pairs = [tuple(pair) for pair in edges]
    if wrong := next((pair for pair in pairs if len(pair) != 2), None):
        raise UsageError(f"edges must be pairs of nodes, and {quoted(wrong)} is not one")
    number = {
        node: i for i, node in enumerate(dict.fromkeys(end for pair in pairs for end in pair))
    }
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
    ``encoding`` is that of a text file that is not UTF-8. A
    list that is in the file of the ``records`` is refused.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "stations.csv"
    ...     _ = path.write_text("terminal,city\n7,Here\n9,There\n")
    ...     read_list(path, "terminal")
    [7, 9]
    """
    from ptclust.building._records import Records, TextFile

    path = Path(path)
    if _same_path(path, records):
        raise UsageError(f"{path} is the table of the records; give a public list, and {_NEVER}")
    if path.suffix.lower() == ".txt":
        if column is not None:
            raise UsageError(f"{path} is a list of lines and has no column {column!r}")
        listed = _lines(path, encoding)
    else:
        file = TextFile(path, encoding=_other_than_utf8(path, encoding))
        table = Records(file, {})
        name = column if column is not None or len(table.there) != 1 else table.there[0]
        table = Records(file, {"node_column": name})
        listed = table.collect(table.lazy)["node_column"].to_list()
        if table.typed:
            return listed
    listed = _normal(listed)
    whole = all(name is not None and _is_integer(name) for name in listed)
    return [int(name) for name in listed] if whole else listed


def _other_than_utf8(path: Path, encoding: str | None) -> str | None:
    """Return the encoding that was said if a text is not UTF-8: records and list may differ."""
    if path.suffix.lower() in (".csv", ".tsv", ".txt") and encoding is not None:
        with suppress(FileError):
            File.at(path).in_utf8()
            return None
        return encoding
    return None


def _lines(path: Path, encoding: str | None) -> list[str]:
    with File.at(path).in_utf8(_other_than_utf8(path, encoding)).open() as file:
        text = file.read().decode("utf-8-sig")
    if not text.strip():
        raise FileError(f"{path} is empty: list one node per line")
    return [line for line in text.splitlines() if line.strip()]


def _is_integer(text: str) -> bool:
    try:
        return str(int(text)) == text
    except ValueError:
        return False


def _normal(names: Sequence[str | None]) -> list[Any]:
    """Return names as ids of records are compared."""
    import polars as pl

    return normal_texts(pl.Series(names, dtype=pl.String)).to_list()


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
    if all(isinstance(name, str) for name in listed):
        listed = _normal(listed)
    seen: set[Any] = set()
    texts = isinstance(listed[0], str)
    for name in listed:
        if isinstance(name, bool) or not isinstance(name, str if texts else int):
            kinds = (
                f"{shown(listed[0])} and {shown(name)}" if name is not listed[0] else shown(name)
            )
            raise UsageError(f"the {word} must be all integers or all texts, not {kinds}")
        if name in seen:
            raise UsageError(f"{shown(name)} is twice in the list of {word}; list each once")
        seen.add(name)
    if texts:
        return as_objects(listed)
    if not all(-(2**63) <= name < 2**63 for name in listed):
        raise UsageError(f"one of the {word} is beyond 64 bits with a sign; use texts for ids")
    return np.array(listed, dtype=np.int64)
