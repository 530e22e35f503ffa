"""Spark does the distribution: records and edges in many parts, each worked on by our own code.

Only the DataFrame API and ``mapInArrow`` are used, which Spark Connect has, too. Tasks run again
when an executor is lost, so a task must be a function of its rows: no task here draws randomness.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptclust._lazy import package
from ptclust._version import __version__
from ptclust.errors import FileError, InputError, MissingDependencyError, UsageError

if TYPE_CHECKING:
    import polars as pl

Step = Callable[["pl.LazyFrame"], "pl.LazyFrame"]
Rows = Callable[["pl.DataFrame"], "pl.DataFrame"]
_Task = Callable[[Iterable[Any]], Iterator["pl.DataFrame"]]

_CHUNK = 1 << 21  # rows that a task works on at a time
_PART = "part"
_PROBES = (["", "a", "\u00e4" * 40], [0, 1, -(2**63)], [0.0, 0.5, 2.0**53])


class MissingJavaError(MissingDependencyError):
    """Spark is there, and nothing to run it on."""

    def __init__(self) -> None:
        Exception.__init__(
            self,
            "Spark needs Java 17 or later, and there is no program 'java': install a package such "
            "as openjdk-17-jre-headless (make spark does), or set JAVA_HOME",
        )


def session(master: str | None = None) -> Any:
    """Return a session: the running one, one at ``master``, or else one of this machine."""
    builder = package("pyspark.sql", "the Spark engine", "spark").SparkSession.builder
    package("pyarrow", "the Spark engine", "spark")
    if master is not None and master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    java = os.environ.get("JAVA_HOME")
    if shutil.which("java" if java is None else os.path.join(java, "bin", "java")) is None:  # noqa: PTH118
        raise MissingJavaError
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = builder if master is None else builder.master(master)
    try:
        return chosen.appName("ptclust").getOrCreate()
    except Exception as error:
        raise UsageError(
            f"Spark does not start at {master or 'this machine'} ({type(error).__name__}); check "
            "the address, as spark://host:7077 or local[2], and that Java is 17 or later"
        ) from None


def is_frame(table: Any) -> bool:
    """Return whether this is a DataFrame of Spark, classic or Connect; nothing is imported."""
    kinds = type(table).__mro__
    return any(k.__name__ == "DataFrame" and k.__module__.startswith("pyspark.") for k in kinds)


def address(path: str | os.PathLike[str]) -> str:
    """Return a path as Spark takes it: pathlib has removed the second slash of s3://."""
    return re.sub(r"^([a-z][a-z0-9+.-]+):/(?!/)", r"\1://", os.fspath(path))


def read_parquet(path: str | os.PathLike[str], master: str | None = None) -> Any:
    """Return the DataFrame of a Parquet file, or of a folder of them."""
    frame, running = None, session(master)
    with suppress(Exception):  # its text may quote what could not be read
        frame = running.read.parquet(address(path))
    if frame is None:
        raise FileError(f"{path} cannot be read by Spark as Parquet; check the path")
    return frame


def opened(path: Path, engine: str, master: str | None) -> Any:
    """Return a table as an engine takes it: the path itself, or a DataFrame of Spark."""
    if engine == "local":
        if master is not None:
            raise UsageError("--master says where Spark runs: say --engine spark, too")
        return path
    return read_parquet(path, master)


def collected(frame: Any) -> pl.DataFrame:
    """Return a small result on this machine; an error quotes nothing of the rows."""
    import polars as pl

    found = None
    try:
        found = pl.DataFrame(pl.from_arrow(frame.toArrow()))
    except Exception as error:  # texts of Spark and of its tasks may quote a value
        kind = type(error).__name__
    if found is None:
        raise InputError(
            f"Spark did not come to an end ({kind}); its own log on the cluster says why. Workers "
            "need the same versions of ptclust and polars as this machine"
        )
    return found


@dataclass(frozen=True)
class Versions:
    """What all workers must have in common: hashes decide which task sees which person."""

    ptclust: str
    polars: str
    hashes: tuple[int, ...]

    @classmethod
    def here(cls) -> Versions:
        """Return those of this process; the hashes are those of some texts and numbers."""
        import polars as pl

        hashes = [int(h) for probe in _PROBES for h in pl.Series(probe).hash(1)]
        return cls(__version__, pl.__version__, tuple(hashes))

    def check(self) -> None:
        """Refuse to work beside a driver that hashes in another way."""
        if Versions.here() != self:
            raise RuntimeError("ptclust or polars differ between the driver and this worker")


