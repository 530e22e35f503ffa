from __future__ import annotations

import csv
import json
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from experiments import tables
from experiments._summary import margin_of, wrapped
from experiments.methods import release_of
from experiments.tables import METHODS, MU, Grid, run_tables, score
from experiments.tables_report import Estimate, TablesReport, mean_of
from experiments.utility import agreement
from ptclust._tables import aligned
from ptclust.datasets import PAPER, circles, homogeneous_graph, moons
from ptclust.errors import FileError, UsageError

GRID = Grid((1, 400), (0.1, 0.001), (1.0, 50.0), repetitions=8)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def records(directory):
    return run_tables(directory, GRID)


@pytest.fixture(scope="module")
def report(records):
    return TablesReport(records, GRID, "make tables")


def rows_of(report):
    return list(csv.DictReader(report.to_csv().splitlines()))


class TestHomogeneousGraph:
    @pytest.mark.parametrize("family", PAPER)
    @pytest.mark.parametrize("cross_edges", [1, 20, 10**6])
    def test_it_is_the_graph_of_the_paper(self, family, cross_edges):
        planted = homogeneous_graph(family, cross_edges=cross_edges, seed=3)
        graph, truth, points = planted.graph, planted.truth, planted.points
        assert points is not None
        across = truth[graph.sources] != truth[graph.targets]
        assert np.count_nonzero(across) == min(cross_edges, 2500)
        assert graph.n_nodes == 100
        assert graph.topology.n_components == 1
        assert 0.9 < graph.weights[across].min() <= graph.weights[across].max() <= 1
        # Within: all pairs whose distance lies in [w_min, w_max], and no others.
        distances = np.linalg.norm(points[:, None] - points, axis=2)
        wanted = (truth[:, None] == truth) & (distances >= 0.1) & (distances <= 0.3)
        assert np.count_nonzero(~across) == np.count_nonzero(np.triu(wanted))
        a, b = graph.sources[~across], graph.targets[~across]
        assert wanted[a, b].all()
        np.testing.assert_allclose(graph.weights[~across], distances[a, b])

    def test_distances_alone_cannot_be_the_weights_of_the_paper(self):
        for shape, most in ((circles, 0), (moons, 0.05)):
            for seed in range(20):
                points, truth = shape(100, seed=seed)
                distances = np.linalg.norm(points[:, None] - points, axis=2)
                across = distances[truth[:, None] != truth]
                assert np.mean(across > 0.9) <= most

    def test_edges_come_in_random_order_and_the_seed_decides(self):
        first, again, other = (homogeneous_graph("moons", seed=seed) for seed in (1, 1, 2))
        assert np.array_equal(first.graph.weights, again.graph.weights)
        assert first.graph.n_edges != other.graph.n_edges
        across = first.truth[first.graph.sources] != first.truth[first.graph.targets]
        assert np.flatnonzero(across).max() < first.graph.n_edges - 2

    @pytest.mark.parametrize(
        ("arguments", "options", "words"),
        [
            (("blobs",), {}, "circles and moons, not 'blobs'"),
            (("moons",), {"cross_edges": 0}, "at least one edge"),
            (("circles", 10), {}, "fall into .* pieces; use more nodes"),
        ],
    )
    def test_bad_arguments(self, arguments, options, words):
        with pytest.raises(UsageError, match=words):
            homogeneous_graph(*arguments, **options)


def test_agreement_is_the_adjusted_rand_index():
    random = np.random.default_rng(0)
    for _ in range(200):
        n = random.integers(1, 50)
        truth = random.integers(0, random.integers(1, 5), n)
        labels = random.integers(-1, random.integers(1, 9), n)
        assert agreement(truth, labels) == adjusted_rand_score(truth, labels)
        assert agreement(truth, 7 - truth) == 1.0


def test_score():
    found = score(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 2, 2, 2]))
    assert found["n_clusters"] == 3
    assert found["n_singletons"] == 1
    assert found["ari"] == adjusted_rand_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2])


def test_grids():
    quick, full = Grid.quick(), Grid.full()
    assert quick.repetitions >= 100
    assert full.repetitions >= 100
    assert {1.0, 0.7, 0.5} < set(quick.epsilons) <= set(full.epsilons)
    assert set(quick.cross_edges) <= set(full.cross_edges)
    assert quick.mus == full.mus == (0.1, 0.001)
    assert [method.calibration for method in METHODS] == ["published", "sound"]
    assert all(method.mechanism == "pamst" and method.pure for method in METHODS)


def test_means(report):
    for family in PAPER:
        # With little noise all is found; with many cross edges and much noise, nothing is.
        for cross_edges in GRID.cross_edges:
            assert report.mean(family, cross_edges, 0.001, "published", 50.0).ari.mean == 1
            assert report.mean(family, cross_edges, 0.001, "sound", 50.0).n_clusters.mean == 2
        for method in METHODS:
            assert abs(report.mean(family, 400, MU, method.name, 1.0).ari.mean) < 0.1


def test_true_epsilons(report):
    # epsilon / 4 for the tree and (n - 1) epsilon / 2 for the weights.
    for epsilon in GRID.epsilons:
        published = report.mean("moons", 1, MU, "published", epsilon)
        assert published.true_epsilon == pytest.approx((0.25 + 99 / 2) * epsilon, rel=1e-4)
        assert report.mean("moons", 1, MU, "sound", epsilon).true_epsilon == epsilon
    spent = {(row["calibration"], row["true_epsilon"]) for row in rows_of(report)}
    assert spent == {("published", "49.8"), ("published", "2488"), ("sound", "1"), ("sound", "50")}


