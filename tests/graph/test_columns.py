"""Which columns are read, what their weights mean, and how text tables are written."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from ptclust.errors import FileError, GraphError, UsageError, WeightError
from ptclust.graph import Graph, read_graph, read_topology
from ptclust.graph.graph import Edges
from tests.graph.test_files import EXPECTED, GRAPHML, SECRET, everything_said, of, read, weights

TABLES = ("csv", "tsv", "txt", "parquet")


@pytest.fixture
def write(tmp_path):
    """Write rows of text as a table of any format, or a text as it is."""

    def write(name: str, content: Any) -> Path:
        path: Path = tmp_path / name
        if name.endswith(".parquet"):
            head, *rows = content
            frame = pl.DataFrame([list(row) for row in rows], schema=list(head), orient="row")
            numbers = frame.with_columns(pl.col(head[i]).cast(pl.Float64) for i in _numeric(rows))
            numbers.write_parquet(path)
            return path
        if isinstance(content, list):
            separator = "," if name.endswith(".csv") else "\t"
            content = "".join(separator.join(row) + "\n" for row in content)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def _numeric(rows: list[tuple[str, ...]]) -> list[int]:
    return [i for i in range(len(rows[0])) if "." in rows[0][i]]


def given_edges(monkeypatch: pytest.MonkeyPatch, path: Path, **options: Any) -> Edges:
    """What a reader hands to Graph."""
    seen: list[Edges] = []
    some = Graph([0], [1], [1.0])

    def made(edges: Edges, merge: Any, kind: Any) -> Graph:
        seen.append(edges)
        return some

    with monkeypatch.context() as patch:
        patch.setattr(Graph, "_of", made)
        read_graph(path, **{"kind": "distance", **options})
    return seen[0]


class TestNames:
    @pytest.mark.parametrize("ending", TABLES)
    @pytest.mark.parametrize(
        "names",
        [
            ("source", "target", "weight"),
            ("SRC", "Dst", "Weight"),
            ("from", "to", "cost"),
            ("origin", "destination", "trips"),
            ("node1", "node2", "similarity"),
            ("u", "v", "length"),
        ],
    )
    def test_well_known(self, write, ending, names):
        rows = [("x", *names), ("?", "b", "a", "0.5"), ("?", "a", "c", "2.0")]
        assert weights(read(write(f"e.{ending}", rows))) == EXPECTED
        backwards = [row[::-1] for row in rows]
        assert weights(read(write(f"e.{ending}", backwards))) == EXPECTED

    @pytest.mark.parametrize("ending", TABLES)
    def test_others_are_not_guessed(self, write, ending):
        rows = [("person", "place", "day"), ("ada", "mill", "1.5"), ("bob", "mill", "2.5")]
        path = write(f"e.{ending}", rows)
        with pytest.raises(FileError, match=r"source=, target=, weight=; .* 'person', 'place'"):
            read_graph(path, kind="distance")
        with pytest.raises(FileError, match=r"source=, target=; its columns are"):
            read_topology(path)
        named = {"source": "person", "target": "place", "weight": "day"}
        expected = of(("ada", "mill", 1.5), ("bob", "mill", 2.5))
        assert weights(read(path, **named)) == expected

    @pytest.mark.parametrize("ending", TABLES)
    def test_the_word_itself_wins(self, write, ending):
        names = ("to", "from", "source", "target", "cost", "weight")
        rows = [names, ("?", "?", "b", "a", "9.5", "0.5"), ("?", "?", "a", "c", "9.5", "2.0")]
        assert weights(read(write(f"e.{ending}", rows))) == EXPECTED

    @pytest.mark.parametrize("ending", TABLES)
    def test_several_are_an_error(self, write, ending):
        rows = [("source", "target", "count", "distance"), ("b", "a", "1.5", "0.5")]
        path = write(f"e.{ending}", rows)
        message = r"several columns for weight \('count', 'distance'\); name one, weight="
        with pytest.raises(FileError, match=message):
            read_graph(path)
        assert weights(read_graph(path, weight="distance")) == of(("b", "a", 0.5))
        assert read_topology(path).n_edges == 1

    def test_the_same_name_twice(self, write):
        path = write("e.csv", "source,source,target,weight\na,b,c,1\n")
        with pytest.raises(FileError, match="several columns for source"):
            read_graph(path, kind="distance")
        path = write("e.csv", "a,a,target,weight\na,b,c,1\n")
        with pytest.raises(FileError, match="several columns for source"):
            read_graph(path, source="a", kind="distance")

    def test_a_column_asked_for_is_in_no_other_role(self, write):
        path = write("e.csv", "from,source,to,weight\nx,b,a,0.5\ny,a,c,2\n")
        assert weights(read(path, target="from", source="source")) == of(
            ("b", "x", 0.5), ("a", "y", 2.0)
        )
        path = write("e.csv", "source,src,target,weight\nb,0.5,a,7\na,2,c,7\n")
        assert weights(read(path, weight="src")) == EXPECTED

    def test_missing_column_lists_those_there_are(self, write):
        path = write("e.csv", "from,to,cost\na,b,1\n")
        with pytest.raises(FileError, match=r"no column 'w' for weight; .*: 'from', 'to', 'cost'"):
            read_graph(path, weight="w")

    def test_one_column_twice(self, write):
        path = write("e.csv", "source,target,c\n1,2,3\n")
        with pytest.raises(UsageError, match="would serve twice"):
            read_graph(path, weight="c", target="c", kind="distance")

    def test_too_few_columns(self, write):
        path = write("e.csv", "source,target\na,b\n")
        with pytest.raises(FileError, match=r"weight=; its columns are: 'source', 'target'"):
            read_graph(path, kind="distance")
        assert read_topology(path).n_edges == 1

    def test_long_lists_and_names_are_cut(self, write):
        path = write("e.csv", ",".join([*("x" * 5000,) * 30]) + "\n")
        with pytest.raises(FileError, match=r"\.\.\.' and 10 more") as caught:
            read_graph(path)
        assert len(str(caught.value)) < 5000


class TestHeader:
    def test_is_not_recognised_by_its_values(self, write):
        path = write("e.csv", f"a,b,{SECRET}\nb,c,1\n")
        with pytest.raises(FileError, match="say header=False if the first line is an edge") as no:
            read_graph(path, kind="distance")
        assert "<number>" in str(no.value)
        assert SECRET[2:] not in everything_said(no.value)
        assert weights(read(path, header=False)) == of(("a", "b", float(SECRET)), ("b", "c", 1.0))
        path = write("e.csv", "1,2,3\nb,a,0.5\na,c,2\n")  # names, if they are requested
        assert weights(read(path, source="1", target="2", weight="3")) == EXPECTED

    def test_words_in_the_first_line_of_data(self, write):
        path = write("e.csv", "source,target,7\n7,target,1\n")
        expected = of(("source", "target", 7.0), ("7", "target", 1.0))
        assert weights(read(path, header=False)) == expected

    def test_columns_have_numbers(self, write):
        path = write("e.csv", "x,0.5,b,a\ny,2,a,c\n")
        named = {"source": "3", "target": "4", "weight": "2"}
        assert weights(read(path, header=False, **named)) == EXPECTED
        message = r"source=, target=, weight=; its columns are: '1', '2', '3', '4'"
        with pytest.raises(FileError, match=message):
            read_graph(path, header=False, kind="distance")
        with pytest.raises(FileError, match="source=, target=; its columns"):
            read_topology(path, header=False)

    def test_three_columns_of_which_some_are_named(self, write):
        path = write("e.csv", "0.5,b,a\n2,a,c\n")
        named = {"source": "3", "target": "2", "weight": "1"}
        assert weights(read(path, header=False, **named)) == EXPECTED
        with pytest.raises(UsageError, match="would serve twice"):
            read_graph(path, header=False, weight="1", kind="distance")

    def test_two_columns_make_a_topology(self, write):
        path = write("e.csv", "b,a\na,c\n")
        assert read_topology(path, header=False).n_edges == 2
        with pytest.raises(FileError, match="weight"):
            read_graph(path, header=False, kind="distance")

    @pytest.mark.parametrize("option", [{"header": False}, {"separator": ","}])
    def test_is_for_text_only(self, write, option):
        path = write("e.mtx", "x")
        for read_one in (read_graph, read_topology):
            with pytest.raises(UsageError, match="is for text tables, not for a mtx file"):
                read_one(path, **option)


class TestKind:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("distance", "distance"),
            ("Dissimilarity", "distance"),
            ("LENGTH", "distance"),
            ("cost", "distance"),
            ("similarity", "similarity"),
            ("Count", "similarity"),
            ("trips", "similarity"),
            ("flow", "similarity"),
            ("affinity", "similarity"),
        ],
    )
    @pytest.mark.parametrize("ending", [*TABLES, "graphml"])
    def test_is_said_by_the_name(self, monkeypatch, write, name, kind, ending):
        rows = [("source", "target", name), ("b", "a", "0.5")]
        content = GRAPHML.replace('"weight"', f'"{name}"') if ending == "graphml" else rows
        path = write(f"e.{ending}", content)
        assert given_edges(monkeypatch, path, kind=None).kind == kind
        other = {"distance": "similarity", "similarity": "distance"}[kind]
        assert given_edges(monkeypatch, path, kind=other).kind == other

    @pytest.mark.parametrize("ending", TABLES)
    def test_is_asked_of_a_weight(self, write, ending):
        path = write(f"e.{ending}", [("source", "target", "weight"), ("b", "a", "0.5")])
        with pytest.raises(UsageError, match=r"kind='distance' if small .* kind='similarity' if"):
            read_graph(path)
        assert read_topology(path).n_edges == 1
        with pytest.raises(UsageError, match=r"kind must be 'distance' .*'similarity' .*not 'odd'"):
            read_graph(path, kind="odd")

    def test_is_asked_without_a_header_and_of_matrices(self, write, tmp_path):
        scipy.sparse.save_npz(tmp_path / "m.npz", scipy.sparse.coo_array([[0.0, 1], [0, 0]]))
        matrix = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 0.5\n"
        paths = [write("e.csv", "b,a,0.5\n"), write("m.mtx", matrix), tmp_path / "m.npz"]
        for path, option in zip(paths, ({"header": False}, {}, {}), strict=True):
            with pytest.raises(UsageError, match=r"what the weights of .* mean"):
                read_graph(path, **option)
            assert read(path, **option).n_edges == read_topology(path, **option).n_edges == 1

    def test_is_asked_before_a_line_is_read(self, write):
        path = write("e.csv", "source,target,weight\nb,,x\n")
        with pytest.raises(UsageError, match="what the weights of"):
            read_graph(path)


class TestSeparator:
    @pytest.mark.parametrize(
        ("name", "separator"),
        [
            *(("e.csv", letter) for letter in ",;\t"),
            ("e.tsv", "\t"),
            *(("e.txt", letter) for letter in "\t;, "),
            ("e.txt.gz", " "),
            ("e.txt.gz", ";"),
        ],
    )
    def test_is_found_in_the_header(self, write, name, separator):
        text = "source,target,weight\nb,a,0.5\na,c,2\n".replace(",", separator)
        assert weights(read(write(name, text))) == EXPECTED
        assert weights(read(write(name, "\n\n" + text))) == EXPECTED

    def test_is_found_nowhere_else(self, write):
        path = write("e.csv", 'source,target,weight\n"b;1;2;3",a,0.5\n"a\t1\t2",c,2\n')
        assert weights(read(path)) == of(("b;1;2;3", "a", 0.5), ("a\t1\t2", "c", 2.0))
        path = write("e.csv", "source;target;weight\nb,1;a,1,1;0.5\n")
        assert weights(read(path)) == of(("b,1", "a,1,1", 0.5))

    @pytest.mark.parametrize(
        ("separator", "letter"),
        [
            *((letter, letter) for letter in ",;\t| :"),
            ("comma", ","),
            ("semicolon", ";"),
            ("tab", "\t"),
            ("pipe", "|"),
            ("space", " "),
        ],
    )
    def test_can_be_given(self, write, separator, letter):
        text = "b,a,0.5\na,c,2\n".replace(",", letter)
        for name in ("e.csv", "e.tsv", "e.txt"):
            assert weights(read(write(name, text), separator=separator, header=False)) == EXPECTED

    def test_any_number_of_blanks_is_one(self, write):
        text = "  source   target\tweight \r\n\r\n b  \t a 0.5\r\n a   c     2   \r\n"
        assert weights(read(write("e.txt", text), separator="space")) == EXPECTED
        bad = text.replace("2 ", f"x{SECRET} ")
        with pytest.raises(WeightError, match=r"column 3, line 4 of .* is not a number") as caught:
            read_graph(write("e.txt", bad), separator="space", kind="distance")
        assert SECRET[2:] not in everything_said(caught.value)

    def test_many_lines_with_blanks(self, write):
        ends = [(f"n{i}", f"n{i + 1}", float(i)) for i in range(100_000)]
        text = "source target weight\n" + "".join(f" {a}  {b} {w}\n" for a, b, w in ends)
        assert weights(read(write("e.txt", text))) == of(*ends)

    @pytest.mark.parametrize("separator", ["", "ab", "\n", '"', "é", "x", "5", ".", "-", "\x00"])
    def test_cannot_be_anything(self, write, separator):
        with pytest.raises(UsageError, match="separator"):
            read_graph(write("e.csv", "a,b,1\n"), separator=separator)

    def test_of_a_txt_file_without_a_header_is_asked(self, write):
        path = write("e.txt", "b a 0.5\na c 2\n")
        for read_one in (read_graph, read_topology):
            with pytest.raises(UsageError, match="separator="):
                read_one(path, header=False)

    def test_of_a_csv_file_without_a_header_is_a_comma(self, write):
        path = write("e.csv", "b;a;0.5\na;c;2\n")
        with pytest.raises(FileError, match=r"'1'; say separator=';' if that sep"):
            read_graph(path, header=False, kind="distance")

    def test_decimal_commas_are_named(self, write):
        path = write("e.csv", "source;target;weight\nb;a;1\na;c;0,123456789\n")
        with pytest.raises(WeightError, match=r"line 3 of .* say decimal=','") as caught:
            read_graph(path, kind="distance")
        assert "123456789" not in everything_said(caught.value)
        assert read_topology(path).n_edges == 2


class TestStandardInput:
    @pytest.fixture
    def fed(self, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)

        def feed(content: bytes) -> None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

        return feed

    @pytest.mark.parametrize("of_path", [str, Path])
    def test_is_csv(self, fed, of_path):
        for text in (b"source,target,cost\nb,a,0.5\na,c,2\n", b"from;to;cost\nb;a;0.5\na;c;2\n"):
            for content in (text, gzip.compress(text)):
                fed(content)
                assert weights(read_graph(of_path("-"))) == EXPECTED
                fed(content)
                assert read_topology(of_path("-")).n_edges == 2

    @pytest.mark.parametrize("ending", ["tsv", "txt", "parquet", "graphml", "mtx", "npz"])
    def test_other_formats(self, fed, write, ending):
        if ending == "graphml":
            path = write("e.graphml", GRAPHML)
        elif ending == "mtx":
            path = write("e.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 0.5\n")
        elif ending == "npz":
            path = write("e.npz", b"")
            np.savez(path, sources=[0], targets=[1], weights=[0.5])
        else:
            path = write(f"e.{ending}", [("source", "target", "weight"), ("b", "a", "0.5")])
        expected = read(path)
        fed(path.read_bytes())
        graph = read_graph("-", format=ending, kind="distance")
        assert weights(graph) == weights(expected)
        fed(path.read_bytes())
        assert read_topology("-", format=ending) == expected.topology

    def test_leaves_no_file(self, fed, tmp_path, monkeypatch):
        opened: list[Any] = []
        listening = [True]  # an audit hook stays for good
        sys.addaudithook(
            lambda name, args: opened.append(args) if listening and name == "open" else None
        )
        fed(b"source,target,cost\nb,a,0.5\na,c,2\n")
        read_graph("-")
        listening.clear()
        written = [path for path, mode, _ in opened if mode and set(str(mode)) & set("wax+")]
        assert not [path for path in written if not str(path).endswith((".nbc", ".tmp"))]
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("content", "error", "message"),
        [
            (b"", FileError, "^standard input is empty"),
            (b"source,target,cost\na,a,1\n", GraphError, "^line 2 of standard input joins"),
            (b"source,target,cost\na,b,x\n", WeightError, "line 2 of standard input is not a num"),
            (b"s,t\n", FileError, "of standard input it is not plain.*ptclust build"),
            (
                gzip.compress(b"source,target,cost\na,b,1\n", mtime=0)[:-9],
                FileError,
                "^standard input is da",
            ),
        ],
    )
    def test_errors_name_it(self, fed, content, error, message):
        fed(content)
        with pytest.raises(error, match=message):
            read_graph("-")

    def test_that_is_closed_or_endless(self, fed, monkeypatch):
        monkeypatch.setattr("ptclust.graph.readers.file._LONGEST", 1000)
        fed(b"x" * 2000)
        with pytest.raises(FileError, match=r"standard input is over .* write it to a file"):
            read_graph("-")
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(FileError, match="standard input cannot be opened"):
            read_graph("-")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
    def test_a_pipe_with_a_name(self, tmp_path):
        path = tmp_path / "pipe.csv"
        os.mkfifo(path)
        text = "source,target,cost\nb,a,0.5\na,c,2\n"
        writer = threading.Thread(target=path.write_text, args=(text,))
        writer.start()
        assert weights(read_graph(path)) == EXPECTED
        writer.join()


class TestIntegers:
    LARGE = 2**53 + 1

    @pytest.mark.parametrize(
        "text",
        [
            f"source,target,count\na,b,{LARGE}\nb,c,-3\n",
            f"source,target,count\n\na,b,{LARGE}\nb,c,-3  \n",
            f"source;target;count\na;b;{LARGE}\nb;c;-3\n",
        ],
    )
    def test_of_text_are_kept(self, monkeypatch, write, text):
        edges = given_edges(monkeypatch, write("e.csv", text))
        assert np.asarray(edges.weights).dtype == np.int64
        assert list(edges.weights) == [self.LARGE, -3]

    @pytest.mark.parametrize("odd", ["0.5", "1e300", str(2**63), "18446744073709551616"])
    def test_of_text_with_others_are_floats(self, monkeypatch, write, odd):
        text = f"source,target,count\na,b,{self.LARGE}\nb,c,{odd}\n"
        values = np.asarray(given_edges(monkeypatch, write("e.csv", text)).weights)
        assert values.dtype == np.float64
        assert values.tolist() == [float(self.LARGE), float(odd)]

    @pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.Int8])
    def test_of_parquet_are_kept(self, monkeypatch, tmp_path, dtype):
        path = tmp_path / "e.parquet"
        value = 100 if dtype is pl.Int8 else self.LARGE
        frame = pl.DataFrame(
            {"source": [1], "target": [2], "count": pl.Series([value], dtype=dtype)}
        )
        frame.write_parquet(path)
        edges = given_edges(monkeypatch, path)
        assert np.asarray(edges.weights).dtype.kind == "i"
        assert list(edges.weights) == [value]

    def test_beyond_64_bits_are_floats(self, monkeypatch, tmp_path):
        path = tmp_path / "e.parquet"
        large = pl.Series([2**64 - 1], dtype=pl.UInt64)
        pl.DataFrame({"source": [1], "target": [2], "count": large}).write_parquet(path)
        assert list(given_edges(monkeypatch, path).weights) == [2.0**64]

    def test_of_other_formats_are_kept(self, monkeypatch, write, tmp_path):
        head = "%%MatrixMarket matrix coordinate integer general\n3 3 2\n"
        path = write("m.mtx", f"{head}1 2 {self.LARGE}\n2 3 -3\n")
        assert list(given_edges(monkeypatch, path).weights) == [self.LARGE, -3]
        path = write("m.mtx", f"{head}1 2 {2**70}\n2 3 -3\n")
        assert list(given_edges(monkeypatch, path).weights) == [2.0**70, -3]
        graphml = GRAPHML.replace("0.123456789", str(self.LARGE))
        values = given_edges(monkeypatch, write("g.graphml", graphml)).weights
        assert list(values) == [self.LARGE, 2]
        assert all(isinstance(value, int) for value in values)
        path = tmp_path / "m.npz"
        matrix = scipy.sparse.coo_array(([self.LARGE], ([0], [1])), shape=(2, 2))
        scipy.sparse.save_npz(path, matrix.tocsr())
        assert list(given_edges(monkeypatch, path).weights) == [self.LARGE]
        scipy.sparse.save_npz(path, (matrix + matrix.T).tocsr())
        assert list(given_edges(monkeypatch, path).weights) == [self.LARGE]
        np.savez(path, sources=[0], targets=[1], weights=[self.LARGE])
        assert list(given_edges(monkeypatch, path).weights) == [self.LARGE]
