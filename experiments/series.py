"""Months of generated and of real flows: which moves are named, and which numbers clusters keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from ptclust import PTClust, Sensitivity
from ptclust._types import Ints
from ptclust.graph import Graph
from ptclust.planning.plan import PlanRequest
from ptclust.release import Release
from ptclust.series import SeriesBudget, SeriesPlan, plan_series

MONTHS, MOVE, SHARE = 12, 7, 0.05
EPSILON, DELTA = 3, 1e-6
RECORDS = (400_000, 100_000, 40_000)
_ONE = Sensitivity(l1=1)


@dataclass(frozen=True)
class Generated:
    """Flows among places of log-normal sizes in five clusters; some places move in month 7."""

    seed: int
    moves: bool
    records: float  # a month, about
    n_nodes: int = 200
    n_clusters: int = 5
    across: float = 0.15  # of the flow within

    def months(self) -> Iterator[tuple[Graph, Ints]]:
        """Yield the graph and the true clusters of every month; counts vary as Poisson's do."""
        random = np.random.default_rng([self.seed, 31])
        truth = random.integers(self.n_clusters, size=self.n_nodes)
        sizes = random.lognormal(0.0, 0.5, self.n_nodes)
        a, b = np.triu_indices(self.n_nodes, 1)
        movers = random.choice(self.n_nodes, round(SHARE * self.n_nodes), replace=False)
        for month in range(1, MONTHS + 1):
            if self.moves and month == MOVE:
                truth = truth.copy()
                truth[movers] += random.integers(1, self.n_clusters, size=len(movers))
                truth %= self.n_clusters
            flow = sizes[a] * sizes[b] * np.where(truth[a] == truth[b], 1.0, self.across)
            season = 1.0 + 0.3 * np.sin(2.0 * np.pi * month / MONTHS)
            counts = random.poisson(self.records * season * flow / flow.sum())
            yield Graph(a, b, counts.astype(float), kind="similarity"), truth


def published(graphs: list[Graph], plan: SeriesPlan, seed: int) -> list[Release]:
    """Return the releases of a series, each following the one before; the noise is seeded."""
    found: list[Release] = []
    for month, (graph, each) in enumerate(zip(graphs, plan.plans, strict=True)):
        model = PTClust(
            epsilon=each.request.epsilon,
            delta=each.request.delta,
            sensitivity=_ONE,
            mechanism=plan.mechanism,
            random_state=1000 * seed + month,
            topology="public",
        )
        release = model.fit(graph).release_
        found.append(release.follow(found[-1]) if found else release)
    return found


def run_series(
    repetitions: int, seed: int, rides: Path | None, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Return the figures of all runs."""
    budget = SeriesBudget(EPSILON, DELTA, releases=MONTHS)
    rows: list[dict[str, Any]] = []
    plan: SeriesPlan | None = None
    for number, records in product(range(seed, seed + repetitions), RECORDS):
        for moves in (True, False):
            progress(f"Series {number}, {records:,} records, {'with' * moves or 'without'} moves")
            made = list(Generated(number, moves, records).months())
            graphs, truths = [each for each, _ in made], [each for _, each in made]
            if plan is None:
                request = PlanRequest(epsilon=EPSILON, delta=DELTA, sensitivity=_ONE)
                plan = plan_series(graphs[0].topology, request, budget)
            found = _scored(published(graphs, plan, number), truths)
            rows += [{"seed": number, "records": records, "moves": moves, **row} for row in found]
    assert plan is not None  # noqa: S101
    summary = {
        records: _summary([row for row in rows if row["records"] == records]) for records in RECORDS
    }
    result = {"plan": plan.to_dict(), "rows": rows, "summary": summary}
    if rides is not None and rides.exists():
        progress("Bike rides by month")
        result["rides"] = bike_rides(rides, budget, seed)
    return result


def _scored(releases: list[Release], truths: list[Ints]) -> list[dict[str, Any]]:
    rows = []
    for month in range(1, len(releases)):
        changes = releases[month].compare(releases[month - 1]).changes
        moved = truths[month] != truths[month - 1]
        named = np.zeros(len(moved), dtype=bool)
        named[changes.nodes[changes.moved]] = True
        kept = releases[month].labels == releases[month - 1].labels
        rows.append(
            {
                "month": month + 1,
                "n_moved": int(moved.sum()),
                "found": int((named & moved).sum()),
                "false": int((named & ~moved).sum()),
                "others": int((~moved).sum()),
                "kept": float(kept[~moved].mean()),
                "fluctuation": changes.fluctuation,
            }
        )
    return rows


def _summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    with_moves = [row for row in rows if row["n_moved"]]
    without = [row for row in rows if not row["n_moved"]]
    return {
        "moved_named": sum(r["found"] for r in with_moves) / sum(r["n_moved"] for r in with_moves),
        "others_named": sum(r["false"] for r in with_moves) / sum(r["others"] for r in with_moves),
        "releases_without_moves": len(without),
        "claims_without_moves": sum(row["false"] > 0 for row in without) / len(without),
        "numbers_kept": float(np.mean([row["kept"] for row in rows])),
    }


def bike_rides(path: Path, budget: SeriesBudget, seed: int) -> dict[str, Any]:
    """Return how many stations keep the number of their cluster, month by month."""
    import polars as pl

    from ptclust import graph_from_flows

    rides = pl.read_parquet(path)
    stations = sorted({*rides["origin"].to_list(), *rides["destination"].to_list()})
    month = rides["started_at"].dt.month()
    graphs = [
        graph_from_flows(
            rides.filter(month == each), origin="origin", destination="destination", nodes=stations
        )
        for each in range(1, MONTHS + 1)
    ]
    request = PlanRequest(epsilon=budget.epsilon, delta=budget.delta, sensitivity=_ONE)
    releases = published(graphs, plan_series(graphs[0].topology, request, budget), seed)
    rows = []
    for before, now in pairwise(releases):
        comparison = now.compare(before)
        rows.append(
            {
                "clusters": now.n_clusters,
                "kept": float(np.mean(now.labels == before.labels)),
                "unnumbered": float(np.mean(_plain(now) == _plain(before))),
                "agreement": comparison.agreement,
                "changes": comparison.changes.sentence,
            }
        )
    return {"n_stations": len(stations), "rows": rows}


def _plain(release: Release) -> Ints:
    """Return labels by size, as without a predecessor."""
    assert release.clustering is not None  # noqa: S101
    return release.clustering.labels
