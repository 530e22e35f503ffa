"""How a clustering leaves the command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ptclust.pipeline import TreeClustering
    from ptclust.release import Release


def check_outputs(*paths: Path | None, plot: Path | None = None) -> None:
    """Raise FileError now, before long work, if an output cannot be written later."""
    from ptclust._files import check_writable
    from ptclust.report import check_format

    for path in (*paths, plot):
        if path is not None:
            check_writable(path)
    if plot is not None:
        check_format(plot)


def write_release(
    release: Release, output: Path, labels: Path | None, plot: Path | None, overwrite: bool = False
) -> None:
    """Write a release, and its labels and picture where these are wanted."""
    from ptclust.report import draw_tree

    release.save(output, overwrite=overwrite)
    if labels is not None:
        release.to_csv(labels)
    if plot is not None:
        draw_tree(release.tree, release.labels, path=plot)


def write_labels(result: TreeClustering, path: Path | None) -> None:
    """Write ``node,label`` as CSV to a file, or to stdout if there is none."""
    import polars as pl

    from ptclust._files import written_at_once

    names = result.tree.names.tolist()
    nodes = pl.Series("node", names, strict=False)
    if not (nodes.dtype.is_integer() or nodes.dtype == pl.String):
        nodes = pl.Series("node", [str(name) for name in names])
    table = pl.DataFrame([nodes, pl.Series("label", result.clustering.labels)])
    if path is None:
        sys.stdout.write(table.write_csv())
        return
    with written_at_once(path) as temporary:
        table.write_csv(temporary)


def write_json(result: TreeClustering, *, with_labels: bool) -> None:
    """Write counts, index and cuts to stdout, and the labels if they go nowhere else."""
    import json

    clustering, pairs = result.clustering, []
    if (cuts := clustering.cuts) is not None and cuts.dbcvi is not None:
        pairs = list(zip(cuts.edge_ids.tolist(), cuts.dbcvi.tolist(), strict=True))
    document: dict[str, object] = {
        "n_nodes": result.tree.n_nodes,
        "n_edges": result.n_edges,
        "n_components": result.tree.n_nodes - result.tree.n_edges,
        "n_clusters": clustering.n_clusters,
        "n_unclustered": clustering.n_unclustered,
        "dbcvi": clustering.dbcvi,
        "cuts": [{"edge": edge, "dbcvi": index} for edge, index in pairs],
        "private": False,
    }
    if with_labels:
        document["nodes"] = result.tree.names.tolist()
        document["labels"] = clustering.labels.tolist()
    json.dump(document, sys.stdout, default=str, ensure_ascii=False)
    sys.stdout.write("\n")


def summary(result: TreeClustering) -> str:
    """Return one line for the person at the terminal."""
    clustering = result.clustering
    left = f", {clustering.n_unclustered:,} nodes unclustered" if clustering.n_unclustered else ""
    clusters = "1 cluster" if clustering.n_clusters == 1 else f"{clustering.n_clusters:,} clusters"
    return (
        f"{clusters}{left} in {result.tree.n_nodes:,} nodes and {result.n_edges:,} edges; "
        f"DBCVI {clustering.dbcvi:.4f}. Not private: labels and index come from the raw weights."
    )
