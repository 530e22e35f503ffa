"""Counts: how often people went between two nodes (flows), how many have two items (visits)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from ptclust._markup import counted
from ptclust._traces import leaves_no_trace
from ptclust._types import Floats
from ptclust.building._build import Build
from ptclust.building._contributions import ITEMS, PAIRS, PER_PAIR, Key, Things, sensitivity_of
from ptclust.building._pairs import Pairs
from ptclust.building._records import Records
from ptclust.errors import UsageError
from ptclust.graph.graph import Graph
from ptclust.ledger import Ledger
from ptclust.privacy import _checks as check
from ptclust.privacy.provenance import Neighbours

_BOTH_CAPS = (
    "where persons are protected both bounds are needed, as max_pairs=5 and max_per_pair=2; choose "
    "them by what you know of such data, not by a look at these records (single records are "
    "protected without: no person=, or on the command line --unit record)"
)


@leaves_no_trace
def graph_from_flows(
    records: Any,
    *,
    origin: str | None = None,
    destination: str | None = None,
    nodes: Iterable[Any] | None = None,
    edges: Any = None,
    person: str | None = None,
    max_pairs: int | Literal["auto"] | None = None,
    max_per_pair: int | Literal["auto"] | None = None,
    neighbours: Neighbours = "add-remove",
    called: str = "record",
    caps_epsilon: float | Fraction | None = None,
    edges_epsilon: float | Fraction | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    _key: Key | None = None,
) -> Graph:
    """Make a graph of records that each go from one node to another: rides, trips, payments.

    The weight of a pair of nodes is its number of records, both directions together; records within
    one node do not count. The graph is of kind similarity and carries ``sensitivity``, ``unit`` and
    ``provenance``, which PTClust takes from there.

    Parameters
    ----------
    records : polars DataFrame or LazyFrame, pandas or Spark DataFrame, or path
        Files are Parquet, CSV (all columns are read as text, and as integers where the nodes are)
        or Arrow IPC. Those of Spark are counted where they are (docs/howto/spark.md).
    origin, destination : str, optional
        The columns with the two nodes; by default those called origin, source, from or start, and
        destination, target, to or end.
    nodes : iterable of int or str
        The public list of all nodes; all pairs of them get a weight, zero included.
    edges : Topology, data frame, path, or iterable of pairs
        In place of ``nodes``: the public list of pairs that get a weight, as roads. In a frame or
        file they are the only two columns, or those called source and target; which is which does
        not matter. **Never** take either list from the records. Or, with ``nodes``, "private": only
        pairs of them that pass a differentially private threshold are joined.
    person : str, optional
        The column that says whose record it is. The unit that is protected is then a person;
        without it, a record.
    max_pairs, max_per_pair : int
        With ``person``: at most this many pairs of nodes count per person, and at most this many
        records on each. Larger caps keep more records and need more noise. "auto" chooses the caps
        with the largest signal-to-noise ratio (`ptclust.building.caps`), from a differentially
        private histogram of persons.
    neighbours : {"add-remove", "replace"}
        Tables are neighbours if one has one unit more, or if one unit is replaced, their number
        being public. The second needs more noise.
    called : str
        What one record is called in the description of the unit: "trip".
    caps_epsilon, edges_epsilon : float
        What is spent on bounds that are "auto", all together, and on pairs that are "private".
        Both are in addition to what releases of the graph spend, and part of their statements.
    ledger, dataset : Ledger or path, and str, optional
        The ledger that they are charged to before the records are looked at, and its dataset;
        without it they are charged with the first release of the graph.

    Notes
    -----
    *Privacy.* One record changes one weight by 1: l1 = l2 = linf = 1. With persons, the weights are
    a sum over persons of a vector that depends on the records of that person and a secret key alone
    (`ptclust.building._contributions.keep_some`), with at most ``max_pairs`` entries, or as many as
    there are public pairs, between 0 and ``max_per_pair``: linf = max_per_pair,
    l1 = max_pairs max_per_pair, l2 = max_per_pair sqrt(max_pairs). With ``neighbours="replace"``
    linf holds, l1 doubles, and l2 grows by sqrt(2)
    (`ptclust.building._contributions.sensitivity_of_sum` has the proof).

    Records on pairs that are not public, or whose person or node is missing, are dropped silently,
    and before caps are applied: dropping depends on one record alone, so the bounds hold either
    way, and a person's caps are spent on pairs that count.

    Examples
    --------
    >>> import polars
    >>> rides = polars.DataFrame({"origin": ["a", "b", "a"], "destination": ["b", "a", "a"]})
    >>> graph = graph_from_flows(rides, nodes=["a", "b", "c"])
    >>> graph, graph.sensitivity.l1, graph.unit
    (Graph(n_nodes=3, n_edges=3, weights=<private>, kind='similarity'), 1.0, 'one record')
    """
    caps = {PAIRS: max_pairs, PER_PAIR: max_per_pair}
    if person is None and any(cap is not None for cap in caps.values()):
        raise UsageError(
            "max_pairs and max_per_pair bound what one person adds: name the column that says "
            "whose record it is, person=, or leave them out to protect single records"
        )
    build = Build(
        "graph_from_flows",
        records,
        nodes,
        edges,
        neighbours=neighbours,
        caps={} if person is None else caps,
        why=_BOTH_CAPS,
        caps_epsilon=caps_epsilon,
        edges_epsilon=edges_epsilon,
        ledger=ledger,
        dataset=dataset,
        key=_key,
    )
    check.text("called", called)
    columns = {"origin": origin, "destination": destination}
    if person is None:
        return _of_single_records(Records(records, columns), build, called)
    return _of_persons(Records(records, {**columns, "person": person}), build, called)


def _of_single_records(table: Records, build: Build, called: str) -> Graph:
    pairs = build.pairs

    def weights() -> Floats:
        return pairs.weights(table.summed(partial(_counts, table, pairs), "pair"))

    sensitivity = sensitivity_of({}, pairs.n_pairs, build.neighbours)
    return build.graph(weights, sensitivity, f"one {called}")


def _of_persons(table: Records, build: Build, called: str) -> Graph:
    pairs, things = build.pairs, pairs_of_persons(table, build.pairs)
    average = (pl.col("count").sum() + pl.len() - 1) // pl.len()  # on a pair, rounded up
    numbers = {PAIRS: pl.len(), PER_PAIR: average}
    caps, known = build.choose(table, things, numbers, {PAIRS: max(1, pairs.n_pairs)})
    kept = things.bounded(caps[PAIRS], build.key)

    def weights() -> Floats:
        count = partial(_summed, caps[PER_PAIR])
        return pairs.weights(table.summed_over_persons(kept, count, by="pair"))

    most, each = counted(caps[PAIRS], "pair"), counted(caps[PER_PAIR], called)
    sensitivity = sensitivity_of(caps, pairs.n_pairs, build.neighbours)
    unit = f"one person, at most {most} with at most {each} each"
    return build.graph(weights, sensitivity, unit, details=known)


@leaves_no_trace
def graph_from_visits(
    records: Any,
    *,
    person: str | None = None,
    item: str | None = None,
    items: Iterable[Any] | None = None,
    edges: Any = None,
    max_items: int | Literal["auto"],
    neighbours: Neighbours = "add-remove",
    caps_epsilon: float | Fraction | None = None,
    edges_epsilon: float | Fraction | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    _key: Key | None = None,
) -> Graph:
    """Make a graph of records that each join a person and an item: visits, purchases, readings.

    The weight of a pair of items is the number of persons who have both; how often does not count.
    The graph is as that of `ptclust.graph_from_flows`.

    Parameters
    ----------
    records, edges, neighbours, caps_epsilon, edges_epsilon, ledger, dataset
        As in `ptclust.graph_from_flows`.
    person, item : str, optional
        The columns with the person and the item; by default those that are called so, or have
        another well-known name, such as user or customer, and place or product.
    items : iterable of int or str
        The public list of all items, **never** taken from the records; all pairs of them get a
        weight, zero included.
    max_items : int
        At most this many different items count per person, 2 or more, or "auto".

    Notes
    -----
    *Privacy.* As in `ptclust.graph_from_flows`: which k = ``max_items`` items of a person are kept
    depends on the items of that person and a secret key alone, and the vector is 1 on all pairs of
    them: linf = 1, l1 = k (k - 1) / 2, l2 its root, and no more than if all public pairs changed.

    Examples
    --------
    >>> import polars
    >>> events = polars.DataFrame({"person": [1, 1, 2], "place": ["a", "b", "a"]})
    >>> graph = graph_from_visits(events, item="place", items=["a", "b", "c"], max_items=3)
    >>> graph.sensitivity.l1, graph.unit
    (3.0, 'one person, at most 3 items')
    """
    build = Build(
        "graph_from_visits",
        records,
        items,
        edges,
        listed="items",
        neighbours=neighbours,
        caps={ITEMS: max_items},
        least=2,
        why="a person with fewer items has no pair of them",
        caps_epsilon=caps_epsilon,
        edges_epsilon=edges_epsilon,
        ledger=ledger,
        dataset=dataset,
        key=_key,
    )
    pairs, table = build.pairs, Records(records, {"person": person, "item": item})
    things = items_of_persons(table, pairs)
    caps, known = build.choose(table, things, {ITEMS: pl.len()}, {ITEMS: pairs.n_nodes})
    kept = things.bounded(caps[ITEMS], build.key)

    def weights() -> Floats:
        in_common = partial(_in_common, pairs.n_nodes)
        return pairs.weights(table.summed_over_persons(kept, _listed, in_common, by="pair"))

    sensitivity = sensitivity_of(caps, pairs.n_pairs, build.neighbours)
    unit = f"one person, at most {counted(caps[ITEMS], 'item')}"
    return build.graph(weights, sensitivity, unit, details=known)


def pairs_of_persons(table: Records, pairs: Pairs) -> Things:
    """Return the public pairs of persons, with the number of records on each."""
    return Things(partial(_pair_of_each, table, pairs))


def _pair_of_each(table: Records, pairs: Pairs, lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Return the person and the public pair of every record, which counts once."""
    rows = on_pairs(table, pairs, table.with_persons(lazy))
    return rows.select("person", thing="pair", count=pl.lit(1, pl.Int64))


