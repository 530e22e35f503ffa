"""Releases with arrays behind their JSON: the same release, and every byte accounted for."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust import Graph, PTClust, Release, Sensitivity
from ptclust.datasets import planted_graph
from ptclust.errors import FileError, InputError
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning.plan import PlanRequest
from ptclust.release import container
from ptclust.release.format import _digest, encode, encode_packed

HUGE = 10**12


@pytest.fixture(scope="module")
def release():
    graph = planted_graph("moons", 60, seed=1).graph
    model = PTClust(
        epsilon=1,
        delta=1e-6,
        sensitivity=Sensitivity(linf=1e-5),
        mechanism="gaussian",
        privacy_unit="one edge",
    )
    return model.fit(graph).release_


@pytest.fixture(scope="module")
def content(release):
    return b"".join(encode_packed(release))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("packed")


def load(folder, content):
    path = folder / "release.ptc"
    path.write_bytes(content)
    return Release.load(path)


def forged(content, change=None, more=b""):
    """Return a file with another document and its right digest, as a careful forger would."""
    text, arrays = container.unpack(content)
    document, arrays = json.loads(text), bytes(arrays) + more
    if change is not None:
        change(document)
    document["digest"] = _digest(document, [arrays])
    return b"".join(container.pack(json.dumps(document).encode(), [arrays]))


def test_a_packed_release_is_the_same_release(release, tmp_path):
    for one in (release, Release(published=release.published, statement=release.statement)):
        path = tmp_path / "release.ptc"
        one.save(path, overwrite=True)
        again = Release.load(path)
        assert encode(again) == encode(one)
        assert encode_packed(again) == encode_packed(one)
        assert again.noisy_weights.tobytes() == one.noisy_weights.tobytes()


def test_only_the_name_decides_how_it_is_written_and_only_the_content_how_read(release, tmp_path):
    release.save(tmp_path / "release.json")
    assert (tmp_path / "release.json").read_bytes() == encode(release)
    (tmp_path / "release.json").rename(tmp_path / "text.ptc")
    assert encode(Release.load(tmp_path / "text.ptc")) == encode(release)
    release.save(tmp_path / "release.ptc")
    assert (tmp_path / "release.ptc").read_bytes().startswith(container.MAGIC)
    (tmp_path / "release.ptc").rename(tmp_path / "packed.json")
    assert encode(Release.load(tmp_path / "packed.json")) == encode(release)


def test_its_size_follows_from_public_numbers(release):
    """Weights are stored in 8 bytes each; how many partitions there are follows from noisy ones."""
    arrays = encode_packed(release)[3:]
    whole, tree = release.topology, release.tree
    n, m, found = release.n_nodes, whole.n_edges, release.clustering
    n_partitions = 1 + len(found.levels) + (found.topology_labels is not None)
    again = release.recluster(release.clustering.clusterer)
    assert len(again.levels) == len(release.levels)
    four = 4 * sum(size + size % 2 for size in (*[tree.n_edges] * 3, m, m, *[n] * n_partitions))
    assert sum(map(len, arrays)) == four + 8 * (tree.n_edges + m)


def test_a_forged_file_with_the_right_digest_loads(folder, content, release):
    assert encode(load(folder, forged(content))) == encode(release)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_byte_can_be_changed(folder, content, data):
    place = data.draw(st.integers(0, len(content) - 1))
    change = data.draw(st.integers(1, 255))
    damaged = content[:place] + bytes([content[place] ^ change]) + content[place + 1 :]
    try:
        load(folder, damaged)
    except FileError:
        return
    text = container.unpack(content)[0]  # spaces between fields say nothing
    assert json.loads(container.unpack(damaged)[0]) == json.loads(text)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_file_that_was_cut_short_is_refused(folder, content, data):
    length = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(FileError, match=r"cut short|damaged"):
        load(folder, content[:length])


def change_array(**what):
    return lambda document: document["graph"]["noisy_weights"].update(what)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_array(length=HUGE), f"does not hold the {HUGE} numbers"),
        (change_array(length=-1), "of the wrong type"),
        (change_array(length=True), "of the wrong type"),
        (change_array(length=1.0), "of the wrong type"),
        (change_array(at=0), "the array at 0 does not hold"),
        (change_array(at=HUGE), f"the array at {HUGE} does not hold"),
        (change_array(at="0"), "of the wrong type"),
        (change_array(dtype="object"), "dtype of an array must be int32, int64, float64"),
        (change_array(dtype=["int64"]), "dtype of an array must be"),
        (change_array(dtype="int64"), "dtype of graph.noisy_weights must be float64"),
        (change_array(data="AAAA"), "does not hold"),
        (lambda d: d["graph"].update(noisy_weights=None), "does not hold|belong to no array"),
        (lambda d: d["clustering"].update(cuts=d["clustering"]["labels"]), "does not hold"),
        (lambda d: d["nodes"].update(count=HUGE), f"nodes.count is {HUGE}"),
        (lambda d: d.update(kind={"dtype": "int32", "length": 0, "at": 0}), "does not hold|kind"),
    ],
)
def test_a_declaration_must_agree_with_the_bytes_that_are_there(folder, content, change, message):
    with pytest.raises(FileError, match=message):
        load(folder, forged(content, change))


def test_bytes_of_no_array_are_refused(folder, content):
    with pytest.raises(FileError, match="8 bytes at the end of the file belong to no array"):
        load(folder, forged(content, more=bytes(8)))


def test_zeros_between_arrays_are_zeros():
    arrays: list[bytes] = []
    one = {"dtype": "int32", "length": 1, "data": memoryview(b"\1\0\0\0")}
    document = container.without_arrays({"a": one, "b": [one]}, arrays)
    assert document["b"][0]["at"] == 8
    whole = b"".join(arrays)
    found = container.with_arrays(document, memoryview(whole))
    assert np.frombuffer(found["b"][0]["data"], "<i4").tolist() == [1]
    with pytest.raises(InputError, match="the array at 0 does not hold"):
        container.with_arrays(document, memoryview(whole[:4] + b"\1" + whole[5:]))


@pytest.mark.parametrize("length", [0, 7, 8, 2**40, 2**64 - 8, 2**64 - 1])
def test_the_length_of_the_json_must_be_there(folder, content, length):
    start = len(container.MAGIC)
    with pytest.raises(FileError, match="is not a release"):
        load(folder, content[:start] + length.to_bytes(8, "little") + content[start + 8 :])


def test_a_text_file_cannot_hold_places(folder, release):
    document = json.loads(encode(release))
    document["tree"]["sources"] = {"dtype": "int32", "length": 1, "at": 0}
    document["digest"] = _digest(document)
    with pytest.raises(FileError, match=r"tree\.sources lacks the field 'data'"):
        load(folder, json.dumps(document).encode())


@pytest.mark.parametrize("mechanism", ["kruskal", "laplace"])
@pytest.mark.parametrize("names", [None, 'é="\x1b'])
def test_the_largest_size_of_a_file_is_known_before_it_is_drawn(mechanism, names, tmp_path):
    """And it is not much larger than the file."""
    n, sizes = 3000, []
    named = None if names is None else [f"{names}{i}" for i in range(n)]
    graph = Graph(range(n - 1), range(1, n), np.full(n - 1, 0.5), names=named)
    plan = PlanRequest(epsilon=1, sensitivity=Sensitivity(linf=1e-3), mechanism=mechanism)

    def keep(release):
        for suffix in (".json", ".ptc"):
            release.save(tmp_path / f"release{suffix}")
            sizes.append((tmp_path / f"release{suffix}").stat().st_size)

    publish(graph, ReleaseRequest(plan=plan, privacy_unit="one"), reserve=sizes.append, keep=keep)
    assert sizes[0] / 1.3 < sizes[1] <= sizes[0]
    assert sizes[2] <= sizes[0]
