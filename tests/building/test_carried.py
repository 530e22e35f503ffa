"""Sensitivity and unit go with the graph: computed, never typed, and gone when they are stale."""

from __future__ import annotations

import math

import polars as pl
import pytest

from ptclust import (
    Graph,
    PTClust,
    Sensitivity,
    graph_from_flows,
    graph_from_visits,
    private_spanning_tree,
)
from ptclust.building._contributions import sensitivity_of_sum
from ptclust.errors import InputError, UsageError
from ptclust.privacy import Provenance

TRIPS = pl.DataFrame({"person": [1, 1, 2], "origin": [0, 1, 2], "destination": [1, 2, 3]})
NODES = range(6)


def of_records(**options):
    return graph_from_flows(TRIPS, nodes=NODES, **options)


def of_persons(max_pairs=5, max_per_pair=2):
    return of_records(person="person", max_pairs=max_pairs, max_per_pair=max_per_pair)


def of_visits(max_items=4):
    return graph_from_visits(TRIPS, item="origin", items=NODES, max_items=max_items)


def plain():
    return Graph([0, 1, 2], [1, 2, 3], [1.0, 2.0, 3.0], kind="similarity")


def test_of_records():
    graph = of_records()
    assert graph.sensitivity == Sensitivity(l1=1, l2=1, linf=1)
    assert graph.unit == "one record"


def test_of_persons():
    graph = of_persons()
    assert graph.sensitivity.to_dict() == {"l1": 10, "l2": pytest.approx(math.sqrt(20)), "linf": 2}
    assert graph.unit == "one person, at most 5 pairs with at most 2 records each"
    assert of_persons(1, 1).unit == "one person, at most 1 pair with at most 1 record each"
    assert graph.provenance.details == {
        "built_by": "graph_from_flows",
        "ids": "texts in Unicode form NFC, without blanks around them and characters that cannot "
        "be seen",
        "topology": "all pairs of a public list of nodes",
        "max_pairs": 5,
        "max_per_pair": 2,
    }
    assert graph.provenance.neighbours == "add-remove"
    assert Provenance.from_dict(graph.provenance.to_dict()) == graph.provenance


def test_a_record_is_called_as_people_call_it():
    bounds = {"person": "person", "max_pairs": 5, "max_per_pair": 2, "called": "trip"}
    assert of_records(**bounds).unit == "one person, at most 5 pairs with at most 2 trips each"
    assert of_records(called="ride").unit == "one ride"
    with pytest.raises(InputError, match="called must not be empty"):
        of_records(called=" ")


def test_of_visits():
    graph = of_visits()
    assert graph.sensitivity.to_dict() == {"l1": 6, "l2": pytest.approx(math.sqrt(6)), "linf": 1}
    assert graph.unit == "one person, at most 4 items"
    assert graph.provenance.details["max_items"] == 4


@pytest.mark.parametrize("square", range(2, 60))
def test_roots_are_rounded_up(square):
    l2 = sensitivity_of_sum(1, square, "add-remove").l2
    assert math.isqrt(square) ** 2 == square or l2**2 >= square
    assert l2 == pytest.approx(math.sqrt(square), rel=1e-15)


def test_provenance_holds_public_numbers_only():
    twice = graph_from_flows(pl.concat([TRIPS, TRIPS]), nodes=NODES)
    assert twice.provenance == of_records().provenance


def test_clipping_keeps_them_and_other_changes_drop_them():
    graph = of_persons()
    clipped = graph.clipped(0, 1)
    assert clipped.sensitivity == graph.sensitivity
    assert (clipped.unit, clipped.provenance) == (graph.unit, graph.provenance)
    for changed in (graph.to_distances(), Graph.from_networkx(graph.to_networkx()), plain()):
        assert (changed.sensitivity, changed.unit, changed.provenance) == (None, None, None)


class TestRelease:
    @pytest.mark.parametrize("build", [of_records, of_persons, of_visits])
    def test_takes_what_the_graph_carries(self, build, recwarn):
        graph = build()
        model = PTClust(epsilon=1.0, clip=(0, 100)).fit(graph)
        statement = model.release_.statement
        assert Sensitivity(**statement.sensitivity) == graph.sensitivity
        assert statement.privacy_unit == graph.unit
        assert not [w for w in recwarn if "whom it protects" in str(w.message)]
        assert private_spanning_tree(graph, epsilon=1.0).n_edges == 5

    def test_pairs_from_a_public_list_need_no_further_word(self):
        graph = graph_from_flows(TRIPS, edges=[(0, 1), (1, 2), (2, 3)])
        assert PTClust(epsilon=1.0).fit(graph).release_.statement.privacy_unit == "one record"

    def test_a_unit_that_is_given_wins(self):
        model = PTClust(epsilon=1.0, privacy_unit="one ride").fit(of_records())
        assert model.release_.statement.privacy_unit == "one ride"

    def test_a_graph_that_carries_none_needs_one(self):
        for graph in (plain(), of_persons().to_distances()):
            with pytest.raises(UsageError, match="carries no sensitivity"):
                PTClust(epsilon=1.0).fit(graph)
            with pytest.raises(UsageError, match="carries no sensitivity"):
                private_spanning_tree(graph, epsilon=1.0)

    @pytest.mark.parametrize(
        "bounds",
        [{"l1": 9.9}, {"l2": 4}, {"linf": 1.9}, {"l1": 10, "linf": 1}, {"l1": 20, "l2": 1}],
    )
    def test_a_smaller_one_is_refused(self, bounds):
        smaller = Sensitivity(**bounds)
        with pytest.raises(UsageError, match=r"smaller than .* one person, at most 5 pairs"):
            PTClust(epsilon=1.0, sensitivity=smaller).fit(of_persons())
        with pytest.raises(UsageError, match="smaller than"):
            private_spanning_tree(of_persons(), epsilon=1.0, sensitivity=smaller)

    @pytest.mark.parametrize(
        "bounds", [{"l1": 10}, {"l2": 4.5}, {"linf": 2}, {"l1": 10, "linf": 2}, {"l1": 20, "l2": 9}]
    )
    def test_one_that_is_not_smaller_is_taken(self, bounds):
        larger = Sensitivity(**bounds)
        model = PTClust(epsilon=1.0, sensitivity=larger).fit(of_persons())
        assert Sensitivity(**model.release_.statement.sensitivity) == larger

    def test_what_is_no_sensitivity_is_refused(self):
        with pytest.raises(UsageError, match="must be a Sensitivity"):
            PTClust(epsilon=1.0, sensitivity=0.5).fit(of_persons())
