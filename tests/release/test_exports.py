"""Releases in other programs: networkx, igraph, GEXF, scipy's linkage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage

from ptclust import Graph, PTClust, Sensitivity
from ptclust.clustering import Clustering
from ptclust.errors import FileError, InputError
from tests.lazy import lazy

igraph = lazy("igraph")
nx = lazy("networkx")

NAMES = ["<a>", 'b"', "c&", "d'", "é", "f"]
A, B = np.triu_indices(6, 1)
WEIGHTS = np.where(A // 3 == B // 3, 0.1, 0.9)


@pytest.fixture(scope="module", params=["distance", "similarity"])
def release(request):
    weights = WEIGHTS if request.param == "distance" else 1 - WEIGHTS
    graph = Graph(A, B, weights, names=NAMES, kind=request.param)
    model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-6), privacy_unit="x")
    found = Clustering(np.repeat([0, 1], 3), dbcvi=0.5, shift=1.0, scale=4.0)
    return replace(model.fit(graph).release_, clustering=found)


def clusters(release):
    return dict(zip(release.names.tolist(), release.labels.tolist()))


def test_networkx(release):
    made = release.to_networkx()
    assert nx.get_node_attributes(made, "cluster") == clusters(release)
    assert made.number_of_edges() == release.topology.n_edges
    mine = nx.path_graph(NAMES)
    assert release.to_networkx(onto=mine) is mine
    assert mine.nodes["<a>"]["cluster"] == clusters(release)["<a>"]
    with pytest.raises(InputError, match="no node"):
        release.to_networkx(onto=nx.path_graph(3))


def test_igraph(release):
    made = release.to_igraph()
    assert dict(zip(made.vs["name"], made.vs["cluster"])) == clusters(release)
    assert made.es["noisy_weight"] == release.noisy_weights.tolist()
    mine = igraph.Graph(n=2)
    mine.vs["name"] = ["f", "other"]
    assert release.to_igraph(onto=mine).vs["cluster"] == [clusters(release)["f"], None]
    with pytest.raises(InputError, match="no node"):
        release.to_igraph(onto=igraph.Graph(n=2))


def test_gexf(release, tmp_path):
    path = tmp_path / "release.gexf"
    release.to_gexf(path)
    read = nx.read_gexf(path)
    found = {read.nodes[node]["label"]: read.nodes[node]["cluster"] for node in read}
    assert found == clusters(release)
    names = release.names
    for (a, b), weight in zip(
        zip(release.tree.sources, release.tree.targets), release.tree.weights.tolist()
    ):
        assert read.edges[str(a), str(b)]["noisy_weight"] == weight
        assert read.nodes[str(a)]["label"] == names[a]
    assert "viz" in read.nodes["0"]
    with pytest.raises(FileError, match="exists already"):
        release.to_gexf(path)


def test_linkage(release):
    linkage = release.to_linkage()
    assert is_valid_linkage(linkage)
    assert np.all((linkage[:, 2] > 0) & (linkage[:, 2] <= 1))
    two = fcluster(linkage, 2, "maxclust")
    assert len(set(zip(two.tolist(), release.labels.tolist()))) == 2
