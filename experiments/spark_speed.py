"""The Spark engine beside one machine's: CPU of a build, and of noise and tree of a large graph.

Spark runs here, as local[2]. Its CPU is that of all its processes: Java, the driver and the Python
workers, from when both have worked once on a small table. Ratios are what counts. What a build
sends is what its exchanges leave on the disk, compressed by Spark; what it holds is the peak memory
of a Python worker.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from experiments._processes import peak_bytes, run_module
from experiments.building import MAX_ITEMS, write_visits
from ptclust._files import written_at_once

__all__ = ["SparkReport", "run_spark_speed"]

MOST_CPU = 3.0  # of a build on one machine
N_PARTS = 16  # that persons are divided into
MOST_WALL = 2.0  # of scipy's minimum spanning tree
_TICKS = os.sysconf("SC_CLK_TCK")
_COLUMNS = {"source": "source", "target": "target", "weight": "weight"}

_TREES = {
    "tree": "  noise on all weights, and their tree",
    "kruskal": "  kruskal",
    "pamst": "  pamst",
    "written": "  noisy weights written, in order of edges",
}

Times = dict[str, float]  # cpu_seconds and wall_seconds


@dataclass(frozen=True)
class SparkReport:
    """What was measured, by task."""

    sizes: dict[str, int]
    times: dict[str, Times]
    build_bytes: dict[str, int]  # sent by Spark, and held by a worker of it or by one machine

    @property
    def ratios(self) -> dict[str, float]:
        """What Spark needs as a multiple of what one machine needs."""
        times = self.times
        found = {"build_cpu": times["spark_build"]["cpu_seconds"] / times["build"]["cpu_seconds"]}
        for what in ("tree", "kruskal", "pamst", "written"):
            for kind in ("wall", "cpu"):
                seconds = times[f"spark_{what}"][f"{kind}_seconds"]
                found[f"{what}_{kind}"] = seconds / times["scipy"][f"{kind}_seconds"]
        return found

    @property
    def per_row(self) -> dict[str, float]:
        """CPU in nanoseconds a row."""
        rows = {"build": "n_visits", "spark_build": "n_visits"}
        return {
            task: 1e9 * times["cpu_seconds"] / self.sizes[rows.get(task, "n_edges")]
            for task, times in self.times.items()
        }

    def to_json(self) -> str:
        """Return all numbers as JSON."""
        parts = {"sizes": self.sizes, "times": self.times, "ratios": self.ratios}
        more = {"build_bytes": self.build_bytes, "cpu_nanoseconds_a_row": self.per_row}
        return json.dumps(parts | more, indent=2)

    def to_markdown(self) -> str:
        """Return the ratios as a table to read."""
        sizes, ratios, per_row = self.sizes, self.ratios, self.per_row
        visits = f"{sizes['n_visits']:,} visits of {sizes['n_persons']:,} persons"
        edges = f"{sizes['n_nodes']:,} nodes and {sizes['n_edges']:,} edges"
        lines = [
            f"{visits}; a graph of {edges}; Spark as local[2]",
            f"{'build, CPU, as a multiple of one machine':56s}{ratios['build_cpu']:8.2f}"
            f"  (goal {MOST_CPU:g})",
            f"{'build, bytes a record that are sent':56s}"
            f"{self.build_bytes['sent'] / sizes['n_visits']:8.2f}",
            f"{'build, peak memory of a Python worker':56s}"
            f"{self.build_bytes['worker'] / 1e9:8.2f} GB"
            f"  (one machine: {self.build_bytes['one_machine'] / 1e9:.2f} GB)",
            "as a multiple of scipy's minimum spanning tree of the same weights, on one core:",
            *(
                f"{what:42s}wall time {ratios[f'{name}_wall']:6.2f}"
                f"  CPU {ratios[f'{name}_cpu']:6.2f}"
                for name, what in _TREES.items()
            ),
            f"(goal of the first, wall time: {MOST_WALL:g})",
            "CPU in nanoseconds a row: "
            + ", ".join(f"{task} {value:,.0f}" for task, value in per_row.items()),
        ]
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """Write the JSON to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_at_once(path) as temporary:
            temporary.write_text(self.to_json() + "\n")


def run_spark_speed(
    sizes: dict[str, int], progress: Callable[[str], None] = lambda _: None
) -> SparkReport:
    """Write visits and edges, and measure all tasks on them, each in a process of its own."""
    times: dict[str, Times] = {}
    build_bytes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        progress("Writing visits and edges")
        write_visits(
            Path(folder) / "visits.parquet",
            sizes["n_visits"],
            sizes["n_persons"],
            sizes["n_places"],
        )
        write_edges(Path(folder) / "edges.parquet", sizes["n_nodes"], sizes["n_edges"])
        for task in ("local", "spark"):
            progress(f"Measuring {task}")
            found = run_module(__name__, task, folder, json.dumps(sizes))
            build_bytes |= found.pop("build_bytes", {})
            times |= found
    return SparkReport(sizes, times, build_bytes)


