"""Reading and writing which cluster every node belongs to."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from ptclust._files import written_at_once
from ptclust._markup import quoted
from ptclust._types import Array, Ints
from ptclust.errors import FileError, InputError
from ptclust.graph.topology import Topology

_UNCLUSTERED = "-1"
#: What spreadsheets take for the beginning of a formula; some drop before it what is not seen.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def write_labels(
    names: Array,
    labels: Ints,
    path: Path | None,
    more: Mapping[str, Array] | None = None,
    *,
    escape_formulas: bool = True,
) -> None:
    """Write labels as CSV to a file, or to stdout if there is none; see `labels_text`."""
    text = labels_text(names, labels, more, escape_formulas=escape_formulas)
    if path is None:
        sys.stdout.write(text)
        return
    with written_at_once(path) as temporary:
        temporary.write_bytes(text.encode())


def labels_text(
    names: Array,
    labels: Ints,
    more: Mapping[str, Array] | None = None,
    *,
    escape_formulas: bool = True,
) -> str:
    """Return ``node,cluster`` and ``more`` columns as CSV; every such table is written here.

    Spreadsheets carry out text that begins with ``=``, ``+``, ``-`` or ``@``, and terminals what
    begins with a control character. With ``escape_formulas`` names that do are written with an
    apostrophe before them, by which a spreadsheet knows plain text; `read_labels` takes it off
    again. Numbers stay numbers.
    """
    import polars as pl

    nodes = written_names(names, escape_formulas=escape_formulas)
    return pl.DataFrame({"node": nodes, "cluster": labels, **(more or {})}).write_csv()


def written_names(names: Array, *, escape_formulas: bool) -> Array | list[str]:
    """Return the names of nodes as `write_labels` writes them; FileError if two become the same."""
    if names.dtype.kind in "iu":
        return names
    nodes = list(map(str, names.tolist()))
    if not escape_formulas or names.dtype.kind == "f":  # numbers are not formulas
        return nodes
    escaped = list(map(_escaped, names.tolist()))
    if len(set(escaped)) < len(set(nodes)):
        same = "two node names are the same once formulas are escaped"
        raise FileError(f"{same}; rename one, or say escape_formulas=False")
    return escaped


def _escaped(name: object) -> str:
    text, number = str(name), type(name) in (int, float) or isinstance(name, np.number)
    harmful = _FORMULA.match(text) or not text[:1].isprintable()
    return f"'{text}" if harmful and not number else text


def read_labels(path: str | os.PathLike[str], topology: Topology) -> Ints:
    """Read a table of nodes and their clusters; return the cluster of every node, in node order.

    The CSV file has the columns ``node``, by name, and ``cluster``, as ``Release.to_csv`` writes
    it, or ``label``; without a header, its first two columns count. Labels are any text, and ``-1``
    is unclustered. Clusters are numbered by their labels if these are whole numbers, else by first
    appearance. A name that begins as a formula may have an apostrophe before it.
    """
    file = Path(path)
    names = list(map(str, topology.names.tolist()))
    label_of: dict[str, str | None] = dict.fromkeys(names)
    for where, name, label in _rows(file):
        if name not in label_of and name[:1] == "'" and _escaped(name[1:]) == name:
            name = name[1:]
        if name not in label_of:
            raise InputError(f"{where}: the graph has no node {quoted(name)}")
        if label_of[name] is not None:
            raise InputError(
                f"{where}: node {quoted(name)} is there a second time; give it one cluster"
            )
        label_of[name] = label
    labels = [found for name in names if (found := label_of[name]) is not None]
    if len(labels) < topology.n_nodes:
        lacking = next(name for name in names if label_of[name] is None)
        given = f"{file} names a cluster for {len(labels):,} of {topology.n_nodes:,} nodes"
        give = "give every node a label, -1 if it is unclustered"
        raise InputError(f"{given}; {quoted(lacking)}, for one, is missing; {give}")
    return _numbered(labels)


def _rows(file: Path) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, strict=True)
            columns = 0, 1
            for row in reader:
                if not row:
                    continue
                cells = [cell.strip() for cell in row]
                lowered = [cell.lower() for cell in cells]
                label = "cluster" if "cluster" in lowered else "label"
                if not found and "node" in lowered and label in lowered:
                    columns = lowered.index("node"), lowered.index(label)
                    continue
                where = f"line {reader.line_num} of {file}"
                if max(columns) >= len(cells):
                    raise FileError(f"{where} has {len(cells)} column(s), not a node and a cluster")
                found.append((where, cells[columns[0]], cells[columns[1]]))
    except OSError as error:
        raise FileError(f"{file} cannot be read: {error.strerror or error}") from None
    except (csv.Error, UnicodeDecodeError):
        raise FileError(f"{file} is not a CSV file in UTF-8 of nodes and labels") from None
    return found


def _numbered(labels: list[str]) -> Ints:
    distinct = dict.fromkeys(label for label in labels if label != _UNCLUSTERED)
    number = {label: i for i, label in enumerate(distinct)}
    with suppress(ValueError):
        whole = {label: int(label) for label in distinct}
        if len({*whole.values()}) == len(whole) and all(0 <= n < 2**63 for n in whole.values()):
            number = whole
    number[_UNCLUSTERED] = -1
    return np.array([number[label] for label in labels], dtype=np.int64)
