"""One small Spark session for all tests here; they are skipped where there is no Java."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from ptclust.engines import spark as engine


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: make spark")
    if shutil.which("java") is None:
        pytest.skip("there is no Java: make spark installs it")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "true",  # whose pages a test reads
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.default.parallelism": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(local),
        "spark.sql.warehouse.dir": str(local / "warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{local}",
        "spark.eventLog.compress": "false",
    }
    builder = pyspark.SparkSession.builder.master("local[2]").appName("ptclust-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.local_dir = local
    engine._checked.add(session.conf.get("spark.app.id"))  # it is open, and a test says so
    yield session
    session.stop()
