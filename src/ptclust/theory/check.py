"""``ptclust check``: the paper's conditions on given clusters, and its bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from ptclust._traces import guard_functions
from ptclust.graph import Graph
from ptclust.graph.labels import read_labels
from ptclust.inputs import GraphFile
from ptclust.planning.plan import Plan, PlanRequest, make_plan
from ptclust.theory.bounds import Promise, TheoremD, recovery_promise, theorem_d
from ptclust.theory.cluster import ClustersVerdict, clusters_verdict
from ptclust.theory.homogeneity import Homogeneity, strong_homogeneity, weak_homogeneity
from ptclust.theory.partition import (
    VerdictByCluster,
    as_partition,
    check_connected,
    has_partitioning_topology,
)
from ptclust.theory.recovery import RecoveryCertificate, TheoremCheck, certify_recovery, recovered
from ptclust.trees import minimum_spanning_tree

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Check:
    """Which conditions hold, which cluster breaks which, what is promised. Not to be published."""

    n_nodes: int
    n_edges: int
    n_clusters: int
    definition: ClustersVerdict
    weak: Homogeneity
    strong: Homogeneity
    partitioning: bool  # whether every cluster is one piece of the minimum spanning tree
    recovered: TheoremCheck
    certificate: RecoveryCertificate
    plan: Plan | None
    promises: tuple[Promise, ...]  # a promise for every candidate of the plan
    paper: TheoremD | None  # for the paper's own PAMST, where the plan bounds single weights

    def to_text(self) -> str:
        """Return the check as a page to read."""
        pieces = "every cluster is one piece" if self.partitioning else "some cluster is torn apart"
        found = self.recovered
        outcome = f"finds other clusters (cut {found.step}, edge {found.edge})"
        if found.edge is None:
            outcome = "cannot find these clusters by cutting the tree"
        if found.holds:
            outcome = "finds exactly these clusters"
        lines = [
            "For the curator only: what follows is computed from the private weights.",
            f"{self.n_nodes:,} nodes, {self.n_edges:,} edges, {self.n_clusters:,} clusters",
            "",
            f"Definition of a cluster: {self.definition.describe()}",
            f"Weak homogeneity: {self.weak.describe()}",
            f"Strong homogeneity: {self.strong.describe()}",
            f"Minimum spanning tree: {pieces}",
            f"DBMSTClu without privacy: {outcome}",
            self.certificate.describe(),
        ]
        if self.plan is not None:
            lines += ["", *self._promised(self.plan)]
        return "\n".join(lines)

    def _promised(self, plan: Plan) -> list[str]:
        lines = [f"What is promised at {plan.budget}; {plan.request.sensitivity.describe()}:"]
        for promise in self.promises:
            mark = ">" if promise.mechanism == plan.chosen.mechanism else " "
            line = f"{mark} {promise.mechanism:10s}"
            if promise.tree is not None:
                line += f"tree keeps the clusters whole {promise.tree:.4g}, "
            lines.append(f"{line}exact recovery {promise.recovery:.4g}")
        if not any(promise.noise_allowance for promise in self.promises):
            none = "  No recovery is promised under noise: heaviest^2 / lightest within clusters"
            lines.append(f"{none} would have to lie well below the lightest edge across.")
        lines += ["Probabilities are lower bounds, and far from tight; '>' is what the plan chose."]
        if (paper := self.paper) is not None:
            false = f"as printed {paper.printed:.4g}, in the supplement {paper.supplement:.4g}"
            line = f"Theorem D for the paper's PAMST with half of epsilon: {paper.corrected:.4g}"
            lines.append(f"{line}, corrected; {false} (neither holds)")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the check as numbers, truth values and short lists."""
        forms = "corrected", "printed", "supplement"
        return {
            "private": False,
            "n_nodes": self.n_nodes,
            "n_edges": self.n_edges,
            "n_clusters": self.n_clusters,
            "definition": _holds(self.definition, self.definition.offenders.tolist()),
            "weak_homogeneity": _holds(self.weak, _numbers(self.weak)),
            "strong_homogeneity": _holds(self.strong, _numbers(self.strong)),
            "partitioning_topology": self.partitioning,
            "recovered": self.recovered.holds,
            "certified": self.certificate.holds,
            "certificate_failed": [condition.name for condition in self.certificate.failed],
            "promises": [asdict(promise) for promise in self.promises],
            "theorem_d": self.paper and {form: getattr(self.paper, form) for form in forms},
        }


def _holds(verdict: VerdictByCluster, offenders: list[Any]) -> dict[str, Any]:
    return {"holds": verdict.holds, "offenders": offenders}


def _numbers(verdict: Homogeneity) -> list[dict[str, Any]]:
    found = (one._asdict() for one in verdict.offenders)
    return [{name: value for name, value in one.items() if name != "holds"} for one in found]


def check_clusters(
    graph: Graph,
    labels: ArrayLike,
    plan: Plan | None = None,
    *,
    progress: Progress = lambda _: None,
) -> Check:
    """Check the paper's conditions on the clusters of a graph, and what is promised under a plan.

    The graph is connected, with positive weights; every node labelled -1 is a cluster of its own.
    Without a plan for this topology nothing is said about probabilities.

    >>> graph = Graph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0.1, 0.1, 0.9, 0.1, 0.1])
    >>> found = check_clusters(graph, [0, 0, 0, 1, 1, 1])
    >>> found.definition.holds, found.strong.holds, found.recovered.holds, found.certificate.holds
    (True, True, True, True)
    """
    check_connected(graph, "a check")
    partition = as_partition(labels, graph.n_nodes)
    progress("Definition of a cluster")
    definition = clusters_verdict(graph, labels)
    progress("Homogeneity")
    weak, strong = weak_homogeneity(graph, labels), strong_homogeneity(graph, labels)
    progress("Minimum spanning tree and DBMSTClu")
    tree = minimum_spanning_tree(graph)
    whole = has_partitioning_topology(tree, labels)
    found, certificate = recovered(tree, labels), certify_recovery(tree, labels)
    promises: tuple[Promise, ...] = ()
    paper = None
    in_one_piece = bool((definition.links < float("inf")).all())
    if plan is not None and in_one_piece and partition.n_clusters > 1:
        progress("Bounds")
        promises = tuple(recovery_promise(graph, labels, one) for one in plan.calibrations)
        if plan.request.sensitivity.linf is not None and plan.budget.delta == 0:
            half, double = float(plan.budget.epsilon) / 2, 2 * float(plan.request.sensitivity.linf)
            paper = theorem_d(graph, labels, epsilon=half, utility_sensitivity=double)
    size = graph.n_nodes, graph.n_edges, partition.n_clusters
    return Check(*size, definition, weak, strong, whole, found, certificate, plan, promises, paper)


def check_file(
    file: GraphFile, clusters: Path, request: PlanRequest | None, *, progress: Progress
) -> Check:
    """Check the clusters that a table gives for the graph in a file, planned as requested."""
    progress(f"Reading {file.path.name}")
    graph = file.read_here().to_distances()
    labels = read_labels(clusters, graph.topology)
    planned = None if request is None else make_plan(graph.topology, request)
    return check_clusters(graph, labels, planned, progress=progress)


guard_functions(__name__)
