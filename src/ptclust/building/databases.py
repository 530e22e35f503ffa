"""Records in a database: a query, streamed batch by batch.

A query is sent as a subquery, so that it can only read, and selects the columns that are needed.
Its rows are never in memory all at once, and what a database says of them is not repeated.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
from polars.io.plugins import register_io_source

from ptclust._lazy import package
from ptclust.errors import InputError, UsageError

_BATCH = 1 << 17  # rows
_LONGEST = 300  # letters of what a database says of a query
_POSTGRESQL = re.compile(r"postgres(?:ql)?://(?:[^/?#]*@)?(?P<place>[^@?#]*)")
_SECRETS = re.compile(r"(?::(?P<word>[^/?#]*)@|[?&]password=(?P<option>[^&#]*))")
_ADDRESS = re.compile(r"(?:postgresql|postgres|duckdb|sqlite)(?P<other>\+\w+)?:", re.IGNORECASE)
_SAY = (
    "an address is postgresql://user@host/name, duckdb:file or sqlite:file, with query='select ...'"
)


def is_address(text: str) -> bool:
    """Whether this is the address of a database, not the path of a file.

    >>> is_address("sqlite:visits.db"), is_address("visits.csv")
    (True, False)
    """
    return _ADDRESS.match(text) is not None


@dataclass(frozen=True, repr=False)
class Query:
    """Records that a query finds in a database, for the functions that build graphs.

    Parameters
    ----------
    address : str
        ``postgresql://user@host:5432/name``, ``duckdb:visits.duckdb`` or ``sqlite:visits.db``.
        Leave a password out: PostgreSQL takes it from PGPASSWORD or the file ~/.pgpass.
    query : str
        One select. Only the columns that are needed are requested.

    Notes
    -----
    *Privacy.* No message, file or statement has the address but for the host and the name of the
    database, nor what a database says of rows. Columns of SQLite, which have no types, are texts.

    Examples
    --------
    >>> Query("postgresql://ada:secret@db.example/clinic", "select person, place from visits")
    Query('postgresql://db.example/clinic')
    """

    address: str
    query: str

    def __post_init__(self) -> None:
        found = _ADDRESS.match(self.address)
        if found is None or found["other"] or not found[0].islower():
            raise UsageError(f"this is not the address of a database: {_SAY}")
        if not isinstance(self.query, str) or not self.query.strip(" \t\r\n;"):
            raise UsageError(f"there is no query to the database: {_SAY}")

    @property
    def kind(self) -> str:
        """Which database: postgresql, duckdb or sqlite."""
        kind = self.address.partition(":")[0]
        return "postgresql" if kind == "postgres" else kind

    @property
    def typed(self) -> bool:
        """Whether columns have types."""
        return self.kind != "sqlite"

    def __str__(self) -> str:
        if self.kind != "postgresql":
            return f"{self.kind}:{self._file}"
        found = _POSTGRESQL.match(self.address)
        return "postgresql://..." if found is None else f"postgresql://{found['place']}"

    def __repr__(self) -> str:
        return f"Query({str(self)!r})"

    @property
    def _file(self) -> Path:
        return Path(re.sub("^//", "", self.address.partition(":")[2]))

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns and their types; no row is read."""
        frame, said = None, ""
        try:
            with closing(self._batches(self._select("*") + " limit 0")) as batches:
                frame = next(batches)
        except (UsageError, ImportError):
            raise
        except Exception as error:  # of the query itself: there were no rows
            said = " ".join(str(error).split())[:_LONGEST]
        if frame is None:
            raise InputError(f"the query to {self} is not understood there: {self._without(said)}")
        return dict(frame.schema)

    def scan(self) -> pl.LazyFrame:
        """Return the records as polars reads them; the query is sent when they are collected."""
        return register_io_source(self._frames, schema=self.schema)

    def _frames(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        _batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        names = list(self.schema) if columns is None else columns
        listed = ", ".join('"' + name.replace('"', '""') + '"' for name in names) or "1"
        with closing(self._batches(self._select(listed))) as batches:
            for batch in batches:
                frame = batch.select(names)
                if n_rows is not None:
                    frame, n_rows = frame.head(n_rows), n_rows - len(frame.head(n_rows))
                yield frame if predicate is None else frame.filter(predicate)
                if n_rows == 0:
                    return

    def _select(self, columns: str) -> str:
        return f"select {columns} from ({self.query.strip().rstrip(';')}\n) as records"  # noqa: S608

    def _batches(self, query: str) -> Generator[pl.DataFrame, None, None]:
        """Yield what a query finds; at least one frame, for its schema."""
        if self.kind == "postgresql":
            yield from self._of_postgresql(query)
        elif not self._file.is_file():
            raise UsageError(f"there is no file {self._file}; check the address")
        else:
            yield from self._of_duckdb(query) if self.typed else self._of_sqlite(query)

    def _of_postgresql(self, query: str) -> Iterator[pl.DataFrame]:
        driver = package("adbc_driver_postgresql.dbapi", "reading from PostgreSQL", "postgresql")
        package("pyarrow", "reading from PostgreSQL", "postgresql")
        with (
            closing(self._opened(driver.connect, driver.Error, self.address)) as connection,
            closing(connection.cursor()) as cursor,
        ):
            cursor.execute("set transaction read only")
            cursor.execute(query)
            with cursor.fetch_record_batch() as reader:
                yield _with_numbers(reader.schema.empty_table())
                yield from map(_with_numbers, reader)

    def _of_duckdb(self, query: str) -> Iterator[pl.DataFrame]:
        duckdb = package("duckdb", "reading from DuckDB")
        arrow = package("pyarrow", "reading from DuckDB", "duckdb")
        opened = self._opened(duckdb.connect, duckdb.Error, str(self._file), read_only=True)
        with (
            closing(opened) as connection,
            arrow.RecordBatchReader.from_stream(connection.sql(query)) as reader,
        ):
            yield _frame(reader.schema.empty_table())
            yield from map(_frame, reader)

    def _of_sqlite(self, query: str) -> Iterator[pl.DataFrame]:
        """Yield rows as texts: there, any value may be of any type."""
        uri = f"{self._file.absolute().as_uri()}?mode=ro"
        connect = partial(sqlite3.connect, uri=True, check_same_thread=False)  # one at a time
        with closing(self._opened(connect, sqlite3.Error, uri)) as connection:
            connection.text_factory = lambda raw: raw.decode(errors="replace")
            cursor = connection.execute(query)
            schema = [(column[0], pl.String) for column in cursor.description]
            for rows in chain([()], iter(partial(cursor.fetchmany, _BATCH), [])):
                yield pl.DataFrame([[*map(_text, row)] for row in rows], schema, orient="row")

    def _opened(self, connect: Callable[..., Any], error: type, *where: str, **how: Any) -> Any:
        """Return a connection; what is wrong with it is not repeated: it may quote the password."""
        with suppress(error):
            return connect(*where, **how)
        raise UsageError(
            f"{self} cannot be opened: check address, user and password (PostgreSQL takes one "
            "from PGPASSWORD or ~/.pgpass), and that it may be read"
        )

    def _without(self, said: str) -> str:
        """Return a message without the passwords that may be in the address."""
        for found in _SECRETS.finditer(self.address.partition("//")[2]):
            for secret in filter(None, found.groups()):
                said = said.replace(secret, "...").replace(unquote(secret), "...")
        return said


def _frame(batch: Any) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(batch))


def _with_numbers(batch: Any) -> pl.DataFrame:
    """Return rows of PostgreSQL, whose numeric comes as texts: 7 and 7.0 are one person."""
    key = b"ADBC:postgresql:typname"
    numeric = [each.name for each in batch.schema if (each.metadata or {}).get(key) == b"numeric"]
    for name in numeric:
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, batch.column(place).cast("string"))
    return _frame(batch).cast(dict.fromkeys(numeric, pl.Float64), strict=False)


def _text(value: Any) -> str | None:
    """Return a value of SQLite as a text, the same for values that are equal there.

    >>> [_text(value) for value in (7, 7.0, "7", b"7", 0.5, None)]
    ['7', '7', '7', '7', '0.5', None]
    """
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    whole = isinstance(value, float) and value.is_integer()
    return None if value is None else str(int(value) if whole else value)
