"""A mechanism, a clusterer and a noise from outside the package go wherever those of ptclust go."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from ptclust import Graph, PTClust, Release, Sensitivity, plan, private_spanning_tree
from ptclust.audit.suite import CONTROLS, DRAWN, EXACT, EXACT_NOISE, WHOLE, Effort, audits
from ptclust.clustering import CLUSTERERS, Clusterer, Clustering, Cost, Cuts
from ptclust.errors import FileError, PtclustError, UsageError
from ptclust.mechanisms import MECHANISMS, Perturbation
from ptclust.mechanisms.exponential import SpanningTreeMechanism
from ptclust.mechanisms.laws import TreeLaw
from ptclust.privacy.noise import DISTRIBUTIONS, LAPLACE, Distribution

KNOWN_MECHANISMS = "kruskal, pamst, gaussian, laplace, cube"
KNOWN_CLUSTERERS = "communities, levels, dbmstclu"


class FromFirstNode(SpanningTreeMechanism):
    """Prim's order from the first node of a component, one Exponential mechanism an edge."""

    name = "toy"
    title = "Exponential mechanism from the first node"
    reference = "tests/test_extension.py"

    def draw_edges(self, graph, exponent, stream):
        reached: set[int] = set()
        chosen: list[int] = []
        edges = list(zip(graph.sources.tolist(), graph.targets.tolist()))
        for root in range(graph.n_nodes):
            if root in reached:
                continue
            reached.add(root)
            while leaving := [
                i for i, ends in enumerate(edges) if len(reached.intersection(ends)) == 1
            ]:
                energies = exponent * graph.weights[leaving]
                upto = np.cumsum(np.exp(energies.min() - energies))
                uniform = math.ldexp(float(stream.words(1)[0]), -64)
                edge = leaving[min(np.searchsorted(upto, uniform * upto[-1]), len(leaving) - 1)]
                chosen.append(edge)
                reached.update(edges[edge])
        return np.array(sorted(chosen), dtype=np.int64)

    def laws(self, graph):
        return (TreeLaw("Toy", graph, (0,)),)


class Careless(FromFirstNode):
    """The same with an exponent that is a tenth too large."""

    name = "careless"
    title = "a mechanism that spends more than it says"

    def calibrate(self, *arguments: Any, **options: Any):
        made = super().calibrate(*arguments, **options)
        return replace(made, tree=replace(made.tree, exponent=1.1 * made.tree.exponent))

    def laws(self, graph):
        return (TreeLaw("Careless", graph, (0,)),)


class Unexplained(FromFirstNode):
    """A mechanism whose law nobody knows."""

    name = "unexplained"

    def laws(self, graph):
        return ()


@dataclass(frozen=True)
class HeaviestEdges(Clusterer):
    """Cuts the ``k`` heaviest edges of the tree."""

    name: ClassVar[str] = "toy"
    description: ClassVar[str] = "the heaviest edges of the tree were cut"
    needs: ClassVar[Any] = "tree"
    cost: ClassVar[Cost] = Cost(1_000, 10, 1.0)

    k: int = 1

    def cluster(self, published):
        tree = published.tree
        cut = np.argsort(-tree.weights, kind="stable")[: self.k]
        piece = list(range(tree.n_nodes))
        for i, (a, b) in enumerate(zip(tree.sources.tolist(), tree.targets.tolist())):
            if i not in cut:
                piece = [piece[a] if each == piece[b] else each for each in piece]
        number = {each: i for i, each in enumerate(dict.fromkeys(piece))}
        labels = np.array([number[each] for each in piece])
        return Clustering(labels=labels, cuts=Cuts(tree.edge_ids[cut]))


class Wide(Distribution):
    """Laplace noise of twice the scale that would do."""

    name, title, mechanism = "wide", "Wide Laplace", "Wide Laplace mechanism"
    reference, norm, unit = "tests/test_extension.py", "l1", "epsilon"

    def loss(self, ratio):
        return 2 * ratio

    def calibrate(self, sensitivity, n_values, amount):
        made = LAPLACE.calibrate(sensitivity, n_values, Fraction(amount) / 2)
        return replace(made, distribution=self.name)

    def deviation(self, n_values):
        return LAPLACE.deviation(n_values)

    def probability_within(self, n_values, size):
        return LAPLACE.probability_within(n_values, size)

    def largest(self, n_values, gamma):
        return LAPLACE.largest(n_values, gamma)

    def mean_largest(self, n_values):
        return LAPLACE.mean_largest(n_values)

    def log_ratio(self, here, there):
        return LAPLACE.log_ratio(here, there)

    def sampler(self, noise, shared):
        return LAPLACE.sampler(noise, shared)

    def simulate(self, generator, n_values):
        return LAPLACE.simulate(generator, n_values)


