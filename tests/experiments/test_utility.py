from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import _code, real, shift, utility, utility_words
from experiments.controls import CONTROLS, EQUAL, with_equal_weights
from experiments.heterogeneous import degree_corrected_blocks
from experiments.means import Means
from experiments.methods import METHODS, Plans, release_of
from experiments.planted import planted_graph
from experiments.real import REAL, available, real_graph
from experiments.rivals import HETEROGENEOUS_CONTROLS, HETEROGENEOUS_METHODS, PLANTED_METHODS
from experiments.settings import (
    BENCHMARK,
    CONTROLLED,
    HETEROGENEOUS,
    SETTINGS,
    SHAPES,
    Effort,
    drawn,
)
from experiments.shift import DEFAULT, RULES, compare_shifts
from experiments.targets import TARGETS, Outcome, Target, failures, outcomes
from experiments.utility import Case, equal_name, run_utility
from experiments.utility_report import UtilityReport
from ptclust import PTClust, plan
from ptclust._statistics import agreement, seed_of
from ptclust.errors import FileError, MissingDependencyError, UsageError
from ptclust.graph import Graph

NAMED = {setting.name: setting for setting in (*BENCHMARK, *HETEROGENEOUS)}
SMALL = (
    replace(NAMED["linf-100"], shapes=("moons", "blobs-10")),
    replace(NAMED["l1-100"], shapes=("moons",)),
    replace(NAMED["counts"], shapes=("karate", "les-miserables")),
    NAMED["null"],
)
PLANTED = SMALL[:2]
GRID = (0.2, 1.0, 50.0)
EFFORT = Effort(
    {100: GRID, "counts": (1.0, 10.0), "null": (1.0,)}, {100: 3, "counts": 2, "null": 2}, SMALL
)
N_PLANTED = 3  # graphs of these settings
N_LINES = (
    2 * len(PLANTED_METHODS) + 2 + len(CONTROLLED) + len(CONTROLS)
)  # two of them at all epsilons
N_REAL = 2
N_REAL_LINES = 2 * len(HETEROGENEOUS_METHODS) + 2 + len(HETEROGENEOUS_CONTROLS)
N_NULL = 4
N_MEANS = N_PLANTED * N_LINES + N_REAL * N_REAL_LINES + N_NULL


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("utility")


@pytest.fixture(scope="module")
def records(directory):
    return run_utility(directory, EFFORT)


@pytest.fixture(scope="module")
def report(records):
    return UtilityReport(records, "make utility", SMALL)


class TestScores:
    labels = st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 4)), min_size=1, max_size=40)

    @given(labels)
    def test_parity_with_scikit_learn(self, pairs):
        from sklearn.metrics import adjusted_rand_score

        first, second = np.array(pairs).T
        assert agreement(first, second) == pytest.approx(adjusted_rand_score(first, second))

    def test_records_hold_both(self, records):
        for record in records:
            assert -0.5 <= record["ari"] <= 1
            assert 0 <= record["nmi"] <= 1
            if record["ari"] == 1:
                assert record["nmi"] == pytest.approx(1)


