"""No exception, interrupt or callback leaves private weights behind."""

from __future__ import annotations

import itertools
import json
import linecache
import logging
import math
import pickle
import signal
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, save_npz

import ptclust
from ptclust import (
    DBMSTClu,
    Graph,
    PTClust,
    Release,
    Topology,
    Tree,
    _traces,
    dbmstclu,
    euclidean_spanning_tree,
    minimum_spanning_tree,
    pipeline,
    plan,
    private_spanning_tree,
    read_graph,
    theory,
)
from ptclust.errors import PrivacyWarning, PtclustError
from ptclust.graph import read_topology
from ptclust.inputs import GraphFile, as_tree
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import Plan
from ptclust.published import Published
from tests.lazy import lazy
from tests.leaks import (
    NOISY,
    OPTIONS,
    SOURCES,
    TARGETS,
    WEIGHTS,
    digits,
    everything_said,
    leaks,
    private_graph,
    private_parts,
    table,
)

igraph = lazy("igraph")

nx = lazy("networkx")

pd = lazy("pandas")

UNIT: dict[str, Any] = {"privacy_unit": "one patient"}


def with_weight(place: int, value: Any) -> list[Any]:
    weights: list[Any] = WEIGHTS.tolist()
    weights[place] = value
    return weights


def ends_of(weights: Any) -> list[tuple[int, int, Any]]:
    return list(zip(SOURCES, TARGETS, weights))


def networkx_graph(weights: Any) -> Any:
    graph = nx.Graph()
    graph.add_weighted_edges_from(ends_of(weights))
    return graph


def fit(graph: Any = None, **options: Any) -> Any:
    return PTClust(**(NOISY | UNIT | options)).fit(private_graph() if graph is None else graph)


def carry_out(made: Plan, **options: Any) -> Release:
    request = ReleaseRequest.of(made.request, **UNIT)
    return publish(private_graph(), request, plan=made, **options)


SPOILED = digits(WEIGHTS[4], 9) + "x"

