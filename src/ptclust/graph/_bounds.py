"""Bounds on files: memory in proportion to their size, never to what they declare.

Nodes without an edge, runs of equal values and compressed zeros take next to no space in a file and
any amount of memory. Small files, and ordinary files of edges, are never refused.
"""

from __future__ import annotations

from ptclust.errors import FileError

_FEW = 10_000_000
_NODES_PER_EDGE = 100
_COLUMNS = 10_000
_BLANK_LINES_PER_EDGE = 2
_EXPANSION = 100

#: Blank lines that any text may have.
FEW_BLANK_LINES = 100_000
#: Bytes that any file may expand to: compressed text, which takes several times more once it is
#: read, and columns of values, which do not.
FEW_OF_TEXT = 8 << 20
FEW_OF_VALUES = 128 << 20


def check_declared(n_nodes: int, n_edges: int, where: object) -> None:
    """Refuse a file that declares far more nodes than it has edges."""
    if n_nodes > max(_FEW, _NODES_PER_EDGE * n_edges):
        needed = f"beyond {_FEW:,} nodes it needs an edge for every {_NODES_PER_EDGE}"
        has = f"declares {n_nodes} nodes and has {n_edges} edges; {needed}"
        raise FileError(f"{where} {has}: number only nodes that have edges")


def check_width(n_columns: int, where: object) -> None:
    """Refuse a table of very many columns."""
    if n_columns > _COLUMNS:
        raise FileError(f"{where} has over {_COLUMNS:,} columns; keep those of the edges")


def check_expansion(expanded: int, size: int, where: object, few: int = FEW_OF_VALUES) -> None:
    """Refuse content that expands far beyond what edges do; ``few`` bytes are always allowed."""
    if expanded > max(few, _EXPANSION * size):
        times = f"over {_EXPANSION} times its size, as tables of ids do not"
        raise FileError(f"{where} expands to {times}; write it uncompressed, or as a csv file")


def check_blank_lines(n_blank: int, n_edges: int, where: object) -> None:
    """Refuse a text of far more blank lines than edges."""
    if n_blank > max(FEW_BLANK_LINES, _BLANK_LINES_PER_EDGE * n_edges):
        raise FileError(f"{where} has over {FEW_BLANK_LINES:,} blank lines; remove them")