class Narrow(Wide):
    """A noise that spends more than it says."""

    name, mechanism = "narrow", "Narrow mechanism"

    def calibrate(self, sensitivity, n_values, amount):
        made = super().calibrate(sensitivity, n_values, amount)
        return replace(made, distribution=self.name, scale=made.scale * 0.45)


def registered(registry, member):
    registry.register(member)
    yield member
    if member.name in registry.names:
        registry.unregister(member.name)


@pytest.fixture
def toy_mechanism():
    yield from registered(MECHANISMS, FromFirstNode())


@pytest.fixture
def toy_noise():
    for law in registered(DISTRIBUTIONS, Wide()):
        yield from registered(MECHANISMS, Perturbation(law))


@pytest.fixture
def toy_clusterer():
    yield from registered(CLUSTERERS, HeaviestEdges())


SENSITIVITY = Sensitivity(linf=1e-6)
TOY: dict[str, Any] = {
    "epsilon": 1.0,
    "sensitivity": SENSITIVITY,
    "mechanism": "toy",
    "clusterer": "toy",
}
LABELS = [0, 0, 0, 0, 1, 1, 1, 1]
ROWS = [(i, i + 1, 0.9 if i == 3 else 0.1) for i in range(7)] + [(0, 2, 0.5), (5, 7, 0.5)]


PATH = [0, 2, 3, 4, 5, 6, 8]  # ids of the path, in canonical order


def two_paths() -> Graph:
    return Graph(*map(list, zip(*ROWS)))


@pytest.mark.usefixtures("toy_mechanism", "toy_clusterer")
class TestWithBoth:
    def test_plan(self):
        made = plan(two_paths().topology, **TOY)
        assert made.chosen.mechanism == "toy"
        assert made.choose_clusterer().name == "toy"
        assert "> toy " in made.to_text()
        document = made.to_dict()
        assert [each["mechanism"] for each in document["mechanisms"]] == ["toy"]
        assert (document["chosen"], document["clusterer"]) == ("toy", "toy")
        every = plan(two_paths().topology, epsilon=1, sensitivity=SENSITIVITY)
        assert "  toy " in every.to_text()
        names = [each["mechanism"] for each in every.to_dict()["mechanisms"]]
        assert names == ["kruskal", "pamst", "laplace", "cube", "toy"]

    @pytest.mark.parametrize("delta", [0, 1e-6])
    def test_release_and_file(self, tmp_path, delta):
        graph = two_paths()
        model = PTClust(**TOY, delta=delta).fit(graph)
        assert model.labels_.tolist() == LABELS
        release = model.release_
        assert release.published.mechanism == release.clusterer == "toy"
        assert release.tree.edge_ids.tolist() == PATH
        assert release.tree.weights == pytest.approx(graph.weights[PATH], abs=1e-3)
        assert release.clustering.cuts.edge_ids.tolist() == [4]
        release.save(tmp_path / "release.json")
        loaded = Release.load(tmp_path / "release.json")
        assert loaded.published.mechanism == loaded.clusterer == "toy"
        assert loaded.labels.tolist() == LABELS
        assert loaded.statement == release.statement
        again = loaded.recluster("toy")
        assert again.labels.tolist() == LABELS
        assert again.dbcvi == loaded.dbcvi
        assert loaded.recluster("dbmstclu").labels.tolist() == LABELS
        assert loaded.recluster("toy", min_cluster_size=5).n_unclustered == 8

    def test_statement(self):
        statement = PTClust(**TOY).fit(two_paths()).release_.statement
        tree, weights = statement.mechanisms
        assert (tree.name, tree.reference) == (FromFirstNode.title, FromFirstNode.reference)
        assert tree.share + weights.share == pytest.approx(1.0)
        assert FromFirstNode.title in statement.to_text()
        assert FromFirstNode.title in statement.to_registry_yaml()
        assert FromFirstNode.reference in statement.to_registry_yaml()
        assert HeaviestEdges.description in statement.post_processing

    def test_a_tree_alone(self):
        tree = private_spanning_tree(
            two_paths(), mechanism="toy", epsilon=1, sensitivity=SENSITIVITY
        )
        assert tree.edge_ids.tolist() == PATH

    def test_command_line(self, run):
        rows = "".join(f"{a},{b},{weight}\n" for a, b, weight in ROWS)
        Path("edges.csv").write_text("source,target,distance\n" + rows)
        budget = ["--epsilon", "1", "--linf", "1e-6"]
        unit = ["--privacy-unit", "one patient", "--topology", "public"]
        code, out, _ = run("plan", "edges.csv", *budget)
        assert code == 0
        assert "  toy " in out
        document = json.loads(run("plan", "edges.csv", *budget, "--json")[1])
        assert "toy" in [each["mechanism"] for each in document["mechanisms"]]
        chosen = ["--mechanism", "toy", "--clusterer", "toy"]
        code, _, err = run("cluster", "edges.csv", *budget, *unit, *chosen, "-o", "release.json")
        assert code == 0, err
        release = Release.load("release.json")
        assert release.labels.tolist() == LABELS
        assert (release.published.mechanism, release.clusterer) == ("toy", "toy")
        code, _, err = run("recluster", "release.json", "-o", "other.json", "--clusterer", "toy")
        assert code == 0, err
        assert "by toy" in err
        assert Release.load("other.json").labels.tolist() == LABELS

        MECHANISMS.unregister("toy")
        CLUSTERERS.unregister("toy")
        again = ["edges.csv", *budget, *unit, "-o", "again.json"]
        for command, expected, known in (
            (["plan", "edges.csv", *budget, *chosen], 2, KNOWN_MECHANISMS),
            (["cluster", *again, "--mechanism", "toy"], 2, KNOWN_MECHANISMS),
            (["cluster", *again, "--clusterer", "toy"], 2, KNOWN_CLUSTERERS),
            (["recluster", "release.json", "-o", "again.json"], 3, KNOWN_MECHANISMS),
        ):
            code, out, err = run(*command)
            assert (code, out) == (expected, "")
            assert known in err
            assert not Path("again.json").exists()

    def test_names_are_completed_by_the_shell(self):
        from ptclust.cli import _options

        assert _options._mechanisms("to") == _options._clusterers("to") == ["toy"]

    def test_names_are_taken_once(self):
        for registry, member in ((MECHANISMS, FromFirstNode()), (CLUSTERERS, HeaviestEdges())):
            with pytest.raises(UsageError, match="'toy' already"):
                registry.register(member)


