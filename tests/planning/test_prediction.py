"""Predicting what a budget shows: planted graphs, honest intervals, and no private weight."""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from ptclust import Graph, Sensitivity, Topology, graph_from_flows, graph_from_profiles
from ptclust._statistics import agreement
from ptclust.building import graph_from_visits
from ptclust.clustering.clusterer import by_size
from ptclust.drawing.plots import save_plot
from ptclust.errors import FileError, InputError, PrivacyWarning, UsageError
from ptclust.mechanisms import MECHANISMS
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import Point, Prediction, predict
from ptclust.planning.planting import Planting
from ptclust.privacy import RandomStream
from tests.lazy import lazy

nx = lazy("networkx")

LINF = {"sensitivity": Sensitivity(linf=1e-3), "delta": 1e-6}
ONE = {"sensitivity": Sensitivity(l1=1), "delta": 0, "kind": "similarity"}
#: A clusterer that answers in milliseconds; which one it is plays no part in most tests.
QUICK = {"clusterer": "dbmstclu", "mechanism": "kruskal"}


def topology_of(graph) -> Topology:
    graph = nx.convert_node_labels_to_integers(graph)
    ends = np.array(graph.edges(), dtype=np.int64).reshape(-1, 2)
    return Topology(ends[:, 0], ends[:, 1], n_nodes=graph.number_of_nodes())


def king_graph(width: int) -> Topology:
    return topology_of(nx.strong_product(nx.path_graph(width), nx.path_graph(width)))


def all_pairs(n_nodes: int) -> Topology:
    return Topology(*np.triu_indices(n_nodes, 1))


def planted(topology: Topology, kind="similarity", seed=0, communities=None, **options):
    known = np.zeros(topology.n_nodes, dtype=np.int64) if communities is None else communities
    return Planting(topology, kind, **options).plant(known, np.random.default_rng(seed))


class TestClusters:
    @settings(max_examples=100, deadline=None)
    @given(
        n_nodes=st.integers(4, 40),
        density=st.floats(0.05, 1),
        wanted=st.integers(2, 10),
        seed=st.integers(0, 2**20),
    )
    def test_connected_on_any_topology(self, n_nodes, density, wanted, seed):
        topology = topology_of(nx.gnp_random_graph(n_nodes, density, seed=seed))
        truth = planted(topology, seed=seed, n_clusters=wanted).truth
        assert set(truth.tolist()) == set(range(truth.max() + 1))
        within = np.flatnonzero(truth[topology.sources] == truth[topology.targets])
        assert topology.restricted_to(within).n_components == truth.max() + 1

    def test_as_many_as_were_said(self):
        graphs = (planted(all_pairs(60), seed=seed, n_clusters=5) for seed in range(9))
        assert {int(graph.truth.max()) + 1 for graph in graphs} == {5}

    def test_sizes_differ_as_those_of_real_groups(self):
        """Of real graphs the deviation of sizes is 0 to 1.3 of their mean, and half in the mean."""
        graphs = (planted(all_pairs(100), seed=seed, n_clusters=5) for seed in range(60))
        sizes = [np.bincount(graph.truth) for graph in graphs]
        spread = np.mean([each.std() / each.mean() for each in sizes])
        assert 0.35 < spread < 0.75

    def test_their_number_differs(self):
        counts = [planted(all_pairs(100), seed=s).truth.max() + 1 for s in range(60)]
        assert min(counts) >= 2
        assert 3 <= np.median(counts) <= 8
        assert max(counts) > 10

    def test_some_are_those_of_the_topology(self):
        """Where the topology shows communities, most groups of real graphs heed them."""
        cliques = topology_of(nx.ring_of_cliques(6, 8))
        shown = np.arange(48) // 8
        found = [
            agreement(shown, planted(cliques, seed=s, communities=shown).truth) for s in range(60)
        ]
        assert 0.15 < np.mean(np.array(found) == 1) < 0.6
        assert min(found) < 0.5


