"""Private weights stay private: in texts, files, pickles, exceptions, logs and fitted models."""

from __future__ import annotations

import base64
import copy
import gc
import itertools
import json
import logging
import math
import pickle
import pickletools
import struct
import traceback
import types
import warnings
import weakref
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import coo_array

from ptclust import (
    DBMSTClu,
    Graph,
    PTClust,
    Release,
    Sensitivity,
    Topology,
    Tree,
    minimum_spanning_tree,
    plan,
    private_spanning_tree,
)
from ptclust.errors import PrivacyWarning, PtclustError
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import Plan
from ptclust.published import Published
from tests.lazy import lazy

igraph = lazy("igraph")
nx = lazy("networkx")
pd = lazy("pandas")

#: Digits that nobody writes by chance.
WEIGHTS = np.array([
    0.123456789, 0.987654321, 0.271828182845, 0.314159265358, 0.577215664901, 0.161803398874,
    0.141421356237, 0.173205080756, 0.693147180559, 0.915965594177, 0.642857192037, 0.834626841674,
])  # fmt: skip
SOURCES = [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4]
TARGETS = [1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 6]
#: Noise of about the size of the weights.
NOISY: dict[str, Any] = {"epsilon": 1.0, "sensitivity": Sensitivity(linf=0.01)}
OPTIONS: dict[str, dict[str, Any]] = {
    "kruskal": {"mechanism": "kruskal"},
    "pamst": {"mechanism": "pamst", "delta": 1e-6},
    "laplace": {"mechanism": "laplace", "clip": (0.05, 2.0)},
    "gaussian": {"mechanism": "gaussian", "delta": 1e-6, "clip": (0.0, 1.0)},
    "published": {"mechanism": "pamst", "calibration": "published", "min_cluster_size": 2},
    "reproducible": {"random_state": 11},
}


def private_graph() -> Graph:
    return Graph(SOURCES, TARGETS, WEIGHTS, names="abcdefgh")


def fitted(kind: str) -> PTClust:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return PTClust(**NOISY, **OPTIONS[kind]).fit(private_graph())


def digits(weight: float, count: int) -> str:
    return f"{weight:.15f}".removeprefix("0.")[:count]


def leaks(text: str, count: int = 5) -> list[str]:
    """The weights whose first digits are in a text; noisy ones share five by chance, not nine."""
    return [digits(weight, count) for weight in WEIGHTS.tolist() if digits(weight, count) in text]


def leaks_of_bytes(content: bytes) -> list[float]:
    """The weights that are in these bytes as doubles."""
    return [
        w for w in WEIGHTS.tolist() if any(struct.pack(form, w) in content for form in ["<d", ">d"])
    ]


def is_leaked(array: np.ndarray) -> bool:
    return bool(np.isin(WEIGHTS, array).any())


class TestTheDetectors:
    """A test that cannot fail shows nothing."""

    def test_of_texts(self):
        assert leaks(f"the weight is {WEIGHTS[0]:.6g}") == ["12345"]
        assert leaks(repr(WEIGHTS.tolist()), 9) == [digits(w, 9) for w in WEIGHTS]
        assert not leaks("0.12344 0.98766")

    def test_of_bytes(self):
        assert leaks_of_bytes(b"x" + WEIGHTS[3:5].tobytes()) == WEIGHTS[3:5].tolist()
        assert leaks_of_bytes(pickle.dumps({"x": [float(WEIGHTS[2])]})) == [WEIGHTS[2]]

    def test_of_objects(self):
        for holder in (
            {"a": [WEIGHTS.reshape(3, 4)]},
            types.SimpleNamespace(x=(float(WEIGHTS[1]),)),
            np.concatenate([WEIGHTS, [1.0]])[12:],  # a view of what is private
            lambda graph=WEIGHTS: graph,
        ):
            assert private_parts(holder), holder
        assert private_parts([private_graph()])
        assert private_parts([minimum_spanning_tree(private_graph())])
        assert not private_parts([np.ones(3), {"x": 1.0}])

    def test_of_exceptions(self):
        with pytest.raises(ValueError, match="could not convert") as caught:
            np.array([digits(WEIGHTS[0], 9) + "x"], dtype=float)
        assert leaks(everything_said(caught.value))
        hidden = TypeError("unrelated")
        hidden.__context__ = caught.value
        hidden.__suppress_context__ = True
        assert leaks(everything_said(hidden))


