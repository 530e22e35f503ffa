"""What a file may take: memory and time in proportion to its size, whatever it holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ptclust.errors import FileError, GraphError, WeightError
from ptclust.graph import read_graph, read_topology
from tests.graph.reading import EXPECTED, of, weights
from tests.robustness.attacks import bombs, growing_strings, parquet

ROOT = Path(__file__).parents[2]

_READ = """
import sys
from pathlib import Path
from ptclust.errors import PtclustError
from ptclust.graph import read_graph
try:
    print(read_graph(sys.argv[1], kind="distance", merge="sum"))
except PtclustError as error:
    print(error)
print(int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024)
"""


def peak_mib(path: Path) -> tuple[str, int]:
    """What reading says and the most memory that it takes, in a process of its own."""
    command = [sys.executable, "-c", _READ, str(path)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=True
    )
    *said, peak = done.stdout.splitlines()
    assert not done.stderr
    return " ".join(said), int(peak)


class TestParquet:
    @pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="memory is measured by Linux"
    )
    @pytest.mark.parametrize(
        "name",
        ["long strings in pages of their own", "a run of equal rows", "long equal categories"],
    )
    def test_small_files_of_much_take_little(self, tmp_path, name):
        path = tmp_path / "e.parquet"
        path.write_bytes(bombs("parquet")[name])
        said, peak = peak_mib(path)
        assert "expands to over 100 times its size" in said
        assert peak < 500

    @pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="memory is measured by Linux"
    )
    def test_strings_that_grow(self, tmp_path):
        path = tmp_path / "e.parquet"
        path.write_bytes(growing_strings(20_000, 10))  # a kilobyte; 4 GB of strings
        assert path.stat().st_size < 2000
        said, peak = peak_mib(path)
        assert "expands to over 100 times its size" in said
        assert peak < 500

    def test_few_strings_of_that_encoding_are_read(self, tmp_path):
        path = tmp_path / "e.parquet"
        path.write_bytes(growing_strings(3, 2))
        expected = of(*(("s" * n, "t" * n, 0.0) for n in (2, 4, 6)))
        assert weights(read_graph(path, kind="distance")) == expected

    def test_the_time_for_a_string_in_every_row(self, tmp_path):
        path = tmp_path / "e.parquet"
        path.write_bytes(bombs("parquet")["long equal strings"])
        for read in (read_graph, read_topology):
            with pytest.raises(FileError, match="expands to over 100 times its size"):
                read(path, **({"kind": "distance"} if read is read_graph else {}))

    @pytest.mark.parametrize("column", ["source", "weight"])
    def test_nested_columns_are_refused_by_their_type(self, tmp_path, column):
        path = tmp_path / "e.parquet"
        columns: dict[str, Any] = {"source": [1], "target": [2], "weight": [0.5]}
        for odd in ([[0] * 1_000_000], [{"a": 1}], [b"x"]):
            frame = pl.DataFrame(columns | {column: odd}, strict=False)
            frame.write_parquet(path)
            with pytest.raises((GraphError, WeightError), match="of type"):
                read_graph(path, kind="distance")

    def test_very_many_and_very_deep_columns(self, tmp_path):
        path = tmp_path / "e.parquet"
        path.write_bytes(parquet({b"%d" % i: b"" for i in range(10_001)}, 1))
        with pytest.raises(FileError, match="over 10,000 columns"):
            read_topology(path)
        deep = [{4: b"s", 5: 1}, *[{3: 0, 4: b"source", 5: 1}] * 3000, {1: 6, 3: 0, 4: b"source"}]
        path.write_bytes(parquet({b"source": b""}, 1, schema=deep))
        with pytest.raises(FileError, match="damaged"):  # polars overflows its stack
            read_topology(path)

    @pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "uncompressed"])
    def test_what_polars_writes_is_understood(self, tmp_path, compression):
        rng = np.random.default_rng(3)
        n = 20_000
        ends = [(f"node {a}", f"node {b}") for a, b in rng.permutation(2 * n).reshape(-1, 2)]
        columns = {"source": [a for a, _ in ends], "target": [b for _, b in ends]}
        frame = pl.DataFrame({**columns, "weight": rng.random(n), "other": [[1, 2]] * n})
        path = tmp_path / "e.parquet"
        frame.write_parquet(path, compression=compression, row_group_size=3000, data_page_size=5000)
        expected = of(*zip(columns["source"], columns["target"], frame["weight"]))
        assert weights(read_graph(path, kind="distance")) == expected

    def test_many_equal_rows_in_a_small_file(self, tmp_path):
        zeros = pl.repeat(0, 200_000, eager=True)
        frame = pl.DataFrame({"source": zeros, "target": zeros + 1, "count": zeros + 3})
        frame.write_parquet(tmp_path / "e.parquet")
        graph = read_graph(tmp_path / "e.parquet", merge="sum")
        assert graph.n_edges == 1


class TestText:
    def test_very_many_columns(self, tmp_path):
        path = tmp_path / "e.csv"
        path.write_text(",".join(f"c{i}" for i in range(10_001)) + "\n")
        with pytest.raises(FileError, match="over 10,000 columns"):
            read_topology(path)

    def test_blank_lines(self, tmp_path):
        path = tmp_path / "e.csv"
        path.write_text("source,target,cost\nb,a,0.5\n" + "\n" * 90_000 + "a,c,2\n")
        assert weights(read_graph(path)) == EXPECTED
        path.write_text("source,target,cost\nb,a,0.5\n" + "\n" * 110_000 + "a,c,2\n")
        for read in (read_graph, read_topology):
            with pytest.raises(FileError, match="over 100,000 blank lines; remove them"):
                read(path)
