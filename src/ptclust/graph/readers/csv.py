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
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, NoReturn

import numpy as np
import polars as pl

from ptclust._markup import quoted
from ptclust._types import Array, Bools
from ptclust.errors import FileError, GraphError, UsageError, WeightError
from ptclust.graph._bounds import FEW_BLANK_LINES, check_blank_lines, check_width
from ptclust.graph.graph import Edges
from ptclust.graph.readers.columns import ENDS, ROLES, Request, choose_columns, settled_kind
from ptclust.graph.readers.file import NOT_UTF8, File
from ptclust.graph.readers.ids import number_texts
from ptclust.graph.readers.tables import as_numbers
from ptclust.graph.topology import is_number, numbered, shown

#: Separators by the name of the format; the first that occurs in the header is the one.
SEPARATORS = {"csv": ",;\t", "tsv": "\t", "txt": "\t;, "}
_BY_NAME = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": " ", "pipe": "|"}

COMPRESSED = (b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda")  # gzip, and zlib at four levels
_CHUNK = 1 << 20
_WORDS_FOR_MISSING = {"", "na", "n/a", "null", "none", "-"}


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

        >>> Dialect.of("txt", "semicolon", header=False, decimal=",")
        Dialect(separators=';', has_header=False, decimal=',')
        """
        point = {"point": ".", "comma": ",", None: "."}.get(decimal, decimal)
        if point not in (".", ","):
            raise UsageError(f"decimal must be '.' or ',', not {decimal!r}")
        if separator is None:
            if format == "txt" and not header:
                raise UsageError(
                    "a txt file without a header does not say its separator: separator="
                )
            return cls(SEPARATORS[format] if header else SEPARATORS[format][0], header, point)
        one = _BY_NAME.get(separator, separator)
        if len(one) != 1 or not (one.isascii() and (one.isprintable() or one == "\t")):
            names = ", ".join(name for name in _BY_NAME if name.isalpha())
            raise UsageError(f"separator must be {names} or one character, not {separator!r}")
        if one.isalnum() or one in "\"'+-.":
            raise UsageError(f"{separator!r} occurs in ids and weights: it is not a separator")
        return cls(one, header, point)


class _Layout(NamedTuple):
    """What the first line that is not blank says of the file."""

    file: File
    separator: str
    n_blank: int  # blank lines before it
    first: list[str]
    dialect: Dialect


def read_csv(file: File, request: Request) -> Edges:
    """Return the edges of a text table; ids are read as text."""
    layout = _layout(file, request.dialect)
    names, chosen = _choose(layout, request)
    kind = None if request.ends_only else settled_kind(request.kind, names[chosen[2]], file)
    frame = _read(layout, chosen)
    if not len(frame):
        raise FileError(f"{file} has no edges")
    records = frame["record"].to_numpy()
    _, sources, targets, *given = frame.get_columns()
    _check_ids(layout, sources.is_null().to_numpy(), targets.is_null().to_numpy(), records)
    weights, columns = np.zeros(len(frame)), None
    if given:
        weights = _numbers(layout, given[0], records, chosen[2])
        columns = tuple(names[i] for i in chosen)
    found = number_texts(sources, targets)
    if found.names.dtype == object:
        nameless = found.names == ""
        _check_ids(layout, nameless[found.sources], nameless[found.targets], records)

    def say(edges: Iterable[int]) -> str:
        lines = [_record(layout, records[edge])[0] for edge in edges]
        return numbered("line", f" of {file}")(lines)

    return Edges(*found[:2], weights, None, found.names, say, kind, columns)


def read_header(file: File, dialect: Dialect) -> list[str]:
    """Return the fields of the first line."""
    return [name.strip() for name in _layout(file, dialect).first]


def _choose(layout: _Layout, request: Request) -> tuple[list[str], tuple[int, ...]]:
    """Return what the columns are called, and the positions of those that are to be read."""
    roles = ENDS if request.ends_only else ROLES
    width, header = len(layout.first), layout.dialect.has_header
    names = [name.strip() for name in layout.first]
    if not header:  # not the fields themselves: one of them is a weight
        names = [str(i) for i in range(1, width + 1)]
    hint = "; say header=False if the first line is an edge" if header else ""
    unsplit = separator_hint(layout.first) if header or width < len(roles) else ""
    hint += unsplit or ("; check its separator, separator=" if width < len(roles) else "")
    shown = _shown(names) if header else None
    how: dict[str, Any] = {"shown": shown, "hint": hint, "has_header": header}
    return names, choose_columns(names, request.columns, layout.file, roles, **how)


def separator_hint(names: Iterable[object]) -> str:
    """Return what to say if a column has a separator in its name: it is probably several."""
    found = re.search("[;,\t|]", " ".join(map(str, names)))
    if found is None:
        return ""
    one = "tab" if found[0] == "\t" else found[0]
    return f"; say separator={one!r} if that separates its columns"


def _layout(file: File, dialect: Dialect) -> _Layout:
    separator = find_separator(file, dialect)
    with closing(_records(file, separator)) as records:
        for n_blank, (line, fields) in enumerate(records):
            if any(field.strip() for field in fields):
                _check_utf8(file, line, fields)
                check_width(len(fields), file)
                return _Layout(file, separator, n_blank, fields, dialect)
            check_blank_lines(n_blank, 0, file)
    raise FileError(f"{file} has no edges")


def find_separator(file: File, dialect: Dialect) -> str:
    """Return the separator that was said, or the first that occurs in the header."""
    if len(dialect.separators) == 1:
        return dialect.separators
    with closing(lines_of(file, "")) as lines:
        header = next(filter(str.strip, islice(lines, FEW_BLANK_LINES)), "").strip()
    return next((one for one in dialect.separators if one in header), dialect.separators[0])


def _shown(names: list[str]) -> list[str]:
    """Return column names for a message: what seems a header may be an edge and its weight."""

    def may_hold_weight(name: str) -> bool:
        some_number = any(map(is_number, re.split(r"[\s;:|,]+", name)))
        return some_number or bool(re.search(r"\d{5}", name)) or shown(name) != quoted(name)

    return ["<number>" if may_hold_weight(name) else name for name in names]


def _read(layout: _Layout, chosen: tuple[int, ...]) -> pl.DataFrame:
    """Return the columns chosen of every edge as texts, after the number of its record."""
    before = layout.n_blank + layout.dialect.has_header
    frame = _scan(layout, chosen)
    strip = pl.all().str.strip_chars()
    frame = frame.with_columns(pl.when(strip != "").then(strip)).with_row_index("record", before)
    edges = frame.filter(pl.any_horizontal(pl.exclude("record").is_not_null()))
    check_blank_lines(len(frame) - len(edges), len(edges), layout.file)
    return edges


def _numbers(layout: _Layout, texts: pl.Series, records: Array, column: int) -> Array:
    """Return the weights, or refuse the first that is not a number, by its line."""
    weights = as_numbers(with_points(texts) if layout.dialect.decimal == "," else texts)
    if weights.null_count():
        line, fields = _record(layout, records[weights.is_null().to_numpy().argmax()])
        given = fields[column] if column < len(fields) else ""
        what = "missing" if given.strip().lower() in _WORDS_FOR_MISSING else "not a number"
        give = "give every edge a number, or name another column: weight="
        if "," in given and layout.dialect.decimal == ".":
            give = "it has a comma: say decimal=',' if that is the decimal point"
        bad = f"the weight in column {column + 1}, line {line} of {layout.file} is {what}"
        raise WeightError(f"{bad}; {give}")
    return weights.to_numpy()


def with_points(numbers: Any) -> Any:
    """Return texts of numbers with a decimal comma as such with a point; null where one is."""
    return numbers.str.replace(".", "?", literal=True).str.replace(",", ".", literal=True)


def _scan(layout: _Layout, chosen: tuple[int, ...]) -> pl.DataFrame:
    """Read two columns, or three with the weight; what is not UTF-8 is null."""
    # polars insists on this beginning where there is no header
    names = [f"column_{i}" for i in range(len(layout.first))]
    wanted = [names[i] for i in chosen]
    frame = None
    problems = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
    with warnings.catch_warnings(record=True) as doubts, suppress(*problems):
        warnings.simplefilter("always")
        frame = pl.read_csv(
            _source(layout),
            has_header=False,
            schema=dict.fromkeys(names, pl.String),
            columns=wanted,
            separator=layout.separator,
            ignore_errors=True,
            glob=False,
        )
    # Stray quotes make polars lose count of the lines: a warning to it, an error to us.
    if frame is None or doubts:
        _raise_malformed(layout)
    return frame.select(wanted).slice(int(layout.dialect.has_header))


def _source(layout: _Layout) -> Any:
    """Return what polars is to read: the file, or its text from its first non-blank line on.

    polars versions differ in skipping blank lines. polars also takes a text that begins like a zlib
    stream, say with the id "x^2", for one; it does not if the text begins with a byte order mark.
    """
    with layout.file.open() as file:
        magic = file.read(2)
    if layout.separator == " ":
        with closing(lines_of(layout.file, layout.separator)) as lines:
            text = "".join(islice(lines, layout.n_blank, None)).encode("utf-8", "surrogateescape")
    elif layout.n_blank or magic in COMPRESSED:
        with layout.file.open_plain() as file:
            for _ in range(layout.n_blank):
                file.readline()
            text = b"".join(iter(partial(file.read, _CHUNK), b""))
    else:
        return layout.file.content
    return text if text.startswith(BOM_UTF8) else BOM_UTF8 + text


def lines_of(file: File, separator: str) -> Generator[str, None, None]:
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
    with closing(lines_of(file, separator)) as text:
        reader = csv.reader(text, delimiter=separator)
        line = 1
        with suppress(csv.Error):
            for fields in reader:
                yield line, fields
                line = reader.line_num + 1


def _record(layout: _Layout, record: int) -> tuple[int, list[str]]:
    with closing(_records(layout.file, layout.separator)) as records:
        return next(islice(records, int(record), None), (int(record) + 1, []))


def _check_utf8(file: File, line: int, fields: list[str]) -> None:
    if any("\udc80" <= letter <= "\udcff" for field in fields for letter in field):
        raise FileError(f"line {line} of {file} is not UTF-8 text; {NOT_UTF8}")


def _check_ids(layout: _Layout, no_source: Bools, no_target: Bools, records: Array) -> None:
    for role, missing in (("source", no_source), ("target", no_target)):
        if missing.any():
            line, fields = _record(layout, records[missing.argmax()])
            _check_utf8(layout.file, line, fields)
            raise GraphError(f"line {line} of {layout.file} has no {role}; complete or remove it")


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
