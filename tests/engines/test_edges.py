"""Edges that stay in Spark: the noise and the tree that one machine draws with the same key."""

from __future__ import annotations

import base64
import json
import pickle
import socket
import sys
import urllib.request
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ptclust import (
    Graph,
    Ledger,
    PTClust,
    Release,
    Sensitivity,
    graph_from_flows,
    plan,
    private_spanning_tree,
    read_graph,
    spark_edges,
)
from ptclust.engines import edges as engine
from ptclust.engines import key_service
from ptclust.engines.edges import SparkEdges
from ptclust.engines.key_service import Ticket, serve_key
from ptclust.errors import GraphError, UsageError, WeightError
from ptclust.graph import Topology
from ptclust.mechanisms import MECHANISMS, Calibration, Mechanism
from ptclust.mechanisms.exponential import TreeCalibration
from ptclust.mechanisms.keyed import (
    Clocks,
    Pruning,
    add_keyed_noise,
    edge_numbers,
    kruskal_edges,
    pamst_edges,
)
from ptclust.privacy import Budget
from ptclust.privacy.noise import cube_noise, gaussian_noise, laplace_noise
from ptclust.trees.mst import minimum_spanning_edges

KEY = bytes(range(7, 39))
BOUNDS = (-50.0, 50.0)
COLUMNS = {"source": "source", "target": "target", "weight": "weight"}


