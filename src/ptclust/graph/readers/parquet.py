"""Parquet files: polars reads them, once their own words have shown what that will take.

A page of a few bytes may decompress to gigabytes, and polars allocates them. So the footer and the
headers of the pages are read here first: they tell the size of every page, decompressed, and the
number of its values.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, TypeVar

import polars as pl

from ptclust.errors import FileError, UsageError
from ptclust.graph._bounds import check_expansion, check_width
from ptclust.graph.graph import Edges
from ptclust.graph.metadata import COLUMNS, KEY, Metadata
from ptclust.graph.readers.columns import (
    ENDS,
    ROLES,
    Columns,
    Request,
    choose_columns,
    settled_kind,
)
from ptclust.graph.readers.file import File
from ptclust.graph.readers.tables import check_types, edges_of_frame, text_size
from ptclust.graph.topology import Kind, numbered

_T = TypeVar("_T")
_Content = bytes | mmap.mmap
_DEEPEST = 50


def read_parquet(file: File, request: Request) -> Edges:
    """Return the edges of a Parquet file, and how its graph was made if ptclust wrote it."""
    footer = _parsed(file, _read_footer)
    check_width(len(footer[_SCHEMA]), file)
    asked, kind = request.columns, request.kind
    if (metadata := metadata_of(file, footer)) is not None:
        asked, kind = _check_asked(asked, kind, metadata, file), metadata.kind
    schema = _parsed(file, lambda _: pl.read_parquet_schema(file.content))
    there, roles = list(schema), ENDS if request.ends_only else ROLES
    chosen = [there[i] for i in choose_columns(there, asked, file, roles)]
    if not request.ends_only:
        kind = settled_kind(kind, chosen[2], file)
    check_types({name: schema[name] for name in chosen}, str(file))
    check_decoded(file, chosen, footer)
    frame = _parsed(file, lambda _: pl.read_parquet(file.content, columns=chosen, glob=False))
    frame = frame.select(chosen)
    check_expansion(text_size(frame.lazy(), frame.schema), file.size, file)
    say = numbered("row", f" (counted from 0) of {file}")
    edges = edges_of_frame(frame, str(file), say, loose=False)._replace(kind=kind)
    if metadata is None:
        return edges
    names = [*edges.names, *metadata.alone] if metadata.alone else edges.names  # type: ignore[misc]
    return edges._replace(names=names, metadata=metadata)


def check_decoded(
    file: File, columns: Collection[str], footer: dict[int, Any] | None = None
) -> None:
    """Refuse a file whose columns of these names would take far more memory than it has bytes."""
    found = footer or _parsed(file, _read_footer)
    decoded = _parsed(file, lambda content: _decoded_size(content, found, columns))
    check_expansion(decoded, file.size, file)


def metadata_of(file: File, footer: dict[int, Any] | None = None) -> Metadata | None:
    """Return what a Parquet file says of its graph, if ptclust wrote it; no row is read."""
    found = footer or _parsed(file, _read_footer)
    written = found[_ENTRIES].get(KEY.encode())
    return None if written is None else Metadata.decode(written, file)


def _check_asked(asked: Columns, kind: Kind | None, said: Metadata, file: File) -> Columns:
    """Return the columns of a graph that ptclust wrote; refuse to read anything else into it."""
    written = Columns(*COLUMNS)
    for role, name in asked._asdict().items():
        if name not in (None, getattr(written, role)):
            raise UsageError(f"{file} is a graph that ptclust wrote; leave {role}= out")
    if kind not in (None, said.kind):
        known = f"says itself that its weights are of kind {said.kind}"
        raise UsageError(f"{file} {known}; leave kind= out")
    return written


def _parsed(file: File, read: Callable[[_Content], _T]) -> _T:
    """Return what ``read`` makes of the file; whatever it or polars raises is damage."""
    with suppress(pl.exceptions.PanicException):
        try:
            if isinstance(file.content, bytes):
                return read(file.content)
            with (
                file.open() as stream,
                mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view,
            ):
                return read(view)
        except MemoryError:
            raise
        except Exception:  # noqa: S110 - raised below, without a context that may quote the file
            pass
    raise FileError(f"{file} is damaged, cut short, or not a Parquet file; write it again")


# Numbers of fields in parquet.thrift (apache/parquet-format), and the values that matter here.
_SCHEMA, _N_ROWS, _GROUPS, _ENTRIES = 2, 3, 4, 5  # of the footer
_KEY, _VALUE = 1, 2  # of an entry of its metadata
_N_CHILDREN = 5  # of an element of the schema
_CHUNKS, _CHUNK_META = 1, 3  # of a row group, of a column chunk
_TYPE, _PATH, _N_VALUES, _COMPRESSED, _DATA, _DICTIONARY = 1, 3, 5, 7, 9, 11  # of its metadata
_BYTE_ARRAYS = (6, 7)
_PAGE_SIZE, _PAGE_STORED = 2, 3  # of a page, decompressed and as it is
_PAGE_HEADERS = {5: 2, 7: 2, 8: 4}  # of its kinds: where their own header says the encoding
_DELTA_BYTE_ARRAY = 7


def _read_footer(content: _Content) -> dict[int, Any]:
    """Return the footer; refuse columns in columns so deep that polars would overflow its stack."""
    if content[:4] != b"PAR1" or content[-4:] != b"PAR1":
        raise ValueError
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    if start < 4:
        raise ValueError
    footer: dict[int, Any] = _Thrift(content, start).read_struct()
    entries = {entry[_KEY]: entry.get(_VALUE, b"") for entry in footer.get(_ENTRIES, [])}
    if not all(isinstance(value, bytes) for value in entries.values()):
        raise ValueError
    footer[_ENTRIES] = entries
    open_groups: list[int] = []  # how many children each of them has still to come
    for element in footer[_SCHEMA]:
        while open_groups and not open_groups[-1]:
            open_groups.pop()
        if open_groups:
            open_groups[-1] -= 1
        open_groups.append(element.get(_N_CHILDREN, 0))
        if len(open_groups) > _DEEPEST:
            raise ValueError
    return footer


def _decoded_size(content: _Content, footer: dict[int, Any], columns: Collection[str]) -> int:
    """Return how many bytes these columns may take at most once they are read."""
    paths = [[name.encode()] for name in columns]
    groups = footer[_GROUPS]
    chunks = [chunk[_CHUNK_META] for group in groups for chunk in group[_CHUNKS]]
    pages = sum(_decoded_pages(content, chunk) for chunk in chunks if chunk[_PATH] in paths)
    n_rows = max(footer[_N_ROWS], sum(_natural(group[_N_ROWS]) for group in groups))
    return int(max(pages, 8 * len(paths) * n_rows))


def _decoded_pages(content: _Content, chunk: dict[int, Any]) -> int:
    # A string is a place and a length; and its text takes up to four bytes a letter in Python.
    width, copies = (16, 4) if chunk[_TYPE] in _BYTE_ARRAYS else (8, 1)
    at = _natural(chunk.get(_DICTIONARY, chunk[_DATA]))
    end = at + _natural(chunk[_COMPRESSED])
    if end > len(content):  # polars would panic
        raise ValueError
    size = n_values = 0
    while at < end and n_values < chunk[_N_VALUES]:
        page = _Thrift(content, at)
        header = page.read_struct()
        at = page.at + _natural(header[_PAGE_STORED])
        size += copies * _natural(header[_PAGE_SIZE])
        for field, place in _PAGE_HEADERS.items():
            own = header.get(field, {1: 0, place: 0})
            size += width * _natural(own[1])
            if own[place] == _DELTA_BYTE_ARRAY:  # a value repeats the beginning of the one before
                size += copies * own[1] * header[_PAGE_SIZE]
            n_values += own[1] if field != 7 else 0
    return size


def _natural(number: int) -> int:
    if number < 0:
        raise ValueError
    return number


class _Thrift:
    """Reads what is written in Thrift's compact protocol: structs are dicts by field number."""

    def __init__(self, content: _Content, at: int) -> None:
        self.content, self.at = content, at

    def read_struct(self, depth: int = 0) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._take_byte():
            number = number + (head >> 4) if head >> 4 else self._read_integer()
            kind = head & 15
            fields[number] = kind == 1 if kind < 3 else self._read(kind, depth)
        return fields

    def _read(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError
        if kind <= 3:  # a truth value in a list, or a byte
            return self._take_byte()
        if kind <= 6:
            return self._read_integer()
        if kind <= 8:  # a float, or a string
            return self._take(8 if kind == 7 else self._read_varint())
        if kind <= 10:  # a list, or a set
            head = self._take_byte()
            size = head >> 4 if head >> 4 < 15 else self._read_varint()
            return [self._read(head & 15, depth + 1) for _ in range(size)]
        if kind == 11:  # a map
            size = self._read_varint()
            kinds = self._take_byte() if size else 0
            return [self._read(k, depth + 1) for _ in range(size) for k in (kinds >> 4, kinds & 15)]
        if kind == 12:
            return self.read_struct(depth + 1)
        raise ValueError

    def _read_integer(self) -> int:
        number = self._read_varint()
        return number >> 1 ^ -(number & 1)

    def _read_varint(self) -> int:
        number = shift = 0
        while shift < 70:
            byte = self._take_byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
        raise ValueError

    def _take_byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.content):
            raise ValueError
        return self.content[self.at - size : self.at]
