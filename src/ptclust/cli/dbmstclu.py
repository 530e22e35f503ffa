"""``ptclust dbmstclu``: cluster a graph file without privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from ptclust.cli import _options as o


def dbmstclu(
    edges: o.Edges,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", help="Write node,label to this CSV file, not to stdout."),
    ] = None,
    as_json: o.AsJson = False,
    plot: o.Plot = None,
    source: o.Source = None,
    target: o.Target = None,
    weight: o.Weight = None,
    merge: o.MergeOption = None,
    similarity_cap: o.SimilarityCap = None,
    max_clusters: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Stop at this many clusters."),
    ] = None,
    min_cluster_size: o.MinClusterSize = 1,
) -> None:
    """Cluster a graph by DBMSTClu, [bold]without privacy[/bold].

    Weights are dissimilarities. The number of clusters is found, not given.
    """
    from ptclust._files import check_writable
    from ptclust.cli._results import summary, write_json, write_labels
    from ptclust.cli._terminal import say, stages
    from ptclust.pipeline import cluster_file
    from ptclust.report import check_format, draw_tree

    for path in (output, plot):
        if path is not None:
            check_writable(path)
    if plot is not None:
        check_format(plot)
    with stages() as stage:
        result = cluster_file(
            o.graph_file(edges, source, target, weight, merge, similarity_cap),
            max_clusters=max_clusters,
            min_cluster_size=min_cluster_size,
            stage=stage,
        )
        if plot is not None:
            stage(f"Drawing {plot.name}")
            draw_tree(result.tree, result.clustering.labels, path=plot)
        stage("Writing")
        if output is not None or not as_json:
            write_labels(result, output)
        if as_json:
            write_json(result, with_labels=output is None)
    say(summary(result))
