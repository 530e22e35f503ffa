"""CPU time and memory of building a graph of visits from databases, beside the same from Parquet.

The visits are those of `experiments.building`. A server's own time is not counted: it is another
process, and may be another machine. DuckDB runs within the process, and is counted.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from experiments._processes import run_module
from experiments.building import VisitsReport, build_visits, measured, write_visits
from experiments.postgres import binaries, running_server

__all__ = ["run_databases"]

_QUERY = "select person, place from visits"


def run_databases(
    n_visits: int,
    n_persons: int,
    n_places: int,
    progress: Callable[[str], None] = lambda _: None,
) -> VisitsReport:
    """Write random visits to a file and to every database that is here, and build from each."""
    with tempfile.TemporaryDirectory() as place, _postgresql() as address:
        folder = Path(place)
        sources = {"parquet": str(folder / "visits.parquet")}
        progress("Writing visits")
        write_visits(Path(sources["parquet"]), n_visits, n_persons, n_places)
        sources["duckdb"] = _into_duckdb(folder)
        pl.scan_parquet(sources["parquet"]).sink_csv(folder / "visits.csv", include_header=False)
        if address is not None:
            progress("Filling PostgreSQL")
            address.run(
                "create table visits (person bigint, place integer)",
                rf"\copy visits from '{folder / 'visits.csv'}' csv",
            )
            sources["postgresql"] = address.address
        progress("Filling SQLite")
        sources["sqlite"] = _into_sqlite(folder)
        measurements = {}
        for name, source in sources.items():
            progress(f"Building from {name}")
            measurements[name] = run_module(__name__, source, n_places)
    return VisitsReport(n_visits, n_persons, n_places, measurements)


@contextmanager
def _postgresql() -> Iterator[Any]:
    if binaries() is None:
        yield None
        return
    with running_server() as server:
        yield server


def _into_duckdb(folder: Path) -> str:
    import duckdb

    with duckdb.connect(str(folder / "visits.duckdb")) as connection:
        visits = folder / "visits.parquet"
        connection.execute(f"create table visits as select * from '{visits}'")  # noqa: S608
    return f"duckdb:{folder / 'visits.duckdb'}"


def _into_sqlite(folder: Path) -> str:
    file = folder / "visits.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("create table visits (person integer, place integer)")
        for part in pl.scan_parquet(folder / "visits.parquet").collect().iter_slices(1_000_000):
            connection.executemany("insert into visits values (?, ?)", part.iter_rows())
    return f"sqlite:{file}"


def _build(source: Any, n_places: int) -> None:
    from ptclust.building.databases import Query, is_address

    build_visits(Query(source, _QUERY) if is_address(source) else source, n_places)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measured(_build, sys.argv[1], int(sys.argv[2]))))
