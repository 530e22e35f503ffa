"""``ptclust check``: the paper's conditions on given clusters, and its bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptclust.cli import _options as o


@o.command
def check(
    graph: o.GraphOptions,
    sensitivity: o.SensitivityOptions,
    clusters: Annotated[
        Path,
        typer.Option(
            help="CSV with the columns node,cluster; -1 is unclustered.",
            show_default=False,
            readable=False,
        ),
    ],
    epsilon: Annotated[float | None, typer.Option(help="Show the bounds at this budget.")] = None,
    delta: o.Delta = 0.0,
    mechanism: o.Mechanism = "auto",
    split: o.Split = None,
    as_json: o.AsJson = False,
) -> None:
    """Show which of the paper's conditions clusters fulfil, and the bounds that follow.

    For the curator only: the answers are computed from the private weights and must
    not be published.
    """
    import json

    from ptclust.cli._terminal import progress_display
    from ptclust.errors import UsageError
    from ptclust.theory.check import check_file

    request, file = None, graph.file()
    if epsilon is not None:
        request = o.PlanOptions(
            **vars(sensitivity), epsilon=epsilon, delta=delta, mechanism=mechanism, split=split
        ).request(file)
    elif sensitivity.given:
        raise UsageError(
            "bounds are for a budget: give --epsilon, too, or leave --l1, --l2, --linf out"
        )
    with progress_display() as progress:
        found = check_file(file, clusters, request, progress=progress)
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else found.to_text())
