"""Neighbouring tables of records: one unit more, hostile, through building and clustering.

The rows of a table are in the order in which a database may list them, the busiest pair of nodes
first. So one person with many records reorders those of everybody else: who keeps the first ones,
keeps others then.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ptclust._types import Floats, Ints
from ptclust.audit.statistical import LIKELIHOOD, Outcomes
from ptclust.building import graph_from_flows, graph_from_visits
from ptclust.errors import PrivacyWarning
from ptclust.estimators import PTClust
from ptclust.graph import Graph, Topology
from ptclust.release import Release

NODES = ("a", "b", "c", "d", "e")
_PAIRS = tuple(combinations(NODES, 2))
_KEY = (1, 2, 3)  # known to the attacker: what is promised holds for every key
_PERSONS, _HOSTILE = range(40), 99
_USUAL = {("a", "b"): 3, ("c", "d"): 2, ("a", "c"): 1}  # records of every person but one

# What bounds the records of a person
BOUNDS: dict[str, Any] = {"person": "person", "max_pairs": 2, "max_per_pair": 2, "_key": _KEY}

Build = Callable[[pl.DataFrame], Graph]


class Tables(NamedTuple):
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
        table = cls.of_flows().table
        one = pl.DataFrame([(0, "b", "e")], schema=table.schema, orient="row")
        return cls(table, pl.concat([one, table]), "one record more")

    @classmethod
    def of_visits(cls) -> Tables:
        """Return visits, and the same with a person who was everywhere, again and again."""
        first, second = (table.select("person", item="origin") for table in cls.of_flows()[:2])
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


build_records: Build = partial(graph_from_flows, nodes=NODES)  # protects one record
build_flows: Build = partial(graph_from_flows, nodes=NODES, **BOUNDS)  # protects one person
build_visits: Build = partial(graph_from_visits, items=NODES, max_items=3, _key=_KEY)


def built_release(
    build: Build,
    tables: Tables,
    epsilon: float,
    delta: float,
    private: pl.DataFrame,
    count: int,
    seed: int,  # noqa: ARG001
) -> Outcomes:
    """Publish clusters of a graph that is built of records, with secure randomness.

    Noise is drawn anew for each release. The graph is built once: its key is fixed.
    """
    graph = build(private)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model = PTClust(epsilon=epsilon, delta=delta)
        releases = [model.fit(graph).release_ for _ in range(count)]
    noisy = np.array([_by_pair(each.topology, each.noisy_weights) for each in releases])
    places = (len(NODES) + 2) ** np.arange(len(NODES))
    sides = (build(table) for table in (tables.table, tables.neighbour))
    weights = (_by_pair(side.topology, side.weights) for side in sides)
    return {
        "pairs": (~np.isnan(noisy)) @ (1 << np.arange(len(_PAIRS))),
        **{f"weight of {a}-{b}": noisy[:, i] for i, (a, b) in enumerate(_PAIRS)},
        "sum of weights": np.nansum(noisy, axis=1),
        "labels": np.array([_by_node(each) @ places for each in releases]),
        LIKELIHOOD: releases[0].weight_noise.log_ratio(noisy, *weights),
    }


def _by_pair(topology: Topology, weights: Floats) -> Floats:
    """Return the weight of every pair of public nodes, NaN if it has none."""
    ends = topology.names[[topology.sources, topology.targets]].T
    weight = {tuple(sorted(pair)): value for pair, value in zip(ends, weights, strict=True)}
    return np.array([weight.get(pair, np.nan) for pair in _PAIRS])


def _by_node(release: Release) -> Ints:
    """Return 2 plus the label of every public node; 0 if it is not there."""
    labels = dict(zip(release.names.tolist(), (release.labels + 2).tolist(), strict=True))
    return np.array([labels.get(node, 0) for node in NODES])
