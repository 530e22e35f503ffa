"""ptclust: clusters of a weighted graph, published with differentially private edge weights.

The names below are the public interface. Each is imported when it is first used, so that
``import ptclust`` and the command line answer at once.
"""

from __future__ import annotations

from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ptclust._lazy import lazy
from ptclust._version import __version__

if TYPE_CHECKING:
    from ptclust.building import check_records as check_records
    from ptclust.building import graph_from_flows as graph_from_flows
    from ptclust.building import graph_from_profiles as graph_from_profiles
    from ptclust.building import graph_from_visits as graph_from_visits
    from ptclust.clustering import Clustering as Clustering
    from ptclust.clustering import Cuts as Cuts
    from ptclust.clustering import cluster_validity as cluster_validity
    from ptclust.clustering import dbcvi as dbcvi
    from ptclust.clustering import dbmstclu as dbmstclu
    from ptclust.clustering import dispersion as dispersion
    from ptclust.clustering import separation as separation
    from ptclust.engines.edges import spark_edges as spark_edges
    from ptclust.estimators import DBMSTClu as DBMSTClu
    from ptclust.estimators import PTClust as PTClust
    from ptclust.graph import Graph as Graph
    from ptclust.graph import Topology as Topology
    from ptclust.graph import read_graph as read_graph
    from ptclust.ledger import Ledger as Ledger
    from ptclust.pipeline import private_spanning_tree as private_spanning_tree
    from ptclust.planning import Plan as Plan
    from ptclust.planning import plan as plan
    from ptclust.planning import predict as predict
    from ptclust.privacy import Budget as Budget
    from ptclust.privacy import PrivacyStatement as PrivacyStatement
    from ptclust.privacy import Sensitivity as Sensitivity
    from ptclust.release import Release as Release
    from ptclust.release import release_schema as release_schema
    from ptclust.report import write_report as write_report
    from ptclust.series import Series as Series
    from ptclust.trees import Tree as Tree
    from ptclust.trees import euclidean_spanning_tree as euclidean_spanning_tree
    from ptclust.trees import minimum_spanning_tree as minimum_spanning_tree

_SUBMODULES = [each.name for each in iter_modules(__path__) if not each.name.startswith("_")]

_NAMES = {
    "building": ("check_records", "graph_from_flows", "graph_from_profiles", "graph_from_visits"),
    "clustering": (
        "Clustering",
        "Cuts",
        "cluster_validity",
        "dbcvi",
        "dbmstclu",
        "dispersion",
        "separation",
    ),
    "engines.edges": ("spark_edges",),
    "estimators": ("DBMSTClu", "PTClust"),
    "graph": ("Graph", "Topology", "read_graph"),
    "ledger": ("Ledger",),
    "pipeline": ("private_spanning_tree",),
    "planning": ("Plan", "plan", "predict"),
    "privacy": ("Budget", "PrivacyStatement", "Sensitivity"),
    "release": ("Release", "release_schema"),
    "report": ("write_report",),
    "series": ("Series",),
    "trees": ("Tree", "euclidean_spanning_tree", "minimum_spanning_tree"),
}

__all__ = ["__version__", *(name for names in _NAMES.values() for name in names)]
__getattr__ = lazy(__name__, *_SUBMODULES, **_NAMES)


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
