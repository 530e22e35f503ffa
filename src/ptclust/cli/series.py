"""``ptclust series``: many releases with one budget and lasting cluster numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptclust.cli import _options as o

if TYPE_CHECKING:
    from ptclust.engines.edges import SparkEdges
    from ptclust.graph import Graph


@o.command
def series(
    options: o.ReleaseOptions,
    folder: Annotated[
        Path, typer.Option(help="Folder of the releases, and of the ledger unless --ledger.")
    ],
    releases: o.Releases = None,
    shares: o.Shares = None,
    per: o.PerOption = o.PerName.series,
    period: Annotated[
        str | None, typer.Option(help="The name of this period; by default that of the file.")
    ] = None,
    report: o.Report = None,
    whole: Annotated[
        Path | None,
        typer.Option(help="Write all periods, combined to one release, to this JSON file."),
    ] = None,
    overwrite: o.Overwrite = None,
    as_json: o.AsJson = False,
    *,
    graph: o.GraphOptions,
    places: o.PlaceOptions,
) -> None:
    """Publish the next release of a series; run the same command for every period.

    --epsilon and --delta are the total of all releases, which add up by the tightest rule known. A
    period that was published is not published again and costs nothing, so a run that was killed is
    simply repeated. Clusters keep their numbers; moves beyond noise are reported. With all releases
    made, the next is refused (exit code 4).
    """
    import json

    from ptclust.cli import _results as results
    from ptclust.cli._terminal import progress_display, say
    from ptclust.errors import UsageError
    from ptclust.pipeline import disclosure
    from ptclust.series import Series
    from ptclust.series.page import write_series_report

    file = graph.file()
    plain = replace(options, ledger=None, dataset=None)
    request = plain.release_request(file)
    budget = o.series_budget(request.plan, releases, shares, per)
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
    files = {"--report": report, "--whole": whole}
    reads = {"the graph": graph.edges, "--coordinates": places.coordinates}
    with (
        results.held_outputs(files, reads, overwrite),
        progress_display() as progress,
    ):

        def read() -> Graph | SparkEdges:
            progress(f"Reading {file.name}")
            found = file.read()
            say(disclosure(file, found))
            file.check_topology(found.topology, request)
            return found

        name = graph.edges.stem if period is None else period
        release = made.release(read, request, name, progress=progress)
        changes = made.changes.get(name)
        if report is not None:
            known = results.read_places(places, release.names)
            write_series_report(made, report, coordinates=known.coordinates, overwrite=True)
        if whole is not None:
            made.combined().save(whole, overwrite=True)
    if as_json:
        found = {} if changes is None else {"changes": changes.to_dict()}
        content = {"statement": release.statement.to_dict(), "account": made.account.to_dict()}
        typer.echo(json.dumps(content | found, indent=2))
    say(f"{results.found(release)} for {name!r} in {folder}: {release.statement.caveats[-1]}.")
    if changes is not None:
        say(changes.sentence)
    left = made.budget.n_releases - made.account.n_charges
    say(f"{left} release{'s' * (left != 1)} left.")
