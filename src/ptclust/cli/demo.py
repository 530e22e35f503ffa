"""``ptclust demo``: the main job on a built-in example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory for records, release, map and report.")
    ] = Path("ptclust-demo"),
    epsilon: Annotated[float, typer.Option(help="The privacy budget of a ride.")] = 1.0,
) -> None:
    """Publish clusters of bike stations: records, plan, clusters on a map, privacy statement."""
    from ptclust.cli._terminal import progress_display
    from ptclust.demo import run_demo

    with progress_display() as progress:
        text = run_demo(output, epsilon=epsilon, progress=progress)
    typer.echo(text)
