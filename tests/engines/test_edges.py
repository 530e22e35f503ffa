"""Edges that stay in Spark: the noise and the tree that one machine draws with the same key."""

from __future__ import annotations

import base64
import pickle
import socket
import sys

import numpy as np
import polars as pl
import pytest

from ptclust import Release, Sensitivity, read_graph
from ptclust.engines import key_service
from ptclust.engines.edges import SparkEdges
from ptclust.engines.key_service import KeyService, Ticket
from ptclust.errors import GraphError, WeightError
from ptclust.mechanisms import MECHANISMS, Calibration, Mechanism
from ptclust.mechanisms.keyed_noise import add_keyed_noise, edge_numbers
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
    whole = edges.publish(*what, BOUNDS, f"{place}2", whole=True, key=KEY)
    assert whole.noisy_weights.tolist() == noisy.tolist()
    assert whole.tree.edge_ids.tolist() == tree.tolist()
    # With nothing written it is the same, in one pass over the table.
    for all_of_it in (False, True):
        at_once = edges.publish(*what, BOUNDS, whole=all_of_it, key=KEY)
        assert at_once.tree.weights.tolist() == noisy[tree].tolist()
        assert at_once.whole_graph == all_of_it
    if n_parts == 1:
        return
    # Files are in the order of edges, whatever the order of rows was.
    again = SparkEdges(frame.orderBy("target"), COLUMNS, kind, "the table")
    again.publish(*what, BOUNDS, f"{place}3", key=KEY)
    files = [sorted(p.glob("*.parquet")) for p in (place, tmp_path / "noisy3")]
    rows = [[pl.read_parquet(file).rows() for file in each] for each in files]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ({"source": 1, "target": 1, "weight": 1.0}, GraphError, "to themselves"),
        ({"source": 1, "target": 0, "weight": 1.0}, GraphError, "two rows"),
        ({"source": None, "target": 5, "weight": 1.0}, GraphError, "lack the id"),
        ({"source": 7, "target": 5, "weight": None}, WeightError, "no finite"),
        ({"source": 7, "target": 5, "weight": float("nan")}, WeightError, "no finite"),
        ({"source": 7, "target": 5, "weight": float("inf")}, WeightError, "no finite"),
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
    assert "kruskal" not in out
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
    assert labels["label"].to_list() == whole.labels.tolist()

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
    code, _, err = run("recluster", "tree.json", "-o", "no.json", "--clusterer", "contraction")
    assert code == 2
    # The same folder again: refused by Spark before a second noise is written beside the first.
    assert run("cluster", place, *SAID, "--noisy", "noisy2", "-o", "other.json")[0] == 3


def test_what_spark_does_not_do_is_said_before_anything_is_spent(spark, tmp_path, run):
    place = saved(spark, tmp_path, "numbers")
    wrong: dict[str, list] = {
        "draws a tree edge by edge": ["--noisy", "n", "--mechanism", "kruskal"],
        "--noisy says where": [],
        "not for Spark": ["--noisy", "n", "--random-state", 1],
        "by key, which OpenDP": ["--noisy", "n", "--sampler", "opendp"],
        "leave merge": ["--noisy", "n", "--merge", "sum"],
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
    read_graph("one.parquet", kind="similarity").save("ours.parquet")
    code, _, err = run("plan", "ours.parquet", *PUBLIC)
    assert "that ptclust wrote" in err
    assert code == 2


def test_the_key_is_found_on_no_disk_and_in_no_plan(spark, tmp_path):
    """Not in Spark's own folders, nor in its event log, which has what the web pages show."""
    key = bytes(np.random.default_rng(8).integers(0, 256, 32, dtype=np.uint8))
    table = table_of(9, "numbers", n_edges=3000)
    edges = SparkEdges(spark.createDataFrame(table.to_arrow()), COLUMNS, "distance", "the table")
    edges.publish(*drawn("laplace", 3000), BOUNDS, str(tmp_path / "noisy"), key=key)
    texts = [path.read_bytes() for path in files_of(spark, tmp_path)]
    assert any(b"physicalPlanDescription" in text and b"MapInArrow" in text for text in texts)
    assert not [form for form in forms(key) for text in texts if form in text]
    # The search is good enough to find what is there: a broadcast lies on the disk.
    planted = bytes(range(64, 96))
    broadcast = spark.sparkContext.broadcast(planted)
    texts = [path.read_bytes() for path in files_of(spark, tmp_path)]
    assert [form for form in forms(planted) for text in texts if form in text]
    broadcast.destroy()


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
    with KeyService(KEY, "127.0.0.1") as ticket:
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
