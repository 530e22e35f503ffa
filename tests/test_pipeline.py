"""Publishing from end to end: Algorithm 3, its noise, its statement, public bounds."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ptclust
from ptclust import Graph, PTClust, Sensitivity, Topology
from ptclust.clustering.clusterer import by_size
from ptclust.errors import InputError, PrivacyWarning, UsageError
from ptclust.mechanisms import Pamst
from ptclust.mechanisms.lattice import add_noise
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import plan
from ptclust.privacy import Budget, RandomStream
from ptclust.privacy.gaussian_curve import largest_mu
from tests.clustering import paper
from tests.lazy import lazy
from tests.mechanisms.paper import pamst_distribution
from tests.published import MU, NAMES, PATH, TINY, choices, path_graph, planted

integrate = lazy("scipy.integrate")


stats = lazy("scipy.stats")


ALPHA = 1e-6


def quietly(model: PTClust, graph: Any) -> PTClust:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return model.fit(graph)


def clustered_weights(release: ptclust.Release) -> np.ndarray:
    """The weights that DBMSTClu cuts: (noisy + tau) / p."""
    return (release.tree.weights + release.clustering.shift) / release.clustering.scale


class TestPublished:
    """``calibration="published"``: the paper's Algorithm 3, PTClust(G, w, u_G, epsilon, tau, p)."""

    @pytest.mark.parametrize("seed", range(6))
    def test_algorithm_3_line_by_line(self, seed):
        # Line 1. Input: a weighted graph, epsilon, and the utility u = -|w(r) - min w|, of
        # sensitivity 2 mu.
        graph, epsilon = planted(14, seed), 1.5
        n = graph.n_nodes
        model = PTClust(
            epsilon=epsilon,
            delta=0,
            sensitivity=Sensitivity(linf=MU),
            mechanism="pamst",
            calibration="published",
            random_state=seed,
        )
        with pytest.warns(PrivacyWarning, match="truly spend"):
            model.fit(graph)
        chosen, release = model.plan_.chosen, model.release_

        # Line 2. T = PAMST(G, w, u_G, epsilon / 2): n - 1 choices by the Exponential mechanism with
        # epsilon' = (epsilon / 2) / (n - 1), of probability proportional to exp(epsilon' u / (2 *
        # (2 mu))).
        assert chosen.mechanism == "pamst"
        assert chosen.tree.n_steps == n - 1
        step = (epsilon / 2) / (n - 1)
        assert chosen.tree.exponent == pytest.approx(step / (2 * 2 * MU), rel=1e-9)
        stream = RandomStream.seeded(seed)
        edges = Pamst().draw_edges(graph, chosen.tree.exponent, stream)
        assert release.tree.edge_ids.tolist() == edges.tolist()

        # Line 3. T' = M_w.r(T, w restricted to T, 2 mu / epsilon, tau, p): w' = (w + Y + tau) / p
        # with Y from Laplace.
        assert (chosen.weights.distribution, chosen.weights.n_values) == ("laplace", n - 1)
        assert chosen.weights.scale == pytest.approx(2 * MU / epsilon, rel=1e-12)
        noisy = add_noise(graph.weights[edges], chosen.weights, stream=stream)
        assert release.tree.weights.tolist() == noisy.tolist()
        tau, p = release.clustering.shift, release.clustering.scale
        assert clustered_weights(release).tolist() == ((noisy + tau) / p).tolist()
        assert clustered_weights(release).min() > 0
        assert clustered_weights(release).max() <= 1

        # Line 4. Return DBMSTClu(T').
        ends = release.tree.sources.tolist(), release.tree.targets.tolist()
        weighted = list(zip(*ends, paper.exact(clustered_weights(release))))
        cuts, trace, labels = paper.dbmstclu(n, weighted)
        assert release.clustering.cuts.edge_ids.tolist() == [edges[cut] for cut in cuts]
        assert model.labels_.tolist() == by_size(np.array(labels)).tolist()
        assert model.dbcvi_ == pytest.approx(float(trace[-1]))

    def test_the_tree_is_drawn_with_the_published_exponent(self):
        """Chi-square on triangles: the paper's exponent is accepted, twice and half are not."""
        copies, exponent, weights = 1000, 1.5, [0.1, 0.5, 1.0]
        graph = copies_of_a_triangle(copies, weights)
        epsilon = (
            2 * 4 * MU * (2 * copies) * exponent
        )  # so that (epsilon / 2) / (4 mu k) = exponent
        found: Counter[tuple[int, ...]] = Counter()
        for _ in range(4):
            model = PTClust(
                epsilon=epsilon, sensitivity=Sensitivity(linf=MU), mechanism="pamst",
                calibration="published",
            )  # fmt: skip
            found.update(trees_of_triangles(quietly(model, graph).release_.tree.edge_ids, copies))
        for factor in (0.5, 1.0, 2.0):
            exact = pamst_distribution(3, triangle(weights), factor * exponent)
            assert (p_value(found, exact) > ALPHA) == (factor == 1.0)

    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    @pytest.mark.parametrize(
        ("sensitivity", "of_tree", "of_weights"),
        [
            (Sensitivity(linf=MU), 1 / 4, 39 / 2),  # section 4: epsilon / 4 + (n - 1) epsilon / 2
            (Sensitivity(l1=MU), 1 / 8, 1 / 2),
        ],
    )
    def test_the_statement_carries_the_true_epsilon(
        self, epsilon, sensitivity, of_tree, of_weights
    ):
        model = PTClust(
            epsilon=epsilon, sensitivity=sensitivity, mechanism="pamst", calibration="published",
            privacy_unit="one patient",
        )  # fmt: skip
        with pytest.warns(PrivacyWarning) as caught:
            model.fit(planted())
        statement = model.release_.statement
        true = (of_tree + of_weights) * epsilon
        assert statement.epsilon == pytest.approx(true, rel=1e-6)
        assert statement.epsilon >= true * (1 - 1e-12)
        assert statement.requested_epsilon == epsilon
        assert statement.calibration == "published"
        assert (statement.variant, statement.delta, statement.rho) == ("pure", 0.0, None)
        tree, weights = statement.mechanisms
        assert tree.share == pytest.approx(of_tree * epsilon, rel=1e-6)
        assert weights.share == pytest.approx(of_weights * epsilon, rel=1e-6)
        (warning,) = (each for each in caught if "printed scales" in str(each.message))
        assert f"epsilon = {epsilon:g}" in str(warning.message)
        assert f"epsilon = {true:.6g}" in str(warning.message)
        assert f"{epsilon:g}" in statement.to_text()

    def test_a_warning_made_an_error_spends_nothing(self, spending):
        model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=MU), calibration="published")
        with pytest.raises(PrivacyWarning):  # warnings are errors here
            model.fit(planted())
        assert spending == []


