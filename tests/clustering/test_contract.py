"""What holds for every clusterer in the registry, and for those that others add."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptclust import PTClust, graph_from_flows
from ptclust.clustering import (
    CLUSTERERS,
    Clusterer,
    Clustering,
    Cost,
    DBMSTCluClusterer,
    choose_clusterer,
    with_options,
)
from ptclust.clustering.clusterer import by_size
from ptclust.datasets import bike_rides
from ptclust.errors import UsageError
from ptclust.graph import Graph, Topology
from ptclust.privacy.noise import Noise
from ptclust.trees import Tree, minimum_spanning_tree
from tests.clustering import partitions

FIELDS = {"mechanism", "noise", "tree", "topology", "noisy_weights", "whole_graph"}
FIELDS |= {"kind", "distances"}


@dataclass(frozen=True)
class Values:
    """Published values, as clusterers see them."""

    mechanism: str
    noise: Noise
    tree: Tree
    topology: Topology
    noisy_weights: np.ndarray
    whole_graph: bool

    @property
    def kind(self):
        return self.tree.kind

    @property
    def distances(self):
        return self.noisy_weights


class Recorder:
    """Gives what ``values`` have, and notes what was requested."""

    def __init__(self, values, seen=None):
        self._values, self._seen = values, set() if seen is None else seen

    def __getattr__(self, name):
        self._seen.add(name)
        return getattr(self._values, name)


@dataclass(frozen=True)
class Leaky(Values):
    """Published values with something private within reach."""

    private_weights: np.ndarray


def published(topology, weights, scale=0.1, distribution="gaussian", whole_graph=True):
    """Return a published graph; or the published tree of its minimum spanning tree."""
    weights = np.array(weights, dtype=np.float64)
    noise = Noise(distribution, scale, -40, len(weights))
    graph = Graph(topology.sources, topology.targets, weights, n_nodes=topology.n_nodes)
    weights = graph.weights.copy()
    weights.flags.writeable = False
    tree = minimum_spanning_tree(graph)
    tree = Tree(tree.topology, weights[tree.edge_ids], tree.edge_ids)
    if whole_graph:
        return Values("gaussian", noise, tree, graph.topology, weights, True)
    return Values("kruskal", noise, tree, tree.topology, tree.weights, False)


def planted(seed=0, n=60, deviation=0.15, **how):
    random = np.random.default_rng(seed)
    a, b = np.triu_indices(n, 1)
    kept = random.random(len(a)) < 0.5
    a, b = a[kept], b[kept]
    weights = np.where(a % 3 == b % 3, 0.2, 0.9) + random.normal(0, deviation, len(a))
    return published(Topology(a, b, n_nodes=n), weights, deviation, **how)


def edgeless(n):
    return published(Topology([], [], n_nodes=n), [], scale=0.0)


def inputs():
    ring = Topology(range(12), [*range(1, 12), 0], n_nodes=12)
    random = np.random.default_rng(5)
    ends = np.array([(a, b) for a in range(40) for b in range(a) if (a < 20) == (b < 20)])
    two = Topology(ends[:, 0], ends[:, 1], n_nodes=43)  # and three nodes without edges
    return {
        "planted": planted(),
        "laplace": planted(1, distribution="laplace"),
        "tree": planted(2, whole_graph=False),
        "hardly any noise": planted(3, deviation=1e-6),
        "nothing but noise": planted(4, deviation=30.0),
        "ties": published(ring, [0.5] * 12),
        "ties without noise": published(ring, [0.5] * 12, scale=1e-12),
        "negative": published(ring, random.normal(-5, 1, 12)),
        "components": published(two, random.normal(0, 1, len(ends))),
        "no nodes": edgeless(0),
        "one node": edgeless(1),
        "no edges": edgeless(3),
        "one edge": published(Topology([0], [1]), [0.3]),
    }


INPUTS = inputs()


def assert_contract(clusterer, values):
    """Fail unless the clusterer does what every clusterer must do, on these values."""
    seen = set()
    found = clusterer.cluster(Recorder(values, seen))
    labels = found.labels
    assert labels.dtype == np.int64
    assert labels.shape == (values.topology.n_nodes,)
    firsts = np.unique(labels[labels >= 0], return_index=True)
    assert firsts[0].tolist() == list(range(len(firsts[0])))
    assert (np.diff(firsts[1]) > 0).all(), "not numbered by first appearance"
    edges = list(zip(values.topology.sources.tolist(), values.topology.targets.tolist()))
    for label in firsts[0]:
        members = np.flatnonzero(labels == label).tolist()
        assert partitions.is_connected(members, edges), "a cluster is not connected"
    assert seen <= FIELDS, "more than what was published was read"
    np.testing.assert_array_equal(clusterer.cluster(values).labels, labels)
    if found.cuts is not None:
        assert set(found.cuts.edge_ids.tolist()) <= set(values.tree.edge_ids.tolist())
        assert found.cuts.dbcvi is None or len(found.cuts.dbcvi) == len(found.cuts)


def fits(clusterer, values):
    return clusterer.needs == "tree" or values.whole_graph


@pytest.fixture(params=tuple(CLUSTERERS), ids=lambda one: one.name)
def clusterer(request):
    return request.param


@pytest.mark.parametrize("values", INPUTS.values(), ids=INPUTS)
def test_contract(clusterer, values):
    if fits(clusterer, values):
        assert_contract(clusterer, values)


def test_clear_clusters_are_found(clusterer):
    truth = np.arange(60) % 3
    assert clusterer.cluster(INPUTS["hardly any noise"]).labels.tolist() == truth.tolist()


def test_result_is_complete(clusterer):
    values = planted(6)
    found = clusterer.apply(values, min_cluster_size=3)
    assert found.clusterer == clusterer.name
    assert found.min_cluster_size == 3
    assert -1 <= found.dbcvi <= 1
    scaled = (values.tree.weights + found.shift) / found.scale
    assert (scaled > 0).all()
    assert (scaled <= 1).all()
    sizes = np.bincount(found.labels[found.labels >= 0], minlength=1)
    assert not found.n_clusters or sizes.min() >= 3
    assert found.n_unclustered == (found.labels < 0).sum()
    assert found.description[0] == "the tree is the minimum spanning tree of the released weights"
    assert clusterer.description in found.description
    assert found.description[-1] == (
        "clusters of fewer than 3 nodes were dropped: their nodes are unclustered"
    )


@pytest.mark.parametrize("size", [0, 1.5, True, None, "2"])
def test_sizes_are_checked(clusterer, size):
    with pytest.raises(UsageError, match="min_cluster_size must be a whole number of at least 1"):
        clusterer.apply(INPUTS["one edge"], min_cluster_size=size)


def test_what_a_clusterer_says_of_itself(clusterer):
    assert CLUSTERERS[clusterer.name] is clusterer
    assert clusterer.needs in ("tree", "graph")
    assert "\n" not in clusterer.description
    assert clusterer.cost.steps(2000) > clusterer.cost.steps(1000) > 0
    assert clusterer.visible_gap(1000, 999) == 2 * np.sqrt(2 * np.log(1000))
    assert not clusterer.suits("tree", 999, 999) or clusterer.needs == "tree"


class Broken(Clusterer):
    """A clusterer that is as broken as its function makes it."""

    name = "broken"
    description = "what should not be"
    needs = "tree"
    cost = Cost(1, 1, 1.0)

    def __init__(self, function):
        self.function = function

    def cluster(self, published):
        return Clustering(self.function(published))


def parity_of_nodes(values):
    return np.arange(values.topology.n_nodes) % 2


COUNTER = iter(range(10**6))
MUTANTS = {
    "numbering": lambda values: 1 - np.minimum(np.arange(values.topology.n_nodes), 1),
    "gaps": lambda values: np.full(values.topology.n_nodes, 1),
    "length": lambda values: np.zeros(values.topology.n_nodes + 1, np.int64),
    "dtype": lambda values: np.zeros(values.topology.n_nodes, np.int32),
    "not connected": parity_of_nodes,
    "not deterministic": lambda values: np.full(values.topology.n_nodes, -(next(COUNTER) % 2)),
    "reads more": lambda values: values.private_weights.astype(np.int64) * 0,
    "writes": lambda values: values.noisy_weights.sort() or parity_of_nodes(values) * 0,
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_contract_can_be_broken(mutant):
    """Were it not for this, the contract might hold for everything."""
    path = published(Topology(range(5), range(1, 6)), [0.5, 0.1, 0.9, 0.1, 0.3])
    leaky = Leaky(**vars(path), private_weights=np.ones(6))
    assert_contract(Broken(lambda values: np.zeros(6, np.int64)), leaky)
    with pytest.raises((AssertionError, ValueError)):
        assert_contract(Broken(MUTANTS[mutant]), leaky)


class TestRegistry:
    def test_order_of_preference(self):
        assert [one.name for one in CLUSTERERS] == [
            "communities",
            "levels",
            "dbmstclu",
        ]

    def test_another_clusterer_is_registered_and_removed(self):
        toy = Broken(lambda values: np.zeros(values.topology.n_nodes, np.int64))
        CLUSTERERS.register(toy)
        try:
            assert tuple(CLUSTERERS)[-1] is toy
            assert choose("broken", publishes="tree") is toy
            assert toy.apply(planted(7)).description[-1] == toy.description
            with pytest.raises(UsageError, match="a clusterer 'broken' already"):
                CLUSTERERS.register(toy)
        finally:
            CLUSTERERS.unregister("broken")
        with pytest.raises(
            UsageError,
            match="must be one of communities, levels, dbmstclu, not 'broken'",
        ):
            CLUSTERERS["broken"]

    @pytest.mark.parametrize("name", ["hdbscan", None, ["levels"], 3])
    def test_unknown_names(self, name):
        for ask in (CLUSTERERS.__getitem__, CLUSTERERS.unregister, choose):
            with pytest.raises(UsageError, match="clusterer must be one of communities"):
                ask(name)


def choose(name, publishes="graph", preferred=None, n_edges=100, n_tree_edges=50):
    mechanism = SimpleNamespace(publishes=publishes, clusterer=preferred)
    return choose_clusterer(name, mechanism, n_edges, n_tree_edges)


class TestChoice:
    def test_auto(self):
        assert choose("auto").name == "communities"
        assert choose("auto", n_edges=74).name == "levels"
        assert choose("auto", publishes="tree").name == "levels"
        assert choose("auto", publishes="tree", preferred="dbmstclu").name == "dbmstclu"

    def test_a_name_is_kept_if_the_release_has_what_it_needs(self):
        for clusterer in CLUSTERERS:
            assert choose(clusterer.name, n_edges=50) is clusterer
        with pytest.raises(
            UsageError, match=r"'communities' averages over all edges.*mechanism='gaussian'"
        ):
            choose("communities", publishes="tree")

    def test_averages_show_smaller_gaps_where_there_are_enough_edges(self):
        communities = CLUSTERERS["communities"]
        assert communities.visible_gap(1000, 50_000) == max(0.7, 8 / 50_000**0.25)
        assert communities.visible_gap(1000, 1997) > 7
        assert communities.visible_gap(1000, 1997, n_tree_edges=998) < 7
        assert communities.visible_gap(3, 0) == CLUSTERERS["levels"].visible_gap(3, 0)


class TestOptions:
    def test_shift_and_scale_are_those_of_dbmstclu(self):
        values = planted(8, deviation=0.01)
        plain = CLUSTERERS["dbmstclu"]
        given = with_options(plain, shift=0.5, scale=4.0)
        assert given == DBMSTCluClusterer(0.5, 4.0)
        found = given.apply(values)
        assert (found.shift, found.scale) == (0.5, 4.0)
        assert "shifted by 0.5 (given) and divided by 4" in found.description[1]
        assert (
            "(from the released weights and the public noise)" in plain.apply(values).description[1]
        )

    def test_without_options_nothing_changes(self):
        for clusterer in CLUSTERERS:
            assert with_options(clusterer) is clusterer

    def test_other_clusterers_have_none(self):
        for name in ("levels", "communities"):
            with pytest.raises(
                UsageError, match=f"shift= and scale= are for clusterer='dbmstclu', .* by '{name}'"
            ):
                with_options(CLUSTERERS[name], shift=0.5)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"shift": np.nan}, "shift must be a finite number, not nan"),
            ({"shift": "1"}, "shift must be a finite number, not '1'"),
            ({"scale": True}, "scale must be a finite number, not True"),
            ({"scale": 0.0}, "scale must be above 0, not 0.0"),
        ],
    )
    def test_are_checked_before_anything_is_spent(self, options, message):
        for make in (
            lambda: DBMSTCluClusterer(**options),
            lambda: with_options(CLUSTERERS["levels"], **options),
            lambda: replace(CLUSTERERS["dbmstclu"], **options),
        ):
            with pytest.raises(UsageError, match=message):
                make()


class TestNumbers:
    """Releases number clusters by size, the largest first; all else follows from that."""

    @given(st.lists(st.integers(-1, 6), min_size=1, max_size=30))
    def test_sizes_fall_and_the_partition_stays(self, given_labels):
        labels = np.array(given_labels)
        found = by_size(labels)
        assert ((found < 0) == (labels < 0)).all()
        pairs = set(zip(labels.tolist(), found.tolist(), strict=True))
        assert len(pairs) == len(set(labels.tolist())) == len(set(found.tolist()))
        sizes = np.bincount(found[found >= 0])
        assert (np.diff(sizes) <= 0).all()
        firsts = [int(np.argmax(found == one)) for one in range(len(sizes)) if sizes[one]]
        for one, other in zip(range(len(firsts)), range(1, len(firsts)), strict=False):
            assert sizes[one] > sizes[other] or firsts[one] < firsts[other]
        assert by_size(found).tolist() == found.tolist()

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_of_a_release_and_all_its_levels(self, size):
        bikes = bike_rides()
        graph = graph_from_flows(bikes.rides, nodes=bikes.nodes)
        release = PTClust(epsilon=1, privacy_unit="one ride").fit(graph).release_
        for made in (release.recluster(min_cluster_size=size), release.recluster("dbmstclu")):
            every = [made.labels, *(level.labels for level in made.levels)]
            for labels in every:
                assert (np.diff(np.bincount(labels[labels >= 0])) <= 0).all()
            assert not made.levels or made.clustering.level is not None
            assert [each.label for each in made.summary.clusters] == list(range(made.n_clusters))
