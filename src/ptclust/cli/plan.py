"""``ptclust plan``: what a release would cost, and what it would show, before anything is spent."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from ptclust.cli import _options as o


@o.command
def plan(
    graph: o.GraphOptions,
    options: o.PlanOptions,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict", help="Publish planted clusters too, and say from which epsilon they show."
        ),
    ] = False,
    sizes: Annotated[
        str | None,
        typer.Option(help="Nodes of planted clusters, such as 50,200.", metavar="N,N,..."),
    ] = None,
    total: Annotated[
        float | None,
        typer.Option(
            help="Of counts: about the sum of all weights, as you know it without a look at them."
        ),
    ] = None,
    contrast: Annotated[
        float | None, typer.Option(help="How clear they are, from 1 (as in the paper) down to 0.")
    ] = None,
    releases: o.Releases = None,
    shares: o.Shares = None,
    per: o.PerOption = o.PerName.series,
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, help="How often each is published; by default as time allows."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the prediction to this PNG, SVG or PDF file.")
    ] = None,
    overwrite: o.Overwrite = None,
    as_json: o.AsJson = False,
) -> None:
    """Show every mechanism with its noise, from public numbers alone; spends nothing.

    Of a table only the two columns of the nodes are read: it need not have weights at all.
    """
    import json

    from ptclust.cli._results import held_outputs
    from ptclust.cli._terminal import in_options, progress_display, say
    from ptclust.errors import UsageError
    from ptclust.pipeline import settled_sensitivity
    from ptclust.planning.plan import make_plan

    details = {"sizes": sizes, "total": total, "contrast": contrast, "repetitions": repetitions}
    if predict and (releases is not None or shares is not None):
        raise UsageError("--predict is about one release: leave --releases and --shares out")
    for name, value in {**details, "plot": plot}.items():
        if value is not None and not predict:
            raise UsageError(f"--{name} is about the prediction: say --predict, too")
    asked = None if sizes is None else _numbers(sizes)
    file = graph.file(weighted=False)
    if predict and file.engine == "spark":
        raise UsageError("--predict plants clusters on this machine: leave --engine spark out")
    request, prediction = options.request(file), None
    with (
        held_outputs({"--plot": plot}, {"the graph": graph.edges}, overwrite),
        progress_display() as progress,
    ):
        progress("Planning")
        topology = file.read_topology()
        settled_sensitivity(file.provenance, topology.n_edges, request.sensitivity)
        budget = o.series_budget(request, releases, shares, per)
        if budget is not None:
            from ptclust.series import plan_series

            planned_series = plan_series(topology, request, budget)
        planned = make_plan(topology, request)
        if predict:
            from ptclust.planning import predict as predicted

            say("Predicting: planted clusters are published many times, for up to a minute or so.")
            settings = {each.name: getattr(request, each.name) for each in fields(request)}
            for name in ("sampler", "engine"):  # of secure noise, which a prediction needs none of
                del settings[name]
            prediction = predicted(
                topology,
                planned=settings.pop("epsilon"),
                sizes=asked,
                kind=file.known_kind or "distance",
                total=total,
                contrast=1.0 if contrast is None else contrast,
                repetitions=repetitions,
                progress=progress,
                **settings,
            )
        if prediction is not None and plot is not None:
            from ptclust.report import draw_curve

            progress(f"Drawing {plot.name}")
            draw_curve(prediction, path=plot)
    if budget is not None:
        text = planned_series.to_text()
        typer.echo(json.dumps(planned_series.to_dict(), indent=2) if as_json else text)
        return
    if as_json:
        more = {} if prediction is None else {"prediction": prediction.to_dict()}
        built = {} if file.provenance is None else {"provenance": file.provenance.to_dict()}
        typer.echo(json.dumps({**planned.to_dict(), **built, **more}, indent=2))
        return
    if file.provenance is not None:
        typer.echo(file.provenance.words)
    typer.echo(in_options(planned.to_text()))
    if prediction is not None:
        typer.echo(f"\n{in_options(prediction.to_text())}")


def _numbers(text: str) -> list[int]:
    """Return the numbers in a list such as 50,200."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a list of whole numbers such as 50,200"
        ) from None
