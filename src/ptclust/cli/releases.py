"""``ptclust show``, ``report``, ``recluster`` and ``export``: a release, at no cost."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ptclust._options import Certainty, Clusterer, MinClusterSize, MinProbability, Option
from ptclust.cli import _options as o
from ptclust.cli._outputs import (
    STDOUT,
    held_outputs,
    place,
    print_result,
    read_places,
    say_how_sure,
    write_release,
    write_views,
)
from ptclust.cli._terminal import in_options, say
from ptclust.errors import UsageError


@o.command
def show(
    release: o.ReleaseFile,
    as_json: o.AsJson = False,
    labels: Annotated[bool, Option("Write the table of labels as CSV to stdout instead.")] = False,
    escape_formulas: o.EscapeFormulas = True,
    registry: Annotated[
        bool,
        Option("Write a draft entry for the Differential Privacy Deployments Registry (YAML)."),
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
        print_result(comparison.to_dict(), comparison.to_text(), as_json=as_json)
    elif as_json:
        typer.echo(json.dumps(made.summary.to_dict(), indent=2, default=str))
    else:
        typer.echo(f"{made.summary.to_text(in_options)}\n{made.statement.to_text()}", nl=False)


@o.command
def report(
    release: o.ReleaseFile,
    output: Annotated[Path, Option("Write the page to this HTML file.", short="-o")],
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
    with held_outputs({"--output": output}, reads, overwrite) as progress:
        progress(f"Reading {release.name}")
        made = Release.load(release)
        progress("Drawing")
        known = read_places(places, made.names)
        write_report(made, output, **known, title=title, publisher=publisher.given, overwrite=True)
    say(f"{made.summary.found} in {output}. Open it in a browser; nothing was spent.")


@o.command
def recluster(
    release: o.ReleaseFile,
    output: Annotated[Path, Option("Write the new release here; - is stdout.", short="-o")],
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
    with held_outputs(files, {"the release": release}, overwrite) as progress:
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
    say_how_sure(made)


@o.command
def export(
    release: o.ReleaseFile,
    output: Annotated[
        Path,
        Option("Write this file: .csv, .parquet, .graphml, .gexf or .geojson.", short="-o"),
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

    suffix = output.suffix.lower()
    if suffix == ".geojson" and places.coordinates is None:
        raise UsageError("GeoJSON needs places: --coordinates stations.csv --x longitude ...")
    if suffix != ".geojson" and places.coordinates is not None:
        raise UsageError("--coordinates are for GeoJSON: --output clusters.geojson")
    reads = {"the release": release, "--coordinates": places.coordinates}
    with held_outputs({"--output": output}, reads, overwrite):
        made = Release.load(release)
        known = read_places(replace(places, degrees=False), made.names)
        coordinates: Any = known.get("coordinates")
        write: dict[str, Any] = {
            ".csv": partial(made.to_csv, escape_formulas=escape_formulas),
            ".parquet": made.to_parquet,
            ".graphml": made.to_graphml,
            ".gexf": made.to_gexf,
            ".geojson": partial(made.to_geojson, coordinates=coordinates),
        }
        if suffix not in write:
            raise UsageError(f"{output} must end in one of {', '.join(write)}")
        write[suffix](output, overwrite=True)
    say(f"{made.summary.found} in {output}. Nothing was spent.")
