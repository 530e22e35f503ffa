"""Releases that are charged to a ledger: in which order, at what price, with what in the file."""

from __future__ import annotations

import hashlib
import pickle
import sqlite3
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from ptclust import Budget, Graph, Ledger, PTClust, Release, Sensitivity, private_spanning_tree
from ptclust.errors import BudgetError, FileError, PrivacyWarning, PtclustError, UsageError
from ptclust.ledger import Payment
from ptclust.mechanisms.exponential import calibrate_published_tree
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import Plan, plan
from ptclust.privacy.noise import gaussian_noise_alone, spent_by
from ptclust.privacy.randomness import RandomStream
from tests.ledger.releases import break_draws

HEADER = "source,target,distance\n"
UNIT = ["--privacy-unit", "one patient", "--topology", "public"]
SENSITIVITY = Sensitivity(linf=1e-5)


CLI_BUDGET = ["--epsilon", "1/10", "--linf", "1e-5", *UNIT]


def path_graph(seed: int = 0, n: int = 24) -> Graph:
    weights = np.random.default_rng(seed).uniform(0.1, 1, n - 1)
    return Graph(range(n - 1), range(1, n), weights, names=[f"nodename{i}" for i in range(n)])


def planned(graph: Graph, **choices: Any) -> Any:
    return plan(graph.topology, **({"epsilon": 1, "sensitivity": SENSITIVITY} | choices))


def charged(graph: Graph, made: Plan, ledger: Ledger, dataset: str = "survey") -> Release:
    payment = Payment.by(ledger, dataset)
    return publish(graph, ReleaseRequest.of(made.request, payment=payment), plan=made)


def prices(
    mechanism: str, *, pure: bool, alone: bool = False
) -> dict[str, tuple[Budget, int | Fraction | None, int | Fraction]]:
    """Totals of each kind, and what epsilon = 1, pure or at delta = 1e-6, costs; None: refused."""
    budget = Budget.approximate(1, 1e-6)
    edges = path_graph().n_edges
    if mechanism == "gaussian":  # by its own curve: more than (epsilon, delta) converts to
        rho = spent_by(gaussian_noise_alone(SENSITIVITY, edges, budget), SENSITIVITY).rho
    elif alone:  # a tree goes by way of zCDP
        rho = budget.to_zcdp().rho
    else:
        chosen = planned(path_graph(), mechanism="kruskal", delta=1e-6).chosen
        rho = chosen.tree.spent.rho + chosen.weights_spent.rho
        assert rho > budget.to_zcdp().rho
    return {
        "pure": (Budget.pure(10), 1 if pure else None, 0),
        "approximate": (Budget.approximate(10, 1e-3), 1, 0 if pure else Fraction(1e-6)),
        "zcdp": (Budget.zcdp(10), Fraction(1, 2) if pure else rho, 0),
    }


def book(path: Path, total: Budget) -> Ledger:
    ledger = Ledger.create(path / "ledger")
    ledger.add_dataset("survey", total)
    return ledger


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return book(tmp_path, Budget.approximate(10, 1e-3))


class TestPrice:
    @pytest.mark.parametrize(
        ("choices", "pure"),
        [
            ({"mechanism": "laplace"}, True),
            ({"mechanism": "laplace", "delta": 1e-6}, True),  # is pure, and pays no delta
            ({"mechanism": "kruskal"}, True),
            ({"mechanism": "kruskal", "delta": 1e-6}, False),
            ({"mechanism": "gaussian", "delta": 1e-6}, False),
        ],
    )
    def test_in_every_currency(self, tmp_path, choices, pure):
        graph = path_graph()
        for kind, (total, amount, delta) in prices(choices["mechanism"], pure=pure).items():
            (tmp_path / kind).mkdir()
            ledger = book(tmp_path / kind, total)
            made = planned(graph, **choices)
            if amount is None:
                with pytest.raises(BudgetError, match="no pure guarantee"):
                    charged(graph, made, ledger)
                assert ledger.history() == ()
                continue
            release = charged(graph, made, ledger)
            (charge,) = ledger.history()
            assert (charge.amount.amount, charge.amount.delta) == (amount, delta)
            assert charge.statement_id == release.statement.id

    def test_the_published_calibration_pays_what_it_truly_spends(self, tmp_path):
        graph = path_graph()
        made = planned(graph, mechanism="pamst", calibration="published")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            with pytest.raises(BudgetError):
                charged(graph, made, book(tmp_path, Budget.pure(10)))
            enough = Ledger.open(tmp_path / "ledger")
            enough.add_dataset("large", Budget.pure(100))
            release = charged(graph, made, enough, "large")
        (charge,) = enough.history()
        assert charge.amount.amount == made.chosen.spent.epsilon > 11
        assert float(charge.amount.amount) <= release.statement.epsilon


