"""Which columns are read, what their weights mean, and how text tables are written."""

from __future__ import annotations

import pytest
import scipy.io
import scipy.sparse

from ptclust.errors import FileError, UsageError, WeightError
from ptclust.graph import read_graph, read_topology
from tests.graph.reading import (
    EXPECTED,
    GRAPHML,
    SECRET,
    given_edges,
    of,
    read,
    weights,
)
from tests.leaks import everything_said

TABLES = ("csv", "tsv", "txt", "parquet")


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