def table_of(seed: int, names: str, n_nodes: int = 300, n_edges: int = 4000) -> pl.DataFrame:
    """Return an edge table sorted by its private weights, ends in any order, many ties."""
    random = np.random.default_rng(seed)
    keys = random.choice(n_nodes * (n_nodes - 1) // 2, n_edges, replace=False)
    low, high = (ends[keys] for ends in np.triu_indices(n_nodes, 1))
    swapped = random.random(n_edges) < 0.5
    a, b = np.where(swapped, high, low), np.where(swapped, low, high)
    weights = np.round(random.normal(size=n_edges) * 30)
    if names == "texts":
        a, b = (np.array([f"\u00f6 {i * 7919 % 1000}" for i in ends]) for ends in (a, b))
    if names == "gaps":
        a, b = a * 3 - 70, b * 3 - 70
    return pl.DataFrame({"source": a, "target": b, "weight": weights}).sort("weight")


def noise_of(distribution: str, n_edges: int):
    return {
        "laplace": lambda: laplace_noise(Sensitivity(l1=1), n_edges, 1),
        "gaussian": lambda: gaussian_noise(Sensitivity(l2=1), n_edges, 0.5),
        "cube": lambda: cube_noise(Sensitivity(linf=0.001), n_edges, 1),
    }[distribution]()


def drawn(distribution: str, n_edges: int) -> tuple[Mechanism, Calibration]:
    """Return a mechanism that puts noise on all weights, and its calibration."""
    noise = noise_of(distribution, n_edges)
    return MECHANISMS[distribution], Calibration(distribution, None, noise, Budget.pure(1), None)


@pytest.mark.parametrize(
    ("distribution", "names", "n_parts", "kind"),
    [
        ("laplace", "numbers", 1, "similarity"),
        ("gaussian", "texts", 5, "distance"),
        ("cube", "gaps", 6, "similarity"),
    ],
)
def test_noise_and_tree_are_those_of_one_machine(
    spark, tmp_path, distribution, names, n_parts, kind
):
    table = table_of(n_parts, names)
    table.write_parquet(tmp_path / "edges.parquet")
    graph = read_graph(tmp_path / "edges.parquet", kind=kind)
    noise = noise_of(distribution, graph.n_edges)
    numbers = edge_numbers(graph.sources, graph.targets, graph.n_nodes)
    noisy = add_keyed_noise(np.clip(graph.weights, *BOUNDS), numbers, noise, KEY)
    distances = noisy if kind == "distance" else -noisy
    tree = minimum_spanning_edges(graph.sources, graph.targets, distances, graph.n_nodes)

    frame = spark.createDataFrame(table.to_arrow()).repartition(n_parts)
    edges = SparkEdges(frame, COLUMNS, kind, "the table")
    assert edges.names.tolist() == graph.names.tolist()
    counts = edges.topology
    assert (counts.n_edges, counts.n_components) == (graph.n_edges, graph.topology.n_components)
    place, what = tmp_path / "noisy", drawn(distribution, graph.n_edges)
    alone = edges.publish(*what, BOUNDS, str(place), key=KEY)
    assert alone.tree.sources.tolist() == graph.sources[tree].tolist()
    assert alone.tree.targets.tolist() == graph.targets[tree].tolist()
    assert alone.tree.weights.tolist() == noisy[tree].tolist()
    assert alone.tree.names.tolist() == graph.names.tolist()
    written = pl.read_parquet(place / "*.parquet").sort("low", "high")
    assert written["weight"].to_list() == noisy.tolist()
    # With nothing written it is the same, in one pass over the table.
    whole = edges.publish(*what, BOUNDS, whole=True, key=KEY)
    assert whole.noisy_weights.tolist() == noisy.tolist()
    assert whole.tree.edge_ids.tolist() == tree.tolist()
    if n_parts == 1:
        at_once = edges.draw_tree(*what, BOUNDS, key=KEY)
        assert at_once.sources.tolist() == graph.sources[tree].tolist()
        return
    # Files are in the order of edges, whatever the order of rows was.
    again = SparkEdges(frame.orderBy("target"), COLUMNS, kind, "the table")
    again.publish(*what, BOUNDS, f"{place}3", key=KEY)
    files = [sorted(p.glob("*.parquet")) for p in (place, tmp_path / "noisy3")]
    rows = [[pl.read_parquet(file).rows() for file in each] for each in files]
    assert rows[0] == rows[1]


def tree_calibration(mechanism: str, graph, kind: str, exponent: float) -> Calibration:
    tree = TreeCalibration(exponent, graph.topology.n_tree_edges, Budget.pure(1))
    noise = laplace_noise(Sensitivity(l1=1), graph.topology.n_tree_edges, 1)
    return Calibration(mechanism, tree, noise, Budget.pure(1), Budget.pure(1))


def local_tree(mechanism: str, graph, calibration: Calibration):
    """Return the edges and noisy weights that one machine draws under KEY."""
    draw = {"kruskal": kruskal_edges, "pamst": pamst_edges}[mechanism]
    numbers, weights = edge_numbers(graph.sources, graph.targets, graph.n_nodes), graph.weights
    clipped = np.clip(weights, *BOUNDS)
    distances = clipped if graph.kind == "distance" else -clipped
    clocks = Clocks.of(distances, numbers, calibration.tree.exponent, KEY)
    tree = draw(graph.sources, graph.targets, clocks, graph.n_nodes)
    return tree, add_keyed_noise(clipped[tree], numbers[tree], calibration.weights, KEY)


@pytest.mark.parametrize(
    ("mechanism", "names", "n_parts", "kind", "exponent", "n_edges"),
    [
        ("kruskal", "texts", 5, "similarity", 0.05, 4000),
        ("kruskal", "numbers", 1, "distance", 3.0, 320),
        ("pamst", "gaps", 4, "distance", 0.02, 4000),
        ("pamst", "numbers", 6, "similarity", 9.0, 4000),
    ],
)
def test_private_trees_are_those_of_one_machine(
    spark, tmp_path, monkeypatch, mechanism, names, n_parts, kind, exponent, n_edges
):
    """Also of graphs in several pieces, and where pruning is not allowed to keep much."""
    table = table_of(n_parts, names, n_edges=n_edges)
    table.write_parquet(tmp_path / "edges.parquet")
    graph = read_graph(tmp_path / "edges.parquet", kind=kind)
    calibration = tree_calibration(mechanism, graph, kind, exponent)
    tree, noisy = local_tree(mechanism, graph, calibration)
    frame = spark.createDataFrame(table.to_arrow()).repartition(n_parts)
    edges = SparkEdges(frame, COLUMNS, kind, "the table")
    published = edges.publish(MECHANISMS[mechanism], calibration, BOUNDS, key=KEY)
    assert published.tree.sources.tolist() == graph.sources[tree].tolist()
    assert published.tree.targets.tolist() == graph.targets[tree].tolist()
    assert published.tree.weights.tolist() == noisy.tolist()
    assert published.tree.names.tolist() == graph.names.tolist()
    if names == "gaps":
        rounds = []

        class Counted:
            @staticmethod
            def of(*given):
                rounds.append(given)
                return Pruning.of(*given)

        monkeypatch.setattr(engine, "Pruning", Counted)
        monkeypatch.setattr(engine, "_PER_NODE", 0.02)
        again = edges.draw_tree(MECHANISMS[mechanism], calibration, BOUNDS, key=KEY)
        assert again.sources.tolist() == graph.sources[tree].tolist()
        assert len(rounds) > 1


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ({"source": 1, "target": 1, "weight": 1.0}, GraphError, "to themselves"),
        ({"source": 1, "target": 0, "weight": 1.0}, GraphError, "two rows"),
        ({"source": None, "target": 5, "weight": 1.0}, GraphError, "lack the id"),
        ({"source": 7, "target": 5, "weight": None}, WeightError, "not finite"),
        ({"source": 7, "target": 5, "weight": float("nan")}, WeightError, "not finite"),
        ({"source": 7, "target": 5, "weight": float("inf")}, WeightError, "not finite"),
    ],
)
def test_what_is_no_graph_is_refused(spark, bad, error, words):
    good = pl.DataFrame({"source": [0, 1], "target": [1, 2], "weight": [0.5, 0.25]})
    frame = spark.createDataFrame(pl.concat([good, pl.DataFrame([bad], good.schema)]).to_arrow())
    with pytest.raises(error, match=words):
        SparkEdges(frame, COLUMNS, "distance", "the table").topology  # noqa: B018


