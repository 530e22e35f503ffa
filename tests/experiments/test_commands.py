from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from experiments import benchmark
from experiments.__main__ import app
from experiments.building import write_visits
from experiments.crossings import Trace, trace_cluster

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["utility", "shift"])
def test_commands_are_there(run_experiment, command):
    code, out, _ = run_experiment(command, "--help")
    assert code == 0
    assert "--repetitions" in out


def test_every_command_is_a_target_of_make():
    lines = (ROOT / "Makefile").read_text().splitlines()
    (targets,) = (line for line in lines if line.startswith("EXPERIMENTS :="))
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert sorted(targets.split()[2:]) == sorted(names)


def test_bench_measures_ratios(run_experiment, monkeypatch):
    two = {name: benchmark.TASKS[name] for name in ("scipy_mst", "mst")}
    monkeypatch.setattr(benchmark, "TASKS", two)  # a process each; the others are below
    options = ["--nodes", 2000, "--edges", 10000, "--repeat", 1, "-o", "b.json"]
    code, out, _ = run_experiment("bench", *options)
    assert code == 0
    assert "scipy = 1" in out
    tasks = json.loads(Path("b.json").read_text())["tasks"]
    assert tasks["scipy_mst"]["time_ratio"] == 1.0
    assert tasks.keys() == two.keys()
    assert tasks["mst"]["peak_bytes"] > 0


def test_bench_noise_measures_ratios(run_experiment):
    options = ["--values", 5000, "--opendp-values", 1000, "--repeat", 1, "--json"]
    code, out, _ = run_experiment("bench-noise", *options)
    assert code == 0
    found = json.loads(out)["nanoseconds"]
    assert found.keys() == {"laplace", "gaussian"}
    assert all(each["ratio"] > 0 for each in found.values())
    code, out, _ = run_experiment("bench-noise", *options[:-1])
    assert code == 0
    assert "| laplace |" in out


def test_every_task_of_the_benchmark_runs(tmp_path):
    assert {"mst", "dbmstclu", "kruskal", "pamst"} <= benchmark.TASKS.keys()
    edges = benchmark.random_edges(2000, 10000)
    for name, array in zip(("sources", "targets", "weights"), edges):
        np.save(tmp_path / f"{name}.npy", array)
    for task in benchmark.TASKS:
        measured = benchmark._measure(task, tmp_path, 2000, 1)
        assert measured["cpu_seconds"] > 0
        assert measured["peak_bytes"] > 0


def test_building_is_measured_beside_a_group_by(run_experiment):
    options = ["--visits", 20_000, "--persons", 1000, "--places", 50, "-o", "b.json"]
    code, out, _ = run_experiment("bench-building", *options)
    assert code == 0
    assert "20,000 visits of 1,000 persons to 50 places" in out
    measured = json.loads(Path("b.json").read_text())
    assert measured["time_ratio"] > 0
    assert measured["tasks"].keys() == {"group_by", "build"}
    assert measured["tasks"]["build"]["peak_bytes"] > 0


def test_visits_are_what_they_are_called(tmp_path):
    write_visits(tmp_path / "v.parquet", 3000, 40, 20)
    visits = pl.read_parquet(tmp_path / "v.parquet")
    assert visits.shape == (3000, 2)
    assert visits["person"].is_between(0, 39).all()
    assert visits["place"].is_between(0, 19).all()
    per_person = visits.group_by("person").len()["len"]
    assert per_person.max() > 4 * per_person.median()


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
        assert "cli/cluster.py" in trace.files
        assert ("cli", "pipeline") in {(here, there.package) for here, there in trace.crossings}

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
