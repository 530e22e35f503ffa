"""Spark builds the very graph that one machine builds, of any table, in any number of parts."""

from __future__ import annotations

import math
import random
import re
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ptclust import graph_from_flows, graph_from_profiles, graph_from_visits
from ptclust.building._contributions import Things
from ptclust.engines import spark as engine
from ptclust.errors import InputError, MissingDependencyError, UsageError

KEY = (1, 2, 3)
NODES = [*"abcdefgh", "an\u00efs", ""]
MOST_OF_WORKER = 700_000_000  # bytes; a task that held all records of a person would take more
ODD = ["not public", None, "A"]


def hostile(seed: int, person: str) -> pl.DataFrame:
    """Return records with what makes trouble: one who is everywhere, doubles, gaps, strangers."""
    random_ = random.Random(seed)
    crowd = [random_.randrange(60) for _ in range(1500)]
    everywhere = [7] * random_.choice([0, 3000])
    people: list = [*crowd, *everywhere, *[None] * 50]
    random_.shuffle(people)
    if person == "text":
        people = [None if one is None else f"p\u00fc{one}" for one in people]
    if person == "float":
        people = [math.nan if one is None else -0.0 if one == 0 else float(one) for one in people]
        people += [0.0] * 20
    half = random_.choice([0.0, 0.5])  # of all visits are to one place

    def place() -> str | None:
        if random_.random() < half:
            return NODES[0]
        return random_.choice([*NODES, *NODES, *ODD])

    rows = [(one, place(), place()) for one in people]
    rows += random_.choices(rows, k=300)
    types = {"text": pl.String, "float": pl.Float64, "small": pl.Int16, "int": pl.Int64}
    schema = {"person": types[person], "origin": pl.String, "destination": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


FLOWS = {"nodes": NODES, "person": "person", "max_pairs": 3, "max_per_pair": 2}
BUILDS = {
    "records": (graph_from_flows, {"nodes": NODES}),
    "flows": (graph_from_flows, FLOWS),
    "roads": (graph_from_flows, {**FLOWS, "nodes": None, "edges": [("a", "b"), ("c", "a")]}),
    "visits": (graph_from_visits, {"item": "origin", "items": NODES, "max_items": 4}),
}


@pytest.mark.parametrize(
    ("build", "person", "n_parts"),
    [
        ("records", "int", 5),
        ("flows", "text", 1),
        ("flows", "int", 7),
        ("roads", "float", 4),
        ("visits", "small", 9),
        ("visits", "text", 2),
        ("visits", "float", 3),
    ],
)
def test_the_graph_is_that_of_one_machine(spark, build, person, n_parts):
    make, options = BUILDS[build]
    table = hostile(n_parts, person)
    local = make(table.sample(fraction=1, shuffle=True, seed=1), **options, _key=KEY)
    there = spark.createDataFrame(table.to_arrow()).repartition(n_parts)
    distributed = make(there, **options, _key=KEY)
    assert distributed.weights.tolist() == local.weights.tolist()
    assert local.weights.sum() > 100
    assert distributed.names.tolist() == local.names.tolist()
    assert distributed.sensitivity == local.sensitivity
    assert distributed.provenance == local.provenance


@pytest.mark.parametrize("build", BUILDS)
def test_small_chunks_drop_nothing_that_counts(monkeypatch, build):
    """What a task does to its rows, cut into chunks in all ways; without Spark."""
    make, options = BUILDS[build]
    for seed in range(10):
        random_ = random.Random(seed)
        table = hostile(seed, random_.choice(["int", "text", "float", "small"]))
        local = make(table, **options, _key=KEY).weights.tolist()
        monkeypatch.setattr(engine, "_CHUNK", random_.choice([1, 50, 700]))
        monkeypatch.setattr(engine, "is_frame", lambda table: isinstance(table, Parts))
        parts = make(Parts(table, random_.choice([1, 3, 8])), **options, _key=KEY)
        monkeypatch.undo()
        assert parts.weights.tolist() == local


@pytest.mark.parametrize("build", ["flows", "roads", "visits"])
def test_a_task_holds_few_rows_however_many_records_a_person_has(monkeypatch, build):
    make, options = BUILDS[build]
    n_chunk, n_persons, held = 100, 20, []
    random_ = random.Random(1)
    rows = [(7, *random_.choices(NODES, k=2)) for _ in range(20_000)]
    rows += [(one, *random_.choices(NODES, k=2)) for one in range(n_persons) for _ in range(30)]
    table = pl.DataFrame(rows, ["person", "origin", "destination"], orient="row")
    local = make(table, **options, _key=KEY).weights.tolist()
    unpacked, merged = engine._unpacked, Things.merged

    def noted(pieces):
        for piece in pieces:
            rows = unpacked([piece])
            if "person" in rows.columns:  # of a chunk, no more than are kept of all
                assert rows["person"].value_counts()["count"].max() <= 4
        return unpacked(pieces)

    def counted(self, rows):
        held.append(rows.select(pl.len()).collect().item())
        return merged(self, rows)

    monkeypatch.setattr(engine, "_unpacked", noted)
    monkeypatch.setattr(Things, "merged", counted)
    monkeypatch.setattr(engine, "_CHUNK", n_chunk)
    monkeypatch.setattr(engine, "is_frame", lambda table: isinstance(table, Parts))
    assert make(Parts(table, 3), **options, _key=KEY).weights.tolist() == local
    assert 0 < max(held) <= 2 * n_chunk + 2 * 4 * n_persons


def skewed(n: int) -> pl.DataFrame:
    """Return ``n`` records of one person, a tenth as many of others, half of all at one place."""
    random_ = np.random.default_rng(n)
    others = random_.integers(1, 500, n // 10)
    number = random_.permutation(np.concatenate([np.zeros(n, dtype=np.int64), others]))
    nodes = pl.Series(NODES)
    place = lambda: np.maximum(0, random_.integers(-len(NODES) + 1, len(NODES), len(number)))  # noqa: E731
    person = pl.lit("a person with a long name, number ") + pl.col("person").cast(pl.String)
    ends = {name: nodes[place()] for name in ("origin", "destination")}
    return pl.DataFrame({"person": number, **ends}).with_columns(person)


@pytest.mark.parametrize("n", [50_000, pytest.param(10_000_000, marks=pytest.mark.long)])
def test_one_person_and_one_place_may_outweigh_all_others(spark, tmp_path, n):
    table, path = skewed(n), tmp_path / "records.parquet"
    half = (table["origin"] == NODES[0]).mean()
    assert half > 0.5
    table.write_parquet(path, row_group_size=1 << 17)
    del table
    for build in ("visits", "flows"):
        make, options = BUILDS[build]
        distributed = make(spark.read.parquet(str(path)), **options, _key=KEY).weights
        assert distributed.tolist() == make(path, **options, _key=KEY).weights.tolist()
        assert np.count_nonzero(distributed) > 20
    if sys.platform == "linux":
        assert 0 < max(peaks_of_workers(spark)) < MOST_OF_WORKER


def peaks_of_workers(spark) -> list[int]:
    """Return the peak memory, in bytes, of every Python worker of a session on this machine."""
    peaks = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # it may have ended
            command = (status.parent / "cmdline").read_text()
            of_us = f"SPARK_LOCAL_DIRS={spark.local_dir}" in (status.parent / "environ").read_text()
            if "pyspark.daemon" in command and of_us:
                peak = re.findall(r"VmHWM:\s+(\d+)", status.read_text())
                peaks += [1024 * int(kilobytes) for kilobytes in peak]
    return peaks


def test_pairs_that_nobody_is_on_are_there_with_zero(spark):
    """Without a join of any kind: `Parts`, on which all builds run above, has none."""
    items = [f"{i:03}" for i in range(200)]
    table = pl.DataFrame({"person": [1, 1, 2, 2, 3], "item": ["000", "199", "199", "000", "100"]})
    graph = graph_from_visits(spark.createDataFrame(table.to_arrow()), items=items, max_items=3)
    assert graph.n_edges == 200 * 199 // 2
    assert graph.weights.sum() == 2 == graph.weights[198]  # 000 and 199
    nobody = spark.createDataFrame(table.to_arrow()).where("person > 3")
    assert graph_from_visits(nobody, items=items, max_items=3).weights.tolist() == [0] * 19900
    flows = nobody.selectExpr("person", "item AS origin", "item AS destination")
    for options in ({}, {"person": "person", "max_pairs": 2, "max_per_pair": 1}):
        assert not graph_from_flows(flows, nodes=items, **options).weights.any()


CLOSED = {
    "spark.ui.enabled": "false",
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
}


class Parts:
    """As much of a Spark DataFrame as builders use, on one thread."""

    sparkSession = type("", (), {"conf": {"spark.sql.shuffle.partitions": "3", **CLOSED}})  # noqa: N815

    def __init__(self, table, n_parts, parts=None):
        self.parts = parts or [table.gather_every(n_parts, i) for i in range(n_parts)]
        self.columns = self.parts[0].columns

    def selectExpr(self, *columns):  # noqa: N802
        pairs = [column.replace("`", "").split(" AS ") for column in columns]
        named = [pl.col(name).alias(role) for name, role in pairs]
        return Parts(None, 0, [part.select(named) for part in self.parts])

    def limit(self, n):
        return Parts(None, 0, [self.parts[0].head(n)])

    def toArrow(self):  # noqa: N802
        return pl.concat(self.parts).to_arrow()

    def mapInArrow(self, function, schema):  # noqa: N802
        batches = [part.to_arrow().to_batches(max_chunksize=20) for part in self.parts]
        found = [[pl.from_arrow(batch) for batch in function(each)] for each in batches]
        return Parts(None, 0, [pl.concat(each) for each in found if each])

    def repartition(self, column):
        every = pl.concat(self.parts)
        return Parts(None, 0, [every.filter(pl.col(column) % 2 == i) for i in range(2)])


def test_caps_and_pairs_are_chosen_by_the_same_looks(spark):
    table = hostile(3, "int")
    options = {**FLOWS, "max_pairs": "auto", "max_per_pair": "auto", "edges": "private"}
    paid = {"caps_epsilon": 1e6, "edges_epsilon": 1e6}  # nearly without noise: both the same
    local = graph_from_flows(table, **options, **paid, _key=KEY)
    there = spark.createDataFrame(table.to_arrow()).repartition(4)
    distributed = graph_from_flows(there, **options, **paid, _key=KEY)
    assert distributed.unit == local.unit
    assert distributed.weights.tolist() == local.weights.tolist()
    assert len(distributed.provenance.spent) == 3


def test_a_list_of_pairs_may_be_a_frame_of_spark(spark):
    table = hostile(1, "int")
    roads = pl.DataFrame({"source": ["a", "c"], "target": ["b", "a"]})
    local = graph_from_flows(table, edges=roads)
    there = spark.createDataFrame(table.to_arrow())
    distributed = graph_from_flows(there, edges=spark.createDataFrame(roads.to_arrow()))
    assert distributed.weights.tolist() == local.weights.tolist()
    with pytest.raises(UsageError, match="edges= is the table of the records"):
        graph_from_flows(there, edges=there)


def test_the_command_reads_a_folder_of_parquet(spark, run, tmp_path):
    table = hostile(2, "int").drop_nulls("person")
    table.write_parquet(tmp_path / "all.parquet")
    there = tmp_path / "events"
    spark.createDataFrame(table.to_arrow()).repartition(3).write.parquet(str(there))
    (tmp_path / "places.txt").write_text("\n".join("abcdefgh"))
    command = ["build", "visits", "--item", "origin", "--items", "places.txt", "--max-items", 8]
    # Nobody has more items than there are: nothing is left to the key.
    assert run(*command, "all.parquet", "-o", "one.parquet")[0] == 0
    code, _, err = run(*command, there, "-o", "two.parquet", "--engine", "spark")
    assert code == 0, err
    one, two = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("one", "two"))
    assert one.equals(two)
    assert run(*command, there, "-o", "three.parquet", "--master", "local[2]")[0] == 2
    code, _, err = run(*command, "missing.parquet", "-o", "four.parquet", "--engine", "spark")
    assert code == 3
    assert "cannot be read by Spark" in err


def test_errors_are_ours_and_quote_no_value(spark):
    secret = 40_417_262
    frame = spark.range(secret, secret + 3).withColumnRenamed("id", "person")
    broken = frame.selectExpr("person", "string(raise_error(string(person))) AS item")
    with pytest.raises(InputError, match="did not come to an end") as caught:
        graph_from_visits(broken, items=NODES, max_items=2)
    assert str(secret) not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    with pytest.raises(InputError, match="no column 'whose'"):
        graph_from_visits(frame, person="whose", item="person", items=NODES, max_items=2)
    with pytest.raises(InputError, match="cast"):
        graph_from_visits(
            frame.selectExpr("timestamp_seconds(person) AS person", "'a' AS item"),
            items=NODES,
            max_items=2,
        )


def test_profiles_are_refused_in_words(spark, run, tmp_path):
    with pytest.raises(UsageError, match="not built by Spark"):
        graph_from_profiles(spark.range(3), nodes=["a", "b"], low=0, high=1, n_persons=5)
    pl.DataFrame({"a": [0.5], "b": [1.0]}).write_parquet(tmp_path / "scores.parquet")
    (tmp_path / "nodes.txt").write_text("a\nb")
    command = ["build", "profiles", "scores.parquet", "--nodes", "nodes.txt", "--low", 0]
    command += ["--high", 1, "--n-persons", 5, "-o", "graph.parquet"]
    code, _, err = run(*command, "--engine", "spark")
    assert code == 2
    assert "leave --engine spark out" in err
    assert run(*command)[0] == 0


def test_a_worker_with_another_hash_is_refused(monkeypatch):
    frame = Parts(pl.DataFrame({"a": [1]}), 1)
    frame.mapInArrow = lambda function, schema: function  # type: ignore[method-assign]
    task = engine._mapped(frame, lambda batches: iter(()), "a bigint")
    assert list(task([])) == []
    *others, last = engine.fingerprint()
    monkeypatch.setattr(engine, "fingerprint", lambda: (*others, last + 1))
    with pytest.raises(RuntimeError, match="a task of ptclust failed: ptclust or polars differ"):
        list(task([]))


def test_a_worker_takes_one_core(spark):
    def threads(batches):
        for batch in batches:
            yield pl.DataFrame({"n": [pl.thread_pool_size()] * batch.num_rows})

    frame = spark.range(0, 4, 1, 2)
    assert {row["n"] for row in engine._mapped(frame, threads, "n bigint").collect()} == {1}


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(MissingDependencyError, match="Java 17"):
        engine.session()
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "pyspark.sql", None)
        with pytest.raises(MissingDependencyError, match=r"ptclust\[spark\]"):
            engine.session()


def test_addresses_of_stores_survive_pathlib():
    assert engine.address(Path("s3://bucket/a b.parquet")) == "s3://bucket/a b.parquet"
    assert engine.address("hdfs://host:9000/x") == "hdfs://host:9000/x"
    assert engine.address(Path("/data/x.parquet")) == "/data/x.parquet"
