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
        typer.Option("--output", "-o", help="Write node,cluster to this CSV file; - is stdout."),
    ] = None,
    escape_formulas: o.EscapeFormulas = True,
    as_json: o.AsJson = False,
    plot: o.Plot = None,
    overwrite: o.Overwrite = None,
    max_clusters: Annotated[
        int | None, typer.Option(min=1, help="Stop at this many clusters.")
    ] = None,
    min_cluster_size: o.MinClusterSize = 1,
) -> None:
    """Cluster a graph by DBMSTClu, without privacy.

    The number of clusters is found, not given.
    """
    from ptclust.cli._results import STDOUT, held_outputs, summary, write_json
    from ptclust.cli._terminal import progress_display, say
    from ptclust.graph.labels import write_labels
    from ptclust.pipeline import cluster_file
    from ptclust.report import draw_tree

    files, reads = {"--output": output, "--plot": plot}, {"the graph": graph.edges}
    with (
        held_outputs(files, reads, overwrite, as_json=as_json),
        progress_display() as progress,
    ):
        result = cluster_file(
            graph.file(),
            max_clusters=max_clusters,
            min_cluster_size=min_cluster_size,
            progress=progress,
        )
        names, labels = result.tree.names, result.clustering.labels
        if plot is not None:
            progress(f"Drawing {plot.name}")
            draw_tree(result.tree, labels, path=plot)
        progress("Writing")
        if output is not None or not as_json:
            file = None if output == STDOUT else output
            write_labels(names, labels, file, escape_formulas=escape_formulas)
        if as_json:
            write_json(result, with_labels=output is None)
    say(summary(result))