def private_parts(root: Any) -> list[str]:
    """All that is private and reachable from an object by the garbage collector's references."""
    stops = (types.ModuleType, type, types.BuiltinFunctionType, types.CodeType, types.FrameType)
    found, seen, todo = [], {id(root)}, [root]
    keep = []  # so that ids stay unique
    while todo:
        thing = todo.pop()
        keep.append(thing)
        if isinstance(thing, Graph) or (isinstance(thing, Tree) and thing.private):
            found.append(repr(thing))
        if isinstance(thing, np.ndarray) and thing.dtype.kind == "f" and is_leaked(thing):
            found.append(f"array of shape {thing.shape}")
        if isinstance(thing, float) and thing in WEIGHTS:
            found.append("float")
        parts = list(gc.get_referents(thing))
        if isinstance(thing, np.ndarray):
            parts = [thing.base, *(thing.ravel().tolist() if thing.dtype == object else [])]
        if isinstance(thing, types.FunctionType):
            parts = [thing.__defaults__, thing.__kwdefaults__, thing.__closure__]
        for part in parts:
            if id(part) not in seen and not isinstance(part, stops):
                seen.add(id(part))
                todo.append(part)
    return found


@pytest.mark.parametrize("kind", OPTIONS)
class TestWhatIsPublished:
    def test_texts(self, kind):
        model = fitted(kind)
        release, statement = model.release_, model.release_.statement
        for thing in (model, model.plan_, model.plan_.chosen, release, release.tree, statement):
            assert not leaks(f"{thing!r} {thing}", 9)
        assert not leaks(repr(release.tree.topology) + repr(vars(model)), 9)
        assert not leaks(model.plan_.to_text() + json.dumps(model.plan_.to_dict()))
        assert not leaks(statement.to_text() + json.dumps(statement.to_dict()), 9)
        assert not leaks(statement.sentence)
        if statement.private:
            assert not leaks(statement.to_registry_yaml(), 9)
        assert not leaks(model._repr_html_(), 9)

    def test_the_json_file(self, kind, tmp_path):
        release = fitted(kind).release_
        release.save(tmp_path / "release.json")
        text = (tmp_path / "release.json").read_text()
        assert not leaks(text, 9)
        numbers = np.array(all_numbers(json.loads(text)))
        assert len(numbers) > 7
        assert set(release.tree.weights.tolist()) <= set(numbers.tolist()), "the walk finds arrays"
        assert not is_leaked(numbers)
        assert not is_leaked(-numbers)
        public = {0.0, 1.0, 2.0, 0.05, 0.01}
        noisy = np.array(sorted(set(numbers[numbers % 1 != 0].tolist()) - public))
        of_released, of_true = differences(noisy), differences(WEIGHTS)
        closest = np.abs(of_released[:, None] - of_true).min()
        assert closest > 1e-13, "two weights with the same noise differ as the true ones do"

    def test_other_files(self, kind, tmp_path):
        release = fitted(kind).release_
        release.to_csv(tmp_path / "labels.csv")
        release.to_graphml(tmp_path / "tree.graphml")
        release.to_parquet(tmp_path / "labels.parquet")
        assert not leaks((tmp_path / "labels.csv").read_text())
        assert not leaks((tmp_path / "tree.graphml").read_text(), 9)
        table = pl.read_parquet(tmp_path / "labels.parquet")
        assert table.columns == pl.read_csv(tmp_path / "labels.csv").columns == ["node", "label"]
        assert table.schema["label"].is_integer()
        assert not leaks_of_bytes((tmp_path / "labels.parquet").read_bytes())

    def test_the_fitted_model_reaches_nothing_private(self, kind):
        assert private_parts(fitted(kind)) == []

    def test_the_pickle_holds_nothing_private(self, kind):
        pickled = pickle.dumps(fitted(kind))
        assert leaks_of_bytes(pickled) == []
        assert not leaks(pickled.decode("latin-1"), 9)
        names = [str(argument) for _, argument, _ in pickletools.genops(pickled) if argument]
        assert "Topology" in names
        assert "Graph" not in names
        assert private_parts(pickle.loads(pickled)) == []

    def test_nothing_else_holds_on_to_the_weights(self, kind):
        """After the fit the last reference is the caller's."""
        graph = private_graph()
        here = weakref.ref(graph), weakref.ref(graph.weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            model = PTClust(**NOISY, **OPTIONS[kind]).fit(graph)
        del graph
        gc.collect()
        assert [reference() for reference in here] == [None, None]
        assert model.labels_ is not None  # alive to the end


def all_numbers(content: Any) -> list[float]:
    """All numbers in a JSON document, those in encoded arrays included."""
    if isinstance(content, dict):
        if set(content) == {"dtype", "length", "data"}:
            stored = np.dtype(content["dtype"]).newbyteorder("<")
            array: list[float] = np.frombuffer(base64.b64decode(content["data"]), stored).tolist()
            return [float(number) for number in array]
        return [number for part in content.values() for number in all_numbers(part)]
    if isinstance(content, list):
        return [number for part in content for number in all_numbers(part)]
    return [float(content)] if isinstance(content, (int, float)) else []


def differences(values: np.ndarray) -> np.ndarray:
    return np.array([abs(a - b) for a, b in itertools.combinations(values.tolist(), 2)])


def test_texts_of_what_is_private():
    graph = private_graph()
    tree = minimum_spanning_tree(graph)
    for thing in (graph, tree, graph.topology, [graph], {"graph": graph}):
        assert not leaks(f"{thing!r} {thing}")
    assert "<private>" in repr(graph)


@pytest.mark.parametrize("make", [private_graph, lambda: minimum_spanning_tree(private_graph())])
def test_what_is_private_refuses_to_be_pickled(make):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="refuses to be pickled") as caught:
            pickle.dumps(make(), protocol)
        assert not leaks(everything_said(caught.value))


