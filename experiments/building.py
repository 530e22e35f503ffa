"""CPU time and memory of building a graph of visits, beside a plain group-by of the same file.

A visit is a row (person, place), in random order: persons and places both of heavy-tailed
popularity, so that some persons have far more places than the bound allows. Every task runs in a
process of its own, so that its peak memory is its own. Ratios are what counts: seconds differ from
machine to machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from experiments._processes import peak_bytes, run_module
from ptclust._files import written_at_once

__all__ = ["BuildingReport", "VisitsReport", "run_building", "write_visits"]

MOST_TIME = 5.0  # of the plain group-by
MOST_BYTES = 8e9
MAX_ITEMS = 10
_CHUNK = 1_000_000
_TASKS = {
    "group_by": "polars: group by person and place, count",
    "build": f"ptclust: graph_from_visits, at most {MAX_ITEMS} places a person",
}


@dataclass(frozen=True)
class VisitsReport:
    """What was measured on random visits."""

    n_visits: int
    n_persons: int
    n_places: int
    measurements: dict[str, dict[str, float]]

    @property
    def sizes(self) -> dict[str, int]:
        """How many visits, persons and places there are."""
        return {name: getattr(self, name) for name in ("n_visits", "n_persons", "n_places")}

    def to_json(self) -> str:
        """Return all numbers as JSON."""
        raise NotImplementedError

    def save(self, path: Path) -> None:
        """Write the JSON to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_at_once(path) as temporary:
            temporary.write_text(self.to_json() + "\n")


@dataclass(frozen=True)
class BuildingReport(VisitsReport):
    """Building beside a plain group-by."""

    @property
    def time_ratio(self) -> float:
        """CPU time of building as a multiple of the group-by's."""
        build, plain = (self.measurements[task]["cpu_seconds"] for task in ("build", "group_by"))
        return build / plain

    def to_json(self) -> str:
        """Return all numbers as JSON."""
        result = {**self.sizes, "tasks": self.measurements, "time_ratio": self.time_ratio}
        return json.dumps(result, indent=2)

    def to_markdown(self) -> str:
        """Return time and memory as a table to read."""
        plain = self.measurements["group_by"]["cpu_seconds"]
        lines = [
            f"{self.n_visits:,} visits of {self.n_persons:,} persons to {self.n_places:,} places",
            f"{'':60s}{'CPU time':>10s}{'peak memory':>14s}",
        ]
        for task, numbers in self.measurements.items():
            time_ratio, gigabytes = numbers["cpu_seconds"] / plain, numbers["peak_bytes"] / 1e9
            lines.append(f"{_TASKS[task]:60s}{time_ratio:10.2f}{gigabytes:11.2f} GB")
        lines.append(f"{'goal for building':60s}{MOST_TIME:10.2f}{MOST_BYTES / 1e9:11.2f} GB")
        return "\n".join(lines)


def write_visits(path: Path, n_visits: int, n_persons: int, n_places: int, seed: int = 0) -> None:
    """Write random visits to a Parquet file, a chunk at a time."""
    from polars.io.plugins import register_io_source

    random = np.random.default_rng(seed)
    popularity = np.cumsum(np.arange(1, n_places + 1) ** -0.8)  # by a law of Zipf
    popularity /= popularity[-1]
    schema = {"person": pl.Int64, "place": pl.Int32}

    def chunks(*_: Any) -> Iterator[pl.DataFrame]:
        for start in range(0, n_visits, _CHUNK):
            size = min(_CHUNK, n_visits - start)
            # The density of persons falls like a root: a few have thousands of visits.
            person = (n_persons * random.random(size) ** 2).astype(np.int64)
            place = np.searchsorted(popularity, random.random(size)).astype(np.int32)
            yield pl.DataFrame({"person": person, "place": place}, schema=schema)

    register_io_source(chunks, schema=schema).sink_parquet(path)


def run_building(
    n_visits: int,
    n_persons: int,
    n_places: int,
    progress: Callable[[str], None] = lambda _: None,
) -> BuildingReport:
    """Write a file of random visits and measure both tasks on it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "visits.parquet"
        progress("Writing visits")
        write_visits(file, n_visits, n_persons, n_places)
        measurements = {}
        for task in _TASKS:
            progress(f"Measuring {task}")
            measurements[task] = run_module(__name__, task, file, n_places)
    return BuildingReport(n_visits, n_persons, n_places, measurements)


def _run(task: str, file: Path, n_places: int) -> None:
    if task == "group_by":
        plain = pl.scan_parquet(file).group_by("person", "place").agg(pl.len())
        plain.collect(engine="streaming")
        return
    from ptclust import graph_from_visits

    graph_from_visits(file, item="place", items=range(n_places), max_items=MAX_ITEMS)


def _measure(task: str, file: Path, n_places: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:  # imports, and kernels from the cache
        small = Path(folder) / "small.parquet"
        write_visits(small, 1000, 100, 50)
        _run(task, small, 50)
    start = time.process_time()
    _run(task, file, n_places)
    return {"cpu_seconds": time.process_time() - start, "peak_bytes": peak_bytes()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