class TestSettings:
    def test_those_of_the_specification(self):
        found = [(s.n_nodes, s.sensitivity.linf, s.sensitivity.l1, s.delta) for s in SETTINGS]
        assert found == [(100, 1e-3, None, 1e-6), (1000, 5e-4, None, 1e-6), (100, None, 0.1, 0.0)]
        sizes = {setting.n_nodes for setting in BENCHMARK}
        assert sizes == {100, 1000, 10_000}
        assert all(setting.delta == 1e-6 for setting in BENCHMARK)
        assert NAMED["linf-10000"].shapes == NAMED["linf-1000"].shapes == tuple(SHAPES)

    def test_sparse_and_dense(self):
        edges = [
            drawn(NAMED[name], "blobs-3", seed=1).graph.n_edges
            for name in ("sparse-1000", "linf-1000", "dense-1000")
        ]
        assert edges[1] > 1.8 * edges[0]
        assert edges[2] > 2.8 * edges[1]

    def test_many_small_clusters_have_decoys(self):
        """And as many edges across as the decoys have, however many the setting asks for."""
        assert {name for name, shape in SHAPES.items() if shape.decoys} == {"blobs-10", "blobs-30"}
        for name in ("sparse-1000", "linf-1000", "dense-1000"):
            setting = NAMED[name]
            ours = drawn(setting, "blobs-10", seed=1).graph
            theirs = planted_graph(
                "blobs", 1000, n_clusters=10, neighbours=setting.neighbours, decoys=True, seed=1
            ).graph
            assert np.array_equal(ours.sources, theirs.sources)
            assert np.array_equal(ours.weights, theirs.weights)

    def test_every_target_is_measured_even_in_quick_mode(self):
        for effort in (Effort.quick(), Effort.targets(), Effort.full()):
            for target in TARGETS:
                (setting,) = (s for s in effort.settings if s.name == target.setting)
                assert target.family in setting.shapes
                assert target.epsilon in effort.epsilons[setting.size]
        assert {t.family for t in TARGETS if t.setting == "linf-1000"} == set(SHAPES)

    def test_efforts(self):
        quick, full = Effort.quick(), Effort.full()
        assert set(quick.epsilons[1000]) <= set(full.epsilons[1000])
        assert set(quick.with_repetitions(2).repetitions.values()) == {2}
        only = full.with_nodes([10_000])
        assert [setting.name for setting in only.settings] == ["linf-10000"]
        fewer = full.without(["dense-1000"])
        assert {s.name for s in full.settings} - {s.name for s in fewer.settings} == {"dense-1000"}
        with pytest.raises(UsageError, match="no setting 'dense'"):
            full.without(["dense"])
        assert full.only("heterogeneous").settings == HETEROGENEOUS
        assert full.only("planted").settings == BENCHMARK
        assert [setting.name for setting in full.only("real").settings] == ["real"]
        with pytest.raises(UsageError, match="no section 'all'; sections are planted, heter"):
            full.only("all")

    def test_heterogeneous_graphs_are_not_those_of_the_design(self):
        """Seeds in a row, from that of the benchmark on."""
        case = Case(NAMED["blocks"], "degree-corrected", 2, utility.SEED)
        wanted = degree_corrected_blocks(seed=1002).graph.weights
        assert np.array_equal(case.known()[0].weights, wanted)

    @pytest.mark.parametrize("setting", HETEROGENEOUS, ids=lambda setting: setting.name)
    def test_the_sensitivity_is_that_of_the_graph(self, setting):
        if setting.name == "lfr-100000":
            pytest.skip("the same as the smaller ones")
        for shape in setting.shapes[:1] if setting.name.startswith("lfr") else setting.shapes:
            if shape not in REAL or available(shape):
                known = setting.make(shape, 1)
                assert known.sensitivity.l1 == setting.sensitivity.l1
                assert known.sensitivity.linf == setting.sensitivity.linf
                if known.graph.provenance is not None:
                    assert known.graph.provenance.sensitivity.l1 == setting.sensitivity.l1

    def test_graphs_are_not_those_of_the_design(self):
        setting = NAMED["linf-100"]
        ours = Case(setting, "moons", 0, utility.SEED).planted().graph.weights
        for seed in range(12):
            assert not np.array_equal(ours, planted_graph("moons", 100, seed=seed).graph.weights)
            theirs = Case(setting, "moons", 0, seed).planted().graph.weights
            assert not np.array_equal(ours, theirs)


class TestReal:
    def test_without_networkx_the_report_says_so(self, monkeypatch, tmp_path, records):
        monkeypatch.setattr(real, "find_spec", lambda package: None)
        effort = replace(EFFORT.with_repetitions(1), settings=SMALL[2:3])
        assert run_utility(tmp_path, effort) == []
        with pytest.raises(MissingDependencyError, match="networkx"):
            real_graph("karate")
        others = [record for record in records if record["setting"] != "counts"]
        text = UtilityReport(others, "", SMALL).to_markdown()
        assert "Not run: karate, les-miserables: networkx is not installed." in text


