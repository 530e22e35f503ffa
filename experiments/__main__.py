"""``python -m experiments NAME [OPTIONS]``, which is ``make NAME ARGS="[OPTIONS]"``.

Noise is reproducible in all experiments, for speed and repetition: nothing of this is private, nor
need it be.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments._summary import Report, save_report
from ptclust.cli import main
from ptclust.cli._options import AsJson
from ptclust.cli._terminal import progress_display, say
from ptclust.errors import UsageError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Repeat the experiments of the documentation.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_Output = Annotated[
    Path, typer.Option("--output", "-o", help="Directory for results, tables and figures.")
]
_Quick = Annotated[bool, typer.Option("--quick", help="A coarser grid: a minute or two.")]
_Repetitions = Annotated[
    int | None,
    typer.Option(min=1, help="Repetitions of every run, instead of what the grid has."),
]
_Runs = Annotated[int, typer.Option(min=1, help="Repetitions of every run.")]
_Rounds = Annotated[int, typer.Option(min=1, help="Rounds; the median counts.")]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of graphs and noise.")]
_File = Annotated[
    Path, typer.Option("--output", "-o", help="Write the measurements to this JSON file too.")
]
_Visits = Annotated[int, typer.Option(min=1000, help="Rows of the table.")]
_Persons = Annotated[int, typer.Option(min=100, help="Persons in it.")]
_Places = Annotated[int, typer.Option(min=10, help="Public places.")]
_Resume = Annotated[
    bool,
    typer.Option(
        "--resume/--restart", help="Go on where an interrupted run stopped, or start anew."
    ),
]
_NOT_OF_THE_RESULT = ("output", "resume", "as_json")


def _command(context: typer.Context) -> str:
    """Return what to type to get the same result again."""
    options: list[str] = []
    for parameter in context.command.params:
        name, value = str(parameter.name), context.params[str(parameter.name)]
        if name in _NOT_OF_THE_RESULT or value in (None, [], (), parameter.default):
            continue
        option = f"--{name.replace('_', '-')}"
        if value is True:
            options.append(option)
        else:
            values = value if isinstance(value, (list, tuple)) else [value]
            options += [f"{option} {each}" for each in values]
    given = f' ARGS="{" ".join(options)}"' if options else ""
    return f"make {context.info_name}{given}"


def _show(report: Report, message: str | None = None, *, as_json: bool) -> None:
    typer.echo(report.to_json() if as_json else report.to_markdown())
    if message is not None:
        say(message)


@app.command()
def pictures(output: _Output = Path("docs/images")) -> None:
    """Draw the pictures of README and documentation; that of the report needs a browser."""
    from experiments.pictures import run_pictures

    with progress_display() as progress:
        written = run_pictures(output, progress)
    say(f"Written: {', '.join(map(str, written))}")


@app.command()
def ablation(
    variant: Annotated[
        list[str] | None,
        typer.Option(help="Only variants with this word in their name; may be given repeatedly."),
    ] = None,
) -> None:
    """Say what every rule and constant of the default clusterer buys (decision 14)."""
    from experiments.ablation import run_ablation

    for line in run_ablation(variant or ()):
        typer.echo(line)


@app.command()
def series(
    repetitions: _Runs = 4,
    seed: _Seed = 0,
    rides: Annotated[
        Path, typer.Option(help="Bike rides with the columns started_at, origin, destination.")
    ] = Path("../shared/data/bikeshare-rides.parquet"),
) -> None:
    """Say which moves are named in generated years, and which numbers clusters of rides keep."""
    import json

    from experiments.series import run_series

    with progress_display() as progress:
        found = run_series(repetitions, seed, rides, progress)
    del found["rows"]
    typer.echo(json.dumps(found, indent=2))


@app.command()
def figures(
    context: typer.Context,
    output: _Output = Path("build/figures"),
    cross_edges: Annotated[
        int, typer.Option(min=1, help="Edges between the clusters; the paper does not say.")
    ] = 2,
    repetitions: _Runs = 100,
    seed: _Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw the two figures of the paper: circles and moons, without privacy and at three epsilons.

    PTClust runs with the scales that the paper prints; the report says what they truly guarantee.
    """
    from experiments.figures import run_figures

    with progress_display() as progress:
        report = run_figures(
            output,
            cross_edges=cross_edges,
            repetitions=repetitions,
            seed=seed,
            command=_command(context),
            progress=progress,
        )
    _show(report, f"Figures (PNG and SVG) and report are in {output}", as_json=as_json)


