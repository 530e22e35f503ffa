"""Tables of every kind are read alike, and what is wrong is said without a look at values."""

from __future__ import annotations

import math
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ptclust import Topology, graph_from_flows, graph_from_visits
from ptclust.building._pairs import Pairs
from ptclust.errors import FileError, GraphError, InputError, UsageError

RIDES = pl.DataFrame(
    {
        "person": [1, 1, 2, 3, 3, None],
        "origin": [7, 8, 7, 9, 9, 7],
        "destination": [8, 7, 9, 9, None, 8],
    }
)
NODES = [9, 7, 8, 10]
WEIGHTS = {(7, 8): 3.0, (7, 9): 1.0}
BOUNDS = {"person": "person", "max_pairs": 2, "max_per_pair": 3}


def weights_of(graph):
    names = graph.names.tolist()
    triples = zip(graph.sources, graph.targets, graph.weights.tolist())
    return {(names[a], names[b]): value for a, b, value in triples if value}


def as_file(frame, path):
    write = {".parquet": "write_parquet", ".csv": "write_csv", ".arrow": "write_ipc"}
    getattr(frame, write[path.suffix])(path)
    return path


def spaced(frame, path):
    path.write_text(
        "origin,person,destination,note\n7,1,8,x\n 8 ,1,7,y\n7,2,9\n9,3,9,z,more\n9,3,,\n7,,8,\n"
        "seven,5,8,\n"
    )
    return path