class TestWeights:
    topology = all_pairs(100)

    def drawn(self, n=40, **options):
        return [planted(self.topology, seed=s, **options) for s in range(n)]

    def test_are_whole_and_as_many_as_were_said(self):
        for graph in self.drawn(5, total=(1e6, 1e6)):
            assert np.array_equal(graph.weights, np.round(graph.weights))
            assert graph.weights.min() >= 0
            assert graph.weights.sum() == pytest.approx(1e6, rel=6e-3)  # six deviations
        sums = [graph.weights.sum() for graph in self.drawn(total=(1e5, 1e6))]
        assert 0.9e5 < min(sums) < 2e5 < 5e5 < max(sums) < 1.1e6

    def test_nodes_and_counts_have_heavy_tails(self):
        for graph in self.drawn(9, total=(1e7, 1e7)):
            assert graph.weights.mean() > 1.5 * np.median(graph.weights)

    def test_contrasts_are_those_of_real_graphs(self):
        """The nine graphs have 2.8 to 965 on all pairs, and at most 1.2 on listed ones."""
        dense = [graph.contrast for graph in self.drawn(200)]
        assert 6 < np.median(dense) < 20
        assert np.quantile(dense, 0.05) < 2.8 < 300 < np.quantile(dense, 0.97)
        listed = [planted(king_graph(8), seed=s).contrast for s in range(200)]
        assert np.median(listed) < 1.4

    def test_a_contrast_that_is_said_is_planted(self):
        """In the mean over graphs, some nodes of which show another group."""
        ratios = []
        for graph in self.drawn(40, total=(1e8, 1e8), contrast=20.0, n_clusters=4):
            same = graph.truth[self.topology.sources] == graph.truth[self.topology.targets]
            ratios.append(np.median(graph.weights[same]) / np.median(graph.weights[~same]))
            assert graph.contrast == pytest.approx(20)
        assert 10 < np.median(ratios) < 30

    def test_distances_are_small_within_and_lie_in_their_range(self):
        for graph in self.drawn(20, kind="distance", clip=(2.0, 4.0), contrast=3.0):
            same = graph.truth[self.topology.sources] == graph.truth[self.topology.targets]
            assert 2 <= graph.weights.min() <= graph.weights.max() <= 4
            assert graph.weights[same].mean() < graph.weights[~same].mean()

    def test_are_clipped_as_the_weights_will_be(self):
        graph = planted(self.topology, total=(1e6, 1e6), clip=(2.0, 30.0))
        assert (graph.weights.min(), graph.weights.max()) == (2.0, 30.0)

    @pytest.mark.parametrize("kind", ["similarity", "distance"])
    def test_are_published_as_what_they_are(self, monkeypatch, kind):
        kinds = []
        draw = MECHANISMS["laplace"].draw

        def spy(graph, *rest, **options):
            kinds.append(graph.kind)
            return draw(graph, *rest, **options)

        monkeypatch.setattr(MECHANISMS["laplace"], "draw", spy)
        asked = {"epsilons": [1], "repetitions": 1, "mechanism": "laplace", **ONE, "kind": kind}
        predict(all_pairs(20), **asked)
        assert set(kinds) == {kind}


class TestAgreement:
    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
    def test_is_the_adjusted_rand_index(self, pairs):
        truth, labels = np.array(pairs).T
        assert agreement(truth, labels) == pytest.approx(adjusted_rand_score(truth, labels))

    def test_needs_no_room_for_all_pairs_of_clusters(self):
        singletons = np.arange(300_000)
        assert agreement(singletons, singletons[::-1]) == 1.0


@pytest.fixture(scope="module")
def clear() -> Prediction:
    """Return what is found of clear clusters, from hopeless to plenty."""
    said = {"total": 1e6, "n_clusters": 4, "contrast": 50.0}
    return predict(
        all_pairs(48), epsilons=[1e-4, 1e3, 0.3], planned=2.0, repetitions=9, **said, **ONE
    )


