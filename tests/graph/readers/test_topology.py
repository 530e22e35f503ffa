"""The topology of a file is read without its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ptclust.errors import FileError, GraphError, WeightError
from ptclust.graph import read_graph, read_topology
from tests.graph.reading import (
    EXPECTED,
    GRAPHML,
    matrix_market,
    read,
    weights,
)


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
