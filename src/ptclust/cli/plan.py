"""``ptclust plan``: what a release would cost, before anything is spent."""

from __future__ import annotations

import typer

from ptclust.cli import _options as o


def plan(
    edges: o.Edges,
    epsilon: o.Epsilon,
    delta: o.Delta = 0.0,
    l1: o.L1 = None,
    l2: o.L2 = None,
    linf: o.Linf = None,
    tree: o.TreeOption = o.TreeMethod.auto,
    split: o.Split = 0.5,
    calibration: o.CalibrationOption = o.Calibration.sound,
    weight_range: o.WeightRange = None,
    source: o.Source = None,
    target: o.Target = None,
    merge: o.MergeOption = None,
    as_json: o.AsJson = False,
) -> None:
    """Show every mechanism with its noise, from [bold]public numbers alone[/bold]; spends nothing.

    Of a table only the two columns of the nodes are read: it need not have weights at all.
    """
    import json

    from ptclust.cli._terminal import stages
    from ptclust.pipeline import plan_file

    choices = o.plan_choices(epsilon, delta, l1, l2, linf, tree, split, calibration, weight_range)
    with stages() as stage:
        stage("Planning")
        planned = plan_file(o.graph_file(edges, source, target, None, merge), **choices)
    typer.echo(json.dumps(planned.to_dict(), indent=2) if as_json else planned.to_text())
