"""Pictures: where nodes are, how clusters are told apart, and what the picture says."""

from __future__ import annotations

import io

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from scipy.optimize import linprog

from ptclust import PTClust, Sensitivity, Tree, minimum_spanning_tree, plan
from ptclust.clustering import Clustering, Level
from ptclust.datasets import planted_graph
from ptclust.drawing import plots
from ptclust.drawing.layout import as_places, packed
from ptclust.drawing.style import ALONE, COLOURS, OTHERS, UNCLUSTERED, Groups
from ptclust.errors import GraphError, InputError
from ptclust.graph import Topology
from ptclust.planning import predict
from ptclust.release import Release

NONE = np.empty(0, np.int64)


@pytest.fixture(scope="module")
def planted():
    return planted_graph("moons", 60, seed=1)


@pytest.fixture(scope="module")
def release(planted) -> Release:
    model = PTClust(epsilon=1, delta=1e-6, sensitivity=Sensitivity(linf=1e-6), privacy_unit="one")
    return model.fit(planted.graph).release_


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def legend(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


labels_of_any = st.lists(st.integers(-1, 6), max_size=40).map(np.array)


@given(labels_of_any)
def test_every_node_is_in_one_group_and_groups_count_them(labels):
    groups = Groups.of(labels)
    assert len(groups.of_node) == len(labels)
    counts = np.bincount(groups.of_node, minlength=len(groups.all))
    assert counts.tolist() == [group.size for group in groups.all]
    for node, place in enumerate(groups.of_node.tolist()):
        group = groups.all[place]
        assert group.label in (None, labels[node])
        if labels[node] < 0:
            assert "unclustered" in group.title
        elif np.count_nonzero(labels == labels[node]) == 1:
            assert group.marker == "x"


def test_looks_of_120_clusters_differ():
    looks = {(g.colour, g.marker) for g in Groups.of(np.repeat(np.arange(120), 2)).all}
    assert len(looks) == 120
    assert {colour for colour, _ in looks} == set(COLOURS)


def test_colours_are_far_apart():
    """In CIE Lab, where 2.3 is just noticeable; the greys of nodes without a cluster included."""
    every = [*COLOURS, UNCLUSTERED, ALONE, OTHERS]
    lab = [np.array(_lab(colour)) for colour in every]
    for i, one in enumerate(lab[: len(COLOURS)]):
        for other in lab[i + 1 :]:
            assert np.linalg.norm(one - other) > 25


def _lab(colour):
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(xyz) @ linear / [0.95047, 1, 1.08883])
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_beyond_200_clusters_the_smallest_share_a_look_and_the_legend_says_so():
    labels = np.concatenate([np.repeat(np.arange(250), 2), np.arange(50)])  # 0 to 49 are larger
    groups = Groups.of(labels)
    shown = [group.label for group in groups.all if group.label is not None]
    assert len(shown) == 200
    assert set(range(50)) <= set(shown)
    assert groups.all[-1].title == "50 smaller clusters"


@given(st.lists(st.integers(0, 8), min_size=1, max_size=60), st.integers(0, 2**31))
def test_discs_do_not_overlap_and_hold_their_nodes(groups, seed):
    of_node = Groups.of(groups).of_node
    random = np.random.default_rng(seed)
    edges = random.integers(0, len(of_node), (2, 20))
    found = packed([np.array(groups)], *edges)
    away = np.linalg.norm(found.places - found.centres[of_node], axis=1)
    assert np.all(away <= found.radii[of_node])
    for i in range(len(found.radii)):
        for j in range(i):
            gap = np.linalg.norm(found.centres[i] - found.centres[j])
            assert gap > found.radii[i] + found.radii[j]


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_many_discs_of_all_sizes_do_not_overlap(power):
    sizes = np.maximum(2, 2000 / np.arange(1, 161) ** power).astype(int)
    of_node = np.repeat(np.arange(160), sizes)
    random = np.random.default_rng(0)
    found = packed([of_node], *random.integers(0, len(of_node), (2, 3000)))
    apart = np.linalg.norm(found.centres[:, None] - found.centres[None], axis=2)
    wanted = found.radii[:, None] + found.radii[None]
    np.fill_diagonal(apart, np.inf)
    assert np.all(apart > wanted)
    extent = np.ptp(found.centres, axis=0).max() + found.radii.max()
    assert extent < 4 * np.sqrt(np.sum(found.radii**2)), "and stay together"


@given(st.integers(0, 2**31))
def test_clusters_of_every_level_are_in_one_piece(seed):
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 4, 60)
    middle = 3 * coarse + random.integers(0, 3, 60)
    fine = 4 * middle + random.integers(0, 4, 60)
    places = packed([coarse, middle, fine], *random.integers(0, 60, (2, 80))).places
    for label in np.unique(coarse):
        here = places[coarse == label]
        for other in set(coarse) - {label}:
            assert _separated(here, places[coarse == other])


