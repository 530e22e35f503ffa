"""ptclust: clusters of a weighted graph, published while its edge weights stay differentially private.

The names below are the public interface. Each is imported when it is first used, so that ``import ptclust`` and the
command line answer at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptclust._version import __version__

if TYPE_CHECKING:
    from ptclust.clustering import (
        Clustering,
        Cuts,
        cluster_validity,
        dbcvi,
        dbmstclu,
        dispersion,
        separation,
    )
    from ptclust.estimators import DBMSTClu, PTClust
    from ptclust.graph import Graph, Topology, read_graph
    from ptclust.privacy import Budget, Sensitivity
    from ptclust.privacy.ledger import Ledger
    from ptclust.privacy.plan import Plan, plan
    from ptclust.privacy.statement import PrivacyStatement
    from ptclust.release import Release, release_schema
    from ptclust.trees import (
        Tree,
        euclidean_spanning_tree,
        minimum_spanning_tree,
        private_spanning_tree,
    )

_HOME = {
    "ptclust.clustering": (
        "Clustering",
        "Cuts",
        "cluster_validity",
        "dbcvi",
        "dbmstclu",
        "dispersion",
        "separation",
    ),
    "ptclust.estimators": ("DBMSTClu", "PTClust"),
    "ptclust.graph": ("Graph", "Topology", "read_graph"),
    "ptclust.privacy": ("Budget", "Sensitivity"),
    "ptclust.privacy.ledger": ("Ledger",),
    "ptclust.privacy.plan": ("Plan", "plan"),
    "ptclust.privacy.statement": ("PrivacyStatement",),
    "ptclust.release": ("Release", "release_schema"),
    "ptclust.trees": (
        "Tree",
        "euclidean_spanning_tree",
        "minimum_spanning_tree",
        "private_spanning_tree",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
_SUBMODULES = ("audit", "datasets", "errors", "prediction", "theory")

__all__ = [
    "Budget",
    "Clustering",
    "Cuts",
    "DBMSTClu",
    "Graph",
    "Ledger",
    "PTClust",
    "Plan",
    "PrivacyStatement",
    "Release",
    "Sensitivity",
    "Topology",
    "Tree",
    "__version__",
    "cluster_validity",
    "dbcvi",
    "dbmstclu",
    "dispersion",
    "euclidean_spanning_tree",
    "minimum_spanning_tree",
    "plan",
    "private_spanning_tree",
    "read_graph",
    "release_schema",
    "separation",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"ptclust.{name}")
    else:
        raise AttributeError(f"module 'ptclust' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
