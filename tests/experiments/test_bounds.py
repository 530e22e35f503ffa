from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
from scipy.stats import binomtest

from experiments import bounds
from experiments.bounds import Effort, light_and_heavy_paths, run_bounds
from experiments.bounds_report import BoundsReport, interval
from ptclust.theory.homogeneity import strong_homogeneity

EFFORT = Effort((0.5, 1.5, 2.0), (0.0005, 0.05), tree_draws=800, noise_draws=4000)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("bounds")


@pytest.fixture(scope="module")
def records(directory):
    return run_bounds(directory, EFFORT)


@pytest.fixture(scope="module")
def report(records):
    return BoundsReport(records, "make bounds")


def test_every_case_has_a_record(records):
    assert len(records) == 2 * 3 + 2 * 2 + 4 * 3
    assert Effort.quick().epsilons[0] == Effort.full().epsilons[0]
    assert set(Effort.quick().epsilons) <= set(Effort.full().epsilons)
    assert set(Effort.quick().noise_scales) <= set(Effort.full().noise_scales)


def test_what_is_proved_holds_and_what_is_printed_does_not(records):
    for record in records:
        if record["part"] == "partitioning":
            for method in ("pamst", "kruskal"):
                assert record["corrected"] <= interval(record[method], record["draws"], 1 - 1e-6)[1]
        elif record["part"] == "trade-off":
            assert record["worst"] <= record["release"]
            for name in ("corrected", "sound"):
                assert record[name] <= interval(record["worst"], record["draws"], 1 - 1e-6)[1]
        else:
            assert 0 <= record["quantile"] < record["bound"]
            assert record["mean"] < record["mean_bound"]
            assert record["quantile"] <= record["most"]


def test_the_counterexample_shows(report):
    (paths,) = (r for r in report.of("partitioning", "paths") if r["x"] == 2.0)
    assert paths["supplement"] > 0.99 > 0.9 > interval(paths["pamst"], paths["draws"])[1]
    text = report.to_markdown()
    assert "*supplement* is false at epsilon 1.5, 2" in " ".join(text.split())
    assert "*corrected* is false" not in text
    assert "`make bounds`" in text
    rows = list(csv.DictReader(report.to_csv().splitlines()))
    assert len(rows) == 10 * 5 + 12 * 4
    (row,) = (r for r in rows if (r["case"], r["x"], r["quantity"]) == ("paths", "2", "supplement"))
    assert (row["value"], row["note"]) == ("0.9946", "false")
    assert not [r for r in rows if r["quantity"] in ("corrected", "sound") and r["note"]]


def test_the_counterexample_meets_the_conditions_of_theorem_d():
    graph, labels = light_and_heavy_paths(8, 2, 1.2)
    assert strong_homogeneity(graph, labels).holds
    assert (graph.n_nodes, graph.n_edges) == (16, 14 + 64)


def test_files(report, directory):
    report.save(directory)
    assert (directory / "bounds.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (directory / "bounds.svg").read_bytes()
    assert (directory / "bounds.md").read_text() == report.to_markdown() + "\n"
    assert (directory / "bounds.csv").read_text() == report.to_csv() + "\n"
    assert len(json.loads((directory / "bounds.json").read_text())["records"]) == 22


def test_nothing_is_made_twice(records, directory, monkeypatch):
    monkeypatch.setattr(bounds, "theorem_d", None)
    assert run_bounds(directory, EFFORT) == records


def test_a_seed_gives_the_same_again(tmp_path, records):
    small = replace(EFFORT, epsilons=(2.0,), noise_scales=(0.05,))
    again = run_bounds(tmp_path, small)
    assert all(record in records for record in again)
    other = run_bounds(tmp_path / "other", small, seed=1)
    differing = [a != b for a, b in zip(again, other)]
    assert sum(differing) >= len(differing) - 1  # one case never fails


@pytest.mark.parametrize(("hits", "draws"), [(0, 50), (50, 50), (7, 50)])
def test_interval(hits, draws):
    expected = binomtest(hits, draws).proportion_ci(0.99, method="exact")
    assert interval(hits, draws) == pytest.approx((expected.low, expected.high))


def test_the_command(run_experiment, monkeypatch, tmp_path):
    tiny = Effort((2.0,), (0.05,), tree_draws=40, noise_draws=100)
    monkeypatch.setattr(Effort, "quick", classmethod(lambda cls: tiny))
    monkeypatch.setattr(BoundsReport, "draw", lambda _, *paths: [path.touch() for path in paths])
    code, out, err = run_experiment("bounds", "--quick", "-o", "out", "--seed", "3", "--json")
    assert code == 0
    assert len(json.loads(out)["records"]) == 8
    assert "8 cases; tables, figure and results are in out" in err
    names = [f"bounds.{suffix}" for suffix in ("csv", "json", "md", "png", "svg")]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [*names, "results.jsonl"]
    assert '`make bounds ARGS="--quick --seed 3"`' in (tmp_path / "out/bounds.md").read_text()
    code, _, err = run_experiment("bounds", "--quick", "-o", "out")
    assert code == 3
    assert "--restart" in err