class TestPredict:
    def test_from_nothing_to_all(self, clear):
        """Clear clusters are found with plenty, but for nodes that show another group."""
        assert [point.epsilon for point in clear.points] == [1e-4, 0.3, 2.0, 1e3]
        least, *_, most = clear.points
        assert least.high < 0.2
        assert most.high > 0.95
        assert most.likely > 0.5
        assert clear.topology_clusters == 1

    def test_less_contrast_is_seen_less(self):
        def likely(contrast):
            said = {"contrast": contrast, "total": 3e4, "n_clusters": 3}
            options = {"epsilons": [1.0], "repetitions": 7, **ONE}
            return predict(all_pairs(40), **said, **options).points[0].likely

        assert likely(60.0) > likely(1.2) + 0.3

    def test_more_records_show_more(self):
        options = {"epsilons": [0.5], "repetitions": 7, "contrast": 40.0, "n_clusters": 3, **ONE}
        few, many = (
            predict(all_pairs(40), total=total, **options).points[0].likely
            for total in (300, (4e5, 6e5))
        )
        assert many > few + 0.3

    def test_clusters_of_the_topology_are_told_from_those_of_noise(self):
        options = {"epsilons": [1e-3], "repetitions": 2, **LINF}
        cliques = topology_of(nx.disjoint_union_all([nx.complete_graph(20)] * 3))
        three = predict(cliques, clusterer="communities", **options)
        assert three.topology_clusters == 3
        assert "The topology alone shows 3 clusters" in " ".join(three.to_text().split())
        noise = predict(topology_of(nx.complete_graph(60)), clusterer="dbmstclu", **options)
        assert noise.topology_clusters == 1
        assert "The topology alone shows" not in noise.to_text()

    def test_the_same_seed_gives_the_same(self):
        def run(seed):
            options = {"epsilons": [0.5, 1.0], "repetitions": 3, **LINF, **QUICK}
            return predict(king_graph(6), random_state=seed, **options)

        assert run(3).to_dict() == run(np.int64(3)).to_dict()
        assert run(3).points != run(4).points

    def test_what_is_measured_is_the_pipeline(self, monkeypatch):
        """Every run follows the plan for its epsilon, with all that was asked, on its own seed."""
        from ptclust.planning.prediction import _Trial

        seeds, seen = [], []
        labels, seeded = _Trial.labels, RandomStream.seeded

        def watched(seed):
            seeds.append(seed)
            return seeded(seed)

        def spy(trial, plan, weights, *key):
            found = labels(trial, plan, weights, *key)
            assert -1.0 <= weights.min() <= weights.max() <= 3.0
            assert plan.chosen.mechanism == "pamst"
            assert plan.request.calibration == "published"
            assert plan.request.clip == (-1.0, 3.0)
            seen.append((float(plan.budget.epsilon), seeds[-1]))
            real = Graph(topology.sources, topology.targets, weights)
            request = ReleaseRequest.of(plan.request, random_state=seeds[-1])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)
                release = publish(real, request)
            assert release.clusterer == "levels"
            assert release.labels.tolist() == by_size(found).tolist()
            return found

        monkeypatch.setattr(_Trial, "labels", spy)
        monkeypatch.setattr(RandomStream, "seeded", watched)
        topology = all_pairs(12)
        predict(
            topology,
            sensitivity=Sensitivity(linf=1e-3),
            delta=0,
            epsilons=[1, 10],
            mechanism="pamst",
            clusterer="levels",
            calibration="published",
            clip=(-1, 3),
            repetitions=2,
        )
        assert len({seed for _, seed in seen}) == len(seen)
        assert (
            sorted(epsilon for epsilon, _ in seen) == [1.0] * 4 + [10.0] * 2
        )  # 2 without clusters

    @pytest.mark.parametrize("n_nodes", [0, 1, 2, 3])
    def test_too_small_to_predict(self, n_nodes):
        most = f"at most {n_nodes} node{'' if n_nodes == 1 else 's'}; .* of at least 4"
        with pytest.raises(InputError, match=most):
            predict(topology_of(nx.path_graph(n_nodes)), **LINF)

    def test_a_star(self):
        """A hub cannot be divided: nearly all is one cluster, and leaves are others."""
        prediction = predict(topology_of(nx.star_graph(29)), epsilons=[1], repetitions=3, **LINF)
        json.dumps(prediction.to_dict())

    def test_work_is_bounded_and_what_is_left_out_is_said(self, monkeypatch):
        monkeypatch.setattr(import_module("ptclust.planning.prediction"), "_WORK", 1.0)
        prediction = predict(king_graph(6), planned=0.7, **LINF, **QUICK)
        assert (prediction.repetitions, len(prediction.points)) == (19, 1)
        assert "Left out: all epsilons but 0.7" in " ".join(prediction.to_text().split())
        asked = predict(king_graph(6), epsilons=[1, 2], repetitions=3, **LINF, **QUICK)
        assert (asked.repetitions, len(asked.points), asked.left_out) == (3, 2, "")

    def test_progress_is_told_and_an_interruption_gets_through(self):
        said = []

        def progress(text):
            said.append(text)
            if len(said) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            predict(king_graph(6), progress=progress, **LINF, **QUICK)
        assert said[0] == "Predicting: epsilon = 0.1, graph 1 of 39"


