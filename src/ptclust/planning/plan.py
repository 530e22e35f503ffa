"""Plans: the noise of every mechanism, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ptclust._markup import facts, rendered
from ptclust._options import (
    Bounds,
    CalibrationRule,
    Engine,
    Kind,
    PlanOptions,
    Sampler,
    check_choice,
)
from ptclust._registry import AUTO
from ptclust._traces import leaves_no_trace, shown_half_built
from ptclust.clustering.clusterer import CLUSTERERS, Clusterer, ClusteringRequest
from ptclust.errors import InputError, UsageError
from ptclust.graph.topology import Counts, Topology
from ptclust.mechanisms import MECHANISMS, Calibration, Mechanism
from ptclust.mechanisms.lattice import sampler_of
from ptclust.mechanisms.mechanism import Publishes
from ptclust.privacy._numbers import exact, shown
from ptclust.privacy.budget import Budget
from ptclust.privacy.provenance import Provenance
from ptclust.privacy.sensitivity import Sensitivity, check_sensitivity
from ptclust.privacy.statement import PrivacyStatement

_LARGE_EPSILON, _LARGE_DELTA = 10.0, 1e-4
#: Of a graph with more edges that stay in Spark, this machine clusters the spanning tree alone.
LARGEST_WHOLE = 5 * 10**7

_COMPUTATIONAL = (
    "the noise of every edge is a function of the edge and of a secret key of 256 bits: the "
    "guarantee is computational, against anyone who cannot break ChaCha20"
)
_TREE_ALONE = "noise was drawn for the weights of all edges; those of their spanning tree are here"


@shown_half_built
@dataclass(frozen=True, kw_only=True)
class PlanRequest(PlanOptions):
    """What is requested of a release, in public numbers: the parameters of `plan`, checked once."""

    sensitivity: Sensitivity
    engine: Engine = "local"
    budget: Budget = field(init=False, repr=False, compare=False)
    clustering: ClusteringRequest = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", Budget.approximate(self.epsilon, self.delta))
        check_sensitivity(self.sensitivity)
        MECHANISMS.check(self.mechanism)
        object.__setattr__(self, "clustering", ClusteringRequest(clusterer=self.clusterer))
        check_choice("calibration", self.calibration, CalibrationRule)
        check_choice("sampler", self.sampler, Sampler)
        check_choice("engine", self.engine, Engine)
        if self.engine == "spark":
            self._check_keyed()
        object.__setattr__(self, "split", _as_split(self.split))
        if self.calibration == "published" and self.split not in (None, 0.5):
            raise UsageError(
                "calibration='published' halves epsilon for the tree: leave split= out"
            )
        object.__setattr__(self, "clip", _as_clip(self.clip))
        largest, size = self.sensitivity.largest_weight, max(map(abs, self.bounds))
        if size > largest:
            raise UsageError(
                f"at weights of {size:g} floats lie so far apart that a change of "
                f"{self.sensitivity.largest_change:g} is lost or grows in rounding; give clip= "
                f"within {-largest:g} and {largest:g}, or count in larger units"
            )

    def _check_keyed(self) -> None:
        """Refuse what Spark does not draw."""
        if self.sampler == "opendp":
            raise UsageError("Spark draws noise by key, which OpenDP does not: leave sampler= out")
        if self.mechanism != AUTO and not MECHANISMS[self.mechanism].keyed:
            keyed = " or ".join(each.name for each in MECHANISMS if each.keyed)
            raise UsageError(
                f"{self.mechanism!r} has no draw by key, which Spark needs; with engine='spark' "
                f"use {keyed}"
            )

    @property
    def bounds(self) -> Bounds:
        """Public bounds that weights are moved into before a mechanism sees them."""
        largest = self.sensitivity.largest_weight
        return (-largest, largest) if self.clip is None else self.clip

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanisms that are considered."""
        if self.mechanism != AUTO:
            return (MECHANISMS[self.mechanism],)
        there = tuple(each for each in MECHANISMS if each.keyed or self.engine == "local")
        if self.clusterer == AUTO:
            return there
        needs = CLUSTERERS[self.clusterer].needs
        return tuple(each for each in there if needs in ("tree", each.publishes))

    def at_hand(self, n_edges: int) -> Publishes | None:
        """Return "tree" if the tree alone of so many edges is clustered, None as published."""
        return "tree" if self.engine == "spark" and n_edges > LARGEST_WHOLE else None