def saved(spark, tmp_path, names: str = "texts") -> str:
    place = str(tmp_path / "edges")
    spark.createDataFrame(table_of(3, names).to_arrow()).repartition(3).write.parquet(place)
    return place


PUBLIC = ["--engine", "spark", "--epsilon", 1, "--l1", 1, "--kind", "similarity"]
SAID = [*PUBLIC, "--topology", "public", "--privacy-unit", "one ride"]


def test_the_commands_plan_and_cluster(spark, tmp_path, run, monkeypatch):
    place = saved(spark, tmp_path)
    code, out, err = run("plan", place, *PUBLIC)
    assert code == 0, err
    assert "Spark draws the noise; this machine clusters the release from all weights" in out
    assert "kruskal" in out
    code, _, err = run(
        "cluster", place, *SAID, "--noisy", "noisy", "-o", "whole.json", "--labels", "l.parquet"
    )
    assert code == 0, err
    whole = Release.load(tmp_path / "whole.json")
    written = pl.read_parquet(tmp_path / "noisy" / "*.parquet").sort("low", "high")
    assert whole.noisy_weights.tolist() == written["weight"].to_list()
    assert any("computational" in text for text in whole.statement.caveats)
    assert "by key and edge" in whole.statement.mechanisms[0].reference
    labels = pl.read_parquet(tmp_path / "l.parquet")
    assert labels["node"].to_list() == whole.names.tolist()
    assert labels["cluster"].to_list() == whole.labels.tolist()

    code, _, err = run("cluster", place, *SAID, "--mechanism", "pamst", "-o", "pamst.json")
    assert code == 0, err
    pamst = Release.load(tmp_path / "pamst.json")
    assert not pamst.published.tree_alone
    assert pamst.tree.n_edges == 299
    assert pamst.statement.mechanisms[0].name.startswith("PAMST")
    assert "by key and edge" in pamst.statement.mechanisms[1].reference

    monkeypatch.setattr(sys.modules["ptclust.planning.plan"], "LARGEST_WHOLE", 100)
    code, out, err = run("plan", place, *PUBLIC)
    assert "clusters the release from its tree" in out
    code, _, err = run("cluster", place, *SAID, "--noisy", "noisy2", "-o", "tree.json")
    assert code == 0, err
    tree = Release.load(tmp_path / "tree.json")
    assert tree.published.tree_alone
    assert tree.weight_noise.n_values == 4000
    assert any("their spanning tree" in text for text in tree.statement.caveats)
    noisy = pl.read_parquet(tmp_path / "noisy2" / "*.parquet")
    assert len(noisy) == 4000
    assert set(tree.tree.weights.tolist()) <= set(noisy["weight"].to_list())
    assert run("recluster", "tree.json", "-o", "again.json", "--clusterer", "dbmstclu")[0] == 0
    code, _, err = run("recluster", "tree.json", "-o", "no.json", "--clusterer", "communities")
    assert code == 2
    # The same folder again: refused by Spark before a second noise is written beside the first.
    assert run("cluster", place, *SAID, "--noisy", "noisy2", "-o", "other.json")[0] == 3


