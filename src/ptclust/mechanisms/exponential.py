"""Spanning trees by steps of the Exponential mechanism: the exponent that a budget affords.

A step selects r among candidates with probability proportional to exp(-c w(r)): the utility is
u_G(w, r) = -|w(r) - min w| of the paper, whose minimum cancels. For similarities w is minus the
weight: no bound on them is needed, as any shift cancels. Between neighbours the exponents of
two candidates differ by at most c times ``Sensitivity.spread``, and so does the range of the
privacy loss: the step is beta-DP and beta^2/8-zCDP (bounded range; Cesar and Rogers 2021). A tree
takes k adaptive steps, and as they choose k different edges, together they are k c
``Sensitivity.mean_spread(k)``-DP, which may be less than k beta (docs/proofs/private-trees.md,
lemma of the mean).
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ptclust._types import Array, Floats
from ptclust.errors import InputError, UsageError
from ptclust.graph.topology import Topology, WeightedGraph, index_dtype
from ptclust.mechanisms import _urn_kernel as kernel
from ptclust.mechanisms._urn_kernel import GRID
from ptclust.mechanisms.mechanism import Calibration, Mechanism, Variant, noise_use, with_noise
from ptclust.privacy.budget import Budget
from ptclust.privacy.gaussian_curve import Steps
from ptclust.privacy.noise import NO_NOISE, least_noise, spent_by
from ptclust.privacy.randomness import RandomStream as Stream
from ptclust.privacy.sensitivity import Sensitivity
from ptclust.privacy.statement import MechanismUse
from ptclust.published import Published
from ptclust.trees.tree import Tree

ALONE = Fraction(1)  # the share of a tree without weights: all of the budget
HALF = Fraction(1, 2)

#: By how much the rounding of the sampler can widen the privacy loss of one step, in nats.
#:
#: The exponents of two neighbours are each rounded by at most half a grid step of log 2, so their
#: difference moves by at most one step, and the range over all candidates by at most two; so does
#: the distance of one from a mean of others. The acceptance probability is off by less than 2^-51
#: relative, for each of two candidates under each of two neighbours. All else has no error.
STEP_SLACK = 2.0 * math.log(2.0) * 2.0**-GRID * (1.0 + 2.0**-20) + 4.0 * 2.0**-51

#: The sampler clamps exponents at this many nats: it keeps them in 62 bits.
LARGEST_EXPONENT = 2.0 ** (62 - GRID) * math.log(2.0)

_DOWN = 1.0 - 2.0**-48  # swallows the rounding of the few operations below
_LARGEST = 2.0**900  # beyond, products in the sampler overflow; a smaller exponent spends no more


@dataclass(frozen=True)
class TreeCalibration:
    """An exponent, and what a tree drawn with it spends."""

    exponent: float
    n_steps: int
    spent: Budget | None  # None if there is nothing to draw

    @property
    def slack(self) -> float:
        """How much of the epsilon spent pays for the rounding of the sampler."""
        return self.n_steps * STEP_SLACK

    @property
    def noise(self) -> float:
        """Standard deviation of the Gumbel noise on weights that the draw amounts to."""
        return math.pi / math.sqrt(6.0) / self.exponent if self.exponent > 0 else 0.0

    @property
    def largest_weight(self) -> float:
        """The size that the draw clamps larger weights to, positive or negative."""
        return LARGEST_EXPONENT / self.exponent if self.exponent > 0 else math.inf


def calibrate_tree(
    sensitivity: Sensitivity, n_steps: int, budget: Budget, largest_weight: float = 0.0
) -> TreeCalibration:
    """Return the largest exponent with which ``n_steps`` steps fit in a pure or zCDP budget.

    Where the sensitivity is tiny, weights up to the public bound ``largest_weight`` would reach the
    end of the sampler's range and become equal; the exponent is then the one where they just do
    not.

    >>> from ptclust.privacy.sensitivity import Sensitivity
    >>> tree = calibrate_tree(Sensitivity(linf=0.001), 99, Budget.pure(0.5))
    >>> round(tree.exponent, 4)  # epsilon / (2 mu k)
    2.5253
    """
    if n_steps == 0:
        return TreeCalibration(0.0, 0, None)
    if budget.rho is not None:
        step_range = math.sqrt(8.0 * float(budget.rho) / n_steps) * _DOWN
        spread = sensitivity.spread
    else:
        step_range = float(budget.epsilon) / n_steps * _DOWN
        spread = sensitivity.mean_spread(n_steps)
    if not step_range > STEP_SLACK:
        raise UsageError(
            f"a budget of {budget} over {n_steps} steps leaves each less than the rounding of the "
            f"sampler, {STEP_SLACK:.1e}; raise the budget"
        )
    exponent = _usable((step_range - STEP_SLACK) / spread * _DOWN)
    if exponent * largest_weight > LARGEST_EXPONENT:
        exponent = LARGEST_EXPONENT / largest_weight * _DOWN
    return TreeCalibration(exponent, n_steps, budget)


def calibrate_published_tree(
    sensitivity: Sensitivity, n_steps: int, epsilon: Fraction
) -> TreeCalibration:
    """Return the paper's exponent, from Delta u = 2 mu, and what it truly spends.

    It is sound and wastes a factor of 2 under linf neighbours: (n - 1) steps of
    epsilon / (4 mu (n - 1)) spend epsilon / 2.
    """
    if n_steps == 0:
        return TreeCalibration(0.0, 0, None)
    exponent = _usable(float(epsilon) / (4.0 * sensitivity.largest_change * n_steps) * _DOWN)
    spent = n_steps * (exponent * sensitivity.mean_spread(n_steps) + STEP_SLACK) / _DOWN
    return TreeCalibration(exponent, n_steps, Budget.pure(spent))


def _usable(exponent: float) -> float:
    """Return an exponent that the sampler can work with, no larger than this one."""
    if exponent < sys.float_info.min:  # its digits are lost, and so is the bound on what it spends
        raise UsageError("the sensitivity is too large; divide the weights and it by a constant")
    return min(exponent, _LARGEST)


class SpanningTreeMechanism(Mechanism):
    """A spanning tree drawn edge by edge, then its weights with noise (M_w.r, Weight-Release).

    A subclass has the order in which edges are chosen, ``draw_edges``. The weights of the tree get
    the least noise there is for their share, pure or zCDP.
    """

    publishes = "tree"
    variants: tuple[Variant, ...] = ("pure", "approximate")
    norm = "linf"
    proof = "docs/proofs/private-trees.md"

    @abstractmethod
    def draw_edges(self, graph: WeightedGraph, exponent: float, stream: Stream) -> Array:
        """Return the ids, ascending, of the edges of a spanning forest.

        Every step chooses an edge r with probability proportional to exp(-exponent * w(r)).

        Notes
        -----
        *Privacy.* A step has a privacy loss of range exponent * sensitivity.spread + STEP_SLACK at
        most; there are k = ``n_tree_edges`` steps, whose losses sum to
        k (exponent * sensitivity.mean_spread(k) + STEP_SLACK) at most.
        """

    def calibrate(
        self,
        topology: Topology,
        sensitivity: Sensitivity,
        budget: Budget,
        *,
        split: Fraction | None = None,
        largest_weight: float = 0.0,
    ) -> Calibration:
        """Share the budget between tree and weights.

        (epsilon, delta) becomes the largest rho under which the curve of steps and noise keeps it
        (docs/proofs/gaussian-curve.md, "Steps before the noise"), a tree alone that of zCDP.

        >>> from ptclust import Sensitivity, Topology
        >>> from ptclust.mechanisms import MECHANISMS
        >>> kruskal, path = MECHANISMS["kruskal"], Topology(range(99), range(1, 100))
        >>> alone = kruskal.calibrate(path, Sensitivity(linf=0.001), Budget.pure(0.5), split=ALONE)
        >>> round(alone.tree.exponent, 4), alone.weights.n_values, alone.spent
        (2.5253, 0, Budget.pure(0.5))
        """
        n_tree = topology.n_tree_edges

        def shared_out(shared: Budget, share: Fraction | None = split) -> Calibration:
            if share is None:
                share = _even_split(shared_out(shared, HALF), shared)
            for_tree, for_weights = (shared, None) if share == ALONE else shared.share(share)
            tree = calibrate_tree(sensitivity, n_tree, for_tree, largest_weight)
            noise = least_noise(sensitivity, n_tree, for_weights) if for_weights else NO_NOISE
            spent = budget
            if budget.kind == "approximate":
                spent = Budget.approximate(budget.epsilon, budget.delta, shared.rho)
            return Calibration(self.name, tree, noise, spent, for_weights)

        if budget.kind != "approximate":
            return shared_out(budget)
        by_zcdp = shared_out(budget.to_zcdp())
        if by_zcdp.weights.n_values:
            noise, steps = by_zcdp.weights, _steps(by_zcdp, sensitivity)
            rho = noise.law.rho_within(budget, noise, sensitivity, steps)
            if rho is not None and rho > budget.to_zcdp().amount:
                by_curve = shared_out(Budget.zcdp(rho))
                if self.keeps(by_curve, sensitivity, budget):
                    return by_curve
        return by_zcdp

    def keeps(self, calibration: Calibration, sensitivity: Sensitivity, budget: Budget) -> bool:
        """Return whether the curve of steps and noise says that they keep (epsilon, delta)."""
        noise, steps = calibration.weights, _steps(calibration, sensitivity)
        return noise.law.curve_delta(noise, sensitivity, budget, steps) <= budget.delta

    def draw(
        self,
        graph: WeightedGraph,
        calibration: Calibration,
        stream: Stream,
        *,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Published:
        """Draw the tree, then release its weights."""
        progress(f"Private spanning tree of {graph.n_nodes:,} nodes and {graph.n_edges:,} edges")
        edges = self._tree_edges(graph, calibration, stream)
        noisy_weights = with_noise(graph.weights[edges], calibration, stream, progress)
        tree = Tree(graph.topology.restricted_to(edges), noisy_weights, edges, kind=graph.kind)
        return Published(self.name, calibration.weights, tree)

    def draw_tree(self, graph: WeightedGraph, calibration: Calibration, stream: Stream) -> Tree:
        """Draw the tree alone."""
        edges = self._tree_edges(graph, calibration, stream)
        return Tree(graph.topology.restricted_to(edges), edge_ids=edges, kind=graph.kind)

    def _tree_edges(self, graph: WeightedGraph, calibration: Calibration, stream: Stream) -> Array:
        """Return the edges of the tree: drawn, unless the public topology leaves no choice."""
        if graph.topology.is_forest:
            return np.arange(graph.n_edges, dtype=index_dtype(graph.n_edges))
        return self.draw_edges(graph, _tree_of(calibration).exponent, stream)

    def recalibrate(
        self, published: Published, sensitivity: Sensitivity, stated: tuple[MechanismUse, ...]
    ) -> Calibration | None:
        """Return what as many steps as the tree has edges, and the noise on its weights, spend.

        The exponent is taken from the statement: one draw does not show it.
        """
        on_weights = spent_by(published.noise, sensitivity)
        exponent = stated[0].parameters.get("exponent") if stated else None
        if not exponent or not 0 < exponent <= _LARGEST or not math.isfinite(sensitivity.spread):
            raise InputError(
                f"the statement lacks the exponent by which {self.name!r} drew a tree, or it is "
                "out of the range of all that are used"
            )
        if on_weights is None:
            return None
        n_steps, pure = published.tree.n_edges, on_weights.rho is None
        spread = sensitivity.mean_spread(n_steps) if pure else sensitivity.spread
        loss = _loss_range(exponent, spread)
        on_tree = Budget.pure(n_steps * loss) if pure else Budget.zcdp(n_steps * loss**2 / 8)
        tree = TreeCalibration(exponent, n_steps, on_tree)
        return Calibration(self.name, tree, published.noise, on_tree + on_weights, on_weights)

    def uses(self, calibration: Calibration) -> tuple[MechanismUse, ...]:
        """Return the draw of the tree, and the release of its weights."""
        tree, of_weights = _tree_of(calibration), noise_use(calibration, "weights of the tree")
        if tree.spent is None:
            return of_weights
        of_tree = MechanismUse(
            name=self.title,
            purpose="topology of the spanning tree",
            share=float(tree.spent.amount),
            share_of=tree.spent.unit,
            noise="Gumbel, by exact sampling of the Exponential mechanism",
            scale=1.0 / tree.exponent,
            parameters={"n_steps": tree.n_steps, "exponent": tree.exponent},
            reference=self.reference,
        )
        return (of_tree, *of_weights)


def _tree_of(calibration: Calibration) -> TreeCalibration:
    if calibration.tree is None:
        raise UsageError(f"{calibration.mechanism!r} draws no tree: calibrate the one that draws")
    return calibration.tree


def _steps(calibration: Calibration, sensitivity: Sensitivity) -> Steps:
    """Return the steps of the tree, each with the range of its privacy loss."""
    tree = _tree_of(calibration)
    return Steps(tree.n_steps, _loss_range(tree.exponent, sensitivity.spread))


def _loss_range(exponent: float, spread: float) -> Fraction:
    return Fraction(exponent) * Fraction(spread) + Fraction(STEP_SLACK)


def _even_split(halves: Calibration, shared: Budget) -> Fraction:
    """Return the share of the tree, in per cent, that evens the noise out, from equal shares.

    Noise falls with the share of epsilon, or with the root of the share of rho.
    """
    tree_noise = _tree_of(halves).noise
    if not tree_noise or not halves.weights.n_values:
        return HALF
    ratio = tree_noise / halves.weights.standard_deviation
    odds = ratio if shared.rho is None else ratio**2
    return Fraction(min(95, max(5, round(100 * odds / (1 + odds)))), 100)


def grid_factor(exponent: float) -> float:
    """Return the factor that takes weights to exponents in steps of the grid.

    It is rounded down: never above what was calibrated.
    """
    return exponent / math.log(2.0) * 2.0**GRID * (1.0 - 2.0**-50)


def make_urn(
    weights: Floats, exponent: float, item_dtype: Any, window: int = 32
) -> tuple[kernel.Urn, float]:
    """Return an empty urn for all edges, and the factor that takes weights to rounded exponents.

    ``window``, how many buckets are compared at once, is a matter of speed; up to 32 no sum of
    masses can overflow.
    """
    factor = grid_factor(exponent)
    ends = (float(weights.min()), float(weights.max())) if len(weights) else (0.0, 0.0)
    smallest, largest = (kernel.exponent_of(weight, factor) >> GRID for weight in ends)
    n_buckets = largest - smallest + 1
    urn = kernel.Urn(
        start=np.zeros(n_buckets + 1, dtype=np.int64),
        filled=np.zeros(n_buckets, dtype=np.int64),
        items=np.empty(len(weights), dtype=item_dtype),
        block_count=np.zeros(n_buckets // kernel.BLOCK + 2, dtype=np.int64),
        totals=np.array([0, n_buckets, 0, smallest, window, 0, 0], dtype=np.int64),
    )
    kernel.lay_out(urn, weights, factor)
    return urn, factor


def sampler_energies(weights: Floats, exponent: float) -> Floats:
    """Return exponent * weights as the sampler has them, rounded to its grid: for the audit."""
    factor = grid_factor(exponent)
    steps = [kernel.exponent_of(weight, factor) for weight in weights.tolist()]
    return np.array(steps, dtype=np.float64) * (math.log(2.0) * 2.0**-GRID)