def _counts(table: Records, pairs: Pairs, lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Return the number of records on every public pair."""
    return on_pairs(table, pairs, lazy).group_by("pair").agg(count=pl.len().cast(pl.Int64))


def _summed(max_per_pair: int, kept: pl.LazyFrame) -> pl.LazyFrame:
    """Return the number of records on every pair, of each person at most ``max_per_pair``."""
    count = pl.col("count").clip(upper_bound=max_per_pair).sum()
    return kept.group_by(pair="thing").agg(count)


def on_pairs(table: Records, pairs: Pairs, lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Return the records on public pairs, with the key of each."""
    for role in ("origin", "destination"):
        lazy = table.number(lazy, role, pairs)
    a, b = (pl.col(name).cast(pl.Int64) for name in ("origin node", "destination node"))
    pair = pl.min_horizontal(a, b) * pairs.n_nodes + pl.max_horizontal(a, b)
    lazy = lazy.filter(a != b).with_columns(pair=pair)
    if pairs.listed is not None:
        lazy = lazy.join(pl.LazyFrame({"pair": pairs.listed}), on="pair", how="semi")
    return lazy


def items_of_persons(table: Records, pairs: Pairs) -> Things:
    """Return the public items of persons."""
    return Things(partial(_item_of_each, table, pairs))


def _item_of_each(table: Records, pairs: Pairs, lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Return the person and the public item of every record."""
    rows = table.number(table.with_persons(lazy), "item", pairs)
    return rows.select("person", thing="item node")


def _listed(kept: pl.LazyFrame) -> pl.LazyFrame:
    return kept.group_by("person").agg("thing")


def _in_common(n_items: int, of_persons: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of the pairs of items that somebody has both of, and how many have."""
    from scipy.sparse import csr_array, triu

    items = of_persons["thing"]
    starts = np.concatenate([[0], np.cumsum(items.list.len().to_numpy(), dtype=np.int64)])
    column = items.explode().drop_nulls().to_numpy()
    entries = np.ones(len(column), dtype=np.int64), column, starts
    has = csr_array(entries, shape=(len(items), n_items))
    both = triu(has.T @ has, k=1).tocoo()
    pair = both.row.astype(np.int64) * n_items + both.col
    return pl.DataFrame({"pair": pair, "count": both.data})
