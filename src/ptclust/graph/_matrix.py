"""Sparse matrices as graphs, from memory and from npz files.

An entry is an edge, an entry of zero included: a stored zero is a weight of zero, and only what is not
stored is not joined. A symmetric matrix stores every edge twice and is read once; a matrix that stores
one triangle is read as it is.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.errors import FileError, GraphError, UsageError, WeightError
from ptclust.graph._bounds import check_declared, check_expansion
from ptclust.graph._edges import Edges, Say, edge_number, numbered

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["edges_of_matrix", "read_npz"]

_ENDS = ("sources", "targets", "weights")
_OF_MATRIX = ("format", "shape", "data", "row", "col", "indptr", "indices")
_USED = (*_ENDS, "n_nodes", "names", *_OF_MATRIX)


def edges_of_matrix(matrix: Any, where: str = "the matrix", say: Say = edge_number) -> Edges:
    """Return the edges of a scipy sparse array or matrix."""
    from scipy.sparse import issparse

    if not issparse(matrix):
        raise UsageError(
            f"{where} must be a scipy sparse array or matrix, not {type(matrix).__name__}; for "
            "distances between points use Graph.from_points"
        )
    if matrix.format in ("dia", "bsr"):
        raise GraphError(
            f"{where} is in {matrix.format} format, where a weight of zero cannot be told from "
            "padding; convert it first: matrix.tocoo()"
        )
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


def _mirrored(
    rows: NDArray[Any], columns: NDArray[Any], values: NDArray[Any], n_nodes: int
) -> bool:
    """Tell whether the entries below the diagonal are exactly those above it."""
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

    Not read by ``numpy.load`` and ``scipy.sparse.load_npz``: the one allocates what a header declares, and a
    matrix whose pointers are damaged makes the other write outside its arrays.
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
        problem = (
            "holds arrays of Python objects, which are not read for safety; save names as an array of "
            "strings or integers"
        )
    except Exception:  # noqa: S110 - damaged bytes make zipfile and numpy raise nearly anything
        pass
    if problem:
        raise FileError(f"{path} {problem}")
    if matrix is not None:
        return edges_of_matrix(matrix, str(path), say)
    return _edges_of_arrays(path, arrays, list(there), say)


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Return an array after its header was found to agree with the number of bytes that there are."""
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with archive.open(name) as member:
        version = np.lib.format.read_magic(member)
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


def _matrix_of(arrays: dict[str, NDArray[Any]], path: Path) -> Any:
    """Return the matrix that scipy saved as these arrays; any exception means that they do not fit together."""
    from scipy.sparse import coo_array

    form = arrays["format"].item()
    form = form.decode("ascii") if isinstance(form, bytes) else form
    if form in ("dia", "bsr"):
        return coo_array((1, 1)).asformat(form)  # to be refused as such
    n_rows, n_columns = (int(size) for size in arrays["shape"])
    data = arrays["data"]
    rows, columns = {"coo": _of_coo, "csr": _of_csr, "csc": _of_csc}[form](arrays)
    lengths = {len(part) for part in (rows, columns, data)}
    if len(lengths) > 1 or data.ndim != 1 or data.dtype.kind not in "biufc":
        raise ValueError("the arrays are not those of a matrix")
    check_declared(max(n_rows, n_columns), len(data), path)
    values = data if data.dtype.kind == "c" else data.astype(np.float64)
    return coo_array((values, (rows, columns)), shape=(n_rows, n_columns))


def _of_coo(arrays: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    return arrays["row"], arrays["col"]


def _of_csr(arrays: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    pointers, along = arrays["indptr"], arrays["indices"]
    whole = pointers[0] == 0 and pointers[-1] == len(along)
    if not whole or np.any(pointers[1:] < pointers[:-1]):
        raise ValueError("the pointers are not those of a matrix")
    return np.repeat(np.arange(len(pointers) - 1), np.diff(pointers)), along


def _of_csc(arrays: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    columns, rows = _of_csr(arrays)
    return rows, columns


def _edges_of_arrays(path: Path, arrays: dict[str, Any], there: list[str], say: Say) -> Edges:
    missing = [name for name in _ENDS if name not in arrays]
    if missing:
        listed = ", ".join(repr(name) for name in there) or "none"
        raise FileError(
            f"{path} has no array {missing[0]!r}; needed are sources, targets and weights, or a "
            f"matrix saved by scipy.sparse.save_npz; its arrays are: {listed}"
        )
    n_nodes, names = arrays.get("n_nodes"), arrays.get("names")
    if n_nodes is not None and (n_nodes.ndim or not np.issubdtype(n_nodes.dtype, np.integer)):
        raise FileError(f"the array 'n_nodes' of {path} must be a single integer")
    if names is not None and names.ndim != 1:
        raise FileError(f"the array 'names' of {path} must be one-dimensional, a name a node")
    numbers = [
        arrays[name] for name in _ENDS[:2] if arrays[name].size and arrays[name].dtype.kind in "iu"
    ]
    highest = max((int(ends.max()) for ends in numbers), default=-1)
    declared = max(highest + 1, 0 if n_nodes is None else int(n_nodes))
    check_declared(declared, arrays["sources"].size, path)
    return Edges(
        arrays["sources"],
        arrays["targets"],
        arrays["weights"],
        None if n_nodes is None else int(n_nodes),
        None if names is None else names.tolist() if names.dtype.kind in "US" else names,
        say,
    )
