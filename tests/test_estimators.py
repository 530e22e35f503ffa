"""The estimators: what they take, what they keep."""

from __future__ import annotations

import inspect
import pickle
from collections import Counter
from dataclasses import fields
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array

import ptclust
from ptclust import DBMSTClu, PTClust, Sensitivity, minimum_spanning_tree
from ptclust._options import ReleaseOptions
from ptclust._statistics import agreement
from ptclust.datasets import circles, moons
from ptclust.errors import InputError, UsageError, WeightError
from tests.clustering import paper
from tests.lazy import lazy
from tests.published import MU, NAMES, PATH, TINY, choices, path_graph, planted

igraph = lazy("igraph")
nx = lazy("networkx")
pd = lazy("pandas")

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


class TestPTClust:
    def test_parameters_are_keywords_and_what_must_be_known_has_no_default(self):
        parameters = inspect.signature(PTClust).parameters
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
        without = {name for name, p in parameters.items() if p.default is p.empty}
        assert without == {"epsilon"}  # a graph may carry the sensitivity
        with pytest.raises(TypeError):
            PTClust(1.0, Sensitivity(linf=1))  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            PTClust(sensitivity=Sensitivity(linf=1))  # type: ignore[call-arg]
        with pytest.raises(UsageError, match="carries no sensitivity"):
            PTClust(epsilon=1).fit(path_graph())

    def test_options_are_those_that_are_declared(self):
        """With the same defaults; the sensitivity may follow from the graph."""
        parameters = inspect.signature(PTClust).parameters
        given = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
        declared = {each.name: each.default for each in fields(ReleaseOptions)}
        del declared["epsilon"]
        assert given == declared | {"sensitivity": None}

    def test_follows_scikit_learn(self):
        from sklearn.base import clone

        model = PTClust(**TINY, delta=1e-6, mechanism="kruskal", split=0.25, min_cluster_size=2)
        copy = clone(model.fit(path_graph()))
        assert copy.get_params() == model.get_params()
        assert set(model.get_params()) == set(inspect.signature(PTClust).parameters)
        assert not hasattr(copy, "labels_")
        assert copy.set_params(epsilon=3.0).epsilon == 3.0
        assert PTClust(**TINY).fit_predict(path_graph()).tolist() == EXPECTED
        assert "Sensitivity(l1=None, l2=None, linf=1e-07)" in repr(model)

    def test_the_constructor_only_stores(self):
        model = PTClust(epsilon=-1, sensitivity="wrong", mechanism="wrong", split=9)
        assert (model.epsilon, model.split) == (-1, 9)

    def test_every_kind_of_graph(self):
        matrix = np.zeros((8, 8))
        matrix[range(7), range(1, 8)] = PATH
        kinds = [
            path_graph(),
            csr_array(matrix + matrix.T),
            csr_array(matrix).tocoo(),
            nx.from_scipy_sparse_array(csr_array(matrix + matrix.T)),
            igraph.Graph(8, [(i, i + 1) for i in range(7)], edge_attrs={"weight": PATH}),
        ]
        for kind in kinds:
            model = PTClust(**TINY).fit(kind)
            assert model.labels_.tolist() == EXPECTED, type(kind)
            assert model.n_clusters_ == 2
            assert model.release_.n_nodes == 8

    THINGS: ClassVar = {
        "array": lambda: np.zeros((5, 2)),
        "list": lambda: [[0.0, 1.0], [2.0, 3.0]],
        "table": lambda: pd.DataFrame({"x": [1.0]}),
        "text": lambda: "edges.csv",
        "nothing": lambda: None,
        "tree": lambda: minimum_spanning_tree(path_graph()),
    }

    @pytest.mark.parametrize("what", THINGS)
    def test_points_and_other_things_are_refused_with_a_remedy(self, what, spending):
        with pytest.raises(InputError, match=r"Graph\.from_points"):
            PTClust(**TINY).fit(self.THINGS[what]())
        assert spending == []

    @pytest.mark.parametrize("mechanism", NAMES)
    @pytest.mark.parametrize("seed", range(3))
    def test_without_noise_it_is_dbmstclu_on_the_exact_tree(self, mechanism, seed):
        graph = planted(30, seed)
        reference = DBMSTClu().fit(graph)
        model = PTClust(**TINY, **choices(mechanism)).fit(graph)
        assert model.release_.tree.edge_ids.tolist() == reference.tree_.edge_ids.tolist()
        assert model.release_.tree.weights == pytest.approx(reference.tree_.weights, abs=1e-3)
        assert model.release_.clustering.shift == 0
        assert model.labels_.tolist() == reference.labels_.tolist()
        assert model.dbcvi_ == pytest.approx(reference.dbcvi_, abs=1e-3)
        assert model.n_clusters_ == reference.n_clusters_ == model.release_.n_clusters

    def test_clusters_are_numbered_by_first_appearance(self):
        for seed in range(5):
            labels = PTClust(**TINY, random_state=seed).fit_predict(planted(30, seed)).tolist()
            assert list(dict.fromkeys(labels)) == list(range(max(labels) + 1))
            assert max(labels) > 0

    def test_a_seed_repeats_the_release_and_takes_its_privacy(self):
        for mechanism in NAMES:
            options = {"epsilon": 1, "sensitivity": Sensitivity(linf=MU), **choices(mechanism)}
            one, two, other = (
                PTClust(**options, random_state=seed).fit(planted()).release_ for seed in (5, 5, 6)
            )
            assert one.tree.edge_ids.tolist() == two.tree.edge_ids.tolist()
            assert one.tree.weights.tolist() == two.tree.weights.tolist()
            assert one.labels.tolist() == two.labels.tolist()
            assert one.tree.weights.tolist() != other.tree.weights.tolist()
            assert not one.statement.private
            assert one.statement.randomness == "reproducible"
            assert "NOT PRIVATE" in repr(one)

    def test_secure_runs_differ(self):
        model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=MU))
        one, two = model.fit(planted()).release_, model.fit(planted()).release_
        assert one.statement.private
        assert one.statement.randomness == "secure"
        assert not set(one.tree.weights.tolist()) & set(two.tree.weights.tolist())
        assert one.statement.id != two.statement.id

    def test_a_fitted_model_is_pickled_whole(self):
        model = PTClust(**TINY, delta=1e-6, privacy_unit="one visitor").fit(planted())
        copy = pickle.loads(pickle.dumps(model))
        assert copy.labels_.tolist() == model.labels_.tolist()
        assert copy.get_params() == model.get_params()
        assert copy.plan_ == model.plan_
        assert copy.release_.statement == model.release_.statement
        assert copy.release_.tree.weights.tolist() == model.release_.tree.weights.tolist()

    def test_small_clusters_are_unclustered(self):
        graph = path_graph([0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
        assert PTClust(**TINY).fit_predict(graph).tolist() == [0] * 4 + [2] * 3 + [1] * 4
        model = PTClust(**TINY, min_cluster_size=4).fit(graph)
        assert model.labels_.tolist() == [0] * 4 + [-1] * 3 + [1] * 4
        assert (model.n_clusters_, model.release_.n_unclustered) == (2, 3)
        assert model.release_.clustering.min_cluster_size == 4

    def test_names_stay_with_their_nodes(self):
        model = PTClust(**TINY).fit(path_graph(names="abcdefgh"))
        assert model.release_.names.tolist() == list("abcdefgh")

    @pytest.mark.parametrize(
        "wrong", [{"epsilon": -1}, {"clip": (0.3, 0.2)}, {"mechanism": "gaussian"}]
    )
    def test_a_fit_that_was_refused_leaves_the_last_one_whole(self, wrong):
        model = PTClust(**TINY).fit(path_graph())
        before = model.plan_, model.release_, model.labels_
        with pytest.raises((UsageError, WeightError)):
            model.set_params(**wrong).fit(planted())
        assert (model.plan_, model.release_) == before[:2]
        assert model.labels_ is before[2]
