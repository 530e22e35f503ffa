"""Spark does the distribution: records and edges in many parts, each worked on by our own code.

Only the DataFrame API and ``mapInArrow`` are used, which Spark Connect has, too. Tasks run again
when an executor is lost, so a task must be a function of its rows: no task here draws randomness.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ptclust._lazy import package
from ptclust._tables import library_of
from ptclust._types import Array
from ptclust._version import __version__
from ptclust.errors import (
    FileError,
    InputError,
    MissingDependencyError,
    UsageError,
    warn_of_privacy,
)

Step = Callable[[pl.LazyFrame], pl.LazyFrame]
Rows = Callable[[pl.DataFrame], pl.DataFrame]
_Task = Callable[[Iterable[Any]], Iterator[pl.DataFrame]]

_CHUNK = 1 << 21  # rows that a task works on at a time
_ROWS_OF_FILE = 1 << 18
_PART = "part"
_PACKED = f"{_PART} int, rows binary"
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
    try:
        chosen = builder if master is None else builder.master(master)
        for name, value in _settings_of_new(master).items():
            chosen = chosen.config(name, value)
        return chosen.appName("ptclust").getOrCreate()
    except Exception as error:
        raise UsageError(
            f"Spark does not start at {master or 'this machine'} ({type(error).__name__}); check "
            "the address, as spark://host:7077 or local[2], and that Java is 17 or later"
        ) from None


_LOOPBACK = "127.0.0.1"
#: What keeps private weights within a session: its setting, and what becomes of them otherwise.
_GUARDS = {
    ("spark.ui.enabled", "false"): "its web UI answers anyone who reaches this machine",
    ("spark.authenticate", "true"): "anyone who reaches its ports can join in, and ask for rows",
    ("spark.io.encryption.enabled", "true"): "exact weights are on its disks unencrypted",
}
_checked: set[str] = set()  # sessions, by the ids of their applications


def _settings_of_new(master: str | None) -> dict[str, str]:
    """Return the settings of a session that is to be started; none if there is one already.

    One of this machine listens on the loopback alone, and has a folder that only this user may
    enter. Of a cluster the workers decide whether its nodes authenticate.
    """
    from pyspark import SparkConf, SparkContext

    if SparkContext._active_spark_context is not None:
        return {}
    SparkContext._ensure_initialized()  # it reads the defaults
    defaults = SparkConf()
    settings = dict(_GUARDS.keys())
    if not _is_local(master or defaults.get("spark.master", "local[*]")):
        del settings["spark.authenticate"]
        return settings
    above = (defaults.get("spark.local.dir") or "").partition(",")[0]
    folder = tempfile.mkdtemp(prefix="ptclust-spark-", dir=above or None)  # of mode 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    ours = {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    return settings | ours | {"spark.local.dir": folder}


def _is_local(master: str | None) -> bool:
    """Whether driver and workers are on this machine."""
    return (master or "").startswith("local")


def warn_of_settings(running: Any) -> None:
    """Warn, once, of a session whose settings leave private weights open to others."""
    settings = running.conf.get
    if (application := settings("spark.app.id", "")) in _checked:
        return
    _checked.add(application)
    open_to = [
        f"{why} ({name} is not {value})"
        for (name, value), why in _GUARDS.items()
        if settings(name, "true" if name == "spark.ui.enabled" else "false") != value
    ]
    host = settings("spark.driver.bindAddress", settings("spark.driver.host", _LOOPBACK))
    if _is_local(settings("spark.master", None)) and host not in (_LOOPBACK, "localhost", "::1"):
        open_to.append(
            f"it listens on an outward address (spark.driver.bindAddress is not {_LOOPBACK})"
        )
    if open_to:
        warn_of_privacy(
            f"private weights are in a Spark session that others may reach: {'; '.join(open_to)}. "
            "A session that ptclust starts is closed; docs/security.md says more"
        )


def is_frame(table: Any) -> bool:
    """Return whether this is a DataFrame of Spark, classic or Connect; nothing is imported."""
    return library_of(table) == "pyspark"


def address(path: str | os.PathLike[str]) -> str:
    """Return a path as Spark takes it: pathlib has removed the second slash of s3://.

    A relative path is one of this process, not of Java's, which may have been started elsewhere.
    """
    text = re.sub(r"^([a-z][a-z0-9+.-]+):/(?!/)", r"\1://", os.fspath(path))
    return text if "://" in text else str(Path(text).absolute())


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
            raise UsageError("--master says where Spark runs: give --engine spark, too")
        return path
    return read_parquet(path, master)


def collected(frame: Any) -> pl.DataFrame:
    """Return a small result on this machine; an error quotes nothing of the rows."""
    return pl.DataFrame(pl.from_arrow(_run(frame.toArrow)))


def _run(job: Callable[[], Any]) -> Any:
    """Return what a job of Spark gives; its failure is one of ours: its texts may quote a value.

    Raised out of the except, it has no context, which would hold the other. A context manager could
    not do that: what is raised as it ends has one.
    """
    failure = None
    try:
        return job()
    except Exception as error:
        failure = type(error).__name__
    raise InputError(
        f"Spark did not come to an end ({failure}); its own log on the cluster says why. "
        "Workers need the same versions of ptclust and polars as this machine"
    )


def fingerprint() -> tuple[object, ...]:
    """Return what all workers must have in common: hashes decide which task sees which person."""
    hashes = [h for probe in _PROBES for h in pl.Series(probe).hash(1).to_list()]
    return __version__, pl.__version__, *hashes


class SparkTable:
    """The columns of a DataFrame that matter, by their roles, in as many parts as Spark made."""

    def __init__(self, frame: Any, columns: dict[str, str]) -> None:
        self._columns = columns
        warn_of_settings(frame.sparkSession)
        quoted = {role: "`" + name.replace("`", "``") + "`" for role, name in columns.items()}
        self._frame = frame.selectExpr(*(f"{name} AS `{role}`" for role, name in quoted.items()))

    @classmethod
    def of(cls, frame: Any) -> SparkTable:
        """Return all columns of a DataFrame, by their names."""
        return cls(frame, {name: name for name in frame.columns})

    @property
    def _session(self) -> Any:
        return self._frame.sparkSession

    @cached_property
    def empty(self) -> pl.DataFrame:
        """The table without its rows."""
        return collected(self._frame.limit(0)) if self._columns else pl.DataFrame()

    def all_rows(self) -> pl.DataFrame:
        """Return the table, which must fit on this machine."""
        return collected(self._frame)

    def sums(self, first: Step, by: str) -> pl.DataFrame:
        """Return the sums, by one column, of what ``first`` makes of any part of the records."""
        rows = partial(_rows_of_chunks, first)
        return self._summed(self._frame, rows, first(self.empty.lazy()).collect(), by)

    def exchanged_sums(
        self,
        first: Step,
        group: str,
        last: Rows,
        by: str | None = None,
        merge: Rows | None = None,
    ) -> pl.DataFrame:
        """Return the sums, by one column, of what ``last`` makes of all rows of some groups.

        ``first`` makes rows of any part of the table. Those of one value of the column ``group``
        meet in one task. They cross the network packed, many rows in one: rows of Spark's own
        would cost more than all the rest. ``merge`` makes fewer rows of some that have met, of
        which ``last`` makes the same: a task then holds no more than that leaves, and a chunk.
        """
        like = last(first(self.empty.lazy()).collect())
        packed = self._packed(first, group, self._most_parts).repartition(_PART)
        return self._summed(packed, partial(_finished, last, merge=merge), like, by)

    def exchanged(
        self, first: Step, group: str, last: Rows, schema: str, n_rows: int | None = None
    ) -> SparkTable:
        """Return what ``last`` makes of the rows of groups, as `exchanged_sums` does, as a table.

        *Privacy.* Which rows are in which part, and their order, follow from ``group``, ``last``
        and ``n_rows`` alone. Spark would join parts by their sizes, which may follow from weights,
        were it not told their number.
        """
        n_parts = self._most_parts
        if n_rows is not None:
            n_parts = max(1, min(n_parts, n_rows // _ROWS_OF_FILE))
        packed = self._packed(first, group, n_parts).repartition(n_parts, _PART)
        return SparkTable.of(_mapped(packed, partial(_finished, last), schema))

    def write(self, place: str) -> None:
        """Write the table to a new folder of Parquet, one file per part."""
        _run(partial(self._frame.write.parquet, address(place)))

    def mapped(self, first: Step, schema: str) -> SparkTable:
        """Return what ``first`` makes of any part of the table, as a table."""
        return SparkTable.of(_mapped(self._frame, partial(_rows_of_chunks, first), schema))

    def reduced(self, first: Step, reduce: Rows, size: int, n_merged: int) -> pl.DataFrame:
        """Return what is left of the rows of ``first`` after parts of them were reduced.

        A task reduces ``size`` rows of the table at a time, with what is left of those before; then
        what is left of ``n_merged`` tasks is reduced together.
        """
        task = partial(_reduced, first, reduce, size, n_merged)
        parts = _mapped(self._frame, task, _PACKED).repartition(_PART)
        return collected(_mapped(parts, partial(_finished, reduce), "edge bigint, weight double"))

    def distinct(self, columns: Sequence[str]) -> pl.Series:
        """Return all values of some columns, of one type, each once; they fit on this machine."""
        texts = all(self.empty.schema[name] == pl.String for name in columns)
        dtype, schema = (pl.String, "id string") if texts else (pl.Int64, "id bigint")
        task = partial(_rows_of_chunks, partial(_distinct, columns, dtype))
        return collected(_mapped(self._frame, task, schema).distinct())["id"]

    def coded(self, columns: Sequence[str], names: Array) -> SparkTable:
        """Return the table with numbers, the places in ``names``, in place of some columns."""
        numbers = np.arange(len(names))
        codes = pl.DataFrame({"name": names.tolist(), "number": numbers}).to_arrow()
        frame = self._frame
        for name in columns:
            of_column = self._session.createDataFrame(codes).toDF(name, f"{name} number")
            others = [f"`{other}`" for other in frame.columns if other != name]
            frame = frame.join(of_column, name).selectExpr(*others, f"`{name} number` AS `{name}`")
        return SparkTable.of(frame)

    def beside(self, place: str, columns: dict[str, str]) -> SparkTable:
        """Return the table of another place, in the same session."""
        return SparkTable(self._session.read.parquet(address(place)), columns)

    def driver_addresses(self) -> tuple[str, str]:
        """Return the name by which workers know this machine, and the address to listen at."""
        if type(self._frame).__module__.startswith("pyspark.sql.connect"):
            raise UsageError(
                "Spark Connect (sc://) cannot draw noise: workers get the key from a driver on "
                "this machine; use spark:// or yarn"
            )
        if _is_local(self._session.conf.get("spark.master", None)):
            return _LOOPBACK, _LOOPBACK
        host = self._session.conf.get("spark.driver.host")
        return host, self._session.conf.get("spark.driver.bindAddress", host)

    @property
    def _most_parts(self) -> int:
        return int(self._session.conf.get("spark.sql.shuffle.partitions"))

    def _packed(self, first: Step, group: str, n_parts: int) -> Any:
        task = partial(_packed_by_hash, partial(_rows_of_chunks, first), group, n_parts)
        return _mapped(self._frame, task, _PACKED)

    def _summed(self, frame: Any, task: _Task, like: pl.DataFrame, by: str | None) -> pl.DataFrame:
        """Return the sums of all columns but one, by that one; they are integers."""
        add = partial(_added, by)
        parts = partial(_packed_by_hash, partial(_sums_of_task, task, add), by, self._most_parts)
        exchanged = _mapped(frame, parts, _PACKED).repartition(_PART)
        sums = partial(_packed_by_hash, partial(_finished, add, merge=add), None, 1)
        found = collected(_mapped(exchanged, sums, _PACKED))
        return add(pl.concat([like, _unpacked(found["rows"])])) if len(found) else like


def _mapped(frame: Any, task: _Task, schema: str) -> Any:
    """Return what a task makes of every partition, if its worker is like this process."""
    from pyspark import cloudpickle

    packed = cloudpickle.dumps((task, fingerprint()))

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        # Spark has one worker per core: each must not take all of them. Polars reads this when it
        # is imported, as this package does.
        import os
        import pickle

        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from ptclust.engines.spark import work

        made, driver = pickle.loads(packed)  # noqa: S301 - packed above
        yield from work(made, driver, batches)

    return frame.mapInArrow(run, schema)


def work(task: _Task, driver: tuple[object, ...], batches: Iterable[Any]) -> Iterator[Any]:
    """Yield what a task makes of a partition; an error quotes nothing of the rows."""
    failure = None
    if fingerprint() != driver:
        failure = "ptclust or polars differ between the driver and this worker"
    try:
        for rows in task(batches) if failure is None else ():
            yield from rows.to_arrow().to_batches()
    except Exception as error:  # its text may quote a value, and the log would keep it
        failure = type(error).__name__
    if failure is not None:
        raise RuntimeError(f"a task of ptclust failed: {failure}")


def _chunks(batches: Iterable[Any], size: int) -> Iterator[pl.DataFrame]:
    """Yield the rows of batches, many at a time."""
    import pyarrow as pa

    held, n_held = [], 0
    for batch in chain(batches, [None]):  # None after the last
        if batch is not None:
            held.append(batch)
            n_held += batch.num_rows
        if n_held >= size or (batch is None and n_held):
            table = pa.Table.from_batches(held)
            table.validate(full=True)  # texts that are not UTF-8 would be undefined behaviour
            yield pl.DataFrame(pl.from_arrow(table))
            held, n_held = [], 0


def _rows_of_chunks(first: Step, batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    for chunk in _chunks(batches, _CHUNK):
        yield first(chunk.lazy()).collect(engine="streaming")


def _distinct(columns: Sequence[str], dtype: Any, rows: pl.LazyFrame) -> pl.LazyFrame:
    return pl.concat(rows.select(id=pl.col(name).cast(dtype)) for name in columns).unique()


def _packed_by_hash(
    task: _Task, group: str | None, n_parts: int, batches: Iterable[Any]
) -> Iterator[pl.DataFrame]:
    """Yield one row per part: its number, and all rows whose hash falls on it, in bytes.

    Without a column ``group`` all rows are in one part.
    """
    number = pl.lit(0) if group is None else pl.col(group).hash(1) % n_parts
    for rows in task(batches):
        yield _packed(rows.with_columns(number.cast(pl.Int32).alias(_PART)).sort(_PART))


def _packed(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per part of rows that are in the order of parts.

    By pyarrow, which takes a tenth of the time of polars where pieces are small.
    """
    import pyarrow as pa

    runs = rows[_PART].rle().struct.unnest()
    # In this format texts of a slice are packed alone; views would bring all others with them.
    table = rows.drop(_PART).to_arrow(compat_level=pl.CompatLevel.oldest())
    packed, start = [], 0
    for length in runs["len"]:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table.slice(start, length))
        packed.append(sink.getvalue().to_pybytes())
        start += length
    return pl.DataFrame({_PART: runs["value"], "rows": pl.Series(packed, dtype=pl.Binary)})


