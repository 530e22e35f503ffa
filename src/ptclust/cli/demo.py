"""``ptclust demo``: the main job on a built-in example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory for the picture and the labels.")
    ] = Path("ptclust-demo"),
    seed: Annotated[int, typer.Option(help="Seed of the example's points.")] = 8,
) -> None:
    """Cluster two moons of 100 points with DBMSTClu and draw them."""
    from ptclust.experiments.demo import run_demo

    typer.echo(run_demo(output, seed))
