"""Mechanisms calibrated to a budget, from public numbers alone: a tree with weights, or a tree alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

from ptclust.errors import UsageError
from ptclust.privacy.budget import Budget
from ptclust.privacy.exponential import TreeCalibration, calibrate_tree, published_tree
from ptclust.privacy.noise import Noise, gaussian_noise, laplace_noise, published_laplace_noise

if TYPE_CHECKING:
    from ptclust.graph import Topology
    from ptclust.privacy.sensitivity import Sensitivity

__all__ = ["ALONE", "METHODS", "Calibration", "Candidate", "Method", "published", "sound"]

Method = Literal["kruskal", "pamst", "gaussian", "laplace"]
METHODS: tuple[Method, ...] = get_args(Method)
"""All methods; of two that promise the same noise, ``auto`` takes the first."""
Calibration = Literal["sound", "published"]
ALONE = Fraction(1)
"""The share of a tree without weights: all of the budget."""
_HALF = Fraction(1, 2)
_NO_NOISE = Noise("laplace", scale=0.0, granularity=0, n_values=0)


@dataclass(frozen=True)
class Candidate:
    """A way to publish a tree, as a rule with weights, and its noise."""

    method: Method
    tree: TreeCalibration | None
    """How the tree is drawn; None if it is the minimum spanning tree of a perturbed graph."""
    weights: Noise
    """The noise on the weights: of the tree, or of the whole graph where that is perturbed."""
    spent: Budget
    """What the release as a whole costs."""
    weights_spent: Budget | None
    """What of it goes into the weights; None if a tree is drawn alone."""
    visible_gap: float = 0.0
    """About how far apart weights within and across clusters have to be for clusters to be seen; a rule of thumb."""

    @property
    def noise(self) -> float:
        """The larger of the standard deviations with which tree and weights see the private weights."""
        return max(self.weights.standard_deviation, self.tree.noise if self.tree else 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the public numbers."""
        return {
            "method": self.method,
            "noise": self.noise,
            "visible_gap": self.visible_gap,
            "tree_exponent": self.tree.exponent if self.tree else None,
            "tree_noise": self.tree.noise if self.tree else None,
            "tree_largest_weight": self.tree.largest_weight
            if self.tree and self.tree.exponent
            else None,
            "weights": self.weights.to_dict(),
            "spent": self.spent.to_dict(),
        }


def sound(
    method: Method,
    topology: Topology,
    sensitivity: Sensitivity,
    budget: Budget,
    *,
    split: Fraction | None = None,
    largest_weight: float = 0.0,
) -> Candidate:
    """Return a candidate that spends no more than a pure or (epsilon, delta) budget.

    Where tree and weights are released apart, ``split`` is the share of the tree: ``ALONE`` for a tree without weights;
    without a split, tree and weights get shares that give both the same noise. ``largest_weight`` is that of
    `calibrate_tree`.

    >>> from ptclust import Sensitivity, Topology
    >>> path = Topology(range(99), range(1, 100))
    >>> alone = sound("kruskal", path, Sensitivity(linf=0.001), Budget.pure(0.5), split=ALONE)
    >>> round(alone.tree.exponent, 4), alone.weights.n_values, alone.spent
    (2.5253, 0, Budget.pure(0.5))
    """
    if method == "laplace":
        pure = Budget.pure(budget.epsilon)  # epsilon-DP is (epsilon, delta)-DP
        noise = laplace_noise(sensitivity, topology.n_edges, pure.epsilon)
        return Candidate(method, None, noise, pure, pure)
    # The form that tree and weights can share.
    shared = budget if budget.delta == 0 else budget.to_zcdp()
    if method == "gaussian":
        if shared.rho is None:
            raise UsageError("Gaussian noise is never pure: give delta > 0, or use 'laplace'")
        noise = gaussian_noise(sensitivity, topology.n_edges, shared.rho)
        return Candidate(method, None, noise, budget, shared)
    if split is None:
        halves = sound(
            method, topology, sensitivity, budget, split=_HALF, largest_weight=largest_weight
        )
        split = _even_split(halves, pure=shared.rho is None)
    n_tree = topology.n_tree_edges
    for_tree, for_weights = (shared, None) if split == ALONE else shared.share(split)
    if for_weights is None:
        weights = _NO_NOISE
    elif for_weights.rho is None:
        weights = laplace_noise(sensitivity, n_tree, for_weights.epsilon)
    else:
        weights = gaussian_noise(sensitivity, n_tree, for_weights.rho)
    tree = calibrate_tree(sensitivity, n_tree, for_tree, largest_weight)
    return Candidate(method, tree, weights, budget, for_weights)


def _even_split(halves: Candidate, *, pure: bool) -> Fraction:
    """Return the share of the tree, in per cent, that evens the noise out, from a candidate with equal shares.

    Noise falls with the share of epsilon, or with the root of the share of rho.
    """
    if halves.tree is None or not halves.tree.noise or not halves.weights.n_values:
        return _HALF
    ratio = halves.tree.noise / halves.weights.standard_deviation
    odds = ratio if pure else ratio**2
    return Fraction(min(95, max(5, round(100 * odds / (1 + odds)))), 100)


def published(
    topology: Topology, sensitivity: Sensitivity, budget: Budget, *, split: Fraction = _HALF
) -> Candidate:
    """Return Algorithm 3 with its printed scales: PAMST with epsilon / 2, Laplace noise of scale 2 mu / epsilon.

    With the split ``ALONE`` it is Algorithm 2, PAMST with all of epsilon. What is ``spent`` is the truth.
    """
    n_tree = topology.n_tree_edges
    for_tree = budget.epsilon * split
    tree = published_tree(sensitivity, n_tree, for_tree)
    if split == ALONE:
        return Candidate("pamst", tree, _NO_NOISE, tree.spent or budget, None)
    for_weights = budget.epsilon - for_tree
    noise = published_laplace_noise(sensitivity.largest_change / float(for_weights), n_tree)
    weights_spent = noise.spent(sensitivity)
    if tree.spent is None or weights_spent is None:  # no edges: nothing to hide
        return Candidate("pamst", tree, noise, budget, budget)
    return Candidate("pamst", tree, noise, tree.spent + weights_spent, weights_spent)
