"""read_graph: every format, well and badly formed."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse

from ptclust.errors import FileError, GraphError, PtclustError, UsageError, WeightError
from ptclust.graph import Graph, read_graph, read_topology

SECRET = "0.123456789"
HEADER = "source,target,weight\n"


def everything_said(error: BaseException | None) -> str:
    """The text of an error and of all it was raised from or during."""
    said = ""
    while error is not None:
        said += f"{error} {error.args}"
        error = error.__cause__ or error.__context__
    return said


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


@pytest.fixture
def write(tmp_path):
    def write(name: str, content: str | bytes) -> Path:
        path: Path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


EXPECTED = of(("b", "a", 0.5), ("a", "c", 2.0))


class TestCsv:
    @pytest.mark.parametrize(
        "text",
        [
            "source,target,weight\nb,a,0.5\na,c,2\n",
            "source,target,weight\nb,a,0.5\na,c,2",
            "From,TO,cost\nb,a,0.5\na,c,2\n",
            "weight,source,target\n0.5,b,a\n2,a,c\n",
            "Source,Target,Type,Weight\nb,a,Undirected,0.5\na,c,Undirected,2\n",
            "source, target, weight\nb, a, 0.5\na, c, 2\n",
            "source,target,weight\nb,a,0.5 \n a,c,2\n",
            '"source","target","weight"\n"b","a","0.5"\n"a","c",2\n',
            "source,target,weight\r\nb,a,0.5\r\na,c,2\r\n",
            "\ufeffsource,target,weight\nb,a,0.5\na,c,2\n",
            "source,target,weight\nb,a,0.5\na,c,2\n\n\n",
            "source,target,weight\r\nb,a,0.5\r\n\r\na,c,2\r\n\r\n",
            "\n\nsource,target,weight\n\nb,a,0.5\n   \na,c,2\n",
            "source,target,weight,note\nb,a,5e-1,x\na,c,+2.,y\n",
        ],
    )
    def test_dialects(self, write, text):
        for name in ("edges.csv", "edges.csv.gz", "EDGES.CSV"):
            assert weights(read(write(name, text))) == EXPECTED
        tabbed = text.replace(",", "\t")
        for name in ("edges.tsv", "edges.tsv.gz"):
            assert weights(read(write(name, tabbed))) == EXPECTED

    @pytest.mark.parametrize(
        "text", ["b,a,0.5\na,c,2\n", "b,a,0.5\na,c,2", "\ufeffb,a,0.5\r\n\r\na,c,2\r\n"]
    )
    def test_without_a_header(self, write, text):
        assert weights(read(write("edges.csv", text), header=False)) == EXPECTED
        tabbed = text.replace(",", "\t")
        assert weights(read(write("edges.tsv.gz", tabbed), header=False)) == EXPECTED

    def test_format_can_be_given(self, write):
        path = write("edges.dat", "b\ta\t0.5\na\tc\t2\n")
        assert weights(read(path, format="tsv", header=False)) == EXPECTED
        assert weights(read(str(path), format="tsv", header=False)) == EXPECTED

    def test_integers_are_named_by_integers(self, write):
        text = "source,target,weight\n5,-3,1\n-3,0,2\n9223372036854775807,5,1\n"
        graph = read(write("edges.csv", text))
        assert graph.names.dtype == np.int64
        assert set(graph.names.tolist()) == {5, -3, 0, 2**63 - 1}

    @pytest.mark.parametrize("odd", ["007", "+7", "7.0", "-0", "9223372036854775808", "x"])
    def test_what_is_not_plainly_an_integer_stays_text(self, write, odd):
        graph = read(write("edges.csv", f"source,target,weight\n7,{odd},1\n{odd},0,2\n"))
        assert set(graph.names.tolist()) == {"7", odd, "0"}
        assert all(type(name) is str for name in graph.names)

    def test_ids_may_hold_anything_when_quoted(self, write):
        text = 'source,target,weight\n"a,b","say ""hi""",1\n"two\nlines",naïve 雪,2\n'
        names = set(read(write("edges.csv", text)).names)
        assert names == {"a,b", 'say "hi"', "two\nlines", "naïve 雪"}

    def test_file_names_are_not_patterns(self, write):
        path = write("edges[*]?.csv", "source,target,weight\nb,a,0.5\na,c,2\n")
        assert weights(read(path)) == EXPECTED

    def test_merge(self, write):
        path = write("edges.csv", "source,target,weight\na,b,0.5\nb,a,0.25\nb,c,1\n")
        assert weights(read(path, merge="max")) == of(("a", "b", 0.5), ("b", "c", 1.0))

    def test_many_nodes(self, write):
        ends = np.random.default_rng(5).permutation(120_000).reshape(-1, 2)
        text = "source,target,weight\n" + "".join(f"n{a},n{b},{a}\n" for a, b in ends)
        expected = of(*((f"n{a}", f"n{b}", float(a)) for a, b in ends))
        assert weights(read(write("edges.csv", text))) == expected

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ("", FileError, "has no edges"),
            ("\n\n", FileError, "has no edges"),
            ("source,target,weight\n", FileError, "has no edges"),
            ("source,target,weight", FileError, "has no edges"),
            (f"s,t,w\na,b,{SECRET}\nb,c,\n", WeightError, "line 3 of .* is missing;"),
            (f"s,t,w\na,b,{SECRET}\nb,c\n", WeightError, "line 3 of .* is missing"),
            (f"s,t,w\na,b,{SECRET}\n\nb,c,NA\n", WeightError, "line 4 of .* is missing"),
            (f"s,t,w\na,b,{SECRET}\nb,c,x{SECRET}\n", WeightError, "line 3 of .* is not a number"),
            (
                f's,t,w\na,b,1\n"b\nb",c,2\nc,d,"{SECRET},5"\n',
                WeightError,
                "line 5 of .* is not a number; it has a comma",
            ),
            (f"s,t,w\na,b,{SECRET}\nb,c,nan\n", WeightError, r"line 3 of .* is not a fin"),
            (
                f"s,t,w\na,b,{SECRET}\nb,c,-inf\n",
                WeightError,
                "line 3 of .* is not a finite number",
            ),
            (
                f"s,t,w\na,b,{SECRET}\nb,c,1e999\n",
                WeightError,
                "line 3 of .* is not a finite number",
            ),
            (f"s,t,w\na,,{SECRET}\n", GraphError, "line 2 of .* has no target"),
            (f's,t,w\na,b,1\n"",c,{SECRET}\n', GraphError, "line 3 of .* has no source"),
            (f's,t,w\na,b,1\nb,"  ",{SECRET}\n', GraphError, "line 3 of .* has no target"),
            (
                f"s,t,w\na,b,1\n\nb,b,{SECRET}\n",
                GraphError,
                "line 4 of .* joins node 'b' to itself",
            ),
            (
                f"s,t,w\na,b,{SECRET}\n\nb,c,1\nb,a,{SECRET}\n",
                GraphError,
                "lines 2 and 5 of .* both join 'a' and 'b'.*merge='min'",
            ),
            (f"s,t,w\n3,7,{SECRET}\n7,3,1\n", GraphError, "lines 2 and 3 of .* both join 3 and 7"),
            (f"s,t,w\na,b,1\na,b,{SECRET},5\n", FileError, "line 3 of .* has 4 fields, more than"),
            (f"s,t,w\nb,\xff,{SECRET}\n".encode("latin-1"), FileError, "line 2 .* is not UTF-8"),
            ("\xff,b,1\n".encode("latin-1"), FileError, "line 1 .* is not UTF-8"),
            (f's,t,w\na,b,1\n"b,c,{SECRET}\nc,d,1\n', FileError, "check its separator and quotes"),
        ],
    )
    def test_bad(self, write, text, error, message):
        stw = {"source": "s", "target": "t", "weight": "w"}
        content = text if isinstance(text, bytes) else text.encode()
        named = stw if content.startswith(b"s,t,w") else {}
        assert_refused(write("edges.csv", text), error, message, **named)
        assert_refused(write("edges.csv.gz", text), error, message, **named)

    def test_how_many_weights_are_missing_is_not_said(self, write):
        said = []
        for gaps in ("", "b,c,\n"):
            path = write("edges.csv", f"source,target,weight\na,b,\n{gaps}c,d,1\n")
            said.append(str(assert_refused(path, WeightError, "line 2 of .* is missing")))
        assert said[0] == said[1]

    def test_truncated_gzip(self, write, tmp_path):
        whole = write("whole.csv.gz", HEADER + "".join(f"{i},{i + 1},0.{i}\n" for i in range(5000)))
        path = tmp_path / "edges.csv.gz"
        path.write_bytes(whole.read_bytes()[:-200])
        assert_refused(path, FileError, "damaged or cut short")


