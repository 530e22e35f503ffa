"""A series in a folder: what it spends, that nothing is lost, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptclust import Release, Sensitivity, Series
from ptclust.errors import BudgetError, FileError, UsageError
from ptclust.ledger import Ledger
from ptclust.planning.series import joint_epsilon
from ptclust.privacy import Budget
from ptclust.privacy.gaussian_curve import joint_delta
from ptclust.release.format import digest
from ptclust.series import series as module
from tests.series.months import month

PLAIN: dict[str, Any] = {"sensitivity": Sensitivity(l1=1), "privacy_unit": "one person"}
SETTINGS = PLAIN | {"mechanism": "gaussian"}


def start(folder: Path, **changed: Any) -> Series:
    settings = {"epsilon": 3, "delta": 1e-6, "releases": 3, "name": "rides", **changed}
    return Series(folder, **settings)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Series:
    series = start(tmp_path_factory.mktemp("year"))
    for number in range(3):
        graph = month(number, move=(0, 2) if number == 2 else ())
        series.publish(graph, f"m{number}", **SETTINGS)
    return series


class TestYear:
    def test_total_is_the_joint_curve_of_its_releases(self, made: Series) -> None:
        releases = list(made.releases.values())
        rhos = [Fraction(each.statement.rho or 0) for each in releases]
        t = min(
            Fraction(r.weight_noise.scale) / Fraction(2) ** r.weight_noise.granularity
            for r in releases
        )
        n_values = 3 * releases[0].topology.n_edges
        assert joint_delta(rhos, t, n_values, Fraction(3)) <= Fraction(1e-6)
        assert joint_delta(rhos, t, n_values, Fraction("2.999")) > Fraction(1e-6)
        spent = made.verify()
        assert spent is not None
        assert float(spent.epsilon) == joint_epsilon(rhos, t, n_values, Fraction(1e-6))
        assert 2.999 < float(spent.epsilon) <= 3
        assert Budget.zcdp(sum(rhos)).epsilon_at(1e-6) > 3.1  # what zCDP alone would say

    def test_statements_name_series_and_total(self, made: Series) -> None:
        for number, release in enumerate(made.releases.values(), 1):
            words = release.statement.caveats[-1]
            assert f"release {number} of 3 of the series 'rides'" in words
            assert "to all 3 periods together is protected by epsilon = 3, delta = 1e-06" in words

    def test_clusters_keep_their_numbers_and_files_their_predecessor(self, made: Series) -> None:
        first, second, third = made.releases.values()
        assert first.follows is None
        assert second.follows is not None
        assert second.follows.digest == digest(first)
        assert np.array_equal(first.labels, second.labels)
        assert np.flatnonzero(second.labels != third.labels).tolist() == [0, 2]

    def test_moves_are_named(self, made: Series) -> None:
        changes = made.changes
        assert changes["m1"].names == []
        assert changes["m2"].names == [0, 2]
        assert changes["m2"].clusters == {0: (1, 1), 1: (1, 1)} or changes["m2"].clusters
        assert changes["m2"].sentence.startswith("2 nodes moved beyond noise")

    def test_a_period_that_is_there_costs_nothing(self, made: Series) -> None:
        before = made.account
        again = made.publish(month(0), "m0", **SETTINGS)
        assert again.statement.id == made.releases["m0"].statement.id
        assert made.account == before

    def test_beyond_the_series_is_refused(self, made: Series) -> None:
        with pytest.raises(BudgetError, match="has 3 releases, and all were made"):
            made.publish(month(4), "m4", **SETTINGS)
        assert len(made.releases) == 3

    def test_ledger_takes_nothing_else(self, made: Series) -> None:
        with pytest.raises(BudgetError, match="pays for a series"):
            made.ledger.preview("rides", Budget.zcdp("1/1000000"))

    def test_combined_has_less_noise_and_is_a_valid_file(
        self, made: Series, tmp_path: Path
    ) -> None:
        whole = made.combined()
        assert whole.weight_noise.scale == pytest.approx(
            made.releases["m0"].weight_noise.scale / np.sqrt(3)
        )
        whole.save(tmp_path / "whole.json")
        assert Release.load(tmp_path / "whole.json").statement.epsilon == pytest.approx(3, rel=1e-3)

    def test_opens_again(self, made: Series) -> None:
        assert Series.open(made.folder, name="rides").budget.total == made.budget.total

    def test_other_budget_is_refused(self, made: Series) -> None:
        other = start(made.folder, epsilon=4)
        with pytest.raises(UsageError, match="never changed"):
            other.publish(month(9), "m9", **SETTINGS)

    def test_other_unit_is_refused(self, made: Series) -> None:
        with pytest.raises(UsageError, match="protects one person, and this release one visit"):
            made.publish(month(9), "m9", **SETTINGS | {"privacy_unit": "one visit"})
        assert made.account.n_charges == 3

    def test_removed_file_is_not_drawn_again(self, made: Series) -> None:
        path = made.folder / "003-m2.json"
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(FileError, match="never drawn twice"):
            made.publish(month(2), "m2", **SETTINGS)
        path.write_bytes(content)


class Killed(BaseException):
    """What stands for a kill."""


@pytest.mark.parametrize("instant", ["charged", "kept", "confirmed", "clustered"])
def test_killed_at_any_instant_loses_nothing(
    instant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = start(tmp_path)
    series.publish(month(0), "m0", **SETTINGS)

    def killed_after(function: Any) -> Any:
        def run(*arguments: Any, **settings: Any) -> Any:
            function(*arguments, **settings)
            raise Killed

        return run

    owner, name = {
        "charged": (Ledger, "charge"),
        "kept": (Release, "save"),
        "confirmed": (Ledger, "confirm"),
        "clustered": (Release, "clustered"),
    }[instant]
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, killed_after(getattr(owner, name)))
        with pytest.raises(Killed):
            series.publish(month(1), "m1", **SETTINGS)
    assert list(series.releases) == ["m0"]
    spent = series.account.spent
    second = series.publish(month(1), "m1", **SETTINGS)
    assert series.account.spent == spent  # it was paid for, once
    assert series.account.n_charges == 2
    charge = series.ledger.history("rides")[1]
    assert charge.released
    assert charge.statement_id == second.statement.id
    assert series.publish(month(2), "m2", **SETTINGS).follows is not None
    assert not list(tmp_path.glob(".*.drawn"))


def test_killed_process_goes_on(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from ptclust import Release\n"
        "from tests.series.test_series import SETTINGS, month, start\n"
        "from pathlib import Path\n"
        "save = Release.save\n"
        "def die(self, path, **how):\n"
        "    save(self, path, **how)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Release.save = die\n"
        "start(Path(sys.argv[1])).publish(month(0), 'm0', **SETTINGS)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert run.returncode == -9
    series = start(tmp_path)
    assert series.releases == {}
    kept = Release.load(next(tmp_path.glob(".*.drawn")))
    assert series.publish(month(0), "m0", **SETTINGS).statement.id == kept.statement.id
    assert series.account.n_charges == 1


def test_pure_series_adds_up(tmp_path: Path) -> None:
    series = start(tmp_path, delta=0, releases=None, shares=(1, 2))
    release = series.publish(month(0), "m0", **PLAIN)
    assert release.statement.epsilon == pytest.approx(1)
    assert series.account.left.amount == 2
    assert "epsilon adding up" in release.statement.caveats[-1]


def test_per_period_says_what_it_does_not_protect(tmp_path: Path) -> None:
    series = start(tmp_path, per="period")
    release = series.publish(month(0), "m0", **SETTINGS)
    assert release.statement.epsilon == pytest.approx(3, rel=1e-3)
    words = release.statement.caveats[-1]
    assert "what one privacy unit contributes to one period is protected by epsilon = 3" in words
    assert "to all 3 periods together only by epsilon = 5." in words


@pytest.mark.parametrize("period", ["", "a/b", "a; b", ".hidden", "x\n", 7])
def test_periods_are_names(period: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot name a period"):
        start(tmp_path).publish(month(0), period, **SETTINGS)


def test_terms_read_what_they_wrote(tmp_path: Path) -> None:
    series = start(tmp_path)
    series.publish(month(0), "m0", **SETTINGS)
    assert module.Terms.read(series.terms.written()).written() == series.terms.written()
    with pytest.raises(UsageError, match="does not hold a series"):
        module.Terms.read("{}")
