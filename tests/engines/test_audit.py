"""The statistical audit of what Spark draws: many copies of a small graph are many draws."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from ptclust import Sensitivity
from ptclust.audit.mechanisms import ValuesRelease, neighbours
from ptclust.audit.statistical import epsilon_bound
from ptclust.engines.edges import spark_edges
from ptclust.graph.topology import Topology
from ptclust.mechanisms.laws import GRAPHS
from ptclust.planning.plan import PlanRequest, make_plan

pytestmark = pytest.mark.long

GRAPH = GRAPHS["K3"]
EPSILON, COPIES, ERROR = 1.5, 40_000, 1e-6


class SparkRelease(ValuesRelease):
    """What Spark publishes of copies of a graph that have nothing in common but the key."""

    secure = True

    def of(self, spark, weights, calibration):
        """Return the features of every copy."""
        ends, n, k = np.array(GRAPH.edges), GRAPH.n_nodes, len(GRAPH.edges)
        copies = np.arange(COPIES)[:, None] * n
        source, target = ((copies + ends[:, i]).ravel() for i in (0, 1))
        table = pl.DataFrame(
            {"source": source, "target": target, "distance": np.tile(weights, COPIES)}
        )
        edges = spark_edges(spark.createDataFrame(table.to_arrow()).repartition(3))
        many = replace(calibration.weights, n_values=COPIES * calibration.weights.n_values)
        published = edges.publish(
            self.plan.mechanism, replace(calibration, weights=many), (-9.0, 9.0), whole=True
        )
        tree = published.tree
        number = {tuple(edge): i for i, edge in enumerate(GRAPH.edges)}
        pairs = zip((tree.sources % n).tolist(), (tree.targets % n).tolist())
        ids = np.array([number[ends] for ends in pairs]).reshape(COPIES, n - 1)
        per_tree = tree.weights.reshape(COPIES, n - 1)
        all_of_it = published.whole_graph
        weights = published.noisy_weights.reshape(COPIES, k) if all_of_it else per_tree
        copies_drawn: Any = [
            SimpleNamespace(
                tree=SimpleNamespace(edge_ids=some), whole_graph=all_of_it, noisy_weights=noisy
            )
            for some, noisy in zip(ids, weights)
        ]
        return self.features(copies_drawn)


@pytest.mark.parametrize("mechanism", ["kruskal", "pamst", "laplace"])
def test_no_event_refutes_the_claim_and_too_little_noise_is_caught(spark, mechanism):
    sensitivity = Sensitivity(l1=0.2)  # under which noise is drawn edge by edge
    request = PlanRequest(
        epsilon=EPSILON, sensitivity=sensitivity, mechanism=mechanism, engine="spark"
    )
    sources, targets = zip(*GRAPH.edges)
    plan = make_plan(Topology(sources, targets), request)
    pair = neighbours(len(GRAPH.edges), sensitivity, 0.1)
    release = SparkRelease(GRAPH, plan, pair)
    right = plan.chosen
    first, second = (release.of(spark, w, right) for w in (pair.weights, pair.neighbour))
    bound = epsilon_bound(first, second, ERROR)
    assert 0.1 < bound.value <= EPSILON, bound.witness
    # A third of the noise, on the weights and in the tree: the same audit refutes that.
    noise = replace(right.weights, scale=right.weights.scale / 3)
    tree = right.tree and replace(right.tree, exponent=3 * right.tree.exponent)
    wrong = replace(right, weights=noise, tree=tree)
    first, second = (release.of(spark, w, wrong) for w in (pair.weights, pair.neighbour))
    assert epsilon_bound(first, second, ERROR).value > EPSILON