class TestOpening:
    def test_missing(self, tmp_path):
        assert_refused(tmp_path / "none.csv", FileError, "does not exist")

    def test_directory(self, tmp_path):
        (tmp_path / "edges.csv").mkdir()
        assert_refused(tmp_path / "edges.csv", FileError, "is a directory")

    def test_no_permission(self, write, monkeypatch):
        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        path = write("edges.csv", "a,b,1\n")
        monkeypatch.setattr(Path, "open", refuse)
        assert_refused(path, FileError, "may not be read")

    @pytest.mark.parametrize("name", ["edges.dat", "edges", "edges.parquet.gz", "csv"])
    def test_unknown_ending(self, write, name):
        message = "csv, tsv, txt, parquet, graphml, mtx, npz"
        assert_refused(write(name, "a,b,1\n"), FileError, message)

    def test_unknown_format(self, write):
        path = write("edges.csv", "a,b,1\n")
        assert_refused(path, UsageError, "format must be one of csv, .* not 'xls'", format="xls")

    @pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "parquet", "graphml", "mtx", "npz"])
    def test_empty(self, write, ending):
        assert_refused(write(f"edges.{ending}", b""), FileError, "has no edges")

    @pytest.mark.parametrize("ending", ["parquet", "graphml", "mtx", "npz"])
    def test_rubbish(self, write, ending):
        assert_refused(write(f"edges.{ending}", f"a,b,{SECRET}\n" * 99), FileError, "edges")

    @pytest.mark.parametrize(
        ("ending", "role"), [("mtx", "weight"), ("npz", "source"), ("graphml", "target")]
    )
    def test_columns_of_what_has_none(self, write, ending, role):
        path = write(f"edges.{ending}", "x")
        assert_refused(path, UsageError, f"{role}= names a column", **{role: "w"})


