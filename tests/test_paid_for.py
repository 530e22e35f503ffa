"""What was paid for is never lost: published values are kept whatever the clustering does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptclust import Budget, Graph, Ledger, PTClust, Release, Sensitivity
from ptclust.clustering import CLUSTERERS, Clusterer, Cost
from ptclust.errors import UsageError

#: Of so many weights some are negative after much noise, but for one in 2^61 times.
WEIGHTS = [0.1] * 30 + [0.9] + [0.1] * 30
LABELS = [0] * 31 + [1] * 31
N_NODES, N_EDGES = 62, 61
#: So little noise that released weights are almost the true ones, and so much that some are
#: negative.
LITTLE, MUCH = "1e-6", "10"


class Failing(Clusterer):
    """Raises what it was made with."""

    name = "failing"
    description = "nothing was done"
    needs = "tree"
    cost = Cost(1, 1, 1.0)

    def __init__(self, problem: BaseException) -> None:
        self.problem = problem

    def cluster(self, published):
        raise self.problem


@pytest.fixture
def failing():
    """Register a clusterer that raises a problem."""

    def register(problem: BaseException) -> None:
        CLUSTERERS.register(Failing(problem))

    yield register
    if "failing" in CLUSTERERS.names:
        CLUSTERERS.unregister("failing")


def graph() -> Graph:
    return Graph(range(N_EDGES), range(1, N_NODES), WEIGHTS)


def edges() -> None:
    """Write the graph, and a ledger that covers one release, to the current directory."""
    rows = "".join(f"{i},{i + 1},{weight}\n" for i, weight in enumerate(WEIGHTS))
    Path("edges.csv").write_text("source,target,distance\n" + rows)
    Ledger.create("ledger.db").add_dataset("survey", Budget.pure(1))


def cluster(linf: str, *options: str) -> list[str]:
    paid = ["--epsilon", "1", "--linf", linf, "--ledger", "ledger.db", "--dataset", "survey"]
    paid += ["--privacy-unit", "one patient", "--topology", "public"]
    return ["cluster", "edges.csv", *paid, "-o", "release.json", "--labels", "l.csv", *options]


def check_kept(run, err: str) -> Release:
    """The release is on the disk, unclustered, whole; the ledger knows; clusters cost nothing."""
    assert "The published values are paid for and in release.json, not clustered" in err
    assert "`ptclust recluster release.json -o FILE`" in err
    assert "Traceback" not in err
    release = Release.load("release.json")
    assert release.clustering is None
    assert release.labels.tolist() == [-1] * N_NODES
    assert len(release.noisy_weights) == N_EDGES
    assert release.statement.private
    (charge,) = Ledger.open("ledger.db").history()
    assert charge.released
    assert charge.statement_id == release.statement.id
    assert not Path("l.csv").exists()
    code, out, _ = run("ledger", "history", "ledger.db", "--json")
    assert code == 0
    assert [entry["released"] for entry in json.loads(out)] == [True]
    code, _, said = run("recluster", "release.json", "-o", "clustered.json")
    assert code == 0, said
    clustered = Release.load("clustered.json")
    assert clustered.n_clusters > 0
    assert clustered.statement.id == release.statement.id
    np.testing.assert_array_equal(clustered.noisy_weights, release.noisy_weights)
    return release


class TestCommandLine:
    @pytest.mark.parametrize(
        ("linf", "shift"), [(LITTLE, "--shift=-0.5"), (MUCH, "--shift=0"), (MUCH, "--scale=1e-9")]
    )
    def test_constants_that_do_not_suffice(self, run, linf, shift):
        edges()
        code, out, err = run(*cluster(linf, "--clusterer", "dbmstclu", shift))
        assert (code, out) == (2, "")
        assert "out, or give at least" in err
        assert err.splitlines()[-1].startswith("ptclust: with a s")
        release = check_kept(run, err)
        assert release.recluster("dbmstclu").n_clusters > 0

    def test_constants_that_suffice(self, run):
        """A shift of 0 is a shift that was given, not one left out."""
        edges()
        code, _, err = run(*cluster(LITTLE, "--clusterer", "dbmstclu", "--shift=0"))
        assert code == 0, err
        release = Release.load("release.json")
        assert release.labels.tolist() == LABELS
        assert release.clustering.shift == 0
        assert "(given)" in " ".join(release.statement.post_processing)
        assert Path("l.csv").exists()

    def test_a_clusterer_that_refuses(self, run, failing):
        failing(UsageError("these values are not for me; ask another clusterer"))
        edges()
        code, _, err = run(*cluster(LITTLE, "--clusterer", "failing"))
        assert code == 2
        assert "ask another clusterer" in err
        assert check_kept(run, err).recluster("dbmstclu").labels.tolist() == LABELS

    def test_an_interruption(self, run, failing):
        failing(KeyboardInterrupt())
        edges()
        code, _, err = run(*cluster(LITTLE, "--clusterer", "failing"))
        assert code == 130
        assert err.splitlines()[-1] == "ptclust: interrupted; no file was left half-written"
        assert check_kept(run, err).recluster("dbmstclu").labels.tolist() == LABELS

    @pytest.mark.parametrize("problem", [RuntimeError("a defect"), MemoryError()])
    def test_a_defect(self, run, failing, problem, monkeypatch, capsys):
        failing(problem)
        edges()
        monkeypatch.setattr("sys.argv", ["ptclust", *cluster(LITTLE, "--clusterer", "failing")])
        from ptclust import cli

        with pytest.raises(type(problem)):  # a traceback and exit code 1: to be reported
            cli.main()
        check_kept(run, capsys.readouterr().err)

    def test_a_second_release_is_refused_and_the_first_stays(self, run, failing):
        """The remedy is to cluster again, not to publish again: that would be charged."""
        failing(UsageError("these values are not for me"))
        edges()
        run(*cluster(LITTLE, "--clusterer", "failing"))
        before = Path("release.json").read_bytes()
        code, _, err = run(*cluster(LITTLE, "--clusterer", "dbmstclu"))
        assert code == 3
        assert "release.json exists already; running again spends the budget again" in err
        assert Path("release.json").read_bytes() == before

    def test_labels_that_cannot_be_written(self, run, monkeypatch):
        """Clusters are in the release by then."""
        from ptclust.errors import FileError

        def full(*_: object, **__: object) -> None:
            raise FileError("l.csv could not be written: No space left on device")

        edges()
        monkeypatch.setattr(Release, "to_csv", full)
        code, _, err = run(*cluster(LITTLE, "--clusterer", "dbmstclu"))
        assert code == 3
        assert "No space left" in err
        assert Release.load("release.json").labels.tolist() == LABELS
        assert [charge.released for charge in Ledger.open("ledger.db").history()] == [True]


class TestEstimator:
    @pytest.fixture
    def ledger(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.add_dataset("survey", Budget.pure(2))
        return ledger

    def model(self, ledger, **options: Any) -> PTClust:
        given = {"epsilon": 1, "sensitivity": Sensitivity(linf=float(LITTLE)), "dataset": "survey"}
        return PTClust(**(given | options), ledger=ledger)

    def check_kept(self, model: PTClust, ledger: Ledger, caught: Any, n_charges: int = 1) -> None:
        (note,) = caught.value.__notes__
        assert "kept in release_" in note
        assert "release_.recluster()" in note
        assert model.release_.clustering is None
        assert len(model.release_.noisy_weights) == N_EDGES
        assert model.labels_.tolist() == [-1] * N_NODES
        assert (model.n_clusters_, model.dbcvi_) == (0, 0.0)
        assert model.plan_.n_nodes == N_NODES
        charges = ledger.history()
        assert [charge.released for charge in charges] == [True] * n_charges
        assert charges[-1].statement_id == model.release_.statement.id
        assert model.release_.recluster().n_clusters > 0

    @pytest.mark.parametrize(
        "options",
        [
            {"shift": -0.5},
            {"shift": 0, "sensitivity": Sensitivity(linf=float(MUCH))},
            {"scale": 1e-9},
        ],
        ids=str,
    )
    def test_constants_that_do_not_suffice(self, ledger, options):
        model = self.model(ledger, clusterer="dbmstclu", **options)
        with pytest.raises(UsageError, match="out, or give at least") as caught:
            model.fit(graph())
        self.check_kept(model, ledger, caught)

    @pytest.mark.parametrize("problem", [UsageError, RuntimeError, MemoryError, KeyboardInterrupt])
    def test_a_clusterer_that_fails(self, ledger, failing, problem):
        failing(problem())
        model = self.model(ledger, clusterer="failing")
        with pytest.raises(problem) as caught:
            model.fit(graph())
        self.check_kept(model, ledger, caught)

    def test_nothing_of_the_fit_before_stays(self, ledger, failing):
        """Attributes of two fits are never mixed."""
        failing(KeyboardInterrupt())
        model = self.model(ledger).fit(Graph([0, 1], [1, 2], [0.1, 0.9]))
        with pytest.raises(KeyboardInterrupt) as caught:
            model.set_params(clusterer="failing").fit(graph())
        self.check_kept(model, ledger, caught, n_charges=2)
