"""``ptclust dbmstclu``: cluster a graph file without privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptclust.cli import _options as o


@o.command
def dbmstclu(
    graph: o.GraphOptions,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write node,label to this CSV file, not to stdout."),
    ] = None,
    as_json: o.AsJson = False,
    plot: o.Plot = None,
    max_clusters: Annotated[
        int | None, typer.Option(min=1, help="Stop at this many clusters.")
    ] = None,
    min_cluster_size: o.MinClusterSize = 1,
) -> None:
    """Cluster a graph by DBMSTClu, [bold]without privacy[/bold].

    Weights are dissimilarities. The number of clusters is found, not given.
    """
    from ptclust.cli._results import check_outputs, summary, write_json, write_labels
    from ptclust.cli._terminal import progress_display, say
    from ptclust.pipeline import cluster_file
    from ptclust.report import draw_tree

    check_outputs(output, plot=plot)
    with progress_display() as progress:
        result = cluster_file(
            graph.file(),
            max_clusters=max_clusters,
            min_cluster_size=min_cluster_size,
            progress=progress,
        )
        if plot is not None:
            progress(f"Drawing {plot.name}")
            draw_tree(result.tree, result.clustering.labels, path=plot)
        progress("Writing")
        if output is not None or not as_json:
            write_labels(result, output)
        if as_json:
            write_json(result, with_labels=output is None)
    say(summary(result))