class TestNoise:
    """A distribution of noise, registered from outside."""

    ASKED: ClassVar[dict[str, Any]] = {**TOY, "mechanism": "wide"}

    def test_plan_release_file_and_statement(self, toy_noise, toy_clusterer, tmp_path):
        made = plan(two_paths().topology, **self.ASKED)
        assert (made.chosen.mechanism, made.chosen.weights.distribution) == ("wide", "wide")
        assert "> wide " in made.to_text()
        release = PTClust(**self.ASKED).fit(two_paths()).release_
        assert release.labels.tolist() == LABELS
        (use,) = release.statement.mechanisms
        assert (use.name, use.noise) == (Wide.mechanism, Wide.title)
        assert Wide.mechanism in release.statement.to_text()
        release.save(tmp_path / "release.json")
        loaded = Release.load(tmp_path / "release.json")
        assert loaded.weight_noise == release.weight_noise == made.chosen.weights
        assert loaded.statement == release.statement
        MECHANISMS.unregister("wide")
        DISTRIBUTIONS.unregister("wide")
        with pytest.raises(FileError, match=r"one of .*, not 'wide'"):
            Release.load(tmp_path / "release.json")

    def test_command_line(self, toy_noise, toy_clusterer, run):
        rows = "".join(f"{a},{b},{weight}\n" for a, b, weight in ROWS)
        Path("edges.csv").write_text("source,target,distance\n" + rows)
        budget = ["--epsilon", "1", "--linf", "1e-6"]
        unit = ["--privacy-unit", "one patient", "--topology", "public"]
        chosen = ["--mechanism", "wide", "--clusterer", "toy"]
        assert "  wide " in run("plan", "edges.csv", *budget)[1]
        code, _, err = run("cluster", "edges.csv", *budget, *unit, *chosen, "-o", "release.json")
        assert code == 0, err
        assert "wide" in run("show", "release.json")[1]

    def test_audit(self, toy_noise):
        found = [each for each in findings("wide") if each.section == EXACT_NOISE]
        assert len(found) == 2
        assert {finding.verdict for finding in found} == {"stands"}
        for _ in registered(DISTRIBUTIONS, Narrow()):
            wrong = [each for each in findings("narrow") if each.section == EXACT_NOISE]
            assert {finding.verdict for finding in wrong} == {"refuted"}

    def test_opendp_does_not_draw_it(self, toy_noise, toy_clusterer):
        with pytest.raises(UsageError, match="OpenDP draws no wide noise"):
            plan(two_paths().topology, **self.ASKED, sampler="opendp")


def test_without_opendp(monkeypatch):
    """Everything but its own sampler works; that names the extra."""
    for name in [each for each in sys.modules if each.split(".")[0] == "opendp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opendp", None)
    asked = {"epsilon": 1, "sensitivity": SENSITIVITY}
    for delta in (0, 1e-6):
        made = PTClust(**asked, delta=delta, clusterer="dbmstclu").fit(two_paths())
        assert made.labels_.tolist() == LABELS
    with pytest.raises(UsageError, match=r"pip install 'ptclust\[opendp\]'"):
        plan(two_paths().topology, **asked, delta=1e-6, mechanism="gaussian", sampler="opendp")


