"""All audits of a run: every claim that a release rests on, and every control that has to be caught."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ptclust._statistics import seed_of
from ptclust.audit import controls as unsafe
from ptclust.audit.mechanisms import (
    NoiseAlone,
    Pair,
    ValuesRelease,
    WholeRelease,
    make_graph,
    neighbours,
)
from ptclust.audit.report import AuditReport, Finding, Verdict
from ptclust.audit.search import worst_divergence, worst_loss
from ptclust.audit.statistical import DivergenceTester, EventTester
from ptclust.graph import Topology
from ptclust.mechanisms import MECHANISMS
from ptclust.mechanisms.exponential import ALONE
from ptclust.mechanisms.laws import GRAPHS
from ptclust.planning import plan
from ptclust.privacy import Budget, Sensitivity
from ptclust.privacy.noise import gaussian_noise, laplace_noise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ptclust.audit.statistical import Mechanism, Tester
    from ptclust.mechanisms import Mechanism as PrivateMechanism
    from ptclust.mechanisms.laws import TreeLaw
    from ptclust.planning import Plan

__all__ = ["ERROR", "Audit", "Effort", "audits", "run_audit"]

ERROR = 1e-4
"""Probability that any statistical bound of a run is wrong."""

EXACT = "Trees, exactly"
DRAWN = "Tree and weights, from draws"
WHOLE = "Whole releases, from draws with secure randomness"
NOISE = "Noise alone, from draws"
CONTROLS = "Controls: each has to be refuted"

_MU = 1.0 / 64.0
_RELATIONS = {
    "linf": Sensitivity(linf=_MU),
    "l1": Sensitivity(l1=_MU),
    "l2": Sensitivity(l2=_MU),
    "l1 and linf": Sensitivity(l1=1.5 * _MU, linf=_MU),
}
_SEEDED_DRAWS = 1_000_000
_DELTA = 1e-3
_EPSILON = 4.0  # of releases: large enough for a few thousand draws to show
_DELTAS = {"pure": 0.0, "approximate": _DELTA}


@dataclass(frozen=True)
class Effort:
    """How much is tried."""

    graphs: tuple[str, ...]
    starts: int
    """Random starts of every exact search."""
    divergences: tuple[str, ...]
    """Relations under which Renyi divergences are searched, too."""
    draws: int
    whole_draws: int
    noise_draws: int
    """Of secure noise; of seeded noise there are a million."""
    secure_controls: tuple[bool, ...]
    """Whether too little noise is drawn with seeded randomness, with secure, or with either."""

    @classmethod
    def quick(cls) -> Effort:
        """Return what takes a minute or two."""
        graphs = ("K3", "K4", "square with a diagonal", "triangle with a tail")
        return cls(graphs, 2, ("linf",), 3_000, 800, 100_000, (False,))

    @classmethod
    def full(cls) -> Effort:
        """Return what takes far longer than the quick run."""
        return cls(
            tuple(GRAPHS), 12, ("linf", "l1", "l2"), 60_000, 10_000, 2_000_000, (False, True)
        )


@dataclass(frozen=True)
class Audit:
    """Something to find out: what it is called, how many statistical bounds it needs, and how it is run."""

    title: str
    n_bounds: int
    run: Callable[[float], list[Finding]]
    """Takes the error probability that each of its bounds may have."""


def run_audit(
    effort: Effort, command: str, *, seed: int = 0, progress: Callable[[str], None] = lambda _: None
) -> AuditReport:
    """Run all audits; ``progress`` is called with what is being done."""
    everything = list(audits(effort, seed))
    each = ERROR / max(1, sum(audit.n_bounds for audit in everything))
    findings: list[Finding] = []
    for number, audit in enumerate(everything, 1):
        progress(f"Audit {number} of {len(everything)}: {audit.title}")
        findings += audit.run(each)
    return AuditReport(command, seed, ERROR, tuple(findings))


def audits(effort: Effort, seed: int) -> Iterator[Audit]:
    """Yield all audits of a run, controls last."""
    for name in effort.graphs:
        for mechanism in MECHANISMS:
            for law in mechanism.laws(GRAPHS[name]):
                for relation, sensitivity in _RELATIONS.items():
                    if relation in ("linf", "l1", "l2") or name == "K4":
                        yield _exact(mechanism, law, sensitivity, Budget.pure(1), effort, seed)
                    if relation in effort.divergences and "approximate" in mechanism.variants:
                        yield _exact(mechanism, law, sensitivity, Budget.zcdp("1/8"), effort, seed)
    # The ratio of a tree's worst loss to epsilon is largest as epsilon goes to 0; K3 has it in closed form.
    pamst = MECHANISMS.get("pamst")
    on_k3 = pamst.laws(GRAPHS["K3"])[0]
    yield _exact(pamst, on_k3, _RELATIONS["linf"], Budget.pure("1/64"), effort, seed)
    for mechanism in MECHANISMS:
        for variant in mechanism.variants:
            for relation in ("linf", "l1", "l2"):
                delta = _DELTAS[variant]
                yield _release(DRAWN, ValuesRelease, mechanism, delta, relation, effort.draws, seed)
    for mechanism in MECHANISMS:
        delta = _DELTAS[mechanism.variants[-1]]
        draws = effort.whole_draws
        yield _release(WHOLE, WholeRelease, mechanism, delta, mechanism.norm, draws, seed)
    yield from _noise_and_controls(effort, seed)


def _exact(
    mechanism: PrivateMechanism,
    law: TreeLaw,
    sensitivity: Sensitivity,
    budget: Budget,
    effort: Effort,
    seed: int,
    *,
    change: Callable[[float], float] | None = None,
    what: str = "",
) -> Audit:
    """Audit the exponent that a mechanism gives its tree.

    ``change`` makes a control of it, and ``what`` names the change.
    """
    title, name = f"{law.title}{what}", law.graph.name

    def run(error: float) -> list[Finding]:  # noqa: ARG001 - nothing is left to chance
        topology = make_graph(law.graph, np.zeros(len(law.graph.edges))).topology
        tree = mechanism.calibrate(topology, sensitivity, budget, split=ALONE).tree
        assert tree is not None  # noqa: S101 - there is a law of it
        exponent = tree.exponent if change is None else change(tree.exponent)
        search = worst_loss if budget.rho is None else worst_divergence
        starts = effort.starts if budget.rho is None else 2 * effort.starts
        worst = search(law, sensitivity, exponent, starts=starts, seed=seed)
        section, expected = (EXACT, "stands") if change is None else (CONTROLS, "refuted")
        return [
            Finding(
                section, title, name, str(sensitivity), budget.unit, float(budget.amount), 0.0, worst.loss,
                worst.outcome, _verdict(expected),
            )
        ]  # fmt: skip

    return Audit(f"{title} on {name}, {sensitivity!s}", 0, run)


def _release(
    section: str,
    kind: type[ValuesRelease],
    mechanism: PrivateMechanism,
    delta: float,
    relation: str,
    draws: int,
    seed: int,
) -> Audit:
    """Audit releases on K4: epsilon at delta by an event, and rho where that is what was shared out."""
    sensitivity, graph = _RELATIONS[relation], GRAPHS["K4"]
    pair = neighbours(len(graph.edges), sensitivity, 2 * _MU)
    planned = plan(
        make_graph(graph, pair.weights).topology,
        epsilon=_EPSILON, delta=delta, sensitivity=sensitivity, mechanism=mechanism.name,
    )  # fmt: skip
    return _drawn(
        section, _title(mechanism, delta), kind(graph, planned, pair), pair, _claims(planned), draws, seed,
        str(sensitivity),
    )  # fmt: skip


def _noise_and_controls(effort: Effort, seed: int) -> Iterator[Audit]:
    unit = Sensitivity(l1=1.0, l2=1.0, linf=1.0)
    pair = Pair(np.array([0.0]), np.array([1.0]))
    laplace, gaussian = laplace_noise(unit, 1, 2), gaussian_noise(unit, 1, 1)
    epsilon: list[Claim] = [("epsilon", 2.0, 0.0, EventTester())]
    rho: list[Claim] = [("rho", 1.0, 0.0, DivergenceTester())]
    few, words = min(effort.noise_draws, 30_000), "one value, change 1"
    for secure in (True, False):
        kind = "secure" if secure else "seeded"
        many = effort.noise_draws if secure else _SEEDED_DRAWS
        sound = NoiseAlone(laplace, pair, secure), NoiseAlone(gaussian, pair, secure)
        yield _drawn(NOISE, f"Laplace, {kind}", sound[0], pair, epsilon, many, seed, words)
        yield _drawn(NOISE, f"Gaussian, {kind}", sound[1], pair, rho, many, seed, words)
    twice = unsafe.UnsafeReusedStream(laplace, laplace_noise(unit, 1, 1), reused=False)
    both: list[Claim] = [("epsilon", 3.0, 0.0, EventTester())]
    title = "two Laplace releases, a stream each (seeded)"
    yield _drawn(NOISE, title, twice, pair, both, few, seed, words)

    for mechanism in MECHANISMS:
        # The last law has the tightest claim: of PAMST, the one with the root known.
        for law in mechanism.laws(GRAPHS["K3"])[-1:]:
            yield _exact(
                mechanism, law, _RELATIONS["linf"], Budget.pure(1), effort, seed,
                change=unsafe.unsafe_exponent, what=", exponent 5 % too large",
            )  # fmt: skip
    for secure in effort.secure_controls:
        kind = "secure" if secure else "seeded"
        many = effort.noise_draws if secure else _SEEDED_DRAWS
        less = [unsafe.UnsafeTooLittleNoise(noise, pair, secure) for noise in (laplace, gaussian)]
        title = f"Laplace, {kind}, 5 % too little"
        yield _drawn(CONTROLS, title, less[0], pair, epsilon, many, seed, words)
        title = f"Gaussian, {kind}, 5 % too little"
        yield _drawn(CONTROLS, title, less[1], pair, rho, many, seed, words)
    floats = unsafe.UnsafeNumpyNoise(laplace, pair)
    yield _drawn(CONTROLS, "Laplace by numpy", floats, pair, epsilon, few, seed, words)
    title = "two Laplace releases, one stream"
    yield _drawn(CONTROLS, title, replace(twice, reused=True), pair, both, few, seed, words)
    yield _published_scales(min(2 * effort.draws, 10_000), seed)
    yield _private_shift(min(effort.whole_draws, 1_000), seed)


def _published_scales(draws: int, seed: int) -> Audit:
    """Algorithm 3 on a cycle of 9 nodes, taken at its word: epsilon = 1."""
    n_nodes, sensitivity = 9, _RELATIONS["linf"]
    topology = Topology(range(n_nodes), [*range(1, n_nodes), 0])
    pair = neighbours(n_nodes, sensitivity, 0.0)
    planned = plan(
        topology, epsilon=1, sensitivity=sensitivity, mechanism="pamst", calibration="published"
    )
    return _drawn(
        CONTROLS, "PTClust with the paper's scales", unsafe.UnsafePublishedScales(n_nodes, planned, pair), pair,
        _claims(planned), draws, seed, str(sensitivity),
    )  # fmt: skip


def _private_shift(draws: int, seed: int) -> Audit:
    """Whole releases whose tau comes from private weights."""
    sensitivity, graph = _RELATIONS["linf"], GRAPHS["K4"]
    pair = neighbours(len(graph.edges), sensitivity, 2 * _MU)
    topology = make_graph(graph, pair.weights).topology
    planned = plan(topology, epsilon=1, sensitivity=sensitivity, mechanism="pamst")
    return _drawn(
        CONTROLS, "whole release, tau from private weights", unsafe.UnsafePrivateShift(graph, planned, pair), pair,
        _claims(planned), draws, seed, str(sensitivity),
    )  # fmt: skip


Claim = tuple[Literal["epsilon", "rho"], float, float, "Tester"]
"""Unit, amount, delta, and who tests it."""


def _claims(planned: Plan) -> list[Claim]:
    """Return what a plan claims, as it was asked for."""
    budget = planned.budget
    delta = float(budget.delta)
    claims: list[Claim] = [("epsilon", float(budget.epsilon), delta, EventTester(delta))]
    rho = budget.to_zcdp().rho if delta else None
    if rho is not None:
        claims.append(("rho", float(rho), 0.0, DivergenceTester()))
    return claims


def _drawn(
    section: str,
    title: str,
    mechanism: Mechanism,
    pair: Pair,
    claims: list[Claim],
    draws: int,
    seed: int,
    words: str,
) -> Audit:
    """Audit a mechanism by draws under two neighbours."""

    def run(error: float) -> list[Finding]:
        # Seeds are apart, since a mechanism may count on from its own.
        first, second = (
            mechanism.draw(weights, draws, seed_of(seed, section, title, words, side))
            for side, weights in enumerate((pair.weights, pair.neighbour))
        )
        expected = _verdict("refuted" if section == CONTROLS else "stands")
        findings = []
        for unit, amount, delta, tester in claims:
            bound = tester.bound(first, second, error)
            findings.append(
                Finding(
                    section, title, f"2 x {draws:,} draws", words, unit, amount, delta, bound.value, bound.witness,
                    expected,
                )
            )  # fmt: skip
        return findings

    return Audit(f"{title}, {words}", len(claims), run)


def _verdict(word: str) -> Verdict:
    return "refuted" if word == "refuted" else "stands"


def _title(mechanism: PrivateMechanism, delta: float) -> str:
    noise = "Gaussian" if delta else "Laplace"
    return f"{mechanism.name}, {noise} noise on the {mechanism.publishes}"