class TestOrder:
    def test_the_charge_is_on_the_disk_before_anything_is_drawn(self, ledger, monkeypatch):
        seen = []
        of = RandomStream.of

        def watched(random_state):
            seen.extend(ledger.history())
            return of(random_state)

        monkeypatch.setattr(RandomStream, "of", watched)
        release = charged(path_graph(), planned(path_graph()), ledger)
        (charge,) = seen
        assert charge.statement_id == release.statement.id
        assert not charge.released

    @pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt, MemoryError])
    def test_what_fails_after_the_charge_stays_charged(self, ledger, monkeypatch, stop):
        def fail(*_args, **_options):
            raise stop

        break_draws(monkeypatch, fail)
        with pytest.raises(stop):
            charged(path_graph(), planned(path_graph()), ledger)
        (charge,) = ledger.history()
        assert not charge.released
        assert ledger.status()[0].spent.amount == 1

    def test_a_constant_shift_that_proves_too_small_stays_charged(self, ledger):
        model = PTClust(
            epsilon=1,
            sensitivity=SENSITIVITY,
            clusterer="dbmstclu",
            shift=-5.0,
            ledger=ledger,
            dataset="survey",
        )
        with pytest.raises(UsageError, match="paid for and kept in release_"):
            model.fit(path_graph())
        # The values were handed over before they were clustered: they are paid for.
        (charge,) = ledger.history()
        assert charge.released
        assert model.release_.statement.id == charge.statement_id
        assert model.release_.clustering is None
        assert set(model.labels_.tolist()) == {-1}

    WRONG: ClassVar[dict[str, Any]] = {
        "epsilon": {"epsilon": 0},
        "sensitivity": {"sensitivity": None},
        "mechanism": {"mechanism": "prim"},
        "gaussian": {"mechanism": "gaussian"},
        "split": {"split": 1},
        "clip": {"clip": (1, 0)},
        "shift": {"shift": "x"},
        "scale": {"scale": -1},
        "size": {"min_cluster_size": 0},
        "unit": {"privacy_unit": "\n"},
        "warning": {"epsilon": 1e-6, "clip": (0, 1)},  # warnings are errors here
        "seed": {"random_state": 1},
        "dataset": {"dataset": "census"},
        "no dataset": {"dataset": None},
        "no ledger": {"ledger": None},
        "too much": {"epsilon": 11},
    }

    @pytest.mark.parametrize("what", WRONG)
    def test_what_can_be_refused_is_refused_before_the_charge(self, ledger, monkeypatch, what):
        def drawn(*_args):
            raise AssertionError("noise was drawn")

        monkeypatch.setattr(RandomStream, "of", drawn)
        options = {"epsilon": 1, "sensitivity": SENSITIVITY, "ledger": ledger, "dataset": "survey"}
        before = ledger.path.read_bytes()
        with pytest.raises((PtclustError, PrivacyWarning)):
            PTClust(**(options | self.WRONG[what])).fit(path_graph())
        assert ledger.path.read_bytes() == before

    def test_a_damaged_ledger_stops_the_release(self, ledger):
        content = ledger.path.read_bytes()
        ledger.path.write_bytes(content.replace(b"survey", b"surveY"))
        with pytest.raises(FileError):
            charged(path_graph(), planned(path_graph()), ledger)


class TestEstimator:
    def test_charges_and_confirms(self, ledger):
        model = PTClust(
            epsilon=4, sensitivity=SENSITIVITY, ledger=str(ledger.path), dataset="survey"
        )
        ids = [model.fit(path_graph()).release_.statement.id for _ in range(2)]
        assert [(c.statement_id, c.released) for c in ledger.history()] == [
            (ids[0], True),
            (ids[1], True),
        ]
        with pytest.raises(BudgetError, match=r"epsilon = 2, delta = 0\.001 left"):
            model.fit(path_graph())
        assert model.release_.statement.id == ids[1]

    @pytest.mark.parametrize("as_path", [True, False])
    def test_clone_and_pickle(self, ledger, as_path):
        given = ledger.path if as_path else ledger
        model = PTClust(epsilon=1, sensitivity=SENSITIVITY, ledger=given, dataset="survey")
        assert model.ledger is given
        for other in (clone(model), pickle.loads(pickle.dumps(model))):
            assert other.get_params()["ledger"] == given
            other.fit(path_graph())
        assert len(ledger.history()) == 2

    def test_a_release_that_was_paid_for_is_kept_if_the_note_fails(self, ledger, monkeypatch):
        def fail(*_args):
            raise FileError("disk full")

        monkeypatch.setattr(Ledger, "confirm", fail)
        model = PTClust(epsilon=1, sensitivity=SENSITIVITY, ledger=ledger, dataset="survey")
        with pytest.warns(PrivacyWarning, match=r"charged and is handed over.*disk full"):
            model.fit(path_graph())
        assert model.release_.statement.id == ledger.history()[0].statement_id


