"""A series in a folder: every release is charged once, kept, and compared with the one before."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ptclust._traces import leaves_no_trace
from ptclust.errors import BudgetError, FileError, InputError, PtclustError, UsageError
from ptclust.graph import Graph
from ptclust.graph.topology import as_distances
from ptclust.inputs import as_private_graph
from ptclust.ledger import Ledger, Payment
from ptclust.ledger.amounts import Account
from ptclust.ledger.ledger import Charge
from ptclust.mechanisms import MECHANISMS, Calibration
from ptclust.pipeline import ReleaseRequest, publish, sensitivity_of
from ptclust.planning.series import (
    FINEST_T,
    MOST_VALUES,
    RULES,
    Per,
    Rule,
    SeriesBudget,
    joint_epsilon,
    plan_series,
    whole_of,
)
from ptclust.privacy._numbers import float_up
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import spent_by
from ptclust.privacy.provenance import Spending
from ptclust.privacy.sensitivity import Sensitivity
from ptclust.privacy.statement import PrivacyStatement
from ptclust.published import Published
from ptclust.release import Release
from ptclust.release.changes import Changes
from ptclust.trees.mst import minimum_spanning_edges
from ptclust.trees.tree import Tree

LEDGER = "series.ledger"
_PERIOD = re.compile(r"[^/\\;\x00-\x1f.][^/\\;\x00-\x1f]{0,99}")
_FILE = re.compile(r"(\d{3,5})-(.+)\.json")


@dataclass(frozen=True)
class Terms:
    """The terms of a series, fixed when it began and stored in the ledger."""

    budget: SeriesBudget
    rule: Rule
    mechanism: str
    amount: Fraction
    epsilons: tuple[Fraction, ...]  # of each release alone
    unit: str | None  # what is protected, in the words of whoever publishes

    def written(self) -> str:
        """Return them as a line for the ledger."""
        budget = self.budget
        content = {
            "series": budget.n_releases,
            "per": budget.per,
            "epsilon": str(budget.total.epsilon),
            "delta": str(budget.total.delta),
            "shares": None if budget.shares is None else [str(each) for each in budget.parts],
            "rule": self.rule,
            "mechanism": self.mechanism,
            "amount": str(self.amount),
            "each": [str(each) for each in self.epsilons],
            "unit": self.unit,
        }
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Terms:
        """Read what `written` wrote; UsageError if it is no series."""
        try:
            content = json.loads(text)
            total = Fraction(content["epsilon"]), Fraction(content["delta"])
            if (shares := content["shares"]) is None:
                budget = SeriesBudget(*total, releases=content["series"], per=content["per"])
            else:
                shares = tuple(map(Fraction, shares))
                budget = SeriesBudget(*total, shares=shares, per=content["per"])
            rule, mechanism, unit = (content[name] for name in ("rule", "mechanism", "unit"))
            each = tuple(map(Fraction, content["each"]))
            return cls(budget, rule, mechanism, Fraction(content["amount"]), each, unit)
        except (ValueError, KeyError, TypeError):
            raise UsageError("this dataset of the ledger does not hold a series") from None

    @property
    def whole(self) -> Budget:
        """What all releases together spend on one privacy unit that is in all periods."""
        return whole_of(self.budget, self.rule, self.amount)

    def sentence(self, series: str, number: int) -> str:
        """Return what the statement of a release says of its series."""
        budget, count = self.budget, self.budget.n_releases
        promise = every = f"all {count} periods together"
        promise += f" is protected by {budget.total}"
        if budget.per == "period":
            promise = f"one period is protected by {budget.total}; to {every} only by {self.whole}"
        return (
            f"release {number} of {count} of the series {series!r}: what one privacy unit "
            f"contributes to {promise} (added up by {RULES[self.rule]})"
        )


@dataclass(frozen=True, kw_only=True)
class SeriesPayment(Payment):
    """What pays for one release of a series; a charge that led to no release is used again."""

    ledger: Ledger
    terms: Terms
    number: int
    period: str
    waiting: str | None  # the id of a charge for this release that nothing came of

    def stated(self, statement: PrivacyStatement) -> PrivacyStatement:
        """Return the statement with the series named, under the id that is charged for it."""
        words = self.terms.sentence(self.dataset, self.number)
        known = statement.id if self.waiting is None else self.waiting
        return replace(statement, id=known, caveats=(*statement.caveats, words))

    def settle(self, spendings: Iterable[Spending]) -> None:
        """Refuse a graph whose building spent budget: the total of a series has no part for it."""
        for spent in spendings:
            raise UsageError(
                f"building this graph spent {spent.budget}, which the total of a series does "
                "not cover: build it with bounds that are public, so that nothing is spent"
            )

    def charge(self, spent: Budget, *, statement_id: str, description: str) -> None:
        """Charge the release, unless it was charged before and nothing was handed over."""
        if self.waiting is None:
            self.ledger.charge(
                self.dataset,
                spent,
                zcdp=None if self.terms.rule == "pure" else spent.implied_zcdp,
                statement_id=statement_id,
                description=f"{_slot(self.number, self.period)}; {description}"[:1000],
                terms=self.terms.written(),
            )


@leaves_no_trace
class Series:
    """Releases of the same people, period after period, in a folder.

    Parameters
    ----------
    folder : path
        Where the releases are kept, and the ledger unless another is given.
    epsilon, delta : float
        The total of all releases together.
    releases : int, optional
        How many there will be, with equal shares; or
    shares : sequence of float, optional
        one relative share for each.
    per : {"series", "period"}
        Whether the total protects a person in all periods, or in each alone.
    name : str, optional
        The dataset of the ledger; by default the name of the folder.
    ledger : path, optional
        By default ``series.ledger`` in the folder.

    Notes
    -----
    *Privacy.* A release is charged before anything is drawn, and named in the ledger as handed over
    before its file gets its name. A charge of which nothing was handed over is used for the same
    period again. So a process that is killed at any instant loses nothing and spends nothing twice.

    Examples
    --------
    >>> import tempfile
    >>> from ptclust.datasets import planted_graph
    >>> folder = tempfile.TemporaryDirectory()
    >>> series = Series(folder.name, epsilon=3, delta=1e-6, releases=12, name="moons")
    >>> graph = planted_graph("moons", 100).graph
    >>> settings = {"sensitivity": Sensitivity(linf=1e-6), "privacy_unit": "one person"}
    >>> series.publish(graph, "2026-01", **settings).n_clusters
    2
    >>> series.publish(graph, "2026-02", **settings).statement.caveats[-1][:45]
    "release 2 of 12 of the series 'moons': what o"
    >>> len(series.releases), series.account.n_charges
    (2, 2)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        epsilon: float | Fraction,
        delta: float | Fraction = 0,
        releases: int | None = None,
        shares: tuple[float | Fraction, ...] | None = None,
        per: Per = "series",
        name: str | None = None,
        ledger: str | os.PathLike[str] | None = None,
    ) -> None:
        shares = None if shares is None else tuple(shares)
        self.budget = SeriesBudget(epsilon, delta, releases, shares, per)
        self.folder = Path(folder).absolute()
        self.name = self.folder.name if name is None else name
        self.ledger_path = self.folder / LEDGER if ledger is None else Path(ledger).absolute()

    def __repr__(self) -> str:
        return f"Series({str(self.folder)!r}, {self.budget}, name={self.name!r})"

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        name: str | None = None,
        ledger: str | os.PathLike[str] | None = None,
    ) -> Series:
        """Return the series in a folder, with the budget that its ledger holds."""
        found = cls(folder, epsilon=1, releases=1, name=name, ledger=ledger)
        found.budget = found.terms.budget
        return found

    @property
    def ledger(self) -> Ledger:
        """The ledger that holds the series."""
        return Ledger.open(self.ledger_path)

    @property
    def account(self) -> Account:
        """What was spent of the total, and what is left, in what adds up."""
        return self.ledger.account(self.name)

    @property
    def terms(self) -> Terms:
        """The terms of the series, fixed when it began."""
        return Terms.read(self.account.terms)

    @property
    def releases(self) -> dict[str, Release]:
        """The releases by period, in their order."""
        return {period: Release.load(path) for period, path in self._files.items()}

    @property
    def _files(self) -> dict[str, Path]:
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        named = [(match, path) for path in paths if (match := _FILE.fullmatch(path.name))]
        named.sort(key=lambda found: (int(found[0][1]), found[0][2]))
        return {match[2]: path for match, path in named}

    @property
    def changes(self) -> dict[str, Changes]:
        """What changed from every release to the next, by the later period."""
        pairs = pairwise(self.releases.items())
        return {period: now.compare(before).changes for (_, before), (period, now) in pairs}

    def publish(
        self,
        graph: Graph,
        period: str,
        *,
        sensitivity: Sensitivity | None = None,
        progress: Callable[[str], None] = lambda _: None,
        **settings: Any,
    ) -> Release:
        """Publish the clusters of a period; a period that is there is returned, and costs nothing.

        Other settings are those of `ptclust.PTClust`: ``mechanism``, ``clip`` and so on.
        """
        private = as_private_graph(graph)
        request = ReleaseRequest(
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            sensitivity=sensitivity_of(private, sensitivity),
            **settings,
        )
        return self.release(lambda: private, request, period, progress=progress)

    def release(
        self,
        read: Callable[[], Any],
        request: ReleaseRequest,
        period: str,
        *,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Release:
        """Publish a period as requested; ``read`` is called for the graph if it is needed."""
        if not isinstance(period, str) or not _PERIOD.fullmatch(period):
            raise UsageError(f"{period!r} cannot name a period: it is part of the name of a file")
        if request.random_state is not None:
            raise UsageError("a series is private: leave random_state= out")
        self.folder.mkdir(parents=True, exist_ok=True)
        with _alone(self.folder / ".lock"):
            if (path := self._files.get(period)) is not None:
                return Release.load(path)
            number, charge = self._charge_of(period)
            aside = self.folder / f".{number:03d}-{period}.drawn"
            drawn = None if charge is None else self._kept(aside, charge, period)
            if drawn is None:
                drawn = self._drawn(read(), request, number, period, charge, aside, progress)
            return self._finished(drawn, request, number, period, aside)

    def _drawn(
        self,
        graph: Any,
        request: ReleaseRequest,
        number: int,
        period: str,
        charge: Charge | None,
        aside: Path,
        progress: Callable[[str], None],
    ) -> Release:
        """Charge a release, draw it, and keep it aside."""
        terms = self._begun(graph, request)
        if number > terms.budget.n_releases:
            raise BudgetError(
                f"the series {self.name!r} has {terms.budget.n_releases} releases, and all were "
                f"made: nothing was charged and nothing was drawn for {period!r}"
            )
        if graph.n_edges * terms.budget.n_releases > MOST_VALUES:
            raise UsageError(f"a series has at most {MOST_VALUES:,} weights in all")
        payment = SeriesPayment(
            ledger=self.ledger,
            dataset=self.name,
            terms=terms,
            number=number,
            period=period,
            waiting=None if charge is None else charge.statement_id,
        )
        epsilon = terms.epsilons[number - 1]
        asked = replace(request, epsilon=epsilon, mechanism=terms.mechanism, payment=payment)
        return publish(
            graph, asked, keep=lambda made: made.save(aside, overwrite=True), progress=progress
        )

    def _begun(self, graph: Any, request: ReleaseRequest) -> Terms:
        """Return the terms of the series, which begins with its first release."""
        unit = graph.unit if request.privacy_unit is None else request.privacy_unit
        if not self._known:
            plan = plan_series(graph.topology, request, self.budget)
            each = tuple(Fraction(one.request.epsilon) for one in plan.plans)
            terms = Terms(plan.budget, plan.rule, plan.mechanism, plan.amount, each, unit)
            if not self.ledger_path.exists():
                Ledger.create(self.ledger_path)
            self.ledger.add_dataset(self.name, plan.account, terms=terms.written())
            return terms
        terms = self.terms
        if terms.budget.total != self.budget.total or terms.budget.parts != self.budget.parts:
            raise UsageError(
                f"the series {self.name!r} began with {terms.budget.n_releases} releases and a "
                f"total of {terms.budget.total}, which is never changed"
            )
        if terms.unit != unit:
            raise UsageError(
                f"the series {self.name!r} protects {terms.unit or 'a unit without a name'}, and "
                f"this release {unit or 'one without a name'}: one series has one privacy unit"
            )
        return terms

    def _finished(
        self, release: Release, request: ReleaseRequest, number: int, period: str, aside: Path
    ) -> Release:
        """Give a release that is paid for its clusters, their numbers, and its file its name."""
        if release.clustering is None:
            release = release.clustered(request.clustering)
        earlier = [path for path in self._files.values() if int(path.name.split("-")[0]) < number]
        if earlier:
            release = release.follow(Release.load(earlier[-1]))
        release.save(self.folder / f"{number:03d}-{period}.json")
        aside.unlink(missing_ok=True)
        return release

    def _kept(self, aside: Path, charge: Charge, period: str) -> Release | None:
        """Return what was drawn and not named yet, once the ledger says that it is handed over."""
        if charge.released and not aside.exists():
            raise FileError(
                f"the release of {period!r} was handed over, and its file is gone from "
                f"{self.folder}: get it back from a copy; it is never drawn twice"
            )
        try:
            kept = Release.load(aside)
        except PtclustError:
            if charge.released:
                raise
            return None  # it was not written, or not whole, so nobody has it
        if kept.statement.id != charge.statement_id:
            raise InputError(f"{aside} is not the release that was charged for its period")
        if not charge.released:
            self.ledger.confirm(charge.statement_id)
        return kept

    @property
    def _known(self) -> bool:
        """Whether the ledger holds the series already."""
        return self.ledger_path.exists() and any(
            account.dataset == self.name for account in self.ledger.status()
        )

    def _charge_of(self, period: str) -> tuple[int, Charge | None]:
        """Return the number of a period and its charge; None if it was not charged, and is next."""
        history = self.ledger.history(self.name) if self._known else ()
        for number, charge in enumerate(history, 1):
            if charge.description.startswith(f"{_slot(number, period)}; "):
                return number, charge
        return len(history) + 1, None

    def verify(self) -> Budget | None:
        """Return what the releases of this folder spend together, computed from their noise.

        InputError if that is more than the total. None if there are none.
        """
        releases, terms = list(self.releases.values()), self.terms
        if not releases:
            return None
        statements = [each.statement for each in releases]
        if terms.rule == "pure":
            spent = Budget.pure(sum(Fraction(each.epsilon) for each in statements))
        else:
            rhos = [Fraction(each.rho or 0) for each in statements]
            delta = terms.budget.total.delta
            epsilon = Budget.zcdp(sum(rhos)).epsilon_at(delta)
            if terms.rule == "gaussian":
                ts = [
                    Fraction(each.weight_noise.scale) / Fraction(2) ** each.weight_noise.granularity
                    for each in releases
                ]
                n_values = sum(each.weight_noise.n_values for each in releases)
                if min(ts) < FINEST_T or n_values > MOST_VALUES:
                    raise InputError("the noise of a release is on a lattice too coarse")
                epsilon = min(epsilon, joint_epsilon(rhos, min(ts), n_values, delta))
            spent = Budget.approximate(epsilon, delta)
        if not spent.fits_in(terms.whole):
            raise InputError(f"the releases spend {spent}, more than the total, {terms.whole}")
        return spent

    def combined(self) -> Release:
        """Return all periods as one release of the mean weights, less noisy than any of them.

        Weights are averaged with the inverse variances of their noise, clusters found anew. It
        holds for Gaussian noise on the same topology.

        Notes
        -----
        *Privacy.* Post-processing: it spends nothing. The statement says what the releases spend
        together, which is what noise of this size on mean weights spends: a person who moves the
        weights of every period by at most d moves their mean by at most d, and mu of all is the
        root of the sum of squares.
        """
        releases, spent = list(self.releases.values()), self.verify()
        if self.terms.rule != "gaussian" or spent is None:
            raise UsageError("periods are combined where all of them have Gaussian noise")
        first = releases[0]
        topology, kind, stated = first.topology, first.kind, first.statement
        for each in releases[1:]:
            same = each.kind == kind and each.topology == topology
            if not same or each.statement.sensitivity != stated.sensitivity:
                raise UsageError(
                    "periods are combined if they have one topology, one kind and one sensitivity"
                )
        precision = np.array([1.0 / each.weight_noise.scale**2 for each in releases])
        weights = np.zeros(topology.n_edges)
        for share, each in zip(precision / precision.sum(), releases, strict=True):
            weights += share * each.noisy_weights
        noise = replace(first.weight_noise, scale=float(precision.sum() ** -0.5))
        distances = as_distances(weights, kind)
        edges = minimum_spanning_edges(
            topology.sources, topology.targets, distances, topology.n_nodes
        )
        tree = Tree(topology.restricted_to(edges), weights[edges], edges, kind=kind)
        mechanism = MECHANISMS[first.published.mechanism]
        rho = spent_by(noise, Sensitivity(**stated.sensitivity))
        assert rho is not None  # noqa: S101 - there are values
        whole = replace(spent, _zcdp=rho.amount)
        words = f"the mean of {len(releases)} releases of the series {self.name!r}"
        statement = replace(
            stated,
            epsilon=float_up(whole.epsilon * (1 + Fraction(1, 10**9))),
            rho=float_up(rho.amount),
            mechanisms=mechanism.uses(Calibration(mechanism.name, None, noise, whole, rho)),
            composition="",
            composition_rule="",
            neighbours="",
            id=str(uuid4()),
            caveats=(*stated.caveats[:-1], f"{words}: it spends nothing beside them"),
        )
        published = Published(mechanism.name, noise, tree, topology, weights)
        return Release(published=published, statement=statement).recluster()


def _slot(number: int, period: str) -> str:
    return f"series release {number}: {period}"


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let no other process work on the series meanwhile; the lock goes with the process."""
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
