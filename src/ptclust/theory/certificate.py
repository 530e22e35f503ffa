"""What a certificate of recovery says: which conditions hold, by how much, and where they come closest to failing."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["MARGIN", "Condition", "RecoveryCertificate"]

MARGIN = 1e-6
"""By how much, in units of N * DBCVI, a condition has to hold.

DBMSTClu compares on a grid of 2**-24 = 6e-8, and rounding errors stay below that up to 1e8 nodes.
"""

_MEANING = {
    "partition": "every cluster is one piece of the tree, and there are at least two",
    "order": "edges within clusters are lighter than all edges across",
    "stability": "no cut within a cluster pays once the clusters are found",
    "preference": "a cut between clusters beats every cut within one",
    "progress": "some cut between clusters pays until all are made",
}
_NECESSARY = ("partition", "stability")


@dataclass(frozen=True)
class Condition:
    """One condition, and where it is closest to failing."""

    name: str
    """partition, order, stability, preference or progress."""
    margin: float
    """What is left, in units of N * DBCVI (for order, 1 - b / c; for partition, infinite)."""
    cluster: int | None = None
    """The label of the cluster where the margin is smallest, -1 for a node of noise, None if it concerns all."""
    edge: int | None = None
    """The id, in the graph, of the edge where the margin is smallest."""

    @property
    def holds(self) -> bool:
        """Whether the margin is above ``MARGIN``."""
        return self.margin > MARGIN


@dataclass(frozen=True)
class RecoveryCertificate:
    """Whether recovery by DBMSTClu is certain, and why or why not. Not to be published: it tells about weights."""

    n_nodes: int
    n_clusters: int
    conditions: tuple[Condition, ...]
    """In order; those that make no sense without an earlier one are left out when that one fails."""

    @property
    def holds(self) -> bool:
        """Whether DBMSTClu returns exactly the clusters for certain."""
        return all(condition.holds for condition in self.conditions)

    @property
    def failed(self) -> tuple[Condition, ...]:
        """The conditions that do not hold."""
        return tuple(condition for condition in self.conditions if not condition.holds)

    def describe(self) -> str:
        """Return a verdict and a line for every condition."""
        verdict = "is certified" if self.holds else "is not certified"
        lines = [f"Recovery of {self.n_clusters:,} clusters in {self.n_nodes:,} nodes {verdict}."]
        for condition in self.conditions:
            sign = "holds" if condition.holds else "FAILS"
            where = "" if condition.edge is None else f", edge {condition.edge}"
            where += "" if condition.cluster is None else f", cluster {condition.cluster}"
            margin = (
                "" if math.isinf(condition.margin) else f" (margin {condition.margin:.4g}{where})"
            )
            lines.append(f"  {condition.name} {sign}: {_MEANING[condition.name]}{margin}")
        if any(
            condition.name in _NECESSARY and condition.margin < -MARGIN for condition in self.failed
        ):
            lines.append("  DBMSTClu does not return these clusters: what fails is necessary, too.")
        elif not self.holds:
            lines.append(
                "  DBMSTClu may return these clusters all the same: what fails suffices, no more."
            )
        return "\n".join(lines)
