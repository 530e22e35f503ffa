"""The commands without privacy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.tables import EDGES, HEADER, LABELS, TOWNS


class TestDbmstclu:
    def test_writes_node_and_label(self, run, tmp_path):
        Path("edges.csv").write_text(EDGES)
        code, out, err = run("dbmstclu", "edges.csv", "-o", "labels.csv")
        assert (code, out) == (0, "")
        assert Path("labels.csv").read_text() == LABELS
        assert "2 clusters in 6 nodes and 5 edges" in err
        assert "Not private" in err
        assert sorted(p.name for p in tmp_path.iterdir()) == ["edges.csv", "labels.csv"]

    def test_without_output_labels_go_to_stdout(self, run):
        Path("edges.csv").write_text(EDGES)
        assert run("dbmstclu", "edges.csv")[:2] == (0, LABELS)

    def test_json_has_the_labels_unless_a_file_has_them(self, run):
        Path("edges.csv").write_text(EDGES)
        document = json.loads(run("dbmstclu", "edges.csv", "--json")[1])
        assert document["labels"] == [0, 0, 0, 1, 1, 1]
        assert document["nodes"] == list("abcdef")
        assert document["cuts"] == [{"edge": 2, "dbcvi": pytest.approx(8 / 9)}]
        assert document["n_clusters"] == 2
        assert document["private"] is False
        document = json.loads(run("dbmstclu", "edges.csv", "--json", "-o", "labels.csv")[1])
        assert "labels" not in document
        assert Path("labels.csv").read_text() == LABELS

    @pytest.mark.parametrize("suffix", [".png", ".svg"])
    def test_plot(self, run, suffix):
        Path("edges.csv").write_text(EDGES)
        assert run("dbmstclu", "edges.csv", "--plot", f"tree{suffix}")[0] == 0
        magic = {".png": b"\x89PNG", ".svg": b"<?xml"}[suffix]
        assert Path(f"tree{suffix}").read_bytes().startswith(magic)

    def test_columns_merge_and_similarities(self, run):
        Path("edges.tsv").write_text("from\tto\tsimilarity\n1\t2\t9\n2\t1\t8\n2\t3\t1\n3\t4\t9\n")
        options = ["--source", "from", "--target", "to", "--weight", "similarity"]
        options += ["--merge", "max", "--max-clusters", "2"]
        code, out, _ = run("dbmstclu", "edges.tsv", *options)
        assert (code, out) == (0, "node,cluster\n1,0\n2,0\n3,1\n4,1\n")

    def test_counts_are_similarities(self, run, trips):
        code, out, err = run("dbmstclu", "trips.csv", "--merge", "sum", "--kind", "similarity")
        assert (code, out) == (0, TOWNS)
        assert "2 clusters in 12 nodes and 66 edges" in err

    def test_a_disconnected_graph_is_clustered_component_by_component(self, run):
        Path("edges.csv").write_text(EDGES + "x,y,0.2\ny,z,0.2\n")
        assert run("dbmstclu", "edges.csv")[1].splitlines()[7:] == ["x,2", "y,3", "z,4"]

    def test_small_clusters_become_noise(self, run):
        Path("edges.csv").write_text(HEADER + "a,b,0.9\nb,c,0.1\nc,d,0.1\nd,e,0.1\n")
        out = run("dbmstclu", "edges.csv", "--min-cluster-size", "2")[1]
        assert out == "node,cluster\na,-1\nb,0\nc,0\nd,0\ne,0\n"