class TestParquet:
    @pytest.mark.parametrize(
        "dtype",
        [pl.String, pl.Categorical, pl.Enum(["a", "b", "c"])],
    )
    def test_text_ids(self, tmp_path, dtype):
        frame = pl.DataFrame({"source": ["b", "a"], "target": ["a", "c"], "weight": [0.5, 2.0]})
        path = tmp_path / "edges.parquet"
        frame.with_columns(pl.col("source", "target").cast(dtype)).write_parquet(path)
        assert weights(read(path)) == EXPECTED

    @pytest.mark.parametrize(
        "dtypes",
        [
            (pl.Int64, pl.Int64),
            (pl.Int32, pl.Int32),
            (pl.UInt32, pl.UInt32),
            (pl.Int8, pl.UInt32),
            (pl.UInt64, pl.Int16),
        ],
    )
    def test_integer_ids(self, tmp_path, dtypes):
        for low in (0, 7, 2**31 - 100):  # dense and sparse ones, in any of the types
            least = low if dtypes[0] == dtypes[1] else 0
            ids = {"u": [least + 7, least + 3, least + 90], "v": [least + 3, least, least + 7]}
            frame = pl.DataFrame({**ids, "weight": [1, 2, 3]}).with_columns(
                pl.col("u").cast(dtypes[0]), pl.col("v").cast(dtypes[1])
            )
            frame.write_parquet(tmp_path / "edges.parquet")
            graph = read(tmp_path / "edges.parquet")
            assert graph.names.dtype == np.int64
            edges = ((7, 3, 1.0), (3, 0, 2.0), (90, 7, 3.0))
            assert weights(graph) == of(*((least + a, least + b, w) for a, b, w in edges))

    def test_large_unsigned_and_patterned_ids(self, tmp_path):
        ids = [i << 44 for i in range(2**20)]
        frame = pl.DataFrame(
            {"u": ids[:-1], "v": ids[1:], "cost": [1.0] * (2**20 - 1)},
            schema={"u": pl.UInt64, "v": pl.UInt64, "cost": pl.Float64},
        )
        frame.write_parquet(tmp_path / "edges.parquet")
        assert sorted(read(tmp_path / "edges.parquet").names.tolist()) == ids

    def test_text_of_digits_stays_text(self, tmp_path):
        frame = pl.DataFrame({"source": ["2"], "target": ["1"], "weight": [0.5]})
        frame.write_parquet(tmp_path / "edges.parquet")
        assert set(read(tmp_path / "edges.parquet").names) == {"2", "1"}

    @pytest.mark.parametrize("dtype", [pl.Int32, pl.UInt8, pl.Float32, pl.Decimal(10, 2)])
    def test_number_types_of_weights(self, tmp_path, dtype):
        frame = pl.DataFrame({"x": ["other"], "target": [1], "weight": [3], "source": [2]})
        frame.with_columns(pl.col("weight").cast(dtype)).write_parquet(tmp_path / "edges.parquet")
        assert weights(read(tmp_path / "edges.parquet")) == of((2, 1, 3.0))

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"source": [1.0, 2.0]}, GraphError, "of type Float64 .column 'source'"),
            ({"source": ["a", "b"]}, GraphError, "both must be integers, or both strings"),
            ({"source": [1, None]}, GraphError, "'source' has no node id in row 1 .counted from 0"),
            ({"weight": [SECRET, "x"]}, WeightError, "'weight' of .* is of type String"),
            ({"weight": [True, False]}, WeightError, "is of type Boolean"),
            (
                {"weight": [float(SECRET), None]},
                WeightError,
                "row 1 .counted from 0. of .* missing",
            ),
            ({"weight": [float(SECRET), np.nan]}, WeightError, r"row 1 .* \(2 - 3\) is not a fin"),
            ({"target": [2, 2]}, GraphError, "row 1 .* joins node 2 to itself"),
            ({"target": [2, 1]}, GraphError, "rows 0 and 1 .* both join 1 and 2"),
            ({"target": pl.Series([2, 2**64 - 1], dtype=pl.UInt64)}, GraphError, "as strings"),
        ],
    )
    def test_bad(self, tmp_path, changes, error, message):
        good: dict[str, Any] = {"source": [1, 2], "target": [2, 3], "weight": [float(SECRET), 1.0]}
        pl.DataFrame({**good, **changes}).write_parquet(tmp_path / "edges.parquet")
        assert_refused(tmp_path / "edges.parquet", error, message)

    def test_no_rows(self, tmp_path):
        schema = {"source": pl.String, "target": pl.String, "weight": pl.Float64}
        pl.DataFrame(schema=schema).write_parquet(tmp_path / "edges.parquet")
        assert_refused(tmp_path / "edges.parquet", FileError, "has no edges")

    def test_missing_column(self, tmp_path):
        pl.DataFrame({"a": [1], "b": [2], "c": [3]}).write_parquet(tmp_path / "edges.parquet")
        path = tmp_path / "edges.parquet"
        assert_refused(path, FileError, "no column 'w' .* 'a', 'b', 'c'", weight="w")

    def test_cut_short_or_overwritten(self, tmp_path):
        frame = pl.DataFrame({"u": range(900), "v": range(1, 901), "cost": [float(SECRET)] * 900})
        frame.write_parquet(tmp_path / "whole.parquet")
        whole = (tmp_path / "whole.parquet").read_bytes()
        path = tmp_path / "edges.parquet"
        for size in (4, 100, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            assert_refused(path, FileError, "damaged, cut short, or not a Parquet")
        path.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
        assert_refused(path, FileError, "damaged, cut short, or not a Parquet")


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


def matrix_market(kind: str, *lines: str) -> str:
    return f"%%MatrixMarket matrix {kind}\n" + "".join(f"{line}\n" for line in lines)


class TestMatrixMarket:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                matrix_market("coordinate real symmetric", "4 4 2", "3 2 0.5", "2 1 0"),
                of((2, 1, 0.5), (1, 0, 0.0)),
            ),
            (
                matrix_market("coordinate real general", "4 4 2", "3 2 0.5", "1 2 0"),
                of((2, 1, 0.5), (0, 1, 0.0)),
            ),
            (
                matrix_market(
                    "coordinate integer general", "4 4 4", "3 2 5", "1 2 0", "2 1 0", "2 3 5"
                ),
                of((0, 1, 0.0), (1, 2, 5.0)),
            ),
        ],
    )
    def test_read(self, write, text, expected):
        for name in ("m.mtx", "m.mtx.gz"):
            graph = read(write(name, text))
            assert graph.n_nodes == 4
            assert weights(graph) == expected

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ("%%MatrixMarket matrix coordinate real general\n", FileError, "not tell its size"),
            ("%%MatrixMarket matrix coordinate real\n", FileError, "does not begin with"),
            (matrix_market("coordinate real general", "2 2"), FileError, "not tell its size"),
            (matrix_market("coordinate real general", "2 2 1", "1 5 1"), FileError, "entry 1 of"),
            (matrix_market("coordinate real general", "2 2 1", "0 1 1"), FileError, "entry 1 of"),
            (
                matrix_market("coordinate real general", "2 2 2", "1 2 1", f"1 x{SECRET} 1"),
                FileError,
                "entry 2 of",
            ),
            (
                matrix_market("coordinate real general", "2 2 2", f"1 2 {SECRET}", "1"),
                FileError,
                "entry 2 of",
            ),
            (
                matrix_market("coordinate real general", "2 2 2", f"1 2 {SECRET}"),
                FileError,
                "announces 2 entries and has 1",
            ),
            (matrix_market("coordinate real general", "2 2 1"), FileError, "1 entries and has 0"),
            (
                matrix_market("coordinate real general", "2 3 1", "1 2 1"),
                GraphError,
                "2 x 3, .* sq",
            ),
            (matrix_market("coordinate pattern general", "2 2 1", "1 2"), WeightError, "pattern"),
            (
                matrix_market("coordinate complex general", "2 2 1", "1 2 1 1"),
                WeightError,
                "complex",
            ),
            (
                matrix_market("coordinate real skew-symmetric", "2 2 1", "2 1 1"),
                FileError,
                "skew-symmetric",
            ),
            (matrix_market("array real general", "1 1", SECRET), FileError, "dense"),
            (matrix_market("coordinate real general", "0 0 0"), FileError, "no edges"),
            (
                matrix_market("coordinate real general", "2 2 1", f"2 2 {SECRET}"),
                GraphError,
                "edge 0 of .* joins node 1 to itself",
            ),
            (
                matrix_market("coordinate real symmetric", "2 2 1", f"2 2 {SECRET}"),
                GraphError,
                "joins node 1 to itself",
            ),
            (
                matrix_market(
                    "coordinate real general", "3 3 3", f"1 2 {SECRET}", "2 1 3", "2 3 1"
                ),
                GraphError,
                "edges 0 and 1 of .* both join 0 and 1",
            ),
            (
                matrix_market("coordinate real symmetric", "2 2 2", f"1 2 {SECRET}", "2 1 3"),
                GraphError,
                "edges 0 and 1 of .* both join 0 and 1",
            ),
            (
                matrix_market("coordinate real general", "2 2 1", "1 2 nan"),
                WeightError,
                "edge 0 of",
            ),
        ],
    )
    def test_bad(self, write, text, error, message):
        assert_refused(write("m.mtx", text), error, message)

    def test_what_scipy_writes(self, tmp_path):
        graph = Graph([0, 1, 3], [1, 2, 0], [0.5, 0.0, 2.0], n_nodes=6)
        scipy.io.mmwrite(tmp_path / "m.mtx", graph.to_scipy(), comment="of a test")
        again = read(tmp_path / "m.mtx")
        assert again.n_nodes == 6
        assert sorted(again.weights.tolist()) == [0.0, 0.5, 2.0]


