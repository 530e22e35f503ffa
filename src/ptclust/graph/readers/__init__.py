"""Reading a graph from a file: one module per format, and what they share."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from ptclust._options import GraphOptions
from ptclust._traces import leaves_no_trace
from ptclust.errors import FileError, UsageError
from ptclust.graph.graph import Graph, How
from ptclust.graph.metadata import Metadata
from ptclust.graph.readers.columns import Columns, Request
from ptclust.graph.readers.csv import Dialect, read_csv, read_header
from ptclust.graph.readers.file import STANDARD_INPUT, File
from ptclust.graph.readers.graphml import read_graphml
from ptclust.graph.readers.matrices import read_matrix_market, read_npz
from ptclust.graph.readers.parquet import metadata_of, read_parquet
from ptclust.graph.topology import Kind, Topology

__all__ = ["FORMATS", "read_graph", "read_metadata", "read_topology"]

_TEXTS = ("csv", "tsv", "txt")
_READERS = {
    **dict.fromkeys(_TEXTS, read_csv),
    "parquet": read_parquet,
    "graphml": read_graphml,
    "mtx": read_matrix_market,
    "npz": read_npz,
}
_WITH_GZIP = (*_TEXTS, "graphml", "mtx")
_COLUMNS_OF = {**dict.fromkeys((*_TEXTS, "parquet"), Columns._fields), "graphml": ("weight",)}
FORMATS = tuple(_READERS)


@leaves_no_trace
def read_graph(
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    format: str | None = None,  # noqa: A002 - what users of pandas and polars call it
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    merge: How = None,
    kind: Kind | None = None,
) -> Graph:
    r"""Read a graph with private weights from a file.

    Parameters
    ----------
    path : str or path
        The file, or "-" for standard input. Its ending gives the format: ``.csv``, ``.tsv``,
        ``.txt``, ``.parquet``, ``.graphml``, ``.mtx`` (MatrixMarket) or ``.npz``; the text formats
        may be compressed (``.csv.gz``).
    source, target, weight : str, optional
        Names of the columns of a table; ``weight`` also names the edge attribute of a GraphML file.
        By default the columns that are called so, in upper or lower case, or else

        - source: src, from, origin, node1, u;
        - target: dst, to, destination, node2, v;
        - weight, of distances: distance, dist, dissimilarity, length, cost;
        - weight, of similarities: similarity, affinity, strength, count, trips, flow.

        Nothing else is guessed: if no column, or more than one, has such a name, name it here.
    format : {"csv", "tsv", "txt", "parquet", "graphml", "mtx", "npz"}, optional
        The format, if the ending does not give it. That of standard input is csv by default.
    separator : str, optional
        What separates the columns of a text table: one character, or "comma", "semicolon", "tab",
        "pipe" or "space", of which any number counts as one. By default a tab in tsv files;
        otherwise it is found in the header: in csv files a comma, or else a semicolon, or else a
        tab; in txt files a tab, or else a semicolon, a comma, or blanks.
    encoding : str, optional
        How the letters of a text table are written, if not in UTF-8: "latin-1", "cp1252".
    decimal : str, optional
        The decimal point of a text table: "." by default, or ",".
    header : bool
        Whether the first line of a text table names its columns. If not, three columns are source,
        target and weight in this order, and others are named by their numbers: ``weight="4"``.
    merge
        As in `Graph`.
    kind : {"distance", "similarity"}, optional
        What the weights are: small distances mean close, large similarities do. It may be left out
        if the column of weights has one of the names above, which say it. One that is called weight
        does not say it, nor does a matrix. A file that `Graph.save` wrote says it itself.

    Returns
    -------
    Graph
        Nodes are named by their ids: by integers if every id is one, as Python writes it, by
        strings otherwise ("007" is not 7). GraphML and matrices may have nodes without an edge.
        A graph that ptclust built from records and wrote has its ``provenance``, and with it unit
        and sensitivity; if the file was changed since, it is refused.

    Notes
    -----
    *Privacy.* Errors name the line or row that is to blame, and its nodes; never a weight.
    Standard input is held in memory and not written to any file.

    An entry of a matrix is an edge, even if it is zero. If the entries below the diagonal are in
    the same places as those above, an entry and its mirror are one edge, whose weight is their
    mean; with ``merge``, all entries are merged. An ``.npz`` file holds a matrix saved by
    ``scipy.sparse.save_npz``, or arrays ``sources``, ``targets``, ``weights`` and, if need be,
    ``n_nodes`` and ``names``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "edges.csv"
    ...     _ = path.write_text("source,target,distance\nada,bob,0.1\nbob,cyd,0.2\n")
    ...     graph = read_graph(path)
    >>> graph
    Graph(n_nodes=3, n_edges=2, weights=<private>)
    >>> sorted(graph.names.tolist())
    ['ada', 'bob', 'cyd']
    """
    options = GraphOptions(
        source=source,
        target=target,
        weight=weight,
        format=format,
        separator=separator,
        encoding=encoding,
        decimal=decimal,
        header=header,
        merge=merge,
        kind=kind,
    )
    return _read(path, options, ends_only=False)


@leaves_no_trace
def read_topology(path: str | os.PathLike[str], **options: Any) -> Topology:
    """Read the topology of a graph, and no weight: there may be none, or wrong ones.

    The options are those of `read_graph` but ``kind``, and the topology is the same. Edges between
    the same two nodes are an error unless ``merge`` makes them one. Without a header two columns
    will do.
    """
    return _read(path, GraphOptions(**options), ends_only=True).topology


def read_columns(
    file: File,
    format: str | None = None,  # noqa: A002
    separator: str | None = None,
) -> list[str]:
    """Return the names of the columns of a table of others; none if it cannot be read as one."""
    damage = (
        OSError,
        EOFError,
        zlib.error,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    )
    with suppress(FileError, UsageError, *damage):  # which is reported where rows are read
        form = _format_of(os.fspath(file), format)
        if form == "parquet" and metadata_of(file) is None:
            return list(pl.read_parquet_schema(file.content))
        if form in _TEXTS:
            return read_header(file, Dialect.of(form, separator))
    return []


def read_metadata(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
) -> Metadata | None:
    """Return what a file says of its graph, if ptclust wrote it; no row of the file is read."""
    is_parquet = _format_of(os.fspath(path), format) == "parquet"
    return metadata_of(File.at(path)) if is_parquet else None


def _read(path: str | os.PathLike[str], options: GraphOptions, *, ends_only: bool) -> Graph:
    """Return the graph in a file, weights of zero with ``ends_only``; damage is a FileError."""
    form = _format_of(os.fspath(path), options.format)
    asked = Columns(options.source, options.target, options.weight)
    dialect = _dialect_of(form, asked, options)
    file = File.at(path)
    if options.encoding is not None:
        file = file.in_utf8(options.encoding)
    merge = options.merge
    request = Request(asked, options.kind, dialect, merging=merge is not None, ends_only=ends_only)
    graph, said, problem = None, None, ""
    try:
        edges = _READERS[form](file, request)
        graph, said = Graph._of(edges, merge), edges.metadata
    except (OSError, EOFError, zlib.error):
        problem = "is damaged or cut short; copy or write it again"
    except MemoryError:
        problem = "needs more memory than there is; read it on a larger machine, or read a part"
    # Raised out here so that it has no context, which may quote what could not be read.
    if graph is None:
        raise FileError(f"{file} {problem}")
    if not graph.n_nodes:
        raise FileError(f"{file} has no edges and names no nodes")
    if said is not None:
        if merge is not None:
            raise UsageError(
                f"{file} is a graph that ptclust wrote, merged already; leave merge= out"
            )
        said.verify(graph.topology, None if ends_only else graph.weights, file)
        graph.merge, graph.provenance = said.merge, said.provenance
        graph.topology_of_data = said.topology_of_data
    return graph


def _dialect_of(form: str, asked: Columns, options: GraphOptions) -> Dialect:
    """Return how text is written in this format; refuse options that it does not have."""
    for role, name in asked._asdict().items():
        if name is not None and role not in _COLUMNS_OF.get(form, ()):
            raise UsageError(f"{role}= names a column, and a {form} file has none; leave it out")
    if form in _TEXTS:
        return Dialect.of(form, options.separator, options.header, options.decimal)
    text = {name: getattr(options, name) for name in ("separator", "encoding", "decimal")}
    given = [f"{name}=" for name, value in text.items() if value is not None]
    for option in given + ["header=False"] * (not options.header):
        raise UsageError(f"{option} is for text tables, not for a {form} file; leave it out")
    return Dialect("")


def _format_of(path: str, given: str | None) -> str:
    if given is not None:
        if given not in FORMATS:
            raise UsageError(f"format must be one of {', '.join(FORMATS)}, not {given!r}")
        return given
    if path == STANDARD_INPUT:
        return "csv"
    name = Path(path).name.lower()
    for form in FORMATS:
        if name.endswith(f".{form}") or (form in _WITH_GZIP and name.endswith(f".{form}.gz")):
            return form
    raise FileError(f"{path} must end in one of {', '.join(FORMATS)}; rename it or give format=")
