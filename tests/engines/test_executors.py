"""A cluster on this machine, from the package of pip, that loses an executor in the middle."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ptclust.mechanisms.keyed import add_keyed_noise, edge_numbers
from ptclust.trees.mst import minimum_spanning_edges
from tests.engines.test_build import BUILDS, KEY, hostile
from tests.engines.test_edges import BOUNDS, noise_of, table_of
from tests.engines.test_edges import KEY as NOISE_KEY

pytestmark = pytest.mark.long

PYTHONPATH = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: make spark")
    if shutil.which("java") is None:
        pytest.skip("there is no Java: make spark installs it")
    home, logs = Path(pyspark.__file__).parent, tmp_path_factory.mktemp("cluster")
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(logs / "work"),
        "PYTHONPATH": PYTHONPATH,
    }
    running = []

    def start(name, *arguments):
        with (logs / name).open("wb") as log:
            command = [str(home / "bin" / "spark-class"), *arguments]
            running.append(subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            ))  # fmt: skip

    def said(name, pattern):
        for _ in range(1200):
            if found := re.search(pattern, (logs / name).read_text()):
                return found[1]
            time.sleep(0.1)
        pytest.fail(f"{name} did not start: {(logs / name).read_text()[-2000:]}")

    deploy = "org.apache.spark.deploy"
    try:
        here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        start("master", f"{deploy}.master.Master", *here)
        url = said("master", r"Starting Spark master at (spark://\S+)")
        for i in range(2):
            start(f"worker{i}", f"{deploy}.worker.Worker", *here, "--cores", "1", "--memory", "1g",
                  url)  # fmt: skip
            said(f"worker{i}", r"(Successfully registered)")
        yield url
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def outcome(master, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lost")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": PYTHONPATH}
    command = [sys.executable, "-m", "tests.engines.losing_executors", master, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads((folder / "found.json").read_text())


def noises(folder: Path) -> pl.DataFrame:
    """Return how often the noise of every edge was drawn, and how many different ones there are."""
    assert (folder / "killed").exists()
    drawn = pl.read_parquet(folder / "*.parquet")
    return drawn.group_by("edge").agg(n_drawn=pl.len(), n_values=pl.col("weight").n_unique())


@pytest.mark.parametrize(("when", "build"), [("before", "flows"), ("after", "visits")])
def test_a_build_that_loses_an_executor_gives_the_same_graph(outcome, when, build):
    """Before or after the rows of every person are exchanged."""
    folder, found = outcome
    assert (folder / when / "killed").exists()
    done = [pl.read_parquet(path) for path in (folder / when).glob("*.parquet")]
    done = [rows.sort(rows.columns) for rows in done if len(rows)]
    assert any(one.equals(other) for one, other in combinations(done, 2))  # a task that ran again
    make, options = BUILDS[build]
    assert found[when] == make(hostile(3, "int"), **options, _key=KEY).weights.tolist()


def test_every_edge_has_one_noise_although_it_is_drawn_again(outcome):
    folder, found = outcome
    drawn = noises(folder / "once")
    assert drawn["n_drawn"].max() > 1
    assert drawn["n_values"].to_list() == [1] * 4000
    table = table_of(4, "numbers")
    low, high = (table.select(f("source", "target")).to_series().to_numpy()
                 for f in (pl.min_horizontal, pl.max_horizontal))  # fmt: skip
    order = np.lexsort((high, low))
    low, high, weights = low[order], high[order], table["weight"].to_numpy()[order]
    noise = noise_of("laplace", 4000)
    noisy = add_keyed_noise(
        np.clip(weights, *BOUNDS), edge_numbers(low, high, 300), noise, NOISE_KEY
    )
    tree = minimum_spanning_edges(low.astype(np.int32), high.astype(np.int32), noisy, 300)
    assert found["once"] == noisy[tree].tolist()


def test_noise_that_tasks_draw_for_themselves_is_caught(outcome):
    folder, _ = outcome
    drawn = noises(folder / "fresh")
    assert drawn["n_values"].max() > 1
