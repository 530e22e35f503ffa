"""Parquet tables, well and badly formed."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
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
