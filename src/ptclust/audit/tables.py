"""Neighbouring tables of records: one unit more, hostile, through building and clustering.

The rows of a table are in the order in which a database may list them, the busiest pair of nodes
first. So one person with many records reorders those of everybody else: who keeps the first ones,
keeps others then.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from ptclust._types import Floats, Ints
from ptclust.audit.statistical import LIKELIHOOD, Outcomes
from ptclust.building import graph_from_flows, graph_from_visits
from ptclust.errors import PrivacyWarning
from ptclust.estimators import PTClust
from ptclust.graph import Graph, Topology
from ptclust.privacy import Noise
from ptclust.release import Release

NODES = ("a", "b", "c", "d", "e")
MAX_PAIRS, MAX_PER_PAIR, MAX_ITEMS = 2, 2, 3
_PAIRS = tuple(combinations(NODES, 2))
_KEY = (1, 2, 3)  # known to the attacker: what is promised holds for every key
_PERSONS, _HOSTILE = range(40), 99
_USUAL = {("a", "b"): 3, ("c", "d"): 2, ("a", "c"): 1}  # records of every person but one

Build = Callable[[pl.DataFrame], Graph]


@dataclass(frozen=True)
class Tables:
    """Two neighbouring tables, and what one of them has more."""

    table: pl.DataFrame
    neighbour: pl.DataFrame
    words: str

    @classmethod
    def of_flows(cls) -> Tables:
        """Return trips, and the same with a person who makes many between all nodes."""
        usual = [(who, pair) for who in _PERSONS for pair in _USUAL for _ in range(_USUAL[pair])]
        hostile = [(_HOSTILE, pair) for pair in (*_PAIRS, ("c", "d")) for _ in range(100)]
        words = f"one person more, with {len(hostile):,} records"
        return cls(_as_listed(usual), _as_listed(usual + hostile), words)

    @classmethod
    def of_records(cls) -> Tables:
        """Return trips, and the same with one more, where nobody went before."""
        tables = cls.of_flows()
        one = pl.DataFrame([(0, "b", "e")], schema=tables.table.schema, orient="row")
        return cls(tables.table, pl.concat([one, tables.table]), "one record more")

    @classmethod
    def of_visits(cls) -> Tables:
        """Return visits, and the same with a person who was everywhere, again and again."""
        flows = cls.of_flows()
        first, second = (
            table.select("person", item="origin") for table in (flows.table, flows.neighbour)
        )
        everywhere = pl.DataFrame({"person": [_HOSTILE] * 5, "item": NODES})
        words = f"one person more, with {len(second) - len(first) + 5:,} visits"
        return cls(first, pl.concat([everywhere, second]), words)


def _as_listed(rows: list[tuple[int, tuple[str, str]]]) -> pl.DataFrame:
    """Return a table of trips, those on the busiest pair first."""
    schema = {"person": pl.Int64, "origin": pl.String, "destination": pl.String}
    table = pl.DataFrame([(who, *pair) for who, pair in rows], schema=schema, orient="row")
    pair = ["origin", "destination"]
    busy = table.with_columns(busy=pl.len().over(pair))
    return busy.sort("busy", *pair, descending=[True, False, False]).drop("busy")


def build_records(table: pl.DataFrame) -> Graph:
    """Build a graph that protects one record."""
    return graph_from_flows(table, nodes=NODES)


def build_flows(table: pl.DataFrame, edges: pl.DataFrame | None = None) -> Graph:
    """Build a graph of trips that protects one person, on all pairs or those that are given."""
    return graph_from_flows(
        table,
        nodes=NODES if edges is None else None,
        edges=edges,
        person="person",
        max_pairs=MAX_PAIRS,
        max_per_pair=MAX_PER_PAIR,
        _key=_KEY,
    )


def build_visits(table: pl.DataFrame) -> Graph:
    """Build a graph of visits that protects one person."""
    return graph_from_visits(table, items=NODES, max_items=MAX_ITEMS, _key=_KEY)


@dataclass(frozen=True)
class BuiltRelease:
    """Records to labels: a graph is built of a table, and its clusters are published."""

    build: Build
    tables: Tables
    epsilon: float
    delta: float = 0.0

    def draw(self, private: pl.DataFrame, count: int, seed: int) -> Outcomes:  # noqa: ARG002
        """Return the features of ``count`` releases with secure randomness.

        Noise is drawn anew for each of them. The graph is built once: its key is fixed.
        """
        graph = self.build(private)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            model = PTClust(epsilon=self.epsilon, delta=self.delta)
            releases = [model.fit(graph).release_ for _ in range(count)]
        noisy = np.array([_by_pair(each.topology, each.noisy_weights) for each in releases])
        places = (len(NODES) + 2) ** np.arange(len(NODES))
        return {
            "pairs": (~np.isnan(noisy)) @ (1 << np.arange(len(_PAIRS))),
            **{f"weight of {a}-{b}": noisy[:, i] for i, (a, b) in enumerate(_PAIRS)},
            "sum of weights": np.nansum(noisy, axis=1),
            "labels": np.array([_by_node(each) @ places for each in releases]),
            LIKELIHOOD: self._log_ratio(noisy, releases[0].weight_noise),
        }

    def _log_ratio(self, noisy: Floats, noise: Noise) -> Floats:
        """Return the likelihood ratio of every draw, over the pairs that both graphs have."""
        here, there = (
            _by_pair(graph.topology, graph.weights)
            for graph in map(self.build, (self.tables.table, self.tables.neighbour))
        )
        return noise.log_ratio(noisy, here, there)


def _by_pair(topology: Topology, weights: Floats) -> Floats:
    """Return the weight of every pair of public nodes, NaN if it has none."""
    ends = (topology.names[ends] for ends in (topology.sources, topology.targets))
    weight = {tuple(sorted(pair)): value for *pair, value in zip(*ends, weights, strict=True)}
    return np.array([weight.get(pair, np.nan) for pair in _PAIRS])


def _by_node(release: Release) -> Ints:
    """Return 2 plus the label of every public node; 0 if it is not there."""
    labels = dict(zip(release.names.tolist(), (release.labels + 2).tolist(), strict=True))
    return np.array([labels.get(node, 0) for node in NODES])
