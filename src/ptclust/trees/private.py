"""Private spanning trees: their topology, published under weight differential privacy."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, get_args

from ptclust.errors import InputError, UsageError
from ptclust.graph import Graph
from ptclust.privacy import Budget, RandomStream, Sensitivity
from ptclust.privacy.exponential import calibrate_tree, published_tree
from ptclust.privacy.noise import gaussian_noise, laplace_noise
from ptclust.privacy.plan import METHODS, Calibration, Method, check_sensitivity
from ptclust.trees.kruskal import kruskal_edges
from ptclust.trees.pamst import pamst_edges
from ptclust.trees.perturbed import perturbed_edges
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DRAW", "private_spanning_tree"]

DRAW = {"pamst": pamst_edges, "kruskal": kruskal_edges}
"""The mechanisms that draw a tree edge by edge."""


def private_spanning_tree(
    graph: Graph,
    *,
    method: Method = "kruskal",
    epsilon: float | Fraction,
    delta: float | Fraction = 0,
    sensitivity: Sensitivity,
    calibration: Calibration = "sound",
    random_state: int | None = None,
) -> Tree:
    """Return the topology of an almost minimal spanning tree; it carries no weights.

    Parameters
    ----------
    graph : Graph
        A disconnected graph gets a tree for every component; components are public.
    method : {"kruskal", "pamst", "gaussian", "laplace"}
        ``pamst`` is the paper's Algorithm 2, ``kruskal`` its sibling with less error, ``gaussian`` and ``laplace``
        perturb the whole graph. ``gaussian`` needs delta > 0.
    epsilon, delta : float
        The budget. With delta = 0 the guarantee is pure; with delta > 0 it is reached by way of zCDP.
    sensitivity : Sensitivity
        By how much one privacy unit can move the weights.
    calibration : {"sound", "published"}
        ``published`` is the paper's exponent, from Delta u = 2 mu, for ``pamst`` with delta = 0. It keeps the promise
        and wastes half of the budget or more.
    random_state : int, optional
        For experiments that can be repeated. Such a tree is **not private**: who knows the seed knows the noise.

    Notes
    -----
    *Privacy.* (epsilon, delta)-differentially private for neighbours within ``sensitivity``. ``pamst`` and ``kruskal``
    are k adaptive steps of the Exponential mechanism, k being the number of edges of the tree: each has a privacy loss
    of range beta, k beta = epsilon (pure) or k beta^2 / 8 = rho (zCDP), the rounding of the sampler included.

    Examples
    --------
    >>> from ptclust import Graph, Sensitivity
    >>> graph = Graph([0, 1, 2], [1, 2, 0], [0.1, 0.2, 0.9])
    >>> private_spanning_tree(graph, method="pamst", epsilon=1.0, sensitivity=Sensitivity(linf=0.01))
    Tree(n_nodes=3, n_edges=2)
    """
    if not isinstance(graph, Graph):
        raise InputError(
            f"an object of type {type(graph).__name__} is no Graph; Graph.from_scipy, from_networkx, from_igraph and "
            "from_dataframe make one"
        )
    if method not in METHODS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    check_sensitivity(sensitivity)
    budget = Budget.approximate(epsilon, delta)
    if calibration not in get_args(Calibration):
        raise UsageError(f"calibration must be 'sound' or 'published', not {calibration!r}")
    published = calibration == "published"
    if published and (method != "pamst" or budget.delta != 0):
        raise UsageError(
            "calibration='published' is the paper's PAMST: use method='pamst' and delta=0"
        )
    with RandomStream.of(random_state) as stream:
        if published:
            n_steps = graph.topology.n_tree_edges
            exponent = published_tree(sensitivity, n_steps, budget.epsilon).exponent
            edges = pamst_edges(graph, exponent, stream)
        else:
            edges = _edges(graph, method, budget, sensitivity, stream)
    return Tree(graph.topology.restricted_to(edges), edge_ids=edges)


def _edges(
    graph: Graph, method: Method, budget: Budget, sensitivity: Sensitivity, stream: RandomStream
) -> NDArray[Any]:
    if method == "laplace":
        noise = laplace_noise(sensitivity, graph.n_edges, budget.epsilon)
        return perturbed_edges(graph, noise, stream)[0]
    shared = budget if budget.delta == 0 else budget.to_zcdp()
    if method == "gaussian":
        if shared.rho is None:
            raise UsageError("Gaussian noise is never pure: give delta > 0, or use 'laplace'")
        return perturbed_edges(
            graph, gaussian_noise(sensitivity, graph.n_edges, shared.rho), stream
        )[0]
    drawn = calibrate_tree(sensitivity, graph.topology.n_tree_edges, shared)
    return DRAW[method](graph, drawn.exponent, stream)
