"""``ptclust demo``: the main job on a built-in example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory for the pictures and the release.")
    ] = Path("ptclust-demo"),
    epsilon: Annotated[float, typer.Option(help="The privacy budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="0 for a pure guarantee.")] = 1e-6,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the example, not of the noise.")] = 8,
) -> None:
    """Publish the clusters of a built-in graph: plan, clusters, pictures, privacy statement."""
    from ptclust.cli._terminal import progress_display
    from ptclust.demo import run_demo

    with progress_display() as progress:
        text = run_demo(output, epsilon=epsilon, delta=delta, seed=seed, progress=progress)
    typer.echo(text)
