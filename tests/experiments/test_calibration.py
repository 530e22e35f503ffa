from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from experiments import calibration
from experiments.calibration import CalibrationReport, Trial, epsilon_by_zcdp
from experiments.intersections import gain, square_of_uniform, square_of_uniform_limit
from experiments.settings import BENCHMARK
from ptclust import Sensitivity, Topology, plan
from ptclust.privacy import Budget
from ptclust.privacy.noise import gaussian_noise

PATH = Topology(range(500), range(1, 501))
LINF = Sensitivity(linf=1.0)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_the_epsilon_by_zcdp_buys_the_same_noise(epsilon):
    planned = plan(PATH, epsilon=epsilon, delta=1e-6, sensitivity=LINF, mechanism="gaussian")
    before = epsilon_by_zcdp(planned, 1e-6)
    rho = Budget.approximate(before, 1e-6).to_zcdp().amount
    assert gaussian_noise(LINF, 500, rho).scale == pytest.approx(
        planned.chosen.weights.scale, rel=1e-5
    )
    assert 0.06 < 1 - epsilon / before < 0.1


def test_pure_noise_has_no_other_price():
    planned = plan(PATH, epsilon=1, delta=0, sensitivity=LINF)
    assert epsilon_by_zcdp(planned, 1e-6) is None


@pytest.mark.parametrize(("n", "k"), [(4, "3/2"), (4, "1"), (6, "5/2"), (3, "3")])
def test_uniform_points_below_both_bounds(n, k):
    points = np.random.default_rng(1).random((400_000, n))
    inside = points[points.sum(axis=1) <= float(Fraction(k))]
    exact = float(square_of_uniform(n, Fraction(k)))
    assert (inside**2).mean() == pytest.approx(exact, rel=0.02)


def test_many_values_are_as_in_the_limit():
    for share in (0.1, 0.3, 0.45):
        many = float(square_of_uniform(300, Fraction(share) * 300))
        assert many == pytest.approx(square_of_uniform_limit(share), rel=0.03)
    gains = {i: gain(Fraction(i, 100), None) for i in range(1, 100)}
    assert max(gains, key=gains.__getitem__) in (40, 41)
    assert all((gains[i] > 0.1) == (33 <= i <= 43) for i in gains)
    assert gains[10] < 0.002


def a_row(**changes):
    return {
        "setting": "linf-1000", "family": "moons", "asked": "auto", "epsilon": None, "ari": 0.95,
        "margin": 0.1, "by_zcdp": 1.0, "deviation": 0.2, "mechanism": "gaussian",
        "clusterer": "communities", "needed": 0.93, **changes,
    }  # fmt: skip


def test_the_least_epsilon_is_found_by_bisection(monkeypatch):
    asked = []

    def measured(_, epsilon):
        asked.append(epsilon)
        return {"ari": 0.95 if epsilon >= 0.7 else 0.2}

    monkeypatch.setattr(Trial, "measured", measured)
    found = Trial(BENCHMARK[0], "moons", 1, 0).search()
    assert 0.7 <= found["needed"] <= 0.7 * 1.03
    assert found["ari"] == 0.95
    assert len(asked) < 12
    monkeypatch.setattr(Trial, "measured", lambda *_: {"ari": 0.2})
    assert Trial(BENCHMARK[0], "moons", 1, 0).search()["needed"] is None


def test_the_page_says_what_fell_and_what_was_missed():
    promised = {"setting": "linf-10000", "epsilon": 1.2}
    rows = [
        a_row(),
        a_row(family="blocks", needed=0.95),
        a_row(family="chains", by_zcdp=None, mechanism="laplace"),
        a_row(family="multiscale", needed=None, ari=0.4),
        a_row(**promised, ari=0.5),
        a_row(**promised, family="chains", ari=0.1),
    ]
    report = CalibrationReport(rows, 3, "make calibration")
    assert [row["family"] for row in report.short] == ["blocks"]
    page = " ".join(report.to_markdown().split())
    assert "in 1 of 2 families with Gaussian noise" in page
    assert "0 of 2 families reach it; moons missed (0.50), chains not requested (0.10)" in page
    rows = list(csv.DictReader(report.to_csv().splitlines()))
    fallen = {row["family"]: row for row in rows[:4]}
    assert (fallen["moons"]["needed"], fallen["moons"]["fall"]) == ("0.930", "7.0%")
    assert fallen["chains"]["fall"] == ""
    missed = [fallen["multiscale"][name] for name in ("epsilon", "ari", "verdict", "needed")]
    assert missed == ["20", "0.40", "not reached", ""]
    assert [row["verdict"] for row in rows[4:]] == ["missed", "not requested"]
    assert (rows[4]["ari"], rows[4]["margin"]) == ("0.50", "0.10")
    assert len(json.loads(report.to_json())["searched"]) == 4


def test_a_run_keeps_its_records(run_experiment, monkeypatch):
    calls = []

    def measured(trial, epsilon):
        calls.append((trial.setting.name, trial.family, epsilon))
        found = "ari", "margin", "by_zcdp", "deviation", "mechanism", "clusterer"
        return {name: a_row(ari=1.0)[name] for name in found}

    monkeypatch.setattr(Trial, "measured", measured)
    monkeypatch.setattr(calibration, "SEARCHED", ("linf-100",))
    code, out, _ = run_experiment("calibration", "-o", "c", "--repetitions", 1)
    assert code == 0
    assert "## The K-norm mechanism of two bounds" in out
    assert {call[2] for call in calls if call[0] != "linf-100"} == {1.2, 6.0}
    assert Path("c/calibration.md").exists()
    assert len(Path("c/calibration.csv").read_text().splitlines()) > 10
    calls.clear()
    assert run_experiment("calibration", "-o", "c", "--repetitions", 1)[0] == 0
    assert calls == []
