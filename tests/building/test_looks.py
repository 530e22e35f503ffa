"""Caps and pairs that are chosen privately: what they see is bounded, paid for, and stated."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust import (
    Budget,
    Ledger,
    PTClust,
    Release,
    graph_from_flows,
    graph_from_visits,
    private_spanning_tree,
    read_graph,
)
from ptclust.building._build import Build
from ptclust.building._records import Records
from ptclust.building.caps import CANDIDATES, Persons, best, choices
from ptclust.errors import BudgetError, UsageError
from ptclust.privacy.noise import laplace_noise
from ptclust.privacy.provenance import Spending
from tests.building.test_bounds import (
    NODES,
    flow_table,
    flows,
    hostile_flows,
    hostile_visits,
    visit_table,
    visits,
)  # fmt: skip

AUTO = {"max_pairs": "auto", "max_per_pair": "auto", "caps_epsilon": 1, "person": "person"}
GIVEN = {"max_pairs": 2, "max_per_pair": 2, "person": "person"}
PRIVATE = {"edges": "private", "edges_epsilon": 1}
TRIPS = flow_table([(who, "a", "b") for who in range(5)])


@pytest.fixture
def seen(monkeypatch):
    """What is counted in each look, with its sensitivity; no noise is added."""
    looks: list[tuple[np.ndarray, object]] = []
    true = Build.look

    def noisy(self, count, n_values, sensitivity, epsilon, purpose):
        true(self, lambda: np.zeros(n_values), n_values, sensitivity, epsilon, purpose)
        counts = np.array(count())
        looks.append((counts, sensitivity))
        return counts.astype(float)

    monkeypatch.setattr(Build, "look", noisy)
    return looks


def check_looks(seen, build, before, after):
    """Fail if a look at one table and the same look at the other are further apart than stated."""
    seen.clear()
    build(before)
    first = list(seen)
    seen.clear()
    build(after)
    for (counts, stated), (others, again) in zip(first, seen, strict=True):
        change = np.abs(counts - others)
        assert stated == again
        assert change.sum() <= stated.l1
        assert change.max(initial=0) <= stated.linf
        return  # a later look may follow a cap that is another one


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("asked", [AUTO, {**GIVEN, **PRIVATE}, {**AUTO, **PRIVATE}], ids=range(3))
def test_one_person_changes_a_look_by_no_more_than_is_stated(seen, asked, neighbours):
    @settings(max_examples=40, deadline=None)
    @given(flows, hostile_flows, hostile_flows)
    def run(rows, person, other):
        def build(table):
            options = {"neighbours": neighbours, "nodes": NODES, "_key": (1, 2, 3), **asked}
            return graph_from_flows(flow_table(table), **options)

        more = rows + (other if neighbours == "replace" else [])
        check_looks(seen, build, more, rows + person)

    run()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_and_so_with_visits(seen, neighbours):
    @settings(max_examples=40, deadline=None)
    @given(visits, hostile_visits, hostile_visits)
    def run(rows, person, other):
        def build(table):
            options = {"items": NODES, "max_items": "auto", "caps_epsilon": 1}
            return graph_from_visits(visit_table(table), neighbours=neighbours, **options)

        more = rows + (other if neighbours == "replace" else [])
        check_looks(seen, build, more, rows + person)

    run()


def chosen_cap(numbers, n_nodes):
    """Return the cap that is chosen if persons have so many items, without noise."""
    rows = [(who, item) for who, number in enumerate(numbers) for item in range(number)]
    table = pl.DataFrame(rows, schema=["person", "item"], orient="row")
    options = {"max_items": "auto", "caps_epsilon": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Build, "look", lambda self, count, *_: noiseless(self, count))
        return graph_from_visits(table, items=range(n_nodes), **options).provenance.details


def noiseless(looks, count):
    looks.spent.append(
        Spending(purpose="max_items", budget=Budget.pure(1), noise="Laplace", scale=0.0)
    )
    return np.array(count(), dtype=float)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(2, 30), min_size=1, max_size=20))
def test_a_cap_has_the_largest_signal(numbers):
    """Without noise it is the best of all candidates, by the rule as it is written down."""

    def signal(cap):
        pairs = cap * (cap - 1) / 2
        bins = [0, *CANDIDATES]
        middle = [
            np.mean([bins[i] + 1, bins[i + 1]])
            for n in numbers
            for i in [np.searchsorted(bins, n) - 1]
        ]
        total = sum(min(m, cap) * (min(m, cap) - 1) / 2 for m in middle)
        mean = total / (40 * 39 / 2)
        return mean / np.sqrt(mean + 2 * (pairs / 0.3) ** 2)

    found = chosen_cap(numbers, 40)["max_items"]
    assert signal(found) == pytest.approx(max(signal(cap) for cap in CANDIDATES[1:] if cap <= 40))


def test_few_persons_with_much_do_not_raise_the_cap():
    """A cap that nine of ten stay within would be 10 here; its noise is 45 times that of 2."""
    details = chosen_cap([2] * 80 + [10] * 20, 30)
    assert details["max_items"] == 2
    assert details["total"] == 100
    assert details["caps"].startswith("signal over noise at epsilon 0.3: 2: ")


def scaled(scale, sensitivity):
    return scale * sensitivity.l1


def test_with_little_noise_a_cap_keeps_more():
    """Where counts vary by more than the noise, more of them say more."""
    persons = Persons.declared(1e5, 1e6, 1.0)
    caps = [{"max_items": cap} for cap in CANDIDATES[1:]]
    kept = []
    for scale in (30.0, 1.0, 0.01):
        found = choices(caps, persons, 1000, "add-remove", partial(scaled, scale))
        kept.append(best(found)["max_items"])
    assert kept == sorted(kept)
    assert kept[0] == 2
    assert kept[-1] > 10


def test_caps_are_found_in_noise():
    rows = [(who, "a", to) for who in range(3000) for to in NODES[1 : 3 + who % 2]]
    graph = graph_from_flows(flow_table(rows * 3), nodes=NODES, **{**AUTO, "caps_epsilon": 0.2})
    caps = [graph.provenance.details[name] for name in ("max_pairs", "max_per_pair")]
    assert caps == [3, 3]  # hundreds of counts on a pair: they vary by more than the noise
    assert graph.unit == "one person, at most 3 pairs with at most 3 records each"
    spent = graph.provenance.spent
    assert [each.purpose for each in spent] == ["max_pairs", "max_per_pair"]
    assert sum(each.budget.epsilon for each in spent) == Fraction(0.2)
    assert len({each.id for each in spent}) == 2
    assert graph.provenance.details["total"] == pytest.approx(22_500, rel=0.1)


def test_a_given_cap_is_kept():
    asked = {**AUTO, "max_per_pair": 2}
    rows = [(who, "a", "b") for who in range(300)] * 2
    graph = graph_from_flows(flow_table(rows), nodes=NODES, **asked)
    assert graph.provenance.details["max_per_pair"] == 2
    assert graph.provenance.details["total"] == pytest.approx(600, rel=0.1)


def test_about_one_empty_pair_passes_the_threshold():
    """Two-sided, at about five standard deviations of a Poisson count."""
    nodes, n_runs = range(40), 200
    empty = TRIPS.clear().cast(pl.Int64, strict=False)
    builds = (graph_from_flows(empty, nodes=nodes, **PRIVATE) for _ in range(n_runs))
    passed = sum(graph.n_edges for graph in builds)
    assert abs(passed - n_runs) < 5.5 * np.sqrt(n_runs)


def test_pairs_with_many_are_kept_with_their_weights_and_all_nodes():
    rows = [(who, a, b) for who in range(400) for a, b in combinations("abc", 2)]
    graph = graph_from_flows(flow_table(rows), nodes=NODES, **GIVEN, **PRIVATE)
    counted = graph_from_flows(flow_table(rows), nodes=NODES, **GIVEN, _key=(1, 2, 3))
    ends = zip(graph.names[graph.sources], graph.names[graph.targets], strict=True)
    kept = dict(zip(ends, graph.weights.tolist(), strict=True))
    assert {("a", "b"), ("a", "c"), ("b", "c")} <= set(kept)
    assert sum(kept.values()) == counted.weights.sum() == 800
    assert graph.names.tolist() == NODES
    assert graph.sensitivity == counted.sensitivity
    assert graph.provenance.details["topology"].endswith("above a private threshold")
    assert graph.provenance.spent[-1].purpose == "which pairs are joined"
    scale = laplace_noise(graph.sensitivity, 10, 1).scale
    assert graph.provenance.spent[-1].scale == scale


WRONG = [
    ({**AUTO, "caps_epsilon": None}, "which spends epsilon: give caps_epsilon="),
    ({**GIVEN, "caps_epsilon": 1}, "caps_epsilon= is for a bound 'auto', which was not requested"),
    ({**GIVEN, "edges": "private"}, "which spends epsilon: give edges_epsilon="),
    ({**GIVEN, "edges_epsilon": 1}, "edges_epsilon= is for a list of pairs 'private'"),
    ({**AUTO, "caps_epsilon": 0}, "caps_epsilon must be greater than 0"),
    ({**GIVEN, **PRIVATE, "edges_epsilon": -1}, "edges_epsilon must be greater than 0"),
    ({**GIVEN, **PRIVATE, "nodes": None}, "chooses among all pairs of a public list, nodes="),
    ({**GIVEN, "max_pairs": "some"}, "max_pairs must be an integer of at least 1, not 'some'"),
    ({**GIVEN, "max_pairs": None}, "max_pairs must be an integer of at least 1, and was not given"),
    ({"max_pairs": "auto", "caps_epsilon": 1}, "name the column that says whose record it is"),
    ({**AUTO, "max_per_pair": 0}, "max_per_pair must be an integer of at least 1, not 0"),
    ({**AUTO, "ledger": "spent.ledger"}, "give both ledger= and dataset="),
    ({**GIVEN, "ledger": "spent.ledger", "dataset": "x"}, "spends nothing, .* leave ledger= out"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "words"), WRONG)
def test_what_is_wrong_is_said_before_a_record_is_read(asked, words, monkeypatch):
    monkeypatch.setattr(Records, "collect", lambda *_: pytest.fail("a record was read"))
    with pytest.raises(UsageError, match=words):
        graph_from_flows(TRIPS, **{"nodes": NODES, **asked})


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "spent.ledger")
    made.add_dataset("trips", Budget.pure(3))
    made.add_dataset("others", Budget.pure(3))
    return made


class TestPayment:
    @pytest.mark.parametrize(
        "asked", [{**AUTO, "caps_epsilon": 8}, {**GIVEN, **PRIVATE, "edges_epsilon": 8}]
    )
    def test_a_look_is_charged_before_the_records_are_read(self, ledger, monkeypatch, asked):
        monkeypatch.setattr(Records, "collect", lambda *_: pytest.fail("a record was read"))
        with pytest.raises(BudgetError, match="left"):
            graph_from_flows(TRIPS, nodes=NODES, **asked, ledger=ledger, dataset="trips")
        assert ledger.history() == ()

    def test_a_look_that_fails_stays_charged(self, ledger, monkeypatch):
        monkeypatch.setattr(Records, "collect", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            graph_from_flows(TRIPS, nodes=NODES, **AUTO, ledger=ledger, dataset="trips")
        assert [charge.released for charge in ledger.history()] == [False]

    def test_building_is_charged_once_and_releases_each(self, ledger):
        pay = {"ledger": ledger, "dataset": "trips"}
        graph = graph_from_flows(TRIPS, nodes=NODES, **AUTO, **PRIVATE, **pay)
        assert ledger.account("trips").spent.amount == 2
        for spent in (Fraction(9, 4), Fraction(5, 2)):
            PTClust(epsilon=0.25, **pay).fit(graph)
            assert ledger.account("trips").spent.amount == spent
        assert all(charge.released for charge in ledger.history())
        with pytest.raises(BudgetError):
            PTClust(epsilon=0.75, **pay).fit(graph)

    @pytest.mark.parametrize("from_file", [False, True])
    def test_what_was_not_charged_then_is_charged_with_the_first_release(
        self, ledger, from_file, tmp_path
    ):
        graph = graph_from_flows(TRIPS, nodes=NODES, **AUTO)
        if from_file:
            graph.save(tmp_path / "graph.parquet")
            graph = read_graph(tmp_path / "graph.parquet")
        pay = {"ledger": ledger, "dataset": "trips"}
        private_spanning_tree(graph, epsilon=0.25, **pay)
        assert ledger.account("trips").spent.amount == Fraction(5, 4)
        PTClust(epsilon=0.25, **pay).fit(graph)
        assert ledger.account("trips").spent.amount == Fraction(3, 2)

    def test_one_dataset_pays_for_a_graph_and_its_releases(self, ledger):
        graph = graph_from_flows(TRIPS, nodes=NODES, **AUTO, ledger=ledger, dataset="trips")
        with pytest.raises(UsageError, match="was charged to dataset 'trips'"):
            PTClust(epsilon=0.25, ledger=ledger, dataset="others").fit(graph)
        assert ledger.account("others").spent.amount == 0


class TestStatement:
    def test_the_total_is_that_of_building_and_release(self, tmp_path):
        graph = graph_from_flows(TRIPS, nodes=NODES, **AUTO, **PRIVATE)
        release = PTClust(epsilon=0.5).fit(graph).release_
        statement = release.statement
        assert (statement.epsilon, statement.total_epsilon) == (0.5, 2.5)
        assert "e^2.5" in statement.sentence
        assert "epsilon = 2.5, of which 2 was spent when the graph was built" in statement.sentence
        page = statement.to_text()
        assert "max_pairs: epsilon = 0.5, Laplace noise of scale 2" in page
        assert "in total, this release included: epsilon = 2.5" in page
        assert "epsilon: 2.5" in statement.to_registry_yaml()
        release.save(tmp_path / "release.json")
        assert Release.load(tmp_path / "release.json").statement == statement

    def test_a_delta_of_the_release_is_that_of_the_total(self):
        graph = graph_from_flows(TRIPS, nodes=NODES, **AUTO)
        options = {"epsilon": 0.5, "delta": 1e-6, "mechanism": "gaussian"}
        statement = PTClust(**options).fit(graph).release_.statement
        assert statement.total_epsilon == pytest.approx(1.5)
        assert statement.total_epsilon >= statement.epsilon + 1
        assert statement.total_delta == statement.delta
        assert "approximate differential privacy" in statement.sentence


def test_the_command(run, tmp_path):
    rows = [(who, a, b) for who in range(400) for a, b in combinations("abc", 2)]
    flow_table(rows).write_parquet("trips.parquet")
    (tmp_path / "nodes.txt").write_text("\n".join(NODES))
    run("ledger", "init", "spent.ledger", "--dataset", "trips", "--epsilon", "2")
    auto = ["--max-pairs", "auto", "--max-per-pair", "auto", "--caps-epsilon", "0.1"]
    private = ["--edges", "private", "--edges-epsilon", "0.5"]
    pay = ["--ledger", "spent.ledger", "--dataset", "trips"]
    build = ["build", "flows", "trips.parquet", "--nodes", "nodes.txt", "-o", "graph.parquet"]
    code, _, err = run(*build, *auto, *private, *pay)
    assert code == 0
    assert "Spent on max_pairs: epsilon = 0.05, Laplace noise" in err
    assert "Spent on which pairs are joined: epsilon = 0.5" in err
    cluster = ["cluster", "graph.parquet", "--epsilon", "1"]
    assert "Charged before it" not in run(*cluster, *pay, "--dry-run")[1]
    run("ledger", "init", "other.ledger", "--dataset", "trips", "--epsilon", "2")
    elsewhere = ["--ledger", "other.ledger", "--dataset", "trips", "--dry-run"]
    shown = run(*cluster, *elsewhere)[1]
    assert "Charged before it, as it was not yet: --max-pairs: epsilon = 0.05" in shown
    assert "It would leave epsilon = 0.4 of epsilon = 2" in shown
    run("ledger", "init", "small.ledger", "--dataset", "trips", "--epsilon", "1.5")
    small = ["--ledger", "small.ledger", "--dataset", "trips", "--dry-run"]
    code, _, err = run(*cluster, *small)  # 0.6 for building, and 1
    assert code == 4
    assert "has epsilon = 0.9 left of epsilon = 1.5, and this release needs epsilon = 1" in err
    code, _, err = run(*cluster, "-o", "release.json", *pay)
    assert code == 0
    assert "has epsilon = 0.4 left" in err
    assert Release.load("release.json").statement.total_epsilon == pytest.approx(1.6)
    code, _, err = run(*build, *auto, "--caps-epsilon", "1", *pay, "--overwrite", "graph.parquet")
    assert code == 4


def test_what_is_spent_depends_on_no_record():
    other = flow_table([(who, "c", "d") for who in range(50)])
    spent = [
        [(each.purpose, each.budget, each.scale) for each in
         graph_from_flows(table, nodes=NODES, **AUTO, **PRIVATE).provenance.spent[:2]]
        for table in (TRIPS, other)
    ]  # fmt: skip
    assert spent[0] == spent[1]
    assert Counter(each.purpose for each in graph_from_visits(
        visit_table([(1, "a")]), items=NODES, max_items="auto", caps_epsilon=1
    ).provenance.spent) == {"max_items": 1}  # fmt: skip
