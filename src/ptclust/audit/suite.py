"""All audits of a run: every claim of a release, and every control that has to be caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ptclust._statistics import seed_of
from ptclust.audit import controls as unsafe
from ptclust.audit import noise as exact
from ptclust.audit import tables
from ptclust.audit.mechanisms import (
    NoiseAlone,
    Pair,
    ValuesRelease,
    WholeRelease,
    make_graph,
    neighbours,
    series_of_two,
)
from ptclust.audit.report import AuditReport, Finding, Verdict
from ptclust.audit.search import Worst, worst_divergence, worst_loss
from ptclust.audit.statistical import Draw, Tester, epsilon_bound, rho_bound
from ptclust.audit.tables import Build, Tables
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


_Row = tuple[str, Draw, Budget, int]  # title, what is drawn, what it claims, number of draws


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
            yield _cube(n_values)
        for relation in _COMBINED:
            for distribution in DISTRIBUTIONS:
                yield self.corner(distribution, relation)
        yield from _curves()

    def releases(self) -> Iterator[Audit]:
        """Draw from every mechanism, and whole releases of each."""
        draws, whole = self.effort.draws, self.effort.whole_draws
        for mechanism in MECHANISMS:
            for variant in mechanism.variants:
                for relation in ("linf", "l1", "l2", "l1 and linf"):
                    asked = {"delta": _DELTA_OF[variant], "mechanism": mechanism.name}
                    yield self.release(ValuesRelease, draws, relation, asked)
        for mechanism in MECHANISMS:
            asked = {"delta": _DELTA_OF[mechanism.variants[-1]], "mechanism": mechanism.name}
            yield self.release(WholeRelease, whole, mechanism.norm, asked)
        yield self.series(ValuesRelease, draws)
        yield self.series(WholeRelease, whole)

    def from_records(self) -> Iterator[Audit]:
        """Build of neighbouring tables and publish."""
        for title, build, pair, delta in (
            ("flows of single records", tables.build_records, Tables.of_records(), 0.0),
            ("flows of persons", tables.build_flows, Tables.of_flows(), 0.0),
            ("flows of persons", tables.build_flows, Tables.of_flows(), _DELTA),
            ("visits", tables.build_visits, Tables.of_visits(), 0.0),
        ):
            claim, draws = Budget.approximate(_EPSILON, delta), self.effort.whole_draws // 2
            yield self.built(BUILT, title, build, pair, claim, draws)

    def of_one_value(self) -> Iterator[Audit]:
        """Draw noise on one value, then what is broken about it."""
        laplace, gaussian = LAPLACE.calibrate(_UNIT, 1, 2), GAUSSIAN.calibrate(_UNIT, 1, 1)
        noises, cube = (laplace, LAPLACE.calibrate(_UNIT, 1, 1)), CUBE.calibrate(_UNIT, 1, 2)
        once, both, rho = Budget.pure(2), Budget.pure(3), Budget.zcdp(1)
        few, sources = min(self.effort.noise_draws, 30_000), self.effort.secure_controls

        def noisy(secure: bool, kind: Any = NoiseAlone, what: str = "") -> list[_Row]:
            draws = self.effort.noise_draws if secure else _SEEDED_DRAWS
            by = ("secure" if secure else "seeded") + what
            return [
                (f"Laplace, {by}", kind(laplace, _PAIR, secure).draw, once, draws),
                (f"Gaussian, {by}", kind(gaussian, _PAIR, secure).draw, rho, draws),
            ]

        stream, little = partial(unsafe.unsafe_stream, noises), unsafe.unsafe_too_little
        in_floats = unsafe.UnsafeNumpyNoise(laplace, _PAIR).draw
        apart = partial(stream, reused=False)
        claims: list[_Row] = [
            *noisy(secure=True),
            *noisy(secure=False),
            ("two Laplace releases, a stream each (seeded)", apart, both, few),
        ]
        controls: list[_Row] = [
            *(row for secure in sources for row in noisy(secure, little, ", 5 % too little")),
            ("cube, half-width published", partial(unsafe.unsafe_half_width, cube), once, few),
            ("Laplace by numpy", in_floats, once, few),
            ("two Laplace releases, one stream", stream, both, few),
        ]
        for section, rows in ((NOISE, claims), (CONTROLS, controls)):
            for title, draw, claim, draws in rows:
                words = "one value, change 1"
                yield self.drawn(section, title, draw, _PAIR, [claim], draws, words)

    def controls(self) -> Iterator[Audit]:
        """Do the same to what is broken on purpose."""
        for mechanism in MECHANISMS:
            # The last law has the tightest claim: of PAMST, the one with the root known.
            for law in mechanism.laws(GRAPHS["K3"])[-1:]:
                yield self.tree(mechanism, law, _RELATIONS["linf"], Budget.pure(1), control=True)
        yield _cube(2, "cube, rounding to the lattice not paid for", rounding=0)
        yield _cube(2, "cube, rounded away from zero", rounded=unsafe.unsafe_rounding)
        without = Sensitivity(l2=_MU), ", without the rest of l1"
        yield self.corner(GAUSSIAN, "l1 and linf", *without)
        yield from _curves(control=True)
        yield self.series(ValuesRelease, 12_000, split=False)
        asked: dict[str, Any] = {"epsilon": 1, "mechanism": "pamst"}
        printed, kind = {**asked, "calibration": "published"}, unsafe.UnsafePublishedScales
        title, draws = "PTClust with the paper's scales", min(2 * self.effort.draws, 10_000)
        yield self.release(kind, draws, "linf", printed, title, _CYCLE, 0.0)
        title = "whole release, tau from private weights"
        draws = min(self.effort.whole_draws, 1_000)
        yield self.release(unsafe.UnsafePrivateShift, draws, "linf", asked, title)
        for what_errs, build in (
            ("without a bound", unsafe.unsafe_unbounded),
            ("the first records of a person", unsafe.unsafe_first_records),
            ("on the pairs that occur", unsafe.unsafe_pairs_that_occur),
        ):
            title, draws = f"flows of persons, {what_errs}", min(self.effort.whole_draws, 200)
            claim, pair = Budget.pure(1), Tables.of_flows()
            yield self.built(CONTROLS, title, build, pair, claim, draws)

    def tree(
        self,
        mechanism: Mechanism,
        law: TreeLaw,
        sensitivity: Sensitivity,
        budget: Budget,
        *,
        control: bool = False,
    ) -> Audit:
        """Audit the exponent of a mechanism's tree."""

        def worst() -> Worst:
            topology = make_graph(law.graph, np.zeros(len(law.graph.edges))).topology
            tree = mechanism.calibrate(topology, sensitivity, budget, split=ALONE).tree
            assert tree is not None  # noqa: S101 - there is a law of it
            exponent = unsafe.unsafe_exponent(tree.exponent) if control else tree.exponent
            search, starts = (worst_loss, 1) if budget.rho is None else (worst_divergence, 2)
            starts *= self.effort.starts
            return search(law, sensitivity, exponent, starts=starts, seed=self.seed)

        section, what = (CONTROLS, ", exponent 5 % too large") if control else (EXACT, "")
        where = f"{law.title}{what}", law.graph.name, str(sensitivity)
        return _exact(section, *where, budget, worst)

    def corner(
        self, law: Distribution, relation: str, declared: Sensitivity | None = None, what: str = ""
    ) -> Audit:
        """Audit noise under combined bounds; a control is calibrated for others, ``declared``."""
        sensitivity = _RELATIONS[relation]
        budget = Budget.zcdp("1/8") if law.unit == "rho" else Budget.pure(1)
        noise = law.calibrate(declared or sensitivity, _COMBINED_VALUES, budget.amount)
        where = f"{noise.distribution}{what}", f"{noise.n_values} values", str(sensitivity)
        worst = partial(exact.worst_corner, noise, sensitivity, self.seed)
        return _exact(CONTROLS if declared else EXACT_NOISE, *where, budget, worst)

    def release(
        self,
        kind: type[ValuesRelease],
        draws: int,
        relation: str,
        asked: dict[str, Any],
        title: str = "",
        graph: SmallGraph = GRAPHS["K4"],
        spread: float = 2 * _MU,
    ) -> Audit:
        """Audit releases: epsilon at delta by an event, and rho where that is what was shared.

        Controls have a title of their own.
        """
        sensitivity = _RELATIONS[relation]
        pair = neighbours(len(graph.edges), sensitivity, spread)
        topology = make_graph(graph, pair.weights).topology
        planned = plan(topology, **{"epsilon": _EPSILON, "sensitivity": sensitivity, **asked})
        claims = [planned.budget]
        if planned.budget.delta:
            zcdp = planned.chosen.spent.implied_zcdp
            assert zcdp is not None  # noqa: S101 - without it there is no statement
            claims.append(zcdp)
        section, noise = CONTROLS, planned.chosen.weights.law.title
        if not title:
            section, publishes = WHOLE if kind.secure else DRAWN, planned.mechanism.publishes
            title = f"{planned.mechanism.name}, {noise} noise on the {publishes}"
        draw = kind(graph, planned, pair).draw
        return self.drawn(section, title, draw, pair, claims, draws, str(sensitivity))

    def series(self, kind: type[ValuesRelease], draws: int, *, split: bool = True) -> Audit:
        """Audit two releases of the same people by their total; a control does not split it."""
        graph, sensitivity = GRAPHS["K4"], _RELATIONS["l2"]
        pair = neighbours(len(graph.edges), sensitivity, 2 * _MU)
        total = SeriesBudget(_EPSILON, _DELTA, releases=2)
        request = PlanRequest(
            epsilon=total.epsilon, delta=total.delta, sensitivity=sensitivity, mechanism="gaussian"
        )
        planned = plan_series(make_graph(graph, pair.weights).topology, request, total)
        claims, title = [planned.account], "series of two, Gaussian noise"
        if split:  # few draws do not refute the epsilon of the control
            claims.append(Budget.approximate(_EPSILON, _DELTA))
            section, each = WHOLE if kind.secure else DRAWN, planned.plans[0]
        else:
            section, each = CONTROLS, planned.alone
            title += ", each with all of the budget"
        draw = partial(series_of_two, kind(graph, each, pair))
        return self.drawn(section, title, draw, pair, claims, draws, str(sensitivity))

    def built(
        self, section: str, title: str, build: Build, pair: Tables, claim: Budget, draws: int
    ) -> Audit:
        """Audit what is built of two tables and then published."""
        draw = partial(tables.built_release, build, pair, float(claim.epsilon), float(claim.delta))
        return self.drawn(section, title, draw, pair[:2], [claim], draws, pair.words)

    def drawn(
        self,
        section: str,
        title: str,
        draw: Draw,
        sides: tuple[Any, Any],
        claims: list[Budget],
        draws: int,
        words: str,
    ) -> Audit:
        """Audit something by draws under two neighbours."""

        def run(error: float) -> list[Finding]:
            # Seeds are apart, since what is drawn may count on from its own.
            first, second = (
                draw(private, draws, seed_of(self.seed, section, title, words, side))
                for side, private in enumerate(sides)
            )
            where = section, title, f"2 x {draws:,} draws", words
            return [_finding(where, each, _tester(each)(first, second, error)) for each in claims]

        return Audit(f"{title}, {words}", len(claims), run)


