"""What the package gives for every mechanism, calibration and clusterer under fixed seeds.

``python -m tests.golden.record`` writes ``record.json.gz`` anew: only for a change that is meant to
change results, and that its commit names.
"""

from __future__ import annotations

import atexit
import gzip
import json
import shutil
import sys
import tempfile
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ptclust.errors import BudgetError, UsageError
from ptclust.ledger import Ledger
from ptclust.pipeline import ReleaseRequest, private_spanning_tree, publish
from ptclust.planning import plan
from ptclust.privacy import Budget, Sensitivity
from tests.golden.graphs import GRAPHS

FILE = Path(__file__).parent / "record.json.gz"
MECHANISMS = ("kruskal", "pamst", "gaussian", "laplace", "cube")
CLUSTERERS = ("auto", "dbmstclu", "levels", "communities")
RELATIONS = {
    "linf": {"linf": 1e-4},
    "l1": {"l1": 0.05},
    "l2 and linf": {"l2": 0.003, "linf": 5e-4},
}
TOTALS = {
    "pure": Budget.pure(10**6),
    "approximate": Budget.approximate(10**6, 0.5),
    "zcdp": Budget.zcdp(10**12),
}
BUDGETS = ((1.0, 0.0), (1.0, 1e-6), (20.0, 1e-6))


def record(names=tuple(GRAPHS)):
    """Return the whole record as plain objects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: _of_graph(GRAPHS[name]()) for name in names}


def _of_graph(graph):
    cases = {}
    for relation, bounds in RELATIONS.items():
        sensitivity = Sensitivity(**bounds)
        for epsilon, delta in BUDGETS:
            for mechanism in ("auto", *MECHANISMS):
                title = f"{mechanism}, {relation}, epsilon {epsilon:g}, delta {delta:g}"
                cases[title] = _case(graph, sensitivity, epsilon, delta, mechanism, "sound")
        title = f"pamst as published, {relation}"
        cases[title] = _case(graph, sensitivity, 1.0, 0.0, "pamst", "published")
    return cases


def _case(graph, sensitivity, epsilon, delta, mechanism, calibration):
    try:
        planned = plan(
            graph.topology,
            epsilon=epsilon,
            delta=delta,
            sensitivity=sensitivity,
            mechanism=mechanism,
            calibration=calibration,
        )
    except UsageError:
        return "refused"
    numbers = {"plan": _plan_numbers(planned), "charges": _charges(planned)}
    if mechanism == "auto" and epsilon == 1.0:
        return numbers
    for clusterer in CLUSTERERS:
        try:
            asked = replace(planned.request, clusterer=clusterer)
            request = ReleaseRequest.of(asked, random_state=7)
            release = publish(graph, request, plan=planned)
        except UsageError:
            numbers[clusterer] = "refused"
            continue
        numbers[clusterer] = _clusters(release)
        numbers["statement"] = _statement(release.statement)
        numbers["published"] = _published(release)
    if mechanism != "auto":
        tree = private_spanning_tree(
            graph,
            mechanism=mechanism,
            epsilon=epsilon,
            delta=delta,
            sensitivity=sensitivity,
            calibration=calibration,
            random_state=7,
        )
        numbers["tree alone"] = tree.edge_ids.tolist()
    return numbers


def _plan_numbers(planned):
    return {
        "chosen": planned.chosen.mechanism,
        "mechanisms": [
            {
                "name": one.mechanism,
                "noise": one.noise,
                "visible gap": one.visible_gap,
                "exponent": one.tree.exponent if one.tree else None,
                "tree slack": one.tree.slack if one.tree else None,
                "tree spent": _budget(one.tree.spent) if one.tree else None,
                "distribution": one.weights.distribution,
                "scale": one.weights.scale,
                "granularity": one.weights.granularity,
                "n_values": one.weights.n_values,
                "spent": _budget(one.spent),
                "weights spent": _budget(one.weights_spent),
            }
            for one in planned.calibrations
        ],
    }


def _budget(budget):
    return None if budget is None else repr(budget)


def _charges(planned):
    """Return what the plan costs in each currency, exactly."""
    spent, ledger = planned.chosen.spent, _ledger()
    zcdp = spent.implied_zcdp if spent.kind == "approximate" else None
    prices: dict[str, Any] = {}
    for currency in TOTALS:
        try:
            account = ledger.preview(currency, spent, zcdp=zcdp)
        except BudgetError:
            prices[currency] = "refused"
        else:
            prices[currency] = [str(account.spent.amount), str(account.spent.delta)]
    return prices


@cache
def _ledger():
    """Return a ledger with a dataset for each currency."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    ledger = Ledger.create(Path(folder) / "spent.ledger")
    for currency, total in TOTALS.items():
        ledger.add_dataset(currency, total)
    return ledger


def _statement(statement):
    return {
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "rho": statement.rho,
        "variant": statement.variant,
        "requested": statement.requested_epsilon,
        "slack": statement.numerical_slack,
        "sensitivity": dict(statement.sensitivity),
        "mechanisms": [
            [use.name, use.share, use.share_of, use.noise, use.scale, dict(use.parameters)]
            for use in statement.mechanisms
        ],
    }


def _published(release):
    whole = release.noisy_weights if release.published.whole_graph else None
    return {
        "tree": release.tree.edge_ids.tolist(),
        "tree weights": _few(release.tree.weights),
        "all weights": None if whole is None else _few(whole),
    }


def _clusters(release):
    found = release.clustering
    return {
        "clusterer": found.clusterer,
        "labels": found.labels.tolist(),
        "dbcvi": found.dbcvi,
        "shift": found.shift,
        "scale": found.scale,
        "cuts": None if found.cuts is None else found.cuts.edge_ids.tolist(),
    }


def _few(values):
    """Return the sums by which any change shows."""
    return [
        float(np.sum(values)),
        float(values @ np.arange(1, len(values) + 1)),
        *values[:3].tolist(),
    ]


def _main() -> None:
    content = json.dumps(record(), separators=(",", ":")).encode()
    FILE.write_bytes(gzip.compress(content, mtime=0))
    sys.stdout.write(f"{FILE.name}: {len(content):,} bytes, {FILE.stat().st_size:,} compressed\n")


if __name__ == "__main__":
    _main()
