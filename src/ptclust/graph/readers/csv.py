"""Edge tables as text: comma- or tab-separated, with or without a header, plain or gzip.

polars reads the file. Python's csv module reads the first line, to recognise a header, and finds
the line that an error is about; both agree on what a record is, blank lines included.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from ptclust._types import Array
from ptclust.errors import FileError, GraphError, WeightError
from ptclust.graph._bounds import open_plain
from ptclust.graph.graph import Edges
from ptclust.graph.readers.ids import Numbered, number_texts
from ptclust.graph.readers.tables import Columns, choose_columns, choose_ends, ends_are_named
from ptclust.graph.topology import is_number, numbered, shown

if TYPE_CHECKING:
    import polars as pl

_Records = Sequence[int] | Array
_COMPRESSED = (b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda")  # gzip, and zlib at four levels
_CHUNK = 1 << 20
_BLANKS = 100_000
_WORDS_FOR_MISSING = {"", "na", "n/a", "null", "none", "-"}


class _Layout(NamedTuple):
    """What the first line that is not blank says of the file."""

    path: Path
    separator: str
    n_blank: int  # blank lines before it
    first: list[str]
    has_header: bool

    @property
    def n_before(self) -> int:
        """Records before the first edge."""
        return self.n_blank + self.has_header


def read_csv(path: Path, separator: str, asked: Columns) -> Edges:
    """Return the edges of a text table; ids are read as text."""
    layout = _layout(path, separator, asked)
    names = _column_names(layout)
    chosen = choose_columns(names, asked, str(path), _shown(names))
    frame, records = _frame(layout, chosen)
    if not len(frame):
        raise FileError(f"{path} has no edges")
    sources, targets, weights = frame.get_columns()
    _check_ids(layout, sources.is_null(), targets.is_null(), records)
    if weights.null_count():
        record = records[_first(weights.is_null())]
        _raise_bad_weight(layout, record, chosen[2], weights.null_count())
    found = number_texts(sources, targets)
    if found.names.dtype == object:
        nameless = found.names == ""
        _check_ids(layout, nameless[found.sources], nameless[found.targets], records)
    return _edges(layout, found, weights.to_numpy(), records)


def read_csv_ends(path: Path, separator: str, asked: Columns) -> Edges:
    """Return the edges of a text table with weights of zero; there may be no column of weights."""
    layout = _layout(path, separator, asked)
    names = _column_names(layout)
    if layout.has_header and len(names) == len(asked) - 1 and not ends_are_named(names, asked):
        layout = layout._replace(has_header=False)
        names = _column_names(layout)
    frame = _scan(layout, choose_ends(names, asked, str(path), _shown(names)), None)
    rows = np.flatnonzero(~(frame[:, 0].is_null() & frame[:, 1].is_null()).to_numpy())
    records = rows + layout.n_before
    sources, targets = frame[rows].get_columns()
    _check_ids(layout, sources.is_null(), targets.is_null(), records)
    return _edges(layout, number_texts(sources, targets), np.zeros(len(rows)), records)


def _edges(layout: _Layout, found: Numbered, weights: Any, records: _Records) -> Edges:
    def say(edges: Iterable[int]) -> str:
        lines = _lines(layout, [int(records[edge]) for edge in edges])
        return numbered("line", f" of {layout.path}")(lines)

    return Edges(found.sources, found.targets, weights, None, found.names, say)


def _layout(path: Path, separator: str, asked: Columns) -> _Layout:
    """Read the first line; it is a header if columns are named or if its weight is no number."""
    named = any(name is not None for name in asked)
    for n_blank, (line, fields) in enumerate(_records(path, separator)):
        if any(field.strip() for field in fields):
            _check_utf8(path, line, fields)
            weight = fields[2] if len(fields) > 2 else "x"
            # A missing weight is no header, to be reported as such: no column is called that.
            has_header = named or not (_is_missing(weight) or is_number(weight))
            return _Layout(path, separator, n_blank, fields, has_header)
        if n_blank == _BLANKS:
            raise FileError(f"{path} begins with over {_BLANKS:,} blank lines; remove them")
    raise FileError(f"{path} has no edges")


def _is_missing(weight: str) -> bool:
    return weight.strip().lower() in _WORDS_FOR_MISSING


def _column_names(layout: _Layout) -> list[str]:
    if layout.has_header:
        return [name.strip() for name in layout.first]
    # not the fields themselves: the third is a weight
    return [f"column #{i}" for i in range(1, len(layout.first) + 1)]


def _shown(names: list[str]) -> list[str]:
    """Return column names for a message: what seems a header may be an edge and its weight."""

    def may_hold_weight(name: str) -> bool:
        some_number = any(map(is_number, re.split(r"[\s;:|,]+", name)))
        return some_number or bool(re.search(r"\d{5}", name)) or shown(name) != repr(name)

    return ["<number>" if may_hold_weight(name) else name for name in names]


def _frame(layout: _Layout, chosen: tuple[int, int, int]) -> tuple[pl.DataFrame, _Records]:
    """Return source, target and weight of every edge, and the number of its record in the file."""
    import polars as pl

    frame = _scan(layout, chosen, pl.Float64)
    if not frame[:, 2].null_count():
        return frame, range(layout.n_before, layout.n_before + len(frame))
    # The exception: blank lines, blanks after a weight, or weights that are wrong.
    stripped = _scan(layout, chosen, pl.String).select(pl.all().str.strip_chars().replace("", None))
    records = np.flatnonzero(~stripped.select(pl.all_horizontal(pl.all().is_null())).to_series())
    frame = frame.with_columns(stripped[:, 2].cast(pl.Float64, strict=False))
    return frame[records], records + layout.n_before


def _scan(layout: _Layout, chosen: tuple[int, ...], weight_type: Any) -> pl.DataFrame:
    """Read two columns, or three with the weight; of a weight, what is no number becomes null."""
    import polars as pl

    # polars insists on this beginning where there is no header
    names = [f"column_{i}" for i in range(len(layout.first))]
    wanted = [names[i] for i in chosen]
    schema = dict.fromkeys(names, pl.String) | dict.fromkeys(wanted[2:], weight_type)
    frame = None
    problems = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
    with warnings.catch_warnings(record=True) as doubts, suppress(*problems):
        warnings.simplefilter("always")
        shape: dict[str, Any] = {"has_header": False, "schema": schema, "columns": wanted}
        how: dict[str, Any] = {"separator": layout.separator, "ignore_errors": True, "glob": False}
        frame = pl.read_csv(_source(layout), **shape, **how)
    # Stray quotes make polars lose count of the lines: a warning to it, an error to us.
    if frame is None or doubts:
        _raise_malformed(layout)
    return frame.select(wanted).slice(int(layout.has_header))


def _source(layout: _Layout) -> Path | bytes:
    """Return what polars is to read: the file, or its text from its first non-blank line on.

    polars versions differ in skipping blank lines. polars also takes a text that begins like a zlib
    stream, say with the id "x^2", for one; it does not if the text begins with a byte order mark.
    """
    with layout.path.open("rb") as file:
        magic = file.read(2)
    if not layout.n_blank and magic not in _COMPRESSED:
        return layout.path
    with open_plain(layout.path) as file:
        for _ in range(layout.n_blank):
            file.readline()
        text = b"".join(iter(partial(file.read, _CHUNK), b""))
    return text if text.startswith(BOM_UTF8) else BOM_UTF8 + text


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of every record and the line it begins on: slowly, but to the letter."""
    how: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
    with io.TextIOWrapper(open_plain(path), **how) as text:
        reader = csv.reader(text, delimiter=separator)
        line = 1
        with suppress(csv.Error):
            for fields in reader:
                yield line, fields
                line = reader.line_num + 1