def test_what_spark_does_not_do_is_said_before_anything_is_spent(spark, tmp_path, run):
    place = saved(spark, tmp_path, "numbers")
    wrong: dict[str, list] = {
        "the release has all of them": ["--noisy", "n", "--mechanism", "kruskal"],
        "not for Spark": ["--noisy", "n", "--random-state", 1],
        "by key, which OpenDP": ["--noisy", "n", "--sampler", "opendp"],
        "leave out format": ["--format", "parquet"],
    }
    for words, options in wrong.items():
        code, _, err = run("cluster", place, *SAID, "-o", "r.json", *options)
        assert code == 2, err
        assert words in " ".join(err.split()), err
    local = [*SAID[2:], "-o", "r.json"]
    assert run("plan", place, *PUBLIC[2:], "--master", "local[2]")[0] == 2
    assert run("plan", place, *PUBLIC, "--predict")[0] == 2
    pl.DataFrame({"source": [0], "target": [1], "weight": [1.0]}).write_parquet("one.parquet")
    assert run("cluster", "one.parquet", *local, "--noisy", "n")[0] == 2


def test_rows_of_the_same_two_nodes_are_merged_exactly(spark, tmp_path):
    """In any order: a sum of floats depends on it, and this one does not."""
    table = table_of(6, "texts", n_edges=600).with_columns(weight=pl.col("weight") / 7)
    swapped = table.select(source="target", target="source", weight=pl.col("weight") * 1e15 + 0.1)
    table = pl.concat([table, swapped, table]).sample(fraction=1, shuffle=True, seed=1)
    table.write_parquet(tmp_path / "edges.parquet")
    graph = read_graph(tmp_path / "edges.parquet", kind="distance", merge="sum")
    frame = spark.createDataFrame(table.to_arrow()).repartition(4)
    edges = spark_edges(frame, kind="distance", merge="sum")
    assert edges.n_edges == 600
    rows = edges._coded.all_rows().sort("source", "target")
    assert rows["weight"].to_list() == graph.weights.tolist()
    bad = pl.DataFrame({"source": ["a", "b"], "target": ["b", "a"], "weight": [1.0, np.nan]})
    with pytest.raises(WeightError, match="not finite"):
        spark_edges(spark.createDataFrame(bad.to_arrow()), kind="distance", merge="min").topology  # noqa: B018
    with pytest.raises(UsageError, match="'min', 'max' or 'sum'"):
        spark_edges(frame, kind="distance", merge="mean")