class TestControls:
    def test_non_private_ones_find_planted_clusters(self, report):
        for family in ("moons", "blobs-10"):
            for control in ("dbmstclu", "hdbscan"):
                assert report.means.of("linf-100", family, control, None).ari > 0.95

    def test_topology_only_sees_no_weight(self):
        planted = planted_graph("blobs", 200, n_clusters=4, seed=3)
        other = planted_graph("blobs", 200, n_clusters=4, seed=3).graph
        weights = np.random.default_rng(1).random(other.n_edges)
        changed = Graph(other.sources, other.targets, weights, n_nodes=200)
        for control in CONTROLS:
            labels = [control.labels(graph, planted.truth) for graph in (planted.graph, changed)]
            same = np.array_equal(*labels)
            assert same == control.topology_only

    def test_spectral_finds_what_the_topology_gives_away(self):
        planted = planted_graph("blobs", 200, n_clusters=4, cross_edges=3, seed=3)
        (spectral,) = (control for control in CONTROLS if control.name == "spectral")
        assert agreement(planted.truth, spectral.labels(planted.graph, planted.truth)) > 0.9

    def test_equal_weights_give_nothing_away(self, report):
        planted = planted_graph("moons", 100)
        equal = with_equal_weights(planted.graph)
        assert set(equal.weights.tolist()) == {EQUAL}
        assert np.array_equal(equal.sources, planted.graph.sources)
        for name in CONTROLLED:
            assert report.means.of("linf-100", "moons", equal_name(name), 1.0).ari < 0.3


class TestMethods:
    def test_every_method_and_control_has_rows(self, records, report):
        means = list(report.means)
        assert len(means) == N_MEANS
        assert {record["method"] for record in records} == {
            *(method.name for method in (*PLANTED_METHODS, *HETEROGENEOUS_METHODS)),
            *(control.name for control in (*CONTROLS, *HETEROGENEOUS_CONTROLS)),
            *map(equal_name, CONTROLLED),
        }

    def test_the_clusterer_is_the_one_asked_for(self, records):
        for record in records:
            if record["method"] in ("communities", "levels"):
                assert record["clusterer"] == record["method"]
            if record["method"] in ("kruskal", "pamst", "sound", "published", "perturbation"):
                assert record["clusterer"] == "dbmstclu"
            if record["method"] == "communities":
                assert record["mechanism"] in ("gaussian", "laplace")

    def test_auto_is_what_a_user_gets(self, records):
        setting, graph = SMALL[0], Case(SMALL[0], "moons", 1, utility.SEED).planted().graph
        (auto,) = (method for method in METHODS if method.name == "auto")
        planned = Plans(setting).get(graph, auto, 1.0)
        begins = planned.chosen.mechanism, False, "sound", 1.0, False
        state = seed_of(utility.SEED, setting.name, "moons", 1, *begins)
        model = PTClust(
            epsilon=1.0, delta=1e-6, sensitivity=setting.sensitivity, random_state=state
        ).fit(graph)
        truth = Case(setting, "moons", 1, utility.SEED).planted().truth
        (record,) = (
            record
            for record in records
            if (record["setting"], record["family"], record["method"])
            == ("linf-100", "moons", "auto")
            and (record["epsilon"], record["repetition"]) == (1.0, 1)
        )
        assert record["ari"] == agreement(truth, model.labels_)
        assert record["clusterer"] == model.release_.clusterer
        assert record["n_clusters"] == model.n_clusters_

    def test_a_plan_is_not_taken_from_another_graph(self):
        setting = SMALL[0]
        plans = Plans(setting)
        graphs = [Case(setting, "moons", i, 1).planted().graph for i in range(3)]
        for method in METHODS:
            for graph in graphs:
                found = plans.get(graph, method, 1.0)
                fresh = Plans(setting).get(graph, method, 1.0)
                assert found.chosen.to_dict() == fresh.chosen.to_dict()
                assert found.n_edges == graph.n_edges

    def test_extremes(self, report):
        assert report.means.of("linf-100", "moons", "sound", 50.0).ari == 1
        assert report.means.of("linf-100", "moons", "sound", 0.2).ari < 0.2
        assert report.means.of("l1-100", "moons", "sound", 1.0).ari < 0.1
        assert report.means.of("linf-100", "moons", "auto", 1.0).ari > 0.9
        assert report.means.get("linf-100", "moons", "auto", 50.0) is None

    def test_the_published_calibration_shows_what_it_spends(self, report):
        # epsilon / 4 for the tree and (n - 1) epsilon / 2 for the weights.
        spent = report.means.of("linf-100", "moons", "published", 1.0).true_epsilon
        assert spent == pytest.approx(0.25 + 99 / 2, rel=1e-4)
        assert report.means.of("linf-100", "moons", "sound", 1.0).true_epsilon == 1.0
        needed = report.means.needed("linf-100", "moons", "published")
        assert needed.true_epsilon == pytest.approx(needed.epsilon * 49.75, rel=1e-4)
        curve = report.means.curve("linf-100", "moons", "published")
        assert f"(truly {needed.true_epsilon:,.0f})" in utility_words.needed_of(needed, curve)


