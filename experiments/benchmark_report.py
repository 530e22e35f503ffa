"""The page and the numbers of the benchmark."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np

from experiments.benchmark import TASKS, Measurement
from experiments.noise_speed import NoiseReport

__all__ = ["BenchmarkReport"]

_SHOWN = {"tree": "edges of the tree or weight", "clusters": "ARI", "points": "ARI"}
_INTRODUCTION = """\
# Performance

Ratios, not seconds, because machines differ. This page is made by `{command}`: ptclust and its
peers on the same arrays, every measurement in a process of its own, the tasks in turns, the median
of {rounds} round(s). A graph is made of the arrays within the time, and its input checked;
clusterers start from a graph in memory. Memory is touched before each task, lest the time be
measured in which a virtual machine gets it from its host. All minimum spanning trees have the same
weight, or the run stops.

Tasks of one kind are peers: minimum spanning trees of each other, private trees of Algorithm 2 step
by step. Time, at every size, and memory, at the largest, are multiples of the first task of every
table that was measured at that size, of whatever kind: what privacy and clusters cost beside a
minimum spanning tree is for information. A growth of 1 is linear in the edges, or points: it is the
slope of log time over log size.
"""
_END = """\
`make bench-command` measures the whole command, from a file of edges to the files of a release.
`make bench-building` does the same for building a graph from records:
[Build a graph from records](building.md). How much *epsilon* clusters cost, and where the defaults
fail, is in [How much epsilon clusters cost](utility.md), made by `make utility`.

The first run on a machine compiles the kernels, which takes up to a minute; their cache is keyed by
their source and cannot go stale."""


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
        """Return the page."""
        lines = [_INTRODUCTION.format(command=self.command, rounds=self.rounds)]
        for graph in dict.fromkeys(m.graph for m in self.measurements):
            lines += self._table(graph)
        if self.noise is not None:
            lines += ["## Noise", "", self.noise.to_markdown(), ""]
        lines += ["## Elsewhere", "", _END]
        return "\n".join(lines)

    def _table(self, graph: str) -> list[str]:
        """Return the section of a graph: time at every size, memory at the largest, growth."""
        own = [m for m in self.measurements if m.graph == graph]
        sizes = sorted({m.size for m in own})
        family = TASKS[own[0].task].family
        items = "points" if family == "points" else "edges"
        times = " | ".join(f"{size:,} {items}" for size in sizes)
        lines = [
            f"## {graph.capitalize()}", "",
            f"| task | {times} | memory | growth | {_SHOWN[family]} |",
            "|---" * (len(sizes) + 4) + "|",
        ]  # fmt: skip
        kind = ""
        for task in dict.fromkeys(m.task for m in own):
            at = {m.size: m for m in own if m.task == task}
            last, growth = at[max(at)], self._growth(graph, task)
            if TASKS[task].kind != kind:
                kind = TASKS[task].kind
                lines.append(f"| **{kind}** |" + " |" * (len(sizes) + 3))
            cells = [
                TASKS[task].title,
                *(f"{self._ratio(at[x], 'cpu_seconds'):.3g}" if x in at else "" for x in sizes),
                f"{self._ratio(last, 'peak_bytes'):.3g}",
                "" if growth is None else f"{growth:.2f}",
                f"{last.answer:.6g}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
        return [*lines, ""]
