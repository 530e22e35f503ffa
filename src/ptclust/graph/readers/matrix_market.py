"""MatrixMarket coordinate files.

Not read by ``scipy.io.mmread``: in scipy 1.17 a damaged file can crash the interpreter.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ptclust._types import Array
from ptclust.errors import FileError, WeightError
from ptclust.graph._bounds import check_declared
from ptclust.graph.graph import Edges
from ptclust.graph.readers.file import File
from ptclust.graph.readers.npz import edges_of_entries
from ptclust.graph.topology import numbered


class _Size(NamedTuple):
    n_rows: int
    n_columns: int
    n_entries: int


def read_matrix_market(file: File, *, merging: bool, ends_only: bool = False) -> Edges:
    """Return the edges of a MatrixMarket coordinate file; row and column 1 are node 0.

    With ``ends_only`` all weights are zero, and not read; there may be none.
    """
    with file.open_plain() as text:
        field, symmetry = _read_banner(file, text.readline(), ends_only=ends_only)
    # An integer may be written as 1e3, or be too long: then all are floats.
    types = [np.int64, np.float64] if "integer" in field else [np.float64]
    for value in [None] if ends_only else types:
        entry = [("row", np.int64), ("column", np.int64), *([("value", value)] if value else [])]
        size, entries, wrong = _read(file, entry)
        if not wrong:
            break
    if wrong:
        raise FileError(f"{wrong}; write it again")
    check_declared(max(size[:2]), len(entries), file)
    values = np.zeros(len(entries)) if ends_only else entries["value"]
    found = entries["row"] - 1, entries["column"] - 1, values
    say, merged = numbered("edge", f" of {file}"), merging
    if symmetry == "symmetric":  # only one triangle is stored, if the other has the same values
        merged = True
        if merging:  # values must not decide how often an entry counts
            rows, columns, _ = found
            off = np.flatnonzero(rows != columns)
            found = np.r_[rows, columns[off]], np.r_[columns, rows[off]], np.r_[values, values[off]]
    return edges_of_entries(*found, size[:2], str(file), say, merging=merged)


def _read_banner(file: File, line: bytes, *, ends_only: bool) -> tuple[str, str]:
    """Return the type of the entries and the symmetry."""
    words = line.decode("latin-1").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise FileError(
            f"{file} does not begin with %%MatrixMarket matrix, so it is not a MatrixMarket file"
        )
    _, _, layout, field, symmetry = words
    # Words that the format does not know are not quoted: one may be a weight, strayed there.
    known = {word: word for word in ("complex", "skew-symmetric", "hermitian")}
    if layout != "coordinate":
        raise FileError(f"{file} holds a dense matrix; write it in coordinate format")
    if field == "pattern" and not ends_only:
        raise WeightError(f"{file} is a pattern matrix, without weights; write real or integer")
    if field not in ("real", "double", "integer", "unsigned-integer") and not ends_only:
        kind = known.get(field, "unknown")
        raise WeightError(f"{file} has entries of type {kind}, but weights are real numbers")
    if symmetry not in ("general", "symmetric"):
        kind = known.get(symmetry, "unknown")
        raise FileError(f"{file} is {kind}; the matrix of a graph is symmetric or general")
    return field, symmetry


def _read(file: File, entry: list[Any]) -> tuple[_Size, Array, str]:
    """Return the size, the entries, and what is wrong with them: the entry, counted from 1."""
    entries, wrong = np.empty(0, dtype=np.dtype(entry)), ""
    with file.open_plain() as text, warnings.catch_warnings():
        text.readline()
        size = _read_size(file, text)
        warnings.simplefilter("ignore", UserWarning)  # that there is no line at all
        warnings.simplefilter("error", DeprecationWarning)  # of integers, that they are none
        how: dict[str, Any] = {"comments": "%", "ndmin": 1, "encoding": "latin-1"}
        used = None if len(entry) == 3 else (0, 1)
        try:
            entries = np.loadtxt(text, dtype=entry, usecols=used, **how)
        except (ValueError, OverflowError, DeprecationWarning) as error:
            wrong = _which_entry(str(error))
    if not wrong:
        outside = (entries["row"] < 1) | (entries["row"] > size.n_rows)
        outside |= (entries["column"] < 1) | (entries["column"] > size.n_columns)
        wrong = f"entry {int(outside.argmax()) + 1}" if outside.any() else ""
    if wrong:
        return size, entries, f"{wrong} of {file} is not a row, a column and a number"
    if (n := len(entries)) != size.n_entries:
        return size, entries, f"{file} announces {size.n_entries} entries and has {n}"
    return size, entries, ""


def _read_size(file: File, text: Iterable[bytes]) -> _Size:
    for line in text:
        words = line.split()
        if not words or words[0].startswith(b"%"):
            continue
        if len(words) == 3 and all(word.isdigit() and len(word) < 19 for word in words):
            return _Size(*(int(word) for word in words))
        break
    raise FileError(f"{file} does not tell its size: rows, columns and entries; write it again")


def _which_entry(message: str) -> str:
    """Take the row from a message of numpy and leave the rest: it quotes what it could not read."""
    found = re.findall(r"at row (\d+)(, column)?", message)
    if not found:
        return "an entry"
    row, column = found[-1]
    return f"entry {int(row) + bool(column)}"  # numpy counts from 0 here, and from 1 there
