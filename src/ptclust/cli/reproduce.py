"""``ptclust reproduce``: the experiments behind the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

reproduce = typer.Typer(no_args_is_help=True, help="Repeat the experiments of the documentation.")


@reproduce.command("utility")
def utility(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Directory for results, table and figure."),
    ] = Path("ptclust-utility"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Coarse grid, few repetitions: a minute or two.")
    ] = False,
    repetitions: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Repetitions of every run, instead of a number that fits n."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of graphs and noise.")] = 0,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--restart", help="Go on where an interrupted run stopped, or start anew."
        ),
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
) -> None:
    """Measure how well planted clusters are found, against epsilon, for every method and control.

    Noise is reproducible here, for speed and repetition: nothing of this is private, nor need it be.
    """
    from ptclust.cli._terminal import say, stages
    from ptclust.experiments.utility import Effort, run_utility
    from ptclust.experiments.utility_report import UtilityReport

    effort = Effort.quick() if quick else Effort.full()
    command = "ptclust reproduce utility" + " --quick" * quick
    if repetitions is not None:
        effort = effort.with_repetitions(repetitions)
        command += f" --repetitions {repetitions}"
    command += f" --seed {seed}" * (seed != 0)
    with stages() as stage:
        records = run_utility(output, effort, seed=seed, resume=resume, stage=stage)
        stage("Drawing")
        report = UtilityReport(records, command)
        report.save(output)
    typer.echo(report.to_json() if as_json else report.to_markdown())
    say(f"{len(records):,} runs; table, figure and results are in {output}")


@reproduce.command("shift")
def shift(
    repetitions: Annotated[int, typer.Option(min=1, help="Repetitions of every run.")] = 6,
    seed: Annotated[int, typer.Option(min=0, help="Seed of graphs and noise.")] = 0,
) -> None:
    """Compare rules for the shift tau of released weights (docs/decisions/0006-shift.md)."""
    from ptclust.cli._terminal import stages
    from ptclust.experiments.shift import compare_shifts

    with stages() as stage:
        table = compare_shifts(repetitions, seed=seed, stage=stage)
    typer.echo(table)
