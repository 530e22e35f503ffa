"""Files that were brought to the wrong command: a release, or records in place of edges."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from ptclust.errors import FileError
from ptclust.graph.readers import read_columns
from ptclust.graph.readers.columns import Columns, known_columns
from ptclust.release.format import FORMAT

if TYPE_CHECKING:
    from ptclust.graph.readers.file import File

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
    from ptclust.building._records import known_columns as known_of_records

    there = read_columns(file, format, separator)
    if all(asked if weighted else asked[:2]) or not set(asked) <= {None, *there}:
        return
    person = known_of_records(there, "person")[:1]
    ends = [
        [there[i] for i in known_columns(role, there, asked)][:1] for role in ("source", "target")
    ]
    weights = known_columns("weight", there, asked)
    if not person and not (weighted and all(ends) and not weights):
        return
    if all(ends):
        kind, list_option, columns = "flows", "--nodes nodes.txt", ["--origin", "--destination"]
        chosen = [ends[0][0], ends[1][0]]
        caps = "--max-pairs 5 --max-per-pair 1" if person else ""
        listed = "nodes.txt is your public list of all nodes"
    else:
        others = [name for name in there if name not in person]
        item = known_of_records(there, "item")[:1] or (others if len(others) == 1 else ["COLUMN"])
        kind, list_option, columns, chosen = "visits", "--items items.txt", ["--item"], item
        caps = "--max-items 4"
        listed = "items.txt is your public list of all items"
    if person:
        columns, chosen = ["--person", *columns], [*person, *chosen]
        listed += ", and caps say how much of a person counts"
    said = [f"{option} {shlex.quote(name)}" for option, name in zip(columns, chosen, strict=True)]
    words = ["ptclust build", kind, shlex.quote(str(file)), *said, list_option, caps]
    command = " ".join(word for word in [*words, "-o graph.parquet"] if word)
    raise FileError(
        f"{file} is a table of records, not of edges: build a graph of it first, `{command}`, "
        f"where {listed}. If a row is an edge, name its columns: source=, target=, weight="
    )
