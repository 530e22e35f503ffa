"""Until a release is paid for, neighbouring weights make no difference: neither in what is raised
and said, nor in the exit code."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings

from ptclust.errors import PtclustError
from ptclust.graph import Graph, read_graph, read_topology
from ptclust.ledger import Payment
from ptclust.mechanisms import MECHANISMS
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning.plan import PlanRequest
from ptclust.privacy import Sensitivity
from tests.lazy import lazy

igraph, nx, pd = lazy("igraph"), lazy("networkx"), lazy("pandas")

#: Where code may be tempted to decide by a value.
ODD = [0.0, -0.0, 1.0, 2.0, 0.5, -1.0, 2.0**53, 2.0**53 + 2, 1e308, -1e308, 5e-324, 1e-9, 3.0, 50.0]
VALUES = st.sampled_from(ODD) | st.integers(-3, 60).map(float) | st.floats(-1e6, 1e6)
FORMATS = ["csv", "tsv", "txt", "parquet", "graphml", "mtx", "npz", "matrix.npz"]
OTHERS = ["arrays", "networkx", "igraph", "scipy", "polars", "pandas"]


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, Any]:
    """Rows of a graph, weights and neighbouring weights, and options that may be refused."""
    n = draw(st.integers(2, 5))
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    complete = [(a, b) for a, b in pairs if a < b]
    some = st.lists(st.sampled_from(pairs), min_size=1, max_size=12)
    both_ways = st.just(complete + [(b, a) for a, b in complete])
    rows = draw(st.just(complete) | both_ways | some)
    weights = draw(st.lists(VALUES, min_size=len(rows), max_size=len(rows)))
    other = list(weights)
    for row in draw(st.sets(st.integers(0, len(rows) - 1), min_size=1)):
        other[row] = draw(VALUES | st.just(weights[row] + 1e-9) | st.just(weights[row] + 1.0))
    return {
        "n": n,
        "rows": rows,
        "weights": (weights, other),
        "merge": draw(st.sampled_from([None, "min", "max", "sum"])),
        "kind": draw(st.sampled_from([None, "distance", "similarity"])),
        "clip": draw(st.sampled_from([None, (0.0, 1.0), (0.0, 50.0), (-1e9, 2.0**54)])),
        "mechanism": draw(st.sampled_from(MECHANISMS.names)),
    }


def write(form: str, folder: Path, rows: Any, weights: list[float], n: int) -> Path:
    """Write a file whose weights, and nothing else, depend on the weights."""
    path = folder / f"edges.{form}"
    sources, targets = (list(ends) for ends in zip(*rows))
    if form in ("csv", "tsv", "txt"):
        separator = {"csv": ",", "tsv": "\t", "txt": ";"}[form]
        lines = [["source", "target", "weight"], *zip(sources, targets, weights)]
        path.write_text("".join(separator.join(map(str, line)) + "\n" for line in lines))
    elif form == "parquet":
        columns = {"source": sources, "target": targets, "weight": weights}
        pl.DataFrame(columns).write_parquet(path)
    elif form == "graphml":
        graph = nx.MultiDiGraph()
        graph.add_nodes_from(range(n))
        graph.add_weighted_edges_from(zip(sources, targets, weights))
        nx.write_graphml(graph, path)
    elif form == "mtx":
        lines = [f"{a + 1} {b + 1} {w!r}\n" for (a, b), w in zip(rows, weights)]
        head = f"%%MatrixMarket matrix coordinate real general\n{n} {n} {len(rows)}\n"
        path.write_text(head + "".join(lines))
    elif form == "npz":
        np.savez(path, sources=sources, targets=targets, weights=weights)
    else:
        scipy.sparse.save_npz(path, matrix(rows, weights, n))
    return path


def matrix(rows: Any, weights: list[float], n: int) -> Any:
    return scipy.sparse.coo_array((weights, tuple(zip(*rows))), shape=(n, n))


def convert(source: str, rows: Any, weights: list[float], n: int, merge: Any, kind: Any) -> Graph:
    options = {"merge": merge, "kind": kind or "distance"}
    sources, targets = (list(ends) for ends in zip(*rows))
    if source == "arrays":
        return Graph(sources, targets, weights, n_nodes=n, **options)
    if source == "networkx":
        graph = nx.MultiDiGraph()
        graph.add_weighted_edges_from(zip(sources, targets, weights))
        return Graph.from_networkx(graph, **options)
    if source == "igraph":
        attributes = {"weight": weights}
        graph = igraph.Graph(n=n, edges=rows, directed=True, edge_attrs=attributes)
        return Graph.from_igraph(graph, **options)
    if source == "scipy":
        return Graph.from_scipy(matrix(rows, weights, n), **options)
    frame = {"polars": pl.DataFrame, "pandas": lambda columns: pd.DataFrame(columns)}[source]
    columns = {"source": sources, "target": targets, "weight": weights}
    return Graph.from_dataframe(frame(columns), merge=merge, kind=kind)


class PaidError(Exception):
    """The charge was reached."""


class Till(Payment):
    """A payment that ends the run."""

    def charge(self, spent: Any, *, statement_id: str, description: str) -> None:
        raise PaidError(f"{spent} for {description}")


def before_the_charge(make: Any, case: dict[str, Any]) -> list[str]:
    """Return all that is raised, warned of and shown until the charge."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            graph = make()
            said.append(repr(graph))
            plan = PlanRequest(
                epsilon=1,
                delta=1e-6 if case["mechanism"] == "gaussian" else 0,
                sensitivity=Sensitivity(l1=1.0),
                mechanism=case["mechanism"],
                clip=case["clip"],
            )
            publish(graph, ReleaseRequest.of(plan, payment=Till(None, "")), progress=said.append)
        except (PtclustError, PaidError) as error:
            said.append(f"{type(error).__name__}: {error}")
    return [*said, *(str(warning.message) for warning in warned)]


