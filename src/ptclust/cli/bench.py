"""``ptclust bench``: measure against scipy, side by side in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer


def bench(
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", help="Write the measurements to this JSON file too."),
    ] = None,
    nodes: Annotated[int, typer.Option(min=1000, help="Nodes of the random graph.")] = 1_000_000,
    edges: Annotated[int, typer.Option(min=1000, help="Edges of the random graph.")] = 10_000_000,
    repeat: Annotated[
        int, typer.Option(min=1, help="Measurements of each; the median counts.")
    ] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
) -> None:
    """Compare CPU time and memory with scipy's minimum spanning tree on one random graph."""
    from ptclust.cli._terminal import stages
    from ptclust.experiments.benchmark import run_benchmark

    with stages() as stage:
        report = run_benchmark(nodes, edges, repeat, stage)
    if output is not None:
        report.save(output)
    typer.echo(report.to_json() if as_json else report.to_table())
