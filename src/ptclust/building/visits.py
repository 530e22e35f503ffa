"""Visits: how many people have two items in common."""

from __future__ import annotations

import os
from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from ptclust._traces import leaves_no_trace
from ptclust._types import Floats
from ptclust.building._build import Build, plural
from ptclust.building._contributions import Key, Things, sensitivity_of
from ptclust.building._pairs import Pairs
from ptclust.building._records import Records
from ptclust.graph.graph import Graph
from ptclust.privacy.provenance import Neighbours

if TYPE_CHECKING:
    from ptclust.ledger import Ledger


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
    The graph is of kind similarity and carries its sensitivity and unit, which PTClust takes from
    there.

    Parameters
    ----------
    records : polars DataFrame or LazyFrame, pandas or Spark DataFrame, or path
        As in `ptclust.graph_from_flows`.
    person, item : str, optional
        The columns with the person and the item; by default those that are called so, or have
        another well-known name, such as user or customer, and place or product.
    items : iterable of int or str
        The public list of all items; all pairs of them get a weight, zero included.
    edges : Topology, data frame, path, or iterable of pairs
        In place of ``items``: the public list of pairs that get a weight; see
        `ptclust.graph_from_flows`. **Never** take either list from the records.
    max_items : int
        At most this many different items count per person, 2 or more, or "auto".
    neighbours, caps_epsilon, edges_epsilon, ledger, dataset
        As in `ptclust.graph_from_flows`.

    Returns
    -------
    Graph
        With ``sensitivity``, ``unit`` and ``provenance``.

    Notes
    -----
    *Privacy.* The weights are the sum over persons of a vector that depends on the items of that
    person and a secret key alone: which k = ``max_items`` items are kept is decided by a keyed hash
    of person and item (`ptclust.building._contributions.keep_some`), and the vector is 1 on all
    pairs of them. So a person more or less changes at most k (k - 1) / 2 weights by 1 each:
    linf = 1, l1 = k (k - 1) / 2, l2 its root, and no more than if all public pairs changed: a cap
    above the number of items is taken as that. With ``neighbours="replace"`` linf holds, l1 doubles
    and l2 grows by sqrt(2) (`ptclust.building._contributions.sensitivity_of_sum`).

    Records of items that are not public, or whose person or item is missing, are dropped in
    silence, and before the bound, so that a person's items are all spent on items that count.

    Examples
    --------
    >>> import polars
    >>> events = polars.DataFrame({"person": [1, 1, 2], "place": ["a", "b", "a"]})
    >>> graph = graph_from_visits(events, item="place", items=["a", "b", "c"], max_items=3)
    >>> graph.sensitivity.l1, graph.unit
    (3.0, 'one person, at most 3 items')
    """
    build = Build.of(
        "graph_from_visits",
        records,
        items,
        edges,
        listed="items",
        neighbours=neighbours,
        caps={"max_items": max_items},
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
    numbers, most = {"max_items": pl.len()}, {"max_items": pairs.n_nodes}
    caps, known = build.choose(table, things, numbers, most)
    kept = things.bounded(caps["max_items"], build.key)

    def weights() -> Floats:
        in_common = partial(_in_common, pairs.n_nodes)
        return pairs.weights(table.summed_over_persons(kept, _listed, in_common, by="pair"))

    sensitivity = sensitivity_of(caps, pairs.n_pairs, build.neighbours)
    unit = f"one person, at most {plural(caps['max_items'], 'item')}"
    return build.graph(weights, sensitivity, unit, details=known)


def items_of_persons(table: Records, pairs: Pairs) -> Things:
    """Return the public items of persons."""
    return Things(partial(_of_each, table, pairs))


def _of_each(table: Records, pairs: Pairs, lazy: pl.LazyFrame) -> pl.LazyFrame:
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
