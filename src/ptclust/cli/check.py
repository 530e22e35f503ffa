"""``ptclust check``: the paper's conditions on given clusters, and what its theorems promise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from ptclust.cli import _options as o


def check(
    edges: o.Edges,
    clusters: Annotated[
        Path,
        typer.Option(
            help="CSV with the columns node,label; -1 is noise.", show_default=False, readable=False
        ),
    ],
    epsilon: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Say what the bounds promise at this budget."),
    ] = None,
    delta: o.Delta = 0.0,
    l1: o.L1 = None,
    l2: o.L2 = None,
    linf: o.Linf = None,
    tree: o.TreeOption = o.TreeMethod.auto,
    split: o.Split = None,
    source: o.Source = None,
    target: o.Target = None,
    weight: o.Weight = None,
    merge: o.MergeOption = None,
    similarity_cap: o.SimilarityCap = None,
    as_json: o.AsJson = False,
) -> None:
    """Say which of the paper's conditions clusters fulfil, which cluster breaks which, and what is promised.

    [bold]For the curator only:[/bold] the answers are computed from the private weights and must not be published.
    """
    import json

    from ptclust.cli._terminal import stages
    from ptclust.errors import UsageError
    from ptclust.theory.check import check_file

    choices = None
    if epsilon is not None:
        choices = o.plan_choices(
            epsilon, delta, l1, l2, linf, tree, split, o.Calibration.sound, None
        )
    elif any(bound is not None for bound in (l1, l2, linf)):
        raise UsageError(
            "bounds are for a budget: give --epsilon, too, or leave --l1, --l2, --linf out"
        )
    file = o.graph_file(edges, source, target, weight, merge, similarity_cap)
    with stages() as stage:
        found = check_file(file, clusters, choices, stage=stage)
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else found.to_text())