def test_a_mean_and_its_interval():
    ari = [0.5, 0.95, 1.0, 0.2]
    records = [
        {"ari": value, "n_clusters": 2 + i, "n_singletons": i, "true_epsilon": 3.0}
        for i, value in enumerate(ari)
    ]
    mean = mean_of(records)
    deviation = (sum((value - 0.6625) ** 2 for value in ari) / 3) ** 0.5
    assert mean.ari.mean == pytest.approx(0.6625)
    assert mean.ari.margin == pytest.approx(3.182446 * deviation / 2, rel=1e-5)
    assert (mean.n_clusters.mean, mean.n_singletons.mean) == (3.5, 1.5)
    assert mean.good == 0.5
    assert (mean.repetitions, mean.true_epsilon) == (4, 3.0)
    assert mean_of(records[:1]).ari.margin is None
    assert margin_of([1.0]) is None
    # t(0.975, 3) = 3.182446; the standard deviation is 1.290994
    assert margin_of([1, 2, 3, 4]) == pytest.approx(3.182446 * 1.290994 / 2, rel=1e-5)
    assert str(Estimate(0.6625, 0.07)) == "0.66 ± 0.07"
    assert str(Estimate(-0.001, None)) == "0.00"
    assert str(Estimate(35.25, 1.26)) == "35.2 ± 1.3"


def test_the_report(report, directory):
    text = report.to_markdown()
    assert "Made by `make tables`." in text
    assert "$\\mu = 0.001$, sound, 1 cross edge: a mean ARI of 0.9 from epsilon = 50 on" in text
    assert "stays below 0.9 up to epsilon = 50" in text
    assert max(map(len, (line for line in text.splitlines() if line[:1] != "|"))) <= 100
    rows = rows_of(report)
    assert len(rows) == 2 * 2 * 2 * 2 * 2
    for row in rows:
        case = row["family"], int(row["cross_edges"]), float(row["mu"]), row["calibration"]
        mean = report.mean(*case, float(row["epsilon"]))
        assert float(row["ari"]) == pytest.approx(mean.ari.mean, abs=0.006)
        assert float(row["ari_margin"]) == pytest.approx(mean.ari.margin, abs=0.006)
        assert float(row["n_singletons"]) == pytest.approx(mean.n_singletons.mean, abs=0.06)
    report.save(directory)
    assert (directory / "tables.csv").read_text() == report.to_csv() + "\n"
    assert (directory / "tables.md").read_text() == text + "\n"
    document = json.loads((directory / "tables.json").read_text())
    assert len(document["means"]) == 2 * 2 * 2 * 2 * 2


def test_lines():
    assert aligned([["a", "bc"], ["def", "g"]]) == ["| a   | bc |", "| --- | -- |", "| def | g  |"]
    lines = wrapped(*["word"] * 60, bullet=True)
    assert lines[0].startswith("- word")
    assert all(line.startswith("  word") and len(line) <= 100 for line in lines[1:])


class TestResume:
    TINY = Grid((2,), (MU,), (1.0,), repetitions=2)

    @pytest.fixture
    def calls(self, monkeypatch):
        made = []

        def counted(*arguments, **options):
            made.append(options["random_state"])
            return release_of(*arguments, **options)

        monkeypatch.setattr(tables, "release_of", counted)
        return made

    def test_nothing_is_made_twice(self, tmp_path, calls):
        first = run_tables(tmp_path, self.TINY.with_repetitions(1))
        assert len(calls) == 2 * 2
        whole = run_tables(tmp_path, self.TINY)
        assert len(calls) == len(set(calls)) == 2 * 2 * 2
        assert [record for record in whole if record["repetition"] == 0] == first
        assert run_tables(tmp_path / "anew", self.TINY) == whole

    def test_an_interrupted_run_goes_on(self, tmp_path, calls):
        whole = run_tables(tmp_path / "whole", self.TINY)
        calls.clear()

        def interrupted(words):
            if words == "moons, 2 cross edges: 2 of 2":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_tables(tmp_path, self.TINY, progress=interrupted)
        assert len(calls) == 6
        assert run_tables(tmp_path, self.TINY) == whole
        assert len(calls) == 8

    def test_another_seed_is_not_mixed_in(self, tmp_path):
        run_tables(tmp_path, self.TINY)
        with pytest.raises(FileError, match="--restart"):
            run_tables(tmp_path, self.TINY, seed=1)
        assert run_tables(tmp_path, self.TINY, seed=1, resume=False)

    def test_a_directory_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(FileError, match="cannot be made"):
            run_tables(tmp_path / "file" / "below", self.TINY)


def test_the_command(run_experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(Grid, "quick", lambda: GRID)
    arguments = ["tables", "--quick", "--repetitions", "2", "-o", str(tmp_path)]
    code, out, err = run_experiment(*arguments)
    assert code == 0, err
    assert '`make tables ARGS="--quick --repetitions 2"`' in out
    assert (tmp_path / "tables.md").read_text() == out
    _, out, _ = run_experiment(*arguments, "--json")
    assert json.loads(out)["means"][0]["repetitions"] == 2


def test_more_noise_is_worse(tmp_path):
    grid = Grid((5,), (0.01,), (100.0, 10.0, 1.0), repetitions=10, methods=METHODS[1:])
    found = TablesReport(run_tables(tmp_path, grid), grid, "")
    for family in PAPER:
        means = [
            found.mean(family, 5, 0.01, "sound", epsilon).ari.mean for epsilon in grid.epsilons
        ]
        assert all(better > worse for better, worse in pairwise(means))
        assert means[0] == 1
