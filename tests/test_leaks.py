"""Private weights stay private: in texts, files, pickles, exceptions, logs and fitted models."""

from __future__ import annotations

import base64
import copy
import gc
import html
import io
import itertools
import json
import pickle
import pickletools
import re
import struct
import types
import warnings
import weakref
from typing import Any
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest

from ptclust import (
    PTClust,
    minimum_spanning_tree,
)
from ptclust.drawing.plots import save_plot
from ptclust.errors import PrivacyWarning
from ptclust.report import report_page
from tests.leaks import (
    NOISY,
    OPTIONS,
    WEIGHTS,
    digits,
    everything_said,
    is_leaked,
    leaks,
    leaks_of_bytes,
    private_graph,
    private_parts,
)


def fitted(kind: str, weights: np.ndarray = WEIGHTS) -> PTClust:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return PTClust(**NOISY, **OPTIONS[kind]).fit(private_graph(weights))


def a_png_that_says(text: str) -> bytes:
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    said, made = PngInfo(), io.BytesIO()
    said.add_text("Comment", text)
    Image.new("L", (1, 1)).save(made, "png", pnginfo=said)
    return made.getvalue()


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
            pl.DataFrame({"weight": WEIGHTS}),
            [f"0,1,{WEIGHTS[0]}", WEIGHTS[:1].tobytes()],
        ):
            assert private_parts(holder), holder
        assert private_parts([private_graph()])
        assert private_parts([minimum_spanning_tree(private_graph())])
        assert not private_parts([np.ones(3), {"x": 1.0}])

    def test_of_exceptions(self):
        with pytest.raises(ValueError, match="could not convert") as caught:
            np.array([digits(WEIGHTS[0], 9) + "x"], dtype=float)
        assert leaks(everything_said(caught.value))
        assert leaks(metadata_of(a_png_that_says(digits(WEIGHTS[0], 9)))[0], 9)
        hidden = TypeError("unrelated")
        hidden.__context__ = caught.value
        hidden.__suppress_context__ = True
        assert leaks(everything_said(hidden))


@pytest.mark.parametrize("kind", OPTIONS)
class TestWhatIsPublished:
    def test_texts(self, kind):
        model = fitted(kind)
        release, statement = model.release_, model.release_.statement
        for thing in (model, model.plan_, model.plan_.chosen, release, release.tree, statement):
            assert not leaks(f"{thing!r} {thing}", 9)
        assert not leaks(repr(release.tree.topology) + repr(vars(model)), 9)
        assert not leaks(model.plan_.to_text() + json.dumps(model.plan_.to_dict()))
        assert model.plan_.to_dict() == fitted(kind, WEIGHTS[::-1]).plan_.to_dict()
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
        assert table.columns == pl.read_csv(tmp_path / "labels.csv").columns
        known = ["evidence"] * (release.evidence is not None)
        assert table.columns == ["node", "cluster", *known]
        assert table.schema["cluster"].is_integer()
        assert not leaks_of_bytes((tmp_path / "labels.parquet").read_bytes())

    def test_what_a_notebook_shows(self, kind):
        model = fitted(kind)
        release = model.release_
        shown: list[Any] = [release, release.statement, model.plan_, release.compare(release)]
        shown.append(private_graph())
        for thing in shown:
            assert not leaks(thing._repr_html_() + str(thing), 9)
        summary = release.summary.to_dict()
        del summary["separation"]["at_epsilons"]  # public numbers: one weight is a tenth of sqrt(2)
        assert not leaks(json.dumps(summary), 9)

    def test_the_page(self, kind):
        release = fitted(kind).release_
        page = report_page(release)
        assert not leaks(page, 9)
        assert not leaks_of_bytes(page.encode())
        (link,) = re.findall(r'href="data:application/json;charset=utf-8,([^"]*)"', page)
        numbers = np.array(all_numbers(json.loads(unquote(html.unescape(link)))))
        assert set(release.tree.weights.tolist()) <= set(numbers.tolist()), "the walk finds arrays"
        (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
        numbers = np.concatenate([numbers, all_numbers(json.loads(data))])
        assert not is_leaked(numbers)
        assert not is_leaked(-numbers)

    @pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
    def test_pictures(self, kind, suffix, tmp_path):
        release, path = fitted(kind).release_, tmp_path / f"picture.{suffix}"
        save_plot(release.plot, path)
        content = path.read_bytes()
        assert not leaks_of_bytes(content)
        if suffix == "svg":
            assert not leaks(content.decode(), 9)
        else:
            assert not leaks("".join(metadata_of(content)), 9)
        again = tmp_path / f"again.{suffix}"
        save_plot(release.plot, again)
        assert again.read_bytes() == content or suffix == "pdf", "the time is not in it"

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


def metadata_of(content: bytes) -> list[str]:
    """All texts of a PNG, or of the dictionaries of a PDF."""
    if content.startswith(b"%PDF"):
        return [part.decode("latin-1") for part in re.findall(rb"<<[^>]*>>", content)]
    found, place = [], 8
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        if content[place + 4 : place + 8] in (b"tEXt", b"iTXt", b"zTXt", b"eXIf"):
            found.append(content[place + 8 : place + 8 + length].decode("latin-1"))
        place += length + 12
    return found


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
