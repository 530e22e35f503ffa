"""One unit more or less moves the weights by no more than the graph says; builders that err fail.

Tables are sets of records: the rows of a neighbour come in any order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ptclust import Graph, Sensitivity, graph_from_flows, graph_from_visits
from ptclust.building import _contributions
from ptclust.building._contributions import Things
from ptclust.errors import UsageError
from ptclust.privacy import Provenance

NODES = ["a", "b", "c", "d", "e"]
PATH = list(pairwise(NODES))
KEY = (1, 2, 3)
Row = tuple[Any, ...]
Build = Callable[..., Graph]  # of rows, two bounds, whether pairs are listed, and the neighbours

ids = st.sampled_from([*NODES, *NODES, "not public", "", None])
persons = st.sampled_from([1, 2, 3, None])
caps = st.integers(1, 3)
flows = st.lists(st.tuples(persons, ids, ids), max_size=25)
visits = st.lists(st.tuples(persons, ids), max_size=25)
# A person of their own, who is in many rows, the same ones again and again.
hostile_flows = st.lists(st.tuples(st.just(9), ids, ids), max_size=40).map(lambda rows: rows * 3)
hostile_visits = st.lists(st.tuples(st.just(9), ids), max_size=40).map(lambda rows: rows * 3)


def public(on_path: bool, word: str = "nodes") -> dict[str, Any]:
    return {"edges": PATH} if on_path else {word: NODES}


def flow_table(rows: list[Row]) -> pl.DataFrame:
    schema = {"person": pl.Int64, "origin": pl.String, "destination": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def visit_table(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"person": pl.Int64, "item": pl.String}, orient="row")


def build_records(rows: list[Row], _: int, __: int, on_path: bool, **options: Any) -> Graph:
    return graph_from_flows(flow_table(rows), **public(on_path), **options)


def build_flows(
    rows: list[Row], max_pairs: int, max_per_pair: int, on_path: bool, **options: Any
) -> Graph:
    bounds = {"max_pairs": max_pairs, "max_per_pair": max_per_pair, "person": "person"}
    return graph_from_flows(flow_table(rows), **public(on_path), **bounds, **options, _key=KEY)


def build_visits(rows: list[Row], most: int, _: int, on_path: bool, **options: Any) -> Graph:
    bounds = {**public(on_path, "items"), "max_items": most + 1}
    return graph_from_visits(visit_table(rows), **bounds, **options, _key=KEY)


def moved(before: Graph, after: Graph) -> dict[str, float]:
    """Return how far the weights moved, in every norm."""
    assert before.topology == after.topology
    change = np.abs(after.weights - before.weights)
    return {"l1": change.sum(), "l2": np.sqrt((change**2).sum()), "linf": change.max(initial=0)}


def check_bounds(
    build: Build, tables: Any, units: Any, *, replace: bool = False, **options: Any
) -> None:
    """Fail if a table and its neighbour are ever further apart than the graph says."""

    @settings(
        max_examples=200 if replace else 600,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(tables, units, units, caps, caps, st.booleans(), st.randoms(use_true_random=False))
    def run(
        rows: list[Row], unit: list[Row], other: list[Row], a: int, b: int, on_path: bool,
        chance: random.Random,
    ) -> None:  # fmt: skip
        smaller = rows + other if replace else list(rows)
        larger = rows + unit
        chance.shuffle(larger)
        before = build(smaller, a, b, on_path, **options)
        after = build(larger, a, b, on_path, **options)
        stated = after.sensitivity
        assert stated is not None
        assert stated == before.sensitivity
        for norm, distance in moved(before, after).items():
            assert distance <= getattr(stated, norm) * (1 + 1e-12), norm

    run()


one_record = st.tuples(persons, ids, ids).map(lambda row: [row])
CASES: dict[str, tuple[Build, Any, Any]] = {
    "records": (build_records, flows, one_record),
    "persons": (build_flows, flows, hostile_flows),
    "visits": (build_visits, visits, hostile_visits),
}


@pytest.mark.parametrize("case", CASES)
def test_one_unit_more_or_less_stays_within_the_stated_bounds(case):
    check_bounds(*CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_a_unit_in_place_of_another_stays_within_the_bounds_stated_for_that(case):
    check_bounds(*CASES[case], replace=True, neighbours="replace")


@pytest.mark.parametrize("case", CASES)
def test_and_not_within_those_of_one_more_or_less(case):
    with pytest.raises(AssertionError):
        check_bounds(*CASES[case], replace=True)


@pytest.mark.parametrize("case", CASES)
def test_the_bounds_of_both_relations(case):
    build, *_ = CASES[case]
    more, instead = (build([], 3, 2, False, neighbours=way) for way in ("add-remove", "replace"))
    a, b = more.sensitivity, instead.sensitivity
    assert (b.l1, b.linf) == (2 * a.l1, a.linf)
    assert b.l2 == pytest.approx(np.sqrt(2) * a.l2, rel=1e-15)
    assert b.l2**2 >= 2 * round(a.l2**2) * (1 - 1e-15)
    assert (more.provenance.neighbours, instead.provenance.neighbours) == ("add-remove", "replace")
    with pytest.raises(UsageError, match="neighbours must be 'add-remove'"):
        build([], 3, 2, False, neighbours="bounded")


def bounded(on_path: bool, weights: Counter, like: Graph) -> Graph:
    """Return a graph of a builder that errs, with the bounds of the right one."""
    pairs = PATH if on_path else list(combinations(NODES, 2))
    graph = graph_on(pairs, [weights[pair] for pair in pairs])
    graph.provenance = like.provenance
    return graph


def graph_on(pairs: list[tuple[str, str]], counts: list[int]) -> Graph:
    sources, targets = ([NODES.index(pair[side]) for pair in pairs] for side in (0, 1))
    return Graph(sources, targets, counts, names=NODES, kind="similarity")


def pairs_in_order(rows: list[Row], on_path: bool) -> list[tuple[Any, tuple[str, str]]]:
    ordered = [(who, tuple(sorted((a, b)))) for who, a, b in rows if a in NODES and b in NODES]
    allowed = PATH if on_path else list(combinations(NODES, 2))
    return [(who, pair) for who, pair in ordered if pair in allowed and who is not None]


def without_bounds(rows: list[Row], a: int, b: int, on_path: bool) -> Graph:
    counts = Counter(pair for _, pair in pairs_in_order(rows, on_path))
    return bounded(on_path, counts, build_flows([], a, b, on_path))


def first_records(rows: list[Row], a: int, b: int, on_path: bool) -> Graph:
    counts: Counter = Counter()
    of_person: dict[Any, Counter] = {}
    for who, pair in pairs_in_order(rows, on_path):
        mine = of_person.setdefault(who, Counter())
        if mine[pair] < b and (mine[pair] or len(+mine) < a):
            mine[pair] += 1
            counts[pair] += 1
    return bounded(on_path, counts, build_flows([], a, b, on_path))


def bound_on_records_only(rows: list[Row], a: int, b: int, on_path: bool) -> Graph:
    """Bounds the records on a pair, but not the pairs."""
    graph = build_flows(rows, 10**6, b, on_path)
    graph.provenance = build_flows([], a, b, on_path).provenance
    return graph


def pairs_that_occur(rows: list[Row], a: int, b: int, on_path: bool) -> Graph:
    counts = Counter(pair for _, pair in pairs_in_order(rows, on_path))
    graph = graph_on(list(counts), list(counts.values()))
    huge = Sensitivity(l1=10**6, l2=10**6, linf=10**6)
    graph.provenance = Provenance(sensitivity=huge, unit="one person")
    return graph


def visits_in_the_first_rows(rows: list[Row], a: int, _: int, on_path: bool) -> Graph:
    items: dict[Any, list[str]] = {}
    for who, item in rows:
        mine = items.setdefault(who, [])
        if who is not None and item in NODES and item not in mine and len(mine) < a + 1:
            mine.append(item)
    counts = Counter(pair for mine in items.values() for pair in combinations(sorted(mine), 2))
    return bounded(on_path, counts, build_visits([], a, 1, on_path))


WRONG = [without_bounds, first_records, bound_on_records_only, pairs_that_occur]


@pytest.mark.parametrize("wrong", WRONG)
def test_builders_of_flows_that_err_are_caught(wrong):
    with pytest.raises(AssertionError):
        check_bounds(wrong, flows, hostile_flows)


def test_a_builder_of_visits_that_keeps_the_first_rows_is_caught():
    with pytest.raises(AssertionError):
        check_bounds(visits_in_the_first_rows, visits, hostile_visits)


@settings(max_examples=300)
@given(flows, st.booleans())
def test_where_no_bound_is_reached_all_is_counted(rows, on_path):
    expected = bounded(
        on_path,
        Counter(pair for _, pair in pairs_in_order(rows, on_path)),
        build_flows([], 1, 1, on_path),
    )
    graph = build_flows(rows, 100, 100, on_path)
    assert graph.topology == expected.topology
    assert graph.weights.tolist() == expected.weights.tolist()
    known = [row for row in rows if row[0] is not None]
    assert build_records(known, 0, 0, on_path).weights.tolist() == expected.weights.tolist()


@settings(max_examples=300)
@given(visits, st.booleans())
def test_of_few_items_all_are_counted(rows, on_path):
    everything = visits_in_the_first_rows(rows, 100, 1, on_path)
    assert build_visits(rows, 100, 1, on_path).weights.tolist() == everything.weights.tolist()


@settings(max_examples=300)
@given(flows, caps, caps, st.booleans(), st.randoms(use_true_random=False))
def test_neither_row_order_nor_direction_matters(rows, a, b, on_path, chance):
    turned = [(who, *ends) if chance.random() < 0.5 else (who, *ends[::-1]) for who, *ends in rows]
    chance.shuffle(turned)
    for build in (build_flows, build_records):
        assert np.array_equal(
            build(rows, a, b, on_path).weights, build(turned, a, b, on_path).weights
        )


@settings(max_examples=200)
@given(flows, hostile_flows, caps, caps, st.booleans())
def test_what_a_person_adds_does_not_depend_on_others(rows, person, a, b, on_path):
    """The weights of all are those of the others and those of the person alone."""
    alone, others = build_flows(person, a, b, on_path), build_flows(rows, a, b, on_path)
    together = build_flows(rows + person, a, b, on_path)
    assert np.array_equal(together.weights, others.weights + alone.weights)


def test_every_pair_is_as_likely_to_be_kept():
    """Two-sided, at p of about 1e-6; and another key keeps others."""
    n_persons = 20_000
    rows = [(who, "a", other) for who in range(n_persons) for other in NODES[1:]]
    table = flow_table(rows)
    options = {"nodes": NODES, "person": "person", "max_pairs": 1, "max_per_pair": 1}
    seen = []
    for _ in range(2):
        weights = graph_from_flows(table, **options).weights
        kept = weights[weights > 0]
        assert len(kept) == 4
        assert kept.sum() == n_persons
        expected, deviation = n_persons / 4, np.sqrt(n_persons * 3 / 16)
        assert np.abs(kept - expected).max() < 5.2 * deviation
        seen.append(tuple(kept))
    assert seen[0] != seen[1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 9)), max_size=30), caps, st.data())
def test_parts_keep_what_the_whole_keeps_whatever_the_hash(rows, most, data):
    """Even one under which many things are the same."""
    parts = [data.draw(st.lists(st.sampled_from(rows))) if rows else [] for _ in range(2)]
    frames = [
        pl.LazyFrame(part, schema={"person": pl.Int64, "thing": pl.Int64}, orient="row")
        for part in (*parts, parts[0] + parts[1])
    ]
    things = Things(lambda records: records).bounded(most, KEY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_contributions, "_hash", lambda _: pl.col("thing") % 3)
        of_parts = things.of_parts(things.merged(pl.concat(map(things.of_part, frames[:2]))))
        wanted = things.of_all(frames[2])
        assert sorted(of_parts.collect().rows()) == sorted(wanted.collect().rows())
