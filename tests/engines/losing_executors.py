"""Builds and publishes on a cluster that loses an executor; a process of its own runs this.

``python -m tests.engines.losing_executors MASTER FOLDER``: writes what came of it to FOLDER.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import polars as pl
from pyspark import TaskContext
from pyspark.sql import SparkSession

from ptclust.building import counts
from ptclust.engines import edges
from tests.engines.test_build import BUILDS, KEY, hostile
from tests.engines.test_edges import BOUNDS, COLUMNS, drawn, table_of
from tests.engines.test_edges import KEY as NOISE_KEY


def losing(function, folder: str, *, fresh: bool = False):
    """Return the function, which notes its results and kills its first executor with one done."""

    def run(*given):
        if fresh:  # what must never be: noise that a task draws for itself
            *others, _, rows = given
            given = (
                *others,
                type("Fresh", (), {"key": staticmethod(lambda: os.urandom(32))}),
                rows,
            )
        found = function(*given)
        if TaskContext.get() is None:  # the driver asks for the columns of an empty table
            return found
        Path(folder).mkdir(exist_ok=True)
        rows = found.lazy().collect()
        rows.write_parquet(Path(folder) / f"{os.urandom(8).hex()}.parquet")
        if not (marker := Path(folder) / "killed").exists():
            marker.touch()
            # The executor is the parent of the daemon that forked this worker.
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
            executor = int(daemon[1])
            if "CoarseGrainedExecutorBackend" not in Path(f"/proc/{executor}/cmdline").read_text():
                raise RuntimeError("this is no executor, and must live")
            os.kill(executor, signal.SIGKILL)
            time.sleep(60)
        return found

    return run


def main(master: str, folder: str) -> None:
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()

    def frame_of(table: pl.DataFrame):
        return spark.createDataFrame(table.to_arrow()).repartition(4)

    # An executor is lost before rows of persons are exchanged, or after; with its exchanged rows.
    found, table = {}, hostile(3, "int")
    for name, build, function in (
        ("before", "flows", "_pair_of_each"),
        ("after", "visits", "_in_common"),
    ):
        setattr(counts, function, losing(getattr(counts, function), f"{folder}/{name}"))
        make, options = BUILDS[build]
        found[name] = make(frame_of(table), **options, _key=KEY).weights.tolist()
    table, noisy = table_of(4, "numbers"), edges._noisy
    here = edges.SparkEdges(frame_of(table), COLUMNS, "distance", "the table")
    for name, fresh in (("once", False), ("fresh", True)):
        edges._noisy = losing(noisy, f"{folder}/{name}", fresh=fresh)
        place = f"{folder}/{name}-noisy"
        what = drawn("laplace", here.n_edges)
        tree = here.publish(*what, BOUNDS, place, key=NOISE_KEY).tree
        found[name] = tree.weights.tolist()
    Path(folder, "found.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