def triangle(weights):
    return [(0, 1, weights[0]), (1, 2, weights[1]), (2, 0, weights[2])]


def copies_of_a_triangle(copies, weights) -> Graph:
    offset = np.repeat(np.arange(copies) * 3, 3)
    ends = np.tile([0, 0, 1], copies) + offset, np.tile([1, 2, 2], copies) + offset
    return Graph(*ends, np.tile(weights, copies))


def trees_of_triangles(edge_ids, copies) -> list[tuple[int, ...]]:
    copy, edge = np.divmod(edge_ids.reshape(copies, 2), 3)
    assert (copy == np.arange(copies)[:, None]).all()
    return [tuple(pair) for pair in edge.tolist()]


def p_value(found, exact) -> float:
    n = sum(found.values())
    trees = sorted(exact)
    assert set(found) <= set(trees)
    total = math.fsum(exact.values())
    assert total == pytest.approx(1, abs=1e-5)
    expected = [n * exact[t] / total for t in trees]
    return float(stats.chisquare([found[t] for t in trees], expected).pvalue)


class TestNoise:
    """Released minus true weights, with the noise that is really released."""

    n_nodes = 4001

    def graph(self) -> Graph:
        random = np.random.default_rng(0)
        n = self.n_nodes
        ring = np.arange(n), (np.arange(n) + 1) % n
        return Graph(*ring, random.uniform(0, 1, n))

    @pytest.mark.parametrize(
        "options",
        [
            {"mechanism": "pamst", "split": 0.25},
            {"mechanism": "kruskal", "split": 0.75},
            {"mechanism": "pamst", "delta": 1e-6, "split": 0.5},
            {"mechanism": "kruskal", "delta": 1e-6, "split": 0.25},
            {"mechanism": "laplace"},
            {"mechanism": "cube"},
            {"mechanism": "laplace", "sensitivity": Sensitivity(l1=MU)},
            {"mechanism": "gaussian", "delta": 1e-6},
            {
                "mechanism": "gaussian",
                "delta": 1e-6,
                "sensitivity": Sensitivity(l1=4 * MU, linf=MU),
            },
            {"mechanism": "pamst", "calibration": "published"},
        ],
        ids=str,
    )
    def test_follows_the_claimed_scale_and_no_other(self, options):
        graph, epsilon = self.graph(), 2.0
        given = {"sensitivity": Sensitivity(linf=MU)} | options
        model = quietly(PTClust(epsilon=epsilon, **given), graph)
        release = model.release_
        if options["mechanism"] in (
            "laplace",
            "gaussian",
            "cube",
        ):  # the tree is chosen by the noise: take all
            noise = release.noisy_weights - graph.weights
            assert len(noise) == self.n_nodes
        else:
            noise = release.tree.weights - graph.weights[release.tree.edge_ids]
            assert len(noise) == self.n_nodes - 1
        law, scale = self.claimed(epsilon, **given)
        width = len(noise) + 1 if law == "uniform" else 1  # cube noise: about its half-width
        stated = release.statement.mechanisms[-1].scale * width
        if options["mechanism"] in ("pamst", "kruskal") and "delta" in options:
            assert 0.9 * scale < stated < scale  # the joint curve, below zCDP
            scale = stated
        assert stated == pytest.approx(scale, rel=4e-6)
        if law == "uniform":
            assert abs(np.abs(noise).max() / scale - 1) < 7 / math.sqrt(len(noise))
            scale = np.abs(noise).max()
        for factor in (0.7, 1.0, 1.3):
            accepted = stats.kstest(np.abs(noise) / (factor * scale), law).pvalue > ALPHA
            assert accepted == (factor == 1.0)
        assert stats.binomtest(int((noise > 0).sum()), len(noise)).pvalue > ALPHA

    def claimed(self, epsilon, *, mechanism, sensitivity, split=0.5, delta=0, calibration="sound"):
        """Section 4, from the budget to the law of the absolute noise and its scale."""
        k = self.n_nodes - 1 if mechanism in ("pamst", "kruskal") else self.n_nodes
        alone = mechanism in ("laplace", "gaussian", "cube")
        share = 1.0 if alone else 1 - split
        if calibration == "published":
            return "expon", 2 * MU / epsilon
        if delta == 0:
            if mechanism != "laplace":
                return "uniform", (k + 1) * MU / (share * epsilon)
            return "expon", (sensitivity.l1 or k * MU) / (share * epsilon)
        rho = share * float(Budget.approximate(epsilon, delta).to_zcdp().rho)
        l2 = 2 * MU if sensitivity.l1 else math.sqrt(k) * MU  # sqrt(l1 linf) = 2 mu
        return "halfnorm", l2 / (largest_mu(epsilon, delta) if alone else math.sqrt(2 * rho))

    def test_noise_is_independent_of_the_tree_and_new_for_every_weight(self):
        graph = self.graph()
        released = [
            PTClust(epsilon=2.0, sensitivity=Sensitivity(linf=MU), mechanism="laplace").fit(graph)
            for _ in range(2)
        ]
        one, two = (model.release_.noisy_weights - graph.weights for model in released)
        assert abs(np.corrcoef(one, two)[0, 1]) < 0.1
        assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.1
        assert len(np.unique(one)) == len(one)

    def test_perturbed_trees_are_those_of_the_noisy_graph(self):
        """On triangles the edge left out is the heaviest after noise: an integral."""
        copies, weights, scale = 1000, [0.0, 0.5, 1.0], 0.6
        graph = copies_of_a_triangle(copies, weights)
        model = PTClust(epsilon=1.0, sensitivity=Sensitivity(l1=scale), mechanism="laplace")
        found: Counter[tuple[int, ...]] = Counter()
        for _ in range(4):
            found.update(trees_of_triangles(model.fit(graph).release_.tree.edge_ids, copies))
        for factor in (0.7, 1.0, 1.3):
            exact = {
                tuple(sorted({0, 1, 2} - {i})): heaviest(i, weights, factor * scale)
                for i in range(3)
            }
            assert (p_value(found, exact) > ALPHA) == (factor == 1.0)


