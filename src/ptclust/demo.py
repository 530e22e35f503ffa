"""The built-in example: from a year of bike rides to published clusters of stations, on a map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from sklearn.metrics import adjusted_rand_score

from ptclust._files import make_directory, written_at_once
from ptclust.building import graph_from_flows
from ptclust.datasets import bike_rides
from ptclust.drawing.plots import draw_map
from ptclust.estimators import PTClust
from ptclust.planning import plan
from ptclust.report import flattened, write_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ptclust.datasets import BikeRides

__all__ = ["city_places", "run_demo"]


def run_demo(
    directory: Path, *, epsilon: float = 1.0, progress: Callable[[str], None] = lambda _: None
) -> str:
    """Publish clusters of stations; write records, release, map and report; return what to show.

    The noise is fresh and secure every time. What is written has the id of the release in its
    name, so that every run adds its own; a file that is there is never replaced.
    """
    make_directory(directory)
    progress("Building a graph of bike rides")
    bikes = bike_rides()
    _write_records(bikes, directory)
    graph = graph_from_flows(bikes.rides, nodes=bikes.nodes)
    assert graph.sensitivity is not None  # noqa: S101 - of a graph that was built
    planned = plan(graph.topology, epsilon=epsilon, sensitivity=graph.sensitivity)
    progress("Publishing its clusters")
    release = PTClust(epsilon=epsilon, privacy_unit="one ride").fit(graph).release_
    run = release.statement.id[:8]
    saved, picture, page = (
        directory / name for name in (f"release-{run}.json", f"map-{run}.png", f"report-{run}.html")
    )
    release.save(saved)
    progress("Drawing the map")
    several = f"{release.n_clusters} cluster{'s' * (release.n_clusters != 1)}"
    draw_map(
        bikes.points[:, 0],
        bikes.points[:, 1],
        release.labels,
        path=picture,
        title=f"Stations by published clusters: {several}, epsilon = {epsilon:g} a ride",
        places=city_places(bikes),
    )
    progress("Writing the report")
    write_report(
        release,
        page,
        coordinates=flattened(bikes.points),
        names=bikes.stations["station"].to_list(),
        title="Bike stations that belong together",
        degrees=True,
    )
    agreement = adjusted_rand_score(bikes.truth, release.labels)
    return f"""\
{len(bikes.rides):,} BIKE RIDES of a year between {len(bikes.stations)} stations in five cities
Three commands make labels of them, in {directory}; this run did the same from Python:
  ptclust build flows rides.parquet --nodes stations.csv --called ride -o graph.parquet
  ptclust plan graph.parquet --epsilon {epsilon:g}
  ptclust cluster graph.parquet --epsilon {epsilon:g} -o release.json --labels labels.csv

{planned.to_text()}

{release.to_text()}
They agree with the five cities, which no ride names, to an adjusted Rand index of {agreement:.2f}:
1 is the same, 0 is chance.
  release  {saved} (`ptclust show` prints its privacy statement)
  map      {picture}
  report, to open in a browser:
  {page}"""


def _write_records(bikes: BikeRides, directory: Path) -> None:
    """Write the tables that the three commands read, unless files of their names are there."""
    rides, stations = bikes.rides.write_parquet, bikes.stations.write_csv
    tables: dict[str, Any] = {"rides.parquet": rides, "stations.csv": stations}
    for name, write in tables.items():
        if not (directory / name).exists():
            with written_at_once(directory / name) as temporary:
                write(temporary)


def city_places(bikes: BikeRides) -> dict[str, tuple[float, float]]:
    """Return where to write the name of every city: right of its stations."""
    right = bikes.stations.group_by("city").agg(pl.max("longitude"), pl.mean("latitude"))
    return {city: (longitude, latitude) for city, longitude, latitude in right.iter_rows()}