@shown_half_built
@dataclass(frozen=True)
class Plan:
    """All mechanisms that the budget affords, calibrated, and the one that is chosen."""

    n_nodes: int
    n_edges: int
    n_components: int
    request: PlanRequest
    calibrations: tuple[Calibration, ...]
    chosen: Calibration

    @property
    def budget(self) -> Budget:
        """What was requested; ``chosen.spent`` is what is spent."""
        return self.request.budget

    @property
    def mechanism(self) -> Mechanism:
        """The chosen mechanism."""
        return MECHANISMS[self.chosen.mechanism]

    def choose_clusterer(self, request: ClusteringRequest | None = None) -> Clusterer:
        """Return what will cluster the release; by default what was planned for."""
        wanted, at_hand = request or self.request.clustering, self.request.at_hand(self.n_edges)
        n_tree = self.n_nodes - self.n_components
        return wanted.choose(self.mechanism, self.n_edges, n_tree, at_hand)

    @property
    def tree_alone(self) -> bool:
        """Whether a release has the tree of noisy weights, and not all of them."""
        return self.mechanism.publishes == "graph" and bool(self.request.at_hand(self.n_edges))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before it is spent: a weak guarantee, or noise above all weights."""
        return (*weak_promises(self.chosen.spent, self.n_nodes), *self.noise_warnings)

    @property
    def noise_warnings(self) -> tuple[str, ...]:
        """A warning if the noise exceeds the range of the weights."""
        low, high = self.request.clip or (0.0, math.inf)
        width = high - low
        if min(self.chosen.noise, self.chosen.visible_gap) <= width:
            return ()
        return (
            f"the noise (standard deviation {self.chosen.noise:.3g}) is larger than the whole "
            f"range of the weights ({width:.3g}): the clusters will say nothing about them. Use a "
            "larger epsilon, a smaller graph, or a smaller sensitivity if one holds",
        )

    def statement(
        self,
        *,
        reproducible: bool,
        privacy_unit: str | None = None,
        kind: Kind = "distance",
        merge: str | None = None,
        provenance: Provenance | None = None,
    ) -> PrivacyStatement:
        """Return what a release by this plan, of a graph of which these are known, guarantees."""
        chosen, request = self.chosen, self.request
        caveats = list(self.warnings)
        if chosen.tree is not None and chosen.tree.exponent > 0:
            bound = f"beyond {chosen.tree.largest_weight:.3g} in size look like that bound"
            caveats.append(f"to the draw of the tree, weights {bound}")
        if request.clip is None:
            bound = f"beyond {request.bounds[1]:.3g} in size were moved to that bound first"
            caveats.append(f"weights {bound}, where floats lie too far apart for the sensitivity")
        caveats += [_COMPUTATIONAL] * (request.engine == "spark")
        caveats += [_TREE_ALONE] * self.tree_alone
        return PrivacyStatement.of(
            chosen.spent,
            request.sensitivity,
            requested=self.budget if request.calibration == "published" else None,
            mechanisms=self.mechanism.uses(chosen),
            randomness="reproducible" if reproducible else "secure",
            privacy_unit=privacy_unit or "",
            kind=kind,
            merge=merge,
            provenance=provenance,
            clip=request.clip,
            numerical_slack=chosen.slack,
            caveats=tuple(caveats),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the public numbers."""
        return {
            "n_nodes": self.n_nodes,
            "n_edges": self.n_edges,
            "n_components": self.n_components,
            "sensitivity": self.request.sensitivity.to_dict(),
            "budget": self.budget.to_dict(),
            "calibration": self.request.calibration,
            "mechanisms": [calibration.to_dict() for calibration in self.calibrations],
            "chosen": self.chosen.mechanism,
            "clusterer": self.choose_clusterer().name,
            "warnings": list(self.warnings),
        }

    def to_text(self) -> str:
        """Return the plan as a page to read."""
        return rendered("plan.txt", plan=self).rstrip("\n")

    def plot(self, *, axes: Any = None) -> Any:
        """Draw the visible gap of every mechanism into matplotlib's axes, and return them."""
        from ptclust.drawing.plots import plot_plan

        return plot_plan(self, axes)

    __str__ = to_text

    def _repr_html_(self) -> str:
        rows = [
            (
                "chosen" if each is self.chosen else "",
                each.mechanism,
                f"{each.tree.noise:.3g}" if each.tree else "-",
                f"{each.weights.standard_deviation:.3g}",
                f"{each.visible_gap:.3g}",
            )
            for each in self.calibrations
        ]
        head = "", "mechanism", "tree noise", "weight noise", "visible gap"
        known = {
            "graph": f"{self.n_nodes:,} nodes, {self.n_edges:,} edges",
            "budget": self.budget,
            "neighbours": self.request.sensitivity.describe(),
            "clusterer": self.choose_clusterer().name,
            "warning": self.warnings,
        }
        return facts("Plan: nothing is spent yet", known.items(), (head, rows))


def weak_promises(spent: Budget, n_nodes: int) -> Iterator[str]:
    """Yield warnings about a weak guarantee."""
    epsilon, delta = float(spent.epsilon), float(spent.delta)
    if epsilon > _LARGE_EPSILON:
        yield (
            f"epsilon = {epsilon:g} guarantees almost nothing: e^{epsilon:g} is the factor by "
            f"which one unit may change any probability; stay below {_LARGE_EPSILON:g}, better 1"
        )
    if delta > _LARGE_DELTA or delta * n_nodes > 1:
        yield (
            f"delta = {delta:g} is large: with that probability somebody's whole contribution may "
            "be revealed; take far less than one over the number of people, such as 1e-6 or less"
        )


