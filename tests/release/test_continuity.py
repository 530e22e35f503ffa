"""Clusters that keep their numbers, and moves that are told from noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ptclust import PTClust, Release, Sensitivity
from ptclust.clustering import Clustering
from ptclust.errors import InputError
from ptclust.release.changes import _named
from ptclust.release.comparison import Follows
from tests.series.months import month

N = 12


def labelled(labels: list[int], seed: int = 0, graph: object = None, **settings: object) -> Release:
    given = {"epsilon": 1, "delta": 1e-6, "sensitivity": Sensitivity(l1=1), "random_state": seed}
    fitted = PTClust(**(given | settings)).fit(month(0, n=N) if graph is None else graph)
    found = fitted.release_.clustering
    assert found is not None
    clustering = Clustering(np.array(labels), dbcvi=0.0, shift=found.shift, scale=found.scale)
    return replace(fitted.release_, clustering=clustering)


def test_numbers_stay_where_most_nodes_stay_and_are_never_given_twice(tmp_path: Path) -> None:
    first = labelled([0] * 5 + [1] * 4 + [2] * 3)
    # The second cluster grows to be the largest, the third is split up among the others.
    second = labelled([0, 0, 0, 0] + [1] * 8, 1).follow(first)
    assert second.labels.tolist() == [0] * 4 + [1] * 8
    assert second.n_clusters == 2
    third = labelled([0] * 4 + [1] * 4 + [2] * 4, 2).follow(second)
    assert set(third.labels[4:].tolist()) == {3, 4}  # halves: neither is most of it, 2 was used
    assert third.labels[:4].tolist() == [0] * 4
    assert third.follows is not None
    assert third.follows.used == 5
    third.save(tmp_path / "third.json")
    read = Release.load(tmp_path / "third.json")
    assert read.follows == third.follows
    assert np.array_equal(read.labels, third.labels)
    assert [each.label for each in read.summary.clusters] == [0, 3, 4]
    assert read.recluster().follows is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"digest": "sha256:0"},
        {"numbers": (0, 0)},
        {"numbers": (0, -1)},
        {"numbers": (0, 5)},
        {"used": 2.0},
        {"numbers": (0, 2**31), "used": 2**31 + 1},
    ],
)
def test_wrong_numbers_are_refused(wrong: dict[str, object]) -> None:
    right = {"digest": "sha256:" + "0" * 64, "numbers": (0, 1), "used": 2}
    Follows(**right)
    with pytest.raises(InputError, match="follows"):
        Follows(**(right | wrong))


def test_a_label_that_changes_without_weights_is_within_noise() -> None:
    before = labelled([0, 1] * (N // 2))
    now = labelled([0, 1] * (N // 2 - 1) + [0, 0], 1)
    changes = now.compare(before).changes
    assert changes.nodes.tolist() == [N - 1]
    assert not changes.moved.any()
    assert changes.sentence == "No change beyond noise; 1 changes of cluster are within it."


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_move_is_named_with_any_noise(delta: float) -> None:
    how = {"delta": delta, "mechanism": "gaussian" if delta else "laplace"}
    before = labelled([0, 1] * (N // 2), **how)
    after = [0, 1] * (N // 2 - 1) + [0, 0]
    graph = month(1, move=(N - 1,), n=N)
    changes = labelled(after, 1, graph, **how).compare(before).changes
    assert changes.names == [N - 1]
    assert changes.clusters == {0: (1, 0), 1: (0, 1)}


def test_trees_do_not_tell() -> None:
    how = {"mechanism": "kruskal"}
    before, now = labelled([0, 1] * (N // 2), **how), labelled([0] * N, 1, **how)
    assert "weights of a tree alone" in now.compare(before).changes.sentence


def test_names_are_chosen_by_benjamini_and_hochberg() -> None:
    assert _named(np.array([0.001, 0.9, 0.012, 0.02]), 10).tolist() == [True, False, False, False]
    assert _named(np.array([0.004, 0.009, 0.014]), 10).tolist() == [True, True, True]
    assert not _named(np.array([0.006, 0.5]), 10).any()
