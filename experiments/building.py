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

__all__ = ["VisitsReport", "build_visits", "measured", "run_building", "write_visits"]

GOALS = {"build": (5.0, 8e9), "postgresql": (3.0, 2e9)}
"""By task: CPU time, as a multiple of that of the first task, and bytes of memory."""
MAX_ITEMS = 10
_CHUNK = 1_000_000
TASKS = {
    "group_by": "polars: group by person and place, count",
    "build": f"ptclust: graph_from_visits, at most {MAX_ITEMS} places a person",
}


@dataclass(frozen=True)
class VisitsReport:
    """What was measured on random visits, by task; the first is what others are compared with."""

    n_visits: int
    n_persons: int
    n_places: int
    measurements: dict[str, dict[str, float]]

    def ratio(self, task: str) -> float:
        """Return CPU time as a multiple of that of the first task."""
        first = next(iter(self.measurements.values()))
        return self.measurements[task]["cpu_seconds"] / first["cpu_seconds"]

    def to_json(self) -> str:
        """Return all numbers as JSON."""
        sizes = {name: getattr(self, name) for name in ("n_visits", "n_persons", "n_places")}
        ratios = {task: self.ratio(task) for task in self.measurements}
        return json.dumps({**sizes, "tasks": self.measurements, "ratios": ratios}, indent=2)

    def to_markdown(self) -> str:
        """Return time and memory as a table to read."""
        lines = [
            f"{self.n_visits:,} visits of {self.n_persons:,} persons to {self.n_places:,} places",
            f"{'':60s}{'CPU time':>10s}{'peak memory':>14s}",
        ]
        for task, numbers in self.measurements.items():
            gigabytes = numbers["peak_bytes"] / 1e9
            title = TASKS.get(task, task)
            line = f"{title:60s}{self.ratio(task):10.2f}{gigabytes:11.2f} GB"
            if task in GOALS:
                line += f"  (goal {GOALS[task][0]:g}, {GOALS[task][1] / 1e9:g} GB)"
            lines.append(line)
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """Write the JSON to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_at_once(path) as temporary:
            temporary.write_text(self.to_json() + "\n")


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
) -> VisitsReport:
    """Write a file of random visits and measure both tasks on it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "visits.parquet"
        progress("Writing visits")
        write_visits(file, n_visits, n_persons, n_places)
        measurements = {}
        for task in TASKS:
            progress(f"Measuring {task}")
            measurements[task] = run_module(__name__, task, file, n_places)
    return VisitsReport(n_visits, n_persons, n_places, measurements)


def build_visits(records: Any, n_places: int) -> None:
    """Build the graph of visits."""
    from ptclust import graph_from_visits

    graph_from_visits(records, item="place", items=range(n_places), max_items=MAX_ITEMS)


def _group_by(file: Any, _: int) -> None:
    plain = pl.scan_parquet(file).group_by("person", "place").agg(pl.len())
    plain.collect(engine="streaming")


def measured(run: Callable[[Any, int], None], records: Any, n_places: int) -> dict[str, float]:
    """Return CPU time and peak memory of a run; imports and the cache of kernels come before."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.parquet"
        write_visits(small, 1000, 100, 50)
        run(str(small), 50)
    start = time.process_time()
    run(records, n_places)
    return {"cpu_seconds": time.process_time() - start, "peak_bytes": peak_bytes()}


if __name__ == "__main__":
    task = {"group_by": _group_by, "build": build_visits}[sys.argv[1]]
    sys.stdout.write(json.dumps(measured(task, Path(sys.argv[2]), int(sys.argv[3]))))
