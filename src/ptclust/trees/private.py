"""Private spanning trees: their topology, published under weight differential privacy."""

from __future__ import annotations

import uuid
import warnings
from typing import TYPE_CHECKING, get_args

from ptclust.errors import FileError, InputError, PrivacyWarning, UsageError
from ptclust.graph import Graph
from ptclust.privacy import Budget, RandomStream, Sensitivity
from ptclust.privacy._ledger_plan import charge_candidate, check_ledger
from ptclust.privacy.calibration import ALONE, METHODS, Calibration, Method, published, sound
from ptclust.privacy.plan import check_sensitivity
from ptclust.trees.kruskal import kruskal_edges
from ptclust.trees.pamst import pamst_edges
from ptclust.trees.perturbed import perturbed_edges
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    import os
    from fractions import Fraction

    from ptclust.privacy.ledger import Ledger

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
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
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
    ledger : Ledger or path, optional
        A ledger that the tree is charged to before anything is drawn; BudgetError if it does not cover it.
    dataset : str, optional
        The dataset of that ledger whose weights these are.

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
    if calibration == "published" and (method != "pamst" or budget.delta != 0):
        raise UsageError(
            "calibration='published' is the paper's PAMST: use method='pamst' and delta=0"
        )
    book = check_ledger(ledger, dataset, random_state)
    # What can be refused is refused before anything is spent.
    if calibration == "published":
        chosen = published(graph.topology, sensitivity, budget, split=ALONE)
    else:
        chosen = sound(method, graph.topology, sensitivity, budget, split=ALONE)
    charge_id = str(uuid.uuid4())
    if book is not None:
        charge_candidate(
            book, dataset, chosen, calibration, sensitivity, charge_id, "tree alone by "
        )
    with RandomStream.of(random_state) as stream:
        if chosen.tree is None:
            edges, _ = perturbed_edges(graph, chosen.weights, stream)
        else:
            edges = DRAW[method](graph, chosen.tree.exponent, stream)
    tree = Tree(graph.topology.restricted_to(edges), edge_ids=edges)
    if book is not None:
        _confirm(book, charge_id)
    return tree


def _confirm(book: Ledger, charge_id: str) -> None:
    """Note that the tree is handed over; it was paid for, and is not withheld if the note fails."""
    try:
        book.confirm(charge_id)
    except FileError as error:
        warnings.warn(
            f"the tree was charged and is returned, but the note of that failed: {error}",
            PrivacyWarning,
            stacklevel=3,
        )
