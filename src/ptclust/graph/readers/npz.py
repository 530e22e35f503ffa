"""Sparse matrices as graphs, from memory and from npz files.

An entry is an edge, a stored zero an edge of weight zero. Where the entries are on both sides of
the diagonal in the same places, an entry and its mirror are one edge. Values decide nothing.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ptclust._markup import quoted_list
from ptclust._types import Array
from ptclust.errors import FileError, GraphError, PtclustError, UsageError, WeightError
from ptclust.graph._bounds import check_declared, check_expansion
from ptclust.graph.graph import Edges
from ptclust.graph.readers.file import File
from ptclust.graph.topology import Say, edge_number, numbered

_ENDS = ("sources", "targets", "weights")
_VALUES = ("weights", "data")
_OF_MATRIX = ("format", "shape", "data", "row", "col", "indptr", "indices")
_USED = (*_ENDS, "n_nodes", "names", *_OF_MATRIX)


def edges_of_matrix(
    matrix: Any, where: str = "the matrix", say: Say = edge_number, *, merging: bool = False
) -> Edges:
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
    found = entries.row, entries.col, entries.data
    return edges_of_entries(*found, matrix.shape, where, say, merging=merging)


def edges_of_entries(
    rows: Array,
    columns: Array,
    values: Array,
    shape: Sequence[int],
    where: str,
    say: Say,
    *,
    merging: bool,
) -> Edges:
    """Return the edges of a matrix: one for every entry if they will be merged.

    Otherwise an entry and its mirror are one edge, of their mean weight, if all have a mirror; if
    not, each entry is an edge.
    """
    _check_square(shape, where)
    merged: Literal["mean"] | None = None
    if not merging and len(rows) and (pairs := _mirrored(rows, columns)) is not None:
        merged = "mean"
        diagonal = np.flatnonzero(rows == columns)
        above, below = (np.concatenate([diagonal, side]) for side in pairs)
        rows, columns, values = rows[above], columns[above], _mean(values[above], values[below])
    return Edges(rows, columns, values, shape[0], None, say, merged=merged)


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


class _ObjectsError(Exception):
    """An array holds Python objects, and those come as pickles."""


def read_npz(file: File, *, merging: bool, ends_only: bool = False) -> Edges:
    """Return the edges of a matrix saved by ``scipy.sparse.save_npz``, or of named arrays.

    Not read by ``numpy.load`` and ``scipy.sparse.load_npz``: the one allocates what a header
    declares, and a matrix whose pointers are damaged makes the other write outside its arrays.
    With ``ends_only`` all weights are zero, and not read.
    """
    say = numbered("edge", f" of {file}")
    arrays: dict[str, Any] = {}
    matrix = None
    problem = "is damaged, or not written by numpy.savez or scipy.sparse.save_npz"
    unused = _VALUES if ends_only else ()
    try:
        with file.open() as stream, zipfile.ZipFile(stream) as archive:
            there = {name.removesuffix(".npy"): name for name in archive.namelist()}
            wanted = {name: there[name] for name in _USED if name in there and name not in unused}
            expanded = sum(archive.getinfo(name).file_size for name in wanted.values())
            check_expansion(expanded, file.size, file)
            arrays = {name: _read_array(archive, member) for name, member in wanted.items()}
        matrix = _entries_of(arrays, str(file), ends_only=ends_only) if "format" in arrays else None
        problem = ""
    except (MemoryError, PtclustError):
        raise
    except _ObjectsError:
        problem = "holds arrays of Python objects, not read; save names as strings or integers"
    except Exception:  # noqa: S110 - damaged bytes make zipfile and numpy raise nearly anything
        pass
    if problem:
        raise FileError(f"{file} {problem}")
    if matrix is None:
        return _edges_of_arrays(file, arrays, list(there), say, ends_only=ends_only)
    check_declared(max(matrix[-1]), len(matrix[0]), file)
    return edges_of_entries(*matrix, str(file), say, merging=merging)


def _read_array(archive: zipfile.ZipFile, name: str) -> Array:
    """Return an array whose header agrees with the number of bytes that there are."""
    npy = np.lib.format
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with archive.open(name) as member:
        version = npy.read_magic(member)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it was written by Python 2
            shape, _, dtype = read_header[version](member)
        if dtype.hasobject:
            raise _ObjectsError
        size = archive.getinfo(name).file_size - member.tell()
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
            raise ValueError("the header does not agree with the data")
        array = np.frombuffer(member.read(), dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _entries_of(
    arrays: dict[str, Array], where: str, *, ends_only: bool
) -> tuple[Array, Array, Array, list[int]]:
    """Return rows, columns and values of the matrix that scipy saved as these arrays, its shape.

    Raises anything if they do not fit.
    """
    form = arrays["format"].item()
    form = form.decode("ascii") if isinstance(form, bytes) else form
    _check_format(form, where)
    shape = [int(size) for size in arrays["shape"]]
    if form == "coo":
        rows, columns = arrays["row"], arrays["col"]
    elif form == "csr":
        rows, columns = _uncompressed(arrays["indptr"], arrays["indices"])
    elif form == "csc":
        columns, rows = _uncompressed(arrays["indptr"], arrays["indices"])
    else:
        raise ValueError("the format is not one of scipy's")
    data = np.zeros(len(rows)) if ends_only else arrays["data"]
    ends = (rows, columns)
    fit = all(end.ndim == 1 and end.dtype.kind in "iu" and len(end) == len(data) for end in ends)
    if not fit or data.ndim != 1 or data.dtype.kind not in "biufc" or len(shape) != 2:
        raise ValueError("the arrays are not those of a matrix")
    for end, size in zip(ends, shape, strict=True):
        if len(end) and (end.min() < 0 or end.max() >= size):
            raise ValueError("an entry is outside of the matrix")
    if data.dtype.kind == "c":
        raise WeightError(f"{where} has complex entries, but weights are real numbers")
    if data.dtype.kind not in "iu":
        with np.errstate(over="ignore"):  # of longer floats; infinities are refused later
            data = data.astype(np.float64)
    return rows, columns, data, shape


def _uncompressed(indptr: Array, indices: Array) -> tuple[Array, Array]:
    whole = indptr[0] == 0 and indptr[-1] == len(indices)
    if not whole or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError("the pointers are not those of a matrix")
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices


def _edges_of_arrays(
    file: File, arrays: dict[str, Any], there: list[str], say: Say, *, ends_only: bool
) -> Edges:
    if ends_only and "sources" in arrays:
        arrays["weights"] = np.zeros(arrays["sources"].size)
    missing = [name for name in _ENDS if name not in arrays]
    if missing:
        needed = f"{', '.join(_ENDS)}, or a matrix saved by scipy.sparse.save_npz"
        lacks = f"{file} has no array {missing[0]!r}; needed are {needed}"
        raise FileError(f"{lacks}; its arrays are: {quoted_list(there)}")
    n_nodes, names = arrays.get("n_nodes"), arrays.get("names")
    if n_nodes is not None and (n_nodes.ndim or not np.issubdtype(n_nodes.dtype, np.integer)):
        raise FileError(f"the array 'n_nodes' of {file} must be a single integer")
    if names is not None and names.ndim != 1:
        raise FileError(f"the array 'names' of {file} must be one-dimensional, one name per node")
    sources, targets, weights = (arrays[name] for name in _ENDS)
    count = None if n_nodes is None else int(n_nodes)
    numbers = [ends for ends in (sources, targets) if ends.size and ends.dtype.kind in "iu"]
    highest = max((int(ends.max()) for ends in numbers), default=-1)
    check_declared(max(highest + 1, count or 0), sources.size, file)
    if names is not None and names.dtype.kind in "US":
        names = names.tolist()
    return Edges(sources, targets, weights, count, names, say)
