"""The pipeline on made-up weights: planted clusters of one size, published at many epsilons."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptclust._statistics import agreement, margin_of, seed_of
from ptclust.pipeline import publish, way_of
from ptclust.prediction.effort import FINE, Effort
from ptclust.prediction.planting import (
    connected_pieces,
    graph_with,
    planted_weights,
    typical_size,
)
from ptclust.prediction.result import Curve, Point
from ptclust.privacy.plan import Plan, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ptclust.graph import Graph, Topology

__all__ = ["Simulation"]

_STEPS = {
    "contraction": (500_000, 25, 1.25),
    "levels": (800_000, 40, 1.0),
    "dbmstclu": (60_000, 10, 1.0),
}
"""About a + b s^c steps are a run with nodes and edges s in number, by clusterer."""


class _Planted(NamedTuple):
    graph: Graph
    truth: NDArray[np.int64]


@dataclass
class Simulation:
    """The pipeline on made-up weights over one topology; plans and controls are made once."""

    topology: Topology
    choices: dict[str, Any]
    contrast: float
    seed: int
    stage: Callable[[str], None]
    _plans: dict[float, Plan] = field(default_factory=dict)
    _controls: dict[tuple[float, int], NDArray[np.int64]] = field(default_factory=dict)

    @property
    def weight_range(self) -> tuple[float, float]:
        """Where made-up weights lie: as declared, or in 0 to 1."""
        return self.choices["weight_range"] or (0.0, 1.0)

    def plan(self, epsilon: float) -> Plan:
        """Return the plan that the real release would follow."""
        if epsilon not in self._plans:
            self._plans[epsilon] = plan(self.topology, epsilon=epsilon, **self.choices)
        return self._plans[epsilon]

    def clusterer(self, epsilon: float) -> str:
        """Return how its output would be clustered."""
        return way_of(self.plan(epsilon), self.choices["clusterer"])

    def n_steps(self, epsilons: Sequence[float]) -> float:
        """Return about how many steps a run takes, in the mean over the epsilons."""
        many = self.topology.n_nodes + self.topology.n_edges
        costs = (_STEPS[self.clusterer(epsilon)] for epsilon in epsilons)
        return float(np.mean([a_run + each * many**power for a_run, each, power in costs]))

    def problem(self, size: int) -> str | None:
        """Return why clusters of this size cannot be planted, or None."""
        typical = typical_size(self.pieces(size, 0))
        if size <= 2 * typical < 4 * size:
            return None
        return (
            f"clusters of {size:,} nodes, for the topology does not fall into connected pieces of about that size, but "
            f"into pieces of about {typical:,}; a hub with small branches cannot be divided, nor components joined"
        )

    def pieces(self, size: int, repetition: int) -> NDArray[np.int64]:
        """Return the planted cluster of every node in one repetition."""
        random = np.random.default_rng(seed_of(self.seed, "pieces", size, repetition))
        return connected_pieces(self.topology, size, random)

    def planted(self, size: int, repetition: int) -> _Planted:
        """Return the graph of one repetition; the same whenever it is asked for."""
        truth = self.pieces(size, repetition)
        random = np.random.default_rng(seed_of(self.seed, "weights", size, repetition))
        weights = planted_weights(self.topology, truth, self.weight_range, self.contrast, random)
        return _Planted(graph_with(self.topology, weights), truth)

    def labels(self, graph: Graph, epsilon: float, *key: object) -> NDArray[np.int64]:
        """Return the clusters that are published; ``key`` tells one run's noise from another's."""
        seed = seed_of(self.seed, "noise", epsilon, *key)
        chosen, clusterer = self.plan(epsilon), self.choices["clusterer"]
        return publish(graph, chosen, clusterer=clusterer, random_state=seed).labels

    def control(self, epsilon: float, repetition: int) -> NDArray[np.int64]:
        """Return the clusters that are published if all weights are equal; no matter what is planted."""
        key = epsilon, repetition
        if key not in self._controls:
            weights = np.full(self.topology.n_edges, sum(self.weight_range) / 2)
            graph = graph_with(self.topology, weights)
            self._controls[key] = self.labels(graph, epsilon, "equal", repetition)
        return self._controls[key]

    def curve(self, size: int, effort: Effort) -> Curve:
        """Return the agreement at all epsilons, and at some in between, ever nearer to where the clusters appear."""
        truths = [self.pieces(size, repetition) for repetition in range(effort.repetitions)]
        curve = Curve(
            size=size,
            typical_size=int(np.median([typical_size(truth) for truth in truths])),
            n_clusters=int(np.median([truth.max() + 1 for truth in truths])),
            points=tuple(self.points(size, effort.epsilons, effort.repetitions, controlled=True)),
        )
        while effort.refined and (between := _in_sight(curve)):
            middle = [between[len(between) // 2]]
            more = self.points(size, middle, effort.repetitions, controlled=False)
            points = sorted([*curve.points, *more], key=lambda point: point.epsilon)
            curve = replace(curve, points=tuple(points))
        return curve

    def points(
        self, size: int, epsilons: Sequence[float], repetitions: int, *, controlled: bool
    ) -> Iterator[Point]:
        """Yield the means at these epsilons, with those of equal weights if ``controlled``."""
        scores: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
        controls: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
        for repetition in range(repetitions):
            planted = self.planted(size, repetition)
            for epsilon in epsilons:
                self.stage(
                    f"Predicting: clusters of {size:,} nodes, repetition {repetition + 1} of {repetitions}, "
                    f"epsilon = {epsilon:g}"
                )
                labels = self.labels(planted.graph, epsilon, size, repetition)
                scores[epsilon].append(agreement(planted.truth, labels))
                if controlled:
                    equal = self.control(epsilon, repetition)
                    controls[epsilon].append(agreement(planted.truth, equal))
        for epsilon in epsilons:
            yield Point(
                epsilon=epsilon,
                method=self.plan(epsilon).chosen.method,
                clusterer=self.clusterer(epsilon),
                ari=float(np.mean(scores[epsilon])),
                margin=margin_of(scores[epsilon]),
                control=float(np.mean(controls[epsilon])) if controlled else None,
            )


def _in_sight(curve: Curve) -> tuple[float, ...]:
    """Return the epsilons between the last that does not show the clusters and the first that does."""
    tried = [point.epsilon for point in curve.points]
    if curve.visible_from is None or curve.visible_from == tried[0]:
        return ()
    last = tried[tried.index(curve.visible_from) - 1]
    return tuple(epsilon for epsilon in FINE if last < epsilon < curve.visible_from)
