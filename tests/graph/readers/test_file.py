"""Files that are opened: on disk, standard input, pipes."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptclust.errors import FileError, GraphError, UsageError, WeightError
from ptclust.graph import read_graph, read_topology
from tests.graph.reading import (
    EXPECTED,
    GRAPHML,
    SECRET,
    assert_refused,
    read,
    weights,
)


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
