"""Edges that stay in Spark: the noise and the tree that one machine draws with the same key."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ptclust import Sensitivity, read_graph
from ptclust.engines.edges import SparkEdges
from ptclust.errors import GraphError, WeightError
from ptclust.mechanisms.keyed_noise import add_keyed_noise, edge_numbers
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


@pytest.mark.parametrize(
    ("distribution", "names", "n_parts", "kind"),
    [
        ("laplace", "numbers", 1, "similarity"),
        ("gaussian", "texts", 5, "distance"),
        ("cube", "gaps", 12, "similarity"),
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
    place = tmp_path / "noisy"
    alone = edges.publish(distribution, noise, BOUNDS, str(place), whole=False, key=KEY)
    assert alone.tree.sources.tolist() == graph.sources[tree].tolist()
    assert alone.tree.targets.tolist() == graph.targets[tree].tolist()
    assert alone.tree.weights.tolist() == noisy[tree].tolist()
    assert alone.tree.names.tolist() == graph.names.tolist()
    written = pl.read_parquet(place / "*.parquet").sort("low", "high")
    assert written["weight"].to_list() == noisy.tolist()
    whole = edges.publish(distribution, noise, BOUNDS, f"{place}2", whole=True, key=KEY)
    assert whole.noisy_weights.tolist() == noisy.tolist()
    assert whole.tree.edge_ids.tolist() == tree.tolist()
    # Files are in the order of edges, whatever the order of rows was.
    again = SparkEdges(frame.orderBy("target"), COLUMNS, kind, "the table")
    again.publish(distribution, noise, BOUNDS, f"{place}3", whole=False, key=KEY)
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