def write_edges(path: Path, n_nodes: int, n_edges: int, seed: int = 0) -> None:
    """Write distinct random edges, in random order, with random weights."""
    random = np.random.default_rng(seed)
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < n_edges:
        more = random.integers(0, n_nodes * n_nodes, int(1.02 * n_edges) + 100)
        more = more[more // n_nodes < more % n_nodes]
        keys = np.unique(np.concatenate([keys, more]))
    keys = random.permutation(keys)[:n_edges]
    ends = {"source": keys // n_nodes, "target": keys % n_nodes}
    pl.DataFrame({**ends, "weight": random.normal(size=n_edges)}).write_parquet(
        path, row_group_size=1 << 20
    )


def _timed(run: Callable[[], Any], cpu: Callable[[], float]) -> Times:
    start, wall = cpu(), time.monotonic()
    run()
    return {"cpu_seconds": cpu() - start, "wall_seconds": time.monotonic() - wall}


def _build(records: Any, n_places: int) -> Any:
    from ptclust import graph_from_visits

    return graph_from_visits(records, item="place", items=range(n_places), max_items=MAX_ITEMS)


def _measure_local(folder: Path, sizes: dict[str, int]) -> dict[str, dict[str, Any]]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    small = _small(folder)
    _build(small / "visits.parquet", 50)
    found: dict[str, dict[str, Any]] = {
        "build": _timed(
            lambda: _build(folder / "visits.parquet", sizes["n_places"]), time.process_time
        ),
        "build_bytes": {"one_machine": peak_bytes()},
    }
    edges, n = pl.read_parquet(folder / "edges.parquet"), sizes["n_nodes"]
    weights = edges["weight"].to_numpy() + 100.0  # scipy takes zeros for no edges
    matrix = csr_array((weights, (edges["source"].to_numpy(), edges["target"].to_numpy())), (n, n))
    found["scipy"] = _timed(lambda: minimum_spanning_tree(matrix), time.process_time)
    return found


def _measure_spark(folder: Path, sizes: dict[str, int]) -> dict[str, dict[str, Any]]:
    from pyspark.sql import SparkSession

    from ptclust import Sensitivity
    from ptclust.engines.edges import SparkEdges
    from ptclust.mechanisms import MECHANISMS
    from ptclust.planning.plan import PlanRequest, make_plan

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(N_PARTS),
        "spark.local.dir": str(folder / "spark"),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    found: dict[str, dict[str, Any]] = {}
    for where, here in ((_small(folder), _SMALL), (folder, sizes)):  # the first makes all warm
        visits, sent = spark.read.parquet(str(where / "visits.parquet")), _exchanged(folder)
        found["spark_build"] = _timed(lambda: _build(visits, here["n_places"]), _cpu_of_all)  # noqa: B023
        found["build_bytes"] = {"sent": _exchanged(folder) - sent, "worker": _peak_of_workers()}
        frame = spark.read.parquet(str(where / "edges.parquet"))
        edges = SparkEdges(frame, _COLUMNS, "distance", "the table")
        found["spark_topology"] = _timed(lambda: edges.topology, _cpu_of_all)  # noqa: B023
        for name, mechanism, place in (
            ("tree", "gaussian", None),
            ("kruskal", "kruskal", None),
            ("pamst", "pamst", None),
            ("written", "gaussian", str(where / "noisy")),
        ):
            request = PlanRequest(
                epsilon=1, delta=1e-6, sensitivity=Sensitivity(l2=1), mechanism=mechanism,
                clip=(-10.0, 10.0), engine="spark",
            )  # fmt: skip
            drawn = MECHANISMS[mechanism], make_plan(edges.topology, request).chosen
            found[f"spark_{name}"] = _timed(
                lambda: edges.publish(*drawn, (-10.0, 10.0), place),  # noqa: B023
                _cpu_of_all,
            )
    spark.stop()
    return found


_SMALL = {"n_visits": 20_000, "n_persons": 1000, "n_places": 50, "n_nodes": 1000, "n_edges": 20_000}


def _small(folder: Path) -> Path:
    """Return a folder with small tables, written anew."""
    place = folder / "small"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    write_visits(place / "visits.parquet", 20_000, 1000, 50)
    write_edges(place / "edges.parquet", 1000, 20_000)
    return place


def _exchanged(folder: Path) -> int:
    """Return the bytes that exchanges of Spark left on the disk."""
    return sum(path.stat().st_size for path in (folder / "spark").rglob("shuffle_*.data"))


def _peak_of_workers() -> int:
    """Return the largest peak memory of a Python worker, in bytes."""
    peaks = [0]
    for process in _ours():
        with suppress(OSError, StopIteration):  # it has ended
            of_process = Path(f"/proc/{process}")
            if "pyspark.daemon" in (of_process / "cmdline").read_text():
                lines = (of_process / "status").read_text().splitlines()
                peak = next(line for line in lines if line.startswith("VmHWM"))
                peaks.append(1024 * int(peak.split()[1]))
    return max(peaks)


def _cpu_of_all() -> float:
    """Return the CPU of this process, of all that it started, and of all that these started."""
    return sum(_ours().values()) / _TICKS


def _ours() -> dict[int, int]:
    """Return the ticks of CPU of this process and of all that descend from it."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(path.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))  # its own, and of children that have ended
    here = os.getpid()

    def descends(process: int) -> bool:
        while process not in (here, 0, 1):
            process = parents.get(process, 0)
        return process == here

    return {process: each for process, each in ticks.items() if descends(process)}


if __name__ == "__main__":
    measure = {"local": _measure_local, "spark": _measure_spark}[sys.argv[1]]
    sys.stdout.write(json.dumps(measure(Path(sys.argv[2]), json.loads(sys.argv[3]))))
