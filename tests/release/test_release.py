from __future__ import annotations

import base64
import hashlib
import json
import pickle
from dataclasses import FrozenInstanceError, replace
from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptclust
from ptclust import PTClust
from ptclust.clustering import Clustering, Cuts, dbmstclu
from ptclust.errors import FileError, InputError, WeightError
from ptclust.graph import Graph, Topology
from ptclust.privacy import Sensitivity
from ptclust.published import Published
from ptclust.release import Release, release_schema
from ptclust.trees import Tree
from tests.lazy import lazy

jsonschema = lazy("jsonschema")
nx = lazy("networkx")


def claim(topology, mechanism="kruskal", **options):
    """Return the noise and the statement of a release that keeps its promise."""
    asked = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": Sensitivity(linf=5e-4), **options}
    plan = ptclust.plan(topology, mechanism=mechanism, **asked)
    return plan.chosen.weights, plan.statement(reproducible=False)


NOISE, STATEMENT = claim(Topology([0, 1, 2, 3], [1, 2, 3, 4]))


def released(tree, min_cluster_size=1, whole=()):
    """The release of a tree with noisy weights, clustered after the usual shift and scale."""
    shift = 0.1 - float(tree.weights.min(initial=0.0))
    scale = float((tree.weights + shift).max(initial=0.1))
    clustered = Tree(tree.topology, (tree.weights + shift) / scale, tree.edge_ids)
    found = dbmstclu(clustered, min_cluster_size=min_cluster_size)
    mechanism = "gaussian" if whole else "kruskal"
    noise, statement = claim(whole[0] if whole else tree.topology, mechanism)
    return Release(
        published=Published(mechanism, noise, tree, *whole),
        statement=statement,
        clustering=replace(found, shift=shift, scale=scale),
    )


def path_release(names=None):
    topology = Topology([0, 1, 2, 3], [1, 2, 3, 4], names=names)
    tree = Tree(topology, [-0.1, 0.02, 0.9, 0.0], [1, 4, 5, 9])
    noise, statement = claim(topology)
    return Release(
        published=Published("kruskal", noise, tree),
        statement=statement,
        clustering=Clustering(
            labels=np.array([0, 0, 0, 1, 1]),
            dbcvi=0.8,
            shift=0.2,
            scale=1.1,
            cuts=Cuts(np.array([5])),
        ),
    )


def graph_release():
    topology = Topology([0, 0, 1, 2], [1, 2, 2, 3])
    weights = np.array([0.2, 0.9, -0.1, 0.5])
    ids = [0, 2, 3]
    tree = Tree(topology.restricted_to(np.array(ids)), weights[ids], ids)
    return released(tree, whole=(topology, weights))


def unclustered():
    return replace(path_release(), clustering=None)


def with_clustering(release, **changes):
    return replace(release, clustering=replace(release.clustering, **changes))


def assert_same(a, b):
    assert a.tree.topology == b.tree.topology
    assert a.statement == b.statement
    assert a.published.mechanism == b.published.mechanism
    assert a.weight_noise == b.weight_noise
    for of in (a, b):
        assert not of.tree.private
    for name in ("weights", "edge_ids"):
        np.testing.assert_array_equal(getattr(a.tree, name), getattr(b.tree, name))
    np.testing.assert_array_equal(a.labels, b.labels)
    for name in ("dbcvi", "n_clusters", "n_unclustered", "clusterer"):
        assert getattr(a, name) == getattr(b, name)
    assert (a.clustering is None) == (b.clustering is None)
    if a.clustering is not None:
        assert (a.clustering.cuts is None) == (b.clustering.cuts is None)
        if a.clustering.cuts is not None:
            np.testing.assert_array_equal(a.clustering.cuts.edge_ids, b.clustering.cuts.edge_ids)
        for name in ("shift", "scale", "min_cluster_size"):
            assert getattr(a.clustering, name) == getattr(b.clustering, name)
    assert a.published.whole_graph == b.published.whole_graph
    assert a.topology == b.topology
    np.testing.assert_array_equal(a.noisy_weights, b.noisy_weights)


@cache
def validator():
    return jsonschema.Draft202012Validator(release_schema())


def roundtrip(release, folder):
    path = folder / "release.json"
    release.save(path, overwrite=True)
    validator().validate(json.loads(path.read_text()))
    return Release.load(path)


