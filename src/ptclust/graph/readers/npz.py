"""Sparse matrices as graphs, from memory and from npz files.

An entry is an edge, a stored zero an edge of weight zero. A symmetric matrix stores every edge
twice and is read once; a matrix that stores one triangle is read as it is.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ptclust._types import Array
from ptclust.errors import FileError, GraphError, UsageError, WeightError
from ptclust.graph._bounds import check_declared, check_expansion
from ptclust.graph.graph import Edges
from ptclust.graph.topology import Say, edge_number, numbered

_ENDS = ("sources", "targets", "weights")
_OF_MATRIX = ("format", "shape", "data", "row", "col", "indptr", "indices")
_USED = (*_ENDS, "n_nodes", "names", *_OF_MATRIX)


def edges_of_matrix(matrix: Any, where: str = "the matrix", say: Say = edge_number) -> Edges:
    """Return the edges of a scipy sparse array or matrix."""
    from scipy.sparse import issparse

    if not issparse(matrix):
        wrong = f"{where} must be a scipy sparse array or matrix, not {type(matrix).__name__}"
        raise UsageError(f"{wrong}; of points use Graph.from_points")
    if matrix.format in ("dia", "bsr"):
        alike = f"in {matrix.format} format, where a weight of zero and padding look alike"
        raise GraphError(f"{where} is {alike}; convert it first: matrix.tocoo()")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(str(size) for size in matrix.shape)
        raise GraphError(f"{where} is {shape}, but the adjacency matrix of a graph is square")
    if np.iscomplexobj(matrix):
        raise WeightError(f"{where} has complex entries, but weights are real numbers")
    entries = matrix.tocoo()
    rows, columns, values = entries.row, entries.col, entries.data
    mirrored = _mirrored(rows, columns, values, matrix.shape[0])
    keep = rows <= columns if mirrored else slice(None)
    return Edges(rows[keep], columns[keep], values[keep], matrix.shape[0], None, say)


def _mirrored(rows: Array, columns: Array, values: Array, n_nodes: int) -> bool:
    """Whether the entries below the diagonal are exactly those above it."""
    above, below = rows < columns, rows > columns
    if np.count_nonzero(above) != np.count_nonzero(below):
        return False
    up = rows[above].astype(np.int64) * n_nodes + columns[above]
    down = columns[below].astype(np.int64) * n_nodes + rows[below]
    up_order, down_order = np.argsort(up, kind="stable"), np.argsort(down, kind="stable")
    if not np.array_equal(up[up_order], down[down_order]):
        return False
    up_values, down_values = values[above][up_order], values[below][down_order]
    return bool(np.array_equal(up_values, down_values, equal_nan=values.dtype.kind == "f"))


class _ObjectsError(Exception):
    """An array holds Python objects, and those come as pickles."""


def read_npz(path: Path) -> Edges:
    """Return the edges of a matrix saved by ``scipy.sparse.save_npz``, or of named arrays.

    Not read by ``numpy.load`` and ``scipy.sparse.load_npz``: the one allocates what a header
    declares, and a matrix whose pointers are damaged makes the other write outside its arrays.
    """
    say = numbered("edge", f" of {path}")
    arrays: dict[str, Any] = {}
    problem = "is damaged, or not written by numpy.savez or scipy.sparse.save_npz"
    try:
        with zipfile.ZipFile(path) as archive:
            there = {name.removesuffix(".npy"): name for name in archive.namelist()}
            wanted = {name: there[name] for name in _USED if name in there}
            check_expansion(sum(archive.getinfo(name).file_size for name in wanted.values()), path)
            arrays = {name: _read_array(archive, member) for name, member in wanted.items()}
        matrix = _matrix_of(arrays, path) if "format" in arrays else None
        problem = ""
    except (MemoryError, FileError):
        raise
    except _ObjectsError:
        problem = "holds arrays of Python objects, not read; save names as strings or integers"
    except Exception:  # noqa: S110 - damaged bytes make zipfile and numpy raise nearly anything
        pass
    if problem:
        raise FileError(f"{path} {problem}")
    if matrix is not None:
        return edges_of_matrix(matrix, str(path), say)
    return _edges_of_arrays(path, arrays, list(there), say)


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


def _matrix_of(arrays: dict[str, Array], path: Path) -> Any:
    """Return the matrix that scipy saved as these arrays; raise anything if they do not fit."""
    from scipy.sparse import coo_array

    form = arrays["format"].item()
    form = form.decode("ascii") if isinstance(form, bytes) else form
    if form in ("dia", "bsr"):
        return coo_array((1, 1)).asformat(form)  # to be refused as such
    n_rows, n_columns = (int(size) for size in arrays["shape"])
    data = arrays["data"]
    if form == "coo":
        rows, columns = arrays["row"], arrays["col"]
    elif form == "csr":
        rows, columns = _uncompressed(arrays["indptr"], arrays["indices"])
    elif form == "csc":
        columns, rows = _uncompressed(arrays["indptr"], arrays["indices"])
    else:
        raise ValueError("the format is not one of scipy's")
    lengths = {len(part) for part in (rows, columns, data)}
    if len(lengths) > 1 or data.ndim != 1 or data.dtype.kind not in "biufc":
        raise ValueError("the arrays are not those of a matrix")
    check_declared(max(n_rows, n_columns), len(data), path)
    values = data if data.dtype.kind == "c" else data.astype(np.float64)
    return coo_array((values, (rows, columns)), shape=(n_rows, n_columns))


def _uncompressed(indptr: Array, indices: Array) -> tuple[Array, Array]:
    whole = indptr[0] == 0 and indptr[-1] == len(indices)
    if not whole or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError("the pointers are not those of a matrix")
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices


def _edges_of_arrays(path: Path, arrays: dict[str, Any], there: list[str], say: Say) -> Edges:
    missing = [name for name in _ENDS if name not in arrays]
    if missing:
        listed = ", ".join(repr(name) for name in there) or "none"
        needed = f"{', '.join(_ENDS)}, or a matrix saved by scipy.sparse.save_npz"
        lacks = f"{path} has no array {missing[0]!r}; needed are {needed}"
        raise FileError(f"{lacks}; its arrays are: {listed}")
    n_nodes, names = arrays.get("n_nodes"), arrays.get("names")
    if n_nodes is not None and (n_nodes.ndim or not np.issubdtype(n_nodes.dtype, np.integer)):
        raise FileError(f"the array 'n_nodes' of {path} must be a single integer")
    if names is not None and names.ndim != 1:
        raise FileError(f"the array 'names' of {path} must be one-dimensional, a name a node")
    sources, targets, weights = (arrays[name] for name in _ENDS)
    count = None if n_nodes is None else int(n_nodes)
    numbers = [ends for ends in (sources, targets) if ends.size and ends.dtype.kind in "iu"]
    highest = max((int(ends.max()) for ends in numbers), default=-1)
    check_declared(max(highest + 1, count or 0), sources.size, path)
    if names is not None and names.dtype.kind in "US":
        names = names.tolist()
    return Edges(sources, targets, weights, count, names, say)
