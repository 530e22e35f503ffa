"""Caps on what a person adds: how much is counted under each, and how much noise it then needs.

Nothing here sees records: only public numbers, and histograms that have their noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ptclust._tables import right_aligned
from ptclust._types import Floats
from ptclust.building._contributions import ITEMS, PAIRS, PER_PAIR, Caps, sensitivity_of
from ptclust.errors import UsageError
from ptclust.graph.topology import Topology
from ptclust.planning.plan import PlanRequest, make_plan
from ptclust.privacy.provenance import Neighbours, Provenance
from ptclust.privacy.sensitivity import Sensitivity

Choice = dict[str, Any]  # caps by name, and what they do, in numbers

#: Caps to choose from. They are public: no look at the records made them.
CANDIDATES = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
_EPSILON = 0.3  # at which caps are compared where nobody said it: where little is seen, they matter
_NEW = (0.4, 1.0)  # between these shares of the records of a person are on a thing that is new
_QUANTILES = (np.arange(400) + 0.5) / 400


@dataclass(frozen=True)
class Persons:
    """How many persons have how many things (items, or pairs of nodes), and records on each."""

    number: Floats
    things: Floats
    records: Floats  # on each of the things, in the mean

    @classmethod
    def declared(cls, persons: float, records: float, new: float) -> Persons:
        """Return persons with a geometric number of records, ``new`` of which are on a new thing.

        >>> float(Persons.declared(100, 400, 1.0).things.mean().round(1))
        4.0
        """
        for name, value in (("persons", persons), ("records", records)):
            if not 0 < value <= 1e15:
                raise UsageError(f"{name} must be a number above 0, not {value!r}")
        if records < persons:
            raise UsageError(f"{records:g} records of {persons:g} persons: each has one at least")
        mean = records / persons
        numbers = np.ones_like(_QUANTILES)
        if mean > 1:
            numbers = np.ceil(np.log1p(-_QUANTILES) / math.log1p(-1.0 / mean))
            numbers *= mean / numbers.mean()  # the tail beyond the last quantile
        things = 1.0 + (np.maximum(numbers, 1.0) - 1.0) * new
        return cls(np.full(len(things), persons / len(things)), things, numbers / things)

    @classmethod
    def counted(
        cls, things: Mapping[int, float], records: Mapping[int, float] | None = None
    ) -> Persons:
        """Return persons by how many there are up to each number, from the number before on."""
        of_things, n_things = _middles(things)
        of_records, n_records = _middles(records or {1: 1.0})
        persons = max(of_things.sum(), of_records.sum())
        shares = np.outer(_share(of_things), _share(of_records)).ravel()
        columns = np.meshgrid(n_things, n_records, indexing="ij")
        return cls(persons * shares, columns[0].ravel(), columns[1].ravel())

    def total(self, caps: Caps) -> float:
        """Return the sum of all weights under these caps."""
        if ITEMS in caps:
            items = np.minimum(self.things, caps[ITEMS])
            return float(self.number @ (items * (items - 1) / 2))
        kept = np.minimum(self.things, caps[PAIRS]) * np.minimum(self.records, caps[PER_PAIR])
        return float(self.number @ kept)


def _middles(bins: Mapping[int, float]) -> tuple[Floats, Floats]:
    """Return how many there are in each bin, and the middle of the bin."""
    most = np.array(list(bins), dtype=np.float64)
    least = np.concatenate([[1.0], most[:-1] + 1.0])
    return np.array(list(bins.values()), dtype=np.float64), (np.minimum(least, most) + most) / 2


def _share(numbers: Floats) -> Floats:
    return numbers / max(float(numbers.sum()), 1e-300)


def combinations(given: Mapping[str, int | None], most: Mapping[str, int]) -> list[Caps]:
    """Return all caps to choose from: candidates where none is given, none above ``most``."""
    usual = [cap for cap in CANDIDATES if cap >= (2 if ITEMS in given else 1)]
    listed = (
        sorted({min(each, most.get(name, each)) for each in (usual if cap is None else [cap])})
        for name, cap in given.items()
    )
    return [dict(zip(given, each, strict=True)) for each in product(*listed)]


def _laplace(sensitivity: Sensitivity) -> float:
    return math.sqrt(2.0) * sensitivity.l1 / _EPSILON if sensitivity.l1 else math.inf


def choices(
    tried: Iterable[Caps],
    persons: Persons,
    n_pairs: int,
    neighbours: Neighbours,
    noise: Callable[[Sensitivity], float] = _laplace,
) -> list[Choice]:
    """Return each of these caps with what is counted in all, and what a pair then has.

    That is its mean, the standard deviation of its ``noise``, by default Laplace's at epsilon 0.3,
    and the signal: the mean over the deviation of the noise and of a count itself.
    """
    found = []
    for caps in tried:
        total = persons.total(caps)
        mean, deviation = total / max(n_pairs, 1), noise(sensitivity_of(caps, n_pairs, neighbours))
        signal = mean / math.sqrt(mean + deviation**2) if mean > 0 else 0.0
        found.append({**caps, "total": total, "mean": mean, "noise": deviation, "signal": signal})
    return found


def best(found: Iterable[Choice]) -> Choice:
    """Return the caps with the largest signal, the smallest caps if several have it."""
    return max(found, key=_rank)


def _rank(choice: Choice) -> tuple[float, list[int]]:
    return choice["signal"], [-cap for cap in _values(choice)]


def _values(choice: Choice) -> list[int]:
    return list(caps_of(choice).values())


def compared(
    built: Provenance, topology: Topology, request: PlanRequest, persons: float, records: float
) -> list[Choice]:
    """Return what other caps would do at the budget of a plan; only public numbers are used."""
    given = caps_of(built.details)
    most = {ITEMS: topology.n_nodes, PAIRS: max(1, topology.n_edges)}
    tried = combinations(dict.fromkeys(given), most)
    tried += [] if given in tried else [given]

    def noise(sensitivity: Sensitivity) -> float:
        return make_plan(topology, replace(request, sensitivity=sensitivity)).chosen.noise

    known = Persons.declared(persons, records, sum(_NEW) / 2)
    return choices(tried, known, topology.n_edges, built.neighbours, noise)


def caps_of(details: Mapping[str, Any]) -> dict[str, int]:
    """Return the caps among other details of a graph, or of a choice."""
    return {name: details[name] for name in (ITEMS, PAIRS, PER_PAIR) if name in details}


def counted(
    details: Mapping[str, Any], *, persons: float | None, records: float | None
) -> tuple[float, float] | None:
    """Return between which numbers the sum of all weights of a graph lies that was built.

    ``details`` are those of its provenance; ``persons`` and ``records`` are public numbers. If
    neither is given, it is what the private choice of caps has released, or None.
    """
    caps = caps_of(details)
    if persons is None and records is None:
        known = details.get("total")
        return None if known is None else (0.8 * float(known), 1.25 * float(known))
    if not caps:
        if records is None or persons is not None:
            raise UsageError("of single records, say how many there are: records=, no persons=")
        return float(records), float(records)
    if persons is None or records is None:
        raise UsageError(
            "persons are protected, and what is counted depends on how many records each has: say "
            "about how many there are of both, persons= and records="
        )
    totals = sorted(Persons.declared(persons, records, new).total(caps) for new in _NEW)
    return max(totals[0], 1.0), max(totals[1], 1.0)


def range_of(details: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return where the weights of a graph of profiles lie; None of others."""
    if "dissimilarity" not in details:
        return None
    width = details["high"] - details["low"]
    return 0.0, width if details["dissimilarity"] == "absolute" else width**2


