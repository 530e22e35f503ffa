"""CPU time and memory beside scipy's minimum spanning tree, from the same edge arrays, in one run.

Every task runs in a process of its own, so that its peak memory is its own. A process loads the
arrays, warms up on a small graph (imports, compiled kernels from the cache), then repeats the task
on the large one. Ratios are what counts: seconds differ from machine to machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._processes import peak_bytes, run_module
from ptclust._files import written_at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Report", "random_edges", "run_benchmark"]


@dataclass(frozen=True)
class Task:
    """Something to measure, and the share of scipy's time and memory it may take."""

    title: str
    most_time: float
    most_memory: float


TASKS = {
    "scipy_mst": Task("scipy: arrays to CSR, minimum_spanning_tree", 1.0, 1.0),
    "mst": Task("ptclust: arrays to Graph (checked), minimum_spanning_tree", 0.35, 1.2),
    "dbmstclu": Task("ptclust: DBMSTClu on that tree", 1.0, 1.2),
    "kruskal": Task("ptclust: arrays to Graph, private tree by kruskal", 0.6, 1.5),
    "pamst": Task("ptclust: arrays to Graph, private tree by pamst", 1.0, 1.5),
}


@dataclass(frozen=True)
class Report:
    """What was measured."""

    n_nodes: int
    n_edges: int
    measurements: dict[str, dict[str, float]]

    def ratio(self, task: str, quantity: str) -> float:
        """Return a quantity of a task as a multiple of scipy's."""
        return self.measurements[task][quantity] / self.measurements["scipy_mst"][quantity]

    def to_json(self) -> str:
        """Return all numbers as JSON."""
        tasks = {
            task: {
                **numbers,
                "time_ratio": self.ratio(task, "cpu_seconds"),
                "memory_ratio": self.ratio(task, "peak_bytes"),
            }
            for task, numbers in self.measurements.items()
        }
        return json.dumps(
            {"n_nodes": self.n_nodes, "n_edges": self.n_edges, "tasks": tasks}, indent=2
        )

    def to_table(self) -> str:
        """Return the ratios as a table to read."""
        lines = [
            f"Random graph, {self.n_nodes:,} nodes, {self.n_edges:,} edges; CPU time and peak",
            f"memory, scipy = 1 {'':60s}{'time':>6s} {'(goal)':>7s}{'memory':>9s} {'(goal)':>7s}",
        ]
        for name in self.measurements:
            task = TASKS[name]
            lines.append(
                f"{task.title:60s}{self.ratio(name, 'cpu_seconds'):6.2f} {task.most_time:7.2f}"
                f"{self.ratio(name, 'peak_bytes'):9.2f} {task.most_memory:7.2f}"
            )
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """Write the JSON to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_at_once(path) as temporary:
            temporary.write_text(self.to_json() + "\n")


def random_edges(
    n_nodes: int, n_edges: int, seed: int = 0
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return about ``n_edges`` distinct uniform edges in random order, and uniform weights.

    >>> sources, targets, weights = random_edges(1000, 5000)
    >>> 4900 < len(weights) <= 5000
    True
    """
    random = np.random.default_rng(seed)
    a, b = random.integers(n_nodes, size=(2, n_edges))
    keys = np.unique((np.minimum(a, b) * n_nodes + np.maximum(a, b))[a != b])
    low, high = np.divmod(random.permutation(keys), n_nodes)
    return low.astype(np.int32), high.astype(np.int32), random.random(len(keys))


def run_benchmark(
    n_nodes: int, n_edges: int, repeat: int, progress: Callable[[str], None] = lambda _: None
) -> Report:
    """Measure all tasks on one random graph."""
    with tempfile.TemporaryDirectory() as folder:
        progress("Making a random graph")
        arrays: tuple[NDArray[Any], ...] = random_edges(n_nodes, n_edges)
        for name, array in zip(("sources", "targets", "weights"), arrays, strict=True):
            np.save(Path(folder) / f"{name}.npy", array)
        measurements = {}
        for task in TASKS:
            progress(f"Measuring {task}")
            measurements[task] = run_module(__name__, task, folder, n_nodes, repeat)
    return Report(n_nodes, len(arrays[0]), measurements)


def _prepare(task: str, edges: tuple[Any, Any, Any], n_nodes: int) -> Callable[[], object]:
    """Return what is to be timed, with everything before it done."""
    sources, targets, weights = edges
    if task == "scipy_mst":
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import minimum_spanning_tree as scipy_mst

        return lambda: scipy_mst(
            coo_array((weights, (sources, targets)), shape=(n_nodes, n_nodes)).tocsr()
        )
    from ptclust.clustering import dbmstclu
    from ptclust.graph import Graph
    from ptclust.pipeline import private_spanning_tree
    from ptclust.privacy import Sensitivity
    from ptclust.trees import minimum_spanning_tree

    def mst() -> Any:
        return minimum_spanning_tree(Graph(sources, targets, weights, n_nodes=n_nodes))

    if task == "mst":
        return mst
    if task in ("kruskal", "pamst"):
        return lambda: private_spanning_tree(
            Graph(sources, targets, weights, n_nodes=n_nodes),
            mechanism=task,
            epsilon=1.0,
            delta=1e-6,
            sensitivity=Sensitivity(linf=1e-5),
        )
    tree = mst()
    return lambda: dbmstclu(tree)


def _measure(task: str, folder: Path, n_nodes: int, repeat: int) -> dict[str, float]:
    _prepare(task, random_edges(1000, 5000), 1000)()
    edges = tuple(np.load(folder / f"{name}.npy") for name in ("sources", "targets", "weights"))
    run = _prepare(task, (edges[0], edges[1], edges[2]), n_nodes)
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return {"cpu_seconds": median(seconds), "peak_bytes": peak_bytes()}


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(_measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
    )
