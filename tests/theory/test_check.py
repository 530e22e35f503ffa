"""``ptclust check``: conditions, promises, and the table of clusters it reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ptclust
from ptclust.datasets import planted_graph
from ptclust.errors import FileError, GraphError, InputError
from ptclust.graph.labels import read_labels
from ptclust.theory import recovery_promise
from ptclust.theory.check import check_clusters

EDGES = "source,target,distance\na,b,0.1\nb,c,0.1\nc,d,0.9\nd,e,0.1\ne,f,0.1\n"
TRUTH = "node,label\na,0\nb,0\nc,0\nd,1\ne,1\nf,1\n"
MULTISCALE = [0.5, 0.5, 0.5, 0.6, 0.01, 0.01, 0.01, 0.02, 0.01, 0.01, 0.01]


def path_graph(weights):
    return ptclust.Graph(range(len(weights)), range(1, len(weights) + 1), weights)


class TestCheckClusters:
    def test_the_multi_scale_path_is_strongly_homogeneous_and_yet_not_found(self):
        found = check_clusters(path_graph(MULTISCALE), np.repeat([0, 1, 2], 4))
        assert found.definition.holds
        assert found.strong.holds
        assert found.weak.holds
        assert found.partitioning
        assert not found.recovered.holds
        assert not found.certificate.holds
        assert "finds other clusters" in found.to_text()

    def test_which_cluster_breaks_which_condition(self):
        graph = path_graph([0.1, 0.3, 0.8, 0.1, 0.1])
        found = check_clusters(graph, [0, 0, 0, 1, 1, 1])
        assert not found.strong.holds
        assert [one["label"] for one in found.to_dict()["strong_homogeneity"]["offenders"]] == [0]
        assert found.definition.holds

    def test_a_forest_is_refused(self):
        with pytest.raises(GraphError, match="2 components"):
            check_clusters(ptclust.Graph([0, 2], [1, 3], [0.1, 0.2]), [0, 0, 1, 1])

    def test_clusters_without_edges_of_their_own_get_no_promise(self):
        graph = path_graph([0.1, 0.2, 0.9, 0.1])
        planned = ptclust.plan(
            graph.topology, epsilon=1.0, sensitivity=ptclust.Sensitivity(linf=0.01)
        )
        found = check_clusters(graph, [0, 1, 0, 1, 1], planned)
        assert found.promises == ()
        assert "cannot find these clusters" in found.to_text()


class TestPromise:
    @pytest.mark.parametrize("mechanism", ["kruskal", "pamst", "gaussian"])
    def test_what_is_promised_is_kept(self, mechanism):
        random = np.random.default_rng(5)
        planted = planted_graph("moons", 60, seed=3)
        graph, truth = planted.graph, planted.truth
        within = truth[graph.sources] == truth[graph.targets]
        weights = np.where(within, random.uniform(0.15, 0.2, graph.n_edges), graph.weights)
        calm = ptclust.Graph(graph.sources, graph.targets, weights, n_nodes=60)
        budget = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": ptclust.Sensitivity(linf=2e-5)}
        planned = ptclust.plan(calm.topology, mechanism=mechanism, **budget)
        promise = recovery_promise(calm, truth, planned.chosen)
        assert promise.recovery > 0.5
        assert (promise.tree is None) == (mechanism == "gaussian")
        kept = 0
        for seed in range(40):
            model = ptclust.PTClust(mechanism=mechanism, random_state=seed, **budget).fit(calm)
            kept += np.array_equal(model.labels_, truth if truth[0] == 0 else 1 - truth)
        assert kept / 40 >= promise.recovery - 3 * np.sqrt(0.25 / 40)

    def test_too_much_noise_promises_nothing(self):
        planted = planted_graph("moons", 60, seed=3)
        planned = ptclust.plan(
            planted.graph.topology,
            epsilon=0.1,
            sensitivity=ptclust.Sensitivity(linf=0.1),
            mechanism="pamst",
        )
        promise = recovery_promise(planted.graph, planted.truth, planned.chosen)
        assert promise.recovery == 0.0
        assert promise.tree < 0.01


class TestReadLabels:
    topology = ptclust.Topology([0, 1], [1, 2], names=[10, 20, 30])

    def read(self, tmp_path, text):
        file = tmp_path / "truth.csv"
        file.write_text(text)
        return read_labels(file, self.topology).tolist()

    def test_any_order_with_or_without_header(self, tmp_path):
        assert self.read(tmp_path, "20,5\n10,-1\n30,5\n") == [-1, 5, 5]
        assert self.read(tmp_path, "label,colour,node\nx,red,30\ny,red,20\nx,blue,10\n") == [
            0,
            1,
            0,
        ]

    @pytest.mark.parametrize(
        ("text", "error", "says"),
        [
            ("10,0\n20,0\n", InputError, "2 of 3 nodes; '30'"),
            ("10,0\n20,0\n30,1\n40,1\n", InputError, "line 4 .* no node '40'"),
            ("10,0\n20,0\n30,1\n10,1\n", InputError, "line 4 .* second time"),
            ("10,0\n20,0\n30,1\n10,0\n", InputError, "second time"),
            ("10\n20\n", FileError, "line 1 .* 1 column"),
            ('10,"0\n', FileError, "not a CSV file"),
            ("", InputError, "0 of 3 nodes"),
        ],
    )
    def test_tables_that_do_not_fit(self, tmp_path, text, error, says):
        with pytest.raises(error, match=says):
            self.read(tmp_path, text)

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(FileError, match="cannot be read"):
            read_labels(tmp_path / "none.csv", self.topology)


class TestCommand:
    def test_text_and_json(self, run):
        Path("edges.csv").write_text(EDGES)
        Path("truth.csv").write_text(TRUTH)
        code, out, _ = run("check", "edges.csv", "--clusters", "truth.csv")
        assert code == 0
        assert "For the curator only" in out
        assert "all 2 cluster(s) are strongly homogeneous" in out
        budget = ("--epsilon", "20", "--linf", "0.001")
        code, out, _ = run("check", "edges.csv", "--clusters", "truth.csv", *budget, "--json")
        assert code == 0
        document = json.loads(out)
        assert document["certified"]
        pure = {"kruskal", "pamst", "laplace", "cube"}
        assert {one["mechanism"] for one in document["promises"]} == pure
        assert document["theorem_d"]["corrected"] > 0.9

    def test_a_sensitivity_without_a_budget(self, run):
        Path("edges.csv").write_text(EDGES)
        Path("truth.csv").write_text(TRUTH)
        code, _, err = run("check", "edges.csv", "--clusters", "truth.csv", "--linf", "0.1")
        assert code == 2
        assert "--epsilon" in err