def test_a_graph_that_ptclust_built_says_the_same_to_spark(spark, tmp_path, run):
    """Its kind, sensitivity and unit hold, nodes without a neighbour included, or it is refused."""
    rides = pl.DataFrame({"origin": list("abcabcaad"), "destination": list("bcabcabca")})
    graph = graph_from_flows(rides, nodes=list("abcd"))
    graph.save(tmp_path / "graph.parquet")
    code, out, err = run("plan", "graph.parquet", "--engine", "spark", "--epsilon", 1)
    assert code == 0, err
    assert "4 nodes, 6 edges" in out
    asked = ["--engine", "spark", "--epsilon", 1, "-o", "r.json"]
    code, _, err = run("cluster", "graph.parquet", *asked)
    assert code == 0, err
    release = Release.load(tmp_path / "r.json")
    assert release.names.tolist() == list("abcd")
    assert release.statement.provenance == graph.provenance
    assert release.statement.sensitivity["l1"] == graph.provenance.sensitivity.l1
    assert release.statement.kind == "similarity"
    assert run("cluster", "graph.parquet", *asked[:-1], "s.json", "--l1", 0.5)[0] == 2
    assert run("cluster", "graph.parquet", *asked[:-1], "s.json", "--merge", "sum")[0] == 2
    written = pq.read_table("graph.parquet")
    changed = written.set_column(2, "weight", pa.array([7.0] * 6))
    said = pq.read_metadata("graph.parquet").metadata
    pq.write_table(changed.replace_schema_metadata(said), "graph.parquet")
    code, _, err = run("cluster", "graph.parquet", *asked[:-1], "s.json")
    assert code == 3
    assert "was changed after" in err
    lone = Graph([0, 1], [1, 2], [0.5, 0.25], names=list("bcda"), n_nodes=4)
    lone.save(tmp_path / "lone.parquet")
    edges = spark_edges(tmp_path / "lone.parquet")
    tree = private_spanning_tree(edges, epsilon=1, sensitivity=Sensitivity(linf=1))
    assert tree.names.tolist() == list("abcd")
    assert tree.n_edges == 2


def test_a_dataframe_goes_where_a_graph_goes(spark, tmp_path, monkeypatch):
    table = table_of(2, "texts").rename({"weight": "trips"})
    frame = spark.createDataFrame(table.to_arrow())
    sensitivity = Sensitivity(l1=1)
    model = PTClust(epsilon=1, sensitivity=sensitivity, privacy_unit="one ride").fit(frame)
    graph = Graph.from_dataframe(table, weight="trips")
    local = PTClust(epsilon=1, sensitivity=sensitivity, privacy_unit="one ride").fit(graph)
    assert model.release_.names.tolist() == graph.names.tolist()
    assert len(model.labels_) == graph.n_nodes
    assert model.release_.kind == "similarity"
    assert model.plan_.chosen.spent == local.plan_.chosen.spent
    assert model.release_.statement.to_dict().keys() == local.release_.statement.to_dict().keys()
    edges = spark_edges(frame, weight="trips", kind="distance")
    # A session of Spark Connect, which has no driver here, is refused before a ledger is charged.
    ledger = Ledger.create(tmp_path / "ledger.jsonl")
    ledger.add_dataset("rides", Budget.pure(5))
    account = {"epsilon": 1, "sensitivity": sensitivity, "ledger": ledger, "dataset": "rides"}
    with monkeypatch.context() as patch:
        patch.setattr(type(frame), "__module__", "pyspark.sql.connect.dataframe")
        for call in (PTClust(**account).fit, lambda e: private_spanning_tree(e, **account)):
            with pytest.raises(UsageError, match="Spark Connect"):
                call(edges)
    assert ledger.history() == ()
    tree = private_spanning_tree(edges, epsilon=1, sensitivity=sensitivity)
    assert tree.n_edges == 299
    assert plan(edges.topology, epsilon=1, sensitivity=sensitivity).request.engine == "spark"
    with pytest.raises(UsageError, match="not for Spark"):
        private_spanning_tree(edges, epsilon=1, sensitivity=sensitivity, random_state=3)
    with pytest.raises(UsageError, match="mean is not known"):
        PTClust(epsilon=1, sensitivity=sensitivity).fit(frame.withColumnRenamed("trips", "weight"))


