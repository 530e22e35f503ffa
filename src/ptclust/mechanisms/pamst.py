"""PAMST (Algorithm 2 of the paper): Prim's algorithm, with the Exponential mechanism as minimum."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ptclust._types import Array, Floats
from ptclust.graph.topology import Topology, WeightedGraph, index_dtype
from ptclust.mechanisms import _urn_kernel as kernel
from ptclust.mechanisms.exponential import (
    ALONE,
    HALF,
    SpanningTreeMechanism,
    calibrate_published_tree,
    make_urn,
)
from ptclust.mechanisms.laws import SmallGraph, TreeLaw
from ptclust.mechanisms.mechanism import Calibration
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import NO_NOISE, noise_of_scale, spent_by
from ptclust.privacy.randomness import RandomStream as Stream
from ptclust.privacy.sensitivity import Sensitivity

_FEW_EDGES = 1 << 14  # with less, all are listed
_SAMPLE = 1 << 12
_RARE = 10  # the rates of edges not listed are so many powers of two below common ones
_WORTHWHILE = 0.75  # list all edges if more than this part would be
PATIENCE = 16  # edges beside one draw wasted on those not listed: then they are listed after all


class Pamst(SpanningTreeMechanism):
    """The paper's tree: each step chooses among the edges that leave the nodes reached so far."""

    name = "pamst"
    title = "PAMST: Exponential mechanism in Prim's order"
    reference = "Pinot et al. 2018, Algorithm 2; bounded range: Cesar and Rogers 2021"
    clusterer = "dbmstclu"
    keyed = "shortest paths"

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
        """Return the ids, ascending, of a forest drawn from a uniform root in every component.

        Edges so heavy that they are hardly ever chosen are not listed at their nodes at first. Once
        most nodes are reached, few of these edges can still be chosen.
        """
        n_nodes, n_edges = graph.n_nodes, graph.n_edges
        item = [("node", graph.sources.dtype), ("edge", index_dtype(n_edges))]
        arc = np.dtype([*item, ("bucket", np.int32)])
        urn, factor = make_urn(graph.distances, exponent, np.dtype(item))
        edges = kernel.Edges(graph.sources, graph.targets, graph.distances, factor)
        roots = np.arange(n_nodes, dtype=graph.sources.dtype)
        kernel.shuffle(roots, stream.state)
        forest = np.empty(graph.topology.n_tree_edges, dtype=index_dtype(n_edges))
        reached = np.zeros(n_nodes // 64 + 1, dtype=np.uint64)  # bits: the caches hold them all
        counts = np.zeros(2, dtype=np.int64)
        heaviest = heaviest_listed(graph.distances, n_nodes, exponent)
        while True:
            starts = np.zeros(n_nodes + 1, dtype=index_dtype(2 * n_edges))
            kernel.count_arcs(edges, heaviest, reached, starts)
            near = kernel.Arcs(starts, np.empty(starts[-1], dtype=arc))
            kernel.list_arcs(edges, heaviest, reached, urn.totals, near)
            state = reached, roots, stream.state, forest, counts
            kernel.draw_pamst(urn, edges, heaviest, PATIENCE, near, *state)
            if counts[0] == len(forest):
                return np.sort(forest)
            kernel.put_heavy(urn, edges, heaviest, reached, np.empty(1, dtype=arc))
            heaviest = np.inf

    def laws(self, graph: SmallGraph) -> tuple[TreeLaw, ...]:
        """Return the law of the tree, and that from root 0, for an observer who knows the root."""
        return (
            TreeLaw("PAMST", graph, tuple(range(graph.n_nodes))),
            TreeLaw("PAMST, root known", graph, (0,)),
        )


def heaviest_listed(distances: Floats, n_nodes: int, exponent: float) -> float:
    """Return the weight beyond which edges are not listed at first, or infinity.

    It matters for speed alone: whatever it is, edges are chosen with the same probabilities.
    """
    n_edges = len(distances)
    if n_edges < _FEW_EDGES:
        return np.inf
    sample = np.sort(distances[:: n_edges // _SAMPLE])
    # Edges below the first weight join nodes to a large component; those below the other, nearly
    # all nodes. Beyond, rates must be so small that a draw rarely hits an edge that is not listed.
    ranks = (int(per_node * n_nodes / n_edges * len(sample)) for per_node in (0.5, 3))
    common, enough = (sample[min(rank, len(sample) - 1)] for rank in ranks)
    heaviest = max(enough, common + _RARE * math.log(2.0) / exponent)
    return float(heaviest) if np.mean(sample <= heaviest) < _WORTHWHILE else np.inf
