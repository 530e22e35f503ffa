"""What a file may ask for: memory in proportion to its size, never on its word alone.

Nodes without an edge, runs of equal values and compressed zeros take next to no space in a file and
any amount of memory. Nothing small is refused, and nothing that a file of edges comes near to.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ptclust.errors import FileError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_FEW = 10_000_000
_NODES_PER_EDGE = 100
_ROWS_PER_BYTE = 100
_FEW_BYTES = 256 << 20
_EXPANSION = 100


def check_declared(n_nodes: int, n_edges: int, where: object) -> None:
    """Refuse a file that declares far more nodes than it has edges."""
    if n_nodes > max(_FEW, _NODES_PER_EDGE * n_edges):
        needed = f"beyond {_FEW:,} nodes it needs an edge for every {_NODES_PER_EDGE}"
        has = f"declares {n_nodes} nodes and has {n_edges} edges; {needed}"
        raise FileError(f"{where} {has}: number only nodes that have edges")


def check_rows(n_rows: int, path: Path) -> None:
    """Refuse a table of far more rows than its bytes can tell apart."""
    if n_rows > max(_FEW, _ROWS_PER_BYTE * path.stat().st_size):
        rows = f"declares {n_rows} rows, over {_ROWS_PER_BYTE} for every byte of the file"
        raise FileError(f"{path} {rows}; distinct edges take more space: write it again")


def check_expansion(expanded: int, path: Path) -> None:
    """Refuse compressed content that expands far beyond what edges do."""
    if expanded > _FEW_BYTES and expanded > _EXPANSION * path.stat().st_size:
        raise FileError(f"{path} expands to over {_EXPANSION} times its size; decompress it first")


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed if need be as far as `check_expansion` allows."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return io.BufferedReader(_Expanding(path)) if is_gzip else path.open("rb")


class _Expanding(io.RawIOBase):
    """The content of a gzip file, counted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = gzip.open(path, "rb")  # noqa: SIM115 - closed with this one
        self._expanded = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._file.readinto(buffer)
        self._expanded += count
        check_expansion(self._expanded, self._path)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
