"""Neighbouring tables through building and clustering: claims stand, builders that err do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ptclust.audit import controls, suite
from ptclust.audit.statistical import LIKELIHOOD, epsilon_bound
from ptclust.audit.suite import Effort, Suite
from ptclust.audit.tables import (
    Tables,
    build_flows,
    build_records,
    build_visits,
    built_release,
)
from ptclust.privacy import Sensitivity

ERROR = 1e-6
EFFORT = Effort((), 1, (), 400, 400, 20_000, ())
FLOWS = Tables.of_flows()


def found(build, tables=FLOWS):
    first, second = (
        built_release(build, tables, 1.0, 0.0, table, 200, 0)
        for table in (tables.table, tables.neighbour)
    )
    return epsilon_bound(first, second, ERROR)


def claims():
    return [finding for audit in Suite(EFFORT, 0).from_records() for finding in audit.run(ERROR)]


def test_what_is_built_of_neighbouring_tables_stands():
    findings = claims()
    assert {finding.section for finding in findings} == {suite.BUILT}
    assert all(finding.verdict == "stands" for finding in findings)
    assert max(finding.ratio for finding in findings) > 0.1


@pytest.mark.parametrize(
    ("build", "witness"),
    [
        (controls.unsafe_unbounded, ("weight of", "sum of weights", LIKELIHOOD)),
        (controls.unsafe_first_records, ("weight of a-b", "weight of c-d", LIKELIHOOD)),
        (controls.unsafe_pairs_that_occur, ("pairs: one of", "weight of", "labels: one of")),
    ],
)
def test_builders_that_err_are_caught(build, witness):
    bound = found(build)
    assert bound.value > 1.0
    assert bound.witness.startswith(witness)


def test_the_controls_of_a_run_are_those():
    titles = [audit.title for audit in suite.audits(EFFORT, 0)]
    for what in ("without a bound", "the first records of a person", "on the pairs that occur"):
        assert sum(what in title for title in titles) == 1


def test_a_tenth_of_the_sensitivity_is_too_little():
    def careless(table: pl.DataFrame):
        graph = build_flows(table)
        small = Sensitivity(l1=0.4, l2=0.4, linf=0.4)  # it is 4 in total
        graph.provenance = replace(graph.provenance, sensitivity=small)
        return graph

    assert found(careless).value > 1.0
    assert found(build_flows).value <= 1.0


@pytest.mark.parametrize(
    ("build", "tables"),
    [
        (build_records, Tables.of_records()),
        (build_flows, FLOWS),
        (build_visits, Tables.of_visits()),
    ],
)
def test_neighbours_reach_what_one_unit_may_change(build, tables):
    """The hostile unit is the worst there can be, so that the audit has something to find."""
    here, there = build(tables.table), build(tables.neighbour)
    assert np.abs(there.weights - here.weights).sum() == here.sensitivity.l1


def test_the_first_records_are_a_bound_only_where_nobody_is_reordered():
    most = controls.unsafe_first_records(FLOWS.table).sensitivity.l1
    hostile = FLOWS.neighbour.filter(pl.col("person") == 99)
    appended = pl.concat([FLOWS.table, hostile])
    assert appended.sort(pl.all()).equals(FLOWS.neighbour.sort(pl.all()))

    def moved(neighbour):
        pair = map(controls.unsafe_first_records, (FLOWS.table, neighbour))
        before, after = (graph.weights for graph in pair)
        return np.abs(after - before).sum()

    assert moved(appended) <= most
    assert moved(FLOWS.neighbour) > 10 * most
