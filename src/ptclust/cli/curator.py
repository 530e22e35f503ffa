"""``ptclust dbmstclu`` and ``check``: without privacy, for the curator's own eyes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptclust._options import Delta, Mechanism, MinClusterSize, Option, Split
from ptclust.cli import _options as o
from ptclust.cli._outputs import STDOUT, held_outputs
from ptclust.cli._terminal import progress_display, say
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from ptclust.inputs import TreeClustering


@o.command
def dbmstclu(
    graph: o.GraphArguments,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write node,cluster to this CSV file; - is stdout."),
    ] = None,
    escape_formulas: o.EscapeFormulas = True,
    as_json: o.AsJson = False,
    plot: o.Plot = None,
    overwrite: o.Overwrite = None,
    max_clusters: Annotated[int | None, Option("Stop at this many clusters.", min=1)] = None,
    min_cluster_size: MinClusterSize = 1,
) -> None:
    """Cluster a graph by DBMSTClu, without privacy.

    The number of clusters is found, not given.
    """
    from ptclust.drawing.plots import draw_tree
    from ptclust.graph.labels import write_labels
    from ptclust.inputs import cluster_file

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
            document = _document(result, with_labels=output is None)
            typer.echo(json.dumps(document, default=str, ensure_ascii=False))
    clustering = result.clustering
    found = "1 cluster" if clustering.n_clusters == 1 else f"{clustering.n_clusters:,} clusters"
    left = f", {clustering.n_unclustered:,} nodes unclustered" if clustering.n_unclustered else ""
    say(
        f"{found}{left} in {len(names):,} nodes and {result.n_edges:,} edges; DBCVI "
        f"{clustering.dbcvi:.4f}. Not private: labels and index come from the raw weights."
    )


def _document(result: TreeClustering, *, with_labels: bool) -> dict[str, object]:
    """Return counts, index and cuts, and the labels if they go nowhere else."""
    tree, clustering, pairs = result.tree, result.clustering, []
    if (cuts := clustering.cuts) is not None and cuts.dbcvi is not None:
        pairs = list(zip(cuts.edge_ids.tolist(), cuts.dbcvi.tolist(), strict=True))
    document: dict[str, object] = {
        "n_nodes": tree.n_nodes,
        "n_edges": result.n_edges,
        "n_components": tree.n_nodes - tree.n_edges,
        "n_clusters": clustering.n_clusters,
        "n_unclustered": clustering.n_unclustered,
        "dbcvi": clustering.dbcvi,
        "cuts": [{"edge": edge, "dbcvi": index} for edge, index in pairs],
        "private": False,
    }
    if with_labels:
        document |= {"nodes": tree.names.tolist(), "labels": clustering.labels.tolist()}
    return document


@o.command
def check(
    graph: o.GraphArguments,
    sensitivity: o.SensitivityOptions,
    clusters: Annotated[
        Path,
        typer.Option(
            help="CSV with the columns node,cluster; -1 is unclustered.",
            show_default=False,
            readable=False,
        ),
    ],
    epsilon: Annotated[float | None, Option("Show the bounds at this budget.")] = None,
    delta: Delta = 0,
    mechanism: Mechanism = "auto",
    split: Split = None,
    as_json: o.AsJson = False,
) -> None:
    """Show which of the paper's conditions clusters fulfil, and the bounds that follow.

    For the curator only: the answers are computed from the private weights and must
    not be published.
    """
    from ptclust.theory.check import check_file

    request, file = None, graph.file()
    if epsilon is not None:
        request = o.PlanArguments(
            **vars(sensitivity), epsilon=epsilon, delta=delta, mechanism=mechanism, split=split
        ).request(file)
    elif sensitivity.given:
        raise UsageError(
            "bounds are for a budget: give --epsilon, too, or leave --l1, --l2, --linf out"
        )
    with progress_display() as progress:
        found = check_file(file, clusters, request, progress=progress)
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else found.to_text())
