"""PAMST (Algorithm 2 of the paper): Prim's algorithm, with the Exponential mechanism as minimum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ptclust._types import Array, Floats
from ptclust.graph.topology import Topology, WeightedGraph, frozen, index_dtype
from ptclust.mechanisms import _urn_kernel as kernel
from ptclust.mechanisms.exponential import (
    ALONE,
    HALF,
    SpanningTreeMechanism,
    calibrate_published_tree,
)
from ptclust.mechanisms.laws import SmallGraph, TreeLaw
from ptclust.mechanisms.mechanism import Calibration
from ptclust.mechanisms.urn import make_urn
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import NO_NOISE, noise_of_scale, spent_by
from ptclust.privacy.randomness import RandomStream as Stream
from ptclust.privacy.sensitivity import Sensitivity


class Pamst(SpanningTreeMechanism):
    """The paper's tree: each step chooses among the edges that leave the nodes reached so far."""

    name = "pamst"
    title = "PAMST: Exponential mechanism in Prim's order"
    reference = "Pinot et al. 2018, Algorithm 2; bounded range: Cesar and Rogers 2021"
    clusterer = "dbmstclu"

    def calibrate_published(
        self,
        topology: Topology,
        sensitivity: Sensitivity,
        budget: Budget,
        *,
        split: Fraction | None = None,
    ) -> Calibration:
        """Calibrate Algorithm 3 as printed: PAMST with epsilon / 2, Laplace scale 2 mu / epsilon.

        With the split ``ALONE`` it is Algorithm 2, PAMST with all of epsilon. ``spent`` is the
        truth.
        """
        if budget.delta != 0:
            return super().calibrate_published(topology, sensitivity, budget)
        n_tree = topology.n_tree_edges
        for_tree = budget.epsilon * (HALF if split is None else split)
        tree = calibrate_published_tree(sensitivity, n_tree, for_tree)
        if split == ALONE:
            return Calibration(self.name, tree, NO_NOISE, tree.spent or budget, None)
        for_weights = budget.epsilon - for_tree
        noise = noise_of_scale(sensitivity.largest_change / float(for_weights), n_tree)
        weights_spent = spent_by(noise, sensitivity)
        if tree.spent is None or weights_spent is None:  # no edges: nothing to hide
            return Calibration(self.name, tree, noise, budget, budget)
        return Calibration(self.name, tree, noise, tree.spent + weights_spent, weights_spent)

    def draw_edges(self, graph: WeightedGraph, exponent: float, stream: Stream) -> Array:
        """Return the ids, ascending, of a forest drawn from a uniform root in every component."""
        edges = graph.sources, graph.targets, graph.distances
        if np.all(graph.sources[1:] >= graph.sources[:-1]):  # as in every Graph
            return np.sort(self._draw_ordered(*edges, graph.topology, exponent, stream))
        order = np.argsort(graph.sources, kind="stable")
        sources, targets, distances = (frozen(array[order]) for array in edges)
        drawn = self._draw_ordered(sources, targets, distances, graph.topology, exponent, stream)
        return np.sort(order[drawn])

    def _draw_ordered(
        self,
        sources: Array,
        targets: Array,
        distances: Floats,
        topology: Topology,
        exponent: float,
        stream: Stream,
    ) -> Array:
        """Draw a forest of the topology with its edges in the order of their sources."""
        n_nodes, n_edges = topology.n_nodes, topology.n_edges
        index = index_dtype(n_edges)
        arc = [("node", sources.dtype), ("edge", index)]
        starts = np.zeros(n_nodes + 1, dtype=[("forward", index), ("backward", index)])
        backward = np.empty(n_edges, dtype=arc)
        kernel.group_arcs(sources, targets, starts, backward)
        urn, factor = make_urn(distances, exponent, np.dtype([*arc, ("exponent", np.int64)]))
        forest = np.empty(topology.n_tree_edges, dtype=index)
        roots = np.arange(n_nodes, dtype=sources.dtype)
        kernel.draw_pamst(
            urn, distances, factor, targets, starts, backward, roots, stream.state, forest
        )
        return forest

    def laws(self, graph: SmallGraph) -> tuple[TreeLaw, ...]:
        """Return the law of the tree, and that of the tree from root 0 for who knows the root."""
        return (
            TreeLaw("PAMST", graph, tuple(range(graph.n_nodes))),
            TreeLaw("PAMST, root known", graph, (0,)),
        )
