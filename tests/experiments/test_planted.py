from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ptclust.errors import UsageError
from ptclust.experiments.controls import CONTROLS
from ptclust.experiments.planted import planted_graph
from ptclust.experiments.utility import agreement

FAMILIES = ["circles", "moons"]


def pieces(graph, keep):
    a, b = graph.sources[keep], graph.targets[keep]
    matrix = coo_array((np.ones(len(a)), (a, b)), shape=(graph.n_nodes, graph.n_nodes))
    return connected_components(matrix, directed=False)[0]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_strongly_homogeneous_and_in_one_piece(family, n, seed):
    planted = planted_graph(family, n, seed=seed)
    graph, truth = planted.graph, planted.truth
    within = truth[graph.sources] == truth[graph.targets]
    assert np.bincount(truth).tolist() == [n // 2, n // 2]
    assert graph.weights[within].min() >= 0.1
    assert graph.weights[within].max() <= 0.3
    assert graph.weights[~within].min() > 0.9
    assert graph.weights[~within].max() <= 1.0
    assert np.count_nonzero(~within) == 4 * n
    assert pieces(graph, within) == 2
    assert pieces(graph, within | ~within) == 1
    degree = np.bincount(np.concatenate([graph.sources[within], graph.targets[within]]))
    assert degree.min() >= 8
    assert planted.points.shape == (n, 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_seed_decides(family):
    first, again, other = (planted_graph(family, 60, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(first.graph.sources, again.graph.sources)
    assert np.array_equal(first.graph.weights, again.graph.weights)
    assert np.array_equal(first.truth, again.truth)
    assert not np.array_equal(first.points, other.points)


def test_edges_come_in_random_order():
    planted = planted_graph("moons", 1000)
    across = planted.truth[planted.graph.sources] != planted.truth[planted.graph.targets]
    share = across[: len(across) // 2].mean() / across.mean()
    assert 0.9 < share < 1.1


def test_complete_and_trimmed_graphs():
    complete = planted_graph("circles", 40, complete=True)
    assert complete.graph.n_edges == 40 * 39 // 2
    trimmed = planted_graph("circles", 40, cross_edges=3)
    across = trimmed.truth[trimmed.graph.sources] != trimmed.truth[trimmed.graph.targets]
    assert np.count_nonzero(across) == 3
    full = planted_graph("circles", 40, cross_edges=10**6)
    across = full.truth[full.graph.sources] != full.truth[full.graph.targets]
    assert np.count_nonzero(across) == 400


@pytest.mark.parametrize("family", FAMILIES)
def test_the_topology_gives_the_clusters_away_only_when_trimmed(family):
    controls = {control.name: control.labels for control in CONTROLS}
    planted = [planted_graph(family, 100, seed=seed) for seed in range(5)]
    for name, low, high in (("dbmstclu", 1, 1), ("topology", 0, 0.02), ("spectral", -0.05, 0.1)):
        ari = np.mean([agreement(p.truth, controls[name](p)) for p in planted])
        assert low <= ari <= high, name
    trimmed = planted_graph(family, 100, cross_edges=2)
    assert agreement(trimmed.truth, controls["spectral"](trimmed)) > 0.5


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(("blobs",), "circles"), (("moons", 3), "at least 8"), (("moons", 20), "at least one edge")],
)
def test_bad_arguments(arguments, word):
    with pytest.raises(UsageError, match=word):
        planted_graph(*arguments, cross_edges=0)
