"""GraphML, well and badly formed."""

from __future__ import annotations

import pytest

from ptclust.errors import FileError, GraphError, WeightError
from ptclust.graph import Graph
from tests.graph.reading import (
    GRAPHML,
    assert_refused,
    of,
    read,
    weights,
)


class TestGraphml:
    def test_read(self, write):
        for name in ("g.graphml", "g.graphml.gz"):
            graph = read(write(name, GRAPHML))
            assert set(graph.names) == {"lone", "b", "a", "c"}
            assert weights(graph) == of(("b", "a", 0.123456789), ("a", "c", 2.0))

    def test_other_attribute_with_a_default(self, write):
        graph = read(write("g.graphml", GRAPHML), weight="price")
        assert weights(graph) == of(("b", "a", 7.0), ("a", "c", 1.0))

    def test_integer_ids(self, write):
        text = GRAPHML.replace('"lone"', '"10"').replace('"a"', '"3"')
        text = text.replace('"b"', '"-1"').replace('"c"', '"0"')
        assert set(read(write("g.graphml", text)).names.tolist()) == {10, -1, 3, 0}

    def test_what_networkx_and_igraph_write(self, tmp_path):
        networkx = pytest.importorskip("networkx")
        pytest.importorskip("igraph")
        graph = Graph([0, 1], [1, 2], [0.5, 0.25], n_nodes=4)
        networkx.write_graphml(graph.to_networkx(), tmp_path / "networkx.graphml")
        assert weights(read(tmp_path / "networkx.graphml")) == weights(graph)
        graph.to_igraph().write_graphml(str(tmp_path / "igraph.graphml"))
        assert sorted(read(tmp_path / "igraph.graphml").weights.tolist()) == [0.25, 0.5]

    @pytest.mark.parametrize(
        ("old", "new", "error", "message"),
        [
            ("</graph>", "", FileError, "not well-formed XML at line 14"),
            ('"UTF-8"', '"no-such-code"', FileError, "not well-formed XML"),
            ('<node id="c"/>', "", FileError, "edge at line 11 of .* node 'c', which .* declare"),
            ('"lone"', '"a"', FileError, "line 9 of .* declares node 'a' a second time"),
            ('<node id="c"/>', "<node/>", FileError, "<node> at line 12 of .* has no 'id'"),
            ('source="b"', "", FileError, "<edge> at line 10 of .* has no 'source'"),
            ("> 2 <", ">x0.123456789<", WeightError, "'weight' at line 11 of .* not a number"),
            ("> 2 <", "><", WeightError, "'weight' at line 11 of .* not a number"),
            ("> 2 <", ">nan<", WeightError, r"line 11 of .* \('a' - 'c'\) is not a finite"),
            ('<data key="k1"> 2 </data>', "", WeightError, "edge at line 11 of .* has no 'weight'"),
            ('target="c"', 'target="a"', GraphError, "line 11 of .* joins node 'a' to itself"),
            (
                'target="c"',
                'target="b"',
                GraphError,
                "lines 10 and 11 of .* both join '[ab]' and '[ab]'",
            ),
            ('for="edge" attr.name="weight"', 'for="edge"', WeightError, "are: 'k1', 'price'"),
            ("</graph>", "</graph><graph/>", FileError, "second <graph> at line 13"),
            ('<node id="lone"/>', "<hyperedge/>", FileError, "hyperedge at line 7"),
            (
                "?>\n",
                '?><!DOCTYPE g [<!ENTITY a "aa">]>\n',
                FileError,
                "document type declaration .line 1",
            ),
        ],
    )
    def test_bad(self, write, old, new, error, message):
        assert old in GRAPHML
        assert_refused(write("g.graphml", GRAPHML.replace(old, new)), error, message)

    def test_no_edges_and_no_graph(self, write):
        assert_refused(write("g.graphml", "<graphml><graph/></graphml>"), FileError, "no edges")
        assert_refused(write("g.graphml", "<html/>"), FileError, "no <graph> element")
