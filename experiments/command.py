"""CPU time and memory of the whole command, beside reading the same file and scipy's tree.

``ptclust cluster`` goes from a Parquet file of edges to the files of a release and of labels. The
plain task reads the file with polars and takes scipy's minimum spanning tree. Both are commands of
their own, from the start of Python to its end, imports included; they take turns, and the median
of the rounds counts. Memory is touched before each, as in `benchmark`. A first round, in which
kernels are compiled if need be, does not count. Ratios are what to look at: seconds differ from
machine to machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl

from experiments._processes import run_module
from experiments.benchmark import GRAPHS, touch_memory
from ptclust._files import written_at_once
from ptclust._statistics import agreement

__all__ = ["CommandReport", "Measurement", "run_commands"]

MOST_TIME = 3.0  # of the plain task, on the largest graph
MOST_BYTES = 12e9
_BYTES_AN_EDGE = 250  # more than either command needs
PLAIN = "plain"
TITLES = {
    PLAIN: "polars: read_parquet, scipy: minimum_spanning_tree",
    "l1": "ptclust cluster, l1",
    "linf": "ptclust cluster, linf",
}
_PLAIN = """
import sys
import polars
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

table = polars.read_parquet(sys.argv[1])
sources, targets, weights = (column.to_numpy() for column in table)
n_nodes = int(max(sources.max(), targets.max())) + 1
matrix = coo_array((weights, (sources, targets)), shape=(n_nodes, n_nodes)).tocsr()
minimum_spanning_tree(matrix)
"""


@dataclass(frozen=True)
class Measurement:
    """What a task took on a graph of so many edges."""

    n_edges: int
    task: str
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    ari: float | None = None
    """Agreement of the labels with the planted clusters."""


@dataclass(frozen=True)
class CommandReport:
    """What was measured."""

    measurements: list[Measurement]
    rounds: int

    def ratio(self, measured: Measurement, quantity: str) -> float:
        """Return a quantity as a multiple of the plain task's on the same file."""
        plain = next(
            each
            for each in self.measurements
            if each.task == PLAIN and each.n_edges == measured.n_edges
        )
        return float(getattr(measured, quantity) / getattr(plain, quantity))

    def to_json(self) -> str:
        """Return all numbers as JSON."""
        found = [
            {**asdict(each), "time_ratio": self.ratio(each, "cpu_seconds"),
             "wall_ratio": self.ratio(each, "wall_seconds")} for each in self.measurements
        ]  # fmt: skip
        return json.dumps({"rounds": self.rounds, "measurements": found}, indent=2)

    def to_markdown(self) -> str:
        """Return a table to read."""
        lines = [
            "| edges | task | CPU time | wall time | memory | ARI |",
            "|---|---|---|---|---|---|",
        ]
        for each in self.measurements:
            cpu, wall = (self.ratio(each, name) for name in ("cpu_seconds", "wall_seconds"))
            ari = "" if each.ari is None else f"{each.ari:.2f}"
            memory = f"{each.peak_bytes / 1e9:.2f} GB"
            task = TITLES[each.task]
            lines.append(
                f"| {each.n_edges:,} | {task} | {cpu:.2f} | {wall:.2f} | {memory} | {ari} |"
            )
        goal = f"| goal | ptclust cluster | {MOST_TIME:.2f} | | {MOST_BYTES / 1e9:.2f} GB | |"
        return "\n".join([*lines, goal])

    def save(self, path: Path) -> None:
        """Write the JSON to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_at_once(path) as temporary:
            temporary.write_text(self.to_json() + "\n")


def run_commands(
    sizes: list[int], rounds: int, progress: Callable[[str], None] = lambda _: None
) -> CommandReport:
    """Measure all tasks on planted graphs of so many edges."""
    found = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            progress(f"{size:,} edges: writing the file")
            n_edges = run_module(__name__, size, folder)  # elsewhere: its memory is not ours
            runs: dict[str, list[Measurement]] = {task: [] for task in TITLES}
            for turn in range(rounds + 1):
                for task, each in runs.items():
                    progress(f"{size:,} edges: {task}, round {turn} of {rounds}")
                    touch_memory(n_edges * _BYTES_AN_EDGE)
                    each.append(_measure(task, n_edges, folder))
        found += [_middle(each[1:]) for each in runs.values()]
    return CommandReport(found, rounds)


def _middle(runs: list[Measurement]) -> Measurement:
    first = runs[0]
    seconds, wall = (median(getattr(r, n) for r in runs) for n in ("cpu_seconds", "wall_seconds"))
    peak = int(median(run.peak_bytes for run in runs))
    ari = None if first.ari is None else min(run.ari for run in runs if run.ari is not None)
    return Measurement(first.n_edges, first.task, seconds, wall, peak, ari)


def _measure(task: str, n_edges: int, folder: Path) -> Measurement:
    """Run a task as a command, and ask the system what it took."""
    for name in ("release.json", "labels.parquet"):
        (folder / name).unlink(missing_ok=True)
    options = ["-c", _PLAIN, "edges.parquet"]
    if task != PLAIN:
        change = 1.0 if task == "l1" else 0.2 / n_edges**0.5
        options = [
            *(
                "-m",
                "ptclust",
                "cluster",
                "edges.parquet",
                "--kind",
                "similarity",
                "--no-certainty",
            ),
            *("--epsilon", "1", "--delta", "1e-6", f"--{task}", repr(change)),
            *("--topology", "public", "--privacy-unit", "one record"),
            *("--output", "release.json", "--labels", "labels.parquet"),
        ]
    start = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, *options], cwd=folder, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{task} ended with exit code {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    ari = None
    if task != PLAIN:
        labels = pl.read_parquet(folder / "labels.parquet").sort("node")["cluster"].to_numpy()
        ari = agreement(np.load(folder / "truth.npy"), labels)
    cpu = used.ru_utime + used.ru_stime
    return Measurement(n_edges, task, cpu, wall, unit * used.ru_maxrss, ari)


def _write(size: int, folder: Path) -> int:
    """Write a planted graph of about so many edges; return how many there are."""
    data = GRAPHS["planted"](size)
    columns = {"source": "sources", "target": "targets", "weight": "weights"}
    table = pl.DataFrame({name: data[array] for name, array in columns.items()})
    table.write_parquet(folder / "edges.parquet")
    np.save(folder / "truth.npy", data["truth"])
    return len(table)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_write(int(sys.argv[1]), Path(sys.argv[2]))))
