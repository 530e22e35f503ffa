"""``ptclust dbmstclu`` and ``check``: without privacy, for the curator's own eyes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import ptclust
from ptclust._markup import counted
from ptclust._options import Delta, Mechanism, MinClusterSize, Option, Split
from ptclust.cli import _options as o
from ptclust.cli._outputs import STDOUT, held_outputs, print_result
from ptclust.cli._terminal import progress_display, say
from ptclust.errors import UsageError


@o.command
def dbmstclu(
    graph: o.GraphArguments,
    output: Annotated[
        Path | None, Option("Write node,cluster to this CSV file; - is stdout.", short="-o")
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

    files, reads = {"--output": output, "--plot": plot}, {"the graph": graph.edges}
    with held_outputs(files, reads, overwrite, as_json=as_json) as progress:
        file = graph.file()
        progress(f"Reading {file.name}")
        distances = file.read_here().to_distances()
        size = f"{counted(distances.n_nodes, 'node')} and {counted(distances.n_edges, 'edge')}"
        progress(f"Minimum spanning tree of {size}")
        tree = ptclust.minimum_spanning_tree(distances)
        progress("DBMSTClu")
        clustering = ptclust.dbmstclu(
            tree,
            max_clusters=max_clusters,
            min_cluster_size=min_cluster_size,
            progress=lambda cuts: progress(f"DBMSTClu: {cuts:,} cuts"),
        )
        names, labels = tree.names, clustering.labels
        if plot is not None:
            progress(f"Drawing {plot.name}")
            draw_tree(tree, labels, path=plot)
        progress("Writing")
        if output is not None or not as_json:
            path = None if output == STDOUT else output
            write_labels(names, labels, path, escape_formulas=escape_formulas)
        if as_json:
            document = {
                "n_nodes": tree.n_nodes,
                "n_edges": distances.n_edges,
                "n_components": tree.n_nodes - tree.n_edges,
                "n_clusters": clustering.n_clusters,
                "n_unclustered": clustering.n_unclustered,
                "dbcvi": clustering.dbcvi,
                "cuts": _cuts(clustering),
                "private": False,
            }
            if output is None:
                document |= {"nodes": names.tolist(), "labels": labels.tolist()}
            typer.echo(json.dumps(document, default=str, ensure_ascii=False))
    found = counted(clustering.n_clusters, "cluster")
    left = f", {clustering.n_unclustered:,} nodes unclustered" if clustering.n_unclustered else ""
    say(
        f"{found}{left} in {len(names):,} nodes and {distances.n_edges:,} edges; DBCVI "
        f"{clustering.dbcvi:.4f}. Not private: labels and index come from the raw weights."
    )


def _cuts(clustering: ptclust.Clustering) -> list[dict[str, Any]]:
    if (cuts := clustering.cuts) is None or cuts.dbcvi is None:
        return []
    pairs = zip(cuts.edge_ids.tolist(), cuts.dbcvi.tolist(), strict=True)
    return [{"edge": edge, "dbcvi": index} for edge, index in pairs]


@o.command
def check(
    graph: o.GraphArguments,
    sensitivity: o.SensitivityOptions,
    clusters: Annotated[Path, Option("CSV with the columns node,cluster; -1 is unclustered.")],
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
    bounds = vars(sensitivity)
    if epsilon is not None:
        planned: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": delta,
            "mechanism": mechanism,
            "split": split,
        }
        request = o.PlanArguments(**bounds, **planned).request(file)
    elif any(bound is not None for bound in bounds.values()):
        raise UsageError(
            "bounds are for a budget: give --epsilon, too, or leave --l1, --l2, --linf out"
        )
    with progress_display() as progress:
        found = check_file(file, clusters, request, progress=progress)
    print_result(found.to_dict(), found.to_text(), as_json=as_json)
