"""Similarities, of which a large one means close, from a graph to its clusters."""

from __future__ import annotations

import numpy as np
import pytest

from ptclust import (
    DBMSTClu,
    Graph,
    PTClust,
    Release,
    Sensitivity,
    minimum_spanning_tree,
    private_spanning_tree,
    theory,
)
from ptclust.clustering import CLUSTERERS, dbcvi, dbmstclu
from ptclust.errors import UsageError, WeightError
from ptclust.mechanisms import MECHANISMS
from tests.lazy import lazy

nx = lazy("networkx")

SIZE, GROUPS = 30, 3


def flows(seed=0):
    """Counts between all pairs: about 40 within a group, about 3 across."""
    random = np.random.default_rng(seed)
    first, second = np.triu_indices(SIZE, 1)
    together = first % GROUPS == second % GROUPS
    return first, second, random.poisson(np.where(together, 40.0, 3.0))


@pytest.fixture(scope="module")
def graph():
    return Graph(*flows(), kind="similarity")


def as_distances(graph, top=100.0):
    """The same graph by hand: distances from a public bound."""
    return Graph(graph.sources, graph.targets, top - graph.weights)


def options(mechanism, **changed):
    delta = 1e-6 if mechanism == "gaussian" else 0
    settings = {"epsilon": 2, "delta": delta, "sensitivity": Sensitivity(l1=1.0)}
    return settings | {"mechanism": mechanism, "random_state": 4} | changed


def is_true(labels):
    pairs = set(zip(labels.tolist(), (np.arange(SIZE) % GROUPS).tolist()))
    return len(pairs) == GROUPS == len(set(labels.tolist()))


class TestTrees:
    def test_the_minimum_spanning_tree_of_distances_is_the_maximum_one(self, graph):
        tree = minimum_spanning_tree(graph)
        assert (
            tree.edge_ids.tolist() == minimum_spanning_tree(as_distances(graph)).edge_ids.tolist()
        )
        weighted = nx.Graph()
        weighted.add_weighted_edges_from(zip(graph.sources, graph.targets, graph.weights))
        best = nx.maximum_spanning_tree(weighted).size(weight="weight")
        assert tree.total_weight == best
        assert tree.kind == "similarity"

    @pytest.mark.parametrize("mechanism", MECHANISMS.names)
    def test_private_trees_join_what_is_close(self, graph, mechanism):
        tree = private_spanning_tree(graph, **options(mechanism, sensitivity=Sensitivity(l1=1e-3)))
        assert tree.kind == "similarity"
        across = tree.sources % GROUPS != tree.targets % GROUPS
        assert np.count_nonzero(across) == GROUPS - 1

    @pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
    def test_to_the_exponential_mechanism_they_are_negative_distances(self, graph, mechanism):
        negative = Graph(graph.sources, graph.targets, -graph.weights)
        trees = [private_spanning_tree(each, **options(mechanism)) for each in (graph, negative)]
        assert trees[0].edge_ids.tolist() == trees[1].edge_ids.tolist()


class TestRelease:
    @pytest.mark.parametrize("mechanism", MECHANISMS.names)
    def test_released_weights_stay_similarities(self, graph, mechanism, tmp_path):
        model = PTClust(**options(mechanism, sensitivity=Sensitivity(l1=1e-3))).fit(graph)
        release = model.release_
        ids = release.tree.edge_ids
        assert release.tree.weights == pytest.approx(graph.weights[ids], abs=2)
        assert release.kind == release.statement.kind == "similarity"
        assert "large means close" in release.statement.to_text()
        release.save(tmp_path / "release.json")
        loaded = Release.load(tmp_path / "release.json")
        assert loaded.kind == "similarity"
        assert loaded.recluster().labels.tolist() == release.labels.tolist()

    @pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
    def test_clusters_are_those_of_distances(self, graph, mechanism):
        """Noise is as likely with either sign; without any the clusters are the same."""
        settings = options(mechanism, sensitivity=Sensitivity(l1=1e-6))
        one, other = (PTClust(**settings).fit(given) for given in (graph, as_distances(graph)))
        assert one.labels_.tolist() == other.labels_.tolist()
        assert is_true(one.labels_)


@pytest.mark.parametrize("clusterer", CLUSTERERS.names)
def test_every_clusterer_knows_the_kind(graph, clusterer):
    settings = options("laplace", clusterer=clusterer, sensitivity=Sensitivity(l1=1e-6))
    assert is_true(PTClust(**settings).fit(graph).labels_)


