"""Text tables as people have them: separators, encodings, decimal commas."""

from __future__ import annotations

import codecs
from pathlib import Path

import polars as pl
import pytest

from ptclust import graph_from_visits, read_graph
from ptclust.errors import FileError
from ptclust.graph.readers import read_topology


class TestText:
    """Text tables as spreadsheets of Western Europe write them."""

    TABLE = "Person;Place;Value\n1;Süd;1,5\n1;Nord;2\n2;Süd;3\n2;Nord;1.5\n"
    VISITS = ("build", "visits", "t.csv", "--items", "list.txt", "--max-items", "2")

    @pytest.fixture(autouse=True)
    def files(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("list.txt").write_text("Süd\nNord\nOst\n", encoding="utf-8")

    @pytest.mark.parametrize("list_encoding", ["utf-8", "utf-8-sig", "latin-1"])
    @pytest.mark.parametrize("before", [b"", codecs.BOM_UTF8])
    def test_latin_1(self, run, list_encoding, before):
        Path("t.csv").write_bytes(before + self.TABLE.encode("latin-1"))
        Path("list.txt").write_bytes("Süd\nNord\nOst\n".encode(list_encoding))
        code, _, err = run(*self.VISITS, "-o", "graph.parquet")
        which = "list.txt" if list_encoding == "latin-1" else "t.csv"
        assert code == 3
        assert f"{which} is not UTF-8 text; say how it is written, --encoding latin-1 or cp" in err
        assert "save it as UTF-8" in err
        assert run(*self.VISITS, "--encoding", "latin-1", "-o", "graph.parquet")[0] == 0
        graph = read_graph("graph.parquet")
        assert graph.names.tolist() == ["Nord", "Ost", "Süd"]
        assert graph.weights.tolist() == [0, 2, 0]

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
    def test_utf_8_needs_no_word(self, run, encoding):
        Path("t.csv").write_text(self.TABLE, encoding=encoding)
        assert run(*self.VISITS, "-o", "graph.parquet")[0] == 0
        assert read_graph("graph.parquet").weights.tolist() == [0, 2, 0]

    @pytest.mark.parametrize("encoding", ["utf-16", "ascii"])
    def test_another_encoding(self, run, encoding):
        Path("t.csv").write_text(self.TABLE, encoding="utf-8")
        code, _, err = run(*self.VISITS, "--encoding", encoding, "-o", "graph.parquet")
        assert (code, err.count("\n")) == (3, 1)
        assert f"t.csv is not {encoding} text; give another --encoding" in err

    @pytest.mark.parametrize("encoding", ["rot13", "zip", "nonsense", ""])
    def test_no_encoding(self, run, encoding):
        Path("t.csv").write_text(self.TABLE)
        code, _, err = run(*self.VISITS, "--encoding", encoding, "-o", "graph.parquet")
        assert code == 2
        assert "encoding must be one that Python knows, as latin-1 or cp1252" in err

    def test_a_letter_cut_by_a_chunk(self, monkeypatch):
        monkeypatch.setattr("ptclust.graph.readers.file._CHUNK", 3)
        Path("t.csv").write_text(self.TABLE, encoding="utf-8")
        graph = graph_from_visits("t.csv", items=["Süd", "Nord"], max_items=2)
        assert graph.weights.tolist() == [2]
        Path("t.csv").write_bytes(self.TABLE.encode() + b"3;S\xc3")
        with pytest.raises(FileError, match=r"t\.csv is not UTF-8 text"):
            graph_from_visits("t.csv", items=["Süd", "Nord"], max_items=2)

    @pytest.mark.parametrize(
        ("header", "given", "named"),
        [
            ("person;place", ",", "';'"),
            ("person, id;place", None, "';'"),
            ("person\tplace", ",", "tab"),
            ("person|place", None, "'|'"),
        ],
    )
    def test_a_column_that_is_several(self, run, header, given, named):
        Path("t.csv").write_text(f"{header}\n1;2\n")
        option = () if given is None else ("--separator", given)
        code, _, err = run(*self.VISITS, *option, "-o", "graph.parquet")
        assert code == 3
        assert f"; say --separator {named} if that separates its columns" in err

    def test_separator(self, run):
        Path("t.csv").write_text(self.TABLE.replace(";", "|"), encoding="utf-8")
        assert run(*self.VISITS, "--separator", "|", "-o", "graph.parquet")[0] == 0
        assert read_graph("graph.parquet").weights.tolist() == [0, 2, 0]

    def test_decimal_commas_of_profiles(self, run):
        Path("t.csv").write_text("a;b\n0,5;0\n1,0;0.5\n")
        profiles = ("build", "profiles", "t.csv", "--nodes", "ab.txt", "--low", "0", "--high", "1")
        Path("ab.txt").write_text("a\nb\n")
        common = ("--neighbours", "replace", "-o")
        assert run(*profiles, "--decimal", ",", *common, "comma.parquet")[0] == 0
        # 0.5 is not a number with a decimal comma, and what is none counts half of the range
        assert read_graph("comma.parquet").weights.tolist() == [pytest.approx(0.5)]
        assert run(*profiles, "--decimal", ";", *common, "none.parquet")[0] == 2

    @pytest.mark.parametrize("option", ["separator", "encoding", "decimal"])
    def test_parquet_has_none_of_it(self, run, option):
        pl.DataFrame({"person": [1], "place": ["Ost"]}).write_parquet("t.parquet")
        visits = [name.replace("t.csv", "t.parquet") for name in self.VISITS]
        code, _, err = run(*visits, f"--{option}", ",", "-o", "graph.parquet")
        assert code == 2
        assert f"--{option} is for text tables, not for t.parquet; leave it out" in err


def test_records_in_another_encoding_are_known_for_what_they_are(run):
    Path("t.csv").write_bytes("Patient;Gebäude\n1;2\n".encode("latin-1"))
    cluster = ("cluster", "t.csv", "--encoding", "latin-1", "--epsilon", "1", "-o", "r.json")
    code, _, err = run(*cluster)
    assert code == 3
    assert "`ptclust build visits t.csv --person Patient --item 'Gebäude' --items" in err


class TestEdgesAsText:
    EDGES = "source;target;distance\nSüd;b;1,5\nb;c;0,25\nSüd;c;3\n"

    def test_latin_1_and_decimal_commas(self, run):
        Path("e.csv").write_bytes(self.EDGES.encode("latin-1"))
        code, _, err = run("dbmstclu", "e.csv")
        assert code == 3
        assert "line 2 of e.csv is not UTF-8 text; say how it is written, --encoding latin-1" in err
        code, _, err = run("dbmstclu", "e.csv", "--encoding", "latin-1")
        assert code == 3
        assert "it has a comma: say --decimal , if that is the decimal point" in err
        read = {"encoding": "latin-1", "decimal": ","}
        assert run("dbmstclu", "e.csv", "--encoding", "latin-1", "--decimal", ",")[0] == 0
        graph = read_graph("e.csv", **read)
        assert graph.names.tolist() == ["Süd", "b", "c"]
        assert graph.weights.tolist() == [1.5, 3, 0.25]
        assert read_topology("e.csv", **read).n_edges == 3

    def test_a_point_is_then_no_decimal_point(self, run):
        """1.234,5 is 1234.5 there, and 1.234 would be 1234: none is guessed."""
        Path("e.csv").write_text(self.EDGES.replace("0,25", "1.234"))
        code, _, err = run("dbmstclu", "e.csv", "--decimal", ",")
        assert code == 3
        assert "the weight in column 3, line 3 of e.csv is not a number" in err

    def test_whole_numbers_stay_exact(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("e.csv").write_text("source;target;count\na;b;9007199254740993\na;b;-1\n")
        assert read_graph("e.csv", decimal=",", merge="sum").weights.tolist() == [2.0**53]
