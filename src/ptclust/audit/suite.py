"""All audits of a run: every claim of a release, and every control that has to be caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ptclust._statistics import seed_of
from ptclust.audit import controls as unsafe
from ptclust.audit.mechanisms import (
    NoiseAlone,
    Pair,
    SeriesOfTwo,
    ValuesRelease,
    WholeRelease,
    make_graph,
    neighbours,
)
from ptclust.audit.noise import (
    CUBE_CHANGE,
    DELTA,
    EPSILON,
    LATTICE,
    Rounding,
    cube_noise_of,
    rounded_to_lattice,
    worst_after_steps,
    worst_corner,
    worst_cube,
    worst_gaussian,
    worst_series,
)
from ptclust.audit.report import AuditReport, Finding, Verdict
from ptclust.audit.search import Worst, worst_divergence, worst_loss
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
from ptclust.planning import plan
from ptclust.planning.plan import PlanRequest
from ptclust.planning.series import SeriesBudget, plan_series
from ptclust.privacy import Budget, Sensitivity
from ptclust.privacy.noise import CUBE, DISTRIBUTIONS, GAUSSIAN, LAPLACE, Distribution, spent_by

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
_UNIT = Sensitivity(l1=1.0, l2=1.0, linf=1.0)
_PAIR = Pair(np.array([0.0]), np.array([1.0]))
_CYCLE = SmallGraph("cycle", 9, tuple((node, (node + 1) % 9) for node in range(9)))
_TOO_LITTLE = 1.0 / (1.0 - unsafe.TOO_LITTLE) - 1.0  # by how much more is lost then

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
    suite = Suite(effort, seed)
    yield from suite.trees()
    yield from suite.noise()
    yield from suite.releases()
    yield from suite.from_records()
    yield from suite.of_one_value()
    yield from suite.controls()


@dataclass(frozen=True)
class Suite:
    """The audits of one effort and seed, by what they look at."""

    effort: Effort
    seed: int

    def trees(self) -> Iterator[Audit]:
        """Compare the law of every tree with what its exponent claims to spend."""
        for name in self.effort.graphs:
            for mechanism in MECHANISMS:
                for law in mechanism.laws(GRAPHS[name]):
                    for relation, sensitivity in _RELATIONS.items():
                        if relation not in _COMBINED or name == "K4":
                            yield self.tree(mechanism, law, sensitivity, Budget.pure(1))
                        approximate = "approximate" in mechanism.variants
                        if relation in self.effort.divergences and approximate:
                            yield self.tree(mechanism, law, sensitivity, Budget.zcdp("1/8"))
        # The worst loss over epsilon is largest as epsilon goes to 0; K3 has it in closed form.
        pamst = MECHANISMS["pamst"]
        law = pamst.laws(GRAPHS["K3"])[0]
        yield self.tree(pamst, law, _RELATIONS["linf"], Budget.pure("1/64"))

    def noise(self) -> Iterator[Audit]:
        """Compare what noise loses on small lattices and against adversaries with its claim."""
        for n_values in (1, 2, 3):
            yield _cube(EXACT_NOISE, CUBE.name, n_values)
        for relation in _COMBINED:
            for distribution in DISTRIBUTIONS:
                yield self.corner(EXACT_NOISE, distribution, relation)
        yield from _curves(EXACT_NOISE, "", (3, 30, 100), ((1, 1), (1, 3)), _with_steps(), 0.0)

    def releases(self) -> Iterator[Audit]:
        """Draw from every mechanism, and whole releases of each."""
        draws, whole = self.effort.draws, self.effort.whole_draws
        for mechanism in MECHANISMS:
            for variant in mechanism.variants:
                for relation in ("linf", "l1", "l2", "l1 and linf"):
                    asked = {"delta": _DELTA_OF[variant], "mechanism": mechanism.name}
                    yield self.release(DRAWN, "", ValuesRelease, draws, relation, asked)
        for mechanism in MECHANISMS:
            asked = {"delta": _DELTA_OF[mechanism.variants[-1]], "mechanism": mechanism.name}
            yield self.release(WHOLE, "", WholeRelease, whole, mechanism.norm, asked)
        yield self.series(DRAWN, "", ValuesRelease, draws)
        yield self.series(WHOLE, "", WholeRelease, whole)

    def from_records(self) -> Iterator[Audit]:
        """Build of neighbouring tables and publish."""
        settings: list[tuple[str, Build, Tables, float]] = [
            ("flows of single records", build_records, Tables.of_records(), 0.0),
            ("flows of persons", build_flows, Tables.of_flows(), 0.0),
            ("flows of persons", build_flows, Tables.of_flows(), _DELTA),
            ("visits", build_visits, Tables.of_visits(), 0.0),
        ]
        for title, build, tables, delta in settings:
            drawn = BuiltRelease(build, tables, _EPSILON, delta)
            yield self.built(BUILT, title, drawn, self.effort.whole_draws // 2)

    def of_one_value(self) -> Iterator[Audit]:
        """Draw noise on one value, then what is broken about it."""
        laplace, gaussian = LAPLACE.calibrate(_UNIT, 1, 2), GAUSSIAN.calibrate(_UNIT, 1, 1)
        streams = unsafe.UnsafeReusedStream(laplace, LAPLACE.calibrate(_UNIT, 1, 1))
        cube = unsafe.UnsafePublishedHalfWidth(CUBE.calibrate(_UNIT, 1, 2))
        too_little, secure_controls = unsafe.UnsafeTooLittleNoise, self.effort.secure_controls
        few = min(self.effort.noise_draws, 30_000)
        rows: list[tuple[str, str, Drawable[Any], Tested, int]] = []
        once, both = _pure(2.0), _pure(3.0)
        rho: Tested = ("rho", 1.0, 0.0), DivergenceTester()
        for section, kind, sources, what in (
            (NOISE, NoiseAlone, (True, False), ""),
            (CONTROLS, too_little, secure_controls, ", 5 % too little"),
        ):
            for secure in sources:
                draws = self.effort.noise_draws if secure else _SEEDED_DRAWS
                by = ("secure" if secure else "seeded") + what
                noisy = kind(laplace, _PAIR, secure), kind(gaussian, _PAIR, secure)
                rows.append((section, f"Laplace, {by}", noisy[0], once, draws))
                rows.append((section, f"Gaussian, {by}", noisy[1], rho, draws))
            if section == NOISE:
                title = "two Laplace releases, a stream each (seeded)"
                rows.append((NOISE, title, replace(streams, reused=False), both, few))
        rows += [
            (CONTROLS, "cube, half-width published", cube, once, few),
            (CONTROLS, "Laplace by numpy", unsafe.UnsafeNumpyNoise(laplace, _PAIR), once, few),
            (CONTROLS, "two Laplace releases, one stream", streams, both, few),
        ]
        sides = _PAIR.weights, _PAIR.neighbour
        for section, title, drawn, claim, draws in rows:
            yield self.drawn(section, title, drawn, sides, [claim], draws, "one value, change 1")

    def controls(self) -> Iterator[Audit]:
        """Do the same to what is broken on purpose."""
        for mechanism in MECHANISMS:
            # The last law has the tightest claim: of PAMST, the one with the root known.
            for law in mechanism.laws(GRAPHS["K3"])[-1:]:
                what = mechanism, law, _RELATIONS["linf"], Budget.pure(1)
                yield self.tree(*what, unsafe.unsafe_exponent, ", exponent 5 % too large")
        yield _cube(CONTROLS, "cube, rounding to the lattice not paid for", 2, rounding=0)
        yield _cube(CONTROLS, "cube, rounded away from zero", 2, rounded=unsafe.unsafe_rounding)
        too_small = Sensitivity(l2=_MU)
        without = ", without the rest of l1"
        yield self.corner(CONTROLS, GAUSSIAN, "l1 and linf", too_small, without)
        little = ", 5 % too little"
        yield from _curves(CONTROLS, little, (100,), ((1, 1),), _with_steps()[:1], _TOO_LITTLE)
        not_split = ", each with all of the budget"
        yield self.series(CONTROLS, not_split, ValuesRelease, 12_000, split=False)
        asked: dict[str, Any] = {"epsilon": 1, "mechanism": "pamst"}
        title, draws = "PTClust with the paper's scales", min(2 * self.effort.draws, 10_000)
        printed, kind = {**asked, "calibration": "published"}, unsafe.UnsafePublishedScales
        yield self.release(CONTROLS, title, kind, draws, "linf", printed, _CYCLE, 0.0)
        title = "whole release, tau from private weights"
        draws = min(self.effort.whole_draws, 1_000)
        yield self.release(CONTROLS, title, unsafe.UnsafePrivateShift, draws, "linf", asked)
        settings: list[tuple[str, Build]] = [
            ("without a bound", unsafe.unsafe_unbounded),
            ("the first records of a person", unsafe.unsafe_first_records),
            ("on the pairs that occur", unsafe.unsafe_pairs_that_occur),
        ]
        for what_errs, build in settings:
            drawn = BuiltRelease(build, Tables.of_flows(), 1.0)
            draws = min(self.effort.whole_draws, 200)
            yield self.built(CONTROLS, f"flows of persons, {what_errs}", drawn, draws)

    def tree(
        self,
        mechanism: Mechanism,
        law: TreeLaw,
        sensitivity: Sensitivity,
        budget: Budget,
        change: Callable[[float], float] | None = None,
        what: str = "",
    ) -> Audit:
        """Audit the exponent of a mechanism's tree; ``change``, named ``what``, makes a control."""
        pure = budget.rho is None

        def worst() -> Worst:
            topology = make_graph(law.graph, np.zeros(len(law.graph.edges))).topology
            tree = mechanism.calibrate(topology, sensitivity, budget, split=ALONE).tree
            assert tree is not None  # noqa: S101 - there is a law of it
            exponent = tree.exponent if change is None else change(tree.exponent)
            search, starts = (worst_loss, 1) if pure else (worst_divergence, 2)
            starts *= self.effort.starts
            return search(law, sensitivity, exponent, starts=starts, seed=self.seed)

        where = f"{law.title}{what}", law.graph.name, str(sensitivity)
        return _exact(EXACT if change is None else CONTROLS, *where, _claim_of(budget), worst)

    def corner(
        self,
        section: str,
        law: Distribution,
        relation: str,
        declared: Sensitivity | None = None,
        what: str = "",
    ) -> Audit:
        """Audit noise under combined bounds; a control is calibrated for others, ``declared``."""
        sensitivity = _RELATIONS[relation]
        budget = Budget.zcdp("1/8") if law.unit == "rho" else Budget.pure(1)
        noise = law.calibrate(declared or sensitivity, _COMBINED_VALUES, budget.amount)
        where = f"{noise.distribution}{what}", f"{noise.n_values} values", str(sensitivity)
        worst = partial(worst_corner, noise, sensitivity, self.seed)
        return _exact(section, *where, _claim_of(budget), worst)

    def release(
        self,
        section: str,
        title: str,
        kind: type[ValuesRelease],
        draws: int,
        relation: str,
        asked: dict[str, Any],
        graph: SmallGraph = GRAPHS["K4"],
        spread: float = 2 * _MU,
    ) -> Audit:
        """Audit releases: epsilon at delta by an event, and rho where that is what was shared."""
        sensitivity = _RELATIONS[relation]
        pair = neighbours(len(graph.edges), sensitivity, spread)
        topology = make_graph(graph, pair.weights).topology
        planned = plan(topology, **{"epsilon": _EPSILON, "sensitivity": sensitivity, **asked})
        epsilon, delta = float(planned.budget.epsilon), float(planned.budget.delta)
        claims: list[Tested] = [(("epsilon", epsilon, delta), EventTester(delta))]
        if delta:
            zcdp = planned.chosen.spent.implied_zcdp
            assert zcdp is not None  # noqa: S101 - without it there is no statement
            claims.append((("rho", float(zcdp.amount), 0.0), DivergenceTester()))
        if not title:
            noise, publishes = planned.chosen.weights.law.title, planned.mechanism.publishes
            title = f"{planned.mechanism.name}, {noise} noise on the {publishes}"
        sides = pair.weights, pair.neighbour
        drawn = kind(graph, planned, pair)
        return self.drawn(section, title, drawn, sides, claims, draws, str(sensitivity))

    def series(
        self, section: str, what: str, kind: type[ValuesRelease], draws: int, *, split: bool = True
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
        sides, title = (pair.weights, pair.neighbour), f"series of two, Gaussian noise{what}"
        return self.drawn(section, title, both, sides, claims, draws, str(sensitivity))

    def built(self, section: str, title: str, drawn: BuiltRelease, draws: int) -> Audit:
        """Audit what is built of two tables and then published."""
        tables, delta = drawn.tables, drawn.delta
        claim: Tested = ("epsilon", drawn.epsilon, delta), EventTester(delta)
        sides = tables.table, tables.neighbour
        return self.drawn(section, title, drawn, sides, [claim], draws, tables.words)

    def drawn(
        self,
        section: str,
        title: str,
        drawn: Drawable[Private],
        sides: tuple[Private, Private],
        claims: list[Tested],
        draws: int,
        words: str,
    ) -> Audit:
        """Audit something by draws under two neighbours."""

        def run(error: float) -> list[Finding]:
            # Seeds are apart, since what is drawn may count on from its own.
            first, second = (
                drawn.draw(private, draws, seed_of(self.seed, section, title, words, side))
                for side, private in enumerate(sides)
            )
            where = section, title, f"2 x {draws:,} draws", words
            return [
                Finding(*where, *claim, *tester.bound(first, second, error), _expected(section))
                for claim, tester in claims
            ]

        return Audit(f"{title}, {words}", len(claims), run)


def _pure(epsilon: float) -> Tested:
    return ("epsilon", epsilon, 0.0), EventTester()


def _claim_of(budget: Budget) -> Claim:
    return budget.unit, float(budget.amount), 0.0


def _with_steps() -> list[str]:
    """Return the mechanisms that share (epsilon, delta) between a tree and Gaussian noise."""
    graph = GRAPHS["K3"]
    return [each.name for each in MECHANISMS if each.laws(graph) and "approximate" in each.variants]


def _cube(
    section: str,
    title: str,
    n_values: int,
    *,
    rounding: int = 1,
    rounded: Rounding = rounded_to_lattice,
) -> Audit:
    """Audit cube noise on a small lattice."""
    noise, claim = cube_noise_of(n_values, rounding=rounding), 1.0
    if rounding and (spent := spent_by(noise, CUBE_CHANGE)):
        claim = float(spent.epsilon)
    where = title, f"{n_values} values, a lattice of a quarter of the noise", str(CUBE_CHANGE)
    worst = partial(worst_cube, noise, rounded)
    return _exact(section, *where, ("epsilon", claim, 0.0), worst)


def _curves(
    section: str,
    what: str,
    steps: tuple[int, ...],
    shares: tuple[tuple[int, int], ...],
    mechanisms: list[str],
    more: float,
) -> Iterator[Audit]:
    """Audit Gaussian noise that was calibrated by a curve; a control loses ``more``."""

    def one(title: str, setting: str, worst: Callable[[], Worst]) -> Audit:
        where = f"{title}{what}", setting, "the largest change"
        return _exact(section, *where, ("epsilon", EPSILON, DELTA), worst)

    lattice = f"a lattice of {LATTICE:,} steps a deviation"
    yield one("Gaussian by its own curve", lattice, partial(worst_gaussian, more))
    for name in mechanisms:
        for n in steps:
            setting = f"{n} adaptive steps, then the noise"
            yield one(f"{name}, joint curve", setting, partial(worst_after_steps, name, n, more))
    for pair in shares:
        setting = "two releases, the second after the first"
        yield one(f"series, shares {pair}", setting, partial(worst_series, pair, more))


def _exact(
    section: str,
    title: str,
    setting: str,
    neighbours: str,
    claim: Claim,
    worst: Callable[[], Worst],
) -> Audit:
    """Audit a claim by the worst loss there is."""

    def run(error: float) -> list[Finding]:  # noqa: ARG001 - nothing is left to chance
        found = worst()
        result = found.loss, found.outcome, _expected(section)
        return [Finding(section, title, setting, neighbours, *claim, *result)]

    return Audit(f"{title} on {setting}, {neighbours}", 0, run)


def _expected(section: str) -> Verdict:
    return "refuted" if section == CONTROLS else "stands"
