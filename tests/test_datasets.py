"""The records that come with the package: what they are, and that they are all there."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import polars as pl
import pytest

from ptclust import graph_from_flows
from ptclust.datasets import bike_rides, person_trips


def test_rides_are_those_of_the_readme():
    bikes = bike_rides()
    assert len(bikes.rides) == 326_339
    assert bikes.rides.columns == ["day", "origin", "destination"]
    assert bikes.rides["day"].dt.year().mean() == pytest.approx(2014, abs=1e-3)
    assert bikes.rides.null_count().sum_horizontal().item() == 0
    assert bikes.stations.columns == ["terminal", "station", "city", "latitude", "longitude"]
    city = dict(zip(bikes.nodes, bikes.truth.tolist(), strict=True))
    ends = [bikes.rides[end].replace_strict(city) for end in ("origin", "destination")]
    assert (ends[0] != ends[1]).sum() == 488
    assert sorted(set(city.values())) == [0, 1, 2, 3, 4]


def test_stations_are_in_the_order_of_the_nodes_of_their_graph():
    bikes = bike_rides()
    graph = graph_from_flows(bikes.rides, nodes=bikes.nodes[::-1])
    assert graph.names.tolist() == bikes.nodes
    between = bikes.rides.filter(pl.col("origin") != pl.col("destination"))
    assert graph.weights.sum() == len(between)
    assert bikes.points.shape == (70, 2)
    assert np.ptp(bikes.points, axis=0).max() < 1  # degrees: one bay


def test_trips_are_those_of_the_readme():
    day = person_trips()
    assert (len(day.trips), day.trips["person"].n_unique()) == (14_352, 3_796)
    assert day.trips.columns == ["person", "origin", "destination", "hour", "purpose"]
    ends = {*day.trips["origin"].to_list(), *day.trips["destination"].to_list()}
    assert ends <= set(day.nodes)
    assert len(day.nodes) == 190


def test_data_is_small_and_its_licences_are_beside_it():
    data = files("ptclust.datasets") / "data"
    sizes = {file.name: len(file.read_bytes()) for file in data.iterdir()}
    assert sizes.keys() == {
        "LICENSE-activitysim.txt",
        "README.md",
        "rides.parquet",
        "stations.csv",
        "trips.parquet",
    }
    assert sum(sizes.values()) < 300_000
    assert "CC0" in (data / "README.md").read_text()