class TestTreeAlone:
    """private_spanning_tree pays as PTClust does."""

    OPTIONS: ClassVar[dict[str, Any]] = {"epsilon": 1, "sensitivity": SENSITIVITY}

    def draw(self, ledger, **options: Any) -> Any:
        return private_spanning_tree(
            path_graph(), ledger=ledger, dataset="survey", **(self.OPTIONS | options)
        )

    @pytest.mark.parametrize(
        ("choices", "pure"),
        [
            ({"mechanism": "laplace"}, True),
            ({"mechanism": "laplace", "delta": 1e-6}, True),
            ({"mechanism": "pamst"}, True),
            ({"mechanism": "kruskal"}, True),
            ({"mechanism": "kruskal", "delta": 1e-6}, False),
            ({"mechanism": "gaussian", "delta": 1e-6}, False),
        ],
    )
    def test_the_price_in_every_currency(self, tmp_path, choices, pure):
        of_tree = prices(choices["mechanism"], pure=pure, alone=True)
        for kind, (total, amount, delta) in of_tree.items():
            (tmp_path / kind).mkdir()
            ledger = book(tmp_path / kind, total)
            if amount is None:
                with pytest.raises(BudgetError, match="no pure guarantee"):
                    self.draw(ledger, **choices)
                assert ledger.history() == ()
                continue
            assert self.draw(ledger, **choices).n_edges == 23
            (charge,) = ledger.history()
            assert (charge.amount.amount, charge.amount.delta) == (amount, delta)
            assert charge.released
            begins = f"tree alone by {choices['mechanism']}, sound calibration: epsilon = 1"
            assert charge.description.startswith(begins)
            assert charge.description.endswith("; linf <= 1e-05")

    def test_the_published_exponent_pays_the_half_that_it_truly_spends(self, ledger):
        self.draw(ledger, mechanism="pamst", calibration="published")
        (charge,) = ledger.history()
        assert (
            charge.amount.amount
            == calibrate_published_tree(SENSITIVITY, 23, Fraction(1)).spent.epsilon
        )
        assert float(charge.amount.amount) == pytest.approx(0.5, rel=1e-6)
        assert "published calibration" in charge.description

    def test_the_charge_is_on_the_disk_before_anything_is_drawn(self, ledger, monkeypatch):
        seen, of = [], RandomStream.of

        def watched(random_state):
            seen.extend(ledger.history())
            return of(random_state)

        monkeypatch.setattr(RandomStream, "of", watched)
        self.draw(str(ledger.path))
        assert [charge.released for charge in seen] == [False]
        assert [charge.released for charge in ledger.history()] == [True]

    @pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
    def test_what_fails_after_the_charge_stays_charged(self, ledger, monkeypatch, stop):
        def fail(*_args):
            raise stop

        break_draws(monkeypatch, fail)
        with pytest.raises(stop):
            self.draw(ledger)
        assert [charge.released for charge in ledger.history()] == [False]
        assert ledger.status()[0].spent.amount == 1

    WRONG: ClassVar[dict[str, Any]] = {
        "epsilon": ({"epsilon": 0}, UsageError),
        "tiny": ({"epsilon": 1e-11}, UsageError),
        "sensitivity": ({"sensitivity": None}, UsageError),
        "mechanism": ({"mechanism": "prim"}, UsageError),
        "gaussian": ({"mechanism": "gaussian"}, UsageError),
        "published": ({"calibration": "published"}, UsageError),
        "seed": ({"random_state": 1}, UsageError),
        "dataset": ({"dataset": "census"}, UsageError),
        "no dataset": ({"dataset": None}, UsageError),
        "no ledger": ({"ledger": None}, UsageError),
        "too much": ({"epsilon": 11}, BudgetError),
    }

    @pytest.mark.filterwarnings("ignore::ptclust.errors.PrivacyWarning")
    @pytest.mark.parametrize("what", WRONG)
    def test_what_can_be_refused_is_refused_before_the_charge(self, ledger, monkeypatch, what):
        def drawn(*_args):
            raise AssertionError("a tree was drawn")

        monkeypatch.setattr(RandomStream, "of", drawn)
        change, error = self.WRONG[what]
        options = {**self.OPTIONS, "ledger": ledger, "dataset": "survey"}
        before = ledger.path.read_bytes()
        with pytest.raises(error):
            private_spanning_tree(path_graph(), **(options | change))
        assert ledger.path.read_bytes() == before

    def test_a_damaged_ledger_stops_the_tree(self, ledger):
        content = ledger.path.read_bytes()
        ledger.path.write_bytes(content.replace(b"survey", b"surveY"))
        with pytest.raises(FileError):
            self.draw(ledger)

    def test_a_tree_that_was_paid_for_is_returned_if_the_note_fails(self, ledger, monkeypatch):
        def fail(*_args):
            raise FileError("disk full")

        monkeypatch.setattr(Ledger, "confirm", fail)
        with pytest.warns(PrivacyWarning, match=r"charged and is handed over.*disk full") as caught:
            tree = self.draw(ledger)
        assert caught[0].filename == __file__
        assert tree.n_edges == 23
        assert len(ledger.history()) == 1

    def test_nothing_to_draw_costs_what_was_asked(self, ledger):
        for more in ({}, {"mechanism": "pamst", "calibration": "published"}):
            private_spanning_tree(
                Graph([], [], [], n_nodes=3),
                ledger=ledger,
                dataset="survey",
                **self.OPTIONS,
                **more,
            )
        assert [charge.amount.amount for charge in ledger.history()] == [1, 1]

    def test_entries_do_not_depend_on_the_weights(self, tmp_path):
        told = []
        for seed in range(2):
            (tmp_path / str(seed)).mkdir()
            ledger = book(tmp_path / str(seed), Budget.pure(1))
            graph = path_graph(seed)
            private_spanning_tree(graph, ledger=ledger, dataset="survey", **self.OPTIONS)
            (charge,) = ledger.history()
            told.append((charge.description, charge.amount, ledger.path.stat().st_size))
        assert told[0] == told[1]


