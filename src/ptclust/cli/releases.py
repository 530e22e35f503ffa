"""``ptclust show``, ``report``, ``recluster`` and ``export``: a release, at no cost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ptclust._options import Certainty, Clusterer, MinClusterSize, MinProbability, Option
from ptclust.cli import _options as o
from ptclust.cli._outputs import (
    STDOUT,
    held_outputs,
    place,
    read_places,
    show_advice,
    show_certainty,
    write_release,
    write_views,
)
from ptclust.cli._terminal import in_options, progress_display, say
from ptclust.errors import UsageError


@o.command
def show(
    release: o.ReleaseFile,
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
        Option("Compare the clusters with those of this earlier release.", metavar="FILE"),
    ] = None,
) -> None:
    """Show the guarantee of a release, its clusters and how sure they are; spends nothing."""
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


@o.command
def report(
    release: o.ReleaseFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the page to this HTML file.")
    ],
    places: o.PlaceOptions,
    publisher: o.PublisherOptions,
    title: Annotated[str | None, Option("Title of the page.")] = None,
    overwrite: o.Overwrite = None,
) -> None:
    """Write a release as one page of HTML that needs no network; spends nothing."""
    from ptclust.release import Release
    from ptclust.report import write_report

    if output == STDOUT:
        raise UsageError("a page is written to a file: --output report.html")
    reads = {"the release": release, "--coordinates": places.coordinates}
    with (
        held_outputs({"--output": output}, reads, overwrite),
        progress_display() as progress,
    ):
        progress(f"Reading {release.name}")
        made = Release.load(release)
        progress("Drawing")
        known = read_places(places, made.names)
        write_report(made, output, **known, title=title, publisher=publisher.given, overwrite=True)
    say(f"{made.summary.found} in {output}. Open it in a browser; nothing was spent.")


@o.command
def recluster(
    release: o.ReleaseFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the new release here; - is stdout.")
    ],
    labels: o.LabelsFile = None,
    escape_formulas: o.EscapeFormulas = True,
    clusterer: Clusterer = "auto",
    level: Annotated[
        int | None, Option("Which level of the hierarchy; 0 is the coarsest.", min=0)
    ] = None,
    n_clusters: Annotated[
        int | None, Option("The level with this number of clusters.", min=1)
    ] = None,
    min_cluster_size: MinClusterSize = 1,
    min_probability: MinProbability = 0.0,
    certainty: Certainty = True,
    plot: o.Plot = None,
    overwrite: o.Overwrite = None,
) -> None:
    """Cluster published values again. Nothing private is read and nothing is spent."""
    from ptclust.release import Release

    files = {"--output": output, "--labels": labels, "--plot": plot}
    with (
        held_outputs(files, {"the release": release}, overwrite),
        progress_display() as progress,
    ):
        progress(f"Reading {release.name}")
        made = Release.load(release)
        progress("Clustering what was released")
        made = made.recluster(
            clusterer,
            level=level,
            n_clusters=n_clusters,
            min_cluster_size=min_cluster_size,
            min_probability=min_probability,
        )
        if certainty:
            made.find_certainty(progress)
        write_release(made, output)
        write_views(made, labels, plot, escape_formulas=escape_formulas)
    say(f"{made.summary.found} by {made.clusterer} in {place(output)}. Nothing was spent.")
    show_certainty(made)
    show_advice(made)


@o.command
def export(
    release: o.ReleaseFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Write this file: .csv, .parquet, .graphml, .gexf or .geojson."
        ),
    ],
    places: o.PlaceOptions,
    escape_formulas: o.EscapeFormulas = True,
    overwrite: o.Overwrite = None,
) -> None:
    """Write the clusters of a release for other programs; spends nothing.

    Tables have the columns node, cluster and, if known, evidence. GeoJSON wants --coordinates, in
    degrees.
    """
    from ptclust.release import Release

    suffix, kept = output.suffix.lower(), {"overwrite": True}  # the name is held
    if suffix == ".geojson" and places.coordinates is None:
        raise UsageError("GeoJSON needs places: --coordinates stations.csv --x longitude ...")
    if suffix != ".geojson" and places.coordinates is not None:
        raise UsageError("--coordinates are for GeoJSON: --output clusters.geojson")
    reads = {"the release": release, "--coordinates": places.coordinates}
    with held_outputs({"--output": output}, reads, overwrite):
        made = Release.load(release)
        known = read_places(replace(places, degrees=False), made.names)
        write: dict[str, Any] = {
            ".csv": lambda: made.to_csv(output, escape_formulas=escape_formulas, **kept),
            ".parquet": lambda: made.to_parquet(output, **kept),
            ".graphml": lambda: made.to_graphml(output, **kept),
            ".gexf": lambda: made.to_gexf(output, **kept),
            ".geojson": lambda: made.to_geojson(output, known["coordinates"], **kept),
        }
        if suffix not in write:
            raise UsageError(f"{output} must end in one of {', '.join(write)}")
        write[suffix]()
    say(f"{made.summary.found} in {output}. Nothing was spent.")