WRONG_CALLS: dict[str, Any] = {
    "nan": lambda: Graph(SOURCES, TARGETS, with_weight(3, math.nan)),
    "infinite": lambda: Graph(SOURCES, TARGETS, with_weight(3, math.inf)),
    "text": lambda: Graph(SOURCES, TARGETS, with_weight(3, SPOILED)),
    "none": lambda: Graph(SOURCES, TARGETS, with_weight(3, None)),
    "an object": lambda: Graph(SOURCES, TARGETS, with_weight(3, {"weight": WEIGHTS})),
    "complex": lambda: Graph(SOURCES, TARGETS, WEIGHTS + 0j),
    "two-dimensional": lambda: Graph(SOURCES, TARGETS, WEIGHTS[:, None]),
    "too few": lambda: Graph(SOURCES, TARGETS, WEIGHTS[:5]),
    "a self-loop": lambda: Graph([0, *SOURCES[1:]], [0, *TARGETS[1:]], WEIGHTS),
    "parallel edges": lambda: Graph([0, *SOURCES], [1, *TARGETS], [0.5, *WEIGHTS]),
    "a wrong merge": lambda: Graph([0, *SOURCES], [1, *TARGETS], [0.5, *WEIGHTS], merge="mean"),
    "kind": lambda: Graph(SOURCES, TARGETS, WEIGHTS, kind="weights"),
    "networkx with text": lambda: fit(networkx_graph(with_weight(2, SPOILED))),
    "networkx without": lambda: fit(networkx_graph(with_weight(2, None))),
    "igraph with text": lambda: fit(
        igraph.Graph(8, list(zip(SOURCES, TARGETS)), edge_attrs={"weight": with_weight(2, SPOILED)})
    ),
    "igraph without": lambda: fit(
        igraph.Graph(8, list(zip(SOURCES, TARGETS)), edge_attrs={"weight": with_weight(2, None)})
    ),
    "polars with text": lambda: Graph.from_dataframe(
        pl.DataFrame(
            {
                "source": SOURCES,
                "target": TARGETS,
                "weight": list(map(str, with_weight(2, SPOILED))),
            }
        )
    ),
    "pandas with text": lambda: Graph.from_dataframe(
        pd.DataFrame({"source": SOURCES, "target": TARGETS, "weight": with_weight(2, SPOILED)})
    ),
    "a matrix of which some edges have a mirror": lambda: fit(
        coo_array(
            (np.r_[WEIGHTS, WEIGHTS[:3]], (SOURCES + TARGETS[:3], TARGETS + SOURCES[:3])),
            shape=(8, 8),
        )
    ),
    "a complex matrix": lambda: fit(coo_array((WEIGHTS + 0j, (SOURCES, TARGETS)), shape=(8, 8))),
    "a matrix that is not square": lambda: fit(
        coo_array((WEIGHTS, (SOURCES, TARGETS)), shape=(8, 9))
    ),
    "a dense matrix": lambda: fit(np.diag(WEIGHTS)),
    "a list": lambda: fit(WEIGHTS.tolist()),
    "a data frame": lambda: fit(pd.DataFrame({"weight": WEIGHTS})),
    "wrong bounds": lambda: fit(clip=(1, 0)),
    "epsilon": lambda: fit(epsilon=0),
    "delta": lambda: fit(delta=2),
    "split": lambda: fit(split=1),
    "sensitivity": lambda: fit(sensitivity=None),
    "mechanism": lambda: fit(mechanism="prim"),
    "calibration": lambda: fit(calibration="none"),
    "gaussian without delta": lambda: fit(mechanism="gaussian"),
    "a tree": lambda: fit(minimum_spanning_tree(private_graph())),
    "shift": lambda: fit(shift="x"),
    "scale": lambda: fit(scale=-1),
    "size": lambda: fit(min_cluster_size=0),
    "unit": lambda: fit(privacy_unit="\n"),
    "seed": lambda: fit(random_state=-1),
    "a warning": lambda: fit(epsilon=1e-3, clip=(0, 1)),  # warnings are errors here
    "the published scales": lambda: fit(calibration="published"),
    "plan of a graph": lambda: plan(private_graph(), **NOISY),
    "another plan": lambda: carry_out(plan(Topology([0], [1]), **NOISY)),
    "private tree: mechanism": lambda: private_spanning_tree(
        private_graph(), **NOISY, mechanism="prim"
    ),
    "private tree: budget": lambda: private_spanning_tree(
        private_graph(), epsilon=0, sensitivity=NOISY["sensitivity"]
    ),
    "private tree: not a graph": lambda: private_spanning_tree(WEIGHTS, **NOISY),
    "dbmstclu on negative weights": lambda: DBMSTClu().fit(Graph(SOURCES, TARGETS, -WEIGHTS)),
    "linkage of negative weights": lambda: minimum_spanning_tree(
        Graph(SOURCES, TARGETS, -WEIGHTS)
    ).to_linkage(),
    "a tree with too few weights": lambda: Tree(Topology([0], [1]), WEIGHTS, private=True),
    "a tree that is not finite": lambda: Tree(
        Topology([0, 1], [1, 2]), [WEIGHTS[0], math.nan], private=True
    ),
    "a release of a private tree": lambda: Published(
        "kruskal", fit().release_.weight_noise, minimum_spanning_tree(private_graph())
    ),
    "a release of private weights": lambda: Release(
        published=private_graph(),
        statement=fit().release_.statement,
    ),
    "a shift that does not suffice": lambda: fit(shift=-9.0, clusterer="dbmstclu"),
    "an attribute": lambda: private_graph().wieghts,  # type: ignore[attr-defined]
    "pickle": lambda: pickle.dumps(private_graph()),
    "json": lambda: json.dumps(private_graph()),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_no_exception_says_a_weight(name):
    expected = (PtclustError, PrivacyWarning, TypeError, AttributeError)
    with pytest.raises(expected) as caught:
        WRONG_CALLS[name]()
    assert not leaks(everything_said(caught.value))
    assert remembered(caught.value) == []


def test_no_exception_in_the_middle_of_a_release_says_a_weight(monkeypatch):
    """A sampler that fails with the weights in its text."""

    def fail(*arguments: Any) -> Any:
        raise RuntimeError(f"cannot add noise to {WEIGHTS.tolist()}")

    topology = private_graph().topology
    names = ("kruskal", "laplace", "cube")
    plans = [plan(topology, **NOISY, mechanism=name) for name in names]
    assert {made.chosen.weights.distribution for made in plans} == {"laplace", "cube"}
    for made in plans:
        noise = type(made.mechanism).draw.__globals__["with_noise"].__globals__["add_noise"]
        inside = noise.__globals__
        monkeypatch.setitem(inside, "added_on_lattice", fail)
        with pytest.raises(PtclustError, match="Nothing was released") as caught:
            carry_out(made)
        assert not leaks(everything_said(caught.value))
        assert remembered(caught.value) == []


def test_logs_warnings_and_streams_stay_silent(caplog, capfd, tmp_path):
    """Everything at DEBUG but the compiler of the kernels, which logs every line it compiles."""
    caplog.set_level(logging.INFO, logger="numba")
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("curator").debug("hears everything")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for kind in OPTIONS:
                model = PTClust(**NOISY, **OPTIONS[kind]).fit(private_graph())
                model.release_.save(tmp_path / f"{kind}.json")
            PTClust(epsilon=1e-3, sensitivity=NOISY["sensitivity"], clip=(0, 1)).fit(
                private_graph()
            )
            private_spanning_tree(private_graph(), **NOISY)
            DBMSTClu().fit(private_graph())
            for call in WRONG_CALLS.values():
                try:
                    call()
                except Exception:
                    logging.getLogger("curator").exception("a call failed")
    assert "a call failed" in caplog.text
    assert "hears everything" in caplog.text
    assert not leaks(caplog.text)
    assert not [record for record in caplog.records if record.name.startswith("ptclust")]
    assert any(issubclass(entry.category, PrivacyWarning) for entry in caught)
    assert not leaks(" ".join(str(entry.message) for entry in caught))
    streams = capfd.readouterr()
    assert not leaks(streams.out + streams.err)


def test_progress_reports_counts_only():
    reported: list[str] = []
    for kind in ("kruskal", "gaussian"):
        given = {key: OPTIONS[kind][key] for key in ("mechanism", "delta") if key in OPTIONS[kind]}
        made = plan(private_graph().topology, **NOISY, **given)
        carry_out(made, progress=reported.append)
    assert len(reported) >= 4
    assert not leaks(" ".join(reported))


PACKAGE = str(Path(ptclust.__file__).parent)

#: What the decorator of functions that see weights has itself: functions.
OF_GUARD = {"function", "forget_frames", "handled_now"}


def is_ours(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith(PACKAGE)


def remembered(error: BaseException | None) -> list[str]:
    """What an exception, or one it came from, still knows of the package's functions and below.

    The first of them that is in a traceback is what the user called; the frames above are the
    user's own.
    """
    found, todo, seen = [], [error], set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        todo += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
        step = one.__traceback__
        while step is not None and not is_ours(step.tb_frame):
            step = step.tb_next
        if step is None:
            continue
        shown = traceback.TracebackException(type(one), one, step, capture_locals=True)
        found += leaks("".join(shown.format(chain=False)))
        fields = [getattr(one, name, None) for name in ("obj", "object", "doc", "value")]
        found += private_parts([one.args, vars(one), fields])
        while step is not None:
            frame, step = step.tb_frame, step.tb_next
            if frame.f_locals is frame.f_globals:  # a module that was being imported
                continue
            guard = frame.f_code.co_name == "guard" and is_ours(frame)
            kept = set(frame.f_locals) - (OF_GUARD if guard else set())
            found += [f"variable {name} of {frame.f_code.co_qualname}" for name in sorted(kept)]
            found += private_parts(dict(frame.f_locals))
    return found


def matrix(weights: Any) -> Any:
    return coo_array((np.asarray(weights), (SOURCES, TARGETS)), shape=(8, 8))


NAMED: Any = {"source": "source", "target": "target", "weight": "weight"}

DISTANCES: Any = {"kind": "distance"}


def write_text(path: Path, weights: Any, separator: str) -> None:
    rows = [separator.join(map(str, row)) for row in [tuple(NAMED), *ends_of(weights)]]
    path.write_text("\n".join(rows) + "\n")


def frame_graph(frame: Any) -> Graph:
    return Graph.from_dataframe(frame, **DISTANCES)


#: How to make a thing that holds weights, and the call that makes a graph of it.
HOLDERS: dict[str, tuple[Callable[[Any, Path], Any], Callable[[Any], Any]]] = {
    "arrays": (lambda weights, _: weights, lambda weights: Graph(SOURCES, TARGETS, weights)),
    "networkx": (lambda weights, _: networkx_graph(weights), Graph.from_networkx),
    "igraph": (
        lambda weights, _: igraph.Graph(
            8, list(zip(SOURCES, TARGETS)), edge_attrs={"weight": weights}
        ),
        Graph.from_igraph,
    ),
    "scipy": (lambda weights, _: matrix(weights), Graph.from_scipy),
    "pandas": (lambda weights, _: pd.DataFrame(table(weights)), frame_graph),
    "polars": (
        lambda weights, _: pl.DataFrame(table(weights), strict=False),
        frame_graph,
    ),
    "csv": (
        lambda weights, path: write_text(path, weights, ","),
        lambda path: read_graph(path, format="csv", **NAMED, **DISTANCES),
    ),
    "tsv": (
        lambda weights, path: write_text(path, weights, "\t"),
        lambda path: read_graph(path, format="tsv", **NAMED, **DISTANCES),
    ),
    "parquet": (
        lambda weights, path: pl.DataFrame(table(weights), strict=False).write_parquet(path),
        lambda path: read_graph(path, format="parquet", **NAMED, **DISTANCES),
    ),
    "graphml": (
        lambda weights, path: nx.write_graphml(networkx_graph(weights), path),
        lambda path: read_graph(path, format="graphml", **DISTANCES),
    ),
    "mtx": (
        lambda weights, path: mmwrite(path.with_suffix(".mtx"), matrix(weights)),
        lambda path: read_graph(path.with_suffix(".mtx"), **DISTANCES),
    ),
    "npz": (
        lambda weights, path: save_npz(path.with_suffix(".npz"), matrix(weights)),
        lambda path: read_graph(path.with_suffix(".npz"), **DISTANCES),
    ),
}

BAD: dict[str, Any] = {
    "text": SPOILED,
    "none": None,
    "nan": math.nan,
    "object": {"weight": float(WEIGHTS[0])},
    "complex": complex(WEIGHTS[0]),
    "list": WEIGHTS[:2].tolist(),
}


def holder_of(kind: str, weights: Any, folder: Path) -> Callable[[], Any]:
    """Return the call that makes a graph of weights in a holder of some kind."""
    make, read = HOLDERS[kind]
    made = make(weights, folder / kind)
    return lambda: read(folder / kind if made is None else made)


@pytest.mark.parametrize("kind", HOLDERS)
def test_bad_weights_in_every_holder_leave_nothing_behind(kind, tmp_path):
    n_refused = 0
    for bad in BAD.values():
        try:
            call = holder_of(kind, with_weight(3, bad), tmp_path)
        except Exception:  # such a holder cannot be made
            continue
        with pytest.raises((PtclustError, TypeError)) as caught:
            call()
        n_refused += 1
        assert not leaks(everything_said(caught.value))
        assert remembered(caught.value) == []
    assert n_refused


POINTS = np.stack([WEIGHTS, WEIGHTS[::-1]], axis=1)


def calls_of_everything(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the entry points that see private weights, each with a call that succeeds."""
    for kind in HOLDERS:
        yield f"read {kind}", holder_of(kind, WEIGHTS.tolist(), folder)
    graph = private_graph()
    tree, path = minimum_spanning_tree(graph), folder / "csv"
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    yield "merge", lambda: Graph([0, *SOURCES], [1, *TARGETS], [0.5, *WEIGHTS], merge="sum")
    yield "points", lambda: Graph.from_points(POINTS)
    yield "neighbours", lambda: Graph.from_points(POINTS, n_neighbors=2)
    for name in ("to_networkx", "to_igraph", "to_scipy", "to_dataframe"):
        yield f"graph {name}", getattr(graph, name)
    yield "clipped", lambda: graph.clipped(0.2, 0.8)
    yield "topology of a table", lambda: read_topology(path, format="csv", **NAMED)
    yield "topology of a matrix", lambda: read_topology(folder / "npz.npz")
    yield "tree", lambda: minimum_spanning_tree(graph)
    yield "tree of points", lambda: euclidean_spanning_tree(POINTS)
    yield "a Tree", lambda: Tree(tree.topology, tree.weights.tolist(), private=True)
    for name in ("to_linkage", "to_networkx", "to_dataframe"):
        yield f"tree {name}", getattr(tree, name)
    for name in ("kruskal", "pamst", "laplace", "gaussian"):
        given = {"mechanism": name, "delta": 1e-6 if name == "gaussian" else 0}
        model = PTClust(**NOISY, **given, **UNIT, clip=(0.2, 0.8) if name == "kruskal" else None)
        yield f"fit {name}", partial(model.fit, graph)
    yield "fit and predict", lambda: model.fit_predict(networkx_graph(WEIGHTS))
    for name in ("kruskal", "pamst", "laplace"):
        yield f"tree by {name}", partial(private_spanning_tree, graph, **NOISY, mechanism=name)
    made = plan(graph.topology, **NOISY, mechanism="kruskal")
    request = ReleaseRequest.of(made.request, **UNIT, topology="public")
    yield "publish", lambda: publish(graph, request)
    (folder / "edges.csv").write_bytes(path.read_bytes())
    file = GraphFile(folder / "edges.csv", **NAMED, **DISTANCES)
    yield "publish file", lambda: pipeline.prepare(file.read(), request).draw()
    yield "cluster file", lambda: dbmstclu(as_tree(file.read_here())[0])
    cut = DBMSTClu()
    yield "DBMSTClu", lambda: cut.fit(graph)
    yield "DBMSTClu of points", lambda: cut.fit(np.concatenate([POINTS, POINTS]))
    yield "DBMSTClu predicts", lambda: cut.fit_predict(POINTS)
    yield "dbmstclu", lambda: dbmstclu(tree)
    yield "check", lambda: theory.check_clusters(graph, labels, made)


def lines_of(call: Callable[[], Any]) -> list[tuple[types.CodeType, int]]:
    """Return the lines of the package that a call runs, in threads of its own, too."""
    seen: dict[tuple[types.CodeType, int], None] = {}

    def within(frame: types.FrameType, event: str, _: Any) -> Any:
        if event == "line":
            seen[frame.f_code, frame.f_lineno] = None
        return within

    def trace(frame: types.FrameType, *_: Any) -> Any:
        imported = frame.f_code.co_name == "<module>"
        return within if is_ours(frame) and not imported else None

    traced(call, trace)
    return list(seen)


def traced(call: Callable[[], Any], trace: Any) -> None:
    before = sys.gettrace(), threading.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before[0])
        threading.settrace(before[1])


def interrupted(
    call: Callable[[], Any], place: tuple[types.CodeType, int], error: type[BaseException]
) -> BaseException | None:
    """Return what comes out of a call if an error is raised the first time it gets to a line."""
    code, line = place
    due = [error]

    def within(frame: types.FrameType, event: str, _: Any) -> Any:
        if event == "line" and frame.f_lineno == line and due:
            raise due.pop()
        return within

    def trace(frame: types.FrameType, *_: Any) -> Any:
        return within if frame.f_code is code and due else None

    try:
        traced(call, trace)
    except BaseException as problem:
        return problem
    return None


Place = tuple[types.CodeType, int]


def places_of(call: Callable[[], Any]) -> list[Place]:
    """Return the lines of the package at which a call may be interrupted."""
    call()  # compiles and imports what there is to compile and to import

    def is_place(code: types.CodeType, line: int) -> bool:
        # The decorator has tests of its own; nothing real is raised at a "try:", where not even
        # the "with" around it would hear of it.
        of_guard = code.co_filename == _traces.__file__
        return not of_guard and linecache.getline(code.co_filename, line).strip() != "try:"

    return [place for place in lines_of(call) if is_place(*place)]


@pytest.fixture
def entry_points(tmp_path) -> dict[str, Callable[[], Any]]:
    return dict(calls_of_everything(tmp_path))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of files opened just then
def test_an_interrupt_at_any_line_leaves_nothing_behind(entry_points):
    """Ctrl-C comes, and memory ends, where they will, in a thread of the noise, too."""
    done: set[Place] = set()
    stopped: set[str] = set()
    errors = itertools.cycle([KeyboardInterrupt, MemoryError])
    for name, call in entry_points.items():
        n_stopped = 0
        for number, place in enumerate(places_of(call)):
            # Of lines that another entry point has run, some are enough.
            if place in done and number % 100:
                continue
            done.add(place)
            error = next(errors)
            problem = interrupted(call, place, error)
            if problem is not None:
                where = f"{name}: {place[0].co_qualname}, line {place[1]}, {error.__name__}"
                assert remembered(problem) == [], where
                stopped.add(place[0].co_name)
                n_stopped += 1
        assert n_stopped, name
    assert len(done) > 1000
    assert stopped >= {
        "_exactly_noisy_chunk",
        "draw_edges",
        "_in_order",
        "edges_of_frame",
        "fit",
        "publish",
    }


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_without_the_decorator_all_of_them_would(entry_points, monkeypatch):
    """The test above can fail, for every entry point."""
    monkeypatch.setattr(_traces, "_clear", lambda *_: None)
    for name, call in entry_points.items():
        problems = (interrupted(call, place, KeyboardInterrupt) for place in places_of(call)[::-1])
        assert any(map(private_values, problems)), name


def private_values(error: BaseException | None) -> list[str]:
    """What an exception remembers that is private beyond doubt."""
    return [found for found in remembered(error) if not found.startswith("variable ")]


@pytest.mark.parametrize("mechanism", ["kruskal", "pamst", "laplace"])
def test_callbacks_that_fail_leave_nothing_behind(mechanism, request):
    """Ctrl-C while progress is shown, and a disk that is full."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    made = plan(private_graph().topology, **NOISY, mechanism=mechanism)
    reported: list[str] = []
    carry_out(made, progress=reported.append)
    for last in reported:

        def show(text: str, last: str = last) -> None:
            if text == last:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt) as caught:
            carry_out(made, progress=show)
        assert remembered(caught.value) == []

    def full(release: Release) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space") as failed:
        carry_out(made, keep=full)
    assert remembered(failed.value) == []