def test_there_are_no_copies_of_what_is_private():
    """A graph cannot be changed, so its copy is itself; a private tree refuses."""
    graph = private_graph()
    assert copy.copy(graph) is copy.deepcopy(graph) is graph
    with pytest.raises(ValueError, match="read-only"):
        graph.weights[0] = 0.0
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="refuses"):
            copied(minimum_spanning_tree(graph))


def everything_said(error: BaseException | None) -> str:
    """All texts that a log or a terminal may show of an exception and of those it came from."""
    said: list[str] = []
    seen: set[int] = set()
    todo = [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        said += [
            str(one),
            repr(one),
            repr(one.args),
            repr(vars(one)),
            repr(getattr(one, "__notes__", "")),
        ]
        said += traceback.format_exception(one)
        todo += [one.__cause__, one.__context__]  # also one that "from None" hides
    return "\n".join(said)


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
    return PTClust(**(NOISY | options)).fit(private_graph() if graph is None else graph)


def carry_out(made: Plan, **options: Any) -> Release:
    return publish(private_graph(), ReleaseRequest(plan=made.request), plan=made, **options)


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
    "a matrix that is not symmetric": lambda: fit(
        coo_array(
            (np.r_[WEIGHTS, WEIGHTS + 1], (SOURCES + TARGETS, TARGETS + SOURCES)), shape=(8, 8)
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


def test_no_exception_in_the_middle_of_a_release_says_a_weight(monkeypatch):
    """A sampler that fails with the weights in its text."""

    def fail(*arguments: Any) -> Any:
        raise RuntimeError(f"cannot add noise to {WEIGHTS.tolist()}")

    topology = private_graph().topology
    plans = [plan(topology, **NOISY, mechanism=name) for name in ("kruskal", "laplace")]
    for made in plans:
        inside = type(made.mechanism).draw.__globals__["add_noise"].__globals__
        monkeypatch.setitem(inside, "lattice_measurement", lambda *arguments: fail)
        with pytest.raises(PtclustError, match="Nothing was released") as caught:
            carry_out(made)
        assert not leaks(everything_said(caught.value))


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
