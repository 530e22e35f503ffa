"""From a graph to published clusters: the paper's Algorithm 3."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats, Ints
from ptclust.building._doors import refuse_records, refuse_release
from ptclust.clustering import Clustering, ClusteringRequest, dbmstclu
from ptclust.engines.edges import SparkEdges, spark_edges
from ptclust.engines.spark import is_frame
from ptclust.errors import InputError, UsageError, warn_of_privacy
from ptclust.graph import Graph, Kind, Merge, Topology, read_graph, read_topology
from ptclust.graph.readers import read_kind, read_provenance
from ptclust.graph.readers.columns import Columns, kind_of
from ptclust.graph.readers.file import File
from ptclust.ledger import Ledger, Payment
from ptclust.mechanisms import MECHANISMS, Calibration
from ptclust.mechanisms.exponential import ALONE
from ptclust.planning.plan import (
    CalibrationRule,
    Engine,
    Plan,
    PlanRequest,
    make_plan,
    weak_promises,
)
from ptclust.privacy import Provenance, RandomStream, Sensitivity
from ptclust.privacy.sensitivity import check_sensitivity
from ptclust.published import Published
from ptclust.release import Release
from ptclust.release.format import largest_size
from ptclust.trees import Tree, euclidean_spanning_tree, minimum_spanning_tree

Progress = Callable[[str], None]


def _silent(_: str) -> None:
    """Report no progress."""


_NOBODY = Payment(None, "")


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """All that is requested of a release; the fields are parameters of `ptclust.PTClust`."""

    plan: PlanRequest
    min_cluster_size: int = 1
    min_probability: float = 0.0
    certainty: bool = False  # whether to compute how probable nodes and clusters are
    shift: float | None = None
    scale: float | None = None
    privacy_unit: str | None = None
    topology: Literal["public"] | None = None
    random_state: int | None = None
    payment: Payment = _NOBODY
    noisy: str | None = None  # where Spark writes the noisy weights

    def __post_init__(self) -> None:
        self.clustering  # noqa: B018 - refuses what no clusterer takes
        by_spark = self.plan.engine == "spark"
        if by_spark and self.random_state is not None:
            raise UsageError("random_state= is for experiments on one machine, not for Spark")
        if self.noisy is not None and not by_spark:
            raise UsageError(
                "noisy= says where Spark writes the noisy weights of all edges; this graph is not "
                "in Spark, and its release has all of them: leave it out"
            )
        if self.topology not in (None, "public"):
            raise UsageError(f"topology must be 'public' or left out, not {self.topology!r}")

    @cached_property
    def clustering(self) -> ClusteringRequest:
        """How what was published is to be clustered."""
        return ClusteringRequest(
            clusterer=self.plan.clusterer,
            min_cluster_size=self.min_cluster_size,
            min_probability=self.min_probability,
            shift=self.shift,
            scale=self.scale,
        )


@leaves_no_trace
def publish(
    graph: Graph | SparkEdges,
    request: ReleaseRequest,
    *,
    plan: Plan | None = None,
    reserve: Callable[[int], None] | None = None,
    keep: Callable[[Release], None] = lambda _: None,
    confirm: bool = True,
    progress: Progress = _silent,
) -> Release:
    """Draw a tree, release its weights, cluster what was released (the paper's Algorithm 3).

    ``plan`` is that of ``request.plan``, if it was made before. ``reserve`` is called, before
    anything is spent, with the bytes that the file of the release may have. ``keep`` is called with
    the release as soon as it is drawn, not clustered yet: it is paid for, so it is kept before
    anything else can fail. When it returns, the payment is confirmed; without ``confirm`` that is
    left to the caller, who hands the release over later.

    Notes
    -----
    *Privacy.* Only the mechanism sees private weights; all that follows works on what it published.
    """
    plan = make_plan(graph.topology, request.plan) if plan is None else plan
    # All that can be wrong with what was requested is found before anything is spent.
    _check_plan(graph, plan)
    if request.noisy is not None and plan.mechanism.publishes == "tree":
        raise UsageError(
            f"{plan.mechanism.name!r} puts noise on the weights of a tree, and the release has all "
            "of them: leave noisy= out, or name a mechanism that puts it on all weights"
        )
    if isinstance(graph, SparkEdges):
        graph.check_driver()
    sensitivity_of(graph, plan.request.sensitivity)
    unit = graph.unit if request.privacy_unit is None else request.privacy_unit
    if graph.topology_of_data:
        _check_topology(graph.topology, request, "the topology was computed from the data")
    plan.choose_clusterer(request.clustering)
    for warning in _warnings(plan, request, unit):
        warn_of_privacy(warning)
    statement = plan.statement(
        reproducible=request.random_state is not None,
        privacy_unit=unit,
        kind=graph.kind,
        merge=graph.merge,
        provenance=graph.provenance,
    )
    statement = request.payment.stated(statement)
    if reserve is not None:
        whole = plan.mechanism.publishes == "graph"
        reserve(largest_size(graph.topology, statement, whole=whole))
    progress("Charging the ledger")
    if graph.provenance is not None:
        request.payment.settle(graph.provenance.spent)
    _charge(request.payment, plan.chosen, request.plan, statement.id)
    published = _drawn(graph, plan, request, progress)
    release = Release(published=published, statement=statement)
    keep(release)
    if confirm:
        request.payment.confirm(statement.id)
    progress("Clustering what was released")
    release = release.clustered(request.clustering, progress)
    if request.certainty:
        release.find_certainty(progress)
    return release


def _drawn(
    graph: Graph | SparkEdges, plan: Plan, request: ReleaseRequest, progress: Progress
) -> Published:
    """Draw noise on weights moved within public bounds, which moves no two further apart."""
    if isinstance(graph, SparkEdges):
        return graph.publish(
            plan.mechanism,
            plan.chosen,
            request.plan.bounds,
            request.noisy,
            whole=request.plan.at_hand(plan.n_edges) is None,
            progress=progress,
        )
    with RandomStream.of(request.random_state) as stream:
        clipped = graph.clipped(*request.plan.bounds)
        return plan.mechanism.draw(clipped, plan.chosen, stream, progress=progress)


@leaves_no_trace
def publish_file(
    file: GraphFile,
    request: ReleaseRequest,
    *,
    reserve: Callable[[int], None] | None = None,
    keep: Callable[[Release], None],
    confirm: bool = True,
    announce: Callable[[str], None] = _silent,
    check: Callable[[Topology], None] = lambda _: None,
    progress: Progress = _silent,
) -> Release:
    """Read a graph from a file and publish its clusters; see `publish`.

    ``announce`` is called, before anything is spent, with what was taken from the file and what of
    it will be published without noise; ``check``, with the topology, may refuse it.
    """
    progress(f"Reading {file.name}")
    graph = file.read()
    announce(disclosure(file, graph))
    file.check_topology(graph.topology, request)
    check(graph.topology)
    how: dict[str, Any] = {"keep": keep, "confirm": confirm, "progress": progress}
    return publish(graph, request, reserve=reserve, **how)


@leaves_no_trace
def disclosure(file: GraphFile, graph: Graph | SparkEdges) -> str:
    """Return what was taken from a file, and what of it will be public."""
    columns = although = ""
    if graph.columns is not None:
        source, target, weight = (repr(name) for name in graph.columns)
        columns = f" of the columns {source}, {target} and {weight}"
        if kind_of(graph.columns[-1]) not in (None, graph.kind):
            although = f", although the column is called {weight}"
    close = "small" if graph.kind == "distance" else "large"
    merged = ""
    if graph.merge is not None:
        merged = f"; rows that join the same two nodes are merged by {graph.merge}, and the "
        merged += "sensitivity must be that of the merged weights"
    return (
        f"{file.name} was read as a graph{columns}; weights are of kind {graph.kind} ({close} "
        f"means close){although}{merged}. Published without noise: {graph.n_nodes:,} node names "
        f"and {graph.n_edges:,} edges. Private: the weights."
        f"{_origin(graph)}"
    )


def _origin(graph: Graph | SparkEdges) -> str:
    """Return how a graph was built, in words."""
    if (built := graph.provenance) is None:
        return ""
    return (
        f" It was built from records, with the sensitivity {built.sensitivity} for one unit "
        f"({built.unit})."
    )


def _check_topology(topology: Topology, request: ReleaseRequest, why: str) -> None:
    """Refuse a topology that may come from the data, unless it may be known."""
    if request.topology == "public" or topology.is_complete:
        return
    n_nodes, n_edges = topology.n_nodes, topology.n_edges
    raise UsageError(
        f"{why}: {n_edges:,} of the {n_nodes * (n_nodes - 1) // 2:,} pairs of its {n_nodes:,} "
        "nodes are joined, and which ones would be published without noise. If that may be known, "
        "as of roads or borders, say topology='public'; if a pair is missing because nobody was "
        "counted there, add it with a weight of 0"
    )


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


def _warnings(plan: Plan, request: ReleaseRequest, unit: str | None) -> Iterator[str]:
    """Yield warnings, before anything is spent."""
    secure = request.random_state is None  # otherwise nothing is promised
    yield from plan.warnings if secure else plan.noise_warnings
    if secure and not str(unit or "").strip():
        yield (
            "the statement cannot say whom it protects: say what one privacy unit is, whose whole "
            "contribution the sensitivity bounds, as in privacy_unit='one patient'"
        )
    if plan.request.calibration == "published":
        asked, spent = float(plan.budget.epsilon), float(plan.chosen.spent.epsilon)
        yield (
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
    sensitivity : Sensitivity, optional
        By how much one privacy unit can move the weights; by default what the graph carries, if it
        was built from records.
    calibration : {"sound", "published"}
        ``published`` is the paper's exponent, from Delta u = 2 mu, for ``pamst`` with delta = 0. It
        is sound, and spends at most half of the budget.
    clip : pair of float, optional
        Public bounds; weights outside are moved to the nearer one.
    topology : {"public"}, optional
        Declares that a topology computed from the data may be published; otherwise refused.
    random_state : int, optional
        For experiments. Such a tree is **not private**: anyone who knows the seed knows the noise.
    ledger, dataset : Ledger or path, and str, optional
        The ledger that the tree is charged to before anything is drawn (BudgetError if it does not
        cover it), and the dataset to charge.

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
    if is_frame(graph):
        graph = spark_edges(graph)
    if isinstance(graph, SparkEdges):
        graph.check_driver()
    if not isinstance(graph, (Graph, SparkEdges)):
        raise InputError(
            f"an object of type {type(graph).__name__} is not a Graph; Graph.from_scipy, "
            "from_networkx, from_igraph and from_dataframe make one"
        )
    chosen = MECHANISMS[mechanism]
    sensitivity = sensitivity_of(graph, sensitivity)
    request = PlanRequest(
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        mechanism=mechanism,
        calibration=calibration,
        clip=clip,
        engine="spark" if isinstance(graph, SparkEdges) else "local",
    )
    payment = Payment.by(ledger, dataset, random_state)
    whole = ReleaseRequest(plan=request, topology=topology, random_state=random_state)
    if graph.topology_of_data:
        _check_topology(graph.topology, whole, "the topology was computed from the data")
    of_graph: Any = (graph.topology, sensitivity, request.budget)
    if calibration == "sound":
        largest = max(map(abs, request.clip or (0.0,)))
        calibrated = chosen.calibrate(*of_graph, split=ALONE, largest_weight=largest)
    else:
        calibrated = chosen.calibrate_published(*of_graph, split=ALONE)
    if random_state is None:  # otherwise nothing is promised
        for warning in weak_promises(calibrated.spent, graph.n_nodes):
            warn_of_privacy(warning)
    charge_id = str(uuid.uuid4())
    if graph.provenance is not None:
        payment.settle(graph.provenance.spent)
    _charge(payment, calibrated, request, charge_id, "tree alone by ")
    if isinstance(graph, SparkEdges):
        tree = graph.draw_tree(chosen, calibrated, request.bounds)
    else:
        with RandomStream.of(random_state) as stream:
            tree = chosen.draw_tree(graph.clipped(*request.bounds), calibrated, stream)
    payment.confirm(charge_id)
    return tree


def _charge(
    payment: Payment, chosen: Calibration, request: PlanRequest, statement_id: str, what: str = ""
) -> None:
    by = f"{what}{chosen.mechanism}, {request.calibration} calibration"
    description = f"{by}: {chosen.spent}; {request.sensitivity}"
    payment.charge(chosen.spent, statement_id=statement_id, description=description)


def _check_plan(graph: Graph | SparkEdges, plan: Plan) -> None:
    """Refuse a plan made for another topology."""
    counts = graph.n_nodes, graph.n_edges, graph.topology.n_components
    if counts != (plan.n_nodes, plan.n_edges, plan.n_components):
        raise InputError(
            f"the plan was made for {plan.n_nodes:,} nodes, {plan.n_edges:,} edges and "
            f"{plan.n_components:,} components, and this graph has {counts[0]:,}, "
            f"{counts[1]:,} and {counts[2]:,}; plan again for its topology"
        )


@dataclass(frozen=True)
class GraphFile:
    """A file with a graph, and how to read it."""

    path: Path
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    format: str | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    header: bool = True
    merge: Merge | None = None
    kind: Kind | None = None
    engine: Engine = "local"
    master: str | None = None  # of Spark

    @property
    def name(self) -> str:
        """What messages call it."""
        return "standard input" if str(self.path) == "-" else self.path.name

    def check_is_graph(self, *, weighted: bool = True) -> None:
        """Refuse a release, or a table of records, with the command that is for it."""
        if self.engine == "spark" or not (self.path == Path("-") or self.path.is_file()):
            return  # what is wrong with it is said where it is read
        refuse_release(self._opened)
        file = self._opened if self.encoding is None else self._opened.in_utf8(self.encoding)
        if self.header:
            asked = Columns(self.source, self.target, self.weight)
            refuse_records(file, self.format, self.separator, asked, weighted=weighted)

    def read(self) -> Graph | SparkEdges:
        """Read topology and weights; Spark leaves them where they are."""
        return self._by_spark(ends_only=False) if self.engine == "spark" else self.read_here()

    def read_here(self) -> Graph:
        """Read topology and weights on this machine."""
        return read_graph(self._opened, **self._options(), kind=self.kind)

    def read_topology(self) -> Topology:
        """Read the topology alone, and no weight; of a graph in Spark, its numbers."""
        if self.engine == "spark" and self._is_parquet_of_others:
            return self._by_spark(ends_only=True).topology
        return read_topology(self._opened, **self._options())

    def _by_spark(self, *, ends_only: bool) -> SparkEdges:
        """Return the graph as Spark has it; it reads Parquet alone."""
        of_text = self.format, self.separator, self.encoding, self.decimal
        if any(option is not None for option in of_text):
            raise UsageError(
                "Spark reads Parquet, one row per edge: leave out format, separator, encoding and "
                "decimal"
            )
        asked = Columns(self.source, self.target, self.weight)
        return SparkEdges.read(
            self.path, asked, self.kind, self.master, merge=self.merge, ends_only=ends_only
        )

    @property
    def _is_parquet_of_others(self) -> bool:
        """Whether it is not a file that ptclust wrote, which this machine has read before."""
        return not self.path.is_file() or read_kind(self._opened, self.format) is None

    @cached_property
    def provenance(self) -> Provenance | None:
        """How the graph was built, if ptclust built it and wrote the file; no row is read."""
        if self.engine == "spark" and not self.path.is_file():
            return None
        return read_provenance(self._opened, self.format)

    @cached_property
    def known_kind(self) -> Kind | None:
        """The kind of the weights, as said, or as written in the file; no row is read."""
        if self.engine == "spark" and not self.path.is_file():
            return self.kind
        return self.kind or read_kind(self._opened, self.format)

    @cached_property
    def _opened(self) -> File:
        return File.at(self.path)  # once: standard input is gone after that

    def check_topology(self, topology: Topology, request: ReleaseRequest) -> None:
        """Refuse a topology that may come from the data: few files tell where it is from."""
        if self.provenance is None:
            _check_topology(
                topology, request, f"the topology of {self.name} may come from the data"
            )

    def _options(self) -> dict[str, Any]:
        others = ("path", "kind", "engine", "master")
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in others
        }


@dataclass(frozen=True)
class TreeClustering:
    """A tree and the clustering that its cuts make."""

    tree: Tree
    clustering: Clustering
    n_edges: int  # number of edges of the graph the tree spans


@leaves_no_trace
def cluster_file(
    file: GraphFile,
    *,
    max_clusters: int | None = None,
    min_cluster_size: int = 1,
    progress: Progress = _silent,
) -> TreeClustering:
    """Read a graph from a file and cluster it by DBMSTClu, without privacy."""
    progress(f"Reading {file.name}")
    graph = file.read_here().to_distances()
    progress(f"Minimum spanning tree of {graph.n_nodes:,} nodes and {graph.n_edges:,} edges")
    tree = minimum_spanning_tree(graph)
    progress("DBMSTClu")
    clustering = dbmstclu(
        tree,
        max_clusters=max_clusters,
        min_cluster_size=min_cluster_size,
        progress=lambda cuts: progress(f"DBMSTClu: {cuts:,} cuts"),
    )
    return TreeClustering(tree, clustering, graph.n_edges)


def is_graph_like(data: Any) -> bool:
    """Whether ``data`` is a tree or graph of some kind rather than points."""
    return isinstance(data, (Tree, Graph)) or _library(data) is not None


@leaves_no_trace
def as_tree(data: Any) -> Tree:
    """Return the minimum spanning tree of a graph of any kind; a Tree is returned as it is.

    Similarities become distances, as in ``Graph.to_distances``.
    """
    return data if isinstance(data, Tree) else minimum_spanning_tree(as_graph(data).to_distances())


@leaves_no_trace
def as_graph(data: Any) -> Graph:
    """Return a graph of any kind as a Graph."""
    if isinstance(data, Graph):
        return data
    convert: dict[str, Callable[[Any], Graph]] = {
        "networkx": Graph.from_networkx,
        "igraph": Graph.from_igraph,
        "scipy": Graph.from_scipy,
    }
    library = _library(data)
    if library is None:
        raise InputError(
            f"an object of type {type(data).__name__} is not a graph; give a Graph, a scipy "
            "sparse matrix, or a networkx or igraph graph (Graph.from_points makes one of points, "
            "Graph.from_dataframe of a table of edges, graph_from_visits and graph_from_flows of "
            "records of people)"
        )
    return convert[library](data)


@leaves_no_trace
def as_private_graph(data: Any) -> Graph | SparkEdges:
    """Return a graph of any kind as one that can be published; edges of Spark stay there."""
    if isinstance(data, SparkEdges):
        return data
    return spark_edges(data) if is_frame(data) else as_graph(data)


@leaves_no_trace
def nodes_of(data: Any, graph: Graph | SparkEdges | Tree) -> Array:
    """Return the number in ``graph`` of every node of ``data``, which it was made of."""
    if data is graph or isinstance(graph, Tree):
        return np.arange(graph.n_nodes)
    return graph.node_of


def _library(data: Any) -> str | None:
    """Return the graph library that the class of ``data`` comes from, without importing any."""
    modules = {base.__module__.partition(".")[0] for base in type(data).__mro__}
    return next((name for name in ("networkx", "igraph", "scipy") if name in modules), None)


@leaves_no_trace
def tree_of_points(points: Floats) -> tuple[Tree, Ints]:
    """Return the Euclidean spanning tree of the distinct points, and the node of every point.

    DBMSTClu has no use for a distance of zero: identical points share a node, named by the row of
    the first of them.
    """
    tree = euclidean_spanning_tree(points)
    if tree.weights.all():
        return tree, np.arange(len(points))
    _, first, group = np.unique(points, axis=0, return_index=True, return_inverse=True)
    rows = np.sort(first)
    tree = euclidean_spanning_tree(points[rows])
    named = Topology(tree.sources, tree.targets, n_nodes=len(rows), names=rows)
    return Tree(named, tree.weights, tree.edge_ids), np.searchsorted(rows, first[group])
