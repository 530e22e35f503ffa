from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from experiments import benchmark, trips
from experiments.__main__ import app
from experiments.benchmark_report import BenchmarkReport
from experiments.building import write_visits
from experiments.crossings import Trace, trace_cluster
from experiments.prediction import PredictionReport

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["utility", "shift"])
def test_commands_are_there(run_experiment, command):
    code, out, _ = run_experiment(command, "--help")
    assert code == 0
    assert "--repetitions" in out


def test_every_command_is_a_target_of_make():
    lines = (ROOT / "Makefile").read_text().replace("\\\n", "").splitlines()
    (targets,) = (line for line in lines if line.startswith("EXPERIMENTS :="))
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert sorted(targets.split()[2:]) == sorted(names)


def test_bench_measures_ratios(run_experiment, monkeypatch):
    """Two tasks, a process each; that all tasks run is tested below."""
    two = {name: benchmark.TASKS[name] for name in ("scipy_mst", "mst")}
    monkeypatch.setattr(benchmark, "TASKS", two)
    sizes = [benchmark.Case("random", size) for size in (1000, 2000, 4000)]
    monkeypatch.setattr(benchmark, "quick_cases", lambda: sizes)
    code, out, _ = run_experiment("bench", "--quick", "--rounds", 1, "-o", "b")
    assert code == 0
    assert "| random | 4,000 | 1 | " in out
    assert Path("b/performance.md").read_text().strip() == out.strip()
    found = json.loads(Path("b/performance.json").read_text())
    assert len(found["measurements"]) == 6
    for measured in found["measurements"]:
        assert measured["peak_bytes"] > 0
        assert (measured["time_ratio"] == 1.0) == (measured["task"] == "scipy_mst")
    assert found["growth"].keys() == {"random: scipy_mst", "random: mst"}


def test_bench_measures_one_graph(run_experiment, monkeypatch):
    monkeypatch.setattr(benchmark, "TASKS", {"mst": benchmark.TASKS["mst"]})
    code, out, _ = run_experiment("bench", "--quick", "--rounds", 1, "--graph", "star", "-o", "b")
    assert code == 0
    assert "| star | " in out
    assert "| random | " not in out
    assert "## Noise" not in out
    assert json.loads(Path("b/performance.json").read_text())["noise"] is None
    code, _, err = run_experiment("bench", "--graph", "sun")
    assert code == 2
    assert "one of random, grid" in err


def test_the_report_shows_the_fastest_of_the_other_libraries():
    times = {"scipy_mst": 2.0, "mst": 1.0, "igraph_mst": 8.0, "networkit_mst": 6.0, "pamst": 0.5}
    measured = [
        benchmark.Measurement("random", 100, name, seconds, 1, 1.0)
        for name, seconds in times.items()
    ]
    report = BenchmarkReport(measured, None, 1, "make bench")
    assert "| random | 100 | 1 | 0.5 | 3 |  | 0.25 |  |" in report.to_markdown()
    rows = list(csv.DictReader(report.to_csv().splitlines()))
    assert [float(row["time"]) for row in rows] == [1, 0.5, 4, 3, 0.25]
    assert {row["kind"] for row in rows} == {"minimum spanning tree", "private tree"}


def test_the_report_shows_ratios_at_every_size():
    """Beside the baseline where it was measured, and else beside the first that was."""
    times = {
        "hdbscan": {10: 2.0},
        "fast_hdbscan": {10: 1.0, 100: 8.0},
        "points": {10: 1.0, 100: 4.0},
    }
    measured = [
        benchmark.Measurement("points", size, task, seconds, 1, 1.0)
        for task, each in times.items()
        for size, seconds in each.items()
    ]
    rows = BenchmarkReport(measured, None, 1, "make bench")._table("points")[4:-1]
    cells = [row.split(" | ")[1:3] for row in rows if "**" not in row]
    assert cells == [["1", ""], ["0.5", "1"], ["0.5", "0.5"]]


