"""Reading a graph from a file: one module a format, and what they share in ids and bounds."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

from ptclust._traces import leaves_no_trace
from ptclust.errors import FileError, UsageError
from ptclust.graph.graph import Edges, Graph, How
from ptclust.graph.readers.csv import read_csv, read_csv_ends
from ptclust.graph.readers.graphml import read_graphml
from ptclust.graph.readers.matrix_market import read_matrix_market
from ptclust.graph.readers.npz import read_npz
from ptclust.graph.readers.tables import Columns, read_parquet
from ptclust.graph.topology import Kind, Topology

__all__ = ["FORMATS", "read_graph", "read_topology"]

FORMATS = ("csv", "tsv", "parquet", "graphml", "mtx", "npz")
_WITH_GZIP = ("csv", "tsv", "graphml", "mtx")


@leaves_no_trace
def read_graph(
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    format: str | None = None,  # noqa: A002 - what users of pandas and polars call it
    merge: How = None,
    kind: Kind = "distance",
) -> Graph:
    r"""Read a graph with private weights from a file.

    Parameters
    ----------
    path : str or path
        The file. Its ending gives the format: ``.csv``, ``.tsv``, ``.parquet``, ``.graphml``,
        ``.mtx`` (MatrixMarket) or ``.npz``; the text formats may be compressed (``.csv.gz``).
    source, target, weight : str, optional
        Names of the columns of a table; ``weight`` also names the edge attribute of a GraphML file.
        By default the columns called source, target and weight, or else the first three. A text
        table has a header if columns are named here, or if its first weight is not a number.
    format : {"csv", "tsv", "parquet", "graphml", "mtx", "npz"}, optional
        The format, if the ending does not give it.
    merge, kind
        As in `Graph`.

    Returns
    -------
    Graph
        Nodes are numbered by first appearance, row by row and the source before the target, and
        named by their ids: as integers if every id is one, as strings otherwise ("007" is not 7).
        GraphML and matrices number the nodes themselves, and may have nodes without an edge.

    Notes
    -----
    *Privacy.* Errors name the line or row that is to blame, and its nodes; never a weight.

    A matrix of either kind stores an edge as one entry, or as two equal ones if it is symmetric; an
    entry of zero that is stored is an edge of weight zero. An ``.npz`` file holds a matrix saved by
    ``scipy.sparse.save_npz``, or arrays ``sources``, ``targets``, ``weights`` and, if need be,
    ``n_nodes`` and ``names``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "edges.csv"
    ...     _ = path.write_text("source,target,weight\nada,bob,0.1\nbob,cyd,0.2\n")
    ...     graph = read_graph(path)
    >>> graph
    Graph(n_nodes=3, n_edges=2, weights=<private>)
    >>> graph.names.tolist()
    ['ada', 'bob', 'cyd']
    """
    file = Path(path)
    form = _format_of(file, format)
    _check_readable(file)
    asked = Columns(source, target, weight)
    usable = {"graphml": ("weight",), "mtx": (), "npz": ()}.get(form, Columns._fields)
    for role, name in asked._asdict().items():
        if name is not None and role not in usable:
            raise UsageError(f"{role}= names a column, and a {form} file has none; leave it out")
    read: Callable[[], Edges] = {
        "csv": lambda: read_csv(file, ",", asked),
        "tsv": lambda: read_csv(file, "\t", asked),
        "parquet": lambda: read_parquet(file, asked),
        "graphml": lambda: read_graphml(file, weight),
        "mtx": lambda: read_matrix_market(file),
        "npz": lambda: read_npz(file),
    }[form]
    return _graph(file, read, merge, kind)


@leaves_no_trace
def read_topology(
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    format: str | None = None,  # noqa: A002
    merge: How = None,
) -> Topology:
    """Read the public half of a graph; of a table only the two columns of the nodes.

    The parameters are those of `read_graph`. A table needs no weights; in other formats they are
    dropped at once. Edges between the same two nodes are an error unless ``merge`` makes them one.
    """
    file = Path(path)
    kind = _format_of(file, format)
    if kind not in ("csv", "tsv", "parquet"):
        return read_graph(file, weight=weight, format=format, merge=merge).topology
    _check_readable(file)
    asked = Columns(source, target, weight)
    read: Callable[[], Edges] = {
        "csv": lambda: read_csv_ends(file, ",", asked),
        "tsv": lambda: read_csv_ends(file, "\t", asked),
        "parquet": lambda: read_parquet(file, asked, ends_only=True),
    }[kind]
    return _graph(file, read, merge, "distance").topology


def _graph(file: Path, read: Callable[[], Edges], merge: How, kind: Kind) -> Graph:
    """Return the graph of the edges that ``read`` finds; damage to the file becomes a FileError."""
    graph, problem = None, ""
    try:
        graph = Graph._of(read(), merge, kind)
    except (OSError, EOFError, zlib.error):
        problem = "is damaged or cut short; copy or write it again"
    except MemoryError:
        problem = "needs more memory than there is; read it on a larger machine, or read a part"
    # Raised out here so that it has no context, which may quote what could not be read.
    if graph is None:
        raise FileError(f"{file} {problem}")
    if not graph.n_nodes:
        raise FileError(f"{file} has no edges and names no nodes")
    return graph


def _format_of(file: Path, given: str | None) -> str:
    if given is not None:
        if given not in FORMATS:
            raise UsageError(f"format must be one of {', '.join(FORMATS)}, not {given!r}")
        return given
    name = file.name.lower()
    for kind in FORMATS:
        if name.endswith(f".{kind}") or (kind in _WITH_GZIP and name.endswith(f".{kind}.gz")):
            return kind
    raise FileError(f"{file} ends in none of {', '.join(FORMATS)}; rename it or give format=")


def _check_readable(file: Path) -> None:
    problem = None
    try:
        with file.open("rb") as stream:
            problem = None if stream.read(1) else "is empty: it has no edges"
    except FileNotFoundError:
        problem = "does not exist; check the path"
    except IsADirectoryError:
        problem = "is a directory; name a file in it"
    except PermissionError:
        problem = "may not be read by this user; change its permissions"
    except OSError as error:
        problem = f"cannot be opened: {error.strerror}"
    if problem:
        raise FileError(f"{file} {problem}")