def test_clear_clusters_are_seen_through_noise(graph):
    assert is_true(PTClust(**options("laplace", epsilon=1.0)).fit(graph).labels_)


def test_both_directions_of_a_flow_add_up():
    """With a cap, the strongest tie of a summed flow used to be the farthest."""
    first, second, counts = flows()
    forth = np.random.default_rng(1).binomial(counts, 0.5)
    both = [*first, *second], [*second, *first], [*forth, *(counts - forth)]
    summed = Graph(*both, kind="similarity", merge="sum")
    assert summed.weights.tolist() == counts.tolist()
    release = PTClust(**options("laplace", epsilon=1.0)).fit(summed).release_
    assert is_true(release.labels)
    assert release.statement.merge == "sum"
    assert "their sum" in release.statement.neighbours
    assert "merged to their sum" in release.statement.to_text()


def test_clipping_acts_on_the_weights_as_given(graph):
    release = PTClust(**options("laplace", clip=(0, 20), epsilon=500)).fit(graph).release_
    assert release.noisy_weights.max() < 21
    assert is_true(release.labels)
    assert release.statement.clip == (0.0, 20.0)


class TestWithoutPrivacy:
    def test_dbmstclu(self, graph):
        model = DBMSTClu().fit(graph)
        assert is_true(model.labels_)
        assert model.tree_.kind == "distance"
        assert model.tree_.weights.min() > 0

    def test_equal_similarities(self):
        even = Graph([0, 1], [1, 2], [5, 5], kind="similarity")
        assert even.to_distances().weights.tolist() == [1.0, 1.0]
        assert (
            DBMSTClu().fit(even).labels_.tolist()
            == DBMSTClu().fit(Graph([0, 1], [1, 2], [1, 1])).labels_.tolist()
        )

    @pytest.mark.parametrize(
        "call",
        [
            lambda graph: dbmstclu(minimum_spanning_tree(graph)),
            lambda graph: dbcvi(minimum_spanning_tree(graph), np.arange(SIZE) % GROUPS),
            lambda graph: minimum_spanning_tree(graph).to_linkage(),
            lambda graph: theory.strong_homogeneity(graph, np.arange(SIZE) % GROUPS),
        ],
        ids=["dbmstclu", "dbcvi", "linkage", "theory"],
    )
    def test_what_needs_distances_says_so(self, graph, call):
        with pytest.raises(WeightError, match="distances, and these are similarities"):
            call(graph)


class TestTopologyOfData:
    points = np.random.default_rng(5).normal(size=(20, 2))

    def test_nearest_neighbours_need_a_word(self):
        near = Graph.from_points(self.points, n_neighbors=3)
        with pytest.raises(UsageError, match=r"computed from the data: .*topology='public'"):
            PTClust(**options("laplace")).fit(near)
        with pytest.raises(UsageError, match="topology must be 'public'"):
            PTClust(**options("laplace"), topology="known").fit(near)
        assert PTClust(**options("laplace"), topology="public").fit(near).n_clusters_ >= 1

    def test_all_pairs_need_none(self):
        assert PTClust(**options("laplace")).fit(Graph.from_points(self.points)).n_clusters_ >= 1


class TestWarnings:
    """What people should think about before they spend."""

    def warned(self, recwarn, **changed):
        settings = {"epsilon": 1, "sensitivity": Sensitivity(l1=1.0), "privacy_unit": "one ride"}
        PTClust(**(settings | changed)).fit(Graph(*flows(), kind="similarity"))
        return " ".join(str(each.message) for each in recwarn)

    @pytest.mark.filterwarnings("default")
    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"delta": 2e-4, "mechanism": "gaussian"}, "delta = 0.0002 is large"),
            ({"delta": 0.04, "mechanism": "gaussian"}, "delta = 0.04 is large"),
            ({"epsilon": 11}, "epsilon = 11 guarantees almost nothing"),
            ({"privacy_unit": None}, "say what one privacy unit is"),
        ],
    )
    def test_given(self, recwarn, changed, said):
        assert said in self.warned(recwarn, **changed)

    @pytest.mark.filterwarnings("default")
    @pytest.mark.parametrize(
        "changed",
        [
            {"delta": 1e-6},
            {"epsilon": 10},
            {"privacy_unit": None, "random_state": 1},
            {"epsilon": 50, "random_state": 1},  # not private at all, and says so
        ],
    )
    def test_not_given(self, recwarn, changed):
        assert self.warned(recwarn, **changed) == ""