class TestNothingPrivate:
    def test_a_graph_is_refused(self):
        graph = Graph([0, 1, 2, 3], [1, 2, 3, 4], [0.123456789] * 4)
        with pytest.raises(InputError, match=r"looks at no weight.*graph\.topology") as error:
            predict(graph, **LINF)
        assert "0.123" not in str(error.value)

    def test_the_range_is_taken_to_be_0_to_1_and_that_is_said(self):
        options = {"epsilons": [1.0], "repetitions": 1, **LINF}
        assert "0 to 1, as assumed" in predict(king_graph(6), **options).to_text()
        declared = predict(king_graph(6), clip=(0, 50), **options)
        assert "as assumed" not in declared.to_text()
        assert declared.to_dict()["weight_range"] == [0.0, 50.0]


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"contrast": 1}, "a number above 1, not 1"),
            ({"contrast": "high"}, "not 'high'"),
            ({"n_clusters": 1}, "n_clusters must be a whole number from 2 to 18, not 1"),
            ({"n_clusters": 2.5}, "from 2 to 18, not 2.5"),
            ({"repetitions": 0}, "repetitions must be a whole number from 1"),
            ({"random_state": -1}, "random_state must be a whole number from 0"),
            ({"random_state": None}, "no secret randomness"),
            ({"epsilons": []}, "positive numbers"),
            ({"epsilons": [1.0, 0.0]}, "positive numbers"),
            ({"epsilons": [float("nan")]}, "positive numbers"),
            ({"planned": -1.0}, "epsilon must be greater than 0, but is -1.0"),
            ({"clip": (1, 0)}, "the smaller first"),
            ({"mechanism": "prim"}, "'prim'"),
            ({"clusterer": "k-means"}, "'k-means'"),
            ({"sensitivity": 0.1}, "must be a Sensitivity"),
            ({"delta": 2}, "delta"),
            ({"total": 5}, "total is for counts: give kind='similarity'"),
            ({"kind": "similarity", "total": 0}, "total must lie above 0"),
            ({"kind": "similarity", "total": (2, 1)}, "total must lie above 0"),
            ({"kind": "similarity", "total": float("nan")}, "total must lie above 0"),
            ({"kind": "similarity", "total": 1e16}, "at most 1e"),
            ({"kind": "similarity", "total": "many"}, "total must be a number or a pair"),
            ({"kind": "count"}, "kind must be 'distance' or 'similarity', not 'count'"),
        ],
    )
    def test_what_is_wrong_is_said(self, options, words):
        with pytest.raises(UsageError, match=words):
            predict(king_graph(6), **{**LINF, **options})


def point(*reached: float, contrasts: Any = None) -> Point:
    given = tuple(range(2, 2 + len(reached))) if contrasts is None else contrasts
    return Point(1.0, "gaussian", "levels", tuple(reached), given)