EXAMPLES = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.parametrize("source", OTHERS)
@settings(max_examples=300, **EXAMPLES)
@given(case=inputs())
def test_conversions(source, case):
    said = [
        before_the_charge(
            lambda weights=weights: convert(
                source, case["rows"], weights, case["n"], case["merge"], case["kind"]
            ),
            case,
        )
        for weights in case["weights"]
    ]
    assert said[0] == said[1]


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=200, **EXAMPLES)
@given(case=inputs())
def test_files(form, case, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    options = {"merge": case["merge"], "kind": case["kind"]}
    said = []
    for weights in case["weights"]:
        path = write(form, folder, case["rows"], weights, case["n"])
        said.append(before_the_charge(lambda path=path: read_graph(path, **options), case))
    assert said[0] == said[1]


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=60, **EXAMPLES)
@given(case=inputs(), wrong=st.sampled_from(["", "nan", "inf", "x", "1e999"]))
def test_a_topology_is_read_without_weights(form, case, wrong, tmp_path_factory):
    """Wrong weights, which read_graph refuses, make no difference to who plans."""
    folder = tmp_path_factory.getbasetemp()
    found = []
    for weights in case["weights"]:
        path = write(form, folder, case["rows"], weights, case["n"])
        if form in ("csv", "txt", "tsv", "mtx", "graphml") and weights is case["weights"][1]:
            given, damaged = repr(weights[0]), path.read_text()
            head, _, rest = damaged.partition("\n")
            path.write_text(head + "\n" + rest.replace(given, wrong or "nan", 1))
        try:
            found.append(repr(read_topology(path, merge=case["merge"])))
        except PtclustError as error:
            found.append(f"{type(error).__name__}: {error}")
    assert found[0] == found[1]


@pytest.mark.parametrize("form", ["csv", "parquet", "mtx", "matrix.npz"])
@settings(max_examples=25, **EXAMPLES)
@given(case=inputs())
def test_the_command_line(form, case, tmp_path_factory):
    """Exit code and message, against a ledger with nothing left: it ends at the charge."""
    from typer.testing import CliRunner

    from ptclust.cli import app, main

    folder = tmp_path_factory.getbasetemp()
    book = folder / "ledger"
    if not book.exists():
        from ptclust.ledger import Ledger
        from ptclust.privacy.budget import Budget

        Ledger.create(book).add_dataset("survey", Budget.pure("1e-9"))
    arguments = ["cluster", "--l1", "1", "--epsilon", "1", "--privacy-unit", "one ride"]
    arguments += ["--mechanism", "laplace", "--topology", "public"]
    arguments += ["--ledger", str(book), "--dataset", "survey", "-o", str(folder / "none.json")]
    for option in ("merge", "kind"):
        if case[option] is not None:
            arguments += [f"--{option}", case[option]]
    if case["clip"] is not None:
        arguments += ["--clip", *map(repr, case["clip"])]
    said = []
    for weights in case["weights"]:
        path = write(form, folder, case["rows"], weights, case["n"])
        ran = CliRunner().invoke(app, [*arguments, str(path)])
        problem = "" if ran.exception is None else f"{type(ran.exception)}: {ran.exception}"
        said.append((ran.exit_code, ran.output, problem))
        assert callable(main)
    assert said[0] == said[1]
    assert not (folder / "none.json").exists()
