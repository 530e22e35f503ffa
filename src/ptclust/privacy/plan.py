"""What would be spent on what: every mechanism's noise, known before any weight is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

from ptclust.errors import InputError, UsageError
from ptclust.graph import Topology
from ptclust.privacy._numbers import exact
from ptclust.privacy.budget import Budget
from ptclust.privacy.calibration import METHODS, Calibration, Candidate, Method, published, sound
from ptclust.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "METHODS",
    "Calibration",
    "Candidate",
    "Clusterer",
    "Method",
    "Plan",
    "averages",
    "check_clusterer",
    "check_range",
    "check_sensitivity",
    "plan",
]

Clusterer = Literal["auto", "dbmstclu", "levels", "contraction"]
"""How what is released will be clustered (``ptclust.release.ways``)."""

_REDUNDANCY = 2
"""How many times as many edges as a tree a graph needs for averages over edges to say more than single ones."""


def averages(n_edges: int, n_tree_edges: int) -> bool:
    """Whether a release of all weights has enough of them to average the noise out."""
    return n_edges >= _REDUNDANCY * n_tree_edges


@dataclass(frozen=True)
class Plan:
    """All candidates, and the one that is chosen."""

    n_nodes: int
    n_edges: int
    n_components: int
    sensitivity: Sensitivity
    budget: Budget
    """What was asked for."""
    calibration: Calibration
    candidates: tuple[Candidate, ...]
    chosen: Candidate
    weight_range: tuple[float, float] | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to think about before spending."""
        if self.weight_range is None:
            return ()
        width = self.weight_range[1] - self.weight_range[0]
        if min(self.chosen.noise, self.chosen.visible_gap) <= width:
            return ()
        return (
            f"the noise (standard deviation {self.chosen.noise:.3g}) is larger than the whole range of the weights "
            f"({width:.3g}): the clusters will say nothing about them. Use a larger epsilon, a smaller graph, or "
            "a smaller sensitivity if one holds",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the public numbers."""
        return {
            "n_nodes": self.n_nodes,
            "n_edges": self.n_edges,
            "n_components": self.n_components,
            "sensitivity": self.sensitivity.to_dict(),
            "budget": self.budget.to_dict(),
            "calibration": self.calibration,
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "chosen": self.chosen.method,
            "warnings": list(self.warnings),
        }

    def to_text(self) -> str:
        """Return the plan as a page to read."""
        lines = [
            f"{self.n_nodes:,} nodes, {self.n_edges:,} edges, {self.n_components:,} component(s)",
            f"Budget: {self.budget}; {self.sensitivity.describe()}",
            "",
            f"  {'method':10s}{'tree noise':>12s}{'weight noise':>14s}{'visible gap':>13s}  noise on",
        ]
        for candidate in self.candidates:
            mark = ">" if candidate is self.chosen else " "
            tree = f"{candidate.tree.noise:.3g}" if candidate.tree else "-"
            where = "the tree" if candidate.tree else f"all {self.n_edges:,} edges"
            lines.append(
                f"{mark} {candidate.method:10s}{tree:>12s}{candidate.weights.standard_deviation:14.3g}"
                f"{candidate.visible_gap:13.3g}  {where}"
            )
        lines += [
            "",
            "Noise is in units of the weights (standard deviation). Clusters are seen, about, if weights within and",
            "across them are the visible gap apart. '>' is chosen.",
        ]
        if self.chosen.tree is not None:
            lines.append(
                f"To the tree, weights beyond {self.chosen.tree.largest_weight:.3g} in size look like that bound."
            )
        if self.chosen.spent != self.budget:
            lines.append(f"As calibrated, the chosen one truly spends {self.chosen.spent}.")
        return "\n".join([*lines, *(f"Warning: {warning}." for warning in self.warnings)])


def plan(
    topology: Topology,
    *,
    epsilon: float | Fraction,
    delta: float | Fraction = 0,
    sensitivity: Sensitivity,
    tree: Method | Literal["auto"] = "auto",
    split: float | Fraction | None = None,
    clusterer: Clusterer = "auto",
    calibration: Calibration = "sound",
    weight_range: tuple[float, float] | None = None,
) -> Plan:
    """Return every mechanism that fits the budget, with its noise, and the one that would be used.

    Only public numbers are needed: how many nodes, edges and components there are, the budget and the sensitivity.

    Parameters
    ----------
    topology : Topology
    epsilon, delta : float
        The budget. With delta = 0 all is pure; with delta > 0 tree and weights share a zCDP budget.
    sensitivity : Sensitivity
        By how much one privacy unit can move the weights.
    tree : {"auto", "kruskal", "pamst", "gaussian", "laplace"}
        The mechanism, or the one that lets the smallest clusters be seen.
    split : float, optional
        Share of the budget for the tree, where tree and weights are released apart. By default the noise of both is the
        same.
    clusterer : {"auto", "dbmstclu", "levels", "contraction"}
        How what is released will be clustered: one that averages over edges bears more noise on each.
    calibration : {"sound", "published"}
        The paper's printed scales spend more than the paper claims; the plan says how much.
    weight_range : pair of float, optional
        Public bounds of the weights, to warn of noise that drowns them, and to keep all of them apart in the tree where
        the sensitivity is tiny.

    Examples
    --------
    >>> from ptclust import Sensitivity, Topology
    >>> path = Topology(range(99), range(1, 100))
    >>> plan(path, epsilon=1.0, delta=1e-6, sensitivity=Sensitivity(linf=0.001)).chosen.method
    'gaussian'
    >>> plan(path, epsilon=1.0, sensitivity=Sensitivity(l1=0.001)).chosen.method
    'laplace'
    """
    if not isinstance(topology, Topology):
        raise InputError(
            f"a plan is made for a Topology, not an object of type {type(topology).__name__}; of a Graph take "
            "graph.topology"
        )
    budget = Budget.approximate(epsilon, delta)
    check_sensitivity(sensitivity)
    if tree != "auto" and tree not in METHODS:
        raise UsageError(f"tree must be 'auto' or one of {', '.join(METHODS)}, not {tree!r}")
    check_clusterer(clusterer)
    if clusterer == "contraction" and tree not in ("auto", "gaussian", "laplace"):
        raise UsageError(
            f"clusterer='contraction' needs the weights of the whole graph, and tree={tree!r} releases those of a "
            "tree; use tree='auto', 'gaussian' or 'laplace'"
        )
    weight_range = check_range(weight_range)
    part = None if split is None else _as_split(split)
    n_tree = topology.n_tree_edges
    largest = max(map(abs, weight_range)) if weight_range is not None else 0.0
    candidates: tuple[Candidate, ...]
    if calibration == "published":
        _check_published(tree, budget, part)
        candidates = (published(topology, sensitivity, budget),)
    elif calibration == "sound":
        asked = METHODS if tree == "auto" else (tree,)
        candidates = _affordable(
            lambda method: sound(
                method, topology, sensitivity, budget, split=part, largest_weight=largest
            ),
            [
                method
                for method in asked
                if (tree != "auto" or method != "gaussian" or budget.delta > 0)
                and (clusterer != "contraction" or method in ("gaussian", "laplace"))
            ],
        )
    else:
        raise UsageError(f"calibration must be 'sound' or 'published', not {calibration!r}")
    averaging = clusterer in ("auto", "contraction") and averages(topology.n_edges, n_tree)
    candidates = tuple(_with_gap(one, topology, averaging=averaging) for one in candidates)
    return Plan(
        n_nodes=topology.n_nodes,
        n_edges=topology.n_edges,
        n_components=topology.n_components,
        sensitivity=sensitivity,
        budget=budget,
        calibration=calibration,
        candidates=candidates,
        chosen=min(candidates, key=lambda one: (one.visible_gap, one.noise)),
        weight_range=weight_range,
    )


def _affordable(
    calibrate: Callable[[Method], Candidate], methods: Sequence[Method]
) -> tuple[Candidate, ...]:
    """Return the candidates that the budget affords; if there is none, raise what the first of them lacks."""
    found, problems = [], []
    for method in methods:
        try:
            found.append(calibrate(method))
        except UsageError as problem:
            problems.append(problem)
    if not found:
        raise problems[0]
    return tuple(found)


def _with_gap(candidate: Candidate, topology: Topology, *, averaging: bool) -> Candidate:
    """Return the candidate with its visible gap.

    A way of clustering that trusts single edges fails once the largest of n noises bridges the gap from either side:
    2 sqrt(2 log n) deviations. One that averages sees about d edges of every node, d being the mean degree, and the
    two levels of m weights; its constants are measured (docs/decisions/0009-averaging-beats-single-edges.md).
    """
    n, m = topology.n_nodes, topology.n_edges
    if averaging and candidate.tree is None and m:
        factor = max(7.0 / math.sqrt(2.0 * m / n), 8.0 / m**0.25)
    else:
        factor = 2.0 * math.sqrt(2.0 * math.log(max(n, 2)))
    return replace(candidate, visible_gap=factor * candidate.noise)


def check_clusterer(clusterer: object) -> None:
    """Raise UsageError unless there is such a way of clustering."""
    if clusterer not in get_args(Clusterer):
        raise UsageError(
            f"clusterer must be one of {', '.join(get_args(Clusterer))}, not {clusterer!r}"
        )


def check_sensitivity(sensitivity: object) -> None:
    """Raise UsageError unless this is a Sensitivity."""
    if not isinstance(sensitivity, Sensitivity):
        raise UsageError(
            f"sensitivity must be a Sensitivity, such as Sensitivity(linf=0.001), not {sensitivity!r}"
        )


def _check_published(
    tree: Method | Literal["auto"], budget: Budget, split: Fraction | None
) -> None:
    if tree not in ("auto", "pamst") or budget.delta != 0:
        raise UsageError(
            "calibration='published' is the paper's Algorithm 3, PAMST and Laplace noise: use tree='pamst' and delta=0"
        )
    if split not in (None, Fraction(1, 2)):
        raise UsageError(
            "calibration='published' gives one half of epsilon to the tree and one to the weights: leave split out"
        )


def _as_split(split: float | Fraction) -> Fraction:
    remedy = "It is the share of the budget for the tree, such as 0.5; the rest is for the weights."
    part = exact("split", split, remedy)
    if not 0 < part < 1:
        raise UsageError(f"split must lie between 0 and 1, but is {split!r}. {remedy}")
    return part


def check_range(weight_range: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the bounds as floats; raise UsageError unless they are a pair of finite numbers in order."""
    if weight_range is None:
        return None
    try:
        low, high = (float(bound) for bound in weight_range)
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    if not (low < high and abs(low) < float("inf") and abs(high) < float("inf")):
        raise UsageError(
            f"bounds of the weights must be a pair of finite numbers, the smaller first, not {weight_range!r}"
        )
    return low, high
