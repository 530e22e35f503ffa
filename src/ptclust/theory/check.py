"""All of the paper's conditions on given clusters of a graph, and what its theorems promise: ``ptclust check``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptclust.errors import GraphError
from ptclust.theory.cluster import ClustersVerdict, clusters_verdict
from ptclust.theory.homogeneity import Homogeneity, strong_homogeneity, weak_homogeneity
from ptclust.theory.partition import as_partition, has_partitioning_topology
from ptclust.theory.promise import Promise, recovery_promise
from ptclust.theory.recovery import certify_recovery
from ptclust.theory.theorems import TheoremCheck, recovered
from ptclust.theory.tree_bounds import TheoremD, theorem_d

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike

    from ptclust.graph import Graph
    from ptclust.pipeline import GraphFile
    from ptclust.privacy.plan import Plan
    from ptclust.theory.certificate import RecoveryCertificate

__all__ = ["Check", "check_clusters", "check_file"]


@dataclass(frozen=True)
class Check:
    """Which conditions hold, which cluster breaks which, and what is promised. Not to be published."""

    n_nodes: int
    n_edges: int
    n_clusters: int
    definition: ClustersVerdict
    weak: Homogeneity
    strong: Homogeneity
    partitioning: bool
    """Whether every cluster is one piece of the minimum spanning tree."""
    recovered: TheoremCheck
    certificate: RecoveryCertificate
    plan: Plan | None
    promises: tuple[Promise, ...]
    """A promise for every candidate of the plan."""
    paper: TheoremD | None
    """Theorem D for the paper's own PAMST, where the plan is about a bound on single weights."""

    def to_text(self) -> str:
        """Return the check as a page to read."""
        lines = [
            "For the curator only: what follows is computed from the private weights.",
            f"{self.n_nodes:,} nodes, {self.n_edges:,} edges, {self.n_clusters:,} clusters",
            "",
            f"Definition of a cluster: {self.definition.describe()}",
            f"Weak homogeneity: {self.weak.describe()}",
            f"Strong homogeneity: {self.strong.describe()}",
            "Minimum spanning tree: "
            + ("every cluster is one piece" if self.partitioning else "some cluster is torn apart"),
            "DBMSTClu without privacy: "
            + ("finds exactly these clusters" if self.recovered.holds else self._failure()),
            self.certificate.describe(),
        ]
        if self.plan is not None:
            lines += ["", *self._promised(self.plan)]
        return "\n".join(lines)

    def _failure(self) -> str:
        if self.recovered.edge is None:
            return "cannot find these clusters by cutting the tree"
        return f"finds other clusters (cut {self.recovered.step}, edge {self.recovered.edge})"

    def _promised(self, plan: Plan) -> list[str]:
        lines = [f"What is promised at {plan.budget}; {plan.sensitivity.describe()}:"]
        for promise in self.promises:
            tree = (
                ""
                if promise.tree is None
                else f"tree keeps the clusters whole {promise.tree:.4g}, "
            )
            mark = ">" if promise.method == plan.chosen.method else " "
            lines.append(f"{mark} {promise.method:10s}{tree}exact recovery {promise.recovery:.4g}")
        if not any(promise.noise_allowance for promise in self.promises):
            lines.append(
                "  No recovery is promised under noise: heaviest^2 / lightest within clusters would have to lie well "
                "below the lightest edge across."
            )
        lines.append(
            "Probabilities are lower bounds, and far from tight; '>' is what the plan chose."
        )
        if self.paper is not None:
            lines.append(
                f"Theorem D for the paper's PAMST with half of epsilon: {self.paper.corrected:.4g}, corrected; "
                f"as printed {self.paper.printed:.4g}, in the supplement {self.paper.supplement:.4g} (neither holds)"
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the check as numbers, truth values and short lists."""
        return {
            "private": False,
            "n_nodes": self.n_nodes,
            "n_edges": self.n_edges,
            "n_clusters": self.n_clusters,
            "definition": {
                "holds": self.definition.holds,
                "offenders": self.definition.offenders.tolist(),
            },
            "weak_homogeneity": _homogeneity(self.weak),
            "strong_homogeneity": _homogeneity(self.strong),
            "partitioning_topology": self.partitioning,
            "recovered": self.recovered.holds,
            "certified": self.certificate.holds,
            "certificate_failed": [condition.name for condition in self.certificate.failed],
            "promises": [promise.to_dict() for promise in self.promises],
            "theorem_d": None
            if self.paper is None
            else {
                "corrected": self.paper.corrected,
                "printed": self.paper.printed,
                "supplement": self.paper.supplement,
            },
        }


def check_clusters(
    graph: Graph,
    labels: ArrayLike,
    plan: Plan | None = None,
    *,
    stage: Callable[[str], None] = lambda _: None,
) -> Check:
    """Check the paper's conditions on the clusters of a graph, and what its theorems promise under a plan.

    Parameters
    ----------
    graph : Graph
        Connected, with positive weights.
    labels : array_like of int
        The cluster of every node; every -1, noise, is a cluster of its own.
    plan : Plan, optional
        A plan for this topology; without one nothing is said about probabilities.
    stage : callable, optional
        Hears what is being done.

    Notes
    -----
    *Privacy.* None: all of it is computed from raw weights. For the curator's own eyes.

    Examples
    --------
    >>> from ptclust.graph import Graph
    >>> graph = Graph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0.1, 0.1, 0.9, 0.1, 0.1])
    >>> found = check_clusters(graph, [0, 0, 0, 1, 1, 1])
    >>> found.definition.holds, found.strong.holds, found.recovered.holds, found.certificate.holds
    (True, True, True, True)
    """
    from ptclust.trees import minimum_spanning_tree

    if graph.topology.n_components != 1:
        raise GraphError(
            f"the paper's conditions are about a connected graph, and this one has {graph.topology.n_components:,} "
            "components; check each by itself"
        )
    partition = as_partition(labels, graph.n_nodes)
    stage("Definition of a cluster")
    definition = clusters_verdict(graph, labels)
    stage("Homogeneity")
    weak, strong = weak_homogeneity(graph, labels), strong_homogeneity(graph, labels)
    stage("Minimum spanning tree and DBMSTClu")
    tree = minimum_spanning_tree(graph)
    found, certificate = recovered(tree, labels), certify_recovery(tree, labels)
    promises: tuple[Promise, ...] = ()
    paper = None
    in_one_piece = bool((definition.links < float("inf")).all())
    if plan is not None and in_one_piece and partition.n_clusters > 1:
        stage("Bounds")
        promises = tuple(recovery_promise(graph, labels, one) for one in plan.candidates)
        if plan.sensitivity.linf is not None and plan.budget.delta == 0:
            paper = theorem_d(
                graph,
                labels,
                epsilon=float(plan.budget.epsilon) / 2,
                utility_sensitivity=2 * float(plan.sensitivity.linf),
            )
    return Check(
        n_nodes=graph.n_nodes,
        n_edges=graph.n_edges,
        n_clusters=partition.n_clusters,
        definition=definition,
        weak=weak,
        strong=strong,
        partitioning=has_partitioning_topology(tree, labels),
        recovered=found,
        certificate=certificate,
        plan=plan,
        promises=promises,
        paper=paper,
    )


def check_file(
    file: GraphFile,
    clusters: Path,
    choices: dict[str, Any] | None = None,
    *,
    stage: Callable[[str], None] = lambda _: None,
) -> Check:
    """Check the clusters that a table gives for the graph in a file, planned by ``choices`` if there are any."""
    from ptclust.graph.labels import read_labels
    from ptclust.privacy.plan import plan

    stage(f"Reading {file.path.name}")
    graph = file.read()
    labels = read_labels(clusters, graph.topology)
    planned = None if choices is None else plan(graph.topology, **choices)
    return check_clusters(graph, labels, planned, stage=stage)


def _homogeneity(result: Homogeneity) -> dict[str, Any]:
    return {
        "holds": result.holds,
        "offenders": [
            {
                "label": one.label,
                "alpha": one.alpha,
                "heaviest": one.heaviest,
                "lightest": one.lightest,
                "crossing": one.crossing,
            }
            for one in result.offenders
        ],
    }
