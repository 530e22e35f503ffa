"""Lower bounds on what a mechanism spends, from draws under two neighbours.

A tester looks at some of the draws for whatever tells the neighbours apart, and measures it on the
others, so that its bound holds however much it searched. An event E refutes (epsilon, delta) if
Pr[E] > e^epsilon Pr'[E] + delta, beyond what chance allows (Clopper and Pearson 1934). A function g
refutes rho-zCDP if E[g] - log E'[e^g] > rho: by Donsker and Varadhan (1975) that is at most the
Kullback-Leibler divergence, the limit of Renyi's at order 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptclust._statistics import clopper_pearson
from ptclust._types import Bools, Floats, Ints

Values = NDArray[np.generic]
# What was seen in every draw, by feature: floats have an order, whole numbers are names.
Outcomes = dict[str, Values]
# Publishes outcomes about private data (weights, or a table), so many times, with a seed
Draw = Callable[[Any, int, int], Outcomes]

# The feature that tells neighbours apart best, if the mechanism is what it claims to be.
LIKELIHOOD = "likelihood ratio"
_LEARNING_ERROR = 1e-6  # guards against events that were seen too seldom to be trusted
_CUTS = 100
_ENOUGH = 100_000  # draws to learn from


class Bound(NamedTuple):
    """A lower bound that holds but for the error it was computed for, and what it rests on."""

    value: float
    witness: str


Tester = Callable[[Outcomes, Outcomes, float], Bound]  # of both draws, and the error probability


@dataclass(frozen=True)
class Event:
    """A set of outcomes: a feature beyond a cut, or one of several names."""

    feature: str
    cut: float = 0.0
    above: bool = True
    names: frozenset[int] | None = None

    def happened(self, outcomes: Outcomes) -> Bools:
        """Return in which draws the event occurred; a missing feature (NaN) is beyond no cut."""
        values = outcomes[self.feature]
        if self.names is not None:
            return np.isin(values, list(self.names))
        reals = values.astype(np.float64)
        return reals > self.cut if self.above else reals <= self.cut

    def __str__(self) -> str:
        if self.names is not None:
            return f"{self.feature}: one of {len(self.names)}"
        return f"{self.feature} {'>' if self.above else '<='} {self.cut:.4g}"


class _Counted(NamedTuple):
    """Events, how often each was seen under either neighbour, and in how many draws."""

    events: list[Event]
    often: Ints
    seldom: Ints
    sizes: tuple[int, int]

    def epsilon(self, delta: float, error: float) -> Floats:
        """Return a lower bound on epsilon by every event."""
        low = clopper_pearson(self.often, self.sizes[0], error / 2.0)[0] - delta
        high = clopper_pearson(self.seldom, self.sizes[1], error / 2.0)[1]
        return np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -math.inf)


def epsilon_bound(first: Outcomes, second: Outcomes, error: float, delta: float = 0.0) -> Bound:
    """Bound epsilon at ``delta`` by the best event among thresholds and sets of names."""
    learn, measure = _parts(first, second)
    found = [
        (value, event, order)
        for order in (1, -1)
        for event, value in _candidates(learn[::order], delta)
    ]
    best, event, order = max(found, key=lambda each: each[0], default=(-math.inf, None, 1))
    if event is None or best == -math.inf:
        return Bound(0.0, "no event")
    often, seldom = (event.happened(outcomes) for outcomes in measure[::order])
    counts = [np.array([each.sum()]) for each in (often, seldom)]
    counted = _Counted([event], counts[0], counts[1], (len(often), len(seldom)))
    value = float(counted.epsilon(delta, error)[0])
    return Bound(max(0.0, value), f"{event} ({often.mean():.3g} vs {seldom.mean():.3g})")


def _candidates(sides: Sequence[Outcomes], delta: float) -> Iterator[tuple[Event, float]]:
    """Yield the best event of every feature with its bound on the draws it was found in."""
    first, second = sides
    for feature, values in first.items():
        find = _cuts if values.dtype.kind == "f" else _unions
        counted = find(feature, values, second[feature])
        if counted.events:
            bounds = counted.epsilon(delta, _LEARNING_ERROR)
            best = int(np.argmax(bounds))
            yield counted.events[best], float(bounds[best])


def _cuts(feature: str, values: Values, others: Values) -> _Counted:
    """Return events beyond some quantile of the feature, on either side."""
    samples = [np.sort(x[~np.isnan(x)]) for x in (values.astype(float), others.astype(float))]
    pooled, shares = np.concatenate(samples), np.linspace(0.0, 1.0, _CUTS)
    cuts = pooled
    if len(pooled):
        cuts = np.unique(np.quantile(pooled, shares, method="inverted_cdf"))
    below = [np.searchsorted(sample, cuts, side="right") for sample in samples]
    events = [Event(feature, float(cut), above=above) for above in (False, True) for cut in cuts]
    counts = [np.concatenate([b, len(s) - b]) for b, s in zip(below, samples, strict=True)]
    return _Counted(events, counts[0], counts[1], (len(values), len(others)))


def _unions(feature: str, values: Values, others: Values) -> _Counted:
    """Return unions of names, from those most typical of the first neighbour on.

    What is typical is learnt from every other draw and counted in the rest: among many names some
    look typical by chance, and would win if they were counted where they were found.
    """
    names = np.unique(np.concatenate([values, others]))
    halves = [
        [np.bincount(np.searchsorted(names, part[i::2]), minlength=len(names)) for i in (0, 1)]
        for part in (values, others)
    ]
    order = np.argsort(-(halves[0][0] + 0.5) / (halves[1][0] + 0.5), kind="stable")
    ordered = [int(name) for name in names[order]]
    sizes = np.unique(np.geomspace(1, len(ordered), min(len(ordered), _CUTS)).astype(int))
    events = [Event(feature, names=frozenset(ordered[:size])) for size in sizes]
    sums = [np.cumsum(half[1][order])[sizes - 1] for half in halves]
    return _Counted(events, sums[0], sums[1], (len(values[1::2]), len(others[1::2])))


def rho_bound(first: Outcomes, second: Outcomes, error: float) -> Bound:
    """Bound rho by Donsker and Varadhan's formula; g is the likelihood ratio, scaled, clipped."""

    def rho(sides: tuple[Outcomes, Outcomes], factor: float, clip: float, error: float) -> float:
        here, there = (
            np.clip(factor * outcomes[LIKELIHOOD].astype(np.float64), -clip, clip)
            for outcomes in sides
        )
        low = here.mean() - _bernstein(here, 2.0 * clip, error / 2.0)
        moments = np.exp(there)
        width = math.exp(clip) - math.exp(-clip)
        return float(low - math.log(moments.mean() + _bernstein(moments, width, error / 2.0)))

    learn, measure = _parts(first, second)
    _, factor, clip = max(
        (rho(learn, factor, clip, _LEARNING_ERROR), factor, clip)
        for factor in (0.7, 0.8, 0.9, 1.0, 1.1, 1.25)
        for clip in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    )
    value = rho(measure, factor, clip, error)
    return Bound(max(0.0, value), f"{factor:g} times the {LIKELIHOOD}, within {clip:g}")


def _bernstein(values: Floats, width: float, error: float) -> float:
    """Return how far the mean of values in an interval of this width may be from the truth.

    That is the empirical Bernstein inequality of Maurer and Pontil (2009).
    """
    n, log_term = len(values), math.log(2.0 / error)
    variance = float(values.var(ddof=1))
    return math.sqrt(2.0 * variance * log_term / n) + 7.0 * width * log_term / (3.0 * (n - 1))


def _parts(first: Outcomes, second: Outcomes) -> list[tuple[Outcomes, Outcomes]]:
    """Return a third of the draws to learn from, or as many as suffice, and the rest to measure."""

    def split(outcomes: Outcomes) -> list[Outcomes]:
        end = min(len(next(iter(outcomes.values()))) // 3, _ENOUGH)
        parts = slice(end), slice(end, None)
        return [{name: values[part] for name, values in outcomes.items()} for part in parts]

    return list(zip(split(first), split(second), strict=True))
