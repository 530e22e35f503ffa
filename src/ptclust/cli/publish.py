"""``ptclust plan``, ``cluster`` and ``series``: what a release would be, and how it is made."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ptclust
from ptclust._markup import counted
from ptclust._options import Option
from ptclust.cli import _options as o
from ptclust.cli._outputs import (
    STDOUT,
    held_outputs,
    ledger_files,
    place,
    print_result,
    read_places,
    say_how_sure,
    write_release,
    write_views,
)
from ptclust.cli._terminal import in_options, say
from ptclust.errors import BudgetError, UsageError

if TYPE_CHECKING:
    from ptclust.engines.edges import SparkEdges
    from ptclust.inputs import GraphFile
    from ptclust.pipeline import ReleaseRequest


@dataclass(frozen=True, kw_only=True)
class PredictionOptions:
    """Whether to predict what will be found, and how."""

    predict: Annotated[
        bool, Option("Predict how well clusters would be found, on graphs planted like real ones.")
    ] = False
    clusters: Annotated[
        int | None, Option("How many clusters you expect; by default a range is tried.")
    ] = None
    contrast: Annotated[
        float | None,
        Option("How many times heavier pairs within them are; by default a range is tried."),
    ] = None
    repetitions: Annotated[
        int | None, Option("How many graphs are planted; by default 39, or 19.", min=1)
    ] = None
    plot: Annotated[Path | None, Option("Draw the prediction to this PNG, SVG or PDF file.")] = None

    def check(self, file: GraphFile, shared: o.SeriesOptions) -> None:
        """Refuse options of a prediction that is not asked for, or that cannot be made."""
        if not self.predict:
            for name, value in vars(self).items():
                if value not in (False, None):
                    raise UsageError(f"--{name} is about the prediction: give --predict, too")
        elif shared.releases is not None or shared.shares is not None:
            raise UsageError("--predict is about one release: leave --releases and --shares out")
        elif file.engine == "spark":
            raise UsageError("--predict plants clusters on this machine: leave --engine spark out")


@o.command
def plan(
    graph: o.GraphArguments,
    options: o.PlanArguments,
    shared: o.SeriesOptions,
    prediction: PredictionOptions,
    records: Annotated[
        float | None, Option("About how many records there are, as known without looking.")
    ] = None,
    persons: Annotated[
        float | None,
        Option("About how many persons, where they are protected; compares caps, too."),
    ] = None,
    overwrite: o.Overwrite = None,
    as_json: o.AsJson = False,
) -> None:
    """Show every mechanism with its noise, from public numbers alone; spends nothing.

    Of a table only the two columns of the nodes are read: it need not have weights at all.
    """
    from ptclust.building import caps
    from ptclust.pipeline import settled_sensitivity
    from ptclust.planning.plan import make_plan

    file = graph.file(weighted=False)
    prediction.check(file, shared)
    request, built = options.request(file), file.provenance
    known = {} if built is None else built.details
    total = caps.counted(known, persons=persons, records=records)
    with held_outputs(
        {"--plot": prediction.plot}, {"the graph": graph.edges}, overwrite
    ) as progress:
        progress("Planning")
        topology = file.read_topology()
        settled_sensitivity(built, topology.n_edges, request.sensitivity)
        if (budget := shared.budget(request)) is not None:
            from ptclust.series import plan_series

            series = plan_series(topology, request, budget)
            print_result(series.to_dict(), in_options(series.to_text()), as_json=as_json)
            return
        planned = make_plan(topology, request)
        document, pages = planned.to_dict(), [planned.to_text()]
        if built is not None:
            document["provenance"] = built.to_dict()
            pages[0] = f"{built.words}\n{pages[0]}"
        if built is not None and caps.caps_of(known) and persons and records:
            compared = caps.compared(built, topology, request, persons, records)
            document["caps"] = compared
            pages.append(caps.to_text(compared, caps.caps_of(known)))
        if prediction.predict:
            say("Predicting: planted graphs are published many times, for up to a minute or so.")
            predicted = ptclust.predict(
                topology,
                planned=request.epsilon,
                delta=request.delta,
                sensitivity=request.sensitivity,
                mechanism=request.mechanism,
                clusterer=request.clusterer,
                split=request.split,
                calibration=request.calibration,
                clip=request.clip or caps.range_of(known),
                kind=file.known_kind or "distance",
                total=total,
                n_clusters=prediction.clusters,
                contrast=prediction.contrast,
                repetitions=prediction.repetitions,
                progress=progress,
            )
            document["prediction"] = predicted.to_dict()
            pages.append(predicted.to_text())
            if prediction.plot is not None:
                from ptclust.drawing.plots import save_plot

                progress(f"Drawing {prediction.plot.name}")
                save_plot(predicted.plot, prediction.plot, size=(7.0, 4.2))
    print_result(document, in_options("\n\n".join(pages)), as_json=as_json)


@o.command
def cluster(
    options: o.ReleaseArguments,
    output: Annotated[
        Path | None, Option("Write the release to this JSON file, or - (stdout).", short="-o")
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
    before = None if follows is None else ptclust.Release.load(follows)
    remedy = "running again spends the budget again: "
    streamed = output == STDOUT  # it is written once, when all is known
    with held_outputs(files, reads, overwrite, as_json=as_json, remedy=remedy) as progress:
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
        coordinates = known.get("coordinates")
        write_views(release, labels, plot, escape_formulas=escape_formulas, coordinates=coordinates)
        if report is not None:
            who = publisher.given
            ptclust.write_report(release, report, **known, publisher=who, overwrite=True)
    if as_json:
        typer.echo(json.dumps(release.statement.to_dict(), indent=2))
    say(release.statement.sentence)
    again = "Running again spends the budget again; using the release costs nothing."
    say(f"{release.summary.found} in {place(output)}." + f" {again}" * release.statement.private)
    if before is not None:
        say(release.compare(before).changes.sentence)
    say_how_sure(release)
    if (account := request.payment.account) is not None:
        say(f"Dataset {account.dataset!r} has {account.left} left of {account.total}.")


def _read(file: GraphFile, request: ReleaseRequest, progress: Any) -> ptclust.Graph | SparkEdges:
    """Read a graph; say what was read, and what of it will be public."""
    from ptclust.inputs import disclosure

    progress(f"Reading {file.name}")
    graph = file.read()
    say(disclosure(file, graph))
    file.check_topology(graph.topology, request)
    return graph


def _hand_over(release: ptclust.Release, output: Path, request: ReleaseRequest) -> None:
    """Write a release that is paid for, and confirm the payment; or say what is lost."""
    payment = request.payment
    try:
        write_release(release, output)
    except BaseException:
        spent = " and its budget is spent" * (request.random_state is None)
        charged = ""
        if payment.ledger is not None:
            charged = (
                f": dataset {payment.dataset!r} was charged; `ptclust ledger history` shows it"
            )
        say(f"The release is lost{spent}{charged}.")
        raise
    payment.confirm(release.statement.id)


def _show_dry_run(file: GraphFile, request: ReleaseRequest, *, as_json: bool) -> None:
    """Show a plan, and what it would leave in the ledger; BudgetError if that does not cover it."""
    from ptclust.pipeline import settled_sensitivity
    from ptclust.planning.plan import make_plan

    topology, payment, built = file.read_topology(), request.payment, file.provenance
    file.check_topology(topology, request)
    settled_sensitivity(built, topology.n_edges, request.sensitivity)
    plan = make_plan(topology, request)
    unsettled = payment.unsettled(() if built is None else built.spent)
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
    print_result(document, in_options("\n".join(lines)), as_json=as_json)
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
    file = graph.file()
    request = replace(options, ledger=None, dataset=None).request(file)
    if (budget := shared.budget(request)) is None:
        raise UsageError("give the number of releases: --releases 12, or --shares 1,1,2")
    given = {
        each: getattr(budget, each) for each in ("epsilon", "delta", "releases", "shares", "per")
    }
    made = ptclust.Series(folder, **given, name=options.dataset, ledger=options.ledger)
    reads = {"the graph": graph.edges, "--coordinates": places.coordinates}
    with held_outputs({"--report": report, "--whole": whole}, reads, overwrite) as progress:
        name = graph.edges.stem if period is None else period
        read = lambda: _read(file, request, progress)  # noqa: E731
        release = made.release(read, request, name, progress=progress)
        changes = made.changes.get(name)
        if report is not None:
            from ptclust.series.page import write_series_report

            coordinates = read_places(places, release.names).get("coordinates")
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
    say(f"{counted(made.budget.n_releases - made.account.n_charges, 'release')} left.")
