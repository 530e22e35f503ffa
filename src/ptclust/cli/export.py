"""``ptclust export``: a release for other programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptclust.cli import _options as o

if TYPE_CHECKING:
    from ptclust._types import Array


@o.command
def export(
    release: Annotated[
        Path, typer.Argument(help="A release of `cluster`.", readable=False, show_default=False)
    ],
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
    from ptclust.cli import _results as results
    from ptclust.cli._terminal import say
    from ptclust.errors import UsageError
    from ptclust.release import Release

    suffix, kept = output.suffix.lower(), {"overwrite": True}  # the name is held
    if suffix == ".geojson" and places.coordinates is None:
        raise UsageError("GeoJSON needs places: --coordinates stations.csv --x longitude ...")
    if suffix != ".geojson" and places.coordinates is not None:
        raise UsageError("--coordinates are for GeoJSON: --output clusters.geojson")

    def at(names: Array) -> Any:
        return results.read_places(replace(places, degrees=False), names).coordinates

    reads = {"the release": release, "--coordinates": places.coordinates}
    with results.held_outputs({"--output": output}, reads, overwrite):
        made = Release.load(release)
        write = {
            ".csv": lambda: made.to_csv(output, escape_formulas=escape_formulas, **kept),
            ".parquet": lambda: made.to_parquet(output, **kept),
            ".graphml": lambda: made.to_graphml(output, **kept),
            ".gexf": lambda: made.to_gexf(output, **kept),
            ".geojson": lambda: made.to_geojson(output, at(made.names), **kept),
        }
        if suffix not in write:
            raise UsageError(f"{output} must end in one of {', '.join(write)}")
        write[suffix]()
    say(f"{results.found(made)} in {output}. Nothing was spent.")
