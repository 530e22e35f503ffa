"""A graph file carries kind, unit, sensitivity and provenance, and never those of another graph."""

from __future__ import annotations

import json
import stat
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust import Budget, Graph, PTClust, Sensitivity, graph_from_flows, read_graph
from ptclust.errors import FileError, InputError, UsageError
from ptclust.graph.metadata import KEY
from ptclust.graph.readers import read_metadata, read_topology
from ptclust.privacy import Provenance, Spending

TRIPS = pl.DataFrame({"person": [1, 1, 2], "origin": [0, 1, 2], "destination": [1, 2, 3]})
SPENT = Spending(purpose="max_pairs", budget=Budget.pure("1/10"), noise="Laplace", scale=2.0)


@pytest.fixture
def graph():
    bounds = {"person": "person", "max_pairs": 5, "max_per_pair": 2}
    return graph_from_flows(TRIPS, nodes=range(5), **bounds)


@pytest.fixture
def path(graph, tmp_path):
    graph.save(tmp_path / "graph.parquet")
    return tmp_path / "graph.parquet"


def metadata_of(path):
    return pl.read_parquet_metadata(path)[KEY]


def write(table, metadata, path):
    table.write_parquet(path, metadata={KEY: metadata})
    return path


def test_what_is_saved_is_read(graph, path):
    again = read_graph(path)
    assert again.topology == graph.topology
    assert again.names.tolist() == graph.names.tolist()
    assert np.array_equal(again.weights, graph.weights)
    assert (again.kind, again.provenance) == (graph.kind, graph.provenance)
    assert again.unit == "one person, at most 5 pairs with at most 2 records each"
    assert read_topology(path) == graph.topology
    assert read_metadata(path).provenance == graph.provenance


def test_zeros_are_there_in_canonical_order(path):
    table = pl.read_parquet(path)
    assert table.columns == ["source", "target", "weight"]
    assert len(table) == 10
    assert (table["weight"] == 0).sum() == 7
    assert table.equals(table.sort("source", "target"))


names = st.one_of(
    st.lists(st.integers(-5, 5), unique=True, min_size=1, max_size=6),
    st.lists(st.text("ab\u00e9 ", max_size=3), unique=True, min_size=1, max_size=6),
)


@settings(max_examples=60, deadline=None)
@given(names, st.randoms(use_true_random=False), st.sampled_from(["distance", "similarity"]))
def test_any_graph_comes_back(tmp_path_factory, called, chance, kind):
    pairs = [(a, b) for a in range(len(called)) for b in range(a) if chance.random() < 0.5]
    ends = np.array(pairs, dtype=int).reshape(-1, 2)
    weights = [chance.uniform(-1, 1) for _ in pairs]
    graph = Graph(ends[:, 0], ends[:, 1], weights, len(called), called, kind=kind)
    path = tmp_path_factory.mktemp("any") / "graph.parquet"
    graph.save(path)
    again = read_graph(path)
    assert again.names.tolist() == graph.names.tolist()
    assert again.topology == graph.topology
    assert np.array_equal(again.weights, graph.weights)
    assert (again.kind, again.provenance) == (kind, None)


def test_where_it_came_from_is_kept(tmp_path):
    graph = Graph.from_points(np.arange(8.0).reshape(4, 2), n_neighbors=1)
    graph.save(tmp_path / "near.parquet")
    assert read_graph(tmp_path / "near.parquet").topology_of_data
    merged = Graph([0, 0], [1, 1], [1.0, 2.0], merge="sum")
    merged.save(tmp_path / "merged.parquet")
    assert read_graph(tmp_path / "merged.parquet").merge == "sum"


def test_spendings_are_kept_exactly(graph, tmp_path):
    graph.provenance = Provenance(
        sensitivity=graph.sensitivity, unit="one person", neighbours="replace", spent=[SPENT]
    )
    graph.save(tmp_path / "graph.parquet")
    again = read_graph(tmp_path / "graph.parquet").provenance
    assert again == graph.provenance
    assert again.spent[0].budget.epsilon == Fraction(1, 10)
    assert again.neighbours == "replace"


