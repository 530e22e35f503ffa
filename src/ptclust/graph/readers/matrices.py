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
from typing import Any, Literal

import numpy as np

from ptclust._markup import quoted_list
from ptclust._types import Array
from ptclust.errors import FileError, GraphError, PtclustError, UsageError, WeightError
from ptclust.graph._bounds import check_declared, check_expansion
from ptclust.graph.graph import Edges
from ptclust.graph.readers.columns import Request, settled_kind
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
    return _edges_of_entries(*found, matrix.shape[0], say, merging=merging)


def _edges_of_entries(
    rows: Array, columns: Array, values: Array, n_nodes: int, say: Say, *, merging: bool
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
    return Edges(rows, columns, values, n_nodes, None, say, merged=merged)


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


def read_npz(file: File, request: Request) -> Edges:
    """Return the edges of a matrix saved by ``scipy.sparse.save_npz``, or of named arrays."""
    kind = None if request.ends_only else settled_kind(request.kind, None, file)
    say = numbered("edge", f" of {file}")
    matrix, problem = None, "is damaged, or not written by numpy.savez or scipy.sparse.save_npz"
    try:
        with file.open() as stream, zipfile.ZipFile(stream) as archive:
            there = {name.removesuffix(".npy"): name for name in archive.namelist()}
            used = [name for name in _USED if name not in (_VALUES if request.ends_only else ())]
            wanted = {name: there[name] for name in used if name in there}
            expanded = sum(archive.getinfo(name).file_size for name in wanted.values())
            check_expansion(expanded, file.size, file)
            arrays = {name: _read_array(archive, member) for name, member in wanted.items()}
        if "format" in arrays:
            matrix = _matrix_of(arrays, str(file), ends_only=request.ends_only)
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
        edges = _edges_of_arrays(file, arrays, list(there), request, say)
    else:
        check_declared(max(matrix.shape), matrix.nnz, file)
        edges = edges_of_matrix(matrix, str(file), say, merging=request.merging)
    return edges._replace(kind=kind)


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
    file: File, arrays: dict[str, Any], there: list[str], request: Request, say: Say
) -> Edges:
    if request.ends_only and "sources" in arrays:
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


def read_matrix_market(file: File, request: Request) -> Edges:
    """Return the edges of a MatrixMarket coordinate file; row and column 1 are node 0."""
    ends_only, merging = request.ends_only, request.merging
    kind = None if ends_only else settled_kind(request.kind, None, file)
    with file.open_plain() as text:
        field, symmetry = _read_banner(file, text.readline(), ends_only=ends_only)
    # An integer may be written as 1e3, or be too long: then all are floats.
    types = [np.int64, np.float64] if "integer" in field else [np.float64]
    for value in [None] if ends_only else types:
        ends = [("row", np.int64), ("column", np.int64)]
        shape, entries, wrong = _read_entries(file, [*ends, *([("value", value)] if value else [])])
        if not wrong:
            break
    if wrong:
        raise FileError(f"{wrong}; write it again")
    check_declared(max(shape), len(entries), file)
    _check_square(shape, str(file))
    rows, columns = entries["row"] - 1, entries["column"] - 1
    values = np.zeros(len(entries)) if ends_only else entries["value"]
    if symmetry == "symmetric" and merging:  # values must not decide how often an entry counts
        off = np.flatnonzero(rows != columns)
        rows, columns = np.r_[rows, columns[off]], np.r_[columns, rows[off]]
        values = np.r_[values, values[off]]
    one_each = merging or symmetry == "symmetric"  # which stores one triangle
    say = numbered("edge", f" of {file}")
    edges = _edges_of_entries(rows, columns, values, shape[0], say, merging=one_each)
    return edges._replace(kind=kind)


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


def _read_entries(file: File, entry: list[Any]) -> tuple[tuple[int, int], Array, str]:
    """Return the shape, the entries, and what is wrong with them: the entry, counted from 1."""
    entries, wrong = np.empty(0, dtype=np.dtype(entry)), ""
    with file.open_plain() as text, warnings.catch_warnings():
        text.readline()
        n_rows, n_columns, n_entries = _read_size(file, text)
        warnings.simplefilter("ignore", UserWarning)  # that there is no line at all
        warnings.simplefilter("error", DeprecationWarning)  # of integers, that they are none
        used = None if len(entry) == 3 else (0, 1)
        how: dict[str, Any] = {"comments": "%", "ndmin": 1, "encoding": "latin-1", "usecols": used}
        try:
            entries = np.loadtxt(text, dtype=entry, **how)
        except (ValueError, OverflowError, DeprecationWarning) as error:
            wrong = _which_entry(str(error))
    if not wrong:
        outside = (entries["row"] < 1) | (entries["row"] > n_rows)
        outside |= (entries["column"] < 1) | (entries["column"] > n_columns)
        wrong = f"entry {int(outside.argmax()) + 1}" if outside.any() else ""
    if wrong:
        wrong = f"{wrong} of {file} is not a row, a column and a number"
    elif (n := len(entries)) != n_entries:
        wrong = f"{file} announces {n_entries} entries and has {n}"
    return (n_rows, n_columns), entries, wrong


def _read_size(file: File, text: Iterable[bytes]) -> list[int]:
    """Return the numbers of rows, columns and entries."""
    for line in text:
        words = line.split()
        if not words or words[0].startswith(b"%"):
            continue
        if len(words) == 3 and all(word.isdigit() and len(word) < 19 for word in words):
            return [int(word) for word in words]
        break
    raise FileError(f"{file} does not tell its size: rows, columns and entries; write it again")


def _which_entry(message: str) -> str:
    """Take the row from a message of numpy and leave the rest: it quotes what it could not read."""
    found = re.findall(r"at row (\d+)(, column)?", message)
    if not found:
        return "an entry"
    row, column = found[-1]
    return f"entry {int(row) + bool(column)}"  # numpy counts from 0 here, and from 1 there
