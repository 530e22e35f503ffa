"""Records that come with the package: rides between stations, trips of persons between zones.

Sources and licences are in ``data/README.md`` beside this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from ptclust._types import Floats, Ints

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class BikeRides:
    """Rides of a year, and the stations that they go between.

    Stations are in the order of their terminals, as are the nodes of a graph that is built of them:
    ``stations.with_columns(cluster=model.labels_)`` is a table of clusters.
    """

    rides: pl.DataFrame  # day, origin, destination: terminals of stations
    stations: pl.DataFrame  # terminal, station, city, latitude, longitude

    @property
    def nodes(self) -> list[int]:
        """The public list of nodes: the terminals of all stations."""
        return self.stations["terminal"].to_list()

    @property
    def truth(self) -> Ints:
        """The city of every station, as a number: what clusters can be compared with."""
        cities: Ints = self.stations["city"].rank("dense").to_numpy().astype("int64") - 1
        return cities

    @property
    def points(self) -> Floats:
        """Longitude and latitude of every station."""
        return self.stations.select("longitude", "latitude").to_numpy()


def bike_rides() -> BikeRides:
    """Return 326,339 rides of the Bay Area Bike Share in 2014 between 70 stations of five cities.

    Hardly anybody rides from city to city (488 times), so the cities are the clusters to be found.

    >>> import ptclust
    >>> bikes = bike_rides()
    >>> graph = ptclust.graph_from_flows(bikes.rides, nodes=bikes.nodes)
    >>> graph.unit, graph.n_nodes, graph.n_edges
    ('one record', 70, 2415)
    """
    import polars as pl

    return BikeRides(pl.read_parquet(_DATA / "rides.parquet"), pl.read_csv(_DATA / "stations.csv"))


@dataclass(frozen=True)
class PersonTrips:
    """Trips of a day, and the zones that they go between."""

    trips: pl.DataFrame  # person, origin, destination, hour, purpose
    nodes: list[int]  # the public list of nodes: all zones


def person_trips() -> PersonTrips:
    """Return 14,352 simulated trips of 3,796 persons between 190 zones of San Francisco.

    >>> import ptclust
    >>> day = person_trips()
    >>> bounds = {"person": "person", "max_pairs": 5, "max_per_pair": 2}
    >>> ptclust.graph_from_flows(day.trips, nodes=day.nodes, **bounds).unit
    'one person, at most 5 pairs with at most 2 records each'
    """
    import polars as pl

    return PersonTrips(pl.read_parquet(_DATA / "trips.parquet"), list(range(1, 191)))