class TestNpz:
    def test_matrix(self, tmp_path):
        matrix = scipy.sparse.coo_array(([0.5, 0.0], ([2, 0], [1, 1])), shape=(4, 4))
        for form, number in itertools.product(("coo", "csr", "csc"), range(2)):
            path = tmp_path / f"{form}{number}.npz"
            stored = (matrix + matrix.T if number else matrix).asformat(form)
            scipy.sparse.save_npz(path, stored)
            graph = read(path)
            assert graph.n_nodes == 4
            assert sorted(graph.weights.tolist())[-1] == 0.5

    def test_arrays(self, tmp_path):
        path = tmp_path / "g.npz"
        np.savez(path, sources=[1, 0], targets=[0, 2], weights=[0.5, 2], names=["a", "b", "c"])
        assert weights(read(path)) == EXPECTED
        assert all(type(name) is str for name in read(path).names)
        np.savez(path, sources=[1, 0], targets=[0, 2], weights=[0.5, 2], n_nodes=5)
        assert read(path).n_nodes == 5
        np.savez(path, sources=[1, 0], targets=[0, 1], weights=[0.5, 2], names=[70, 80])
        assert weights(read(path, merge="max")) == of((80, 70, 2.0))

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"names": np.array(["a", "b", None])}, FileError, "arrays of Python objects"),
            ({"names": [["a"], ["b"], ["c"]]}, FileError, "'names' of .* one-dimensional"),
            ({"n_nodes": [3, 3]}, FileError, "'n_nodes' of .* single integer"),
            ({"weights": [float(SECRET), np.nan]}, WeightError, "edge 1 of .* is not a finite"),
            ({"weights": ["x0.123456789", "1"]}, WeightError, "edge 0 of .* is not a number"),
            ({"sources": [0, 0]}, GraphError, "edge 0 of .* joins node 0 to itself"),
            ({"format": "odd"}, FileError, "damaged, or not written by"),
        ],
    )
    def test_bad(self, tmp_path, changes, error, message):
        good: dict[str, Any] = {"sources": [1, 0], "targets": [0, 2], "weights": [float(SECRET), 2]}
        np.savez(tmp_path / "g.npz", **{**good, **changes})
        assert_refused(tmp_path / "g.npz", error, message)

    def test_missing_array(self, tmp_path):
        np.savez(tmp_path / "g.npz", sources=[0], weights=[float(SECRET)])
        assert_refused(tmp_path / "g.npz", FileError, "no array 'targets'.* 'sources', 'weights'")

    def test_cut_short(self, tmp_path):
        np.savez(
            tmp_path / "whole.npz", sources=np.arange(9), targets=np.arange(9), weights=[0.5] * 9
        )
        whole = (tmp_path / "whole.npz").read_bytes()
        (tmp_path / "g.npz").write_bytes(whole[:-100])
        assert_refused(tmp_path / "g.npz", FileError, "damaged")


