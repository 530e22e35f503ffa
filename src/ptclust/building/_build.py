"""One build: its public pairs, and the looks at the records that it pays for.

A look is a question to the records whose answer is released at once: private caps, and which pairs
are joined. It is charged before it is made, and is part of the graph's provenance from then on.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from numbers import Integral
from typing import Any, get_args

import numpy as np
import polars as pl

from ptclust._registry import AUTO
from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats
from ptclust.building import caps as capping
from ptclust.building._contributions import Key, Things, sensitivity_of_sum
from ptclust.building._pairs import Pairs, public_pairs
from ptclust.building._records import Records
from ptclust.errors import UsageError
from ptclust.graph.graph import Graph
from ptclust.graph.topology import Kind
from ptclust.ledger import Ledger, Payment
from ptclust.mechanisms.lattice import add_noise
from ptclust.privacy._numbers import exact_positive
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import laplace_noise
from ptclust.privacy.provenance import Neighbours, Provenance, Spending
from ptclust.privacy.sensitivity import Sensitivity

Details = Mapping[str, int | float | str]

_NOTHING: Mapping[str, Any] = {}
_CERTAIN = 3.0  # scales of the noise, above which a count is more than noise
_EMPTY = 1.0  # pairs that nobody is counted on and that pass the threshold, on average, at most
#: How ids of persons and nodes are compared, in words.
_IDS = "texts in Unicode form NFC, without blanks around them and characters that cannot be seen"
_RELATIONS: Mapping[Neighbours, str] = {
    "add-remove": "tables with one unit more or less",
    "replace": "tables with one unit in place of another",
}


class Build:
    """A build whose options are checked before any record is read, and what it has spent."""

    def __init__(
        self,
        by: str,
        records: Any,
        nodes: Any,
        edges: Any,
        *,
        listed: str = "nodes",
        neighbours: Neighbours,
        caps: Mapping[str, Any] = _NOTHING,
        least: int = 1,
        why: str = "",
        caps_epsilon: object = None,
        edges_epsilon: object = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        dataset: str | None = None,
        key: Key | None = None,
    ) -> None:
        """Check the options of the function ``by`` that builds.

        The public nodes are ``listed`` as nodes, or as items. ``caps`` are integers of at least
        ``least``, for the reason ``why``, or "auto".
        """
        if neighbours not in get_args(Neighbours):
            said = " or ".join(f"{name!r} ({words})" for name, words in _RELATIONS.items())
            raise UsageError(f"neighbours must be {said}, not {neighbours!r}")
        self.by, self.neighbours = by, neighbours
        self.pairs = public_pairs(nodes, edges, records, word=listed)
        self.caps = {
            name: None if cap == AUTO else at_least(name, cap, least, why)
            for name, cap in caps.items()
        }
        n_auto = list(self.caps.values()).count(None)
        for_caps = _price("caps_epsilon", caps_epsilon, n_auto > 0, "a bound 'auto'")
        self.cap_epsilon = None if for_caps is None else for_caps / n_auto  # for each that is auto
        self.edges_epsilon = _price(
            "edges_epsilon", edges_epsilon, self.pairs.private, "a list of pairs 'private'"
        )
        if ledger is not None and for_caps is None and self.edges_epsilon is None:
            raise UsageError(
                "building this graph spends nothing, so there is nothing to charge: leave ledger= "
                "out here, and give it to the release"
            )
        self.payment = Payment.by(ledger, dataset)
        randbits = secrets.randbits
        self.key = (randbits(64), randbits(64), randbits(64)) if key is None else key
        self.spent: list[Spending] = []

    def choose(
        self,
        table: Records,
        things: Things,
        numbers: Mapping[str, pl.Expr],
        most: Mapping[str, int],
    ) -> tuple[dict[str, int], Details]:
        """Return all caps, those that are "auto" chosen, and what is then known of the graph.

        ``numbers`` say, by the name of a cap, what it bounds of the things of a person; none is
        above ``most``, the number of all that there is to count. A cap that was given counts as
        reached by everybody.

        Notes
        -----
        *Privacy.* Of every cap that is "auto", a histogram of persons by the smallest candidate
        that they stay within. Every person is in one bin, so one more or less changes one count by
        1; the counts get Laplace noise, and what is made of them is post-processing.
        """
        tried = capping.combinations(self.caps, most)
        if self.cap_epsilon is None:
            return dict(tried[0]), tried[0]
        bins = []
        one_bin, candidates = sensitivity_of_sum(1, 1, self.neighbours), capping.CANDIDATES
        for name, cap in self.caps.items():
            if cap is not None:
                bins.append({cap - 1: 0.0, cap: 1.0})
                continue
            count = partial(table.histogram, things, numbers[name], candidates)
            noisy = self.look(count, len(candidates), one_bin, self.cap_epsilon, name)
            # Few persons in a bin may be none: with many things each, they would look like much.
            certain = np.where(noisy > _CERTAIN * self.spent[-1].scale, noisy, 0.0)
            bins.append(dict(zip(candidates, certain.tolist(), strict=True)))
        persons = capping.Persons.counted(*bins)
        found = capping.choices(tried, persons, self.pairs.n_pairs, self.neighbours)
        chosen = capping.best(found)
        caps, total = capping.caps_of(chosen), chosen["total"]
        known = {"total": round(total)} if total > 0 else {}
        return caps, {**caps, **known, "caps": capping.in_words(found, caps)}

    @leaves_no_trace
    def look(
        self,
        count: Callable[[], Array],
        n_values: int,
        sensitivity: Sensitivity,
        epsilon: Fraction,
        purpose: str,
    ) -> Floats:
        """Charge a look, make it, and return what it counts with Laplace noise.

        Notes
        -----
        *Privacy.* epsilon-differentially private if one unit changes what is counted by no more
        than ``sensitivity``.
        """
        noise = laplace_noise(sensitivity, n_values, epsilon)
        look = Spending(
            purpose=purpose, budget=Budget.pure(epsilon), noise="Laplace", scale=noise.scale
        )
        self.payment.charge(look.budget, statement_id=look.id, description=look.words)
        noisy = add_noise(count(), noise)
        self.spent.append(look)
        self.payment.confirm(look.id)
        return noisy

    @leaves_no_trace
    def graph(
        self,
        count: Callable[[], Floats],
        sensitivity: Sensitivity,
        unit: str,
        *,
        kind: Kind = "similarity",
        details: Details = _NOTHING,
    ) -> Graph:
        """Return the graph of the weights that are counted, of all pairs or those released.

        Notes
        -----
        *Privacy.* Pairs that are "private" are joined if their weight, with Laplace noise, is above
        a threshold. All m pairs of the public list get noise, the empty ones included: with scale
        b = l1 / epsilon on the whole vector of weights that is epsilon-differentially private,
        without a delta, and what passes a public threshold is post-processing. The threshold is
        b ln(m / 2): noise on an empty pair exceeds it with probability exp(-ln(m / 2)) / 2 = 1 / m,
        so one of all empty pairs passes on average.
        """
        pairs, counted = self.pairs, cache(count)  # a look is charged before anything is counted
        if self.edges_epsilon is None:
            weights = counted()
        else:
            n, purpose = pairs.n_pairs, "which pairs are joined"
            noisy = self.look(counted, n, sensitivity, self.edges_epsilon, purpose)
            joined = noisy > self.spent[-1].scale * max(0.0, math.log(max(n, 1) / (2 * _EMPTY)))
            weights = counted()[joined]
            pairs = Pairs.of_keys(pairs.names, pairs.keys()[joined], pairs.chosen_by)
        sources, targets = np.divmod(pairs.keys(), pairs.n_nodes)
        graph = Graph(sources, targets, weights, pairs.n_nodes, pairs.names, kind=kind)
        graph.provenance = Provenance(
            sensitivity=sensitivity,
            unit=unit,
            neighbours=self.neighbours,
            details={"built_by": self.by, "topology": pairs.chosen_by, "ids": _IDS, **details},
            spent=tuple(self.spent),
        )
        return graph


def _price(name: str, epsilon: Any, needed: bool, why: str) -> Fraction | None:
    """Return the epsilon of a look; it must be given if, and only if, the look is requested."""
    if needed and epsilon is None:
        raise UsageError(f"{why} reads the records, which spends epsilon: give {name}=")
    if epsilon is None:
        return None
    if not needed:
        raise UsageError(f"{name}= is for {why}, which was not requested; leave it out")
    what_for = "It is spent on this look alone, in addition to what a release spends"
    return exact_positive(name, epsilon, f"{what_for}: 0.1, for example.")


def at_least(name: str, value: Any, least: int, why: str) -> int:
    """Return a bound that is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        given = "and was not given" if value is None else f"not {value!r}"
        raise UsageError(f"{name} must be an integer of at least {least}, {given}: {why}")
    return int(value)


@leaves_no_trace
def summary(graph: Graph) -> dict[str, Any]:
    """Return all that may be known of a graph that was built, ready for JSON."""
    provenance = None if graph.provenance is None else graph.provenance.to_dict()
    counts = {"n_nodes": graph.n_nodes, "n_edges": graph.n_edges, "kind": graph.kind}
    return {**counts, "provenance": provenance}


@leaves_no_trace
def description(graph: Graph) -> str:
    """Say what was built. *Privacy.* In public numbers only: no weight plays a part."""
    words = f"A graph of {graph.n_nodes:,} nodes and {graph.n_edges:,} pairs of them"
    if (built := graph.provenance) is None:
        return f"{words}."
    lines = [
        f"{words} ({built.details.get('topology', 'it was not said which')})",
        f"Protected: {built.unit}",
        f"It can change at most: {built.sensitivity} (neighbours: {_RELATIONS[built.neighbours]})",
        "Records on nodes outside the list, or without the person to protect, are ignored",
        *(f"Spent on {each.words}" for each in built.spent),
    ]
    if "caps" in built.details:
        lines.append(f"Caps were chosen by their {built.details['caps']}")
    return ". ".join(lines) + "."
