"""Releases for other programs: tables and GraphML."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ptclust._files import written_at_once
from ptclust.errors import FileError
from ptclust.release.release import Release

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="kind" for="graph" attr.name="kind" attr.type="string"/>
  <key id="label" for="node" attr.name="label" attr.type="long"/>
  <key id="weight" for="edge" attr.name="weight" attr.type="double"/>
  <key id="edge_id" for="edge" attr.name="edge_id" attr.type="long"/>
  <graph edgedefault="undirected">
"""
_TAIL = "  </graph>\n</graphml>\n"


def write_parquet(release: Release, path: Path) -> None:
    """Write ``node`` and ``label``; names of mixed or unusual types are written as text."""
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
    names = list(map(str, release.names.tolist()))
    if len(set(names)) < len(names):
        raise FileError("two node names are the same as text, all that GraphML has; rename them")
    if odd := next(filter(_NOT_XML.search, names), None):
        remedy = "rename it, or write CSV or Parquet"
        raise FileError(f"the node name {odd!r} has a character that XML does not admit; {remedy}")
    with (
        written_at_once(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(_HEAD)
        file.writelines(_elements(release, [quoteattr(name) for name in names]))
        file.write(_TAIL)


def _elements(release: Release, names: list[str]) -> Iterator[str]:
    tree = release.tree
    yield f'    <data key="kind">{release.kind}</data>\n'
    for name, label in zip(names, release.labels.tolist(), strict=True):
        yield f'    <node id={name}><data key="label">{label}</data></node>\n'
    edges = (tree.sources, tree.targets, tree.weights, tree.edge_ids)
    for source, target, weight, edge in zip(*(part.tolist() for part in edges), strict=True):
        yield (
            f"    <edge source={names[source]} target={names[target]}>"
            f'<data key="weight">{weight!r}</data><data key="edge_id">{edge}</data></edge>\n'
        )
