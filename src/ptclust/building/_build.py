"""One build: its public pairs, its neighbours, and the looks at the records that it pays for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats
from ptclust.building import caps as capping
from ptclust.building._looks import AUTO, Looks, check_epsilon, private_histogram, private_pairs
from ptclust.building._neighbours import check_neighbours
from ptclust.building._pairs import Pairs, public_pairs
from ptclust.errors import UsageError
from ptclust.graph.graph import Graph
from ptclust.privacy.provenance import Neighbours, Provenance

if TYPE_CHECKING:
    from ptclust.building._records import Key
    from ptclust.graph.topology import Kind
    from ptclust.ledger import Ledger
    from ptclust.privacy.sensitivity import Sensitivity


_NOTHING: Mapping[str, Any] = {}
#: How ids of persons and nodes are compared, in words.
_IDS = "texts in Unicode form NFC, without blanks around them and characters that cannot be seen"


@dataclass(frozen=True)
class Build:
    """The options of a build, checked before any record is read."""

    by: str  # the function that builds
    pairs: Pairs
    neighbours: Neighbours
    looks: Looks
    caps: Mapping[str, int | None]  # None for "auto"
    cap_epsilon: Fraction  # for every cap that is "auto"; 0 if none is
    edges_epsilon: Fraction | None  # for pairs that are "private"
    key: Key  # of the keyed hash

    @classmethod
    def of(
        cls,
        by: str,
        records: Any,
        lists: dict[str, Any],
        *,
        neighbours: Neighbours,
        caps: Mapping[str, Any] = _NOTHING,
        least: int = 1,
        why: str = "",
        caps_epsilon: object = None,
        edges_epsilon: object = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        dataset: str | None = None,
        key: Key | None = None,
    ) -> Build:
        """Check what was requested, before anything is spent.

        ``lists`` are the public nodes, or items, and the edges. ``caps`` are integers of at least
        ``least``, for the reason ``why``, or "auto".
        """
        from ptclust.building._records import at_least, draw_key

        check_neighbours(neighbours)
        (word, nodes), (_, edges) = lists.items()
        pairs = public_pairs(nodes, edges, records, word=word)
        given = {
            name: None if cap == AUTO else at_least(name, cap, least, why)
            for name, cap in caps.items()
        }
        n_auto = list(given.values()).count(None)
        caps_price = check_epsilon("caps_epsilon", caps_epsilon, n_auto > 0, "a bound 'auto'")
        edges_price = check_epsilon(
            "edges_epsilon", edges_epsilon, pairs.private, "a list of pairs 'private'"
        )
        if ledger is not None and caps_price is None and edges_price is None:
            raise UsageError(
                "building this graph spends nothing, so there is nothing to charge: leave ledger= "
                "out here, and give it to the release"
            )
        return cls(
            by,
            pairs,
            neighbours,
            Looks(ledger, dataset),
            given,
            Fraction(0) if caps_price is None else caps_price / n_auto,
            edges_price,
            draw_key() if key is None else key,
        )

    def choose(
        self, histograms: Mapping[str, Callable[[Sequence[int]], Array]], most: Mapping[str, int]
    ) -> tuple[dict[str, int], dict[str, int | float | str]]:
        """Return all caps, those that are "auto" chosen, and what is then known of the graph.

        None is above ``most``, the number of all that there is to count. The one of a name that is
        given counts as reached by everybody.
        """
        tried = capping.combinations(self.caps, most)
        if None not in self.caps.values():
            return dict(tried[0]), dict(tried[0])
        look = partial(
            private_histogram, self.looks, epsilon=self.cap_epsilon, neighbours=self.neighbours
        )
        things, *records = (
            look(name, histograms[name]) if cap is None else {cap - 1: 0.0, cap: 1.0}
            for name, cap in self.caps.items()
        )
        persons = capping.Persons.counted(things, *(records or [{1: 1.0}]))
        found = capping.choices(tried, persons, len(self.pairs.keys), self.neighbours)
        chosen = capping.best(found)
        known = {"total": round(chosen.total)} if chosen.total > 0 else {}
        words = capping.in_words(found, chosen.caps)
        return dict(chosen.caps), {**chosen.caps, **known, "caps": words}

    @leaves_no_trace
    def graph(
        self,
        weights: Floats,
        sensitivity: Sensitivity,
        unit: str,
        *,
        kind: Kind = "similarity",
        details: Mapping[str, int | float | str] = _NOTHING,
    ) -> Graph:
        """Return the graph of the weights of all pairs, or of those pairs that are released."""
        pairs = self.pairs
        if self.edges_epsilon is not None:
            joined = private_pairs(self.looks, weights, sensitivity, self.edges_epsilon)
            pairs, weights = pairs.restricted_to(joined), weights[joined]
        graph = pairs.graph(weights, kind)
        graph.provenance = Provenance(
            sensitivity=sensitivity,
            unit=unit,
            neighbours=self.neighbours,
            details={"built_by": self.by, "topology": pairs.chosen_by, "ids": _IDS, **details},
            spent=tuple(self.looks.spent),
        )
        return graph
