"""Two releases: clusters matched, labels kept, costs added."""

from __future__ import annotations

import itertools
from dataclasses import replace
from uuid import uuid4

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust import Budget, Graph, Ledger, PTClust, Sensitivity, graph_from_flows
from ptclust.clustering import Clustering
from ptclust.errors import InputError
from ptclust.privacy.provenance import Provenance, Spending
from ptclust.release import Release
from ptclust.release.comparison import _matched

LINE = Graph(range(9), range(1, 10), np.linspace(0.1, 0.9, 9), names="abcdefghij")


def released(labels=None, graph=LINE, **options) -> Release:
    given = {"epsilon": 0.5, "sensitivity": Sensitivity(l1=1e-6), "privacy_unit": "one"}
    release = PTClust(**(given | options)).fit(graph).release_
    if labels is None:
        return release
    found = Clustering(np.array(labels), dbcvi=0.0, shift=1.0, scale=4.0)
    return Release(published=release.published, statement=release.statement, clustering=found)


def test_a_cluster_keeps_its_number():
    earlier = released([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    later = released([0, 1, 1, 1, 2, 2, 3, 3, 3, -1])
    found = later.compare(earlier)
    assert found.labels.tolist() == [3, 0, 0, 0, 1, 1, 2, 2, 2, -1]
    pairs = {(match.label, match.earlier, match.shared) for match in found.matches}
    assert pairs == {(1, 0, 2), (2, 1, 2), (3, 2, 3), (0, None, 0)}
    assert found.n_common == 10
    assert found.to_dataframe()["cluster"].to_list() == found.labels.tolist()


def test_a_cluster_that_is_gone_is_listed():
    found = released([0] * 10).compare(released([0] * 9 + [1]))
    assert [(m.label, m.earlier) for m in found.matches] == [(0, 0), (None, 1)]
    assert "gone" in found.to_text()
    assert "gone" in found._repr_html_()
    assert found.matches[0].overlap == 0.9


def test_unclustered_nodes_are_no_cluster():
    whole = released([0] * 10)
    bare = Release(published=whole.published, statement=whole.statement)
    assert bare.compare(whole).agreement == 0.0
    assert bare.compare(bare).agreement == 1.0
    assert [(m.label, m.earlier) for m in bare.compare(whole).matches] == [(None, 0)]


def test_nodes_are_known_by_name():
    other = Graph(range(9), range(1, 10), np.linspace(0.1, 0.9, 9), names="cdefghijkl")
    found = released([0] * 5 + [1] * 5, other).compare(released([0] * 5 + [1] * 5))
    assert found.n_common == 8
    strange = Graph([0], [1], [0.5], names=["x", "y"])
    with pytest.raises(InputError, match="no node name in common"):
        _ = released(None, strange).compare(released()).matches
    with pytest.raises(InputError, match="not a dict"):
        released().compare({})


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 14), st.randoms(use_true_random=False))
def test_no_other_matching_shares_more(n_now, n_before, n_nodes, random):
    now = np.array([random.randrange(-1, n_now) for _ in range(n_nodes)])
    before = np.array([random.randrange(-1, n_before) for _ in range(n_nodes)])
    found = _matched(now, before, n_now)
    assert len({earlier for earlier, _ in found.values()}) == len(found)
    shared = np.zeros((n_now, n_before + n_now), int)
    for a, b in zip(now, before):
        if a >= 0 and b >= 0:
            shared[a, b] += 1
    for label, (earlier, count) in found.items():
        assert shared[label, earlier] == count > 0
    best = max(
        sum(shared[row, column] for row, column in enumerate(columns))
        for columns in itertools.permutations(range(n_before + n_now), n_now)
    )
    assert sum(count for _, count in found.values()) == best


def test_many_clusters_are_matched_without_a_dense_matrix():
    labels = np.arange(30_000)
    found = _matched(labels, labels[::-1].copy(), len(labels))
    assert all(found[i] == (29_999 - i, 1) for i in range(0, 30_000, 1000))


class TestCost:
    def test_pure_adds_up_as_in_a_ledger(self, tmp_path):
        book = Ledger.create(tmp_path / "book")
        book.add_dataset("d", Budget.pure(2))
        first, second = (released(epsilon=e, ledger=book, dataset="d") for e in (0.5, 0.25))
        cost = second.compare(first).cost
        assert cost == Budget.pure("0.75")
        assert cost.epsilon == book.status()[0].spent.amount

    def test_zcdp_adds_up_as_in_a_ledger(self, tmp_path):
        book = Ledger.create(tmp_path / "book")
        book.add_dataset("d", Budget.zcdp(2))
        paid = {"ledger": book, "dataset": "d"}
        first = released(epsilon=0.5, delta=1e-6, mechanism="gaussian", **paid)
        second = released(epsilon=0.25, mechanism="laplace", **paid)
        cost = second.compare(first).cost
        assert float(cost.rho) == pytest.approx(float(book.status()[0].spent.amount), rel=1e-12)
        assert "at delta = 1e-06" in second.compare(first).to_text()

    def test_one_draw_is_paid_once(self):
        release = released()
        assert release.recluster("dbmstclu").compare(release).cost == Budget.pure(0.5)
        smooth = released(delta=1e-6, mechanism="gaussian")
        assert smooth.compare(smooth).cost == Budget.approximate(0.5, 1e-6)
        assert "epsilon = 0.5, delta = 1e-06: one release" in smooth.compare(smooth).to_text()

    def test_what_is_known_by_no_rho_adds_up_as_epsilon_and_delta(self):
        first = released(delta=1e-6, mechanism="gaussian")
        look = Spending(
            purpose="max_pairs", budget=Budget.approximate(1, 1e-7), noise="Gaussian", scale=1.0
        )
        built = Provenance(sensitivity=Sensitivity(l1=1e-6), unit="one", spent=(look,))
        statement = replace(first.statement, provenance=built, id=str(uuid4()))
        cost = replace(first, statement=statement).compare(first).cost
        assert (float(cost.epsilon), float(cost.delta)) == pytest.approx((2.0, 2.1e-6))

    @pytest.mark.parametrize("delta", [0, 1e-6])
    def test_building_a_graph_is_paid_once_as_in_a_ledger(self, tmp_path, delta):
        columns = {"person": "ppqr", "origin": "abac", "destination": "bcba"}
        records = pl.DataFrame({name: list(texts) for name, texts in columns.items()})
        given = {"nodes": list("abc"), "person": "person", "max_per_pair": 1}
        graph = graph_from_flows(records, max_pairs="auto", caps_epsilon=0.25, **given)
        book = Ledger.create(tmp_path / "book")
        book.add_dataset("d", Budget.zcdp(2) if delta else Budget.pure(2))
        paid = {"ledger": book, "dataset": "d", "sensitivity": None, "delta": delta}
        mechanism = "gaussian" if delta else "laplace"
        first, second = (released(None, graph, mechanism=mechanism, **paid) for _ in range(2))
        cost, spent = second.compare(first).cost, book.status()[0].spent.amount
        assert float(cost.amount) == pytest.approx(float(spent), rel=1e-12)
        once = first.compare(first).cost
        assert delta or (cost, once) == (Budget.pure("1.25"), Budget.pure("0.75"))

    def test_what_is_not_private_has_no_cost(self):
        open_ = released(random_state=1)
        found = open_.compare(released())
        assert found.cost is None
        assert "not private" in found.to_text()

    def test_the_statement_of_another_release_counts(self):
        release = released()
        other = replace(release, statement=replace(release.statement, epsilon=0.75))
        assert other.compare(released()).cost == Budget.pure("1.25")