class TestResult:
    def test_the_interval_holds_the_next_of_its_kind(self):
        """Of 19 alike, the 20th lies between their ends with probability 18 / 20."""
        random = np.random.default_rng(0)
        for number, share in ((19, 0.9), (39, 0.95), (79, 0.95)):
            draws = random.normal(size=(2000, number + 1))
            ends = [point(*row[:-1]) for row in draws.tolist()]
            within = [
                each.low <= last <= each.high for each, last in zip(ends, draws[:, -1].tolist())
            ]
            assert abs(np.mean(within) - share) < 5 * np.sqrt(share * (1 - share) / 2000)

    def test_three_of_four_reach_what_is_likely(self):
        assert point(*np.linspace(0, 1, 39)).likely == pytest.approx(0.25, abs=0.03)
        assert point(0.4).likely == point(0.4).low == point(0.4).high == 0.4

    @pytest.mark.parametrize(
        ("reached", "contrast"),
        [
            ((0, 0, 0, 0, 0), None),
            ((1, 1, 1, 1, 1), 2.0),
            ((0, 0, 1, 1, 1), 3.0),
            ((0, 0, 0, 0, 1), None),  # one clear graph is no evidence
            ((1, 0, 1, 1, 0), None),
        ],
    )
    def test_contrast_that_is_seen(self, reached, contrast):
        assert point(*map(float, reached)).contrast == contrast

    def test_text(self, clear):
        text = " ".join(clear.to_text().split())
        for words in ("Nothing is spent", "Counts add up to 1,000,000.", "There are 4 clusters."):
            assert words in text
        assert "The contrast is 50." in text
        assert any(line.startswith(">") and " 2 " in line for line in clear.to_text().splitlines())
        unsaid = predict(all_pairs(8), epsilons=[1], repetitions=1, **ONE, **QUICK)
        assert "give the number of records" in unsaid.to_text()

    def test_json(self, clear):
        document = json.loads(json.dumps(clear.to_dict()))
        assert document["total"] == [1e6, 1e6]
        assert set(document["points"][0]) == {
            "epsilon", "mechanism", "clusterer", "low", "likely", "high", "contrast",
        }  # fmt: skip

    @pytest.mark.parametrize("suffix", [".png", ".svg"])
    def test_picture(self, clear, tmp_path, suffix):
        path = tmp_path / f"curve{suffix}"
        save_plot(clear.plot, path)
        magic = {".png": b"\x89PNG", ".svg": b"<?xml"}[suffix]
        first = path.read_bytes()
        assert first.startswith(magic)
        save_plot(clear.plot, path)
        assert path.read_bytes() == first
        with pytest.raises(UsageError, match="png"):
            save_plot(clear.plot, tmp_path / "curve.txt")

    def test_what_the_picture_shows(self, clear):
        axes = clear.plot()
        assert axes.get_xscale() == "log"
        assert [text.get_text() for text in axes.get_legend().get_texts()] == [
            "nine of ten", "three of four reach", "planned: epsilon = 2",
        ]  # fmt: skip
        assert len(axes.collections) == 1  # the interval


@pytest.fixture
def edges(run):
    grid = king_graph(6)
    lines = (f"n{a},n{b}" for a, b in zip(grid.sources.tolist(), grid.targets.tolist()))
    Path("edges.csv").write_text("\n".join(["source,target", *lines]) + "\n")


BUDGET = ["--epsilon", "1/2", "--delta", "1e-6", "--linf", "1e-3"]
SHORT = ["--repetitions", "2", "--clusterer", "dbmstclu"]


