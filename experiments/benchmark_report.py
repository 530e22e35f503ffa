"""The page and the numbers of the benchmark."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np

from experiments._summary import as_csv
from experiments.benchmark import TASKS, Measurement
from experiments.noise_speed import NoiseReport

__all__ = ["BenchmarkReport"]

_COLUMNS = {
    "scipy_mst": "scipy",
    "mst": "ptclust",
    None: "fastest other",
    "kruskal": "private, kruskal",
    "pamst": "private, pamst",
    "dbmstclu": "DBMSTClu",
}
"""Tasks on trees that the page shows; None is the fastest of the other libraries."""
_INTRODUCTION = """\
# Performance

Ratios, as machines differ. Made by `{command}`: ptclust and other libraries on
the same arrays, each measurement in its own process, the median of {rounds} round(s). Trees include
making and checking the graph; clusterers start from a graph in memory. All minimum spanning trees
have the same weight, or the run stops. [performance.csv](performance.csv) has CPU time at every
size, memory at the largest, as multiples of the first task of the graph, and the slope of log time
over log size.
"""
_END = """\
[Building from records](building.md): `make bench-building`. [How much *epsilon* clusters
cost](utility.md). The first run on a machine compiles the kernels."""


@dataclass(frozen=True)
class BenchmarkReport:
    """What was measured, of trees and clusterers, and of noise."""

    measurements: list[Measurement]
    noise: NoiseReport | None
    rounds: int
    command: str

    def to_json(self) -> str:
        """Return all numbers as JSON."""
        content = {
            "command": self.command,
            "rounds": self.rounds,
            "measurements": [
                {**asdict(m), "time_ratio": self._ratio(m, "cpu_seconds"),
                 "memory_ratio": self._ratio(m, "peak_bytes")} for m in self.measurements
            ],
            "growth": {
                f"{graph}: {task}": self._growth(graph, task)
                for graph, task in dict.fromkeys((m.graph, m.task) for m in self.measurements)
            },
            "noise": None if self.noise is None else json.loads(self.noise.to_json()),
        }  # fmt: skip
        return json.dumps(content, indent=2)

    def _ratio(self, measured: Measurement, quantity: str) -> float:
        """Return a quantity as a multiple of the baseline's on the same case, or of the first's."""
        case = measured.graph, measured.size
        peers = [other for other in self.measurements if (other.graph, other.size) == case]
        first = next((other for other in peers if TASKS[other.task].baseline), peers[0])
        return float(getattr(measured, quantity) / getattr(first, quantity))

    def _growth(self, graph: str, task: str) -> float | None:
        """Return the slope of log time over log size, if there are three sizes or more."""
        own = [m for m in self.measurements if (m.graph, m.task) == (graph, task)]
        if len(own) < 3:
            return None
        times, sizes = ([getattr(m, name) for m in own] for name in ("cpu_seconds", "size"))
        return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])

    def to_markdown(self) -> str:
        """Return the page: every graph at its largest size."""
        lines = [_INTRODUCTION.format(command=self.command, rounds=self.rounds)]
        families = {m.graph: TASKS[m.task].family for m in self.measurements}
        if trees := [graph for graph, family in families.items() if family == "tree"]:
            lines += ["## Trees", "", "CPU time, scipy's minimum spanning tree = 1:", ""]
            lines += ["| graph | edges | " + " | ".join(_COLUMNS.values()) + " |"]
            lines += ["|---" * (len(_COLUMNS) + 2) + "|", *map(self._tree_row, trees), ""]
        for graph in (graph for graph, family in families.items() if family != "tree"):
            lines += self._table(graph)
        if self.noise is not None:
            lines += ["## Noise", "", self.noise.to_markdown(), ""]
        lines += ["## Elsewhere", "", _END]
        return "\n".join(lines)

    def to_csv(self) -> str:
        """Return all ratios; memory, growth and the answer at the largest size of a task."""
        names = "graph", "kind", "task", "size", "time", "memory", "growth", "answer"
        rows: list[list[str]] = [list(names)]
        for graph, task in dict.fromkeys((m.graph, m.task) for m in self.measurements):
            own = [m for m in self.measurements if (m.graph, m.task) == (graph, task)]
            growth = self._growth(graph, task)
            for m in own:
                start = [graph, TASKS[task].kind, TASKS[task].title, str(m.size)]
                time = f"{self._ratio(m, 'cpu_seconds'):.3g}"
                last = [
                    f"{self._ratio(m, 'peak_bytes'):.3g}",
                    "" if growth is None else f"{growth:.2f}",
                    f"{m.answer:.6g}",
                ]
                rows.append([*start, time, *(last if m is own[-1] else [""] * 3)])
        return as_csv(rows)

    def _tree_row(self, graph: str) -> str:
        """Return the CPU times on a graph at the largest size that scipy was measured at."""
        own = [m for m in self.measurements if m.graph == graph]
        size = max(m.size for m in own)
        at = {m.task: self._ratio(m, "cpu_seconds") for m in own if m.size == size}
        kind = TASKS["mst"].kind
        others = [
            time for task, time in at.items() if TASKS[task].kind == kind and task not in _COLUMNS
        ]
        cells = [min(others, default=None) if task is None else at.get(task) for task in _COLUMNS]
        shown = ["" if cell is None else f"{cell:.3g}" for cell in cells]
        return f"| {' | '.join([graph, f'{size:,}', *shown])} |"

    def _table(self, graph: str) -> list[str]:
        """Return the section of a graph of clusters or points: CPU time at every size, and ARI."""
        own = [m for m in self.measurements if m.graph == graph]
        sizes = sorted({m.size for m in own})
        items = "points" if TASKS[own[0].task].family == "points" else "edges"
        times = " | ".join(f"{size:,} {items}" for size in sizes)
        lines = [f"## {graph.capitalize()}", "", f"| task | {times} | ARI |"]
        lines.append("|---" * (len(sizes) + 2) + "|")
        for task in dict.fromkeys(m.task for m in own):
            at = {m.size: m for m in own if m.task == task}
            cells = (f"{self._ratio(at[x], 'cpu_seconds'):.3g}" if x in at else "" for x in sizes)
            answer = f"{at[max(at)].answer:.3g}"
            lines.append(f"| {' | '.join([TASKS[task].title, *cells, answer])} |")
        return [*lines, ""]
