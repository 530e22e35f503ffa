"""The trips of persons, published with a guarantee per person: docs/examples/trips.md.

Clusters are compared with those that the same clusterer finds in all trips without noise. Zones are
taken as they are, and joined to districts of five and of ten consecutive numbers, which anybody may
do without a look at the trips.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from experiments._records import Records
from experiments._summary import as_csv, page
from ptclust._statistics import agreement, seed_of
from ptclust.building import graph_from_flows
from ptclust.datasets import person_trips
from ptclust.estimators import PTClust

if TYPE_CHECKING:
    from pathlib import Path

    from ptclust._types import Ints
    from ptclust.graph import Graph

__all__ = ["TripsReport", "districts", "run_trips"]

WIDTHS = (1, 5, 10)  # zones of a district
CAPS = ((1, 1), (2, 1), (2, 2), (5, 2))  # pairs, and trips on each
EPSILON = 1.0
_ALMOST_EXACT = 1e6  # an epsilon without noise to speak of
_KEY = (1, 2, 3)


def districts(width: int) -> tuple[pl.DataFrame, list[int]]:
    """Return the trips between districts of so many zones, and all districts."""
    day = person_trips()
    ends = ((pl.col(end) - 1) // width for end in ("origin", "destination"))
    return day.trips.with_columns(*ends), sorted({(zone - 1) // width for zone in day.nodes})


class _Trips:
    """Graphs of one width, made when they are first needed."""

    def __init__(self, width: int, clusterer: str, seed: int) -> None:
        self.table, self.nodes = districts(width)
        self.clusterer, self.seed = clusterer, seed
        self._reference: Ints | None = None

    def labels(self, graph: Graph, epsilon: float, repetition: int) -> Ints:
        """Return published clusters."""
        state = seed_of(self.seed, epsilon, repetition)
        model = PTClust(epsilon=epsilon, clusterer=self.clusterer, random_state=state)
        return model.fit(graph).labels_

    @property
    def reference(self) -> Ints:
        """The clusters of all trips, without noise."""
        if self._reference is None:
            everything = graph_from_flows(self.table, nodes=self.nodes)
            self._reference = self.labels(everything, _ALMOST_EXACT, 0)
        return self._reference

    def compare(self, caps: tuple[int, int], repetitions: int) -> dict[str, Any]:
        """Return how published clusters agree with those of all trips."""
        graph = graph_from_flows(
            self.table,
            nodes=self.nodes,
            person="person",
            max_pairs=caps[0],
            max_per_pair=caps[1],
            _key=_KEY,
        )
        found = [self.labels(graph, EPSILON, i) for i in range(repetitions)]
        scores = [agreement(self.reference, labels) for labels in found]
        exact = self.labels(graph, _ALMOST_EXACT, 0)
        return {
            "n_nodes": len(self.nodes),
            "kept": float(graph.weights.sum()),
            "n_reference": int(self.reference.max()) + 1,
            "bounded": agreement(self.reference, exact),
            "ari": float(np.mean(scores)),
            "least": float(min(scores)),
            "most": float(max(scores)),
            "n_clusters": float(np.median([labels.max() + 1 for labels in found])),
        }


def run_trips(
    output: Path,
    *,
    clusterer: str = "auto",
    repetitions: int = 10,
    seed: int = 0,
    resume: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Publish the clusters of all widths and caps; return a record for each."""
    settings = {"clusterer": clusterer, "repetitions": repetitions, "seed": seed}
    key = "width", "max_pairs", "max_per_pair"
    with Records.of(output, "trips", key, resume=resume, **settings) as records:
        rows = []
        for width in WIDTHS:
            trips = _Trips(width, clusterer, seed)
            for caps in CAPS:
                progress(f"Districts of {width} zones, {caps[0]} pairs, {caps[1]} trips each")
                make = partial(trips.compare, caps, repetitions)
                rows.append(records.made((width, *caps), make))
                records.flush()
    return rows


_PAGE = """\
# Trips of persons, with a guarantee per person

14,352 simulated trips of 3,796 persons between 190 zones of San Francisco
(`ptclust.datasets.person_trips()`, from ActivitySim). Protected is a person with all trips of the
day, at epsilon = {{ epsilon }}:

```python
import polars as pl
import ptclust
day = ptclust.datasets.person_trips()
ends = ((pl.col(end) - 1) // 10 for end in ("origin", "destination"))
trips, districts = day.trips.with_columns(*ends), range(19)
caps = {"person": "person", "max_pairs": 2, "max_per_pair": 1}
graph = ptclust.graph_from_flows(trips, nodes=districts, **caps)
model = ptclust.PTClust(epsilon={{ epsilon }}{{ option }}).fit(graph)
```

## Results

Made by `{{ command }}`. The mean ARI of {{ repetitions }} releases with the clusters that the same
clusterer finds in all trips, without caps and noise (1 is the same partition, 0 is chance). Zones
are joined to districts of consecutive numbers, which is public. [trips.csv](trips.csv) has every
setting, with the range of the ARI, and the ARI of caps without noise.

{% for line in results %}
- {{ line }}
{% endfor %}

Every pair gets noise for a whole person, so fewer and larger nodes show more: a public grouping of
zones matters more than the caps. Larger caps keep more trips, and their noise grows with them.
`ptclust plan graph.parquet --epsilon 1 --predict --persons 4000 --records 14000` predicts, from
public numbers, what will be found.
"""


class TripsReport:
    """What ``run_trips`` found, as a page to read, as CSV and as JSON."""

    def __init__(
        self, rows: list[dict[str, Any]], clusterer: str, repetitions: int, command: str
    ) -> None:
        self._rows, self._repetitions, self._command = rows, repetitions, command
        self._option = "" if clusterer == "auto" else f', clusterer="{clusterer}"'

    def to_json(self) -> str:
        """Return all rows as JSON."""
        return json.dumps({"command": self._command, "rows": self._rows}, indent=2)

    def to_markdown(self) -> str:
        """Return the page."""
        return page(
            _PAGE,
            epsilon=f"{EPSILON:g}",
            option=self._option,
            command=self._command,
            repetitions=self._repetitions,
            results=list(self._results()),
        )

    def to_csv(self) -> str:
        """Return one row per setting."""
        head = ["nodes", "zones", "max_pairs", "max_per_pair", "trips_kept", "ari_caps_alone"]
        rows = [[*head, "ari", "ari_least", "ari_most", "clusters", "clusters_without_noise"]]
        rows += [
            [
                *(str(row[name]) for name in ("n_nodes", "width", "max_pairs", "max_per_pair")),
                f"{row['kept']:.0f}",
                *(f"{row[name]:.2f}" for name in ("bounded", "ari", "least", "most")),
                f"{row['n_clusters']:g}",
                str(row["n_reference"]),
            ]
            for row in self._rows
        ]
        return as_csv(rows)

    def _results(self) -> Iterator[str]:
        """Yield the best result for every width."""
        for width in WIDTHS:
            rows = [row for row in self._rows if row["width"] == width]
            best = max(rows, key=lambda row: row["ari"])
            what = "zones" if width == 1 else f"districts of {width} zones"
            caps = f"{best['max_pairs']} x {best['max_per_pair']}"
            mean = best["kept"] / (best["n_nodes"] * (best["n_nodes"] - 1) / 2)
            if best["ari"] < 0.1:
                found = "no clusters are found, whatever the caps"
            else:
                with_caps = f"with caps of {caps} (pairs x trips on each)"
                found = f"an ARI of {best['ari']:.2f} at best, {with_caps}"
            yield f"{best['n_nodes']} {what}: {found} ({mean:.2g} trips per pair on average)."
