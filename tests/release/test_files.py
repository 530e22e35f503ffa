"""Files of releases: what comes back, how they are written, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptclust.clustering import Clustering
from ptclust.errors import FileError
from ptclust.graph import Graph, Topology
from ptclust.pipeline import ReleaseRequest, prepare
from ptclust.planning.plan import PlanRequest
from ptclust.privacy import Sensitivity
from ptclust.published import Published
from ptclust.release import Release, release_schema
from ptclust.release.format import _PIECE, _with_data
from ptclust.trees import Tree
from tests.lazy import lazy
from tests.release.releases import (
    assert_same,
    claim,
    graph_release,
    path_release,
    released,
    roundtrip,
    unclustered,
    validator,
    with_clustering,
)

jsonschema = lazy("jsonschema")


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


@pytest.mark.parametrize("length", [0, 1, 2, 3, _PIECE - 1, _PIECE, _PIECE + 1, 2 * _PIECE + 2])
def test_base64_in_pieces_is_that_of_the_standard_library(length):
    data = np.random.default_rng(0).integers(256, size=length, dtype=np.uint8).data
    pieces = list(_with_data(b'{"data": "0"}', [data]))
    assert b"".join(pieces) == b'{"data": "' + base64.b64encode(data) + b'"}'
    assert len(pieces) == 2 + -(-length // _PIECE)


@pytest.mark.parametrize("mechanism", ["kruskal", "laplace"])
@pytest.mark.parametrize("names", [None, 'é="\x1b'])
def test_the_largest_size_of_a_file_is_known_before_it_is_drawn(mechanism, names, tmp_path):
    """And it is not much larger than the file."""
    n, sizes = 3000, []
    named = None if names is None else [f"{names}{i}" for i in range(n)]
    graph = Graph(range(n - 1), range(1, n), np.full(n - 1, 0.5), names=named)
    plan = PlanRequest(epsilon=1, sensitivity=Sensitivity(linf=1e-3), mechanism=mechanism)

    def keep(release):
        release.save(tmp_path / "release.json")
        sizes.append((tmp_path / "release.json").stat().st_size)

    prepared = prepare(graph, ReleaseRequest.of(plan, privacy_unit="one"))
    sizes.append(prepared.largest_size)
    keep(prepared.draw())
    assert sizes[0] / 1.3 < sizes[1] <= sizes[0]
