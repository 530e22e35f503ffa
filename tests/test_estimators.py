from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_array

import ptclust
from ptclust._statistics import agreement
from ptclust.datasets import circles, moons
from ptclust.errors import InputError, WeightError
from tests.clustering import paper
from tests.lazy import lazy

igraph = lazy("igraph")
nx = lazy("networkx")
pd = lazy("pandas")

#: Three weights of one cluster, a bridge, three of the other.
PATH = [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1]
EXPECTED = [0, 0, 0, 0, 1, 1, 1, 1]


def as_matrix():
    matrix = np.zeros((8, 8))
    matrix[range(7), range(1, 8)] = PATH
    return csr_array(matrix + matrix.T)


def as_networkx():
    graph = nx.Graph()
    graph.add_weighted_edges_from((chr(97 + i), chr(98 + i), w) for i, w in enumerate(PATH))
    return graph


def as_igraph():
    return igraph.Graph(8, [(i, i + 1) for i in range(7)], edge_attrs={"weight": PATH})


def as_graph():
    return ptclust.Graph(range(7), range(1, 8), PATH)


@pytest.mark.parametrize(
    "make",
    [
        as_graph,
        as_matrix,
        as_networkx,
        as_igraph,
        lambda: ptclust.minimum_spanning_tree(as_graph()),
        lambda: np.cumsum([0.0, *PATH])[:, None],
        lambda: np.cumsum([0.0, *PATH])[:, None].tolist(),
        lambda: pd.DataFrame({"x": np.cumsum([0.0, *PATH])}),
    ],
)
def test_fits_every_kind_of_graph_and_points(make):
    model = ptclust.DBMSTClu().fit(make())
    assert model.labels_.tolist() == EXPECTED
    assert model.n_clusters_ == 2
    assert len(model.cuts_) == 1
    assert model.dbcvi_ == pytest.approx(1 - 1 / 9)
    assert model.tree_.n_nodes == 8


SPARSE = "a sparse matrix is a graph here, one row and column a node, not a table of points"


def test_follows_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator

    as_graphs = ("tag", "array", "matrix")
    expected = {f"check_estimator_sparse_{kind}": SPARSE for kind in as_graphs}
    results = check_estimator(
        ptclust.DBMSTClu(), expected_failed_checks=expected, on_skip=None, on_fail="raise"
    )
    assert len(results) > 30
    by_status = Counter(result["status"] for result in results)
    assert by_status["xfail"] == len(expected)
    assert by_status["passed"] >= len(results) - len(expected) - by_status["skipped"]
    assert by_status["skipped"] <= 1


def test_parameters():
    from sklearn.base import clone

    model = ptclust.DBMSTClu(max_clusters=3, min_cluster_size=2)
    assert clone(model).get_params() == {"max_clusters": 3, "min_cluster_size": 2}
    assert ptclust.DBMSTClu(max_clusters=1).fit_predict(as_graph()).tolist() == [0] * 8


def test_pickles_without_the_private_tree():
    model = pickle.loads(pickle.dumps(ptclust.DBMSTClu().fit(as_graph())))
    assert model.labels_.tolist() == EXPECTED
    assert not hasattr(model, "tree_")
    points = np.cumsum([0.0, *PATH])[:, None]
    assert hasattr(pickle.loads(pickle.dumps(ptclust.DBMSTClu().fit(points))), "tree_")


@pytest.mark.parametrize("thing", ["text", {"a": 1}, None])
def test_what_cannot_be_clustered(thing):
    with pytest.raises((InputError, ValueError, TypeError)):
        ptclust.DBMSTClu().fit(thing)


def test_identical_points_are_one_node():
    points = np.cumsum([0.0, *PATH])[:, None]
    model = ptclust.DBMSTClu().fit(np.concatenate([points[::-1], points, points]))
    assert model.labels_.tolist() == EXPECTED + EXPECTED[::-1] + EXPECTED[::-1]
    assert model.tree_.n_nodes == 8


def test_zero_weights_of_a_graph_name_the_remedy():
    with pytest.raises(WeightError, match="add one public constant"):
        ptclust.DBMSTClu().fit(ptclust.Graph([0], [1], [0.0]))


@pytest.mark.parametrize(
    ("make", "seed"),
    [(moons, 0), (moons, 8), (moons, 11), (circles, 0), (circles, 3), (circles, 8)],
)
def test_moons_and_circles_as_the_line_by_line_reference_finds_them(make, seed):
    points, truth = make(seed=seed)
    model = ptclust.DBMSTClu().fit(points)
    tree = model.tree_
    edges = list(zip(tree.sources.tolist(), tree.targets.tolist(), paper.exact(tree.weights)))
    _, _, reference = paper.dbmstclu(len(points), edges)
    assert model.labels_.tolist() == reference
    recovered = agreement(truth, model.labels_) == 1.0
    assert recovered == ((make, seed) in {(moons, 8), (moons, 11), (circles, 0), (circles, 3)})


def test_points_give_the_tree_of_their_complete_graph():
    points, _ = moons(60, seed=1)
    tree = ptclust.euclidean_spanning_tree(points)
    other = ptclust.minimum_spanning_tree(ptclust.Graph.from_points(points))
    assert tree.edge_ids.tolist() == other.edge_ids.tolist()
    assert tree.weights == pytest.approx(other.weights)


def test_a_hundred_thousand_points():
    points, _ = moons(100_000, noise=0.02, seed=0)
    model = ptclust.DBMSTClu(min_cluster_size=1000).fit(points)
    assert len(model.labels_) == 100_000
    assert model.tree_.n_edges == 99_999


def test_a_table_is_answered_with_what_makes_a_graph_of_it():
    visits = pd.DataFrame({"patient": [1, 2], "clinic": ["a", "b"]})
    with pytest.raises(InputError, match=r"DataFrame is not a graph.*graph_from_visits"):
        ptclust.PTClust(epsilon=1).fit(visits)
    with pytest.raises(InputError, match=r"name the right one, source=;.*graph_from_visits"):
        ptclust.Graph.from_dataframe(visits)
