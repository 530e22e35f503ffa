"""What commands read: files that are refused, small ones, tables of every form."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ptclust import Release
from tests.cli.tables import BUDGET, EDGES, HEADER, LABELS, PAID, SPARSE, UNIT, text

SECRET = "0.123456789"


def parquet(**columns):
    return lambda path: pl.DataFrame(columns).write_parquet(path)


def truncated_parquet(path):
    parquet(source=list(range(99)), target=list(range(1, 100)), distance=[0.5] * 99)(path)
    path.write_bytes(path.read_bytes()[:-60])


def table(rows):
    return text(HEADER + rows)


BAD_FILES = {
    # what: (file name, how it is made, words of the message)
    "NaN weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,nan\n"), ["line 3", "finite"]),
    "infinite weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,-inf\n"), ["line 3", "finite"]),
    "empty weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,\n"), ["line 3", "weight"]),
    "NaN in Parquet": (
        "e.parquet",
        parquet(source=[1, 2], target=[2, 3], distance=[0.5, float("nan")]),
        ["row", "finite"],
    ),
    "non-numeric weight": (
        "e.csv",
        table(f"a,b,{SECRET}\nb,c,{SECRET}x\n"),
        ["line 3", "number"],
    ),
    "self-loop": ("e.csv", table(f"a,b,{SECRET}\nb,b,0.5\n"), ["line 3", "'b'", "itself"]),
    "duplicate edge": (
        "e.csv",
        table(f"a,b,{SECRET}\nb,c,0.5\nb,a,0.5\n"),
        ["lines 2 and 4", "'a'", "'b'", "merge"],
    ),
    "missing column": (
        "e.csv",
        text(f"source,target,w\na,b,{SECRET}\n"),
        ["'cost'", "'source', 'target', 'w'"],
    ),
    "no header": (
        "e.csv",
        text(f"a,b,{SECRET}\nb,c,0.5\n"),
        ["which column is the source and which the target", "--no-header", "'a', 'b', '<number>'"],
    ),
    "similarities far apart": (
        "e.csv",
        text("source,target,similarity\na,b,1e308\nb,c,-1e308\n"),
        ["too far apart"],
    ),
    "visits": (
        "e.csv",
        text("person,place,day\nada,park,3\n"),
        [
            "--source, --target, --weight",
            "`ptclust build visits e.csv --person person --item place",
        ],
    ),
    "two columns": ("e.csv", text("a,b\nb,c\n"), ["column"]),
    "empty file": ("e.csv", text(""), ["empty"]),
    "header only": ("e.csv", table(""), ["no edges"]),
    "truncated Parquet": ("e.parquet", truncated_parquet, ["e.parquet", "Parquet"]),
    "text called Parquet": ("e.parquet", text("a,b,0.5\n"), ["e.parquet", "Parquet"]),
    "binary called CSV": ("e.csv", lambda p: p.write_bytes(bytes(range(256)) * 9), ["e.csv"]),
    "broken gzip": (
        "e.csv.gz",
        lambda p: p.write_bytes(gzip.compress(b"a,b,1\n")[:-9]),
        ["e.csv.gz"],
    ),
    "a directory": ("e.csv", lambda p: p.mkdir(), ["directory"]),
    "no such file": ("e.csv", lambda p: None, ["e.csv", "no"]),
    "unknown format": ("e.xlsx", text("x"), ["parquet", "csv"]),
    "zero weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,0\n"), ["'b' - 'c'", "constant"]),
    "negative weight": ("e.csv", table(f"a,b,{SECRET}\nb,c,-2\n"), ["'b' - 'c'", "constant"]),
    "GraphML that is not XML": ("e.graphml", text("<graphml><node"), ["e.graphml"]),
    "GraphML with entities": (
        "e.graphml",
        text('<!DOCTYPE g [<!ENTITY a "aaaa">]><graphml>&a;</graphml>'),
        ["e.graphml"],
    ),
    "MatrixMarket without numbers": ("e.mtx", text("%%MatrixMarket nonsense\n"), ["e.mtx"]),
    "npz that is none": ("e.npz", text("PK nothing"), ["e.npz"]),
}


EXTRA = {
    "missing column": ["--weight", "cost"],
    "MatrixMarket without numbers": ["--kind", "distance"],
    "npz that is none": ["--kind", "distance"],
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_bad_input(run, tmp_path, what):
    name, make, words = BAD_FILES[what]
    make(Path(name))
    code, out, err = run("dbmstclu", name, "-o", "labels.csv", *EXTRA.get(what, []))
    assert code == 3, err
    assert out == ""
    assert err.startswith("ptclust: ")
    assert err.count("\n") == 1, "one line, no traceback"
    for word in words:
        assert word in err
    assert SECRET not in err
    assert not Path("labels.csv").exists()


def test_a_file_without_read_permission(run, monkeypatch):
    Path("edges.csv").write_text(EDGES)
    Path("edges.csv").chmod(0)
    if os.geteuid() == 0:  # root reads everything, so the refusal has to be played

        def refuse(*_args, **_kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        monkeypatch.setattr(os, "access", lambda *_args, **_kwargs: False)
    code, _, err = run("dbmstclu", "edges.csv")
    assert code == 3
    assert "permission" in err


GOOD_FILES = {
    "one node": (
        "e.graphml",
        text("<graphml><graph edgedefault='undirected'><node id='a'/></graph></graphml>"),
        "node,cluster\na,0\n",
    ),
    "isolated nodes": (
        "e.mtx",
        text("%%MatrixMarket matrix coordinate real symmetric\n5 5 1\n2 1 0.5\n"),
        "node,cluster\n0,0\n1,1\n2,2\n3,3\n4,4\n",
    ),
    "only isolated nodes": (
        "e.npz",
        lambda p: np.savez(p, sources=[], targets=[], weights=[], n_nodes=2),
        "node,cluster\n0,0\n1,1\n",
    ),
}


@pytest.mark.parametrize("what", GOOD_FILES)
def test_small_graphs(run, what):
    name, make, labels = GOOD_FILES[what]
    make(Path(name))
    assert run("dbmstclu", name, "--kind", "distance")[:2] == (0, labels)


@pytest.fixture
def piped(run, monkeypatch):
    """Run the command line with standard input."""

    def call(content: bytes, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run(*arguments)

    return call


class TestTables:
    def test_standard_input(self, piped):
        assert piped(EDGES.encode(), "dbmstclu", "-")[:2] == (0, LABELS)
        tsv = EDGES.replace(",", "\t").encode()
        assert piped(tsv, "dbmstclu", "-", "--format", "tsv")[:2] == (0, LABELS)
        assert piped(gzip.compress(tsv), "dbmstclu", "-", "--format", "tsv")[:2] == (0, LABELS)
        parquet = io.BytesIO()
        pl.read_csv(EDGES.encode()).write_parquet(parquet)
        content = parquet.getvalue()
        assert piped(content, "dbmstclu", "-", "--format", "parquet")[:2] == (0, LABELS)
        code, out, err = piped(b"", "dbmstclu", "-")
        assert (code, out) == (3, "")
        assert "standard input is empty" in err
        code, _, err = piped(EDGES.encode(), "dbmstclu", "-", "--format", "xlsx")
        assert code == 2
        assert "format must be one of csv, tsv" in err

    def test_standard_input_is_published(self, piped):
        options = [*BUDGET, *SPARSE, "-o", "release.json"]
        code, out, err = piped(EDGES.encode(), "cluster", "-", *options)
        assert (code, out) == (0, "")
        assert err.startswith("standard input was read as a graph of the columns 'source'")
        assert Release.load("release.json").n_nodes == 6
        assert piped(EDGES.encode(), "plan", "-", *BUDGET)[0] == 0

    @pytest.mark.parametrize(
        ("name", "separator", "options"),
        [
            ("e.csv", ";", []),
            ("e.csv", "\t", []),
            ("e.txt", "\t", []),
            ("e.txt", ";", []),
            ("e.txt", "   ", []),
            ("e.txt", "|", ["--separator", "|"]),
            ("e.data", ";", ["--format", "csv"]),
            ("e.txt", " ", ["--separator", "space"]),
        ],
    )
    def test_separators(self, run, name, separator, options):
        Path(name).write_text(EDGES.replace(",", separator))
        assert run("dbmstclu", name, *options)[:2] == (0, LABELS)
        made = [*BUDGET, *SPARSE, *options]
        assert run("cluster", name, *made, "-o", "release.json")[0] == 0
        assert Release.load("release.json").names.tolist() == list("abcdef")

    @pytest.mark.parametrize(
        ("name", "separator", "options"),
        [("e.csv", ",", []), ("e.txt", " ", ["--separator", "space"])],
    )
    def test_no_header(self, run, name, separator, options):
        Path(name).write_text(EDGES.removeprefix(HEADER).replace(",", separator))
        given = ["--no-header", "--kind", "distance", *options]
        assert run("dbmstclu", name, *given)[:2] == (0, LABELS)
        assert run("dbmstclu", name, *given[:1], *options)[0] == 2, "a number is no name of a kind"
        made = [*BUDGET, *SPARSE, *given, "-o", "release.json"]
        code, _, err = run("cluster", name, *made)
        assert code == 0, err
        assert "of the columns '1', '2' and '3'" in err

    def test_a_table_of_visits_is_no_graph(self, run, unspent):
        Path("visits.csv").write_text("person,place,day\nada,park,3\nada,zoo,4\nbob,zoo,4\n")
        for command in (["cluster", *PAID, *UNIT], ["dbmstclu"], ["plan", *BUDGET]):
            code, out, err = run(command[0], "visits.csv", *command[1:])
            assert (code, out, err.count("\n")) == (3, "", 1)
            assert "visits.csv is a table of records, not of edges" in err
        unspent()

    def test_options_of_tables_are_refused_for_others(self, run, edges):
        for option in (["--no-header"], ["--separator", ";"]):
            code, _, err = run("dbmstclu", "edges.parquet", *option)
            assert code == 2
            assert f"{option[0]} is for text tables" in err
