"""Text tables: how they are written, well and badly formed."""

from __future__ import annotations

import numpy as np
import pytest

from ptclust.errors import FileError, GraphError, WeightError
from tests.graph.reading import (
    EXPECTED,
    SECRET,
    assert_refused,
    of,
    read,
    weights,
)


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
        whole = write(
            "whole.csv.gz",
            "source,target,weight\n" + "".join(f"{i},{i + 1},0.{i}\n" for i in range(5000)),
        )
        path = tmp_path / "edges.csv.gz"
        path.write_bytes(whole.read_bytes()[:-200])
        assert_refused(path, FileError, "damaged or cut short")