class TestTraces:
    def test_nothing_of_the_weights_is_in_the_file(self, run, tmp_path):
        (tmp_path / "secretfolder").mkdir()
        graph = path_graph()
        lines = [
            f"{graph.names[a]},{graph.names[b]},{w!r}"
            for a, b, w in zip(graph.sources, graph.targets, graph.weights.tolist())
        ]
        source = tmp_path / "secretfolder" / "secretfile.csv"
        source.write_text(HEADER + "\n".join(lines) + "\n")
        options = ["--ledger", "l", "--dataset", "survey", "-o", "r.json", "--labels", "labels.csv"]
        assert run("ledger", "init", "l", "--dataset", "survey", "--epsilon", "1")[0] == 0
        assert run("cluster", source, *CLI_BUDGET, *options)[0] == 0
        content = Path("l").read_bytes().lower()
        for word in (b"secretfolder", b"secretfile", b"nodename", b"r.json", b"labels"):
            assert word not in content
        hidden = [graph.weights.tobytes(), np.sort(graph.weights).tobytes(), source.read_bytes()]
        for weight in graph.weights:
            assert repr(float(weight)).encode()[:8] not in content
            hidden.append(weight.tobytes())
            assert weight.tobytes() not in Path("l").read_bytes()
        for secret in hidden:
            for name in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s"):
                digest = hashlib.new(name, secret)
                assert digest.hexdigest().encode() not in content
                assert digest.digest() not in Path("l").read_bytes()

    def test_entries_differ_by_random_ids_and_time_alone(self, tmp_path):
        told = []
        for seed in range(3):
            (tmp_path / str(seed)).mkdir()
            ledger = book(tmp_path / str(seed), Budget.pure(1))
            graph = path_graph(seed)
            PTClust(epsilon=1, sensitivity=SENSITIVITY, ledger=ledger, dataset="survey").fit(graph)
            connection = sqlite3.connect(ledger.path)
            columns = "number, event, dataset, kind, amount, delta, description"
            entries = connection.execute(f"SELECT {columns} FROM entry").fetchall()
            accounts = connection.execute("SELECT * FROM account").fetchall()
            connection.close()
            told.append((entries, accounts, ledger.path.stat().st_size))
        assert told[0] == told[1] == told[2]
        assert len(told[0][0]) == 3