class TestMatrices:
    """What is an edge of a matrix is decided by where its entries are, never by what they are."""

    @staticmethod
    def of_matrix(tmp_path, entries: list[tuple[int, int, float]], **options: Any) -> list[Graph]:
        """The graphs of a matrix from both of its formats."""
        rows, columns, values = (list(part) for part in zip(*entries))
        size = max(*rows, *columns) + 1
        matrix = scipy.sparse.coo_array((values, (rows, columns)), shape=(size, size))
        scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
        lines = (f"{row + 1} {column + 1} {value!r}" for row, column, value in entries)
        head = f"{size} {size} {len(entries)}"
        text = matrix_market("coordinate real general", head, *lines)
        (tmp_path / "m.mtx").write_text(text)
        return [read(tmp_path / name, **options) for name in ("m.npz", "m.mtx")]

    @pytest.mark.parametrize(
        ("a", "b", "mean"),
        [
            (0.5, 0.5, 0.5),
            (0.5, 1.5, 1.0),
            (5e-324, 5e-324, 5e-324),
            (1.5e-323, 1.5e-323, 1.5e-323),
            (1e308, 1.5e308, 1.25e308),
            (-1e308, 1e308, 0.0),
            (0.1, 0.1, 0.1),
            (3.0, -1.0, 1.0),
        ],
    )
    def test_an_entry_and_its_mirror_are_one_edge(self, tmp_path, a, b, mean):
        entries = [(1, 2, 7.0), (0, 1, a), (2, 1, 9.0), (1, 0, b)]
        for graph in self.of_matrix(tmp_path, entries):
            assert weights(graph) == of((0, 1, mean), (1, 2, 8.0))

    def test_entries_without_a_mirror_are_edges(self, tmp_path):
        for graph in self.of_matrix(tmp_path, [(0, 1, 0.5), (2, 1, 0.25)]):
            assert weights(graph) == of((0, 1, 0.5), (1, 2, 0.25))

    @pytest.mark.parametrize("b", [0.5, 0.25])
    def test_a_pair_both_ways_among_others_is_refused_whatever_it_weighs(self, tmp_path, b):
        said = []
        for entries in ([(0, 1, 0.5), (1, 0, b), (1, 2, 1.0)], [(0, 1, 0.5), (1, 0, b), (0, 1, b)]):
            with pytest.raises(GraphError, match="both join 0 and 1") as caught:
                self.of_matrix(tmp_path, entries)
            said.append(str(caught.value))
        assert all("edges 0 and 1" in text for text in said)

    @pytest.mark.parametrize("b", [0.5, 0.25])
    def test_merge_takes_every_entry(self, tmp_path, b):
        entries = [(0, 1, 0.5), (1, 0, b), (1, 2, 1.0), (2, 1, 1.0)]
        for graph in self.of_matrix(tmp_path, entries, merge="sum"):
            assert weights(graph) == of((0, 1, 0.5 + b), (1, 2, 2.0))
        for graph in self.of_matrix(tmp_path, entries, merge="min"):
            assert weights(graph) == of((0, 1, b), (1, 2, 1.0))

    def test_infinities_of_both_signs_are_refused_quietly(self, tmp_path):
        with pytest.raises(WeightError, match="is not a finite number"):
            self.of_matrix(tmp_path, [(0, 1, np.inf), (1, 0, -np.inf)])


