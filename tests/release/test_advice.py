"""What to do with a release that shows little."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ptclust import Graph, PTClust, Release, Sensitivity
from ptclust.clustering import Clustering
from ptclust.errors import PrivacyWarning
from tests.cli.outputs import UNIT, path_graph


def release_of(noise: str, names=None, n: int = 60) -> Release:
    """A release of a cycle of random weights whose noise is small or large."""
    weights = np.random.default_rng(0).uniform(0.1, 1, n)
    graph = Graph(range(n), [*range(1, n), 0], weights, names=names)
    linf = {"small": 1e-9, "large": 10.0}[noise]
    model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=linf), privacy_unit="one patient")
    return model.fit(graph).release_


def labelled(release: Release, labels: list[int], **fields: int) -> Release:
    clustering = Clustering(np.array(labels), "levels", scale=1e9, shift=5e8, dbcvi=0.0, **fields)
    return Release(published=release.published, statement=release.statement, clustering=clustering)


class TestAdvice:
    def test_one_cluster(self):
        for noise, why in (("large", "mostly noise"), ("small", "does not explain")):
            release = labelled(release_of(noise), [0] * 60)
            seen, free, paid = release.advice
            assert "All nodes that are connected are in one cluster" in seen
            assert why in seen
            assert f"{release.weight_noise.standard_deviation:.3g}" in seen
            assert f"{np.std(release.noisy_weights):.3g}" in seen
            assert "clusterer='dbmstclu'" in free
            assert "clusterer='levels'" not in free, "these clusters are by levels"
            assert "min_cluster_size" not in free
            assert "epsilon" in paid
            assert "sensitivity" in paid

    @pytest.mark.parametrize(
        ("labels", "size", "tried"),
        [
            ([*range(31), *[31] * 29], 1, "min_cluster_size=2"),
            ([-1] * 31 + [0] * 29, 5, "min_cluster_size=1"),
            ([-1] * 60, 5, "min_cluster_size=1"),
        ],
    )
    def test_most_nodes_alone(self, labels, size, tried):
        release = labelled(release_of("large"), labels, min_cluster_size=size)
        count = 60 if labels[-1] < 0 else 31
        assert f"{count} of 60 connected nodes are alone or unclustered" in release.advice[0]
        assert tried in release.advice[1]

    @pytest.mark.parametrize(
        "labels", [[0] * 30 + [1] * 30, [*range(30), *[30] * 30], [-1] * 30 + [0] * 30]
    )
    def test_none_where_there_are_clusters(self, labels):
        assert labelled(release_of("large"), labels).advice == ()

    def test_none_without_clusters_or_edges(self):
        release = release_of("large")
        bare = Release(published=release.published, statement=release.statement)
        assert bare.advice == ()
        isolated = Graph([], [], [], n_nodes=3)
        model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-9)).fit(isolated)
        assert model.release_.advice == ()

    def test_isolated_nodes_are_no_cause(self):
        graph = Graph([0, 1, 3, 4], [1, 2, 4, 5], [0.1] * 4, n_nodes=20)
        model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-9)).fit(graph)
        two = labelled(model.release_, [0, 0, 0, 1, 1, 1, *range(2, 16)])
        assert two.advice[0].startswith("All nodes that are connected are in one cluster")
        cut = labelled(model.release_, [0, 0, 1, 2, 2, 2, *range(3, 17)])
        assert cut.advice == ()
        alone = labelled(model.release_, [0, 1, 2, 3, 4, 4, *range(5, 19)])
        assert alone.advice[0].startswith("4 of 6 connected nodes are alone")

    def test_the_clusterers_that_suit(self):
        """Communities need the weights of all edges, and enough of them."""
        a, b = np.triu_indices(40, 1)
        graph = Graph(a, b, np.random.default_rng(0).uniform(0.1, 1, len(a)))
        for mechanism, suits in (("laplace", True), ("kruskal", False)):
            model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1), mechanism=mechanism)
            one = labelled(model.fit(graph).release_, [0] * 40)
            assert ("clusterer='communities'" in one.advice[1]) == suits

    def test_commands_print_it_in_options(self, run):
        labelled(release_of("large"), [0] * 60).save("one.json")
        rows = "".join(f"{i},{i + 1},{0.1 + i % 3 / 10}\n" for i in range(60))
        Path("edges.csv").write_text(f"source,target,distance\n{rows}")
        release_of("large").save("r.json")
        code, out, err = run("recluster", "r.json", "-o", "x.json", "--min-cluster-size", "61")
        assert (code, out) == (0, "")
        assert "At no cost: recluster this release by --clusterer" in err
        assert "--min-cluster-size 1" in err
        options = ["--epsilon", "1", "--linf", "10", "--min-cluster-size", "62", *UNIT]
        code, out, err = run("cluster", "edges.csv", *options, "-o", "-")
        assert code == 0
        assert "61 of 61 connected nodes are alone or unclustered" in err
        assert json.loads(out)["format"]

    def test_fit_does_not_warn(self, recwarn):
        release_of("large")
        assert not recwarn.list

    @pytest.mark.parametrize("unit", [None, "", " "])
    def test_fit_warns_if_nobody_is_protected(self, unit):
        model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-5), privacy_unit=unit)
        with pytest.warns(PrivacyWarning, match="cannot say whom it protects"):
            model.fit(path_graph())
