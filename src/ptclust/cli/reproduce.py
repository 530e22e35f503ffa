"""``ptclust reproduce``: the experiments behind the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from ptclust.cli import _options as o

reproduce = typer.Typer(no_args_is_help=True, help="Repeat the experiments of the documentation.")

_Output = Annotated[
    Path, typer.Option("--output", "-o", help="Directory for results, tables and figures.")
]
_Quick = Annotated[bool, typer.Option("--quick", help="A coarser grid: a minute or two.")]
_Repetitions = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=1, help="Repetitions of every run, instead of what the grid has."),
]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of graphs and noise.")]
_Resume = Annotated[
    bool,
    typer.Option(
        "--resume/--restart", help="Go on where an interrupted run stopped, or start anew."
    ),
]


@reproduce.command("figures")
def figures(
    output: _Output = Path("ptclust-figures"),
    cross_edges: Annotated[
        int, typer.Option(min=1, help="Edges between the clusters; the paper does not say.")
    ] = 2,
    repetitions: Annotated[int, typer.Option(min=1, help="Runs behind every panel.")] = 100,
    seed: _Seed = 0,
    as_json: o.AsJson = False,
) -> None:
    """Draw the two figures of the paper: circles and moons, without privacy and at three epsilons.

    PTClust runs with the scales that the paper prints; the report says what they truly guarantee.
    """
    from ptclust.cli._terminal import say, stages
    from ptclust.experiments.figures import run_figures

    command = "ptclust reproduce figures"
    for name, value, default in (
        ("cross-edges", cross_edges, 2),
        ("repetitions", repetitions, 100),
        ("seed", seed, 0),
    ):
        command += f" --{name} {value}" * (value != default)
    with stages() as stage:
        report = run_figures(
            output,
            cross_edges=cross_edges,
            repetitions=repetitions,
            seed=seed,
            command=command,
            stage=stage,
        )
    typer.echo(report.to_json() if as_json else report.to_markdown())
    say(f"Figures (PNG and SVG) and report are in {output}")


@reproduce.command("tables")
def tables(
    output: _Output = Path("ptclust-tables"),
    quick: _Quick = False,
    repetitions: _Repetitions = None,
    seed: _Seed = 0,
    resume: _Resume = True,
    as_json: o.AsJson = False,
) -> None:
    """Measure the paper's PTClust on its graphs: ARI, clusters and singletons, with published and sound noise.

    Noise is reproducible here, for speed and repetition: nothing of this is private, nor need it be.
    """
    from ptclust.cli._terminal import say, stages
    from ptclust.experiments.tables import Grid, run_tables
    from ptclust.experiments.tables_report import TablesReport

    grid = Grid.quick() if quick else Grid.full()
    command = "ptclust reproduce tables" + " --quick" * quick
    if repetitions is not None:
        grid = grid.with_repetitions(repetitions)
        command += f" --repetitions {repetitions}"
    command += f" --seed {seed}" * (seed != 0)
    with stages() as stage:
        records = run_tables(output, grid, seed=seed, resume=resume, stage=stage)
    report = TablesReport(records, grid, command)
    report.save(output)
    typer.echo(report.to_json() if as_json else report.to_markdown())
    say(f"{len(records):,} runs; tables and results are in {output}")


@reproduce.command("utility")
def utility(
    output: _Output = Path("ptclust-utility"),
    quick: _Quick = False,
    repetitions: _Repetitions = None,
    nodes: Annotated[
        Optional[list[int]],  # noqa: UP045
        typer.Option(min=1, help="Only planted graphs of this size; may be given repeatedly."),
    ] = None,
    without: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="Leave this setting out; may be given repeatedly."),
    ] = None,
    seed: _Seed = 1000,
    resume: _Resume = True,
    as_json: o.AsJson = False,
) -> None:
    """Measure how well known clusters are found, against epsilon, for every method and control (docs/utility.md).

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
    if nodes:
        effort = effort.with_nodes(nodes)
        command += "".join(f" --nodes {n}" for n in nodes)
    if without:
        effort = effort.without(without)
        command += "".join(f" --without {name}" for name in without)
    command += f" --seed {seed}" * (seed != 1000)
    with stages() as stage:
        records = run_utility(output, effort, seed=seed, resume=resume, stage=stage)
        stage("Drawing")
        report = UtilityReport(records, command, effort.settings)
        report.save(output)
    typer.echo(report.to_json() if as_json else report.to_markdown())
    say(f"{len(records):,} runs; tables, figures and results are in {output}")


@reproduce.command("bounds")
def bounds(
    output: _Output = Path("ptclust-bounds"),
    quick: _Quick = False,
    seed: _Seed = 0,
    resume: _Resume = True,
    as_json: o.AsJson = False,
) -> None:
    """Set the bounds of the theory beside simulated frequencies (docs/proofs/bounds.md).

    Nothing of this is private, nor need it be.
    """
    from ptclust.cli._terminal import say, stages
    from ptclust.experiments.bounds import Effort, run_bounds
    from ptclust.experiments.bounds_report import BoundsReport

    command = "ptclust reproduce bounds" + " --quick" * quick + f" --seed {seed}" * (seed != 0)
    with stages() as stage:
        effort = Effort.quick() if quick else Effort.full()
        records = run_bounds(output, effort, seed=seed, resume=resume, stage=stage)
        stage("Drawing")
        report = BoundsReport(records, command)
        report.save(output)
    typer.echo(report.to_json() if as_json else report.to_markdown())
    say(f"{len(records):,} cases; tables, figure and results are in {output}")


@reproduce.command("certificates")
def certificates(
    output: _Output = Path("ptclust-certificates"),
    quick: _Quick = False,
    seed: _Seed = 0,
    as_json: o.AsJson = False,
) -> None:
    """Count how often recovery by DBMSTClu is certified, and how often it happens (docs/proofs/recovery.md)."""
    from ptclust.cli._terminal import say, stages
    from ptclust.experiments.certificates import CertificatesReport, run_certificates

    command = (
        "ptclust reproduce certificates" + " --quick" * quick + f" --seed {seed}" * (seed != 0)
    )
    with stages() as stage:
        shares = run_certificates(quick=quick, seed=seed, stage=stage)
    report = CertificatesReport(shares, command)
    report.save(output)
    typer.echo(report.to_json() if as_json else report.to_markdown())
    say(f"{sum(share.trees for share in shares):,} trees; table and results are in {output}")


@reproduce.command("shift")
def shift(
    repetitions: Annotated[int, typer.Option(min=1, help="Repetitions of every run.")] = 6,
    seed: _Seed = 0,
) -> None:
    """Compare rules for the shift tau of released weights (docs/decisions/0006-shift.md)."""
    from ptclust.cli._terminal import stages
    from ptclust.experiments.shift import compare_shifts

    with stages() as stage:
        table = compare_shifts(repetitions, seed=seed, stage=stage)
    typer.echo(table)
