"""Matrices, in MatrixMarket and npz files, well and badly formed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from ptclust.errors import FileError, GraphError, WeightError
from ptclust.graph import Graph, read_graph, read_topology
from tests.graph.reading import (
    EXPECTED,
    SECRET,
    assert_refused,
    matrix_market,
    of,
    read,
    weights,
)


class TestMatrixMarket:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                matrix_market("coordinate real symmetric", "4 4 2", "3 2 0.5", "2 1 0"),
                of((2, 1, 0.5), (1, 0, 0.0)),
            ),
            (
                matrix_market("coordinate real general", "4 4 2", "3 2 0.5", "1 2 0"),
                of((2, 1, 0.5), (0, 1, 0.0)),
            ),
            (
                matrix_market(
                    "coordinate integer general", "4 4 4", "3 2 5", "1 2 0", "2 1 0", "2 3 5"
                ),
                of((0, 1, 0.0), (1, 2, 5.0)),
            ),
        ],
    )
    def test_read(self, write, text, expected):
        for name in ("m.mtx", "m.mtx.gz"):
            graph = read(write(name, text))
            assert graph.n_nodes == 4
            assert weights(graph) == expected

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ("%%MatrixMarket matrix coordinate real general\n", FileError, "not tell its size"),
            ("%%MatrixMarket matrix coordinate real\n", FileError, "does not begin with"),
            (matrix_market("coordinate real general", "2 2"), FileError, "not tell its size"),
            (matrix_market("coordinate real general", "2 2 1", "1 5 1"), FileError, "entry 1 of"),
            (matrix_market("coordinate real general", "2 2 1", "0 1 1"), FileError, "entry 1 of"),
            (
                matrix_market("coordinate real general", "2 2 2", "1 2 1", f"1 x{SECRET} 1"),
                FileError,
                "entry 2 of",
            ),
            (
                matrix_market("coordinate real general", "2 2 2", f"1 2 {SECRET}", "1"),
                FileError,
                "entry 2 of",
            ),
            (
                matrix_market("coordinate real general", "2 2 2", f"1 2 {SECRET}"),
                FileError,
                "announces 2 entries and has 1",
            ),
            (matrix_market("coordinate real general", "2 2 1"), FileError, "1 entries and has 0"),
            (
                matrix_market("coordinate real general", "2 3 1", "1 2 1"),
                GraphError,
                "2 x 3, .* sq",
            ),
            (matrix_market("coordinate pattern general", "2 2 1", "1 2"), WeightError, "pattern"),
            (
                matrix_market("coordinate complex general", "2 2 1", "1 2 1 1"),
                WeightError,
                "complex",
            ),
            (
                matrix_market("coordinate real skew-symmetric", "2 2 1", "2 1 1"),
                FileError,
                "skew-symmetric",
            ),
            (matrix_market("array real general", "1 1", SECRET), FileError, "dense"),
            (matrix_market("coordinate real general", "0 0 0"), FileError, "no edges"),
            (
                matrix_market("coordinate real general", "2 2 1", f"2 2 {SECRET}"),
                GraphError,
                "edge 0 of .* joins node 1 to itself",
            ),
            (
                matrix_market("coordinate real symmetric", "2 2 1", f"2 2 {SECRET}"),
                GraphError,
                "joins node 1 to itself",
            ),
            (
                matrix_market(
                    "coordinate real general", "3 3 3", f"1 2 {SECRET}", "2 1 3", "2 3 1"
                ),
                GraphError,
                "edges 0 and 1 of .* both join 0 and 1",
            ),
            (
                matrix_market("coordinate real symmetric", "2 2 2", f"1 2 {SECRET}", "2 1 3"),
                GraphError,
                "edges 0 and 1 of .* both join 0 and 1",
            ),
            (
                matrix_market("coordinate real general", "2 2 1", "1 2 nan"),
                WeightError,
                "edge 0 of",
            ),
        ],
    )
    def test_bad(self, write, text, error, message):
        assert_refused(write("m.mtx", text), error, message)

    def test_what_scipy_writes(self, tmp_path):
        graph = Graph([0, 1, 3], [1, 2, 0], [0.5, 0.0, 2.0], n_nodes=6)
        scipy.io.mmwrite(tmp_path / "m.mtx", graph.to_scipy(), comment="of a test")
        again = read(tmp_path / "m.mtx")
        assert again.n_nodes == 6
        assert sorted(again.weights.tolist()) == [0.0, 0.5, 2.0]


class TestNpz:
    def test_matrix(self, tmp_path):
        matrix = scipy.sparse.coo_array(([0.5, 0.0], ([2, 0], [1, 1])), shape=(4, 4))
        for form, number in itertools.product(("coo", "csr", "csc"), range(2)):
            path = tmp_path / f"{form}{number}.npz"
            stored = (matrix + matrix.T if number else matrix).asformat(form)
            scipy.sparse.save_npz(path, stored)
            graph = read(path)
            assert graph.n_nodes == 4
            assert sorted(graph.weights.tolist())[-1] == 0.5

    def test_arrays(self, tmp_path):
        path = tmp_path / "g.npz"
        np.savez(path, sources=[1, 0], targets=[0, 2], weights=[0.5, 2], names=["a", "b", "c"])
        assert weights(read(path)) == EXPECTED
        assert all(type(name) is str for name in read(path).names)
        np.savez(path, sources=[1, 0], targets=[0, 2], weights=[0.5, 2], n_nodes=5)
        assert read(path).n_nodes == 5
        np.savez(path, sources=[1, 0], targets=[0, 1], weights=[0.5, 2], names=[70, 80])
        assert weights(read(path, merge="max")) == of((80, 70, 2.0))

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"names": np.array(["a", "b", None])}, FileError, "arrays of Python objects"),
            ({"names": [["a"], ["b"], ["c"]]}, FileError, "'names' of .* one-dimensional"),
            ({"n_nodes": [3, 3]}, FileError, "'n_nodes' of .* single integer"),
            ({"weights": [float(SECRET), np.nan]}, WeightError, "edge 1 of .* is not a finite"),
            ({"weights": ["x0.123456789", "1"]}, WeightError, "edge 0 of .* is not a number"),
            ({"sources": [0, 0]}, GraphError, "edge 0 of .* joins node 0 to itself"),
            ({"format": "odd"}, FileError, "damaged, or not written by"),
        ],
    )
    def test_bad(self, tmp_path, changes, error, message):
        good: dict[str, Any] = {"sources": [1, 0], "targets": [0, 2], "weights": [float(SECRET), 2]}
        np.savez(tmp_path / "g.npz", **{**good, **changes})
        assert_refused(tmp_path / "g.npz", error, message)

    def test_missing_array(self, tmp_path):
        np.savez(tmp_path / "g.npz", sources=[0], weights=[float(SECRET)])
        assert_refused(tmp_path / "g.npz", FileError, "no array 'targets'.* 'sources', 'weights'")

    def test_cut_short(self, tmp_path):
        np.savez(
            tmp_path / "whole.npz", sources=np.arange(9), targets=np.arange(9), weights=[0.5] * 9
        )
        whole = (tmp_path / "whole.npz").read_bytes()
        (tmp_path / "g.npz").write_bytes(whole[:-100])
        assert_refused(tmp_path / "g.npz", FileError, "damaged")


class TestMatrices:
    """What is an edge of a matrix is decided by where its entries are, never by what they are."""

    @staticmethod
    def of_matrix(tmp_path, entries: list[tuple[int, int, float]], **options: Any) -> list[Graph]:
        """The graphs of a matrix from both of its formats."""
        rows, columns, values = (list(part) for part in zip(*entries))
        size = max(*rows, *columns) + 1
        matrix = scipy.sparse.coo_array((values, (rows, columns)), shape=(size, size))
        scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
        lines = (f"{row + 1} {column + 1} {value!r}" for row, column, value in entries)
        head = f"{size} {size} {len(entries)}"
        text = matrix_market("coordinate real general", head, *lines)
        (tmp_path / "m.mtx").write_text(text)
        return [read(tmp_path / name, **options) for name in ("m.npz", "m.mtx")]

    @pytest.mark.parametrize(
        ("a", "b", "mean"),
        [
            (0.5, 0.5, 0.5),
            (0.5, 1.5, 1.0),
            (5e-324, 5e-324, 5e-324),
            (1.5e-323, 1.5e-323, 1.5e-323),
            (1e308, 1.5e308, 1.25e308),
            (-1e308, 1e308, 0.0),
            (0.1, 0.1, 0.1),
            (3.0, -1.0, 1.0),
        ],
    )
    def test_an_entry_and_its_mirror_are_one_edge(self, tmp_path, a, b, mean):
        entries = [(1, 2, 7.0), (0, 1, a), (2, 1, 9.0), (1, 0, b)]
        for graph in self.of_matrix(tmp_path, entries):
            assert weights(graph) == of((0, 1, mean), (1, 2, 8.0))

    def test_entries_without_a_mirror_are_edges(self, tmp_path):
        for graph in self.of_matrix(tmp_path, [(0, 1, 0.5), (2, 1, 0.25)]):
            assert weights(graph) == of((0, 1, 0.5), (1, 2, 0.25))

    @pytest.mark.parametrize("b", [0.5, 0.25])
    def test_a_pair_both_ways_among_others_is_refused_whatever_it_weighs(self, tmp_path, b):
        said = []
        for entries in ([(0, 1, 0.5), (1, 0, b), (1, 2, 1.0)], [(0, 1, 0.5), (1, 0, b), (0, 1, b)]):
            with pytest.raises(GraphError, match="both join 0 and 1") as caught:
                self.of_matrix(tmp_path, entries)
            said.append(str(caught.value))
        assert all("edges 0 and 1" in text for text in said)

    @pytest.mark.parametrize("b", [0.5, 0.25])
    def test_merge_takes_every_entry(self, tmp_path, b):
        entries = [(0, 1, 0.5), (1, 0, b), (1, 2, 1.0), (2, 1, 1.0)]
        for graph in self.of_matrix(tmp_path, entries, merge="sum"):
            assert weights(graph) == of((0, 1, 0.5 + b), (1, 2, 2.0))
        for graph in self.of_matrix(tmp_path, entries, merge="min"):
            assert weights(graph) == of((0, 1, b), (1, 2, 1.0))

    def test_infinities_of_both_signs_are_refused_quietly(self, tmp_path):
        with pytest.raises(WeightError, match="is not a finite number"):
            self.of_matrix(tmp_path, [(0, 1, np.inf), (1, 0, -np.inf)])


def test_how_a_symmetric_matrix_was_written_does_not_matter(tmp_path):
    """scipy writes one triangle if the values are symmetric, and both if they are not."""
    found = []
    for more in (0.0, 1.0):
        matrix = np.array([[0, 5 + more, 3], [5, 0, 2], [3, 2, 0]])
        scipy.io.mmwrite(tmp_path / "flow.mtx", scipy.sparse.coo_array(matrix))
        read = [
            read_graph(tmp_path / "flow.mtx", kind="similarity", merge=merge).weights.tolist()
            for merge in (None, "sum", "max")
        ]
        found.append(read)
        topologies = (read_topology(tmp_path / "flow.mtx", merge=merge) for merge in (None, "sum"))
        assert len({repr(topology) for topology in topologies}) == 1
    assert found[0] == [[5.0, 3.0, 2.0], [10.0, 6.0, 4.0], [5.0, 3.0, 2.0]]
    assert found[1] == [[5.5, 3.0, 2.0], [11.0, 6.0, 4.0], [6.0, 3.0, 2.0]]
