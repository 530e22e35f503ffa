"""Real records: rides of a year between the stations of five cities."""

from __future__ import annotations

import polars as pl
from sklearn.metrics import adjusted_rand_score

from ptclust import PTClust, graph_from_flows, graph_from_visits
from ptclust.datasets import bike_rides, person_trips


def test_the_cities_come_out_of_the_rides():
    bikes = bike_rides()
    graph = graph_from_flows(bikes.rides, nodes=bikes.nodes)
    assert (graph.n_nodes, graph.n_edges) == (70, 70 * 69 // 2)
    assert graph.sensitivity.l1 == 1
    between = bikes.rides.filter(pl.col("origin") != pl.col("destination"))
    assert graph.weights.sum() == len(between)
    labels = PTClust(epsilon=1, clip=(0, 50)).fit(graph).labels_
    assert adjusted_rand_score(bikes.truth, labels) > 0.9


def test_trips_are_bounded_for_every_person():
    trips, zones = person_trips().trips, person_trips().nodes
    bounds = {"person": "person", "max_pairs": 3, "max_per_pair": 2}
    graph = graph_from_flows(trips, nodes=zones, **bounds)
    a, b = pl.col("origin"), pl.col("destination")
    pair = [pl.min_horizontal(a, b).alias("a"), pl.max_horizontal(a, b).alias("b")]
    of_pairs = trips.filter(a != b).group_by("person", *pair).len()
    counted = of_pairs.group_by("person").agg(pl.col("len").clip(upper_bound=2))
    lists = [sorted(counts) for counts in counted["len"].to_list()]
    least = sum(sum(counts[:3]) for counts in lists)
    most = sum(sum(counts[-3:]) for counts in lists)
    assert least <= graph.weights.sum() <= most
    shared = graph_from_visits(trips, item="destination", items=zones, max_items=4)
    assert shared.sensitivity.l1 == 6