@leaves_no_trace
def plan(
    topology: Topology,
    *,
    epsilon: float | Fraction,
    delta: float | Fraction = 0,
    sensitivity: Sensitivity,
    mechanism: str = AUTO,
    split: float | Fraction | None = None,
    clusterer: str = AUTO,
    calibration: CalibrationRule = "sound",
    clip: Bounds | None = None,
    sampler: Sampler = "auto",
) -> Plan:
    """Return every mechanism that fits the budget, with its noise, and the one that would be used.

    Only public numbers are needed: those of nodes, edges and components, budget and sensitivity.

    Parameters
    ----------
    topology : Topology
        That of a graph, also of `spark_edges`.
    epsilon, delta : float
        The budget. With delta = 0 all is pure; with delta > 0 noise is far less.
    sensitivity : Sensitivity
        By how much one privacy unit can move the weights.
    mechanism : str
        A name in ``MECHANISMS.names``, or "auto" for the one with the smallest visible gap.
    split : float, optional
        Share of the budget for the tree, where tree and weights are released apart. By default
        the noise of both is the same.
    clusterer : str
        A name in ``CLUSTERERS.names``, or "auto"; averaging over edges tolerates more noise.
    calibration : {"sound", "published"}
        The paper's printed scales spend more than the paper claims; the plan says how much.
    clip : pair of float, optional
        Public bounds; weights outside are moved to the nearer one. They also serve to warn of noise
        that exceeds the weights, and to keep all of them apart in the tree where the sensitivity is
        tiny. By default the largest floats that are close enough together for the sensitivity.
    sampler : {"auto", "opendp"}
        ptclust's own exact sampler, or OpenDP's, an extra, a few hundred times slower.

    Examples
    --------
    >>> from ptclust import Sensitivity, Topology
    >>> path = Topology(range(99), range(1, 100))
    >>> plan(path, epsilon=1, delta=1e-6, sensitivity=Sensitivity(linf=0.001)).chosen.mechanism
    'gaussian'
    >>> plan(path, epsilon=1, sensitivity=Sensitivity(l1=0.001)).chosen.mechanism
    'laplace'
    """
    if not isinstance(topology, (Topology, Counts)):
        raise InputError(
            f"a plan needs a Topology, not a {type(topology).__name__}: graph.topology"
        )
    request = PlanRequest(
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        mechanism=mechanism,
        split=split,
        clusterer=clusterer,
        calibration=calibration,
        clip=clip,
        sampler=sampler,
        engine=engine_of(topology),
    )
    return make_plan(topology, request)


def engine_of(topology: Topology | Counts) -> Engine:
    """Return where the edges of a topology are: on this machine, or in Spark."""
    return "spark" if isinstance(topology, Counts) else "local"


@leaves_no_trace
def make_plan(topology: Topology, request: PlanRequest) -> Plan:
    """Return the plan for a request; UsageError if no mechanism fits it."""
    found, problems = [], []
    n_edges, n_tree = topology.n_edges, topology.n_tree_edges
    at_hand, keyed = request.at_hand(n_edges), request.engine == "spark"
    for mechanism in request.mechanisms:
        try:
            clusterer = request.clustering.choose(mechanism, n_edges, n_tree, at_hand)
            calibration = _calibrate(mechanism, topology, request)
            sampler_of(calibration.weights, request.sampler)  # refuses what OpenDP does not draw
        except UsageError as problem:
            problems.append(problem)
            continue
        gap = clusterer.visible_gap(topology.n_nodes, n_edges, n_tree) * calibration.noise
        found.append(replace(calibration, visible_gap=gap, sampler=request.sampler, keyed=keyed))
    if not found:
        raise problems[0]
    return Plan(
        n_nodes=topology.n_nodes,
        n_edges=n_edges,
        n_components=topology.n_components,
        request=request,
        calibrations=tuple(found),
        chosen=min(found, key=lambda each: (each.visible_gap, each.noise)),
    )


def _calibrate(mechanism: Mechanism, topology: Topology, request: PlanRequest) -> Calibration:
    if request.calibration == "published":
        return mechanism.calibrate_published(topology, request.sensitivity, request.budget)
    return mechanism.calibrate(
        topology,
        request.sensitivity,
        request.budget,
        split=request.split,  # type: ignore[arg-type]  # made exact when the request was made
        largest_weight=max(map(abs, request.clip or (0.0,))),
    )


def _as_split(split: float | Fraction | None) -> Fraction | None:
    if split is None:
        return None
    remedy = "It is the share of the budget for the tree, such as 0.5; the rest is for the weights."
    part = exact("split", split, remedy)
    if not 0 < part < 1:
        raise UsageError(f"split must lie between 0 and 1, but is {shown(split)}. {remedy}")
    return part


def _as_clip(bounds: Bounds | None) -> Bounds | None:
    """Return bounds of the weights as floats; UsageError unless finite and in order."""
    if bounds is None:
        return None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    if not -float("inf") < low < high < float("inf"):
        raise UsageError(f"clip={bounds!r} is not a pair of finite bounds, the smaller first")
    return low, high
