"""Weights that are integers are kept as such, by every reader."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse

from tests.graph.reading import (
    GRAPHML,
    given_edges,
)


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