def heaviest(i, weights, scale) -> float:
    """The probability that weight i is the largest after Laplace noise."""

    def density(x):
        others = [stats.laplace.cdf(x, w, scale) for j, w in enumerate(weights) if j != i]
        return stats.laplace.pdf(x, weights[i], scale) * math.prod(others)

    return float(integrate.quad(density, -12, 12, points=weights, limit=200)[0])


class TestStatement:
    @pytest.mark.parametrize("delta", [0, 1e-6])
    @pytest.mark.parametrize("mechanism", NAMES)
    @pytest.mark.parametrize("split", [Fraction(1, 3), 0.9])
    def test_shares_add_up_and_scales_are_those_of_the_plan(self, mechanism, delta, split):
        if (mechanism, delta) == ("gaussian", 0):
            return
        model = PTClust(
            epsilon=0.7,
            delta=delta,
            sensitivity=Sensitivity(linf=1e-4),
            mechanism=mechanism,
            split=split,
        ).fit(planted())
        statement, chosen = model.release_.statement, model.plan_.chosen
        assert statement.private
        assert statement.epsilon == 0.7
        pure = delta == 0 or mechanism in ("laplace", "cube")
        assert statement.delta == (0 if pure else delta)
        assert statement.variant == ("pure" if pure else "approximate")
        total = statement.epsilon if pure else statement.rho
        assert all(use.share_of == ("epsilon" if pure else "rho") for use in statement.mechanisms)
        assert sum(use.share for use in statement.mechanisms) == pytest.approx(total, rel=1e-12)
        if not pure:  # by the curve of what is spent, not by that of its rho
            assert statement.rho >= Budget.approximate(0.7, delta).to_zcdp().rho
        *tree, weights = statement.mechanisms
        assert weights.scale == chosen.weights.scale
        assert weights.parameters["n_values"] == chosen.weights.n_values
        assert weights.noise.lower() == chosen.weights.distribution
        assert len(tree) == (mechanism in ("pamst", "kruskal"))
        for use in tree:
            assert use.parameters == {"n_steps": 39, "exponent": chosen.tree.exponent}
            assert use.scale == 1 / chosen.tree.exponent
            assert use.share == pytest.approx(float(split) * total, rel=1e-12)
            assert statement.numerical_slack == chosen.tree.slack > 0

    def test_says_everything_that_a_privacy_officer_asks_for(self):
        model = PTClust(
            epsilon=1, delta=1e-6, sensitivity=Sensitivity(l1=0.5, linf=1e-4), mechanism="kruskal",
            privacy_unit="one patient", clip=(0, 2), min_cluster_size=2, clusterer="dbmstclu",
        ).fit(planted())  # fmt: skip
        said = model.release_.statement.to_dict()
        assert said["schema_version"] == 3
        assert (said["kind"], said["merge"], said["clip"]) == ("distance", None, [0.0, 2.0])
        assert said["taken_on_trust"]
        assert said["library_version"] == ptclust.__version__
        for field in (
            "id", "created", "variant", "epsilon", "delta", "rho", "neighbours", "protected",
            "not_protected", "mechanisms", "composition_rule", "composition", "post_processing",
            "randomness", "numerical_slack", "numerical_slack_words", "caveats", "sentence",
        ):  # fmt: skip
            assert said[field], field
        assert said["sensitivity"] == {"l1": 0.5, "l2": None, "linf": 1e-4}
        assert said["privacy_unit"] == "one patient"
        assert "one patient" in model.release_.statement.to_text()
        assert "weights" in " ".join(said["protected"])
        for word in ("topology", "names", "components"):
            assert word in " ".join(said["not_protected"])
        assert "0.0001 on every edge (linf)" in said["neighbours"]
        assert "public bounds 0 and 2" in model.release_.statement.to_text()
        assert "fewer than 2" in " ".join(said["post_processing"])
        assert "shifted" in " ".join(said["post_processing"])
        assert "random_state" not in str(said)
        assert "seed" not in str(said)

    def test_a_seed_is_never_part_of_it(self):
        model = PTClust(**TINY, random_state=918273645).fit(path_graph())
        assert model.release_.statement.randomness == "reproducible"
        assert "918273645" not in str(model.release_.statement.to_dict())