@st.composite
def releases(draw):
    """Releases of forests with names of several kinds, isolated nodes, and noise."""
    n = draw(st.integers(1, 30))
    parents = [draw(st.integers(-1, node - 1)) for node in range(1, n)]
    edges = [(node, parent) for node, parent in enumerate(parents, start=1) if parent >= 0]
    weights = [draw(st.floats(-1e6, 1e6)) for _ in edges]
    gaps = [draw(st.integers(1, 2**33)) for _ in edges]
    names = draw(
        st.one_of(
            st.none(),
            st.lists(st.text(), min_size=n, max_size=n, unique=True),
            st.lists(st.integers(-(2**70), 2**70), min_size=n, max_size=n, unique=True),
            st.lists(st.one_of(st.integers(), st.text()), min_size=n, max_size=n, unique=True),
        )
    )
    topology = Topology([a for a, _ in edges], [b for _, b in edges], n_nodes=n, names=names)
    tree = Tree(topology, weights, np.cumsum(gaps, dtype=np.int64))
    return released(tree, min_cluster_size=draw(st.integers(1, 3)))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(release=releases())
def test_roundtrip(tmp_path, release):
    assert_same(roundtrip(release, tmp_path), release)
    assert_same(pickle.loads(pickle.dumps(release)), release)


@pytest.mark.parametrize(
    "tree",
    [
        Tree(Topology([], [], n_nodes=1), []),
        Tree(Topology([], [], n_nodes=1, names=["only"]), []),
        Tree(Topology([0, 3], [1, 4], n_nodes=6), [0.5, -0.5]),
        Tree(Topology([0], [1], names=["a\n\"'<&>", "b\U0001f600"]), [0.25]),
    ],
    ids=["one node", "one named node", "forest", "strange names"],
)
def test_roundtrip_of_small_things(tmp_path, tree):
    release = released(tree)
    assert_same(roundtrip(release, tmp_path), release)


def test_half_a_letter_is_refused_before_it_is_written(tmp_path):
    tree = Tree(Topology([0], [1], names=["a", "b\ud800"]), [0.25])
    with pytest.raises(FileError, match="lone surrogate"):
        released(tree).save(tmp_path / "release.json")
    assert list(tmp_path.iterdir()) == []


def test_roundtrip_with_the_whole_graph(tmp_path):
    release = graph_release()
    again = roundtrip(release, tmp_path)
    assert_same(again, release)
    assert again.published.whole_graph
    np.testing.assert_array_equal(again.noisy_weights, [0.2, 0.9, -0.1, 0.5])


def test_roundtrip_without_cuts(tmp_path):
    release = with_clustering(path_release(), labels=[0, 1, 0, 1, -1], cuts=None)
    assert release.n_unclustered == 1
    assert_same(roundtrip(release, tmp_path), release)


def test_roundtrip_before_there_are_clusters(tmp_path):
    release = unclustered()
    assert release.labels.tolist() == [-1] * 5
    assert (release.n_clusters, release.n_unclustered, release.dbcvi) == (0, 5, 0.0)
    assert release.clusterer is None
    again = roundtrip(release, tmp_path)
    assert_same(again, release)
    assert_same(pickle.loads(pickle.dumps(release)), release)
    assert again.recluster("dbmstclu").n_clusters > 0


def test_the_name_of_any_clusterer_is_kept(tmp_path):
    """Clusters stay readable where the clusterer that found them is not installed."""
    release = with_clustering(path_release(), clusterer="somebody's own")
    assert roundtrip(release, tmp_path).clusterer == "somebody's own"


def test_names_that_look_like_arrays_are_names(tmp_path):
    """Arrays are written into the JSON at places that no name can imitate."""
    names = ["data", "0", '"data": "0"', '"data":"1"', 'data": "2']
    release = path_release(names)
    release.save(tmp_path / "release.json")
    assert json.loads((tmp_path / "release.json").read_text())["nodes"]["names"] == names
    assert Release.load(tmp_path / "release.json").names.tolist() == names


