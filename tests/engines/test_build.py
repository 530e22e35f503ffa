"""Spark builds the very graph that one machine builds, of any table, in any number of parts."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest

from ptclust import graph_from_flows, graph_from_profiles, graph_from_visits
from ptclust.engines import spark as engine
from ptclust.errors import InputError, MissingDependencyError, UsageError

KEY = (1, 2, 3)
NODES = [*"abcdefgh", "an\u00efs", ""]
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


def test_small_chunks_drop_nothing_that_counts(monkeypatch):
    """What a task does to its rows, cut into chunks in all ways; without Spark."""
    random_ = random.Random(5)
    for seed in range(20):
        table = hostile(seed, "int")
        local = graph_from_visits(
            table, item="origin", items=NODES, max_items=3, _key=KEY
        ).weights.tolist()
        monkeypatch.setattr(engine, "_CHUNK", random_.choice([1, 50, 700]))
        monkeypatch.setattr(engine, "is_frame", lambda table: isinstance(table, Parts))
        parts = graph_from_visits(
            Parts(table, random_.choice([1, 3, 8])),
            item="origin",
            items=NODES,
            max_items=3,
            _key=KEY,
        ).weights.tolist()
        monkeypatch.undo()
        assert parts == local


class Parts:
    """As much of a Spark DataFrame as builders use, on one thread."""

    sparkSession = type("", (), {"conf": {"spark.sql.shuffle.partitions": "3"}})  # noqa: N815

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

    def toDF(self, *names):  # noqa: N802
        return Parts(None, 0, [part.select(names) for part in self.parts])

    def groupBy(self, *by):  # noqa: N802
        every = pl.concat(self.parts)
        summed = lambda *_: Parts(None, 0, [every.group_by(*by).sum() if by else every.sum()])  # noqa: E731
        return type("", (), {"sum": staticmethod(summed)})


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
    with pytest.raises(UsageError, match="not built by Spark"):
        graph_from_profiles(frame, nodes=["a", "b"], low=0, high=1, n_persons=5)


def test_a_worker_with_another_hash_is_refused():
    here = engine.Versions.here()
    here.check()
    other = engine.Versions(here.ptclust, here.polars, (*here.hashes[:-1], 0))
    with pytest.raises(RuntimeError, match="differ"):
        other.check()
    frame = Parts(pl.DataFrame({"a": [1]}), 1)
    frame.mapInArrow = lambda function, schema: function  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.Versions, "here", classmethod(lambda cls: other))
        task = engine._mapped(frame, lambda batches: iter(()), "a bigint")
    with pytest.raises(RuntimeError, match="a task of ptclust failed: RuntimeError"):
        list(task([]))


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(MissingDependencyError, match="Java 17"):
        engine.session()
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "pyspark.sql", None)
        with pytest.raises(MissingDependencyError, match=r"ptclust\[spark\]"):
            engine.session()


def test_addresses_of_stores_survive_pathlib():
    from pathlib import Path

    assert engine.address(Path("s3://bucket/a b.parquet")) == "s3://bucket/a b.parquet"
    assert engine.address("hdfs://host:9000/x") == "hdfs://host:9000/x"
    assert engine.address(Path("/data/x.parquet")) == "/data/x.parquet"