class TestSmallAndDisconnected:
    @pytest.mark.parametrize("delta", [0, 1e-6])
    @pytest.mark.parametrize("mechanism", ["auto", *NAMES])
    @pytest.mark.parametrize("n_nodes", [0, 1, 2])
    def test_the_smallest_graphs(self, n_nodes, mechanism, delta, tmp_path):
        if (mechanism, delta) == ("gaussian", 0):
            return
        graph = path_graph([0.5] * max(n_nodes - 1, 0), n_nodes=n_nodes)
        model = PTClust(**TINY, mechanism=mechanism, delta=delta).fit(graph)
        assert model.labels_.tolist() == list(range(n_nodes))  # the first cut always happens
        assert model.release_.tree.n_edges == max(n_nodes - 1, 0)
        assert len(model.release_.statement.mechanisms) <= 2 * (n_nodes > 1)
        model.release_.save(tmp_path / "release.json")
        loaded = ptclust.Release.load(tmp_path / "release.json")
        assert loaded.labels.tolist() == model.labels_.tolist()

    @pytest.mark.parametrize("mechanism", NAMES)
    def test_every_component_is_clustered_by_itself(self, mechanism):
        weights = np.array(PATH + PATH)
        sources = np.r_[0:7, 8:15]
        graph = Graph(sources, sources + 1, weights, n_nodes=17)  # two paths, and a node alone
        model = PTClust(**TINY, **choices(mechanism)).fit(graph)
        assert model.labels_.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [4]
        assert model.plan_.n_components == 3
        assert model.release_.tree.n_edges == 14
        assert model.release_.statement.mechanisms[-1].parameters["n_values"] == 14
        assert quietly(PTClust(**TINY, calibration="published"), graph).n_clusters_ == 5