def test_names_of_other_types_are_written_as_text(tmp_path):
    release = path_release([(0, 1), (2, 3), 4.5, True, "x"])  # equal names have one spelling
    again = roundtrip(release, tmp_path)
    assert again.names.tolist() == ["(0, 1)", "(2, 3)", "4.5", "1", "x"]
    assert json.loads((tmp_path / "release.json").read_text())["nodes"]["names_written_as_text"]
    alike = path_release([(0, 1), "(0, 1)", 2, 3, 4])
    with pytest.raises(FileError, match="same when written as text"):
        alike.save(tmp_path / "alike.json")
    assert not (tmp_path / "alike.json").exists()


def test_properties():
    release = path_release(list("abcde"))
    assert repr(release) == "Release(n_nodes=5, n_clusters=2, epsilon=1, delta=1e-06)"
    assert release.labels.tolist() == [0, 0, 0, 1, 1]
    assert release.names.tolist() == list("abcde")
    assert release.topology is release.tree.topology
    assert release.noisy_weights is release.tree.weights
    clustered = (release.tree.weights + release.clustering.shift) / release.clustering.scale
    assert clustered.max() == 1
    assert clustered.min() > 0
    seeded = replace(STATEMENT, randomness="reproducible")
    assert "NOT PRIVATE" in repr(replace(release, statement=seeded))


def test_immutable():
    release = pickle.loads(pickle.dumps(graph_release()))
    with pytest.raises(FrozenInstanceError):
        release.clustering = None
    with pytest.raises(FrozenInstanceError):
        release.clustering.labels = []
    for array in (release.labels, release.clustering.cuts.edge_ids, release.noisy_weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


PATH = Topology([0, 1, 2, 3], [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [0, 0, 0, 1]}, "4 labels were given for 5 nodes"),
        ({"labels": [1, 1, 1, 0, 0]}, "first appearance"),
        ({"labels": [0, 0, 0, 2, 2]}, "first appearance"),
        ({"labels": [0, 0, 0, -2, -2]}, "first appearance"),
        ({"labels": [0.0, 0.0, 0.0, 1.0, 1.0]}, "labels must be"),
        ({"labels": [[0, 0, 0, 1, 1]]}, "labels must be"),
        ({"labels": [0, 0, 1, 1, 1]}, "pieces"),
        ({"labels": [0, 0, 0, 0, 0]}, "pieces"),
        ({"labels": [0, 0, 0, -1, -1]}, "pieces"),
        ({"min_cluster_size": 3}, "pieces"),
        ({"min_cluster_size": 0}, "min_cluster_size"),
        ({"min_cluster_size": True}, "min_cluster_size"),
        ({"cuts": Cuts(np.array([6]))}, "edge ids of the tree"),
        ({"cuts": Cuts(np.array([5, 5]))}, "edge ids of the tree"),
        ({"cuts": Cuts(np.array([], dtype=int))}, "pieces"),
        ({"dbcvi": 1.5}, "dbcvi"),
        ({"dbcvi": float("nan")}, "dbcvi"),
        ({"dbcvi": "high"}, "dbcvi"),
        ({"dbcvi": None}, "dbcvi"),
        ({"shift": float("inf")}, "shift"),
        ({"shift": 0.05}, r"\(0, 1\]"),
        ({"scale": 0.5}, r"\(0, 1\]"),
        ({"scale": 0}, "scale"),
        ({"scale": 10**400}, "scale"),
        ({"clusterer": ""}, "clusterer must not be empty"),
        ({"clusterer": None}, "clusterer must be text"),
    ],
)
def test_clusters_that_do_not_fit(changes, message):
    with pytest.raises(InputError, match=message):
        with_clustering(path_release(), **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"statement": None}, "statement must be a PrivacyStatement"),
        ({"published": None}, "published must be a Published"),
    ],
)
def test_parts_that_do_not_fit(changes, message):
    with pytest.raises(InputError, match=message):
        replace(path_release(), **changes)


IDS = [1, 4, 5, 9]
TREE = Tree(PATH, [-0.1, 0.02, 0.9, 0.0], IDS)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((NOISE, None), "tree must be a Tree"),
        ((None, TREE), "noise must be a Noise"),
        ((NOISE, Tree(PATH, [0.1] * 4, IDS, private=True)), "private weights"),
        ((NOISE, Tree(PATH, [0.1] * 4, [-1, 4, 5, 9])), "edge_ids"),
        ((NOISE, TREE, None, [0.1]), "together"),
        ((NOISE, TREE, PATH, [0.1]), "1 noisy_weights"),
        ((NOISE, TREE, PATH, [np.nan] * 4), "finite"),
        ((NOISE, TREE, PATH, [0.1] * 4), "edges and weights of the tree"),
        ((NOISE, TREE, Topology([0], [1]), [0.1]), "same nodes"),
    ],
)
def test_published_values_that_do_not_fit(parts, message):
    with pytest.raises(InputError, match=message):
        Published("kruskal", *parts)