def test_bench_command_measures_ratios(run_experiment):
    code, out, _ = run_experiment("bench-command", "--largest", 20_000, "--rounds", 1, "--json")
    assert code == 0
    found = json.loads(out)["measurements"]
    assert [each["task"] for each in found] == ["plain", "l1", "linf"] * 3
    for each in found:
        assert each["cpu_seconds"] > 0
        assert each["wall_seconds"] > 0
        assert each["peak_bytes"] > 1e7
        assert (each["time_ratio"] == 1.0) == (each["task"] == "plain")
        assert (each["ari"] is None) == (each["task"] == "plain")
    assert found[-1]["ari"] > 0.9
    assert json.loads(Path("build/bench-command.json").read_text())["measurements"] == found


def test_growth_is_the_slope_of_the_logarithms():
    sizes = (100, 1000, 10_000)
    measured = [
        benchmark.Measurement("random", size, "mst", 1e-9 * size**1.5, 1, 0.0) for size in sizes
    ]
    report = BenchmarkReport(measured, None, 1, "make bench")
    assert report._growth("random", "mst") == pytest.approx(1.5)


def test_bench_noise_measures_ratios(run_experiment):
    options = ["--values", 5000, "--opendp-values", 1000, "--repeat", 1, "--json"]
    code, out, _ = run_experiment("bench-noise", *options)
    assert code == 0
    found = json.loads(out)["nanoseconds"]
    assert found.keys() == {"laplace", "gaussian", "cube"}
    assert all(each["ratio"] > 0 for each in found.values())
    code, out, _ = run_experiment("bench-noise", *options[:-1])
    assert code == 0
    assert "| laplace |" in out


FAMILIES = {"tree": "random", "clusters": "planted", "points": "points"}
ONLY_BENCH_HAS = {
    "networkit_mst": "networkit",
    "rustworkx_mst": "rustworkx",
    "leidenalg": "leidenalg",
    "fast_hdbscan": "fast_hdbscan",
}


@pytest.mark.parametrize("task", benchmark.TASKS)
def test_every_task_of_the_benchmark_runs(task, tmp_path):
    if task in ONLY_BENCH_HAS:
        pytest.importorskip(ONLY_BENCH_HAS[task], reason="only `make bench` installs it")
    graph = FAMILIES[benchmark.TASKS[task].family]
    assert task in benchmark.Case(graph, 2000).tasks
    np.savez(tmp_path / "data.npz", **benchmark.GRAPHS[graph](2000))
    measured = benchmark.measure(task, tmp_path, graph, 2000)
    assert measured["cpu_seconds"] > 0
    assert measured["peak_bytes"] > 0
    assert measured["answer"] > 0


@pytest.mark.parametrize("graph", sorted(benchmark.GRAPHS.keys() - FAMILIES.values() | {"random"}))
def test_graphs_of_the_benchmark_are_simple_and_have_one_minimum(graph):
    data = benchmark.GRAPHS[graph](3000)
    assert 2000 < len(data["weights"]) < 4000
    tasks = ("mst", "scipy_mst", "igraph_mst", "networkx_mst")
    weights = [benchmark.TASKS[task].prepare(data)() for task in tasks]
    assert weights == pytest.approx(weights[:1] * 4)


def test_trees_that_differ_stop_the_benchmark():
    measured = [
        benchmark.Measurement("random", 10, task, 1.0, 1, weight)
        for task, weight in (("mst", 1.0), ("scipy_mst", 1.1))
    ]
    with pytest.raises(AssertionError, match="differ on random"):
        benchmark._check_agreement(measured)


def test_building_is_measured_beside_a_group_by(run_experiment):
    options = ["--visits", 20_000, "--persons", 1000, "--places", 50, "-o", "b.json"]
    code, out, _ = run_experiment("bench-building", *options)
    assert code == 0
    assert "20,000 visits of 1,000 persons to 50 places" in out
    measured = json.loads(Path("b.json").read_text())
    assert measured["ratios"]["build"] > 0
    assert measured["tasks"].keys() == {"group_by", "build"}
    assert measured["tasks"]["build"]["peak_bytes"] > 0


def test_databases_are_measured_beside_parquet(run_experiment):
    options = ["--visits", 20_000, "--persons", 1000, "--places", 50, "-o", "d.json"]
    code, out, _ = run_experiment("bench-database", *options)
    assert code == 0
    assert "20,000 visits of 1,000 persons to 50 places" in out
    measured = json.loads(Path("d.json").read_text())
    assert measured["ratios"]["parquet"] == 1
    assert {"parquet", "duckdb", "sqlite"} <= measured["tasks"].keys()
    assert measured["tasks"]["duckdb"]["peak_bytes"] > 0


