"""Public graphs that ship with networkx (weighted examples) and scikit-learn (tables).

Weights are dissimilarities in (0, 1]. Where there is no truth, methods are compared with DBMSTClu
without privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.errors import MissingDependencyError
from ptclust.graph import Graph
from ptclust.privacy import Sensitivity

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["REAL", "Real", "RealGraph", "available", "real_graph"]

NEIGHBOURS = 10
_MOST = {"karate": 7, "les-miserables": 31}
"""The largest similarity of each; one more is the cap, so that similarity 0 is distance 1."""


@dataclass(frozen=True)
class RealGraph:
    """A public graph."""

    graph: Graph
    truth: NDArray[np.int64] | None
    """The class of every node; None if nobody knows."""


@dataclass(frozen=True)
class Real:
    """Where a real graph comes from, and what is protected."""

    title: str
    package: str
    sensitivity: Sensitivity
    neighbours: str
    """The sensitivity in words."""
    make: Callable[[], RealGraph]


def real_graph(name: str) -> RealGraph:
    """Return one of the real graphs.

    Raises
    ------
    MissingDependencyError
        If the package that has it is not installed.

    Examples
    --------
    >>> iris = real_graph("iris")
    >>> iris.graph.n_nodes, iris.truth.max().item()
    (149, 2)
    """
    if not available(name):
        raise MissingDependencyError(REAL[name].package, f"the graph {name!r}")
    return REAL[name].make()


def available(name: str) -> bool:
    """Whether the package that has this graph is installed."""
    return find_spec(REAL[name].package) is not None


def _nearest(loader: str) -> RealGraph:
    """Return the graph of the nearest neighbours of the rows of a table, its columns standardised.

    Rows that are the same are one node. Distances are divided by the largest.
    """
    from sklearn import datasets

    table = getattr(datasets, loader)()
    rows, first = np.unique(table.data, axis=0, return_index=True)
    spread = rows.std(axis=0)
    near = Graph.from_points(
        (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0), n_neighbors=NEIGHBOURS
    )
    scaled = near.weights / near.weights.max()
    graph = Graph(near.sources, near.targets, scaled, n_nodes=near.n_nodes)
    return RealGraph(graph, table.target[first].astype(np.int64))


def _networkx(name: str, attribute: str | None = None) -> RealGraph:
    """Return an example of networkx; similarities s become (C - s) / C, C = largest + 1.

    Its conclusions are about distances, as those of the other examples.
    """
    import networkx as nx

    makers: dict[str, Callable[[], Any]] = {
        "karate": nx.karate_club_graph,
        "les-miserables": nx.les_miserables_graph,
    }
    given = makers[name]()
    cap = _MOST[name] + 1.0
    counts = Graph.from_networkx(given, kind="similarity")
    distances = (cap - counts.weights) / cap
    graph = Graph(counts.sources, counts.targets, distances, n_nodes=counts.n_nodes)
    if attribute is None:
        return RealGraph(graph, None)
    classes = [given.nodes[node][attribute] for node in counts.names.tolist()]
    return RealGraph(graph, np.unique(classes, return_inverse=True)[1])


def _table(title: str, loader: str) -> Real:
    title = f"{title}, {NEIGHBOURS} nearest neighbours"
    return Real(title, "sklearn", Sensitivity(linf=5e-4), "linf = 0.0005", lambda: _nearest(loader))


def _counts(title: str, name: str, attribute: str | None = None) -> Real:
    cap = _MOST[name] + 1
    words = f"l1 = 1/{cap} (one count more or less)"
    return Real(
        title, "networkx", Sensitivity(l1=1 / cap), words, lambda: _networkx(name, attribute)
    )


REAL: dict[str, Real] = {
    "iris": _table("iris (149 flowers, 3 species)", "load_iris"),
    "wine": _table("wine (178 wines, 3 cultivars)", "load_wine"),
    "digits": _table("digits (1,797 images, 10 digits)", "load_digits"),
    "karate": _counts("karate club (34 members, 2 factions)", "karate", "club"),
    "les-miserables": _counts("Les Misérables (77 characters, no truth)", "les-miserables"),
}
