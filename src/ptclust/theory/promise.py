"""What theory promises of a planned release: with which probability it finds given clusters exactly.

Two things have to go well. The drawn tree has to keep every cluster in one piece (Theorem D, corrected), and no noise
may move a weight so far that the certificate of recovery is lost. A minimum spanning tree of a perturbed graph asks
for the second alone, of all edges. docs/proofs/recovery.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptclust.theory.partition import as_partition
from ptclust.theory.recovery_interval import noise_allowance, probability_of_no_larger_noise
from ptclust.theory.tree_bounds import partitioning_probability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ptclust.graph import Graph
    from ptclust.privacy.plan import Candidate

__all__ = ["Promise", "recovery_promise"]


@dataclass(frozen=True)
class Promise:
    """Lower bounds on the probability that a release goes well. Not to be published: it tells about weights."""

    method: str
    tree: float | None
    """That every cluster is one piece of the drawn tree; None if the whole graph is perturbed."""
    noise_allowance: float
    """By how much every weight may move while recovery stays certain."""
    recovery: float
    """That DBMSTClu returns exactly the clusters."""

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers."""
        return {
            "method": self.method,
            "tree": self.tree,
            "noise_allowance": self.noise_allowance,
            "recovery": self.recovery,
        }


def recovery_promise(graph: Graph, labels: ArrayLike, candidate: Candidate) -> Promise:
    """Return how probably a release as planned finds these clusters exactly, at least.

    Shift and scale are left to their defaults: where no weight moves below one deviation of the noise, the shift is 0.
    The bounds hold for any weights of these extremes and are far from tight: a 0 says nothing.

    Parameters
    ----------
    graph : Graph
        Connected, as every cluster is within itself.
    labels : array_like of int
        The cluster of every node, two clusters at least.
    candidate : Candidate
        One of a plan.

    Notes
    -----
    *Privacy.* None: the bounds are computed from raw weights. For the curator's own eyes.

    Examples
    --------
    >>> from ptclust import Sensitivity, plan
    >>> from ptclust.graph import Graph
    >>> graph = Graph([0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7], [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
    >>> planned = plan(graph.topology, epsilon=1.0, delta=1e-6, sensitivity=Sensitivity(linf=1e-4), tree="pamst")
    >>> promise = recovery_promise(graph, [0, 0, 0, 0, 1, 1, 1, 1], planned.chosen)
    >>> round(promise.tree, 3), round(promise.recovery, 3)
    (1.0, 1.0)
    """
    partition = as_partition(labels, graph.n_nodes)
    cross = partition.cluster[graph.sources] != partition.cluster[graph.targets]
    within, across = graph.weights[~cross], graph.weights[cross]
    deviation = candidate.weights.standard_deviation
    allowance = 0.0
    if len(within) and len(across) and within.min() > 0:
        allowance = noise_allowance(
            float(within.min()),
            float(within.max()),
            float(across.min()),
            float(across.max()),
            smallest=int(partition.sizes.min()),
            largest=int(partition.sizes.max()),
            n_nodes=graph.n_nodes,
            n_clusters=partition.n_clusters,
        )
        allowance = max(0.0, min(allowance, float(within.min()) - deviation))
    tree, n_draws = None, graph.n_edges
    if candidate.tree is not None:
        tree = partitioning_probability(graph, labels, candidate.tree)
        n_draws = graph.topology.n_tree_edges
    quiet = 0.0
    if allowance > 0:
        quiet = probability_of_no_larger_noise(
            allowance,
            n_draws,
            scale=candidate.weights.scale,
            noise="laplace" if candidate.weights.distribution == "laplace" else "gaussian",
        )
    return Promise(candidate.method, tree, allowance, (1.0 if tree is None else tree) * quiet)
