from __future__ import annotations

import ast
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ptclust
from ptclust import Sensitivity, cli
from ptclust._statistics import seed_of
from ptclust.audit import AuditReport, Effort, Finding, controls, run_audit, suite
from ptclust.audit.controls import (
    UnsafeNumpyNoise,
    unsafe_half_width,
    unsafe_stream,
    unsafe_too_little,
)
from ptclust.audit.mechanisms import (
    NoiseAlone,
    Pair,
    ValuesRelease,
    WholeRelease,
    make_graph,
    neighbours,
)
from ptclust.audit.statistical import epsilon_bound, rho_bound
from ptclust.errors import PtclustError
from ptclust.mechanisms import MECHANISMS, Kruskal, exponential
from ptclust.mechanisms.exponential import calibrate_tree
from ptclust.mechanisms.laws import GRAPHS
from ptclust.planning import plan
from ptclust.privacy.noise import cube_noise, gaussian_noise, laplace_noise

UNIT = Sensitivity(l1=1.0, l2=1.0, linf=1.0)
PAIR = Pair(np.array([0.0]), np.array([1.0]))
ERROR = 1e-6
TINY = Effort(("K3",), 1, (), 400, 60, 20_000, ())
FINDING = Finding(
    "S", "Laplace", "K3", "linf <= 1", "epsilon", 1.0, 0.0, 0.5, "tree (0, 1)", "stands"
)


def bound(tester, draw, count, seed=0):
    draws = [draw(weights, count, seed_of(seed, side)) for side, weights in enumerate(PAIR)]
    return tester(*draws, ERROR)


def kept(*titles):
    """Audits whose titles begin so, of a tiny run."""
    return [a for a in suite.audits(TINY, 0) if a.title.startswith(titles)]


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)]
)
def test_five_per_cent_too_little_noise_is_caught_and_the_right_amount_is_not(seed):
    laplace, gaussian = laplace_noise(UNIT, 1, 2), gaussian_noise(UNIT, 1, 1)
    for tester, noise, claim in ((epsilon_bound, laplace, 2), (rho_bound, gaussian, 1)):
        right = bound(tester, NoiseAlone(noise, PAIR, secure=False).draw, 1_000_000, seed).value
        assert 0.95 * claim < right <= claim
        less = unsafe_too_little(noise, PAIR, secure=False).draw
        assert bound(tester, less, 1_000_000, seed).value > claim


def test_secure_noise_is_no_less_than_claimed_and_not_far_more():
    laplace, gaussian = laplace_noise(UNIT, 1, 2), gaussian_noise(UNIT, 1, 1)
    assert 1.8 < bound(epsilon_bound, NoiseAlone(laplace, PAIR).draw, 60_000).value <= 2
    assert 0.8 < bound(rho_bound, NoiseAlone(gaussian, PAIR).draw, 60_000).value <= 1


@pytest.mark.long
def test_five_per_cent_too_little_secure_noise_is_caught():
    laplace, gaussian = laplace_noise(UNIT, 1, 2), gaussian_noise(UNIT, 1, 1)
    assert (
        bound(epsilon_bound, unsafe_too_little(laplace, PAIR, secure=True).draw, 1_000_000).value
        > 2
    )
    assert bound(rho_bound, unsafe_too_little(gaussian, PAIR, secure=True).draw, 500_000).value > 1


def test_noise_in_floats_is_caught_by_its_digits_and_lattice_noise_is_not():
    noise = laplace_noise(UNIT, 1, 1)
    caught = bound(epsilon_bound, UnsafeNumpyNoise(noise, PAIR).draw, 10_000)
    assert caught.value > 2
    assert caught.witness.startswith("digits")
    assert bound(epsilon_bound, NoiseAlone(noise, PAIR).draw, 10_000).value <= 1


def test_a_stream_used_twice_is_caught_and_two_streams_are_not():
    noises = laplace_noise(UNIT, 1, 2), laplace_noise(UNIT, 1, 1)
    assert bound(epsilon_bound, partial(unsafe_stream, noises), 3000).value > 3
    apart = partial(unsafe_stream, noises, reused=False)
    assert bound(epsilon_bound, apart, 3000).value <= 3


def without_half_width(*arguments):
    """What a release publishes of the same draws."""
    return {"value": unsafe_half_width(*arguments)["value"]}


def test_a_published_half_width_is_caught_and_values_alone_are_not():
    noise = cube_noise(UNIT, 1, 2)
    caught = bound(epsilon_bound, partial(unsafe_half_width, noise), 3000)
    assert caught.value > 4
    assert caught.witness.startswith("least weight that explains it")
    assert 1 < bound(epsilon_bound, partial(without_half_width, noise), 3000).value <= 2


@pytest.mark.parametrize(
    ("title", "witness"),
    [
        ("PTClust with the paper's scales", "likelihood ratio"),
        ("whole release, tau from private weights", "shift"),
    ],
)
def test_broken_pipelines_are_caught_for_what_is_broken(title, witness):
    effort = replace(TINY, draws=2000, whole_draws=300)
    (audit,) = [a for a in suite.audits(effort, 0) if a.title.startswith(title)]
    (finding,) = audit.run(ERROR)
    assert (finding.verdict, finding.expected) == ("refuted", "refuted")
    assert finding.witness.startswith(witness)