def test_only_the_owner_may_read_it(path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_file_is_replaced_unasked(graph, path):
    with pytest.raises(FileError, match="exists already"):
        graph.save(path)
    graph.save(path, overwrite=True)
    with pytest.raises(UsageError, match=r"must be called \.parquet"):
        graph.save(path.with_suffix(".csv"))


def test_names_of_other_types_are_refused(tmp_path):
    for names in (["a", 1], [0.5, 1.5], [0, 2**64], [(0, 1), (1, 2)]):
        graph = Graph([0], [1], [1.0], names=names)
        with pytest.raises(InputError, match="all by integers of 64 bits or all by texts"):
            graph.save(tmp_path / "graph.parquet")
    assert not list(tmp_path.iterdir())


def test_the_release_takes_what_the_file_says(path):
    model = PTClust(epsilon=1.0, clip=(0, 50)).fit(read_graph(path))
    statement = model.release_.statement
    assert Sensitivity(**statement.sensitivity) == read_metadata(path).provenance.sensitivity
    assert statement.privacy_unit == read_graph(path).unit
    assert "one unit more or less" in statement.neighbours


def test_clipped_graphs_keep_their_bound_in_the_file(graph, tmp_path):
    graph.clipped(0, 1).save(tmp_path / "clipped.parquet")
    assert read_graph(tmp_path / "clipped.parquet").sensitivity == graph.sensitivity
    graph.to_distances().save(tmp_path / "distances.parquet")
    assert read_graph(tmp_path / "distances.parquet").sensitivity is None


class TestStaleBounds:
    """Rows that were changed by a program that copies metadata as it is."""

    CHANGES = {
        "doubled": lambda table: table.with_columns(weight=pl.col("weight") * 2),
        "one weight": lambda table: table.with_columns(
            weight=pl.col("weight") + pl.int_range(pl.len()).eq(3)
        ),
        "zeros dropped": lambda table: table.filter(pl.col("weight") > 0),
        "a part": lambda table: table.head(4),
        "renamed": lambda table: table.with_columns(pl.col("source", "target") + 1),
        "a row more": lambda table: pl.concat(
            [table, pl.DataFrame({"source": [0], "target": [9], "weight": [1.0]})]
        ),
        "swapped": lambda table: table.with_columns(weight=pl.col("weight").reverse()),
    }

    @pytest.mark.parametrize("change", CHANGES)
    def test_are_refused(self, change, path, tmp_path):
        changed = self.CHANGES[change](pl.read_parquet(path))
        stale = write(changed, metadata_of(path), tmp_path / "stale.parquet")
        with pytest.raises(FileError, match="was changed after ptclust wrote it"):
            read_graph(stale)

    @pytest.mark.parametrize("change", ["zeros dropped", "a part", "renamed", "a row more"])
    def test_and_so_is_another_topology(self, change, path, tmp_path):
        changed = self.CHANGES[change](pl.read_parquet(path))
        stale = write(changed, metadata_of(path), tmp_path / "stale.parquet")
        with pytest.raises(FileError, match="was changed after ptclust wrote it"):
            read_topology(stale)

    def test_rows_in_another_order_are_the_same_graph(self, path, tmp_path):
        table = pl.read_parquet(path).reverse().select("target", "weight", "source")
        again = read_graph(write(table, metadata_of(path), tmp_path / "turned.parquet"))
        assert again.sensitivity == read_graph(path).sensitivity

    def test_metadata_that_were_dropped_are_missed(self, path, tmp_path):
        pl.read_parquet(path).write_parquet(tmp_path / "plain.parquet")
        with pytest.raises(UsageError, match=r"what the weights of .* mean is not known"):
            read_graph(tmp_path / "plain.parquet")
        plain = read_graph(tmp_path / "plain.parquet", kind="similarity")
        assert plain.provenance is None

    def edited(self, path, tmp_path, change):
        words = json.loads(metadata_of(path))
        change(words)
        return write(pl.read_parquet(path), json.dumps(words), tmp_path / "edited.parquet")

    def test_a_smaller_bound_written_by_hand_is_noticed(self, path, tmp_path):
        edited = self.edited(
            path, tmp_path, lambda words: words["provenance"]["sensitivity"].update(l1=1.0)
        )
        for read in (read_graph, read_topology):
            with pytest.raises(FileError, match="was changed after ptclust wrote it"):
                read(edited)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda words: words.pop("kind"), "lacks the field 'kind'"),
            (lambda words: words.update(more=1), "unknown field 'more'"),
            (lambda words: words.update(version=2), "version 2, and this ptclust reads 1"),
            (lambda words: words.update(format="other"), "not of the format"),
            (lambda words: words.update(kind="far"), "kind must be"),
            (lambda words: words.update(merge="median"), "merge must be one of"),
            (lambda words: words.update(topology_of_data=1), "true or false"),
            (lambda words: words.update(alone=[1, "a"]), "alone must be a list of names"),
            (lambda words: words.update(digest=3), "digest must be text"),
            (lambda words: words.update(provenance=[]), "the provenance must be a mapping"),
            (lambda words: words["provenance"].update(unit=""), "unit must not be empty"),
            (lambda words: words["provenance"].update(unit="a\x1b"), "control character"),
            (lambda words: words["provenance"].update(neighbours="all"), "neighbours must be"),
            (lambda words: words["provenance"].update(details={"a": [1]}), "details"),
            (lambda words: words["provenance"].update(spent=[{}]), "a spending lacks"),
            (lambda words: words["provenance"].update(sensitivity={"l1": -1}), "l1 must be"),
            (lambda words: words["provenance"].update(sensitivity={}), "at least one bound"),
        ],
    )
    def test_malformed_words_are_named(self, change, said, path, tmp_path):
        edited = self.edited(path, tmp_path, change)
        for read in (read_graph, read_topology, read_metadata):
            with pytest.raises(FileError, match=said):
                read(edited)

    @pytest.mark.parametrize("words", ["", "{", "[]", "[" * 10**5, '"\\ud800"', "NaN"])
    def test_what_is_no_json_is_said(self, words, path, tmp_path):
        bad = write(pl.read_parquet(path), words, tmp_path / "bad.parquet")
        with pytest.raises(FileError, match="cannot be used"):
            read_graph(bad)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"kind": "distance"}, "says itself .* leave kind= out"),
            ({"merge": "sum"}, "leave merge= out"),
            ({"weight": "source"}, "leave weight= out"),
            ({"source": "target"}, "leave source= out"),
        ],
    )
    def test_nothing_else_can_be_read_into_it(self, options, said, path):
        with pytest.raises(UsageError, match=said):
            read_graph(path, **options)


def test_what_it_says_itself_may_be_repeated(path):
    same = {"kind": "similarity", "source": "source", "weight": "weight"}
    assert read_graph(path, **same).sensitivity == read_graph(path).sensitivity


def test_no_error_quotes_a_weight(tmp_path):
    graph = Graph([0], [1], [0.123456789])
    graph.save(tmp_path / "graph.parquet")
    table = pl.read_parquet(tmp_path / "graph.parquet").with_columns(weight=0.987654321)
    stale = write(table, metadata_of(tmp_path / "graph.parquet"), tmp_path / "stale.parquet")
    with pytest.raises(FileError) as caught:
        read_graph(stale)
    assert "12345" not in str(caught.value)
    assert "98765" not in str(caught.value)
    assert caught.value.__context__ is None
