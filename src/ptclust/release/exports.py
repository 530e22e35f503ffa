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


def parquet(release: Release) -> bytes:
    """Return ``node`` and ``cluster``; names of mixed or unusual types are written as text."""
    import polars as pl

    table = release.to_dataframe()
    if table.schema["node"] == pl.Object:
        table = table.with_columns(pl.Series("node", list(map(str, release.names.tolist()))))
    content = io.BytesIO()  # not straight to the file: polars words a full disk as damage
    table.write_parquet(content)
    return content.getvalue()


def graphml(release: Release) -> bytes:
    """Return the tree with noisy weights and labels; names, as text, are the ids of the nodes."""
    if len(set(map(str, release.names.tolist()))) < release.n_nodes:
        raise FileError("two node names are the same as text, all that GraphML has; rename them")
    return _tree("tree.graphml", release)


def gexf(release: Release) -> bytes:
    """Return the tree with names, clusters and their colours; nodes are numbered."""
    shades = [tuple(bytes.fromhex(colour[1:])) for colour in Groups.of(release.labels).colours]
    return _tree("tree.gexf", release, colours=shades)


def _tree(template: str, release: Release, **more: Any) -> bytes:
    tree, names = release.tree, list(map(str, release.names.tolist()))
    if odd := next(filter(_NOT_XML.search, names), None):
        bad = f"the node name {quoted(odd)} has a character that XML does not admit"
        raise FileError(f"{bad}; rename it, or write CSV or Parquet")
    columns = (tree.sources, tree.targets, tree.weights, tree.edge_ids)
    text = rendered(
        template,
        kind=release.kind,
        names=list(map(quoteattr, names)),
        labels=release.labels.tolist(),
        edges=list(zip(*(column.tolist() for column in columns), strict=True)),
        **more,
    )
    return text.encode()


def geojson(release: Release, places: ArrayLike) -> bytes:
    """Return a point for every node: longitude and latitude, as RFC 7946 wants them."""
    points = np.asarray(places, dtype=np.float64)
    if points.shape != (release.n_nodes, 2):
        raise InputError(
            f"coordinates must be a longitude and a latitude for each of the {release.n_nodes:,} "
            f"nodes, in the order of release.names, not an array of shape {points.shape}"
        )
    names = release.names.tolist()
    outside = ~(np.abs(points) <= (180, 90)).all(axis=1)
    if outside.any():
        raise InputError(
            f"node {names[int(outside.argmax())]!r} is at no longitude within 180 and latitude "
            "within 90 degrees, all that GeoJSON has; give degrees, the longitude first"
        )
    columns = {
        "node": [name if isinstance(name, int | float) else str(name) for name in names],
        "cluster": release.labels.tolist(),
        **{name: values.tolist() for name, values in release.further_columns.items()},
        "marker-color": Groups.of(release.labels).colours,
    }
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": point},
            "properties": dict(zip(columns, row, strict=True)),
        }
        for point, row in zip(points.tolist(), zip(*columns.values(), strict=True), strict=True)
    ]
    document = {"type": "FeatureCollection", "features": features}
    return json.dumps(document, ensure_ascii=False).encode()


def write(content: bytes, path: Path, *, overwrite: bool) -> None:
    """Write a file at once; FileError if it exists and ``overwrite`` is not set."""
    with held(path, overwrite), written_at_once(path) as temporary:
        temporary.write_bytes(content)


def to_networkx(release: Release, onto: Any) -> Any:
    """Put the clusters onto a networkx graph, or onto a new one."""
    networkx, names = package("networkx", "Release.to_networkx"), release.names.tolist()
    if onto is None:
        whole = release.topology
        onto = networkx.Graph(kind=release.kind)
        onto.add_nodes_from(names)
        ends = (release.names[each].tolist() for each in (whole.sources, whole.targets))
        edges = zip(*ends, release.noisy_weights.tolist(), strict=True)
        onto.add_weighted_edges_from(edges, weight="noisy_weight")
    clusters = dict(zip(names, release.labels.tolist(), strict=True))
    networkx.set_node_attributes(onto, clusters, "cluster")  # of those that are in it
    _check_known(sum(name in onto for name in names), release)
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