def test_whole_releases_and_draws_stand():
    audits = kept(
        "pamst, Gaussian noise on the tree, linf", "laplace, Laplace noise on the graph, l1"
    )
    findings = [finding for audit in audits for finding in audit.run(ERROR)]
    assert {finding.section for finding in findings} == {suite.DRAWN, suite.WHOLE}
    assert {(f.section, f.unit) for f in findings} >= {
        (suite.DRAWN, "rho"),
        (suite.WHOLE, "epsilon"),
    }
    assert all(finding.verdict == "stands" for finding in findings)
    assert max(finding.ratio for finding in findings) > 0.2


def test_a_release_with_half_the_noise_is_refuted(monkeypatch):
    def careless(*arguments, **options):
        made = plan(*arguments, **options)
        weights = replace(made.chosen.weights, scale=made.chosen.weights.scale / 2)
        return replace(made, chosen=replace(made.chosen, weights=weights))

    monkeypatch.setattr(suite, "plan", careless)
    effort = replace(TINY, draws=4000)
    title = "laplace, Laplace noise on the graph, l1 <= 0.015625"
    audit = next(a for a in suite.audits(effort, 0) if a.title == title and a.n_bounds == 1)
    (finding,) = audit.run(ERROR)
    assert finding.section == suite.DRAWN
    assert finding.verdict == "refuted"


class Toy(Kruskal):
    """A tree mechanism from outside the package, with the law of Kruskal's order."""

    name = "toy"


class Lawless(Toy):
    """One that draws a tree and does not say how it is distributed."""

    def laws(self, graph):
        return ()


@pytest.fixture
def register():
    yield MECHANISMS.register
    MECHANISMS.unregister("toy")


def test_a_mechanism_that_is_registered_is_audited_by_its_own_law(register):
    before = {audit.title for audit in suite.audits(TINY, 0)}
    register(Toy())
    added = [audit.title for audit in suite.audits(TINY, 0) if audit.title not in before]
    least = {"l1": "Laplace", "l2": "Laplace", "linf": "Cube", "l1 <= 0.0234375, linf": "Laplace"}
    drawn = {
        f"toy, {kind} noise on the tree, {norm} <= 0.015625"
        for norm, pure in least.items()
        for kind in (pure, "Gaussian")
    }
    played = {
        f"toy, joint curve on {n} adaptive steps, then the noise, the largest change"
        for n in (3, 30, 100)
    }
    assert {*added} == drawn | played
    assert sum(title.startswith("Kruskal on K3") for title in before) == 3


def test_a_tree_mechanism_without_laws_is_refused(register):
    """Its likelihood ratio is unknown: that of another mechanism would refute nothing."""
    register(Lawless())
    with pytest.raises(PtclustError, match=r"'toy' draws a tree and has no law.*define its laws"):
        list(suite.audits(TINY, 0))
    with pytest.raises(PtclustError, match="'toy' draws a tree"):
        run_audit(TINY, "x")
    graph = GRAPHS["K4"]
    pair = neighbours(len(graph.edges), UNIT, 0.5)
    topology = make_graph(graph, pair.weights).topology
    planned = plan(topology, epsilon=1, sensitivity=UNIT, mechanism="toy")
    for kind in (ValuesRelease, WholeRelease):
        with pytest.raises(PtclustError, match="define its laws"):
            kind(graph, planned, pair)


def test_pairs_are_neighbours_at_the_end_of_the_ball():
    for relation, order in (("l1", 1), ("l2", 2), ("linf", np.inf)):
        pair = neighbours(6, Sensitivity(**{relation: 0.25}), 0.5)
        assert np.linalg.norm(pair.neighbour - pair.weights, order) == pytest.approx(0.25)


def test_the_error_is_shared_among_all_bounds_and_every_audit_is_announced(monkeypatch):
    errors, heard = [], []

    def run(error):
        errors.append(error)
        return [FINDING]

    def fake(effort, seed):
        for number in range(4):
            yield suite.Audit(f"a{number}", 2, run)

    monkeypatch.setattr(suite, "audits", fake)
    report = run_audit(TINY, "x", progress=heard.append)
    assert errors == [suite.ERROR / 8] * 4
    assert heard[0] == "Audit 1 of 4: a0"
    assert report.findings == (FINDING,) * 4