@pytest.mark.parametrize("mechanism", ["gaussian", "kruskal", "pamst"])
def test_clustering_a_release_reads_no_private_weight(monkeypatch, mechanism):
    planted = planted_graph("moons", 100, seed=5)
    chosen = plan(
        planted.graph.topology,
        epsilon=2.0,
        delta=1e-6,
        sensitivity=SMALL[0].sensitivity,
        mechanism=mechanism,
    )
    release = release_of(planted.graph, chosen, clusterer="dbmstclu", random_state=5)
    clusterers = ["dbmstclu", "levels", "auto", *["communities"] * (mechanism == "gaussian")]
    before = [release.recluster(name).labels for name in clusterers]

    def refuse(self):
        raise AssertionError("a private weight was read")

    private = planted.graph.weights  # neither through the graph, nor through an array that was kept
    private.setflags(write=True)
    private[:] = np.nan
    monkeypatch.setattr(Graph, "weights", property(refuse), raising=False)
    with pytest.raises(AssertionError, match="private"):
        _ = planted.graph.weights
    for name, labels in zip(clusterers, before, strict=True):
        np.testing.assert_array_equal(release.recluster(name).labels, labels)


class TestNeeded:
    @staticmethod
    def means(*curve, method="sound"):
        key = {"setting": "linf-100", "family": "moons", "method": method, "repetition": 0}
        scores = {"nmi": 0.5, "n_clusters": 2, "mechanism": "pamst", "clusterer": "dbmstclu"}
        return Means(
            [{**key, "epsilon": e, "ari": ari, "true_epsilon": 3 * e, **scores} for e, ari in curve]
        )

    def needed(self, *curve):
        return self.means(*curve).needed("linf-100", "moons", "sound")

    def test_it_is_where_the_mean_stays_above_the_goal(self):
        found = self.needed((1.0, 0.95), (2.0, 0.5), (4.0, 1.0), (8.0, 0.95))
        # ARI is linear in log epsilon: 0.9 is four fifths between 0.5 and 1.
        assert found.epsilon == pytest.approx(2.0 * 2**0.8)
        assert found.true_epsilon == pytest.approx(3 * found.epsilon)
        assert not found.at_most

    def test_ends_of_the_grid(self):
        assert self.needed((1.0, 0.95), (2.0, 0.5)) is None
        assert self.needed() is None
        found = self.needed((1.0, 0.95), (2.0, 1.0))
        assert (found.epsilon, found.at_most) == (1.0, True)

    def test_a_mean_at_the_goal_is_enough(self):
        assert self.needed((1.0, 0.0), (2.0, 0.9)).epsilon == pytest.approx(2.0)

    def test_words(self):
        words = utility_words.needed_of
        curve = self.means((1.0, 0.1), (2.0, 0.5)).curve("linf-100", "moons", "sound")
        assert words(None, curve) == "> 2 (truly > 6)"
        far = self.means((100.0, 0.1)).curve("linf-100", "moons", "sound")
        assert words(None, far) == "> 100 (truly > 300)"
        assert words(self.needed((1.0, 0.95)), curve) == "<= 1 (truly <= 3)"


