"""Who else may reach a session of Spark that holds private weights."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import polars as pl
import pytest

from ptclust import graph_from_flows, graph_from_visits
from ptclust.engines import spark as engine
from ptclust.errors import PrivacyWarning
from tests.building.test_ids import NODES, WAYS
from tests.engines.test_build import CLOSED

HERE = {"spark.master": "local[2]", "spark.driver.host": "127.0.0.1"}

#: Starts a session, exchanges rows of a person whose name can be found, and tells what there is.
PROGRAM = """
import json, sys
from pathlib import Path
import polars as pl
import ptclust
from ptclust.engines import spark as engine
running = engine.session("local[2]")
names = ["spark.ui.enabled", "spark.authenticate", "spark.io.encryption.enabled"]
names += ["spark.driver.host", "spark.driver.bindAddress", "spark.local.dir"]
settings = {name: running.conf.get(name, None) for name in names}
table = pl.DataFrame({"person": ["PERSON"] * 500, "origin": "a", "destination": "b"})
frame = running.createDataFrame(table.to_arrow()).repartition(3)
bounds = {"person": "person", "max_pairs": 1, "max_per_pair": 7}
graph = ptclust.graph_from_flows(frame, nodes=["a", "b"], **bounds)
folder = Path(settings["spark.local.dir"])
files = [path.read_bytes() for path in folder.rglob("shuffle_*.data")]
print(json.dumps({
    "settings": settings,
    "weights": graph.weights.tolist(),
    "mode": folder.stat().st_mode,
    "n_files": len([text for text in files if text]),
    "clear": any(b"PERSON" in text for text in files),
    "addresses": engine.SparkTable(frame, {}).driver_addresses(),
    "ui": running.sparkContext.uiWebUrl,
}))
"""


def test_a_session_that_ptclust_starts_is_closed(tmp_path):
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed: make spark")
    if shutil.which("java") is None:
        pytest.skip("there is no Java: make spark installs it")
    command = [sys.executable, "-W", "error::ptclust.errors.PrivacyWarning", "-c", PROGRAM]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    folder = found["settings"].pop("spark.local.dir")
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    assert found["settings"] == {**CLOSED, **loopback}
    assert found["weights"] == [7]
    assert stat.S_IMODE(found["mode"]) == 0o700
    assert found["n_files"] > 0
    assert not found["clear"]
    assert found["addresses"] == ["127.0.0.1", "127.0.0.1"]
    assert found["ui"] is None
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"spark.ui.enabled": "true"}, "its web UI answers"),
        ({"spark.authenticate": "false"}, "can join in"),
        ({"spark.io.encryption.enabled": "false"}, "are on its disks unencrypted"),
        ({"spark.driver.host": "10.0.0.7"}, "listens on an outward address"),
        ({"spark.driver.bindAddress": "0.0.0.0"}, "listens on an outward address"),
    ],
)
def test_an_open_session_of_the_user_is_warned_of_once(setting, words, monkeypatch):
    def session(conf):
        return type("Session", (), {"conf": conf})

    monkeypatch.setattr(engine, "_checked", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.warn_of_settings(session({**CLOSED, **HERE, "spark.app.id": "closed"}))
        cluster = {"spark.master": "spark://there:7077", "spark.driver.host": "10.0.0.7"}
        engine.warn_of_settings(session({**CLOSED, **cluster, "spark.app.id": "cluster"}))
    running = session({**CLOSED, **HERE, **setting, "spark.app.id": "open"})
    with pytest.warns(PrivacyWarning, match=words):
        engine.warn_of_settings(running)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.warn_of_settings(running)


def test_a_frame_of_an_open_session_is_warned_of(spark, monkeypatch):
    monkeypatch.setattr(engine, "_checked", set())
    frame = spark.createDataFrame(pl.DataFrame({"origin": ["a"], "destination": ["b"]}).to_arrow())
    with pytest.warns(PrivacyWarning, match="its web UI answers.*can join in.*are on its disks"):
        assert graph_from_flows(frame, nodes=["a", "b"]).weights.tolist() == [1]


def test_the_key_of_a_session_on_this_machine_is_given_out_here_alone(spark, monkeypatch):
    table = engine.SparkTable(spark.range(1), {"id": "id"})
    outward = {"spark.master": "local[2]", "spark.driver.host": "10.0.0.7"}
    monkeypatch.setattr(engine.SparkTable, "_session", type("Session", (), {"conf": outward}))
    assert table.driver_addresses() == ("127.0.0.1", "127.0.0.1")


def test_all_ways_to_write_a_name_are_one(spark):
    columns = {"person": WAYS, "origin": WAYS, "destination": ["b"] * len(WAYS)}
    frame = spark.createDataFrame(pl.DataFrame(columns).to_arrow()).repartition(4)
    bounds = {"person": "person", "max_pairs": 1, "max_per_pair": 2}
    assert graph_from_flows(frame, nodes=["b", "é7"], **bounds).weights.tolist() == [2]
    assert graph_from_flows(frame, nodes=["b", "é7"]).weights.tolist() == [len(WAYS)]
    items = [NODES[i % 3] for i in range(len(WAYS))]
    visits = pl.DataFrame({"person": WAYS, "item": items})
    frame = spark.createDataFrame(visits.to_arrow()).repartition(4)
    assert graph_from_visits(frame, items=NODES, max_items=3).weights.tolist() == [1, 1, 1]
