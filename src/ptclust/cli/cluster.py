"""``ptclust cluster``: publish the clusters of a graph under differential privacy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from ptclust.cli import _options as o


@o.command
def cluster(
    graph: o.GraphOptions,
    options: o.ReleaseOptions,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the release to this JSON file.")
    ] = None,
    labels: o.LabelsFile = None,
    plot: o.Plot = None,
    dry_run: Annotated[bool, typer.Option(help="Show the plan and stop; spends nothing.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """Publish the clusters of a graph; its weights stay differentially private.

    Say at least one of --l1, --l2, --linf: by how much one privacy unit can move the weights. Every run
    spends its budget anew, so an existing release is never overwritten.
    """
    import json

    from ptclust.cli._results import check_outputs, write_release
    from ptclust.cli._terminal import progress_display, say
    from ptclust.cli.ledger import show_account, show_dry_run
    from ptclust.errors import FileError, PrivacyWarning, UsageError
    from ptclust.pipeline import publish_values
    from ptclust.planning.plan import make_plan

    request, file = options.release_request(), graph.file()
    if dry_run:
        plan = make_plan(file.read_topology(), request.plan)
        show_dry_run(plan, request.payment, as_json=as_json)
        return
    if output is None:
        raise UsageError("say where to write the release: --output release.json")
    if output.exists():
        raise FileError(
            f"{output} exists, and a release is never overwritten: running again spends the budget "
            "again. Give another name if that is what you want"
        )
    check_outputs(output, labels, plot=plot)
    with progress_display() as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # said below, in full
        progress(f"Reading {file.path.name}")
        weighted = file.read()
        progress("Planning")
        plan = make_plan(weighted.topology, request.plan)
        release = publish_values(weighted, plan, request, progress=progress)
        # Paid for, so it is on the disk before anything else can fail.
        progress(f"Writing {output.name}")
        release.save(output)
        with warnings.catch_warnings():
            warnings.simplefilter("always", PrivacyWarning)
            warnings.showwarning = lambda text, *_: say(f"Warning: {text}")
            request.payment.confirm(release.statement.id)
        progress("Clustering what was released")
        try:
            release = request.clustering.apply(release, request.plan.clusterer)
        except BaseException:
            say(
                f"The published values are paid for and in {output}, not clustered. Cluster them with "
                f"`ptclust recluster {output} -o FILE`, which costs nothing."
            )
            raise
        write_release(release, output, labels, plot, overwrite=True)
    if as_json:
        typer.echo(json.dumps(release.statement.to_dict(), indent=2))
    for warning in plan.warnings:
        say(f"Warning: {warning}.")
    say(release.statement.sentence)
    say(
        f"{release.n_clusters:,} clusters of {release.n_nodes:,} nodes in {output}. Running again spends "
        "the budget again; the release itself may be used as often as you like."
    )
    show_account(request.payment)