#: So much of an audit as shows that a mechanism is looked at.
EFFORT = Effort(("K3", "triangle with a tail"), 1, ("linf",), 400, 20, 100, (False,))


def findings(title: str) -> list[Any]:
    chosen = [each for each in audits(EFFORT, 0) if each.title.startswith(title)]
    return [finding for each in chosen for finding in each.run(1e-6)]


class TestAudit:
    def test_the_claim_stands_and_its_control_is_caught(self, toy_mechanism):
        exact = findings("Toy")
        assert all(finding.as_expected for finding in exact)
        claims = [finding for finding in exact if finding.section == EXACT]
        assert {finding.setting for finding in claims} == set(EFFORT.graphs)
        assert {finding.unit for finding in claims} == {"epsilon", "rho"}
        assert max(finding.ratio for finding in claims) > 0.99  # the search gets to the claim
        assert [finding.verdict for finding in exact if finding.section == CONTROLS] == ["refuted"]
        drawn = findings("toy, ")
        assert {finding.section for finding in drawn} == {DRAWN, WHOLE, EXACT_NOISE}
        assert {finding.verdict for finding in drawn} == {"stands"}

    def test_a_calibration_that_spends_too_much_is_refuted(self):
        for _ in registered(MECHANISMS, Careless()):
            worst = {finding.neighbours: finding for finding in findings("Careless on K3")}
        assert "refuted" in {finding.verdict for finding in worst.values()}
        assert not all(finding.as_expected for finding in worst.values())

    def test_a_tree_whose_law_nobody_knows_is_not_passed_over(self):
        for _ in registered(MECHANISMS, Unexplained()):
            with pytest.raises(PtclustError, match="'unexplained' draws a tree and has no law"):
                list(audits(EFFORT, 0))

    def test_without_registration_there_is_nothing_to_audit(self):
        assert findings("Toy") == findings("toy, ") == []


class TestWithoutRegistration:
    """Each names what there is."""

    @pytest.fixture
    def release(self, toy_mechanism, toy_clusterer, tmp_path):
        """A release by both, made before they were unregistered."""
        made = PTClust(**TOY).fit(two_paths()).release_
        made.save(tmp_path / "release.json")
        bare = made.recluster("dbmstclu")
        CLUSTERERS.unregister("toy")
        MECHANISMS.unregister("toy")
        return bare

    @pytest.mark.parametrize("kind", ["mechanism", "clusterer"])
    def test_plan_and_estimator(self, kind):
        known = {"mechanism": KNOWN_MECHANISMS, "clusterer": KNOWN_CLUSTERERS}[kind]
        given: dict[str, Any] = {"epsilon": 1, "sensitivity": SENSITIVITY, kind: "toy"}
        said = f"{kind} must be one of auto, {known}, not 'toy'"
        with pytest.raises(UsageError, match=said):
            plan(two_paths().topology, **given)
        with pytest.raises(UsageError, match=said):
            PTClust(**given).fit(two_paths())

    def test_a_tree_alone(self):
        with pytest.raises(UsageError, match=f"one of {KNOWN_MECHANISMS}, not 'toy'"):
            private_spanning_tree(two_paths(), mechanism="toy", epsilon=1, sensitivity=SENSITIVITY)

    def test_recluster(self, release):
        with pytest.raises(UsageError, match=f"one of {KNOWN_MECHANISMS}, not 'toy'"):
            release.recluster()
        known = PTClust(epsilon=1, sensitivity=SENSITIVITY).fit(two_paths()).release_
        with pytest.raises(UsageError, match=f"one of auto, {KNOWN_CLUSTERERS}, not 'toy'"):
            known.recluster("toy")

    def test_a_file_of_an_unknown_mechanism(self, release, tmp_path):
        with pytest.raises(FileError, match=f"one of {KNOWN_MECHANISMS}, not 'toy'") as caught:
            Release.load(tmp_path / "release.json")
        assert str(tmp_path / "release.json") in str(caught.value)

    def test_clusters_of_an_unknown_clusterer_can_be_read(self, toy_clusterer, tmp_path):
        given = {key: value for key, value in TOY.items() if key != "mechanism"}
        PTClust(**given).fit(two_paths()).release_.save(tmp_path / "release.json")
        CLUSTERERS.unregister("toy")
        loaded = Release.load(tmp_path / "release.json")
        assert loaded.clusterer == "toy"
        assert loaded.recluster().clusterer in CLUSTERERS.names
