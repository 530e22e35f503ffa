"""All audits of a run: every claim of a release, and every control that has to be caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ptclust._statistics import seed_of
from ptclust._types import Floats
from ptclust.audit import controls as unsafe
from ptclust.audit.cube import CubeCase
from ptclust.audit.curves import DELTA, EPSILON, LATTICE, LatticeCase, SeriesCase, StepsCase
from ptclust.audit.mechanisms import (
    NoiseAlone,
    Pair,
    SeriesOfTwo,
    ValuesRelease,
    WholeRelease,
    make_graph,
    neighbours,
)
from ptclust.audit.norms import worst_noise
from ptclust.audit.report import AuditReport, Finding, Verdict
from ptclust.audit.search import worst_divergence, worst_loss
from ptclust.audit.statistical import DivergenceTester, Drawable, EventTester, Private, Tester
from ptclust.audit.tables import (
    Build,
    BuiltRelease,
    Tables,
    build_flows,
    build_records,
    build_visits,
)
from ptclust.mechanisms import MECHANISMS, Mechanism
from ptclust.mechanisms.exponential import ALONE
from ptclust.mechanisms.laws import GRAPHS, SmallGraph, TreeLaw
from ptclust.mechanisms.mechanism import Variant
from ptclust.planning import plan
from ptclust.planning.plan import PlanRequest
from ptclust.planning.series import SeriesBudget, plan_series
from ptclust.privacy import Budget, Sensitivity
from ptclust.privacy.noise import CUBE, DISTRIBUTIONS, GAUSSIAN, LAPLACE, Distribution

ERROR = 1e-4  # probability that any statistical bound of a run is wrong

EXACT = "Trees, exactly"
EXACT_NOISE = "Noise, exactly"
DRAWN = "Tree and weights, from draws"
WHOLE = "Whole releases, from draws with secure randomness"
BUILT = "From records to labels, from draws with secure randomness"
NOISE = "Noise alone, from draws"
CONTROLS = "Controls: each has to be refuted"

_MU = 1.0 / 64.0
_RELATIONS = {
    "linf": Sensitivity(linf=_MU),
    "l1": Sensitivity(l1=_MU),
    "l2": Sensitivity(l2=_MU),
    "l1 and linf": Sensitivity(l1=1.5 * _MU, linf=_MU),
    "l2 and linf": Sensitivity(l2=1.5 * _MU, linf=_MU),
}
_COMBINED, _COMBINED_VALUES = ("l1 and linf", "l2 and linf"), 6
_SEEDED_DRAWS = 1_000_000
_DELTA = 1e-3
_EPSILON = 4.0  # of releases: large enough for a few thousand draws to show
_DELTA_OF = {"pure": 0.0, "approximate": _DELTA}
_CYCLE = SmallGraph("cycle", 9, tuple((node, (node + 1) % 9) for node in range(9)))

Claim = tuple[Literal["epsilon", "rho"], float, float]  # unit, amount and delta
Tested = tuple[Claim, Tester]


@dataclass(frozen=True)
class Effort:
    """How much is tried."""

    graphs: tuple[str, ...]
    starts: int  # random starts of every exact search
    divergences: tuple[str, ...]  # relations under which Renyi divergences are searched, too
    draws: int
    whole_draws: int
    noise_draws: int  # of secure noise; of seeded noise there are a million
    secure_controls: tuple[bool, ...]  # too little noise: with seeded randomness, secure, or both

    @classmethod
    def quick(cls) -> Effort:
        """Return what takes a minute or two."""
        graphs = ("K3", "K4", "square with a diagonal", "triangle with a tail")
        return cls(graphs, 2, ("linf",), 3_000, 800, 100_000, (False,))

    @classmethod
    def full(cls) -> Effort:
        """Return what takes far longer than the quick run."""
        norms = "linf", "l1", "l2"
        return cls(tuple(GRAPHS), 12, norms, 60_000, 10_000, 2_000_000, (False, True))


@dataclass(frozen=True)
class Audit:
    """Something to find out: its title, how many statistical bounds it needs, and how it is run."""

    title: str
    n_bounds: int
    run: Callable[[float], list[Finding]]  # takes the error probability of each of its bounds


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
                    if relation not in _COMBINED or name == "K4":
                        yield _exact(mechanism, law, sensitivity, Budget.pure(1), effort, seed)
                    if relation in effort.divergences and "approximate" in mechanism.variants:
                        yield _exact(mechanism, law, sensitivity, Budget.zcdp("1/8"), effort, seed)
    # A tree's worst loss over epsilon is largest as epsilon goes to 0; K3 has it in closed form.
    pamst = MECHANISMS["pamst"]
    law = pamst.laws(GRAPHS["K3"])[0]
    yield _exact(pamst, law, _RELATIONS["linf"], Budget.pure("1/64"), effort, seed)
    for n_values in (1, 2, 3):
        yield _exact_cube(EXACT_NOISE, CUBE.name, CubeCase.of(n_values))
    for relation in _COMBINED:
        for distribution in DISTRIBUTIONS:
            yield _exact_norm(EXACT_NOISE, distribution, relation, seed)
    yield _exact_curve(EXACT_NOISE, "Gaussian by its own curve", LatticeCase.of())
    for name in _with_steps():
        for n_steps in (3, 30, 100):
            yield _exact_curve(EXACT_NOISE, f"{name}, joint curve", StepsCase.of(name, n_steps))
    for shares in ((1, 1), (1, 3)):
        yield _exact_curve(EXACT_NOISE, f"series, shares {shares}", SeriesCase.of(shares))
    releases: list[tuple[str, type[ValuesRelease], int, Mechanism, Variant, str]] = [
        (DRAWN, ValuesRelease, effort.draws, mechanism, variant, relation)
        for mechanism in MECHANISMS
        for variant in mechanism.variants
        for relation in ("linf", "l1", "l2", "l1 and linf")
    ]
    releases += [
        (WHOLE, WholeRelease, effort.whole_draws, mechanism, mechanism.variants[-1], mechanism.norm)
        for mechanism in MECHANISMS
    ]
    for section, kind, draws, mechanism, variant, relation in releases:
        asked = {"epsilon": _EPSILON, "delta": _DELTA_OF[variant], "mechanism": mechanism.name}
        yield _release(section, "", kind, draws, seed, relation, asked)
    yield _series(DRAWN, "", ValuesRelease, effort.draws, seed)
    yield _series(WHOLE, "", WholeRelease, effort.whole_draws, seed)
    yield from _built(effort, seed)
    yield from _noise_and_controls(effort, seed)
    yield from _built_wrongly(effort, seed)


def _exact(
    mechanism: Mechanism,
    law: TreeLaw,
    sensitivity: Sensitivity,
    budget: Budget,
    effort: Effort,
    seed: int,
    change: Callable[[float], float] | None = None,
    what: str = "",
) -> Audit:
    """Audit the exponent of a mechanism's tree; ``change``, named ``what``, makes it a control."""
    title, name = f"{law.title}{what}", law.graph.name

    def run(error: float) -> list[Finding]:  # noqa: ARG001 - nothing is left to chance
        topology = make_graph(law.graph, np.zeros(len(law.graph.edges))).topology
        tree = mechanism.calibrate(topology, sensitivity, budget, split=ALONE).tree
        assert tree is not None  # noqa: S101 - there is a law of it
        exponent = tree.exponent if change is None else change(tree.exponent)
        search = worst_loss if budget.rho is None else worst_divergence
        starts = effort.starts if budget.rho is None else 2 * effort.starts
        worst = search(law, sensitivity, exponent, starts=starts, seed=seed)
        section = EXACT if change is None else CONTROLS
        claim: Claim = budget.unit, float(budget.amount), 0.0
        where = section, title, name, str(sensitivity)
        return [Finding(*where, *claim, worst.loss, worst.outcome, _expected(section))]

    return Audit(f"{title} on {name}, {sensitivity!s}", 0, run)


