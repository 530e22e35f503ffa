"""``ptclust plan``: noise and predicted clusters of a release, before anything is spent."""

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
            "--predict",
            help="Predict how well clusters would be found, on graphs planted like real ones.",
        ),
    ] = False,
    records: Annotated[
        float | None,
        typer.Option(help="About how many records there are, as known without looking."),
    ] = None,
    persons: Annotated[
        float | None,
        typer.Option(help="About how many persons, where they are protected; compares caps, too."),
    ] = None,
    clusters: Annotated[
        int | None, typer.Option(help="How many clusters you expect; by default a range is tried.")
    ] = None,
    contrast: Annotated[
        float | None,
        typer.Option(
            help="How many times heavier pairs within them are; by default a range is tried."
        ),
    ] = None,
    releases: o.Releases = None,
    shares: o.Shares = None,
    per: o.PerOption = o.PerName.series,
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, help="How many graphs are planted; by default 39, or 19."),
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

    from ptclust.building.caps import caps_of, compared, counted, range_of, to_text
    from ptclust.cli._results import held_outputs
    from ptclust.cli._terminal import in_options, progress_display, say
    from ptclust.errors import UsageError
    from ptclust.pipeline import settled_sensitivity
    from ptclust.planning.plan import make_plan

    details = {"clusters": clusters, "contrast": contrast, "repetitions": repetitions}
    if predict and (releases is not None or shares is not None):
        raise UsageError("--predict is about one release: leave --releases and --shares out")
    for name, value in {**details, "plot": plot}.items():
        if value is not None and not predict:
            raise UsageError(f"--{name} is about the prediction: give --predict, too")
    file = graph.file(weighted=False)
    if predict and file.engine == "spark":
        raise UsageError("--predict plants clusters on this machine: leave --engine spark out")
    request, prediction = options.request(file), None
    known, caps = ({} if file.provenance is None else file.provenance.details), None
    total = counted(known, persons=persons, records=records)
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
        if file.provenance is not None and caps_of(known) and persons and records:
            caps = compared(file.provenance, topology, request, persons, records)
        if predict:
            from ptclust.planning import predict as predicted

            say("Predicting: planted graphs are published many times, for up to a minute or so.")
            settings = {each.name: getattr(request, each.name) for each in fields(request)}
            for name in ("sampler", "engine"):  # of secure noise, which a prediction needs none of
                del settings[name]
            settings["clip"] = settings["clip"] or range_of(known)
            prediction = predicted(
                topology,
                planned=settings.pop("epsilon"),
                kind=file.known_kind or "distance",
                total=total,
                n_clusters=clusters,
                contrast=contrast,
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
        more: dict[str, object] = {"prediction": prediction.to_dict()} if prediction else {}
        if caps is not None:
            more["caps"] = [each.to_dict() for each in caps]
        built = {} if file.provenance is None else {"provenance": file.provenance.to_dict()}
        typer.echo(json.dumps({**planned.to_dict(), **built, **more}, indent=2))
        return
    if file.provenance is not None:
        typer.echo(file.provenance.words)
    typer.echo(in_options(planned.to_text()))
    if caps is not None:
        typer.echo(f"\n{to_text(caps, caps_of(known))}")
    if prediction is not None:
        typer.echo(f"\n{in_options(prediction.to_text())}")