def test_visits_are_what_they_are_called(tmp_path):
    write_visits(tmp_path / "v.parquet", 3000, 40, 20)
    visits = pl.read_parquet(tmp_path / "v.parquet")
    assert visits.shape == (3000, 2)
    assert visits["person"].is_between(0, 39).all()
    assert visits["place"].is_between(0, 19).all()
    per_person = visits.group_by("person").len()["len"]
    assert per_person.max() > 4 * per_person.median()


def test_predictions_are_compared_with_what_is_reached(run_experiment):
    options = ["--example", "karate", "--repetitions", 1, "-o", "p"]
    code, out, _ = run_experiment("prediction", *options)
    assert code == 0
    assert "of 3 on reported graphs" in " ".join(out.split())
    rows = json.loads(Path("p/prediction.json").read_text())["rows"]
    assert [row["epsilon"] for row in rows] == [0.3, 1.0, 10.0]
    assert code == run_experiment("prediction", *options)[0]  # goes on from what is there


def test_misses_are_counted_and_marked():
    rows = [
        {"example": "karate", "epsilon": e, "group": "reported", "low": 0.2, "likely": 0.4,
         "high": 0.6, "reached": [r, 0.5]}
        for e, r in ((0.3, 0.204), (1.0, 0.19), (10.0, -0.3))
    ]  # fmt: skip
    caps = {"2": 0.9, "3": 0.94, "4": 0.5, "5": 0.5, "7": 0.5, "10": 0.5, "15": 0.0}
    rows += [
        {"example": "visits", "epsilon": 1.0, "group": "caps", "chosen": chosen, "caps": caps}
        for chosen in (2, 3)
    ]
    report = PredictionReport(rows, "make prediction")
    assert report.misses == rows[1:3]
    assert report.hopeful == rows[2:3]
    text = " ".join(report.to_markdown().split())
    assert "4 of 6 on reported graphs" in text
    assert "**0.19, 0.50**" in text
    assert "of the best in 1 of 2 rows" in text


def test_trips_are_published_between_districts(run_experiment, monkeypatch):
    monkeypatch.setattr(trips, "WIDTHS", (10,))
    monkeypatch.setattr(trips, "CAPS", ((1, 1), (2, 2)))
    code, out, _ = run_experiment("trips", "--repetitions", 2, "-o", "t")
    assert code == 0
    assert "19 districts of 10" in out
    rows = json.loads(Path("t/trips.json").read_text())["rows"]
    assert [row["kept"] <= 3796 * cap for row, cap in zip(rows, (1, 4))] == [True, True]
    assert all(-1 <= row["least"] <= row["ari"] <= row["most"] <= 1 for row in rows)


def test_a_part_of_the_stress_that_does_not_exist(run_experiment):
    code, _, err = run_experiment("ledger-stress", "stairs")
    assert code == 2
    assert "no part is called stairs; there are shares, race, chargers, releases" in err


@pytest.fixture(scope="module")
def trace():
    return trace_cluster()


class TestCrossings:
    def test_a_run_goes_through_several_packages(self, trace):
        packages = {called.package for _, called in trace.calls}
        assert {"cli", "pipeline", "graph", "privacy", "clustering", "release"} <= packages
        assert "cli/publish.py" in trace.files
        assert ("cli", "pipeline") in {(here, there.package) for here, there in trace.crossings}

    def test_one_run_is_read_in_few_places(self, trace):
        assert len(trace.files) <= 90
        assert len(trace.crossings) <= 120

    def test_what_is_counted(self, trace):
        assert 0 < len(trace.crossings) <= len(trace.pairs)
        assert all(package != called.package for package, called in trace.crossings)
        assert not any(called.is_special or "<lambda>" in called.name for _, called in trace.calls)
        assert trace.to_text().endswith(f"{len(trace.files)} files visited")

    def test_a_call_within_a_package_is_no_crossing(self, trace):
        within = [
            (caller, called)
            for caller, called in trace.calls
            if caller is not None and caller.package == called.package
        ]
        assert within
        assert Trace(tuple(within)).crossings == []
