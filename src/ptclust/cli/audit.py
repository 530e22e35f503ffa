"""``ptclust audit`` and ``demo``: on graphs and records that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptclust._options import Option
from ptclust.cli import _options as o
from ptclust.cli._outputs import held_outputs
from ptclust.cli._terminal import progress_display, say

_VIOLATION = 5


@o.command
def audit(
    output: Annotated[Path | None, Option("Directory for page, CSV and JSON.", short="-o")] = None,
    quick: Annotated[bool, Option("Fewer graphs, starts and draws: a minute or two.")] = False,
    seed: Annotated[int, Option("Seed of searches and seeded draws.", min=0)] = 0,
    overwrite: o.Overwrite = None,
    as_json: o.AsJson = False,
) -> None:
    """Audit every privacy claim on synthetic graphs, and controls that are broken on purpose.

    Exit code 5 if a claim is refuted, or if a control is not caught: then the audit itself cannot
    be trusted.
    """
    from ptclust._files import make_directory
    from ptclust.audit import Effort, run_audit

    name = "audit-quick" if quick else "audit"
    command = "ptclust audit" + " --quick" * quick + f" --seed {seed}" * (seed != 0)
    files: dict[str, Path | None] = {}
    if output is not None:
        make_directory(output)
        files = {what: output / f"{name}.{what}" for what in ("md", "csv", "json")}
    with held_outputs(files, {}, overwrite) as progress:
        effort = Effort.quick() if quick else Effort.full()
        report = run_audit(effort, command, seed=seed, progress=progress)
        if output is not None:
            report.save(output)
    typer.echo(report.to_json() if as_json else report.to_markdown())
    for problem in report.problems:
        say(f"ptclust: {problem}")
    say(f"ptclust audit: {report.summary}")
    if not report.passed:
        raise typer.Exit(_VIOLATION)


@o.command
def demo(
    output: Annotated[
        Path, Option("Directory for records, release, map and report.", short="-o")
    ] = Path("ptclust-demo"),
    epsilon: Annotated[float, Option("The privacy budget of a ride.")] = 1.0,
) -> None:
    """Publish clusters of bike stations: records, plan, clusters on a map, privacy statement."""
    from ptclust.demo import run_demo

    with progress_display() as progress:
        text = run_demo(output, epsilon=epsilon, progress=progress)
    typer.echo(text)
