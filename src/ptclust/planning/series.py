"""What a series of releases spends together, and what each of them may spend.

Three rules are sound; the one with the smallest visible gap is used. If all releases add Gaussian
noise and nothing else, their mu add up as squares, and the total is read from the curve of mu
itself (docs/proofs/gaussian-curve.md, "Several releases"). Of any mechanism with a rho, rho adds
up. Of pure releases epsilon adds up, and with delta = 0 nothing smaller can be proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from ptclust._markup import rendered
from ptclust._options import Per as Per
from ptclust._options import check_choice
from ptclust._tables import right_aligned
from ptclust.errors import UsageError
from ptclust.graph.topology import Topology
from ptclust.mechanisms import Mechanism
from ptclust.planning.plan import Plan, PlanRequest, make_plan
from ptclust.privacy._numbers import exact_positive, float_down
from ptclust.privacy.budget import Budget
from ptclust.privacy.gaussian_curve import joint_delta, largest_mu

Rule = Literal["gaussian", "zcdp", "pure"]

RULES: dict[Rule, str] = {
    "gaussian": "the joint curve of their Gaussian noise",
    "zcdp": "zCDP, rho adding up",
    "pure": "epsilon adding up",
}
#: What is paid for in advance, so that the total is known before the first release.
FINEST_T, MOST_VALUES = Fraction(2**39), 2**34
MOST_RELEASES = 10_000
_CLOSE = 1e-4  # of its share a release may leave unspent


@dataclass(frozen=True)
class SeriesBudget:
    """The total of a series: (epsilon, delta) for all releases, and whom that protects.

    ``per="series"`` protects all that a person did in all periods together. ``per="period"``
    protects what a person did in any one period with (epsilon, delta), and all of it with less:
    `SeriesPlan.whole` says with how much.

    >>> SeriesBudget(3, 1e-6, releases=12).n_releases
    12
    >>> SeriesBudget(3, 1e-6, shares=(1, 1, 2)).parts
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
    """

    epsilon: float | Fraction
    delta: float | Fraction = 0
    releases: int | None = None
    shares: tuple[float | Fraction, ...] | None = None
    per: Per = "series"
    total: Budget = field(init=False, repr=False, compare=False)
    #: The share of each release; they add up to 1, or are 1 each of a budget per period.
    parts: tuple[Fraction, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.releases is None) == (self.shares is None):
            raise UsageError("give releases=, or shares=, one for each release")
        check_choice("per", self.per, Per)
        if self.shares is not None and self.per == "period":
            raise UsageError("with per='period' every release has all of epsilon: leave shares out")
        count = len(self.shares) if self.shares is not None else self.releases
        if type(count) is not int or not 1 <= count <= MOST_RELEASES:
            raise UsageError(f"a series has 1 to {MOST_RELEASES:,} releases, not {count!r}")
        object.__setattr__(self, "total", Budget.approximate(self.epsilon, self.delta))
        given = self.shares or (1,) * count
        sizes = [exact_positive("A share", each, "Shares are relative: 1, 2.") for each in given]
        whole = Fraction(1) if self.per == "period" else sum(sizes, Fraction(0))
        object.__setattr__(self, "parts", tuple(size / whole for size in sizes))

    @property
    def n_releases(self) -> int:
        """The number of releases."""
        return len(self.parts)

    def amount(self, rule: Rule) -> Fraction:
        """Return the rho, or the epsilon of pure releases, of which each release has its part."""
        if rule == "pure":
            return self.total.epsilon
        if rule == "zcdp":
            return self.total.to_zcdp().amount
        mu = Fraction(largest_mu(float_down(self.total.epsilon), float_down(self.total.delta)))
        for spare in (2**-22, 2**-16, 2**-10):
            rho = Fraction(float_down(mu**2 / 2)) * (1 - Fraction(spare))
            if joint_delta([rho], FINEST_T, MOST_VALUES, self.total.epsilon) <= self.total.delta:
                return Fraction(float_down(rho))
        raise UsageError("the joint curve is not known at so large a delta")


@dataclass(frozen=True)
class SeriesPlan:
    """How a series is to be published: by which rule, and with what noise each time."""

    budget: SeriesBudget
    rule: Rule
    amount: Fraction  # rho, or epsilon if pure, that the parts are parts of
    plans: tuple[Plan, ...]  # one for each release
    alone: Plan  # of one release with all of the budget
    split: Plan  # of one release with its part of epsilon and delta: plain addition

    @property
    def mechanism(self) -> str:
        """The mechanism of all releases."""
        return self.alone.chosen.mechanism

    @property
    def account(self) -> Budget:
        """The total that a ledger keeps, in what adds up."""
        amount = self.amount * sum(self.budget.parts)
        return Budget.pure(amount) if self.rule == "pure" else Budget.zcdp(amount)

    @cached_property
    def whole(self) -> Budget:
        """What all releases together spend on one person who is in all periods."""
        return whole_of(self.budget, self.rule, self.amount)

    @property
    def less_noise(self) -> float:
        """The noise of a release beside that of plain addition of epsilons, at its largest."""
        return max(plan.chosen.noise for plan in self.plans) / self.split.chosen.noise

    def to_dict(self) -> dict[str, Any]:
        """Return the public numbers."""
        return {
            "releases": self.budget.n_releases,
            "per": self.budget.per,
            "total": self.budget.total.to_dict(),
            "whole": self.whole.to_dict(),
            "rule": self.rule,
            "mechanism": self.mechanism,
            "noise_alone": self.alone.chosen.noise,
            "noise_if_split": self.split.chosen.noise,
            "each": [
                {"epsilon": float(plan.request.epsilon), "noise": plan.chosen.noise}
                for plan in self.plans
            ],
        }

    def to_text(self) -> str:
        """Return the plan as a page to read."""
        alone = self.alone.chosen.noise
        rows = [("release", "epsilon alone", "noise", "beside one alone")]
        by_part: dict[Fraction, list[int]] = {}
        for number, part in enumerate(self.budget.parts, start=1):
            by_part.setdefault(part, []).append(number)
        for numbers in by_part.values():
            plan = self.plans[numbers[0] - 1]
            epsilon, noise = float(plan.request.epsilon), plan.chosen.noise
            given = f"{epsilon:.4g}", f"{noise:.3g}", f"{noise / alone:.3g}"
            rows.append((_ranges(numbers), *given))
        table = "\n".join(right_aligned(rows))
        return rendered("series_plan.txt", plan=self, rule=RULES[self.rule], table=table).rstrip()

    __str__ = to_text


def whole_of(budget: SeriesBudget, rule: Rule, amount: Fraction) -> Budget:
    """Return what all releases spend together on one person who is in all periods."""
    if budget.per == "series":
        return budget.total
    amount *= budget.n_releases
    if rule == "pure":
        return Budget.pure(amount)
    delta = budget.total.delta
    epsilon = Budget.zcdp(amount).epsilon_at(delta)
    if rule == "gaussian":
        epsilon = min(epsilon, joint_epsilon([amount], FINEST_T, MOST_VALUES, delta))
    return Budget.approximate(epsilon, delta)


def joint_epsilon(
    rhos: list[Fraction], t: Fraction, n_values: int, delta: Fraction, digits: int = 40
) -> float:
    """Return an upper bound on the epsilon of Gaussian releases together, by their joint curve."""
    low, high = 0.0, 1.0
    while joint_delta(rhos, t, n_values, Fraction(high)) > delta:
        low, high = high, 2.0 * high
        if high > 2.0**14:
            return math.inf
    for _ in range(digits):
        middle = (low + high) / 2.0
        fits = joint_delta(rhos, t, n_values, Fraction(middle)) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high


def plan_series(topology: Topology, request: PlanRequest, budget: SeriesBudget) -> SeriesPlan:
    """Return the plan of a series from public numbers; UsageError if no mechanism fits it.

    ``request`` is that of one release with all of the budget.
    """
    if request.calibration != "sound":
        raise UsageError("a series has sound noise scales: leave calibration= out")
    found, problems = [], []
    for mechanism in request.mechanisms:
        alone = replace(request, mechanism=mechanism.name)
        for rule in _rules(mechanism, budget):
            try:
                found.append(_planned(topology, alone, budget, rule))
            except UsageError as problem:
                problems.append(problem)
    if not found:
        raise problems[0]
    return min(found, key=lambda plan: sum(each.chosen.visible_gap for each in plan.plans))


def _rules(mechanism: Mechanism, budget: SeriesBudget) -> list[Rule]:
    """Return the rules that may hold for a mechanism; what is not known to hold is not tried."""
    if not budget.total.delta:
        return ["pure"]
    if mechanism.name == "gaussian":
        return ["gaussian"]
    return ["zcdp", "pure"] if mechanism.variants == ("pure",) else ["zcdp"]


def _planned(
    topology: Topology, request: PlanRequest, budget: SeriesBudget, rule: Rule
) -> SeriesPlan:
    amount, total, parts = budget.amount(rule), budget.total, budget.parts
    by_part = {
        part: _plan_of_share(topology, request, rule, amount * part) for part in sorted(set(parts))
    }
    delta = total.delta / (budget.n_releases if budget.per == "series" else 1)
    split = replace(request, epsilon=total.epsilon * min(parts), delta=delta)
    plans = tuple(by_part[part] for part in parts)
    alone = make_plan(topology, request)
    return SeriesPlan(budget, rule, amount, plans, alone, make_plan(topology, split))


def _plan_of_share(topology: Topology, request: PlanRequest, rule: Rule, share: Fraction) -> Plan:
    """Return the plan of a release that spends its share of rho or epsilon, and no more."""
    if rule == "pure":
        return make_plan(topology, replace(request, epsilon=share))
    epsilon = Budget.zcdp(share).epsilon_at(request.budget.delta)
    for _ in range(30):
        plan = make_plan(topology, replace(request, epsilon=_round(epsilon)))
        spent = plan.chosen.spent.implied_zcdp
        if spent is None:
            break
        if share * Fraction(1 - _CLOSE) <= spent.amount <= share:
            return plan
        epsilon *= math.sqrt(float(share / spent.amount) * (1.0 - _CLOSE / 2))
    raise UsageError(f"{request.mechanism!r} has no rho that adds up: choose another mechanism")


def _round(epsilon: float) -> Fraction:
    """Return a number of seven digits that is not larger."""
    digits = 6 - math.floor(math.log10(epsilon))
    return Fraction(math.floor(epsilon * 10**digits), 10**digits)


def _ranges(numbers: list[int]) -> str:
    """Return numbers in words, such as 1 to 12.

    >>> _ranges([1, 2, 3]), _ranges([1, 3]), _ranges([2])
    ('1 to 3', '1, 3', '2')
    """
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
