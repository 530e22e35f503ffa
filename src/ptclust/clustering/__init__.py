"""Room of the clusterings: post-processing of a weighted tree, whoever made it."""

from ptclust.clustering.dbcvi import (
    WeightedTree,
    cluster_validity,
    dbcvi,
    dispersion,
    separation,
)
from ptclust.clustering.dbmstclu import Clustering, Cuts, check_sizes, dbmstclu, without_small

__all__ = [
    "Clustering",
    "Cuts",
    "WeightedTree",
    "check_sizes",
    "cluster_validity",
    "dbcvi",
    "dbmstclu",
    "dispersion",
    "separation",
    "without_small",
]
