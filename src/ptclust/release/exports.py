"""Releases for other programs: tables, GraphML, GEXF, GeoJSON, networkx and igraph."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from ptclust._files import held, written_at_once
from ptclust._lazy import package
from ptclust._markup import quoted, rendered
from ptclust.drawing.style import Groups
from ptclust.errors import FileError, InputError

if TYPE_CHECKING:
    from ptclust.release.release import Release

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_parquet(release: Release, path: Path, *, overwrite: bool) -> None:
    """Write ``node`` and ``cluster``; names of mixed or unusual types are written as text."""
    import polars as pl

    table = release.to_dataframe()
    if table.schema["node"] == pl.Object:
        table = table.with_columns(pl.Series("node", list(map(str, release.names.tolist()))))
    content = io.BytesIO()  # not straight to the file: polars words a full disk as damage
    table.write_parquet(content)
    with held(path, overwrite), written_at_once(path) as temporary:
        temporary.write_bytes(content.getbuffer())


def write_graphml(release: Release, path: Path, *, overwrite: bool) -> None:
    """Write the tree with noisy weights and labels; names, as text, are the ids of the nodes."""
    names = _names(release)
    if len(set(names)) < len(names):
        raise FileError("two node names are the same as text, all that GraphML has; rename them")
    _write_tree("tree.graphml", release, names, path, overwrite)


def write_gexf(release: Release, path: Path, *, overwrite: bool) -> None:
    """Write the tree with names, clusters and their colours; nodes are numbered."""
    groups = Groups.of(release.labels)
    shades = [[int(group.colour[i : i + 2], 16) for i in (1, 3, 5)] for group in groups.all]
    colours = [shades[group] for group in groups.of_node.tolist()]
    _write_tree("tree.gexf", release, _names(release), path, overwrite, colours=colours)


def _write_tree(
    template: str, release: Release, names: list[str], path: Path, overwrite: bool, **more: Any
) -> None:
    tree = release.tree
    columns = (tree.sources, tree.targets, tree.weights, tree.edge_ids)
    content = rendered(
        template,
        kind=release.kind,
        names=list(map(quoteattr, names)),
        labels=release.labels.tolist(),
        edges=list(zip(*(column.tolist() for column in columns), strict=True)),
        **more,
    )
    with held(path, overwrite), written_at_once(path) as temporary:
        temporary.write_text(content, encoding="utf-8", newline="\n")


def write_geojson(release: Release, places: ArrayLike, path: Path, *, overwrite: bool) -> None:
    """Write a point for every node: longitude and latitude, as RFC 7946 wants them."""
    points = np.asarray(places, dtype=np.float64)
    if points.shape != (release.n_nodes, 2):
        raise InputError(
            f"coordinates must be a longitude and a latitude for each of the {release.n_nodes:,} "
            f"nodes, in the order of release.names, not an array of shape {points.shape}"
        )
    outside = ~(np.abs(points) <= (180, 90)).all(axis=1)
    if outside.any():
        name = release.names.tolist()[int(outside.argmax())]
        raise InputError(
            f"node {name!r} is at no longitude within 180 and latitude within 90 degrees, all "
            "that GeoJSON has; give degrees, the longitude first"
        )
    groups = Groups.of(release.labels)
    more = {column: values.tolist() for column, values in release.further_columns.items()}
    nodes = zip(
        release.names.tolist(),
        release.labels.tolist(),
        groups.of_node.tolist(),
        points.tolist(),
        strict=True,
    )
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": point},
            "properties": {
                "node": name if isinstance(name, int | float) else str(name),
                "cluster": cluster,
                **{name: values[node] for name, values in more.items()},
                "marker-color": groups.all[group].colour,
            },
        }
        for node, (name, cluster, group, point) in enumerate(nodes)
    ]
    document = {"type": "FeatureCollection", "features": features}
    with held(path, overwrite), written_at_once(path) as temporary:
        temporary.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


def _names(release: Release) -> list[str]:
    names = list(map(str, release.names.tolist()))
    if odd := next(filter(_NOT_XML.search, names), None):
        bad = f"the node name {quoted(odd)} has a character that XML does not admit"
        raise FileError(f"{bad}; rename it, or write CSV or Parquet")
    return names


def to_networkx(release: Release, onto: Any) -> Any:
    """Put the clusters onto a networkx graph, or onto a new one."""
    names, clusters = release.names.tolist(), release.labels.tolist()
    if onto is None:
        whole = release.topology
        onto = package("networkx", "Release.to_networkx").Graph(kind=release.kind)
        onto.add_nodes_from(names)
        ends = zip(whole.sources.tolist(), whole.targets.tolist(), strict=True)
        for (a, b), weight in zip(ends, release.noisy_weights.tolist(), strict=True):
            onto.add_edge(names[a], names[b], noisy_weight=weight)
    known = 0
    for name, cluster in zip(names, clusters, strict=True):
        if name in onto:
            onto.nodes[name]["cluster"] = cluster
            known += 1
    _check_known(known, release)
    return onto


def to_igraph(release: Release, onto: Any) -> Any:
    """Put the clusters onto an igraph graph, or onto a new one."""
    if onto is None:
        whole = release.topology
        ends = np.stack([whole.sources, whole.targets], axis=1).tolist()
        onto = package("igraph", "Release.to_igraph").Graph(n=release.n_nodes, edges=ends)
        onto["kind"], onto.es["noisy_weight"] = release.kind, release.noisy_weights.tolist()
        onto.vs["name"] = release.names.tolist()
    named = "name" in onto.vs.attributes()
    there = onto.vs["name"] if named else range(onto.vcount())
    cluster_of = dict(zip(release.names.tolist(), release.labels.tolist(), strict=True))
    onto.vs["cluster"] = [cluster_of.get(name) for name in there]
    _check_known(sum(name in cluster_of for name in there), release)
    return onto


def _check_known(known: int, release: Release) -> None:
    if known == 0 < release.n_nodes:
        raise InputError("no node of the graph has a name that is in the release")
