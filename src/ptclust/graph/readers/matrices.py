"""Sparse matrices as graphs: of scipy in memory, in npz files, and in MatrixMarket files.

An entry is an edge, a stored zero an edge of weight zero. Where the entries are on both sides of
the diagonal in the same places, an entry and its mirror are one edge. Values decide nothing.

Files are not read by ``numpy.load`` and ``scipy.io.mmread``: the one allocates what a header
declares, and in scipy 1.17 a damaged file can crash the interpreter.
"""

from __future__ import annotations

import math
import re
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from typing import Any, Literal

import numpy as np
import polars as pl

from ptclust._markup import quoted_list
from ptclust._types import Array
from ptclust.errors import FileError, GraphError, PtclustError, UsageError, WeightError
from ptclust.graph._bounds import check_declared, check_expansion
from ptclust.graph.graph import Edges
from ptclust.graph.readers.columns import Request, settled_kind
from ptclust.graph.readers.csv import lines_of
from ptclust.graph.readers.file import File
from ptclust.graph.readers.tables import as_numbers
from ptclust.graph.topology import numbered

_ENDS = ("sources", "targets", "weights")
_VALUES = ("weights", "data")
_OF_MATRIX = ("format", "shape", "data", "row", "col", "indptr", "indices")
_USED = (*_ENDS, "n_nodes", "names", *_OF_MATRIX)


def edges_of_matrix(matrix: Any, where: str = "the matrix", *, merging: bool = False) -> Edges:
    """Return the edges of a scipy sparse array or matrix; with ``merging`` one for every entry."""
    from scipy.sparse import issparse

    if not issparse(matrix):
        wrong = f"{where} must be a scipy sparse array or matrix, not {type(matrix).__name__}"
        raise UsageError(f"{wrong}; of points use Graph.from_points")
    _check_format(matrix.format, where)
    _check_square(matrix.shape, where)
    if np.iscomplexobj(matrix):
        raise WeightError(f"{where} has complex entries, but weights are real numbers")
    entries = matrix.tocoo()
    return _edges_of_entries(
        entries.row, entries.col, entries.data, matrix.shape[0], merging=merging
    )


def _edges_of_entries(
    rows: Array, columns: Array, values: Array, n_nodes: int, *, merging: bool
) -> Edges:
    """Return the edges of a matrix: one for every entry if they will be merged.

    Otherwise an entry and its mirror are one edge, of their mean weight, if all have a mirror; if
    not, each entry is an edge.
    """
    merged: Literal["mean"] | None = None
    if not merging and len(rows) and (pairs := _mirrored(rows, columns)) is not None:
        merged = "mean"
        diagonal = np.flatnonzero(rows == columns)
        above, below = (np.concatenate([diagonal, side]) for side in pairs)
        rows, columns, values = rows[above], columns[above], _mean(values[above], values[below])
    return Edges(rows, columns, values, n_nodes, merged=merged)


def _check_format(form: str, where: str) -> None:
    if form in ("dia", "bsr"):
        alike = f"in {form} format, where a weight of zero and padding look alike"
        raise GraphError(f"{where} is {alike}; convert it first: matrix.tocoo()")


