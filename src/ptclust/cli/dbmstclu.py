"""``ptclust dbmstclu``: cluster a graph file without privacy."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer


class Merge(StrEnum):
    """How to make one edge of several."""

    min = "min"
    max = "max"
    sum = "sum"


def dbmstclu(
    edges: Annotated[
        Path,
        typer.Argument(
            help="The graph: csv, tsv (also .gz), parquet, graphml, mtx or npz.",
            show_default=False,
            readable=False,  # a file that cannot be read is bad input, and read_graph says so
        ),
    ],
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", help="Write node,label to this CSV file, not to stdout."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON summary to stdout.")
    ] = False,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Draw the clustered tree to this PNG or SVG file."),
    ] = None,
    source: Annotated[Optional[str], typer.Option(help="Column of the first node.")] = None,  # noqa: UP045
    target: Annotated[Optional[str], typer.Option(help="Column of the second node.")] = None,  # noqa: UP045
    weight: Annotated[Optional[str], typer.Option(help="Column of the weight.")] = None,  # noqa: UP045
    merge: Annotated[
        Optional[Merge],  # noqa: UP045
        typer.Option(help="Merge edges between the same two nodes this way; else an error."),
    ] = None,
    similarity_cap: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Weights are similarities of at most C; cluster by C - weight."),
    ] = None,
    max_clusters: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Stop at this many clusters."),
    ] = None,
    min_cluster_size: Annotated[
        int, typer.Option(min=1, help="Smaller clusters become noise, label -1.")
    ] = 1,
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
            edges,
            source=source,
            target=target,
            weight=weight,
            merge=None if merge is None else merge.value,
            similarity_cap=similarity_cap,
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
