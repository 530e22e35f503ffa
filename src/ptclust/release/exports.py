"""Releases for other programs: tables, GraphML, GEXF, GeoJSON, networkx and igraph."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from ptclust._files import written_at_once
from ptclust._lazy import package
from ptclust._markup import quoted
from ptclust.drawing.style import Groups
from ptclust.errors import FileError, InputError
from ptclust.release.release import Release

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="kind" for="graph" attr.name="kind" attr.type="string"/>
  <key id="cluster" for="node" attr.name="cluster" attr.type="long"/>
  <key id="weight" for="edge" attr.name="weight" attr.type="double"/>
  <key id="edge_id" for="edge" attr.name="edge_id" attr.type="long"/>
  <graph edgedefault="undirected">
"""
_TAIL = "  </graph>\n</graphml>\n"
_GEXF_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://www.gexf.net/1.2draft" xmlns:viz="http://www.gexf.net/1.2draft/viz" \
version="1.2">
  <graph mode="static" defaultedgetype="undirected">
    <attributes class="node">
      <attribute id="cluster" title="cluster" type="integer"/>
    </attributes>
    <attributes class="edge">
      <attribute id="noisy_weight" title="noisy_weight" type="double"/>
    </attributes>
"""
_GEXF_TAIL = "  </graph>\n</gexf>\n"


def write_parquet(release: Release, path: Path) -> None:
    """Write ``node`` and ``cluster``; names of mixed or unusual types are written as text."""
    import polars as pl

    table = release.to_dataframe()
    if table.schema["node"] == pl.Object:
        table = table.with_columns(pl.Series("node", list(map(str, release.names.tolist()))))
    content = io.BytesIO()  # not straight to the file: polars words a full disk as damage
    table.write_parquet(content)
    with written_at_once(path) as temporary:
        temporary.write_bytes(content.getbuffer())


def write_graphml(release: Release, path: Path) -> None:
    """Write the tree with noisy weights and labels; names, as text, are the ids of the nodes."""
    names = _names(release)
    if len(set(names)) < len(names):
        raise FileError("two node names are the same as text, all that GraphML has; rename them")
    quoted = [quoteattr(name) for name in names]
    _write(path, _HEAD, _elements(release, quoted), _TAIL)


def write_gexf(release: Release, path: Path) -> None:
    """Write the tree with names, clusters and their colours; nodes are numbered."""
    _write(path, _GEXF_HEAD, _gexf_elements(release), _GEXF_TAIL)


def write_geojson(release: Release, places: ArrayLike, path: Path) -> None:
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
    colours = [group.colour for group in groups.all]
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
                "marker-color": colours[group],
            },
        }
        for node, (name, cluster, group, point) in enumerate(nodes)
    ]
    document = {"type": "FeatureCollection", "features": features}
    with written_at_once(path) as temporary:
        temporary.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


def _names(release: Release) -> list[str]:
    names = list(map(str, release.names.tolist()))
    if odd := next(filter(_NOT_XML.search, names), None):
        bad = f"the node name {quoted(odd)} has a character that XML does not admit"
        raise FileError(f"{bad}; rename it, or write CSV or Parquet")
    return names


def _write(path: Path, head: str, elements: Iterator[str], tail: str) -> None:
    with (
        written_at_once(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(head)
        file.writelines(elements)
        file.write(tail)


def _elements(release: Release, names: list[str]) -> Iterator[str]:
    tree = release.tree
    yield f'    <data key="kind">{release.kind}</data>\n'
    for name, label in zip(names, release.labels.tolist(), strict=True):
        yield f'    <node id={name}><data key="cluster">{label}</data></node>\n'
    edges = (tree.sources, tree.targets, tree.weights, tree.edge_ids)
    for source, target, weight, edge in zip(*(part.tolist() for part in edges), strict=True):
        yield (
            f"    <edge source={names[source]} target={names[target]}>"
            f'<data key="weight">{weight!r}</data><data key="edge_id">{edge}</data></edge>\n'
        )


def _gexf_elements(release: Release) -> Iterator[str]:
    names, tree, groups = _names(release), release.tree, Groups.of(release.labels)
    colours = [_rgb(group.colour) for group in groups.all]
    yield "    <nodes>\n"
    nodes = zip(names, release.labels.tolist(), groups.of_node.tolist(), strict=True)
    for node, (name, label, group) in enumerate(nodes):
        yield (
            f'      <node id="{node}" label={quoteattr(name)}><attvalues>'
            f'<attvalue for="cluster" value="{label}"/></attvalues>{colours[group]}</node>\n'
        )
    yield "    </nodes>\n    <edges>\n"
    edges = zip(tree.sources.tolist(), tree.targets.tolist(), tree.weights.tolist(), strict=True)
    for edge, (source, target, weight) in enumerate(edges):
        yield (
            f'      <edge id="{edge}" source="{source}" target="{target}"><attvalues>'
            f'<attvalue for="noisy_weight" value="{weight!r}"/></attvalues></edge>\n'
        )
    yield "    </edges>\n"


def _rgb(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f'<viz:color r="{red}" g="{green}" b="{blue}"/>'


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