def test_interval_of_the_mean(records, report):
    ari, nmi = (
        [
            record[name]
            for record in records
            if (record["setting"], record["family"], record["method"], record["epsilon"])
            == ("linf-100", "moons", "kruskal", 0.2)
        ]
        for name in ("ari", "nmi")
    )
    mean = report.means.of("linf-100", "moons", "kruskal", 0.2)
    for values, centre, margin in (
        (ari, mean.ari, mean.ari_margin),
        (nmi, mean.nmi, mean.nmi_margin),
    ):
        assert centre == pytest.approx(sum(values) / 3)
        deviation = (sum((value - centre) ** 2 for value in values) / 2) ** 0.5
        assert margin == pytest.approx(4.302653 * deviation / 3**0.5, rel=1e-5)


class TestReport:
    def test_targets_are_judged(self, report, monkeypatch):
        found = Outcome(Target("linf-1000", "moons", 0.5, 0.9), 0.95, 0.01, 0.4, 0.1, 0.2, 0.0)
        assert found.missed == []
        assert found.verdict == "met"
        assert replace(found, margin=0.06).verdict == "met, but the interval reaches below"
        assert replace(found, ari=0.85).missed == ["ARI below 0.9"]
        assert replace(found, equal=0.7).missed == ["less than 0.3 above equal weights"]
        assert replace(found, spectral=0.7).missed == ["less than 0.3 above the spectral control"]

    def test_the_table_shows_targets_met_and_missed(self, records, monkeypatch):
        from experiments import targets

        asked = (Target("linf-100", "moons", 1.0, 0.9), Target("linf-100", "blobs-10", 0.2, 1.01))
        monkeypatch.setattr(targets, "TARGETS", asked)
        report = UtilityReport(records, "make utility", SMALL)
        text = report.to_markdown()
        assert "1 of 2 are met, 1 missed" in " ".join(text.split())
        assert "**missed**: ARI below 1.01" in text
        assert [bool(found.missed) for found in outcomes(report.means)] == [False, True]

    def test_failures_are_reported(self, report):
        found = list(failures(report.means, SMALL))
        assert found == list(failures(report.means, PLANTED))
        text = " ".join(report.to_markdown().split())
        assert all(words in text for words in found)

    def test_a_topology_that_gives_the_clusters_away_is_a_failure(self, records):
        words = "blobs-10, n = 100, linf = 0.001: the topology gives the clusters away"
        assert not any(found.startswith(words) for found in failures(Means(records), SMALL[:1]))
        # Ten clusters of ten nodes among random edges would: decoys are what hides them.
        without = [
            planted_graph("blobs", 100, n_clusters=10, cross_edges=400, seed=seed)
            for seed in range(3)
        ]
        spectral = next(control for control in CONTROLS if control.name == "spectral")
        given = np.mean([agreement(p.truth, spectral.labels(p.graph, p.truth)) for p in without])
        spoilt = [
            {**record, "ari": given} if record["method"] == "spectral" else record
            for record in records
        ]
        assert any(found.startswith(words) for found in failures(Means(spoilt), SMALL[:1]))

    def test_a_better_method_is_a_failure_of_the_defaults(self, records):
        spoilt = [
            {**record, "ari": 0.0} if record["method"] == "auto" else record for record in records
        ]
        found = list(failures(Means(spoilt), SMALL[:1]))
        assert any("whole graph + communities stays at 0.9 from" in words for words in found)

    def test_more_epsilon_that_does_harm_is_a_failure(self, records):
        spoilt = [
            {**record, "ari": 0.5}
            if (record["method"], record["epsilon"]) == ("auto", 1.0)
            else {**record, "ari": 0.9}
            for record in records
        ]
        found = list(failures(Means(spoilt), SMALL[:1]))
        assert any("worse with more epsilon: 0.90 at epsilon = 0.2, 0.50 at 1" in t for t in found)
        assert not any("worse" in words for words in failures(Means(records), SMALL[:1]))

    def test_all_methods_and_controls_are_in_the_tables(self, report):
        page = report.to_markdown()
        for title in ("ptclust's defaults", "Leiden on our release"):
            assert page.count(f"\n| {title} ") == len(PLANTED)
        assert "| Leiden on our release at 0.1 |" in page
        assert "`make utility`" in page

    def test_the_file_of_details_has_every_mean(self, report):
        rows = list(csv.DictReader(report.to_details().splitlines()))
        assert len(rows) == N_MEANS
        for row, mean in zip(rows, report.means, strict=True):
            assert (row["setting"], row["method"]) == (mean.setting, mean.method)
            assert float(row["ari"]) == pytest.approx(mean.ari, abs=1e-3)
        supported = {row["by_weights"] for row in rows if row["setting"] == "null"}
        assert supported == {"0"}

    def test_the_page_is_short(self):
        """However many graphs are measured: 3,000 words."""
        drawn = [
            {
                "setting": setting.name,
                "family": family,
                "method": method,
                "epsilon": epsilon,
                "repetition": 0,
                "ari": ari,
                "nmi": 0.95,
                "n_clusters": 3,
                "true_epsilon": epsilon,
            }
            for setting in Effort.full().settings
            for family in setting.shapes
            for method, epsilons, ari in (
                *((m.name, Effort.full().epsilons[setting.size], 0.9) for m in setting.methods),
                *((equal_name(name), (1.0,), 0.0) for name in setting.controlled),
                *((control.name, (None,), 0.0) for control in setting.controls),
            )
            for epsilon in epsilons
        ]
        page = UtilityReport(drawn, "make utility", Effort.full().settings).to_markdown()
        assert len(page.split()) <= 2800  # what fails is told in the others

    def test_files(self, report, directory):
        report.save(directory)
        figure = directory / "figures" / "utility-linf-100.png"
        assert figure.read_bytes().startswith(b"\x89PNG")
        page = (directory / "utility.md").read_text()
        assert page == report.to_markdown() + "\n"
        assert "(figures/utility-linf-100.png)" in page
        assert (directory / "utility-details.csv").read_text() == report.to_details() + "\n"
        document = json.loads((directory / "utility.json").read_text())
        assert len(document["needed"]) == N_PLANTED * len(PLANTED_METHODS)
        assert len(document["means"]) == N_MEANS
        assert document["heterogeneous_targets"]
        assert document["failures"]