def _check_square(shape: Sequence[int], where: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        sizes = " x ".join(str(size) for size in shape)
        raise GraphError(f"{where} is {sizes}, but the adjacency matrix of a graph is square")


def _mirrored(rows: Array, columns: Array) -> tuple[Array, Array] | None:
    """Return the entries above the diagonal and their mirrors below, or None if some have none."""
    above, below = np.flatnonzero(rows < columns), np.flatnonzero(rows > columns)
    if len(above) != len(below):
        return None
    above = above[np.lexsort((columns[above], rows[above]))]
    below = below[np.lexsort((rows[below], columns[below]))]
    same = np.array_equal(rows[above], columns[below])
    return (above, below) if same and np.array_equal(columns[above], rows[below]) else None


def _mean(a: Array, b: Array) -> Array:
    """Return the mean of each pair of values, which is exact if they are equal."""
    if np.array_equal(a, b):
        return a
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":  # exact, and rounded once
        wholes: Array = (a >> 1) + (b >> 1) + (a & b & 1)
        halves: Array = 0.5 * ((a ^ b) & 1)
        return wholes.astype(np.float64) + halves
    with np.errstate(invalid="ignore"):  # infinities, refused later
        # in doubles: as a float32 it would be rounded by as much as half of what they differ by
        both = (np.divide(each, 2, dtype=np.float64) for each in (a, b))
        return np.where(a == b, a, np.add(*both))


def read_npz(file: File, request: Request) -> Edges:
    """Return the edges of a matrix saved by ``scipy.sparse.save_npz``, or of named arrays."""
    kind = None if request.ends_only else settled_kind(request.kind, None, file)
    matrix, damaged = None, True
    try:
        with file.open() as stream, zipfile.ZipFile(stream) as archive:
            there = {name.removesuffix(".npy"): name for name in archive.namelist()}
            used = [name for name in _USED if name not in (_VALUES if request.ends_only else ())]
            wanted = {name: there[name] for name in used if name in there}
            expanded = sum(archive.getinfo(name).file_size for name in wanted.values())
            check_expansion(expanded, file.size, file)
            arrays = {name: _read_array(archive, each, file) for name, each in wanted.items()}
        if "format" in arrays:
            matrix = _matrix_of(arrays, str(file), ends_only=request.ends_only)
        damaged = False
    except (MemoryError, PtclustError):
        raise
    except Exception:  # noqa: S110 - damaged bytes make zipfile and numpy raise nearly anything
        pass
    if damaged:
        written = "not written by numpy.savez or scipy.sparse.save_npz"
        raise FileError(f"{file} is damaged, or {written}")
    if matrix is None:
        edges = _edges_of_arrays(file, arrays, list(there), ends_only=request.ends_only)
    else:
        check_declared(max(matrix.shape), matrix.nnz, file)
        edges = edges_of_matrix(matrix, str(file), merging=request.merging)
    return edges._replace(kind=kind, say=numbered("edge", f" of {file}"))


def _read_array(archive: zipfile.ZipFile, name: str, file: File) -> Array:
    """Return an array whose header agrees with the number of bytes that there are."""
    npy = np.lib.format
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with archive.open(name) as member:
        version = npy.read_magic(member)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it was written by Python 2
            shape, _, dtype = read_header[version](member)
        if dtype.hasobject:
            objects = "arrays of Python objects, not read; save names as strings or integers"
            raise FileError(f"{file} holds {objects}")
        size = archive.getinfo(name).file_size - member.tell()
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
            raise ValueError("the header does not agree with the data")
        array = np.frombuffer(member.read(), dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _matrix_of(arrays: dict[str, Array], where: str, *, ends_only: bool) -> Any:
    """Return the matrix that scipy saved as these arrays; raises anything if they do not fit."""
    from scipy.sparse import coo_array, csc_array, csr_array

    form = arrays["format"].item()
    form = form.decode("ascii") if isinstance(form, bytes) else form
    _check_format(form, where)
    shape = tuple(int(size) for size in arrays["shape"])
    names = ("row", "col") if form == "coo" else ("indices", "indptr")
    places = [arrays[name] for name in names]
    data = np.zeros(len(places[0])) if ends_only else arrays["data"]
    if not all(array.ndim == 1 and array.dtype.kind in "iu" for array in places):
        raise ValueError("the places of entries are not integers")
    if data.dtype.kind == "c":
        raise WeightError(f"{where} has complex entries, but weights are real numbers")
    if data.ndim != 1 or data.dtype.kind not in "biuf" or len(data) != len(places[0]):
        raise ValueError("the entries are not numbers, one for every place")
    if data.dtype.kind not in "iu":
        with np.errstate(over="ignore"):  # of longer floats; infinities are refused later
            data = data.astype(np.float64)
    if form == "coo":
        return coo_array((data, tuple(places)), shape=shape)
    matrix = {"csr": csr_array, "csc": csc_array}[form]((data, *places), shape=shape)
    matrix.check_format(full_check=True)  # of its pointers, which the conversions trust
    return matrix


def _edges_of_arrays(
    file: File, arrays: dict[str, Any], there: list[str], *, ends_only: bool
) -> Edges:
    if ends_only and "sources" in arrays:
        arrays["weights"] = np.zeros(arrays["sources"].size)
    missing = [name for name in _ENDS if name not in arrays]
    if missing:
        needed = f"{', '.join(_ENDS)}, or a matrix saved by scipy.sparse.save_npz"
        lacks = f"{file} has no array {missing[0]!r}; needed are {needed}"
        raise FileError(f"{lacks}; its arrays are: {quoted_list(there)}")
    sources, targets, weights = (arrays[name] for name in _ENDS)
    count, names = arrays.get("n_nodes"), arrays.get("names")
    if count is not None:
        if count.ndim or count.dtype.kind not in "iu":
            raise FileError(f"the array 'n_nodes' of {file} must be a single integer")
        count = int(count)
    if names is not None and names.ndim != 1:
        raise FileError(f"the array 'names' of {file} must be one-dimensional, one name per node")
    numbers = [ends for ends in (sources, targets) if ends.size and ends.dtype.kind in "iu"]
    highest = max((int(ends.max()) for ends in numbers), default=-1)
    check_declared(max(highest + 1, count or 0), sources.size, file)
    if names is not None and names.dtype.kind in "US":
        names = names.tolist()
    return Edges(sources, targets, weights, count, names)


def read_matrix_market(file: File, request: Request) -> Edges:
    """Return the edges of a MatrixMarket coordinate file; row and column 1 are node 0."""
    ends_only, merging = request.ends_only, request.merging
    kind = None if ends_only else settled_kind(request.kind, None, file)
    with closing(lines_of(file, " ")) as lines:
        symmetry = _read_banner(file, next(lines, ""), ends_only=ends_only)
        size = _read_size(file, lines)
        rows, columns, values = _read_entries(file, lines, size, ends_only=ends_only)
    check_declared(max(size[:2]), len(rows), file)
    _check_square(size[:2], str(file))
    symmetric = symmetry == "symmetric"  # and has one triangle
    if symmetric and merging:  # values must not decide how often an entry counts
        off = np.flatnonzero(rows != columns)
        rows, columns = np.r_[rows, columns[off]], np.r_[columns, rows[off]]
        values = np.r_[values, values[off]]
    edges = _edges_of_entries(rows, columns, values, size[0], merging=merging or symmetric)
    return edges._replace(kind=kind, say=numbered("edge", f" of {file}"))


def _read_banner(file: File, line: str, *, ends_only: bool) -> str:
    """Return the symmetry."""
    words = line.lower().split()
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
    return symmetry


def _read_size(file: File, lines: Iterable[str]) -> list[int]:
    """Return the numbers of rows, columns and entries."""
    words = next((line.split() for line in lines if line.strip() and line[0] != "%"), [])
    if len(words) == 3 and all(re.fullmatch("[0-9]{1,18}", word) for word in words):
        return [int(word) for word in words]
    raise FileError(f"{file} does not tell its size: rows, columns and entries; write it again")


def _read_entries(
    file: File, lines: Iterable[str], size: list[int], *, ends_only: bool
) -> tuple[Array, Array, Array]:
    """Return rows and columns, counted from 0, and values: integers if all are."""
    n_rows, n_columns, n_entries = size
    text = "".join(("row column value more\n", *(line for line in lines if line.strip())))
    frame, wrong = None, "an entry"
    with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException):
        frame = pl.read_csv(
            text.encode("utf-8", "surrogateescape"),
            separator=" ",
            quote_char=None,
            comment_prefix="%",
            infer_schema=False,
            ignore_errors=True,  # what is not UTF-8 is null
            truncate_ragged_lines=True,
        )
    if frame is not None:
        rows, columns = (frame[name].cast(pl.Int64, strict=False) for name in ("row", "column"))
        values = pl.zeros(len(frame), eager=True) if ends_only else as_numbers(frame["value"])
        good = rows.is_between(1, n_rows) & columns.is_between(1, n_columns)
        if not ends_only:
            good &= values.is_not_null() & frame["more"].is_null()
        bad = ~good.fill_null(value=False).to_numpy()
        wrong = f"entry {int(bad.argmax()) + 1}" if bad.any() else ""
    if frame is None or wrong:
        raise FileError(f"{wrong} of {file} is not a row, a column and a number; write it again")
    if len(frame) != n_entries:
        has = f"announces {n_entries} entries and has {len(frame)}"
        raise FileError(f"{file} {has}; write it again")
    return rows.to_numpy() - 1, columns.to_numpy() - 1, values.to_numpy()