def _built(effort: Effort, seed: int) -> Iterator[Audit]:
    """Audit what is built of neighbouring tables and then published."""
    settings: list[tuple[str, Build, Tables, float]] = [
        ("flows of single records", build_records, Tables.of_records(), 0.0),
        ("flows of persons", build_flows, Tables.of_flows(), 0.0),
        ("flows of persons", build_flows, Tables.of_flows(), _DELTA),
        ("visits", build_visits, Tables.of_visits(), 0.0),
    ]
    for title, build, tables, delta in settings:
        drawn = BuiltRelease(build, tables, _EPSILON, delta)
        yield _of_tables(BUILT, title, drawn, effort.whole_draws // 2, seed)


def _built_wrongly(effort: Effort, seed: int) -> Iterator[Audit]:
    """Audit builders that err."""
    settings: list[tuple[str, Build]] = [
        ("without a bound", unsafe.unsafe_unbounded),
        ("the first records of a person", unsafe.unsafe_first_records),
        ("on the pairs that occur", unsafe.unsafe_pairs_that_occur),
    ]
    for title, build in settings:
        drawn = BuiltRelease(build, Tables.of_flows(), 1.0)
        draws = min(effort.whole_draws, 200)
        yield _of_tables(CONTROLS, f"flows of persons, {title}", drawn, draws, seed)


def _of_tables(section: str, title: str, drawn: BuiltRelease, draws: int, seed: int) -> Audit:
    tables, delta = drawn.tables, drawn.delta
    claim: Tested = ("epsilon", drawn.epsilon, delta), EventTester(delta)
    sides = tables.table, tables.neighbour
    return _drawn(section, title, drawn, sides, [claim], draws, seed, tables.words)


def _exact_cube(section: str, title: str, case: CubeCase, claimed: float | None = None) -> Audit:
    """Audit cube noise on a small lattice; ``claimed`` is what it claims to spend, if not that."""
    setting = f"{case.noise.n_values} values, a lattice of a quarter of the noise"

    def run(error: float) -> list[Finding]:  # noqa: ARG001 - nothing is left to chance
        worst, claim = case.worst_loss(), case.claim if claimed is None else claimed
        where = section, title, setting, str(case.sensitivity)
        found = worst.loss, worst.outcome, _expected(section)
        return [Finding(*where, "epsilon", claim, 0.0, *found)]

    return Audit(f"{title}, {setting}", 0, run)


def _exact_norm(
    section: str,
    law: Distribution,
    relation: str,
    seed: int,
    declared: Sensitivity | None = None,
    what: str = "",
) -> Audit:
    """Audit noise under combined bounds; a control is calibrated for others, ``declared``."""
    sensitivity = _RELATIONS[relation]
    budget = Budget.zcdp("1/8") if law.unit == "rho" else Budget.pure(1)
    noise = law.calibrate(declared or sensitivity, _COMBINED_VALUES, budget.amount)
    title, setting = f"{noise.distribution}{what}", f"{noise.n_values} values"

    def run(error: float) -> list[Finding]:  # noqa: ARG001 - nothing is left to chance
        worst = worst_noise(noise, sensitivity, seed)
        where = section, title, setting, str(sensitivity)
        found = worst.loss, worst.outcome, _expected(section)
        return [Finding(*where, budget.unit, float(budget.amount), 0.0, *found)]

    return Audit(f"{title}, {setting}, {sensitivity!s}", 0, run)


def _exact_curve(section: str, title: str, case: LatticeCase | StepsCase | SeriesCase) -> Audit:
    """Audit Gaussian noise that was calibrated by a curve."""
    setting = f"a lattice of {LATTICE:,} steps a deviation"
    if isinstance(case, StepsCase):
        setting = f"{case.n_steps} adaptive steps, then the noise"
    if isinstance(case, SeriesCase):
        setting = "two releases, the second after the first"

    def run(error: float) -> list[Finding]:  # noqa: ARG001 - nothing is left to chance
        worst = case.worst_loss()
        where = section, title, setting, "the largest change"
        found = worst.loss, worst.outcome, _expected(section)
        return [Finding(*where, "epsilon", EPSILON, DELTA, *found)]

    return Audit(f"{title}, {setting}", 0, run)


def _with_steps() -> list[str]:
    """Return the mechanisms that share (epsilon, delta) between a tree and Gaussian noise."""
    graph = GRAPHS["K3"]
    return [each.name for each in MECHANISMS if each.laws(graph) and "approximate" in each.variants]


def _noise_and_controls(effort: Effort, seed: int) -> Iterator[Audit]:
    unit = Sensitivity(l1=1.0, l2=1.0, linf=1.0)
    pair = Pair(np.array([0.0]), np.array([1.0]))
    laplace, gaussian = LAPLACE.calibrate(unit, 1, 2), GAUSSIAN.calibrate(unit, 1, 1)
    twice = unsafe.UnsafeReusedStream(laplace, LAPLACE.calibrate(unit, 1, 1), reused=False)
    once: Tested = ("epsilon", 2.0, 0.0), EventTester()
    both: Tested = ("epsilon", 3.0, 0.0), EventTester()
    rho: Tested = ("rho", 1.0, 0.0), DivergenceTester()
    few = min(effort.noise_draws, 30_000)

    def one(section: str, title: str, drawn: Drawable[Floats], claim: Tested, draws: int) -> Audit:
        sides = pair.weights, pair.neighbour
        return _drawn(section, title, drawn, sides, [claim], draws, seed, "one value, change 1")

    def alone(section: str, kind: type[NoiseAlone], secure: bool, what: str) -> Iterator[Audit]:
        draws = effort.noise_draws if secure else _SEEDED_DRAWS
        by = ("secure" if secure else "seeded") + what
        yield one(section, f"Laplace, {by}", kind(laplace, pair, secure), once, draws)
        yield one(section, f"Gaussian, {by}", kind(gaussian, pair, secure), rho, draws)

    for secure in (True, False):
        yield from alone(NOISE, NoiseAlone, secure, "")
    yield one(NOISE, "two Laplace releases, a stream each (seeded)", twice, both, few)

    for mechanism in MECHANISMS:
        # The last law has the tightest claim: of PAMST, the one with the root known.
        for law in mechanism.laws(GRAPHS["K3"])[-1:]:
            setting = mechanism, law, _RELATIONS["linf"], Budget.pure(1), effort, seed
            yield _exact(*setting, unsafe.unsafe_exponent, ", exponent 5 % too large")
    yield _exact_cube(
        CONTROLS, "cube, rounding to the lattice not paid for", CubeCase.of(2, rounding=0), 1.0
    )
    away = CubeCase.of(2, rounded=unsafe.unsafe_rounding)
    yield _exact_cube(CONTROLS, "cube, rounded away from zero", away)
    too_small = Sensitivity(l2=_MU)
    what = ", without the rest of l1"
    yield _exact_norm(CONTROLS, GAUSSIAN, "l1 and linf", seed, too_small, what)
    little = 1.0 / (1.0 - unsafe.TOO_LITTLE) - 1.0
    title = "Gaussian by its own curve, 5 % too little"
    yield _exact_curve(CONTROLS, title, LatticeCase.of(little))
    for name in _with_steps()[:1]:
        title = f"{name}, joint curve, 5 % too little"
        yield _exact_curve(CONTROLS, title, StepsCase.of(name, 100, little))
    title = "series, shares (1, 1), 5 % too little"
    yield _exact_curve(CONTROLS, title, SeriesCase.of((1, 1), little))
    title = ", each with all of the budget"
    yield _series(CONTROLS, title, ValuesRelease, 12_000, seed, split=False)
    cube = unsafe.UnsafePublishedHalfWidth(CUBE.calibrate(unit, 1, 2))
    yield one(CONTROLS, "cube, half-width published", cube, once, few)
    for secure in effort.secure_controls:
        yield from alone(CONTROLS, unsafe.UnsafeTooLittleNoise, secure, ", 5 % too little")
    floats, reused = unsafe.UnsafeNumpyNoise(laplace, pair), replace(twice, reused=True)
    yield one(CONTROLS, "Laplace by numpy", floats, once, few)
    yield one(CONTROLS, "two Laplace releases, one stream", reused, both, few)
    asked: dict[str, Any] = {"epsilon": 1, "mechanism": "pamst"}
    title, draws = "PTClust with the paper's scales", min(2 * effort.draws, 10_000)
    at_its_word, printed = unsafe.UnsafePublishedScales, {**asked, "calibration": "published"}
    yield _release(CONTROLS, title, at_its_word, draws, seed, "linf", printed, _CYCLE, 0.0)
    title, draws = "whole release, tau from private weights", min(effort.whole_draws, 1_000)
    yield _release(CONTROLS, title, unsafe.UnsafePrivateShift, draws, seed, "linf", asked)


def _release(
    section: str,
    title: str,
    kind: type[ValuesRelease],
    draws: int,
    seed: int,
    relation: str,
    asked: dict[str, Any],
    graph: SmallGraph = GRAPHS["K4"],
    spread: float = 2 * _MU,
) -> Audit:
    """Audit releases: epsilon at delta by an event, and rho where that is what was shared out."""
    sensitivity = _RELATIONS[relation]
    pair = neighbours(len(graph.edges), sensitivity, spread)
    planned = plan(make_graph(graph, pair.weights).topology, sensitivity=sensitivity, **asked)
    epsilon, delta = float(planned.budget.epsilon), float(planned.budget.delta)
    claims: list[Tested] = [(("epsilon", epsilon, delta), EventTester(delta))]
    if delta:
        zcdp = planned.chosen.spent.implied_zcdp
        assert zcdp is not None  # noqa: S101 - without it there is no statement
        claims.append((("rho", float(zcdp.amount), 0.0), DivergenceTester()))
    drawn, sides = kind(graph, planned, pair), (pair.weights, pair.neighbour)
    if not title:
        noise, publishes = planned.chosen.weights.law.title, planned.mechanism.publishes
        title = f"{planned.mechanism.name}, {noise} noise on the {publishes}"
    return _drawn(section, title, drawn, sides, claims, draws, seed, str(sensitivity))


def _series(
    section: str,
    title: str,
    kind: type[ValuesRelease],
    draws: int,
    seed: int,
    *,
    split: bool = True,
) -> Audit:
    """Audit two releases of the same people by their total; a control does not split it."""
    graph, sensitivity = GRAPHS["K4"], _RELATIONS["l2"]
    pair = neighbours(len(graph.edges), sensitivity, 2 * _MU)
    total = SeriesBudget(_EPSILON, _DELTA, releases=2)
    request = PlanRequest(
        epsilon=total.epsilon, delta=total.delta, sensitivity=sensitivity, mechanism="gaussian"
    )
    planned = plan_series(make_graph(graph, pair.weights).topology, request, total)
    both = SeriesOfTwo(kind(graph, planned.plans[0] if split else planned.alone, pair))
    claims: list[Tested] = [(("rho", float(planned.account.amount), 0.0), DivergenceTester())]
    if split:  # few draws do not refute the epsilon of the control
        claims.append((("epsilon", _EPSILON, _DELTA), EventTester(_DELTA)))
    sides = pair.weights, pair.neighbour
    title = f"series of two, Gaussian noise{title}"
    return _drawn(section, title, both, sides, claims, draws, seed, str(sensitivity))


def _drawn(
    section: str,
    title: str,
    drawn: Drawable[Private],
    sides: tuple[Private, Private],
    claims: list[Tested],
    draws: int,
    seed: int,
    words: str,
) -> Audit:
    """Audit something by draws under two neighbours."""

    def run(error: float) -> list[Finding]:
        # Seeds are apart, since what is drawn may count on from its own.
        first, second = (
            drawn.draw(private, draws, seed_of(seed, section, title, words, side))
            for side, private in enumerate(sides)
        )
        where = section, title, f"2 x {draws:,} draws", words
        return [
            Finding(*where, *claim, *tester.bound(first, second, error), _expected(section))
            for claim, tester in claims
        ]

    return Audit(f"{title}, {words}", len(claims), run)


def _expected(section: str) -> Verdict:
    return "refuted" if section == CONTROLS else "stands"
