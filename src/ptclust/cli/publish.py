"""``ptclust plan``, ``cluster`` and ``series``: what a release would be, and how it is made."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptclust._options import Option
from ptclust.cli import _options as o
from ptclust.cli._outputs import (
    STDOUT,
    held_outputs,
    ledger_files,
    place,
    read_places,
    show_advice,
    show_certainty,
    write_release,
    write_views,
)
from ptclust.cli._terminal import in_options, progress_display, say
from ptclust.errors import BudgetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptclust.engines.edges import SparkEdges
    from ptclust.graph import Graph
    from ptclust.inputs import GraphFile
    from ptclust.pipeline import ReleaseRequest
    from ptclust.release import Release


@o.command
def plan(
    graph: o.GraphArguments,
    options: o.PlanArguments,
    shared: o.SeriesOptions,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict",
            help="Predict how well clusters would be found, on graphs planted like real ones.",
        ),
    ] = False,
    records: Annotated[
        float | None, Option("About how many records there are, as known without looking.")
    ] = None,
    persons: Annotated[
        float | None,
        Option("About how many persons, where they are protected; compares caps, too."),
    ] = None,
    clusters: Annotated[
        int | None, Option("How many clusters you expect; by default a range is tried.")
    ] = None,
    contrast: Annotated[
        float | None,
        Option("How many times heavier pairs within them are; by default a range is tried."),
    ] = None,
    repetitions: Annotated[
        int | None, Option("How many graphs are planted; by default 39, or 19.", min=1)
    ] = None,
    plot: Annotated[
        Path | None, Option("Draw the prediction to this PNG, SVG or PDF file.")
    ] = None,
    overwrite: o.Overwrite = None,
    as_json: o.AsJson = False,
) -> None:
    """Show every mechanism with its noise, from public numbers alone; spends nothing.

    Of a table only the two columns of the nodes are read: it need not have weights at all.
    """
    from ptclust.building.caps import caps_of, compared, counted, range_of, to_text
    from ptclust.pipeline import settled_sensitivity
    from ptclust.planning.plan import make_plan

    file = graph.file(weighted=False)
    said = {"clusters": clusters, "contrast": contrast, "repetitions": repetitions, "plot": plot}
    _check_prediction(predict, file, shared, said)
    request, built = options.request(file), file.provenance
    known = {} if built is None else built.details
    total = counted(known, persons=persons, records=records)
    caps = prediction = series = None
    with (
        held_outputs({"--plot": plot}, {"the graph": graph.edges}, overwrite),
        progress_display() as progress,
    ):
        progress("Planning")
        topology = file.read_topology()
        settled_sensitivity(built, topology.n_edges, request.sensitivity)
        budget = shared.budget(request)
        if budget is not None:
            from ptclust.series import plan_series

            series = plan_series(topology, request, budget)
        planned = make_plan(topology, request)
        if built is not None and caps_of(known) and persons and records:
            caps = compared(built, topology, request, persons, records)
        if predict:
            from ptclust.planning import predict as predicted

            say("Predicting: planted graphs are published many times, for up to a minute or so.")
            prediction = predicted(
                topology,
                planned=request.epsilon,
                delta=request.delta,
                sensitivity=request.sensitivity,
                mechanism=request.mechanism,
                clusterer=request.clusterer,
                split=request.split,
                calibration=request.calibration,
                clip=request.clip or range_of(known),
                kind=file.known_kind or "distance",
                total=total,
                n_clusters=clusters,
                contrast=contrast,
                repetitions=repetitions,
                progress=progress,
            )
        if prediction is not None and plot is not None:
            from ptclust.drawing.plots import save_plot

            progress(f"Drawing {plot.name}")
            save_plot(prediction.plot, plot, size=(7.0, 4.2))
    if series is not None:
        _show(series.to_dict(), series.to_text(), as_json=as_json)
        return
    document, pages = planned.to_dict(), [planned.to_text()]
    if built is not None:
        document["provenance"] = built.to_dict()
        pages[0] = f"{built.words}\n{pages[0]}"
    if caps is not None:
        document["caps"] = caps
        pages.append(to_text(caps, caps_of(known)))
    if prediction is not None:
        document["prediction"] = prediction.to_dict()
        pages.append(prediction.to_text())
    _show(document, "\n\n".join(pages), as_json=as_json)


def _check_prediction(
    predict: bool, file: GraphFile, shared: o.SeriesOptions, said: dict[str, Any]
) -> None:
    """Refuse options of a prediction that is not asked for, or that cannot be made."""
    if not predict:
        for name, value in said.items():
            if value is not None:
                raise UsageError(f"--{name} is about the prediction: give --predict, too")
    elif shared.releases is not None or shared.shares is not None:
        raise UsageError("--predict is about one release: leave --releases and --shares out")
    elif file.engine == "spark":
        raise UsageError("--predict plants clusters on this machine: leave --engine spark out")


def _show(document: dict[str, Any], text: str, *, as_json: bool) -> None:
    typer.echo(json.dumps(document, indent=2) if as_json else in_options(text))


@o.command
def cluster(
    options: o.ReleaseArguments,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the release to this JSON file, or - (stdout)."),
    ] = None,
    labels: o.LabelsFile = None,
    follows: Annotated[
        Path | None,
        Option("Number the clusters as in this earlier release, where most nodes stay."),
    ] = None,
    escape_formulas: o.EscapeFormulas = True,
    plot: o.Plot = None,
    report: o.Report = None,
    overwrite: o.Overwrite = None,
    dry_run: Annotated[bool, Option("Show the plan and stop; spends nothing.")] = False,
    as_json: o.AsJson = False,
    *,
    graph: o.GraphArguments,
    places: o.PlaceOptions,
    publisher: o.PublisherOptions,
) -> None:
    """Publish the clusters of a graph; its weights stay differentially private.

    Give at least one of --l1, --l2, --linf, by how much one privacy unit can move the weights;
    graphs of `ptclust build` carry it. Every run spends its budget again, so an existing
    release is kept unless --overwrite names it.
    """
    from ptclust._files import space_for
    from ptclust._memory import keep_freed_memory
    from ptclust.graph.labels import written_names
    from ptclust.pipeline import prepare
    from ptclust.release import Release

    keep_freed_memory()
    file = graph.file()
    if dry_run:
        _show_dry_run(file, options.request(file), as_json=as_json)
        return
    if places.coordinates is not None and plot is None and report is None:
        raise UsageError("--coordinates are for pictures: give --report report.html, or --plot")
    if publisher.given and report is None:
        option = next(iter(publisher.given))
        raise UsageError(f"--{option} is written on the page: give --report report.html, too")
    if output is None:
        raise UsageError("name the file to write the release to: --output release.json")
    files = {"--output": output, "--labels": labels, "--plot": plot, "--report": report}
    reads = {"the graph": graph.edges, "--coordinates": places.coordinates, "--follows": follows}
    reads |= ledger_files(options.ledger)
    before = None if follows is None else Release.load(follows)
    remedy = "running again spends the budget again: "
    streamed = output == STDOUT  # it is written once, when all is known
    with (
        held_outputs(files, reads, overwrite, as_json=as_json, remedy=remedy),
        progress_display() as progress,
    ):
        request = options.request(file)
        private = _read(file, request, progress)
        known = read_places(places, private.topology.names)
        if labels is not None:
            written_names(private.topology.names, escape_formulas=escape_formulas)
        prepared = prepare(private, request)
        with nullcontext() if streamed else space_for(output, prepared.largest_size):
            drawn = prepared.draw(progress)
            if not streamed:
                _hand_over(drawn, output, request)
            try:
                release = prepared.finish(drawn, progress)
                if before is not None:
                    release = release.follow(before)
                if not streamed:
                    write_release(release, output)
            except BaseException:
                if streamed:
                    _hand_over(drawn, output, request)
                kept = "FILE" if streamed else output
                say(
                    f"The published values are paid for and in {place(output)}, not clustered. "
                    f"Cluster them with `ptclust recluster {kept} -o FILE`, which costs nothing."
                )
                raise
        if streamed:
            _hand_over(release, output, request)
        write_views(
            release,
            labels,
            plot,
            escape_formulas=escape_formulas,
            report=report,
            places=known,
            publisher=publisher.given,
        )
    if as_json:
        typer.echo(json.dumps(release.statement.to_dict(), indent=2))
    say(release.statement.sentence)
    again = "Running again spends the budget again; using the release costs nothing."
    say(f"{release.summary.found} in {place(output)}." + f" {again}" * release.statement.private)
    show_certainty(release)
    if before is not None:
        say(release.compare(before).changes.sentence)
    show_advice(release)
    if (account := request.payment.account) is not None:
        say(f"Dataset {account.dataset!r} has {account.left} left of {account.total}.")


def _read(file: GraphFile, request: ReleaseRequest, progress: Any) -> Graph | SparkEdges:
    """Read a graph; say what was read, and what of it will be public."""
    from ptclust.inputs import disclosure

    progress(f"Reading {file.name}")
    graph = file.read()
    say(disclosure(file, graph))
    file.check_topology(graph.topology, request)
    return graph


def _hand_over(release: Release, output: Path, request: ReleaseRequest) -> None:
    """Write a release that is paid for, and confirm the payment."""
    with _lost_on_error(request):
        write_release(release, output)
    request.payment.confirm(release.statement.id)


@contextmanager
def _lost_on_error(request: ReleaseRequest) -> Iterator[None]:
    """Say what a release has cost that was drawn and cannot be handed over."""
    try:
        yield
    except BaseException:
        spent = " and its budget is spent" * (request.random_state is None)
        charged = ""
        if request.payment.ledger is not None:
            dataset = request.payment.dataset
            charged = f": dataset {dataset!r} was charged; `ptclust ledger history` shows it"
        say(f"The release is lost{spent}{charged}.")
        raise


def _show_dry_run(file: GraphFile, request: ReleaseRequest, *, as_json: bool) -> None:
    """Show a plan, and what it would leave in the ledger; BudgetError if that does not cover it."""
    from ptclust.pipeline import settled_sensitivity
    from ptclust.planning.plan import make_plan

    topology, payment = file.read_topology(), request.payment
    file.check_topology(topology, request)
    settled_sensitivity(file.provenance, topology.n_edges, request.sensitivity)
    plan = make_plan(topology, request)
    unsettled = payment.unsettled(() if file.provenance is None else file.provenance.spent)
    refusal, after = None, None
    try:
        after = payment.preview(plan.chosen.spent, unsettled)
    except BudgetError as error:
        refusal = error
    document, lines = plan.to_dict(), [plan.to_text()]
    if payment.ledger is not None:
        document["account_after"] = None if after is None else after.to_dict()
    lines += [f"Charged before it, as it was not yet: {each.words}." for each in unsettled]
    if after is not None:
        left = f"{after.left} of {after.total} to dataset {after.dataset!r}"
        lines.append(f"It would leave {left}.")
    _show(document, "\n".join(lines), as_json=as_json)
    if refusal is not None:
        raise refusal


@o.command
def series(
    options: o.ReleaseArguments,
    folder: Annotated[Path, Option("Folder of the releases, and of the ledger unless --ledger.")],
    shared: o.SeriesOptions,
    period: Annotated[
        str | None, Option("The name of this period; by default that of the file.")
    ] = None,
    report: o.Report = None,
    whole: Annotated[
        Path | None, Option("Write all periods, combined to one release, to this JSON file.")
    ] = None,
    overwrite: o.Overwrite = None,
    as_json: o.AsJson = False,
    *,
    graph: o.GraphArguments,
    places: o.PlaceOptions,
) -> None:
    """Publish the next release of a series; run the same command for every period.

    --epsilon and --delta are the total of all releases, which add up by the tightest rule known. A
    period that was published is not published again and costs nothing, so a run that was killed is
    simply repeated. Clusters keep their numbers; moves beyond noise are reported. With all releases
    made, the next is refused (exit code 4).
    """
    from ptclust.series import Series

    file = graph.file()
    request = replace(options, ledger=None, dataset=None).request(file)
    budget = shared.budget(request)
    if budget is None:
        raise UsageError("give the number of releases: --releases 12, or --shares 1,1,2")
    made = Series(
        folder,
        epsilon=budget.epsilon,
        delta=budget.delta,
        releases=budget.releases,
        shares=budget.shares,
        per=budget.per,
        name=options.dataset,
        ledger=options.ledger,
    )
    reads = {"the graph": graph.edges, "--coordinates": places.coordinates}
    with (
        held_outputs({"--report": report, "--whole": whole}, reads, overwrite),
        progress_display() as progress,
    ):
        name = graph.edges.stem if period is None else period
        read = lambda: _read(file, request, progress)  # noqa: E731
        release = made.release(read, request, name, progress=progress)
        changes = made.changes.get(name)
        if report is not None:
            known = read_places(places, release.names)
            from ptclust.series.page import write_series_report

            coordinates = known.get("coordinates")
            write_series_report(made, report, coordinates=coordinates, overwrite=True)
        if whole is not None:
            made.combined().save(whole, overwrite=True)
    if as_json:
        found = {} if changes is None else {"changes": changes.to_dict()}
        content = {"statement": release.statement.to_dict(), "account": made.account.to_dict()}
        typer.echo(json.dumps(content | found, indent=2))
    say(f"{release.summary.found} for {name!r} in {folder}: {release.statement.caveats[-1]}.")
    if changes is not None:
        say(changes.sentence)
    left = made.budget.n_releases - made.account.n_charges
    say(f"{left} release{'s' * (left != 1)} left.")
