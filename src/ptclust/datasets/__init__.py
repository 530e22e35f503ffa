"""Examples: records of real rides and simulated trips; point sets and graphs with known clusters.

`bike_rides` and `person_trips` come with the package. The others are drawn from a seed
(`ptclust.datasets.planted`).
"""

from ptclust.datasets.planted import (
    PAPER,
    Family,
    PlantedGraph,
    blobs,
    circles,
    homogeneous_graph,
    moons,
    planted_graph,
)
from ptclust.datasets.records import BikeRides, PersonTrips, bike_rides, person_trips

__all__ = [
    "PAPER",
    "BikeRides",
    "Family",
    "PersonTrips",
    "PlantedGraph",
    "bike_rides",
    "blobs",
    "circles",
    "homogeneous_graph",
    "moons",
    "person_trips",
    "planted_graph",
]