class TestTopology:
    """It is that of the graph, and no weight is looked at."""

    def of_spoiled(self, path: Path, **options: Any) -> Any:
        with pytest.raises((WeightError, FileError)):
            read_graph(path, kind="distance", **options)
        return read_topology(path, **options)

    @pytest.mark.parametrize("weight", ["x", "", "nan", "1e999", "1,5"])
    def test_of_text(self, write, weight):
        rows = [("source", "target", "weight"), ("b", "a", weight), ("a", "c", "1")]
        text = "".join(";".join(row) + "\n" for row in rows)
        assert self.of_spoiled(write("e.csv", text)).n_edges == 2

    def test_of_text_with_blank_lines(self, write):
        text = "\n \nsource,target,weight\n\n  \nb,a,0.5\n\t\na,c,2\n  \n"
        assert weights(read(write("e.csv", text))) == EXPECTED

    @pytest.mark.parametrize(
        "spoiled",
        [
            GRAPHML.replace("0.123456789", "x"),
            GRAPHML.replace('for="edge"', 'for="node"'),
            GRAPHML.replace("> 2 <", "> nan <"),
            GRAPHML.replace('"weight" attr.type="double"/>', '"weight"><default>x</default></key>'),
            GRAPHML.replace('attr.name="price"', 'attr.name="weight"'),
        ],
    )
    def test_of_graphml(self, write, spoiled):
        expected = read(write("g.graphml", GRAPHML)).topology
        assert self.of_spoiled(write("h.graphml", spoiled)) == expected

    @pytest.mark.parametrize(
        "spoiled",
        [
            matrix_market("coordinate pattern general", "3 3 2", "1 2", "3 2"),
            matrix_market("coordinate pattern symmetric", "3 3 2", "2 1", "3 2"),
            matrix_market("coordinate complex general", "3 3 2", "1 2 0 1", "3 2 1 0"),
            matrix_market("coordinate real general", "3 3 2", "1 2 x", "3 2 nan"),
            matrix_market("coordinate integer general", "3 3 2", "1 2", "3 2 7 7"),
            matrix_market("coordinate pattern general", "3 3 4", "1 2", "3 2", "2 3", "2 1"),
        ],
    )
    def test_of_matrix_market(self, write, spoiled):
        good = matrix_market("coordinate real general", "3 3 2", "1 2 0.5", "3 2 0.25")
        topology = self.of_spoiled(write("spoiled.mtx", spoiled))
        assert pairs(topology) == pairs(read(write("good.mtx", good)).topology)
        assert topology.n_nodes == 3

    def test_of_npz(self, tmp_path):
        path = tmp_path / "g.npz"
        ends = {"sources": [1, 0], "targets": [0, 2]}
        for values in ([np.nan, 1.0], ["x", "y"], np.array([None, 1]), [1j, 2j], [1.0]):
            np.savez(path, **ends, weights=values)
            if np.shape(values) == (1,):
                with pytest.raises(GraphError, match="1 weights were given for 2"):
                    read_graph(path, kind="distance")
                assert read_topology(path).n_edges == 2
            else:
                assert self.of_spoiled(path).n_edges == 2
        matrix = {"format": b"coo", "shape": [3, 3], "row": [1, 0], "col": [0, 2]}
        for values in ([1j, 2j], ["x", "y"], np.array([None, 1]), [1.0]):
            np.savez(path, **matrix, data=values)
            assert pairs(self.of_spoiled(path)) == {frozenset([0, 1]), frozenset([0, 2])}
        np.savez(path, **matrix)
        assert self.of_spoiled(path).n_edges == 2

    def test_of_parquet(self, tmp_path):
        path = tmp_path / "e.parquet"
        ends = {"source": [1, 2], "target": [2, 3]}
        for values in ([None, 1.0], ["x", "y"], [np.nan, 1.0], [[1], [2]]):
            pl.DataFrame({**ends, "weight": values}).write_parquet(path)
            assert self.of_spoiled(path).n_edges == 2
        pl.DataFrame(ends).write_parquet(path)
        assert self.of_spoiled(path).n_edges == 2


def pairs(topology: Any) -> set[frozenset[Any]]:
    names = topology.names.tolist()
    ends = zip(topology.sources, topology.targets)
    return {frozenset([names[a], names[b]]) for a, b in ends}


def test_how_a_symmetric_matrix_was_written_does_not_matter(tmp_path):
    """scipy writes one triangle if the values are symmetric, and both if they are not."""
    found = []
    for more in (0.0, 1.0):
        matrix = np.array([[0, 5 + more, 3], [5, 0, 2], [3, 2, 0]])
        scipy.io.mmwrite(tmp_path / "flow.mtx", scipy.sparse.coo_array(matrix))
        read = [
            read_graph(tmp_path / "flow.mtx", kind="similarity", merge=merge).weights.tolist()
            for merge in (None, "sum", "max")
        ]
        found.append(read)
        topologies = (read_topology(tmp_path / "flow.mtx", merge=merge) for merge in (None, "sum"))
        assert len({repr(topology) for topology in topologies}) == 1
    assert found[0] == [[5.0, 3.0, 2.0], [10.0, 6.0, 4.0], [5.0, 3.0, 2.0]]
    assert found[1] == [[5.5, 3.0, 2.0], [11.0, 6.0, 4.0], [6.0, 3.0, 2.0]]