class TestNormalisation:
    def test_constants_are_used_as_given(self):
        model = PTClust(**TINY, shift=0.5, scale=np.float64(2.0)).fit(path_graph())
        release = model.release_
        assert (release.clustering.shift, release.clustering.scale) == (0.5, 2.0)
        assert clustered_weights(release) == pytest.approx((np.array(PATH) + 0.5) / 2, abs=1e-4)
        assert any("0.5 (given)" in words for words in release.statement.post_processing)

    def test_defaults_follow_from_the_released_weights_alone(self):
        """Two graphs, and the same released weights: the same shift and scale."""
        model = PTClust(
            epsilon=1, sensitivity=Sensitivity(linf=0.1), mechanism="laplace", random_state=1
        )
        for graph in (planted(), path_graph()):
            release = model.fit(graph).release_
            noisy = release.tree.weights
            noise = model.plan_.chosen.weights.standard_deviation
            assert release.clustering.shift == pytest.approx(max(0.0, noise - noisy.min()))
            assert release.clustering.scale == pytest.approx(noisy.max() + release.clustering.shift)
            assert clustered_weights(release).max() == 1

    def test_the_scale_changes_no_cluster(self):
        one, two = (
            PTClust(**TINY, scale=scale, shift=0.1).fit(planted(30, 1)) for scale in (None, 50)
        )
        assert one.labels_.tolist() == two.labels_.tolist()

    def test_weights_far_below_zero_are_lifted_above_it(self):
        """Where the noise is lost in rounding, one step of the floats must do."""
        graph = path_graph([-1e18, 1.0, 2.0, 3.0])
        release = PTClust(epsilon=1, sensitivity=Sensitivity(l1=1e-3)).fit(graph).release_
        assert clustered_weights(release).min() > 0
        assert clustered_weights(release).max() <= 1

    @pytest.mark.parametrize("options", [{"shift": -0.5}, {"scale": 0.5}])
    def test_constants_that_do_not_suffice_are_named(self, options):
        (name,) = options
        with pytest.raises(UsageError, match=f"{name} out, or give at least"):
            PTClust(**TINY, **options).fit(path_graph())


