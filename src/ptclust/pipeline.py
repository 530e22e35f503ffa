"""From a graph to published clusters: the paper's Algorithm 3."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from ptclust._options import CalibrationRule, ReleaseOptions
from ptclust._traces import leaves_no_trace
from ptclust.clustering import ClusteringRequest
from ptclust.errors import InputError, UsageError, warn_of_privacy
from ptclust.graph import Graph
from ptclust.inputs import as_private_graph, check_topology
from ptclust.ledger import Ledger, Payment
from ptclust.mechanisms import MECHANISMS, Calibration
from ptclust.mechanisms.exponential import ALONE
from ptclust.planning.plan import Plan, PlanRequest, engine_of, make_plan, weak_promises
from ptclust.privacy import PrivacyStatement, Provenance, RandomStream, Sensitivity
from ptclust.privacy.sensitivity import check_sensitivity
from ptclust.release import Release
from ptclust.release.format import largest_size
from ptclust.trees import Tree

if TYPE_CHECKING:
    from ptclust.engines.edges import SparkEdges

Progress = Callable[[str], None]


def _silent(_: str) -> None:
    """Report no progress."""


_NOBODY = Payment(None, "")


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest(PlanRequest, ReleaseOptions):
    """All that is requested of a release, checked once: the parameters of `ptclust.PTClust`.

    ``payment`` follows from ledger and dataset, unless something else pays, as for a series.
    """

    payment: Payment = _NOBODY

    def __post_init__(self) -> None:
        super().__post_init__()
        clustering = ClusteringRequest(
            clusterer=self.clusterer,
            min_cluster_size=self.min_cluster_size,
            min_probability=self.min_probability,
            shift=self.shift,
            scale=self.scale,
        )
        object.__setattr__(self, "clustering", clustering)
        by_spark = self.engine == "spark"
        if by_spark and self.random_state is not None:
            raise UsageError("random_state= is for experiments on one machine, not for Spark")
        if self.noisy is not None and not by_spark:
            raise UsageError(
                "noisy= says where Spark writes the noisy weights of all edges; this graph is not "
                "in Spark, and its release has all of them: leave it out"
            )
        if self.topology not in (None, "public"):
            raise UsageError(f"topology must be 'public' or left out, not {self.topology!r}")
        if self.payment is _NOBODY:
            payment = Payment.by(self.ledger, self.dataset, self.random_state)
            object.__setattr__(self, "payment", payment)

    @classmethod
    def of(cls, plan: PlanRequest, **options: Any) -> ReleaseRequest:
        """Return the request for a release by what was planned."""
        known = {each.name: getattr(plan, each.name) for each in fields(PlanRequest) if each.init}
        return cls(**known | options)


@leaves_no_trace
@dataclass(frozen=True)
class Prepared:
    """A release that is not paid for yet: what can be refused was refused.

    What it costs is spent by `draw`; `finish` only works on what was published. Between the two
    the release is kept, and its payment confirmed: nothing that is paid for may be lost.
    """

    graph: Graph | SparkEdges
    request: ReleaseRequest
    plan: Plan
    statement: PrivacyStatement

    @property
    def largest_size(self) -> int:
        """How many bytes the file of the release may have."""
        whole = self.plan.mechanism.publishes == "graph"
        return largest_size(self.graph.topology, self.statement, whole=whole)

    def draw(self, progress: Progress = _silent) -> Release:
        """Charge the release, draw it, and return it, not clustered yet."""
        progress("Charging the ledger")
        graph, request, plan = self.graph, self.request, self.plan
        mechanism, chosen = plan.mechanism, plan.chosen
        _charge(request, chosen, graph.provenance, self.statement.id)
        if isinstance(graph, Graph):
            with RandomStream.of(request.random_state) as stream:
                clipped = graph.clipped(*request.bounds)
                published = mechanism.draw(clipped, chosen, stream, progress=progress)
        else:
            place = None if request.noisy is None else os.fspath(request.noisy)
            whole = request.at_hand(plan.n_edges) is None
            published = graph.publish(
                mechanism, chosen, request.bounds, place, whole=whole, progress=progress
            )
        return Release(published=published, statement=self.statement)

    def finish(self, drawn: Release, progress: Progress = _silent) -> Release:
        """Cluster what was drawn."""
        progress("Clustering what was released")
        release = drawn.clustered(self.request.clustering, progress)
        if self.request.certainty:
            release.find_certainty(progress)
        return release


@leaves_no_trace
def prepare(
    graph: Graph | SparkEdges, request: ReleaseRequest, plan: Plan | None = None
) -> Prepared:
    """Check all that can be wrong with a release, and say what is weak about it; spend nothing.

    ``plan`` is that of the request, if it was made before.
    """
    if plan is None:
        plan = make_plan(graph.topology, request)
    counts = graph.n_nodes, graph.n_edges, graph.topology.n_components
    if counts != (plan.n_nodes, plan.n_edges, plan.n_components):
        raise InputError(
            f"the plan was made for {plan.n_nodes:,} nodes, {plan.n_edges:,} edges and "
            f"{plan.n_components:,} components, and this graph has {counts[0]:,}, "
            f"{counts[1]:,} and {counts[2]:,}; plan again for its topology"
        )
    if request.noisy is not None and plan.mechanism.publishes == "tree":
        raise UsageError(
            f"{plan.mechanism.name!r} puts noise on the weights of a tree, and the release has all "
            "of them: leave noisy= out, or name a mechanism that puts it on all weights"
        )
    _check_graph(graph, request)
    unit = graph.unit if request.privacy_unit is None else request.privacy_unit
    plan.choose_clusterer(request.clustering)
    _warn(plan, request, unit)
    statement = plan.statement(
        reproducible=request.random_state is not None,
        privacy_unit=unit,
        kind=graph.kind,
        merge=graph.merge,
        provenance=graph.provenance,
    )
    return Prepared(graph, request, plan, request.payment.stated(statement))


@leaves_no_trace
def publish(
    graph: Graph | SparkEdges,
    request: ReleaseRequest,
    *,
    plan: Plan | None = None,
    keep: Callable[[Release], None] = lambda _: None,
    progress: Progress = _silent,
) -> Release:
    """Draw a tree, release its weights, cluster what was released (the paper's Algorithm 3).

    ``plan`` is that of ``request``, if it was made before. ``keep`` is called with the release as
    soon as it is drawn, not clustered yet: it is paid for, so it is kept before anything else can
    fail. When it returns, the payment is confirmed.

    Notes
    -----
    *Privacy.* Only the mechanism sees private weights; all that follows works on what it published.
    """
    prepared = prepare(graph, request, plan)
    drawn = prepared.draw(progress)
    keep(drawn)
    request.payment.confirm(drawn.statement.id)
    return prepared.finish(drawn, progress)


@leaves_no_trace
def sensitivity_of(graph: Graph | SparkEdges, given: Sensitivity | None) -> Sensitivity:
    """Return the sensitivity that was given, or the one that the graph carries.

    A given one that is smaller is refused, a larger one allowed. All of it is public.
    """
    return settled_sensitivity(graph.provenance, graph.n_edges, given)


def settled_sensitivity(
    provenance: Provenance | None, n_edges: int, given: Sensitivity | None
) -> Sensitivity:
    """Return what was given, or what follows from how a graph was built; see `sensitivity_of`."""
    if given is None:
        if provenance is None:
            raise UsageError(
                "this graph carries no sensitivity: say by how much one person can move its "
                "weights, as Sensitivity(l1=1) for counts to which a person adds "
                "1 in total; a graph that graph_from_flows or graph_from_visits makes of records "
                "carries its own, until its weights are changed"
            )
        return provenance.sensitivity
    check_sensitivity(given)
    if provenance is not None and not given.covers(provenance.sensitivity, n_edges):
        raise UsageError(
            f"the sensitivity that was given ({given}) is smaller than the one that follows from "
            f"how the graph was built ({provenance.sensitivity}; {provenance.unit}): leave it "
            "out, give a larger one, or build the graph with smaller bounds"
        )
    return given


def _check_graph(graph: Graph | SparkEdges, request: ReleaseRequest) -> None:
    """Check a graph, as far as that needs no plan."""
    sensitivity_of(graph, request.sensitivity)
    if graph.topology_of_data:
        check_topology(graph.topology, request, "the topology was computed from the data")
    if not isinstance(graph, Graph):
        graph.check_driver()


def _warn(plan: Plan, request: ReleaseRequest, unit: str | None) -> None:
    """Say what is weak about a release, before anything is spent."""
    secure = request.random_state is None  # otherwise nothing is promised
    for warning in plan.warnings if secure else plan.noise_warnings:
        warn_of_privacy(warning)
    if secure and not str(unit or "").strip():
        warn_of_privacy(
            "the statement cannot say whom it protects: say what one privacy unit is, whose whole "
            "contribution the sensitivity bounds, as in privacy_unit='one patient'"
        )
    if plan.request.calibration == "published":
        asked, spent = float(plan.budget.epsilon), float(plan.chosen.spent.epsilon)
        warn_of_privacy(
            f"the paper's printed scales were requested at epsilon = {asked:g}; under these "
            f"neighbours they truly spend epsilon = {spent:.6g}, and the statement says so"
        )


@leaves_no_trace
def private_spanning_tree(
    graph: Graph | SparkEdges,
    *,
    mechanism: str = "kruskal",
    epsilon: float | Fraction,
    delta: float | Fraction = 0,
    sensitivity: Sensitivity | None = None,
    calibration: CalibrationRule = "sound",
    clip: tuple[float, float] | None = None,
    topology: Literal["public"] | None = None,
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
) -> Tree:
    """Return the topology of an almost minimal spanning tree; it carries no weights.

    Parameters
    ----------
    graph : Graph, or edges of Spark: a DataFrame or what `spark_edges` made of it
        A disconnected graph gets a tree for every component; components are public.
    mechanism : str
        ``pamst`` is the paper's Algorithm 2, ``kruskal`` its sibling with less error, ``gaussian``,
        ``laplace`` and ``cube`` perturb the whole graph. ``gaussian`` needs delta > 0.
    epsilon, delta : float
        The budget. With delta = 0 the guarantee is pure; with delta > 0 that of ``pamst``
        and ``kruskal`` goes by way of zCDP.
    calibration : {"sound", "published"}
        ``published`` is the paper's exponent, from Delta u = 2 mu, for ``pamst`` with delta = 0. It
        is sound, and spends at most half of the budget.
    sensitivity, clip, topology, random_state, ledger, dataset : optional
        As of `ptclust.PTClust`. With ``random_state`` the tree is **not private**.

    Notes
    -----
    *Privacy.* (epsilon, delta)-differentially private for neighbours within ``sensitivity``.
    ``pamst`` and ``kruskal`` are k adaptive steps of the Exponential mechanism, k being the number
    of edges of the tree: each has a privacy loss of range beta, k beta = epsilon (pure) or k beta^2
    / 8 = rho (zCDP), the rounding of the sampler included.

    Examples
    --------
    >>> from ptclust import Graph, Sensitivity
    >>> graph = Graph([0, 1, 2], [1, 2, 0], [0.1, 0.2, 0.9])
    >>> private_spanning_tree(graph, epsilon=1, sensitivity=Sensitivity(linf=0.01))
    Tree(n_nodes=3, n_edges=2)
    """
    graph, chosen = as_private_graph(graph), MECHANISMS[mechanism]
    request = ReleaseRequest(
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity_of(graph, sensitivity),
        mechanism=mechanism,
        calibration=calibration,
        clip=clip,
        engine=engine_of(graph.topology),
        topology=topology,
        random_state=random_state,
        ledger=ledger,
        dataset=dataset,
    )
    _check_graph(graph, request)
    of_graph: Any = (graph.topology, request.sensitivity, request.budget)
    if calibration == "sound":
        largest = max(map(abs, request.clip or (0.0,)))
        calibrated = chosen.calibrate(*of_graph, split=ALONE, largest_weight=largest)
    else:
        calibrated = chosen.calibrate_published(*of_graph, split=ALONE)
    if random_state is None:  # otherwise nothing is promised
        for warning in weak_promises(calibrated.spent, graph.n_nodes):
            warn_of_privacy(warning)
    charge_id = str(uuid.uuid4())
    _charge(request, calibrated, graph.provenance, charge_id, "tree alone by ")
    if isinstance(graph, Graph):
        with RandomStream.of(random_state) as stream:
            tree = chosen.draw_tree(graph.clipped(*request.bounds), calibrated, stream)
    else:
        tree = graph.draw_tree(chosen, calibrated, request.bounds)
    request.payment.confirm(charge_id)
    return tree


def _charge(
    request: ReleaseRequest,
    chosen: Calibration,
    provenance: Provenance | None,
    charge_id: str,
    what: str = "",
) -> None:
    """Charge what building the graph spent, and what is about to be drawn."""
    if provenance is not None:
        request.payment.settle(provenance.spent)
    by = f"{what}{chosen.mechanism}, {request.calibration} calibration"
    description = f"{by}: {chosen.spent}; {request.sensitivity}"
    request.payment.charge(chosen.spent, statement_id=charge_id, description=description)
