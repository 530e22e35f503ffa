from __future__ import annotations

import json

import pytest

from ptclust.errors import FileError
from ptclust.experiments import utility
from ptclust.experiments.controls import CONTROLS
from ptclust.experiments.shift import DEFAULT, RULES, compare_shifts
from ptclust.experiments.utility import SETTINGS, Effort, run_utility
from ptclust.experiments.utility_report import UtilityReport

EFFORT = Effort((0.2, 1.0, 50.0), {100: 3, 1000: 1})
SMALL = [setting for setting in SETTINGS if setting.n_nodes == 100]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("utility")


@pytest.fixture(scope="module")
def records(directory):
    return run_utility(directory, EFFORT, settings=SMALL)


@pytest.fixture(scope="module")
def report(records):
    return UtilityReport(records, "ptclust reproduce utility", SMALL)


def test_settings_are_those_of_the_specification():
    found = [(s.n_nodes, s.sensitivity.linf, s.sensitivity.l1, s.delta) for s in SETTINGS]
    assert found == [(100, 1e-3, None, 1e-6), (1000, 5e-4, None, 1e-6), (100, None, 0.1, 0.0)]


def test_efforts():
    quick, full = Effort.quick(), Effort.full()
    assert set(quick.epsilons) <= set(full.epsilons)
    assert list(full.epsilons) == sorted(full.epsilons)
    assert quick.with_repetitions(2).repetitions == {100: 2, 1000: 2}


def test_the_table_has_all_methods_and_controls(report):
    text = report.to_markdown()
    assert text.count("\n## ") == 4
    for setting in SMALL:
        for title in [*(m.title for m in setting.methods), *(c.title for c in CONTROLS)]:
            assert f"| {title} " in text
    assert "`ptclust reproduce utility`" in text


def test_controls_and_extremes(report):
    for setting in SMALL:
        for family in ("circles", "moons"):
            assert report.mean(setting.name, family, "dbmstclu", None).ari == 1
            assert abs(report.mean(setting.name, family, "topology", None).ari) < 0.02
            assert abs(report.mean(setting.name, family, "spectral", None).ari) < 0.1
            assert report.mean(setting.name, family, "perturbation", 50.0).ari == 1
    assert report.mean("linf-100", "moons", "sound", 50.0).ari == 1
    assert report.mean("linf-100", "moons", "sound", 0.2).ari < 0.2
    assert report.mean("l1-100", "moons", "sound", 1.0).ari < 0.1
    assert report.needed("linf-100", "moons", "kruskal").epsilon == 1.0
    assert report.needed("linf-100", "moons", "sound").epsilon == 50.0
    assert report.needed("l1-100", "moons", "published") is None


def test_the_published_calibration_shows_what_it_spends(report):
    # Section 4 of the mathematics: epsilon / 4 for the tree and (n - 1) epsilon / 2 for the weights.
    spent = report.mean("linf-100", "circles", "published", 1.0).true_epsilon
    assert spent == pytest.approx(0.25 + 99 / 2, rel=1e-4)
    assert report.mean("linf-100", "circles", "sound", 1.0).true_epsilon == 1.0
    assert "50 (truly 2,488)" in report.to_markdown()


def test_needed_is_where_the_mean_stays_above_the_goal():
    def record(epsilon, ari):
        key = {"setting": "linf-100", "family": "moons", "method": "sound", "repetition": 0}
        return {**key, "epsilon": epsilon, "ari": ari, "n_clusters": 2, "true_epsilon": epsilon}

    curve = [record(1.0, 0.95), record(2.0, 0.5), record(3.0, 0.92), record(4.0, 1.0)]
    assert UtilityReport(curve, "").needed("linf-100", "moons", "sound").epsilon == 3.0
    assert UtilityReport(curve[:2], "").needed("linf-100", "moons", "sound") is None


def test_interval_of_the_mean(records, report):
    ari = [
        record["ari"]
        for record in records
        if (record["setting"], record["family"], record["method"], record["epsilon"])
        == ("linf-100", "moons", "kruskal", 0.2)
    ]
    mean = report.mean("linf-100", "moons", "kruskal", 0.2)
    centre = sum(ari) / 3
    deviation = (sum((value - centre) ** 2 for value in ari) / 2) ** 0.5
    assert mean.ari == pytest.approx(centre)
    assert mean.margin == pytest.approx(4.302653 * deviation / 3**0.5, rel=1e-5)


def test_files(report, directory):
    report.save(directory)
    assert (directory / "utility.png").read_bytes().startswith(b"\x89PNG")
    assert (directory / "utility.md").read_text() == report.to_markdown() + "\n"
    document = json.loads((directory / "utility.json").read_text())
    assert len(document["needed"]) == 2 * (5 + 4)
    assert len(document["means"]) == 2 * (3 * (5 + 4) + 2 * 3)


class TestResume:
    SETTINGS = SETTINGS[:1]
    TINY = Effort((1.0,), {100: 2})

    @pytest.fixture
    def calls(self, monkeypatch):
        made = []

        def counted(*arguments, **options):
            made.append(options["random_state"])
            return publish(*arguments, **options)

        publish = utility.publish
        monkeypatch.setattr(utility, "publish", counted)
        return made

    def run(self, path, effort=TINY, **options):
        return run_utility(path, effort, settings=self.SETTINGS, **options)

    def test_nothing_is_made_twice(self, tmp_path, calls):
        first = self.run(tmp_path)
        assert len(calls) == len(set(calls)) == 2 * 2 * 5
        assert self.run(tmp_path) == first
        assert len(calls) == 20
        self.run(tmp_path, resume=False)
        assert len(calls) == 40

    def test_more_repetitions_build_on_fewer(self, tmp_path, calls):
        self.run(tmp_path, self.TINY.with_repetitions(1))
        assert len(calls) == 10
        both = self.run(tmp_path)
        assert len(calls) == 20
        assert self.run(tmp_path / "anew") == both

    def test_an_interrupted_run_goes_on(self, tmp_path, calls):
        whole = self.run(tmp_path / "whole")
        file = tmp_path / "results.jsonl"
        lines = (tmp_path / "whole" / "results.jsonl").read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[:10]) + lines[10][:25])
        calls.clear()
        assert self.run(tmp_path) == whole
        assert len(calls) == 20 - 5  # nine records were whole, four of them controls
        assert file.read_bytes() == b"".join(lines)

    def test_results_of_another_seed_are_not_mixed_in(self, tmp_path):
        self.run(tmp_path)
        with pytest.raises(FileError, match="seed"):
            self.run(tmp_path, seed=1)

    def test_a_foreign_file_is_refused_and_kept(self, tmp_path):
        file = tmp_path / "results.jsonl"
        file.write_text("not ours\nat all\n")
        with pytest.raises(FileError, match="no file of results"):
            self.run(tmp_path)
        assert file.read_text() == "not ours\nat all\n"


def test_shift_rules_are_compared_on_the_same_releases():
    table = compare_shifts(1).splitlines()
    assert len(table) == 2 + len(RULES)
    default = next(line for line in table if line.startswith(f"| {DEFAULT} |"))
    assert "+0.000 ± 0.000 | 0 of" in default


def test_the_default_rule_is_the_one_of_the_library():
    import numpy as np

    from ptclust.release.normalise import normalisation

    for weights in (np.array([-0.3, 0.2, 1.4]), np.array([0.05, 0.2]), np.array([0.5, 0.9])):
        shifted = weights + normalisation(weights, 0.1).shift
        np.testing.assert_allclose(shifted, RULES[DEFAULT](weights, 0.1))