class TestPublicBounds:
    @pytest.mark.parametrize("clip", [(0.2, 1.0), (0.0, 0.8), (0.15, 0.3), (5.0, 6.0)])
    def test_weights_outside_the_bounds_are_moved_and_nothing_is_said(self, clip):
        graph = path_graph([0.123456789, 0.2, 0.987654321])
        release = PTClust(**TINY, clip=clip).fit(graph).release_
        assert release.tree.weights == pytest.approx(np.clip(graph.weights, *clip), abs=1e-4)
        assert release.statement.clip == clip
        assert not any("moved" in caveat for caveat in release.statement.caveats)

    @pytest.mark.parametrize(("bound", "norm"), [(2**53 + 1, "l1"), (1e6, "linf"), (-1e6, "l2")])
    def test_bounds_where_floats_are_too_far_apart_are_refused(self, bound, norm, spending):
        change = {"l1": 1.0, "linf": 1e-12, "l2": 1e-12}[norm]
        model = PTClust(
            epsilon=1, sensitivity=Sensitivity(**{norm: change}), clip=sorted((0.0, bound))
        )
        with pytest.raises(UsageError, match=r"floats lie so far apart .* give clip= within"):
            model.fit(path_graph())
        assert spending == []

    @pytest.mark.parametrize("mechanism", NAMES)
    def test_without_bounds_weights_end_where_floats_are_too_far_apart(self, mechanism):
        """2^53 and 2^53 + 1 had disjoint outputs; now both are as far as one unit can be told."""
        options = {"epsilon": 1, "sensitivity": Sensitivity(l1=1.0), "random_state": 3}
        released = [
            PTClust(**options, **choices(mechanism)).fit(path_graph([2**53 + more, 1, 2, 3]))
            for more in (0, 1, 2)
        ]
        first, *others = (model.release_.noisy_weights.tolist() for model in released)
        assert all(other == first for other in others)
        said = " ".join(released[0].release_.statement.caveats)
        assert "weights beyond 3.52e+13 in size were moved to that bound" in said

    def test_weights_on_the_bounds_are_inside(self):
        model = PTClust(**TINY, clip=(0.1, 0.9)).fit(path_graph())
        assert model.plan_.request.clip == (0.1, 0.9)

    @pytest.mark.parametrize("mechanism", NAMES)
    def test_clipping_moves_weights_to_the_nearer_bound(self, mechanism):
        graph = path_graph([-5.0, 0.3, 0.5, 9.0])
        for clip in ((0.2, 0.6), np.array([0.2, 0.6])):
            model = PTClust(**TINY, **choices(mechanism), clip=clip).fit(graph)
            assert model.release_.tree.weights == pytest.approx([0.2, 0.3, 0.5, 0.6], abs=1e-4)
            assert model.plan_.request.clip == (0.2, 0.6)
        assert graph.weights.tolist() == [-5.0, 0.3, 0.5, 9.0]

    def test_noise_that_drowns_the_range_warns_and_is_stated(self):
        model = PTClust(epsilon=0.01, sensitivity=Sensitivity(linf=MU), clip=(0, 1))
        with pytest.warns(PrivacyWarning, match="larger than the whole range"):
            model.fit(planted(8))
        assert any("larger than" in caveat for caveat in model.release_.statement.caveats)

    def test_a_plan_for_another_topology_is_refused(self, spending):
        for other in (
            Topology(range(8), range(1, 9)),
            Topology([*range(7), 0], [*range(1, 8), 7]),
            Topology([*range(6), 0], [*range(1, 7), 6], n_nodes=8),
        ):
            made = plan(other, **TINY)
            with pytest.raises(InputError, match="plan again"):
                publish(path_graph(), ReleaseRequest.of(made.request), plan=made)
        assert spending == []


