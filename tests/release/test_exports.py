"""Releases in other programs: networkx, igraph, GEXF, GeoJSON, pandas, scipy's linkage."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage

import ptclust
from ptclust import Graph, PTClust, Sensitivity, graph_from_visits
from ptclust.clustering import Clustering
from ptclust.errors import FileError, InputError, UsageError
from tests.lazy import lazy
from tests.release.releases import path_release

geopandas = lazy("geopandas")
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


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import pandas, ptclust
visits = pandas.DataFrame({"person": [1, 1, 2, 2], "clinic": ["a", "b", "b", "c"]})
graph = ptclust.graph_from_visits(visits, item="clinic", items=["a", "b", "c"], max_items=2)
release = ptclust.PTClust(epsilon=1).fit(graph).release_
edges = ptclust.Graph.from_dataframe(
    pandas.DataFrame({"source": ["a"], "target": ["b"], "weight": [1.0]}), kind="distance"
)
merged = visits.merge(release.labels_frame("clinic"), on="clinic", how="left")
print(merged["cluster"].notna().all(), release.to_pandas().columns.tolist(), edges.n_edges)
print(graph.to_dataframe("pandas").shape, release.to_dataframe("pandas").shape)
"""


def test_pandas_needs_no_pyarrow():
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, check=True
    )
    assert found.stdout == "True ['node', 'cluster'] 1\n(3, 3) (3, 2)\n"


@pytest.mark.parametrize(
    "ids",
    [
        [30, 10, 20],
        ["c", "a", "b"],
        pd.Series([30, 10, 20], dtype="Int64"),
        pd.Series(["c", "a", "b"], dtype="category"),
        pd.Series(["c", "a", "b"], dtype="string"),
        pd.Series([30.0, 10.0, 20.0]),
    ],
)
def test_labels_merge_with_the_table_they_came_from(ids):
    visits = pd.DataFrame({"person": [1, 2, 3], "clinic": ids})
    listed = [10, 20, 30] if pd.api.types.is_numeric_dtype(visits["clinic"]) else ["a", "b", "c"]
    graph = graph_from_visits(visits, item="clinic", items=listed, max_items=2)
    release = PTClust(epsilon=1).fit(graph).release_
    merged = visits.merge(release.labels_frame("clinic"), on="clinic", how="left")
    cluster_of = dict(zip(release.names.tolist(), release.labels.tolist(), strict=True))
    assert merged["cluster"].tolist() == [cluster_of[one] for one in visits["clinic"]]
    assert release.labels_frame(backend="polars").columns == ["node", "cluster"]
    with pytest.raises(UsageError, match="another one is called cluster"):
        release.labels_frame("cluster")


class TestGeoJson:
    PLACES = "node,longitude,latitude\n1,10.5,60\n2,-0.25,51.5\n3,0,0\n4,179,-89\n"

    @pytest.fixture
    def release(self):
        edges = [1, 2, 3], [2, 3, 4]
        frame = pl.DataFrame({"source": edges[0], "target": edges[1], "distance": [0.1, 0.9, 0.1]})
        graph = Graph.from_dataframe(frame, weight="distance")
        model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-6), privacy_unit="one person")
        found = Clustering(np.repeat([0, 1], 2), dbcvi=0.5, shift=1.0, scale=4.0)
        return replace(model.fit(graph).release_, clustering=found)

    def test_opens_in_geopandas(self, run, release):
        Path("places.csv").write_text(self.PLACES)
        release.save("release.json")
        places = ("--coordinates", "places.csv", "--x", "longitude", "--y", "latitude")
        code, out, err = run("export", "release.json", *places, "-o", "nodes.geojson")
        assert (code, out) == (0, "")
        assert "in nodes.geojson. Nothing was spent." in err
        read = geopandas.read_file("nodes.geojson")
        assert read.crs.to_epsg() == 4326
        assert read["node"].tolist() == [1, 2, 3, 4]
        assert read["cluster"].tolist() == release.labels.tolist()
        assert list(read.geometry.x) == [10.5, -0.25, 0, 179]
        assert list(read.geometry.y) == [60, 51.5, 0, -89]
        assert read["marker-color"].nunique() == 2
        # degrees are what GeoJSON has: --degrees, which is for pictures, changes nothing
        assert run("export", "release.json", *places, "--degrees", "-o", "again.geojson")[0] == 0
        assert Path("again.geojson").read_bytes() == Path("nodes.geojson").read_bytes()

    @pytest.mark.parametrize(
        ("places", "message"),
        [
            ([[0, 0]] * 3, "a longitude and a latitude for each of the 4 nodes"),
            ([[0, 0], [181, 0], [0, 0], [0, 0]], "node 2 is at no longitude within 180"),
            ([[0, 0], [0, 0], [0, float("nan")], [0, 0]], "node 3 is at no longitude"),
        ],
    )
    def test_places_that_are_none(self, release, places, message, tmp_path):
        with pytest.raises(InputError, match=message):
            release.to_geojson(tmp_path / "nodes.geojson", places)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("suffix", ["csv", "parquet", "graphml", "gexf"])
    def test_other_formats_are_those_of_the_methods(self, run, release, suffix):
        release.save("release.json")
        assert run("export", "release.json", "-o", f"out.{suffix}")[0] == 0
        getattr(release, f"to_{suffix}")(f"own.{suffix}")
        assert Path(f"out.{suffix}").read_bytes() == Path(f"own.{suffix}").read_bytes()
        code, _, err = run("export", "release.json", "-o", f"out.{suffix}")
        assert code == 3
        assert "exists already" in err

    @pytest.mark.parametrize(
        ("output", "more", "message"),
        [
            ("x.geojson", (), "GeoJSON needs places: --coordinates stations.csv"),
            ("x.csv", ("--coordinates", "p.csv"), "--coordinates are for GeoJSON"),
            ("x.shp", (), "x.shp must end in one of .csv, .parquet, .graphml, .gexf, .geojson"),
        ],
    )
    def test_what_does_not_fit(self, run, release, output, more, message):
        release.save("release.json")
        code, _, err = run("export", "release.json", *more, "-o", output)
        assert code == 2
        assert message in err