def _cube(
    n_values: int,
    control: str = "",
    *,
    rounding: int = 1,
    rounded: exact.Rounding = exact.rounded_to_lattice,
) -> Audit:
    """Audit cube noise on a small lattice."""
    noise, claim = exact.cube_noise_of(n_values, rounding=rounding), Budget.pure(1)
    if rounding:
        claim = spent_by(noise, exact.CUBE_CHANGE) or claim
    where = f"{n_values} values, a lattice of a quarter of the noise", str(exact.CUBE_CHANGE)
    section, worst = CONTROLS if control else EXACT_NOISE, partial(exact.worst_cube, noise, rounded)
    return _exact(section, control or CUBE.name, *where, claim, worst)


def _curves(*, control: bool = False) -> Iterator[Audit]:
    """Audit Gaussian noise that was calibrated by a curve; a control has 5 % too little of it."""
    # The mechanisms that share (epsilon, delta) between a tree and Gaussian noise
    drawing = [each for each in MECHANISMS if each.laws(GRAPHS["K3"])]
    names = [each.name for each in drawing if "approximate" in each.variants]
    steps, shares = [3, 30, 100], [(1, 1), (1, 3)]
    section, what, more = EXACT_NOISE, "", 0.0
    if control:
        section, what, more = CONTROLS, ", 5 % too little", _TOO_LITTLE
        names, steps, shares = names[:1], steps[-1:], shares[:1]
    lattice = f"a lattice of {exact.LATTICE:,} steps a deviation"
    adaptive, after = "adaptive steps, then the noise", "two releases, the second after the first"
    rows: list[tuple[str, str, Callable[[float], Worst]]] = [
        ("Gaussian by its own curve", lattice, exact.worst_gaussian),
        *(
            (f"{name}, joint curve", f"{n} {adaptive}", partial(exact.worst_after_steps, name, n))
            for name in names
            for n in steps
        ),
        *((f"series, shares {pair}", after, partial(exact.worst_series, pair)) for pair in shares),
    ]
    claim = Budget.approximate(exact.EPSILON, exact.DELTA)
    for title, setting, worst in rows:
        where = f"{title}{what}", setting, "the largest change"
        yield _exact(section, *where, claim, partial(worst, more))


def _exact(
    section: str,
    title: str,
    setting: str,
    neighbours: str,
    claim: Budget,
    worst: Callable[[], Worst],
) -> Audit:
    """Audit a claim by the worst loss there is."""

    def run(error: float) -> list[Finding]:  # noqa: ARG001 - nothing is left to chance
        found = worst()
        where = section, title, setting, neighbours
        return [_finding(where, claim, (found.loss, found.outcome))]

    return Audit(f"{title} on {setting}, {neighbours}", 0, run)


def _tester(claim: Budget) -> Tester:
    return rho_bound if claim.rho else partial(epsilon_bound, delta=float(claim.delta))


def _finding(where: tuple[str, str, str, str], claim: Budget, found: tuple[float, str]) -> Finding:
    delta = 0.0 if claim.rho else float(claim.delta)
    expected: Verdict = "refuted" if where[0] == CONTROLS else "stands"
    return Finding(*where, claim.unit, float(claim.amount), delta, *found, expected)
