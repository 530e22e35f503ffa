"""Graph perturbation (Sealfon 2016): noise on every weight, then the tree of the noisy weights."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ptclust.graph.topology import Topology, WeightedGraph, as_distances
from ptclust.mechanisms.mechanism import Calibration, Mechanism, noise_use, with_noise
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import Distribution, spent_by
from ptclust.privacy.randomness import RandomStream as Stream
from ptclust.privacy.sensitivity import Sensitivity
from ptclust.privacy.statement import MechanismUse
from ptclust.published import Published
from ptclust.trees.mst import minimum_spanning_edges
from ptclust.trees.tree import Tree


class Perturbation(Mechanism):
    """Noise of a distribution on all weights; its name and words are those of the distribution."""

    publishes = "graph"
    keyed = "weights"

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = distribution
        self.name, self.title = distribution.name, distribution.mechanism
        self.reference, self.proof = distribution.reference, distribution.proof
        self.norm = distribution.norm
        self.variants = ("pure",) if distribution.unit == "epsilon" else ("approximate",)

    def calibrate(
        self,
        topology: Topology,
        sensitivity: Sensitivity,
        budget: Budget,
        *,
        split: Fraction | None = None,
        largest_weight: float = 0.0,
    ) -> Calibration:
        """Spend all on noise; UsageError if the budget affords none of this kind."""
        noise = self.distribution.calibrate_alone(sensitivity, topology.n_edges, budget)
        if self.distribution.unit == "epsilon":  # it is pure: none of delta is spent
            spent = on_noise = Budget.pure(budget.epsilon)
        else:  # beside other releases the rho of the noise counts
            on_noise = spent_by(noise, sensitivity) or budget.to_zcdp()
            spent = Budget.approximate(budget.epsilon, budget.delta, on_noise.amount)
        return Calibration(self.name, None, noise, spent, on_noise)

    def draw(
        self,
        graph: WeightedGraph,
        calibration: Calibration,
        stream: Stream,
        *,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Published:
        """Publish all weights with noise. The minimum spanning tree of them is post-processing."""
        noisy = with_noise(graph.weights, calibration, stream, progress)
        distances = as_distances(noisy, graph.kind)
        edges = minimum_spanning_edges(graph.sources, graph.targets, distances, graph.n_nodes)
        tree = Tree(graph.topology.restricted_to(edges), noisy[edges], edges, kind=graph.kind)
        return Published(self.name, calibration.weights, tree, graph.topology, noisy)

    def draw_tree(self, graph: WeightedGraph, calibration: Calibration, stream: Stream) -> Tree:
        """Publish the topology of the minimum spanning tree of the noisy weights."""
        tree = self.draw(graph, calibration, stream).tree
        return Tree(tree.topology, edge_ids=tree.edge_ids, kind=tree.kind)

    def recalibrate(
        self, published: Published, sensitivity: Sensitivity, stated: tuple[MechanismUse, ...]
    ) -> Calibration | None:
        """Return what the noise on all weights spends."""
        spent = spent_by(published.noise, sensitivity)
        if spent is None:
            return None
        return Calibration(self.name, None, published.noise, spent, spent)

    def keeps(self, calibration: Calibration, sensitivity: Sensitivity, budget: Budget) -> bool:
        """Return whether the curve of the noise says that it keeps (epsilon, delta)."""
        noise = calibration.weights
        return self.distribution.curve_delta(noise, sensitivity, budget) <= budget.delta

    def uses(self, calibration: Calibration) -> tuple[MechanismUse, ...]:
        """Return the release of all weights."""
        return noise_use(calibration, "weights of the whole graph")