@pytest.mark.usefixtures("edges")
class TestCommandLine:
    def test_without_predict_it_is_the_plan(self, run):
        code, out, _ = run("plan", "edges.csv", *BUDGET)
        assert code == 0
        assert "36 nodes" in out
        assert "Prediction" not in out
        assert "prediction" not in json.loads(run("plan", "edges.csv", *BUDGET, "--json")[1])

    def test_plan_then_prediction_then_picture(self, run):
        options = ["--predict", "--plot", "curve.png", "--clusters", "3"]
        code, out, err = run("plan", "edges.csv", *BUDGET, *SHORT, *options)
        assert (code, err.count("\n"), err.partition(":")[0]) == (0, 1, "Predicting")
        assert out.startswith(run("plan", "edges.csv", *BUDGET, "--clusterer", "dbmstclu")[1])
        assert out.index("36 nodes") < out.index("Prediction") < out.index("ARI, nine of ten")
        assert Path("curve.png").read_bytes().startswith(b"\x89PNG")

    def test_json(self, run):
        options = ["--predict", "--json", "--contrast", "5", "--clip", "0", "2"]
        out = run("plan", "edges.csv", *BUDGET, *SHORT, *options)[1]
        prediction = json.loads(out)["prediction"]
        assert (prediction["planned"], prediction["contrast"]) == (0.5, 5.0)
        assert prediction["weight_range"] == [0.0, 2.0]
        assert {point["clusterer"] for point in prediction["points"]} == {"dbmstclu"}

    def predicted(self, run, *options):
        code, out, err = run("plan", "graph.parquet", "--epsilon", "1", *options, "--json")
        assert code == 0, err
        return json.loads(out)

    def test_flows_in_records(self, run):
        rides = pl.DataFrame({"origin": [0, 1, 2], "destination": [1, 2, 3]})
        graph_from_flows(rides, nodes=range(12)).save("graph.parquet")
        assert self.predicted(run, "--predict", *SHORT)["prediction"]["total"] is None
        found = self.predicted(run, "--predict", *SHORT, "--records", "5000")["prediction"]
        assert (found["kind"], found["total"]) == ("similarity", [5000.0, 5000.0])
        code, _, err = run("plan", "graph.parquet", "--epsilon", "1", "--persons", "5")
        assert (code, "say how many there are: --records" in err) == (2, True)

    def test_visits_in_persons_and_records_count_pairs(self, run):
        """The weights are pairs of items: 200 persons with two items at most have 200 at most."""
        visits = pl.DataFrame({"person": [0, 0, 1], "item": [1, 2, 3]})
        graph_from_visits(visits, items=range(12), max_items=2).save("graph.parquet")
        said = ["--persons", "200", "--records", "1000"]
        found = self.predicted(run, "--predict", *SHORT, *said)
        low, high = found["prediction"]["total"]
        assert 100 < low < high <= 200
        by_cap = {row["max_items"]: row for row in found["caps"]}
        assert by_cap[10]["noise"] > 20 * by_cap[2]["noise"]
        assert by_cap[10]["total"] > by_cap[3]["total"] > by_cap[2]["total"]
        text = run("plan", "graph.parquet", "--epsilon", "1", *said)[1]
        assert any(line.startswith(">") and line.split()[1] == "2" for line in text.splitlines())
        code, _, err = run("plan", "graph.parquet", "--epsilon", "1", "--records", "1000")
        assert (code, "--persons and --records" in err) == (2, True)

    def test_profiles_know_their_range(self, run):
        scores = pl.DataFrame({name: [0.0, 5.0, 1.0] for name in "abcdef"})
        options = {"low": 0, "high": 5, "dissimilarity": "squared", "neighbours": "replace"}
        graph_from_profiles(scores, nodes=list("abcdef"), **options).save("graph.parquet")
        found = self.predicted(run, "--predict", *SHORT, "--delta", "1e-6")["prediction"]
        assert (found["kind"], found["weight_range"]) == ("distance", [0.0, 25.0])

    def test_a_tiny_graph(self, run):
        Path("tiny.csv").write_text("source,target\na,b\nb,c\n")
        code, out, err = run("plan", "tiny.csv", *BUDGET, "--predict")
        assert (code, out) == (InputError.exit_code, "")
        assert "nothing to predict where connected parts have at most 3 nodes" in err

    @pytest.mark.parametrize(
        ("options", "code", "words"),
        [
            (["--plot", "curve.png"], 2, "--plot is about the prediction: give --predict"),
            (["--clusters", "9"], 2, "--clusters is about the prediction"),
            (["--predict", "--records", "9"], 2, "give --kind similarity, or leave it out"),
            (["--predict", "--clusters", "19"], 2, "from 2 to 18"),
            (["--predict", "--contrast", "0.5"], 2, "contrast"),
            (["--predict", "--plot", "curve.txt"], 2, "png"),
            (["--predict", "--plot", "none/curve.png"], FileError.exit_code, "does not exist"),
        ],
    )
    def test_errors(self, run, options, code, words):
        found, out, err = run("plan", "edges.csv", *BUDGET, *options)
        assert (found, out) == (code, "")
        assert words in err
