"""Sparse matrices as graphs, from memory and from npz files.

An entry is an edge, an entry of zero included: a stored zero is a weight of zero, and only what is not
stored is not joined. A symmetric matrix stores every edge twice and is read once; a matrix that stores
one triangle is read as it is.
"""

from __future__ import annotations

import pickle
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.errors import FileError, GraphError, UsageError, WeightError
from ptclust.graph._edges import Edges, Say, edge_number, numbered

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["edges_of_matrix", "read_npz"]


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


def read_npz(path: Path) -> Edges:
    """Return the edges of a matrix saved by ``scipy.sparse.save_npz``, or of named arrays."""
    from scipy.sparse import load_npz

    say = numbered("edge", f" of {path}")
    arrays: dict[str, Any] = {}
    matrix, readable = None, False
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if "format" in archive.files:
                matrix = load_npz(path)
            else:
                arrays = {name: archive[name] for name in archive.files}
        readable = True
    except (ValueError, OSError, EOFError, KeyError, AttributeError, TypeError) as error:
        problem = str(error) if "Object arrays" in str(error) else ""
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, pickle.UnpicklingError):
        problem = ""
    if not readable:
        raise FileError(
            f"{path} holds arrays of Python objects, which are not read for safety; save names as an "
            "array of strings or integers"
            if problem
            else f"{path} is damaged, or not written by numpy.savez or scipy.sparse.save_npz"
        )
    if matrix is not None:
        return edges_of_matrix(matrix, str(path), say)
    return _edges_of_arrays(path, arrays, say)


def _edges_of_arrays(path: Path, arrays: dict[str, Any], say: Say) -> Edges:
    missing = [name for name in ("sources", "targets", "weights") if name not in arrays]
    if missing:
        there = ", ".join(repr(name) for name in arrays) or "none"
        raise FileError(
            f"{path} has no array {missing[0]!r}; needed are sources, targets and weights, or a "
            f"matrix saved by scipy.sparse.save_npz; its arrays are: {there}"
        )
    n_nodes, names = arrays.get("n_nodes"), arrays.get("names")
    if n_nodes is not None and (n_nodes.ndim or not np.issubdtype(n_nodes.dtype, np.integer)):
        raise FileError(f"the array 'n_nodes' of {path} must be a single integer")
    if names is not None and names.ndim != 1:
        raise FileError(f"the array 'names' of {path} must be one-dimensional, a name a node")
    return Edges(
        arrays["sources"],
        arrays["targets"],
        arrays["weights"],
        None if n_nodes is None else int(n_nodes),
        None if names is None else names.tolist() if names.dtype.kind in "US" else names,
        say,
    )