def _separated(here, there) -> bool:
    """Return whether a line has all points of one set on one side, those of the other beyond."""
    sides = np.concatenate([-np.ones(len(here)), np.ones(len(there))])
    points = np.concatenate([here, there])
    rows = -sides[:, None] * np.column_stack([points, np.ones(len(points))])
    return linprog(np.zeros(3), rows, -np.ones(len(points)), bounds=(None, None)).status == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": (0, 0)}, "no place for node 'b'"),
        ([[0, 1]], "2 pairs of numbers"),
        ([[0, 1], [0, np.nan]], "node 'b' are not finite"),
        ([[0, 1], ["x", 2]], "pairs of numbers"),
        (3, "pairs of numbers"),
    ],
)
def test_wrong_coordinates_are_named(given, words):
    with pytest.raises(InputError, match=words):
        as_places(given, np.array(["a", "b"]))


def test_a_release_on_a_map(release, planted):
    figure = Figure()
    axes = figure.add_subplot()
    assert release.plot(planted.points, axes=axes) is axes
    drawn = np.concatenate([part.get_offsets() for part in axes.collections[1:]])
    assert {tuple(p) for p in drawn.tolist()} == {tuple(p) for p in planted.points.tolist()}
    assert legend(axes) == [f"cluster {i}: 30 nodes" for i in (0, 1)]
    assert "epsilon = 1" in axes.get_title()
    assert {"0", "1"} <= set(texts(axes))  # the numbers of the clusters
    assert len(texts(axes)) > 20, "names where they fit"


def test_a_number_is_written_on_a_node_of_its_cluster(release, planted):
    groups = Groups.of(release.labels)
    places = plots.centres_of(groups, planted.points)
    for group, place in zip(groups.all, places):
        here = planted.points[release.labels == group.label]
        assert place.tolist() in here.tolist()


def test_without_coordinates_places_come_from_the_release(release, planted):
    first, second = (release.plot(axes=Figure().add_subplot()) for _ in range(2))
    places = [np.concatenate([p.get_offsets() for p in a.collections]) for a in (first, second)]
    np.testing.assert_array_equal(*places)
    assert "Positions show which nodes are together, nothing else." in texts(first)


def test_large_graphs_are_aggregated_and_say_so():
    labels = np.repeat([0, 1, 2], [2000, 500, 1])
    clustering = Clustering(labels)
    axes = clustering.plot(axes=Figure().add_subplot())
    assert len([patch for patch in axes.patches if isinstance(patch, Circle)]) == 3
    assert any("Aggregated: 2,501 nodes" in text for text in texts(axes))
    assert not any(isinstance(part, mpl.collections.PathCollection) for part in axes.collections)
    areas = [patch.get_radius() ** 2 for patch in axes.patches]
    assert areas[0] > 3.5 * areas[1]


def test_unclustered_nodes_are_grey_and_in_the_legend():
    axes = Clustering(np.array([0, 0, -1, -1, 1])).plot(np.eye(5, 2))
    assert legend(axes) == ["cluster 0: 2 nodes", "1 node alone", "2 nodes unclustered"]


def test_levels_stand_beside_each_other(release):
    fine = np.unique(2 * release.labels + np.arange(60) % 2, return_inverse=True)[1]
    first = np.unique(fine, return_index=True)[1]
    fine = np.argsort(np.argsort(first))[fine]
    levels = (Level(release.labels, 1.0), Level(fine, 2.0))
    made = Release(
        published=release.published,
        statement=release.statement,
        clustering=Clustering(release.labels, dbcvi=0.0, levels=levels, shift=1.0, scale=4.0),
    )
    row = made.plot(levels=True)
    assert [axes.get_title() for axes in row] == ["level 0: 2 clusters", "level 1: 4 clusters"]
    without = release.recluster("dbmstclu")
    assert [axes.get_title() for axes in without.plot(levels=True)] == ["one level"]


def test_of_a_tree_edges_are_drawn_and_a_private_one_says_so(planted):
    tree = minimum_spanning_tree(planted.graph)
    axes = tree.plot(planted.truth)
    assert "NOT PRIVATE" in axes.get_title()
    assert len(axes.collections[0].get_segments()) == tree.n_edges
    assert tree.plot(coordinates=planted.points).get_legend() is None
    with pytest.raises(GraphError, match="60 whole numbers"):
        tree.plot([0, 1])
    assert "NOT" not in Tree(Topology([0], [1]), [0.5]).plot().get_title()


def test_a_plan_and_a_prediction(planted):
    bounds = {"sensitivity": Sensitivity(linf=1e-3), "delta": 1e-6, "clip": (0, 1)}
    made = plan(planted.graph.topology, epsilon=1, **bounds)
    axes = made.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        each.mechanism for each in reversed(made.calibrations)
    ]
    assert sum("chosen" in text for text in texts(axes)) == 1
    predicted = predict(planted.graph.topology, epsilons=[1.0], repetitions=1, **bounds)
    assert predicted.plot().get_xlabel() == "epsilon"


def test_names_are_drawn_as_they_are():
    names = np.array(["$x^2$", "a\nb", "<script>"], dtype=object)
    axes = plots.plot_clusters(
        np.array([0, 0, 0]), edges=(NONE, NONE), names=names, places=np.eye(3, 2) * 100
    )
    assert {"$x^2$", "a·b", "<script>"} <= set(texts(axes))
    axes.get_figure().savefig(io.BytesIO(), format="svg")


@pytest.mark.parametrize("labels", [[], [0], [-1], [0, 1], [0] * 2001])
def test_small_and_odd_numbers_of_nodes(labels):
    Clustering(np.array(labels, dtype=np.int64)).plot(axes=Figure().add_subplot())
