"""Graphs read from files, and what errors say: for tests of readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptclust.errors import PtclustError, UsageError
from ptclust.graph import Graph, read_graph, read_topology
from ptclust.graph.graph import Edges
from tests.leaks import everything_said

SECRET = "0.123456789"


def read(path: Path | str, **options: Any) -> Graph:
    """Read a graph whose weights are distances; the same topology is read without them."""
    graph = read_graph(path, kind="distance", **options)
    assert read_topology(path, **options) == graph.topology
    return graph


def assert_refused(
    path: Path, error: type[PtclustError], message: str, **options: Any
) -> PtclustError:
    with pytest.raises(error, match=message) as caught:
        read_graph(path, **{"kind": "distance", **options})
    said = everything_said(caught.value).replace(str(path), path.name)
    assert "123456789" not in said
    assert path.name in said or isinstance(caught.value, UsageError)
    return caught.value


def weights(graph: Graph) -> dict[frozenset[Any], float]:
    """The weight of every edge by the names of its nodes, in whatever order they are."""
    names = graph.names.tolist()
    edges = zip(graph.sources, graph.targets, graph.weights.tolist(), strict=True)
    return {frozenset([names[a], names[b]]): weight for a, b, weight in edges}


def of(*edges: tuple[Any, Any, float]) -> dict[frozenset[Any], float]:
    return {frozenset([a, b]): weight for a, b, weight in edges}


EXPECTED = of(("b", "a", 0.5), ("a", "c", 2.0))


GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="k0" for="node" attr.name="weight" attr.type="double"><default>99</default></key>
  <key id="k1" for="edge" attr.name="weight" attr.type="double"/>
  <key id="k2" for="edge" attr.name="price" attr.type="double"><default>7</default></key>
  <graph edgedefault="directed">
    <node id="lone"/>
    <node id="b"><data key="k0">5</data></node>
    <node id="a"/>
    <edge source="b" target="a"><data key="k1">0.123456789</data></edge>
    <edge source="a" target="c"><data key="k1"> 2 </data><data key="k2">1</data></edge>
    <node id="c"/>
  </graph>
</graphml>
"""


def matrix_market(kind: str, *lines: str) -> str:
    return f"%%MatrixMarket matrix {kind}\n" + "".join(f"{line}\n" for line in lines)


def given_edges(monkeypatch: pytest.MonkeyPatch, path: Path, **options: Any) -> Edges:
    """What a reader hands to Graph."""
    seen: list[Edges] = []
    some = Graph([0], [1], [1.0])

    def made(edges: Edges, merge: Any) -> Graph:
        seen.append(edges)
        return some

    with monkeypatch.context() as patch:
        patch.setattr(Graph, "_of", made)
        read_graph(path, **{"kind": "distance", **options})
    return seen[0]