def test_the_key_is_found_on_no_disk_and_in_no_plan(spark, tmp_path):
    """Not in Spark's folders, its event log, the pages of its web UI, nor in what its API says."""
    key = bytes(np.random.default_rng(8).integers(0, 256, 32, dtype=np.uint8))
    table = table_of(9, "numbers", n_edges=3000)
    edges = SparkEdges(spark.createDataFrame(table.to_arrow()), COLUMNS, "distance", "the table")
    edges.publish(*drawn("laplace", 3000), BOUNDS, str(tmp_path / "noisy"), key=key)
    graph = Topology(range(299), range(1, 300))
    calibration = tree_calibration("kruskal", SimpleNamespace(topology=graph), "distance", 1.0)
    edges.publish(MECHANISMS["kruskal"], calibration, BOUNDS, key=key)
    # What is planted must be found: a broadcast lies on a disk, a number of a plan is shown.
    planted, shown = bytes(range(64, 96)), "314159265358979"
    broadcast = spark.sparkContext.broadcast(planted)
    spark.range(2).filter(f"id < {shown}").selectExpr("sum(id)").collect()
    texts = [path.read_bytes() for path in files_of(spark, tmp_path)]
    pages = list(pages_of(spark))
    broadcast.destroy()
    assert any(b"physicalPlanDescription" in text and b"MapInArrow" in text for text in texts)
    assert [form for form in forms(planted) for text in texts if form in text]
    assert any(b"MapInArrow" in page for page in pages)
    assert any(shown.encode() in page for page in pages)
    assert not [form for form in forms(key) for text in (*texts, *pages) if form in text]


def pages_of(spark):
    """Yield the pages of Spark's web UI, and all that its REST API tells."""
    context = spark.sparkContext
    root = f"http://127.0.0.1:{context.uiWebUrl.rpartition(':')[2]}"
    api = f"/api/v1/applications/{context.applicationId}"
    n_queries = len(json.loads(page_at(f"{root}{api}/sql?length=1000")))
    places = ["/jobs/", "/stages/", "/storage/", "/environment/", "/executors/", "/SQL/"]
    places += [f"/SQL/execution/?id={i}" for i in range(n_queries)]
    places += [f"{api}/{what}" for what in ("jobs", "stages?details=true", "allexecutors")]
    places += [f"{api}/{what}" for what in ("storage/rdd", "environment", "logs")]
    places += [f"{api}/sql?details=true&planDescription=true&length=1000"]
    for place in places:
        yield page_at(root + place)


def page_at(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read()


def forms(secret: bytes) -> list[bytes]:
    """Return how a key may be written: as it is, in hexadecimal or base64, as a list of numbers."""
    numbers = ", ".join(map(str, secret))
    words = np.frombuffer(secret, dtype="<u4")
    return [
        secret,
        secret[::-1],
        secret.hex().encode(),
        secret.hex().upper().encode(),
        *[base64.b64encode(b"\0" * skip + secret)[4:-4] for skip in range(3)],
        numbers.encode(),
        ", ".join(map(str, words.tolist())).encode(),
        pickle.dumps(secret)[12:40],
    ]


def files_of(spark, tmp_path):
    return [path for root in (spark.local_dir, tmp_path) for path in root.rglob("*")
            if path.is_file()]  # fmt: skip


def test_the_driver_gives_the_key_to_tickets_alone():
    with serve_key(KEY, "127.0.0.1") as ticket:
        assert ticket.key() == KEY
        assert ticket.token.hex() not in repr(ticket)
        forged = Ticket(ticket.host, ticket.port, bytes(32))
        with pytest.raises(ConnectionError):
            forged.key()
        with socket.create_connection((ticket.host, ticket.port)) as silent:
            silent.sendall(b"x")
            assert Ticket(ticket.host, ticket.port, ticket.token)._ask() == KEY
        heard = listen_in(ticket)
        assert KEY not in heard
        assert ticket.token not in heard
    key_service._keys.clear()
    with pytest.raises(OSError, match="refused"):
        ticket.key()


def listen_in(ticket: Ticket) -> bytes:
    """Return all that goes over the wire when a worker asks."""
    heard = []

    class Wire(socket.socket):
        def sendall(self, data, *rest):
            heard.append(data)
            super().sendall(data, *rest)

        def recv(self, *size):
            data = super().recv(*size)
            heard.append(data)
            return data

    def connect(address, timeout):
        wire = Wire()
        wire.connect(address)
        return wire

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("socket.create_connection", connect)
        assert ticket._ask() == KEY
    assert len(b"".join(heard)) == 5 * 32
    return b"".join(heard)
