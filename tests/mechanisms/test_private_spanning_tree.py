"""private_spanning_tree: by every mechanism, with the exponent or scale that the budget affords."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import chisquare, laplace, norm

from ptclust import private_spanning_tree
from ptclust.errors import InputError, PrivacyWarning, UsageError, WeightError
from ptclust.graph import Graph
from ptclust.mechanisms import MECHANISMS
from ptclust.mechanisms.exponential import calibrate_tree
from ptclust.privacy import Budget, RandomStream, Sensitivity
from ptclust.privacy.noise import cube_noise, gaussian_noise_alone, laplace_noise
from ptclust.trees import Tree, minimum_spanning_tree
from tests.mechanisms import paper

ALPHA = 1e-6
MU = 0.01
WITH_DELTA = [(mechanism, delta) for mechanism in MECHANISMS.names for delta in (0, 1e-6)]
WITH_DELTA.remove(("gaussian", 0))
DISTRIBUTION = {"pamst": paper.pamst_distribution, "kruskal": paper.kruskal_distribution}


def random_graph(n_nodes=50, n_more=100, seed=0) -> Graph:
    random = np.random.default_rng(seed)
    pairs = {(int(random.integers(i)), i) for i in range(1, n_nodes)}
    while len(pairs) < n_nodes - 1 + n_more:
        a, b = sorted(random.choice(n_nodes, 2, replace=False).tolist())
        pairs.add((a, b))
    ends = random.permutation(sorted(pairs))
    return Graph(ends[:, 0], ends[:, 1], random.uniform(0.1, 1, len(ends)), n_nodes=n_nodes)


def assert_spans(tree: Tree, graph: Graph) -> None:
    """Tree has checked that there is no cycle; so many edges make it span every component."""
    ids = tree.edge_ids
    assert tree.n_edges == graph.n_nodes - graph.topology.n_components
    assert tree.topology.components.tolist() == graph.topology.components.tolist()
    assert ids.dtype.kind == "i"
    assert (np.diff(ids) > 0).all()
    assert graph.sources[ids].tolist() == tree.sources.tolist()
    assert graph.targets[ids].tolist() == tree.targets.tolist()


@pytest.mark.parametrize(("mechanism", "delta"), WITH_DELTA)
@pytest.mark.parametrize("random_state", [None, 7])
def test_a_spanning_tree_without_weights(mechanism, delta, random_state):
    graph = random_graph()
    tree = private_spanning_tree(
        graph,
        mechanism=mechanism,
        epsilon=1,
        delta=delta,
        sensitivity=Sensitivity(linf=MU),
        random_state=random_state,
    )
    assert_spans(tree, graph)
    assert not tree.private
    with pytest.raises(WeightError, match="only its topology"):
        tree.weights  # noqa: B018
    assert not any(
        isinstance(part, np.ndarray) and part.dtype.kind == "f" for part in vars(tree).values()
    )


@pytest.mark.parametrize(("mechanism", "delta"), WITH_DELTA)
def test_forests_and_the_smallest_graphs(mechanism, delta):
    options: dict[str, Any] = {
        "mechanism": mechanism, "epsilon": 1, "delta": delta, "sensitivity": Sensitivity(linf=MU),
    }  # fmt: skip
    one, two = random_graph(20, 30), random_graph(9, 5, seed=1)
    both = Graph(
        np.r_[one.sources, two.sources + 22],
        np.r_[one.targets, two.targets + 22],
        np.r_[one.weights, two.weights],
        n_nodes=33,
    )
    assert both.topology.n_components == 6  # two trees and four nodes alone
    assert_spans(private_spanning_tree(both, **options), both)
    for n_nodes in (0, 1, 2, 5):
        empty = Graph([], [], [], n_nodes=n_nodes)
        assert private_spanning_tree(empty, **options).n_edges == 0
    pair = Graph([1], [0], [-3.0])
    assert private_spanning_tree(pair, **options).edge_ids.tolist() == [0]


@pytest.mark.parametrize(("mechanism", "delta"), WITH_DELTA)
def test_with_hardly_any_noise_it_is_the_minimum_spanning_tree(mechanism, delta):
    graph = random_graph()
    tree = private_spanning_tree(
        graph, mechanism=mechanism, epsilon=1, delta=delta, sensitivity=Sensitivity(linf=1e-7)
    )
    assert tree.edge_ids.tolist() == minimum_spanning_tree(graph).edge_ids.tolist()


def test_a_seed_repeats_the_tree_and_secure_draws_differ():
    graph = random_graph()
    options: dict[str, Any] = {"epsilon": 1, "sensitivity": Sensitivity(linf=MU)}
    for mechanism in ("kruskal", "pamst", "laplace"):
        draws = [
            private_spanning_tree(graph, mechanism=mechanism, **options, random_state=seed).edge_ids
            for seed in (3, 3, 4, None, None)
        ]
        assert draws[0].tolist() == draws[1].tolist()
        assert len({tuple(ids.tolist()) for ids in draws[1:]}) == 4


def deviation_of_gaussian(epsilon: float, delta: float) -> float:
    """Return the deviation of Gaussian noise for l2 = 1 (Balle and Wang 2018, Theorem 8)."""

    def excess(deviation: float) -> float:
        half, slope = 1 / (2 * deviation), epsilon * deviation
        return float(norm.cdf(half - slope) - math.exp(epsilon) * norm.cdf(-half - slope)) - delta

    return float(brentq(excess, 0.1, 100.0))


@pytest.mark.filterwarnings("ignore::ptclust.errors.PrivacyWarning")
class TestTheBudgetIsUsed:
    """On many triangles, where the distribution of the tree is known, with secure randomness."""

    copies, n_calls, weights = 1000, 6, (0.1, 0.5, 1.0)

    def draw(self, **options: Any) -> Counter[tuple[int, ...]]:
        offset = np.repeat(np.arange(self.copies) * 3, 3)
        a, b = (np.tile(nodes, self.copies) + offset for nodes in ([0, 0, 1], [1, 2, 2]))
        graph = Graph(a, b, np.tile(self.weights, self.copies))
        found: Counter[tuple[int, ...]] = Counter()
        for _ in range(self.n_calls):
            ids = private_spanning_tree(graph, **options).edge_ids.reshape(self.copies, 2)
            copy, edge = np.divmod(ids, 3)
            assert (copy == np.arange(self.copies)[:, None]).all()
            found.update(map(tuple, edge.tolist()))
        return found

    def is_accepted(self, found: Counter[tuple[int, ...]], exact: dict[Any, float]) -> bool:
        total, n = math.fsum(exact.values()), sum(found.values())
        assert total == pytest.approx(1, abs=1e-5)
        trees = sorted(exact)
        expected = [n * exact[tree] / total for tree in trees]
        return bool(chisquare([found[tree] for tree in trees], expected).pvalue > ALPHA)

    @pytest.mark.parametrize("mechanism", DISTRIBUTION)
    @pytest.mark.parametrize(
        ("sensitivity", "spread"),
        [(Sensitivity(linf=MU), 2 * MU), (Sensitivity(l1=MU), MU)],
        ids=["linf", "l1"],
    )
    def test_pure(self, mechanism, sensitivity, spread):
        """Section 3: epsilon = k c spread."""
        exponent = 2.0
        epsilon = 2 * self.copies * exponent * spread
        found = self.draw(mechanism=mechanism, epsilon=epsilon, sensitivity=sensitivity)
        self.check_exponent(mechanism, found, exponent)

    @pytest.mark.parametrize("mechanism", DISTRIBUTION)
    @pytest.mark.parametrize("norm_and_spread", [("linf", 2.0), ("l1", 1.0)])
    def test_zcdp(self, mechanism, norm_and_spread):
        """Section 3: rho = k (c spread)^2 / 8, where rho is what epsilon and delta afford."""
        exponent, epsilon, delta = 2.0, 1.0, 1e-6
        rho = float(Budget.approximate(epsilon, delta).to_zcdp().rho)
        spread = math.sqrt(8 * rho / (2 * self.copies)) / exponent
        name, factor = norm_and_spread
        sensitivity = Sensitivity(**{name: spread / factor})
        found = self.draw(
            mechanism=mechanism, epsilon=epsilon, delta=delta, sensitivity=sensitivity
        )
        self.check_exponent(mechanism, found, exponent)

    def check_exponent(self, mechanism, found, exponent):
        edges = [(i, (i + 1) % 3, w) for i, w in enumerate(self.weights)]
        for factor in (0.7, 1.0, 1.3):
            exact = DISTRIBUTION[mechanism](3, edges, factor * exponent)
            assert self.is_accepted(found, exact) == (factor == 1.0)

    @pytest.mark.parametrize(
        ("mechanism", "sensitivity"),
        [
            ("laplace", Sensitivity(l1=0.5)),  # l1 / epsilon
            ("laplace", Sensitivity(linf=0.5 / 3000)),  # m linf / epsilon
            ("gaussian", Sensitivity(l2=0.5)),
            ("gaussian", Sensitivity(linf=0.5 / math.sqrt(3000))),  # sqrt(m) linf is l2
        ],
    )
    def test_perturbation(self, mechanism, sensitivity):
        """The edge left out is the heaviest after noise on all m edges."""
        if mechanism == "laplace":
            options = {"epsilon": 1.0, "delta": 1e-6}  # delta is not needed, and does no harm
            scale, law = 0.5, laplace
        else:
            options = {"epsilon": 5.0, "delta": 1e-6}
            scale, law = 0.5 * deviation_of_gaussian(5.0, 1e-6), norm
        found = self.draw(mechanism=mechanism, sensitivity=sensitivity, **options)
        for factor in (0.7, 1.0, 1.3):
            exact = {
                tuple({0, 1, 2} - {i}): heaviest(law, i, self.weights, factor * scale)
                for i in range(3)
            }
            assert self.is_accepted(found, exact) == (factor == 1.0)


@pytest.mark.parametrize("sensitivity", [Sensitivity(linf=MU), Sensitivity(l1=0.3, l2=0.2)])
@pytest.mark.parametrize(("mechanism", "delta"), WITH_DELTA)
def test_the_tree_gets_all_of_the_budget(monkeypatch, mechanism, delta, sensitivity):
    """Exactly what each mechanism affords by itself: no share is kept for weights."""
    graph, used = random_graph(), []

    def drawn(_self, _graph, exponent, _stream):
        used.append(exponent)
        return minimum_spanning_tree(graph).edge_ids

    def perturbed(values, noise, **_options):
        used.append(noise)
        return values

    chosen = MECHANISMS[mechanism]
    if chosen.publishes == "tree":
        monkeypatch.setattr(type(chosen), "draw_edges", drawn)
    else:
        monkeypatch.setattr("ptclust.mechanisms.mechanism.add_noise", perturbed)
    options: dict[str, Any] = {"epsilon": 0.7, "delta": delta, "sensitivity": sensitivity}
    private_spanning_tree(graph, mechanism=mechanism, **options)
    budget = Budget.approximate(0.7, delta)
    shared = budget.to_zcdp() if delta else budget
    expected = {
        "laplace": lambda: laplace_noise(sensitivity, 149, budget.epsilon),
        "gaussian": lambda: gaussian_noise_alone(sensitivity, 149, budget),
        "cube": lambda: cube_noise(sensitivity, 149, budget.epsilon),
    }.get(mechanism, lambda: calibrate_tree(sensitivity, 49, shared).exponent)
    assert used == [expected()]


def heaviest(law: Any, i: int, weights: Any, scale: float) -> float:
    """The probability that weight i is the largest after noise."""

    def density(x: float) -> float:
        others = [law.cdf(x, w, scale) for j, w in enumerate(weights) if j != i]
        return float(law.pdf(x, weights[i], scale)) * math.prod(others)

    return float(quad(density, -12, 12, points=list(weights), limit=200)[0])


GOOD: dict[str, Any] = {"epsilon": 1.0, "sensitivity": Sensitivity(linf=MU)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mechanism": "prim"}, "kruskal, pamst, gaussian, laplace"),
        ({"mechanism": None}, "kruskal, pamst, gaussian, laplace"),
        ({"mechanism": "auto"}, "kruskal, pamst, gaussian, laplace"),
        ({"mechanism": "gaussian"}, "a positive delta="),
        *(({"epsilon": value}, "epsilon") for value in (0, -1, math.nan, math.inf, 5e-324, None)),
        *(({"delta": value}, "delta") for value in (1, -0.1, math.nan)),
        ({"sensitivity": None}, "this graph carries no sensitivity"),
        ({"sensitivity": 0.1}, "Sensitivity(linf="),
        *(({"random_state": value}, "seed") for value in (-1, 0.5, "x")),
        ({"epsilon": 1e-11}, "raise the budget"),
    ],
)
def test_wrong_choices_are_refused_with_a_remedy(change, words):
    with pytest.raises(UsageError) as caught:
        private_spanning_tree(random_graph(), **(GOOD | change))
    assert words in str(caught.value)


def test_only_a_graph_has_private_trees():
    for thing in (random_graph().topology, minimum_spanning_tree(random_graph()), np.eye(3), None):
        with pytest.raises(InputError, match="is not a graph; give a Graph"):
            private_spanning_tree(thing, **GOOD)


def test_what_must_be_known_has_no_default():
    for missing in GOOD:
        with pytest.raises((TypeError, UsageError), match=missing):
            private_spanning_tree(
                random_graph(), **{name: value for name, value in GOOD.items() if name != missing}
            )


@pytest.mark.parametrize("mechanism", DISTRIBUTION)
def test_of_a_forest_nothing_is_drawn_and_all_is_released(mechanism, monkeypatch):
    """Its topology is public and has no other spanning forest."""
    drawn = []

    def spy(_self, graph, _exponent, _stream):
        drawn.append(graph.n_edges)
        return minimum_spanning_tree(graph).edge_ids

    chosen = MECHANISMS[mechanism]
    monkeypatch.setattr(type(chosen), "draw_edges", spy)
    forest = Graph([4, 0, 2], [2, 1, 3], [0.3, 0.1, 0.2], n_nodes=6)
    options = {"epsilon": 1, "sensitivity": Sensitivity(linf=MU)}
    tree = private_spanning_tree(forest, mechanism=mechanism, **options)
    assert drawn == []
    assert_spans(tree, forest)
    assert tree.edge_ids.tolist() == [0, 1, 2]
    calibration = chosen.calibrate(forest.topology, options["sensitivity"], Budget.pure(1))
    assert calibration.tree.n_steps == 3  # what is charged does not change
    published = chosen.draw(forest, calibration, RandomStream.secure())
    assert drawn == []
    assert_spans(published.tree, forest)
    assert (published.tree.weights != forest.weights).all()
    with_a_cycle = Graph([0, 0, 1], [1, 2, 2], [0.3, 0.1, 0.2], n_nodes=6)
    private_spanning_tree(with_a_cycle, mechanism=mechanism, **options)
    assert drawn == [3]


def test_the_published_exponent_comes_from_delta_u_of_two_mu(monkeypatch):
    used = []

    def spy(_self, _graph, exponent, _stream):
        used.append(exponent)
        return np.array([0, 1])

    monkeypatch.setattr(type(MECHANISMS["pamst"]), "draw_edges", spy)
    graph = Graph([0, 1, 2], [1, 2, 0], [0.1, 0.2, 0.9])
    options = {"epsilon": 0.5, "sensitivity": Sensitivity(linf=0.1), "calibration": "published"}
    private_spanning_tree(graph, mechanism="pamst", **options)
    step_epsilon, delta_u = 0.5 / 2, 2 * 0.1
    assert used == [pytest.approx(step_epsilon / (2 * delta_u))]
    for wrong in ({"mechanism": "kruskal"}, {"mechanism": "pamst", "delta": 1e-6}):
        with pytest.raises(UsageError, match="PAMST"):
            private_spanning_tree(graph, **wrong, **options)
    with pytest.raises(UsageError, match="calibration"):
        private_spanning_tree(graph, **{**options, "calibration": "printed"})


class TestBeforeItIsDrawn:
    """A tree alone asks and warns as a release does."""

    def test_a_topology_of_the_data_is_refused(self):
        points = np.random.default_rng(0).normal(size=(30, 2))
        graph = Graph.from_points(points, n_neighbors=3)
        with pytest.raises(UsageError, match=r"computed from the data.*topology='public'"):
            private_spanning_tree(graph, **GOOD)
        assert private_spanning_tree(graph, **GOOD, topology="public").n_nodes == 30
        with pytest.raises(UsageError, match="topology must be 'public'"):
            private_spanning_tree(graph, **GOOD, topology="secret")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"epsilon": 11.0}, "epsilon = 11 guarantees almost nothing"),
            ({"delta": 0.01}, "delta = 0.01 is large"),
        ],
    )
    def test_weak_promises_are_named(self, change, words):
        with pytest.warns(PrivacyWarning, match=words):
            private_spanning_tree(random_graph(), **GOOD | change)
        private_spanning_tree(random_graph(), **GOOD | change, random_state=0)

    def test_clip(self, monkeypatch):
        seen = []

        def drawn(_self, graph, _exponent, _stream):
            seen.append(graph.weights)
            return np.arange(2)

        monkeypatch.setattr(type(MECHANISMS["kruskal"]), "draw_edges", drawn)
        triangle = Graph([0, 0, 1], [1, 2, 2], [-5.0, 0.5, 7.0], kind="similarity")
        private_spanning_tree(triangle, **GOOD, clip=(0.0, 1.0))
        assert seen[0].tolist() == [0.0, 0.5, 1.0]
