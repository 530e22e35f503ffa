"""Edge tables as text: with any separator, with a header or without, plain or gzip.

polars reads the file. Python's csv module reads the first line, and finds the line that an error is
about; both agree on what a record is, blank lines included.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from codecs import BOM_UTF8
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ptclust._markup import quoted
from ptclust._types import Array, Floats
from ptclust.errors import FileError, GraphError, UsageError, WeightError
from ptclust.graph._bounds import FEW_BLANK_LINES, check_blank_lines, check_width
from ptclust.graph.graph import Edges
from ptclust.graph.readers.columns import ENDS, ROLES, Columns, choose_columns, settled_kind
from ptclust.graph.readers.file import NOT_UTF8, File
from ptclust.graph.readers.ids import number_texts
from ptclust.graph.topology import Kind, is_number, numbered, shown

if TYPE_CHECKING:
    import polars as pl

#: Separators by the name of the format; the first that occurs in the header is the one.
SEPARATORS = {"csv": ",;\t", "tsv": "\t", "txt": "\t;, "}
_BY_NAME = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": " ", "pipe": "|"}

_Records = Sequence[int] | Array
COMPRESSED = (b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda")  # gzip, and zlib at four levels
_CHUNK = 1 << 20
_WORDS_FOR_MISSING = {"", "na", "n/a", "null", "none", "-"}
_EXACT = 2**53  # up to here a float holds every whole number


class Dialect(NamedTuple):
    """How a text table is written."""

    separators: str  # of which the first that occurs in the header is the one
    has_header: bool = True
    decimal: str = "."  # or a comma

    @classmethod
    def of(
        cls,
        format: str,  # noqa: A002
        separator: str | None,
        header: bool = True,
        decimal: str | None = None,
    ) -> Dialect:
        r"""Return the dialect of a format, with the separator and the header requested.

        >>> Dialect.of("tsv", None)
        Dialect(separators='\t', has_header=True, decimal='.')
        >>> Dialect.of("txt", "semicolon", header=False, decimal=",")
        Dialect(separators=';', has_header=False, decimal=',')
        """
        point = {"point": ".", "comma": ",", None: "."}.get(decimal, decimal)
        if point not in (".", ","):
            raise UsageError(f"decimal must be '.' or ',', not {decimal!r}")
        if separator is not None:
            one = _BY_NAME.get(separator, separator)
            if len(one) != 1 or not (one.isascii() and (one.isprintable() or one == "\t")):
                names = ", ".join(name for name in _BY_NAME if name.isalpha())
                raise UsageError(f"separator must be {names} or one character, not {separator!r}")
            if one.isalnum() or one in "\"'+-.":
                raise UsageError(f"{separator!r} occurs in ids and weights: it is not a separator")
            return cls(one, header, point)
        if header:
            return cls(SEPARATORS[format], True, point)
        if format == "txt":
            raise UsageError("a txt file without a header does not say its separator: separator=")
        return cls(SEPARATORS[format][0], header, point)


class _Layout(NamedTuple):
    """What the first line that is not blank says of the file."""

    file: File
    separator: str
    n_blank: int  # blank lines before it
    first: list[str]
    has_header: bool
    decimal: str

    @property
    def n_before(self) -> int:
        """Records before the first edge."""
        return self.n_blank + self.has_header


def read_csv(file: File, dialect: Dialect, asked: Columns, kind: Kind | None) -> Edges:
    """Return the edges of a text table; ids are read as text."""
    layout = _layout(file, dialect)
    names, chosen = _choose(layout, asked, ROLES)
    settled = settled_kind(kind, names[chosen[2]], file)
    frame, records = _read(layout, chosen)
    weights = frame[:, 2]
    if weights.null_count():
        _check_ids(layout, frame[:, 0].is_null(), frame[:, 1].is_null(), records)
        _raise_bad_weight(layout, records[_first(weights.is_null())], chosen[2])
    values = weights.to_numpy()
    if values.dtype.kind == "f":
        values = _exact(layout, chosen, values)
    return _edges(layout, frame, values, records)._replace(
        kind=settled, columns=tuple(names[i] for i in chosen)
    )


def read_csv_ends(file: File, dialect: Dialect, asked: Columns) -> Edges:
    """Return the edges of a text table with weights of zero; there may be no column of weights."""
    layout = _layout(file, dialect)
    frame, records = _read(layout, _choose(layout, asked, ENDS)[1])
    return _edges(layout, frame, np.zeros(len(frame)), records)


def read_header(file: File, dialect: Dialect) -> list[str]:
    """Return the fields of the first line."""
    return [name.strip() for name in _layout(file, dialect).first]


def _choose(
    layout: _Layout, asked: Columns, roles: Sequence[str]
) -> tuple[list[str], tuple[int, ...]]:
    """Return what the columns are called, and the positions of those in these roles."""
    width, header = len(layout.first), layout.has_header
    names = [name.strip() for name in layout.first]
    if not header:  # not the fields themselves: one of them is a weight
        names = [str(i) for i in range(1, width + 1)]
    hint = "; say header=False if the first line is an edge" if header else ""
    unsplit = separator_hint(layout.first) if header or width < len(roles) else ""
    hint += unsplit or ("; check its separator, separator=" if width < len(roles) else "")
    how: dict[str, Any] = {"shown": _shown(names) if header else None, "hint": hint}
    return names, choose_columns(names, asked, layout.file, roles, has_header=header, **how)


def separator_hint(names: Iterable[object]) -> str:
    """Return what to say if a column has a separator in its name: it is probably several.

    >>> separator_hint(["person;place"]), separator_hint(["person", "place"])
    ("; say separator=';' if that separates its columns", '')
    """
    found = re.search("[;,\t|]", " ".join(map(str, names)))
    if found is None:
        return ""
    one = "tab" if found[0] == "\t" else found[0]
    return f"; say separator={one!r} if that separates its columns"


def _edges(layout: _Layout, frame: pl.DataFrame, weights: ArrayLike, records: _Records) -> Edges:
    if not len(frame):
        raise FileError(f"{layout.file} has no edges")
    sources, targets = frame.get_columns()[:2]
    _check_ids(layout, sources.is_null(), targets.is_null(), records)
    found = number_texts(sources, targets)
    if found.names.dtype == object:
        nameless = found.names == ""
        _check_ids(layout, nameless[found.sources], nameless[found.targets], records)

    def say(edges: Iterable[int]) -> str:
        lines = _lines(layout, [int(records[edge]) for edge in edges])
        return numbered("line", f" of {layout.file}")(lines)

    return Edges(found.sources, found.targets, weights, None, found.names, say)


def _layout(file: File, dialect: Dialect) -> _Layout:
    """Read the first line that is not blank."""
    separator = find_separator(file, dialect)
    with closing(_records(file, separator)) as records:
        for n_blank, (line, fields) in enumerate(records):
            if any(field.strip() for field in fields):
                _check_utf8(file, line, fields)
                check_width(len(fields), file)
                return _Layout(
                    file, separator, n_blank, fields, dialect.has_header, dialect.decimal
                )
            check_blank_lines(n_blank, 0, file)
    raise FileError(f"{file} has no edges")


def find_separator(file: File, dialect: Dialect) -> str:
    """Return the separator that was said, or the first that occurs in the header."""
    if len(dialect.separators) == 1:
        return dialect.separators
    with closing(_text(file, "")) as lines:
        header = next(filter(str.strip, islice(lines, FEW_BLANK_LINES)), "").strip()
    return next((one for one in dialect.separators if one in header), dialect.separators[0])


def _is_missing(weight: str) -> bool:
    return weight.strip().lower() in _WORDS_FOR_MISSING


def _shown(names: list[str]) -> list[str]:
    """Return column names for a message: what seems a header may be an edge and its weight."""

    def may_hold_weight(name: str) -> bool:
        some_number = any(map(is_number, re.split(r"[\s;:|,]+", name)))
        return some_number or bool(re.search(r"\d{5}", name)) or shown(name) != quoted(name)

    return ["<number>" if may_hold_weight(name) else name for name in names]


def _read(layout: _Layout, chosen: tuple[int, ...]) -> tuple[pl.DataFrame, _Records]:
    """Return the columns chosen of every edge, and the number of its record in the file."""
    import polars as pl

    frame = _scan(layout, chosen, pl.Float64)
    n_rows = len(frame)
    points = layout.decimal == "." or len(chosen) < len(ROLES)
    if points and not any(column.null_count() for column in frame):
        return frame, range(layout.n_before, layout.n_before + n_rows)
    # The exception: blank lines, blanks after a weight, or something that is missing or wrong.
    some = pl.any_horizontal(pl.all().is_not_null())
    n_edges = frame.select(some.sum()).item()
    check_blank_lines(n_rows - n_edges, n_edges, layout.file)
    del frame
    frame = _scan(layout, chosen, pl.String).with_row_index("record", layout.n_before)
    strip = pl.exclude("record").str.strip_chars().replace("", None)
    some = pl.any_horizontal(pl.exclude("record").is_not_null())
    frame = frame.filter(some).with_columns(strip).filter(some)
    records = frame.drop_in_place("record").to_numpy()
    for weights in frame.get_columns()[2:]:
        if layout.decimal == ",":
            weights = with_points(weights)
        whole = weights.cast(pl.Int64, strict=False)
        lossy = whole.null_count()
        frame = frame.with_columns(weights.cast(pl.Float64, strict=False) if lossy else whole)
    return frame, records


def with_points(numbers: Any) -> Any:
    """Return texts of numbers with a decimal comma as such with a point; null where one is."""
    return numbers.str.replace(".", "?", literal=True).str.replace(",", ".", literal=True)


def _exact(layout: _Layout, chosen: tuple[int, ...], weights: Floats) -> Array:
    """Return weights that are all whole numbers as integers, which can be summed exactly."""
    import polars as pl

    if not np.array_equal(weights, np.floor(weights)):
        return weights
    if np.abs(weights).max(initial=0) < _EXACT:
        return weights.astype(np.int64)
    again = _scan(layout, chosen, pl.Int64)[:, 2]  # what is no 64-bit integer becomes null
    return weights if again.null_count() else again.to_numpy()


def _scan(layout: _Layout, chosen: tuple[int, ...], weight_type: Any) -> pl.DataFrame:
    """Read two columns, or three with the weight; a weight that is not a number is null."""
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


def _source(layout: _Layout) -> Any:
    """Return what polars is to read: the file, or its text from its first non-blank line on.

    polars versions differ in skipping blank lines. polars also takes a text that begins like a zlib
    stream, say with the id "x^2", for one; it does not if the text begins with a byte order mark.
    """
    with layout.file.open() as file:
        magic = file.read(2)
    if layout.separator == " ":
        with closing(_text(layout.file, layout.separator)) as lines:
            text = "".join(islice(lines, layout.n_blank, None)).encode("utf-8", "surrogateescape")
    elif layout.n_blank or magic in COMPRESSED:
        with layout.file.open_plain() as file:
            for _ in range(layout.n_blank):
                file.readline()
            text = b"".join(iter(partial(file.read, _CHUNK), b""))
    else:
        return layout.file.content
    return text if text.startswith(BOM_UTF8) else BOM_UTF8 + text


def _text(file: File, separator: str) -> Generator[str, None, None]:
    """Yield the lines of a file; where blanks separate, any number of them counts as one."""
    blanks = separator == " "
    how: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape"}
    with io.TextIOWrapper(file.open_plain(), newline=None if blanks else "", **how) as text:
        if not blanks:
            yield from text
        while block := "".join(text.readlines(_CHUNK)).lstrip(" \t"):
            single = re.sub(r"[ \t]{2,}|\t", " ", block)
            single = single.replace(" \n", "\n").replace("\n ", "\n").removesuffix("\n")
            yield from (f"{line}\n" for line in single.split("\n"))


def _records(file: File, separator: str) -> Generator[tuple[int, list[str]], None, None]:
    """Yield the fields of every record and the line it begins on: slowly, but to the letter."""
    with closing(_text(file, separator)) as text:
        reader = csv.reader(text, delimiter=separator)
        line = 1
        with suppress(csv.Error):
            for fields in reader:
                yield line, fields
                line = reader.line_num + 1


def _record(layout: _Layout, record: int) -> tuple[int, list[str]]:
    with closing(_records(layout.file, layout.separator)) as records:
        return next(islice(records, record, None), (record + 1, []))


def _lines(layout: _Layout, records: Sequence[int]) -> list[int]:
    """Return the lines on which these records begin, in ascending order."""
    with closing(_records(layout.file, layout.separator)) as read:
        first = islice(read, max(records) + 1)
        return [line for number, (line, _) in enumerate(first) if number in records]


def _check_utf8(file: File, line: int, fields: list[str]) -> None:
    if any("\udc80" <= letter <= "\udcff" for field in fields for letter in field):
        raise FileError(f"line {line} of {file} is not UTF-8 text; {NOT_UTF8}")


def _check_ids(layout: _Layout, no_source: Any, no_target: Any, records: _Records) -> None:
    for role, missing in (("source", no_source), ("target", no_target)):
        if missing.any():
            line, fields = _record(layout, records[_first(missing)])
            _check_utf8(layout.file, line, fields)
            raise GraphError(f"line {line} of {layout.file} has no {role}; complete or remove it")


def _raise_bad_weight(layout: _Layout, record: int, column: int) -> NoReturn:
    line, fields = _record(layout, record)
    given = fields[column] if column < len(fields) else ""
    what = "missing" if _is_missing(given) else "not a number"
    give = "give every edge a number, or name another column: weight="
    if "," in given and layout.decimal == ".":
        give = "it has a comma: say decimal=',' if that is the decimal point"
    bad = f"the weight in column {column + 1}, line {line} of {layout.file} is {what}"
    raise WeightError(f"{bad}; {give}")


def _raise_malformed(layout: _Layout) -> NoReturn:
    width = len(layout.first)
    with closing(_records(layout.file, layout.separator)) as records:
        for line, fields in records:
            _check_utf8(layout.file, line, fields)
            if len(fields) > width:
                more = f"has {len(fields)} fields, more than the {width} of the first"
                quote = "put fields that contain the separator in double quotes"
                raise FileError(f"line {line} of {layout.file} {more}; {quote}")
    raise FileError(f"{layout.file} cannot be read as a table; check its separator and quotes")


def _first(mask: Any) -> int:
    return int(np.argmax(np.asarray(mask)))