def to_text(found: Sequence[Choice], chosen: Caps) -> str:
    """Return a table of what caps do; the chosen ones are marked."""
    rows, marks = [[*chosen, "counted", "mean of a pair", "noise", "signal"]], [" "]
    for each in _shown(found, chosen):
        numbers = f"{each['total']:,.0f}", f"{each['mean']:.3g}", f"{each['noise']:.3g}"
        rows.append([*map(str, _values(each)), *numbers, f"{each['signal']:.3g}"])
        marks.append(">" if caps_of(each) == chosen else " ")
    words = "Caps: signal is the mean of a pair over its deviation, noise included; more is better."
    return "\n".join([words, *map(str.__add__, marks, right_aligned(rows))])


def in_words(found: Sequence[Choice], chosen: Caps) -> str:
    """Return the signal of caps in one line."""
    shown = _shown(found, chosen)
    listed = (f"{' x '.join(map(str, _values(each)))}: {each['signal']:.3g}" for each in shown)
    return f"signal over noise at epsilon {_EPSILON:g}: {', '.join(listed)}"


def _shown(found: Sequence[Choice], chosen: Caps) -> list[Choice]:
    """Return the chosen caps, and for each value of the first the best with it."""
    by_first = {_values(each)[0]: each for each in sorted(found, key=_rank)}  # the best comes last
    also = [each for each in found if caps_of(each) == chosen and each not in by_first.values()]
    return sorted([*by_first.values(), *also], key=_values)
