"""The registry of mechanisms: wrong names fail, an order, and what every mechanism states."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust import Sensitivity, Topology, plan, private_spanning_tree
from ptclust._registry import Registry
from ptclust.errors import UsageError
from ptclust.graph import Graph
from ptclust.mechanisms import MECHANISMS, Kruskal, Mechanism
from ptclust.mechanisms.exponential import ALONE
from ptclust.planning import PlanRequest
from ptclust.privacy import Budget

ROOT = Path(__file__).parents[2]
NAMES = "kruskal, pamst, gaussian, laplace, cube"
#: A few, for a new pair of epsilon and delta takes a second to convert to zCDP.
BUDGETS = [
    Budget.pure(1e-3),
    Budget.pure("1/3"),
    Budget.pure(50),
    Budget.approximate("7/3", 1e-12),
    Budget.approximate(1, 1e-6),
]
UNKNOWN = ["prim", "Kruskal", "", "kruskal ", None, 1, ["kruskal"]]


@pytest.fixture
def empty() -> Registry[Mechanism]:
    return Registry("mechanism")


def named(word: str) -> Mechanism:
    return type("Toy", (Kruskal,), {"name": word})()


class TestNames:
    @pytest.mark.parametrize("name", UNKNOWN)
    def test_an_unknown_one_fails_with_the_names_there_are(self, name):
        for call in (MECHANISMS.__getitem__, MECHANISMS.unregister):
            with pytest.raises(UsageError, match=f"mechanism must be one of {NAMES}, not") as error:
                call(name)
            assert repr(name) in str(error.value)
        with pytest.raises(UsageError, match=f"one of auto, {NAMES}, not"):
            MECHANISMS.check(name)

    @pytest.mark.parametrize("name", UNKNOWN)
    def test_so_it_does_wherever_a_name_is_given(self, name):
        graph = Graph([0, 1], [1, 2], [0.5, 0.5])
        options = {"epsilon": 1, "sensitivity": Sensitivity(linf=1.0), "mechanism": name}
        for call in (
            lambda: plan(graph.topology, **options),
            lambda: PlanRequest(**options),
            lambda: private_spanning_tree(graph, **options),
        ):
            with pytest.raises(UsageError, match=NAMES):
                call()

    def test_auto_is_a_choice_and_no_mechanism(self, empty):
        assert MECHANISMS.check("auto") == "auto"
        with pytest.raises(UsageError, match=f"one of {NAMES}, not 'auto'"):
            MECHANISMS["auto"]
        with pytest.raises(UsageError, match="'auto' already; choose another name"):
            empty.register(named("auto"))
        assert empty.names == ()

    def test_a_name_is_taken_once(self, empty):
        first = named("toy")
        empty.register(first)
        with pytest.raises(UsageError, match="'toy' already; choose another name"):
            empty.register(named("toy"))
        assert empty["toy"] is first
        for mechanism in MECHANISMS:
            with pytest.raises(UsageError, match="already"):
                MECHANISMS.register(named(mechanism.name))
            assert MECHANISMS[mechanism.name] is mechanism
        empty.unregister("toy")
        empty.register(named("toy"))
        assert empty["toy"] is not first

    def test_they_come_in_the_order_in_which_they_were_registered(self, empty):
        for word in ("b", "a", "c"):
            empty.register(named(word))
        assert empty.names == ("b", "a", "c")
        assert [member.name for member in empty] == ["b", "a", "c"]
        assert ", ".join(MECHANISMS.names) == NAMES


class TestPreference:
    options = {"epsilon": 1, "delta": 1e-6, "sensitivity": Sensitivity(linf=0.01)}

    def test_plans_list_mechanisms_in_the_order_of_the_registry(self):
        made = plan(Topology(range(9), range(1, 10)), **self.options)
        assert tuple(each.mechanism for each in made.calibrations) == MECHANISMS.names

    def test_of_two_that_promise_the_same_auto_takes_the_first(self, monkeypatch):
        """Kruskal by another name is never chosen if registered after it, and is if before it."""
        pairs = [(a, b) for a in range(30) for b in range(a)]
        dense, toy = Topology(*zip(*pairs)), named("toy")
        options = {**self.options, "clusterer": "levels"}
        assert plan(dense, **options).chosen.mechanism == "kruskal"
        MECHANISMS.register(toy)
        try:
            made = plan(dense, **options)
            gaps = {each.mechanism: each.visible_gap for each in made.calibrations}
            assert gaps["toy"] == gaps["kruskal"] == gaps["pamst"] == min(gaps.values())
            assert made.chosen.mechanism == "kruskal"
            first = {"toy": toy, **{each.name: each for each in MECHANISMS}}
            monkeypatch.setattr(MECHANISMS, "_members", first)
            assert plan(dense, **options).chosen.mechanism == "toy"
            monkeypatch.undo()
        finally:
            MECHANISMS.unregister("toy")


@pytest.mark.parametrize("mechanism", list(MECHANISMS), ids=lambda each: each.name)
class TestWhatEachSays:
    def test_words_for_people(self, mechanism):
        for words in (mechanism.title, mechanism.reference):
            assert words.strip()
            assert words.isprintable()
        assert sum(other.title == mechanism.title for other in MECHANISMS) == 1

    def test_the_proof_is_in_the_documentation(self, mechanism):
        file, _, anchor = mechanism.proof.partition("#")
        assert file.startswith("docs/proofs/")
        headings = [
            line.lstrip("# ").lower().replace(" ", "-")
            for line in (ROOT / file).read_text(encoding="utf-8").splitlines()
            if line.startswith("#")
        ]
        assert not anchor or anchor in headings

    def test_what_it_publishes_and_under_which_guarantees(self, mechanism):
        assert mechanism.publishes in ("tree", "graph")
        assert mechanism.norm in ("l1", "l2", "linf")
        assert mechanism.variants
        assert set(mechanism.variants) <= {"pure", "approximate"}
        topology, sensitivity = Topology([0, 1], [1, 2]), Sensitivity(linf=1.0)
        if "pure" in mechanism.variants:
            assert mechanism.calibrate(topology, sensitivity, Budget.pure(1)).spent.kind == "pure"
        else:
            with pytest.raises(UsageError, match="a positive delta="):
                mechanism.calibrate(topology, sensitivity, Budget.pure(1))
        mechanism.calibrate(topology, sensitivity, Budget.approximate(1, 1e-6))

    def test_the_printed_scales_are_pamst_s(self, mechanism):
        topology, sensitivity = Topology([0, 1], [1, 2]), Sensitivity(linf=1.0)
        if mechanism.name == "pamst":
            assert mechanism.calibrate_published(topology, sensitivity, Budget.pure(1))
        else:
            with pytest.raises(UsageError, match=r"PAMST.*mechanism='pamst'"):
                mechanism.calibrate_published(topology, sensitivity, Budget.pure(1))

    @settings(max_examples=25)
    @given(
        sensitivity=st.builds(
            lambda norms, bounds: Sensitivity(**dict(zip(norms, bounds))),
            st.lists(st.sampled_from(["l1", "l2", "linf"]), min_size=1, max_size=3, unique=True),
            st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=3),
        ),
        budget=st.sampled_from(BUDGETS),
        split=st.none() | st.just(ALONE) | st.fractions(Fraction(1, 50), Fraction(49, 50)),
    )
    def test_uses_never_add_up_to_more_than_is_spent(self, mechanism, sensitivity, budget, split):
        if budget.kind == "pure" and "pure" not in mechanism.variants:
            budget = BUDGETS[-1]
        topology = Topology([0, 1, 2, 3, 0], [1, 2, 3, 0, 2])
        made = [mechanism.calibrate(topology, sensitivity, budget, split=split)]
        if mechanism.name == "pamst" and not budget.delta:
            made.append(mechanism.calibrate_published(topology, sensitivity, budget, split=split))
        assert made[0].spent.fits_in(budget)
        for calibration in made:
            spent, uses = calibration.spent, mechanism.uses(calibration)
            limit = spent if spent.kind == "pure" else spent.implied_zcdp
            assert uses
            assert {use.share_of for use in uses} == {limit.unit}
            # Exact shares fit exactly; those of the statement are the nearest floats.
            parts = [part for part in (calibration.weights_spent,) if part is not None]
            parts += [calibration.tree.spent] if calibration.tree else []
            assert sum(part.amount for part in parts) <= limit.amount
            assert [use.share for use in uses] == [float(part.amount) for part in parts[::-1]]
            assert sum(use.share for use in uses) <= float(limit.amount) * (1 + 1e-15)
            assert all(use.share > 0 and use.reference for use in uses)
            assert 0 <= calibration.slack <= float(spent.epsilon)
