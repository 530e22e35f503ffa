"""ptclust: clusters of a weighted graph, published with differentially private edge weights.

The names below are the public interface. Each is imported when it is first used, so that
``import ptclust`` and the command line answer at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptclust._lazy import lazy
from ptclust._version import __version__

if TYPE_CHECKING:
    from ptclust.building import (
        check_records,
        graph_from_flows,
        graph_from_profiles,
        graph_from_visits,
    )
    from ptclust.clustering import (
        Clustering,
        Cuts,
        cluster_validity,
        dbcvi,
        dbmstclu,
        dispersion,
        separation,
    )
    from ptclust.engines.edges import spark_edges
    from ptclust.estimators import DBMSTClu, PTClust
    from ptclust.graph import Graph, Topology, read_graph
    from ptclust.ledger import Ledger
    from ptclust.pipeline import private_spanning_tree
    from ptclust.planning import Plan, plan, predict
    from ptclust.privacy import Budget, PrivacyStatement, Sensitivity
    from ptclust.release import Release, release_schema
    from ptclust.report import write_report
    from ptclust.series import Series
    from ptclust.trees import Tree, euclidean_spanning_tree, minimum_spanning_tree

_SUBMODULES = (
    "audit",
    "building",
    "clustering",
    "datasets",
    "engines",
    "errors",
    "estimators",
    "graph",
    "inputs",
    "ledger",
    "mechanisms",
    "pipeline",
    "planning",
    "privacy",
    "published",
    "release",
    "report",
    "series",
    "theory",
    "trees",
)

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
    "Series",
    "Topology",
    "Tree",
    "__version__",
    "check_records",
    "cluster_validity",
    "dbcvi",
    "dbmstclu",
    "dispersion",
    "euclidean_spanning_tree",
    "graph_from_flows",
    "graph_from_profiles",
    "graph_from_visits",
    "minimum_spanning_tree",
    "plan",
    "predict",
    "private_spanning_tree",
    "read_graph",
    "release_schema",
    "separation",
    "spark_edges",
    "write_report",
]


__getattr__ = lazy(
    __name__,
    *_SUBMODULES,
    building=("check_records", "graph_from_flows", "graph_from_profiles", "graph_from_visits"),
    clustering=(
        "Clustering",
        "Cuts",
        "cluster_validity",
        "dbcvi",
        "dbmstclu",
        "dispersion",
        "separation",
    ),
    estimators=("DBMSTClu", "PTClust"),
    graph=("Graph", "Topology", "read_graph"),
    ledger=("Ledger",),
    pipeline=("private_spanning_tree",),
    planning=("Plan", "plan", "predict"),
    privacy=("Budget", "PrivacyStatement", "Sensitivity"),
    release=("Release", "release_schema"),
    report=("write_report",),
    series=("Series",),
    trees=("Tree", "euclidean_spanning_tree", "minimum_spanning_tree"),
    **{"engines.edges": ("spark_edges",)},
)


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
