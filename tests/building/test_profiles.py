"""Profiles: means of bounded differences, exact in any order, and what one person can change."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust import PTClust, graph_from_profiles, read_graph
from ptclust.building.profiles import _STEPS, _change, _factor
from ptclust.errors import InputError, UsageError

NODES = ["a", "b", "c", "d"]
PATH = [("a", "b"), ("b", "c")]
EXTREME = [math.nan, math.inf, -math.inf, 1e308, -0.0, 5e-324]
values = st.one_of(st.none(), st.floats(-2, 3), st.sampled_from(EXTREME))
rows = st.lists(values, min_size=len(NODES), max_size=len(NODES))
tables = st.lists(st.tuples(st.sampled_from([1, 2, 3, None]), rows), max_size=8)
persons = st.lists(rows, min_size=1, max_size=4)  # several rows of one person


def frame(table) -> pl.DataFrame:
    columns = {"person": [who for who, _ in table]}
    for i, node in enumerate(NODES):
        columns[node] = [row[i] for _, row in table]
    types = {"person": pl.Int64} | dict.fromkeys(NODES, pl.Float64)
    return pl.DataFrame(columns, schema=types)


def build(table, **options):
    public = {"edges": PATH} if options.pop("on_path", False) else {"nodes": NODES}
    given_bounds = {"low": -1, "high": 2, **public, **options}
    return graph_from_profiles(table, **given_bounds)


def check_moved(before, after):
    """Fail if a weight moved by more than is stated, in exact arithmetic."""
    assert before.sensitivity == after.sensitivity
    linf = Fraction(after.sensitivity.linf)
    changes = [
        abs(Fraction(a) - Fraction(b))
        for a, b in zip(before.weights.tolist(), after.weights.tolist(), strict=True)
    ]
    assert max(changes, default=0) <= linf
    assert sum(changes) <= Fraction(after.sensitivity.l1_of(len(changes)))


options = st.fixed_dictionaries(
    {
        "dissimilarity": st.sampled_from(["absolute", "squared"]),
        "on_path": st.booleans(),
        "n_persons": st.sampled_from([1, 2, 3, 7, 1000]),
    }
)


@settings(max_examples=400, deadline=None)
@given(tables, persons, options, st.randoms(use_true_random=False))
def test_one_person_more_or_less(table, person, asked, chance):
    larger = table + [(9, row) for row in person]
    chance.shuffle(larger)
    check_moved(*(build(frame(one), person="person", **asked) for one in (table, larger)))


@settings(max_examples=400, deadline=None)
@given(tables, persons, persons, options, st.booleans(), st.randoms(use_true_random=False))
def test_one_person_in_place_of_another(table, person, other, asked, known, chance):
    if known:
        asked = {**asked, "n_persons": None}
    both = [table + [(9, row) for row in one] for one in (person, other)]
    chance.shuffle(both[1])
    replace = {"person": "person", "neighbours": "replace", **asked}
    check_moved(*(build(frame(one), **replace) for one in both))


@settings(max_examples=200, deadline=None)
@given(tables, rows, rows, options)
def test_rows_are_persons_where_none_are_named(table, row, other, asked):
    before, after, instead = (frame(table + more) for more in ([], [(1, row)], [(1, other)]))
    check_moved(build(before, **asked), build(after, **asked))
    asked = {**asked, "n_persons": None, "neighbours": "replace"}
    check_moved(build(after, **asked), build(instead, **asked))


@settings(max_examples=200, deadline=None)
@given(tables, options, st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(table, asked, chance):
    turned = list(table)
    chance.shuffle(turned)
    weights = [build(frame(one), person="person", **asked).weights for one in (table, turned)]
    assert np.array_equal(*weights)


def test_the_weights_are_the_means():
    rng = np.random.default_rng(0)
    scores = rng.uniform(-1, 2, (500, 4))
    table = pl.DataFrame(scores, schema=NODES)
    for name, power in (("absolute", 1), ("squared", 2)):
        graph = build(table, neighbours="replace", dissimilarity=name)
        expected = [
            np.mean(np.abs(scores[:, i] - scores[:, j]) ** power)
            for i in range(4)
            for j in range(i + 1, 4)
        ]
        np.testing.assert_allclose(graph.weights, expected, atol=1e-5)
        assert graph.sensitivity.linf == pytest.approx(3**power / 500, rel=1e-9)
        assert graph.sensitivity.linf >= Fraction(3**power, 500) * (1 - Fraction(1, 2**50))
    assert graph.kind == "distance"


def test_several_rows_of_a_person_are_their_mean():
    table = frame([(1, [0, 1, 0, 0]), (1, [1, 1, 0, None]), (2, [0, 0, 0, 0])])
    graph = build(table, person="person", n_persons=2)
    assert graph.weights[0] == pytest.approx(0.25, abs=1e-5)
    assert graph.unit == "one person, one value between -1 and 2 a node"


def test_missing_values_count_half_of_the_range():
    table = pl.DataFrame({"a": [None], "b": [0.0], "c": [math.nan], "d": [0.0]})
    graph = build(table, n_persons=1)
    assert graph.weights.tolist() == [1.5, 1.5, 1.5, 1.5, 0.0, 1.5]


def test_values_beyond_the_bounds_are_moved():
    table = pl.DataFrame({"a": [-math.inf], "b": [1e300], "c": [-1.0], "d": [2.0]})
    assert build(table, n_persons=1).weights.tolist() == [3.0, 0.0, 3.0, 3.0, 0.0, 3.0]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow", "pandas", "ints"])
def test_tables_of_all_kinds(suffix, tmp_path):
    table = pl.DataFrame({"a": [0, 1], "b": [1, 1], "c": [2, -1], "d": [0, 0]})
    source: object = tmp_path / f"scores.{suffix}"
    if suffix == "pandas":
        source = pd.DataFrame(table.to_dict(as_series=False)).astype(object)
    elif suffix == "ints":
        source = table
    else:
        write = {"parquet": "write_parquet", "csv": "write_csv", "arrow": "write_ipc"}
        getattr(table.cast(pl.Float64), write[suffix])(source)
    weights = build(source, n_persons=2).weights
    np.testing.assert_allclose(weights, [0.5, 2.0, 0.5, 1.5, 1.0, 1.5], atol=1e-5)


def test_nodes_may_be_integers_and_the_file_carries_all(tmp_path):
    table = pl.DataFrame({"7": [0.0, 1.0], "8": [1.0, 1.0]})
    graph = graph_from_profiles(table, nodes=[7, 8], low=0, high=1, n_persons=2)
    graph.save(tmp_path / "graph.parquet")
    again = read_graph(tmp_path / "graph.parquet")
    assert (again.kind, again.provenance) == ("distance", graph.provenance)
    assert again.provenance.details["n_persons"] == 2
    statement = PTClust(epsilon=1.0, clip=(0, 1)).fit(again).release_.statement
    assert statement.sensitivity["linf"] == graph.sensitivity.linf


def test_an_empty_table():
    empty = frame([])
    assert build(empty, n_persons=5).weights.tolist() == [0.0] * 6
    assert build(empty, neighbours="replace").provenance.details["n_persons"] == 1


def test_more_persons_than_stated_count_as_far_as_the_range_allows():
    table = frame([(who, [2, -1, 2, -1]) for who in range(5)])
    assert build(table, n_persons=2).weights.max() == 3.0


def test_the_bound_holds_for_floats_of_large_sums_and_needs_its_slack():
    """In exact arithmetic, over sums as large as they can be."""
    rng, tight = np.random.default_rng(5), 0
    for share in rng.integers(2, 2**33, 2000).tolist():
        bounds = (float(rng.normal()), float(rng.uniform(4, 9)))
        factor = _factor(bounds, "absolute", share)
        one = int(rng.integers(0, share)) * _STEPS
        first, second = (float(np.float64(total) * factor) for total in (one, one + _STEPS))
        change = abs(Fraction(first) - Fraction(second))
        assert change <= _change(factor, share)
        tight += change > _STEPS * Fraction(factor)
    assert tight > 100


SCORES = frame([(1, [0, 1, 0, 0])])
WRONG = {
    "no number": ({}, UsageError, "n_persons must be .* neighbours='replace' it may be left out"),
    "zero": ({"n_persons": 0}, UsageError, "n_persons must be an integer of at least 1"),
    "many": ({"n_persons": 2**40}, UsageError, "n_persons must be at most"),
    "bounds": ({"n_persons": 1, "low": 2, "high": 1}, UsageError, "not public bounds"),
    "nan": ({"n_persons": 1, "low": math.nan}, UsageError, "not public bounds"),
    "words": ({"n_persons": 1, "low": "a"}, UsageError, "not public bounds"),
    "close": ({"n_persons": 1, "low": 0, "high": 1e-305}, UsageError, "too close together"),
    "far": ({"n_persons": 1, "high": 1e200, "dissimilarity": "squared"}, UsageError, "too far"),
    "rule": ({"n_persons": 1, "dissimilarity": "cosine"}, UsageError, "must be 'absolute'"),
    "column": ({"n_persons": 1, "nodes": ["a", "z"]}, InputError, "no column 'z'; every node is a"),
    "twice": ({"n_persons": 1, "person": "a"}, UsageError, "must be different columns"),
    "private": ({"n_persons": 1, "edges": "private"}, UsageError, "is for counts"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case):
    asked, kind, words = WRONG[case]
    with pytest.raises(kind, match=words):
        build(SCORES, **asked)


def test_dates_are_no_values():
    with pytest.raises(InputError, match="values must be numbers"):
        build(SCORES.with_columns(a=pl.lit("2014-01-01").str.to_date()), n_persons=1)


def test_a_builder_whose_denominator_is_the_number_of_rows_is_caught():
    """One person more moves a mean of few by more than a mean of many."""
    table, larger = frame([]), frame([(1, [2, -1, 2, -1])])

    def careless(one):
        graph = build(one, neighbours="replace")
        graph.provenance = build(one, n_persons=5).provenance
        return graph

    with pytest.raises(AssertionError):
        check_moved(careless(table), careless(larger))
