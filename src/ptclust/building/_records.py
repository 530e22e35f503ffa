"""Private input: tables of records, read lazily; decisions follow from the schema, never values.

A record that cannot be counted, because an id is missing, not a number or not in the public list,
is dropped silently: an error, or a number of dropped records, would reveal it. Only a file whose
text is not encoded as declared is refused, as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from ptclust._markup import quoted, quoted_list
from ptclust._options import TextOptions
from ptclust._tables import library_of
from ptclust._types import Array
from ptclust.building._contributions import Things
from ptclust.building.databases import Query, is_address
from ptclust.engines import spark
from ptclust.errors import FileError, InputError, UsageError
from ptclust.graph._bounds import check_expansion
from ptclust.graph.readers.columns import COLUMNS_OF_RECORDS, columns_of_records
from ptclust.graph.readers.csv import COMPRESSED, Dialect, find_separator, separator_hint
from ptclust.graph.readers.file import File
from ptclust.graph.readers.ids import normal_texts
from ptclust.graph.readers.parquet import check_decoded
from ptclust.graph.readers.tables import text_size, text_types

if TYPE_CHECKING:
    from ptclust.building._pairs import Pairs

_T = TypeVar("_T")
_TEXTS = text_types()
_IDS = ("origin", "destination", "person", "item")  # roles of columns that name somebody or a node
_PROBLEMS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
_TABLES = (".csv", ".tsv")
_PARQUET, _ARROW = (".parquet", ".pq"), (".arrow", ".ipc", ".feather")
_LARGEST_EXACT = 2**53  # up to here a float is one integer only


def person_column(table: Any, given: str | None, *, needed: bool) -> str | None:
    """Return the column of persons that was given, or that is called so; None if there is none."""
    if given is not None or not (needed or columns_of_records(Records(table, {}).there, "person")):
        return given
    return str(Records(table, {"person": None}).columns["person"])


@dataclass(frozen=True)
class TextFile(TextOptions, os.PathLike[str]):
    """The path of a table, and how its text is written."""

    path: str | os.PathLike[str]

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def check_unused(self, path: object) -> None:
        """Refuse options that a file without text does not have."""
        for option in fields(TextOptions):
            if getattr(self, option.name) is not None:
                raise UsageError(f"{option.name}= is for text tables, not for {path}; leave it out")


class Records:
    """The columns of a table that matter, by their roles; nothing is read before `collect`."""

    where: str  # what messages call the table
    there: list[Any]  # names of all columns
    columns: dict[str, Any]  # those that matter, by their roles
    types: dict[str, pl.DataType]
    typed: bool  # CSV is not: all is text
    decimal: str = "."  # of CSV
    lazy: pl.LazyFrame  # without rows if those are Spark's
    distributed: spark.SparkTable | None = None  # the rows, if Spark has them

    def __init__(self, table: Any, columns: Mapping[str, str | None]) -> None:
        self.where, self.typed = "the table of records", True
        self.columns = dict(columns)  # all named below
        if spark.is_frame(table):
            self._name_columns(table.columns)
            self.distributed = spark.SparkTable(table, self.columns)
            self.lazy = self.distributed.empty.lazy()
            self.types = dict(self.lazy.collect_schema())
            return
        frame = self._opened(table)
        schema = _quietly(frame.collect_schema)
        if schema is None:
            raise FileError(f"{self.where} cannot be read: it is damaged, empty, or something else")
        self._name_columns(schema)
        self.types = {role: schema[name] for role, name in self.columns.items()}
        self.lazy = frame.select(pl.col(name).alias(role) for role, name in self.columns.items())
        if isinstance(table, str | os.PathLike):
            self._check_size(Path(table))

    def _check_size(self, path: Path) -> None:
        """Refuse a file that is small and would take much memory, or much time, to be read."""
        file, suffix = File(self.where, path, self.where), path.suffix.lower()
        if suffix in _PARQUET:
            check_decoded(file, self.columns.values())
        if suffix not in _TABLES:  # of those all text is in the file
            size = _quietly(partial(text_size, self.lazy, self.types))
            if size is None:
                raise FileError(f"{file} cannot be read to its end; check it")
            check_expansion(size, file.size, file)

    def _opened(self, table: Any) -> pl.LazyFrame:
        if isinstance(table, str) and is_address(table):
            table = Query(table, "")  # which says that the query is missing
        if isinstance(table, str | os.PathLike):
            return self._scanned(table if isinstance(table, TextFile) else TextFile(table))
        if isinstance(table, Query):
            self.where, self.typed = f"the query to {table}", table.typed
            return table.scan()
        if isinstance(table, pl.DataFrame | pl.LazyFrame):
            return table.lazy()
        if library_of(table) != "pandas":
            kinds = "polars, pandas or Spark, the path of a file, or a Query"
            raise UsageError(f"records must be a data frame of {kinds}, not {type(table).__name__}")
        self._name_columns(table.columns)
        named = self.columns.items()
        return pl.LazyFrame(
            [_of_pandas(table[name], name, only_ids=role in _IDS) for role, name in named]
        )

    def _scanned(self, text: TextFile) -> pl.LazyFrame:
        path = Path(text)
        self.where, suffix = str(path), path.suffix.lower()
        known = (*_PARQUET, *_TABLES, *_ARROW)
        if suffix not in known:
            raise FileError(f"{path}: records are read from files called {', '.join(known)}")
        if not path.is_file():
            raise FileError(f"{path} does not exist or is not a file; check the path")
        if suffix not in _TABLES:
            text.check_unused(path)
            return pl.scan_parquet(path, glob=False) if suffix in _PARQUET else pl.scan_ipc(path)
        with path.open("rb") as opened:
            if opened.read(2) in COMPRESSED:  # polars would expand it, to any size
                raise FileError(f"{path} is compressed; decompress it first")
        dialect = Dialect.of(suffix[1:], text.separator, decimal=text.decimal)
        file = File.at(path).in_utf8(text.encoding)
        self.typed, self.decimal = False, dialect.decimal
        return pl.scan_csv(
            file.content,
            separator=find_separator(file, dialect),
            infer_schema=False,  # all is text: types would be taken from the values of some rows
            truncate_ragged_lines=True,
            glob=False,
        )

    def _name_columns(self, there: Iterable[Any]) -> None:
        """Find the columns that were named, or that have a well-known name where none was given."""
        self.there, named = list(there), {}
        for role, name in self.columns.items():
            if name is None:
                found = columns_of_records(self.there, role)
                called = f"that is called {' or '.join(COLUMNS_OF_RECORDS[role])}"
            else:
                found, called = _called(self.there, name), quoted(name)
            if len(found) != 1:
                wrong = f"{'several columns' if found else 'no column'} {called}"
                use = f"name the right one, {role}="
                if role not in COLUMNS_OF_RECORDS:
                    use = "every node is a column"
                listed = f"its columns are: {quoted_list(self.there)}{separator_hint(self.there)}"
                raise InputError(f"{self.where} has {wrong}; {use}; {listed}")
            named[role] = found[0]
        if len(set(named.values())) < len(named):
            raise UsageError(f"{', '.join(named)} must be different columns")
        self.columns = named

    def _said(self, role: str) -> str:
        """Return the column of a role, with its type, for a message."""
        name = quoted(self.columns[role])
        return f"column {name} of {self.where} is of type {self.types[role]}"

    def with_persons(self, lazy: pl.LazyFrame) -> pl.LazyFrame:
        """Return the records of persons who are known and told from others: all can be bounded.

        Two persons who became one cannot, by rounding, or by U+FFFD in place of a letter. One who
        is written in several ways is one: see `normal_texts`.
        """
        dtype, person = self.types["person"], pl.col("person")
        if not (_is_integer(dtype) or dtype == pl.Float64 or dtype in _TEXTS):
            wanted = "persons must be integers or texts: cast it, integers to 64 bits"
            raise InputError(f"{self._said('person')}; {wanted}")
        known = pl.col("person").is_not_null()
        if dtype == pl.Float64:  # integers of pandas, where some are missing
            known &= pl.col("person").abs() < _LARGEST_EXACT
            person += 0.0  # -0.0 is 0.0
        elif dtype in _TEXTS:
            person = _normal(person).replace("", None)
        elif dtype != pl.UInt64:
            person = person.cast(pl.Int64)  # Spark has no other types without a sign: one hash
        if not self.typed:
            known &= ~pl.col("person").str.contains("\ufffd", literal=True)
        return lazy.with_columns(person=person).filter(known)

    def number(self, lazy: pl.LazyFrame, role: str, pairs: Pairs) -> pl.LazyFrame:
        """Put the number of the node in place of its id, and drop what is not a public node."""
        column, wanted = pl.col(role), self._type_of_nodes(role, pairs)
        if self.types[role] in _TEXTS:
            column = _normal(column)
        numbers = pairs.numbers(wanted).lazy().rename({"id": role, "node": f"{role} node"})
        lazy = lazy.with_columns(column.cast(wanted, strict=False))
        return lazy.join(numbers, on=role, how="inner").drop(role)

    def _type_of_nodes(self, role: str, pairs: Pairs) -> type[pl.DataType]:
        """Return the type in which ids and public nodes are compared; by their types alone."""
        dtype = self.types[role]
        is_number = _is_integer(dtype) or dtype.is_float()
        if (dtype in _TEXTS if pairs.of_text else is_number) or not self.typed:
            if not dtype.is_float():
                return pl.String if pairs.of_text else pl.Int64
            # Integers of pandas, where some are missing. A record must be on one node at most.
            if max(map(abs, pairs.names.tolist())) <= _LARGEST_EXACT:
                return pl.Float64
        nodes = "texts" if pairs.of_text else "integers"
        raise InputError(
            f"the public nodes are {nodes}, and {self._said(role)}, in which they cannot be found; "
            "cast the column, or write the nodes as they are written there"
        )

    def check_numbers(self, roles: Iterable[str]) -> None:
        """Refuse columns that cannot hold numbers, by their types."""
        for role in roles:
            dtype = self.types[role]
            if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null, *_TEXTS)):
                raise InputError(f"{self._said(role)}; values must be numbers: cast it")

    def summed(self, first: spark.Step, by: str) -> pl.DataFrame:
        """Return what ``first`` makes of the records: sums, by one column."""
        if self.distributed is None:
            return self.collect(first(self.lazy))
        return self.distributed.sums(first, by)

    def summed_over_persons(
        self, things: Things, last: spark.Step, then: spark.Rows = lambda rows: rows, by: Any = None
    ) -> pl.DataFrame:
        """Return what ``last`` and ``then`` make of the things of persons: sums, by one column.

        Of the things of all persons they are the sum of what they are of some and of the others.
        """
        if self.distributed is None:
            return then(self.collect(last(things.of_all(self.lazy))))

        def merge(rows: pl.DataFrame) -> pl.DataFrame:
            return things.merged(rows.lazy()).collect(engine="streaming")

        def of_persons(rows: pl.DataFrame) -> pl.DataFrame:
            return then(last(things.of_parts(rows.lazy())).collect(engine="streaming"))

        return self.distributed.exchanged_sums(things.of_part, "person", of_persons, by, merge)

    def histogram(self, things: Things, number: pl.Expr, caps: Sequence[int]) -> Array:
        """Count the persons by the smallest cap that their number stays within.

        ``number`` is of the things of a person; numbers above all caps count with the largest.
        """
        within = [(pl.col("number") <= cap).sum().alias(str(cap)) for cap in caps[:-1]]
        counts = [expression.cast(pl.Int64) for expression in (*within, pl.len().alias("all"))]

        def last(rows: pl.LazyFrame) -> pl.LazyFrame:
            return rows.group_by("person").agg(number=number).select(counts)

        found = self.summed_over_persons(things, last)
        return np.diff(np.array(found.row(0), dtype=np.int64), prepend=0)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "distributed": None}  # a task has rows of its own

    def collect(self, lazy: pl.LazyFrame) -> pl.DataFrame:
        """Read the records and return what was requested of them."""
        found = _quietly(lambda: lazy.collect(engine="streaming"))
        if found is None:
            raise InputError(f"{self.where} cannot be read to its end; check it, or its file")
        return found


def _quietly(read: Callable[[], _T]) -> _T | None:
    """Return what is read, or None: an error here, or in the context of ours, may quote values."""
    with suppress(*_PROBLEMS):
        return read()
    return None


def _called(there: Sequence[Any], name: Any) -> list[Any]:
    """Return the columns of this very name, or else those that are it as ids are compared."""
    texts = pl.Series([str(each) for each in (name, *there)], dtype=pl.String)
    wanted, *names = normal_texts(texts)
    exact = [column for column in there if column == name]
    return exact or [each for each, called in zip(there, names, strict=True) if called == wanted]


def _is_integer(dtype: pl.DataType) -> bool:
    """Whether these are integers that 64 bits hold, whatever their values are."""
    return dtype.is_integer() and dtype not in (pl.Int128, getattr(pl, "UInt128", pl.Int128))


def _normal(texts: pl.Expr) -> pl.Expr:
    return texts.map_batches(normal_texts, return_dtype=pl.String, is_elementwise=True)


def _of_pandas(column: Any, name: str, *, only_ids: bool) -> pl.Series:
    """Return a column of pandas: numbers stay numbers by their type, all else is text.

    ``only_ids`` refuses what is neither: equal objects may have several texts, as 7 and 7.0 do, and
    one person would be several.
    """
    kind = column.dtype.kind
    if kind in "iuf" and isinstance(column.dtype, np.dtype):
        return pl.Series(name, column.to_numpy())
    if hasattr(column, "cat"):
        categories = _of_pandas(column.cat.categories.to_series(), name, only_ids=only_ids)
        codes = pl.Series(column.cat.codes.to_numpy(), dtype=pl.Int64)
        return categories.gather(codes.set(codes < 0, None))
    gone = column.isna().to_numpy()
    values = [None if is_gone else value for value, is_gone in zip(column, gone, strict=True)]
    if kind in "iuf":  # of a type of pandas that knows missing values
        types = {"i": pl.Int64, "u": pl.UInt64, "f": pl.Float64}
        return pl.Series(name, values, dtype=types[kind])
    if only_ids and not all(value is None or isinstance(value, str) for value in values):
        raise InputError(
            f"column {quoted(name)} of the table of records holds other objects than texts, of "
            "which equal ones may be written in several ways: make all of it integers, "
            f"frame[{quoted(name)}].astype('Int64'), or texts that are one for each id"
        )
    texts = [value if value is None else _text(value) for value in values]
    return pl.Series(name, texts, dtype=pl.String)


def _text(value: Any) -> str:
    """Return the letters of a text, whatever its class says they are; else what prints."""
    return str.__str__(value) if isinstance(value, str) else str(value)
