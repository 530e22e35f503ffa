"""The calibration of probabilities, measured."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import certainty
from experiments.certainty import CertaintyReport, _binned, right_nodes


def row(given, right, group="reported", n_clusters=2):
    binned = _binned(np.array(given), np.array(right))
    parts = {"nodes": binned, "clusters": binned}
    return {"group": group, "name": "a", "epsilon": 1.0, "n_clusters": n_clusters, **parts}


def test_right_is_with_the_majority_of_the_group():
    truth = np.array([5, 5, 5, 7, 7, 7])
    assert right_nodes(truth, np.array([0, 0, 1, 1, 1, -1])).tolist() == [1, 1, 0, 1, 1, 0]
    assert right_nodes(truth, np.zeros(6, int)).all()


def test_error_and_share_are_as_defined():
    report = CertaintyReport([row([0.95] * 4 + [0.45] * 4, [1, 1, 1, 0, 1, 1, 0, 0])], "c")
    assert report.error("nodes") == pytest.approx(0.5 * 0.2 + 0.5 * 0.05)
    assert report.sure("nodes") == pytest.approx((0.5, 0.75))
    assert not report.kept
    assert CertaintyReport([row([1.0] * 9 + [0.0], [1] * 9 + [0])], "c").kept


def test_small_releases_count_as_much_as_large_ones():
    rows = [row([1.0] * 100, [1] * 100), row([1.0], [0])]
    assert CertaintyReport(rows, "c").error("nodes") == pytest.approx(0.5)


def test_one_cluster_claims_nothing():
    rows = [row([1.0], [1]), row([0.0], [1], n_clusters=1)]
    report = CertaintyReport(rows, "c")
    assert report.error("nodes") == 0
    assert "1 more show one cluster" in " ".join(report.to_markdown().split())


def test_the_command(run_experiment, monkeypatch):
    monkeypatch.setattr(certainty, "EPSILONS", (10.0,))
    options = ("-o", "c", "--only", "southern-women", "--repetitions", 1)
    code, out, _ = run_experiment("certainty", *options)
    assert code == 0
    assert "of these right" in out
    assert Path("c/certainty.png").stat().st_size > 1000
    assert len(json.loads(Path("c/certainty.json").read_text())["rows"]) == 1
