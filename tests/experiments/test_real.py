"""Real graphs: what their weights and groups are."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.real import BIKE, CONTACTS, FILES, REAL, TABLES, available, real_graph


class TestReal:
    @pytest.mark.parametrize("name", REAL)
    def test_weights_are_counts_or_distances_of_a_connected_graph(self, name):
        if not available(name):
            pytest.skip("not there")
        found = real_graph(name)
        weights = found.graph.weights
        assert found.graph.topology.n_components == 1 or name == "openflights-europe"
        assert len(found.truth) == found.graph.n_nodes
        if name in TABLES:
            assert found.graph.kind == "distance"
            assert weights.min() > 0
            assert weights.max() <= 1
        else:
            assert found.graph.kind == "similarity"
            assert np.array_equal(weights, np.rint(weights))
            assert found.sensitivity.l1 == 1

    def test_counts_are_those_of_networkx(self):
        import networkx as nx

        given = nx.les_miserables_graph()
        names = sorted(given.nodes)
        graph = real_graph("les-miserables").graph
        for a, b, weight in zip(graph.sources, graph.targets, graph.weights):
            assert weight == given.edges[names[a], names[b]]["weight"]

    def test_women_are_joined_by_the_events_that_they_share(self):
        import networkx as nx

        given = nx.davis_southern_women_graph()
        known = real_graph("southern-women")
        graph = known.graph
        for a, b, weight in zip(graph.sources, graph.targets, graph.weights):
            first, second = graph.names[a], graph.names[b]
            assert weight == len(set(given[first]) & set(given[second]))
        sides = dict(zip(graph.names.tolist(), known.truth.tolist(), strict=True))
        assert sides["Evelyn Jefferson"] == sides["Pearl Oglethorpe"] == sides["Ruth DeSand"]
        assert sides["Evelyn Jefferson"] != sides["Verne Sanderson"] == sides["Flora Price"]

    def test_characters_of_a_group_stay_together(self):
        known = real_graph("les-miserables")
        group = dict(zip(known.graph.names.tolist(), known.truth.tolist(), strict=True))
        assert group["Fantine"] == group["Tholomyes"] != group["Valjean"] == group["Judge"]
        assert len(set(group.values())) == 11

    def test_bike_rides_are_capped(self):
        whole = real_graph("bike").graph.weights
        assert whole.max() > 500
        for name, cap in (("bike-50", 50), ("bike-500", 500), ("bike-5000", 5000)):
            assert np.array_equal(real_graph(name).graph.weights, np.minimum(whole, cap))
        assert np.unique(real_graph("bike").truth).size == 5

    @pytest.mark.skipif(not available("primary-school"), reason="the package is not installed")
    def test_contacts_have_their_classes(self):
        classes = {name: np.unique(real_graph(name).truth).size for name in CONTACTS}
        assert classes == {"primary-school": 11, "high-school": 5, "hospital": 4}

    def test_only_bike_rides_and_files_were_designed_on(self):
        assert {name for name, real in REAL.items() if real.development} == {*BIKE, *FILES}

    def test_classes_stay_with_their_rows(self):
        from sklearn.datasets import load_iris

        table, truth = load_iris(), real_graph("iris").truth
        rows = np.unique(table.data, axis=0)
        for node in range(len(rows)):
            same = np.flatnonzero((table.data == rows[node]).all(axis=1))
            assert truth[node] in table.target[same]