@app.command()
def tables(
    context: typer.Context,
    output: _Output = Path("build/tables"),
    quick: _Quick = False,
    repetitions: _Repetitions = None,
    seed: _Seed = 0,
    resume: _Resume = True,
    as_json: AsJson = False,
) -> None:
    """Measure the paper's PTClust on its graphs, with published and sound noise."""
    from experiments.tables import Grid, run_tables
    from experiments.tables_report import TablesReport

    grid = Grid.quick() if quick else Grid.full()
    if repetitions is not None:
        grid = grid.with_repetitions(repetitions)
    with progress_display() as progress:
        records = run_tables(output, grid, seed=seed, resume=resume, progress=progress)
        report = TablesReport(records, grid, _command(context))
        report.save(output)
    _show(report, f"{len(records):,} runs; tables and results are in {output}", as_json=as_json)


@app.command()
def utility(
    context: typer.Context,
    output: _Output = Path("build/utility"),
    quick: _Quick = False,
    targets: Annotated[
        bool,
        typer.Option("--targets", help="Of planted graphs, no more than what targets ask for."),
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(help="Only this section: planted, heterogeneous or real."),
    ] = None,
    repetitions: _Repetitions = None,
    nodes: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Only planted graphs of this size; may be given repeatedly."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Leave this setting out; may be given repeatedly."),
    ] = None,
    seed: _Seed = 1000,
    resume: _Resume = True,
    as_json: AsJson = False,
) -> None:
    """Measure how well known clusters are found, against epsilon (docs/utility.md)."""
    from experiments.utility import Effort, run_utility
    from experiments.utility_report import UtilityReport

    effort = Effort.quick() if quick else Effort.targets() if targets else Effort.full()
    if only is not None:
        effort = effort.only(only)
    if repetitions is not None:
        effort = effort.with_repetitions(repetitions)
    if nodes:
        effort = effort.with_nodes(nodes)
    if without:
        effort = effort.without(without)
    with progress_display() as progress:
        records = run_utility(output, effort, seed=seed, resume=resume, progress=progress)
        progress("Drawing")
        report = UtilityReport(records, _command(context), effort.settings)
        report.save(output)
    message = f"{len(records):,} runs; tables, figures and results are in {output}"
    _show(report, message, as_json=as_json)


@app.command()
def bounds(
    context: typer.Context,
    output: _Output = Path("build/bounds"),
    quick: _Quick = False,
    seed: _Seed = 0,
    resume: _Resume = True,
    as_json: AsJson = False,
) -> None:
    """Set the bounds of the theory beside simulated frequencies (docs/proofs/bounds.md)."""
    from experiments.bounds import Effort, run_bounds
    from experiments.bounds_report import BoundsReport

    with progress_display() as progress:
        effort = Effort.quick() if quick else Effort.full()
        records = run_bounds(output, effort, seed=seed, resume=resume, progress=progress)
        progress("Drawing")
        report = BoundsReport(records, _command(context))
        report.save(output)
    message = f"{len(records):,} cases; tables, figure and results are in {output}"
    _show(report, message, as_json=as_json)


