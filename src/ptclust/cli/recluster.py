"""``ptclust recluster``: the clusters of a release in another way, at no cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from ptclust.cli import _options as o


def recluster(
    release: Annotated[
        Path, typer.Argument(help="A release that `cluster` wrote.", readable=False)
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Write the new release here.", show_default=False),
    ],
    labels: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write node,label to this CSV file too."),
    ] = None,
    clusterer: o.ClustererOption = o.ClustererName.auto,
    min_cluster_size: o.MinClusterSize = 1,
    plot: o.Plot = None,
) -> None:
    """Cluster published values anew. Nothing private is read and [bold]nothing is spent[/bold]."""
    from ptclust._files import check_writable
    from ptclust.cli._terminal import say, stages
    from ptclust.release import Release
    from ptclust.report import check_format, draw_tree

    for path in (output, labels, plot):
        if path is not None:
            check_writable(path)
    if plot is not None:
        check_format(plot)
    with stages() as stage:
        stage(f"Reading {release.name}")
        found = Release.load(release)
        stage("Clustering what was released")
        found = found.recluster(clusterer.value, min_cluster_size=min_cluster_size)
        found.save(output)
        if labels is not None:
            found.to_csv(labels)
        if plot is not None:
            draw_tree(found.tree, found.labels, path=plot)
    say(
        f"{found.n_clusters:,} clusters of {found.n_nodes:,} nodes by {found.clusterer} in {output}. Nothing was spent."
    )