def _record(layout: _Layout, record: int) -> tuple[int, list[str]]:
    return next(islice(_records(layout.path, layout.separator), record, None), (record + 1, []))


def _lines(layout: _Layout, records: Sequence[int]) -> list[int]:
    """Return the lines on which these records begin, in ascending order."""
    read = islice(_records(layout.path, layout.separator), max(records) + 1)
    return [line for number, (line, _) in enumerate(read) if number in records]


def _check_utf8(path: Path, line: int, fields: list[str]) -> None:
    if any("\udc80" <= letter <= "\udcff" for field in fields for letter in field):
        raise FileError(f"line {line} of {path} is not UTF-8 text; save the file as UTF-8")


def _check_ids(layout: _Layout, no_source: Any, no_target: Any, records: _Records) -> None:
    for role, missing in (("source", no_source), ("target", no_target)):
        if missing.any():
            line, fields = _record(layout, records[_first(missing)])
            _check_utf8(layout.path, line, fields)
            raise GraphError(f"line {line} of {layout.path} has no {role}; complete or remove it")


def _raise_bad_weight(layout: _Layout, record: int, column: int, n_bad: int) -> NoReturn:
    line, fields = _record(layout, record)
    given = fields[column] if column < len(fields) else ""
    what = "missing" if _is_missing(given) else "not a number"
    bad = f"the weight in column {column + 1}, line {line} of {layout.path} is {what}"
    give = "give every edge a number, or name another column: weight="
    raise WeightError(f"{bad} ({n_bad} such weights in all); {give}")


def _raise_malformed(layout: _Layout) -> NoReturn:
    width = len(layout.first)
    for line, fields in _records(layout.path, layout.separator):
        _check_utf8(layout.path, line, fields)
        if len(fields) > width:
            more = f"has {len(fields)} fields, more than the {width} of the first"
            quote = "put fields that contain the separator in double quotes"
            raise FileError(f"line {line} of {layout.path} {more}; {quote}")
    raise FileError(f"{layout.path} cannot be read as a table; check its separator and quotes")


def _first(mask: Any) -> int:
    return int(np.argmax(np.asarray(mask)))
