"""CPU time and memory of building a graph of visits from databases, beside the same from Parquet.

The visits are those of `experiments.building`. A server's own time is not counted: it is another
process, and may be another machine. DuckDB runs within the process, and is counted.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from experiments._processes import peak_bytes, run_module
from experiments.building import MAX_ITEMS, VisitsReport, write_visits
from experiments.postgres import binaries, running_server

__all__ = ["DatabaseReport", "run_databases"]

MOST_TIME = 3.0  # of the same from Parquet
MOST_BYTES = 2e9
_QUERY = "select person, place from visits"


@dataclass(frozen=True)
class DatabaseReport(VisitsReport):
    """What was measured, by where the records were."""

    def ratio(self, source: str) -> float:
        """Return CPU time as a multiple of that from Parquet."""
        of_file = self.measurements["parquet"]["cpu_seconds"]
        return self.measurements[source]["cpu_seconds"] / of_file

    def to_json(self) -> str:
        """Return all numbers as JSON."""
        ratios = {source: self.ratio(source) for source in self.measurements}
        return json.dumps({**self.sizes, "sources": self.measurements, "ratios": ratios}, indent=2)

    def to_markdown(self) -> str:
        """Return time and memory as a table to read."""
        lines = [
            f"{self.n_visits:,} visits of {self.n_persons:,} persons to {self.n_places:,} places",
            f"{'':20s}{'CPU time':>10s}{'peak memory':>14s}",
        ]
        for source, numbers in self.measurements.items():
            gigabytes = numbers["peak_bytes"] / 1e9
            lines.append(f"{source:20s}{self.ratio(source):10.2f}{gigabytes:11.2f} GB")
        lines.append(f"{'goal, PostgreSQL':20s}{MOST_TIME:10.2f}{MOST_BYTES / 1e9:11.2f} GB")
        return "\n".join(lines)


def run_databases(
    n_visits: int,
    n_persons: int,
    n_places: int,
    progress: Callable[[str], None] = lambda _: None,
) -> DatabaseReport:
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
    return DatabaseReport(n_visits, n_persons, n_places, measurements)


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


def _run(source: str, n_places: int) -> None:
    from ptclust import graph_from_visits
    from ptclust.building.databases import Query, is_address

    records = Query(source, _QUERY) if is_address(source) else source
    graph_from_visits(records, item="place", items=range(n_places), max_items=MAX_ITEMS)


def _measure(source: str, n_places: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:  # imports, and kernels from the cache
        small = Path(folder) / "small.parquet"
        write_visits(small, 1000, 100, 50)
        _run(str(small), 50)
    start = time.process_time()
    _run(source, n_places)
    return {"cpu_seconds": time.process_time() - start, "peak_bytes": peak_bytes()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))))
