"""The pipeline on made-up weights: planted clusters of one size, published at many epsilons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ptclust._statistics import agreement, margin_of, seed_of
from ptclust._types import Floats, Ints
from ptclust.graph.topology import Topology
from ptclust.planning.effort import FINE, Effort
from ptclust.planning.plan import Plan, PlanRequest, make_plan
from ptclust.planning.planting import MadeUpGraph, Planting, connected_pieces, typical_size
from ptclust.planning.result import Curve, Point
from ptclust.privacy.randomness import RandomStream

_THE_SAME = 0.5  # agreement from which on two runs found about the same clusters


@dataclass
class Simulation:
    """The pipeline on made-up weights over one topology; plans and controls are made once."""

    topology: Topology
    request: PlanRequest  # its epsilon is replaced by those that are tried
    planting: Planting
    seed: int
    progress: Callable[[str], None]
    _plans: dict[float, Plan] = field(default_factory=dict)
    _controls: dict[tuple[float, int], Ints] = field(default_factory=dict)

    def plan(self, epsilon: float) -> Plan:
        """Return the plan that the real release would follow."""
        if epsilon not in self._plans:
            request = replace(self.request, epsilon=epsilon)
            self._plans[epsilon] = make_plan(self.topology, request)
        return self._plans[epsilon]

    def n_steps(self, epsilons: Sequence[float]) -> float:
        """Return about how many steps a run takes, in the mean over the epsilons."""
        many = self.topology.n_nodes + self.topology.n_edges
        costs = (self.plan(epsilon).choose_clusterer().cost for epsilon in epsilons)
        return float(np.mean([cost.steps(many) for cost in costs]))

    def problem(self, size: int) -> str | None:
        """Return why clusters of this size cannot be planted, or None."""
        typical = typical_size(self.pieces(size, 0))
        if size <= 2 * typical < 4 * size:
            return None
        return (
            f"clusters of {size:,} nodes, for the topology falls into connected pieces of about "
            f"{typical:,}; a hub with small branches cannot be divided, nor components joined"
        )

    def pieces(self, size: int, repetition: int) -> Ints:
        """Return the planted cluster of every node in one repetition."""
        random = np.random.default_rng(seed_of(self.seed, "pieces", size, repetition))
        return connected_pieces(self.topology, size, random)

    def labels(self, weights: Floats, epsilon: float, *key: object) -> Ints:
        """Return the clusters that are published; ``key`` tells one run's noise from another's."""
        planned = self.plan(epsilon)
        graph = MadeUpGraph(self.topology, weights, self.planting.kind)
        with RandomStream.seeded(seed_of(self.seed, "noise", epsilon, *key)) as stream:
            published = planned.mechanism.draw(graph, planned.chosen, stream)
        return planned.choose_clusterer().cluster(published).labels

    def control(self, epsilon: float, repetition: int) -> Ints:
        """Return the clusters that are published if weights say nothing of what is planted."""
        key = epsilon, repetition
        if key not in self._controls:
            random = np.random.default_rng(seed_of(self.seed, "without clusters", repetition))
            weights = self.planting.without_clusters(self.topology, random)
            self._controls[key] = self.labels(weights, epsilon, "equal", repetition)
        return self._controls[key]

    @property
    def topology_clusters(self) -> int:
        """How many clusters are found where weights say nothing; 1 if noise alone makes them.

        Those of the topology are found again in most repetitions, those of noise are not.
        """
        found = [1]
        for epsilon in {epsilon for epsilon, _ in self._controls}:
            first, *others = (self._controls[key] for key in self._controls if key[0] == epsilon)
            if others and np.mean([agreement(first, other) for other in others]) >= _THE_SAME:
                found.append(int((np.bincount(first[first >= 0]) > 1).sum()))
        return max(found)

    def curve(self, size: int, effort: Effort) -> Curve:
        """Return the agreement at all epsilons, and at some around where the clusters appear."""
        truths = [self.pieces(size, repetition) for repetition in range(effort.repetitions)]
        curve = Curve(
            size=size,
            total=self.planting.total,
            typical_size=int(np.median([typical_size(truth) for truth in truths])),
            n_clusters=int(np.median([truth.max() + 1 for truth in truths])),
            points=tuple(self.points(size, truths, effort.epsilons, controlled=True)),
        )
        while effort.refined and (between := _in_sight(curve)):
            middle = [between[len(between) // 2]]
            more = self.points(size, truths, middle, controlled=False)
            points = sorted([*curve.points, *more], key=lambda point: point.epsilon)
            curve = replace(curve, points=tuple(points))
        return curve

    def points(
        self, size: int, truths: list[Ints], epsilons: Sequence[float], *, controlled: bool
    ) -> Iterator[Point]:
        """Yield the means at these epsilons, with those of equal weights if ``controlled``."""
        scores: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
        controls: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
        for i, truth in enumerate(truths):
            random = np.random.default_rng(seed_of(self.seed, "weights", size, i))
            weights = self.planting.weights(self.topology, truth, random)
            times = f"repetition {i + 1} of {len(truths)}"
            what = f"Predicting: clusters of {size:,} nodes, {times}, epsilon = "
            for epsilon in epsilons:
                self.progress(f"{what}{epsilon:g}")
                labels = self.labels(weights, epsilon, size, i)
                scores[epsilon].append(agreement(truth, labels))
                if controlled:
                    controls[epsilon].append(agreement(truth, self.control(epsilon, i)))
        for epsilon in epsilons:
            yield Point(
                epsilon=epsilon,
                mechanism=self.plan(epsilon).chosen.mechanism,
                clusterer=self.plan(epsilon).choose_clusterer().name,
                ari=float(np.mean(scores[epsilon])),
                margin=margin_of(scores[epsilon]),
                control=float(np.mean(controls[epsilon])) if controlled else None,
            )


def _in_sight(curve: Curve) -> tuple[float, ...]:
    """Return the epsilons between the last without and the first with visible clusters."""
    tried = [point.epsilon for point in curve.points]
    if curve.visible_from is None or curve.visible_from == tried[0]:
        return ()
    last = tried[tried.index(curve.visible_from) - 1]
    return tuple(epsilon for epsilon in FINE if last < epsilon < curve.visible_from)
