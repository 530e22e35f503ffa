"""``ptclust recluster``: the clusters of a release by another clusterer, at no cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptclust.cli import _options as o


@o.command
def recluster(
    release: Annotated[Path, typer.Argument(help="A release of `cluster`.", readable=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the new release here; - is stdout.")
    ],
    labels: o.LabelsFile = None,
    escape_formulas: o.EscapeFormulas = True,
    clusterer: o.Clusterer = "auto",
    level: Annotated[
        int | None, typer.Option(help="Which level of the hierarchy; 0 is the coarsest.", min=0)
    ] = None,
    n_clusters: Annotated[
        int | None, typer.Option(help="The level with this number of clusters.", min=1)
    ] = None,
    min_cluster_size: o.MinClusterSize = 1,
    min_probability: o.MinProbability = 0.0,
    certainty: o.Certainty = True,
    plot: o.Plot = None,
    overwrite: o.Overwrite = None,
) -> None:
    """Cluster published values again. Nothing private is read and nothing is spent."""
    from ptclust.cli import _results as results
    from ptclust.cli._terminal import progress_display, say
    from ptclust.release import Release

    files = {"--output": output, "--labels": labels, "--plot": plot}
    with (
        results.held_outputs(files, {"the release": release}, overwrite),
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
        results.write_release(made, output)
        results.write_views(made, labels, plot, escape_formulas=escape_formulas)
    where = f"by {made.clusterer} in {results.place(output)}"
    say(f"{results.found(made)} {where}. Nothing was spent.")
    results.show_certainty(made)
    results.show_advice(made)
