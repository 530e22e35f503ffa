"""``ptclust recluster``: the clusters of a release by another clusterer, at no cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptclust.cli import _options as o


@o.command
def recluster(
    release: Annotated[Path, typer.Argument(help="A release of `cluster`.", readable=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the new release here.")],
    labels: o.LabelsFile = None,
    clusterer: o.Clusterer = "auto",
    min_cluster_size: o.MinClusterSize = 1,
    plot: o.Plot = None,
) -> None:
    """Cluster published values anew. Nothing private is read and [bold]nothing is spent[/bold]."""
    from ptclust.cli._results import check_outputs, write_release
    from ptclust.cli._terminal import progress_display, say
    from ptclust.release import Release

    check_outputs(output, labels, plot=plot)
    with progress_display() as progress:
        progress(f"Reading {release.name}")
        found = Release.load(release)
        progress("Clustering what was released")
        found = found.recluster(clusterer, min_cluster_size=min_cluster_size)
        write_release(found, output, labels, plot)
    clusters = f"{found.n_clusters:,} clusters of {found.n_nodes:,} nodes by {found.clusterer}"
    say(f"{clusters} in {output}. Nothing was spent.")
