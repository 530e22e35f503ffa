"""Flows: how often people went between two nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ptclust._traces import leaves_no_trace
from ptclust.building._neighbours import check_neighbours, sensitivity_of_sum
from ptclust.building._pairs import Pairs, public_pairs
from ptclust.errors import UsageError
from ptclust.graph.graph import Graph
from ptclust.privacy.provenance import Neighbours, Provenance

if TYPE_CHECKING:
    import polars as pl

    from ptclust.building._records import Key, Records


@leaves_no_trace
def graph_from_flows(
    records: Any,
    *,
    origin: str | None = None,
    destination: str | None = None,
    nodes: Iterable[Any] | None = None,
    edges: Any = None,
    person: str | None = None,
    max_pairs: int | None = None,
    max_per_pair: int | None = None,
    neighbours: Neighbours = "add-remove",
    _key: Key | None = None,
) -> Graph:
    """Make a graph of records that each go from one node to another: rides, trips, payments.

    The weight of a pair of nodes is its number of records, both directions together; records within
    one node do not count. The graph is of kind similarity and carries its sensitivity and unit,
    which PTClust takes from there.

    Parameters
    ----------
    records : polars DataFrame or LazyFrame, pandas DataFrame, or path
        Files are Parquet, CSV (all columns are read as text, and as integers where the nodes are)
        or Arrow IPC.
    origin, destination : str, optional
        The columns with the two nodes; by default those called origin, source, from or start, and
        destination, target, to or end.
    nodes : iterable of int or str
        The public list of all nodes; all pairs of them get a weight, zero included.
    edges : Topology, data frame, path, or iterable of pairs
        In place of ``nodes``: the public list of pairs that get a weight, as roads. In a frame or
        file they are two columns or columns called source and target; which is which does not
        matter, and a pair that is listed both ways is one. **Never** take either list from the
        records.
    person : str, optional
        The column that says whose record it is. The unit that is protected is then a person;
        without it, a record.
    max_pairs, max_per_pair : int
        With ``person``: at most so many pairs of nodes count for a person, and at most so many
        records on each. More keep more of the data and need more noise.
    neighbours : {"add-remove", "replace"}
        Who is protected from whom: tables are neighbours if one has one unit more, or if they
        differ in what one unit is, their number being known. The second needs more noise.

    Returns
    -------
    Graph
        With ``sensitivity``, ``unit`` and ``provenance``.

    Notes
    -----
    *Privacy.* Of tables with one unit more or less: one record changes one weight by 1:
    l1 = l2 = linf = 1. With persons, the weights are the sum over persons of a vector that depends
    on the records of that person and a secret key alone: which ``max_pairs`` pairs are kept is
    decided by a keyed hash of person and pair (`ptclust.building._records.keep_some`), and the
    count on each is cut at ``max_per_pair``. So a person more or less adds or removes one such
    vector, with at most ``max_pairs`` entries between 0 and ``max_per_pair``:
    linf = max_per_pair, l1 = max_pairs max_per_pair, l2 = max_per_pair sqrt(max_pairs). With
    ``neighbours="replace"`` linf holds, l1 doubles and l2 grows by sqrt(2)
    (`ptclust.building._neighbours.sensitivity_of_sum` has the proof).

    Records on pairs that are not public, or whose person or node is missing, are dropped in
    silence, and before the bounds: to drop is a question to one record, so it changes no bound
    either way, and a person's pairs are then all spent on pairs that count.

    Examples
    --------
    >>> import polars
    >>> rides = polars.DataFrame({"origin": ["a", "b", "a"], "destination": ["b", "a", "a"]})
    >>> graph = graph_from_flows(rides, nodes=["a", "b", "c"])
    >>> graph, graph.sensitivity.l1, graph.unit
    (Graph(n_nodes=3, n_edges=3, weights=<private>, kind='similarity'), 1.0, 'one record')
    """
    from ptclust.building._records import Records, draw_key

    check_neighbours(neighbours)
    pairs = public_pairs(nodes, edges, records, word="nodes")
    columns = {"origin": origin, "destination": destination}
    if person is None:
        if max_pairs is not None or max_per_pair is not None:
            raise UsageError(
                "max_pairs and max_per_pair bound what one person adds: name the column that says "
                "whose record it is, person=, or leave them out to protect single records"
            )
        return _of_single_records(Records(records, columns), pairs, neighbours)
    caps = _caps(max_pairs, max_per_pair)
    table = Records(records, {**columns, "person": person})
    return _of_persons(table, pairs, *caps, neighbours, draw_key() if _key is None else _key)


def _caps(max_pairs: int | None, max_per_pair: int | None) -> tuple[int, int]:
    from ptclust.building._records import at_least

    why = (
        "where persons are protected both bounds are needed, as max_pairs=5 and max_per_pair=2; "
        "choose them by what you know of such data, not by a look at these records (single records "
        "are protected without: no person=, or on the command line --unit record)"
    )
    return at_least("max_pairs", max_pairs, 1, why), at_least("max_per_pair", max_per_pair, 1, why)


def _of_single_records(records: Records, pairs: Pairs, neighbours: Neighbours) -> Graph:
    import polars as pl

    found = _on_pairs(records, records.lazy, pairs).group_by("pair").agg(count=pl.len())
    graph = _graph(records, found, pairs)
    graph.provenance = Provenance(
        sensitivity=sensitivity_of_sum(linf=1, l1=1, squares=1, neighbours=neighbours),
        unit="one record",
        neighbours=neighbours,
        details={"built_by": "graph_from_flows", "topology": pairs.chosen_by},
    )
    return graph


def _of_persons(
    records: Records,
    pairs: Pairs,
    max_pairs: int,
    max_per_pair: int,
    neighbours: Neighbours,
    key: Key,
) -> Graph:
    import polars as pl

    from ptclust.building._records import counted, keep_some

    on_pairs = _on_pairs(records, records.with_persons(), pairs)
    each = on_pairs.group_by("person", "pair").agg(count=pl.len().cast(pl.Int64))
    kept = keep_some(each, "pair", max_pairs, key)
    total = pl.col("count").clip(upper_bound=max_per_pair).sum()
    graph = _graph(records, kept.group_by("pair").agg(total), pairs)
    most = f"{counted(max_pairs, 'pair')} with at most {counted(max_per_pair, 'record')} each"
    graph.provenance = Provenance(
        sensitivity=sensitivity_of_sum(
            linf=max_per_pair,
            l1=max_pairs * max_per_pair,
            squares=max_pairs * max_per_pair**2,
            neighbours=neighbours,
        ),
        unit=f"one person, at most {most}",
        neighbours=neighbours,
        details={
            "built_by": "graph_from_flows",
            "topology": pairs.chosen_by,
            "max_pairs": max_pairs,
            "max_per_pair": max_per_pair,
        },
    )
    return graph


def _on_pairs(records: Records, lazy: pl.LazyFrame, pairs: Pairs) -> pl.LazyFrame:
    """Return the records on public pairs, with the key of the pair in place of the nodes."""
    import polars as pl

    for role in ("origin", "destination"):
        lazy = records.number(lazy, role, pairs)
    a, b = (pl.col(name).cast(pl.Int64) for name in ("origin node", "destination node"))
    pair = pl.min_horizontal(a, b) * pairs.n_nodes + pl.max_horizontal(a, b)
    lazy = lazy.filter(a != b).with_columns(pair=pair).drop("origin node", "destination node")
    if pairs.all_counted:
        return lazy
    return lazy.join(pl.LazyFrame({"pair": pairs.keys}), on="pair", how="semi")


def _graph(records: Records, found: pl.LazyFrame, pairs: Pairs) -> Graph:
    table = records.collect(found)
    return pairs.graph(pairs.weights(table["pair"].to_numpy(), table["count"].to_numpy()))