def _unpacked(pieces: Iterable[Any]) -> pl.DataFrame:
    """Return the rows of some pieces, of which there is at least one."""
    import pyarrow as pa

    tables = [pa.ipc.open_stream(piece).read_all() for piece in pieces]
    return pl.DataFrame(pl.from_arrow(pa.concat_tables(tables)))


class _Gathered:
    """Rows that come in pieces, merged whenever they are twice as many as merging had left."""

    def __init__(self, merge: Rows | None) -> None:
        self.pieces: list[pl.DataFrame] = []
        self._merge, self._most, self._n_rows = merge, _CHUNK, 0

    def add(self, rows: pl.DataFrame) -> None:
        """Hold some more rows."""
        self.pieces.append(rows)
        self._n_rows += len(rows)
        if self._merge is not None and self._n_rows > self._most:
            merged = self._merge(self.rows())
            self.pieces, self._n_rows = [merged], len(merged)
            self._most = max(_CHUNK, 2 * len(merged))

    def rows(self) -> pl.DataFrame:
        """Return all that is held; it is then held no more."""
        pieces, self.pieces = self.pieces, []
        return pl.concat(pieces)


def _finished(
    last: Rows, batches: Iterable[Any], merge: Rows | None = None
) -> Iterator[pl.DataFrame]:
    """Yield what ``last`` makes of all rows of a part; a task may have several parts."""
    parts: dict[int, _Gathered] = {}
    for batch in batches:
        pieces: dict[int, list[Any]] = {}
        for number, packed in zip(*batch.columns, strict=True):
            pieces.setdefault(number.as_py(), []).append(packed.as_buffer())
        for part, some in pieces.items():
            parts.setdefault(part, _Gathered(merge)).add(_unpacked(some))
    for number in sorted(parts):
        yield last(parts.pop(number).rows())


def _sums_of_task(task: _Task, add: Rows, batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    """Yield the sums of all that a task yields, if it yields anything."""
    gathered = _Gathered(add)
    for rows in task(batches):
        gathered.add(rows)
    if gathered.pieces:
        yield add(gathered.rows())


def _added(by: str | None, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the sums of all columns but one, by that one."""
    if by is None:
        return rows.sum()
    return rows.lazy().group_by(by).sum().collect(engine="streaming")


def _reduced(
    first: Step, reduce: Rows, size: int, n_merged: int, batches: Iterable[Any]
) -> Iterator[pl.DataFrame]:
    """Yield what is left of all rows of a task, packed for the task that merges some of them."""
    from pyspark import TaskContext

    left: list[pl.DataFrame] = []
    for chunk in _chunks(batches, max(size, _CHUNK)):
        left = [reduce(pl.concat([*left, first(chunk.lazy()).collect()]))]
    context = TaskContext.get()
    number = 0 if context is None else context.partitionId() // n_merged
    for rows in left:
        for some in rows.iter_slices(_CHUNK):
            yield _packed(some.with_columns(pl.lit(number, pl.Int32).alias(_PART)))