def test_a_tree_without_weights_is_no_release():
    with pytest.raises(WeightError):
        Published("kruskal", NOISE, Tree(PATH, None, IDS))


def test_refuses_to_overwrite(tmp_path):
    path = tmp_path / "release.json"
    path_release().save(path)
    before = path.read_bytes()
    with pytest.raises(FileError, match="paid for"):
        graph_release().save(path)
    assert path.read_bytes() == before
    other = graph_release()
    other.save(path, overwrite=True)
    assert_same(Release.load(path), other)
    assert [file.name for file in tmp_path.iterdir()] == ["release.json"]


def test_places_that_cannot_be_written_or_read(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        path_release().save(tmp_path / "nowhere" / "release.json")
    with pytest.raises(FileError, match="is a directory"):
        path_release().save(tmp_path)
    with pytest.raises(FileError, match="there is no file"):
        Release.load(tmp_path / "nothing.json")
    with pytest.raises(FileError, match="cannot be read"):
        Release.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not hold JSON"),
        (b"source,target,weight\n", "does not hold JSON"),
        (b"\x80\x04\x95", "does not hold JSON"),
        (b'{"format": "ptclust-release", "version": 1', "does not hold JSON"),
        (b'{"format": "ptclust-release", "format": "ptclust-release"}', "does not hold JSON"),
        (b'{"format": NaN}', "does not hold JSON"),
        (b'{"format": 1e999}', "does not hold JSON"),
        (b"[" * 100_000, "nested|does not hold JSON"),
        (b"[]", "not of the format"),
        (b"{}", "not of the format"),
        (b'{"format": "geojson"}', "not of the format"),
        (b'{"format": "ptclust-release"}', "version must be 3"),
        (b'{"format": "ptclust-release", "version": true}', "version must be 3"),
        (b'{"format": "ptclust-release", "version": 4, "new": []}', "newer ptclust"),
        (b'{"format": "ptclust-release", "version": 2}', "version must be 3"),
        (b'{"format": "ptclust-release", "version": 3}', "lacks the field 'statement'"),
    ],
)
def test_foreign_files(tmp_path, content, message):
    path = tmp_path / "release.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        Release.load(path)
    assert str(path) in str(caught.value)


def test_any_changed_byte_of_the_content_is_noticed(tmp_path):
    path = tmp_path / "release.json"
    path_release().save(path)
    for old, new in ((b'"epsilon": 1.0', b'"epsilon": 0.1'), (b'"count": 5', b'"count": 4')):
        damaged = path.read_bytes().replace(old, new)
        assert damaged != path.read_bytes()
        other = tmp_path / "other.json"
        other.write_bytes(damaged)
        with pytest.raises(FileError, match="damaged or was changed"):
            Release.load(other)


def test_nodes_are_not_allocated_on_the_word_of_a_file_without_labels(tmp_path):
    path = tmp_path / "release.json"
    unclustered().save(path)
    forged = tampered(json.loads(path.read_text()), "nodes.count", HUGE)
    path.write_text(json.dumps(signed(forged)))
    with pytest.raises(FileError, match=f"it declares {HUGE} nodes and has 4 edges"):
        Release.load(path)


