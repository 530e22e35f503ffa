"""What clusters would need for tables that no machine here holds: a model of the Spark engine.

Costs a row are those that ``make bench-spark`` measured, as are bytes of a build; those of edges
follow from what the engine sends and holds. It assumes no slow disks and no failures: a bound from
below, good to a factor of two.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.spark_speed import N_PARTS

__all__ = ["Estimate", "estimates", "to_table"]

_WIDTH = {"visits": 1, "flows": 2}  # of a row beside that of a visit: flows have a count
_EDGE = 16  # number of the edge and weight
_PART_ROWS = 1e7  # rows that one task finishes, by choice of spark.sql.shuffle.partitions
_PER_NODE, _BYTES_PER_EDGE_HELD = 8, 64  # of a task that reduces edges to a forest
_HERE = 48  # bytes an edge on one machine


@dataclass(frozen=True)
class Estimate:
    """What one table takes."""

    what: str
    exchanges: int  # of rows between workers
    shuffled: float  # bytes
    worker: float  # bytes that one task holds
    driver: float  # bytes on the driver
    core_hours: float
    one_machine: float  # bytes that it would take on one machine
    one_machine_hours: float | None = None  # core-hours there, where they are known


def estimates(measured: dict[str, Any]) -> list[Estimate]:
    """Return estimates, from what `SparkReport.to_json` holds."""
    per_row: dict[str, float] = measured["cpu_nanoseconds_a_row"]
    n_visits, sizes = measured["sizes"]["n_visits"], measured["build_bytes"]
    found = []
    for records in (1e9, 1e10, 1e11):
        n_pairs = 2000 * 1999 / 2
        for kind, width in _WIDTH.items():
            found.append(
                Estimate(
                    f"{kind}: {records:.0e} records, 2,000 nodes",
                    2,
                    width * sizes["sent"] / n_visits * records,
                    width * sizes["worker"] * max(1.0, _PART_ROWS * N_PARTS / n_visits),
                    _HERE * n_pairs,
                    per_row["spark_build"] * records / 3.6e12,
                    width * sizes["one_machine"] / n_visits * records,
                    per_row["build"] * records / 3.6e12,
                )
            )
    for m in (1e9, 1e10):
        for n in (1e7, 1e8):
            n_forests = max(1.0, m / (_PER_NODE * n)) / 8
            cost = sum(per_row[f"spark_{part}"] for part in ("topology", "tree", "written"))
            found.append(
                Estimate(
                    f"edges: m = {m:.0e}, n = {n:.0e}",
                    4,
                    2 * _EDGE * m + 2 * _EDGE * n * 8 * n_forests,
                    _PER_NODE * n * _BYTES_PER_EDGE_HELD,
                    _EDGE * n * n_forests + 100 * n,
                    cost * m / 3.6e12,
                    _HERE * m,
                )
            )
    return found


def to_table(found: list[Estimate]) -> str:
    """Return the estimates as a Markdown table."""

    def size(value: float) -> str:
        return f"{value / 1e9:,.1f} GB" if value < 1e12 else f"{value / 1e12:,.1f} TB"

    def hours(value: float | None) -> str:
        return "" if value is None else f", {value:,.1f} core-hours"

    lines = [
        "| table | exchanges | sent | a task holds | driver | core-hours | one machine |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {e.what} | {e.exchanges} | {size(e.shuffled)} | {size(e.worker)} | {size(e.driver)} "
        f"| {e.core_hours:,.1f} | {size(e.one_machine)}{hours(e.one_machine_hours)} |"
        for e in found
    ]
    return "\n".join(lines)


def table_of(measurements: Path) -> str:
    """Return the table of measurements that ``make bench-spark`` wrote."""
    return to_table(estimates(json.loads(measurements.read_text())))
