"""``ptclust show``: what is in a release, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptclust.cli import _options as o


@o.command
def show(
    release: Annotated[
        Path, typer.Argument(help="A release of `cluster`.", readable=False, show_default=False)
    ],
    as_json: o.AsJson = False,
    labels: Annotated[
        bool, typer.Option("--labels", help="Write the table of labels as CSV to stdout instead.")
    ] = False,
    escape_formulas: o.EscapeFormulas = True,
    registry: Annotated[
        bool,
        typer.Option(
            "--registry",
            help="Write a draft entry for the Differential Privacy Deployments Registry (YAML).",
        ),
    ] = False,
    compare: Annotated[
        Path | None,
        typer.Option(
            help="Compare the clusters with those of this earlier release.", metavar="FILE"
        ),
    ] = None,
) -> None:
    """Show the guarantee of a release, its clusters and how sure they are; spends nothing."""
    import json

    from ptclust.cli._terminal import in_options
    from ptclust.errors import UsageError
    from ptclust.graph.labels import write_labels
    from ptclust.release import Release

    if labels + registry + (compare is not None) > 1 or (as_json and (labels or registry)):
        raise UsageError("give only one of --json, --labels, --registry and --compare")
    made = Release.load(release)
    if labels:
        write_labels(
            made.names, made.labels, None, made.further_columns, escape_formulas=escape_formulas
        )
    elif registry:
        typer.echo(made.statement.to_registry_yaml(), nl=False)
    elif compare is not None:
        comparison = made.compare(Release.load(compare))
        typer.echo(json.dumps(comparison.to_dict(), indent=2) if as_json else comparison.to_text())
    elif as_json:
        typer.echo(json.dumps(made.summary.to_dict(), indent=2, default=str))
    else:
        typer.echo(f"{made.summary.to_text(in_options)}\n{made.statement.to_text()}", nl=False)
