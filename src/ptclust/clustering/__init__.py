"""Clusterers: post-processing of a weighted tree or graph of any origin."""

from ptclust.clustering.clusterer import (
    CLUSTERERS,
    Clusterer,
    Clustering,
    ClusteringRequest,
    Cost,
    Cuts,
    Evidence,
    Level,
    check_sizes,
    choose_clusterer,
    with_options,
    without_small,
)
from ptclust.clustering.communities import CommunitiesClusterer
from ptclust.clustering.dbcvi import WeightedTree, cluster_validity, dbcvi, dispersion, separation
from ptclust.clustering.dbmstclu import DBMSTCluClusterer, dbmstclu
from ptclust.clustering.levels import LevelsClusterer, cut_levels

__all__ = [
    "CLUSTERERS",
    "Clusterer",
    "Clustering",
    "ClusteringRequest",
    "Cost",
    "Cuts",
    "DBMSTCluClusterer",
    "Evidence",
    "Level",
    "WeightedTree",
    "check_sizes",
    "choose_clusterer",
    "cluster_validity",
    "cut_levels",
    "dbcvi",
    "dbmstclu",
    "dispersion",
    "separation",
    "with_options",
    "without_small",
]

for _clusterer in (
    CommunitiesClusterer(),
    LevelsClusterer(),
    DBMSTCluClusterer(),
):
    CLUSTERERS.register(_clusterer)  # in the order in which ``auto`` prefers them