def test_spending_is_noticed(spending):
    PTClust(**TINY).fit(path_graph())
    assert spending == ["spent"]


@pytest.mark.parametrize(
    "options",
    [
        *({"epsilon": value} for value in (0, -1.0, math.nan, math.inf, 5e-324, "much", None)),
        *({"delta": value} for value in (1, 2.0, -1e-9, math.nan, 5e-324)),
        *({"split": value} for value in (0, 1, -0.1, math.nan, "half")),
        *({"split": 2, "mechanism": mechanism} for mechanism in ("laplace", "pamst")),
        *({"sensitivity": value} for value in (None, 0.1, {"linf": 0.1})),
        *({"mechanism": value} for value in ("prim", None)),
        {"mechanism": "gaussian"},
        {"calibration": "tight"},
        {"calibration": "published", "delta": 1e-6},
        *({"min_cluster_size": value} for value in (0, -1, 2.5, "two", None, True)),
        *({"shift": value} for value in (math.nan, math.inf, "much", True)),
        *({"scale": value} for value in (0, -1.0, math.nan, "much")),
        *({"clip": value} for value in ((1, 0), (0, math.inf), (math.nan, 1), (0,), (), "ab", 3)),
        *({"privacy_unit": value} for value in ("two\nlines", 7)),
        *({"random_state": value} for value in (-1, 0.5, "seed", True)),
    ],
    ids=str,
)
def test_wrong_parameters_spend_nothing(options, spending):
    with pytest.raises((UsageError, InputError)) as caught:
        PTClust(**(TINY | options)).fit(path_graph())
    assert spending == []
    assert len(str(caught.value).split()) >= 5, "a sentence, not a code"


def test_wrong_bounds_are_refused_also_without_the_estimator(spending):
    with pytest.raises(UsageError, match="smaller first"):
        plan(path_graph().topology, **TINY, clip=(1.0, 0.0))
    assert spending == []


@pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
def test_a_declared_range_keeps_weights_apart_however_tiny_the_sensitivity(mechanism):
    graph = ptclust.Graph([0, 1, 2, 0, 1], [1, 2, 3, 2, 3], [0.1, 0.2, 0.3, 0.9, 0.8])
    exact = ptclust.minimum_spanning_tree(graph)
    model = ptclust.PTClust(
        epsilon=1.0,
        sensitivity=ptclust.Sensitivity(linf=1e-12),
        mechanism=mechanism,
        clip=(0.0, 1.0),
    ).fit(graph)
    assert model.plan_.chosen.tree is not None
    assert model.plan_.chosen.tree.largest_weight >= 1.0
    assert model.release_.tree.edge_ids.tolist() == exact.edge_ids.tolist()