HOLDERS = {
    "polars": lambda frame, _: frame,
    "lazy": lambda frame, _: frame.lazy(),
    "narrow": lambda frame, _: frame.cast(pl.Int16),
    "pandas": lambda frame, _: pd.DataFrame(frame.to_dict(as_series=False)),
    "nullable pandas": lambda frame, _: pd.DataFrame(frame.to_dict(as_series=False)).astype(
        "Int64"
    ),
    "parquet": lambda frame, folder: as_file(frame, folder / "rides.parquet"),
    "csv": lambda frame, folder: as_file(frame, folder / "rides.csv"),
    "ragged csv": lambda frame, folder: spaced(frame, folder / "ragged.csv"),
    "arrow": lambda frame, folder: str(as_file(frame, folder / "rides.arrow")),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_table_gives_the_same_graph(holder, tmp_path):
    table = HOLDERS[holder](RIDES, tmp_path)
    graph = graph_from_flows(table, nodes=NODES)
    assert graph.names.tolist() == [7, 8, 9, 10]  # 10, where nobody went, and in canonical order
    assert graph.topology.is_complete
    assert graph.kind == "similarity"
    assert weights_of(graph) == WEIGHTS
    # A record of nobody cannot be bounded.
    of_persons = graph_from_flows(table, nodes=NODES, **BOUNDS)
    assert weights_of(of_persons) == {(7, 8): 2.0, (7, 9): 1.0}
    shared = graph_from_visits(table, item="origin", items=NODES, max_items=3)
    assert weights_of(shared) == {(7, 8): 1.0}


TEXTS = pl.DataFrame({"person": ["x", "x", None], "item": ["a", "b", "a"]})


@pytest.mark.parametrize(
    "table",
    [
        TEXTS,
        TEXTS.cast(pl.Categorical),
        pd.DataFrame(TEXTS.to_dict(as_series=False)),
        pd.DataFrame(TEXTS.to_dict(as_series=False), dtype=object),
        pd.DataFrame(TEXTS.to_dict(as_series=False)).astype("category"),
    ],
)
def test_ids_that_are_texts(table):
    graph = graph_from_visits(table, items=["a", "b", "c"], max_items=2)
    assert weights_of(graph) == {("a", "b"): 1.0}


def test_persons_that_are_not_a_number_are_dropped():
    """Nor are those who can be two: rounded, or with a letter that could not be read."""
    persons = [0.0, -0.0, *[math.nan] * 2, *[math.inf] * 2, *[2.0**53] * 2]
    table = pl.DataFrame({"person": persons, "item": ["a", "b"] * 4})
    graph = graph_from_visits(table, items=["a", "b"], max_items=2)
    assert graph.weights.tolist() == [1.0]


def test_persons_that_could_not_be_read_are_dropped(tmp_path):
    """A program that wrote U+FFFD for what it could not read may have made two persons one."""
    path = tmp_path / "visits.csv"
    path.write_text("person,item\nx\ufffd,a\nx\ufffd,b\n\xe9,a\n\xe9,b\n", encoding="utf-8")
    graph = graph_from_visits(path, items=["a", "b"], max_items=2)
    assert graph.weights.tolist() == [1.0]


EDGES = [(7, 8), (8, 7), (9, 7)]


@pytest.mark.parametrize(
    "edges",
    [
        EDGES,
        dict.fromkeys(EDGES),
        np.array(EDGES),
        Topology([0, 0], [1, 2], names=[7, 8, 9]),
        pl.DataFrame(EDGES, schema=["a", "b"], orient="row"),
        pl.LazyFrame(EDGES, schema=["a", "b"], orient="row"),
        pl.DataFrame([(1, *pair) for pair in EDGES], schema=["x", "from", "to"], orient="row"),
        pd.DataFrame(EDGES, columns=["source", "target"]),
        "roads.csv",
    ],
    ids=range(9),
)
def test_a_public_list_of_pairs(edges, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roads.csv").write_text("source,target\n7,8\n8,7\n9,7\n")
    graph = graph_from_flows(RIDES, edges=edges)
    assert (graph.n_nodes, graph.n_edges) == (3, 2)
    assert weights_of(graph) == WEIGHTS
    assert graph.provenance.details["topology"] == "a public list of pairs"


def test_bounds_are_spent_on_pairs_that_count():
    away = [(1, "a", f"elsewhere {i}") for i in range(50)]
    table = pl.DataFrame(
        [*away, (1, "a", "b")], schema=["person", "origin", "destination"], orient="row"
    )
    bounds = {"person": "person", "max_pairs": 1, "max_per_pair": 1}
    for public in ({"nodes": ["a", "b"]}, {"edges": [("a", "b")]}):
        assert graph_from_flows(table, **public, **bounds).weights.tolist() == [1.0]


def test_an_empty_table_has_weights_of_zero():
    assert graph_from_flows(RIDES.clear(), nodes=NODES, **BOUNDS).weights.tolist() == [0.0] * 6
    shared = graph_from_visits(RIDES.clear(), item="origin", items=NODES, max_items=2)
    assert shared.weights.tolist() == [0.0] * 6


def flows(table=RIDES, **options):
    return lambda: graph_from_flows(table, **{"nodes": NODES, **options})


def visits(**options):
    return lambda: graph_from_visits(RIDES, **{"item": "origin", "items": NODES, **options})


LARGE = pl.DataFrame({"origin": [1.0, None], "destination": [2.0, 3.0]})
WRONG = {
    "neither": (flows(nodes=None), UsageError, "neither; never take it from the records"),
    "both": (flows(edges=[(7, 8)]), UsageError, "not both; never take it from the records"),
    "records": (flows(nodes=None, edges=RIDES), UsageError, "edges= is the table of the records"),
    "path": (flows("r.csv", nodes=None, edges="r.csv"), UsageError, "is the table of the records"),
    "no list": (flows(nodes="stations.csv"), UsageError, "a list of ids, .* not a str"),
    "a frame": (flows(nodes=RIDES), UsageError, "give one of its columns"),
    "empty": (flows(nodes=[]), UsageError, "nodes is empty"),
    "twice": (flows(nodes=[7, 8, 7]), UsageError, "7 is twice in the list of nodes"),
    "mixed": (flows(nodes=[7, "8"]), UsageError, "all integers or all texts, not 7 and '8'"),
    "floats": (flows(nodes=[7.5]), UsageError, "all integers or all texts"),
    "huge": (flows(nodes=[2**63]), UsageError, "beyond 64 bits"),
    "too many": (flows(nodes=range(10**6)), InputError, "all pairs of 1,000,000 nodes .* edges="),
    "triple": (flows(nodes=None, edges=[(1, 2, 3)]), UsageError, "must be pairs of nodes"),
    "loop": (flows(nodes=None, edges=[(1, 1)]), GraphError, "joins node 1 to itself"),
    "texts": (flows(nodes=["7", "8"]), InputError, "are texts, and column 'origin' .* type Int64"),
    "integers": (flows(RIDES.cast(pl.String)), InputError, "are integers, and column 'origin'"),
    "dates": (flows(RIDES.cast(pl.Date)), InputError, "of type Date, in which they cannot be"),
    "float ids": (flows(LARGE, nodes=[1, 2**53 + 1]), InputError, "of type Float64, in which"),
    "column": (flows(origin="start"), InputError, "no column 'start'; name the right one, origin="),
    "pandas": (flows(pd.DataFrame({"origin": [1]})), InputError, "no column that is called dest"),
    "same": (flows(origin="destination"), UsageError, "must be different columns"),
    "no table": (flows([(1, 2)]), UsageError, "records must be a data frame .* not list"),
    "series": (flows(RIDES["origin"]), UsageError, "not Series"),
    "suffix": (flows("rides.xlsx"), FileError, "read from files called .parquet"),
    "missing": (flows("rides.csv"), FileError, "does not exist"),
    "caps": (flows(max_pairs=2), UsageError, "name the column that says whose record it is"),
    "no caps": (flows(person="person"), UsageError, "max_pairs must be .* both bounds are needed"),
    "one cap": (flows(person="person", max_pairs=1), UsageError, "max_per_pair must be"),
    "zero": (flows(**{**BOUNDS, "max_pairs": 0}), UsageError, "at least 1, not 0"),
    "true": (flows(**{**BOUNDS, "max_pairs": True}), UsageError, "at least 1, not True"),
    "float": (flows(**{**BOUNDS, "max_per_pair": 1.5}), UsageError, "at least 1, not 1.5"),
    "one item": (visits(max_items=1), UsageError, "at least 2, not 1: a person with fewer"),
    "no items": (visits(max_items=2, items=None), UsageError, "a public list of all items"),
    "persons": (
        lambda: graph_from_visits(
            RIDES.cast({"person": pl.Date}), item="origin", items=NODES, max_items=2
        ),
        InputError,
        "persons must be integers or texts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, kind, words = WRONG[case]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_a_damaged_file_is_said_without_quoting_it(suffix, tmp_path):
    path = tmp_path / f"rides{suffix}"
    path.write_bytes(b"" if suffix == ".csv" else b"secret" * 9)
    with pytest.raises(InputError, match=r"cannot be read|is empty") as caught:
        graph_from_flows(path, nodes=NODES)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_a_query_that_fails_quotes_nothing():
    table = pl.LazyFrame({"origin": ["secret"], "destination": ["7"]}).cast(pl.Int64)
    with pytest.raises(InputError, match="cannot be read to its end") as caught:
        graph_from_flows(table, nodes=NODES)
    assert "secret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("call", [flows(), flows(**BOUNDS), visits(max_items=2)])
def test_an_exception_leaves_no_records_behind(call, monkeypatch):
    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr(Pairs, "weights", fail)
    with pytest.raises(RuntimeError) as caught:
        call()
    step, here = caught.value.__traceback__, "building"
    while step is not None:
        path = step.tb_frame.f_code.co_filename
        assert "ptclust/building" not in path or not step.tb_frame.f_locals, here
        step = step.tb_next
