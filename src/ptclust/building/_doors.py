"""Files given to the wrong command: a release, or records in place of edges."""

from __future__ import annotations

import re
import shlex

from ptclust.errors import FileError
from ptclust.graph.readers import read_columns
from ptclust.graph.readers.columns import ROLES, Columns, columns_of_records, known_columns
from ptclust.graph.readers.file import File
from ptclust.release.format import FORMAT

_RELEASE = re.compile(rb'\{\s*"format":\s*"' + FORMAT.encode())
_BEGINNING = 64


def refuse_release(file: File) -> None:
    """Refuse a release that is given for a graph: it is published already."""
    with file.open() as stream:
        beginning = stream.read(_BEGINNING)
    if _RELEASE.match(beginning):
        name = shlex.quote(str(file))
        raise FileError(
            f"{file} is a release, which is published already, not a graph: `ptclust show {name}` "
            f"says what is in it, and `ptclust recluster {name} -o FILE` clusters it anew; neither "
            "spends anything"
        )


def refuse_records(
    file: File,
    format: str | None,  # noqa: A002
    separator: str | None,
    asked: Columns,
    *,
    weighted: bool = True,
) -> None:
    """Refuse a table of records that is given for one of edges; name the command that builds one.

    It is one by the names of its columns alone: one is called as persons are, or two as nodes are
    and, where a graph must be ``weighted``, none as weights are. If all columns of edges are named
    in ``asked``, it is one of edges.
    """
    there = read_columns(file, format, separator)
    if all(asked if weighted else asked[:2]) or not set(asked) <= {None, *there}:
        return
    person = columns_of_records(there, "person")[:1]
    sources, targets, weights = (
        [there[i] for i in known_columns(role, there, asked)] for role in ROLES
    )
    has_ends = bool(sources and targets)
    if not person and not (weighted and has_ends and not weights):
        return
    if has_ends:
        kind, nodes, caps = "flows", "nodes", ["--max-pairs", "5", "--max-per-pair", "1"]
        columns = ["--origin", sources[0], "--destination", targets[0]]
    else:
        kind, nodes, caps = "visits", "items", ["--max-items", "4"]
        others = [name for name in there if name not in person]
        items = columns_of_records(there, "item")[:1] or others
        columns = ["--item", items[0] if len(items) == 1 else "COLUMN"]
    listed = f"{nodes}.txt is your public list of all {nodes}"
    words = [*columns, f"--{nodes}", f"{nodes}.txt"]
    if person:
        words = ["--person", *person, *words, *caps]
        listed += ", and caps say how much of a person counts"
    command = shlex.join(["ptclust", "build", kind, str(file), *words, "-o", "graph.parquet"])
    raise FileError(
        f"{file} is a table of records, not of edges: build a graph of it first, `{command}`, "
        f"where {listed}. If a row is an edge, name its columns: source=, target=, weight="
    )