def test_tables(tmp_path):
    release = path_release(list("abcde"))
    wanted = {"node": list("abcde"), "cluster": [0, 0, 0, 1, 1]}
    assert release.to_dataframe().to_dict(as_series=False) == wanted
    assert release.to_dataframe("pandas").to_dict("list") == wanted
    release.to_csv(tmp_path / "labels.csv")
    assert (tmp_path / "labels.csv").read_text() == "node,cluster\na,0\nb,0\nc,0\nd,1\ne,1\n"
    release.to_parquet(tmp_path / "labels.parquet")
    assert pl.read_parquet(tmp_path / "labels.parquet").to_dict(as_series=False) == wanted


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (None, [0, 1, 2, 3, 4]),
        (np.array([5, 6, 7, 8, 9]), [5, 6, 7, 8, 9]),
        ([5, "a,b", (1, 2), 8, 9], ["5", "a,b", "(1, 2)", "8", "9"]),
    ],
)
def test_tables_with_any_names(tmp_path, names, wanted):
    release = path_release(names)
    release.to_csv(tmp_path / "labels.csv")
    release.to_parquet(tmp_path / "labels.parquet")
    assert pl.read_csv(tmp_path / "labels.csv")["node"].to_list() == wanted
    assert pl.read_parquet(tmp_path / "labels.parquet")["node"].to_list() == wanted


@pytest.mark.parametrize("writer", ["save", "to_csv", "to_parquet", "to_graphml"])
def test_no_file_is_replaced_unasked(tmp_path, writer):
    file = tmp_path / "precious"
    file.write_text("precious")
    write = getattr(path_release(), writer)
    with pytest.raises(FileError, match=r"exists already; .*overwrite=True"):
        write(file)
    assert file.read_text() == "precious"
    write(file, overwrite=True)
    assert file.read_bytes() != b"precious"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("kind", ["distance", "similarity"])
def test_graphml_keeps_the_kind(tmp_path, kind):
    weights = {"kind": kind, "weights": [0.1, 0.2]}
    model = PTClust(epsilon=1, sensitivity=Sensitivity(l1=1e-9), privacy_unit="one")
    model.fit(Graph([0, 1], [1, 2], **weights)).release_.to_graphml(tmp_path / "tree.graphml")
    read = nx.read_graphml(tmp_path / "tree.graphml")
    assert read.graph["kind"] == kind
    assert Graph.from_networkx(read).kind == kind


@pytest.mark.parametrize(
    "names", [None, list("abcde"), ["<a>", "b & c", 'd "e"', "f\tg\nh", "\u00e9 \U0001f600"]]
)
def test_graphml(tmp_path, names):
    release = path_release(names)
    path = tmp_path / "tree.graphml"
    release.to_graphml(path)
    called = [str(name) for name in release.names.tolist()]
    graph = nx.read_graphml(path)
    assert list(graph) == called
    assert [graph.nodes[node]["cluster"] for node in called] == release.labels.tolist()
    found = [graph.edges[a, b] for a, b in pairwise(called)]
    assert [edge["weight"] for edge in found] == release.tree.weights.tolist()
    assert [edge["edge_id"] for edge in found] == release.tree.edge_ids.tolist()
    read = ptclust.read_graph(path, kind="distance")
    assert read.topology == release.tree.topology
    np.testing.assert_array_equal(read.weights, release.tree.weights)


def test_graphml_refuses_names_it_cannot_hold(tmp_path):
    with pytest.raises(FileError, match="XML does not admit"):
        path_release(["a", "b\x00", "c", "d", "e"]).to_graphml(tmp_path / "tree.graphml")
    with pytest.raises(FileError, match="same as text"):
        path_release([1, "1", 2, 3, 4]).to_graphml(tmp_path / "tree.graphml")
    assert not list(tmp_path.iterdir())