class SparkTable:
    """The columns of a DataFrame that matter, by their roles, in as many parts as Spark made."""

    def __init__(self, frame: Any, columns: dict[str, str]) -> None:
        self._columns = columns
        quoted = {role: "`" + name.replace("`", "``") + "`" for role, name in columns.items()}
        self._frame = frame.selectExpr(*(f"{name} AS `{role}`" for role, name in quoted.items()))

    @cached_property
    def empty(self) -> pl.DataFrame:
        """The table without its rows."""
        import polars as pl

        return collected(self._frame.limit(0)) if self._columns else pl.DataFrame()

    def sums(self, first: Step, by: str) -> pl.DataFrame:
        """Return the sums, by one column, of what ``first`` makes of any part of the records."""
        rows = partial(_rows_of_chunks, lambda chunk: first(chunk.lazy()).collect())
        return self._summed(self._frame, rows, first(self.empty.lazy()).collect(), by)

    def sums_over_persons(
        self, first: Step, merged: Step, last: Rows, by: str | None
    ) -> pl.DataFrame:
        """Return sums over persons of what ``last`` makes of all rows of some.

        ``first`` makes rows of any part of the records, each with its person; ``merged`` makes of
        such rows what ``first`` would make of their records together. All rows of a person meet in
        one task. They cross the network packed, many rows in one: rows of Spark's own would cost
        more than all the rest.
        """
        n_parts = int(self._frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        like = first(self.empty.lazy()).collect()
        pack = partial(_packed, lambda chunk: first(chunk.lazy()).collect(), "person", n_parts)
        packed = _mapped(self._frame, pack, f"{_PART} int, rows binary").repartition(_PART)
        finish = partial(_finished, lambda rows: last(merged(rows.lazy()).collect()))
        return self._summed(packed, finish, last(merged(like.lazy()).collect()), by)

    @staticmethod
    def _summed(frame: Any, task: _Task, like: pl.DataFrame, by: str | None) -> pl.DataFrame:
        """Return the sums of all columns but one, by that one; they are integers."""
        names = list(like.columns)
        found = _mapped(frame, task, ", ".join(f"`{name}` bigint" for name in names))
        sums = [f"CAST(sum(`{name}`) AS bigint) AS `{name}`" for name in names if name != by]
        grouped = found.groupBy() if by is None else found.groupBy(by)
        from pyspark.sql.functions import expr

        return collected(grouped.agg(*map(expr, sums)))


def _mapped(frame: Any, task: _Task, schema: str) -> Any:
    """Return what a task makes of every partition, if its worker is like this process."""
    versions = Versions.here()

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        # Spark has a worker a core: each must not take all of them.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        failure = None
        try:
            versions.check()
            for rows in task(batches):
                yield from rows.to_arrow().to_batches()
        except Exception as error:  # its text may quote a value, and the log would keep it
            failure = type(error).__name__
        if failure is not None:
            raise RuntimeError(f"a task of ptclust failed: {failure}")

    return frame.mapInArrow(run, schema)


def _chunks(batches: Iterable[Any], size: int) -> Iterator[pl.DataFrame]:
    """Yield the rows of batches, many at a time."""
    import polars as pl
    import pyarrow as pa

    held, n_held = [], 0
    for batch in batches:
        held.append(batch)
        n_held += batch.num_rows
        if n_held >= size:
            table, held, n_held = pa.Table.from_batches(held), [], 0
            table.validate(full=True)  # texts that are no UTF-8 would be undefined behaviour
            yield pl.DataFrame(pl.from_arrow(table))
    if n_held:
        table = pa.Table.from_batches(held)
        table.validate(full=True)
        yield pl.DataFrame(pl.from_arrow(table))


def _rows_of_chunks(make: Rows, batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    return map(make, _chunks(batches, _CHUNK))


def _packed(make: Rows, by: str, n_parts: int, batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    """Yield a row a part: its number, and all rows whose hash falls on it, in bytes."""
    import polars as pl

    for rows in _rows_of_chunks(make, batches):
        part = (pl.col(by).hash(1) % n_parts).cast(pl.Int32).alias(_PART)
        parts = rows.with_columns(part).partition_by(_PART, as_dict=True, include_key=False)
        numbers = [number for (number,) in parts]
        packed = [_to_bytes(rows_of_part) for rows_of_part in parts.values()]
        yield pl.DataFrame(
            {_PART: numbers, "rows": packed}, schema={_PART: pl.Int32, "rows": pl.Binary}
        )


def _to_bytes(rows: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    rows.write_ipc(buffer)
    return buffer.getvalue()


def _finished(last: Rows, batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    """Yield what ``last`` makes of all rows of a part; a task may have several parts."""
    import polars as pl

    parts: dict[int, list[pl.DataFrame]] = {}
    for batch in batches:
        for number, packed in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            parts.setdefault(number, []).append(pl.read_ipc(io.BytesIO(packed)))
    for number in list(parts):
        yield last(pl.concat(parts.pop(number)))
