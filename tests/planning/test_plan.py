"""Plans: scales are formulas of public numbers, never above the budget, known before spending."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.errors import InputError, UsageError
from ptclust.graph import Graph, Topology
from ptclust.mechanisms import MECHANISMS, Calibration
from ptclust.mechanisms.exponential import STEP_SLACK
from ptclust.planning import Plan, plan
from ptclust.privacy import Budget, Sensitivity
from ptclust.privacy.gaussian_curve import Steps, largest_mu
from ptclust.privacy.noise import spent_by

MU = 0.01
LINF = Sensitivity(linf=MU)


def path(n_nodes: int) -> Topology:
    return Topology(range(n_nodes - 1), range(1, n_nodes), n_nodes=n_nodes)


def complete(n_nodes: int) -> Topology:
    pairs = [(a, b) for a in range(n_nodes) for b in range(a)]
    return Topology(*zip(*pairs))


def by_name(made: Plan) -> dict[str, Calibration]:
    return {calibration.mechanism: calibration for calibration in made.calibrations}


class PublicNumbers(Topology):
    """Three counts, and nothing else to look at."""

    n_components = 2
    n_edges = 500

    def __init__(self) -> None:
        self.n_nodes = 102

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the plan looked at {name}")


def test_only_three_public_counts_are_looked_at():
    for delta in (0, 1e-6):
        made = plan(PublicNumbers(), epsilon=1, delta=delta, sensitivity=LINF)
        assert (made.n_nodes, made.n_edges, made.n_components) == (102, 500, 2)
        assert by_name(made)["kruskal"].tree.n_steps == 100


class TestFormulas:
    """Sections 2 to 4 of the mathematics, for n - 1 = 9 tree edges among 45."""

    epsilon, split = 1.5, 0.25

    @pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
    def test_pure(self, mechanism):
        chosen = plan(
            complete(10),
            epsilon=self.epsilon,
            sensitivity=LINF,
            mechanism=mechanism,
            split=self.split,
        ).chosen
        assert chosen.mechanism == mechanism
        assert chosen.tree.exponent == pytest.approx(self.epsilon * 0.25 / (9 * 2 * MU), rel=1e-9)
        assert chosen.weights.distribution == "cube"
        assert chosen.weights.n_values == 9
        assert chosen.weights.scale == pytest.approx(MU / (self.epsilon * 0.75), rel=2e-6)
        assert chosen.spent == Budget.pure(self.epsilon)
        assert chosen.tree.spent + chosen.weights_spent == chosen.spent

    @pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
    def test_zcdp(self, mechanism):
        budget, n = Budget.approximate(self.epsilon, 1e-6), 999
        rho = largest_mu(self.epsilon, 1e-6) ** 2 / 2  # but for what the steps widen
        chosen = plan(
            path(n + 1),
            epsilon=self.epsilon,
            delta=1e-6,
            sensitivity=LINF,
            mechanism=mechanism,
            split=0.25,
        ).chosen
        beta = math.sqrt(8 * 0.25 * rho / n)
        assert 0.9999 < chosen.tree.exponent / (beta / (2 * MU)) < 1
        assert chosen.weights.distribution == "gaussian"
        sigma = math.sqrt(n) * MU / math.sqrt(2 * 0.75 * rho)
        assert 1 < chosen.weights.scale / sigma < 1.0001
        assert chosen.spent == budget
        assert chosen.tree.spent + chosen.weights_spent == chosen.spent.implied_zcdp

    @pytest.mark.parametrize(
        ("sensitivity", "l1", "l2"),
        [
            (LINF, 45 * MU, math.sqrt(45) * MU),
            (Sensitivity(l1=MU), MU, MU),
            (Sensitivity(l2=MU), math.sqrt(45) * MU, MU),
            (Sensitivity(l1=1.0, linf=MU), 45 * MU, math.sqrt(45) * MU),
            (Sensitivity(l1=4 * MU, linf=MU), 4 * MU, 2 * MU),
        ],
    )
    def test_perturbing_the_whole_graph(self, sensitivity, l1, l2):
        made = plan(complete(10), epsilon=self.epsilon, delta=1e-6, sensitivity=sensitivity)
        laplace, gaussian = by_name(made)["laplace"], by_name(made)["gaussian"]
        assert laplace.tree is None
        assert gaussian.tree is None
        assert laplace.weights.n_values == gaussian.weights.n_values == 45
        assert laplace.weights.scale == pytest.approx(l1 / self.epsilon, rel=2e-6)
        mu = largest_mu(self.epsilon, 1e-6)
        assert gaussian.weights.scale == pytest.approx(l2 / mu, rel=3e-6)
        assert laplace.spent == Budget.pure(self.epsilon)
        assert gaussian.spent == made.budget
        assert laplace.noise == pytest.approx(math.sqrt(2) * laplace.weights.scale)
        assert gaussian.noise == gaussian.weights.scale

    def test_the_noise_of_a_candidate_is_the_larger_of_its_two(self):
        for split in (0.01, 0.99):
            chosen = plan(
                complete(10), epsilon=1, sensitivity=LINF, mechanism="pamst", split=split
            ).chosen
            tree = math.pi / math.sqrt(6) / chosen.tree.exponent
            weights = math.sqrt(10 * 11 / 3) * chosen.weights.scale
            assert (tree > weights) == (split == 0.01)
            assert chosen.noise == pytest.approx(max(tree, weights))

    def test_components_are_public_and_shorten_the_tree(self):
        forest = Topology(
            [0, 1, 3, 4, 3], [1, 2, 4, 5, 5], n_nodes=8
        )  # components: 3, 3, 1, 1 nodes
        made = plan(forest, epsilon=1, sensitivity=LINF)
        assert made.n_components == 4
        assert by_name(made)["kruskal"].tree.n_steps == 4
        assert by_name(made)["kruskal"].weights.n_values == 4
        assert by_name(made)["laplace"].weights.n_values == 5


bounds = st.floats(1e-9, 1e9)
#: A few, for a new pair takes up to seconds to convert to zCDP; tests of Budget convert many.
WITH_DELTA = [(Fraction(1, 3), 1e-9), (1.0, 1e-6), (50, 1e-15), (0.1, 0.4)]


@settings(max_examples=60)
@given(
    asked=st.tuples(st.floats(1e-3, 100) | st.fractions(Fraction(1, 100), 50), st.just(0))
    | st.sampled_from(WITH_DELTA),
    sensitivity=st.builds(
        lambda linf, l1, l2: Sensitivity(linf=linf, l1=l1, l2=l2),
        bounds,
        st.none() | bounds,
        st.none() | bounds,
    ),
    n_nodes=st.integers(2, 60),
    extra=st.integers(0, 100),
    split=st.floats(0.01, 0.99),
)
def test_nothing_spends_more_than_the_budget(asked, sensitivity, n_nodes, extra, split):
    """Recomputed from exponent and noise alone, in exact arithmetic."""
    pairs = [(i, i + 1) for i in range(n_nodes - 1)]
    pairs += [(i, j) for j in range(n_nodes) for i in range(j - 1)][:extra]
    sources, targets = zip(*pairs)
    topology = Topology(sources, targets, n_nodes=n_nodes)
    epsilon, delta = asked
    made = plan(topology, epsilon=epsilon, delta=delta, sensitivity=sensitivity, split=split)
    budget = Budget.approximate(epsilon, delta)
    assert set(by_name(made)) == set(MECHANISMS.names) - (set() if delta else {"gaussian"})
    for calibration in made.calibrations:
        noise = spent_by(calibration.weights, sensitivity)
        assert noise.fits_in(calibration.weights_spent)
        assert calibration.spent.fits_in(budget)
        assert calibration.weights.n_values == (n_nodes - 1 if calibration.tree else len(pairs))
        if calibration.tree is None:
            total = noise
        else:
            steps = n_nodes - 1
            spread = sensitivity.spread if delta else sensitivity.mean_spread(steps)
            beta = Fraction(calibration.tree.exponent) * Fraction(spread) + Fraction(STEP_SLACK)
            tree = Budget.zcdp(steps * beta**2 / 8) if delta else Budget.pure(steps * beta)
            assert tree.fits_in(calibration.tree.spent)
            total = tree + noise
        if total.kind == "zcdp":  # by their curve: the rho may be larger
            assert total.fits_in(calibration.spent.implied_zcdp)
            steps = Steps(n_nodes - 1, beta) if calibration.tree else Steps()
            kept = (
                calibration.weights.law.curve_delta(calibration.weights, sensitivity, budget, steps)
                <= budget.delta
            )
            assert kept or total.fits_in(budget.to_zcdp())
        else:
            assert total.fits_in(budget)


class TestAuto:
    @pytest.mark.parametrize("delta", [0, 1e-6])
    @pytest.mark.parametrize(
        "sensitivity", [LINF, Sensitivity(l1=MU), Sensitivity(l1=0.1, linf=MU)]
    )
    @pytest.mark.parametrize("topology", [path(30), complete(30)])
    @pytest.mark.parametrize("clusterer", ["dbmstclu", "levels"])
    def test_single_edges_ask_for_the_least_noise(self, topology, sensitivity, delta, clusterer):
        made = plan(topology, epsilon=1, delta=delta, sensitivity=sensitivity, clusterer=clusterer)
        assert len(made.calibrations) == (5 if delta else 4)
        assert made.chosen in made.calibrations
        assert made.chosen.noise == min(calibration.noise for calibration in made.calibrations)

    def test_averages_bear_more_noise_on_every_edge(self):
        made = plan(complete(30), epsilon=1, delta=1e-6, sensitivity=LINF)
        kruskal = by_name(made)["kruskal"]
        assert made.chosen.mechanism == "gaussian"
        assert made.chosen.noise > kruskal.noise
        assert made.chosen.visible_gap < kruskal.visible_gap
        n, m = 30, 435
        assert made.chosen.visible_gap / made.chosen.noise == pytest.approx(
            max(7 / math.sqrt(2 * m / n), 8 / m**0.25)
        )
        assert kruskal.visible_gap / kruskal.noise == pytest.approx(2 * math.sqrt(2 * math.log(n)))

    def test_a_graph_hardly_more_than_a_tree_has_nothing_to_average(self):
        ring = Topology(range(30), [*range(1, 30), 0])
        (gaussian,) = plan(
            ring, epsilon=1, delta=1e-6, sensitivity=LINF, mechanism="gaussian"
        ).calibrations
        assert gaussian.visible_gap / gaussian.noise == pytest.approx(
            2 * math.sqrt(2 * math.log(30))
        )

    def test_communities_leave_out_what_releases_a_tree_only(self):
        choices = {"epsilon": 1, "delta": 1e-6, "sensitivity": LINF, "clusterer": "communities"}
        assert {*by_name(plan(complete(9), **choices))} == {"gaussian", "laplace", "cube"}
        with pytest.raises(UsageError, match="all edges of a graph"):
            plan(complete(9), mechanism="kruskal", **choices)

    @pytest.mark.parametrize("delta", [0, 1e-6])
    @pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
    @pytest.mark.parametrize("sensitivity", [LINF, Sensitivity(l1=0.1, linf=MU)])
    def test_without_a_split_tree_and_weights_get_the_same_noise(
        self, delta, mechanism, sensitivity
    ):
        made = plan(
            complete(20), epsilon=1, delta=delta, sensitivity=sensitivity, mechanism=mechanism
        ).chosen
        assert made.tree.noise == pytest.approx(made.weights.standard_deviation, rel=0.03)
        half = plan(
            complete(20),
            epsilon=1,
            delta=delta,
            sensitivity=sensitivity,
            mechanism=mechanism,
            split=0.5,
        ).chosen
        assert made.noise < half.noise

    @pytest.mark.parametrize(("split", "mechanism"), [(0.5, "kruskal"), (0.001, "gaussian")])
    def test_counts_the_noise_of_the_tree_too(self, split, mechanism):
        """With hardly any budget for the tree, its weights are fine and its shape is not."""
        made = plan(
            complete(30), epsilon=1, delta=1e-6, sensitivity=LINF, split=split, clusterer="dbmstclu"
        )
        kruskal, gaussian = by_name(made)["kruskal"], by_name(made)["gaussian"]
        assert kruskal.weights.standard_deviation < gaussian.weights.standard_deviation
        assert made.chosen.mechanism == mechanism

    @pytest.mark.parametrize("delta", [0, 1e-6])
    def test_perturbs_the_graph_where_the_total_change_is_small(self, delta):
        """Of few weights, cube noise is less than Gaussian noise, and pure."""
        for topology in (path(30), complete(30)):
            made = plan(topology, epsilon=1, delta=delta, sensitivity=Sensitivity(l1=MU))
            assert made.chosen.tree is None
        linf = plan(path(30), epsilon=1, delta=delta, sensitivity=LINF)
        assert linf.chosen.mechanism == "cube"

    def test_a_method_asked_for_is_the_only_candidate(self):
        for mechanism in MECHANISMS.names:
            made = plan(path(5), epsilon=1, delta=1e-6, sensitivity=LINF, mechanism=mechanism)
            assert [calibration.mechanism for calibration in made.calibrations] == [mechanism]

    def test_depends_on_nothing_else(self):
        arguments: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "sensitivity": LINF}
        assert plan(complete(9), **arguments) == plan(complete(9), **arguments)


@pytest.mark.parametrize("n_nodes", [0, 1, 2])
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("mechanism", ["auto", *MECHANISMS.names])
def test_the_smallest_graphs(n_nodes, delta, mechanism):
    if (mechanism, delta) == ("gaussian", 0):
        return
    made = plan(path(n_nodes), epsilon=1, delta=delta, sensitivity=LINF, mechanism=mechanism)
    assert made.chosen.weights.n_values == max(n_nodes - 1, 0)
    assert (made.chosen.noise > 0) == (n_nodes == 2)
    assert made.to_text()
    if n_nodes < 2 and delta == 0:
        published = plan(path(n_nodes), epsilon=1, sensitivity=LINF, calibration="published").chosen
        assert published.spent == Budget.pure(1)


class TestPublished:
    def test_states_what_it_truly_spends(self):
        made = plan(path(10), epsilon=2, sensitivity=LINF, calibration="published")
        assert made.chosen.mechanism == "pamst"
        assert made.chosen.tree.exponent == pytest.approx(1 / (4 * MU * 9), rel=1e-9)
        assert made.chosen.weights.scale == pytest.approx(MU, rel=1e-12)
        assert float(made.chosen.spent.epsilon) == pytest.approx(2 / 4 + 9 * 2 / 2, rel=1e-6)
        assert made.chosen.spent == made.chosen.tree.spent + made.chosen.weights_spent
        assert "truly spends epsilon = 9.5" in made.to_text()
        assert made.to_dict()["calibration"] == "published"

    @pytest.mark.parametrize(
        "choices",
        [{"mechanism": "kruskal"}, {"mechanism": "laplace"}, {"delta": 1e-6}, {"split": 0.3}],
    )
    def test_is_algorithm_3_and_nothing_else(self, choices):
        with pytest.raises(UsageError, match="calibration='published'"):
            plan(path(10), epsilon=1, sensitivity=LINF, calibration="published", **choices)


GOOD: dict[str, Any] = {"epsilon": 1.0, "sensitivity": LINF}
WRONG = [
    *(
        ({"epsilon": value}, "epsilon")
        for value in (0, 0.0, -1, math.nan, math.inf, 5e-324, 1e-310)
    ),
    *(({"epsilon": value}, "epsilon") for value in ("one", None, True, [1])),
    *(({"delta": value}, "delta") for value in (1, 1.5, -1e-9, math.nan, math.inf, 5e-324, "x")),
    *(({"split": value}, "split") for value in (0, 1, -0.5, 7, math.nan, math.inf, "half")),
    *(({"clusterer": value}, "clusterer") for value in ("hdbscan", None)),
    *(
        ({"split": 7, "mechanism": name}, "split")
        for name in MECHANISMS.names
        if name != "gaussian"
    ),
    *(({"sensitivity": value}, "Sensitivity") for value in (None, 0.1, {"linf": 1})),
    *(({"mechanism": value}, "kruskal, pamst, gaussian, laplace") for value in ("prim", None, 1)),
    *(({"calibration": value}, "'sound' or 'published'") for value in ("tight", None)),
    ({"mechanism": "gaussian"}, "a positive delta="),
    ({"mechanism": "gaussian", "delta": 0.0}, "or mechanism='laplace'"),
    *(
        ({"clip": value}, "smaller first")
        for value in ((1, 0), (0, 0), (0, math.inf), (math.nan, 1), (1,), 5, "ab", ())
    ),
]


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_wrong_choices_are_refused_with_a_remedy(change, words):
    with pytest.raises(UsageError) as caught:
        plan(complete(4), **(GOOD | change))
    assert words in str(caught.value)
    assert len(str(caught.value).split()) >= 8, "a sentence, not a code"


def test_a_plan_has_no_default_for_what_must_be_known():
    for missing in GOOD:
        with pytest.raises(TypeError, match=missing):
            plan(path(3), **{key: value for key, value in GOOD.items() if key != missing})
    with pytest.raises(TypeError):
        plan(path(3), 1.0, LINF)  # type: ignore[call-arg]


def test_a_graph_is_not_planned_for_but_its_topology():
    graph = Graph([0], [1], [0.123456789])
    with pytest.raises(InputError, match=r"graph\.topology"):
        plan(graph, **GOOD)


class TestWarning:
    def test_noise_above_the_declared_range(self):
        made = plan(complete(10), epsilon=0.01, sensitivity=LINF, clip=(0, 1))
        assert made.chosen.noise > 1
        (warning,) = made.warnings
        assert f"{made.chosen.noise:.3g}" in warning
        assert "larger epsilon" in warning
        assert "Warning: the noise" in made.to_text()
        assert made.to_dict()["warnings"] == [warning]

    def test_the_width_counts_and_not_the_bounds(self):
        made = plan(complete(10), epsilon=0.01, sensitivity=LINF, clip=(1000, 1001))
        assert made.warnings
        noise = made.chosen.noise
        for width, n_warnings in ((1.01 * noise, 0), (0.99 * noise, 1)):
            made = plan(complete(10), epsilon=0.01, sensitivity=LINF, clip=(-1, width - 1))
            assert len(made.warnings) == n_warnings

    def test_none_without_a_range(self):
        assert plan(complete(10), epsilon=0.01, sensitivity=LINF).warnings == ()


def test_the_page_and_the_dictionary_show_every_candidate_and_the_choice():
    made = plan(
        complete(10),
        epsilon=1,
        delta=1e-6,
        sensitivity=LINF,
        clip=("0", 1),
        clusterer="dbmstclu",
    )
    assert made.request.clip == (0.0, 1.0)
    page = made.to_text()
    for calibration in made.calibrations:
        (line,) = (line for line in page.splitlines() if line[2:].startswith(calibration.mechanism))
        assert (line[0] == ">") == (calibration.mechanism == made.chosen.mechanism)
        assert f"{calibration.weights.standard_deviation:.3g}" in line
        assert ("all 45 edges" in line) == (calibration.tree is None)
        assert calibration.tree is None or f"{calibration.tree.noise:.3g}" in line
    assert "10 nodes, 45 edges, 1 component(s)" in page
    assert "epsilon = 1, delta = 1e-06" in page
    assert "0.01 on every edge (linf)" in page

    content = json.loads(json.dumps(made.to_dict()))
    assert content["chosen"] == made.chosen.mechanism == "kruskal"
    assert [entry["mechanism"] for entry in content["mechanisms"]] == list(MECHANISMS.names)
    entry = content["mechanisms"][0]
    assert entry["tree_exponent"] == made.chosen.tree.exponent
    assert entry["tree_noise"] == made.chosen.tree.noise
    assert entry["weights"]["scale"] == made.chosen.weights.scale
    assert entry["noise"] == made.chosen.noise
    assert entry["visible_gap"] == made.chosen.visible_gap
    assert Budget.from_dict(entry["spent"]) == made.budget == Budget.from_dict(content["budget"])
    assert content["sensitivity"] == {"linf": MU}
    assert (content["n_nodes"], content["n_edges"], content["n_components"]) == (10, 45, 1)


def test_auto_goes_on_without_what_the_budget_does_not_afford():
    path = Topology(range(999), range(1, 1000))
    tiny = {"epsilon": 1e-11, "sensitivity": Sensitivity(l1=1e-12)}
    assert [c.mechanism for c in plan(path, **tiny).calibrations] == ["laplace", "cube"]
    with pytest.raises(UsageError, match="raise the budget"):
        plan(path, mechanism="kruskal", **tiny)


def test_warnings_are_about_what_is_truly_spent():
    path = Topology(range(99), range(1, 100))
    published = plan(
        path,
        epsilon=1,
        sensitivity=Sensitivity(linf=0.001),
        mechanism="pamst",
        calibration="published",
    )
    assert published.chosen.spent.epsilon > 10
    assert "guarantees almost nothing" in published.warnings[0]
    pure = plan(path, epsilon=1, delta=0.5, sensitivity=Sensitivity(l1=0.001), mechanism="laplace")
    assert pure.chosen.spent.delta == 0
    assert pure.warnings == ()