def test_command_line(directory, records, monkeypatch, run_experiment):
    monkeypatch.setattr(Effort, "quick", classmethod(lambda cls: EFFORT))
    options = ["--quick", "--nodes", "100", "--repetitions", "2"]
    code, out, err = run_experiment("utility", *options, "-o", directory)
    assert not code
    assert '`make utility ARGS="--quick --repetitions 2 --nodes 100"`' in out
    assert "n = 100, linf = 0.001 (2 repetitions)" in out
    assert "## Heterogeneous graphs" not in out
    assert f"{3 * N_LINES * 2:,} runs" in err  # found where the records of the other tests are


class TestResume:
    SETTINGS = (replace(NAMED["linf-100"], shapes=("moons",)),)
    TINY = Effort({100: (1.0,)}, {100: 2}, SETTINGS)
    N_GRAPHS = 2
    PER_GRAPH = 5 + 2  # releases: whole graph, Kruskal, PAMST thrice; and two with equal weights
    N_RECORDS = len(PLANTED_METHODS) + len(CONTROLLED) + len(CONTROLS)

    @pytest.fixture
    def calls(self, monkeypatch):
        made = []

        def counted(*arguments, **options):
            made.append(options["random_state"])
            return release_of(*arguments, **options)

        monkeypatch.setattr(utility, "release_of", counted)
        return made

    def test_nothing_is_made_twice(self, tmp_path, calls):
        first = run_utility(tmp_path, self.TINY)
        assert len(calls) == len(set(calls)) == self.N_GRAPHS * self.PER_GRAPH
        assert run_utility(tmp_path, self.TINY) == first
        assert len(calls) == self.N_GRAPHS * self.PER_GRAPH
        run_utility(tmp_path, self.TINY, resume=False)
        assert len(calls) == 2 * self.N_GRAPHS * self.PER_GRAPH

    def test_more_repetitions_build_on_fewer(self, tmp_path, calls):
        run_utility(tmp_path, self.TINY.with_repetitions(1))
        assert len(calls) == self.PER_GRAPH
        both = run_utility(tmp_path, self.TINY)
        assert len(calls) == self.N_GRAPHS * self.PER_GRAPH
        assert run_utility(tmp_path / "anew", self.TINY) == both

    def test_an_interrupted_run_goes_on(self, tmp_path, calls):
        whole = run_utility(tmp_path / "whole", self.TINY)
        file = tmp_path / "results.jsonl"
        lines = (tmp_path / "whole" / "results.jsonl").read_bytes().splitlines(keepends=True)
        kept = 1 + self.N_RECORDS + 3
        file.write_bytes(b"".join(lines[:kept]) + lines[kept][:25])
        calls.clear()
        assert run_utility(tmp_path, self.TINY) == whole
        assert len(calls) == (self.N_GRAPHS - 1) * self.PER_GRAPH
        assert file.read_bytes() == b"".join(lines)

    def test_results_of_another_seed_are_not_mixed_in(self, tmp_path):
        run_utility(tmp_path, self.TINY)
        with pytest.raises(FileError, match="seed"):
            run_utility(tmp_path, self.TINY, seed=1)

    def test_results_of_other_code_are_not_mixed_in(self, tmp_path, monkeypatch):
        run_utility(tmp_path, self.TINY)
        monkeypatch.setattr(utility, "code_digest", lambda: "other")
        with pytest.raises(FileError, match="'code': 'other'"):
            run_utility(tmp_path, self.TINY)

    def test_comments_are_no_code(self):
        meaning = _code._meaning
        plain = "def f(x):\n    return x + 1\n"
        commented = 'def f(x):\n    """Add one."""\n\n    return x + 1  # or so\n'
        assert meaning(plain) == meaning(commented)
        assert meaning(plain) != meaning(plain.replace("1", "2"))
        assert _code.code_digest() == _code.code_digest.__wrapped__()

    def test_a_foreign_file_is_refused_and_kept(self, tmp_path):
        file = tmp_path / "results.jsonl"
        file.write_text("not ours\nat all\n")
        with pytest.raises(FileError, match="is not a file of results"):
            run_utility(tmp_path, self.TINY)
        assert file.read_text() == "not ours\nat all\n"


def test_shift_rules_are_compared_on_the_same_releases(monkeypatch):
    small = [setting for setting in SETTINGS if setting.n_nodes == 100]
    monkeypatch.setattr(shift, "SETTINGS", small)
    table = compare_shifts(1).splitlines()
    assert len(table) == 2 + len(RULES)
    default = next(line for line in table if line.startswith(f"| {DEFAULT} |"))
    assert "+0.000 ± 0.000 | 0 of" in default


def test_the_default_rule_is_the_one_of_the_library():
    from ptclust.clustering.normalise import normalisation

    for weights in (np.array([-0.3, 0.2, 1.4]), np.array([0.05, 0.2]), np.array([0.5, 0.9])):
        shifted = weights + normalisation(weights, 0.1).shift
        np.testing.assert_allclose(shifted, RULES[DEFAULT](weights, 0.1))