def test_every_claim_and_control_is_in_a_run():
    effort = Effort.quick()
    titles = [audit.title for audit in suite.audits(effort, 0)]
    for name in ("K3", "K4"):
        for method in ("PAMST", "PAMST, root known", "Kruskal"):
            for norm in ("l1", "l2", "linf"):
                assert f"{method} on {name}, {norm} <= 0.015625" in titles
    for release in (
        "pamst, Gaussian noise on the tree", "kruskal, Gaussian noise on the tree",
        "laplace, Laplace noise on the graph", "gaussian, Gaussian noise on the graph",
        "cube, Cube noise on the graph",
    ):  # fmt: skip
        for norm in ("l1", "l2", "linf"):
            assert f"{release}, {norm} <= 0.015625" in titles
    for mechanism in ("pamst", "kruskal"):
        for norm, least in (("l1", "Laplace"), ("l2", "Laplace"), ("linf", "Cube")):
            assert f"{mechanism}, {least} noise on the tree, {norm} <= 0.015625" in titles
    for title in (
        "cube, rounding to the lattice not paid for", "cube, rounded away from zero",
        "cube, half-width published",
    ):  # fmt: skip
        assert any(each.startswith(title) for each in titles)
    full = Effort.full()
    assert full.draws > effort.draws
    assert len(list(suite.audits(full, 0))) > len(titles)


def test_nothing_but_the_audit_imports_its_controls():
    home = Path(ptclust.__file__).parent
    importers = set()
    for file in home.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ptclust.audit"):
                names = {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
                if "ptclust.audit.controls" in names:
                    importers.add(file.relative_to(home).as_posix())
            if isinstance(node, ast.Import):
                assert all("audit.controls" not in alias.name for alias in node.names)
    assert importers == {"audit/suite.py"}


def test_what_a_report_says():
    report = AuditReport("ptclust audit", 0, 1e-4, (FINDING,))
    assert report.passed
    assert report.summary == "1 of 1 claims stand, 0 of 0 controls were caught"
    refuted = replace(FINDING, found=1.2)
    missed = replace(FINDING, expected="refuted", mechanism="a control")
    report = AuditReport("ptclust audit", 0, 1e-4, (FINDING, refuted, missed))
    assert not report.passed
    assert report.problems == (
        "claim refuted: Laplace (K3; linf <= 1): epsilon = 1 claimed, 1.2 found; tree (0, 1)",
        "control not caught, so the audit itself cannot be trusted: "
        "a control (K3; linf <= 1): epsilon = 1 claimed, "
        "0.5 found",
    )
    assert "**claim refuted:" in report.to_markdown()
    assert replace(FINDING, found=1.0 + 1e-12).verdict == "stands"
    assert replace(FINDING, found=1.0 + 1e-8).verdict == "refuted"


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in this process; return exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    small = kept("Kruskal on K3", "Kruskal, exponent", "two Laplace releases")
    monkeypatch.setattr(suite, "audits", lambda effort, seed: small)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["ptclust", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out = capsys.readouterr()
        return stop.value.code or 0, out.out, out.err

    return call


def test_the_command_writes_a_table_and_json(run, tmp_path):
    code, out, err = run("audit", "--quick", "--output", "there")
    assert code == 0
    assert "4 of 4 claims stand, 2 of 2 controls were caught" in err
    assert out == (tmp_path / "there" / "audit-quick.md").read_text()
    assert "Made by `ptclust audit --quick`" in out
    document = json.loads((tmp_path / "there" / "audit-quick.json").read_text())
    assert document["passed"] is True
    assert document["problems"] == []
    assert document["error_probability"] == suite.ERROR
    for finding in document["findings"]:
        assert set(finding) == {
            "section", "mechanism", "setting", "neighbours", "unit", "claim", "delta", "found",
            "witness", "expected", "ratio", "verdict", "as_expected",
        }  # fmt: skip
        assert finding["ratio"] == pytest.approx(finding["found"] / finding["claim"])
        assert finding["verdict"] in ("stands", "refuted")
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == [
        "audit-quick.csv",
        "audit-quick.json",
        "audit-quick.md",
    ]


def test_json_goes_to_stdout(run):
    code, out, _ = run("audit", "--json", "--seed", "3")
    assert code == 0
    assert json.loads(out)["command"] == "ptclust audit --seed 3"


def test_a_broken_calibration_ends_with_exit_code_5(run, monkeypatch):
    def doubled(*arguments):
        tree = calibrate_tree(*arguments)
        return replace(tree, exponent=2 * tree.exponent)

    monkeypatch.setattr(exponential, "calibrate_tree", doubled)
    code, out, err = run("audit", "--quick")
    assert code == 5
    assert "claim refuted: Kruskal (K3; linf <= 0.015625): epsilon = 1 claimed, 2 found" in err
    assert "**claim refuted: Kruskal" in out


def test_a_control_that_is_not_caught_ends_with_exit_code_5(run, monkeypatch):
    monkeypatch.setattr(controls, "TOO_LITTLE", -0.05)
    code, _, err = run("audit", "--quick")
    assert code == 5
    assert "control not caught, so the audit itself cannot be trusted: Kruskal, exponent" in err


@pytest.mark.long
def test_the_whole_quick_audit():
    report = run_audit(Effort.quick(), "ptclust audit --quick")
    assert report.problems == ()
    tight = [
        finding.ratio
        for finding in report.findings
        if (finding.section, finding.unit) == (suite.EXACT, "epsilon")
        and finding.neighbours == "linf <= 0.015625"
        and finding.mechanism in ("PAMST, root known", "Kruskal")
        and finding.setting in ("K3", "K4")
    ]
    assert len(tight) == 4
    assert min(tight) > 0.9
