"""``ptclust plan``: what a release would cost, and what it would show, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

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
    clusterer: o.ClustererOption = o.ClustererName.auto,
    split: o.Split = None,
    calibration: o.CalibrationOption = o.Calibration.sound,
    weight_range: o.WeightRange = None,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict", help="Publish planted clusters too, and tell from which epsilon they show."
        ),
    ] = False,
    sizes: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Nodes of planted clusters, such as 50,200.", metavar="N,N,..."),
    ] = None,
    contrast: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="How clear they are, from 1 (as in the paper) down to 0."),
    ] = None,
    repetitions: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="How often each is published; by default as time allows."),
    ] = None,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Draw the prediction to this PNG or SVG file."),
    ] = None,
    source: o.Source = None,
    target: o.Target = None,
    merge: o.MergeOption = None,
    as_json: o.AsJson = False,
) -> None:
    """Show every mechanism with its noise, from [bold]public numbers alone[/bold]; spends nothing.

    Of a table only the two columns of the nodes are read: it need not have weights at all.
    """
    import json

    from ptclust._files import check_writable
    from ptclust.cli._terminal import stages
    from ptclust.errors import UsageError
    from ptclust.privacy.plan import plan as make_plan

    details = {
        "--sizes": sizes,
        "--contrast": contrast,
        "--repetitions": repetitions,
        "--plot": plot,
    }
    for name, value in details.items():
        if value is not None and not predict:
            raise UsageError(f"{name} is about the prediction: say --predict, too")
    if plot is not None:
        from ptclust.report import check_format

        check_format(plot)
        check_writable(plot)
    asked = None if sizes is None else _numbers(sizes)
    choices = o.plan_choices(
        epsilon, delta, l1, l2, linf, tree, split, calibration, weight_range, clusterer
    )
    prediction = None
    with stages() as stage:
        stage("Planning")
        topology = o.graph_file(edges, source, target, None, merge).read_topology()
        planned = make_plan(topology, **choices)
        if predict:
            from ptclust.prediction import predict as make_prediction

            del choices["epsilon"]
            prediction = make_prediction(
                topology,
                **choices,
                planned=epsilon,
                sizes=asked,
                contrast=1.0 if contrast is None else contrast,
                repetitions=repetitions,
                stage=stage,
            )
        if prediction is not None and plot is not None:
            from ptclust.report import draw_curve

            stage(f"Drawing {plot.name}")
            draw_curve(prediction, path=plot)
    if as_json:
        more = {} if prediction is None else {"prediction": prediction.to_dict()}
        typer.echo(json.dumps({**planned.to_dict(), **more}, indent=2))
        return
    typer.echo(planned.to_text())
    if prediction is not None:
        typer.echo(f"\n{prediction.to_text()}")


def _numbers(text: str) -> list[int]:
    """Return the numbers in a list such as 50,200."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no list of whole numbers such as 50,200") from None
