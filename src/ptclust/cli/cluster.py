"""``ptclust cluster``: publish the clusters of a graph under differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptclust.cli import _options as o

if TYPE_CHECKING:
    from ptclust.release import Release


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

    Say at least one of --l1, --l2, --linf: by how much one privacy unit can move the weights. Every
    run spends its budget anew, so an existing release is never overwritten.
    """
    import json

    from ptclust.cli._results import check_outputs, write_release
    from ptclust.cli._terminal import progress_display, say
    from ptclust.cli.ledger import show_account, show_dry_run
    from ptclust.errors import FileError, UsageError
    from ptclust.pipeline import publish_file

    request, file = options.release_request(), graph.file()
    if dry_run:
        show_dry_run(file, request, as_json=as_json)
        return
    if output is None:
        raise UsageError("say where to write the release: --output release.json")
    if output.exists():
        raise FileError(
            f"{output} exists, and a release is never overwritten: running again spends the budget "
            "again. Give another name if that is what you want"
        )
    check_outputs(output, labels, plot=plot)

    def keep(values: Release) -> None:
        values.save(output)

    with progress_display() as progress:
        try:
            release = publish_file(file, request, keep=keep, progress=progress)
        except BaseException:
            if output.exists():
                say(
                    f"The published values are paid for and in {output}, not clustered. Cluster "
                    f"them with `ptclust recluster {output} -o FILE`, which costs nothing."
                )
            raise
        write_release(release, output, labels, plot, overwrite=True)
    if as_json:
        typer.echo(json.dumps(release.statement.to_dict(), indent=2))
    say(release.statement.sentence)
    found = f"{release.n_clusters:,} clusters of {release.n_nodes:,} nodes in {output}"
    say(f"{found}. Running again spends the budget again; using the release costs nothing.")
    show_account(request.payment)
