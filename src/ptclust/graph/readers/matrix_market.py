"""MatrixMarket coordinate files.

Not read by ``scipy.io.mmread``: in scipy 1.17 a damaged file can crash the interpreter.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ptclust._types import Array
from ptclust.errors import FileError, WeightError
from ptclust.graph._bounds import check_declared, open_plain
from ptclust.graph.graph import Edges
from ptclust.graph.readers.npz import edges_of_matrix
from ptclust.graph.topology import numbered

_ENTRY = np.dtype([("row", np.int64), ("column", np.int64), ("value", np.float64)])


class _Size(NamedTuple):
    n_rows: int
    n_columns: int
    n_entries: int


def read_matrix_market(path: Path) -> Edges:
    """Return the edges of a MatrixMarket coordinate file; row and column 1 are node 0."""
    from scipy.sparse import coo_array

    with open_plain(path) as file:
        _check_banner(path, file.readline())
        size = _read_size(path, file)
        entries = _read_entries(path, file, size)
    check_declared(max(size.n_rows, size.n_columns), len(entries), path)
    indices = (entries["row"] - 1, entries["column"] - 1)
    matrix = coo_array((entries["value"], indices), shape=(size.n_rows, size.n_columns))
    return edges_of_matrix(matrix, str(path), numbered("edge", f" of {path}"))


def _check_banner(path: Path, line: bytes) -> None:
    words = line.decode("latin-1").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise FileError(f"{path} does not begin with %%MatrixMarket matrix, so it is no such file")
    _, _, layout, field, symmetry = words
    # Words that the format does not know are not quoted: one may be a weight, strayed there.
    known = {word: word for word in ("complex", "skew-symmetric", "hermitian")}
    if layout != "coordinate":
        raise FileError(f"{path} holds a dense matrix; write it in coordinate format")
    if field == "pattern":
        raise WeightError(f"{path} is a pattern matrix, without weights; write real or integer")
    if field not in ("real", "double", "integer", "unsigned-integer"):
        kind = known.get(field, "unknown")
        raise WeightError(f"{path} has entries of type {kind}, but weights are real numbers")
    if symmetry not in ("general", "symmetric"):
        kind = known.get(symmetry, "unknown")
        raise FileError(f"{path} is {kind}; the matrix of a graph is symmetric or general")


def _read_size(path: Path, file: Iterable[bytes]) -> _Size:
    for line in file:
        words = line.split()
        if not words or words[0].startswith(b"%"):
            continue
        if len(words) == 3 and all(word.isdigit() and len(word) < 19 for word in words):
            return _Size(*(int(word) for word in words))
        break
    raise FileError(f"{path} does not tell its size: rows, columns and entries; write it again")


def _read_entries(path: Path, file: Iterable[bytes], size: _Size) -> Array:
    """Read the lines that follow the size; an error tells the entry, counted from 1."""
    entries, wrong = np.empty(0, dtype=_ENTRY), None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that there is no line at all
            entries = np.loadtxt(file, dtype=_ENTRY, comments="%", ndmin=1, encoding="latin-1")
    except (ValueError, OverflowError) as error:
        wrong = _which_entry(str(error))
    if wrong is None:
        outside = (entries["row"] < 1) | (entries["row"] > size.n_rows)
        outside |= (entries["column"] < 1) | (entries["column"] > size.n_columns)
        wrong = f"entry {int(outside.argmax()) + 1}" if outside.any() else None
    if wrong is not None:
        raise FileError(f"{wrong} of {path} is not a row, a column and a number; write it again")
    if (n := len(entries)) != size.n_entries:
        raise FileError(f"{path} announces {size.n_entries} entries and has {n}; write it again")
    return entries


def _which_entry(message: str) -> str:
    """Take the row from a message of numpy and leave the rest: it quotes what it could not read."""
    found = re.findall(r"at row (\d+)(, column)?", message)
    if not found:
        return "an entry"
    row, column = found[-1]
    return f"entry {int(row) + bool(column)}"  # numpy counts from 0 here, and from 1 there