@app.command()
def certificates(
    context: typer.Context,
    output: _Output = Path("build/certificates"),
    quick: _Quick = False,
    seed: _Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Count how often recovery by DBMSTClu is certified, and happens (docs/proofs/recovery.md)."""
    from experiments.certificates import CertificatesReport, run_certificates

    with progress_display() as progress:
        shares = run_certificates(quick=quick, seed=seed, progress=progress)
    report = CertificatesReport(shares, _command(context))
    report.save(output)
    n_trees = sum(share.trees for share in shares)
    _show(report, f"{n_trees:,} trees; table and results are in {output}", as_json=as_json)


@app.command()
def shift(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the table to this file too.")
    ] = Path("build/shift.md"),
    repetitions: _Runs = 6,
    seed: _Seed = 0,
) -> None:
    """Compare rules for the shift tau of released weights (docs/decisions/0006-shift.md)."""
    from experiments.shift import compare_shifts

    with progress_display() as progress:
        table = compare_shifts(repetitions, seed=seed, progress=progress)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(table + "\n", encoding="utf-8")
    typer.echo(table)


@app.command()
def bench(
    context: typer.Context,
    output: _Output = Path("build/bench"),
    largest: Annotated[
        int, typer.Option(min=100_000, help="Edges of the largest graphs.")
    ] = 10_000_000,
    rounds: _Rounds = 3,
    graph: Annotated[
        list[str] | None,
        typer.Option(help="Only this graph, by name, and no noise; may be repeated."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny graphs: does everything run?")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare CPU time and memory with scipy, igraph and others (docs/performance.md)."""
    from experiments.benchmark import GRAPHS, full_cases, quick_cases, run_benchmark
    from experiments.benchmark_report import BenchmarkReport
    from experiments.noise_speed import run_noise_speed

    wanted = graph or list(GRAPHS)
    if unknown := [each for each in wanted if each not in GRAPHS]:
        raise UsageError(f"a graph is one of {', '.join(GRAPHS)}, not {unknown[0]!r}")
    cases = quick_cases() if quick else full_cases(largest)
    cases = [each for each in cases if each.graph in wanted]
    values = 10_000 if quick else largest
    with progress_display() as progress:
        measured = run_benchmark(cases, rounds, progress)
        noise = None if graph else run_noise_speed(values, min(values, 200_000), rounds, progress)
    report = BenchmarkReport(measured, noise, rounds, _command(context))
    output.mkdir(parents=True, exist_ok=True)
    save_report(report, output, "performance")
    _show(
        report, f"{len(measured)} measurements; page and results are in {output}", as_json=as_json
    )


@app.command("bench-building")
def bench_building(
    output: _File = Path("build/bench-building.json"),
    visits: _Visits = 100_000_000,
    persons: _Persons = 1_000_000,
    places: _Places = 2_000,
    as_json: AsJson = False,
) -> None:
    """Compare CPU time and memory of graph_from_visits with a plain group-by of the same file."""
    from experiments.building import run_building

    with progress_display() as progress:
        report = run_building(visits, persons, places, progress)
    report.save(output)
    _show(report, as_json=as_json)


@app.command("bench-database")
def bench_database(
    output: _File = Path("build/bench-database.json"),
    visits: _Visits = 10_000_000,
    persons: _Persons = 1_000_000,
    places: _Places = 2_000,
    as_json: AsJson = False,
) -> None:
    """Compare CPU time and memory of building from databases with the same from Parquet."""
    from experiments.database import run_databases

    with progress_display() as progress:
        report = run_databases(visits, persons, places, progress)
    report.save(output)
    _show(report, as_json=as_json)


@app.command("bench-command")
def bench_command(
    output: _File = Path("build/bench-command.json"),
    largest: Annotated[
        int,
        typer.Option(
            min=10_000, help="Edges of the largest file; others have 10 and 100 times fewer."
        ),
    ] = 10_000_000,
    rounds: _Rounds = 3,
    as_json: AsJson = False,
) -> None:
    """Compare `ptclust cluster`, from file to files, with reading that file and scipy's tree."""
    from experiments.command import run_commands

    with progress_display() as progress:
        report = run_commands([largest // 100, largest // 10, largest], rounds, progress)
    report.save(output)
    _show(report, as_json=as_json)


@app.command("bench-spark")
def bench_spark(
    output: _File = Path("build/bench-spark.json"),
    visits: _Visits = 100_000_000,
    persons: _Persons = 1_000_000,
    places: _Places = 2_000,
    nodes: Annotated[int, typer.Option(min=100, help="Nodes of the large graph.")] = 200_000,
    edges: Annotated[int, typer.Option(min=1000, help="Its edges.")] = 40_000_000,
    as_json: AsJson = False,
) -> None:
    """Compare the Spark engine on this machine with one process: a build, and a noisy tree."""
    from experiments.spark_speed import run_spark_speed

    sizes = {"n_visits": visits, "n_persons": persons, "n_places": places}
    with progress_display() as progress:
        report = run_spark_speed({**sizes, "n_nodes": nodes, "n_edges": edges}, progress)
    report.save(output)
    _show(report, as_json=as_json)


@app.command("scale")
def scale(
    measurements: Annotated[
        Path, typer.Argument(help="What bench-spark wrote.", exists=True, dir_okay=False)
    ] = Path("build/bench-spark.json"),
) -> None:
    """Print the table of docs/scale.md, from what bench-spark measured."""
    from experiments.scale import table_of

    typer.echo(table_of(measurements))


@app.command("bench-noise")
def bench_noise(
    values: Annotated[int, typer.Option(min=5000, help="Values that get noise.")] = 10_000_000,
    opendp_values: Annotated[
        int, typer.Option(min=1000, help="Values that get noise of OpenDP; its time is linear.")
    ] = 200_000,
    repeat: Annotated[
        int, typer.Option(min=1, help="Measurements of each; the median counts.")
    ] = 3,
    as_json: AsJson = False,
) -> None:
    """Compare the CPU time of exact lattice noise with OpenDP's."""
    from experiments.noise_speed import run_noise_speed

    with progress_display() as progress:
        report = run_noise_speed(values, opendp_values, repeat, progress)
    _show(report, as_json=as_json)


@app.command()
def prediction(
    context: typer.Context,
    output: _Output = Path("build/prediction"),
    example: Annotated[
        list[str] | None,
        typer.Option(help="Only this example; may be given repeatedly."),
    ] = None,
    repetitions: _Runs = 2,
    seed: _Seed = 0,
    resume: _Resume = True,
    as_json: AsJson = False,
) -> None:
    """Compare what `plan --predict` says with what is reached, on examples with known clusters."""
    from experiments.prediction import PredictionReport, run_prediction

    with progress_display() as progress:
        rows = run_prediction(
            output,
            examples=example,
            repetitions=repetitions,
            seed=seed,
            resume=resume,
            progress=progress,
        )
    report = PredictionReport(rows, _command(context))
    save_report(report, output, "prediction")
    _show(report, f"{len(report.misses)} of {len(rows)} outside; in {output}", as_json=as_json)


@app.command()
def certainty(
    context: typer.Context,
    output: _Output = Path("build/certainty"),
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only this graph, by name; may be given repeatedly."),
    ] = None,
    repetitions: _Runs = 2,
    seed: _Seed = 5000,
    resume: _Resume = True,
    as_json: AsJson = False,
) -> None:
    """Compare probabilities of nodes and clusters with what is true (docs/certainty.md)."""
    from experiments.certainty import CertaintyReport, run_certainty

    with progress_display() as progress:
        rows = run_certainty(
            output,
            only=only,
            repetitions=repetitions,
            seed=seed,
            resume=resume,
            progress=progress,
        )
    report = CertaintyReport(rows, _command(context))
    report.save(output)
    _show(report, f"{len(rows):,} releases; tables and picture are in {output}", as_json=as_json)


@app.command()
def calibration(
    context: typer.Context,
    output: _Output = Path("build/calibration"),
    setting: Annotated[
        list[str] | None,
        typer.Option(help="Only this setting, by name, and no promise; may be repeated."),
    ] = None,
    promises_only: Annotated[
        bool, typer.Option(help="Only what was requested at a given epsilon; nothing is searched.")
    ] = False,
    repetitions: _Runs = 3,
    seed: _Seed = 1000,
    resume: _Resume = True,
    as_json: AsJson = False,
) -> None:
    """Search the epsilon that clusters need, now and by way of zCDP (docs/calibration.md)."""
    from experiments.calibration import CalibrationReport, run_calibration

    with progress_display() as progress:
        rows = run_calibration(
            output,
            repetitions,
            only=setting,
            promises_only=promises_only,
            seed=seed,
            resume=resume,
            progress=progress,
        )
    report = CalibrationReport(rows, repetitions, _command(context))
    report.save(output)
    _show(report, f"{len(rows)} families; page and results are in {output}", as_json=as_json)


@app.command()
def trips(
    context: typer.Context,
    output: _Output = Path("build/trips"),
    clusterer: Annotated[str, typer.Option(help="Clusterer, by name.")] = "auto",
    repetitions: _Runs = 10,
    seed: _Seed = 0,
    resume: _Resume = True,
    as_json: AsJson = False,
) -> None:
    """Publish clusters of trips with a guarantee per person (docs/examples/trips.md)."""
    from experiments.trips import TripsReport, run_trips

    with progress_display() as progress:
        rows = run_trips(
            output,
            clusterer=clusterer,
            repetitions=repetitions,
            seed=seed,
            resume=resume,
            progress=progress,
        )
    report = TripsReport(rows, clusterer, repetitions, _command(context))
    save_report(report, output, "trips")
    _show(report, f"{len(rows)} settings; page and results are in {output}", as_json=as_json)


@app.command("ledger-stress")
def ledger_stress(
    parts: Annotated[
        list[str] | None,
        typer.Argument(help="Of shares, race, chargers, releases; all of them if left out."),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Processes that charge at once.")] = 8,
    attempts: Annotated[int, typer.Option(min=1, help="Charges that each attempts.")] = 2000,
    admitted: Annotated[int, typer.Option(min=1, help="Charges that the budget admits.")] = 5000,
    kills: Annotated[int, typer.Option(min=1, help="Processes to kill, in each part.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the instants.")] = 0,
) -> None:
    """Put a ledger under stress (docs/ledger.md); stop at the first broken promise."""
    from experiments.ledger_stress import Numbers, run_stress

    for sentence in run_stress(parts or [], Numbers(processes, attempts, admitted, kills, seed)):
        typer.echo(sentence)


@app.command()
def crossings(
    options: Annotated[
        list[str] | None,
        typer.Argument(help="Options of `ptclust cluster`, after `--`."),
    ] = None,
) -> None:
    """Count how often a run of `ptclust cluster` crosses the borders of packages."""
    from experiments.crossings import CLUSTER_OPTIONS, trace_cluster

    typer.echo(trace_cluster(options or CLUSTER_OPTIONS).to_text())


if __name__ == "__main__":
    main(app, "experiments")
