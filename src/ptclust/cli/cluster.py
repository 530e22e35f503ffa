"""``ptclust cluster``: publish the clusters of a graph under differential privacy."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptclust.cli import _options as o

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptclust.graph import Topology
    from ptclust.pipeline import ReleaseRequest
    from ptclust.release import Release


@o.command
def cluster(
    options: o.ReleaseOptions,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the release to this JSON file, or - (stdout)."),
    ] = None,
    labels: o.LabelsFile = None,
    follows: Annotated[
        Path | None,
        typer.Option(help="Number the clusters as in this earlier release, where most nodes stay."),
    ] = None,
    noisy: Annotated[
        Path | None,
        o.more(help="With --engine spark: write all noisy weights to this new folder."),
    ] = None,
    escape_formulas: o.EscapeFormulas = True,
    plot: o.Plot = None,
    report: o.Report = None,
    overwrite: o.Overwrite = None,
    dry_run: Annotated[bool, typer.Option(help="Show the plan and stop; spends nothing.")] = False,
    as_json: o.AsJson = False,
    *,
    graph: o.GraphOptions,
    places: o.PlaceOptions,
    publisher: o.PublisherOptions,
) -> None:
    """Publish the clusters of a graph; its weights stay differentially private.

    Give at least one of --l1, --l2, --linf, by how much one privacy unit can move the weights;
    graphs of `ptclust build` carry it. Every run spends its budget again, so an existing
    release is kept unless --overwrite names it.
    """
    import json

    from ptclust._files import space_for
    from ptclust._memory import keep_freed_memory
    from ptclust.cli import _results as results
    from ptclust.cli._terminal import progress_display, say
    from ptclust.cli.ledger import show_account, show_dry_run
    from ptclust.errors import UsageError
    from ptclust.graph.labels import written_names
    from ptclust.pipeline import publish_file
    from ptclust.release import Release

    keep_freed_memory()
    file = graph.file()
    if dry_run:
        show_dry_run(file, options.release_request(file, noisy), as_json=as_json)
        return
    if places.coordinates is not None and plot is None and report is None:
        raise UsageError("--coordinates are for pictures: give --report report.html, or --plot")
    if publisher.given and report is None:
        option = next(iter(publisher.given))
        raise UsageError(f"--{option} is written on the page: give --report report.html, too")
    if output is None:
        raise UsageError("name the file to write the release to: --output release.json")
    files = {"--output": output, "--labels": labels, "--plot": plot, "--report": report}
    reads = {"the graph": graph.edges, "--coordinates": places.coordinates}
    reads |= results.ledger_files(options.ledger) | {"--follows": follows}
    before = None if follows is None else Release.load(follows)
    place, remedy = results.place(output), "running again spends the budget again: "
    with (
        results.held_outputs(files, reads, overwrite, as_json=as_json, remedy=remedy),
        ExitStack() as aside,
        progress_display() as progress,
    ):
        request, paid = options.release_request(file, noisy), None
        streamed = output == results.STDOUT  # which is written once, when all is known

        def reserve(size: int) -> None:
            if not streamed:
                aside.enter_context(space_for(output, size))

        def keep(values: Release) -> None:
            nonlocal paid
            if not streamed:
                with _lost_on_error(request):
                    results.write_release(values, output)
            paid = values

        def stream(values: Release) -> None:
            with _lost_on_error(request):
                results.write_release(values, output)
            request.payment.confirm(values.statement.id)

        known = results.Places()

        def check(topology: Topology) -> None:
            nonlocal known
            known = results.read_places(places, topology.names)
            if labels is not None:
                written_names(topology.names, escape_formulas=escape_formulas)

        try:
            release = publish_file(
                file,
                request,
                reserve=reserve,
                keep=keep,
                confirm=not streamed,
                announce=say,
                check=check,
                progress=progress,
            )
            if before is not None:
                release = release.follow(before)
            if not streamed:
                results.write_release(release, output)
        except BaseException:
            if paid is not None:
                if streamed:
                    stream(paid)
                kept = "FILE" if streamed else output
                say(
                    f"The published values are paid for and in {place}, not clustered. Cluster "
                    f"them with `ptclust recluster {kept} -o FILE`, which costs nothing."
                )
            raise
        if streamed:
            stream(release)
        results.write_views(
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
    say(f"{results.found(release)} in {place}." + f" {again}" * release.statement.private)
    results.show_certainty(release)
    if before is not None:
        say(release.compare(before).changes.sentence)
    results.show_advice(release)
    show_account(request.payment)


@contextmanager
def _lost_on_error(request: ReleaseRequest) -> Iterator[None]:
    """Say what a release has cost that was drawn and cannot be handed over."""
    from ptclust.cli._terminal import say

    try:
        yield
    except BaseException:
        payment, spent = (
            request.payment,
            " and its budget is spent" * (request.random_state is None),
        )
        charged = ""
        if payment.ledger is not None:
            charged = (
                f": dataset {payment.dataset!r} was charged; `ptclust ledger history` shows it"
            )
        say(f"The release is lost{spent}{charged}.")
        raise