def array(values, dtype="int32"):
    data = np.array(values, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()
    return {"dtype": dtype, "length": len(values), "data": base64.b64encode(data).decode()}


def signed(document):
    """The document with its right digest, as a careful forger or another program would write it."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
    return rest | {"digest": "sha256:" + hashlib.sha256(canonical).hexdigest()}


def tampered(document, where, value):
    document = json.loads(json.dumps(document))
    *parents, last = where.split(".")
    part = document
    for parent in parents:
        part = part[parent]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return document


HUGE = 10**12
SCHEMA_KNOWS = [
    ("statement", ..., "lacks the field 'statement'"),
    ("statement.epsilon", ..., "lacks the field 'epsilon'"),
    ("statement.epsilon", -1.0, "epsilon must be above 0"),
    ("statement.epsilon", "1", "epsilon must be a number"),
    ("statement.delta", 1.5, "delta must lie between"),
    ("statement.rho", None, "rho must be a number"),
    ("statement.private", False, "private must be True"),
    ("statement.randomness", "reproducible", "private must be False"),
    ("statement.seed", 42, "unknown field 'seed'"),
    ("statement.sensitivity", {"l1": None, "l2": None, "linf": None}, "at least one"),
    ("statement.sensitivity", {"linf": 0.1}, "lacks the field 'l1'"),
    ("statement.mechanisms", [{}], r"mechanisms\[0\]: a mechanism lacks"),
    ("statement.id", "1", "id must be a version 4 UUID"),
    ("extra", 1, "unknown field 'extra'"),
    ("nodes", [], "nodes must be an object"),
    ("nodes.count", "5", "nodes.count is '5'"),
    ("nodes.names", "abcde", "nodes.names must be a list"),
    ("nodes.names", [1, 2, 3, 4, 5.5], "nodes.names must be a list"),
    ("nodes.names", [1, 2, 3, 4, True], "nodes.names must be a list"),
    ("nodes.names", ["a", "a", "b", "c", "d"], "'a' is given twice"),
    ("nodes.names_written_as_text", 0, "must be a boolean"),
    ("tree.sources", [0, 1, 2, 3], "tree.sources must be an object"),
    ("tree.sources.dtype", "object", "dtype of tree.sources"),
    ("tree.sources.dtype", ["int32"], "dtype of tree.sources"),
    ("tree.sources.length", -4, "wrong type"),
    ("tree.sources.data", None, "wrong type"),
    ("tree.sources.data", "!" * 24, "not base64"),
    ("tree.noisy_weights", array([1, 2, 3, 4]), "dtype of tree.noisy_weights"),
    ("tree.noisy_weights", ..., "lacks the field 'noisy_weights'"),
    ("graph", [], "graph must be an object"),
    ("mechanism", ..., "lacks the field 'mechanism'"),
    ("mechanism", None, "mechanism must be one of"),
    ("mechanism", "", "mechanism must be one of"),
    ("noise", None, "noise must be an object"),
    ("noise.scale", ..., "lacks the field 'scale'"),
    ("noise.scale", "0.1", "scale"),
    ("noise.scale", -0.1, "scale"),
    ("noise.distribution", "cauchy", "noise must be one of gaussian, laplace, cube"),
    ("noise.n_values", -1, "number of values"),
    ("noise.n_values", 4.5, "n_values"),
    ("noise.granularity", 0.5, "granularity"),
    ("clustering", [], "clustering must be an object"),
    ("clustering.clusterer", ..., "lacks the field 'clusterer'"),
    ("clustering.clusterer", "", "clusterer must not be empty"),
    ("clustering.clusterer", 7, "clusterer must be text"),
    ("clustering.dbcvi", 1.5, "dbcvi must lie"),
    ("clustering.dbcvi", "1", "clustering.dbcvi must be a number"),
    ("clustering.shift", None, "clustering.shift must be a number"),
    ("clustering.scale", 0, "scale must be above 0"),
    ("clustering.min_cluster_size", 1.5, "min_cluster_size must be"),
    ("clustering.labels", array([0.0] * 5, "float64"), "dtype of clustering.labels"),
]
LOAD_KNOWS = [
    ("nodes.count", HUGE, f"nodes.count is {HUGE}"),
    ("nodes.names", ["a"], "1 names for 5 nodes"),
    ("tree.sources.length", HUGE, f"does not hold the {HUGE} numbers"),
    ("tree.sources.length", 5, "does not hold the 5 numbers"),
    ("tree.sources.data", "A" * 24, "does not hold the 4 numbers"),
    ("tree.sources", array([0, 1, 2, 9]), "nodes are numbered 0 to 4"),
    ("tree.sources", array([0, 1, 2, -3]), "nodes are numbered 0 to 4"),
    ("tree.sources", array([0, 1, 2, 0]), "pieces"),
    ("tree.sources", array([0, 1, 2, 2]), "pieces"),
    ("tree.sources", array([0, 1, 2]), "one length"),
    ("tree.targets", array([1, 2, 0, 4]), "closes a cycle"),
    ("tree.targets", array([1, 1, 3, 4]), "to itself"),
    ("tree.edge_ids", array([1, 4, 4, 9]), "must ascend"),
    ("tree.noisy_weights", array([0.1, np.nan, 0.9, 0.0], "float64"), "not a finite number"),
    ("tree.noisy_weights", array([0.1, -np.inf, 0.9, 0.0], "float64"), "not a finite number"),
    ("tree.noisy_weights", array([0.1, -5.0, 0.9, 0.0], "float64"), r"into \(0, 1\]"),
    ("clustering.labels", array([0, 0, 0, 2, 2]), "first appearance"),
    ("clustering.labels", array([0, 0, 0, 2**62, 2**62], "int64"), "first appearance"),
    ("clustering.labels", array([0, 0, 1, 1, 1]), "pieces"),
    ("clustering.labels", array([0, 0]), "there are 2 labels"),
    ("clustering.cuts", array([4]), "pieces"),
    ("clustering.scale", 10**400, "scale must be a finite number"),
    (
        "graph",
        {
            "sources": array([0]),
            "targets": array([1]),
            "noisy_weights": array([0.1], "float64"),
        },
        "edges and weights of the tree",
    ),
    ("statement.requested_epsilon", 10**400, "requested_epsilon"),
    ("mechanism", "magic", "mechanism must be one of kruskal"),
    ("statement.mechanisms", [], "no mechanism that did it"),
    ("clustering", None, None),
    ("clustering.clusterer", "magic", None),
]


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    path = tmp_path_factory.mktemp("release") / "release.json"
    path_release().save(path)
    return json.loads(path.read_text())


def test_the_forger_of_these_tests_knows_the_digest(document):
    assert signed(document) == document


@pytest.mark.parametrize(("where", "value", "message"), SCHEMA_KNOWS + LOAD_KNOWS)
def test_tampering_is_explained(tmp_path, document, where, value, message):
    path = tmp_path / "release.json"
    forged = tampered(document, where, value)
    path.write_text(json.dumps(signed(forged)))
    if message is None:  # consistent in itself: a digest is not a signature
        Release.load(path)
        return
    with pytest.raises(FileError, match=message) as caught:
        Release.load(path)
    assert str(path) in str(caught.value)
    assert caught.value.__suppress_context__
    path.write_text(json.dumps(forged))
    with pytest.raises(FileError, match=r"digest|lacks the field|unknown field"):
        Release.load(path)


@pytest.mark.parametrize(("where", "value", "_message"), SCHEMA_KNOWS)
def test_schema_refuses_what_is_broken(document, where, value, _message):
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(signed(tampered(document, where, value)))


def test_schema_is_a_schema_and_names_all_fields(document):
    schema = release_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator().validate(document)
    assert set(schema["required"]) == set(schema["properties"]) == set(document)
    statement = schema["$defs"]["statement"]
    assert set(statement["required"]) == set(statement["properties"]) == set(document["statement"])
    mechanism = schema["$defs"]["mechanism"]
    assert set(mechanism["required"]) == set(document["statement"]["mechanisms"][0])
    for part in (schema["properties"]["noise"], schema["properties"]["clustering"]["oneOf"][1]):
        assert set(part["required"]) == set(part["properties"])
    assert set(schema["properties"]["noise"]["required"]) == set(document["noise"])


def test_a_million_nodes_are_compact(tmp_path):
    n = 1_000_000
    rng = np.random.default_rng(0)
    parents = (rng.random(n - 1) * np.arange(1, n)).astype(np.int64)
    weights = rng.normal(size=n - 1)
    shift = 1.0 - weights.min()
    tree = Tree(Topology(parents, np.arange(1, n), n_nodes=n), weights)
    noise, statement = claim(tree.topology)
    release = Release(
        published=Published("kruskal", noise, tree),
        statement=statement,
        clustering=Clustering(
            labels=np.arange(n) // 1000, dbcvi=0.5, shift=shift, scale=(weights + shift).max()
        ),
    )
    path = tmp_path / "release.json"
    release.save(path)
    assert path.stat().st_size < 33 * n
    assert_same(Release.load(path), release)


def test_tables(tmp_path):
    release = path_release(list("abcde"))
    wanted = {"node": list("abcde"), "cluster": [0, 0, 0, 1, 1]}
    assert release.to_dataframe().to_dict(as_series=False) == wanted
    assert release.to_dataframe("pandas").to_dict("list") == wanted
    release.to_csv(tmp_path / "labels.csv")
    assert (tmp_path / "labels.csv").read_text() == "node,cluster\na,0\nb,0\nc,0\nd,1\ne,1\n"
    release.to_parquet(tmp_path / "labels.parquet")
    assert pl.read_parquet(tmp_path / "labels.parquet").to_dict(as_series=False) == wanted


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (None, [0, 1, 2, 3, 4]),
        (np.array([5, 6, 7, 8, 9]), [5, 6, 7, 8, 9]),
        ([5, "a,b", (1, 2), 8, 9], ["5", "a,b", "(1, 2)", "8", "9"]),
    ],
)
def test_tables_with_any_names(tmp_path, names, wanted):
    release = path_release(names)
    release.to_csv(tmp_path / "labels.csv")
    release.to_parquet(tmp_path / "labels.parquet")
    assert pl.read_csv(tmp_path / "labels.csv")["node"].to_list() == wanted
    assert pl.read_parquet(tmp_path / "labels.parquet")["node"].to_list() == wanted


@pytest.mark.parametrize("writer", ["save", "to_csv", "to_parquet", "to_graphml"])
def test_no_file_is_replaced_unasked(tmp_path, writer):
    file = tmp_path / "precious"
    file.write_text("precious")
    write = getattr(path_release(), writer)
    with pytest.raises(FileError, match=r"exists already; .*overwrite=True"):
        write(file)
    assert file.read_text() == "precious"
    write(file, overwrite=True)
    assert file.read_bytes() != b"precious"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("kind", ["distance", "similarity"])
def test_graphml_keeps_the_kind(tmp_path, kind):
    weights = {"kind": kind, "weights": [0.1, 0.2]}
    model = PTClust(epsilon=1, sensitivity=Sensitivity(l1=1e-9), privacy_unit="one")
    model.fit(Graph([0, 1], [1, 2], **weights)).release_.to_graphml(tmp_path / "tree.graphml")
    read = nx.read_graphml(tmp_path / "tree.graphml")
    assert read.graph["kind"] == kind
    assert Graph.from_networkx(read).kind == kind


def test_advice_on_weights_whose_squares_overflow():
    model = PTClust(epsilon=1, sensitivity=Sensitivity(l1=1e200), privacy_unit="one")
    release = model.fit(Graph(range(5), range(1, 6), np.ones(5))).release_
    labelled = replace(
        release, clustering=replace(release.clustering, labels=np.zeros(6, dtype=int), cuts=None)
    )
    assert "differ by more than can be compared" in labelled.advice[0]
    assert "inf" not in " ".join(labelled.advice)


@pytest.mark.parametrize(
    "names", [None, list("abcde"), ["<a>", "b & c", 'd "e"', "f\tg\nh", "\u00e9 \U0001f600"]]
)
def test_graphml(tmp_path, names):
    release = path_release(names)
    path = tmp_path / "tree.graphml"
    release.to_graphml(path)
    called = [str(name) for name in release.names.tolist()]
    graph = nx.read_graphml(path)
    assert list(graph) == called
    assert [graph.nodes[node]["cluster"] for node in called] == release.labels.tolist()
    found = [graph.edges[a, b] for a, b in pairwise(called)]
    assert [edge["weight"] for edge in found] == release.tree.weights.tolist()
    assert [edge["edge_id"] for edge in found] == release.tree.edge_ids.tolist()
    read = ptclust.read_graph(path, kind="distance")
    assert read.topology == release.tree.topology
    np.testing.assert_array_equal(read.weights, release.tree.weights)


def test_graphml_refuses_names_it_cannot_hold(tmp_path):
    with pytest.raises(FileError, match="XML does not admit"):
        path_release(["a", "b\x00", "c", "d", "e"]).to_graphml(tmp_path / "tree.graphml")
    with pytest.raises(FileError, match="same as text"):
        path_release([1, "1", 2, 3, 4]).to_graphml(tmp_path / "tree.graphml")
    assert not list(tmp_path.iterdir())
